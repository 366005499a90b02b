//===- GrammarAutomaton.h - Which tokens may come next ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs a grammar over a vocabulary. A state is a set of stacks of places in the
// rules; states, their successors and the tokens they allow are worked out when
// they are first met and kept, since texts come back to the same states: inside
// a string of JSON, for instance, it is always the same one.
//
// Bytes that no set of the grammar tells apart have the same successors, which
// are worked out once for all of them.
//
// Forms come from requests, so what one may cost is limited: the steps that the
// tokens of one state take, and the memory of all states. A form beyond a limit
// is over (isTooLarge) for all its texts.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_GRAMMAR_GRAMMARAUTOMATON_H
#define ATTUNE_LIB_RUNTIME_GRAMMAR_GRAMMARAUTOMATON_H

#include "Grammar.h"

#include "attune/Runtime/Tokenizer.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace attune::runtime {

/// The bytes of all tokens but special ones, in the order of bytes, so that
/// tokens with a common beginning stand together.
class TokenTexts {
public:
  explicit TokenTexts(const Tokenizer &tokenizer);

  const Tokenizer &tokenizer() const { return from; }
  struct Entry {
    std::string bytes;
    int64_t id;
    /// Bytes that it has in common with the one before.
    size_t common;
    /// The first one behind this that has fewer in common with the one before
    /// it; until there, all begin with this one's common bytes.
    size_t beyond;
  };
  const std::vector<Entry> &entries() const { return all; }
  int64_t size() const { return numIds; }
  const std::string &bytesOf(int64_t id) const { return all[places[id]].bytes; }
  bool has(int64_t id) const {
    return id >= 0 && id < numIds && places[id] != ~size_t(0);
  }

private:
  const Tokenizer &from;
  std::vector<Entry> all;
  std::vector<size_t> places;
  int64_t numIds;
};

class GrammarAutomaton {
public:
  using State = uint32_t;
  static constexpr State dead = 0;

  /// `texts` are needed for tokens alone.
  GrammarAutomaton(Grammar grammar, std::shared_ptr<const TokenTexts> texts);

  State start() const { return first; }
  State next(State state, unsigned char byte);
  State next(State state, std::string_view bytes);
  /// The state after a token, which has to be allowed.
  State nextToken(State state, int64_t id) {
    return texts->has(id) ? next(state, texts->bytesOf(id)) : dead;
  }
  const Tokenizer &tokenizer() const { return texts->tokenizer(); }
  /// Whether the text may end here.
  bool isComplete(State state) const { return states[state].isComplete; }
  /// A bit for each token of the vocabulary. Means nothing if isTooLarge().
  const std::vector<uint64_t> &allowed(State state);
  /// The steps since they were last asked for, which count no more towards the
  /// limit of time.
  size_t takeSteps() {
    size_t count = steps;
    steps = 0;
    return count;
  }
  /// The form is beyond a limit of time or memory.
  bool isTooLarge() const { return tooLarge; }

  /// What to tell who asked for the form; empty: nothing.
  std::string note;

private:
  /// A place to go on from when a rule is through, on top of others.
  struct Frame {
    uint32_t below, place;
  };
  /// A byte to read at `place`, then what is on the stack.
  struct Thread {
    uint32_t stack, place;
    bool operator<(const Thread &other) const {
      return stack != other.stack ? stack < other.stack : place < other.place;
    }
    bool operator==(const Thread &other) const {
      return stack == other.stack && place == other.place;
    }
  };
  struct StateInfo {
    std::vector<Thread> threads;
    bool isComplete = false;
    std::vector<uint32_t> successors; ///< by class of byte; ~0: not known yet
    std::vector<uint64_t> mask;       ///< empty: not known yet
  };
  /// Numbers of things by their hash.
  struct Index {
    std::vector<uint32_t> slots; ///< number + 1; 0: free
    size_t count = 0;
  };

  template <typename Equal>
  uint32_t *find(Index &index, uint64_t hash, Equal equal);
  template <typename Hash> void grow(Index &index, Hash hashOf);
  uint32_t push(uint32_t below, uint32_t place);
  void addPlace(Thread at, StateInfo &to);
  bool isNew(Thread thread);
  State intern(StateInfo info);
  void classifyBytes();

  Grammar grammar;
  std::shared_ptr<const TokenTexts> texts;
  /// All alternatives one after the other; each ends with an end.
  struct Place {
    enum class Kind : uint8_t { Byte, Rule, End } kind;
    uint32_t index;
  };
  std::vector<Place> places;
  std::vector<std::vector<uint32_t>> begins; ///< of each rule's alternatives
  std::vector<Frame> frames;                 ///< 0: the bottom
  std::vector<StateInfo> states;
  Index frameIndex, stateIndex;
  /// What addPlace() has met since forgetSeen(): free slots have an older
  /// round.
  struct Seen {
    Thread thread;
    uint64_t round;
  };
  std::vector<Seen> seen;
  size_t numSeen = 0;
  uint64_t round = 0;
  void forgetSeen();

  unsigned char classes[256] = {}; ///< of bytes
  size_t numClasses = 1;
  size_t steps = 0; ///< since the tokens of a state were asked for
  size_t bytes = 0; ///< of all states and stacks
  bool tooLarge = false;
  size_t numMasks = 0; ///< that are kept
  std::vector<uint64_t> lastMask;
  State first = dead;
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_GRAMMAR_GRAMMARAUTOMATON_H
