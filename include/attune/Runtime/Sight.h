//===- Sight.h - Pictures for models that see -------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reading pictures takes libpng and libjpeg, so that it is a library of its own
// (AttuneRuntimeSight), which products of other models are not linked with.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_RUNTIME_SIGHT_H
#define ATTUNE_RUNTIME_SIGHT_H

#include "attune/Runtime/Error.h"
#include "attune/Runtime/Json.h"

#include <cstdint>
#include <string>
#include <vector>

namespace attune::runtime {

/// Reads PNG and JPEG files and makes of them what `config`, the text of a
/// preprocessor_config.json, asks for: [files, channels, height, width].
/// Another size is an error, unless the file leaves it to the model. More than
/// three channels are frames of a film, each color of all frames after another,
/// which are all the picture.
bool seePictures(const JsonValue &config, const std::vector<std::string> &files,
                 int64_t channels, int64_t height, int64_t width,
                 std::vector<float> &pixels, Error &error);

} // namespace attune::runtime

/// Makes a linker that is told of it take the library from its archive.
extern "C" const char attune_rt_sees;

#endif // ATTUNE_RUNTIME_SIGHT_H
