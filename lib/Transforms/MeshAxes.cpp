//===- MeshAxes.cpp - How many ranks share what -----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Transforms/MeshAxes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"

using namespace llvm;

namespace attune {

std::optional<MeshAxes> MeshAxes::parse(StringRef text, std::string &problem) {
  constexpr int64_t most = 1024;
  MeshAxes axes;
  SmallVector<StringRef> items;
  text.split(items, ',');
  StringMap<int64_t> sizes;
  bool good = true;
  for (StringRef item : items) {
    auto [axis, size] = item.split('=');
    int64_t ranks = 0;
    good = good &&
           (axis == "tp" || axis == "ep" || axis == "sp" || axis == "dp") &&
           !size.getAsInteger(10, ranks) && ranks >= 1 && ranks <= most &&
           sizes.insert({axis, ranks}).second;
  }
  auto take = [&](StringRef axis, int64_t &ranks) {
    if (auto known = sizes.find(axis); known != sizes.end())
      ranks = known->second;
  };
  take("tp", axes.tp);
  take("ep", axes.ep);
  take("sp", axes.sp);
  take("dp", axes.dp);
  bool same = axes.tp == 1 || axes.ep == 1 || axes.tp == axes.ep;
  if (good && same)
    return axes;
  if (good)
    problem = "the same ranks share layers and experts, so tp and ep are the "
              "same number if both are given; found '" +
              text.str() + "'";
  else
    problem =
        "expected tp=N, ep=N, sp=N or dp=N, or several of them with commas "
        "between, with N from 1 to " +
        std::to_string(most) + ", found '" + text.str() + "'";
  return std::nullopt;
}

} // namespace attune
