//===- WarpgroupTiles.cpp - Products that copy and multiply apart -*- C++ -*-=//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Three warpgroups to a block. One thread of the first starts copies of tiles
// by tensor maps and gives its registers away; the two others multiply 64 rows
// each by wgmma, whose operands are read from shared memory. Between them is a
// ring of stages, each with two mbarriers: `full` counts the bytes that have
// come, `empty` the warps that are done.
//
// A stage holds 64 of the depth. Rows of activations have 128 bytes, swizzled
// as the tensor map says. Panels are [depth][8] of 16 bits, which is a column
// of the 8 x 8 matrices that wgmma is made of: no shuffle is needed. The copy
// fills elements outside a matrix with zeros.
//
// On chips whose kernels start before the last one ends, the copying thread
// starts with the weights of all stages, and only then waits for the kernels
// that make the rows.
//
// A product is under way while the next one is started: the stage before is
// given back one iteration late.
//
// Where tiles are too few for the chip, blocks of their own have parts of the
// depth. Their sums go to memory, and a kernel for the numbers of the result
// adds them up in order.
//
// Stacks of matrices lie one behind the other in the same map: a tile's
// elements beyond its own matrix or rows are computed and not stored. No map
// can fetch rows that are named one by one: all threads of the first warpgroup
// copy them, and signal the others a few stages later, when they have arrived.

#include "WarpgroupTiles.h"

#include "attune/TargetInfo/GpuFragments.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace attune {

GroupProduct LinearKernel::groupProduct() {
  return {width() * parts(), depth(), bits ? bits : 16, group, zeros};
}

bool LinearKernel::fitsWarpgroups() {
  // A tensor map takes rows at multiples of 16 bytes; one has all panels.
  auto panels = cast<MemRefType>(weight.getType());
  // Few bits are widened where they are multiplied, to the type of the rows; 32
  // columns at least share a scale, and half or all of a stage does.
  bool fits = bits ? elementOf(input).getIntOrFloatBitWidth() == 16 &&
                         (group == 32 || group % 64 == 0)
                   : !elementOf(weight).isF32() &&
                         elementOf(weight) == elementOf(input);
  return fits && fitsTensorCores() && alignmentOfRows(input) % 16 == 0 &&
         panels.areTrailingDimsContiguous(panels.getRank());
}

void TileOfBlock::store(
    BlockBuilder &b, Value lane, Value row, Value panel, int64_t panels,
    llvm::function_ref<Value(BlockBuilder &, int64_t, int64_t)> pairOf) {
  if (!parts)
    return kernel.storeSums(b, group, lane, row, panel, panels, pairOf);
  Value stored = b.index(kernel.panels() * kernel.parts());
  Value column = placeInSum(Computed(b, lane), 0).column;
  for (int64_t half = 0; half < 2; ++half) {
    Value here = b.add(row, placeInSum(Computed(b, lane), half).row);
    b.when(b.less(here, group.end), [&](BlockBuilder &b) {
      Value to = b.add(b.mul(part, kernel.numRows), here);
      for (int64_t n = 0; n < panels; ++n) {
        Value number = b.add(panel, b.index(n));
        b.when(b.less(number, stored), [&](BlockBuilder &b) {
          b.storeAt(pairOf(b, n, half), parts->sums,
                    {to, b.add(b.mul(number, 8), column)}, 8);
        });
      }
    });
  }
}

namespace {

/// Registers of a thread that copies and of one that multiplies; in all they
/// are those of three warpgroups of 168.
constexpr uint32_t kFewRegisters = 40, kManyRegisters = 232;

class WarpgroupTiles : TileOfBlock {
public:
  WarpgroupTiles(LinearKernel &kernel, KernelBuilder &k,
                 const WarpgroupTile &tile, const DepthParts *parts)
      : TileOfBlock(kernel, tile, parts), b(k) {}

  void emit() {
    OpBuilder::InsertionGuard guard(b.b);
    int64_t panels = kernel.panels() * kernel.parts();
    depth = kernel.depth();
    steps = (depth + tile.depth - 1) / tile.depth;
    auto [inputStart, inputStride] = rowsInMemory(kernel.input);
    rowStart = inputStart;
    rowStride = inputStride;
    Value rowMap;
    if (!kernel.from) {
      MappedMatrix rows = {rowStart,  2,  depth, b.sizeOf(kernel.input, 0),
                           rowStride, {}, {},    {},
                           {}};
      rowMap = tensorMap(b, rows, {tile.depth, tile.rows, /*swizzle=*/true});
    }
    // 256 elements are the most of a box: panels count by eight bytes.
    MappedMatrix stack = {rowsInMemory(kernel.weight).first,
                          8,
                          panelBytes() / 8,
                          b.index(kernel.matrices() * panels),
                          b.index(panelBytes()),
                          {},
                          {},
                          {},
                          {}};
    Value panelMap = tensorMap(
        b, stack, {unitsOfStage(), tile.columns / 8, /*swizzle=*/false});
    Value blockRows = kernel.countGroups(b, tile.rows);
    int64_t columns = (panels * 8 + tile.columns - 1) / tile.columns;
    Value blocks = b.mul(blockRows, columns), stepsOfPart;
    if (parts) {
      // Whole groups of columns that share scales.
      int64_t unit = kernel.groupProduct().stagesOfGroup();
      Value last = b.index((steps + unit - 1) / unit - 1);
      stepsOfPart = b.mul(b.div(b.add(last, parts->count), parts->count), unit);
    }
    BlockLaunch launch(b, parts ? b.mul(blocks, parts->count) : blocks,
                       tile.threads(), tile.sharedBytes());
    thread = launch.thread;

    Value block = launch.block;
    firstStep = b.index(0);
    numSteps = b.index(steps);
    if (parts) {
      part = b.div(block, blocks);
      block = b.rem(block, blocks);
      firstStep = b.mul(part, stepsOfPart);
      numSteps = b.min(stepsOfPart, b.sub(numSteps, firstStep));
    }
    TilePlace at(b, block, blockRows, columns);
    group = kernel.groupAt(b, at.row, tile.rows);
    firstPanel = b.mul(at.column, tile.columns / 8);
    panelInMap =
        group.part ? b.add(b.mul(group.part, panels), firstPanel) : firstPanel;
    if (!kernel.tasks)
      return share(rowMap, panelMap);
    b.when(b.less(group.first, group.end),
           [&](BlockBuilder &) { share(rowMap, panelMap); });
  }

private:
  /// Bytes of a panel, and the eights of bytes of one that a stage has.
  int64_t panelBytes() const { return depth * tile.weightBits; }
  int64_t unitsOfStage() const { return tile.depth * tile.weightBits / 8; }

  /// Where the first row starts, and the bytes between rows: both may be those
  /// of a slice. On the host.
  std::pair<Value, Value> rowsInMemory(Value matrix) {
    auto data = memref::ExtractStridedMetadataOp::create(b.b, b.loc, matrix);
    Value start =
        memref::ExtractAlignedPointerAsIndexOp::create(b.b, b.loc, matrix);
    int64_t bytes = bytesOf(matrix);
    return {b.add(start, b.mul(data.getOffset(), bytes)),
            b.mul(data.getStrides()[0], bytes)};
  }

  /// Divides the work among the warpgroups of a block.
  void share(Value rowMap, Value panelMap) {
    shared = dynamicShared(b);
    ring = StageRing(b.add(shared, b.index(tile.stages * tile.stageBytes())),
                     tile.stages);

    // A warpgroup whose rows are all behind the end has nothing to do.
    Value rows = b.min(b.sub(group.end, group.first), b.index(tile.rows));
    b.when(b.less(thread, b.index(1)), [&](BlockBuilder &b) {
      Value warps = kernel.bits
                        ? i32(b, 8)
                        : toI32(b, b.mul(b.ceilDiv(rows, kRowsOfGroup), 4));
      Value copying = i32(b, kernel.from ? 1 + kGroup : 1);
      ring.init(b, copying, warps);
      NVVM::FenceMbarrierInitOp::create(b.b, b.loc);
    });
    b.barrier();
    auto role = scf::IfOp::create(b.b, b.loc, b.less(thread, b.index(kGroup)),
                                  /*withElseRegion=*/true);
    b.b.setInsertionPointToStart(role.thenBlock());
    setRegisters(b, kFewRegisters, /*more=*/false);
    if (kernel.from)
      gather(b, panelMap);
    else
      b.when(b.less(thread, b.index(1)),
             [&](BlockBuilder &b) { copy(b, rowMap, panelMap); });
    b.b.setInsertionPointToStart(role.elseBlock());
    setRegisters(b, kManyRegisters, /*more=*/true);
    if (isEarly())
      awaitKernels(b);
    if (kernel.bits)
      return multiplyQuantized(b, *this);
    Value consumer = b.sub(b.div(thread, kGroup), b.index(1));
    Value firstRow = b.mul(consumer, kRowsOfGroup);
    b.when(b.less(firstRow, rows),
           [&](BlockBuilder &) { multiply(consumer, firstRow); });
  }

  //===--------------------------------------------------------------------===//
  // The two roles
  //===--------------------------------------------------------------------===//

  /// Whether the first weights are on their way before the kernels that make
  /// the rows are done. What a list of tasks says is theirs as well.
  bool isEarly() const { return kernel.dependent && !kernel.tasks; }
  static void awaitKernels(BlockBuilder &b) {
    NVVM::GriddepcontrolOp::create(b.b, b.loc, NVVM::GridDepActionKind::wait);
  }

  void copy(BlockBuilder &b, Value rowMap, Value panelMap) {
    Value rows = acquireMap(b, rowMap), panels = acquireMap(b, panelMap);
    auto copyRows = [&](BlockBuilder &b, Value i, Value stage, Value barrier) {
      Value step = b.add(firstStep, i);
      copyBox(b, rowsOf(b, stage), rows, {b.mul(step, tile.depth), group.first},
              barrier);
    };
    auto forSteps = [&](Value from, Value to,
                        llvm::function_ref<void(BlockBuilder &, Value)> body) {
      b.forLoop(from, to, 1, {}, [&](KernelBuilder &k, Value i, ValueRange) {
        BlockBuilder b(k);
        body(b, i);
        return KernelBuilder::Values();
      });
    };
    Value first = b.index(0);
    if (isEarly()) {
      Value none = first;
      first = b.min(b.index(tile.stages), numSteps);
      forSteps(none, first, [&](BlockBuilder &b, Value i) {
        Value barrier = ring.expect(b, i, tile.stageBytes());
        copyPanels(b, b.add(firstStep, i), i, panels, barrier);
      });
      awaitKernels(b);
      forSteps(none, first, [&](BlockBuilder &b, Value i) {
        copyRows(b, i, i, ring.full(b, i));
      });
    }
    forSteps(first, numSteps, [&](BlockBuilder &b, Value i) {
      Value stage = ring.awaitEmpty(b, i);
      Value barrier = ring.expect(b, i, tile.stageBytes());
      copyRows(b, i, stage, barrier);
      copyPanels(b, b.add(firstStep, i), stage, panels, barrier);
    });
  }

  /// The same of rows that are named one by one: a thread copies 16 bytes of
  /// every sixteenth row.
  void gather(BlockBuilder &b, Value panelMap) {
    constexpr int64_t chunks = 8, lines = kGroup / chunks;
    // Stages under way: one more is being waited for, and one is given back an
    // iteration late.
    const int64_t ahead = tile.stages - 2;
    Value chunk = b.rem(thread, chunks), line = b.div(thread, chunks);
    Value start = b.add(rowStart, b.mul(chunk, 16));
    Value last = b.sub(group.end, b.index(1));
    SmallVector<Value> sources;
    for (int64_t row = 0; row < tile.rows; row += lines) {
      Value here = b.min(b.add(group.first, b.add(line, b.index(row))), last);
      sources.push_back(
          b.add(start, b.mul(kernel.sourceOf(b, here), rowStride)));
    }
    // The other rows are the same in their atoms.
    Value place = placeInAtom(Computed(b, line), Computed(b, chunk));
    Value isFirst = b.less(thread, b.index(1));
    Value panels = pointerTo(b, panelMap, NVVM::NVVMMemorySpace(0));
    b.when(isFirst, [&](BlockBuilder &b) { acquireMap(b, panelMap); });
    // Waits for this thread's own copies, which wgmma reads.
    auto awaitOwn = [&](BlockBuilder &b, int64_t groups) {
      NVVM::CpAsyncWaitGroupOp::create(b.b, b.loc, groups);
      showToProducts(b);
    };
    b.forLoop(b.index(0), b.index(steps), 1, {},
              [&](KernelBuilder &k, Value i, ValueRange) {
                BlockBuilder b(k);
                Value stage = ring.awaitEmpty(b, i);
                b.when(isFirst, [&](BlockBuilder &b) {
                  Value barrier = ring.expect(b, i, tile.panelBytes());
                  copyPanels(b, i, stage, panels, barrier);
                });
                // Behind the depth there are zeros.
                Value size;
                if (depth % tile.depth != 0) {
                  Value at = b.add(b.mul(i, tile.depth), b.mul(chunk, 8));
                  size = b.select(b.less(at, b.index(depth)), i32(b, 16),
                                  i32(b, 0));
                }
                Value to = b.add(rowsOf(b, stage), place);
                for (auto [pass, source] : llvm::enumerate(sources))
                  NVVM::CpAsyncOp::create(
                      b.b, b.loc,
                      pointerTo(b, b.add(to, b.index(pass * lines * 128)),
                                NVVM::NVVMMemorySpace::Shared),
                      pointerTo(b, b.add(source, b.mul(i, 128)),
                                NVVM::NVVMMemorySpace::Global),
                      16, NVVM::LoadCacheModifierKind::CG, size);
                NVVM::CpAsyncCommitGroupOp::create(b.b, b.loc);
                awaitOwn(b, ahead);
                b.when(b.less(b.index(ahead - 1), i), [&](BlockBuilder &b) {
                  ring.tell(b, b.sub(i, b.index(ahead)));
                });
                return KernelBuilder::Values();
              });
    awaitOwn(b, 0);
    for (int64_t i = std::max<int64_t>(0, steps - ahead); i < steps; ++i)
      ring.tell(b, b.index(i));
  }

  void copyPanels(BlockBuilder &b, Value step, Value stage, Value map,
                  Value barrier) {
    copyBox(b, panelsOf(b, stage), map,
            {b.mul(step, unitsOfStage()), panelInMap}, barrier);
  }

  void multiply(Value consumer, Value firstRow) {
    Value lane = b.rem(thread, 32);
    Type type = elementOf(kernel.weight);
    Value sums = zeroSums(b, tile.columns);
    sums = b.forLoop(
        b.index(0), numSteps, 1, sums,
        [&](KernelBuilder &k, Value i, ValueRange carried) {
          BlockBuilder b(k);
          Value stage = ring.stageOf(b, i);
          ring.awaitFull(b, i);
          Value next = fenceSums(b, carried[0]);
          Value rows = b.add(rowsOf(b, stage),
                             b.mul(consumer, kRowsOfGroup * tile.depth * 2)),
                panels = panelsOf(b, stage);
          for (int64_t k = 0; k < tile.depth / 16; ++k)
            next = multiplyShared(
                b, next,
                descriptor(b, b.add(rows, b.index(tile.rowStep(k))),
                           tile.rowDescriptor()),
                descriptor(b, b.add(panels, b.index(tile.panelStep(k))),
                           tile.panelDescriptor()),
                type, /*add=*/true, WarpgroupTile::kPanelsAcross);
          NVVM::WgmmaGroupSyncAlignedOp::create(b.b, b.loc);
          NVVM::WgmmaWaitGroupSyncOp::create(b.b, b.loc, 1);
          b.when(b.less(b.index(0), i), [&](BlockBuilder &b) {
            ring.giveBack(b, lane, b.sub(i, b.index(1)));
          });
          return KernelBuilder::Values{next};
        })[0];
    sums = awaitSums(b, 0, sums);

    Value warp = b.rem(b.div(thread, 32), 4);
    Value row = b.add(group.first, b.add(firstRow, b.mul(warp, 16)));
    auto pair = VectorType::get({2}, b.b.getF32Type());
    auto pairOf = [&](BlockBuilder &b, int64_t n, int64_t half) -> Value {
      SmallVector<Value> two;
      for (int64_t i = 0; i < 2; ++i)
        two.push_back(LLVM::ExtractValueOp::create(b.b, b.loc, sums,
                                                   n * 4 + half * 2 + i));
      return vector::FromElementsOp::create(b.b, b.loc, pair, two);
    };
    store(b, lane, row, firstPanel, tile.columns / 8, pairOf);
  }

  BlockBuilder b;
  Value rowStart, rowStride, panelInMap;
};

} // namespace

void LinearKernel::emitWarpgroupTiles(KernelBuilder &k,
                                      const WarpgroupTile &tile,
                                      const DepthParts *parts) {
  WarpgroupTiles(*this, k, tile, parts).emit();
}

void LinearKernel::emitSumOfParts(KernelBuilder &k, const DepthParts &parts) {
  constexpr int64_t threads = 128;
  OpBuilder::InsertionGuard guard(k.b);
  BlockBuilder b(k);
  // Neighbours of a panel, of which none is behind the last channel.
  int64_t lanes = width() % 4 == 0 ? 4 : 1;
  int64_t ofRow = width() / lanes;
  Value total = b.mul(numRows, ofRow);
  BlockLaunch launch(b, b.ceilDiv(total, threads), threads);
  Value number = b.add(b.mul(launch.block, threads), launch.thread);
  b.when(b.less(number, total), [&](BlockBuilder &b) {
    Value row = b.div(number, ofRow);
    Value channel = b.mul(b.rem(number, ofRow), lanes);
    Value place =
        b.add(b.mul(b.div(channel, 8), 8 * this->parts()), b.rem(channel, 8));
    KernelBuilder::Values sums(this->parts(), b.splat(0.0, lanes));
    sums = b.forLoop(
        b.index(0), parts.count, 1, sums,
        [&](KernelBuilder &k, Value part, ValueRange before) {
          BlockBuilder b(k);
          Value from = b.add(b.mul(part, numRows), row);
          KernelBuilder::Values next;
          for (auto [i, sum] : llvm::enumerate(before))
            next.push_back(arith::AddFOp::create(
                b.b, b.loc, sum,
                b.loadAt(parts.sums, {from, b.add(place, b.index(8 * i))},
                         lanes, 4 * lanes)));
          return next;
        });
    finish(b, Value(), sums[0], gated ? sums[1] : Value(), row, channel);
  });
}

} // namespace attune
