//===- Diagnostics.h - Errors that point into a file ------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_SUPPORT_DIAGNOSTICS_H
#define ATTUNE_SUPPORT_DIAGNOSTICS_H

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace attune {

/// A place in a text file; lines and columns count from 1, columns in bytes,
/// and 0 means unknown.
struct SourceLocation {
  std::shared_ptr<const struct SourceFile> file;
  uint32_t line = 0;
  uint32_t column = 0;
};

/// A file as it was read: the text serves the caret line of diagnostics.
struct SourceFile {
  std::string path;
  std::string text;
};

enum class Severity { Error, Warning, Remark, Note };

/// One message. `message` is lower case, without a final period, and says what
/// was found, what was expected and what to do.
struct Diagnostic {
  Severity severity = Severity::Error;
  SourceLocation location;
  std::string message;
};

/// Exit codes of every Attune program (the command line's contract).
enum class ExitCode : int {
  Success = 0,
  BadInput = 1,
  BadCommandLine = 2,
  Mismatch = 3,
  ResourceLimit = 4,
  InternalError = 70,
};

/// Where diagnostics go: stderr, as text with a caret line or as one JSON
/// object a line (`--message-format=json`).
class DiagnosticEngine {
public:
  enum class Format { Text, Json };
  explicit DiagnosticEngine(Format format = Format::Text) : format(format) {}
  virtual ~DiagnosticEngine() = default;

  void error(const SourceLocation &where, const std::string &message) {
    report({Severity::Error, where, message});
  }
  void note(const SourceLocation &where, const std::string &message) {
    report({Severity::Note, where, message});
  }
  void warning(const SourceLocation &where, const std::string &message) {
    report({Severity::Warning, where, message});
  }
  void remark(const SourceLocation &where, const std::string &message) {
    report({Severity::Remark, where, message});
  }
  virtual void report(const Diagnostic &diagnostic);

  unsigned getNumErrors() const { return numErrors; }
  Format getFormat() const { return format; }

protected:
  Format format;
  unsigned numErrors = 0;
};

/// Renders a diagnostic: `path:line:col: error: message`, the line, a caret.
std::string formatDiagnostic(const Diagnostic &diagnostic);
/// The same as one line of JSON: severity, file, line, column, message.
std::string formatDiagnosticJson(const Diagnostic &diagnostic);

/// Reads a whole file; reports and returns null if that fails or the file is
/// larger than `maxBytes`.
std::shared_ptr<const SourceFile>
readSourceFile(const std::string &path, DiagnosticEngine &diags,
               uint64_t maxBytes = 256u << 20);

} // namespace attune

#endif // ATTUNE_SUPPORT_DIAGNOSTICS_H
