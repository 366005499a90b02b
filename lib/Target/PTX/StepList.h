//===- StepList.h - A step's list of instructions in a kernel ---*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_TARGET_PTX_STEPLIST_H
#define ATTUNE_LIB_TARGET_PTX_STEPLIST_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <array>

namespace attune {

/// What is made stands at `b`; numbers of the list have 32 bits.
struct StepMaker {
  mlir::OpBuilder &b;
  mlir::Location loc;

  mlir::Value index(int64_t value) {
    return mlir::arith::ConstantIndexOp::create(b, loc, value);
  }
  mlir::Value word(int64_t value) {
    return mlir::LLVM::ConstantOp::create(b, loc, b.getI32Type(), value);
  }
  mlir::Value toIndex(mlir::Value value) {
    return mlir::arith::IndexCastUIOp::create(b, loc, b.getIndexType(), value);
  }
  mlir::Value toWord(mlir::Value value) {
    return mlir::arith::IndexCastUIOp::create(b, loc, b.getI32Type(), value);
  }
  mlir::Value add(mlir::Value lhs, mlir::Value rhs) {
    return mlir::arith::AddIOp::create(b, loc, lhs, rhs);
  }
  mlir::Value mul(mlir::Value lhs, int64_t rhs) {
    return mlir::arith::MulIOp::create(b, loc, lhs, index(rhs));
  }
  mlir::Value div(mlir::Value lhs, int64_t rhs) {
    return mlir::arith::DivUIOp::create(b, loc, lhs, index(rhs));
  }
  mlir::Value rem(mlir::Value lhs, int64_t rhs) {
    return mlir::arith::RemUIOp::create(b, loc, lhs, index(rhs));
  }
  mlir::Value is(mlir::arith::CmpIPredicate how, mlir::Value lhs,
                 mlir::Value rhs) {
    return mlir::arith::CmpIOp::create(b, loc, how, lhs, rhs);
  }
  mlir::Value less(mlir::Value lhs, mlir::Value rhs) {
    return is(mlir::arith::CmpIPredicate::ult, lhs, rhs);
  }
  mlir::Value place(mlir::Value base, mlir::Type type, mlir::Value at) {
    auto pointer = mlir::LLVM::LLVMPointerType::get(b.getContext(), 1);
    mlir::Value number =
        mlir::arith::IndexCastOp::create(b, loc, b.getI64Type(), at);
    return mlir::LLVM::GEPOp::create(
        b, loc, pointer, type, base,
        llvm::ArrayRef<mlir::LLVM::GEPArg>{number});
  }
  /// Reads from the list, which nobody writes meanwhile.
  mlir::Value read(mlir::Value base, mlir::Type type, mlir::Value at,
                   unsigned alignment) {
    return mlir::LLVM::LoadOp::create(
        b, loc, type, place(base, type, at), alignment,
        /*isVolatile=*/false, /*isNonTemporal=*/false,
        /*isInvariant=*/true);
  }
  void when(mlir::Value condition, llvm::function_ref<void()> body) {
    auto guard =
        mlir::scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
    mlir::OpBuilder::InsertionGuard keep(b);
    b.setInsertionPointToStart(guard.thenBlock());
    body();
  }
  mlir::Value both(mlir::Value lhs, mlir::Value rhs) {
    return mlir::arith::AndIOp::create(b, loc, lhs, rhs);
  }
  mlir::Value either(mlir::Value lhs, mlir::Value rhs) {
    return mlir::arith::OrIOp::create(b, loc, lhs, rhs);
  }
  mlir::Value truth(bool value) {
    return mlir::arith::ConstantIntOp::create(b, loc, b.getI1Type(), value);
  }
  mlir::Value no(mlir::Value value) {
    return mlir::arith::XOrIOp::create(b, loc, value, truth(true));
  }
  /// A number of 32 bits in scratch, which becomes a register.
  mlir::Value scratch() {
    return mlir::memref::AllocaOp::create(
        b, loc, mlir::MemRefType::get({}, b.getI32Type()));
  }
  mlir::Value get(mlir::Value place) {
    return mlir::memref::LoadOp::create(b, loc, place, mlir::ValueRange());
  }
  void set(mlir::Value place, mlir::Value value) {
    mlir::memref::StoreOp::create(b, loc, value, place, mlir::ValueRange());
  }
  void set(mlir::Value place, int64_t value) { set(place, word(value)); }
  /// One of some ways, by the case that a number is.
  void choose(
      mlir::Value number, llvm::ArrayRef<int64_t> cases,
      llvm::function_ref<void(size_t)> body,
      llvm::function_ref<void()> otherwise = [] {}) {
    auto choice = mlir::scf::IndexSwitchOp::create(b, loc, mlir::TypeRange(),
                                                   number, cases, cases.size());
    mlir::OpBuilder::InsertionGuard keep(b);
    auto fill = [&](mlir::Region &region, llvm::function_ref<void()> make) {
      b.setInsertionPointToStart(&region.emplaceBlock());
      auto end = mlir::scf::YieldOp::create(b, loc);
      b.setInsertionPoint(end);
      make();
    };
    fill(choice.getDefaultRegion(), otherwise);
    for (auto [i, region] : llvm::enumerate(choice.getCaseRegions()))
      fill(region, [&, i = i] { body(i); });
  }
  void count(mlir::Value from, mlir::Value to, mlir::Value step,
             llvm::function_ref<void(mlir::Value)> body) {
    auto loop = mlir::scf::ForOp::create(b, loc, from, to, step);
    mlir::OpBuilder::InsertionGuard keep(b);
    b.setInsertionPointToStart(loop.getBody());
    body(loop.getInductionVar());
  }
  /// An instruction of PTX that others may not pass.
  mlir::Value assembly(mlir::Type result, llvm::StringRef text,
                       llvm::StringRef constraints, mlir::ValueRange operands) {
    auto made = mlir::LLVM::InlineAsmOp::create(
        b, loc, result ? mlir::TypeRange(result) : mlir::TypeRange(), operands,
        text, constraints, /*has_side_effects=*/true, /*is_align_stack=*/false,
        mlir::LLVM::tailcallkind::TailCallKind::None,
        mlir::LLVM::AsmDialectAttr::get(b.getContext(),
                                        mlir::LLVM::AsmDialect::AD_ATT),
        mlir::ArrayAttr());
    return result ? made.getRes() : mlir::Value();
  }
};

/// What a block knows of the list that it goes through (PersistentKernel.cpp).
struct StepList {
  mlir::Value thread, block, blocks;              ///< this one's, and how many
  mlir::Value list, waits, words, counters, size; ///< parameters

  /// The words of an instruction, as numbers.
  std::array<mlir::Value, 8> read(StepMaker m, mlir::Value number) const {
    mlir::Type four = mlir::VectorType::get({4}, m.b.getI32Type());
    std::array<mlir::Value, 8> fields;
    for (int64_t half = 0; half < 2; ++half) {
      mlir::Value read =
          m.read(list, four, m.add(m.mul(number, 2), m.index(half)), 16);
      for (int64_t i = 0; i < 4; ++i)
        fields[4 * half + i] = m.toIndex(
            mlir::LLVM::ExtractElementOp::create(m.b, m.loc, read, m.word(i)));
    }
    return fields;
  }

  /// The block's first group, counted from the block that has the first one.
  mlir::Value firstGroup(StepMaker m, mlir::Value firstBlock) const {
    mlir::Value behind =
        mlir::arith::SubIOp::create(m.b, m.loc, block, firstBlock);
    mlir::Value before = m.less(block, firstBlock);
    return mlir::arith::SelectOp::create(m.b, m.loc, before,
                                         m.add(behind, blocks), behind);
  }
};

} // namespace attune

#endif // ATTUNE_LIB_TARGET_PTX_STEPLIST_H
