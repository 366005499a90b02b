//===- WeightPacker.cpp - Values into the layout of one weight --*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WeightPacker.h"

#include "GroupRounding.h"
#include "attune/Weights/Checkpoint.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>

namespace attune {

using runtime::DType;

//===----------------------------------------------------------------------===//
// Runs of values
//===----------------------------------------------------------------------===//

// These loops are written so that the compiler turns them into vector code
// without knowing more than baseline x86-64: no branches, no calls.

static float fromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

static uint32_t toBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return bits;
}

/// Exact for every f16, denormals, infinities and NaNs included.
static float halfToFloat(uint16_t half) {
  uint32_t magnitude = uint32_t(half & 0x7fff) << 13;
  float value = fromBits(magnitude) * 0x1p112f;
  uint32_t special = magnitude >= 0x0f800000u ? 0x7f800000u : 0;
  return fromBits(toBits(value) | special | uint32_t(half & 0x8000) << 16);
}

/// To nearest, ties to even; NaN stays NaN.
static uint16_t floatToBfloat(float value) {
  uint32_t bits = toBits(value);
  uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
  bool isNaN = (bits & 0x7fffffff) > 0x7f800000u;
  return static_cast<uint16_t>((isNaN ? bits | 0x400000u : rounded) >> 16);
}

template <typename T> static T loadAt(const uint8_t *data, int64_t i) {
  T value;
  std::memcpy(&value, data + i * int64_t(sizeof(T)), sizeof(T));
  return value;
}

template <typename T> static void storeAt(uint8_t *data, int64_t i, T value) {
  std::memcpy(data + i * int64_t(sizeof(T)), &value, sizeof(T));
}

static void widen(DType from, const uint8_t *in, float *out, int64_t count) {
  switch (from) {
  case DType::F16:
    for (int64_t i = 0; i < count; ++i)
      out[i] = halfToFloat(loadAt<uint16_t>(in, i));
    return;
  case DType::BF16:
    for (int64_t i = 0; i < count; ++i)
      out[i] = fromBits(uint32_t(loadAt<uint16_t>(in, i)) << 16);
    return;
  default:
    std::memcpy(out, in, count * sizeof(float));
    return;
  }
}

/// Returns whether a finite value became infinite.
static bool narrow(DType to, const float *in, uint8_t *out, int64_t count) {
  bool overflow = false;
  switch (to) {
  case DType::F16:
    for (int64_t i = 0; i < count; ++i) {
      storeAt(out, i, runtime::floatToHalf(in[i]));
      overflow |= std::fabs(in[i]) >= 65520.0f && std::isfinite(in[i]);
    }
    break;
  case DType::BF16:
    for (int64_t i = 0; i < count; ++i)
      storeAt(out, i, floatToBfloat(in[i]));
    break;
  default:
    std::memcpy(out, in, count * sizeof(float));
    break;
  }
  return overflow;
}

/// splitmix64: a good hash of a counter.
static uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

static void makeNoise(const PackNoise &noise, uint64_t index, float *out,
                      int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    auto bits = static_cast<int32_t>(mix(noise.seed + index + i) >> 32);
    out[i] = noise.center + noise.spread * (float(bits) * 0x1p-31f);
  }
}

static uint64_t hashName(llvm::StringRef name) {
  uint64_t hash = 0xcbf29ce484222325u; // FNV-1a
  for (unsigned char c : name)
    hash = (hash ^ c) * 0x100000001b3u;
  return hash;
}

PackNoise noiseFor(llvm::StringRef name, int64_t layer, bool isVector,
                   int64_t columns, uint64_t seed) {
  PackNoise noise;
  noise.seed = hashName(name) * 0x9e3779b97f4a7c15u +
               uint64_t(layer) * 0xd1342543de82ef95u + seed;
  if (!isVector) {
    noise.spread = 0.5f / std::sqrt(float(columns));
  } else if (name.ends_with("weight") || name.ends_with("variance")) {
    noise.center = 1;
    noise.spread = 0.125f;
  } else {
    noise.spread = 0.02f;
  }
  return noise;
}

std::pair<const uint8_t *, uint64_t> PackPiece::bytesOf(int64_t columns) const {
  if (!data || !tensor || rows < 1)
    return {nullptr, 0};
  if (tensor->encoding)
    return {tensor->data, tensor->bytes};
  int64_t first = firstValue, count = columns * tensorRows;
  if (!transposed) {
    first += begin * columns;
    count = (rowOf(rows - 1) + 1 - begin) * columns;
  }
  int64_t size = runtime::dtypeBytes(dtype);
  return {data + first * size, uint64_t(count * size)};
}

std::pair<int64_t, int64_t> PackedMatrix::wholeColumnOf(int64_t column) const {
  for (auto [begin, count] : keptColumns) {
    if (column < count)
      return {begin + column, count - column};
    column -= count;
  }
  return {firstColumn + column, wholeColumns - firstColumn - column};
}

void PackedMatrix::load(const PackPiece &piece, int64_t pieceRow,
                        int64_t column, int64_t count, uint8_t *out) const {
  if (zerosFrom >= 0) {
    int64_t size = runtime::dtypeBytes(dtype);
    int64_t own = std::max<int64_t>(zerosFrom - column, 0);
    own = piece.transposed ? (own ? count : 0) : std::min(own, count);
    std::memset(out + own * size, 0, (count - own) * size);
    count = own;
  }
  if (keptColumns.empty())
    return loadWhole(piece, pieceRow, firstColumn + column, count, out);
  // Down a column all is side by side; along a row only what is kept in one
  // piece.
  for (int64_t done = 0; done < count;) {
    auto [whole, neighbours] = wholeColumnOf(column + done);
    int64_t n = piece.transposed ? count : std::min(count - done, neighbours);
    loadWhole(piece, pieceRow, whole, n,
              out + done * runtime::dtypeBytes(dtype));
    done += n;
  }
}

/// Notes whether some of these numbers of the tensor are not finite.
static void note(const PackPiece &piece, DType dtype, const uint8_t *numbers,
                 int64_t count) {
  if (piece.notFinite && holdsNotFinite(dtype, numbers, count))
    piece.notFinite->store(true, std::memory_order_relaxed);
}

void PackedMatrix::loadWhole(const PackPiece &piece, int64_t pieceRow,
                             int64_t column, int64_t count,
                             uint8_t *out) const {
  constexpr int64_t chunk = 256;
  float buffer[chunk];
  int64_t size = runtime::dtypeBytes(piece.dtype);
  const uint8_t *in = nullptr;
  const TensorEncoding *encoding =
      piece.tensor ? piece.tensor->encoding : nullptr;
  int64_t start = 0;
  if (piece.data || encoding) {
    int64_t tensorRow = piece.rowOf(pieceRow);
    int64_t at = piece.transposed ? column * piece.tensorRows + tensorRow
                                  : tensorRow * wholeColumns + column;
    start = piece.firstValue + at;
    in = piece.data ? piece.data + start * size : nullptr;
    if (piece.dtype == dtype && !encoding && piece.scale == 1) {
      std::memcpy(out, in, count * size);
      note(piece, dtype, out, count);
      return;
    }
  }
  bool overflow = false;
  for (int64_t done = 0; done < count; done += chunk) {
    int64_t n = std::min(chunk, count - done);
    if (encoding)
      encoding->decode(*piece.tensor, start + done, n, buffer);
    else if (in)
      widen(piece.dtype, in + done * size, buffer, n);
    else
      makeNoise(noise,
                uint64_t(piece.whole + pieceRow) * wholeColumns + column + done,
                buffer, n);
    note(piece, DType::F32, reinterpret_cast<const uint8_t *>(buffer), n);
    if (piece.scale != 1 && (encoding || in))
      for (int64_t i = 0; i < n; ++i)
        buffer[i] *= piece.scale;
    overflow |=
        narrow(dtype, buffer, out + done * runtime::dtypeBytes(dtype), n);
  }
  if (overflow && piece.overflow)
    piece.overflow->store(true, std::memory_order_relaxed);
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// out[j * outStride + i] = in[i * inStride + j]
template <typename T>
static void transpose(const uint8_t *in, int64_t inStride, uint8_t *out,
                      int64_t outStride, int64_t m, int64_t n) {
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < m; ++i)
      storeAt(out, j * outStride + i, loadAt<T>(in, i * inStride + j));
}

void PackedMatrix::packRows(int64_t first, int64_t last, uint8_t *out,
                            int64_t rowStride, int64_t columnStride) const {
  int64_t start = 0; // the piece's first row in the weight
  for (const PackPiece &piece : pieces) {
    int64_t end = std::min(last, start + piece.rows);
    for (int64_t begin = std::max(first, start); begin < end;) {
      int64_t count =
          std::min(end - begin, piece.neighboursFrom(begin - start));
      packNeighbours(piece, begin - start, count,
                     out + (begin - first) * rowStride *
                               runtime::dtypeBytes(dtype),
                     rowStride, columnStride);
      begin += count;
    }
    start += piece.rows;
  }
}

void PackedMatrix::packNeighbours(const PackPiece &piece, int64_t pieceRow,
                                  int64_t count, uint8_t *out,
                                  int64_t rowStride,
                                  int64_t columnStride) const {
  int64_t size = runtime::dtypeBytes(dtype);
  // A tile and its transpose stay in the first-level cache. Blocks of few bits
  // are decoded whole: tiles of these are as wide as the widest.
  constexpr int64_t tileSize = 64 * 64, wide = 256;
  alignas(64) uint8_t tile[tileSize * sizeof(float)];

  bool blocks = piece.tensor && piece.tensor->encoding && !piece.transposed;
  int64_t tileColumns = blocks ? wide : 64, tileRows = tileSize / tileColumns;

  // Same direction on both sides: whole runs, or rows of a rank's columns.
  if (!piece.transposed && columnStride == 1) {
    bool whole = columns == wholeColumns && zerosFrom < 0;
    int64_t atOnce = rowStride == columns && whole ? count : 1;
    for (int64_t row = 0; row < count; row += atOnce)
      load(piece, pieceRow + row, 0, atOnce * columns,
           out + row * rowStride * size);
    return;
  }
  if (piece.transposed && rowStride == 1) {
    for (int64_t k = 0; k < columns; ++k)
      load(piece, pieceRow, k, count, out + k * columnStride * size);
    return;
  }

  for (int64_t k = 0; k < columns; k += tileColumns)
    for (int64_t r = 0; r < count; r += tileRows) {
      int64_t m = std::min(tileRows, count - r);
      int64_t n = std::min(tileColumns, columns - k);
      uint8_t *target = out + (r * rowStride + k * columnStride) * size;
      int64_t runs = piece.transposed ? n : m,
              length = piece.transposed ? m : n;
      for (int64_t i = 0; i < runs; ++i)
        load(piece, pieceRow + r + (piece.transposed ? 0 : i),
             k + (piece.transposed ? i : 0), length,
             tile + i * tileColumns * size);
      int64_t stride = piece.transposed ? rowStride : columnStride;
      if (size == 4)
        transpose<uint32_t>(tile, tileColumns, target, stride, runs, length);
      else
        transpose<uint16_t>(tile, tileColumns, target, stride, runs, length);
    }
}

//===----------------------------------------------------------------------===//
// Quantization
//===----------------------------------------------------------------------===//

QuantizationError PackedMatrix::quantizeGroup(const float *in, int64_t row,
                                              int64_t begin, uint8_t *numbers,
                                              uint8_t *out) const {
  GroupRounding rounding(form(), in);
  if (scales) {
    for (const PackPiece &piece : pieces)
      if (std::isinf(rounding.getScale().scale) && piece.overflow)
        piece.overflow->store(true, std::memory_order_relaxed);
    storeScale(rounding.getScale(), row, begin, out);
    return {};
  }
  QuantizationError error = rounding.round(in, numbers);
  storeNumbers(numbers, row, begin, out);
  return error;
}

void PackedMatrix::storeScale(GroupScale scale, int64_t row, int64_t begin,
                              uint8_t *out) const {
  int64_t lanes = std::max<int64_t>(panelWidth, 1);
  auto store = [&](int64_t place, float number) {
    switch (scaleType) {
    case ScaleType::Half:
      return storeAt(out, place, runtime::floatToHalf(number));
    case ScaleType::Single:
      return storeAt(out, place, number);
    case ScaleType::Power:
      out[place] = exponentOf(number);
      return;
    case ScaleType::Byte:
      assert(false && "scales in two levels are those of storeLevels()");
      return;
    }
  };
  int64_t first = begin / group * (zeros ? 2 : 1) * lanes + row;
  store(first, scale.scale);
  if (zeros)
    store(first + lanes, scale.zero);
}

void PackedMatrix::storeLevels(const GroupLevels &levels, int64_t row,
                               int64_t begin, uint8_t *out) const {
  int64_t lanes = std::max<int64_t>(panelWidth, 1), sides = zeros ? 2 : 1;
  int64_t groups = kScaleBlock / group;
  int64_t block = begin / kScaleBlock * form().scaleBytes(kScaleBlock);
  auto store = [&](int64_t place, int number) {
    out[(block + place) * lanes + row] = uint8_t(number);
  };
  int64_t own = begin % kScaleBlock / group * sides;
  store(own, levels.steps);
  if (zeros)
    store(own + 1, levels.leastSteps);
  // Lower and upper bytes are apart: what is side by side belongs to rows.
  float factors[] = {levels.factor, levels.leastFactor};
  for (int64_t side = 0; side < sides; ++side) {
    uint16_t half = runtime::floatToHalf(factors[side]);
    store((groups + side) * sides, half & 255);
    store((groups + side) * sides + 1, half >> 8);
  }
}

void PackedMatrix::storeNumbers(const uint8_t *numbers, int64_t row,
                                int64_t begin, uint8_t *out) const {
  int64_t lanes = std::max<int64_t>(panelWidth, 1);
  if (bits == 4) {
    for (int64_t i = 0; i < group; i += 8)
      for (int64_t side = 0; side < 4; ++side) {
        int64_t place = ((begin + i) / 8 * lanes + row) * 4 + side;
        out[place] = static_cast<uint8_t>(numbers[i + side] |
                                          numbers[i + side + 4] << 4);
      }
    return;
  }
  for (int64_t i = 0; i < group; ++i) {
    int64_t column = begin + i;
    int64_t place =
        panelWidth ? (column / 4 * lanes + row) * 4 + column % 4 : column;
    out[place] = numbers[i];
  }
}

bool PackedMatrix::keeps(const PackPiece &piece) const {
  int64_t block = group ? form().block() : 1;
  if (firstColumn % block)
    return false;
  for (auto [begin, count] : keptColumns)
    if (begin % block || count % block)
      return false; // groups are no longer what they were
  if (!group || !piece.tensor || !piece.tensor->encoding || piece.transposed ||
      piece.scale != 1)
    return false;
  const TensorEncoding &encoding = *piece.tensor->encoding;
  return form().holds(encoding.form()) &&
         (!order || *order == encoding.order());
}

void PackedMatrix::copyGroup(const PackPiece &piece, int64_t pieceRow,
                             int64_t row, int64_t begin, uint8_t *numbers,
                             uint8_t *out) const {
  int64_t first =
      piece.rowOf(pieceRow) * wholeColumns + wholeColumnOf(begin).first;
  StoredForm stored = piece.tensor->encoding->form();
  // A group may be a part of one in the file.
  int64_t skip = first % stored.group;
  std::vector<uint8_t> whole(static_cast<size_t>(stored.group));
  GroupScale scale = piece.tensor->encoding->readGroup(
      *piece.tensor, first - skip, whole.data());
  std::copy_n(whole.begin() + skip, group, numbers);
  note(piece, DType::F32, reinterpret_cast<const uint8_t *>(&scale.scale), 1);
  if (stored.zeros)
    note(piece, DType::F32, reinterpret_cast<const uint8_t *>(&scale.zero), 1);
  if (scales && form().hasByteScales()) {
    GroupLevels levels =
        piece.tensor->encoding->readLevels(*piece.tensor, first - skip);
    // A zero point in the middle is a minimum of as many steps, each so many
    // times larger.
    if (zeros && !stored.zeros) {
      levels.leastFactor = levels.factor * float(form().middle());
      levels.leastSteps = levels.steps;
    }
    if (std::fabs(levels.leastFactor) > 65504.0f && piece.overflow)
      piece.overflow->store(true, std::memory_order_relaxed);
    return storeLevels(levels, row, begin, out);
  }
  convertGroup(stored, form(), numbers, scale);
  if (scales)
    return storeScale(scale, row, begin, out);
  storeNumbers(numbers, row, begin, out);
}

void PackedMatrix::sortColumns(float *row) const {
  if (order->empty())
    return;
  std::vector<float> before(row, row + columns);
  for (int64_t place = 0; place < columns; ++place)
    row[place] = before[size_t((*order)[place])];
}

QuantizationError PackedMatrix::quantizeRows(int64_t first, int64_t last,
                                             uint8_t *out) const {
  QuantizationError error;
  std::vector<float> values;
  std::vector<uint8_t> numbers(static_cast<size_t>(group));
  int64_t start = 0; // the piece's first row in the weight
  for (const PackPiece &piece : pieces) {
    int64_t from = std::max(first, start);
    int64_t to = std::min(last, start + piece.rows);
    bool kept = keeps(piece);
    // A group with zeros in it is another one than the file has.
    int64_t keptColumns = !kept ? 0 : zerosFrom < 0 ? columns : zerosFrom;
    if (from < to && keptColumns < columns) {
      values.resize((to - from) * columns);
      packRows(from, to, reinterpret_cast<uint8_t *>(values.data()), columns,
               1);
      for (int64_t row = 0; order && row < to - from; ++row)
        sortColumns(&values[row * columns]);
    }
    for (int64_t row = from; row < to; ++row)
      for (int64_t begin = 0; begin < columns; begin += group)
        if (begin + group <= keptColumns)
          copyGroup(piece, row - start, row - first, begin, numbers.data(),
                    out);
        else
          error.add(quantizeGroup(&values[(row - from) * columns + begin],
                                  row - first, begin, numbers.data(), out));
    start += piece.rows;
  }
  return error;
}

void PackedMatrix::keepColumns(int64_t begin, int64_t ownCount) {
  zerosFrom = ownCount < columns ? ownCount : -1;
  if (keptColumns.empty()) {
    firstColumn += begin;
    return;
  }
  std::vector<std::pair<int64_t, int64_t>> left;
  int64_t place = 0;
  for (auto [from, count] : keptColumns) {
    int64_t first = std::max(place, begin);
    int64_t last = std::min(place + count, begin + columns);
    if (first < last)
      left.emplace_back(from + first - place, last - first);
    place += count;
  }
  keptColumns = std::move(left);
}

void PackedMatrix::keepRows(
    const std::vector<std::pair<int64_t, int64_t>> &ranges) {
  std::vector<PackPiece> kept;
  rows = 0;
  for (auto [begin, count] : ranges) {
    int64_t start = 0; // the piece's first row in the weight
    for (const PackPiece &piece : pieces) {
      int64_t from = std::max(begin, start);
      int64_t to = std::min(begin + count, start + piece.rows);
      // Rows that are not neighbours in the tensor become pieces of their own.
      for (int64_t row = from - start; row < to - start;) {
        PackPiece part = piece;
        part.rows = std::min(piece.neighboursFrom(row), to - start - row);
        part.begin = piece.rowOf(row);
        part.whole += row;
        part.run = part.stride = 0;
        rows += part.rows;
        row += part.rows;
        kept.push_back(part);
      }
      start += piece.rows;
    }
  }
  pieces = std::move(kept);
}

QuantizationError PackedMatrix::pack(int64_t first, int64_t last,
                                     uint8_t *out) const {
  QuantizationError error;
  if (!panelWidth && !group) {
    // Rows that are not there are zero, in panels as well.
    if (last > rows)
      std::memset(out, 0, (last - first) * bandBytes());
    packRows(first, last, out, columns, 1);
    for (int64_t row = first; row < last; ++row)
      scaleColumns(out + (row - first) * bandBytes());
    return error;
  }
  int64_t half = gated ? rows / 2 : rows, width = panelWidth ? panelWidth : 1;
  for (int64_t band = first; band < last; ++band, out += bandBytes()) {
    int64_t panel = gated ? band / 2 : band;
    int64_t halfStart = gated && band % 2 ? half : 0;
    int64_t begin = std::min(panel * width, half);
    int64_t end = std::min(begin + width, half);
    // Rows that are not there are zero, and so are their scales. Without zero
    // points a zero is the middle: as a byte 128 and in 4 bits 8.
    if (end - begin < width) {
      bool plain = group && !scales && !zeros && !form().areFloats();
      std::memset(out,
                  !plain      ? 0
                  : bits == 4 ? 0x88
                              : int(form().middle()),
                  bandBytes());
    }
    if (group) {
      error.add(quantizeRows(halfStart + begin, halfStart + end, out));
      continue;
    }
    packRows(halfStart + begin, halfStart + end, out, 1, width);
    scaleColumns(out);
    if (pairs)
      pairColumns(out);
  }
  return error;
}

std::vector<float> PackedMatrix::values() const {
  // As many as its type says, though sources may be said to have fewer.
  std::vector<float> result(numBands * columns);
  pack(0, numBands, reinterpret_cast<uint8_t *>(result.data()));
  return result;
}

void PackedMatrix::scaleColumns(uint8_t *band) const {
  if (gains.empty())
    return;
  int64_t width = std::max<int64_t>(panelWidth, 1);
  for (int64_t column = 0; column < columns; ++column)
    for (int64_t i = column * width; i < (column + 1) * width; ++i)
      storeAt(band, i, loadAt<float>(band, i) * gains[column]);
}

void PackedMatrix::pairColumns(uint8_t *panel) const {
  std::vector<uint16_t> both(2 * panelWidth);
  size_t bytes = both.size() * sizeof(uint16_t);
  for (int64_t column = 0; column < columns; column += 2, panel += bytes) {
    for (int64_t side = 0; side < 2; ++side)
      for (int64_t row = 0; row < panelWidth; ++row)
        both[2 * row + side] = loadAt<uint16_t>(panel, side * panelWidth + row);
    std::memcpy(panel, both.data(), bytes);
  }
}

} // namespace attune
