//===- FiniteCheck.cpp - Checkpoints with NaN in them -----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Import/Checkpoint.h"

#include <cstring>

namespace attune {

using runtime::TensorInfo;

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
static Findings scan(const TensorInfo &info, Bits exponent, Bits fraction) {
  Findings found;
  uint64_t count = info.bytes / sizeof(Bits);
  for (uint64_t i = 0; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, info.data + i * sizeof(Bits), sizeof(Bits));
    if ((bits & exponent) != exponent)
      continue;
    if (found.count++ == 0) {
      found.first = i;
      found.firstIsNaN = (bits & fraction) != 0;
    }
  }
  return found;
}

bool checkFinite(const Checkpoint &checkpoint, DiagnosticEngine &diags) {
  bool finite = true;
  for (const auto &[name, info] : checkpoint.tensors()) {
    Findings found;
    if (info->dtype == runtime::DType::F32)
      found = scan<uint32_t>(*info, 0x7f800000u, 0x007fffffu);
    else if (info->dtype == runtime::DType::F16)
      found = scan<uint16_t>(*info, 0x7c00u, 0x03ffu);
    else if (info->dtype == runtime::DType::BF16)
      found = scan<uint16_t>(*info, 0x7f80u, 0x007fu);
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
