//===- GgufTensors.h - Numbers and names of tensors -------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_WEIGHTS_GGUF_GGUFTENSORS_H
#define ATTUNE_LIB_WEIGHTS_GGUF_GGUFTENSORS_H

#include "attune/Weights/GgufFile.h"

namespace attune::gguf {

/// Takes a number of up to six digits off the begin of `text`.
bool takeNumber(std::string_view &text, std::string &digits);

bool isFloat(const CheckpointTensor &tensor);
/// Some numbers of a tensor that is of floats.
void readFloats(const CheckpointTensor &tensor, int64_t first, int64_t count,
                float *out);

/// The tensors of a part that sees, under the names and in the layout that its
/// class of Hugging Face has.
void addSight(const File &file, std::deque<CheckpointTensor> &tensors,
              std::vector<std::unique_ptr<TensorEncoding>> &encodings);

} // namespace attune::gguf

#endif // ATTUNE_LIB_WEIGHTS_GGUF_GGUFTENSORS_H
