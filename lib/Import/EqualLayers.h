//===- EqualLayers.h - Layers that share functions --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A hybrid's layers are runs of a few kinds: M M A M M M A. Runs of one kind
// are compiled as one layer that repeats as often as all of them: it has their
// functions, a stack of their weights and their caches, and each run calls the
// functions with its part of the numbers. So code and the time of compiling
// follow the kinds, not the runs.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_IMPORT_EQUALLAYERS_H
#define ATTUNE_LIB_IMPORT_EQUALLAYERS_H

#include "attune/Spec/Spec.h"

namespace attune {

/// The layers of a stream by what they share.
class EqualLayers {
public:
  EqualLayers(const spec::Model &model, size_t stream);

  /// The first layer that is like this one: symbols are called after it.
  size_t firstOf(size_t number) const { return places[number].first; }
  /// Repeats of equal layers ahead of this one's.
  int64_t startOf(size_t number) const { return places[number].start; }
  /// The layer with the repeats of all that are like it.
  const spec::Layer &wholeOf(size_t number) const {
    return wholes[firstOf(number)];
  }

private:
  struct Place {
    size_t first;
    int64_t start;
  };
  std::vector<Place> places;
  std::vector<spec::Layer> wholes; ///< by the number of the first
};

} // namespace attune

#endif // ATTUNE_LIB_IMPORT_EQUALLAYERS_H
