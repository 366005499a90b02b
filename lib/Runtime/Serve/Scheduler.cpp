//===- Scheduler.cpp - Many sequences on one model ------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Scheduler.h"

#include "../Clock.h"
#include "Exchange.h"

#include "attune/Runtime/Model.h"
#include "attune/Runtime/Picture.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace attune::runtime {

/// Tokens of a piece of a prompt while nobody waits for tokens: it can be given
/// up after each piece.
static constexpr size_t longPiece = 512;

/// While others wait for tokens, a piece is computed in slices between the
/// rounds of tokens: each takes this part of a round, and goes on to the next
/// barrier, which is not to be further away than that part. So a token comes
/// after 1.4 rounds, give or take the clock's errors.
static constexpr double sliceOfRound = 0.25, gapOfRound = 0.15;
/// The piece before anything is measured; about the shortest that is worth
/// reading all weights for.
static constexpr size_t firstPiece = 64;
/// Bytes of all logits of a piece, unless its fewest rows take more.
static constexpr size_t mostLogits = size_t(32) << 20;
/// Seconds after which a piece ends, so that other prompts have their turns.
static constexpr double longestPiece = 1;

Scheduler::Active::Active(SequenceRequest wanted, uint64_t number)
    : request(std::move(wanted)), number(number), sampler(request.sampling),
      history(request.prompt) {
  sampler.setPromptLength(history.size());
}

std::unique_ptr<Scheduler>
Scheduler::create(CompiledModel &model, unsigned numSlots, int64_t capacity,
                  const CacheMemory &memory, Error &error) {
  std::unique_ptr<Scheduler> scheduler(new Scheduler(model));
  const ModelInfo &info = model.info();
  scheduler->notFirst = info.suppress;
  scheduler->notFirst.insert(scheduler->notFirst.end(),
                             info.beginSuppress.begin(),
                             info.beginSuppress.end());
  if (numSlots > 0) {
    scheduler->slots.reset(new DecodeSlots(model, numSlots, capacity));
    scheduler->slots->limitMemory(memory.onDevice);
    // Fails here, before the first request, if nothing can be decoded at all.
    unsigned slot;
    size_t kept;
    if (!scheduler->slots->take({}, {}, /*adapter=*/0, slot, kept, error))
      return nullptr;
    scheduler->slots->release(slot);
    if (!scheduler->slots->rehearse(
            std::min(static_cast<int64_t>(longPiece + fewRows) - 1, capacity),
            error))
      return nullptr;
    scheduler->slots->fitMemory();
    if (const CachePages *pages = scheduler->slots->memory())
      scheduler->mostKept = memory.onHost.value_or(
          std::min(pages->most() * pages->pageBytes(), physicalMemory() / 2));
    scheduler->countPages();
  }
  int failure = pthread_create(
      &scheduler->thread, nullptr,
      [](void *self) -> void * {
        static_cast<Scheduler *>(self)->loop();
        return nullptr;
      },
      scheduler.get());
  if (failure) {
    error.set(ExitResourceLimit,
              std::string("cannot start a thread: ") + std::strerror(failure));
    return nullptr;
  }
  scheduler->isRunning = true;
  return scheduler;
}

Scheduler::~Scheduler() {
  if (!isRunning)
    return;
  stop(/*now=*/true);
  pthread_join(thread, nullptr);
}

void Scheduler::submit(std::vector<SequenceRequest> requests) {
  MutexLock lock(mutex);
  for (SequenceRequest &request : requests)
    arrived.push_back(std::move(request));
  numbers.waiting.fetch_add(static_cast<int64_t>(requests.size()));
  pthread_cond_signal(&changed);
}

void Scheduler::submit(std::shared_ptr<ModelTask> task) {
  MutexLock lock(mutex);
  arrivedTasks.push_back(std::move(task));
  pthread_cond_signal(&changed);
}

void Scheduler::stop(bool now) {
  MutexLock lock(mutex);
  isStopping = true;
  stopsNow |= now;
  pthread_cond_signal(&changed);
}

void Scheduler::loop() {
  while (takeNew()) {
    dropAbandonedTexts(/*onlyDecoding=*/false);
    dropAbandonedRequests();
    admit();
    for (size_t i = 0; i < tasks.size();)
      if (tasks[i]->runPiece())
        ++i;
      else
        tasks.erase(tasks.begin() + i);
    computeTokens();
    computePrompts();
    removeFinished();
    numbers.cachedPositions.store(slots ? slots->countPositions() : 0);
    countPages();
  }
  Error none;
  for (auto &each : active)
    finish(*each, "stopping", none);
  for (auto &each : halted)
    each->request.sink->finish("stopping", none);
  for (SequenceRequest &each : queue)
    each.sink->finish("stopping", none);
}

void Scheduler::countPages() {
  const CachePages *memory = slots ? slots->memory() : nullptr;
  if (!memory)
    return;
  numbers.pagesInUse.store(static_cast<int64_t>(memory->used()));
  numbers.pages.store(static_cast<int64_t>(memory->most()));
  numbers.pageBytes.store(static_cast<int64_t>(memory->pageBytes()));
  numbers.pagesOnHost.store(static_cast<int64_t>(
      (countKept() + memory->pageBytes() - 1) / memory->pageBytes()));
}

/// Bytes of what texts without a slot held.
uint64_t Scheduler::countKept() const {
  uint64_t bytes = 0;
  for (auto &each : halted)
    bytes += each->kept ? each->kept->slot.bytes : 0;
  return bytes;
}

/// Waits until there is something to do; false: the thread is to end.
bool Scheduler::takeNew() {
  MutexLock lock(mutex);
  auto hasNothing = [&] {
    return queue.empty() && halted.empty() && tasks.empty() && active.empty();
  };
  bool isIdle = hasNothing();
  while (isIdle && arrived.empty() && arrivedTasks.empty() && !isStopping)
    pthread_cond_wait(&changed, &mutex);
  for (SequenceRequest &request : arrived)
    queue.push_back(std::move(request));
  for (std::shared_ptr<ModelTask> &task : arrivedTasks)
    tasks.push_back(std::move(task));
  arrived.clear();
  arrivedTasks.clear();
  isIdle = hasNothing();
  return !stopsNow && !(isIdle && isStopping);
}

void Scheduler::finish(Active &each, const char *reason, const Error &error) {
  if (error.code != ExitSuccess)
    slots->clear(each.slot);
  slots->release(each.slot);
  each.request.sink->finish(reason, error);
  numbers.running.fetch_sub(1);
}

void Scheduler::removeFinished() {
  active.erase(std::remove(active.begin(), active.end(), nullptr),
               active.end());
}

/// Frees the places of those that nobody waits for.
void Scheduler::dropAbandonedTexts(bool onlyDecoding) {
  Error none;
  for (auto &each : active) {
    if (onlyDecoding && !each->isDecoding())
      continue;
    if (const char *why = each->request.sink->whyAbandoned()) {
      finish(*each, why, none);
      each.reset();
    }
  }
  removeFinished();
}

void Scheduler::dropAbandonedRequests() {
  Error none;
  for (size_t i = 0; i < queue.size();) {
    const char *why = queue[i].sink->whyAbandoned();
    if (!why) {
      ++i;
      continue;
    }
    queue[i].sink->finish(why, none);
    queue.erase(queue.begin() + i);
    numbers.waiting.fetch_sub(1);
  }
  for (size_t i = 0; i < halted.size();) {
    const char *why = halted[i]->request.sink->whyAbandoned();
    if (!why) {
      ++i;
      continue;
    }
    halted[i]->request.sink->finish(why, none);
    halted.erase(halted.begin() + i);
    numbers.waiting.fetch_sub(1);
  }
}

/// Gives texts that wait a slot, in the order in which they came.
void Scheduler::admit() {
  // Where memory was missing it still is, until another text has none.
  if (!halted.empty() && active.size() >= haltedBeside)
    return;
  haltedBeside = SIZE_MAX;
  while (slots && slots->hasFree() && !(halted.empty() && queue.empty())) {
    if (halted.empty()) {
      halted.emplace_back(new Active(std::move(queue.front()), ++arrivals));
      queue.erase(queue.begin());
    }
    std::unique_ptr<Active> next = std::move(halted.front());
    Error error;
    if (!enter(*next, error) && error.code == ExitSuccess) {
      // It waits for others to end.
      halted.front() = std::move(next);
      haltedBeside = active.size();
      return;
    }
    halted.erase(halted.begin());
    numbers.waiting.fetch_sub(1);
    if (error.code != ExitSuccess)
      next->request.sink->finish("error", error);
    else
      active.push_back(std::move(next));
  }
}

/// False without an error: there is not enough memory while others have it.
bool Scheduler::enter(Active &each, Error &error) {
  slots->shareEqual(each.request.pictures);
  each.keys =
      cacheKeys(model.info(), each.request.prompt, each.request.pictures);
  size_t computed = 0;
  static const std::vector<int64_t> nothing;
  if (!slots->take(each.request.scoresPrompt ? nothing : each.keys,
                   each.request.pictures, each.request.adapter, each.slot,
                   computed, error))
    return false;
  if (const CachePages *memory = slots->memory()) {
    // A text that goes on from what another one will compute needs none yet.
    // Others can then go on for a token.
    size_t length = hasLeader(each) ? computed : each.history.size() + 1;
    bool fits = slots->makeRoom(
        each.slot, std::min(static_cast<int64_t>(length), capacity()),
        active.size() * memory->numCaches(), error);
    if (!fits && error.code == ExitSuccess && active.empty())
      error.set(ExitResourceLimit, "the GPU has no memory for a text of " +
                                       std::to_string(each.history.size()) +
                                       " tokens");
    if (!fits) {
      Error ignored;
      slots->giveUp(each.slot, ignored);
      return false;
    }
  }
  if (!takeKept(each, computed, error)) {
    Error ignored;
    slots->clear(each.slot);
    slots->giveUp(each.slot, ignored);
    return false;
  }
  if (each.request.automaton && !each.constraint) {
    each.constraint.reset(
        new Constraint(each.request.automaton, each.request.ends));
    each.constraint->startBehind(each.request.formBehind);
  }
  each.chooser.reset(new Chooser(slots->session(each.slot), each.sampler,
                                 each.request.wantsLogits,
                                 each.constraint.get()));
  numbers.running.fetch_add(1);
  if (!each.isAgain)
    numbers.prompts.fetch_add(1);
  noteReuse(each, computed);
  return true;
}

/// Copies what a text's slot holds, if there is memory for that.
void Scheduler::keep(Active &each) {
  uint64_t bytes = slots->countSaved(each.slot);
  if (each.computed == 0 || bytes == 0 || bytes > mostKept ||
      countKept() > mostKept - bytes)
    return;
  // Whatever went wrong: it can be computed again.
  Error ignored;
  each.kept.reset(new Active::Kept{{}, each.computed, each.fed});
  if (!slots->save(each.slot, each.kept->slot, ignored))
    each.kept.reset();
}

/// Lets the slot hold again what the text's slot held, of which it has got the
/// first `computed` tokens from another one.
bool Scheduler::takeKept(Active &each, size_t computed, Error &error) {
  std::unique_ptr<Active::Kept> kept = std::move(each.kept);
  if (!kept || static_cast<int64_t>(computed) >= kept->slot.length)
    return true;
  each.computed = kept->computed;
  each.fed = kept->fed;
  return slots->restore(each.slot, kept->slot, error);
}

/// Takes a text's slot away. It waits again, and its place becomes null.
void Scheduler::putBack(std::unique_ptr<Active> &each) {
  keep(*each);
  if (!each->kept && each->computed > 0)
    numbers.forgotten.fetch_add(1);
  slots->release(each->slot);
  each->chooser.reset();
  each->computed = each->fed = 0;
  each->sees = false;
  each->isAgain = true;
  // What others of its prompt have is no longer all that it needs.
  each->request.family = nullptr;
  numbers.running.fetch_sub(1);
  numbers.waiting.fetch_add(1);
  numbers.putBack.fetch_add(1);
  auto later = std::find_if(halted.begin(), halted.end(), [&](auto &other) {
    return other->number > each->number;
  });
  halted.insert(later, std::move(each));
}

/// Makes room for `length` positions of a text, if need be from those that came
/// later. False: it has been put back itself, or is at its end.
bool Scheduler::findRoom(Active &each, int64_t length) {
  Error error;
  while (slots->memory() && !slots->makeRoom(each.slot, length, 0, error)) {
    std::unique_ptr<Active> *youngest = nullptr;
    unsigned count = 0;
    for (auto &other : active) {
      count += other != nullptr;
      if (other && (!youngest || other->number > (*youngest)->number))
        youngest = &other;
    }
    if (error.code == ExitSuccess && count < 2)
      error.set(ExitResourceLimit, "the GPU has no memory for a text of " +
                                       std::to_string(length) + " tokens");
    if (error.code != ExitSuccess) {
      finish(each, "error", error);
      return false;
    }
    bool isOwn = youngest->get() == &each;
    putBack(*youngest);
    if (isOwn)
      return false;
  }
  return true;
}

/// A token more for all that have their prompts behind them, the oldest first.
void Scheduler::findRoomForTokens() {
  std::vector<std::pair<uint64_t, size_t>> order;
  for (size_t i : findDecoding())
    order.push_back({active[i]->number, i});
  std::sort(order.begin(), order.end());
  for (auto [number, i] : order) {
    Active *each = active[i].get();
    if (each && !findRoom(*each, slots->session(each->slot).length() + 1) &&
        active[i])
      active[i].reset();
  }
  removeFinished();
}

/// The first `computed` tokens of the prompt are there, more than before.
void Scheduler::noteReuse(Active &each, size_t computed) {
  if (computed <= each.computed)
    return;
  auto count = static_cast<int64_t>(computed - each.computed);
  each.computed = computed;
  if (each.isAgain)
    return;
  numbers.reusedTokens.fetch_add(count);
  if (!std::exchange(each.isHit, true))
    numbers.promptHits.fetch_add(1);
  each.request.sink->reuse(count);
}

bool Scheduler::takeToken(Active &each) {
  NewToken token;
  Error error;
  if (each.request.limit == 0) {
    finish(each, "length", error);
    return false;
  }
  ++each.numNew;
  if (!each.chooser->choose(each.history, bannedAt(each.numNew), token,
                            error)) {
    finish(each, "error", error);
    return false;
  }
  numbers.newTokens.fetch_add(1);
  each.history.push_back(token.id);
  const char *reason = nullptr;
  const std::vector<int64_t> &ends = each.request.ends;
  bool goesOn = each.request.sink->push(token);
  if (std::find(ends.begin(), ends.end(), token.id) != ends.end())
    reason = "eos";
  else if (!goesOn)
    reason = "caller";
  else if (each.constraint && each.constraint->isOver())
    reason = "eos";
  else if (each.numNew == each.request.limit)
    reason = each.request.isContextEnd ? "context" : "length";
  if (reason)
    finish(each, reason, error);
  return !reason;
}

/// A token for some of the sequences, in one step of the model.
void Scheduler::step(const std::vector<size_t> &chosen) {
  std::vector<unsigned> members;
  std::vector<int64_t> ids;
  for (size_t i : chosen) {
    active[i]->chooser->prepare(bannedAt(active[i]->numNew + 1));
    members.push_back(active[i]->slot);
    ids.push_back(
        active[i]->history[active[i]->request.prompt.size() + active[i]->fed]);
  }
  std::vector<Error> errors;
  slots->step(members, ids, errors);
  numbers.steps.fetch_add(1);
  numbers.sequencesOfStep.store(static_cast<int64_t>(members.size()));
  for (size_t member = 0; member < chosen.size(); ++member) {
    size_t i = chosen[member];
    bool works = errors[member].code == ExitSuccess;
    ++active[i]->fed;
    if (!works)
      finish(*active[i], "error", errors[member]);
    if (!works || (!active[i]->isBehind() && !takeToken(*active[i])))
      active[i].reset();
  }
}

std::vector<size_t> Scheduler::findDecoding() const {
  std::vector<size_t> decoding;
  for (size_t i = 0; i < active.size(); ++i)
    if (active[i]->isDecoding())
      decoding.push_back(i);
  return decoding;
}

/// A token for every sequence that has its prompt behind it.
void Scheduler::computeTokens() {
  double start = monotonicTime();
  if (slots && slots->memory())
    findRoomForTokens();
  std::vector<size_t> decoding = findDecoding();
  if (decoding.empty())
    return;
  size_t most = slots->stepsTogether() ? decoding.size() : 1;
  for (size_t first = 0; first < decoding.size(); first += most)
    step({decoding.begin() + first, decoding.begin() + first + most});
  removeFinished();
  numbers.rounds.fetch_add(1);
  roundTime = monotonicTime() - start;
  credit = std::min(credit + roundTime / 2, roundTime * 64);
}

/// A piece of one prompt, in turns.
void Scheduler::computePrompts() {
  bool isAlone = findDecoding().empty();
  if (isAlone)
    credit = 0;
  if (!mayPause() && credit < 0)
    return;
  for (size_t i = 0; i < active.size(); ++i) {
    size_t turn = (nextPrompt + i) % active.size();
    if (active[turn]->isDecoding() || hasLeader(*active[turn]))
      continue;
    nextPrompt = turn + 1;
    Active &each = *active[turn];
    bool goesOn = computePiece(each, isAlone);
    if (goesOn && each.isDecoding()) {
      forkFollowers(each);
      goesOn = each.isBehind() || takeToken(each);
    }
    // Others may have come to their end meanwhile.
    for (auto &own : active)
      if (!goesOn && own.get() == &each)
        own.reset();
    return;
  }
}

/// Whether an earlier sequence computes the same prompt for this one, too.
bool Scheduler::hasLeader(const Active &each) const {
  for (auto &other : active)
    if (other && other->number < each.number && each.request.family &&
        other->request.family == each.request.family && !other->isDecoding())
      return true;
  return false;
}

/// The other texts of a prompt that was computed start from what it left.
void Scheduler::forkFollowers(const Active &leader) {
  for (auto &each : active) {
    if (!each || each.get() == &leader || !leader.request.family ||
        each->request.family != leader.request.family || each->isDecoding())
      continue;
    Error error;
    each->chooser->prepare(bannedAt(1));
    if (!slots->fork(leader.slot, each->slot, error)) {
      if (error.code == ExitSuccess) {
        putBack(each);
        continue;
      }
      finish(*each, "error", error);
      each.reset();
      continue;
    }
    noteReuse(*each, each->request.prompt.size());
    if (!takeToken(*each))
      each.reset();
  }
}

/// A GPU is not asked at barriers, and other ranks go on where the first one
/// would be paused.
bool Scheduler::mayPause() const {
  return !model.device() && !model.ranksToTell();
}

/// How much of a prompt is computed in one call. The first part of a prompt is
/// never short, nor is the rest.
size_t Scheduler::choosePiece(const Active &each, bool isAlone) {
  size_t left = each.request.prompt.size() - each.computed;
  double count = longPiece;
  if (!isAlone && !mayPause()) {
    // A call that is not interrupted takes half as long as a round.
    count = perToken > 0 ? roundTime / 2 / perToken : fewRows;
  } else if (!isAlone) {
    count = firstPiece;
    if (gapPerToken > 0)
      count = std::min(roundTime * gapOfRound / gapPerToken,
                       longestPiece / perToken);
  }
  count = std::min(std::max(count, double(fewRows)), double(longPiece));
  if (each.request.scoresPrompt) {
    if (!slots->givesAllLogits(each.slot))
      return 1;
    auto row = static_cast<size_t>(slots->session(each.slot).vocabulary()) *
               sizeof(float);
    count =
        std::min(count, std::max(double(mostLogits / row), double(fewRows)));
  }
  size_t unit = slots->pieceUnit(each.slot);
  size_t piece = (static_cast<size_t>(count) + unit - 1) / unit * unit;
  if (left < piece + fewRows)
    return left;
  return placeToCut(model.info(), each.keys, each.computed + piece,
                    /*after=*/true) -
         each.computed;
}

/// At a barrier of the piece, where the team can do something else. What was
/// active may have come to its end afterwards, but for the piece's own.
void Scheduler::pausePiece() {
  double now = monotonicTime();
  longestGap = std::max(longestGap, now - lastBarrier);
  lastBarrier = now;
  if (now - lastRound < roundTime * sliceOfRound)
    return;
  dropAbandonedTexts(/*onlyDecoding=*/true);
  computeTokens();
  numbers.pauses.fetch_add(1);
  lastRound = lastBarrier = monotonicTime();
  pausedTime += lastRound - now;
}

/// Computes something for a sequence, between whose loops others may have their
/// tokens. If it fails, the sequence is at its end.
template <typename F>
bool Scheduler::timePiece(Active &each, bool isAlone, double &time, F compute) {
  Error error;
  if (!isAlone && mayPause()) {
    std::vector<unsigned> members;
    for (size_t i : findDecoding())
      members.push_back(active[i]->slot);
    if (!slots->settle(members, error)) {
      finish(each, "error", error);
      return false;
    }
    model.team().setPause(
        [](void *self) { static_cast<Scheduler *>(self)->pausePiece(); }, this);
  }
  double start = monotonicTime();
  lastRound = lastBarrier = start;
  longestGap = pausedTime = 0;
  bool works = compute(error);
  time = monotonicTime() - start - pausedTime;
  model.team().setPause(nullptr, nullptr);
  if (!works)
    finish(each, "error", error);
  else if (!isAlone)
    credit -= time;
  return works;
}

/// Encodes a picture of a sequence, a piece of its own, or lets its slot see
/// them all once they are encoded.
bool Scheduler::seeNext(Active &each, bool isAlone) {
  for (const PicturePtr &picture : each.request.pictures) {
    double time;
    if (picture->vectors.empty())
      return timePiece(each, isAlone, time, [&](Error &error) {
        return slots->session(each.slot).encode(*picture, error);
      });
  }
  Error error;
  each.sees = slots->session(each.slot).see(each.request.pictures, error);
  if (!each.sees)
    finish(each, "error", error);
  return each.sees;
}

namespace {
/// Tokens of a prompt and the logits that they were predicted with.
struct ScoredRows {
  TokenSink &sink;
  const int64_t *ids;
  const float *rows;
  int64_t width;
  size_t place, count;
  std::atomic<bool> works{true};

  void score() {
    auto threads = static_cast<size_t>(attune_rt_num_threads());
    auto first = static_cast<size_t>(attune_rt_thread());
    for (size_t i = first; i < count; i += threads) {
      const float *row = rows + static_cast<int64_t>(i) * width;
      if (!sink.score(place + i, {ids[i], row, width}))
        works.store(false);
    }
  }
};
} // namespace

/// Tells of the logits of the prompt's next `count` tokens, on all threads and
/// with pauses for tokens of others: with a large vocabulary that takes its
/// time, too. False: they are none, and the sequence is at its end.
bool Scheduler::score(Active &each, const float *rows, size_t count,
                      bool isAlone) {
  const std::vector<int64_t> &prompt = each.request.prompt;
  int64_t width = slots->session(each.slot).vocabulary();
  size_t end = std::min(each.computed + count + 1, prompt.size());
  size_t most = size_t(4) * model.team().size();
  for (size_t place = each.computed + 1; place < end; place += most) {
    auto row = static_cast<int64_t>(place - each.computed - 1);
    ScoredRows part{*each.request.sink,
                    prompt.data() + place,
                    rows + row * width,
                    width,
                    place,
                    std::min(most, end - place)};
    Error error;
    bool ran = model.team().run(
        [](void *self) { static_cast<ScoredRows *>(self)->score(); }, &part,
        error);
    if (ran && !part.works.load())
      ran = error.set(ExitInternalError,
                      "the logits of the prompt hold NaN: the weights may be "
                      "damaged");
    if (!ran) {
      finish(each, "error", error);
      return false;
    }
    if (isAlone || !mayPause() ||
        monotonicTime() - lastRound < roundTime * sliceOfRound)
      continue;
    dropAbandonedTexts(/*onlyDecoding=*/true);
    computeTokens();
    numbers.pauses.fetch_add(1);
    lastRound = monotonicTime();
  }
  return true;
}

bool Scheduler::computePiece(Active &each, bool isAlone) {
  const std::vector<int64_t> &prompt = each.request.prompt;
  Error error;
  if (!each.request.scoresPrompt)
    noteReuse(each, slots->adopt(each.slot, each.keys, each.computed, error));
  if (error.code != ExitSuccess) {
    finish(each, "error", error);
    return false;
  }
  if (!each.sees) {
    if (!seeNext(each, isAlone))
      return false;
    if (!each.sees)
      return true;
  }
  size_t count = choosePiece(each, isAlone);
  if (!findRoom(each, static_cast<int64_t>(each.computed + count)))
    return false;
  if (each.computed + count == prompt.size())
    each.chooser->prepare(bannedAt(1));
  double time;
  const int64_t *piece = prompt.data() + each.computed;
  const int64_t *keys = each.keys.data() + each.computed;
  const float *rows = nullptr;
  if (!timePiece(each, isAlone, time, [&](Error &problem) {
        if (!each.request.scoresPrompt)
          return slots->append(each.slot, piece, keys, count, problem);
        rows = slots->appendAll(each.slot, piece, keys, count, problem);
        return rows != nullptr;
      }))
    return false;
  if (rows && !score(each, rows, count, isAlone))
    return false;
  each.computed += count;
  numbers.promptTokens.fetch_add(static_cast<int64_t>(count));
  if (count == 1)
    return true; // this says nothing of longer pieces
  perToken = time / static_cast<double>(count);
  if (!isAlone && mayPause())
    gapPerToken = longestGap / static_cast<double>(count);
  return true;
}

} // namespace attune::runtime
