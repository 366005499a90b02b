//===- Diagnostics.cpp - Errors that point into a file ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Support/Diagnostics.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace attune {

/// Columns of source text shown around a caret; longer lines are cut.
static constexpr size_t maxShownColumns = 120;

static const char *stringify(Severity severity) {
  switch (severity) {
  case Severity::Error:
    return "error";
  case Severity::Warning:
    return "warning";
  case Severity::Remark:
    return "remark";
  case Severity::Note:
    return "note";
  }
  return "error";
}

/// Number of bytes of the well-formed UTF-8 character at `text[at]`, 0 if there
/// is none.
static size_t utf8Length(std::string_view text, size_t at) {
  auto byte = [&](size_t i) -> unsigned {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0;
  };
  auto tail = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  unsigned lead = byte(0);
  if (lead < 0x80)
    return 1;
  if (lead >= 0xC2 && lead <= 0xDF && tail(1))
    return 2;
  if (lead >= 0xE0 && lead <= 0xEF && tail(1) && tail(2)) {
    if ((lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xED && byte(1) > 0x9F))
      return 0; // overlong, surrogate
    return 3;
  }
  if (lead >= 0xF0 && lead <= 0xF4 && tail(1) && tail(2) && tail(3)) {
    if ((lead == 0xF0 && byte(1) < 0x90) || (lead == 0xF4 && byte(1) > 0x8F))
      return 0;
    return 4;
  }
  return 0;
}

/// The text of line number `line` without its end, as a view into `text`.
static std::string_view findLine(std::string_view text, uint32_t line) {
  size_t begin = 0;
  for (uint32_t n = 1; n < line; ++n) {
    size_t newline = text.find('\n', begin);
    if (newline == std::string_view::npos)
      return {};
    begin = newline + 1;
  }
  size_t end = text.find('\n', begin);
  std::string_view result =
      text.substr(begin, end == std::string_view::npos ? end : end - begin);
  if (!result.empty() && result.back() == '\r')
    result.remove_suffix(1);
  return result;
}

/// One character as it may be shown on a terminal: escapes and broken UTF-8
/// become '?', a tab one space, so that every character is one column wide.
static void appendShown(std::string &out, std::string_view text, size_t at,
                        size_t length) {
  unsigned char c = text[at];
  if (length == 0 || c == 0x7F || (c < 0x20 && c != '\t'))
    out += '?';
  else if (c == '\t')
    out += ' ';
  else
    out.append(text.substr(at, length));
}

/// The source line and, below it, the caret. Empty if the place or the text is
/// unknown.
static std::string formatCaret(const SourceLocation &where) {
  if (!where.file || where.file->text.empty() || where.line == 0 ||
      where.column == 0)
    return {};
  std::string_view line = findLine(where.file->text, where.line);
  size_t caretByte = std::min<size_t>(where.column - 1, line.size());

  // Show at most half a window before the caret and the rest after it. Steps
  // back from the caret are in bytes, so land on the start of a character.
  size_t begin = 0;
  if (line.size() > maxShownColumns && caretByte > maxShownColumns / 2) {
    begin = caretByte - maxShownColumns / 2;
    while (begin > 0 && begin < line.size() &&
           (static_cast<unsigned char>(line[begin]) & 0xC0) == 0x80 &&
           caretByte - begin < maxShownColumns)
      --begin;
  }
  std::string shown = begin ? "..." : "";
  size_t columns = shown.size(), caretColumn = columns;
  size_t at = begin;
  for (; at < line.size() && columns < maxShownColumns; ++columns) {
    if (at <= caretByte)
      caretColumn = columns;
    size_t length = utf8Length(line, at);
    appendShown(shown, line, at, length);
    at += std::max<size_t>(length, 1);
  }
  if (at <= caretByte)
    caretColumn = columns; // the end of the line
  if (at < line.size())
    shown += "...";
  return shown + "\n" + std::string(caretColumn, ' ') + "^\n";
}

std::string formatDiagnostic(const Diagnostic &diagnostic) {
  const SourceLocation &where = diagnostic.location;
  std::string result;
  if (where.file) {
    result += where.file->path;
    if (where.line) {
      result += ":" + std::to_string(where.line);
      if (where.column)
        result += ":" + std::to_string(where.column);
    }
    result += ": ";
  }
  result += stringify(diagnostic.severity);
  result += ": " + diagnostic.message + "\n";
  return result + formatCaret(where);
}

static void appendJsonString(std::string &out, std::string_view text) {
  out += '"';
  for (size_t at = 0; at < text.size();) {
    unsigned char c = text[at];
    size_t length = utf8Length(text, at);
    if (length == 0) {
      out += "\\ufffd";
      length = 1;
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c < 0x20 || c == 0x7F) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", c);
      out += escape;
    } else {
      out.append(text.substr(at, length));
    }
    at += length;
  }
  out += '"';
}

std::string formatDiagnosticJson(const Diagnostic &diagnostic) {
  const SourceLocation &where = diagnostic.location;
  std::string result = "{\"severity\": \"";
  result += stringify(diagnostic.severity);
  result += "\"";
  if (where.file) {
    result += ", \"file\": ";
    appendJsonString(result, where.file->path);
  }
  if (where.line)
    result += ", \"line\": " + std::to_string(where.line);
  if (where.column)
    result += ", \"column\": " + std::to_string(where.column);
  result += ", \"message\": ";
  appendJsonString(result, diagnostic.message);
  return result + "}\n";
}

void DiagnosticEngine::report(const Diagnostic &diagnostic) {
  if (diagnostic.severity == Severity::Error)
    ++numErrors;
  std::string text = format == Format::Json ? formatDiagnosticJson(diagnostic)
                                            : formatDiagnostic(diagnostic);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

/// How long a named pipe may stay without a writer.
static constexpr int kPipeSeconds = 5;

/// Opens `path`; null, with errno, if that is not possible. Opening a named
/// pipe waits for its writer, who may never come; then errno is ETIMEDOUT.
static std::FILE *openForReading(const std::string &path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0 || !S_ISFIFO(status.st_mode))
    return std::fopen(path.c_str(), "rb");
  int fd = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0)
    return nullptr;
  // The pipe of a shell's <(command) has its writer already, however slow.
  bool named =
      path.compare(0, 5, "/dev/") != 0 && path.compare(0, 6, "/proc/") != 0;
  pollfd wanted = {fd, POLLIN, 0};
  if (poll(&wanted, 1, named ? kPipeSeconds * 1000 : -1) == 0) {
    close(fd);
    errno = ETIMEDOUT;
    return nullptr;
  }
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  return fdopen(fd, "rb");
}

std::shared_ptr<const SourceFile> readSourceFile(const std::string &path,
                                                 DiagnosticEngine &diags,
                                                 uint64_t maxBytes) {
  auto file = std::make_shared<SourceFile>();
  file->path = path;
  SourceLocation where{file, 0, 0};
  auto fail = [&](const std::string &message) {
    diags.error(where, message);
    return nullptr;
  };

  std::FILE *stream = openForReading(path);
  if (!stream)
    return fail(errno == ETIMEDOUT
                    ? "is a pipe, and nobody has begun to write to it for " +
                          std::to_string(kPipeSeconds) + " seconds"
                    : std::string("cannot open the file: ") +
                          std::strerror(errno));
  struct stat status;
  if (fstat(fileno(stream), &status) == 0 && S_ISDIR(status.st_mode)) {
    std::fclose(stream);
    return fail("is a folder, expected a file");
  }
  // Read to the end instead of trusting the size: pipes have none.
  std::vector<char> buffer(1 << 16);
  while (size_t count = std::fread(buffer.data(), 1, buffer.size(), stream)) {
    if (file->text.size() + count > maxBytes) {
      std::fclose(stream);
      return fail("is larger than the limit of " + std::to_string(maxBytes) +
                  " bytes");
    }
    file->text.append(buffer.data(), count);
  }
  bool bad = std::ferror(stream);
  int error = errno;
  std::fclose(stream);
  if (bad)
    return fail(std::string("cannot read the file: ") + std::strerror(error));
  if (file->text.rfind("version https://git-lfs.github.com/spec/", 0) == 0)
    return fail("is a pointer of Git LFS, not the file itself; run 'git lfs "
                "pull' in its folder");
  return file;
}

} // namespace attune
