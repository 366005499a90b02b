//===- VocabText.cpp - vocab.txt of BERT, MPNet and ESM -------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TokenizerConfig.h"

#include "attune/Runtime/Json.h"

#include <algorithm>
#include <cctype>
#include <map>

namespace attune {

static constexpr size_t maxTokens = size_t(1) << 22; // of a tokenizer.json, too

namespace {
/// A token a line. If a line comes twice the last counts.
struct Words {
  std::vector<std::string> lines;
  std::map<std::string, size_t> ids;

  bool has(const std::string &token) const { return ids.count(token); }
  /// "TOKEN",ID
  std::string named(const std::string &token) const {
    return "\"" + token + "\"," + std::to_string(ids.at(token));
  }
  std::string added(const std::vector<std::string> &tokens) const;
  std::string vocab() const;
};
} // namespace

std::string Words::added(const std::vector<std::string> &tokens) const {
  std::string json;
  for (const std::string &token : tokens)
    if (has(token)) {
      json += std::string(json.empty() ? "" : ",") +
              "{\"id\":" + std::to_string(ids.at(token)) + ",\"content\":";
      runtime::appendJsonString(json, token);
      json += std::string(",\"special\":true,") +
              (token == "<mask>" ? "\"lstrip\":true," : "") +
              "\"normalized\":false}";
    }
  return json;
}

std::string Words::vocab() const {
  std::string json;
  for (const auto &[token, id] : ids) {
    json += json.empty() ? "" : ",";
    runtime::appendJsonString(json, token);
    json += ":" + std::to_string(id);
  }
  return json;
}

/// WordPiece of a text in lower case. MPNet's vocabulary is BERT's behind four
/// tokens of its own, and a pair has two of its ends in the middle.
static std::string wordPiece(const Words &words, bool isMPNet) {
  std::string cls = isMPNet ? "<s>" : "[CLS]", sep = isMPNet ? "</s>" : "[SEP]";
  return "{\"version\":\"1.0\",\"added_tokens\":[" +
         (isMPNet
              ? words.added(
                    {"<s>", "<pad>", "</s>", "<unk>", "[UNK]", "<mask>"})
              : words.added({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"})) +
         "],\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_text\":true,"
         "\"handle_chinese_chars\":true,\"strip_accents\":null,"
         "\"lowercase\":true},\"pre_tokenizer\":{\"type\":"
         "\"BertPreTokenizer\"},\"post_processor\":{\"type\":\"" +
         (isMPNet ? "RobertaProcessing\",\"trim_offsets\":true,"
                    "\"add_prefix_space\":false"
                  : "BertProcessing\"") +
         ",\"cls\":[" + words.named(cls) + "],\"sep\":[" + words.named(sep) +
         "]},\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\","
         "\"cleanup\":true},\"model\":{\"type\":\"WordPiece\",\"unk_token\":"
         "\"[UNK]\",\"continuing_subword_prefix\":\"##\","
         "\"max_input_chars_per_word\":100,\"vocab\":{" +
         words.vocab() + "}}}";
}

/// ESM's: each letter that is a token is one; what stands between them is
/// unknown.
static std::string letters(const Words &words) {
  std::vector<std::string> marks;
  std::string letter = "[";
  for (const std::string &line : words.lines)
    if (line.size() == 1)
      letter +=
          (std::isalnum(static_cast<unsigned char>(line[0])) ? "" : "\\") +
          line;
    else
      marks.push_back(line);
  std::string pattern;
  runtime::appendJsonString(pattern, letter + "]");
  return "{\"version\":\"1.0\",\"added_tokens\":[" + words.added(marks) +
         "],\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{"
         "\"type\":\"WhitespaceSplit\"},{\"type\":\"Split\",\"pattern\":{"
         "\"Regex\":" +
         pattern +
         "},\"behavior\":\"Isolated\",\"invert\":false}]},\"post_processor\":{"
         "\"type\":\"BertProcessing\",\"cls\":[" +
         words.named("<cls>") + "],\"sep\":[" + words.named("<eos>") +
         "]},\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"<unk>\","
         "\"vocab\":{" +
         words.vocab() + "}}}";
}

bool convertVocabText(std::string_view text, std::string &json,
                      runtime::Error &error) {
  Words words;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    while (!line.empty() && std::string_view(" \t\r").find(line.back()) !=
                                std::string_view::npos)
      line.remove_suffix(1);
    if (words.lines.size() == maxTokens)
      return error.badInput("more than 4194304 tokens");
    words.ids[std::string(line)] = words.lines.size();
    words.lines.emplace_back(line);
  }
  auto begins = [&](std::initializer_list<std::string_view> tokens) {
    return words.lines.size() >= tokens.size() &&
           std::equal(tokens.begin(), tokens.end(), words.lines.begin());
  };
  bool isMPNet = begins({"<s>", "<pad>", "</s>", "<unk>"});
  if (begins({"<cls>", "<pad>", "<eos>", "<unk>"}))
    json = letters(words);
  else if (words.has("[UNK]") &&
           (isMPNet || (words.has("[CLS]") && words.has("[SEP]"))))
    json = wordPiece(words, isMPNet);
  else
    return error.badInput("expected the vocabulary of a BERT, a token a line, "
                          "with [UNK], [CLS] and [SEP], or that of an MPNet or "
                          "an ESM");
  return true;
}

} // namespace attune
