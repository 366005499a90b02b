//===- Messages.h - What is said beside the results -------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_RUNTIME_MESSAGES_H
#define ATTUNE_RUNTIME_MESSAGES_H

#include <cstdio>
#include <string>

namespace attune::runtime {

/// Where notes and warnings go, one a line: as text or, as `--message-format`
/// asks, as {"severity": "note" or "warning", "message": TEXT}.
class Messages {
public:
  // A file alone means text.
  Messages(FILE *file, bool json = false) : file(file), json(json) {}

  void note(const std::string &text) const;
  /// `place`, if there is one, is the file that it is about.
  void warning(const std::string &text, const std::string &place = "") const;
  /// Where text goes that is no line; null where all is JSON.
  FILE *textFile() const { return json ? nullptr : file; }
  /// Where a line may be written over by the next: a terminal that shows text;
  /// null if they go elsewhere.
  FILE *terminal() const;
  /// A line as it is, such as one of a log: `text`, or `object` as JSON.
  void line(const std::string &text, const std::string &object) const;

private:
  void print(const char *severity, const std::string &text) const;
  void put(const std::string &text) const;

  FILE *file;
  bool json;
};

} // namespace attune::runtime

#endif // ATTUNE_RUNTIME_MESSAGES_H
