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
  // Without a trained length max_position_embeddings is the trained one. Files
  // state the stretched length there, or (Qwen's recipe) leave it as it was.
  out.originalLength =
      scaling.integer("original_max_position_embeddings", length);
  context = std::max(length, stretch(out.originalLength, out.factor));
  if (scaling.peek("attention_factor"))
    out.attentionFactor = scaling.real("attention_factor", 1);
  // DeepSeek's names for two temperatures, of which the quotient counts.
  bool hasMscale = scaling.get("mscale"),
       hasAll = scaling.get("mscale_all_dim");
  bool isZero = false; // which counts as not there
  for (const char *key : {"mscale", "mscale_all_dim"})
    if (const Value *value = scaling.get(key))
      isZero |= value->isNumber() && value->real == 0;
  if (isZero) {
    // The temperature is the plain one.
  } else if (hasMscale && hasAll) {
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

static std::vector<double> readFactors(Config &scaling, std::string_view key,
                                       int64_t pairs) {
  std::vector<double> factors;
  const Value *list = scaling.get(key);
  if (!list || !list->isArray()) {
    scaling.error(key, "expected an array of numbers");
    return {};
  }
  for (const Value &factor : list->elements) {
    if (!factor.isNumber() || !(factor.real > 0)) {
      scaling.error(key, "expected numbers above 0");
      return {};
    }
    factors.push_back(factor.real);
  }
  if (static_cast<int64_t>(factors.size()) != pairs)
    scaling.error(key, "has " + std::to_string(factors.size()) +
                           " factors, expected one for each of the " +
                           std::to_string(pairs) + " turned pairs of channels");
  return factors;
}

/// Ding et al. (2024), as Phi-3 writes it. The trained length stands in the
/// configuration, beside the object, or (version 5) within it.
static void readLongRope(Config &config, Config &scaling, Rope &rope,
                         int64_t length, bool takesMscale) {
  RopeScaling &out = rope.scaling;
  out.shortFactors = readFactors(scaling, "short_factor", rope.channels / 2);
  out.longFactors = readFactors(scaling, "long_factor", rope.channels / 2);
  bool within = scaling.peek("original_max_position_embeddings");
  out.originalLength = (within ? scaling : config)
                           .integer("original_max_position_embeddings", length);
  // A stated factor counts only where the trained length is not stated.
  double factor = scaling.real("factor", 1);
  double stretched = within || config.peek("original_max_position_embeddings")
                         ? double(length) / double(out.originalLength)
                         : factor;
  out.attentionFactor =
      stretched <= 1 ? 1
                     : std::sqrt(1 + std::log(stretched) /
                                         std::log(double(out.originalLength)));
  if (scaling.peek("attention_factor"))
    out.attentionFactor = scaling.real("attention_factor", 1);
  if (!takesMscale)
    return;
  // Phi-3.5-MoE's class asks for both.
  out.attentionFactor = scaling.real("short_mscale", std::nullopt);
  if (scaling.real("long_mscale", std::nullopt) != *out.attentionFactor)
    scaling.error("long_mscale", "another factor than short_mscale is not "
                                 "supported");
}

/// The members of "rope_scaling" or "rope_parameters".
static void readScaling(Config &config, Config &scaling, Rope &rope,
                        int64_t length, int64_t &context,
                        const RopeDefaults &defaults) {
  std::string_view key = scaling.oneOf({"rope_type", "type"});
  std::string type = scaling.text(key, "");
  RopeScaling &out = rope.scaling;
  if (type == "default") {
    out.type = "none";
  } else if (type == "linear") {
    out.type = type;
    out.factor = scaling.real("factor", std::nullopt);
    scaling.ignore({"original_max_position_embeddings"});
  } else if (type == "dynamic" && defaults.takesAlpha && scaling.get("alpha")) {
    out.type = "none";
    double alpha = scaling.real("alpha", std::nullopt);
    if (rope.channels <= 2 || !(alpha > 0))
      scaling.error("alpha", "expected a number above 0, and heads of more "
                             "than two turned channels");
    else
      rope.theta *=
          std::pow(alpha, double(rope.channels) / double(rope.channels - 2));
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
  } else if (type == "longrope" || type == "su") {
    out.type = "longrope";
    readLongRope(config, scaling, rope, length, defaults.takesMscale);
  } else if (type == "mrope") {
    // The three positions of a text's token are one and the same.
    out.type = "none";
  } else {
    scaling.error(
        key, (type.empty() ? std::string("expected")
                           : quote(type) + " is not supported; "
                                           "expected") +
                 " one of default, linear, dynamic, llama3, yarn, longrope");
    return;
  }
  // Keys of other types are known to the class, which passes them over.
  scaling.finish("a rotary embedding of type '" + type + "'",
                 {"rope_type", "type", "rope_theta", "partial_rotary_factor",
                  "factor", "original_max_position_embeddings", "beta_fast",
                  "beta_slow", "truncate", "attention_factor", "mscale",
                  "mscale_all_dim", "short_factor", "long_factor",
                  "low_freq_factor", "high_freq_factor", "mrope_section",
                  "mrope_interleaved", "finetuned"});
}

static bool sameValue(const Value &a, const Value &b) {
  if (a.isNumber() && b.isNumber())
    return a.real == b.real;
  if (a.kind != b.kind || a.boolean != b.boolean || a.text != b.text ||
      a.elements.size() != b.elements.size() ||
      a.members.size() != b.members.size())
    return false;
  for (size_t i = 0; i < a.elements.size(); ++i)
    if (!sameValue(a.elements[i], b.elements[i]))
      return false;
  for (const Value::Member &member : a.members) {
    const Value *other = b.find(member.key);
    if (!other || !sameValue(member.value, *other))
      return false;
  }
  return true;
}

/// Whether two objects, of either generation, ask for the same scaling.
static bool sameScaling(const Value &a, const Value &b) {
  auto within = [](const Value &from, const Value &of) {
    for (const Value::Member &member : from.members) {
      const std::string &key = member.key;
      if (member.value.kind == Value::Kind::Null || key == "rope_theta" ||
          key == "partial_rotary_factor")
        continue;
      bool isType = key == "type" || key == "rope_type";
      const Value *other = of.find(key);
      if (isType && !other)
        other = of.find(key == "type" ? "rope_type" : "type");
      if (!other || !sameValue(member.value, *other))
        return false;
    }
    return true;
  };
  return within(a, b) && within(b, a);
}

/// `rope_parameters` may have an entry for each kind of layer.
static const Value *pickKind(const Value &object, const char *kind,
                             std::string &name) {
  const Value *own = object.find(kind);
  if (!own || !own->isObject())
    return &object;
  for (const Value::Member &member : object.members)
    if (member.key != "full_attention" && member.key != "sliding_attention")
      return &object;
  name += std::string("/") + kind;
  return own;
}

std::optional<RopeSettings> readRope(Config &config, int64_t headDim,
                                     int64_t length,
                                     const RopeDefaults &defaults) {
  RopeSettings settings;
  settings.context = length;
  Rope &rope = settings.rope;
  // GPT-NeoX has an older name for each of the two; new files write both.
  std::string_view thetaKey = config.oneOf({defaults.thetaKey, "rope_theta"});
  std::string_view partialKey =
      config.oneOf({defaults.partialKey, "partial_rotary_factor"});

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
  if (object)
    object = pickKind(*object, defaults.kind, name);
  // Where both are there the published classes take rope_scaling alone. A file
  // that says two things is not a file to guess about.
  if (parameters && scaling && scaling->isObject() &&
      !scaling->members.empty() && !sameScaling(*object, *scaling)) {
    config.error("rope_scaling",
                 "says something else than rope_parameters; remove the one "
                 "that does not hold, or say --ignore-config-key with its "
                 "name");
    return std::nullopt;
  }
  std::optional<Config> members;
  if (object)
    members.emplace(config.inner(*object, name));
  if (members && members->peek("partial_rotary_factor"))
    partial = members->real("partial_rotary_factor", 1);
  if (members)
    members->ignore({"partial_rotary_factor"});
  if (members && defaults.takesGrowth)
    members->ignore({"llama_4_scaling_beta", "max_position_embeddings"});
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
  if (!members && defaults.scaling) {
    rope.scaling = *defaults.scaling;
    settings.context = std::max(
        length, stretch(rope.scaling.originalLength, rope.scaling.factor));
  }
  if (members) {
    rope.theta = members->real("rope_theta", rope.theta);
    // An object without a type is the plain embedding of version 5.
    if (!members->peek("rope_type") && !members->peek("type") &&
        (parameters || object->members.empty()))
      members->finish("a plain rotary embedding");
    else
      readScaling(config, *members, rope, length, settings.context, defaults);
  }
  return settings;
}

std::optional<QueryGrowth> readGrowth(Config &config,
                                      const RopeDefaults &defaults) {
  const Value *object = config.peek("rope_parameters");
  if (!object)
    object = config.peek("rope_scaling");
  QueryGrowth growth;
  growth.location = config.locate("rope_parameters");
  if (!object || !object->isObject()) {
    growth.length = defaults.scaling->originalLength;
    return growth;
  }
  Config members =
      config.inner(*object, config.peek("rope_parameters") ? "rope_parameters"
                                                           : "rope_scaling");
  const Value *by = members.peek("llama_4_scaling_beta");
  if (!by || (by->isNumber() && by->real == 0))
    return std::nullopt;
  growth.by = members.real("llama_4_scaling_beta", 0);
  growth.length =
      members.integer("original_max_position_embeddings", std::nullopt);
  return growth;
}

std::optional<RopeSettings> readLocalRope(Config &config, int64_t headDim,
                                          const RopeDefaults &defaults) {
  RopeSettings settings;
  Rope &rope = settings.rope;
  rope.theta = defaults.theta;
  rope.channels = headDim;
  rope.location = config.locate("rope_local_base_freq");
  const Value *parameters = config.get("rope_parameters");
  const Value *own = parameters && parameters->isObject()
                         ? parameters->find(defaults.kind)
                         : nullptr;
  if (!own || !own->isObject())
    return settings;
  rope.location = config.locate("rope_parameters");
  Config members =
      config.inner(*own, std::string("rope_parameters/") + defaults.kind);
  rope.theta = members.real("rope_theta", rope.theta);
  if (!members.peek("rope_type"))
    members.finish("a plain rotary embedding");
  else
    readScaling(config, members, rope, headDim, settings.context, defaults);
  return settings;
}

double roundTo(DType dtype, double value) {
  if (dtype == DType::BF16) {
    // Eight bits of mantissa, the leading one counted; ties to even.
    int exponent;
    double mantissa = std::frexp(value, &exponent);
    return std::ldexp(std::nearbyint(std::ldexp(mantissa, 8)), exponent - 8);
  }
  if (dtype == DType::F16) {
    int exponent;
    double mantissa = std::frexp(value, &exponent);
    return std::ldexp(std::nearbyint(std::ldexp(mantissa, 11)), exponent - 11);
  }
  return value;
}

} // namespace attune::hf
