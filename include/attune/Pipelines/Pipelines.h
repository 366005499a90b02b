//===- Pipelines.h - Named orders of passes ---------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_PIPELINES_PIPELINES_H
#define ATTUNE_PIPELINES_PIPELINES_H

#include "attune/Analysis/TargetDescription.h"

#include "mlir/Pass/PassManager.h"

/// The only room that knows the order of passes. Each stage starts from what
/// the one before it gives.
namespace attune {

enum class FusionMode {
  Auto, ///< fuse the attention ladder where it matches
  Off,  ///< the reference path: every rung of the ladder on its own
};

struct PipelineOptions {
  FusionMode fusion = FusionMode::Auto;
  bool explainFusion = false; ///< remarks: what fused, and why the rest did not
  TargetDescription target;   ///< decides tile sizes
};

/// attune as imported -> attune as optimised: attention fused, feed-forward
/// layers decomposed, weights in panels.
void buildOptimizePipeline(mlir::OpPassManager &pm, const PipelineOptions &);
/// attune -> tiled loops and vectors on tensors (`--emit=tensor`).
void buildTensorPipeline(mlir::OpPassManager &pm, const PipelineOptions &);
/// tensors -> memory, frames, threads (`--emit=loops`).
void buildLoopsPipeline(mlir::OpPassManager &pm, const PipelineOptions &);
/// loops -> the llvm dialect.
void buildLLVMPipeline(mlir::OpPassManager &pm, const PipelineOptions &);

/// Registers the above as attune-optimize, attune-to-tensor, attune-to-loops
/// and attune-to-llvm for attune-opt.
void registerPipelines();

} // namespace attune

#endif // ATTUNE_PIPELINES_PIPELINES_H
