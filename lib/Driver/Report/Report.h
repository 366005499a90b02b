//===- Report.h - Messages, progress and times ------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_DRIVER_REPORT_REPORT_H
#define ATTUNE_LIB_DRIVER_REPORT_REPORT_H

#include "attune/Support/Diagnostics.h"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace attune::driver {

/// Everything the driver says besides its results: diagnostics, on a terminal
/// the running stage, and with `--timing` how long each stage took.
class Report : public DiagnosticEngine {
public:
  explicit Report(Format format);
  ~Report() override { endStage(); }

  void report(const Diagnostic &diagnostic) override;
  /// An error without a place in a file.
  ExitCode fail(const std::string &message,
                ExitCode code = ExitCode::BadInput) {
    error({}, message);
    return code;
  }

  /// A stage begins, and the one before ends.
  void beginStage(const std::string &name);
  void endStage();
  /// The CPU whose code the stages from now on are for; empty: there is but one
  /// code, or they are for all.
  void setCpu(const std::string &name) { cpu = name; }
  /// What the current stage is at, shown on a terminal; ten times a second at
  /// most, so that callers need not count.
  void showProgress(const std::string &progress);
  /// Something to say about the current stage beside its time.
  void noteStage(const std::string &remark);
  /// A product of the command was written: `path` is what was asked for, `next`
  /// what to do with it. One line.
  void reportWritten(const std::string &path, uint64_t bytes,
                     const std::string &next);
  /// Prints the table of stages.
  void printTiming();
  /// The stages that have ended, with their seconds.
  std::vector<std::pair<std::string, double>> getTimes() const;

private:
  void clearLine();
  void showLine(const std::string &progress);

  struct Stage {
    std::string name;
    double seconds = 0;
    std::string remark;
    std::string cpu = {};

    std::string title() const { return cpu.empty() ? name : cpu + ": " + name; }
  };
  using Clock = std::chrono::steady_clock;
  Clock::time_point start = Clock::now(), stageStart, lineTime;
  std::vector<Stage> stages;
  std::string cpu;
  bool running = false;
  bool isTerminal = false;
  bool lineShown = false;
};

} // namespace attune::driver

#endif // ATTUNE_LIB_DRIVER_REPORT_REPORT_H
