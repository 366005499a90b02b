//===- HandwrittenChain.cpp - Attention written in linalg -------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HandwrittenChain.h"
#include "IndexMask.h"
#include "ScoreExpr.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;

namespace attune {
namespace {

/// Two products of constants that differ by no more than the rounding of
/// single constants.
bool isClose(double a, double b) {
  return std::abs(a - b) <= 0x1p-22 * std::abs(b);
}

std::string textOf(double number) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%g", number);
  return text;
}

/// Below any score that a softmax of f32 can tell from it.
constexpr double kLowest = -1e9;

/// A condition that lets scores through and replaces the others, or adds to
/// them, by a number.
struct MaskTerm {
  const ScoreExpr *condition;
  bool hidden;     // the condition says which scores are not seen
  double fill;     // what hidden ones get
  ScoreTensor own; // the tensor of the mask or bias, if there is one
  bool additive;   // that tensor is a bias
};

class ChainReader {
public:
  ChainReader(Operation *op, HandwrittenChain &chain, unsigned rank,
              unsigned key)
      : chain(chain), reader(op->getContext(), rank + 1, key), rank(rank),
        where(op->getLoc()) {}

  /// The weights as a formula.
  MatchFailure readWeights();
  /// The product that the scores come from.
  MatchFailure readScores();
  MatchFailure collectLinks();

private:
  MatchFailure refuse(const Twine &reason) const {
    return MatchFailure(reason, where, "weighed by the softmax of this");
  }
  AffineMap mapOf(ArrayRef<unsigned> labels) const;
  MatchFailure explainWeights(const ScoreExpr *weights) const;
  bool findQuotient(const ScoreExpr *power);
  MatchFailure readShift(const ScoreExpr *exponent);
  MatchFailure peel();
  MatchFailure peelSelect();
  MatchFailure peelSum(const ScoreExpr *rest, const ScoreExpr *added);
  MatchFailure addBias(const ScoreTensor &bias);
  MatchFailure addMask(const MaskTerm &term, const ScoreSizes &sizes);
  MatchFailure resolveMasks(const ScoreSizes &sizes);
  MatchFailure checkFills() const;
  MatchFailure describeUnknown(const ScoreExpr *expr) const;
  ScoreTensor tensorOf(const ScoreExpr *expr) const;
  bool isLow(double fill) const;
  void noteRounding();

  HandwrittenChain &chain;
  ScoreReader reader;
  unsigned rank;
  Location where;
  /// The scores are `factor` times this.
  const ScoreExpr *scores = nullptr;
  double factor = 1;
  SmallVector<MaskTerm> masks;
  /// The value that a causal mask or window puts in place of scores, if not
  /// -inf.
  std::optional<double> finiteFill;
};

//===-- Softmax ----------------------------------------------------------===//

/// The p of `p / sum p` or `p * (1 / sum p)`, where `sum` is a row's sum.
std::pair<const ScoreExpr *, const ScoreExpr *>
readQuotient(const ScoreExpr *expr) {
  const ScoreExpr *top = nullptr, *sum = nullptr;
  if (expr->is(ScoreExpr::Div)) {
    top = expr->args[0];
    sum = expr->args[1];
  } else if (expr->is(ScoreExpr::Mul)) {
    top = expr->args[0];
    sum = expr->args[1];
    if (top->is(ScoreExpr::Div) && top->args[0]->isNumber(1))
      std::swap(top, sum);
    if (!sum->is(ScoreExpr::Div) || !sum->args[0]->isNumber(1))
      return {};
    sum = sum->args[1];
  }
  if (!sum || !sum->is(ScoreExpr::RowSum))
    return {};
  return {top, sum->args[0]};
}

bool isPower(const ScoreExpr *expr) {
  return expr->is(ScoreExpr::Exp) || expr->is(ScoreExpr::Exp2);
}

/// Some part of the formula is as `wanted`.
bool holds(const ScoreExpr *expr,
           function_ref<bool(const ScoreExpr *)> wanted) {
  SmallVector<const ScoreExpr *> work = {expr};
  llvm::SmallPtrSet<const ScoreExpr *, 16> seen;
  while (!work.empty()) {
    const ScoreExpr *next = work.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    if (wanted(next))
      return true;
    work.append(next->args.begin(), next->args.end());
  }
  return false;
}

bool isProductLeaf(const ScoreExpr *expr) {
  return expr->is(ScoreExpr::Leaf) && expr->map &&
         isProduct(expr->tensor.getDefiningOp());
}

bool holdsProduct(const ScoreExpr *expr) { return holds(expr, isProductLeaf); }

AffineMap ChainReader::mapOf(ArrayRef<unsigned> labels) const {
  MLIRContext *context = chain.weighing.op.getContext();
  SmallVector<AffineExpr> dims;
  for (unsigned label : labels)
    dims.push_back(getAffineDimExpr(label, context));
  return AffineMap::get(rank + 1, 0, dims, context);
}

/// Labels of the result of an op that computes element by element.
std::optional<SmallVector<unsigned>> labelsThrough(OpOperand &use,
                                                   ArrayRef<unsigned> labels) {
  Operation *user = use.getOwner();
  if (OpTrait::hasElementwiseMappableTraits(user))
    return llvm::to_vector(labels);
  auto op = dyn_cast<linalg::LinalgOp>(user);
  if (!op || op.getNumReductionLoops() != 0 || op->getNumResults() != 1 ||
      !op.hasPureTensorSemantics())
    return std::nullopt;
  AffineMap in = op.getMatchingIndexingMap(&use);
  AffineMap out = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  if (!in.isPermutation() || !out.isPermutation())
    return std::nullopt;
  return applyPermutationMap(out.compose(inversePermutation(in)), labels);
}

/// The op behind the product with values that divides by the sums of `power`.
bool ChainReader::findQuotient(const ScoreExpr *power) {
  SmallVector<unsigned> labels = chain.weighing.result.labels;
  Value value = chain.weighing.op->getResult(0);
  for (unsigned step = 0; step < 4 && value.hasOneUse(); ++step) {
    OpOperand &use = *value.getUses().begin();
    auto behind = labelsThrough(use, labels);
    if (!behind)
      return false;
    labels = *behind;
    value = use.getOwner()->getResult(0);
    auto [top, summed] = readQuotient(reader.read(value, mapOf(labels)));
    if (!top)
      continue;
    if (summed != power || !top->is(ScoreExpr::Leaf) ||
        top->tensor != chain.weighing.op->getResult(0))
      return false;
    chain.root = use.getOwner();
    chain.resultLabels = labels;
    return true;
  }
  return false;
}

/// Says what keeps the weights from being a softmax.
MatchFailure ChainReader::explainWeights(const ScoreExpr *weights) const {
  if (auto softmax =
          chain.weighing.weights.value.getDefiningOp<linalg::SoftmaxOp>())
    return MatchFailure("its softmax runs over dimension " +
                            Twine(softmax.getDimension()) +
                            ", but the product with values sums dimension " +
                            Twine(chain.weighing.key),
                        softmax.getLoc(), "made here");
  if (isPower(weights))
    return refuse("its weights are not divided by their sums, neither before "
                  "the product with values nor after it alone");
  auto isSoftmax = [](const ScoreExpr *expr) {
    if (expr->is(ScoreExpr::Softmax))
      return true;
    auto [top, summed] = readQuotient(expr);
    return top && top == summed && isPower(top);
  };
  if (holds(weights, isSoftmax))
    return refuse("its weights are changed after their softmax");
  if (holds(weights, [](const ScoreExpr *e) { return isPower(e); }) &&
      holds(weights,
            [](const ScoreExpr *e) { return e->is(ScoreExpr::RowSum); }))
    return refuse("its weights are not exponentials divided by the sums of the "
                  "same exponentials");
  return MatchFailure("its weights are not the softmax of rows of scores");
}

MatchFailure ChainReader::readWeights() {
  chain.root = chain.weighing.op;
  chain.resultLabels = chain.weighing.result.labels;
  const LabelledTensor &tensor = chain.weighing.weights;
  const ScoreExpr *weights = reader.read(tensor.value, mapOf(tensor.labels));
  if (tensor.value.getDefiningOp())
    where = tensor.value.getLoc();
  if (weights->is(ScoreExpr::Softmax)) {
    scores = weights->args[0];
    return {};
  }
  const ScoreExpr *power = weights;
  if (!isPower(weights) || !findQuotient(weights)) {
    auto [top, summed] = readQuotient(weights);
    if (!top || top != summed || !isPower(top))
      return explainWeights(weights);
    power = top;
  }
  // 2^x = e^(x log 2)
  if (power->is(ScoreExpr::Exp2))
    factor = llvm::numbers::ln2;
  return readShift(power->args[0]);
}

/// Exponents are scores, of which their maximum is taken off; then, too, they
/// may be scaled.
MatchFailure ChainReader::readShift(const ScoreExpr *exponent) {
  ScaledExpr outer = stripFactors(exponent);
  scores = exponent;
  bool difference = outer.expr->is(ScoreExpr::Sub);
  if (!difference && !outer.expr->is(ScoreExpr::Add))
    return {};
  ScaledExpr rest = stripFactors(outer.expr->args[0]);
  ScaledExpr max = stripFactors(outer.expr->args[1]);
  if (!difference) {
    if (rest.expr->is(ScoreExpr::RowMax))
      std::swap(rest, max);
    max.factor = -max.factor;
  }
  if (!max.expr->is(ScoreExpr::RowMax)) {
    if (difference && holdsProduct(rest.expr))
      scores = exponent; // A bias with a minus, or a mask.
    return {};
  }
  ScaledExpr of = stripFactors(max.expr->args[0]);
  if (of.expr != rest.expr || !isClose(max.factor * of.factor, rest.factor))
    return refuse("it subtracts something else than the maximum of its scores");
  if (of.factor <= 0 || outer.factor <= 0 || rest.factor <= 0)
    return refuse("its scores are scaled by a number below zero around their "
                  "maximum");
  scores = rest.expr;
  factor *= outer.factor * rest.factor;
  return {};
}

//===-- Scores -----------------------------------------------------------===//

ScoreTensor ChainReader::tensorOf(const ScoreExpr *expr) const {
  auto [value, map] = reader.tensorOf(expr);
  return ScoreTensor{value, map};
}

/// Hidden scores of this value are nothing in a softmax, whatever the others.
bool ChainReader::isLow(double fill) const {
  if (fill <= kLowest)
    return true;
  Type type = getElementTypeOrSelf(chain.product.op->getResult(0));
  // The least number that there is.
  return type.isF16() && fill <= -65504;
}

MatchFailure ChainReader::addBias(const ScoreTensor &bias) {
  if (!bias || !bias.map)
    return refuse("its scores have a bias that is no tensor of its own");
  if (chain.bias)
    return refuse("its scores are given a bias twice");
  if (MatchFailure no = checkBroadcast(bias, "bias", chain))
    return no;
  chain.bias = bias;
  return {};
}

/// Says which part of a formula attention has no word for.
MatchFailure ChainReader::describeUnknown(const ScoreExpr *expr) const {
  if (expr->is(ScoreExpr::Leaf)) {
    Operation *def = expr->tensor.getDefiningOp();
    if (def && isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp,
                   tensor::ReshapeOp, tensor::CastOp>(def))
      return MatchFailure("its scores are reshaped before their softmax",
                          def->getLoc(), "reshaped here");
    return refuse("its scores are not a product of queries and keys");
  }
  if (!holdsProduct(expr))
    return refuse("its scores are not a product of queries and keys");
  if (expr->is(ScoreExpr::Other))
    return MatchFailure("its scores go through " +
                            expr->op->getName().getStringRef() +
                            ", which attention does not do",
                        expr->op->getLoc(), "here");
  if (expr->is(ScoreExpr::Mul) || expr->is(ScoreExpr::Div))
    return refuse("its scores are scaled by a number that is no constant");
  return refuse("its scores are computed from their product in a way that "
                "attention does not do");
}

/// One branch lets the scores through, the other hides them.
MatchFailure ChainReader::peelSelect() {
  const ScoreExpr *kept = scores->args[1], *other = scores->args[2];
  bool hidden = kept->is(ScoreExpr::Number);
  if (hidden)
    std::swap(kept, other);
  if (!other->is(ScoreExpr::Number))
    return refuse("its masked scores become something else than a constant");
  if (factor <= 0)
    return refuse("its scores are scaled by a number below zero after they are "
                  "masked");
  double fill = other->number * factor;
  masks.push_back({scores->args[0], hidden, fill, tensorOf(scores->args[0]),
                   /*additive=*/false});
  scores = kept;
  return {};
}

/// An added term is a mask of zeros and low numbers, or a bias.
MatchFailure ChainReader::peelSum(const ScoreExpr *rest,
                                  const ScoreExpr *added) {
  scores = rest;
  if (added->is(ScoreExpr::Select) && added->args[1]->is(ScoreExpr::Number) &&
      added->args[2]->is(ScoreExpr::Number) &&
      (added->args[1]->number == 0 || added->args[2]->number == 0) &&
      factor > 0) {
    bool hidden = added->args[1]->number != 0;
    double fill = added->args[hidden ? 1 : 2]->number * factor;
    ScoreTensor own = tensorOf(added);
    if (!isClose(factor, 1))
      own = {};
    masks.push_back({added->args[0], hidden, fill, own, /*additive=*/true});
    return {};
  }
  if (!isClose(factor, 1))
    return refuse("its scores are scaled after a bias is added to them");
  factor = 1;
  if (chain.bias)
    return refuse("its scores are given a bias twice");
  chain.bias = tensorOf(added);
  if (!chain.bias || !chain.bias.map)
    return refuse("its scores have a bias that is no tensor of its own");
  return {};
}

/// Takes scale, cap, bias and masks off the scores until the product is left.
MatchFailure ChainReader::peel() {
  while (!isProductLeaf(scores)) {
    ScaledExpr scaled = stripFactors(scores);
    if (scaled.expr != scores) {
      scores = scaled.expr;
      factor *= scaled.factor;
      continue;
    }
    bool masks = scores->is(ScoreExpr::Select) || scores->is(ScoreExpr::Add) ||
                 scores->is(ScoreExpr::Sub);
    if (chain.softcap && masks && holdsProduct(scores))
      return refuse("its scores are masked or biased before the soft cap");
    if (scores->is(ScoreExpr::Tanh)) {
      if (chain.softcap)
        return refuse("its scores are capped twice");
      // f tanh(x) = c tanh(f x / c) with c = |f|
      if (factor == 0)
        return refuse("its scores are all zero");
      chain.softcap = std::abs(factor);
      scores = scores->args[0];
      continue;
    }
    MatchFailure no;
    if (scores->is(ScoreExpr::Select) && holdsProduct(scores)) {
      no = peelSelect();
    } else if (scores->is(ScoreExpr::Add) && holdsProduct(scores)) {
      const ScoreExpr *rest = scores->args[0], *added = scores->args[1];
      if (!holdsProduct(rest))
        std::swap(rest, added);
      no = peelSum(rest, added);
    } else if (scores->is(ScoreExpr::Sub) && holdsProduct(scores->args[0])) {
      const ScoreExpr *negative =
          reader.make(ScoreExpr::Mul, {scores->args[1], reader.number(-1)});
      no = peelSum(scores->args[0], negative);
    } else {
      no = describeUnknown(scores);
    }
    if (no)
      return no;
  }
  return {};
}

MatchFailure ChainReader::readScores() {
  if (MatchFailure no = peel())
    return no;
  chain.scale = factor;
  if (!std::isfinite(chain.scale) || !std::isfinite(float(chain.scale)) ||
      !std::isfinite(chain.softcap.value_or(0)))
    return refuse("its scale is not a finite number");
  Operation *op = scores->tensor.getDefiningOp();
  Type type = getElementTypeOrSelf(scores->tensor);
  if (!isa<Float32Type, Float16Type, BFloat16Type>(type))
    return refuse("its scores are not in f32, bf16 or f16");
  if (MatchFailure no =
          readScoreProduct(op, scores->map, chain.weighing, chain.product))
    return no;

  if (ScoreTensor bias = std::exchange(chain.bias, {}))
    if (MatchFailure no = addBias(bias))
      return no;
  ScoreSizes sizes(chain.weighing, chain.product);
  if (MatchFailure no = resolveMasks(sizes))
    return no;
  Value tensors[] = {chain.product.query.value, chain.product.key.value,
                     chain.product.value.value, chain.root->getResult(0)};
  for (Value value : tensors)
    if (!isa<Float32Type, Float16Type, BFloat16Type>(
            getElementTypeOrSelf(value.getType())))
      return MatchFailure(
          "it computes with other numbers than f32, bf16 and f16");
  return {};
}

//===-- Masks ------------------------------------------------------------===//

/// One mask in the words of attention, else as the tensor that it is.
MatchFailure ChainReader::addMask(const MaskTerm &term,
                                  const ScoreSizes &sizes) {
  if (!isLow(term.fill))
    return term.additive && term.own
               ? addBias(term.own)
               : refuse("its masked scores become " + textOf(term.fill) +
                        ", which other scores may be below; mask with -inf");
  VisibleKeys visible;
  MatchFailure no =
      readVisibleKeys(term.condition, term.hidden, reader, sizes,
                      chain.product.rows, chain.weighing.key, visible);
  bool band = visible.causal != CausalAlign::None || visible.window;
  if (!no && band && (chain.causal != CausalAlign::None || chain.window))
    no = refuse("its scores are given a causal mask or window twice");
  if (!no && std::isfinite(term.fill) && !visible.everyRowSees)
    no = refuse("a query that sees no key gets the mean of all values where "
                "hidden scores are " +
                textOf(term.fill) +
                ", and zeros from attention; mask with -inf");
  ScoreTensor mask;
  if (!no && visible.mask) {
    mask = tensorOf(visible.mask);
    mask.hides = visible.maskHides;
    no = chain.mask ? refuse("its scores are given a mask twice")
                    : checkBroadcast(mask, "mask", chain);
  }
  if (!no) {
    if (mask)
      chain.mask = mask;
    if (band) {
      chain.causal = visible.causal;
      chain.window = visible.window;
      if (std::isfinite(term.fill))
        finiteFill = term.fill;
    }
    return {};
  }
  if (!term.own)
    return no;
  if (term.additive)
    return addBias(term.own);
  if (std::isfinite(term.fill) || chain.mask)
    return no;
  mask = term.own;
  mask.hides = term.hidden;
  if (MatchFailure misfit = checkBroadcast(mask, "mask", chain))
    return no.reason.empty() ? misfit : no;
  chain.mask = mask;
  return {};
}

MatchFailure ChainReader::resolveMasks(const ScoreSizes &sizes) {
  // Together they may be one window.
  if (masks.size() > 1 && llvm::all_of(masks, [&](const MaskTerm &term) {
        return isLow(term.fill);
      })) {
    const ScoreExpr *all = nullptr;
    MaskTerm joint = masks.front();
    for (const MaskTerm &term : masks) {
      const ScoreExpr *seen =
          term.hidden ? reader.make(ScoreExpr::Not, {term.condition})
                      : term.condition;
      all = all ? reader.make(ScoreExpr::And, {all, seen}) : seen;
      joint.fill = std::max(joint.fill, term.fill);
    }
    joint.condition = all;
    joint.hidden = false;
    joint.own = {};
    if (!addMask(joint, sizes))
      return checkFills();
  }
  for (const MaskTerm &term : masks)
    if (MatchFailure no = addMask(term, sizes))
      return no.where ? no : refuse(no.reason);
  return checkFills();
}

/// A finite number hides a score only among scores that nothing else makes low:
/// a row whose seen keys are all hidden by a tensor would attend to the others.
MatchFailure ChainReader::checkFills() const {
  if (!finiteFill || (!chain.mask && !chain.bias))
    return {};
  return refuse("its masked scores become " + textOf(*finiteFill) +
                ", and its " + (chain.mask ? "other mask" : "bias") +
                " may make others as low; mask with -inf");
}

//===-- Links ------------------------------------------------------------===//

/// Collects what lies between the scores and the end of the chain, users before
/// producers: ops that serve this chain alone and run as often as its end does.
MatchFailure ChainReader::collectLinks() {
  Operation *root = chain.root;
  llvm::SmallPtrSet<Operation *, 8> own(reader.ops().begin(),
                                        reader.ops().end());
  own.insert(chain.weighing.op);
  SetVector<Operation *> links;
  links.insert(chain.product.op);
  for (unsigned i = 0; i < links.size(); ++i) {
    if (links[i]->getBlock() != root->getBlock())
      return MatchFailure("a part of it is computed in another block, so that "
                          "one computation may serve several turns",
                          links[i]->getLoc(), "computed here");
    for (Operation *user : links[i]->getUsers()) {
      if (user != root && !own.contains(user))
        return MatchFailure("a part of it has another user", user->getLoc(),
                            "used here");
      if (user != root)
        links.insert(user);
    }
  }
  chain.links = llvm::to_vector(llvm::reverse(links));
  noteRounding();
  // Ops that made masks and repeated keys may be left without a user.
  llvm::append_range(chain.links, chain.product.repeats);
  for (Operation *op : llvm::reverse(reader.ops()))
    if (!links.contains(op) && op != root)
      chain.links.push_back(op);
  return {};
}

void ChainReader::noteRounding() {
  auto isNarrow = [](Operation *op) {
    return isa<Float16Type, BFloat16Type>(
        getElementTypeOrSelf(op->getResult(0)));
  };
  auto name = [](Operation *op) {
    std::string text;
    llvm::raw_string_ostream(text) << getElementTypeOrSelf(op->getResult(0));
    return text;
  };
  if (isNarrow(chain.product.op)) {
    chain.rounded = "its scores to " + name(chain.product.op);
    return;
  }
  for (Operation *link : chain.links)
    if (isNarrow(link) && link != chain.weighing.op) {
      chain.rounded = "its weights to " + name(link);
      return;
    }
}

} // namespace

/// An op that can stand between a product with values and its quotient.
static bool mayDivide(Operation *op) {
  auto isOne = [](Operation *part) {
    return isa<arith::DivFOp, arith::MulFOp, arith::ExtFOp, arith::TruncFOp,
               linalg::YieldOp>(part);
  };
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  return linalgOp
             ? linalgOp.getNumReductionLoops() == 0 &&
                   llvm::all_of(linalgOp.getBlock()->getOperations(),
                                [&](Operation &part) { return isOne(&part); })
             : isOne(op) && op->getNumOperands() > 0;
}

Operation *findWeighing(Operation *op) {
  for (unsigned step = 0; step < 4 && op; ++step) {
    if (isProduct(op))
      return op;
    if (!mayDivide(op))
      return nullptr;
    op = op->getOperand(0).getDefiningOp();
  }
  return nullptr;
}

MatchFailure matchHandwritten(Operation *op, HandwrittenChain &chain) {
  MatchFailure failure("it is not a product of weights and values");
  for (unsigned side : {0, 1}) {
    std::optional<Weighing> weighing = readWeighing(op, side);
    if (!weighing)
      continue;
    HandwrittenChain read;
    read.weighing = *weighing;
    ChainReader reader(op, read, weighing->rank, weighing->key);
    if (MatchFailure no = reader.readWeights()) {
      // The reason that knows of an op says more.
      if (side == 0 || (no.where && !failure.where))
        failure = no;
      continue;
    }
    if (MatchFailure no = reader.readScores())
      return no;
    if (MatchFailure no = reader.collectLinks())
      return no;
    chain = std::move(read);
    return {};
  }
  return failure;
}

} // namespace attune
