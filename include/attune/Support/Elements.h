//===- Elements.h - Tensors made element by element -------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_SUPPORT_ELEMENTS_H
#define ATTUNE_SUPPORT_ELEMENTS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace attune {

/// Makes tensors element by element.
struct Elements {
  mlir::OpBuilder &b;
  mlir::Location loc;

  mlir::Value index(int64_t i) {
    return mlir::arith::ConstantIndexOp::create(b, loc, i);
  }
  mlir::Value dim(mlir::Value tensor, int64_t i) {
    return b.createOrFold<mlir::tensor::DimOp>(loc, tensor, index(i));
  }
  mlir::Value add(mlir::Value x, mlir::Value y) {
    return mlir::arith::AddIOp::create(b, loc, x, y);
  }
  mlir::Value sub(mlir::Value x, mlir::Value y) {
    return mlir::arith::SubIOp::create(b, loc, x, y);
  }
  mlir::Value div(mlir::Value x, int64_t y) {
    return mlir::arith::DivUIOp::create(b, loc, x, index(y));
  }
  mlir::Value ceilDiv(mlir::Value x, int64_t y) {
    return div(add(x, index(y - 1)), y);
  }
  mlir::Value both(mlir::Value x, mlir::Value y) {
    return mlir::arith::AndIOp::create(b, loc, x, y);
  }
  mlir::Value either(mlir::Value x, mlir::Value y) {
    return mlir::arith::OrIOp::create(b, loc, x, y);
  }
  mlir::Value less(mlir::Value x, mlir::Value y) {
    return mlir::arith::CmpIOp::create(b, loc, mlir::arith::CmpIPredicate::slt,
                                       x, y);
  }
  mlir::Value atMost(mlir::Value x, mlir::Value y) {
    return mlir::arith::CmpIOp::create(b, loc, mlir::arith::CmpIPredicate::sle,
                                       x, y);
  }
  mlir::Value extract(mlir::Value tensor, mlir::ValueRange at) {
    return mlir::tensor::ExtractOp::create(b, loc, tensor, at);
  }

  /// A tensor of `sizes` whose elements `body` computes from their indices.
  mlir::Value generate(llvm::ArrayRef<mlir::OpFoldResult> sizes,
                       mlir::Type element,
                       llvm::function_ref<mlir::Value(mlir::ValueRange)> body) {
    mlir::Value out = mlir::tensor::EmptyOp::create(b, loc, sizes, element);
    auto rank = static_cast<unsigned>(sizes.size());
    auto op = mlir::linalg::GenericOp::create(
        b, loc, out.getType(), mlir::ValueRange{}, out,
        b.getMultiDimIdentityMap(rank),
        llvm::SmallVector<mlir::utils::IteratorType>(
            rank, mlir::utils::IteratorType::parallel),
        [&](mlir::OpBuilder &inner, mlir::Location at, mlir::ValueRange) {
          mlir::OpBuilder::InsertionGuard guard(b);
          b.setInsertionPointToEnd(inner.getInsertionBlock());
          llvm::SmallVector<mlir::Value> indices;
          for (unsigned i = 0; i < rank; ++i)
            indices.push_back(mlir::linalg::IndexOp::create(b, at, i));
          mlir::linalg::YieldOp::create(b, at, body(indices));
        });
    return op.getResult(0);
  }

  /// The same with another type, which may know more or fewer sizes.
  mlir::Value castTo(mlir::Type type, mlir::Value tensor) {
    if (tensor.getType() == type)
      return tensor;
    return mlir::tensor::CastOp::create(b, loc, type, tensor);
  }

  /// Whether the mask, if any, and the lengths, if any, show a key: to `query`,
  /// if queries have masks of their own.
  mlir::Value shown(mlir::Value mask, mlir::Value lengths, mlir::Value batch,
                    mlir::Value key, mlir::Value query = {}) {
    mlir::Value seen;
    if (mask) {
      auto type = llvm::cast<mlir::RankedTensorType>(mask.getType());
      mlir::Value row = type.getDimSize(0) == 1 ? index(0) : batch;
      mlir::Value line = query && type.getDimSize(2) != 1 ? query : index(0);
      seen = extract(mask, {row, index(0), line, key});
    }
    if (lengths) {
      mlir::Value length = mlir::arith::IndexCastOp::create(
          b, loc, b.getIndexType(), extract(lengths, batch));
      mlir::Value within = less(key, length);
      seen = seen ? both(seen, within) : within;
    }
    return seen;
  }
};

} // namespace attune

#endif // ATTUNE_SUPPORT_ELEMENTS_H
