//===- ConstraintFuzzer.cpp - Schemas, patterns and grammars --------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The input's first byte is the kind of form: 's' a JSON schema, 'p' a pattern,
// else a grammar. The form is the rest. Texts of the form are then walked.
//
//===----------------------------------------------------------------------===//

#include "../Fuzzing.h"

#include "attune/Runtime/Constraint.h"
#include "attune/Runtime/Tokenizer.h"

using namespace attune::runtime;

static std::unique_ptr<Tokenizer> makeTokenizer() {
  Error error;
  auto tokenizer = Tokenizer::create(
      attune::fuzzing::readFile(ATTUNE_FUZZ_SOURCES
                                "/examples/storyteller/tokenizer.json"),
      error);
  FUZZ_REQUIRE(tokenizer);
  return tokenizer;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  static const std::unique_ptr<Tokenizer> tokenizer = makeTokenizer();
  static const std::vector<float> logits(static_cast<size_t>(tokenizer->size()),
                                         0.0f);
  ConstraintFactory factory(*tokenizer);
  TextForm form;
  form.kind = data[0] == 's'   ? TextForm::Kind::JsonSchema
              : data[0] == 'p' ? TextForm::Kind::Pattern
                               : TextForm::Kind::Grammar;
  form.source = attune::fuzzing::asText(data + 1, size - 1);
  Error error;
  std::shared_ptr<GrammarAutomaton> automaton = factory.make(form, error);
  if (!automaton) {
    FUZZ_REQUIRE(!error.message.empty());
    return 0;
  }
  Constraint constraint(automaton, {});
  size_t seed = size;
  for (unsigned step = 0; step < 12 && !constraint.isOver(); ++step) {
    const float *masked =
        constraint.mask(logits.data(), tokenizer->size(), error);
    if (!masked)
      break;
    std::vector<int64_t> allowed;
    for (int64_t id = 0; id < tokenizer->size(); ++id)
      if (masked[id] == 0)
        allowed.push_back(id);
    if (allowed.empty())
      break; // only the end may follow
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    constraint.accept(allowed[(seed >> 33) % allowed.size()]);
  }
  return 0;
}
