//===- WeightSection.h - The section that holds weights ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_RUNTIME_WEIGHTSECTION_H
#define ATTUNE_RUNTIME_WEIGHTSECTION_H

#include <cstdint>

namespace attune::runtime {

/// The section `.attune.weights` of an ELF file. Every product has one, made
/// with a single byte; once weights are appended, it covers them and their
/// trailer. So tools that write a file anew, as `strip` does, take them along
/// to wherever they put the section.
struct WeightSection {
  uint64_t header = 0; ///< where the file describes the section
  uint64_t offset = 0, size = 0;
};

/// A file of `attune split` has one rank's weights, and behind them this many
/// bytes, of which the first eight are the rank's number.
constexpr uint64_t rankLineBytes = 64;

/// Finds it; false if `file` is no ELF file of 64 bits in little-endian order,
/// is damaged, or has no such section.
bool findWeightSection(int file, uint64_t bytes, WeightSection &section);

/// Makes the section of `file` cover what begins at `offset`; false, with
/// errno, if that cannot be written. A file without a section stays as it is.
bool coverWithWeightSection(int file, uint64_t bytes, uint64_t offset,
                            uint64_t size);

} // namespace attune::runtime

#endif // ATTUNE_RUNTIME_WEIGHTSECTION_H
