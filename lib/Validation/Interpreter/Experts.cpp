//===- Experts.cpp - Routers and mixtures of experts, as defined ----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layers.h"

#include "Attune/AttunePanels.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace attune;
using namespace attune::validation;
using namespace mlir;

/// The first `count` numbers of 0 to size - 1 by falling value; equal ones by
/// number.
template <typename Value>
static std::vector<int64_t> best(int64_t size, int64_t count, Value value) {
  std::vector<int64_t> order(size);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    double x = value(a), y = value(b);
    if (std::isnan(x) || std::isnan(y))
      return std::isnan(x) == std::isnan(y) ? a < b : std::isnan(y);
    return x == y ? a < b : x > y;
  });
  order.resize(count);
  return order;
}

static void toShares(std::vector<double> &values) {
  double most = *std::max_element(values.begin(), values.end()), sum = 0;
  for (double &value : values)
    sum += value = std::exp(value - most);
  for (double &value : values)
    value /= sum;
}

/// Of each chosen expert its share of a softmax over those near it that were
/// not chosen before.
static std::vector<double> sharesOfNear(std::vector<double> s,
                                        const std::vector<int64_t> &order,
                                        double eps) {
  std::vector<double> shares;
  for (int64_t expert : order) {
    double best = s[expert], sum = 0;
    for (double x : s)
      if (best - x <= 2 * eps * std::max(std::abs(x), best))
        sum += std::exp(x - best);
    shares.push_back(1 / sum);
    s[expert] = -HUGE_VAL;
  }
  return shares;
}

static bool runRouter(Step &step) {
  auto op = cast<RouterOp>(step.op);
  const Array &logits = step.in[0].array();
  const Array *bias = arrayOf(step, op.getBias());
  int64_t experts = logits.shape.back();
  int64_t active =
      cast<ShapedType>(op.getExperts().getType()).getShape().back();
  Shape shape = logits.shape;
  shape.back() = active;
  Datum chosen = makeArray(shape, whole(0)), shares = makeReals(shape);
  int64_t groups = op.getGroups(),
          each = experts / std::max<int64_t>(groups, 1);
  for (int64_t t = 0; t < int64_t(logits.data.size()) / experts; ++t) {
    std::vector<double> s(experts), c;
    for (int64_t e = 0; e < experts; ++e)
      s[e] = logits.data[t * experts + e].f;
    if (op.getScoring() == RouterScoring::Softmax)
      toShares(s);
    if (op.getScoring() == RouterScoring::Sigmoid)
      for (double &value : s)
        value = activate(Activation::Sigmoid, value);
    // Scores that are equal in f32 are equal: their numbers decide.
    for (double &value : s)
      value = float(value);
    c = s;
    for (int64_t e = 0; bias && e < experts; ++e)
      c[e] += bias->data[e].f;
    if (groups > 1) {
      auto kept = best(groups, op.getActiveGroups(), [&](int64_t g) {
        std::vector<double> in(c.begin() + g * each,
                               c.begin() + (g + 1) * each);
        std::sort(in.rbegin(), in.rend());
        return op.getGroupScore() == GroupScore::Max ? in[0] : in[0] + in[1];
      });
      for (int64_t e = 0; e < experts; ++e)
        if (!llvm::is_contained(kept, e / each))
          c[e] = -HUGE_VAL;
    }
    auto order = best(experts, active, [&](int64_t e) { return c[e]; });
    std::vector<double> w;
    for (int64_t e : order)
      w.push_back(s[e]);
    if (op.getScoring() == RouterScoring::TopSoftmax)
      toShares(w);
    if (op.getScoring() == RouterScoring::SparseMixer)
      w = sharesOfNear(s, order, op.getEps().convertToFloat());
    double sum = std::accumulate(w.begin(), w.end(), 0.0);
    for (int64_t a = 0; a < active; ++a) {
      if (op.getRenormalise())
        w[a] /= sum + op.getEps().convertToFloat();
      chosen.array().data[t * active + a] = whole(order[a]);
      shares.array().data[t * active + a] =
          real(w[a] * op.getScale().convertToFloat());
    }
  }
  step.give(chosen);
  giveRounded(step, 1, shares);
  return true;
}

/// Adds up what `expert(row, number)` gives of each token's rows of `x`.
template <typename Op, typename Expert>
static bool sumExperts(Step &step, Op op, const Array &x, const Array &chosen,
                       const Array &shares, int64_t numExperts, Expert expert) {
  int64_t in = x.shape.back(), active = chosen.shape.back();
  int64_t width = cast<ShapedType>(op.getType()).getShape().back();
  Datum result = resultLike(x, width);
  int64_t tokens = int64_t(x.data.size()) / in;
  if (!same(step, tokens * active, int64_t(chosen.data.size()), "tokens"))
    return false;
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t a = 0; a < active; ++a) {
      int64_t e = chosen.data[t * active + a].i;
      if (e < 0)
        return step.machine.illegal(step, "names an expert that is not there");
      if (e >= numExperts)
        continue; // another rank's
      std::vector<double> y = expert(&x.data[t * in], e);
      for (int64_t n = 0; n < width; ++n)
        result.array().data[t * width + n].f +=
            shares.data[t * active + a].f * y[n];
    }
  if (!addResidual(step, op.getResidual(), result.array()))
    return false;
  giveRounded(step, 0, result);
  return true;
}

/// A vector as the next product reads it.
static std::vector<Scalar> asScalars(const std::vector<double> &numbers) {
  std::vector<Scalar> result(numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i)
    result[i].f = numbers[i];
  return result;
}

/// `expert`'s product of `row` with one of its matrices, and its bias.
static std::vector<double> productOf(const Scalar *row, const Rows &matrix,
                                     const Array *biases, int64_t expert) {
  if (!biases)
    return product(row, matrix, nullptr);
  Array bias = partOf(*biases, expert);
  return product(row, matrix, &bias);
}

/// What becomes of `z`, the first product.
template <typename Op> static void gateOf(Op op, std::vector<double> &z) {
  double limit = op.getLimit() ? op.getLimit()->convertToDouble() : HUGE_VAL;
  gate(z, op.getActivation(), op.getGated(), limit,
       op.getUpOffset().convertToDouble());
}

/// Whether the biases are as long as the products.
template <typename Op>
static bool biasesFit(Step &step, Op op, int64_t hidden, int64_t width) {
  const Array *up = arrayOf(step, op.getUpBias()),
              *down = arrayOf(step, op.getDownBias());
  return (!up || same(step, up->shape[1], op.getGated() ? 2 * hidden : hidden,
                      "entries of up_bias")) &&
         (!down || same(step, down->shape[1], width, "entries of down_bias"));
}

static bool runMoE(Step &step) {
  auto op = cast<MoEOp>(step.op);
  const Array &x = step.in[0].array(), &chosen = step.in[1].array(),
              &up = step.in[3].array(), &down = step.in[4].array();
  const Array *upBias = arrayOf(step, op.getUpBias()),
              *downBias = arrayOf(step, op.getDownBias());
  bool gated = op.getGated();
  int64_t in = x.shape.back();
  int64_t side = sideOfStacks(cast<ShapedType>(op.getUp().getType()), in);
  int64_t hidden = side * down.shape[2];
  int64_t width = cast<ShapedType>(op.getType()).getShape().back();
  if (!same(step, side * up.shape[2], in, "width of the input") ||
      !biasesFit(step, op, hidden, width) ||
      !step.machine.spend(step, int64_t(chosen.data.size()) * hidden *
                                    (in + width) / 8))
    return false;
  return sumExperts(step, op, x, chosen, step.in[2].array(), up.shape[0],
                    [&](const Scalar *row, int64_t e) {
                      Rows w1(up, gated ? 2 * hidden : hidden, gated, true, e);
                      Rows w2(down, width, false, true, e);
                      w1.readSideBySide(in);
                      w2.readSideBySide(hidden);
                      auto z = productOf(row, w1, upBias, e);
                      gateOf(op, z);
                      return productOf(asScalars(z).data(), w2, downBias, e);
                    });
}

static bool runQuantizedMoE(Step &step) {
  auto op = cast<QuantizedMoEOp>(step.op);
  const Array &input = step.in[0].array(),
              &chosen = *arrayOf(step, op.getExperts()),
              &up = *arrayOf(step, op.getUp()),
              &upScales = *arrayOf(step, op.getUpScales()),
              &down = *arrayOf(step, op.getDown()),
              &downScales = *arrayOf(step, op.getDownScales());
  bool bytes = bool(op.getInputScales());
  const Array *upBias = arrayOf(step, op.getUpBias()),
              *downBias = arrayOf(step, op.getDownBias());
  bool gated = op.getGated();
  auto hidden = int64_t(op.getHidden());
  int64_t in = input.shape.back(), group = op.getHiddenGroup();
  int64_t width = cast<ShapedType>(op.getType()).getShape().back();
  if (!biasesFit(step, op, hidden, width) ||
      !step.machine.spend(step, int64_t(chosen.data.size()) * hidden *
                                    (in + width) / 4))
    return false;
  auto matrix = [&](Value stack, const Array &numbers, Value scales,
                    const Array &factors, bool zeros, int64_t e, int64_t rows,
                    int64_t depth, bool gated) {
    auto type = cast<RankedTensorType>(stack.getType());
    auto part = RankedTensorType::get(type.getShape().drop_front(),
                                      type.getElementType());
    return readQuantized(partOf(numbers, e), part, partOf(factors, e),
                         cast<ShapedType>(scales.getType()), zeros, rows, depth,
                         gated);
  };
  return sumExperts(
      step, op,
      bytes ? readBytes(input, *arrayOf(step, op.getInputScales())) : input,
      chosen, *arrayOf(step, op.getWeights()), up.shape[0],
      [&](const Scalar *row, int64_t e) {
        int64_t rows = gated ? 2 * hidden : hidden;
        Array w1 = matrix(op.getUp(), up, op.getUpScales(), upScales,
                          op.getUpZeros(), e, rows, in, gated);
        Array w2 = matrix(op.getDown(), down, op.getDownScales(), downScales,
                          op.getDownZeros(), e, width, hidden, false);
        auto z = productOf(row, Rows(w1, rows, false), upBias, e);
        gateOf(op, z);
        std::vector<Scalar> h = asScalars(z);
        std::vector<int64_t> rounded(group);
        for (int64_t first = 0; bytes && first < hidden; first += group) {
          double most = roundGroup(&h[first], group, rounded.data());
          for (int64_t i = 0; i < group; ++i)
            h[first + i].f = double(rounded[i]) * (most / 127);
        }
        return productOf(h.data(), Rows(w2, width, false), downBias, e);
      });
}

void validation::addExperts(Handlers &handlers) {
  handlers["attune.router"] = runRouter;
  handlers["attune.moe"] = runMoE;
  handlers["attune.quantized_moe"] = runQuantizedMoE;
}
