//===- Report.cpp - Messages, progress and times ----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Report.h"

#include "attune/Analysis/ModelStatistics.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdio>

using namespace llvm;
using namespace attune;
using namespace attune::driver;

Report::Report(Format format)
    : DiagnosticEngine(format),
      isTerminal(format == Format::Text &&
                 sys::Process::StandardErrIsDisplayed()) {}

void Report::clearLine() {
  if (lineShown)
    std::fputs("\r\x1b[K", stderr);
  lineShown = false;
}

void Report::report(const Diagnostic &diagnostic) {
  clearLine();
  DiagnosticEngine::report(diagnostic);
}

void Report::beginStage(const std::string &name) {
  endStage();
  stages.push_back({name, 0, "", cpu});
  running = true;
  stageStart = Clock::now();
  if (isTerminal)
    showLine("");
}

void Report::showLine(const std::string &progress) {
  lineTime = Clock::now();
  double elapsed = std::chrono::duration<double>(lineTime - start).count();
  std::fprintf(stderr, "\r\x1b[K[%5.1f s] %s%s%s", elapsed,
               stages.back().title().c_str(), progress.empty() ? "" : ": ",
               progress.c_str());
  std::fflush(stderr);
  lineShown = true;
}

void Report::showProgress(const std::string &progress) {
  if (isTerminal && running &&
      Clock::now() - lineTime >= std::chrono::milliseconds(100))
    showLine(progress);
}

void Report::endStage() {
  if (running)
    stages.back().seconds =
        std::chrono::duration<double>(Clock::now() - stageStart).count();
  running = false;
  clearLine();
}

void Report::noteStage(const std::string &remark) {
  if (!stages.empty())
    stages.back().remark = remark;
}

void Report::reportWritten(const std::string &path, uint64_t bytes,
                           const std::string &next) {
  endStage();
  double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  if (getFormat() == Format::Json) {
    json::Object entry{
        {"written", path}, {"bytes", bytes}, {"seconds", seconds}};
    if (!next.empty())
      entry["next"] = next;
    errs() << json::Value(std::move(entry)) << '\n';
    return;
  }
  errs() << path << ": " << formatBytes(double(bytes)) << " in "
         << llvm::format("%.1f s", seconds);
  if (!next.empty())
    errs() << "; " << next;
  errs() << '\n';
}

std::vector<std::pair<std::string, double>> Report::getTimes() const {
  std::vector<std::pair<std::string, double>> times;
  for (const Stage &stage : stages)
    if (!running || &stage != &stages.back())
      times.emplace_back(stage.name, stage.seconds);
  return times;
}

void Report::printTiming() {
  endStage();
  double total = std::chrono::duration<double>(Clock::now() - start).count();
  if (getFormat() == Format::Json) {
    json::Array list;
    for (const Stage &stage : stages) {
      json::Object entry{{"stage", stage.name}, {"seconds", stage.seconds}};
      if (!stage.cpu.empty())
        entry["cpu"] = stage.cpu;
      if (!stage.remark.empty())
        entry["remark"] = stage.remark;
      list.push_back(std::move(entry));
    }
    errs() << json::Value(json::Object{{"timing", std::move(list)},
                                       {"total_seconds", total}})
           << '\n';
    return;
  }
  for (const Stage &stage : stages) {
    errs() << llvm::format("%10.3f s  ", stage.seconds) << stage.title();
    if (!stage.remark.empty())
      errs() << " (" << stage.remark << ")";
    errs() << '\n';
  }
  errs() << llvm::format("%10.3f s  total\n", total);
}
