//===- SessionGroup.cpp - Sequences that are decoded together -------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SessionGroup.h"

#include "../Cuda/CudaPages.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace attune::runtime {

/// Whether a cache of `decode_batch` has the shape of one of `decode`, with the
/// sequences before all else. Positions or not, all else is of fixed size.
static bool isSameCache(const ArgInfo &batched, const ArgInfo &single) {
  if (batched.name != single.name || batched.dtype != single.dtype ||
      batched.shape.size() != single.shape.size() || batched.shape.size() < 2 ||
      batched.shape[0].symbol.empty())
    return false;
  for (size_t d = 1; d < batched.shape.size(); ++d) {
    bool isMoved = d == 1 && !single.positionsOutside();
    const DimInfo &own = batched.shape[d],
                  &other = single.shape[isMoved ? 0 : d];
    if (own.size != other.size || own.symbol != other.symbol ||
        (!own.symbol.empty() && own.symbol.rfind("capacity", 0) != 0))
      return false;
  }
  return batched.window == single.window && batched.slack == single.slack;
}

/// The entry that decodes sequences of unequal length, if it takes what
/// `decode` takes and gives logits alone.
static const EntryInfo *findBatchStep(const CompiledModel &model) {
  const EntryInfo *decode = model.entry("decode");
  const EntryInfo *batch = model.entry("decode_batch");
  if (!decode || !batch || decode->recomputeBeyond)
    return nullptr;
  std::vector<const ArgInfo *> own, other;
  bool hasLengths = false;
  unsigned outputs = 0;
  for (const ArgInfo &arg : decode->args)
    if (arg.kind == ArgKind::Cache)
      other.push_back(&arg);
  for (const ArgInfo &arg : batch->args) {
    if (arg.kind == ArgKind::Cache)
      own.push_back(&arg);
    if (arg.kind == ArgKind::Lengths && arg.window == 0)
      hasLengths = arg.shape.size() == 1 && arg.dtype == DType::I64;
    if (arg.kind != ArgKind::Output)
      continue;
    ++outputs;
    if (arg.name != "logits" || arg.dtype != DType::F32 ||
        arg.shape.size() != 2)
      return nullptr;
  }
  const ArgInfo *ids = batch->findIds();
  if (!ids || !hasLengths || outputs != 1 || own.empty() ||
      own.size() != other.size())
    return nullptr;
  for (size_t i = 0; i < own.size(); ++i)
    if (!isSameCache(*own[i], *other[i]))
      return nullptr;
  return batch;
}

SessionGroup::SessionGroup(CompiledModel &model, unsigned count,
                           int64_t capacity)
    : model(model), capacity(capacity), sessions(count), room(capacity) {
  const EntryInfo *entry = count > 1 ? findBatchStep(model) : nullptr;
  if (!entry)
    return;
  together.reset(new Invocation(model, *entry));
  for (unsigned i = 0; i < count; ++i) {
    rowOf.push_back(i);
    sessionAt.push_back(i);
  }
}

SessionGroup::~SessionGroup() = default;

std::string SessionGroup::whyAlone() const {
  if (together)
    return "";
  if (!model.info().decodesAlone.empty())
    return model.info().decodesAlone;
  return model.entry("decode_batch")
             ? "its steps for one text and for several do not fit together"
             : "it was compiled without the step for several, which takes a "
               "tokenizer";
}

/// Nothing is touched yet, so that memory is taken when sessions need it.
bool SessionGroup::reserveCaches(Error &error) {
  if (!preparePages(error))
    return false;
  for (const ArgInfo &arg : together->entry().args) {
    if (arg.kind != ArgKind::Cache)
      continue;
    Cache cache;
    uint64_t bytes;
    std::vector<int64_t> shape = {count()};
    for (size_t d = 1; d < arg.shape.size(); ++d) {
      bool grows = !arg.shape[d].symbol.empty();
      shape.push_back(grows ? arg.roomOf(room) : arg.shape[d].size);
    }
    cache.paged = source && isPaged(arg);
    bool fits = byteSize(shape, dtypeBytes(arg.dtype), bytes);
    if (fits && cache.paged) {
      if (!source->reserve(bytes, cache.base, error))
        return false;
    } else if (!fits ||
               !cache.data.reserve(model, bytes, "keys and values", error)) {
      return error.set(ExitResourceLimit,
                       "no memory for keys and values of " +
                           std::to_string(count()) + " sequences of " +
                           std::to_string(capacity) + " positions");
    } else {
      cache.base = cache.data.data();
    }
    cache.bytes = bytes / count();
    caches.push_back(std::move(cache));
  }
  return !source || addPages(error);
}

/// Tells a session where its caches are.
void SessionGroup::place(unsigned number) {
  Session *session = sessions[number].get();
  if (!session)
    return;
  session->room = session->caches[0].share ? session->room : room;
  session->owner = pages ? this : nullptr;
  session->numberOfOwner = number;
  for (size_t i = 0; i < caches.size(); ++i) {
    session->caches[i].paged = caches[i].paged;
    session->caches[i].place = caches[i].base + rowOf[number] * caches[i].bytes;
  }
}

Session *SessionGroup::open(unsigned number, Error &error) {
  std::unique_ptr<Session> &session = sessions[number];
  if (session)
    return session.get();
  if (together && caches.empty() && !reserveCaches(error)) {
    caches.clear();
    return nullptr;
  }
  session = Session::create(model, /*batch=*/1, capacity,
                            /*ownsCaches=*/!together, error);
  if (session && together)
    place(number);
  return session.get();
}

/// Exchanges what two rows hold; positions that neither has are not touched.
bool SessionGroup::swapRows(unsigned row, unsigned other, Error &error) {
  unsigned &first = sessionAt[row], &second = sessionAt[other];
  const Session &any = *sessions[sessions[first] ? first : second];
  if (pages && !pages->swap(row, other, error))
    return false;
  for (size_t c = 0; c < caches.size(); ++c) {
    Cache &cache = caches[c];
    if (cache.paged)
      continue;
    const Session::Cache &form = any.caches[c];
    auto heldBy = [&](unsigned number) {
      const Session *session = sessions[number].get();
      return session ? session->bytesHeld(session->caches[c]) : 0;
    };
    uint64_t ofFirst = heldBy(first), ofSecond = heldBy(second);
    uint64_t plane = cache.bytes / form.planes;
    uint64_t both = std::min(ofFirst, ofSecond);
    uint64_t longest = std::max(ofFirst, ofSecond);
    for (uint64_t i = 0; i < form.planes; ++i) {
      uint8_t *a = cache.base + row * cache.bytes + i * plane;
      uint8_t *b = cache.base + other * cache.bytes + i * plane;
      uint8_t *to = ofFirst > ofSecond ? b : a, *from = to == a ? b : a;
      if (model.exchange(a, b, both, error) &&
          model.copy(to + both, from + both, longest - both, error))
        continue;
      // Neither has what it had.
      for (unsigned number : {first, second})
        if (sessions[number])
          sessions[number]->reset();
      return false;
    }
  }
  std::swap(first, second);
  for (unsigned number : {first, second}) {
    rowOf[number] = number == first ? row : other;
    place(number);
  }
  return true;
}

bool SessionGroup::bringToFront(const std::vector<unsigned> &members,
                                Error &error) {
  std::vector<bool> isMember(count(), false);
  for (unsigned number : members)
    isMember[number] = true;
  unsigned place = 0;
  for (unsigned number : members) {
    if (rowOf[number] < members.size())
      continue;
    while (isMember[sessionAt[place]])
      ++place;
    if (!swapRows(place, rowOf[number], error))
      return false;
  }
  return true;
}

/// Tells the step what the rings of its sequences hold: `heldOfRows`.
bool SessionGroup::bindRings(const Session &any, Error &error) {
  const std::vector<Session::Ring> &rings = any.rings;
  for (size_t i = 0; i < rings.size(); ++i) {
    const std::vector<int64_t> &held = heldOfRows[i];
    int64_t most = *std::max_element(held.begin(), held.end());
    if (!together->bindHeld(rings[i].window, most, held.data(), error))
      return false;
    if (together->hasDim(rings[i].capacity) &&
        !together->bindDim(rings[i].capacity, rings[i].room, "the sessions",
                           error))
      return false;
  }
  return true;
}

/// Tells the step how many vectors of pictures each of its sequences has read:
/// `taken`, by row.
bool SessionGroup::bindTaken(Error &error) {
  for (const ArgInfo &arg : together->entry().args) {
    if (arg.kind != ArgKind::Input || arg.inserted < 0)
      continue;
    InputTensor tensor;
    tensor.name = arg.name;
    tensor.dtype = DType::I64;
    tensor.shape = {static_cast<int64_t>(takenOfRows.size())};
    tensor.data = takenOfRows.data();
    if (!together->bindInput(tensor, error))
      return false;
  }
  return true;
}

bool SessionGroup::step(const std::vector<unsigned> &members,
                        const std::vector<int64_t> &ids, Error &error) {
  std::vector<Error> errors;
  step(members, ids, errors);
  for (const Error &each : errors)
    if (each.code != ExitSuccess) {
      error = each;
      return false;
    }
  return true;
}

void SessionGroup::step(const std::vector<unsigned> &members,
                        const std::vector<int64_t> &ids,
                        std::vector<Error> &errors) {
  errors.assign(members.size(), Error());
  // A step of one sequence reads pictures that are left.
  bool alone = !together || members.size() == 1;
  for (unsigned number : members)
    alone |= !sessions[number]->vectorsRead();
  if (alone) {
    for (size_t i = 0; i < members.size(); ++i)
      sessions[members[i]]->step(&ids[i], 1, errors[i]);
    return;
  }
  // Those that there is no room for do not keep the others back.
  std::vector<size_t> able;
  std::vector<unsigned> ableMembers;
  std::vector<int64_t> ableIds;
  for (size_t i = 0; i < members.size(); ++i) {
    if (!findRoom(members[i], errors[i]))
      continue;
    able.push_back(i);
    ableMembers.push_back(members[i]);
    ableIds.push_back(ids[i]);
  }
  Error error;
  if (able.empty() || stepTogether(ableMembers, ableIds, error))
    return;
  for (size_t i : able)
    errors[i] = error;
}

/// Makes room for a token.
bool SessionGroup::findRoom(unsigned number, Error &error) {
  if (lengthOf(number) >= capacity)
    return error.set(ExitInternalError, "a sequence has no room for a step");
  return sessions[number]->makeRoom(1, error) &&
         (!pages || hold(number, lengthOf(number) + 1, error));
}

/// All of them have the token then, or none has.
bool SessionGroup::stepTogether(const std::vector<unsigned> &members,
                                const std::vector<int64_t> &ids, Error &error) {
  if (!bringToFront(members, error))
    return false;
  auto rows = static_cast<int64_t>(members.size());
  heldOfRows.resize(sessions[members[0]]->rings.size());
  for (std::vector<int64_t> &held : heldOfRows)
    held.resize(members.size());
  idsOfRows.resize(members.size());
  lengthsOfRows.resize(members.size());
  takenOfRows.resize(members.size());
  std::vector<int64_t> adapters(members.size());
  for (size_t i = 0; i < members.size(); ++i) {
    unsigned row = rowOf[members[i]];
    idsOfRows[row] = ids[i];
    lengthsOfRows[row] = lengthOf(members[i]);
    takenOfRows[row] = *sessions[members[i]]->vectorsRead();
    const Session &session = *sessions[members[i]];
    adapters[row] = session.adapter();
    for (size_t ring = 0; ring < heldOfRows.size(); ++ring)
      heldOfRows[ring][row] = session.length() - session.rings[ring].first;
  }
  // What may fail comes before the first of them has its token.
  for (unsigned number : members)
    if (!sessions[number]->reserveLogits(error))
      return false;
  if (!bindStep(rows, std::move(adapters), error))
    return false;
  if (!together->run(error)) {
    for (unsigned number : members)
      sessions[number]->undo(lengthOf(number), /*ran=*/true);
    return false;
  }
  uint64_t rowBytes =
      static_cast<uint64_t>(sessions[members[0]]->vocabulary()) * sizeof(float);
  for (unsigned number : members) {
    Session &session = *sessions[number];
    session.setLogits(logits.data() + rowOf[number] * rowBytes);
    session.noteInserted(&idsOfRows[rowOf[number]], 1);
    ++session.past;
  }
  return true;
}

/// What is told of the rows of a step, in the first `rows` rows.
bool SessionGroup::bindStep(int64_t rows, std::vector<int64_t> adapters,
                            Error &error) {
  const Session &any = *sessions[sessionAt[0]];
  uint64_t bytes;
  if (!byteSize({rows, any.vocabulary()}, sizeof(float), bytes) ||
      !logits.reserve(bytes))
    return error.set(ExitResourceLimit, "no memory for the logits");

  together->reset();
  InputTensor tensor;
  tensor.name = together->entry().findIds()->name;
  tensor.dtype = DType::I64;
  tensor.shape = {rows, 1};
  tensor.data = idsOfRows.data();
  if (!together->bindInput(tensor, error) ||
      !together->bindLengths(lengthsOfRows.data(), error) ||
      !bindTaken(error) ||
      !Session::bindAdapters(*together, std::move(adapters), adapterOfRows,
                             error))
    return false;
  if (together->hasDim("capacity") &&
      !together->bindDim("capacity", any.room, "the sessions", error))
    return false;
  if (!bindRings(any, error))
    return false;
  for (unsigned i = 0; i < caches.size(); ++i)
    if (!together->bindCache(i, caches[i].base, error))
      return false;
  if (!together->resolve(
          *std::max_element(lengthsOfRows.begin(), lengthsOfRows.end()), "",
          error))
    return false;
  together->setOutput(0, logits.data());
  return true;
}

const float *SessionGroup::stepAll(unsigned number, const int64_t *ids,
                                   int64_t count, Error &error) {
  Session &session = *sessions[number];
  session.allLogits = std::move(allLogits); // they change places
  const float *rows = session.stepAll(ids, count, error);
  allLogits = std::move(session.allLogits);
  if (rows)
    session.setLogits(reinterpret_cast<const uint8_t *>(
        rows + (count - 1) * session.vocabulary()));
  return rows;
}

} // namespace attune::runtime
