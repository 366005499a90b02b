//===- EncoderDecoder.h - Shared by encoder-decoders ------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_IMPORT_HUGGINGFACE_ENCODERDECODERS_ENCODERDECODER_H
#define ATTUNE_LIB_IMPORT_HUGGINGFACE_ENCODERDECODERS_ENCODERDECODER_H

#include "attune/Import/HuggingFace/StreamBuilder.h"

namespace attune::hf {

/// Inputs and outputs of a model of two streams "encoder" and "decoder" (or the
/// first alone) under the names of Hugging Face: `input_ids`,
/// `decoder_input_ids`; `logits` or `last_hidden_state`, and
/// `encoder_last_hidden_state`. An encoder that has its input already keeps it.
void declareTextInputs(ImportContext &context, spec::Model &model);

/// The encoder of T5 as the stream "encoder"; tensors' names begin with
/// `prefix`. Nothing after an error.
std::optional<spec::Stream> readT5Encoder(Config &config,
                                          const Checkpoint *checkpoint,
                                          const std::string &prefix);

/// EnCodec. The codes of codebook k, which samples are made of, stand in the
/// input `codes[k]`.
struct SoundCodec {
  std::vector<spec::Stream> streams; ///< the last is "sound"
  std::vector<spec::Stream> encoder; ///< of `samples`; the last is "samples"
  spec::TensorSpec samples;
  spec::Audio audio; ///< of `samples`
  spec::Playback playback;
};
/// Declares `count` inputs [batch, frames] of codes, `name` with numbers behind
/// it, and gives their names.
std::vector<std::string> declareCodes(Config &config, const std::string &name,
                                      const std::string &batch,
                                      const std::string &frames, int64_t count,
                                      spec::Model &model);
/// Nothing after an error. Tensors' names begin with `prefix`.
std::optional<SoundCodec> readSoundCodec(Config &config,
                                         const std::string &prefix,
                                         const std::vector<std::string> &codes);

/// Tensor names of a block of BART and its relatives, Whisper among them.
const TensorNames &bartBlockTensors();

} // namespace attune::hf

#endif // ATTUNE_LIB_IMPORT_HUGGINGFACE_ENCODERDECODERS_ENCODERDECODER_H
