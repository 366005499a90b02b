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

#include "attune/Runtime/Json.h"

#include <cstdint>
#include <string>

namespace attune::runtime {

struct Picture;

/// A picture with more pixels is refused before any is decoded, unless who
/// reads it says how many there may be.
inline constexpr uint64_t kMostPixels = uint64_t(1) << 27;

/// Reads a PNG or JPEG file and makes of it what `config`, the text of a
/// preprocessor_config.json, asks for. Another size is an error, unless the
/// file leaves it to the model. A file of more pixels than `pixelsLeft` is
/// refused before any is decoded; the others are taken off.
bool seePicture(const JsonValue &config, const uint8_t *bytes, uint64_t size,
                int64_t height, int64_t width, uint64_t &pixelsLeft,
                Picture &picture, std::string &problem);

} // namespace attune::runtime

/// Makes a linker that is told of it take the library from its archive.
extern "C" const char attune_rt_sees;

#endif // ATTUNE_RUNTIME_SIGHT_H
