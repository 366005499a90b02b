//===- GgufTokenizer.cpp - The tokenizer of a GGUF file ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GgufConfig.h"

#include "../Tokenizers/SentencePiece.h"
#include "../Tokenizers/TokenizerConfig.h"
#include "../WordPatterns.h"

#include "attune/Import/Gguf.h"
#include "attune/Runtime/Tokenizer.h"
#include "attune/Runtime/Utf8.h"

#include <cmath>

namespace attune::gguf {

using runtime::JsonValue;

static constexpr uint64_t kMostTokens = uint64_t(1) << 22;

namespace {
/// How byte-level BPE of a name cuts texts.
struct Words {
  const char *name;
  /// Cuts in turn; null: none.
  const char *first, *second;
  bool ignoreMerges; ///< a word that is a token is that token
  bool addsBegin;    ///< where no key says whether
};
} // namespace

static constexpr Words kWords[] = {
    {"gpt-2", gpt2Words, nullptr, false, false},
    {"mpt", gpt2Words, nullptr, false, false},
    {"olmo", gpt2Words, nullptr, false, false},
    {"phi-2", gpt2Words, nullptr, false, false},
    {"llama-bpe", llama3Words, nullptr, true, true},
    {"llama3", llama3Words, nullptr, true, true},
    {"llama-v3", llama3Words, nullptr, true, true},
    {"smaug-bpe", llama3Words, nullptr, true, false},
    {"dbrx", llama3Words, nullptr, false, false},
    {"qwen2", qwen2Words, nullptr, false, false},
    {"deepseek-r1-qwen", qwen2Words, nullptr, false, false},
    {"megrez", qwen2Words, nullptr, false, false},
    {"stablelm2", qwen2Words, nullptr, false, false},
    {"starcoder", "\\p{N}", gpt2Words, false, false},
    {"refact", "\\p{N}", gpt2Words, false, false},
    {"command-r", "\\p{N}", gpt2Words, false, false},
    {"smollm", "\\p{N}", gpt2Words, false, false},
    {"codeshell", "\\p{N}", gpt2Words, false, false},
    {"gpt-4o", o200kWords, nullptr, false, false},
    {"tekken", tekkenWords, nullptr, true, true},
};

namespace {
class Maker {
public:
  Maker(const File &file, DiagnosticEngine &diags) : file(file), diags(diags) {}

  /// The text; empty after a warning, nothing after an error.
  std::optional<std::string> make();

private:
  bool wrong(const std::string &key, const std::string &what) {
    const Value *value = file.find(key);
    diags.error(atPath(file.path()),
                "key '" + key + "'" +
                    (value ? " at byte " + std::to_string(value->offset) : "") +
                    ": " + what);
    return false;
  }
  std::optional<std::string> lacks(const std::string &what) {
    diags.warning(atPath(file.path()),
                  "text prompts will not work, and the product carries no "
                  "tokenizer: " +
                      what);
    return "";
  }
  bool readPieces(bool scored);
  bool makePieces();
  bool makeBytes(const Words &words);
  bool setEnds(bool begin);
  std::string idToken(const char *key) const;

  const File &file;
  DiagnosticEngine &diags;
  std::vector<Piece> pieces;
  std::string json;
};
} // namespace

/// Tokens, their types and, if `scored`, their scores.
bool Maker::readPieces(bool scored) {
  const std::string tokensKey = "tokenizer.ggml.tokens",
                    scoresKey = "tokenizer.ggml.scores",
                    typesKey = "tokenizer.ggml.token_type";
  const Value *tokens = file.find(tokensKey);
  if (!tokens || !tokens->isArray() || tokens->element != Kind::String)
    return wrong(tokensKey, "expected an array of strings, found " +
                                (tokens ? tokens->describe() : "nothing"));
  if (tokens->count < 1 || tokens->count > kMostTokens)
    return wrong(tokensKey, "has " + std::to_string(tokens->count) +
                                " tokens, expected 1 to " +
                                std::to_string(kMostTokens));
  auto numbersOf = [&](const std::string &key, std::vector<double> &out) {
    std::optional<std::vector<double>> read = file.numbers(key);
    if (!read || read->size() != tokens->count)
      return wrong(key, "expected a number for each of the " +
                            std::to_string(tokens->count) + " tokens, found " +
                            (read             ? std::to_string(read->size())
                             : file.find(key) ? file.find(key)->describe()
                                              : "nothing"));
    out = std::move(*read);
    return true;
  };
  std::vector<double> scores, types;
  if (scored && !numbersOf(scoresKey, scores))
    return false;
  if ((scored || file.find(typesKey)) && !numbersOf(typesKey, types))
    return false;
  uint64_t broken = UINT64_MAX;
  eachString(*tokens, [&](uint64_t i, std::string_view text) {
    Piece piece;
    piece.text = std::string(text);
    if (broken == UINT64_MAX && runtime::sanitizeUtf8(text) != text)
      broken = i;
    if (scored)
      piece.score = static_cast<float>(scores[i]);
    if (!types.empty() && types[i] >= 1 && types[i] <= Byte)
      piece.type = static_cast<uint64_t>(types[i]);
    pieces.push_back(std::move(piece));
  });
  if (broken != UINT64_MAX)
    return wrong(tokensKey,
                 "token " + std::to_string(broken) + " is no sound UTF-8");
  return true;
}

/// "llama": pieces of SentencePiece's BPE.
bool Maker::makePieces() {
  if (!readPieces(/*scored=*/true))
    return false;
  PieceModel model;
  model.type = 2;
  model.removesSpace =
      file.flag("tokenizer.ggml.remove_extra_whitespaces").value_or(false);
  model.dummyPrefix =
      file.flag("tokenizer.ggml.add_space_prefix").value_or(true);
  model.pieces = std::move(pieces);
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    model.byteFallback |= model.pieces[i].type == Byte;
    if (model.pieces[i].type == Unknown)
      model.unknown = i;
  }
  runtime::Error error;
  if (!convertPieces(model, json, error))
    return wrong("tokenizer.ggml.tokens", error.message);
  pieces = std::move(model.pieces);
  return true;
}

static std::string splitAt(const char *pattern) {
  std::string text = "{\"type\":\"Split\",\"pattern\":{\"Regex\":";
  runtime::appendJsonString(text, pattern);
  return text + "},\"behavior\":\"Isolated\",\"invert\":false},";
}

/// "gpt2": byte-level BPE.
bool Maker::makeBytes(const Words &words) {
  const std::string mergesKey = "tokenizer.ggml.merges";
  const Value *merges = file.find(mergesKey);
  if (!readPieces(/*scored=*/false))
    return false;
  if (!merges || !merges->isArray() || merges->element != Kind::String ||
      merges->count > kMostTokens)
    return wrong(mergesKey,
                 "expected an array of up to 4194304 strings, found " +
                     (merges ? merges->describe() : "nothing"));
  json = "{\"version\":\"1.0\",\"added_tokens\":[";
  bool first = true;
  for (size_t i = 0; i < pieces.size(); ++i) {
    uint64_t type = pieces[i].type;
    if (type != Control && type != UserDefined && type != Unknown)
      continue;
    json += std::string(first ? "" : ",") + "{\"id\":" + std::to_string(i) +
            ",\"content\":";
    first = false;
    runtime::appendJsonString(json, pieces[i].text);
    json += std::string(",\"single_word\":false,\"lstrip\":false,\"rstrip\":"
                        "false,\"normalized\":false,\"special\":") +
            (type == UserDefined ? "false}" : "true}");
  }
  json += "],\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[" +
          splitAt(words.first) + (words.second ? splitAt(words.second) : "") +
          "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
          "\"trim_offsets\":true,\"use_regex\":false}]},\"decoder\":{\"type\":"
          "\"ByteLevel\"},\"model\":{\"type\":\"BPE\",\"ignore_merges\":" +
          (words.ignoreMerges ? "true" : "false") + ",\"merges\":[";
  uint64_t broken = UINT64_MAX;
  eachString(*merges, [&](uint64_t i, std::string_view text) {
    json += i ? "," : "";
    // A token may begin with a space's sign, never with a space.
    size_t space = text.find(' ', 1);
    if (broken == UINT64_MAX && (space == std::string_view::npos ||
                                 runtime::sanitizeUtf8(text) != text))
      broken = i;
    if (broken != UINT64_MAX)
      return;
    json += "[";
    runtime::appendJsonString(json, text.substr(0, space));
    json += ",";
    runtime::appendJsonString(json, text.substr(space + 1));
    json += "]";
  });
  if (broken != UINT64_MAX)
    return wrong(mergesKey, "merge " + std::to_string(broken) +
                                " is not two tokens with a space between");
  json += "],\"vocab\":{";
  for (size_t i = 0; i < pieces.size(); ++i) {
    json += i ? "," : "";
    runtime::appendJsonString(json, pieces[i].text);
    json += ":" + std::to_string(i);
  }
  json += "}}}";
  return true;
}

static std::optional<std::string> tokenAt(const File &file, int64_t id) {
  const Value *tokens = file.find("tokenizer.ggml.tokens");
  std::optional<std::string> found;
  if (tokens && tokens->isArray() && tokens->element == Kind::String &&
      id >= 0 && static_cast<uint64_t>(id) < tokens->count)
    eachString(*tokens, [&](uint64_t i, std::string_view text) {
      if (i == static_cast<uint64_t>(id))
        found = std::string(text);
    });
  return found;
}

std::string Maker::idToken(const char *key) const {
  std::optional<int64_t> id = file.integer(key);
  return (id ? tokenAt(file, *id) : std::nullopt).value_or("");
}

/// What stands around every text.
bool Maker::setEnds(bool begin) {
  JsonValue config;
  config.kind = JsonValue::Kind::Object;
  auto put = [&](const char *key, JsonValue value) {
    config.keys.push_back(key);
    config.items.push_back(std::move(value));
  };
  auto putText = [&](const char *key, const std::string &text) {
    JsonValue value;
    value.kind = JsonValue::Kind::String;
    value.string = text;
    put(key, value);
  };
  auto putFlag = [&](const char *key, bool otherwise) {
    JsonValue value;
    value.kind = JsonValue::Kind::Bool;
    value.boolean =
        file.flag(std::string("tokenizer.ggml.") + key).value_or(otherwise);
    put(key, value);
  };
  putText("tokenizer_class", "LlamaTokenizer");
  putText("bos_token", idToken("tokenizer.ggml.bos_token_id"));
  putText("eos_token", idToken("tokenizer.ggml.eos_token_id"));
  putFlag("add_bos_token", begin);
  putFlag("add_eos_token", false);
  applyTokenizerConfig(config, json, /*known=*/nullptr);
  return true;
}

std::optional<std::string> Maker::make() {
  const std::string modelKey = "tokenizer.ggml.model",
                    preKey = "tokenizer.ggml.pre";
  std::optional<std::string_view> model = file.text(modelKey);
  if (!file.find(modelKey))
    return lacks("the file has none (key '" + modelKey + "')");
  if (model == std::string_view("llama")) {
    if (!makePieces() || !setEnds(true))
      return std::nullopt;
    return json;
  }
  if (model != std::string_view("gpt2"))
    return lacks("key '" + modelKey + "' is '" +
                 std::string(model.value_or("").substr(0, 64)) +
                 "', expected llama or gpt2");
  std::string_view pre = file.text(preKey).value_or("default");
  std::string known;
  for (const Words &words : kWords) {
    if (pre == words.name) {
      if (!makeBytes(words) || !setEnds(words.addsBegin))
        return std::nullopt;
      return json;
    }
    known += (known.empty() ? "" : ", ") + std::string(words.name);
  }
  return lacks("key '" + preKey + "' says that texts are cut as '" +
               std::string(pre.substr(0, 64)) + "', expected one of " + known +
               "; --tokenizer=FILE names a tokenizer.json instead");
}

} // namespace attune::gguf

namespace attune {

std::optional<std::string> readGgufTokenizer(const std::string &path,
                                             DiagnosticEngine &diags) {
  std::optional<gguf::File> file = gguf::openFile(path, diags);
  if (!file)
    return std::nullopt;
  return gguf::Maker(*file, diags).make();
}

std::optional<GgufChat> readGgufChat(const std::string &path,
                                     DiagnosticEngine &diags) {
  std::optional<gguf::File> file = gguf::openFile(path, diags);
  if (!file)
    return std::nullopt;
  GgufChat chat;
  chat.text = file->text("tokenizer.chat_template").value_or("");
  const std::pair<const char *, const char *> names[] = {
      {"bos_token", "tokenizer.ggml.bos_token_id"},
      {"eos_token", "tokenizer.ggml.eos_token_id"},
      {"unk_token", "tokenizer.ggml.unknown_token_id"},
      {"pad_token", "tokenizer.ggml.padding_token_id"}};
  for (auto [name, key] : names)
    if (std::optional<int64_t> id = file->integer(key))
      if (std::optional<std::string> text = gguf::tokenAt(*file, *id))
        chat.tokens.emplace_back(name, *text);
  return chat;
}

} // namespace attune
