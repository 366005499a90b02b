//===- Remarks.h - Remarks of passes ----------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_DRIVER_REPORT_REMARKS_H
#define ATTUNE_LIB_DRIVER_REPORT_REMARKS_H

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace attune::driver {

/// Has the context add every remark of a pass to `text`, which outlives it: as
/// LLVM's optimisation records if the file they are for ends in .yaml or .yml,
/// else one a line behind its place in the description. A text instead of the
/// file: streams of LLVM end the program where a disk is full.
bool collectRemarks(mlir::MLIRContext &context, llvm::StringRef path,
                    std::string &text);

} // namespace attune::driver

#endif // ATTUNE_LIB_DRIVER_REPORT_REMARKS_H
