//===- EmbeddingTask.h - Vectors for a request ------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_SERVE_EMBEDDINGTASK_H
#define ATTUNE_LIB_RUNTIME_SERVE_EMBEDDINGTASK_H

#include "../Generation/Embedder.h"
#include "Exchange.h"
#include "Scheduler.h"

#include <string>
#include <vector>

namespace attune::runtime {

/// Embeds a text at a time, so that tokens come between.
class EmbeddingTask : public ModelTask {
public:
  struct Settings {
    Pooling pooling = Pooling::Mean;
    bool normalizes = false;
    bool isBase64 = false; ///< of 32-bit floats, little endian
    std::string name;      ///< the model's, or the adapter's
    int64_t adapter = 0;   ///< its number; 0: none
  };
  EmbeddingTask(ExchangePtr exchange, Outbox &outbox, Embedder &embedder,
                Settings settings, std::vector<std::vector<int64_t>> inputs)
      : exchange(std::move(exchange)), outbox(outbox), embedder(embedder),
        settings(std::move(settings)), inputs(std::move(inputs)) {}

  bool runPiece() override;

private:
  void append(const std::vector<double> &vector);

  ExchangePtr exchange;
  Outbox &outbox;
  Embedder &embedder;
  Settings settings;
  std::vector<std::vector<int64_t>> inputs;
  size_t numDone = 0;
  std::string data; ///< JSON of the vectors so far
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_SERVE_EMBEDDINGTASK_H
