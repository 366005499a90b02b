//===- AttuneWeightsToMemRef.cpp - Weights as places in memory --*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneDialect.h"
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

struct ConvertAttuneViewsToMemRef final
    : impl::ConvertAttuneViewsToMemRefBase<ConvertAttuneViewsToMemRef> {
  using Base::Base;

  void runOnOperation() override {
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
