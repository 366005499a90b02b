//===- Signature.cpp - Arguments and results of an entry --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EntryImporter.h"

#include "Attune/AttuneCachedRows.h"
#include "attune/Spec/Rings.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <set>

using namespace mlir;
using namespace attune;

static bool isInteger(spec::DType type) {
  return type == spec::DType::I64 || type == spec::DType::I32 ||
         type == spec::DType::I8;
}

static bool isFloat(spec::DType type) {
  return type == spec::DType::F32 || type == spec::DType::F16 ||
         type == spec::DType::BF16;
}

/// The element type of a float input: what the description says.
static Type floatType(OpBuilder &builder, spec::DType type) {
  if (type == spec::DType::BF16)
    return builder.getBF16Type();
  return type == spec::DType::F16 ? Type(builder.getF16Type())
                                  : builder.getF32Type();
}

const spec::TensorSpec *attune::findInput(const spec::Model &model,
                                          const std::string &name) {
  for (const spec::TensorSpec &input : model.inputs)
    if (input.name == name)
      return &input;
  return nullptr;
}

/// Whether a convolution reads it as one channel.
static bool isWaveform(const spec::Model &model, const std::string &input) {
  return llvm::any_of(model.streams, [&](const spec::Stream &stream) {
    return stream.input == input && !stream.layers.empty() &&
           std::holds_alternative<spec::Conv>(stream.layers.front().op);
  });
}

static bool needsPositions(const spec::Stream &stream) {
  for (const spec::Layer &layer : stream.layers) {
    // Layers after these count their tokens themselves.
    if (std::holds_alternative<spec::Conv>(layer.op) ||
        std::holds_alternative<spec::ClassTokens>(layer.op) ||
        std::holds_alternative<spec::Slice>(layer.op) ||
        std::holds_alternative<spec::Concat>(layer.op))
      return false;
    if (const auto *positions = std::get_if<spec::Positions>(&layer.op))
      if (positions->count == spec::PositionCount::Input)
        return true;
    const spec::Attention *attention = getSelfAttention(layer);
    const spec::Rope *rope = getRope(layer);
    if ((rope && rope->axes.channels.empty()) ||
        (attention && attention->queryGrowth))
      return true;
    for (const spec::Block &block : layer.cycle)
      if (block.attention &&
          (block.attention->rope || block.attention->queryGrowth))
        return true;
  }
  return false;
}

std::optional<int64_t> EntryImporter::idBound(const std::string &input) const {
  std::optional<int64_t> bound;
  auto limit = [&](int64_t to) { bound = std::min(bound.value_or(to), to); };
  for (const StreamState &of : streams)
    for (const spec::Layer &layer : of.spec.layers) {
      if (const auto *op = std::get_if<spec::Embedding>(&layer.op)) {
        if ((op->input.empty() ? of.spec.input : op->input) == input)
          limit(op->vocab);
      } else if (const auto *op = std::get_if<spec::LayerInputs>(&layer.op)) {
        if (of.spec.input == input)
          limit(op->vocab);
      } else if (const auto *op = std::get_if<spec::Positions>(&layer.op)) {
        if (input == of.positionsName &&
            op->count == spec::PositionCount::Input &&
            op->kind == spec::PositionKind::Learned)
          limit(op->length - op->offset);
      } else if (const auto *op = std::get_if<spec::CrossEntropy>(&layer.op)) {
        if (op->targets == input)
          limit(layer.inputWidth);
      }
    }
  return bound;
}

/// The value of targets that do not count. Ids of an embedding have none.
std::optional<int64_t>
EntryImporter::ignoredId(const std::string &input) const {
  std::optional<int64_t> ignored;
  for (const StreamState &of : streams)
    for (const spec::Layer &layer : of.spec.layers) {
      if (const auto *op = std::get_if<spec::Embedding>(&layer.op)) {
        if ((op->input.empty() ? of.spec.input : op->input) == input)
          return std::nullopt;
      } else if (const auto *op = std::get_if<spec::CrossEntropy>(&layer.op)) {
        if (op->targets == input && ignored.value_or(op->ignore) != op->ignore)
          return std::nullopt;
        if (op->targets == input)
          ignored = op->ignore;
      }
    }
  return ignored;
}

/// Queries, keys and values are [batch, heads, tokens, width] with fixed heads
/// and width. A mask or bias broadcasts along dimensions of fixed size 1.
LogicalResult EntryImporter::collectBareInputs() {
  const int64_t dynamic = ShapedType::kDynamic;
  std::vector<const spec::Attention *> bare;
  for (const spec::Stream &of : model.streams)
    for (const spec::Layer &layer : of.layers)
      if (const auto *op = std::get_if<spec::Attention>(&layer.op))
        if (!op->projections)
          bare.push_back(op);
  for (const spec::Attention *op : bare) {
    // Masks are i1; everything else has the type that its input declares.
    auto declare = [&](const std::string &name, size_t rank,
                       ArrayRef<size_t> fixed,
                       Type element = {}) -> LogicalResult {
      if (name.empty())
        return success();
      const spec::TensorSpec *input = findInput(model, name);
      if (!input || input->shape.size() != rank) {
        diags.error(
            input ? input->location : op->location,
            "attention reads input '" + name + "', which must be " +
                (rank == 4 ? "[batch, heads, tokens, width]" : "[heads]"));
        return failure();
      }
      SmallVector<int64_t> shape;
      for (size_t i = 0; i < rank; ++i) {
        int64_t size = input->shape[i].size;
        bool keep = llvm::is_contained(fixed, i);
        if (keep && size < 0) {
          diags.error(input->location, "input '" + name + "' has the size '" +
                                           input->shape[i].symbol +
                                           "' in dimension " +
                                           std::to_string(i) +
                                           ", where attention needs a "
                                           "number");
          return failure();
        }
        shape.push_back(keep || size == 1 ? size : dynamic);
      }
      // A single token is no broadcast in queries, keys and values.
      if (rank == 4 && fixed.size() == 2)
        shape[0] = shape[2] = dynamic;
      if (rank == 4 && fixed.size() == 1)
        shape[3] = dynamic;
      bareTypes[name] = RankedTensorType::get(
          shape, element ? element : floatType(builder, input->dtype));
      return success();
    };
    if (failed(declare(op->queryInput, 4, {1, 3})) ||
        failed(declare(op->keyInput, 4, {1, 3})) ||
        failed(declare(op->valueInput, 4, {1, 3})) ||
        failed(declare(op->maskInput, 4, {1}, builder.getI1Type())) ||
        failed(declare(op->biasInput, 4, {1})) ||
        failed(declare(op->slopesInput, 1, {0})) ||
        failed(declare(op->sinksInput, 1, {0})))
      return failure();
  }
  return success();
}

/// Whether positions that the caller does not give count the mask's tokens.
bool EntryImporter::skipsPadding(const std::string &positionsName) const {
  for (const StreamState &of : streams)
    for (const spec::Layer &layer : of.spec.layers)
      if (const auto *op = std::get_if<spec::Positions>(&layer.op))
        if (op->skipPadding && of.positionsName == positionsName)
          return true;
  return false;
}

/// Token and sample counts stay dynamic even where the description pins them:
/// the pin is in `attune.shape`, which the runtime checks.
void EntryImporter::addInput(const spec::TensorSpec &input) {
  bool isMask = false, isPositions = false, isRead = false, isMemory = false;
  for (const StreamState &of : streams) {
    bool last = &of == &streams.back();
    isMask |= input.name == of.maskName;
    isPositions |= input.name == of.positionsName;
    bool built = kind == EntryKind::Forward || kind == EntryKind::Sound ||
                 kind == EntryKind::EncodeSound || decode == last;
    isRead |= built && reads(of, input.name);
    // Steps get what encoding is given.
    isRead |= kind == EntryKind::Encode && last && formsRead(of, input.name);
    isMemory |= !last && input.name == of.maskName;
  }
  // Codes that samples are made of are no part of what writes them, nor are
  // samples that codes are made of.
  if ((model.codes || encodesSound(model)) && !decode &&
      kind != EntryKind::Encode && !isRead)
    return;
  // A step sees its whole cache, and what the mask of other streams lets it.
  if (decode ? isMask && !isMemory : kind == EntryKind::Encode && !isRead)
    return;
  if (decode && streams.size() > 1 && !isRead && !isMemory)
    return;
  Argument argument = {input.name,          "input",
                       input.fallback,      Type(),
                       input.shape,         idBound(input.name),
                       loc(input.location), ignoredId(input.name)};
  SmallVector<int64_t> shape(input.shape.size(), ShapedType::kDynamic);
  if (auto form = formTypes.find(input.name); form != formTypes.end()) {
    argument.type = form->second;
    argument.shape = formShapes[input.name];
  } else if (auto bare = bareTypes.find(input.name); bare != bareTypes.end()) {
    argument.type = bare->second;
  } else if (isMask) {
    argument.type = RankedTensorType::get(shape, builder.getI1Type());
    if (argument.fallback.empty())
      argument.fallback = "ones";
  } else if (isInteger(input.dtype)) {
    argument.type = RankedTensorType::get(shape, builder.getI64Type());
    if (isPositions && argument.fallback.empty())
      argument.fallback = skipsPadding(input.name) ? "count_mask" : "iota";
  } else if (isFloat(input.dtype)) {
    // Channels are known; a convolution has them where it says.
    size_t channels = shape.size() - 1;
    for (const spec::Stream &of : model.streams)
      if (of.input == input.name && !of.layers.empty())
        if (const auto *conv = std::get_if<spec::Conv>(&of.layers.front().op))
          channels = conv->channelsFirst ? 1 : shape.size() - 1;
    // [batch, samples] has none.
    if (shape.size() == 2 && isWaveform(model, input.name))
      channels = shape.size();
    if (channels < shape.size() && input.shape[channels].size >= 0)
      shape[channels] = input.shape[channels].size;
    argument.type =
        RankedTensorType::get(shape, floatType(builder, input.dtype));
  } else {
    argument.type = RankedTensorType::get(shape, builder.getI1Type());
  }
  // One token of each sequence.
  if (kind == EntryKind::DecodeBatch && argument.shape.size() > 1)
    argument.shape[1] = {1, ""};
  arguments.push_back(argument);
}

LogicalResult EntryImporter::collectArguments() {
  if (failed(collectBareInputs()) || failed(collectFormInputs()))
    return failure();
  for (const spec::TensorSpec &input : model.inputs)
    addInput(input);

  for (const StreamState &of : streams)
    addImplicitInputs(of);
  if (decode) {
    addCaches();
    addCrossCaches();
    addInsertedRows();
  }
  return success();
}

/// Whether a stream has a use for an input: bare attention, which may read any,
/// is no part of models with several entries.
bool EntryImporter::reads(const StreamState &of,
                          const std::string &input) const {
  bool readsAny = kind == EntryKind::Forward && !encodesSound(model) &&
                  (!model.codes || model.codes->sound.empty());
  if (readsAny || input == of.spec.input || input == of.maskName ||
      input == of.positionsName)
    return true;
  for (const spec::Layer &layer : of.spec.layers) {
    const auto *table = std::get_if<spec::Embedding>(&layer.op);
    const auto *positions = std::get_if<spec::Positions>(&layer.op);
    if ((table && table->input == input) ||
        (positions && positions->shapesInput == input))
      return true;
  }
  return formsRead(of, input);
}

/// Models of tokens understand padding and explicit positions unasked.
void EntryImporter::addImplicitInputs(const StreamState &of) {
  const spec::TensorSpec *first = findInput(model, of.root);
  if (!first || first->shape.size() < 2 || first->shape.size() > 3)
    return;
  // Streams that start from one another share these inputs.
  auto isThere = [&](const std::string &name) {
    return findInput(model, name) ||
           llvm::any_of(arguments, [&](const Argument &argument) {
             return argument.name == name;
           });
  };
  std::vector<spec::Dim> tokens(first->shape.begin(), first->shape.begin() + 2);
  bool attends = llvm::any_of(of.spec.layers, [](const spec::Layer &layer) {
    return getSelfAttention(layer) != nullptr || keepsStates(layer) ||
           std::holds_alternative<spec::Recurrent>(layer.op);
  });
  // No mask has numbers for class tokens and places of a convolution.
  attends &= llvm::none_of(of.spec.layers, [](const spec::Layer &layer) {
    return std::holds_alternative<spec::Conv>(layer.op) ||
           std::holds_alternative<spec::ClassTokens>(layer.op);
  });
  if (isInteger(first->dtype) && attends && !isThere(of.maskName))
    addInput({of.maskName, spec::DType::Bool, tokens, "", first->location});
  if (needsPositions(of.spec) && !isThere(of.positionsName))
    addInput({of.positionsName, spec::DType::I64, tokens, "", first->location});
}

namespace {
/// A tensor of a layer that decoding keeps from step to step.
struct CacheRole {
  size_t slot; ///< in LayerCaches
  std::string name;
  int64_t count; ///< repeats, or layers of a recurrence
  std::vector<spec::Dim> sizes;
  /// Written once and only read from then on, so that a stored number rounds
  /// once. States and sums round at every step, and stay f32.
  bool stored = false;
  /// Rows that may be bytes with a scale.
  bool heads = false;
  int64_t ring = 0; ///< the window of its rows; 0: they are all positions
  /// Which repeats of the layer have it: those with this ring.
  int64_t repeatsOf = 0;
};
} // namespace

static spec::Dim fixed(int64_t size) { return {size, ""}; }

/// The caches of an attention: one or two.
static SmallVector<CacheRole> cachesOf(const spec::Attention &attention,
                                       int64_t ring, int64_t repeat) {
  int64_t keyDim = attention.headDim;
  int64_t valueDim = attention.valueDim ? attention.valueDim : keyDim;
  std::string capacity = "capacity";
  if (ring)
    capacity += "_" + std::to_string(ring);
  spec::Dim rows = {-1, capacity}, heads = fixed(attention.kvHeads);
  if (const auto &latent = attention.latent) {
    int64_t width = latent->rank + keyDim - latent->nopeDim;
    SmallVector<CacheRole> roles = {{0,
                                     "latent",
                                     repeat,
                                     {fixed(1), rows, fixed(width)},
                                     true,
                                     false,
                                     ring}};
    if (const auto &index = latent->index)
      roles.push_back({1,
                       "index",
                       repeat,
                       {fixed(1), rows, fixed(index->headDim)},
                       true,
                       false,
                       ring});
    return roles;
  }
  if (attention.linear && attention.linear->fading)
    return {{0,
             "sums",
             repeat,
             {fixed(keyDim), fixed(attention.heads * valueDim)}}};
  if (attention.linear)
    return {{0, "sums", repeat, {heads, fixed(keyDim), fixed(valueDim + 1)}}};
  return {{0, "k", repeat, {heads, rows, fixed(keyDim)}, true, true, ring},
          {1, "v", repeat, {heads, rows, fixed(valueDim)}, true, true, ring}};
}

/// The caches of `repeat` repeats of a layer with one ring: up to two of an
/// attention and two of what may stand beside it.
static SmallVector<CacheRole> cachesOfRing(const spec::Layer &layer,
                                           int64_t ring, int64_t repeat) {
  SmallVector<CacheRole> roles;
  if (const auto *op = std::get_if<spec::Recurrent>(&layer.op)) {
    roles.push_back({0, "h", op->layers, {fixed(op->width)}});
    if (op->cell == spec::CellKind::Lstm)
      roles.push_back({1, "c", op->layers, {fixed(op->width)}});
  }
  // Keys of another block are in its caches.
  if (const spec::Attention *attention = getSelfAttention(layer))
    if (attention->keysFrom.empty())
      roles = cachesOf(*attention, ring, repeat);
  auto convolution = [&](int64_t kernel, int64_t channels) {
    roles.push_back({2, "conv", repeat, {fixed(kernel - 1), fixed(channels)}});
  };
  auto states = [&](int64_t rows, int64_t channels) {
    roles.push_back({3, "state", repeat, {fixed(rows), fixed(channels)}});
  };
  if (const spec::Mamba *op = getMamba(layer)) {
    convolution(op->kernel, spec::numConvolved(*op));
    states(op->states, op->inner);
  } else if (const spec::ShortConv *op = getShortConv(layer)) {
    convolution(op->kernel, layer.inputWidth);
  } else if (const spec::DeltaRule *op = getDeltaRule(layer)) {
    convolution(op->kernel, spec::numConvolved(*op));
    states(op->keyDim, op->heads * op->valueDim);
  } else if (const spec::TimeMix *op = getTimeMix(layer)) {
    roles.push_back({2, "shift", repeat, {fixed(1), fixed(layer.inputWidth)}});
    states(op->keyDim, op->heads * op->valueDim);
  }
  if (shiftsFFN(layer))
    roles.push_back(
        {4, "ffn_shift", repeat, {fixed(1), fixed(layer.inputWidth)}});
  return roles;
}

/// The caches of a layer, some for each ring of its repeats, in order. If a
/// cycle has several rings, the caches have the rings' names. Equal layers have
/// their caches with the first of them.
static SmallVector<CacheRole>
cachesOf(const spec::Model &model, const StreamState &stream, size_t number) {
  if (stream.equal.firstOf(number) != number)
    return {};
  const spec::Layer &layer = stream.equal.wholeOf(number);
  std::vector<int64_t> rings = spec::ringsOf(model, layer);
  std::map<int64_t, int64_t> repeats;
  for (int64_t i = 0; i < layer.repeat; ++i)
    ++repeats[rings[size_t(i) % rings.size()]];
  SmallVector<CacheRole> all;
  for (auto [ring, repeat] : repeats)
    for (CacheRole &role : cachesOfRing(layer, ring, repeat)) {
      role.repeatsOf = ring;
      if (ring && repeats.size() > 1)
        role.name.insert(0, "window_" + std::to_string(ring) + ".");
      all.push_back(role);
    }
  return all;
}

/// The element type of a cache.
static Type elementOf(OpBuilder &builder, const CacheRole &role,
                      const ModuleImport &shared) {
  if (!role.stored)
    return builder.getF32Type();
  if (role.heads && shared.model.kvCache == spec::KvCache::Int8)
    return builder.getI8Type();
  if (role.heads && shared.model.kvCache == spec::KvCache::Fp8)
    return builder.getType<Float8E4M3FNType>();
  return shared.storage;
}

/// How many tokens are cached, at most and of each sequence: all, or those that
/// a ring holds.
void EntryImporter::addHeld(int64_t ring) {
  std::string suffix = ring ? "_" + std::to_string(ring) : "";
  Location at = loc(stream->spec.location);
  arguments.push_back({"past" + suffix,
                       "past",
                       "",
                       builder.getIndexType(),
                       {},
                       std::nullopt,
                       at,
                       std::nullopt,
                       ring});
  if (kind != EntryKind::DecodeBatch)
    return;
  const spec::TensorSpec *first = findInput(model, stream->spec.input);
  arguments.push_back(
      {"lengths" + suffix,
       "lengths",
       "",
       RankedTensorType::get({ShapedType::kDynamic}, builder.getI64Type()),
       {first->shape[0]},
       std::nullopt,
       at,
       std::nullopt,
       ring});
}

/// How many tokens are cached, and what each layer keeps of them.
void EntryImporter::addCaches() {
  const spec::TensorSpec *first = findInput(model, stream->spec.input);
  std::set<int64_t> windows = {0};
  for (const spec::Layer &layer : stream->spec.layers)
    for (int64_t ring : spec::ringsOf(model, layer))
      windows.insert(ring);
  for (int64_t ring : windows)
    addHeld(ring);
  bool batched = kind == EntryKind::DecodeBatch;
  for (size_t n = 0; n < stream->spec.layers.size(); ++n) {
    const spec::Layer &layer = stream->spec.layers[n];
    for (const CacheRole &role : cachesOf(model, *stream, n)) {
      std::vector<spec::Dim> shape = {{role.count, ""}, first->shape[0]};
      SmallVector<int64_t> sizes = {role.count, ShapedType::kDynamic};
      // All that a sequence has is in one piece, which @decode takes alone.
      if (batched) {
        std::swap(shape[0], shape[1]);
        std::swap(sizes[0], sizes[1]);
      }
      for (const spec::Dim &dim : role.sizes) {
        shape.push_back(dim);
        sizes.push_back(dim.size < 0 ? ShapedType::kDynamic : dim.size);
      }
      Type element = elementOf(builder, role, shared);
      if (isInBytes(element))
        shape.back().size = sizes.back() = elementsOfRow(element, sizes.back());
      arguments.push_back({stream->symbols[n] + "." + role.name, "cache", "",
                           RankedTensorType::get(sizes, element), shape,
                           std::nullopt, loc(layer.location), std::nullopt,
                           role.ring});
    }
  }
}

/// The name of a layer's keys and values of another stream, as outputs of
/// `@encode` and inputs of `@decode`.
static std::string nameOfCross(const std::string &symbol, const char *role) {
  return symbol + ".cross." + role;
}

static std::vector<spec::Dim> shapeOfCross(const spec::Layer &layer,
                                           ArrayRef<spec::Dim> source,
                                           int64_t width) {
  return {{layer.repeat, ""},
          source[0],
          {getCrossAttention(layer)->kvHeads, ""},
          source[1],
          {width, ""}};
}

void EntryImporter::addCrossCaches() {
  for (size_t n = 0; n < stream->spec.layers.size(); ++n) {
    const spec::Layer &layer = stream->spec.layers[n];
    const spec::Attention *cross = getCrossAttention(layer);
    if (!cross)
      continue;
    const std::vector<spec::Dim> &source = shared.shapes[cross->source];
    int64_t keyDim = cross->headDim;
    int64_t valueDim = cross->valueDim ? cross->valueDim : keyDim;
    for (auto [role, width] :
         {std::pair("k", keyDim), std::pair("v", valueDim)}) {
      auto type =
          RankedTensorType::get({layer.repeat, ShapedType::kDynamic,
                                 cross->kvHeads, ShapedType::kDynamic, width},
                                shared.storage);
      arguments.push_back({nameOfCross(stream->symbols[n], role), "input", "",
                           type, shapeOfCross(layer, source, width),
                           std::nullopt, loc(layer.location)});
    }
  }
}

static Attribute attributeOf(OpBuilder &b, const spec::Dim &dim) {
  if (dim.size >= 0)
    return b.getI64IntegerAttr(dim.size);
  return b.getStringAttr(dim.symbol);
}

NamedAttrList EntryImporter::attributes(StringRef kind, StringRef name,
                                        ArrayRef<spec::Dim> shape) const {
  OpBuilder b(builder.getContext());
  SmallVector<Attribute> sizes;
  for (const spec::Dim &dim : shape)
    sizes.push_back(attributeOf(b, dim));
  NamedAttrList list;
  list.set("attune.kind", b.getStringAttr(kind));
  list.set("attune.name", b.getStringAttr(name));
  list.set("attune.shape", b.getArrayAttr(sizes));
  return list;
}

LogicalResult EntryImporter::createFunction() {
  SmallVector<Type> types;
  SmallVector<Attribute> attrs;
  SmallVector<Location> locs;
  for (const Argument &argument : arguments) {
    NamedAttrList list =
        attributes(argument.kind, argument.name, argument.shape);
    if (!argument.fallback.empty())
      list.set("attune.default", builder.getStringAttr(argument.fallback));
    if (argument.max)
      list.set("attune.max", builder.getI64IntegerAttr(*argument.max));
    if (argument.ignored)
      list.set("attune.ignored", builder.getI64IntegerAttr(*argument.ignored));
    if (argument.insertedId) {
      list.set("attune.inserted",
               builder.getI64IntegerAttr(*argument.insertedId));
      list.set("attune.each", builder.getI64IntegerAttr(argument.insertedEach));
      if (const spec::Insert *insert = bidirectionalOf(stream->spec))
        list.set("attune.bidirectional",
                 builder.getStringAttr(stringify(insert->bidirectional)));
    }
    if (argument.ring) {
      list.set("attune.window", builder.getI64IntegerAttr(argument.ring));
      list.set("attune.slack", builder.getI64IntegerAttr(model.windowSlack));
    }
    types.push_back(argument.type);
    attrs.push_back(list.getDictionary(builder.getContext()));
    locs.push_back(argument.loc);
  }
  Location at = loc(stream->spec.location);
  builder.setInsertionPointToEnd(shared.module.getBody());
  const char *name = kind == EntryKind::DecodeAll     ? "decode_all"
                     : kind == EntryKind::DecodeBatch ? "decode_batch"
                     : kind == EntryKind::DecodeSpan  ? "decode_span"
                     : decode                         ? "decode"
                     : kind == EntryKind::Encode      ? "encode"
                     : kind == EntryKind::Sound       ? "sound"
                     : kind == EntryKind::EncodeSound ? "encode_sound"
                                                      : "forward";
  function = func::FuncOp::create(builder, at, name,
                                  builder.getFunctionType(types, {}));
  function->setAttr("attune.entry", builder.getUnitAttr());
  function.setAllArgAttrs(attrs);
  Block *body = builder.createBlock(&function.getBody(), {}, types, locs);
  builder.setInsertionPointToStart(body);

  SmallVector<Value> cacheArguments;
  for (size_t i = 0; i < arguments.size(); ++i) {
    Value value = body->getArgument(i);
    int64_t ring = arguments[i].ring;
    if (arguments[i].kind == "past")
      (ring ? rings[ring].past : past) = value;
    else if (arguments[i].kind == "lengths")
      (ring ? rings[ring].lengths : lengths) = value;
    else if (arguments[i].kind == "cache")
      cacheArguments.push_back(value);
    else
      inputs[arguments[i].name] = {widened(value, arguments[i]),
                                   arguments[i].shape};
  }
  size_t next = 0;
  for (size_t n = 0; decode && n < stream->spec.layers.size(); ++n)
    for (const CacheRole &role : cachesOf(model, *stream, n))
      caches[{n, role.repeatsOf}][role.slot] = cacheArguments[next++];
  for (size_t n = 0; decode && n < stream->spec.layers.size(); ++n)
    if (getCrossAttention(stream->spec.layers[n]))
      crossCaches[n] = {inputs[nameOfCross(stream->symbols[n], "k")].value,
                        inputs[nameOfCross(stream->symbols[n], "v")].value};
  return success();
}

/// Layers compute in f32: an input of 16 bits is widened, which is exact.
/// Readers of 16 bits drop that again. Caches stay as they are.
Value EntryImporter::widened(Value value, const Argument &argument) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || !isa<BFloat16Type, Float16Type>(type.getElementType()) ||
      !findInput(model, argument.name))
    return value;
  return arith::ExtFOp::create(builder, argument.loc,
                               type.clone(builder.getF32Type()), value);
}

/// Returns the outputs (and caches), and gives the function its result types.
LogicalResult EntryImporter::finish() {
  Location at = loc(stream->spec.location);
  SmallVector<Value> values;
  SmallVector<Attribute> attrs;
  auto addResult = [&](StringRef kind, StringRef name,
                       const NamedTensor &tensor) {
    values.push_back(tensor.value);
    attrs.push_back(attributes(kind, name, tensor.shape)
                        .getDictionary(builder.getContext()));
  };

  if (kind == EntryKind::Encode) {
    for (const auto &[n, pair] : crossCaches) {
      const spec::Layer &layer = stream->spec.layers[n];
      const auto &source = shared.shapes[getCrossAttention(layer)->source];
      for (auto [role, cache] :
           {std::pair("k", pair.first), std::pair("v", pair.second)}) {
        int64_t width =
            cast<RankedTensorType>(cache.getType()).getShape().back();
        addResult("output", nameOfCross(stream->symbols[n], role),
                  {cache, shapeOfCross(layer, source, width)});
      }
    }
    for (const auto &[n, vectors] : insertedRows) {
      const auto &op = std::get<spec::Insert>(stream->spec.layers[n].op);
      addResult("output", stream->symbols[n] + ".rows",
                {vectors, shared.shapes[op.source]});
    }
  } else if (decode) {
    if (kind == EntryKind::DecodeAll) {
      addResult("output", "logits", state);
    } else {
      // [batch, 1, vocabulary] of the last token.
      auto type = cast<RankedTensorType>(state.value.getType());
      auto flat = RankedTensorType::get(
          {type.getDimSize(0), type.getDimSize(2)}, type.getElementType());
      Location headAt = loc(stream->spec.layers.back().location);
      Value logits = tensor::CollapseShapeOp::create(
          builder, headAt, flat, state.value,
          ArrayRef<ReassociationIndices>{{0, 1}, {2}});
      addResult("output", "logits", {logits, {state.shape[0], state.shape[2]}});
    }
    for (size_t n = 0; n < stream->spec.layers.size(); ++n) {
      for (const CacheRole &role : cachesOf(model, *stream, n)) {
        std::string name = stream->symbols[n] + "." + role.name;
        auto argument = llvm::find_if(arguments, [&](const Argument &a) {
          return a.kind == "cache" && a.name == name;
        });
        addResult("cache", name,
                  {caches[{n, role.repeatsOf}][role.slot], argument->shape});
      }
    }
  } else if (kind == EntryKind::EncodeSound) {
    addResult("output", "codes", state);
  } else if (kind == EntryKind::Sound) {
    addResult("output", "samples", stream->result);
  } else {
    for (const spec::Output &output : model.outputs) {
      if (output.layer == "hidden_states") {
        if (!shared.options.taps && model.outputs.size() > 1)
          continue;
        if (!hiddenStates) {
          diags.error(output.location,
                      "hidden_states needs a stream with a block");
          return failure();
        }
        std::vector<spec::Dim> shape = results["hidden_states"].shape;
        addResult("output", output.name, {hiddenStates, shape});
        continue;
      }
      auto result = results.find(output.layer);
      std::string problem;
      if (result == results.end() && !shared.options.taps &&
          spec::findAttentionTap(model, output.layer, problem))
        continue;
      if (result == results.end()) {
        diags.error(output.location, "output '" + output.name +
                                         "' names layer '" + output.layer +
                                         "', which the model does not have");
        return failure();
      }
      addResult("output", output.name, result->second);
    }
  }
  func::ReturnOp::create(builder, at, values);
  function.setFunctionType(builder.getFunctionType(
      function.getArgumentTypes(), ValueRange(values).getTypes()));
  function.setAllResultAttrs(attrs);
  for (auto [i, argument] : llvm::enumerate(arguments)) {
    if (auto longest = longestOf.find(argument.name);
        longest != longestOf.end())
      function.setArgAttr(i, "attune.longest",
                          builder.getDenseI64ArrayAttr(longest->second));
    if (auto most = mostPlaces.find(argument.name); most != mostPlaces.end())
      function.setArgAttr(i, "attune.places",
                          attributeOf(builder, most->second));
  }
  return success();
}
