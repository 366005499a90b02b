//===- RequestMembers.h - Names that requests may have ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_SERVE_REQUESTMEMBERS_H
#define ATTUNE_LIB_RUNTIME_SERVE_REQUESTMEMBERS_H

#include "RequestFields.h"

namespace attune::runtime {

/// Looks at the names of a request's members. One that would change the answer,
/// and is not there, is refused, unless its value is the one that changes
/// nothing: an answer without it would be a wrong one. Names that nobody knows
/// are `unknown`.
bool checkMembers(const JsonValue &body, bool chat,
                  std::vector<std::string> &unknown, RequestError &error);

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_SERVE_REQUESTMEMBERS_H
