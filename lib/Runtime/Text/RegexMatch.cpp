//===- RegexMatch.cpp - Finding matches -----------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Regex.h"

namespace attune::runtime {

class RegexMatcher {
public:
  RegexMatcher(const Regex &regex, std::string_view text, size_t &steps)
      : regex(regex), text(text), registers(regex.registers, SIZE_MAX),
        steps(steps) {}

  /// The end of the match from `pc` at `at`, or npos.
  size_t match(uint32_t pc, size_t at, unsigned depth = 0);
  bool exhausted() const { return steps == 0; }

private:
  static constexpr size_t npos = SIZE_MAX;
  static constexpr size_t maxFrames = size_t(1) << 22;
  /// Where to go on after a failure. A loop gives back one character at a time
  /// from `at` down to `low`; a register gets back its value `low`.
  struct Frame {
    enum Kind : uint8_t { Resume, GiveBack, TakeMore, Restore } kind;
    uint32_t pc;
    size_t at, low;
  };
  const Regex &regex;
  std::string_view text;
  std::vector<Frame> frames;
  std::vector<size_t> registers;
  size_t &steps;

  bool resume(size_t base, uint32_t &pc, size_t &at);
  bool isWordAt(size_t at, bool before) const;
  bool stepSet(const Regex::Set &set, size_t &at) const {
    if (at >= text.size())
      return false;
    unsigned char byte = static_cast<unsigned char>(text[at]);
    if (byte < 128) {
      at += set.ascii[byte];
      return set.ascii[byte];
    }
    uint32_t c;
    unsigned n = decodeCharacter(text, at, c);
    if (!set.has(c))
      return false;
    at += n;
    return true;
  }
  bool runLoop(const Regex::Instruction &op, uint32_t pc, size_t &at);
  bool check(const Regex::Instruction &op, size_t at) const;
  bool look(const Regex::Instruction &op, uint32_t pc, size_t at,
            unsigned depth);
};

bool RegexMatcher::isWordAt(size_t at, bool before) const {
  if (before ? at == 0 : at >= text.size())
    return false;
  uint32_t c;
  decodeCharacter(text, before ? previousCharacter(text, at) : at, c);
  return regex.unicode->isWord(c) ||
         (c < 0x100 && c >= 0xB2 && regex.unicode->isIn(c, numberCategories));
}

bool RegexMatcher::check(const Regex::Instruction &op, size_t at) const {
  switch (op.op) {
  case Regex::Op::LineStart:
    return at == 0 || text[at - 1] == '\n';
  case Regex::Op::LineEnd:
    return at == text.size() || text[at] == '\n';
  case Regex::Op::TextStart:
    return at == 0;
  case Regex::Op::TextEnd:
    return at == text.size();
  case Regex::Op::TextEndLine:
    return at == text.size() || (at + 1 == text.size() && text[at] == '\n');
  case Regex::Op::WordEdge:
    return isWordAt(at, true) != isWordAt(at, false);
  default:
    return isWordAt(at, true) == isWordAt(at, false);
  }
}

/// A loop over single characters keeps one frame however long it is.
bool RegexMatcher::runLoop(const Regex::Instruction &op, uint32_t pc,
                           size_t &at) {
  const Regex::Set &set = regex.sets[op.a];
  size_t count = 0;
  while (count < op.low && stepSet(set, at))
    ++count;
  if (count < op.low)
    return false;
  size_t low = at;
  if (op.greed == Regex::Greed::Lazy) {
    if (count < op.high)
      frames.push_back({Frame::TakeMore, pc, at, op.high - count});
    return true;
  }
  while (count < op.high && stepSet(set, at))
    ++count;
  size_t taken = at - low;
  steps -= taken < steps ? taken : steps;
  if (op.greed == Regex::Greed::Greedy && at > low)
    frames.push_back({Frame::GiveBack, pc + 1, at, low});
  return true;
}

bool RegexMatcher::look(const Regex::Instruction &op, uint32_t pc, size_t at,
                        unsigned depth) {
  if (op.low & 2)
    for (uint32_t i = 0; i < op.b; ++i) {
      if (at == 0)
        return op.low & 1;
      at = previousCharacter(text, at);
    }
  bool found = match(pc + 1, at, depth + 1) != npos;
  return found != bool(op.low & 1);
}

/// Takes the newest frame; false if none is left above `base`.
bool RegexMatcher::resume(size_t base, uint32_t &pc, size_t &at) {
  while (frames.size() > base) {
    Frame &frame = frames.back();
    switch (frame.kind) {
    case Frame::Resume:
      pc = frame.pc;
      at = frame.at;
      frames.pop_back();
      return true;
    case Frame::GiveBack:
      pc = frame.pc;
      frame.at = previousCharacter(text, frame.at);
      at = frame.at;
      if (frame.at == frame.low)
        frames.pop_back();
      return true;
    case Frame::TakeMore:
      at = frame.at;
      pc = frame.pc + 1;
      if (!stepSet(regex.sets[regex.program[frame.pc].a], at)) {
        frames.pop_back();
        continue;
      }
      frame.at = at;
      if (--frame.low == 0)
        frames.pop_back();
      return true;
    case Frame::Restore:
      registers[frame.pc] = frame.low;
      frames.pop_back();
      continue;
    }
  }
  return false;
}

size_t RegexMatcher::match(uint32_t pc, size_t at, unsigned depth) {
  const size_t base = frames.size();
  for (;;) {
    if (steps == 0 || frames.size() > maxFrames) {
      steps = 0;
      frames.resize(base);
      return npos;
    }
    --steps;
    const Regex::Instruction &op = regex.program[pc];
    bool good = true;
    uint32_t next = pc + 1;
    switch (op.op) {
    case Regex::Op::Literal: {
      size_t length = op.b - op.a;
      good = text.size() - at >= length &&
             text.compare(at, length, regex.literals, op.a, length) == 0;
      at += good ? length : 0;
      break;
    }
    case Regex::Op::Set:
      good = stepSet(regex.sets[op.a], at);
      break;
    case Regex::Op::SetLoop:
      good = runLoop(op, pc, at);
      break;
    case Regex::Op::Fork: {
      const Regex::Firsts &first = regex.firsts[op.b];
      if (at < text.size() ? first.at[static_cast<unsigned char>(text[at])]
                           : first.atEnd)
        frames.push_back({Frame::Resume, op.a, at, 0});
      else
        next = op.a;
      break;
    }
    case Regex::Op::ForkLazy:
      frames.push_back({Frame::Resume, pc + 1, at, 0});
      next = op.a;
      break;
    case Regex::Op::Jump:
      next = op.a;
      break;
    case Regex::Op::Mark:
      frames.push_back({Frame::Restore, op.a, 0, registers[op.a]});
      registers[op.a] = at;
      break;
    case Regex::Op::Progress:
      good = registers[op.a] != at;
      break;
    case Regex::Op::Look:
      good = look(op, pc, at, depth);
      next = op.a;
      break;
    case Regex::Op::Atomic: {
      size_t end = match(pc + 1, at, depth + 1);
      good = end != npos;
      at = good ? end : at;
      next = op.a;
      break;
    }
    case Regex::Op::Done:
      frames.resize(base);
      return at;
    default:
      good = check(op, at);
    }
    if (good)
      pc = next;
    else if (!resume(base, pc, at))
      return npos;
  }
}

bool Regex::findAll(std::string_view text, std::vector<Match> &matches,
                    size_t &steps) const {
  matches.clear();
  RegexMatcher matcher(*this, text, steps);
  size_t last = SIZE_MAX;
  for (size_t at = 0; at <= text.size();) {
    const Firsts &first = firsts[0];
    bool possible = at < text.size()
                        ? first.at[static_cast<unsigned char>(text[at])]
                        : first.atEnd;
    size_t end = possible ? matcher.match(0, at) : SIZE_MAX;
    if (matcher.exhausted())
      return false;
    if (end != SIZE_MAX && (end != at || last != at)) {
      matches.push_back({at, end});
      last = end;
      if (end != at) {
        at = end;
        continue;
      }
    }
    uint32_t c;
    at += at < text.size() ? decodeCharacter(text, at, c) : 1;
  }
  return true;
}

} // namespace attune::runtime
