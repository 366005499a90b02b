//===- Embedder.h - One vector for a text -----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_EMBEDDER_H
#define ATTUNE_LIB_RUNTIME_EMBEDDER_H

#include "attune/Runtime/Cli.h"

#include <memory>
#include <vector>

namespace attune::runtime {

/// Runs the forward entry on one text after the other.
class Embedder {
public:
  explicit Embedder(CompiledModel &model) : model(model) {}

  bool open(Error &error);
  int64_t width() const { return hiddenWidth; }
  /// The pooled vector, [width].
  bool embed(const std::vector<int64_t> &ids, Pooling pooling, bool normalize,
             std::vector<double> &vector, Error &error);

private:
  CompiledModel &model;
  std::unique_ptr<Invocation> invocation;
  const ArgInfo *ids = nullptr;
  unsigned hidden = 0; ///< number of the output that is pooled
  int64_t hiddenWidth = 0;
  std::vector<Buffer> buffers;
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_EMBEDDER_H
