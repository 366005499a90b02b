//===- ImportSpec.cpp - From a model description to attune IR ---*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Import/ImportSpec.h"

#include "Entries/EntryImporter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Verifier.h"

#include <set>

using namespace mlir;
using namespace attune;

bool attune::canDecode(const spec::Model &model) {
  if (model.streams.empty() || model.streams.back().layers.size() < 2)
    return false;
  bool encoderDecoder = model.streams.size() > 1, crosses = false;
  const spec::Stream &stream = model.streams.back();
  const auto *table = std::get_if<spec::Embedding>(&stream.layers.front().op);
  const spec::Layer &last = stream.layers.back();
  const auto *head = std::get_if<spec::Linear>(&last.op);
  if (!table || !head || last.repeat != 1)
    return false;
  // Each of several codebooks has scores of its own.
  int64_t books = model.codes ? int64_t(model.codes->inputs.size()) : 1;
  if (books == 1 ? head->out != table->vocab
                 : head->out % books != 0 || head->out / books > table->vocab)
    return false;
  for (const spec::Layer &layer : stream.layers) {
    // Later tokens change the backward direction's states, and the steps of a
    // scan may read anything.
    if (const auto *recurrent = std::get_if<spec::Recurrent>(&layer.op))
      if (recurrent->bidirectional || !recurrent->initial.empty())
        return false;
    if (const spec::Mamba *mamba = getMamba(layer))
      if (mamba->kernel == 1)
        return false;
    if (std::holds_alternative<spec::Scan>(layer.op) ||
        std::holds_alternative<spec::Slice>(layer.op) ||
        std::holds_alternative<spec::Concat>(layer.op))
      return false;
    if (const auto *extension = std::get_if<spec::Extension>(&layer.op))
      if (!extension->perToken)
        return false;
    crosses |= getCrossAttention(layer) ||
               std::holds_alternative<spec::Insert>(layer.op);
    if (const auto *bare = std::get_if<spec::Attention>(&layer.op))
      if (!bare->projections)
        return false;
    const spec::Attention *attention = getSelfAttention(layer);
    if (attention && attention->causal == spec::Causal::None)
      return false;
  }
  // Lengths and masks of blocks would have to grow from step to step; the
  // blocks of a cycle have one cache, be it of keys or of sums.
  bool grows = true;
  for (const spec::Layer &layer : stream.layers)
    for (const spec::Block &block : layer.cycle) {
      const spec::Block &first = layer.cycle.front();
      grows &=
          block.mamba.has_value() == first.mamba.has_value() &&
          block.shortConv.has_value() == first.shortConv.has_value() &&
          block.deltaRule.has_value() == first.deltaRule.has_value() &&
          block.timeMix.has_value() == first.timeMix.has_value() &&
          (block.ffn && block.ffn->shift) == (first.ffn && first.ffn->shift);
      grows &= !block.attention || !first.attention ||
               block.attention->linear.has_value() ==
                   first.attention->linear.has_value();
    }
  forEachAttention(stream, [&](const spec::Attention &attention) {
    if (attention.source.empty())
      grows &=
          attention.lengthsInput.empty() &&
          !(attention.blockSparse && !attention.blockSparse->maskInput.empty());
  });
  if (!grows)
    return false;
  // Codes are written for a text.
  if (model.codes && !crosses)
    return false;
  // Otherwise nothing says what the streams before the last are for.
  if (crosses != encoderDecoder)
    return false;
  for (const spec::Output &output : model.outputs)
    if (output.layer == last.name)
      return true;
  return false;
}

/// A symbol a person recognises: "model.layers.{i}" is "model.layers". Layers
/// without a name are called by their kind and place.
static std::string makeSymbol(const spec::Layer &layer, size_t number) {
  std::string symbol;
  for (size_t i = 0; i < layer.name.size(); ++i) {
    if (layer.name.compare(i, 3, "{i}") == 0) {
      i += 2;
      // Its separator goes with it.
      if (!symbol.empty() && symbol.back() == '.')
        symbol.pop_back();
      continue;
    }
    char c = layer.name[i];
    bool plain = llvm::isAlnum(c) || c == '_' || (c == '.' && !symbol.empty());
    symbol += plain ? c : '_';
  }
  if (symbol.empty())
    return keyOf(layer) + std::to_string(number);
  if (llvm::isDigit(symbol.front()))
    symbol.insert(0, "_");
  return symbol;
}

static std::vector<std::vector<std::string>>
makeSymbols(const spec::Model &model) {
  std::vector<std::vector<std::string>> symbols;
  std::set<std::string> taken;
  for (const spec::Stream &stream : model.streams) {
    // Several streams: every symbol starts with its stream's name.
    std::string prefix = model.streams.size() > 1 ? stream.name + "." : "";
    std::vector<std::string> &ofStream = symbols.emplace_back();
    for (size_t n = 0; n < stream.layers.size(); ++n) {
      std::string base = makeSymbol(stream.layers[n], n);
      if (!StringRef(base).starts_with(prefix))
        base.insert(0, prefix);
      std::string symbol = base;
      for (int suffix = 1; !taken.insert(symbol).second; ++suffix)
        symbol = base + "_" + std::to_string(suffix);
      ofStream.push_back(symbol);
    }
  }
  return symbols;
}

static Type toStorage(MLIRContext *context, spec::DType dtype) {
  switch (dtype) {
  case spec::DType::F32:
    return Float32Type::get(context);
  case spec::DType::F16:
    return Float16Type::get(context);
  case spec::DType::BF16:
    return BFloat16Type::get(context);
  default:
    return {};
  }
}

/// Adds attributes for the compiled model's description that no op states.
static void describe(ModuleOp module, const spec::Model &model) {
  OpBuilder b(module.getContext());
  if (!model.name.empty())
    module->setAttr("attune.name", b.getStringAttr(model.name));
  if (model.context)
    module->setAttr("attune.context", b.getI64IntegerAttr(model.context));
  const spec::Generation &generation = model.generation;
  if (!generation.eos.empty())
    module->setAttr("attune.eos", b.getDenseI64ArrayAttr(generation.eos));
  if (generation.bos)
    module->setAttr("attune.bos", b.getI64IntegerAttr(*generation.bos));
  if (generation.pad)
    module->setAttr("attune.pad", b.getI64IntegerAttr(*generation.pad));
  if (generation.decoderStart)
    module->setAttr("attune.decoder_start",
                    b.getI64IntegerAttr(*generation.decoderStart));
  if (generation.forcedBos)
    module->setAttr("attune.forced_bos",
                    b.getI64IntegerAttr(*generation.forcedBos));
  if (!generation.suppress.empty())
    module->setAttr("attune.suppress",
                    b.getDenseI64ArrayAttr(generation.suppress));
  if (!generation.beginSuppress.empty())
    module->setAttr("attune.begin_suppress",
                    b.getDenseI64ArrayAttr(generation.beginSuppress));
  SmallVector<NamedAttribute> sampling;
  for (const auto &[setting, value] : generation.sampling)
    sampling.push_back(b.getNamedAttr(setting->name, b.getF64FloatAttr(value)));
  if (!sampling.empty())
    module->setAttr("attune.sampling", b.getDictionaryAttr(sampling));
  if (model.audio)
    module->setAttr("attune.audio", b.getStringAttr(print(*model.audio)));
  if (model.codes)
    module->setAttr("attune.codes", b.getStringAttr(print(*model.codes)));
  if (model.playback)
    module->setAttr("attune.playback", b.getStringAttr(print(*model.playback)));
}

/// Whether all that a step keeps belongs to single tokens, so that the last
/// ones can be taken back.
static bool cachesOnlyTokens(const spec::Model &model) {
  for (const spec::Layer &layer : model.streams.back().layers) {
    if (keepsStates(layer) || std::holds_alternative<spec::Recurrent>(layer.op))
      return false;
    if (const spec::Attention *attention = getSelfAttention(layer))
      if (attention->linear)
        return false;
    for (const spec::Block &block : layer.cycle)
      if (!block.attention || block.attention->linear)
        return false;
  }
  return true;
}

/// What of an attention depends on the length of the longest sequence in a way
/// that others do not share; empty: nothing does.
static std::string findSharedLength(const spec::Attention &attention) {
  if (attention.sequenceRank)
    return "attention to sums over the sequence";
  if (attention.relative)
    return "Transformer-XL's relative positions";
  if (attention.rope && (attention.rope->scaling.type == "dynamic" ||
                         attention.rope->scaling.type == "longrope"))
    return "rotary angles that change with the length of a text (" +
           attention.rope->scaling.type + ")";
  return "";
}

std::string attune::whyDecodesAlone(const spec::Model &model) {
  if (!canDecode(model))
    return "it does not generate";
  if (model.codes)
    return "it writes several codes at a time";
  // The cache has all that steps need of what the model sees.
  const spec::Stream &stream = model.streams.back();
  auto inserts = [](const spec::Layer &layer) {
    return std::holds_alternative<spec::Insert>(layer.op);
  };
  auto crosses = [](const spec::Layer &layer) {
    return getCrossAttention(layer) != nullptr;
  };
  if (model.streams.size() > 1 && (llvm::none_of(stream.layers, inserts) ||
                                   llvm::any_of(stream.layers, crosses)))
    return "it has an encoder, whose results differ from text to text";
  for (const spec::Layer &layer : stream.layers)
    if (const auto *positions = std::get_if<spec::Positions>(&layer.op))
      if (positions->count != spec::PositionCount::Input)
        return "it has positions that are no input";
  std::string what;
  forEachAttention(stream, [&](const spec::Attention &attention) {
    if (what.empty())
      what = findSharedLength(attention);
  });
  return what.empty() ? "" : "it has " + what;
}

OwningOpRef<ModuleOp> attune::importSpec(MLIRContext &context,
                                         const spec::Model &model,
                                         const ImportOptions &options,
                                         DiagnosticEngine &diags) {
  context.loadDialect<AttuneDialect, arith::ArithDialect, func::FuncDialect,
                      linalg::LinalgDialect, math::MathDialect, scf::SCFDialect,
                      tensor::TensorDialect>();
  if (model.streams.empty()) {
    diags.error({model.file, 1, 1}, "the model has no layers");
    return {};
  }
  const spec::Stream &stream = model.streams.front();
  Type storage = toStorage(&context, options.dtype.value_or(model.dtype));
  if (!storage) {
    diags.error(stream.location, "weights can be stored as f32, f16 or bf16");
    return {};
  }
  for (const spec::Stream &each : model.streams)
    for (const spec::Layer &layer : each.layers)
      if (const spec::Attention *attention = getSelfAttention(layer))
        if (attention->relative && (attention->causal != spec::Causal::None ||
                                    attention->rope || attention->qkNorm)) {
          diags.error(attention->location,
                      "relative positions with 'causal', 'rope' or 'qk_norm' "
                      "can be described and inspected, but not compiled yet");
          return {};
        }

  if (!checkBidirectional(model, diags))
    return {};
  OwningOpRef<ModuleOp> module =
      ModuleOp::create(toLocation(&context, stream.location));
  describe(*module, model);
  WeightTable weights(*module, storage, diags);
  std::vector<EqualLayers> equal;
  for (size_t i = 0; i < model.streams.size(); ++i)
    equal.emplace_back(model, i);
  ModuleImport shared = {model,   options, *module,
                         weights, storage, makeSymbols(model),
                         equal,   diags,   {}};
  if (failed(EntryImporter(shared, EntryKind::Forward).run()))
    return {};
  if (options.decode && model.codes && !model.codes->sound.empty() &&
      failed(EntryImporter(shared, EntryKind::Sound).run()))
    return {};
  if (options.decode && encodesSound(model) &&
      failed(EntryImporter(shared, EntryKind::EncodeSound).run()))
    return {};
  if (options.decode && canDecode(model)) {
    if (model.streams.size() > 1 &&
        failed(EntryImporter(shared, EntryKind::Encode).run()))
      return {};
    if (failed(EntryImporter(shared, EntryKind::Decode).run()))
      return {};
    if (bidirectionalOf(model.streams.back()) &&
        failed(EntryImporter(shared, EntryKind::DecodeSpan).run()))
      return {};
    if (options.decodeAll && cachesOnlyTokens(model) &&
        failed(EntryImporter(shared, EntryKind::DecodeAll).run()))
      return {};
    if (options.decodeBatch) {
      std::string why = whyDecodesAlone(model);
      if (!why.empty())
        (*module)->setAttr("attune.decodes_alone",
                           StringAttr::get(&context, why));
      else if (failed(EntryImporter(shared, EntryKind::DecodeBatch).run()))
        return {};
    }
  }
  if (failed(verify(*module))) {
    // The verifier has said what is wrong, at the op's place in the JSON.
    diags.error(stream.location, "the imported module is not valid; this is a "
                                 "bug in Attune");
    return {};
  }
  return module;
}
