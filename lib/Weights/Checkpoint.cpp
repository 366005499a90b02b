//===- Checkpoint.cpp - The tensors of a checkpoint -------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Weights/Checkpoint.h"

#include "PartsOfSet.h"
#include "PlainNumbers.h"
#include "Quantized/QuantizedTensors.h"
#include "attune/Spec/Json.h"
#include "attune/Weights/GgufFile.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

namespace fs = std::filesystem;

namespace attune {

using runtime::SafetensorsFile;
using runtime::TensorInfo;
using spec::Value;

/// Also a link to nothing is there: the file that it should lead to is missing,
/// which opening it says, while a folder without weights is compiled as such.
static bool isThere(const fs::path &path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

static bool isFolder(const fs::path &path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

static bool endsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() &&
         text.substr(text.size() - end.size()) == end;
}

static std::vector<std::string> shardsBeside(const std::string &path) {
  return partsOfSet(path, ".safetensors");
}

std::string Checkpoint::findIn(const std::string &folder) {
  for (const char *name : {"model.safetensors", "model.safetensors.index.json"})
    if (fs::path path = fs::path(folder) / name; isThere(path))
      return path.string();
  // Another index, or shards without one: the first stands for all, and
  // openShards says which are missing.
  std::vector<std::string> others, shards;
  std::error_code error;
  for (const fs::directory_entry &entry :
       fs::directory_iterator(folder, error)) {
    std::string name = entry.path().filename().string();
    if ((endsWith(name, ".safetensors") ||
         endsWith(name, ".safetensors.index.json")) &&
        name.rfind("adapter_", 0) != 0 && name.rfind("consolidated", 0) != 0) {
      others.push_back(entry.path().string());
      if (!shardsBeside(others.back()).empty())
        shards.push_back(others.back());
    }
  }
  std::sort(others.begin(), others.end());
  for (const std::string &other : others)
    if (endsWith(other, ".json"))
      return other;
  if (shards.empty())
    return others.size() == 1 ? others.front() : "";
  std::vector<std::string> set = shardsBeside(shards.front());
  bool isOneSet =
      std::all_of(shards.begin(), shards.end(), [&](const std::string &shard) {
        return std::find(set.begin(), set.end(), shard) != set.end();
      });
  return isOneSet ? *std::min_element(shards.begin(), shards.end()) : "";
}

/// Tensor `number` of those that `stack` has one behind the other, along its
/// first dimension; the number and a dot stand at `place` of its name.
static CheckpointTensor partOfStack(const CheckpointTensor &stack, size_t place,
                                    int64_t number) {
  CheckpointTensor part = stack;
  part.name.insert(place, std::to_string(number) + ".");
  part.shape.erase(part.shape.begin());
  part.bytes /= static_cast<uint64_t>(stack.shape[0]);
  part.offset += static_cast<uint64_t>(number) * part.bytes;
  part.data += static_cast<uint64_t>(number) * part.bytes;
  return part;
}

const CheckpointTensor *Checkpoint::find(std::string_view name) const {
  auto it = byName.find(name);
  return it == byName.end() ? nullptr : it->second;
}

void Checkpoint::leaveOut(const std::vector<std::string> &prefixes) {
  for (const std::string &prefix : prefixes) {
    auto it = byName.lower_bound(prefix);
    while (it != byName.end() && it->first.rfind(prefix, 0) == 0)
      it = byName.erase(it);
  }
}

/// Linear layers that sentence-transformers keeps in folders of their own: what
/// their tensors' names start with, and the file.
static std::vector<std::pair<std::string, std::string>>
denseBeside(const std::string &path) {
  std::vector<std::pair<std::string, std::string>> found;
  std::error_code error;
  fs::path folder = fs::path(path).parent_path();
  for (const fs::directory_entry &entry :
       fs::directory_iterator(folder.empty() ? fs::path(".") : folder, error)) {
    std::string name = entry.path().filename().string();
    size_t digits = name.find_first_not_of("0123456789");
    fs::path file = entry.path() / "model.safetensors";
    if (digits && digits != std::string::npos &&
        name.substr(digits) == "_Dense" && isThere(file))
      found.emplace_back(name + ".", file.string());
  }
  return found;
}

std::optional<Checkpoint> Checkpoint::open(const std::string &path,
                                           DiagnosticEngine &diags) {
  std::string target = path;
  if (isFolder(path)) {
    target = findIn(path);
    if (target.empty()) {
      std::string hint;
      for (const char *other :
           {"pytorch_model.bin", "tf_model.h5", "pytorch_model.bin.index.json"})
        if (isThere(fs::path(path) / other))
          hint = std::string("; ") + other +
                 " must be saved as safetensors "
                 "first";
      diags.error({}, path +
                          ": holds neither model.safetensors nor "
                          "model.safetensors.index.json" +
                          hint);
      return std::nullopt;
    }
  }
  Checkpoint checkpoint;
  checkpoint.filePath = target;
  bool ok = endsWith(target, ".json") ? checkpoint.openIndex(target, diags)
            : isGgufFile(target)      ? checkpoint.openGguf(target, diags)
                                      : checkpoint.openShards(target, diags);
  if (!ok)
    return std::nullopt;
  checkpoint.unwrapNames();
  for (const auto &[prefix, path] : denseBeside(target)) {
    auto file = std::make_unique<SafetensorsFile>();
    std::string error;
    if (!file->open(path, error)) {
      diags.error({}, error);
      return std::nullopt;
    }
    for (TensorInfo info : file->tensors()) {
      info.name = prefix + info.name;
      checkpoint.add({info});
    }
    checkpoint.files.push_back(std::move(file));
  }
  if (!checkpoint.splitExperts(diags) || !checkpoint.unpackQuantized(diags) ||
      !checkpoint.joinWeightNorms(diags))
    return std::nullopt;
  checkpoint.takeDoubles();
  return checkpoint;
}

bool Checkpoint::openShards(const std::string &path, DiagnosticEngine &diags) {
  std::vector<std::string> shards = shardsBeside(path);
  if (shards.empty())
    shards.push_back(path);
  size_t missing = 0;
  std::string first;
  for (const std::string &shard : shards)
    if (shard != path && !isThere(shard) && missing++ == 0)
      first = shard;
  if (missing) {
    diags.error({}, path + ": is one of " + std::to_string(shards.size()) +
                        " shards, of which " + std::to_string(missing) +
                        (missing == 1 ? " is missing: " : " are missing: ") +
                        first + (missing == 1 ? "" : " and more") +
                        "; download all of them into one folder");
    return false;
  }
  for (const std::string &shard : shards)
    if (!openFile(shard, diags))
      return false;
  return true;
}

bool Checkpoint::openFile(const std::string &path, DiagnosticEngine &diags) {
  auto file = std::make_unique<SafetensorsFile>();
  std::string error;
  if (!file->open(path, error)) {
    diags.error({}, error);
    return false;
  }
  for (const TensorInfo &info : file->tensors())
    add({info});
  files.push_back(std::move(file));
  return true;
}

bool Checkpoint::openGguf(const std::string &path, DiagnosticEngine &diags) {
  std::optional<gguf::File> file = gguf::openFile(path, diags);
  if (!file)
    return false;
  for (CheckpointTensor &tensor : gguf::renameTensors(*file, encodings))
    add(std::move(tensor));
  gguf = std::make_shared<const gguf::File>(std::move(*file));
  return true;
}

/// The "quantization_config" of a config.json; null: it says nothing of it.
static const Value *findQuantization(const Value &root) {
  const Value *object = root.find("quantization_config");
  if (const Value *text = root.find("text_config"); text && !object)
    object = text->find("quantization_config");
  return object && object->isObject() ? object : nullptr;
}

/// The quantization of the folder of `path`. What config.json says of it and
/// cannot be read, its importer refuses; folders of ModelOpt may say it in
/// hf_quant_config.json alone. Returns whether that could be read.
static bool readQuantization(const std::string &path,
                             std::optional<QuantizationConfig> &config,
                             DiagnosticEngine &diags) {
  struct Silent final : DiagnosticEngine {
    void report(const Diagnostic &) override {}
  } silent;
  fs::path folder = fs::path(path).parent_path();
  std::string problem;
  if (fs::path file = folder / "config.json"; isThere(file)) {
    auto text = readSourceFile(file.string(), silent);
    if (!text)
      return true;
    spec::LineTable lines(text);
    spec::Reporter reporter(lines, silent);
    std::optional<Value> root =
        spec::parseJson(*text, reporter, spec::JsonDialect::Python);
    if (!root)
      return true;
    if (const Value *object = findQuantization(*root)) {
      config = readQuantizationConfig(*object, problem);
      return true;
    }
  }
  fs::path beside = folder / "hf_quant_config.json";
  if (!isThere(beside))
    return true;
  auto text = readSourceFile(beside.string(), diags);
  if (!text)
    return false;
  spec::LineTable lines(text);
  spec::Reporter reporter(lines, diags);
  std::optional<Value> root =
      spec::parseJson(*text, reporter, spec::JsonDialect::Python);
  if (!root || reporter.getNumErrors())
    return false;
  config = readModelOptFile(*root, problem);
  if (config)
    return true;
  const Value *object = root->find("quantization");
  reporter.error((object ? *object : *root).offset,
                 object ? "/quantization" : "", problem);
  return false;
}

bool Checkpoint::unpackQuantized(DiagnosticEngine &diags) {
  if (gguf)
    return true;
  std::optional<QuantizationConfig> config;
  if (!readQuantization(filePath, config, diags))
    return false;
  if (!config)
    return true;
  std::vector<std::string> names;
  for (const auto &[name, tensor] : byName)
    names.push_back(name);
  QuantizedTensors quantized;
  std::string problem;
  if (!makeQuantizedTensors(
          *config, names,
          [this](const std::string &name) { return find(name); }, quantized,
          problem)) {
    diags.error({}, filePath + ": " + problem);
    return false;
  }
  for (const std::string &name : quantized.used)
    byName.erase(name);
  for (CheckpointTensor &tensor : quantized.made)
    add(std::move(tensor));
  encodings = std::move(quantized.encodings);
  return true;
}

/// Where a name that is made for a stack of a GGUF file has its expert.
static constexpr std::string_view kExpert = "{e}.";

/// Where the number of an expert belongs in the name of a stack; npos: the
/// tensor is none.
static size_t placeOfExpert(const CheckpointTensor &tensor) {
  size_t at = tensor.name.find(kExpert);
  if (at != std::string::npos) {
    size_t rank = endsWith(tensor.name, ".bias") ? 2 : 3;
    return tensor.shape.size() == rank ? at : std::string::npos;
  }
  // The last two are Granite's.
  for (std::string_view owner : {".experts.", ".block_sparse_moe.input_linear.",
                                 ".block_sparse_moe.output_linear."})
    if (size_t found = tensor.name.find(owner); found != std::string::npos)
      at = found + owner.size();
  if (at == std::string::npos)
    return at;
  // "experts.7.up_proj.weight" is of one expert.
  bool named = at < tensor.name.size() && tensor.name[at] >= '0' &&
               tensor.name[at] <= '9';
  size_t least = endsWith(tensor.name, "_bias") ? 2 : 3;
  return named || tensor.shape.size() < least || tensor.shape[0] < 1
             ? std::string::npos
             : at;
}

bool Checkpoint::splitExperts(DiagnosticEngine &diags) {
  // A stack of few bytes may name any number of experts.
  constexpr int64_t mostParts = 1 << 20;
  int64_t parts = 0;
  std::vector<const CheckpointTensor *> stacks;
  for (const auto &[name, tensor] : byName) {
    if (placeOfExpert(*tensor) == std::string::npos)
      continue;
    stacks.push_back(tensor);
    if (tensor->shape[0] > mostParts - parts) {
      diags.error({}, filePath + ": tensor '" + name + "' stacks " +
                          std::to_string(tensor->shape[0]) +
                          " experts; expected at most " +
                          std::to_string(mostParts) +
                          " matrices in all stacks of a checkpoint");
      return false;
    }
    parts += tensor->shape[0];
  }
  for (const CheckpointTensor *named : stacks) {
    byName.erase(named->name);
    CheckpointTensor stack = *named;
    size_t place = placeOfExpert(stack);
    if (stack.name.compare(place, kExpert.size(), kExpert) == 0)
      stack.name.erase(place, kExpert.size());
    for (int64_t e = 0; e < stack.shape[0]; ++e)
      add(partOfStack(stack, place, e));
  }
  return true;
}

void Checkpoint::add(CheckpointTensor tensor) {
  const CheckpointTensor &kept = all.emplace_back(std::move(tensor));
  byName.emplace(kept.name, &kept);
}

namespace {
/// Values in memory.
struct Given : TensorEncoding {
  std::vector<float> values;
  const char *name() const override { return "values"; }
  bool isQuantized() const override { return false; }
  void decode(const CheckpointTensor &, int64_t first, int64_t count,
              float *out) const override {
    std::copy_n(values.begin() + first, count, out);
  }
};
} // namespace

void Checkpoint::takeDoubles() {
  std::unique_ptr<TensorEncoding> doubles;
  for (CheckpointTensor &tensor : all) {
    if (tensor.encoding || tensor.dtype != runtime::DType::F64)
      continue;
    if (!doubles)
      doubles = std::make_unique<PlainNumbers<double>>("F64");
    tensor.encoding = doubles.get();
    tensor.dtype = runtime::DType::F32;
  }
  if (doubles)
    encodings.push_back(std::move(doubles));
}

void Checkpoint::addValues(std::string name, std::vector<int64_t> shape,
                           std::vector<float> values) {
  auto given = std::make_unique<Given>();
  given->values = std::move(values);
  CheckpointTensor tensor;
  tensor.name = std::move(name);
  tensor.dtype = runtime::DType::F32;
  tensor.shape = std::move(shape);
  tensor.encoding = given.get();
  tensor.bytes = given->values.size() * sizeof(float);
  add(std::move(tensor));
  encodings.push_back(std::move(given));
}

void Checkpoint::release(const uint8_t *first, uint64_t count) const {
  for (const auto &file : files)
    file->release(first, count);
  if (gguf)
    gguf->release(first, count);
}

const std::vector<int32_t> &TensorEncoding::order() const {
  static const std::vector<int32_t> none;
  return none;
}

StoredTensor storedAs(const CheckpointTensor &tensor) {
  StoredTensor result{tensor.encoding->form(), 0};
  if (result.form.ordered) {
    result.order = 0xcbf29ce484222325u; // FNV-1a
    for (int32_t column : tensor.encoding->order())
      result.order = (result.order ^ uint32_t(column)) * 0x100000001b3u;
  }
  return result;
}

/// A shard lies beside its index: a name that leads elsewhere is refused, since
/// the index may come from anywhere.
static bool isPlainName(const std::string &name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
}

bool Checkpoint::openIndex(const std::string &path, DiagnosticEngine &diags) {
  auto file = readSourceFile(path, diags);
  if (!file)
    return false;
  spec::LineTable lines(file);
  spec::Reporter reporter(lines, diags);
  std::optional<Value> root = spec::parseJson(*file, reporter);
  if (!root || reporter.getNumErrors())
    return false;
  const Value *map = root->find("weight_map");
  if (!map || !map->isObject()) {
    const Value &where = map ? *map : *root;
    reporter.error(where.offset, map ? "/weight_map" : "",
                   std::string(map ? "expected an object, found "
                                   : "expected an object with \"weight_map\", "
                                     "found ") +
                       spec::describe(where.kind) +
                       (map || !root->isObject() ? "" : " without it"));
    return false;
  }

  // Null: a shard that was tried and could not be opened.
  std::map<std::string, const SafetensorsFile *> shards;
  fs::path folder = fs::path(path).parent_path();
  auto open = [&](const Value &name, const std::string &pointer) {
    auto [it, isNew] = shards.emplace(name.text, nullptr);
    if (!isNew)
      return it->second;
    if (!isPlainName(name.text)) {
      reporter.error(name.offset, pointer,
                     "expected the name of a file beside the index, found " +
                         spec::quote(name.text));
      return it->second;
    }
    auto shard = std::make_unique<SafetensorsFile>();
    std::string error;
    if (!shard->open((folder / name.text).string(), error)) {
      reporter.error(name.offset, pointer, "cannot open this shard: " + error);
      return it->second;
    }
    it->second = shard.get();
    files.push_back(std::move(shard));
    return it->second;
  };

  for (const Value::Member &member : map->members) {
    std::string pointer = spec::child("/weight_map", member.key);
    if (!member.value.isString()) {
      reporter.error(member.value.offset, pointer,
                     std::string("expected the name of a shard, found ") +
                         spec::describe(member.value.kind));
      continue;
    }
    const SafetensorsFile *shard = open(member.value, pointer);
    if (!shard)
      continue;
    const TensorInfo *info = shard->find(member.key);
    if (!info) {
      reporter.error(member.value.offset, pointer,
                     "the shard " + spec::quote(member.value.text) +
                         " does not hold this tensor");
      continue;
    }
    add({*info});
  }
  return reporter.getNumErrors() == 0;
}

} // namespace attune
