//===- HeadRows.cpp - Rows of heads on their way ----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HeadRows.h"

#include "../Rows/Norms.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace attune {

static Type elementOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType()).getElementType();
}

bool turnsIntoCache(RotaryOp rotary) {
  if (!rotary->hasOneUse())
    return false;
  auto append = dyn_cast<CacheAppendOp>(*rotary->user_begin());
  auto angles = cast<RankedTensorType>(rotary.getCos().getType());
  return append && append.getNewRows() == rotary.getResult() &&
         !angles.isDynamicDim(2) &&
         (elementOf(append.getCache()) == elementOf(rotary.getResult()) ||
          isInBytes(append.getCache()));
}

bool readsColumns(Operation *user, SplitHeadsOp split) {
  Type element = elementOf(split.getResult());
  if (isa<RotaryOp>(user))
    return element == elementOf(split.getInput());
  auto append = dyn_cast<CacheAppendOp>(user);
  return append && append.getNewRows() == split.getResult() &&
         (element == elementOf(split.getInput()) ||
          element == elementOf(append.getCache()));
}

Value pastOf(KernelBuilder &k, CacheAppendOp append, Value sequence) {
  if (!hasUnequalPast(append))
    return append.getPast();
  Value past = k.loadScalar(append.getPast(), {sequence});
  return arith::IndexCastOp::create(k.b, k.loc, k.b.getIndexType(), past);
}

static SmallVector<Value> with(ArrayRef<Value> row, Value channel) {
  SmallVector<Value> at(row);
  at.push_back(channel);
  return at;
}

Value copyRow(KernelBuilder &k, int64_t width, int64_t lanes, LoadColumns load,
              Value tile, ArrayRef<Value> to) {
  if (isInBytes(tile))
    return writeInBytes(k, width, lanes, load, tile, to);
  return forColumns(
      k, width, lanes, tile,
      [&](KernelBuilder &k, Value column, Value valid, ValueRange carried) {
        return KernelBuilder::Values{k.store(load(k, column, lanes, valid),
                                             carried[0], with(to, column),
                                             valid)};
      })[0];
}

//===----------------------------------------------------------------------===//
// Turning
//===----------------------------------------------------------------------===//

Turning::Turning(RotaryOp op, int64_t lanes, bool ahead)
    : op(op), ahead(ahead), lanes(lanes), vector(lanes),
      pairs(cast<RankedTensorType>(op.getCos().getType()).getDimSize(2)) {
  // The widest vector that divides the pairs: no masks.
  while (pairs % vector != 0)
    vector /= 2;
}

static std::pair<Value, Value> turned(KernelBuilder &k, Value a, Value b,
                                      Value cos, Value sin) {
  Value ac = arith::MulFOp::create(k.b, k.loc, a, cos);
  Value bs = arith::MulFOp::create(k.b, k.loc, b, sin);
  Value bc = arith::MulFOp::create(k.b, k.loc, b, cos);
  return {arith::SubFOp::create(k.b, k.loc, ac, bs), k.fma(a, sin, bc)};
}

Value Turning::turnPairs(
    KernelBuilder &k,
    function_ref<Value(KernelBuilder &, Value, Value, int64_t)> load,
    Value batch, Value token, Value tile, ArrayRef<Value> to) const {
  bool halves = op.getPairing() == RotaryPairing::Half;
  struct Turned {
    Value first, second; ///< of pairs in halves
    Value merged;        ///< of neighbours
  };
  auto read = [&](KernelBuilder &k, Value pair, Value tile) -> Turned {
    Value at[] = {batch, token, pair};
    Value cos = k.load(op.getCos(), at, vector);
    Value sin = k.load(op.getSin(), at, vector);
    if (halves) {
      auto [first, second] =
          turned(k, load(k, tile, pair, vector),
                 load(k, tile, k.add(pair, k.index(pairs)), vector), cos, sin);
      return {first, second, Value()};
    }
    auto split = vector::DeinterleaveOp::create(
        k.b, k.loc, load(k, tile, k.mul(pair, 2), 2 * vector));
    auto [first, second] =
        turned(k, split.getResult(0), split.getResult(1), cos, sin);
    return {{}, {}, vector::InterleaveOp::create(k.b, k.loc, first, second)};
  };
  auto write = [&](KernelBuilder &k, Value pair, const Turned &made,
                   Value tile) -> Value {
    if (!halves)
      return k.store(made.merged, tile, with(to, k.mul(pair, 2)));
    tile = k.store(made.first, tile, with(to, pair));
    return k.store(made.second, tile, with(to, k.add(pair, k.index(pairs))));
  };
  if (!ahead)
    return k.forLoop(k.index(0), k.index(pairs), vector, tile,
                     [&](KernelBuilder &k, Value pair, ValueRange carried) {
                       return KernelBuilder::Values{write(
                           k, pair, read(k, pair, carried[0]), carried[0])};
                     })[0];
  // A store might change what is loaded behind it, so that each load would be
  // waited for: several come first.
  constexpr int64_t atOnce = 4;
  for (int64_t first = 0; first < pairs; first += atOnce * vector) {
    int64_t end = std::min(first + atOnce * vector, pairs);
    SmallVector<Turned> made;
    for (int64_t pair = first; pair < end; pair += vector)
      made.push_back(read(k, k.index(pair), tile));
    for (auto [i, turned] : llvm::enumerate(made))
      tile = write(k, k.index(first + int64_t(i) * vector), turned, tile);
  }
  return tile;
}

Value Turning::emit(KernelBuilder &k, LoadColumns load, Value batch,
                    Value token, Value tile, ArrayRef<Value> to) const {
  tile = turnPairs(
      k,
      [&](KernelBuilder &k, Value, Value column, int64_t lanes) {
        return load(k, column, lanes, Value());
      },
      batch, token, tile, to);
  // The channels behind the pairs come along.
  int64_t width = cast<RankedTensorType>(op.getType()).getDimSize(3);
  return forColumns(
      k, width - 2 * pairs, lanes, tile,
      [&](KernelBuilder &k, Value column, Value valid, ValueRange c) {
        column = k.add(column, k.index(2 * pairs));
        return KernelBuilder::Values{k.store(load(k, column, lanes, valid),
                                             c[0], with(to, column), valid)};
      })[0];
}

Value Turning::emitInPlace(KernelBuilder &k, Value batch, Value token,
                           Value tile, ArrayRef<Value> to) const {
  return turnPairs(
      k,
      [&](KernelBuilder &k, Value tile, Value column, int64_t lanes) {
        return k.load(tile, with(to, column), lanes);
      },
      batch, token, tile, to);
}

Value throughRow(
    KernelBuilder &k, int64_t width, int64_t lanes, Value tile,
    ArrayRef<Value> to,
    function_ref<Value(KernelBuilder &, Value tile, ArrayRef<Value> to)>
        write) {
  if (!isInBytes(tile))
    return write(k, tile, to);
  // Scratch of the same rank, on the thread's stack.
  SmallVector<int64_t> shape(to.size(), 1);
  shape.push_back(width);
  SmallVector<Value> front(to.size(), k.index(0));
  Value row = write(
      k, tensor::EmptyOp::create(k.b, k.loc, shape, k.b.getF32Type()), front);
  auto load = [&](KernelBuilder &k, Value column, int64_t lanes, Value valid) {
    return k.load(row, with(front, column), lanes, valid);
  };
  return writeInBytes(k, width, lanes, load, tile, to);
}

//===----------------------------------------------------------------------===//
// Behind a projection
//===----------------------------------------------------------------------===//

/// Whether `value` is there before `op`.
static bool isBefore(Value value, Operation *op) {
  Operation *def = value.getDefiningOp();
  return !def || def->getBlock() != op->getBlock() || def->isBeforeInBlock(op);
}

/// Whether `value` can be there before `op`: a weight may be asked for earlier.
static bool canBeBefore(Value value, Operation *op) {
  if (!value || isBefore(value, op))
    return true;
  auto weight = value.getDefiningOp<WeightGetOp>();
  return weight && llvm::all_of(weight->getOperands(), [&](Value operand) {
           return isBefore(operand, op);
         });
}

static Operation *onlyUser(Operation *op) {
  return op->hasOneUse() ? *op->user_begin() : nullptr;
}

SmallVector<Operation *, 4> HeadEpilogue::Part::chain() const {
  SmallVector<Operation *, 4> ops;
  for (Operation *op :
       {SplitHeadsOp(split).getOperation(), norm,
        RotaryOp(rotary).getOperation(), CacheAppendOp(append).getOperation()})
    if (op)
      ops.push_back(op);
  return ops;
}

void HeadEpilogue::follow(Part &part, Operation *layer) {
  Operation *reader = onlyUser(part.split);
  Type element = elementOf(part.split.getResult());
  bool whole = element == elementOf(part.split.getInput());
  if (auto norm = reader ? Norm::of(reader) : std::nullopt;
      norm && whole && canBeBefore(norm->gamma, layer) &&
      canBeBefore(norm->beta, layer)) {
    part.norm = reader;
    element = elementOf(reader->getResult(0));
    // A norm is computed in f32 and rounded once.
    whole = element.isF32();
    reader = onlyUser(reader);
  }
  auto rotary = dyn_cast_or_null<RotaryOp>(reader);
  if (rotary &&
      (part.norm ? element == elementOf(rotary.getResult()) : whole)) {
    auto angles = cast<RankedTensorType>(rotary.getCos().getType());
    if (angles.isDynamicDim(2) || !isBefore(rotary.getCos(), layer) ||
        !isBefore(rotary.getSin(), layer))
      return;
    part.rotary = rotary;
    reader = turnsIntoCache(rotary) ? onlyUser(rotary) : nullptr;
  }
  auto append = dyn_cast_or_null<CacheAppendOp>(reader);
  // An append in a loop or branch is not moved out of it.
  if (!append || append->getBlock() != layer->getBlock() ||
      append.getNewRows() != part.chain().back()->getResult(0) ||
      !isBefore(append.getCache(), layer) ||
      !isBefore(append.getLayer(), layer) || !isBefore(append.getPast(), layer))
    return;
  if (part.rotary || whole || element == elementOf(append.getCache()))
    part.append = append;
}

std::optional<HeadEpilogue> HeadEpilogue::match(Operation *layer,
                                                Value result) {
  HeadEpilogue epilogue;
  if (result.use_empty())
    return std::nullopt;
  for (Operation *user : result.getUsers()) {
    auto split = dyn_cast<SplitHeadsOp>(user);
    if (!split || split->getBlock() != layer->getBlock())
      return std::nullopt;
    auto type = cast<RankedTensorType>(split.getType());
    Part part = {split, nullptr, {}, {}, 0, type.getDimSize(1)};
    if (epilogue.width != 0 && type.getDimSize(3) != epilogue.width)
      return std::nullopt;
    epilogue.width = type.getDimSize(3);
    auto offset = static_cast<int64_t>(split.getOffset());
    if (offset % epilogue.width != 0)
      return std::nullopt;
    part.begin = offset / epilogue.width;
    follow(part, layer);
    auto inOrder = [](const Part &a, const Part &b) {
      return a.begin < b.begin;
    };
    epilogue.parts.insert(llvm::upper_bound(epilogue.parts, part, inOrder),
                          part);
  }
  return epilogue;
}

KernelBuilder::Values HeadEpilogue::destinations(KernelBuilder &k, Value batch,
                                                 Value tokens) const {
  KernelBuilder::Values dests;
  for (Part part : parts) {
    if (part.append) {
      dests.push_back(part.append.getCache());
      continue;
    }
    Value heads = part.chain().back()->getResult(0);
    SmallVector<OpFoldResult> sizes = {
        getAsOpFoldResult(batch), k.b.getIndexAttr(part.heads),
        getAsOpFoldResult(tokens), k.b.getIndexAttr(width)};
    dests.push_back(
        tensor::EmptyOp::create(k.b, k.loc, sizes, elementOf(heads)));
  }
  return dests;
}

std::pair<Value, Value> HeadEpilogue::headsOf(KernelBuilder &k,
                                              const Part &part, Value first,
                                              Value number) const {
  auto within = [&](Value head) -> Value {
    head = arith::MaxUIOp::create(k.b, k.loc, head, k.index(part.begin));
    return arith::MinUIOp::create(k.b, k.loc, head,
                                  k.index(part.begin + part.heads));
  };
  auto headAt = [&](Value column) -> Value {
    return arith::DivUIOp::create(k.b, k.loc, column, k.index(width));
  };
  return {within(headAt(first)), within(headAt(k.add(first, number)))};
}

SmallVector<KernelBuilder::Tile> HeadEpilogue::place(KernelBuilder &k,
                                                     Value first, Value number,
                                                     const Rows &of) const {
  SmallVector<KernelBuilder::Tile> tiles;
  Value zero = k.index(0);
  for (Part part : parts) {
    auto [begin, end] = headsOf(k, part, first, number);
    Value head = k.sub(begin, k.index(part.begin));
    KernelBuilder::Tile tile = {
        {of.firstSequence, head, of.firstToken, zero},
        {getAsOpFoldResult(of.sequences), getAsOpFoldResult(k.sub(end, begin)),
         getAsOpFoldResult(of.tokens), k.b.getIndexAttr(width)}};
    if (CacheAppendOp append = part.append) {
      // A tile may have several sequences: where each has its rows is then left
      // to the writing of a row.
      if (hasUnequalPast(append)) {
        tile.offsets[2] = zero;
        tile.sizes[2] = getAsOpFoldResult(k.dim(append.getCache(), 3));
      } else {
        tile.offsets[2] = k.add(append.getPast(), of.firstToken);
      }
      tile.sizes.back() =
          k.b.getIndexAttr(elementsOfRow(elementOf(append.getCache()), width));
      unsigned layerDim = append.getSequenceMajor() ? 1 : 0;
      tile.offsets.insert(tile.offsets.begin() + layerDim, append.getLayer());
      tile.sizes.insert(tile.sizes.begin() + layerDim, k.b.getIndexAttr(1));
    }
    tiles.push_back(std::move(tile));
  }
  return tiles;
}

KernelBuilder::Values HeadEpilogue::take(KernelBuilder &k, Value firstRow,
                                         Value rows, Value first, Value number,
                                         const Rows &of, int64_t lanes,
                                         Value scratch, ValueRange tiles,
                                         bool ahead) const {
  auto takeRow = [&](KernelBuilder &k, Value row, ValueRange tiles) {
    Value all = k.add(firstRow, row);
    Value sequenceOfTile = arith::DivUIOp::create(k.b, k.loc, all, of.tokens);
    Value tokenOfTile = arith::RemUIOp::create(k.b, k.loc, all, of.tokens);
    Value batch = k.add(of.firstSequence, sequenceOfTile);
    Value token = k.add(of.firstToken, tokenOfTile);
    KernelBuilder::Values written;
    for (auto [part, tile] : llvm::zip(parts, tiles)) {
      auto [begin, end] = headsOf(k, part, first, number);
      auto one = [&, part = part, begin = begin](KernelBuilder &k, Value head,
                                                 ValueRange carried) {
        Value column = k.sub(k.mul(head, width), first);
        auto load = [&](KernelBuilder &k, Value at, int64_t lanes,
                        Value valid) {
          return k.load(scratch, {row, k.add(column, at)}, lanes, valid);
        };
        // One head at a time is the tile's first, whose address is a multiple
        // of whatever a row's is.
        Value line = ahead ? k.index(0) : k.sub(head, begin);
        SmallVector<Value> to = {sequenceOfTile, line, tokenOfTile};
        if (CacheAppendOp append = part.append) {
          if (hasUnequalPast(append))
            to[2] = k.add(pastOf(k, append, batch), token);
          to.insert(to.begin() + (append.getSequenceMajor() ? 1 : 0),
                    k.index(0));
        }
        auto changed = [&](KernelBuilder &k, Value tile, ArrayRef<Value> to) {
          if (!part.norm)
            return Turning(part.rotary, lanes, ahead)
                .emit(k, load, batch, token, tile, to);
          Value ofPart = k.sub(head, k.index(part.begin));
          tile = normaliseHead(k, *Norm::of(part.norm), load, ofPart, width,
                               lanes, tile, to);
          return part.rotary ? Turning(part.rotary, lanes, ahead)
                                   .emitInPlace(k, batch, token, tile, to)
                             : tile;
        };
        Value tile = carried[0];
        return KernelBuilder::Values{
            part.norm || part.rotary
                ? throughRow(k, width, lanes, tile, to, changed)
                : copyRow(k, width, lanes, load, tile, to)};
      };
      written.push_back(k.forLoop(begin, end, 1, tile, one)[0]);
    }
    return written;
  };
  return k.forLoop(k.index(0), rows, 1, tiles, takeRow);
}

KernelBuilder::Values HeadEpilogue::takeAll(KernelBuilder &k, Value input,
                                            Value result, int64_t lanes) const {
  auto type = cast<RankedTensorType>(result.getType());
  Value batch = k.dim(input, 0), tokens = k.dim(input, 1), one = k.index(1);
  OpFoldResult unit = k.b.getIndexAttr(1);
  auto rowsOf = [&](ValueRange ivs) { return Rows{ivs[0], one, ivs[1], one}; };
  return k.forallTiles(
      {getAsOpFoldResult(batch), getAsOpFoldResult(tokens),
       k.b.getIndexAttr(type.getDimSize(1) / width)},
      destinations(k, batch, tokens),
      [&](KernelBuilder &k, ValueRange ivs) {
        return place(k, k.mul(ivs[2], width), k.index(width), rowsOf(ivs));
      },
      [&](KernelBuilder &k, ValueRange ivs, ValueRange tiles) {
        Value first = k.mul(ivs[2], width);
        Value row =
            k.add(arith::MulIOp::create(k.b, k.loc, ivs[0], tokens), ivs[1]);
        Value head = tensor::ExtractSliceOp::create(
            k.b, k.loc, result, ArrayRef<OpFoldResult>{row, first},
            ArrayRef<OpFoldResult>{unit, k.b.getIndexAttr(width)},
            ArrayRef<OpFoldResult>{unit, unit});
        return take(k, k.index(0), one, first, k.index(width), rowsOf(ivs),
                    lanes, head, tiles, /*ahead=*/true);
      });
}

void HeadEpilogue::prepare(PatternRewriter &rewriter, Operation *layer) const {
  for (const Part &part : parts)
    if (part.norm)
      for (Value parameter : part.norm->getOperands().drop_front())
        if (!isBefore(parameter, layer))
          rewriter.moveOpBefore(parameter.getDefiningOp(), layer);
}

void HeadEpilogue::replace(PatternRewriter &rewriter,
                           ValueRange written) const {
  for (auto [made, part] : llvm::zip(written, parts)) {
    SmallVector<Operation *, 4> chain = part.chain();
    Operation *last = chain.pop_back_val();
    Type type = last->getResult(0).getType();
    Value result = made;
    if (result.getType() != type)
      result = tensor::CastOp::create(rewriter, last->getLoc(), type, result);
    rewriter.replaceOp(last, result);
    while (!chain.empty())
      rewriter.eraseOp(chain.pop_back_val());
  }
}

} // namespace attune
