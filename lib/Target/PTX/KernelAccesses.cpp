//===- KernelAccesses.cpp - What the kernels of a step touch --------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelAccesses.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/FunctionCallUtils.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace attune {

llvm::SetVector<Operation *> functionsOfStep(ModuleOp module, bool ofBatch) {
  llvm::SetVector<Operation *> functions;
  auto start = [&](StringRef name) {
    if (auto entry = module.lookupSymbol<func::FuncOp>(name))
      functions.insert(entry);
  };
  // Beams, and sequences of one length, are a batch of `decode`.
  start("decode");
  if (ofBatch)
    start("decode_batch");
  for (size_t i = 0; i < functions.size(); ++i)
    functions[i]->walk([&](func::CallOp call) {
      if (auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee()))
        functions.insert(callee);
    });
  return functions;
}

namespace {
struct Access {
  bool reads = false, writes = false;
};
} // namespace

/// What is done within `region` to memory that a value begins.
static void findAccess(Value buffer, Region &region, Access &access) {
  for (OpOperand &use : buffer.getUses()) {
    Operation *user = use.getOwner();
    if (!region.isAncestor(user->getParentRegion()))
      continue;
    if (isa<ViewLikeOpInterface, memref::TransposeOp>(user)) {
      for (Value view : user->getResults())
        if (isa<MemRefType>(view.getType()))
          findAccess(view, region, access);
      continue;
    }
    // Addresses may go anywhere.
    auto effects = dyn_cast<MemoryEffectOpInterface>(user);
    if (!effects || isa<memref::ExtractAlignedPointerAsIndexOp>(user)) {
      access.reads = access.writes = true;
      continue;
    }
    SmallVector<MemoryEffects::EffectInstance> all;
    effects.getEffects(all);
    for (const MemoryEffects::EffectInstance &effect : all) {
      if (effect.getValue() && effect.getValue() != buffer)
        continue;
      access.reads |= isa<MemoryEffects::Read>(effect.getEffect());
      access.writes |= !isa<MemoryEffects::Read>(effect.getEffect());
    }
  }
}

/// From the first to the last element: the address, and how many bytes.
static std::pair<Value, Value> findRange(OpBuilder &b, Location loc,
                                         Value buffer) {
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  auto add = [&](Value lhs, Value rhs) {
    return b.createOrFold<arith::AddIOp>(loc, lhs, rhs);
  };
  auto mul = [&](Value lhs, Value rhs) {
    return b.createOrFold<arith::MulIOp>(loc, lhs, rhs);
  };
  auto parts = memref::ExtractStridedMetadataOp::create(b, loc, buffer);
  Value last = index(0);
  for (auto [size, stride] : llvm::zip(parts.getSizes(), parts.getStrides()))
    last = add(last, mul(add(size, index(-1)), stride));
  Type element = cast<MemRefType>(buffer.getType()).getElementType();
  unsigned bits = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
  Value bytes = index((bits + 7) / 8);
  Value start = memref::ExtractAlignedPointerAsIndexOp::create(b, loc, buffer);
  start = add(start, mul(parts.getOffset(), bytes));
  return {start, mul(add(last, index(1)), bytes)};
}

void sayAccesses(gpu::LaunchOp launch) {
  SetVector<Value> above;
  getUsedValuesDefinedAbove(launch.getBody(), above);
  OpBuilder b(launch);
  Location loc = launch.getLoc();
  auto i64 = b.getI64Type();
  for (Value buffer : above) {
    Operation *source = buffer.getDefiningOp();
    // Scratch of a thread, and constants.
    if (!isa<MemRefType>(buffer.getType()) ||
        isa_and_nonnull<memref::AllocaOp, memref::GetGlobalOp>(source))
      continue;
    Access access;
    findAccess(buffer, launch.getBody(), access);
    if (!access.reads && !access.writes)
      continue;
    auto [start, bytes] = findRange(b, loc, buffer);
    auto function = LLVM::lookupOrCreateFn(
        b, launch->getParentOfType<ModuleOp>(), "attune_rt_access",
        {i64, i64, i64}, LLVM::LLVMVoidType::get(b.getContext()));
    Value writes = LLVM::ConstantOp::create(b, loc, i64, access.writes);
    LLVM::CallOp::create(
        b, loc, *function,
        ValueRange{arith::IndexCastOp::create(b, loc, i64, start),
                   arith::IndexCastOp::create(b, loc, i64, bytes), writes});
  }
}

} // namespace attune
