//===- AttuneKept.h - Weights that keep a part of a matrix ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_DIALECTS_ATTUNE_ATTUNEKEPT_H
#define ATTUNE_DIALECTS_ATTUNE_ATTUNEKEPT_H

#include "Attune/AttuneDialect.h"

#include <optional>
#include <utility>

namespace attune {

/// The rows and columns that stay of a matrix whose heads were pruned, before
/// it is packed; an `attune.weight` with this has the type of that part.
struct KeptPart {
  /// Neighbours: the first one, and how many.
  using Ranges = llvm::SmallVector<std::pair<int64_t, int64_t>>;

  /// The sizes of the whole matrix; a vector has one column.
  int64_t wholeRows = 0, wholeColumns = 1;
  /// For each layer; one list is for all layers, and none keeps everything.
  llvm::SmallVector<Ranges> rows, columns;

  bool operator==(const KeptPart &other) const {
    return wholeRows == other.wholeRows && wholeColumns == other.wholeColumns &&
           rows == other.rows && columns == other.columns;
  }
  /// Null if all are kept.
  static const Ranges *ofLayer(llvm::ArrayRef<Ranges> all, int64_t layer) {
    if (all.empty())
      return nullptr;
    return &all[all.size() == 1 ? 0 : size_t(layer)];
  }
};

/// The attribute `attune.kept` of a weight; nothing if it has none.
inline std::optional<KeptPart> keptOf(WeightOp weight) {
  auto dictionary = weight->getAttrOfType<mlir::DictionaryAttr>("attune.kept");
  auto whole = dictionary ? dictionary.getAs<mlir::DenseI64ArrayAttr>("whole")
                          : mlir::DenseI64ArrayAttr();
  if (!whole || whole.size() != 2)
    return std::nullopt;
  KeptPart kept;
  kept.wholeRows = whole[0];
  kept.wholeColumns = whole[1];
  auto read = [&](llvm::StringRef name,
                  llvm::SmallVector<KeptPart::Ranges> &all) {
    auto layers = dictionary.getAs<mlir::ArrayAttr>(name);
    if (!layers)
      return;
    for (auto layer : layers.getAsRange<mlir::DenseI64ArrayAttr>()) {
      KeptPart::Ranges &ranges = all.emplace_back();
      for (int64_t i = 0; i + 1 < layer.size(); i += 2)
        ranges.emplace_back(layer[i], layer[i + 1]);
    }
  };
  read("rows", kept.rows);
  read("columns", kept.columns);
  return kept;
}

inline void setKept(WeightOp weight, const KeptPart &kept) {
  mlir::Builder b(weight.getContext());
  mlir::NamedAttrList list;
  list.set("whole",
           b.getDenseI64ArrayAttr({kept.wholeRows, kept.wholeColumns}));
  auto write = [&](llvm::StringRef name, llvm::ArrayRef<KeptPart::Ranges> all) {
    llvm::SmallVector<mlir::Attribute> layers;
    for (const KeptPart::Ranges &ranges : all) {
      llvm::SmallVector<int64_t> numbers;
      for (auto [begin, count] : ranges)
        numbers.append({begin, count});
      layers.push_back(b.getDenseI64ArrayAttr(numbers));
    }
    if (!layers.empty())
      list.set(name, b.getArrayAttr(layers));
  };
  write("rows", kept.rows);
  write("columns", kept.columns);
  weight->setAttr("attune.kept", list.getDictionary(weight.getContext()));
}

} // namespace attune

#endif // ATTUNE_DIALECTS_ATTUNE_ATTUNEKEPT_H
