//===- CliGenerate.cpp - generate on a command line -----------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Chat/AnswerReader.h"
#include "../Chat/ReasoningPrinter.h"
#include "../Clock.h"
#include "../Generation/Generation.h"
#include "../Generation/StopText.h"
#include "../Generation/TokenLogprobs.h"
#include "../Grammar/GrammarAutomaton.h"
#include "../Sound/LetterWriter.h"
#include "CliCompose.h"
#include "CliTranscribe.h"

#include "attune/Runtime/Chat.h"
#include "attune/Runtime/Cli.h"
#include "attune/Runtime/Guess.h"
#include "attune/Runtime/Picture.h"
#include "attune/Runtime/Tokenizer.h"
#include "attune/Runtime/WholeFile.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace attune::runtime {

static void appendIds(std::string &out, const std::vector<int64_t> &ids) {
  out += '[';
  for (size_t i = 0; i < ids.size(); ++i)
    out += (i ? "," : "") + std::to_string(ids[i]);
  out += ']';
}

namespace {
/// Prints the tokens of one prompt as they come.
class Printer {
public:
  Printer(FILE *out, const GenerateOptions &options,
          GenerateOptions::Format format, const Tokenizer *tokenizer,
          const std::vector<int64_t> *endTokens)
      : out(out), options(options), format(format), tokenizer(tokenizer),
        endTokens(endTokens), stop(options.stops) {
    if (tokenizer)
      decoder.reset(new StreamDecoder(*tokenizer, /*skipSpecial=*/true));
  }

  /// The text is an answer of a chat. Reasoning goes to `messages`; if they
  /// are null, it is in JSON alone.
  void readAnswer(const AnswerFormat &answers, bool startsInReasoning,
                  const Messages *messages);
  /// Before the first token: the prompt, as text if that is known.
  void echo(const Prompt &prompt, const std::vector<int64_t> &ids);
  /// False: no more tokens are wanted.
  bool push(const NewToken &token);
  /// After the last token. `good`: nothing went wrong.
  void finish(bool good, const std::vector<int64_t> &promptIds,
              std::string stoppedBy);

  const std::vector<int64_t> &newIds() const { return ids; }
  double timeOfFirst() const { return firstTime; }
  bool isBroken() const { return broken; }

private:
  void print(const std::string &piece) {
    if (piece.empty())
      return;
    if (std::fwrite(piece.data(), 1, piece.size(), out) != piece.size() ||
        std::fflush(out) != 0)
      broken = true;
  }
  /// Takes text that was not stopped.
  void show(const AnswerText &piece);
  void noteLogprobs(const NewToken &token);
  void appendToken(std::string &json, const TokenLogprob &token) const;

  FILE *out;
  const GenerateOptions &options;
  GenerateOptions::Format format;
  const Tokenizer *tokenizer;
  const std::vector<int64_t> *endTokens; ///< null: they are text like others
  std::unique_ptr<StreamDecoder> decoder;
  StopText stop;
  std::unique_ptr<AnswerReader> reader; ///< null: the text is as it is
  std::unique_ptr<ReasoningPrinter> reasoning;
  std::vector<int64_t> ids;
  std::string echoed, logprobs; ///< only for JSON, as the text
  AnswerText text;
  bool broken = false;
  double firstTime = 0;
};
} // namespace

void Printer::readAnswer(const AnswerFormat &answers, bool startsInReasoning,
                         const Messages *messages) {
  reader = AnswerReader::create(answers, startsInReasoning, /*tools=*/nullptr);
  decoder.reset(
      new StreamDecoder(*tokenizer, /*skipSpecial=*/true, answers.shown));
  if (messages && format == GenerateOptions::Format::Text)
    reasoning.reset(new ReasoningPrinter(*messages));
}

void Printer::show(const AnswerText &piece) {
  if (format == GenerateOptions::Format::Json) {
    text.reasoning += piece.reasoning;
    text.content += piece.content;
    return;
  }
  if (reasoning) {
    reasoning->print(piece.reasoning);
    if (!piece.content.empty())
      reasoning->end();
  }
  if (format == GenerateOptions::Format::Text)
    print(piece.content);
}

void Printer::echo(const Prompt &prompt,
                   const std::vector<int64_t> &promptIds) {
  if (format == GenerateOptions::Format::Ids) {
    std::string list;
    for (int64_t id : promptIds)
      list += std::to_string(id) + ",";
    print(list);
    return;
  }
  echoed = prompt.isText ? prompt.text
           : tokenizer   ? tokenizer->decode(promptIds, /*skipSpecial=*/true)
                         : "";
  if (format == GenerateOptions::Format::Text)
    print(echoed);
}

void Printer::appendToken(std::string &json, const TokenLogprob &token) const {
  char number[40];
  std::snprintf(number, sizeof(number), "%.9g", token.logprob);
  json += "{\"id\":" + std::to_string(token.id);
  if (tokenizer) {
    json += ",\"token\":";
    appendJsonString(json, tokenizer->bytesOf(token.id));
  }
  json += std::string(",\"logprob\":") + number;
}

void Printer::noteLogprobs(const NewToken &token) {
  std::vector<TokenLogprob> likeliest;
  TokenLogprob own = computeLogprobs(token, options.logprobs, likeliest);
  logprobs += logprobs.empty() ? "" : ",";
  appendToken(logprobs, own);
  for (size_t i = 0; i < likeliest.size(); ++i) {
    logprobs += i ? "," : ",\"top\":[";
    appendToken(logprobs, likeliest[i]);
    logprobs += "}";
  }
  logprobs += likeliest.empty() ? "}" : "]}";
}

bool Printer::push(const NewToken &token) {
  if (ids.empty())
    firstTime = monotonicTime();
  ids.push_back(token.id);
  bool end = endTokens && std::find(endTokens->begin(), endTokens->end(),
                                    token.id) != endTokens->end();
  if (options.logprobs >= 0)
    noteLogprobs(token);
  std::string piece;
  if (decoder && !end)
    piece = stop.push(decoder->push(token.id));
  if (format == GenerateOptions::Format::Ids)
    print((ids.size() > 1 ? "," : "") + std::to_string(token.id));
  show(reader ? reader->push(piece) : AnswerText{"", piece});
  return !broken && !stop.isStopped();
}

void Printer::finish(bool good, const std::vector<int64_t> &promptIds,
                     std::string stoppedBy) {
  std::string rest;
  if (decoder && !stop.isStopped()) {
    rest = stop.push(decoder->finish());
    rest += stop.finish();
  }
  if (stop.isStopped())
    stoppedBy = "stop";
  show(reader ? reader->push(rest) : AnswerText{"", rest});
  if (std::vector<ToolCall> none; reader)
    show(reader->finish(none));
  if (reasoning)
    reasoning->end();
  if (format == GenerateOptions::Format::Text) {
    // A command that failed before its first token prints nothing at all.
    print(good || !ids.empty() ? "\n" : "");
    return;
  }
  if (format == GenerateOptions::Format::Ids) {
    print(good || !ids.empty() ? "\n" : "");
    return;
  }
  if (!good)
    return;
  std::string json = "{";
  if (options.echo) {
    json += "\"prompt\":";
    appendJsonString(json, echoed);
    json += ",";
  }
  json += "\"prompt_ids\":";
  appendIds(json, promptIds);
  json += ",\"ids\":";
  appendIds(json, ids);
  if (decoder) {
    json += ",\"text\":";
    appendJsonString(json, text.content);
  }
  if (!text.reasoning.empty()) {
    json += ",\"reasoning\":";
    appendJsonString(json, text.reasoning);
  }
  if (options.logprobs >= 0)
    json += ",\"logprobs\":[" + logprobs + "]";
  print(json + ",\"stopped_by\":\"" + stoppedBy + "\"}\n");
}

namespace {
/// Sums over all prompts, for --stats.
struct Statistics {
  size_t promptTokens = 0, newTokens = 0;
  double first = 0, later = 0;
};
} // namespace

static void printStatistics(const Statistics &sum, uint64_t bytes,
                            const Messages &messages) {
  // A GPU is done with a prompt in milliseconds.
  auto digits = [](double seconds) { return seconds < 0.1 ? 6 : 3; };
  char text[300];
  std::snprintf(text, sizeof(text),
                "prompt: %zu tokens in %.*f s; then %zu tokens in %.*f s "
                "(%.1f tokens/s); intermediate results: %llu bytes",
                sum.promptTokens, digits(sum.first), sum.first, sum.newTokens,
                digits(sum.later), sum.later,
                sum.later > 0 ? static_cast<double>(sum.newTokens) / sum.later
                              : 0.0,
                static_cast<unsigned long long>(bytes));
  messages.note(text);
}

static void printGuesses(const GuessCounts &counts, const Statistics &sum,
                         const Messages &messages) {
  auto ratio = [](int64_t a, double b) {
    return b > 0 ? static_cast<double>(a) / b : 0.0;
  };
  char text[200];
  std::snprintf(text, sizeof(text),
                "guesses: %lld of %lld were right; %.2f tokens a step, %.1f "
                "tokens/s",
                static_cast<long long>(counts.accepted),
                static_cast<long long>(counts.guesses),
                ratio(counts.tokens, static_cast<double>(counts.steps)),
                ratio(static_cast<int64_t>(sum.newTokens), sum.later));
  messages.note(text);
}

/// The tokenizer, if a prompt or the format asks for it.
static bool openTokenizer(const ModelInfo &info, const GenerateOptions &options,
                          const std::vector<Prompt> &prompts,
                          GenerateOptions::Format format,
                          std::unique_ptr<Tokenizer> &tokenizer, Error &error) {
  bool hasTokenizer = info.hasTokenizer();
  bool hasText =
      std::any_of(prompts.begin(), prompts.end(),
                  [](const Prompt &prompt) { return prompt.isText; });
  if (!hasTokenizer && hasText)
    return error.badInput("model '" + info.name +
                          "' carries no tokenizer; give --prompt-ids");
  if (!hasTokenizer && format == GenerateOptions::Format::Text)
    return error.badInput("model '" + info.name +
                          "' carries no tokenizer; use --format=ids");
  if (!hasTokenizer && !options.stops.empty())
    return error.badInput("model '" + info.name +
                          "' carries no tokenizer, so that --stop has no text "
                          "to look at");
  bool hasForm = options.form.kind != TextForm::Kind::Any;
  if (!hasTokenizer && hasForm)
    return error.badInput("model '" + info.name +
                          "' carries no tokenizer, so that its text can have "
                          "no form");
  if (hasText || hasForm || !options.stops.empty() ||
      (hasTokenizer && format != GenerateOptions::Format::Ids)) {
    tokenizer = Tokenizer::open(info, error);
    return tokenizer != nullptr;
  }
  return true;
}

static bool encodeMessage(const CompiledModel &model,
                          const GenerateOptions &options,
                          const ChatPrompt &chat, const Tokenizer &tokenizer,
                          const std::string &text, std::vector<int64_t> &ids,
                          Error &error) {
  std::vector<ChatMessage> messages = startChat(options.messages, text);
  messages.back().show(model.info(), tokenizer, options.pictures);
  return chat.encode(tokenizer, messages, ids, error);
}

/// The ids of a prompt; begins with the model's first token if it is empty.
static bool findIds(const CompiledModel &model, const GenerateOptions &options,
                    const Tokenizer *tokenizer, const ChatPrompt *chat,
                    const Prompt &prompt, std::vector<int64_t> &ids,
                    Error &error) {
  const ModelInfo &info = model.info();
  ids = prompt.ids;
  if (prompt.isText) {
    std::string text = prompt.text;
    bool starts =
        !chat && layOutPictures(info.images, options.pictures.size(), text);
    if (!(chat ? encodeMessage(model, options, *chat, *tokenizer, text, ids,
                               error)
               : tokenizer->encode(text, ids, error, /*addSpecial=*/!starts)))
      return false;
    if (ids.empty() && info.bos >= 0)
      ids.push_back(info.bos);
  }
  if (ids.empty() && options.inputs.empty())
    return error.badInput("the prompt is empty, and the model names no token "
                          "to begin with");
  return placePictures(info, tokenizer, options.pictures, ids, error);
}

namespace {
/// A prompt, and where its new tokens go.
struct Sink {
  Sink(const Prompt &prompt, FILE *out, const GenerateOptions &options,
       GenerateOptions::Format format, const Tokenizer *tokenizer,
       const std::vector<int64_t> *ends)
      : prompt(prompt), echo(options.echo),
        printer(out, options, format, tokenizer, ends) {}

  static bool push(void *context, const NewToken &token) {
    auto *sink = static_cast<Sink *>(context);
    if (sink->echo && sink->printer.newIds().empty())
      sink->printer.echo(sink->prompt, sink->ids);
    return sink->printer.push(token);
  }

  const Prompt &prompt;
  bool echo;
  std::vector<int64_t> ids; ///< of the prompt
  Printer printer;
};

/// What a text of many prints, until those before it are printed.
class Page {
public:
  Page() : file(open_memstream(&text, &size)) {}
  Page(const Page &) = delete;
  ~Page() {
    if (file)
      std::fclose(file);
    std::free(text);
  }

  FILE *stream() { return file; }
  void end() { ended = true; }
  bool isOver() const { return ended; }
  bool copyTo(std::string &out) {
    bool good = std::fflush(file) == 0;
    out.assign(text, good ? size : 0);
    return good;
  }
  bool copyTo(FILE *out) {
    return std::fflush(file) == 0 && std::fwrite(text, 1, size, out) == size &&
           std::fflush(out) == 0;
  }

private:
  char *text = nullptr;
  size_t size = 0;
  FILE *file; ///< null: there is no memory
  bool ended = false;
};

/// Several texts that are generated together and printed in the order of their
/// prompts.
class Pages {
public:
  Pages(FILE *out, const std::vector<Prompt> &prompts,
        const GenerateOptions &options, GenerateOptions::Format format,
        const Tokenizer *tokenizer, const std::vector<int64_t> *ends)
      : out(out), pages(prompts.size()) {
    for (size_t i = 0; i < prompts.size(); ++i)
      texts.push_back({*this, i, nullptr});
    for (size_t i = 0; i < prompts.size() && pages[i].stream(); ++i)
      texts[i].sink.reset(new Sink(prompts[i], pages[i].stream(), options,
                                   format, tokenizer, ends));
  }

  size_t size() const { return texts.size(); }
  /// Null: there is no memory.
  Sink *sink(size_t i) { return texts[i].sink.get(); }
  bool run(CompiledModel &model, const GenerateOptions &options,
           TextTimes &times, Error &error);

private:
  struct Text {
    Pages &all;
    size_t number;
    std::unique_ptr<Sink> sink;
  };
  static bool push(void *context, const NewToken &token) {
    return Sink::push(static_cast<Text *>(context)->sink.get(), token);
  }
  static bool end(void *context, const std::string &stoppedBy) {
    auto *text = static_cast<Text *>(context);
    Sink &sink = *text->sink;
    sink.printer.finish(/*good=*/true, sink.ids, stoppedBy);
    text->all.pages[text->number].end();
    return !sink.printer.isBroken() && text->all.printEnded();
  }
  bool printEnded() {
    for (; printed < pages.size() && pages[printed].isOver(); ++printed)
      if (!pages[printed].copyTo(out))
        return false;
    return true;
  }

  FILE *out;
  std::vector<Page> pages;
  std::vector<Text> texts;
  size_t printed = 0;
};
} // namespace

bool Pages::run(CompiledModel &model, const GenerateOptions &options,
                TextTimes &times, Error &error) {
  std::vector<TextOfMany> all;
  for (Text &text : texts)
    all.push_back({text.sink->ids, &text, push, end});
  return generateTogether(model, options, all, times, error);
}

static void noteSettings(const std::string &settings,
                         const Messages &messages) {
  if (!settings.empty())
    messages.note("settings of the model (generation_config.json): " +
                  settings);
}

/// The prompts of a file that this group of ranks has to do.
static void takeGroupsPart(const CompiledModel &model,
                           const GenerateOptions &options,
                           std::vector<Prompt> &prompts) {
  if (model.numGroups() <= 1 || options.promptsFile.empty() ||
      options.promptsFile == "-")
    return;
  size_t first = model.firstOfGroup(prompts.size(), model.group());
  size_t last = model.firstOfGroup(prompts.size(), model.group() + 1);
  prompts = std::vector<Prompt>(prompts.begin() + long(first),
                                prompts.begin() + long(last));
}

namespace {
/// All that the texts of one command are generated with.
class Writer {
public:
  Writer(CompiledModel &model, GenerateOptions &options, FILE *out,
         const Messages &messages)
      : model(model), options(options), out(out), messages(messages) {}

  bool open(const std::vector<Prompt> &prompts, Error &error);
  bool write(const std::vector<Prompt> &prompts, Error &error);
  void report() const;

private:
  bool findLanguage(Error &error);
  bool makeForm(Error &error);
  bool writeTogether(const std::vector<Prompt> &prompts, Error &error);
  bool writeOne(const Prompt &prompt, Error &error);
  bool findIds(const Prompt &prompt, std::vector<int64_t> &ids, Error &error);
  void readAnswer(Sink &sink, const Messages *where);

  CompiledModel &model;
  GenerateOptions &options;
  FILE *out;
  const Messages &messages;
  GenerateOptions::Format format = GenerateOptions::Format::Auto;
  std::unique_ptr<Tokenizer> tokenizer; ///< null: nothing asks for one
  std::unique_ptr<ConstraintFactory> constraints;
  std::unique_ptr<ChatPrompt> chat;
  AnswerFormat answers; ///< of the chat
  std::unique_ptr<DraftModel> draft;
  std::vector<int64_t> ends;
  const std::vector<int64_t> *shownEnds = nullptr;
  Statistics sum;
  GuessCounts guesses;
};
} // namespace

/// The token of the language that a text is translated into, if options name
/// one.
bool Writer::findLanguage(Error &error) {
  if (options.language.empty())
    return true;
  const ModelInfo &info = model.info();
  std::string start = "--language=" + options.language + ": ";
  if (!model.entry("encode") || !info.hasTokenizer())
    return error.badInput(start + "model '" + info.name +
                          "' has no encoder with a tokenizer, so it does not "
                          "translate");
  if (!tokenizer && !(tokenizer = Tokenizer::open(info, error)))
    return false;
  // The second is how M2M-100 writes it.
  for (const std::string &name :
       {options.language, "__" + options.language + "__"})
    if (options.forced < 0)
      options.forced = tokenizer->tokenToId(name);
  return options.forced >= 0 ||
         error.badInput(start + "the tokenizer of model '" + info.name +
                        "' has no such token, nor '__" + options.language +
                        "__'; NLLB's are called fra_Latn, M2M-100's __fr__");
}

/// The form that texts must have, if options name one.
bool Writer::makeForm(Error &error) {
  if (options.form.kind == TextForm::Kind::Any)
    return true;
  if (!options.formFile.empty() &&
      !readWholeFile(options.formFile, size_t(1) << 20, options.form.source,
                     error))
    return false;
  constraints.reset(new ConstraintFactory(*tokenizer));
  options.automaton = constraints->make(options.form, error);
  if (options.automaton) {
    if (!options.automaton->note.empty())
      messages.note(options.automaton->note);
    return true;
  }
  if (!options.formFile.empty())
    error.message = options.formFile + ": " + error.message;
  return false;
}

bool Writer::open(const std::vector<Prompt> &prompts, Error &error) {
  const ModelInfo &info = model.info();
  format = options.format;
  if (format == GenerateOptions::Format::Auto)
    format = info.hasTokenizer() ? GenerateOptions::Format::Text
                                 : GenerateOptions::Format::Ids;
  if (!openTokenizer(info, options, prompts, format, tokenizer, error) ||
      !findLanguage(error) || !makeForm(error))
    return false;
  if (options.chat && tokenizer) {
    chat = ChatPrompt::create(info, options.messages, error);
    if (!chat)
      return false;
    options.moreEnds = chat->findEnds(*tokenizer);
    answers = AnswerFormat(*chat, *tokenizer);
  }
  ends = info.eos;
  ends.insert(ends.end(), options.moreEnds.begin(), options.moreEnds.end());
  shownEnds = options.ignoreEos ? nullptr : &ends;
  options.guessCounts = &guesses;
  if (options.draft.empty() || options.draftModel)
    return true;
  draft = DraftModel::load(options.draft, error);
  options.draftModel = draft.get();
  return draft != nullptr;
}

bool Writer::findIds(const Prompt &prompt, std::vector<int64_t> &ids,
                     Error &error) {
  return runtime::findIds(model, options, tokenizer.get(), chat.get(), prompt,
                          ids, error);
}

/// Takes an answer of a chat apart; its reasoning goes to `where`.
void Writer::readAnswer(Sink &sink, const Messages *where) {
  if (!answers.marksReasoning())
    return;
  bool starts = answers.opensReasoning(*tokenizer, sink.ids);
  options.formBehind = starts ? answers.closing : "";
  sink.printer.readAnswer(answers, starts, where);
}

bool Writer::writeTogether(const std::vector<Prompt> &prompts, Error &error) {
  Pages pages(out, prompts, options, format, tokenizer.get(), shownEnds);
  for (size_t i = 0; i < pages.size(); ++i)
    if (!pages.sink(i))
      return error.set(ExitResourceLimit, "no memory for the texts");
    else if (!findIds(prompts[i], pages.sink(i)->ids, error))
      return false;
    else
      readAnswer(*pages.sink(i), nullptr);
  TextTimes times;
  if (!pages.run(model, options, times, error))
    return false;
  for (size_t i = 0; i < pages.size(); ++i) {
    sum.promptTokens += pages.sink(i)->ids.size();
    sum.newTokens += pages.sink(i)->printer.newIds().size() - 1;
  }
  sum.first = times.prompts;
  sum.later = times.steps;
  return true;
}

bool Writer::writeOne(const Prompt &prompt, Error &error) {
  Sink sink(prompt, out, options, format, tokenizer.get(), shownEnds);
  if (!findIds(prompt, sink.ids, error))
    return false;
  readAnswer(sink, &messages);
  double start = monotonicTime();
  std::string stoppedBy;
  bool good = generateTokens(model, sink.ids, options, Sink::push, &sink,
                             stoppedBy, error);
  double end = monotonicTime();
  Printer &printer = sink.printer;
  printer.finish(good, sink.ids, stoppedBy);
  if (!good)
    return false;
  if (printer.isBroken())
    return error.badInput(std::string("cannot write the output: ") +
                          std::strerror(errno));
  sum.promptTokens += sink.ids.size();
  sum.newTokens += printer.newIds().size() - 1;
  sum.first += printer.timeOfFirst() - start;
  sum.later += end - printer.timeOfFirst();
  return true;
}

bool Writer::write(const std::vector<Prompt> &prompts, Error &error) {
  if (prompts.size() > 1 && canGenerateTogether(model, options))
    return writeTogether(prompts, error);
  return std::all_of(prompts.begin(), prompts.end(), [&](const Prompt &prompt) {
    return writeOne(prompt, error);
  });
}

void Writer::report() const {
  if (options.guesses())
    printGuesses(guesses, sum, messages);
  if (!options.stats)
    return;
  printStatistics(sum, model.frameHighWater(), messages);
  if (std::string why = model.whyNotPersistent(); !why.empty())
    messages.note(kWithoutPersistent + why);
}

/// Models that hear or make sound have ways of their own; true: `result` says
/// whether one of these went well.
static bool isAboutSound(CompiledModel &model, const GenerateOptions &options,
                         const std::string &settings, FILE *out,
                         const Messages &messages, bool &result, Error &error) {
  const ModelInfo &info = model.info();
  if (!info.playback.inputs.empty() ||
      (info.codes.rate > 0 && !options.codes.empty())) {
    result = play(model, options, messages, error);
    return true;
  }
  if (info.codes.books() > 0) {
    noteSettings(settings, messages);
    result = compose(model, options, out, messages, error);
    return true;
  }
  result = false;
  for (const char *name : {"audio-out", "codes-out", "codes", "guidance"})
    if (std::find(options.given.begin(), options.given.end(), name) !=
        options.given.end()) {
      error.badInput("--" + std::string(name) + ": model '" + info.name +
                     "' makes no sound");
      return true;
    }
  if (!options.audio.empty()) {
    noteSettings(settings, messages);
    result = transcribe(model, options, out, messages, error);
    return true;
  }
  if (!writesLetters(info))
    return false;
  error.set(ExitBadCommandLine,
            "model '" + info.name +
                "' writes down sounds; give --audio=FILE.wav");
  return true;
}

/// Generates the texts of this group of ranks.
static bool generateHere(CompiledModel &model, const GenerateOptions &given,
                         FILE *out, const Messages &messages, Error &error) {
  const ModelInfo &info = model.info();
  GenerateOptions options = given;
  std::string settings;
  if (!model.chooseAdapter(options.adapter, error) ||
      !options.takeSettings(info, settings, error))
    return false;
  bool result;
  if (isAboutSound(model, options, settings, out, messages, result, error))
    return result;
  for (const std::string &file : options.images) {
    options.pictures.push_back(readPicture(info, file, error));
    if (!options.pictures.back())
      return false;
  }
  std::vector<Prompt> prompts;
  if (!readPrompts(options, prompts, error))
    return false;
  takeGroupsPart(model, options, prompts);
  Writer writer(model, options, out, messages);
  if (!writer.open(prompts, error))
    return false;
  noteSettings(settings, messages);
  if (!writer.write(prompts, error))
    return false;
  writer.report();
  return true;
}

/// Groups of ranks share the prompts of a file. The first one prints its own
/// texts, which are the first, and then those of the others.
static bool generateInGroups(CompiledModel &model, const GenerateOptions &given,
                             FILE *out, const Messages &messages,
                             Error &error) {
  // A launcher gives its own input to one rank alone.
  bool shared = !given.promptsFile.empty() && given.promptsFile != "-";
  if (model.group() > 0) {
    if (!shared)
      return true;
    Page page;
    FILE *nowhere = std::fopen("/dev/null", "w");
    if (!page.stream() || !nowhere)
      return error.set(ExitResourceLimit, "no memory for the texts");
    bool good = generateHere(model, given, page.stream(),
                             {nowhere, /*json=*/false}, error);
    std::fclose(nowhere);
    std::string texts;
    if (!good || !page.copyTo(texts))
      return false;
    model.collect(model.group(), texts);
    return true;
  }
  if (!shared)
    messages.note(kFirstGroupAlone);
  if (!generateHere(model, given, out, messages, error))
    return false;
  for (int group = 1; shared && group < model.numGroups(); ++group) {
    std::string texts;
    model.collect(group, texts);
    if (std::fwrite(texts.data(), 1, texts.size(), out) != texts.size() ||
        std::fflush(out) != 0)
      return error.badInput(std::string("cannot write the output: ") +
                            std::strerror(errno));
  }
  return true;
}

bool executeGenerate(CompiledModel &model, const GenerateOptions &options,
                     FILE *out, const Messages &messages, Error &error) {
  return model.numGroups() > 1
             ? generateInGroups(model, options, out, messages, error)
             : generateHere(model, options, out, messages, error);
}

} // namespace attune::runtime
