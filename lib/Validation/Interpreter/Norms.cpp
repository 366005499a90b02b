//===- Norms.cpp - Norms, as defined --------------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layers.h"

#include <algorithm>
#include <cmath>

using namespace attune;
using namespace attune::validation;
using namespace mlir;

/// Entry of a gamma or beta, [width] or [heads, width], for a row.
static double channel(const Array &gamma, const Array &x, int64_t row,
                      int64_t d) {
  int64_t width = x.shape.back();
  if (gamma.shape.size() == 1)
    return gamma.data[d].f;
  int64_t tokens = x.shape[x.shape.size() - 2];
  return gamma.data[row / tokens % gamma.shape[0] * width + d].f;
}

static bool runNorm(Step &step, bool centred, const Array *gamma,
                    const Array *beta, double eps, double offset) {
  Array &x = step.in[0].ownArray();
  int64_t width = x.shape.back();
  for (const Array *array : {gamma, beta})
    if (array && !same(step, array->shape.back(), width, "channels"))
      return false;
  for (int64_t row = 0;
       row < int64_t(x.data.size()) / std::max<int64_t>(width, 1); ++row) {
    Scalar *values = &x.data[row * width];
    double mean = 0, square = 0;
    for (int64_t d = 0; centred && d < width; ++d)
      mean += values[d].f / double(width);
    for (int64_t d = 0; d < width; ++d)
      square += (values[d].f - mean) * (values[d].f - mean) / double(width);
    double by = 1 / std::sqrt(square + eps);
    for (int64_t d = 0; d < width; ++d) {
      double y = (values[d].f - mean) * by;
      if (gamma)
        y *= offset + channel(*gamma, x, row, d);
      if (beta)
        y += channel(*beta, x, row, d);
      values[d].f = y;
    }
  }
  giveRounded(step, 0, step.in[0]);
  return true;
}

static bool runLayerNorm(Step &step) {
  auto op = cast<LayerNormOp>(step.op);
  return runNorm(step, true, arrayOf(step, op.getGamma()),
                 arrayOf(step, op.getBeta()), op.getEps().convertToFloat(),
                 op.getOffset().convertToFloat());
}

static bool runRMSNorm(Step &step) {
  auto op = cast<RMSNormOp>(step.op);
  return runNorm(step, false, arrayOf(step, op.getGamma()), nullptr,
                 op.getEps().convertToFloat(), op.getOffset().convertToFloat());
}

static bool runBatchNorm(Step &step) {
  auto op = cast<BatchNormOp>(step.op);
  Array &x = step.in[0].ownArray();
  auto entry = [&](size_t operand, int64_t c) {
    return step.in[operand].array().data[c].f;
  };
  int64_t width = x.shape.back();
  for (size_t i = 0; i < x.data.size(); ++i) {
    int64_t c = int64_t(i) % width;
    double s =
        entry(1, c) / std::sqrt(entry(4, c) + op.getEps().convertToFloat());
    x.data[i].f = (x.data[i].f - entry(3, c)) * s + entry(2, c);
  }
  giveRounded(step, 0, step.in[0]);
  return true;
}

void validation::addNorms(Handlers &handlers) {
  handlers["attune.layer_norm"] = runLayerNorm;
  handlers["attune.rms_norm"] = runRMSNorm;
  handlers["attune.batch_norm"] = runBatchNorm;
}
