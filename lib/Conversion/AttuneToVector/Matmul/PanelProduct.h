//===- PanelProduct.h - Rows against packed weight panels -------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_CONVERSION_ATTUNETOVECTOR_MATMUL_PANELPRODUCT_H
#define ATTUNE_LIB_CONVERSION_ATTUNETOVECTOR_MATMUL_PANELPRODUCT_H

#include "../Patterns.h"

#include "attune/Conversion/Activations.h"
#include "attune/TargetInfo/TargetDescription.h"

#include <functional>

namespace attune {

/// The inner part of every matrix product with weights: some rows of
/// activations against some panels [K, R] of one matrix. Linear layers, experts
/// and heads differ in which rows they read, which matrix, and what becomes of
/// a sum, and share this.
struct PanelProduct {
  /// Up to this many tiles of rows, rows count as few.
  static constexpr int64_t kFewTiles = 2;

  explicit PanelProduct(const VectorLowering &lowering)
      : fetchSteps(lowering.fetchSteps), streamBytes(lowering.streamBytes),
        narrowStreamBytes(lowering.narrowStreamBytes),
        threads(lowering.threads), matrixRows(lowering.matrixRows),
        matrixDepth(lowering.matrixDepth), matrixBytes(lowering.matrixBytes),
        matrixQuads(lowering.matrixQuads) {}
  /// The product of a tile op.
  PanelProduct(KernelBuilder &k, PackedProductOp op,
               const VectorLowering &lowering);

  /// [panels, K, R], or [parts, panels, K, R]; [panels, K / 2, 2 R] in pairs,
  /// [panels, K / 4, 4 R] of bytes, [panels, K / 8, 4 R] of 4 bits.
  mlir::Value weight;
  bool pairs = false;
  /// Pairs become numbers of f32, which rows are read as.
  bool widened = false;
  int64_t registerLanes = 0; ///< of f32 or i32, of a tile op's product
  /// Weights are numbers of 8 or 4 `bits`; `group` of them share a scale. Rows
  /// are bytes, or numbers if there are no scales of these.
  struct Bytes {
    mlir::Value inputScales, inputSums; ///< [rows, groups]
    /// [(parts,) panels, groups, R], or twice as many groups with zero points;
    /// in two levels blocks of bytes: see Attune/AttunePanels.h.
    mlir::Value weightScales;
    bool zeros;
    int64_t group;
    ByteProducts how;
    int64_t lanes; ///< of a register
    int64_t bits;

    bool hasByteRows() const { return bool(inputScales); }
    /// Whether the numbers are floats of 4 bits, e2m1.
    bool areFloats() const;
    /// Whether scales are in two levels, with minima as zero points.
    bool hasLevels() const;
    /// What every number is stored with in addition.
    int64_t zero() const;
    /// The numbers of four bits that one load brings, or bytes as they are.
    int64_t columnsOfQuad() const { return 32 / bits; }
    /// Whether a matrix unit multiplies groups of rows and panels as they are,
    /// and sums of `inputs` by it are worth what is done for each group.
    bool fillMatrixTiles(int64_t inputs, int64_t panelLanes) const;
    /// Fewest rows that are.
    static constexpr int64_t kMatrixRows = 96;
  };
  std::optional<Bytes> bytes;
  /// Whether the numbers are floats of 8 bits, e4m3.
  bool holdsByteFloats() const;
  mlir::Value part;   ///< which of the parts; null if there are none
  int64_t width = 0;  ///< output channels, without padding
  mlir::Value order;  ///< of rows: see attune.packed_product; may be null
  bool gated = false; ///< panels of gate and up alternate
  Activation activation = Activation::Identity;
  GateLimits limits; ///< if gated
  mlir::Value bias;  ///< may be null; a row for each part, if there are parts
  std::optional<double> scale;
  /// A step's panels come from memory. While rows pass panel i of a step, they
  /// fetch panel firstPanel + i (of `part`, if there are parts), which comes
  /// next. Where rows are `few`, any number of them fetches all of it.
  struct Ahead {
    mlir::Value part, firstPanel;
    bool few = false;
  };
  std::optional<Ahead> ahead;
  /// The input [rows, K], or null: where it is one piece of memory, a matrix
  /// unit may load from it, and the rows of the next tile are fetched while
  /// panels pass this one's.
  mlir::Value rowsInMemory;
  bool residual = false; ///< the tile holds what the result is added to
  /// Tiles of many rows have half of them and two panels. Steps are of an even
  /// number of panels then, but for the last.
  bool wide = false;
  /// Steps of the sum over K between two fetches.
  int64_t fetchSteps;
  /// How far ahead of themselves few rows fetch; 0: the CPU does it for them.
  int64_t streamBytes;
  int64_t narrowStreamBytes; ///< if more, for up to 16 bits
  /// Threads that the panels are cut for.
  int64_t threads;
  /// Fewest rows for a matrix unit (0: there is none), inputs of a part of its
  /// sums, and bytes of sums that wait for the next part.
  int64_t matrixRows, matrixDepth, matrixBytes;
  bool matrixQuads; ///< it multiplies bytes, too
  /// Passes over the rows, each of which takes so large a part of the sum over
  /// K. Between them sums lie in the tile, whose type must be f32. More than
  /// one are for products that countPasses() allows it.
  int64_t passes = 1;
  /// How many of them there are, if that is chosen at run time: fewer of larger
  /// parts. Null: all.
  mlir::Value passesHere;
  /// Prepares to read row `row`; what it returns gives the row's element
  /// `step`, or its pair or quad `step` in every lane.
  using Element = std::function<mlir::Value(KernelBuilder &, mlir::Value step)>;
  std::function<Element(KernelBuilder &, mlir::Value row)> input;
  /// The rows that whole tiles leave, where these are read elsewhere: the same
  /// of the last `most` of each sequence, or of all if there are fewer. `first`
  /// is where the input's first row would be.
  struct LastRows {
    mlir::Value rows;
    int64_t most;
    mlir::Value first;
    std::function<Element(KernelBuilder &, mlir::Value row)> input;
  };
  std::optional<LastRows> lastRows;
  /// Rows of the input are divided by the root of their mean square plus
  /// `rmsEps`: sums are multiplied by `inputScale` of the input's row, which is
  /// set then.
  std::optional<double> rmsEps;
  std::function<mlir::Value(KernelBuilder &, mlir::Value row)> inputScale;
  /// Writes what row `row` is divided by to place `at` of `table`.
  mlir::Value storeRowScale(KernelBuilder &k, mlir::Value row,
                            mlir::Value table, mlir::Value at) const;
  /// Which row of the input comes first; null: 0.
  mlir::Value firstRow;
  /// The rows of `dest` as a tile op: rows from `firstRow` on against `count`
  /// panels from `firstPanel` on. It becomes vectors once there are buffers.
  /// What comes next is named of a stack alone: otherwise it is for
  /// attune-prefetch-tiles to say.
  struct TilePlace {
    mlir::Value firstRow, firstPanel, count;
    mlir::Value part = nullptr, numParts = nullptr; ///< of the sum over K
    mlir::Value rowScales = nullptr;
    int64_t tileRows;
    mlir::Value tileRow = nullptr, numRows = nullptr; ///< `rows r of R`
    bool whole = false;
  };
  mlir::Value asTileOp(KernelBuilder &k, mlir::Value input, const TilePlace &at,
                       mlir::Value dest) const;

  /// What reads `rows` [rows, K], in `order`: numbers, pairs or quads, as the
  /// weight is.
  std::function<Element(KernelBuilder &, mlir::Value row)>
  reading(mlir::Value rows) const;
  /// Reads `rows` and nothing else.
  void readFrom(mlir::Value rows) {
    rowsInMemory = rows;
    input = reading(rows);
  }

  int64_t depth() const; ///< in elements, pairs, quads or pairs of quads
  int64_t panelLanes() const;
  /// Outputs of a tile: of a panel, or of all that are `joined`.
  int64_t lanes() const { return joined * panelLanes(); }
  /// What a step's panels are a multiple of.
  int64_t unit() const { return wide ? 2 : 1; }
  int64_t panels() const { return (width + panelLanes() - 1) / panelLanes(); }
  /// Bytes of a panel, or of a gate's and its partner, in f32, pairs or quads.
  int64_t panelBytes() const;
  /// Passes that make a panel's parts fit `limit` bytes, as far as the depth
  /// divides.
  int64_t countPasses(int64_t limit) const;
  /// Panels that one parallel step takes: as many as stay in the cache while
  /// rows pass by, but few enough to share among threads.
  int64_t panelsPerStep(const VectorLowering &lowering) const;
  /// The same for a matrix unit.
  int64_t panelsPerMatrixStep() const;
  /// Whether a matrix unit takes most of the product.
  bool fillsMatrixTiles() const;
  /// Tells --remarks what tile the op `what` got.
  void remarkTiles(mlir::Operation *op, llvm::StringRef what,
                   const VectorLowering &lowering) const;

  /// What the destination of `op` gets.
  mlir::Value tileOf(KernelBuilder &k, PackedProductOp op) const;

  /// The panels and columns of parallel step `step` of `group` panels.
  struct Step {
    mlir::Value firstPanel, count, firstColumn;
    mlir::OpFoldResult columns;
  };
  Step step(KernelBuilder &k, mlir::Value step, int64_t group) const;

  /// The step of `count` panels from `firstPanel` on, or as many as there are;
  /// maybe none.
  Step stepAt(KernelBuilder &k, mlir::Value firstPanel, mlir::Value count,
              int64_t unit) const;

  mlir::Value numPasses(KernelBuilder &k) const;

private:
  int64_t joined = 1; ///< panels of a tile
  /// Where the scratch of buffers belongs: the stack of this function. Null:
  /// the product is of tensors.
  mlir::Block *stack = nullptr;
  /// Scratch of f32, or of `element`.
  mlir::Value scratchOf(KernelBuilder &k, llvm::ArrayRef<int64_t> shape,
                        mlir::Type element = {}) const;
  /// Sets `inputScale`: by `table`, or if all rows may be few, by what it finds
  /// itself.
  void scaleRows(KernelBuilder &k, mlir::Value table, int64_t tileRows,
                 bool many);
  /// Rows [row, row + rows) of `numRows` against panel i of `count` ones from
  /// `firstPanel`; what comes of it starts at `column` of the tile. Pass
  /// `pass`, null if there is one.
  struct Place {
    int64_t rows;
    bool whole; ///< as many rows as a tile has: long enough to fetch the next
    int64_t tileRows; ///< of a tile of one panel
    mlir::Value row, numRows, firstPanel, i, count, column, pass;
    mlir::Value origin; ///< the row that the tile begins with, if not the first
  };
  /// `rows` rows, which are in registers at a time.
  mlir::Value oneTile(KernelBuilder &k, mlir::Value rows, bool whole, Place at,
                      mlir::Value tile) const;
  /// At most `most` rows, which lie in memory before results are made of them:
  /// what differs from number to number is the sums alone.
  mlir::Value fewRows(KernelBuilder &k, mlir::Value rows, int64_t most,
                      const Place &at, mlir::Value tile) const;
  /// Rows whose number is in registers against a panel: the sums of each
  /// product go to its scratch [rows or more, R].
  void sumPanel(KernelBuilder &k, const Place &at,
                llvm::MutableArrayRef<mlir::Value> scratch) const;
  mlir::Value onePanel(KernelBuilder &k, const Place &at,
                       mlir::Value tile) const;
  /// Rows [0, numRows) against panels [firstPanel, firstPanel + count) in one
  /// pass, or pass `pass` of them; writes the tile's columns from the first on.
  mlir::Value onePass(KernelBuilder &k, int64_t tileRows, mlir::Value numRows,
                      mlir::Value firstPanel, mlir::Value count,
                      mlir::Value pass, mlir::Value tile) const;
  /// The same by a matrix unit, in all passes, to a buffer; `numRows` is 0 or
  /// at least fewestMatrixRows().
  void rowsInMatrixTiles(KernelBuilder &k, mlir::Value numRows,
                         mlir::Value firstPanel, mlir::Value count,
                         mlir::Value tile) const;
  int64_t fewestMatrixRows() const;
  class MatrixTiles;

  /// The R outputs of a panel.
  struct Outputs {
    mlir::Value first;          ///< its number among all
    mlir::Value column;         ///< where they go in the tile
    mlir::Value valid;          ///< how many there are, if fewer
    mlir::Value bias, gateBias; ///< may be null
    mlir::Value origin;         ///< the tile's first row; null: 0
  };
  Outputs outputsOf(KernelBuilder &k, mlir::Value panel,
                    mlir::Value column) const;
  void loadBias(KernelBuilder &k, Outputs &outputs) const;
  /// The input's row for row `row` of the tile.
  mlir::Value inputRow(KernelBuilder &k, mlir::Value row) const {
    return firstRow ? k.add(firstRow, row) : row;
  }
  /// The row of the input at a place of `order`, or if there is none, there.
  mlir::Value rowAt(KernelBuilder &k, mlir::Value place) const;
  /// Where a row's outputs go.
  llvm::SmallVector<mlir::Value>
  placeOf(KernelBuilder &k, const Outputs &outputs, mlir::Value row) const;
  /// What a row's sums become.
  mlir::Value result(KernelBuilder &k, const Outputs &outputs, mlir::Value gate,
                     mlir::Value sum, mlir::Value row, mlir::Value tile) const;
  /// Scratch for the sums of `rows` rows, one for each product of a panel.
  llvm::SmallVector<mlir::Value, 2> scratchForSums(KernelBuilder &k,
                                                   int64_t rows) const;
  /// The results of `rows` rows, from their sums in memory.
  mlir::Value finishFromMemory(KernelBuilder &k, const Place &at,
                               mlir::Value rows, Outputs outputs,
                               llvm::ArrayRef<mlir::Value> scratch,
                               mlir::Value tile) const;
  /// What is done for a panel between two loads of it.
  class PanelSums;
  /// Sums of quantized panel `panel`, group by group, into `scratch`. `fetch`
  /// is called in each step.
  mlir::Value
  sumGroups(KernelBuilder &k, const Place &at, mlir::Value panel,
            llvm::ArrayRef<Element> elements,
            llvm::function_ref<void(KernelBuilder &, mlir::Value step)> fetch,
            mlir::Value scratch) const;
  /// `sums` of i32, one vector for each row, plus the products of the group
  /// that begins at step `first`: of bytes, or of 4 bits.
  KernelBuilder::Values
  addBytes(KernelBuilder &k, int64_t rows, mlir::Value panel, mlir::Value first,
           llvm::ArrayRef<Element> elements,
           llvm::function_ref<void(KernelBuilder &, mlir::Value step)> fetch,
           mlir::ValueRange sums) const;
  /// The same of bytes that hold numbers of 6 bits, on CPUs that add products
  /// of bytes in 16 bits.
  KernelBuilder::Values
  addSixBits(KernelBuilder &k, int64_t rows, mlir::Value panel,
             mlir::Value first, llvm::ArrayRef<Element> elements,
             llvm::function_ref<void(KernelBuilder &, mlir::Value step)> fetch,
             mlir::ValueRange sums) const;
  /// Two quads of weights, side by side along the depth, for lanes of a
  /// register: what step `step` of a panel of 4 bits holds, as bytes.
  struct TwoQuads {
    mlir::Value low, high;
  };
  TwoQuads loadTwoQuads(KernelBuilder &k, mlir::Value panel, mlir::Value step,
                        int64_t lane, int64_t lanes) const;
  KernelBuilder::Values
  addNibbles(KernelBuilder &k, int64_t rows, mlir::Value panel,
             mlir::Value first, llvm::ArrayRef<Element> elements,
             llvm::function_ref<void(KernelBuilder &, mlir::Value step)> fetch,
             mlir::ValueRange sums) const;
  /// What a panel's numbers of a group are: scale * (number - zero), or scale *
  /// number - least. `zero` and `least` are null where there is none of their
  /// own.
  struct Factors {
    mlir::Value scale, zero, least;
  };
  /// `sums` of f32, plus the products of the group's numbers: rows are numbers.
  /// The scale is left out unless there is a least.
  KernelBuilder::Values
  addNumbers(KernelBuilder &k, int64_t rows, mlir::Value panel,
             mlir::Value first, llvm::ArrayRef<Element> elements,
             llvm::function_ref<void(KernelBuilder &, mlir::Value step)> fetch,
             const Factors &factors, mlir::ValueRange sums) const;
  /// `4 * lanes` bytes of a panel, from lane `lane` of step `step` on.
  mlir::Value loadStep(KernelBuilder &k, mlir::Value panel, mlir::Value step,
                       int64_t lane, int64_t lanes) const;
  /// `lanes` of row `row` of the panel's scales from `lane` on, in f32.
  mlir::Value loadScales(KernelBuilder &k, mlir::Value panel, mlir::Value row,
                         mlir::Value lane, int64_t lanes) const;
  /// The scales of a block of groups in two levels: what all of its scales and
  /// minima are multiplied by, and where its bytes begin.
  struct Block {
    mlir::Value scale, least, row;
  };
  Block loadBlock(KernelBuilder &k, mlir::Value panel, mlir::Value block,
                  mlir::Value lane, int64_t lanes) const;
  /// What group `number` of the block has.
  Factors factorsOf(KernelBuilder &k, mlir::Value panel, const Block &block,
                    mlir::Value number, mlir::Value lane, int64_t lanes) const;
  /// What group `group` of the panel has.
  Factors loadFactors(KernelBuilder &k, mlir::Value panel, mlir::Value group,
                      mlir::Value lane, int64_t lanes) const;
  /// Makes results of a row's sums and writes them.
  mlir::Value finish(KernelBuilder &k, const Outputs &outputs, mlir::Value gate,
                     mlir::Value sum, mlir::Value row, mlir::Value tile) const;
};

/// Whether a whole tile is one of several. Tiles of so few rows have no better
/// form for one or two.
inline bool wholeTilesAreMany(int64_t tileRows) { return tileRows > 3; }

/// Rows [0, numRows) in tiles that registers have room for: `tileRows`, half of
/// them if tiles are `wide`, and fewer at the end. `body(k, row, rows, whole,
/// carried)` takes `rows` of them from `row` on; how many is a constant, or at
/// most `tileRows`. A whole tile has as many as registers have room for.
using RowTileBody = llvm::function_ref<KernelBuilder::Values(
    KernelBuilder &, mlir::Value row, mlir::Value rows, bool whole,
    mlir::ValueRange carried)>;
KernelBuilder::Values forRowTiles(KernelBuilder &k, int64_t tileRows, bool wide,
                                  mlir::Value numRows, mlir::ValueRange inits,
                                  RowTileBody body);

/// The columns of `tile` that belong to `count` panels from `first` on, which
/// `fill` writes.
mlir::Value inColumns(
    KernelBuilder &k, int64_t lanes, mlir::Value first, mlir::Value count,
    mlir::Value tile,
    llvm::function_ref<mlir::Value(KernelBuilder &, mlir::Value columns)> fill);

/// A matrix [N, K] in panels of `lanes` rows, or a stack [P, N, K] of them,
/// made at run time: for matrices that are no attune.weight (those are packed
/// in the file).
mlir::Value packMatrix(KernelBuilder &k, mlir::Value matrix, int64_t lanes,
                       bool gated);

} // namespace attune

#endif // ATTUNE_LIB_CONVERSION_ATTUNETOVECTOR_MATMUL_PANELPRODUCT_H
