//===- Unigram.cpp - The tokens whose scores add up to the most -----------===//
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

class UnigramModel final : public TokenModel {
public:
  bool encode(std::string_view word, std::vector<int64_t> &ids,
              Error &error) const override;
  void write(TokenizerTableWriter &table) const override {
    TokenModel::write(table);
    table.add(TokenizerTable::Scores, scores);
    table.add(TokenizerTable::Beginnings, beginnings);
    table.counts.unknownScore = unknownScore;
  }

protected:
  bool read(const Members &members, LoadError &error) override;

private:
  /// How much worse than the worst token an unknown character is.
  static constexpr double unknownPenalty = 10;
  static constexpr size_t maxTokenBytes = 1024;

  Column<double> scores;
  double unknownScore = 0;
  /// Hashes of all beginnings of tokens: a search stops where none goes on. A
  /// beginning that is none may pass, which costs a look-up and no more.
  Column<uint64_t> beginnings;

  struct Best {
    double score = 0;
    size_t start = SIZE_MAX;
    uint32_t id = 0;
  };
  bool readScores(std::string_view json, LoadError &error);
  bool take(const TokenizerTable &table);
  void noteBeginnings();
  bool mayGoOn(uint64_t hash) const {
    size_t bit = hash & (beginnings.size() * 64 - 1);
    return beginnings[bit / 64] >> (bit % 64) & 1;
  }
  bool search(std::string_view word, std::vector<Best> &best,
              Error &error) const;
};

} // namespace

std::unique_ptr<TokenModel> makeUnigram() {
  return std::unique_ptr<TokenModel>(new UnigramModel());
}

/// [["token", score], ...]; the place is the id.
bool UnigramModel::readScores(std::string_view json, LoadError &error) {
  JsonReader reader(json);
  std::string token;
  JsonValue score;
  if (reader.enterArray())
    while (reader.nextItem()) {
      if (scores.size() >= Vocabulary::maxTokens) {
        reader.fail("too many tokens");
        break;
      }
      if (!reader.enterArray() || !reader.nextItem() ||
          !reader.readString(token) || !reader.nextItem() ||
          !reader.read(score) || reader.nextItem() || reader.failed()) {
        reader.fail("expected a token and its score");
        break;
      }
      if (!score.isNumber() || token.size() > maxTokenBytes) {
        reader.fail(score.isNumber() ? "a token of more than 1024 bytes"
                                     : "expected a number");
        break;
      }
      vocabulary.add(token, static_cast<uint32_t>(scores.size()));
      scores.append(&score.real, 1);
    }
  if (!reader.failed())
    return true;
  error.message = "token " + std::to_string(scores.size()) +
                  " of 'model.vocab': " + reader.error;
  error.place = json.data() + std::min(reader.position, json.size());
  return false;
}

void UnigramModel::noteBeginnings() {
  size_t bits = 4096;
  for (uint32_t id = 0; id < vocabulary.size(); ++id)
    bits += 8 * vocabulary.text(id).size();
  size_t size = 4096;
  while (size < bits && size < (size_t(1) << 28))
    size *= 2;
  std::vector<uint64_t> noted(size / 64);
  for (uint32_t id = 0; id < vocabulary.size(); ++id) {
    TextHash hash;
    for (char c : vocabulary.text(id)) {
      hash.add(c);
      size_t bit = hash.finish() & (size - 1);
      noted[bit / 64] |= uint64_t(1) << (bit % 64);
    }
  }
  beginnings.set(std::move(noted));
}

bool UnigramModel::take(const TokenizerTable &table) {
  unknownScore = table.counts().unknownScore;
  return vocabulary.take(table) && table.get(TokenizerTable::Scores, scores) &&
         table.get(TokenizerTable::Beginnings, beginnings) &&
         vocabulary.size() <= scores.size() && !beginnings.empty() &&
         (beginnings.size() & (beginnings.size() - 1)) == 0;
}

bool UnigramModel::read(const Members &members, LoadError &error) {
  if (members.table) {
    error.message = "the tokens and their scores";
    if (!take(*members.table))
      return false;
  } else if (!readScores(members.vocabulary, error)) {
    return false;
  }
  const JsonValue *id = members.small.find("unk_id");
  if (id && !id->isNull()) {
    if (!id->isInt() || id->integer < 0 ||
        static_cast<uint64_t>(id->integer) >= scores.size()) {
      error.message = "'model.unk_id' is not the number of a token";
      return false;
    }
    unknown = static_cast<uint32_t>(id->integer);
  }
  findByteTokens();
  if (members.table)
    return true;
  if (!scores.empty())
    unknownScore =
        *std::min_element(scores.begin(), scores.end()) - unknownPenalty;
  noteBeginnings();
  return true;
}

/// The best way to each place. The first of equal ones counts.
bool UnigramModel::search(std::string_view word, std::vector<Best> &best,
                          Error &error) const {
  for (size_t at = 0; at < word.size();) {
    uint32_t c;
    unsigned length = decodeCharacter(word, at, c);
    double here = best[at].score;
    auto offer = [&](size_t end, double score, uint32_t id) {
      Best &place = best[end];
      if (place.start == SIZE_MAX || score > place.score)
        place = {score, at, id};
    };
    bool single = false;
    TextHash hash;
    for (size_t end = at; end < word.size();) {
      hash.add(word[end++]);
      uint64_t value = hash.finish();
      if (!mayGoOn(value))
        break;
      uint32_t id = vocabulary.find(word.substr(at, end - at), value);
      if (id == Vocabulary::none)
        continue;
      offer(end, scores[id] + here, id);
      single = single || end - at == length;
    }
    if (!single) {
      if (unknown == Vocabulary::none)
        return error.badInput("the text has a character without a token, and "
                              "the tokenizer has no unknown token");
      offer(at + length, unknownScore + here, unknown);
    }
    at += length;
  }
  return true;
}

bool UnigramModel::encode(std::string_view word, std::vector<int64_t> &ids,
                          Error &error) const {
  std::vector<Best> best(word.size() + 1);
  if (!search(word, best, error))
    return false;
  // Unknown characters in a row are one stretch.
  std::vector<std::pair<size_t, size_t>> stretches;
  bool lastUnknown = false;
  for (size_t end = word.size(); end > 0; end = best[end].start) {
    bool isUnknown = best[end].id == unknown;
    if (isUnknown && lastUnknown)
      stretches.back().first = best[end].start;
    else
      stretches.push_back({best[end].start, end});
    lastUnknown = isUnknown;
  }
  for (size_t i = stretches.size(); i-- > 0;) {
    auto [begin, end] = stretches[i];
    std::string_view text = word.substr(begin, end - begin);
    uint32_t id = vocabulary.find(text);
    if (id != Vocabulary::none)
      ids.push_back(id);
    else if (!appendBytes(text, ids)) {
      if (unknown == Vocabulary::none)
        return error.badInput("the text has a character without a token");
      ids.push_back(unknown);
    }
  }
  return true;
}

} // namespace attune::runtime
