//===- TapInputs.cpp - What layers multiply, as outputs ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RepeatedLayers.h"

#include "attune/Transforms/NameRules.h"
#include "attune/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_TAPINPUTS
#include "attune/Transforms/Passes.h.inc"

namespace {
/// What of a weight's layer becomes an output.
enum Seen : unsigned { Input, Experts };
/// One of that; its weight is the first stack of a mixture.
using Tap = std::pair<WeightOp, unsigned>;

/// The layers of a function, in order.
using Taps = llvm::MapVector<Tap, Operation *>;
/// Outputs that functions have, in order.
using TapTypes = llvm::MapVector<Tap, RankedTensorType>;
/// Values of an entry on their way to its end.
using Carried = llvm::MapVector<Tap, Value>;

/// The matrix that a layer multiplies by first; null: it is none of these.
Value matrixOf(Operation *op) {
  if (auto linear = dyn_cast<LinearOp>(op))
    return linear.getWeight();
  auto mixture = dyn_cast<MoEOp>(op);
  return mixture ? mixture.getUp() : Value();
}

Value seenBy(Operation *op, unsigned what) {
  if (auto mixture = dyn_cast<MoEOp>(op))
    return what == Experts ? mixture.getExperts() : mixture.getInput();
  return cast<LinearOp>(op).getInput();
}

struct TapInputs final : impl::TapInputsBase<TapInputs> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    NameRules<bool> patterns;
    std::string problem;
    for (const std::string &pattern : match)
      if (!patterns.add(pattern, true, "attune-tap-inputs", problem)) {
        module.emitError(problem);
        return signalPassFailure();
      }
    SymbolTable symbols(module);
    for (auto func : llvm::to_vector(module.getOps<func::FuncOp>()))
      if (!func.isExternal() && !func->hasAttr("attune.entry"))
        extend(func, symbols, patterns);
    for (auto func : module.getOps<func::FuncOp>())
      if (!func.isExternal() && func->hasAttr("attune.entry") &&
          failed(tapEntry(func, symbols, patterns)))
        return signalPassFailure();
  }

private:
  /// Layers that have a place of their own among the outputs: a weight that
  /// several use would tell of one alone.
  Taps findTaps(func::FuncOp func, SymbolTable &symbols,
                NameRules<bool> &patterns) {
    Taps taps;
    // In an entry's loops calls alone are followed.
    bool isEntry = func->hasAttr("attune.entry");
    func.walk([&](Operation *op) {
      Value matrix = matrixOf(op);
      if (!matrix || (isEntry && op->getParentOp() != func))
        return;
      auto get = matrix.getDefiningOp<WeightGetOp>();
      auto weight =
          get ? symbols.lookup<WeightOp>(get.getWeight()) : WeightOp();
      auto input = cast<RankedTensorType>(seenBy(op, Input).getType());
      if (!weight || input.getRank() != 3 || taps.count({weight, Input}))
        return;
      bool wanted = patterns.empty();
      for (int64_t i = 0; !wanted && i < weight.getNumLayers(); ++i)
        wanted = patterns.lookup(namesOfLayer(weight, i));
      if (!wanted)
        return;
      taps.insert({{weight, Input}, op});
      if (isa<MoEOp>(op))
        taps.insert({{weight, Experts}, op});
    });
    return taps;
  }

  static RankedTensorType typeOf(Tap tap, Operation *op) {
    auto seen = cast<RankedTensorType>(seenBy(op, tap.second).getType());
    return RankedTensorType::get({tap.first.getNumLayers(),
                                  ShapedType::kDynamic, ShapedType::kDynamic,
                                  seen.getShape().back()},
                                 seen.getElementType());
  }

  /// Writes what a layer sees into its place.
  static Value store(Tap tap, Operation *op, Value dest) {
    OpBuilder b(op);
    Location loc = op->getLoc();
    Value seen = seenBy(op, tap.second);
    auto get = matrixOf(op).getDefiningOp<WeightGetOp>();
    SmallVector<OpFoldResult> sizes = {b.getIndexAttr(1)},
                              offsets(4, b.getIndexAttr(0)),
                              strides(4, b.getIndexAttr(1));
    llvm::append_range(sizes, tensor::getMixedSizes(b, loc, seen));
    if (Value layer = get.getLayer())
      offsets[0] = layer;
    return tensor::InsertSliceOp::create(b, loc, seen, dest, offsets, sizes,
                                         strides);
  }

  /// A function of a block takes the tensors that it writes to, and gives them
  /// back.
  void extend(func::FuncOp func, SymbolTable &symbols,
              NameRules<bool> &patterns) {
    Taps taps = findTaps(func, symbols, patterns);
    if (taps.empty())
      return;
    Operation *result = func.getBody().back().getTerminator();
    for (auto [tap, op] : taps) {
      RankedTensorType type = typeOf(tap, op);
      Value dest = func.getBody().addArgument(type, op->getLoc());
      Value stored = store(tap, op, dest);
      result->insertOperands(result->getNumOperands(), stored);
      tapsOf[func].insert({tap, type});
    }
    func.setFunctionType(FunctionType::get(
        func.getContext(), func.getBody().front().getArgumentTypes(),
        result->getOperandTypes()));
  }

  /// All that calls in a block write to.
  void collect(Block &block, TapTypes &all) {
    block.walk([&](func::CallOp call) {
      auto callee = getOperation().lookupSymbol<func::FuncOp>(call.getCallee());
      for (auto [tap, type] : tapsOf.lookup(callee))
        all.insert({tap, type});
    });
  }

  /// Hands the tensors from call to call.
  void thread(Block &block, Carried &carried) {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (auto call = dyn_cast<func::CallOp>(op))
        threadCall(call, carried);
      else if (auto loop = dyn_cast<scf::ForOp>(op))
        threadLoop(loop, carried);
    }
  }

  void threadCall(func::CallOp call, Carried &carried) {
    auto callee = getOperation().lookupSymbol<func::FuncOp>(call.getCallee());
    auto taps = tapsOf.find(callee);
    if (taps == tapsOf.end())
      return;
    SmallVector<Value> operands(call.getOperands());
    for (auto [tap, type] : taps->second)
      operands.push_back(carried[tap]);
    OpBuilder b(call);
    auto other = func::CallOp::create(b, call.getLoc(), callee, operands);
    unsigned before = call.getNumResults();
    call.replaceAllUsesWith(other.getResults().take_front(before));
    for (auto [i, tap] : llvm::enumerate(taps->second))
      carried[tap.first] = other.getResult(before + unsigned(i));
    call.erase();
  }

  void threadLoop(scf::ForOp loop, Carried &carried) {
    TapTypes inside;
    collect(*loop.getBody(), inside);
    if (inside.empty())
      return;
    IRRewriter rewriter(loop);
    SmallVector<Value> inits;
    for (auto [tap, type] : inside)
      inits.push_back(carried[tap]);
    unsigned before = loop.getNumResults();
    FailureOr<LoopLikeOpInterface> wider = loop.replaceWithAdditionalYields(
        rewriter, inits, /*replaceInitOperandUsesInLoop=*/false,
        [&](OpBuilder &, Location, ArrayRef<BlockArgument> arguments) {
          return SmallVector<Value>(arguments.begin(), arguments.end());
        });
    auto next = cast<scf::ForOp>(wider->getOperation());
    Carried within;
    for (auto [i, tap] : llvm::enumerate(inside))
      within[tap.first] = next.getRegionIterArg(before + unsigned(i));
    thread(*next.getBody(), within);
    Operation *yield = next.getBody()->getTerminator();
    for (auto [i, tap] : llvm::enumerate(inside)) {
      yield->setOperand(before + unsigned(i), within[tap.first]);
      carried[tap.first] = next.getResult(before + unsigned(i));
    }
  }

  LogicalResult tapEntry(func::FuncOp func, SymbolTable &symbols,
                         NameRules<bool> &patterns) {
    TapTypes all;
    Block &body = func.getBody().front();
    collect(body, all);
    Taps own = findTaps(func, symbols, patterns);
    own.remove_if([&](auto &tap) { return all.count(tap.first); });
    for (auto [tap, op] : own)
      all.insert({tap, typeOf(tap, op)});
    if (all.empty())
      return success();
    // Sequences and their tokens, as of the first input.
    Value ids;
    ArrayAttr names;
    for (BlockArgument argument : func.getArguments())
      if (auto type = dyn_cast<RankedTensorType>(argument.getType());
          !ids && type && type.getRank() == 2 &&
          type.getElementType().isInteger(64)) {
        ids = argument;
        names = func.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(),
                                                 "attune.shape");
      }
    if (!ids || !names)
      return func.emitError("has no token ids [batch, seq], by which inputs of "
                            "layers could be tapped");
    OpBuilder b(&body, body.begin());
    Location loc = func.getLoc();
    Carried carried;
    for (auto [tap, type] : all) {
      SmallVector<Value> sizes;
      for (int64_t dim = 0; dim < 2; ++dim)
        sizes.push_back(tensor::DimOp::create(b, loc, ids, dim));
      carried[tap] = tensor::EmptyOp::create(b, loc, type, sizes);
    }
    thread(body, carried);
    for (auto [tap, op] : own)
      carried[tap] = store(tap, op, carried[tap]);
    Operation *result = body.getTerminator();
    unsigned number = result->getNumOperands();
    SmallVector<Type> types;
    SmallVector<DictionaryAttr> attributes;
    for (auto [tap, value] : carried) {
      result->insertOperands(result->getNumOperands(), value);
      auto type = cast<RankedTensorType>(value.getType());
      types.push_back(type);
      NamedAttrList list;
      list.set("attune.kind", b.getStringAttr("output"));
      list.set(
          "attune.name",
          b.getStringAttr(WeightOp(tap.first).getSymName() +
                          (tap.second == Experts ? ".experts" : ".input")));
      list.set(
          "attune.shape",
          b.getArrayAttr({b.getI64IntegerAttr(type.getDimSize(0)), names[0],
                          names[1], b.getI64IntegerAttr(type.getDimSize(3))}));
      attributes.push_back(list.getDictionary(func.getContext()));
      ++numTapped;
    }
    SmallVector<unsigned> places(types.size(), number);
    if (failed(func.insertResults(places, types, attributes)))
      return failure();
    return success();
  }

  DenseMap<func::FuncOp, TapTypes> tapsOf;
};
} // namespace
} // namespace attune
