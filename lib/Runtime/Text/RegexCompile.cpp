//===- RegexCompile.cpp - A pattern's tree to its program -----------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Regex.h"
#include "RegexParser.h"

#include <algorithm>

namespace attune::runtime {

class RegexCompiler {
public:
  RegexCompiler(Regex &regex, RegexProblem &problem)
      : regex(regex), problem(problem) {}
  bool compile(const RegexNode &root);

private:
  static constexpr size_t maxInstructions = 20000;
  Regex &regex;
  RegexProblem &problem;

  bool fail(const char *what) { return problem.set(what); }
  uint32_t here() const { return static_cast<uint32_t>(regex.program.size()); }
  Regex::Instruction &emit(Regex::Op op, uint32_t a = 0, uint32_t b = 0) {
    Regex::Instruction instruction;
    instruction.op = op;
    instruction.a = a;
    instruction.b = b;
    regex.program.push_back(instruction);
    return regex.program.back();
  }
  uint32_t addSet(const RegexNode &node);
  uint32_t addFirsts(const RegexNode &node);
  bool findFirsts(const RegexNode &node, Regex::Firsts &firsts) const;
  bool emitNode(const RegexNode &node);
  bool emitSequence(const RegexNode &node);
  bool emitAlternation(const RegexNode &node);
  bool emitRepeat(const RegexNode &node);
  bool emitLoop(const RegexNode &node);
  bool emitOptional(const RegexNode &node);
  bool emitLook(const RegexNode &node);
  bool emitPart(Regex::Instruction head, const RegexNode &node);
};

/// The length in characters of all that a node matches, or false.
static bool fixedLength(const RegexNode &node, uint32_t &length) {
  uint32_t inner = 0;
  length = 0;
  switch (node.kind) {
  case RegexNode::Character:
  case RegexNode::Set:
    length = 1;
    return true;
  case RegexNode::Assertion:
  case RegexNode::Look:
    return true;
  case RegexNode::Sequence:
    for (const RegexNode &child : node.children) {
      if (!fixedLength(child, inner))
        return false;
      length += inner;
    }
    return true;
  case RegexNode::Alternation:
    for (size_t i = 0; i < node.children.size(); ++i) {
      if (!fixedLength(node.children[i], inner) || (i && inner != length))
        return false;
      length = inner;
    }
    return true;
  case RegexNode::Atomic:
    return fixedLength(node.children[0], length);
  case RegexNode::Repeat:
    if (node.low != node.high || !fixedLength(node.children[0], inner))
      return false;
    length = node.low * inner;
    return length <= 100000;
  }
  return false;
}

//===----------------------------------------------------------------------===//
// What a match can start with
//===----------------------------------------------------------------------===//

static void addRange(Regex::Firsts &firsts, uint32_t begin, uint32_t last) {
  auto lead = [](uint32_t c) {
    std::string bytes;
    appendUtf8(bytes, c);
    return static_cast<unsigned char>(bytes[0]);
  };
  for (unsigned byte = lead(begin); byte <= lead(last); ++byte)
    firsts.at[byte] = true;
}

/// Adds to `firsts`; true if the node can match the empty text.
bool RegexCompiler::findFirsts(const RegexNode &node,
                               Regex::Firsts &firsts) const {
  switch (node.kind) {
  case RegexNode::Character: {
    std::string bytes;
    appendCharacter(bytes, node.character);
    firsts.at[static_cast<unsigned char>(bytes[0])] = true;
    return false;
  }
  case RegexNode::Set:
    for (auto [begin, end] : node.ranges)
      addRange(firsts, begin, end - 1);
    if (node.malformed)
      std::fill(firsts.at + 128, firsts.at + 256, true);
    return false;
  case RegexNode::Sequence:
    for (const RegexNode &child : node.children)
      if (!findFirsts(child, firsts))
        return false;
    return true;
  case RegexNode::Alternation: {
    bool empty = false;
    for (const RegexNode &child : node.children)
      empty = findFirsts(child, firsts) || empty;
    return empty;
  }
  case RegexNode::Repeat:
    return findFirsts(node.children[0], firsts) || node.low == 0;
  case RegexNode::Atomic:
    return findFirsts(node.children[0], firsts);
  case RegexNode::Look:
  case RegexNode::Assertion:
    return true;
  }
  return true;
}

uint32_t RegexCompiler::addFirsts(const RegexNode &node) {
  Regex::Firsts firsts = {};
  firsts.atEnd = findFirsts(node, firsts);
  if (firsts.atEnd)
    std::fill(std::begin(firsts.at), std::end(firsts.at), true);
  regex.firsts.push_back(firsts);
  return static_cast<uint32_t>(regex.firsts.size() - 1);
}

uint32_t RegexCompiler::addSet(const RegexNode &node) {
  Regex::Set set = {};
  for (auto [begin, end] : node.ranges) {
    for (uint32_t c = begin; c < end && c < 128; ++c)
      set.ascii[c] = true;
    if (end > 128)
      set.ranges.push_back({std::max(begin, 128u), end});
  }
  set.malformed = node.malformed;
  regex.sets.push_back(std::move(set));
  return static_cast<uint32_t>(regex.sets.size() - 1);
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

bool RegexCompiler::emitNode(const RegexNode &node) {
  if (regex.program.size() > maxInstructions)
    return fail("the pattern is too large when its counts are written out");
  switch (node.kind) {
  case RegexNode::Character: {
    size_t begin = regex.literals.size();
    appendCharacter(regex.literals, node.character);
    emit(Regex::Op::Literal, static_cast<uint32_t>(begin),
         static_cast<uint32_t>(regex.literals.size()));
    return true;
  }
  case RegexNode::Set:
    emit(Regex::Op::Set, addSet(node));
    return true;
  case RegexNode::Sequence:
    return emitSequence(node);
  case RegexNode::Alternation:
    return emitAlternation(node);
  case RegexNode::Repeat:
    return emitRepeat(node);
  case RegexNode::Look:
    return emitLook(node);
  case RegexNode::Atomic:
    return emitPart({Regex::Op::Atomic}, node.children[0]);
  case RegexNode::Assertion:
    emit(node.assertion);
    return true;
  }
  return true;
}

/// Characters in a row become one text.
bool RegexCompiler::emitSequence(const RegexNode &node) {
  for (size_t i = 0; i < node.children.size(); ++i) {
    if (!emitNode(node.children[i]))
      return false;
    if (node.children[i].kind != RegexNode::Character)
      continue;
    while (i + 1 < node.children.size() &&
           node.children[i + 1].kind == RegexNode::Character) {
      appendCharacter(regex.literals, node.children[++i].character);
      regex.program.back().b = static_cast<uint32_t>(regex.literals.size());
    }
  }
  return true;
}

bool RegexCompiler::emitAlternation(const RegexNode &node) {
  std::vector<uint32_t> jumps;
  for (size_t i = 0; i < node.children.size(); ++i) {
    bool last = i + 1 == node.children.size();
    uint32_t fork = here();
    if (!last)
      emit(Regex::Op::Fork, 0, addFirsts(node.children[i]));
    if (!emitNode(node.children[i]))
      return false;
    if (last)
      break;
    jumps.push_back(here());
    emit(Regex::Op::Jump);
    regex.program[fork].a = here();
  }
  for (uint32_t jump : jumps)
    regex.program[jump].a = here();
  return true;
}

bool RegexCompiler::emitPart(Regex::Instruction head, const RegexNode &node) {
  uint32_t at = here();
  regex.program.push_back(head);
  if (!emitNode(node))
    return false;
  emit(Regex::Op::Done);
  regex.program[at].a = here();
  return true;
}

bool RegexCompiler::emitRepeat(const RegexNode &node) {
  const RegexNode &child = node.children[0];
  if (child.kind == RegexNode::Set || child.kind == RegexNode::Character) {
    RegexNode set = child;
    if (child.kind == RegexNode::Character) {
      if (child.character >= 0x110000)
        return fail("a pattern that is not UTF-8");
      set.ranges = {{child.character, child.character + 1}};
    }
    Regex::Instruction &loop = emit(Regex::Op::SetLoop, addSet(set));
    loop.greed = node.greed;
    loop.low = node.low;
    loop.high = node.high;
    return true;
  }
  if (node.greed == Regex::Greed::Possessive) {
    RegexNode greedy = node;
    greedy.greed = Regex::Greed::Greedy;
    return emitPart({Regex::Op::Atomic}, greedy);
  }
  for (uint32_t i = 0; i < node.low; ++i)
    if (!emitNode(child))
      return false;
  return node.high == regexUnbounded ? emitLoop(node) : emitOptional(node);
}

bool RegexCompiler::emitLoop(const RegexNode &node) {
  const RegexNode &child = node.children[0];
  bool lazy = node.greed == Regex::Greed::Lazy;
  uint32_t firsts = addFirsts(child);
  bool mayBeEmpty = regex.firsts[firsts].atEnd;
  uint32_t fork = here();
  emit(lazy ? Regex::Op::ForkLazy : Regex::Op::Fork, 0, firsts);
  uint32_t mark = regex.registers;
  if (mayBeEmpty) {
    ++regex.registers;
    emit(Regex::Op::Mark, mark);
  }
  if (!emitNode(child))
    return false;
  if (mayBeEmpty)
    emit(Regex::Op::Progress, mark);
  emit(Regex::Op::Jump, fork);
  regex.program[fork].a = here();
  return true;
}

/// The copies beyond the least: each may be the last.
bool RegexCompiler::emitOptional(const RegexNode &node) {
  const RegexNode &child = node.children[0];
  std::vector<uint32_t> forks;
  uint32_t firsts = addFirsts(child);
  bool lazy = node.greed == Regex::Greed::Lazy;
  for (uint32_t i = node.low; i < node.high; ++i) {
    forks.push_back(here());
    emit(lazy ? Regex::Op::ForkLazy : Regex::Op::Fork, 0, firsts);
    if (!emitNode(child))
      return false;
  }
  for (uint32_t fork : forks)
    regex.program[fork].a = here();
  return true;
}

/// Looking back takes parts of one length each.
bool RegexCompiler::emitLook(const RegexNode &node) {
  const RegexNode &child = node.children[0];
  Regex::Instruction head = {Regex::Op::Look};
  head.low = node.negated ? 1 : 0;
  if (!node.behind)
    return emitPart(head, child);
  head.low |= 2;
  std::vector<RegexNode> parts = {child};
  if (child.kind == RegexNode::Alternation)
    parts = child.children;
  std::vector<uint32_t> jumps;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!fixedLength(parts[i], head.b))
      return problem.set("a look behind whose length varies, which is not "
                         "supported",
                         /*isUnsupported=*/true);
    bool either = !node.negated && i + 1 < parts.size();
    uint32_t fork = here();
    if (either) {
      RegexNode anything;
      emit(Regex::Op::Fork, 0, addFirsts(anything));
    }
    if (!emitPart(head, parts[i]))
      return false;
    if (either) {
      jumps.push_back(here());
      emit(Regex::Op::Jump);
      regex.program[fork].a = here();
    }
  }
  for (uint32_t jump : jumps)
    regex.program[jump].a = here();
  return true;
}

bool RegexCompiler::compile(const RegexNode &root) {
  addFirsts(root);
  if (!emitNode(root))
    return false;
  emit(Regex::Op::Done);
  return true;
}

bool Regex::compile(std::string_view pattern, const Unicode &characters,
                    RegexProblem &problem) {
  *this = Regex();
  unicode = &characters;
  RegexNode root;
  return RegexParser(pattern, characters, problem).parse(root) &&
         RegexCompiler(*this, problem).compile(root);
}

void Regex::compileLiteral(std::string_view text) {
  *this = Regex();
  literals = text;
  Firsts first = {};
  first.atEnd = text.empty();
  if (text.empty())
    std::fill(std::begin(first.at), std::end(first.at), true);
  else
    first.at[static_cast<unsigned char>(text[0])] = true;
  firsts.push_back(first);
  Instruction literal = {Op::Literal};
  literal.b = static_cast<uint32_t>(text.size());
  program = {literal, {Op::Done}};
}

} // namespace attune::runtime
