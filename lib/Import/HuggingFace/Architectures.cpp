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
      {"deepseek_v2",
       {{"DeepseekV2ForCausalLM", Head::LanguageModel},
        {"DeepseekV2Model", Head::None}},
       importDeepSeekV2},
      {"deepseek_v3",
       {{"DeepseekV3ForCausalLM", Head::LanguageModel},
        {"DeepseekV3Model", Head::None}},
       importDeepSeekV3},
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
      {"mixtral",
       {{"MixtralForCausalLM", Head::LanguageModel},
        {"MixtralModel", Head::None}},
       importMixtral},
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
      {"qwen2_moe",
       {{"Qwen2MoeForCausalLM", Head::LanguageModel},
        {"Qwen2MoeModel", Head::None}},
       importQwen2MoE},
      {"qwen3_moe",
       {{"Qwen3MoeForCausalLM", Head::LanguageModel},
        {"Qwen3MoeModel", Head::None}},
       importQwen3MoE},
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
