//===- LinearAttention.cpp - Attention by sums over keys --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// A parallel loop over batches and key/value heads, each of which walks its
// tokens in chunks of C. Values get a last column of ones, so that the sums of
// features that normalise are one more channel of every product. With
// F = f(K), G = f(Q) of the chunk and W = [V | 1]:
//
//   causal       Y = G S + lower(G F^T) W,  then  S += F^T W
//   not causal   S += F^T W of all chunks,  then  Y = G S of all chunks
//
// All products go through the matrix microkernel. Within a chunk they cost as
// attention to C keys does, between chunks as the sums do, so time and memory
// grow with the number of tokens.

#include "../Patterns.h"
#include "Attention.h"

#include "Attune/AttuneGroupOps.h"
#include "attune/Conversion/LinearAttention.h"
#include "attune/TargetInfo/GpuSums.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <numeric>

using namespace mlir;

namespace attune {
namespace {

using Values = KernelBuilder::Values;

/// Tokens of a chunk: scores within it cost C per token, its sums are read and
/// written once. The C x C scores fit the first-level cache. Chunks are smaller
/// where each of many threads has scratch of its own: heads too wide for a
/// block's shared memory.
int64_t tokensOfChunk(const VectorLowering &lowering) {
  if (lowering.cooperative)
    return 16;
  int64_t tokens = 16;
  while (tokens < 1024 && 4 * tokens * tokens * 4 <= lowering.tileBytes)
    tokens *= 2;
  return tokens;
}

Value emptyLike(KernelBuilder &k, Value result, ArrayRef<Value> sizes) {
  auto type = tensorType(result);
  SmallVector<OpFoldResult> mixed;
  for (auto [dim, size] : llvm::enumerate(sizes))
    mixed.push_back(size ? getAsOpFoldResult(size)
                         : k.b.getIndexAttr(type.getDimSize(dim)));
  return tensor::EmptyOp::create(k.b, k.loc, mixed, type.getElementType());
}

/// Where the results of an op go.
Values emptyResults(KernelBuilder &k, LinearAttentionOp op) {
  Value batches = k.dim(op.getQuery(), 0);
  Values outs = {
      emptyLike(k, op.getResult(), {batches, {}, k.dim(op.getQuery(), 2), {}})};
  if (op.getNewState())
    outs.push_back(emptyLike(k, op.getNewState(), {batches, {}, {}, {}}));
  return outs;
}

/// Casts these values to the types of the op's results.
Values asResults(KernelBuilder &k, LinearAttentionOp op, ValueRange made) {
  Values results;
  for (auto [value, result] : llvm::zip(made, op->getResults()))
    results.push_back(
        value.getType() == result.getType()
            ? value
            : tensor::CastOp::create(k.b, k.loc, result.getType(), value)
                  .getResult());
  return results;
}

/// Emits the loops of one op; the members are what its parts share.
class SumsKernel {
public:
  SumsKernel(LinearAttentionOp op, PatternRewriter &rewriter,
             const VectorLowering &lowering)
      : op(op), k(rewriter, op.getLoc()), lanes(lowering.lanes),
        rows(lowering.rows), chunk(tokensOfChunk(lowering)) {
    kvHeads = tensorType(op.getKey()).getDimSize(1);
    group = tensorType(op.getQuery()).getDimSize(1) / kvHeads;
    width = tensorType(op.getQuery()).getDimSize(3);
    valueWidth = tensorType(op.getValue()).getDimSize(3);
    sumRows = llvm::alignTo(width, rows);
    sumColumns = llvm::alignTo(valueWidth + 1, lanes);
    // Features are read by blocks of rows and written in vectors.
    featureColumns = llvm::alignTo(sumRows, lanes);
    chunkRows = llvm::alignTo(chunk, rows);
    chunkColumns = llvm::alignTo(chunk, lanes);
  }

  Values run() {
    Value batches = k.dim(op.getQuery(), 0);
    Values outs = emptyResults(k, op);
    auto loop =
        scf::ForallOp::create(k.b, k.loc,
                              ArrayRef<OpFoldResult>{getAsOpFoldResult(batches),
                                                     k.b.getIndexAttr(kvHeads)},
                              outs, std::nullopt);
    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(loop.getBody());
    batch = loop.getInductionVars()[0];
    kvHead = loop.getInductionVars()[1];
    OpFoldResult zero = k.b.getIndexAttr(0), one = k.b.getIndexAttr(1);
    SmallVector<OpFoldResult> strides(4, one);
    SmallVector<OpFoldResult> at = {
        batch, getAsOpFoldResult(k.mul(kvHead, group)), zero, zero};
    SmallVector<OpFoldResult> sizes = {one, k.b.getIndexAttr(group),
                                       getAsOpFoldResult(queries(k)),
                                       k.b.getIndexAttr(valueWidth)};
    Value whole = loop.getRegionIterArgs()[0];
    Value tile =
        tensor::ExtractSliceOp::create(k.b, k.loc, whole, at, sizes, strides);
    Value sums;
    std::tie(tile, sums) = computeHead(tile);

    SmallVector<OpFoldResult> stateAt = {batch, kvHead, zero, zero};
    SmallVector<OpFoldResult> stateSizes = {one, one, k.b.getIndexAttr(width),
                                            k.b.getIndexAttr(valueWidth + 1)};
    Value state;
    if (op.getNewState())
      state = storeState(sums, tensor::ExtractSliceOp::create(
                                   k.b, k.loc, loop.getRegionIterArgs()[1],
                                   stateAt, stateSizes, strides));
    k.b.setInsertionPointToStart(loop.getTerminator().getBody());
    tensor::ParallelInsertSliceOp::create(k.b, k.loc, tile, whole, at, sizes,
                                          strides);
    if (state)
      tensor::ParallelInsertSliceOp::create(k.b, k.loc, state,
                                            loop.getRegionIterArgs()[1],
                                            stateAt, stateSizes, strides);
    k.b.setInsertionPointAfter(loop);
    return asResults(k, op, loop.getResults());
  }

private:
  Value queries(KernelBuilder &k) { return k.dim(op.getQuery(), 2); }

  Value scratch(ArrayRef<int64_t> shape) {
    return bufferization::AllocTensorOp::create(
        k.b, k.loc, RankedTensorType::get(shape, k.b.getF32Type()),
        ValueRange{});
  }

  /// Features of `count` rows from `first` on into `to` [rows, columns].
  Value packFeatures(KernelBuilder &k, Value from, Value head, Value first,
                     Value count, Value to) {
    auto packRow = [&](KernelBuilder &k, Value row, ValueRange c) {
      Value token = k.add(first, row), seen = seenByMask(k, from, token);
      return k.forLoop(
          k.index(0), k.index(featureColumns), lanes, c,
          [&](KernelBuilder &k, Value column, ValueRange c) {
            Value left = k.sub(k.index(width), column);
            Value valid = k.min(k.index(lanes), maximum(k, left, k.index(0)));
            // Lanes without an element are f(0) or whatever.
            Value x = emitFeature(
                k, op.getFeatureMap(),
                k.load(from, {batch, head, token, column}, lanes, valid));
            if (seen)
              x = arith::SelectOp::create(k.b, k.loc, seen, x,
                                          k.splat(0.0, lanes));
            return Values{k.store(x, c[0], {row, column})};
          });
    };
    return k.forLoop(k.index(0), count, 1, to, packRow)[0];
  }

  /// Whether a key counts; null if all do, as all queries do.
  Value seenByMask(KernelBuilder &k, Value from, Value token) {
    Value mask = op.getMask();
    if (!mask || from != op.getKey())
      return {};
    Value row = tensorType(mask).getDimSize(0) == 1 ? k.index(0) : batch;
    return k.loadScalar(mask, {row, k.index(0), k.index(0), token});
  }

  static Value maximum(KernelBuilder &k, Value lhs, Value rhs) {
    return k.b.createOrFold<arith::MaxSIOp>(k.loc, lhs, rhs);
  }

  /// Values with a column of ones after them, and zeros beyond.
  Value packValues(KernelBuilder &k, Value first, Value count, Value to) {
    Value value = op.getValue();
    auto packRow = [&](KernelBuilder &k, Value row, ValueRange c) {
      Value token = k.add(first, row);
      Value seen = seenByMask(k, op.getKey(), token), packed = c[0];
      for (int64_t column = 0; column < sumColumns; column += lanes) {
        int64_t left = valueWidth - column;
        Value at = k.index(column);
        Value x = k.splat(0.0, lanes);
        if (left > 0)
          x = k.load(value, {batch, kvHead, token, at}, lanes,
                     left < lanes ? k.index(left) : Value());
        if (left >= 0 && left < lanes)
          x = vector::InsertOp::create(k.b, k.loc, k.f32(1.0), x, left);
        if (seen)
          x = arith::SelectOp::create(k.b, k.loc, seen, x, k.splat(0.0, lanes));
        packed = k.store(x, packed, {row, at});
      }
      return Values{packed};
    };
    return k.forLoop(k.index(0), count, 1, to, packRow)[0];
  }

  /// Features [rows, width] as columns [width, rows].
  Value transposed(KernelBuilder &k, Value features, Value count, Value to) {
    return k.forLoop(k.index(0), k.index(width), 1, to,
                     [&](KernelBuilder &k, Value d, ValueRange c) {
                       return k.forLoop(
                           k.index(0), count, 1, c,
                           [&](KernelBuilder &k, Value row, ValueRange c) {
                             Value x = k.loadScalar(features, {row, d});
                             return Values{tensor::InsertOp::create(
                                 k.b, k.loc, x, c[0], ValueRange{d, row})};
                           });
                     })[0];
  }

  /// `out` (plus) a matrix product, for the first `count` of its rows, which
  /// are rounded up to blocks.
  struct Product {
    Value count, depth;
    int64_t columns;
    bool accumulate;
    /// Elements of the left matrix; those of the right one are rows of it.
    llvm::function_ref<Value(KernelBuilder &, Value row, Value step)> left;
    Value right;
    bool lowerOnly = false; ///< zero above the diagonal
  };
  Value multiply(KernelBuilder &k, const Product &p, Value out) {
    auto tile = [&](KernelBuilder &k, Value first, Value column, Value out) {
      Values inits, at;
      for (int64_t i = 0; i < rows; ++i) {
        at.push_back(k.add(first, k.index(i)));
        inits.push_back(p.accumulate ? k.load(out, {at[i], column}, lanes)
                                     : k.splat(0.0, lanes));
      }
      Values sums = emitMicrokernel(
          k, rows, p.depth, inits,
          [&](KernelBuilder &k, int64_t row, Value step) {
            return p.left(k, at[row], step);
          },
          [&](KernelBuilder &k, Value step) {
            return k.load(p.right, {step, column}, lanes);
          });
      for (int64_t i = 0; i < rows; ++i) {
        Value sum = sums[i];
        if (p.lowerOnly)
          sum = arith::SelectOp::create(k.b, k.loc, upTo(k, at[i], column), sum,
                                        k.splat(0.0, lanes));
        out = k.store(sum, out, {at[i], column});
      }
      return out;
    };
    return k.forLoop(k.index(0), k.ceilDiv(p.count, rows), 1, out,
                     [&](KernelBuilder &k, Value block, ValueRange c) {
                       return k.forLoop(
                           k.index(0), k.index(p.columns), lanes, c,
                           [&](KernelBuilder &k, Value column, ValueRange c) {
                             return Values{
                                 tile(k, k.mul(block, rows), column, c[0])};
                           });
                     })[0];
  }

  /// Which lanes from `column` on are columns up to `row`.
  Value upTo(KernelBuilder &k, Value row, Value column) {
    Value count = k.sub(k.add(row, k.index(1)), column);
    Value valid = k.min(k.index(lanes), maximum(k, count, k.index(0)));
    return vector::CreateMaskOp::create(
        k.b, k.loc, VectorType::get({lanes}, k.b.getI1Type()), valid);
  }

  /// S, from the op's state or zero. Rows and columns beyond it are unused or
  /// stay zero.
  Value startSums(Value sums) {
    return k.forLoop(
        k.index(0), k.index(sumRows), 1, sums,
        [&](KernelBuilder &k, Value row, ValueRange c) {
          Value out = c[0];
          for (int64_t column = 0; column < sumColumns; column += lanes)
            out = k.store(k.splat(0.0, lanes), out, {row, k.index(column)});
          return Values{out};
        })[0];
  }

  Value loadState(Value sums) {
    if (!op.getState())
      return sums;
    return copySums(sums, [&](KernelBuilder &k, Value row, Value column,
                              Value valid, Value out) {
      Value x =
          k.load(op.getState(), {batch, kvHead, row, column}, lanes, valid);
      return k.store(x, out, {row, column}, valid);
    });
  }

  Value storeState(Value sums, Value tile) {
    return copySums(tile, [&](KernelBuilder &k, Value row, Value column,
                              Value valid, Value out) {
      Value x = k.load(sums, {row, column}, lanes);
      return k.store(x, out, {k.index(0), k.index(0), row, column}, valid);
    });
  }

  Value copySums(Value out,
                 llvm::function_ref<Value(KernelBuilder &, Value row,
                                          Value column, Value valid, Value out)>
                     copy) {
    return k.forLoop(
        k.index(0), k.index(width), 1, out,
        [&](KernelBuilder &k, Value row, ValueRange c) {
          Value out = c[0];
          for (int64_t column = 0; column < valueWidth + 1; column += lanes) {
            int64_t left = valueWidth + 1 - column;
            out = copy(k, row, k.index(column),
                       left < lanes ? k.index(left) : Value(), out);
          }
          return Values{out};
        })[0];
  }

  /// The result of a row: its sums, over the last of them if normalised.
  Value finish(KernelBuilder &k, Value sums, Value head, Value first,
               Value count, Value tile) {
    auto row = [&](KernelBuilder &k, Value row, ValueRange c) {
      Value factor;
      if (auto eps = op.getEps()) {
        Value total = k.loadScalar(sums, {row, k.index(valueWidth)});
        factor = emitNormaliser(k, total, eps->convertToDouble());
        factor = k.splat(factor, lanes);
      }
      return forColumns(
          k, valueWidth, lanes, c,
          [&](KernelBuilder &k, Value column, Value valid, ValueRange c) {
            Value x = k.load(sums, {row, column}, lanes);
            if (factor)
              x = arith::MulFOp::create(k.b, k.loc, x, factor);
            return Values{k.store(
                x, c[0], {k.index(0), head, k.add(first, row), column}, valid)};
          });
    };
    return k.forLoop(k.index(0), count, 1, tile, row)[0];
  }

  static auto elementsOf(Value matrix) {
    return [matrix](KernelBuilder &k, Value row, Value step) {
      return k.loadScalar(matrix, {row, step});
    };
  }

  /// S += F^T W of a packed chunk.
  Value addKeys(KernelBuilder &k, Value features, Value values, Value count,
                Value sums) {
    auto turned = [&](KernelBuilder &k, Value row, Value step) {
      return k.loadScalar(features, {step, row});
    };
    return multiply(
        k, {k.index(width), count, sumColumns, true, turned, values}, sums);
  }

  /// The rows of a chunk for every query head that shares the keys. Causal if
  /// `columns`, the chunk's features transposed, is given.
  Value queryChunk(KernelBuilder &k, Value first, Value count, Value sums,
                   Value columns, Value values, Value tile) {
    return k.forLoop(
        k.index(0), k.index(group), 1, tile,
        [&](KernelBuilder &k, Value head, ValueRange c) {
          Value number = k.add(k.mul(kvHead, group), head);
          Value features = packFeatures(k, op.getQuery(), number, first, count,
                                        queryScratch);
          auto left = elementsOf(features);
          Value out = multiply(
              k, {count, k.index(width), sumColumns, false, left, sums},
              outScratch);
          if (columns) {
            Value scores = multiply(k,
                                    {count, k.index(width), chunkColumns, false,
                                     left, columns, /*lowerOnly=*/true},
                                    scoreScratch);
            auto weights = elementsOf(scores);
            out = multiply(k, {count, count, sumColumns, true, weights, values},
                           out);
          }
          return Values{finish(k, out, head, first, count, c[0])};
        })[0];
  }

  std::pair<Value, Value> computeHead(Value tile) {
    bool causal = op.getCausal();
    Value keyScratch = scratch({chunkRows, featureColumns});
    Value valueScratch = scratch({chunkRows, sumColumns});
    Value columnScratch;
    queryScratch = scratch({chunkRows, featureColumns});
    outScratch = scratch({chunkRows, sumColumns});
    if (causal) {
      columnScratch = scratch({width, chunkColumns});
      scoreScratch = scratch({chunkRows, chunkColumns});
    }
    Value sums = loadState(startSums(scratch({sumRows, sumColumns})));
    Value keys = k.dim(op.getKey(), 2);
    Values carried = {sums, tile};
    carried = k.forLoop(
        k.index(0), keys, chunk, carried,
        [&](KernelBuilder &k, Value first, ValueRange c) {
          Value count = k.min(k.index(chunk), k.sub(keys, first));
          Value features =
              packFeatures(k, op.getKey(), kvHead, first, count, keyScratch);
          Value values = packValues(k, first, count, valueScratch);
          Value out = c[1];
          if (causal) {
            Value columns = transposed(k, features, count, columnScratch);
            out = queryChunk(k, first, count, c[0], columns, values, out);
          }
          return Values{addKeys(k, features, values, count, c[0]), out};
        });
    if (causal)
      return {carried[1], carried[0]};
    Value rest = queries(k);
    tile = k.forLoop(
        k.index(0), rest, chunk, carried[1],
        [&](KernelBuilder &k, Value first, ValueRange c) {
          Value count = k.min(k.index(chunk), k.sub(rest, first));
          return Values{queryChunk(k, first, count, carried[0], {}, {}, c[0])};
        })[0];
    return {tile, carried[0]};
  }

  LinearAttentionOp op;
  KernelBuilder k;
  int64_t lanes, rows, chunk;
  int64_t kvHeads, group, width, valueWidth;
  int64_t sumRows, sumColumns, featureColumns, chunkRows, chunkColumns;
  Value batch, kvHead; // of the iteration
  Value queryScratch, outScratch, scoreScratch;
};

struct LowerLinearAttention final : OpRewritePattern<LinearAttentionOp> {
  LowerLinearAttention(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern(context), lowering(lowering) {}

  LogicalResult matchAndRewrite(LinearAttentionOp op,
                                PatternRewriter &rewriter) const override {
    for (Value heads : {op.getQuery(), op.getKey(), op.getValue()})
      if (tensorType(heads).isDynamicDim(1) ||
          tensorType(heads).isDynamicDim(3))
        return rewriter.notifyMatchFailure(op, "heads and widths are dynamic");
    rewriter.replaceOp(op, fitsBlock(op)
                               ? intoPlaces(op, rewriter)
                               : SumsKernel(op, rewriter, lowering).run());
    return success();
  }

private:
  /// Whether a block of a GPU's threads has room for the sums and a chunk.
  bool fitsBlock(LinearAttentionOp op) const {
    return lowering.cooperative &&
           chooseSumsTile(tensorType(op.getKey()).getDimSize(3),
                          tensorType(op.getValue()).getDimSize(3),
                          /*fewTokens=*/false);
  }

  /// Its threads share memory that no tensor is: one op until there are
  /// buffers.
  static Values intoPlaces(LinearAttentionOp op, PatternRewriter &rewriter) {
    KernelBuilder k(rewriter, op.getLoc());
    Values outs = emptyResults(k, op);
    auto into = LinearAttentionIntoOp::create(
        rewriter, op.getLoc(), ValueRange(outs).getTypes(), op.getQuery(),
        op.getKey(), op.getValue(), op.getMask(), op.getState(), outs[0],
        op.getNewState() ? outs[1] : Value(), op.getFeatureMapAttr(),
        op.getCausalAttr(), op.getEpsAttr());
    return asResults(k, op, into.getResults());
  }

  VectorLowering lowering;
};

} // namespace

Value emitFeature(KernelBuilder &k, FeatureMap map, Value x) {
  int64_t lanes = cast<VectorType>(x.getType()).getDimSize(0);
  Value zero = k.splat(0.0, lanes);
  switch (map) {
  case FeatureMap::Identity:
    return x;
  case FeatureMap::Relu:
    return emitMax(k, x, zero);
  case FeatureMap::EluPlusOne: {
    Value positive =
        arith::CmpFOp::create(k.b, k.loc, arith::CmpFPredicate::OGT, x, zero);
    Value above = arith::AddFOp::create(k.b, k.loc, x, k.splat(1.0, lanes));
    // The exponential of the other branch must not overflow.
    Value below = arith::SelectOp::create(k.b, k.loc, positive, zero, x);
    return arith::SelectOp::create(k.b, k.loc, positive, above,
                                   emitExp(k, below));
  }
  }
  llvm_unreachable("every feature map is listed");
}

Value emitNormaliser(KernelBuilder &k, Value total, double eps) {
  total = arith::AddFOp::create(k.b, k.loc, total, k.f32(eps));
  Value none = arith::CmpFOp::create(k.b, k.loc, arith::CmpFPredicate::OEQ,
                                     total, k.f32(0.0));
  Value factor = arith::DivFOp::create(k.b, k.loc, k.f32(1.0), total);
  return arith::SelectOp::create(k.b, k.loc, none, k.f32(0.0), factor);
}

void populateLinearAttentionPatterns(RewritePatternSet &patterns,
                                     const VectorLowering &lowering) {
  patterns.add<LowerLinearAttention>(patterns.getContext(), lowering);
}

} // namespace attune
