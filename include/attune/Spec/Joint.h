//===- Joint.h - Blocks of two kinds of tokens ------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_SPEC_JOINT_H
#define ATTUNE_SPEC_JOINT_H

#include "attune/Support/Diagnostics.h"

#include <cstdint>

namespace attune::spec {

/// A modulated block of tokens of two kinds, which `concat` put one behind the
/// other (MMDiT, Esser et al. 2024): all attend to all, but each kind has
/// norms, projections, a feed-forward layer and a modulation of its own. The
/// block's roles are those of one kind; the other kind has the same ones behind
/// "joint.".
struct Joint {
  int64_t part = 0; ///< which of the two parts is the other kind
  /// The other kind gives keys and values alone and leaves the block as it
  /// came: its only roles are "joint.norm1.*", "joint.modulation.*" with a
  /// shift and a scale, and those of keys and values.
  bool keysOnly = false;
  /// Beside the joint attention the block's own kind has another one, of its
  /// tokens alone, which reads the same norm: roles "attention2.*". Its shift,
  /// scale and gate stand behind those of the feed-forward layer.
  bool second = false;
  SourceLocation location;
};

/// Channels of places as squares of an image, [batch, channels, height, width]:
/// those of a place are its square's numbers row by row, with all channels of
/// each next to each other.
struct Unpatch {
  int64_t size = 2;
};

} // namespace attune::spec

#endif // ATTUNE_SPEC_JOINT_H
