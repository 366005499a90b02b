//===- TokenModel.cpp - Words to tokens: what the models share ------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TokenModel.h"
#include "Normalizer.h"

#include <algorithm>

namespace attune::runtime {

bool TokenModel::encode(std::string_view, std::vector<int64_t> &,
                        Error &) const {
  return false;
}
bool TokenModel::read(const Members &, LoadError &) { return false; }
void TokenModel::write(TokenizerTableWriter &table) const {
  vocabulary.write(table);
}

static bool failAt(LoadError &error, const JsonReader &reader,
                   std::string_view text, const std::string &what) {
  error.message = what;
  error.place = text.data() + std::min(reader.position, text.size());
  return false;
}

static std::string quoted(std::string_view text) {
  std::string out;
  appendJsonString(out, text.substr(0, 100));
  return out;
}

bool TokenModel::readVocabulary(const Members &members, LoadError &error) {
  if (members.table) {
    error.message = "the vocabulary";
    return vocabulary.take(*members.table);
  }
  std::string_view json = members.vocabulary;
  JsonReader reader(json);
  std::string token;
  if (reader.enterObject())
    while (reader.nextMember(token)) {
      uint64_t id;
      if (!reader.readIndex(Vocabulary::maxTokens - 1, id))
        return failAt(error, reader, json,
                      "the id of token " + quoted(token) +
                          " is not a number "
                          "from 0 to " +
                          std::to_string(Vocabulary::maxTokens - 1));
      if (!vocabulary.add(token, static_cast<uint32_t>(id)))
        return failAt(error, reader, json,
                      "two tokens have id " + std::to_string(id));
    }
  if (reader.failed())
    return failAt(error, reader, json, "'model.vocab': " + reader.error);
  return true;
}

void TokenModel::findByteTokens() {
  static constexpr char digits[] = "0123456789ABCDEF";
  for (unsigned b = 0; b < 256; ++b) {
    char text[] = {'<', '0', 'x', digits[b >> 4], digits[b & 15], '>'};
    byteTokens[b] = vocabulary.find({text, sizeof(text)});
  }
}

/// All bytes or none.
bool TokenModel::appendBytes(std::string_view text,
                             std::vector<int64_t> &ids) const {
  if (!byteFallback)
    return false;
  for (char c : text)
    if (byteTokens[static_cast<unsigned char>(c)] == Vocabulary::none)
      return false;
  for (char c : text)
    ids.push_back(byteTokens[static_cast<unsigned char>(c)]);
  return true;
}

//===----------------------------------------------------------------------===//
// WordPiece and WordLevel
//===----------------------------------------------------------------------===//

namespace {

static bool noUnknown(Error &error, const std::string &token) {
  return error.badInput("the text has a word that is not in the vocabulary, "
                        "and neither is the unknown token '" +
                        token + "'");
}

class WordLevelModel final : public TokenModel {
public:
  bool encode(std::string_view word, std::vector<int64_t> &ids,
              Error &error) const override {
    uint32_t id = vocabulary.find(word);
    if (id == Vocabulary::none)
      id = unknown;
    if (id == Vocabulary::none)
      return noUnknown(error, unknownText);
    ids.push_back(id);
    return true;
  }

protected:
  bool read(const Members &members, LoadError &error) override {
    unknownText = textOf(members.small, "unk_token");
    if (!readVocabulary(members, error))
      return false;
    unknown = vocabulary.find(unknownText);
    return true;
  }
};

class WordPieceModel final : public TokenModel {
public:
  bool encode(std::string_view word, std::vector<int64_t> &ids,
              Error &error) const override;

protected:
  bool read(const Members &members, LoadError &error) override;

private:
  std::string prefix = "##";
  TextHash prefixHash;
  int64_t maxCharacters = 100;
};

bool WordPieceModel::read(const Members &members, LoadError &error) {
  unknownText = textOf(members.small, "unk_token");
  if (members.small.find("continuing_subword_prefix"))
    prefix = textOf(members.small, "continuing_subword_prefix");
  prefixHash.add(prefix);
  const JsonValue *most = members.small.find("max_input_chars_per_word");
  if (most && most->isInt())
    maxCharacters = most->integer;
  if (!readVocabulary(members, error))
    return false;
  unknown = vocabulary.find(unknownText);
  return true;
}

bool WordPieceModel::encode(std::string_view word, std::vector<int64_t> &ids,
                            Error &error) const {
  int64_t characters = 0;
  for (char c : word)
    characters += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  size_t before = ids.size();
  bool good = characters <= maxCharacters;
  std::string candidate;
  for (size_t at = 0; good && at < word.size();) {
    // Hashes grow from the left, so the longest that fits is the last found.
    TextHash hash = at ? prefixHash : TextHash();
    candidate = at ? prefix : "";
    uint32_t best = Vocabulary::none;
    size_t bestEnd = 0;
    for (size_t end = at; end < word.size();) {
      uint32_t c;
      unsigned length = decodeCharacter(word, end, c);
      if (candidate.size() + length > vocabulary.longest())
        break;
      candidate.append(word.data() + end, length);
      hash.add(word.substr(end, length));
      end += length;
      uint32_t id = vocabulary.find(candidate, hash.finish());
      if (id != Vocabulary::none) {
        best = id;
        bestEnd = end;
      }
    }
    good = best != Vocabulary::none;
    if (good)
      ids.push_back(best);
    at = bestEnd;
  }
  if (good)
    return true;
  ids.resize(before);
  if (unknown == Vocabulary::none)
    return noUnknown(error, unknownText);
  ids.push_back(unknown);
  return true;
}

} // namespace

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

/// Files of old have no type.
static bool guessKind(const JsonValue &small, bool merges, bool list,
                      TokenModel::Kind &kind) {
  std::string type = textOf(small, "type");
  if (type == "BPE" || (type.empty() && merges))
    kind = TokenModel::Kind::BPE;
  else if (type == "Unigram" || (type.empty() && list))
    kind = TokenModel::Kind::Unigram;
  else if (type == "WordPiece" ||
           (type.empty() && small.find("continuing_subword_prefix")))
    kind = TokenModel::Kind::WordPiece;
  else if (type == "WordLevel" || type.empty())
    kind = TokenModel::Kind::WordLevel;
  else
    return false;
  return true;
}

bool TokenModel::readMembers(std::string_view json, Members &members,
                             Kind &kind, LoadError &error) {
  members.small.kind = JsonValue::Kind::Object;
  JsonLimits limits;
  limits.maxValues = 1000;
  JsonReader reader(json, limits);
  std::string key;
  if (reader.enterObject())
    while (reader.nextMember(key)) {
      if (key == "vocab") {
        reader.skip(members.vocabulary);
      } else if (key == "merges") {
        reader.skip(members.merges);
      } else {
        if (members.small.keys.size() > 100)
          reader.fail("too many members");
        members.small.keys.push_back(key);
        members.small.items.emplace_back();
        reader.read(members.small.items.back());
      }
    }
  if (reader.failed())
    return failAt(error, reader, json, "'model': " + reader.error);
  error.place = json.data();
  if (!guessKind(members.small, !members.merges.empty(),
                 !members.vocabulary.empty() && members.vocabulary[0] == '[',
                 kind)) {
    error.message = "model type '" + textOf(members.small, "type") +
                    "' is not supported; BPE, WordPiece, Unigram and "
                    "WordLevel are";
    error.unsupported = true;
    return false;
  }
  if (!members.table &&
      (members.vocabulary.empty() ||
       members.vocabulary[0] != (kind == Kind::Unigram ? '[' : '{'))) {
    error.message = kind == Kind::Unigram ? "no 'model.vocab' array"
                                          : "no 'model.vocab' object";
    return false;
  }
  return true;
}

bool TokenModel::pickMembers(std::string_view json, std::string &out,
                             LoadError &error) {
  Members members;
  Kind kind;
  if (!readMembers(json, members, kind, error))
    return false;
  static const char *const names[] = {"BPE", "WordPiece", "Unigram",
                                      "WordLevel"};
  JsonValue picked;
  picked.kind = JsonValue::Kind::Object;
  // A file of old has no type, and it shows by what is left out here.
  picked.keys.push_back("type");
  picked.items.emplace_back();
  picked.items.back().kind = JsonValue::Kind::String;
  picked.items.back().string = names[static_cast<size_t>(kind)];
  for (size_t i = 0; i < members.small.keys.size(); ++i) {
    if (members.small.keys[i] == "type")
      continue;
    picked.keys.push_back(members.small.keys[i]);
    picked.items.push_back(members.small.items[i]);
  }
  appendJson(out, picked);
  return true;
}

std::unique_ptr<TokenModel> TokenModel::load(std::string_view json,
                                             const TokenizerTable *table,
                                             LoadError &error) {
  Members members;
  members.table = table;
  Kind kind;
  if (!readMembers(json, members, kind, error))
    return nullptr;
  std::unique_ptr<TokenModel> model;
  if (kind == Kind::BPE)
    model = makeBpe();
  else if (kind == Kind::Unigram)
    model = makeUnigram();
  else if (kind == Kind::WordPiece)
    model.reset(new WordPieceModel());
  else
    model.reset(new WordLevelModel());
  model->kind = kind;
  model->byteFallback = flagOf(members.small, "byte_fallback", false);
  if (!model->read(members, error))
    return nullptr;
  if (model->vocabulary.count() == 0) {
    error.message = "the vocabulary is empty";
    return nullptr;
  }
  return model;
}

} // namespace attune::runtime
