//===- GenerateOptions.cpp - Options of generate --------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TokenOptions.h"

#include "attune/Runtime/Cli.h"
#include "attune/Runtime/Utf8.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace attune::runtime {

const OptionSpecs &GenerateOptions::specs() {
  static const OptionSpecs specs = [] {
    OptionSpecs own = {
        {"prompt", "TEXT",
         "text to continue, or to encode and answer; - reads it from the "
         "standard input"},
        {"prompt-ids", "1,2,3", "token ids to continue, or to encode"},
        {"prompt-file", "FILE",
         "file with the prompt; a newline at its end is no part of it"},
        {"prompts-file", "FILE",
         "file with several prompts, a line each: text, a JSON string, or "
         "{\"prompt\": TEXT} or {\"prompt_ids\": [1, 2]}"},
        {"inputs", "FILE",
         "safetensors file with what an encoder reads; a prompt is the "
         "decoder's then"},
        {"audio", "FILE",
         "WAV file with speech to write down, or with a sound to go on from or "
         "to make codes of, as the model does"},
        {"language", "CODE",
         "with --audio: the language of the speech, such as en (default: as "
         "the model says, or the one that it hears); else the one to translate "
         "into, as the tokenizer calls it: fra_Latn (NLLB), fr (M2M-100)"},
        {"task", "NAME", "with --audio: transcribe, or translate into English"},
        {"timestamps", "", "with --audio: say when each part was said"},
        {"audio-out", "FILE",
         "WAV file for the sound that the model makes of the prompt"},
        {"codes-out", "FILE",
         "safetensors file for the codes of that sound, or of --audio"},
        {"codes", "FILE",
         "safetensors file with the codes of a sound to play, as --codes-out "
         "or EnCodec's class has them"},
        {"guidance", "G",
         "let the prompt count G times in that sound (1: once; default: as the "
         "model says)"},
        {"image", "FILE",
         "picture (PNG or JPEG) for the next image token of the prompt; may be "
         "repeated"},
        {"max-new-tokens", "N",
         "stop after N tokens (default: at the context)"},
        {"min-new-tokens", "N", "no end token before N tokens (default: 0)"},
        {"stop", "TEXT",
         "stop where the new text has this, which is not printed; may be "
         "repeated"},
        {"json-schema", "FILE",
         "write JSON that is valid by the schema of this file"},
        {"grammar", "FILE",
         "write what the grammar of this file (GBNF) allows"},
        {"regex", "PATTERN",
         "write what this regular expression matches as a whole"},
        {"beams", "N",
         "beam search: follow the N likeliest texts (default: 1, none)"},
        {"temperature", "T", "sample with this temperature; 0 is greedy"},
        {"top-k", "K", "sample from the K likeliest tokens; 0: from all"},
        {"top-p", "P",
         "sample from the likeliest tokens of total probability P"},
        {"min-p", "P", "drop tokens less likely than P times the likeliest"},
        {"repetition-penalty", "R",
         "make tokens of the prompt and the new text less likely (1: not)"},
        {"frequency-penalty", "F",
         "subtract F from a token's logit for each time the new text has it"},
        {"presence-penalty", "P",
         "subtract P from the logits of tokens that the new text has"},
        {"no-repeat-ngram", "N",
         "never repeat N tokens in a row that were there before (0: they may)"},
        {"logit-bias", "ID:VALUE",
         "add VALUE to the logit of token ID; may be repeated"},
        {"draft", "FILE",
         "let a smaller model guess the next tokens and check them in one "
         "step: "
         "a shared library from attune compile; the text is the same, or drawn "
         "from the same distribution"},
        {"draft-tokens", "N", "guesses of the draft a step (default: 4)"},
        {"lookup", "[=N]",
         "guess that the text goes on as it did after the same tokens before, "
         "N tokens at a time (default: 8), and check them in one step"},
        {"seed", "N", "seed of the sampling (default: 0)"},
        {"greedy", "",
         "always take the likeliest token (default, unless the model's "
         "generation_config.json says do_sample)"},
        {"ignore-eos", "", "go on after an end token"},
        {"echo", "", "print the prompt before the new text"},
        {"logprobs", "[=N]",
         "with --format=json: log-probabilities of the new tokens, and of the "
         "N "
         "likeliest each time (default: 0)"},
        {"format", "text|ids|json",
         "print the new text, the new ids, or both and why it stopped"},
        {"stats", "", "report times on stderr at the end"},
        {"adapter", "NAME",
         "compute with this adapter of the model (default: none)"},
        {"chat", "",
         "the prompt is a message: lay it out with the model's chat template"},
    };
    own.insert(own.end(), TemplateOptions::specs().begin(),
               TemplateOptions::specs().end());
    return own;
  }();
  return specs;
}

static bool parseBias(const ParsedOption &option,
                      std::vector<std::pair<int64_t, double>> &biases,
                      Error &error) {
  size_t colon = option.value.find(':');
  ParsedOption id = {option.name, option.value.substr(0, colon)};
  ParsedOption bias = {option.name, colon == std::string::npos
                                        ? ""
                                        : option.value.substr(colon + 1)};
  int64_t token;
  double value;
  if (!parseInteger(id, 0, INT64_MAX, token, error) ||
      !parseReal(bias, -1000, 1000, value, error))
    return error.set(ExitBadCommandLine,
                     "--logit-bias: expected ID:VALUE, a token and a number "
                     "from -1000 to 1000, found '" +
                         option.value + "'");
  biases.emplace_back(token, value);
  return true;
}

bool GenerateOptions::set(const ParsedOption &option, bool &mine,
                          Error &error) {
  const std::string &name = option.name;
  const OptionSpecs &known = specs();
  mine = std::any_of(known.begin(), known.end(),
                     [&](const OptionSpec &spec) { return spec.name == name; });
  if (!mine)
    return true;
  bool again = std::find(given.begin(), given.end(), name) != given.end();
  if (again && (name == "prompt" || name == "prompt-ids"))
    return error.set(ExitBadCommandLine,
                     "--" + name +
                         " is given twice; --prompts-file=FILE takes several "
                         "prompts, a line each");
  given.push_back(name);
  bool isLayout = false;
  if (!messages.set(option, isLayout, error))
    return false;
  if (isLayout || name == "chat") {
    chat = isLayout || option.value == "true";
    return true;
  }
  bool on = option.value == "true";
  int64_t number;
  if (name == "prompt") {
    hasPrompt = true;
    prompt = option.value;
  } else if (name == "prompt-ids") {
    hasPromptIds = true;
    return parseIds(option, promptIds, error);
  } else if (name == "prompt-file") {
    promptFile = option.value;
  } else if (name == "adapter") {
    adapter = option.value;
  } else if (name == "prompts-file") {
    promptsFile = option.value;
  } else if (name == "inputs") {
    inputs = option.value;
  } else if (name == "audio") {
    audio = option.value;
  } else if (name == "language") {
    language = option.value;
  } else if (name == "task") {
    task = option.value;
  } else if (name == "timestamps") {
    timestamps = on;
  } else if (name == "audio-out") {
    audioOut = option.value;
  } else if (name == "codes") {
    codes = option.value;
  } else if (name == "codes-out") {
    codesOut = option.value;
  } else if (name == "guidance") {
    return parseReal(option, 1, 1000, guidance, error);
  } else if (name == "image") {
    images.push_back(option.value);
  } else if (name == "max-new-tokens") {
    return parseInteger(option, 1, INT64_MAX, maxNewTokens, error);
  } else if (name == "stop") {
    if (option.value.empty())
      return error.set(ExitBadCommandLine, "--stop: the text is empty");
    if (sanitizeUtf8(option.value) != option.value)
      return error.set(ExitBadCommandLine, "--stop: the text is not UTF-8");
    stops.push_back(option.value);
  } else if (name == "json-schema" || name == "grammar" || name == "regex") {
    if (form.kind != TextForm::Kind::Any)
      return error.set(ExitBadCommandLine,
                       "--json-schema, --grammar and --regex exclude each "
                       "other, and one is enough");
    form.kind = name == "regex"     ? TextForm::Kind::Pattern
                : name == "grammar" ? TextForm::Kind::Grammar
                                    : TextForm::Kind::JsonSchema;
    (name == "regex" ? form.source : formFile) = option.value;
  } else if (name == "beams") {
    return parseInteger(option, 1, 1024, beams, error);
  } else if (name == "seed") {
    if (!parseInteger(option, 0, INT64_MAX, number, error))
      return false;
    sampling.seed = static_cast<uint64_t>(number);
  } else if (name == "greedy") {
    askedGreedy = on;
  } else if (name == "ignore-eos") {
    ignoreEos = on;
  } else if (name == "echo") {
    echo = on;
  } else if (name == "stats") {
    stats = on;
  } else if (name == "draft") {
    draft = option.value;
  } else if (name == "draft-tokens") {
    return parseInteger(option, 1, mostGuesses, draftTokens, error);
  } else if (name == "lookup") {
    lookup = 8;
    return option.value.empty() ||
           parseInteger(option, 1, mostGuesses, lookup, error);
  } else if (name == "logprobs") {
    logprobs = 0;
    return option.value.empty() ||
           parseInteger(option, 0, 1000, logprobs, error);
  } else if (name == "format") {
    if (option.value == "text")
      format = Format::Text;
    else if (option.value == "ids")
      format = Format::Ids;
    else if (option.value == "json")
      format = Format::Json;
    else
      return error.set(ExitBadCommandLine,
                       "--format: expected text, ids or json, found '" +
                           option.value + "'");
  } else {
    return setSampling(option, error);
  }
  return true;
}

bool GenerateOptions::setSampling(const ParsedOption &option, Error &error) {
  const std::string &name = option.name;
  if (name == "temperature") {
    double value;
    if (!parseReal(option, 0, 1000, value, error))
      return false;
    (value == 0 ? askedGreedy : askedSampling) = true;
    if (value != 0)
      sampling.temperature = value;
    return value == 0 || value >= SamplingOptions::leastTemperature ||
           error.set(ExitBadCommandLine,
                     "--temperature: expected 0 (greedy) or a number from "
                     "1e-05 to 1000, found '" +
                         option.value + "'");
  }
  if (name == "top-k") {
    askedSampling = true;
    return parseInteger(option, 0, INT64_MAX, sampling.topK, error);
  }
  if (name == "top-p") {
    askedSampling = true;
    return parseReal(option, 0, 1, sampling.topP, error);
  }
  if (name == "min-p") {
    askedSampling = true;
    return parseReal(option, 0, 1, sampling.minP, error);
  }
  if (name == "repetition-penalty")
    return parseReal(option, 0.01, 100, sampling.repetitionPenalty, error);
  if (name == "frequency-penalty")
    return parseReal(option, -100, 100, sampling.frequencyPenalty, error);
  if (name == "presence-penalty")
    return parseReal(option, -100, 100, sampling.presencePenalty, error);
  if (name == "no-repeat-ngram")
    return parseInteger(option, 0, INT64_MAX, sampling.noRepeatNgram, error);
  if (name == "min-new-tokens")
    return parseInteger(option, 0, INT64_MAX, sampling.minNewTokens, error);
  return parseBias(option, sampling.logitBias, error);
}

bool choosesTokens(std::string_view option) {
  static constexpr std::string_view names[] = {"max-new-tokens",
                                               "temperature",
                                               "top-k",
                                               "top-p",
                                               "min-p",
                                               "repetition-penalty",
                                               "frequency-penalty",
                                               "presence-penalty",
                                               "no-repeat-ngram",
                                               "logit-bias",
                                               "seed",
                                               "greedy"};
  return std::find(std::begin(names), std::end(names), option) !=
         std::end(names);
}

const std::string *
GenerateOptions::findOther(std::initializer_list<std::string_view> fits,
                           bool samples) const {
  for (const std::string &name : given)
    if (std::find(fits.begin(), fits.end(), name) == fits.end() &&
        !(samples && choosesTokens(name)))
      return &name;
  return nullptr;
}

bool GenerateOptions::finish(Error &error) {
  for (const char *name : {"task", "timestamps"})
    if (audio.empty() &&
        std::find(given.begin(), given.end(), name) != given.end())
      return error.set(ExitBadCommandLine,
                       "--" + std::string(name) + " needs --audio=FILE");
  const std::pair<const char *, bool> sources[] = {
      {"--prompt", hasPrompt},
      {"--prompt-ids", hasPromptIds},
      {"--prompt-file", !promptFile.empty()},
      {"--prompts-file", !promptsFile.empty()}};
  const char *source = nullptr;
  for (auto [name, present] : sources) {
    if (present && source)
      return error.set(ExitBadCommandLine, std::string(source) + " and " +
                                               name + " exclude each other");
    if (present)
      source = name;
  }
  if (!source && inputs.empty() && audio.empty() && codes.empty())
    return error.set(ExitBadCommandLine,
                     "generate needs --prompt=TEXT or --prompt-ids=1,2,3");
  if (!images.empty() && (!inputs.empty() || !promptsFile.empty()))
    return error.set(ExitBadCommandLine,
                     std::string("--image and ") +
                         (inputs.empty() ? "--prompts-file" : "--inputs") +
                         " exclude each other");
  if (askedGreedy && askedSampling)
    return error.set(ExitBadCommandLine,
                     "greedy and an option that samples (--temperature, "
                     "--top-k, --top-p, --min-p) exclude each other");
  if (beams > 1 && askedSampling)
    return error.set(ExitBadCommandLine,
                     "--beams and an option that samples exclude each other");
  if (!draft.empty() && lookup > 0)
    return error.set(ExitBadCommandLine,
                     "--draft and --lookup exclude each other");
  if (beams > 1 && guesses())
    return error.set(ExitBadCommandLine,
                     "--beams and guesses (--draft, --lookup) exclude each "
                     "other");
  if (beams > 1 && logprobs >= 0)
    return error.set(ExitBadCommandLine,
                     "--beams and --logprobs exclude each other");
  if (form.kind != TextForm::Kind::Any && (beams > 1 || guesses()))
    return error.set(ExitBadCommandLine,
                     "a form of the text (--json-schema, --grammar, --regex) "
                     "excludes --beams and guesses (--draft, --lookup)");
  if (logprobs >= 0 && format != Format::Json)
    return error.set(ExitBadCommandLine, "--logprobs needs --format=json");
  sampling.greedy = !askedSampling;
  return true;
}

//===----------------------------------------------------------------------===//
// The model's own settings
//===----------------------------------------------------------------------===//

static std::string formatNumber(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.10g", value);
  return text;
}

bool GenerateOptions::takeSettings(const ModelInfo &info, std::string &taken,
                                   Error &error) {
  auto wasGiven = [&](const char *option) {
    return std::find(given.begin(), given.end(), option) != given.end();
  };
  auto find = [&](std::string_view name) -> const double * {
    for (const auto &[known, value] : info.sampling)
      if (known == name)
        return &value;
    return nullptr;
  };
  taken.clear();
  auto note = [&](const char *name, const std::string &value) {
    taken += (taken.empty() ? "" : " ") + std::string(name) + "=" + value;
  };
  // Casting a double beyond int64_t is undefined.
  auto whole = [](double value) {
    return static_cast<int64_t>(std::min(std::max(value, -1.0), 1e15));
  };
  auto takeReal = [&](const char *name, const char *option, double &to) {
    const double *value = find(name);
    if (!value || wasGiven(option) || *value == to)
      return;
    to = *value;
    note(name, formatNumber(to));
  };
  auto takeWhole = [&](const char *name, const char *option, int64_t &to) {
    const double *value = find(name);
    if (!value || wasGiven(option) || whole(*value) == to)
      return;
    to = whole(*value);
    note(name, std::to_string(to));
  };
  const double *samples = find("do_sample"), *heat = find("temperature");
  bool isCold = heat && *heat == 0 && !wasGiven("temperature");
  if (samples && *samples != 0 && !askedGreedy && !askedSampling &&
      beams == 1 && !isCold) {
    sampling.greedy = false;
    note("do_sample", "true");
  }
  if (!sampling.greedy) {
    if (!isCold)
      takeReal("temperature", "temperature", sampling.temperature);
    takeWhole("top_k", "top-k", sampling.topK);
    takeReal("top_p", "top-p", sampling.topP);
    takeReal("min_p", "min-p", sampling.minP);
  }
  takeReal("repetition_penalty", "repetition-penalty",
           sampling.repetitionPenalty);
  takeWhole("no_repeat_ngram_size", "no-repeat-ngram", sampling.noRepeatNgram);
  if (beams > 1) {
    takeReal("length_penalty", "", lengthPenalty);
    const double *stopping = find("early_stopping");
    if (stopping && *stopping != 0) {
      earlyStopping = *stopping == 2 ? 2 : 1;
      note("early_stopping", earlyStopping == 2 ? "never" : "true");
    }
  }
  if (!ignoreEos) {
    takeWhole("min_length", "min-new-tokens", sampling.minLength);
    takeWhole("min_new_tokens", "min-new-tokens", sampling.minNewTokens);
  }
  // A number of new tokens counts before a length with the prompt.
  takeWhole("max_new_tokens", "max-new-tokens", maxNewTokens);
  if (maxNewTokens < 0)
    takeWhole("max_length", "max-new-tokens", maxLength);
  if (sampling.check(ExitBadInput, error))
    return true;
  error.message += " in the model's own settings (" + taken + ")";
  return false;
}

} // namespace attune::runtime
