//===- AudioSchema.cpp - Table of what hearing needs ------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SchemaTypes.h"

namespace attune::spec {

const ObjectType &audioType() {
  static const ObjectType type{
      "audio",
      "How sound becomes an input [batch, bands, frames], the logarithms of "
      "power in mel bands, and the tokens that tell a decoder what to write of "
      "it; or how an input [batch, samples] is the sound itself, and what the "
      "likeliest ids of its frames are written as; or that codes are made of "
      "an input [batch, samples, channels], the nearest in the tables of a "
      "codec.",
      {
          {"input", string(), "default input_features"},
          {"rate", integer(1000, 1000000), "samples a second; default 16000"},
          {"window", integer(2, 65536),
           "samples that a frame is made of; default 400"},
          {"hop", integer(1, 65536),
           "samples from frame to frame; default 160"},
          {"languages", map(integer(0)),
           "tokens of languages by their codes, such as en"},
          {"tasks", map(integer(0)),
           "tokens of tasks by their names, such as translate"},
          {"language", integer(0),
           "the language's token unless one is asked for; default the "
           "likeliest "
           "of languages"},
          {"start", array(integer(0)),
           "what follows the language unless a language or task is asked for"},
          {"no_timestamps", integer(0),
           "says that no times are wanted; the tokens behind it are times"},
          {"timestamp_frames", integer(1),
           "frames from one of these times to the next; default 2"},
          {"latest_begin", integer(0),
           "number of the latest time that a window's text begins with; "
           "default any"},
          {"letters", array(string()),
           "of samples: what each id is written as; empty: nothing"},
          {"blank", integer(0),
           "of samples: the id that parts equal letters, of which neighbours "
           "are one; default 0"},
          {"normalise", boolean(),
           "of samples: give them a mean of 0 and a variance of 1; default "
           "false"},
      },
      {},
      {}};
  return type;
}

const ObjectType &codesType() {
  static const ObjectType type{
      "codes",
      "How the last stream writes a frame of sound, one code of each codebook, "
      "in one step. Codebook k runs k frames late.",
      {
          {"inputs", array(string()),
           "inputs [batch, frames] of ids, one for each codebook; the last "
           "layer has the scores of all codebooks, one behind the other",
           true},
          {"channels", integer(1, 2),
           "of the sound, whose codebooks take turns: k is number k / channels "
           "of channel k % channels, and runs that many frames late; default "
           "1"},
          {"pad", integer(0), "stands where a codebook has no code", true},
          {"guidance", number(),
           "scores become those without a text plus so many times what the "
           "text "
           "changes; default 1"},
          {"sound", string(),
           "the stream that makes samples of a channel's codes, which it reads "
           "from inputs of its own; it is no part of a forward pass"},
          {"rate", integer(1000, 1000000),
           "of 'sound': samples a second; default 32000"},
      },
      {},
      {}};
  return type;
}

const ObjectType &playbackType() {
  static const ObjectType type{
      "playback",
      "How the first output [pieces, samples, channels] is made of codes and "
      "played.",
      {
          {"inputs", array(string()),
           "inputs [pieces, frames] of ids, one for each codebook", true},
          {"rate", integer(1000, 1000000), "samples a second", true},
          {"none", integer(0),
           "the id for no code, which lets the first codebooks be played "
           "alone; default all are needed"},
          {"piece", integer(1), "samples of a whole piece; default any"},
          {"step", integer(1),
           "samples from one piece to the next, which fade into each other "
           "where they overlap; default 'piece'"},
          {"scaled", boolean(),
           "each piece has a loudness that multiplies it; default false"},
      },
      {},
      {}};
  return type;
}

} // namespace attune::spec
