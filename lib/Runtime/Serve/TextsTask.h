//===- TextsTask.h - What a model computes of texts -------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_SERVE_TEXTSTASK_H
#define ATTUNE_LIB_RUNTIME_SERVE_TEXTSTASK_H

#include "../Generation/Embedder.h"
#include "Exchange.h"
#include "Scheduler.h"

#include "attune/Runtime/Tokenizer.h"

#include <string>
#include <vector>

namespace attune::runtime {

/// Computes the numbers of a text at a time, so that tokens come between: the
/// vectors of texts, or the scores of pairs of them.
class TextsTask : public ModelTask {
public:
  bool runPiece() override;

  struct Settings {
    VectorForm form;
    std::string name;       ///< the model's, or the adapter's
    int64_t adapter = 0;    ///< its number; 0: none
    const char *input = ""; ///< the member of the request that has the texts
  };

protected:
  TextsTask(ExchangePtr exchange, Outbox &outbox, Embedder &embedder,
            Settings settings, std::vector<Encoding> inputs)
      : exchange(std::move(exchange)), outbox(outbox), embedder(embedder),
        settings(std::move(settings)), inputs(std::move(inputs)) {}

  /// Takes the numbers of a text.
  virtual void take(size_t number, const std::vector<double> &numbers) = 0;
  /// The members of the reply, but for "model" and "usage".
  virtual std::string format() = 0;

private:
  ExchangePtr exchange;
  Outbox &outbox;
  Embedder &embedder;
  Settings settings;
  std::vector<Encoding> inputs;
  size_t numDone = 0;
};

/// The vectors of texts, as OpenAI's interface has them.
class EmbeddingTask final : public TextsTask {
public:
  /// `isBase64`: vectors are 32-bit floats, little endian, in base64.
  EmbeddingTask(ExchangePtr exchange, Outbox &outbox, Embedder &embedder,
                Settings settings, std::vector<Encoding> inputs, bool isBase64)
      : TextsTask(std::move(exchange), outbox, embedder, std::move(settings),
                  std::move(inputs)),
        isBase64(isBase64) {}

private:
  void take(size_t number, const std::vector<double> &numbers) override;
  std::string format() override;

  bool isBase64;
  std::string data; ///< JSON of the vectors so far
};

/// How well documents answer a query, the best first: what a model of one score
/// gives of both, through a sigmoid. This is the interface of Jina and Cohere.
class RerankTask final : public TextsTask {
public:
  /// `most`: so many of the best. `documents` come back, if there are any.
  RerankTask(ExchangePtr exchange, Outbox &outbox, Embedder &embedder,
             Settings settings, std::vector<Encoding> inputs, size_t most,
             std::vector<std::string> documents)
      : TextsTask(std::move(exchange), outbox, embedder, std::move(settings),
                  std::move(inputs)),
        most(most), documents(std::move(documents)) {}

private:
  void take(size_t number, const std::vector<double> &numbers) override;
  std::string format() override;

  size_t most;
  std::vector<std::string> documents;
  std::vector<std::pair<double, size_t>> scores; ///< with document numbers
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_SERVE_TEXTSTASK_H
