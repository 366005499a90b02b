//===- Session.cpp - Autoregressive decoding with a cache -----------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SessionGroup.h"

#include "attune/Runtime/CompiledModel.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace attune::runtime {

/// Each candidate is a round of two kernels, one after the other: at some
/// number, which is an estimate, a copy of all logits takes no longer.
static constexpr int64_t mostOfRow = 128;

/// The entry that guesses are checked with, if it takes the caches of `decode`.
static const EntryInfo *findAllTokens(const CompiledModel &model,
                                      const EntryInfo &decode) {
  const EntryInfo *all = model.entry("decode_all");
  if (!all || model.device())
    return nullptr;
  std::vector<std::string> own, other;
  for (const ArgInfo &arg : decode.args)
    if (arg.kind == ArgKind::Cache)
      own.push_back(arg.name);
  unsigned outputs = 0;
  for (const ArgInfo &arg : all->args) {
    if (arg.kind == ArgKind::Cache)
      other.push_back(arg.name);
    if (arg.kind != ArgKind::Output)
      continue;
    ++outputs;
    if (arg.name != "logits" || arg.dtype != DType::F32 ||
        arg.shape.size() != 3)
      return nullptr;
  }
  return outputs == 1 && own == other ? all : nullptr;
}

std::unique_ptr<Session> Session::create(CompiledModel &model, int64_t batch,
                                         int64_t capacity, Error &error) {
  if (model.info().codes.books() > 0) {
    error.badInput("model '" + model.info().name +
                   "' writes codes of several codebooks and no text; "
                   "'generate' makes sounds of them");
    return nullptr;
  }
  return create(model, batch, capacity, /*ownsCaches=*/true, error);
}

std::unique_ptr<Session> Session::createOfCodes(CompiledModel &model,
                                                int64_t batch, int64_t capacity,
                                                Error &error) {
  return create(model, batch, capacity, /*ownsCaches=*/true, error);
}

std::unique_ptr<Session> Session::create(CompiledModel &model, int64_t batch,
                                         int64_t capacity, bool ownsCaches,
                                         Error &error) {
  const EntryInfo *entry = model.entry("decode");
  if (!entry) {
    error.badInput("model '" + model.info().name +
                   "' has no decode entry: only a causal language model with "
                   "a vocabulary head generates, alone or after an encoder");
    return nullptr;
  }
  auto internal = [&](const std::string &what) {
    error.set(ExitInternalError, "entry 'decode' " + what);
    return nullptr;
  };
  std::unique_ptr<Session> session(new Session(model, *entry));
  session->batch = batch;
  session->maxLength = session->room = capacity;
  session->keepsTokens = entry->recomputeBeyond == 0;
  if (const EntryInfo *encode = model.entry("encode"))
    session->encoder.reset(new Invocation(model, *encode));
  if (const EntryInfo *span = model.entry("decode_span"))
    session->spans.reset(new Invocation(model, *span));
  const ArgInfo *ids = entry->findIds();
  session->idsNames = model.info().codes.inputs;
  if (ids && session->idsNames.empty())
    session->idsNames.push_back(ids->name);
  session->inserted = entry->findInserted();
  for (const ArgInfo &arg : entry->args)
    for (size_t i = 1; arg.inserted >= 0 && i < arg.shape.size(); ++i)
      if (arg.shape[i].size < 1 ||
          arg.shape.size() != session->inserted->shape.size() ||
          arg.shape[i].size != session->inserted->shape[i].size)
        return internal("inserts vectors of no known number or size");
  session->addRings();
  bool hasLogits = false;
  unsigned outputs = 0;
  for (size_t i = 0; i < entry->args.size(); ++i) {
    const ArgInfo &arg = entry->args[i];
    if (arg.kind == ArgKind::Output) {
      if (arg.name == "logits" && arg.shape.size() == 2 &&
          arg.dtype == DType::F32 && arg.shape[1].symbol.empty()) {
        hasLogits = true;
        session->logitsOutput = outputs;
        session->vocabularySize = arg.shape[1].size;
      } else if (arg.name == "candidate_ids" && arg.dtype == DType::I64) {
        session->idsOutput = static_cast<int>(outputs);
      } else if (arg.name == "candidate_logits" && arg.dtype == DType::F32) {
        session->valuesOutput = static_cast<int>(outputs);
      }
      ++outputs;
    } else if (arg.kind == ArgKind::Cache) {
      uint64_t bytes;
      std::vector<int64_t> shape;
      const Ring *ring = session->findRing(arg.window);
      if (arg.window && !ring)
        return internal("does not say what its rings hold");
      std::string rows = ring ? ring->capacity : "capacity";
      for (const DimInfo &dim : arg.shape)
        shape.push_back(dim.symbol.empty()   ? dim.size
                        : dim.symbol == rows ? arg.roomOf(capacity)
                                             : batch);
      Cache cache;
      cache.window = arg.window;
      if (arg.sharers > 1) {
        cache.share = static_cast<uint64_t>(arg.shareOf(capacity));
        session->room = arg.roomOf(capacity);
      }
      cache.outside = arg.positionsOutside();
      size_t ofBatch = cache.outside ? 0 : 1, ofLayers = cache.outside ? 2 : 0;
      bool grows = false;
      for (size_t d = 0; d < shape.size(); ++d) {
        auto size = static_cast<uint64_t>(shape[d]);
        if (arg.shape[d].symbol == rows) {
          grows = true;
          cache.positionBytes = dtypeBytes(arg.dtype);
        } else if (grows) {
          cache.positionBytes *= size;
        } else if (d != ofBatch) {
          cache.planes *= size;
        }
      }
      if (!grows)
        cache.planes = 1;
      session->keepsTokens &= grows;
      if (shape.size() <= ofLayers || shape.size() < 2 ||
          shape[ofBatch] != batch)
        return internal("has a cache of shape " + arg.formatShape());
      if (!byteSize(shape, dtypeBytes(arg.dtype), bytes)) {
        error.set(ExitResourceLimit,
                  "no memory for a cache of shape " + formatShape(shape));
        return nullptr;
      }
      if (ownsCaches &&
          !cache.data.reserve(model, bytes, "keys and values", error))
        return nullptr;
      cache.place = cache.data.data();
      cache.layers = static_cast<uint64_t>(shape[ofLayers]);
      cache.rowBytes =
          bytes / std::max<uint64_t>(cache.layers * shape[ofBatch], 1);
      session->caches.push_back(std::move(cache));
    }
  }
  bool ranks = session->idsOutput >= 0 && session->valuesOutput >= 0;
  if (session->idsNames.empty() || !hasLogits || outputs != (ranks ? 3 : 1)) {
    // IR that was written by hand may have an entry of this name.
    error.badInput("model '" + model.info().name +
                   "' cannot generate: its entry 'decode' does not map ids "
                   "[batch, seq] of i64 to 'logits' [batch, V] of f32");
    return nullptr;
  }
  const EntryInfo *all = findAllTokens(model, *entry);
  if (all && batch == 1 && session->keepsTokens)
    session->allTokens.reset(new Invocation(model, *all));
  if (!session->logitsMemory.reserve(model, batch * session->vocabularySize * 4,
                                     "the logits", error))
    return nullptr;
  int64_t most = batch * session->mostCandidates();
  if (!session->candidateIdsBuffer.reserve(most * sizeof(int64_t)) ||
      !session->candidateLogitsBuffer.reserve(most * sizeof(float))) {
    error.set(ExitResourceLimit, "no memory for the likeliest tokens");
    return nullptr;
  }
  return session;
}

int64_t Session::mostCandidates() const {
  // A step for a whole group gives logits alone.
  if (!caches.empty() && !caches.front().data.data())
    return 0;
  return idsOutput < 0 ? 0 : std::min(mostOfRow, vocabularySize);
}

const float *Session::logits(Error &error) {
  if ((!model.device() || model.ranksToTell()) && candidates > 0) {
    error.set(ExitInternalError, "a step that gave candidates has no logits");
    return nullptr;
  }
  if (copied)
    return reinterpret_cast<const float *>(logitsCopy.data());
  const uint8_t *read =
      logitsMemory.read(logitsCopy, batch * vocabularySize * 4, error);
  copied = model.device() && read;
  return reinterpret_cast<const float *>(read);
}

bool Session::reserveLogits(Error &error) {
  uint64_t bytes = static_cast<uint64_t>(vocabularySize) * sizeof(float);
  return !model.device() || logitsCopy.reserve(bytes) ||
         error.set(ExitResourceLimit, "no memory for a copy of the logits");
}

void Session::setLogits(const uint8_t *from) {
  uint64_t bytes = static_cast<uint64_t>(vocabularySize) * sizeof(float);
  copied = model.device() != nullptr;
  std::memcpy(copied ? logitsCopy.data() : logitsMemory.data(), from, bytes);
}

bool Session::encode(const std::vector<InputTensor> &inputs, Error &error) {
  if (!encoder)
    return error.badInput("the model has no encoder");
  auto has = [](const Invocation &entry, std::string_view name) {
    for (const ArgInfo &arg : entry.entry().args)
      if (arg.kind == ArgKind::Input && arg.name == name)
        return true;
    return false;
  };
  encoded = false;
  reset();
  memory.clear();
  seen.clear();
  auto remember = [&](const std::string &name, DType dtype,
                      const std::vector<int64_t> &shape, bool made) {
    Memory tensor;
    tensor.name = name;
    tensor.dtype = dtype;
    tensor.shape = shape;
    uint64_t bytes;
    bool fits = byteSize(shape, dtypeBytes(dtype), bytes);
    if (fits && made) {
      if (!tensor.made.reserve(model, bytes, "the encoder's outputs", error))
        return false;
    } else if (!fits || !tensor.given.reserve(bytes)) {
      return error.set(ExitResourceLimit, "no memory for '" + name +
                                              "' of shape " +
                                              formatShape(shape));
    }
    memory.push_back(std::move(tensor));
    return true;
  };
  encoder->reset();
  std::string names;
  for (const InputTensor &input : inputs) {
    names += (names.empty() ? "" : ", ") + std::string(input.name);
    if (!has(*encoder, input.name))
      continue;
    if (!encoder->bindInput(input, error))
      return false;
    if (!has(invocation, input.name))
      continue;
    if (!remember(std::string(input.name), input.dtype, input.shape,
                  /*made=*/false))
      return false;
    uint64_t bytes = 0;
    byteSize(input.shape, dtypeBytes(input.dtype), bytes);
    std::memcpy(memory.back().given.data(), input.data, bytes);
  }
  if (!encoder->resolve(/*past=*/0, names.empty() ? "" : "what holds " + names,
                        error))
    return false;
  size_t first = memory.size();
  for (const TensorDecl &output : encoder->outputs())
    if (!remember(output.name, output.dtype, output.shape, /*made=*/true))
      return false;
  for (unsigned i = 0; i < encoder->outputs().size(); ++i)
    encoder->setOutput(i, memory[first + i].made.data());
  encoded = encoder->run(error);
  return encoded;
}

bool Session::select(const int64_t *rows, Error &error) {
  bool same = true;
  for (int64_t row = 0; row < batch; ++row)
    same &= rows[row] == row;
  if (same)
    return true;
  if (!history.empty()) {
    std::vector<std::vector<int64_t>> chosen;
    for (int64_t row = 0; row < batch; ++row)
      chosen.push_back(history[rows[row]]);
    history = std::move(chosen);
  }
  uint64_t largest = 0;
  for (Cache &cache : caches)
    largest = std::max(largest, cache.rowBytes * static_cast<uint64_t>(batch));
  if (!spare.data() &&
      !spare.reserve(model, largest, "reordered keys and values", error))
    return false;
  for (Cache &cache : caches) {
    for (uint64_t layer = 0; layer < cache.layers; ++layer) {
      auto own = [&](int64_t row) {
        auto at = static_cast<uint64_t>(row),
             all = static_cast<uint64_t>(batch);
        return cache.place +
               (cache.outside ? at * cache.layers + layer : layer * all + at) *
                   cache.rowBytes;
      };
      for (int64_t row = 0; row < batch; ++row)
        if (!model.copy(spare.data() + row * cache.rowBytes, own(row),
                        cache.rowBytes, error))
          return false;
      for (int64_t row = 0; row < batch; ++row)
        if (!model.copy(own(row), spare.data() + rows[row] * cache.rowBytes,
                        cache.rowBytes, error))
          return false;
    }
  }
  return true;
}

bool Session::bindAdapters(Invocation &call, std::vector<int64_t> given,
                           std::vector<int64_t> &kept, Error &error) {
  for (const ArgInfo &arg : call.entry().args) {
    if (arg.kind != ArgKind::Input || arg.defaultValue != DefaultValue::Adapter)
      continue;
    kept = std::move(given);
    InputTensor tensor;
    tensor.name = arg.name;
    tensor.dtype = DType::I64;
    tensor.shape = {static_cast<int64_t>(kept.size())};
    tensor.data = kept.data();
    return call.bindInput(tensor, error);
  }
  return true;
}

bool Session::bindMemory(Invocation &call, Error &error) {
  for (const Memory &tensor : memory) {
    InputTensor input;
    input.name = tensor.name;
    input.dtype = tensor.dtype;
    input.shape = tensor.shape;
    input.fromModel = tensor.made.data() != nullptr;
    input.data = input.fromModel ? tensor.made.data() : tensor.given.data();
    if (!call.bindInput(input, error))
      return false;
  }
  return true;
}

bool Session::step(const int64_t *ids, int64_t count, Error &error) {
  if (count <= 0)
    return error.badInput("a step needs at least one token");
  if (count > maxLength - past)
    return error.badInput("the sequence has " + std::to_string(past + count) +
                          " positions, but there is room for " +
                          std::to_string(maxLength));
  if (encoder && !encoded && !inserted)
    return error.badInput("nothing was encoded that could be decoded");
  int64_t beyond = invocation.entry().recomputeBeyond;
  if (beyond == 0 || past > beyond)
    return run(ids, count, error);
  // No row is appended to what a step keeps before the step has worked.
  std::vector<std::vector<int64_t>> rows = history;
  rows.resize(rowsOfIds());
  for (int64_t row = 0; row < rowsOfIds(); ++row)
    rows[row].insert(rows[row].end(), ids + row * count,
                     ids + (row + 1) * count);
  if (past == 0 || past + count <= beyond) {
    if (!run(ids, count, error))
      return false;
  } else {
    std::vector<int64_t> all;
    for (const std::vector<int64_t> &row : rows)
      all.insert(all.end(), row.begin(), row.end());
    auto length = past + count;
    reset();
    if (!run(all.data(), length, error)) {
      reset(); // the caches hold neither the old nor the new
      return false;
    }
  }
  if (past > beyond)
    rows.clear(); // nobody asks for them any more
  history = std::move(rows);
  return true;
}

/// Binds all but the outputs of a call that appends to the caches.
bool Session::bind(Invocation &call, const int64_t *ids, int64_t count,
                   Error &error) {
  call.reset();
  InputTensor tensor;
  tensor.dtype = DType::I64;
  tensor.shape = {batch, count};
  for (size_t book = 0; book < idsNames.size(); ++book) {
    tensor.name = idsNames[book];
    tensor.data = ids + static_cast<int64_t>(book) * batch * count;
    if (!call.bindInput(tensor, error))
      return false;
  }
  if (!bindMemory(call, error) || !orderVectors(ids, count, error) ||
      !bindInserted(call, error))
    return false;
  if (!bindAdapters(call, std::vector<int64_t>(batch, adapterNumber),
                    adapterOfRows, error))
    return false;
  if (call.hasDim("capacity") &&
      !call.bindDim("capacity", room, "the session", error))
    return false;
  if (candidates > 0 && call.hasDim("candidates") &&
      !call.bindDim("candidates", candidates, "the session", error))
    return false;
  if (!bindRings(call, error))
    return false;
  for (unsigned i = 0; i < caches.size(); ++i)
    if (!call.bindCache(i, caches[i].place, error))
      return false;
  return call.resolve(past, "", error);
}

/// Appends to the caches by one call, or by more of them where the room in
/// rings or pictures ask for that; `setOutputs` gets each with the number of
/// tokens before it.
template <typename F>
bool Session::inPieces(Invocation &call, const int64_t *ids, int64_t count,
                       Error &error, F setOutputs) {
  int64_t before = past;
  for (int64_t done = 0; done < count;) {
    const int64_t *part = ids + done;
    Span span = {count - done, false};
    // Guesses are behind all pictures.
    bool works = &call == allTokens.get() ||
                 findSpan(part, count, count - done, span, error);
    Invocation &used = span.seeEachOther ? *spans : call;
    int64_t piece = span.seeEachOther ? span.count : countPiece(span.count);
    if (piece < count && rowsOfIds() > 1) {
      idsOfPiece.clear();
      for (int64_t row = 0; row < rowsOfIds(); ++row)
        idsOfPiece.insert(idsOfPiece.end(), part + row * count,
                          part + row * count + piece);
      part = idsOfPiece.data();
    }
    works = works && makeRoom(piece, error) &&
            (!owner || owner->hold(numberOfOwner, past + piece, error)) &&
            bind(used, part, piece, error);
    bool ran = works;
    if (works) {
      setOutputs(used, done);
      works = used.run(error);
    }
    if (!works) {
      undo(before, ran);
      return false;
    }
    noteInserted(part, piece);
    past += piece;
    done += piece;
  }
  return true;
}

void Session::undo(int64_t before, bool ran) {
  Error none;
  if ((ran && !keepsTokens) || !rewind(before, none))
    reset();
}

void Session::setOutputs(Invocation &call) {
  call.setOutput(logitsOutput, logitsMemory.data());
  if (idsOutput < 0)
    return;
  call.setOutput(idsOutput, candidateIdsBuffer.data());
  call.setOutput(valuesOutput, candidateLogitsBuffer.data());
}

/// Calls the decode entry, which appends to the caches.
bool Session::run(const int64_t *ids, int64_t count, Error &error) {
  copied = false;
  return inPieces(invocation, ids, count, error,
                  [&](Invocation &call, int64_t) { setOutputs(call); });
}

bool Session::rehearse(int64_t count, Error &error) {
  // Where a window's cache is smaller than the text, pieces are short.
  for (const Ring &ring : rings)
    if (ring.room < maxLength)
      count = std::min(count, std::max<int64_t>(ring.slack / 2, 1));
  if (!rehearse(invocation, count, error))
    return false;
  if (!spans)
    return true;
  bool ofPicture = inserted->bidirectional == Bidirectional::Image;
  return rehearse(*spans, ofPicture ? inserted->each : count, error);
}

bool Session::rehearse(Invocation &call, int64_t count, Error &error) {
  count = std::min(count, maxLength);
  std::vector<int64_t> ids(static_cast<size_t>(rowsOfIds() * count));
  past = maxLength - count;
  for (Ring &ring : rings)
    ring.first = std::max<int64_t>(past + count - ring.room, 0);
  int64_t wanted = std::exchange(candidates, mostCandidates());
  bool works = bind(call, ids.data(), count, error);
  if (works) {
    setOutputs(call);
    works = call.rehearse(error);
  }
  candidates = wanted;
  reset();
  return works;
}

const float *Session::stepAll(const int64_t *ids, int64_t count, Error &error) {
  uint64_t bytes;
  if (!allTokens || count <= 0 || count > maxLength - past) {
    error.set(ExitInternalError, "a step of guessed tokens is not possible");
    return nullptr;
  }
  if (!byteSize({count, vocabularySize}, sizeof(float), bytes) ||
      !allLogits.reserve(bytes)) {
    error.set(ExitResourceLimit, "no memory for the logits of guessed tokens");
    return nullptr;
  }
  auto *logits = reinterpret_cast<float *>(allLogits.data());
  bool works = inPieces(*allTokens, ids, count, error,
                        [&](Invocation &call, int64_t done) {
                          call.setOutput(0, logits + done * vocabularySize);
                        });
  return works ? logits : nullptr;
}

} // namespace attune::runtime
