//===- LoraBranches.cpp - Adapters that stay apart ------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Weights/LoraBranches.h"

#include "LoraFile.h"

#include <algorithm>
#include <filesystem>

namespace attune {

/// The last part of a path that has a name: "b" of "a/b/" and of "a/b".
static std::string nameOf(const std::string &folder) {
  namespace fs = std::filesystem;
  fs::path path = fs::absolute(folder).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

bool LoraBranches::add(const std::string &folder, double scale,
                       const Checkpoint &checkpoint, DiagnosticEngine &diags) {
  std::optional<LoraFile> lora = LoraFile::open(folder, diags);
  if (!lora)
    return false;
  auto fail = [&](const std::string &what) {
    diags.error({}, folder + ": " + what);
    return false;
  };
  std::string name = nameOf(folder);
  if (std::find(adapters.begin(), adapters.end(), name) != adapters.end())
    return fail("another adapter is in a folder of this name, too; adapters "
                "that stay apart go by the names of their folders");
  if (lora->config.magnitudes)
    return fail("sets lengths of outputs (use_dora), which a branch cannot; "
                "without --lora-apart it is merged into the weights");
  std::vector<LoraPart> pairs, others;
  if (!lora->list(pairs, others, diags))
    return false;
  if (!others.empty())
    return fail("has '" + others.front().tensor->name +
                "', which takes the place of a whole tensor; without "
                "--lora-apart it is merged into the weights");
  if (pairs.empty())
    return fail("this adapter has no tensor, so it would change nothing; its "
                "files may be incomplete");
  for (const LoraPart &part : pairs) {
    std::optional<LoraPair> pair = lora->findPair(part, checkpoint, diags);
    if (!pair)
      return false;
    if (pair->table)
      return fail("changes '" + pair->base->name +
                  "', a table of embeddings; without --lora-apart it is merged "
                  "into the weights");
    Matrices &made = matrices[pair->base->name][adapters.size()];
    made.rank = pair->rank;
    made.down = numbersOf(*pair->down, /*transposed=*/false);
    made.up = numbersOf(*pair->up, /*transposed=*/false);
    double factor = scale * pair->scale;
    for (float &value : made.up)
      value = static_cast<float>(factor * value);
  }
  adapters.push_back(name);
  return true;
}

std::vector<std::string> LoraBranches::ranks() const {
  std::vector<std::string> rules;
  for (const auto &[tensor, all] : matrices) {
    int64_t most = 1;
    for (const auto &[adapter, made] : all)
      most = std::max(most, made.rank);
    rules.push_back(tensor + ":" + std::to_string(most));
  }
  return rules;
}

const LoraBranches::Matrices *LoraBranches::find(const std::string &tensor,
                                                 size_t adapter) const {
  auto all = matrices.find(tensor);
  if (all == matrices.end())
    return nullptr;
  auto own = all->second.find(adapter);
  return own == all->second.end() ? nullptr : &own->second;
}

std::vector<float> LoraBranches::makeDown(const std::string &tensor,
                                          size_t adapter, int64_t rank,
                                          int64_t inner) const {
  std::vector<float> values(rank * inner);
  if (const Matrices *own = find(tensor, adapter))
    std::copy(own->down.begin(), own->down.end(), values.begin());
  return values;
}

std::vector<float> LoraBranches::makeUp(const std::string &tensor,
                                        size_t adapter, int64_t outer,
                                        int64_t begin, int64_t total) const {
  std::vector<float> values(outer * total);
  if (const Matrices *own = find(tensor, adapter))
    for (int64_t row = 0; row < outer; ++row)
      std::copy_n(&own->up[row * own->rank], own->rank,
                  &values[row * total + begin]);
  return values;
}

} // namespace attune
