//===- ModelStatistics.cpp - Cost of a model --------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Analysis/ModelStatistics.h"

#include "Attune/AttuneCachedRows.h"
#include "Counter.h"
#include "VisiblePairs.h"
#include "attune/Spec/Rings.h"

#include <algorithm>
#include <cmath>

using namespace attune::spec;

namespace attune {

double sizeOf(DType dtype) {
  switch (dtype) {
  case DType::F32:
  case DType::I32:
    return 4;
  case DType::F16:
  case DType::BF16:
    return 2;
  case DType::I64:
    return 8;
  case DType::I8:
  case DType::Bool:
    return 1;
  }
  return 4;
}

double bytesCached(const Model &model, double numbers, double rows) {
  return model.kvCache == KvCache::Full
             ? numbers * sizeOf(model.dtype)
             : numbers + rows * double(kRowScaleBytes);
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

/// The part of a layer that a weight belongs to: "attention.q.weight" is of
/// "attention.qkv", "norm1.bias" of "norms".
static std::string partOf(const Layer &layer, const std::string &role) {
  if (std::holds_alternative<Recurrent>(layer.op))
    return "gates";
  if (std::holds_alternative<Scan>(layer.op))
    return role.substr(0, role.find('.'));
  std::string name = role.substr(0, role.rfind('.'));
  if (name == role)
    return std::holds_alternative<Norm>(layer.op) ? "norms" : "table";
  if (name.find("norm") != std::string::npos)
    return "norms";
  size_t dot = name.rfind('.');
  std::string prefix = dot == std::string::npos ? "" : name.substr(0, dot + 1);
  std::string last = name.substr(prefix.size());
  for (const char *expert : {"experts.{e}.", "shared."})
    if (size_t at = prefix.find(expert); at != std::string::npos)
      prefix = prefix.substr(0, at) + (*expert == 'e' ? "experts." : expert);
  name = prefix + last;
  if (last == "q" || last == "k" || last == "v")
    return prefix + "qkv";
  if (last == "gate")
    return prefix + "up";
  return name;
}

/// Parameters of `elements` each that this weight adds over all repeats: none
/// for tensors that an earlier weight already brought.
static double newCopies(const Layer &layer, const WeightRole &role,
                        std::set<std::string> &counted) {
  std::string key;
  bool perRepeat = false;
  for (const WeightSource &source : resolveWeight(layer, role.role)) {
    perRepeat |= source.tensor.find("{i}") != std::string::npos;
    key += source.tensor + '\0' + std::to_string(source.begin) + ":" +
           std::to_string(source.end) + ";";
  }
  if (perRepeat)
    key += std::to_string(layer.first);
  if (!counted.insert(key).second)
    return 0;
  return perRepeat ? static_cast<double>(layer.repeat) : 1;
}

const MoE *mixtureOf(const Layer &layer) {
  if (const auto *block = std::get_if<Block>(&layer.op))
    return block->moe ? &*block->moe : nullptr;
  return std::get_if<MoE>(&layer.op);
}

void Counter::countWeights(const Layer &layer) {
  for (const WeightRole &role : weightRoles(layer)) {
    double elements = static_cast<double>(role.rows) *
                      static_cast<double>(std::max<int64_t>(role.columns, 1));
    double fresh = elements * newCopies(layer, role, counted);
    double active = fresh;
    if (role.parts > 1) {
      fresh *= static_cast<double>(role.parts);
      active *= static_cast<double>(mixtureOf(layer)->active);
    }
    std::string name = std::holds_alternative<Linear>(layer.op)
                           ? "projection"
                           : partOf(layer, role.role);
    part(name).parameters += static_cast<uint64_t>(fresh);
    current.parameters += static_cast<uint64_t>(fresh);
    current.activeParameters += static_cast<uint64_t>(active);
    current.weightBytes += fresh * sizeOf(model.dtype);
  }
}

//===----------------------------------------------------------------------===//
// Layers
//===----------------------------------------------------------------------===//

PartStatistics &Counter::part(const std::string &name) {
  for (PartStatistics &existing : current.parts)
    if (existing.name == name)
      return existing;
  current.parts.push_back({name});
  return current.parts.back();
}

void Counter::countAttention(const std::string &prefix,
                             const Attention &attention, int64_t width,
                             int64_t out) {
  if (attention.latent)
    return countLatent(prefix, attention, width);
  Extent keys = attention.source.empty() ? here : extents[attention.source];
  double heads = static_cast<double>(attention.heads);
  double kvHeads = static_cast<double>(attention.kvHeads);
  double headDim = static_cast<double>(attention.headDim);
  double valueDim = static_cast<double>(attention.valueDim);
  double channels = static_cast<double>(width);
  double sourceTokens = here.batch * keys.tokens;
  // Keys and values of another block are neither made nor cached here.
  bool own = attention.keysFrom.empty();
  double kvChannels = own ? kvHeads * (headDim + valueDim) : 0;

  addFlops(prefix + "qkv", 2 * tokens() * channels * heads * headDim +
                               2 * sourceTokens *
                                   static_cast<double>(attention.sourceWidth) *
                                   kvChannels);
  if (attention.adapterRank)
    for (auto [name, rows] :
         {std::pair("q", heads * headDim), std::pair("k", kvHeads * headDim),
          std::pair("v", kvHeads * valueDim)}) {
      double rank = static_cast<double>(attention.adapterRank);
      addFlops(prefix + name + "_down", 2 * tokens() * channels * rank);
      addFlops(prefix + name + "_up", 2 * tokens() * rank * rows);
    }
  double pairs =
      here.batch * heads * visiblePairs(attention, here.tokens, keys.tokens);
  if (attention.linear)
    addFlops(prefix + "sums", 2 * headDim *
                                  static_cast<double>(numSums(attention)) *
                                  (tokens() * heads + sourceTokens * kvHeads));
  else
    addFlops(prefix + "scores", 2 * pairs * (headDim + valueDim));
  if (const auto &low = attention.sequenceRank)
    for (auto [name, size] :
         {std::pair("sequence_k", headDim), {"sequence_v", valueDim}})
      addFlops(prefix + name, 2 * here.batch * kvHeads * size *
                                  static_cast<double>(low->rank) *
                                  static_cast<double>(low->positions));
  if (attention.relative) {
    // Distances are the same for all sequences of a batch.
    addFlops(prefix + "r", 2 * here.tokens * channels * heads * headDim +
                               2 * pairs * headDim);
  }
  if (const auto &form = attention.disentangled) {
    // Rows are the same for all sequences of a batch.
    double rows = 2 * static_cast<double>(form->span);
    double sides =
        (form->contentToPosition ? 1 : 0) + (form->positionToContent ? 1 : 0);
    addFlops(prefix + "positions",
             2 * rows * sides * heads * headDim * (channels + tokens()));
  }
  double results = 2 * tokens() * heads * valueDim;
  if (attention.gate)
    addFlops(prefix + "gate", results * channels);
  if (out)
    addFlops(prefix + "o", results * static_cast<double>(out));

  double scored = keys.tokens;
  if (attention.linear)
    scored = 0;
  else if (attention.sequenceRank)
    scored = static_cast<double>(attention.sequenceRank->rank);
  current.scoreBytes =
      std::max(current.scoreBytes,
               here.batch * heads * here.tokens * scored * sizeOf(model.dtype));
  if (attention.linear && attention.causal != Causal::None)
    current.cacheBytes +=
        static_cast<double>(current.repeat) * here.batch * kvHeads * headDim *
        static_cast<double>(numSums(attention)) * activationSize;
  else if (!attention.source.empty())
    current.cacheBytes += static_cast<double>(current.repeat) * sourceTokens *
                          kvChannels * sizeOf(model.dtype);
  else if (attention.causal != Causal::None && own)
    current.cacheBytes += static_cast<double>(current.repeat) * here.batch *
                          cachedTokens(attention) *
                          bytesCached(model, kvChannels, 2 * kvHeads);
  // The residual, its norm, queries, keys and values, the heads' results.
  alive(tokens() * (2 * channels + heads * (headDim + valueDim)) +
        sourceTokens * kvChannels);
}

void Counter::countBare(const Attention &attention) {
  const TensorSpec *query = findInput(attention.queryInput);
  const TensorSpec *key = findInput(attention.keyInput);
  if (!query || !key || query->shape.size() != 4 || key->shape.size() != 4)
    return;
  double batch = extentOf(query->shape[0]);
  double queries = extentOf(query->shape[2]), keys = extentOf(key->shape[2]);
  double heads = static_cast<double>(attention.heads);
  double kvHeads = static_cast<double>(attention.kvHeads);
  double headDim = static_cast<double>(attention.headDim);
  double valueDim = static_cast<double>(attention.valueDim);
  if (attention.linear) {
    addFlops("sums", 2 * batch * headDim *
                         static_cast<double>(numSums(attention)) *
                         (queries * heads + keys * kvHeads));
  } else {
    addFlops("scores", 2 * batch * heads *
                           visiblePairs(attention, queries, keys) *
                           (headDim + valueDim));
    current.scoreBytes = batch * heads * queries * keys * sizeOf(query->dtype);
  }
  // Queries, keys, values and results, as they are stored.
  current.activationBytes = batch *
                            (heads * queries * (headDim + valueDim) +
                             kvHeads * keys * (headDim + valueDim)) *
                            sizeOf(query->dtype);
}

void Counter::countFFN(const std::string &prefix, const FFN &ffn, int64_t width,
                       bool out) {
  double hidden = static_cast<double>(ffn.width);
  double channels = static_cast<double>(width);
  double product = 2 * tokens() * channels * hidden;
  addFlops(prefix + "up", ffn.gated ? 2 * product : product);
  if (out)
    addFlops(prefix + "down", product);
  if (ffn.adapterRank) {
    double rank = static_cast<double>(ffn.adapterRank);
    addFlops(prefix + "adapter_down", 2 * tokens() * channels * rank);
    addFlops(prefix + "adapter_gate", 2 * tokens() * rank * hidden);
    addFlops(prefix + "adapter_up", 2 * tokens() * rank * hidden);
  }
  if (ffn.shift)
    current.cacheBytes += static_cast<double>(current.repeat) * here.batch *
                          channels * activationSize;
  alive(tokens() * (2 * channels + hidden));
}

/// Tokens are multiplied by their own experts only.
void Counter::countMoE(const std::string &prefix, const MoE &moe,
                       int64_t width) {
  double channels = static_cast<double>(width);
  double active = static_cast<double>(moe.active);
  double hidden = static_cast<double>(moe.width);
  addFlops(prefix + "router",
           2 * tokens() * channels * static_cast<double>(moe.experts));
  auto layer = [&](const std::string &name, double inner) {
    double product = 2 * tokens() * channels * inner;
    addFlops(name + "up", moe.gated ? 2 * product : product);
    addFlops(name + "down", product);
  };
  layer(prefix + "experts.", active * hidden);
  if (moe.shared)
    layer(prefix + "shared.", static_cast<double>(moe.shared->width));
  if (moe.shared && moe.shared->gate)
    addFlops(prefix + "shared_gate", 2 * tokens() * channels);
  alive(tokens() * (2 * channels + active * (hidden + channels)));
}

void Counter::countLinear(const Linear &linear, int64_t width) {
  double out = static_cast<double>(linear.out);
  double channels = static_cast<double>(width);
  addFlops("projection", 2 * tokens() * channels * out);
  alive(tokens() * (channels + out));
}

void Counter::countConv(const Conv &conv) {
  if (conv.transposed) {
    double each = static_cast<double>(conv.kernel[0] * conv.out);
    addFlops("projection",
             2 * tokens() * static_cast<double>(conv.channels) * each);
    alive(tokens() * (static_cast<double>(conv.channels) + each));
    spatial[0] *= static_cast<double>(conv.stride[0]);
    here.tokens = spatial[0];
    return;
  }
  double columns = static_cast<double>(conv.channels / conv.groups), places = 1;
  for (size_t i = 0; i < conv.kernel.size(); ++i) {
    double room = spatial[i] + 2 * static_cast<double>(conv.padding[i]) -
                  static_cast<double>(conv.kernel[i]);
    if (!conv.same)
      spatial[i] = std::floor(room / static_cast<double>(conv.stride[i])) + 1;
    places *= spatial[i];
    columns *= static_cast<double>(conv.kernel[i]);
  }
  here.tokens = places;
  addFlops("projection",
           2 * tokens() * columns * static_cast<double>(conv.out));
  columns *= static_cast<double>(conv.groups);
  alive(tokens() * (columns + static_cast<double>(conv.out)));
}

void Counter::countRecurrent(const Recurrent &recurrent, int64_t width) {
  double own = static_cast<double>(recurrent.width);
  double rows = static_cast<double>(numGates(recurrent.cell)) * own;
  double directions = recurrent.bidirectional ? 2 : 1;
  double inputs = static_cast<double>(width);
  for (int64_t level = 0; level < recurrent.layers; ++level) {
    addFlops("gates", 2 * tokens() * directions * rows * (inputs + own));
    inputs = directions * own;
  }
  if (!recurrent.bidirectional)
    current.cacheBytes += here.batch * own * activationSize *
                          static_cast<double>(recurrent.layers) *
                          (recurrent.cell == spec::CellKind::Lstm ? 2 : 1);
  alive(tokens() * (static_cast<double>(width) + rows + directions * own));
}

/// A state takes three products and sums a token: its decay, what comes in and
/// what is read.
void Counter::countMamba(const std::string &prefix, const Mamba &mamba,
                         int64_t width) {
  double channels = static_cast<double>(width);
  double inner = static_cast<double>(mamba.inner);
  double heads = static_cast<double>(mamba.heads);
  double rank = static_cast<double>(mamba.rank);
  double states = static_cast<double>(mamba.states);
  double kernel = static_cast<double>(mamba.kernel);
  double convolved = static_cast<double>(numConvolved(mamba));
  addFlops(prefix + "in_proj", 2 * tokens() * (inner + convolved) * channels);
  addFlops(prefix + "conv1d", 2 * tokens() * convolved * kernel);
  if (!mamba.heads)
    addFlops(prefix + "x_proj", 2 * tokens() * inner * (rank + 2 * states));
  addFlops(prefix + "dt_proj",
           2 * tokens() * (mamba.heads ? heads * channels : inner * rank));
  addFlops(prefix + "scan", 6 * tokens() * inner * states);
  addFlops(prefix + "out_proj", 2 * tokens() * inner * channels);
  current.cacheBytes += static_cast<double>(current.repeat) * here.batch *
                        ((kernel - 1) * convolved + states * inner) *
                        activationSize;
  alive(tokens() * (4 * inner + convolved + rank + 2 * states));
}

void Counter::countShortConv(const ShortConv &conv, int64_t width) {
  double channels = static_cast<double>(width), each = 2 * tokens() * channels;
  double kernel = static_cast<double>(conv.kernel);
  addFlops("short_conv.in_proj", 3 * each * channels);
  addFlops("short_conv.conv", each * kernel);
  addFlops("short_conv.out_proj", each * channels);
  current.cacheBytes += static_cast<double>(current.repeat) * here.batch *
                        channels * (kernel - 1) * activationSize;
  alive(tokens() * 5 * channels);
}

void Counter::countDeltaRule(const DeltaRule &rule, int64_t width) {
  double channels = static_cast<double>(width);
  double heads = static_cast<double>(rule.heads);
  double states = static_cast<double>(rule.keyDim);
  double values = heads * static_cast<double>(rule.valueDim);
  double convolved = static_cast<double>(numConvolved(rule));
  double kernel = static_cast<double>(rule.kernel);
  addFlops("delta_rule.in_proj", 2 * tokens() * convolved * channels);
  addFlops("delta_rule.conv1d", 2 * tokens() * convolved * kernel);
  auto through = [&](int64_t rank, double rows) {
    return 2 * tokens() *
           (rank ? static_cast<double>(rank) * (channels + rows)
                 : rows * channels);
  };
  addFlops("delta_rule.gate", through(rule.gateRank, values));
  addFlops("delta_rule.step",
           through(rule.stepRank, static_cast<double>(numSteps(rule))));
  addFlops("delta_rule.beta", 2 * tokens() * heads * channels);
  // Two products with the memory, its decay and what is added to it.
  addFlops("delta_rule.memory", 7 * tokens() * values * states);
  addFlops("delta_rule.out_proj", 2 * tokens() * values * channels);
  current.cacheBytes += static_cast<double>(current.repeat) * here.batch *
                        ((kernel - 1) * convolved + states * values) *
                        activationSize;
  alive(tokens() * (2 * convolved + 2 * values + 2 * heads));
}

void Counter::countTimeMix(const TimeMix &mix, int64_t width) {
  double channels = static_cast<double>(width);
  double states = static_cast<double>(mix.keyDim);
  double keys = static_cast<double>(mix.heads) * states;
  double values = static_cast<double>(mix.heads * mix.valueDim);
  auto through = [&](int64_t rank, double rows) {
    return 2 * tokens() * static_cast<double>(rank) * (channels + rows);
  };
  addFlops("time_mix.rkv", 2 * tokens() * (2 * keys + values) * channels);
  addFlops("time_mix.w", through(mix.decayRank, keys));
  addFlops("time_mix.a", through(mix.rateRank, keys));
  addFlops("time_mix.v", through(mix.valueRank, values));
  addFlops("time_mix.g", through(mix.gateRank, values));
  // Two products with the memory, its decay and two that are added to it.
  addFlops("time_mix.memory", 9 * tokens() * values * states);
  addFlops("time_mix.o", 2 * tokens() * values * channels);
  current.cacheBytes += static_cast<double>(current.repeat) * here.batch *
                        (channels + states * values) * activationSize;
  alive(tokens() * (6 * channels + 6 * keys + 4 * values));
}

/// A step of a scan that runs `times` times.
void Counter::countStep(const ScanStep &step, double times) {
  double inputs = static_cast<double>(step.inputWidth);
  double width = static_cast<double>(step.width);
  if (const auto *op = std::get_if<ScanCell>(&step.op)) {
    double rows = static_cast<double>(numGates(op->cell)) * width;
    addFlops(step.name, 2 * times * rows * (inputs + width));
  } else if (std::holds_alternative<ScanLinear>(step.op)) {
    addFlops(step.name, 2 * times * inputs * width);
  } else if (const auto *op = std::get_if<ScanAttend>(&step.op)) {
    Extent keys = here;
    if (auto found = extents.find(op->source); found != extents.end())
      keys = found->second;
    else if (const TensorSpec *input = findInput(op->source)) {
      keys.tokens = 1;
      for (size_t i = 1; i + 1 < input->shape.size(); ++i)
        keys.tokens *= extentOf(input->shape[i]);
    }
    double query = static_cast<double>(op->queryWidth);
    double source = static_cast<double>(op->sourceWidth), scored = query;
    if (op->score == ScoreKind::Additive || op->score == ScoreKind::Concat) {
      scored = static_cast<double>(op->width);
      addFlops(step.name, 2 * times * query * scored);
    }
    if (op->score != ScoreKind::Dot)
      addFlops(step.name, 2 * here.batch * keys.tokens * source * scored);
    addFlops(step.name, 2 * times * keys.tokens * (scored + source));
  }
}

/// A modulation's linear layer runs once a sequence.
void Counter::countModulation(const Modulation &by, int64_t rows) {
  addFlops("modulation", 2 * here.batch * static_cast<double>(rows) *
                             static_cast<double>(by.sourceWidth));
}

/// The matrices of all copies but the first.
void Counter::countCopies(int64_t copies, int64_t width) {
  for (int64_t i = 1; i < copies; ++i)
    addFlops(std::to_string(i), 2 * tokens() * static_cast<double>(width) *
                                    static_cast<double>(width));
}

void Counter::countAlternating(const Alternating &form, int64_t width) {
  double channels = static_cast<double>(width);
  double copies = static_cast<double>(form.copies);
  addFlops("alternating.router", 4 * tokens() * channels * copies);
  addFlops("alternating.predict",
           2 * tokens() * copies * copies * (copies + channels));
  addFlops("alternating.correct", 2 * tokens() * copies * (copies + channels));
  if (form.inputs == 0)
    return;
  double inputs = static_cast<double>(form.inputs);
  addFlops("alternating.gate", 2 * tokens() * channels * inputs);
  addFlops("alternating.up", 2 * tokens() * channels * inputs);
}

void Counter::countBlock(const Block &block, int64_t width) {
  width = innerWidth(block, width);
  if (block.joint)
    return countJoint(block, width);
  if (block.alternating)
    countAlternating(*block.alternating, width);
  if (block.laurelRank) {
    double thin = 2 * tokens() * static_cast<double>(width) *
                  static_cast<double>(block.laurelRank);
    addFlops("laurel_a", thin);
    addFlops("laurel_b", thin);
  }
  if (block.modulation)
    countModulation(*block.modulation, numModulated(block) * 3 * width);
  if (block.attention)
    countAttention("attention.", *block.attention, attentionWidth(block, width),
                   block.sharedOut ? 0 : width);
  if (block.memory) {
    double channels = static_cast<double>(width);
    countFFN("memory.ffn.", block.memory->ffn, width);
    addFlops("memory.out", 2 * tokens() * channels * channels);
  }
  if (block.mamba)
    countMamba("mamba.", *block.mamba, width);
  if (block.shortConv)
    countShortConv(*block.shortConv, width);
  if (block.deltaRule)
    countDeltaRule(*block.deltaRule, width);
  if (block.timeMix)
    countTimeMix(*block.timeMix, width);
  if (block.cross)
    countAttention("cross.", *block.cross, width, width);
  if (block.ffn)
    countFFN("ffn.", *block.ffn, width, !block.sharedOut);
  if (block.sharedOut)
    addFlops("out", 2 * tokens() * static_cast<double>(width) *
                        static_cast<double>(block.attention->heads *
                                                block.attention->valueDim +
                                            block.ffn->width));
  if (block.moe)
    countMoE("moe.", *block.moe, width);
}

static const char *kindOf(const Layer &layer) {
  if (const auto *norm = std::get_if<Norm>(&layer.op))
    return stringify(norm->kind);
  return keyOf(layer);
}

int64_t Counter::repeatsOf(const Layer &layer, size_t turn) {
  auto turns = static_cast<int64_t>(std::max<size_t>(layer.cycle.size(), 1));
  return layer.repeat / turns +
         (static_cast<int64_t>(turn) < layer.repeat % turns);
}

double Counter::cachedTokens(const Attention &attention) {
  int64_t ring = ringOf(model, attention);
  if (const char *why = whyNoRing(attention))
    current.wholeCache = why;
  if (!ring)
    return here.tokens;
  return std::min(here.tokens, static_cast<double>(ring + model.windowSlack));
}

void Counter::countLayer(const Layer &layer) {
  int64_t width = layer.inputWidth;
  alive(tokens() * 2 * static_cast<double>(std::max(width, layer.width)));
  if (const auto *op = std::get_if<Block>(&layer.op)) {
    std::vector<Block> turns = layer.cycle;
    if (turns.empty())
      turns.push_back(*op);
    for (size_t i = 0; i < turns.size(); ++i) {
      current.repeat = repeatsOf(layer, i);
      countBlock(turns[i], width);
    }
    current.repeat = layer.repeat;
  } else if (const auto *op = std::get_if<Attention>(&layer.op)) {
    if (op->projections)
      countAttention("", *op, width, width);
    else
      countBare(*op);
  } else if (const auto *op = std::get_if<FFN>(&layer.op)) {
    countFFN("", *op, width);
  } else if (const auto *op = std::get_if<MoE>(&layer.op)) {
    countMoE("", *op, width);
  } else if (const auto *op = std::get_if<Linear>(&layer.op)) {
    countLinear(*op, width);
  } else if (const auto *op = std::get_if<Pool>(&layer.op)) {
    here.tokens = 1;
    (void)op;
  } else if (const auto *op = std::get_if<ClassTokens>(&layer.op)) {
    here.tokens += static_cast<double>(op->count);
  } else if (const auto *op = std::get_if<Slice>(&layer.op)) {
    countSlice(*op);
  } else if (const auto *op = std::get_if<Concat>(&layer.op)) {
    if (!layer.pooled)
      countConcat(*op);
  } else if (const auto *op = std::get_if<Conv>(&layer.op)) {
    countConv(*op);
  } else if (const auto *op = std::get_if<Modulate>(&layer.op)) {
    countModulation(op->by, 2 * width);
  } else if (const auto *op = std::get_if<Chunk>(&layer.op)) {
    double half = static_cast<double>(op->size) / 2;
    whole = here;
    double chunks = 2 * std::floor((here.tokens / half + 3) / 2);
    here = {here.batch * chunks, 2 * half};
  } else if (std::holds_alternative<SwapChunks>(layer.op)) {
    double sequences = here.batch / whole.batch;
    here = {whole.batch * here.tokens, sequences};
  } else if (std::holds_alternative<OverlapAdd>(layer.op) ||
             std::holds_alternative<Whole>(layer.op)) {
    here = whole;
  } else if (const auto *op = std::get_if<Windows>(&layer.op)) {
    // As if the windows filled the image.
    whole = here;
    double places = static_cast<double>(op->rows * op->columns);
    here = {here.batch * std::ceil(here.tokens / places), places};
  } else if (const auto *op = std::get_if<Merge>(&layer.op)) {
    here.tokens /= static_cast<double>(op->size * op->size);
    for (double &places : spatial)
      places /= static_cast<double>(op->size);
  } else if (const auto *op = std::get_if<Recurrent>(&layer.op)) {
    countRecurrent(*op, width);
  } else if (const auto *op = std::get_if<Scan>(&layer.op)) {
    for (const ScanStep &step : op->start)
      countStep(step, here.batch);
    for (const ScanStep &step : op->steps)
      countStep(step, tokens());
  } else if (const auto *op = std::get_if<Mamba>(&layer.op)) {
    countMamba("", *op, width);
  } else if (const auto *op = std::get_if<LayerInputs>(&layer.op)) {
    addFlops("projection", 2 * tokens() * static_cast<double>(width) *
                               static_cast<double>(op->blocks * op->width));
  } else if (const auto *op = std::get_if<Spread>(&layer.op)) {
    countCopies(op->copies, width);
  } else if (const auto *op = std::get_if<Unite>(&layer.op)) {
    countCopies(op->copies, layer.width);
  } else if (const auto *op = std::get_if<Extension>(&layer.op)) {
    part(op->kind).flops += op->flopsPerToken * tokens();
  }
  countWeights(layer); // after the parts are there, in the order they run
  for (const PartStatistics &part : current.parts)
    current.flops += part.flops;
}

//===----------------------------------------------------------------------===//
// Model
//===----------------------------------------------------------------------===//

/// A layer's self-attention, if it has one.
static const Attention *selfAttention(const Layer &layer) {
  if (const auto *block = std::get_if<Block>(&layer.op))
    return block->attention ? &*block->attention : nullptr;
  const auto *attention = std::get_if<Attention>(&layer.op);
  return attention && attention->projections ? attention : nullptr;
}

/// Whether tokens can be appended one by one: a single stream of causal
/// attention or of states that go forward, which starts from ids.
static bool canDecode(const Model &model) {
  if (model.streams.size() != 1)
    return false;
  bool found = false;
  for (const Layer &layer : model.streams.front().layers) {
    if (const auto *op = std::get_if<Attention>(&layer.op))
      if (!op->projections)
        return false;
    if (std::holds_alternative<Conv>(layer.op))
      return false; // it sees later places, too
    const auto *block = std::get_if<Block>(&layer.op);
    found |= std::holds_alternative<Mamba>(layer.op) ||
             (block && hasMixer(*block) && !block->attention);
    if (const auto *recurrent = std::get_if<Recurrent>(&layer.op)) {
      if (recurrent->bidirectional)
        return false;
      found = true;
    }
    const Attention *attention = selfAttention(layer);
    if (!attention)
      continue;
    found = true;
    if (attention->causal != Causal::BottomRight)
      return false;
  }
  const std::vector<Layer> &layers = model.streams.front().layers;
  return found && std::holds_alternative<Embedding>(layers.front().op);
}

double Counter::extentOf(const Dim &dim) const {
  if (dim.size >= 0)
    return static_cast<double>(dim.size);
  auto found = result.dims.find(dim.symbol);
  return found == result.dims.end() ? 1 : static_cast<double>(found->second);
}

const TensorSpec *Counter::findInput(const std::string &name) const {
  for (const TensorSpec &input : model.inputs)
    if (input.name == name)
      return &input;
  return nullptr;
}

Extent Counter::extentOf(const Stream &stream) const {
  Extent extent;
  const TensorSpec *input = findInput(stream.input);
  if (auto earlier = extents.find(stream.input);
      !input && earlier != extents.end())
    return earlier->second;
  if (input && input->shape.size() >= 2)
    extent = {extentOf(input->shape[0]), extentOf(input->shape[1])};
  return extent;
}

/// Sets the spatial sizes that the first convolution of a stream goes over.
void Counter::startPlaces(const Stream &stream) {
  // A stream of an earlier one's image goes over the places of that.
  if (auto earlier = imagePlaces.find(stream.input);
      earlier != imagePlaces.end()) {
    spatial[0] = earlier->second.first;
    spatial[1] = earlier->second.second;
    return;
  }
  spatial[0] = here.tokens;
  const TensorSpec *input = findInput(stream.input);
  const Conv *conv = stream.layers.empty()
                         ? nullptr
                         : std::get_if<Conv>(&stream.layers.front().op);
  if (!input || !conv)
    return;
  for (size_t i = 0; i < conv->kernel.size(); ++i)
    // [batch, samples] has no channels in front.
    spatial[i] = extentOf(
        input->shape[i +
                     (conv->channelsFirst && input->shape.size() > 2 ? 2 : 1)]);
}

void Counter::run() {
  bool decodes = canDecode(model);
  double kept = 0; // results of earlier streams, which later ones read
  for (const Stream &stream : model.streams) {
    here = extentOf(stream);
    startPlaces(stream);
    for (const Layer &layer : stream.layers) {
      current = LayerStatistics();
      current.stream = stream.name;
      current.name = layer.name;
      current.kind = kindOf(layer);
      current.repeat = layer.repeat;
      current.location = layer.location;
      countLayer(layer);
      if (std::holds_alternative<Block>(layer.op) ||
          std::holds_alternative<Attention>(layer.op))
        result.tokens =
            std::max(result.tokens, static_cast<int64_t>(here.tokens));
      extents.emplace(layer.name, here);
      if (std::holds_alternative<ClassTokens>(layer.op) ||
          std::holds_alternative<Slice>(layer.op) ||
          std::holds_alternative<Concat>(layer.op))
        spatial[0] = here.tokens;
      if (decodes)
        countDecode(layer);
      result.parameters += current.parameters;
      result.activeParameters += current.activeParameters;
      result.weightBytes += current.weightBytes;
      result.flops += current.flops;
      result.cacheBytes += current.cacheBytes;
      result.activationBytes =
          std::max(result.activationBytes, kept + current.activationBytes);
      result.scoreBytes = std::max(result.scoreBytes, current.scoreBytes);
      result.layers.push_back(std::move(current));
    }
    extents[stream.name] = here;
    if (here.tokens == spatial[0] * spatial[1])
      imagePlaces[stream.name] = {spatial[0], spatial[1]};
    if (!stream.layers.empty())
      kept += tokens() * activationSize *
              static_cast<double>(stream.layers.back().width);
  }
  if (decodes)
    result.decode = decode;
}

std::vector<std::string>
unknownDims(const Model &model, const std::map<std::string, int64_t> &dims) {
  std::set<std::string> symbols;
  for (const TensorSpec &input : model.inputs)
    for (const Dim &dim : input.shape)
      symbols.insert(dim.symbol);
  std::vector<std::string> unknown;
  for (const auto &entry : dims)
    if (!symbols.count(entry.first))
      unknown.push_back(entry.first);
  return unknown;
}

ModelStatistics analyze(const Model &model,
                        const std::map<std::string, int64_t> &dims) {
  constexpr int64_t usualLength = 1024;
  ModelStatistics result;
  result.name = model.name;
  result.dtype = model.dtype;
  for (const TensorSpec &input : model.inputs)
    for (size_t i = 0; i < input.shape.size(); ++i) {
      const Dim &dim = input.shape[i];
      if (dim.size >= 0)
        continue;
      // One sequence, one image [images, channels, height, width].
      bool counts =
          dim.symbol == "batch" || (i == 0 && input.shape.size() == 4);
      auto given = dims.find(dim.symbol);
      result.dims[dim.symbol] = given != dims.end()  ? given->second
                                : counts             ? 1
                                : model.context != 0 ? model.context
                                                     : usualLength;
    }
  Counter(model, result).run();
  return result;
}

} // namespace attune
