//===- ChooseCandidates.cpp - Decoding gives its largest logits -----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneDialect.h"
#include "attune/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_CHOOSECANDIDATES
#include "attune/Transforms/Passes.h.inc"

namespace {
struct ChooseCandidates final : impl::ChooseCandidatesBase<ChooseCandidates> {
  using Base::Base;

  void runOnOperation() override {
    // What a prompt's last tokens give is chosen from, too.
    for (const char *name : {"decode", "decode_span"})
      chooseIn(getOperation().lookupSymbol<func::FuncOp>(name));
  }

  void chooseIn(func::FuncOp decode) {
    if (!decode || decode.isExternal() || !decode->hasAttr("attune.entry") ||
        !decode.getBody().hasOneBlock())
      return;
    for (unsigned result = 0; result < decode.getNumResults(); ++result)
      if (isLogits(decode, result)) {
        if (failed(choose(decode, result)))
          signalPassFailure();
        ++numChosen;
        return;
      }
  }

  static bool isLogits(func::FuncOp decode, unsigned result) {
    auto name = decode.getResultAttrOfType<StringAttr>(result, "attune.name");
    auto shape = decode.getResultAttrOfType<ArrayAttr>(result, "attune.shape");
    auto type = dyn_cast<RankedTensorType>(decode.getResultTypes()[result]);
    return name && name.getValue() == "logits" && shape && shape.size() == 2 &&
           type && type.getRank() == 2 && !type.isDynamicDim(1) &&
           type.getElementType().isF32();
  }

  static LogicalResult choose(func::FuncOp decode, unsigned result) {
    OpBuilder b(decode.getContext());
    auto end = cast<func::ReturnOp>(decode.getBody().front().getTerminator());
    Value logits = end.getOperand(result);
    Location loc = logits.getLoc();
    StringAttr size = b.getStringAttr("candidates");
    NamedAttrList number;
    number.set("attune.kind", b.getStringAttr("size"));
    number.set("attune.name", size);
    unsigned last = decode.getNumArguments();
    if (failed(decode.insertArgument(
            last, b.getIndexType(), number.getDictionary(b.getContext()), loc)))
      return failure();
    b.setInsertionPoint(end);
    auto type = cast<RankedTensorType>(logits.getType());
    SmallVector<int64_t> sizes = {type.getDimSize(0), ShapedType::kDynamic};
    auto top =
        TopKOp::create(b, loc, RankedTensorType::get(sizes, b.getI64Type()),
                       RankedTensorType::get(sizes, b.getF32Type()), logits,
                       decode.getArgument(last));
    auto batch =
        decode.getResultAttrOfType<ArrayAttr>(result, "attune.shape")[0];
    std::pair<Value, StringRef> given[] = {
        {top.getIds(), "candidate_ids"}, {top.getValues(), "candidate_logits"}};
    for (auto [value, name] : given) {
      NamedAttrList output;
      output.set("attune.kind", b.getStringAttr("output"));
      output.set("attune.name", b.getStringAttr(name));
      output.set("attune.shape", b.getArrayAttr({batch, size}));
      if (failed(decode.insertResult(decode.getNumResults(), value.getType(),
                                     output.getDictionary(b.getContext()))))
        return failure();
      end.getOperandsMutable().append(value);
    }
    return success();
  }
};
} // namespace
} // namespace attune
