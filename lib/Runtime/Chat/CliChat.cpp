//===- CliChat.cpp - A conversation on a terminal or a pipe ---------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Conversation.h"
#include "LineEditor.h"
#include "ReasoningPrinter.h"

#include "../Cli/TokenOptions.h"
#include "attune/Runtime/Utf8.h"
#include "attune/Runtime/WholeFile.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include <unistd.h>

namespace attune::runtime {

/// Of a line of the input, and of a conversation that is loaded.
static constexpr size_t mostBytes = size_t(1) << 24;

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

/// Options of `generate` that say how to choose tokens.
static bool isOfBoth(std::string_view name) {
  return choosesTokens(name) || name == "min-new-tokens" || name == "stats" ||
         name == "adapter";
}

const OptionSpecs &ChatOptions::specs() {
  static const OptionSpecs specs = [] {
    OptionSpecs all = TemplateOptions::specs();
    all.push_back({"context", "N",
                   "most tokens of the conversation (default: the model's "
                   "context)"});
    for (const OptionSpec &spec : GenerateOptions::specs())
      if (isOfBoth(spec.name))
        all.push_back(spec);
    all.push_back({"image", "FILE",
                   "picture (PNG or JPEG) that the first message shows; may be "
                   "repeated"});
    return all;
  }();
  return specs;
}

bool ChatOptions::set(const ParsedOption &option, bool &mine, Error &error) {
  if (!chat.set(option, mine, error))
    return false;
  if (mine)
    return true;
  mine = true;
  if (option.name == "context")
    return parseInteger(option, 2, INT64_C(1) << 32, context, error);
  if (option.name == "image") {
    images.push_back(option.value);
    return true;
  }
  mine = isOfBoth(option.name);
  return !mine || generate.set(option, mine, error);
}

bool ChatOptions::finish(Error &error) {
  generate.hasPrompt = true; // each turn is one
  return generate.finish(error);
}

//===----------------------------------------------------------------------===//
// The conversation
//===----------------------------------------------------------------------===//

static volatile sig_atomic_t interrupted = 0;
static void interrupt(int) { interrupted = 1; }

namespace {
/// While it lives, an interrupt ends the answer and not the program.
struct CatchInterrupt {
  CatchInterrupt() {
    interrupted = 0;
    struct sigaction action = {};
    action.sa_handler = interrupt;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, &before);
  }
  ~CatchInterrupt() { sigaction(SIGINT, &before, nullptr); }
  struct sigaction before;
};

class ChatProgram {
public:
  ChatProgram(Conversation &conversation, bool stats, FILE *out,
              const Messages &messages)
      : conversation(conversation), stats(stats), out(out), messages(messages),
        reasoning(messages) {}

  bool talk(Error &error);
  bool readLines(Error &error);

private:
  /// One line of input; `done` if it ends the conversation.
  bool turn(const std::string &line, bool &done, Error &error);
  bool command(const std::string &line, bool &done, Error &error);
  bool save(const std::string &path, Error &error);
  bool ask(const std::string &text, Error &error);
  void say(const std::string &text) { messages.note(text); }
  static bool print(void *context, const AnswerText &piece);

  Conversation &conversation;
  bool stats;
  FILE *out;
  const Messages &messages;
  ReasoningPrinter reasoning;
  bool broken = false;
  bool lineOpen = false; ///< the answer's last line has no end yet
};
} // namespace

bool ChatProgram::print(void *context, const AnswerText &part) {
  auto &program = *static_cast<ChatProgram *>(context);
  const std::string &piece = part.content;
  program.reasoning.print(part.reasoning);
  if (!piece.empty()) {
    program.reasoning.end();
    program.lineOpen = piece.back() != '\n';
    if (std::fwrite(piece.data(), 1, piece.size(), program.out) !=
            piece.size() ||
        std::fflush(program.out) != 0)
      program.broken = true;
  }
  return !program.broken && !interrupted;
}

bool ChatProgram::ask(const std::string &text, Error &error) {
  Conversation::End end = Conversation::End::Turn;
  lineOpen = true;
  bool good;
  {
    CatchInterrupt guard;
    good = conversation.ask(text, print, this, end, error);
    reasoning.end();
  }
  if (good && lineOpen &&
      (std::fputc('\n', out) == EOF || std::fflush(out) != 0))
    broken = true;
  if (broken)
    return error.badInput(std::string("cannot write the output: ") +
                          std::strerror(errno));
  if (!good)
    return false;
  if (stats)
    say("(" + std::to_string(conversation.computed()) +
        " tokens computed before the answer, " +
        std::to_string(conversation.reused()) + " from the cache)");
  if (end == Conversation::End::Stopped)
    say("(stopped)");
  else if (end == Conversation::End::Length)
    say("(stopped at --max-new-tokens)");
  else if (end == Conversation::End::Context)
    say("(the context of " + std::to_string(conversation.capacity()) +
        " tokens is full; /reset starts a new conversation)");
  return true;
}

bool ChatProgram::save(const std::string &path, Error &error) {
  if (!writeWholeFile(path, "", conversation.toJson(), error))
    return false;
  say("saved to " + path);
  return true;
}

bool ChatProgram::command(const std::string &line, bool &done, Error &error) {
  size_t blank = std::min(line.find_first_of(" \t"), line.size());
  std::string name = line.substr(0, blank);
  size_t begin = std::min(line.find_first_not_of(" \t", blank), line.size());
  std::string rest = line.substr(begin);
  if (name == "/save" || name == "/image")
    rest.erase(rest.find_last_not_of(" \t") + 1);
  if (name == "/quit" || name == "/exit") {
    done = true;
  } else if (name == "/help") {
    say("/system TEXT  tell the model something before the conversation\n"
        "/image FILE   show the model a picture with the next message\n"
        "/reset        start a new conversation (the system text stays)\n"
        "/save FILE    write the conversation as JSON\n"
        "/load FILE    go on with a conversation that /save wrote\n"
        "/quit         leave, as does Ctrl-D\n"
        "Ctrl-C stops an answer. Alt-Enter begins another line. A line that "
        "begins with // says the rest of it from the second / on.");
  } else if (name == "/reset") {
    conversation.reset();
    say("a new conversation");
  } else if (name == "/system") {
    conversation.setSystem(rest);
    say(rest.empty() ? "no system text" : "the system text is set");
  } else if ((name == "/save" || name == "/load" || name == "/image") &&
             rest.empty()) {
    return error.badInput(name + " needs a file's name");
  } else if (name == "/save") {
    return save(rest, error);
  } else if (name == "/load") {
    std::string json;
    if (!readWholeFile(rest, mostBytes, json, error))
      return false;
    if (!conversation.fromJson(json, error)) {
      error.message = rest + ": " + error.message;
      return false;
    }
    say("loaded from " + rest);
  } else if (name == "/image") {
    if (!conversation.attach(rest, error))
      return false;
    say(rest + " is shown with the next message");
  } else {
    std::string nearest =
        nearestName(name, {"/help", "/image", "/load", "/reset", "/system",
                           "/save", "/quit"});
    return error.badInput("there is no command '" + name + "'" +
                          (nearest.empty()
                               ? "; /help lists them"
                               : "; did you mean " + nearest + "?"));
  }
  return true;
}

bool ChatProgram::turn(const std::string &line, bool &done, Error &error) {
  if (line.find_first_not_of(" \t\r\n") == std::string::npos)
    return true;
  if (line[0] != '/')
    return ask(line, error);
  // A path or a comment is no command.
  if (line.size() > 1 && line[1] == '/')
    return ask(line.substr(1), error);
  return command(line, done, error);
}

/// On a terminal a mistake is told, and the conversation goes on.
bool ChatProgram::talk(Error &error) {
  say("/help lists the commands; Ctrl-D leaves.");
  LineEditor editor(STDIN_FILENO, STDOUT_FILENO);
  std::string line;
  for (bool done = false; !done;) {
    LineEditor::Result result = editor.read("> ", line);
    if (result == LineEditor::Result::End)
      break;
    if (result == LineEditor::Result::Interrupted)
      continue;
    Error problem;
    if (turn(line, done, problem))
      continue;
    if (broken) {
      error = problem;
      return false;
    }
    say("error: " + problem.message);
  }
  return true;
}

bool ChatProgram::readLines(Error &error) {
  bool done = false;
  for (int c = 0; c != EOF && !done;) {
    std::string line;
    while ((c = std::getc(stdin)) != EOF && c != '\n') {
      line += static_cast<char>(c);
      if (line.size() > mostBytes)
        return error.badInput("a line of more than 16 MiB");
    }
    if (!line.empty() && line.back() == '\r')
      line.pop_back();
    if (!turn(sanitizeUtf8(line), done, error))
      return false;
  }
  return !std::ferror(stdin) || error.badInput("cannot read the input");
}

bool executeChat(CompiledModel &model, const ChatOptions &given, FILE *out,
                 const Messages &messages, Error &error) {
  ChatOptions options = given;
  std::string settings;
  if (!model.chooseAdapter(options.generate.adapter, error) ||
      !options.generate.takeSettings(model.info(), settings, error))
    return false;
  std::unique_ptr<Conversation> conversation =
      Conversation::create(model, options, error);
  if (!conversation)
    return false;
  for (const std::string &file : options.images)
    if (!conversation->attach(file, error))
      return false;
  ChatProgram program(*conversation, options.generate.stats, out, messages);
  return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)
             ? program.talk(error)
             : program.readLines(error);
}

} // namespace attune::runtime
