//===- QuantizationRules.cpp - Which matrix gets which bits -----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Transforms/QuantizationRules.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Error.h"

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
    Expected<GlobPattern> glob = GlobPattern::create(pattern);
    if (!glob || pattern.empty()) {
      problem = "'" + pattern.str() + "' of --quantize is no pattern of names" +
                (glob ? "" : ": " + toString(glob.takeError()));
      return std::nullopt;
    }
    result.rules.push_back({pattern.str(), std::move(*glob), *parsed});
  }
  if (words.empty()) {
    problem = "--quantize needs a form: int8 or int4";
    return std::nullopt;
  }
  return result;
}

std::optional<QuantizationRules>
QuantizationRules::parse(StringRef text, std::string &problem) {
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  std::vector<std::string> words;
  for (StringRef part : parts)
    words.push_back(part.str());
  return parse(words, problem);
}

QuantizedForm QuantizationRules::lookup(ArrayRef<std::string> names, Use use) {
  auto matches = [](const GlobPattern &glob, StringRef name) {
    return glob.match(name) ||
           (name.consume_back(".weight") && glob.match(name));
  };
  for (Rule &rule : rules)
    if (any_of(names,
               [&](StringRef name) { return matches(rule.glob, name); })) {
      rule.used = true;
      return rule.form;
    }
  if (use == Use::Router && !others.stored)
    return {};
  constexpr QuantizedForm bytes{8, 128};
  return use == Use::Vocabulary && others.bits == 4 ? bytes : others;
}

std::vector<std::string> QuantizationRules::unused() const {
  std::vector<std::string> result;
  for (const Rule &rule : rules)
    if (!rule.used)
      result.push_back(rule.pattern);
  return result;
}

bool QuantizationRules::quantizes() const {
  return others.bits != 0 || llvm::any_of(rules, [](const Rule &rule) {
           return rule.form.bits != 0;
         });
}

std::string QuantizationRules::describe() const {
  bool four = others.bits == 4, eight = others.bits == 8;
  for (const Rule &rule : rules) {
    four |= rule.form.bits == 4;
    eight |= rule.form.bits == 8;
  }
  return four && eight ? "int4 and int8" : four ? "int4" : "int8";
}

} // namespace attune
