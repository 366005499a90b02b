//===- CliOptions.cpp - Options of run and generate -----------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/Cli.h"

namespace attune::runtime {

static const OptionSpec *findSpec(const OptionSpecs &specs,
                                  const ParsedOption &option) {
  for (const OptionSpec &spec : specs)
    if (spec.name == option.name)
      return &spec;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// TeamOptions
//===----------------------------------------------------------------------===//

const OptionSpecs &TeamOptions::specs() {
  static const OptionSpecs specs = {
      {"threads", "N", "threads to use (default: one per available core)"},
      {"memory-limit", "SIZE",
       "most memory of intermediate results, such as 512M"},
  };
  return specs;
}

bool TeamOptions::set(const ParsedOption &option, bool &mine, Error &error) {
  mine = true;
  if (option.name == "threads") {
    int64_t count;
    if (!parseInteger(option, 1, 1024, count, error))
      return false;
    threads = static_cast<unsigned>(count);
    return true;
  }
  if (option.name == "memory-limit")
    return parseBytes(option, memoryLimit, error);
  mine = false;
  return true;
}

//===----------------------------------------------------------------------===//
// RunOptions
//===----------------------------------------------------------------------===//

const OptionSpecs &RunOptions::specs() {
  static const OptionSpecs specs = {
      {"inputs", "FILE", "safetensors file with the model's inputs by name"},
      {"outputs", "FILE",
       "file to write the outputs to: safetensors, or FILE.html for pictures"},
      {"dim", "NAME=N",
       "size that cannot be read off the inputs; may be repeated"},
  };
  return specs;
}

bool RunOptions::set(const ParsedOption &option, bool &mine, Error &error) {
  mine = findSpec(specs(), option) != nullptr;
  if (option.name == "inputs")
    inputs = option.value;
  else if (option.name == "outputs")
    outputs = option.value;
  else if (option.name == "dim")
    return parseDims(option, dims, error);
  return true;
}

bool RunOptions::finish(Error &error) const {
  if (outputs.empty())
    return error.set(ExitBadCommandLine, "run needs --outputs=FILE");
  return true;
}

//===----------------------------------------------------------------------===//
// GenerateOptions
//===----------------------------------------------------------------------===//

const OptionSpecs &GenerateOptions::specs() {
  static const OptionSpecs specs = {
      {"prompt", "TEXT", "text to continue, or to encode and answer"},
      {"prompt-ids", "1,2,3", "token ids to continue, or to encode"},
      {"inputs", "FILE",
       "safetensors file with what an encoder reads; a prompt is the "
       "decoder's then"},
      {"max-new-tokens", "N", "stop after N tokens (default: at the context)"},
      {"beams", "N",
       "beam search: follow the N likeliest texts (default: 1, none)"},
      {"temperature", "T", "sample with this temperature; 0 is greedy"},
      {"top-k", "K", "sample from the K likeliest tokens"},
      {"top-p", "P", "sample from the likeliest tokens of total probability P"},
      {"min-p", "P", "drop tokens less likely than P times the likeliest"},
      {"repetition-penalty", "R",
       "make tokens seen before less likely (1: not)"},
      {"seed", "N", "seed of the sampling (default: 0)"},
      {"greedy", "", "always take the likeliest token (default)"},
      {"ignore-eos", "", "go on after an end token"},
      {"format", "text|ids|json",
       "print the new text, the new ids, or both and why it stopped"},
      {"stats", "", "report times on stderr at the end"},
  };
  return specs;
}

bool GenerateOptions::set(const ParsedOption &option, bool &mine,
                          Error &error) {
  mine = findSpec(specs(), option) != nullptr;
  const std::string &name = option.name;
  bool on = option.value == "true";
  int64_t number;
  if (name == "prompt") {
    hasPrompt = true;
    prompt = option.value;
  } else if (name == "prompt-ids") {
    hasPromptIds = true;
    return parseIds(option, promptIds, error);
  } else if (name == "inputs") {
    inputs = option.value;
  } else if (name == "max-new-tokens") {
    return parseInteger(option, 1, INT64_MAX, maxNewTokens, error);
  } else if (name == "beams") {
    return parseInteger(option, 1, 1024, beams, error);
  } else if (name == "temperature") {
    if (!parseReal(option, 0, 1000, sampling.temperature, error))
      return false;
    if (sampling.temperature == 0)
      askedGreedy = true;
    else
      askedSampling = true;
  } else if (name == "top-k") {
    askedSampling = true;
    return parseInteger(option, 1, INT64_MAX, sampling.topK, error);
  } else if (name == "top-p") {
    askedSampling = true;
    return parseReal(option, 0, 1, sampling.topP, error);
  } else if (name == "min-p") {
    askedSampling = true;
    return parseReal(option, 0, 1, sampling.minP, error);
  } else if (name == "repetition-penalty") {
    return parseReal(option, 0.01, 100, sampling.repetitionPenalty, error);
  } else if (name == "seed") {
    if (!parseInteger(option, 0, INT64_MAX, number, error))
      return false;
    sampling.seed = static_cast<uint64_t>(number);
  } else if (name == "greedy") {
    askedGreedy = on;
  } else if (name == "ignore-eos") {
    ignoreEos = on;
  } else if (name == "stats") {
    stats = on;
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
  }
  return true;
}

bool GenerateOptions::finish(Error &error) {
  if (hasPrompt && hasPromptIds)
    return error.set(ExitBadCommandLine,
                     "--prompt and --prompt-ids exclude each other");
  if (!hasPrompt && !hasPromptIds && inputs.empty())
    return error.set(ExitBadCommandLine,
                     "generate needs --prompt=TEXT or --prompt-ids=1,2,3");
  if (askedGreedy && askedSampling)
    return error.set(ExitBadCommandLine,
                     "greedy and an option that samples (--temperature, "
                     "--top-k, --top-p, --min-p) exclude each other");
  if (beams > 1 && (askedSampling || sampling.repetitionPenalty != 1))
    return error.set(ExitBadCommandLine,
                     "--beams and an option that samples or penalises exclude "
                     "each other");
  sampling.greedy = !askedSampling;
  return true;
}

} // namespace attune::runtime
