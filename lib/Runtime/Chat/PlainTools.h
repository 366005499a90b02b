//===- PlainTools.h - Tools for templates that know none --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A chat template that knows no tools (Gemma 3, DeepSeek V3 and R1) lays out
// messages of texts alone. So the system says which tools there are and how a
// call is written, calls are part of an answer's text, and the user says what
// came out.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_CHAT_PLAINTOOLS_H
#define ATTUNE_LIB_RUNTIME_CHAT_PLAINTOOLS_H

#include "attune/Runtime/Json.h"

#include <string>

namespace attune::runtime {

/// What the model is told of tools.
std::string describeTools(const JsonValue &tools);

/// Whether messages have calls of tools, or their results.
bool hasCalls(const JsonValue &messages);

/// Makes texts of calls and results in messages, and lets the system tell the
/// model of tools, unless `description` is empty: in its message, in one in
/// front of all, or in front of what the user says first if the template has no
/// system. Messages of a user that come to stand behind each other become one.
void tellOfTools(JsonValue &messages, const std::string &description,
                 bool takesSystem);

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_CHAT_PLAINTOOLS_H
