//===- CliRun.cpp - One forward pass from file to file --------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/Cli.h"
#include "attune/Runtime/Heatmap.h"
#include "attune/Runtime/WholeFile.h"

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

/// Memory for every output, bound to the invocation.
static bool bindOutputs(Invocation &invocation, std::vector<Buffer> &buffers,
                        Error &error) {
  buffers = std::vector<Buffer>(invocation.outputs().size());
  for (unsigned i = 0; i < buffers.size(); ++i) {
    const TensorDecl &decl = invocation.outputs()[i];
    uint64_t bytes = 0;
    if (!byteSize(decl.shape, dtypeBytes(decl.dtype), bytes) ||
        !buffers[i].reserve(bytes))
      return error.set(ExitResourceLimit, "no memory for output '" + decl.name +
                                              "' of shape " +
                                              formatShape(decl.shape));
    invocation.setOutput(i, buffers[i].data());
  }
  return true;
}

static bool runToPictures(CompiledModel &model, Invocation &invocation,
                          const RunOptions &options,
                          const SafetensorsFile &file, const Messages &messages,
                          Error &error) {
  std::vector<Buffer> buffers;
  if (!bindOutputs(invocation, buffers, error) || !invocation.run(error))
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
  return bindOutputs(invocation, buffers, error) && invocation.run(error) &&
         writeNpy(options.outputs, outputs[0], buffers[0].data(), error);
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
  if (isSameFile(options.inputs, options.outputs))
    return error.badInput(options.outputs +
                          ": is the file of inputs and would be replaced by "
                          "the outputs; name another file");
  if (!model.chooseAdapter(options.adapter, error))
    return false;
  Invocation invocation(model, *entry);
  for (const auto &[name, value] : options.dims)
    if (!invocation.bindDim(name, value, "--dim", error))
      return false;

  SafetensorsFile file;
  std::string origin;
  if (!options.inputs.empty()) {
    std::string reason;
    if (!file.open(options.inputs, reason))
      return error.badInput(reason);
    origin = options.inputs + ", which holds " + namesIn(file);
    for (const TensorInfo &tensor : file.tensors()) {
      if (!findInput(*entry, tensor.name))
        continue;
      InputTensor input;
      input.name = tensor.name;
      input.dtype = tensor.dtype;
      input.shape = tensor.shape;
      input.data = tensor.data;
      if (!invocation.bindInput(input, error)) {
        error.message = options.inputs + ": " + error.message;
        return false;
      }
    }
    warnOfMisspelled(*entry, file, messages);
  }
  if (!invocation.resolve(/*past=*/0, origin, error))
    return false;

  std::string_view suffix = fileSuffix(options.outputs);
  if (suffix == ".html")
    return runToPictures(model, invocation, options, file, messages, error);
  if (suffix == ".npy")
    return runToNpy(invocation, options, error);

  // The kernels write into the file's own pages: no copy of an output exists.
  SafetensorsWriter writer;
  std::string reason;
  if (!writer.create(options.outputs, invocation.outputs(), reason))
    return error.badInput(reason);
  for (unsigned i = 0; i < invocation.outputs().size(); ++i)
    invocation.setOutput(i, writer.data(i));
  if (!invocation.run(error))
    return false;
  return writer.commit(reason) || error.badInput(reason);
}

} // namespace attune::runtime
