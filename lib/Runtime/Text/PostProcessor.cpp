//===- PostProcessor.cpp - Tokens around a text ---------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PostProcessor.h"
#include "Normalizer.h"
#include "Sequence.h"

#include <algorithm>

namespace attune::runtime {

static bool bad(Error &error, const std::string &what) {
  return error.badInput("post-processor " + what);
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

bool PostProcessor::load(const JsonValue &json, Error &error) {
  return loadStep(json, 0, error);
}

static int64_t typeIdOf(const JsonValue &json) {
  const JsonValue *type = json.find("type_id");
  return type && type->isInt() ? type->integer : 0;
}

bool PostProcessor::loadTemplate(const JsonValue &parts,
                                 const JsonValue &specials, const char *name,
                                 std::vector<Part> &out, Error &error) {
  auto noIds = [&] {
    return bad(error, std::string("'TemplateProcessing': a part of '") + name +
                          "' has no ids");
  };
  // Published ones name a text once or twice, and a handful of tokens.
  constexpr size_t mostTexts = 8, mostIds = 4096;
  size_t numTexts = 0, numIds = 0;
  auto tooMany = [&] {
    return bad(error, std::string("'TemplateProcessing': '") + name +
                          "' has more than 8 texts or 4096 tokens");
  };
  for (const JsonValue &item : parts.items) {
    Part part = {-1, 0, {}};
    if (const JsonValue *sequence = item.find("Sequence")) {
      if (++numTexts > mostTexts)
        return tooMany();
      part.sequence = textOf(*sequence, "id") == "B" ? 1 : 0;
      part.typeId = typeIdOf(*sequence);
      out.push_back(std::move(part));
      continue;
    }
    const JsonValue *special = item.find("SpecialToken");
    const JsonValue *token =
        special ? specials.find(textOf(*special, "id")) : nullptr;
    const JsonValue *ids = token ? token->find("ids") : nullptr;
    if (!ids || !ids->isArray())
      return noIds();
    part.typeId = typeIdOf(*special);
    for (const JsonValue &id : ids->items) {
      if (!id.isInt() || id.integer < 0)
        return noIds();
      if (++numIds > mostIds)
        return tooMany();
      part.ids.push_back(id.integer);
    }
    out.push_back(std::move(part));
  }
  return true;
}

/// BertProcessing and RobertaProcessing: ["text", id] for "sep" and "cls".
bool PostProcessor::loadEnds(const JsonValue &json, bool roberta,
                             Error &error) {
  int64_t ids[2];
  const char *const names[] = {"cls", "sep"};
  for (int i = 0; i < 2; ++i) {
    const JsonValue *pairOf = json.find(names[i]);
    if (!pairOf || !pairOf->isArray() || pairOf->items.size() != 2 ||
        !pairOf->items[1].isInt())
      return bad(error,
                 std::string("without '") + names[i] + "': [\"token\", id]");
    ids[i] = pairOf->items[1].integer;
  }
  int64_t second = roberta ? 0 : 1;
  std::vector<int64_t> sep = {ids[1]};
  single = {{-1, 0, {ids[0]}}, {0, 0, {}}, {-1, 0, sep}};
  pair = single;
  if (roberta)
    pair.push_back({-1, 0, sep});
  pair.push_back({1, second, {}});
  pair.push_back({-1, second, sep});
  typesWithoutSpecial = roberta;
  return true;
}

bool PostProcessor::loadStep(const JsonValue &json, unsigned depth,
                             Error &error) {
  std::string type = textOf(json, "type");
  if (type == "Sequence") {
    const std::vector<JsonValue> *inner =
        stepsOfSequence(json, "post-processor", "processors", depth, error);
    return inner && std::all_of(inner->begin(), inner->end(),
                                [&](const JsonValue &step) {
                                  return loadStep(step, depth + 1, error);
                                });
  }
  if (type == "ByteLevel")
    return true; // it moves offsets, not ids
  if (hasTemplate)
    return error.notSupported("post-processor 'Sequence' with two that put "
                              "tokens around a text is not supported");
  hasTemplate = true;
  if (type == "BertProcessing" || type == "RobertaProcessing")
    return loadEnds(json, type == "RobertaProcessing", error);
  if (type != "TemplateProcessing")
    return error.notSupported("post-processor '" + type + "' is not supported");
  const JsonValue *one = json.find("single"), *two = json.find("pair");
  const JsonValue *specials = json.find("special_tokens");
  if (!one || !one->isArray() || !specials || !specials->isObject())
    return bad(error, "'TemplateProcessing' without 'single' and "
                      "'special_tokens'");
  if (!loadTemplate(*one, *specials, "single", single, error))
    return false;
  if (two && two->isArray())
    return loadTemplate(*two, *specials, "pair", pair, error);
  pair = single;
  pair.push_back({1, 1, {}});
  return true;
}

static bool sizeOf(const JsonValue &json, const char *key, size_t &value) {
  const JsonValue *number = json.find(key);
  if (!number || number->isNull())
    return true;
  if (!number->isInt() || number->integer < 0 ||
      number->integer > (int64_t(1) << 24))
    return false;
  value = static_cast<size_t>(number->integer);
  return true;
}

bool PostProcessor::loadTruncation(const JsonValue &json, Error &error) {
  truncates = true;
  truncatesLeft = textOf(json, "direction") == "Left";
  std::string name = textOf(json, "strategy");
  strategy = name == "OnlyFirst"    ? Strategy::OnlyFirst
             : name == "OnlySecond" ? Strategy::OnlySecond
                                    : Strategy::LongestFirst;
  return sizeOf(json, "max_length", maxLength) ||
         error.badInput("'truncation.max_length' is not a number of tokens");
}

bool PostProcessor::loadPadding(const JsonValue &json, Error &error) {
  pads = true;
  padsLeft = textOf(json, "direction") == "Left";
  const JsonValue *how = json.find("strategy");
  size_t id = 0, type = 0;
  if ((how && how->isObject() && !sizeOf(*how, "Fixed", padLength)) ||
      !sizeOf(json, "pad_to_multiple_of", padMultiple) ||
      !sizeOf(json, "pad_id", id) || !sizeOf(json, "pad_type_id", type))
    return error.badInput(
        "'padding' has a value that is not a number of tokens");
  padId = static_cast<int64_t>(id);
  padType = static_cast<int64_t>(type);
  return true;
}

//===----------------------------------------------------------------------===//
// Applying
//===----------------------------------------------------------------------===//

static void keepFew(std::vector<int64_t> &ids, size_t count, bool dropLeft) {
  if (count >= ids.size())
    return;
  if (dropLeft)
    ids.erase(ids.begin(), ids.end() - static_cast<ptrdiff_t>(count));
  else
    ids.resize(count);
}

bool PostProcessor::truncate(std::vector<int64_t> &first,
                             std::vector<int64_t> *second, size_t added,
                             Error &error) const {
  size_t most = maxLength > added ? maxLength - added : 0;
  size_t total = first.size() + (second ? second->size() : 0);
  if (total <= most)
    return true;
  if (most == 0) {
    first.clear();
    if (second)
      second->clear();
    return true;
  }
  size_t remove = total - most;
  if (strategy == Strategy::LongestFirst && second) {
    size_t least = std::min(first.size(), second->size()), other = least;
    if (least <= most)
      other = std::max(least, most - least);
    if (least + other > most) {
      least = most / 2;
      other = least + most % 2;
    }
    bool swapped = first.size() > second->size();
    keepFew(first, swapped ? other : least, truncatesLeft);
    keepFew(*second, swapped ? least : other, truncatesLeft);
    return true;
  }
  if (strategy == Strategy::OnlySecond && !second)
    return error.badInput("the tokenizer truncates the second text, and there "
                          "is none");
  std::vector<int64_t> &target =
      strategy == Strategy::OnlySecond ? *second : first;
  if (strategy != Strategy::LongestFirst && target.size() <= remove)
    return error.badInput("the text that the tokenizer truncates is too short "
                          "to make both fit " +
                          std::to_string(maxLength) + " tokens");
  keepFew(target, target.size() - remove, truncatesLeft);
  return true;
}

void PostProcessor::pad(Encoding &encoding) const {
  size_t length = std::max(encoding.ids.size(), padLength);
  if (padLength)
    length = padLength;
  if (padMultiple && length % padMultiple)
    length += padMultiple - length % padMultiple;
  if (length <= encoding.ids.size())
    return;
  size_t count = length - encoding.ids.size();
  auto insert = [&](std::vector<int64_t> &values, int64_t value) {
    values.insert(padsLeft ? values.begin() : values.end(), count, value);
  };
  insert(encoding.ids, padId);
  insert(encoding.typeIds, padType);
  insert(encoding.mask, 0);
}

bool PostProcessor::apply(std::vector<int64_t> first,
                          const std::vector<int64_t> *second,
                          const EncodeOptions &options, Encoding &encoding,
                          Error &error) const {
  std::vector<int64_t> other;
  if (second)
    other = *second;
  bool special = options.addSpecial;
  const std::vector<Part> plain = {{0, 0, {}}, {1, 1, {}}};
  std::vector<Part> parts = plain;
  if (hasTemplate && (special || typesWithoutSpecial))
    parts = second ? pair : single;
  if (options.fit && truncates) {
    size_t added = 0;
    for (const Part &part : parts)
      added += special ? part.ids.size() : 0;
    if (!truncate(first, second ? &other : nullptr, added, error))
      return false;
  }
  encoding = Encoding();
  for (const Part &part : parts) {
    if (part.sequence < 0 && !special)
      continue;
    if (part.sequence == 1 && !second)
      continue;
    const std::vector<int64_t> &ids = part.sequence < 0    ? part.ids
                                      : part.sequence == 0 ? first
                                                           : other;
    encoding.ids.insert(encoding.ids.end(), ids.begin(), ids.end());
    encoding.typeIds.insert(encoding.typeIds.end(), ids.size(), part.typeId);
  }
  encoding.mask.assign(encoding.ids.size(), 1);
  if (options.fit && pads)
    pad(encoding);
  return true;
}

} // namespace attune::runtime
