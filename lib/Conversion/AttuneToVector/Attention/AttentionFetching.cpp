//===- AttentionFetching.cpp - Prefetch schedule of a step ----------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Few rows multiply some keys, exponentiate the scores and multiply the values,
// and each iteration prefetches some lines. Prefetches are spread evenly: a
// core has a limited number of lines under way, and drops any more.
//
// By default keys are prefetched a little ahead of those in use, and so are
// values, to the second-level cache. If lines reach the first-level cache
// sooner (`nearBytes`), keys and values are pipelined in software: values are
// fetched while their keys are multiplied, and the next keys while the values
// are, in phases of about the same length. As many keys are taken at a time as
// stay in that cache until they are used. The exponentials fetch some of the
// keys, too, so that memory has no pause.
//
// Many rows compute for so long that memory keeps up: before each of their
// products they prefetch some lines of the next keys and values.
//
// Which keys and values come behind those of the block is for the operands
// `prefetch` to say.

#include "StepKernel.h"

#include "attune/TargetInfo/CpuAttention.h"
#include "attune/TargetInfo/TargetDescription.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;

namespace attune {

using Values = KernelBuilder::Values;

static int64_t elementBits(Value heads) {
  return tensorType(heads).getElementTypeBitWidth();
}

/// Elements of a row.
static int64_t elementsOf(Value heads) {
  return tensorType(heads).getDimSize(3);
}

static int64_t ceilDiv(int64_t number, int64_t by) {
  return int64_t(llvm::divideCeil(number, by));
}

/// The same with any strides and number of rows, so that two can be chosen
/// from.
static Value anyLayout(KernelBuilder &k, Value heads) {
  auto type = tensorType(heads);
  SmallVector<int64_t> shape(4, ShapedType::kDynamic);
  shape[3] = type.getDimSize(3);
  if (isa<TensorType>(type))
    return tensor::CastOp::create(
        k.b, k.loc, RankedTensorType::get(shape, type.getElementType()), heads);
  SmallVector<int64_t> strides(4, ShapedType::kDynamic);
  strides[3] = 1;
  auto layout =
      StridedLayoutAttr::get(k.b.getContext(), ShapedType::kDynamic, strides);
  return memref::CastOp::create(
      k.b, k.loc, MemRefType::get(shape, type.getElementType(), layout), heads);
}

void StepKernel::chooseFetching() {
  int64_t most = keyPanels * lanes;
  keysFolded = most;
  int64_t bytes = (elementsOf(op.getKey()) * elementBits(op.getKey()) +
                   elementsOf(op.getValue()) * elementBits(op.getValue())) /
                  8;
  int64_t near = nearBytes / bytes / lanes * lanes;
  // One row has little to rescale; bf16 pairs make the rest twice as fast.
  int64_t least = group == 1 ? 0 : fewPairs ? 2 * kFewKeys : kFewKeys;
  crossing = nearBytes > 0 && near >= least;
  if (!crossing)
    return;
  near = std::max<int64_t>(near, llvm::alignTo(kFewKeys, lanes));
  keysFolded = std::min(near, most);
  // With several rows in f32, the exponentials take an eighth of the time.
  if (group > 1)
    keysBesideWeights = keysFolded / 4;
}

/// Prefetches of `elements` per iteration of keys, or of values, from row `row`
/// of the block on, or of those that come next, if that is behind the block.
StepKernel::Fetching StepKernel::fetchingFrom(KernelBuilder &k, bool ofKeys,
                                              Value row, int64_t elements) {
  Value heads = ofKeys ? op.getKey() : op.getValue();
  Value next = ofKeys ? op.getNextKey() : op.getNextValue();
  Value last = k.sub(keys, k.index(1));
  if (!next)
    return {Lying{heads, {batch, kvHead}, k.index(0), last}, row, elements};
  Value inside =
      arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::slt, row, keys);
  auto choose = [&](Value yes, Value no) -> Value {
    return k.b.createOrFold<arith::SelectOp>(k.loc, inside, yes, no);
  };
  // Most often memory has the next ones behind the block.
  Value others = k.sub(k.dim(next, 2), k.index(1));
  last = choose(k.add(keys, others), others);
  row = choose(row, k.sub(row, keys));
  Value from = choose(anyLayout(k, heads), anyLayout(k, next));
  return {Lying{from, {batch, kvHead}, k.index(0), last}, row, elements};
}

/// Prefetches while a panel of keys from `start` on is multiplied, in `turns`
/// iterations: their values, or keys from `ahead` keys later on.
StepKernel::Fetching StepKernel::besideKeys(KernelBuilder &k, Value start,
                                            int64_t ahead, int64_t turns) {
  if (!crossing)
    return fetchingFrom(k, /*ofKeys=*/true, k.add(start, k.index(ahead)),
                        ceilDiv(lanes * elementsOf(op.getKey()), turns));
  Lying values = {
      op.getValue(), {batch, kvHead}, k.index(0), k.sub(keys, k.index(1))};
  return {values, start, ceilDiv(lanes * elementsOf(op.getValue()), turns)};
}

/// The first key behind the part.
Value StepKernel::nextKeys(KernelBuilder &k) {
  Value size = k.index(keysFolded);
  return scoredFrom ? k.add(scoredFrom, size) : size;
}

/// Prefetches while the scores of a part are exponentiated, each panel in
/// `turns` iterations: the first of the next keys.
StepKernel::Fetching StepKernel::besideWeights(KernelBuilder &k,
                                               int64_t turns) {
  if (keysBesideWeights == 0)
    return {};
  return fetchingFrom(
      k, /*ofKeys=*/true, nextKeys(k),
      ceilDiv(keysBesideWeights * elementsOf(op.getKey()) * lanes,
              keysFolded * turns));
}

/// Prefetches while `depth` values from `start` on are multiplied, `values` of
/// them in `turns` iterations: the rest of the next keys, or the next values.
StepKernel::Fetching StepKernel::besideValues(KernelBuilder &k, Value start,
                                              Value depth, int64_t values,
                                              int64_t turns) {
  if (!crossing)
    return fetchingFrom(k, /*ofKeys=*/false, k.add(start, depth),
                        ceilDiv(elementsOf(op.getValue()) * values, turns));
  int64_t others = keysFolded - keysBesideWeights;
  Value done =
      arith::DivUIOp::create(k.b, k.loc, scoreOf(k, start), k.index(values));
  Fetching fetching = fetchingFrom(
      k, /*ofKeys=*/true, k.add(nextKeys(k), k.index(keysBesideWeights)),
      ceilDiv(others * elementsOf(op.getKey()) * values, keysFolded * turns));
  fetching.firstTurn = k.mul(done, turns);
  return fetching;
}

/// Prefetches for iteration `turn`, counted through all rows, which are
/// contiguous.
void StepKernel::fetch(KernelBuilder &k, const Fetching &what, Value turn) {
  if (!what.from)
    return;
  Value heads = what.from->tensor;
  int64_t size = tensorType(heads).getDimSize(3);
  int64_t line = kLineBytes * 8 / elementBits(heads);
  Value row = k.min(what.row, what.from->last);
  Value end = k.mul(k.add(k.sub(what.from->last, row), k.index(1)), size);
  if (what.firstTurn)
    turn = k.add(turn, what.firstTurn);
  Value begin = k.mul(turn, what.elements);
  for (int64_t i = 0; i < what.elements; i += line) {
    Value at = k.min(k.add(begin, k.index(i)), k.sub(end, k.index(1)));
    if (nearBytes > 0 && !what.toLevel2)
      k.prefetch(heads, what.from->at(k, row, at));
    else
      k.prefetchFromMemory(heads, what.from->at(k, row, at));
  }
}

/// Distributes the prefetches of the next keys and values, as many as this
/// block has, over the products of its rows, each with a panel of keys or of
/// values.
void StepKernel::chooseNext(KernelBuilder &k) {
  productsOfBlock = k.add(k.ceilDiv(keys, lanes), k.index(valuePanels));
  Value turns = k.mul(countRowBlocks(k), productsOfBlock);
  for (Value heads : {op.getNextKey(), op.getNextValue()}) {
    if (!heads)
      continue;
    Lying next = {
        heads, {batch, kvHead}, k.index(0), k.sub(k.dim(heads, 2), k.index(1))};
    int64_t line = kLineBytes * 8 / elementBits(heads);
    Value lines = k.ceilDiv(k.mul(keys, tensorType(heads).getDimSize(3)), line);
    nextBlock.push_back(
        {{next, k.index(0), line, /*firstTurn=*/{}, /*toLevel2=*/true},
         arith::CeilDivUIOp::create(k.b, k.loc, lines, turns)});
  }
}

/// Before product `product` of a block of rows.
void StepKernel::fetchNext(KernelBuilder &k, Value block, Value product) {
  Value before = k.add(k.mul(block, productsOfBlock), product);
  for (const Next &next : nextBlock) {
    Value firstLine = k.mul(before, next.lines);
    k.forLoop(k.index(0), next.lines, 1, ValueRange(),
              [&](KernelBuilder &k, Value i, ValueRange) {
                fetch(k, next.line, k.add(firstLine, i));
                return Values{};
              });
  }
}

/// Accumulates the keys that are seen, as many at a time as stay in the
/// first-level cache.
Values StepKernel::foldInParts(
    KernelBuilder &k, const Range &seen, ValueRange carried,
    llvm::function_ref<Values(KernelBuilder &, const Range &part, ValueRange)>
        fold) {
  if (!foldsParts())
    return fold(k, seen, carried);
  Value begin = k.mul(firstPanel(k, seen), lanes);
  llvm::SaveAndRestore<Value> whole(scoredFrom);
  return k.forLoop(begin, seen.last, keysFolded, carried,
                   [&](KernelBuilder &k, Value at, ValueRange c) {
                     scoredFrom = at;
                     Range part = seen;
                     part.first = maxIndex(k, seen.first, at);
                     Value end = k.add(at, k.index(keysFolded));
                     part.last = k.min(seen.last, end);
                     return fold(k, part, c);
                   });
}

} // namespace attune
