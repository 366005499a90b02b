//===- Guess.h - Guessing the next tokens -----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Speculative decoding: cheap guesses of the next tokens are checked by one
// step of the model, which costs little more than a step of one token since it
// reads the weights once. Two kinds of guesses: what followed the last tokens
// where they stood before in the text, and what a smaller model says.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_RUNTIME_GUESS_H
#define ATTUNE_RUNTIME_GUESS_H

#include "attune/Runtime/CompiledModel.h"
#include "attune/Runtime/Sampler.h"
#include "attune/Runtime/attune.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace attune::runtime {

/// The tokens that followed the latest earlier occurrence of the last tokens of
/// `history`: of the last 4, else 3, else 2. At most `count` tokens.
std::vector<int64_t> lookUp(const std::vector<int64_t> &history, size_t count);

/// A smaller model that guesses: one that is already open, or one in a shared
/// library that Attune compiled, which brings its own runtime along.
class DraftModel {
public:
  /// `model` must outlive the draft.
  explicit DraftModel(CompiledModel &model);
  static std::unique_ptr<DraftModel> load(const std::string &path,
                                          Error &error);
  ~DraftModel();
  DraftModel(const DraftModel &) = delete;

  /// Forgets what it read, and makes room for texts of `capacity` tokens, if
  /// its context is not shorter.
  bool start(int64_t capacity, Error &error);
  /// Appends up to `count` guesses of what follows `history` to `ids`, and the
  /// distributions that they were drawn from. `sampler` draws them. There are
  /// fewer if its context ends, or if a token is not in both vocabularies;
  /// `vocabulary` is that of the model that checks.
  bool guess(std::vector<int64_t> history, size_t count, int64_t vocabulary,
             Sampler &sampler, const std::vector<int64_t> &banned,
             std::vector<int64_t> &ids,
             std::vector<std::vector<Sampler::Choice>> &from, Error &error);

private:
  DraftModel();
  void closeSession();
  bool step(const int64_t *ids, int64_t count, Error &error);
  const float *logits(Error &error);
  bool rewind(int64_t length, Error &error);

  // One or the other.
  CompiledModel *model = nullptr;
  std::unique_ptr<Session> session;

  struct Library;
  std::unique_ptr<Library> library;
  attune_instance *instance = nullptr;
  attune_session *remote = nullptr;

  int64_t room = 0, size = 0; ///< positions, and the vocabulary
  std::vector<int64_t> seen;  ///< what its cache holds
};

/// The counts of guessed tokens.
struct GuessCounts {
  int64_t steps = 0;    ///< of the model, after the prompt
  int64_t guesses = 0;  ///< that were checked
  int64_t accepted = 0; ///< of them
  int64_t tokens = 0;   ///< that these steps gave
};

} // namespace attune::runtime

#endif // ATTUNE_RUNTIME_GUESS_H
