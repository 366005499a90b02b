//===- LoraAdapter.cpp - Adapters of PEFT, merged into weights --*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An adapter has for a matrix W [out, in] two small ones, A [rank, in] and
// B [out, rank]. The matrix becomes
//
//   W' = W + s B A             LoRA, Hu et al. 2021
//   W' = m (W + s B A) / |.|   DoRA, Liu et al. 2024: |.| is the length of each
//                              row of the sum, m [out] the learned one
//
// A table of embeddings [tokens, width] is the transpose of such a matrix, and
// so are GPT-2's matrices. Sums are in double precision, and rounded once to
// the type in which weights are kept.
//
//===----------------------------------------------------------------------===//

#include "../RealNumbers.h"
#include "LoraFile.h"

#include "attune/Runtime/DType.h"
#include "attune/Weights/Checkpoint.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

namespace attune {

using runtime::DType;
using runtime::formatShape;
using runtime::TensorInfo;

namespace {
/// (base + scale * left right), as the file has it: for the transposed forms
/// left is A and right is B.
struct Merged : TensorEncoding {
  CheckpointTensor base;
  std::vector<float> left, right; ///< [rows, rank], [rank, columns]
  int64_t rows = 0, columns = 0, rank = 0;
  double scale = 1;
  /// DoRA: what each of the outputs, which are rows, or columns if
  /// `outputsAreColumns`, is multiplied by. Empty: nothing.
  std::vector<double> factors;
  bool outputsAreColumns = false;

  const char *name() const override {
    return isQuantized() ? base.encoding->name() : "LoRA";
  }
  bool isQuantized() const override {
    return base.encoding && base.encoding->isQuantized();
  }

  void readBase(int64_t first, int64_t count, float *out) const {
    if (base.encoding)
      return base.encoding->decode(base, first, count, out);
    for (int64_t i = 0; i < count; ++i)
      out[i] = numberAt(base, first + i);
  }

  /// Without factors. `values` are the base's, all of one row.
  void sum(int64_t row, int64_t column, int64_t count, const float *values,
           double *out) const {
    std::copy(values, values + count, out);
    for (int64_t r = 0; r < rank; ++r) {
      double by = scale * left[row * rank + r];
      const float *line = &right[r * columns + column];
      for (int64_t i = 0; i < count; ++i)
        out[i] += by * line[i];
    }
  }

  void decode(const CheckpointTensor &, int64_t first, int64_t count,
              float *out) const override {
    constexpr int64_t chunk = 256;
    double sums[chunk];
    readBase(first, count, out);
    for (int64_t done = 0; done < count;) {
      int64_t row = (first + done) / columns, column = (first + done) % columns;
      int64_t n = std::min({chunk, count - done, columns - column});
      sum(row, column, n, out + done, sums);
      for (int64_t i = 0; i < n; ++i) {
        double factor = factors.empty()     ? 1
                        : outputsAreColumns ? factors[column + i]
                                            : factors[row];
        out[done + i] = static_cast<float>(factor * sums[i]);
      }
      done += n;
    }
  }

  /// Gives each output the length that DoRA learned for it. False: one is all
  /// zeros, which has no direction.
  bool setLengths(const TensorInfo &lengths) {
    std::vector<double> squares(outputsAreColumns ? columns : rows);
    std::vector<float> values(columns);
    std::vector<double> sums(columns);
    for (int64_t row = 0; row < rows; ++row) {
      readBase(row * columns, columns, values.data());
      sum(row, 0, columns, values.data(), sums.data());
      for (int64_t i = 0; i < columns; ++i)
        squares[outputsAreColumns ? i : row] += sums[i] * sums[i];
    }
    for (size_t i = 0; i < squares.size(); ++i) {
      if (!(squares[i] > 0))
        return false;
      factors.push_back(numberAt(lengths, static_cast<int64_t>(i)) /
                        std::sqrt(squares[i]));
    }
    return true;
  }
};

class Merger {
public:
  using Add =
      std::function<void(CheckpointTensor, std::unique_ptr<TensorEncoding>)>;

  Merger(const Checkpoint &checkpoint, const LoraFile &lora, double scale,
         Add add, DiagnosticEngine &diags)
      : checkpoint(checkpoint), lora(lora), scale(scale), add(std::move(add)),
        diags(diags) {}

  bool run();
  MergedLora summary;

private:
  bool fail(const std::string &name, const std::string &what) {
    return lora.fail(name, what, diags);
  }
  bool merge(const LoraPair &pair);
  bool applyLengths(Merged &merged, const std::string &start, int64_t outer);
  bool replace(const TensorInfo &tensor, std::string name);

  const Checkpoint &checkpoint;
  const LoraFile &lora;
  double scale;
  Add add;
  DiagnosticEngine &diags;
};
} // namespace

bool Merger::merge(const LoraPair &pair) {
  const CheckpointTensor &base = *pair.base;
  auto merged = std::make_unique<Merged>();
  merged->base = base;
  merged->rows = base.shape[0];
  merged->columns = base.shape[1];
  merged->rank = pair.rank;
  merged->scale = scale * pair.scale;
  bool across = pair.transposed;
  merged->left = numbersOf(across ? *pair.down : *pair.up, across);
  merged->right = numbersOf(across ? *pair.up : *pair.down, across);
  merged->outputsAreColumns = across;
  const std::string &down = pair.down->name;
  bool sets = lora.config.magnitudes;
  if (sets &&
      !applyLengths(*merged, down.substr(0, down.rfind(".lora_")), pair.outer))
    return false;
  CheckpointTensor tensor = base;
  tensor.encoding = merged.get();
  ++summary.matrices;
  summary.maxRank = std::max(summary.maxRank, pair.rank);
  summary.parameters += pair.rank * (pair.inner + pair.outer);
  if (sets)
    summary.parameters += pair.outer;
  if (pair.table)
    summary.tables.push_back(base.name);
  add(std::move(tensor), std::move(merged));
  return true;
}

bool Merger::applyLengths(Merged &merged, const std::string &start,
                          int64_t outer) {
  std::string name = start + ".lora_magnitude_vector";
  const TensorInfo *lengths = lora.file->find(name);
  if (!lengths)
    lengths = lora.file->find(name + ".weight");
  if (!lengths)
    return fail(name, "is missing; use_dora asks for it");
  if (!lora.checkPart(*lengths, {outer}, merged.base, diags))
    return false;
  if (scale != 1)
    return fail(name, "sets lengths (use_dora), which have no other scale "
                      "than 1");
  return merged.setLengths(*lengths) ||
         fail(name, "sets the length of an output whose weights are all zero");
}

/// A tensor that was trained as a whole takes the place of the base's.
bool Merger::replace(const TensorInfo &tensor, std::string name) {
  for (std::string_view part : {".base_layer.", ".modules_to_save."})
    if (size_t place = name.find(part); place != std::string::npos)
      name.replace(place, part.size(), ".");
  const CheckpointTensor *base = LoraFile::findBase(checkpoint, name);
  if (!base || name.find("lora_") != std::string::npos)
    return fail(tensor.name, "stands for nothing that is read: " +
                                 checkpoint.path() + " has no '" + name + "'");
  if (tensor.shape != base->shape || !isReal(tensor))
    return fail(tensor.name,
                "of shape " + formatShape(tensor.shape) +
                    " cannot take the place of '" + base->name + "' of shape " +
                    formatShape(base->shape) +
                    "; an adapter with more tokens or labels must be merged "
                    "with PEFT (merge_and_unload)");
  CheckpointTensor whole{tensor};
  whole.name = base->name;
  ++summary.replaced;
  int64_t count = 1;
  for (int64_t size : tensor.shape)
    count *= size;
  summary.parameters += count;
  if (tensor.shape.size() == 2)
    summary.tables.push_back(base->name);
  add(std::move(whole), nullptr);
  return true;
}

bool Merger::run() {
  std::vector<LoraPart> pairs, others;
  if (!lora.list(pairs, others, diags))
    return false;
  for (const LoraPart &part : others)
    if (!replace(*part.tensor, part.module))
      return false;
  // Last, so that what is added is added to the new values.
  for (const LoraPart &part : pairs) {
    std::optional<LoraPair> pair = lora.findPair(part, checkpoint, diags);
    if (!pair || !merge(*pair))
      return false;
  }
  return true;
}

std::optional<MergedLora> Checkpoint::mergeLora(const std::string &folder,
                                                double scale,
                                                DiagnosticEngine &diags) {
  std::optional<LoraFile> lora = LoraFile::open(folder, diags);
  if (!lora)
    return std::nullopt;
  Merger merger(
      *this, *lora, scale,
      [this](CheckpointTensor tensor,
             std::unique_ptr<TensorEncoding> encoding) {
        byName.erase(tensor.name);
        add(std::move(tensor));
        if (encoding)
          encodings.push_back(std::move(encoding));
      },
      diags);
  if (!merger.run())
    return std::nullopt;
  files.push_back(std::move(lora->file));
  return std::move(merger.summary);
}

} // namespace attune
