//===- StreamBuilder.cpp - Layers and tensor names of importers -----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Import/HuggingFace/StreamBuilder.h"

#include <map>
#include <set>

namespace attune::hf {

using namespace spec;

/// The roles that a row of a table stands for, in the order of the tensor.
static std::vector<std::string> rolesOf(const std::string &role) {
  static const std::map<std::string, std::vector<std::string>> sets = {
      {"qkv", {"q", "k", "v"}},
      {"kv", {"k", "v"}},
      {"gate_up", {"gate", "up"}},
  };
  size_t dot = role.rfind('.');
  std::string before = dot == std::string::npos ? "" : role.substr(0, dot + 1);
  auto set = sets.find(role.substr(before.size()));
  if (set == sets.end())
    return {role};
  std::vector<std::string> roles;
  for (const std::string &part : set->second)
    roles.push_back(before + part);
  return roles;
}

/// Key/value heads of the attention that `role` belongs to.
static int64_t groupsOf(const Layer &layer, const std::string &role) {
  const auto *block = std::get_if<Block>(&layer.op);
  const auto *alone = std::get_if<Attention>(&layer.op);
  if (block && role.rfind("cross.", 0) == 0 && block->cross)
    return block->cross->kvHeads;
  if (block && block->attention)
    return block->attention->kvHeads;
  return alone ? alone->kvHeads : 1;
}

void nameTensors(Layer &layer, const std::string &prefix,
                 const TensorNames &tensors) {
  std::map<std::string, int64_t> rowsOf;
  for (const WeightRole &role : weightRoles(layer))
    rowsOf[role.role] = role.rows;

  for (const TensorName &row : tensors) {
    std::vector<std::string> roles = rolesOf(row.role);
    std::string tensor = prefix + row.tensor;
    bool transposed = row.layout == Layout::Transposed ||
                      row.layout == Layout::TransposedBlocks;
    for (std::string end : {"", ".weight", ".bias"}) {
      // A bias has no columns, so nothing in it is transposed.
      bool turned = transposed && end != ".bias";
      if (!rowsOf.count(roles.front() + end))
        continue;
      if (row.layout == Layout::Whole || row.layout == Layout::Transposed) {
        layer.weights[roles.front() + end] = {{tensor + end, turned, 0, -1}};
        continue;
      }
      int64_t groups =
          row.layout == Layout::Groups ? groupsOf(layer, roles.front()) : 1;
      int64_t stride = 0; // rows of one group
      for (const std::string &role : roles)
        stride += rowsOf[role + end] / groups;
      int64_t offset = 0;
      for (const std::string &role : roles) {
        int64_t rows = rowsOf[role + end] / groups;
        WeightSource source = {tensor + end, turned, offset, offset + rows};
        if (groups > 1) {
          source.stride = stride;
          source.count = groups;
        }
        layer.weights[role + end] = {source};
        offset += rows;
      }
    }
  }
}

Layer &StreamBuilder::add(const std::string &name, const char *key,
                          decltype(Layer::op) op, int64_t newWidth) {
  Layer &layer = stream.layers.emplace_back();
  layer.name = prefix + name;
  layer.op = std::move(op);
  layer.inputWidth = width;
  if (newWidth >= 0)
    width = newWidth;
  layer.width = width;
  layer.location = config.locate(key);
  return layer;
}

void StreamBuilder::embedding(const std::string &name, int64_t vocab,
                              int64_t channels, double scale, const char *key) {
  Embedding table;
  table.vocab = vocab;
  table.width = channels;
  table.scale = scale;
  add(name, key, table, channels);
}

void StreamBuilder::learnedPositions(const std::string &name, int64_t length,
                                     int64_t offset, const char *key,
                                     bool skipPadding) {
  Positions positions;
  positions.length = length;
  positions.offset = offset;
  positions.skipPadding = skipPadding;
  add(name, key, positions);
}

Layer &StreamBuilder::blocks(const std::string &name, const char *key,
                             int64_t count, Block body,
                             const TensorNames &tensors) {
  if (body.attention)
    body.attention->sourceWidth = attentionWidth(body, innerWidth(body, width));
  Layer &layer = add(name, key, std::move(body));
  layer.repeat = count;
  nameTensors(layer, layer.name + ".", tensors);
  return layer;
}

/// The shortest cycle that the kinds repeat at least twice, or 0.
static size_t findCycle(const std::vector<size_t> &kindOf) {
  for (size_t length = 1; 2 * length <= kindOf.size(); ++length) {
    bool repeats = true;
    for (size_t i = length; repeats && i < kindOf.size(); ++i)
      repeats = kindOf[i] == kindOf[i - length];
    if (repeats)
      return length;
  }
  return kindOf.size() == 1 ? 1 : 0;
}

void StreamBuilder::blocks(const std::string &name, const char *key,
                           const std::vector<Block> &kinds,
                           const std::vector<size_t> &kindOf,
                           const TensorNames &tensors, const WeightMap &weights,
                           int64_t first) {
  auto addRun = [&](size_t at, size_t count) -> Layer & {
    Layer &layer = blocks(name, key, count, kinds[kindOf[at]], tensors);
    layer.first = first + static_cast<int64_t>(at);
    std::set<std::string> roles;
    for (const WeightRole &role : weightRoles(layer))
      roles.insert(role.role);
    for (const auto &[role, sources] : weights) {
      if (!roles.count(role)) // that of another kind
        continue;
      std::vector<WeightSource> &named = layer.weights[role] = sources;
      for (WeightSource &source : named)
        source.tensor.insert(0, layer.name + ".");
    }
    return layer;
  };
  // Blocks of a cycle share one cache, so that all attend or there is but one;
  // and they have the same weights, so that all have experts or none has.
  size_t cycle = findCycle(kindOf);
  for (size_t i = 0; cycle > 1 && i < kindOf.size(); ++i)
    if (!kinds[kindOf[i]].attention ||
        kinds[kindOf[i]].moe.has_value() != kinds[kindOf[0]].moe.has_value())
      cycle = 0;
  if (cycle) {
    Layer &layer = addRun(0, kindOf.size());
    for (size_t i = 0; cycle > 1 && i < cycle; ++i) {
      Block &turn = layer.cycle.emplace_back(kinds[kindOf[i]]);
      turn.attention->sourceWidth =
          attentionWidth(turn, innerWidth(turn, width));
    }
    return;
  }
  for (size_t i = 0; i < kindOf.size();) {
    size_t end = i;
    while (end < kindOf.size() && kindOf[end] == kindOf[i])
      ++end;
    addRun(i, end - i);
    i = end;
  }
}

void StreamBuilder::norm(const std::string &name, const Norm &norm) {
  add(name, "", norm).location = norm.location;
}

Linear &StreamBuilder::head(const std::string &name, int64_t vocab,
                            const std::string &tied) {
  Linear linear;
  linear.out = vocab;
  if (!tied.empty())
    linear.tied = prefix + tied;
  Layer &layer = add(name,
                     config.peek("tie_word_embeddings") ? "tie_word_embeddings"
                                                        : "vocab_size",
                     linear, vocab);
  layer.name = name;
  return std::get<Linear>(layer.op);
}

Stream StreamBuilder::take(std::string name, std::string input) {
  stream.name = std::move(name);
  stream.input = std::move(input);
  stream.location = config.locate();
  return std::move(stream);
}

} // namespace attune::hf
