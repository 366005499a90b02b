//===- AttentionChain.cpp - Reads the attention ladder ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionChain.h"

using namespace mlir;

namespace attune {
namespace {

/// The op of type `Link` that makes `value` for `user` alone.
template <typename Link>
MatchFailure takeLink(Value value, Operation *user, StringRef what,
                      Link &link) {
  Operation *def = value.getDefiningOp();
  if (!def)
    return MatchFailure("its " + what + " come from outside the function body");
  link = dyn_cast<Link>(def);
  if (!link)
    return MatchFailure("its " + what + " come from " +
                            def->getName().getStringRef() + ", not " +
                            Link::getOperationName(),
                        def->getLoc(), "made here");
  if (def->getBlock() != user->getBlock())
    return MatchFailure("its " + what +
                            " are made in another block, so that one "
                            "computation may serve several turns",
                        def->getLoc(), "made here");
  for (Operation *other : value.getUsers())
    if (other != user)
      return MatchFailure("its " + what + " have another user", other->getLoc(),
                          "used here");
  return {};
}

/// Adds what `op` does to `chain`, whose own masking happens later.
MatchFailure prepend(MaskScoresOp op, AttentionChain &chain) {
  auto twice = [&](StringRef what) {
    return MatchFailure("its scores are given " + what + " twice", op.getLoc(),
                        "also here");
  };
  if (chain.softcap)
    return MatchFailure("its scores are masked or biased before the soft cap",
                        op.getLoc(), "here");
  if (op.getMask() && chain.mask)
    return twice("a mask");
  if (op.getBias() && chain.bias)
    return twice("a bias");
  if (op.getDiagonals() && chain.diagonals)
    return twice("diagonals");
  if (op.getSlopes() && chain.slopes)
    return twice("slopes");
  if (op.getLengths() && chain.lengths)
    return twice("lengths");
  if (op.getBlocks() && chain.blocks)
    return twice("blocks");
  // A window counts from the causal diagonal of its own op.
  bool band = op.getCausal() != CausalAlign::None || op.getWindow();
  if (band && (chain.causal != CausalAlign::None || chain.window))
    return twice("a causal mask or window");

  if (op.getMask())
    chain.mask = op.getMask();
  if (op.getBias())
    chain.bias = op.getBias();
  if (op.getDiagonals())
    chain.diagonals = op.getDiagonals();
  if (op.getSlopes())
    chain.slopes = op.getSlopes();
  if (op.getLengths())
    chain.lengths = op.getLengths();
  if (op.getBlocks()) {
    chain.blocks = op.getBlocks();
    chain.blockSizes = op.getBlockSizesAttr();
  }
  if (band) {
    chain.causal = op.getCausal();
    chain.window = op.getWindowAttr();
  }
  chain.softcap = op.getSoftcapAttr();
  return {};
}

} // namespace

MatchFailure matchLadder(WeightedSumOp root, AttentionChain &chain) {
  chain.root = root;
  chain.resultType = root.getType();
  chain.value = root.getValue();

  SoftmaxOp softmax;
  if (MatchFailure no = takeLink(root.getProbs(), root, "weights", softmax))
    return no;
  chain.links.push_back(softmax);
  chain.sinks = softmax.getSinks();

  Operation *user = softmax;
  Value scores = softmax.getScores();
  while (scores.getDefiningOp<MaskScoresOp>()) {
    MaskScoresOp masked;
    if (MatchFailure no = takeLink(scores, user, "masked scores", masked))
      return no;
    if (MatchFailure no = prepend(masked, chain))
      return no;
    chain.links.push_back(masked);
    user = masked;
    scores = masked.getScores();
  }

  SimilarityOp similarity;
  if (MatchFailure no = takeLink(scores, user, "scores", similarity))
    return no;
  chain.links.push_back(similarity);
  chain.query = similarity.getQuery();
  chain.key = similarity.getKey();
  chain.scale = similarity.getScaleAttr();

  // The fused op shares keys and values among the same groups of heads.
  int64_t keyHeads = similarity.getKey().getType().getDimSize(1);
  int64_t valueHeads = root.getValue().getType().getDimSize(1);
  if (ShapedType::isDynamic(keyHeads) || ShapedType::isDynamic(valueHeads))
    return MatchFailure(
        "its keys and values may differ in their number of heads");
  if (keyHeads != valueHeads)
    return MatchFailure("its keys have " + Twine(keyHeads) +
                            " heads, but its values " + Twine(valueHeads),
                        similarity.getLoc(), "keys are used here");
  return {};
}

} // namespace attune
