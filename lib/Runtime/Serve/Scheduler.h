//===- Scheduler.h - Many sequences on one model ----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One thread computes. It gives each sequence a slot with a cache, and goes
// round: a token for every sequence that has its prompt behind it, in one step
// if the model can take sequences of unequal length, then a piece of one
// prompt. While others wait for tokens, such a piece is paused for them, at
// barriers between the loops of its kernels, so that a prompt delays each token
// by less than half. A GPU is not paused, nor are ranks that share a model;
// there prompts may take half the time that tokens take.
//
// The text of a sequence does not depend on what else is computed or was
// before. Kernels give the same bits for a row whatever the number of rows is,
// from fewRows on; so a prompt is cut into pieces of as many rows or more, and
// what a slot keeps of an earlier prompt is used again only where it was
// computed like that, too.
//
// On a GPU whose memory is mapped to slots as texts need it, memory may be used
// up. What slots remember that no text has gives way first, then the youngest
// text: what its slot holds is copied to the host's memory, and it waits again,
// before all that came later, for a slot to copy that to. If the host has no
// memory for it, its tokens are computed again as they were before.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_SERVE_SCHEDULER_H
#define ATTUNE_LIB_RUNTIME_SERVE_SCHEDULER_H

#include "DecodeSlots.h"

#include "attune/Runtime/Cli.h"

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <pthread.h>

namespace attune::runtime {

/// The receiver of a text. Its functions are called on the scheduler's thread.
class TokenSink {
public:
  virtual ~TokenSink() = default;
  /// Why nobody waits for the text any more; null: somebody does.
  virtual const char *whyAbandoned() const { return nullptr; }
  /// So many more tokens of the prompt need no computing, as a cache has them.
  virtual void reuse(int64_t count) {}
  /// The prompt's token at `place`, which is not the first one, and the logits
  /// that it was predicted with, if the request `scoresPrompt`. Called on all
  /// threads of the team at once. False: the logits are no numbers.
  virtual bool score(size_t place, const NewToken &token) { return true; }
  /// False: no more tokens are wanted.
  virtual bool push(const NewToken &token) { return false; }
  /// The last call. `reason` is "eos", "length", "context", "caller", what
  /// whyAbandoned() says, or "error", which `error` explains.
  virtual void finish(const char *reason, const Error &error) {}
};

/// A text to continue.
struct SequenceRequest {
  std::vector<int64_t> prompt;      ///< at least one token, and all fit
  std::vector<PicturePtr> pictures; ///< that its image tokens stand for
  int64_t adapter = 0;              ///< its number; 0: none
  int64_t limit = 1;                ///< most new tokens; 0: the prompt alone
  bool isContextEnd = false;        ///< the limit is
  SamplingOptions sampling;
  std::vector<int64_t> ends;
  bool wantsLogits = false;
  /// The sink is told of the prompt's logits. All of it is computed then,
  /// whatever caches have, and `wantsLogits` is set.
  bool scoresPrompt = false;
  /// The same for texts of one prompt, which are submitted together: it is
  /// computed once. Null: it has no others.
  const void *family = nullptr;
  std::shared_ptr<GrammarAutomaton> automaton; ///< null: any text
  std::string
      formBehind; ///< what the form comes behind; empty: it holds at once
  std::shared_ptr<TokenSink> sink;
};

/// Other work with the model, done in pieces between tokens.
class ModelTask {
public:
  virtual ~ModelTask() = default;
  /// Does a piece; false: there is no more to do.
  virtual bool runPiece() { return false; }
};

/// How busy the scheduler is; read by other threads.
struct SchedulerCounts {
  std::atomic<int64_t> running{0}, waiting{0}, cachedPositions{0};
  std::atomic<int64_t> prompts{0}, promptHits{0}, promptTokens{0},
      reusedTokens{0}, newTokens{0}, rounds{0}, pauses{0}, steps{0}; ///< so far
  std::atomic<int64_t> sequencesOfStep{0}; ///< of the last one
  /// Of caches whose memory is given as texts need it: pages in use and in all,
  /// bytes of one; texts that had to give way so far, and those of them whose
  /// caches were not kept; as many pages as those that were, and now are, take.
  std::atomic<int64_t> pagesInUse{0}, pages{0}, pageBytes{0}, putBack{0},
      forgotten{0}, pagesOnHost{0};
};

/// Memory of caches, in bytes.
struct CacheMemory {
  uint64_t onDevice = 0; ///< see SessionGroup::limitMemory()
  /// Of texts that gave way; none: as much as on the device, and no more than
  /// half of the host's memory.
  std::optional<uint64_t> onHost;
};

class Scheduler {
public:
  /// `slots` sequences at a time, of `capacity` tokens each, or as many as
  /// there is memory for.
  static std::unique_ptr<Scheduler> create(CompiledModel &model, unsigned slots,
                                           int64_t capacity,
                                           const CacheMemory &memory,
                                           Error &error);
  /// Waits for the thread; what is not done is given up.
  ~Scheduler();

  void submit(std::vector<SequenceRequest> requests);
  void submit(std::shared_ptr<ModelTask> task);
  /// Nothing more comes. `now`: give up what is not done.
  void stop(bool now);

  bool generates() const { return slots != nullptr; }
  int64_t capacity() const { return slots ? slots->capacity() : 0; }
  /// Why each text takes a step of its own; empty: a step takes all.
  std::string whyAlone() const {
    return numSlots() > 1 ? slots->whyAlone() : "";
  }
  std::string whyNotPersistent() const { return model.whyNotPersistent(); }
  /// How slots get a GPU's memory; empty: nothing is to be said.
  std::string describeMemory() const {
    return slots ? slots->describeMemory() : "";
  }
  unsigned numSlots() const { return slots ? slots->count() : 0; }
  const SchedulerCounts &counts() const { return numbers; }

private:
  /// A sequence in a slot.
  struct Active {
    Active(SequenceRequest request, uint64_t number);
    SequenceRequest request;
    uint64_t number; ///< in the order in which texts came
    Sampler sampler;
    std::unique_ptr<Constraint> constraint; ///< null: any text
    std::unique_ptr<Chooser> chooser;       ///< on the slot's session
    std::vector<int64_t> history;
    std::vector<int64_t> keys; ///< cacheKeys() of the prompt
    bool sees = false;         ///< the slot sees its pictures
    unsigned slot = 0;
    size_t computed = 0;  ///< tokens of the prompt
    bool isHit = false;   ///< some of them were in a cache
    bool isAgain = false; ///< it had a slot before
    int64_t numNew = 0;
    size_t fed = 0; ///< new tokens that the slot holds
    /// What its slot held when it gave way: so many tokens of the prompt and
    /// new ones. Null: it has a slot, or nothing.
    struct Kept {
      SavedSlot slot;
      size_t computed, fed;
    };
    std::unique_ptr<Kept> kept;
    bool isDecoding() const { return computed == request.prompt.size(); }
    /// It was put back, and later tokens are known.
    bool isBehind() const {
      return request.prompt.size() + fed < history.size();
    }
  };

  explicit Scheduler(CompiledModel &model) : model(model) {}
  void loop();
  bool takeNew();
  void dropAbandonedTexts(bool onlyDecoding);
  void dropAbandonedRequests();
  void admit();
  bool enter(Active &active, Error &error);
  void putBack(std::unique_ptr<Active> &active);
  void keep(Active &active);
  bool takeKept(Active &active, size_t computed, Error &error);
  uint64_t countKept() const;
  bool findRoom(Active &active, int64_t length);
  void findRoomForTokens();
  void computePrompts();
  void computeTokens();
  void step(const std::vector<size_t> &chosen);
  std::vector<size_t> findDecoding() const;
  bool mayPause() const;
  size_t choosePiece(const Active &active, bool isAlone);
  bool computePiece(Active &active, bool isAlone);
  bool score(Active &active, const float *rows, size_t count, bool isAlone);
  bool seeNext(Active &active, bool isAlone);
  template <typename F>
  bool timePiece(Active &active, bool isAlone, double &time, F compute);
  void pausePiece();
  bool hasLeader(const Active &active) const;
  void forkFollowers(const Active &leader);
  void noteReuse(Active &active, size_t computed);
  /// Chooses the next token of a sequence; false: it is at its end.
  bool takeToken(Active &active);
  void finish(Active &active, const char *reason, const Error &error);
  void removeFinished();
  void countPages();
  const std::vector<int64_t> &bannedAt(int64_t count) const {
    return count == 1 ? notFirst : model.info().suppress;
  }

  CompiledModel &model;
  std::unique_ptr<DecodeSlots> slots;
  std::vector<int64_t> notFirst;
  pthread_t thread;
  bool isRunning = false;
  SchedulerCounts numbers;

  // Shared between threads.
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
  std::vector<SequenceRequest> arrived;
  std::vector<std::shared_ptr<ModelTask>> arrivedTasks;
  bool isStopping = false, stopsNow = false;

  // The thread's own.
  std::vector<SequenceRequest> queue;
  std::vector<std::shared_ptr<ModelTask>> tasks;
  std::vector<std::unique_ptr<Active>> active; ///< null: at its end
  /// Without a slot, as memory is used up, the oldest first.
  std::vector<std::unique_ptr<Active>> halted;
  size_t haltedBeside = SIZE_MAX; ///< so many others that have memory
  uint64_t mostKept = 0;          ///< bytes on the host for what these held
  uint64_t arrivals = 0;
  size_t nextPrompt = 0;
  double roundTime = 0; ///< seconds of the last round of tokens
  double credit = 0;    ///< on a GPU: seconds that prompts may take
  // Of pieces of prompts, in seconds; 0: not known yet.
  double perToken = 0;    ///< to compute a token
  double gapPerToken = 0; ///< between two barriers at most
  // Of the piece that is computed.
  double lastRound = 0;   ///< when tokens were computed last
  double lastBarrier = 0; ///< when it went on
  double longestGap = 0, pausedTime = 0;
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_SERVE_SCHEDULER_H
