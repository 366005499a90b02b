//===- AttuneSyntax.h - Shared by assembly formats --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_SYNTAX_H
#define ATTUNE_SYNTAX_H

#include "Attune/AttuneDialect.h"

namespace attune {

// custom<ResultLike>: `-> type` of a result whose elements are of another type
// than the input's, nothing of one that is like the input.
mlir::ParseResult parseResultLike(mlir::OpAsmParser &parser, mlir::Type &result,
                                  mlir::Type input);
void printResultLike(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                     mlir::Type result, mlir::Type input);

} // namespace attune

#endif // ATTUNE_SYNTAX_H
