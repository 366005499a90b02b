//===- Tokens.cpp - Embeddings, positions, caches, weights ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CachedRows.h"
#include "Layers.h"

#include "Attune/AttunePanels.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

using namespace attune;
using namespace attune::validation;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Embeddings
//===----------------------------------------------------------------------===//

/// Adds an optional [B, T, D] and rounds.
static bool giveSum(Step &step, Datum result, Value addend) {
  if (const Array *other = arrayOf(step, addend)) {
    if (other->shape != result.array().shape)
      return step.machine.illegal(step, "the addend has another size");
    for (size_t i = 0; i < other->data.size(); ++i)
      result.array().data[i].f += other->data[i].f;
  }
  giveRounded(step, 0, result);
  return true;
}

/// Rows of a table of `count` rows; `entry(id, column)` gives a number of it.
template <typename Op, typename Entry>
static bool pickRows(Step &step, Op op, int64_t count, int64_t width,
                     Entry entry) {
  const Array &ids = step.in[0].array();
  Datum result = makeReals({ids.shape[0], ids.shape[1], width});
  for (size_t t = 0; t < ids.data.size(); ++t) {
    int64_t id = ids.data[t].i + int64_t(op.getOffset());
    if (id < 0 || id >= count)
      return step.machine.illegal(step, "id " + llvm::Twine(id) +
                                            " is not in the table");
    for (int64_t d = 0; d < width; ++d)
      result.array().data[t * width + d].f =
          op.getScale().convertToFloat() * entry(id, d);
  }
  return giveSum(step, result, op.getAddend());
}

static bool runEmbedding(Step &step) {
  auto op = cast<EmbeddingOp>(step.op);
  const Array &values = step.in[1].array();
  int64_t count =
      values.shape[0] * (values.shape.size() == 3 ? values.shape[2] : 1);
  Rows table(values, count, false);
  int64_t width = cast<ShapedType>(op.getType()).getShape().back();
  if (!ShapedType::isDynamic(width)) {
    table.readSideBySide(width);
    count = values.shape.size() == 3 ? volume(values.shape) / width : count;
  }
  return pickRows(step, op, count, table.getColumns(), table);
}

static bool runQuantizedEmbedding(Step &step) {
  auto op = cast<QuantizedEmbeddingOp>(step.op);
  const Array &bytes = step.in[1].array();
  int64_t width = cast<ShapedType>(op.getType()).getShape().back();
  ShapedType type = op.getTable().getType();
  bool halves = bytes.shape.size() == 3 && quantizedBits(type, width) == 4;
  int64_t count =
      volume(bytes.shape) * (halves ? 2 : 1) / std::max<int64_t>(width, 1);
  if (!step.machine.spend(step, volume(bytes.shape) / 8))
    return false;
  Array table =
      readQuantized(bytes, type, step.in[2].array(), op.getScales().getType(),
                    op.getZeros(), count, width, /*gated=*/false);
  return pickRows(step, op, count, width, [&](int64_t id, int64_t column) {
    return table.data[id * width + column].f;
  });
}

static bool runSinusoidal(Step &step) {
  auto op = cast<SinusoidalOp>(step.op);
  const Array &positions = step.in[0].array();
  int64_t width = cast<ShapedType>(op.getType()).getShape().back();
  Datum result = makeReals({positions.shape[0], positions.shape[1], width});
  double base = op.getBase().convertToDouble();
  for (size_t t = 0; t < positions.data.size(); ++t)
    for (int64_t k = 0; k < width / 2; ++k) {
      bool tensor2tensor = op.getConvention() == Sinusoid::Tensor2Tensor;
      double rate = tensor2tensor
                        ? std::pow(base, -double(k) / (width / 2 - 1.0))
                        : std::pow(base, -2.0 * double(k) / double(width));
      double angle = rate * double(positions.data[t].i);
      Scalar *row = &result.array().data[t * width];
      bool interleaved = op.getConvention() == Sinusoid::Interleaved;
      row[interleaved ? 2 * k : k].f = std::sin(angle);
      row[interleaved ? 2 * k + 1 : width / 2 + k].f = std::cos(angle);
    }
  return giveSum(step, result, op.getAddend());
}

static bool runRotaryTable(Step &step) {
  auto op = cast<RotaryTableOp>(step.op);
  const Array &positions = step.in[0].array();
  llvm::ArrayRef<double> rates = op.getFrequencies();
  int64_t pairs = int64_t(rates.size()), longest = 0;
  for (Scalar position : positions.data)
    longest = std::max(longest, position.i + 1);
  if (op.getLongFrequencies() && longest > int64_t(*op.getLongFrom()))
    rates = *op.getLongFrequencies();
  double stretch = 1;
  if (op.getDynamic()) {
    double most = (*op.getDynamic())[0], scaling = (*op.getDynamic())[1];
    double n = std::max(double(longest), most);
    stretch = scaling * n / most - scaling + 1;
  }
  Shape shape{positions.shape[0], positions.shape[1], pairs};
  Datum cosines = makeReals(shape), sines = makeReals(shape);
  double factor = op.getFactor().convertToDouble();
  for (size_t t = 0; t < positions.data.size(); ++t) {
    double by = factor;
    if (auto growth = op.getGrowth())
      by *= 1 + (*growth)[0] *
                    std::log(1 + std::floor((double(positions.data[t].i) +
                                             (*growth)[2]) /
                                            (*growth)[1]));
    for (int64_t i = 0; i < pairs; ++i) {
      double rate = rates[i];
      if (op.getDynamic())
        rate *=
            std::pow(stretch, -2.0 * double(i) / ((*op.getDynamic())[2] - 2));
      double angle = rate * double(positions.data[t].i);
      cosines.array().data[t * pairs + i].f = by * std::cos(angle);
      sines.array().data[t * pairs + i].f = by * std::sin(angle);
    }
  }
  giveRounded(step, 0, cosines);
  giveRounded(step, 1, sines);
  return true;
}

static bool runRotary(Step &step) {
  auto op = cast<RotaryOp>(step.op);
  Array &x = step.in[0].ownArray();
  const Array &cosines = step.in[1].array(), &sines = step.in[2].array();
  int64_t heads = x.shape[1], tokens = x.shape[2], width = x.shape[3],
          pairs = cosines.shape[2];
  if (!same(step, x.shape[0], cosines.shape[0], "batch sizes") ||
      !same(step, tokens, cosines.shape[1], "numbers of tokens"))
    return false;
  bool half = op.getPairing() == RotaryPairing::Half;
  for (int64_t row = 0; row < x.shape[0] * heads * tokens; ++row) {
    int64_t b = row / (heads * tokens), t = row % tokens;
    Scalar *values = &x.data[row * width];
    for (int64_t i = 0; i < pairs; ++i) {
      double &a = values[half ? i : 2 * i].f;
      double &c = values[half ? i + pairs : 2 * i + 1].f;
      double cosine = cosines.data[(b * tokens + t) * pairs + i].f;
      double sine = sines.data[(b * tokens + t) * pairs + i].f;
      double turned = a * cosine - c * sine;
      c = c * cosine + a * sine;
      a = turned;
    }
  }
  giveRounded(step, 0, step.in[0]);
  return true;
}

//===----------------------------------------------------------------------===//
// Tokens
//===----------------------------------------------------------------------===//

static bool runPatches(Step &step) {
  auto op = cast<PatchesOp>(step.op);
  const Array &x = step.in[0].array();
  llvm::ArrayRef<int64_t> kernel = op.getKernel(), stride = op.getStride(),
                          padding = op.getPadding();
  size_t n = kernel.size();
  int64_t channelDim = op.getChannelDim(), first = op.getFirstPlaceDim();
  Shape places, inside(kernel.begin(), kernel.end());
  for (size_t d = 0; d < n; ++d) {
    int64_t size = x.shape[first + d] + 2 * padding[d] - kernel[d];
    if (size < 0)
      return step.machine.illegal(step, "the input is smaller than the kernel");
    places.push_back(size / stride[d] + 1);
  }
  int64_t channels = x.shape[channelDim], area = volume(inside);
  Datum result = makeReals({x.shape[0], volume(places), channels * area});
  size_t i = 0;
  for (int64_t b = 0; b < x.shape[0]; ++b) {
    Shape place(n, 0);
    do {
      for (int64_t c = 0; c < channels; ++c) {
        Shape k(n, 0);
        do {
          Shape at(x.shape.size(), 0);
          at[0] = b;
          at[channelDim] = c;
          bool seen = true;
          for (size_t d = 0; d < n; ++d) {
            at[first + d] = place[d] * stride[d] - padding[d] + k[d];
            seen &= at[first + d] >= 0 && at[first + d] < x.shape[first + d];
          }
          result.array().data[i++] =
              seen ? x.data[flatten(at, x.shape)] : real(0);
        } while (advance(k, inside));
      }
    } while (advance(place, places));
  }
  giveRounded(step, 0, result);
  return true;
}

static bool runPrependTokens(Step &step) {
  const Array &tokens = step.in[0].array(), &x = step.in[1].array();
  if (!same(step, tokens.shape[1], x.shape[2], "widths"))
    return false;
  int64_t n = int64_t(tokens.data.size()), run = x.shape[1] * x.shape[2];
  Datum result =
      makeReals({x.shape[0], x.shape[1] + tokens.shape[0], x.shape[2]});
  auto out = result.array().data.begin();
  for (int64_t b = 0; b < x.shape[0]; ++b) {
    out = std::copy_n(tokens.data.begin(), n, out);
    out = std::copy_n(x.data.begin() + b * run, run, out);
  }
  step.give(result);
  return true;
}

static bool runTokenPositions(Step &step) {
  auto op = cast<TokenPositionsOp>(step.op);
  const Array &x = step.in[0].array();
  int64_t tokens = x.shape[1];
  Datum result = makeArray({x.shape[0], tokens}, whole(0));
  for (int64_t b = 0; b < x.shape[0]; ++b) {
    int64_t seen = 0;
    for (int64_t t = 0; t < tokens; ++t) {
      int64_t position = t;
      if (op.getPad()) {
        bool pad = x.data[b * tokens + t].i == int64_t(*op.getPad());
        position = pad ? 0 : ++seen;
      }
      result.array().data[b * tokens + t] = whole(position);
    }
  }
  step.give(result);
  return true;
}

static bool runFindToken(Step &step) {
  auto op = cast<FindTokenOp>(step.op);
  const Array &ids = step.in[0].array();
  Datum result = makeArray({ids.shape[0]}, whole(0));
  for (int64_t b = 0; b < ids.shape[0]; ++b) {
    auto row = ids.data.begin() + b * ids.shape[1];
    auto end = row + ids.shape[1], found = end;
    if (op.getId())
      found = std::find_if(
          row, end, [&](Scalar id) { return id.i == int64_t(*op.getId()); });
    else
      found = std::max_element(row, end,
                               [](Scalar a, Scalar b) { return a.i < b.i; });
    result.array().data[b] = whole(found == end ? 0 : found - row);
  }
  step.give(result);
  return true;
}

static bool runPool(Step &step) {
  auto op = cast<PoolOp>(step.op);
  const Array &x = step.in[0].array();
  const Array *mask = arrayOf(step, op.getMask());
  const Array *at = arrayOf(step, op.getAt());
  int64_t tokens = x.shape[1], width = x.shape[2];
  if (mask && (!same(step, mask->shape[0], x.shape[0], "batch sizes") ||
               !same(step, mask->shape[3], tokens, "the mask's tokens")))
    return false;
  Datum result = makeReals({x.shape[0], width});
  for (int64_t b = 0; b < x.shape[0]; ++b) {
    Scalar *out = &result.array().data[b * width];
    int64_t count = 0;
    for (int64_t t = 0; t < tokens; ++t) {
      int64_t wanted = at ? at->data[b].i : int64_t(op.getIndex());
      bool seen = op.getKind() == PoolKind::Token
                      ? t == wanted
                      : !mask || mask->data[b * tokens + t].i;
      if (!seen)
        continue;
      for (int64_t d = 0; d < width; ++d) {
        double value = x.data[(b * tokens + t) * width + d].f;
        if (op.getKind() == PoolKind::Mean)
          out[d].f += value;
        else if (op.getKind() == PoolKind::Max && count)
          out[d].f = std::isnan(value) ? value : std::max(out[d].f, value);
        else
          out[d].f = value;
      }
      ++count;
    }
    if (op.getKind() == PoolKind::Token && !count)
      return step.machine.illegal(step, "has no such token");
    for (int64_t d = 0; op.getKind() == PoolKind::Mean && d < width; ++d)
      out[d].f = count ? out[d].f / double(count) : 0;
  }
  giveRounded(step, 0, result);
  return true;
}

static bool runFlatten(Step &step) {
  Array &x = step.in[0].ownArray();
  Shape shape{x.shape[0] * x.shape[1]};
  shape.append(x.shape.begin() + 2, x.shape.end());
  x.shape = shape;
  step.give(step.in[0]);
  return true;
}

static bool runUnflatten(Step &step) {
  Array &x = step.in[0].ownArray();
  Shape shape{step.in[1].integer(), step.in[2].integer()};
  if (!same(step, x.shape[0], shape[0] * shape[1], "rows"))
    return false;
  shape.append(x.shape.begin() + 1, x.shape.end());
  x.shape = shape;
  step.give(step.in[0]);
  return true;
}

static bool runCrossEntropy(Step &step) {
  auto op = cast<CrossEntropyOp>(step.op);
  const Array &logits = step.in[0].array(), &targets = step.in[1].array();
  int64_t classes = logits.shape.back(), count = 0;
  if (!same(step, int64_t(targets.data.size()) * classes,
            int64_t(logits.data.size()), "targets"))
    return false;
  double total = 0;
  for (size_t r = 0; r < targets.data.size(); ++r) {
    int64_t target = targets.data[r].i;
    if (target == int64_t(op.getIgnore()))
      continue;
    if (target < 0 || target >= classes)
      return step.machine.illegal(step, "a target is no class");
    const Scalar *row = &logits.data[r * classes];
    double most = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t v = 0; v < classes; ++v)
      most = std::max(most, row[v].f);
    for (int64_t v = 0; v < classes; ++v)
      sum += std::exp(row[v].f - most);
    total += most + std::log(sum) - row[target].f;
    ++count;
  }
  Datum result = makeReals({});
  result.array().data[0].f = total / double(count);
  giveRounded(step, 0, result);
  return true;
}

static bool runTopK(Step &step) {
  const Array &logits = step.in[0].array();
  int64_t rows = logits.shape[0], width = logits.shape[1],
          count = step.in[1].integer();
  if (count < 0 || count > width)
    return step.machine.illegal(step, "counts more than a row has");
  Datum ids = makeArray({rows, count}, whole(0)),
        values = makeReals({rows, count});
  std::vector<int64_t> order(width);
  for (int64_t r = 0; r < rows; ++r) {
    const Scalar *row = &logits.data[r * width];
    auto sizeOf = [&](int64_t v) {
      return std::isnan(row[v].f) ? std::numeric_limits<double>::infinity()
                                  : row[v].f;
    };
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return std::make_pair(-sizeOf(a), a) < std::make_pair(-sizeOf(b), b);
    });
    for (int64_t i = 0; i < count; ++i) {
      ids.array().data[r * count + i] = whole(order[i]);
      values.array().data[r * count + i] = row[order[i]];
    }
  }
  step.give(ids);
  step.give(values);
  return true;
}

//===----------------------------------------------------------------------===//
// Caches and weights
//===----------------------------------------------------------------------===//

namespace {
/// Which dimensions of a cache count layers and sequences.
struct CacheDims {
  explicit CacheDims(bool sequenceMajor)
      : layer(sequenceMajor ? 1 : 0), sequence(sequenceMajor ? 0 : 1) {}
  Shape at(int64_t ofLayer, int64_t ofSequence, int64_t head, int64_t token,
           int64_t column) const {
    Shape index{0, 0, head, token, column};
    index[layer] = ofLayer;
    index[sequence] = ofSequence;
    return index;
  }
  size_t layer, sequence;
};
} // namespace

static bool runCacheAppend(Step &step) {
  Type type = getElementTypeOrSelf(step.op->getResult(0));
  bool bytes = isInBytes(type);
  Datum made = bytes ? toBytes(type, step.in[0].array()) : step.in[0];
  const Array &rows = made.array();
  Array &cache = step.in[1].ownArray();
  auto op = cast<CacheAppendOp>(step.op);
  bool each = !op.getPast().getType().isIndex();
  int64_t layer = step.in[2].integer();
  CacheDims dims(op.getSequenceMajor());
  auto pastOf = [&](int64_t sequence) {
    return each ? step.in[3].array().data[sequence].i : step.in[3].integer();
  };
  int64_t batch = rows.shape[0];
  bool fits =
      layer >= 0 && layer < cache.shape[dims.layer] &&
      batch == cache.shape[dims.sequence] &&
      (!each || (step.in[3].array().shape[0] == batch && rows.shape[2] == 1));
  for (int64_t b = 0; fits && b < batch; ++b)
    fits = pastOf(b) >= 0 && pastOf(b) <= cache.shape[3] - rows.shape[2];
  if (!fits)
    return step.machine.illegal(step, "does not fit the cache");
  size_t i = 0;
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < rows.shape[1]; ++h)
      for (int64_t t = 0; t < rows.shape[2]; ++t)
        for (int64_t d = 0; d < rows.shape[3]; ++d, ++i)
          cache.data[flatten(dims.at(layer, b, h, pastOf(b) + t, d),
                             cache.shape)] =
              bytes ? rows.data[i] : real(roundTo(type, rows.data[i].f));
  step.give(step.in[1]);
  return true;
}

static bool runCacheRead(Step &step) {
  const Array &cache = step.in[0].array();
  int64_t layer = step.in[1].integer(), length = step.in[2].integer();
  CacheDims dims(cast<CacheReadOp>(step.op).getSequenceMajor());
  if (layer < 0 || layer >= cache.shape[dims.layer] || length < 0 ||
      length > cache.shape[3])
    return step.machine.illegal(step, "reads more than the cache has");
  Shape shape{cache.shape[dims.sequence], cache.shape[2], length,
              cache.shape[4]};
  Datum result = makeReals(shape);
  Shape index(4, 0);
  size_t i = 0;
  if (volume(shape))
    do {
      result.array().data[i++] = cache.data[flatten(
          dims.at(layer, index[0], index[1], index[2], index[3]), cache.shape)];
    } while (advance(index, shape));
  step.give(result);
  return true;
}

static bool runWeightGet(Step &step) {
  auto op = cast<WeightGetOp>(step.op);
  int64_t layer = op.getLayer() ? step.in[0].integer() : 0;
  Datum value = step.machine.getWeight(op.getWeight(), layer);
  if (!value.box)
    return step.machine.illegal(step, "has no layer " + llvm::Twine(layer));
  step.give(value);
  return true;
}

void validation::addTokens(Handlers &handlers) {
  struct {
    const char *name;
    Handler handler;
  } ops[] = {{"embedding", runEmbedding},
             {"quantized_embedding", runQuantizedEmbedding},
             {"sinusoidal", runSinusoidal},
             {"rotary_table", runRotaryTable},
             {"rotary", runRotary},
             {"patches", runPatches},
             {"prepend_tokens", runPrependTokens},
             {"token_positions", runTokenPositions},
             {"find_token", runFindToken},
             {"pool", runPool},
             {"flatten_tokens", runFlatten},
             {"unflatten_tokens", runUnflatten},
             {"cross_entropy", runCrossEntropy},
             {"top_k", runTopK},
             {"cache_append", runCacheAppend},
             {"cache_read", runCacheRead},
             {"weight_get", runWeightGet}};
  for (auto [name, handler] : ops)
    handlers[("attune." + llvm::Twine(name)).str()] = handler;
}
