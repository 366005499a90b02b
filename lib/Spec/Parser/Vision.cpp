//===- Vision.cpp - Layers that make and pick tokens ------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayerParser.h"

#include <algorithm>

namespace attune::spec {

static InstanceNorm parseInstanceNorm(const Object &object) {
  return {object.number("eps", 1e-5), object.boolean("together", false)};
}

/// False if `object` has no layer of these kinds whose options are readable.
bool LayerParser::parseVision(const Object &object, Layer &layer) {
  for (const char *kind : {"class_tokens", "slice", "concat", "conv"})
    if (chunks != Chunks::None && object.has(kind))
      object.error(kind, "changes how many tokens a chunk has; sum the chunks "
                         "up first");
  for (const char *kind : {"class_tokens", "slice", "concat", "pool"})
    if (windowed && object.has(kind))
      object.error(kind, "is not for windows; 'whole' undoes them");
  if (parsePlaces(object, layer))
    return true;
  if (auto options = object.object("pool")) {
    layer.op = parsePool(*options);
  } else if (auto options = object.object("class_tokens")) {
    layer.op = parseClassTokens(*options);
  } else if (auto options = object.object("slice")) {
    layer.op = parseSlice(*options);
  } else if (auto options = object.object("concat")) {
    layer.op = parseConcat(*options);
  } else if (auto options = object.object("conv")) {
    layer.op = parseConv(*options);
    if (stream.layers.empty())
      layer.inputWidth = std::get<Conv>(layer.op).channels;
  } else if (auto options = object.object("batch_norm")) {
    needWidth(*options);
    layer.op = BatchNorm{options->number("eps", 1e-5)};
  } else if (auto options = object.object("instance_norm")) {
    needTokens(*options);
    layer.op = parseInstanceNorm(*options);
  } else if (auto options = object.object("add")) {
    layer.op = parseAdd(*options);
  } else if (auto options = object.object("l2_norm")) {
    needWidth(*options);
    layer.op = L2Norm{};
  } else if (auto options = object.object("similarity")) {
    layer.op = parseSimilarity(*options);
  } else if (auto options = object.object("insert")) {
    layer.op = parseInsert(*options);
  } else {
    return false;
  }
  return true;
}

Pool LayerParser::parsePool(const Object &object) {
  Pool pool;
  needTokens(object);
  pool.kind = object.choice("kind", PoolKind::First);
  pool.index = object.integer("index", 0).value_or(0);
  pool.id = object.integer("id", 0).value_or(0);
  if (object.get("kind")) {
    if (pool.kind == PoolKind::Token && !object.has("index"))
      object.missing("index", "which token");
    if (pool.kind != PoolKind::Token && object.has("index"))
      object.error("index", "belongs to the kind token");
    bool named = pool.kind == PoolKind::Id || pool.kind == PoolKind::LastId;
    if (named && !object.has("id"))
      object.missing("id", "the id of the token");
    if (!named && object.has("id"))
      object.error("id", "belongs to the kinds id and last_id");
    if (!named && pool.kind != PoolKind::LargestId && object.has("input"))
      object.error("input", "belongs to the kinds id, last_id and largest_id");
  }
  pool.input = object.string("input");
  const TensorSpec *ids = findInput(object, "input");
  if (ids && (ids->shape.size() != 2 ||
              (ids->dtype != DType::I64 && ids->dtype != DType::I32)))
    object.error("input",
                 "input " + quote(ids->name) + " holds no ids [batch, tokens]");
  pooled = true;
  return pool;
}

ClassTokens LayerParser::parseClassTokens(const Object &object) {
  ClassTokens tokens;
  needTokens(object);
  tokens.count = object.integer("count", 1).value_or(1);
  behindGrid |= grid;
  grid = false;
  parts.clear();
  return tokens;
}

Slice LayerParser::parseSlice(const Object &object) {
  Slice slice;
  needTokens(object);
  slice.first = object.integer("first", 0).value_or(0);
  slice.count = object.integer("count", 0).value_or(0);
  // Without the tokens before them the places are left; how many there are is
  // checked where the operations are made.
  grid = behindGrid && slice.count == 0 && !object.has("part");
  behindGrid = false;
  if (object.has("part")) {
    slice.part = object.integer("part", 0).value_or(0);
    for (const char *key : {"first", "count"})
      if (object.has(key))
        object.error(key, "has no place beside 'part'");
    auto numParts = static_cast<int64_t>(parts.size());
    if (numParts < 2)
      object.error("part", "the tokens before it are not parts that 'concat' "
                           "put one behind the other");
    else if (slice.part >= numParts)
      object.error("part", "there are " + std::to_string(numParts) +
                               " parts, counted from 0");
    else
      grid = parts[static_cast<size_t>(slice.part)];
  }
  parts.clear();
  return slice;
}

Concat LayerParser::parseConcat(const Object &object) {
  Concat concat;
  concat.source = object.string("source");
  const Layer *source = findSource(object);
  if (pooled && width) {
    if (source && (!source->pooled || source->width == 0))
      object.error("source", "gives no vector for each sequence, as the stream "
                             "does");
    else if (source)
      *width += source->width;
    return concat;
  }
  bool known = needTokens(object);
  if (known && source) {
    if (source->pooled || source->width == 0)
      object.error("source", "gives no tokens [batch, tokens, width]");
    else if (source->width != *width)
      object.error("source", "has " + std::to_string(source->width) +
                                 " channels, but the stream " +
                                 std::to_string(*width));
  }
  parts = partsBehind(concat);
  grid = behindGrid = false;
  return concat;
}

std::vector<int64_t> LayerParser::parseSizes(const Object &object,
                                             const char *key, size_t dims,
                                             int64_t fallback) {
  const Value *value = object.get(key);
  if (!value || !value->isArray())
    return std::vector<int64_t>(
        dims, object.integer(key, fallback).value_or(fallback));
  if (dims != value->elements.size())
    object.error(key, "has " + std::to_string(value->elements.size()) +
                          " numbers, expected " + std::to_string(dims));
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < value->elements.size(); ++i)
    sizes.push_back(context.dims
                        .evaluate(value->elements[i],
                                  child(child(object.getPointer(), key), i),
                                  fallback, maxInteger)
                        .value_or(fallback));
  sizes.resize(dims, fallback);
  return sizes;
}

/// Sets the padding of a convolution that keeps the number of places, or
/// multiplies it by a whole factor.
static void keepPlaces(const Object &object, Conv &conv) {
  conv.same = object.boolean("same", false);
  conv.transposed = object.boolean("transposed", false);
  conv.reflect = object.boolean("reflect", false);
  if (conv.reflect && !conv.same)
    object.error("reflect", "belongs to 'same'");
  conv.causal = object.boolean("causal", false);
  if (conv.causal && !conv.same && !conv.transposed)
    object.error("causal", "belongs to 'same' or 'transposed'");
  if (auto norm = object.object("norm")) {
    conv.norm = parseInstanceNorm(*norm);
    if (!conv.transposed)
      object.error("norm", "belongs to 'transposed'; others have an "
                           "'instance_norm' behind them");
  }
  const char *key = conv.same ? "same" : "transposed";
  if (!conv.same && !conv.transposed)
    return;
  if (object.has("padding"))
    object.error("padding", "follows from " + quote(key));
  if (conv.same && conv.transposed)
    object.error("transposed", "is not for 'same'");
  else if (conv.same &&
           (conv.kernel.size() != 1 || conv.kernel[0] < conv.stride[0]))
    object.error("same", "is for one dimension and a kernel of a stride or "
                         "more");
  else if (conv.transposed &&
           (conv.kernel.size() != 1 || conv.kernel[0] % conv.stride[0] != 0))
    object.error("transposed",
                 "is for one dimension and a kernel of whole strides");
  else if (conv.transposed && object.has("groups"))
    object.error("groups", "is not for transposed convolutions");
  for (size_t i = 0; conv.same && i < conv.kernel.size(); ++i) {
    int64_t all = std::max<int64_t>(conv.kernel[i] - conv.stride[i], 0);
    conv.padding[i] = conv.causal ? all : all - all / 2;
  }
}

/// Reads an input [batch, channels, ...] if it starts the stream, or [batch,
/// places] of one channel, else tokens: any of them in one dimension, those of
/// an image in two.
Conv LayerParser::parseConv(const Object &object) {
  Conv conv;
  size_t dims = object.integer("dims", 2).value_or(2);
  conv.kernel = parseSizes(object, "kernel", dims, 1);
  conv.stride = parseSizes(object, "stride", dims, 1);
  conv.padding = parseSizes(object, "padding", dims, 0);
  conv.bias = object.boolean("bias", true);
  conv.activation = object.choice("activation", Activation::Identity);
  Known out = object.integer("out", std::nullopt);
  conv.out = out.value_or(0);
  keepPlaces(object, conv);
  for (size_t i = 0; i < dims; ++i)
    if (conv.padding[i] >= conv.kernel[i])
      object.error("padding", std::to_string(conv.padding[i]) +
                                  " is not less than the kernel's " +
                                  std::to_string(conv.kernel[i]));

  const TensorSpec *input = streamInput();
  bool starts = stream.layers.empty() && input;
  bool last = object.string("layout") == "channels_last";
  bool oneChannel = starts && dims == 1 && input->shape.size() == 2;
  conv.channelsFirst = starts && !last;
  if ((conv.reflect || conv.transposed) && conv.channelsFirst)
    object.error(conv.reflect ? "reflect" : "transposed",
                 "needs channels_last");
  if (oneChannel && last)
    object.error("layout", "input " + quote(input->name) +
                               " has one channel, which is no dimension");
  if (starts) {
    bool isFloat = input->dtype == DType::F32 || input->dtype == DType::F16 ||
                   input->dtype == DType::BF16;
    size_t at = conv.channelsFirst ? 1 : dims + 1;
    if (isFloat && oneChannel) {
      conv.channels = 1;
    } else if (!isFloat || input->shape.size() != dims + 2 ||
               input->shape[at].size < 0) {
      std::string places = dims == 1 ? "frames" : "height, width";
      object.error(
          "input " + quote(input->name) +
          " cannot be convolved; expected float [batch, " +
          (conv.channelsFirst ? "channels, " + places : places + ", channels") +
          "] with a fixed number of channels");
    } else {
      conv.channels = input->shape[at].size;
    }
    size_t first = conv.channelsFirst && !oneChannel ? 2 : 1;
    for (size_t i = 0; i < dims && i + first < input->shape.size(); ++i) {
      int64_t size = input->shape[i + first].size;
      if (size >= 0 && size + 2 * conv.padding[i] < conv.kernel[i]) {
        object.error("kernel", "is " + std::to_string(conv.kernel[i]) +
                                   " long, more than the input's " +
                                   std::to_string(size));
        break; // one message, though both dimensions may be too short
      }
    }
  } else {
    if (object.get("layout") && !last)
      object.error("layout", "tokens are channels_last");
    if (dims == 2 && !grid && needTokens(object))
      object.error("dims", "the tokens before it are not the places of an "
                           "image, which a 2-D convolution needs");
    needTokens(object);
    conv.channels = width.value_or(0);
  }
  Known groups = object.integer("groups", 1);
  conv.groups = groups.value_or(1);
  if (groups && conv.channels % conv.groups != 0)
    object.error("groups", std::to_string(conv.groups) +
                               " does not divide the " +
                               std::to_string(conv.channels) + " channels");
  else if (groups && out && *out % conv.groups != 0)
    object.error("groups", std::to_string(conv.groups) +
                               " does not divide the " + std::to_string(*out) +
                               " channels of the result");
  conv.placesFirst = object.boolean("places_first", false);
  if (conv.placesFirst && (dims != 2 || conv.groups != 1))
    object.error("places_first", "belongs to two dimensions without groups");
  width = out;
  grid = dims == 2;
  behindGrid = false;
  parts.clear();
  return conv;
}

/// The earlier stream or layer called `source`; reports if there is none.
const Layer *LayerParser::findSource(const Object &object) {
  const Value *name = object.get("source");
  if (!name)
    return nullptr;
  if (const Layer *found = findResult(model.streams, name->text))
    return found;
  std::vector<std::string> names;
  for (const Layer &layer : stream.layers) {
    if (layer.name == name->text)
      return &layer;
    names.push_back(layer.name);
  }
  for (const Stream &earlier : model.streams) {
    names.push_back(earlier.name);
    for (const Layer &layer : earlier.layers)
      names.push_back(layer.name);
  }
  std::string near = nearest(name->text, names);
  object.error("source",
               "there is no stream or layer " + quote(name->text) +
                   " before this one" +
                   (near.empty() ? "" : "; did you mean '" + near + "'?"));
  return nullptr;
}

Add LayerParser::parseAdd(const Object &object) {
  Add add;
  add.source = object.string("source");
  add.scale = object.number("scale", 1);
  bool known = needWidth(object);
  const Layer *source = findSource(object);
  if (!known || !source)
    return add;
  if (source->pooled != pooled)
    object.error("source", std::string("gives ") +
                               (source->pooled ? "[batch, width]" : "tokens") +
                               ", but the stream is " +
                               (pooled ? "[batch, width]" : "tokens"));
  else if (source->width && source->width != *width)
    object.error("source", "has " + std::to_string(source->width) +
                               " channels, but the stream " +
                               std::to_string(*width));
  return add;
}

Insert LayerParser::parseInsert(const Object &object) {
  Insert insert;
  insert.source = object.string("source");
  insert.id = object.integer("id", 0).value_or(0);
  if (object.get("grid"))
    insert.grid = parseSizes(object, "grid", 2, 1);
  insert.add = object.boolean("add", false);
  if (insert.add && object.has("grid"))
    object.error("grid", "belongs to the vectors that stand in the places of "
                         "tokens");
  insert.bidirectional = object.choice("bidirectional", Bidirectional::None);
  bool isFirst = std::none_of(
      stream.layers.begin(), stream.layers.end(), [](const Layer &layer) {
        return std::holds_alternative<Insert>(layer.op) ||
               std::holds_alternative<Block>(layer.op) ||
               std::holds_alternative<Attention>(layer.op);
      });
  if (insert.bidirectional != Bidirectional::None && (insert.add || !isFirst))
    object.error("bidirectional", "is for all attention of a stream, and "
                                  "belongs to the first vectors that stand in "
                                  "the places of tokens, before it");
  bool known = needTokens(object);
  const TensorSpec *ids = streamInput();
  if (!ids || ids->shape.size() != 2 || ids->dtype != DType::I64) {
    object.error("is in a stream that does not start from ids, among which the "
                 "tokens could be found");
    return insert;
  }
  const Layer *source = findSource(object);
  if (!known || !source)
    return insert;
  if (source->width && source->width != *width)
    object.error("source", "has " + std::to_string(source->width) +
                               " channels, but the stream " +
                               std::to_string(*width));
  return insert;
}

Similarity LayerParser::parseSimilarity(const Object &object) {
  Similarity similarity;
  similarity.source = object.string("source");
  similarity.temperature = object.boolean("temperature", false);
  similarity.bias = object.boolean("bias", false);
  bool known = needWidth(object);
  const Layer *source = findSource(object);
  if (known && source) {
    if (!pooled || !source->pooled)
      object.error(pooled ? "source" : "",
                   "similarity is between pooled vectors [batch, width]");
    else if (source->width != *width)
      object.error("source", "has " + std::to_string(source->width) +
                                 " channels, but the stream " +
                                 std::to_string(*width));
  }
  width = 0; // [batch, other batch]
  return similarity;
}

} // namespace attune::spec
