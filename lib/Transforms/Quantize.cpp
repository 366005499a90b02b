//===- Quantize.cpp - Matrices of linear layers in bytes --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneDialect.h"
#include "Attune/AttunePanels.h"
#include "attune/Transforms/Passes.h"

#include "mlir/IR/Remarks.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_QUANTIZE
#include "attune/Transforms/Passes.h.inc"

namespace {

/// Scales of fewer neighbours would take an eighth of what the bytes take.
constexpr int64_t kLeastGroup = 32;

struct Quantize final : impl::QuantizeBase<Quantize> {
  using Base::Base;

  void runOnOperation() override {
    if (!isGroup(group)) {
      getOperation().emitError("group must be 4, 8, 12, ..., 65536, not ")
          << group.getValue();
      return signalPassFailure();
    }
    SymbolTable symbols(getOperation());
    llvm::MapVector<WeightOp, SmallVector<WeightGetOp>> reads;
    getOperation().walk([&](WeightGetOp get) {
      if (auto weight = symbols.lookup<WeightOp>(get.getWeight()))
        reads[weight].push_back(get);
    });
    for (auto &[weight, gets] : reads) {
      if (!isMultiplied(gets))
        continue;
      std::string why = findObstacle(weight, gets);
      auto name =
          remark::RemarkOpts::name("quantize").category("attune-quantize");
      if (!why.empty()) {
        ++numLeft;
        remark::missed(weight.getLoc(), name)
            << remark::add("'{0}' {1}", weight.getSymName(), why);
        continue;
      }
      ++numQuantized;
      int64_t width = weight.getLayerType().getDimSize(1);
      int64_t size = findGroup(width);
      remark::passed(weight.getLoc(), name)
          << remark::add("'{0}' in bytes, by groups of {1}",
                         weight.getSymName(), size)
          << remark::metric("Group", size);
      WeightOp scales = quantize(weight, size, symbols);
      for (WeightGetOp get : gets)
        rewrite(get, scales, size);
    }
  }

  static bool isMultiplied(ArrayRef<WeightGetOp> gets) {
    return llvm::any_of(gets, [](WeightGetOp get) {
      return llvm::any_of(get->getUsers(),
                          [](Operation *user) { return isa<LinearOp>(user); });
    });
  }

  /// The largest group that rows of `width` consist of; 0: there is none.
  int64_t findGroup(int64_t width) const {
    int64_t size = group;
    while (size > kLeastGroup && width % size != 0 && size % 8 == 0)
      size /= 2;
    return width % size == 0 ? size : 0;
  }

  std::string findObstacle(WeightOp weight, ArrayRef<WeightGetOp> gets) const {
    RankedTensorType type = weight.getLayerType();
    if (weight.getPanelWidth())
      return "is packed already";
    if (!isa<FloatType>(type.getElementType()))
      return "is quantized already";
    if (type.getRank() != 2 || weight.getParts())
      return "is no single matrix";
    if (findGroup(type.getDimSize(1)) == 0)
      return "has rows of " + std::to_string(type.getDimSize(1)) +
             ", which are no whole groups";
    for (WeightGetOp get : gets)
      for (OpOperand &use : get->getUses()) {
        Operation *user = use.getOwner();
        bool known =
            isa<LinearOp, EmbeddingOp>(user) && use.getOperandNumber() == 1;
        if (!known)
          return ("is used by '" + user->getName().getStringRef() + "' too")
              .str();
        auto linear = dyn_cast<LinearOp>(user);
        if (linear && linear.getRmsEps())
          return "multiplies rows that are not normalised before";
      }
    return "";
  }

  /// Turns the weight into one of bytes. Returns its scales.
  static WeightOp quantize(WeightOp weight, int64_t size,
                           SymbolTable &symbols) {
    Builder b(weight);
    RankedTensorType type = weight.getTensorType();
    SmallVector<int64_t> shape(type.getShape());
    weight->setAttr("attune.group", b.getI64IntegerAttr(size));
    WeightOp scales = weight.clone();
    weight.setType(type.clone(b.getI8Type()));
    shape.back() /= size;
    scales.setType(RankedTensorType::get(shape, b.getF32Type()));
    scales.setSymName((weight.getSymName() + ".scales").str());
    symbols.insert(scales, std::next(weight->getIterator()));
    return scales;
  }

  static void rewrite(WeightGetOp get, WeightOp scales, int64_t size) {
    OpBuilder b(get->getContext());
    b.setInsertionPointAfter(get);
    auto weight = cast<RankedTensorType>(get.getType());
    get.getResult().setType(weight.clone(b.getI8Type()));
    Value factors = WeightGetOp::create(b, get.getLoc(), scales.getLayerType(),
                                        scales.getSymName(), get.getLayer());
    for (Operation *user : llvm::make_early_inc_range(get->getUsers())) {
      b.setInsertionPoint(user);
      if (auto table = dyn_cast<EmbeddingOp>(user)) {
        auto made = QuantizedEmbeddingOp::create(
            b, table.getLoc(), table.getType(), table.getIds(), get, factors,
            table.getAddend(), table.getScaleAttr(), table.getOffsetAttr());
        replace(user, made);
        continue;
      }
      auto linear = cast<LinearOp>(user);
      auto type = cast<RankedTensorType>(linear.getInput().getType());
      SmallVector<int64_t> shape(type.getShape());
      shape.back() /= size;
      auto rows =
          QuantizeRowsOp::create(b, linear.getLoc(), type.clone(b.getI8Type()),
                                 RankedTensorType::get(shape, b.getF32Type()),
                                 RankedTensorType::get(shape, b.getI32Type()),
                                 linear.getInput(), size);
      auto made = QuantizedLinearOp::create(
          b, linear.getLoc(), linear.getType(), rows.getValues(),
          rows.getScales(), rows.getSums(), get, factors, linear.getBias(),
          linear.getResidual(), linear.getActivationAttr(),
          linear.getGatedAttr(), linear.getScaleAttr());
      replace(user, made);
    }
  }

  /// Keeps what others noted on the op.
  static void replace(Operation *op, Operation *by) {
    by->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    op->replaceAllUsesWith(by);
    op->erase();
  }
};
} // namespace
} // namespace attune
