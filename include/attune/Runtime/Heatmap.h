//===- Heatmap.h - Outputs as pictures --------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_RUNTIME_HEATMAP_H
#define ATTUNE_RUNTIME_HEATMAP_H

#include "attune/Runtime/CompiledModel.h"
#include "attune/Runtime/Messages.h"

#include <string>

namespace attune::runtime {

/// Writes every output [.., rows, columns] to one HTML file that needs no
/// other: a picture for each of its matrices, one cell a number. A dimension
/// with the name of one of an input of ids is labelled with its tokens.
/// `outputs` are the bytes of the invocation's outputs; `inputs` holds its ids.
bool writeHeatmaps(const std::string &path, const ModelInfo &info,
                   const Invocation &invocation,
                   const std::vector<const void *> &outputs,
                   const SafetensorsFile &inputs, const Messages &messages,
                   Error &error);

} // namespace attune::runtime

#endif // ATTUNE_RUNTIME_HEATMAP_H
