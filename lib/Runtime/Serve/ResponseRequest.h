//===- ResponseRequest.h - What /v1/responses is asked ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_SERVE_RESPONSEREQUEST_H
#define ATTUNE_LIB_RUNTIME_SERVE_RESPONSEREQUEST_H

#include "RequestFields.h"

namespace attune::runtime {

/// Makes the body of a chat of a body of OpenAI's Responses API: items become
/// messages, and members get the names that chats have for them. What is not
/// kept from one request to the next, or is done by nobody here, is refused.
bool makeChatBody(const JsonValue &body, JsonValue &chat, RequestError &error);

/// An error that was found in such a body names its members again.
void nameMembersOfResponse(RequestError &error);

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_SERVE_RESPONSEREQUEST_H
