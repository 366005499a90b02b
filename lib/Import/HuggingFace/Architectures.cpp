//===- Architectures.cpp - The importers of all architectures ---*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Architectures.h"

namespace attune::hf {

const std::vector<Architecture> &architectures() {
  static const std::vector<Architecture> all = {
      {"gpt2",
       {{"GPT2LMHeadModel", Head::LanguageModel}, {"GPT2Model", Head::None}},
       importGPT2},
      {"llama",
       {{"LlamaForCausalLM", Head::LanguageModel}, {"LlamaModel", Head::None}},
       importLlama},
  };
  return all;
}

} // namespace attune::hf
