//===- RepeatedLayers.h - One choice for layers stored alike ----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_TRANSFORMS_REPEATEDLAYERS_H
#define ATTUNE_LIB_TRANSFORMS_REPEATEDLAYERS_H

#include "Attune/AttuneDialect.h"
#include "attune/Support/TensorNames.h"

#include <optional>

namespace attune {

/// The names of one layer of a weight: its own, and those of the tensors that
/// it is made of.
inline llvm::SmallVector<std::string> namesOfLayer(WeightOp weight,
                                                   int64_t layer) {
  llvm::SmallVector<std::string> names = {
      substituteLayer(weight.getSymName().str(), layer)};
  for (auto source : weight.getSources().getAsRange<WeightSourceAttr>())
    names.push_back(substituteLayer(source.getTensor().str(), layer));
  return names;
}

/// What `choose` says of the names of a weight. Nothing, after an error that
/// names the `option`, if it tells layers apart that are stored alike.
template <typename Value, typename Choose>
std::optional<Value> chooseForLayers(WeightOp weight, llvm::StringRef option,
                                     Choose choose) {
  std::optional<Value> chosen;
  for (int64_t layer = 0; layer < weight.getNumLayers(); ++layer) {
    Value here = choose(namesOfLayer(weight, layer));
    if (chosen && !(here == *chosen)) {
      weight.emitError("'")
          << weight.getSymName() << "' is of " << weight.getNumLayers()
          << " repeated layers, which are stored alike, but " << option
          << " tells layer " << layer << " from those before it";
      return std::nullopt;
    }
    chosen = here;
  }
  return chosen;
}

} // namespace attune

#endif // ATTUNE_LIB_TRANSFORMS_REPEATEDLAYERS_H
