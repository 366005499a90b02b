//===- Error.h - Errors, for people and for scripts -------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_RUNTIME_ERROR_H
#define ATTUNE_RUNTIME_ERROR_H

#include <string>
#include <utility>

namespace attune::runtime {

/// The exit codes of every program that runs a model.
enum ExitStatus : int {
  ExitSuccess = 0,
  ExitBadInput = 1,
  ExitBadCommandLine = 2,
  ExitResourceLimit = 4,
  ExitInternalError = 70,
};

/// Filled by functions that return false or null.
struct Error {
  int code = ExitSuccess;
  /// The input is sound, but asks for something that is not there.
  bool unsupported = false;
  std::string message;

  bool set(int status, std::string text) {
    code = status;
    unsupported = false;
    message = std::move(text);
    return false;
  }
  bool badInput(std::string text) { return set(ExitBadInput, std::move(text)); }
  bool notSupported(std::string text) {
    set(ExitBadInput, std::move(text));
    unsupported = true;
    return false;
  }
};

} // namespace attune::runtime

#endif // ATTUNE_RUNTIME_ERROR_H
