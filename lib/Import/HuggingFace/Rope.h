//===- Rope.h - Rotary settings of both config generations ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_IMPORT_HUGGINGFACE_ROPE_H
#define ATTUNE_LIB_IMPORT_HUGGINGFACE_ROPE_H

#include "attune/Import/HuggingFace/Config.h"

namespace attune::hf {

struct RopeSettings {
  spec::Rope rope;
  int64_t context = 0; ///< longest sequence the scaling is made for
};

/// The values that a configuration class takes for absent keys.
struct RopeDefaults {
  double theta = 10000;
  const char *thetaKey = "rope_theta";
  /// Part of each head that is rotated; none where only whole heads are.
  std::optional<double> partial;
  const char *partialKey = "partial_rotary_factor";
  /// Which entry counts where `rope_parameters` has one per kind of layer.
  const char *kind = "full_attention";
  /// Where no key says anything of scaling.
  std::optional<spec::RopeScaling> scaling;
  /// "llama_4_scaling_beta" says how queries grow with their position.
  bool takesGrowth = false;
  /// With "short_mscale" and "long_mscale", a longrope says its temperature.
  bool takesMscale = false;
  /// With "alpha", a dynamic scaling is a base of theta alpha^(d / (d - 2)).
  bool takesAlpha = false;
};

/// Reads `rope_theta` + `rope_scaling` or, from version 5 of transformers on,
/// `rope_parameters`, of heads of `headDim` channels; `length` is
/// max_position_embeddings. Reports what it does not understand.
std::optional<RopeSettings> readRope(Config &config, int64_t headDim,
                                     int64_t length,
                                     const RopeDefaults &defaults = {});

/// The embedding of the layers with a window, where they have one of their own:
/// the entry `defaults.kind` of `rope_parameters`, or a plain embedding.
std::optional<RopeSettings> readLocalRope(Config &config, int64_t headDim,
                                          const RopeDefaults &defaults);

/// How queries grow with their position ("llama_4_scaling_beta"), if they do;
/// where no key says anything of scaling, as the class has it, whose default
/// scaling `defaults` has.
std::optional<spec::QueryGrowth> readGrowth(Config &config,
                                            const RopeDefaults &defaults);

/// `value` in the type that a model runs in.
double roundTo(spec::DType dtype, double value);

} // namespace attune::hf

#endif // ATTUNE_LIB_IMPORT_HUGGINGFACE_ROPE_H
