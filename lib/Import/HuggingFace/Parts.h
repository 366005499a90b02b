//===- Parts.h - Parts of a folder that are no model of ours ----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_IMPORT_HUGGINGFACE_PARTS_H
#define ATTUNE_LIB_IMPORT_HUGGINGFACE_PARTS_H

#include "attune/Import/HuggingFace/Architecture.h"

namespace attune::hf {

/// The text model of a multimodal folder.
struct TextPart {
  /// The members of `text_config`, and those of the whole that concern the
  /// text model and that it does not repeat.
  spec::Value object;
  std::string whole, type; ///< both model types, quoted
  /// Prefixes of tensors of a tower behind the layer whose features are read.
  std::vector<std::string> unread;
  bool sees = false; ///< its tower of images is a part of the model
};

/// Nothing if config.json is itself that of a known architecture, or has no
/// text_config.
std::optional<TextPart> findTextPart(const spec::Value &root);

/// Names the tensors of `model` as the multimodal checkpoint calls them.
bool renameTextTensors(spec::Model &model, const TextPart &text,
                       const Checkpoint &checkpoint, Config &config,
                       DiagnosticEngine &diags);

/// Reads what LLaVA has before its text model into `sight`: the streams
/// "vision" (CLIP's tower) and "images" (the projector), and one layer that
/// inserts the vectors of the latter. `root` is the whole config.json. Sets
/// `part.sees`, unless the tower is none that is known: then the model stays
/// one of texts. False after an error.
bool readSight(const spec::Value &root, ImportContext &context, TextPart &part,
               const Checkpoint &checkpoint, KeyReport &keys,
               spec::Reporter &reporter, spec::Model &sight);
/// Puts it before the text model.
bool joinSight(spec::Model sight, spec::Model &model, Config &config);

/// Prefixes of tensors that the model leaves out, if the checkpoint has such:
/// layers that predict further tokens, heads of other classes, the towers of a
/// multimodal model. A note says what was found.
std::vector<std::string> findLeftOut(Config &config, const ModelClass &chosen,
                                     const TextPart *text,
                                     const Checkpoint &checkpoint,
                                     DiagnosticEngine &diags);

} // namespace attune::hf

#endif // ATTUNE_LIB_IMPORT_HUGGINGFACE_PARTS_H
