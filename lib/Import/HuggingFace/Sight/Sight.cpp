//===- Sight.cpp - Towers of images before text models --------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Parts.h"

#include <iterator>

namespace attune::hf {

using namespace spec;

const Value *SightSource::tower() const {
  const Value *tower = root.find("vision_config");
  bool counts =
      tower && tower->isObject() && !keys.foundIgnored.count("vision_config");
  return counts ? tower : nullptr;
}

std::string
SightSource::findPrefix(std::initializer_list<const char *> prefixes,
                        const char *rest) const {
  for (const char *prefix : prefixes)
    if (checkpoint.find(std::string(prefix) + rest))
      return prefix;
  return "";
}

bool readSight(const SightSource &source, TextPart &part, Model &sight) {
  const Value *type = source.root.find("model_type");
  if (!type || !source.tower() || !source.context.languageModel)
    return true;
  if (type->text == "llava" || type->text == "llava_next" ||
      type->text == "mistral3")
    return readLlava(source, part, sight);
  if (type->text == "gemma3" || type->text == "paligemma")
    return readGemmaVision(source, part, sight);
  if (type->text == "idefics3" || type->text == "smolvlm")
    return readIdefics3(source, part, sight);
  if (type->text == "lfm2_vl" || type->text == "lfm2-vl")
    return readLfm2Vl(source, part, sight);
  if (type->text == "internvl")
    return readInternVL(source, part, sight);
  return !isQwenVision(source.root) || readQwenVision(source, part, sight);
}

/// Puts a layer behind each of the first blocks, which are cut off from the
/// others.
static bool addBehindBlocks(Stream &text, std::vector<Layer> added,
                            Config &config) {
  std::vector<Layer> &layers = text.layers;
  size_t at = 0;
  for (Layer &layer : added) {
    while (at < layers.size() && !std::holds_alternative<Block>(layers[at].op))
      ++at;
    if (at == layers.size() || !layers[at].cycle.empty()) {
      config.error("num_hidden_layers",
                   at == layers.size()
                       ? "there are fewer layers than features of images that "
                         "are added behind them"
                       : "features of images are not added between layers that "
                         "take turns");
      return false;
    }
    if (layers[at].repeat > 1) {
      Layer rest = layers[at];
      layers[at].repeat = 1;
      ++rest.first;
      --rest.repeat;
      layers.insert(layers.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                    std::move(rest));
    }
    ++at;
    layers.insert(layers.begin() + static_cast<std::ptrdiff_t>(at),
                  std::move(layer));
    ++at;
  }
  return true;
}

bool joinSight(const TextPart &part, Model sight, Model &model,
               Config &config) {
  Stream &text = model.streams.back();
  std::vector<Layer> added = std::move(sight.streams.back().layers);
  const auto *table = text.layers.empty()
                          ? nullptr
                          : std::get_if<Embedding>(&text.layers.front().op);
  if (!table || model.streams.size() != 1) {
    config.error("", "the text model does not start with an embedding, behind "
                     "which images could stand");
    return false;
  }
  int64_t id = std::get<Insert>(added.front().op).id;
  if (id >= table->vocab) {
    config.error("vocab_size", "the id of image tokens, " + std::to_string(id) +
                                   ", is beyond the vocabulary");
    return false;
  }
  if (!part.sections.pairs.empty())
    for (Layer &layer : text.layers) {
      auto turn = [&](Block &block) {
        if (block.attention && block.attention->rope)
          block.attention->rope->sections = part.sections;
      };
      if (auto *block = std::get_if<Block>(&layer.op))
        turn(*block);
      for (Block &block : layer.cycle)
        turn(block);
    }
  text.layers.insert(text.layers.begin() + 1, std::move(added.front()));
  added.erase(added.begin());
  if (!addBehindBlocks(text, std::move(added), config))
    return false;
  sight.streams.back() = std::move(text);
  model.streams = std::move(sight.streams);
  model.inputs.insert(model.inputs.end(), sight.inputs.begin(),
                      sight.inputs.end());
  return true;
}

} // namespace attune::hf
