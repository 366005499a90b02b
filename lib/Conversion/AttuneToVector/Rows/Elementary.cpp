//===- Elementary.cpp - Rows, activations, sines ----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Patterns.h"

#include "attune/Conversion/SinCos.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;

namespace attune {

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

Value asRows(KernelBuilder &k, Value x) {
  auto type = cast<RankedTensorType>(x.getType());
  if (type.getRank() == 2)
    return x;
  return FlattenTokensOp::create(k.b, k.loc, FlattenTokensOp::inferType(type),
                                 x);
}

Value countRows(KernelBuilder &k, Value x) {
  auto type = cast<RankedTensorType>(x.getType());
  Value rows = k.dim(x, 0);
  return type.getRank() == 2 ? rows : k.mul(rows, k.dim(x, 1));
}

Value fromRows(KernelBuilder &k, Value rows, Type type, Value like) {
  if (cast<RankedTensorType>(type).getRank() == 2)
    return rows;
  return UnflattenTokensOp::create(k.b, k.loc, type, rows, k.dim(like, 0),
                                   k.dim(like, 1));
}

Value emptyRows(KernelBuilder &k, Value like, int64_t width, Type element) {
  OpFoldResult rows = getAsOpFoldResult(countRows(k, like));
  return tensor::EmptyOp::create(k.b, k.loc, {rows, k.b.getIndexAttr(width)},
                                 element);
}

Value forallRows(KernelBuilder &k, Value dest,
                 function_ref<Value(KernelBuilder &, Value, Value)> compute) {
  int64_t width = cast<RankedTensorType>(dest.getType()).getDimSize(1);
  return k.forallTiles(
      {getAsOpFoldResult(k.dim(dest, 0))}, dest,
      [&](KernelBuilder &k, ValueRange ivs) {
        return KernelBuilder::Tile{
            {ivs[0], k.index(0)},
            {k.b.getIndexAttr(1), k.b.getIndexAttr(width)}};
      },
      [&](KernelBuilder &k, ValueRange ivs, Value tile) {
        return compute(k, ivs[0], tile);
      });
}

KernelBuilder::Values
forColumns(KernelBuilder &k, int64_t width, int64_t lanes, ValueRange inits,
           function_ref<KernelBuilder::Values(KernelBuilder &, Value, Value,
                                              ValueRange)>
               body) {
  int64_t whole = width - width % lanes;
  KernelBuilder::Values carried(inits);
  if (whole == lanes)
    carried = body(k, k.index(0), Value(), carried);
  else if (whole > 0)
    carried = k.forLoop(k.index(0), k.index(whole), lanes, carried,
                        [&](KernelBuilder &k, Value column, ValueRange values) {
                          return body(k, column, Value(), values);
                        });
  if (whole < width)
    carried = body(k, k.index(whole), k.index(width - whole), carried);
  return carried;
}

Value forallVectors(
    KernelBuilder &k, Value dest, const VectorLowering &lowering,
    function_ref<Value(KernelBuilder &, Value, Value, Value, Value, ValueRange)>
        compute) {
  int64_t width = cast<RankedTensorType>(dest.getType()).getDimSize(1);
  int64_t lanes = lowering.lanes;
  if (lowering.cooperative && width % lanes == 0) {
    OpFoldResult one = k.b.getIndexAttr(1), all = k.b.getIndexAttr(lanes);
    return k.forallTiles(
        {getAsOpFoldResult(k.dim(dest, 0)), k.b.getIndexAttr(width / lanes)},
        dest,
        [&](KernelBuilder &k, ValueRange ivs) {
          return KernelBuilder::Tile{{ivs[0], k.mul(ivs[1], lanes)},
                                     {one, all}};
        },
        [&](KernelBuilder &k, ValueRange ivs, Value tile) {
          Value zero = k.index(0);
          return compute(k, ivs[0], k.mul(ivs[1], lanes), Value(), tile,
                         {zero, zero});
        });
  }
  return forallRows(k, dest, [&](KernelBuilder &k, Value row, Value tile) {
    return forColumns(
        k, width, lanes, tile,
        [&](KernelBuilder &k, Value column, Value valid, ValueRange carried) {
          return KernelBuilder::Values{
              compute(k, row, column, valid, carried[0], {k.index(0), column})};
        })[0];
  });
}

KernelBuilder::Values acrossWarp(
    KernelBuilder &k, ValueRange mine,
    function_ref<KernelBuilder::Values(KernelBuilder &, ValueRange, ValueRange)>
        fold) {
  KernelBuilder::Values values(mine);
  for (int32_t distance = kWarp / 2; distance > 0; distance /= 2) {
    KernelBuilder::Values others;
    for (Value value : values)
      others.push_back(gpu::ShuffleOp::create(k.b, k.loc, value, distance,
                                              kWarp, gpu::ShuffleMode::XOR)
                           .getShuffleResult());
    values = fold(k, values, others);
  }
  return values;
}

Value sumOfWarp(KernelBuilder &k, Value sum) {
  return acrossWarp(
      k, sum, [](KernelBuilder &k, ValueRange mine, ValueRange others) {
        return KernelBuilder::Values{
            arith::AddFOp::create(k.b, k.loc, mine[0], others[0])};
      })[0];
}

Value sumSlots(
    KernelBuilder &k, Value dest, const VectorLowering &lowering,
    int64_t active, bool residual,
    function_ref<Value(KernelBuilder &, Value, Value, Value, Value)> part) {
  int64_t lanes = lowering.lanes;
  return forallVectors(
      k, dest, lowering,
      [&](KernelBuilder &k, Value token, Value column, Value valid, Value tile,
          ValueRange at) {
        Value sum = k.forLoop(
            k.index(0), k.index(active), 1, k.splat(0.0, lanes),
            [&](KernelBuilder &k, Value slot, ValueRange sums) {
              return KernelBuilder::Values{arith::AddFOp::create(
                  k.b, k.loc, sums[0], part(k, token, slot, column, valid))};
            })[0];
        if (residual)
          sum = arith::AddFOp::create(k.b, k.loc, sum,
                                      k.load(tile, at, lanes, valid));
        return k.store(sum, tile, at, valid);
      });
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

static Value binary(KernelBuilder &k, Value x, Value y, bool add) {
  if (add)
    return arith::AddFOp::create(k.b, k.loc, x, y);
  return arith::MulFOp::create(k.b, k.loc, x, y);
}

static Value exp(KernelBuilder &k, Value x) {
  return math::ExpOp::create(k.b, k.loc, x);
}
static Value negative(KernelBuilder &k, Value x) {
  return arith::NegFOp::create(k.b, k.loc, x);
}
static Value atLeast(KernelBuilder &k, Value x, Value y) {
  return arith::MaximumFOp::create(k.b, k.loc, x, y);
}
static Value atMost(KernelBuilder &k, Value x, Value y) {
  return arith::MinimumFOp::create(k.b, k.loc, x, y);
}

Value emitGated(KernelBuilder &k, Activation activation,
                const GateLimits &limits, Value gate, Value up) {
  int64_t lanes = cast<VectorType>(up.getType()).getDimSize(0);
  if (limits.limit) {
    Value most = k.splat(*limits.limit, lanes);
    gate = atMost(k, gate, most);
    up = atLeast(k, atMost(k, up, most), k.splat(-*limits.limit, lanes));
  }
  if (limits.upOffset != 0)
    up = binary(k, up, k.splat(limits.upOffset, lanes), /*add=*/true);
  return binary(k, up, emitActivation(k, activation, gate), /*add=*/false);
}

Value emitActivation(KernelBuilder &k, Activation activation, Value x) {
  int64_t lanes = cast<VectorType>(x.getType()).getDimSize(0);
  auto constant = [&](double value) { return k.splat(value, lanes); };
  auto add = [&](Value a, Value b) { return binary(k, a, b, true); };
  auto mul = [&](Value a, Value b) { return binary(k, a, b, false); };
  // 1 / (1 + exp(-x)); exp overflows to +inf for x < -88, giving 0.
  auto sigmoid = [&](Value v) -> Value {
    Value e = exp(k, negative(k, v));
    return arith::DivFOp::create(k.b, k.loc, constant(1.0),
                                 add(constant(1.0), e));
  };
  switch (activation) {
  case Activation::Identity:
    return x;
  case Activation::Relu:
    return atLeast(k, x, constant(0.0));
  case Activation::ReluSquared: {
    Value r = atLeast(k, x, constant(0.0));
    return mul(r, r);
  }
  case Activation::GeluErf: {
    Value e = math::ErfOp::create(k.b, k.loc, mul(x, constant(M_SQRT1_2)));
    return mul(mul(x, constant(0.5)), add(constant(1.0), e));
  }
  case Activation::GeluTanh: {
    Value cube = mul(mul(x, x), x);
    Value inner = mul(constant(std::sqrt(2.0 / M_PI)),
                      k.fma(cube, constant(0.044715), x));
    Value t = math::TanhOp::create(k.b, k.loc, inner);
    return mul(mul(x, constant(0.5)), add(constant(1.0), t));
  }
  case Activation::QuickGelu:
    return mul(x, sigmoid(mul(x, constant(1.702))));
  case Activation::Silu:
    return mul(x, sigmoid(x));
  case Activation::Sigmoid:
    return sigmoid(x);
  case Activation::Tanh:
    return math::TanhOp::create(k.b, k.loc, x);
  case Activation::Softplus: {
    // log(1 + exp(x)) = max(x, 0) + log(1 + e) with e = exp(-|x|), and
    // log(1 + e) = 2 atanh(s) with s = e / (2 + e), which is at most 1/3: seven
    // terms of the series are exact to f32, also where e is tiny and 1 + e is
    // 1.
    Value e = exp(k, atMost(k, x, negative(k, x)));
    Value s = arith::DivFOp::create(k.b, k.loc, e, add(constant(2.0), e));
    Value square = mul(s, s);
    Value series = constant(2.0 / 13);
    for (int power = 11; power >= 1; power -= 2)
      series = k.fma(series, square, constant(2.0 / power));
    return k.fma(series, s, atLeast(k, x, constant(0.0)));
  }
  case Activation::Mish: {
    // tanh(log(1 + e)) = n / (n + 2) with n = e (e + 2), 1 long before 20.
    Value e = exp(k, atMost(k, x, constant(20.0)));
    Value n = mul(e, add(e, constant(2.0)));
    return mul(x, arith::DivFOp::create(k.b, k.loc, n, add(n, constant(2.0))));
  }
  case Activation::Elu: {
    // exp(y) - 1 = 2 t / (1 - t) with t = tanh(y / 2), exact near 0.
    Value t = math::TanhOp::create(
        k.b, k.loc, mul(atMost(k, x, constant(0.0)), constant(0.5)));
    Value below = arith::DivFOp::create(k.b, k.loc, add(t, t),
                                        add(constant(1.0), negative(k, t)));
    return add(atLeast(k, x, constant(0.0)), below);
  }
  case Activation::LeakyRelu:
    return atLeast(k, x, mul(x, constant(0.01)));
  case Activation::HardSwish: {
    Value gate = add(x, constant(3.0));
    gate = atMost(k, atLeast(k, gate, constant(0.0)), constant(6.0));
    return mul(mul(x, gate), constant(1.0 / 6));
  }
  }
  llvm_unreachable("every activation is handled");
}

std::pair<Value, Value> emitSinCos(KernelBuilder &k, Value x) {
  auto type = cast<VectorType>(x.getType());
  int64_t lanes = type.getDimSize(0);
  auto constant = [&](double value) { return k.splat(value, lanes); };
  auto mul = [&](Value a, Value b) { return binary(k, a, b, false); };

  // x = n pi/2 + r; pi/2 in three parts, so that n * part is exact for the
  // first two and the rest is below rounding.
  Value n = math::RoundEvenOp::create(k.b, k.loc, mul(x, constant(M_2_PI)));
  Value r = k.fma(n, constant(-1.5703125), x);
  r = k.fma(n, constant(-4.837512969970703125e-4), r);
  r = k.fma(n, constant(-7.54978995489188e-8), r);
  Value r2 = mul(r, r);

  // Minimax polynomials on [-pi/4, pi/4] (Cephes sinf, cosf).
  Value s = k.fma(constant(-1.9515295891e-4), r2, constant(8.3321608736e-3));
  s = k.fma(s, r2, constant(-1.6666654611e-1));
  Value sine = k.fma(mul(s, r2), r, r);
  Value c = k.fma(constant(2.443315711809948e-5), r2,
                  constant(-1.388731625493765e-3));
  c = k.fma(c, r2, constant(4.166664568298827e-2));
  Value cosine =
      k.fma(mul(c, r2), r2, k.fma(constant(-0.5), r2, constant(1.0)));

  // Quadrant: odd swaps sine and cosine; bit 1 flips the sign of the sine, bit
  // 1 of n + 1 that of the cosine.
  auto intType = VectorType::get({lanes}, k.b.getI32Type());
  auto integer = [&](int32_t value) -> Value {
    return arith::ConstantOp::create(k.b, k.loc,
                                     DenseElementsAttr::get(intType, value));
  };
  Value q = arith::FPToSIOp::create(k.b, k.loc, intType, n);
  auto bitSet = [&](Value value, int32_t bit) -> Value {
    Value masked = arith::AndIOp::create(k.b, k.loc, value, integer(bit));
    return arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::ne, masked,
                                 integer(0));
  };
  auto select = [&](Value condition, Value yes, Value no) -> Value {
    return arith::SelectOp::create(k.b, k.loc, condition, yes, no);
  };
  auto negateIf = [&](Value condition, Value value) {
    return select(condition, arith::NegFOp::create(k.b, k.loc, value), value);
  };
  Value odd = bitSet(q, 1);
  Value next = arith::AddIOp::create(k.b, k.loc, q, integer(1));
  return {negateIf(bitSet(q, 2), select(odd, cosine, sine)),
          negateIf(bitSet(next, 2), select(odd, sine, cosine))};
}

} // namespace attune
