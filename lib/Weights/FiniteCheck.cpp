//===- FiniteCheck.cpp - Checkpoints with NaN in them -----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Weights/Checkpoint.h"

#include <algorithm>
#include <cstring>

namespace attune {

namespace {
/// The non-finite numbers in one tensor.
struct Findings {
  uint64_t count = 0, first = 0;
  bool firstIsNaN = false;
};
} // namespace

/// A number whose exponent bits are all ones is infinite or, with a fraction,
/// NaN. Works on the bits, as the compiler may assume there is no NaN.
template <typename Bits>
static void scan(const uint8_t *data, uint64_t count, uint64_t start,
                 Bits exponent, Bits fraction, Findings &found) {
  for (uint64_t i = 0; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, data + i * sizeof(Bits), sizeof(Bits));
    if ((bits & exponent) != exponent)
      continue;
    if (found.count++ == 0) {
      found.first = start + i;
      found.firstIsNaN = (bits & fraction) != 0;
    }
  }
}

static void scanDecoded(const CheckpointTensor &info, Findings &found) {
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
                   0x7f800000u, 0x007fffffu, found);
  }
}

bool checkFinite(const Checkpoint &checkpoint, DiagnosticEngine &diags) {
  bool finite = true;
  for (const auto &[name, info] : checkpoint.tensors()) {
    Findings found;
    if (info->encoding)
      scanDecoded(*info, found);
    else if (info->dtype == runtime::DType::F32)
      scan<uint32_t>(info->data, info->bytes / 4, 0, 0x7f800000u, 0x007fffffu,
                     found);
    else if (info->dtype == runtime::DType::F16)
      scan<uint16_t>(info->data, info->bytes / 2, 0, 0x7c00u, 0x03ffu, found);
    else if (info->dtype == runtime::DType::BF16)
      scan<uint16_t>(info->data, info->bytes / 2, 0, 0x7f80u, 0x007fu, found);
    checkpoint.release(info->data, info->bytes);
    if (found.count == 0)
      continue;
    finite = false;
    std::vector<int64_t> place(info->shape.size());
    uint64_t rest = found.first;
    for (size_t i = place.size(); i-- > 0;) {
      place[i] = static_cast<int64_t>(rest % info->shape[i]);
      rest /= info->shape[i];
    }
    diags.error({}, "tensor '" + name + "' in " + checkpoint.path() +
                        " holds " + (found.firstIsNaN ? "NaN" : "infinity") +
                        " at " + runtime::formatShape(place) + "; " +
                        std::to_string(found.count) + " of its " +
                        "values are not finite");
  }
  return finite;
}

} // namespace attune
