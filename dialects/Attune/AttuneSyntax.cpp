//===- AttuneSyntax.cpp - Shared by assembly formats ------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneSyntax.h"

using namespace mlir;
using namespace attune;

ParseResult attune::parseResultLike(OpAsmParser &parser, Type &result,
                                    Type input) {
  result = input;
  return succeeded(parser.parseOptionalArrow()) ? parser.parseType(result)
                                                : ParseResult(success());
}

void attune::printResultLike(OpAsmPrinter &printer, Operation *, Type result,
                             Type input) {
  if (result != input)
    printer << " -> " << result;
}
