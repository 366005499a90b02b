//===- Audio.cpp - How a model hears --------------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Audio.h"

#include <algorithm>

namespace attune::spec {

/// What goes with a waveform alone, and what with frames alone.
static constexpr const char *ofWaveforms[] = {"letters", "blank", "normalise"};
static constexpr const char *ofFrames[] = {
    "window", "hop",           "languages",        "tasks",       "language",
    "start",  "no_timestamps", "timestamp_frames", "latest_begin"};

/// The letters of a model whose result has `width` channels.
static void parseLetters(const Object &object, int64_t width, Audio &audio) {
  for (const char *key : ofFrames)
    if (object.has(key))
      object.error(key, "belongs to an input [batch, bands, frames], which " +
                            quote(audio.input) + " is not");
  audio.normalise = object.boolean("normalise", false);
  const Value *letters = object.get("letters");
  if (!letters) {
    if (!object.has("letters"))
      object.missing("letters", "what each id of the result is written as");
    return;
  }
  for (const Value &letter : letters->elements)
    audio.letters.push_back(letter.text);
  auto count = int64_t(audio.letters.size());
  if (count == 0 || (width > 0 && count > width))
    object.error("letters", "has " + std::to_string(count) +
                                " letters, but the model's result " +
                                std::to_string(width) + " channels");
  audio.blank = object.integer("blank", audio.blank).value_or(audio.blank);
  if (audio.blank >= count)
    object.error("blank", "is " + std::to_string(audio.blank) + " of " +
                              std::to_string(count) + " letters");
}

/// What sound becomes: frames, or samples that have letters or codes.
enum class Form { Frames, Letters, Codes };

/// Nothing after an error.
static std::optional<Form> checkInput(const Object &object,
                                      const std::vector<TensorSpec> &inputs,
                                      Audio &audio) {
  auto found =
      std::find_if(inputs.begin(), inputs.end(), [&](const TensorSpec &input) {
        return input.name == audio.input;
      });
  if (found == inputs.end()) {
    object.error("input", "the model has no input " + quote(audio.input));
    return std::nullopt;
  }
  const std::vector<Dim> &shape = found->shape;
  if (found->dtype == DType::F32 && shape.size() == 2)
    return Form::Letters;
  bool isCoded = found->dtype == DType::F32 && shape.size() == 3 &&
                 shape[1].size < 0 && shape[2].size > 0;
  if (isCoded) {
    for (const auto &keys :
         {std::vector(std::begin(ofFrames), std::end(ofFrames)),
          std::vector(std::begin(ofWaveforms), std::end(ofWaveforms))})
      for (const char *key : keys)
        if (object.has(key))
          object.error(key, "is not for samples that codes are made of, as " +
                                quote(audio.input) + " holds");
    return Form::Codes;
  }
  if (found->dtype != DType::F32 || shape.size() != 3 || shape[1].size < 0 ||
      shape[2].size < 0) {
    object.error("input", "sound becomes an f32 input [batch, bands, frames] "
                          "with so many bands and frames, or [batch, "
                          "samples] or [batch, samples, channels], which " +
                              quote(audio.input) + " is not");
    return std::nullopt;
  }
  for (const char *key : ofWaveforms)
    if (object.has(key))
      object.error(key, "belongs to an input [batch, samples], which " +
                            quote(audio.input) + " is not");
  // Before its first sample a sound goes on as its own reflection.
  if (shape[2].size * audio.hop <= audio.window / 2)
    object.error("window", "is more than twice the " +
                               std::to_string(shape[2].size * audio.hop) +
                               " samples of all frames of " +
                               quote(audio.input));
  return Form::Frames;
}

Audio parseAudio(
    const Object &object, const std::vector<TensorSpec> &inputs, int64_t width,
    const std::function<Known(const Value &value, const std::string &pointer)>
        &token) {
  Audio audio;
  audio.location = object.getLocation();
  audio.input = object.string("input", "input_features");
  audio.rate = object.integer("rate", audio.rate).value_or(audio.rate);
  audio.window = object.integer("window", audio.window).value_or(audio.window);
  audio.hop = object.integer("hop", audio.hop).value_or(audio.hop);
  Form form = checkInput(object, inputs, audio).value_or(Form::Frames);
  if (form == Form::Codes)
    audio.window = audio.hop = 0;
  if (form == Form::Letters)
    parseLetters(object, width, audio);
  if (form != Form::Frames)
    return audio;
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
