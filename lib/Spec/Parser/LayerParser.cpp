//===- LayerParser.cpp - One entry of "layers" ------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayerParser.h"

#include <cmath>

namespace attune::spec {

void LayerParser::parse(const Object &object, size_t index) {
  unsigned errorsBefore = context.reporter.getNumErrors();
  Layer layer;
  layer.location = object.getLocation();
  layer.inputWidth = width.value_or(0);
  parseCommon(object, index, layer);

  if (object.isBad()) {
    width = std::nullopt; // of no known kind
  } else if (auto options = object.object("embedding")) {
    layer.op = parseEmbedding(*options);
    if (stream.layers.empty())
      embedded = width.value_or(0);
  } else if (auto options = object.object("positions")) {
    layer.op = parsePositions(*options);
  } else if (auto options = object.object("block")) {
    layer.op = parseBlock(*options);
  } else if (object.has("cycle")) {
    parseCycle(object, layer);
  } else if (auto options = object.object("attention")) {
    layer.op = parseAttention(*options, Place::Alone);
  } else if (auto options = object.object("ffn")) {
    needWidth(*options);
    FFN ffn = parseFFN(*options);
    if (ffn.shift)
      options->error("shift", "belongs to the feed-forward layer of a block");
    layer.op = ffn;
  } else if (auto options = object.object("moe")) {
    needWidth(*options);
    layer.op = parseMoE(*options);
  } else if (auto options = object.object("norm")) {
    needWidth(*options);
    layer.op = parseNorm(*options, std::nullopt, NormKind::LayerNorm);
  } else if (auto options = object.object("layer_norm")) {
    needWidth(*options);
    layer.op = parseNorm(*options, NormKind::LayerNorm, NormKind::LayerNorm);
  } else if (auto options = object.object("rms_norm")) {
    needWidth(*options);
    layer.op = parseNorm(*options, NormKind::RMSNorm, NormKind::RMSNorm);
  } else if (auto options = object.object("linear")) {
    layer.op = parseLinear(*options);
  } else if (auto options = object.object("recurrent")) {
    layer.op = parseRecurrent(*options);
  } else if (auto options = object.object("scan")) {
    layer.op = parseScan(*options);
  } else if (auto options = object.object("mamba")) {
    needTokens(*options);
    layer.op = parseMamba(*options);
  } else if (!parseVision(object, layer) && !parseFunction(object, layer) &&
             !parseSignals(object, layer) && !parseCopies(object, layer) &&
             !parseExtension(object, layer)) {
    width = std::nullopt; // its options are no object
  }

  layer.width = width.value_or(0);
  layer.pooled = pooled;
  if (layer.repeat > 1) {
    bool once = std::holds_alternative<Embedding>(layer.op) ||
                std::holds_alternative<Positions>(layer.op) ||
                std::holds_alternative<Pool>(layer.op) ||
                std::holds_alternative<ClassTokens>(layer.op) ||
                std::holds_alternative<Slice>(layer.op) ||
                std::holds_alternative<Concat>(layer.op) ||
                std::holds_alternative<Conv>(layer.op) ||
                std::holds_alternative<InstanceNorm>(layer.op) ||
                std::holds_alternative<Add>(layer.op) ||
                std::holds_alternative<Similarity>(layer.op) ||
                std::holds_alternative<Insert>(layer.op) ||
                std::holds_alternative<Windows>(layer.op) ||
                std::holds_alternative<Whole>(layer.op) ||
                std::holds_alternative<Merge>(layer.op) ||
                std::holds_alternative<Unpatch>(layer.op) ||
                std::holds_alternative<CrossEntropy>(layer.op) ||
                std::holds_alternative<Recurrent>(layer.op) ||
                std::holds_alternative<Scan>(layer.op) ||
                std::holds_alternative<Modulate>(layer.op) ||
                std::holds_alternative<Timestep>(layer.op) ||
                std::holds_alternative<Chunk>(layer.op) ||
                std::holds_alternative<SwapChunks>(layer.op) ||
                std::holds_alternative<OverlapAdd>(layer.op) ||
                std::holds_alternative<LayerInputs>(layer.op);
    const auto *attention = std::get_if<Attention>(&layer.op);
    if (once || (attention && !attention->projections))
      object.error("repeat", "this kind of layer cannot repeat");
    else if (width && layer.width != layer.inputWidth)
      object.error("repeat", "takes " + std::to_string(layer.inputWidth) +
                                 " channels and gives " +
                                 std::to_string(layer.width) +
                                 ", so it cannot follow itself");
  }
  exact = context.reporter.getNumErrors() == errorsBefore;
  parseWeights(object, layer);
  stream.layers.push_back(std::move(layer));
}

//===----------------------------------------------------------------------===//
// Common keys
//===----------------------------------------------------------------------===//

/// The only things in braces are {i} and, for experts, {e}.
void LayerParser::checkTemplate(const Value &value, const std::string &pointer,
                                bool experts) {
  const std::string &text = value.text;
  for (size_t at = text.find_first_of("{}"); at != std::string::npos;
       at = text.find_first_of("{}", at)) {
    if (experts && text.compare(at, 3, "{e}") == 0) {
      at += 3;
      continue;
    }
    if (text.compare(at, 3, "{i}") != 0) {
      context.reporter.error(
          value.offset, pointer,
          std::string("braces in a name hold only {i}, the number of the "
                      "repeat") +
              (experts ? ", or {e}, that of the expert" : ""));
      return;
    }
    at += 3;
  }
}

void LayerParser::parseCommon(const Object &object, size_t index,
                              Layer &layer) {
  layer.repeat = object.integer("repeat", 1).value_or(1);
  layer.first = object.integer("first", 0).value_or(0);
  if (const Value *name = object.get("name")) {
    layer.name = name->text;
    checkTemplate(*name, child(object.getPointer(), "name"));
    if (layer.repeat > 1 && layer.name.find("{i}") == std::string::npos)
      object.error("name", "needs {i}, the number of the repeat, since the "
                           "layer repeats " +
                               std::to_string(layer.repeat) + " times");
  } else {
    layer.name = namePrefix + "layers." + std::to_string(index);
    if (layer.repeat > 1)
      layer.name += ".{i}";
  }
}

std::optional<WeightSource> LayerParser::parseSource(const Value &value,
                                                     const Object &layer,
                                                     const std::string &pointer,
                                                     bool experts) {
  if (context.bad.count(&value))
    return std::nullopt;
  WeightSource source;
  if (value.isString()) {
    source.tensor = value.text;
    checkTemplate(value, pointer, experts);
    return source;
  }
  // The form was checked: it is an object of this type.
  static const ObjectType &type = *objectTypeNamed("weight_source");
  Object object(context, value, pointer, type);
  if (const Value *tensor = object.get("tensor")) {
    source.tensor = tensor->text;
    checkTemplate(*tensor, child(pointer, "tensor"), experts);
  }
  source.transposed = object.boolean("transposed", false);
  if (const Value *rows = object.get("rows")) {
    std::string at = child(pointer, "rows");
    Known begin = context.dims.evaluate(rows->elements[0], child(at, size_t(0)),
                                        0, INT64_MAX);
    Known end = context.dims.evaluate(rows->elements[1], child(at, size_t(1)),
                                      0, INT64_MAX);
    if (!begin || !end)
      return std::nullopt;
    if (*begin >= *end) {
      object.error("rows", "row " + std::to_string(*begin) + " is not before " +
                               std::to_string(*end));
      return std::nullopt;
    }
    source.begin = *begin;
    source.end = *end;
  }
  source.scale = object.number("scale", 1);
  source.count = object.integer("count", 1).value_or(1);
  source.stride = object.integer("every", 0).value_or(0);
  if (object.has("count") != object.has("every"))
    object.error(object.has("count") ? "count" : "every",
                 "belongs together with the other of 'every' and 'count'");
  else if (object.has("every") && !object.has("rows"))
    object.missing("rows", "the first of the ranges");
  else if (object.has("every") && !object.isBad() &&
           source.stride < source.end - source.begin)
    object.error("every", "ranges of " +
                              std::to_string(source.end - source.begin) +
                              " rows overlap when they begin every " +
                              std::to_string(source.stride) + " rows");
  return source;
}

void LayerParser::parseWeights(const Object &object, Layer &layer) {
  const Value *map = object.get("weights");
  if (!map)
    return;
  std::string at = child(object.getPointer(), "weights");
  std::vector<WeightRole> roles = weightRoles(layer);
  std::vector<std::string> names;
  for (const WeightRole &role : roles)
    names.push_back(role.role);

  for (const Value::Member &member : map->members) {
    std::string pointer = child(at, member.key);
    const WeightRole *role = nullptr;
    for (const WeightRole &candidate : roles)
      if (candidate.role == member.key)
        role = &candidate;
    if (!role && exact) {
      std::string near = nearest(member.key, names);
      std::string list;
      for (const std::string &name : names)
        list += (list.empty() ? "" : ", ") + name;
      context.reporter.error(member.keyOffset, pointer,
                             "the layer has no weight " + quote(member.key) +
                                 (!near.empty()
                                      ? "; did you mean '" + near + "'?"
                                  : list.empty() ? "; it has none"
                                                 : "; it has " + list));
    }
    if (context.bad.count(&member.value))
      continue;

    bool perExpert = member.key.find("{e}") != std::string::npos;
    std::vector<WeightSource> sources;
    bool sized = true;
    double rows = 0;
    auto add = [&](const Value &value, const std::string &where) {
      std::optional<WeightSource> source =
          parseSource(value, object, where, perExpert);
      sized &= source && source->end >= 0;
      if (source && source->end >= 0)
        rows += static_cast<double>(source->end - source->begin) *
                static_cast<double>(source->count);
      if (source && role && role->parts > 1 &&
          source->tensor.find("{e}") == std::string::npos)
        context.reporter.error(value.offset, where,
                               "needs {e}, the number of the expert");
      if (source)
        sources.push_back(std::move(*source));
    };
    if (member.value.isArray()) {
      const std::vector<Value> &elements = member.value.elements;
      for (size_t i = 0; i < elements.size(); ++i)
        add(elements[i], child(pointer, i));
      if (elements.empty()) {
        context.reporter.error(member.value.offset, pointer, "names no tensor");
        sized = false;
      }
    } else {
      add(member.value, pointer);
    }
    if (role && exact && sized && rows != static_cast<double>(role->rows))
      context.reporter.error(
          member.value.offset, pointer,
          "gives " + std::to_string(static_cast<int64_t>(rows)) +
              " rows, expected " + std::to_string(role->rows));
    layer.weights[member.key] = std::move(sources);
  }
}

//===----------------------------------------------------------------------===//
// Kinds
//===----------------------------------------------------------------------===//

/// True if the stream has channels here; reports if it surely has none.
bool LayerParser::needWidth(const Object &object) {
  if (width && *width == 0) {
    const char *why =
        stream.layers.empty()
            ? "needs a float stream [batch, tokens, width]; start with an "
              "embedding, or give an input of that shape"
            : "follows a layer that gives no stream [batch, tokens, width]";
    object.error(why);
    width = std::nullopt;
  }
  return width.has_value();
}

/// The same for layers that work on tokens, which a pooled stream has not.
bool LayerParser::needTokens(const Object &object) {
  if (pooled && width) {
    object.error("follows a pool, which leaves one vector [batch, width] and "
                 "no tokens");
    width = std::nullopt;
  }
  return needWidth(object);
}

/// The graph input that the stream starts from; null if it starts from an
/// earlier stream.
const TensorSpec *LayerParser::streamInput() const {
  for (const TensorSpec &input : model.inputs)
    if (input.name == stream.input)
      return &input;
  return nullptr;
}

const TensorSpec *LayerParser::findInput(const Object &object,
                                         const char *key) {
  const Value *name = object.get(key);
  if (!name)
    return nullptr;
  std::vector<std::string> names;
  for (const TensorSpec &input : model.inputs) {
    if (input.name == name->text)
      return &input;
    names.push_back(input.name);
  }
  std::string near = nearest(name->text, names);
  object.error(key, "unknown input " + quote(name->text) +
                        (near.empty() ? "; name it in 'inputs'"
                                      : "; did you mean '" + near + "'?"));
  return nullptr;
}

const Layer *LayerParser::findEmbedding(const std::string &name) const {
  auto search = [&](const Stream &in) -> const Layer * {
    for (const Layer &layer : in.layers)
      if (layer.name == name && std::holds_alternative<Embedding>(layer.op))
        return &layer;
    return nullptr;
  };
  for (const Stream &earlier : model.streams)
    if (const Layer *found = search(earlier))
      return found;
  return search(stream);
}

Embedding LayerParser::parseEmbedding(const Object &object) {
  Embedding embedding;
  Known vocab = object.integer("vocab", std::nullopt);
  Known before = width;
  bool added = !stream.layers.empty() || before.value_or(0) != 0;
  if (added)
    needTokens(object);
  width = object.integer("width", std::nullopt);
  if (added && before && *before != 0 && width && *width != *before) {
    object.error("width", "is " + std::to_string(*width) +
                              ", but it is added to a stream of width " +
                              std::to_string(*before));
    width = std::nullopt;
  }
  embedding.vocab = vocab.value_or(0);
  embedding.width = width.value_or(0);
  embedding.scale = object.number("scale", 1);
  embedding.input = object.string("input");

  const TensorSpec *ids = findInput(object, "input");
  std::string key = "input";
  if (!object.has("input")) {
    if (stream.input.empty()) {
      object.error("has no input of ids; give one in 'inputs'");
      return embedding;
    }
    ids = streamInput();
    if (!ids && findResult(model.streams, stream.input))
      object.missing("input", "the ids, as the stream starts from a result");
  }
  if (!ids)
    return embedding;
  bool integers = ids->dtype == DType::I64 || ids->dtype == DType::I32;
  if (!integers || ids->shape.size() != 2)
    object.error("input", "input " + quote(ids->name) +
                              " cannot serve as ids; expected i64 [batch, "
                              "tokens]");
  return embedding;
}

Norm LayerParser::parseNorm(const Object &object, std::optional<NormKind> fixed,
                            NormKind fallback) {
  Norm norm;
  norm.location = object.getLocation();
  norm.kind = fixed ? *fixed : object.choice("kind", fallback);
  norm.eps = object.number("eps", 1e-5);
  norm.scale = object.boolean("scale", true);
  norm.bias = norm.kind == NormKind::LayerNorm;
  if (!fixed || *fixed == NormKind::LayerNorm)
    norm.bias = object.boolean("bias", norm.bias);
  norm.offset = object.number("offset", 0);
  if (norm.kind == NormKind::RMSNorm && norm.bias)
    object.error("bias", "an rms_norm has no bias");
  if (!norm.scale && norm.offset != 0)
    object.error("offset", "is added to gamma, which 'scale' leaves out");
  return norm;
}

FFN LayerParser::parseFFN(const Object &object) {
  FFN ffn;
  ffn.location = object.getLocation();
  ffn.width = object.integer("width", std::nullopt).value_or(0);
  ffn.activation = object.choice("activation", Activation::Gelu);
  ffn.gated = object.boolean("gated", false);
  ffn.bias = object.boolean("bias", true);
  ffn.shift = object.boolean("shift", false);
  if (ffn.shift && (ffn.gated || ffn.bias))
    object.error("shift", "belongs to a feed-forward layer that is not gated "
                          "and has no biases");
  ffn.sparsity = object.number("sparsity", 0);
  if (object.get("sparsity") && (ffn.sparsity < 0 || ffn.sparsity >= 1))
    object.error("sparsity", "expected a share from 0 up to 1, without that");
  if (ffn.sparsity != 0 && (!ffn.gated || ffn.bias))
    object.error("sparsity", "belongs to a feed-forward layer that is gated "
                             "and has no biases");
  ffn.xielu = object.boolean("xielu", false);
  for (const char *key : {"activation", "gated", "shift"})
    if (ffn.xielu && object.has(key))
      object.error(key, "has no meaning beside 'xielu'");
  ffn.adapterRank = object.integer("adapter_rank", 0).value_or(0);
  if (ffn.adapterRank && !inMemory)
    object.error("adapter_rank", "belongs to a block with 'memory'");
  else if (ffn.adapterRank && (!ffn.gated || ffn.bias || ffn.sparsity != 0))
    object.error("adapter_rank", "belongs to a feed-forward layer that is "
                                 "gated and has neither biases nor sparsity");
  return ffn;
}

Linear LayerParser::parseLinear(const Object &object) {
  Linear linear;
  bool known = needWidth(object);
  Known out = object.integer("out", std::nullopt);
  linear.bias = object.boolean("bias", false);
  linear.activation = object.choice("activation", Activation::Identity);
  linear.scale = object.number("scale", 1);
  linear.tied = object.string("tied");
  linear.scale = object.number("scale", 1);
  if (object.get("softcap"))
    linear.softcap = object.number("softcap", 1);
  if (object.get("tied")) {
    const Layer *embedding = findEmbedding(linear.tied);
    if (!embedding) {
      object.error("tied", "there is no embedding layer " + quote(linear.tied) +
                               " before this one");
    } else {
      const auto &table = std::get<Embedding>(embedding->op);
      if (!object.has("out"))
        out = table.vocab ? Known(table.vocab) : std::nullopt;
      else if (out && table.vocab && *out != table.vocab)
        object.error("out", "is " + std::to_string(*out) +
                                ", but the tied embedding has " +
                                std::to_string(table.vocab) + " rows");
      if (known && table.width && *width != table.width)
        object.error("tied", "the embedding is " + std::to_string(table.width) +
                                 " wide, but the stream " +
                                 std::to_string(*width));
    }
  } else if (!object.has("out")) {
    object.missing("out", "channels of the result");
  }
  linear.out = out.value_or(0);
  width = out;
  linear.squeeze = object.boolean("squeeze", false);
  if (linear.squeeze) {
    if (out && *out != 1)
      object.error("squeeze", "there are " + std::to_string(*out) +
                                  " channels; only one can be left out");
    width = 0;
  }
  return linear;
}

/// Blocks that differ in what they see or in their positions, not in their
/// weights: the loop over the repeats then has one stack of weights, and a
/// cache for each window.
void LayerParser::parseCycle(const Object &object, Layer &layer) {
  std::vector<Object> blocks = object.objects("cycle");
  if (object.get("cycle") && blocks.empty())
    object.error("cycle", "has no block");
  Layer first = layer;
  for (const Object &options : blocks) {
    Known before = width;
    unsigned errors = context.reporter.getNumErrors();
    layer.cycle.push_back(parseBlock(options));
    if (const auto &attention = layer.cycle.back().attention)
      if (!attention->keysFrom.empty())
        options.error("reads the keys of another block, which has no place in "
                      "a cycle");
    if (layer.cycle.size() == 1)
      first.op = layer.cycle.front();
    if (!before || context.reporter.getNumErrors() != errors)
      continue;
    Layer other = first;
    other.op = layer.cycle.back();
    std::vector<WeightRole> expected = weightRoles(first);
    std::vector<WeightRole> found = weightRoles(other);
    bool same = expected.size() == found.size();
    for (size_t i = 0; same && i < found.size(); ++i)
      same = expected[i].role == found[i].role &&
             expected[i].rows == found[i].rows &&
             expected[i].columns == found[i].columns;
    if (!same)
      options.error("has other weights than the first block of the cycle");
  }
  if (layer.cycle.empty()) {
    width = std::nullopt;
    return;
  }
  layer.op = layer.cycle.front();
  if (static_cast<int64_t>(layer.cycle.size()) > layer.repeat)
    object.error("cycle", "has " + std::to_string(layer.cycle.size()) +
                              " blocks, but the layer repeats only " +
                              std::to_string(layer.repeat) + " times");
}

Block LayerParser::parseBlock(const Object &object) {
  Block block;
  needTokens(object);
  block.placement = object.choice("placement", Placement::Pre);
  block.residualScale = object.number("residual_scale", 1);
  if (const Value *residual = object.get("residual"))
    block.residualOfNorm = residual->text == "norm";
  if (block.residualOfNorm && object.get("placement") &&
      block.placement != Placement::Pre)
    object.error("residual", "only a pre-norm block has a norm to add to");
  block.inputScale = object.number("input_scale", 1);
  if (block.inputScale != 1 && block.placement != Placement::Pre)
    object.error("input_scale", "belongs to pre-norm blocks");
  Known whole = width;
  if (auto alternating = object.object("alternating"))
    block.alternating = parseAlternating(object, *alternating, block.placement);
  Known inner = width;
  block.layerScale = object.boolean("layer_scale", false);
  if (block.layerScale && block.placement != Placement::Pre)
    object.error("layer_scale", "belongs to pre-norm blocks");
  if (auto norm = object.object("norm"))
    block.norm = parseNorm(*norm, std::nullopt, NormKind::LayerNorm);
  else
    block.norm.location = object.getLocation();
  inMemory = object.has("memory");
  if (inMemory && width)
    width = 2 * *width;
  if (auto attention = object.object("attention"))
    block.attention = parseAttention(*attention, Place::Self);
  width = inner;
  if (inMemory)
    parseMemory(object, block);
  inMemory = false;
  if (auto mamba = object.object("mamba"))
    block.mamba = parseMamba(*mamba);
  if (auto conv = object.object("short_conv")) {
    ShortConv &shortConv = block.shortConv.emplace();
    shortConv.location = conv->getLocation();
    shortConv.kernel = conv->integer("kernel", 3).value_or(3);
    shortConv.bias = conv->boolean("bias", false);
  }
  if (auto rule = object.object("delta_rule"))
    block.deltaRule = parseDeltaRule(*rule);
  if (auto mix = object.object("time_mix"))
    block.timeMix = parseTimeMix(*mix);
  if (auto cross = object.object("cross"))
    block.cross = parseAttention(*cross, Place::Cross);
  if (auto ffn = object.object("ffn"))
    block.ffn = parseFFN(*ffn);
  if (auto moe = object.object("moe"))
    block.moe = parseMoE(*moe);
  width = whole;
  block.laurelRank = object.integer("laurel", 0).value_or(0);
  if (object.has("laurel") &&
      (block.placement != Placement::Peri || !object.has("attention")))
    object.error("laurel", "belongs to the attention of a peri block");
  if (auto modulation = object.object("modulation")) {
    block.modulation = parseModulation(*modulation);
    checkModulation(object, block);
  }
  parseJoint(object, block);
  parseSharedOut(object, block);

  if (block.layerScale && object.has("cross"))
    object.error("cross", "has no weights in a block with layer_scale");
  if (object.has("ffn") && object.has("moe"))
    object.error("moe", "takes the place of 'ffn'; a block has one of them");
  const char *mixer = nullptr;
  for (const char *key :
       {"attention", "mamba", "short_conv", "delta_rule", "time_mix"}) {
    if (!object.has(key))
      continue;
    bool beside = key == std::string("mamba") && object.has("attention");
    if (mixer && !beside)
      object.error(key, "takes the place of '" + std::string(mixer) +
                            "'; a block has one of them");
    mixer = key;
  }
  if (!mixer && !object.has("cross") && !object.has("ffn") &&
      !object.has("moe"))
    object.error("block has no sublayer; give it attention, mamba, short_conv, "
                 "delta_rule, time_mix, cross, ffn or moe");
  if (block.placement == Placement::Parallel) {
    if (object.has("cross"))
      object.error("cross", "cannot be in a parallel block, which runs "
                            "attention and ffn side by side");
    else if (!object.has("attention") ||
             (!object.has("ffn") && !object.has("moe")))
      object.error("placement", "a parallel block needs attention and ffn");
  }
  return block;
}

} // namespace attune::spec
