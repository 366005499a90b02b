//===- LineEditor.h - Reading lines from a terminal -------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_CHAT_LINEEDITOR_H
#define ATTUNE_LIB_RUNTIME_CHAT_LINEEDITOR_H

#include <string>
#include <string_view>
#include <vector>

#include <termios.h>

namespace attune::runtime {

/// Reads lines with the keys of Emacs and a history. The terminal is raw only
/// while a line is read. A pasted text stays one line of input, whatever lines
/// it has.
class LineEditor {
public:
  enum class Result { Line, End, Interrupted };

  /// `in` and `out` are a terminal.
  LineEditor(int in, int out);
  Result read(std::string_view prompt, std::string &line);

private:
  struct RawMode;

  int readByte();
  bool readEscape();
  void readPaste();
  void insert(std::string_view text);
  void eraseBefore(size_t from);
  void erasePrevious();
  void killRest();
  void clearScreen();
  void recall(bool older);
  size_t previous(size_t at) const;
  size_t next(size_t at) const;
  size_t wordBefore() const;
  void refresh();
  void write(std::string_view text) const;

  int in, out;
  std::string_view prompt;
  std::string text, saved, killed;
  size_t cursor = 0;
  std::vector<std::string> history;
  size_t place = 0;    ///< in the history; its end: the line itself
  unsigned rowsUp = 0; ///< from the prompt's row to the cursor's
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_CHAT_LINEEDITOR_H
