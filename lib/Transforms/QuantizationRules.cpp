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
  SmallVector<StringRef> words;
  text.split(words, ':');
  StringRef type = words.front();
  ArrayRef<StringRef> options = ArrayRef(words).drop_front();
  if (type == "stored" && options.empty()) {
    QuantizedForm form;
    form.stored = true;
    return form;
  }
  if (type == "none" && options.empty())
    return QuantizedForm{};
  if (type == "mxfp4" && options.empty())
    return StoredForm::floats();
  if (type != "int8" && type != "int4" && type != "fp8")
    return std::nullopt;
  QuantizedForm form = type == "fp8"    ? StoredForm::floatsOfBytes(128)
                       : type == "int8" ? StoredForm::plain(8, 128)
                                        : StoredForm::plain(4, 32);
  bool grouped = false, typed = false;
  for (StringRef option : options) {
    if (option == "ordered" && !form.ordered && !form.byteFloats) {
      form.ordered = true;
      continue;
    }
    if (option == "asym" && !form.zeros && !form.byteFloats) {
      form.zeros = true;
      continue;
    }
    if (option == "i8" && !typed && !form.byteFloats) {
      form.scales = ScaleType::Byte;
      typed = true;
      continue;
    }
    if (option == "f32" && !typed && form.scales == ScaleType::Half) {
      form.scales = ScaleType::Single;
      typed = true;
      continue;
    }
    int64_t group = 0;
    if (grouped || !option.consume_front("g") ||
        option.getAsInteger(10, group) ||
        !(group == 32 || group == 64 || group == 128 ||
          (group == 16 && form.bits == 8 && !form.byteFloats)))
      return std::nullopt;
    grouped = true;
    form.group = group;
  }
  return form;
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
    // An order and scales in two levels belong to a checkpoint.
    if (!parsed || parsed->ordered || parsed->hasByteScales()) {
      problem = "'" + form.str() +
                "' is no form of --quantize; it takes int8, int4, fp8, mxfp4 "
                "or none, the first three also with groups, as in int4:g64 "
                "(g32, g64 or g128), the first two with zero points, as in "
                "int4:g64:asym, or stored: as the checkpoint has it";
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
    problem = "--quantize needs a form: int8, int4, fp8 or mxfp4";
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
  return use == Use::Vocabulary && others.bits == 4
             ? QuantizedForm(StoredForm::plain(8, 128))
             : others;
}

bool QuantizationRules::quantizes() const {
  return others.bits != 0 ||
         rules.anyOf([](const QuantizedForm &form) { return form.bits != 0; });
}

std::string QuantizationRules::describe() const {
  using Test = bool (*)(const QuantizedForm &);
  const std::pair<StringRef, Test> kinds[] = {
      {"int4",
       [](const QuantizedForm &f) { return f.bits == 4 && !f.areFloats(); }},
      {"mxfp4",
       [](const QuantizedForm &f) { return f.bits == 4 && f.areFloats(); }},
      {"fp8", [](const QuantizedForm &f) { return f.byteFloats; }},
      {"int8",
       [](const QuantizedForm &f) { return f.bits == 8 && !f.byteFloats; }}};
  std::string result;
  for (auto [name, is] : kinds)
    if (is(others) || rules.anyOf(is))
      result += (result.empty() ? "" : " and ") + name.str();
  return result;
}

} // namespace attune
