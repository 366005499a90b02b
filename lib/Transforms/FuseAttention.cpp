//===- FuseAttention.cpp - The attention chain as one op --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneDialect.h"
#include "HandwrittenChain.h"
#include "attune/Transforms/Passes.h"

#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/Support/Format.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_FUSEATTENTION
#include "attune/Transforms/Passes.h.inc"

namespace {
/// What the user asked for at one chain.
enum class Wish { Auto, Off, Required };

Wish wishOf(Operation *root) {
  auto text = root->getAttrOfType<StringAttr>(AttuneDialect::kFusionAttr);
  return !text                           ? Wish::Auto
         : text.getValue() == "off"      ? Wish::Off
         : text.getValue() == "required" ? Wish::Required
                                         : Wish::Auto;
}

AttentionOp build(AttentionChain &chain, RewriterBase &rewriter) {
  MLIRContext *context = rewriter.getContext();
  SmallVector<Location> locs = {chain.root->getLoc()};
  for (Operation *link : chain.links)
    locs.push_back(link->getLoc());
  auto fused = AttentionOp::create(
      rewriter, FusedLoc::get(context, locs), TypeRange{chain.resultType},
      chain.query, chain.key, chain.value, chain.mask, chain.bias,
      chain.diagonals, chain.slopes, chain.sinks, chain.lengths, chain.blocks,
      chain.scale, CausalAlignAttr::get(context, chain.causal), chain.window,
      chain.softcap, chain.blockSizes);
  for (NamedAttribute attr : chain.root->getDiscardableAttrs())
    if (attr.getName() != AttuneDialect::kFusionAttr)
      fused->setDiscardableAttr(attr.getName(), attr.getValue());
  rewriter.replaceOp(chain.root, fused.getResult());
  return fused;
}

/// "8 query heads over 2 key/value heads, causal bottom_right, window 64".
std::string describe(AttentionOp op) {
  std::string text;
  llvm::raw_string_ostream os(text);
  auto heads = [&](Value v) {
    int64_t n = cast<RankedTensorType>(v.getType()).getDimSize(1);
    return ShapedType::isDynamic(n) ? std::string("?") : std::to_string(n);
  };
  os << heads(op.getQuery()) << " query heads over " << heads(op.getKey())
     << " key/value heads";
  if (op.getCausal() != CausalAlign::None)
    os << ", causal " << stringifyCausalAlign(op.getCausal());
  if (op.getWindow())
    os << ", window " << *op.getWindow();
  if (op.getSoftcap())
    os << ", softcap "
       << llvm::format("%g", op.getSoftcap()->convertToDouble());
  for (auto [operand, name] :
       {std::pair(op.getMask(), "mask"), std::pair(op.getBias(), "bias"),
        std::pair(op.getDiagonals(), "diagonals"),
        std::pair(op.getSlopes(), "slopes"), std::pair(op.getSinks(), "sinks"),
        std::pair(op.getLengths(), "lengths"),
        std::pair(op.getBlocks(), "blocks")})
    if (operand)
      os << ", " << name;
  return text;
}

struct FuseAttention final : impl::FuseAttentionBase<FuseAttention> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<Operation *> roots;
    getOperation()->walk([&](Operation *op) {
      bool asked = op->hasAttr(AttuneDialect::kFusionAttr);
      if (isa<WeightedSumOp>(op) ||
          (isa<linalg::LinalgOp>(op) && (asked || looksLikeWeighing(op))))
        roots.push_back(op);
    });
    bool broken = false;
    for (Operation *root : roots)
      broken |= failed(visit(root));
    if (broken)
      signalPassFailure();
  }

  /// Fuses the chain that ends in `root`, or says why not; fails if fusing it
  /// was required.
  LogicalResult visit(Operation *root) {
    Wish wish = wishOf(root);
    if (wish == Wish::Off)
      return leave(root, wish, Refusal("attune.fusion is \"off\""));
    if (auto sum = dyn_cast<WeightedSumOp>(root)) {
      AttentionChain chain;
      if (Refusal no = matchLadder(sum, chain))
        return leave(root, wish, no);
      fuse(root, chain.links,
           [&](RewriterBase &rewriter) { return build(chain, rewriter); });
      return success();
    }
    HandwrittenChain chain;
    if (Refusal no = matchHandwritten(root, chain))
      return leave(root, wish, no);
    fuse(root, chain.links, [&](RewriterBase &rewriter) {
      return fuseHandwritten(chain, rewriter);
    });
    return success();
  }

  void fuse(Operation *root, ArrayRef<Operation *> links,
            function_ref<AttentionOp(RewriterBase &)> replace) {
    IRRewriter rewriter(root);
    Location loc = root->getLoc();
    AttentionOp fused = replace(rewriter);
    eraseDead(links, rewriter);
    ++numFused;
    remark::passed(loc, remarkName(fused)) << describe(fused);
    if (explainFusion)
      emitRemark(loc) << "fused into attune.attention: " << describe(fused);
  }

  LogicalResult leave(Operation *root, Wish wish, const Refusal &refusal) {
    ++numLeft;
    remark::missed(root->getLoc(), remarkName(root)) << refusal.reason;
    if (wish == Wish::Required) {
      refusal.attachNote(root->emitError("this attention has to be fused, but ")
                         << refusal.reason);
      return failure();
    }
    if (explainFusion)
      refusal.attachNote(emitRemark(root->getLoc())
                         << "not fused: " << refusal.reason);
    return success();
  }

  /// A link goes once its users have gone.
  static void eraseDead(ArrayRef<Operation *> links, RewriterBase &rewriter) {
    SmallVector<Operation *> left(links);
    for (bool gone = true; gone;) {
      gone = false;
      for (Operation *&link : left)
        if (link && link->use_empty()) {
          rewriter.eraseOp(link);
          link = nullptr;
          gone = true;
        }
    }
  }

  static remark::RemarkOpts remarkName(Operation *op) {
    auto func = op->getParentOfType<FunctionOpInterface>();
    return remark::RemarkOpts::name("attention")
        .category("attune-fusion")
        .function(func ? func.getName() : StringRef());
  }
};
} // namespace
} // namespace attune
