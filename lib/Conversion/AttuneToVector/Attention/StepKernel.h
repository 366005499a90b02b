//===- StepKernel.h - A step of online softmax, in parts --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_CONVERSION_ATTUNETOVECTOR_ATTENTION_STEPKERNEL_H
#define ATTUNE_LIB_CONVERSION_ATTUNETOVECTOR_ATTENTION_STEPKERNEL_H

#include "../Rows/CachedRows.h"
#include "Attention.h"

#include "attune/Conversion/MatrixTiles.h"
#include "attune/Conversion/ScoreKernels.h"
#include "attune/TargetInfo/CpuAttention.h"

namespace attune {

// Keys are transposed in squares of this many.
constexpr int64_t kSquare = 8;
// Keys of a vector of products, and lane-interleaved partial sums (phases) of a
// product: see AttentionFewQuads.cpp.
constexpr int64_t kQuad = 4;

/// Eight vectors of eight lanes, transposed in three rounds of two-operand
/// shuffles. The first two rounds stay within 128 bits. A lane is `unit`
/// elements.
KernelBuilder::Values transposeSquare(KernelBuilder &k,
                                      llvm::ArrayRef<mlir::Value> rows,
                                      int64_t unit = 1);
/// Two numbers or vectors of them made one, in an order that does not matter.
using Combine =
    llvm::function_ref<mlir::Value(KernelBuilder &, mlir::Value, mlir::Value)>;
mlir::Value addUp(KernelBuilder &k, mlir::Value lhs, mlir::Value rhs);
/// The combined lanes of eight vectors of eight, or of 16 of 16, as a vector.
mlir::Value combineSquare(KernelBuilder &k, KernelBuilder::Values rows,
                          Combine combine);
/// The larger one.
mlir::Value maxIndex(KernelBuilder &k, mlir::Value lhs, mlir::Value rhs);
/// Some lanes of two vectors, counted through both.
mlir::Value shuffle(KernelBuilder &k, mlir::Value a, mlir::Value b,
                    llvm::ArrayRef<int64_t> lanes);

/// Emits one step; the members are what its parts share.
class StepKernel {
public:
  using Values = KernelBuilder::Values;

  StepKernel(OnlineAttentionOp op, const VectorAttentionTile &tile,
             int64_t maxQueries, int64_t maxKeys)
      : op(op), modifiers(ScoreModifiers::of(op)), lanes(tile.lanes),
        rows(tile.rows), maxQueries(maxQueries), valueBytes(tile.valueBytes),
        fetchBytes(tile.fetchBytes), nearBytes(tile.nearBytes),
        unrolled(tile.unrolled) {
    auto query = tensorType(op.getQuery()), key = tensorType(op.getKey());
    group = query.getDimSize(1) / key.getDimSize(1);
    width = query.getDimSize(3);
    valueWidth = widthOfRows(tensorType(op.getValue()));
    bool narrow = multipliesPairs(op, width);
    matrix = tile.matrix && narrow && onBuffers() &&
             group * maxQueries > kQueriesInPlace &&
             attendsInMatrixTiles(width, valueWidth, lanes);
    if (matrix)
      rows = kMatrixBlock * kMatrixRows;
    rowBlocks = llvm::divideCeil(group * maxQueries, rows);
    keyPanels = llvm::divideCeil(maxKeys, lanes);
    valuePanels = llvm::divideCeil(valueWidth, lanes);
    pairs = matrix || (tile.pairs && narrow);
    // Otherwise packed queries have it.
    if (!pairs)
      modifiers.scale = 1;
    alone = query.getDimSize(0) == 1 && key.getDimSize(1) == 1;
    // A group of more heads always has more rows.
    if (group <= kQueriesInPlace)
      chooseFewRows(tile.pairs);
    if (op.getMask()) {
      auto mask = tensorType(op.getMask());
      sharesMask = mask.getDimSize(1) == 1 && mask.getDimSize(2) == 1;
    }
  }

  /// The states after the step; if they are buffers, those that it has written.
  Values emit(mlir::OpBuilder &builder);
  /// Writes exp(E - lse) instead, into `dest` from key `first` on: the op is
  /// only read for what its scores are. One batch and one head; scratch goes
  /// to `home`.
  mlir::Value emitWeights(KernelBuilder &k, mlir::Value lse, mlir::Value first,
                          mlir::Value dest, mlir::Block *home);

private:
  /// A stacked row: which head and query of the tile, counted from zero.
  struct Row {
    mlir::Value head, query;
  };
  /// The keys of the block that the rows of one block see: row i the keys
  /// [begin[i], end[i]), all rows together nothing outside [first, last).
  struct Range {
    Values begin, end;
    mlir::Value first, last;
    mlir::Value latestBegin, earliestEnd;
  };

  /// The scores of some rows for one panel of keys; takes and returns `scores`.
  using Scores = llvm::function_ref<Values(KernelBuilder &, mlir::Value panel,
                                           mlir::Value scores)>;
  /// acc * factors + probabilities * values, for keys [first, first + depth).
  using Sum = llvm::function_ref<mlir::Value(
      KernelBuilder &, mlir::ValueRange factors, mlir::Value probabilities,
      mlir::Value first, mlir::Value depth, mlir::Value acc)>;

  /// Work that is interleaved with the exponentials of a panel.
  using Weighing = llvm::function_ref<void(KernelBuilder &, mlir::Value panel)>;

  /// A strided view of rows of keys or values, or of widened copies of them:
  /// row i at `first + i`, the last one at `first + last`, if some may be
  /// beyond it.
  struct Lying {
    mlir::Value tensor;
    Values leading; ///< indices before that of the row
    mlir::Value first, last;

    Values at(KernelBuilder &k, mlir::Value row, mlir::Value column) const;
    /// Rows beyond the end repeat the last: masked later, but real memory.
    mlir::Value upToLast(KernelBuilder &k, mlir::Value row) const {
      return last ? k.min(row, last) : row;
    }
  };

  /// The prefetches of a loop, if `from` lies in memory: `elements` per
  /// iteration, from row `row` on, after `firstTurn` earlier iterations, if
  /// that is set.
  struct Fetching {
    std::optional<Lying> from;
    mlir::Value row;
    int64_t elements = 0;
    mlir::Value firstTurn = {};
    bool toLevel2 = false; ///< however soon the first-level cache gets lines
  };

  /// The prefetches of many rows before each product: `lines` iterations of a
  /// line each.
  struct Next {
    Fetching line;
    mlir::Value lines;
  };

  /// Whether the op writes memory, as it does once tensors are that.
  bool onBuffers() {
    return mlir::isa<mlir::MemRefType>(op.getAcc().getType());
  }
  mlir::Value scratch(KernelBuilder &k, llvm::ArrayRef<int64_t> shape,
                      bool pairs = false);
  Row rowAt(KernelBuilder &k, mlir::Value number);
  llvm::SmallVector<Row> rowsOf(KernelBuilder &k, mlir::Value block);
  mlir::Value countRows(KernelBuilder &k);
  mlir::Value countRowBlocks(KernelBuilder &k);
  mlir::Value packQueries(KernelBuilder &k, mlir::Value to);
  mlir::Value packKeys(KernelBuilder &k, mlir::Value to);
  /// Whole registers of f32 are read in place.
  bool packsValues() {
    return valueWidth % lanes != 0 ||
           !tensorType(op.getValue()).getElementType().isF32();
  }
  mlir::Value packValues(KernelBuilder &k, mlir::Value to);
  mlir::Value packMask(KernelBuilder &k, mlir::Value to);
  Values foldTile(KernelBuilder &k, mlir::ValueRange states);
  Values foldBlock(KernelBuilder &k, mlir::Value block,
                   mlir::ValueRange carried);
  Values foldSingle(KernelBuilder &k, mlir::ValueRange carried);
  mlir::Value products(KernelBuilder &k, mlir::Value panel);
  void chooseFewRows(bool multiplyPairs);
  void makeFewRowsScratch(KernelBuilder &k);
  Values foldFewRows(KernelBuilder &k, mlir::ValueRange carried);
  llvm::SmallVector<Row> fewAt(KernelBuilder &k, mlir::Value number,
                               int64_t count);
  Lying inF32(KernelBuilder &k, mlir::Value heads, mlir::Value first,
              mlir::Value count, mlir::Value wide);
  void chooseFetching();
  bool foldsParts() const { return keysFolded < keyPanels * lanes; }
  /// Where a key's score or probability is.
  mlir::Value scoreOf(KernelBuilder &k, mlir::Value key) {
    return scoredFrom ? k.sub(key, scoredFrom) : key;
  }
  Fetching fetchingFrom(KernelBuilder &k, bool ofKeys, mlir::Value row,
                        int64_t elements);
  Fetching besideKeys(KernelBuilder &k, mlir::Value start, int64_t ahead,
                      int64_t turns);
  mlir::Value nextKeys(KernelBuilder &k);
  Fetching besideWeights(KernelBuilder &k, int64_t turns);
  Fetching besideValues(KernelBuilder &k, mlir::Value start, mlir::Value depth,
                        int64_t values, int64_t turns);
  void chooseNext(KernelBuilder &k);
  void fetchNext(KernelBuilder &k, mlir::Value block, mlir::Value product);
  void fetch(KernelBuilder &k, const Fetching &what, mlir::Value turn);
  Values
  foldInParts(KernelBuilder &k, const Range &seen, mlir::ValueRange carried,
              llvm::function_ref<Values(KernelBuilder &, const Range &part,
                                        mlir::ValueRange)>
                  fold);
  /// Passes over some values: some rows of a token, some of their channels.
  /// `number` and `column` begin one of them; other tokens' passes fetch the
  /// same.
  int64_t passesOfValues(int64_t chunk) const;
  mlir::Value passOfValues(KernelBuilder &k, mlir::Value number,
                           mlir::Value column, int64_t chunk);
  Values productsOfFew(KernelBuilder &k, mlir::Value number, mlir::Value key,
                       const Lying &keys);
  /// Whether products of few rows are quads: see AttentionFewQuads.cpp.
  bool makesQuads() const {
    return lanes > kSquare && productRows == 2 * quadRows();
  }
  /// Whether scores stay 4 x 4 register blocks until they are exponentiated;
  /// blocks of two rows are stored as rows.
  bool keepsQuads() const { return makesQuads() && quadRows() == kQuad; }
  /// Rows of a quad: four, or two where an instruction has eight lanes.
  int64_t quadRows() const { return lanes / 2 / kQuad; }
  /// Rows that are multiplied by values at a time. Two by four registers of
  /// channels read two lines of a value together, which memory serves faster
  /// than one.
  int64_t valueRows() const {
    return makesQuads() && !keepsQuads() ? rowsAtOnce : productRows;
  }
  /// Channels of a row in a vector of them.
  int64_t quadChunk() const { return fewPairs ? 2 * kQuad : kQuad; }
  /// Keys that few rows read at a time.
  int64_t keysAtOnce() const {
    return makesQuads() ? kQuad : sumsAtOnce / productRows;
  }
  mlir::Value scoreFew(KernelBuilder &k, mlir::Value begin, mlir::Value end,
                       mlir::Value scores);
  Values weighFew(KernelBuilder &k, const Range &seen,
                  mlir::ValueRange carried);
  mlir::Value sumFew(KernelBuilder &k, mlir::Value first, mlir::Value last,
                     mlir::Value probabilities, mlir::Value acc);
  void makeQuadScratch(KernelBuilder &k);
  mlir::Value packFewQueries(KernelBuilder &k, mlir::Value to);
  Values quadsOf(KernelBuilder &k, mlir::Value number, mlir::Value key,
                 const Lying &keys);
  mlir::Value storeQuads(KernelBuilder &k, mlir::ValueRange quads,
                         mlir::Value number, mlir::Value start, mlir::Value key,
                         mlir::Value scores);
  Values rowsOfQuads(KernelBuilder &k, mlir::Value number, mlir::Value start,
                     mlir::Value scores);
  mlir::Value sumFewPairs(KernelBuilder &k, mlir::Value first, mlir::Value last,
                          mlir::Value probabilities, mlir::Value acc);
  Values foldRows(KernelBuilder &k, llvm::ArrayRef<Row> at, const Range &range,
                  mlir::Value firstRow, mlir::ValueRange carried, Scores scores,
                  Sum sum, mlir::Value narrow = {},
                  Weighing meanwhile = nullptr);
  mlir::Value firstPanel(KernelBuilder &k, const Range &range);
  static bool multipliesPairs(OnlineAttentionOp op, int64_t width);
  mlir::Value packKeyPairs(KernelBuilder &k, mlir::Value to);
  mlir::Value packValuePairs(KernelBuilder &k, mlir::Value to);
  Values pairProducts(KernelBuilder &k, mlir::Value block, mlir::Value panel);
  Values sumPairs(KernelBuilder &k, mlir::Value panel,
                  mlir::Value probabilities, mlir::Value first,
                  mlir::Value depth, mlir::ValueRange sums);
  Values packedProducts(KernelBuilder &k, mlir::Value block, mlir::Value panel);
  void makeMatrixScratch(KernelBuilder &k);
  Values foldInTiles(KernelBuilder &k, mlir::Value block,
                     mlir::ValueRange carried);
  void scoreInTiles(KernelBuilder &k, mlir::Value block, const Range &range);
  void sumInTiles(KernelBuilder &k, mlir::Value block, const Range &range);
  llvm::SmallVector<Row> rowsOfTile(KernelBuilder &k, mlir::Value block,
                                    mlir::Value first);
  Range visible(KernelBuilder &k, llvm::ArrayRef<Row> at);
  /// Keys are counted from the first one of the block.
  KeysInReach reach(KernelBuilder &k) {
    return {k, modifiers, op.getNumQueries(), op.getNumKeys(),
            op.getKeyOffset()};
  }
  /// The query of a row, and its head within the tile.
  mlir::Value queryOf(KernelBuilder &k, const Row &row) {
    return k.add(op.getQueryOffset(), row.query);
  }
  mlir::Value headOf(KernelBuilder &k, const Row &row) {
    return k.add(k.mul(kvHead, group), row.head);
  }
  class PanelScores;
  void adjust(KernelBuilder &k, llvm::ArrayRef<Row> at, mlir::Value start,
              Values &scores);
  Values hide(KernelBuilder &k, const Range &range, mlir::Value start,
              mlir::ValueRange scores);
  mlir::Value seenByMask(KernelBuilder &k, const Row &row, mlir::Value start);

  /// Where a row is in a [batch, heads, queries, ..] tensor; a dimension of
  /// size one serves all.
  llvm::SmallVector<mlir::Value> place(KernelBuilder &k, mlir::Value tensor,
                                       const Row &row) {
    llvm::SmallVector<mlir::Value> at = {batch, headOf(k, row), row.query};
    for (int64_t dim = 0; dim < 3; ++dim)
      if (tensorType(tensor).getDimSize(dim) == 1)
        at[dim] = k.index(0);
    return at;
  }
  llvm::SmallVector<mlir::Value> place(KernelBuilder &k, mlir::Value tensor,
                                       const Row &row, mlir::Value last) {
    llvm::SmallVector<mlir::Value> at = place(k, tensor, row);
    at.push_back(last);
    return at;
  }

  OnlineAttentionOp op;
  ScoreModifiers modifiers; // of products
  int64_t lanes, rows, maxQueries;
  int64_t group, width, valueWidth;
  int64_t rowBlocks, keyPanels, valuePanels; // upper bounds
  bool alone, sharesMask = false;
  bool pairs;  // queries, keys, probabilities and values are packed as bf16
  bool matrix; // and multiplied in tiles of a matrix unit
  int64_t fewRows = 0;     // most rows that are folded where keys lie
  int64_t rowsAtOnce = 1;  // of them, are weighed at a time
  int64_t productRows = 1; // of them, meet keys and values at a time
  int64_t sumsAtOnce = 8;  // products of a row and a key, as many lanes each
  bool fewPairs = false;   // they multiply pairs
  int64_t valueBytes;      // of values that some rows meet in turn
  int64_t fetchBytes;      // asked for before the first of it comes
  int64_t nearBytes;       // fetched to the first-level cache before it is met
  bool crossing = false;   // keys fetch values, and values the next keys
  int64_t keysFolded = 0;  // by few rows at a time
  int64_t keysBesideWeights = 0; // of the next ones, fetched while weighing
  int64_t unrolled;              // multiply-adds that need no loop
  int64_t valuesAtOnce = 0;      // as many
  mlir::Value batch, kvHead;     // of the tile that is being folded
  mlir::Value keys;              // in the block
  mlir::Value queryScratch, keyScratch, valueScratch, scoreScratch, maskScratch;
  mlir::Value narrowScratch;        // of probabilities, in pairs
  mlir::Value sumScratch;           // of a block of rows, in tiles
  mlir::Value wideKeys, wideValues; // of 16 or 8 bits, in f32
  mlir::Value fewScoreScratch;      // of few rows, if they fold fewer keys
  mlir::Value scoredFrom;           // the key of their first score; null: 0
  mlir::Value narrowFewScratch;     // of probabilities of few rows, in pairs
  mlir::Value fewQueryScratch, fewQueries; // channels of few rows side by side
  mlir::Value packedQueries, packedKeys, packedMask;
  mlir::Value packedValues;             // null where values are not packed
  llvm::SmallVector<Next, 2> nextBlock; // of keys and of values
  mlir::Value productsOfBlock;          // of a block of rows with panels
};

} // namespace attune

#endif // ATTUNE_LIB_CONVERSION_ATTUNETOVECTOR_ATTENTION_STEPKERNEL_H
