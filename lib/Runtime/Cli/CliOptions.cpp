//===- CliOptions.cpp - Options of every verb and of run ------------------===//
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
      {"no-mmap", "",
       "read all weights into memory, in large pages, and do not map the file: "
       "tokens are faster, but programs share nothing of it"},
      {"rank-timeout", "SECONDS",
       "of a model that several ranks share: how long one waits for another "
       "before all end (default: 300; 0: for ever)"},
      {"check-ranks", "",
       "of such a model: compare what ranks have computed after each call, and "
       "end if that differs in a bit"},
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
  if (option.name == "no-mmap") {
    readsWeights = option.value == "true";
    return true;
  }
  if (option.name == "rank-timeout")
    return parseReal(option, 0, 1e6, timeout, error);
  if (option.name == "check-ranks") {
    checkRanks = option.value == "true";
    return true;
  }
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
       "file to write the outputs to: safetensors, FILE.html for pictures, or "
       "FILE.npy for one output alone"},
      {"dim", "NAME=N",
       "size that cannot be read off the inputs; may be repeated"},
      {"adapter", "NAME", "compute with this adapter of the model"},
  };
  return specs;
}

bool RunOptions::set(const ParsedOption &option, bool &mine, Error &error) {
  mine = findSpec(specs(), option) != nullptr;
  if (option.name == "inputs")
    inputs = option.value;
  else if (option.name == "outputs")
    outputs = option.value;
  else if (option.name == "adapter")
    adapter = option.value;
  else if (option.name == "dim")
    return parseDims(option, dims, error);
  return true;
}

bool RunOptions::finish(Error &error) const {
  if (outputs.empty())
    return error.set(ExitBadCommandLine, "run needs --outputs=FILE");
  std::string_view suffix = fileSuffix(outputs);
  if (!suffix.empty() && suffix != ".safetensors" && suffix != ".html" &&
      suffix != ".npy")
    return error.set(ExitBadCommandLine,
                     "--outputs: '" + outputs + "' ends in " +
                         std::string(suffix) +
                         ", which run does not write; it writes .safetensors "
                         "(also where a name has no such end), .html "
                         "(pictures) and .npy (one output alone)");
  return true;
}

std::string_view fileSuffix(std::string_view path) {
  size_t slash = path.rfind('/');
  std::string_view name =
      slash == std::string_view::npos ? path : path.substr(slash + 1);
  size_t dot = name.rfind('.');
  return dot == std::string_view::npos || dot == 0 ? std::string_view()
                                                   : name.substr(dot);
}

} // namespace attune::runtime
