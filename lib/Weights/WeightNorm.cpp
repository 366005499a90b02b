//===- WeightNorm.cpp - Weights as lengths and directions -----------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Weight normalisation (Salimans and Kingma 2016): W = g v / |v|, where g has a
// size of 1 along the dimensions that the length is taken over. PyTorch calls
// the two "weight_g" and "weight_v", or, since 2.0, "original0" and
// "original1" of "parametrizations.weight".
//
//===----------------------------------------------------------------------===//

#include "RealNumbers.h"
#include "attune/Runtime/DType.h"
#include "attune/Weights/Checkpoint.h"

#include <cmath>

namespace attune {

using runtime::DType;
using runtime::formatShape;

namespace {
struct Normed final : TensorEncoding {
  CheckpointTensor directions;
  std::vector<double> factors; ///< g / |v|
  /// How many numbers of v one step along a dimension passes over, and how
  /// many of g; 0 where g has a size of 1.
  std::vector<int64_t> steps, factorSteps;

  const char *name() const override { return "weight norm"; }
  bool isQuantized() const override { return false; }

  size_t factorOf(int64_t i) const {
    int64_t at = 0;
    for (size_t d = 0; d < steps.size(); ++d) {
      at += i / steps[d] * factorSteps[d];
      i %= steps[d];
    }
    return size_t(at);
  }

  void decode(const CheckpointTensor &, int64_t first, int64_t count,
              float *out) const override {
    for (int64_t i = 0; i < count; ++i)
      out[i] = static_cast<float>(numberAt(directions, first + i) *
                                  factors[factorOf(first + i)]);
  }
};
} // namespace

/// Gives g / |v|, or says what is wrong.
static std::string setFactors(Normed &normed, const CheckpointTensor &lengths) {
  const CheckpointTensor &v = normed.directions;
  std::string problem = "tensor '" + lengths.name + "' " +
                        formatShape(lengths.shape) +
                        " has no lengths for the parts of '" + v.name + "' " +
                        formatShape(v.shape);
  size_t rank = v.shape.size();
  if (!isReal(v) || !isReal(lengths) || lengths.shape.size() != rank)
    return problem;
  normed.steps.resize(rank);
  normed.factorSteps.resize(rank);
  int64_t all = 1, parts = 1;
  for (size_t d = rank; d-- > 0;) {
    if (lengths.shape[d] != 1 && lengths.shape[d] != v.shape[d])
      return problem;
    normed.steps[d] = all;
    normed.factorSteps[d] = lengths.shape[d] == 1 ? 0 : parts;
    all *= v.shape[d];
    parts *= lengths.shape[d];
  }
  if (all == 0)
    return problem;
  normed.factors.assign(size_t(parts), 0);
  for (int64_t i = 0; i < all; ++i) {
    double value = numberAt(v, i);
    normed.factors[normed.factorOf(i)] += value * value;
  }
  for (int64_t i = 0; i < parts; ++i) {
    double &factor = normed.factors[size_t(i)];
    if (!(factor > 0))
      return "tensor '" + v.name +
             "' has a part that is all zeros, which has " + "no direction";
    factor = numberAt(lengths, i) / std::sqrt(factor);
  }
  return "";
}

static bool takeEnd(std::string &name, std::string_view end) {
  if (name.size() < end.size() ||
      name.compare(name.size() - end.size(), end.size(), end) != 0)
    return false;
  name.resize(name.size() - end.size());
  return true;
}

bool Checkpoint::joinWeightNorms(DiagnosticEngine &diags) {
  struct Pair {
    std::string name;
    const CheckpointTensor *lengths, *directions;
  };
  std::vector<Pair> pairs;
  for (const auto &[name, tensor] : byName) {
    std::string base = name, directions;
    if (takeEnd(base, ".parametrizations.weight.original0"))
      directions = base + ".parametrizations.weight.original1";
    else if (takeEnd(base, ".weight_g"))
      directions = base + ".weight_v";
    else
      continue;
    const CheckpointTensor *v = find(directions);
    if (v && !find(base + ".weight"))
      pairs.push_back({base + ".weight", tensor, v});
  }
  for (const Pair &pair : pairs) {
    auto normed = std::make_unique<Normed>();
    normed->directions = *pair.directions;
    std::string problem = setFactors(*normed, *pair.lengths);
    if (!problem.empty()) {
      diags.error({}, filePath + ": " + problem);
      return false;
    }
    CheckpointTensor whole = *pair.directions;
    whole.name = pair.name;
    whole.dtype = DType::F32;
    whole.encoding = normed.get();
    byName.erase(pair.lengths->name);
    byName.erase(pair.directions->name);
    add(std::move(whole));
    encodings.push_back(std::move(normed));
  }
  return true;
}

} // namespace attune
