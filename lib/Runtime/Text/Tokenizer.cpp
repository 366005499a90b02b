//===- Tokenizer.cpp - Text to ids and back -------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/Tokenizer.h"
#include "TokenizerData.h"
#include "attune/Runtime/Utf8.h"

#include <algorithm>

namespace attune::runtime {

//===----------------------------------------------------------------------===//
// Encoding
//===----------------------------------------------------------------------===//

bool Tokenizer::Data::encodeWord(std::string_view word, WordCache *cache,
                                 std::vector<int64_t> &ids,
                                 Error &error) const {
  if (!cache || word.size() > 64)
    return model->encode(word, ids, error);
  TextHash hash;
  hash.add(word);
  uint64_t value = hash.finish();
  if (const std::vector<int64_t> *known = cache->find(word, value)) {
    ids.insert(ids.end(), known->begin(), known->end());
    return true;
  }
  size_t before = ids.size();
  if (!model->encode(word, ids, error))
    return false;
  cache->add(word, value, ids.data() + before, ids.data() + ids.size());
  return true;
}

/// A stretch between added tokens.
bool Tokenizer::Data::encodeSection(std::string_view text, size_t head,
                                    WordCache *cache, std::vector<int64_t> &ids,
                                    Error &error) const {
  std::string section(text);
  std::vector<PreTokenizer::Piece> pieces;
  if (!preTokenizer.split(section, head, pieces, error))
    return false;
  for (const PreTokenizer::Piece &piece : pieces)
    if (!encodeWord(std::string_view(section).substr(piece.begin,
                                                     piece.end - piece.begin),
                    cache, ids, error))
      return false;
  return true;
}

bool Tokenizer::Data::encodeText(std::string_view text, bool matchSpecial,
                                 std::vector<int64_t> &ids,
                                 Error &error) const {
  // A cache pays where words can come again.
  WordCache words;
  WordCache *cache = text.size() > 2048 ? &words : nullptr;
  std::vector<AddedTokenMatcher::Span> outer, inner;
  raw.split(text, matchSpecial, outer);
  for (const AddedTokenMatcher::Span &span : outer) {
    if (span.token) {
      ids.push_back(span.token->id);
      continue;
    }
    std::string section(text.substr(span.begin, span.end - span.begin));
    size_t head;
    if (!normalizer.apply(section, head, error))
      return false;
    if (span.begin != 0)
      head = 0;
    normalized.split(section, matchSpecial, inner);
    for (const AddedTokenMatcher::Span &part : inner) {
      if (part.token) {
        ids.push_back(part.token->id);
        continue;
      }
      if (!encodeSection(std::string_view(section).substr(
                             part.begin, part.end - part.begin),
                         head > part.begin ? head - part.begin : 0, cache, ids,
                         error))
        return false;
    }
  }
  return true;
}

bool Tokenizer::encode(std::string_view text, const std::string_view *second,
                       const EncodeOptions &options, Encoding &encoding,
                       Error &error) const {
  std::vector<int64_t> first, other;
  if (!data->encodeText(text, options.matchSpecial, first, error) ||
      (second &&
       !data->encodeText(*second, options.matchSpecial, other, error)))
    return false;
  return data->postProcessor.apply(std::move(first), second ? &other : nullptr,
                                   options, encoding, error);
}

bool Tokenizer::encode(std::string_view text, std::vector<int64_t> &ids,
                       Error &error, bool addSpecial) const {
  EncodeOptions options;
  options.addSpecial = addSpecial;
  Encoding encoding;
  if (!encode(text, nullptr, options, encoding, error))
    return false;
  ids.insert(ids.end(), encoding.ids.begin(), encoding.ids.end());
  return true;
}

//===----------------------------------------------------------------------===//
// Tokens
//===----------------------------------------------------------------------===//

int64_t Tokenizer::tokenToId(std::string_view token) const {
  for (const AddedToken &added : data->added)
    if (added.text == token)
      return added.id;
  uint32_t id = data->model->vocabulary.find(token);
  return id == Vocabulary::none ? -1 : static_cast<int64_t>(id);
}

std::string_view Tokenizer::tokenOf(int64_t id) const {
  if (const AddedToken *token = data->addedToken(id))
    return token->text;
  return id >= 0 && id < Vocabulary::maxTokens
             ? data->model->vocabulary.text(static_cast<uint32_t>(id))
             : std::string_view();
}

bool Tokenizer::isSpecial(int64_t id) const {
  const AddedToken *token = data->addedToken(id);
  return token && token->special;
}

int64_t Tokenizer::size() const {
  return std::max<int64_t>(data->model->vocabulary.size(),
                           static_cast<int64_t>(data->addedOf.size()));
}

static std::string grouped(uint32_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3; at -= 3)
    text.insert(at - 3, ",");
  return text;
}

std::string Tokenizer::describe() const {
  std::string out;
  switch (data->model->kind) {
  case TokenModel::Kind::BPE:
    out = data->byteLevel             ? "byte-level BPE"
          : data->model->byteFallback ? "BPE with bytes for unknown characters"
                                      : "BPE";
    break;
  case TokenModel::Kind::WordPiece:
    out = "WordPiece";
    break;
  case TokenModel::Kind::Unigram:
    out = data->model->byteFallback
              ? "Unigram with bytes for unknown characters"
              : "Unigram";
    break;
  case TokenModel::Kind::WordLevel:
    out = "whole words";
    break;
  }
  uint32_t count = data->model->vocabulary.count();
  for (const AddedToken &token : data->added)
    count += !data->model->vocabulary.has(token.id);
  return out + ", " + grouped(count) + " tokens";
}

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

/// <0xAB> as the byte it stands for.
static bool byteToken(std::string_view token, std::string &byte) {
  auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 55 : -1;
  };
  if (token.size() != 6 || token.substr(0, 3) != "<0x" || token[5] != '>' ||
      digit(token[3]) < 0 || digit(token[4]) < 0)
    return false;
  byte.assign(1, static_cast<char>(digit(token[3]) << 4 | digit(token[4])));
  return true;
}

std::string Tokenizer::bytesOf(int64_t id) const {
  std::string text(tokenOf(id));
  if (text.empty() || (data->addedToken(id) && !data->decoder.isByteLevel()))
    return text;
  std::string byte;
  if (data->decoder.hasBytes() && byteToken(text, byte))
    return byte;
  if (data->decoder.isByteLevel())
    return data->decoder.apply({text});
  // The text that a second token adds to a first: some decoders treat the
  // first, or the last, otherwise.
  std::string once = data->decoder.apply({text});
  std::string twice = data->decoder.apply({text, text});
  return twice.size() > once.size() ? twice.substr(once.size()) : once;
}

std::string Tokenizer::decode(const std::vector<int64_t> &ids,
                              bool skipSpecial) const {
  std::vector<std::string> texts;
  texts.reserve(ids.size());
  for (int64_t id : ids) {
    if (skipSpecial && isSpecial(id))
      continue;
    const AddedToken *token = data->addedToken(id);
    std::string_view text = tokenOf(id);
    if (token || !text.empty())
      texts.emplace_back(text);
  }
  return data->decoder.apply(std::move(texts));
}

std::string StreamDecoder::push(int64_t id) {
  if (skipSpecial && tokenizer.isSpecial(id) &&
      std::find(shown.begin(), shown.end(), id) == shown.end())
    return "";
  if (tokenizer.data->decoder.isByteLevel()) {
    held += tokenizer.bytesOf(id);
    size_t complete = completeUtf8Prefix(held);
    std::string out = sanitizeUtf8(std::string_view(held).substr(0, complete));
    held.erase(0, complete);
    return out;
  }
  if (tokenizer.tokenOf(id).empty())
    return "";
  window.push_back(id);
  return decodeWindow(false);
}

/// Decodes the last ids anew each time, since what an id adds may depend on
/// those before it; what was said before is taken off.
std::string StreamDecoder::decodeWindow(bool last) {
  constexpr size_t mostHeld = 64;
  // What is skipped is not in the window.
  std::string text = tokenizer.decode(window, /*skipSpecial=*/false);
  static constexpr std::string_view replacement = "\xEF\xBF\xBD";
  bool open = text.size() >= replacement.size() &&
              std::string_view(text).substr(text.size() - replacement.size()) ==
                  replacement;
  if (open && !last && window.size() < numSaid + mostHeld)
    return "";
  std::string out =
      text.size() > said.size()
          ? sanitizeUtf8(std::string_view(text).substr(said.size()))
          : "";
  // The ids of the last piece are what the next one is decoded behind.
  window.erase(window.begin(),
               window.begin() + static_cast<ptrdiff_t>(numSaid));
  said = tokenizer.decode(window, /*skipSpecial=*/false);
  numSaid = window.size();
  return out;
}

std::string StreamDecoder::finish() {
  std::string out = sanitizeUtf8(held);
  if (window.size() > numSaid)
    out += decodeWindow(true);
  held.clear();
  window.clear();
  numSaid = 0;
  said.clear();
  return out;
}

} // namespace attune::runtime
