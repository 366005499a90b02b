//===- Config.cpp - config.json, every key accounted for --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Architectures.h"

#include <cmath>
#include <cstdint>
#include <cstdio>

namespace attune::hf {

using spec::Value;

static std::string describeFound(const Value &value) {
  switch (value.kind) {
  case Value::Kind::String:
    return spec::quote(value.text);
  case Value::Kind::Integer:
    return std::to_string(value.integer);
  case Value::Kind::Real: {
    char digits[32];
    std::snprintf(digits, sizeof(digits), "%g", value.real);
    return digits;
  }
  case Value::Kind::Boolean:
    return value.boolean ? "true" : "false";
  default:
    return spec::describe(value.kind);
  }
}

const Value *Config::peek(std::string_view key) const {
  const Value *value = object.find(key);
  return value && value->kind != Value::Kind::Null ? value : nullptr;
}

const Value *Config::get(std::string_view key) {
  seen.emplace(key);
  return peek(key);
}

std::string_view Config::oneOf(std::initializer_list<std::string_view> keys) {
  std::string_view found = *keys.begin();
  bool any = false;
  for (std::string_view key : keys)
    if (get(key) && !any) {
      found = key;
      any = true;
    }
  return found;
}

void Config::error(std::string_view key, const std::string &message) {
  const Value *value = object.find(key);
  reporter.error(value ? value->offset : object.offset,
                 key.empty() ? pointer : child(key), message);
}

SourceLocation Config::locate(std::string_view key) const {
  const Value *value = object.find(key);
  return reporter.locate(value ? value->offset : object.offset);
}

int64_t Config::integer(std::string_view key, std::optional<int64_t> fallback,
                        int64_t most) {
  const Value *value = get(key);
  if (!value) {
    if (!fallback)
      error(key, "expected an integer, but the key is absent");
    return fallback.value_or(1);
  }
  // Some writers store every number as a float.
  double whole = value->isNumber() ? value->real : 0.5;
  if (!(whole >= 1 && whole <= double(most)) || std::floor(whole) != whole) {
    error(key, "expected an integer from 1 to " + std::to_string(most) +
                   ", found " + describeFound(*value));
    return fallback.value_or(1);
  }
  return static_cast<int64_t>(whole);
}

double Config::real(std::string_view key, std::optional<double> fallback) {
  const Value *value = get(key);
  if (!value) {
    if (!fallback)
      error(key, "expected a number, but the key is absent");
    return fallback.value_or(1);
  }
  if (!value->isNumber() || !std::isfinite(value->real) || value->real <= 0) {
    error(key, "expected a number above 0, found " + describeFound(*value));
    return fallback.value_or(1);
  }
  return value->real;
}

int64_t Config::count(std::string_view key, int64_t fallback) {
  const Value *value = peek(key);
  if (value && value->isNumber() && value->real == 0) {
    get(key);
    return 0;
  }
  return integer(key, fallback);
}

bool Config::isNull(std::string_view key) const {
  const Value *value = object.find(key);
  return value && value->kind == Value::Kind::Null;
}

std::optional<double> Config::cap(std::string_view key,
                                  std::optional<double> fallback) {
  if (!get(key) && (!fallback || isNull(key)))
    return std::nullopt;
  return real(key, fallback);
}

bool Config::flag(std::string_view key, bool fallback) {
  const Value *value = get(key);
  if (!value)
    return fallback;
  if (value->kind != Value::Kind::Boolean) {
    error(key, "expected true or false, found " + describeFound(*value));
    return fallback;
  }
  return value->boolean;
}

std::string Config::text(std::string_view key, const std::string &fallback) {
  const Value *value = get(key);
  if (!value)
    return fallback;
  if (!value->isString()) {
    error(key, "expected a string, found " + describeFound(*value));
    return fallback;
  }
  return value->text;
}

std::optional<spec::Activation>
Config::activation(std::string_view key, const std::string &fallback) {
  return activationNamed(text(key, fallback), key);
}

std::optional<spec::Activation> Config::activationNamed(const std::string &name,
                                                        std::string_view key) {
  using spec::Activation;
  // gelu_fast and gelu_accurate are the tanh form with its constants written
  // in another order.
  static const std::pair<const char *, Activation> names[] = {
      {"gelu", Activation::Gelu},
      {"gelu_python", Activation::Gelu},
      {"gelu_new", Activation::GeluTanh},
      {"gelu_pytorch_tanh", Activation::GeluTanh},
      {"gelu_fast", Activation::GeluTanh},
      {"gelu_accurate", Activation::GeluTanh},
      {"quick_gelu", Activation::QuickGelu},
      {"relu", Activation::Relu},
      {"relu2", Activation::ReluSquared},
      {"silu", Activation::Silu},
      {"swish", Activation::Silu},
      {"sigmoid", Activation::Sigmoid},
      {"tanh", Activation::Tanh},
      {"linear", Activation::Identity},
      {"mish", Activation::Mish},
      {"leaky_relu", Activation::LeakyRelu},
  };
  std::string known;
  for (const auto &[spelling, activation] : names) {
    if (name == spelling)
      return activation;
    known += (known.empty() ? "" : ", ") + std::string(spelling);
  }
  error(key, "no activation is called " + spec::quote(name) + "; known are " +
                 known);
  return std::nullopt;
}

std::vector<int64_t> Config::ids(std::string_view key) {
  const Value *value = get(key);
  std::vector<int64_t> result;
  if (!value)
    return result;
  auto add = [&](const Value &id) {
    if (id.kind == Value::Kind::Integer && id.integer >= 0 &&
        id.integer < maxSize)
      result.push_back(id.integer);
    // Files of Hugging Face write -1 for "none".
    else if (id.kind != Value::Kind::Integer || id.integer != -1)
      reporter.error(id.offset, child(key),
                     "expected a token id, found " + describeFound(id));
  };
  if (value->isArray())
    for (const Value &id : value->elements)
      add(id);
  else
    add(*value);
  return result;
}

void Config::ignore(std::initializer_list<const char *> keys) {
  for (const char *key : keys)
    seen.emplace(key);
}

void Config::mustBeFalse(std::string_view key, const std::string &why) {
  if (flag(key, false))
    error(key, why);
}

void Config::mustBeTrue(std::string_view key, const std::string &why) {
  if (!flag(key, true))
    error(key, why);
}

void Config::mustShare(std::string_view headsKey, int64_t heads,
                       std::string_view widthKey, int64_t width) {
  if (width % heads)
    error(headsKey, std::to_string(heads) + " heads cannot share a width of " +
                        std::to_string(width) + " (" + std::string(widthKey) +
                        ") evenly");
}

int64_t Config::labels() {
  if (const Value *names = get("id2label"); names && names->isObject())
    return std::max<int64_t>(1, static_cast<int64_t>(names->members.size()));
  return integer("num_labels", 2);
}

void Config::finish(const std::string &architecture) {
  for (const Value::Member &member : object.members) {
    if (member.value.kind == Value::Kind::Null || seen.count(member.key))
      continue;
    std::vector<std::string> candidates(seen.begin(), seen.end());
    std::string near = spec::nearest(member.key, candidates);
    reporter.error(
        member.keyOffset, child(member.key),
        "this key may change the numbers and is not understood for " +
            architecture +
            (near.empty() ? "" : "; did you mean '" + near + "'?") +
            "; if it is of no consequence, remove it");
  }
}

std::string ImportContext::prefixFor(const std::string &prefix,
                                     const std::string &probe) const {
  if (checkpoint && checkpoint->find(prefix + probe))
    return prefix;
  if (checkpoint && checkpoint->find(probe))
    return "";
  return modelClass && modelClass->head != Head::None ? prefix : "";
}

} // namespace attune::hf
