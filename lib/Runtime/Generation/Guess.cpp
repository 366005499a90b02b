//===- Guess.cpp - Guessing the next tokens -------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/Guess.h"

#include <algorithm>
#include <dlfcn.h>

namespace attune::runtime {

std::vector<int64_t> lookUp(const std::vector<int64_t> &history, size_t count) {
  size_t length = history.size();
  for (size_t n = 4; n >= 2; --n) {
    if (length < n + 1)
      continue;
    const int64_t *tail = history.data() + length - n;
    for (size_t at = length - n; at-- > 0;)
      if (std::equal(tail, tail + n, history.data() + at)) {
        const int64_t *next = history.data() + at + n;
        size_t rest = static_cast<size_t>(history.data() + length - next);
        return {next, next + std::min(count, rest)};
      }
  }
  return {};
}

//===----------------------------------------------------------------------===//
// DraftModel
//===----------------------------------------------------------------------===//

/// The functions of attune.h in the library of a draft.
struct DraftModel::Library {
  void *handle = nullptr;
  decltype(&attune_last_error) lastError;
  decltype(&attune_open) open;
  decltype(&attune_close) close;
  decltype(&attune_context) context;
  decltype(&attune_session_open) openSession;
  decltype(&attune_session_close) closeSession;
  decltype(&attune_session_step) step;
  decltype(&attune_session_logits) logits;
  decltype(&attune_session_vocabulary) vocabulary;
  decltype(&attune_session_rewind) rewind;

  template <typename T> bool find(const char *name, T &function) {
    function = reinterpret_cast<T>(dlsym(handle, name));
    return function != nullptr;
  }
  bool findAll() {
    return find("attune_last_error", lastError) && find("attune_open", open) &&
           find("attune_close", close) && find("attune_context", context) &&
           find("attune_session_open", openSession) &&
           find("attune_session_close", closeSession) &&
           find("attune_session_step", step) &&
           find("attune_session_logits", logits) &&
           find("attune_session_vocabulary", vocabulary) &&
           find("attune_session_rewind", rewind);
  }
  ~Library() {
    if (handle)
      dlclose(handle);
  }
};

DraftModel::DraftModel() = default;
DraftModel::DraftModel(CompiledModel &model) : model(&model) {}

std::unique_ptr<DraftModel> DraftModel::load(const std::string &path,
                                             Error &error) {
  std::unique_ptr<DraftModel> draft(new DraftModel());
  draft->library.reset(new Library());
  Library &library = *draft->library;
  // Without a slash the system would look in its own folders.
  std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  library.handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library.handle) {
    error.badInput("cannot load the draft model " + path + ": " + dlerror() +
                   "; a draft is a shared library, from attune compile MODEL "
                   "-o draft.so");
    return nullptr;
  }
  const attune_model_descriptor *descriptor = nullptr;
  if (!library.find("attune_model", descriptor) || !library.findAll()) {
    error.badInput(path +
                   " is not a model that this version of Attune compiled");
    return nullptr;
  }
  attune_open_options options = {};
  options.struct_size = sizeof(options);
  // The threads of the model that checks wait meanwhile, some of them awake.
  options.threads = 1;
  draft->instance = library.open(descriptor, &options);
  if (draft->instance)
    return draft;
  error.badInput(path + ": " + library.lastError());
  return nullptr;
}

void DraftModel::closeSession() {
  session.reset();
  if (remote)
    library->closeSession(remote);
  remote = nullptr;
}

DraftModel::~DraftModel() {
  closeSession();
  if (instance)
    library->close(instance);
}

bool DraftModel::start(int64_t capacity, Error &error) {
  closeSession();
  seen.clear();
  int64_t context = model ? model->info().context : library->context(instance);
  room = context >= 0 ? std::min(capacity, context) : capacity;
  if (model) {
    session = Session::create(*model, /*batch=*/1, room, error);
    if (!session)
      return false;
    size = session->vocabulary();
    return true;
  }
  remote = library->openSession(instance, 1, room);
  if (!remote)
    return error.badInput(std::string("the draft model: ") +
                          library->lastError());
  size = library->vocabulary(remote);
  return true;
}

bool DraftModel::step(const int64_t *ids, int64_t count, Error &error) {
  if (session ? !session->step(ids, count, error)
              : library->step(remote, ids, count) != ATTUNE_OK) {
    if (!session)
      error.badInput(std::string("the draft model: ") + library->lastError());
    return false;
  }
  seen.insert(seen.end(), ids, ids + count);
  return true;
}

const float *DraftModel::logits(Error &error) {
  const float *found =
      session ? session->logits(error) : library->logits(remote);
  if (!found && !session)
    error.badInput(std::string("the draft model: ") + library->lastError());
  return found;
}

bool DraftModel::rewind(int64_t length, Error &error) {
  if (length == static_cast<int64_t>(seen.size()))
    return true;
  seen.resize(static_cast<size_t>(length));
  if (session)
    return session->rewind(length, error);
  return library->rewind(remote, length) == ATTUNE_OK ||
         error.badInput(std::string("the draft model: ") +
                        library->lastError());
}

bool DraftModel::guess(std::vector<int64_t> history, size_t count,
                       int64_t vocabulary, Sampler &sampler,
                       const std::vector<int64_t> &banned,
                       std::vector<int64_t> &ids,
                       std::vector<std::vector<Sampler::Choice>> &from,
                       Error &error) {
  size_t length = history.size();
  if (static_cast<int64_t>(length + count) > room)
    return true;
  for (int64_t id : history)
    if (id >= size)
      return true;
  // The last token is always read again: its logits are wanted.
  size_t same = 0;
  while (same + 1 < length && same < seen.size() && seen[same] == history[same])
    ++same;
  if (!rewind(static_cast<int64_t>(same), error) ||
      !step(history.data() + same, static_cast<int64_t>(length - same), error))
    return false;
  for (size_t i = 0; i < count; ++i) {
    const float *scores = logits(error);
    std::vector<Sampler::Choice> choices;
    if (!scores || !sampler.weigh(scores, std::min(size, vocabulary), history,
                                  choices, error, banned))
      return false;
    int64_t id = sampler.choose(choices);
    ids.push_back(id);
    from.push_back(std::move(choices));
    history.push_back(id);
    if (i + 1 < count && !step(&id, 1, error))
      return false;
  }
  return true;
}

} // namespace attune::runtime
