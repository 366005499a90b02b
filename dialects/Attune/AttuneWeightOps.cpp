//===- AttuneWeightOps.cpp - Named weights ----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttuneBytecode.h"

#include "Attune/AttuneCut.h"
#include "Attune/AttuneDialect.h"
#include "Attune/AttuneFactors.h"
#include "Attune/AttuneKept.h"
#include "Attune/AttunePanels.h"

using namespace mlir;
using namespace attune;

#define GET_OP_CLASSES
#include "Attune/AttuneWeightOps.cpp.inc"

void AttuneDialect::registerWeightOps() {
  addOperations<
#define GET_OP_LIST
#include "Attune/AttuneWeightOps.cpp.inc"
      >();
}

LogicalResult WeightOp::readProperties(DialectBytecodeReader &reader,
                                       OperationState &state) {
  auto &own = state.getOrAddProperties<Properties>();
  return success(succeeded(reader.readOptionalAttribute(own.gated)) &&
                 succeeded(reader.readOptionalAttribute(own.panel_width)) &&
                 succeeded(reader.readOptionalAttribute(own.parts)) &&
                 succeeded(reader.readAttribute(own.sources)) &&
                 succeeded(reader.readOptionalAttribute(own.stacked)) &&
                 succeeded(reader.readAttribute(own.sym_name)) &&
                 succeeded(reader.readAttribute(own.type)) &&
                 succeeded(readSince(2, reader, own.gain)) &&
                 succeeded(readSince(2, reader, own.gain_offset)));
}

void WeightOp::writeProperties(DialectBytecodeWriter &writer) {
  auto &own = getProperties();
  writer.writeOptionalAttribute(own.gated);
  writer.writeOptionalAttribute(own.panel_width);
  writer.writeOptionalAttribute(own.parts);
  writer.writeAttribute(own.sources);
  writer.writeOptionalAttribute(own.stacked);
  writer.writeAttribute(own.sym_name);
  writer.writeAttribute(own.type);
  writer.writeOptionalAttribute(own.gain);
  writer.writeOptionalAttribute(own.gain_offset);
}

/// W9, of a weight in one piece.
static LogicalResult verifyFactor(WeightOp weight) {
  if (!weight->hasAttr("attune.factor") && !weight->hasAttr("attune.product"))
    return success();
  std::optional<Factor> factor = factorOf(weight);
  auto side = weight->getAttrOfType<StringAttr>("attune.factor");
  if (!factor || (side.getValue() != "left" && side.getValue() != "right"))
    return weight.emitOpError(
        "is a factor, which takes attune.factor, \"left\" "
        "or \"right\", and attune.product, two sizes");
  if (weight.getParts())
    return weight.emitOpError("has parts, whose factors nothing computes");
  if (weight.getPanelWidth())
    return success();
  SmallVector<int64_t> shape(weight.getLayerType().getShape());
  // Ranks may share its rows, if it is the left one, or else its columns.
  if (std::optional<WeightCut> cut = getCut(weight);
      cut && shape.size() == 2 && cut->cutsColumns() != factor->left)
    shape = {cut->wholeRows, cut->wholeColumns};
  int64_t wanted = factor->left ? factor->rows : factor->columns;
  int64_t rank = shape.size() == 2 ? shape[factor->left ? 1 : 0] : 0;
  if (weight.holdsScales())
    return success();
  if (shape.size() != 2 || shape[factor->left ? 0 : 1] != wanted || rank < 1 ||
      rank > std::min(factor->rows, factor->columns))
    return weight.emitOpError("has type ")
           << weight.getLayerType() << " of a layer, which is no "
           << side.getValue() << " factor of a matrix " << factor->rows << "x"
           << factor->columns;
  return success();
}

/// Whether lists of ranges, one for all layers or one for each, ascend within
/// `whole` and keep equally many, `left` unless that is 0.
static bool fitRanges(ArrayRef<KeptPart::Ranges> all, int64_t layers,
                      int64_t whole, int64_t left) {
  if (all.size() > 1 && int64_t(all.size()) != layers)
    return false;
  for (const KeptPart::Ranges &ranges : all) {
    int64_t next = 0, sum = 0;
    for (auto [begin, count] : ranges) {
      if (begin < next || count < 1 || count > whole || begin > whole - count)
        return false;
      next = begin + count;
      sum += count;
    }
    if (sum == 0 || (left && sum != left))
      return false;
    left = sum;
  }
  return true;
}

/// W10, of a weight in one piece.
static LogicalResult verifyKept(WeightOp weight) {
  if (!weight->hasAttr("attune.kept"))
    return success();
  std::optional<KeptPart> kept = keptOf(weight);
  if (!kept || weight.getParts())
    return weight.emitOpError(
        "keeps a part of a matrix, which takes attune.kept with whole, two "
        "sizes, and lists of rows or columns, and no parts");
  ArrayRef<int64_t> shape = weight.getLayerType().getShape();
  bool plain = !weight.getPanelWidth() && !weight.holdsScales();
  int64_t rows = plain && !shape.empty() ? shape[0] : 0;
  int64_t columns = plain && shape.size() > 1 ? shape[1] : 0;
  // Ranks may share what is left.
  if (std::optional<WeightCut> cut = getCut(weight); cut && plain) {
    rows = cut->wholeRows;
    columns = cut->wholeColumns;
  }
  if (!fitRanges(kept->rows, weight.getNumLayers(), kept->wholeRows, rows) ||
      !fitRanges(kept->columns, weight.getNumLayers(), kept->wholeColumns,
                 columns))
    return weight.emitOpError("has type ")
           << weight.getLayerType()
           << " of a layer, which is not what attune.kept keeps of a matrix "
           << kept->wholeRows << "x" << kept->wholeColumns;
  return success();
}

LogicalResult WeightOp::verify() {
  // W1
  RankedTensorType type = getTensorType();
  if (!type.hasStaticShape())
    return emitOpError("has type ")
           << type << ", but a file holds tensors of known size";
  int64_t least =
      (getStacked() ? 1 : 0) + (getParts() ? 1 : 0) + (getPanelWidth() ? 2 : 0);
  if (type.getRank() < least)
    return emitOpError("has type ") << type << ", which has no dimension for "
                                    << (getPanelWidth() ? "panels"
                                        : getParts()    ? "parts"
                                                        : "layers");
  // W2
  for (auto source : getSources().getAsRange<WeightSourceAttr>())
    if (getStacked() && !source.getTensor().contains("{i}") &&
        !source.getTensor().contains("{i+") &&
        !source.getTensor().contains("{i="))
      return emitOpError("is stacked over ")
             << type.getDimSize(0) << " layers, but its source '"
             << source.getTensor() << "' does not say {i}";
  // W3
  if (getSources().empty())
    return emitOpError("has no source");
  // W4
  if (std::optional<int64_t> width = getPanelWidth())
    if (*width < 1 || getColumnsSideBySide() == 0)
      return emitOpError("has panels of ")
             << *width << " rows, but type " << type;
  // W5
  for (auto source : getSources().getAsRange<WeightSourceAttr>())
    if (source.getBegin() < 0 ||
        (source.getEnd() != -1 && source.getEnd() <= source.getBegin()))
      return emitOpError("takes rows ")
             << source.getBegin() << " to " << source.getEnd() << " of '"
             << source.getTensor() << "', which is no range of rows";
    else if (source.getCount() < 1 ||
             (source.getCount() > 1 &&
              (source.getEnd() < 0 ||
               source.getStride() < source.getEnd() - source.getBegin())))
      return emitOpError("takes ")
             << source.getCount() << " ranges of rows of '"
             << source.getTensor() << "', one every " << source.getStride()
             << " rows, which overlap";
  // W6
  if (getParts() &&
      (*getParts() < 1 || getLayerType().getDimSize(0) != int64_t(*getParts())))
    return emitOpError("has ") << *getParts() << " parts, but type " << type;
  for (auto source : getSources().getAsRange<WeightSourceAttr>()) {
    bool names = source.getTensor().contains("{e}"),
         steps = source.getStep() != 0;
    if (source.getStep() < 0 || ((names || steps) && !getParts()))
      return emitOpError("has no parts that '")
             << source.getTensor() << "' with step " << source.getStep()
             << " could tell apart";
    if (getNumParts() > 1 && names == steps)
      return emitOpError("has ")
             << getNumParts() << " parts, but its source '"
             << source.getTensor() << "' needs either {e} or a step";
  }
  // W9
  if (failed(verifyFactor(*this)))
    return failure();
  // W10
  if (failed(verifyKept(*this)))
    return failure();
  // W11
  if (auto order = (*this)->getAttr("attune.order")) {
    auto sizes = dyn_cast<DenseI64ArrayAttr>(order);
    RankedTensorType layer = getLayerType();
    if (!sizes || sizes.size() != 2 || layer.getRank() != 1 ||
        !layer.getElementType().isF32() || layer.getDimSize(0) != sizes[1])
      return emitOpError("is an order of type ")
             << type << ", but not one of the columns of " << order;
  }
  // W7
  std::optional<int64_t> group = getGroup();
  Type element = type.getElementType();
  bool quantized =
      (takesBytes(element) || element.isInteger(4)) && !holdsScales();
  if (!(*this)->hasAttr("attune.levels") && hasScalesInLevels(*this) &&
      !(quantized && !isa<Float8E4M3FNType>(element)))
    return emitOpError("says that its scales are bytes in two levels, which "
                       "only numbers of 4 and 8 bits have, but holds ")
           << element;
  if ((*this)->hasAttr("attune.levels") && !(element.isInteger(8) && group))
    return emitOpError("says attune.levels, which bytes of scales do that are "
                       "in groups, but ")
           << (group ? "holds " : "is in no groups of ") << element;
  if (quantized && !group)
    return emitOpError("holds ")
           << (element.isInteger(4) ? "numbers of 4 bits" : "bytes")
           << ", but does not say in attune.group how many share a scale";
  if (hasZeros() &&
      (!group || isa<Float8E8M0FNUType, Float8E4M3FNType>(element)))
    return emitOpError(
        "has zero points, but no groups with scales beside them");
  if (!group)
    return success();
  if (!isGroup(*group))
    return emitOpError("has groups of ")
           << *group << ", which is not 4, 8, 12, ..., 65536";
  if (getBits() == 4 && !isGroupOfNibbles(*group))
    return emitOpError("has groups of ")
           << *group << " numbers of 4 bits, which is not 32, 64, ..., 65536";
  if (!quantized && !element.isF32() && !element.isF16() &&
      !isa<Float8E8M0FNUType>(element) &&
      !(element.isInteger(8) && hasScalesInLevels(*this)))
    return emitOpError(
               "has groups, whose values are i8, i4 or f8E4M3FN and "
               "whose scales are f32, f16 or f8E8M0FNU, but elements of type ")
           << element;
  ArrayRef<int64_t> shape = getPartType().getShape();
  if (shape.size() < 2)
    return emitOpError("has groups, but type ") << type << " is no matrix";
  int64_t columns = shape[1] * getColumnsSideBySide();
  if (hasScalesInLevels(*this)) {
    if (kScaleColumns % *group != 0)
      return emitOpError("has groups of ")
             << *group << ", whose scales in two levels are those of no 256 "
             << "columns";
    int64_t whole =
        quantized ? kScaleColumns : bytesOfScales(*group, hasZeros());
    if (columns % whole != 0)
      return emitOpError("has rows of ")
             << columns << (quantized ? "" : " bytes")
             << ", which are no whole blocks of " << whole
             << ", as scales in two levels have them";
  }
  if (quantized && columns % *group != 0)
    return emitOpError("has rows of ")
           << columns << ", which are no whole groups of " << *group;
  return success();
}

LogicalResult WeightOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (!getGainAttr())
    return success();
  // W8
  auto gain = symbols.lookupNearestSymbolFrom<WeightOp>(*this, getGainAttr());
  if (!gain)
    return emitOpError("names the gain ")
           << getGainAttr() << ", which is no attune.weight";
  RankedTensorType type = getLayerType();
  int64_t columns =
      type.getRank() < 2 ? 0 : type.getDimSize(1) * getColumnsSideBySide();
  if (!type.getElementType().isF32() || getParts() || getGroup() ||
      columns == 0)
    return emitOpError("has type ")
           << type << " of a layer, but only a matrix of f32 has a gain";
  auto wanted = RankedTensorType::get({columns}, type.getElementType());
  if (gain.getPanelWidth() || gain.getLayerType() != wanted ||
      gain.getStacked() != getStacked() ||
      gain.getNumLayers() != getNumLayers()) {
    InFlightDiagnostic diag = emitOpError("has ")
                              << getNumLayers() << " layers of " << columns
                              << " columns, which " << getGainAttr()
                              << " has no gains for";
    diag.attachNote(gain.getLoc()) << "the gain is declared here";
    return diag;
  }
  return success();
}

std::optional<int64_t> WeightOp::getGroup() {
  auto group = (*this)->getAttrOfType<IntegerAttr>("attune.group");
  return group ? std::optional<int64_t>(group.getInt()) : std::nullopt;
}

int64_t WeightOp::getBits() {
  Type element = getTensorType().getElementType();
  auto bits = (*this)->getAttrOfType<IntegerAttr>("attune.bits");
  bool narrow =
      element.isInteger(4) || (bits && bits.getInt() == 4) ||
      ((element.isF16() || isa<Float8E8M0FNUType>(element)) && getGroup());
  return narrow ? 4 : 8;
}

FloatType WeightOp::getScaleType() {
  if (auto own = dyn_cast<FloatType>(getTensorType().getElementType());
      own && holdsScales())
    return own;
  // In two levels the floats among them are of f16.
  if (hasScalesInLevels(*this))
    return Float16Type::get(getContext());
  Type other;
  if (auto named = (*this)->getAttrOfType<TypeAttr>("attune.scales"))
    other = named.getValue();
  if (auto type = dyn_cast_or_null<FloatType>(other))
    return type;
  MLIRContext *context = getContext();
  return getBits() == 4 ? FloatType(Float16Type::get(context))
                        : FloatType(Float32Type::get(context));
}

bool WeightOp::hasZeros() { return (*this)->hasAttr("attune.zeros"); }

bool WeightOp::holdsScales() {
  Type element = getTensorType().getElementType();
  return getGroup() &&
         ((isa<FloatType>(element) && !isa<Float8E4M3FNType>(element)) ||
          (*this)->hasAttr("attune.levels"));
}

bool WeightOp::hasByteFloats() {
  return getGroup() &&
         (isa<Float8E4M3FNType>(getTensorType().getElementType()) ||
          (*this)->hasAttr("attune.floats"));
}

bool WeightOp::holdsOrder() { return (*this)->hasAttr("attune.order"); }

int64_t WeightOp::getColumnsSideBySide() {
  RankedTensorType type = getPartType();
  if (holdsScales())
    return !getPanelWidth() || type.getShape().back() == *getPanelWidth() ? 1
                                                                          : 0;
  int64_t side = columnsSideBySide(type, getPanelWidth());
  bool halves = type.getElementType().isInteger(8) && getBits() == 4;
  return side == 4 && halves ? 8 : side;
}

RankedTensorType WeightOp::getPartType() {
  RankedTensorType type = getLayerType();
  return getParts() ? RankedTensorType::get(type.getShape().drop_front(),
                                            type.getElementType())
                    : type;
}

RankedTensorType WeightOp::getLayerType() {
  RankedTensorType type = getTensorType();
  return getStacked() ? RankedTensorType::get(type.getShape().drop_front(),
                                              type.getElementType())
                      : type;
}

LogicalResult WeightGetOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto weight =
      symbols.lookupNearestSymbolFrom<WeightOp>(*this, getWeightAttr());
  // G1
  if (!weight)
    return emitOpError("names ")
           << getWeightAttr() << ", which is no attune.weight";
  // G2
  if (weight.getLayerType() != getType()) {
    InFlightDiagnostic diag = emitOpError("has type ")
                              << getType() << ", but one layer of "
                              << getWeightAttr() << " is "
                              << weight.getLayerType();
    diag.attachNote(weight.getLoc()) << "the weight is declared here";
    return diag;
  }
  // G3
  if (weight.getStacked() != static_cast<bool>(getLayer()))
    return emitOpError(weight.getStacked()
                           ? "needs a layer number, the weight is stacked"
                           : "has a layer number, but the weight is not "
                             "stacked");
  return success();
}

Value WeightViewOp::getViewSource() { return getSource(); }

LogicalResult WeightViewOp::verify() {
  // V1
  if (bool(getLayer()) != bool(getStride()))
    return emitOpError("has a layer without a stride, or the reverse");
  // V2
  auto type = cast<MemRefType>(getType());
  if (!type.hasStaticShape() || !type.getLayout().isIdentity())
    return emitOpError("gives ")
           << type << ", which is no buffer of a known size, row after row";
  // V3
  if (int64_t(getOffset()) < 0 || int64_t(getStride().value_or(0)) < 0)
    return emitOpError("begins before the memory of all weights");
  return success();
}
