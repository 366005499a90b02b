//===- Conversation.cpp - Messages and the cache that holds them ----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Conversation.h"

#include <algorithm>

namespace attune::runtime {

/// Room for a conversation where the model sets no limit.
static constexpr int64_t defaultContext = 4096;
/// A long prompt is computed in parts, so that it can be interrupted.
static constexpr size_t partLength = 512;

std::unique_ptr<Conversation> Conversation::create(CompiledModel &model,
                                                   const ChatOptions &options,
                                                   Error &error) {
  const ModelInfo &info = model.info();
  if (info.tokenizerJson.empty()) {
    error.badInput("model '" + info.name +
                   "' carries no tokenizer, so it cannot chat; compile it "
                   "with --tokenizer=FILE");
    return nullptr;
  }
  if (model.encodes()) {
    error.badInput("model '" + info.name +
                   "' is an encoder-decoder, which does not chat; use "
                   "'generate'");
    return nullptr;
  }
  std::unique_ptr<Conversation> result(new Conversation(model, options));
  result->prompt = ChatPrompt::create(info, options.chat, error);
  if (!result->prompt)
    return nullptr;
  result->tokenizer = Tokenizer::create(info.tokenizerJson, error);
  if (!result->tokenizer)
    return nullptr;
  const EntryInfo *decoder = model.entry("decode");
  int64_t most =
      decoder ? decoder->countablePositions(info.context) : info.context;
  int64_t capacity = options.context;
  if (most >= 0 && capacity > most) {
    error.badInput("--context=" + std::to_string(capacity) +
                   " is more than the model's context of " +
                   std::to_string(most));
    return nullptr;
  }
  if (capacity < 0)
    capacity = most >= 0 ? most : defaultContext;
  result->session = Session::create(model, /*batch=*/1, capacity, error);
  if (!result->session)
    return nullptr;
  if (!options.generate.sampling.check(ExitBadInput, error))
    return nullptr;
  result->ends = info.eos;
  for (int64_t id : result->prompt->findEnds(*result->tokenizer))
    result->ends.push_back(id);
  if (options.chat.hasSystem)
    result->setSystem(options.chat.system);
  return result;
}

void Conversation::setSystem(const std::string &text) {
  if (hasSystem)
    messages.erase(messages.begin());
  hasSystem = !text.empty();
  if (hasSystem)
    messages.insert(messages.begin(), {"system", text});
}

void Conversation::reset() { messages.resize(hasSystem ? 1 : 0); }

std::string Conversation::toJson() const {
  std::string out = "[";
  for (size_t i = 0; i < messages.size(); ++i) {
    out += i ? ",\n {\"role\": " : "{\"role\": ";
    appendJsonString(out, messages[i].role);
    out += ", \"content\": ";
    appendJsonString(out, messages[i].content);
    out += "}";
  }
  return out + "]\n";
}

bool Conversation::step(const int64_t *ids, size_t count, Error &error) {
  if (!session->step(ids, static_cast<int64_t>(count), error)) {
    session->reset();
    cached.clear();
    return false;
  }
  cached.insert(cached.end(), ids, ids + count);
  return true;
}

/// Computes what the cache does not hold of the ids.
bool Conversation::prefill(const std::vector<int64_t> &ids, Error &error) {
  size_t common = 0;
  while (common < ids.size() && common < cached.size() &&
         ids[common] == cached[common])
    ++common;
  // The logits are those of the last id, so that one is computed anyway.
  common = std::min(common, ids.size() - 1);
  // The state of a recurrent layer cannot be taken back.
  Error ignored;
  if (!session->rewind(static_cast<int64_t>(common), ignored)) {
    session->reset();
    common = 0;
  }
  cached.resize(common);
  numReused = static_cast<int64_t>(common);
  numComputed = static_cast<int64_t>(ids.size() - common);
  for (size_t at = common; at < ids.size(); at += partLength)
    if (!step(ids.data() + at, std::min(partLength, ids.size() - at), error))
      return false;
  return true;
}

bool Conversation::answer(std::vector<int64_t> history, AnswerSink sink,
                          void *context, std::string &text, End &end,
                          Error &error) {
  const ModelInfo &info = model.info();
  sampler.setPromptLength(history.size());
  std::vector<int64_t> notFirst = info.suppress;
  notFirst.insert(notFirst.end(), info.beginSuppress.begin(),
                  info.beginSuppress.end());
  StreamDecoder decoder(*tokenizer, /*skipSpecial=*/true);
  int64_t limit = options.generate.maxNewTokens;
  auto pass = [&](const std::string &piece) {
    text += piece;
    return piece.empty() || sink(context, piece);
  };
  for (int64_t count = 1;; ++count) {
    const float *logits = session->logits(error);
    int64_t id;
    if (!logits ||
        !sampler.sample(logits, session->vocabulary(), history, id, error,
                        count == 1 ? notFirst : info.suppress))
      return false;
    history.push_back(id);
    if (std::find(ends.begin(), ends.end(), id) != ends.end()) {
      end = End::Turn;
      break;
    }
    // An empty piece asks, too, whether to go on.
    std::string piece = decoder.push(id);
    text += piece;
    if (!sink(context, piece)) {
      end = End::Stopped;
      break;
    }
    if (limit >= 0 && count >= limit) {
      end = End::Length;
      break;
    }
    if (session->length() == session->capacity()) {
      end = End::Context;
      break;
    }
    if (!step(&id, 1, error))
      return false;
  }
  pass(decoder.finish());
  return true;
}

bool Conversation::ask(const std::string &question, AnswerSink sink,
                       void *context, End &end, Error &error) {
  messages.push_back({"user", question});
  std::vector<int64_t> ids;
  std::string text;
  bool good = prompt->encode(*tokenizer, messages, ids, error);
  if (good && static_cast<int64_t>(ids.size()) >= session->capacity())
    good = error.badInput("the conversation has " + std::to_string(ids.size()) +
                          " tokens, but the context holds " +
                          std::to_string(session->capacity()) +
                          " with the answer; /reset starts a new conversation");
  good = good && prefill(ids, error) &&
         answer(ids, sink, context, text, end, error);
  if (!good) {
    messages.pop_back();
    return false;
  }
  messages.push_back({"assistant", text});
  return true;
}

} // namespace attune::runtime
