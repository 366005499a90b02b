//===- StoredForm.h - How numbers of few bits are kept ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_WEIGHTS_STOREDFORM_H
#define ATTUNE_WEIGHTS_STOREDFORM_H

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>

namespace attune {

/// The type of scales. Each has the values of the types before it, except that
/// powers of two make floats (e2m1) of 4 bits, and that bytes are in two
/// levels: integers times an f16, which `kScaleBlock` neighbours share.
enum class ScaleType { Half, Single, Power, Byte };

/// Columns whose scales, if these are bytes, have a factor.
constexpr int64_t kScaleBlock = 256;

/// Numbers of a row that share a scale: value = scale * (number - zero), in
/// which zero is the middle of the range unless each group has its own. With
/// scales of bytes a group has a minimum instead: value = scale * number -
/// minimum, each of both an integer times an f16.
struct StoredForm {
  int64_t bits = 0;   ///< 8 or 4; 0: the values are of no such form
  int64_t group = 0;  ///< neighbours that share a scale
  bool zeros = false; ///< groups have zero points
  ScaleType scales = ScaleType::Half; ///< Single of 8 bits
  bool byteFloats = false;            ///< of 8 bits: floats, e4m3
  /// Groups are of columns that stand apart; which, the checkpoint says.
  bool ordered = false;

  /// The usual form: 8 bits with scales of f32, 4 with scales of f16.
  static StoredForm plain(int64_t bits, int64_t group) {
    return {bits, group, false,
            bits == 8 ? ScaleType::Single : ScaleType::Half};
  }
  static StoredForm withZeros(int64_t bits, int64_t group, ScaleType scales) {
    return {bits, group, true, scales};
  }
  /// Floats of 4 bits, e2m1, in groups of 32.
  static StoredForm floats() { return {4, 32, false, ScaleType::Power}; }

  /// Floats of 8 bits, e4m3.
  static StoredForm floatsOfBytes(int64_t group) {
    return {8, group, false, ScaleType::Single, /*byteFloats=*/true};
  }

  bool areFloats() const { return scales == ScaleType::Power || byteFloats; }
  /// The zero point of numbers that have none of their own. With scales in two
  /// levels bytes hold numbers of 6 bits: sums of two products of pairs fit in
  /// 16 bits.
  int64_t middle() const { return bits == 4 ? 8 : hasByteScales() ? 32 : 128; }
  /// Bytes of the scales of a row, zero points or minima included.
  int64_t scaleBytes(int64_t columns) const {
    int64_t sides = zeros ? 2 : 1;
    if (scales == ScaleType::Byte)
      return columns / kScaleBlock * (kScaleBlock / group + 2) * sides;
    int64_t each = scales == ScaleType::Half     ? 2
                   : scales == ScaleType::Single ? 4
                                                 : 1;
    return columns / group * sides * each;
  }
  bool hasByteScales() const { return scales == ScaleType::Byte; }
  /// Neighbours that are kept together: their scales have something in common.
  int64_t block() const { return hasByteScales() ? kScaleBlock : group; }
  /// The form with scales in one level that has the same values.
  StoredForm flat() const {
    StoredForm result = *this;
    if (hasByteScales())
      result.scales = ScaleType::Single;
    return result;
  }

  bool operator==(const StoredForm &other) const {
    return bits == other.bits && group == other.group && zeros == other.zeros &&
           scales == other.scales && byteFloats == other.byteFloats &&
           ordered == other.ordered;
  }

  /// Whether numbers of `other` are numbers of this one, too.
  bool holds(const StoredForm &other) const {
    if (other.ordered && !ordered)
      return false;
    if (hasByteScales() != other.hasByteScales())
      return !hasByteScales() && holds(other.flat());
    if (byteFloats && other.byteFloats)
      return other.group % group == 0;
    if (areFloats() || other.byteFloats || bits == 0 || other.bits == 0)
      return *this == other;
    // Twice a float is an integer of 8 bits, half of its scale is one of f32.
    if (other.areFloats() && (bits != 8 || scales != ScaleType::Single))
      return false;
    return bits >= other.bits && other.group % group == 0 &&
           (zeros || !other.zeros) &&
           (other.areFloats() || scales >= other.scales);
  }

  /// The smallest form that holds both; none if there is none.
  StoredForm join(const StoredForm &other) const {
    if (*this == other)
      return *this;
    if (bits == 0 || other.bits == 0)
      return {};
    if (hasByteScales() != other.hasByteScales())
      return flat().join(other.flat());
    if (byteFloats || other.byteFloats)
      return byteFloats && other.byteFloats
                 ? floatsOfBytes(std::gcd(group, other.group))
                 : StoredForm{};
    StoredForm result{std::max(bits, other.bits), std::gcd(group, other.group),
                      zeros || other.zeros, ScaleType::Single};
    if (areFloats() || other.areFloats())
      result.bits = 8;
    if (scales == other.scales && !areFloats())
      result.scales = scales;
    result.ordered = ordered || other.ordered;
    return result;
  }

  /// As `--quantize` calls it: "int4:g32", "int4:g32:asym:f32", "fp8:g128",
  /// "mxfp4". Forms that only a checkpoint has end in ":i8" (scales of bytes)
  /// and ":ordered".
  std::string text() const {
    if (byteFloats)
      return "fp8:g" + std::to_string(group);
    if (areFloats())
      return "mxfp4";
    std::string name =
        "int" + std::to_string(bits) + ":g" + std::to_string(group);
    if (zeros)
      name += ":asym";
    if (bits == 4 && scales == ScaleType::Single)
      name += ":f32";
    if (hasByteScales())
      name += ":i8";
    return ordered ? name + ":ordered" : name;
  }
  /// "int8", "int4", "fp8" or "mxfp4".
  std::string kind() const {
    std::string name = text();
    return name.substr(0, name.find(':'));
  }
};

/// The form of a tensor of a checkpoint.
struct StoredTensor {
  StoredForm form;
  uint64_t order = 0; ///< a hash of that of its columns; 0: as they stand
};

/// The scale of a group, and its zero point if it has one of its own.
struct GroupScale {
  float scale = 0, zero = 0;
};

/// What a group's scale is in two levels, and its minimum if it has one:
/// factor * steps, and leastFactor * leastSteps. Factors are of f16.
struct GroupLevels {
  float factor = 0, leastFactor = 0;
  int8_t steps = 0, leastSteps = 0;
};

} // namespace attune

#endif // ATTUNE_WEIGHTS_STOREDFORM_H
