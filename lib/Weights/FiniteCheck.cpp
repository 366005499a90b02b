//===- FiniteCheck.cpp - Checkpoints with NaN in them -----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Weights/Checkpoint.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string_view>

namespace attune {

/// A number whose exponent bits are all ones is infinite or, with a fraction,
/// NaN. Works on the bits, as the compiler may assume there is no NaN.
template <typename Bits>
static void scan(const uint8_t *data, uint64_t count, uint64_t start,
                 Bits exponent, NotFinite &found) {
  constexpr Bits sign = Bits(Bits(1) << (8 * sizeof(Bits) - 1));
  for (uint64_t i = 0; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, data + i * sizeof(Bits), sizeof(Bits));
    if ((bits & exponent) != exponent)
      continue;
    if (found.count++ == 0) {
      found.first = start + i;
      found.firstIsNaN = (bits & Bits(~sign)) != exponent;
    }
    found.onlyBelow &= bits == Bits(sign | exponent);
  }
}

template <typename Bits>
static bool holdsAny(const uint8_t *data, int64_t count, Bits exponent) {
  // Without a branch, so that it becomes vector code.
  Bits any = 0;
  for (int64_t i = 0; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, data + i * int64_t(sizeof(Bits)), sizeof(Bits));
    any |= Bits((bits & exponent) == exponent);
  }
  return any != 0;
}

bool holdsNotFinite(runtime::DType dtype, const uint8_t *data, int64_t count) {
  switch (dtype) {
  case runtime::DType::F32:
    return holdsAny<uint32_t>(data, count, 0x7f800000u);
  case runtime::DType::F16:
    return holdsAny<uint16_t>(data, count, 0x7c00u);
  case runtime::DType::BF16:
    return holdsAny<uint16_t>(data, count, 0x7f80u);
  default:
    return false;
  }
}

static void scanDecoded(const CheckpointTensor &info, NotFinite &found) {
  constexpr int64_t step = 4096;
  float values[step];
  int64_t total = 1;
  for (int64_t size : info.shape)
    total *= size;
  for (int64_t first = 0; first < total; first += step) {
    int64_t count = std::min(step, total - first);
    info.encoding->decode(info, first, count, values);
    scan<uint32_t>(reinterpret_cast<const uint8_t *>(values),
                   static_cast<uint64_t>(count), static_cast<uint64_t>(first),
                   0x7f800000u, found);
  }
}

NotFinite findNotFinite(const CheckpointTensor &tensor) {
  NotFinite found;
  if (tensor.encoding)
    scanDecoded(tensor, found);
  else if (tensor.dtype == runtime::DType::F32)
    scan<uint32_t>(tensor.data, tensor.bytes / 4, 0, 0x7f800000u, found);
  else if (tensor.dtype == runtime::DType::F16)
    scan<uint16_t>(tensor.data, tensor.bytes / 2, 0, 0x7c00u, found);
  else if (tensor.dtype == runtime::DType::BF16)
    scan<uint16_t>(tensor.data, tensor.bytes / 2, 0, 0x7f80u, found);
  return found;
}

bool NotFinite::isMask(const CheckpointTensor &tensor) const {
  return onlyBelow && tensor.shape.size() == 1;
}

/// The finite number of f64 that the file has there, if it has one.
static std::optional<double> doubleAt(const CheckpointTensor &tensor,
                                      uint64_t place) {
  if (!tensor.encoding || std::string_view(tensor.encoding->name()) != "F64")
    return std::nullopt;
  constexpr uint64_t exponent = uint64_t(0x7ff) << 52;
  uint64_t bits;
  std::memcpy(&bits, tensor.data + 8 * place, 8);
  if ((bits & exponent) == exponent)
    return std::nullopt;
  double number;
  std::memcpy(&number, &bits, 8);
  return number;
}

std::string NotFinite::text(const CheckpointTensor &tensor) const {
  std::vector<int64_t> place(tensor.shape.size());
  uint64_t rest = first;
  for (size_t i = place.size(); i-- > 0;) {
    place[i] = static_cast<int64_t>(rest % tensor.shape[i]);
    rest /= tensor.shape[i];
  }
  std::string what = firstIsNaN ? "NaN" : "infinity", fits;
  if (std::optional<double> number =
          firstIsNaN ? std::nullopt : doubleAt(tensor, first)) {
    char digits[40];
    std::snprintf(digits, sizeof(digits), "%g", *number);
    what = digits;
    fits = ", which does not fit f32";
  }
  return "holds " + what + " at " + runtime::formatShape(place) + fits + "; " +
         std::to_string(count) + " of its values are not finite";
}

bool checkFinite(const Checkpoint &checkpoint, DiagnosticEngine &diags) {
  bool finite = true;
  for (const auto &[name, info] : checkpoint.tensors()) {
    NotFinite found = findNotFinite(*info);
    checkpoint.release(info->data, info->bytes);
    if (found.count == 0)
      continue;
    finite = false;
    diags.error({}, "tensor '" + name + "' in " + checkpoint.path() + " " +
                        found.text(*info));
  }
  return finite;
}

} // namespace attune
