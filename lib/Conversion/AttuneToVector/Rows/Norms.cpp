//===- Norms.cpp - Layer and root-mean-square normalisation -----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// On a GPU the lanes of a warp share a row: neighbours take neighbouring
// columns, and exchange their sums by halves, always in the same order.

#include "Norms.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace attune {
namespace {

/// Where a row stands: `load` reads its columns, of `tile` if the norm is in
/// place; results go to `prefix` of the tile.
struct Row {
  function_ref<Value(KernelBuilder &, Value tile, Value column, Value valid)>
      load;
  SmallVector<Value> prefix;
  Value head; ///< of gammas and betas that have one row a head
  /// Where columns begin and how many there are, if lanes of a warp share them.
  Value first, count;

  Value columnOf(KernelBuilder &k, Value column) const {
    return first ? k.add(first, column) : column;
  }
};

/// As forColumns, of what a thread has of the row.
KernelBuilder::Values
forOwnColumns(KernelBuilder &k, const Row &row, int64_t width, int64_t lanes,
              ValueRange inits,
              function_ref<KernelBuilder::Values(KernelBuilder &, Value, Value,
                                                 ValueRange)>
                  body) {
  if (!row.first)
    return forColumns(k, width, lanes, inits, body);
  return k.forLoop(k.index(0), row.count, lanes, inits,
                   [&](KernelBuilder &k, Value column, ValueRange carried) {
                     return body(k, column, Value(), carried);
                   });
}

/// The average of what `term` makes of a row's entries.
Value average(KernelBuilder &k, const Row &row, Value tile, int64_t width,
              int64_t lanes, function_ref<Value(KernelBuilder &, Value)> term) {
  // Lanes beyond the row load as zero, which `term` may shift: hence the mask.
  Value total = forOwnColumns(
      k, row, width, lanes, k.splat(0.0, lanes),
      [&](KernelBuilder &k, Value column, Value valid, ValueRange sums) {
        Value x = term(k, row.load(k, tile, column, valid));
        if (valid) {
          Value mask = vector::CreateMaskOp::create(
              k.b, k.loc, VectorType::get({lanes}, k.b.getI1Type()), valid);
          x = arith::SelectOp::create(k.b, k.loc, mask, x, k.splat(0.0, lanes));
        }
        return KernelBuilder::Values{
            arith::AddFOp::create(k.b, k.loc, sums[0], x)};
      })[0];
  total = vector::ReductionOp::create(k.b, k.loc, vector::CombiningKind::ADD,
                                      total);
  if (row.first)
    total = sumOfWarp(k, total);
  return arith::DivFOp::create(k.b, k.loc, total, k.f32(width));
}

/// One by the root of an average of squares and `eps`, in all lanes.
Value inverseRoot(KernelBuilder &k, Value squares, double eps, int64_t lanes) {
  return math::RsqrtOp::create(
      k.b, k.loc,
      k.splat(arith::AddFOp::create(k.b, k.loc, squares, k.f32(eps)), lanes));
}

/// Writes the norm of a row into `tile`. Columns are read before they are
/// written.
Value normalise(KernelBuilder &k, const Norm &norm, const Row &row, Value tile,
                int64_t width, int64_t lanes) {
  Value mean;
  if (norm.centred)
    mean = k.splat(average(k, row, tile, width, lanes,
                           [](KernelBuilder &, Value x) { return x; }),
                   lanes);
  auto centre = [&](KernelBuilder &k, Value x) -> Value {
    return mean ? arith::SubFOp::create(k.b, k.loc, x, mean).getResult() : x;
  };
  // Two passes: the mean first, then squares of what is left, which does not
  // cancel for rows far from zero.
  Value squares = average(k, row, tile, width, lanes,
                          [&](KernelBuilder &k, Value x) -> Value {
                            Value d = centre(k, x);
                            return arith::MulFOp::create(k.b, k.loc, d, d);
                          });
  Value scale = inverseRoot(k, squares, norm.eps, lanes);
  auto channel = [&](KernelBuilder &k, Value from, Value column, Value valid) {
    SmallVector<Value> at;
    if (cast<RankedTensorType>(from.getType()).getRank() == 2)
      at.push_back(row.head);
    at.push_back(row.columnOf(k, column));
    return k.load(from, at, lanes, valid);
  };
  return forOwnColumns(
      k, row, width, lanes, tile,
      [&](KernelBuilder &k, Value column, Value valid, ValueRange carried) {
        Value x = centre(k, row.load(k, carried[0], column, valid));
        x = arith::MulFOp::create(k.b, k.loc, x, scale);
        if (norm.gamma) {
          Value gamma = channel(k, norm.gamma, column, valid);
          if (norm.offset != 0)
            gamma = arith::AddFOp::create(k.b, k.loc, gamma,
                                          k.splat(norm.offset, lanes));
          x = arith::MulFOp::create(k.b, k.loc, x, gamma);
        }
        if (norm.beta)
          x = arith::AddFOp::create(k.b, k.loc, x,
                                    channel(k, norm.beta, column, valid));
        SmallVector<Value> at(row.prefix);
        at.push_back(column);
        return KernelBuilder::Values{k.store(x, carried[0], at, valid)};
      })[0];
}

/// An uninitialised tensor of this type, whose shape `like` has.
Value emptyHeads(KernelBuilder &k, Value like, RankedTensorType type) {
  SmallVector<OpFoldResult> sizes;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    sizes.push_back(getAsOpFoldResult(k.dim(like, dim)));
  return tensor::EmptyOp::create(k.b, k.loc, sizes, type.getElementType());
}

/// Queries or keys [B, H, T, Dh], head by head, in place if the type allows it.
Value normaliseHeads(KernelBuilder &k, Value input, RankedTensorType type,
                     const Norm &norm, const VectorLowering &lowering) {
  int64_t width = type.getDimSize(3);
  bool inPlace = input.getType() == type;
  return forallHeadRows(
      k, inPlace ? input : emptyHeads(k, input, type), k.dim(input, 2),
      lowering.cooperative, width,
      [&](KernelBuilder &k, const HeadRow &at, Value tile) {
        Value zero = k.index(0);
        auto load = [&](KernelBuilder &k, Value from, Value column,
                        Value valid) {
          if (inPlace)
            return k.load(from, {zero, zero, at.line, column}, lowering.lanes,
                          valid);
          return k.load(input, {at.batch, at.head, at.token, column},
                        lowering.lanes, valid);
        };
        Row row = {load, {zero, zero, at.line}, at.head, Value(), Value()};
        return normalise(k, norm, row, tile, width, lowering.lanes);
      });
}

/// A part of a row that is held in registers, in vectors: all loads are under
/// way at once, and none is waited for twice. Writes its norm into `tile`.
Value normaliseHeld(KernelBuilder &k, const Norm &norm, Value source, Value row,
                    Value first, int64_t count, Value tile, int64_t width,
                    int64_t lanes) {
  // Vectors of gammas and betas that are loaded at once.
  constexpr int64_t group = 4;
  int64_t vectors = count / lanes;
  auto columnOf = [&](int64_t i) { return k.add(first, k.index(i * lanes)); };
  SmallVector<Value> held;
  for (int64_t i = 0; i < vectors; ++i)
    held.push_back(k.load(source, {row, columnOf(i)}, lanes, Value()));
  auto channels = [&](Value from, int64_t at) {
    SmallVector<Value> loaded;
    for (int64_t i = at; from && i < std::min(at + group, vectors); ++i)
      loaded.push_back(k.load(from, {columnOf(i)}, lanes, Value()));
    return loaded;
  };
  // The first of them are loaded while the sums are made.
  SmallVector<Value> gammas = channels(norm.gamma, 0),
                     betas = channels(norm.beta, 0);
  auto averageOf = [&](ArrayRef<Value> terms) -> Value {
    Value total = terms[0];
    for (Value term : terms.drop_front())
      total = arith::AddFOp::create(k.b, k.loc, total, term);
    total = vector::ReductionOp::create(k.b, k.loc, vector::CombiningKind::ADD,
                                        total);
    return arith::DivFOp::create(k.b, k.loc, sumOfWarp(k, total), k.f32(width));
  };
  if (norm.centred) {
    Value mean = k.splat(averageOf(held), lanes);
    for (Value &x : held)
      x = arith::SubFOp::create(k.b, k.loc, x, mean);
  }
  SmallVector<Value> squares;
  for (Value x : held)
    squares.push_back(arith::MulFOp::create(k.b, k.loc, x, x));
  Value scale = inverseRoot(k, averageOf(squares), norm.eps, lanes);
  for (int64_t i = 0; i < vectors; ++i) {
    if (i > 0 && i % group == 0) {
      gammas = channels(norm.gamma, i);
      betas = channels(norm.beta, i);
    }
    Value x = arith::MulFOp::create(k.b, k.loc, held[i], scale);
    if (norm.gamma) {
      Value gamma = gammas[i % group];
      if (norm.offset != 0)
        gamma = arith::AddFOp::create(k.b, k.loc, gamma,
                                      k.splat(norm.offset, lanes));
      x = arith::MulFOp::create(k.b, k.loc, x, gamma);
    }
    if (norm.beta)
      x = arith::AddFOp::create(k.b, k.loc, x, betas[i % group]);
    tile = k.store(x, tile, {k.index(0), k.index(i * lanes)}, Value());
  }
  return tile;
}

/// Rows, each shared by a warp in stretches of whole vectors.
Value normaliseByWarps(KernelBuilder &k, Value source, Value dest,
                       const Norm &norm, int64_t width, int64_t lanes) {
  // The largest row that a lane's registers hold.
  constexpr int64_t mostHeld = 128;
  int64_t each = (width / lanes + kWarp - 1) / kWarp * lanes;
  bool even = each * kWarp == width;
  auto firstOf = [&](KernelBuilder &k, Value lane) {
    Value first = k.mul(lane, each);
    return even ? first : k.min(first, k.index(width));
  };
  auto countOf = [&](KernelBuilder &k, Value first) {
    return even ? k.index(each)
                : k.min(k.index(each), k.sub(k.index(width), first));
  };
  return k.forallTiles(
      {getAsOpFoldResult(k.dim(dest, 0)), k.b.getIndexAttr(kWarp)}, dest,
      [&](KernelBuilder &k, ValueRange ivs) {
        Value first = firstOf(k, ivs[1]);
        return KernelBuilder::Tile{
            {ivs[0], first},
            {k.b.getIndexAttr(1), getAsOpFoldResult(countOf(k, first))}};
      },
      [&](KernelBuilder &k, ValueRange ivs, Value tile) {
        Value first = firstOf(k, ivs[1]);
        if (even && each <= mostHeld)
          return normaliseHeld(k, norm, source, ivs[0], first, each, tile,
                               width, lanes);
        auto load = [&](KernelBuilder &k, Value, Value column, Value valid) {
          return k.load(source, {ivs[0], k.add(first, column)}, lanes, valid);
        };
        Row row = {load, {k.index(0)}, Value(), first, countOf(k, first)};
        return normalise(k, norm, row, tile, width, lanes);
      });
}

/// A tensor of rank 2 or 3.
Value normaliseTokens(KernelBuilder &k, Value input, RankedTensorType type,
                      const Norm &norm, const VectorLowering &lowering) {
  Value dest =
      emptyRows(k, input, type.getShape().back(), type.getElementType());
  return fromRows(k, normaliseRows(k, asRows(k, input), dest, norm, lowering),
                  type, input);
}

template <typename Op> struct LowerNorm final : OpRewritePattern<Op> {
  LowerNorm(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern<Op>(context), lowering(lowering) {}

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    if (type.getRank() < 2 || type.getRank() > 4)
      return rewriter.notifyMatchFailure(op, "rank 2 to 4 only");
    KernelBuilder k(rewriter, op.getLoc());
    Norm norm = *Norm::of(op);
    Value made = type.getRank() == 4
                     ? normaliseHeads(k, op.getInput(), type, norm, lowering)
                     : normaliseTokens(k, op.getInput(), type, norm, lowering);
    if (made.getType() != type)
      made = tensor::CastOp::create(k.b, k.loc, type, made);
    rewriter.replaceOp(op, made);
    return success();
  }
  VectorLowering lowering;
};

} // namespace

std::optional<Norm> Norm::of(Operation *op) {
  if (auto norm = dyn_cast<LayerNormOp>(op))
    return Norm{norm.getGamma(), norm.getBeta(), /*centred=*/true,
                norm.getEps().convertToDouble(),
                norm.getOffset().convertToDouble()};
  if (auto norm = dyn_cast<RMSNormOp>(op))
    return Norm{norm.getGamma(), /*beta=*/Value(), /*centred=*/false,
                norm.getEps().convertToDouble(),
                norm.getOffset().convertToDouble()};
  return std::nullopt;
}

Value normaliseRows(KernelBuilder &k, Value source, Value dest,
                    const Norm &norm, const VectorLowering &lowering) {
  int64_t width = cast<RankedTensorType>(dest.getType()).getDimSize(1),
          lanes = lowering.lanes;
  if (lowering.cooperative && width % lanes == 0)
    return normaliseByWarps(k, source, dest, norm, width, lanes);
  return forallRows(k, dest, [&](KernelBuilder &k, Value i, Value tile) {
    auto load = [&](KernelBuilder &k, Value, Value column, Value valid) {
      return k.load(source, {i, column}, lanes, valid);
    };
    Row row = {load, {k.index(0)}, Value(), Value(), Value()};
    return normalise(k, norm, row, tile, width, lanes);
  });
}

Value normaliseHead(KernelBuilder &k, const Norm &norm, LoadColumns load,
                    Value head, int64_t width, int64_t lanes, Value tile,
                    ArrayRef<Value> to) {
  auto loadOf = [&](KernelBuilder &k, Value, Value column, Value valid) {
    return load(k, column, lanes, valid);
  };
  Row row = {loadOf, SmallVector<Value>(to), head, Value(), Value()};
  return normalise(k, norm, row, tile, width, lanes);
}

Value inverseRms(KernelBuilder &k, LoadColumns load, double eps, int64_t width,
                 int64_t lanes) {
  auto loadOf = [&](KernelBuilder &k, Value, Value column, Value valid) {
    return load(k, column, lanes, valid);
  };
  Row row = {loadOf, {}, Value(), Value(), Value()};
  Value squares =
      average(k, row, Value(), width, lanes, [](KernelBuilder &k, Value x) {
        return arith::MulFOp::create(k.b, k.loc, x, x).getResult();
      });
  return vector::ExtractOp::create(k.b, k.loc,
                                   inverseRoot(k, squares, eps, lanes), 0);
}

void populateNormPatterns(RewritePatternSet &patterns,
                          const VectorLowering &lowering) {
  patterns.add<LowerNorm<LayerNormOp>, LowerNorm<RMSNormOp>>(
      patterns.getContext(), lowering);
}

} // namespace attune
