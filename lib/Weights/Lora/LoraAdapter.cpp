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
//                              row, m [out] the learned one
//
// A table of embeddings [tokens, width] is the transpose of such a matrix, and
// so are GPT-2's matrices. Sums are in double precision, and rounded once to
// the type in which weights are kept.
//
//===----------------------------------------------------------------------===//

#include "LoraConfig.h"

#include "attune/Runtime/DType.h"
#include "attune/Weights/Checkpoint.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace attune {

using runtime::DType;
using runtime::formatShape;
using runtime::TensorInfo;

static bool isReal(const TensorInfo &tensor) {
  return tensor.dtype == DType::F32 || tensor.dtype == DType::F16 ||
         tensor.dtype == DType::BF16;
}

static float numberAt(const TensorInfo &tensor, int64_t i) {
  const uint8_t *data = tensor.data + i * runtime::dtypeBytes(tensor.dtype);
  if (tensor.dtype == DType::F32) {
    float value;
    std::memcpy(&value, data, 4);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, data, 2);
  return tensor.dtype == DType::F16 ? runtime::halfToFloat(bits)
                                    : runtime::bfloatToFloat(bits);
}

/// The numbers of a matrix, or of its transpose.
static std::vector<float> numbersOf(const TensorInfo &tensor, bool transposed) {
  int64_t rows = tensor.shape[0], columns = tensor.shape[1];
  std::vector<float> result(rows * columns);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      result[transposed ? j * rows + i : i * columns + j] =
          numberAt(tensor, i * columns + j);
  return result;
}

namespace {
/// base + scale * left right, with each row at a length of its own for DoRA.
struct Merged : TensorEncoding {
  CheckpointTensor base;
  std::vector<float> left, right; ///< [rows, rank], [rank, columns]
  int64_t rows = 0, columns = 0, rank = 0;
  double scale = 1;
  std::vector<double> factors; ///< of rows; empty: none

  const char *name() const override { return "LoRA"; }
  bool isQuantized() const override {
    return base.encoding && base.encoding->isQuantized();
  }

  void readBase(int64_t first, int64_t count, float *out) const {
    if (base.encoding)
      return base.encoding->decode(base, first, count, out);
    for (int64_t i = 0; i < count; ++i)
      out[i] = numberAt(base, first + i);
  }

  /// Without factors. All of one row.
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
      double factor = factors.empty() ? 1 : factors[row];
      for (int64_t i = 0; i < n; ++i)
        out[done + i] = static_cast<float>(factor * sums[i]);
      done += n;
    }
  }

  /// Takes the lengths that rows shall have. False: a row is all zeros.
  bool setLengths(const TensorInfo &lengths) {
    std::vector<float> values(columns);
    std::vector<double> sums(columns);
    for (int64_t row = 0; row < rows; ++row) {
      readBase(row * columns, columns, values.data());
      sum(row, 0, columns, values.data(), sums.data());
      double squares = 0;
      for (double value : sums)
        squares += value * value;
      if (!(squares > 0))
        return false;
      factors.push_back(numberAt(lengths, row) / std::sqrt(squares));
    }
    return true;
  }
};

class Merger {
public:
  using Add =
      std::function<void(CheckpointTensor, std::unique_ptr<TensorEncoding>)>;

  Merger(const Checkpoint &checkpoint, const runtime::SafetensorsFile &file,
         const LoraConfig &config, double scale, Add add,
         DiagnosticEngine &diags)
      : checkpoint(checkpoint), file(file), config(config), scale(scale),
        add(std::move(add)), diags(diags) {}

  bool run();
  unsigned matrices = 0, replaced = 0;

private:
  bool fail(const std::string &name, const std::string &what) {
    diags.error({}, file.path() + ": tensor '" + name + "' " + what);
    return false;
  }
  const CheckpointTensor *findBase(const std::string &name) const;
  bool merge(const TensorInfo &down, const std::string &module, bool table);
  bool replace(const TensorInfo &tensor, std::string name);

  const Checkpoint &checkpoint;
  const runtime::SafetensorsFile &file;
  const LoraConfig &config;
  double scale;
  Add add;
  DiagnosticEngine &diags;
};
} // namespace

static bool cutEnd(const std::string &name, std::string_view end,
                   std::string &base) {
  if (name.size() <= end.size() ||
      name.compare(name.size() - end.size(), end.size(), end) != 0)
    return false;
  base = name.substr(0, name.size() - end.size());
  return true;
}

/// Checkpoints differ in what they put in front of all names.
const CheckpointTensor *Merger::findBase(const std::string &name) const {
  std::vector<std::string> names = {name, "model." + name,
                                    "transformer." + name};
  if (size_t dot = name.find('.'); dot != std::string::npos)
    names.push_back(name.substr(dot + 1));
  for (const std::string &candidate : names)
    if (const CheckpointTensor *tensor = checkpoint.find(candidate))
      return tensor;
  return nullptr;
}

bool Merger::merge(const TensorInfo &down, const std::string &module,
                   bool table) {
  std::string prefix, upName = down.name;
  size_t place = upName.rfind("_A");
  upName[place + 1] = 'B';
  const TensorInfo *up = file.find(upName);
  if (!up)
    return fail(upName, "is missing; '" + down.name + "' is there");
  const CheckpointTensor *base = findBase(module + ".weight");
  if (!base)
    return fail(down.name, "is for '" + module + ".weight', which " +
                               checkpoint.path() +
                               " does not have; the adapter may belong to "
                               "another model");
  int64_t rank = config.rankOf(module);
  bool transposed = table || config.transposed;
  if (base->shape.size() != 2 || (!base->encoding && !isReal(*base)))
    return fail(down.name, "is for '" + base->name + "' of shape " +
                               formatShape(base->shape) +
                               ", which is no matrix of F32, F16 or BF16");
  int64_t inner = base->shape[transposed ? 0 : 1];
  int64_t outer = base->shape[transposed ? 1 : 0];
  for (auto [tensor, shape] :
       {std::pair(&down, std::vector<int64_t>{rank, inner}),
        std::pair(up, std::vector<int64_t>{outer, rank})}) {
    if (tensor->shape != shape)
      return fail(tensor->name, "has shape " + formatShape(tensor->shape) +
                                    ", expected " + formatShape(shape) +
                                    " for '" + base->name + "'");
    if (!isReal(*tensor))
      return fail(tensor->name, std::string("has elements of type ") +
                                    runtime::dtypeName(tensor->dtype) +
                                    ", expected F32, F16 or BF16");
  }
  auto merged = std::make_unique<Merged>();
  merged->base = *base;
  merged->rows = base->shape[0];
  merged->columns = base->shape[1];
  merged->rank = rank;
  merged->scale = scale * config.scaleOf(module);
  merged->left = numbersOf(transposed ? down : *up, transposed);
  merged->right = numbersOf(transposed ? *up : down, transposed);
  if (config.magnitudes) {
    std::string start = down.name.substr(0, down.name.rfind(".lora_"));
    const TensorInfo *lengths = file.find(start + ".lora_magnitude_vector");
    if (!lengths)
      lengths = file.find(start + ".lora_magnitude_vector.weight");
    if (!lengths || lengths->shape != std::vector<int64_t>{outer} ||
        !isReal(*lengths))
      return fail(start + ".lora_magnitude_vector",
                  "is missing or no vector of " + std::to_string(outer) +
                      " real numbers; use_dora asks for it");
    if (transposed)
      return fail(down.name, "is of DoRA for a transposed matrix or a table, "
                             "which is not read; merge it with PEFT");
    if (scale != 1)
      return fail(down.name, "is of DoRA, which has no other scale than 1");
    if (!merged->setLengths(*lengths))
      return fail(down.name, "makes a row of zeros, whose length cannot be "
                             "changed (use_dora)");
  }
  CheckpointTensor tensor = *base;
  tensor.encoding = merged.get();
  add(std::move(tensor), std::move(merged));
  ++matrices;
  return true;
}

/// A tensor that was trained as a whole takes the place of the base's.
bool Merger::replace(const TensorInfo &tensor, std::string name) {
  for (std::string_view part : {".base_layer.", ".modules_to_save."})
    if (size_t place = name.find(part); place != std::string::npos)
      name.replace(place, part.size(), ".");
  const CheckpointTensor *base = findBase(name);
  if (!base || name.find("lora_") != std::string::npos)
    return fail(tensor.name, "stands for nothing that is read: " +
                                 checkpoint.path() + " has no '" + name + "'");
  if (tensor.shape != base->shape || !isReal(tensor))
    return fail(tensor.name,
                "of shape " + formatShape(tensor.shape) +
                    " cannot take the place of '" + base->name + "' of shape " +
                    formatShape(base->shape) +
                    "; an adapter with more tokens must be merged with PEFT");
  CheckpointTensor whole{tensor};
  whole.name = base->name;
  add(std::move(whole), nullptr);
  ++replaced;
  return true;
}

bool Merger::run() {
  constexpr std::string_view start = "base_model.model.";
  for (const TensorInfo &tensor : file.tensors()) {
    if (tensor.name.rfind(start, 0) != 0)
      return fail(tensor.name, "has no name of PEFT; expected " +
                                   std::string(start) + "...");
    std::string name = tensor.name.substr(start.size()), module;
    if (cutEnd(name, ".lora_B.weight", module) ||
        cutEnd(name, ".lora_embedding_B", module) ||
        cutEnd(name, ".lora_magnitude_vector", module) ||
        cutEnd(name, ".lora_magnitude_vector.weight", module)) {
      if (!file.find(std::string(start) + module + ".lora_A.weight") &&
          !file.find(std::string(start) + module + ".lora_embedding_A"))
        return fail(tensor.name, "is there without its A");
      continue;
    }
    bool table = cutEnd(name, ".lora_embedding_A", module);
    bool good = table || cutEnd(name, ".lora_A.weight", module)
                    ? merge(tensor, module, table)
                    : replace(tensor, name);
    if (!good)
      return false;
  }
  return true;
}

bool Checkpoint::mergeLora(const std::string &folder, double scale,
                           DiagnosticEngine &diags) {
  std::optional<LoraConfig> config =
      readLoraConfig(folder + "/adapter_config.json", diags);
  if (!config)
    return false;
  auto file = std::make_unique<runtime::SafetensorsFile>();
  std::string error;
  if (!file->open(folder + "/adapter_model.safetensors", error)) {
    diags.error({}, error);
    return false;
  }
  Merger merger(
      *this, *file, *config, scale,
      [this](CheckpointTensor tensor,
             std::unique_ptr<TensorEncoding> encoding) {
        byName.erase(tensor.name);
        add(std::move(tensor));
        if (encoding)
          encodings.push_back(std::move(encoding));
      },
      diags);
  if (!merger.run())
    return false;
  diags.note({}, folder + ": merged into " + std::to_string(merger.matrices) +
                     (merger.matrices == 1 ? " matrix" : " matrices") +
                     (merger.replaced ? "; " + std::to_string(merger.replaced) +
                                            " tensors replaced"
                                      : ""));
  files.push_back(std::move(file));
  return true;
}

} // namespace attune
