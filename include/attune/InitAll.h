//===- InitAll.h - Registers every dialect and pass of Attune ---*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_INITALL_H
#define ATTUNE_INITALL_H

#include "Attune/AttuneDialect.h"
#include "attune/Codegen/Passes.h"
#include "attune/Conversion/Passes.h"
#include "attune/Pipelines/Passes.h"
#include "attune/Pipelines/Pipelines.h"
#include "attune/Target/PTX/Passes.h"
#include "attune/Transforms/Passes.h"

namespace attune {

/// Registers the attune dialect and its external interface models.
inline void registerAllDialects(mlir::DialectRegistry &registry) {
  registry.insert<AttuneDialect>();
}

/// Registers every pass and named pipeline of Attune.
inline void registerAllPasses() {
  registerAttuneTransformsPasses();
  registerAttuneConversionPasses();
  registerAttuneCodegenPasses();
  registerAttunePTXPasses();
  registerAttunePipelinesPasses();
  registerPipelines();
}

} // namespace attune

#endif // ATTUNE_INITALL_H
