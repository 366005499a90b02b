//===- DType.cpp - Element types of tensors in files ----------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/DType.h"

#include <cstring>

namespace attune::runtime {

namespace {
struct TypeInfo {
  const char *name, *lower;
  unsigned bytes;
};
constexpr TypeInfo types[] = {
    {"BOOL", "bool", 1},       {"U8", "u8", 1},           {"I8", "i8", 1},
    {"F8_E4M3", "f8_e4m3", 1}, {"F8_E5M2", "f8_e5m2", 1}, {"U16", "u16", 2},
    {"I16", "i16", 2},         {"F16", "f16", 2},         {"BF16", "bf16", 2},
    {"U32", "u32", 4},         {"I32", "i32", 4},         {"F32", "f32", 4},
    {"U64", "u64", 8},         {"I64", "i64", 8},         {"F64", "f64", 8},
};
} // namespace

unsigned dtypeBytes(DType dtype) { return types[size_t(dtype)].bytes; }
const char *dtypeName(DType dtype) { return types[size_t(dtype)].name; }
const char *dtypeLowerName(DType dtype) { return types[size_t(dtype)].lower; }

bool parseDType(std::string_view name, DType &dtype) {
  for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); ++i)
    if (name == types[i].name || name == types[i].lower) {
      dtype = static_cast<DType>(i);
      return true;
    }
  return false;
}

bool isFloat(DType dtype) {
  return dtype == DType::F16 || dtype == DType::BF16 || dtype == DType::F32 ||
         dtype == DType::F64 || dtype == DType::F8E4M3 ||
         dtype == DType::F8E5M2;
}

bool isInteger(DType dtype) { return !isFloat(dtype); }

static float bitsToFloat(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

static uint32_t floatToBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return bits;
}

float bfloatToFloat(uint16_t bits) { return bitsToFloat(uint32_t(bits) << 16); }

float halfToFloat(uint16_t bits) {
  uint32_t sign = uint32_t(bits & 0x8000) << 16;
  uint32_t exponent = bits >> 10 & 0x1F, mantissa = bits & 0x3FF;
  if (exponent == 31)
    return bitsToFloat(sign | 0x7F800000u | mantissa << 13);
  if (exponent == 0) {
    float tiny = static_cast<float>(mantissa) * (1.0f / 16777216.0f);
    return sign ? -tiny : tiny;
  }
  return bitsToFloat(sign | (exponent + 112) << 23 | mantissa << 13);
}

uint16_t floatToBfloat(float value) {
  uint32_t bits = floatToBits(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000u)
    return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

uint16_t floatToHalf(float value) {
  uint32_t bits = floatToBits(value);
  uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000u)
    return sign | 0x7E00;
  if (magnitude >= 0x477FF000u) // rounds to 65536 or beyond
    return sign | 0x7C00;
  if (magnitude < 0x38800000u) { // subnormal half: in steps of 2^-24
    float steps = bitsToFloat(magnitude) * 16777216.0f;
    uint32_t down = static_cast<uint32_t>(steps);
    float rest = steps - static_cast<float>(down);
    down += rest > 0.5f || (rest == 0.5f && (down & 1));
    return sign | static_cast<uint16_t>(down);
  }
  magnitude += 0xFFF + (magnitude >> 13 & 1);
  return sign | static_cast<uint16_t>((magnitude - 0x38000000u) >> 13);
}

template <typename T> static T loadAs(const uint8_t *p) {
  T value;
  std::memcpy(&value, p, sizeof(T));
  return value;
}

static int64_t loadInteger(DType type, const uint8_t *p) {
  switch (type) {
  case DType::Bool:
    return *p != 0;
  case DType::U8:
    return *p;
  case DType::I8:
    return static_cast<int8_t>(*p);
  case DType::U16:
    return loadAs<uint16_t>(p);
  case DType::I16:
    return loadAs<int16_t>(p);
  case DType::U32:
    return loadAs<uint32_t>(p);
  case DType::I32:
    return loadAs<int32_t>(p);
  default:
    return loadAs<int64_t>(p);
  }
}

static double loadFloat(DType type, const uint8_t *p) {
  switch (type) {
  case DType::F16:
    return halfToFloat(loadAs<uint16_t>(p));
  case DType::BF16:
    return bfloatToFloat(loadAs<uint16_t>(p));
  case DType::F32:
    return loadAs<float>(p);
  case DType::F64:
    return loadAs<double>(p);
  default:
    return static_cast<double>(loadInteger(type, p));
  }
}

template <typename T> static void store(uint8_t *p, T value) {
  std::memcpy(p, &value, sizeof(T));
}

static void storeInteger(DType type, uint8_t *p, int64_t value) {
  switch (dtypeBytes(type)) {
  case 1:
    *p = type == DType::Bool ? value != 0 : static_cast<uint8_t>(value);
    return;
  case 2:
    return store(p, static_cast<uint16_t>(value));
  case 4:
    return store(p, static_cast<uint32_t>(value));
  default:
    return store(p, value);
  }
}

static void storeFloat(DType type, uint8_t *p, double value) {
  switch (type) {
  case DType::F16:
    return store(p, floatToHalf(static_cast<float>(value)));
  case DType::BF16:
    return store(p, floatToBfloat(static_cast<float>(value)));
  case DType::F32:
    return store(p, static_cast<float>(value));
  default:
    return store(p, value);
  }
}

bool convertElements(DType fromType, const void *from, DType toType, void *to,
                     uint64_t count) {
  auto *source = static_cast<const uint8_t *>(from);
  auto *target = static_cast<uint8_t *>(to);
  auto eightBitFloat = [](DType type) {
    return type == DType::F8E4M3 || type == DType::F8E5M2;
  };
  uint64_t fromStep = dtypeBytes(fromType), toStep = dtypeBytes(toType);
  if (fromType == toType) {
    if (count)
      std::memcpy(to, from, count * fromStep);
    return true;
  }
  if (eightBitFloat(fromType) || eightBitFloat(toType))
    return false;
  if (isFloat(toType)) {
    for (uint64_t i = 0; i < count; ++i)
      storeFloat(toType, target + i * toStep,
                 loadFloat(fromType, source + i * fromStep));
    return true;
  }
  if (isFloat(fromType))
    return false;
  for (uint64_t i = 0; i < count; ++i)
    storeInteger(toType, target + i * toStep,
                 loadInteger(fromType, source + i * fromStep));
  return true;
}

std::string formatShape(const std::vector<int64_t> &shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    out += (i ? ", " : "") + std::to_string(shape[i]);
  return out + "]";
}

bool byteSize(const std::vector<int64_t> &shape, uint64_t elementBytes,
              uint64_t &bytes) {
  uint64_t total = elementBytes;
  bool empty = false;
  for (int64_t size : shape) {
    if (size < 0)
      return false;
    if (size == 0)
      empty = true;
    else if (__builtin_mul_overflow(total, static_cast<uint64_t>(size), &total))
      return false;
  }
  if (total > uint64_t(INT64_MAX))
    return false;
  bytes = empty ? 0 : total;
  return true;
}

} // namespace attune::runtime
