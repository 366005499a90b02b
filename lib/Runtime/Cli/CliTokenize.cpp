//===- CliTokenize.cpp - Ids and pieces of a text -------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/Cli.h"
#include "attune/Runtime/Json.h"

namespace attune::runtime {

const OptionSpecs &TokenizeOptions::specs() {
  static const OptionSpecs specs = {
      {"text", "TEXT", "text to cut into tokens; - reads it from stdin"},
      {"pair", "TEXT", "second text, for models that compare two"},
      {"texts", "FILE",
       "a JSON string, or an array of one or two, on each line; prints ids"},
      {"plain", "", "no tokens around the text"},
      {"fit", "", "truncate and pad as the tokenizer's file says"},
      {"format", "text|ids|json",
       "print ids and pieces (default), ids alone, or an object"},
  };
  return specs;
}

bool TokenizeOptions::set(const ParsedOption &option, bool &mine,
                          Error &error) {
  mine = true;
  bool on = option.value == "true";
  if (option.name == "text") {
    hasText = true;
    text = option.value;
  } else if (option.name == "pair") {
    hasPair = true;
    pair = option.value;
  } else if (option.name == "texts") {
    texts = option.value;
  } else if (option.name == "plain") {
    encode.addSpecial = !on;
  } else if (option.name == "fit") {
    encode.fit = on;
  } else if (option.name == "format") {
    if (option.value != "text" && option.value != "ids" &&
        option.value != "json")
      return error.set(ExitBadCommandLine,
                       "--format: expected text, ids or json, found '" +
                           option.value + "'");
    format = option.value;
  } else {
    mine = false;
  }
  return true;
}

bool TokenizeOptions::finish(Error &error) const {
  if (hasText == !texts.empty())
    return error.set(ExitBadCommandLine,
                     "tokenize needs --text=TEXT or --texts=FILE");
  if (hasPair && !hasText)
    return error.set(ExitBadCommandLine, "--pair needs --text=TEXT");
  return true;
}

static bool readAll(FILE *file, std::string &text, Error &error) {
  char buffer[65536];
  while (size_t count = std::fread(buffer, 1, sizeof(buffer), file)) {
    text.append(buffer, count);
    if (text.size() > (size_t(1) << 30))
      return error.set(ExitResourceLimit, "a text of more than 1 GiB");
  }
  return std::ferror(file) == 0 || error.badInput("cannot read the text");
}

static std::string joined(const std::vector<int64_t> &ids) {
  std::string out;
  for (size_t i = 0; i < ids.size(); ++i)
    out += (i ? "," : "") + std::to_string(ids[i]);
  return out;
}

static std::string formatEncoding(const Tokenizer &tokenizer,
                                  const Encoding &encoding,
                                  const TokenizeOptions &options) {
  const std::vector<int64_t> &ids = encoding.ids;
  if (options.format == "ids")
    return joined(ids) + "\n";
  std::string out;
  if (options.format == "text") {
    for (int64_t id : ids) {
      std::string number = std::to_string(id);
      if (number.size() < 7)
        number.insert(0, 7 - number.size(), ' ');
      out += number + "  ";
      appendJsonString(out, tokenizer.tokenOf(id));
      out += "\n";
    }
    return out;
  }
  out = "{\"ids\":[" + joined(ids) + "],\"type_ids\":[" +
        joined(encoding.typeIds) + "],\"mask\":[" + joined(encoding.mask) +
        "],\"pieces\":[";
  for (size_t i = 0; i < ids.size(); ++i) {
    out += i ? "," : "";
    appendJsonString(out, tokenizer.tokenOf(ids[i]));
  }
  out += "],\"text\":";
  appendJsonString(out, tokenizer.decode(ids, /*skipSpecial=*/true));
  return out + "}\n";
}

/// One line of --texts.
static bool encodeLine(const Tokenizer &tokenizer,
                       const TokenizeOptions &options, std::string_view line,
                       Encoding &encoding, Error &error) {
  JsonValue value;
  std::string problem;
  if (!parseJson(line, value, problem))
    return error.badInput(problem);
  std::vector<JsonValue> parts = {value};
  if (value.isArray())
    parts = value.items;
  bool good = parts.size() == 1 || parts.size() == 2;
  for (const JsonValue &part : parts)
    good = good && part.isString();
  if (!good)
    return error.badInput("expected a string, or an array of one or two");
  std::string_view second = parts.back().string;
  return tokenizer.encode(parts[0].string,
                          parts.size() == 2 ? &second : nullptr, options.encode,
                          encoding, error);
}

static bool tokenizeLines(const Tokenizer &tokenizer,
                          const TokenizeOptions &options, FILE *out,
                          Error &error) {
  FILE *file = std::fopen(options.texts.c_str(), "rb");
  if (!file)
    return error.badInput(options.texts + ": cannot open the file");
  std::string all;
  bool good = readAll(file, all, error);
  std::fclose(file);
  TokenizeOptions each = options;
  if (each.format == "text")
    each.format = "ids";
  size_t number = 1;
  for (size_t at = 0; good && at < all.size(); ++number) {
    size_t end = std::min(all.find('\n', at), all.size());
    Encoding encoding;
    good =
        encodeLine(tokenizer, options,
                   std::string_view(all).substr(at, end - at), encoding, error);
    if (!good)
      error.message =
          options.texts + ":" + std::to_string(number) + ": " + error.message;
    else
      std::fputs(formatEncoding(tokenizer, encoding, each).c_str(), out);
    at = end + 1;
  }
  return good;
}

bool executeTokenize(const Tokenizer &tokenizer, const TokenizeOptions &options,
                     FILE *out, Error &error) {
  bool good;
  if (!options.texts.empty()) {
    good = tokenizeLines(tokenizer, options, out, error);
  } else {
    std::string text = options.text;
    if (text == "-") {
      text.clear();
      if (!readAll(stdin, text, error))
        return false;
    }
    std::string_view second = options.pair;
    Encoding encoding;
    good = tokenizer.encode(text, options.hasPair ? &second : nullptr,
                            options.encode, encoding, error);
    if (good)
      std::fputs(formatEncoding(tokenizer, encoding, options).c_str(), out);
  }
  return good &&
         (std::fflush(out) == 0 || error.badInput("cannot write the output"));
}

} // namespace attune::runtime
