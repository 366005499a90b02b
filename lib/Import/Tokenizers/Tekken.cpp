//===- Tekken.cpp - Mistral's tekken.json ---------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The file as mistral-common reads it (its class Tekkenizer):
//
//   config          pattern: what texts are cut at, an expression;
//                   default_vocab_size: all ids;
//                   default_num_special_tokens: the first so many of them;
//                   version: of the way in which chats are written
//   vocab           rank, token_bytes (in base64) and token_str of each token
//                   in the order of ranks; files have more than are used
//   special_tokens  rank, token_str, is_control. Files of versions up to v7
//                   may have none; then they are twenty known ones
//
// Special tokens have their ranks as ids, and what is free among the first ids
// is called <SPECIAL_20> and so on. The ids of the others follow: rank plus
// the number of special tokens. Merges are those that give each token from
// others of lower rank.
//
//===----------------------------------------------------------------------===//

#include "TokenizerConfig.h"

#include "attune/Runtime/Json.h"

#include <map>
#include <vector>

using attune::runtime::JsonReader;
using attune::runtime::JsonValue;

namespace attune {

static constexpr uint64_t maxIds = 1u << 22; // of a tokenizer.json, too

static constexpr const char *kFirstSpecials[] = {"<unk>",
                                                 "<s>",
                                                 "</s>",
                                                 "[INST]",
                                                 "[/INST]",
                                                 "[AVAILABLE_TOOLS]",
                                                 "[/AVAILABLE_TOOLS]",
                                                 "[TOOL_RESULTS]",
                                                 "[/TOOL_RESULTS]",
                                                 "[TOOL_CALLS]",
                                                 "[IMG]",
                                                 "<pad>",
                                                 "[IMG_BREAK]",
                                                 "[IMG_END]",
                                                 "[PREFIX]",
                                                 "[MIDDLE]",
                                                 "[SUFFIX]",
                                                 "[SYSTEM_PROMPT]",
                                                 "[/SYSTEM_PROMPT]",
                                                 "[TOOL_CONTENT]"};

namespace {
struct Tekken {
  std::string pattern;
  int64_t ids = -1, specialIds = -1;
  int version = 0; ///< 7 of "v7"
  bool hasSpecials = false;
  std::map<uint32_t, std::string> specials;
  std::vector<std::string> tokens; ///< by rank
};
} // namespace

/// A number of the file, or -1.
static int64_t numberOf(const JsonValue &object, const char *key) {
  const JsonValue *value = object.find(key);
  return value && value->isInt() && value->integer >= 0 ? value->integer : -1;
}

static std::string textOf(const JsonValue &object, const char *key) {
  const JsonValue *value = object.find(key);
  return value && value->isString() ? value->string : "";
}

static bool readConfig(JsonReader &reader, Tekken &file) {
  JsonValue config;
  if (!reader.read(config))
    return false;
  file.pattern = textOf(config, "pattern");
  file.ids = numberOf(config, "default_vocab_size");
  file.specialIds = numberOf(config, "default_num_special_tokens");
  std::string version = textOf(config, "version");
  if (file.pattern.empty())
    return reader.fail("config: expected 'pattern', an expression that says "
                       "what texts are cut at");
  if (file.ids < 1 || file.ids > static_cast<int64_t>(maxIds))
    return reader.fail("config: expected 'default_vocab_size', a number from 1 "
                       "to 4194304");
  if (file.specialIds < 0 || file.specialIds >= file.ids)
    return reader.fail("config: expected 'default_num_special_tokens', a "
                       "number below default_vocab_size");
  bool good = version.size() >= 2 && version.size() <= 4 && version[0] == 'v' &&
              version.find_first_not_of("0123456789", 1) == std::string::npos;
  if (!good)
    return reader.fail("config: expected 'version', such as \"v7\"");
  file.version = std::stoi(version.substr(1));
  return true;
}

static bool readVocab(JsonReader &reader, Tekken &file) {
  JsonValue token;
  if (!reader.enterArray())
    return false;
  while (reader.nextItem() && reader.read(token)) {
    // Ranks stand in their order, as what is not used is cut off behind.
    int64_t rank = numberOf(token, "rank");
    std::string bytes = textOf(token, "token_bytes");
    if (rank != static_cast<int64_t>(file.tokens.size()))
      return reader.fail("vocab: expected the token of rank " +
                         std::to_string(file.tokens.size()));
    if (file.tokens.size() >= maxIds)
      return reader.fail("vocab: more than 4194304 tokens");
    if (!decodeBase64(bytes, file.tokens.emplace_back()) ||
        file.tokens.back().empty() || file.tokens.back().size() > 512)
      return reader.fail("vocab: expected 'token_bytes', 1 to 512 bytes in "
                         "base64");
  }
  return !reader.failed();
}

static bool readSpecials(JsonReader &reader, Tekken &file) {
  if (reader.peek() == 'n') { // null
    std::string_view skipped;
    return reader.skip(skipped);
  }
  file.hasSpecials = true;
  JsonValue token;
  if (!reader.enterArray())
    return false;
  while (reader.nextItem() && reader.read(token)) {
    int64_t rank = numberOf(token, "rank");
    std::string text = textOf(token, "token_str");
    if (rank < 0 || rank >= static_cast<int64_t>(maxIds) || text.empty() ||
        !file.specials.emplace(static_cast<uint32_t>(rank), text).second)
      return reader.fail("special_tokens: expected 'rank', a new number, and "
                         "'token_str', a text");
  }
  return !reader.failed();
}

/// What the members say about each other.
static bool complete(Tekken &file, runtime::Error &error) {
  if (file.ids < 0)
    return error.badInput("has no 'config'");
  if (!file.hasSpecials) {
    if (file.version > 7)
      return error.badInput("has no 'special_tokens', which only files of "
                            "versions up to v7 may leave out");
    uint32_t rank = 0;
    for (const char *text : kFirstSpecials)
      file.specials.emplace(rank++, text);
  }
  auto count = static_cast<uint32_t>(file.specialIds);
  if (!file.specials.empty() && file.specials.rbegin()->first >= count)
    return error.badInput(
        "special_tokens: rank " +
        std::to_string(file.specials.rbegin()->first) +
        " is not below default_num_special_tokens, which is " +
        std::to_string(count));
  for (uint32_t rank = 0; rank < count; ++rank)
    file.specials.emplace(rank, "<SPECIAL_" + std::to_string(rank) + ">");
  std::map<std::string_view, uint32_t> texts;
  for (const auto &[rank, text] : file.specials)
    if (auto [other, isNew] = texts.emplace(text, rank); !isNew)
      return error.badInput("special_tokens: ranks " +
                            std::to_string(other->second) + " and " +
                            std::to_string(rank) + " have one text");
  auto used = static_cast<size_t>(file.ids - file.specialIds);
  if (file.tokens.size() < used)
    return error.badInput("vocab: has " + std::to_string(file.tokens.size()) +
                          " tokens, but default_vocab_size and "
                          "default_num_special_tokens ask for " +
                          std::to_string(used));
  file.tokens.resize(used);
  return true;
}

bool looksLikeTekken(std::string_view name) {
  // tekken.json, or tekken_240911.json as mistral-common has it.
  return name.substr(0, 6) == "tekken" && name.size() > 5 &&
         name.substr(name.size() - 5) == ".json";
}

bool convertTekken(std::string_view text, std::string &json,
                   runtime::Error &error, size_t &where) {
  Tekken file;
  JsonReader reader(text);
  std::string key;
  std::string_view skipped;
  if (reader.enterObject())
    while (reader.nextMember(key))
      if (!(key == "config"           ? readConfig(reader, file)
            : key == "vocab"          ? readVocab(reader, file)
            : key == "special_tokens" ? readSpecials(reader, file)
                                      : reader.skip(skipped)))
        break;
  if (!reader.failed() && reader.peek() != -1)
    reader.fail("expected the end of the text");
  where = reader.position;
  if (reader.failed())
    return error.badInput(reader.error);
  where = 0;
  if (!complete(file, error))
    return false;
  json = "{\"version\":\"1.0\",\"added_tokens\":[";
  int64_t begin = -1;
  for (const auto &[rank, special] : file.specials) {
    if (special == "<s>")
      begin = rank;
    json += (rank ? ",{\"id\":" : "{\"id\":") + std::to_string(rank) +
            ",\"content\":";
    runtime::appendJsonString(json, special);
    json += ",\"special\":true,\"normalized\":false}";
  }
  json += "],";
  if (begin >= 0)
    json += "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{"
            "\"SpecialToken\":{\"id\":\"<s>\",\"type_id\":0}},{\"Sequence\":{"
            "\"id\":\"A\",\"type_id\":0}}],\"pair\":[{\"SpecialToken\":{\"id\":"
            "\"<s>\",\"type_id\":0}},{\"Sequence\":{\"id\":\"A\",\"type_id\":0}"
            "},{\"SpecialToken\":{\"id\":\"<s>\",\"type_id\":1}},{\"Sequence\":"
            "{\"id\":\"B\",\"type_id\":1}}],\"special_tokens\":{\"<s>\":{"
            "\"id\":\"<s>\",\"ids\":[" +
            std::to_string(begin) + "],\"tokens\":[\"<s>\"]}}},";
  std::vector<std::pair<uint32_t, std::string>> ranks;
  for (std::string &token : file.tokens)
    ranks.emplace_back(static_cast<uint32_t>(ranks.size()), std::move(token));
  return appendRanked(ranks, static_cast<uint32_t>(file.specialIds),
                      file.pattern, json, error);
}

} // namespace attune
