//===- Remarks.h - Remarks of passes ----------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_DRIVER_REPORT_REMARKS_H
#define ATTUNE_LIB_DRIVER_REPORT_REMARKS_H

#include "Report.h"

#include "mlir/IR/MLIRContext.h"

namespace attune::driver {

/// Has the context write every remark of a pass to `path`: as LLVM's
/// optimisation records if it ends in .yaml or .yml, else one a line behind its
/// place in the description. The file is whole when the context is gone. False,
/// once reported, if it cannot be written.
bool writeRemarks(mlir::MLIRContext &context, const std::string &path,
                  Report &report);

} // namespace attune::driver

#endif // ATTUNE_LIB_DRIVER_REPORT_REMARKS_H
