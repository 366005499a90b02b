//===- AttuneWeightsToMemRef.cpp - Weights as places in memory --*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneMeshOps.h"
#include "attune/Conversion/Passes.h"
#include "attune/Weights/WeightLayout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_CONVERTATTUNEVIEWSTOMEMREF
#define GEN_PASS_DEF_CONVERTATTUNEWEIGHTSTOMEMREF
#include "attune/Conversion/Passes.h.inc"

namespace {
struct ConvertAttuneWeightsToMemRef final
    : impl::ConvertAttuneWeightsToMemRefBase<ConvertAttuneWeightsToMemRef> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<WeightLayout> layout = layoutWeights(module);
    if (failed(layout))
      return signalPassFailure();
    OpBuilder b(&getContext());
    auto blob = MemRefType::get({ShapedType::kDynamic}, b.getI8Type());
    llvm::SmallDenseSet<StringRef> converted;
    for (auto func : module.getOps<func::FuncOp>()) {
      if (func.isExternal())
        continue;
      NamedAttrList attrs;
      attrs.set("attune.kind", b.getStringAttr("weights"));
      if (failed(func.insertArgument(
              0, blob, attrs.getDictionary(&getContext()), func.getLoc())))
        return signalPassFailure();
      converted.insert(func.getSymName());
    }
    module.walk([&](func::CallOp call) {
      if (!converted.contains(call.getCallee()))
        return;
      auto caller = call->getParentOfType<func::FuncOp>();
      call.getOperandsMutable().assign(llvm::to_vector(
          llvm::concat<Value>(SmallVector<Value>{caller.getArgument(0)},
                              SmallVector<Value>(call.getOperands()))));
    });
    module.walk([&](WeightGetOp get) { lower(get, *layout); });
  }

  void lower(WeightGetOp get, const WeightLayout &layout) {
    const WeightPlace &place = *layout.lookup(get.getWeight());
    OpBuilder b(get);
    Location loc = get.getLoc();
    Value bytes = get->getParentOfType<func::FuncOp>().getArgument(0);
    auto type = cast<RankedTensorType>(get.getType());
    auto memrefType = MemRefType::get(type.getShape(), type.getElementType());
    IntegerAttr stride;
    if (get.getLayer())
      stride = b.getI64IntegerAttr(place.layerStride);
    Value view = WeightViewOp::create(
        b, loc, memrefType, get.getWeightAttr(), bytes, get.getLayer(),
        b.getI64IntegerAttr(place.offset), stride);
    get.replaceAllUsesWith(bufferization::ToTensorOp::create(b, loc, type, view,
                                                             /*restrict=*/true)
                               .getResult());
    get.erase();
  }
};

/// Calls of the runtime in place of what ranks exchange.
class MeshCallBuilder {
public:
  explicit MeshCallBuilder(ModuleOp module) : module(module) {}

  LogicalResult run() {
    WalkResult walked = module.walk([&](Operation *op) -> WalkResult {
      OpBuilder b(op);
      Location loc = op->getLoc();
      if (auto rank = dyn_cast<RankOp>(op)) {
        Value number =
            call(b, loc, "attune_rt_rank", {}, b.getI64Type()).getResult(0);
        rank.replaceAllUsesWith(
            arith::IndexCastOp::create(b, loc, b.getIndexType(), number)
                .getResult());
        rank.erase();
      } else if (auto reduce = dyn_cast<AllReduceOp>(op)) {
        if (failed(checkDense(reduce, reduce.getInput())) ||
            failed(checkDense(reduce, reduce.getDest())))
          return failure();
        call(b, loc, "attune_rt_all_reduce",
             {address(b, loc, reduce.getInput()),
              address(b, loc, reduce.getDest()),
              elements(b, loc, reduce.getInput(), 0),
              number(b, loc, reduce.getAccumulate())},
             {});
        reduce.erase();
      } else if (auto gather = dyn_cast<AllGatherOp>(op)) {
        if (failed(checkDense(gather, gather.getInput())) ||
            failed(checkDense(gather, gather.getDest())))
          return failure();
        call(b, loc, "attune_rt_all_gather",
             {address(b, loc, gather.getInput()),
              address(b, loc, gather.getDest()),
              elements(b, loc, gather.getInput(), 1),
              lastSize(b, loc, gather.getInput()),
              asNumber(b, loc, gather.getColumns()),
              lastSize(b, loc, gather.getDest())},
             {});
        gather.erase();
      }
      return success();
    });
    return failure(walked.wasInterrupted());
  }

private:
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

  /// Of the first element, which has 4 bytes.
  static Value address(OpBuilder &b, Location loc, Value buffer) {
    Value base = memref::ExtractAlignedPointerAsIndexOp::create(b, loc, buffer);
    Value offset =
        memref::ExtractStridedMetadataOp::create(b, loc, buffer).getOffset();
    Value bytes = arith::MulIOp::create(
        b, loc, offset, arith::ConstantIndexOp::create(b, loc, 4).getResult());
    return arith::IndexCastOp::create(
        b, loc, b.getI64Type(),
        arith::AddIOp::create(b, loc, base, bytes).getResult());
  }

  ModuleOp module;
};

struct ConvertAttuneViewsToMemRef final
    : impl::ConvertAttuneViewsToMemRefBase<ConvertAttuneViewsToMemRef> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(MeshCallBuilder(getOperation()).run()))
      return signalPassFailure();
    getOperation().walk([](WeightViewOp view) {
      OpBuilder b(view);
      Location loc = view.getLoc();
      auto index = [&](int64_t number) -> Value {
        return arith::ConstantIndexOp::create(b, loc, number);
      };
      Value offset = index(view.getOffset());
      if (view.getLayer()) {
        Value shift = arith::MulIOp::create(b, loc, view.getLayer(),
                                            index(*view.getStride()));
        offset = arith::AddIOp::create(b, loc, offset, shift);
      }
      view.replaceAllUsesWith(
          memref::ViewOp::create(b, loc, cast<MemRefType>(view.getType()),
                                 view.getSource(), offset, ValueRange{})
              .getResult());
      view.erase();
    });
  }
};
} // namespace
} // namespace attune
