//===- Normalizer.cpp - Changing text before it is cut --------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Normalizer.h"
#include "Sequence.h"

#include <algorithm>
#include <cstring>

namespace attune::runtime {

//===----------------------------------------------------------------------===//
// Parts that others use, too
//===----------------------------------------------------------------------===//

ByteAlphabet::ByteAlphabet() {
  std::fill(std::begin(byteOf), std::end(byteOf), int16_t(-1));
  uint32_t next = 0x100;
  for (unsigned b = 0; b < 256; ++b) {
    bool visible = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) ||
                   (b >= 0xAE && b <= 0xFF);
    uint32_t c = visible ? b : next++;
    byteOf[c] = static_cast<int16_t>(b);
    std::string text;
    appendUtf8(text, c);
    spelled[b].length = static_cast<uint8_t>(text.size());
    std::memcpy(spelled[b].bytes, text.data(), text.size());
  }
}

bool ByteAlphabet::appendBytes(std::string &out, std::string_view text) const {
  size_t before = out.size();
  for (size_t at = 0; at < text.size();) {
    uint32_t c;
    at += decodeCharacter(text, at, c);
    if (c >= 0x200 || byteOf[c] < 0) {
      out.resize(before);
      return false;
    }
    out += static_cast<char>(byteOf[c]);
  }
  return true;
}

bool flagOf(const JsonValue &json, const char *key, bool otherwise) {
  const JsonValue *value = json.find(key);
  return value && value->isBool() ? value->boolean : otherwise;
}

std::string textOf(const JsonValue &json, const char *key) {
  const JsonValue *value = json.find(key);
  return value && value->isString() ? value->string : "";
}

bool loadPattern(const JsonValue &json, const char *owner,
                 const Unicode &unicode, Regex &regex, Error &error) {
  const JsonValue *pattern = json.find("pattern");
  if (pattern && pattern->isObject()) {
    const JsonValue *text = pattern->find("String");
    if (text && text->isString()) {
      regex.compileLiteral(text->string);
      return true;
    }
    text = pattern->find("Regex");
    if (text && text->isString()) {
      RegexProblem problem;
      if (regex.compile(text->string, unicode, problem))
        return true;
      error.badInput(std::string("the pattern of '") + owner + "' has " +
                     problem.message + ": " + text->string.substr(0, 200));
      error.unsupported = problem.unsupported;
      return false;
    }
  }
  return error.badInput(std::string("'") + owner +
                        "' without a 'pattern' that is {\"String\": ...} or "
                        "{\"Regex\": ...}");
}

//===----------------------------------------------------------------------===//
// PrecompiledMap
//===----------------------------------------------------------------------===//

bool PrecompiledMap::load(std::string_view base64) {
  std::string bytes;
  if (!decodeBase64(base64, bytes) || bytes.size() < 4)
    return false;
  auto word = [&](size_t at) {
    uint32_t value = 0;
    for (unsigned i = 0; i < 4; ++i)
      value |= uint32_t(static_cast<unsigned char>(bytes[at + i])) << 8 * i;
    return value;
  };
  uint32_t size = word(0);
  if (size % 4 || size > bytes.size() - 4)
    return false;
  for (size_t at = 4; at < 4 + size_t(size); at += 4)
    units.push_back(word(at));
  replacements = bytes.substr(4 + size_t(size));
  return true;
}

/// Takes the shortest key that `text` starts with, as the reference does.
bool PrecompiledMap::find(std::string_view text,
                          std::string_view &replacement) const {
  auto offset = [](uint32_t unit) {
    return size_t(unit >> 10) << ((unit & 0x200) >> 6);
  };
  if (units.empty())
    return false;
  size_t node = offset(units[0]);
  for (char byte : text) {
    uint32_t label = static_cast<unsigned char>(byte);
    node ^= label;
    if (label == 0 || node >= units.size())
      return false;
    uint32_t unit = units[node];
    if ((unit & 0x800000FF) != label)
      return false;
    node ^= offset(unit);
    if (!(unit >> 8 & 1))
      continue;
    if (node >= units.size())
      return false;
    size_t begin = units[node] & 0x7FFFFFFF;
    if (begin >= replacements.size())
      return false;
    size_t end = std::min(replacements.find('\0', begin), replacements.size());
    replacement = std::string_view(replacements).substr(begin, end - begin);
    return true;
  }
  return false;
}

void PrecompiledMap::apply(const Unicode &unicode, std::string_view text,
                           std::string &out) const {
  std::string_view replacement;
  for (size_t at = 0; at < text.size();) {
    size_t end = unicode.graphemeEnd(text, at);
    if (end - at < 6 && find(text.substr(at, end - at), replacement)) {
      out.append(replacement.data(), replacement.size());
      at = end;
      continue;
    }
    while (at < end) {
      uint32_t c;
      unsigned length = decodeCharacter(text, at, c);
      std::string_view part = text.substr(at, length);
      if (find(part, replacement))
        part = replacement;
      out.append(part.data(), part.size());
      at += length;
    }
  }
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

bool Normalizer::load(const JsonValue &json, Error &error) {
  return loadStep(json, 0, error);
}

bool Normalizer::isByteLevel() const {
  return std::any_of(steps.begin(), steps.end(), [](const Step &step) {
    return step.kind == Step::ByteLevel;
  });
}

/// The kinds that have flags at most.
bool Normalizer::loadSimple(const std::string &type, const JsonValue &json,
                            Step &step) {
  if (type == "NFC" || type == "NFD" || type == "NFKC" || type == "NFKD") {
    step.kind = Step::Form;
    step.compatible = type.size() == 4;
    step.composed = type.back() == 'C';
  } else if (type == "Lowercase") {
    step.kind = Step::Lowercase;
  } else if (type == "StripAccents") {
    step.kind = Step::StripAccents;
  } else if (type == "Strip") {
    step.kind = Step::Strip;
    step.left = flagOf(json, "strip_left", true);
    step.right = flagOf(json, "strip_right", true);
  } else if (type == "Nmt") {
    step.kind = Step::Nmt;
  } else if (type == "ByteLevel") {
    step.kind = Step::ByteLevel;
  } else if (type == "BertNormalizer") {
    step.kind = Step::Bert;
    step.clean = flagOf(json, "clean_text", true);
    step.chinese = flagOf(json, "handle_chinese_chars", true);
    step.lower = flagOf(json, "lowercase", true);
    step.accents = flagOf(json, "strip_accents", step.lower);
  } else {
    return false;
  }
  return true;
}

bool Normalizer::loadStep(const JsonValue &json, unsigned depth, Error &error) {
  std::string type = textOf(json, "type");
  if (type == "Sequence") {
    const std::vector<JsonValue> *inner =
        stepsOfSequence(json, "normalizer", "normalizers", depth, error);
    return inner && std::all_of(inner->begin(), inner->end(),
                                [&](const JsonValue &step) {
                                  return loadStep(step, depth + 1, error);
                                });
  }
  Step step;
  if (loadSimple(type, json, step)) {
  } else if (type == "Prepend") {
    step.kind = Step::Prepend;
    step.content = textOf(json, "prepend");
  } else if (type == "Replace") {
    step.kind = Step::Replace;
    step.content = textOf(json, "content");
    if (!loadPattern(json, "Replace", unicode, step.regex, error))
      return false;
  } else if (type == "Precompiled") {
    step.kind = Step::Precompiled;
    if (!step.map.load(textOf(json, "precompiled_charsmap")))
      return error.badInput("normalizer 'Precompiled' without a valid "
                            "'precompiled_charsmap'");
  } else {
    return error.notSupported("normalizer '" + type + "' is not supported");
  }
  steps.push_back(std::move(step));
  return true;
}

//===----------------------------------------------------------------------===//
// Applying
//===----------------------------------------------------------------------===//

/// `keep` gets a character and gives what to write, or UINT32_MAX.
template <typename Keep>
static std::string filter(std::string_view text, const Keep &keep) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    uint32_t c;
    at += decodeCharacter(text, at, c);
    uint32_t kept = keep(c);
    if (kept != UINT32_MAX)
      appendCharacter(out, kept);
  }
  return out;
}

std::string Normalizer::lower(std::string_view text) const {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    uint32_t c;
    at += decodeCharacter(text, at, c);
    if (c < 0x80)
      out += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
    else
      unicode.appendLower(out, c);
  }
  return out;
}

static bool isChinese(uint32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
         (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

std::string Normalizer::bertClean(const Step &step,
                                  std::string_view given) const {
  constexpr uint32_t controls = categoryBit(Category::Cc) |
                                categoryBit(Category::Cf) |
                                categoryBit(Category::Co);
  std::string text(given);
  if (step.clean)
    text = filter(text, [&](uint32_t c) -> uint32_t {
      if (c == '\t' || c == '\n' || c == '\r')
        return ' ';
      if (c == 0 || c == 0xFFFD || unicode.isIn(c, controls))
        return UINT32_MAX;
      return Unicode::isSpace(c) ? ' ' : c;
    });
  if (step.chinese) {
    std::string out;
    for (size_t at = 0; at < text.size();) {
      uint32_t c;
      at += decodeCharacter(text, at, c);
      bool apart = isChinese(c);
      if (apart)
        out += ' ';
      appendCharacter(out, c);
      if (apart)
        out += ' ';
    }
    text = std::move(out);
  }
  return text;
}

std::string Normalizer::bertLower(const Step &step,
                                  std::string_view given) const {
  std::string text(given);
  if (step.accents)
    text = filter(text, [&](uint32_t c) {
      return unicode.category(c) == Category::Mn ? UINT32_MAX : c;
    });
  return step.lower ? lower(text) : text;
}

static uint32_t nmt(uint32_t c) {
  if ((c >= 1 && c <= 8) || c == 0x0B || (c >= 0x0E && c <= 0x1F) ||
      c == 0x7F || c == 0x8F || c == 0x9F)
    return UINT32_MAX;
  if (c == 9 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
      (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 ||
      c == 0x2581 || c == 0xFEFF || c == 0xFFFD)
    return ' ';
  return c;
}

static std::string_view strip(std::string_view text, bool left, bool right) {
  uint32_t c;
  while (left && !text.empty()) {
    unsigned length = decodeCharacter(text, 0, c);
    if (!Unicode::isSpace(c))
      break;
    text.remove_prefix(length);
  }
  while (right && !text.empty()) {
    size_t last = previousCharacter(text, text.size());
    decodeCharacter(text, last, c);
    if (!Unicode::isSpace(c))
      break;
    text = text.substr(0, last);
  }
  return text;
}

bool Normalizer::replace(const Step &step, std::string_view text,
                         std::string &out, Error &error) const {
  std::vector<Regex::Match> matches;
  size_t budget = Regex::stepsFor(text.size());
  if (!step.regex.findAll(text, matches, budget))
    return error.badInput("the pattern of normalizer 'Replace' takes too many "
                          "steps on this text");
  size_t last = 0, most = mostFor(text.size());
  for (auto [begin, end] : matches) {
    out.append(text.data() + last, begin - last);
    out += step.content;
    last = end;
    if (out.size() > most)
      break;
  }
  out.append(text.data() + last, text.size() - last);
  return true;
}

bool Normalizer::applyStep(const Step &step, std::string_view text,
                           std::string &out, Error &error) const {
  out.clear();
  switch (step.kind) {
  case Step::Form:
    out = unicode.normalize(text, step.compatible, step.composed);
    return true;
  case Step::Lowercase:
    out = lower(text);
    return true;
  case Step::StripAccents:
    out = filter(text, [&](uint32_t c) {
      return unicode.isIn(c, markCategories) ? UINT32_MAX : c;
    });
    return true;
  case Step::Strip:
    out = strip(text, step.left, step.right);
    return true;
  case Step::Nmt:
    out = filter(text, nmt);
    return true;
  case Step::Bert:
    out = bertClean(step, text);
    if (step.accents)
      out = unicode.normalize(out, /*compatible=*/false, /*composed=*/false);
    out = bertLower(step, out);
    return true;
  case Step::Precompiled:
    step.map.apply(unicode, text, out);
    return true;
  case Step::Replace:
    return replace(step, text, out, error);
  case Step::Prepend:
    out = step.content;
    out.append(text.data(), text.size());
    return true;
  case Step::ByteLevel:
    alphabet.append(out, text);
    return true;
  }
  return true;
}

/// Whether the first match starts the text and is longer than its head: what
/// replaces several characters stands for the last of them.
static bool replacesMore(const Regex &regex, std::string_view text,
                         size_t head) {
  std::vector<Regex::Match> matches;
  size_t budget = Regex::stepsFor(256);
  return regex.findAll(text.substr(0, 256), matches, budget) &&
         !matches.empty() && matches[0].begin == 0 && matches[0].end > head;
}

/// What `step` makes of the start of `text`, `head`. A normal form looks at
/// what follows: marks change places.
bool Normalizer::stepHead(const Step &step, std::string_view text,
                          std::string &head, Error &error) const {
  std::string out;
  switch (step.kind) {
  case Step::Strip:
    head = strip(head, step.left, /*right=*/false);
    return true;
  case Step::Form: {
    size_t size = head.size();
    out = unicode.normalize(text, step.compatible, step.composed, &size);
    head = out.substr(0, size);
    return true;
  }
  case Step::Bert: {
    size_t size = bertClean(step, head).size();
    out = bertClean(step, text);
    if (step.accents)
      out = unicode.normalize(out, /*compatible=*/false, /*composed=*/false,
                              &size);
    head = bertLower(step, out.substr(0, size));
    return true;
  }
  case Step::Replace:
    if (replacesMore(step.regex, text, head.size())) {
      head.clear();
      return true;
    }
    break;
  default:
    break;
  }
  if (!applyStep(step, head, out, error))
    return false;
  std::swap(head, out);
  return true;
}

bool Normalizer::apply(std::string &text, size_t &headSize,
                       Error &error) const {
  uint32_t c;
  headSize = text.empty() ? 0 : decodeCharacter(text, 0, c);
  if (text.empty() || steps.empty())
    return true;
  // The steps on the first character tell whether any of it is left.
  std::string head = text.substr(0, headSize), out;
  size_t most = mostFor(text.size());
  for (const Step &step : steps) {
    if (!head.empty() && !stepHead(step, text, head, error))
      return false;
    if (text.empty())
      break;
    if (!applyStep(step, text, out, error))
      return false;
    std::swap(text, out);
    if (std::max(text.size(), head.size()) > most)
      return error.badInput("the normalizers make more than " +
                            std::to_string(most) + " bytes of this text");
  }
  headSize = head.size();
  return true;
}

} // namespace attune::runtime
