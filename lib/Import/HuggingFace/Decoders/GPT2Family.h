//===- GPT2Family.h - Architectures like GPT-2 ------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_IMPORT_HUGGINGFACE_DECODERS_GPT2FAMILY_H
#define ATTUNE_LIB_IMPORT_HUGGINGFACE_DECODERS_GPT2FAMILY_H

#include "../Architectures.h"
#include "attune/Import/HuggingFace/StreamBuilder.h"

namespace attune::hf {

/// The keys of a configuration class, and what it takes where they are absent.
struct GPT2Defaults {
  const char *widthKey = "n_embd", *headsKey = "n_head", *layersKey = "n_layer";
  const char *lengthKey = "n_positions", *innerKey = "n_inner";
  int64_t width = 768, heads = 12, layers = 12, length = 1024, vocab = 50257;
  const char *activation = "gelu_new";
};

/// The keys of a GPT-2-like configuration. An importer adds what its own keys
/// say to `block`, `tensors` and so on before it builds the model.
struct GPT2Config {
  std::string name;
  GPT2Defaults keys;
  int64_t width = 0, heads = 0, layers = 0, vocab = 0, length = 0;
  bool tied = false;
  /// Pre-norm, causal attention with biases and scores divided by the root of
  /// the heads' width, FFN of four times the width.
  spec::Block block;
  TensorNames tensors; ///< of a block
  /// Where blocks differ: every kind of block, and which one each layer is.
  std::vector<spec::Block> kinds;
  std::vector<size_t> kindOf;
  bool skipPadding = false; ///< padded tokens take no position
};

/// Reads the keys that all of the family have, and passes over those of
/// dropout and of the head that summarises. Nothing after an error.
std::optional<GPT2Config> readGPT2(ImportContext &context, const char *name,
                                   const GPT2Defaults &defaults);

/// wte, wpe, h, ln_f, lm_head.
spec::Model buildGPT2(ImportContext &context, const GPT2Config &gpt);

} // namespace attune::hf

#endif // ATTUNE_LIB_IMPORT_HUGGINGFACE_DECODERS_GPT2FAMILY_H
