//===- Completion.cpp - Texts on their way to a client --------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Completion.h"

#include "../Clock.h"
#include "../Generation/Generation.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <utility>

#include <sys/random.h>

namespace attune::runtime {

//===----------------------------------------------------------------------===//
// Choice
//===----------------------------------------------------------------------===//

static size_t countCharacters(std::string_view text) {
  size_t count = 0;
  for (char byte : text)
    count += (byte & 0xC0) != 0x80; // not one within a character
  return count;
}

Choice::Choice(std::shared_ptr<Completion> owner, unsigned index)
    : completion(std::move(owner)), index(index),
      stop(completion->request.options.stops) {
  const CompletionRequest &request = completion->request;
  AnswerFormat format = completion->model.answers;
  if (request.tellsOfTools)
    format.otherCalls = AnswerFormat::plainCalls;
  bool hasParts = request.isChat && (format.marksReasoning() || request.tools);
  if (hasParts)
    reader = AnswerReader::create(format, request.startsInReasoning,
                                  request.tools.get());
  if (completion->model.tokenizer)
    decoder.reset(
        new StreamDecoder(*completion->model.tokenizer, /*skipSpecial=*/true,
                          hasParts ? format.shown : std::vector<int64_t>()));
}

const char *Choice::whyAbandoned() const {
  if (completion->exchange->isGone.load())
    return "gone";
  if (completion->hasFailed)
    return "failed"; // another choice has
  return monotonicTime() > completion->exchange->deadline ? "timeout" : nullptr;
}

void Choice::reuse(int64_t count) {
  // A prompt of several choices counts once.
  if (index % completion->request.choices == 0)
    completion->exchange->cachedTokens += count;
}

bool Choice::score(size_t place, const NewToken &token) {
  Entry &entry = completion->scores[index / completion->request.choices][place];
  entry.own =
      computeLogprobs(token, completion->request.numScores(), entry.likeliest);
  entry.rank = 1 + std::count_if(token.logits, token.logits + token.vocabulary,
                                 [&](float other) {
                                   return other > token.logits[token.id];
                                 });
  return !std::isnan(entry.own.logprob);
}

void Choice::noteLogprobs(const NewToken &token) {
  Entry entry;
  entry.own = computeLogprobs(token, completion->request.options.logprobs,
                              entry.likeliest);
  entry.offset = numDecoded;
  entry.firstCharacter = numCharacters;
  logprobs.push_back(std::move(entry));
}

bool Choice::push(const NewToken &token) {
  const CompletionRequest &request = completion->request;
  Exchange &exchange = *completion->exchange;
  if (exchange.newTokens++ == 0)
    exchange.firstToken = monotonicTime();
  ++numTokens;
  bool isEnd = std::find(request.ends.begin(), request.ends.end(), token.id) !=
               request.ends.end();
  // Who scores a text leaves the new token out, and counts on there being one.
  if (request.options.logprobs >= 0 && (!isEnd || request.echoesScores()))
    noteLogprobs(token);
  if (isEnd)
    return false;
  if (!decoder) {
    ids.push_back(token.id);
    return true;
  }
  std::string piece = decoder->push(token.id);
  numDecoded += piece.size();
  numCharacters += countCharacters(piece);
  passOn(stop.push(piece));
  if (reader && reader->isReasoning())
    ++exchange.reasoningTokens;
  return !stop.isStopped();
}

void Choice::passOn(const std::string &piece) {
  numShown += piece.size();
  AnswerText read = reader ? reader->push(piece) : AnswerText{"", piece};
  if (!logprobs.empty())
    logprobs.back().isContent = !reader || reader->isContent();
  show(read);
}

void Choice::show(const AnswerText &piece) {
  text.reasoning += piece.reasoning;
  text.content += piece.content;
  // What was certain of earlier tokens is known now.
  if (piece.content.empty() && !piece.reasoning.empty())
    for (size_t i = numRead; i < logprobs.size(); ++i)
      logprobs[i].isContent = false;
  if (!piece.content.empty() || !piece.reasoning.empty())
    numRead = logprobs.size();
  if (!completion->request.streams)
    return;
  sendText("reasoning_content", text.reasoning);
  sendText("content", text.content);
}

void Choice::sendText(const char *member, std::string &piece) {
  if (piece.empty())
    return;
  if (member == std::string_view("reasoning_content") &&
      completion->scoresContentAlone()) {
    completion->sendPiece(*this, member, piece, "null");
  } else {
    size_t from = std::exchange(numSent, logprobs.size());
    completion->sendPiece(*this, member, piece, formatLogprobs(from));
  }
  piece.clear();
}

void Choice::finish(const char *why, const Error &error) {
  std::shared_ptr<Completion> owner = completion; // which forgets its choices
  reason = why;
  if (reason == "error") {
    // A form may turn out to be too large in mid-answer; the client can ask for
    // a smaller one.
    owner->fail(error.code == ExitBadInput ? 400 : 500, error.message, "");
  } else if (reason == "timeout") {
    owner->fail(503, "the request took longer than the server allows",
                "timeout");
  } else if (reason == "stopping") {
    owner->fail(503, "the server is stopping", "stopping");
  } else if (decoder && !stop.isStopped() && reason != "gone") {
    std::string rest = decoder->finish();
    numDecoded += rest.size();
    rest = stop.push(rest);
    passOn(rest + stop.finish());
  }
  if (reader && (reason == "eos" || reason == "caller" || reason == "length" ||
                 reason == "context")) {
    show(reader->finish(calls));
    if (completion->request.callsOnce && calls.size() > 1)
      calls.resize(1);
    if (completion->request.streams && !calls.empty())
      completion->sendCalls(*this);
  }
  if (stop.isStopped())
    reason = "stop";
  // Tokens whose text is behind a stop text were not written.
  // Who scores a text leaves one out all the same.
  size_t least =
      std::max<size_t>(numSent, completion->request.echoesScores() ? 1 : 0);
  while (stop.isStopped() && logprobs.size() > least &&
         logprobs.back().offset >= numShown)
    logprobs.pop_back();
  owner->finishChoice(*this);
}

std::string makeId(const char *kind) {
  uint64_t number = 0;
  if (getrandom(&number, sizeof(number), 0) < 0)
    number = static_cast<uint64_t>(monotonicTime() * 1e9);
  char text[40];
  std::snprintf(text, sizeof(text), "%s%016" PRIx64, kind, number);
  return text;
}

/// Nine letters and digits: Mistral's template takes no others.
std::string makeCallId() {
  static constexpr std::string_view signs =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  std::string name = makeId("").substr(0, 16), out;
  uint64_t number = std::strtoull(name.c_str(), nullptr, 16);
  for (int i = 0; i < 9; ++i, number /= signs.size())
    out += signs[number % signs.size()];
  return out;
}

std::string Choice::formatCalls() const {
  std::string out;
  for (size_t i = 0; i < calls.size(); ++i) {
    out += i ? "," : "[";
    // Pieces of a stream are put together by their index.
    out += completion->request.streams ? "{\"index\":" + std::to_string(i) + ","
                                       : std::string("{");
    out += "\"id\":\"" + makeCallId() +
           "\",\"type\":\"function\",\"function\":{\"name\":";
    appendJsonString(out, calls[i].name);
    out += ",\"arguments\":";
    appendJsonString(out, calls[i].arguments);
    out += "}}";
  }
  return out + "]";
}

static void appendNumber(std::string &out, double value) {
  char number[40];
  std::snprintf(number, sizeof(number), "%.9g", value);
  out += number;
}

/// `tokenizer` is null where tokens have numbers alone.
static std::string nameToken(const Tokenizer *tokenizer, int64_t id) {
  return tokenizer ? tokenizer->bytesOf(id) : "token_id:" + std::to_string(id);
}

/// A token in the form of the interface for chats.
static void appendToken(std::string &out, const Tokenizer *tokenizer,
                        bool namesIds, const TokenLogprob &token) {
  std::string bytes = tokenizer ? tokenizer->bytesOf(token.id) : "";
  out += "{\"token\":";
  appendJsonString(out, namesIds ? nameToken(nullptr, token.id) : bytes);
  out += ",\"id\":" + std::to_string(token.id) + ",\"logprob\":";
  appendNumber(out, token.logprob);
  out += ",\"bytes\":[";
  for (size_t i = 0; i < bytes.size(); ++i)
    out +=
        (i ? "," : "") + std::to_string(static_cast<unsigned char>(bytes[i]));
  out += ']';
}

std::string Choice::formatChatLogprobs(size_t from) const {
  const Tokenizer *tokenizer = completion->model.tokenizer;
  bool namesIds = completion->request.namesIds;
  std::string out;
  for (size_t i = from; i < logprobs.size(); ++i) {
    if (completion->scoresContentAlone() &&
        (i >= numRead || !logprobs[i].isContent))
      continue;
    out += out.empty() ? "{\"content\":[" : ",";
    appendToken(out, tokenizer, namesIds, logprobs[i].own);
    out += ",\"top_logprobs\":[";
    for (size_t k = 0; k < logprobs[i].likeliest.size(); ++k) {
      out += k ? "," : "";
      appendToken(out, tokenizer, namesIds, logprobs[i].likeliest[k]);
      out += '}';
    }
    out += "]}";
  }
  return out.empty() ? "{\"content\":[]}" : out + "]}";
}

namespace {
/// `logprobs` of a completion: four arrays side by side.
class TokenColumns {
public:
  explicit TokenColumns(const Tokenizer *tokenizer) : tokenizer(tokenizer) {}

  /// A token, which may be the first of all: nothing predicts that.
  void add(int64_t id, size_t offset) {
    comma();
    appendJsonString(tokens, nameToken(tokenizer, id));
    offsets += std::to_string(offset);
  }
  void addFirst(int64_t id) {
    add(id, 0);
    own += "null";
    tops += "null";
  }
  void add(const TokenLogprob &token,
           const std::vector<TokenLogprob> &likeliest, size_t most,
           size_t offset) {
    add(token.id, offset);
    appendNumber(own, token.logprob);
    tops += '{';
    // The token itself is there, too. Tokens of equal text are told apart by
    // nothing: the likeliest of them counts.
    std::vector<std::string> names;
    for (size_t i = 0; i < std::min(most, likeliest.size()); ++i)
      addTop(likeliest[i], names);
    if (most > 0)
      addTop(token, names);
    tops += '}';
  }
  std::string format() const {
    return "{\"tokens\":[" + tokens + "],\"token_logprobs\":[" + own +
           "],\"top_logprobs\":[" + tops + "],\"text_offset\":[" + offsets +
           "]}";
  }

private:
  void comma() {
    if (!offsets.empty())
      for (std::string *column : {&tokens, &own, &tops, &offsets})
        *column += ',';
  }
  void addTop(const TokenLogprob &token, std::vector<std::string> &names) {
    std::string name;
    appendJsonString(name, nameToken(tokenizer, token.id));
    if (std::find(names.begin(), names.end(), name) != names.end())
      return;
    tops += (names.empty() ? "" : ",") + name + ":";
    appendNumber(tops, token.logprob);
    names.push_back(std::move(name));
  }

  const Tokenizer *tokenizer;
  std::string tokens, own, tops, offsets;
};
} // namespace

std::string Choice::formatLogprobs(size_t from, bool echoed) const {
  if (completion->request.options.logprobs < 0)
    return "null";
  if (completion->request.isChat)
    return formatChatLogprobs(from);
  const Tokenizer *tokenizer = completion->model.tokenizer;
  const CompletionPrompt &prompt = completion->promptOf(*this);
  TokenColumns columns(completion->request.namesIds ? nullptr : tokenizer);
  auto most = static_cast<size_t>(completion->request.options.logprobs);
  if (echoed && completion->request.echoesScores()) {
    const std::vector<Entry> &scores =
        completion->scores[index / completion->request.choices];
    std::unique_ptr<StreamDecoder> decoder;
    if (tokenizer)
      decoder.reset(new StreamDecoder(*tokenizer, /*skipSpecial=*/true));
    size_t offset = 0, bytes = 0;
    for (size_t place = 0; place < prompt.ids.size(); ++place) {
      if (place == 0)
        columns.addFirst(prompt.ids[0]);
      else
        columns.add(scores[place].own, scores[place].likeliest, most, offset);
      if (!decoder)
        continue;
      // A text may spell special tokens out, which others do not have in it.
      int64_t id = prompt.ids[place];
      std::string piece = decoder->push(id);
      if (tokenizer->isSpecial(id)) {
        std::string_view token = tokenizer->tokenOf(id);
        if (std::string_view(prompt.text).substr(bytes, token.size()) == token)
          piece += token;
      }
      bytes = std::min(bytes + piece.size(), prompt.text.size());
      offset += countCharacters(piece);
    }
  }
  size_t before = completion->request.echo ? countCharacters(prompt.text) : 0;
  for (size_t i = from; i < logprobs.size(); ++i)
    columns.add(logprobs[i].own, logprobs[i].likeliest, most,
                before + logprobs[i].firstCharacter);
  return columns.format();
}

//===----------------------------------------------------------------------===//
// Completion
//===----------------------------------------------------------------------===//

void Completion::start(Scheduler &scheduler) {
  id = makeId(idKind());
  created = static_cast<int64_t>(std::time(nullptr));
  for (const CompletionPrompt &prompt : request.prompts) {
    exchange->promptTokens += static_cast<int64_t>(prompt.ids.size());
    if (request.scoresPrompt())
      scores.emplace_back(prompt.ids.size());
    for (int64_t i = 0; i < request.choices; ++i)
      choices.emplace_back(new Choice(shared_from_this(),
                                      static_cast<unsigned>(choices.size())));
  }
  // The scheduler may be done with the first before the last is there.
  std::vector<SequenceRequest> sequences;
  for (size_t i = 0; i < choices.size(); ++i) {
    SequenceRequest sequence;
    CompletionPrompt &prompt = request.prompts[i / request.choices];
    sequence.prompt = prompt.ids;
    sequence.pictures = prompt.pictures;
    TokenLimit limit;
    Error error;
    if (request.options.maxNewTokens != 0 &&
        !findTokenLimit(request.options,
                        static_cast<int64_t>(sequence.prompt.size()),
                        model.capacity, limit, error)) {
      choices.clear();
      postError(outbox, exchange, 400, error.message);
      return;
    }
    sequence.adapter = request.adapter;
    sequence.limit = limit.tokens;
    sequence.isContextEnd = limit.isContextEnd;
    sequence.sampling = request.options.sampling;
    sequence.sampling.seed += i;
    sequence.ends = request.ends;
    sequence.wantsLogits =
        request.options.logprobs >= 0 || request.scoresPrompt();
    // One text of a prompt has it scored. An event of a stream has scores, too,
    // so that each waits for its own.
    sequence.scoresPrompt =
        request.scoresPrompt() && (request.streams || i % request.choices == 0);
    sequence.automaton = request.options.automaton;
    sequence.formBehind = request.options.formBehind;
    if (request.choices > 1)
      sequence.family = choices[i - i % request.choices].get();
    sequence.sink = choices[i];
    sequences.push_back(std::move(sequence));
  }
  // What their vectors are in goes where it came from: on the scheduler's
  // thread.
  for (CompletionPrompt &prompt : request.prompts)
    prompt.pictures.clear();
  scheduler.submit(std::move(sequences));
}

std::string Completion::beginObject(bool isChunk) const {
  std::string out = "{\"id\":\"" + id + "\",\"object\":\"";
  out += !request.isChat ? "text_completion"
         : isChunk       ? "chat.completion.chunk"
                         : "chat.completion";
  out += "\",\"created\":" + std::to_string(created) + ",\"model\":";
  appendJsonString(out, nameModel());
  return out + ",\"choices\":[";
}

/// Why a text ended, in OpenAI's words.
static const char *nameReason(const std::string &reason, bool calls) {
  if (calls)
    return "tool_calls";
  return reason == "length" || reason == "context" ? "length" : "stop";
}

std::string Completion::formatUsage() const {
  int64_t read = exchange->promptTokens, written = exchange->newTokens;
  std::string out = "{\"prompt_tokens\":" + std::to_string(read) +
                    ",\"completion_tokens\":" + std::to_string(written) +
                    ",\"total_tokens\":" + std::to_string(read + written) +
                    ",\"prompt_tokens_details\":{\"cached_tokens\":" +
                    std::to_string(exchange->cachedTokens) + "}";
  if (request.isChat)
    out += ",\"completion_tokens_details\":{\"reasoning_tokens\":" +
           std::to_string(exchange->reasoningTokens) + "}";
  return out + "}";
}

void Completion::sendEvent(const std::string &data, const char *name) {
  ReplyPart part;
  part.exchange = exchange;
  part.status = hasBegun ? 0 : 200;
  part.type = "text/event-stream";
  if (name)
    part.body = "event: " + std::string(name) + "\n";
  part.body += "data: " + data + "\n\n";
  part.isLast = false;
  hasBegun = true;
  outbox.post(std::move(part));
}

void Completion::sendChoice(const Choice &choice, const std::string &fields,
                            const char *finishReason) {
  auto send = [&](const std::string &members, const char *reason) {
    std::string data = beginObject(/*isChunk=*/true) +
                       "{\"index\":" + std::to_string(choice.index) + "," +
                       members + ",\"finish_reason\":";
    data += reason ? "\"" + std::string(reason) + "\"" : "null";
    sendEvent(data + "}]" + (request.includesUsage ? ",\"usage\":null}" : "}"));
  };
  Choice &mine = *choices[choice.index];
  if (!mine.isOpen) {
    mine.isOpen = true;
    if (request.isChat) {
      send("\"delta\":{\"role\":\"assistant\",\"content\":\"\"},"
           "\"logprobs\":null",
           nullptr);
    } else if (request.echo) {
      std::string echoed = "\"text\":";
      appendJsonString(echoed, promptOf(choice).text);
      // Those of new tokens come in the events behind it.
      send(echoed + ",\"logprobs\":" +
               choice.formatLogprobs(choice.logprobs.size(), /*echoed=*/true),
           nullptr);
    }
  }
  send(fields, finishReason);
}

/// The tokens of a prompt in vLLM's form, by their ids.
std::string Completion::formatPromptLogprobs(size_t prompt) const {
  const std::vector<int64_t> &ids = request.prompts[prompt].ids;
  std::string out = ",\"prompt_logprobs\":[null";
  for (size_t place = 1; place < ids.size(); ++place) {
    const Choice::Entry &entry = scores[prompt][place];
    out += ",{";
    bool isFirst = true;
    auto add = [&](const TokenLogprob &token, int64_t rank) {
      out += std::string(isFirst ? "\"" : ",\"") + std::to_string(token.id) +
             "\":{\"logprob\":";
      appendNumber(out, token.logprob);
      out += ",\"rank\":" + std::to_string(rank) + ",\"decoded_token\":";
      appendJsonString(out, nameToken(model.tokenizer, token.id));
      out += "}";
      isFirst = false;
    };
    bool isThere = false;
    auto most = static_cast<size_t>(request.promptLogprobs);
    for (size_t i = 0; i < std::min(most, entry.likeliest.size()); ++i) {
      add(entry.likeliest[i], static_cast<int64_t>(i) + 1);
      isThere |= entry.likeliest[i].id == entry.own.id;
    }
    if (!isThere)
      add(entry.own, entry.rank);
    out += "}";
  }
  return out + "]";
}

std::string Completion::formatChoice(const Choice &choice) const {
  std::string out = "{\"index\":" + std::to_string(choice.index);
  if (request.isChat) {
    out += ",\"message\":{\"role\":\"assistant\",\"content\":";
    if (choice.text.content.empty() && !choice.calls.empty())
      out += "null";
    else
      appendJsonString(out, choice.text.content);
    if (!choice.text.reasoning.empty()) {
      out += ",\"reasoning_content\":";
      appendJsonString(out, choice.text.reasoning);
    }
    if (!choice.calls.empty())
      out += ",\"tool_calls\":" + choice.formatCalls();
    out += ",\"refusal\":null}";
  } else {
    out += ",\"text\":";
    appendJsonString(out, (request.echo ? promptOf(choice).text : "") +
                              choice.text.content);
    if (!model.tokenizer) {
      out += ",\"token_ids\":[";
      for (size_t i = 0; i < choice.ids.size(); ++i)
        out += (i ? "," : "") + std::to_string(choice.ids[i]);
      out += ']';
    }
  }
  if (!request.isChat && request.promptLogprobs >= 0)
    out += formatPromptLogprobs(choice.index / request.choices);
  return out + ",\"logprobs\":" + choice.formatLogprobs(0, request.echo) +
         ",\"finish_reason\":\"" +
         nameReason(choice.reason, !choice.calls.empty()) + "\"}";
}

void Completion::sendPiece(Choice &choice, const char *member,
                           const std::string &piece,
                           const std::string &logprobs) {
  std::string fields = request.isChat
                           ? "\"delta\":{\"" + std::string(member) + "\":"
                           : "\"text\":";
  appendJsonString(fields, piece);
  fields += request.isChat ? "}" : "";
  sendChoice(choice, fields + ",\"logprobs\":" + logprobs, nullptr);
}

void Completion::sendCalls(Choice &choice) {
  sendChoice(choice,
             "\"delta\":{\"tool_calls\":" + choice.formatCalls() +
                 "},\"logprobs\":null",
             nullptr);
}

void Completion::sendEnd(Choice &choice, const std::string &logprobs) {
  sendChoice(choice,
             std::string(request.isChat ? "\"delta\":{}" : "\"text\":\"\"") +
                 ",\"logprobs\":" + logprobs,
             nameReason(choice.reason, !choice.calls.empty()));
}

void Completion::sendError(int status, const std::string &message,
                           const char *code) {
  sendEvent(formatError(status, message, "", code));
}

void Completion::sendLast(ReplyPart part) {
  if (request.includesUsage)
    sendEvent(beginObject(/*isChunk=*/true) + "],\"usage\":" + formatUsage() +
              "}");
  part.body = "data: [DONE]\n\n";
  outbox.post(std::move(part));
}

std::string Completion::formatReply() {
  std::string out = beginObject(/*isChunk=*/false);
  for (size_t i = 0; i < choices.size(); ++i)
    out += (i ? "," : "") + formatChoice(*choices[i]);
  out += "]";
  if (request.isChat && request.promptLogprobs >= 0)
    out += formatPromptLogprobs(0);
  return out + ",\"usage\":" + formatUsage() + "}";
}

/// Answers with an error, which ends all choices.
void Completion::fail(int status, const std::string &message,
                      const char *code) {
  if (hasFailed)
    return;
  hasFailed = true;
  exchange->finish = *code ? code : "error";
  if (!hasBegun) {
    postError(outbox, exchange, status, message, "", code);
    return;
  }
  sendError(status, message, code);
  ReplyPart end;
  end.exchange = exchange;
  outbox.post(std::move(end));
}

void Completion::finishChoice(Choice &choice) {
  // Entries of tokens that no text came after.
  std::string rest = choice.numSent < choice.logprobs.size()
                         ? choice.formatLogprobs(choice.numSent)
                         : "null";
  if (!hasFailed && request.streams && choice.reason != "gone")
    sendEnd(choice, rest);
  if (exchange->finish.empty() && !hasFailed)
    exchange->finish = choice.reason;
  if (++numFinished < choices.size())
    return;
  if (!hasFailed)
    finishAll();
  choices.clear();
}

void Completion::finishAll() {
  ReplyPart part;
  part.exchange = exchange;
  if (exchange->isGone.load()) {
    outbox.post(std::move(part)); // nobody reads it; the exchange is over
    return;
  }
  if (request.streams) {
    sendLast(std::move(part));
    return;
  }
  part.status = 200;
  part.body = formatReply();
  outbox.post(std::move(part));
}

} // namespace attune::runtime
