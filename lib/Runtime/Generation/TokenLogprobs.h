//===- TokenLogprobs.h - How likely a token was -----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_GENERATION_TOKENLOGPROBS_H
#define ATTUNE_LIB_RUNTIME_GENERATION_TOKENLOGPROBS_H

#include "attune/Runtime/Cli.h"

#include <vector>

namespace attune::runtime {

struct TokenLogprob {
  int64_t id;
  double logprob; ///< at least -1e30: JSON has no infinity
};

/// The log-softmax of the logits as the model gave them, in double precision:
/// of the token and of the `count` likeliest. A token that was forced, whatever
/// its logits, has log-probability 0 and no others beside it.
TokenLogprob computeLogprobs(const NewToken &token, int64_t count,
                             std::vector<TokenLogprob> &likeliest);

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_GENERATION_TOKENLOGPROBS_H
