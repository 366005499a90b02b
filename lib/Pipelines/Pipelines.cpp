//===- Pipelines.cpp - Named orders of passes -------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Pipelines/Pipelines.h"

#include "attune/Codegen/Passes.h"
#include "attune/Conversion/MatrixTiles.h"
#include "attune/Conversion/Passes.h"
#include "attune/Pipelines/Passes.h"
#include "attune/TargetInfo/GpuTiles.h"
#include "attune/Transforms/LowRank.h"
#include "attune/Transforms/Passes.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/Transforms/Passes.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace attune {

/// Passes of plugins.
static std::vector<Insertion> &registeredInsertions() {
  static std::vector<Insertion> insertions;
  return insertions;
}

void registerInsertion(Insertion insertion) {
  registeredInsertions().push_back(std::move(insertion));
}

/// Adds what was asked for at this place.
static void insert(OpPassManager &pm, const PipelineOptions &options,
                   StringRef point) {
  auto add = [&](const std::vector<Insertion> &insertions) {
    for (const Insertion &insertion : insertions)
      if (insertion.point == point &&
          failed(parsePassPipeline(insertion.passes, pm)))
        llvm::report_fatal_error("an insertion that was not checked", false);
  };
  add(registeredInsertions());
  add(options.insertions);
}

/// For every function alone, so that threads work on several.
static void cleanUp(OpPassManager &pm, bool again = false) {
  OpPassManager &functions = pm.nest<func::FuncOp>();
  functions.addPass(createCanonicalizerPass());
  functions.addPass(createCSEPass());
  if (again)
    functions.addPass(createCanonicalizerPass());
}

void buildEntriesPipeline(OpPassManager &pm, const PipelineOptions &options) {
  if (options.target.tilesInParallel() || options.mesh.tp > 1)
    pm.addPass(createChooseCandidates());
}

void buildOptimizePipeline(OpPassManager &pm, const PipelineOptions &options) {
  insert(pm, options, "after-import");
  if (!options.pruneHeads.empty()) {
    PruneHeadsOptions heads;
    heads.rules.assign(options.pruneHeads.begin(), options.pruneHeads.end());
    pm.addPass(createPruneHeads(heads));
  }
  if (options.mesh.ranks() > 1) {
    ShardOptions shard;
    shard.tp = options.mesh.tp;
    shard.ep = options.mesh.ep;
    pm.addPass(createShard(shard));
  }
  if (options.fusion == FusionMode::Auto) {
    FuseAttentionOptions fuse;
    fuse.explainFusion = options.explainFusion;
    pm.addPass(createFuseAttention(fuse));
  } else {
    UnfuseAttentionOptions unfuse;
    unfuse.explainFusion = options.explainFusion;
    pm.addPass(createUnfuseAttention(unfuse));
  }
  if (options.mesh.sp > 1) {
    ShardPositionsOptions positions;
    positions.sp = options.mesh.sp;
    pm.addPass(createShardPositions(positions));
  }
  insert(pm, options, "after-fusion");
  pm.addPass(createDecomposeFFN());
  pm.addPass(createDecomposeRecurrent());
  if (!options.adapters.empty()) {
    LoraBranchesOptions branches;
    branches.names.assign(options.adapters.begin(), options.adapters.end());
    branches.ranks.assign(options.adapterRanks.begin(),
                          options.adapterRanks.end());
    pm.addPass(createLoraBranches(branches));
  }
  if (options.tapInputs) {
    TapInputsOptions taps;
    taps.match.assign(options.tapInputs->begin(), options.tapInputs->end());
    pm.addPass(createTapInputs(taps));
  }
  if (!options.lowRank.empty()) {
    LowRankOptions lowRank;
    lowRank.rules.assign(options.lowRank.begin(), options.lowRank.end());
    pm.addPass(createLowRank(lowRank, options.ranks));
  }
  if (!options.quantize.empty()) {
    QuantizeOptions quantize;
    quantize.rules.assign(options.quantize.begin(), options.quantize.end());
    // A GPU's kernels multiply floats by numbers in few bits.
    quantize.exactActivations =
        options.exactActivations || options.target.tilesInParallel();
    pm.addPass(createQuantize(quantize));
  }
  // A GPU's products take rows as they are.
  if (options.fusion == FusionMode::Auto && !options.target.tilesInParallel()) {
    FuseNormsOptions norms;
    norms.wayBytes = options.target.sharesWeights
                         ? options.target.getWayBytes()
                         : options.target.getCrowdedWayBytes();
    pm.addPass(createFuseNorms(norms));
  }
  PackWeightsOptions pack;
  pack.pairs = options.target.keepsPairs();
  pack.wideInputs = pack.pairs && !options.target.multipliesPairs();
  if (options.target.multipliesBf16()) {
    NarrowActivationsOptions narrow;
    narrow.tensorCores = options.target.hasTensorCores();
    narrow.exactActivations = options.exactActivations;
    pm.addPass(createNarrowActivations(narrow));
  }
  pack.panelWidth = options.target.getTileColumns();
  pm.addPass(createPackWeights(pack));
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  insert(pm, options, "after-optimize");
}

/// Tile ops become vector code.
static void expandTiles(OpPassManager &pm, const TargetDescription &target) {
  ConvertAttuneOnlineToVectorOptions online;
  online.lanes = target.getTileColumns();
  online.rows = target.getTileRows();
  online.pairs = target.multipliesPairs() && !target.slowPairs;
  online.matrix = target.tilesPairs();
  online.valueBytes = target.getValueBytes();
  online.fetchBytes = target.getFetchBytes();
  online.nearBytes = target.getNearBytes();
  online.unrolled = target.getUnrolled();
  pm.addNestedPass<func::FuncOp>(createConvertAttuneOnlineToVector(online));
  ConvertAttuneProductToVectorOptions product;
  product.fetchSteps = target.getFetchSteps();
  product.streamBytes = target.streamBytes;
  product.narrowStreamBytes = target.narrowStreamBytes;
  product.integerLanes = target.getLanes();
  product.byteProducts = target.byteProducts;
  product.pairProducts = target.multipliesPairs();
  product.matrixRows = target.getMatrixRows();
  product.matrixQuads = target.byteTiles;
  product.matrixDepth = target.getMatrixDepth();
  product.matrixBytes = target.getMatrixBytes();
  pm.addNestedPass<func::FuncOp>(createConvertAttuneProductToVector(product));
  if (target.getMatrixRows() > 0)
    pm.addPass(createConvertAttuneToAMX());
}

void buildTensorPipeline(OpPassManager &pm, const PipelineOptions &options) {
  const TargetDescription &target = options.target;
  // Sizes in terms of the functions' arguments, before ops turn into loops.
  pm.addPass(memref::createResolveRankedShapeTypeResultDimsPass());
  insert(pm, options, "before-tiling");
  pm.addPass(createNameKernels());
  if (options.fusion == FusionMode::Auto) {
    ConvertAttuneAttentionToOnlineOptions blocks;
    blocks.queryBlock = target.getQueryBlock();
    blocks.queryBytes = target.getQueryBytes();
    blocks.keyBlock = target.getKeyBlock();
    blocks.keyBytes = target.getKeyBytes();
    blocks.rows = target.getTileRows();
    if (target.tilesPairs())
      blocks.matrixRows = kMatrixBlock * kMatrixRows;
    blocks.threads = target.threads;
    blocks.partBytes = target.getPartBytes();
    blocks.cacheBytes = target.level2Bytes;
    blocks.lineCycles = target.lineCycles;
    blocks.multiplyAdds = target.getLanes() * target.fmaPorts;
    blocks.cooperative = target.tilesInParallel();
    blocks.warpgroups = hasWarpgroups(target.gpu);
    blocks.explainFusion = options.explainFusion;
    pm.addNestedPass<func::FuncOp>(
        createConvertAttuneAttentionToOnline(blocks));
  }
  if (options.fusion == FusionMode::Off || target.tilesInParallel())
    pm.addPass(createConvertAttuneIndexToLinalg());
  // Lowers the rest of the ladder: all of it on the reference path.
  pm.addPass(createConvertAttuneLadderToLinalg());
  ConvertAttuneToVectorOptions vector;
  vector.lanes = target.getTileColumns();
  vector.rows = target.getTileRows();
  vector.panelBytes = target.getPanelBytes();
  vector.tileBytes = target.getTileBytes();
  vector.wayBytes = target.getCrowdedWayBytes();
  vector.wideTiles = target.hasWideTiles();
  vector.fetchSteps = target.getFetchSteps();
  vector.streamBytes = target.streamBytes;
  vector.narrowStreamBytes = target.narrowStreamBytes;
  vector.farLevel3 = target.farLevel3;
  vector.threads = target.threads;
  vector.cooperative = target.tilesInParallel();
  if (target.tilesInParallel() && !options.separateNorms)
    vector.normRows = kFewRows;
  vector.matrixRows = target.getMatrixRows();
  vector.matrixQuads = target.byteTiles;
  vector.integerLanes = target.getLanes();
  vector.byteProducts = target.byteProducts;
  pm.addNestedPass<func::FuncOp>(createConvertAttuneToVector(vector));
  if (!target.tilesInParallel()) {
    PrefetchTilesOptions prefetch;
    prefetch.panelBytes = target.getPanelBytes();
    pm.addNestedPass<func::FuncOp>(createPrefetchTiles(prefetch));
  }
  // Sums of whole tensors, which some descriptions write (peri-norm).
  pm.addPass(createConvertElementwiseToLinalgPass());
  pm.addPass(memref::createResolveRankedShapeTypeResultDimsPass());
  cleanUp(pm);
  insert(pm, options, "after-tiling");
}

void buildKernelsPipeline(OpPassManager &pm, const PipelineOptions &options) {
  pm.addPass(createDestinationPassing());
  pm.addPass(createConvertAttuneWeightsToMemRef());
  cleanUp(pm);
  pm.addPass(bufferization::createEmptyTensorToAllocTensorPass());
  insert(pm, options, "before-bufferization");
  bufferization::OneShotBufferizePassOptions bufferize;
  bufferize.bufferizeFunctionBoundaries = true;
  bufferize.functionBoundaryTypeConversion =
      bufferization::LayoutMapOption::IdentityLayoutMap;
  pm.addPass(bufferization::createOneShotBufferizePass(bufferize));
  pm.addPass(createFoldViews());
  // Twice: views must be merged before a copy is seen to be onto itself.
  pm.addNestedPass<func::FuncOp>(createCSEPass());
  cleanUp(pm, /*again=*/true);
  pm.addPass(bufferization::createDropEquivalentBufferResultsPass());
  pm.addNestedPass<func::FuncOp>(createCanonicalizerPass());
  pm.addPass(createFoldViews());
  pm.addNestedPass<func::FuncOp>(createCanonicalizerPass());
  insert(pm, options, "after-bufferization");
  // A GPU's kernels are outlined when blocks of threads have their work.
  if (options.target.tilesInParallel()) {
    pm.addPass(createConvertAttuneViewsToMemRef());
    pm.addPass(createSplitExchanges());
  }
  options.backend->addBufferPasses(pm, options.target);
  pm.addPass(createCopiesToLoops());
  pm.addNestedPass<func::FuncOp>(createConvertLinalgToParallelLoopsPass());
  pm.addPass(createHoistBuffers());
  if (!options.target.tilesInParallel())
    pm.addPass(createOutlineKernels());
  insert(pm, options, "after-outlining");
}

void buildFramesPipeline(OpPassManager &pm, const PipelineOptions &) {
  pm.addPass(createPlanFrames());
}

void buildVectorPipeline(OpPassManager &pm, const PipelineOptions &options) {
  if (!options.target.tilesInParallel())
    pm.addPass(createConvertAttuneViewsToMemRef());
  ConvertAttuneMeshToCallsOptions mesh;
  mesh.device = options.target.tilesInParallel();
  pm.addPass(createConvertAttuneMeshToCalls(mesh));
  if (!options.target.tilesInParallel())
    expandTiles(pm, options.target);
  options.backend->addThreadPasses(pm, options.target);
  // Kernels of a GPU are in modules of their own here.
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createLoopInvariantCodeMotionPass());
  pm.addPass(createCSEPass());
  if (!options.target.tilesInParallel())
    pm.addPass(createOutlineMicrokernels());
  insert(pm, options, "after-threads");
}

void buildLoopsPipeline(OpPassManager &pm, const PipelineOptions &options) {
  buildKernelsPipeline(pm, options);
  buildFramesPipeline(pm, options);
}

void buildLLVMPipeline(OpPassManager &pm, const PipelineOptions &options) {
  ApproximateMathOptions math;
  math.scales = options.target.scalesPowers();
  pm.addNestedPass<func::FuncOp>(createApproximateMath(math));
  options.backend->addCodePasses(pm, options.target);
  OpPassManager &functions = pm.nest<func::FuncOp>();
  functions.addPass(memref::createExpandStridedMetadataPass());
  functions.addPass(createLowerAffinePass());
  functions.addPass(createCSEPass());
  functions.addPass(createLoopInvariantCodeMotionPass());
  functions.addPass(createSCFToControlFlowPass());
  ConvertVectorToLLVMPassOptions vectors;
  vectors.x86Vector =
      options.target.multipliesPairs() || options.target.scalesPowers();
  functions.addPass(createConvertVectorToLLVMPass(vectors));
  // CPUs without arithmetic in bf16 would call a function for each rounding.
  arith::ArithExpandOpsPassOptions expand;
  expand.includeBf16 = !options.target.multipliesBf16();
  functions.addPass(arith::createArithExpandOpsPass(expand));
  functions.addPass(createConvertMathToLLVMPass());
  pm.addPass(createFinalizeMemRefToLLVMConversionPass());
  OpPassManager &addressed = pm.nest<func::FuncOp>();
  addressed.addPass(createConvertIndexToLLVMPass());
  addressed.addPass(createArithToLLVMConversionPass());
  pm.addPass(createConvertFuncToLLVMPass());
  if (options.target.getMatrixRows() > 0) {
    // Tiles are carried from block to block.
    ConvertToLLVMPassOptions tiles;
    tiles.filterDialects = {"amx", "cf"};
    pm.addPass(createConvertToLLVMPass(tiles));
  } else {
    pm.addPass(createConvertControlFlowToLLVMPass());
  }
  OpPassManager &lowered = pm.nest<LLVM::LLVMFuncOp>();
  lowered.addPass(createReconcileUnrealizedCastsPass());
  lowered.addPass(createCanonicalizerPass());
  lowered.addPass(createLocateCalls());
  // Operations know their places in the description: with a scope these become
  // line tables, and profilers and debuggers speak of the description.
  LLVM::DIScopeForLLVMFuncOpPassOptions scopes;
  scopes.emissionKind = LLVM::DIEmissionKind::LineTablesOnly;
  pm.addPass(LLVM::createDIScopeForLLVMFuncOpPass(scopes));
}

ArrayRef<StringRef> getInsertionPoints() {
  static const StringRef points[] = {
      "after-import",        "after-fusion",    "after-optimize",
      "before-tiling",       "after-tiling",    "before-bufferization",
      "after-bufferization", "after-outlining", "after-threads"};
  return points;
}

std::optional<Insertion> parseInsertion(StringRef text, std::string &problem) {
  auto [point, passes] = text.split(':');
  if (!llvm::is_contained(getInsertionPoints(), point) || passes.empty()) {
    problem = "'" + text.str() + "' is no POINT:PASSES; points are " +
              llvm::join(getInsertionPoints(), ", ");
    return std::nullopt;
  }
  OpPassManager scratch(ModuleOp::getOperationName(),
                        OpPassManager::Nesting::Implicit);
  llvm::raw_string_ostream stream(problem);
  if (failed(parsePassPipeline(passes, scratch, stream)))
    return std::nullopt;
  return Insertion{point.str(), passes.str()};
}

namespace {
/// attune-opt gives a pipeline its target by name.
struct TextOptions : PassPipelineOptions<TextOptions> {
  Option<std::string> target{
      *this, "target",
      llvm::cl::desc("Backend: cpu, cuda or one of a plugin; by default cuda "
                     "if there is a gpu, else cpu"),
      llvm::cl::init("")};
  Option<std::string> cpu{*this, "cpu",
                          llvm::cl::desc("CPU to choose tile sizes for; by "
                                         "default x86-64-v3 where it is one"),
                          llvm::cl::init("")};
  Option<std::string> gpu{
      *this, "gpu", llvm::cl::desc("GPU to make kernels for, such as sm_80"),
      llvm::cl::init("")};
  Option<bool> fuse{*this, "fuse", llvm::cl::desc("Fuse the attention ladder"),
                    llvm::cl::init(true)};
  ListOption<std::string> quantize{
      *this, "quantize",
      llvm::cl::desc(
          "Keep matrices in few bits: the rules of attune-quantize")};
  Option<bool> exactActivations{
      *this, "exact-activations",
      llvm::cl::desc("Do not round what these multiply to bytes"),
      llvm::cl::init(false)};
  ListOption<std::string> lowRank{
      *this, "low-rank",
      llvm::cl::desc("Keep matrices as products of two thin ones: the rules of "
                     "attune-low-rank, with ranks")};
  ListOption<std::string> insertions{
      *this, "insert", llvm::cl::desc("Passes at a named point: POINT:PASSES")};

  PipelineOptions get() const {
    PipelineOptions options;
    options.fusion = fuse ? FusionMode::Auto : FusionMode::Off;
    options.quantize.assign(quantize.begin(), quantize.end());
    options.exactActivations = exactActivations;
    options.lowRank.assign(lowRank.begin(), lowRank.end());
    auto refuse = [](const llvm::Twine &problem) {
      llvm::report_fatal_error(problem, false);
    };
    std::string backend = target;
    if (backend.empty())
      backend = gpu.empty() ? "cpu" : "cuda";
    options.backend = findBackend(backend);
    if (!options.backend)
      refuse("unknown target " + backend);
    std::vector<std::string> gpus = options.backend->listGpus();
    std::string chip = gpu;
    if (chip.empty() && !gpus.empty())
      chip = gpus.front();
    if (!chip.empty() && !llvm::is_contained(gpus, chip))
      refuse("unknown gpu " + chip);
    std::string name = cpu;
    auto described =
        options.backend->describe(name.empty() ? "x86-64-v3" : name, chip);
    if (!described && name.empty())
      described = options.backend->describe("native", chip);
    if (!described)
      refuse("unknown cpu " + llvm::Twine(cpu));
    options.target = *described;
    for (const std::string &text : insertions) {
      std::string problem;
      if (auto insertion = parseInsertion(text, problem))
        options.insertions.push_back(*insertion);
      else
        refuse(problem);
    }
    return options;
  }
};

/// `from`: the pipeline whose result this one begins with; empty: any IR.
void registerOne(StringRef name, StringRef description,
                 void (*build)(OpPassManager &, const PipelineOptions &),
                 StringRef from = "") {
  PassPipelineRegistration<TextOptions>(
      name, description,
      [build, from](OpPassManager &pm, const TextOptions &text) {
        if (!from.empty()) {
          ExpectStageOptions expected;
          expected.from = from.str();
          pm.addPass(createExpectStage(expected));
        }
        build(pm, text.get());
      });
}
} // namespace

void registerPipelines() {
  registerOne("attune-entries",
              "attune as imported with what the target adds to the entries",
              buildEntriesPipeline);
  registerOne("attune-optimize",
              "attune as imported to attune as optimised: fusion, panels",
              buildOptimizePipeline);
  registerOne("attune-to-tensor",
              "attune to tiled loops and vectors on tensors",
              buildTensorPipeline);
  registerOne("attune-to-kernels", "tensors to memory and calls of kernels",
              buildKernelsPipeline, "attune-to-tensor");
  registerOne("attune-to-loops",
              "tensors to memory: calls of kernels, loops over tiles, frames",
              buildLoopsPipeline, "attune-to-tensor");
  registerOne("attune-to-vector",
              "tiles to vector code, parallel loops to each thread's share",
              buildVectorPipeline, "attune-to-loops");
  registerOne("attune-to-llvm", "vectors to the llvm dialect",
              buildLLVMPipeline, "attune-to-vector");
}

} // namespace attune
