//===- Tokenizers.cpp - Tokenizer files of every kind ---------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Import/Tokenizers.h"
#include "SentencePiece.h"
#include "TokenizerConfig.h"
#include "attune/Import/Gguf.h"
#include "attune/Weights/GgufFile.h"

#include "attune/Runtime/Json.h"
#include "attune/Runtime/Tokenizer.h"
#include "attune/Runtime/Utf8.h"

#include <algorithm>
#include <filesystem>
#include <vector>

namespace fs = std::filesystem;

namespace attune {

static constexpr uint64_t maxFileBytes = uint64_t(128) << 20;

static bool endsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() &&
         text.substr(text.size() - end.size()) == end;
}

std::string findTokenizerFile(const std::string &pathOrPair) {
  std::string path = gguf::splitPair(pathOrPair).model;
  std::error_code ignored;
  if (path.empty())
    return "";
  fs::path folder = path;
  if (fs::is_regular_file(folder, ignored) && isGgufFile(path))
    return path;
  if (!fs::is_directory(folder, ignored))
    folder = folder.parent_path();
  for (const char *name :
       {"tokenizer.json", "tekken.json", "tokenizer.model", "spiece.model",
        "sentencepiece.bpe.model", "spm.model", "vocab.json", "vocab.txt"}) {
    fs::path file = folder / name;
    if (!fs::exists(file, ignored))
      continue;
    if (std::string_view(name) == "vocab.json" &&
        !fs::exists(folder / "merges.txt", ignored))
      continue;
    return file.string();
  }
  std::vector<std::string> others;
  for (const auto &entry : fs::directory_iterator(
           folder.empty() ? fs::path(".") : folder, ignored)) {
    std::string name = entry.path().filename().string();
    if (endsWith(name, ".tiktoken") ||
        (name.rfind("rwkv_vocab", 0) == 0 && endsWith(name, ".txt")))
      others.push_back(entry.path().string());
  }
  std::sort(others.begin(), others.end());
  if (!others.empty())
    return others.front();
  // A folder that is a model in GGUF.
  if (!fs::is_directory(path, ignored) ||
      fs::exists(folder / "config.json", ignored))
    return "";
  std::vector<std::string> models = gguf::modelsIn(path);
  return models.size() == 1 && isGgufFile(models.front()) ? models.front() : "";
}

static SourceLocation locate(const std::shared_ptr<const SourceFile> &file,
                             size_t byte) {
  SourceLocation where = {file, 1, 1};
  for (size_t i = 0; i < byte && i < file->text.size(); ++i) {
    ++where.column;
    if (file->text[i] == '\n') {
      ++where.line;
      where.column = 1;
    }
  }
  return where;
}

/// Calls `use` for each line without its end.
template <typename Use>
static bool eachLine(std::string_view text, const Use &use) {
  for (size_t at = 0, line = 1; at < text.size(); ++line) {
    size_t end = std::min(text.find('\n', at), text.size());
    std::string_view content = text.substr(at, end - at);
    if (!content.empty() && content.back() == '\r')
      content.remove_suffix(1);
    if (!use(content, line))
      return false;
    at = end + 1;
  }
  return true;
}

static constexpr char byteLevelParts[] =
    "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
    "\"trim_offsets\":true,\"use_regex\":true},\"decoder\":{\"type\":"
    "\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true,"
    "\"use_regex\":true},";

/// vocab.json and the merges.txt beside it.
static bool convertVocabAndMerges(const std::string &path,
                                  const std::string &vocab, std::string &json,
                                  DiagnosticEngine &diags) {
  fs::path merges = fs::path(path).parent_path() / "merges.txt";
  auto file = readSourceFile(merges.string(), diags, maxFileBytes);
  if (!file)
    return false;
  json = std::string("{\"version\":\"1.0\",\"added_tokens\":[],") +
         byteLevelParts + "\"model\":{\"type\":\"BPE\",\"merges\":[";
  bool first = true;
  bool good = eachLine(file->text, [&](std::string_view line, size_t number) {
    if (line.empty() || line.substr(0, 8) == "#version")
      return true;
    if (std::count(line.begin(), line.end(), ' ') != 1) {
      diags.error({file, static_cast<uint32_t>(number), 1},
                  "expected two tokens with a space between");
      return false;
    }
    json += first ? "" : ",";
    first = false;
    runtime::appendJsonString(json, line);
    return true;
  });
  json += "],\"vocab\":" + vocab + "}}";
  return good;
}

/// An error, or a warning where a sound file asks for what is not there: a
/// model without its tokenizer still takes ids. True if it was a warning.
static bool report(const runtime::Error &error, const SourceLocation &place,
                   DiagnosticEngine &diags) {
  if (error.unsupported)
    diags.warning(place, "text prompts will not work, and the product carries "
                         "no tokenizer: " +
                             error.message);
  else
    diags.error(place, error.message);
  return error.unsupported;
}

/// Whether pieces of `path` have their numbers in the vocab.json beside it, as
/// M2M-100's have.
static bool isNumberedBeside(const std::string &path) {
  std::error_code ignored;
  fs::path folder = fs::path(path).parent_path();
  return fs::exists(folder / "vocab.json", ignored) &&
         !fs::exists(folder / "merges.txt", ignored);
}

/// The text that stands for `file`, or nothing if it is damaged. The text is
/// empty if the file asks for what is not supported.
static std::optional<std::string>
convert(const std::string &path, const std::shared_ptr<const SourceFile> &file,
        DiagnosticEngine &diags) {
  std::string name = fs::path(path).filename().string(), json;
  size_t first = file->text.find_first_not_of(" \t\r\n");
  bool isJson = first != std::string::npos && file->text[first] == '{';
  runtime::Error error;
  bool good = true;
  size_t where = 0;
  if (file->text.empty())
    good = error.badInput("the file is empty");
  else if (file->text.substr(0, 40).find("version https://git-lfs") == 0)
    good = error.badInput("a Git LFS pointer and not the file itself; 'git lfs "
                          "pull' fetches it");
  else if (name == "vocab.json")
    return convertVocabAndMerges(path, file->text, json, diags)
               ? std::optional<std::string>(json)
               : std::nullopt;
  else if (name == "vocab.txt")
    good = convertVocabText(file->text, json, error);
  else if (looksLikeTekken(name))
    good = convertTekken(file->text, json, error, where);
  else if (isJson)
    return file->text;
  else if (looksLikeWorld(file->text))
    good = convertWorld(file->text, json, error);
  else if (looksLikeRanks(file->text))
    good = convertRanks(file->text, name == "qwen.tiktoken", json, error);
  else if (endsWith(name, ".model") && isNumberedBeside(path))
    good = error.notSupported("the numbers of the tokens are in vocab.json "
                              "beside it (M2M-100), which is not read; a "
                              "tokenizer.json would be");
  else if (endsWith(name, ".model"))
    good = convertSentencePiece(file->text, json, error);
  else
    return file->text; // the reader says what is wrong
  if (good)
    return json;
  SourceLocation place =
      where ? locate(file, where) : SourceLocation{file, 0, 0};
  return report(error, place, diags) ? std::optional<std::string>("")
                                     : std::nullopt;
}

/// Lets the tokenizer_config.json beside `path` change `json`.
static bool applyConfigBeside(const std::string &path, std::string &json,
                              const runtime::Tokenizer &known,
                              DiagnosticEngine &diags) {
  fs::path config = fs::path(path).parent_path() / "tokenizer_config.json";
  std::error_code ignored;
  if (!fs::exists(config, ignored))
    return true;
  auto settings = readSourceFile(config.string(), diags, maxFileBytes);
  if (!settings)
    return false;
  runtime::JsonLimits limits;
  limits.maxValues = size_t(1) << 20;
  runtime::JsonReader reader(settings->text, limits);
  runtime::JsonValue root;
  if (reader.read(root) && !root.isObject())
    reader.fail("expected an object");
  else if (!reader.failed() && reader.peek() != -1)
    reader.fail("expected the end of the text");
  if (reader.failed()) {
    diags.error(locate(settings, reader.position), reader.error);
    return false;
  }
  applyTokenizerConfig(root, json, &known);
  return true;
}

/// No tokenizer, and what is wrong was said; an error, or a warning.
static std::optional<TokenizerFile> without(bool good) {
  return good ? std::optional<TokenizerFile>(TokenizerFile()) : std::nullopt;
}

/// Whether it is a pipe of a folder, which may have no writer; that of a
/// shell's
/// <(command) has one.
static bool isNamedPipe(const std::string &path) {
  std::error_code ignored;
  return fs::is_fifo(path, ignored) && path.rfind("/dev/", 0) != 0 &&
         path.rfind("/proc/", 0) != 0;
}

std::optional<TokenizerFile> readTokenizer(const std::string &path,
                                           DiagnosticEngine &diags) {
  TokenizerFile result;
  runtime::Error error;
  if (isGgufFile(path)) {
    std::optional<std::string> json = readGgufTokenizer(path, diags);
    if (!json || json->empty())
      return without(json.has_value());
    result.json = std::move(*json);
    result.tokenizer = runtime::Tokenizer::create(result.json, error);
    if (result.tokenizer)
      return result;
    auto whole = std::make_shared<SourceFile>();
    whole->path = path;
    error.message = "the tokenizer: " + error.message;
    return without(report(error, {whole, 0, 0}, diags));
  }
  if (isNamedPipe(path)) {
    auto pipe = std::make_shared<SourceFile>();
    pipe->path = path;
    diags.error({pipe, 0, 0}, "is a pipe, expected a file");
    return std::nullopt;
  }
  auto file = readSourceFile(path, diags, maxFileBytes);
  if (!file)
    return std::nullopt;
  std::optional<std::string> json = convert(path, file, diags);
  if (!json || json->empty())
    return without(json.has_value());
  result.json = std::move(*json);
  // Only a file that was not converted has the place of what is wrong.
  bool converted = result.json != file->text;
  size_t where = 0;
  result.tokenizer = runtime::Tokenizer::create(result.json, error, &where);
  if (!result.tokenizer)
    return without(report(
        error, converted ? SourceLocation{file, 0, 0} : locate(file, where),
        diags));
  size_t before = std::hash<std::string>()(result.json);
  if (!applyConfigBeside(path, result.json, *result.tokenizer, diags))
    return std::nullopt;
  if (std::hash<std::string>()(result.json) == before)
    return result;
  result.tokenizer = runtime::Tokenizer::create(result.json, error);
  if (!result.tokenizer)
    return without(report(error, {file, 0, 0}, diags));
  return result;
}

} // namespace attune
