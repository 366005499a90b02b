//===- Constraint.h - Texts of a given form ---------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A text can be made to follow a JSON schema, a regular expression or a
// grammar: after each token, only those may follow that go on with a text of
// this form, and it ends where such a text is whole.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_RUNTIME_CONSTRAINT_H
#define ATTUNE_RUNTIME_CONSTRAINT_H

#include "attune/Runtime/Error.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace attune::runtime {

class GrammarAutomaton;
class Tokenizer;
class TokenTexts;

/// The form that texts must have.
struct TextForm {
  enum class Kind : uint8_t { Any, JsonObject, JsonSchema, Pattern, Grammar };
  Kind kind = Kind::Any;
  std::string source; ///< of the schema, the pattern or the grammar

  bool operator==(const TextForm &other) const {
    return kind == other.kind && source == other.source;
  }
};

/// Makes what checks tokens, and keeps it for the next time. The tokenizer
/// must outlive it. Several threads must not use what it makes at once.
class ConstraintFactory {
public:
  explicit ConstraintFactory(const Tokenizer &tokenizer);
  ~ConstraintFactory();
  /// Null with exit code 1 if the form is wrong.
  std::shared_ptr<GrammarAutomaton> make(const TextForm &form, Error &error);

private:
  const Tokenizer &tokenizer;
  std::shared_ptr<TokenTexts> texts; ///< null: not needed yet
  std::vector<std::pair<TextForm, std::shared_ptr<GrammarAutomaton>>> recent;
};

/// One text on its way.
class Constraint {
public:
  /// `ends`: tokens that end a text.
  Constraint(std::shared_ptr<GrammarAutomaton> automaton,
             std::vector<int64_t> ends);
  ~Constraint();

  /// Lets tokens be free up to the one that completes `mark`, such as the end
  /// of reasoning: the form holds behind it. The text cannot end before.
  void startBehind(std::string_view mark) { awaited = mark; }

  /// The logits, with minus infinity for all that may not come next. Null if no
  /// token goes on.
  const float *mask(const float *logits, int64_t count, Error &error);
  /// Goes on with a token that may come next.
  void accept(int64_t id);
  /// Whether the text is whole and cannot go on.
  bool isOver();

private:
  std::shared_ptr<GrammarAutomaton> automaton;
  std::vector<int64_t> ends;
  uint32_t state;
  std::string awaited; ///< empty: the form holds
  std::string last;    ///< bytes that may be the beginning of that
  std::vector<float> masked;
};

} // namespace attune::runtime

#endif // ATTUNE_RUNTIME_CONSTRAINT_H
