//===- WeightValues.cpp - Weights that no file holds ------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Noise.h"
#include "Layers.h"

#include "Attune/AttuneCut.h"
#include "Attune/AttunePanels.h"
#include "attune/Weights/WeightLayout.h"

#include "llvm/ADT/Hashing.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <map>

using namespace attune;
using namespace attune::validation;
using namespace mlir;

/// A name for what a weight is made of, which no pass changes: not its symbol
/// and not its layout.
static uint64_t identify(WeightOp weight) {
  uint64_t hash = 0xcbf29ce484222325u;
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << weight.getSources();
  for (const char *name : {"attune.factor", "attune.kept"})
    if (auto part = weight->getAttr(name))
      stream << part;
  for (char c : text)
    hash = (hash ^ uint8_t(c)) * 0x100000001b3u;
  return hash;
}

namespace {
/// Where an entry of a rank's part of a weight is in the whole one.
class RankPart {
public:
  RankPart(WeightOp weight, int64_t rank) : cut(getCut(weight)), rank(rank) {}

  bool isCut() const { return cut && !cut->cutsParts; }
  /// The index of `part` in the whole weight, if that is in parts.
  int64_t partOf(int64_t part) const {
    return cut && cut->cutsParts ? part + cut->rows[rank].front().begin : part;
  }
  int64_t wholeColumns() const { return cut->wholeColumns; }
  /// Nothing: the rank has zeros there.
  std::optional<int64_t> rowOf(int64_t row) const {
    if (!isCut())
      return row;
    for (const WeightCut::Rows &some : cut->rows[rank]) {
      if (row < some.count)
        return some.begin + row;
      row -= some.count;
    }
    return std::nullopt;
  }
  /// Nothing: zeros again.
  std::optional<int64_t> columnOf(int64_t column) const {
    if (!isCut() || !cut->cutsColumns())
      return column;
    const WeightCut::Rows &some = cut->columns[rank];
    return column < some.count ? std::optional(some.begin + column)
                               : std::nullopt;
  }

private:
  std::optional<WeightCut> cut;
  int64_t rank;
};
} // namespace

namespace {
/// The scale of a group, and what it makes of a value: see attune.weight.
struct GroupNumbers {
  GroupNumbers() = default;
  GroupNumbers(WeightOp weight, llvm::ArrayRef<double> values);

  /// Rounds to floats of 8 bits.
  double roundByteFloat(Type type, double value) const {
    double number = scale == 0 ? 0 : value / scale;
    return roundTo(type, std::clamp(number, -448.0, 448.0));
  }
  int64_t round(double value) const {
    if (floats)
      return roundFloat(scale == 0 ? 0 : value / scale);
    auto steps = scale == 0 ? 0 : int64_t(std::lrint((value + least) / scale));
    return std::clamp<int64_t>(steps + int64_t(zero), lowest, most);
  }
  /// Makes scale and minimum steps of factors that a block has.
  void putInLevels(double factor, double leastFactor, bool zeros) {
    auto stepsOf = [](double number, double by) {
      return by == 0 ? 0 : int64_t(std::lrint(number / by));
    };
    steps = stepsOf(scale, factor);
    leastSteps = stepsOf(zeros ? scale * zero : 0, leastFactor);
    scale = factor * double(steps);
    least = leastFactor * double(leastSteps);
    zero = zeros ? 0 : zero;
  }

  double scale = 0, zero = 0;
  double least = 0; ///< of scales in two levels, which are so many steps
  int64_t steps = 0, leastSteps = 0;

private:
  static int64_t roundFloat(double value);

  int64_t lowest = 0, most = 0;
  bool floats = false;
};
} // namespace

GroupNumbers::GroupNumbers(WeightOp weight, llvm::ArrayRef<double> values) {
  bool nibbles = weight.getBits() == 4;
  FloatType type = weight.getScaleType();
  floats = isa<Float8E8M0FNUType>(type);
  double first = 0, lowest = 0, highest = 0;
  for (double value : values) {
    first = std::fabs(value) > std::fabs(first) ? value : first;
    lowest = std::min(lowest, value);
    highest = std::max(highest, value);
  }
  bool levels = hasScalesInLevels(weight);
  most = nibbles ? 15 : levels ? 2 * kMiddleInLevels - 1 : 255;
  if (floats) {
    int exponent = 0;
    std::frexp(first, &exponent);
    scale = std::ldexp(1.0, std::max(exponent - 3, -127));
  } else if (weight.hasByteFloats()) {
    scale = roundTo(type, std::fabs(first) / 448);
  } else if (weight.hasZeros()) {
    scale = roundTo(type, (highest - lowest) / double(most));
    zero = scale == 0 ? 0 : double(std::lrint(-lowest / scale));
  } else if (nibbles) {
    scale = roundTo(type, first / -8);
    zero = 8;
  } else {
    zero = levels ? kMiddleInLevels : 128;
    scale = std::fabs(first) / (zero - 1);
  }
}

int64_t GroupNumbers::roundFloat(double value) {
  static constexpr double sizes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  double size = std::fabs(value);
  int64_t nearest = 0;
  for (int64_t i = 1; i < 8; ++i) {
    double gain = std::fabs(size - sizes[nearest]) - std::fabs(size - sizes[i]);
    if (gain > 0 || (gain == 0 && i % 2 == 0))
      nearest = i;
  }
  return value < 0 ? nearest | 8 : nearest;
}

/// One part of one layer, in the layout of its type. An entry is decided by its
/// row and column in the whole weight, wherever the layout puts it. `gains` of
/// columns, if there are any, come on top.
static void fillPart(WeightOp weight, const RankPart &place, uint64_t seed,
                     llvm::ArrayRef<double> gains, Scalar *out) {
  RankedTensorType type = weight.getPartType();
  llvm::ArrayRef<int64_t> shape = type.getShape();
  Type element = type.getElementType();
  int64_t panel = weight.getPanelWidth().value_or(0);
  bool matrix = shape.size() >= (panel ? 3u : 2u);
  int64_t side = weight.getColumnsSideBySide();
  int64_t columns = matrix ? shape[1] * side : 1;
  int64_t count = volume(shape);
  int64_t rows = count / columns;
  int64_t group = weight.getGroup().value_or(0);
  bool scales = weight.holdsScales(), zeros = weight.hasZeros();
  if (auto known = weight->getAttrOfType<IntegerAttr>("attune.rows"))
    rows = known.getInt();
  // Products keep the size of what they are of; gains and biases are near one.
  int64_t summands = place.isCut() ? place.wholeColumns()
                     : scales && hasScalesInLevels(weight)
                         ? columns / bytesOfScales(group, zeros) * kScaleColumns
                     : scales ? columns * group / (zeros ? 2 : 1)
                              : columns;
  double spread = matrix ? 1.7 / std::sqrt(double(summands)) : 0.5;
  double centre = matrix ? 0 : 0.75;
  // Random numbers are in groups as they stand.
  if (weight.holdsOrder()) {
    for (int64_t i = 0; i < count; ++i)
      out[i] = real(double(i));
    return;
  }
  bool gated = weight.getGated() && panel;
  int64_t half = gated ? rows / 2 : rows;
  auto entry = [&](int64_t row, int64_t column) {
    std::optional<int64_t> wholeRow = place.rowOf(row),
                           wholeColumn = place.columnOf(column);
    if (!wholeRow || !wholeColumn)
      return 0.0;
    Noise noise(seed + uint64_t(*wholeRow) * 0x9e3779b97f4a7c15u +
                uint64_t(*wholeColumn));
    double value = centre + spread * noise.real();
    return gains.empty() ? value : roundTo(element, value) * gains[column];
  };
  // Scales of quantized groups, by row and group.
  std::map<std::pair<int64_t, int64_t>, GroupNumbers> known;
  bool nibbles = group && weight.getBits() == 4;
  bool levels = hasScalesInLevels(weight);
  auto numbersOf = [&](int64_t row, int64_t number) {
    std::vector<double> values;
    for (int64_t i = 0; i < group; ++i)
      values.push_back(entry(row, number * group + i));
    return GroupNumbers(weight, values);
  };
  // What the scales of a block, and its minima, are steps of.
  auto factorsOf = [&](int64_t row, int64_t block) {
    int64_t each = kScaleColumns / group;
    double scale = 0, least = 0;
    for (int64_t i = 0; i < each; ++i) {
      GroupNumbers own = numbersOf(row, block * each + i);
      scale = std::max(scale, std::fabs(own.scale));
      least = std::max(least, std::fabs(own.scale * own.zero));
    }
    return std::pair(roundTo(weight.getScaleType(), scale / 127),
                     zeros ? roundTo(weight.getScaleType(), least / 127) : 0.0);
  };
  auto groupOf = [&](int64_t row, int64_t number) -> const GroupNumbers & {
    auto [it, fresh] = known.insert({{row, number}, {}});
    if (fresh) {
      it->second = numbersOf(row, number);
      if (levels) {
        auto [scale, least] = factorsOf(row, number * group / kScaleColumns);
        it->second.putInLevels(scale, least, zeros);
      }
    }
    return it->second;
  };
  // The byte at place `place` of a row of scales in two levels.
  auto byteOf = [&](int64_t row, int64_t place) -> int64_t {
    int64_t bytes = bytesOfScales(group, zeros), each = kScaleColumns / group;
    int64_t block = place / bytes, own = place % bytes, sides = zeros ? 2 : 1;
    if (own < each * sides) {
      const GroupNumbers &some = groupOf(row, block * each + own / sides);
      return own % sides ? some.leastSteps : some.steps;
    }
    own -= each * sides;
    auto [scale, least] = factorsOf(row, block);
    llvm::APFloat half(own < 2 ? scale : least);
    bool inexact;
    half.convert(llvm::APFloat::IEEEhalf(), llvm::APFloat::rmNearestTiesToEven,
                 &inexact);
    return int64_t(half.bitcastToAPInt().getZExtValue() >> own % 2 * 8 & 255);
  };
  auto scaleOf = [&](int64_t row, int64_t place) {
    const GroupNumbers &own = groupOf(row, zeros ? place / 2 : place);
    return zeros && place % 2 ? own.zero : own.scale;
  };
  auto quantized = [&](int64_t row, int64_t column) -> int64_t {
    return groupOf(row, column / group).round(entry(row, column));
  };
  // In panels a byte holds two columns.
  bool halves = nibbles && panel && !scales;
  bool byteFloats = weight.hasByteFloats() && !scales;
  int64_t bytesSide = halves ? 4 : side;
  for (int64_t i = 0; i < count; ++i) {
    int64_t row, column;
    if (panel) {
      int64_t size = panel * columns / (halves ? 2 : 1);
      int64_t block = i / size, inBlock = i % size, lane = inBlock % panel;
      column = inBlock / panel;
      if (side > 1) {
        lane = inBlock / bytesSide % panel;
        column = inBlock / (bytesSide * panel) * side + inBlock % bytesSide;
      }
      int64_t inHalf = (gated ? block / 2 : block) * panel + lane;
      row = inHalf + (gated && block % 2 ? half : 0);
      if (inHalf >= half) {
        bool powers = isa<Float8E8M0FNUType>(weight.getScaleType());
        int64_t none = zeros || powers ? 0
                       : halves        ? 0x88
                       : levels        ? kMiddleInLevels
                                       : 128;
        if (scales && levels) {
          out[i] = whole(0);
          continue;
        }
        // Powers of two have no zero.
        out[i] = group && !scales && !byteFloats
                     ? whole(wrapTo(element, none))
                     : real(group && powers ? std::ldexp(1.0, -127) : 0);
        continue;
      }
    } else {
      row = i / columns;
      column = i % columns;
    }
    if (!group)
      out[i] = real(roundTo(element, entry(row, column)));
    else if (scales && levels)
      out[i] = whole(wrapTo(element, byteOf(row, column)));
    else if (scales)
      out[i] = real(scaleOf(row, column));
    else if (byteFloats)
      out[i] = real(groupOf(row, column / group)
                        .roundByteFloat(element, entry(row, column)));
    else
      out[i] = whole(
          wrapTo(element, quantized(row, column) |
                              (halves ? quantized(row, column + 4) : 0) << 4));
  }
}

Datum Machine::getWeight(llvm::StringRef name, int64_t layer) {
  std::string key = (name + "#" + llvm::Twine(layer)).str();
  if (auto it = weights.find(key); it != weights.end() && it->second.box)
    return it->second;
  auto weight = module.lookupSymbol<WeightOp>(name);
  if (!weight || layer < 0 || layer >= weight.getNumLayers())
    return {};
  std::vector<double> gains;
  if (auto gain = weight.getGain()) {
    Datum entries = getWeight(*gain, layer);
    if (!entries.box)
      return {};
    for (Scalar entry : entries.array().data)
      gains.push_back(weight.getGainOffset().convertToDouble() + entry.f);
  }
  llvm::ArrayRef<int64_t> shape = weight.getLayerType().getShape();
  Datum &known = weights[key];
  Datum *shared = nullptr;
  RankPart place(weight, rank);
  if (cache) {
    int64_t number =
        layer + (getCut(weight) ? rank * weight.getNumLayers() : 0);
    shared = &cache->values[{weight->getAttrDictionary(), number}];
    if (shared->box)
      return known = *shared;
  }
  if (!spend(weight, volume(shape)))
    return {};
  known = makeReals(shape);
  int64_t parts = weight.getNumParts();
  int64_t each = int64_t(known.array().data.size()) / parts;
  for (int64_t part = 0; part < parts; ++part)
    fillPart(weight, place,
             Noise::mix(identify(weight) + uint64_t(layer) * 8191 +
                        uint64_t(place.partOf(part))),
             gains, &known.array().data[part * each]);
  if (shared) {
    *shared = known;
    cache->held += volume(shape);
  }
  return known;
}

Datum Machine::getWeightBytes() {
  if (weightBytes.box)
    return weightBytes;
  FailureOr<WeightLayout> layout = layoutWeights(module);
  if (failed(layout))
    return {};
  Type byte = IntegerType::get(module.getContext(), 8);
  if (!spend(module, layout->seenBytes() / 4))
    return {};
  Datum bytes = allocate(byte, {layout->seenBytes()});
  for (auto weight : module.getOps<WeightOp>()) {
    const WeightPlace *place = layout->lookup(weight.getSymName());
    Type element = weight.getTensorType().getElementType();
    for (int64_t layer = 0; layer < weight.getNumLayers(); ++layer) {
      Datum values = getWeight(weight.getSymName(), layer);
      if (!values.box)
        return {};
      uint8_t *to = bytes.view().base + place->getLayerOffset(layer);
      for (Scalar value : values.array().data) {
        storeScalar(element, to, value);
        to += bytesOf(element);
      }
    }
  }
  return weightBytes = bytes;
}
