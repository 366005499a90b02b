//===- TemporaryFiles.h - Files removed on a signal -------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_RUNTIME_TEMPORARYFILES_H
#define ATTUNE_RUNTIME_TEMPORARYFILES_H

#include <csignal>
#include <string>
#include <sys/types.h>

namespace attune::runtime {

/// Makes SIGINT, SIGTERM and SIGHUP end all tools that a TemporaryTool names,
/// remove all files and folders that a TemporaryFile names, and then end the
/// program as they would have done (a shell sees 128 + the signal's number).
/// Only programs of our own call it, at their start; a program that embeds a
/// model keeps its signals.
void removeTemporariesOnSignals();

/// While one lives, signals wait with ending the program. What a thread makes
/// and names meanwhile is removed by the handler, on whichever thread the
/// handler runs; once it runs, no other thread gets past the constructor.
class SignalsWait {
public:
  SignalsWait();
  SignalsWait(const SignalsWait &) = delete;
  SignalsWait &operator=(const SignalsWait &) = delete;
  ~SignalsWait() { end(); }

  /// Signals end the program again, before this is destroyed.
  void end();
  /// The signal mask of before, which is also that of a program started here.
  const sigset_t &mask() const { return before; }

private:
  sigset_t before;
  bool waits = true;
};

/// A file, or a folder with the files in it, that is to disappear if a signal
/// ends the program. Removing is up to the owner otherwise, who does it before
/// the name is forgotten.
class TemporaryFile {
public:
  TemporaryFile() = default;
  explicit TemporaryFile(const std::string &path) { watch(path); }
  TemporaryFile(const TemporaryFile &) = delete;
  TemporaryFile &operator=(const TemporaryFile &) = delete;
  ~TemporaryFile() { forget(); }

  void watch(const std::string &path);
  void forget();

private:
  int slot = -1;
};

/// Opens a new file beside `path` under a name that nobody uses, `temporary`;
/// the usual file mode applies, which mkstemp would not give. -1: errno says
/// why not.
int createBeside(const std::string &path, std::string &temporary);

/// A program that runs for this one in a process group of its own, and is to
/// end with it. It gets the signal too and is waited for, since it has
/// temporary files that nobody else knows.
class TemporaryTool {
public:
  /// From here on signals wait until `start` has said what they have to end.
  TemporaryTool() = default;
  TemporaryTool(const TemporaryTool &) = delete;
  TemporaryTool &operator=(const TemporaryTool &) = delete;
  ~TemporaryTool();

  /// The signal mask that the program gets.
  const sigset_t &mask() const { return starting.mask(); }
  /// \p group: the process group, which is the process that leads it; 0: the
  /// program could not be started. To be called once.
  void start(pid_t group);

private:
  SignalsWait starting;
  int slot = -1;
};

} // namespace attune::runtime

#endif // ATTUNE_RUNTIME_TEMPORARYFILES_H
