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
  return fitsTensorCores() && !tasks && !numBatches &&
         !elementOf(weight).isF32() && elementOf(weight) == elementOf(input) &&
         alignmentOfRows(input) % 16 == 0;
}

namespace {

/// So many registers has a thread that copies, one that multiplies: those of
/// three warpgroups of 168 in all.
constexpr uint32_t kFewRegisters = 40, kManyRegisters = 232;

class WarpgroupTiles {
public:
  WarpgroupTiles(LinearKernel &kernel, KernelBuilder &k,
                 const WarpgroupTile &tile)
      : kernel(kernel), tile(tile), b(k) {}

  void emit() {
    OpBuilder::InsertionGuard guard(b.b);
    int64_t depth = kernel.depth(), panels = kernel.panels() * kernel.parts();
    steps = (depth + tile.depth - 1) / tile.depth;
    Value rowMap = tensorMap(kernel.input, 2, depth, kernel.numRows, depth * 2,
                             tile.depth, tile.rows, /*swizzle=*/true);
    // 256 elements are the most of a box: panels count by eight bytes.
    Value panelMap =
        tensorMap(kernel.weight, 8, depth * 2, b.index(panels), depth * 16,
                  tile.depth * 2, tile.columns / 8, /*swizzle=*/false);
    Value blockRows = kernel.countGroups(b, tile.rows);
    int64_t columns = (panels * 8 + tile.columns - 1) / tile.columns;
    BlockLaunch launch(b, b.mul(blockRows, columns), tile.threads(),
                       tile.sharedBytes());
    thread = launch.thread;

    TilePlace at(b, launch.block, blockRows, columns);
    group = kernel.groupAt(b, at.row, tile.rows);
    firstPanel = b.mul(at.column, tile.columns / 8);

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

    b.when(b.less(thread, b.index(1)), [&](BlockBuilder &b) {
      for (int64_t stage = 0; stage < tile.stages; ++stage) {
        NVVM::MBarrierInitOp::create(b.b, b.loc, full(b, b.index(stage)),
                                     i32(b, 1), Value());
        NVVM::MBarrierInitOp::create(b.b, b.loc, empty(b, b.index(stage)),
                                     i32(b, tile.rows / 16), Value());
      }
      NVVM::FenceMbarrierInitOp::create(b.b, b.loc);
    });
    b.barrier();
    auto role = scf::IfOp::create(b.b, b.loc, b.less(thread, b.index(128)),
                                  /*withElseRegion=*/true);
    b.b.setInsertionPointToStart(role.thenBlock());
    setRegisters(kFewRegisters, NVVM::SetMaxRegisterAction::decrease);
    b.when(b.less(thread, b.index(1)),
           [&](BlockBuilder &b) { copy(b, rowMap, panelMap); });
    b.b.setInsertionPointToStart(role.elseBlock());
    setRegisters(kManyRegisters, NVVM::SetMaxRegisterAction::increase);
    multiply();
  }

private:
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
    Value rows = pointer(b, rowMap, NVVM::NVVMMemorySpace(0)),
          panels = pointer(b, panelMap, NVVM::NVVMMemorySpace(0));
    // The host wrote them.
    for (Value map : {rows, panels})
      NVVM::FenceProxyAcquireOp::create(b.b, b.loc, NVVM::MemScopeKind::SYS,
                                        map, i32(b, 128));
    b.forLoop(
        b.index(0), b.index(steps), 1, {},
        [&](KernelBuilder &k, Value i, ValueRange) {
          BlockBuilder b(k);
          Value stage = b.rem(i, tile.stages);
          Value barrier = full(b, stage);
          // The first time each is empty: the phase before is over.
          Value other =
              arith::XOrIOp::create(b.b, b.loc, parityOf(b, i), i32(b, 1));
          wait(b, empty(b, stage), other);
          NVVM::MBarrierArriveExpectTxOp::create(
              b.b, b.loc, Type(), barrier, i32(b, tile.stageBytes()),
              NVVM::MemScopeKind::CTA, /*relaxed=*/false, Value());
          Value depth = b.mul(i, tile.depth);
          copyTile(b, rowsOf(b, stage), rows, depth, group.first, barrier);
          copyTile(b, panelsOf(b, stage), panels, b.mul(depth, 2), firstPanel,
                   barrier);
          return KernelBuilder::Values();
        });
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

  void multiply() {
    Value lane = b.rem(thread, 32);
    Value consumer = b.sub(b.div(thread, 128), b.index(1));
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
    sums = b.forLoop(b.index(0), b.index(steps), 1, sums,
                     [&](KernelBuilder &k, Value i, ValueRange carried) {
                       BlockBuilder b(k);
                       Value stage = b.rem(i, tile.stages), next = carried[0];
                       wait(b, full(b, stage), parityOf(b, i));
                       NVVM::WgmmaFenceAlignedOp::create(b.b, b.loc);
                       Value rows = b.add(rowsOf(b, stage),
                                          b.mul(consumer, 64 * tile.depth * 2)),
                             panels = panelsOf(b, stage);
                       for (int64_t k = 0; k < tile.depth; k += 16)
                         next =
                             multiplyAdd(b, next, b.add(rows, b.index(k * 2)),
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
    Value row = b.add(group.first, b.add(b.mul(consumer, 64), b.mul(warp, 16)));
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
  int64_t steps = 0;
  LinearKernel::Group group;
  Value thread, firstPanel, shared;
};

} // namespace

void LinearKernel::emitWarpgroupTiles(KernelBuilder &k,
                                      const WarpgroupTile &tile) {
  WarpgroupTiles(*this, k, tile).emit();
}

} // namespace attune
