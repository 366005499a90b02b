//===- LoraFile.h - Tensors of an adapter ------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_WEIGHTS_LORA_LORAFILE_H
#define ATTUNE_LIB_WEIGHTS_LORA_LORAFILE_H

#include "LoraConfig.h"

#include "attune/Weights/Checkpoint.h"

namespace attune {

/// A tensor of an adapter, and the module that it is for.
struct LoraPart {
  const runtime::TensorInfo *tensor = nullptr;
  std::string module; ///< of a whole tensor, its name
  bool table = false; ///< A of a table of embeddings
};

/// A [rank, inner] and B [outer, rank] of a matrix of the base.
struct LoraPair {
  const runtime::TensorInfo *down = nullptr, *up = nullptr;
  const CheckpointTensor *base = nullptr;
  int64_t rank = 0, inner = 0, outer = 0;
  double scale = 1; ///< what the adapter multiplies B A by
  bool table = false;
  bool transposed = false; ///< the base is [inner, outer]
};

/// An adapter as PEFT saves it.
struct LoraFile {
  LoraConfig config;
  std::unique_ptr<runtime::SafetensorsFile> file;

  static std::optional<LoraFile> open(const std::string &folder,
                                      DiagnosticEngine &diags);
  /// Tells matrices A from tensors that stand for whole ones.
  bool list(std::vector<LoraPart> &pairs, std::vector<LoraPart> &others,
            DiagnosticEngine &diags) const;
  /// Both matrices of a part, checked against the base's.
  std::optional<LoraPair> findPair(const LoraPart &part,
                                   const Checkpoint &checkpoint,
                                   DiagnosticEngine &diags) const;
  /// Checkpoints differ in what they put in front of all names: "model.",
  /// "transformer.", nothing. A name that they lengthen must fit one tensor.
  static const CheckpointTensor *findBase(const Checkpoint &checkpoint,
                                          const std::string &name);
  bool checkPart(const runtime::TensorInfo &tensor,
                 const std::vector<int64_t> &shape,
                 const CheckpointTensor &base, DiagnosticEngine &diags) const;
  bool fail(const std::string &name, const std::string &what,
            DiagnosticEngine &diags) const;
};

/// The numbers of a matrix, or of its transpose.
std::vector<float> numbersOf(const runtime::TensorInfo &tensor,
                             bool transposed);

} // namespace attune

#endif // ATTUNE_LIB_WEIGHTS_LORA_LORAFILE_H
