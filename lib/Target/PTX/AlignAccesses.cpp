//===- AlignAccesses.cpp - Wide loads and stores ----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Target/PTX/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_ALIGNACCESSES
#include "attune/Target/PTX/Passes.h.inc"

namespace {

/// Buffers, and the views that frames and weights are cut into, start on such
/// addresses of the device.
constexpr int64_t kBufferAlignment = 64;

/// A number that divides the value, whatever it is; 0 divides only zero.
int64_t divisor(Value value, unsigned depth = 8) {
  if (auto constant = getConstantIntValue(value))
    return std::abs(*constant);
  if (depth == 0)
    return 1;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (!loop || loop.getInductionVar() != argument)
      return 1;
    return std::gcd(divisor(loop.getLowerBound(), depth - 1),
                    divisor(loop.getStep(), depth - 1));
  }
  Operation *op = value.getDefiningOp();
  if (isa<arith::MulIOp>(op))
    return divisor(op->getOperand(0), depth - 1) *
           divisor(op->getOperand(1), depth - 1);
  if (isa<arith::AddIOp, arith::SubIOp, arith::MinSIOp>(op))
    return std::gcd(divisor(op->getOperand(0), depth - 1),
                    divisor(op->getOperand(1), depth - 1));
  return 1;
}
int64_t divisor(OpFoldResult value) {
  if (auto constant = getConstantIntValue(value))
    return std::abs(*constant);
  return divisor(cast<Value>(value));
}

/// Numbers that divide the strides of a buffer, in elements.
SmallVector<int64_t> strideDivisors(MemRefType type) {
  SmallVector<int64_t> divisors(type.getRank(), 1);
  if (type.getLayout().isIdentity()) {
    int64_t product = 1;
    for (int64_t i = type.getRank() - 1; i >= 0; --i) {
      divisors[i] = product;
      if (!type.isDynamicDim(i))
        product *= type.getDimSize(i);
    }
    return divisors;
  }
  SmallVector<int64_t> strides;
  int64_t offset;
  if (succeeded(type.getStridesAndOffset(strides, offset)))
    for (auto [divisor, stride] : llvm::zip(divisors, strides))
      if (!ShapedType::isDynamic(stride))
        divisor = stride;
  return divisors;
}

/// A number of bytes that divides the address of an element.
template <typename Range>
int64_t alignmentOf(Value buffer, const Range &indices) {
  auto type = cast<MemRefType>(buffer.getType());
  int64_t bytes = (type.getElementTypeBitWidth() + 7) / 8;
  int64_t align = kBufferAlignment;
  if (auto turned = buffer.getDefiningOp<memref::TransposeOp>()) {
    SmallVector<OpFoldResult> placed(indices.size());
    for (auto [i, index] : llvm::enumerate(indices))
      placed[turned.getPermutation().getDimPosition(unsigned(i))] = index;
    return alignmentOf(turned.getIn(), placed);
  }
  if (auto view = buffer.getDefiningOp<memref::SubViewOp>()) {
    align = alignmentOf(view.getSource(), view.getMixedOffsets());
  } else if (!type.getLayout().isIdentity()) {
    return bytes;
  }
  for (auto [index, stride] : llvm::zip(indices, strideDivisors(type)))
    align = std::gcd(align, divisor(index) * stride * bytes);
  return align;
}

struct AlignAccesses final : impl::AlignAccessesBase<AlignAccesses> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<VectorTransferOpInterface> transfers;
    getOperation().walk([&](VectorTransferOpInterface transfer) {
      transfers.push_back(transfer);
    });
    for (VectorTransferOpInterface transfer : transfers)
      widen(transfer);
  }

  void widen(VectorTransferOpInterface transfer) {
    auto type = dyn_cast<MemRefType>(transfer.getBase().getType());
    VectorType vector = transfer.getVectorType();
    int64_t bytes =
        vector.getNumElements() * ((vector.getElementTypeBitWidth() + 7) / 8);
    // Whole vectors along the last dimension, of a power of two of bytes.
    if (!type || vector.getRank() != 1 || transfer.getMask() ||
        transfer.hasOutOfBoundsDim() || bytes != (bytes & -bytes) ||
        !transfer.getPermutationMap().isMinorIdentity() ||
        vector.getElementType() != type.getElementType())
      return;
    SmallVector<int64_t> strides;
    int64_t offset;
    if (failed(type.getStridesAndOffset(strides, offset)) ||
        strides.back() != 1)
      return;
    SmallVector<Value> indices(transfer.getIndices());
    int64_t align = std::min(alignmentOf(transfer.getBase(), indices), bytes);
    if (align * 8 <= vector.getElementTypeBitWidth())
      return;
    OpBuilder b(transfer);
    Location loc = transfer.getLoc();
    if (auto read = dyn_cast<vector::TransferReadOp>(*transfer)) {
      Value loaded = vector::LoadOp::create(b, loc, vector, transfer.getBase(),
                                            indices, /*nontemporal=*/false,
                                            llvm::MaybeAlign(align));
      read.replaceAllUsesWith(loaded);
    } else {
      auto write = cast<vector::TransferWriteOp>(*transfer);
      vector::StoreOp::create(b, loc, write.getVector(), transfer.getBase(),
                              indices, /*nontemporal=*/false,
                              llvm::MaybeAlign(align));
    }
    transfer->erase();
    ++numWidened;
  }
};
} // namespace
} // namespace attune
