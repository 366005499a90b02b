//===- AttuneInto.h - Memory of ops with a destination ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_DIALECT_INTO_H
#define ATTUNE_DIALECT_INTO_H

#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"

namespace attune {

/// Reads every operand but destinations, and those too if `reads`; writes the
/// destinations.
void effectsOf(
    mlir::DestinationStyleOpInterface op, bool reads,
    mlir::SmallVectorImpl<mlir::MemoryEffects::EffectInstance> &effects);

/// A result is its destination's buffer.
mlir::bufferization::AliasingValueList
destinationOf(mlir::DestinationStyleOpInterface op, mlir::OpOperand &operand);

/// Makes the same op on buffers.
mlir::LogicalResult
bufferizeInto(mlir::DestinationStyleOpInterface op,
              mlir::RewriterBase &rewriter,
              const mlir::bufferization::BufferizationOptions &options,
              mlir::bufferization::BufferizationState &state);

} // namespace attune

#endif // ATTUNE_DIALECT_INTO_H
