//===- CommandLine.h - Options of programs that run models ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_RUNTIME_COMMANDLINE_H
#define ATTUNE_RUNTIME_COMMANDLINE_H

#include "attune/Runtime/Error.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attune::runtime {

struct OptionSpec {
  std::string_view name; ///< without the dashes
  /// The name of the value behind '='; empty for a switch. "[=N]": the value
  /// may be left out, and is empty then.
  std::string_view value;
  std::string_view help;

  bool mayOmitValue() const { return value.substr(0, 1) == "["; }
};
using OptionSpecs = std::vector<OptionSpec>;

struct ParsedOption {
  std::string name, value; ///< a switch has the value "true" or "false"
};

struct CommandLine {
  std::vector<ParsedOption> options;
  std::vector<std::string> positionals;

  /// Reads `--name=value`, `--name value` and `--switch`; `--` ends the
  /// options. An unknown option is an error that names the nearest known one.
  bool parse(int argc, const char *const *argv, const OptionSpecs &specs,
             Error &error);
};

/// One line an option, for --help.
std::string formatOptions(const OptionSpecs &specs);

/// The candidate closest to `name` by edits, or "" if none is close.
std::string nearestName(std::string_view name,
                        const std::vector<std::string_view> &candidates);

/// Values of options: false and a message of exit code 2 where they are wrong.
bool parseInteger(const ParsedOption &option, int64_t least, int64_t most,
                  int64_t &value, Error &error);
bool parseReal(const ParsedOption &option, double least, double most,
               double &value, Error &error);
/// "table" or "json".
bool parseFormat(const ParsedOption &option, bool &json, Error &error);
/// "1,2,3", with or without blanks.
bool parseIds(const ParsedOption &option, std::vector<int64_t> &ids,
              Error &error);
/// "seq=17", or several with commas between.
bool parseDims(const ParsedOption &option,
               std::vector<std::pair<std::string, int64_t>> &dims,
               Error &error);
/// "512M": bytes, or with a suffix K, M, G or T of powers of 1024.
bool parseBytes(const ParsedOption &option, uint64_t &bytes, Error &error,
                int64_t least = 1);

} // namespace attune::runtime

#endif // ATTUNE_RUNTIME_COMMANDLINE_H
