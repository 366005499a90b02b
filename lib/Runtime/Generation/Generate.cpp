//===- Generate.cpp - New tokens, one after the other ---------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Clock.h"
#include "../Sound/TimestampRules.h"
#include "Beams.h"
#include "Generation.h"
#include "SessionGroup.h"

#include "attune/Runtime/Guess.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

namespace attune::runtime {

/// New tokens where neither the model nor the user sets a limit.
static constexpr int64_t defaultNewTokens = 256;

/// The ids that the decoder of an encoder-decoder starts from.
static bool startIds(const ModelInfo &info, const std::vector<int64_t> &prompt,
                     bool encodesPrompt, std::vector<int64_t> &start,
                     Error &error) {
  if (!encodesPrompt && !prompt.empty()) {
    start = prompt;
    return true;
  }
  int64_t first = info.decoderStart >= 0 ? info.decoderStart : info.bos;
  if (first < 0)
    return error.badInput("model '" + info.name +
                          "' names no token that its decoder starts from" +
                          (encodesPrompt ? "" : "; give --prompt-ids"));
  start.assign(1, first);
  return true;
}

/// Encodes a file's tensors or, without them, the prompt; the same for every
/// row of the session.
static bool encode(Session &session, const EntryInfo &entry,
                   const GenerateOptions &options,
                   const std::vector<int64_t> &prompt, Error &error) {
  int64_t rows = options.beams;
  const std::string &path = options.inputs;
  std::vector<InputTensor> inputs;
  std::vector<Buffer> copies;
  auto add = [&](InputTensor input) {
    inputs.push_back(input);
    uint64_t bytes;
    if (rows == 1 || input.shape.empty() || input.shape[0] != 1)
      return true;
    if (!byteSize(input.shape, dtypeBytes(input.dtype), bytes) ||
        !copies.emplace_back().reserve(bytes * rows))
      return error.set(ExitResourceLimit, "no memory for the inputs");
    for (int64_t row = 0; row < rows; ++row)
      std::memcpy(copies.back().data() + row * bytes, input.data, bytes);
    inputs.back().shape[0] = rows;
    inputs.back().data = copies.back().data();
    return true;
  };
  SafetensorsFile file;
  if (!path.empty()) {
    std::string reason;
    if (!file.open(path, reason))
      return error.badInput(reason);
    for (const TensorInfo &tensor : file.tensors()) {
      InputTensor input;
      input.name = tensor.name;
      input.dtype = tensor.dtype;
      input.shape = tensor.shape;
      input.data = tensor.data;
      if (!add(input))
        return false;
    }
    if (session.encode(inputs, error))
      return true;
    error.message = path + ": " + error.message;
    return false;
  }
  const ArgInfo *ids = entry.findIds();
  if (!ids)
    return error.badInput("the encoder does not read ids alone; give its "
                          "inputs with --inputs=FILE");
  InputTensor input;
  input.name = ids->name;
  input.dtype = DType::I64;
  input.shape = {1, static_cast<int64_t>(prompt.size())};
  input.data = prompt.data();
  return add(input) && session.encode(inputs, error);
}

void Chooser::prepare(const std::vector<int64_t> &banned) {
  int64_t wanted =
      std::min(sampler.countCandidates(banned.size()), session.vocabulary());
  bool fits = !wantsLogits && !constraint && !rules &&
              wanted <= session.mostCandidates();
  candidates = fits ? wanted : 0;
  session.setCandidates(candidates);
}

bool Chooser::choose(const std::vector<int64_t> &history,
                     const std::vector<int64_t> &banned, NewToken &token,
                     Error &error) {
  if (candidates > 0)
    return sampler.sampleAmong(session.candidateIds(),
                               session.candidateLogits(), candidates, token.id,
                               error, banned);
  const float *logits = session.logits(error), *choices = logits;
  if (logits && constraint)
    choices = constraint->mask(logits, session.vocabulary(), error);
  if (choices && rules)
    choices = rules->mask(choices, session.vocabulary(),
                          history.data() + promptLength,
                          history.size() - promptLength, banned);
  if (!choices || !sampler.sample(choices, session.vocabulary(), history,
                                  token.id, error, banned))
    return false;
  if (constraint)
    constraint->accept(token.id);
  token.logits = wantsLogits ? logits : nullptr;
  token.vocabulary = session.vocabulary();
  return true;
}

namespace {
/// One text, from its prompt to its end.
class Generation {
public:
  Generation(CompiledModel &model, const GenerateOptions &options,
             bool (*onToken)(void *context, const NewToken &token),
             void *context)
      : model(model), info(model.info()), options(options), onToken(onToken),
        context(context) {
    if (options.ignoreEos)
      return;
    ends = info.eos;
    ends.insert(ends.end(), options.moreEnds.begin(), options.moreEnds.end());
  }

  bool run(const std::vector<int64_t> &prompt, std::string &stoppedBy,
           Error &error);
  /// The same in a session of the caller that has encoded its input.
  bool runEncoded(Session &own, const std::vector<int64_t> &prompt,
                  std::string &stoppedBy, Error &error);

  // The same in steps, in a session of the caller: prepare(), begin(), then
  // choose() and a step of the session, until the text is over.

  /// Checks the prompt and finds how many positions the text may take.
  bool prepare(const std::vector<int64_t> &prompt, int64_t &positions,
               Error &error);
  /// Computes the prompt, in `own`, which has nothing in it.
  bool begin(Session &own, Error &error);
  /// Chooses the next token and passes it on. If it was the last one,
  /// `stoppedBy` says why.
  bool choose(bool &isOver, std::string &stoppedBy, Error &error);
  int64_t lastToken() const { return history.back(); }

private:
  bool start(const std::vector<int64_t> &prompt, Error &error);
  SamplingOptions sampling() const;
  bool search(std::string &stoppedBy, Error &error);
  bool decode(Session &own, std::string &stoppedBy, Error &error);
  bool decodeGuessing(std::string &stoppedBy, Error &error);
  bool findGuesses(Sampler &sampler, int64_t count, Error &error);
  /// Passes a token on; whether it is the last one.
  bool isLast(const NewToken &token, int64_t count, std::string &stoppedBy);
  /// Ids that may not be the new token of this number, counted from 1.
  const std::vector<int64_t> &bannedAt(int64_t count) const {
    return count == firstFree ? notFirst : info.suppress;
  }

  CompiledModel &model;
  const ModelInfo &info;
  const GenerateOptions &options;
  bool (*onToken)(void *context, const NewToken &token);
  void *context;

  std::unique_ptr<Session> session; ///< null: it is the caller's
  bool isEncoded =
      false; ///< by the caller, so that the prompt is the decoder's
  std::unique_ptr<Constraint> constraint; ///< null: any text
  std::optional<Sampler> sampler;
  std::optional<Chooser> chooser;
  int64_t count = 0; ///< of tokens that were chosen
  std::vector<int64_t> history;
  size_t promptLength = 0;
  TokenLimit limit;
  std::vector<int64_t> ends;
  int64_t forced = -1;   ///< the first new token, or -1
  int64_t firstFree = 1; ///< number of the first that is chosen
  std::vector<int64_t> notFirst;
  std::vector<int64_t> guesses;
  /// The distributions that a draft drew the guesses from; empty: nobody drew
  /// them.
  std::vector<std::vector<Sampler::Choice>> guessedFrom;
};
} // namespace

bool findTokenLimit(const GenerateOptions &options, int64_t promptLength,
                    int64_t context, TokenLimit &limit, Error &error) {
  limit.tokens = options.maxNewTokens;
  limit.isContextEnd = false;
  if (limit.tokens < 0 && options.maxLength >= 0) {
    limit.tokens = options.maxLength - promptLength;
    if (limit.tokens <= 0)
      return error.badInput("the prompt has " + std::to_string(promptLength) +
                            " tokens, but the model's own settings end a "
                            "text after " +
                            std::to_string(options.maxLength) +
                            "; --max-new-tokens=N sets another limit");
  }
  if (context >= 0) {
    int64_t room = context - promptLength;
    if (room <= 0)
      return error.badInput("the prompt has " + std::to_string(promptLength) +
                            " tokens, which leaves no room for new ones in "
                            "the model's context of " +
                            std::to_string(context));
    limit.isContextEnd = limit.tokens < 0 || limit.tokens > room;
    if (limit.isContextEnd)
      limit.tokens = room;
  } else if (limit.tokens < 0) {
    limit.tokens = defaultNewTokens;
  }
  return true;
}

SamplingOptions Generation::sampling() const {
  SamplingOptions result = options.sampling;
  result.ends = ends;
  return result;
}

bool Generation::prepare(const std::vector<int64_t> &prompt, int64_t &positions,
                         Error &error) {
  const EntryInfo *encoder = model.entry("encode");
  if (!encoder && !options.inputs.empty())
    return error.badInput("model '" + info.name +
                          "' has no encoder that could read --inputs");
  bool encodesPrompt = model.encodes() && options.inputs.empty() && !isEncoded;
  if (prompt.empty() && (!encoder || encodesPrompt))
    return error.badInput("the prompt is empty");
  history = prompt;
  if (encoder && !startIds(info, prompt, encodesPrompt, history, error))
    return false;
  promptLength = history.size();
  const EntryInfo *decoder = model.entry("decode");
  int64_t context =
      decoder ? decoder->countablePositions(info.context) : info.context;
  if (!options.sampling.check(ExitBadInput, error) ||
      !findTokenLimit(options, static_cast<int64_t>(promptLength), context,
                      limit, error))
    return false;
  if (__builtin_add_overflow(static_cast<int64_t>(promptLength), limit.tokens,
                             &positions))
    return error.badInput("--max-new-tokens is absurdly large");
  if (options.automaton) {
    constraint.reset(new Constraint(options.automaton, ends));
    constraint->startBehind(options.formBehind);
  }
  forced = !encoder              ? -1
           : options.forced >= 0 ? options.forced
                                 : info.forcedBos;
  firstFree = forced >= 0 ? 2 : 1;
  notFirst = info.suppress;
  notFirst.insert(notFirst.end(), info.beginSuppress.begin(),
                  info.beginSuppress.end());
  return true;
}

bool Generation::start(const std::vector<int64_t> &prompt, Error &error) {
  int64_t capacity;
  if (!prepare(prompt, capacity, error))
    return false;
  session = Session::create(model, /*batch=*/options.beams, capacity, error);
  const EntryInfo *encoder = model.entry("encode");
  if (!session || !encoder)
    return session != nullptr;
  // A model that can see need not.
  if (!model.encodes() && options.inputs.empty())
    return session->see(options.pictures, error);
  return encode(*session, *encoder, options, prompt, error);
}

bool Generation::search(std::string &stoppedBy, Error &error) {
  BeamOptions beams;
  beams.beams = options.beams;
  beams.lengthPenalty = options.lengthPenalty;
  beams.stopping = static_cast<EarlyStopping>(options.earlyStopping);
  beams.limit = limit.tokens;
  beams.ends = ends;
  beams.forced = forced;
  beams.suppress = info.suppress;
  beams.beginSuppress = info.beginSuppress;
  beams.sampling = sampling();
  std::vector<int64_t> best;
  bool ended = false;
  if (!searchBeams(*session, beams, history, best, ended, error))
    return false;
  stoppedBy = ended ? "eos" : limit.isContextEnd ? "context" : "length";
  for (int64_t id : best) {
    NewToken token;
    token.id = id;
    if (!onToken(context, token)) {
      stoppedBy = "caller";
      break;
    }
  }
  return true;
}

bool Generation::isLast(const NewToken &token, int64_t count,
                        std::string &stoppedBy) {
  if (!onToken(context, token)) {
    stoppedBy = "caller";
    return true;
  }
  if (std::find(ends.begin(), ends.end(), token.id) != ends.end()) {
    stoppedBy = "eos";
    return true;
  }
  stoppedBy = limit.isContextEnd ? "context" : "length";
  return count == limit.tokens;
}

bool Generation::begin(Session &own, Error &error) {
  sampler.emplace(sampling());
  sampler->setPromptLength(promptLength);
  chooser.emplace(own, *sampler, options.logprobs >= 0, constraint.get(),
                  options.timestampRules, promptLength);
  chooser->prepare(bannedAt(1));
  return own.step(history.data(), static_cast<int64_t>(promptLength), error);
}

bool Generation::choose(bool &isOver, std::string &stoppedBy, Error &error) {
  NewToken token;
  token.id = forced;
  if (++count >= firstFree &&
      !chooser->choose(history, bannedAt(count), token, error))
    return false;
  history.push_back(token.id);
  isOver = isLast(token, count, stoppedBy);
  if (!isOver && constraint && constraint->isOver()) {
    stoppedBy = "eos";
    isOver = true;
  }
  if (!isOver)
    chooser->prepare(bannedAt(count + 1));
  return true;
}

bool Generation::decode(Session &own, std::string &stoppedBy, Error &error) {
  if (!begin(own, error))
    return false;
  for (bool isOver = false;;) {
    if (!choose(isOver, stoppedBy, error))
      return false;
    if (isOver)
      return true;
    int64_t id = lastToken();
    if (!own.step(&id, 1, error))
      return false;
  }
}

/// Guesses of what follows, before the new token of number `count`.
bool Generation::findGuesses(Sampler &sampler, int64_t count, Error &error) {
  guesses.clear();
  guessedFrom.clear();
  // The step gives one token more than it has guesses.
  int64_t most = options.draftModel ? options.draftTokens : options.lookup;
  auto wanted = static_cast<size_t>(std::min(most, limit.tokens - count));
  // The first tokens have a rule of their own; so few are not worth guessing.
  if (wanted == 0 || count <= firstFree)
    return true;
  if (!options.draftModel) {
    guesses = lookUp(history, wanted);
    return true;
  }
  return options.draftModel->guess(history, wanted, session->vocabulary(),
                                   sampler, info.suppress, guesses, guessedFrom,
                                   error);
}

/// The same as decode() in fewer steps, each of which checks guesses: the
/// model's own choices decide, so that wrong guesses only cost time.
bool Generation::decodeGuessing(std::string &stoppedBy, Error &error) {
  SamplingOptions own = sampling(), others = own;
  others.seed ^= 0x5DEECE66D1234567u; // independent random numbers
  Sampler sampler(own), drafting(others);
  sampler.setPromptLength(promptLength);
  drafting.setPromptLength(promptLength);
  if (options.draftModel &&
      !options.draftModel->start(session->capacity(), error))
    return false;
  GuessCounts ignored;
  GuessCounts &counts = options.guessCounts ? *options.guessCounts : ignored;
  std::vector<Sampler::Choice> choices;
  int64_t width = session->vocabulary();
  auto pending = static_cast<int64_t>(promptLength); // not yet in the cache
  for (int64_t count = 1;;) {
    if (!findGuesses(drafting, count, error))
      return false;
    auto numGuesses = static_cast<int64_t>(guesses.size());
    std::vector<int64_t> ids(history.end() - pending, history.end());
    ids.insert(ids.end(), guesses.begin(), guesses.end());
    const float *logits = nullptr;
    if (numGuesses > 0)
      logits = session->stepAll(ids.data(), pending + numGuesses, error);
    else if (session->step(ids.data(), pending, error))
      logits = session->logits(error);
    if (!logits)
      return false;
    if (numGuesses > 0)
      logits += (pending - 1) * width;
    counts.steps += count > 1;
    counts.guesses += numGuesses;
    int64_t used = 0; // guesses that are part of the text
    for (bool goesOn = true; goesOn; ++count) {
      const float *row = logits + used * width;
      NewToken token;
      token.id = forced;
      goesOn = false;
      if (count >= firstFree) {
        if (!sampler.weigh(row, width, history, choices, error,
                           bannedAt(count)))
          return false;
        if (used < numGuesses) {
          const auto *from = guessedFrom.empty() ? nullptr : &guessedFrom[used];
          goesOn = sampler.accept(choices, from, guesses[used], token.id);
        } else {
          token.id = sampler.choose(choices);
        }
        token.logits = options.logprobs >= 0 ? row : nullptr;
        token.vocabulary = width;
      }
      used += goesOn;
      counts.accepted += goesOn;
      counts.tokens += count > 1;
      history.push_back(token.id);
      if (isLast(token, count, stoppedBy))
        return true;
    }
    // The cache ends before the last token.
    pending = 1;
    if (!session->rewind(static_cast<int64_t>(history.size()) - 1, error))
      return false;
  }
}

bool Generation::run(const std::vector<int64_t> &prompt, std::string &stoppedBy,
                     Error &error) {
  if (!start(prompt, error))
    return false;
  if (options.beams > 1)
    return search(stoppedBy, error);
  if (!options.guesses())
    return decode(*session, stoppedBy, error);
  if (!session->canGuess())
    return error.badInput(
        "model '" + info.name +
        "' cannot check guessed tokens: that takes a model for the CPU that "
        "keeps keys and values of its tokens and no state");
  return decodeGuessing(stoppedBy, error);
}

bool generateTokens(CompiledModel &model, const std::vector<int64_t> &prompt,
                    const GenerateOptions &options,
                    bool (*onToken)(void *context, const NewToken &token),
                    void *context, std::string &stoppedBy, Error &error) {
  return Generation(model, options, onToken, context)
      .run(prompt, stoppedBy, error);
}

bool Generation::runEncoded(Session &own, const std::vector<int64_t> &prompt,
                            std::string &stoppedBy, Error &error) {
  isEncoded = true;
  int64_t positions;
  return prepare(prompt, positions, error) && decode(own, stoppedBy, error);
}

bool generateEncoded(CompiledModel &model, Session &session,
                     const std::vector<int64_t> &prompt,
                     const GenerateOptions &options,
                     bool (*onToken)(void *context, const NewToken &token),
                     void *context, std::string &stoppedBy, Error &error) {
  return Generation(model, options, onToken, context)
      .runEncoded(session, prompt, stoppedBy, error);
}

namespace {
/// Texts that take their steps together, as many at a time as there are places.
class Crowd {
public:
  Crowd(CompiledModel &model, const GenerateOptions &options,
        std::vector<TextOfMany> &texts)
      : model(model), options(options), texts(texts) {}

  bool run(TextTimes &times, Error &error);

private:
  bool enter(unsigned place, SessionGroup &group, Error &error);
  bool leave(unsigned place, Error &error);

  CompiledModel &model;
  const GenerateOptions &options;
  std::vector<TextOfMany> &texts;
  std::vector<std::unique_ptr<Generation>> generations;
  size_t entered = 0;
  /// The text at each place; none: it is free.
  std::vector<std::optional<size_t>> textAt;
};
} // namespace

/// The prompt of the next text.
bool Crowd::enter(unsigned place, SessionGroup &group, Error &error) {
  size_t text = entered++;
  Session *session = group.open(place, error);
  if (!session)
    return false;
  session->reset();
  textAt[place] = text;
  return generations[text]->begin(*session, error);
}

/// Chooses a text's next token, after which it may be over.
bool Crowd::leave(unsigned place, Error &error) {
  size_t text = *textAt[place];
  bool isOver = false;
  std::string stoppedBy;
  if (!generations[text]->choose(isOver, stoppedBy, error))
    return false;
  if (!isOver)
    return true;
  textAt[place].reset();
  return texts[text].onEnd(texts[text].context, stoppedBy) ||
         error.badInput("cannot write the output: " +
                        std::string(std::strerror(errno)));
}

bool Crowd::run(TextTimes &times, Error &error) {
  int64_t capacity = 0;
  for (const TextOfMany &text : texts) {
    int64_t positions;
    generations.push_back(std::make_unique<Generation>(
        model, options, text.onToken, text.context));
    if (!generations.back()->prepare(text.prompt, positions, error))
      return false;
    capacity = std::max(capacity, positions);
  }
  auto places = static_cast<unsigned>(std::min(texts.size(), textsAtOnce));
  SessionGroup group(model, places, capacity);
  textAt.resize(places);
  std::vector<unsigned> members;
  std::vector<int64_t> ids;
  do {
    double start = monotonicTime();
    members.clear();
    ids.clear();
    for (unsigned place = 0; place < places; ++place) {
      // A text may be over with its first token.
      while (!textAt[place] && entered < texts.size())
        if (!enter(place, group, error) || !leave(place, error))
          return false;
      if (!textAt[place])
        continue;
      members.push_back(place);
      ids.push_back(generations[*textAt[place]]->lastToken());
    }
    times.prompts += monotonicTime() - start;
    start = monotonicTime();
    if (!members.empty() && !group.step(members, ids, error))
      return false;
    for (unsigned place : members)
      if (!leave(place, error))
        return false;
    times.steps += monotonicTime() - start;
  } while (!members.empty());
  return true;
}

bool canGenerateTogether(CompiledModel &model, const GenerateOptions &options) {
  return options.beams == 1 && !options.guesses() && !model.entry("encode") &&
         SessionGroup(model, /*count=*/2, /*capacity=*/1).stepsTogether();
}

bool generateTogether(CompiledModel &model, const GenerateOptions &options,
                      std::vector<TextOfMany> &texts, TextTimes &times,
                      Error &error) {
  return Crowd(model, options, texts).run(times, error);
}

} // namespace attune::runtime
