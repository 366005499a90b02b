//===- AttuneToGPU.cpp - Launches of cooperating threads --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attention.h"
#include "LinearAttention.h"

#include "attune/Conversion/Passes.h"
#include "attune/Conversion/Schedule.h"
#include "attune/TargetInfo/GpuSchedule.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_CONVERTATTUNETOGPU
#include "attune/Conversion/Passes.h.inc"

namespace {
struct ConvertAttuneToGPU final
    : impl::ConvertAttuneToGPUBase<ConvertAttuneToGPU> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa<LinearIntoOp, QuantizedLinearIntoOp, GroupedLinearIntoOp,
              NormedLinearIntoOp, ExpertTasksIntoOp>(op))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      if (op->getNumResults() != 0) {
        op->emitOpError("is not bufferized");
        return signalPassFailure();
      }
      OpBuilder builder(op);
      BlockBuilder b(builder, op->getLoc());
      LogicalResult done = success();
      if (auto tasks = dyn_cast<ExpertTasksIntoOp>(op))
        emitExpertTasks(b, tasks);
      else if (auto grouped = dyn_cast<GroupedLinearIntoOp>(op))
        done = lower(b, op, LinearKernel(b, grouped));
      else if (auto normed = dyn_cast<NormedLinearIntoOp>(op))
        done = lower(b, op, LinearKernel(b, normed));
      else if (auto quantized = dyn_cast<QuantizedLinearIntoOp>(op))
        done = lower(b, op, LinearKernel(b, quantized));
      else
        done = lower(b, op, LinearKernel(b, cast<LinearIntoOp>(op)));
      if (failed(done))
        return signalPassFailure();
      op->erase();
    }
    SmallVector<AttentionIntoOp> attentions;
    getOperation().walk([&](AttentionIntoOp op) { attentions.push_back(op); });
    for (AttentionIntoOp op : attentions) {
      if (!isa<MemRefType>(op.getDest().getType())) {
        op.emitOpError("is not bufferized");
        return signalPassFailure();
      }
      if (failed(lowerAttention(op, multiprocessors, warpgroups, tf32)))
        return signalPassFailure();
    }
    SmallVector<LinearAttentionIntoOp> sums;
    getOperation().walk([&](LinearAttentionIntoOp op) { sums.push_back(op); });
    for (LinearAttentionIntoOp op : sums) {
      if (op->getNumResults() != 0) {
        op.emitOpError("is not bufferized");
        return signalPassFailure();
      }
      if (failed(lowerLinearAttention(op, multiprocessors)))
        return signalPassFailure();
    }
  }

  /// Tiles that may compute a product of more than kFewRows rows.
  struct Tiles {
    std::optional<ProductTile> small, large;
    std::optional<WarpgroupTile> groups; ///< in place of large ones
    std::vector<PlannedRows> plans;      ///< the same, by the number of rows
  };

  /// The tiles that the chip suggests, or the one that the schedule names.
  FailureOr<Tiles> tilesFor(Operation *op, LinearKernel &kernel) {
    bool asGroups = warpgroups && kernel.fitsWarpgroups();
    ProductNumbers numbers = productNumbers(op);
    Tiles tiles;
    if (!numbers.any()) {
      // Warpgroups take the few rows of one matrix as well. In a stack each
      // matrix may have fewer rows than there are on average.
      bool alone = !kernel.tasks && !kernel.numBatches;
      if (!asGroups || !alone)
        tiles.small = kSmallTile;
      if (asGroups && kernel.bits && !alone)
        tiles.groups = groupTileOf(kernel.bits);
      else if (asGroups)
        tiles.plans = planGroups(kernel.groupProduct(), multiprocessors, alone);
      else
        tiles.large = kLargeTile;
      return tiles;
    }
    if (!kernel.fitsTensorCores())
      return op->emitError("a schedule has no tile for a product that tensor "
                           "cores cannot take");
    int64_t groupBits = !asGroups ? 0 : kernel.bits ? kernel.bits : 16;
    auto choice = scheduleProduct(numbers, bytesOf(kernel.input),
                                  bytesOf(kernel.weight), groupBits);
    if (auto *refused = std::get_if<TileRefusal>(&choice))
      return op->emitError() << refused->why;
    if (auto *groups = std::get_if<WarpgroupTile>(&choice))
      tiles.groups = *groups;
    else
      tiles.large = std::get<ProductTile>(choice);
    return tiles;
  }

  template <typename Tile>
  static void remarkTile(Operation *op, const Tile &tile, int64_t stages) {
    remark::analysis(op->getLoc(), tilingRemark(op, "linear"))
        << remark::add("blocks of {0} threads for {1} rows by {2} columns, "
                       "{3} stages",
                       tile.threads(), tile.rows, tile.columns, stages)
        << remark::metric("Rows", tile.rows)
        << remark::metric("Columns", tile.columns)
        << remark::metric("Stages", stages);
  }
  static void remarkTiles(Operation *op, LinearKernel &kernel,
                          const Tiles &tiles) {
    for (const std::optional<ProductTile> &tile : {tiles.small, tiles.large})
      if (tile)
        remarkTile(op, *tile, kernel.stagesOf(*tile));
    if (tiles.groups)
      remarkTile(op, *tiles.groups, tiles.groups->stages);
    for (const GroupPlan &plan : distinct(tiles.plans)) {
      WarpgroupTile tile = groupTileOf(plan, kernel.groupProduct().weightBits);
      remarkTile(op, tile, tile.stages);
    }
  }

  /// The kernels of these plans. Those that split the depth are one.
  static SmallVector<GroupPlan> distinct(ArrayRef<PlannedRows> plans) {
    SmallVector<GroupPlan> found;
    for (const PlannedRows &rows : plans)
      if (!llvm::any_of(found, [&](const GroupPlan &other) {
            return isSameKernel(rows.plan, other);
          }))
        found.push_back(rows.plan);
    return found;
  }
  static bool isSameKernel(const GroupPlan &a, const GroupPlan &b) {
    return a.columns == b.columns && a.rows == b.rows &&
           (a.parts > 1) == (b.parts > 1);
  }

  LogicalResult lower(BlockBuilder &b, Operation *op, LinearKernel kernel) {
    kernel.tf32 = tf32;
    kernel.multiprocessors = multiprocessors;
    kernel.dependent = dependent;
    if (kernel.norm.few > kFewRows)
      return op->emitError() << "normalises up to " << kernel.norm.few
                             << " rows, but no kernel more than " << kFewRows;
    FailureOr<Tiles> tiles = tilesFor(op, kernel);
    if (failed(tiles))
      return failure();
    if (kernel.fitsTensorCores())
      remarkTiles(op, kernel, *tiles);
    lower(b, kernel, *tiles);
    return success();
  }

  /// The number of parts for these rows and memory for their sums, or nothing
  /// if no plan splits the depth. Memory is had before the host chooses.
  static std::optional<DepthParts>
  partsOf(BlockBuilder &b, LinearKernel &kernel, const Tiles &tiles) {
    int64_t most = 1, mostRows = 0;
    for (const PlannedRows &rows : tiles.plans) {
      most = std::max(most, rows.plan.parts);
      if (rows.plan.parts > 1)
        mostRows = std::max(mostRows, rows.plan.parts * rows.rows);
    }
    if (most == 1)
      return std::nullopt;
    DepthParts parts;
    parts.count = chosen(b, kernel.numRows, tiles.plans,
                         [](const GroupPlan &plan) { return plan.parts; });
    Value rows = b.min(b.mul(kernel.numRows, most), b.index(mostRows));
    auto type = MemRefType::get(
        {ShapedType::kDynamic, kernel.panels() * kernel.parts() * 8},
        b.b.getF32Type());
    parts.sums = memref::AllocOp::create(b.b, b.loc, type, rows);
    return parts;
  }

  /// A number of the plan for so many rows.
  static Value chosen(BlockBuilder &b, Value rows, ArrayRef<PlannedRows> plans,
                      llvm::function_ref<int64_t(const GroupPlan &)> number) {
    Value found = b.index(number(plans.back().plan));
    for (const PlannedRows &some : llvm::reverse(plans.drop_back()))
      found = b.select(b.less(rows, b.index(some.rows + 1)),
                       b.index(number(some.plan)), found);
    return found;
  }

  void lower(BlockBuilder &b, LinearKernel &kernel, const Tiles &tiles) {
    Value rows = kernel.numRows;
    std::optional<DepthParts> split = partsOf(b, kernel, tiles);
    parts = split ? &*split : nullptr;
    if (kernel.tasks)
      return lowerTasks(b, kernel, tiles, rows);
    auto few = [&](BlockBuilder &b) {
      auto byFours = [&](BlockBuilder &b) { kernel.emitForFewRows(b, 4); };
      auto normedByFours = [&](BlockBuilder &b) {
        kernel.emitForFewRows(b, 4, /*normed=*/true);
      };
      int64_t normed = kernel.norm.few;
      chooseBelow(
          b, rows, 2,
          [&](BlockBuilder &b) { kernel.emitForFewRows(b, 1, normed > 0); },
          [&](BlockBuilder &b) {
            if (normed <= 1)
              byFours(b);
            else if (normed == kFewRows)
              normedByFours(b);
            else
              chooseBelow(b, rows, normed + 1, normedByFours, byFours);
          });
    };
    auto many = [&](BlockBuilder &b) {
      if (!kernel.numBatches)
        return lowerTiles(b, kernel, tiles, rows);
      lowerStack(b, kernel, tiles, b.mul(kernel.numBatches, rows), rows);
    };
    chooseBelow(b, rows, kFewRows + 1, few, many);
  }

  /// Tiles for `rows` rows in all.
  void lowerTiles(BlockBuilder &b, LinearKernel &kernel, const Tiles &tiles,
                  Value rows) {
    if (!kernel.fitsTensorCores())
      return kernel.emitForFewRows(b, 4);
    int64_t columns = kernel.width() * kernel.parts();
    auto large = [&](BlockBuilder &b) {
      if (tiles.large)
        return kernel.emitTiles(b, *tiles.large);
      if (tiles.groups)
        return kernel.emitWarpgroupTiles(b, *tiles.groups);
      lowerPlans(b, kernel, tiles.plans, rows);
    };
    if (!tiles.small)
      return large(b);
    chooseBelow(
        b, rows, rowsForLargeTiles(columns, multiprocessors),
        [&](BlockBuilder &b) { kernel.emitTiles(b, *tiles.small); }, large);
  }

  /// Each kernel of these plans, and the host's choice.
  void lowerPlans(BlockBuilder &b, LinearKernel &kernel,
                  ArrayRef<PlannedRows> plans, Value rows) {
    SmallVector<GroupPlan> kernels = distinct(plans);
    Value number = chosen(b, rows, plans, [&](const GroupPlan &plan) {
      return llvm::find_if(kernels,
                           [&](const GroupPlan &other) {
                             return isSameKernel(plan, other);
                           }) -
             kernels.begin();
    });
    lowerFrom(b, kernel, kernels, 0, number);
  }
  void lowerFrom(BlockBuilder &b, LinearKernel &kernel,
                 ArrayRef<GroupPlan> kernels, int64_t first, Value number) {
    auto emit = [&](BlockBuilder &b) {
      WarpgroupTile tile =
          groupTileOf(kernels[first], kernel.groupProduct().weightBits);
      if (kernels[first].parts == 1)
        return kernel.emitWarpgroupTiles(b, tile);
      kernel.emitWarpgroupTiles(b, tile, parts);
      kernel.emitSumOfParts(b, *parts);
    };
    if (first + 1 == int64_t(kernels.size()))
      return emit(b);
    chooseBelow(b, number, first + 1, emit, [&](BlockBuilder &b) {
      lowerFrom(b, kernel, kernels, first + 1, number);
    });
  }

  const DepthParts *parts = nullptr; ///< of the product that is lowered

  /// The same where each matrix has a part of the rows, about `each`, which
  /// have to fill more than half of a large tile.
  void lowerStack(BlockBuilder &b, LinearKernel &kernel, const Tiles &tiles,
                  Value rows, Value each) {
    Value large = b.less(b.index(kLargeTile.rows / 2), each);
    lowerTiles(b, kernel, tiles, b.select(large, rows, b.index(0)));
  }

  /// With this few rows in total, each expert gets few rows for any likely
  /// routing.
  void lowerTasks(BlockBuilder &b, LinearKernel &kernel, const Tiles &tiles,
                  Value rows) {
    chooseBelow(
        b, rows, kFewRows + 1,
        [&](BlockBuilder &b) { kernel.emitForFewRows(b, 1); },
        [&](BlockBuilder &b) {
          if (!kernel.fitsTensorCores())
            return kernel.emitForFewRows(b, 4);
          chooseBelow(
              b, rows, kFewRows * kFewRows + 1,
              [&](BlockBuilder &b) { kernel.emitForFewRows(b, 4); },
              [&](BlockBuilder &b) {
                lowerStack(b, kernel, tiles, rows,
                           b.div(rows, kernel.matrices()));
              });
        });
  }
};
} // namespace
} // namespace attune
