//===- StageReport.h - A page about every stage -----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_DRIVER_REPORT_STAGEREPORT_H
#define ATTUNE_LIB_DRIVER_REPORT_STAGEREPORT_H

#include "attune/Analysis/ModelStatistics.h"
#include "attune/Target/CPU/MachineProbe.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace attune::driver {

/// Collects the stages of `--emit-stages` and writes them as one HTML page that
/// needs nothing else: time, memory, counts of operations, the layers below
/// this machine's roof, what the frames hold and when, the model as a graph,
/// and any two stages side by side.
class StageReport {
public:
  /// A stage whose text was just written to the file `name`.
  void add(llvm::StringRef name, llvm::StringRef text, mlir::ModuleOp module);
  /// One without operations of MLIR: LLVM's text, assembly, PTX.
  void add(llvm::StringRef name, llvm::StringRef text);
  /// The frames of functions, as text and as pictures.
  void setFrames(llvm::StringRef text, llvm::StringRef pictures) {
    frames = text.str();
    memory = pictures.str();
  }
  void setGraph(llvm::StringRef picture) { graph = picture.str(); }
  /// How long each step of the compilation took, LLVM's among them.
  void setTimes(std::vector<std::pair<std::string, double>> steps) {
    times = std::move(steps);
  }

  std::string html(llvm::StringRef title,
                   const std::optional<ModelStatistics> &statistics,
                   const std::optional<MachinePeak> &peak) const;

private:
  using Clock = std::chrono::steady_clock;
  struct Stage {
    std::string name, text;
    double seconds = 0;    ///< since the stage before
    int64_t peakBytes = 0; ///< of the process, up to here
    llvm::MapVector<llvm::StringRef, int64_t> counts;
    int64_t operations = 0;
  };
  std::vector<Stage> stages;
  void printStages(llvm::raw_ostream &out) const;
  void printLayers(llvm::raw_ostream &out,
                   const std::optional<ModelStatistics> &statistics,
                   const std::optional<MachinePeak> &peak) const;
  void printOperations(llvm::raw_ostream &out) const;
  std::string frames, memory, graph;
  std::vector<std::pair<std::string, double>> times;
  Clock::time_point last = Clock::now();
};

} // namespace attune::driver

#endif // ATTUNE_LIB_DRIVER_REPORT_STAGEREPORT_H
