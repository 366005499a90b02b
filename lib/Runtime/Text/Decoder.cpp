//===- Decoder.cpp - Tokens to text ---------------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"
#include "Sequence.h"

#include <algorithm>

namespace attune::runtime {

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

bool Decoder::load(const JsonValue &json, Error &error) {
  joinsWithSpace = false;
  return loadStep(json, 0, error);
}

bool Decoder::hasBytes() const {
  return std::any_of(steps.begin(), steps.end(), [](const Step &step) {
    return step.kind == Step::ByteFallback;
  });
}

static size_t countOf(const JsonValue &json, const char *key) {
  const JsonValue *value = json.find(key);
  return value && value->isInt() && value->integer > 0
             ? static_cast<size_t>(value->integer)
             : 0;
}

bool Decoder::loadStep(const JsonValue &json, unsigned depth, Error &error) {
  std::string type = textOf(json, "type");
  if (type == "Sequence") {
    const std::vector<JsonValue> *inner =
        stepsOfSequence(json, "decoder", "decoders", depth, error);
    return inner && std::all_of(inner->begin(), inner->end(),
                                [&](const JsonValue &step) {
                                  return loadStep(step, depth + 1, error);
                                });
  }
  Step step;
  if (type == "ByteLevel") {
    step.kind = Step::ByteLevel;
  } else if (type == "WordPiece") {
    step.kind = Step::WordPiece;
    step.text = textOf(json, "prefix");
    step.cleanup = flagOf(json, "cleanup", true);
  } else if (type == "Metaspace") {
    step.kind = Step::Metaspace;
    step.text = textOf(json, "replacement");
    step.dropsFirst = textOf(json, "prepend_scheme") != "never" &&
                      flagOf(json, "add_prefix_space", true);
  } else if (type == "BPEDecoder") {
    step.kind = Step::Bpe;
    step.text = textOf(json, "suffix");
  } else if (type == "ByteFallback") {
    step.kind = Step::ByteFallback;
  } else if (type == "Fuse") {
    step.kind = Step::Fuse;
  } else if (type == "Strip") {
    step.kind = Step::Strip;
    step.text = textOf(json, "content");
    step.start = countOf(json, "start");
    step.stop = countOf(json, "stop");
  } else if (type == "Replace") {
    step.kind = Step::Replace;
    step.content = textOf(json, "content");
    if (!loadPattern(json, "Replace", unicode, step.regex, error))
      return false;
  } else if (type == "CTC") {
    step.kind = Step::Ctc;
    step.text = textOf(json, "pad_token");
    step.content = textOf(json, "word_delimiter_token");
    step.cleanup = flagOf(json, "cleanup", true);
  } else {
    return error.notSupported("decoder '" + type + "' is not supported");
  }
  steps.push_back(std::move(step));
  return true;
}

//===----------------------------------------------------------------------===//
// Applying
//===----------------------------------------------------------------------===//

static std::string replaceAll(const std::string &text, std::string_view from,
                              std::string_view to) {
  if (from.empty())
    return text;
  std::string out;
  size_t last = 0;
  for (size_t at;
       (at = text.find(from.data(), last, from.size())) != std::string::npos;
       last = at + from.size()) {
    out.append(text, last, at - last);
    out.append(to.data(), to.size());
  }
  return out.append(text, last, std::string::npos);
}

/// No space before punctuation and the ends of English contractions.
static std::string cleaned(std::string text) {
  static constexpr const char *pairs[][2] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  if (text.find(' ') == std::string::npos)
    return text;
  for (const auto &pair : pairs)
    text = replaceAll(text, pair[0], pair[1]);
  return text;
}

/// <0xAB> is a byte. Bytes in a row are characters if they are UTF-8, and as
/// many replacement characters if not.
void Decoder::joinBytes(std::vector<std::string> &texts) const {
  std::vector<std::string> out;
  std::string bytes;
  auto flush = [&] {
    if (bytes.empty())
      return;
    if (sanitizeUtf8(bytes) == bytes) {
      out.push_back(bytes);
    } else {
      for (size_t i = 0; i < bytes.size(); ++i)
        out.push_back("\xEF\xBF\xBD");
    }
    bytes.clear();
  };
  auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
  };
  for (std::string &text : texts) {
    bool byte = text.size() == 6 && text.compare(0, 3, "<0x") == 0 &&
                text[5] == '>' && digit(text[3]) >= 0 && digit(text[4]) >= 0;
    if (byte) {
      bytes += static_cast<char>(digit(text[3]) << 4 | digit(text[4]));
      continue;
    }
    flush();
    out.push_back(std::move(text));
  }
  flush();
  texts = std::move(out);
}

std::string Decoder::replaced(const Step &step, const std::string &text) const {
  std::vector<Regex::Match> matches;
  size_t budget = Regex::stepsFor(text.size());
  std::string out;
  size_t last = 0;
  if (!text.empty() && step.regex.findAll(text, matches, budget))
    for (auto [begin, end] : matches) {
      out.append(text, last, begin - last);
      out += step.content;
      last = end;
    }
  return out.append(text, last, std::string::npos);
}

/// Takes off up to `start` characters `what` in front, `stop` behind.
static void stripEnds(std::string &text, const std::string &what, size_t start,
                      size_t stop) {
  size_t begin = 0, end = text.size();
  while (start-- > 0 && !what.empty() &&
         text.compare(begin, what.size(), what) == 0)
    begin += what.size();
  while (stop-- > 0 && !what.empty() && end >= begin + what.size() &&
         text.compare(end - what.size(), what.size(), what) == 0)
    end -= what.size();
  text = text.substr(begin, end - begin);
}

void Decoder::applyStep(const Step &step,
                        std::vector<std::string> &texts) const {
  switch (step.kind) {
  case Step::ByteLevel: {
    std::string out;
    for (const std::string &text : texts)
      if (!alphabet.appendBytes(out, text))
        out += text;
    texts = {std::move(out)};
    return;
  }
  case Step::ByteFallback:
    joinBytes(texts);
    return;
  case Step::Fuse: {
    std::string out;
    for (const std::string &text : texts)
      out += text;
    texts = {std::move(out)};
    return;
  }
  case Step::Ctc: {
    std::vector<std::string> out;
    for (size_t i = 0; i < texts.size(); ++i) {
      if (i && texts[i] == texts[i - 1])
        continue;
      std::string text = replaceAll(texts[i], step.text, "");
      if (step.cleanup)
        text = replaceAll(cleaned(std::move(text)), step.content, " ");
      if (!text.empty())
        out.push_back(std::move(text));
    }
    texts = std::move(out);
    return;
  }
  default:
    break;
  }
  for (size_t i = 0; i < texts.size(); ++i) {
    std::string &text = texts[i];
    if (step.kind == Step::WordPiece) {
      if (i && text.compare(0, step.text.size(), step.text) == 0)
        text.erase(0, step.text.size());
      else if (i)
        text.insert(0, " ");
      if (step.cleanup)
        text = cleaned(std::move(text));
    } else if (step.kind == Step::Metaspace) {
      text = replaceAll(text, step.text, i || !step.dropsFirst ? " " : "");
    } else if (step.kind == Step::Bpe) {
      text = replaceAll(text, step.text, i + 1 == texts.size() ? "" : " ");
    } else if (step.kind == Step::Strip) {
      stripEnds(text, step.text, step.start, step.stop);
    } else {
      text = replaced(step, text);
    }
  }
}

std::string Decoder::apply(std::vector<std::string> texts) const {
  for (const Step &step : steps)
    applyStep(step, texts);
  std::string out;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (i && joinsWithSpace)
      out += ' ';
    out += texts[i];
  }
  return out;
}

} // namespace attune::runtime
