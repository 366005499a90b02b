//===- Waves.cpp - Waveforms and their lengths ------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Layers/StateTokens.h"
#include "EntryImporter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attune;

//===----------------------------------------------------------------------===//
// Convolutions
//===----------------------------------------------------------------------===//

/// [batch, places] as [batch, 1, places].
Value EntryImporter::asOneChannel(Location at, Value input) {
  auto type =
      RankedTensorType::get({ShapedType::kDynamic, 1, ShapedType::kDynamic},
                            typeOf(input).getElementType());
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, at, input);
  sizes.insert(sizes.begin() + 1, builder.getIndexAttr(1));
  return tensor::ExpandShapeOp::create(
      builder, at, type, input, ArrayRef<ReassociationIndices>{{0, 1}, {2}},
      sizes);
}

/// Zeros before and behind the places of [batch, places, channels], or with
/// `mirrors` the places themselves, mirrored at the first and the last. Where
/// there are too few of them, zeros follow before they are mirrored. Those
/// behind end the last stride, too.
Value EntryImporter::paddedPlaces(Location at, Value input, int64_t before,
                                  int64_t behind, int64_t stride,
                                  bool mirrors) {
  Value places = builder.createOrFold<tensor::DimOp>(at, input, index(1));
  Value ending = places;
  if (stride > 1) {
    ending = arith::CeilDivUIOp::create(builder, at, places, index(stride));
    ending = arith::MulIOp::create(builder, at, ending, index(stride));
  }
  Value all =
      arith::AddIOp::create(builder, at, ending, index(before + behind));
  Value batch = builder.createOrFold<tensor::DimOp>(at, input, index(0));
  Value start = index(before), first = index(0), turn;
  if (mirrors) {
    Value least = index(std::max(before, behind) + 1);
    if (stride > 1) {
      Value more = arith::SubIOp::create(builder, at, ending, places);
      more = arith::AddIOp::create(builder, at, more, index(behind + 1));
      least = arith::MaxSIOp::create(builder, at, more, index(before + 1));
    }
    Value most = arith::MaxSIOp::create(builder, at, places, least);
    turn = arith::SubIOp::create(
        builder, at, arith::AddIOp::create(builder, at, most, most), index(2));
  }
  return generate(
      at, {batch, all}, typeOf(input).getDimSize(2),
      [&](OpBuilder &b, ValueRange i) -> Value {
        Value place = arith::SubIOp::create(b, at, i[1], start);
        if (mirrors) {
          // A place before the first one or behind the last one becomes its
          // mirror image there.
          Value ahead = arith::SubIOp::create(b, at, start, i[1]);
          place = arith::MaxSIOp::create(b, at, place, ahead);
          Value back = arith::SubIOp::create(b, at, turn, place);
          place = arith::MinSIOp::create(b, at, place, back);
        }
        // Before the first place this is a very large number.
        Value there = arith::CmpIOp::create(b, at, arith::CmpIPredicate::ult,
                                            place, places);
        Value from = arith::SelectOp::create(b, at, there, place, first);
        Value x = tensor::ExtractOp::create(b, at, input,
                                            ValueRange{i[0], from, i[2]});
        if (!x.getType().isF32())
          x = arith::ExtFOp::create(b, at, b.getF32Type(), x);
        Value none = arith::ConstantOp::create(b, at, b.getF32FloatAttr(0));
        return arith::SelectOp::create(b, at, there, x, none);
      });
}

/// What a convolution reads of the stream, and how much of its padding is not
/// in there.
Value EntryImporter::convInput(Location at, const spec::Conv &op,
                               std::vector<int64_t> &padding) {
  Value input = state.value;
  if (typeOf(input).getRank() == 2) {
    input = asOneChannel(at, input);
    state.shape.insert(state.shape.begin() + 1, {1, ""});
  }
  // Behind its end a sequence is as if there were nothing else.
  bool strides = op.same && op.stride[0] > 1;
  if (stream->mask && (padding[0] != 0 || strides) && !op.channelsFirst)
    input = showTokens(builder, at, input, stream->mask);
  if (op.same && !op.channelsFirst && op.kernel[0] > 1 &&
      (op.kernel[0] % 2 == 0 || op.reflect || op.causal || strides)) {
    input = paddedPlaces(at, input, padding[0],
                         op.kernel[0] - op.stride[0] - padding[0], op.stride[0],
                         op.reflect);
    padding[0] = 0;
  }
  return input;
}

/// Each place gives a row for each place of the kernel, and each of the result
/// is the sum of what falls on it.
LogicalResult EntryImporter::importTransposed(size_t number) {
  const spec::Layer &layer = stream->spec.layers[number];
  const auto &op = std::get<spec::Conv>(layer.op);
  Location at = loc(layer.location);
  if (stream->mask) {
    diags.error(layer.location, "the places of a transposed convolution are in "
                                "no attention mask");
    return failure();
  }
  int64_t kernel = op.kernel[0], stride = op.stride[0];
  Value matrix = roleOf(number, "weight", kernel * op.out, op.channels);
  Value bias = op.bias ? roleOf(number, "bias", op.out, 0) : Value();
  if (!matrix || (op.bias && !bias))
    return failure();
  LayerScope scope;
  spec::Linear linear;
  linear.out = kernel * op.out;
  Value rows = LayerImporter(builder, shared.weights, layer,
                             stream->symbols[number], scope, diags)
                   .linear(linear, state.value, matrix);
  if (!rows)
    return failure();
  Value batch = builder.createOrFold<tensor::DimOp>(at, rows, index(0));
  Value places = builder.createOrFold<tensor::DimOp>(at, rows, index(1));
  Value all = arith::MulIOp::create(builder, at, places, index(stride));
  // A norm reads all places, so none are cut off before it.
  int64_t cut = kernel - stride, before = op.causal ? 0 : cut - cut / 2;
  Value ahead = index(op.norm ? 0 : before), step = index(stride),
        width = index(op.out), none = index(0);
  Value made =
      op.norm ? arith::AddIOp::create(builder, at, all, index(cut)).getResult()
              : all;
  SmallVector<Value> taps;
  for (int64_t tap = 0; tap < kernel / stride; ++tap)
    taps.push_back(index(tap));
  state.value = generate(
      at, {batch, made}, op.out, [&](OpBuilder &b, ValueRange i) -> Value {
        Value place = arith::AddIOp::create(b, at, i[1], ahead);
        Value newest = arith::DivUIOp::create(b, at, place, step);
        Value phase = arith::RemUIOp::create(b, at, place, step);
        Value zero = arith::ConstantOp::create(b, at, b.getF32FloatAttr(0));
        Value sum = zero;
        if (bias) {
          sum = tensor::ExtractOp::create(b, at, bias, i[2]);
          if (!sum.getType().isF32())
            sum = arith::ExtFOp::create(b, at, b.getF32Type(), sum);
        }
        for (Value tap : taps) {
          Value from = arith::SubIOp::create(b, at, newest, tap);
          // Before the first place this is a very large number.
          Value there = arith::CmpIOp::create(b, at, arith::CmpIPredicate::ult,
                                              from, places);
          from = arith::SelectOp::create(b, at, there, from, none);
          Value part = arith::AddIOp::create(
              b, at, phase, arith::MulIOp::create(b, at, tap, step));
          Value channel = arith::AddIOp::create(
              b, at, i[2], arith::MulIOp::create(b, at, part, width));
          Value x = tensor::ExtractOp::create(b, at, rows,
                                              ValueRange{i[0], from, channel});
          x = arith::SelectOp::create(b, at, there, x, zero);
          sum = arith::AddFOp::create(b, at, sum, x);
        }
        return sum;
      });
  if (op.norm) {
    if (failed(normPlaces(number, *op.norm, "norm.")))
      return failure();
    state.value = cutAlong(builder, at, state.value, 1, index(before), all);
  }
  if (op.activation != spec::Activation::Identity)
    state.value = ActivationOp::create(builder, at, state.value,
                                       toActivation(op.activation));
  spec::Dim &count = state.shape[1];
  if (count.size >= 0)
    count.size *= stride;
  else
    count.symbol = "(" + count.symbol + ")*" + std::to_string(stride);
  state.shape[2] = {op.out, ""};
  state.places = {count};
  state.height = state.width = Value();
  state.before = 0;
  return success();
}

/// How many places of each sequence a mask shows, [batch].
Value EntryImporter::countShown(Location at, Value mask) {
  Value &counts = shownCounts[mask];
  if (counts)
    return counts;
  auto flat = RankedTensorType::get(
      {ShapedType::kDynamic, ShapedType::kDynamic}, builder.getI1Type());
  Value rows = tensor::CollapseShapeOp::create(
      builder, at, flat, mask, ArrayRef<ReassociationIndices>{{0, 1, 2}, {3}});
  Value batch = builder.createOrFold<tensor::DimOp>(at, rows, index(0));
  Type number = builder.getI64Type();
  Value zero =
      arith::ConstantOp::create(builder, at, builder.getI64IntegerAttr(0));
  Value empty =
      tensor::EmptyOp::create(builder, at, {OpFoldResult(batch)}, number);
  Value none =
      linalg::FillOp::create(builder, at, ValueRange{zero}, ValueRange{empty})
          .getResult(0);
  AffineMap all = builder.getMultiDimIdentityMap(2);
  counts = linalg::GenericOp::create(
               builder, at, none.getType(), ValueRange{rows}, none,
               ArrayRef<AffineMap>{all, all.dropResult(1)},
               ArrayRef<utils::IteratorType>{utils::IteratorType::parallel,
                                             utils::IteratorType::reduction},
               [&](OpBuilder &b, Location at, ValueRange args) {
                 Value one = arith::ExtUIOp::create(b, at, number, args[0]);
                 Value sum = arith::AddIOp::create(b, at, args[1], one);
                 linalg::YieldOp::create(b, at, sum);
               })
               .getResult(0);
  return counts;
}

/// The mask of a convolution's `places`: of a sequence whose first L places are
/// shown, those that a convolution of these alone would have.
Value EntryImporter::maskBehind(Location at, const spec::Conv &op, Value mask,
                                Value places) {
  Value before = countShown(at, mask);
  if (op.same && op.stride[0] == 1)
    return firstShown(at, before, places);
  // A stride that is begun gives a place, or else a whole kernel.
  int64_t more = op.same ? op.stride[0] - 1
                         : 2 * op.padding[0] - op.kernel[0] + op.stride[0];
  Type number = builder.getI64Type();
  Value batch = builder.createOrFold<tensor::DimOp>(at, before, index(0));
  Value empty =
      tensor::EmptyOp::create(builder, at, {OpFoldResult(batch)}, number);
  Value counts =
      linalg::GenericOp::create(
          builder, at, empty.getType(), ValueRange{before}, empty,
          SmallVector<AffineMap>(2, builder.getMultiDimIdentityMap(1)),
          SmallVector<utils::IteratorType>(1, utils::IteratorType::parallel),
          [&](OpBuilder &b, Location at, ValueRange args) {
            auto integer = [&](int64_t value) -> Value {
              return arith::ConstantOp::create(b, at,
                                               b.getI64IntegerAttr(value));
            };
            // Fewer places than the kernel has give none.
            Value room = arith::AddIOp::create(b, at, args[0], integer(more));
            room = arith::MaxSIOp::create(b, at, room, integer(0));
            Value count =
                arith::DivUIOp::create(b, at, room, integer(op.stride[0]));
            linalg::YieldOp::create(b, at, count);
          })
          .getResult(0);
  return firstShown(at, counts, places);
}

/// [batch, 1, 1, places], where the first `counts` of each sequence are shown.
Value EntryImporter::firstShown(Location at, Value counts, Value places) {
  Value batch = builder.createOrFold<tensor::DimOp>(at, counts, index(0));
  Value empty = tensor::EmptyOp::create(
      builder, at, {OpFoldResult(batch), OpFoldResult(places)},
      builder.getI1Type());
  AffineMap all = builder.getMultiDimIdentityMap(2);
  Value rows =
      linalg::GenericOp::create(
          builder, at, empty.getType(), ValueRange{counts}, empty,
          ArrayRef<AffineMap>{all.dropResult(1), all},
          SmallVector<utils::IteratorType>(2, utils::IteratorType::parallel),
          [&](OpBuilder &b, Location at, ValueRange args) {
            Value place = arith::IndexCastOp::create(
                b, at, b.getI64Type(), linalg::IndexOp::create(b, at, 1));
            Value shown = arith::CmpIOp::create(
                b, at, arith::CmpIPredicate::slt, place, args[0]);
            linalg::YieldOp::create(b, at, shown);
          })
          .getResult(0);
  auto type = RankedTensorType::get(
      {ShapedType::kDynamic, 1, 1, ShapedType::kDynamic}, builder.getI1Type());
  OpFoldResult one = builder.getIndexAttr(1);
  SmallVector<OpFoldResult> sizes = {batch, one, one, places};
  Value mask = tensor::ExpandShapeOp::create(
      builder, at, type, rows, ArrayRef<ReassociationIndices>{{0, 1, 2}, {3}},
      sizes);
  shownCounts[mask] = counts;
  return mask;
}

//===----------------------------------------------------------------------===//
// Norms over places
//===----------------------------------------------------------------------===//

/// The variance is the mean square of what is left without the mean, so that a
/// mean far from zero costs no digits.
LogicalResult EntryImporter::normPlaces(size_t number,
                                        const spec::InstanceNorm &op,
                                        const std::string &prefix) {
  const spec::Layer &layer = stream->spec.layers[number];
  Location at = loc(layer.location);
  if (stream->mask) {
    diags.error(layer.location, "statistics of all places count those that an "
                                "attention mask hides");
    return failure();
  }
  auto type = typeOf(state.value);
  int64_t width = type.getDimSize(2);
  Value gamma = roleOf(number, prefix + "weight", width, 0);
  Value beta = roleOf(number, prefix + "bias", width, 0);
  if (!gamma || !beta)
    return failure();
  AffineMap all = builder.getMultiDimIdentityMap(3);
  AffineMap ofSequence = all.dropResult(1);
  AffineMap ofChannel =
      AffineMap::get(3, 0, builder.getAffineDimExpr(2), builder.getContext());
  auto everywhere =
      [&](ArrayRef<Value> operands, ArrayRef<AffineMap> maps,
          llvm::function_ref<Value(OpBuilder &, Location, ValueRange)> make) {
        SmallVector<OpFoldResult> sizes =
            tensor::getMixedSizes(builder, at, state.value);
        Value empty =
            tensor::EmptyOp::create(builder, at, sizes, builder.getF32Type());
        SmallVector<AffineMap> every(maps);
        every.push_back(all);
        return linalg::GenericOp::create(
                   builder, at, empty.getType(), operands, empty, every,
                   SmallVector<utils::IteratorType>(
                       3, utils::IteratorType::parallel),
                   [&](OpBuilder &b, Location at, ValueRange args) {
                     linalg::YieldOp::create(b, at, make(b, at, args));
                   })
            .getResult(0);
      };
  auto wide = [](OpBuilder &b, Location at, Value x) -> Value {
    return x.getType().isF32()
               ? x
               : arith::ExtFOp::create(b, at, b.getF32Type(), x).getResult();
  };
  auto vectors = [&](int64_t channels) {
    return RankedTensorType::get({type.getDimSize(0), channels},
                                 builder.getF32Type());
  };
  auto pool = [&](Value places) -> Value {
    return PoolOp::create(
        builder, at, vectors(typeOf(places).getDimSize(2)),
        PoolKindAttr::get(builder.getContext(), attune::PoolKind::Mean), places,
        /*mask=*/Value(), /*tokens=*/Value(), builder.getI64IntegerAttr(0));
  };
  auto meanOf = [&](Value places) -> Value {
    Value means = pool(places);
    if (!op.together)
      return means;
    // All channels have as many places, so that the mean is that of the means.
    auto column = RankedTensorType::get({type.getDimSize(0), width, 1},
                                        builder.getF32Type());
    SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, at, means);
    sizes.push_back(builder.getIndexAttr(1));
    Value mean = pool(tensor::ExpandShapeOp::create(
        builder, at, column, means, ArrayRef<ReassociationIndices>{{0}, {1, 2}},
        sizes));
    Value rows = builder.createOrFold<tensor::DimOp>(at, mean, index(0));
    Value first = index(0);
    return generate(at, rows, width, [&](OpBuilder &b, ValueRange i) -> Value {
      return tensor::ExtractOp::create(b, at, mean, ValueRange{i[0], first});
    });
  };
  Value mean = meanOf(state.value);
  Value centred =
      everywhere({state.value, mean}, {all, ofSequence},
                 [](OpBuilder &b, Location at, ValueRange args) -> Value {
                   return arith::SubFOp::create(b, at, args[0], args[1]);
                 });
  Value squares =
      everywhere({centred}, {all},
                 [](OpBuilder &b, Location at, ValueRange args) -> Value {
                   return arith::MulFOp::create(b, at, args[0], args[0]);
                 });
  Value variance = meanOf(squares);
  Value rows = builder.createOrFold<tensor::DimOp>(at, variance, index(0));
  Value factors =
      generate(at, rows, width, [&](OpBuilder &b, ValueRange i) -> Value {
        Value eps = arith::ConstantOp::create(
            b, at, b.getF32FloatAttr(static_cast<float>(op.eps)));
        Value sum = arith::AddFOp::create(
            b, at, tensor::ExtractOp::create(b, at, variance, i), eps);
        Value scale =
            wide(b, at, tensor::ExtractOp::create(b, at, gamma, i[1]));
        return arith::DivFOp::create(b, at, scale,
                                     math::SqrtOp::create(b, at, sum));
      });
  state.value = everywhere(
      {centred, factors, beta}, {all, ofSequence, ofChannel},
      [&](OpBuilder &b, Location at, ValueRange args) -> Value {
        Value product = arith::MulFOp::create(b, at, args[0], args[1]);
        return arith::AddFOp::create(b, at, product, wide(b, at, args[2]));
      });
  return success();
}
