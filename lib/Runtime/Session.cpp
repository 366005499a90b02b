//===- Session.cpp - Autoregressive decoding with a cache -----------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/CompiledModel.h"

namespace attune::runtime {

std::unique_ptr<Session> Session::create(CompiledModel &model, int64_t batch,
                                         int64_t capacity, Error &error) {
  const EntryInfo *entry = model.entry("decode");
  if (!entry) {
    error.badInput("model '" + model.info().name +
                   "' has no decode entry: only a causal language model with "
                   "a vocabulary head generates");
    return nullptr;
  }
  auto internal = [&](const std::string &what) {
    error.set(ExitInternalError, "entry 'decode' " + what);
    return nullptr;
  };
  std::unique_ptr<Session> session(new Session(model, *entry));
  session->batch = batch;
  session->maxLength = capacity;
  bool hasIds = false, hasLogits = false;
  unsigned outputs = 0;
  for (size_t i = 0; i < entry->args.size(); ++i) {
    const ArgInfo &arg = entry->args[i];
    if (arg.kind == ArgKind::Input && arg.name == "input_ids") {
      hasIds = arg.shape.size() == 2 && arg.dtype == DType::I64;
      session->idsArg = static_cast<unsigned>(i);
    } else if (arg.kind == ArgKind::Output) {
      if (arg.name == "logits" && arg.shape.size() == 2 &&
          arg.dtype == DType::F32 && arg.shape[1].symbol.empty()) {
        hasLogits = true;
        session->logitsOutput = outputs;
        session->vocabularySize = arg.shape[1].size;
      }
      ++outputs;
    } else if (arg.kind == ArgKind::Cache) {
      uint64_t bytes;
      std::vector<int64_t> shape;
      for (const DimInfo &dim : arg.shape)
        shape.push_back(dim.symbol.empty()         ? dim.size
                        : dim.symbol == "batch"    ? batch
                        : dim.symbol == "capacity" ? capacity
                                                   : -1);
      Buffer cache;
      if (!byteSize(shape, dtypeBytes(arg.dtype), bytes))
        return internal("has a cache of shape " + arg.formatShape());
      if (!cache.reserve(bytes)) {
        error.set(ExitResourceLimit, "no memory for a cache of " +
                                         std::to_string(bytes) + " bytes");
        return nullptr;
      }
      session->caches.push_back(std::move(cache));
    }
  }
  if (!hasIds || !hasLogits || outputs != 1)
    return internal("does not map input_ids [batch, seq] to logits [batch, V]");
  if (!session->logitsBuffer.reserve(batch * session->vocabularySize * 4)) {
    error.set(ExitResourceLimit, "no memory for the logits");
    return nullptr;
  }
  return session;
}

bool Session::step(const int64_t *ids, int64_t count, Error &error) {
  if (count <= 0)
    return error.badInput("a step needs at least one token");
  if (count > maxLength - past)
    return error.badInput("the sequence has " + std::to_string(past + count) +
                          " positions, but there is room for " +
                          std::to_string(maxLength));
  invocation.reset();
  InputTensor tensor;
  tensor.name = "input_ids";
  tensor.dtype = DType::I64;
  tensor.shape = {batch, count};
  tensor.data = ids;
  if (!invocation.bindInput(tensor, error))
    return false;
  if (invocation.hasDim("capacity") &&
      !invocation.bindDim("capacity", maxLength, "the session", error))
    return false;
  for (unsigned i = 0; i < caches.size(); ++i)
    if (!invocation.bindCache(i, caches[i].data(), error))
      return false;
  if (!invocation.resolve(past, "", error))
    return false;
  invocation.setOutput(logitsOutput, logitsBuffer.data());
  if (!invocation.run(error))
    return false;
  past += count;
  return true;
}

} // namespace attune::runtime
