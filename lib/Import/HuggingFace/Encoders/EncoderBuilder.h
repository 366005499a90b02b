//===- EncoderBuilder.h - Streams of an encoder and its heads ---*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_IMPORT_HUGGINGFACE_ENCODERS_ENCODERBUILDER_H
#define ATTUNE_LIB_IMPORT_HUGGINGFACE_ENCODERS_ENCODERBUILDER_H

#include "../Architectures.h"
#include "attune/Import/HuggingFace/StreamBuilder.h"

namespace attune::hf {

/// Builds a model whose heads branch off one encoder.
class EncoderBuilder {
public:
  EncoderBuilder(ImportContext &context, std::string name);

  /// Whether the class's name ends with `kind`: "ForMaskedLM".
  bool is(std::string_view kind) const;

  void idsInput(const std::string &name, const std::string &batch = "batch",
                const std::string &fallback = "");
  /// Images [batch, channels, height, width]; `key` names the size.
  void imageInput(int64_t channels, int64_t height, int64_t width,
                  const std::string &batch, const SourceLocation &location);
  /// Ends a stream that reads `input`.
  void finish(const std::string &name, const std::string &input,
              StreamBuilder &&stream);
  void output(const std::string &name, const std::string &layer);

  /// A linear layer called `name`, with a bias.
  static spec::Linear &
  dense(StreamBuilder &stream, const std::string &name, int64_t out,
        spec::Activation activation = spec::Activation::Identity);
  static void pool(StreamBuilder &stream, const std::string &name,
                   int64_t index = 0);

  /// Heads on the stream "encoder" of this width. The classifier reads the
  /// stream `from`.
  void classifier(const std::string &from, const std::string &name,
                  int64_t width, const char *output = "logits");
  /// Scores of each token for being the first and the last of the answer.
  void questionAnswering(int64_t width, const std::string &name = "qa_outputs");
  /// tanh(W first + b) as the stream "pooler" with the output pooler_output.
  void pooler(const std::string &name, int64_t width, bool isOutput);

  /// The finished model. Tensors of old checkpoints are called
  /// LayerNorm.gamma and LayerNorm.beta.
  std::optional<spec::Model> take();

  spec::Model model;
  Config &config;

private:
  ImportContext &context;
};

/// Keys of an encoder's block under the names that most of them use.
struct EncoderSizes {
  int64_t width, heads, layers, inner;
  double eps;
  spec::Activation activation;
};
EncoderSizes readEncoderSizes(Config &config, const EncoderSizes &defaults,
                              const char *activation);
/// A block of self-attention that sees every token, with biases.
spec::Block encoderBlock(const EncoderSizes &sizes, spec::Placement placement);

} // namespace attune::hf

#endif // ATTUNE_LIB_IMPORT_HUGGINGFACE_ENCODERS_ENCODERBUILDER_H
