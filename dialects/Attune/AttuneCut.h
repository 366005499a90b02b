//===- AttuneCut.h - Weights whose parts several ranks have -----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_DIALECT_CUT_H
#define ATTUNE_DIALECT_CUT_H

#include "Attune/AttuneDialect.h"

#include <optional>

namespace attune {

/// The part of a matrix that each rank has, before it is packed; an
/// `attune.weight` with a cut has the type of one rank's part. The parts of all
/// ranks are of one size: rows that a rank lacks are zero.
struct WeightCut {
  struct Rows {
    int64_t begin = 0, count = 0;
    bool operator==(const Rows &other) const {
      return begin == other.begin && count == other.count;
    }
  };
  /// The sizes of the whole matrix; a vector has one column.
  int64_t wholeRows = 0, wholeColumns = 1;
  /// For each rank, the rows it has of the whole one, in its order.
  llvm::SmallVector<llvm::SmallVector<Rows>> rows;
  /// For each rank, where its columns begin in the whole matrix and how many of
  /// them count: those behind are zero. Empty: all ranks have all columns.
  llvm::SmallVector<Rows> columns;
  /// The weight is in parts: `rows` are parts, `wholeColumns` the size of one.
  bool cutsParts = false;

  int64_t numRanks() const { return int64_t(rows.size()); }
  bool cutsColumns() const { return !columns.empty(); }
  /// The cut of a factor of the matrix, with `between` columns of the left one.
  /// Ranks that share rows share those of the left one, and all have the right
  /// one; if they share columns, the other way round.
  std::optional<WeightCut> ofFactor(bool left, int64_t between) const {
    if (left == cutsColumns())
      return std::nullopt;
    WeightCut cut = *this;
    (left ? cut.wholeColumns : cut.wholeRows) = between;
    if (!left)
      for (auto &some : cut.rows)
        some = {{0, between}};
    return cut;
  }
  bool operator==(const WeightCut &other) const {
    return wholeRows == other.wholeRows && wholeColumns == other.wholeColumns &&
           rows == other.rows && columns == other.columns &&
           cutsParts == other.cutsParts;
  }
};

/// The cut of a weight, from its attribute `attune.cut`; nothing: each rank
/// has the whole weight.
inline std::optional<WeightCut> getCut(WeightOp weight) {
  auto dictionary = weight->getAttrOfType<mlir::DictionaryAttr>("attune.cut");
  if (!dictionary)
    return std::nullopt;
  auto whole = dictionary.getAs<mlir::DenseI64ArrayAttr>("whole");
  auto ranks = dictionary.getAs<mlir::ArrayAttr>("rows");
  if (!whole || whole.size() != 2 || !ranks)
    return std::nullopt;
  WeightCut cut;
  cut.wholeRows = whole[0];
  cut.wholeColumns = whole[1];
  if (auto columns = dictionary.getAs<mlir::DenseI64ArrayAttr>("columns"))
    for (int64_t i = 0; i + 1 < columns.size(); i += 2)
      cut.columns.push_back({columns[i], columns[i + 1]});
  cut.cutsParts = dictionary.contains("parts");
  for (auto rank : ranks.getAsRange<mlir::DenseI64ArrayAttr>()) {
    auto &rows = cut.rows.emplace_back();
    for (int64_t i = 0; i + 1 < rank.size(); i += 2)
      rows.push_back({rank[i], rank[i + 1]});
  }
  return cut;
}

/// Says what each rank has of a weight; nothing: all of it.
inline void setCut(WeightOp weight, const std::optional<WeightCut> &some) {
  weight->removeAttr("attune.cut");
  if (!some)
    return;
  const WeightCut &cut = *some;
  mlir::Builder b(weight.getContext());
  mlir::NamedAttrList list;
  list.set("whole", b.getDenseI64ArrayAttr({cut.wholeRows, cut.wholeColumns}));
  llvm::SmallVector<mlir::Attribute> ranks;
  for (const auto &rows : cut.rows) {
    llvm::SmallVector<int64_t> numbers;
    for (const WeightCut::Rows &some : rows)
      numbers.append({some.begin, some.count});
    ranks.push_back(b.getDenseI64ArrayAttr(numbers));
  }
  list.set("rows", b.getArrayAttr(ranks));
  if (cut.cutsColumns()) {
    llvm::SmallVector<int64_t> numbers;
    for (const WeightCut::Rows &some : cut.columns)
      numbers.append({some.begin, some.count});
    list.set("columns", b.getDenseI64ArrayAttr(numbers));
  }
  if (cut.cutsParts)
    list.set("parts", b.getUnitAttr());
  weight->setAttr("attune.cut", list.getDictionary(weight.getContext()));
}

} // namespace attune

#endif // ATTUNE_DIALECT_CUT_H
