//===- CommandLine.cpp - Options of programs that run models --------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/CommandLine.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace attune::runtime {

static unsigned editDistance(std::string_view a, std::string_view b) {
  std::vector<unsigned> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    row[j] = static_cast<unsigned>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    unsigned diagonal = row[0];
    row[0] = static_cast<unsigned>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      unsigned above = row[j];
      row[j] = std::min(
          {row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::string nearestName(std::string_view name,
                        const std::vector<std::string_view> &candidates) {
  if (name.size() > 64)
    return "";
  std::string nearest;
  unsigned best = static_cast<unsigned>(name.size() / 3 + 2);
  for (std::string_view candidate : candidates) {
    unsigned distance = editDistance(name, candidate);
    if (distance < best) {
      best = distance;
      nearest.assign(candidate.data(), candidate.size());
    }
  }
  return nearest;
}

/// A value may start with a dash if it is a number, "-" itself, or a text; else
/// it is the next option, and the value was forgotten.
static bool isForgotten(std::string_view option, std::string_view next) {
  if (next.size() < 2 || next[0] != '-' || (next[1] >= '0' && next[1] <= '9') ||
      next[1] == '.')
    return false;
  return option != "prompt" && option != "stop" && option != "system" &&
         option != "regex";
}

bool CommandLine::parse(int argc, const char *const *argv,
                        const OptionSpecs &specs, Error &error) {
  for (int i = 0; i < argc; ++i) {
    std::string_view argument = argv[i];
    if (argument == "--") {
      positionals.insert(positionals.end(), argv + i + 1, argv + argc);
      return true;
    }
    if (argument == "-h")
      argument = "--help";
    if (argument.size() < 2 || argument[0] != '-') {
      positionals.emplace_back(argument);
      continue;
    }
    size_t equals = argument.find('=');
    std::string_view name = argument.substr(0, equals);
    name.remove_prefix(name.substr(0, 2) == "--" ? 2 : 1);
    auto spec =
        std::find_if(specs.begin(), specs.end(),
                     [&](const OptionSpec &spec) { return spec.name == name; });
    if (spec == specs.end() || argument[1] != '-') {
      std::vector<std::string_view> names;
      for (const OptionSpec &known : specs)
        names.push_back(known.name);
      std::string nearest = nearestName(name, names);
      return error.set(
          ExitBadCommandLine,
          "unknown option '" + std::string(argument.substr(0, equals)) + "'" +
              (nearest.empty() ? "; --help lists the options"
                               : "; did you mean --" + nearest + "?"));
    }
    ParsedOption option;
    option.name.assign(name.data(), name.size());
    if (equals != std::string_view::npos) {
      option.value = argument.substr(equals + 1);
    } else if (spec->value.empty()) {
      option.value = "true";
    } else if (spec->mayOmitValue()) {
      option.value.clear();
    } else if (i + 1 < argc && !isForgotten(name, argv[i + 1])) {
      option.value = argv[++i];
    } else {
      return error.set(ExitBadCommandLine,
                       "option --" + option.name + " needs a value: --" +
                           option.name + "=" + std::string(spec->value));
    }
    if (spec->value.empty() && option.value != "true" &&
        option.value != "false")
      return error.set(ExitBadCommandLine, "option --" + option.name +
                                               " takes no value, or true or "
                                               "false, but not '" +
                                               option.value + "'");
    options.push_back(std::move(option));
  }
  return true;
}

std::string formatOptions(const OptionSpecs &specs) {
  std::string out;
  for (const OptionSpec &spec : specs) {
    std::string left = "  --" + std::string(spec.name);
    if (!spec.value.empty())
      left += (spec.mayOmitValue() ? "" : "=") + std::string(spec.value);
    if (left.size() < 27)
      left.resize(27, ' ');
    out += left + " " + std::string(spec.help) + "\n";
  }
  return out;
}

static bool wrongValue(const ParsedOption &option, const std::string &expected,
                       Error &error) {
  return error.set(ExitBadCommandLine, "--" + option.name + ": expected " +
                                           expected + ", found '" +
                                           option.value + "'");
}

/// A whole decimal number, nothing around it.
static bool readInteger(const std::string &text, int64_t &value) {
  bool digit = !text.empty() && ((text[0] >= '0' && text[0] <= '9') ||
                                 (text[0] == '-' && text.size() > 1));
  char *end = nullptr;
  errno = 0;
  value = std::strtoll(text.c_str(), &end, 10);
  return digit && !errno && end == text.c_str() + text.size();
}

bool parseInteger(const ParsedOption &option, int64_t least, int64_t most,
                  int64_t &value, Error &error) {
  int64_t read;
  if (!readInteger(option.value, read) || read < least || read > most) {
    std::string range = "a whole number of at least " + std::to_string(least);
    if (most != INT64_MAX)
      range = "a whole number from " + std::to_string(least) + " to " +
              std::to_string(most);
    return wrongValue(option, range, error);
  }
  value = read;
  return true;
}

static std::string shortReal(double value) {
  if (value != 0 && std::fabs(value) < 1e-3) {
    char text[32];
    std::snprintf(text, sizeof(text), "%g", value);
    return text;
  }
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.')
    text.pop_back();
  return text;
}

bool parseReal(const ParsedOption &option, double least, double most,
               double &value, Error &error) {
  char *end = nullptr;
  double read = std::strtod(option.value.c_str(), &end);
  bool whole =
      !option.value.empty() &&
      end == option.value.c_str() + option.value.size() &&
      option.value.find_first_not_of("0123456789.eE+-") == std::string::npos;
  if (!whole || !(read >= least && read <= most))
    return wrongValue(
        option, "a number from " + shortReal(least) + " to " + shortReal(most),
        error);
  value = read;
  return true;
}

/// Calls `use` for every part between commas, blanks around it removed.
template <typename Use>
static bool eachPart(const std::string &text, const Use &use) {
  size_t begin = 0;
  for (;;) {
    size_t end = std::min(text.find(',', begin), text.size());
    size_t first = text.find_first_not_of(" \t\n", begin);
    first = std::min(first, end);
    size_t last = end;
    while (last > first && (text[last - 1] == ' ' || text[last - 1] == '\t' ||
                            text[last - 1] == '\n'))
      --last;
    if (!use(text.substr(first, last - first)))
      return false;
    if (end == text.size())
      return true;
    begin = end + 1;
  }
}

bool parseIds(const ParsedOption &option, std::vector<int64_t> &ids,
              Error &error) {
  ids.clear();
  bool good = eachPart(option.value, [&](const std::string &part) {
    int64_t id;
    if (!readInteger(part, id))
      return false;
    ids.push_back(id);
    return true;
  });
  return good || wrongValue(option, "numbers with commas between", error);
}

bool parseDims(const ParsedOption &option,
               std::vector<std::pair<std::string, int64_t>> &dims,
               Error &error) {
  bool good = eachPart(option.value, [&](const std::string &part) {
    size_t equals = part.find('=');
    int64_t value;
    if (equals == std::string::npos || equals == 0 ||
        !readInteger(part.substr(equals + 1), value) || value <= 0)
      return false;
    dims.emplace_back(part.substr(0, equals), value);
    return true;
  });
  return good || wrongValue(option, "NAME=N with N above 0", error);
}

bool parseFormat(const ParsedOption &option, bool &json, Error &error) {
  json = option.value == "json";
  return json || option.value == "table" ||
         error.set(ExitBadCommandLine,
                   "--format: expected table or json, found '" + option.value +
                       "'");
}

bool parseBytes(const ParsedOption &option, uint64_t &bytes, Error &error,
                int64_t least) {
  std::string digits = option.value;
  unsigned shift = 0;
  if (!digits.empty()) {
    size_t suffix = std::string_view("KMGT").find(digits.back());
    if (suffix != std::string_view::npos) {
      shift = 10 * (static_cast<unsigned>(suffix) + 1);
      digits.pop_back();
    }
  }
  int64_t value;
  if (!readInteger(digits, value) || value < least ||
      value > (INT64_MAX >> shift))
    return wrongValue(option, "a size such as 512M", error);
  bytes = static_cast<uint64_t>(value) << shift;
  return true;
}

} // namespace attune::runtime
