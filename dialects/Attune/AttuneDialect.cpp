//===- AttuneDialect.cpp - Registration of the attune dialect ---*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneDialect.h"

#include "AttuneBytecode.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace attune;

#include "Attune/AttuneDialect.cpp.inc"

void AttuneDialect::initialize() {
  registerAttributes();
  registerAttentionOps();
  registerCacheOps();
  registerEmbeddingOps();
  registerFFNOps();
  registerIntoOps();
  registerLinearAttentionOps();
  registerMoEOps();
  registerLossOps();
  registerNormOps();
  registerQuantizationOps();
  registerRecurrentOps();
  registerSamplingOps();
  registerStateSpaceOps();
  registerTileOps();
  registerTokenOps();
  registerViewOps();
  registerWeightOps();
  addBytecode(*this);
}

// D1: attune.fusion says "auto", "off" or "required".
LogicalResult AttuneDialect::verifyOperationAttribute(Operation *op,
                                                      NamedAttribute attr) {
  if (attr.getName() != kFusionAttr)
    return success();
  auto text = dyn_cast<StringAttr>(attr.getValue());
  if (text && llvm::is_contained({"auto", "off", "required"}, text.getValue()))
    return success();
  return op->emitOpError("has ")
         << kFusionAttr << " = " << attr.getValue()
         << ", but it can only be \"auto\", \"off\" or \"required\"";
}
