//===- HeadChoice.cpp - Which heads of a model go ---------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HeadChoice.h"

#include "attune/Spec/Repeats.h"

#include "llvm/ADT/StringRef.h"

using namespace llvm;
using namespace attune;
using namespace attune::driver;

static std::string numbered(std::string text, int64_t number) {
  for (size_t at = 0; (at = text.find("{i}", at)) != std::string::npos;)
    text.replace(at, 3, std::to_string(number));
  return text;
}

/// Calls `visit` with each attention of a layer and the prefix of its roles.
template <typename Layer, typename Visit>
static void forEach(Layer &layer, Visit visit) {
  auto visitBlock = [&](auto &block) {
    // Their heads' rows stand in further matrices.
    if (block.joint || block.sharedOut)
      return;
    if (block.attention)
      visit(*block.attention, "attention");
    if (block.cross)
      visit(*block.cross, "cross");
  };
  if (auto *block = std::get_if<spec::Block>(&layer.op))
    visitBlock(*block);
  else if (auto *attention = std::get_if<spec::Attention>(&layer.op))
    visit(*attention, "");
}

static AttentionPlace placeOf(const spec::Layer &layer, int64_t repeat,
                              const spec::Attention &attention,
                              StringRef kind) {
  AttentionPlace place;
  int64_t number = layer.first + repeat;
  place.name = numbered(layer.name, number) + "." +
               (kind.empty() ? "attention" : kind.str());
  std::string role = (kind + (kind.empty() ? "o.weight" : ".o.weight")).str();
  std::vector<spec::WeightSource> sources = spec::resolveWeight(layer, role);
  if (!sources.empty())
    place.output = numbered(sources.front().tensor, number);
  place.attention = &attention;
  return place;
}

std::vector<AttentionPlace> driver::listAttentions(const spec::Model &model) {
  std::vector<AttentionPlace> places;
  for (const spec::Stream &stream : model.streams)
    for (const spec::Layer &layer : stream.layers)
      for (int64_t repeat = 0; repeat < layer.repeat; ++repeat)
        forEach(layer, [&](const spec::Attention &attention, StringRef kind) {
          if (attention.projections)
            places.push_back(placeOf(layer, repeat, attention, kind));
        });
  return places;
}

std::vector<std::string> driver::endingsOf(const std::string &name) {
  std::vector<std::string> endings = {name};
  for (size_t at = 0; (at = name.find('.', at)) != std::string::npos;)
    endings.push_back(name.substr(++at));
  return endings;
}

/// A pattern that only `name` matches.
static std::string escape(StringRef name) {
  std::string pattern;
  for (char c : name) {
    if (StringRef("*?[]{}\\!^").contains(c))
      pattern += '\\';
    pattern += c;
  }
  return pattern;
}

namespace {
/// The heads that one repeat of a layer keeps: in its attention, then in its
/// cross attention.
struct Repeat {
  std::vector<KeptHeads> kept;
  bool loses = false;

  /// How many heads are kept: repeats that differ in this are stored apart.
  std::string counts() const {
    std::string text;
    for (const KeptHeads &heads : kept)
      text += std::to_string(heads.queries.size()) + "/" +
              std::to_string(heads.keys.size()) + " ";
    return text;
  }
};
} // namespace

/// The layer as it is counted.
static void shrink(spec::Layer &layer, const Repeat &repeat) {
  auto shrinkOp = [&](auto &&visitOf) {
    size_t i = 0;
    visitOf([&](spec::Attention &attention, StringRef) {
      if (!attention.projections)
        return;
      const KeptHeads &kept = repeat.kept[i++];
      attention.heads = int64_t(kept.queries.size());
      attention.kvHeads = int64_t(kept.keys.size());
    });
  };
  shrinkOp([&](auto visit) { forEach(layer, visit); });
  for (spec::Block &block : layer.cycle) {
    spec::Layer turn;
    turn.op = block;
    shrinkOp([&](auto visit) { forEach(turn, visit); });
    block = std::get<spec::Block>(turn.op);
  }
}

namespace {
class Pruner {
public:
  Pruner(const std::function<HeadRules::Heads(const AttentionPlace &)> &choose,
         PrunedHeads &result, std::string &problem)
      : choose(choose), result(result), problem(problem) {}

  bool prune(spec::Stream &stream, spec::Stream &counted);

private:
  bool plan(const spec::Layer &layer, int64_t number, Repeat &repeat);

  const std::function<HeadRules::Heads(const AttentionPlace &)> &choose;
  PrunedHeads &result;
  std::string &problem;
  std::map<std::string, HeadRules::Heads> goneOf; ///< by the output's tensor
};
} // namespace

bool Pruner::plan(const spec::Layer &layer, int64_t number, Repeat &repeat) {
  bool good = true;
  forEach(layer, [&](const spec::Attention &attention, StringRef kind) {
    if (!attention.projections || !good)
      return;
    AttentionPlace place = placeOf(layer, number, attention, kind);
    HeadRules::Heads gone = choose(place);
    std::string why;
    if (!gone.empty() && attention.latent)
      why = "its heads share compressed rows (latent attention), which are not "
            "pruned yet";
    else if (!gone.empty() && attention.linear && attention.linear->fading)
      why = "its heads' results are normed together";
    else if (!gone.empty() && (attention.disentangled || attention.relative))
      why = "its heads have scores of positions, which are not pruned yet";
    std::optional<KeptHeads> kept;
    if (why.empty())
      kept = keepHeads(attention.heads, attention.kvHeads, gone, why);
    auto [known, fresh] = goneOf.insert({place.output, gone});
    if (kept && !fresh && known->second != gone)
      why = "it shares '" + place.output +
            "' with another layer, which would lose other heads";
    if (!why.empty()) {
      problem = "heads of '" + place.name + "' cannot be pruned: " + why;
      good = false;
      return;
    }
    result.before += attention.heads;
    result.after += int64_t(kept->queries.size());
    repeat.loses |= !gone.empty();
    repeat.kept.push_back(std::move(*kept));
    if (gone.empty())
      return;
    std::string heads;
    for (int64_t head : gone)
      heads += (heads.empty() ? ":" : ",") + std::to_string(head);
    result.words.push_back(escape(place.name) + heads);
    if (fresh)
      result.rules.push_back(escape(place.output) + heads);
  });
  return good;
}

bool Pruner::prune(spec::Stream &stream, spec::Stream &counted) {
  std::vector<spec::Layer> layers;
  for (const spec::Layer &layer : stream.layers) {
    std::vector<Repeat> repeats(size_t(layer.repeat));
    for (int64_t i = 0; i < layer.repeat; ++i)
      if (!plan(layer, i, repeats[size_t(i)]))
        return false;
    for (int64_t begin = 0, end = 0; begin < layer.repeat; begin = end) {
      while (end < layer.repeat &&
             repeats[size_t(end)].counts() == repeats[size_t(begin)].counts())
        ++end;
      layers.push_back(begin == 0 && end == layer.repeat
                           ? layer
                           : spec::takeRepeats(layer, begin, end));
      layers.back().apart += repeats[size_t(begin)].counts();
      counted.layers.push_back(layers.back());
      bool byLayer = false;
      forEach(layer, [&](const spec::Attention &attention, StringRef) {
        byLayer |= attention.scaleByLayer;
      });
      if (byLayer && end - begin < layer.repeat) {
        problem = "heads of '" + layer.name +
                  "' cannot be pruned: scores are scaled by the layer's "
                  "number, so that all layers have to keep equally many";
        return false;
      }
      if (llvm::any_of(repeats, [](const Repeat &r) { return r.loses; }))
        shrink(counted.layers.back(), repeats[size_t(begin)]);
    }
  }
  stream.layers = std::move(layers);
  return true;
}

std::optional<PrunedHeads> driver::pruneHeads(
    spec::Model &model,
    const std::function<HeadRules::Heads(const AttentionPlace &)> &choose,
    std::string &problem) {
  PrunedHeads result;
  Pruner pruner(choose, result, problem);
  std::vector<spec::Stream> counted;
  for (spec::Stream &stream : model.streams) {
    spec::Stream &copy = counted.emplace_back(stream);
    copy.layers.clear();
    if (!pruner.prune(stream, copy))
      return std::nullopt;
  }
  result.counted = model;
  result.counted.streams = std::move(counted);
  return result;
}
