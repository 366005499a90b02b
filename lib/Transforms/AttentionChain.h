//===- AttentionChain.h - The ops of one attention --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_TRANSFORMS_ATTENTIONCHAIN_H
#define ATTUNE_LIB_TRANSFORMS_ATTENTIONCHAIN_H

#include "Attune/AttuneDialect.h"

#include "mlir/IR/Diagnostics.h"

#include <optional>
#include <string>

namespace attune {

/// Why a chain was not fused, and where the reason stands.
struct MatchFailure {
  MatchFailure() = default;
  MatchFailure(llvm::Twine reason) : reason(reason.str()) {}
  MatchFailure(llvm::Twine reason, mlir::Location where, llvm::Twine note)
      : reason(reason.str()), where(where), note(note.str()) {}

  /// True if there is something to refuse.
  explicit operator bool() const { return !reason.empty(); }

  void attachNote(mlir::InFlightDiagnostic &&diag) const {
    if (where)
      diag.attachNote(*where) << note;
  }

  std::string reason;
  std::optional<mlir::Location> where;
  std::string note;
};

/// The parts of `attune.attention`, read off a chain.
struct AttentionChain {
  mlir::Operation *root = nullptr;
  llvm::SmallVector<mlir::Operation *> links; // users before producers
  mlir::RankedTensorType resultType;
  mlir::Value query, key, value, mask, bias, diagonals, slopes, sinks;
  mlir::Value lengths, blocks;
  mlir::DenseI64ArrayAttr blockSizes;
  mlir::FloatAttr scale, softcap;
  mlir::IntegerAttr window;
  CausalAlign causal = CausalAlign::None;
};

/// Reads the chain of attune ops that ends in `root`.
MatchFailure matchLadder(WeightedSumOp root, AttentionChain &chain);

} // namespace attune

#endif // ATTUNE_LIB_TRANSFORMS_ATTENTIONCHAIN_H
