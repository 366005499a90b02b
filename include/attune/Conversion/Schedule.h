//===- Schedule.h - Numbers that a schedule gives an op ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_CONVERSION_SCHEDULE_H
#define ATTUNE_CONVERSION_SCHEDULE_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

#include <string>

/// Sizes of tiles are the target's, unless an attribute of the op says
/// otherwise, such as transform.annotate leaves it. They change speed and
/// nothing else.
namespace attune {

inline constexpr llvm::StringLiteral kQueryBlock = "attune.query_block",
                                     kKeyBlock = "attune.key_block",
                                     kTileRows = "attune.tile_rows",
                                     kTileColumns = "attune.tile_columns",
                                     kStages = "attune.stages",
                                     kPanelBytes = "attune.panel_bytes";

/// A number of the schedule, or what the target says.
inline int64_t scheduled(mlir::Operation *op, llvm::StringRef name,
                         int64_t fallback) {
  auto number = op->getAttrOfType<mlir::IntegerAttr>(name);
  return number ? number.getInt() : fallback;
}

/// The numbers that a schedule sets for the tile of a GPU's block.
struct ProductNumbers productNumbers(mlir::Operation *op);
struct AttentionNumbers attentionNumbers(mlir::Operation *op);

/// Hands on what the schedule says of `layer` to an op that it becomes.
void keepSchedule(mlir::Operation *layer, mlir::Operation *op);

/// Diagnoses invalid values, unknown attribute names, and attributes on ops
/// that ignore them. With `cooperative` ops become kernels of a GPU, which read
/// other attributes than loops of a CPU.
mlir::LogicalResult checkSchedule(mlir::Operation *root, bool cooperative);

/// Why no op reads an attribute of this name, or nothing. `cooperative` as
/// above.
std::string problemOfScheduleName(llvm::StringRef name, bool cooperative);

/// The name and category of a remark about sizes.
inline mlir::remark::RemarkOpts tilingRemark(mlir::Operation *op,
                                             llvm::StringRef what) {
  auto func = op->getParentOfType<mlir::FunctionOpInterface>();
  return mlir::remark::RemarkOpts::name(what)
      .category("attune-tiling")
      .function(func ? func.getName() : llvm::StringRef());
}

} // namespace attune

#endif // ATTUNE_CONVERSION_SCHEDULE_H
