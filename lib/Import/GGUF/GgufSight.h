//===- GgufSight.h - Pairs of GGUF files that see ---------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_IMPORT_GGUF_GGUFSIGHT_H
#define ATTUNE_LIB_IMPORT_GGUF_GGUFSIGHT_H

#include "GgufConfig.h"

namespace attune::gguf {

/// The config.json of a pair, whose text model has the config.json `text`. An
/// error names the key or tensor and its place.
std::optional<std::string> makeSightConfig(const File &model,
                                           const Family &family,
                                           const std::string &text,
                                           DiagnosticEngine &diags);

/// What the part that sees has otherwise than the classes of Hugging Face.
void adaptToSight(const File &model, spec::Model &description);

/// Whether the text model reads vectors of pictures; their streams are before
/// its own.
bool sees(const spec::Model &model);

} // namespace attune::gguf

#endif // ATTUNE_LIB_IMPORT_GGUF_GGUFSIGHT_H
