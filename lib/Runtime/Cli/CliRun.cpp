//===- CliRun.cpp - One forward pass from file to file --------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/Cli.h"
#include "attune/Runtime/Heatmap.h"
#include "attune/Runtime/WholeFile.h"

#include <algorithm>
#include <cstring>

namespace attune::runtime {

static const ArgInfo *findInput(const EntryInfo &entry, std::string_view name) {
  for (const ArgInfo &arg : entry.args)
    if (arg.kind == ArgKind::Input && arg.name == name)
      return &arg;
  return nullptr;
}

/// A file often holds more than the model's inputs (expected outputs, say). But
/// one that is nearly called like an optional input is probably meant for it.
static void warnOfMisspelled(const EntryInfo &entry,
                             const SafetensorsFile &file,
                             const Messages &messages) {
  std::vector<std::string_view> absent;
  for (const ArgInfo &arg : entry.args)
    if (arg.kind == ArgKind::Input && !file.find(arg.name))
      absent.push_back(arg.name);
  for (const TensorInfo &tensor : file.tensors()) {
    if (absent.empty() || findInput(entry, tensor.name))
      continue;
    std::string nearest = nearestName(tensor.name, absent);
    if (!nearest.empty())
      messages.warning(
          "tensor '" + tensor.name +
              "' is not an input of the model and was ignored; did "
              "you mean '" +
              nearest + "'?",
          file.path());
  }
}

static std::string namesIn(const SafetensorsFile &file) {
  std::string names;
  size_t shown = 0;
  for (const TensorInfo &tensor : file.tensors()) {
    if (++shown > 8)
      return names + ", ...";
    names += (names.empty() ? "" : ", ") + tensor.name.substr(0, 80);
  }
  return names.empty() ? "nothing" : names;
}

static bool runToPictures(CompiledModel &model, Invocation &invocation,
                          const RunOptions &options,
                          const SafetensorsFile &file, const Messages &messages,
                          Error &error) {
  std::vector<Buffer> buffers;
  if (!invocation.bindOutputs(buffers, error) || !invocation.run(error))
    return false;
  std::vector<const void *> data;
  for (const Buffer &buffer : buffers)
    data.push_back(buffer.data());
  return writeHeatmaps(options.outputs, model.info(), invocation, data, file,
                       messages, error);
}

static bool runToNpy(Invocation &invocation, const RunOptions &options,
                     Error &error) {
  const std::vector<TensorDecl> &outputs = invocation.outputs();
  if (outputs.size() != 1) {
    std::string names;
    for (const TensorDecl &decl : outputs)
      names += (names.empty() ? "" : ", ") + decl.name;
    return error.badInput(options.outputs +
                          ": a .npy file holds one tensor, but the model has " +
                          std::to_string(outputs.size()) + " outputs (" +
                          names + "); write them as .safetensors");
  }
  std::vector<Buffer> buffers;
  return invocation.bindOutputs(buffers, error) && invocation.run(error) &&
         writeNpy(options.outputs, outputs[0], buffers[0].data(), error);
}

namespace {
/// The rows of a batch, which groups of ranks share.
struct BatchRows {
  int64_t all = 0, begin = 0, end = 0; ///< `all` is 0: nothing is shared

  int64_t own() const { return end - begin; }
};
} // namespace

static bool isBatched(const ArgInfo &arg) {
  return !arg.shape.empty() && arg.shape[0].symbol == "batch";
}

/// What this group of ranks computes of the tensors in the file.
static BatchRows shareBatch(const CompiledModel &model, const EntryInfo &entry,
                            const SafetensorsFile &file) {
  BatchRows rows;
  for (const ArgInfo &arg : entry.args) {
    // Tensors with rows in another dimension are not put together.
    for (size_t i = 1; i < arg.shape.size(); ++i)
      if (arg.shape[i].symbol == "batch")
        return {};
    if (arg.kind == ArgKind::Output && !isBatched(arg))
      return {};
    const TensorInfo *tensor =
        arg.kind == ArgKind::Input ? file.find(arg.name) : nullptr;
    if (!tensor || !isBatched(arg) || tensor->shape.empty())
      continue;
    if (rows.all && rows.all != tensor->shape[0])
      return {}; // which is no batch, and is said where inputs are bound
    rows.all = tensor->shape[0];
  }
  auto count = static_cast<size_t>(std::max<int64_t>(rows.all, 0));
  rows.begin = int64_t(model.firstOfGroup(count, model.group()));
  rows.end = int64_t(model.firstOfGroup(count, model.group() + 1));
  return rows;
}

/// Sends the outputs of this group's rows to the first one, or puts those of
/// the others into the file behind its own.
static bool putTogether(CompiledModel &model, const Invocation &invocation,
                        const BatchRows &rows, std::vector<Buffer> &buffers,
                        SafetensorsWriter &writer, Error &error) {
  auto bytesOf = [&](const TensorDecl &decl, int64_t of) {
    uint64_t bytes = 0;
    byteSize(decl.shape, dtypeBytes(decl.dtype), bytes);
    return bytes / uint64_t(rows.own()) * uint64_t(of);
  };
  const std::vector<TensorDecl> &outputs = invocation.outputs();
  if (model.group() > 0) {
    std::string all;
    for (size_t i = 0; i < outputs.size(); ++i)
      all.append(reinterpret_cast<const char *>(buffers[i].data()),
                 bytesOf(outputs[i], rows.own()));
    model.collect(model.group(), all);
    return true;
  }
  for (int group = 1; group < model.numGroups(); ++group) {
    auto count = static_cast<size_t>(rows.all);
    auto begin = int64_t(model.firstOfGroup(count, group));
    auto end = int64_t(model.firstOfGroup(count, group + 1));
    if (begin == end)
      continue;
    std::string all;
    model.collect(group, all);
    size_t at = 0;
    for (unsigned i = 0; i < outputs.size(); ++i) {
      uint64_t bytes = bytesOf(outputs[i], end - begin);
      if (all.size() < at + bytes)
        return error.set(ExitInternalError,
                         "a group of ranks has other outputs");
      std::memcpy(writer.data(i) + bytesOf(outputs[i], begin), all.data() + at,
                  bytes);
      at += bytes;
    }
  }
  return true;
}

bool executeRun(CompiledModel &model, const RunOptions &options,
                const Messages &messages, Error &error) {
  const EntryInfo *entry = model.entry("forward");
  if (!entry)
    return error.badInput(
        (model.info().name.empty() ? "the model"
                                   : "model '" + model.info().name + "'") +
        " has no forward entry; the function to run is called @forward and "
        "has the attribute attune.entry");
  if (!keepsInput(options.inputs, options.outputs, error) ||
      !model.chooseAdapter(options.adapter, error))
    return false;
  std::string_view suffix = fileSuffix(options.outputs);
  bool wholeFile = suffix == ".html" || suffix == ".npy";
  Invocation invocation(model, *entry);
  for (const auto &[name, value] : options.dims)
    if (!invocation.bindDim(name, value, "--dim", error))
      return false;

  SafetensorsFile file;
  std::string origin;
  BatchRows rows;
  if (!options.inputs.empty()) {
    std::string reason;
    if (!file.open(options.inputs, reason))
      return error.badInput(reason);
    if (model.numGroups() > 1 && !wholeFile && options.dims.empty())
      rows = shareBatch(model, *entry, file);
  }
  if (model.group() > 0 && rows.own() == 0)
    return true;
  if (!options.inputs.empty()) {
    origin = options.inputs + ", which holds " + namesIn(file);
    for (const TensorInfo &tensor : file.tensors()) {
      if (!findInput(*entry, tensor.name))
        continue;
      InputTensor input;
      input.name = tensor.name;
      input.dtype = tensor.dtype;
      input.shape = tensor.shape;
      input.data = tensor.data;
      if (rows.all && isBatched(*findInput(*entry, tensor.name))) {
        uint64_t bytes = 0;
        byteSize(tensor.shape, dtypeBytes(tensor.dtype), bytes);
        input.shape[0] = rows.own();
        input.data = static_cast<const uint8_t *>(tensor.data) +
                     bytes / uint64_t(rows.all) * uint64_t(rows.begin);
      }
      if (!invocation.bindInput(input, error)) {
        error.message = options.inputs + ": " + error.message;
        return false;
      }
    }
    warnOfMisspelled(*entry, file, messages);
  }
  if (!invocation.resolve(/*past=*/0, origin, error))
    return false;

  if (suffix == ".html")
    return runToPictures(model, invocation, options, file, messages, error);
  if (suffix == ".npy")
    return runToNpy(invocation, options, error);

  // The kernels write into the file's own pages: no copy of an output exists.
  SafetensorsWriter writer;
  std::string reason;
  std::vector<Buffer> buffers;
  if (model.group() > 0)
    return invocation.bindOutputs(buffers, error) && invocation.run(error) &&
           putTogether(model, invocation, rows, buffers, writer, error);
  std::vector<TensorDecl> whole = invocation.outputs();
  for (TensorDecl &decl : whole)
    if (rows.all)
      decl.shape[0] = decl.shape[0] / rows.own() * rows.all;
  if (!writer.create(options.outputs, whole, reason))
    return error.badInput(reason);
  for (unsigned i = 0; i < whole.size(); ++i)
    invocation.setOutput(i, writer.data(i));
  if (!invocation.run(error) ||
      (rows.all &&
       !putTogether(model, invocation, rows, buffers, writer, error)))
    return false;
  return writer.commit(reason) || error.badInput(reason);
}

} // namespace attune::runtime
