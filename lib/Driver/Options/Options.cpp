//===- Options.cpp - Options of the command line ----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Options.h"

#include "Flags.h"
#include "attune/Support/Version.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace attune;
using namespace attune::driver;

StringRef driver::findNearest(StringRef word, ArrayRef<StringRef> candidates) {
  StringRef nearest;
  // More letters wrong than these make it another word.
  unsigned best = unsigned(word.size()) / 3 + 2;
  for (StringRef candidate : candidates) {
    unsigned distance = word.edit_distance(candidate);
    // A word that is only cut short or only too long is a likely slip.
    if (!word.empty() && candidate.size() > 1 &&
        (candidate.starts_with(word) || word.starts_with(candidate)))
      distance = std::min(distance, 1u);
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

DiagnosticEngine::Format
driver::findMessageFormat(ArrayRef<const char *> args) {
  for (size_t i = 0; i < args.size(); ++i) {
    StringRef argument = args[i];
    if (argument == "--")
      break;
    if (argument == "--message-format=json" ||
        (argument == "--message-format" && i + 1 < args.size() &&
         StringRef(args[i + 1]) == "json"))
      return DiagnosticEngine::Format::Json;
  }
  return DiagnosticEngine::Format::Text;
}

static void printUsage(const VerbInfo &verb, raw_ostream &os) {
  os << "usage: attune " << getName(verb.verb) << " " << verb.arguments
     << " [flags]\n\n"
     << verb.about << "\n\nflags:\n";
  for (const Flag &flag : getFlags()) {
    if (!flag.isOf(verb.verb))
      continue;
    std::string left = flag.spelling();
    if (flag.takesValue())
      left += (flag.mayOmitValue()     ? ""
               : flag.name.size() == 1 ? " "
                                       : "=") +
              flag.value.str();
    if (!flag.longName.empty())
      left += ", --" + flag.longName.str() + "=" + flag.value.str();
    os << "  " << left;
    size_t column = 2 + left.size();
    constexpr size_t indent = 30, width = 80;
    if (column + 1 > indent) {
      os << '\n';
      column = 0;
    }
    // Words of the help text, wrapped.
    SmallVector<StringRef> words;
    flag.help.split(words, ' ');
    bool first = true;
    for (StringRef word : words) {
      if (first) {
        os.indent(indent - column);
        column = indent;
      } else if (column + 1 + word.size() > width) {
        os << '\n';
        os.indent(indent);
        column = indent;
      } else {
        os << ' ';
        ++column;
      }
      os << word;
      column += word.size();
      first = false;
    }
    os << '\n';
  }
  os << "\nValues are given as --flag=value or --flag value. MODEL is a model "
        "description\n(JSON), a Hugging Face folder or its config.json, a GGUF "
        "or an .mlir file.\nMODEL.gguf,MMPROJ.gguf is one with its part that "
        "sees pictures.\n";
}

static void printHelp(raw_ostream &os) {
  os << "Attune compiles transformer models described in JSON to native "
        "code.\n\nusage: attune VERB MODEL [flags]\n\nverbs:\n";
  for (const VerbInfo &verb : getVerbs())
    os << formatv("  {0,-12}{1}\n", getName(verb.verb), verb.summary);
  os << "\n`attune VERB --help` lists the flags of a verb, `attune --version` "
        "the version.\n\nexit codes: 0 done, 1 bad input, 2 bad command line, "
        "3 verify found a mismatch,\n4 over a stated resource limit, 70 "
        "internal error\n";
}

static void printVersion(raw_ostream &os) {
  os << "attune " ATTUNE_VERSION_STRING " (LLVM " ATTUNE_LLVM_VERSION_STRING
        ")\n";
}

namespace {
class Parser {
public:
  Parser(ArrayRef<const char *> args, DiagnosticEngine &diags)
      : args(args), diags(diags) {}

  std::variant<Options, ExitCode> run();

private:
  ExitCode fail(const Twine &message) {
    diags.error({}, message.str());
    return ExitCode::BadCommandLine;
  }
  ExitCode parseFlag(StringRef argument, size_t &at);
  ExitCode reportUnknown(StringRef spelled);
  ExitCode finish();

  ArrayRef<const char *> args;
  DiagnosticEngine &diags;
  const VerbInfo *verb = nullptr;
  Options options;
};
} // namespace

/// Names the verbs that have the flag, else this verb's nearest one.
ExitCode Parser::reportUnknown(StringRef spelled) {
  SmallVector<StringRef> ours; // without dashes
  std::string owners;
  for (const Flag &flag : getFlags()) {
    if (flag.isOf(verb->verb)) {
      ours.push_back(flag.name);
      if (!flag.longName.empty())
        ours.push_back(flag.longName);
    }
    if (!flag.isSpelled(spelled))
      continue;
    for (const VerbInfo &other : getVerbs())
      if (flag.isOf(other.verb))
        owners +=
            (owners.empty() ? "'" : ", '") + getName(other.verb).str() + "'";
  }
  std::string message =
      ("'" + getName(verb->verb) + "' has no flag " + spelled).str();
  if (!owners.empty())
    return fail(message + "; it is a flag of " + owners);
  StringRef nearest = findNearest(spelled.ltrim('-'), ours);
  if (nearest.empty())
    return fail(message + "; 'attune " + getName(verb->verb) +
                " --help' lists its flags");
  return fail(message + "; did you mean " + (nearest.size() == 1 ? "-" : "--") +
              nearest + "?");
}

ExitCode Parser::parseFlag(StringRef argument, size_t &at) {
  auto [spelled, attached] = argument.split('=');
  bool hasValue = argument.contains('=');
  const Flag *flag = nullptr;
  for (const Flag &candidate : getFlags())
    if (candidate.isOf(verb->verb) && candidate.isSpelled(spelled))
      flag = &candidate;
  if (!flag)
    return reportUnknown(spelled);
  if (!flag->takesValue() && hasValue)
    return fail(spelled + " takes no value, but is given '" + attached + "'");
  if (flag->takesValue() && !flag->mayOmitValue() && !hasValue) {
    // A value may start with a dash only if it is a number or "-" itself.
    StringRef next = at + 1 < args.size() ? StringRef(args[at + 1]) : "";
    bool looksLikeFlag = next.size() > 1 && next.front() == '-' &&
                         !isDigit(next[1]) && flag->name != "prompt" &&
                         flag->name != "stop";
    if (at + 1 >= args.size() || looksLikeFlag)
      return fail(spelled + " needs a value: " + spelled +
                  (flag->name.size() == 1 ? " " : "=") + flag->value);
    attached = args[++at];
  }
  std::string problem;
  if (!flag->apply(*flag, attached, options, problem))
    return fail(problem);
  return ExitCode::Success;
}

ExitCode Parser::finish() {
  if (options.model.empty())
    return fail("'" + getName(verb->verb) + "' needs a " +
                verb->arguments.split(' ').first + ": attune " +
                getName(verb->verb) + " " + verb->arguments);
  std::string problem;
  if (!checkOptions(options, problem))
    return fail(problem);
  return ExitCode::Success;
}

std::variant<Options, ExitCode> Parser::run() {
  SmallVector<StringRef> verbs;
  for (const VerbInfo &info : getVerbs())
    verbs.push_back(getName(info.verb));
  if (args.empty()) {
    printHelp(errs());
    return fail("a verb is needed: one of " + join(verbs, ", "));
  }
  StringRef first = args.front();
  for (const VerbInfo &info : getVerbs())
    if (first == "help" && args.size() > 1 && args[1] == getName(info.verb)) {
      printUsage(info, outs());
      return ExitCode::Success;
    }
  if (first == "--help" || first == "-h" || first == "help") {
    printHelp(outs());
    return ExitCode::Success;
  }
  if (first == "--version") {
    printVersion(outs());
    return ExitCode::Success;
  }
  for (const VerbInfo &info : getVerbs())
    if (first == getName(info.verb))
      verb = &info;
  if (!verb) {
    StringRef nearest = findNearest(first, verbs);
    return fail((first.starts_with("-") ? "the first argument is a verb, but "
                                          "is '"
                                        : "unknown verb '") +
                first + "'; " +
                (nearest.empty() ? "it is one of " + join(verbs, ", ")
                                 : "did you mean '" + nearest.str() + "'?"));
  }
  options.verb = verb->verb;

  bool flagsEnded = false;
  for (size_t at = 1; at < args.size(); ++at) {
    StringRef argument = args[at];
    if (!flagsEnded && argument == "--") {
      flagsEnded = true;
    } else if (!flagsEnded && (argument == "--help" || argument == "-h")) {
      printUsage(*verb, outs());
      return ExitCode::Success;
    } else if (!flagsEnded && argument.size() > 1 && argument.front() == '-') {
      ExitCode code = parseFlag(argument, at);
      if (code != ExitCode::Success)
        return code;
    } else if (options.model.empty() && !argument.empty()) {
      options.model = argument.str();
    } else if (options.verb == Verb::Compare && options.student.empty() &&
               !argument.empty()) {
      options.student = argument.str();
    } else {
      return fail("unexpected argument '" + argument +
                  (argument.empty()
                       ? "'"
                       : "' after the model '" + options.model + "'"));
    }
  }
  ExitCode code = finish();
  if (code != ExitCode::Success)
    return code;
  return options;
}

std::variant<Options, ExitCode>
driver::parseOptions(ArrayRef<const char *> args, DiagnosticEngine &diags) {
  return Parser(args, diags).run();
}
