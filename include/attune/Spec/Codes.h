//===- Codes.h - Several codes written at once ------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_SPEC_CODES_H
#define ATTUNE_SPEC_CODES_H

#include "attune/Support/Diagnostics.h"

#include <cstdint>
#include <string>
#include <vector>

namespace attune::spec {

/// How the last stream writes a frame of sound, which is one code of each
/// codebook, in one step (MusicGen, Copet et al. 2023). Codebook k runs k
/// frames late: where it has no code yet, or none any more, stands `pad`. The
/// last layer gives the scores of all codebooks, one behind the other.
struct Codes {
  /// Inputs [batch, frames] of ids, one for each codebook; the stream starts
  /// from the first.
  std::vector<std::string> inputs;
  int64_t pad = 0;
  /// Scores s of a text become t + guidance * (s - t), where t are those
  /// without a text (classifier-free guidance); 1: s.
  double guidance = 1;
  /// The stream that makes samples of codes, which it reads from inputs of its
  /// own; empty: there is none. It is no part of a forward pass.
  std::string sound;
  int64_t rate = 0; ///< of `sound`: samples a second
  SourceLocation location;
};

/// As a description has it.
std::string print(const Codes &codes);

} // namespace attune::spec

#endif // ATTUNE_SPEC_CODES_H
