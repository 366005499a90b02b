//===- Bpe.cpp - Byte pair encoding ---------------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Normalizer.h"
#include "TokenModel.h"

#include <algorithm>

namespace attune::runtime {

namespace {

/// Pair of ids to what they merge into.
class MergeMap {
public:
  struct Merge {
    uint32_t rank, result;
  };
  void insert(uint32_t left, uint32_t right, Merge merge) {
    if (used * 2 >= slots.size())
      grow();
    uint64_t key = keyOf(left, right);
    Slot &slot = slots.at(placeOf(slots, key));
    used += slot.key == 0;
    slot = {key, merge};
  }
  const Merge *find(uint32_t left, uint32_t right) const {
    if (slots.empty())
      return nullptr;
    const Slot &slot = slots[placeOf(slots, keyOf(left, right))];
    return slot.key ? &slot.merge : nullptr;
  }

  void write(TokenizerTableWriter &table) const {
    std::string few((used + used / 2 + 1) * sizeof(Slot), '\0');
    Slots places{reinterpret_cast<Slot *>(few.data()),
                 few.size() / sizeof(Slot)};
    for (const Slot &slot : slots)
      if (slot.key)
        places[placeOf(places, slot.key)] = slot;
    table.add(TokenizerTable::MergeSlots, std::move(few));
  }
  bool take(const TokenizerTable &table) {
    return table.get(TokenizerTable::MergeSlots, slots);
  }

private:
  struct Slot {
    uint64_t key = 0; ///< left and right plus one, or 0
    Merge merge = {0, 0};
  };
  struct Slots {
    Slot *begin;
    size_t count;
    size_t size() const { return count; }
    Slot &operator[](size_t i) const { return begin[i]; }
  };
  Column<Slot> slots;
  size_t used = 0;

  static uint64_t keyOf(uint32_t left, uint32_t right) {
    return (uint64_t(left) << 32 | right) + 1;
  }
  /// Where a pair is or would be, among any number of slots.
  template <typename Table>
  static size_t placeOf(const Table &slots, uint64_t key) {
    uint64_t hash = key * 0x9E3779B97F4A7C15u;
    hash = (hash ^ hash >> 32) * 0x9E3779B97F4A7C15u;
    size_t size = slots.size();
    auto i = static_cast<size_t>((unsigned __int128)hash * size >> 64);
    while (slots[i].key && slots[i].key != key)
      i = i + 1 < size ? i + 1 : 0;
    return i;
  }
  void grow() {
    std::vector<Slot> larger(std::max<size_t>(1024, slots.size() * 2));
    for (const Slot &slot : slots)
      if (slot.key)
        larger[placeOf(larger, slot.key)] = slot;
    slots.set(std::move(larger));
  }
};

/// The symbols of a word as a list; a merge swallows the right neighbour.
struct Symbol {
  uint32_t id;
  uint32_t previous, next; ///< indices, or none
  bool gone;
};

/// A pair that may merge. It is out of date once the pair makes another token.
struct Candidate {
  uint32_t rank, left, result;
  /// Lowest rank first, leftmost among equals; std::push_heap wants the
  /// opposite.
  bool operator<(const Candidate &other) const {
    return rank != other.rank ? rank > other.rank : left > other.left;
  }
};

class BpeModel final : public TokenModel {
public:
  bool encode(std::string_view word, std::vector<int64_t> &ids,
              Error &error) const override;
  void write(TokenizerTableWriter &table) const override {
    TokenModel::write(table);
    merges.write(table);
  }

protected:
  bool read(const Members &members, LoadError &error) override;

private:
  static constexpr uint32_t none = UINT32_MAX;
  static constexpr size_t maxMerges = size_t(1) << 22;
  MergeMap merges;
  std::string prefix, suffix; ///< of all but the first, of the last character
  bool wholeWords = false;    ///< a word in the vocabulary is not merged
  bool fuseUnknown = false;

  bool readMerges(std::string_view json, LoadError &error);
  bool addMerge(std::string_view left, std::string_view right, size_t rank,
                std::string &problem);
  bool makeSymbols(std::string_view word, std::vector<Symbol> &symbols,
                   Error &error) const;
  void mergeFew(std::vector<Symbol> &symbols) const;
  void mergeMany(std::vector<Symbol> &symbols) const;
};

} // namespace

std::unique_ptr<TokenModel> makeBpe() {
  return std::unique_ptr<TokenModel>(new BpeModel());
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

bool BpeModel::addMerge(std::string_view left, std::string_view right,
                        size_t rank, std::string &problem) {
  std::string_view tail = right;
  if (tail.substr(0, prefix.size()) == prefix)
    tail.remove_prefix(prefix.size());
  std::string made(left);
  made.append(tail.data(), tail.size());
  uint32_t ids[3];
  const std::string_view texts[] = {left, right, made};
  for (int i = 0; i < 3; ++i) {
    ids[i] = vocabulary.find(texts[i]);
    if (ids[i] == Vocabulary::none) {
      problem = i < 2 ? "uses " : "makes ";
      appendJsonString(problem, texts[i].substr(0, 100));
      problem += ", which is not in the vocabulary";
      return false;
    }
  }
  merges.insert(ids[0], ids[1], {static_cast<uint32_t>(rank), ids[2]});
  return true;
}

/// A merge is "a b" or ["a", "b"].
bool BpeModel::readMerges(std::string_view json, LoadError &error) {
  JsonReader reader(json);
  std::string first, second, problem;
  size_t rank = 0;
  if (reader.enterArray())
    for (; problem.empty() && !reader.failed() && reader.nextItem();
         rank += problem.empty() && !reader.failed()) {
      if (rank >= maxMerges) {
        problem = "is one too many: there may be " + std::to_string(maxMerges);
      } else if (reader.peek() == '[') {
        std::string extra;
        if (reader.enterArray() && reader.nextItem() &&
            reader.readString(first) && reader.nextItem() &&
            reader.readString(second) && !reader.nextItem() && !reader.failed())
          addMerge(first, second, rank, problem);
        else
          reader.fail("not a pair of strings");
      } else if (reader.readString(first)) {
        size_t space = first.find(' ');
        if (space == std::string::npos ||
            first.find(' ', space + 1) != std::string::npos) {
          appendJsonString(problem, first.substr(0, 100));
          problem += " is not two tokens with a space between";
        } else {
          addMerge(std::string_view(first).substr(0, space),
                   std::string_view(first).substr(space + 1), rank, problem);
        }
      }
    }
  if (problem.empty() && !reader.failed())
    return true;
  if (problem.empty())
    problem = "is no merge: " + reader.error;
  error.message = "merge " + std::to_string(rank) + " " + problem;
  error.place = json.data() + std::min(reader.position, json.size());
  return false;
}

bool BpeModel::read(const Members &members, LoadError &error) {
  const JsonValue *dropout = members.small.find("dropout");
  if (dropout && dropout->isNumber() && dropout->real != 0) {
    error.message = "'dropout' is for training alone; 0 and null are supported";
    return false;
  }
  prefix = textOf(members.small, "continuing_subword_prefix");
  suffix = textOf(members.small, "end_of_word_suffix");
  wholeWords = flagOf(members.small, "ignore_merges", false);
  fuseUnknown = flagOf(members.small, "fuse_unk", false);
  unknownText = textOf(members.small, "unk_token");
  if (!members.table && (members.merges.empty() || members.merges[0] != '[')) {
    error.message = "no 'model.merges' array";
    return false;
  }
  if (!readVocabulary(members, error) ||
      !(members.table ? merges.take(*members.table)
                      : readMerges(members.merges, error)))
    return false;
  unknown = vocabulary.find(unknownText);
  findByteTokens();
  return true;
}

//===----------------------------------------------------------------------===//
// Encoding
//===----------------------------------------------------------------------===//

/// The characters of a word. One that has no token is bytes, or the unknown
/// token, or left out.
bool BpeModel::makeSymbols(std::string_view word, std::vector<Symbol> &symbols,
                           Error &error) const {
  bool heldUnknown = false;
  std::string decorated;
  std::vector<int64_t> bytes;
  auto add = [&](uint32_t id) {
    auto index = static_cast<uint32_t>(symbols.size());
    symbols.push_back({id, index ? index - 1 : none, index + 1, false});
  };
  for (size_t at = 0; at < word.size();) {
    uint32_t c;
    unsigned length = decodeCharacter(word, at, c);
    std::string_view text = word.substr(at, length);
    bool first = at == 0;
    at += length;
    if ((!first && !prefix.empty()) || (at == word.size() && !suffix.empty())) {
      decorated = first ? "" : prefix;
      decorated.append(text.data(), text.size());
      if (at == word.size())
        decorated += suffix;
      text = decorated;
    }
    uint32_t id = vocabulary.find(text);
    if (id != Vocabulary::none) {
      if (heldUnknown)
        add(unknown);
      heldUnknown = false;
      add(id);
      continue;
    }
    bytes.clear();
    if (appendBytes(text, bytes)) {
      for (int64_t byte : bytes)
        add(static_cast<uint32_t>(byte));
      continue;
    }
    if (unknownText.empty())
      continue;
    if (unknown == Vocabulary::none)
      return error.badInput("the text has a character without a token, and the "
                            "unknown token '" +
                            unknownText + "' is not in the vocabulary");
    if (heldUnknown && !fuseUnknown)
      add(unknown);
    heldUnknown = true;
  }
  if (heldUnknown)
    add(unknown);
  if (!symbols.empty())
    symbols.back().next = none;
  return true;
}

/// Looks for the lowest rank among all pairs each time: words are short.
void BpeModel::mergeFew(std::vector<Symbol> &symbols) const {
  MergeMap::Merge pairs[64];
  size_t count = symbols.size();
  constexpr MergeMap::Merge nothing = {UINT32_MAX, 0};
  auto look = [&](size_t i) {
    const MergeMap::Merge *merge =
        merges.find(symbols[i].id, symbols[i + 1].id);
    pairs[i] = merge ? *merge : nothing;
  };
  for (size_t i = 0; i + 1 < count; ++i)
    look(i);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i)
      if (pairs[i].rank < pairs[best].rank)
        best = i;
    if (pairs[best].rank == UINT32_MAX)
      break;
    symbols[best].id = pairs[best].result;
    for (size_t i = best + 1; i + 1 < count; ++i) {
      symbols[i].id = symbols[i + 1].id;
      pairs[i] = pairs[i + 1 < count - 1 ? i + 1 : i];
    }
    --count;
    if (best > 0)
      look(best - 1);
    if (best + 1 < count)
      look(best);
  }
  symbols.resize(count);
}

/// Takes n log n steps for n characters, however they merge.
void BpeModel::mergeMany(std::vector<Symbol> &symbols) const {
  std::vector<Candidate> heap;
  auto consider = [&](uint32_t left) {
    if (left == none || symbols[left].next == none)
      return;
    const MergeMap::Merge *merge =
        merges.find(symbols[left].id, symbols[symbols[left].next].id);
    if (!merge)
      return;
    heap.push_back({merge->rank, left, merge->result});
    std::push_heap(heap.begin(), heap.end());
  };
  for (uint32_t i = 0; i + 1 < symbols.size(); ++i)
    consider(i);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end());
    Candidate best = heap.back();
    heap.pop_back();
    Symbol &left = symbols[best.left];
    if (left.gone || left.next == none)
      continue;
    Symbol &right = symbols[left.next];
    const MergeMap::Merge *merge = merges.find(left.id, right.id);
    if (!merge || merge->result != best.result)
      continue;
    left.id = best.result;
    left.next = right.next;
    right.gone = true;
    if (left.next != none)
      symbols[left.next].previous = best.left;
    consider(left.previous);
    consider(best.left);
  }
  size_t kept = 0;
  for (const Symbol &symbol : symbols)
    if (!symbol.gone)
      symbols[kept++] = symbol;
  symbols.resize(kept);
}

bool BpeModel::encode(std::string_view word, std::vector<int64_t> &ids,
                      Error &error) const {
  if (wholeWords) {
    uint32_t id = vocabulary.find(word);
    if (id != Vocabulary::none) {
      ids.push_back(id);
      return true;
    }
  }
  if (word.size() >= none)
    return error.badInput("a word of more than four billion bytes");
  std::vector<Symbol> symbols;
  symbols.reserve(word.size());
  if (!makeSymbols(word, symbols, error))
    return false;
  if (symbols.size() > 32)
    mergeMany(symbols);
  else if (symbols.size() > 1)
    mergeFew(symbols);
  for (const Symbol &symbol : symbols)
    ids.push_back(symbol.id);
  return true;
}

} // namespace attune::runtime
