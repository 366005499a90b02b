//===- Router.h - How a token's experts are chosen --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_SPEC_ROUTER_H
#define ATTUNE_SPEC_ROUTER_H

#include <cstdint>

namespace attune::spec {

/// SparseMixer (Liu et al. 2024): each chosen expert has its share of a softmax
/// over the experts near it that were not chosen before. A logit is near if it
/// is below by no more than twice `eps` of the larger size.
enum class RouterScores { Softmax, Sigmoid, SparseMixer };
enum class GroupScore { Max, TopTwo };
/// How a token's experts are chosen; see attune.router.
struct Router {
  RouterScores scores = RouterScores::Softmax;
  bool softmaxAfter = false; ///< over the chosen experts only
  bool selectBias = false;   ///< role "router.bias" [E]: for the choice only
  bool logitBias = false;    ///< role "router.logit_bias" [E]: before scores
  int64_t groups = 1, activeGroups = 1;
  GroupScore groupScore = GroupScore::Max;
  bool renormalise = false;
  double eps = 0;
  double scale = 1;
};

} // namespace attune::spec

#endif // ATTUNE_SPEC_ROUTER_H
