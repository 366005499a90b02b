//===- Instructions.cpp - What one thread does ----------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Machine.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace ptx {

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

namespace {
using Run = void (*)(Thread &, const Instruction &);

/// Calls `make` with a value of the C++ type of a PTX type; integers only, or
/// floats only, or both.
template <template <typename> class F> Run integers(Type type) {
  switch (type) {
  case Type::U16:
  case Type::B16:
    return F<uint16_t>::run;
  case Type::S16:
    return F<int16_t>::run;
  case Type::U32:
  case Type::B32:
    return F<uint32_t>::run;
  case Type::S32:
    return F<int32_t>::run;
  case Type::U64:
  case Type::B64:
    return F<uint64_t>::run;
  case Type::S64:
    return F<int64_t>::run;
  case Type::U8:
  case Type::B8:
  case Type::Pred:
    return F<uint8_t>::run;
  default:
    return nullptr;
  }
}
template <template <typename> class F> Run floats(Type type) {
  if (type == Type::F32)
    return F<float>::run;
  if (type == Type::F64)
    return F<double>::run;
  return nullptr;
}
template <template <typename> class F> Run numbers(Type type) {
  Run run = floats<F>(type);
  return run ? run : integers<F>(type);
}

#define ATTUNE_BINARY(NAME, EXPRESSION)                                        \
  template <typename T> struct NAME {                                          \
    static void run(Thread &t, const Instruction &i) {                         \
      T a = get<T>(t, i.s[0]), b = get<T>(t, i.s[1]);                          \
      set<T>(t, i.d[0], static_cast<T>(EXPRESSION));                           \
    }                                                                          \
  };
#define ATTUNE_UNARY(NAME, EXPRESSION)                                         \
  template <typename T> struct NAME {                                          \
    static void run(Thread &t, const Instruction &i) {                         \
      T a = get<T>(t, i.s[0]);                                                 \
      set<T>(t, i.d[0], static_cast<T>(EXPRESSION));                           \
    }                                                                          \
  };

template <typename T> T smaller(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return std::fmin(a, b);
  else
    return a < b ? a : b;
}
template <typename T> T larger(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return std::fmax(a, b);
  else
    return a < b ? b : a;
}
template <typename T> T magnitude(T a) {
  if constexpr (std::is_floating_point_v<T>)
    return std::fabs(a);
  else if constexpr (std::is_signed_v<T>)
    return a < 0 ? T(-a) : a;
  else
    return a;
}
template <typename T> T high(T a, T b) {
  if constexpr (std::is_signed_v<T>)
    return T(static_cast<__int128>(a) * b >> (sizeof(T) * 8));
  else
    return T(static_cast<unsigned __int128>(a) * b >> (sizeof(T) * 8));
}
template <typename T> T fused(T a, T b, T c) {
  if constexpr (std::is_floating_point_v<T>)
    return std::fma(a, b, c);
  else
    return T(a * b + c);
}
/// A division by zero gives something on a GPU, and a signal here.
template <typename T> T divide(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return a / b;
  else if (b == 0)
    return T(-1);
  else if constexpr (std::is_signed_v<T>)
    return b == T(-1) ? T(-a) : T(a / b);
  else
    return a / b;
}
template <typename T> T remainder(T a, T b) {
  return b == 0 ? a : T(a - divide(a, b) * b);
}

ATTUNE_BINARY(Add, a + b)
ATTUNE_BINARY(Sub, a - b)
ATTUNE_BINARY(MulLow, a *b)
ATTUNE_BINARY(MulHigh, high(a, b))
ATTUNE_BINARY(Div, divide(a, b))
ATTUNE_BINARY(Rem, remainder(a, b))
ATTUNE_BINARY(Min, smaller(a, b))
ATTUNE_BINARY(Max, larger(a, b))
ATTUNE_BINARY(And, a &b)
ATTUNE_BINARY(Or, a | b)
ATTUNE_BINARY(Xor, a ^ b)
ATTUNE_BINARY(CopySign, std::copysign(b, a))
ATTUNE_UNARY(Neg, -a)
ATTUNE_UNARY(Abs, magnitude(a))
ATTUNE_UNARY(Not, ~a)
ATTUNE_UNARY(Sqrt, std::sqrt(a))
ATTUNE_UNARY(Rsqrt, 1 / std::sqrt(a))
ATTUNE_UNARY(Rcp, 1 / a)
ATTUNE_UNARY(Ex2, std::exp2(a))
ATTUNE_UNARY(Lg2, std::log2(a))
ATTUNE_UNARY(Sin, std::sin(a))
ATTUNE_UNARY(Cos, std::cos(a))
ATTUNE_UNARY(Tanh, std::tanh(a))
ATTUNE_UNARY(Move, a)

/// NaN wins, as in min.NaN.f32.
ATTUNE_BINARY(MinNaN, std::isnan(a) || std::isnan(b) ? NAN : std::fmin(a, b))
ATTUNE_BINARY(MaxNaN, std::isnan(a) || std::isnan(b) ? NAN : std::fmax(a, b))

template <typename T> struct Fma {
  static void run(Thread &t, const Instruction &i) {
    set<T>(t, i.d[0],
           fused(get<T>(t, i.s[0]), get<T>(t, i.s[1]), get<T>(t, i.s[2])));
  }
};
template <typename T> struct MadHigh {
  static void run(Thread &t, const Instruction &i) {
    set<T>(t, i.d[0],
           T(high(get<T>(t, i.s[0]), get<T>(t, i.s[1])) + get<T>(t, i.s[2])));
  }
};
/// mul.wide and mad.wide: the result has twice the bits.
template <typename T> struct Wide {
  static void run(Thread &t, const Instruction &i) {
    using Two = std::conditional_t<
        sizeof(T) == 2,
        std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>,
        std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;
    Two result = Two(get<T>(t, i.s[0])) * Two(get<T>(t, i.s[1]));
    if (i.s.size() > 2)
      result += get<Two>(t, i.s[2]);
    set<Two>(t, i.d[0], result);
  }
};
/// Shifts by more than the width give zero, or copies of the sign.
template <typename T> struct ShiftLeft {
  static void run(Thread &t, const Instruction &i) {
    auto by = get<uint32_t>(t, i.s[1]);
    set<T>(t, i.d[0], by >= sizeof(T) * 8 ? T(0) : T(get<T>(t, i.s[0]) << by));
  }
};
template <typename T> struct ShiftRight {
  static void run(Thread &t, const Instruction &i) {
    auto by = std::min<uint32_t>(get<uint32_t>(t, i.s[1]), sizeof(T) * 8);
    T a = get<T>(t, i.s[0]);
    T all = std::is_signed_v<T> && a < 0 ? T(-1) : T(0);
    set<T>(t, i.d[0], by == sizeof(T) * 8 ? all : T(a >> by));
  }
};
/// The field [s1, s1 + s2) of the bits, with its sign if T has one.
template <typename T> struct Extract {
  static void run(Thread &t, const Instruction &i) {
    constexpr unsigned bits = sizeof(T) * 8;
    unsigned from = get<uint32_t>(t, i.s[1]) & 255,
             count = get<uint32_t>(t, i.s[2]) & 255;
    T a = get<T>(t, i.s[0]);
    T result = 0;
    if (count) {
      unsigned end = std::min(from + count, bits);
      T low = from >= bits ? (a < 0 ? T(-1) : T(0)) : T(a >> from);
      unsigned kept = from >= bits ? 0 : end - from;
      unsigned drop = bits - std::max(kept, 1u);
      result = kept ? T(T(low << drop) >> drop) : low;
    }
    set<T>(t, i.d[0], result);
  }
};
template <typename T> struct Select {
  static void run(Thread &t, const Instruction &i) {
    set<T>(t, i.d[0], get<T>(t, t.r[i.s[2]] & 1 ? i.s[0] : i.s[1]));
  }
};
template <typename T> struct PopCount {
  static void run(Thread &t, const Instruction &i) {
    set<uint32_t>(t, i.d[0], __builtin_popcountll(uint64_t(get<T>(t, i.s[0]))));
  }
};
template <typename T> struct LeadingZeros {
  static void run(Thread &t, const Instruction &i) {
    uint64_t a = get<T>(t, i.s[0]);
    unsigned extra = 64 - sizeof(T) * 8;
    set<uint32_t>(t, i.d[0], a ? __builtin_clzll(a) - extra : sizeof(T) * 8);
  }
};

/// The comparisons of setp; `flags` is the Relation.
enum Relation : uint8_t {
  EQ,
  NE,
  LT,
  LE,
  GT,
  GE,
  EQU,
  NEU,
  LTU,
  LEU,
  GTU,
  GEU,
  NUM,
  NAN_
};
template <typename T> bool holds(Relation relation, T a, T b) {
  bool nan = false;
  if constexpr (std::is_floating_point_v<T>)
    nan = std::isnan(a) || std::isnan(b);
  switch (relation) {
  case EQ:
    return a == b;
  case NE:
    return !nan && a != b;
  case LT:
    return a < b;
  case LE:
    return a <= b;
  case GT:
    return a > b;
  case GE:
    return a >= b;
  case EQU:
    return nan || a == b;
  case NEU:
    return nan || a != b;
  case LTU:
    return nan || a < b;
  case LEU:
    return nan || a <= b;
  case GTU:
    return nan || a > b;
  case GEU:
    return nan || a >= b;
  case NUM:
    return !nan;
  case NAN_:
    return nan;
  }
  return false;
}
void setPredicates(Thread &t, const Instruction &i, bool result) {
  t.r[i.d[0]] = result;
  if (i.d.size() > 1)
    t.r[i.d[1]] = !result;
}
template <typename T> struct Compare {
  static void run(Thread &t, const Instruction &i) {
    T a = get<T>(t, i.s[0]), b = get<T>(t, i.s[1]);
    setPredicates(t, i, holds(Relation(i.flags), a, b));
  }
};
void compareSmall(Thread &t, const Instruction &i) {
  double a = asDouble(t, i.s[0], i.type), b = asDouble(t, i.s[1], i.type);
  setPredicates(t, i, holds(Relation(i.flags), a, b));
}

void notPredicate(Thread &t, const Instruction &i) {
  t.r[i.d[0]] = !(t.r[i.s[0]] & 1);
}

/// mov between a register and the parts of one: {lo, hi}.
void pack(Thread &t, const Instruction &i) {
  unsigned bits = 8 * bytesOf(i.type) / i.s.size();
  uint64_t value = 0, mask = bits == 64 ? ~0ull : (1ull << bits) - 1;
  for (size_t k = 0; k < i.s.size(); ++k)
    value |= (t.r[i.s[k]] & mask) << (k * bits);
  t.r[i.d[0]] = value;
}
void unpack(Thread &t, const Instruction &i) {
  unsigned bits = 8 * bytesOf(i.type) / i.d.size();
  uint64_t value = t.r[i.s[0]], mask = (1ull << bits) - 1;
  for (size_t k = 0; k < i.d.size(); ++k)
    t.r[i.d[k]] = value >> (k * bits) & mask;
}

/// shf.{l,r}.{wrap,clamp}.b32: the pair {s1, s0} shifted by s2.
void funnel(Thread &t, const Instruction &i) {
  uint64_t pair =
      uint64_t(get<uint32_t>(t, i.s[1])) << 32 | get<uint32_t>(t, i.s[0]);
  bool left = i.flags & 1, wrap = i.flags & 2;
  uint32_t by = get<uint32_t>(t, i.s[2]);
  by = wrap ? by & 31 : std::min(by, 32u);
  set<uint32_t>(t, i.d[0], uint32_t(left ? pair << by >> 32 : pair >> by));
}

void permute(Thread &t, const Instruction &i) {
  uint64_t bytes =
      uint64_t(get<uint32_t>(t, i.s[1])) << 32 | get<uint32_t>(t, i.s[0]);
  uint32_t select = get<uint32_t>(t, i.s[2]), result = 0;
  for (int k = 0; k < 4; ++k) {
    unsigned nibble = select >> (4 * k) & 15;
    uint32_t byte = bytes >> (8 * (nibble & 7)) & 255;
    if (nibble & 8)
      byte = byte & 128 ? 255 : 0;
    result |= byte << (8 * k);
  }
  set<uint32_t>(t, i.d[0], result);
}

/// What one thread does to pairs of f32 (PTX manual, 9.7.3): as the two would
/// be alone.
template <float (*of)(float, float, float)>
void pairwise(Thread &t, const Instruction &i) {
  float values[3][2] = {};
  for (size_t k = 0; k < i.s.size(); ++k)
    std::memcpy(values[k], &t.r[i.s[k]], 8);
  float result[2];
  for (int half = 0; half < 2; ++half)
    result[half] = of(values[0][half], values[1][half], values[2][half]);
  std::memcpy(&t.r[i.d[0]], result, 8);
}
float addOne(float a, float b, float) { return a + b; }
float subtractOne(float a, float b, float) { return a - b; }
float multiplyOne(float a, float b, float) { return a * b; }
float fuseOne(float a, float b, float c) { return std::fma(a, b, c); }

/// Mixed precision (PTX manual, 9.7.5): all operands but the last are small.
template <float (*widen)(uint16_t), float (*of)(float, float, float)>
void mixed(Thread &t, const Instruction &i) {
  float values[3] = {};
  for (size_t k = 0; k + 1 < i.s.size(); ++k)
    values[k] = widen(get<uint16_t>(t, i.s[k]));
  values[i.s.size() - 1] = get<float>(t, i.s.back());
  set<float>(t, i.d[0], of(values[0], values[1], values[2]));
}

//===----------------------------------------------------------------------===//
// Memory and control
//===----------------------------------------------------------------------===//

void load(Thread &t, const Instruction &i) {
  unsigned bytes = bytesOf(i.type);
  uint64_t address = t.r[i.s[0]] + uint64_t(i.offset);
  const uint8_t *from =
      i.space == Space::Param
          ? t.block->params + address
          : reach(t, i, address, bytes * unsigned(i.d.size()));
  if (!from)
    return;
  if (i.space != Space::Param)
    read(t, i, from, bytes * unsigned(i.d.size()));
  for (int32_t d : i.d) {
    uint64_t value = 0;
    std::memcpy(&value, from, bytes);
    if (isSigned(i.type) && bytes < 4 && value >> (8 * bytes - 1))
      value |= ~0ull << (8 * bytes);
    t.r[d] = value;
    from += bytes;
  }
}
void store(Thread &t, const Instruction &i) {
  unsigned bytes = bytesOf(i.type);
  uint64_t address = t.r[i.s[0]] + uint64_t(i.offset);
  uint8_t *to = reach(t, i, address, bytes * unsigned(i.s.size() - 1));
  if (!to)
    return;
  // What was there already nobody misses.
  for (size_t k = 1; k < i.s.size(); ++k, to += bytes)
    if (std::memcmp(to, &t.r[i.s[k]], bytes) != 0) {
      write(t, to, bytes, Written::Store);
      std::memcpy(to, &t.r[i.s[k]], bytes);
    }
}

void toShared(Thread &t, const Instruction &i) {
  t.r[i.d[0]] =
      t.r[i.s[0]] - reinterpret_cast<uint64_t>(t.block->shared.data());
}
void fromShared(Thread &t, const Instruction &i) {
  t.r[i.d[0]] =
      t.r[i.s[0]] + reinterpret_cast<uint64_t>(t.block->shared.data());
}

void branch(Thread &t, const Instruction &i) { t.pc = uint32_t(i.target); }
void branchIndexed(Thread &t, const Instruction &i) {
  auto index = get<uint32_t>(t, i.s[0]);
  if (index >= i.table.size())
    return t.fail("an indexed branch beyond its table");
  t.pc = uint32_t(i.table[index]);
}
void leave(Thread &t, const Instruction &) { t.state = State::Done; }
void trap(Thread &t, const Instruction &) { t.fail("trap"); }

//===----------------------------------------------------------------------===//
// Choice
//===----------------------------------------------------------------------===//

bool chooseCompare(Instruction &i, const std::string &name) {
  static const struct {
    const char *name;
    Relation relation;
  } relations[] = {{"eq", EQ},   {"ne", NE},   {"lt", LT},   {"le", LE},
                   {"gt", GT},   {"ge", GE},   {"lo", LT},   {"ls", LE},
                   {"hi", GT},   {"hs", GE},   {"equ", EQU}, {"neu", NEU},
                   {"ltu", LTU}, {"leu", LEU}, {"gtu", GTU}, {"geu", GEU},
                   {"num", NUM}, {"nan", NAN_}};
  for (auto &known : relations)
    if (name == known.name) {
      i.flags = known.relation;
      i.run = i.type == Type::F16 || i.type == Type::BF16
                  ? compareSmall
                  : numbers<Compare>(i.type);
      return i.run && i.s.size() == 2;
    }
  return false;
}

/// Whether it is rounded to nearest, if it says so, and `types` is all that
/// follows: other rounding, flushing or saturating nobody asks for.
bool isNearest(const std::vector<std::string> &parts, size_t types) {
  size_t more = parts.size() - 1 - types;
  return more == 0 || (more == 1 && parts[1] == "rn");
}

/// {add,sub,mul,fma}{.rn}.f32x2
bool choosePairs(Instruction &i, const std::vector<std::string> &parts) {
  if (!isNearest(parts, 1))
    return false;
  static const struct {
    const char *name;
    Run run;
    size_t operands;
  } pairs[] = {{"add", pairwise<addOne>, 2},
               {"sub", pairwise<subtractOne>, 2},
               {"mul", pairwise<multiplyOne>, 2},
               {"fma", pairwise<fuseOne>, 3}};
  for (auto &known : pairs)
    if (parts[0] == known.name) {
      i.run = known.run;
      return i.s.size() == known.operands;
    }
  return false;
}

/// {add,sub,fma}{.rn}.f32.{f16,bf16}
bool chooseMixed(Instruction &i, const std::vector<std::string> &parts) {
  if (!isNearest(parts, 2))
    return false;
  bool half = i.type == Type::F16;
  size_t operands = parts[0] == "fma" ? 3 : 2;
  if (parts[0] == "add")
    i.run = half ? mixed<halfToFloat, addOne> : mixed<bfloatToFloat, addOne>;
  else if (parts[0] == "sub")
    i.run = half ? mixed<halfToFloat, subtractOne>
                 : mixed<bfloatToFloat, subtractOne>;
  else if (parts[0] == "fma")
    i.run = half ? mixed<halfToFloat, fuseOne> : mixed<bfloatToFloat, fuseOne>;
  return i.run && i.s.size() == operands;
}

bool chooseMemory(Instruction &i, const std::vector<std::string> &parts) {
  static const struct {
    const char *name;
    Space space;
  } spaces[] = {{"global", Space::Global},
                {"local", Space::Local},
                {"shared", Space::Shared},
                {"param", Space::Param},
                {"const", Space::Global}};
  for (auto &known : spaces)
    if (has(parts, known.name))
      i.space = known.space;
  i.run = parts[0] == "ld" ? load : store;
  return i.type != Type::None;
}

bool chooseCast(Instruction &i, const std::vector<std::string> &parts) {
  bool to = has(parts, "to");
  if (has(parts, "shared") || has(parts, "shared::cluster"))
    i.run = to ? toShared : fromShared;
  else
    i.run = Move<uint64_t>::run;
  return true;
}
} // namespace

Type typeNamed(const std::string &name) {
  static const struct {
    const char *name;
    Type type;
  } types[] = {
      {"pred", Type::Pred},     {"b8", Type::B8},       {"b16", Type::B16},
      {"b32", Type::B32},       {"b64", Type::B64},     {"u8", Type::U8},
      {"u16", Type::U16},       {"u32", Type::U32},     {"u64", Type::U64},
      {"s8", Type::S8},         {"s16", Type::S16},     {"s32", Type::S32},
      {"s64", Type::S64},       {"f16", Type::F16},     {"bf16", Type::BF16},
      {"f32", Type::F32},       {"f64", Type::F64},     {"f16x2", Type::F16x2},
      {"bf16x2", Type::BF16x2}, {"f32x2", Type::F32x2}, {"tf32", Type::TF32}};
  for (auto &known : types)
    if (name == known.name)
      return known.type;
  return Type::None;
}
bool isSmall(Type type) {
  return type == Type::F16 || type == Type::BF16 || type == Type::F16x2 ||
         type == Type::BF16x2;
}
bool has(const std::vector<std::string> &parts, const char *word) {
  for (const std::string &part : parts)
    if (part == word)
      return true;
  return false;
}

bool choose(Instruction &i, const std::vector<std::string> &parts) {
  const std::string &op = parts[0];
  i.type = typeNamed(parts.back());
  if (chooseTogether(i, parts))
    return true;
  if (chooseAtomic(i, parts))
    return true;
  if (op == "cvt")
    return chooseConversion(i, parts);
  if (op == "ld" || op == "st")
    return chooseMemory(i, parts);
  if (op == "cvta")
    return chooseCast(i, parts);
  if (op == "setp")
    return chooseCompare(i, parts[1]);
  if (op == "bra")
    i.run = branch;
  else if (op == "brx")
    i.run = branchIndexed;
  else if (op == "ret" || op == "exit")
    i.run = leave;
  else if (op == "trap")
    i.run = trap;
  if (i.run)
    return true;
  if (op == "mov") {
    if (i.d.size() > 1)
      i.run = unpack;
    else if (i.s.size() > 1)
      i.run = pack;
    else
      i.run = numbers<Move>(i.type);
    return i.run != nullptr;
  }
  if (isSmall(i.type))
    return has(parts, "f32") ? chooseMixed(i, parts) : chooseSmall(i, op);
  if (i.type == Type::F32x2)
    return choosePairs(i, parts);
  if (op == "shf") {
    i.flags = (parts[1] == "l" ? 1 : 0) | (parts[2] == "wrap" ? 2 : 0);
    i.run = funnel;
    return true;
  }
  if (op == "prmt") {
    i.run = permute;
    return parts.size() == 2;
  }
  if (op == "not" && i.type == Type::Pred) {
    i.run = notPredicate;
    return true;
  }
  bool nan = has(parts, "NaN");
  if (op == "mul" || op == "mad") {
    bool add = op == "mad";
    if (has(parts, "wide"))
      i.run = integers<Wide>(i.type);
    else if (has(parts, "hi"))
      i.run = add ? integers<MadHigh>(i.type) : integers<MulHigh>(i.type);
    else
      i.run = add ? numbers<Fma>(i.type) : numbers<MulLow>(i.type);
    return i.run != nullptr;
  }
  static const struct {
    const char *name;
    Run (*find)(Type);
  } simple[] = {
      {"add", numbers<Add>},
      {"sub", numbers<Sub>},
      {"div", numbers<Div>},
      {"rem", integers<Rem>},
      {"fma", floats<Fma>},
      {"neg", numbers<Neg>},
      {"abs", numbers<Abs>},
      {"and", integers<And>},
      {"or", integers<Or>},
      {"xor", integers<Xor>},
      {"not", integers<Not>},
      {"shl", integers<ShiftLeft>},
      {"shr", integers<ShiftRight>},
      {"bfe", integers<Extract>},
      {"selp", numbers<Select>},
      {"popc", integers<PopCount>},
      {"clz", integers<LeadingZeros>},
      {"sqrt", floats<Sqrt>},
      {"rsqrt", floats<Rsqrt>},
      {"rcp", floats<Rcp>},
      {"ex2", floats<Ex2>},
      {"lg2", floats<Lg2>},
      {"sin", floats<Sin>},
      {"cos", floats<Cos>},
      {"tanh", floats<Tanh>},
      {"copysign", floats<CopySign>},
  };
  if (op == "min")
    i.run = nan ? floats<MinNaN>(i.type) : numbers<Min>(i.type);
  else if (op == "max")
    i.run = nan ? floats<MaxNaN>(i.type) : numbers<Max>(i.type);
  else
    for (auto &known : simple)
      if (op == known.name)
        i.run = known.find(i.type);
  return i.run != nullptr;
}

} // namespace ptx
