//===- Quantize.cpp - Matrices of linear layers in few bits -----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RepeatedLayers.h"

#include "Attune/AttuneCut.h"
#include "Attune/AttuneDialect.h"
#include "Attune/AttuneFactors.h"
#include "Attune/AttuneKept.h"
#include "Attune/AttunePanels.h"
#include "attune/Transforms/Passes.h"
#include "attune/Transforms/QuantizationRules.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_QUANTIZE
#include "attune/Transforms/Passes.h.inc"

namespace {

/// Scales of fewer neighbours would take more than an eighth of what the bytes
/// take, so groups that are found are not shorter.
constexpr int64_t kLeastGroup = 32;

struct Quantize final : impl::QuantizeBase<Quantize> {
  using Base::Base;

  void runOnOperation() override {
    std::string problem;
    std::vector<std::string> words(rules.begin(), rules.end());
    if (words.empty())
      words = {"int8"};
    auto parsed = QuantizationRules::parse(words, problem);
    if (!parsed) {
      getOperation().emitError(problem);
      return signalPassFailure();
    }
    SymbolTable symbols(getOperation());
    llvm::MapVector<WeightOp, SmallVector<WeightGetOp>> reads;
    getOperation().walk([&](WeightGetOp get) {
      if (auto weight = symbols.lookup<WeightOp>(get.getWeight()))
        reads[weight].push_back(get);
    });
    SmallVector<std::string> matrices;
    llvm::MapVector<WeightOp, QuantizedForm> forms;
    llvm::DenseSet<Type> tables;
    for (auto &[weight, gets] : reads) {
      if (isTable(gets))
        tables.insert(weight.getTensorType());
      flatten(weight);
    }
    for (auto &[weight, gets] : reads) {
      // Adapters beside a matrix stay as they are; they are small.
      if (weight->hasAttr("attune.lora"))
        continue;
      bool stored = storedForm(weight).bits != 0;
      // A table alone is only read, a row at a time: few bits are worth their
      // loss if a checkpoint has them, and no rule rounds it.
      bool multiplied = isMultiplied(gets);
      if (!multiplied && !(stored && isTable(gets))) {
        if (stored)
          leave(weight, "is multiplied by a kernel that takes floats alone");
        continue;
      }
      matrices.push_back(weight.getSymName().str());
      std::optional<QuantizedForm> form =
          chooseForm(weight,
                     tables.contains(weight.getTensorType())
                         ? QuantizationRules::Use::Vocabulary
                     : isRouter(gets) ? QuantizationRules::Use::Router
                                      : QuantizationRules::Use::Layer,
                     *parsed);
      if (!form)
        return signalPassFailure();
      if (form->bits == 0 || (!multiplied && !(*form == storedForm(weight))))
        continue;
      if (std::string why = findObstacle(weight, gets, *form); !why.empty()) {
        leave(weight, why);
        continue;
      }
      form->group = findGroup(widthOf(weight), form->group);
      // Weights with this attribute are left alone when numbers are chosen.
      if (tables.contains(weight.getTensorType()))
        weight->setAttr("attune.vocabulary", UnitAttr::get(&getContext()));
      forms[weight] = *form;
    }
    for (const std::string &pattern : parsed->unused()) {
      getOperation().emitError("no matrix has a name that '")
          << pattern << "' of --quantize matches; there are "
          << (matrices.empty() ? "none" : llvm::join(matrices, ", "));
      return signalPassFailure();
    }
    leaveHalves(symbols, forms);
    for (auto &[weight, form] : forms)
      quantizeAll(weight, reads[weight], form, symbols);
    getOperation().walk([&](MoEOp op) {
      if (auto up = scaled.find(op.getUp()); up != scaled.end())
        rewrite(op, up->second, scaled.at(op.getDown()));
    });
    scaled.clear();
  }

  /// The kernel of a mixture has both of its stacks in few bits, or none.
  void leaveHalves(SymbolTable &symbols,
                   llvm::MapVector<WeightOp, QuantizedForm> &forms) {
    auto stackOf = [&](Value stack) {
      auto get = stack.getDefiningOp<WeightGetOp>();
      return get ? symbols.lookup<WeightOp>(get.getWeight()) : WeightOp();
    };
    for (bool changed = true; changed;) {
      changed = false;
      getOperation().walk([&](MoEOp op) {
        WeightOp up = stackOf(op.getUp()), down = stackOf(op.getDown());
        bool haveUp = up && forms.count(up),
             haveDown = down && forms.count(down);
        if (haveUp == haveDown)
          return;
        WeightOp one = haveUp ? up : down;
        leave(one, "is of experts whose other matrices stay as they are");
        forms.erase(one);
        changed = true;
      });
    }
  }

  /// The form that the rules give a weight; nothing, after an error, if they
  /// tell layers apart that are stored alike.
  static std::optional<QuantizedForm> chooseForm(WeightOp weight,
                                                 QuantizationRules::Use use,
                                                 QuantizationRules &rules) {
    return chooseForLayers<QuantizedForm>(
        weight, "--quantize", [&](ArrayRef<std::string> names) {
          QuantizedForm form = rules.lookup(names, use);
          return form.stored ? storedForm(weight) : form;
        });
  }

  /// The form in which the checkpoint has the weight, as its attribute says;
  /// else none.
  static QuantizedForm storedForm(WeightOp weight) {
    auto form = weight->getAttrOfType<StringAttr>("attune.stored");
    if (!form)
      return {};
    return QuantizationRules::parseForm(form.getValue())
        .value_or(QuantizedForm{});
  }

  /// Scales in two levels are those of whole blocks of columns. Other weights
  /// get the form of one level that has the same numbers.
  void flatten(WeightOp weight) {
    QuantizedForm form = storedForm(weight);
    if (!form.hasByteScales() || keepsBlocks(weight))
      return;
    weight->setAttr("attune.stored",
                    StringAttr::get(&getContext(), form.flat().text()));
  }

  /// Whether rows of a weight are whole blocks of columns in a checkpoint.
  static bool keepsBlocks(WeightOp weight) {
    int64_t width = widthOf(weight);
    std::optional<KeptPart> kept = keptOf(weight);
    if (width % kScaleBlock != 0 || factorOf(weight) ||
        (kept && !kept->columns.empty()))
      return false;
    std::optional<WeightCut> cut = getCut(weight);
    return !cut || cut->cutsParts ||
           llvm::all_of(cut->columns, [&](const WeightCut::Rows &own) {
             return own.begin % kScaleBlock == 0 && own.count == width;
           });
  }

  void leave(WeightOp weight, StringRef why) {
    ++numLeft;
    remark::missed(
        weight.getLoc(),
        remark::RemarkOpts::name("quantize").category("attune-quantize"))
        << remark::add("'{0}' {1}", weight.getSymName(), why);
  }

  void quantizeAll(WeightOp weight, ArrayRef<WeightGetOp> gets,
                   QuantizedForm form, SymbolTable &symbols) {
    auto name =
        remark::RemarkOpts::name("quantize").category("attune-quantize");
    ++numQuantized;
    remark::passed(weight.getLoc(), name)
        << remark::add("'{0}' in {1}, by groups of {2}{3}", weight.getSymName(),
                       form.byteFloats    ? "floats of 8 bits"
                       : form.areFloats() ? "floats of 4 bits"
                       : form.bits == 4   ? "4 bits"
                                          : "bytes",
                       form.group, form.zeros ? " with zero points" : "")
        << remark::metric("Group", form.group);
    WeightOp order = form.ordered ? addOrder(weight, symbols) : WeightOp();
    WeightOp scales = quantize(weight, form, symbols);
    for (WeightGetOp get : gets)
      rewrite(get, scales, order, form);
  }

  /// Whether tokens pick rows of it. A head over the same vocabulary is of the
  /// same type.
  static bool isTable(ArrayRef<WeightGetOp> gets) {
    return llvm::any_of(gets, [](WeightGetOp get) {
      return llvm::any_of(get->getUsers(), [](Operation *user) {
        return isa<EmbeddingOp>(user);
      });
    });
  }

  /// Whether its products choose experts.
  static bool isRouter(ArrayRef<WeightGetOp> gets) {
    return llvm::any_of(gets, [](WeightGetOp get) {
      return llvm::any_of(get->getUsers(), [](Operation *user) {
        return isa<LinearOp>(user) &&
               llvm::any_of(user->getUsers(), llvm::IsaPred<RouterOp>);
      });
    });
  }

  static bool isMultiplied(ArrayRef<WeightGetOp> gets) {
    return llvm::any_of(gets, [](WeightGetOp get) {
      return llvm::any_of(get->getUsers(), [](Operation *user) {
        return isa<LinearOp, MoEOp>(user);
      });
    });
  }

  /// The largest group, of at most `size`, that rows of `width` consist of; 0:
  /// there is none.
  static int64_t findGroup(int64_t width, int64_t size) {
    while (size > kLeastGroup && width % size != 0 && size % 8 == 0)
      size /= 2;
    return width % size == 0 ? size : 0;
  }

  static int64_t widthOf(WeightOp weight) {
    return weight.getTensorType().getShape().back();
  }

  static std::string findObstacle(WeightOp weight, ArrayRef<WeightGetOp> gets,
                                  const QuantizedForm &form) {
    int64_t group = form.group;
    RankedTensorType type = weight.getLayerType();
    if (weight.getPanelWidth())
      return "is packed already";
    if (!isa<FloatType>(type.getElementType()))
      return "is quantized already";
    if (type.getRank() != (weight.getParts() ? 3 : 2))
      return "is no matrix, and no stack of these";
    if (findGroup(widthOf(weight), group) == 0)
      return "has rows of " + std::to_string(widthOf(weight)) +
             ", which are no whole groups";
    if (form.ordered)
      if (std::string why = findObstacleOfOrder(weight, gets); !why.empty())
        return why;
    for (WeightGetOp get : gets)
      for (OpOperand &use : get->getUses()) {
        Operation *user = use.getOwner();
        auto moe = dyn_cast<MoEOp>(user);
        bool known =
            moe ? use.get() == moe.getUp() || use.get() == moe.getDown()
                : isa<LinearOp, EmbeddingOp>(user) &&
                      use.getOperandNumber() == 1;
        if (!known)
          return ("is used by '" + user->getName().getStringRef() + "' too")
              .str();
        auto linear = dyn_cast<LinearOp>(user);
        if (linear && linear.getRmsEps())
          return "multiplies rows that are not normalised before";
      }
    return "";
  }

  /// Why the columns of a weight cannot be in another order.
  static std::string findObstacleOfOrder(WeightOp weight,
                                         ArrayRef<WeightGetOp> gets) {
    std::optional<WeightCut> cut = getCut(weight);
    std::optional<KeptPart> kept = keptOf(weight);
    if (weight.getParts())
      return "is of experts, whose groups are of columns that stand apart";
    if ((cut && cut->cutsColumns()) || (kept && !kept->columns.empty()))
      return "has a part of the columns, and groups of some that stand apart";
    for (WeightGetOp get : gets)
      if (!llvm::all_of(get->getUsers(), llvm::IsaPred<LinearOp>))
        return "is a table whose groups are of columns that stand apart";
    return "";
  }

  /// Declares the order of the columns of a weight.
  static WeightOp addOrder(WeightOp weight, SymbolTable &symbols) {
    Builder b(weight);
    RankedTensorType type = weight.getTensorType();
    SmallVector<int64_t> shape(type.getShape());
    int64_t columns = shape.pop_back_val(), rows = shape.pop_back_val();
    if (std::optional<WeightCut> cut = getCut(weight))
      rows = cut->wholeRows;
    if (std::optional<KeptPart> kept = keptOf(weight))
      rows = kept->wholeRows;
    shape.push_back(columns);
    WeightOp order = weight.clone();
    order.setType(RankedTensorType::get(shape, b.getF32Type()));
    for (StringRef name : {"attune.cut", "attune.kept", "attune.stored",
                           "attune.vocabulary", "attune.rows"})
      order->removeAttr(name);
    order->setAttr("attune.order", b.getDenseI64ArrayAttr({rows, columns}));
    order.setSymName((weight.getSymName() + ".order").str());
    symbols.insert(order, std::next(weight->getIterator()));
    return order;
  }

  /// Turns the weight into one of few bits. Returns its scales.
  static WeightOp quantize(WeightOp weight, QuantizedForm form,
                           SymbolTable &symbols) {
    Builder b(weight);
    RankedTensorType type = weight.getTensorType();
    SmallVector<int64_t> shape(type.getShape());
    weight->setAttr("attune.group", b.getI64IntegerAttr(form.group));
    if (form.zeros)
      weight->setAttr("attune.zeros", b.getUnitAttr());
    if (form.ordered)
      weight->setAttr("attune.ordered", b.getUnitAttr());
    WeightOp scales = weight.clone();
    weight.setType(type.clone(form.byteFloats
                                  ? Type(b.getType<Float8E4M3FNType>())
                                  : b.getIntegerType(unsigned(form.bits))));
    bool levels = form.hasByteScales();
    shape.back() = levels ? form.scaleBytes(shape.back())
                          : shape.back() / form.group * (form.zeros ? 2 : 1);
    bool powers = form.scales == ScaleType::Power;
    Type scale = powers   ? b.getType<Float8E8M0FNUType>()
                 : levels ? b.getI8Type()
                 : form.scales == ScaleType::Single ? b.getF32Type()
                                                    : Type(b.getF16Type());
    if (levels || (form.bits == 4 && form.scales != ScaleType::Half))
      weight->setAttr("attune.scales", TypeAttr::get(scale));
    if (form.bits == 4 && (levels || form.scales == ScaleType::Single))
      scales->setAttr("attune.bits", b.getI64IntegerAttr(4));
    if (levels)
      scales->setAttr("attune.levels", b.getUnitAttr());
    if (form.byteFloats)
      scales->setAttr("attune.floats", b.getUnitAttr());
    scales.setType(RankedTensorType::get(shape, scale));
    scales.setSymName((weight.getSymName() + ".scales").str());
    symbols.insert(scales, std::next(weight->getIterator()));
    return scales;
  }

  /// A stack's scales, and what they are of.
  using Scales = std::pair<Value, QuantizedForm>;

  void rewrite(WeightGetOp get, WeightOp scales, WeightOp order,
               QuantizedForm form) {
    OpBuilder b(get->getContext());
    b.setInsertionPointAfter(get);
    auto weight = SymbolTable::lookupNearestSymbolFrom<WeightOp>(
        get, get.getWeightAttr());
    get.getResult().setType(weight.getLayerType());
    Value factors = WeightGetOp::create(b, get.getLoc(), scales.getLayerType(),
                                        scales.getSymName(), get.getLayer());
    Value places =
        order ? WeightGetOp::create(b, get.getLoc(), order.getLayerType(),
                                    order.getSymName(), get.getLayer())
                    .getResult()
              : Value();
    scaled[get] = {factors, form};
    for (Operation *user : llvm::make_early_inc_range(get->getUsers())) {
      // Mixtures follow when both of their stacks are done.
      if (isa<MoEOp>(user))
        continue;
      b.setInsertionPoint(user);
      if (auto table = dyn_cast<EmbeddingOp>(user)) {
        auto made = QuantizedEmbeddingOp::create(
            b, table.getLoc(), table.getType(), table.getIds(), get, factors,
            table.getAddend(), table.getScaleAttr(), table.getOffsetAttr(),
            form.zeros ? b.getUnitAttr() : UnitAttr());
        replace(user, made);
        continue;
      }
      auto linear = cast<LinearOp>(user);
      Value input = linear.getInput();
      if (places)
        input = sortColumns(b, linear.getLoc(), input, places);
      Rows rows = quantizeRows(b, linear.getLoc(), input, form.group,
                               exactActivations || form.byteFloats);
      auto made = QuantizedLinearOp::create(
          b, linear.getLoc(), linear.getType(), rows.values, rows.scales,
          rows.sums, get, factors, linear.getBias(), linear.getResidual(),
          linear.getActivation(), linear.getGated(), linear.getScaleAttr(),
          form.zeros);
      replace(user, made);
    }
  }

  void rewrite(MoEOp op, Scales up, Scales down) {
    OpBuilder b(op);
    // Floats of 8 bits multiply numbers, and a mixture has one kind of rows.
    bool exact =
        exactActivations || up.second.byteFloats || down.second.byteFloats;
    Rows rows =
        quantizeRows(b, op.getLoc(), op.getInput(), up.second.group, exact);
    int64_t hidden =
        cast<RankedTensorType>(op.getDown().getType()).getShape().back();
    auto made = QuantizedMoEOp::create(
        b, op.getLoc(), op.getType(), rows.values, rows.scales, rows.sums,
        op.getExperts(), op.getWeights(), op.getUp(), up.first, op.getDown(),
        down.first, op.getUpBias(), op.getDownBias(), op.getResidual(),
        static_cast<uint64_t>(hidden), op.getGated(), op.getActivation(),
        op.getLimitAttr(), op.getUpOffset(), up.second.zeros,
        down.second.zeros);
    replace(op, made);
  }

  /// Rows whose columns are those that `places` says. There are few beside the
  /// matrix, so that a loop over them costs little.
  static Value sortColumns(OpBuilder &b, Location loc, Value rows,
                           Value places) {
    auto type = cast<RankedTensorType>(rows.getType());
    auto rank = unsigned(type.getRank());
    SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, rows);
    Value empty = tensor::EmptyOp::create(b, loc, sizes, type.getElementType());
    AffineMap all = b.getMultiDimIdentityMap(rank);
    SmallVector<AffineMap> maps = {all.getMinorSubMap(1), all};
    SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
    auto body = [&](OpBuilder &b, Location loc, ValueRange args) {
      Value place = arith::FPToSIOp::create(b, loc, b.getI32Type(), args[0]);
      SmallVector<Value> at;
      for (unsigned dim = 0; dim + 1 < rank; ++dim)
        at.push_back(linalg::IndexOp::create(b, loc, dim));
      at.push_back(arith::IndexCastOp::create(b, loc, b.getIndexType(), place));
      Value x = tensor::ExtractOp::create(b, loc, rows, at);
      linalg::YieldOp::create(b, loc, x);
    };
    return linalg::GenericOp::create(b, loc, type, places, empty, maps, loops,
                                     body)
        .getResult(0);
  }

  /// Rows as bytes, or with exact activations as they are.
  struct Rows {
    Value values, scales, sums;
  };

  static Rows quantizeRows(OpBuilder &b, Location loc, Value input,
                           int64_t size, bool exact) {
    if (exact)
      return {input, Value(), Value()};
    auto type = cast<RankedTensorType>(input.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape.back() /= size;
    auto made = QuantizeRowsOp::create(
        b, loc, type.clone(b.getI8Type()),
        RankedTensorType::get(shape, b.getF32Type()),
        RankedTensorType::get(shape, b.getI32Type()), input, size);
    return {made.getValues(), made.getScales(), made.getSums()};
  }

  /// Keeps what others noted on the op.
  static void replace(Operation *op, Operation *by) {
    by->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    op->replaceAllUsesWith(by);
    op->erase();
  }

  /// By what weight_get gives.
  llvm::DenseMap<Value, Scales> scaled;
};
} // namespace
} // namespace attune
