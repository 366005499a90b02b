//===- ToolCalls.h - Calls of tools in a model's text -----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_SERVE_TOOLCALLS_H
#define ATTUNE_LIB_RUNTIME_SERVE_TOOLCALLS_H

#include <string>
#include <string_view>
#include <vector>

namespace attune::runtime {

struct ToolCall {
  std::string name;
  std::string arguments; ///< JSON
};

/// Finds calls in a text that comes in pieces. Models write them in one of two
/// ways: as JSON between <tool_call> and </tool_call>, after other text or
/// not (Hermes, Qwen), or as nothing but JSON, an object or an array of them
/// (Llama 3, and Mistral, whose marks are special tokens). An object has a
/// "name" and "arguments", or "parameters".
class ToolCallFinder {
public:
  /// Takes the next piece; the text that is certainly no call.
  std::string push(std::string_view piece);
  /// The rest of the text: all that was held back if it is no call.
  std::string finish(std::vector<ToolCall> &calls);

private:
  std::string held;
  bool hasBegun = false; ///< something but white space came
  bool isCall = false;   ///< from the beginning of `held` on
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_SERVE_TOOLCALLS_H
