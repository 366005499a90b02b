//===- AttuneCacheOps.cpp - Verifiers of the cache ops ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneCachedRows.h"
#include "Attune/AttuneChecks.h"
#include "Attune/AttuneShapes.h"

using namespace mlir;
using namespace attune;

/// The past of all sequences, an index whose type is left out, or of each.
static ParseResult parsePast(OpAsmParser &parser,
                             OpAsmParser::UnresolvedOperand &past, Type &type) {
  if (parser.parseOperand(past))
    return failure();
  type = parser.getBuilder().getIndexType();
  return succeeded(parser.parseOptionalColon()) ? parser.parseType(type)
                                                : ParseResult(success());
}

static void printPast(OpAsmPrinter &printer, Operation *, Value past,
                      Type type) {
  printer << past;
  if (!type.isIndex())
    printer << " : " << type;
}

#define GET_OP_CLASSES
#include "Attune/AttuneCacheOps.cpp.inc"

void AttuneDialect::registerCacheOps() {
  addOperations<
#define GET_OP_LIST
#include "Attune/AttuneCacheOps.cpp.inc"
      >();
}

/// The dimension of a cache that counts sequences.
static int64_t batchDim(bool sequenceMajor) { return sequenceMajor ? 0 : 1; }

/// C1, of both ops: [B, H, T, D] rows fit a [L, B, H, C, D] cache, or one of
/// [B, L, H, C, D].
static LogicalResult fits(Operation *op, Value rows, StringRef owner,
                          Value cache, bool sequenceMajor, bool mayRound) {
  Type row = cast<RankedTensorType>(rows.getType()).getElementType();
  Type stored = cast<RankedTensorType>(cache.getType()).getElementType();
  bool rounds = mayRound && !isInBytes(row);
  StringRef what[] = {"batch size", "heads"};
  for (int64_t dim : {0, 1})
    if (failed(sameSize(op, {rows, dim, owner, what[dim]},
                        {cache, dim == 0 ? batchDim(sequenceMajor) : dim + 1,
                         "cache", what[dim]})))
      return failure();
  NamedSize width{rows, 3, owner, "width"}, kept{cache, 4, "cache", "width"};
  if (failed(rounds ? sameWidth(op, width, kept) : sameSize(op, width, kept)))
    return failure();
  if (row == stored || (rounds && (row.isF32() || isInBytes(stored))))
    return success();
  InFlightDiagnostic diag = op->emitOpError("has ")
                            << owner << " of " << row << ", but a cache of "
                            << stored;
  diag.attachNote(cache.getLoc()) << "cache comes from here";
  return diag;
}

LogicalResult CacheAppendOp::verify() {
  if (failed(fits(*this, getNewRows(), "new rows", getCache(),
                  getSequenceMajor(), /*mayRound=*/true)))
    return failure();
  // C2
  NamedSize tokens{getNewRows(), 2, "new rows", "length"};
  NamedSize capacity{getCache(), 3, "cache", "capacity"};
  if (tokens.known() && capacity.known() && tokens.get() > capacity.get())
    return emitOpError("writes ")
           << tokens.get() << " rows into a cache of " << capacity.get();
  // C3
  if (getPast().getType().isIndex())
    return success();
  if (tokens.known() && tokens.get() != 1)
    return emitOpError("writes ")
           << tokens.get()
           << " rows of each sequence; where sequences have "
              "different numbers of rows, each gets one";
  return sameSize(*this, {getPast(), 0, "past", "size"},
                  {getNewRows(), 0, "new rows", "batch size"});
}

LogicalResult CacheReadOp::verify() {
  return fits(*this, getResult(), "result", getCache(), getSequenceMajor(),
              /*mayRound=*/false);
}

LogicalResult
CacheAppendOp::reifyResultShapes(OpBuilder &builder,
                                 ReifiedRankedShapedTypeDims &shapes) {
  return reifyAs(builder, getLoc(), getResult(), getCache(), shapes);
}

LogicalResult
CacheReadOp::reifyResultShapes(OpBuilder &builder,
                               ReifiedRankedShapedTypeDims &shapes) {
  return reifySizes(builder, getLoc(), getResult(),
                    {{getCache(), batchDim(getSequenceMajor())},
                     {getCache(), 2},
                     OpFoldResult(getLength()),
                     {getCache(), 4}},
                    shapes);
}
