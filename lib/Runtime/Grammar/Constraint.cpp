//===- Constraint.cpp - Texts of a given form -----------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/Constraint.h"

#include "GrammarAutomaton.h"
#include "GrammarText.h"
#include "Pattern.h"
#include "SchemaGrammar.h"

#include "attune/Runtime/Tokenizer.h"

#include <algorithm>
#include <cmath>

namespace attune::runtime {

/// Bytes of a form: one that is read at once has some thousands.
static constexpr size_t mostSource = size_t(1) << 20;
/// Forms that are kept with all they have worked out.
static constexpr size_t mostRecent = 4;

static const char tooLarge[] =
    "the form that was asked for goes on in too many ways at once; expected "
    "fewer repetitions within repetitions, or smaller limits of them";

ConstraintFactory::ConstraintFactory(const Tokenizer &tokenizer)
    : tokenizer(tokenizer) {}
ConstraintFactory::~ConstraintFactory() = default;

static bool buildGrammar(const TextForm &form, Grammar &grammar,
                         std::string &problem, std::string &note) {
  switch (form.kind) {
  case TextForm::Kind::JsonSchema: {
    JsonValue schema;
    if (parseJson(form.source, schema, problem))
      return buildSchemaGrammar(schema, grammar, problem, note);
    problem = "the schema is not JSON: " + problem;
    return false;
  }
  case TextForm::Kind::Pattern: {
    Grammar::Sequence sequence;
    if (!appendPattern(grammar, sequence, form.source, /*isSearch=*/false,
                       /*inString=*/false, problem)) {
      problem = "the regular expression is wrong: " + problem;
      return false;
    }
    grammar.root = grammar.addRule();
    grammar.addAlternative(grammar.root, std::move(sequence));
    if (grammar.findLeftRecursion() < 0)
      return true;
    problem = "the regular expression repeats nothing without end";
    return false;
  }
  case TextForm::Kind::Grammar:
    if (parseGrammarText(form.source, grammar, problem))
      return true;
    problem = "the grammar is wrong: " + problem;
    return false;
  default:
    buildObjectGrammar(grammar);
    return true;
  }
}

std::shared_ptr<GrammarAutomaton> ConstraintFactory::make(const TextForm &form,
                                                          Error &error) {
  for (auto &[known, automaton] : recent)
    if (known == form)
      return automaton;
  if (form.source.size() > mostSource) {
    error.badInput("the form that was asked for has " +
                   std::to_string(form.source.size()) +
                   " bytes; at most 1 MiB is read");
    return nullptr;
  }
  Grammar grammar;
  std::string problem, note;
  if (!buildGrammar(form, grammar, problem, note)) {
    error.badInput(problem);
    return nullptr;
  }
  grammar.removeDeadEnds();
  if (grammar.rules()[grammar.root].empty()) {
    error.badInput(problem.empty() ? "no text has the form that was asked for"
                                   : problem);
    return nullptr;
  }
  if (!texts)
    texts.reset(new TokenTexts(tokenizer));
  std::shared_ptr<GrammarAutomaton> automaton(
      new GrammarAutomaton(std::move(grammar), texts));
  automaton->note = std::move(note);
  if (automaton->isTooLarge()) {
    error.badInput(tooLarge);
    return nullptr;
  }
  if (recent.size() == mostRecent)
    recent.erase(recent.begin());
  recent.emplace_back(form, automaton);
  return automaton;
}

Constraint::Constraint(std::shared_ptr<GrammarAutomaton> given,
                       std::vector<int64_t> ends)
    : automaton(std::move(given)), ends(std::move(ends)),
      state(automaton->start()) {}
Constraint::~Constraint() = default;

const float *Constraint::mask(const float *logits, int64_t count,
                              Error &error) {
  if (!awaited.empty()) {
    masked.assign(logits, logits + count);
    for (int64_t id : ends)
      if (id >= 0 && id < count)
        masked[id] = -HUGE_VALF;
    return masked.data();
  }
  const std::vector<uint64_t> &allowed = automaton->allowed(state);
  if (automaton->isTooLarge()) {
    error.badInput(tooLarge);
    return nullptr;
  }
  masked.resize(static_cast<size_t>(count));
  bool isComplete = automaton->isComplete(state);
  bool any = false;
  // By 64 tokens: most are all alike.
  for (int64_t first = 0; first < count; first += 64) {
    auto number = static_cast<size_t>(first / 64);
    int64_t end = std::min<int64_t>(count - first, 64);
    uint64_t word = number < allowed.size() ? allowed[number] : 0;
    if (end < 64)
      word &= (uint64_t(1) << end) - 1;
    // A token that ends a text does so whatever its bytes are.
    for (int64_t id : ends)
      if (id >= first && id - first < end)
        word = (word & ~(uint64_t(1) << (id - first))) | uint64_t(isComplete)
                                                             << (id - first);
    const float *from = logits + first;
    float *to = masked.data() + first;
    any |= word != 0;
    if (word == 0)
      std::fill(to, to + end, -HUGE_VALF);
    else if (word == UINT64_MAX)
      std::copy(from, from + end, to);
    else
      for (int64_t id = 0; id < end; ++id)
        to[id] = word >> id & 1 ? from[id] : -HUGE_VALF;
  }
  if (any)
    return masked.data();
  error.badInput("no token of the vocabulary goes on with a text of the form "
                 "that was asked for");
  return nullptr;
}

void Constraint::accept(int64_t id) {
  if (!awaited.empty()) {
    last += automaton->tokenizer().bytesOf(id);
    if (last.find(awaited) != std::string::npos)
      awaited.clear();
    else if (last.size() >= awaited.size())
      last.erase(0, last.size() - awaited.size() + 1);
    return;
  }
  if (std::find(ends.begin(), ends.end(), id) == ends.end())
    state = automaton->nextToken(state, id);
}

bool Constraint::isOver() {
  if (!awaited.empty() || !automaton->isComplete(state))
    return false;
  const std::vector<uint64_t> &allowed = automaton->allowed(state);
  // The next step says that the form is too large.
  return !automaton->isTooLarge() &&
         std::all_of(allowed.begin(), allowed.end(),
                     [](uint64_t word) { return word == 0; });
}

} // namespace attune::runtime
