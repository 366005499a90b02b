//===- LoraFile.cpp - Tensors of an adapter ----------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoraFile.h"

#include "../RealNumbers.h"

#include "attune/Runtime/DType.h"
#include "attune/Support/TensorNames.h"

#include <filesystem>

namespace attune {

using runtime::formatShape;
using runtime::TensorInfo;

std::vector<float> numbersOf(const TensorInfo &tensor, bool transposed) {
  int64_t rows = tensor.shape[0], columns = tensor.shape[1];
  std::vector<float> result(rows * columns);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      result[transposed ? j * rows + i : i * columns + j] =
          numberAt(tensor, i * columns + j);
  return result;
}

bool LoraFile::fail(const std::string &name, const std::string &what,
                    DiagnosticEngine &diags) const {
  diags.error({}, file->path() + ": tensor '" + name + "' " + what);
  return false;
}

static bool endsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() &&
         text.substr(text.size() - end.size()) == end;
}

const CheckpointTensor *LoraFile::findBase(const Checkpoint &checkpoint,
                                           const std::string &name) {
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

bool LoraFile::checkPart(const TensorInfo &tensor,
                         const std::vector<int64_t> &shape,
                         const CheckpointTensor &base,
                         DiagnosticEngine &diags) const {
  if (tensor.shape != shape)
    return fail(tensor.name,
                "has shape " + formatShape(tensor.shape) + ", expected " +
                    formatShape(shape) + " for '" + base.name + "'",
                diags);
  return isReal(tensor) || fail(tensor.name,
                                std::string("has elements of type ") +
                                    runtime::dtypeName(tensor.dtype) +
                                    ", expected F32, F16, BF16 or F64",
                                diags);
}

std::optional<LoraPair> LoraFile::findPair(const LoraPart &part,
                                           const Checkpoint &checkpoint,
                                           DiagnosticEngine &diags) const {
  auto refuse = [&](const std::string &name, const std::string &what) {
    fail(name, what, diags);
    return std::nullopt;
  };
  LoraPair pair;
  const TensorInfo &down = *part.tensor;
  std::string upName = down.name;
  upName[upName.rfind("_A") + 1] = 'B';
  pair.down = &down;
  pair.up = file->find(upName);
  if (!pair.up)
    return refuse(upName, "is missing; '" + down.name + "' is there");
  pair.base = findBase(checkpoint, part.module + ".weight");
  if (!pair.base)
    return refuse(down.name, "is for '" + part.module + ".weight', which " +
                                 checkpoint.path() +
                                 " does not have; the adapter may belong to "
                                 "another model");
  const CheckpointTensor &base = *pair.base;
  if (base.shape.size() != 2 || (!base.encoding && !isReal(base)))
    return refuse(down.name,
                  "is for '" + base.name + "' of shape " +
                      formatShape(base.shape) +
                      ", which is no matrix of F32, F16, BF16 or F64");
  pair.table = part.table;
  pair.transposed = part.table || config.transposed;
  pair.inner = base.shape[pair.transposed ? 0 : 1];
  pair.outer = base.shape[pair.transposed ? 1 : 0];
  // The tensors say the rank, too; it counts where a pattern's was not read.
  pair.rank = config.rankOf(part.module)
                  .value_or(down.shape.empty() ? 0 : down.shape.front());
  if (!checkPart(down, {pair.rank, pair.inner}, base, diags) ||
      !checkPart(*pair.up, {pair.outer, pair.rank}, base, diags))
    return std::nullopt;
  if (pair.rank < 1)
    return refuse(down.name, "has no rows, which is no rank");
  pair.scale = config.scaleOf(part.module, pair.rank);
  return pair;
}

bool LoraFile::list(std::vector<LoraPart> &pairs, std::vector<LoraPart> &others,
                    DiagnosticEngine &diags) const {
  constexpr std::string_view start = "base_model.model.";
  for (const TensorInfo &tensor : file->tensors()) {
    if (tensor.name.rfind(start, 0) != 0)
      return fail(tensor.name,
                  "has no name of PEFT; expected " + std::string(start) + "...",
                  diags);
    std::string name = tensor.name.substr(start.size()), module;
    if (cutEnd(name, ".lora_B.weight", module) ||
        cutEnd(name, ".lora_embedding_B", module) ||
        cutEnd(name, ".lora_magnitude_vector", module) ||
        cutEnd(name, ".lora_magnitude_vector.weight", module)) {
      if (!file->find(std::string(start) + module + ".lora_A.weight") &&
          !file->find(std::string(start) + module + ".lora_embedding_A"))
        return fail(tensor.name, "is there without its A", diags);
      continue;
    }
    bool table = cutEnd(name, ".lora_embedding_A", module);
    if (table || cutEnd(name, ".lora_A.weight", module))
      pairs.push_back({&tensor, module, table});
    else
      others.push_back({&tensor, name, false});
  }
  return true;
}

std::optional<LoraFile> LoraFile::open(const std::string &folder,
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
  LoraFile lora{std::move(*config),
                std::make_unique<runtime::SafetensorsFile>()};
  std::string error;
  if (!lora.file->open(path.string(), error)) {
    diags.error({}, error);
    return std::nullopt;
  }
  return lora;
}

} // namespace attune
