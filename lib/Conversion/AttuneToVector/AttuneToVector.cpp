//===- AttuneToVector.cpp - The conversion pass -----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attention/Index.h"
#include "Patterns.h"
#include "Warps/NormsOfFew.h"

#include "Attune/AttuneIndexOps.h"
#include "attune/Conversion/Passes.h"
#include "attune/Conversion/Schedule.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <numeric>

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_CONVERTATTUNETOVECTOR
#include "attune/Conversion/Passes.h.inc"

/// Kernels are made for the widths of a model; lengths may be open.
static LogicalResult checkWidths(Operation *root) {
  WalkResult result = root->walk([](Operation *op) {
    if (!isa<LinearOp, LayerNormOp, RMSNormOp>(op))
      return WalkResult::advance();
    auto open = [](Value value) {
      auto type = dyn_cast<RankedTensorType>(value.getType());
      return type && ShapedType::isDynamic(type.getShape().back());
    };
    if (!llvm::any_of(op->getOperands(), open) &&
        !llvm::any_of(op->getResults(), open))
      return WalkResult::advance();
    op->emitOpError("needs static widths to become loops");
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// Whether passes before or behind this one take the op: the ladder,
/// feed-forward layers in one, weights, views and what is written in place.
static bool isTakenElsewhere(Operation *op) {
  auto isTensor = [](Type type) { return isa<TensorType>(type); };
  return !isa_and_present<AttuneDialect>(op->getDialect()) ||
         isa<bufferization::BufferizableOpInterface, WeightGetOp, WeightViewOp,
             FFNOp, GatedFFNOp, AttentionOp, SimilarityOp, MaskScoresOp,
             SoftmaxOp, LogSumExpOp, WeightedSumOp, IndexScoresOp,
             ChooseKeysOp>(op) ||
         !(llvm::any_of(op->getOperandTypes(), isTensor) ||
           llvm::any_of(op->getResultTypes(), isTensor));
}

namespace {
/// Keeps what patterns say where they do not match.
struct Reasons final : RewriterBase::Listener {
  void
  notifyMatchFailure(Location,
                     function_ref<void(Diagnostic &)> reasonCallback) override {
    Diagnostic reason(UnknownLoc::get(context), DiagnosticSeverity::Note);
    reasonCallback(reason);
    if (std::string text = reason.str(); !llvm::is_contained(texts, text))
      texts.push_back(std::move(text));
  }
  explicit Reasons(MLIRContext *context) : context(context) {}

  MLIRContext *context;
  std::vector<std::string> texts;
};
} // namespace

/// An op that no pattern took is an error of a pass far behind this one, unless
/// another pass takes it before: here it is named, with the reasons.
static void nameThoseLeft(Operation *root,
                          const FrozenRewritePatternSet &layers,
                          const FrozenRewritePatternSet &patterns) {
  SmallVector<Operation *> left;
  root->walk([&](Operation *op) {
    if (!isTakenElsewhere(op))
      left.push_back(op);
  });
  for (Operation *op : left) {
    // They are tried again for what they say.
    Reasons reasons(op->getContext());
    GreedyRewriteConfig config;
    config.setListener(&reasons).setStrictness(
        GreedyRewriteStrictness::ExistingOps);
    InFlightDiagnostic diag = op->emitWarning()
                              << "'" << op->getName()
                              << "' op does not become vector code: no pattern "
                                 "takes it";
    for (const FrozenRewritePatternSet *each : {&layers, &patterns})
      (void)applyOpPatternsGreedily({op}, *each, config);
    for (const std::string &reason : reasons.texts)
      diag.attachNote() << reason;
  }
}

namespace {
struct ConvertAttuneToVector final
    : impl::ConvertAttuneToVectorBase<ConvertAttuneToVector> {
  using Base::Base;

  void runOnOperation() override {
    if (lanes < 1 || rows < 1 || panelBytes < 1 || tileBytes < 1) {
      getOperation().emitError(
          "lanes, rows, panel-bytes and tile-bytes must be positive");
      return signalPassFailure();
    }
    if (wayBytes < 0) {
      getOperation().emitError("way-bytes must be 0 or positive");
      return signalPassFailure();
    }
    if (fetchSteps < 1 || threads < 1) {
      getOperation().emitError("fetch-steps and threads must be positive");
      return signalPassFailure();
    }
    if (streamBytes < 0 || narrowStreamBytes < 0) {
      getOperation().emitError() << (streamBytes < 0 ? "" : "narrow-")
                                 << "stream-bytes must be 0 or positive";
      return signalPassFailure();
    }
    if (matrixRows < 0) {
      getOperation().emitError("matrix-rows must be 0 or positive");
      return signalPassFailure();
    }
    if (failed(checkSchedule(getOperation(), cooperative)))
      return signalPassFailure();
    if (normRows < 0 || (normRows > 0 && !cooperative)) {
      getOperation().emitError("norm-rows must be positive, of a GPU's "
                               "cooperating threads, or 0");
      return signalPassFailure();
    }
    if (integerLanes < 1) {
      getOperation().emitError("integer-lanes must be positive");
      return signalPassFailure();
    }
    VectorLowering lowering;
    lowering.lanes = lanes;
    lowering.rows = rows;
    lowering.panelBytes = panelBytes;
    lowering.tileBytes = tileBytes;
    lowering.wayBytes = wayBytes;
    lowering.wideTiles = wideTiles;
    lowering.fetchSteps = fetchSteps;
    lowering.streamBytes = streamBytes;
    lowering.narrowStreamBytes = narrowStreamBytes;
    lowering.farLevel3 = farLevel3;
    lowering.threads = threads;
    lowering.cooperative = cooperative;
    lowering.matrixRows = matrixRows;
    lowering.matrixQuads = matrixQuads;
    lowering.integerLanes = std::gcd<int64_t, int64_t>(lanes, integerLanes);
    lowering.byteProducts = byteProducts;
    if (failed(checkWidths(getOperation())))
      return signalPassFailure();
    if (normRows > 0)
      markNormsOfFew(getOperation(), normRows);
    // Layers first: they take along the ops on heads behind them.
    RewritePatternSet ofLayers(&getContext());
    populateLinearPatterns(ofLayers, lowering);
    FrozenRewritePatternSet layers(std::move(ofLayers));
    if (failed(applyPatternsGreedily(getOperation(), layers)))
      return signalPassFailure();
    if (normRows > 0)
      lowerNormsOfFew(getOperation(), lowering);
    RewritePatternSet patterns(&getContext());
    populateActivationPatterns(patterns, lowering);
    populateAttentionWeightsPatterns(patterns, lowering);
    if (cooperative) {
      populateGroupedProductPatterns(patterns, lowering);
      populateRouterWarpPatterns(patterns);
    } else {
      populateExpertPatterns(patterns, lowering);
    }
    populateRouterPatterns(patterns, lowering);
    populateLossPatterns(patterns, lowering);
    populateModulatePatterns(patterns, lowering);
    populateNormPatterns(patterns, lowering);
    populateEmbeddingPatterns(patterns, lowering);
    populateHeadPatterns(patterns, lowering);
    populateIndexPatterns(patterns, lowering);
    populateQuantizationPatterns(patterns, lowering);
    populateRecurrentPatterns(patterns, lowering);
    populateDeltaRulePatterns(patterns, lowering);
    populateGeneralizedDeltaRulePatterns(patterns, lowering);
    populateStateSpacePatterns(patterns, lowering);
    populateLinearAttentionPatterns(patterns, lowering);
    populateRelativeBiasPatterns(patterns);
    populateTokenPatterns(patterns, lowering);
    populateTopKPatterns(patterns, lowering);
    FrozenRewritePatternSet others(std::move(patterns));
    if (failed(applyPatternsGreedily(getOperation(), others)))
      return signalPassFailure();
    nameThoseLeft(getOperation(), layers, others);
  }
};
} // namespace
} // namespace attune
