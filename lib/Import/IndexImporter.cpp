//===- IndexImporter.cpp - Latent attention to chosen keys ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// DeepSeek-V3.2: small heads score every key for a query, and the attention is
// to the rows of the best of them alone. One query is taken after the other, so
// that a prompt does no more for each than a step of decoding: it scores, it
// chooses, it copies the chosen rows, and attends to the copy with all heads.
// Where there are no more keys than would be chosen, nothing is: attention is
// what it is without an index.
//
// Nothing is sorted. Scores become integers of the same order. The last chosen
// one is found in 32 halvings of what it may be, each of which counts how many
// are at least so large. Then every place of the copy looks up its key in
// counts of chunks of keys, so that places do not wait for one another.

#include "Elements.h"
#include "LayerImporter.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <limits>

using namespace mlir;
using namespace attune;

using arith::CmpIPredicate;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

namespace {
/// Keys that are counted together.
constexpr int64_t kChunk = 128;
/// Less than the number of any score: of a hidden key.
constexpr int32_t kHidden = std::numeric_limits<int32_t>::min();

/// Chooses the keys of one query of each sequence.
class KeyChoice {
public:
  KeyChoice(OpBuilder &builder, Location loc, const spec::KeyIndex &index,
            const IndexOperands &operands, Value query)
      : b(builder), loc(loc), e{builder, loc}, index(index), from(operands),
        query(query), batch(e.dim(operands.keys, 0)),
        keys(e.dim(operands.keys, 2)), chunks(e.ceilDiv(keys, kChunk)) {
    numbers = numbersOf(scores());
    last = lastChosen();
    tally();
  }

  /// How many keys each sequence's query sees, at most `top`: [batch].
  Value counts() {
    return e.generate(
        {getAsOpFoldResult(batch)}, b.getI64Type(), [&](ValueRange at) {
          return arith::ExtSIOp::create(b, loc, b.getI64Type(),
                                        chosenBefore(at[0], chunks));
        });
  }

  /// The first of them, in order: [batch, top]. Those behind are of any key.
  Value places() {
    return e.generate({getAsOpFoldResult(batch), b.getIndexAttr(index.top)},
                      b.getI64Type(), [&](ValueRange at) -> Value {
                        Value place = arith::IndexCastOp::create(
                            b, loc, b.getI32Type(), at[1]);
                        return arith::IndexCastOp::create(
                            b, loc, b.getI64Type(), keyAt(at[0], place));
                      });
  }

private:
  Value number(int32_t n) {
    return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(n));
  }
  Value compare(CmpIPredicate how, Value x, Value y) {
    return arith::CmpIOp::create(b, loc, how, x, y);
  }
  Value select(Value which, Value x, Value y) {
    return arith::SelectOp::create(b, loc, which, x, y);
  }
  Value one(Value when) {
    return arith::ExtUIOp::create(b, loc, b.getI32Type(), when);
  }
  /// A loop that carries numbers.
  SmallVector<Value>
  loop(Value from, Value to, ValueRange start,
       llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body) {
    auto op = scf::ForOp::create(b, loc, from, to, e.index(1), start);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(op.getBody());
    scf::YieldOp::create(b, loc,
                         body(op.getInductionVar(), op.getRegionIterArgs()));
    return llvm::to_vector_of<Value>(op.getResults());
  }
  std::pair<Value, Value> chunkAt(Value chunk) {
    Value begin = arith::MulIOp::create(b, loc, chunk, e.index(kChunk));
    Value end =
        arith::MinSIOp::create(b, loc, keys, e.add(begin, e.index(kChunk)));
    return {begin, end};
  }

  Value scores();
  Value numbersOf(Value scores);
  Value lastChosen();
  void tally();
  Value chosenBefore(Value sequence, Value chunk);
  Value keyAt(Value sequence, Value place);

  OpBuilder &b;
  Location loc;
  Elements e;
  const spec::KeyIndex &index;
  const IndexOperands &from;
  Value query; ///< number of the query
  Value batch, keys, chunks;
  Value numbers; ///< [batch, keys], in the order of scores
  Value last;    ///< [batch]: the smallest number that is chosen
  /// [batch, chunks + 1, 2]: keys before a chunk that are above the last one,
  /// and as large.
  Value before;
};
} // namespace

/// Products of the small heads: [batch, small heads, 1, keys].
Value KeyChoice::scores() {
  SmallVector<OpFoldResult> offsets(4, b.getIndexAttr(0));
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, from.queries);
  SmallVector<OpFoldResult> strides(4, b.getIndexAttr(1));
  offsets[2] = query;
  sizes[2] = b.getIndexAttr(1);
  SmallVector<int64_t> shape(typeOf(from.queries).getShape());
  shape[2] = 1;
  Value own = tensor::ExtractSliceOp::create(
      b, loc,
      RankedTensorType::get(shape, typeOf(from.queries).getElementType()),
      from.queries, offsets, sizes, strides);
  shape[3] = typeOf(from.keys).getDimSize(2);
  double scale = 1 / std::sqrt(double(index.heads * index.headDim));
  return SimilarityOp::create(b, loc,
                              RankedTensorType::get(shape, b.getF32Type()), own,
                              from.keys, b.getF32FloatAttr(float(scale)));
}

/// The sums over heads as integers that are in order as they are. Those of keys
/// that the query does not see are below all others.
Value KeyChoice::numbersOf(Value scores) {
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0));
  // Queries before the last one do not see the last keys.
  Value behind;
  if (from.causal)
    behind = e.add(e.sub(keys, e.dim(from.queries, 2)), query);
  return e.generate(
      {getAsOpFoldResult(batch), getAsOpFoldResult(keys)}, b.getI32Type(),
      [&](ValueRange at) {
        Value sum =
            loop(e.index(0), e.index(index.heads), zero,
                 [&](Value head, ValueRange so) {
                   Value score =
                       e.extract(scores, {at[0], head, e.index(0), at[1]});
                   score = arith::MaximumFOp::create(b, loc, score, zero);
                   Value share = e.extract(from.shares, {at[0], query, head});
                   score = arith::MulFOp::create(b, loc, score, share);
                   return SmallVector<Value>{
                       arith::AddFOp::create(b, loc, so[0], score)};
                 })[0];
        // The sum of -0 and 0 is 0. The larger the other bits of a negative
        // number, the smaller it is.
        sum = arith::AddFOp::create(b, loc, sum, zero);
        Value bits = arith::BitcastOp::create(b, loc, b.getI32Type(), sum);
        Value sign = arith::ShRSIOp::create(b, loc, bits, number(31));
        Value flip = arith::AndIOp::create(b, loc, sign, number(0x7fffffff));
        bits = arith::XOrIOp::create(b, loc, bits, flip);
        // What is no number is not below the hidden ones.
        bits = arith::MaxSIOp::create(b, loc, bits, number(kHidden + 1));
        Value seen = e.shown(from.mask, from.lengths, at[0], at[1]);
        if (behind) {
          Value reached = e.atMost(at[1], behind);
          seen = seen ? e.both(seen, reached) : reached;
        }
        return seen ? select(seen, bits, number(kHidden)) : bits;
      });
}

/// The largest number that at least `top` are not below; if there are fewer,
/// the smallest that a key has which is not hidden. Bit after bit, from the
/// smallest of all numbers on: one more is set if enough keys have it, too.
Value KeyChoice::lastChosen() {
  OpFoldResult sequences = getAsOpFoldResult(batch);
  Value start = e.generate({sequences}, b.getI32Type(),
                           [&](ValueRange) { return number(kHidden); });
  Value found =
      loop(e.index(0), e.index(32), start, [&](Value round, ValueRange so) {
        Value bit = arith::ShRUIOp::create(
            b, loc, number(kHidden),
            arith::IndexCastOp::create(b, loc, b.getI32Type(), round));
        Value parts = e.generate(
            {sequences, getAsOpFoldResult(chunks)}, b.getI32Type(),
            [&](ValueRange at) {
              Value least =
                  arith::AddIOp::create(b, loc, e.extract(so[0], at[0]), bit);
              auto [begin, end] = chunkAt(at[1]);
              return loop(begin, end, number(0), [&](Value key, ValueRange so) {
                Value own = e.extract(numbers, {at[0], key});
                Value more = compare(CmpIPredicate::sge, own, least);
                return SmallVector<Value>{
                    arith::AddIOp::create(b, loc, so[0], one(more))};
              })[0];
            });
        auto next = linalg::GenericOp::create(
            b, loc, so[0].getType(), ValueRange{}, so[0],
            b.getMultiDimIdentityMap(1), utils::IteratorType::parallel,
            [&](OpBuilder &inner, Location, ValueRange own) {
              OpBuilder::InsertionGuard guard(b);
              b.setInsertionPointToEnd(inner.getInsertionBlock());
              Value sequence = linalg::IndexOp::create(b, loc, 0);
              Value many = loop(
                  e.index(0), chunks, number(0),
                  [&](Value chunk, ValueRange so) {
                    return SmallVector<Value>{arith::AddIOp::create(
                        b, loc, so[0], e.extract(parts, {sequence, chunk}))};
                  })[0];
              Value enough =
                  compare(CmpIPredicate::sge, many, number(int32_t(index.top)));
              Value more = arith::AddIOp::create(b, loc, own[0], bit);
              linalg::YieldOp::create(b, loc, select(enough, more, own[0]));
            });
        return SmallVector<Value>{next.getResult(0)};
      })[0];
  return e.generate({sequences}, b.getI32Type(), [&](ValueRange at) -> Value {
    return arith::MaxSIOp::create(b, loc, e.extract(found, at[0]),
                                  number(kHidden + 1));
  });
}

/// Counts the keys before each chunk.
void KeyChoice::tally() {
  auto kindOf = [&](ValueRange at, Value own) -> Value {
    Value least = e.extract(last, at[0]);
    Value above = compare(CmpIPredicate::sgt, own, least);
    Value alike = compare(CmpIPredicate::eq, own, least);
    Value first = compare(CmpIPredicate::eq, at[2], e.index(0));
    return one(select(first, above, alike));
  };
  Value parts = e.generate(
      {getAsOpFoldResult(batch), getAsOpFoldResult(chunks), b.getIndexAttr(2)},
      b.getI32Type(), [&](ValueRange at) {
        auto [begin, end] = chunkAt(at[1]);
        return loop(begin, end, number(0), [&](Value key, ValueRange so) {
          Value own = e.extract(numbers, {at[0], key});
          return SmallVector<Value>{
              arith::AddIOp::create(b, loc, so[0], kindOf(at, own))};
        })[0];
      });
  before = e.generate(
      {getAsOpFoldResult(batch), getAsOpFoldResult(e.add(chunks, e.index(1))),
       b.getIndexAttr(2)},
      b.getI32Type(), [&](ValueRange at) {
        return loop(e.index(0), at[1], number(0),
                    [&](Value chunk, ValueRange so) {
                      Value own = e.extract(parts, {at[0], chunk, at[2]});
                      return SmallVector<Value>{
                          arith::AddIOp::create(b, loc, so[0], own)};
                    })[0];
      });
}

/// How many keys before a chunk are chosen: of those that are as large as the
/// last one the first, as many as the larger ones leave room for.
Value KeyChoice::chosenBefore(Value sequence, Value chunk) {
  Value above = e.extract(before, {sequence, chunk, e.index(0)});
  Value alike = e.extract(before, {sequence, chunk, e.index(1)});
  Value all = e.extract(before, {sequence, chunks, e.index(0)});
  Value room = arith::SubIOp::create(b, loc, number(int32_t(index.top)), all);
  return arith::AddIOp::create(b, loc, above,
                               arith::MinSIOp::create(b, loc, alike, room));
}

/// The key that stands at a place of the chosen ones.
Value KeyChoice::keyAt(Value sequence, Value place) {
  // The last chunk before which there are no more.
  Value chunk =
      loop(e.index(1), chunks, e.index(0), [&](Value chunk, ValueRange so) {
        Value fewer =
            compare(CmpIPredicate::sle, chosenBefore(sequence, chunk), place);
        return SmallVector<Value>{select(fewer, chunk, so[0])};
      })[0];
  Value above = e.extract(before, {sequence, chunk, e.index(0)});
  Value alike = e.extract(before, {sequence, chunk, e.index(1)});
  Value all = e.extract(before, {sequence, chunks, e.index(0)});
  Value room = arith::SubIOp::create(b, loc, number(int32_t(index.top)), all);
  Value least = e.extract(last, sequence);
  auto [begin, end] = chunkAt(chunk);
  return loop(begin, end, {above, alike, begin}, [&](Value key, ValueRange so) {
    Value own = e.extract(numbers, {sequence, key});
    Value larger = compare(CmpIPredicate::sgt, own, least);
    Value equal = compare(CmpIPredicate::eq, own, least);
    Value fits = compare(CmpIPredicate::slt, so[1], room);
    Value chosen = e.either(larger, e.both(equal, fits));
    Value many = arith::AddIOp::create(
        b, loc, so[0], arith::MinSIOp::create(b, loc, so[1], room));
    Value here = compare(CmpIPredicate::eq, many, place);
    return SmallVector<Value>{arith::AddIOp::create(b, loc, so[0], one(larger)),
                              arith::AddIOp::create(b, loc, so[1], one(equal)),
                              select(e.both(chosen, here), key, so[2])};
  })[2];
}

/// The rows of places [batch, top]: [batch, 1, top, width].
static Value gather(OpBuilder &builder, Location loc, Value rows,
                    Value places) {
  Elements e{builder, loc};
  auto type = typeOf(rows);
  Value none = e.index(0);
  return e.generate({getAsOpFoldResult(e.dim(rows, 0)), builder.getIndexAttr(1),
                     builder.getIndexAttr(typeOf(places).getDimSize(1)),
                     builder.getIndexAttr(type.getDimSize(3))},
                    type.getElementType(), [&](ValueRange at) {
                      Value place = arith::IndexCastOp::create(
                          builder, loc, builder.getIndexType(),
                          e.extract(places, {at[0], at[2]}));
                      return e.extract(rows, {at[0], none, place, at[3]});
                    });
}

/// Queries or keys of the index with their positions.
static Value turnedFirst(OpBuilder &builder, Location loc,
                         const spec::KeyIndex &index, const LayerScope &scope,
                         Value heads) {
  return RotaryOp::create(
      builder, loc, heads.getType(), heads, scope.cos, scope.sin,
      index.interleaved ? RotaryPairing::Interleaved : RotaryPairing::Half);
}

bool LayerImporter::indexOperands(const spec::Attention &attention,
                                  const std::string &prefix, Value input,
                                  Value low, IndexOperands &into) {
  const spec::KeyIndex &index = *attention.latent->index;
  Location at = loc(index.location);
  std::string role = prefix + "index.";
  Value asked = stateProjection(at, role + "q", low,
                                index.heads * index.headDim, /*bias=*/false);
  Value own =
      stateProjection(at, role + "k", input, index.headDim, /*bias=*/false);
  into.shares =
      stateProjection(at, role + "shares", input, index.heads, /*bias=*/false);
  if (!asked || !own || !into.shares)
    return false;
  Value queries = splitHeads(builder, at, asked, index.heads, index.headDim, 0);
  Value keys = splitHeads(builder, at, own, 1, index.headDim, 0);
  keys = norm(index.norm, role + "k_norm.", keys);
  if (!keys)
    return false;
  into.queries = turnedFirst(builder, at, index, scope, queries);
  into.keys = turnedFirst(builder, at, index, scope, keys);
  if (scope.keyCache)
    into.keys = throughCache(at, into.keys, scope.valueCache);
  return true;
}

/// Part of heads [batch, heads, tokens, width]: one token, or all of them
/// without a number, and the first channels.
static Value partOfHeads(OpBuilder &builder, Location loc, Value heads,
                         Value number, int64_t width) {
  auto type = typeOf(heads);
  SmallVector<int64_t> shape(type.getShape());
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, heads);
  SmallVector<OpFoldResult> offsets(4, builder.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(4, builder.getIndexAttr(1));
  if (number) {
    offsets[2] = number;
    sizes[2] = builder.getIndexAttr(1);
    shape[2] = 1;
  }
  sizes[3] = builder.getIndexAttr(width);
  shape[3] = width;
  return tensor::ExtractSliceOp::create(builder, loc, type.clone(shape), heads,
                                        offsets, sizes, strides);
}

/// Attention of one query after the other to the keys that the index chooses:
/// of `type`, whose sizes are `sizes`.
Value LayerImporter::chosenAttention(const spec::Attention &attention,
                                     const IndexOperands &from,
                                     const AttentionOperands &operands,
                                     RankedTensorType type,
                                     ArrayRef<OpFoldResult> sizes) {
  const spec::KeyIndex &index = *attention.latent->index;
  Location at = loc(index.location);
  Elements e{builder, at};
  int64_t rank = attention.latent->rank;
  Value all =
      tensor::EmptyOp::create(builder, at, sizes, type.getElementType());
  auto each = scf::ForOp::create(builder, at, e.index(0),
                                 e.dim(operands.query, 2), e.index(1), all);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(each.getBody());
  Value number = each.getInductionVar();
  KeyChoice choice(builder, at, index, from, number);
  AttentionOperands chosen;
  chosen.query = partOfHeads(builder, at, operands.query, number,
                             typeOf(operands.query).getDimSize(3));
  chosen.key = gather(builder, at, operands.key, choice.places());
  chosen.value = partOfHeads(builder, at, chosen.key, Value(), rank);
  chosen.lengths = choice.counts();
  Value sums =
      buildAttention(builder, at, attention, chosen, /*decoding=*/true).first;
  SmallVector<OpFoldResult> offsets(4, builder.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(4, builder.getIndexAttr(1));
  SmallVector<OpFoldResult> own(sizes);
  offsets[2] = number;
  own[2] = builder.getIndexAttr(1);
  Value next = tensor::InsertSliceOp::create(
      builder, at, sums, each.getRegionIterArg(0), offsets, own, strides);
  scf::YieldOp::create(builder, at, next);
  return each.getResult(0);
}

Value LayerImporter::indexedAttention(const spec::Attention &attention,
                                      const std::string &prefix, Value input,
                                      Value low,
                                      const AttentionOperands &operands) {
  const spec::KeyIndex &index = *attention.latent->index;
  Location at = loc(index.location);
  bool decoding = bool(scope.keyCache);
  IndexOperands from;
  if (!indexOperands(attention, prefix, input, low, from))
    return {};
  from.mask = operands.mask;
  from.lengths = operands.lengths;
  // A new token of each of several sequences sees all of its own.
  from.causal =
      attention.causal != spec::Causal::None && !(decoding && operands.lengths);
  Elements e{builder, at};
  auto query = typeOf(operands.query);
  SmallVector<int64_t> shape(query.getShape());
  shape[3] = attention.latent->rank;
  auto type = query.clone(shape);
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(builder, at, operands.query);
  sizes[3] = builder.getIndexAttr(shape[3]);
  Value few = e.atMost(e.dim(operands.key, 2), e.index(index.top));
  auto either = scf::IfOp::create(builder, at, type, few, /*addThenBlock=*/true,
                                  /*addElseBlock=*/true);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(either.thenBlock());
    scf::YieldOp::create(
        builder, at,
        buildAttention(builder, at, attention, operands, decoding).first);
    builder.setInsertionPointToEnd(either.elseBlock());
    scf::YieldOp::create(
        builder, at, chosenAttention(attention, from, operands, type, sizes));
  }
  // What comes behind asks for sizes, which branches do not tell.
  SmallVector<OpFoldResult> offsets(4, builder.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(4, builder.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(builder, at, type, either.getResult(0),
                                        offsets, sizes, strides);
}
