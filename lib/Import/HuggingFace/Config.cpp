//===- Config.cpp - config.json, every key accounted for --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Architectures.h"
#include "Keys.h"

#include <algorithm>
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

bool Config::isIgnored(std::string_view key) const {
  std::string path = pointer + "/" + std::string(key);
  for (const std::string &name : report.ignored)
    if (name == key || "/" + name == path || name == path) {
      report.foundIgnored.insert(name);
      return true;
    }
  return false;
}

const Value *Config::lookup(std::string_view key) const {
  const Value *value = object.find(key);
  return value && !isIgnored(key) ? value : nullptr;
}

const Value *Config::peek(std::string_view key) const {
  const Value *value = lookup(key);
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
  std::string place = key.empty() ? pointer : child(key);
  // Importers may read a key more than once.
  if (report.errors.emplace(place, message).second)
    reporter.error(value ? value->offset : object.offset, place, message);
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
  const Value *value = lookup(key);
  return value && value->kind == Value::Kind::Null;
}

std::optional<double> Config::cap(std::string_view key,
                                  std::optional<double> fallback) {
  const Value *value = get(key);
  if (!value && (!fallback || isNull(key)))
    return std::nullopt;
  if (value && value->isNumber() && std::isinf(value->real) && value->real > 0)
    return std::nullopt;
  return real(key, fallback);
}

bool Config::flag(std::string_view key, bool fallback) {
  const Value *value = get(key);
  if (!value)
    return fallback;
  if (value->isNumber() && (value->real == 0 || value->real == 1))
    return value->real == 1;
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
    // Some writers store every number as a float.
    double whole = id.isNumber() ? id.real : 0.5;
    if (whole >= 0 && whole < double(maxSize) && std::floor(whole) == whole)
      result.push_back(static_cast<int64_t>(whole));
    // Files of Hugging Face write -1 and null for "none".
    else if (whole != -1 && id.kind != Value::Kind::Null)
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

void Config::finish(const std::string &architecture,
                    const std::vector<std::string> &known) {
  if (known.empty() && hasErrors())
    return;
  const Value *longest = object.find("max_position_embeddings");
  double length = longest && longest->isNumber() ? longest->real : 0;
  bool ofRope = pointer.find("/rope_") != std::string::npos;
  std::set<std::string, std::less<>> names(known.begin(), known.end());
  names.insert(seen.begin(), seen.end());
  const std::vector<std::string> &common = commonKeys();
  std::vector<std::string> candidates(names.begin(), names.end());
  for (const Value::Member &member : object.members) {
    const std::string &key = member.key;
    if (member.value.kind == Value::Kind::Null || isIgnored(key) ||
        names.count(key) ||
        (!ofRope &&
         std::find(common.begin(), common.end(), key) != common.end()))
      continue;
    bool telling = ofRope ? !changesNothing(key, member.value, length)
                          : mayChangeNumbers(key, member.value, length);
    // A suggestion looks at every name: none is sought for what is not shown.
    bool shown = telling ? !reporter.isFull()
                         : report.passedOver.size() < KeyReport::kNamed;
    std::string near = shown ? spec::nearest(key, candidates) : "";
    std::string slip = near.empty() ? "" : "did you mean '" + near + "'?";
    if (telling)
      reporter.error(
          member.keyOffset, child(key),
          "this key may change the numbers and is not understood for " +
              architecture + "; " + (slip.empty() ? "" : slip + " ") +
              "if it is of no consequence, say --ignore-config-key=" +
              spec::child("", key).substr(1));
    else
      report.passedOver.emplace_back(
          child(key).substr(1) + (slip.empty() ? "" : " (" + slip + ")"),
          reporter.locate(member.keyOffset));
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
