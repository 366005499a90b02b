//===- GgufTokenizer.cpp - The tokenizer of a GGUF file ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GgufConfig.h"
#include "GgufWords.h"

#include "../Tokenizers/SentencePiece.h"
#include "../Tokenizers/TokenizerConfig.h"

#include "attune/Import/Gguf.h"
#include "attune/Runtime/Tokenizer.h"
#include "attune/Runtime/Utf8.h"

#include <cmath>

namespace attune::gguf {

using runtime::JsonValue;

static constexpr uint64_t kMostTokens = uint64_t(1) << 22;

namespace {
class Maker {
public:
  Maker(const File &file, DiagnosticEngine &diags) : file(file), diags(diags) {}

  /// The text; empty after a warning, nothing after an error.
  std::optional<std::string> make();

private:
  bool wrong(const std::string &key, const std::string &what) {
    failAt(file, key, what, diags);
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
  bool makePieces(bool unigram);
  bool readCharacters(std::string &map);
  bool makeBytes(const Words &words);
  bool makeWordPieces();
  std::string addedTokens() const;
  std::string vocabulary() const;
  bool setEnds(bool begin, bool end);
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

/// "llama": pieces of SentencePiece's BPE; "t5": of its Unigram.
bool Maker::makePieces(bool unigram) {
  if (!readPieces(/*scored=*/true))
    return false;
  PieceModel model;
  model.type = unigram ? 1 : 2;
  if (unigram && !readCharacters(model.charsmap))
    return false;
  model.removesSpace =
      file.flag("tokenizer.ggml.remove_extra_whitespaces").value_or(false);
  model.dummyPrefix =
      file.flag("tokenizer.ggml.add_space_prefix").value_or(!unigram);
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

/// How characters are changed before a text is cut.
bool Maker::readCharacters(std::string &map) {
  const std::string key = "tokenizer.ggml.precompiled_charsmap";
  const Value *value = file.find(key);
  if (!value)
    return true;
  if (!value->isArray() ||
      (value->element != Kind::U8 && value->element != Kind::I8))
    return wrong(key, "expected an array of bytes, found " + value->describe());
  map.assign(reinterpret_cast<const char *>(value->data), value->count);
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
  std::string cuts;
  for (const char *cut : words.cuts)
    cuts += cut ? splitAt(cut) : "";
  json = "{\"version\":\"1.0\",\"added_tokens\":[" + addedTokens() +
         "],\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[" +
         cuts +
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
  json += "],\"vocab\":{" + vocabulary() + "}}}";
  return true;
}

/// Tokens that are found in a text before it is cut.
std::string Maker::addedTokens() const {
  std::string text;
  for (size_t i = 0; i < pieces.size(); ++i) {
    uint64_t type = pieces[i].type;
    if (type != Control && type != UserDefined && type != Unknown)
      continue;
    text += std::string(text.empty() ? "" : ",") +
            "{\"id\":" + std::to_string(i) + ",\"content\":";
    runtime::appendJsonString(text, pieces[i].text);
    text += std::string(",\"single_word\":false,\"lstrip\":false,\"rstrip\":"
                        "false,\"normalized\":false,\"special\":") +
            (type == UserDefined ? "false}" : "true}");
  }
  return text;
}

std::string Maker::vocabulary() const {
  std::string text;
  for (size_t i = 0; i < pieces.size(); ++i) {
    text += i ? "," : "";
    runtime::appendJsonString(text, pieces[i].text);
    text += ":" + std::to_string(i);
  }
  return text;
}

/// "bert": WordPiece. Files have a sign before the first piece of a word, where
/// BERT's own have "##" before the others.
bool Maker::makeWordPieces() {
  static constexpr std::string_view start = "\u2581";
  if (!readPieces(/*scored=*/false))
    return false;
  const std::pair<std::string, int64_t> keys[] = {
      {"tokenizer.ggml.cls_token_id", 101},
      {"tokenizer.ggml.seperator_token_id", 102},
      {"tokenizer.ggml.unknown_token_id", 100}};
  std::string names[3];
  int64_t ids[3];
  for (int i = 0; i < 3; ++i) {
    auto [key, otherwise] = keys[i];
    ids[i] = file.integer(key).value_or(otherwise);
    // The first files call that of the class the begin.
    if (i == 0 && !file.find(key))
      ids[i] = file.integer("tokenizer.ggml.bos_token_id").value_or(otherwise);
    if (ids[i] < 0 || ids[i] >= static_cast<int64_t>(pieces.size()))
      return wrong(key, "token " + std::to_string(ids[i]) + " is none of the " +
                            std::to_string(pieces.size()));
    // Whatever type it is given, it stands for itself.
    if (pieces[ids[i]].type == Normal)
      pieces[ids[i]].type = Control;
    if (pieces[ids[i]].text.rfind(start, 0) == 0)
      pieces[ids[i]].text.erase(0, start.size());
    runtime::appendJsonString(names[i], pieces[ids[i]].text);
  }
  for (Piece &piece : pieces) {
    if (piece.type == Control || piece.type == Unknown)
      continue;
    if (piece.text.rfind(start, 0) == 0)
      piece.text.erase(0, start.size());
    else
      piece.text.insert(0, "##");
  }
  bool lower = file.flag("tokenizer.ggml.normalizer.lowercase").value_or(true);
  bool strips =
      file.flag("tokenizer.ggml.normalizer.strip_accents").value_or(lower);
  auto special = [&](int i) {
    return "{\"SpecialToken\":{\"id\":" + names[i] + ",\"type_id\":";
  };
  auto entry = [&](int i) {
    return names[i] + ":{\"id\":" + names[i] + ",\"ids\":[" +
           std::to_string(ids[i]) + "],\"tokens\":[" + names[i] + "]}";
  };
  auto truth = [](bool value) { return value ? "true" : "false"; };
  const std::string first = "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}",
                    second = "{\"Sequence\":{\"id\":\"B\",\"type_id\":1}}";
  std::string one = special(0) + "0}}," + first + "," + special(1) + "0}}";
  json = "{\"version\":\"1.0\",\"added_tokens\":[" + addedTokens() +
         "],\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_text\":true,"
         "\"handle_chinese_chars\":true,\"strip_accents\":" +
         truth(strips) + ",\"lowercase\":" + truth(lower) +
         "},\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},"
         "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[" +
         one + "],\"pair\":[" + one + "," + second + "," + special(1) +
         "1}}],\"special_tokens\":{" + entry(0) + "," + entry(1) +
         "}},\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\","
         "\"cleanup\":true},\"model\":{\"type\":\"WordPiece\",\"unk_token\":" +
         names[2] +
         ",\"continuing_subword_prefix\":\"##\","
         "\"max_input_chars_per_word\":100,\"vocab\":{" +
         vocabulary() + "}}}";
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
bool Maker::setEnds(bool begin, bool end) {
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
  putFlag("add_eos_token", end);
  applyTokenizerConfig(config, json, /*known=*/nullptr);
  return true;
}

std::optional<std::string> Maker::make() {
  const std::string modelKey = "tokenizer.ggml.model",
                    preKey = "tokenizer.ggml.pre";
  std::optional<std::string_view> model = file.text(modelKey);
  if (!file.find(modelKey))
    return lacks("the file has none (key '" + modelKey + "')");
  bool unigram = model == std::string_view("t5");
  if (unigram || model == std::string_view("llama")) {
    if (!makePieces(unigram) || !setEnds(!unigram, unigram))
      return std::nullopt;
    return json;
  }
  if (model == std::string_view("bert"))
    return makeWordPieces() ? std::optional<std::string>(json) : std::nullopt;
  if (model != std::string_view("gpt2"))
    return lacks("key '" + modelKey + "' is '" +
                 std::string(model.value_or("").substr(0, 64)) +
                 "', expected llama, gpt2, bert or t5");
  std::string_view pre = file.text(preKey).value_or("default");
  if (pre == "default")
    diags.warning(atPath(file.path()),
                  "key '" + preKey + "' " +
                      (file.find(preKey) ? "is 'default'" : "is missing") +
                      ": texts are cut as llama.cpp cuts them then, which may "
                      "not be as the model's own tokenizer does; "
                      "--tokenizer=FILE names a tokenizer.json instead");
  const Words *words = findWords(pre);
  if (!words)
    return lacks("key '" + preKey + "' says that texts are cut as '" +
                 std::string(pre.substr(0, 64)) + "', expected one of " +
                 knownWords() +
                 "; --tokenizer=FILE names a tokenizer.json instead");
  if (!makeBytes(*words) || !setEnds(words->addsBegin, /*end=*/false))
    return std::nullopt;
  return json;
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
