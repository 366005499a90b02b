//===- DiffusionBuilder.h - Streams of transformers of noise ----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_IMPORT_HUGGINGFACE_DIFFUSION_DIFFUSIONBUILDER_H
#define ATTUNE_LIB_IMPORT_HUGGINGFACE_DIFFUSION_DIFFUSIONBUILDER_H

#include "../Architectures.h"
#include "attune/Import/HuggingFace/StreamBuilder.h"

namespace attune::hf {

/// Builds a transformer of diffusers that predicts a step of denoising from a
/// latent image, a text, a pooled text and numbers.
class DiffusionBuilder {
public:
  DiffusionBuilder(ImportContext &context, std::string name);

  void input(const std::string &name, std::vector<spec::Dim> shape,
             const char *key);
  /// Ends a stream that reads `input`.
  void finish(const std::string &name, const std::string &input,
              StreamBuilder &&stream);
  /// The stream `name` from the input [batch] of this name: sines of the number
  /// through two linear layers.
  void number(const std::string &name, const std::string &input, double scale);
  /// The stream "condition": the pooled text through two linear layers, and the
  /// streams `added`.
  void condition(int64_t pooled, const std::vector<std::string> &added);
  /// The stream "text" of tokens as wide as the image's.
  void text(int64_t channels);
  /// A block of both kinds of tokens; the text is part `part`.
  spec::Block jointBlock(int64_t part, bool qkNorm) const;
  /// Attention that reads what a norm with a modulation gives.
  spec::Attention attention(bool qkNorm) const;
  spec::Modulation modulation() const;
  spec::Norm norm() const;
  /// Behind the blocks: the norm, modulated, and the projection.
  void end(StreamBuilder &stream, int64_t out);

  spec::Model model;
  Config &config;
  int64_t heads = 0, headDim = 0, width = 0; ///< of the image's tokens

private:
  void twoLayers(StreamBuilder &stream, const std::string &name);
};

/// Tensors of a block of both kinds of tokens.
const TensorNames &jointTensors();
/// The rows of a tensor that has scales before shifts.
void nameScaleFirst(spec::Layer &layer, const std::string &role,
                    const std::string &tensor, int64_t width);

} // namespace attune::hf

#endif // ATTUNE_LIB_IMPORT_HUGGINGFACE_DIFFUSION_DIFFUSIONBUILDER_H
