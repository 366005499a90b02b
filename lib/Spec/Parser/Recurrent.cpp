//===- Recurrent.cpp - Recurrent layers and scans ---------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayerParser.h"

#include <algorithm>
#include <set>

namespace attune::spec {

/// Every result of earlier layers that is not their stream: further ones as
/// "<layer>.<further result>", and pooled vectors by the layer or stream.
std::map<std::string, FurtherResult> LayerParser::earlierResults() const {
  std::map<std::string, FurtherResult> found;
  for (const Stream *in : earlierStreams()) {
    for (const Layer &layer : in->layers) {
      for (const FurtherResult &further : furtherResults(layer))
        found[layer.name + "." + further.name] = further;
      if (layer.pooled)
        found[layer.name] = {layer.name, /*tokens=*/false, layer.width};
    }
    if (in != &stream && !in->layers.empty() && in->layers.back().pooled)
      found[in->name] = {in->name, /*tokens=*/false, in->layers.back().width};
  }
  return found;
}

/// Everything before the layer being read: this stream is the last.
std::vector<const Stream *> LayerParser::earlierStreams() const {
  std::vector<const Stream *> streams;
  for (const Stream &earlier : model.streams)
    streams.push_back(&earlier);
  streams.push_back(&stream);
  return streams;
}

/// The map of a layer's states to where they start; who may be named in it is
/// checked by the caller.
std::map<std::string, std::string>
LayerParser::parseInitial(const Object &object) {
  std::map<std::string, std::string> initial;
  if (const Value *map = object.get("initial"))
    for (const Value::Member &member : map->members)
      if (!context.bad.count(&member.value))
        initial[member.key] = member.value.text;
  return initial;
}

/// Where in the file an entry of "initial" stands, for messages.
static const Value *entryOf(const Object &object, const std::string &state) {
  const Value *map = object.get("initial");
  return map ? map->find(state) : nullptr;
}

Recurrent LayerParser::parseRecurrent(const Object &object) {
  Recurrent op;
  op.location = object.getLocation();
  needTokens(object);
  op.cell = object.choice("cell", CellKind::Gru);
  Known own = object.integer("width", std::nullopt);
  Known layers = object.integer("layers", 1);
  op.width = own.value_or(0);
  op.layers = layers.value_or(1);
  op.bidirectional = object.boolean("bidirectional", false);
  op.bias = object.boolean("bias", true);
  op.initial = parseInitial(object);

  Layer self;
  self.op = op;
  std::vector<std::string> states;
  for (const FurtherResult &state : furtherResults(self))
    states.push_back(state.name);
  std::map<std::string, FurtherResult> earlier = earlierResults();
  std::string at = child(object.getPointer(), "initial");
  for (const auto &entry : op.initial) {
    const std::string &state = entry.first, &from = entry.second;
    const Value &value = *entryOf(object, state);
    auto fail = [&](const std::string &message) {
      context.reporter.error(value.offset, child(at, state), message);
    };
    if (!own || !layers)
      break;
    auto found = earlier.find(from);
    if (std::find(states.begin(), states.end(), state) == states.end()) {
      std::string near = nearest(state, states);
      fail("the layer has no state " + quote(state) +
           (near.empty() ? "" : "; did you mean '" + near + "'?"));
    } else if (found == earlier.end()) {
      fail("no earlier layer gives " + quote(from) +
           "; expected '<layer>.<state>' of a recurrent layer, or a pooled "
           "stream");
    } else if (found->second.tokens) {
      fail(quote(from) + " is one vector per token, expected a last state");
    } else if (found->second.width != op.width) {
      fail(quote(from) + " has " + std::to_string(found->second.width) +
           " channels, but the state " + std::to_string(op.width));
    }
  }
  width = own ? Known(op.bidirectional ? 2 * *own : *own) : std::nullopt;
  return op;
}

//===----------------------------------------------------------------------===//
// Scans
//===----------------------------------------------------------------------===//

std::vector<std::string> LayerParser::parseNames(const Object &object,
                                                 const char *key) {
  std::vector<std::string> names;
  if (const Value *list = object.get(key)) {
    for (const Value &value : list->elements)
      if (!context.bad.count(&value))
        names.push_back(value.text);
    if (list->elements.empty())
      object.error(key, "names no value");
  }
  return names;
}

/// Channels of the tokens that `source` names: the result of an earlier stream
/// or layer, or a float input. 0 after an error.
int64_t LayerParser::findTokens(const Object &object) {
  const Value *source = object.get("source");
  if (!source)
    return 0;
  if (const Layer *found = findResult(model.streams, source->text)) {
    if (found->pooled)
      object.error("source", quote(source->text) +
                                 " is pooled and has no tokens any more");
    return found->pooled ? 0 : found->width;
  }
  std::vector<std::string> names;
  for (const Stream &earlier : model.streams)
    names.push_back(earlier.name);
  for (const TensorSpec &input : model.inputs) {
    bool isFloat = input.dtype == DType::F32 || input.dtype == DType::F16 ||
                   input.dtype == DType::BF16;
    if (isFloat)
      names.push_back(input.name);
    if (input.name != source->text)
      continue;
    if (isFloat && (input.shape.size() == 3 || input.shape.size() == 4) &&
        input.shape.back().size > 0)
      return input.shape.back().size;
    object.error("source", "input " + quote(input.name) +
                               " gives no vectors; expected float [batch, "
                               "tokens, width] or [batch, rows, columns, "
                               "width] with a fixed width");
    return 0;
  }
  std::string near = nearest(source->text, names);
  object.error("source",
               "there is no earlier stream and no float input " +
                   quote(source->text) +
                   (near.empty() ? "" : "; did you mean '" + near + "'?"));
  return 0;
}

ScanCell LayerParser::parseCell(const Object &object) {
  ScanCell op;
  op.cell = object.choice("cell", CellKind::Gru);
  op.width = object.integer("width", std::nullopt).value_or(0);
  op.inputs = parseNames(object, "inputs");
  op.bias = object.boolean("bias", true);
  return op;
}

ScanAttend LayerParser::parseAttend(const Object &object) {
  ScanAttend op;
  op.score = object.choice("score", ScoreKind::Additive);
  op.query = object.string("query");
  op.source = object.string("source");
  op.sourceWidth = findTokens(object);
  op.width = object.integer("width", 0).value_or(0);
  op.activation = object.choice("activation", Activation::Tanh);
  op.queryBias = object.boolean("query_bias", false);
  op.keyBias = object.boolean("key_bias", false);
  op.scoreBias = object.boolean("score_bias", false);
  bool additive = op.score == ScoreKind::Additive;
  bool adds = additive || op.score == ScoreKind::Concat;
  if (adds && !object.has("width"))
    object.missing("width", "channels of queries and keys before they are "
                            "added");
  for (const char *key : {"width", "activation", "score_bias"})
    if (!adds && object.has(key))
      object.error(key, "belongs to additive scores");
  if (!additive && object.has("query_bias"))
    object.error("query_bias", "belongs to additive scores");
  if (op.score == ScoreKind::Dot && object.has("key_bias"))
    object.error("key_bias", "dot products have no projections");
  return op;
}

ScanLinear LayerParser::parseScanLinear(const Object &object) {
  ScanLinear op;
  op.inputs = parseNames(object, "inputs");
  op.out = object.integer("out", std::nullopt).value_or(0);
  op.bias = object.boolean("bias", false);
  op.activation = object.choice("activation", Activation::Identity);
  op.multiply = object.string("multiply");
  op.add = object.string("add");
  return op;
}

ScanStep LayerParser::parseStep(const Object &object, bool inLoop) {
  ScanStep step;
  step.location = object.getLocation();
  step.name = object.string("name");
  if (auto options = object.object("cell")) {
    if (!inLoop)
      options->error("a cell belongs to 'steps'; nothing recurs in 'start'");
    ScanCell op = parseCell(*options);
    step.width = op.width;
    step.op = std::move(op);
  } else if (auto options = object.object("attend")) {
    if (!inLoop)
      options->error("attention belongs to 'steps'");
    ScanAttend op = parseAttend(*options);
    step.width = op.sourceWidth;
    step.op = std::move(op);
  } else if (auto options = object.object("linear")) {
    ScanLinear op = parseScanLinear(*options);
    step.width = op.out;
    step.op = std::move(op);
  } else if (auto options = object.object("mean")) {
    if (inLoop)
      options->error("a mean is the same for every token, so it belongs to "
                     "'start'");
    ScanMean op{options->string("source"), findTokens(*options)};
    step.width = op.sourceWidth;
    step.op = std::move(op);
  }
  if (!step.name.empty() && !isIdentifier(step.name))
    object.error("name", "a step's name is letters, digits and underscores, "
                         "not starting with a digit");
  return step;
}

namespace {
/// The names in a scan, and their widths (0: unknown).
struct ScanNames {
  std::map<std::string, int64_t> widths;

  std::vector<std::string> all() const {
    std::vector<std::string> names;
    for (const auto &[name, width] : widths)
      names.push_back(name);
    return names;
  }
  /// Reports and gives 0 if there is no such value.
  int64_t get(const Object &object, const char *key,
              const std::string &name) const {
    auto found = widths.find(name);
    if (found != widths.end())
      return found->second;
    std::string near = nearest(name, all());
    object.error(key,
                 "the scan has no value " + quote(name) + " here" +
                     (near.empty() ? "" : "; did you mean '" + near + "'?"));
    return 0;
  }
  int64_t sum(const Object &object, const char *key,
              const std::vector<std::string> &names) const {
    int64_t total = 0;
    bool known = true;
    for (const std::string &name : names) {
      int64_t one = get(object, key, name);
      known &= one != 0;
      total += one;
    }
    return known ? total : 0;
  }
};
} // namespace

/// Resolves what a step reads and checks how wide it is.
static void resolve(ScanStep &step, const Object &object,
                    const ScanNames &names) {
  if (auto *op = std::get_if<ScanCell>(&step.op)) {
    if (auto options = object.object("cell"))
      step.inputWidth = names.sum(*options, "inputs", op->inputs);
  } else if (auto *op = std::get_if<ScanAttend>(&step.op)) {
    auto options = object.object("attend");
    if (!options || !options->get("query"))
      return;
    op->queryWidth = names.get(*options, "query", op->query);
    if (op->score == ScoreKind::Dot && op->queryWidth && op->sourceWidth &&
        op->queryWidth != op->sourceWidth)
      options->error("query", quote(op->query) + " has " +
                                  std::to_string(op->queryWidth) +
                                  " channels and the source " +
                                  std::to_string(op->sourceWidth) +
                                  ", so they have no dot product");
  } else if (auto *op = std::get_if<ScanLinear>(&step.op)) {
    auto options = object.object("linear");
    if (!options)
      return;
    step.inputWidth = names.sum(*options, "inputs", op->inputs);
    for (auto [key, name] :
         {std::pair("multiply", op->multiply), std::pair("add", op->add)}) {
      if (name.empty())
        continue;
      int64_t other = names.get(*options, key, name);
      if (other && op->out && other != op->out)
        options->error(key, quote(name) + " has " + std::to_string(other) +
                                " channels, but the result " +
                                std::to_string(op->out));
    }
  }
}

Scan LayerParser::parseScan(const Object &object) {
  Scan scan;
  scan.location = object.getLocation();
  needTokens(object);
  ScanNames names;
  names.widths["input"] = width.value_or(0);
  std::set<std::string> own = {"input"};
  auto define = [&](const std::string &name, int64_t channels,
                    const Object &at) {
    if (name.empty())
      return;
    if (own.insert(name).second)
      names.widths[name] = channels;
    else
      at.error("name", "the scan already has a value " + quote(name));
  };

  // Vectors of earlier layers are values too, unless a step has their name.
  for (const auto &[name, result] : earlierResults())
    if (!result.tokens)
      names.widths.emplace(name, result.width);

  std::vector<Object> start = object.objects("start");
  for (const Object &each : start) {
    scan.start.push_back(parseStep(each, /*inLoop=*/false));
    resolve(scan.start.back(), each, names);
    define(scan.start.back().name, scan.start.back().width, each);
  }
  // Steps may read later ones, so all are known before any is resolved.
  std::vector<Object> steps = object.objects("steps");
  if (object.get("steps") && steps.empty())
    object.error("steps", "has no step");
  for (const Object &each : steps) {
    scan.steps.push_back(parseStep(each, /*inLoop=*/true));
    const ScanStep &step = scan.steps.back();
    define(step.name, step.width, each);
    const auto *cell = std::get_if<ScanCell>(&step.op);
    if (cell && cell->cell == CellKind::Lstm)
      names.widths[step.name + ".cell"] = step.width;
  }
  for (size_t i = 0; i < steps.size(); ++i)
    resolve(scan.steps[i], steps[i], names);

  scan.initial = parseInitial(object);
  std::vector<std::string> states = statesOf(scan);
  std::string at = child(object.getPointer(), "initial");
  for (const auto &entry : scan.initial) {
    const std::string &state = entry.first, &from = entry.second;
    const Value &value = *entryOf(object, state);
    auto fail = [&](const std::string &message) {
      context.reporter.error(value.offset, child(at, state), message);
    };
    auto known = names.widths.find(state);
    if (std::find(states.begin(), states.end(), state) == states.end()) {
      fail(known == names.widths.end()
               ? "the scan has no state " + quote(state)
               : quote(state) + " is no state: no step reads it before it is "
                                "computed");
      continue;
    }
    auto source = names.widths.find(from);
    bool inLoop = from == "input";
    for (const ScanStep &step : scan.steps)
      inLoop |= from == step.name || from == step.name + ".cell";
    if (inLoop || source == names.widths.end()) {
      fail((inLoop ? quote(from) + " is not known before the loop"
                   : "nothing is called " + quote(from)) +
           "; expected a step of 'start', '<layer>.<state>' of an earlier "
           "recurrent layer, or a pooled stream");
      continue;
    }
    int64_t channels = source->second;
    if (channels && known->second && channels != known->second)
      fail(quote(from) + " has " + std::to_string(channels) +
           " channels, but the state " + std::to_string(known->second));
  }

  scan.result = parseNames(object, "result");
  if (!object.has("result") && !scan.steps.empty())
    scan.result = {scan.steps.back().name};
  int64_t total = names.sum(object, "result", scan.result);
  width = total ? Known(total) : std::nullopt;
  return scan;
}

} // namespace attune::spec
