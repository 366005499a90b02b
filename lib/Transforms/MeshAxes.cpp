//===- MeshAxes.cpp - How many ranks share what -----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Transforms/MeshAxes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

using namespace llvm;

namespace attune {

std::optional<MeshAxes> MeshAxes::parse(StringRef text, std::string &problem) {
  constexpr int64_t most = 1024;
  MeshAxes axes;
  SmallVector<StringRef> items;
  text.split(items, ',');
  bool good = items.size() <= 2;
  for (auto [i, item] : enumerate(items)) {
    auto [axis, size] = item.split('=');
    int64_t &ranks = axis == "ep" ? axes.ep : axes.tp;
    good = good && (axis == "tp" || axis == "ep") && ranks == 1 &&
           !size.getAsInteger(10, ranks) && ranks >= 1 && ranks <= most &&
           (i == 0 || !items[0].starts_with(axis));
  }
  if (good && (axes.tp == 1 || axes.ep == 1 || axes.tp == axes.ep))
    return axes;
  if (good)
    problem = "the same ranks share layers and experts, so tp and ep are the "
              "same number if both are given; found '" +
              text.str() + "'";
  else
    problem = "expected tp=N, ep=N or tp=N,ep=N, with N ranks from 1 to " +
              std::to_string(most) + ", found '" + text.str() + "'";
  return std::nullopt;
}

} // namespace attune
