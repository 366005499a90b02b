//===- AttuneToAMX.cpp - Products in the tiles of a matrix unit -----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneDialect.h"
#include "Attune/AttunePanels.h"
#include "attune/Conversion/KernelBuilder.h"
#include "attune/Conversion/MatrixTiles.h"
#include "attune/Conversion/Passes.h"

#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_CONVERTATTUNETOAMX
#include "attune/Conversion/Passes.h.inc"

namespace {

/// Whether registers can be loaded from it: elements of a row are neighbours.
bool hasDenseRows(Value buffer) {
  auto type = dyn_cast<MemRefType>(buffer.getType());
  return type && type.getRank() > 0 && type.isLastDimUnitStride();
}

/// Why a product cannot be made of tiles; null if it can.
const char *problemOf(LinearIntoOp op) {
  if (op->getNumResults() != 0)
    return "is not bufferized";
  if (op.getBias() || op.getGated() || op.getScale() ||
      op.getActivation() != Activation::Identity)
    return "is more than a sum of products, which is all that tiles hold";
  auto input = cast<ShapedType>(op.getInput().getType()),
       weight = cast<ShapedType>(op.getWeight().getType()),
       dest = cast<ShapedType>(op.getDest().getType());
  int64_t depth = input.getDimSize(1), rows = input.getDimSize(0);
  bool quads = holdsQuads(weight, depth);
  if (!quads &&
      (!holdsPairs(weight, depth) || !input.getElementType().isBF16() ||
       !dest.getElementType().isF32()))
    return "is no product of bf16 in pairs, added in f32, nor of bytes in "
           "quads";
  int64_t lanes = weight.getDimSize(2) / (quads ? 4 : 2);
  if (weight.getDimSize(0) != 1 || rows < kMatrixRows ||
      rows > kMatrixBlock * kMatrixRows || rows % kMatrixRows != 0 ||
      !fillsMatrixTiles(depth, lanes) || dest.getDimSize(1) != lanes ||
      (quads && depth % kMatrixDepth != 0))
    return "has other sizes than one block of tiles";
  if (!hasDenseRows(op.getInput()) || !hasDenseRows(op.getWeight()) ||
      !hasDenseRows(op.getDest()))
    return "has rows with gaps between their elements";
  return nullptr;
}

/// One product: all tiles of the destination.
class TileLoops {
public:
  TileLoops(OpBuilder &b, LinearIntoOp op)
      : k(b, op.getLoc()), input(op.getInput()), weight(op.getWeight()),
        dest(op.getDest()), adds(op.getResidual()), depth(sizeOf(input, 1)),
        high(sizeOf(input, 0) / kMatrixRows),
        bytes(holdsQuads(cast<MemRefType>(weight.getType()), depth)),
        together(bytes ? 4 : 2), lanes(sizeOf(weight, 2) / together),
        wide(lanes / kMatrixColumns),
        row(tile(kMatrixRows, depthOfTile(), input)),
        column(tile(row.getDimSize(1) / together, kMatrixColumns * together,
                    weight)),
        sum(tile(kMatrixRows, kMatrixColumns, dest)),
        stack(&op->getParentOfType<FunctionOpInterface>()
                   .getFunctionBody()
                   .front()) {}

  void emit() {
    int64_t inputs = row.getDimSize(1);
    int64_t rest = depth % inputs, whole = depth - rest;
    // While no tile holds anything: a call among this would spill them all.
    std::pair<Value, Value> filled;
    if (rest != 0)
      filled = fillUp(whole, rest);
    KernelBuilder::Values sums;
    forEachTile([&](ValueRange place) -> void {
      sums.push_back(
          adds ? Value(amx::TileLoadOp::create(k.b, k.loc, sum, dest, place))
               : Value(amx::TileZeroOp::create(k.b, k.loc, sum)));
    });
    sums = k.forLoop(k.index(0), k.index(whole / together), inputs / together,
                     sums, [&](KernelBuilder &k, Value at, ValueRange carried) {
                       return multiply(k, carried, input, weight, at);
                     });
    if (rest != 0)
      sums = multiply(k, sums, filled.first, filled.second, k.index(0));
    const Value *next = sums.begin();
    forEachTile([&](ValueRange place) {
      amx::TileStoreOp::create(k.b, k.loc, dest, place, *next++);
    });
  }

private:
  /// The tiles of the destination, row by row.
  void forEachTile(function_ref<void(ValueRange place)> body) {
    for (int64_t i = 0; i < high; ++i)
      for (int64_t j = 0; j < wide; ++j)
        body({k.index(i * kMatrixRows), k.index(j * kMatrixColumns)});
  }

  static int64_t sizeOf(Value buffer, unsigned dim) {
    return cast<MemRefType>(buffer.getType()).getDimSize(dim);
  }
  static amx::TileType tile(int64_t rows, int64_t columns, Value like) {
    return amx::TileType::get(
        {rows, columns}, cast<MemRefType>(like.getType()).getElementType());
  }
  /// Bytes fill a register's rows, or half of them.
  int64_t depthOfTile() const {
    return bytes && depth % kMatrixByteDepth == 0 ? kMatrixByteDepth
                                                  : kMatrixDepth;
  }

  /// The sums with the inputs added that start at pair or quad `at`.
  KernelBuilder::Values multiply(KernelBuilder &k, ValueRange sums, Value rows,
                                 Value panel, Value at) const {
    KernelBuilder::Values columns, next;
    for (int64_t j = 0; j < wide; ++j)
      columns.push_back(amx::TileLoadOp::create(
          k.b, k.loc, column, panel,
          ValueRange{k.index(0), at, k.index(j * together * kMatrixColumns)}));
    Value first = k.mul(at, together);
    for (int64_t i = 0; i < high; ++i) {
      Value own = amx::TileLoadOp::create(
          k.b, k.loc, row, rows, ValueRange{k.index(i * kMatrixRows), first});
      for (int64_t j = 0; j < wide; ++j)
        next.push_back(add(k, own, columns[j], sums[i * wide + j]));
    }
    return next;
  }

  /// Inputs are signed bytes, and weights unsigned ones.
  Value add(KernelBuilder &k, Value rows, Value columns, Value sums) const {
    if (bytes)
      return amx::TileMulIOp::create(k.b, k.loc, sum, rows, columns, sums,
                                     /*isZextLhs=*/false, /*isZextRhs=*/true);
    return amx::TileMulFOp::create(k.b, k.loc, sum, rows, columns, sums);
  }

  /// The last `rest` inputs of the rows and of the panel, with zeros behind.
  std::pair<Value, Value> fillUp(int64_t whole, int64_t rest) {
    Type element = row.getElementType();
    auto scratch = [&](ArrayRef<int64_t> shape) -> Value {
      OpBuilder::InsertionGuard guard(k.b);
      k.b.setInsertionPointToStart(stack);
      return k.scratch(shape, element, /*buffer=*/true);
    };
    auto zeros = [&](KernelBuilder &k, int64_t number) -> Value {
      auto type = VectorType::get({number}, element);
      return arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(type));
    };
    auto copy = [&](KernelBuilder &k, int64_t number, Value from,
                    ValueRange source, Value to, ValueRange place) {
      Value values = vector::LoadOp::create(
          k.b, k.loc, VectorType::get({number}, element), from, source);
      vector::StoreOp::create(k.b, k.loc, values, to, place);
    };
    Value zero = k.index(0);
    Value rows = scratch({high * kMatrixRows, kMatrixDepth});
    k.forLoop(zero, k.index(high * kMatrixRows), 1, {},
              [&](KernelBuilder &k, Value row, ValueRange) {
                copy(k, rest, input, {row, k.index(whole)}, rows, {row, zero});
                vector::StoreOp::create(k.b, k.loc,
                                        zeros(k, kMatrixDepth - rest), rows,
                                        ValueRange{row, k.index(rest)});
                return KernelBuilder::Values{};
              });
    Value panel = scratch({1, kMatrixDepth / 2, 2 * lanes});
    k.forLoop(zero, k.index(rest / 2), 1, {},
              [&](KernelBuilder &k, Value pair, ValueRange) {
                copy(k, 2 * lanes, weight,
                     {zero, k.add(pair, k.index(whole / 2)), zero}, panel,
                     {zero, pair, zero});
                return KernelBuilder::Values{};
              });
    k.forLoop(k.index(rest / 2), k.index(kMatrixDepth / 2), 1, {},
              [&](KernelBuilder &k, Value pair, ValueRange) {
                vector::StoreOp::create(k.b, k.loc, zeros(k, 2 * lanes), panel,
                                        ValueRange{zero, pair, zero});
                return KernelBuilder::Values{};
              });
    return {rows, panel};
  }

  KernelBuilder k;
  Value input, weight, dest;
  bool adds; ///< to what is in the destination
  int64_t depth;
  int64_t high;     ///< tiles of rows
  bool bytes;       ///< or bf16
  int64_t together; ///< inputs that lie side by side in the panel
  int64_t lanes;    ///< outputs of the panel
  int64_t wide;     ///< tiles of them
  amx::TileType row, column, sum;
  Block *stack; ///< where the scratch of this function is
};

struct ConvertAttuneToAMX final
    : impl::ConvertAttuneToAMXBase<ConvertAttuneToAMX> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<LinearIntoOp> products;
    getOperation().walk([&](LinearIntoOp op) { products.push_back(op); });
    for (LinearIntoOp op : products) {
      if (const char *problem = problemOf(op)) {
        op.emitOpError(problem);
        return signalPassFailure();
      }
      OpBuilder b(op);
      TileLoops(b, op).emit();
      op.erase();
      ++numProducts;
    }
  }
};
} // namespace
} // namespace attune
