//===- Codes.cpp - Several codes written at once --------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Audio.h"

#include <algorithm>
#include <set>

namespace attune::spec {

static bool isIds(const TensorSpec &input) {
  return input.shape.size() == 2 &&
         (input.dtype == DType::I64 || input.dtype == DType::I32);
}

/// The inputs that embeddings of a stream read.
static std::vector<std::string> idsOf(const Stream &stream) {
  std::vector<std::string> ids;
  for (const Layer &layer : stream.layers)
    if (const auto *op = std::get_if<Embedding>(&layer.op))
      ids.push_back(op->input.empty() ? stream.input : op->input);
  return ids;
}

/// Each codebook has an input of ids of its own, which the last stream reads.
static void checkInputs(const Object &object, const Model &model,
                        const Codes &codes) {
  const Stream &last = model.streams.back();
  std::vector<std::string> read = idsOf(last);
  std::set<std::string> seen;
  for (const std::string &name : codes.inputs) {
    auto found = std::find_if(
        model.inputs.begin(), model.inputs.end(),
        [&](const TensorSpec &input) { return input.name == name; });
    if (found == model.inputs.end())
      return object.error("inputs", "the model has no input " + quote(name));
    if (!isIds(*found))
      return object.error("inputs", "input " + quote(name) +
                                        " holds no ids [batch, frames]");
    if (!seen.insert(name).second)
      return object.error("inputs", "names " + quote(name) + " twice");
    if (std::find(read.begin(), read.end(), name) == read.end())
      return object.error("inputs", "no embedding of the last stream reads " +
                                        quote(name));
  }
  const auto *table = std::get_if<Embedding>(&last.layers.front().op);
  if (table && codes.pad >= table->vocab)
    object.error("pad",
                 "is not in the vocabulary of " + std::to_string(table->vocab));
  if (codes.inputs.size() < 2)
    return object.error("inputs", "expected two codebooks or more");
  if (last.input != codes.inputs.front())
    object.error("inputs", "the last stream starts from " + quote(last.input) +
                               ", not from " + quote(codes.inputs.front()));
}

/// The stream that makes samples of codes reads nothing else; nothing reads it.
static void checkSound(const Object &object, const Model &model,
                       const Codes &codes) {
  auto found = std::find_if(
      model.streams.begin(), model.streams.end(),
      [&](const Stream &stream) { return stream.name == codes.sound; });
  if (found == model.streams.end() || found + 1 == model.streams.end())
    return object.error("sound",
                        found == model.streams.end()
                            ? "the model has no stream " + quote(codes.sound)
                            : "is the stream that writes the codes");
  std::vector<std::string> own = idsOf(*found);
  size_t each = codes.inputs.size() / size_t(codes.channels);
  if (own.size() != each)
    return object.error("sound",
                        "stream " + quote(codes.sound) + " reads " +
                            std::to_string(own.size()) +
                            " inputs of ids, but there are " +
                            std::to_string(each) + " codebooks" +
                            (codes.channels > 1 ? " of a channel" : ""));
  for (const std::string &name : own)
    for (const Stream &stream : model.streams) {
      std::vector<std::string> others = idsOf(stream);
      if (&stream != &*found &&
          std::find(others.begin(), others.end(), name) != others.end())
        return object.error("sound", "input " + quote(name) + " of stream " +
                                         quote(codes.sound) +
                                         " is also read by " +
                                         quote(stream.name));
    }
}

Codes parseCodes(const Object &object, const Model &model) {
  Codes codes;
  codes.location = object.getLocation();
  if (const Value *inputs = object.get("inputs"))
    for (const Value &input : inputs->elements)
      codes.inputs.push_back(input.text);
  codes.channels = object.integer("channels", 1).value_or(1);
  codes.pad = object.integer("pad", 0).value_or(0);
  codes.guidance = object.number("guidance", 1);
  codes.sound = object.string("sound");
  if (!codes.sound.empty())
    codes.rate = object.integer("rate", 32000).value_or(32000);
  else if (object.has("rate"))
    object.error("rate", "belongs to 'sound'");
  if (codes.guidance < 1)
    object.error("guidance", "is less than 1, which changes nothing");
  if (!object.get("inputs"))
    return codes;
  checkInputs(object, model, codes);
  if (codes.inputs.size() % size_t(codes.channels) != 0)
    object.error("channels", "do not share " +
                                 std::to_string(codes.inputs.size()) +
                                 " codebooks evenly");
  const Layer *head = model.streams.back().layers.empty()
                          ? nullptr
                          : &model.streams.back().layers.back();
  auto books = int64_t(codes.inputs.size());
  if (head && (!std::holds_alternative<Linear>(head->op) ||
               head->width % std::max<int64_t>(books, 1) != 0))
    object.error("inputs", "the last layer must be linear and have the scores "
                           "of all " +
                               std::to_string(books) +
                               " codebooks, one behind the other");
  if (!codes.sound.empty())
    checkSound(object, model, codes);
  return codes;
}

/// A sound of one piece or of several, each a row of the batch.
Playback parsePlayback(const Object &object, const Model &model) {
  Playback playback;
  playback.location = object.getLocation();
  if (const Value *inputs = object.get("inputs"))
    for (const Value &input : inputs->elements)
      playback.inputs.push_back(input.text);
  playback.rate = object.integer("rate", 32000).value_or(32000);
  playback.none = object.has("none") ? object.integer("none", 0) : Known();
  playback.piece = object.integer("piece", 0).value_or(0);
  playback.step =
      object.integer("step", playback.piece).value_or(playback.piece);
  playback.scaled = object.boolean("scaled", false);
  if (playback.step > playback.piece)
    object.error("step", "is more than the " + std::to_string(playback.piece) +
                             " samples of a piece");
  if (object.get("inputs") && playback.inputs.empty())
    object.error("inputs", "expected one input for each codebook");
  for (const std::string &name : playback.inputs) {
    auto found = std::find_if(
        model.inputs.begin(), model.inputs.end(),
        [&](const TensorSpec &input) { return input.name == name; });
    if (found == model.inputs.end())
      object.error("inputs", "the model has no input " + quote(name));
    else if (!isIds(*found))
      object.error("inputs",
                   "input " + quote(name) + " holds no ids [pieces, frames]");
  }
  const Layer *last =
      model.outputs.empty()
          ? nullptr
          : findResult(model.streams, model.outputs.front().layer);
  if (last && (last->pooled || last->width < 1 || last->width > 2))
    object.error("the first output is no sound [pieces, samples, channels] of "
                 "one channel or two");
  return playback;
}

void checkCoded(const Object &object, const Model &model) {
  std::string sound = model.codes ? model.codes->sound : "";
  if (sound.empty() && !model.playback)
    return object.error("input", "of samples [batch, samples, channels] codes "
                                 "are made, for which there is neither "
                                 "'playback' nor a 'sound' of 'codes'");
  // The streams that read the samples, directly or further on.
  std::vector<Stream> streams;
  for (const Stream &stream : model.streams)
    if (stream.input == model.audio->input || findResult(streams, stream.input))
      streams.push_back(stream);
  if (streams.empty() || streams.back().layers.empty() ||
      streams.back().layers.back().pooled)
    return object.error("input", "no stream makes vectors of frames of " +
                                     quote(model.audio->input));
  int64_t width = streams.back().layers.back().width;
  for (const Stream &stream : model.streams)
    for (const Layer &layer : stream.layers) {
      const auto *table = std::get_if<Embedding>(&layer.op);
      if (!table || (!sound.empty() && stream.name != sound))
        continue;
      if (table->width != width)
        return object.error("input", "stream " + quote(streams.back().name) +
                                         " makes vectors of " +
                                         std::to_string(width) +
                                         " channels, but those of a code "
                                         "have " +
                                         std::to_string(table->width));
      if (model.playback && model.playback->none &&
          *model.playback->none != table->vocab - 1)
        return object.error("input", "the 'none' of 'playback' is not the last "
                                     "of " +
                                         std::to_string(table->vocab) +
                                         " codes");
    }
}

} // namespace attune::spec
