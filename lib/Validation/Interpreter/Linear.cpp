//===- Linear.cpp - Matrix products, as defined ---------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layers.h"

#include "Attune/AttunePanels.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace attune;
using namespace attune::validation;
using namespace mlir;

void validation::giveRounded(Step &step, unsigned result, Datum value) {
  Type type = step.elementOf(step.op->getResult(result));
  for (Scalar &element : value.ownArray().data)
    element.f = roundTo(type, element.f);
  step.give(std::move(value));
}

Rows::Rows(const Array &array, int64_t rows, bool gated, bool stack,
           int64_t part)
    : rows(rows), gated(gated) {
  llvm::ArrayRef<int64_t> shape = array.shape;
  data = array.data.data();
  if (stack) {
    shape = shape.drop_front();
    data += part * volume(shape);
  }
  columns = shape[1];
  if (shape.size() == 3)
    width = shape[2];
  else
    this->rows = shape[0];
}

void Rows::readSideBySide(int64_t depth) {
  if (!width || columns == 0 || depth % columns != 0)
    return;
  side = depth / columns;
  columns = depth;
  width /= side;
}

int64_t Rows::place(int64_t row, int64_t column) const {
  if (!width)
    return row * columns + column;
  int64_t half = gated ? rows / 2 : rows;
  int64_t inHalf = row % half;
  int64_t panel = inHalf / width;
  if (gated)
    panel = 2 * panel + (row >= half);
  return ((panel * columns + column / side * side) * width) +
         inHalf % width * side + column % side;
}

double validation::activate(Activation function, double x) {
  auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  switch (function) {
  case Activation::Identity:
    return x;
  case Activation::Relu:
    return std::max(x, 0.0);
  case Activation::GeluErf:
    return x / 2 * (1 + std::erf(x / std::sqrt(2.0)));
  case Activation::GeluTanh:
    return x / 2 *
           (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  case Activation::QuickGelu:
    return x * sigmoid(1.702 * x);
  case Activation::Silu:
    return x * sigmoid(x);
  case Activation::ReluSquared:
    return std::max(x, 0.0) * std::max(x, 0.0);
  case Activation::Sigmoid:
    return sigmoid(x);
  case Activation::Tanh:
    return std::tanh(x);
  case Activation::Softplus:
    return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x)));
  case Activation::Mish:
    return x * std::tanh(activate(Activation::Softplus, x));
  case Activation::Elu:
    return x > 0 ? x : std::expm1(x);
  case Activation::LeakyRelu:
    return x > 0 ? x : 0.01 * x;
  case Activation::HardSwish:
    return x * std::clamp(x + 3, 0.0, 6.0) / 6;
  }
  return x;
}

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

std::vector<double> validation::product(const Scalar *x, const Rows &w,
                                        const Array *bias,
                                        std::optional<double> rmsEps) {
  std::vector<double> z(w.getRows());
  double scale = 1, squares = 0;
  if (rmsEps) {
    for (int64_t k = 0; k < w.getColumns(); ++k)
      squares += x[k].f * x[k].f;
    scale = 1 / std::sqrt(squares / double(w.getColumns()) + *rmsEps);
  }
  for (int64_t n = 0; n < w.getRows(); ++n) {
    double sum = 0;
    for (int64_t k = 0; k < w.getColumns(); ++k)
      sum += x[k].f * w(n, k);
    z[n] = sum * scale + (bias ? bias->data[n].f : 0);
  }
  return z;
}

void validation::gate(std::vector<double> &z, Activation function, bool gated,
                      double limit, double upOffset) {
  if (!gated) {
    for (double &value : z)
      value = activate(function, value);
    return;
  }
  size_t half = z.size() / 2;
  for (size_t n = 0; n < half; ++n) {
    // No number stays none: nothing is larger or smaller.
    double gate = z[n] > limit ? limit : z[n], up = z[half + n];
    up = up > limit ? limit : up < -limit ? -limit : up;
    z[n] = activate(function, gate) * (up + upOffset);
  }
  z.resize(half);
}

static bool fits(Step &step, const Array &x, const Rows &w, const Array *bias) {
  return same(step, x.shape.back(), w.getColumns(), "width of the input") &&
         (!bias || same(step, int64_t(bias->data.size()), w.getRows(),
                        "entries of the bias")) &&
         step.machine.spend(step, int64_t(x.data.size()) * w.getRows() / 8);
}

Array validation::partOf(const Array &stack, int64_t number) {
  llvm::ArrayRef<int64_t> shape(stack.shape);
  shape = shape.drop_front();
  auto first = stack.data.begin() + number * volume(shape);
  Array part({0}, whole(0));
  part.shape.assign(shape.begin(), shape.end());
  part.data.assign(first, first + volume(shape));
  return part;
}

Datum validation::resultLike(const Array &x, int64_t width) {
  Shape shape = x.shape;
  shape.back() = width;
  return makeReals(shape);
}

bool validation::addResidual(Step &step, Value operand, Array &out) {
  const Array *residual = arrayOf(step, operand);
  if (!residual)
    return true;
  if (residual->shape != out.shape)
    return step.machine.illegal(step, "the residual has another size");
  for (size_t i = 0; i < out.data.size(); ++i)
    out.data[i].f += residual->data[i].f;
  return true;
}

/// All of a linear layer but its residual; `width` is that of the result.
/// Nothing if the machine has failed.
template <typename Op>
static std::optional<Datum> runProduct(Step &step, Op op, const Array &x,
                                       const Array &weight, const Array *bias,
                                       int64_t width,
                                       std::optional<double> rmsEps = {}) {
  bool gated = op.getGated();
  Rows w(weight, gated ? 2 * width : width, gated);
  w.readSideBySide(x.shape.back());
  if (!fits(step, x, w, bias))
    return std::nullopt;
  Datum result = resultLike(x, width);
  Array &out = result.array();
  double scale = op.getScale() ? op.getScale()->convertToFloat() : 1;
  int64_t in = x.shape.back(), each = out.shape.back();
  for (int64_t row = 0; row < volume(x.shape) / std::max<int64_t>(in, 1);
       ++row) {
    auto z = product(&x.data[row * in], w, bias, rmsEps);
    gate(z, op.getActivation(), gated);
    for (int64_t n = 0; n < each; ++n)
      out.data[row * each + n].f = z[n] * scale;
  }
  return result;
}

static bool runLinear(Step &step) {
  auto op = cast<LinearOp>(step.op);
  int64_t width = cast<ShapedType>(op.getType()).getShape().back();
  const Array *bias = arrayOf(step, op.getBias());
  const Array &weight = step.in[1].array();
  if (ShapedType::isDynamic(width))
    width = (bias ? int64_t(bias->data.size()) : weight.shape[0]) /
            (op.getGated() ? 2 : 1);
  std::optional<double> rmsEps;
  if (op.getRmsEps())
    rmsEps = op.getRmsEps()->convertToDouble();
  std::optional<Datum> result =
      runProduct(step, op, step.in[0].array(), weight, bias, width, rmsEps);
  if (!result || !addResidual(step, op.getResidual(), result->array()))
    return false;
  giveRounded(step, 0, *result);
  return true;
}

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

/// Panels of bytes that hold one number each, from those that hold two.
static Array splitHalves(const Array &bytes) {
  int64_t steps = bytes.shape[1], width = bytes.shape[2];
  Array result({bytes.shape[0], 2 * steps, width}, whole(0));
  for (size_t i = 0; i < bytes.data.size(); ++i) {
    int64_t place = int64_t(i) / width * 2 * width + int64_t(i) % width;
    result.data[place].i = bytes.data[i].i & 15;
    result.data[place + width].i = bytes.data[i].i >> 4 & 15;
  }
  return result;
}

/// An f16 that two bytes are.
static double halfAt(const Rows &bytes, int64_t row, int64_t column) {
  uint64_t bits = uint64_t(bytes.at(row, column).i & 255) |
                  uint64_t(bytes.at(row, column + 1).i & 255) << 8;
  return llvm::APFloat(llvm::APFloat::IEEEhalf(), llvm::APInt(16, bits))
      .convertToDouble();
}

/// Scales in two levels as those of one: a scale for each group, with `zeros`
/// the minimum behind it.
static Array multiplyLevels(const Rows &bytes, int64_t rows, int64_t groups,
                            int64_t group, bool zeros) {
  int64_t sides = zeros ? 2 : 1, inBlock = kScaleColumns / group;
  int64_t blockBytes = bytesOfScales(group, zeros);
  Array result({rows, groups * sides}, real(0));
  for (int64_t n = 0; n < rows; ++n)
    for (int64_t g = 0; g < groups; ++g)
      for (int64_t side = 0; side < sides; ++side) {
        int64_t first = g / inBlock * blockBytes;
        int64_t steps = bytes.at(n, first + g % inBlock * sides + side).i & 255;
        double factor = halfAt(bytes, n, first + inBlock * sides + 2 * side);
        result.data[(n * groups + g) * sides + side].f =
            factor * double(steps - (steps > 127 ? 256 : 0));
      }
  return result;
}

Array validation::readQuantized(const Array &numbers, ShapedType type,
                                const Array &scales, ShapedType scalesType,
                                bool zeros, int64_t rows, int64_t depth,
                                bool gated) {
  int64_t bits = quantizedBits(type, depth);
  bool halves = bits == 4 && numbers.shape.size() == 3;
  Array split = halves ? splitHalves(numbers) : Array({0}, whole(0));
  bool levels = areScalesInLevels(scalesType);
  Rows stored(scales, rows, gated);
  // A block has as many bytes as tell how many groups it has.
  int64_t blocks = std::max<int64_t>(depth / kScaleColumns, 1);
  int64_t inBlock =
      std::max<int64_t>(stored.getColumns() / blocks / (zeros ? 2 : 1) - 2, 1);
  Array products = levels ? multiplyLevels(stored, rows, blocks * inBlock,
                                           kScaleColumns / inBlock, zeros)
                          : Array({0}, real(0));
  Rows values(halves ? split : numbers, rows, gated),
      factors(levels ? products : scales, rows, levels ? false : gated);
  values.readSideBySide(depth);
  static constexpr double floats[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  bool areFloats = areScalesOfFloats(scalesType);
  bool byteFloats = holdsByteFloats(type);
  int64_t most = (1 << bits) - 1, step = zeros ? 2 : 1;
  int64_t group = depth / std::max<int64_t>(factors.getColumns() / step, 1);
  Array matrix({rows, depth}, real(0));
  for (int64_t n = 0; n < rows; ++n)
    for (int64_t k = 0; k < depth; ++k) {
      int64_t at = k / group * step;
      if (byteFloats) {
        matrix.data[n * depth + k].f = values.at(n, k).f * factors(n, at);
        continue;
      }
      int64_t number = values.at(n, k).i & most;
      double value = double(number);
      if (areFloats)
        value = number & 8 ? -floats[number & 7] : floats[number & 7];
      else
        value -= !zeros   ? double(levels && bits == 8 ? kMiddleInLevels
                                                       : 1 << (bits - 1))
                 : levels ? 0
                          : factors(n, at + 1);
      value *= factors(n, at);
      if (levels && zeros)
        value -= factors(n, at + 1);
      matrix.data[n * depth + k].f = value;
    }
  return matrix;
}

double validation::roundGroup(const Scalar *in, int64_t group, int64_t *bytes) {
  double most = 0;
  for (int64_t i = 0; i < group; ++i)
    most = std::isnan(in[i].f) || std::isnan(most)
               ? NAN
               : std::max(most, std::fabs(in[i].f));
  // In f32, as the op says: next to a tie another type gives another byte.
  float by = most == 0 ? 0 : 127 / float(most);
  for (int64_t i = 0; i < group; ++i) {
    float x = std::nearbyint(float(in[i].f) * by);
    bytes[i] = int64_t(std::fmin(std::fmax(x, -127.0f), 127.0f));
  }
  return most;
}

static bool runQuantizeRows(Step &step) {
  auto op = cast<QuantizeRowsOp>(step.op);
  const Array &x = step.in[0].array();
  auto group = static_cast<int64_t>(op.getGroup());
  int64_t width = x.shape.back();
  if (width % group != 0)
    return step.machine.illegal(step, "a row is no whole groups");
  Datum values = makeArray(x.shape, whole(0));
  Datum scales = resultLike(x, width / group);
  Datum sums = makeArray(scales.array().shape, whole(0));
  for (size_t g = 0; g < scales.array().data.size(); ++g) {
    std::vector<int64_t> bytes(group);
    double most = roundGroup(&x.data[g * group], group, bytes.data());
    scales.array().data[g].f = most / 127;
    for (int64_t i = 0; i < group; ++i) {
      values.array().data[g * group + i] = whole(bytes[i]);
      sums.array().data[g].i += bytes[i];
    }
  }
  step.give(std::move(values));
  step.give(std::move(scales));
  step.give(std::move(sums));
  return true;
}

Array validation::readBytes(const Array &bytes, const Array &scales) {
  Array x(bytes.shape, real(0));
  int64_t group = bytes.shape.back() / scales.shape.back();
  for (size_t i = 0; i < x.data.size(); ++i)
    x.data[i].f = double(bytes.data[i].i) * scales.data[i / group].f;
  return x;
}

/// Whether `sums` are those of the groups of `bytes`.
static bool sumsFit(Step &step, const Array &bytes, const Array &scales,
                    const Array &sums) {
  int64_t depth = bytes.shape.back(), groups = scales.shape.back();
  if (groups < 1 || depth % groups != 0 ||
      sums.data.size() != scales.data.size())
    return step.machine.illegal(step, "rows have no whole groups");
  int64_t group = depth / groups;
  for (size_t g = 0; g < sums.data.size(); ++g) {
    int64_t sum = 0;
    for (int64_t i = 0; i < group; ++i)
      sum += bytes.data[g * group + i].i;
    if (sum != sums.data[g].i)
      return step.machine.illegal(step, "the sum of a group is another one");
  }
  return true;
}

static bool runQuantizedLinear(Step &step) {
  auto op = cast<QuantizedLinearOp>(step.op);
  const Array &input = step.in[0].array(),
              *scales = arrayOf(step, op.getInputScales()),
              *sums = arrayOf(step, op.getInputSums());
  int64_t depth = input.shape.back();
  int64_t width = cast<ShapedType>(op.getType()).getShape().back();
  if (scales && !sumsFit(step, input, *scales, *sums))
    return false;
  Array x = scales ? readBytes(input, *scales) : input;
  int64_t rows = op.getGated() ? 2 * width : width;
  if (!step.machine.spend(step, rows * depth / 8))
    return false;
  Array weight = readQuantized(
      *arrayOf(step, op.getWeight()), op.getWeight().getType(),
      *arrayOf(step, op.getWeightScales()), op.getWeightScales().getType(),
      op.getZeros(), rows, depth, op.getGated());
  // The rows are in order now.
  std::optional<Datum> result =
      runProduct(step, op, x, weight, arrayOf(step, op.getBias()), width);
  if (!result || !addResidual(step, op.getResidual(), result->array()))
    return false;
  giveRounded(step, 0, *result);
  return true;
}

/// Rows of signed bytes by panels of unsigned ones, added to what `dest` has if
/// there is a `residual`.
static bool addQuadProducts(Step &step, LinearIntoOp op, const Array &x,
                            const Array &w, Array &dest) {
  int64_t rows = dest.shape[0], width = dest.shape[1], depth = x.shape[1],
          quads = w.shape[1], lanes = w.shape[2] / 4;
  for (int64_t m = 0; m < rows; ++m)
    for (int64_t n = 0; n < width; ++n) {
      uint32_t sum = op.getResidual() ? dest.data[m * width + n].i : 0;
      for (int64_t i = 0; i < depth; ++i) {
        int64_t place = ((n / lanes) * quads + i / 4) * w.shape[2] +
                        4 * (n % lanes) + i % 4;
        sum += uint32_t(int8_t(x.data[m * depth + i].i) *
                        int32_t(uint8_t(w.data[place].i)));
      }
      dest.data[m * width + n].i = int32_t(sum);
    }
  return step.machine.spend(step, rows * width * depth);
}

/// What an op with a destination reads: buffers are copied.
template <typename Op>
static llvm::SmallVector<Datum> readInto(Step &step, Op op) {
  llvm::SmallVector<Datum> in(step.in);
  if (isa<MemRefType>(op.getDest().getType()))
    for (auto [value, datum] : llvm::zip(op->getOperands(), in))
      datum = readView(datum.view(), step.elementOf(value));
  return in;
}

/// Gives the product, or writes it where the op says, onto what `dest` has if
/// there is a residual.
template <typename Op>
static bool giveInto(Step &step, Op op, std::optional<Datum> result,
                     const Array &dest) {
  if (!result)
    return false;
  Array &out = result->array();
  if (out.shape != dest.shape)
    return step.machine.illegal(step, "the destination has another size");
  if (op.getResidual())
    for (size_t i = 0; i < out.data.size(); ++i)
      out.data[i].f += dest.data[i].f;
  if (!isa<MemRefType>(op.getDest().getType())) {
    giveRounded(step, 0, *result);
    return true;
  }
  writeView(step.in.back().view(), step.elementOf(op.getDest()), out);
  return true;
}

static bool runLinearInto(Step &step) {
  auto op = cast<LinearIntoOp>(step.op);
  llvm::SmallVector<Datum> in = readInto(step, op);
  Datum &dest = in.back();
  if (step.elementOf(op.getDest()).isInteger(32)) {
    if (!addQuadProducts(step, op, in[0].array(), in[1].array(),
                         dest.ownArray()))
      return false;
    if (isa<MemRefType>(op.getDest().getType()))
      writeView(step.in.back().view(), step.elementOf(op.getDest()),
                dest.array());
    else
      step.give(dest);
    return true;
  }
  return giveInto(step, op,
                  runProduct(step, op, in[0].array(), in[1].array(),
                             op.getBias() ? &in[2].array() : nullptr,
                             dest.array().shape.back()),
                  dest.array());
}

static bool runQuantizedLinearInto(Step &step) {
  auto op = cast<QuantizedLinearIntoOp>(step.op);
  llvm::SmallVector<Datum> in = readInto(step, op);
  const Array &x = in[0].array(), &dest = in.back().array();
  int64_t width = dest.shape.back(), rows = op.getGated() ? 2 * width : width;
  int64_t depth = x.shape.back();
  if (!step.machine.spend(step, rows * depth / 8))
    return false;
  Array weight = readQuantized(
      in[1].array(), cast<ShapedType>(op.getWeight().getType()), in[2].array(),
      cast<ShapedType>(op.getWeightScales().getType()), op.getZeros(), rows,
      depth, op.getGated());
  return giveInto(step, op,
                  runProduct(step, op, x, weight,
                             op.getBias() ? &in[3].array() : nullptr, width),
                  dest);
}

namespace {
/// A tile of a product, all of whose operands are tensors.
struct PackedTile {
  PackedProductOp op;
  const Array &x, &dest;
  const Rows &w;
  const Array *bias, *rowScales, *order;
  int64_t firstRow, firstChannel, part, parts;

  /// The row of X that row `m` of the tile reads.
  int64_t inputRow(int64_t m) const {
    return order ? order->data[firstRow + m].i : firstRow + m;
  }
  double sum(int64_t row, int64_t channel) {
    int64_t depth = x.shape[1], share = depth / parts, begin = part * share;
    double sum = 0;
    for (int64_t k = begin; k < begin + share; ++k)
      sum += x.data[row * depth + k].f * w(channel, k);
    return sum;
  }
  double rowScale(int64_t row) {
    if (!op.getRmsEps())
      return 1;
    int64_t depth = x.shape[1];
    if (rowScales && x.shape[0] > op.getTile()[0] * op.getTile()[1])
      return rowScales->data[row].f;
    double squares = 0;
    for (int64_t k = 0; k < depth; ++k)
      squares += x.data[row * depth + k].f * x.data[row * depth + k].f;
    return 1 / std::sqrt(squares / double(depth) +
                         op.getRmsEps()->convertToFloat());
  }
  double at(int64_t m, int64_t c) {
    int64_t row = inputRow(m), channel = firstChannel + c;
    double before = dest.data[m * dest.shape[1] + c].f;
    auto z = [&](int64_t channel, double start) {
      return rowScale(row) * (start + sum(row, channel)) +
             (bias ? bias->data[channel].f : 0);
    };
    bool adds = part > 0 || (op.getPart() && op.getResidual());
    double start = adds ? before : 0;
    if (part + 1 < parts)
      return start + sum(row, channel);
    std::vector<double> both = {z(channel, start)};
    if (op.getGated())
      both.push_back(z(int64_t(op.getWidth()) + channel, 0));
    gate(both, op.getActivation(), op.getGated(),
         op.getLimit() ? op.getLimit()->convertToDouble() : HUGE_VAL,
         op.getUpOffset().convertToDouble());
    double y = both[0];
    if (op.getScale())
      y *= op.getScale()->convertToFloat();
    return op.getResidual() && !op.getPart() ? y + before : y;
  }
};
} // namespace

/// The same on tensors, or on buffers.
static bool runPackedProduct(Step &step) {
  auto op = cast<PackedProductOp>(step.op);
  bool buffers = isa<MemRefType>(op.getDest().getType());
  llvm::SmallVector<Datum> in(step.in), given;
  if (buffers)
    for (auto [value, datum] : llvm::zip(op->getOperands(), in))
      if (isa<MemRefType>(value.getType()))
        datum = readView(datum.view(), step.elementOf(value));
  Step own{step.machine, step.op, in, given};
  auto number = [&](Value value, int64_t otherwise) {
    return value ? integerOf(own, value) : otherwise;
  };
  const Array &dest = *arrayOf(own, op.getDest());
  int64_t rows = dest.shape[0], columns = dest.shape[1];
  int64_t depth = op.getDepth(), width = op.getWidth();
  int64_t channels = op.getGated() ? 2 * width : width;
  bool bytes = bool(op.getInputScales());
  bool quantized = bool(op.getWeightScales());
  auto type = cast<ShapedType>(op.getWeight().getType());
  // A matrix of a stack, its scales and its bias.
  int64_t numMatrices =
      op.getMatrix() ? arrayOf(own, op.getWeight())->shape[0] : 1;
  int64_t which = number(op.getMatrix(), 0);
  if (which < 0 || which >= numMatrices)
    return step.machine.illegal(step, "takes a matrix that there is not");
  auto here = [&](Value operand) {
    const Array &all = *arrayOf(own, operand);
    return op.getMatrix() ? partOf(all, which) : all;
  };
  if (op.getMatrix())
    type = type.clone(type.getShape().drop_front());
  Array biases = op.getBias() ? here(op.getBias()) : Array({0}, whole(0));
  Array x = bytes ? readBytes(in[0].array(), *arrayOf(own, op.getInputScales()))
                  : in[0].array();
  Array matrix =
      quantized
          ? readQuantized(here(op.getWeight()), type,
                          here(op.getWeightScales()),
                          cast<ShapedType>(op.getWeightScales().getType()),
                          op.getZeros(), channels, depth, op.getGated())
          : here(op.getWeight());
  Rows w(matrix, channels, op.getGated());
  w.readSideBySide(depth);
  PackedTile tile{op,
                  x,
                  dest,
                  w,
                  op.getBias() ? &biases : nullptr,
                  arrayOf(own, op.getRowScales()),
                  arrayOf(own, op.getOrder()),
                  integerOf(own, op.getFirstRow()) + number(op.getTileRow(), 0),
                  integerOf(own, op.getFirstPanel()) * op.getPanelWidth(),
                  number(op.getPart(), 0),
                  number(op.getNumParts(), 1)};
  int64_t most = integerOf(own, op.getNumPanels()) * op.getPanelWidth();
  int64_t rowsOrPlaces = tile.order ? tile.order->shape[0] : x.shape[0];
  if (tile.firstRow < 0 || tile.firstRow + rows > rowsOrPlaces)
    return step.machine.illegal(step, "takes rows that there are not");
  if (op.getTileRow() &&
      (number(op.getTileRow(), 0) + rows > number(op.getNumRows(), 0) ||
       rows > op.getTile()[0] * op.getTile()[1]))
    return step.machine.illegal(step, "is no tile of its rows");
  for (int64_t m = 0; m < rows; ++m)
    if (tile.inputRow(m) < 0 || tile.inputRow(m) >= x.shape[0])
      return step.machine.illegal(step, "has an order of rows that there are "
                                        "not");
  if (tile.firstChannel < 0 ||
      columns !=
          std::max<int64_t>(0, std::min(most, width - tile.firstChannel)))
    return step.machine.illegal(step, "has other columns than its panels");
  if (tile.part < 0 || tile.part >= tile.parts || depth % tile.parts != 0)
    return step.machine.illegal(step, "has a part that there is not");
  if (!step.machine.spend(step, rows * columns * depth / tile.parts / 8))
    return false;
  Datum result = makeReals(dest.shape);
  for (int64_t m = 0; m < rows; ++m)
    for (int64_t c = 0; c < columns; ++c)
      result.array().data[m * columns + c].f = tile.at(m, c);
  if (buffers)
    writeView(step.in[op.getFirstDest()].view(), step.elementOf(op.getDest()),
              result.array());
  else
    giveRounded(step, 0, result);
  return true;
}

template <typename Op>
static bool runFeedForward(Step &step, Op op, bool gated, Value upBias,
                           Value downBias) {
  const Array &x = step.in[0].array(), &up = step.in[1].array(),
              &down = step.in[2].array();
  int64_t hidden = down.shape[1];
  int64_t width = cast<ShapedType>(op.getType()).getShape().back();
  Rows w1(up, gated ? 2 * hidden : hidden, gated), w2(down, width, false);
  const Array *b1 = arrayOf(step, upBias), *b2 = arrayOf(step, downBias);
  if (!fits(step, x, w1, b1) ||
      !same(step, w1.getRows(), gated ? 2 * hidden : hidden, "hidden widths") ||
      !step.machine.spend(step, int64_t(x.data.size()) * hidden / 8))
    return false;
  Datum result = resultLike(x, w2.getRows());
  Array &out = result.array();
  int64_t in = x.shape.back(), each = out.shape.back();
  for (int64_t row = 0; row < int64_t(x.data.size()) / in; ++row) {
    auto z = product(&x.data[row * in], w1, b1);
    gate(z, op.getActivation(), gated);
    std::vector<Scalar> h(z.size());
    for (size_t i = 0; i < z.size(); ++i)
      h[i].f = z[i];
    auto y = product(h.data(), w2, b2);
    for (int64_t n = 0; n < each; ++n)
      out.data[row * each + n].f = y[n];
  }
  if (!addResidual(step, op.getResidual(), out))
    return false;
  giveRounded(step, 0, result);
  return true;
}

static bool runFFN(Step &step) {
  auto op = cast<FFNOp>(step.op);
  return runFeedForward(step, op, false, op.getUpBias(), op.getDownBias());
}

static bool runGatedFFN(Step &step) {
  auto op = cast<GatedFFNOp>(step.op);
  return runFeedForward(step, op, true, op.getGateUpBias(), op.getDownBias());
}

static bool runHeadLinear(Step &step) {
  auto op = cast<HeadLinearOp>(step.op);
  const Array &x = step.in[0].array(), &w = step.in[1].array();
  int64_t width = cast<ShapedType>(op.getType()).getShape().back();
  Datum result = resultLike(x, width);
  int64_t batch = x.shape[0], heads = x.shape[1], tokens = x.shape[2],
          in = x.shape[3];
  if (!same(step, heads, w.shape[0], "heads") ||
      !step.machine.spend(step, int64_t(x.data.size()) * width / 8))
    return false;
  for (int64_t h = 0; h < heads; ++h) {
    Rows rows(w, width, false, /*stack=*/true, h);
    if (!same(step, rows.getColumns(), in, "width of the input"))
      return false;
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t t = 0; t < tokens; ++t) {
        int64_t row = (b * heads + h) * tokens + t;
        auto y = product(&x.data[row * in], rows, nullptr);
        for (int64_t n = 0; n < width; ++n)
          result.array().data[row * width + n].f = y[n];
      }
  }
  giveRounded(step, 0, result);
  return true;
}

static bool runActivation(Step &step) {
  auto op = cast<ActivationOp>(step.op);
  for (Scalar &value : step.in[0].ownArray().data)
    value.f = activate(op.getFunction(), value.f);
  giveRounded(step, 0, step.in[0]);
  return true;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

static bool runSuccessor(Step &step) {
  step.give(whole(step.in[0].integer() + 1));
  return true;
}

/// Enough of them for loops to be cut, which must not change anything.
static bool runNumThreads(Step &step) {
  step.give(whole(8));
  return true;
}

void validation::addLinear(Handlers &handlers) {
  struct {
    const char *name;
    Handler handler;
  } ops[] = {{"linear", runLinear},
             {"linear_into", runLinearInto},
             {"quantized_linear_into", runQuantizedLinearInto},
             {"packed_product", runPackedProduct},
             {"successor", runSuccessor},
             {"num_threads", runNumThreads},
             {"ffn", runFFN},
             {"gated_ffn", runGatedFFN},
             {"head_linear", runHeadLinear},
             {"activation", runActivation},
             {"quantize_rows", runQuantizeRows},
             {"quantized_linear", runQuantizedLinear}};
  for (auto [name, handler] : ops)
    handlers[("attune." + llvm::Twine(name)).str()] = handler;
}
