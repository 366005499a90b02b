//===- ModelSource.h - The model that MODEL names ---------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_DRIVER_MODELSOURCE_H
#define ATTUNE_LIB_DRIVER_MODELSOURCE_H

#include "HeadChoice.h"
#include "Options/Options.h"
#include "Report/Report.h"

#include "attune/Transforms/LowRank.h"
#include "attune/Weights/LoraBranches.h"
#include "attune/Weights/TensorEncoding.h"

#include <map>
#include <memory>
#include <optional>
#include <string>

namespace attune::driver {

/// A model as the command line names it, read and checked but not imported.
struct ModelSource {
  /// The model of a description or a Hugging Face folder; nothing for an .mlir
  /// file.
  std::optional<spec::Model> model;
  /// The text that locations point into.
  std::shared_ptr<const SourceFile> file;
  std::string checkpointPath; ///< empty: there are no weights
  std::string tokenizerPath;  ///< empty: there is no tokenizer
  std::string folder;         ///< of a Hugging Face model; else empty
  /// See readChatTemplate(); empty: there is none, or the verb has no use for
  /// it.
  std::string chatJson;
  std::string imagesJson; ///< preprocessor_config.json of a model that sees
  /// As in ImportedModel.
  std::vector<std::string> leftOut;
  std::map<std::string, StoredTensor, std::less<>> stored;

  /// What --quantize says, else the description.
  std::optional<QuantizationRules> quantize;
  /// What --low-rank says, else the description; nothing: matrices stay whole.
  std::optional<LowRankRules> lowRank;
  std::shared_ptr<MatrixRanks> ranks;           ///< if `lowRank` needs values
  MeshAxes mesh;                                ///< what --mesh says
  std::shared_ptr<const LoraBranches> branches; ///< with --lora-apart
  /// What --prune-heads says, else the description; nothing: all heads stay.
  std::optional<PrunedHeads> heads;

  /// The model as it is counted: without the heads that are pruned.
  const spec::Model &counted() const { return heads ? heads->counted : *model; }

  bool isMlir() const { return !model; }
};

/// Says what a file or folder is that cannot be MODEL; false then. What is not
/// there is not looked at.
bool checkIsModel(const std::string &path, DiagnosticEngine &diags);

/// Reads MODEL. `--tap` and `--dtype` are already applied to the result.
/// Everything found wrong is reported.
std::optional<ModelSource> openModel(const Options &options, Report &report);

} // namespace attune::driver

#endif // ATTUNE_LIB_DRIVER_MODELSOURCE_H
