//===- Vectors.cpp - vector -------------------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arithmetic.h"
#include "Slices.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <cmath>
#include <limits>

using namespace attune;
using namespace attune::validation;
using namespace mlir;

static Shape shapeOf(Type type) {
  auto shaped = dyn_cast<ShapedType>(type);
  return shaped ? Shape(shaped.getShape()) : Shape();
}

/// A result of the type of the op's first result, all `fill`.
static Datum makeResult(Step &step, Scalar fill) {
  return makeArray(shapeOf(step.op->getResult(0).getType()), fill);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

namespace {
/// A tensor or a memref, element by element.
struct Source {
  Source(Datum &datum, Type type)
      : element(getElementTypeOrSelf(type)),
        view(isa<MemRefType>(type) ? &datum.view() : nullptr),
        array(view ? nullptr : &datum.array()) {}

  llvm::ArrayRef<int64_t> shape() const {
    return view ? view->shape : array->shape;
  }
  /// Null if there is no such element.
  bool load(llvm::ArrayRef<int64_t> index, Scalar &value) const {
    if (view) {
      uint8_t *place = addressOf(*view, element, index);
      if (place)
        value = loadScalar(element, place);
      return place;
    }
    if (!contains(index))
      return false;
    value = array->data[flatten(index, array->shape)];
    return true;
  }
  bool store(llvm::ArrayRef<int64_t> index, Scalar value) const {
    if (view) {
      uint8_t *place = addressOf(*view, element, index);
      if (place)
        storeScalar(element, place, value);
      return place;
    }
    if (!contains(index))
      return false;
    array->data[flatten(index, array->shape)] = value;
    return true;
  }
  bool contains(llvm::ArrayRef<int64_t> index) const {
    for (auto [i, size] : llvm::zip(index, shape()))
      if (i < 0 || i >= size)
        return false;
    return true;
  }

  Type element;
  View *view;
  Array *array;
};
} // namespace

static bool outside(Step &step) {
  return step.machine.outOfBounds(step, "touches memory outside of a buffer");
}

/// Calls `visit(lane, index, inBounds)` for every element that a transfer names
/// and its mask lets through.
template <typename Visit>
static bool overTransfer(Step &step, VectorTransferOpInterface op,
                         const Shape &lanes, const Source &source,
                         size_t firstIndex, const Array *mask, Visit visit) {
  AffineMap map = op.getPermutationMap();
  Shape start;
  for (int64_t i = 0; i < int64_t(source.shape().size()); ++i)
    start.push_back(step.in[firstIndex + i].integer());
  // The mask has the dimensions of what is touched, in their order there.
  llvm::SmallVector<unsigned> order;
  for (unsigned d = 0; d < map.getNumResults(); ++d)
    if (isa<AffineDimExpr>(map.getResult(d)))
      order.push_back(d);
  llvm::sort(order, [&](unsigned a, unsigned b) {
    return map.getDimPosition(a) < map.getDimPosition(b);
  });
  Shape lane(lanes.size(), 0);
  int64_t at = 0;
  do {
    Shape index = start, maskAt;
    bool inBounds = true;
    for (size_t d = 0; d < lanes.size(); ++d) {
      auto dim = dyn_cast<AffineDimExpr>(map.getResult(d));
      if (dim)
        index[dim.getPosition()] += lane[d];
    }
    for (unsigned d : order)
      maskAt.push_back(lane[d]);
    bool shown = !mask || mask->data[flatten(maskAt, mask->shape)].i;
    inBounds = source.contains(index);
    if (shown && !inBounds)
      for (size_t d = 0; d < lanes.size(); ++d)
        if (auto dim = dyn_cast<AffineDimExpr>(map.getResult(d))) {
          unsigned p = dim.getPosition();
          if ((index[p] < 0 || index[p] >= source.shape()[p]) &&
              op.isDimInBounds(d))
            return outside(step);
        }
    if (!visit(at++, index, shown && inBounds))
      return outside(step);
  } while (advance(lane, lanes));
  return true;
}

static bool runTransferRead(Step &step) {
  auto op = cast<vector::TransferReadOp>(step.op);
  size_t rank = op.getShapedType().getRank();
  Datum result = makeResult(step, step.in[1 + rank].scalar);
  if (step.in[1 + rank].box)
    return step.machine.fail(step.op, Failure::Unsupported,
                             "a transfer of vectors");
  Source source(step.in[0], op.getShapedType());
  const Array *mask = op.getMask() ? &step.in[2 + rank].array() : nullptr;
  Array &out = result.array();
  bool ok = overTransfer(step, op, out.shape, source, 1, mask,
                         [&](int64_t lane, const Shape &index, bool shown) {
                           return !shown || source.load(index, out.data[lane]);
                         });
  step.give(result);
  return ok;
}

static bool runTransferWrite(Step &step) {
  auto op = cast<vector::TransferWriteOp>(step.op);
  size_t rank = op.getShapedType().getRank();
  bool tensor = isa<TensorType>(op.getShapedType());
  if (tensor)
    step.in[1].ownArray();
  Source source(step.in[1], op.getShapedType());
  const Array &from = step.in[0].array();
  const Array *mask = op.getMask() ? &step.in[2 + rank].array() : nullptr;
  bool ok =
      overTransfer(step, op, from.shape, source, 2, mask,
                   [&](int64_t lane, const Shape &index, bool shown) {
                     return !shown || source.store(index, from.data[lane]);
                   });
  if (tensor)
    step.give(step.in[1]);
  return ok;
}

/// The index of each lane of a load or store of contiguous elements.
static Shape laneIndex(llvm::ArrayRef<Datum> in, size_t first, size_t rank,
                       llvm::ArrayRef<int64_t> lane) {
  Shape index;
  for (size_t d = 0; d < rank; ++d)
    index.push_back(in[first + d].integer());
  for (size_t d = 0; d < lane.size(); ++d)
    index[rank - lane.size() + d] += lane[d];
  return index;
}

/// vector.load, and vector.maskedload with a mask and what else to give.
static bool runLoad(Step &step) {
  Source source(step.in[0], step.op->getOperand(0).getType());
  size_t rank = source.shape().size();
  bool masked = isa<vector::MaskedLoadOp>(step.op);
  Datum result = masked ? step.in[2 + rank] : makeResult(step, whole(0));
  Array &out = result.ownArray();
  Shape lane(out.shape.size(), 0);
  size_t i = 0;
  do {
    if (masked && !step.in[1 + rank].array().data[i].i) {
      ++i;
      continue;
    }
    if (!source.load(laneIndex(step.in, 1, rank, lane), out.data[i++]))
      return outside(step);
  } while (advance(lane, out.shape));
  step.give(result);
  return true;
}

static bool runStore(Step &step) {
  bool masked = isa<vector::MaskedStoreOp>(step.op);
  size_t base = masked ? 0 : 1;
  Source source(step.in[base], step.op->getOperand(base).getType());
  size_t rank = source.shape().size();
  const Array &from = masked ? step.in[2 + rank].array() : step.in[0].array();
  Shape lane(from.shape.size(), 0);
  size_t i = 0;
  do {
    if (masked && !step.in[1 + rank].array().data[i].i) {
      ++i;
      continue;
    }
    if (!source.store(laneIndex(step.in, base + 1, rank, lane), from.data[i++]))
      return outside(step);
  } while (advance(lane, from.shape));
  return true;
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

static bool runBroadcast(Step &step) {
  if (!step.in[0].box) {
    step.give(makeResult(step, step.in[0].scalar));
    return true;
  }
  const Array &from = step.in[0].array();
  Datum result = makeResult(step, whole(0));
  Array &out = result.array();
  Shape index(out.shape.size(), 0);
  size_t i = 0, skipped = out.shape.size() - from.shape.size();
  do {
    Shape at(index.begin() + skipped, index.end());
    for (size_t d = 0; d < at.size(); ++d)
      if (from.shape[d] == 1)
        at[d] = 0;
    out.data[i++] = from.data[flatten(at, from.shape)];
  } while (advance(index, out.shape));
  step.give(result);
  return true;
}

static bool runReshape(Step &step) {
  if (!step.in[0].box)
    step.in[0] = makeArray({1}, step.in[0].scalar);
  step.in[0].ownArray().shape = shapeOf(step.op->getResult(0).getType());
  step.give(step.in[0]);
  return true;
}

static bool runShuffle(Step &step) {
  auto op = cast<vector::ShuffleOp>(step.op);
  const Array &a = step.in[0].array(), &b = step.in[1].array();
  int64_t rows = a.shape.empty() ? 1 : a.shape[0];
  int64_t run = int64_t(a.data.size()) / rows;
  Datum result = makeResult(step, poison(step.elementOf(op.getResult())));
  for (auto [i, from] : llvm::enumerate(op.getMask())) {
    if (from < 0)
      continue;
    const Scalar *source =
        from < rows ? &a.data[from * run] : &b.data[(from - rows) * run];
    std::copy_n(source, run, &result.array().data[i * run]);
  }
  step.give(result);
  return true;
}

static bool runExtract(Step &step) {
  auto op = cast<vector::ExtractOp>(step.op);
  size_t at = 0;
  Shape position = mixed(op.getStaticPosition(), step.in.drop_front(), at);
  const Array &from = step.in[0].array();
  int64_t place = 0, run = int64_t(from.data.size());
  for (size_t d = 0; d < position.size(); ++d) {
    if (position[d] < 0 || position[d] >= from.shape[d])
      return outside(step);
    run /= from.shape[d];
    place += position[d] * run;
  }
  if (!isa<VectorType>(op.getType())) {
    step.give(from.data[place]);
    return true;
  }
  Datum result = makeResult(step, whole(0));
  std::copy_n(&from.data[place], run, result.array().data.begin());
  step.give(result);
  return true;
}

static bool runInsert(Step &step) {
  auto op = cast<vector::InsertOp>(step.op);
  size_t at = 0;
  Shape position = mixed(op.getStaticPosition(), step.in.drop_front(2), at);
  Array &to = step.in[1].ownArray();
  int64_t place = 0, run = int64_t(to.data.size());
  for (size_t d = 0; d < position.size(); ++d) {
    if (position[d] < 0 || position[d] >= to.shape[d])
      return outside(step);
    run /= to.shape[d];
    place += position[d] * run;
  }
  if (!step.in[0].box)
    to.data[place] = step.in[0].scalar;
  else
    std::copy_n(step.in[0].array().data.begin(), run, &to.data[place]);
  step.give(step.in[1]);
  return true;
}

static Slice strided(llvm::ArrayRef<int64_t> shape, ArrayAttr offsets,
                     ArrayAttr sizes) {
  Slice slice{Shape(shape.size(), 0), Shape(shape), Shape(shape.size(), 1)};
  for (size_t d = 0; d < offsets.size(); ++d)
    slice.offsets[d] = cast<IntegerAttr>(offsets[d]).getInt();
  for (size_t d = 0; sizes && d < sizes.size(); ++d)
    slice.sizes[d] = cast<IntegerAttr>(sizes[d]).getInt();
  return slice;
}

static bool runExtractStrided(Step &step) {
  auto op = cast<vector::ExtractStridedSliceOp>(step.op);
  const Array &from = step.in[0].array();
  Datum result = makeResult(step, whole(0));
  if (!extractSlice(step, from, result.array(),
                    strided(from.shape, op.getOffsets(), op.getSizes())))
    return false;
  step.give(result);
  return true;
}

static bool runInsertStrided(Step &step) {
  auto op = cast<vector::InsertStridedSliceOp>(step.op);
  const Array &from = step.in[0].array();
  Array &to = step.in[1].ownArray();
  Slice slice = strided(to.shape, op.getOffsets(), {});
  size_t skipped = to.shape.size() - from.shape.size();
  for (size_t d = 0; d < to.shape.size(); ++d)
    slice.sizes[d] = d < skipped ? 1 : from.shape[d - skipped];
  if (!insertSlice(step, from, to, slice))
    return false;
  step.give(step.in[1]);
  return true;
}

static bool runFromElements(Step &step) {
  Datum result = makeResult(step, whole(0));
  for (auto [i, element] : llvm::enumerate(step.in))
    result.array().data[i] = element.scalar;
  step.give(result);
  return true;
}

static bool runToElements(Step &step) {
  for (Scalar value : step.in[0].array().data)
    step.give(value);
  return true;
}

static bool runTranspose(Step &step) {
  auto op = cast<vector::TransposeOp>(step.op);
  const Array &from = step.in[0].array();
  Datum result = makeResult(step, whole(0));
  Array &out = result.array();
  Shape index(out.shape.size(), 0), at(out.shape.size(), 0);
  size_t i = 0;
  do {
    for (auto [d, p] : llvm::enumerate(op.getPermutation()))
      at[p] = index[d];
    out.data[i++] = from.data[flatten(at, from.shape)];
  } while (advance(index, out.shape));
  step.give(result);
  return true;
}

static bool runInterleave(Step &step) {
  const Array &a = step.in[0].array(), &b = step.in[1].array();
  Datum result = makeResult(step, whole(0));
  for (size_t i = 0; i < a.data.size(); ++i) {
    result.array().data[2 * i] = a.data[i];
    result.array().data[2 * i + 1] = b.data[i];
  }
  step.give(result);
  return true;
}

static bool runDeinterleave(Step &step) {
  const Array &from = step.in[0].array();
  Shape shape = from.shape;
  shape.back() /= 2;
  for (size_t half = 0; half < 2; ++half) {
    Datum result = makeArray(shape, whole(0));
    for (auto [i, value] : llvm::enumerate(result.array().data))
      value = from.data[2 * i + half];
    step.give(result);
  }
  return true;
}

static bool runStep(Step &step) {
  Datum result = makeResult(step, whole(0));
  for (auto [i, value] : llvm::enumerate(result.array().data))
    value = whole(int64_t(i));
  step.give(result);
  return true;
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

static bool makeMask(Step &step, llvm::ArrayRef<int64_t> bounds) {
  Datum result = makeResult(step, whole(0));
  Array &out = result.array();
  Shape index(out.shape.size(), 0);
  size_t i = 0;
  do {
    bool set = true;
    for (auto [at, bound] : llvm::zip(index, bounds))
      set &= at < bound;
    out.data[i++] = whole(set);
  } while (advance(index, out.shape));
  step.give(result);
  return true;
}

static bool runConstantMask(Step &step) {
  return makeMask(step,
                  cast<vector::ConstantMaskOp>(step.op).getMaskDimSizes());
}

static bool runCreateMask(Step &step) {
  Shape bounds;
  for (const Datum &bound : step.in)
    bounds.push_back(bound.integer());
  return makeMask(step, bounds);
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

static Scalar combine(vector::CombiningKind kind, Type type, Scalar a,
                      Scalar b) {
  using K = vector::CombiningKind;
  auto rounded = [&](double value) { return real(roundTo(type, value)); };
  bool isFloat = isa<FloatType>(type);
  switch (kind) {
  case K::ADD:
    return isFloat ? rounded(a.f + b.f) : whole(wrapTo(type, a.i + b.i));
  case K::MUL:
    return isFloat ? rounded(a.f * b.f) : whole(wrapTo(type, a.i * b.i));
  case K::MAXIMUMF:
    return real(maximum(a.f, b.f));
  case K::MINIMUMF:
    return real(minimum(a.f, b.f));
  case K::MAXNUMF:
    return real(std::fmax(a.f, b.f));
  case K::MINNUMF:
    return real(std::fmin(a.f, b.f));
  case K::MAXSI:
    return whole(std::max(a.i, b.i));
  case K::MINSI:
    return whole(std::min(a.i, b.i));
  case K::MAXUI:
    return unsignedOf(type, a.i) > unsignedOf(type, b.i) ? a : b;
  case K::MINUI:
    return unsignedOf(type, a.i) < unsignedOf(type, b.i) ? a : b;
  case K::AND:
    return whole(a.i & b.i);
  case K::OR:
    return whole(a.i | b.i);
  case K::XOR:
    return whole(a.i ^ b.i);
  }
  return a;
}

static bool runReduction(Step &step) {
  auto op = cast<vector::ReductionOp>(step.op);
  const std::vector<Scalar> &values = step.in[0].array().data;
  Type type = op.getType();
  size_t first = 0;
  Scalar result;
  if (step.in.size() > 1)
    result = step.in[1].scalar;
  else
    result = values[first++];
  for (size_t i = first; i < values.size(); ++i)
    result = combine(op.getKind(), type, result, values[i]);
  step.give(result);
  return true;
}

static bool runMultiReduction(Step &step) {
  auto op = cast<vector::MultiDimReductionOp>(step.op);
  const Array &from = step.in[0].array();
  Type type = step.elementOf(op.getSource());
  if (!step.in[1].box) {
    Scalar result = step.in[1].scalar;
    for (Scalar value : from.data)
      result = combine(op.getKind(), type, result, value);
    step.give(result);
    return true;
  }
  llvm::SmallVector<bool> reduced(from.shape.size(), false);
  for (int64_t d : op.getReductionDims())
    reduced[d] = true;
  Array &out = step.in[1].ownArray();
  Shape index(from.shape.size(), 0);
  size_t i = 0;
  do {
    Shape at;
    for (size_t d = 0; d < index.size(); ++d)
      if (!reduced[d])
        at.push_back(index[d]);
    Scalar &to = out.data[flatten(at, out.shape)];
    to = combine(op.getKind(), type, to, from.data[i++]);
  } while (advance(index, from.shape));
  step.give(step.in[1]);
  return true;
}

static bool runOuterProduct(Step &step) {
  auto op = cast<vector::OuterProductOp>(step.op);
  Type type = step.elementOf(op.getResult());
  const Array &a = step.in[0].array();
  Datum result = step.in.size() > 2 ? step.in[2] : makeResult(step, whole(0));
  Array &out = result.ownArray();
  bool vector = step.in[1].box != nullptr;
  size_t n = vector ? step.in[1].array().data.size() : 1;
  for (size_t i = 0; i < a.data.size(); ++i)
    for (size_t j = 0; j < n; ++j) {
      Scalar b = vector ? step.in[1].array().data[j] : step.in[1].scalar;
      Scalar &to = out.data[i * n + j];
      to = step.in.size() > 2
               ? real(roundTo(type, std::fma(a.data[i].f, b.f, to.f)))
               : real(roundTo(type, a.data[i].f * b.f));
    }
  step.give(result);
  return true;
}

void validation::addVector(Handlers &handlers) {
  struct {
    const char *name;
    Handler handler;
  } ops[] = {{"transfer_read", runTransferRead},
             {"transfer_write", runTransferWrite},
             {"load", runLoad},
             {"maskedload", runLoad},
             {"store", runStore},
             {"maskedstore", runStore},
             {"broadcast", runBroadcast},
             {"shape_cast", runReshape},
             {"shuffle", runShuffle},
             {"extract", runExtract},
             {"insert", runInsert},
             {"extract_strided_slice", runExtractStrided},
             {"insert_strided_slice", runInsertStrided},
             {"from_elements", runFromElements},
             {"to_elements", runToElements},
             {"transpose", runTranspose},
             {"interleave", runInterleave},
             {"deinterleave", runDeinterleave},
             {"step", runStep},
             {"constant_mask", runConstantMask},
             {"create_mask", runCreateMask},
             {"bitcast", bitcast},
             {"fma", runFma},
             {"reduction", runReduction},
             {"multi_reduction", runMultiReduction},
             {"outerproduct", runOuterProduct}};
  for (auto [name, handler] : ops)
    handlers[("vector." + llvm::Twine(name)).str()] = handler;
}
