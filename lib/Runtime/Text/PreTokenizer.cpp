//===- PreTokenizer.cpp - Cutting text into words -------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PreTokenizer.h"
#include "Sequence.h"

#include <algorithm>
#include <cstring>

namespace attune::runtime {

/// GPT-2's words, which ByteLevel takes for granted.
static constexpr char gpt2Words[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+"
    "|\\s+(?!\\S)|\\s+";

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

static bool bad(Error &error, const std::string &what) {
  return error.badInput("pre-tokenizer " + what);
}

bool PreTokenizer::load(const JsonValue &json, Error &error) {
  return loadStep(json, 0, error);
}

bool PreTokenizer::isByteLevel() const {
  return std::any_of(steps.begin(), steps.end(), [](const Step &step) {
    return step.kind == Step::ByteLevel;
  });
}

static bool findBehavior(const std::string &name, unsigned &index) {
  static constexpr const char *names[] = {"Removed", "Isolated",
                                          "MergedWithPrevious",
                                          "MergedWithNext", "Contiguous"};
  static constexpr const char *lowerNames[] = {
      "removed", "isolated", "merged_with_previous", "merged_with_next",
      "contiguous"};
  for (index = 0; index < std::size(names); ++index)
    if (name == names[index] || name == lowerNames[index])
      return true;
  return false;
}

bool PreTokenizer::loadSplit(const JsonValue &json, Step &step, Error &error) {
  unsigned behavior;
  if (!findBehavior(textOf(json, "behavior"), behavior))
    return bad(error, "'Split' with the unknown behavior '" +
                          textOf(json, "behavior") + "'");
  step.kind = Step::Pattern;
  step.behavior = static_cast<Behavior>(behavior);
  step.invert = flagOf(json, "invert", false);
  return loadPattern(json, "Split", unicode, step.regex, error);
}

bool PreTokenizer::loadMetaspace(const JsonValue &json, Step &step,
                                 Error &error) {
  step.kind = Step::Metaspace;
  step.replacement = textOf(json, "replacement");
  if (step.replacement.empty() ||
      decodeCharacter(step.replacement, 0, step.delimiter) !=
          step.replacement.size())
    return bad(error, "'Metaspace' without a 'replacement' of one character");
  std::string scheme = textOf(json, "prepend_scheme");
  step.prepend = Prepend::Always;
  if (scheme == "first")
    step.prepend = Prepend::First;
  else if (scheme == "never")
    step.prepend = Prepend::Never;
  else if (!scheme.empty() && scheme != "always")
    return bad(error,
               "'Metaspace' with the unknown prepend_scheme '" + scheme + "'");
  // Older files have this flag instead.
  if (!flagOf(json, "add_prefix_space", true))
    step.prepend = Prepend::Never;
  step.split = flagOf(json, "split", true);
  return true;
}

/// Steps that look at single characters.
bool PreTokenizer::loadCharacters(const std::string &type,
                                  const JsonValue &json, Error &error) {
  Step step;
  step.behavior = Behavior::Removed;
  if (type == "Digits") {
    step.kind = Step::Digits;
    step.behavior = flagOf(json, "individual_digits", false)
                        ? Behavior::Isolated
                        : Behavior::Contiguous;
  } else if (type == "Punctuation") {
    step.kind = Step::Punctuation;
    std::string name = textOf(json, "behavior");
    unsigned behavior;
    if (!findBehavior(name.empty() ? "Isolated" : name, behavior))
      return bad(error,
                 "'Punctuation' with the unknown behavior '" + name + "'");
    step.behavior = static_cast<Behavior>(behavior);
  } else if (type == "BertPreTokenizer") {
    step.kind = Step::Space;
    steps.push_back(step);
    step.kind = Step::Punctuation;
    step.behavior = Behavior::Isolated;
  } else if (type == "WhitespaceSplit") {
    step.kind = Step::Space;
  } else if (type == "Whitespace") {
    step.kind = Step::Words;
  } else if (type == "UnicodeScripts") {
    step.kind = Step::Scripts;
    step.behavior = Behavior::Isolated;
  } else if (type == "FixedLength") {
    const JsonValue *length = json.find("length");
    step.kind = Step::FixedLength;
    step.behavior = Behavior::Isolated;
    step.length = 5;
    if (length && length->isInt() && length->integer > 0)
      step.length = static_cast<size_t>(length->integer);
  } else if (type == "CharDelimiterSplit") {
    std::string text = textOf(json, "delimiter");
    step.kind = Step::Delimiter;
    if (text.empty() || decodeCharacter(text, 0, step.delimiter) != text.size())
      return bad(error, "'CharDelimiterSplit' without a 'delimiter' of one "
                        "character");
  } else {
    return error.notSupported("pre-tokenizer '" + type + "' is not supported");
  }
  steps.push_back(std::move(step));
  return true;
}

bool PreTokenizer::loadStep(const JsonValue &json, unsigned depth,
                            Error &error) {
  std::string type = textOf(json, "type");
  if (type == "Sequence") {
    const std::vector<JsonValue> *inner =
        stepsOfSequence(json, "pre-tokenizer", "pretokenizers", depth, error);
    return inner && std::all_of(inner->begin(), inner->end(),
                                [&](const JsonValue &step) {
                                  return loadStep(step, depth + 1, error);
                                });
  }
  Step step;
  if (type == "ByteLevel") {
    step.kind = Step::ByteLevel;
    step.prefixSpace = flagOf(json, "add_prefix_space", true);
    step.split = flagOf(json, "use_regex", true);
    RegexProblem problem;
    if (step.split && !step.regex.compile(gpt2Words, unicode, problem))
      return bad(error, problem.message);
  } else if (type == "Split") {
    if (!loadSplit(json, step, error))
      return false;
  } else if (type == "Metaspace") {
    if (!loadMetaspace(json, step, error))
      return false;
  } else {
    return loadCharacters(type, json, error);
  }
  steps.push_back(std::move(step));
  return true;
}

//===----------------------------------------------------------------------===//
// Finding where to cut
//===----------------------------------------------------------------------===//

/// Each character that `wanted` names is a match of its own.
template <typename Span, typename Wanted>
static void spansOfCharacters(std::string_view text, std::vector<Span> &spans,
                              const Wanted &wanted) {
  size_t last = 0;
  for (size_t at = 0; at < text.size();) {
    uint32_t c;
    unsigned length = decodeCharacter(text, at, c);
    if (wanted(c)) {
      if (last < at)
        spans.push_back({last, at, false});
      last = at + length;
      spans.push_back({at, last, true});
    }
    at += length;
  }
  if (last < text.size())
    spans.push_back({last, text.size(), false});
}

/// Hiragana, Katakana and the prolonged sound mark count as Han; spaces and
/// what has no script belong to what stands before.
void PreTokenizer::findScripts(std::string_view text,
                               std::vector<Span> &spans) const {
  static constexpr int none = -1, any = -2;
  int last = none, han = 0, hiragana = 0, katakana = 0;
  for (unsigned i = 1; const char *name = Unicode::scriptName(i); ++i) {
    std::string_view script = name;
    if (script == "Han")
      han = static_cast<int>(i);
    if (script == "Hiragana")
      hiragana = static_cast<int>(i);
    if (script == "Katakana")
      katakana = static_cast<int>(i);
  }
  size_t begin = 0;
  bool started = false;
  for (size_t at = 0; at < text.size();) {
    uint32_t c;
    unsigned length = decodeCharacter(text, at, c);
    int script = unicode.script(c);
    if (c == 0x30FC || script == hiragana || script == katakana)
      script = han;
    if (c == ' ' || script == 0)
      script = any;
    if (script != any && last != script) {
      if (started)
        spans.push_back({begin, at, true});
      begin = at;
      started = true;
    }
    if (script != any)
      last = script;
    at += length;
  }
  if (started)
    spans.push_back({begin, text.size(), true});
}

bool PreTokenizer::findSpans(const Step &step, std::string_view text,
                             std::vector<Span> &spans, size_t &budget) const {
  spans.clear();
  switch (step.kind) {
  case Step::Pattern:
  case Step::ByteLevel: {
    std::vector<Regex::Match> matches;
    if (!step.regex.findAll(text, matches, budget))
      return false;
    size_t last = 0;
    for (auto [begin, end] : matches) {
      if (last != begin)
        spans.push_back({last, begin, step.invert});
      spans.push_back({begin, end, !step.invert});
      last = end;
    }
    if (last != text.size())
      spans.push_back({last, text.size(), step.invert});
    return true;
  }
  case Step::Digits:
    spansOfCharacters(text, spans, [&](uint32_t c) {
      return unicode.isIn(c, numberCategories);
    });
    return true;
  case Step::Punctuation:
    spansOfCharacters(text, spans,
                      [&](uint32_t c) { return unicode.isPunctuation(c); });
    return true;
  case Step::Space:
    spansOfCharacters(text, spans, Unicode::isSpace);
    return true;
  case Step::Delimiter:
  case Step::Metaspace:
    spansOfCharacters(text, spans,
                      [&](uint32_t c) { return c == step.delimiter; });
    return true;
  case Step::Scripts:
    findScripts(text, spans);
    return true;
  case Step::Words:
  case Step::FixedLength:
    break;
  }
  // Runs of one kind: words, spaces (the matches to remove) and the rest.
  size_t begin = 0, count = 0;
  int last = -1;
  for (size_t at = 0; at < text.size();) {
    uint32_t c;
    unsigned length = decodeCharacter(text, at, c);
    int kind = 0;
    bool next = count == step.length;
    if (step.kind == Step::Words) {
      bool joins = c == 0x200C || c == 0x200D;
      kind = joins || unicode.isWord(c) ? 0 : Unicode::isSpace(c) ? 1 : 2;
      next = kind != last;
    }
    if (next && at > begin) {
      spans.push_back({begin, at, last == 1});
      begin = at;
      count = 0;
    }
    ++count;
    last = kind;
    at += length;
  }
  if (begin < text.size())
    spans.push_back({begin, text.size(), last == 1});
  return true;
}

//===----------------------------------------------------------------------===//
// Cutting
//===----------------------------------------------------------------------===//

bool PreTokenizer::cut(const Step &step, std::string_view text,
                       std::vector<Piece> &pieces, size_t &budget) const {
  std::vector<Piece> out;
  std::vector<Span> spans;
  Behavior behavior =
      step.kind == Step::Metaspace ? Behavior::MergedWithNext : step.behavior;
  for (const Piece &piece : pieces) {
    if (!findSpans(step, text.substr(piece.begin, piece.end - piece.begin),
                   spans, budget))
      return false;
    size_t base = out.size();
    auto headAt = [&](size_t begin) {
      return piece.head > begin ? piece.head - begin : 0;
    };
    auto add = [&](size_t begin, size_t end) {
      out.push_back({piece.begin + begin, piece.begin + end, headAt(begin)});
    };
    switch (behavior) {
    case Behavior::Removed:
    case Behavior::Isolated:
      for (const Span &span : spans)
        if (behavior == Behavior::Isolated || !span.match)
          add(span.begin, span.end);
      break;
    case Behavior::Contiguous:
    case Behavior::MergedWithPrevious: {
      bool before = false;
      for (const Span &span : spans) {
        bool joins = behavior == Behavior::Contiguous ? span.match == before
                                                      : span.match && !before;
        if (joins && out.size() > base)
          out.back().end = piece.begin + span.end;
        else
          add(span.begin, span.end);
        before = span.match;
      }
      break;
    }
    case Behavior::MergedWithNext: {
      bool after = false;
      for (size_t i = spans.size(); i-- > 0;) {
        if (spans[i].match && !after && out.size() > base) {
          out.back().begin = piece.begin + spans[i].begin;
          out.back().head = headAt(spans[i].begin);
        } else {
          add(spans[i].begin, spans[i].end);
        }
        after = spans[i].match;
      }
      std::reverse(out.begin() + static_cast<ptrdiff_t>(base), out.end());
      break;
    }
    }
  }
  out.erase(std::remove_if(
                out.begin(), out.end(),
                [](const Piece &piece) { return piece.begin == piece.end; }),
            out.end());
  pieces = std::move(out);
  return true;
}

/// Writes the pieces anew, one behind the other.
void PreTokenizer::rewrite(const Step &step, std::string &text,
                           std::vector<Piece> &pieces) const {
  std::string out;
  out.reserve(text.size() + text.size() / 4);
  for (Piece &piece : pieces) {
    std::string_view old(text.data() + piece.begin, piece.end - piece.begin);
    piece.begin = out.size();
    if (step.kind == Step::ByteLevel) {
      alphabet.append(out, old);
    } else {
      bool starts = old[0] == ' ' ||
                    old.substr(0, step.replacement.size()) == step.replacement;
      if (!starts && (step.prepend == Prepend::Always ||
                      (step.prepend == Prepend::First && piece.head > 0)))
        out += step.replacement;
      for (char c : old)
        if (c == ' ')
          out += step.replacement;
        else
          out += c;
    }
    piece.end = out.size();
  }
  text = std::move(out);
}

bool PreTokenizer::split(std::string &text, size_t head,
                         std::vector<Piece> &pieces, Error &error) const {
  pieces.clear();
  if (text.empty())
    return true;
  pieces.push_back({0, text.size(), head});
  size_t budget = Regex::stepsFor(text.size());
  for (const Step &step : steps) {
    if (step.kind == Step::ByteLevel && step.prefixSpace) {
      std::string out;
      for (Piece &piece : pieces) {
        size_t begin = out.size();
        if (text[piece.begin] != ' ')
          out += ' ';
        out.append(text, piece.begin, piece.end - piece.begin);
        piece = {begin, out.size(), piece.head};
      }
      text = std::move(out);
    }
    if (step.kind == Step::Metaspace)
      rewrite(step, text, pieces);
    if (step.split && !cut(step, text, pieces, budget))
      return error.badInput("the pattern of a pre-tokenizer takes too many "
                            "steps on this text");
    if (step.kind == Step::ByteLevel)
      rewrite(step, text, pieces);
  }
  return true;
}

} // namespace attune::runtime
