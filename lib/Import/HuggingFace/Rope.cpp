//===- Rope.cpp - Rotary settings of both config generations ----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rope.h"

#include <algorithm>
#include <cmath>

namespace attune::hf {

using namespace spec;

/// YaRN's temperature: 0.1 m ln(s) + 1 beyond the trained length.
static double yarnScale(double factor, double mscale) {
  return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
}

/// `length` times `factor`, as far as positions go.
static int64_t stretch(int64_t length, double factor) {
  return static_cast<int64_t>(
      std::min(double(length) * factor, double(INT32_MAX)));
}

static void readYarn(Config &scaling, RopeScaling &out, int64_t length,
                     int64_t &context) {
  out.factor = scaling.real("factor", std::nullopt);
  out.betaFast = scaling.real("beta_fast", 32);
  out.betaSlow = scaling.real("beta_slow", 1);
  out.truncate = scaling.flag("truncate", true);
  // Without a trained length max_position_embeddings is the trained one.
  bool stated = scaling.peek("original_max_position_embeddings");
  out.originalLength =
      scaling.integer("original_max_position_embeddings", length);
  if (!stated)
    context = stretch(length, out.factor);
  if (scaling.peek("attention_factor"))
    out.attentionFactor = scaling.real("attention_factor", 1);
  // DeepSeek's names for two temperatures, of which the quotient counts.
  bool hasMscale = scaling.get("mscale"),
       hasAll = scaling.get("mscale_all_dim");
  if (hasMscale && hasAll) {
    double mscale = scaling.real("mscale", 1);
    double all = scaling.real("mscale_all_dim", 1);
    if (!out.attentionFactor)
      out.attentionFactor =
          yarnScale(out.factor, mscale) / yarnScale(out.factor, all);
  } else if (hasMscale || hasAll) {
    scaling.error(hasMscale ? "mscale" : "mscale_all_dim",
                  "has a meaning only together with the other of mscale and "
                  "mscale_all_dim");
  }
  scaling.ignore({"attention_factor"});
}

/// The members of "rope_scaling" or "rope_parameters".
static void readScaling(Config &scaling, Rope &rope, int64_t length,
                        int64_t &context) {
  std::string_view key = scaling.oneOf({"rope_type", "type"});
  std::string type = scaling.text(key, "");
  RopeScaling &out = rope.scaling;
  if (type == "default") {
    out.type = "none";
  } else if (type == "linear") {
    out.type = type;
    out.factor = scaling.real("factor", std::nullopt);
    scaling.ignore({"original_max_position_embeddings"});
  } else if (type == "dynamic") {
    out.type = type;
    out.factor = scaling.real("factor", std::nullopt);
    bool stated = scaling.peek("original_max_position_embeddings");
    out.originalLength =
        scaling.integer("original_max_position_embeddings", length);
    // It acts beyond the trained length only.
    if (!stated)
      context = stretch(length, out.factor);
  } else if (type == "llama3") {
    out.type = type;
    out.factor = scaling.real("factor", std::nullopt);
    out.lowFreqFactor = scaling.real("low_freq_factor", std::nullopt);
    out.highFreqFactor = scaling.real("high_freq_factor", std::nullopt);
    out.originalLength =
        scaling.integer("original_max_position_embeddings", std::nullopt);
    if (!scaling.hasErrors() && !(out.highFreqFactor > out.lowFreqFactor))
      scaling.error("high_freq_factor",
                    "expected a number above low_freq_factor");
  } else if (type == "yarn") {
    out.type = type;
    readYarn(scaling, out, length, context);
  } else {
    scaling.error(key, (type.empty() ? std::string("expected")
                                     : quote(type) + " is not supported; "
                                                     "expected") +
                           " one of default, linear, dynamic, llama3, yarn");
    return;
  }
  scaling.finish("a rotary embedding of type '" + type + "'");
}

std::optional<RopeSettings> readRope(Config &config, int64_t headDim,
                                     int64_t length,
                                     const RopeDefaults &defaults) {
  RopeSettings settings;
  settings.context = length;
  Rope &rope = settings.rope;
  // GPT-NeoX has an older name for each of the two; new files write both.
  std::string_view thetaKey = config.oneOf({"rope_theta", defaults.thetaKey});
  std::string_view partialKey =
      config.oneOf({"partial_rotary_factor", defaults.partialKey});

  // Version 5 renamed rope_scaling and moved rope_theta into it.
  const Value *parameters = config.get("rope_parameters");
  const Value *scaling = config.get("rope_scaling");
  std::string name = parameters ? "rope_parameters" : "rope_scaling";
  const Value *object = parameters ? parameters : scaling;
  rope.location = config.locate(parameters ? "rope_parameters" : thetaKey);
  rope.theta = config.real(thetaKey, defaults.theta);
  double partial = config.real(partialKey, defaults.partial.value_or(1));
  if (object && !object->isObject()) {
    config.error(name, std::string("expected an object, found ") +
                           describe(object->kind));
    return std::nullopt;
  }
  if (object) {
    // One entry per kind of layer; these models have but one kind.
    if (const Value *full = object->find("full_attention");
        full && full->isObject() && object->members.size() == 1) {
      object = full;
      name += "/full_attention";
    }
    Config members(*object, "/" + name, config.getReporter());
    rope.theta = members.real("rope_theta", rope.theta);
    if (members.peek("partial_rotary_factor"))
      partial = members.real("partial_rotary_factor", 1);
    // An object without a type is the plain embedding of version 5.
    if (!members.peek("rope_type") && !members.peek("type") && parameters)
      members.finish("a plain rotary embedding");
    else
      readScaling(members, rope, length, settings.context);
  }
  if (partial != 1 && !defaults.partial)
    config.error(partialKey, "this architecture turns whole heads, expected 1");
  else if (partial > 1)
    config.error(partialKey, "is a part of each head, expected at most 1");
  rope.channels = static_cast<int64_t>(double(headDim) * partial);
  if (rope.channels < 2 || rope.channels % 2)
    config.error(partial != 1              ? partialKey
                 : config.peek("head_dim") ? "head_dim"
                                           : "hidden_size",
                 "rotary embedding turns pairs of channels, but heads have " +
                     std::to_string(rope.channels));
  return settings;
}

} // namespace attune::hf
