//===- Schema.cpp - The form of a description, as tables --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SchemaTypes.h"

#include "attune/Spec/Spec.h"

#include <algorithm>
#include <cmath>

namespace attune::spec {

const Key *ObjectType::find(std::string_view key) const {
  for (const Key &candidate : keys)
    if (candidate.name == key)
      return &candidate;
  return nullptr;
}

std::vector<std::string> ObjectType::names() const {
  std::vector<std::string> result;
  for (const Key &key : keys)
    result.push_back(key.name);
  return result;
}

bool ObjectType::isMisspelt(std::string_view key, const Value &object) const {
  for (const Value::Member &member : object.members)
    if (!find(member.key) && nearest(member.key, names()) == key)
      return true;
  return false;
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

static std::vector<Key> normKeys(bool withKind, bool withBias) {
  std::vector<Key> keys;
  if (withKind)
    keys.push_back({"kind", choice({"layer_norm", "rms_norm"}),
                    "default layer_norm (qk_norm: rms_norm)"});
  keys.push_back({"eps", positive(), "added under the root; default 1e-5"});
  keys.push_back({"scale", boolean(), "has a gamma; default true"});
  if (withBias)
    keys.push_back(
        {"bias", boolean(), "has a beta (layer_norm only); default true"});
  keys.push_back({"offset", number(),
                  "added to gamma: 1 for the (1 + gamma) form; default 0"});
  return keys;
}

const ObjectType &normType() {
  static const ObjectType type{
      "norm", "Normalisation of each token.", normKeys(true, true), {}, {}};
  return type;
}
static const ObjectType &qkNormType() {
  static const ObjectType type = [] {
    std::vector<Key> keys = normKeys(true, true);
    keys.push_back({"scope", choice({"head", "heads", "projection"}),
                    "over each head with one gamma for all heads, over each "
                    "head with one for each, or over all heads together; "
                    "default head"});
    keys.push_back({"after_rotary", boolean(),
                    "heads are normalised after their rotation, not before; "
                    "default false"});
    return ObjectType{"qk_norm",
                      "Normalisation of queries and keys.",
                      std::move(keys),
                      {},
                      {}};
  }();
  return type;
}
static const ObjectType &layerNormType() {
  static const ObjectType type{
      "layer_norm",
      "(x - mean) / sqrt(variance + eps) * gamma + beta, over each token.",
      normKeys(false, true),
      {},
      {}};
  return type;
}
static const ObjectType &rmsNormType() {
  static const ObjectType type{
      "rms_norm",
      "x / sqrt(mean(x^2) + eps) * gamma, over each token.",
      normKeys(false, false),
      {},
      {}};
  return type;
}

/// A head's channels have tables of their own (rotary frequencies) in the
/// compiler's memory. Published heads have up to 576.
static constexpr int64_t maxHeadDim = 1 << 16;

const ObjectType &attentionType() {
  static const ObjectType type{
      "attention",
      "softmax(scale * Q K^T) V with its projections or, given query, key and "
      "value, the bare op on three inputs [batch, heads, tokens, width].",
      {
          {"heads", integer(1),
           "query heads; required unless the bare op's query has a fixed "
           "number"},
          {"kv_heads", integer(1), "key/value heads; default heads"},
          {"head_dim", integer(1, maxHeadDim),
           "width of queries and keys; default width / heads"},
          {"value_dim", integer(1, maxHeadDim),
           "width of values; default head_dim"},
          {"scale", number(), "default 1 / sqrt(head_dim)"},
          {"scale_by_layer", boolean(),
           "divide the scores of repeat i by i + 1; default false"},
          {"causal", either({boolean(), choice({"bottom_right", "top_left"})}),
           "hide the future; true is bottom_right, where the last query sees "
           "every key; default false"},
          {"window", integer(1),
           "see only this many last keys, the query's own among them; without "
           "'causal' as many from the query's own on, too"},
          {"softcap", positive(), "scores become c tanh(score / c)"},
          {"alibi", either({boolean(), choice({"falcon"})}),
           "linear biases by distance, or Falcon's form of them, which is "
           "scaled with the scores and rounded to bf16; default false"},
          {"relative", either({boolean(), object(relativeType())}),
           "relative positions of Transformer-XL: scores are (q + u) k + "
           "(q + v) W_r r(distance); default false"},
          {"relative_bias", object(relativeBiasType()),
           "learned biases by distance, as in T5"},
          {"disentangled", object(disentangledType()),
           "scores of positions beside those of contents (DeBERTa)"},
          {"rope", object(ropeType()), "rotary positions"},
          {"query_growth", object(queryGrowthType()),
           "queries that grow with their position; default none"},
          {"latent", object(latentType()),
           "keys and values of one compressed row per token"},
          {"qk_norm", object(qkNormType()), "normalise queries and keys"},
          {"value_norm", object(normType()),
           "normalise the values of each head; default none"},
          {"keys_from", string(),
           "an earlier block, by its name with its number, whose keys and "
           "values these queries read in place of own ones"},
          {"adapter_rank", integer(1),
           "in a block with 'memory': add products of two thin matrices to "
           "queries, keys and values; default none"},
          {"clip", positive(),
           "limit queries, keys and values to [-clip, clip]"},
          {"bias", either({boolean(), object(biasType())}),
           "biases of the projections; default false"},
          {"block_sparse", object(blockSparseType()),
           "only some blocks of queries and keys"},
          {"linear", object(linearFormType()),
           "sums of features in place of a softmax"},
          {"sequence_rank", object(sequenceRankType()),
           "keys and values projected along their sequence"},
          {"lengths", string(),
           "an i64 input [batch]: how many keys each sequence has, the rest "
           "being hidden; more than there are hide none"},
          {"fusion", choice({"auto", "required", "off"}),
           "whether the scores may stay in registers; required makes a "
           "failure to fuse an error; default auto"},
          {"source", string(),
           "cross-attention: the stream that keys and values come from"},
          {"query", string(), "bare op: an input"},
          {"key", string(), "bare op: an input"},
          {"value", string(), "bare op: an input"},
          {"mask", string(), "bare op: a bool input, true may be seen"},
          {"bias_input", string(), "bare op: a float input added to scores"},
          {"slopes", string(), "bare op: an input with ALiBi's slopes [heads]"},
          {"sinks", either({boolean(), string()}),
           "a learned score per head that the softmax counts like that of one "
           "more key, without a value; bare op: an input with these scores"},
          {"gate", boolean(),
           "multiply each channel of the result by the sigmoid of a projection "
           "of the input; default false"},
          {"lse", boolean(),
           "bare op: also give log-sum-exp as '<name>.lse'; default false"},
      },
      {},
      {}};
  return type;
}

static const ObjectType &embeddingType() {
  static const ObjectType type{
      "embedding",
      "Rows of a table picked by ids.",
      {
          {"vocab", integer(1), "rows", true},
          {"width", integer(1), "channels", true},
          {"scale", number(), "multiplies the rows; default 1"},
          {"input", string(), "the ids; default the stream's input"},
      },
      {},
      {}};
  return type;
}

static const ObjectType &positionsType() {
  static const ObjectType type{
      "positions",
      "A vector for each position, added to the channels.",
      {
          {"kind", choice({"learned", "sinusoidal"}), "default learned"},
          {"count", choice({"input", "tokens", "unpadded"}),
           "what numbers the tokens: the input position_ids, by default 0, 1, "
           "...; their place in the stream; or how many ids up to them are not "
           "'pad', which itself is at 0; default input or, where the stream "
           "is not one token for each id or frame, tokens"},
          {"pad", integer(0), "unpadded: the id that is not counted"},
          {"length", integer(1), "learned: rows of the table"},
          {"offset", integer(0), "row of position 0; default 0"},
          {"skip_padding", boolean(),
           "position_ids that are not given count only the tokens that "
           "attention_mask shows; default false"},
          {"layout",
           choice({"interleaved", "blocks", "tensor2tensor", "cosines_first"}),
           "sinusoidal: sin and cos channel by channel, as two blocks, or as "
           "two blocks with tensor2tensor's wavelengths, of which the cosines "
           "may be first; default interleaved"},
          {"concat", integer(1),
           "channels of the vectors, which are put beside those of the stream "
           "instead of being added"},
          {"dims", integer(1, 2),
           "2: half of the channels number the row of an image's place, half "
           "its column; default 1"},
          {"columns_first", boolean(),
           "two dimensions: the first half is for the column; default false"},
          {"grid", array(integer(1), 2),
           "learned: rows and columns of the image that the tables are for"},
          {"interpolate",
           choice({"none", "bilinear", "bicubic", "corners", "centre",
                   "antialias", "antialias_bicubic"}),
           "learned, over a grid: how the table is stretched to an image of "
           "another size (corners: bilinear, and corners stay where they are; "
           "centre: the middle of the table, as it is; antialias: bilinear, "
           "over as many places as one of a smaller image covers; "
           "antialias_bicubic: bicubic, over as many "
           "places); default none"},
          {"shapes", string(),
           "antialias, for images of different sizes: an i64 input [batch, 2], "
           "the rows and columns of each image; tokens behind its last are at "
           "its first place; default the image's own size"},
      },
      {},
      {}};
  return type;
}

static const ObjectType &linearType() {
  static const ObjectType type{
      "linear",
      "act(x W + b).",
      {
          {"out", integer(1), "channels; required unless tied"},
          {"bias", boolean(), "default false"},
          {"activation", activation(), "default identity"},
          {"scale", number(), "multiplies the result; default 1"},
          {"tied", string(),
           "the embedding layer whose table is used as W: a vocabulary head"},
          {"softcap", positive(),
           "the (scaled) result y becomes c tanh(y / c)"},
          {"squeeze", boolean(),
           "leave the result's last dimension out, which is 1; default "
           "false"},
      },
      {},
      {}};
  return type;
}

static const ObjectType &weightSourceType() {
  static const ObjectType type{
      "weight_source",
      "Rows of a tensor of the weights file.",
      {
          {"tensor", string(),
           "its name; {i} is the layer's number, {e} an expert's", true},
          {"transposed", boolean(), "the file holds [in, out]; default false"},
          {"rows", array(integer(0), 2),
           "[begin, end) of the tensor as the layer wants it; default all"},
          {"every", integer(1), "rows from one range to the next of 'count'"},
          {"count", integer(1), "how often the range is taken; default 1"},
          {"scale", number(),
           "multiplies the numbers before they are stored; default 1"},
      },
      {},
      {}};
  return type;
}

/// Plugins add kinds to it.
static ObjectType &layerType() {
  static ObjectType type{
      "layer",
      "One layer: its kind with the kind's options, and the keys that every "
      "layer has.",
      {
          {"embedding", object(embeddingType()), "token embedding"},
          {"positions", object(positionsType()), "position embedding"},
          {"block", object(blockType()), "transformer block"},
          {"cycle", array(object(blockType())),
           "blocks with weights of the same shapes that take turns over the "
           "repeats"},
          {"attention", object(attentionType()), "attention alone"},
          {"ffn", object(ffnType()), "feed-forward alone"},
          {"moe", object(moeType()), "mixture of experts alone"},
          {"norm", object(normType()), "norm of a kind named in it"},
          {"layer_norm", object(layerNormType()), "layer norm"},
          {"rms_norm", object(rmsNormType()), "RMS norm"},
          {"linear", object(linearType()), "projection"},
          {"pool", object(poolType()), "one vector for each sequence"},
          {"class_tokens", object(classTokensType()),
           "learned tokens before the others"},
          {"slice", object(sliceType()), "some of the tokens"},
          {"concat", object(concatType()), "tokens of another result behind"},
          {"conv", object(convType()), "convolution"},
          {"batch_norm", object(batchNormType()), "batch norm"},
          {"instance_norm", object(instanceNormType()), "instance norm"},
          {"add", object(addType()), "sum with another result"},
          {"l2_norm", object(l2NormType()), "vectors of length 1"},
          {"similarity", object(similarityType()), "scalar products"},
          {"insert", object(insertType()),
           "vectors of another stream in the places of tokens"},
          {"windows", object(windowsType()), "windows of an image"},
          {"whole", object(wholeType()), "the end of windows"},
          {"merge", object(mergeType()), "squares of places as one"},
          {"unpatch", object(unpatchType()), "places as an image"},
          {"activation", object(activationType()), "activation alone"},
          {"softmax", object(softmaxType()), "softmax alone"},
          {"rotary", object(rotaryType()), "rotary positions alone"},
          {"cross_entropy", object(crossEntropyType()), "loss"},
          {"recurrent", object(recurrentType()), "recurrent layers"},
          {"scan", object(scanType()), "a loop over tokens"},
          {"mamba", object(mambaType()), "state space alone"},
          {"modulate", object(modulationType()),
           "channels scaled and shifted by a condition"},
          {"timestep", object(timestepType()), "a number as sines and cosines"},
          {"chunk", object(chunkType()), "chunks that overlap"},
          {"swap", object(swapType()), "places and chunks change roles"},
          {"overlap_add", object(overlapAddType()), "the end of chunks"},
          {"layer_inputs", object(layerInputsType()),
           "a second embedding for the blocks"},
          {"spread", object(spreadType()), "copies of the stream"},
          {"unite", object(uniteType()), "the end of copies"},
          {"name", string(),
           "prefix of its weights; {i} is the number of the repeat; default "
           "layers.<index>"},
          {"repeat", integer(1, 100000), "copies in a row; default 1"},
          {"first", integer(0), "number of the first repeat; default 0"},
          {"weights",
           map(either({string(), object(weightSourceType()),
                       array(either({string(), object(weightSourceType())}))})),
           "role to tensor, where it is not <name>.<role>; a list is "
           "concatenated along the output dimension"},
      },
      {"embedding",    "positions", "block",        "cycle",
       "attention",    "ffn",       "moe",          "norm",
       "layer_norm",   "rms_norm",  "linear",       "pool",
       "class_tokens", "conv",      "batch_norm",   "instance_norm",
       "add",          "l2_norm",   "similarity",   "insert",
       "activation",   "softmax",   "rotary",       "cross_entropy",
       "recurrent",    "scan",      "mamba",        "modulate",
       "timestep",     "chunk",     "swap",         "overlap_add",
       "slice",        "concat",    "layer_inputs", "spread",
       "unite",        "windows",   "whole",        "merge",
       "unpatch"},
      "kind"};
  return type;
}

static const ObjectType &inputType() {
  static const ObjectType type{
      "input",
      "An input tensor.",
      {
          {"dtype", choice({"f32", "f16", "bf16", "i64", "i32", "i8", "bool"}),
           "element type", true},
          {"shape", array(dimension()),
           "sizes, or symbols such as \"batch\" and \"seq\"", true},
          {"default", choice({"zeros", "ones", "iota", "shifted"}),
           "what it holds if it is left out: iota is 0, 1, ... along the last "
           "dimension; shifted, of an input decoder_X, the ids of X one place "
           "later behind decoder_start; default it must be given"},
      },
      {},
      {}};
  return type;
}

static const ObjectType &streamType() {
  static const ObjectType type{
      "stream",
      "Layers in order.",
      {
          {"input", string(),
           "the input it starts from, or an earlier stream or layer whose "
           "result it reads; default the one called input, else the only one "
           "that fits"},
          {"layers", array(object(layerType())), "what it does", true},
      },
      {},
      {}};
  return type;
}

const ObjectType &modelType() {
  static const ObjectType type{
      "model",
      "A model description for the Attune compiler, schema version 1.",
      {
          {"attune", integer(1, 1), "the schema's version: 1", true},
          {"name", string(), "default model"},
          {"description", string(), "free text"},
          {"dims", map(integer(0)),
           "named numbers; every integer may be arithmetic over them, such as "
           "\"4*D\""},
          {"inputs", map(object(inputType())),
           "default input_ids [batch, seq] if the layers start with an "
           "embedding"},
          {"layers", array(object(layerType())),
           "the layers of a model of one stream, called main"},
          {"streams", map(object(streamType())),
           "several sequences of layers, each after those it reads"},
          {"outputs", map(string()),
           "name to layer, '<layer>.lse', a further result of a recurrent "
           "layer or hidden_states; default the last "
           "layer, as logits if it is a vocabulary head, else as "
           "last_hidden_state"},
          {"dtype", choice({"f32", "f16", "bf16"}),
           "type that weights are kept in, and cached keys and values; default "
           "f32"},
          {"quantize", string(),
           "forms of matrices in few bits, as --quantize takes them; default: "
           "all have the full width"},
          {"activations", choice({"bytes", "exact"}),
           "what matrices in few bits multiply: activations rounded to bytes, "
           "or as they are, which a GPU always does; default bytes"},
          {"low_rank", string(),
           "ranks of matrices that become products of two, as --low-rank takes "
           "them; default: all stay whole"},
          {"mesh", string(),
           "ranks that the model is cut for, as --mesh takes them; default: "
           "one process has all of it"},
          {"kv_cache", choice({"full", "int8", "fp8"}),
           "how keys and values are cached: as dtype says (full), or in bytes "
           "with a scale for each head and position; default full"},
          {"window_slack", integer(leastWindowSlack),
           "positions that the caches of windows have room for besides the "
           "window; default 1024"},
          {"prune_heads", string(),
           "heads of attention that are taken out, as --prune-heads takes "
           "them; default: all stay"},
          {"context", integer(1), "longest sequence; default unlimited"},
          {"generation", object(generationType()), "for attune generate"},
          {"audio", object(audioType()), "for attune generate --audio"},
          {"codes", object(codesType()), "for attune generate --audio-out"},
          {"playback", object(playbackType()), "for attune generate --codes"},
      },
      {"layers", "streams"},
      "way to give its layers"};
  return type;
}

static std::vector<const ObjectType *> &allObjectTypes() {
  static std::vector<const ObjectType *> types{
      &normType(),         &qkNormType(),       &layerNormType(),
      &rmsNormType(),      &ropeScalingType(),  &ropeAxesType(),
      &ropeType(),         &biasType(),         &relativeBiasType(),
      &relativeType(),     &attentionType(),    &ffnType(),
      &blockType(),        &embeddingType(),    &positionsType(),
      &linearType(),       &moeType(),          &routerType(),
      &sharedExpertType(), &keyIndexType(),     &latentType(),
      &blockSparseType(),  &linearFormType(),   &sequenceRankType(),
      &disentangledType(), &fadingType(),       &sliceType(),
      &concatType(),       &poolType(),         &classTokensType(),
      &convType(),         &batchNormType(),    &instanceNormType(),
      &addType(),          &l2NormType(),       &similarityType(),
      &insertType(),       &windowsType(),      &wholeType(),
      &mergeType(),        &activationType(),   &softmaxType(),
      &rotaryType(),       &crossEntropyType(), &recurrentType(),
      &scanCellType(),     &scanAttendType(),   &scanLinearType(),
      &scanMeanType(),     &scanStepType(),     &scanType(),
      &mambaType(),        &outNormType(),      &shortConvType(),
      &deltaRuleType(),    &queryGrowthType(),  &timeMixType(),
      &modulationType(),   &timestepType(),     &chunkType(),
      &swapType(),         &overlapAddType(),   &alternatingType(),
      &layerInputsType(),  &memoryType(),       &spreadType(),
      &uniteType(),        &jointType(),        &unpatchType(),
      &weightSourceType(), &layerType(),        &inputType(),
      &streamType(),       &samplingType(),     &generationType(),
      &audioType(),        &codesType(),        &playbackType()};
  return types;
}

const std::vector<const ObjectType *> &objectTypes() {
  return allObjectTypes();
}

bool addLayerType(const ObjectType &type) {
  ObjectType &layer = layerType();
  std::vector<const ObjectType *> &all = allObjectTypes();
  if (layer.find(type.name) || objectTypeNamed(type.name))
    return false;
  layer.keys.push_back({type.name, object(type), type.doc});
  layer.exactlyOne.push_back(type.name);
  all.insert(std::find(all.begin(), all.end(), &layer), &type);
  return true;
}

const ObjectType *objectTypeNamed(std::string_view name) {
  for (const ObjectType *type : objectTypes())
    if (type->name == name)
      return type;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Check
//===----------------------------------------------------------------------===//

namespace {
class FormChecker {
public:
  explicit FormChecker(Reporter &reporter) : reporter(reporter) {}

  /// `either`: the type that `type` is one alternative of, for messages.
  void check(const Value &value, const Type &type, const std::string &pointer,
             const Type *either = nullptr);
  BadValues bad;

private:
  void fail(const Value &value, const std::string &pointer,
            const std::string &message) {
    bad.insert(&value);
    reporter.error(value.offset, pointer, message);
  }
  void checkInteger(const Value &value, const Type &type,
                    const std::string &pointer);
  void checkObject(const Value &value, const ObjectType &type,
                   const std::string &pointer);

  Reporter &reporter;
};
} // namespace

static bool accepts(const Type &type, const Value &value) {
  using Kind = Value::Kind;
  switch (type.form) {
  case Type::Form::Integer:
  case Type::Form::Dimension:
    return value.isNumber() || value.isString();
  case Type::Form::Number:
    return value.isNumber();
  case Type::Form::Boolean:
    return value.kind == Kind::Boolean;
  case Type::Form::String:
  case Type::Form::Choice:
    return value.isString();
  case Type::Form::Object:
  case Type::Form::Map:
    return value.isObject();
  case Type::Form::Array:
    return value.isArray();
  case Type::Form::Either:
    for (const Type &part : type.parts)
      if (accepts(part, value))
        return true;
    return false;
  }
  return false;
}

static std::string listWords(const std::vector<std::string> &words,
                             const char *separator) {
  std::string result;
  for (const std::string &word : words)
    result += (result.empty() ? "" : separator) + word;
  return result;
}

static std::string expectation(const Type &type) {
  switch (type.form) {
  case Type::Form::Integer:
    return "an integer or arithmetic over dims";
  case Type::Form::Dimension:
    return "a size, a symbol or arithmetic over dims";
  case Type::Form::Number:
    return "a number";
  case Type::Form::Boolean:
    return "true or false";
  case Type::Form::String:
    return "a string";
  case Type::Form::Choice:
    return "one of " + listWords(type.words, ", ");
  case Type::Form::Object:
  case Type::Form::Map:
    return "an object";
  case Type::Form::Array:
    return "an array";
  case Type::Form::Either: {
    std::vector<std::string> parts;
    for (const Type &part : type.parts)
      parts.push_back(expectation(part));
    return listWords(parts, " or ");
  }
  }
  return {};
}

static const char *describeValue(const Value &value) {
  if (value.kind == Value::Kind::Boolean)
    return value.boolean ? "true" : "false";
  return describe(value.kind);
}

void FormChecker::checkInteger(const Value &value, const Type &type,
                               const std::string &pointer) {
  if (value.isString())
    return; // evaluated later
  // JSON has one kind of number: 768.0 is an integer.
  if (value.real != std::floor(value.real))
    return fail(value, pointer, "expected an integer, got a fraction");
  if (value.real < static_cast<double>(type.minimum) ||
      value.real > static_cast<double>(type.maximum))
    fail(value, pointer,
         "out of range: expected " + std::to_string(type.minimum) +
             (type.minimum == type.maximum
                  ? ""
                  : " to " + std::to_string(type.maximum)));
}

void FormChecker::checkObject(const Value &value, const ObjectType &type,
                              const std::string &pointer) {
  std::vector<std::string> names = type.names();
  std::vector<const Value::Member *> chosen;
  bool misspelt = false;
  for (const Value::Member &member : value.members) {
    std::string at = child(pointer, member.key);
    const Key *key = type.find(member.key);
    if (!key) {
      bad.insert(&member.value);
      if (reporter.isFull()) // what follows is not shown
        continue;
      std::string near = nearest(member.key, names);
      misspelt |= near.empty();
      for (const std::string &name : type.exactlyOne)
        misspelt |= name == near;
      reporter.error(member.keyOffset, at,
                     "unknown key " + quote(member.key) +
                         (near.empty()
                              ? "; expected one of " + listWords(names, ", ")
                              : "; did you mean '" + near + "'?"));
      continue;
    }
    for (const std::string &name : type.exactlyOne)
      if (name == member.key)
        chosen.push_back(&member);
    check(member.value, key->type, at);
  }
  for (const Key &key : type.keys)
    if (key.required && !value.find(key.name) &&
        !type.isMisspelt(key.name, value))
      reporter.error(value.offset, pointer,
                     "missing key '" + key.name + "': " + key.doc);
  if (!type.exactlyOne.empty() && chosen.empty()) {
    bad.insert(&value);
    if (!misspelt) // that was reported already
      fail(value, pointer,
           "has no " + type.choice + "; expected one of " +
               listWords(type.exactlyOne, ", "));
  }
  for (size_t i = 1; i < chosen.size(); ++i) {
    bad.insert(&value);
    reporter.error(chosen[i]->keyOffset, child(pointer, chosen[i]->key),
                   "is a second " + type.choice + " beside '" + chosen[0]->key +
                       "'");
  }
}

void FormChecker::check(const Value &value, const Type &type,
                        const std::string &pointer, const Type *either) {
  if (!accepts(type, value))
    return fail(value, pointer,
                "expected " + expectation(type) + ", got " +
                    describeValue(value));
  switch (type.form) {
  case Type::Form::Integer:
  case Type::Form::Dimension:
    return checkInteger(value, type, pointer);
  case Type::Form::Number:
    if (type.above && !(value.real > *type.above))
      fail(value, pointer, "expected a number above 0");
    return;
  case Type::Form::Boolean:
  case Type::Form::String:
    return;
  case Type::Form::Choice: {
    for (const std::string &word : type.words)
      if (word == value.text)
        return;
    std::string near = nearest(value.text, type.words);
    return fail(value, pointer,
                "unknown value " + quote(value.text) +
                    (near.empty()
                         ? "; expected " + expectation(either ? *either : type)
                         : "; did you mean '" + near + "'?"));
  }
  case Type::Form::Object:
    return checkObject(value, *type.object, pointer);
  case Type::Form::Array:
    if (type.count && value.elements.size() != *type.count)
      return fail(value, pointer,
                  "has " + std::to_string(value.elements.size()) +
                      " elements, expected " + std::to_string(*type.count));
    for (size_t i = 0; i < value.elements.size(); ++i)
      check(value.elements[i], type.parts[0], child(pointer, i));
    return;
  case Type::Form::Map:
    for (const Value::Member &member : value.members)
      check(member.value, type.parts[0], child(pointer, member.key));
    return;
  case Type::Form::Either:
    for (const Type &part : type.parts)
      if (accepts(part, value))
        return check(value, part, pointer, &type);
    return;
  }
}

BadValues checkForm(const Value &root, Reporter &reporter) {
  FormChecker checker(reporter);
  checker.check(root, object(modelType()), "");
  return std::move(checker.bad);
}

} // namespace attune::spec
