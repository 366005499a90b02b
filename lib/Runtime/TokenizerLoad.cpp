//===- TokenizerLoad.cpp - Reading tokenizer.json -------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TokenizerData.h"
#include "attune/Runtime/Json.h"
#include "attune/Runtime/Utf8.h"

#include <algorithm>

namespace attune::runtime {

static constexpr uint32_t maxTokens = 1u << 24;

static bool bad(Error &error, const std::string &what) {
  return error.badInput("tokenizer: " + what);
}

static std::string quote(std::string_view text) {
  std::string out;
  appendJsonString(out, text.substr(0, 100));
  return out;
}

//===----------------------------------------------------------------------===//
// Hash maps
//===----------------------------------------------------------------------===//

static size_t tableSize(size_t count) {
  size_t size = 16;
  while (size < count * 2)
    size *= 2;
  return size;
}

static uint64_t hashText(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash ^ hash >> 29;
}

void TokenMap::reserve(size_t count) { slots.assign(tableSize(count), 0); }

bool TokenMap::insert(std::string_view text, uint32_t id,
                      const std::vector<std::string> &texts) {
  size_t mask = slots.size() - 1;
  for (size_t i = hashText(text) & mask;; i = (i + 1) & mask) {
    if (!slots[i]) {
      slots[i] = id + 1;
      return true;
    }
    if (texts[slots[i] - 1] == text)
      return false;
  }
}

int64_t TokenMap::find(std::string_view text,
                       const std::vector<std::string> &texts) const {
  if (slots.empty())
    return -1;
  size_t mask = slots.size() - 1;
  for (size_t i = hashText(text) & mask; slots[i]; i = (i + 1) & mask)
    if (texts[slots[i] - 1] == text)
      return slots[i] - 1;
  return -1;
}

static size_t hashPair(uint64_t key) {
  key *= 0x9E3779B97F4A7C15u;
  return static_cast<size_t>(key ^ key >> 32);
}

void MergeMap::reserve(size_t count) { slots.assign(tableSize(count), Slot()); }

bool MergeMap::insert(uint32_t left, uint32_t right, Merge merge) {
  uint64_t key = (uint64_t(left) << 32 | right) + 1;
  size_t mask = slots.size() - 1;
  for (size_t i = hashPair(key) & mask;; i = (i + 1) & mask) {
    if (slots[i].key == key)
      return false;
    if (!slots[i].key) {
      slots[i].key = key;
      slots[i].merge = merge;
      return true;
    }
  }
}

const MergeMap::Merge *MergeMap::find(uint32_t left, uint32_t right) const {
  uint64_t key = (uint64_t(left) << 32 | right) + 1;
  size_t mask = slots.size() - 1;
  for (size_t i = hashPair(key) & mask; slots[i].key; i = (i + 1) & mask)
    if (slots[i].key == key)
      return &slots[i].merge;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// The byte alphabet
//===----------------------------------------------------------------------===//

namespace {
/// Byte-level tokenizers write each byte as a visible character: itself where
/// Latin-1 prints it, else the next unused one from U+0100 on.
struct ByteAlphabet {
  int16_t byteOf[0x200];
  ByteAlphabet() {
    std::fill(std::begin(byteOf), std::end(byteOf), int16_t(-1));
    unsigned next = 0x100;
    for (unsigned b = 0; b < 256; ++b) {
      bool visible = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) ||
                     (b >= 0xAE && b <= 0xFF);
      byteOf[visible ? b : next++] = static_cast<int16_t>(b);
    }
  }
  /// False if a character stands for no byte.
  bool toBytes(std::string_view text, std::string &bytes) const {
    bytes.clear();
    while (!text.empty()) {
      uint32_t c;
      unsigned n = decodeUtf8(text, c);
      if (!n || c >= 0x200 || byteOf[c] < 0)
        return false;
      bytes += static_cast<char>(byteOf[c]);
      text.remove_prefix(n);
    }
    return true;
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// The parts of tokenizer.json
//===----------------------------------------------------------------------===//

static std::string typeOf(const JsonValue &json) {
  const JsonValue *type = json.find("type");
  return type && type->isString() ? type->string : "";
}

static bool flag(const JsonValue &json, const char *key) {
  const JsonValue *value = json.find(key);
  return value && value->isBool() && value->boolean;
}

bool Tokenizer::Data::setToken(uint32_t id, std::string text, Error &error) {
  if (id >= maxTokens)
    return bad(error, "token id " + std::to_string(id) + " is absurdly large");
  if (id >= texts.size()) {
    texts.resize(id + 1);
    specialFlags.resize(id + 1);
  }
  texts[id] = std::move(text);
  return true;
}

bool Tokenizer::Data::loadModel(const JsonValue &model, Error &error) {
  std::string type = typeOf(model);
  if (!type.empty() && type != "BPE")
    return bad(error, "model type '" + type +
                          "' is not supported; only byte-level BPE is");
  for (const char *key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const JsonValue *value = model.find(key);
    if (value && value->isString() && !value->string.empty())
      return bad(error, std::string("'") + key + "' is not supported");
  }
  if (flag(model, "byte_fallback"))
    return bad(error, "'byte_fallback' (SentencePiece) is not supported; only "
                      "byte-level BPE is");
  const JsonValue *dropout = model.find("dropout");
  if (dropout && dropout->isNumber() && dropout->real != 0)
    return bad(error, "'dropout' is not supported");
  wholeWords = flag(model, "ignore_merges");

  const JsonValue *vocab = model.find("vocab");
  if (!vocab || !vocab->isObject() || vocab->keys.empty())
    return bad(error, "no 'model.vocab' object");
  ByteAlphabet alphabet;
  std::vector<uint8_t> taken;
  std::string bytes;
  for (size_t i = 0; i < vocab->keys.size(); ++i) {
    const JsonValue &id = vocab->items[i];
    if (!id.isInt() || id.integer < 0 || id.integer >= maxTokens)
      return bad(error, "the id of token " + quote(vocab->keys[i]) +
                            " is not a natural number of reasonable size");
    auto number = static_cast<uint32_t>(id.integer);
    if (number >= taken.size())
      taken.resize(number + 1);
    if (taken[number])
      return bad(error, "two tokens have id " + std::to_string(number));
    taken[number] = 1;
    // A token that is no byte string can still be named by its id.
    if (!alphabet.toBytes(vocab->keys[i], bytes))
      bytes = vocab->keys[i];
    if (!setToken(number, bytes, error))
      return false;
  }
  vocabulary.reserve(vocab->keys.size());
  for (uint32_t id = 0; id < texts.size(); ++id)
    if (taken[id])
      vocabulary.insert(texts[id], id, texts);
  for (unsigned b = 0; b < 256; ++b) {
    char byte = static_cast<char>(b);
    int64_t id = vocabulary.find({&byte, 1}, texts);
    byteIds[b] = id < 0 ? unknown : static_cast<uint32_t>(id);
  }
  const JsonValue *unknownToken = model.find("unk_token");
  if (unknownToken && unknownToken->isString()) {
    const JsonValue *id = vocab->find(unknownToken->string);
    if (id && id->isInt())
      unknownId = static_cast<uint32_t>(id->integer);
  }
  const JsonValue *list = model.find("merges");
  if (!list || !list->isArray())
    return bad(error, "no 'model.merges' array");
  return loadMerges(*list, error);
}

bool Tokenizer::Data::loadMerges(const JsonValue &list, Error &error) {
  ByteAlphabet alphabet;
  merges.reserve(list.items.size());
  std::string left, right;
  for (size_t rank = 0; rank < list.items.size(); ++rank) {
    const JsonValue &item = list.items[rank];
    std::string where = "merge " + std::to_string(rank);
    std::string_view a, b;
    if (item.isString()) {
      size_t space = item.string.find(' ');
      if (space == std::string::npos ||
          item.string.find(' ', space + 1) != std::string::npos)
        return bad(error, where + " " + quote(item.string) +
                              " is not two tokens with a space between");
      a = std::string_view(item.string).substr(0, space);
      b = std::string_view(item.string).substr(space + 1);
    } else if (item.isArray() && item.items.size() == 2 &&
               item.items[0].isString() && item.items[1].isString()) {
      a = item.items[0].string;
      b = item.items[1].string;
    } else {
      return bad(error, where + " is neither a string nor a pair of strings");
    }
    if (a.empty() || b.empty() || !alphabet.toBytes(a, left) ||
        !alphabet.toBytes(b, right))
      return bad(error, where + ": " + quote(a) + " " + quote(b) +
                            " are not byte-level tokens");
    int64_t leftId = vocabulary.find(left, texts),
            rightId = vocabulary.find(right, texts),
            result = vocabulary.find(left + right, texts);
    for (auto [id, text] :
         {std::pair(leftId, &left), std::pair(rightId, &right)})
      if (id < 0)
        return bad(error, where + " uses " + quote(*text) +
                              ", which is not in the vocabulary");
    if (result < 0)
      return bad(error, where + " makes " + quote(left + right) +
                            ", which is not in the vocabulary");
    // Of two equal merges the first counts.
    merges.insert(static_cast<uint32_t>(leftId), static_cast<uint32_t>(rightId),
                  {static_cast<uint32_t>(rank), static_cast<uint32_t>(result)});
  }
  return true;
}

bool Tokenizer::Data::loadAdded(const JsonValue &list, Error &error) {
  if (!list.isArray())
    return bad(error, "'added_tokens' is not an array");
  for (const JsonValue &item : list.items) {
    const JsonValue *content = item.find("content"), *id = item.find("id");
    if (!content || !content->isString() || content->string.empty() || !id ||
        !id->isInt() || id->integer < 0 || id->integer >= maxTokens)
      return bad(error, "an added token without 'content' and 'id'");
    AddedToken token;
    token.text = content->string;
    token.id = static_cast<uint32_t>(id->integer);
    token.special = flag(item, "special");
    token.stripLeft = flag(item, "lstrip");
    token.stripRight = flag(item, "rstrip");
    token.singleWord = flag(item, "single_word");
    if (!setToken(token.id, token.text, error))
      return false;
    specialFlags[token.id] = token.special;
    startsAdded[static_cast<unsigned char>(token.text[0])] = true;
    added.push_back(std::move(token));
  }
  std::sort(
      added.begin(), added.end(), [](const AddedToken &a, const AddedToken &b) {
        return a.text.size() != b.text.size() ? a.text.size() > b.text.size()
                                              : a.text < b.text;
      });
  return true;
}

bool Tokenizer::Data::loadNormalizer(const JsonValue &normalizer,
                                     Error &error) {
  std::string type = typeOf(normalizer);
  if (type == "Sequence") {
    const JsonValue *list = normalizer.find("normalizers");
    if (list && list->isArray())
      for (const JsonValue &item : list->items)
        if (!loadNormalizer(item, error))
          return false;
    return true;
  }
  if (type == "NFC") {
    composed = true;
    return true;
  }
  return bad(error, "normalizer '" + type + "' is not supported");
}

bool Tokenizer::Data::loadDecoder(const JsonValue &decoder, Error &error) {
  std::string type = typeOf(decoder);
  if (type == "ByteLevel")
    return true;
  if (type == "Sequence") {
    const JsonValue *list = decoder.find("decoders");
    if (list && list->isArray())
      for (const JsonValue &item : list->items)
        if (!loadDecoder(item, error))
          return false;
    return true;
  }
  return bad(error, "decoder '" + type + "' is not supported; ByteLevel is");
}

bool Tokenizer::Data::loadPostProcessor(const JsonValue &processor,
                                        Error &error) {
  std::string type = typeOf(processor);
  if (type == "ByteLevel")
    return true;
  if (type == "Sequence") {
    const JsonValue *list = processor.find("processors");
    if (list && list->isArray())
      for (const JsonValue &item : list->items)
        if (!loadPostProcessor(item, error))
          return false;
    return true;
  }
  if (type != "TemplateProcessing")
    return bad(error, "post-processor '" + type + "' is not supported");
  const JsonValue *single = processor.find("single");
  const JsonValue *specials = processor.find("special_tokens");
  if (!single || !single->isArray() || !specials)
    return bad(error, "post-processor 'TemplateProcessing' without 'single' "
                      "and 'special_tokens'");
  bool afterText = false;
  for (const JsonValue &item : single->items) {
    if (item.find("Sequence")) {
      afterText = true;
      continue;
    }
    const JsonValue *special = item.find("SpecialToken");
    const JsonValue *name = special ? special->find("id") : nullptr;
    const JsonValue *token =
        name && name->isString() ? specials->find(name->string) : nullptr;
    const JsonValue *ids = token ? token->find("ids") : nullptr;
    if (!ids || !ids->isArray())
      return bad(error, "a part of 'post_processor.single' has no ids");
    for (const JsonValue &id : ids->items) {
      if (!id.isInt())
        return bad(error, "a part of 'post_processor.single' has no ids");
      (afterText ? suffix : prefix).push_back(id.integer);
    }
  }
  return true;
}

bool Tokenizer::Data::load(std::string_view json, Error &error) {
  JsonValue root;
  std::string reason;
  if (!parseJson(json, root, reason))
    return bad(error, "tokenizer.json is not valid JSON: " + reason);
  auto part = [&](const char *key) -> const JsonValue * {
    const JsonValue *value = root.find(key);
    return value && !value->isNull() ? value : nullptr;
  };
  const JsonValue *model = part("model");
  if (!model || !model->isObject())
    return bad(error, "tokenizer.json has no 'model' object");
  if (!loadModel(*model, error))
    return false;
  if (const JsonValue *list = part("added_tokens"))
    if (!loadAdded(*list, error))
      return false;
  if (const JsonValue *normalizer = part("normalizer"))
    if (!loadNormalizer(*normalizer, error))
      return false;
  if (!words.load(part("pre_tokenizer"), error))
    return false;
  if (const JsonValue *decoder = part("decoder"))
    if (!loadDecoder(*decoder, error))
      return false;
  if (const JsonValue *processor = part("post_processor"))
    return loadPostProcessor(*processor, error);
  return true;
}

} // namespace attune::runtime
