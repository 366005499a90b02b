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
      {"bart",
       {{"BartForConditionalGeneration", Head::LanguageModel},
        {"BartModel", Head::None}},
       importBart,
       /*encoderDecoder=*/true},
      {"gpt2",
       {{"GPT2LMHeadModel", Head::LanguageModel}, {"GPT2Model", Head::None}},
       importGPT2},
      {"llama",
       {{"LlamaForCausalLM", Head::LanguageModel}, {"LlamaModel", Head::None}},
       importLlama},
      {"marian",
       {{"MarianMTModel", Head::LanguageModel}, {"MarianModel", Head::None}},
       importMarian,
       /*encoderDecoder=*/true},
      {"mbart",
       {{"MBartForConditionalGeneration", Head::LanguageModel},
        {"MBartModel", Head::None}},
       importMBart,
       /*encoderDecoder=*/true},
      {"mt5",
       {{"MT5ForConditionalGeneration", Head::LanguageModel},
        {"MT5Model", Head::None},
        {"MT5EncoderModel", Head::None}},
       importMT5,
       /*encoderDecoder=*/true},
      {"pegasus",
       {{"PegasusForConditionalGeneration", Head::LanguageModel},
        {"PegasusModel", Head::None}},
       importPegasus,
       /*encoderDecoder=*/true},
      {"t5",
       {{"T5ForConditionalGeneration", Head::LanguageModel},
        {"T5WithLMHeadModel", Head::LanguageModel},
        {"T5Model", Head::None},
        {"T5EncoderModel", Head::None}},
       importT5,
       /*encoderDecoder=*/true},
  };
  return all;
}

} // namespace attune::hf
