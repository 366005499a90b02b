//===- LoraConfig.h - adapter_config.json of PEFT ---------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_WEIGHTS_LORA_LORACONFIG_H
#define ATTUNE_LIB_WEIGHTS_LORA_LORACONFIG_H

#include "attune/Support/Diagnostics.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace attune {

/// What "adapter_config.json" says of the adapter's tensors.
struct LoraConfig {
  /// Values by the end of a module's name; the first that fits holds.
  using Patterns = std::vector<std::pair<std::string, double>>;

  double rank = 8, alpha = 8;
  Patterns ranks, alphas;
  bool ranksAreKnown = true; ///< false: some patterns are not read
  bool rootOfRank = false;   ///< rsLoRA: alpha / sqrt(rank), not alpha / rank
  bool magnitudes = false;   ///< DoRA
  bool transposed = false;   ///< the base's matrices are [in, out]

  /// Nothing if a pattern that is not read may say it.
  std::optional<int64_t> rankOf(const std::string &module) const;
  /// The factor of B A.
  double scaleOf(const std::string &module, int64_t rank) const;
};

/// Reads the file. What an adapter may ask for beyond this is an error at its
/// key.
std::optional<LoraConfig> readLoraConfig(const std::string &path,
                                         DiagnosticEngine &diags);

} // namespace attune

#endif // ATTUNE_LIB_WEIGHTS_LORA_LORACONFIG_H
