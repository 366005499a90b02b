//===- PanelSums.h - Sums of rows against a panel ---------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_CONVERSION_ATTUNETOVECTOR_MATMUL_PANELSUMS_H
#define ATTUNE_LIB_CONVERSION_ATTUNETOVECTOR_MATMUL_PANELSUMS_H

#include "PanelProduct.h"

namespace attune {

/// The sums of some rows, which registers hold, against a panel of each of the
/// products (a gate's and its partner's, or one), and what is fetched from
/// memory meanwhile.
class PanelProduct::PanelSums {
public:
  /// Code is made with \p k, also by what is called later. Sums of an earlier
  /// pass are in \p tile.
  PanelSums(const PanelProduct &product, KernelBuilder &k, const Place &at,
            mlir::Value tile);

  /// The sums of product `number`, in registers. Not for bytes.
  KernelBuilder::Values sum(int64_t number);
  /// The same in `scratch`, whose new value it returns.
  mlir::Value toMemory(int64_t number, mlir::Value scratch);
  /// Whether this is the last pass.
  mlir::Value isLast();

  const Outputs &getOutputs() const { return outputs; }

private:
  using Fetching =
      llvm::SmallVector<std::function<void(KernelBuilder &, mlir::Value)>, 2>;
  /// What is fetched during `number` of the products of this panel.
  Fetching fetchingFor(int64_t number);
  /// Panels that come next.
  void fetchAhead(int64_t number, Fetching &fetching);
  /// The panel itself, for few rows.
  void fetchStream(int64_t number, Fetching &fetching);
  /// The next tile's rows.
  void fetchRows(int64_t number, Fetching &fetching);
  mlir::Value isPass(mlir::Value pass);
  /// `steps` of the sum, divided among passes.
  mlir::Value divided(int64_t steps);
  mlir::Value storedPanel(int64_t number, int64_t next = 0);
  KernelBuilder::Values startSums();

  const PanelProduct &p;
  KernelBuilder &k;
  const Place at;
  const mlir::Value tile;
  const int64_t rows, numProducts;
  /// Half of a tile's rows take long enough to fetch panels.
  const bool half;
  mlir::Value panel;
  Outputs outputs;
  llvm::SmallVector<Element> elements; ///< of each row
  mlir::Value size, from; ///< the part of the sum: so many steps, and the first
  int64_t stepsOfTurn, allTurns, elementsOfTurn;
  mlir::Value turns;
};

} // namespace attune

#endif // ATTUNE_LIB_CONVERSION_ATTUNETOVECTOR_MATMUL_PANELSUMS_H
