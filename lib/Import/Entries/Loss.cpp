//===- Loss.cpp - The loss of an entry --------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EntryImporter.h"

using namespace mlir;
using namespace attune;

LogicalResult EntryImporter::importCrossEntropy(size_t number) {
  const spec::Layer &layer = stream->spec.layers[number];
  const auto &op = std::get<spec::CrossEntropy>(layer.op);
  const NamedTensor &targets = inputs[op.targets];
  // Nothing looks at the sizes again: they must be the same by name.
  bool fits = targets.value && targets.shape.size() + 1 == state.shape.size();
  for (size_t i = 0; fits && i < targets.shape.size(); ++i)
    fits = targets.shape[i].size == state.shape[i].size &&
           targets.shape[i].symbol == state.shape[i].symbol;
  if (!fits) {
    diags.error(layer.location, "the targets '" + op.targets +
                                    "' may have other sizes than the stream");
    return failure();
  }
  state.value = CrossEntropyOp::create(
      builder, loc(layer.location),
      RankedTensorType::get({}, builder.getF32Type()), state.value,
      targets.value, builder.getI64IntegerAttr(op.ignore));
  state.shape.clear();
  return success();
}
