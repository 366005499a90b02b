//===- TokenOptions.h - Options that choose tokens --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_CLI_TOKENOPTIONS_H
#define ATTUNE_LIB_RUNTIME_CLI_TOKENOPTIONS_H

#include <string_view>

namespace attune::runtime {

/// Whether an option of `generate` says how many tokens there are or how the
/// next one is chosen, whatever tokens are: text or codes of a sound.
bool choosesTokens(std::string_view option);

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_CLI_TOKENOPTIONS_H
