//===- Lanes.h - Scalars that each thread has of its own --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_CONVERSION_ATTUNETOVECTOR_WARPS_LANES_H
#define ATTUNE_LIB_CONVERSION_ATTUNETOVECTOR_WARPS_LANES_H

#include "attune/Conversion/KernelBuilder.h"

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
/// An i32.
inline mlir::Value number(KernelBuilder &k, int64_t value) {
  return mlir::arith::ConstantOp::create(k.b, k.loc,
                                         k.b.getI32IntegerAttr(int32_t(value)));
}
inline mlir::Value toI32(KernelBuilder &k, mlir::Value index) {
  return mlir::arith::IndexCastOp::create(k.b, k.loc, k.b.getI32Type(), index);
}

} // namespace attune

#endif // ATTUNE_LIB_CONVERSION_ATTUNETOVECTOR_WARPS_LANES_H
