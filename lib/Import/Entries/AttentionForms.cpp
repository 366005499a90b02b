//===- AttentionForms.cpp - Attention to fewer keys or none -----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// The bare op; lengths, masks of blocks, linear attention and projected
// sequences: the inputs that they add to an entry, and the ops that they
// become.

#include "EntryImporter.h"
#include "attune/Runtime/Formula.h"
#include "attune/Support/Elements.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attune;

namespace {
/// Where the blocks of a sequence begin: padding of whole blocks stands before
/// the first of them, and `behind` more places lie before slot 0.
struct BlockStart {
  Value blocks, behind;
};

/// Whether two blocks are of the pattern.
struct BlockPattern {
  Elements &e;
  const spec::BlockSparse &sparse;

  /// The blocks of these numbers, counted from those before slot 0; `wider`:
  /// or those behind them.
  Value has(Value row, Value column, const BlockStart *start = nullptr,
            Value wider = {}) {
    Value reach = e.index(sparse.local);
    if (wider)
      reach = e.add(reach, wider);
    Value near = e.both(e.atMost(column, e.add(row, reach)),
                        e.atMost(row, e.add(column, reach)));
    if (sparse.global == 0)
      return near;
    Value first = e.index(sparse.global);
    if (start)
      first = e.add(first, start->blocks);
    return e.either(near, e.either(e.less(row, first), e.less(column, first)));
  }

  /// The start of a sequence whose first token is in this slot.
  BlockStart startAt(Value slot) {
    Value blocks = e.ceilDiv(slot, sparse.block);
    Value whole =
        arith::MulIOp::create(e.b, e.loc, blocks, e.index(sparse.block));
    return {blocks, e.sub(whole, slot)};
  }
};
} // namespace

void attune::forEachAttention(
    const spec::Stream &stream,
    llvm::function_ref<void(const spec::Attention &)> visit) {
  auto visitBlock = [&](const spec::Block &block) {
    if (block.attention)
      visit(*block.attention);
    if (block.cross)
      visit(*block.cross);
  };
  for (const spec::Layer &layer : stream.layers) {
    if (const auto *attention = std::get_if<spec::Attention>(&layer.op))
      visit(*attention);
    else if (const auto *block = std::get_if<spec::Block>(&layer.op);
             block && layer.cycle.empty())
      visitBlock(*block);
    for (const spec::Block &block : layer.cycle)
      visitBlock(block);
  }
}

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

/// The number of blocks for a number of tokens: "ceil(seq/64)", which the
/// runtime understands, or a number.
static spec::Dim countBlocks(const spec::Dim &tokens, int64_t block) {
  if (tokens.size >= 0)
    return {int64_t(llvm::divideCeil(tokens.size, block)), ""};
  return {-1, "ceil(" + tokens.symbol + "/" + std::to_string(block) + ")"};
}

/// Lengths are [batch]; a mask of blocks has sizes that follow from those of
/// queries and keys, whatever the description calls them.
LogicalResult EntryImporter::collectFormInputs() {
  const int64_t dynamic = ShapedType::kDynamic;
  auto find = [&](const std::string &name) -> const spec::TensorSpec * {
    for (const spec::TensorSpec &input : model.inputs)
      if (input.name == name)
        return &input;
    return nullptr;
  };
  bool good = true;
  for (const StreamState &of : streams)
    forEachAttention(of.spec, [&](const spec::Attention &op) {
      const spec::TensorSpec *first =
          find(op.projections ? of.root : op.queryInput);
      const spec::TensorSpec *lengths = find(op.lengthsInput);
      if (lengths && first) {
        formTypes[lengths->name] =
            RankedTensorType::get({dynamic}, builder.getI64Type());
        formShapes[lengths->name] = {first->shape[0]};
      }
      const spec::TensorSpec *mask =
          op.blockSparse ? find(op.blockSparse->maskInput) : nullptr;
      if (!mask || !first)
        return;
      bool counted = !op.projections ||
                     llvm::none_of(of.spec.layers, [](const spec::Layer &l) {
                       return std::holds_alternative<spec::Conv>(l.op) ||
                              std::holds_alternative<spec::ClassTokens>(l.op) ||
                              std::holds_alternative<spec::Slice>(l.op) ||
                              std::holds_alternative<spec::Concat>(l.op);
                     });
      if (!counted) {
        diags.error(op.blockSparse->location,
                    "a mask of blocks needs a stream of one token for each id "
                    "or frame of its input");
        good = false;
        return;
      }
      const spec::Dim &queries = first->shape[op.projections ? 1 : 2];
      const spec::Dim &keys =
          op.projections ? queries : find(op.keyInput)->shape[2];
      int64_t block = op.blockSparse->block;
      auto size = [&](size_t i) { return mask->shape[i].size; };
      formTypes[mask->name] =
          RankedTensorType::get({size(0) == 1 ? 1 : dynamic,
                                 size(1) == 1 ? 1 : op.heads, dynamic, dynamic},
                                builder.getI1Type());
      formShapes[mask->name] = {size(0) == 1 ? mask->shape[0] : first->shape[0],
                                {size(1) == 1 ? 1 : op.heads, ""},
                                countBlocks(queries, block),
                                countBlocks(keys, block)};
    });
  return success(good);
}

/// Whether an attention of the stream reads an input of this name.
bool EntryImporter::formsRead(const StreamState &of,
                              const std::string &input) const {
  bool found = false;
  forEachAttention(of.spec, [&](const spec::Attention &op) {
    found |= op.lengthsInput == input || op.relativeSegments == input ||
             (op.blockSparse && op.blockSparse->maskInput == input);
  });
  return found;
}

Value EntryImporter::inputNamed(const std::string &name) const {
  auto input = inputs.find(name);
  return input == inputs.end() ? Value() : input->second.value;
}

/// The pattern of blocks of `queries` by `keys` tokens.
static Value blockPattern(OpBuilder &builder, Location loc,
                          const spec::BlockSparse &sparse, Value queries,
                          Value keys) {
  Elements e{builder, loc};
  OpFoldResult one = builder.getIndexAttr(1);
  return e.generate({one, one, e.ceilDiv(queries, sparse.block),
                     e.ceilDiv(keys, sparse.block)},
                    builder.getI1Type(), [&](ValueRange at) {
                      return BlockPattern{e, sparse}.has(at[2], at[3]);
                    });
}

/// The slot of each sequence's first token that the mask [batch, 1, 1, keys]
/// shows; 0 if it shows none.
static Value slotOfFirst(Elements &e, Value mask) {
  Type number = e.b.getI64Type();
  Value shown = e.generate(
      {getAsOpFoldResult(e.dim(mask, 0)), getAsOpFoldResult(e.dim(mask, 3))},
      number, [&](ValueRange at) -> Value {
        Value zero = e.index(0);
        return arith::ExtUIOp::create(
            e.b, e.loc, number, e.extract(mask, {at[0], zero, zero, at[1]}));
      });
  return FindTokenOp::create(
      e.b, e.loc, RankedTensorType::get({ShapedType::kDynamic}, number), shown,
      e.b.getI64IntegerAttr(1), /*last=*/false);
}

/// Blocks are counted from each sequence's first token, so that a batch with
/// padding in front gives what its sequences give alone. Slots of several of
/// them share a block of the tensor, which has all that any of these sees, and
/// a mask of single tokens has the rest.
std::pair<Value, Value>
EntryImporter::paddedPattern(const spec::BlockSparse &sparse, Value tokens) {
  auto &[blocks, pairs] = patterns[{sparse.block, sparse.local, sparse.global}];
  if (blocks)
    return {blocks, pairs};
  Location at = loc(sparse.location);
  Elements e{builder, at};
  BlockPattern pattern{e, sparse};
  Value mask = stream->mask, starts = slotOfFirst(e, mask);
  auto startOf = [&](Value batch) {
    return pattern.startAt(arith::IndexCastOp::create(
        builder, at, builder.getIndexType(), e.extract(starts, batch)));
  };
  OpFoldResult one = builder.getIndexAttr(1);
  OpFoldResult batch = getAsOpFoldResult(e.dim(mask, 0));
  OpFoldResult count = e.ceilDiv(tokens, sparse.block);
  blocks = e.generate(
      {batch, one, count, count}, builder.getI1Type(), [&](ValueRange i) {
        BlockStart start = startOf(i[0]);
        Value wider =
            arith::MinUIOp::create(builder, at, start.behind, e.index(1));
        return pattern.has(i[2], i[3], &start, wider);
      });
  pairs = e.generate(
      {batch, one, tokens, tokens}, builder.getI1Type(), [&](ValueRange i) {
        BlockStart start = startOf(i[0]);
        auto number = [&](Value slot) {
          return e.div(e.add(slot, start.behind), sparse.block);
        };
        return e.both(e.shown(mask, /*lengths=*/Value(), i[0], i[3]),
                      pattern.has(number(i[2]), number(i[3]), &start));
      });
  return {blocks, pairs};
}

/// Sines and cosines of all distances of tokens, [1, 2 * tokens - 1, width].
Value EntryImporter::distanceRows(Location at) {
  if (distances)
    return distances;
  Elements e{builder, at};
  Value tokens = tensor::DimOp::create(builder, at, state.value, 1);
  Value last = e.sub(tokens, e.index(1));
  Value count = e.add(tokens, last);
  OpFoldResult one = builder.getIndexAttr(1);
  Value numbers = e.generate(
      {one, count}, builder.getI64Type(), [&](ValueRange i) -> Value {
        return arith::IndexCastOp::create(builder, at, builder.getI64Type(),
                                          e.sub(i[1], last));
      });
  auto type = RankedTensorType::get(
      {1, ShapedType::kDynamic, typeOf(state.value).getDimSize(2)},
      builder.getF32Type());
  distances = SinusoidalOp::create(
      builder, at, type, numbers, /*addend=*/Value(),
      SinusoidAttr::get(builder.getContext(), Sinusoid::Blocks),
      builder.getF64FloatAttr(10000.0));
  return distances;
}

/// The blocks that an attention computes: those of an input or of a pattern.
Value EntryImporter::blocksOf(const spec::BlockSparse &sparse, Value queries,
                              Value keys) {
  if (!sparse.maskInput.empty())
    return inputNamed(sparse.maskInput);
  return blockPattern(builder, loc(sparse.location), sparse, queries, keys);
}

LogicalResult EntryImporter::fillForms(const spec::Attention &attention,
                                       LayerScope &scope) {
  scope.lengths = inputNamed(attention.lengthsInput);
  if (attention.relative && typeOf(state.value).getRank() == 3) {
    scope.segments = inputNamed(attention.relativeSegments);
    scope.distances = distanceRows(loc(attention.location));
  }
  if (const auto &low = attention.sequenceRank)
    if (failed(limitTokens(*low)))
      return failure();
  if (const spec::Insert *insert = bidirectionalOf(stream->spec))
    seeBothWays(*insert, scope);
  const auto &sparse = attention.blockSparse;
  if (!sparse)
    return success();
  Location at = loc(sparse->location);
  Value tokens = tensor::DimOp::create(builder, at, state.value, 1);
  if (!decode) {
    if (stream->mask && sparse->maskInput.empty())
      std::tie(scope.blocks, scope.pairs) = paddedPattern(*sparse, tokens);
    else
      scope.blocks = blocksOf(*sparse, tokens, tokens);
    return success();
  }
  // A step's first query may stand anywhere in a block, so that its tokens
  // have a mask of their own; and so have sequences of unequal length.
  Elements e{builder, at};
  OpFoldResult one = builder.getIndexAttr(1);
  bool unequal = kind == EntryKind::DecodeBatch;
  scope.pairs = e.generate(
      {unequal ? getAsOpFoldResult(size(0)) : one, one, tokens, length},
      builder.getI1Type(), [&](ValueRange i) {
        Value before = past;
        if (unequal)
          before = arith::IndexCastOp::create(
              builder, at, builder.getIndexType(), e.extract(past, i[0]));
        Value row = e.div(e.add(before, i[2]), sparse->block);
        return BlockPattern{e, *sparse}.has(row, e.div(i[3], sparse->block));
      });
  return success();
}

/// The largest size of `name` that keeps `formula` at `most` or below; 0 if it
/// does not follow from that size.
static int64_t largestSize(const std::string &formula, const std::string &name,
                           int64_t most) {
  if (formula == name)
    return most;
  auto fits = [&](int64_t size) -> std::optional<bool> {
    std::optional<int64_t> value =
        runtime::Formula(formula, [&](std::string_view of) {
          return of == name ? size : -1;
        }).value();
    return value ? std::optional(*value <= most) : std::nullopt;
  };
  int64_t low = 1, high = int64_t(1) << 31;
  if (name.empty() || !fits(high) || !fits(low).value_or(false))
    return 0;
  // Places of a convolution grow with its input.
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    (fits(middle).value_or(false) ? low : high) = middle;
  }
  return low;
}

/// Lets the runtime refuse inputs by which the size `symbol` is more than
/// `most`; false if it follows from no input's size.
bool EntryImporter::limitSize(const std::string &symbol, int64_t most) {
  bool limited = false;
  for (const Argument &argument : arguments) {
    if (argument.kind != "input")
      continue;
    for (auto [d, size] : llvm::enumerate(argument.shape)) {
      int64_t largest =
          size.size < 0 ? largestSize(symbol, size.symbol, most) : 0;
      if (!largest)
        continue;
      std::vector<int64_t> &sizes = longestOf[argument.name];
      sizes.resize(argument.shape.size());
      sizes[d] = sizes[d] ? std::min(sizes[d], largest) : largest;
      limited = true;
    }
  }
  return limited;
}

/// More tokens than the learned matrices have columns are an error: here if
/// their number is known, else when the model runs.
LogicalResult EntryImporter::limitTokens(const spec::SequenceRank &low) {
  const spec::Dim &tokens = state.shape[1];
  if (tokens.size < 0) {
    if (limitSize(tokens.symbol, low.positions))
      return success();
    diags.error(low.location, "needs a fixed number of tokens, as nothing can "
                              "check theirs against the positions");
    return failure();
  }
  if (tokens.size <= low.positions)
    return success();
  diags.error(low.location, "has " + std::to_string(low.positions) +
                                " positions, but the stream has " +
                                std::to_string(tokens.size) + " tokens");
  return failure();
}

LogicalResult EntryImporter::importBareAttention(size_t number) {
  const spec::Layer &layer = stream->spec.layers[number];
  const auto &op = std::get<spec::Attention>(layer.op);
  auto value = [&](const std::string &name) {
    return name.empty() ? Value() : inputs[name].value;
  };
  AttentionOperands operands;
  operands.query = value(op.queryInput);
  operands.key = value(op.keyInput);
  operands.value = value(op.valueInput);
  operands.mask = value(op.maskInput);
  operands.bias = value(op.biasInput);
  operands.slopes = value(op.slopesInput);
  operands.sinks = value(op.sinksInput);
  operands.lengths = value(op.lengthsInput);
  Location at = loc(op.location.line ? op.location : layer.location);
  if (op.blockSparse) {
    Value tokens[] = {operands.query, operands.key};
    for (Value &heads : tokens)
      heads = tensor::DimOp::create(builder, at, heads, 2);
    operands.blocks = blocksOf(*op.blockSparse, tokens[0], tokens[1]);
  }
  LayerScope scope;
  fillMaps(number, scope);
  auto [result, lse] = buildAttention(builder, at, op, operands,
                                      /*decoding=*/false, scope.maps);
  replaceMaps(number, scope);
  state = {result, inputs[op.queryInput].shape};
  state.shape.back() = inputs[op.valueInput].shape.back();
  if (lse) {
    std::vector<spec::Dim> shape(state.shape.begin(), state.shape.end() - 1);
    results[layer.name.empty() ? "lse" : layer.name + ".lse"] = {lse, shape};
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// One mask of keys in place of a mask and lengths.
static Value mergeHidden(OpBuilder &builder, Location loc,
                         const AttentionOperands &operands) {
  if (!operands.lengths)
    return operands.mask;
  Elements e{builder, loc};
  OpFoldResult one = builder.getIndexAttr(1);
  Value made = e.generate(
      {e.dim(operands.key, 0), one, one, e.dim(operands.key, 2)},
      builder.getI1Type(), [&](ValueRange at) {
        return e.shown(operands.mask, operands.lengths, at[0], at[3]);
      });
  return made;
}

LinearAttentionOp attune::buildLinearAttention(
    OpBuilder &builder, Location loc, const spec::Attention &attention,
    const AttentionOperands &operands, Type resultType, Value state) {
  const spec::LinearForm &linear = *attention.linear;
  FeatureMap map = FeatureMap::EluPlusOne;
  if (linear.featureMap == spec::FeatureMap::Relu)
    map = FeatureMap::Relu;
  else if (linear.featureMap == spec::FeatureMap::Identity)
    map = FeatureMap::Identity;
  FloatAttr eps;
  if (linear.normalise)
    eps = builder.getF32FloatAttr(float(linear.eps));
  return LinearAttentionOp::create(
      builder, loc, resultType, state ? state.getType() : Type(),
      operands.query, operands.key, operands.value,
      mergeHidden(builder, loc, operands), state, map,
      attention.causal != spec::Causal::None, eps);
}

Value attune::maskOfHidden(OpBuilder &builder, AttentionOp op) {
  if (!op.getLengths() && !op.getBlocks())
    return op.getMask();
  Elements e{builder, op.getLoc()};
  auto varies = [&](int64_t dim) {
    return (op.getMask() && op.getMask().getType().getDimSize(dim) != 1) ||
           (op.getBlocks() &&
            (dim == 2 || op.getBlocks().getType().getDimSize(dim) != 1));
  };
  OpFoldResult one = builder.getIndexAttr(1);
  SmallVector<OpFoldResult> sizes = {
      getAsOpFoldResult(e.dim(op.getQuery(), 0)),
      varies(1) ? getAsOpFoldResult(e.dim(op.getQuery(), 1)) : one,
      varies(2) ? getAsOpFoldResult(e.dim(op.getQuery(), 2)) : one,
      getAsOpFoldResult(e.dim(op.getKey(), 2))};
  return e.generate(sizes, builder.getI1Type(), [&](ValueRange at) -> Value {
    Value seen;
    auto also = [&](Value shown) { seen = seen ? e.both(seen, shown) : shown; };
    auto read = [&](Value mask, ValueRange where) {
      SmallVector<Value> own(where);
      for (int64_t dim = 0; dim < 3; ++dim)
        if (typeOf(mask).getDimSize(dim) == 1)
          own[dim] = e.index(0);
      return e.extract(mask, own);
    };
    if (op.getMask())
      also(read(op.getMask(), at));
    if (op.getLengths())
      also(e.shown(/*mask=*/Value(), op.getLengths(), at[0], at[3]));
    if (Value blocks = op.getBlocks()) {
      ArrayRef<int64_t> size = *op.getBlockSizes();
      SmallVector<Value> where = {at[0], at[1], e.div(at[2], size[0]),
                                  e.div(at[3], size[1])};
      for (int64_t dim = 0; dim < 2; ++dim)
        if (typeOf(blocks).getDimSize(dim) == 1)
          where[dim] = e.index(0);
      also(e.extract(blocks, where));
    }
    return seen;
  });
}

/// Where the states of repeat `number` are in a cache of all repeats'.
static void placeOfState(OpBuilder &builder, Location loc, Value cache,
                         Value number, bool sequenceMajor,
                         SmallVector<OpFoldResult> &offsets,
                         SmallVector<OpFoldResult> &sizes,
                         SmallVector<OpFoldResult> &strides) {
  sizes = tensor::getMixedSizes(builder, loc, cache);
  unsigned repeats = sequenceMajor ? 1 : 0;
  sizes[repeats] = builder.getIndexAttr(1);
  offsets.assign(sizes.size(), builder.getIndexAttr(0));
  offsets[repeats] = number;
  strides.assign(sizes.size(), builder.getIndexAttr(1));
}

Value attune::readState(OpBuilder &builder, Location loc, Value cache,
                        Value number, Value past) {
  Elements e{builder, loc};
  bool unequal = !past.getType().isIndex();
  SmallVector<OpFoldResult> offsets, sizes, strides;
  placeOfState(builder, loc, cache, number, unequal, offsets, sizes, strides);
  SmallVector<int64_t> shape(typeOf(cache).getShape());
  shape.erase(shape.begin() + (unequal ? 1 : 0));
  auto type = RankedTensorType::get(shape, typeOf(cache).getElementType());
  Value state = tensor::ExtractSliceOp::create(builder, loc, type, cache,
                                               offsets, sizes, strides);
  // A sequence begins with nothing, whatever the last one left.
  Value zero = e.index(0), fresh;
  if (!unequal)
    fresh = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, past,
                                  zero);
  Value none =
      arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(0));
  sizes.erase(sizes.begin() + (unequal ? 1 : 0));
  return e.generate(sizes, builder.getF32Type(), [&](ValueRange i) -> Value {
    if (unequal) {
      Value own = arith::IndexCastOp::create(
          builder, loc, builder.getIndexType(), e.extract(past, i[0]));
      fresh = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, own,
                                    zero);
    }
    return arith::SelectOp::create(builder, loc, fresh, none,
                                   e.extract(state, i));
  });
}

Value attune::writeState(OpBuilder &builder, Location loc, Value cache,
                         Value number, Value past, Value state) {
  SmallVector<OpFoldResult> offsets, sizes, strides;
  placeOfState(builder, loc, cache, number, !past.getType().isIndex(), offsets,
               sizes, strides);
  return tensor::InsertSliceOp::create(builder, loc, state, cache, offsets,
                                       sizes, strides);
}

Value LayerImporter::runningAttention(const spec::Attention &attention,
                                      const AttentionOperands &operands) {
  Location at = loc(attention.location);
  Value sums = readState(builder, at, scope.keyCache, scope.index, scope.past);
  auto query = typeOf(operands.query);
  auto resultType = RankedTensorType::get(
      {query.getDimSize(0), query.getDimSize(1), query.getDimSize(2),
       typeOf(operands.value).getDimSize(3)},
      query.getElementType());
  auto op =
      buildLinearAttention(builder, at, attention, operands, resultType, sums);
  scope.keyCache = writeState(builder, at, scope.keyCache, scope.index,
                              scope.past, op.getNewState());
  return op.getResult();
}

/// [batch, heads, tokens, width] as [batch, heads, width, positions]: hidden
/// keys and positions beyond the tokens are zero.
static Value turnTokens(OpBuilder &builder, Location loc, Value heads,
                        const AttentionOperands &operands, int64_t positions) {
  Elements e{builder, loc};
  auto type = typeOf(heads);
  Value tokens = e.dim(heads, 2);
  Value last = e.sub(tokens, e.index(1));
  Value zero = arith::ConstantOp::create(
      builder, loc, builder.getZeroAttr(type.getElementType()));
  return e.generate(
      {e.dim(heads, 0), builder.getIndexAttr(type.getDimSize(1)),
       builder.getIndexAttr(type.getDimSize(3)),
       builder.getIndexAttr(positions)},
      type.getElementType(), [&](ValueRange at) {
        Value token = arith::MinSIOp::create(builder, loc, at[3], last);
        Value seen = e.less(at[3], tokens);
        if (Value shown =
                e.shown(operands.mask, operands.lengths, at[0], token))
          seen = e.both(seen, shown);
        Value x = e.extract(heads, {at[0], at[1], token, at[2]});
        return Value(arith::SelectOp::create(builder, loc, seen, x, zero));
      });
}

/// The projection of `heads` along their tokens: [batch, heads, rank, width].
Value LayerImporter::projectTokens(const spec::Attention &attention,
                                   const std::string &role, Value heads,
                                   const AttentionOperands &operands) {
  const spec::SequenceRank &low = *attention.sequenceRank;
  Location at = loc(low.location);
  bool each = low.shared == spec::SequenceSharing::None;
  auto type = typeOf(heads);
  int64_t count = type.getDimSize(1), width = type.getDimSize(3);
  Value bias;
  if (low.bias &&
      !(bias = weight(at, role + "bias", (each ? count : 1) * low.rank, 0)))
    return {};

  Value turned = turnTokens(builder, at, heads, operands, low.positions);
  auto turnedType = typeOf(turned);
  auto sums = RankedTensorType::get(
      {type.getDimSize(0), count, width, low.rank}, type.getElementType());
  if (each) {
    std::vector<spec::WeightSource> sources =
        spec::resolveWeight(layer, role + "weight");
    if (sources.size() != 1 || sources[0].transposed || sources[0].begin != 0 ||
        sources[0].end >= 0) {
      diags.error(layer.location,
                  "weight '" + role +
                      "weight' is taken apart by heads; it must be one whole "
                      "tensor [heads*rank, positions]");
      return {};
    }
    sources[0].end = sources[0].step = low.rank;
    Value matrices =
        weights.get(builder, at, (symbol + "." + role + "weight").str(),
                    WeightPiece{sources, low.rank}, low.positions, layer,
                    scope.index, count);
    if (!matrices)
      return {};
    turned = HeadLinearOp::create(builder, at, sums, turned, matrices);
  } else {
    Value matrix = weight(at, role + "weight", low.rank, low.positions);
    if (!matrix)
      return {};
    SmallVector<ReassociationIndices> groups = {{0}, {1, 2}, {3}};
    Value rows = tensor::CollapseShapeOp::create(builder, at, turned, groups);
    auto rowType = RankedTensorType::get(
        {turnedType.getDimSize(0), count * width, low.rank},
        type.getElementType());
    rows = LinearOp::create(builder, at, rowType, rows, matrix,
                            /*bias=*/Value(), /*residual=*/Value(),
                            attune::Activation::Identity, /*gated=*/false,
                            /*scale=*/nullptr);
    Elements e{builder, at};
    SmallVector<OpFoldResult> sizes = {
        getAsOpFoldResult(e.dim(rows, 0)), builder.getIndexAttr(count),
        builder.getIndexAttr(width), builder.getIndexAttr(low.rank)};
    turned =
        tensor::ExpandShapeOp::create(builder, at, sums, rows, groups, sizes);
  }
  Elements e{builder, at};
  return e.generate(
      {getAsOpFoldResult(e.dim(turned, 0)), builder.getIndexAttr(count),
       builder.getIndexAttr(low.rank), builder.getIndexAttr(width)},
      type.getElementType(), [&](ValueRange i) {
        Value x = e.extract(turned, {i[0], i[1], i[3], i[2]});
        if (!bias)
          return x;
        Value number = i[2];
        if (each)
          number = e.add(number, arith::MulIOp::create(builder, at, i[1],
                                                       e.index(low.rank)));
        Value shift = e.extract(bias, number);
        if (shift.getType() != x.getType())
          shift = arith::ExtFOp::create(builder, at, x.getType(), shift);
        return Value(arith::AddFOp::create(builder, at, x, shift));
      });
}

Value LayerImporter::clip(const spec::Attention &attention, Value input) {
  if (!attention.clip || !input)
    return input;
  Location at = loc(attention.location);
  Value low = arith::MaximumFOp::create(builder, at, input,
                                        splatLike(at, input, -*attention.clip));
  return arith::MinimumFOp::create(builder, at, low,
                                   splatLike(at, input, *attention.clip));
}

bool LayerImporter::readSinks(const spec::Attention &attention,
                              StringRef prefix, AttentionOperands &operands) {
  Location at = loc(attention.location);
  Value sinks = weight(at, (prefix + "sinks").str(), attention.heads, 0);
  if (!sinks)
    return false;
  auto type =
      cast<RankedTensorType>(sinks.getType()).clone(builder.getF32Type());
  if (sinks.getType() != type)
    sinks = arith::ExtFOp::create(builder, at, type, sinks);
  operands.sinks = sinks;
  return true;
}

bool LayerImporter::projectSequence(const spec::Attention &attention,
                                    StringRef prefix,
                                    AttentionOperands &operands) {
  std::string keys = (prefix + "sequence_k.").str();
  std::string values = (prefix + "sequence_v.").str();
  bool alike =
      attention.sequenceRank->shared == spec::SequenceSharing::KeysValues;
  operands.key = projectTokens(attention, keys, operands.key, operands);
  operands.value =
      projectTokens(attention, alike ? keys : values, operands.value, operands);
  operands.mask = operands.lengths = Value();
  return operands.key && operands.value;
}
