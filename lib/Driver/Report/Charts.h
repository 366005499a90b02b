//===- Charts.h - Pictures of a model and its memory ------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_DRIVER_REPORT_CHARTS_H
#define ATTUNE_LIB_DRIVER_REPORT_CHARTS_H

#include "attune/Analysis/ModelStatistics.h"
#include "attune/Target/CPU/MachineProbe.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

/// Pictures as SVG, each an element that stands in a page or, with the XML
/// namespace that it names, in a file of its own.
namespace attune::driver {

/// Which layers arithmetic limits and which memory, in one forward pass and in
/// one step of generation: rates against operations per byte, below the roof of
/// this machine.
std::string drawRoofline(const ModelStatistics &statistics,
                         const MachinePeak &peak);

/// The buffers of every function whose frame is planned: which part of the
/// frame each has, and from which operation to which. Sizes are those of
/// `dims`; functions whose sizes depend on more are left out.
std::string drawMemory(mlir::ModuleOp module,
                       const std::map<std::string, int64_t> &dims);

/// The functions of a module as a graph: a node for every operation on tensors,
/// an edge for every tensor.
class Graph {
public:
  explicit Graph(mlir::ModuleOp module);

  /// In the language of Graphviz.
  std::string dot() const;
  /// In rows: each node is below everything that it reads.
  std::string svg() const;

private:
  struct Node {
    std::vector<std::string> label; ///< lines
    bool argument = false;
    size_t row = 0;
  };
  struct Function {
    std::string name;
    std::vector<Node> nodes;
    std::vector<std::pair<size_t, size_t>> edges;
  };
  std::vector<Function> functions;
};

} // namespace attune::driver

#endif // ATTUNE_LIB_DRIVER_REPORT_CHARTS_H
