//===- StoredForms.h - Forms that a checkpoint's numbers have ---*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checkpoints mix the forms of their numbers: GGUF's Q4_K_M has some layers'
// values and second matrices of the FFN in six bits, the others' in four. A
// stack of weights has one form, the smallest one that holds all of them.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_DRIVER_STOREDFORMS_H
#define ATTUNE_LIB_DRIVER_STOREDFORMS_H

#include "ModelSource.h"

#include "mlir/IR/BuiltinOps.h"

namespace attune::driver {

/// Makes layers of their own of repeats whose tensors have other forms, so that
/// they have stacks of their own. Layers with the same forms share functions
/// (lib/Import/EqualLayers.h), so code grows with the kinds of layers. Layers
/// stay whole that others name, that cannot share functions or are of too many
/// kinds, and all of them where --quantize or --low-rank goes by their names.
void keepFormsApart(ModelSource &source);

/// Notes on weights how the checkpoint has them, for attune-quantize. `flat`:
/// products take scales in one level alone.
void markStored(mlir::ModuleOp module, const ModelSource &source, bool flat);

} // namespace attune::driver

#endif // ATTUNE_LIB_DRIVER_STOREDFORMS_H
