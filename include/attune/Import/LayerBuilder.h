//===- LayerBuilder.h - The ops of layers that plugins bring ----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_IMPORT_LAYERBUILDER_H
#define ATTUNE_IMPORT_LAYERBUILDER_H

#include "attune/Spec/LayerKind.h"

#include "mlir/IR/Builders.h"

#include <functional>

namespace attune {

/// Everything that making the ops of one layer needs.
struct LayerBuilder {
  mlir::OpBuilder &builder;
  mlir::Location loc; ///< in the description
  const spec::Extension &layer;
  int64_t width; ///< channels of the result
  /// The weight of a role that `describe` gave, [rows, columns] or a vector of
  /// the type that weights are kept in. Null after an error was reported.
  std::function<mlir::Value(llvm::StringRef role)> weight;
};

/// The result [batch, tokens, width] of a layer for `input`, f32 [batch,
/// tokens, channels]; null after an error was reported at `loc`.
using BuildLayer =
    std::function<mlir::Value(const LayerBuilder &, mlir::Value input)>;

/// Adds a kind of layer to the language of descriptions: what plugins call as
/// they are loaded. False if its key is taken.
bool registerLayer(spec::LayerKind kind, BuildLayer build);

} // namespace attune

#endif // ATTUNE_IMPORT_LAYERBUILDER_H
