//===- Architectures.cpp - The importers of all architectures ---*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Architectures.h"

#include <deque>
#include <string>

namespace attune::hf {

/// RoBERTa under its several names; `name` is that of its classes.
static std::vector<ModelClass> robertaClasses(const char *name) {
  static std::deque<std::string> names; // classes keep pointers to them
  std::vector<ModelClass> classes;
  for (const char *kind : {"Model", "ForMaskedLM", "ForSequenceClassification",
                           "ForTokenClassification", "ForQuestionAnswering"}) {
    names.push_back(std::string(name) + kind);
    classes.push_back(
        {names.back().c_str(), classes.empty() ? Head::None : Head::Other});
  }
  return classes;
}

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
      {"bert",
       {{"BertModel", Head::None},
        {"BertForPreTraining", Head::Other},
        {"BertForMaskedLM", Head::Other},
        {"BertForNextSentencePrediction", Head::Other},
        {"BertForSequenceClassification", Head::Other},
        {"BertForTokenClassification", Head::Other},
        {"BertForQuestionAnswering", Head::Other}},
       importBert},
      {"roberta", robertaClasses("Roberta"), importRoberta},
      {"xlm-roberta", robertaClasses("XLMRoberta"), importRoberta},
      {"camembert", robertaClasses("Camembert"), importRoberta},
      {"electra",
       {{"ElectraModel", Head::None},
        {"ElectraForPreTraining", Head::Other},
        {"ElectraForMaskedLM", Head::Other},
        {"ElectraForSequenceClassification", Head::Other},
        {"ElectraForTokenClassification", Head::Other},
        {"ElectraForQuestionAnswering", Head::Other}},
       importElectra},
      {"distilbert",
       {{"DistilBertModel", Head::None},
        {"DistilBertForMaskedLM", Head::Other},
        {"DistilBertForSequenceClassification", Head::Other},
        {"DistilBertForTokenClassification", Head::Other},
        {"DistilBertForQuestionAnswering", Head::Other}},
       importDistilBert},
      {"albert",
       {{"AlbertModel", Head::None},
        {"AlbertForPreTraining", Head::Other},
        {"AlbertForMaskedLM", Head::Other},
        {"AlbertForSequenceClassification", Head::Other},
        {"AlbertForTokenClassification", Head::Other},
        {"AlbertForQuestionAnswering", Head::Other}},
       importAlbert},
      {"vit",
       {{"ViTModel", Head::None}, {"ViTForImageClassification", Head::Other}},
       importViT},
      {"deit",
       {{"DeiTModel", Head::None},
        {"DeiTForImageClassification", Head::Other},
        {"DeiTForImageClassificationWithTeacher", Head::Other}},
       importDeiT},
      {"clip", {{"CLIPModel", Head::None}}, importClip},
      {"clip_text_model",
       {{"CLIPTextModel", Head::None},
        {"CLIPTextModelWithProjection", Head::Other}},
       importClip},
      {"clip_vision_model",
       {{"CLIPVisionModel", Head::None},
        {"CLIPVisionModelWithProjection", Head::Other}},
       importClip},
  };
  return all;
}

} // namespace attune::hf
