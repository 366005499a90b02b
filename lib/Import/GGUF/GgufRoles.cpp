//===- GgufRoles.cpp - The tensors that weights come from -------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An importer names tensors as its class of Hugging Face does, some of which
// hold several weights or are transposed. Files have one layout for all
// architectures: matrices [out, in], queries, keys and values apart or one
// behind the other. So each weight has its tensor by the role that it plays.
//
//===----------------------------------------------------------------------===//

#include "GgufConfig.h"
#include "GgufSight.h"

#include "attune/Support/TensorNames.h"

#include <algorithm>

namespace attune::gguf {

using namespace spec;

namespace {
struct Role {
  const char *role;
  /// The first of these that the file has.
  const char *tensors[5];
};

/// Of one layer.
class Namer {
public:
  Namer(const File &file, Layer &layer) : file(file), layer(layer) {}
  void nameBlock();
  void name(const std::string &role, std::vector<WeightSource> sources) {
    layer.weights[role] = std::move(sources);
  }

private:
  /// Whether the file has a tensor of the first repeat.
  bool has(const std::string &tensor) const {
    return file.findTensor(
        substituteLayer("blk." + place + "." + tensor, layer.first));
  }
  std::string full(const std::string &tensor) const {
    return "blk." + place + "." + tensor;
  }
  std::vector<WeightSource> find(const std::string &role) const;
  std::vector<WeightSource> findState(const std::string &role) const;
  std::vector<WeightSource> findDelta(const std::string &role) const;

  const File &file;
  Layer &layer;
  std::string place; ///< of the number: "{i}", or the number
  std::map<std::string, int64_t> rows;
};
} // namespace

/// Without ".weight" or ".bias", which both have.
static constexpr Role kRoles[] = {
    {"norm1",
     {"attn_norm_2", "attn_norm", "attn_output_norm", "post_attention_norm"}},
    {"norm2",
     {"ffn_norm", "layer_output_norm", "post_ffw_norm", "post_attention_norm",
      "attn_norm"}},
    {"norm1_post", {"post_attention_norm"}},
    {"norm2_post", {"post_ffw_norm"}},
    {"attention.q", {"attn_q"}},
    {"attention.k", {"attn_k"}},
    {"attention.v", {"attn_v"}},
    {"attention.o", {"attn_output"}},
    {"attention.q_norm", {"attn_q_norm", "attn_q_a_norm"}},
    {"attention.k_norm", {"attn_k_norm"}},
    {"attention.q_a", {"attn_q_a"}},
    {"attention.q_b", {"attn_q_b"}},
    {"attention.kv_a", {"attn_kv_a_mqa"}},
    {"attention.kv_norm", {"attn_kv_a_norm"}},
    {"attention.kv_b", {"attn_kv_b"}},
    {"ffn.gate", {"ffn_gate"}},
    {"ffn.up", {"ffn_up"}},
    {"ffn.down", {"ffn_down"}},
    {"moe.router", {"ffn_gate_inp"}},
    {"moe.experts.{e}.gate", {"ffn_gate_exps.{e}"}},
    {"moe.experts.{e}.up", {"ffn_up_exps.{e}"}},
    {"moe.experts.{e}.down", {"ffn_down_exps.{e}"}},
    {"moe.shared.gate", {"ffn_gate_shexp"}},
    {"moe.shared.up", {"ffn_up_shexp"}},
    {"moe.shared.down", {"ffn_down_shexp"}},
    {"moe.shared_gate", {"ffn_gate_inp_shexp"}},
    {"short_conv.in_proj", {"shortconv.in_proj"}},
    {"short_conv.conv", {"shortconv.conv"}},
    {"short_conv.out_proj", {"shortconv.out_proj"}},
};
/// Whole names.
static constexpr Role kOthers[] = {
    {"attention.sinks", {"attn_sinks.weight"}},
    {"moe.router.bias", {"exp_probs_b.bias", "exp_probs_b"}},
    {"moe.router.logit_bias", {"ffn_gate_inp.bias"}},
};
/// By what the importer's tensor ends with: one tensor has several weights.
static constexpr Role kStates[] = {
    {"in_proj.weight", {"ssm_in.weight"}},
    {"in_proj.bias", {"ssm_in.bias"}},
    {"conv1d.weight", {"ssm_conv1d.weight"}},
    {"conv1d.bias", {"ssm_conv1d.bias"}},
    {"x_proj.weight", {"ssm_x.weight"}},
    {"dt_proj.weight", {"ssm_dt.weight"}},
    {"dt_proj.bias", {"ssm_dt.bias"}},
    {"dt_bias", {"ssm_dt.bias"}},
    {"A_log", {"ssm_a"}},
    {"D", {"ssm_d"}},
    {"norm.weight", {"ssm_norm.weight"}},
    {"out_proj.weight", {"ssm_out.weight"}},
    {"out_proj.bias", {"ssm_out.bias"}},
};

std::vector<WeightSource> Namer::findState(const std::string &role) const {
  std::vector<WeightSource> sources = resolveWeight(layer, role);
  for (WeightSource &source : sources)
    for (const Role &row : kStates) {
      std::string base;
      if (cutEnd(source.tensor, "." + std::string(row.role), base)) {
        source.tensor = full(row.tensors[0]);
        break;
      }
    }
  return sources;
}

/// Of a delta rule.
static constexpr Role kDeltas[] = {
    {"in_proj.weight", {"attn_qkv.weight"}},
    {"conv1d.weight", {"ssm_conv1d.weight"}},
    {"gate.weight", {"attn_gate.weight"}},
    {"step.weight", {"ssm_alpha.weight"}},
    {"step.bias", {"ssm_dt.bias"}},
    {"beta.weight", {"ssm_beta.weight"}},
    {"A_log", {"ssm_a"}},
    {"norm.weight", {"ssm_norm.weight"}},
    {"out_proj.weight", {"ssm_out.weight"}},
};

std::vector<WeightSource> Namer::findDelta(const std::string &role) const {
  const DeltaRule &rule = *std::get<Block>(layer.op).deltaRule;
  std::string part = role.substr(role.find('.') + 1);
  // Betas and steps of Qwen3-Next are one tensor, cut as its class has it.
  if ((part == "beta.weight" || part == "step.weight") &&
      has("ssm_ba.weight")) {
    std::vector<WeightSource> sources = resolveWeight(layer, role);
    for (WeightSource &source : sources)
      source.tensor = full("ssm_ba.weight");
    return sources;
  }
  for (const Role &row : kDeltas) {
    if (part != row.role)
      continue;
    WeightSource whole{full(row.tensors[0])};
    const CheckpointTensor *tensor =
        file.findTensor(substituteLayer(whole.tensor, layer.first));
    bool reads = part == "in_proj.weight" || part == "conv1d.weight";
    int64_t wanted = rule.keyHeads * rule.keyDim,
            values = rule.heads * rule.valueDim;
    if (!reads || !tensor || tensor->shape.empty())
      return {whole};
    int64_t stored = (tensor->shape[0] - values) / 2;
    if (stored < 1 || stored == wanted || wanted % stored)
      return {whole};
    // Queries and keys of the file, again and again.
    std::vector<WeightSource> sources;
    for (int64_t begin : {int64_t(0), stored})
      for (int64_t i = 0; i < wanted / stored; ++i) {
        sources.push_back(whole);
        sources.back().begin = begin;
        sources.back().end = begin + stored;
      }
    sources.push_back(whole);
    sources.back().begin = 2 * stored;
    sources.back().end = 2 * stored + values;
    return sources;
  }
  return resolveWeight(layer, role);
}

std::vector<WeightSource> Namer::find(const std::string &role) const {
  for (const Role &row : kOthers)
    if (role == row.role)
      for (const char *tensor : row.tensors)
        if (tensor && (has(tensor) || tensor == row.tensors[0]))
          return {{full(tensor)}};
  // Falcon-H1's has no ending.
  if (role == "norm2.weight" && has("ffn_norm"))
    return {{full("ffn_norm")}};
  std::string base, end;
  for (const char *ending : {".weight", ".bias"})
    if (cutEnd(role, ending, base)) {
      end = ending;
      break;
    }
  // Queries and gates of each head side by side.
  if (base == "attention.gate" ||
      (base == "attention.q" && rows.count("attention.gate.weight"))) {
    std::vector<WeightSource> sources = resolveWeight(layer, role);
    for (WeightSource &source : sources)
      source.tensor = full("attn_q" + end);
    return sources;
  }
  // A stack of all experts.
  auto stack = [&](std::string tensor) {
    size_t at = tensor.find(".{e}");
    return at == std::string::npos ? tensor : tensor.erase(at, 4);
  };
  for (const Role &row : kRoles) {
    if (end.empty() || base != row.role)
      continue;
    for (const char *tensor : row.tensors)
      if (tensor && has(stack(tensor) + end))
        return {{full(tensor + end)}};
    auto rowsOf = [&](const char *other) {
      auto found = rows.find(other + end);
      return found == rows.end() ? 0 : found->second;
    };
    auto part = [&](const char *tensor, std::vector<const char *> order) {
      WeightSource source{full(tensor + end)};
      for (const char *other : order) {
        source.end = source.begin + rowsOf(other);
        if (base == other)
          break;
        source.begin = source.end;
      }
      return std::vector<WeightSource>{source};
    };
    bool fused =
        base == "attention.q" || base == "attention.k" || base == "attention.v";
    if (fused && has("attn_qkv" + end))
      return part("attn_qkv", {"attention.q", "attention.k", "attention.v"});
    if (base == "ffn.gate" && has("ffn_up" + end))
      return part("ffn_up", {"ffn.gate", "ffn.up"});
    std::string gate = "moe.experts.{e}.gate", up = "moe.experts.{e}.up";
    if ((base == gate || base == up) && has("ffn_gate_up_exps" + end))
      return part("ffn_gate_up_exps.{e}", {gate.c_str(), up.c_str()});
    return {{full(row.tensors[0] + end)}}; // what is missing
  }
  return resolveWeight(layer, role);
}

void Namer::nameBlock() {
  // The importer's place of the layer's number.
  size_t begin = layer.name.find("{i"), close = layer.name.find('}', begin);
  place = begin == std::string::npos || close == std::string::npos
              ? std::to_string(layer.first)
              : layer.name.substr(begin, close + 1 - begin);
  std::vector<WeightRole> roles = weightRoles(layer);
  for (const WeightRole &role : roles)
    rows[role.role] = role.rows;
  for (const WeightRole &role : roles) {
    auto starts = [&](const char *with) {
      return role.role.rfind(with, 0) == 0;
    };
    std::vector<WeightSource> sources = starts("mamba.") ? findState(role.role)
                                        : starts("delta_rule.")
                                            ? findDelta(role.role)
                                            : find(role.role);
    // Gates and what they gate are one tensor, of which gates are the first.
    bool half = role.role.rfind("ffn.up.", 0) == 0 &&
                rows.count("ffn.gate.weight") && !has("ffn_gate.weight");
    if (half) {
      sources[0].begin = role.rows;
      sources[0].end = 2 * role.rows;
    }
    name(role.role, std::move(sources));
  }
}

void nameByRole(const File &file, Model &model) {
  // Files of encoders leave out the layer behind the first token.
  for (size_t i = model.streams.size(); i-- > 1;)
    if (model.streams[i].name == "pooler") {
      model.streams.erase(model.streams.begin() + static_cast<ptrdiff_t>(i));
      model.outputs.erase(std::remove_if(model.outputs.begin(),
                                         model.outputs.end(),
                                         [](const auto &out) {
                                           return out.name == "pooler_output";
                                         }),
                          model.outputs.end());
    }
  for (Stream &stream : model.streams) {
    if (sees(model) && &stream != &model.streams.back())
      continue;          // tensors of pictures have the names of their class
    bool behind = false; // the blocks
    for (Layer &layer : stream.layers) {
      Namer namer(file, layer);
      auto whole = [&](const char *tensor) {
        for (const WeightRole &role : weightRoles(layer))
          namer.name(role.role, {{tensor + ("." + role.role)}});
      };
      if (std::holds_alternative<Block>(layer.op)) {
        namer.nameBlock();
        behind = true;
      } else if (auto *table = std::get_if<Embedding>(&layer.op)) {
        whole(table->input == "token_type_ids" ? "token_types" : "token_embd");
      } else if (std::holds_alternative<Positions>(layer.op)) {
        whole("position_embd");
      } else if (std::holds_alternative<Norm>(layer.op)) {
        // The first files of LFM2 call it otherwise.
        whole(behind && file.findTensor("output_norm.weight")
                  ? "output_norm"
                  : "token_embd_norm");
      } else if (std::holds_alternative<Linear>(layer.op)) {
        whole("output");
      }
    }
  }
}

} // namespace attune::gguf
