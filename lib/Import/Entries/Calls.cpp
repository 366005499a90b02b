//===- Calls.cpp - Blocks as functions that entries call --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EntryImporter.h"

#include "attune/Spec/Rings.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attune;

/// The values of a scope that a block's function replaces and gives after its
/// result.
static SmallVector<Value *> replaced(LayerScope &scope) {
  SmallVector<Value *> values;
  for (Value *value : scope.caches())
    if (*value)
      values.push_back(value);
  for (AttentionMap &map : scope.maps)
    values.push_back(&map.value);
  if (scope.givesValues)
    values.push_back(&scope.firstValues);
  if (scope.lendsKeys)
    values.append({&scope.lentKeys, &scope.lentValues});
  return values;
}

/// The values of a scope that a block's function takes after its number and
/// its input, in order.
static SmallVector<Value *> passed(LayerScope &scope) {
  SmallVector<Value *> values;
  for (Value *value :
       {&scope.cos,         &scope.sin,        &scope.queryCos,
        &scope.querySin,    &scope.mask,       &scope.memory,
        &scope.memoryMask,  &scope.lengths,    &scope.memoryLengths,
        &scope.blocks,      &scope.pairs,      &scope.distances,
        &scope.segments,    &scope.diagonals,  &scope.condition,
        &scope.past,        &scope.length,     &scope.crossKeys,
        &scope.crossValues, &scope.cacheIndex, &scope.layerInputs,
        &scope.number,      &scope.embedded,   &scope.firstTokens})
    if (*value)
      values.push_back(value);
  if (scope.firstValues && !scope.givesValues)
    values.push_back(&scope.firstValues);
  if (scope.lentKeys && !scope.lendsKeys)
    values.append({&scope.lentKeys, &scope.lentValues});
  llvm::append_range(values, replaced(scope));
  return values;
}

/// Whether blocks of a cycle have different rings, or some have none.
static bool hasSeveralRings(const spec::Model &model,
                            const spec::Layer &layer) {
  return !llvm::all_equal(spec::ringsOf(model, layer));
}

/// The function of one layer, ahead of this entry. `text` says what block it
/// is.
func::FuncOp EntryImporter::createBlock(size_t number, const spec::Layer &layer,
                                        const std::string &text) {
  Location at = loc(layer.location);
  size_t kindOf = stream->equal.firstOf(number);
  LayerScope outer;
  if (failed(fillScope(layer, outer)))
    return {};
  std::pair cacheKey(kindOf, spec::ringsOf(model, layer)[0]);
  if (auto cache = caches.find(cacheKey); cache != caches.end())
    outer.setCaches(cache->second);
  // A cache has the repeats of one ring alone.
  if (outer.hasCaches() && hasSeveralRings(model, stream->spec.layers[number]))
    outer.cacheIndex = index(0);
  if (auto cache = crossCaches.find(number); cache != crossCaches.end())
    std::tie(outer.crossKeys, outer.crossValues) = cache->second;
  fillMaps(number, outer);
  LayerScope inner = outer;
  SmallVector<Type> types = {builder.getIndexType(), state.value.getType()};
  for (Value *value : passed(inner))
    types.push_back(value->getType());
  SmallVector<Type> resultTypes = {state.value.getType()};
  for (Value *value : replaced(inner))
    resultTypes.push_back(value->getType());

  // Layers behind the last that mixes tokens may have one token only.
  FunctionType type = builder.getFunctionType(types, resultTypes);
  std::vector<MadeBlock> &known = madeBlocks[kindOf];
  for (MadeBlock &made : known)
    if (made.text == text && made.callee.getFunctionType() == type)
      return made.callee;

  StringRef what =
      std::holds_alternative<spec::Block>(layer.op) ? "block" : "layer";
  std::string base = stream->symbols[kindOf] + "_" + what.str();
  if (streams.size() == 1) // otherwise the symbol has the stream's name
    base.insert(0, stream->spec.name + ".");
  std::string end;
  if (decode)
    end += kind == EntryKind::DecodeBatch  ? "_decode_batch"
           : kind == EntryKind::DecodeSpan ? "_decode_span"
                                           : "_decode";
  // Encoding calls the functions of the whole model, except for those that give
  // attention weights. Both kinds of steps share theirs.
  bool ownMaps = kind == EntryKind::Encode && hasMaps(number);
  bool lends = kind == EntryKind::Encode || kind == EntryKind::DecodeAll;
  if (ownMaps)
    end += "_encode";
  std::string name;
  for (size_t variant = known.size();; ++variant) {
    name = base + (variant ? std::to_string(variant) : "") + end;
    auto made = shared.module.lookupSymbol<func::FuncOp>(name);
    if (!made)
      break;
    if (lends && !ownMaps && made.getFunctionType() == type) {
      known.push_back({text, made});
      return made;
    }
  }
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(function);
  auto callee = func::FuncOp::create(builder, at, name, type);
  callee.setPrivate();
  known.push_back({text, callee});
  SmallVector<Location> locs(types.size(), at);
  Block *body = builder.createBlock(&callee.getBody(), {}, types, locs);
  inner.index = body->getArgument(0);
  size_t next = 2;
  for (Value *value : passed(inner))
    *value = body->getArgument(next++);

  Value result = LayerImporter(builder, shared.weights, layer,
                               stream->symbols[kindOf], inner, diags)
                     .build(body->getArgument(1));
  if (!result)
    return {};
  if (result.getType() != state.value.getType()) {
    diags.error(layer.location,
                "a repeated layer must give as many channels as it takes, " +
                    std::to_string(typeOf(state.value).getShape().back()) +
                    ", not " +
                    std::to_string(typeOf(result).getShape().back()));
    return {};
  }
  SmallVector<Value> values = {result};
  for (Value *value : replaced(inner))
    values.push_back(*value);
  func::ReturnOp::create(builder, at, values);
  return callee;
}

/// The blocks of a layer, one for each repeat of its cycle. Equal ones share a
/// function, and so do equal layers.
LogicalResult EntryImporter::createTurns(size_t number,
                                         SmallVectorImpl<Turn> &turns) {
  const spec::Layer &layer = stream->equal.wholeOf(number);
  std::vector<int64_t> rings = spec::ringsOf(model, layer);
  for (size_t i = 0; i < std::max<size_t>(layer.cycle.size(), 1); ++i) {
    spec::Layer own = layer;
    own.cycle.clear();
    std::string text;
    if (!layer.cycle.empty()) {
      own.op = layer.cycle[i];
      text = spec::print(layer.cycle[i], layer.inputWidth);
    }
    Turn &turn = turns.emplace_back();
    turn.callee = createBlock(number, own, text);
    turn.ring = rings[i];
    if (!turn.callee || failed(fillScope(own, turn.scope)))
      return failure();
  }
  return success();
}

/// A loop that calls the layer's functions for each repeat. Equal layers call
/// the same functions, with their own numbers.
LogicalResult EntryImporter::importCalls(size_t number) {
  const spec::Layer &layer = stream->spec.layers[number];
  Location at = loc(layer.location);
  size_t kindOf = stream->equal.firstOf(number);
  int64_t start = stream->equal.startOf(number);
  SmallVector<Turn, 4> turns;
  if (failed(createTurns(number, turns)))
    return failure();

  bool tapped = hiddenStates && std::holds_alternative<spec::Block>(layer.op);
  if (tapped &&
      typeOf(hiddenStates).getDimSize(3) != typeOf(state.value).getDimSize(2)) {
    diags.error(layer.location,
                "hidden_states needs blocks of equal width throughout");
    return failure();
  }
  if (auto cross = crossCaches.find(number); cross != crossCaches.end())
    for (Turn &turn : turns)
      std::tie(turn.scope.crossKeys, turn.scope.crossValues) = cross->second;
  // The values carried from call to call: the stream, the hidden states, the
  // caches, the attention maps.
  SmallVector<Value> carried = {state.value};
  if (tapped)
    carried.push_back(hiddenStates);
  std::map<int64_t, size_t> placeOfCache;
  for (auto [key, cache] : caches)
    if (key.first == kindOf) {
      placeOfCache[key.second] = carried.size();
      for (Value value : cache)
        if (value)
          carried.push_back(value);
    }
  size_t placeOfMaps = carried.size();
  bool gives = false;
  for (Turn &turn : turns) {
    fillMaps(number, turn.scope);
    gives |= turn.scope.givesValues;
    if (auto place = placeOfCache.find(turn.ring); place != placeOfCache.end())
      turn.scope.setCaches(caches[{kindOf, turn.ring}]);
    size_t next = turn.scope.hasCaches() ? placeOfCache[turn.ring] : 0;
    size_t numMaps = turn.scope.maps.size(), map = placeOfMaps;
    size_t numCaches = replaced(turn.scope).size() - numMaps -
                       (turn.scope.givesValues ? 1 : 0) -
                       (turn.scope.lendsKeys ? 2 : 0);
    for (size_t i = 0; i < numCaches; ++i)
      turn.places.push_back(next++);
    // Values that go to later blocks follow the maps.
    for (size_t i = numCaches; i < replaced(turn.scope).size(); ++i)
      turn.places.push_back(map++);
  }
  LayerScope &first = turns.front().scope;
  for (AttentionMap &map : first.maps)
    carried.push_back(map.value);
  size_t placeOfValues = carried.size();
  if (gives)
    carried.push_back(firstValues);
  size_t placeOfLent = carried.size();
  if (first.lendsKeys) // alone in its layer
    carried.append({first.lentKeys, first.lentValues});

  // The number that repeat `start + turn` has in its cache, where `start` is a
  // multiple of the number of turns.
  bool severalRings = hasSeveralRings(model, layer);
  auto cacheIndex = [&](size_t turn, Value rounds) -> Value {
    auto isSame = [&](const Turn &other) {
      return other.ring == turns[turn].ring;
    };
    Value many = index(llvm::count_if(turns, isSame));
    Value before = index(std::count_if(turns.begin(), &turns[turn], isSame));
    Value whole = arith::MulIOp::create(builder, at, rounds, many);
    return arith::AddIOp::create(builder, at, whole, before);
  };

  // Calls repeat `position` with the values carried so far and replaces them.
  auto call = [&](size_t number, Value position, Value rounds,
                  SmallVector<Value> carried) {
    const Turn &turn = turns[number];
    LayerScope inner = turn.scope;
    if (gives && inner.firstValues)
      inner.firstValues = carried[placeOfValues];
    for (auto [value, place] : llvm::zip_equal(replaced(inner), turn.places))
      *value = carried[place];
    if (severalRings && inner.hasCaches())
      inner.cacheIndex = cacheIndex(number, rounds);
    if (inner.number) {
      Value ahead = index(layer.first - start);
      inner.number = arith::AddIOp::create(builder, at, position, ahead);
    }
    SmallVector<Value> operands = {position, carried[0]};
    for (Value *value : passed(inner))
      operands.push_back(*value);
    auto op = func::CallOp::create(builder, at, turn.callee, operands);
    carried[0] = op.getResult(0);
    if (tapped) {
      Value ahead = index(numHidden - start);
      Value where = arith::AddIOp::create(builder, at, position, ahead);
      carried[1] = storeHiddenState(at, carried[1], op.getResult(0), where);
    }
    for (auto [result, place] :
         llvm::zip_equal(op.getResults().drop_front(), turn.places))
      carried[place] = result;
    return carried;
  };

  int64_t each = turns.size(), looped = layer.repeat - layer.repeat % each;
  if (looped > each) {
    auto loop = scf::ForOp::create(builder, at, index(start),
                                   index(start + looped), index(each), carried);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(loop.getBody());
    SmallVector<Value> next =
        llvm::to_vector_of<Value>(loop.getRegionIterArgs());
    Value rounds;
    if (severalRings)
      rounds = arith::DivUIOp::create(builder, at, loop.getInductionVar(),
                                      index(each));
    for (int64_t i = 0; i < each; ++i) {
      Value position = loop.getInductionVar();
      if (i)
        position = arith::AddIOp::create(builder, at, position, index(i));
      next = call(i, position, rounds, next);
    }
    scf::YieldOp::create(builder, at, next);
    carried = llvm::to_vector_of<Value>(loop.getResults());
  } else {
    looped = 0;
  }
  for (int64_t i = looped; i < layer.repeat; ++i)
    carried = call(i % each, index(start + i), index(i / each), carried);

  state.value = carried[0];
  if (tapped) {
    hiddenStates = carried[1];
    numHidden += layer.repeat;
  }
  for (auto [ring, place] : placeOfCache) {
    size_t next = place;
    for (Value &value : caches[{kindOf, ring}])
      if (value)
        value = carried[next++];
  }
  for (auto [map, value] : llvm::zip_equal(
           first.maps, ArrayRef(carried).slice(placeOfMaps, first.maps.size())))
    map.value = value;
  replaceMaps(number, first);
  if (gives)
    firstValues = carried[placeOfValues];
  if (first.lendsKeys)
    lent[number] = {carried[placeOfLent], carried[placeOfLent + 1]};
  return success();
}
