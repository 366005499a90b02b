//===- ExpandTiles.cpp - Products in AMX tiles on any CPU -----------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "llvm/Config/llvm-config.h"

using namespace mlir;

namespace {
/// Writes amx ops as loops on memory, so that kernels made for AMX run where
/// tests do. A tile is a buffer; sums are updated in place, since nobody else
/// has a tile that is added to.
struct ExpandTiles final : PassWrapper<ExpandTiles, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ExpandTiles)

  StringRef getArgument() const final { return "test-expand-tiles"; }
  StringRef getDescription() const final {
    return "Run products in AMX tiles on any CPU";
  }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<arith::ArithDialect, math::MathDialect,
                    memref::MemRefDialect, scf::SCFDialect>();
  }

  void runOnOperation() final {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa<amx::TileZeroOp, amx::TileLoadOp, amx::TileMulFOp,
              amx::TileMulIOp, amx::TileStoreOp>(op))
        ops.push_back(op);
      auto become = [](Value value) {
        if (auto tile = dyn_cast<amx::TileType>(value.getType()))
          value.setType(bufferOf(tile));
      };
      if (isa<amx::TileMulFOp, amx::TileMulIOp>(op))
        ++numProducts;
      if (auto loop = dyn_cast<scf::ForOp>(op)) {
        llvm::for_each(loop.getResults(), become);
        llvm::for_each(loop.getRegionIterArgs(), become);
      }
    });
    if (numProducts == 0) {
      emitError(getOperation().getLoc(), "there are no products in tiles");
      return signalPassFailure();
    }
    for (Operation *op : ops) {
      Expansion(op).run();
      op->erase();
    }
    // Copies beside the tiles: LLVM rounds each bf16 of a vector that is stored
    // where the CPU has no such vectors.
    SmallVector<vector::StoreOp> stores;
    getOperation().walk([&](vector::StoreOp store) {
      if (store.getVectorType().getElementType().isBF16())
        stores.push_back(store);
    });
    for (vector::StoreOp store : stores)
      copyEach(store);
  }

  static void copyEach(vector::StoreOp store) {
    OpBuilder b(store);
    Location loc = store.getLoc();
    auto load = store.getValueToStore().getDefiningOp<vector::LoadOp>();
    Value zero;
    if (!load)
      zero = arith::ConstantOp::create(
          b, loc, b.getZeroAttr(store.getVectorType().getElementType()));
    for (int64_t i = 0; i < store.getVectorType().getDimSize(0); ++i) {
      auto at = [&](OperandRange indices) {
        SmallVector<Value> place(indices);
        Value shift = arith::ConstantIndexOp::create(b, loc, i);
        place.back() = arith::AddIOp::create(b, loc, place.back(), shift);
        return place;
      };
      Value value = zero ? zero
                         : memref::LoadOp::create(b, loc, load.getBase(),
                                                  at(load.getIndices()))
                               .getResult();
      memref::StoreOp::create(b, loc, value, store.getBase(),
                              at(store.getIndices()));
    }
    store.erase();
    if (load)
      load.erase();
  }

  static MemRefType bufferOf(amx::TileType tile) {
    return MemRefType::get(tile.getShape(), tile.getElementType());
  }

  struct Expansion {
    explicit Expansion(Operation *op) : op(op), b(op), loc(op->getLoc()) {}

    void run() {
      if (auto zero = dyn_cast<amx::TileZeroOp>(op)) {
        Value tile = allocate(zero.getTileType());
        Value none = arith::ConstantOp::create(
            b, loc, b.getZeroAttr(zero.getTileType().getElementType()));
        each(zero.getTileType(), [&](Value i, Value j) {
          memref::StoreOp::create(b, loc, none, tile, ValueRange{i, j});
        });
        zero.replaceAllUsesWith(tile);
      } else if (auto load = dyn_cast<amx::TileLoadOp>(op)) {
        Value tile = allocate(load.getTileType());
        each(load.getTileType(), [&](Value i, Value j) {
          Value value = memref::LoadOp::create(b, loc, load.getBase(),
                                               at(load.getIndices(), i, j));
          memref::StoreOp::create(b, loc, value, tile, ValueRange{i, j});
        });
        load.replaceAllUsesWith(tile);
      } else if (auto store = dyn_cast<amx::TileStoreOp>(op)) {
        auto type =
            cast<MemRefType>(store->getOperand(tileOf(store)).getType());
        each(type, [&](Value i, Value j) {
          Value value = memref::LoadOp::create(
              b, loc, store->getOperand(tileOf(store)), ValueRange{i, j});
          memref::StoreOp::create(b, loc, value, store.getBase(),
                                  at(store.getIndices(), i, j));
        });
      } else if (auto product = dyn_cast<amx::TileMulIOp>(op)) {
        multiplyBytes(product);
      } else {
        multiply();
      }
    }

    /// Each byte of a row by that of the panel, signed or not.
    void multiplyBytes(amx::TileMulIOp product) {
      // Accessors expect tiles, which are memory by now.
      Value lhs = product->getOperand(0), rhs = product->getOperand(1),
            sums = product->getOperand(2);
      int64_t depth = cast<MemRefType>(lhs.getType()).getDimSize(1);
      auto word = [&](Value tile, ValueRange at, bool isUnsigned) -> Value {
        Value byte = memref::LoadOp::create(b, loc, tile, at);
        if (isUnsigned)
          return arith::ExtUIOp::create(b, loc, b.getI32Type(), byte);
        return arith::ExtSIOp::create(b, loc, b.getI32Type(), byte);
      };
      each(cast<MemRefType>(sums.getType()), [&](Value i, Value j) {
        Value before = memref::LoadOp::create(b, loc, sums, ValueRange{i, j});
        Value first = arith::MulIOp::create(b, loc, j, index(4));
        auto loop = scf::ForOp::create(
            b, loc, index(0), index(depth), index(1), before,
            [&](OpBuilder &, Location, Value k, ValueRange carried) {
              OpBuilder::InsertionGuard guard(b);
              b.setInsertionPointToEnd(k.getParentBlock());
              Value quad = arith::DivUIOp::create(b, loc, k, index(4));
              Value rest = arith::RemUIOp::create(b, loc, k, index(4));
              Value place = arith::AddIOp::create(b, loc, first, rest);
              Value x = word(lhs, {i, k}, product.getIsZextLhs());
              Value y = word(rhs, {quad, place}, product.getIsZextRhs());
              Value both = arith::MulIOp::create(b, loc, x, y);
              Value next = arith::AddIOp::create(b, loc, carried[0], both);
              scf::YieldOp::create(b, loc, next);
            });
        memref::StoreOp::create(b, loc, loop.getResult(0), sums,
                                ValueRange{i, j});
      });
      product.replaceAllUsesWith(sums);
    }

    /// The sums of even and of odd products apart, then added.
    void multiply() {
      Value lhs = op->getOperand(0), rhs = op->getOperand(1),
            sums = op->getOperand(2);
      int64_t depth = cast<MemRefType>(lhs.getType()).getDimSize(1);
      each(cast<MemRefType>(sums.getType()), [&](Value i, Value j) {
        Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0));
        auto loop = scf::ForOp::create(
            b, loc, index(0), index(depth / 2), index(1),
            ValueRange{zero, zero},
            [&](OpBuilder &, Location, Value pair, ValueRange carried) {
              SmallVector<Value> next;
              OpBuilder::InsertionGuard guard(b);
              b.setInsertionPointToEnd(pair.getParentBlock());
              Value two = index(2);
              for (int64_t odd : {0, 1}) {
                auto place = [&](Value from) -> Value {
                  Value twice = arith::MulIOp::create(b, loc, from, two);
                  return arith::AddIOp::create(b, loc, twice, index(odd));
                };
                Value x = wide(lhs, {i, place(pair)}),
                      y = wide(rhs, {pair, place(j)});
                next.push_back(math::FmaOp::create(b, loc, x, y, carried[odd]));
              }
              scf::YieldOp::create(b, loc, next);
            });
        Value both =
            arith::AddFOp::create(b, loc, loop.getResult(0), loop.getResult(1));
        Value before = memref::LoadOp::create(b, loc, sums, ValueRange{i, j});
        Value after = arith::AddFOp::create(b, loc, before, both);
        memref::StoreOp::create(b, loc, after, sums, ValueRange{i, j});
      });
      op->getResult(0).replaceAllUsesWith(sums);
    }

    static unsigned tileOf(amx::TileStoreOp store) {
      return 1 + store.getIndices().size();
    }
    Value index(int64_t value) {
      return arith::ConstantIndexOp::create(b, loc, value);
    }
    Value wide(Value buffer, ValueRange place) {
      Value value = memref::LoadOp::create(b, loc, buffer, place);
      return arith::ExtFOp::create(b, loc, b.getF32Type(), value);
    }
    /// Once per function: what is in a loop would grow the stack.
    Value allocate(amx::TileType tile) {
      auto func = op->getParentOfType<func::FuncOp>();
      OpBuilder first = OpBuilder::atBlockBegin(&func.front());
      return memref::AllocaOp::create(first, loc, bufferOf(tile));
    }
    SmallVector<Value> at(ValueRange origin, Value i, Value j) {
      SmallVector<Value> place(origin);
      for (auto [shift, value] : {std::pair(2, i), std::pair(1, j)}) {
        Value &from = place[place.size() - shift];
        from = arith::AddIOp::create(b, loc, from, value);
      }
      return place;
    }
    void each(ShapedType type, llvm::function_ref<void(Value, Value)> body) {
      OpBuilder::InsertionGuard guard(b);
      Value places[2];
      for (int dim : {0, 1}) {
        auto loop = scf::ForOp::create(b, loc, index(0),
                                       index(type.getDimSize(dim)), index(1));
        places[dim] = loop.getInductionVar();
        b.setInsertionPointToStart(loop.getBody());
      }
      body(places[0], places[1]);
    }

    Operation *op;
    OpBuilder b;
    Location loc;
  };

  int64_t numProducts = 0;
};
} // namespace

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "ExpandTiles", LLVM_VERSION_STRING,
          [] { PassRegistration<ExpandTiles>(); }};
}
