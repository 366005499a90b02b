//===- NormShards.cpp - A norm over what several ranks have ---------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NormShards.h"

#include "Attune/AttuneMeshOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace attune {

void normAcrossRanks(RMSNormOp norm, int64_t columns, int64_t copies) {
  OpBuilder b(norm);
  Location loc = norm.getLoc();
  Value x = norm.getInput(), gamma = norm.getGamma();
  auto type = cast<RankedTensorType>(x.getType());
  int64_t rank = type.getRank();
  Type f32 = b.getF32Type();
  SmallVector<Value> sizes;
  for (int64_t dim = 0; dim < rank - 1; ++dim)
    if (type.isDynamicDim(dim))
      sizes.push_back(tensor::DimOp::create(b, loc, x, dim));
  auto empty = [&](ArrayRef<int64_t> shape) -> Value {
    return tensor::EmptyOp::create(b, loc, shape, f32, sizes);
  };
  auto constant = [&](OpBuilder &b, Location loc, double value) -> Value {
    return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(float(value)));
  };
  auto wide = [&](OpBuilder &b, Location loc, Value value) -> Value {
    return value.getType().isF32()
               ? value
               : arith::ExtFOp::create(b, loc, f32, value).getResult();
  };
  ArrayRef<int64_t> rows = type.getShape().drop_back();
  AffineMap all = b.getMultiDimIdentityMap(unsigned(rank));
  AffineMap row = all.dropResult(rank - 1);
  SmallVector<utils::IteratorType> each(rank, utils::IteratorType::parallel);
  SmallVector<utils::IteratorType> over(each);
  over.back() = utils::IteratorType::reduction;

  Value zeros = linalg::FillOp::create(b, loc, constant(b, loc, 0), empty(rows))
                    .getResult(0);
  Value own =
      linalg::GenericOp::create(
          b, loc, TypeRange(zeros.getType()), x, zeros,
          ArrayRef<AffineMap>{all, row}, over,
          [&](OpBuilder &b, Location loc, ValueRange in) {
            Value value = wide(b, loc, in[0]);
            Value square = arith::MulFOp::create(b, loc, value, value);
            linalg::YieldOp::create(
                b, loc,
                arith::AddFOp::create(b, loc, in[1], square).getResult());
          })
          .getResult(0);
  Value sum = AllReduceOp::create(b, loc, own.getType(), own,
                                  /*experts=*/Value(), empty(rows),
                                  /*below=*/nullptr, /*accumulate=*/false)
                  .getResult();
  AffineMap same = b.getMultiDimIdentityMap(unsigned(rank - 1));
  Value factor =
      linalg::GenericOp::create(
          b, loc, TypeRange(sum.getType()), sum, empty(rows),
          ArrayRef<AffineMap>{same, same}, ArrayRef(each).drop_back(),
          [&](OpBuilder &b, Location loc, ValueRange in) {
            Value share = constant(b, loc, 1.0 / double(columns * copies));
            Value mean = arith::MulFOp::create(b, loc, in[0], share);
            Value eps = constant(b, loc, norm.getEps().convertToDouble());
            Value root = math::SqrtOp::create(
                b, loc, arith::AddFOp::create(b, loc, mean, eps).getResult());
            linalg::YieldOp::create(
                b, loc,
                arith::DivFOp::create(b, loc, constant(b, loc, 1), root)
                    .getResult());
          })
          .getResult(0);
  SmallVector<Value> inputs = {x, factor};
  SmallVector<AffineMap> maps = {all, row};
  if (gamma) {
    inputs.push_back(gamma);
    maps.push_back(AffineMap::get(unsigned(rank), 0,
                                  b.getAffineDimExpr(unsigned(rank - 1))));
  }
  maps.push_back(all);
  auto given = cast<RankedTensorType>(norm.getType()).clone(type.getShape());
  Value dest = tensor::EmptyOp::create(b, loc, given.getShape(),
                                       given.getElementType(), sizes);
  auto scale = [&](OpBuilder &b, Location loc, ValueRange in) {
    Value y = arith::MulFOp::create(b, loc, wide(b, loc, in[0]), in[1]);
    if (gamma) {
      Value by = wide(b, loc, in[2]);
      if (double offset = norm.getOffset().convertToDouble(); offset != 0)
        by = arith::AddFOp::create(b, loc, by, constant(b, loc, offset));
      y = arith::MulFOp::create(b, loc, y, by);
    }
    if (!given.getElementType().isF32())
      y = arith::TruncFOp::create(b, loc, given.getElementType(), y);
    linalg::YieldOp::create(b, loc, y);
  };
  Value result = linalg::GenericOp::create(b, loc, TypeRange(given), inputs,
                                           dest, maps, each, scale)
                     .getResult(0);
  norm.getResult().replaceAllUsesWith(result);
  norm.erase();
}

} // namespace attune
