//===- GenerationSchema.cpp - Table of what generation needs ----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SchemaTypes.h"
#include "attune/Spec/Spec.h"

namespace attune::spec {

const std::vector<SamplingSetting> &samplingSettings() {
  static const std::vector<SamplingSetting> settings = {
      {"do_sample", SamplingSetting::Flag, 0, 1, 0,
       "draw tokens by their probability; default false: take the likeliest"},
      {"temperature", SamplingSetting::Real, 0, 1000, 1,
       "divides the logits; 0: take the likeliest"},
      {"top_k", SamplingSetting::Whole, 0, maxInteger, 0,
       "draw among so many of the likeliest; 0: among all"},
      {"top_p", SamplingSetting::Real, 0, 1, 1,
       "draw among the likeliest of so much probability"},
      {"min_p", SamplingSetting::Real, 0, 1, 0,
       "drop what is less likely than so much of the likeliest"},
      {"repetition_penalty", SamplingSetting::Real, 0.01, 100, 1,
       "above 1: make tokens that were there before less likely"},
      {"no_repeat_ngram_size", SamplingSetting::Whole, 0, maxInteger, 0,
       "so many tokens in a row never come twice; 0: they may"},
      {"min_length", SamplingSetting::Whole, 0, maxInteger, 0,
       "no end before so many tokens, with the prompt"},
      {"min_new_tokens", SamplingSetting::Whole, 0, maxInteger, 0,
       "no end before so many new tokens"},
      {"max_length", SamplingSetting::Whole, 1, maxInteger, -1,
       "the end after so many tokens, with the prompt"},
      {"max_new_tokens", SamplingSetting::Whole, 1, maxInteger, -1,
       "the end after so many new tokens"},
      {"length_penalty", SamplingSetting::Real, -100, 100, 1,
       "of beams: texts are compared by their log-probability, divided by the "
       "number of new tokens to this power"},
      {"early_stopping", SamplingSetting::Flag, 0, 2, 0,
       "of beams: true: stop once as many texts as beams ended; false: once no "
       "open text is better now; \"never\": once none can become better"},
  };
  return settings;
}

const ObjectType &samplingType() {
  static const ObjectType type = [] {
    ObjectType table{"sampling",
                     "How tokens are chosen unless an option of attune "
                     "generate says otherwise; the names are those of "
                     "generation_config.json.",
                     {},
                     {},
                     {}};
    for (const SamplingSetting &setting : samplingSettings())
      table.keys.push_back({setting.name,
                            setting.kind == SamplingSetting::Flag
                                ? setting.most == 2
                                      ? either({boolean(), choice({"never"})})
                                      : boolean()
                            : setting.kind == SamplingSetting::Real
                                ? number()
                                : integer(setting.least == 1),
                            setting.doc});
    return table;
  }();
  return type;
}

const ObjectType &generationType() {
  static const ObjectType type{
      "generation",
      "Token ids that generation needs, and how texts are sampled.",
      {
          {"eos", either({integer(0), array(integer(0))}),
           "stops after any of these"},
          {"bos", integer(0), "starts with this"},
          {"pad", integer(0), "fills up"},
          {"decoder_start", integer(0),
           "encoder-decoders: the decoder starts with this; default bos"},
          {"forced_bos", integer(0),
           "encoder-decoders: the first token that is generated"},
          {"suppress", array(integer(0)), "tokens that are never generated"},
          {"begin_suppress", array(integer(0)),
           "tokens that are not generated first"},
          {"sampling", object(samplingType()),
           "settings of attune generate that its options override"},
      },
      {},
      {}};
  return type;
}

} // namespace attune::spec
