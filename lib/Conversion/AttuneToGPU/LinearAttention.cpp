//===- LinearAttention.cpp - Attention by sums over keys --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// A block has some columns of the values of one head, and walks tokens in
// chunks. With F = f(K), G = f(Q) of the chunk, W its columns of the values and
// z the sums of F:
//
//   causal       Y = G S + lower(G F^T) W,  then  S += F^T W
//   not causal   S += F^T W of all chunks,  then  Y = G S of all chunks
//
// G z + lower(G F^T) 1, which normalises, is summed beside each row of Y by
// every thread that has a part of it. F, G, the scores, W, S and z lie in
// shared memory; each thread multiplies a small tile in registers.
//
// Chunks of a head wait for each other. Where heads are few and tokens many,
// tokens are split into parts. A first kernel sums each part, a second one adds
// the sums up in order, and a third one starts each part from the sums before
// it.

#include "LinearAttention.h"

#include "attune/Conversion/LinearAttention.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <numeric>

using namespace mlir;

namespace attune {
namespace {

using Values = KernelBuilder::Values;
constexpr int64_t kThreads = SumsTile::kThreads;

int64_t sizeOf(Value heads, int64_t dim) {
  return cast<MemRefType>(heads.getType()).getDimSize(dim);
}

/// Sizes that all kernels of an op need, on the host.
struct SumsSizes {
  SumsSizes(BlockBuilder &b, LinearAttentionIntoOp op)
      : heads(sizeOf(op.getQuery(), 1)), kvHeads(sizeOf(op.getKey(), 1)),
        width(sizeOf(op.getKey(), 3)), valueWidth(sizeOf(op.getValue(), 3)),
        batches(b.sizeOf(op.getQuery(), 0)),
        queries(b.sizeOf(op.getQuery(), 2)), keys(b.sizeOf(op.getKey(), 2)) {}

  int64_t heads, kvHeads, width, valueWidth;
  Value batches, queries, keys;
};

/// Tokens that are taken apart from others.
struct Parts {
  Value count, tokens; ///< of each but the last ones
  Value sums;          ///< [batch and key head and part, width, values + 1]
};

//===----------------------------------------------------------------------===//
// Products of matrices in shared memory
//===----------------------------------------------------------------------===//

struct Matrix {
  Value buffer;
  int64_t stride;
};

/// Some lines of a matrix, each multiplied by each of another one's: rows,
/// `step` apart, along which the sum runs, or neighbouring columns, along which
/// it runs down.
struct Lines {
  Matrix matrix;
  Value first;
  int64_t count;
  int64_t step = 0; ///< 0: columns

  Value at(BlockBuilder &b, int64_t i) const {
    return b.add(first, b.index(i * (step ? step : 1)));
  }
  /// Four elements of each from `k` on: [k][line].
  SmallVector<Values> read(BlockBuilder &b, Value k) const {
    SmallVector<Values> found(4);
    int64_t vectors = step ? count : 4, lanes = step ? 4 : count;
    for (int64_t i = 0; i < vectors; ++i) {
      Value row = step ? at(b, i) : b.add(k, b.index(i));
      Value place = b.add(b.mul(row, matrix.stride), step ? k : first);
      Value all = b.loadAt(matrix.buffer, place, lanes, 4 * lanes);
      for (int64_t lane = 0; lane < lanes; ++lane) {
        Value x = vector::ExtractOp::create(b.b, b.loc, all, lane);
        found[step ? lane : i].push_back(x);
      }
    }
    return found;
  }
};

/// The register block of a thread in a product: at most four rows and columns.
struct ThreadTile {
  /// As large as possible while every thread has some.
  ThreadTile(int64_t ofRows, int64_t ofColumns) {
    constexpr std::pair<int64_t, int64_t> sizes[] = {
        {4, 4}, {2, 4}, {1, 4}, {1, 2}, {1, 1}};
    for (auto [r, c] : sizes) {
      std::tie(rows, columns) = std::pair(r, c);
      across = ofColumns / columns;
      count = ofRows / rows * across;
      if (count >= kThreads)
        return;
    }
  }
  int64_t rows, columns;
  int64_t across, count; ///< tiles beside each other, and in all
};

/// sums[i][j] + sum over k < depth of left[k][i] right[k][j]. With `beside`,
/// four of whose numbers it gives, each row has one more column.
Values
multiply(BlockBuilder &b, int64_t depth, const Lines &left, const Lines &right,
         ValueRange sums,
         llvm::function_ref<Values(BlockBuilder &, Value k)> beside = {}) {
  Values results =
      b.forLoop(b.index(0), b.index(depth), 4, sums,
                [&](KernelBuilder &k, Value at, ValueRange carried) {
                  BlockBuilder b(k);
                  SmallVector<Values> rows = left.read(b, at),
                                      columns = right.read(b, at);
                  if (beside)
                    for (auto [line, x] : llvm::zip(columns, beside(b, at)))
                      line.push_back(x);
                  Values next(carried);
                  for (int64_t step = 0; step < 4; ++step) {
                    auto *sum = next.begin();
                    for (Value x : rows[step])
                      for (Value y : columns[step]) {
                        *sum = math::FmaOp::create(b.b, b.loc, x, y, *sum);
                        ++sum;
                      }
                  }
                  return next;
                });
  // Unrolled, it would read everything first, and spill.
  MLIRContext *context = b.b.getContext();
  auto never = LLVM::LoopUnrollAttr::get(context, b.b.getBoolAttr(true), {}, {},
                                         {}, {}, {}, {});
  results[0].getDefiningOp()->setAttr(
      "loop_annotation",
      LLVM::LoopAnnotationAttr::get(context, {}, {}, {}, never, {}, {}, {}, {},
                                    {}, {}, {}, {}, {}, {}, {}));
  return results;
}

Value toVector(BlockBuilder &b, ArrayRef<Value> numbers) {
  return vector::FromElementsOp::create(
      b.b, b.loc, b.vectorType(int64_t(numbers.size())), numbers);
}

//===----------------------------------------------------------------------===//
// A block
//===----------------------------------------------------------------------===//

class SumsBlock {
public:
  SumsBlock(LinearAttentionIntoOp op, const SumsSizes &sizes,
            const SumsTile &tile)
      : op(op), sizes(sizes), tile(tile),
        columnTiles(llvm::divideCeil(sizes.valueWidth, tile.columns)) {}

  /// The kernel that makes the sums of each part of the keys.
  void launchSums(KernelBuilder &k, const Parts &parts) {
    OpBuilder::InsertionGuard guard(k.b);
    BlockBuilder b(k);
    BlockLaunch launch = enter(b, sizes.kvHeads, parts.count);
    kvHead = head;
    share(launch, /*withKeys=*/true, /*withQueries=*/false);
    startSums(b, {});
    b.barrier();
    forChunks(b, parts.tokens, sizes.keys, [&](BlockBuilder &b, Value first) {
      loadKeys(b, first);
      b.barrier();
      addKeys(b);
      b.barrier();
    });
    Value row = rowOfPart(b, parts, part);
    storeSums(b, parts.sums,
              [&](Value d, Value c) { return Values{row, d, c}; });
  }

  /// The kernel that makes rows of the result. It starts from the sums before
  /// each part, or from all sums if not causal. Without parts it starts from
  /// the state, and stores its successor too.
  void launchRows(KernelBuilder &k, Value countParts, Value tokens,
                  const Parts *parts) {
    OpBuilder::InsertionGuard guard(k.b);
    BlockBuilder b(k);
    bool causal = op.getCausal();
    BlockLaunch launch = enter(b, sizes.heads, countParts);
    kvHead = b.div(head, group());
    share(launch, /*withKeys=*/causal, /*withQueries=*/true);
    if (parts) {
      Value row = rowOfPart(b, *parts, causal ? part : b.index(0));
      startSums(b, parts->sums,
                [&](Value d, Value c) { return Values{row, d, c}; });
    } else {
      startSums(b, op.getState(), stateAt());
    }
    forChunks(b, tokens, sizes.queries, [&](BlockBuilder &b, Value first) {
      if (causal)
        loadKeys(b, first);
      loadFeatures(b, op.getQuery(), head, sizes.queries, first, queryRows);
      b.barrier();
      if (causal) {
        makeScores(b);
        b.barrier();
      }
      makeRows(b, first);
      b.barrier();
      if (causal) {
        addKeys(b);
        b.barrier();
      }
    });
    if (parts || !op.getSums())
      return;
    // Heads that share keys have the same.
    b.when(isZero(b, b.rem(head, group())),
           [&](BlockBuilder &b) { storeSums(b, op.getSums(), stateAt()); });
  }

private:
  using Place = llvm::function_ref<Values(Value d, Value column)>;

  int64_t group() const { return sizes.heads / sizes.kvHeads; }
  Value isZero(BlockBuilder &b, Value number) {
    return b.less(number, b.index(1));
  }
  Value rowOfPart(BlockBuilder &b, const Parts &parts, Value number) {
    Value heads = b.add(b.mul(batch, sizes.kvHeads), kvHead);
    return b.add(b.mul(heads, parts.count), number);
  }
  std::function<Values(Value, Value)> stateAt() {
    return [this](Value d, Value c) { return Values{batch, kvHead, d, c}; };
  }

  /// A launch with a block for all columns, parts, heads and batches.
  BlockLaunch enter(BlockBuilder &b, int64_t heads, Value countParts) {
    Value blocks = b.mul(b.mul(sizes.batches, heads * columnTiles), countParts);
    BlockLaunch launch(b, blocks, kThreads);
    thread = launch.thread;
    firstColumn = b.mul(b.rem(launch.block, columnTiles), tile.columns);
    Value number = b.div(launch.block, columnTiles);
    part = b.rem(number, countParts);
    number = b.div(number, countParts);
    head = b.rem(number, heads);
    batch = b.div(number, heads);
    return launch;
  }

  void share(BlockLaunch &launch, bool withKeys, bool withQueries) {
    auto matrix = [&](int64_t rows, int64_t stride) {
      Type f32 = Float32Type::get(launch.op.getContext());
      return Matrix{launch.shared(rows * stride, f32), stride};
    };
    int64_t stride = SumsTile::strideOf(tile.depth());
    sums = matrix(tile.depth(), tile.columns);
    total = matrix(1, tile.depth());
    if (withKeys) {
      keyRows = matrix(tile.tokens, stride);
      valueRows = matrix(tile.tokens, tile.columns);
    }
    if (withQueries)
      queryRows = matrix(tile.tokens, stride);
    if (withKeys && withQueries)
      scores = matrix(tile.tokens, SumsTile::strideOf(tile.tokens));
  }

  /// The part's chunks of `all` tokens.
  void forChunks(BlockBuilder &b, Value tokens, Value all,
                 llvm::function_ref<void(BlockBuilder &, Value first)> body) {
    Value begin = b.mul(part, tokens);
    b.forLoop(begin, b.min(b.add(begin, tokens), all), tile.tokens, {},
              [&](KernelBuilder &k, Value first, ValueRange) {
                BlockBuilder b(k);
                body(b, first);
                return Values();
              });
  }

  /// `count` items, dealt out to the threads in order. A few are read before
  /// they are written, so that a thread waits for memory once.
  void forItems(
      BlockBuilder &b, int64_t count,
      llvm::function_ref<Values(BlockBuilder &, Value item)> read,
      llvm::function_ref<void(BlockBuilder &, Value item, ValueRange)> write) {
    int64_t together = 4;
    while (together > 1 && count % (together * kThreads) != 0)
      together /= 2;
    b.forLoop(thread, b.index(count), together * kThreads, {},
              [&](KernelBuilder &k, Value first, ValueRange) {
                BlockBuilder b(k);
                Values items;
                SmallVector<Values> found;
                for (int64_t i = 0; i < together; ++i) {
                  items.push_back(b.add(first, b.index(i * kThreads)));
                  found.push_back(read(b, items[i]));
                }
                for (int64_t i = 0; i < together; ++i)
                  write(b, items[i], found[i]);
                return Values();
              });
  }

  /// Tiles of a product, dealt out to the threads in order.
  void forTiles(
      BlockBuilder &b, const ThreadTile &split,
      llvm::function_ref<void(BlockBuilder &, Value row, Value column)> body) {
    b.forLoop(thread, b.index(split.count), kThreads, {},
              [&](KernelBuilder &k, Value number, ValueRange) {
                BlockBuilder b(k);
                body(b, b.div(number, split.across),
                     b.mul(b.rem(number, split.across), split.columns));
                return Values();
              });
  }

  //===--------------------------------------------------------------------===//
  // From and to memory
  //===--------------------------------------------------------------------===//

  /// Rows of `to`, each `width` columns, made of tokens from `first` on; zeros
  /// for missing and masked tokens. Four columns at a time, where they end
  /// together.
  void loadRows(BlockBuilder &b, Value heads, Value ofHead, Value first,
                Value all, Value firstColumn, int64_t width, const Matrix &to,
                Value mask,
                llvm::function_ref<Value(BlockBuilder &, Value)> map) {
    int64_t columns = sizeOf(heads, 3), lanes = columns % 4 == 0 ? 4 : 1,
            bytes =
                cast<MemRefType>(heads.getType()).getElementTypeBitWidth() / 8,
            align = std::gcd(alignmentOfRows(heads), lanes * bytes),
            vectors = width / lanes;
    auto columnOf = [&](BlockBuilder &b, Value item) {
      return b.mul(b.rem(item, vectors), lanes);
    };
    auto read = [&](BlockBuilder &b, Value item) {
      Value token = b.add(first, b.div(item, vectors));
      Value column = b.add(firstColumn, columnOf(b, item));
      Value there =
          b.both(b.less(token, all), b.less(column, b.index(columns)));
      token = b.min(token, b.sub(all, b.index(1)));
      column = b.min(column, b.index(columns - lanes));
      if (mask) {
        Value row = sizeOf(mask, 0) == 1 ? b.index(0) : batch;
        Value zero = b.index(0);
        there = b.both(there, b.loadNumber(mask, {row, zero, zero, token}));
      }
      return Values{
          b.loadWide(heads, {batch, ofHead, token, column}, lanes, align),
          there};
    };
    forItems(
        b, tile.tokens * vectors, read,
        [&](BlockBuilder &b, Value item, ValueRange found) {
          Value x = b.select(found[1], map(b, found[0]), b.splat(0.0, lanes));
          Value row = b.mul(b.div(item, vectors), to.stride);
          b.storeAt(x, to.buffer, b.add(row, columnOf(b, item)), 4 * lanes);
        });
  }

  void loadFeatures(BlockBuilder &b, Value heads, Value ofHead, Value all,
                    Value first, const Matrix &to, Value mask = {}) {
    loadRows(b, heads, ofHead, first, all, b.index(0), tile.depth(), to, mask,
             [&](BlockBuilder &b, Value x) {
               return emitFeature(b, op.getFeatureMap(), x);
             });
  }

  void loadKeys(BlockBuilder &b, Value first) {
    loadFeatures(b, op.getKey(), kvHead, sizes.keys, first, keyRows,
                 op.getMask());
    loadRows(b, op.getValue(), kvHead, first, sizes.keys, firstColumn,
             tile.columns, valueRows, op.getMask(),
             [](BlockBuilder &, Value x) { return x; });
  }

  /// S and z from `from`, if there is one; else zeros.
  void startSums(BlockBuilder &b, Value from, Place place = {}) {
    auto load = [&](BlockBuilder &b, Value d, Value column) {
      if (!from)
        return b.f32(0.0);
      Value there = b.both(b.less(d, b.index(sizes.width)),
                           b.less(column, b.index(sizes.valueWidth + 1)));
      Value x =
          b.loadNumber(from, place(b.min(d, b.index(sizes.width - 1)),
                                   b.min(column, b.index(sizes.valueWidth))));
      return b.select(there, x, b.f32(0.0));
    };
    auto store = [&](const Matrix &to) {
      return [&](BlockBuilder &b, Value item, ValueRange found) {
        memref::StoreOp::create(b.b, b.loc, found[0], to.buffer, item);
      };
    };
    forItems(
        b, tile.depth() * tile.columns,
        [&](BlockBuilder &b, Value item) {
          Value column = b.add(firstColumn, b.rem(item, tile.columns));
          return Values{load(b, b.div(item, tile.columns), column)};
        },
        store(sums));
    forItems(
        b, tile.depth(),
        [&](BlockBuilder &b, Value item) {
          return Values{load(b, item, b.index(sizes.valueWidth))};
        },
        store(total));
  }

  /// The block's columns of S; z by the first block.
  void storeSums(BlockBuilder &b, Value to, Place place) {
    auto load = [](const Matrix &from) {
      return [&](BlockBuilder &b, Value item) {
        return Values{b.loadNumber(from.buffer, item)};
      };
    };
    auto store = [&](BlockBuilder &b, Value x, Value d, Value column) {
      memref::StoreOp::create(b.b, b.loc, x, to, place(d, column));
    };
    forItems(b, sizes.width * tile.columns, load(sums),
             [&](BlockBuilder &b, Value item, ValueRange found) {
               Value column = b.add(firstColumn, b.rem(item, tile.columns));
               Value there = b.less(column, b.index(sizes.valueWidth));
               b.when(there, [&](BlockBuilder &b) {
                 store(b, found[0], b.div(item, tile.columns), column);
               });
             });
    b.when(isZero(b, firstColumn), [&](BlockBuilder &b) {
      forItems(b, sizes.width, load(total),
               [&](BlockBuilder &b, Value item, ValueRange found) {
                 store(b, found[0], item, b.index(sizes.valueWidth));
               });
    });
  }

  //===--------------------------------------------------------------------===//
  // Products
  //===--------------------------------------------------------------------===//

  Values zeros(BlockBuilder &b, int64_t count) {
    return Values(count, b.f32(0.0));
  }

  /// S += F^T W, z += F^T 1.
  void addKeys(BlockBuilder &b) {
    ThreadTile split(tile.depth(), tile.columns);
    forTiles(b, split, [&](BlockBuilder &b, Value row, Value column) {
      row = b.mul(row, split.rows);
      Values before, at;
      for (int64_t i = 0; i < split.rows; ++i) {
        at.push_back(b.add(b.mul(b.add(row, b.index(i)), sums.stride), column));
        Value old =
            b.loadAt(sums.buffer, at[i], split.columns, 4 * split.columns);
        for (int64_t j = 0; j < split.columns; ++j)
          before.push_back(vector::ExtractOp::create(b.b, b.loc, old, j));
      }
      Values after = multiply(b, tile.tokens, {keyRows, row, split.rows},
                              {valueRows, column, split.columns}, before);
      for (int64_t i = 0; i < split.rows; ++i)
        b.storeAt(toVector(b, ArrayRef(after).slice(i * split.columns,
                                                    split.columns)),
                  sums.buffer, at[i], 4 * split.columns);
    });
    forItems(
        b, tile.depth(),
        [&](BlockBuilder &b, Value item) {
          return b.forLoop(
              b.index(0), b.index(tile.tokens), 1,
              b.loadNumber(total.buffer, item),
              [&](KernelBuilder &k, Value row, ValueRange sum) {
                BlockBuilder b(k);
                Value x = b.loadNumber(keyRows.buffer,
                                       b.add(b.mul(row, keyRows.stride), item));
                return Values{arith::AddFOp::create(b.b, b.loc, sum[0], x)};
              });
        },
        [&](BlockBuilder &b, Value item, ValueRange sum) {
          memref::StoreOp::create(b.b, b.loc, sum[0], total.buffer, item);
        });
  }

  /// lower(G F^T).
  void makeScores(BlockBuilder &b) {
    ThreadTile split(tile.tokens, tile.tokens);
    forTiles(b, split, [&](BlockBuilder &b, Value row, Value column) {
      // Rows that threads read at once lie one below the other.
      Lines left = {queryRows, row, split.rows, tile.tokens / split.rows};
      Lines right = {keyRows, b.div(column, split.columns), split.columns,
                     split.across};
      Values found = multiply(b, tile.depth(), left, right,
                              zeros(b, split.rows * split.columns));
      for (int64_t i = 0; i < split.rows; ++i)
        for (int64_t j = 0; j < split.columns; ++j) {
          Value query = left.at(b, i), key = right.at(b, j);
          Value score = b.select(b.less(query, key), b.f32(0.0),
                                 found[i * split.columns + j]);
          memref::StoreOp::create(b.b, b.loc, score, scores.buffer,
                                  b.add(b.mul(query, scores.stride), key));
        }
    });
  }

  /// Y = G S + scores W, normalised and stored.
  void makeRows(BlockBuilder &b, Value first) {
    ThreadTile split(tile.tokens, tile.columns);
    bool normalised = bool(op.getEps());
    int64_t each = split.columns + (normalised ? 1 : 0);
    auto besideSums = [&](BlockBuilder &b, Value k) {
      Value four = b.loadAt(total.buffer, k, 4, 16);
      Values found;
      for (int64_t i = 0; i < 4; ++i)
        found.push_back(vector::ExtractOp::create(b.b, b.loc, four, i));
      return found;
    };
    auto besideValues = [](BlockBuilder &b, Value) {
      return Values(4, b.f32(1.0));
    };
    using Beside = llvm::function_ref<Values(BlockBuilder &, Value)>;
    forTiles(b, split, [&](BlockBuilder &b, Value row, Value column) {
      int64_t step = tile.tokens / split.rows;
      Lines left = {queryRows, row, split.rows, step};
      Values found =
          multiply(b, tile.depth(), left, {sums, column, split.columns},
                   zeros(b, split.rows * each),
                   normalised ? Beside(besideSums) : Beside());
      if (op.getCausal())
        found = multiply(b, tile.tokens, {scores, row, split.rows, step},
                         {valueRows, column, split.columns}, found,
                         normalised ? Beside(besideValues) : Beside());
      for (int64_t i = 0; i < split.rows; ++i) {
        auto numbers = ArrayRef(found).slice(i * each, each);
        Value y = toVector(b, numbers.take_front(split.columns));
        if (auto eps = op.getEps()) {
          Value factor =
              emitNormaliser(b, numbers.back(), eps->convertToDouble());
          y = arith::MulFOp::create(b.b, b.loc, y,
                                    b.splat(factor, split.columns));
        }
        Value token = b.add(first, left.at(b, i));
        b.when(b.less(token, sizes.queries), [&](BlockBuilder &b) {
          storeRow(b, y, token, b.add(firstColumn, column));
        });
      }
    });
  }

  /// Stores the columns that exist.
  void storeRow(BlockBuilder &b, Value y, Value token, Value column) {
    Value dest = op.getDest();
    int64_t lanes = cast<VectorType>(y.getType()).getDimSize(0);
    int64_t bytes =
        cast<MemRefType>(dest.getType()).getElementTypeBitWidth() / 8;
    auto store = [&](BlockBuilder &b, Value x, Value column, int64_t lanes) {
      b.when(b.less(column, b.index(sizes.valueWidth)), [&](BlockBuilder &b) {
        b.storeAt(x, dest, {batch, head, token, column},
                  std::gcd(alignmentOfRows(dest), lanes * bytes));
      });
    };
    if (sizes.valueWidth % lanes == 0)
      return store(b, y, column, lanes);
    for (int64_t i = 0; i < lanes; ++i) {
      Value x = vector::ExtractOp::create(b.b, b.loc, y, i);
      store(b, toVector(b, x), b.add(column, b.index(i)), 1);
    }
  }

  LinearAttentionIntoOp op;
  const SumsSizes &sizes;
  SumsTile tile;
  int64_t columnTiles;
  Value thread, batch, head, kvHead, part, firstColumn;
  Matrix sums, total, keyRows, valueRows, queryRows, scores;
};

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// Parts of `tokens` tokens: as many as give each multiprocessor two of all
/// `blocks`, if they are long enough, each a number of whole chunks.
Parts split(BlockBuilder &b, Value tokens, Value blocks,
            int64_t multiprocessors, const SumsTile &tile) {
  Value one = b.index(1);
  Value wanted =
      b.div(b.add(b.sub(b.max(blocks, one), one), b.index(2 * multiprocessors)),
            b.max(blocks, one));
  Value most = b.div(tokens, kLeastTokensOfPart);
  Parts parts;
  parts.count =
      b.max(b.min(b.min(wanted, most), b.index(kMostPartsOfTokens)), one);
  Value chunks = b.ceilDiv(tokens, tile.tokens);
  Value each = b.div(b.add(chunks, b.sub(parts.count, one)), parts.count);
  parts.tokens = b.mul(each, tile.tokens);
  return parts;
}

/// The kernel that adds the sums of parts up in order, a thread for each number
/// of a head's sums. Causal, each part gets the sums before it; else the first
/// one gets all.
void launchTotals(KernelBuilder &k, LinearAttentionIntoOp op,
                  const SumsSizes &sizes, const Parts &parts) {
  OpBuilder::InsertionGuard guard(k.b);
  BlockBuilder b(k);
  int64_t columns = sizes.valueWidth + 1;
  Value all = b.mul(sizes.batches, sizes.kvHeads * sizes.width * columns);
  BlockLaunch launch(b, b.ceilDiv(all, kThreads), kThreads);
  Value number = b.add(b.mul(launch.block, kThreads), launch.thread);
  b.when(b.less(number, all), [&](BlockBuilder &b) {
    Value column = b.rem(number, columns), row = b.div(number, columns);
    Value d = b.rem(row, sizes.width), heads = b.div(row, sizes.width);
    SmallVector<Value> inState = {b.div(heads, sizes.kvHeads),
                                  b.rem(heads, sizes.kvHeads), d, column};
    auto store = [&](BlockBuilder &b, Value x, Value to, ValueRange at) {
      memref::StoreOp::create(b.b, b.loc, x, to, at);
    };
    Value first = b.mul(heads, parts.count);
    Value sum =
        op.getState() ? b.loadNumber(op.getState(), inState) : b.f32(0.0);
    sum = b.forLoop(b.index(0), parts.count, 1, sum,
                    [&](KernelBuilder &k, Value part, ValueRange before) {
                      BlockBuilder b(k);
                      SmallVector<Value> at = {b.add(first, part), d, column};
                      Value own = b.loadNumber(parts.sums, at);
                      if (op.getCausal())
                        store(b, before[0], parts.sums, at);
                      return Values{
                          arith::AddFOp::create(b.b, b.loc, before[0], own)};
                    })[0];
    if (!op.getCausal())
      store(b, sum, parts.sums, {first, d, column});
    if (op.getSums())
      store(b, sum, op.getSums(), inState);
  });
}

} // namespace

LogicalResult lowerLinearAttention(LinearAttentionIntoOp op,
                                   int64_t multiprocessors) {
  OpBuilder builder(op);
  BlockBuilder b(builder, op.getLoc());
  SumsSizes sizes(b, op);
  auto large = chooseSumsTile(sizes.width, sizes.valueWidth, false);
  auto small = chooseSumsTile(sizes.width, sizes.valueWidth, true);
  if (!large || !small)
    return op.emitOpError("has heads of width ")
           << sizes.width << ", too wide for shared memory";
  bool causal = op.getCausal();
  int64_t tiles = llvm::divideCeil(sizes.valueWidth, large->columns);
  auto splitOf = [&](Value tokens, int64_t heads) {
    return split(b, tokens, b.mul(sizes.batches, heads * tiles),
                 multiprocessors, *large);
  };
  // Blocks of the kernel that makes rows decide how many parts it has.
  Parts rows = splitOf(sizes.queries, sizes.heads);
  Parts parts = causal ? rows : splitOf(sizes.keys, sizes.kvHeads);
  // Causal, a single part needs no sums but its own.
  Value states = b.mul(sizes.batches, sizes.kvHeads);
  if (causal)
    states = b.mul(states, b.min(b.sub(parts.count, b.index(1)), b.index(1)));
  auto type =
      MemRefType::get({ShapedType::kDynamic, sizes.width, sizes.valueWidth + 1},
                      b.b.getF32Type());
  parts.sums = memref::AllocOp::create(b.b, b.loc, type,
                                       ValueRange{b.mul(states, parts.count)});

  auto makeSums = [&](BlockBuilder &b) {
    SumsBlock(op, sizes, *large).launchSums(b, parts);
    launchTotals(b, op, sizes, parts);
  };
  auto makeRows = [&](BlockBuilder &b, const Parts *from) {
    auto few = [&](BlockBuilder &b) {
      SumsBlock(op, sizes, *small)
          .launchRows(b, b.index(1), b.index(kFewTokens), from);
    };
    auto many = [&](BlockBuilder &b) {
      // One part is all of them.
      Value tokens = from ? rows.tokens : sizes.queries;
      SumsBlock(op, sizes, *large)
          .launchRows(b, from ? rows.count : b.index(1), tokens, from);
    };
    chooseBelow(b, sizes.queries, kFewTokens + 1, few, many);
  };
  if (causal) {
    chooseBelow(
        b, parts.count, 2, [&](BlockBuilder &b) { makeRows(b, nullptr); },
        [&](BlockBuilder &b) {
          makeSums(b);
          SumsBlock(op, sizes, *large)
              .launchRows(b, rows.count, rows.tokens, &parts);
        });
  } else {
    makeSums(b);
    makeRows(b, &parts);
  }
  op.erase();
  return success();
}

} // namespace attune
