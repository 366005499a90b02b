//===- AttuneAttrs.cpp - Enumerations and attributes ------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneDialect.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attune;

#include "Attune/AttuneEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "Attune/AttuneAttrs.cpp.inc"

void AttuneDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "Attune/AttuneAttrs.cpp.inc"
      >();
}

// <"name" (, transposed)? (, rows = begin to end)? (, every n times n)?
// (, step = rows)?>
Attribute WeightSourceAttr::parse(AsmParser &parser, Type) {
  std::string tensor;
  bool transposed = false;
  int64_t begin = 0, end = -1, stride = 0, count = 1, step = 0;
  if (parser.parseLess() || parser.parseString(&tensor))
    return {};
  while (succeeded(parser.parseOptionalComma())) {
    if (succeeded(parser.parseOptionalKeyword("transposed"))) {
      transposed = true;
    } else if (succeeded(parser.parseOptionalKeyword("every"))) {
      if (parser.parseInteger(stride) || parser.parseKeyword("times") ||
          parser.parseInteger(count))
        return {};
    } else if (succeeded(parser.parseOptionalKeyword("step"))) {
      if (parser.parseEqual() || parser.parseInteger(step))
        return {};
    } else if (parser.parseKeyword("rows") || parser.parseEqual() ||
               parser.parseInteger(begin) || parser.parseKeyword("to") ||
               parser.parseInteger(end)) {
      return {};
    }
  }
  if (parser.parseGreater())
    return {};
  return get(parser.getContext(), tensor, transposed, begin, end, stride, count,
             step);
}

void WeightSourceAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printer.printString(getTensor());
  if (getTransposed())
    printer << ", transposed";
  if (getBegin() != 0 || getEnd() != -1)
    printer << ", rows = " << getBegin() << " to " << getEnd();
  if (getCount() != 1)
    printer << ", every " << getStride() << " times " << getCount();
  if (getStep() != 0)
    printer << ", step = " << getStep();
  printer << ">";
}
