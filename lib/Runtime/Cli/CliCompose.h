//===- CliCompose.h - generate of sounds ------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_CLI_CLICOMPOSE_H
#define ATTUNE_LIB_RUNTIME_CLI_CLICOMPOSE_H

#include "attune/Runtime/Cli.h"

namespace attune::runtime {

/// Makes a sound of a text: codes, and with `options.audioOut` samples of them.
bool compose(CompiledModel &model, const GenerateOptions &options, FILE *out,
             const Messages &messages, Error &error);

/// Makes a sound of the codes in `options.codes`.
bool play(CompiledModel &model, const GenerateOptions &options,
          const Messages &messages, Error &error);

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_CLI_CLICOMPOSE_H
