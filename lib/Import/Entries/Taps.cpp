//===- Taps.cpp - Outputs from within blocks --------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// A map starts as uninitialised memory of the entry, is handed to the function
// of every block that may write to it, like a cache, and comes back: nothing of
// its size is copied, and one function serves layers that were asked for and
// layers that were not.

#include "EntryImporter.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attune;

//===----------------------------------------------------------------------===//
// Hidden states
//===----------------------------------------------------------------------===//

/// The hidden states of the last stream that has blocks.
bool EntryImporter::wantsHiddenStates() const {
  if (kind != EntryKind::Forward)
    return false;
  auto hasBlock = [](const StreamState &of) {
    return llvm::any_of(of.spec.layers, [](const spec::Layer &layer) {
      return std::holds_alternative<spec::Block>(layer.op);
    });
  };
  for (const StreamState &of : llvm::reverse(streams))
    if (hasBlock(of)) {
      if (&of != stream)
        return false;
      break;
    }
  if (!shared.options.taps && model.outputs.size() > 1)
    return false;
  return llvm::any_of(model.outputs, [](const spec::Output &output) {
    return output.layer == "hidden_states";
  });
}

void EntryImporter::startHiddenStates(Location at) {
  auto type = typeOf(state.value);
  SmallVector<OpFoldResult> sizes = {builder.getIndexAttr(totalHidden + 1),
                                     size(0), size(1),
                                     builder.getIndexAttr(type.getDimSize(2))};
  hiddenStates =
      tensor::EmptyOp::create(builder, at, sizes, type.getElementType());
  hiddenStates = storeHiddenState(at, hiddenStates, state.value, index(0));
  numHidden = 1;
  std::vector<spec::Dim> shape = {{totalHidden + 1, ""}};
  shape.insert(shape.end(), state.shape.begin(), state.shape.end());
  results["hidden_states"] = {hiddenStates, shape};
}

Value EntryImporter::storeHiddenState(Location at, Value states, Value value,
                                      Value position) {
  auto type = typeOf(value);
  OpFoldResult unit = builder.getIndexAttr(1), start = builder.getIndexAttr(0);
  SmallVector<OpFoldResult> offsets = {position, start, start, start};
  SmallVector<OpFoldResult> sizes = {unit, size(0), size(1),
                                     builder.getIndexAttr(type.getDimSize(2))};
  SmallVector<OpFoldResult> strides(4, unit);
  return tensor::InsertSliceOp::create(builder, at, value, states, offsets,
                                       sizes, strides);
}

//===----------------------------------------------------------------------===//
// Attention weights
//===----------------------------------------------------------------------===//

/// Maps are named by what outputs ask for. Layers that are called so come
/// first.
void EntryImporter::collectMaps() {
  if (!shared.options.taps && model.outputs.size() > 1)
    return;
  for (const spec::Output &output : model.outputs) {
    bool taken = llvm::any_of(maps, [&](const AskedMap &asked) {
      return asked.output == output.layer;
    });
    for (const StreamState &of : streams)
      for (const spec::Layer &layer : of.spec.layers)
        taken |= layer.name == output.layer;
    std::string problem;
    if (!taken)
      if (auto tap = spec::findAttentionTap(model, output.layer, problem))
        maps.push_back({*tap, output.layer});
  }
}

static const spec::AttentionTap::Part *partOf(const spec::AttentionTap &tap,
                                              size_t layer) {
  for (const spec::AttentionTap::Part &part : tap.parts)
    if (part.layer == layer)
      return &part;
  return nullptr;
}

bool EntryImporter::hasMaps(size_t number) const {
  return llvm::any_of(maps, [&](const AskedMap &asked) {
    return &streams[asked.tap.stream] == stream && partOf(asked.tap, number);
  });
}

/// Memory for the weights of a layer's attention, as large as they are.
void EntryImporter::startMap(AskedMap &asked, const spec::Layer &layer) {
  const spec::Attention &attention = *spec::getTapped(layer, asked.tap.cross);
  Location at = loc(attention.location);
  NamedTensor queries = state, keys = state;
  int64_t tokens = 1;
  if (!attention.projections) {
    queries = inputs[attention.queryInput];
    keys = inputs[attention.keyInput];
    tokens = 2;
  } else if (const NamedTensor *other = attention.source.empty()
                                            ? nullptr
                                            : findResult(attention.source)) {
    keys = *other;
  }
  auto sizeOf = [&](const NamedTensor &of, int64_t dim) -> OpFoldResult {
    return getAsOpFoldResult(
        builder.createOrFold<tensor::DimOp>(at, of.value, index(dim)));
  };
  OpFoldResult columns = sizeOf(keys, tokens);
  spec::Dim places = keys.shape[tokens];
  if (auto sums = spec::columnsOf(attention)) {
    columns = builder.getIndexAttr(*sums);
    places = {*sums, ""};
  }
  SmallVector<OpFoldResult> sizes = {sizeOf(queries, 0),
                                     builder.getIndexAttr(asked.tap.heads),
                                     sizeOf(queries, tokens), columns};
  std::vector<spec::Dim> shape = {
      queries.shape[0], {asked.tap.heads, ""}, queries.shape[tokens], places};
  if (asked.tap.count) {
    sizes.insert(sizes.begin(), builder.getIndexAttr(asked.tap.count));
    shape.insert(shape.begin(), {asked.tap.count, ""});
  }
  asked.value =
      tensor::EmptyOp::create(builder, at, sizes, builder.getF32Type());
  results[asked.output] = {asked.value, shape};
}

/// The maps that a layer's attention writes to.
void EntryImporter::fillMaps(size_t number, LayerScope &scope) {
  scope.maps.clear();
  if (kind != EntryKind::Forward)
    return;
  for (AskedMap &asked : maps) {
    const auto *part = partOf(asked.tap, number);
    if (!part || &streams[asked.tap.stream] != stream)
      continue;
    if (!asked.value)
      startMap(asked, stream->spec.layers[number]);
    scope.maps.push_back({asked.value, asked.tap, part->slot});
  }
}

void EntryImporter::replaceMaps(size_t number, const LayerScope &scope) {
  const AttentionMap *next = scope.maps.begin();
  if (kind != EntryKind::Forward)
    return;
  for (AskedMap &asked : maps)
    if (partOf(asked.tap, number) && &streams[asked.tap.stream] == stream) {
      asked.value = next++->value;
      results[asked.output].value = asked.value;
    }
}
