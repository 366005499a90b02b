//===- PromptImages.h - Pictures of a prompt --------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_CLI_PROMPTIMAGES_H
#define ATTUNE_LIB_RUNTIME_CLI_PROMPTIMAGES_H

#include "attune/Runtime/Chat.h"
#include "attune/Runtime/Cli.h"
#include "attune/Runtime/CompiledModel.h"

namespace attune::runtime {

/// Reads the pictures of `options.images` into `options.pixels`.
bool readImages(const CompiledModel &model, GenerateOptions &options,
                Error &error);

/// The ids of `text` in the chat template's layout. Pictures that no token of
/// the text names come before it, as the template puts them.
bool encodeMessage(const CompiledModel &model, const GenerateOptions &options,
                   const ChatPrompt &chat, const Tokenizer &tokenizer,
                   const std::string &text, std::vector<int64_t> &ids,
                   Error &error);

/// Of each image token the prompt gets as many as a picture has vectors.
bool placeImages(const CompiledModel &model, size_t images,
                 std::vector<int64_t> &ids, Error &error);

/// The encoder's input that pictures are read into; null if there is none.
const ArgInfo *findImageInput(const CompiledModel &model);

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_CLI_PROMPTIMAGES_H
