//===- FuseAttention.cpp - The attention chain as one op --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneDialect.h"
#include "HandwrittenChain.h"
#include "SoftmaxSearch.h"
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
/// The user's choice for one chain.
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

/// An op that may end an attention, and the op that the user's wish stands at.
struct Candidate {
  Operation *op;
  Operation *asked;
};

/// The chains to look at, in their order.
SmallVector<Candidate> findCandidates(Operation *top) {
  llvm::MapVector<Operation *, Operation *> candidates;
  llvm::SmallPtrSet<Operation *, 8> products;
  for (const SoftmaxFound &softmax : findSoftmaxes(top))
    products.insert(softmax.products.begin(), softmax.products.end());
  top->walk([&](Operation *op) {
    if (isa<WeightedSumOp>(op) || products.contains(op))
      candidates.try_emplace(op, op);
    bool canEnd =
        isa<linalg::LinalgOp>(op) || OpTrait::hasElementwiseMappableTraits(op);
    if (!canEnd || !op->hasAttr(AttuneDialect::kFusionAttr))
      return;
    // The wish may stand at what divides the product.
    Operation *weighing = findWeighing(op);
    candidates[weighing ? weighing : op] = op;
  });
  SmallVector<Candidate> ordered;
  for (auto [op, asked] : candidates)
    ordered.push_back({op, asked});
  return ordered;
}

struct FuseAttention final : impl::FuseAttentionBase<FuseAttention> {
  using Base::Base;

  void runOnOperation() override {
    bool broken = false;
    for (Candidate candidate : findCandidates(getOperation()))
      broken |= failed(visit(candidate));
    explainOtherSoftmaxes();
    if (broken)
      signalPassFailure();
  }

  /// Fuses the chain that ends in the candidate, or says why not; fails if
  /// fusing it was required.
  LogicalResult visit(Candidate candidate) {
    Wish wish = wishOf(candidate.asked);
    if (wish == Wish::Off)
      return leave(candidate, wish, MatchFailure("attune.fusion is \"off\""));
    if (auto sum = dyn_cast<WeightedSumOp>(candidate.op)) {
      AttentionChain chain;
      if (MatchFailure no = matchLadder(sum, chain))
        return leave(candidate, wish, no);
      fuse(sum, chain.links, "",
           [&](RewriterBase &rewriter) { return build(chain, rewriter); });
      return success();
    }
    HandwrittenChain chain;
    if (MatchFailure no = matchHandwritten(candidate.op, chain))
      return leave(candidate, wish, no);
    std::string note;
    if (!chain.rounded.empty())
      note = "; more exact than the source, which rounds " + chain.rounded;
    fuse(chain.root, chain.links, note, [&](RewriterBase &rewriter) {
      return fuseHandwritten(chain, rewriter);
    });
    return success();
  }

  void fuse(Operation *root, ArrayRef<Operation *> links, StringRef note,
            function_ref<AttentionOp(RewriterBase &)> replace) {
    IRRewriter rewriter(root);
    Location loc = root->getLoc();
    AttentionOp fused = replace(rewriter);
    eraseDead(links, rewriter);
    ++numFused;
    std::string text = describe(fused) + note.str();
    remark::passed(loc, remarkName(fused)) << text;
    if (explainFusion)
      emitRemark(loc) << "fused into attune.attention: " << text;
  }

  LogicalResult leave(Candidate candidate, Wish wish,
                      const MatchFailure &refusal) {
    ++numLeft;
    Operation *op = candidate.op;
    remark::missed(op->getLoc(), remarkName(op)) << refusal.reason;
    if (wish == Wish::Required) {
      refusal.attachNote(
          candidate.asked->emitError("this attention has to be fused, but ")
          << refusal.reason);
      return failure();
    }
    if (explainFusion)
      refusal.attachNote(emitRemark(op->getLoc())
                         << "not fused: " << refusal.reason);
    return success();
  }

  /// Softmaxes that no candidate reads.
  void explainOtherSoftmaxes() {
    auto explain = [&](Operation *op) {
      (void)leave({op, op}, Wish::Auto,
                  MatchFailure("no product with values follows its softmax"));
    };
    for (const SoftmaxFound &softmax : findSoftmaxes(getOperation()))
      if (softmax.products.empty() && softmax.divided)
        explain(softmax.op);
    getOperation()->walk([&](SoftmaxOp op) {
      if (llvm::none_of(op->getUsers(), llvm::IsaPred<WeightedSumOp>))
        explain(op);
    });
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
