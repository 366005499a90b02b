//===- ImportSpec.h - From a model description to attune IR -----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_IMPORT_IMPORTSPEC_H
#define ATTUNE_IMPORT_IMPORTSPEC_H

#include "attune/Spec/Spec.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <optional>

namespace attune {

struct ImportOptions {
  /// Also make `@decode`, one step of generation with a key/value cache, and
  /// for encoder-decoders `@encode`, if the model can generate (`canDecode`).
  bool decode = true;
  /// With `decode`: also make `@decode_all`, the same step that gives the
  /// logits of all its tokens, [batch, seq, V]: guessed tokens are checked with
  /// it. A model that keeps a state which no step can take back has none.
  bool decodeAll = false;
  /// With `decode`: also make `@decode_batch`, a step of one token for each of
  /// several sequences, which may have different lengths. If the model cannot
  /// do that, the module's attribute `attune.decodes_alone` says why.
  bool decodeBatch = false;
  /// Keep the output `hidden_states`; without it that output is left out.
  bool taps = true;
  /// Storage type of the weights instead of the description's.
  std::optional<spec::DType> dtype;
};

/// Whether `@decode` can be made: the last stream starts from token ids,
/// attends to itself causally, to the streams before it (if there are any) and
/// to nothing else, and ends in a linear head over the vocabulary, which is an
/// output.
bool canDecode(const spec::Model &model);

/// Why `@decode_batch` cannot be made; empty: it can, for `@decode` can be made
/// from the token ids alone, and nothing but what a sequence itself has kept
/// says what its next token is. Masks of blocks and rotary angles that change
/// with the length of the text are not made for unequal lengths.
std::string whyDecodesAlone(const spec::Model &model);

/// The module that a description stands for. It holds the weights' names, one
/// function per distinct block and the entries `@forward`, `@encode` and
/// `@decode`; its size does not depend on how often a block repeats. Parts that
/// cannot be expressed are reported at their place in the JSON, and null is
/// returned.
mlir::OwningOpRef<mlir::ModuleOp> importSpec(mlir::MLIRContext &context,
                                             const spec::Model &model,
                                             const ImportOptions &options,
                                             DiagnosticEngine &diags);

} // namespace attune

#endif // ATTUNE_IMPORT_IMPORTSPEC_H
