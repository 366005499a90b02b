//===- GgufTensors.cpp - Names of tensors -----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GgufTensors.h"

#include "../RealNumbers.h"
#include "attune/Support/TensorNames.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

namespace attune::gguf {

namespace {
struct Name {
  const char *ours, *theirs;
};
} // namespace

/// Behind "blk.N." and behind "model.layers.N."; of an expert, {e}.
static constexpr Name kBlockNames[] = {
    {"attn_norm", "input_layernorm"},
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_qkv", "self_attn.qkv_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"},
    {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
};
static constexpr Name kGemmaNames[] = {
    {"ffn_norm", "pre_feedforward_layernorm"},
    {"post_attention_norm", "post_attention_layernorm"},
    {"post_ffw_norm", "post_feedforward_layernorm"},
};
static constexpr Name kGemma3nNames[] = {
    {"inp_gate", "per_layer_input_gate"},
    {"proj", "per_layer_projection"},
    {"post_norm", "post_per_layer_input_norm"},
    {"laurel_l", "laurel.linear_left"},
    {"laurel_r", "laurel.linear_right"},
    {"laurel_post_norm", "laurel.post_laurel_norm"},
    {"altup_correct_coef", "altup.correction_coefs"},
    {"altup_predict_coef", "altup.prediction_coefs"},
    {"altup_router", "altup.modality_router"},
    {"altup_router_norm", "altup.router_norm"},
};
static constexpr Name kPhiNames[] = {{"ffn_up", "mlp.gate_up_proj"}};
static constexpr Name kMixtralNames[] = {
    {"ffn_gate_inp", "block_sparse_moe.gate"},
    {"ffn_gate_exps", "block_sparse_moe.experts.{e}.w1"},
    {"ffn_up_exps", "block_sparse_moe.experts.{e}.w3"},
    {"ffn_down_exps", "block_sparse_moe.experts.{e}.w2"},
    // Files of the first months have a tensor for each expert.
    {"ffn_gate.{e}", "block_sparse_moe.experts.{e}.w1"},
    {"ffn_up.{e}", "block_sparse_moe.experts.{e}.w3"},
    {"ffn_down.{e}", "block_sparse_moe.experts.{e}.w2"},
};
static constexpr Name kQwenMoENames[] = {
    {"ffn_gate_inp", "mlp.gate"},
    {"ffn_gate_exps", "mlp.experts.{e}.gate_proj"},
    {"ffn_up_exps", "mlp.experts.{e}.up_proj"},
    {"ffn_down_exps", "mlp.experts.{e}.down_proj"},
};

template <size_t N>
static const char *lookUp(const Name (&names)[N], std::string_view ours) {
  for (const Name &name : names)
    if (ours == name.ours)
      return name.theirs;
  return nullptr;
}

static const char *blockName(std::string_view family, std::string_view ours) {
  const char *found = nullptr;
  if (family == "gemma3n")
    found = lookUp(kGemma3nNames, ours);
  if (!found && family.substr(0, 5) == "gemma" && family != "gemma")
    found = lookUp(kGemmaNames, ours);
  else if (family == "phi3")
    found = lookUp(kPhiNames, ours);
  else if (family == "llama")
    found = lookUp(kMixtralNames, ours);
  else if (family == "qwen3moe")
    found = lookUp(kQwenMoENames, ours);
  return found ? found : lookUp(kBlockNames, ours);
}

bool takeNumber(std::string_view &text, std::string &digits) {
  size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  digits = text.substr(0, end);
  text.remove_prefix(end);
  return end > 0 && end < 7;
}

/// "blk.7.ffn_down.2.weight" by the table's entry for "ffn_down.{e}"; `expert`
/// stays "{e}" where the tensor has those of all. Empty: no name of a block.
static std::string renameBlock(std::string_view family, std::string_view name) {
  std::string layer, expert = "{e}";
  if (name.substr(0, 4) != "blk.")
    return "";
  name.remove_prefix(4);
  if (!takeNumber(name, layer) || name.substr(0, 1) != ".")
    return "";
  name.remove_prefix(1);
  size_t dot = name.rfind('.');
  if (dot == std::string_view::npos)
    return "";
  std::string ours(name.substr(0, dot)), ending(name.substr(dot));
  if (size_t inner = ours.rfind('.'); inner != std::string::npos) {
    std::string_view rest = std::string_view(ours).substr(inner + 1);
    if (!takeNumber(rest, expert) || !rest.empty())
      return "";
    ours = ours.substr(0, inner) + ".{e}";
  }
  const char *theirs = blockName(family, ours);
  if (!theirs)
    return "";
  std::string result = "model.layers." + layer + "." + theirs + ending;
  if (size_t place = result.find("{e}"); place != std::string::npos)
    result.replace(place, 3, expert);
  return result;
}

/// Whether tensors of a family get the names that its class of Hugging Face
/// has. Those of others are found by their roles.
static bool isRenamed(std::string_view family) {
  for (const char *name :
       {"llama", "qwen2", "qwen3", "qwen3moe", "gemma", "gemma2", "gemma3",
        "gemma3n", "phi3", "t5", "t5encoder"})
    if (family == name)
      return true;
  return false;
}

/// With {e} before the end where a tensor has a matrix for each expert.
static std::string markStack(const std::string &name) {
  for (const char *stack : {"_exps.weight", "_exps.bias"})
    if (size_t at = name.rfind(stack); at != std::string::npos)
      return name.substr(0, name.rfind('.')) + ".{e}" +
             name.substr(name.rfind('.'));
  return name;
}

/// Of T5, whose sublayers have numbers in its class; {f} is that of the
/// feed-forward layer.
static constexpr Name kT5Names[] = {
    {"attn_norm", "0.layer_norm"},
    {"attn_q", "0.SelfAttention.q"},
    {"attn_k", "0.SelfAttention.k"},
    {"attn_v", "0.SelfAttention.v"},
    {"attn_o", "0.SelfAttention.o"},
    {"attn_rel_b", "0.SelfAttention.relative_attention_bias"},
    {"cross_attn_norm", "1.layer_norm"},
    {"cross_attn_q", "1.EncDecAttention.q"},
    {"cross_attn_k", "1.EncDecAttention.k"},
    {"cross_attn_v", "1.EncDecAttention.v"},
    {"cross_attn_o", "1.EncDecAttention.o"},
    {"ffn_norm", "{f}.layer_norm"},
    {"ffn_gate", "{f}.DenseReluDense.wi_0"},
    {"ffn_down", "{f}.DenseReluDense.wo"},
};

static std::string renameT5(const File &file, std::string_view name) {
  if (name == "token_embd.weight")
    return "shared.weight";
  if (name == "output.weight")
    return "lm_head.weight";
  bool decoder = name.substr(0, 4) == "dec.";
  std::string whole(name), layer;
  if (!decoder && name.substr(0, 4) != "enc.")
    return whole;
  std::string stack = decoder ? "decoder." : "encoder.";
  name.remove_prefix(4);
  if (name == "output_norm.weight")
    return stack + "final_layer_norm.weight";
  std::string base;
  if (name.substr(0, 4) != "blk.")
    return whole;
  name.remove_prefix(4);
  if (!takeNumber(name, layer) || name.substr(0, 1) != "." ||
      !cutEnd(std::string(name.substr(1)), ".weight", base))
    return whole;
  const char *theirs = lookUp(kT5Names, base);
  if (base == "ffn_up") // of a pair only where there is a gate
    theirs = file.findTensor("enc.blk.0.ffn_gate.weight")
                 ? "{f}.DenseReluDense.wi_1"
                 : "{f}.DenseReluDense.wi";
  if (!theirs)
    return whole;
  std::string sublayer = theirs;
  if (sublayer.substr(0, 3) == "{f}")
    sublayer.replace(0, 3, decoder ? "2" : "1");
  return stack + "block." + layer + ".layer." + sublayer + ".weight";
}

/// Beside the blocks of Gemma 3n; {e} is the number of a copy.
static constexpr Name kGemma3nWhole[] = {
    {"per_layer_token_embd.weight", "model.embed_tokens_per_layer.weight"},
    {"per_layer_model_proj.weight", "model.per_layer_model_projection.weight"},
    {"per_layer_proj_norm.weight", "model.per_layer_projection_norm.weight"},
    {"altup_proj.weight", "model.altup_projections.{e}.weight"},
    {"altup_unembd_proj.weight", "model.altup_unembed_projections.{e}.weight"},
};

static std::string rename(const File &file, std::string_view family,
                          const std::string &name) {
  if (!isRenamed(family))
    return markStack(name);
  if (family.substr(0, 2) == "t5")
    return renameT5(file, name);
  if (family == "gemma3n") {
    if (const char *theirs = lookUp(kGemma3nWhole, name))
      return theirs;
    std::string block;
    if (cutEnd(name, ".altup_correct_scale.weight", block) &&
        block.substr(0, 4) == "blk.")
      return "model.layers." + block.substr(4) + ".altup.correct_output_scale";
  }
  if (name == "token_embd.weight")
    return "model.embed_tokens.weight";
  if (name == "output_norm.weight")
    return "model.norm.weight";
  if (name == "output.weight")
    return "lm_head.weight";
  std::string block = renameBlock(family, name);
  return block.empty() ? name : block;
}

bool isFloat(const CheckpointTensor &tensor) {
  return tensor.encoding || isReal(tensor);
}

void readFloats(const CheckpointTensor &tensor, int64_t first, int64_t count,
                float *out) {
  if (tensor.encoding)
    return tensor.encoding->decode(tensor, first, count, out);
  for (int64_t i = 0; i < count; ++i)
    out[i] = numberAt(tensor, first + i);
}

namespace {
/// A state space's steps, of which classes keep logarithms and files -exp of
/// those.
class Logarithms final : public TensorEncoding {
public:
  explicit Logarithms(const CheckpointTensor &steps) : steps(steps) {}
  const char *name() const override { return "logarithms"; }
  bool isQuantized() const override {
    return steps.encoding && steps.encoding->isQuantized();
  }
  void decode(const CheckpointTensor &, int64_t first, int64_t count,
              float *out) const override {
    readFloats(steps, first, count, out);
    for (int64_t i = 0; i < count; ++i)
      out[i] = std::log(-out[i]);
  }

private:
  CheckpointTensor steps;
};
} // namespace

namespace {
/// Keys [heads, in, out] and values [heads, out, in] that are made of one short
/// row, as the one matrix that classes have: keys, then values of each head.
class JoinedHeads final : public TensorEncoding {
public:
  JoinedHeads(const CheckpointTensor &keys, const CheckpointTensor &values)
      : keys(keys), values(values) {
    static std::atomic<uint64_t> made = 0;
    number = ++made;
  }

  const char *name() const override {
    return keys.encoding ? keys.encoding->name() : "keys and values";
  }
  bool isQuantized() const override {
    return (keys.encoding && keys.encoding->isQuantized()) ||
           (values.encoding && values.encoding->isQuantized());
  }
  void decode(const CheckpointTensor &tensor, int64_t first, int64_t count,
              float *out) const override {
    int64_t width = keys.shape[1];
    int64_t rows = keys.shape[2] + values.shape[1];
    while (count > 0) {
      int64_t row = first / width, column = first % width;
      int64_t taken = std::min(count, width - column);
      const std::vector<float> &head = readHead(row / rows);
      std::copy_n(head.begin() + row % rows * width + column, taken, out);
      out += taken;
      first += taken;
      count -= taken;
    }
  }

private:
  /// All rows of a head. Who packs a matrix reads it from row to row, so each
  /// thread keeps the last one.
  const std::vector<float> &readHead(int64_t head) const {
    thread_local uint64_t ofMatrix = 0;
    thread_local int64_t ofHead = 0;
    thread_local std::vector<float> kept;
    if (ofMatrix == number && ofHead == head)
      return kept;
    int64_t width = keys.shape[1], nope = keys.shape[2];
    int64_t size = width * nope, tail = values.shape[1] * width;
    std::vector<float> turned(static_cast<size_t>(size));
    readFloats(keys, head * size, size, turned.data());
    kept.resize(static_cast<size_t>(size + tail));
    for (int64_t i = 0; i < nope; ++i)
      for (int64_t j = 0; j < width; ++j)
        kept[static_cast<size_t>(i * width + j)] =
            turned[static_cast<size_t>(j * nope + i)];
    readFloats(values, head * tail, tail, kept.data() + size);
    ofMatrix = number;
    ofHead = head;
    return kept;
  }

  CheckpointTensor keys, values;
  uint64_t number = 0;
};
} // namespace

/// A head is decoded as a whole; published ones have 2^17 values.
static constexpr int64_t kMostOfHead = int64_t(1) << 24;

/// The matrix of keys and values, if the file has both apart and they fit.
static std::unique_ptr<TensorEncoding> joinHeads(const File &file,
                                                 CheckpointTensor &keys) {
  constexpr std::string_view end = "attn_k_b.weight";
  std::string base;
  if (!cutEnd(keys.name, end, base))
    return nullptr;
  const CheckpointTensor *values = file.findTensor(base + "attn_v_b.weight");
  if (!values || keys.shape.size() != 3 || values->shape.size() != 3 ||
      keys.shape[0] != values->shape[0] || keys.shape[1] != values->shape[2])
    return nullptr;
  if (!isFloat(keys) || !isFloat(*values) ||
      keys.shape[1] * (keys.shape[2] + values->shape[1]) > kMostOfHead)
    return nullptr;
  auto joined = std::make_unique<JoinedHeads>(keys, *values);
  keys.name = base + "attn_kv_b.weight";
  keys.shape = {keys.shape[0] * (keys.shape[2] + values->shape[1]),
                keys.shape[1]};
  keys.dtype = runtime::DType::F32;
  keys.encoding = joined.get();
  return joined;
}

/// The number of the layer that a tensor is of; -1: of none.
static int64_t layerOf(const std::string &name) {
  std::string_view rest = name;
  std::string digits;
  if (rest.substr(0, 4) != "blk.")
    return -1;
  rest.remove_prefix(4);
  return takeNumber(rest, digits) ? std::stoll(digits) : -1;
}

std::deque<CheckpointTensor>
renameTensors(const File &file,
              std::vector<std::unique_ptr<TensorEncoding>> &encodings) {
  std::deque<CheckpointTensor> result;
  std::string_view family = file.text("general.architecture").value_or("");
  std::string prefix(family);
  int64_t layers = file.integer(prefix + ".block_count").value_or(0),
          further = file.integer(prefix + ".nextn_predict_layers").value_or(0);
  layers = further > 0 && further < layers ? layers - further : INT64_MAX;
  // Values that became a part of the matrix of their keys.
  std::set<std::string> joinedValues;
  for (const CheckpointTensor &info : file.tensors()) {
    if (info.name.rfind("rope_f", 0) == 0) // rope_freqs, rope_factors_long
      continue;
    // Layers that predict further tokens are no part of the model.
    if (layerOf(info.name) >= layers)
      continue;
    if (joinedValues.count(info.name))
      continue; // keys are in front of them
    std::string base;
    CheckpointTensor &tensor = result.emplace_back(info);
    if (std::unique_ptr<TensorEncoding> joined = joinHeads(file, tensor)) {
      encodings.push_back(std::move(joined));
      cutEnd(info.name, "attn_k_b.weight", base);
      joinedValues.insert(base + "attn_v_b.weight");
      continue;
    }
    tensor.name = rename(file, family, info.name);
    if (cutEnd(info.name, ".ssm_a", base) && isFloat(info)) {
      encodings.push_back(std::make_unique<Logarithms>(info));
      tensor.encoding = encodings.back().get();
      tensor.dtype = runtime::DType::F32;
    }
  }
  if (file.sight())
    addSight(*file.sight(), result, encodings);
  return result;
}

SourceLocation atPath(const std::string &path) {
  auto file = std::make_shared<SourceFile>();
  file->path = path;
  return {file, 0, 0};
}

std::optional<File> openFile(const std::string &path, DiagnosticEngine &diags) {
  File file;
  std::string error;
  if (file.open(path, error))
    return file;
  diags.error({}, error);
  return std::nullopt;
}

} // namespace attune::gguf

namespace attune {

bool isGgufFile(const std::string &pathOrPair) {
  std::string path = gguf::splitPair(pathOrPair).model;
  // Opening a pipe would wait for its writer, and reading take from its reader.
  int file = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0)
    return false;
  struct stat status;
  char start[4] = {};
  bool is = fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
            ::pread(file, start, 4, 0) == 4 &&
            std::memcmp(start, "GGUF", 4) == 0;
  ::close(file);
  return is;
}

} // namespace attune
