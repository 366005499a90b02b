//===- Messages.cpp - What is said beside the results ---------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/Messages.h"

#include "attune/Runtime/Json.h"

#include <unistd.h>

namespace attune::runtime {

void Messages::print(const char *severity, const std::string &text) const {
  std::string line =
      std::string("{\"severity\":\"") + severity + "\",\"message\":";
  appendJsonString(line, text);
  put(line + "}");
}

void Messages::put(const std::string &text) const {
  std::fprintf(file, "%s\n", text.c_str());
  std::fflush(file);
}

void Messages::line(const std::string &text, const std::string &object) const {
  put(json ? object : text);
}

FILE *Messages::terminal() const {
  return !json && isatty(fileno(file)) ? file : nullptr;
}

void Messages::note(const std::string &text) const {
  if (json)
    return print("note", text);
  put(text);
}

void Messages::warning(const std::string &text,
                       const std::string &place) const {
  std::string start = place.empty() ? "" : place + ": ";
  if (json)
    return print("warning", start + text);
  put(start + "warning: " + text);
}

} // namespace attune::runtime
