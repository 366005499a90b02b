//===- TensorCores.cpp - Copies, fragments and products of warps ----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorCores.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"

using namespace mlir;

namespace attune {

Type elementOf(Value buffer) {
  return cast<MemRefType>(buffer.getType()).getElementType();
}
int64_t bytesOf(Value buffer) {
  return elementOf(buffer).getIntOrFloatBitWidth() / 8;
}

//===----------------------------------------------------------------------===//
// Copies into shared memory
//===----------------------------------------------------------------------===//

void copyAsync(BlockBuilder &b, Value to, Value toAt, Value from, ValueRange at,
               int64_t elements, Value valid) {
  // Only 16 bytes can go past the first-level cache.
  bool whole = elements * bytesOf(from) == 16;
  nvgpu::DeviceAsyncCopyOp::create(
      b.b, b.loc, nvgpu::DeviceAsyncTokenType::get(b.b.getContext()), to,
      ValueRange{toAt}, from, at, b.b.getIndexAttr(elements), valid,
      whole ? b.b.getUnitAttr() : UnitAttr());
}

void commitCopies(BlockBuilder &b) {
  NVVM::CpAsyncCommitGroupOp::create(b.b, b.loc);
}

void awaitCopies(BlockBuilder &b, int64_t groups) {
  NVVM::CpAsyncWaitGroupOp::create(b.b, b.loc, groups);
  b.barrier();
}

Value validOf(BlockBuilder &b, Value at, int64_t count, int64_t size) {
  if (size % count == 0)
    return b.select(b.less(at, b.index(size)), b.index(count), b.index(0));
  Value rest = b.sub(b.index(size), at);
  rest = arith::MaxSIOp::create(b.b, b.loc, rest, b.index(0));
  return b.min(rest, b.index(count));
}

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

Value toRegister(BlockBuilder &b, Value value) {
  Type i32 = b.b.getI32Type();
  if (!isa<VectorType>(value.getType()))
    return arith::BitcastOp::create(b.b, b.loc, i32, value);
  if (getElementTypeOrSelf(value.getType()).isF16())
    return value;
  return element(b, bitCast(b, value, VectorType::get({1}, i32)), 0);
}

Registers toRegisters(BlockBuilder &b, ArrayRef<Value> values) {
  Registers registers;
  for (Value value : values)
    registers.push_back(toRegister(b, value));
  return registers;
}

Value roundToTF32(BlockBuilder &b, Value number) {
  return NVVM::ConvertFloatToTF32Op::create(b.b, b.loc, b.b.getI32Type(),
                                            number, NVVM::FPRoundingMode::RNA);
}

Value element(BlockBuilder &b, Value vector, int64_t i) {
  return vector::ExtractOp::create(b.b, b.loc, vector, i);
}
Value bitCast(BlockBuilder &b, Value value, Type type) {
  return vector::BitCastOp::create(b.b, b.loc, type, value);
}

SmallVector<Value> loadMatrices(BlockBuilder &b, Value from, Value at,
                                int64_t count, bool transpose) {
  Value all = nvgpu::LdMatrixOp::create(
      b.b, b.loc, VectorType::get({count, 2}, elementOf(from)), from,
      ValueRange{at}, transpose, /*numTiles=*/count);
  SmallVector<Value> pairs;
  for (int64_t i = 0; i < count; ++i)
    pairs.push_back(element(b, all, i));
  return pairs;
}

Value multiplyAdd(BlockBuilder &b, ArrayRef<Value> a, ArrayRef<Value> panel,
                  Value sum, NVVM::MMATypes type) {
  Type f32 = b.b.getF32Type();
  Registers sums;
  for (int64_t pair = 0; pair < 2; ++pair)
    for (int64_t i = 0; i < 2; ++i)
      sums.push_back(vector::ExtractOp::create(b.b, b.loc, sum,
                                               ArrayRef<int64_t>{pair, i}));
  auto four =
      LLVM::LLVMStructType::getLiteral(b.b.getContext(), {f32, f32, f32, f32});
  Value made = NVVM::MmaOp::create(
      b.b, b.loc, four, a, panel, sums,
      ArrayRef<int64_t>{16, 8, type == NVVM::MMATypes::tf32 ? 8 : 16},
      /*b1Op=*/std::nullopt, /*intOverflow=*/std::nullopt,
      std::array<NVVM::MMATypes, 2>{type, type},
      std::array<NVVM::MMALayout, 2>{NVVM::MMALayout::row,
                                     NVVM::MMALayout::col});
  for (int64_t i = 0; i < 4; ++i)
    sums[i] = LLVM::ExtractValueOp::create(b.b, b.loc, made, i);
  return vector::FromElementsOp::create(b.b, b.loc, sum.getType(), sums);
}

} // namespace attune
