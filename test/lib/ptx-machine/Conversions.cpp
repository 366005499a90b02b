//===- Conversions.cpp - Small floats and cvt -----------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Machine.h"

#include <cmath>
#include <cstring>

namespace ptx {

//===----------------------------------------------------------------------===//
// Small floats
//===----------------------------------------------------------------------===//

float halfToFloat(uint16_t bits) {
  unsigned exponent = bits >> 10 & 31, fraction = bits & 1023;
  float value;
  if (exponent == 31)
    value = fraction ? NAN : INFINITY;
  else if (exponent == 0)
    value = std::ldexp(float(fraction), -24);
  else
    value = std::ldexp(float(fraction + 1024), int(exponent) - 25);
  return bits & 0x8000 ? -value : value;
}

uint16_t floatToHalf(float value) {
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value))
    return 0x7fff;
  double size = std::fabs(double(value));
  if (size >= 65520)
    return sign | 0x7c00;
  if (size < 0x1p-14) // subnormal: units of 2^-24, ties to even
    return sign | uint16_t(std::nearbyint(size * 0x1p24));
  int exponent;
  double fraction = std::frexp(size, &exponent);          // in [1/2, 1)
  auto units = uint32_t(std::nearbyint(fraction * 2048)); // 1024 to 2048
  uint32_t result = uint32_t(exponent + 13) * 1024 + units;
  return sign | uint16_t(result);
}

uint16_t floatToBFloat(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  if (std::isnan(value))
    return 0x7fff;
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float widen(Type type, uint16_t bits) {
  return type == Type::BF16 || type == Type::BF16x2 ? bfloatToFloat(bits)
                                                    : halfToFloat(bits);
}

double asDouble(const Thread &t, int32_t slot, Type type) {
  switch (type) {
  case Type::F32:
    return get<float>(t, slot);
  case Type::F64:
    return get<double>(t, slot);
  case Type::F16:
  case Type::BF16:
    return widen(type, get<uint16_t>(t, slot));
  default:
    return 0;
  }
}

namespace {
//===----------------------------------------------------------------------===//
// Arithmetic on small floats: in f32, rounded once
//===----------------------------------------------------------------------===//

uint16_t narrow(Type type, float value) {
  return type == Type::BF16 || type == Type::BF16x2 ? floatToBFloat(value)
                                                    : floatToHalf(value);
}
enum SmallOp : uint8_t {
  SmallAdd,
  SmallSub,
  SmallMul,
  SmallFma,
  SmallMin,
  SmallMax,
  SmallNeg,
  SmallAbs
};
void small(Thread &t, const Instruction &i) {
  uint64_t result = 0;
  for (unsigned shift = 0; shift < 8 * bytesOf(i.type); shift += 16) {
    double x[3] = {};
    for (size_t k = 0; k < i.s.size(); ++k)
      x[k] = widen(i.type, uint16_t(t.r[i.s[k]] >> shift));
    double value = 0;
    switch (SmallOp(i.flags)) {
    case SmallAdd:
      value = x[0] + x[1];
      break;
    case SmallSub:
      value = x[0] - x[1];
      break;
    case SmallMul:
      value = x[0] * x[1];
      break;
    case SmallFma:
      value = x[0] * x[1] + x[2];
      break;
    case SmallMin:
      value = std::fmin(x[0], x[1]);
      break;
    case SmallMax:
      value = std::fmax(x[0], x[1]);
      break;
    case SmallNeg:
      value = -x[0];
      break;
    case SmallAbs:
      value = std::fabs(x[0]);
      break;
    }
    result |= uint64_t(narrow(i.type, float(value))) << shift;
  }
  t.r[i.d[0]] = result;
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

/// How cvt rounds: to an integer, or to a narrower float.
enum Rounding : uint8_t { ToNearest, ToZero, Down, Up };

bool isFloat(Type type) {
  return type == Type::F16 || type == Type::BF16 || type == Type::F32 ||
         type == Type::F64;
}
double rounded(double value, Rounding how) {
  switch (how) {
  case ToNearest:
    return std::nearbyint(value);
  case ToZero:
    return std::trunc(value);
  case Down:
    return std::floor(value);
  case Up:
    return std::ceil(value);
  }
  return value;
}

/// `space` is not of use here; the source's type is kept in `target`.
void convert(Thread &t, const Instruction &i) {
  Type to = i.type, from = Type(i.target);
  auto how = Rounding(i.flags & 3);
  bool toIntegral = i.flags & 4;
  if (!isFloat(from)) {
    uint64_t bits = t.r[i.s[0]];
    unsigned width = 8 * bytesOf(from);
    uint64_t mask = width == 64 ? ~0ull : (1ull << width) - 1;
    bits &= mask;
    if (isSigned(from) && width < 64 && bits >> (width - 1))
      bits |= ~mask;
    if (isFloat(to)) {
      // One rounding: to f32 not by way of f64.
      if (to == Type::F32)
        return set<float>(t, i.d[0],
                          isSigned(from) ? float(int64_t(bits)) : float(bits));
      double value = isSigned(from) ? double(int64_t(bits)) : double(bits);
      if (to == Type::F64)
        return set<double>(t, i.d[0], value);
      return set<uint16_t>(t, i.d[0], narrow(to, float(value)));
    }
    unsigned kept = 8 * bytesOf(to);
    t.r[i.d[0]] = kept == 64 ? bits : bits & ((1ull << kept) - 1);
    return;
  }
  double value = asDouble(t, i.s[0], from);
  if (isFloat(to)) {
    if (toIntegral)
      value = rounded(value, how);
    if (to == Type::F64)
      return set<double>(t, i.d[0], value);
    if (to == Type::F32) {
      auto result = float(value);
      if (how == ToZero && std::fabs(double(result)) > std::fabs(value))
        result = std::nextafter(result, 0.0f);
      return set<float>(t, i.d[0], result);
    }
    return set<uint16_t>(t, i.d[0], narrow(to, float(value)));
  }
  // To an integer: out of range goes to the end of it, NaN to zero.
  value = rounded(value, how);
  unsigned width = 8 * bytesOf(to);
  uint64_t bits = 0;
  if (isSigned(to)) {
    double limit = std::ldexp(1.0, int(width) - 1);
    if (value >= limit)
      bits = (1ull << (width - 1)) - 1;
    else if (value < -limit)
      bits = 1ull << (width - 1);
    else if (value == value)
      bits = uint64_t(int64_t(value));
  } else {
    double limit = std::ldexp(1.0, int(width));
    if (value >= limit)
      bits = ~0ull;
    else if (value > 0)
      bits = uint64_t(value);
  }
  t.r[i.d[0]] = width == 64 ? bits : bits & ((1ull << width) - 1);
}

/// cvt.rn.{f16x2,bf16x2}.f32 d, high, low
void convertPair(Thread &t, const Instruction &i) {
  uint32_t upper = narrow(i.type, get<float>(t, i.s[0])),
           lower = narrow(i.type, get<float>(t, i.s[1]));
  set<uint32_t>(t, i.d[0], upper << 16 | lower);
}
/// cvt.rna.tf32.f32: ten bits of fraction, ties away from zero.
void convertTF32(Thread &t, const Instruction &i) {
  set<uint32_t>(t, i.d[0], (get<uint32_t>(t, i.s[0]) + 0x1000) & ~0x1fffu);
}
} // namespace

bool chooseSmall(Instruction &i, const std::string &op) {
  static const struct {
    const char *name;
    SmallOp op;
  } ops[] = {{"add", SmallAdd}, {"sub", SmallSub}, {"mul", SmallMul},
             {"fma", SmallFma}, {"min", SmallMin}, {"max", SmallMax},
             {"neg", SmallNeg}, {"abs", SmallAbs}};
  for (auto &known : ops)
    if (op == known.name) {
      i.flags = known.op;
      i.run = small;
      return true;
    }
  return false;
}

bool chooseConversion(Instruction &i, const std::vector<std::string> &parts) {
  Type from = i.type, to = typeNamed(parts[parts.size() - 2]);
  i.type = to;
  if (to == Type::F16x2 || to == Type::BF16x2) {
    i.run = convertPair;
    return from == Type::F32 && has(parts, "rn") && i.s.size() == 2;
  }
  if (to == Type::TF32) {
    i.run = convertTF32;
    return has(parts, "rna");
  }
  if (has(parts, "sat") || has(parts, "relu"))
    return false;
  i.target = int32_t(from);
  static const struct {
    const char *name;
    uint8_t flags;
  } roundings[] = {{"rni", 4 | ToNearest},
                   {"rzi", 4 | ToZero},
                   {"rmi", 4 | Down},
                   {"rpi", 4 | Up},
                   {"rz", ToZero}};
  for (auto &rounding : roundings)
    if (has(parts, rounding.name))
      i.flags = rounding.flags;
  i.run = convert;
  return to != Type::None && from != Type::None;
}

} // namespace ptx
