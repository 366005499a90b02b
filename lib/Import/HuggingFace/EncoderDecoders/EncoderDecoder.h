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

/// Tensor names of a block of BART and its relatives, Whisper among them.
const TensorNames &bartBlockTensors();

} // namespace attune::hf

#endif // ATTUNE_LIB_IMPORT_HUGGINGFACE_ENCODERDECODERS_ENCODERDECODER_H
