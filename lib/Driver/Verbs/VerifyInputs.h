//===- VerifyInputs.h - Random and adversarial inputs -----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_DRIVER_VERBS_VERIFYINPUTS_H
#define ATTUNE_LIB_DRIVER_VERBS_VERIFYINPUTS_H

#include "attune/Runtime/CompiledModel.h"

#include <map>
#include <string>
#include <vector>

namespace attune::driver {

/// One set of sizes and values to compare two models on.
struct VerifyCase {
  std::string name;
  std::map<std::string, int64_t> pinned; ///< sizes asked for
  int64_t length = 1;  ///< of the first open size besides the batch
  bool padded = false; ///< mask the start of each row
  double scale = 1;    ///< of floating-point inputs
  int64_t batch = 1;
  int64_t stretch = 0; ///< added to every further open size
  /// An id that is not among the tokens.
  std::optional<int64_t> without = std::nullopt;
};

/// Lengths 1 and 2, ragged ones around the sizes of blocks, the context (512 at
/// most), padding if there is a mask, and large scores if inputs are floats.
std::vector<VerifyCase>
makeVerifyCases(const runtime::EntryInfo &entry,
                const std::vector<std::pair<std::string, int64_t>> &pinned,
                int64_t context);

/// The tensors of a case; a function of the seed and the case alone.
class VerifyInputs {
public:
  VerifyInputs(const runtime::EntryInfo &entry, const VerifyCase &check,
               uint64_t seed);

  const std::vector<runtime::InputTensor> &tensors() const { return inputs; }
  /// The ids [batch, length] called `name`, or null.
  const int64_t *findIds(const std::string &name, int64_t length) const;

private:
  std::vector<runtime::InputTensor> inputs;
  std::vector<runtime::Buffer> storage;
};

} // namespace attune::driver

#endif // ATTUNE_LIB_DRIVER_VERBS_VERIFYINPUTS_H
