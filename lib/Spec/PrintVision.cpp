//===- PrintVision.cpp - Layers that make and pick tokens -------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PrintVision.h"

namespace attune::spec {

Json print(const Pool &pool) {
  Json json = Json::object();
  json["kind"] = stringify(pool.kind);
  if (pool.kind == PoolKind::Token)
    json["index"] = pool.index;
  if (pool.kind == PoolKind::Id || pool.kind == PoolKind::LastId)
    json["id"] = pool.id;
  if (!pool.input.empty())
    json["input"] = pool.input;
  return json;
}

Json print(const ClassTokens &tokens) {
  Json json = Json::object();
  json["count"] = tokens.count;
  return json;
}

Json print(const Slice &slice) {
  Json json = Json::object();
  if (slice.part >= 0) {
    json["part"] = slice.part;
    return json;
  }
  json["first"] = slice.first;
  if (slice.count != 0)
    json["count"] = slice.count;
  return json;
}

Json print(const Concat &concat) {
  Json json = Json::object();
  json["source"] = concat.source;
  return json;
}

Json print(const InstanceNorm &norm) {
  Json json = {{"eps", norm.eps}};
  flag(json, "together", norm.together);
  return json;
}

Json print(const Conv &conv) {
  Json json = Json::object();
  auto sizes = [&](const char *key, const std::vector<int64_t> &values) {
    if (values.front() == values.back())
      json[key] = values.front();
    else
      json[key] = values;
  };
  json["dims"] = conv.kernel.size();
  json["out"] = conv.out;
  sizes("kernel", conv.kernel);
  sizes("stride", conv.stride);
  flag(json, "same", conv.same);
  flag(json, "reflect", conv.reflect);
  flag(json, "transposed", conv.transposed);
  flag(json, "causal", conv.causal);
  if (conv.norm)
    json["norm"] = print(*conv.norm);
  if (!conv.same && !conv.transposed)
    sizes("padding", conv.padding);
  if (conv.groups != 1)
    json["groups"] = conv.groups;
  flag(json, "places_first", conv.placesFirst);
  json["layout"] = conv.channelsFirst ? "channels_first" : "channels_last";
  if (!conv.bias)
    json["bias"] = false;
  if (conv.activation != Activation::Identity)
    json["activation"] = stringify(conv.activation);
  return json;
}

Json print(const Add &add) {
  Json json = Json::object();
  json["source"] = add.source;
  if (add.scale != 1)
    json["scale"] = add.scale;
  return json;
}

Json print(const Insert &insert) {
  Json json = Json::object();
  json["source"] = insert.source;
  json["id"] = insert.id;
  if (!insert.grid.empty())
    json["grid"] = insert.grid;
  flag(json, "add", insert.add);
  if (insert.bidirectional != Bidirectional::None)
    json["bidirectional"] = stringify(insert.bidirectional);
  return json;
}

Json print(const Merge &merge) {
  Json json = {{"size", merge.size}};
  flag(json, "mean", merge.mean);
  return json;
}

Json print(const Similarity &similarity) {
  Json json = Json::object();
  json["source"] = similarity.source;
  flag(json, "temperature", similarity.temperature);
  flag(json, "bias", similarity.bias);
  return json;
}

} // namespace attune::spec
