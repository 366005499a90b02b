//===- Weights.cpp - Which weights a layer has, and from where --*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Spec/Repeats.h"

#include <numeric>

namespace attune::spec {

namespace {

/// Collects the roles of one layer; `prefix` goes before each.
class RoleList {
public:
  std::vector<WeightRole> roles;

  void projection(const std::string &name, int64_t rows, int64_t columns,
                  bool bias) {
    roles.push_back({name + "weight", rows, columns});
    if (bias)
      roles.push_back({name + "bias", rows, 0});
  }

  void norm(const std::string &prefix, const Norm &norm, int64_t width) {
    if (norm.scale)
      roles.push_back({prefix + "weight", width, 0});
    if (norm.bias)
      roles.push_back({prefix + "bias", width, 0});
  }

  void attention(const std::string &prefix, const Attention &op, int64_t width,
                 int64_t out) {
    if (!op.projections)
      return;
    if (op.latent)
      return latent(prefix, op, *op.latent, width);
    projection(prefix + "q.", op.heads * op.headDim, width, op.qkvBias);
    bool own = op.keysFrom.empty();
    if (op.adapterRank)
      for (auto [name, rows] : {std::pair("q", op.heads * op.headDim),
                                std::pair("k", op.kvHeads * op.headDim),
                                std::pair("v", op.kvHeads * op.valueDim)}) {
        projection(prefix + name + "_down.", op.adapterRank, width, false);
        projection(prefix + name + "_up.", rows, op.adapterRank, false);
      }
    if (own) {
      projection(prefix + "k.", op.kvHeads * op.headDim, op.sourceWidth,
                 op.qkvBias && op.keyBias);
      projection(prefix + "v.", op.kvHeads * op.valueDim, op.sourceWidth,
                 op.qkvBias);
    }
    if (op.relative) {
      int64_t rows = op.heads * op.headDim;
      roles.push_back({prefix + "r.weight", rows, width});
      roles.push_back({prefix + "r.content_bias", rows, 0});
      roles.push_back({prefix + "r.position_bias", rows, 0});
      if (!op.relativeSegments.empty()) {
        roles.push_back({prefix + "r.segment_bias", rows, 0});
        roles.push_back({prefix + "r.segments", 2, rows});
      }
    }
    if (op.relativeBias)
      roles.push_back({prefix + "relative_bias.weight",
                       op.relativeBias->buckets, op.heads});
    if (const auto &form = op.disentangled) {
      roles.push_back({prefix + "positions.weight", 2 * form->span, width});
      if (form->norm)
        norm(prefix + "positions_norm.", *form->norm, width);
      if (!form->shared && form->positionToContent)
        projection(prefix + "position_q.", op.heads * op.headDim, width,
                   op.qkvBias);
      if (!form->shared && form->contentToPosition)
        projection(prefix + "position_k.", op.heads * op.headDim, width,
                   op.qkvBias);
    }
    if (op.learnedSinks)
      roles.push_back({prefix + "sinks", op.heads, 0});
    if (const auto &low = op.sequenceRank) {
      int64_t heads = low->shared == SequenceSharing::None ? op.kvHeads : 1;
      projection(prefix + "sequence_k.", heads * low->rank, low->positions,
                 low->bias);
      if (low->shared != SequenceSharing::KeysValues)
        projection(prefix + "sequence_v.", heads * low->rank, low->positions,
                   low->bias);
    }
    if (op.qkNorm) {
      bool shared = op.qkNormScope == NormScope::Head;
      int64_t queries = shared ? 1 : op.heads, keys = shared ? 1 : op.kvHeads;
      norm(prefix + "q_norm.", *op.qkNorm, queries * op.headDim);
      if (own)
        norm(prefix + "k_norm.", *op.qkNorm, keys * op.headDim);
    }
    if (op.valueNorm && own)
      norm(prefix + "v_norm.", *op.valueNorm, op.valueDim);
    if (op.linear && op.linear->fading)
      norm(prefix + "out_norm.", op.linear->fading->norm,
           op.heads * op.valueDim);
    if (op.gate)
      projection(prefix + "gate.", op.heads * op.valueDim, width, op.qkvBias);
    if (out)
      projection(prefix + "o.", out, op.heads * op.valueDim, op.outBias);
  }

  /// Keys and values alone.
  void keysOf(const std::string &prefix, const Attention &op, int64_t width) {
    projection(prefix + "k.", op.kvHeads * op.headDim, width,
               op.qkvBias && op.keyBias);
    projection(prefix + "v.", op.kvHeads * op.valueDim, width, op.qkvBias);
    if (op.qkNorm)
      norm(prefix + "k_norm.", *op.qkNorm,
           (op.qkNormScope == NormScope::Head ? 1 : op.kvHeads) * op.headDim);
  }

  /// What the tokens of the other kind have for themselves.
  void joint(const Joint &op, const Block &block, int64_t width) {
    std::string prefix = "joint.";
    if (op.second)
      attention("attention2.", *block.attention, width, width);
    norm(prefix + "norm1.", block.norm, width);
    if (op.keysOnly) {
      keysOf(prefix + "attention.", *block.attention, width);
    } else {
      attention(prefix + "attention.", *block.attention, width, width);
      norm(prefix + "norm2.", block.norm, width);
      ffn(prefix + "ffn.", *block.ffn, width);
    }
    projection(prefix + "modulation.", (op.keysOnly ? 2 : 6) * width,
               block.modulation->sourceWidth, block.modulation->bias);
  }

  void memory(const std::string &prefix, const MemoryBlock &op, const Norm &own,
              int64_t width) {
    norm(prefix + "norm.", own, 2 * width);
    norm(prefix + "ffn_norm.", own, width);
    ffn(prefix + "ffn.", op.ffn, width);
    projection(prefix + "out.", width, width, false);
  }

  void latent(const std::string &prefix, const Attention &op,
              const Latent &latent, int64_t width) {
    int64_t queries = op.heads * op.headDim;
    if (latent.queryRank) {
      projection(prefix + "q_a.", latent.queryRank, width, op.qkvBias);
      norm(prefix + "q_norm.", latent.norm, latent.queryRank);
      projection(prefix + "q_b.", queries, latent.queryRank, false);
    } else {
      projection(prefix + "q.", queries, width, false);
    }
    projection(prefix + "kv_a.", latent.rank + op.headDim - latent.nopeDim,
               width, op.qkvBias);
    norm(prefix + "kv_norm.", latent.norm, latent.rank);
    projection(prefix + "kv_b.", op.heads * (latent.nopeDim + op.valueDim),
               latent.rank, false);
    if (const auto &index = latent.index) {
      projection(prefix + "index.q.", index->heads * index->headDim,
                 latent.queryRank, false);
      projection(prefix + "index.k.", index->headDim, width, false);
      norm(prefix + "index.k_norm.", index->norm, index->headDim);
      projection(prefix + "index.shares.", index->heads, width, false);
    }
    projection(prefix + "o.", width, op.heads * op.valueDim, op.outBias);
  }

  void moe(const std::string &prefix, const MoE &op, int64_t width) {
    roles.push_back({prefix + "router.weight", op.experts, width});
    if (op.router.selectBias)
      roles.push_back({prefix + "router.bias", op.experts, 0});
    if (op.router.logitBias)
      roles.push_back({prefix + "router.logit_bias", op.experts, 0});
    auto expert = [&](const std::string &name, int64_t inner, int64_t parts,
                      bool bias) {
      auto add = [&](const char *projection, int64_t rows, int64_t columns) {
        roles.push_back({name + projection + ".weight", rows, columns, parts});
        if (bias)
          roles.push_back({name + projection + ".bias", rows, 0, parts});
      };
      if (op.gated)
        add("gate", inner, width);
      add("up", inner, width);
      add("down", width, inner);
    };
    expert(prefix + "experts.{e}.", op.width, op.experts, op.bias);
    if (!op.shared)
      return;
    expert(prefix + "shared.", op.shared->width, 1, /*bias=*/false);
    if (op.shared->gate)
      roles.push_back({prefix + "shared_gate.weight", 1, width});
  }

  void cell(const std::string &prefix, const std::string &suffix, CellKind kind,
            int64_t width, int64_t inputs, bool bias) {
    int64_t rows = numGates(kind) * width;
    roles.push_back({prefix + "weight_ih" + suffix, rows, inputs});
    roles.push_back({prefix + "weight_hh" + suffix, rows, width});
    if (!bias)
      return;
    roles.push_back({prefix + "bias_ih" + suffix, rows, 0});
    roles.push_back({prefix + "bias_hh" + suffix, rows, 0});
  }

  void recurrent(const Recurrent &op, int64_t width) {
    for (int64_t layer = 0; layer < op.layers; ++layer) {
      std::string suffix = "_l" + std::to_string(layer);
      cell("", suffix, op.cell, op.width, width, op.bias);
      if (op.bidirectional)
        cell("", suffix + "_reverse", op.cell, op.width, width, op.bias);
      width = op.bidirectional ? 2 * op.width : op.width;
    }
  }

  void attend(const std::string &prefix, const ScanAttend &op) {
    if (op.score == ScoreKind::General) {
      projection(prefix + "key.", op.queryWidth, op.sourceWidth, op.keyBias);
    } else if (op.score == ScoreKind::Additive) {
      projection(prefix + "query.", op.width, op.queryWidth, op.queryBias);
      projection(prefix + "key.", op.width, op.sourceWidth, op.keyBias);
    } else if (op.score == ScoreKind::Concat) {
      projection(prefix, op.width, op.queryWidth + op.sourceWidth, op.keyBias);
    }
    if (op.score == ScoreKind::Additive || op.score == ScoreKind::Concat)
      projection(prefix + "score.", 1, op.width, op.scoreBias);
  }

  void steps(const std::vector<ScanStep> &steps) {
    for (const ScanStep &step : steps) {
      std::string prefix = step.name + ".";
      if (const auto *op = std::get_if<ScanCell>(&step.op))
        cell(prefix, "", op->cell, op->width, step.inputWidth, op->bias);
      else if (const auto *op = std::get_if<ScanAttend>(&step.op))
        attend(prefix, *op);
      else if (const auto *op = std::get_if<ScanLinear>(&step.op))
        projection(prefix, op->out, step.inputWidth, op->bias);
    }
  }

  void mamba(const std::string &prefix, const Mamba &op, int64_t width) {
    int64_t convolved = numConvolved(op);
    projection(prefix + "in_proj.", op.inner + convolved, width, op.bias);
    projection(prefix + "conv1d.", convolved, op.kernel, op.convBias);
    if (op.heads) {
      projection(prefix + "dt_proj.", op.heads, width, /*bias=*/true);
      roles.push_back({prefix + "A_log", op.heads, 0});
      roles.push_back({prefix + "D", op.heads, 0});
      if (op.outNorm)
        norm(prefix + "norm.", *op.outNorm, op.inner);
      projection(prefix + "out_proj.", width, op.inner, op.bias);
      return;
    }
    projection(prefix + "x_proj.", op.rank + 2 * op.states, op.inner,
               /*bias=*/false);
    if (op.norm) {
      norm(prefix + "dt_norm.", *op.norm, op.rank);
      norm(prefix + "b_norm.", *op.norm, op.states);
      norm(prefix + "c_norm.", *op.norm, op.states);
    }
    projection(prefix + "dt_proj.", op.inner, op.rank, /*bias=*/true);
    roles.push_back({prefix + "A_log", op.inner, op.states});
    roles.push_back({prefix + "D", op.inner, 0});
    projection(prefix + "out_proj.", width, op.inner, op.bias);
  }

  void deltaRule(const std::string &prefix, const DeltaRule &op,
                 int64_t width) {
    int64_t values = op.heads * op.valueDim;
    projection(prefix + "in_proj.", numConvolved(op), width, false);
    projection(prefix + "conv1d.", numConvolved(op), op.kernel, false);
    if (op.gateRank)
      projection(prefix + "gate_down.", op.gateRank, width, false);
    projection(prefix + "gate.", values, op.gateRank ? op.gateRank : width,
               false);
    if (op.stepRank)
      projection(prefix + "step_down.", op.stepRank, width, false);
    projection(prefix + "step.", numSteps(op),
               op.stepRank ? op.stepRank : width,
               /*bias=*/true);
    projection(prefix + "beta.", op.heads, width, false);
    roles.push_back({prefix + "A_log", op.heads, 0});
    norm(prefix + "norm.", op.norm, op.valueDim);
    projection(prefix + "out_proj.", width, values, false);
  }

  void timeMix(const std::string &prefix, const TimeMix &op, int64_t width) {
    int64_t keys = op.heads * op.keyDim, values = op.heads * op.valueDim;
    for (const char *part : {"r", "w", "k", "v", "a", "g"})
      roles.push_back({prefix + "x_" + part, width, 0});
    projection(prefix + "r.", keys, width, false);
    projection(prefix + "k.", keys, width, false);
    projection(prefix + "v.", values, width, false);
    auto through = [&](const char *down, const char *up, int64_t rank,
                       int64_t rows, bool bias) {
      projection(prefix + down, rank, width, false);
      projection(prefix + up, rows, rank, bias);
    };
    through("w_down.", "w.", op.decayRank, keys, true);
    through("a_down.", "a.", op.rateRank, keys, true);
    if (op.valueRank)
      through("v_down.", "v_mix.", op.valueRank, values, true);
    through("g_down.", "g.", op.gateRank, values, false);
    for (const char *role : {"k_k", "k_a", "r_k"})
      roles.push_back({prefix + role, keys, 0});
    norm(prefix + "norm.", op.norm, values);
    projection(prefix + "o.", width, values, false);
  }

  /// `out`: with the matrix behind the activation.
  void ffn(const std::string &prefix, const FFN &op, int64_t width,
           bool out = true) {
    if (op.shift)
      roles.push_back({prefix + "x_k", width, 0});
    if (op.gated)
      projection(prefix + "gate.", op.width, width, op.bias);
    projection(prefix + "up.", op.width, width, op.bias);
    for (const char *role : {"alpha_p", "alpha_n"})
      if (op.xielu)
        roles.push_back({prefix + role, 1, 1});
    if (op.adapterRank) {
      projection(prefix + "adapter_down.", op.adapterRank, width, false);
      projection(prefix + "adapter_gate.", op.width, op.adapterRank, false);
      projection(prefix + "adapter_up.", op.width, op.adapterRank, false);
    }
    if (out)
      projection(prefix + "down.", width, op.width, op.bias);
  }

  void blockNorm(const std::string &name, const Block &block, int64_t width) {
    norm(name + ".", block.norm, width);
    if (block.placement == Placement::Peri)
      norm(name + "_post.", block.norm, width);
  }

  void alternating(const Alternating &op, int64_t width, const Norm &own) {
    std::string prefix = "alternating.";
    norm(prefix + "norm.", own, width);
    projection(prefix + "router.", op.copies, width, false);
    projection(prefix + "predict.", op.copies * op.copies, op.copies, false);
    projection(prefix + "correct.", op.copies, op.copies, false);
    if (op.scaled)
      roles.push_back({prefix + "scale", width, 0});
    if (op.inputs == 0)
      return;
    projection(prefix + "gate.", op.inputs, width, false);
    projection(prefix + "up.", width, op.inputs, false);
    norm(prefix + "up_norm.", own, width);
  }

  /// A matrix for each copy but the first.
  void copies(int64_t count, int64_t width) {
    for (int64_t i = 1; i < count; ++i)
      projection(std::to_string(i) + ".", width, width, false);
  }

  void block(const Block &block, int64_t width) {
    width = innerWidth(block, width);
    if (block.alternating)
      alternating(*block.alternating, width, block.norm);
    if (block.laurelRank) {
      projection("laurel_a.", block.laurelRank, width, false);
      projection("laurel_b.", width, block.laurelRank, false);
      norm("laurel_norm.", block.norm, width);
    }
    if (hasMixer(block))
      blockNorm("norm1", block, width);
    if (block.memory)
      memory("memory.", *block.memory, block.norm, width);
    if (block.attention)
      attention("attention.", *block.attention, attentionWidth(block, width),
                block.sharedOut ? 0 : width);
    if (block.mamba)
      mamba("mamba.", *block.mamba, width);
    if (block.shortConv) {
      bool bias = block.shortConv->bias;
      projection("short_conv.in_proj.", 3 * width, width, bias);
      projection("short_conv.conv.", width, block.shortConv->kernel, bias);
      projection("short_conv.out_proj.", width, width, bias);
    }
    if (block.deltaRule)
      deltaRule("delta_rule.", *block.deltaRule, width);
    if (block.timeMix)
      timeMix("time_mix.", *block.timeMix, width);
    if (block.cross) {
      blockNorm("norm_cross", block, width);
      attention("cross.", *block.cross, width, width);
    }
    if (block.ffn) {
      blockNorm("norm2", block, width);
      ffn("ffn.", *block.ffn, width, !block.sharedOut);
    }
    if (block.sharedOut && block.attention && block.ffn)
      projection("out.", width,
                 block.attention->heads * block.attention->valueDim +
                     block.ffn->width,
                 block.ffn->bias);
    if (block.moe) {
      blockNorm("norm2", block, width);
      moe("moe.", *block.moe, width);
    }
    if (block.layerScale && hasMixer(block))
      roles.push_back({"layer_scale1", width, 1});
    if (block.layerScale && (block.ffn || block.moe))
      roles.push_back({"layer_scale2", width, 1});
    if (const auto &by = block.modulation)
      projection("modulation.", numModulated(block) * 3 * width,
                 by->sourceWidth, by->bias);
    if (block.joint && block.modulation && block.attention && block.ffn)
      joint(*block.joint, block, width);
  }
};

} // namespace

std::string nameOf(const Layer &layer) {
  std::string name = layer.name;
  for (size_t at = name.find("{i}"); at != std::string::npos;
       at = name.find("{i}"))
    name.replace(at, 3, std::to_string(layer.first));
  return name;
}

const Layer *findLender(const Stream &stream, const Attention &attention) {
  for (const Layer &layer : stream.layers)
    if (!attention.keysFrom.empty() && nameOf(layer) == attention.keysFrom)
      return &layer;
  return nullptr;
}

bool lendsKeys(const Stream &stream, const Layer &layer) {
  std::string name = nameOf(layer);
  for (const Layer &other : stream.layers)
    if (const auto *block = std::get_if<Block>(&other.op))
      if (block->attention && block->attention->keysFrom == name)
        return true;
  return false;
}

int64_t innerWidth(const Block &block, int64_t width) {
  return block.alternating ? width / block.alternating->copies : width;
}

int64_t attentionWidth(const Block &block, int64_t width) {
  return block.memory ? 2 * width : width;
}

bool hasMixer(const Block &block) {
  return block.attention || block.mamba || block.shortConv || block.deltaRule ||
         block.timeMix;
}

int64_t numModulated(const Block &block) {
  if (block.placement == Placement::Parallel)
    return 1;
  int64_t second = block.joint && block.joint->second ? 1 : 0;
  return second + int64_t(hasMixer(block)) + int64_t(block.cross.has_value()) +
         int64_t(block.ffn.has_value() || block.moe.has_value());
}

std::vector<WeightRole> weightRoles(const Layer &layer) {
  RoleList list;
  int64_t width = layer.inputWidth;
  if (const auto *op = std::get_if<Embedding>(&layer.op)) {
    list.roles.push_back({"weight", op->vocab, op->width});
  } else if (const auto *op = std::get_if<Positions>(&layer.op)) {
    int64_t channels = op->concat ? op->concat : width;
    if (op->kind == PositionKind::Learned && op->dims == 2) {
      list.roles.push_back({"rows.weight", op->grid[0], channels / 2});
      list.roles.push_back({"columns.weight", op->grid[1], channels / 2});
    } else if (op->kind == PositionKind::Learned) {
      list.roles.push_back({"weight", op->length, channels});
    }
  } else if (const auto *op = std::get_if<Block>(&layer.op)) {
    list.block(*op, width);
  } else if (const auto *op = std::get_if<Attention>(&layer.op)) {
    list.attention("", *op, width, width);
  } else if (const auto *op = std::get_if<FFN>(&layer.op)) {
    list.ffn("", *op, width);
  } else if (const auto *op = std::get_if<MoE>(&layer.op)) {
    list.moe("", *op, width);
  } else if (const auto *op = std::get_if<Norm>(&layer.op)) {
    list.norm("", *op, width);
  } else if (const auto *op = std::get_if<Linear>(&layer.op)) {
    if (op->tied.empty())
      list.roles.push_back({"weight", op->out, width});
    if (op->bias)
      list.roles.push_back({"bias", op->out, 0});
  } else if (const auto *op = std::get_if<ClassTokens>(&layer.op)) {
    list.roles.push_back({"weight", op->count, width});
  } else if (const auto *op = std::get_if<Conv>(&layer.op)) {
    int64_t columns = op->channels / op->groups;
    for (int64_t size : op->kernel)
      columns *= size;
    if (op->transposed) {
      list.roles.push_back({"weight", op->kernel[0] * op->out, op->channels});
      if (op->bias)
        list.roles.push_back({"bias", op->out, 0});
      if (op->norm)
        for (const char *role : {"norm.weight", "norm.bias"})
          list.roles.push_back({role, op->out, 0});
    } else {
      list.projection("", op->out, columns, op->bias);
    }
  } else if (std::holds_alternative<BatchNorm>(layer.op)) {
    for (const char *role : {"weight", "bias", "mean", "variance"})
      list.roles.push_back({role, width, 0});
  } else if (std::holds_alternative<InstanceNorm>(layer.op)) {
    for (const char *role : {"weight", "bias"})
      list.roles.push_back({role, width, 0});
  } else if (const auto *op = std::get_if<Modulate>(&layer.op)) {
    list.projection("", 2 * width, op->by.sourceWidth, op->by.bias);
  } else if (const auto *op = std::get_if<Similarity>(&layer.op)) {
    if (op->temperature)
      list.roles.push_back({"scale", 1, 0});
    if (op->bias)
      list.roles.push_back({"bias", 1, 0});
  } else if (const auto *op = std::get_if<Recurrent>(&layer.op)) {
    list.recurrent(*op, width);
  } else if (const auto *op = std::get_if<Scan>(&layer.op)) {
    list.steps(op->start);
    list.steps(op->steps);
  } else if (const auto *op = std::get_if<Mamba>(&layer.op)) {
    list.mamba("", *op, width);
  } else if (const auto *op = std::get_if<LayerInputs>(&layer.op)) {
    int64_t channels = op->blocks * op->width;
    list.roles.push_back({"weight", op->vocab, channels});
    list.projection("projection.", channels, width, false);
    list.norm("norm.", op->norm, op->width);
  } else if (const auto *op = std::get_if<Spread>(&layer.op)) {
    list.copies(op->copies, width);
  } else if (const auto *op = std::get_if<Unite>(&layer.op)) {
    list.copies(op->copies, width / op->copies);
  } else if (const auto *op = std::get_if<Extension>(&layer.op)) {
    list.roles = op->weights;
  }
  return list.roles;
}

const Layer *findResult(const std::vector<Stream> &streams,
                        const std::string &name) {
  for (const Stream &stream : streams)
    if (stream.name == name && !stream.layers.empty())
      return &stream.layers.back();
  for (const Stream &stream : streams)
    for (const Layer &layer : stream.layers)
      if (layer.name == name || (layer.repeat == 1 && nameOf(layer) == name))
        return &layer;
  return nullptr;
}

std::vector<int64_t> numbersOf(const Layer &layer) {
  if (!layer.numbers.empty())
    return layer.numbers;
  std::vector<int64_t> numbers(static_cast<size_t>(layer.repeat));
  std::iota(numbers.begin(), numbers.end(), layer.first);
  return numbers;
}

Layer takeRepeats(const Layer &layer, int64_t begin, int64_t end) {
  Layer part = layer;
  part.first = layer.first + begin;
  part.repeat = end - begin;
  if (layer.cycle.empty())
    return part;
  auto length = int64_t(layer.cycle.size());
  part.cycle.clear();
  for (int64_t i = 0; i < std::min(length, part.repeat); ++i)
    part.cycle.push_back(layer.cycle[size_t((begin + i) % length)]);
  part.op = part.cycle.front();
  if (part.cycle.size() == 1)
    part.cycle.clear();
  return part;
}

std::vector<WeightSource> resolveWeight(const Layer &layer,
                                        const std::string &role) {
  auto found = layer.weights.find(role);
  if (found != layer.weights.end())
    return found->second;
  WeightSource source;
  source.tensor = layer.name.empty() ? role : layer.name + "." + role;
  return {source};
}

} // namespace attune::spec
