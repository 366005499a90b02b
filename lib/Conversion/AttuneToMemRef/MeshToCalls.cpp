//===- MeshToCalls.cpp - What ranks exchange, as calls ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneMeshOps.h"
#include "attune/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_CONVERTATTUNEMESHTOCALLS
#include "attune/Conversion/Passes.h.inc"

namespace {
/// Calls of the runtime in place of what ranks exchange.
class MeshCallBuilder {
public:
  MeshCallBuilder(ModuleOp module, bool device)
      : module(module), device(device) {}

  LogicalResult run() {
    WalkResult walked = module.walk([&](Operation *op) -> WalkResult {
      OpBuilder b(op);
      Location loc = op->getLoc();
      if (auto rank = dyn_cast<RankOp>(op)) {
        StringRef name = rank.getOfPositions() ? "attune_rt_rank_of_positions"
                                               : "attune_rt_rank";
        Value number = call(b, loc, name, {}, b.getI64Type()).getResult(0);
        rank.replaceAllUsesWith(
            arith::IndexCastOp::create(b, loc, b.getIndexType(), number)
                .getResult());
        rank.erase();
        return success();
      }
      if (!isa<AllReduceOp, AllGatherOp, AllMergeOp>(op))
        return success();
      for (Value operand : op->getOperands())
        if (isa<MemRefType>(operand.getType()) &&
            failed(checkDense(op, operand)))
          return failure();
      if (failed(device ? checkSplit(op) : checkCPU(op)))
        return failure();
      if (auto reduce = dyn_cast<AllReduceOp>(op))
        lower(b, reduce);
      else if (auto merge = dyn_cast<AllMergeOp>(op))
        lower(b, merge);
      else
        lower(b, cast<AllGatherOp>(op));
      op->erase();
      return success();
    });
    return failure(walked.wasInterrupted());
  }

private:
  void lower(OpBuilder &b, AllReduceOp op) {
    Location loc = op.getLoc();
    if (Value experts = op.getExperts()) {
      call(b, loc, "attune_rt_all_reduce_rows",
           {address(b, loc, op.getInput()), address(b, loc, op.getDest()),
            elements(b, loc, op.getInput(), 1), lastSize(b, loc, op.getInput()),
            number(b, loc, op.getAccumulate()), address(b, loc, experts),
            lastSize(b, loc, experts), number(b, loc, *op.getBelow())},
           {});
      return;
    }
    SmallVector<Value> operands = {address(b, loc, op.getInput()),
                                   address(b, loc, op.getDest()),
                                   elements(b, loc, op.getInput(), 0)};
    if (!device)
      operands.push_back(number(b, loc, op.getAccumulate()));
    call(b, loc,
         device ? "attune_rt_device_all_reduce" : "attune_rt_all_reduce",
         operands, {});
  }

  void lower(OpBuilder &b, AllGatherOp op) {
    Location loc = op.getLoc();
    Value from = address(b, loc, op.getInput()),
          to = address(b, loc, op.getDest()),
          columns = asNumber(b, loc, op.getColumns());
    if (device)
      call(b, loc, "attune_rt_device_all_gather",
           {from, to, columns, number(b, loc, op.getOfPositions())}, {});
    else
      call(b, loc, "attune_rt_all_gather",
           {from, to, elements(b, loc, op.getInput(), 1),
            lastSize(b, loc, op.getInput()), columns,
            lastSize(b, loc, op.getDest())},
           {});
  }

  void lower(OpBuilder &b, AllMergeOp op) {
    Location loc = op.getLoc();
    call(b, loc, "attune_rt_all_merge",
         {address(b, loc, op.getInput()), address(b, loc, op.getLse()),
          address(b, loc, op.getDest()), elements(b, loc, op.getInput(), 1),
          lastSize(b, loc, op.getInput())},
         {});
  }

  /// What a GPU's runtime does in one call.
  static LogicalResult checkSplit(Operation *op) {
    auto reduce = dyn_cast<AllReduceOp>(op);
    bool isRow = cast<MemRefType>(op->getOperand(0).getType()).getRank() == 1;
    if (reduce ? !reduce.getAccumulate() && !reduce.getExperts()
               : isa<AllGatherOp>(op) && isRow)
      return success();
    return op->emitOpError("does more than a GPU's ranks do at once; "
                           "attune-split-exchanges splits it");
  }
  static LogicalResult checkCPU(Operation *op) {
    auto gather = dyn_cast<AllGatherOp>(op);
    if (!gather || !gather.getOfPositions())
      return success();
    return op->emitOpError("gathers what ranks on CPUs merge: "
                           "attune.all_merge");
  }

  static Value asNumber(OpBuilder &b, Location loc, Value index) {
    return arith::IndexCastOp::create(b, loc, b.getI64Type(), index);
  }
  static Value lastSize(OpBuilder &b, Location loc, Value buffer) {
    int64_t last = cast<MemRefType>(buffer.getType()).getRank() - 1;
    return asNumber(b, loc, memref::DimOp::create(b, loc, buffer, last));
  }

  /// Row after row without gaps, as far as the type tells.
  static LogicalResult checkDense(Operation *op, Value buffer) {
    auto type = cast<MemRefType>(buffer.getType());
    SmallVector<int64_t> strides;
    int64_t offset, expected = 1;
    if (failed(type.getStridesAndOffset(strides, offset)))
      return op->emitOpError("has a buffer without strides");
    for (int64_t i = type.getRank(); i-- > 0;) {
      bool known = !ShapedType::isDynamic(strides[i]) &&
                   !ShapedType::isDynamic(expected);
      if (type.getDimSize(i) != 1 && known && strides[i] != expected)
        return op->emitOpError("has a buffer with gaps: ") << type;
      expected = ShapedType::isDynamic(expected) || type.isDynamicDim(i)
                     ? ShapedType::kDynamic
                     : expected * type.getDimSize(i);
    }
    return success();
  }

  func::CallOp call(OpBuilder &b, Location loc, StringRef name,
                    ArrayRef<Value> operands, TypeRange results) {
    auto func = module.lookupSymbol<func::FuncOp>(name);
    if (!func) {
      SmallVector<Type> types(operands.size(), b.getI64Type());
      OpBuilder top = OpBuilder::atBlockBegin(module.getBody());
      func = func::FuncOp::create(top, module.getLoc(), name,
                                  b.getFunctionType(types, results));
      func.setPrivate();
    }
    return func::CallOp::create(b, loc, func, operands);
  }

  static Value number(OpBuilder &b, Location loc, int64_t value) {
    return arith::ConstantIntOp::create(b, loc, value, 64);
  }

  /// The product of all sizes but the last `without` ones.
  static Value elements(OpBuilder &b, Location loc, Value buffer,
                        int64_t without) {
    Value count = arith::ConstantIndexOp::create(b, loc, 1);
    int64_t rank = cast<MemRefType>(buffer.getType()).getRank();
    for (int64_t i = 0; i < rank - without; ++i)
      count = arith::MulIOp::create(
          b, loc, count, memref::DimOp::create(b, loc, buffer, i).getResult());
    return arith::IndexCastOp::create(b, loc, b.getI64Type(), count);
  }

  /// The address of the first element.
  static Value address(OpBuilder &b, Location loc, Value buffer) {
    Value base = memref::ExtractAlignedPointerAsIndexOp::create(b, loc, buffer);
    Value offset =
        memref::ExtractStridedMetadataOp::create(b, loc, buffer).getOffset();
    Value width = arith::ConstantIndexOp::create(
        b, loc,
        cast<MemRefType>(buffer.getType()).getElementTypeBitWidth() / 8);
    Value bytes = arith::MulIOp::create(b, loc, offset, width);
    return arith::IndexCastOp::create(
        b, loc, b.getI64Type(),
        arith::AddIOp::create(b, loc, base, bytes).getResult());
  }

  ModuleOp module;
  bool device;
};

struct ConvertAttuneMeshToCalls final
    : impl::ConvertAttuneMeshToCallsBase<ConvertAttuneMeshToCalls> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(MeshCallBuilder(getOperation(), device).run()))
      signalPassFailure();
  }
};
} // namespace
} // namespace attune
