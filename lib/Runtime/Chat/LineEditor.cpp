//===- LineEditor.cpp - Reading lines from a terminal ---------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LineEditor.h"

#include "attune/Runtime/Utf8.h"

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <cwchar>

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace attune::runtime {

static constexpr size_t mostHistory = 1000, mostBytes = size_t(1) << 24;

static constexpr char key(char letter) {
  return static_cast<char>(letter - '@');
}

/// A line end within a line is shown as this sign.
static constexpr std::string_view lineSign = "\xE2\x8F\x8E";

struct LineEditor::RawMode {
  RawMode(int in, int out) : in(in), out(out) {
    good = tcgetattr(in, &before) == 0;
    termios raw = before;
    raw.c_iflag &= ~tcflag_t(BRKINT | ICRNL | INPCK | ISTRIP | IXON);
    raw.c_cflag |= CS8;
    raw.c_lflag &= ~tcflag_t(ECHO | ICANON | IEXTEN | ISIG);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    good = good && tcsetattr(in, TCSADRAIN, &raw) == 0;
    set("\x1b[?2004h"); // pasted texts come in brackets
  }
  ~RawMode() {
    set("\x1b[?2004l");
    if (good)
      tcsetattr(in, TCSADRAIN, &before);
  }
  void set(std::string_view sequence) const {
    if (good && ::write(out, sequence.data(), sequence.size()) < 0)
      return;
  }
  int in, out;
  bool good;
  termios before;
};

LineEditor::LineEditor(int in, int out) : in(in), out(out) {
  // For wcwidth alone; numbers keep their form.
  std::setlocale(LC_CTYPE, "C.UTF-8");
}

void LineEditor::write(std::string_view text) const {
  while (!text.empty()) {
    ssize_t n = ::write(out, text.data(), text.size());
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return;
    text.remove_prefix(static_cast<size_t>(n));
  }
}

/// The next byte, or -1 at the end.
int LineEditor::readByte() {
  unsigned char byte;
  for (;;) {
    ssize_t n = ::read(in, &byte, 1);
    if (n == 1)
      return byte;
    if (n == 0 || errno != EINTR)
      return -1;
  }
}

size_t LineEditor::previous(size_t at) const {
  if (at == 0)
    return 0;
  do
    --at;
  while (at > 0 && (text[at] & 0xC0) == 0x80);
  return at;
}

size_t LineEditor::next(size_t at) const {
  if (at < text.size())
    ++at;
  while (at < text.size() && (text[at] & 0xC0) == 0x80)
    ++at;
  return at;
}

size_t LineEditor::wordBefore() const {
  size_t at = cursor;
  while (at > 0 && text[at - 1] == ' ')
    --at;
  while (at > 0 && text[at - 1] != ' ')
    --at;
  return at;
}

void LineEditor::insert(std::string_view more) {
  if (text.size() + more.size() > mostBytes)
    return;
  text.insert(cursor, more);
  cursor += more.size();
}

void LineEditor::eraseBefore(size_t from) {
  killed = text.substr(from, cursor - from);
  text.erase(from, cursor - from);
  cursor = from;
}

void LineEditor::erasePrevious() {
  size_t from = previous(cursor);
  text.erase(from, cursor - from);
  cursor = from;
}

void LineEditor::killRest() {
  killed = text.substr(cursor);
  text.resize(cursor);
}

void LineEditor::clearScreen() {
  write("\x1b[H\x1b[2J");
  rowsUp = 0;
}

void LineEditor::recall(bool older) {
  if (older ? place == 0 : place == history.size())
    return;
  if (place == history.size())
    saved = text;
  place += older ? size_t(-1) : 1;
  text = place == history.size() ? saved : history[place];
  cursor = text.size();
}

/// How many columns a text takes, given the one it starts in; what does not
/// fit a row goes to the next.
static void advance(std::string_view text, size_t columns, size_t &row,
                    size_t &column) {
  while (!text.empty()) {
    uint32_t c;
    unsigned n = decodeUtf8(text, c);
    int width = n ? wcwidth(static_cast<wchar_t>(c)) : 1;
    auto cells = static_cast<size_t>(std::max(width, 0));
    if (column + cells > columns) {
      ++row;
      column = 0;
    }
    column += cells;
    text.remove_prefix(n ? n : 1);
  }
}

/// The form of a text on the screen: no control character.
static std::string shown(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '\n')
      out += lineSign;
    else if (c == '\t')
      out += ' ';
    else if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7F)
      out += c;
    else
      out += '?';
  }
  return out;
}

void LineEditor::refresh() {
  winsize size = {};
  size_t columns =
      ioctl(out, TIOCGWINSZ, &size) == 0 && size.ws_col > 3 ? size.ws_col : 80;
  std::string before = shown(std::string_view(text).substr(0, cursor));
  std::string after = shown(std::string_view(text).substr(cursor));
  std::string draw;
  if (rowsUp)
    draw += "\x1b[" + std::to_string(rowsUp) + "A";
  draw += "\r\x1b[J" + std::string(prompt) + before + after;
  size_t row = 0, column = 0;
  advance(prompt, columns, row, column);
  advance(before, columns, row, column);
  size_t endRow = row, endColumn = column;
  advance(after, columns, endRow, endColumn);
  if (endColumn == columns) { // the terminal waits with the wrap
    draw += "\r\n";
    ++endRow;
    endColumn = 0;
  }
  if (column == columns) {
    ++row;
    column = 0;
  }
  if (endRow > row)
    draw += "\x1b[" + std::to_string(endRow - row) + "A";
  draw += "\r";
  if (column)
    draw += "\x1b[" + std::to_string(column) + "C";
  rowsUp = static_cast<unsigned>(row);
  write(draw);
}

/// Reads the text between the brackets of a paste.
void LineEditor::readPaste() {
  static constexpr std::string_view end = "\x1b[201~";
  std::string pasted;
  for (int byte; (byte = readByte()) >= 0;) {
    if (pasted.size() < mostBytes)
      pasted += static_cast<char>(byte);
    if (byte == '~' && pasted.size() >= end.size() &&
        pasted.compare(pasted.size() - end.size(), end.size(), end) == 0) {
      pasted.resize(pasted.size() - end.size());
      break;
    }
  }
  std::string clean;
  for (size_t i = 0; i < pasted.size(); ++i) {
    if (pasted[i] != '\r')
      clean += pasted[i];
    else if (i + 1 == pasted.size() || pasted[i + 1] != '\n')
      clean += '\n';
  }
  // A line that was copied with its end is one line.
  if (!clean.empty() && clean.back() == '\n')
    clean.pop_back();
  insert(sanitizeUtf8(clean));
}

/// Behind an escape; false if it stands alone.
bool LineEditor::readEscape() {
  pollfd wait = {in, POLLIN, 0};
  if (poll(&wait, 1, 50) <= 0)
    return false;
  int kind = readByte();
  if (kind == '\r' || kind == '\n') { // Alt and Enter: a line end
    insert("\n");
    return true;
  }
  if (kind == 'b' || kind == 'f') {
    if (kind == 'b')
      cursor = wordBefore();
    while (kind == 'f' && cursor < text.size() && text[cursor] == ' ')
      ++cursor;
    while (kind == 'f' && cursor < text.size() && text[cursor] != ' ')
      ++cursor;
    return true;
  }
  if (kind != '[' && kind != 'O')
    return true;
  std::string number;
  int byte = readByte();
  for (; byte >= 0 && (byte < 0x40 || byte > 0x7E); byte = readByte())
    if (number.size() < 16)
      number += static_cast<char>(byte);
  if (byte == 'A' || byte == 'B')
    recall(byte == 'A');
  else if (byte == 'C')
    cursor = next(cursor);
  else if (byte == 'D')
    cursor = previous(cursor);
  else if (byte == 'H' || (byte == '~' && (number == "1" || number == "7")))
    cursor = 0;
  else if (byte == 'F' || (byte == '~' && (number == "4" || number == "8")))
    cursor = text.size();
  else if (byte == '~' && number == "3")
    text.erase(cursor, next(cursor) - cursor);
  else if (byte == '~' && number == "200")
    readPaste();
  return true;
}

LineEditor::Result LineEditor::read(std::string_view shownPrompt,
                                    std::string &line) {
  RawMode raw(in, out);
  prompt = shownPrompt;
  text.clear();
  saved.clear();
  cursor = 0;
  rowsUp = 0;
  place = history.size();
  auto finish = [&](Result result) {
    cursor = text.size();
    refresh();
    write("\r\n");
    line = text;
    if (result == Result::Line && !text.empty() &&
        (history.empty() || history.back() != text)) {
      history.push_back(text);
      if (history.size() > mostHistory)
        history.erase(history.begin());
    }
    return result;
  };
  refresh();
  for (;;) {
    int byte = readByte();
    if (byte < 0)
      return finish(text.empty() ? Result::End : Result::Line);
    char c = static_cast<char>(byte);
    if (c == '\r' || c == '\n')
      return finish(Result::Line);
    if (c == key('C'))
      return finish(Result::Interrupted);
    if (c == key('D') && text.empty())
      return finish(Result::End);
    if (c == key('D'))
      text.erase(cursor, next(cursor) - cursor);
    else if (c == key('H') || c == 0x7F)
      erasePrevious();
    else if (c == key('A'))
      cursor = 0;
    else if (c == key('E'))
      cursor = text.size();
    else if (c == key('B'))
      cursor = previous(cursor);
    else if (c == key('F'))
      cursor = next(cursor);
    else if (c == key('K'))
      killRest();
    else if (c == key('U'))
      eraseBefore(0);
    else if (c == key('W'))
      eraseBefore(wordBefore());
    else if (c == key('Y'))
      insert(killed);
    else if (c == key('P') || c == key('N'))
      recall(c == key('P'));
    else if (c == key('L'))
      clearScreen();
    else if (c == '\x1b')
      readEscape();
    else if (byte >= 0x20 || c == '\t') {
      std::string character(1, c);
      size_t length = byte >= 0xF0   ? 4
                      : byte >= 0xE0 ? 3
                      : byte >= 0xC0 ? 2
                                     : 1;
      while (character.size() < length) {
        int more = readByte();
        if (more < 0 || (more & 0xC0) != 0x80)
          break;
        character += static_cast<char>(more);
      }
      insert(sanitizeUtf8(character));
    }
    // Text typed ahead, or pasted without brackets, is drawn at once.
    pollfd more = {in, POLLIN, 0};
    if (poll(&more, 1, 0) == 0)
      refresh();
  }
}

} // namespace attune::runtime
