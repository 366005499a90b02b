//===- Taps.cpp - Attention weights as outputs ------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Spec/Taps.h"

#include "attune/Spec/Json.h"

#include <algorithm>

namespace attune::spec {

/// Sums of features have none.
static bool hasWeights(const Attention &attention) {
  return !attention.linear && !(attention.latent && attention.latent->index);
}

std::optional<int64_t> columnsOf(const Attention &attention) {
  if (attention.sequenceRank)
    return attention.sequenceRank->rank;
  return std::nullopt;
}

const Attention *getTapped(const Layer &layer, bool cross) {
  const Attention *tapped = nullptr;
  if (const auto *block = std::get_if<Block>(&layer.op)) {
    for (const Block &turn : layer.cycle)
      if (turn.attention && !cross &&
          (!hasWeights(*turn.attention) || columnsOf(*turn.attention)))
        return nullptr;
    // Where one kind of tokens has no queries, its rows would be missing.
    if (block->joint && block->joint->keysOnly)
      return nullptr;
    const std::optional<Attention> &attention =
        cross ? block->cross : block->attention;
    tapped = attention ? &*attention : nullptr;
  } else if (!cross) {
    tapped = std::get_if<Attention>(&layer.op);
  }
  return tapped && hasWeights(*tapped) ? tapped : nullptr;
}

/// A layer's name with the number of its repeat.
static std::string nameOf(const Layer &layer, int64_t repeat) {
  std::string name = layer.name;
  if (size_t at = name.find("{i}"); at != std::string::npos)
    name.replace(at, 3, std::to_string(layer.first + repeat));
  return name;
}

static bool isNumbered(const Layer &layer) {
  return layer.name.find("{i}") != std::string::npos;
}

static const char *const kinds[] = {".attention", ".cross"};

std::vector<std::string> attentionNames(const Model &model) {
  std::vector<std::string> names;
  for (const Stream &stream : model.streams) {
    bool has[2] = {false, false};
    for (const Layer &layer : stream.layers)
      for (bool cross : {false, true}) {
        if (!getTapped(layer, cross))
          continue;
        has[cross] = true;
        if (layer.repeat > 1)
          names.push_back(layer.name + kinds[cross]);
        // Enough of them to recognise one that is misspelt.
        for (int64_t i = 0; isNumbered(layer) && i < layer.repeat && i < 512;
             ++i)
          names.push_back(nameOf(layer, i) + kinds[cross]);
        if (layer.repeat == 1)
          names.push_back(layer.name + kinds[cross]);
      }
    if (has[0] && model.streams.size() > 1)
      names.push_back(stream.name + "_attentions");
    if (has[0])
      names.push_back("attentions");
    if (has[1])
      names.push_back("cross_attentions");
  }
  return names;
}

static std::string rangeOf(const char *what, int64_t first, int64_t count) {
  if (count == 1)
    return std::string(what) + " " + std::to_string(first) + " only";
  return std::string(what) + "s " + std::to_string(first) + " to " +
         std::to_string(first + count - 1);
}

/// The whole number that `text` is, or -1.
static int64_t parseNumber(const std::string &text) {
  if (text.empty() || text.size() > 9 ||
      text.find_first_not_of("0123456789") != std::string::npos)
    return -1;
  return std::stoll(text);
}

/// The layer or layers that `name` means; what is wrong with it otherwise.
static std::string findLayers(const Model &model, const std::string &name,
                              AttentionTap &tap) {
  auto whole = [&](size_t stream, bool cross) {
    tap.stream = stream;
    tap.cross = cross;
    const Stream &of = model.streams[stream];
    for (size_t n = 0; n < of.layers.size(); ++n)
      if (std::holds_alternative<Block>(of.layers[n].op) &&
          getTapped(of.layers[n], cross)) {
        tap.parts.push_back({n, tap.count});
        tap.count += of.layers[n].repeat;
      }
  };
  if (name == "attentions" || name == "cross_attentions") {
    for (size_t s = model.streams.size(); s-- > 0 && tap.parts.empty();)
      whole(s, name == "cross_attentions");
    if (tap.parts.empty())
      return "no block of the model has such attention";
    return "";
  }
  for (size_t s = 0; s < model.streams.size(); ++s)
    if (name == model.streams[s].name + "_attentions") {
      whole(s, false);
      return tap.parts.empty() ? "no block of this stream has attention" : "";
    }

  tap.cross =
      name.size() > 6 && name.compare(name.size() - 6, 6, ".cross") == 0;
  std::string base =
      name.substr(0, name.size() - std::string(kinds[tap.cross]).size());
  std::string outside;
  for (size_t s = 0; s < model.streams.size(); ++s)
    for (size_t n = 0; n < model.streams[s].layers.size(); ++n) {
      const Layer &layer = model.streams[s].layers[n];
      if (!getTapped(layer, tap.cross))
        continue;
      auto found = [&](std::optional<int64_t> repeat) {
        tap.stream = s;
        tap.parts = {{n, 0}};
        tap.repeat = layer.repeat > 1 ? repeat : std::nullopt;
        tap.count = repeat ? 0 : layer.repeat;
      };
      if (base == layer.name) {
        if (layer.repeat > 1)
          found(std::nullopt);
        else
          found(0);
        return "";
      }
      size_t at = layer.name.find("{i}");
      if (at == std::string::npos || base.compare(0, at, layer.name, 0, at))
        continue;
      std::string tail = layer.name.substr(at + 3);
      if (base.size() < at + tail.size() ||
          base.compare(base.size() - tail.size(), tail.size(), tail))
        continue;
      int64_t number =
          parseNumber(base.substr(at, base.size() - tail.size() - at));
      if (number < 0)
        continue;
      if (number >= layer.first && number < layer.first + layer.repeat) {
        found(number - layer.first);
        return "";
      }
      outside = "there is no layer '" + base + "': '" + layer.name + "' has " +
                rangeOf("number", layer.first, layer.repeat);
    }
  if (!outside.empty())
    return outside;
  std::vector<std::string> names = attentionNames(model);
  std::string near = nearest(name, names);
  if (names.empty())
    return "the model has no attention whose weights could be given";
  return "there is no attention '" + name + "'" +
         (near.empty() ? "; expected '" + names.front() + "' or the like"
                       : "; did you mean '" + near + "'?");
}

std::optional<AttentionTap> findAttentionTap(const Model &model,
                                             const std::string &target,
                                             std::string &problem) {
  problem.clear();
  size_t colon = target.find(':');
  std::string name = target.substr(0, colon);
  auto endsWith = [&](const std::string &tail) {
    return name.size() > tail.size() &&
           name.compare(name.size() - tail.size(), tail.size(), tail) == 0;
  };
  if (name != "attentions" && !endsWith("_attentions") && !endsWith(kinds[0]) &&
      !endsWith(kinds[1]) && colon == std::string::npos)
    return std::nullopt;
  AttentionTap tap;
  problem = findLayers(model, name, tap);
  if (!problem.empty())
    return std::nullopt;

  const std::vector<Layer> &layers = model.streams[tap.stream].layers;
  int64_t heads = getTapped(layers[tap.parts[0].layer], tap.cross)->heads;
  auto columns = columnsOf(*getTapped(layers[tap.parts[0].layer], tap.cross));
  for (const AttentionTap::Part &part : tap.parts) {
    const Attention &attention = *getTapped(layers[part.layer], tap.cross);
    if (columnsOf(attention) != columns) {
      problem = "'" + name + "' cannot be one tensor: '" +
                layers[tap.parts[0].layer].name + "' and '" +
                layers[part.layer].name +
                "' attend to different numbers of tokens or sums";
      return std::nullopt;
    }
    if (int64_t other = attention.heads; other != heads) {
      problem = "'" + name + "' cannot be one tensor: '" +
                layers[tap.parts[0].layer].name + "' has " +
                std::to_string(heads) + " heads and '" +
                layers[part.layer].name + "' has " + std::to_string(other);
      return std::nullopt;
    }
  }
  if (tap.parts.size() > 1)
    for (const Layer &layer : layers)
      if (std::holds_alternative<Chunk>(layer.op)) {
        problem = "'" + name +
                  "' cannot be one tensor: attention among chunks "
                  "and within them have other sizes";
        return std::nullopt;
      }
  tap.heads = heads;
  if (colon == std::string::npos)
    return tap;
  std::string option = target.substr(colon + 1);
  if (option.compare(0, 6, "heads=") != 0) {
    problem = "'" + option +
              "' is no choice of heads; expected heads=N or "
              "heads=N-M";
    return std::nullopt;
  }
  std::string range = option.substr(6);
  size_t dash = range.find('-');
  tap.firstHead = parseNumber(range.substr(0, dash));
  int64_t last = dash == std::string::npos
                     ? tap.firstHead
                     : parseNumber(range.substr(dash + 1));
  if (tap.firstHead < 0 || last < tap.firstHead) {
    problem = "'" + option +
              "' is no choice of heads; expected heads=N or "
              "heads=N-M";
    return std::nullopt;
  }
  if (last >= heads) {
    problem = "there is no head " + std::to_string(last) + "; '" + name +
              "' has " + rangeOf("head", 0, heads);
    return std::nullopt;
  }
  tap.heads = last - tap.firstHead + 1;
  return tap;
}

} // namespace attune::spec
