//===- WholeFile.h - Files that appear whole or not at all ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_RUNTIME_WHOLEFILE_H
#define ATTUNE_RUNTIME_WHOLEFILE_H

#include "attune/Runtime/Error.h"
#include "attune/Runtime/Safetensors.h"

#include <string>
#include <string_view>

namespace attune::runtime {

/// Where a result goes: what a link leads to, also if nothing is there yet.
struct OutputPlace {
  std::string path;
  bool exists = false, isFolder = false;
  /// A device, a pipe, or whatever else a system names in /dev and /proc: it is
  /// written to and never replaced.
  bool isStream = false;
};
/// Follows the links at `path`; false, with a reason, if there is no end.
bool findOutputPlace(const std::string &path, OutputPlace &place,
                     std::string &reason);

/// Whether both paths are one file that exists.
bool isSameFile(const std::string &one, const std::string &other);
/// False, with an error, if a result would replace a file that was read.
bool keepsInput(const std::string &input, const std::string &output,
                Error &error);

/// Reads a file of at most `most` bytes.
bool readWholeFile(const std::string &path, size_t most, std::string &text,
                   Error &error);

/// Writes `head` and then `body` to the file `path`. Until all of it is there
/// the file has another name.
bool writeWholeFile(const std::string &path, std::string_view head,
                    std::string_view body, Error &error);

/// Writes one tensor as NumPy's format .npy, version 1.0 (its specification:
/// numpy.lib.format). NumPy has neither bf16 nor f8; such values are widened
/// to f32.
bool writeNpy(const std::string &path, const TensorDecl &tensor,
              const void *data, Error &error);

} // namespace attune::runtime

#endif // ATTUNE_RUNTIME_WHOLEFILE_H
