//===- ShardPositions.cpp - A rank's part of a sequence ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The keys of N positions are shared: group g of the ranks has those from g *
// share on. A cache with room for `share + 1` rows holds them: its last row
// takes what a step of several sequences writes for another group. All ranks
// have all queries: a rank attends from all of them to its own keys, and the
// results are merged.
//
//===----------------------------------------------------------------------===//

#include "HeadFlow.h"

#include "Attune/AttuneIndexOps.h"
#include "Attune/AttuneMeshOps.h"
#include "attune/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_SHARDPOSITIONS
#include "attune/Transforms/Passes.h.inc"

namespace {
constexpr StringRef kSharers = "attune.sharers";
/// The dimension of positions: in heads, and in caches.
constexpr int64_t kTokens = 2, kCapacity = 3;

/// Numbers that say which positions are whose.
struct Numbers {
  OpBuilder b;
  Location loc;

  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
  Value sub(Value x, Value y) { return arith::SubIOp::create(b, loc, x, y); }
  Value mul(Value x, Value y) { return arith::MulIOp::create(b, loc, x, y); }
  Value between(Value least, Value x, Value most) {
    Value up = arith::MaxSIOp::create(b, loc, least, x);
    return arith::MinSIOp::create(b, loc, up, most);
  }
  Value dim(Value tensor, int64_t number) {
    return tensor::DimOp::create(b, loc, tensor, number);
  }
  Value asI64(Value x) {
    return arith::IndexCastOp::create(b, loc, b.getI64Type(), x);
  }
  /// `count` entries of a dimension.
  Value slice(Value tensor, int64_t number, Value from, Value count) {
    auto type = cast<RankedTensorType>(tensor.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[number] = ShapedType::kDynamic;
    SmallVector<OpFoldResult> offsets(shape.size(), b.getIndexAttr(0)), sizes,
        strides(shape.size(), b.getIndexAttr(1));
    for (int64_t i = 0; i < type.getRank(); ++i)
      sizes.push_back(i == number ? OpFoldResult(count)
                      : type.isDynamicDim(i)
                          ? OpFoldResult(dim(tensor, i))
                          : b.getIndexAttr(type.getDimSize(i)));
    offsets[number] = from;
    return tensor::ExtractSliceOp::create(b, loc, type.clone(shape), tensor,
                                          offsets, sizes, strides);
  }
  /// Entry by entry.
  Value map(Value vector, function_ref<Value(OpBuilder &, Value)> compute) {
    auto type = cast<RankedTensorType>(vector.getType());
    SmallVector<Value> sizes;
    if (type.isDynamicDim(0))
      sizes.push_back(dim(vector, 0));
    Value dest = tensor::EmptyOp::create(b, loc, type, sizes);
    AffineMap same = b.getMultiDimIdentityMap(1);
    return linalg::GenericOp::create(
               b, loc, TypeRange(type), ValueRange(vector), ValueRange(dest),
               ArrayRef<AffineMap>{same, same}, utils::IteratorType::parallel,
               [&](OpBuilder &inner, Location at, ValueRange in) {
                 linalg::YieldOp::create(inner, at, compute(inner, in[0]));
               })
        .getResult(0);
  }
};

/// What a rank has of keys.
struct Part {
  Value group; ///< of ranks, the number of this one
  Value share; ///< positions that a group has
  Value base;  ///< the first one that is this rank's

  Part(Numbers &n, Value share)
      : group(RankOp::create(n.b, n.loc, /*of_positions=*/true)), share(share),
        base(n.mul(group, share)) {}
  static Part ofCache(Numbers &n, Value cache) {
    return Part(n, n.sub(n.dim(cache, kCapacity), n.index(1)));
  }
  /// How many of the first `length` positions.
  Value count(Numbers &n, Value length) const {
    return n.between(n.index(0), n.sub(length, base), share);
  }
};

class PositionShards {
public:
  PositionShards(ModuleOp module, int64_t sharers)
      : module(module), sharers(sharers) {}

  /// How much attention was cut; nothing after an error.
  FailureOr<unsigned> run() {
    module.walk([&](func::CallOp call) {
      callers.try_emplace(call.getCallee(), call);
    });
    markEntries();
    SmallVector<CacheAppendOp> appends;
    SmallVector<AttentionOp> attention;
    WalkResult walked = module.walk([&](Operation *op) -> WalkResult {
      if (auto append = dyn_cast<CacheAppendOp>(op);
          append && isShared(append.getCache()))
        appends.push_back(append);
      else if (auto attends = dyn_cast<AttentionOp>(op))
        attention.push_back(attends);
      else
        return checkUse(op);
      return success();
    });
    if (walked.wasInterrupted())
      return failure();
    for (AttentionOp op : attention)
      if (failed(cutAttention(op)))
        return failure();
    // Reads are one behind the other, of keys and of values.
    for (CacheReadOp read : reads)
      cutRead(read);
    for (CacheAppendOp append : appends)
      cutAppend(append);
    return numCut;
  }

private:
  /// The entries' arguments and results with a share of all positions.
  void markEntries() {
    auto isAll = [](DictionaryAttr attributes) {
      auto kind = attributes ? attributes.getAs<StringAttr>("attune.kind")
                             : StringAttr();
      auto shape = attributes ? attributes.getAs<ArrayAttr>("attune.shape")
                              : ArrayAttr();
      if (!kind || kind.getValue() != "cache" || !shape)
        return false;
      return llvm::any_of(shape, [](Attribute size) {
        auto name = dyn_cast<StringAttr>(size);
        return name && name.getValue() == "capacity";
      });
    };
    auto count = Builder(module).getI64IntegerAttr(sharers);
    for (auto func : module.getOps<func::FuncOp>())
      if (func->hasAttr("attune.entry") && !func.isExternal())
        for (BlockArgument argument : func.getArguments())
          if (isAll(func.getArgAttrDict(argument.getArgNumber()))) {
            func.setArgAttr(argument.getArgNumber(), kSharers, count);
            shared.insert(argument);
          }
  }

  /// Whether a cache is, in the end, an entry's with a share of all positions.
  bool isShared(Value cache) {
    auto type = dyn_cast<RankedTensorType>(cache.getType());
    SmallVector<Value> passed;
    while (cache && type && type.getRank() == kCapacity + 2 &&
           !shared.contains(cache)) {
      passed.push_back(cache);
      cache = originOf(cache);
    }
    if (!cache || !shared.contains(cache))
      return false;
    shared.insert(passed.begin(), passed.end());
    return true;
  }

  /// Where a value comes from, if it is one that was passed on or written to.
  Value originOf(Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      Operation *parent = argument.getOwner()->getParentOp();
      if (auto loop = dyn_cast<scf::ForOp>(parent))
        return argument.getArgNumber() == 0
                   ? Value()
                   : loop.getTiedLoopInit(argument)->get();
      auto func = dyn_cast<func::FuncOp>(parent);
      func::CallOp call =
          func ? callers.lookup(func.getName()) : func::CallOp();
      return call ? call.getOperand(argument.getArgNumber()) : Value();
    }
    unsigned number = cast<OpResult>(value).getResultNumber();
    Operation *op = value.getDefiningOp();
    if (auto append = dyn_cast<CacheAppendOp>(op))
      return append.getCache();
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return loop.getInitArgs()[number];
    auto call = dyn_cast<func::CallOp>(op);
    auto callee = call ? module.lookupSymbol<func::FuncOp>(call.getCallee())
                       : func::FuncOp();
    if (!callee || callee.isExternal())
      return {};
    return callee.getBody().back().getTerminator()->getOperand(number);
  }

  /// The read that a value is, or has columns of.
  static CacheReadOp readOf(Value value) {
    auto slice = value.getDefiningOp<tensor::ExtractSliceOp>();
    auto read =
        slice ? slice.getSource().getDefiningOp<CacheReadOp>() : CacheReadOp();
    return read && keepsTokens(slice) ? read
                                      : value.getDefiningOp<CacheReadOp>();
  }
  static bool keepsTokens(tensor::ExtractSliceOp slice) {
    OpFoldResult size = slice.getMixedSizes()[kTokens];
    auto value = dyn_cast<Value>(size);
    auto dim = value ? value.getDefiningOp<tensor::DimOp>() : tensor::DimOp();
    return isConstantIntValue(slice.getMixedOffsets()[kTokens], 0) && dim &&
           dim.getSource() == slice.getSource() &&
           dim.getConstantIndex() == kTokens;
  }

  /// Whether the scores of an index are made here, or some of the keys that
  /// they are made of.
  static bool isIndex(Operation *op) {
    return isa<IndexScoresOp>(op) ||
           (isa<tensor::ExtractSliceOp>(op) &&
            llvm::all_of(op->getUsers(), llvm::IsaPred<IndexScoresOp>));
  }

  /// Keys and values that are shared are for attention alone.
  LogicalResult checkUse(Operation *op) {
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op);
        slice && readOf(slice.getResult()))
      return success();
    if (isa<CacheReadOp, scf::ForOp, scf::YieldOp, func::CallOp, func::ReturnOp,
            tensor::DimOp>(op))
      return success();
    for (Value operand : op->getOperands()) {
      CacheReadOp read = readOf(operand);
      if (!isShared(read ? read.getCache() : operand))
        continue;
      if (isIndex(op))
        return op->emitError(
            "an index that chooses among all keys cannot share them among "
            "ranks: leave --mesh=sp=N out; --mesh=tp=N shares heads");
      if (isa<SimilarityOp, WeightedSumOp>(op))
        return op->emitError("attention that is not one op cannot share its "
                             "keys among ranks: --mesh=sp=N takes "
                             "--fusion=auto and no scores of their own");
      return op->emitError("keys and values that ranks share are for attention "
                           "alone: leave --mesh=sp=N out");
    }
    return success();
  }

  LogicalResult cutAttention(AttentionOp op) {
    CacheReadOp keys = readOf(op.getKey()), values = readOf(op.getValue());
    bool cached = keys && isShared(keys.getCache());
    if (!cached && values && isShared(values.getCache()))
      return op.emitError("has values at shared positions, and other keys");
    // Every rank has all that an encoder sees and that rings hold.
    if (!cached &&
        (keys || op.getCausal() != CausalAlign::BottomRight || !mayCut(op)))
      return success();
    if (cached && (!values || !isShared(values.getCache()) ||
                   values.getLength() != keys.getLength()))
      return op.emitError("has keys at shared positions, and other values");
    if (cached && !mayCut(op))
      return op.emitError(
          "attention with biases of distances, blocks, maps or positions of "
          "another kind cannot share its keys among ranks: leave --mesh=sp=N "
          "out");
    Numbers n{OpBuilder(op), op.getLoc()};
    Value length = cached ? keys.getLength() : n.dim(op.getKey(), kTokens);
    Value share;
    if (!cached) {
      Value more = n.add(length, n.index(sharers - 1));
      share = arith::DivUIOp::create(n.b, n.loc, more, n.index(sharers));
    }
    Part part = cached ? Part::ofCache(n, keys.getCache()) : Part(n, share);
    Value count = part.count(n, length);
    Value first = n.between(n.index(0), part.base, length);
    auto cut = [&](Value tensor, int64_t dim) -> Value {
      return tensor ? n.slice(tensor, dim, first, count) : tensor;
    };
    auto cutScores = [&](Value tensor) -> Value {
      bool all = !tensor ||
                 cast<RankedTensorType>(tensor.getType()).getDimSize(3) == 1;
      return all ? tensor : cut(tensor, 3);
    };
    auto type = cast<RankedTensorType>(op.getResult().getType());
    auto lseType = type.clone(type.getShape().drop_back());
    auto own = AttentionOp::create(
        n.b, n.loc, type, lseType, op.getQuery(),
        cached ? op.getKey() : cut(op.getKey(), kTokens),
        cached ? op.getValue() : cut(op.getValue(), kTokens),
        cutScores(op.getMask()), cutScores(op.getBias()), Value(),
        op.getSlopes(), ofFirst(n, op.getSinks(), part),
        placeOfLast(n, op, length, part), Value(), op.getScaleAttr(),
        lastIs(op), op.getWindowAttr(), op.getSoftcapAttr(),
        DenseI64ArrayAttr());
    SmallVector<Value> sizes;
    for (int64_t i = 0; i < type.getRank(); ++i)
      if (type.isDynamicDim(i))
        sizes.push_back(n.dim(own.getResult(), i));
    Value dest = tensor::EmptyOp::create(n.b, n.loc, type, sizes);
    auto all = AllMergeOp::create(n.b, n.loc, type, own.getResult(),
                                  own.getLse(), dest);
    op.getResult().replaceUsesWithIf(all.getResult(), [](OpOperand &use) {
      return !isa<tensor::DimOp>(use.getOwner());
    });
    op.getResult().replaceAllUsesWith(own.getResult());
    op.erase();
    if (cached) {
      reads.insert(keys);
      reads.insert(values);
    }
    ++numCut;
    return success();
  }

  static bool mayCut(AttentionOp op) {
    bool byPlace = op.getWindow() || op.getSlopes();
    bool known = op.getCausal() == CausalAlign::BottomRight ||
                 (op.getCausal() == CausalAlign::Lengths && op.getLengths()) ||
                 (op.getCausal() == CausalAlign::None && !byPlace);
    return known && !op.getDiagonals() && !op.getBlocks() && !op.getLse() &&
           cast<ShapedType>(op.getResult().getType()).getElementType().isF32();
  }

  /// Where a rank sees the last query: behind its keys, among them or before.
  static Value placeOfLast(Numbers &n, AttentionOp op, Value length,
                           const Part &part) {
    Value base = n.asI64(part.base);
    if (op.getLengths())
      return n.map(op.getLengths(), [&](OpBuilder &b, Value own) -> Value {
        return arith::SubIOp::create(b, n.loc, own, base);
      });
    int64_t batch = cast<ShapedType>(op.getQuery().getType()).getDimSize(0);
    SmallVector<Value> sizes;
    if (ShapedType::isDynamic(batch))
      sizes.push_back(n.dim(op.getQuery(), 0));
    Value dest = tensor::EmptyOp::create(
        n.b, n.loc, RankedTensorType::get({batch}, n.b.getI64Type()), sizes);
    Value place = n.asI64(n.sub(length, part.base));
    return linalg::FillOp::create(n.b, n.loc, place, dest).getResult(0);
  }
  static CausalAlignAttr lastIs(AttentionOp op) {
    return op.getCausal() == CausalAlign::None
               ? op.getCausalAttr()
               : CausalAlignAttr::get(op.getContext(), CausalAlign::Lengths);
  }

  /// Sinks count once.
  static Value ofFirst(Numbers &n, Value sinks, const Part &part) {
    if (!sinks)
      return sinks;
    auto element = cast<FloatType>(getElementTypeOrSelf(sinks.getType()));
    Value isFirst = arith::CmpIOp::create(n.b, n.loc, arith::CmpIPredicate::eq,
                                          part.group, n.index(0));
    Value none = arith::ConstantOp::create(
        n.b, n.loc,
        n.b.getFloatAttr(element, APFloat::getInf(element.getFloatSemantics(),
                                                  /*Negative=*/true)));
    return n.map(sinks, [&](OpBuilder &b, Value sink) -> Value {
      return arith::SelectOp::create(b, n.loc, isFirst, sink, none);
    });
  }

  static void cutRead(CacheReadOp read) {
    Numbers n{OpBuilder(read), read.getLoc()};
    Part part = Part::ofCache(n, read.getCache());
    read.getLengthMutable().assign(part.count(n, read.getLength()));
  }

  static void cutAppend(CacheAppendOp append) {
    Numbers n{OpBuilder(append), append.getLoc()};
    Part part = Part::ofCache(n, append.getCache());
    Value past = append.getPast();
    if (!past.getType().isIndex()) {
      // Rows of others go behind the own ones.
      Value base = n.asI64(part.base), share = n.asI64(part.share);
      Value own = n.map(past, [&](OpBuilder &b, Value position) -> Value {
        Value local = arith::SubIOp::create(b, n.loc, position, base);
        Value inside = arith::CmpIOp::create(
            b, n.loc, arith::CmpIPredicate::ult, local, share);
        return arith::SelectOp::create(b, n.loc, inside, local, share);
      });
      append.getPastMutable().assign(own);
      return;
    }
    // The own ones of the new rows are those from `first` up to `end`.
    Value rows = n.dim(append.getNewRows(), kTokens), none = n.index(0);
    Value ahead = n.sub(part.base, past);
    Value first = n.between(none, ahead, rows);
    Value end = n.between(none, n.add(ahead, part.share), rows);
    append.getNewRowsMutable().assign(
        n.slice(append.getNewRows(), kTokens, first, n.sub(end, first)));
    append.getPastMutable().assign(
        n.between(none, n.sub(past, part.base), part.share));
  }

  ModuleOp module;
  int64_t sharers;
  llvm::StringMap<func::CallOp> callers;
  DenseSet<Value> shared;
  llvm::SetVector<CacheReadOp> reads;
  unsigned numCut = 0;
};

struct ShardPositions final : impl::ShardPositionsBase<ShardPositions> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (sp < 1) {
      module.emitError("sp must be positive; not ") << sp.getValue();
      return signalPassFailure();
    }
    if (sp == 1)
      return;
    FailureOr<unsigned> cut = PositionShards(module, sp).run();
    if (failed(cut))
      return signalPassFailure();
    if (*cut == 0) {
      module.emitError("has no causal attention whose keys ranks could share: "
                       "leave --mesh=sp=N out");
      return signalPassFailure();
    }
    module->setAttr(kSharers, Builder(module).getI64IntegerAttr(sp));
    numCut += *cut;
  }
};
} // namespace
} // namespace attune
