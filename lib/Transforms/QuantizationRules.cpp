//===- QuantizationRules.cpp - Which matrix gets which bits -----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Transforms/QuantizationRules.h"

using namespace llvm;

namespace attune {

std::optional<QuantizedForm> QuantizationRules::parseForm(StringRef text) {
  auto [type, rest] = text.split(':');
  bool grouped = text.contains(':');
  int64_t group = 0;
  if (grouped && (!rest.consume_front("g") || rest.getAsInteger(10, group) ||
                  (group != 32 && group != 64 && group != 128)))
    return std::nullopt;
  if (type == "int8")
    return QuantizedForm{8, grouped ? group : 128};
  if (type == "int4")
    return QuantizedForm{4, grouped ? group : 32};
  if (type == "none" && !grouped)
    return QuantizedForm{};
  if (type == "stored" && !grouped)
    return QuantizedForm{0, 0, /*stored=*/true};
  return std::nullopt;
}

std::optional<QuantizationRules>
QuantizationRules::parse(ArrayRef<std::string> words, std::string &problem) {
  QuantizationRules result;
  std::optional<std::string> plain;
  for (const std::string &word : words) {
    StringRef pattern, form = word;
    if (size_t at = form.rfind('='); at != StringRef::npos) {
      pattern = form.take_front(at);
      form = form.drop_front(at + 1);
    }
    std::optional<QuantizedForm> parsed = parseForm(form);
    if (!parsed) {
      problem = "'" + form.str() +
                "' is no form of --quantize; it takes int8, int4 or none, the "
                "first two also with groups, as in int4:g64 (g32, g64 or "
                "g128), or stored: as the checkpoint has it";
      return std::nullopt;
    }
    result.text.push_back(word);
    if (pattern.data() == nullptr) {
      if (plain) {
        problem = "--quantize says both '" + *plain + "' and '" + word +
                  "' of all matrices; name some by a pattern, as in '*.ffn.*=" +
                  word + "'";
        return std::nullopt;
      }
      plain = word;
      result.others = *parsed;
      continue;
    }
    if (!result.rules.add(pattern, *parsed, "--quantize", problem))
      return std::nullopt;
  }
  if (words.empty()) {
    problem = "--quantize needs a form: int8 or int4";
    return std::nullopt;
  }
  return result;
}

std::optional<QuantizationRules>
QuantizationRules::parse(StringRef text, std::string &problem) {
  return parse(splitWords(text), problem);
}

QuantizedForm QuantizationRules::lookup(ArrayRef<std::string> names, Use use) {
  if (const QuantizedForm *form = rules.lookup(names))
    return *form;
  if (use == Use::Router && !others.stored)
    return {};
  constexpr QuantizedForm bytes{8, 128};
  return use == Use::Vocabulary && others.bits == 4 ? bytes : others;
}

bool QuantizationRules::quantizes() const {
  return others.bits != 0 ||
         rules.anyOf([](const QuantizedForm &form) { return form.bits != 0; });
}

std::string QuantizationRules::describe() const {
  auto has = [&](int64_t bits) {
    return others.bits == bits || rules.anyOf([&](const QuantizedForm &form) {
      return form.bits == bits;
    });
  };
  return has(4) && has(8) ? "int4 and int8" : has(4) ? "int4" : "int8";
}

} // namespace attune
