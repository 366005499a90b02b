//===- CliTranscribe.h - generate --audio -----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_CLI_CLITRANSCRIBE_H
#define ATTUNE_LIB_RUNTIME_CLI_CLITRANSCRIBE_H

#include "attune/Runtime/Cli.h"

namespace attune::runtime {

/// Writes down what the file `options.audio` says, window by window.
bool transcribe(CompiledModel &model, const GenerateOptions &options, FILE *out,
                const Messages &messages, Error &error);

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_CLI_CLITRANSCRIBE_H
