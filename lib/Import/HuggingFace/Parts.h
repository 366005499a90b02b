//===- Parts.h - Parts of a folder that are no model of ours ----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_IMPORT_HUGGINGFACE_PARTS_H
#define ATTUNE_LIB_IMPORT_HUGGINGFACE_PARTS_H

#include "attune/Import/HuggingFace.h"
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
  /// What images are resized to, if that was said and the tower takes any size.
  std::optional<ImageSize> imageSize;
  bool sized = false;
  /// How its tokens' positions turn heads where there are images.
  spec::RopeSections sections;
};

/// Nothing if config.json is itself that of a known architecture, or has no
/// text_config.
std::optional<TextPart> findTextPart(const spec::Value &root);

/// Names the tensors of `model` as the multimodal checkpoint calls them.
bool renameTextTensors(spec::Model &model, const TextPart &text,
                       const Checkpoint &checkpoint, Config &config,
                       DiagnosticEngine &diags);

/// The same for a model of texts alone whose weights were saved by another
/// class: as a multimodal checkpoint has them, or without "model.". A note says
/// so.
void renameMovedTensors(spec::Model &model, const Checkpoint &checkpoint,
                        Config &config, DiagnosticEngine &diags);

/// What a multimodal folder is read from.
struct SightSource {
  const spec::Value &root; ///< the whole config.json
  ImportContext &context;  ///< of the text model
  const Checkpoint &checkpoint;
  KeyReport &keys;
  spec::Reporter &reporter;

  /// `vision_config`; null: there is none, or it is ignored.
  const spec::Value *tower() const;
  /// The first of `prefixes` under which the checkpoint has `rest`; empty:
  /// none.
  std::string findPrefix(std::initializer_list<const char *> prefixes,
                         const char *rest) const;
};

/// Reads what is before a text model into `sight`: the streams "vision" (the
/// tower) and "images" (the projector), others that are read like the latter,
/// and layers that insert their vectors: the first behind the embedding, each
/// other one behind the next block. Sets `part.sees`, unless the tower is none
/// that is known: then the model stays one of texts. False after an error.
bool readSight(const SightSource &source, TextPart &part, spec::Model &sight);
/// The same of Gemma 3 and PaliGemma, of LLaVA with a tower of CLIP, SigLIP or
/// Pixtral, LLaVA-NeXT and Mistral 3, of Idefics 3 and SmolVLM, of LFM2-VL, of
/// InternVL in transformers' form, and of Qwen-VL from the second on.
bool readGemmaVision(const SightSource &source, TextPart &part,
                     spec::Model &sight);
bool readLlava(const SightSource &source, TextPart &part, spec::Model &sight);
bool readIdefics3(const SightSource &source, TextPart &part,
                  spec::Model &sight);
bool readLfm2Vl(const SightSource &source, TextPart &part, spec::Model &sight);
bool readInternVL(const SightSource &source, TextPart &part,
                  spec::Model &sight);
/// Whether a folder is one of Qwen-VL.
bool isQwenVision(const spec::Value &root);
bool readQwenVision(const SightSource &source, TextPart &part,
                    spec::Model &sight);
/// Puts it before the text model.
bool joinSight(const TextPart &part, spec::Model sight, spec::Model &model,
               Config &config);

/// Prefixes of tensors that the model leaves out, if the checkpoint has such:
/// layers that predict further tokens, heads of other classes, the towers of a
/// multimodal model. A note says what was found.
std::vector<std::string> findLeftOut(Config &config, const ModelClass &chosen,
                                     const TextPart *text,
                                     const Checkpoint &checkpoint,
                                     DiagnosticEngine &diags);

} // namespace attune::hf

#endif // ATTUNE_LIB_IMPORT_HUGGINGFACE_PARTS_H
