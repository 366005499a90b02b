//===- Cli.h - The verbs of a compiled executable ---------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The verbs of a compiled executable, each in two parts, options and execution,
// so that `attune run` and `attune generate` are the same code on a model that
// was compiled a moment ago.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_RUNTIME_CLI_H
#define ATTUNE_RUNTIME_CLI_H

#include "attune/Runtime/CommandLine.h"
#include "attune/Runtime/CompiledModel.h"
#include "attune/Runtime/Constraint.h"
#include "attune/Runtime/Json.h"
#include "attune/Runtime/Messages.h"
#include "attune/Runtime/Sampler.h"
#include "attune/Runtime/Tokenizer.h"
#include "attune/Runtime/attune.h"

#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attune::runtime {

class DraftModel;
class TimestampRules;
struct GuessCounts;

/// --threads, where weights are and how much memory results take, and what
/// ranks wait for.
struct TeamOptions {
  unsigned threads = 0;
  uint64_t memoryLimit = 0;
  bool readsWeights = false; ///< --no-mmap
  double timeout = 300;      ///< seconds; 0: none
  bool checkRanks = false;

  static const OptionSpecs &specs();
  /// Takes an option named in specs(). `mine` is false for any other.
  bool set(const ParsedOption &option, bool &mine, Error &error);
};

struct RunOptions {
  std::string inputs, outputs;
  std::string adapter; ///< of the model's; empty: none
  std::vector<std::pair<std::string, int64_t>> dims;

  static const OptionSpecs &specs();
  bool set(const ParsedOption &option, bool &mine, Error &error);
  /// Checks what can only be known at the end.
  bool finish(Error &error) const;
};

/// --system and --chat-template, of `chat` and of `generate`.
struct TemplateOptions {
  bool hasSystem = false;
  std::string system;
  std::string file; ///< or a name: instead of the model's own template
  /// Variables for the template, such as enable_thinking.
  std::vector<std::pair<std::string, JsonValue>> variables;

  static const OptionSpecs &specs();
  bool set(const ParsedOption &option, bool &mine, Error &error);
};

/// The start of a text to continue: a text, or ids.
struct Prompt {
  bool isText = false;
  std::string text;
  std::vector<int64_t> ids;
};

struct GenerateOptions {
  enum class Format { Auto, Text, Ids, Json };

  bool hasPrompt = false, hasPromptIds = false;
  std::string prompt; ///< "-": the standard input
  std::vector<int64_t> promptIds;
  std::string promptFile;  ///< a file with one prompt
  std::string promptsFile; ///< a file with a prompt a line; see readPrompts()
  /// A file with what an encoder reads; the prompt is the decoder's then.
  std::string inputs;
  std::vector<std::string> images;  ///< files of pictures that the prompt names
  std::vector<PicturePtr> pictures; ///< those, and others, once read
  std::string audio;                ///< a file with speech, to be written down
  std::string language, task;       ///< of its text; empty: as the model says
  /// The token of that language, where an encoder reads texts: the first of the
  /// new ones; -1: as the model says.
  int64_t forced = -1;
  bool timestamps = false; ///< say when it was said
  /// Files for the sound that a model makes of the prompt, and for its codes.
  std::string audioOut, codesOut;
  std::string codes;         ///< a file with codes to play, in place of those
  double guidance = -1;      ///< of that sound; -1: as the model says
  int64_t maxNewTokens = -1; ///< -1: to the end of the context
  int64_t maxLength = -1;    ///< with the prompt; where maxNewTokens is -1
  int64_t beams = 1;         ///< more: beam search
  /// How they are compared and when they stop, as transformers means it: the
  /// model says so. 0: false, 1: true, 2: "never".
  double lengthPenalty = 1;
  int64_t earlyStopping = 0;
  bool ignoreEos = false;
  /// Tokens that end a text beside those that the model names.
  std::vector<int64_t> moreEnds;
  bool chat =
      false; ///< a prompt is a message; `messages` says how it is laid out
  TemplateOptions messages;
  bool stats = false;
  std::string adapter;            ///< of the model's; empty: none
  bool echo = false;              ///< print the prompt, too
  std::vector<std::string> stops; ///< texts that end the new text
  /// Report the log-probability of each new token and those of this many of the
  /// likeliest; -1: do not.
  int64_t logprobs = -1;
  std::string draft; ///< a model that guesses, a shared library
  static constexpr int64_t mostGuesses = 64; ///< a step
  int64_t draftTokens = 4;                   ///< guesses of it a step
  int64_t lookup = 0;   ///< guesses a step from the text so far; 0: none
  TextForm form;        ///< of the new text
  std::string formFile; ///< where the form's source is; empty: it is known
  std::shared_ptr<GrammarAutomaton> automaton; ///< made from it; null: none
  /// Text behind which the form holds; empty: from the first token on.
  std::string formBehind;
  TimestampRules *timestampRules = nullptr; ///< of the times in it; null: none
  DraftModel *draftModel = nullptr;   ///< that guesses, if it is open already
  GuessCounts *guessCounts = nullptr; ///< where to count, or null
  Format format = Format::Auto; ///< text if the model has a tokenizer, else ids
  SamplingOptions sampling;
  bool askedGreedy = false, askedSampling = false;
  /// Names of the options that the command line gave.
  std::vector<std::string> given;

  static const OptionSpecs &specs();
  bool set(const ParsedOption &option, bool &mine, Error &error);
  bool finish(Error &error);
  /// The first option of the command line that is none of `fits` nor, if it
  /// `samples`, one of those that choose the next token; null: there is none.
  const std::string *findOther(std::initializer_list<std::string_view> fits,
                               bool samples) const;
  /// Whether tokens are guessed and checked several at a time.
  bool guesses() const { return !draft.empty() || draftModel || lookup > 0; }
  /// Takes over the model's own settings where no option of the command line
  /// says otherwise, and writes those that count as "name=value name=value"
  /// into `taken`. Fails with exit code 1 if they are out of range.
  bool takeSettings(const ModelInfo &info, std::string &taken, Error &error);

private:
  bool setSampling(const ParsedOption &option, Error &error);
};

/// The prompts that the options name, from their files. In a file of prompts
/// each line that is not blank is one: a JSON string, a JSON object {"prompt":
/// TEXT} or {"prompt_ids": [1, 2]} if it begins with '"' or '{', else the text
/// of the line itself.
bool readPrompts(const GenerateOptions &options, std::vector<Prompt> &prompts,
                 Error &error);

/// `embed`: one vector for each text.
struct EmbedOptions {
  std::vector<std::string> texts;
  /// The texts to compare with: one for each text, or several for one.
  std::vector<std::string> pairs;
  std::string file;    ///< or texts in a file, as readPrompts() reads them
  std::string outputs; ///< a safetensors file; empty: JSON lines
  std::string adapter; ///< of the model's; empty: none
  Pooling pooling = Pooling::Auto;
  int normalize = -1; ///< -1: as the model says
  /// One of the model's prompts, empty for none; nothing: as the model says.
  std::optional<std::string> promptName;
  int64_t dimensions = 0; ///< numbers of a vector; 0: all

  static const OptionSpecs &specs();
  bool set(const ParsedOption &option, bool &mine, Error &error);
  bool finish(Error &error) const;
};

/// Pools the outputs `last_hidden_state` of a model, in double precision. A
/// model that scores texts or pairs gives the scores.
bool executeEmbed(CompiledModel &model, const EmbedOptions &options, FILE *out,
                  Error &error);

/// `perplexity`: how well a model predicts a text.
struct PerplexityOptions {
  std::string file;
  int64_t window = 0; ///< tokens seen at a time; 0: as many as is usual
  bool json = false;
  std::string adapter; ///< of the model's; empty: none

  static const OptionSpecs &specs();
  bool set(const ParsedOption &option, bool &mine, Error &error);
  bool finish(Error &error) const;
};

/// Prints the cross-entropy of a text. The tokenizer is the model's own.
bool executePerplexity(CompiledModel &model, const PerplexityOptions &options,
                       FILE *out, Error &error);

/// `bench`: how fast a model is.
struct BenchOptions {
  std::vector<std::pair<std::string, int64_t>> dims;
  int64_t runs = 5;
  int64_t tokens = 4; ///< behind a prompt
  bool json = false;
  std::string adapter; ///< of the model's; empty: none

  static const OptionSpecs &specs();
  bool set(const ParsedOption &option, bool &mine, Error &error);
};

/// Prints tokens a second. A language model has those of a prompt and of what
/// follows it, other models those of the forward pass on made-up inputs.
bool executeBench(CompiledModel &model, const BenchOptions &options, FILE *out,
                  Error &error);

/// The last dot of a file's name and what follows; empty if there is no dot.
std::string_view fileSuffix(std::string_view path);

/// One forward pass from a file to a file. Warnings go to `messages`.
bool executeRun(CompiledModel &model, const RunOptions &options,
                const Messages &messages, Error &error);

/// Generates to `out`, token by token. The tokenizer is the model's own.
bool executeGenerate(CompiledModel &model, const GenerateOptions &options,
                     FILE *out, const Messages &messages, Error &error);

/// A token as it is generated.
struct NewToken {
  int64_t id = -1;
  /// Logits of all tokens, before any setting changed them; null unless
  /// GenerateOptions::logprobs asks for them, or if there was no choice.
  const float *logits = nullptr;
  int64_t vocabulary = 0;
};

/// The message where groups of ranks have nothing to share.
inline constexpr const char *kFirstGroupAlone =
    "the first group of ranks does this alone; groups share the prompts of a "
    "file, the batch of 'run' and the windows of 'perplexity'";
/// Begins what is said of steps that do without the persistent kernel; the
/// reason follows.
inline constexpr const char *kWithoutPersistent =
    "steps do without the persistent kernel, because ";

/// Generates without printing. An encoder-decoder encodes the prompt and starts
/// from its own token, unless `options.inputs` says what to encode. Calls
/// `onToken(context, token)` for each new token until it returns false.
/// `stoppedBy` becomes "eos", "length", "context" or "caller". Prompts and
/// formats among the options are not looked at.
bool generateTokens(CompiledModel &model, const std::vector<int64_t> &prompt,
                    const GenerateOptions &options,
                    bool (*onToken)(void *context, const NewToken &token),
                    void *context, std::string &stoppedBy, Error &error);

/// Cuts a text into tokens, as the model that carries the tokenizer gets it.
struct TokenizeOptions {
  bool hasText = false, hasPair = false;
  std::string text, pair;
  std::string texts; ///< a file of many
  std::string format = "text";
  EncodeOptions encode;

  static const OptionSpecs &specs();
  bool set(const ParsedOption &option, bool &mine, Error &error);
  bool finish(Error &error) const;
};

/// Prints the ids and pieces of a text to `out`.
bool executeTokenize(const Tokenizer &tokenizer, const TokenizeOptions &options,
                     FILE *out, Error &error);

/// The output of `inspect`.
std::string formatInspection(const ModelInfo &info, bool json);

} // namespace attune::runtime

#endif // ATTUNE_RUNTIME_CLI_H
