//===- BlockBuilder.cpp - Kernels of cooperating threads --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockBuilder.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

#include <numeric>

using namespace mlir;

namespace attune {

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

Value BlockBuilder::div(Value lhs, Value rhs) {
  return b.createOrFold<arith::DivUIOp>(loc, lhs, rhs);
}
Value BlockBuilder::div(Value lhs, int64_t rhs) { return div(lhs, index(rhs)); }
Value BlockBuilder::rem(Value lhs, Value rhs) {
  return b.createOrFold<arith::RemUIOp>(loc, lhs, rhs);
}
Value BlockBuilder::rem(Value lhs, int64_t rhs) { return rem(lhs, index(rhs)); }
Value BlockBuilder::bitAnd(Value lhs, int64_t rhs) {
  return b.createOrFold<arith::AndIOp>(loc, lhs, index(rhs));
}
Value BlockBuilder::bitXor(Value lhs, Value rhs) {
  return b.createOrFold<arith::XOrIOp>(loc, lhs, rhs);
}
Value BlockBuilder::shiftRight(Value lhs, int64_t bits) {
  return b.createOrFold<arith::ShRUIOp>(loc, lhs, index(bits));
}
Value BlockBuilder::max(Value lhs, Value rhs) {
  return b.createOrFold<arith::MaxSIOp>(loc, lhs, rhs);
}
Value BlockBuilder::less(Value lhs, Value rhs) {
  return b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, lhs,
                                       rhs);
}
Value BlockBuilder::both(Value lhs, Value rhs) {
  return b.createOrFold<arith::AndIOp>(loc, lhs, rhs);
}
Value BlockBuilder::select(Value condition, Value yes, Value no) {
  return b.createOrFold<arith::SelectOp>(loc, condition, yes, no);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value BlockBuilder::sizeOf(Value buffer, int64_t dim) {
  auto type = cast<MemRefType>(buffer.getType());
  if (!type.isDynamicDim(dim))
    return index(type.getDimSize(dim));
  return memref::DimOp::create(b, loc, buffer, dim);
}

Value BlockBuilder::loadAt(Value buffer, ValueRange indices, int64_t lanes,
                           int64_t align) {
  Type element = cast<MemRefType>(buffer.getType()).getElementType();
  return vector::LoadOp::create(b, loc, VectorType::get({lanes}, element),
                                buffer, indices, /*nontemporal=*/false,
                                llvm::MaybeAlign(align));
}

Value BlockBuilder::loadWide(Value buffer, ValueRange indices, int64_t lanes,
                             int64_t align) {
  return widen(loadAt(buffer, indices, lanes, align));
}

Value BlockBuilder::widen(Value vector) {
  auto type = cast<VectorType>(vector.getType());
  if (type.getElementType().isF32())
    return vector;
  return arith::ExtFOp::create(b, loc, vectorType(type.getDimSize(0)), vector);
}

Value BlockBuilder::loadNumber(Value buffer, ValueRange indices) {
  Value read = memref::LoadOp::create(b, loc, buffer, indices);
  if (!isa<FloatType>(read.getType()) || read.getType().isF32())
    return read;
  return arith::ExtFOp::create(b, loc, b.getF32Type(), read);
}

void BlockBuilder::storeAt(Value vector, Value buffer, ValueRange indices,
                           int64_t align) {
  Type element = cast<MemRefType>(buffer.getType()).getElementType();
  auto type = cast<VectorType>(vector.getType());
  if (type.getElementType() != element)
    vector = arith::TruncFOp::create(
        b, loc, VectorType::get(type.getShape(), element), vector);
  vector::StoreOp::create(b, loc, vector, buffer, indices,
                          /*nontemporal=*/false, llvm::MaybeAlign(align));
}

void BlockBuilder::when(Value condition,
                        llvm::function_ref<void(BlockBuilder &)> body) {
  auto guard = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard keep(b);
  b.setInsertionPointToStart(guard.thenBlock());
  body(*this);
}

void BlockBuilder::barrier() { gpu::BarrierOp::create(b, loc); }

int64_t alignmentOfRows(Value buffer) {
  constexpr int64_t start = 64;
  auto type = cast<MemRefType>(buffer.getType());
  int64_t bytes = type.getElementTypeBitWidth() / 8;
  if (auto cast = buffer.getDefiningOp<memref::CastOp>())
    return alignmentOfRows(cast.getSource());
  // Rows in another order are the same rows.
  if (auto turned = buffer.getDefiningOp<memref::TransposeOp>();
      turned && turned.getPermutation().getDimPosition(type.getRank() - 1) ==
                    unsigned(type.getRank() - 1))
    return alignmentOfRows(turned.getIn());
  if (auto view = buffer.getDefiningOp<memref::SubViewOp>())
    if (auto first = getConstantIntValue(view.getMixedOffsets().back());
        first && view.hasUnitStride() &&
        !view.getDroppedDims().test(view.getSourceType().getRank() - 1))
      return std::gcd(alignmentOfRows(view.getSource()), *first * bytes);
  if (type.getRank() == 1 && type.getLayout().isIdentity())
    return start;
  // Every row starts at a multiple of one.
  if (type.getLayout().isIdentity())
    return type.isDynamicDim(type.getRank() - 1)
               ? bytes
               : std::gcd(start, type.getShape().back() * bytes);
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  if (failed(type.getStridesAndOffset(strides, offset)) ||
      strides.back() != 1 || ShapedType::isDynamic(offset))
    return bytes;
  int64_t align = std::gcd(start, offset * bytes);
  for (int64_t stride : ArrayRef(strides).drop_back())
    align = ShapedType::isDynamic(stride) ? std::min(align, bytes)
                                          : std::gcd(align, stride * bytes);
  return align;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

void chooseBelow(BlockBuilder &b, Value number, int64_t bound,
                 llvm::function_ref<void(BlockBuilder &)> yes,
                 llvm::function_ref<void(BlockBuilder &)> no) {
  if (auto known = getConstantIntValue(number))
    return *known < bound ? yes(b) : no(b);
  auto choice = scf::IfOp::create(b.b, b.loc, b.less(number, b.index(bound)),
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b.b);
  b.b.setInsertionPointToStart(choice.thenBlock());
  yes(b);
  b.b.setInsertionPointToStart(choice.elseBlock());
  no(b);
}

BlockLaunch::BlockLaunch(KernelBuilder &k, Value blocks, int64_t threads,
                         int64_t dynamicBytes) {
  Value one = k.index(1), width = k.index(threads);
  Value dynamic;
  if (dynamicBytes)
    dynamic = arith::ConstantOp::create(
        k.b, k.loc, k.b.getI32IntegerAttr(int32_t(dynamicBytes)));
  op = gpu::LaunchOp::create(k.b, k.loc, blocks, one, one, width, one, one,
                             dynamic);
  k.b.setInsertionPointToStart(&op.getBody().front());
  auto end = gpu::TerminatorOp::create(k.b, k.loc);
  k.b.setInsertionPoint(end);
  block = op.getBlockIds().x;
  thread = op.getThreadIds().x;
}

Value BlockLaunch::shared(int64_t elements, Type type) {
  // A number, and not gpu.address_space: the conversion of vectors knows none.
  auto space = IntegerAttr::get(IntegerType::get(type.getContext(), 64),
                                int64_t(NVVM::NVVMMemorySpace::Shared));
  return op.addWorkgroupAttribution(
      MemRefType::get({elements}, type, MemRefLayoutAttrInterface(), space),
      op.getLoc());
}

} // namespace attune
