//===- HuggingFace.h - A Hugging Face folder as a description ---*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_IMPORT_HUGGINGFACE_H
#define ATTUNE_IMPORT_HUGGINGFACE_H

#include "attune/Spec/Spec.h"
#include "attune/Weights/TensorEncoding.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

/// Import from Hugging Face is desugaring: `config.json` becomes the
/// description that it stands for, with the checkpoint's tensor names written
/// into it. A key of `config.json` is understood, or of no consequence, or
/// reported: see lib/Import/HuggingFace/README.md.
namespace attune {

struct ImportedModel {
  /// Its locations point into config.json.
  spec::Model model;
  std::string folder;
  /// The tokenizer file of the folder, or empty.
  std::string tokenizerPath;
  /// The argument for `Checkpoint::open`: the caller's weights if it named
  /// some, else the folder if there is a checkpoint in it, else empty.
  std::string checkpointPath;
  /// Tensors of the checkpoint whose names start with one of these belong to
  /// parts that the model leaves out; the user was told.
  std::vector<std::string> leftOut;
  /// Tensors that the checkpoint keeps as numbers with scales.
  std::map<std::string, StoredTensor, std::less<>> stored;
};

/// Pixels that pictures are resized to.
struct ImageSize {
  int64_t height = 0, width = 0;
};

/// Whether `path` is a folder, or a `config.json` as Hugging Face writes it (it
/// names a "model_type" or "architectures" and no "attune" version).
bool isHuggingFacePath(const std::string &path);

/// Imports a folder or its `config.json`. `weights`, if not empty, names a
/// checkpoint to use instead of the folder's own; the names of its tensors
/// decide whether the description carries the prefix ("transformer.", "model.")
/// that Hugging Face files may have or lack. Without any checkpoint the
/// description names tensors as current Hugging Face versions write them.
/// `ignoredKeys` count as absent (`--ignore-config-key`).
///
/// A multimodal folder gives the text model in its `text_config`, if its
/// architecture is known, and its tower of images, if that is. One that takes
/// images of any size takes those of `imageSize` (`--image-size`).
std::optional<ImportedModel>
importHuggingFace(const std::string &path, DiagnosticEngine &diags,
                  const std::string &weights = "",
                  const std::vector<std::string> &ignoredKeys = {},
                  std::optional<ImageSize> imageSize = std::nullopt);

/// The values of "model_type" that can be imported.
std::vector<std::string> knownArchitectures();

} // namespace attune

#endif // ATTUNE_IMPORT_HUGGINGFACE_H
