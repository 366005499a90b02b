//===- GroupRounding.h - Values of a group as numbers -----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_WEIGHTS_GROUPROUNDING_H
#define ATTUNE_LIB_WEIGHTS_GROUPROUNDING_H

#include "attune/Weights/StoredForm.h"

#include <cstdint>

namespace attune {

/// The error of rounding to few bits: sums of squares.
struct QuantizationError {
  double lost = 0, total = 0;

  void add(const QuantizationError &other) {
    lost += other.lost;
    total += other.total;
  }
};

/// The scale of a group of values, and how it rounds them: as `attune.weight`
/// says. A scale is NaN if a value is not a number or infinite.
class GroupRounding {
public:
  /// Reads `form.group` values.
  GroupRounding(const StoredForm &form, const float *values);

  GroupScale getScale() const { return scale; }
  /// The numbers as they are stored: unsigned, or codes of floats.
  QuantizationError round(const float *values, uint8_t *numbers) const;

private:
  QuantizationError roundByteFloats(const float *values,
                                    uint8_t *numbers) const;
  QuantizationError roundFloats(const float *values, uint8_t *numbers) const;

  StoredForm form;
  GroupScale scale;
};

/// Numbers and scale of a group in one form as those of another, which holds
/// them. There are `to.group` numbers.
void convertGroup(const StoredForm &from, const StoredForm &to,
                  uint8_t *numbers, GroupScale &scale);

/// The exponent of a power of two as f8E8M0FNU has it.
uint8_t exponentOf(float power);

} // namespace attune

#endif // ATTUNE_LIB_WEIGHTS_GROUPROUNDING_H
