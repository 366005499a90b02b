//===- KernelBuilder.cpp - Short names for emitting loops and vectors -----*-
// C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Conversion/KernelBuilder.h"

#include "attune/Conversion/Lanes.h"
#include "attune/TargetInfo/TargetDescription.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace attune {

/// The bits of an infinite f32.
static constexpr int32_t kInfinity = 0x7f800000;

/// Ops that stay until tensors are memory have kernels that write to it.
static bool isBuffer(Value value) { return isa<MemRefType>(value.getType()); }

Value KernelBuilder::index(int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

Value KernelBuilder::f32(double value) {
  return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
}

// Index arithmetic folds constants at once, so that static sizes stay static.
Value KernelBuilder::add(Value lhs, Value rhs) {
  auto x = getConstantIntValue(lhs), y = getConstantIntValue(rhs);
  if (x && y)
    return index(*x + *y);
  if (y && *y == 0)
    return lhs;
  if (x && *x == 0)
    return rhs;
  return arith::AddIOp::create(b, loc, lhs, rhs);
}

Value KernelBuilder::sub(Value lhs, Value rhs) {
  auto x = getConstantIntValue(lhs), y = getConstantIntValue(rhs);
  if (x && y)
    return index(*x - *y);
  if (y && *y == 0)
    return lhs;
  return arith::SubIOp::create(b, loc, lhs, rhs);
}

Value KernelBuilder::mul(Value lhs, Value rhs) {
  auto x = getConstantIntValue(lhs), y = getConstantIntValue(rhs);
  if (x && y)
    return index(*x * *y);
  if (y && *y == 1)
    return lhs;
  if (x && *x == 1)
    return rhs;
  return arith::MulIOp::create(b, loc, lhs, rhs);
}

Value KernelBuilder::min(Value lhs, Value rhs) {
  auto x = getConstantIntValue(lhs), y = getConstantIntValue(rhs);
  if (x && y)
    return index(std::min(*x, *y));
  return arith::MinSIOp::create(b, loc, lhs, rhs);
}

Value KernelBuilder::ceilDiv(Value lhs, int64_t rhs) {
  if (auto x = getConstantIntValue(lhs))
    return index((*x + rhs - 1) / rhs);
  return arith::DivSIOp::create(b, loc, add(lhs, index(rhs - 1)), index(rhs));
}

Value KernelBuilder::dim(Value tensor, int64_t i) {
  auto type = cast<ShapedType>(tensor.getType());
  if (!type.isDynamicDim(i))
    return index(type.getDimSize(i));
  if (isBuffer(tensor))
    return memref::DimOp::create(b, loc, tensor, i);
  return tensor::DimOp::create(b, loc, tensor, i);
}

VectorType KernelBuilder::vectorType(int64_t lanes) {
  return VectorType::get({lanes}, b.getF32Type());
}

Value KernelBuilder::splat(double value, int64_t lanes) {
  auto attr =
      DenseElementsAttr::get(vectorType(lanes), static_cast<float>(value));
  return arith::ConstantOp::create(b, loc, attr);
}

Value KernelBuilder::splat(Value scalar, int64_t lanes) {
  return vector::BroadcastOp::create(b, loc, vectorType(lanes), scalar);
}

static Type elementOf(Value tensor) {
  return cast<ShapedType>(tensor.getType()).getElementType();
}

Value KernelBuilder::load(Value tensor, ValueRange indices, int64_t lanes,
                          Value valid, double pad) {
  Type element = elementOf(tensor);
  auto type = VectorType::get({lanes}, element);
  Value padding =
      arith::ConstantOp::create(b, loc, b.getFloatAttr(element, pad));
  auto map = AffineMap::getMinorIdentityMap(indices.size(), 1, b.getContext());
  Value mask;
  if (valid)
    mask = vector::CreateMaskOp::create(
        b, loc, VectorType::get({lanes}, b.getI1Type()), valid);
  Value read = vector::TransferReadOp::create(b, loc, type, tensor, indices,
                                              AffineMapAttr::get(map), padding,
                                              mask, b.getBoolArrayAttr({true}));
  if (element.isF32())
    return read;
  return arith::ExtFOp::create(b, loc, vectorType(lanes), read);
}

Value KernelBuilder::loadScalar(Value tensor, ValueRange indices) {
  Value read;
  if (isBuffer(tensor))
    read = memref::LoadOp::create(b, loc, tensor, indices);
  else
    read = tensor::ExtractOp::create(b, loc, tensor, indices);
  Type element = elementOf(tensor);
  if (!isa<FloatType>(element) || element.isF32())
    return read;
  return arith::ExtFOp::create(b, loc, b.getF32Type(), read);
}

Value KernelBuilder::store(Value vector, Value tensor, ValueRange indices,
                           Value valid) {
  auto type = cast<VectorType>(vector.getType());
  Type element = elementOf(tensor);
  if (type.getElementType() != element)
    vector = arith::TruncFOp::create(
        b, loc, VectorType::get(type.getShape(), element), vector);
  auto map = AffineMap::getMinorIdentityMap(indices.size(), 1, b.getContext());
  Value mask;
  if (valid)
    mask = vector::CreateMaskOp::create(
        b, loc, VectorType::get(type.getShape(), b.getI1Type()), valid);
  bool buffer = isBuffer(tensor);
  auto write = vector::TransferWriteOp::create(
      b, loc, buffer ? Type() : tensor.getType(), vector, tensor, indices,
      AffineMapAttr::get(map), mask, b.getBoolArrayAttr({true}));
  return buffer ? tensor : write.getResult();
}

Value KernelBuilder::storeScalar(Value number, Value tensor,
                                 ValueRange indices) {
  if (!isBuffer(tensor))
    return tensor::InsertOp::create(b, loc, number, tensor, indices);
  memref::StoreOp::create(b, loc, number, tensor, indices);
  return tensor;
}

Value KernelBuilder::scratch(ArrayRef<int64_t> shape, Type element,
                             bool buffer) {
  if (buffer)
    return memref::AllocaOp::create(b, loc, MemRefType::get(shape, element),
                                    b.getI64IntegerAttr(kLineBytes));
  return bufferization::AllocTensorOp::create(
      b, loc, RankedTensorType::get(shape, element), ValueRange{});
}

/// The memory of a tensor, wherever its rows are.
static Value memoryOf(KernelBuilder &k, Value tensor) {
  if (isBuffer(tensor))
    return tensor;
  auto type = cast<RankedTensorType>(tensor.getType());
  auto anywhere = StridedLayoutAttr::get(
      k.b.getContext(), ShapedType::kDynamic,
      SmallVector<int64_t>(type.getRank(), ShapedType::kDynamic));
  return bufferization::ToBufferOp::create(
      k.b, k.loc,
      MemRefType::get(type.getShape(), type.getElementType(), anywhere), tensor,
      /*read_only=*/true);
}

void KernelBuilder::prefetch(Value tensor, ValueRange indices) {
  memref::PrefetchOp::create(b, loc, memoryOf(*this, tensor), indices,
                             /*isWrite=*/false, /*localityHint=*/3,
                             /*isDataCache=*/true);
}

void KernelBuilder::prefetchFromMemory(Value tensor, ValueRange indices) {
  memref::PrefetchOp::create(b, loc, memoryOf(*this, tensor), indices,
                             /*isWrite=*/false, /*localityHint=*/2,
                             /*isDataCache=*/true);
}

void KernelBuilder::prefetchForNext(Value tensor, ValueRange indices) {
  auto type = cast<ShapedType>(tensor.getType());
  Value buffer = tensor;
  if (!isBuffer(tensor))
    buffer = bufferization::ToBufferOp::create(
        b, loc, MemRefType::get(type.getShape(), type.getElementType()), tensor,
        /*read_only=*/true);
  size_t kept = indices.size() - 1;
  SmallVector<ReassociationIndices> groups(indices.size());
  for (int64_t i = 0; i < type.getRank(); ++i)
    groups[std::min<size_t>(i, kept)].push_back(i);
  if (groups.size() < size_t(type.getRank()))
    buffer = memref::CollapseShapeOp::create(b, loc, buffer, groups);
  memref::PrefetchOp::create(b, loc, buffer, indices, /*isWrite=*/false,
                             /*localityHint=*/2, /*isDataCache=*/true);
}

void KernelBuilder::prefetchForWriting(Value tensor, ValueRange indices) {
  memref::PrefetchOp::create(b, loc, memoryOf(*this, tensor), indices,
                             /*isWrite=*/true, /*localityHint=*/3,
                             /*isDataCache=*/true);
}

Value KernelBuilder::fma(Value lhs, Value rhs, Value acc) {
  return vector::FMAOp::create(b, loc, lhs, rhs, acc);
}

KernelBuilder::Values KernelBuilder::forLoop(Value begin, Value end,
                                             int64_t step, ValueRange inits,
                                             Body body) {
  // Buffers are the same ones in every iteration.
  auto numbersOf = [](ValueRange values) {
    return Values(llvm::make_filter_range(
        values, [](Value value) { return !isBuffer(value); }));
  };
  auto together = [&](ValueRange numbers) {
    Values all(inits);
    unsigned next = 0;
    for (Value &value : all)
      if (!isBuffer(value))
        value = numbers[next++];
    return all;
  };
  auto loop = scf::ForOp::create(
      b, loc, begin, end, index(step), numbersOf(inits),
      [&](OpBuilder &inner, Location at, Value iv, ValueRange carried) {
        KernelBuilder k(inner, at);
        scf::YieldOp::create(inner, at,
                             numbersOf(body(k, iv, together(carried))));
      });
  return together(loop.getResults());
}

Value KernelBuilder::forallTiles(
    ArrayRef<OpFoldResult> counts, Value dest,
    llvm::function_ref<Tile(KernelBuilder &, ValueRange)> place,
    llvm::function_ref<Value(KernelBuilder &, ValueRange, Value)> compute) {
  return forallTiles(
      counts, ValueRange{dest},
      [&](KernelBuilder &k, ValueRange ivs) {
        return SmallVector<Tile>{place(k, ivs)};
      },
      [&](KernelBuilder &k, ValueRange ivs, ValueRange tiles) {
        return Values{compute(k, ivs, tiles[0])};
      })[0];
}

KernelBuilder::Values KernelBuilder::forallTiles(
    ArrayRef<OpFoldResult> counts, ValueRange dests,
    llvm::function_ref<SmallVector<Tile>(KernelBuilder &, ValueRange)> place,
    llvm::function_ref<Values(KernelBuilder &, ValueRange, ValueRange)>
        compute) {
  auto loop = scf::ForallOp::create(b, loc, counts, dests, std::nullopt);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  KernelBuilder k(b, loc);
  SmallVector<Value> ivs = loop.getInductionVars();
  SmallVector<Tile> tiles = place(k, ivs);
  Values slices;
  for (auto [tile, whole] : llvm::zip(tiles, loop.getRegionIterArgs()))
    slices.push_back(tensor::ExtractSliceOp::create(
        b, loc, whole, getAsOpFoldResult(tile.offsets), tile.sizes,
        SmallVector<OpFoldResult>(tile.offsets.size(), b.getIndexAttr(1))));
  Values written = compute(k, ivs, slices);
  b.setInsertionPointToStart(loop.getTerminator().getBody());
  for (auto [tile, whole, slice] :
       llvm::zip(tiles, loop.getRegionIterArgs(), written))
    tensor::ParallelInsertSliceOp::create(
        b, loc, slice, whole, getAsOpFoldResult(tile.offsets), tile.sizes,
        SmallVector<OpFoldResult>(tile.offsets.size(), b.getIndexAttr(1)));
  return Values(loop.getResults());
}

KernelBuilder::Values emitMicrokernel(
    KernelBuilder &k, int64_t rows, Value depth, ValueRange inits,
    llvm::function_ref<Value(KernelBuilder &, int64_t, Value)> loadA,
    llvm::function_ref<Value(KernelBuilder &, Value)> loadB, int64_t written) {
  int64_t lanes = cast<VectorType>(inits[0].getType()).getDimSize(0);
  auto turn = [&](KernelBuilder &k, Value first, ValueRange carried) {
    KernelBuilder::Values sums(carried);
    for (int64_t i = 0; i < written; ++i) {
      Value step = k.add(first, k.index(i));
      Value column = loadB(k, step);
      for (int64_t row = 0; row < rows; ++row)
        sums[row] =
            k.fma(k.splat(loadA(k, row, step), lanes), column, sums[row]);
    }
    return sums;
  };
  if (getConstantIntValue(depth) == written)
    return turn(k, k.index(0), inits);
  return k.forLoop(k.index(0), depth, written, inits, turn);
}

KernelBuilder::Values splitLanes(KernelBuilder &k, ValueRange vectors,
                                 int64_t each) {
  KernelBuilder::Values split;
  for (Value vector : vectors) {
    int64_t parts = cast<VectorType>(vector.getType()).getDimSize(0) / each;
    for (int64_t part = 0; part < parts; ++part)
      split.push_back(
          parts == 1 ? vector
                     : Value(vector::ExtractStridedSliceOp::create(
                           k.b, k.loc, vector, {part * each}, {each}, {1})));
  }
  return split;
}

KernelBuilder::Values joinLanes(KernelBuilder &k, ValueRange split,
                                int64_t parts) {
  if (parts == 1)
    return KernelBuilder::Values(split);
  auto part = cast<VectorType>(split[0].getType());
  int64_t each = part.getDimSize(0);
  auto type = VectorType::get({parts * each}, part.getElementType());
  KernelBuilder::Values joined;
  for (size_t first = 0; first < split.size(); first += parts) {
    Value all =
        arith::ConstantOp::create(k.b, k.loc, type, k.b.getZeroAttr(type));
    for (int64_t i = 0; i < parts; ++i)
      all = vector::InsertStridedSliceOp::create(
          k.b, k.loc, split[first + i], all, ArrayRef<int64_t>{i * each},
          ArrayRef<int64_t>{1});
    joined.push_back(all);
  }
  return joined;
}

void addOuterProduct(int64_t rows, int64_t parts,
                     llvm::function_ref<Value(int64_t row)> loadA,
                     llvm::function_ref<Value(int64_t part)> loadB,
                     llvm::function_ref<Value(Value, Value, Value)> add,
                     KernelBuilder::Values &sums) {
  bool keepsA = parts > rows;
  KernelBuilder::Values kept;
  for (int64_t i = 0; i < std::min(rows, parts); ++i)
    kept.push_back(keepsA ? loadA(i) : loadB(i));
  for (int64_t i = 0; i < std::max(rows, parts); ++i) {
    Value once = keepsA ? loadB(i) : loadA(i);
    for (auto [j, other] : llvm::enumerate(kept)) {
      int64_t row = keepsA ? int64_t(j) : i, part = keepsA ? i : int64_t(j);
      Value &sum = sums[row * parts + part];
      sum = keepsA ? add(sum, other, once) : add(sum, once, other);
    }
  }
}

KernelBuilder::Values emitSplitMicrokernel(
    KernelBuilder &k, int64_t rows, int64_t each, Value steps, ValueRange inits,
    llvm::function_ref<Value(KernelBuilder &, int64_t, Value)> loadA,
    llvm::function_ref<Value(KernelBuilder &, Value, int64_t)> loadB,
    llvm::function_ref<Value(KernelBuilder &, Value, Value, Value)> add,
    int64_t written) {
  auto type = cast<VectorType>(inits[0].getType());
  int64_t parts = type.getDimSize(0) / each;
  auto turn = [&](KernelBuilder &k, Value first, ValueRange carried) {
    KernelBuilder::Values sums(carried);
    for (int64_t i = 0; i < written; ++i) {
      Value step = k.add(first, k.index(i));
      addOuterProduct(
          rows, parts, [&](int64_t row) { return loadA(k, row, step); },
          [&](int64_t part) { return loadB(k, step, part * each); },
          [&](Value sum, Value a, Value b) { return add(k, sum, a, b); }, sums);
    }
    return sums;
  };
  // An accumulator is as many registers as instructions fill.
  KernelBuilder::Values split = splitLanes(k, inits, each);
  KernelBuilder::Values sums =
      getConstantIntValue(steps) == written
          ? turn(k, k.index(0), split)
          : k.forLoop(k.index(0), steps, written, split, turn);
  return joinLanes(k, sums, parts);
}

Value rankOf(KernelBuilder &k, Value x) {
  Type type = x.getType();
  Type integer = k.b.getI32Type();
  Value zero = k.f32(0);
  if (auto lanes = dyn_cast<VectorType>(type)) {
    integer = lanes.clone(integer);
    zero = k.splat(0.0, lanes.getDimSize(0));
  }
  Value isNaN = compare(k, arith::CmpFPredicate::UNO, x, x);
  // The sum of -0 and 0 is 0.
  x = arith::AddFOp::create(k.b, k.loc, x, zero);
  Value bits = arith::BitcastOp::create(k.b, k.loc, integer, x);
  // The larger the other bits of a negative number, the smaller it is.
  Value sign = arith::ShRSIOp::create(k.b, k.loc, bits, number(k, 31, type));
  Value flip = both(k, sign, number(k, 0x7fffffff, type));
  bits = arith::XOrIOp::create(k.b, k.loc, bits, flip);
  return select(k, isNaN, number(k, kInfinity, type), bits);
}

} // namespace attune
