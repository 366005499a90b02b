//===- CandidateShards.cpp - The likeliest tokens of all ranks ------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CandidateShards.h"

#include "Attune/AttuneMeshOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <limits>

using namespace mlir;

namespace attune {

namespace {
class CandidateBuilder {
public:
  CandidateBuilder(TopKOp choice, const RankLogits &own)
      : b(choice), loc(choice.getLoc()), choice(choice), own(own) {}

  void run();

private:
  using Body = function_ref<Value(Value)>;

  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value columnsOf(Value matrix) {
    return tensor::DimOp::create(b, loc, matrix, 1);
  }
  Value empty(Value columns, Type element) {
    Value rows = tensor::DimOp::create(b, loc, own.logits, 0);
    return tensor::EmptyOp::create(
        b, loc, ArrayRef<OpFoldResult>{rows, getAsOpFoldResult(columns)},
        element);
  }
  /// A matrix of what becomes of each entry.
  Value forEach(Value in, Type element, Body compute) {
    auto type = cast<RankedTensorType>(in.getType()).clone(element);
    SmallVector<Value> sizes;
    for (int64_t dim = 0; dim < 2; ++dim)
      if (type.isDynamicDim(dim))
        sizes.push_back(tensor::DimOp::create(b, loc, in, dim));
    Value dest = tensor::EmptyOp::create(b, loc, type, sizes);
    AffineMap same = b.getMultiDimIdentityMap(2);
    SmallVector<utils::IteratorType> loops(2, utils::IteratorType::parallel);
    return linalg::GenericOp::create(
               b, loc, TypeRange(type), ValueRange(in), ValueRange(dest),
               ArrayRef<AffineMap>{same, same}, loops,
               [&](OpBuilder &inner, Location, ValueRange args) {
                 OpBuilder::InsertionGuard guard(b);
                 b.restoreInsertionPoint(inner.saveInsertionPoint());
                 Value result = compute(args[0]);
                 linalg::YieldOp::create(b, loc, result);
               })
        .getResult(0);
  }
  Value gather(Value lists, Value columns) {
    Value all = arith::MulIOp::create(b, loc, columns, index(own.ranks));
    Value dest = empty(all, b.getF32Type());
    return AllGatherOp::create(b, loc, dest.getType(), lists, columns, dest)
        .getResult();
  }
  TopKOp choose(Value logits, Value count) {
    SmallVector<int64_t> sizes = {
        cast<RankedTensorType>(logits.getType()).getDimSize(0),
        ShapedType::kDynamic};
    return TopKOp::create(b, loc, RankedTensorType::get(sizes, b.getI64Type()),
                          RankedTensorType::get(sizes, b.getF32Type()), logits,
                          count);
  }

  OpBuilder b;
  Location loc;
  TopKOp choice;
  const RankLogits &own;
};
} // namespace

void CandidateBuilder::run() {
  Value count = choice.getCount();
  Value first =
      arith::MulIOp::create(b, loc, RankOp::create(b, loc), index(own.each));
  // The last ranks may have fewer tokens; what is none must not be chosen.
  Value left = arith::SubIOp::create(b, loc, index(own.total), first);
  Value tokens = arith::MinSIOp::create(b, loc, left, index(own.each));
  Value none = arith::ConstantOp::create(
      b, loc, b.getF32FloatAttr(-std::numeric_limits<float>::infinity()));
  Value known = forEach(own.logits, b.getF32Type(), [&](Value logit) -> Value {
    Value inside =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                              linalg::IndexOp::create(b, loc, 1), tokens);
    return arith::SelectOp::create(b, loc, inside, logit, none);
  });
  Value few = arith::MinSIOp::create(b, loc, count, index(own.each));
  TopKOp best = choose(known, few);

  // Ids below 2^24 are exact as floats, which is what ranks exchange.
  Value start = arith::IndexCastOp::create(b, loc, b.getI64Type(), first);
  Value ids = forEach(best.getIds(), b.getF32Type(), [&](Value id) -> Value {
    Value token = arith::AddIOp::create(b, loc, id, start);
    return arith::SIToFPOp::create(b, loc, b.getF32Type(), token);
  });
  Value allIds = gather(ids, few), all = gather(best.getValues(), few);
  // Tokens of equal logits stand in their order: ranks do, and lists do.
  TopKOp chosen = choose(all, count);
  Value tokensChosen =
      forEach(chosen.getIds(), b.getI64Type(), [&](Value place) -> Value {
        Value column =
            arith::IndexCastOp::create(b, loc, b.getIndexType(), place);
        Value id = tensor::ExtractOp::create(
            b, loc, allIds,
            ValueRange{linalg::IndexOp::create(b, loc, 0), column});
        return arith::FPToSIOp::create(b, loc, b.getI64Type(), id);
      });
  choice.getIds().replaceAllUsesWith(tokensChosen);
  choice.getValues().replaceAllUsesWith(chosen.getValues());
  choice.erase();
}

LogicalResult cutCandidates(TopKOp choice, const RankLogits &own) {
  if (own.total >= int64_t(1) << 24)
    return choice.emitError("cannot choose among ")
           << own.total << " tokens of several ranks: they are 2^24 or more";
  CandidateBuilder(choice, own).run();
  return success();
}

} // namespace attune
