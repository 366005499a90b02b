//===- LoraBranches.cpp - Adapters beside the matrices they are for -------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RepeatedLayers.h"

#include "Attune/AttuneCut.h"
#include "Attune/AttuneKept.h"
#include "attune/Transforms/NameRules.h"
#include "attune/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_LORABRANCHES
#include "attune/Transforms/Passes.h.inc"

namespace {
RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// The stacks of a matrix: A of all adapters, and B.
struct Stacks {
  WeightOp down, up;
};

struct LoraBranches final : impl::LoraBranchesBase<LoraBranches> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    NameRules<int64_t> ranks;
    if (names.empty() || failed(parse(ranks)))
      return names.empty() ? void() : signalPassFailure();
    SymbolTable symbols(module);
    llvm::MapVector<WeightOp, SmallVector<WeightGetOp>> reads;
    module.walk([&](WeightGetOp get) {
      if (auto weight = symbols.lookup<WeightOp>(get.getWeight()))
        reads[weight].push_back(get);
    });
    for (auto &[weight, gets] : reads)
      if (failed(branch(weight, gets, ranks, symbols)))
        return signalPassFailure();
    for (const std::string &pattern : ranks.unused()) {
      module.emitError("no matrix of the model is made of '")
          << pattern << "', which an adapter changes";
      return signalPassFailure();
    }
    if (failed(passNumbers()))
      return signalPassFailure();
    Builder b(module);
    SmallVector<StringRef> all(names.begin(), names.end());
    module->setAttr("attune.adapters", b.getStrArrayAttr(all));
  }

private:
  LogicalResult parse(NameRules<int64_t> &parsed) {
    for (const std::string &rule : ranks) {
      auto [pattern, number] = StringRef(rule).rsplit(':');
      int64_t rank;
      std::string problem;
      if (number.getAsInteger(10, rank) || rank < 1)
        problem = "'" + rule + "' is no rule; expected NAME:RANK";
      else if (parsed.add(pattern, rank, "attune-lora-branches", problem))
        continue;
      return getOperation().emitError(problem);
    }
    return success();
  }

  /// The greatest rank that adapters have for a tensor in any layer; 0: they
  /// leave it as it is.
  static int64_t findRank(WeightOp weight, StringRef tensor,
                          NameRules<int64_t> &ranks) {
    int64_t most = 0;
    for (int64_t layer = 0; layer < weight.getNumLayers(); ++layer)
      if (const int64_t *rank =
              ranks.lookup({substituteLayer(tensor.str(), layer)}))
        most = std::max(most, *rank);
    return most;
  }

  static std::string findObstacle(WeightOp weight, ArrayRef<WeightGetOp> gets) {
    if (weight.getParts() || weight.getLayerType().getRank() != 2)
      return "is no single matrix";
    if (!isa<FloatType>(weight.getTensorType().getElementType()) ||
        weight.getPanelWidth())
      return "is packed already";
    if (keptOf(weight))
      return "lost heads";
    for (WeightGetOp get : gets)
      for (OpOperand &use : get->getUses()) {
        auto linear = dyn_cast<LinearOp>(use.getOwner());
        if (!linear || use.getOperandNumber() != 1)
          return ("is used by '" + use.getOwner()->getName().getStringRef() +
                  "', too")
              .str();
        if (linear.getRmsEps())
          return "multiplies rows that are not normalised before";
      }
    return "";
  }

  LogicalResult branch(WeightOp weight, ArrayRef<WeightGetOp> gets,
                       NameRules<int64_t> &rules, SymbolTable &symbols) {
    // The rank of each tensor that adapters change.
    llvm::MapVector<StringAttr, int64_t> changed;
    Builder b(weight);
    int64_t total = 0;
    for (auto source : weight.getSources().getAsRange<WeightSourceAttr>()) {
      StringAttr name = b.getStringAttr(source.getTensor());
      int64_t rank = findRank(weight, source.getTensor(), rules);
      if (rank && changed.insert({name, rank}).second)
        total += rank;
    }
    if (changed.empty())
      return success();
    if (std::string why = findObstacle(weight, gets); !why.empty())
      return weight.emitError("'")
             << changed.front().first.getValue()
             << "', which an adapter changes, cannot have it beside it, as '"
             << weight.getSymName() << "' " << why
             << "; adapters can be merged into the weights";
    Stacks stacks = makeStacks(weight, changed, total, symbols);
    for (WeightGetOp get : gets)
      for (Operation *user : llvm::make_early_inc_range(get->getUsers()))
        rewrite(cast<LinearOp>(user), get, stacks);
    ++numBranched;
    return success();
  }

  /// A [adapters, ranks, in]: what adapters have for each tensor, below each
  /// other. B [adapters, out, ranks]: each tensor's rows in the columns of its
  /// own ranks; the rest is zero.
  Stacks makeStacks(WeightOp weight,
                    const llvm::MapVector<StringAttr, int64_t> &changed,
                    int64_t total, SymbolTable &symbols) {
    Builder b(weight);
    auto count = static_cast<int64_t>(names.size());
    SmallVector<int64_t> begins, sizes;
    SmallVector<Attribute> downSources, upSources;
    for (auto [name, rank] : changed) {
      downSources.push_back(WeightSourceAttr::get(
          b.getContext(), (name.getValue() + ".lora_A.{e}").str(), false, 0, -1,
          0, 1, 0));
      begins.push_back(0);
      sizes.push_back(rank);
    }
    SmallVector<int64_t> upBegins, upSizes;
    for (auto source : weight.getSources().getAsRange<WeightSourceAttr>()) {
      int64_t begin = 0, size = 0;
      for (auto [name, rank] : changed) {
        if (name.getValue() == source.getTensor()) {
          size = rank;
          break;
        }
        begin += rank;
      }
      upBegins.push_back(size ? begin : 0);
      upSizes.push_back(size);
      upSources.push_back(WeightSourceAttr::get(
          b.getContext(), (source.getTensor() + ".lora_B.{e}").str(), false,
          source.getBegin(), source.getEnd(), source.getStride(),
          source.getCount(), 0));
    }
    ArrayRef<int64_t> layer = weight.getLayerType().getShape();
    SmallVector<int64_t> matrix(layer);
    std::optional<WeightCut> cut = getCut(weight);
    if (cut)
      matrix = {cut->wholeRows, cut->wholeColumns};
    WeightOp down = makeStack(weight, ".lora_A", {count, total, layer[1]},
                              downSources, symbols);
    // The factor of a tensor's numbers applies behind A and B.
    down->removeAttr("attune.scales");
    WeightOp up = makeStack(weight, ".lora_B", {count, layer[0], total},
                            upSources, symbols);
    if (cut) {
      setCut(down, cut->ofFactor(/*left=*/false, total));
      setCut(up, cut->ofFactor(/*left=*/true, total));
    }
    auto describe = [&](WeightOp stack, ArrayRef<int64_t> begins,
                        ArrayRef<int64_t> sizes) {
      stack->setAttr(
          "attune.lora",
          b.getDictionaryAttr(
              {{b.getStringAttr("matrix"), b.getDenseI64ArrayAttr(matrix)},
               {b.getStringAttr("total"), b.getI64IntegerAttr(total)},
               {b.getStringAttr("begins"), b.getDenseI64ArrayAttr(begins)},
               {b.getStringAttr("ranks"), b.getDenseI64ArrayAttr(sizes)}}));
    };
    describe(down, begins, sizes);
    describe(up, upBegins, upSizes);
    return {down, up};
  }

  WeightOp makeStack(WeightOp weight, StringRef end, ArrayRef<int64_t> layer,
                     ArrayRef<Attribute> sources, SymbolTable &symbols) {
    OpBuilder b(weight);
    SmallVector<int64_t> shape(layer);
    if (weight.getStacked())
      shape.insert(shape.begin(), weight.getNumLayers());
    WeightOp stack = weight.clone();
    for (StringRef name : {"attune.stored", "attune.factor", "attune.product"})
      stack->removeAttr(name);
    stack.removeGainAttr();
    stack.setParts(layer[0]);
    stack.setSourcesAttr(b.getArrayAttr(sources));
    stack.setType(
        RankedTensorType::get(shape, weight.getTensorType().getElementType()));
    stack.setSymName((weight.getSymName() + end).str());
    symbols.insert(stack, std::next(weight->getIterator()));
    return stack;
  }

  /// [..., 1] like the tokens of `rows`, from a value for each sequence, whose
  /// tensor `each` is; null: the same for all.
  static Value perToken(OpBuilder &b, Location loc, Value rows, Type element,
                        Value each,
                        function_ref<Value(OpBuilder &, Value)> make) {
    SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, rows);
    sizes.back() = b.getIndexAttr(1);
    Value empty = tensor::EmptyOp::create(b, loc, sizes, element);
    auto rank = static_cast<unsigned>(sizes.size());
    SmallVector<AffineMap> maps = {b.getMultiDimIdentityMap(rank)};
    SmallVector<Value> inputs;
    if (each) {
      maps.insert(maps.begin(), AffineMap::get(rank, 0, b.getAffineDimExpr(0)));
      inputs.push_back(each);
    }
    return linalg::GenericOp::create(
               b, loc, empty.getType(), inputs, empty, maps,
               SmallVector<utils::IteratorType>(rank,
                                                utils::IteratorType::parallel),
               [&](OpBuilder &b, Location loc, ValueRange values) {
                 linalg::YieldOp::create(b, loc,
                                         make(b, each ? values[0] : Value()));
               })
        .getResult(0);
  }

  /// The number of the adapter of a function's sequences, [batch]: an argument,
  /// which stays the last of all.
  Value numbersOf(func::FuncOp func) {
    if (Value known = numbers.lookup(func))
      return known;
    Builder b(func.getContext());
    auto type = RankedTensorType::get({ShapedType::kDynamic}, b.getI64Type());
    unsigned last = func.getNumArguments();
    (void)func.insertArgument(last, type, {}, func.getLoc());
    return numbers[func] = func.getArgument(last);
  }

  void rewrite(LinearOp linear, WeightGetOp get, Stacks stacks) {
    OpBuilder b(linear);
    Location loc = linear.getLoc();
    auto count = static_cast<int64_t>(names.size());
    Value rows = linear.getInput();
    // None is number 0 of the caller, and `count` here: an expert that is not
    // there adds nothing.
    Value chosen = perToken(
        b, loc, rows, b.getI64Type(),
        numbersOf(linear->getParentOfType<func::FuncOp>()),
        [&](OpBuilder &b, Value number) -> Value {
          auto constant = [&](int64_t value) {
            return arith::ConstantIntOp::create(b, loc, value, 64);
          };
          Value next = arith::AddIOp::create(b, loc, number, constant(count));
          return arith::RemUIOp::create(b, loc, next, constant(count + 1));
        });
    Value ones = perToken(b, loc, rows, b.getF32Type(), Value(),
                          [&](OpBuilder &b, Value) -> Value {
                            return arith::ConstantOp::create(
                                b, loc, b.getF32FloatAttr(1));
                          });
    auto read = [&](WeightOp stack) {
      return WeightGetOp::create(b, loc, stack.getLayerType(),
                                 stack.getSymName(), get.getLayer());
    };
    bool plain = linear.getActivation() == Activation::Identity &&
                 !linear.getGated() && !linear.getScaleAttr();
    RankedTensorType wide = typeOf(linear.getResult());
    if (!plain) {
      SmallVector<int64_t> shape(wide.getShape());
      shape.back() = typeOf(get).getDimSize(0);
      wide = RankedTensorType::get(shape, b.getF32Type());
    }
    auto base = LinearOp::create(b, loc, wide, rows, get, linear.getBias(),
                                 plain ? linear.getResidual() : Value(),
                                 Activation::Identity, /*gated=*/false,
                                 /*scale=*/FloatAttr());
    base->setDiscardableAttrs(linear->getDiscardableAttrDictionary());
    Value sum = MoEOp::create(
        b, loc, wide, rows, chosen, ones, read(stacks.down), read(stacks.up),
        /*up_bias=*/Value(), /*down_bias=*/Value(), base, /*gated=*/false,
        Activation::Identity, /*limit=*/FloatAttr(), APFloat(0.0f));
    linear.replaceAllUsesWith(plain ? sum : finish(b, linear, sum));
    linear.erase();
  }

  /// What the layer did with the sums of its products.
  static Value finish(OpBuilder &b, LinearOp linear, Value sum) {
    Location loc = linear.getLoc();
    Activation function = linear.getActivation();
    auto activate = [&](Value value) -> Value {
      if (function == Activation::Identity)
        return value;
      return ActivationOp::create(b, loc, value, function);
    };
    Value result;
    if (linear.getGated()) {
      SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, sum);
      SmallVector<OpFoldResult> offsets(sizes.size(), b.getIndexAttr(0));
      SmallVector<OpFoldResult> strides(sizes.size(), b.getIndexAttr(1));
      int64_t width = typeOf(linear.getResult()).getShape().back();
      sizes.back() = b.getIndexAttr(width);
      Value gate =
          tensor::ExtractSliceOp::create(b, loc, sum, offsets, sizes, strides);
      offsets.back() = b.getIndexAttr(width);
      Value up =
          tensor::ExtractSliceOp::create(b, loc, sum, offsets, sizes, strides);
      result = arith::MulFOp::create(b, loc, activate(gate), up);
    } else {
      result = activate(sum);
    }
    auto splat = [&](FloatAttr number) -> Value {
      Value all = tensor::EmptyOp::create(
          b, loc, tensor::getMixedSizes(b, loc, result), b.getF32Type());
      Value one = arith::ConstantOp::create(b, loc, number);
      return linalg::FillOp::create(b, loc, one, all).getResult(0);
    };
    if (FloatAttr scale = linear.getScaleAttr())
      result = arith::MulFOp::create(b, loc, result, splat(scale));
    auto type = typeOf(linear.getResult());
    if (Value residual = linear.getResidual()) {
      if (residual.getType() != result.getType())
        residual = arith::ExtFOp::create(b, loc, result.getType(), residual);
      result = arith::AddFOp::create(b, loc, result, residual);
    }
    if (result.getType() != type)
      result = arith::TruncFOp::create(b, loc, type, result);
    return result;
  }

  /// Callers of functions with adapters hand them on; entries take them.
  LogicalResult passNumbers() {
    ModuleOp module = getOperation();
    for (bool more = true; more;) {
      more = false;
      module.walk([&](func::CallOp call) {
        auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee());
        if (!callee || !numbers.count(callee) ||
            call.getNumOperands() == callee.getNumArguments())
          return;
        Value own = numbersOf(call->getParentOfType<func::FuncOp>());
        call.getOperandsMutable().append(own);
        more = true;
      });
    }
    for (auto [func, number] : numbers)
      if (func->hasAttr("attune.entry") && failed(describe(func)))
        return failure();
    return success();
  }

  /// The batch is that of the first input.
  LogicalResult describe(func::FuncOp func) {
    Builder b(func.getContext());
    Attribute batch;
    for (unsigned i = 0; i < func.getNumArguments() && !batch; ++i) {
      auto kind = func.getArgAttrOfType<StringAttr>(i, "attune.kind");
      auto shape = func.getArgAttrOfType<ArrayAttr>(i, "attune.shape");
      if (kind && kind.getValue() == "input" && shape && !shape.empty())
        batch = shape[0];
    }
    if (!batch)
      return func.emitError("has no input whose sequences could have adapters");
    unsigned last = func.getNumArguments() - 1;
    func.setArgAttr(last, "attune.kind", b.getStringAttr("input"));
    func.setArgAttr(last, "attune.name", b.getStringAttr("adapter"));
    func.setArgAttr(last, "attune.shape", b.getArrayAttr({batch}));
    func.setArgAttr(last, "attune.default", b.getStringAttr("adapter"));
    func.setArgAttr(
        last, "attune.max",
        b.getI64IntegerAttr(static_cast<int64_t>(names.size()) + 1));
    return success();
  }

  llvm::MapVector<func::FuncOp, Value> numbers;
};
} // namespace
} // namespace attune
