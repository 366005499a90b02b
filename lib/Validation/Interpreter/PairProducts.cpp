//===- PairProducts.cpp - Instructions of single CPUs -----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PairProducts.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace attune;
using namespace attune::validation;
using namespace mlir;

/// VDPBF16PS as Intel's manual has it: the pair's second product is added
/// first, each addition rounds to nearest even once, whatever MXCSR says.
static bool runPairProduct(Step &step) {
  Datum result = step.in[0];
  const Array &a = step.in[1].array(), &b = step.in[2].array();
  Array &sums = result.ownArray();
  for (size_t lane = 0; lane < sums.data.size(); ++lane) {
    float sum = flush(float(sums.data[lane].f));
    for (size_t i : {2 * lane + 1, 2 * lane})
      sum = flush(
          std::fma(flush(float(a.data[i].f)), flush(float(b.data[i].f)), sum));
    sums.data[lane] = real(sum);
  }
  step.give(std::move(result));
  return true;
}

/// VPDPBUSD and PMADDWD: products of `count` neighbours, unsigned by signed or
/// both signed, whose sum wraps in i32. Only the first adds to what there was.
static bool runByteProduct(Step &step, size_t count, bool isUnsigned) {
  Datum result = step.in[0];
  bool adds = isUnsigned;
  const Array &a = step.in[adds ? 1 : 0].array(),
              &b = step.in[adds ? 2 : 1].array();
  if (!adds)
    result = makeArray({int64_t(a.data.size() / count)}, whole(0));
  Array &sums = result.ownArray();
  for (size_t i = 0; i < a.data.size(); ++i) {
    int64_t left = isUnsigned ? a.data[i].i & 255 : a.data[i].i;
    int64_t &sum = sums.data[i / count].i;
    sum = int32_t(sum + left * b.data[i].i);
  }
  step.give(std::move(result));
  return true;
}

/// PMADDUBSW: products of two neighbours, unsigned by signed, whose sum stops
/// at the ends of i16.
static bool runSaturatedPairs(Step &step) {
  const Array &a = step.in[0].array(), &b = step.in[1].array();
  Datum result = makeArray({int64_t(a.data.size() / 2)}, whole(0));
  Array &sums = result.ownArray();
  for (size_t i = 0; i < a.data.size(); i += 2) {
    int64_t sum = (a.data[i].i & 255) * b.data[i].i +
                  (a.data[i + 1].i & 255) * b.data[i + 1].i;
    sums.data[i / 2].i = std::clamp<int64_t>(sum, INT16_MIN, INT16_MAX);
  }
  step.give(std::move(result));
  return true;
}

/// VPSHUFB as Intel's manual has it: each byte of 128 bits is one of 16 that
/// they have in another register, or zero.
static bool runByteShuffle(Step &step) {
  const Array &table = step.in[0].array(), &which = step.in[1].array();
  Datum result = makeArray(table.shape, whole(0));
  Array &out = result.ownArray();
  for (size_t i = 0; i < which.data.size(); ++i) {
    int64_t index = which.data[i].i;
    if (!(index & 128))
      out.data[i] = table.data[i / 16 * 16 + (index & 15)];
  }
  step.give(std::move(result));
  return true;
}

/// VSCALEFPS: a 2^floor(b), or the third operand where the mask has no bit. A
/// NaN with an infinite power gives the power.
static bool runScaling(Step &step) {
  Datum result = step.in[2];
  const Array &a = step.in[0].array(), &b = step.in[1].array();
  Array &scaled = result.ownArray();
  for (size_t lane = 0; lane < scaled.data.size(); ++lane) {
    if (((step.in[3].scalar.i >> lane) & 1) == 0)
      continue;
    double x = a.data[lane].f, power = std::floor(b.data[lane].f);
    if (std::isnan(x) && std::isinf(power))
      x = 1;
    scaled.data[lane] = real(float(x * std::exp2(power)));
  }
  step.give(std::move(result));
  return true;
}

static bool runIntrinsic(Step &step) {
  auto op = cast<LLVM::CallIntrinsicOp>(step.op);
  if (op.getIntrin().starts_with("llvm.x86.avx512.mask.scalef.ps."))
    return runScaling(step);
  if (op.getIntrin().starts_with("llvm.x86.avx512bf16.dpbf16ps."))
    return runPairProduct(step);
  if (op.getIntrin().starts_with("llvm.x86.avx512.vpdpbusd."))
    return runByteProduct(step, 4, /*isUnsigned=*/true);
  if (op.getIntrin().contains(".pmadd.ub.sw") ||
      op.getIntrin().contains(".pmaddubs.w."))
    return runSaturatedPairs(step);
  if (op.getIntrin().contains(".pshuf.b"))
    return runByteShuffle(step);
  if (op.getIntrin().contains(".pmadd.wd") ||
      op.getIntrin().contains(".pmaddw.d."))
    return runByteProduct(step, 2, /*isUnsigned=*/false);
  if (std::optional<bool> ran = runTileIntrinsic(step, op.getIntrin()))
    return *ran;
  return step.machine.fail(step.op, Failure::Unsupported,
                           "calls '" + op.getIntrin() +
                               "', which is not known here");
}

void validation::addPairProducts(Handlers &handlers) {
  handlers["x86vector.avx512.dot"] = runPairProduct;
  handlers["x86vector.avx512.mask.scalef"] = runScaling;
  handlers["llvm.call_intrinsic"] = runIntrinsic;
}
