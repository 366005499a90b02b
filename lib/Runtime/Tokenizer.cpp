//===- Tokenizer.cpp - Byte-level BPE from tokenizer.json -----------------===//
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

Tokenizer::Tokenizer() : data(new Data()) {}
Tokenizer::~Tokenizer() = default;

std::unique_ptr<Tokenizer> Tokenizer::create(std::string_view json,
                                             Error &error) {
  std::unique_ptr<Tokenizer> tokenizer(new Tokenizer());
  if (!tokenizer->data->load(json, error))
    return nullptr;
  return tokenizer;
}

//===----------------------------------------------------------------------===//
// Merging
//===----------------------------------------------------------------------===//

namespace {
/// The symbols of a word as a list; a merge swallows the right neighbour.
struct Symbol {
  uint32_t id;
  uint32_t previous, next; ///< indices, or none
  bool gone;
};
/// A pair that may merge. It is out of date once either side has changed.
struct Candidate {
  uint32_t rank, left, leftId, rightId, result;
  /// Lowest rank first, leftmost among equals; std::push_heap wants the
  /// opposite.
  bool operator<(const Candidate &other) const {
    return rank != other.rank ? rank > other.rank : left > other.left;
  }
};
} // namespace

/// Takes n log n steps for n bytes, however they merge.
bool Tokenizer::Data::encodeWord(std::string_view word,
                                 std::vector<int64_t> &ids,
                                 Error &error) const {
  constexpr uint32_t none = UINT32_MAX;
  if (wholeWords) {
    int64_t id = vocabulary.find(word, texts);
    if (id >= 0) {
      ids.push_back(id);
      return true;
    }
  }
  if (word.size() >= none)
    return error.badInput("a word of more than four billion bytes");
  std::vector<Symbol> symbols(word.size());
  for (uint32_t i = 0; i < symbols.size(); ++i) {
    unsigned char byte = static_cast<unsigned char>(word[i]);
    uint32_t id = byteIds[byte] != unknown ? byteIds[byte] : unknownId;
    if (id == unknown)
      return error.badInput("the tokenizer has no token for byte " +
                            std::to_string(byte));
    symbols[i] = {id, i ? i - 1 : none, i + 1 < symbols.size() ? i + 1 : none,
                  false};
  }
  std::vector<Candidate> heap;
  auto consider = [&](uint32_t left) {
    if (left == none || symbols[left].next == none)
      return;
    uint32_t a = symbols[left].id, b = symbols[symbols[left].next].id;
    if (const MergeMap::Merge *merge = merges.find(a, b)) {
      heap.push_back({merge->rank, left, a, b, merge->result});
      std::push_heap(heap.begin(), heap.end());
    }
  };
  for (uint32_t i = 0; i + 1 < symbols.size(); ++i)
    consider(i);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end());
    Candidate best = heap.back();
    heap.pop_back();
    Symbol &left = symbols[best.left];
    if (left.gone || left.id != best.leftId || left.next == none ||
        symbols[left.next].id != best.rightId)
      continue;
    Symbol &right = symbols[left.next];
    left.id = best.result;
    left.next = right.next;
    right.gone = true;
    if (left.next != none)
      symbols[left.next].previous = best.left;
    consider(left.previous);
    consider(best.left);
  }
  for (uint32_t i = 0; i != none && i < symbols.size(); i = symbols[i].next)
    ids.push_back(symbols[i].id);
  return true;
}

//===----------------------------------------------------------------------===//
// Encoding
//===----------------------------------------------------------------------===//

/// A stretch of text between added tokens.
bool Tokenizer::Data::encodeText(std::string_view text,
                                 std::vector<int64_t> &ids,
                                 Error &error) const {
  if (text.empty())
    return true;
  std::string prefixed;
  if (words.addsPrefixSpace() && text[0] != ' ') {
    prefixed = " ";
    prefixed.append(text.data(), text.size());
    text = prefixed;
  }
  if (composed) {
    // Characters below U+0300 neither combine nor are combined.
    for (size_t i = 0; i < text.size();) {
      uint32_t c = 0;
      unsigned n = decodeUtf8(text.substr(i), c);
      if (n && c >= 0x300)
        return error.badInput("the text holds a character beyond U+02FF, and "
                              "this tokenizer normalizes such text (NFC), "
                              "which is not supported");
      i += n ? n : 1;
    }
  }
  std::vector<size_t> ends;
  words.split(text, ends);
  size_t begin = 0;
  for (size_t end : ends) {
    if (!encodeWord(text.substr(begin, end - begin), ids, error))
      return false;
    begin = end;
  }
  return true;
}

const AddedToken *Tokenizer::Data::addedAt(std::string_view text,
                                           size_t at) const {
  auto wordCharacter = [&](uint32_t c) {
    CharacterClasses::Class kind = classes.classify(c);
    return kind == CharacterClasses::Letter ||
           kind == CharacterClasses::Number || c == '_';
  };
  for (const AddedToken &token : added) {
    if (text.compare(at, token.text.size(), token.text) != 0)
      continue;
    if (!token.singleWord)
      return &token;
    uint32_t before = 0, after = 0;
    size_t start = at;
    while (start > 0 &&
           (static_cast<unsigned char>(text[--start]) & 0xC0) == 0x80)
      ;
    bool joined = (at > 0 && decodeUtf8(text.substr(start), before) &&
                   wordCharacter(before)) ||
                  (decodeUtf8(text.substr(at + token.text.size()), after) &&
                   wordCharacter(after));
    if (!joined)
      return &token;
  }
  return nullptr;
}

bool Tokenizer::encode(std::string_view text, std::vector<int64_t> &ids,
                       Error &error, bool addSpecial) const {
  if (addSpecial)
    ids.insert(ids.end(), data->prefix.begin(), data->prefix.end());
  size_t begin = 0, at = 0;
  while (at < text.size()) {
    const AddedToken *token = nullptr;
    if (data->startsAdded[static_cast<unsigned char>(text[at])])
      token = data->addedAt(text, at);
    if (!token) {
      ++at;
      continue;
    }
    size_t end = at, next = at + token->text.size();
    auto spaceBefore = [&](size_t from) -> unsigned {
      size_t start = from - 1;
      while (start > begin &&
             (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80)
        --start;
      uint32_t c;
      unsigned n = decodeUtf8(text.substr(start, from - start), c);
      return n && data->classes.classify(c) == CharacterClasses::Space ? n : 0;
    };
    if (token->stripLeft)
      while (end > begin) {
        unsigned n = spaceBefore(end);
        if (!n)
          break;
        end -= n;
      }
    if (token->stripRight)
      for (uint32_t c; next < text.size();) {
        unsigned n = decodeUtf8(text.substr(next), c);
        if (!n || data->classes.classify(c) != CharacterClasses::Space)
          break;
        next += n;
      }
    if (!data->encodeText(text.substr(begin, end - begin), ids, error))
      return false;
    ids.push_back(token->id);
    begin = at = next;
  }
  if (!data->encodeText(text.substr(begin), ids, error))
    return false;
  if (addSpecial)
    ids.insert(ids.end(), data->suffix.begin(), data->suffix.end());
  return true;
}

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

std::string_view Tokenizer::bytesOf(int64_t id) const {
  if (id < 0 || static_cast<uint64_t>(id) >= data->texts.size())
    return {};
  return data->texts[static_cast<size_t>(id)];
}

bool Tokenizer::isSpecial(int64_t id) const {
  return id >= 0 && static_cast<uint64_t>(id) < data->specialFlags.size() &&
         data->specialFlags[static_cast<size_t>(id)];
}

std::string Tokenizer::decode(const std::vector<int64_t> &ids,
                              bool skipSpecial) const {
  std::string out;
  for (int64_t id : ids)
    if (!skipSpecial || !isSpecial(id))
      out.append(bytesOf(id).data(), bytesOf(id).size());
  return out;
}

std::string StreamDecoder::push(int64_t id) {
  if (skipSpecial && tokenizer.isSpecial(id))
    return "";
  std::string_view bytes = tokenizer.bytesOf(id);
  held.append(bytes.data(), bytes.size());
  size_t complete = completeUtf8Prefix(held);
  std::string out = sanitizeUtf8(std::string_view(held).substr(0, complete));
  held.erase(0, complete);
  return out;
}

std::string StreamDecoder::finish() {
  std::string out = sanitizeUtf8(held);
  held.clear();
  return out;
}

} // namespace attune::runtime
