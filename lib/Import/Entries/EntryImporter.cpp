//===- EntryImporter.cpp - The body of one entry ----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EntryImporter.h"

#include "attune/Spec/Rings.h"

#include "attune/Import/PositionMath.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attune;

/// The graph input that a stream starts from, itself or through the streams
/// whose results it reads.
static std::string rootInput(const spec::Model &model, size_t number) {
  const std::string &name = model.streams[number].input;
  if (findInput(model, name))
    return name;
  for (size_t i = 0; i < number; ++i)
    if (model.streams[i].name == name)
      return rootInput(model, i);
  for (size_t i = 0; i < number; ++i)
    for (const spec::Layer &layer : model.streams[i].layers)
      if (layer.name == name ||
          (layer.repeat == 1 && spec::nameOf(layer) == name))
        return rootInput(model, i);
  return name;
}

bool attune::encodesSound(const spec::Model &model) {
  return model.audio && model.audio->window == 0;
}

/// The entry that a stream is part of if no other one is: what makes samples of
/// codes, or what reads samples to make codes of them; else Forward.
static EntryKind entryOf(const spec::Model &model, size_t number) {
  if (model.codes && !model.codes->sound.empty() &&
      model.streams[number].name == model.codes->sound)
    return EntryKind::Sound;
  if (encodesSound(model) && rootInput(model, number) == model.audio->input)
    return EntryKind::EncodeSound;
  return EntryKind::Forward;
}

EntryImporter::EntryImporter(ModuleImport &shared, EntryKind kind)
    : shared(shared), model(shared.model), diags(shared.diags), kind(kind),
      decode(kind == EntryKind::Decode || kind == EntryKind::DecodeAll ||
             kind == EntryKind::DecodeBatch || kind == EntryKind::DecodeSpan),
      builder(shared.module.getContext()) {
  bool isAlone = kind == EntryKind::Sound || kind == EntryKind::EncodeSound;
  for (size_t i = 0; i < model.streams.size(); ++i) {
    if (entryOf(model, i) != (isAlone ? kind : EntryKind::Forward))
      continue;
    std::string prefix = rootInput(model, i);
    std::string root = prefix;
    StringRef before = prefix;
    if (before.consume_back("values") &&
        findInput(model, before.str() + "attention_mask"))
      prefix = before.str(); // "pixel_values": "pixel_attention_mask"
    else if (model.streams.size() == 1)
      prefix = "";
    else if (before.consume_back("input_ids"))
      prefix = before.str();
    else
      prefix += "_"; // "frames" has "frames_attention_mask"
    streams.push_back({model.streams[i],
                       shared.symbols[i],
                       shared.equal[i],
                       prefix + "attention_mask",
                       prefix + "position_ids",
                       root,
                       Value(),
                       {},
                       {}});
  }
  stream = decode ? &streams.back() : &streams.front();
}

Location EntryImporter::loc(const SourceLocation &where) const {
  return toLocation(builder.getContext(),
                    where.line ? where : stream->spec.location);
}

Value EntryImporter::index(int64_t number) {
  Value &constant = constants[number];
  if (!constant) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&function.getBody().front());
    constant = arith::ConstantIndexOp::create(
        builder, loc(stream->spec.location), number);
  }
  return constant;
}

Value EntryImporter::size(int64_t dim) {
  // After the first layer the tokens need not be those of the input.
  if (state.value)
    return builder.createOrFold<tensor::DimOp>(loc(stream->spec.location),
                                               state.value, index(dim));
  Value &size = stream->sizes[dim];
  if (!size) {
    Value position = index(dim);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointAfterValue(position);
    size = tensor::DimOp::create(builder, loc(stream->spec.location),
                                 inputs[stream->spec.input].value, position);
  }
  return size;
}

/// Everything after this layer treats each token on its own.
static bool mixesTokens(const spec::Layer &layer) {
  return getSelfAttention(layer) || getRope(layer) || keepsStates(layer) ||
         std::holds_alternative<spec::Recurrent>(layer.op) ||
         std::holds_alternative<spec::Scan>(layer.op) ||
         std::holds_alternative<spec::Embedding>(layer.op) ||
         std::holds_alternative<spec::Insert>(layer.op) ||
         std::holds_alternative<spec::Slice>(layer.op) ||
         std::holds_alternative<spec::Concat>(layer.op) ||
         std::holds_alternative<spec::InstanceNorm>(layer.op) ||
         std::holds_alternative<spec::Positions>(layer.op);
}

LogicalResult EntryImporter::run() {
  collectMaps();
  if (failed(collectArguments()) || failed(createFunction()))
    return failure();
  for (StreamState &next : streams) {
    bool last = &next == &streams.back();
    if (decode && !last) {
      importMask(next);
      continue;
    }
    stream = &next;
    if (kind == EntryKind::Encode && last) {
      if (failed(importCrossCaches()) || failed(importInsertedRows()))
        return failure();
    } else if (failed(importStream())) {
      return failure();
    }
  }
  if (kind == EntryKind::EncodeSound && failed(importCodes()))
    return failure();
  return finish();
}

LogicalResult EntryImporter::importStream() {
  const std::vector<spec::Layer> &layers = stream->spec.layers;
  state = {};
  firstValues = {};
  layerInputs = {};
  embedded = distances = {};
  lent.clear();
  madeBlocks.clear();
  patterns.clear();
  imagePairs = {};
  if (auto start = inputs.find(stream->spec.input); start != inputs.end()) {
    importMask(*stream);
    if (isa<FloatType>(typeOf(start->second.value).getElementType()))
      state = start->second;
  } else if (const NamedTensor *source = findResult(stream->spec.input)) {
    state = *source;
    stream->mask = source->mask;
  }
  if (decode)
    countPast();

  // The layers behind it need the last token alone. A loop over layers works in
  // the memory of its tokens, and one among others has no memory of its own.
  size_t lastOfAll = 0;
  numHidden = totalHidden = 0;
  for (size_t n = 0; n < layers.size(); ++n) {
    if (mixesTokens(layers[n]) || layers[n].repeat > 1)
      lastOfAll = n;
    if (std::holds_alternative<spec::Block>(layers[n].op))
      totalHidden += layers[n].repeat;
  }
  for (size_t n = 0; n < layers.size(); ++n) {
    if (failed(importLayer(n)))
      return failure();
    state.mask = stream->mask;
    results[layers[n].name] = state;
    if (layers[n].repeat == 1)
      results[spec::nameOf(layers[n])] = state;
    if (decode && kind != EntryKind::DecodeAll && n == lastOfAll)
      takeLastToken(loc(layers[n].location));
  }
  stream->result = state;
  if (!decode)
    shared.shapes[stream->spec.name] = state.shape;
  results[stream->spec.name] = state;
  return success();
}

/// Adds the new tokens to those that are cached.
void EntryImporter::countPast() {
  Location at = loc(stream->spec.location);
  Value tokens = size(1);
  SmallVector<Held> all = {{past, length, lengths}};
  for (auto &[ring, own] : rings)
    all.push_back(own);
  Value more;
  for (Held &one : all) {
    one.length = arith::AddIOp::create(builder, at, one.past, tokens);
    if (kind != EntryKind::DecodeBatch)
      continue;
    if (!more)
      more = tensor::SplatOp::create(
          builder, at,
          arith::IndexCastOp::create(builder, at, builder.getI64Type(), tokens),
          one.lengths.getType(), ValueRange{size(0)});
    one.past = one.lengths;
    one.lengths = arith::AddIOp::create(builder, at, one.lengths, more);
  }
  std::tie(past, length, lengths) =
      std::tuple(all[0].past, all[0].length, all[0].lengths);
  for (auto [own, one] : llvm::zip_equal(rings, llvm::drop_begin(all)))
    own.second = one;
}

/// What the caches of a ring hold, or with 0 those of all positions.
EntryImporter::Held EntryImporter::held(int64_t ring) const {
  return ring ? rings.at(ring) : Held{past, length, lengths};
}

/// [batch, keys] becomes [batch, 1, 1, keys], the same for heads and queries.
void EntryImporter::importMask(StreamState &of) {
  auto input = inputs.find(of.maskName);
  if (input == inputs.end() || typeOf(input->second.value).getRank() != 2)
    return;
  // A decoder's step has the mask of what was encoded, but not the tokens.
  Value sized = inputs.count(of.spec.input) ? inputs[of.spec.input].value
                                            : input->second.value;
  auto sizeOf = [&](int64_t dim) -> Value {
    if (&of == stream)
      return size(dim);
    return tensor::DimOp::create(builder, loc(of.spec.location), sized, dim);
  };
  SmallVector<OpFoldResult> sizes = {sizeOf(0), builder.getIndexAttr(1),
                                     builder.getIndexAttr(1), sizeOf(1)};
  auto type = RankedTensorType::get(
      {ShapedType::kDynamic, 1, 1, ShapedType::kDynamic}, builder.getI1Type());
  of.mask = tensor::ExpandShapeOp::create(
      builder, loc(of.spec.location), type, input->second.value,
      ArrayRef<ReassociationIndices>{{0, 1, 2}, {3}}, sizes);
}

/// Generation reads the logits of the last token only, so the layers behind the
/// last attention or loop need not see the others.
void EntryImporter::takeLastToken(Location at) {
  auto type = typeOf(state.value);
  Value last = arith::SubIOp::create(builder, at, size(1), index(1));
  OpFoldResult unit = builder.getIndexAttr(1), start = builder.getIndexAttr(0);
  SmallVector<OpFoldResult> offsets = {start, last, start};
  SmallVector<OpFoldResult> sizes = {size(0), unit,
                                     builder.getIndexAttr(type.getDimSize(2))};
  SmallVector<OpFoldResult> strides(3, unit);
  auto sliced = RankedTensorType::get(
      {type.getDimSize(0), 1, type.getDimSize(2)}, type.getElementType());
  state.value = tensor::ExtractSliceOp::create(builder, at, sliced, state.value,
                                               offsets, sizes, strides);
  state.shape[1] = {1, ""};
}

//===----------------------------------------------------------------------===//
// Layers
//===----------------------------------------------------------------------===//

/// Kinds that EntryVision.cpp builds.
static bool isVision(const spec::Layer &layer) {
  return std::holds_alternative<spec::Pool>(layer.op) ||
         std::holds_alternative<spec::ClassTokens>(layer.op) ||
         std::holds_alternative<spec::Slice>(layer.op) ||
         std::holds_alternative<spec::Concat>(layer.op) ||
         std::holds_alternative<spec::Conv>(layer.op) ||
         std::holds_alternative<spec::BatchNorm>(layer.op) ||
         std::holds_alternative<spec::InstanceNorm>(layer.op) ||
         std::holds_alternative<spec::Add>(layer.op) ||
         std::holds_alternative<spec::L2Norm>(layer.op) ||
         std::holds_alternative<spec::Similarity>(layer.op);
}

/// Kinds that EntryPlaces.cpp builds.
static bool isPlaces(const spec::Layer &layer) {
  return std::holds_alternative<spec::Windows>(layer.op) ||
         std::holds_alternative<spec::Whole>(layer.op) ||
         std::holds_alternative<spec::Merge>(layer.op) ||
         std::holds_alternative<spec::Unpatch>(layer.op);
}

/// Kinds that EntrySignals.cpp builds.
static bool isSignal(const spec::Layer &layer) {
  return std::holds_alternative<spec::Modulate>(layer.op) ||
         std::holds_alternative<spec::Timestep>(layer.op) ||
         std::holds_alternative<spec::Chunk>(layer.op) ||
         std::holds_alternative<spec::SwapChunks>(layer.op) ||
         std::holds_alternative<spec::OverlapAdd>(layer.op);
}

LogicalResult EntryImporter::importLayer(size_t number) {
  const spec::Layer &layer = stream->spec.layers[number];
  const auto *attention = std::get_if<spec::Attention>(&layer.op);
  bool isBlock = std::holds_alternative<spec::Block>(layer.op);
  if (std::holds_alternative<spec::BatchNorm>(layer.op) && layer.repeat > 1) {
    diags.error(layer.location, "a batch_norm cannot be repeated");
    return failure();
  }
  bool readsInputs = (attention && !attention->projections) ||
                     std::holds_alternative<spec::Embedding>(layer.op) ||
                     std::holds_alternative<spec::Positions>(layer.op);
  const auto *head = std::get_if<spec::Linear>(&layer.op);
  if (layer.repeat > 1 && (readsInputs || (head && !head->tied.empty()))) {
    diags.error(layer.location, "a layer that reads an input of the model or "
                                "another layer's table cannot be repeated");
    return failure();
  }
  if (attention && !attention->projections)
    return importBareAttention(number);
  if (std::holds_alternative<spec::Embedding>(layer.op))
    return importEmbedding(number);
  if (!state.value) {
    diags.error(layer.location,
                "the stream has no values yet: it starts from token ids, "
                "which an embedding must turn into channels first");
    return failure();
  }
  if (std::holds_alternative<spec::Positions>(layer.op))
    return importPositions(number);
  if (isVision(layer))
    return importVision(number);
  if (isPlaces(layer))
    return importPlaces(number);
  if (isSignal(layer))
    return importSignals(number);
  if (std::holds_alternative<spec::CrossEntropy>(layer.op))
    return importCrossEntropy(number);
  if (std::holds_alternative<spec::LayerInputs>(layer.op))
    return importLayerInputs(number);
  if (std::holds_alternative<spec::Insert>(layer.op))
    return importInsert(number);
  if (std::holds_alternative<spec::Recurrent>(layer.op))
    return importRecurrent(number);
  if (std::holds_alternative<spec::Scan>(layer.op))
    return importScan(number);

  if (isBlock && numHidden == 0 && wantsHiddenStates()) {
    if (state.shape.size() != 3) {
      diags.error(layer.location,
                  "hidden_states needs a stream of [batch, tokens, width]");
      return failure();
    }
    startHiddenStates(loc(layer.location));
  }
  if (isBlock || layer.repeat > 1)
    return importCalls(number);
  if (failed(importInline(number)))
    return failure();
  // The norm after the last block belongs to the last hidden state.
  if (hiddenStates && numHidden == totalHidden + 1 &&
      std::holds_alternative<spec::Norm>(layer.op)) {
    Location at = loc(layer.location);
    hiddenStates =
        storeHiddenState(at, hiddenStates, state.value, index(totalHidden));
    ++numHidden; // later norms do not count
  }
  return success();
}

LogicalResult EntryImporter::importEmbedding(size_t number) {
  const spec::Layer &layer = stream->spec.layers[number];
  const auto &op = std::get<spec::Embedding>(layer.op);
  const std::string &name = op.input.empty() ? stream->spec.input : op.input;
  auto ids = inputs.find(name);
  if (ids == inputs.end() || ids->second.shape.size() != 2 ||
      !typeOf(ids->second.value).getElementType().isInteger(64)) {
    diags.error(layer.location, "an embedding needs an input of ids of shape "
                                "[batch, tokens], which '" +
                                    name + "' is not");
    return failure();
  }
  LayerScope scope;
  Location at = loc(layer.location);
  Value table = LayerImporter(builder, shared.weights, layer,
                              stream->symbols[number], scope, diags)
                    .weight(at, "weight", op.vocab, op.width);
  if (!table)
    return failure();
  auto type = RankedTensorType::get(
      {ShapedType::kDynamic, ShapedType::kDynamic, op.width},
      builder.getF32Type());
  if (state.value && state.value.getType() != type) {
    diags.error(layer.location,
                "an embedding of width " + std::to_string(op.width) +
                    " cannot be added to the stream's channels");
    return failure();
  }
  state.value = EmbeddingOp::create(
      builder, at, type, ids->second.value, table, state.value,
      builder.getF32FloatAttr(float(op.scale)), builder.getI64IntegerAttr(0));
  if (number == 0)
    embedded = state.value;
  state.shape = {ids->second.shape[0], ids->second.shape[1], {op.width, ""}};
  return success();
}

/// The table of the embedding that a head is tied to, of any stream.
Value EntryImporter::tiedTable(const spec::Linear &head,
                               const spec::Layer &layer) {
  for (const StreamState &of : streams)
    for (size_t n = 0; n < of.spec.layers.size(); ++n) {
      const spec::Layer &other = of.spec.layers[n];
      const auto *embedding = std::get_if<spec::Embedding>(&other.op);
      if (!embedding || other.name != head.tied)
        continue;
      if (embedding->vocab != head.out ||
          embedding->width != typeOf(state.value).getShape().back()) {
        diags.error(layer.location, "a head tied to '" + head.tied +
                                        "' takes " +
                                        std::to_string(embedding->width) +
                                        " channels and gives " +
                                        std::to_string(embedding->vocab));
        return {};
      }
      LayerScope scope;
      return LayerImporter(builder, shared.weights, other, of.symbols[n], scope,
                           diags)
          .weight(loc(layer.location), "weight", embedding->vocab,
                  embedding->width);
    }
  diags.error(layer.location,
              "tied names '" + head.tied + "', which is no embedding");
  return {};
}

LogicalResult EntryImporter::importInline(size_t number) {
  const spec::Layer &layer = stream->spec.layers[number];
  LayerScope scope;
  if (failed(fillScope(layer, scope)))
    return failure();
  std::pair cacheKey(number, spec::ringsOf(model, layer)[0]);
  if (auto cache = caches.find(cacheKey); cache != caches.end()) {
    scope.index = index(0);
    scope.setCaches(cache->second);
  }
  if (auto cache = crossCaches.find(number); cache != crossCaches.end()) {
    scope.index = index(0);
    std::tie(scope.crossKeys, scope.crossValues) = cache->second;
  }
  fillMaps(number, scope);
  LayerImporter importer(builder, shared.weights, layer,
                         stream->symbols[number], scope, diags);
  const auto *head = std::get_if<spec::Linear>(&layer.op);
  Value table;
  if (head && !head->tied.empty()) {
    table = tiedTable(*head, layer);
    if (!table)
      return failure();
  }
  Value result = head ? importer.linear(*head, state.value, table)
                      : importer.build(state.value);
  if (!result)
    return failure();
  state.value = result;
  state.shape.back() = {typeOf(result).getShape().back(), ""};
  if (head && head->squeeze) {
    // [..., 1] without its last dimension.
    SmallVector<ReassociationIndices> groups;
    for (int64_t i = 0; i + 1 < typeOf(result).getRank(); ++i)
      groups.push_back({i});
    groups.back().push_back(typeOf(result).getRank() - 1);
    state.value = tensor::CollapseShapeOp::create(builder, loc(layer.location),
                                                  result, groups);
    state.shape.pop_back();
  }
  if (auto cache = caches.find(cacheKey); cache != caches.end())
    cache->second = scope.getCaches();
  replaceMaps(number, scope);
  return success();
}

//===----------------------------------------------------------------------===//
// What layers read besides the stream
//===----------------------------------------------------------------------===//

LogicalResult EntryImporter::fillScope(const spec::Layer &layer,
                                       LayerScope &scope) {
  if (const auto *block = std::get_if<spec::Block>(&layer.op)) {
    if (block->modulation) {
      scope.condition = conditionOf(*block->modulation);
      if (!scope.condition)
        return failure();
    }
    if (block->alternating && block->alternating->inputs) {
      scope.layerInputs = layerInputs;
      scope.number = index(0);
    }
    if (block->joint) {
      if (state.parts.size() != 2) {
        diags.error(block->joint->location,
                    "the tokens are not of two parts, one behind the other");
        return failure();
      }
      scope.firstTokens = state.parts[0].count;
    }
    if (block->memory)
      scope.embedded = embedded;
    fillLent(layer, scope);
  }
  if (const spec::Attention *cross = getCrossAttention(layer))
    if (failed(fillMemory(*cross, scope)))
      return failure();
  Held cached = held(decode ? spec::ringsOf(model, layer)[0] : 0);
  if (getSelfAttention(layer) || keepsStates(layer)) {
    scope.mask = stream->mask;
    if (decode) {
      scope.past = cached.past;
      scope.length = cached.length;
    }
  }
  if (const spec::Attention *attention = getSelfAttention(layer)) {
    if (attention->queryGrowth && failed(growthTables(*attention, scope)))
      return failure();
    if (failed(fillForms(*attention, scope)))
      return failure();
    if (cached.lengths && !attention->linear)
      scope.lengths = cached.lengths;
    if (attention->relativeBias && failed(sharedDiagonals(layer, scope)))
      return failure();
  }
  if (const spec::TimeMix *mix = getTimeMix(layer))
    fillValues(*mix, scope);
  const spec::Rope *rope = getRope(layer);
  if (rope && state.chunks) {
    diags.error(rope->location,
                "rotary positions number the tokens of the input, not those of "
                "chunks");
    return failure();
  }
  if (rope && state.shape.size() != 3) {
    diags.error(rope->location,
                "rotary positions need a stream of [batch, tokens, width]");
    return failure();
  }
  return rope ? rotaryTables(*rope, scope) : success();
}
