//===- NamesOfTrainers.cpp - What wrappers add to names ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A trainer puts a model into modules of its own. Who saves these, and not the
// model, has their names in front of all tensors, or within.
//
//===----------------------------------------------------------------------===//

#include "attune/Weights/Checkpoint.h"

#include <algorithm>

namespace attune {

namespace {
struct Wrapper {
  std::string_view part;
  const char *leaver; ///< whose it is
  bool anywhere;      ///< one layer alone may have it, or each
};
} // namespace

static constexpr Wrapper wrappers[] = {
    {"_orig_mod.", "torch.compile", true},
    {"_fsdp_wrapped_module.", "FSDP", true},
    {"_checkpoint_wrapped_module.", "activation checkpointing", true},
    {"module.", "DistributedDataParallel", false},
    {"base_model.model.", "PEFT", false},
};

static bool startsWith(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

/// Longer names are no work of a trainer.
static constexpr size_t kLongestName = 4096;
/// Wrappers may be within each other in any order.
static constexpr int kMostRounds = 8;

/// Takes the part out of `name` wherever it is a whole word; whether it is.
static bool takeOut(std::string &name, std::string_view part) {
  size_t before = name.size();
  for (size_t at = 0; (at = name.find(part, at)) != std::string::npos;)
    if (at == 0 || name[at - 1] == '.')
      name.erase(at, part.size());
    else
      ++at;
  return name.size() != before;
}

/// The same for all names; what is only ever in front is so in all.
static bool takeOut(std::vector<std::string> &names, const Wrapper &wrapper) {
  bool changed = false;
  if (wrapper.anywhere) {
    for (std::string &name : names)
      changed |= takeOut(name, wrapper.part);
    return changed;
  }
  for (const std::string &name : names)
    if (!startsWith(name, wrapper.part) || name.size() == wrapper.part.size())
      return false;
  for (std::string &name : names)
    name.erase(0, wrapper.part.size());
  return true;
}

void Checkpoint::unwrapNames() {
  std::vector<std::string> names;
  for (const CheckpointTensor &tensor : all) {
    if (tensor.name.size() > kLongestName)
      return;
    names.push_back(tensor.name);
  }
  std::vector<const Wrapper *> found;
  bool changed = !names.empty();
  for (int round = 0; changed && round < kMostRounds; ++round) {
    changed = false;
    for (const Wrapper &wrapper : wrappers) {
      if (!takeOut(names, wrapper))
        continue;
      changed = true;
      if (std::find(found.begin(), found.end(), &wrapper) == found.end())
        found.push_back(&wrapper);
    }
  }
  // Names that would be the same stay as they are.
  std::set<std::string> different(names.begin(), names.end());
  if (found.empty() || different.size() != names.size() ||
      different.count("") != 0)
    return;
  byName.clear();
  for (size_t i = 0; i < names.size(); ++i) {
    all[i].name = names[i];
    byName.emplace(names[i], &all[i]);
  }
  for (const Wrapper *wrapper : found)
    wrappedIn += (wrappedIn.empty() ? "'" : ", '") +
                 std::string(wrapper->part) + "' (" + wrapper->leaver + ")";
}

void Checkpoint::noteWrappers(DiagnosticEngine &diags) const {
  if (!wrappedIn.empty())
    diags.note({}, filePath +
                       ": the names of tensors are read without what a "
                       "trainer left in them: " +
                       wrappedIn);
}

} // namespace attune
