//===- PrintModel.cpp - What is around a model's layers ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Defaults.h"
#include "Print.h"

namespace attune::spec {

static Json print(const TensorSpec &tensor) {
  Json json = Json::object();
  json["dtype"] = stringify(tensor.dtype);
  json["shape"] = Json::array();
  for (const Dim &dim : tensor.shape) {
    if (dim.size < 0)
      json["shape"].push_back(dim.symbol);
    else
      json["shape"].push_back(dim.size);
  }
  if (!tensor.fallback.empty())
    json["default"] = tensor.fallback;
  return json;
}

/// Whether the parser would find this stream's input without being told.
static bool hasDefaultInput(const Model &model, const Stream &stream) {
  if (!stream.layers.empty())
    if (const auto *op = std::get_if<Attention>(&stream.layers.front().op))
      if (!op->projections)
        return stream.input.empty();
  const Embedding *table =
      stream.layers.empty() ? nullptr
                            : std::get_if<Embedding>(&stream.layers.front().op);
  if (table && !table->input.empty())
    return table->input == stream.input;
  bool image = !stream.layers.empty() &&
               std::holds_alternative<Conv>(stream.layers.front().op);
  return defaultInput(model, table != nullptr, image) == stream.input;
}

static void printStreams(const Model &model, Json &json) {
  if (model.streams.size() == 1 && model.streams.front().name == "main" &&
      hasDefaultInput(model, model.streams.front())) {
    json["layers"] = print(model.streams.front().layers);
    return;
  }
  json["streams"] = Json::object();
  for (const Stream &stream : model.streams) {
    Json entry = Json::object();
    if (!stream.input.empty())
      entry["input"] = stream.input;
    entry["layers"] = print(stream.layers);
    json["streams"][stream.name] = std::move(entry);
  }
}

static Json print(const Generation &generation) {
  Json json = Json::object();
  if (generation.eos.size() == 1)
    json["eos"] = generation.eos.front();
  else if (!generation.eos.empty())
    json["eos"] = generation.eos;
  if (generation.bos)
    json["bos"] = *generation.bos;
  if (generation.pad)
    json["pad"] = *generation.pad;
  if (generation.decoderStart)
    json["decoder_start"] = *generation.decoderStart;
  if (generation.forcedBos)
    json["forced_bos"] = *generation.forcedBos;
  if (!generation.suppress.empty())
    json["suppress"] = generation.suppress;
  if (!generation.beginSuppress.empty())
    json["begin_suppress"] = generation.beginSuppress;
  for (const auto &[setting, value] : generation.sampling) {
    Json &entry = json["sampling"][setting->name];
    if (setting->kind == SamplingSetting::Flag && value == 2)
      entry = "never";
    else if (setting->kind == SamplingSetting::Flag)
      entry = value != 0;
    else if (setting->kind == SamplingSetting::Whole)
      entry = int64_t(value);
    else
      entry = value;
  }
  return json;
}

static Json toJson(const Audio &audio) {
  Json json = Json::object();
  json["input"] = audio.input;
  json["rate"] = audio.rate;
  if (!audio.letters.empty()) {
    if (audio.normalise)
      json["normalise"] = true;
    json["letters"] = audio.letters;
    json["blank"] = audio.blank;
    return json;
  }
  if (audio.window == 0)
    return json;
  json["window"] = audio.window;
  json["hop"] = audio.hop;
  if (!audio.languages.empty())
    json["languages"] = audio.languages;
  if (!audio.tasks.empty())
    json["tasks"] = audio.tasks;
  if (audio.language)
    json["language"] = *audio.language;
  if (!audio.start.empty())
    json["start"] = audio.start;
  if (audio.noTimestamps) {
    json["no_timestamps"] = *audio.noTimestamps;
    json["timestamp_frames"] = audio.timestampFrames;
  }
  if (audio.latestBegin)
    json["latest_begin"] = *audio.latestBegin;
  return json;
}

std::string print(const Audio &audio) { return toJson(audio).dump(); }

static Json toJson(const Codes &codes) {
  Json json = Json::object();
  json["inputs"] = codes.inputs;
  if (codes.channels != 1)
    json["channels"] = codes.channels;
  json["pad"] = codes.pad;
  if (codes.guidance != 1)
    json["guidance"] = codes.guidance;
  if (!codes.sound.empty()) {
    json["sound"] = codes.sound;
    json["rate"] = codes.rate;
  }
  return json;
}

std::string print(const Codes &codes) { return toJson(codes).dump(); }

static Json toJson(const Playback &playback) {
  Json json = Json::object();
  json["inputs"] = playback.inputs;
  json["rate"] = playback.rate;
  if (playback.none)
    json["none"] = *playback.none;
  if (playback.piece != 0) {
    json["piece"] = playback.piece;
    json["step"] = playback.step;
  }
  if (playback.scaled)
    json["scaled"] = true;
  return json;
}

std::string print(const Playback &playback) { return toJson(playback).dump(); }

std::string print(const Model &model) {
  Json json = Json::object();
  json["attune"] = 1;
  json["name"] = model.name;
  if (!model.description.empty())
    json["description"] = model.description;
  if (!model.dims.empty())
    json["dims"] = model.dims;
  Json inputs = Json::object();
  for (const TensorSpec &input : model.inputs)
    inputs[input.name] = print(input);
  json["inputs"] = std::move(inputs);
  printStreams(model, json);
  Json outputs = Json::object();
  for (const Output &output : model.outputs)
    outputs[output.name] = output.layer;
  json["outputs"] = std::move(outputs);
  if (model.dtype != DType::F32)
    json["dtype"] = stringify(model.dtype);
  for (auto [key, text] :
       {std::pair("quantize", &model.quantize),
        std::pair("low_rank", &model.lowRank), std::pair("mesh", &model.mesh),
        std::pair("prune_heads", &model.pruneHeads)})
    if (!text->empty())
      json[key] = *text;
  if (model.activations != RowForm::Bytes)
    json["activations"] = stringify(model.activations);
  if (model.kvCache != KvCache::Full)
    json["kv_cache"] = stringify(model.kvCache);
  if (model.windowSlack != usualWindowSlack)
    json["window_slack"] = model.windowSlack;
  if (model.context != 0)
    json["context"] = model.context;
  if (Json generation = print(model.generation); !generation.empty())
    json["generation"] = std::move(generation);
  if (model.audio)
    json["audio"] = toJson(*model.audio);
  if (model.codes)
    json["codes"] = toJson(*model.codes);
  if (model.playback)
    json["playback"] = toJson(*model.playback);
  return writeJson(json);
}

} // namespace attune::spec
