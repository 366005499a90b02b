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
// of the matrices of eight times eight that wgmma is made of: nothing has to be
// exchanged. What lies outside a matrix is filled with zeros by the copy.
//
// A product is under way while the next one is started: the stage before is
// given back one turn late.
//
// Stacks of matrices lie one behind the other in the same map: what a tile has
// beyond its own matrix or rows is computed and not stored. Rows that are named
// one by one no map can fetch: all threads of the first warpgroup copy them,
// and tell the others a few stages later, when they have come.

#include "TensorCores.h"

#include "attune/Analysis/GpuTiles.h"

#include "mlir/Dialect/LLVMIR/FunctionCallUtils.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace attune {

bool LinearKernel::fitsWarpgroups() {
  // A tensor map takes rows at multiples of 16 bytes.
  return fitsTensorCores() && !elementOf(weight).isF32() &&
         elementOf(weight) == elementOf(input) &&
         alignmentOfRows(input) % 16 == 0;
}

namespace {

/// So many registers has a thread that copies, one that multiplies: those of
/// three warpgroups of 168 in all.
constexpr uint32_t kFewRegisters = 40, kManyRegisters = 232;
/// Threads of a warpgroup, and the rows that one multiplies.
constexpr int64_t kGroup = 128, kRowsOfGroup = 64;

class WarpgroupTiles {
public:
  WarpgroupTiles(LinearKernel &kernel, KernelBuilder &k,
                 const WarpgroupTile &tile)
      : kernel(kernel), tile(tile), b(k) {}

  void emit() {
    OpBuilder::InsertionGuard guard(b.b);
    int64_t panels = kernel.panels() * kernel.parts();
    depth = kernel.depth();
    steps = (depth + tile.depth - 1) / tile.depth;
    Value rowMap, panelMap;
    if (!kernel.from)
      rowMap = tensorMap(kernel.input, 2, depth, b.sizeOf(kernel.input, 0),
                         depth * 2, tile.depth, tile.rows, /*swizzle=*/true);
    // 256 elements are the most of a box: panels count by eight bytes.
    panelMap = tensorMap(kernel.weight, 8, depth * 2,
                         b.index(kernel.matrices() * panels), depth * 16,
                         tile.depth * 2, tile.columns / 8, /*swizzle=*/false);
    Value blockRows = kernel.countGroups(b, tile.rows);
    int64_t columns = (panels * 8 + tile.columns - 1) / tile.columns;
    BlockLaunch launch(b, b.mul(blockRows, columns), tile.threads(),
                       tile.sharedBytes());
    thread = launch.thread;

    TilePlace at(b, launch.block, blockRows, columns);
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
  /// What the warpgroups of a block do.
  void share(Value rowMap, Value panelMap) {
    Type i8 = b.b.getI8Type();
    auto space = gpu::AddressSpaceAttr::get(
        b.b.getContext(), gpu::GPUDialect::getWorkgroupAddressSpace());
    Value memory = gpu::DynamicSharedMemoryOp::create(
        b.b, b.loc,
        MemRefType::get({ShapedType::kDynamic}, i8, MemRefLayoutAttrInterface(),
                        space));
    memory = memref::ExtractAlignedPointerAsIndexOp::create(b.b, b.loc, memory);
    shared = b.bitAnd(b.add(memory, b.index(kTileAlignment - 1)),
                      ~(kTileAlignment - 1));

    // A warpgroup whose rows are all behind the end has nothing to do.
    Value rows = b.min(b.sub(group.end, group.first), b.index(tile.rows));
    b.when(b.less(thread, b.index(1)), [&](BlockBuilder &b) {
      Value warps = toI32(b, b.mul(b.ceilDiv(rows, kRowsOfGroup), 4));
      Value copying = i32(b, kernel.from ? 1 + kGroup : 1);
      for (int64_t stage = 0; stage < tile.stages; ++stage) {
        NVVM::MBarrierInitOp::create(b.b, b.loc, full(b, b.index(stage)),
                                     copying, Value());
        NVVM::MBarrierInitOp::create(b.b, b.loc, empty(b, b.index(stage)),
                                     warps, Value());
      }
      NVVM::FenceMbarrierInitOp::create(b.b, b.loc);
    });
    b.barrier();
    auto role = scf::IfOp::create(b.b, b.loc, b.less(thread, b.index(kGroup)),
                                  /*withElseRegion=*/true);
    b.b.setInsertionPointToStart(role.thenBlock());
    setRegisters(kFewRegisters, NVVM::SetMaxRegisterAction::decrease);
    if (kernel.from)
      gather(b, panelMap);
    else
      b.when(b.less(thread, b.index(1)),
             [&](BlockBuilder &b) { copy(b, rowMap, panelMap); });
    b.b.setInsertionPointToStart(role.elseBlock());
    setRegisters(kManyRegisters, NVVM::SetMaxRegisterAction::increase);
    Value consumer = b.sub(b.div(thread, kGroup), b.index(1));
    Value firstRow = b.mul(consumer, kRowsOfGroup);
    b.when(b.less(firstRow, rows),
           [&](BlockBuilder &) { multiply(consumer, firstRow); });
  }

  //===--------------------------------------------------------------------===//
  // Numbers and addresses
  //===--------------------------------------------------------------------===//

  static Value i32(BlockBuilder &b, int64_t value) {
    return arith::ConstantOp::create(b.b, b.loc,
                                     b.b.getI32IntegerAttr(int32_t(value)));
  }
  static Value toI32(BlockBuilder &b, Value number) {
    return arith::IndexCastOp::create(b.b, b.loc, b.b.getI32Type(), number);
  }
  static Value toI64(BlockBuilder &b, Value number) {
    return arith::IndexCastOp::create(b.b, b.loc, b.b.getI64Type(), number);
  }
  static Value pointer(BlockBuilder &b, Value address,
                       NVVM::NVVMMemorySpace space) {
    auto type = LLVM::LLVMPointerType::get(b.b.getContext(), unsigned(space));
    return LLVM::IntToPtrOp::create(b.b, b.loc, type, toI64(b, address));
  }
  Value at(BlockBuilder &b, int64_t offset, Value number, int64_t bytes) {
    return b.add(b.add(shared, b.index(offset)), b.mul(number, bytes));
  }
  Value rowsOf(BlockBuilder &b, Value stage) {
    return at(b, 0, stage, tile.rowBytes());
  }
  Value panelsOf(BlockBuilder &b, Value stage) {
    return at(b, tile.stages * tile.rowBytes(), stage, tile.panelBytes());
  }
  Value full(BlockBuilder &b, Value stage) {
    return pointer(b, at(b, tile.stages * tile.stageBytes(), stage, 8),
                   NVVM::NVVMMemorySpace::Shared);
  }
  Value empty(BlockBuilder &b, Value stage) {
    return pointer(b, at(b, tile.stages * (tile.stageBytes() + 8), stage, 8),
                   NVVM::NVVMMemorySpace::Shared);
  }
  /// Which time a stage is used, from 0 on, as a parity.
  Value parityOf(BlockBuilder &b, Value step) {
    return toI32(b, b.rem(b.div(step, tile.stages), 2));
  }
  static void wait(BlockBuilder &b, Value barrier, Value parity) {
    NVVM::MBarrierTryWaitParityOp::create(b.b, b.loc, barrier, parity,
                                          i32(b, 10000000));
  }
  void setRegisters(uint32_t count, NVVM::SetMaxRegisterAction action) {
    NVVM::SetMaxRegisterOp::create(b.b, b.loc, count, action);
  }

  /// Where the device has the map of a matrix. On the host.
  Value tensorMap(Value matrix, int64_t elementBytes, int64_t columns,
                  Value rows, int64_t stride, int64_t boxColumns,
                  int64_t boxRows, bool swizzle) {
    auto number = [&](int64_t value) { return toI64(b, b.index(value)); };
    Value address =
        memref::ExtractAlignedPointerAsIndexOp::create(b.b, b.loc, matrix);
    Type i64 = b.b.getI64Type();
    auto module =
        b.b.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
    auto make = LLVM::lookupOrCreateFn(b.b, module, "attune_rt_tensor_map",
                                       SmallVector<Type>(8, i64), i64);
    SmallVector<Value> arguments = {toI64(b, address), number(elementBytes),
                                    number(columns),   toI64(b, rows),
                                    number(stride),    number(boxColumns),
                                    number(boxRows),   number(swizzle)};
    Value made = LLVM::CallOp::create(b.b, b.loc, *make, arguments).getResult();
    return arith::IndexCastOp::create(b.b, b.loc, b.b.getIndexType(), made);
  }

  //===--------------------------------------------------------------------===//
  // The two roles
  //===--------------------------------------------------------------------===//

  void copy(BlockBuilder &b, Value rowMap, Value panelMap) {
    Value rows = mapAt(b, rowMap), panels = mapAt(b, panelMap);
    b.forLoop(b.index(0), b.index(steps), 1, {},
              [&](KernelBuilder &k, Value i, ValueRange) {
                BlockBuilder b(k);
                Value stage = awaitEmpty(b, i);
                Value barrier = expect(b, stage, tile.stageBytes());
                copyTile(b, rowsOf(b, stage), rows, b.mul(i, tile.depth),
                         group.first, barrier);
                copyPanels(b, i, stage, panels, barrier);
                return KernelBuilder::Values();
              });
  }

  /// The same of rows that are named one by one: a thread copies 16 bytes of
  /// every sixteenth row.
  void gather(BlockBuilder &b, Value panelMap) {
    constexpr int64_t chunks = 8, lines = kGroup / chunks;
    // So many stages are under way: one more is being waited for, and one given
    // back a turn late.
    const int64_t ahead = tile.stages - 2;
    Value chunk = b.rem(thread, chunks), line = b.div(thread, chunks);
    Value start = memref::ExtractAlignedPointerAsIndexOp::create(b.b, b.loc,
                                                                 kernel.input);
    start = b.add(start, b.mul(chunk, 16));
    Value last = b.sub(group.end, b.index(1));
    SmallVector<Value> sources;
    for (int64_t row = 0; row < tile.rows; row += lines) {
      Value here = b.min(b.add(group.first, b.add(line, b.index(row))), last);
      sources.push_back(
          b.add(start, b.mul(kernel.sourceOf(b, here), depth * 2)));
    }
    // As placeInAtom(); the other rows are the same in theirs.
    Value place =
        b.add(b.mul(line, 128), b.mul(b.bitXor(chunk, b.bitAnd(line, 7)), 16));
    Value isFirst = b.less(thread, b.index(1));
    Value panels = pointer(b, panelMap, NVVM::NVVMMemorySpace(0));
    b.when(isFirst, [&](BlockBuilder &b) { mapAt(b, panelMap); });
    auto tell = [&](BlockBuilder &b, Value step) {
      NVVM::MBarrierArriveOp::create(
          b.b, b.loc, Type(), full(b, b.rem(step, tile.stages)), Value());
    };
    // What this thread has copied, to be read by wgmma.
    auto awaitOwn = [&](BlockBuilder &b, int64_t groups) {
      NVVM::CpAsyncWaitGroupOp::create(b.b, b.loc, groups);
      NVVM::FenceProxyOp::create(
          b.b, b.loc, NVVM::ProxyKind::async_shared,
          NVVM::SharedSpaceAttr::get(b.b.getContext(),
                                     NVVM::SharedSpace::shared_cta));
    };
    b.forLoop(
        b.index(0), b.index(steps), 1, {},
        [&](KernelBuilder &k, Value i, ValueRange) {
          BlockBuilder b(k);
          Value stage = awaitEmpty(b, i);
          b.when(isFirst, [&](BlockBuilder &b) {
            Value barrier = expect(b, stage, tile.panelBytes());
            copyPanels(b, i, stage, panels, barrier);
          });
          // Behind the depth there are zeros.
          Value size;
          if (depth % tile.depth != 0) {
            Value at = b.add(b.mul(i, tile.depth), b.mul(chunk, 8));
            size = b.select(b.less(at, b.index(depth)), i32(b, 16), i32(b, 0));
          }
          Value to = b.add(rowsOf(b, stage), place);
          for (auto [pass, source] : llvm::enumerate(sources))
            NVVM::CpAsyncOp::create(
                b.b, b.loc,
                pointer(b, b.add(to, b.index(pass * lines * 128)),
                        NVVM::NVVMMemorySpace::Shared),
                pointer(b, b.add(source, b.mul(i, 128)),
                        NVVM::NVVMMemorySpace::Global),
                16, NVVM::LoadCacheModifierKind::CG, size);
          NVVM::CpAsyncCommitGroupOp::create(b.b, b.loc);
          awaitOwn(b, ahead);
          b.when(b.less(b.index(ahead - 1), i),
                 [&](BlockBuilder &b) { tell(b, b.sub(i, b.index(ahead))); });
          return KernelBuilder::Values();
        });
    awaitOwn(b, 0);
    for (int64_t i = std::max<int64_t>(0, steps - ahead); i < steps; ++i)
      tell(b, b.index(i));
  }

  /// Waits until the stage of a step can be filled; its number.
  Value awaitEmpty(BlockBuilder &b, Value step) {
    Value stage = b.rem(step, tile.stages);
    // The first time each is empty: the phase before is over.
    Value other =
        arith::XOrIOp::create(b.b, b.loc, parityOf(b, step), i32(b, 1));
    wait(b, empty(b, stage), other);
    return stage;
  }

  /// Says how much tensor maps will bring; the barrier that counts it.
  Value expect(BlockBuilder &b, Value stage, int64_t bytes) {
    Value barrier = full(b, stage);
    NVVM::MBarrierArriveExpectTxOp::create(
        b.b, b.loc, Type(), barrier, i32(b, bytes), NVVM::MemScopeKind::CTA,
        /*relaxed=*/false, Value());
    return barrier;
  }

  /// A tensor map, which the host wrote.
  static Value mapAt(BlockBuilder &b, Value address) {
    Value map = pointer(b, address, NVVM::NVVMMemorySpace(0));
    NVVM::FenceProxyAcquireOp::create(b.b, b.loc, NVVM::MemScopeKind::SYS, map,
                                      i32(b, 128));
    return map;
  }

  void copyPanels(BlockBuilder &b, Value step, Value stage, Value map,
                  Value barrier) {
    copyTile(b, panelsOf(b, stage), map, b.mul(step, tile.depth * 2),
             panelInMap, barrier);
  }

  static void copyTile(BlockBuilder &b, Value to, Value map, Value column,
                       Value row, Value barrier) {
    NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
        b.b, b.loc, pointer(b, to, NVVM::NVVMMemorySpace::SharedCluster), map,
        ValueRange{toI32(b, column), toI32(b, row)}, barrier, ValueRange(),
        Value(), Value(), NVVM::TMALoadMode::TILE, /*isCTAOnly=*/false,
        NVVM::CTAGroupKindAttr(), Value());
  }

  /// A matrix descriptor: all but the address is known.
  static Value descriptor(BlockBuilder &b, Value address, uint64_t rest) {
    Value start = b.shiftRight(b.bitAnd(address, 0x3ffff), 4);
    Value constant = arith::ConstantOp::create(
        b.b, b.loc, b.b.getI64IntegerAttr(int64_t(rest)));
    return arith::OrIOp::create(b.b, b.loc, toI64(b, start), constant);
  }

  void multiply(Value consumer, Value firstRow) {
    Value lane = b.rem(thread, 32);
    auto type = LLVM::LLVMStructType::getLiteral(
        b.b.getContext(),
        SmallVector<Type>(tile.columns / 2, b.b.getF32Type()));
    Value sums = LLVM::PoisonOp::create(b.b, b.loc, type);
    for (int64_t i = 0; i < tile.columns / 2; ++i)
      sums = LLVM::InsertValueOp::create(b.b, b.loc, sums, b.f32(0.0), i);
    auto giveBack = [&](BlockBuilder &b, Value stage) {
      b.when(b.less(lane, b.index(1)), [&](BlockBuilder &b) {
        NVVM::MBarrierArriveOp::create(b.b, b.loc, Type(), empty(b, stage),
                                       Value());
      });
    };
    sums = b.forLoop(
        b.index(0), b.index(steps), 1, sums,
        [&](KernelBuilder &k, Value i, ValueRange carried) {
          BlockBuilder b(k);
          Value stage = b.rem(i, tile.stages), next = carried[0];
          wait(b, full(b, stage), parityOf(b, i));
          NVVM::WgmmaFenceAlignedOp::create(b.b, b.loc);
          Value rows = b.add(rowsOf(b, stage),
                             b.mul(consumer, kRowsOfGroup * tile.depth * 2)),
                panels = panelsOf(b, stage);
          for (int64_t k = 0; k < tile.depth; k += 16)
            next = multiplyAdd(b, next, b.add(rows, b.index(k * 2)),
                               b.add(panels, b.index(k * 16)));
          NVVM::WgmmaGroupSyncAlignedOp::create(b.b, b.loc);
          NVVM::WgmmaWaitGroupSyncOp::create(b.b, b.loc, 1);
          b.when(b.less(b.index(0), i), [&](BlockBuilder &b) {
            giveBack(b, b.rem(b.sub(i, b.index(1)), tile.stages));
          });
          return KernelBuilder::Values{next};
        })[0];
    NVVM::WgmmaWaitGroupSyncOp::create(b.b, b.loc, 0);

    Value warp = b.rem(b.div(thread, 32), 4);
    Value row = b.add(group.first, b.add(firstRow, b.mul(warp, 16)));
    auto pair = VectorType::get({2}, b.b.getF32Type());
    kernel.storeSums(b, group, lane, row, firstPanel, tile.columns / 8,
                     [&](BlockBuilder &b, int64_t n, int64_t half) -> Value {
                       SmallVector<Value> two;
                       for (int64_t i = 0; i < 2; ++i)
                         two.push_back(LLVM::ExtractValueOp::create(
                             b.b, b.loc, sums, n * 4 + half * 2 + i));
                       return vector::FromElementsOp::create(b.b, b.loc, pair,
                                                             two);
                     });
  }

  Value multiplyAdd(BlockBuilder &b, Value sums, Value rows, Value panels) {
    auto type = elementOf(kernel.weight).isBF16() ? NVVM::WGMMATypes::bf16
                                                  : NVVM::WGMMATypes::f16;
    auto shape =
        NVVM::MMAShapeAttr::get(b.b.getContext(), 64, tile.columns, 16);
    return NVVM::WgmmaMmaAsyncOp::create(
        b.b, b.loc, sums.getType(), sums,
        descriptor(b, rows, tile.rowDescriptor()),
        descriptor(b, panels, tile.panelDescriptor()), shape, type, type,
        NVVM::WGMMATypes::f32, NVVM::WGMMAScaleOut::one,
        NVVM::WGMMAScaleIn::one, NVVM::WGMMAScaleIn::one, NVVM::MMALayout::row,
        NVVM::MMALayout::row, NVVM::MMAIntOverflowAttr());
  }

  LinearKernel &kernel;
  const WarpgroupTile &tile;
  BlockBuilder b;
  int64_t depth = 0, steps = 0;
  LinearKernel::Group group;
  Value thread, firstPanel, panelInMap, shared;
};

} // namespace

void LinearKernel::emitWarpgroupTiles(KernelBuilder &k,
                                      const WarpgroupTile &tile) {
  WarpgroupTiles(*this, k, tile).emit();
}

} // namespace attune
