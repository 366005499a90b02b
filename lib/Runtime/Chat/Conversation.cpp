//===- Conversation.cpp - Messages and the cache that holds them ----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Conversation.h"

#include "attune/Runtime/Json.h"
#include "attune/Runtime/Picture.h"

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
  if (!info.hasTokenizer()) {
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
  result->tokenizer = Tokenizer::open(info, error);
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
  result->format = AnswerFormat(*result->prompt, *result->tokenizer);
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
    messages.insert(messages.begin(), {"system", text, {}});
}

void Conversation::reset() {
  messages.resize(hasSystem ? 1 : 0);
  attached.clear();
}

bool Conversation::attach(const std::string &file, Error &error) {
  PicturePtr picture = readPicture(model.info(), file, error);
  if (picture)
    attached.push_back(std::move(picture));
  return error.code == ExitSuccess;
}

/// A content as transformers reads it.
static void appendContent(std::string &out, const ChatMessage &message) {
  for (const PicturePtr &picture : message.pictures) {
    out += &picture == &message.pictures[0] ? "[" : ", ";
    out += "{\"type\": \"image\", \"path\": ";
    appendJsonString(out, picture->name);
    out += "}";
  }
  if (!message.pictures.empty())
    out += ", {\"type\": \"text\", \"text\": ";
  appendJsonString(out, message.content);
  if (!message.pictures.empty())
    out += "}]";
}

std::string Conversation::toJson() const {
  std::string out = "[";
  for (size_t i = 0; i < messages.size(); ++i) {
    out += i ? ",\n {\"role\": " : "{\"role\": ";
    appendJsonString(out, messages[i].role);
    out += ", \"content\": ";
    appendContent(out, messages[i]);
    if (!messages[i].reasoning.empty()) {
      out += ", \"reasoning_content\": ";
      appendJsonString(out, messages[i].reasoning);
    }
    out += "}";
  }
  return out + "]\n";
}

bool Conversation::fromJson(const std::string &json, Error &error) {
  JsonValue list;
  std::string why;
  if (!parseJson(json, list, why))
    return error.badInput(why);
  if (!list.isArray())
    return error.badInput(std::string("expected an array of messages, found ") +
                          list.kindName());
  std::vector<ChatMessage> loaded;
  for (const JsonValue &item : list.items) {
    std::string place = "message " + std::to_string(loaded.size() + 1);
    const JsonValue *role = item.isObject() ? item.find("role") : nullptr;
    const JsonValue *content = item.isObject() ? item.find("content") : nullptr;
    bool isSystem = role && role->isString() && role->string == "system";
    if (!role || !role->isString() || !content ||
        (isSystem ? !loaded.empty()
                  : role->string != "user" && role->string != "assistant"))
      return error.badInput(place + ": expected {\"role\", \"content\"} of the "
                                    "user or the assistant, or first of the "
                                    "system");
    if (!content->isString())
      return error.badInput(place +
                            ": expected a text as its content; pictures "
                            "are not loaded");
    const JsonValue *reasoning = item.find("reasoning_content");
    if (reasoning && !reasoning->isString())
      return error.badInput(place + ": expected a text as reasoning_content");
    ChatMessage &message = loaded.emplace_back();
    message.role = role->string;
    message.content = content->string;
    if (reasoning)
      message.reasoning = reasoning->string;
  }
  hasSystem = !loaded.empty() && loaded[0].role == "system";
  messages = std::move(loaded);
  attached.clear();
  return true;
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

/// Computes what the cache does not hold of the ids, which show the pictures.
bool Conversation::prefill(const std::vector<int64_t> &ids,
                           const std::vector<PicturePtr> &pictures,
                           AnswerSink sink, void *context, bool &isStopped,
                           Error &error) {
  std::vector<int64_t> keys = cacheKeys(model.info(), ids, pictures);
  size_t common = 0;
  while (common < keys.size() && common < cached.size() &&
         keys[common] == cached[common])
    ++common;
  // The logits are those of the last id, so that one is computed anyway.
  common = placeToCut(model.info(), keys, std::min(common, ids.size() - 1),
                      /*after=*/false);
  // The state of a recurrent layer cannot be taken back.
  Error ignored;
  if (!session->rewind(static_cast<int64_t>(common), ignored)) {
    session->reset();
    common = 0;
  }
  cached.resize(common);
  if (!session->see(pictures, error)) {
    session->reset();
    cached.clear();
    return false;
  }
  numReused = static_cast<int64_t>(common);
  numComputed = static_cast<int64_t>(ids.size() - common);
  for (size_t at = common, end; at < ids.size(); at = end) {
    end = placeToCut(model.info(), keys, std::min(at + partLength, ids.size()),
                     /*after=*/true);
    if (!step(ids.data() + at, end - at, error))
      return false;
    // An empty piece asks whether to go on.
    isStopped = !sink(context, {});
    if (isStopped) {
      keys.resize(end);
      numComputed = static_cast<int64_t>(end - common);
      break;
    }
  }
  cached = std::move(keys);
  return true;
}

bool Conversation::answer(std::vector<int64_t> history, AnswerSink sink,
                          void *context, AnswerText &text, End &end,
                          Error &error) {
  const ModelInfo &info = model.info();
  std::unique_ptr<AnswerReader> reader = AnswerReader::create(
      format, format.opensReasoning(*tokenizer, history), /*tools=*/nullptr);
  sampler.setPromptLength(history.size());
  std::vector<int64_t> notFirst = info.suppress;
  notFirst.insert(notFirst.end(), info.beginSuppress.begin(),
                  info.beginSuppress.end());
  StreamDecoder decoder(*tokenizer, /*skipSpecial=*/true, format.shown);
  int64_t limit = options.generate.maxNewTokens;
  auto pass = [&](const AnswerText &piece) {
    text.reasoning += piece.reasoning;
    text.content += piece.content;
    return sink(context, piece);
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
    if (!pass(reader->push(decoder.push(id)))) {
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
  pass(reader->push(decoder.finish()));
  std::vector<ToolCall> none;
  pass(reader->finish(none));
  return true;
}

bool Conversation::ask(const std::string &question, AnswerSink sink,
                       void *context, End &end, Error &error) {
  messages.push_back({"user", question, {}});
  messages.back().show(model.info(), *tokenizer, attached);
  std::vector<PicturePtr> pictures;
  for (const ChatMessage &message : messages)
    pictures.insert(pictures.end(), message.pictures.begin(),
                    message.pictures.end());
  std::vector<int64_t> ids;
  AnswerText text;
  bool good =
      prompt->encode(*tokenizer, messages, ids, error) &&
      placePictures(model.info(), tokenizer.get(), pictures, ids, error);
  if (good && static_cast<int64_t>(ids.size()) >= session->capacity())
    good = error.badInput("the conversation has " + std::to_string(ids.size()) +
                          " tokens, but the context holds " +
                          std::to_string(session->capacity()) +
                          " with the answer; /reset starts a new conversation");
  bool isStopped = false;
  good = good && prefill(ids, pictures, sink, context, isStopped, error) &&
         (isStopped || answer(ids, sink, context, text, end, error));
  if (isStopped)
    end = End::Stopped;
  if (!good || isStopped) {
    messages.pop_back();
    return good;
  }
  attached.clear();
  messages.push_back({"assistant", text.content, {}});
  messages.back().reasoning = text.reasoning;
  return true;
}

} // namespace attune::runtime
