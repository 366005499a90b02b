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
#include "LoraConfig.h"

#include "attune/Runtime/DType.h"
#include "attune/Weights/Checkpoint.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <tuple>

namespace attune {

using runtime::DType;
using runtime::formatShape;
using runtime::TensorInfo;

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

  Merger(const Checkpoint &checkpoint, const runtime::SafetensorsFile &file,
         const LoraConfig &config, double scale, Add add,
         DiagnosticEngine &diags)
      : checkpoint(checkpoint), file(file), config(config), scale(scale),
        add(std::move(add)), diags(diags) {}

  bool run();
  MergedLora summary;

private:
  bool fail(const std::string &name, const std::string &what) {
    diags.error({}, file.path() + ": tensor '" + name + "' " + what);
    return false;
  }
  const CheckpointTensor *findBase(const std::string &name) const;
  bool checkPart(const TensorInfo &tensor, const std::vector<int64_t> &shape,
                 const CheckpointTensor &base);
  bool merge(const TensorInfo &down, const std::string &module, bool table);
  bool applyLengths(Merged &merged, const std::string &start, int64_t outer);
  bool replace(const TensorInfo &tensor, std::string name);

  const Checkpoint &checkpoint;
  const runtime::SafetensorsFile &file;
  const LoraConfig &config;
  double scale;
  Add add;
  DiagnosticEngine &diags;
};
} // namespace

static bool endsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() &&
         text.substr(text.size() - end.size()) == end;
}

static bool cutEnd(const std::string &name, std::string_view end,
                   std::string &base) {
  if (name.size() <= end.size() || !endsWith(name, end))
    return false;
  base = name.substr(0, name.size() - end.size());
  return true;
}

/// Checkpoints differ in what they put in front of all names: "model.",
/// "transformer.", nothing. A name that they lengthen must fit one tensor.
const CheckpointTensor *Merger::findBase(const std::string &name) const {
  if (const CheckpointTensor *tensor = checkpoint.find(name))
    return tensor;
  if (size_t dot = name.find('.'); dot != std::string::npos)
    if (const CheckpointTensor *tensor = checkpoint.find(name.substr(dot + 1)))
      return tensor;
  const CheckpointTensor *found = nullptr;
  for (const auto &[other, tensor] : checkpoint.tensors()) {
    if (!endsWith(other, "." + name))
      continue;
    if (found)
      return nullptr;
    found = tensor;
  }
  return found;
}

bool Merger::checkPart(const TensorInfo &tensor,
                       const std::vector<int64_t> &shape,
                       const CheckpointTensor &base) {
  if (tensor.shape != shape)
    return fail(tensor.name, "has shape " + formatShape(tensor.shape) +
                                 ", expected " + formatShape(shape) + " for '" +
                                 base.name + "'");
  return isReal(tensor) ||
         fail(tensor.name, std::string("has elements of type ") +
                               runtime::dtypeName(tensor.dtype) +
                               ", expected F32, F16 or BF16");
}

bool Merger::merge(const TensorInfo &down, const std::string &module,
                   bool table) {
  std::string upName = down.name;
  upName[upName.rfind("_A") + 1] = 'B';
  const TensorInfo *up = file.find(upName);
  if (!up)
    return fail(upName, "is missing; '" + down.name + "' is there");
  const CheckpointTensor *base = findBase(module + ".weight");
  if (!base)
    return fail(down.name, "is for '" + module + ".weight', which " +
                               checkpoint.path() +
                               " does not have; the adapter may belong to "
                               "another model");
  if (base->shape.size() != 2 || (!base->encoding && !isReal(*base)))
    return fail(down.name, "is for '" + base->name + "' of shape " +
                               formatShape(base->shape) +
                               ", which is no matrix of F32, F16 or BF16");
  bool transposed = table || config.transposed;
  int64_t inner = base->shape[transposed ? 0 : 1];
  int64_t outer = base->shape[transposed ? 1 : 0];
  // The tensors say the rank, too; it counts where a pattern's was not read.
  int64_t rank = config.rankOf(module).value_or(
      down.shape.empty() ? 0 : down.shape.front());
  if (!checkPart(down, {rank, inner}, *base) ||
      !checkPart(*up, {outer, rank}, *base))
    return false;
  if (rank < 1)
    return fail(down.name, "has no rows, which is no rank");
  auto merged = std::make_unique<Merged>();
  merged->base = *base;
  merged->rows = base->shape[0];
  merged->columns = base->shape[1];
  merged->rank = rank;
  merged->scale = scale * config.scaleOf(module, rank);
  merged->left = numbersOf(transposed ? down : *up, transposed);
  merged->right = numbersOf(transposed ? *up : down, transposed);
  merged->outputsAreColumns = transposed;
  if (config.magnitudes &&
      !applyLengths(*merged, down.name.substr(0, down.name.rfind(".lora_")),
                    outer))
    return false;
  CheckpointTensor tensor = *base;
  tensor.encoding = merged.get();
  ++summary.matrices;
  summary.maxRank = std::max(summary.maxRank, rank);
  summary.parameters += rank * (inner + outer);
  if (config.magnitudes)
    summary.parameters += outer;
  if (table)
    summary.tables.push_back(base->name);
  add(std::move(tensor), std::move(merged));
  return true;
}

bool Merger::applyLengths(Merged &merged, const std::string &start,
                          int64_t outer) {
  std::string name = start + ".lora_magnitude_vector";
  const TensorInfo *lengths = file.find(name);
  if (!lengths)
    lengths = file.find(name + ".weight");
  if (!lengths)
    return fail(name, "is missing; use_dora asks for it");
  if (!checkPart(*lengths, {outer}, merged.base))
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
  const CheckpointTensor *base = findBase(name);
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
  constexpr std::string_view start = "base_model.model.";
  /// Tensors A, their modules, and whether these are tables.
  std::vector<std::tuple<const TensorInfo *, std::string, bool>> pairs;
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
    if (table || cutEnd(name, ".lora_A.weight", module))
      pairs.emplace_back(&tensor, module, table);
    else if (!replace(tensor, name))
      return false;
  }
  // Last, so that what is added is added to the new values.
  for (const auto &[tensor, module, table] : pairs)
    if (!merge(*tensor, module, table))
      return false;
  return true;
}

std::optional<MergedLora> Checkpoint::mergeLora(const std::string &folder,
                                                double scale,
                                                DiagnosticEngine &diags) {
  namespace fs = std::filesystem;
  std::optional<LoraConfig> config = readLoraConfig(
      (fs::path(folder) / "adapter_config.json").string(), diags);
  if (!config)
    return std::nullopt;
  fs::path path = fs::path(folder) / "adapter_model.safetensors";
  std::error_code ignored;
  if (fs::path pickled = fs::path(folder) / "adapter_model.bin";
      !fs::exists(path, ignored) && fs::exists(pickled, ignored)) {
    diags.error({}, pickled.string() +
                        ": is pickled (PyTorch), which is not read; save the "
                        "adapter as safetensors (in peft: save_pretrained)");
    return std::nullopt;
  }
  auto adapter = std::make_unique<runtime::SafetensorsFile>();
  std::string error;
  if (!adapter->open(path.string(), error)) {
    diags.error({}, error);
    return std::nullopt;
  }
  Merger merger(
      *this, *adapter, *config, scale,
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
  files.push_back(std::move(adapter));
  return std::move(merger.summary);
}

} // namespace attune
