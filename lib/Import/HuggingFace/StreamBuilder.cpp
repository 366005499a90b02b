//===- StreamBuilder.cpp - Layers and tensor names of importers -----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StreamBuilder.h"

#include <map>

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
        std::vector<WeightSource> &sources = layer.weights[role + end];
        sources.clear();
        for (int64_t g = 0; g < groups; ++g) {
          int64_t begin = g * stride + offset;
          sources.push_back({tensor + end, turned, begin, begin + rows});
        }
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
                                     int64_t offset, const char *key) {
  Positions positions;
  positions.length = length;
  positions.offset = offset;
  add(name, key, positions);
}

Layer &StreamBuilder::blocks(const std::string &name, const char *key,
                             int64_t count, Block body,
                             const TensorNames &tensors) {
  if (body.attention)
    body.attention->sourceWidth = width;
  Layer &layer = add(name, key, std::move(body));
  layer.repeat = count;
  nameTensors(layer, layer.name + ".", tensors);
  return layer;
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

} // namespace attune::hf
