//===- CApiSets.cpp - Sequences that are decoded together, in C -----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CApi.h"
#include "Generation/SessionGroup.h"
#include "MutexLock.h"

#include <algorithm>

using namespace attune::runtime;

struct attune_set {
  attune_instance *instance = nullptr; ///< null: it was closed first
  std::unique_ptr<SessionGroup> group; ///< null then, too
  int64_t capacity = 0;
};

/// A set has as many sequences as a mistake would not ask for.
static constexpr uint32_t mostSequences = 65536;

void attune::runtime::abandonSets(attune_instance &instance) {
  for (attune_set *set : instance.sets) {
    set->group.reset();
    set->instance = nullptr;
  }
}

attune_set *attune_set_open(attune_instance *instance, uint32_t sequences,
                            int64_t capacity) {
  if (!instance) {
    failCall(ATTUNE_BAD_CALL, "attune_set_open: the instance is null");
    return nullptr;
  }
  MutexLock lock(instance->mutex);
  CompiledModel &model = *instance->model;
  if (capacity == 0)
    capacity = model.info().context;
  if (sequences == 0 || sequences > mostSequences || capacity <= 0) {
    failCall(ATTUNE_BAD_CALL,
             "attune_set_open: a set has 1 to 65536 sequences of a positive "
             "capacity");
    return nullptr;
  }
  if (model.encodes()) {
    failCall(ATTUNE_BAD_INPUT, "model '" + model.info().name +
                                   "' has an encoder; each text of it is a "
                                   "session of its own");
    return nullptr;
  }
  std::unique_ptr<attune_set> set(new attune_set());
  set->instance = instance;
  set->capacity = capacity;
  set->group.reset(new SessionGroup(model, sequences, capacity));
  Error error;
  if (!set->group->open(0, error)) { // whatever stands against all of them
    failCall(error);
    return nullptr;
  }
  instance->sets.push_back(set.get());
  return set.release();
}

void attune_set_close(attune_set *set) {
  if (set && set->instance) {
    MutexLock lock(set->instance->mutex);
    auto &open = set->instance->sets;
    open.erase(std::remove(open.begin(), open.end(), set), open.end());
    set->group.reset();
  }
  delete set;
}

namespace {
/// A call on a set: the instance's mutex, and the sequences that it names.
struct SetCall {
  explicit SetCall(attune_set *set) : set(set) {
    if (!set || !set->instance)
      return;
    mutex = &set->instance->mutex;
    pthread_mutex_lock(mutex);
  }
  ~SetCall() {
    if (mutex)
      pthread_mutex_unlock(mutex);
  }
  SetCall(const SetCall &) = delete;

  /// A sequence's session; null, with an error and `status`, if there is none.
  Session *session(uint32_t sequence) {
    if (!mutex) {
      status = failCall(ATTUNE_BAD_CALL, set ? "the set's instance was closed"
                                             : "the set is null");
      return nullptr;
    }
    if (sequence >= set->group->count()) {
      status =
          failCall(ATTUNE_BAD_CALL,
                   "there is no sequence " + std::to_string(sequence) +
                       " in a set of " + std::to_string(set->group->count()));
      return nullptr;
    }
    Error error;
    Session *found = set->group->open(sequence, error);
    if (!found)
      status = failCall(error);
    return found;
  }

  attune_set *set;
  attune_status status = ATTUNE_OK; ///< of the last sequence that was not found
  pthread_mutex_t *mutex = nullptr;
};
} // namespace

attune_status attune_set_append(attune_set *set, uint32_t sequence,
                                const int64_t *ids, int64_t count) {
  SetCall call(set);
  Session *session = call.session(sequence);
  if (!session)
    return call.status;
  if (!ids || count <= 0)
    return failCall(ATTUNE_BAD_CALL,
                    "attune_set_append: needs at least one token");
  Error error;
  return session->step(ids, count, error) ? ATTUNE_OK : failCall(error);
}

attune_status attune_set_see(attune_set *set, uint32_t sequence,
                             attune_picture *const *pictures,
                             uint32_t num_pictures) {
  SetCall call(set);
  Session *session = call.session(sequence);
  return session
             ? seeInSession(*set->instance, *session, pictures, num_pictures)
             : call.status;
}

attune_status attune_set_choose_adapter(attune_set *set, uint32_t sequence,
                                        const char *name) {
  SetCall call(set);
  Session *session = call.session(sequence);
  return session ? chooseSessionAdapter(set->instance->model->info(), *session,
                                        name)
                 : call.status;
}

attune_status attune_set_step(attune_set *set, const uint32_t *sequences,
                              const int64_t *ids, uint32_t count) {
  SetCall call(set);
  if (!call.session(0))
    return call.status;
  if (!sequences || !ids || count == 0)
    return failCall(ATTUNE_BAD_CALL,
                    "attune_set_step: needs at least one sequence");
  SessionGroup &group = *set->group;
  std::vector<bool> isNamed(group.count(), false);
  for (uint32_t i = 0; i < count; ++i) {
    const Session *session = call.session(sequences[i]);
    if (!session)
      return call.status;
    if (isNamed[sequences[i]])
      return failCall(ATTUNE_BAD_CALL, "attune_set_step: sequence " +
                                           std::to_string(sequences[i]) +
                                           " is named twice");
    isNamed[sequences[i]] = true;
    if (session->length() >= set->capacity)
      return failCall(ATTUNE_BAD_INPUT,
                      "sequence " + std::to_string(sequences[i]) +
                          " is full: it has " + std::to_string(set->capacity) +
                          " positions");
  }
  std::vector<unsigned> members(sequences, sequences + count);
  std::vector<int64_t> tokens(ids, ids + count);
  Error error;
  return group.step(members, tokens, error) ? ATTUNE_OK : failCall(error);
}

int32_t attune_set_steps_together(attune_set *set) {
  SetCall call(set);
  return call.session(0) && set->group->stepsTogether();
}

const float *attune_set_logits(attune_set *set, uint32_t sequence) {
  SetCall call(set);
  Session *session = call.session(sequence);
  if (!session)
    return nullptr;
  if (session->length() == 0) {
    failCall(ATTUNE_BAD_CALL,
             "attune_set_logits: the sequence has no tokens yet");
    return nullptr;
  }
  Error error;
  const float *logits = session->logits(error);
  if (!logits)
    failCall(error);
  return logits;
}

int64_t attune_set_vocabulary(attune_set *set) {
  SetCall call(set);
  Session *session = call.session(0);
  return session ? session->vocabulary() : -1;
}

int64_t attune_set_length(attune_set *set, uint32_t sequence) {
  SetCall call(set);
  Session *session = call.session(sequence);
  return session ? session->length() : -1;
}

attune_status attune_set_fork(attune_set *set, uint32_t from, uint32_t to) {
  SetCall call(set);
  Session *source = call.session(from);
  Session *target = source ? call.session(to) : nullptr;
  if (!target)
    return call.status;
  Error error;
  return target->copyFrom(*source, source->length(), error) &&
                 target->see(source->pictures(), error)
             ? ATTUNE_OK
             : failCall(error);
}

attune_status attune_set_rewind(attune_set *set, uint32_t sequence,
                                int64_t length) {
  SetCall call(set);
  Session *session = call.session(sequence);
  if (!session)
    return call.status;
  if (length < 0 || length > session->length())
    return failCall(ATTUNE_BAD_CALL,
                    "attune_set_rewind: there is no such position");
  Error error;
  return session->rewind(length, error) ? ATTUNE_OK : failCall(error);
}

int64_t attune_set_save(attune_set *set, uint32_t sequence, void *data,
                        int64_t capacity) {
  SetCall call(set);
  Session *session = call.session(sequence);
  if (!session)
    return -1;
  auto bytes = static_cast<int64_t>(session->countSaved());
  if (!data || capacity < bytes)
    return bytes;
  Error error;
  if (session->save(static_cast<uint8_t *>(data), error))
    return bytes;
  failCall(error);
  return -1;
}

attune_status attune_set_restore(attune_set *set, uint32_t sequence,
                                 const void *data, int64_t bytes) {
  SetCall call(set);
  Session *session = call.session(sequence);
  if (!session)
    return call.status;
  if (!data || bytes < 0)
    return failCall(ATTUNE_BAD_CALL, "attune_set_restore: the data is null");
  Error error;
  bool works = session->restore(static_cast<const uint8_t *>(data),
                                static_cast<uint64_t>(bytes), error);
  return works ? ATTUNE_OK : failCall(error);
}
