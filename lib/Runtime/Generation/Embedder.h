//===- Embedder.h - One vector for a text -----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_GENERATION_EMBEDDER_H
#define ATTUNE_LIB_RUNTIME_GENERATION_EMBEDDER_H

#include "attune/Runtime/Cli.h"

#include <memory>
#include <optional>
#include <vector>

namespace attune::runtime {

/// What vectors of texts are.
struct VectorForm {
  Pooling pooling = Pooling::Mean;
  bool normalizes = false; ///< to length 1
  int64_t width = 0;       ///< so many numbers, the first ones; 0: all

  static VectorForm of(const ModelInfo &info) {
    VectorForm form;
    if (info.pooling != Pooling::Auto)
      form.pooling = info.pooling;
    form.normalizes = info.normalizes;
    return form;
  }
};

/// Runs the forward entry on one text after the other. A model that scores
/// texts, with an output logits [texts, labels], gives its scores.
class Embedder {
public:
  explicit Embedder(CompiledModel &model) : model(model) {}

  /// `wantsScores`: of a model that gives both, the scores.
  bool open(Error &error, bool wantsScores = false);
  int64_t width() const { return hiddenWidth; }
  bool isScoring() const { return scores; }
  /// The model has an output sentence_embedding, for which it pools itself.
  bool poolsItself() const { return pooled; }
  /// Computes with this adapter of the model, by its number, and not with the
  /// one that was chosen for the model; 0: with none.
  void setAdapter(int64_t number) { adapterNumber = number; }
  /// A text as the model reads it. One with more tokens than the folder's limit
  /// is cut as by sentence-transformers: its last tokens go, special ones stay.
  /// `whole`: tokens before that.
  bool encode(const Tokenizer &tokenizer, std::string_view text,
              Encoding &encoding, size_t &whole, Error &error) const;
  /// The pooled vector, [width of `form`], or the scores. `typeIds`, of the
  /// same length or null, tells the second of two texts from the first.
  bool embed(const std::vector<int64_t> &ids,
             const std::vector<int64_t> *typeIds, const VectorForm &form,
             std::vector<double> &vector, Error &error);

private:
  CompiledModel &model;
  std::unique_ptr<Invocation> invocation;
  bool bind(const ArgInfo &arg, const std::vector<int64_t> &values,
            Error &error);

  const ArgInfo *ids = nullptr, *types = nullptr, *adapter = nullptr;
  std::optional<int64_t> adapterNumber;
  bool scores = false, pooled = false;
  unsigned hidden = 0; ///< number of the output that is pooled, or the scores
  int64_t hiddenWidth = 0;
  std::vector<Buffer> buffers;
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_GENERATION_EMBEDDER_H
