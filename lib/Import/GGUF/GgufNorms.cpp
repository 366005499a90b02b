//===- GgufNorms.cpp - What a GGUF file has otherwise -----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a description made by an importer of Hugging Face's classes has
// otherwise for a file: the order of turned channels, and norms. A file has one
// epsilon for all norms of a kind, where some classes fix those of a few.
//
//===----------------------------------------------------------------------===//

#include "GgufSight.h"
#include "GgufWriter.h"

#include <cstdlib>

namespace attune::gguf {

using namespace spec;

namespace {
class Adapter {
public:
  Adapter(const File &file, const Family &family) : family(family) {
    const std::string prefix = std::string(family.name) + ".attention.";
    auto read = [&](const char *key) {
      std::optional<double> found = file.real(prefix + key);
      // The shortest number that is the same in f32.
      return found ? std::strtod(spell(*found).c_str(), nullptr) : found;
    };
    ofRms = read("layer_norm_rms_epsilon");
    ofLayer = read("layer_norm_epsilon");
    if (!ofRms)
      ofRms = ofLayer;
    if (!ofLayer)
      ofLayer = ofRms;
  }
  void adapt(Layer &layer) const;

private:
  void adapt(Norm &norm) const;
  void adapt(std::optional<Norm> &norm) const {
    if (norm)
      adapt(*norm);
  }
  void adapt(Block &block) const;

  const Family &family;
  std::optional<double> ofRms, ofLayer;
};
} // namespace

void Adapter::adapt(Norm &norm) const {
  // Gains are stored whole, not without their 1.
  norm.offset = 0;
  std::optional<double> eps = norm.kind == NormKind::RMSNorm ? ofRms : ofLayer;
  if (eps)
    norm.eps = *eps;
}

void Adapter::adapt(Block &block) const {
  adapt(block.norm);
  if (Attention *attention = block.attention ? &*block.attention : nullptr) {
    if (attention->rope)
      attention->rope->interleaved = family.interleaved;
    adapt(attention->qkNorm);
    adapt(attention->valueNorm);
    if (attention->latent)
      adapt(attention->latent->norm);
  }
  if (block.mamba) {
    adapt(block.mamba->norm);
    adapt(block.mamba->outNorm);
    // Each group of heads has a norm of its own.
    block.mamba->outNormParts = block.mamba->groups;
  }
  if (block.deltaRule) {
    adapt(block.deltaRule->norm);
    // Heads of values go round those of keys, where classes have those of one
    // key side by side. So each has a copy of its key: see nameByRole().
    if (std::string_view(family.name).substr(0, 6) == "qwen35")
      block.deltaRule->keyHeads = block.deltaRule->heads;
  }
}

void Adapter::adapt(Layer &layer) const {
  if (auto *block = std::get_if<Block>(&layer.op))
    adapt(*block);
  if (auto *norm = std::get_if<Norm>(&layer.op))
    adapt(*norm);
  for (Block &block : layer.cycle)
    adapt(block);
}

void adaptToFile(const File &file, const Family &family, Model &model) {
  Adapter adapter(file, family);
  for (Stream &stream : model.streams) {
    if (sees(model) && &stream != &model.streams.back())
      continue; // adaptToSight()
    for (Layer &layer : stream.layers)
      adapter.adapt(layer);
  }
}

} // namespace attune::gguf
