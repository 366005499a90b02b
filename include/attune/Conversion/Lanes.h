//===- Lanes.h - Numbers of threads and of lanes ---------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_CONVERSION_LANES_H
#define ATTUNE_CONVERSION_LANES_H

#include "attune/Conversion/KernelBuilder.h"

#include <limits>

namespace attune {

inline mlir::Value select(KernelBuilder &k, mlir::Value condition,
                          mlir::Value yes, mlir::Value no) {
  return mlir::arith::SelectOp::create(k.b, k.loc, condition, yes, no);
}
inline mlir::Value compare(KernelBuilder &k, mlir::arith::CmpIPredicate kind,
                           mlir::Value a, mlir::Value b) {
  return mlir::arith::CmpIOp::create(k.b, k.loc, kind, a, b);
}
inline mlir::Value compare(KernelBuilder &k, mlir::arith::CmpFPredicate kind,
                           mlir::Value a, mlir::Value b) {
  return mlir::arith::CmpFOp::create(k.b, k.loc, kind, a, b);
}
inline mlir::Value both(KernelBuilder &k, mlir::Value a, mlir::Value b) {
  return mlir::arith::AndIOp::create(k.b, k.loc, a, b);
}
inline mlir::Value either(KernelBuilder &k, mlir::Value a, mlir::Value b) {
  return mlir::arith::OrIOp::create(k.b, k.loc, a, b);
}
/// An i32; as many of them as `like` has lanes.
inline mlir::Value number(KernelBuilder &k, int64_t value,
                          mlir::Type like = {}) {
  mlir::TypedAttr attr = k.b.getI32IntegerAttr(int32_t(value));
  if (auto lanes = llvm::dyn_cast_or_null<mlir::VectorType>(like))
    attr = mlir::DenseElementsAttr::get(lanes.clone(k.b.getI32Type()), attr);
  return mlir::arith::ConstantOp::create(k.b, k.loc, attr);
}
inline mlir::Value toI32(KernelBuilder &k, mlir::Value index) {
  return mlir::arith::IndexCastOp::create(k.b, k.loc, k.b.getI32Type(), index);
}

/// Integers that order like the numbers: NaN ranks as infinity, and the two
/// zeros are equal.
mlir::Value rankOf(KernelBuilder &k, mlir::Value x);
/// Below the rank of every number: there is no number, or none left.
constexpr int32_t kNoRank = std::numeric_limits<int32_t>::min();

} // namespace attune

#endif // ATTUNE_CONVERSION_LANES_H
