//===- AudioParser.cpp - How a model hears --------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AudioParser.h"

#include <algorithm>

namespace attune::spec {

static void checkInput(const Object &object,
                       const std::vector<TensorSpec> &inputs, Audio &audio) {
  auto found =
      std::find_if(inputs.begin(), inputs.end(), [&](const TensorSpec &input) {
        return input.name == audio.input;
      });
  if (found == inputs.end())
    return object.error("input",
                        "the model has no input " + quote(audio.input));
  const std::vector<Dim> &shape = found->shape;
  if (found->dtype != DType::F32 || shape.size() != 3 || shape[1].size < 0 ||
      shape[2].size < 0)
    return object.error("input",
                        "sound becomes an f32 input [batch, bands, frames] "
                        "with so many bands and frames, which " +
                            quote(audio.input) + " is not");
  // Before its first sample a sound goes on as its own reflection.
  if (shape[2].size * audio.hop <= audio.window / 2)
    object.error("window", "is more than twice the " +
                               std::to_string(shape[2].size * audio.hop) +
                               " samples of all frames of " +
                               quote(audio.input));
}

Audio parseAudio(
    const Object &object, const std::vector<TensorSpec> &inputs,
    const std::function<Known(const Value &value, const std::string &pointer)>
        &token) {
  Audio audio;
  audio.location = object.getLocation();
  audio.input = object.string("input", "input_features");
  audio.rate = object.integer("rate", audio.rate).value_or(audio.rate);
  audio.window = object.integer("window", audio.window).value_or(audio.window);
  audio.hop = object.integer("hop", audio.hop).value_or(audio.hop);
  checkInput(object, inputs, audio);
  auto one = [&](const char *key) -> Known {
    const Value *value = object.get(key);
    return value ? token(*value, child(object.getPointer(), key))
                 : std::nullopt;
  };
  auto named = [&](const char *key, std::map<std::string, int64_t> &ids) {
    const Value *value = object.get(key);
    if (!value)
      return;
    std::string at = child(object.getPointer(), key);
    for (const Value::Member &member : value->members)
      if (Known id = token(member.value, child(at, member.key)))
        ids[member.key] = *id;
  };
  named("languages", audio.languages);
  named("tasks", audio.tasks);
  audio.language = one("language");
  audio.noTimestamps = one("no_timestamps");
  if (const Value *start = object.get("start")) {
    std::string at = child(object.getPointer(), "start");
    for (size_t i = 0; i < start->elements.size(); ++i)
      if (Known id = token(start->elements[i], child(at, i)))
        audio.start.push_back(*id);
  }
  audio.timestampFrames =
      object.integer("timestamp_frames", audio.timestampFrames)
          .value_or(audio.timestampFrames);
  audio.latestBegin = object.integer("latest_begin", std::nullopt);
  return audio;
}

} // namespace attune::spec
