//===- DType.h - Element types of tensors in files --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_RUNTIME_DTYPE_H
#define ATTUNE_RUNTIME_DTYPE_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attune::runtime {

/// The element types of safetensors.
enum class DType : uint8_t {
  Bool,
  U8,
  I8,
  F8E4M3,
  F8E5M2,
  U16,
  I16,
  F16,
  BF16,
  U32,
  I32,
  F32,
  U64,
  I64,
  F64
};

/// Bytes of one element; a Bool takes one.
unsigned dtypeBytes(DType dtype);
/// The name in a safetensors header: "F32", "BF16", "BOOL", ...
const char *dtypeName(DType dtype);
/// The name in Attune's metadata: "f32", "bf16", "bool", ...
const char *dtypeLowerName(DType dtype);
/// Reads either spelling.
bool parseDType(std::string_view name, DType &dtype);
bool isFloat(DType dtype);
bool isInteger(DType dtype); ///< Bool counts as one

float halfToFloat(uint16_t bits);
float bfloatToFloat(uint16_t bits);
uint16_t floatToHalf(float value);   ///< to nearest, ties to even
uint16_t floatToBfloat(float value); ///< to nearest, ties to even

/// Copies `count` elements from `from` to `to`, converting. Integers convert to
/// integers (to Bool: nonzero), floats and integers to floats. Float to integer
/// and the 8-bit floats are refused: returns false. Neither side needs to be
/// aligned.
bool convertElements(DType fromType, const void *from, DType toType, void *to,
                     uint64_t count);

/// "[2, 17, 768]"
std::string formatShape(const std::vector<int64_t> &shape);
/// The product of the sizes times `elementBytes`; false if a size is negative
/// or the product does not fit.
bool byteSize(const std::vector<int64_t> &shape, uint64_t elementBytes,
              uint64_t &bytes);

} // namespace attune::runtime

#endif // ATTUNE_RUNTIME_DTYPE_H
