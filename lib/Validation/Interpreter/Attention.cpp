//===- Attention.cpp - The attention ladder, as defined ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CachedRows.h"
#include "Layers.h"

#include "Attune/AttuneIndexOps.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace attune;
using namespace attune::validation;
using namespace mlir;

static constexpr double infinity = std::numeric_limits<double>::infinity();

namespace {
/// Scores [B, H, M, N] and where this block of them stands in the whole.
struct Scores {
  Datum values;
  int64_t m0 = 0, n0 = 0, numQueries = 0, numKeys = 0;

  Array &array() const { return values.array(); }
  int64_t size(int d) const { return array().shape[d]; }
};
} // namespace

static Scalar &at(const Array &a, int64_t i, int64_t j, int64_t k, int64_t l) {
  const Shape &s = a.shape;
  return const_cast<Array &>(a).data[((i * s[1] + j) * s[2] + k) * s[3] + l];
}
static Scalar &at(const Array &a, int64_t i, int64_t j, int64_t k) {
  const Shape &s = a.shape;
  return const_cast<Array &>(a).data[(i * s[1] + j) * s[2] + k];
}
/// With sizes of one broadcast.
static Scalar spread(const Array &a, int64_t i, int64_t j, int64_t k,
                     int64_t l) {
  const Shape &s = a.shape;
  return at(a, s[0] == 1 ? 0 : i, s[1] == 1 ? 0 : j, s[2] == 1 ? 0 : k,
            s[3] == 1 ? 0 : l);
}

/// Keys or values, operand `number`: those in bytes as the numbers that they
/// stand for.
static Datum headsOf(Step &step, unsigned number) {
  Type type = step.elementOf(step.op->getOperand(number));
  const Datum &given = step.in[number];
  return isInBytes(type) ? fromBytes(type, given.array()) : given;
}

static bool groupsOf(Step &step, int64_t heads, int64_t keyHeads) {
  return (keyHeads > 0 && heads % keyHeads == 0) ||
         step.machine.illegal(step, "heads cannot share their keys evenly");
}

//===----------------------------------------------------------------------===//
// The rungs
//===----------------------------------------------------------------------===//

static bool similarity(Step &step, const Array &q, const Array &k, double scale,
                       Scores &scores) {
  int64_t batch = q.shape[0], heads = q.shape[1], m = q.shape[2],
          width = q.shape[3], n = k.shape[2];
  if (!same(step, batch, k.shape[0], "batch sizes") ||
      !same(step, width, k.shape[3], "widths of queries and keys") ||
      !groupsOf(step, heads, k.shape[1]) ||
      !step.machine.spend(step, batch * heads * m * n * (width / 8 + 1)))
    return false;
  scores.values = makeReals({batch, heads, m, n});
  scores.numQueries = m;
  scores.numKeys = n;
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
          double sum = 0;
          for (int64_t d = 0; d < width; ++d)
            sum +=
                at(q, b, h, i, d).f * at(k, b, h * k.shape[1] / heads, j, d).f;
          at(scores.array(), b, h, i, j).f = scale * sum;
        }
  return true;
}

static bool broadcasts(Step &step, const Array *array, const Scores &scores) {
  for (int d = 0; array && d < 4; ++d)
    if (array->shape[d] != 1 && array->shape[d] != scores.size(d))
      return step.machine.illegal(step, "a mask or bias has another size");
  return true;
}

/// Edits scores in the order of `attune.mask_scores`, with whatever operands
/// the op has.
template <typename Op>
static bool maskScores(Step &step, Op op, Scores &scores) {
  Array &e = scores.array();
  const Array *mask = arrayOf(step, op.getMask());
  const Array *bias = arrayOf(step, op.getBias());
  const Array *diagonals = arrayOf(step, op.getDiagonals());
  const Array *slopes = arrayOf(step, op.getSlopes());
  const Array *lengths = nullptr, *blocks = nullptr;
  llvm::ArrayRef<int64_t> blockSizes;
  if constexpr (std::is_same_v<Op, MaskScoresOp> ||
                std::is_same_v<Op, AttentionOp>) {
    lengths = arrayOf(step, op.getLengths());
    blocks = arrayOf(step, op.getBlocks());
    if (op.getBlockSizes())
      blockSizes = *op.getBlockSizes();
  }
  if (!broadcasts(step, mask, scores) || !broadcasts(step, bias, scores))
    return false;
  if (diagonals && (!same(step, diagonals->shape[0], e.shape[1], "heads") ||
                    !same(step, diagonals->shape[1],
                          scores.numQueries + scores.numKeys - 1, "diagonals")))
    return false;
  if (slopes && !same(step, slopes->shape[0], e.shape[1], "slopes"))
    return false;
  if (lengths && !same(step, lengths->shape[0], e.shape[0], "lengths"))
    return false;
  CausalAlign causal = op.getCausal();
  for (int64_t b = 0; b < e.shape[0]; ++b)
    for (int64_t h = 0; h < e.shape[1]; ++h)
      for (int64_t i = 0; i < e.shape[2]; ++i)
        for (int64_t j = 0; j < e.shape[3]; ++j) {
          int64_t m = scores.m0 + i, n = scores.n0 + j;
          int64_t past = scores.numKeys - scores.numQueries, unused = 0;
          if (causal == CausalAlign::Lengths)
            unused = scores.numKeys - lengths->data[b].i;
          past -= unused;
          double &score = at(e, b, h, i, j).f;
          if (op.getSoftcap()) {
            double cap = op.getSoftcap()->convertToFloat();
            score = cap * std::tanh(score / cap);
          }
          if (bias)
            score += spread(*bias, b, h, i, j).f;
          if (diagonals)
            score += diagonals
                         ->data[h * diagonals->shape[1] +
                                std::min(n - m + scores.numQueries - 1 +
                                             std::max<int64_t>(unused, 0),
                                         diagonals->shape[1] - 1)]
                         .f;
          if (slopes)
            score += slopes->data[h].f * double(n - (m + past));
          bool hidden = mask && !spread(*mask, b, h, i, j).i;
          if (lengths)
            hidden |= n >= lengths->data[b].i;
          if (blocks) {
            int64_t p = m / blockSizes[0], q = n / blockSizes[1];
            if (p >= blocks->shape[2] || q >= blocks->shape[3])
              return step.machine.illegal(step, "has too few blocks");
            hidden |= !at(*blocks, blocks->shape[0] == 1 ? 0 : b,
                          blocks->shape[1] == 1 ? 0 : h, p, q)
                           .i;
          }
          int64_t own = causal == CausalAlign::TopLeft ? m : m + past;
          int64_t ahead = causal == CausalAlign::Symmetric
                              ? int64_t(*op.getWindow()) - 1
                              : 0;
          hidden |= causal != CausalAlign::None && n > own + ahead;
          if (op.getWindow())
            hidden |= n <= own - int64_t(*op.getWindow());
          if (hidden)
            score = -infinity;
        }
  return step.machine.spend(step, volume(e.shape));
}

static double largest(const Scores &scores, int64_t b, int64_t h, int64_t i,
                      double start) {
  for (int64_t j = 0; j < scores.size(3); ++j) {
    double value = at(scores.array(), b, h, i, j).f;
    if (std::isnan(value))
      return value;
    start = std::max(start, value);
  }
  return start;
}

/// exp(x - m), where a maximum of -inf means that there is nothing.
static double around(double x, double m) {
  return m == -infinity ? 0 : std::exp(x - m);
}

/// Scores become weights; `lse` [B, H, M] is filled in if given.
static bool softmax(Step &step, Scores &scores, const Array *sinks,
                    Array *lse) {
  if (sinks && !same(step, sinks->shape[0], scores.size(1), "sinks"))
    return false;
  for (int64_t b = 0; b < scores.size(0); ++b)
    for (int64_t h = 0; h < scores.size(1); ++h)
      for (int64_t i = 0; i < scores.size(2); ++i) {
        double sink = sinks ? sinks->data[h].f : -infinity;
        double m = largest(scores, b, h, i, sink);
        double sum = around(sink, m);
        for (int64_t j = 0; j < scores.size(3); ++j) {
          double &e = at(scores.array(), b, h, i, j).f;
          e = around(e, m);
          sum += e;
        }
        for (int64_t j = 0; j < scores.size(3); ++j) {
          double &e = at(scores.array(), b, h, i, j).f;
          e = sum == 0 ? 0 : e / sum;
        }
        if (lse)
          at(*lse, b, h, i).f = m == -infinity ? m : m + std::log(sum);
      }
  return true;
}

static bool weightedSum(Step &step, const Array &a, const Array &v,
                        Datum &result) {
  int64_t batch = a.shape[0], heads = a.shape[1], m = a.shape[2],
          n = a.shape[3], width = v.shape[3];
  if (!same(step, batch, v.shape[0], "batch sizes") ||
      !same(step, n, v.shape[2], "numbers of keys and values") ||
      !groupsOf(step, heads, v.shape[1]) ||
      !step.machine.spend(step, batch * heads * m * n * (width / 8 + 1)))
    return false;
  result = makeReals({batch, heads, m, width});
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
          // A key of no weight is not there, whatever its value is.
          double weight = at(a, b, h, i, j).f;
          for (int64_t d = 0; weight != 0 && d < width; ++d)
            at(result.array(), b, h, i, d).f +=
                weight * at(v, b, h * v.shape[1] / heads, j, d).f;
        }
  return true;
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

static bool runSimilarity(Step &step) {
  auto op = cast<SimilarityOp>(step.op);
  Scores scores;
  if (!similarity(step, step.in[0].array(), headsOf(step, 1).array(),
                  op.getScale().convertToFloat(), scores))
    return false;
  giveRounded(step, 0, scores.values);
  return true;
}

static bool runAdditiveSimilarity(Step &step) {
  auto op = cast<AdditiveSimilarityOp>(step.op);
  const Array &q = step.in[0].array(), &k = step.in[1].array();
  Rows v(step.in[2].array(), 1, false);
  int64_t batch = q.shape[0], heads = q.shape[1], m = q.shape[2],
          width = q.shape[3], n = k.shape[2];
  if (!same(step, batch, k.shape[0], "batch sizes") ||
      !same(step, width, k.shape[3], "widths") ||
      !step.machine.spend(step, batch * heads * m * n * width))
    return false;
  Datum result = makeReals({batch, heads, m, n});
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j)
          for (int64_t a = 0; a < width; ++a)
            at(result.array(), b, h, i, j).f +=
                v(0, a) * activate(op.getActivation(),
                                   at(q, b, h, i, a).f + at(k, b, h, j, a).f);
  giveRounded(step, 0, result);
  return true;
}

static bool runMaskScores(Step &step) {
  auto op = cast<MaskScoresOp>(step.op);
  Scores scores;
  step.in[0].ownArray();
  scores.values = step.in[0];
  scores.numQueries = scores.size(2);
  scores.numKeys = scores.size(3);
  if (!maskScores(step, op, scores))
    return false;
  giveRounded(step, 0, scores.values);
  return true;
}

static bool runSoftmax(Step &step) {
  Scores scores;
  step.in[0].ownArray();
  scores.values = step.in[0];
  if (!softmax(step, scores, arrayOf(step, cast<SoftmaxOp>(step.op).getSinks()),
               nullptr))
    return false;
  giveRounded(step, 0, scores.values);
  return true;
}

static bool runLogSumExp(Step &step) {
  Scores scores;
  step.in[0].ownArray();
  scores.values = step.in[0];
  Datum lse = makeReals({scores.size(0), scores.size(1), scores.size(2)});
  if (!softmax(step, scores,
               arrayOf(step, cast<LogSumExpOp>(step.op).getSinks()),
               &lse.array()))
    return false;
  giveRounded(step, 0, lse);
  return true;
}

static bool runWeightedSum(Step &step) {
  Datum result;
  if (!weightedSum(step, step.in[0].array(), headsOf(step, 1).array(), result))
    return false;
  giveRounded(step, 0, result);
  return true;
}

static bool runAttention(Step &step) {
  auto op = cast<AttentionOp>(step.op);
  Scores scores;
  if (!similarity(step, step.in[0].array(), headsOf(step, 1).array(),
                  op.getScale().convertToFloat(), scores) ||
      !maskScores(step, op, scores))
    return false;
  Datum lse = makeReals({scores.size(0), scores.size(1), scores.size(2)});
  Datum result;
  if (!softmax(step, scores, arrayOf(step, op.getSinks()), &lse.array()) ||
      !weightedSum(step, scores.array(), headsOf(step, 2).array(), result))
    return false;
  giveRounded(step, 0, result);
  if (op.getLse())
    giveRounded(step, 1, lse);
  return true;
}

static bool runAttentionWeights(Step &step) {
  auto op = cast<AttentionWeightsOp>(step.op);
  Datum dest = step.in[3];
  if (op.getWhen() && !integerOf(step, op.getWhen())) {
    step.give(dest);
    return true;
  }
  Scores scores;
  const Array &lse = step.in[2].array();
  if (!similarity(step, step.in[0].array(), headsOf(step, 1).array(),
                  op.getScale().convertToFloat(), scores) ||
      !maskScores(step, op, scores))
    return false;
  Array &out = dest.ownArray();
  int64_t first = op.getFromHead();
  if (!same(step, out.shape[2], scores.size(2), "queries") ||
      !same(step, out.shape[3], scores.size(3), "keys") ||
      !same(step, lse.shape[2], scores.size(2), "rows of lse"))
    return false;
  for (int64_t b = 0; b < out.shape[0]; ++b)
    for (int64_t h = 0; h < out.shape[1]; ++h)
      for (int64_t i = 0; i < out.shape[2]; ++i)
        for (int64_t j = 0; j < out.shape[3]; ++j)
          at(out, b, h, i, j).f =
              around(at(scores.array(), b, first + h, i, j).f,
                     at(lse, b, first + h, i).f);
  giveRounded(step, 0, dest);
  return true;
}

//===----------------------------------------------------------------------===//
// Online softmax
//===----------------------------------------------------------------------===//

/// Rounds to the type of destination number `dest` and gives that.
static void giveDest(Step &step, unsigned dest, Datum value) {
  auto op = cast<DestinationStyleOpInterface>(step.op);
  Type type = step.elementOf(op.getDpsInits()[dest]);
  for (Scalar &element : value.ownArray().data)
    element.f = roundTo(type, element.f);
  step.give(std::move(value));
}

/// Runs a tile op; of buffers on what they hold, and the results go there.
template <bool (*run)(Step &)> static bool runTile(Step &step) {
  auto op = cast<DestinationStyleOpInterface>(step.op);
  if (!isa<MemRefType>(op.getDpsInits().front().getType()))
    return run(step);
  llvm::SmallVector<Datum> values(step.in), given;
  for (auto [operand, datum] : llvm::zip(op->getOperands(), values))
    if (isa<MemRefType>(operand.getType()))
      datum = readView(datum.view(), step.elementOf(operand));
  Step onValues{step.machine, step.op, values, given};
  if (!run(onValues))
    return false;
  for (auto [dest, datum] : llvm::zip(op.getDpsInitsMutable(), given))
    writeView(step.in[dest.getOperandNumber()].view(),
              step.elementOf(dest.get()), datum.array());
  return true;
}

static bool runOnlineStart(Step &step) {
  double start[] = {0, -infinity, 0};
  for (auto [i, value] : llvm::enumerate(start))
    giveDest(step, i, makeArray(step.in[i].array().shape, real(value)));
  return true;
}

static bool runOnline(Step &step) {
  auto op = cast<OnlineAttentionOp>(step.op);
  Scores scores;
  if (!similarity(step, step.in[0].array(), headsOf(step, 1).array(),
                  op.getScale().convertToFloat(), scores))
    return false;
  scores.m0 = integerOf(step, op.getQueryOffset());
  scores.n0 = integerOf(step, op.getKeyOffset());
  scores.numQueries = integerOf(step, op.getNumQueries());
  scores.numKeys = integerOf(step, op.getNumKeys());
  if (!maskScores(step, op, scores))
    return false;
  Datum values = headsOf(step, 2);
  const Array &v = values.array();
  size_t states = step.in.size() - 3;
  Datum acc = step.in[states], max = step.in[states + 1],
        sum = step.in[states + 2];
  Array &a = acc.ownArray(), &ms = max.ownArray(), &ls = sum.ownArray();
  if (!same(step, a.shape[2], scores.size(2), "rows of the state") ||
      !same(step, v.shape[2], scores.size(3), "numbers of keys and values"))
    return false;
  int64_t heads = scores.size(1);
  for (int64_t b = 0; b < scores.size(0); ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < scores.size(2); ++i) {
        double &m = at(ms, b, h, i).f, &l = at(ls, b, h, i).f;
        double next = largest(scores, b, h, i, m);
        double r = next == -infinity ? 1 : std::exp(m - next);
        l *= r;
        for (int64_t d = 0; d < a.shape[3]; ++d)
          at(a, b, h, i, d).f *= r;
        for (int64_t j = 0; j < scores.size(3); ++j) {
          double p = around(at(scores.array(), b, h, i, j).f, next);
          l += p;
          for (int64_t d = 0; p != 0 && d < a.shape[3]; ++d)
            at(a, b, h, i, d).f += p * at(v, b, h * v.shape[1] / heads, j, d).f;
        }
        m = next;
      }
  giveDest(step, 0, acc);
  giveDest(step, 1, max);
  giveDest(step, 2, sum);
  return true;
}

static bool runOnlineMerge(Step &step) {
  const Array &a1 = step.in[0].array(), &m1 = step.in[1].array(),
              &l1 = step.in[2].array();
  Datum acc = step.in[3], max = step.in[4], sum = step.in[5];
  Array &a = acc.ownArray(), &ms = max.ownArray(), &ls = sum.ownArray();
  if (a.shape != a1.shape)
    return step.machine.illegal(step, "the states have different sizes");
  int64_t width = a.shape[3];
  for (size_t row = 0; row < ms.data.size(); ++row) {
    double m = std::max(ms.data[row].f, m1.data[row].f);
    double r0 = around(ms.data[row].f, m), r1 = around(m1.data[row].f, m);
    ls.data[row].f = r0 * ls.data[row].f + r1 * l1.data[row].f;
    for (int64_t d = 0; d < width; ++d) {
      double &x = a.data[row * width + d].f;
      x = (r0 == 0 ? 0 : r0 * x) +
          (r1 == 0 ? 0 : r1 * a1.data[row * width + d].f);
    }
    ms.data[row].f = m;
  }
  giveDest(step, 0, acc);
  giveDest(step, 1, max);
  giveDest(step, 2, sum);
  return true;
}

static bool runOnlineFinish(Step &step) {
  auto op = cast<OnlineFinishOp>(step.op);
  Datum acc = step.in[0], lse = step.in[1];
  Array &a = acc.ownArray(), &ms = lse.ownArray();
  const Array &ls = step.in[2].array();
  const Array *sinks = arrayOf(step, op.getSinks());
  int64_t width = a.shape[3], heads = a.shape[1], rows = a.shape[2];
  for (size_t row = 0; row < ms.data.size(); ++row) {
    double m = ms.data[row].f, l = ls.data[row].f, r = 1;
    if (sinks) {
      double sink = sinks->data[int64_t(row) / rows % heads].f;
      double next = std::max(m, sink);
      r = around(m, next);
      l = r * l + around(sink, next);
      m = next;
    }
    for (int64_t d = 0; d < width; ++d) {
      double &x = a.data[row * width + d].f;
      x = l == 0 ? 0 : r * x / l;
    }
    ms.data[row].f = l == 0 ? -infinity : m + std::log(l);
  }
  giveDest(step, 0, acc);
  if (op.getLse())
    giveDest(step, 1, lse);
  return true;
}

//===----------------------------------------------------------------------===//
// Heads, biases
//===----------------------------------------------------------------------===//

static bool runRelativeBias(Step &step) {
  auto op = cast<RelativeBiasOp>(step.op);
  const Array &table = step.in[0].array();
  int64_t m = step.in[1].integer(), n = step.in[2].integer();
  int64_t heads = table.shape[1], count = m + n - 1;
  if (m < 1 || n < 1)
    return step.machine.illegal(step, "has no queries or keys");
  llvm::SmallVector<int32_t> buckets = op.computeBuckets();
  Datum result = makeReals({heads, count});
  for (int64_t j = 0; j < count; ++j) {
    // Diagonal n - m + M - 1 of keys n; the query stands at m + N - M.
    int64_t back = n - 1 - j;
    bool ahead = back < 0;
    int64_t distance = ahead ? (op.getBidirectional() ? -back : 0) : back;
    int64_t bucket =
        buckets[std::min<int64_t>(distance, int64_t(buckets.size()) - 1)];
    if (ahead && op.getBidirectional())
      bucket += op.getBuckets();
    for (int64_t h = 0; h < heads; ++h)
      result.array().data[h * count + j] = table.data[bucket * heads + h];
  }
  giveRounded(step, 0, result);
  return true;
}

static bool runSplitHeads(Step &step) {
  auto op = cast<SplitHeadsOp>(step.op);
  const Array &x = step.in[0].array();
  auto type = cast<RankedTensorType>(op.getType());
  int64_t heads = type.getDimSize(1), width = type.getDimSize(3);
  int64_t offset = op.getOffset();
  Datum result = makeReals({x.shape[0], heads, x.shape[1], width});
  for (int64_t b = 0; b < x.shape[0]; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t t = 0; t < x.shape[1]; ++t)
        for (int64_t d = 0; d < width; ++d)
          at(result.array(), b, h, t, d) = at(x, b, t, offset + h * width + d);
  giveRounded(step, 0, result);
  return true;
}

static bool runMergeHeads(Step &step) {
  const Array &x = step.in[0].array();
  int64_t heads = x.shape[1], width = x.shape[3];
  Datum result = makeReals({x.shape[0], x.shape[2], heads * width});
  for (int64_t b = 0; b < x.shape[0]; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t t = 0; t < x.shape[2]; ++t)
        for (int64_t d = 0; d < width; ++d)
          at(result.array(), b, t, h * width + d) = at(x, b, h, t, d);
  step.give(result);
  return true;
}

//===----------------------------------------------------------------------===//
// Linear attention
//===----------------------------------------------------------------------===//

static double feature(FeatureMap map, double x) {
  switch (map) {
  case FeatureMap::EluPlusOne:
    return x > 0 ? x + 1 : std::exp(x);
  case FeatureMap::Relu:
    return std::max(x, 0.0);
  case FeatureMap::Identity:
    return x;
  }
  return x;
}

static bool runLinearAttention(Step &step) {
  auto op = cast<LinearAttentionOp>(step.op);
  const Array &q = step.in[0].array(), &k = step.in[1].array(),
              &v = step.in[2].array();
  const Array *mask = arrayOf(step, op.getMask());
  const Array *state = arrayOf(step, op.getState());
  int64_t batch = q.shape[0], heads = q.shape[1], groups = k.shape[1],
          m = q.shape[2], n = k.shape[2], width = q.shape[3], out = v.shape[3];
  if (!groupsOf(step, heads, groups) ||
      !same(step, n, v.shape[2], "numbers of keys and values") ||
      !same(step, batch, k.shape[0], "batch sizes") ||
      !same(step, width, k.shape[3], "widths") ||
      (op.getCausal() && !same(step, m, n, "causal lengths")) ||
      (mask && !same(step, mask->shape[3], n, "the mask's keys")) ||
      !step.machine.spend(step, batch * heads * (m + n) * width * out / 8))
    return false;
  FeatureMap map = op.getFeatureMap();
  Datum result = makeReals({batch, heads, m, out});
  Datum sums = makeReals({batch, groups, width, out + 1});
  if (state)
    sums.array().data = state->data;
  Array &s = sums.array();
  auto answer = [&](int64_t b, int64_t g, int64_t i) {
    for (int64_t h = g * heads / groups; h < (g + 1) * heads / groups; ++h) {
      std::vector<double> y(out + 1, 0.0);
      for (int64_t d = 0; d < width; ++d)
        for (int64_t e = 0; e <= out; ++e)
          y[e] += feature(map, at(q, b, h, i, d).f) * at(s, b, g, d, e).f;
      double denominator =
          op.getEps() ? y[out] + op.getEps()->convertToFloat() : 1;
      for (int64_t e = 0; e < out; ++e)
        at(result.array(), b, h, i, e).f =
            denominator == 0 ? 0 : y[e] / denominator;
    }
  };
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t g = 0; g < groups; ++g) {
      for (int64_t j = 0; j < n; ++j) {
        bool counts = !mask || spread(*mask, b, 0, 0, j).i;
        for (int64_t d = 0; counts && d < width; ++d) {
          double f = feature(map, at(k, b, g, j, d).f);
          for (int64_t e = 0; e <= out; ++e)
            at(s, b, g, d, e).f += e < out ? f * at(v, b, g, j, e).f : f;
        }
        if (op.getCausal())
          answer(b, g, j);
      }
      for (int64_t i = 0; !op.getCausal() && i < m; ++i)
        answer(b, g, i);
    }
  giveRounded(step, 0, result);
  if (op.getNewState())
    giveRounded(step, 1, sums);
  return true;
}

//===----------------------------------------------------------------------===//
// Keys that an index chooses
//===----------------------------------------------------------------------===//

static bool runIndexScores(Step &step) {
  auto op = cast<IndexScoresOp>(step.op);
  const Array &shares = step.in[2].array();
  Scores products;
  if (!similarity(step, step.in[0].array(), headsOf(step, 1).array(),
                  op.getScale().convertToFloat(), products))
    return false;
  int64_t batch = products.size(0), heads = products.size(1);
  int64_t m = products.numQueries, n = products.numKeys;
  if (!same(step, shares.shape[0], batch, "batch sizes") ||
      !same(step, shares.shape[1], m, "queries") ||
      !same(step, shares.shape[2], heads, "heads"))
    return false;
  int64_t reach = op.getReach() ? step.in[3].integer() : n;
  Datum result = makeReals({batch, m, n});
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < std::min(n, reach); ++j)
        for (int64_t h = 0; h < heads; ++h) {
          double score = at(products.array(), b, h, i, j).f;
          at(result.array(), b, i, j).f +=
              at(shares, b, i, h).f * (score < 0 ? 0 : score);
        }
  giveRounded(step, 0, result);
  return true;
}

static bool runChooseKeys(Step &step) {
  auto op = cast<ChooseKeysOp>(step.op);
  const Array &scores = step.in[0].array();
  const Array *mask = arrayOf(step, op.getMask());
  const Array *lengths = arrayOf(step, op.getLengths());
  int64_t batch = scores.shape[0], m = scores.shape[1], n = scores.shape[2];
  int64_t top = op.getTop();
  int64_t past = op.getPast() ? step.in.back().integer() : 0;
  if ((mask && !same(step, mask->shape[3], n, "keys")) ||
      (lengths && !same(step, lengths->shape[0], batch, "lengths")))
    return false;
  Datum places = makeArray({batch, m, top}, whole(0)),
        counts = makeArray({batch, m}, whole(0));
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t i = 0; i < m; ++i) {
      std::vector<std::pair<double, int64_t>> seen;
      for (int64_t j = 0; j < n; ++j) {
        if ((mask && !spread(*mask, b, 0, i, j).i) ||
            (lengths && j >= lengths->data[b].i) ||
            (op.getPast() && j > past + i))
          continue;
        double score = at(scores, b, i, j).f;
        seen.emplace_back(std::isnan(score) ? -infinity : -score, j);
      }
      std::sort(seen.begin(), seen.end());
      if (int64_t(seen.size()) > top)
        seen.resize(top);
      std::vector<int64_t> order;
      for (auto [score, key] : seen)
        order.push_back(key);
      std::sort(order.begin(), order.end());
      for (auto [number, key] : llvm::enumerate(order))
        places.array().data[(b * m + i) * top + number] = whole(key);
      counts.array().data[b * m + i] = whole(order.size());
    }
  step.give(places);
  step.give(counts);
  return true;
}

void validation::addAttention(Handlers &handlers) {
  struct {
    const char *name;
    Handler handler;
  } ops[] = {{"similarity", runSimilarity},
             {"additive_similarity", runAdditiveSimilarity},
             {"mask_scores", runMaskScores},
             {"softmax", runSoftmax},
             {"log_sum_exp", runLogSumExp},
             {"weighted_sum", runWeightedSum},
             {"attention", runAttention},
             {"attention_weights", runAttentionWeights},
             {"online_start", runTile<runOnlineStart>},
             {"online_attention", runTile<runOnline>},
             {"online_merge", runTile<runOnlineMerge>},
             {"online_finish", runTile<runOnlineFinish>},
             {"index_scores", runIndexScores},
             {"choose_keys", runChooseKeys},
             {"relative_bias", runRelativeBias},
             {"split_heads", runSplitHeads},
             {"merge_heads", runMergeHeads},
             {"linear_attention", runLinearAttention}};
  for (auto [name, handler] : ops)
    handlers[("attune." + llvm::Twine(name)).str()] = handler;
}
