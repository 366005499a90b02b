//===- Rope.h - Rotary settings of both config generations ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_IMPORT_HUGGINGFACE_ROPE_H
#define ATTUNE_LIB_IMPORT_HUGGINGFACE_ROPE_H

#include "Config.h"

namespace attune::hf {

struct RopeSettings {
  spec::Rope rope;
  int64_t context = 0; ///< longest sequence the scaling is made for
};

/// Reads `rope_theta` + `rope_scaling` or, from version 5 of transformers on,
/// `rope_parameters`. `channels` are turned per head; `length` is
/// max_position_embeddings. Reports what it does not understand.
std::optional<RopeSettings> readRope(Config &config, int64_t channels,
                                     int64_t length);

} // namespace attune::hf

#endif // ATTUNE_LIB_IMPORT_HUGGINGFACE_ROPE_H
