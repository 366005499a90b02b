//===- Warpgroups.cpp - Kernels that copy and multiply apart --------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Warpgroups.h"

#include "attune/TargetInfo/GpuTiles.h"

#include "mlir/Dialect/LLVMIR/FunctionCallUtils.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace attune {

Value i32(BlockBuilder &b, int64_t value) {
  return arith::ConstantOp::create(b.b, b.loc,
                                   b.b.getI32IntegerAttr(int32_t(value)));
}
Value toI32(BlockBuilder &b, Value number) {
  return arith::IndexCastOp::create(b.b, b.loc, b.b.getI32Type(), number);
}
Value toI64(BlockBuilder &b, Value number) {
  return arith::IndexCastOp::create(b.b, b.loc, b.b.getI64Type(), number);
}

Value dynamicShared(BlockBuilder &b) {
  auto space = gpu::AddressSpaceAttr::get(
      b.b.getContext(), gpu::GPUDialect::getWorkgroupAddressSpace());
  Value memory = gpu::DynamicSharedMemoryOp::create(
      b.b, b.loc,
      MemRefType::get({ShapedType::kDynamic}, b.b.getI8Type(),
                      MemRefLayoutAttrInterface(), space));
  memory = memref::ExtractAlignedPointerAsIndexOp::create(b.b, b.loc, memory);
  return b.bitAnd(b.add(memory, b.index(kTileAlignment - 1)),
                  ~(kTileAlignment - 1));
}
Value pointerTo(BlockBuilder &b, Value address, NVVM::NVVMMemorySpace space) {
  auto type = LLVM::LLVMPointerType::get(b.b.getContext(), unsigned(space));
  return LLVM::IntToPtrOp::create(b.b, b.loc, type, toI64(b, address));
}

Value chunkAt(BlockBuilder &b, Value start, Value row, Value chunk) {
  return b.add(start, placeInAtom(Computed(b, row), Computed(b, chunk)));
}
void storeChunk(BlockBuilder &b, Value chunk, Value at) {
  LLVM::StoreOp::create(b.b, b.loc, chunk,
                        pointerTo(b, at, NVVM::NVVMMemorySpace::Shared),
                        /*alignment=*/16);
}
void showToProducts(BlockBuilder &b) {
  NVVM::FenceProxyOp::create(
      b.b, b.loc, NVVM::ProxyKind::async_shared,
      NVVM::SharedSpaceAttr::get(b.b.getContext(),
                                 NVVM::SharedSpace::shared_cta));
}

//===----------------------------------------------------------------------===//
// Tensor maps
//===----------------------------------------------------------------------===//

Value tensorMap(BlockBuilder &b, const MappedMatrix &matrix,
                const MappedBox &box) {
  Type i64 = b.b.getI64Type();
  SmallVector<Value> arguments;
  for (Value number :
       {matrix.address, b.index(matrix.elementBytes), b.index(matrix.columns),
        matrix.rows, matrix.stride, matrix.heads, matrix.headStride,
        matrix.batches, matrix.batchStride, b.index(box.columns),
        b.index(box.rows), b.index(box.swizzle)})
    arguments.push_back(toI64(b, number ? number : b.index(0)));
  auto module =
      b.b.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  auto make =
      LLVM::lookupOrCreateFn(b.b, module, "attune_rt_tensor_map",
                             SmallVector<Type>(arguments.size(), i64), i64);
  Value made = LLVM::CallOp::create(b.b, b.loc, *make, arguments).getResult();
  return arith::IndexCastOp::create(b.b, b.loc, b.b.getIndexType(), made);
}

Value acquireMap(BlockBuilder &b, Value map) {
  Value pointer = pointerTo(b, map, NVVM::NVVMMemorySpace(0));
  NVVM::FenceProxyAcquireOp::create(b.b, b.loc, NVVM::MemScopeKind::SYS,
                                    pointer, i32(b, 128));
  return pointer;
}

void copyBox(BlockBuilder &b, Value to, Value map, ValueRange at,
             Value barrier) {
  SmallVector<Value> place;
  for (Value number : at)
    place.push_back(toI32(b, number));
  NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
      b.b, b.loc, pointerTo(b, to, NVVM::NVVMMemorySpace::SharedCluster), map,
      place, barrier, ValueRange(), Value(), Value(), NVVM::TMALoadMode::TILE,
      /*isCTAOnly=*/false, NVVM::CTAGroupKindAttr(), Value());
}

//===----------------------------------------------------------------------===//
// Stages
//===----------------------------------------------------------------------===//

static Value barrierAt(BlockBuilder &b, Value first, Value number) {
  return pointerTo(b, b.add(first, b.mul(number, 8)),
                   NVVM::NVVMMemorySpace::Shared);
}
Value StageRing::full(BlockBuilder &b, Value stage) {
  return barrierAt(b, barriers, stage);
}
Value StageRing::empty(BlockBuilder &b, Value stage) {
  return barrierAt(b, barriers, b.add(stage, b.index(stages)));
}
Value StageRing::stageOf(BlockBuilder &b, Value step) {
  return b.rem(step, stages);
}
/// Which time a stage is used, from 0 on, as a parity.
Value StageRing::parityOf(BlockBuilder &b, Value step) {
  return toI32(b, b.rem(b.div(step, stages), 2));
}

void StageRing::init(BlockBuilder &b, Value writers, Value warps) {
  for (int64_t stage = 0; stage < stages; ++stage) {
    NVVM::MBarrierInitOp::create(b.b, b.loc, full(b, b.index(stage)), writers,
                                 Value());
    NVVM::MBarrierInitOp::create(b.b, b.loc, empty(b, b.index(stage)), warps,
                                 Value());
  }
}

static void wait(BlockBuilder &b, Value barrier, Value parity) {
  NVVM::MBarrierTryWaitParityOp::create(b.b, b.loc, barrier, parity,
                                        i32(b, 10000000));
}

Value StageRing::awaitEmpty(BlockBuilder &b, Value step) {
  Value stage = stageOf(b, step);
  // The first time each is empty: the phase before is over.
  Value other = arith::XOrIOp::create(b.b, b.loc, parityOf(b, step), i32(b, 1));
  wait(b, empty(b, stage), other);
  return stage;
}

Value StageRing::expect(BlockBuilder &b, Value step, int64_t bytes) {
  Value barrier = full(b, stageOf(b, step));
  NVVM::MBarrierArriveExpectTxOp::create(b.b, b.loc, Type(), barrier,
                                         i32(b, bytes), NVVM::MemScopeKind::CTA,
                                         /*relaxed=*/false, Value());
  return barrier;
}

void StageRing::tell(BlockBuilder &b, Value step) {
  NVVM::MBarrierArriveOp::create(b.b, b.loc, Type(), full(b, stageOf(b, step)),
                                 Value());
}

void StageRing::awaitFull(BlockBuilder &b, Value step) {
  wait(b, full(b, stageOf(b, step)), parityOf(b, step));
}

void StageRing::giveBack(BlockBuilder &b, Value lane, Value step) {
  b.when(b.less(lane, b.index(1)), [&](BlockBuilder &b) {
    NVVM::MBarrierArriveOp::create(b.b, b.loc, Type(),
                                   empty(b, stageOf(b, step)), Value());
  });
}

void setRegisters(BlockBuilder &b, uint32_t count, bool more) {
  NVVM::SetMaxRegisterOp::create(b.b, b.loc, count,
                                 more ? NVVM::SetMaxRegisterAction::increase
                                      : NVVM::SetMaxRegisterAction::decrease);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

Value descriptor(BlockBuilder &b, Value address, uint64_t rest) {
  Value start = b.shiftRight(b.bitAnd(address, 0x3ffff), 4);
  Value constant = arith::ConstantOp::create(
      b.b, b.loc, b.b.getI64IntegerAttr(int64_t(rest)));
  return arith::OrIOp::create(b.b, b.loc, toI64(b, start), constant);
}

LLVM::LLVMStructType sumsOf(BlockBuilder &b, int64_t columns) {
  return LLVM::LLVMStructType::getLiteral(
      b.b.getContext(), SmallVector<Type>(columns / 2, b.b.getF32Type()));
}

Value unsetSums(BlockBuilder &b, int64_t columns) {
  return LLVM::PoisonOp::create(b.b, b.loc, sumsOf(b, columns));
}

Value zeroSums(BlockBuilder &b, int64_t columns) {
  Value sums = unsetSums(b, columns);
  for (int64_t i = 0; i < columns / 2; ++i)
    sums = LLVM::InsertValueOp::create(b.b, b.loc, sums, b.f32(0.0), i);
  return sums;
}

static size_t countOf(Value sums) {
  return cast<LLVM::LLVMStructType>(sums.getType()).getBody().size();
}

Value multiplyShared(BlockBuilder &b, Value sums, Value a, Value panel,
                     Type element, bool add, bool transpose) {
  auto type = element.isBF16() ? NVVM::WGMMATypes::bf16 : NVVM::WGMMATypes::f16;
  auto shape =
      NVVM::MMAShapeAttr::get(b.b.getContext(), 64, int(2 * countOf(sums)), 16);
  return NVVM::WgmmaMmaAsyncOp::create(
      b.b, b.loc, sums.getType(), sums, a, panel, shape, type, type,
      NVVM::WGMMATypes::f32,
      add ? NVVM::WGMMAScaleOut::one : NVVM::WGMMAScaleOut::zero,
      NVVM::WGMMAScaleIn::one, NVVM::WGMMAScaleIn::one, NVVM::MMALayout::row,
      transpose ? NVVM::MMALayout::row : NVVM::MMALayout::col,
      NVVM::MMAIntOverflowAttr());
}

/// A line of assembly whose result replaces the sums in their registers.
static Value updateSums(BlockBuilder &b, Value sums, ValueRange others,
                        StringRef kinds, const Twine &text) {
  size_t count = countOf(sums);
  std::string constraints;
  for (size_t i = 0; i < count; ++i)
    constraints += "=f,";
  constraints += kinds;
  SmallVector<Value> operands(others);
  for (size_t i = 0; i < count; ++i) {
    operands.push_back(LLVM::ExtractValueOp::create(b.b, b.loc, sums, i));
    constraints += (constraints.back() == ',' ? "" : ",") + std::to_string(i);
  }
  return LLVM::InlineAsmOp::create(
             b.b, b.loc, sums.getType(), operands, text.str(), constraints,
             /*has_side_effects=*/true, /*is_align_stack=*/false,
             LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr())
      .getRes();
}

Value multiplyHeld(BlockBuilder &b, Value sums, ArrayRef<Value> a, Value panel,
                   Type element, Value add, bool transpose) {
  // nvvm.wgmma.mma_async knows no A in registers.
  size_t count = countOf(sums);
  auto names = [](size_t first, size_t count) {
    std::string list = "{";
    for (size_t i = first; i < first + count; ++i)
      list += (i == first ? "$" : ", $") + std::to_string(i);
    return list + "}";
  };
  std::string type = element.isBF16() ? "bf16" : "f16";
  SmallVector<Value> others(a);
  others.push_back(panel);
  std::string before, predicate, kinds = "r,r,r,r,l";
  if (auto known = getConstantIntValue(add)) {
    predicate = *known ? "1" : "0";
  } else {
    predicate = "add";
    before = ".reg .pred add;\nsetp.ne.b32 add, $" + std::to_string(count + 5) +
             ", 0;\n";
    kinds += ",r";
    others.push_back(add);
  }
  std::string text = before + "wgmma.mma_async.sync.aligned.m64n" +
                     std::to_string(2 * count) + "k16.f32." + type + "." +
                     type + " " + names(0, count) + ", " + names(count, 4) +
                     ", $" + std::to_string(count + 4) + ", " + predicate +
                     ", 1, 1, " + (transpose ? "1;" : "0;");
  return updateSums(b, sums, others, kinds,
                    before.empty() ? text : "{\n" + text + "\n}");
}

Value fenceSums(BlockBuilder &b, Value sums) {
  return updateSums(b, sums, {}, "", "wgmma.fence.sync.aligned;");
}

Value awaitSums(BlockBuilder &b, int64_t groups, Value sums) {
  return updateSums(b, sums, {}, "",
                    "wgmma.wait_group.sync.aligned " + Twine(groups) + ";");
}

} // namespace attune
