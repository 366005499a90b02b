//===- Pipelines.h - Named orders of passes ---------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_PIPELINES_PIPELINES_H
#define ATTUNE_PIPELINES_PIPELINES_H

#include "attune/Pipelines/Backends.h"
#include "attune/Transforms/MeshAxes.h"

#include "mlir/Pass/PassManager.h"

#include <optional>
#include <string>
#include <vector>

/// The only room that knows the order of passes. Each stage starts from what
/// the one before it gives.
namespace attune {

class MatrixRanks;

enum class FusionMode {
  Auto, ///< fuse the attention ladder where it matches
  Off,  ///< the reference path: every rung of the ladder on its own
};

/// Passes of somebody else at a named place: `point:passes`, the passes as
/// `--pass-pipeline` has them.
struct Insertion {
  std::string point, passes;
};

/// The places, in their order.
llvm::ArrayRef<llvm::StringRef> getInsertionPoints();

/// Reads `point:passes`. Fails with a message if there is no such place or if
/// the passes cannot be read; plugins must be loaded by then.
std::optional<Insertion> parseInsertion(llvm::StringRef text,
                                        std::string &problem);

/// Has passes run at a point of every pipeline that is built from here on,
/// ahead of the insertions of its options: what plugins call whose ops need
/// lowering.
void registerInsertion(Insertion insertion);

struct PipelineOptions {
  FusionMode fusion = FusionMode::Auto;
  /// The rules of attune-quantize; none: matrices are kept as they are.
  std::vector<std::string> quantize;
  /// Rows that meet such matrices stay numbers as they are.
  bool exactActivations = false;
  /// The rules of attune-prune-heads; none: all heads stay.
  std::vector<std::string> pruneHeads;
  /// Adapters that stay beside the weights, and the rules of
  /// attune-lora-branches; none: there are none.
  std::vector<std::string> adapters, adapterRanks;
  /// Patterns of weights whose inputs become outputs; nothing: none do.
  std::optional<std::vector<std::string>> tapInputs;
  /// The rules of attune-low-rank; none: matrices stay whole.
  std::vector<std::string> lowRank;
  std::shared_ptr<MatrixRanks> ranks; ///< for rules with errors
  MeshAxes mesh;                      ///< processes that share the model
  bool separateNorms = false;         ///< from a GPU's products of few rows
  bool explainFusion = false; ///< remarks: what fused, and why the rest did not
  const Backend *backend = findBackend("cpu");
  TargetDescription target; ///< of the backend; decides tile sizes
  std::vector<Insertion> insertions;
};

/// attune as imported -> the same with what the target adds to the entries:
/// the likeliest tokens, where logits are far from the host.
void buildEntriesPipeline(mlir::OpPassManager &pm, const PipelineOptions &);
/// attune as imported -> attune as optimised: attention fused, feed-forward
/// layers decomposed, weights in panels.
void buildOptimizePipeline(mlir::OpPassManager &pm, const PipelineOptions &);
/// attune -> loops over tiles, on tensors.
void buildTensorPipeline(mlir::OpPassManager &pm, const PipelineOptions &);
/// tensors -> memory and calls of kernels (`--emit=kernels`).
void buildKernelsPipeline(mlir::OpPassManager &pm, const PipelineOptions &);
/// The same with a place in a frame for every temporary buffer
/// (`--emit=loops`): kernels are loops around what tiles compute.
void buildFramesPipeline(mlir::OpPassManager &pm, const PipelineOptions &);
/// Both of these.
void buildLoopsPipeline(mlir::OpPassManager &pm, const PipelineOptions &);
/// loops over tiles -> vector code, and what each thread runs of it
/// (`--emit=vector`).
void buildVectorPipeline(mlir::OpPassManager &pm, const PipelineOptions &);
/// vectors -> the llvm dialect.
void buildLLVMPipeline(mlir::OpPassManager &pm, const PipelineOptions &);

/// Registers the above as attune-entries, attune-optimize, attune-to-tensor,
/// attune-to-kernels, attune-to-loops, attune-to-vector and attune-to-llvm for
/// attune-opt.
void registerPipelines();

} // namespace attune

#endif // ATTUNE_PIPELINES_PIPELINES_H
