//===- Ranks.cpp - tiktoken's files ---------------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../WordPatterns.h"
#include "TokenizerConfig.h"

#include "attune/Runtime/Utf8.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace attune {

static int base64Digit(char c) {
  if (c >= 'A' && c <= 'Z')
    return c - 'A';
  if (c >= 'a' && c <= 'z')
    return c - 'a' + 26;
  if (c >= '0' && c <= '9')
    return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool decodeBase64(std::string_view text, std::string &bytes) {
  bytes.clear();
  uint32_t bits = 0, held = 0;
  for (char c : text) {
    if (c == '=')
      break;
    int digit = base64Digit(c);
    if (digit < 0)
      return false;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    held += 6;
    if (held >= 8) {
      held -= 8;
      bytes += static_cast<char>(bits >> held);
    }
  }
  return true;
}

/// "aGVsbG8= 12": false if the line is not that.
static bool readRank(std::string_view line, std::string &token,
                     uint32_t &rank) {
  size_t space = line.find(' ');
  if (space == std::string_view::npos || space == 0 || line.size() > 4096 ||
      !decodeBase64(line.substr(0, space), token))
    return false;
  rank = 0;
  std::string_view number = line.substr(space + 1);
  if (number.empty() || number.size() > 7)
    return false;
  for (char c : number) {
    if (c < '0' || c > '9')
      return false;
    rank = rank * 10 + static_cast<uint32_t>(c - '0');
  }
  return !token.empty() && rank < (1u << 22);
}

static std::string_view lineAt(std::string_view text, size_t at) {
  std::string_view line =
      text.substr(at, std::min(text.find('\n', at), text.size()) - at);
  return line;
}

bool looksLikeRanks(std::string_view text) {
  std::string token;
  uint32_t rank;
  std::string_view line = lineAt(text, 0);
  if (!line.empty() && line.back() == '\r')
    line.remove_suffix(1);
  return readRank(line, token, rank);
}

using Ranks = std::unordered_map<std::string, uint32_t>;

/// The two tokens whose merging makes `token`: what is left when all merges of
/// lower rank are done.
static bool splitToken(const std::string &token, uint32_t rank,
                       const Ranks &ranks, size_t &cut, size_t &lookups) {
  std::vector<size_t> starts;
  for (size_t i = 0; i <= token.size(); ++i)
    starts.push_back(i);
  while (starts.size() > 3) {
    size_t best = 0;
    uint32_t lowest = rank;
    lookups += starts.size();
    for (size_t i = 0; i + 2 < starts.size(); ++i) {
      auto found =
          ranks.find(token.substr(starts[i], starts[i + 2] - starts[i]));
      if (found != ranks.end() && found->second < lowest) {
        lowest = found->second;
        best = i + 1;
      }
    }
    if (!best)
      return false;
    starts.erase(starts.begin() + static_cast<ptrdiff_t>(best));
  }
  cut = starts[1];
  return starts.size() == 3;
}

std::string spellBytes(std::string_view bytes) {
  std::string out;
  for (char c : bytes) {
    unsigned b = static_cast<unsigned char>(c);
    bool visible =
        (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
    // The bytes that are not visible count on from U+0100 in their order.
    unsigned code = visible     ? b
                    : b <= 32   ? 0x100 + b
                    : b == 0xAD ? 0x143
                                : 0x121 + b - 0x7F;
    runtime::appendUtf8(out, code);
  }
  return out;
}

bool appendRanked(const std::vector<std::pair<uint32_t, std::string>> &tokens,
                  uint32_t firstId, std::string_view pattern, std::string &json,
                  runtime::Error &error) {
  Ranks ranks;
  for (const auto &[rank, bytes] : tokens)
    if (!ranks.emplace(bytes, rank).second)
      return error.badInput("the token of rank " + std::to_string(rank) +
                            " has another rank, too");
  std::string vocab, merges;
  // Published files take 15 million; one of long tokens would take for ever.
  constexpr size_t maxLookups = size_t(1) << 26;
  size_t lookups = 0;
  for (const auto &[rank, bytes] : tokens) {
    vocab += vocab.empty() ? "" : ",";
    runtime::appendJsonString(vocab, spellBytes(bytes));
    vocab += ":" + std::to_string(firstId + rank);
    size_t cut;
    if (lookups > maxLookups)
      return error.badInput("tokens so long that their merges take too many "
                            "steps to find");
    if (bytes.size() < 2 || !splitToken(bytes, rank, ranks, cut, lookups))
      continue;
    merges += merges.empty() ? "[" : ",[";
    runtime::appendJsonString(merges, spellBytes(bytes.substr(0, cut)));
    merges += ",";
    runtime::appendJsonString(merges, spellBytes(bytes.substr(cut)));
    merges += "]";
  }
  json += "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{"
          "\"type\":\"Split\",\"pattern\":{\"Regex\":";
  runtime::appendJsonString(json, pattern);
  json += "},\"behavior\":\"Isolated\",\"invert\":false},{\"type\":"
          "\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,"
          "\"use_regex\":false}]},\"decoder\":{\"type\":\"ByteLevel\"},"
          "\"model\":{\"type\":\"BPE\",\"ignore_merges\":true,\"vocab\":{" +
          vocab + "},\"merges\":[" + merges + "]}}";
  return true;
}

/// The special tokens of the first Qwen's class, with the ids behind the ranks.
static std::string specialsOfQwen(size_t ranks) {
  constexpr size_t extras = 205;
  std::vector<std::string> names = {"<|endoftext|>", "<|im_start|>",
                                    "<|im_end|>"};
  for (size_t i = 0; i < extras; ++i)
    names.push_back("<|extra_" + std::to_string(i) + "|>");
  std::string json;
  for (const std::string &name : names)
    json += std::string(json.empty() ? "" : ",") +
            "{\"id\":" + std::to_string(ranks++) + ",\"content\":\"" + name +
            "\",\"special\":true,\"normalized\":false}";
  return json;
}

bool convertRanks(std::string_view text, bool isQwen, std::string &json,
                  runtime::Error &error) {
  std::vector<std::pair<uint32_t, std::string>> tokens;
  std::string token;
  for (size_t at = 0, number = 1; at < text.size(); ++number) {
    std::string_view line = lineAt(text, at);
    at += line.size() + 1;
    if (!line.empty() && line.back() == '\r')
      line.remove_suffix(1);
    uint32_t rank;
    if (line.empty())
      continue;
    if (!readRank(line, token, rank) || token.size() > 512)
      return error.badInput("line " + std::to_string(number) +
                            ": expected a token in base64, a space and its "
                            "rank");
    tokens.push_back({rank, token});
  }
  std::sort(tokens.begin(), tokens.end());
  json = "{\"version\":\"1.0\",\"added_tokens\":[";
  if (isQwen)
    json +=
        specialsOfQwen(tokens.size()) + "],\"normalizer\":{\"type\":\"NFC\"},";
  else
    json += "],";
  return appendRanked(tokens, 0,
                      isQwen                   ? qwen2Words
                      : tokens.size() > 190000 ? o200kWords
                                               : llama3Words,
                      json, error);
}

} // namespace attune
