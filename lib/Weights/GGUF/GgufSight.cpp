//===- GgufSight.cpp - Tensors of a part that sees --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tower of images and a projector ("mmproj"), in a file of their own. The
// tensors get the names of the classes, and what llama.cpp's converter changes
// is undone as they are read: kernels of two frames are one tensor again, as
// are queries, keys and values where a class has these so, and Pixtral's
// channels that turn together lie half a head apart.
//
//===----------------------------------------------------------------------===//

#include "GgufTensors.h"

#include <algorithm>
#include <functional>
#include <set>

namespace attune::gguf {

namespace {
struct Name {
  std::string ours, theirs;
};
/// Of a type of projector.
struct Names {
  std::string_view projector;
  std::string block; ///< in front of a block's number
  std::vector<Name> ofBlocks, others;
};
} // namespace

/// Towers of CLIP and SigLIP.
static Names clip(const char *projector, const std::string &at,
                  std::vector<Name> others) {
  for (auto [ours, theirs] : {std::pair("v.patch_embd", "patch_embedding"),
                              {"v.position_embd", "position_embedding"},
                              {"v.class_embd", "class_embedding"}})
    others.push_back({ours, at + "embeddings." + theirs});
  others.push_back({"v.pre_ln", at + "pre_layrnorm"});
  others.push_back({"v.post_ln", at + "post_layernorm"});
  return {projector,
          at + "encoder.layers.",
          {{"ln1", "layer_norm1"},
           {"ln2", "layer_norm2"},
           {"attn_q", "self_attn.q_proj"},
           {"attn_k", "self_attn.k_proj"},
           {"attn_v", "self_attn.v_proj"},
           {"attn_out", "self_attn.out_proj"},
           {"ffn_up", "mlp.fc1"},
           {"ffn_down", "mlp.fc2"}},
          std::move(others)};
}

/// Of Qwen-VL: the layers of a block, and the merger's.
static Names qwen(const char *projector, const std::vector<Name> &feed,
                  const char *norm, const char *first, const char *second) {
  const std::string merger = "visual.merger.";
  Names names = {projector,
                 "visual.blocks.",
                 {{"ln1", "norm1"},
                  {"ln2", "norm2"},
                  {"attn_qkv", "attn.qkv"},
                  {"attn_out", "attn.proj"}},
                 {{"v.patch_embd", "visual.patch_embed.proj"},
                  {"v.position_embd", "visual.pos_embed"},
                  {"v.post_ln", merger + norm},
                  {"mm.0", merger + first},
                  {"mm.2", merger + second}}};
  names.ofBlocks.insert(names.ofBlocks.end(), feed.begin(), feed.end());
  return names;
}

static const std::vector<Names> &allNames() {
  static const std::string llava = "multi_modal_projector.",
                           intern = "model.vision_tower.",
                           ofIntern = "model.multi_modal_projector.";
  static const std::vector<Names> all = {
      clip("mlp", "vision_tower.vision_model.",
           {{"mm.0", llava + "linear_1"},
            {"mm.2", llava + "linear_2"},
            {"v.image_newline", "image_newline"},
            {"model.image_newline", "image_newline"}}),
      clip("gemma3", "vision_tower.vision_model.",
           {{"mm.soft_emb_norm", llava + "mm_soft_emb_norm"}}),
      clip("idefics3", "model.vision_model.",
           {{"mm.model.fc", "model.connector.modality_projection.proj"}}),
      {"pixtral",
       "vision_tower.transformer.layers.",
       {{"ln1", "attention_norm"},
        {"ln2", "ffn_norm"},
        {"attn_q", "attention.q_proj"},
        {"attn_k", "attention.k_proj"},
        {"attn_v", "attention.v_proj"},
        {"attn_out", "attention.o_proj"},
        {"ffn_gate", "feed_forward.gate_proj"},
        {"ffn_up", "feed_forward.up_proj"},
        {"ffn_down", "feed_forward.down_proj"}},
       {{"v.patch_embd", "vision_tower.patch_conv"},
        {"v.pre_ln", "vision_tower.ln_pre"},
        {"mm.input_norm", llava + "norm"},
        {"mm.patch_merger", llava + "patch_merger.merging_layer"},
        {"mm.1", llava + "linear_1"},
        {"mm.2", llava + "linear_2"}}},
      {"internvl",
       intern + "encoder.layer.",
       {{"ln1", "layernorm_before"},
        {"ln2", "layernorm_after"},
        {"attn_q", "attention.q_proj"},
        {"attn_k", "attention.k_proj"},
        {"attn_v", "attention.v_proj"},
        {"attn_q_norm", "attention.q_norm"},
        {"attn_k_norm", "attention.k_norm"},
        {"attn_out", "attention.projection_layer"},
        {"ffn_up", "mlp.fc1"},
        {"ffn_down", "mlp.fc2"}},
       {{"v.patch_embd", intern + "embeddings.patch_embeddings.projection"},
        {"v.class_embd", intern + "embeddings.cls_token"},
        {"v.post_ln", intern + "layernorm"},
        {"mm.model.mlp.0", ofIntern + "layer_norm"},
        {"mm.model.mlp.1", ofIntern + "linear_1"},
        {"mm.model.mlp.3", ofIntern + "linear_2"}}},
      qwen("qwen2vl_merger", {{"ffn_up", "mlp.fc1"}, {"ffn_down", "mlp.fc2"}},
           "ln_q", "mlp.0", "mlp.2"),
      qwen("qwen2.5vl_merger",
           {{"ffn_gate", "mlp.gate_proj"},
            {"ffn_up", "mlp.up_proj"},
            {"ffn_down", "mlp.down_proj"}},
           "ln_q", "mlp.0", "mlp.2"),
      qwen("qwen3vl_merger",
           {{"ffn_up", "mlp.linear_fc1"}, {"ffn_down", "mlp.linear_fc2"}},
           "norm", "linear_fc1", "linear_fc2"),
  };
  return all;
}

namespace {
/// Numbers that lie elsewhere: `find` says where the one at a place is, and how
/// many follow it there.
class Gathered final : public TensorEncoding {
public:
  struct Place {
    size_t part;
    int64_t at, count;
  };
  Gathered(std::vector<CheckpointTensor> parts,
           std::function<Place(int64_t)> find)
      : parts(std::move(parts)), find(std::move(find)) {}

  const char *name() const override { return "gathered"; }
  bool isQuantized() const override {
    return std::any_of(parts.begin(), parts.end(), [](const auto &part) {
      return part.encoding && part.encoding->isQuantized();
    });
  }
  void decode(const CheckpointTensor &, int64_t first, int64_t count,
              float *out) const override {
    while (count > 0) {
      Place place = find(first);
      int64_t taken = std::min(count, place.count);
      readFloats(parts[place.part], place.at, taken, out);
      out += taken;
      first += taken;
      count -= taken;
    }
  }

private:
  std::vector<CheckpointTensor> parts;
  std::function<Place(int64_t)> find;
};

/// Makes the tensors of one file.
class Maker {
public:
  Maker(const File &file, const Names &names,
        std::deque<CheckpointTensor> &tensors,
        std::vector<std::unique_ptr<TensorEncoding>> &encodings);
  void make();

private:
  void add(CheckpointTensor tensor, const std::string &name) {
    tensor.name = name;
    tensors.push_back(std::move(tensor));
  }
  void gather(std::vector<CheckpointTensor> parts, std::vector<int64_t> shape,
              const std::string &name,
              std::function<Gathered::Place(int64_t)> find);
  std::string rename(std::string_view name) const;
  std::string renameBlock(std::string_view name) const;
  bool joinFrames(const CheckpointTensor &first);
  void joinRows(const CheckpointTensor &queries);
  bool turnBack(const CheckpointTensor &tensor);

  const File &file;
  const Names &names;
  std::deque<CheckpointTensor> &tensors;
  std::vector<std::unique_ptr<TensorEncoding>> &encodings;
  std::vector<std::string> deep; ///< numbers of blocks with features
  std::set<std::string> done;
  bool swapped = false;
};
} // namespace

Maker::Maker(const File &file, const Names &names,
             std::deque<CheckpointTensor> &tensors,
             std::vector<std::unique_ptr<TensorEncoding>> &encodings)
    : file(file), names(names), tensors(tensors), encodings(encodings) {
  std::set<int64_t> numbers;
  for (const CheckpointTensor &info : file.tensors()) {
    std::string_view rest = info.name;
    std::string digits;
    if (rest.substr(0, 12) != "v.deepstack.")
      continue;
    rest.remove_prefix(12);
    if (takeNumber(rest, digits))
      numbers.insert(std::stoll(digits));
  }
  for (int64_t number : numbers)
    deep.push_back(std::to_string(number));
  // The first files call the matrices of a feed-forward layer the other way
  // round.
  const CheckpointTensor *down = file.findTensor("v.blk.0.ffn_down.weight");
  std::optional<int64_t> width = file.integer("clip.vision.embedding_length");
  swapped = down && down->shape.size() == 2 &&
            down->shape[0] != down->shape[1] && down->shape[1] == width;
}

void Maker::gather(std::vector<CheckpointTensor> parts,
                   std::vector<int64_t> shape, const std::string &name,
                   std::function<Gathered::Place(int64_t)> find) {
  CheckpointTensor made = parts.front();
  for (size_t i = 1; i < parts.size(); ++i)
    made.bytes += parts[i].bytes;
  made.shape = std::move(shape);
  made.dtype = runtime::DType::F32;
  encodings.push_back(
      std::make_unique<Gathered>(std::move(parts), std::move(find)));
  made.encoding = encodings.back().get();
  add(std::move(made), name);
}

/// "v.blk.7.ffn_up.weight", and "v.deepstack.7.fc1.weight" by the number of its
/// block among those that have such.
std::string Maker::renameBlock(std::string_view name) const {
  bool isDeep = name.substr(0, 12) == "v.deepstack.";
  std::string digits;
  if (!isDeep && name.substr(0, 6) != "v.blk.")
    return "";
  name.remove_prefix(isDeep ? 12 : 6);
  size_t dot = name.rfind('.');
  if (dot == std::string_view::npos)
    return "";
  std::string end(name.substr(dot));
  name = name.substr(0, dot);
  if (!takeNumber(name, digits) || name.substr(0, 1) != ".")
    return "";
  name.remove_prefix(1);
  if (isDeep) {
    auto at = std::find(deep.begin(), deep.end(), digits);
    std::string place =
        "visual.deepstack_merger_list." + std::to_string(at - deep.begin());
    if (at == deep.end() || (name != "norm" && name != "fc1" && name != "fc2"))
      return "";
    return place + (name == "norm" ? ".norm" : ".linear_" + std::string(name)) +
           end;
  }
  std::string block = names.block + digits + ".";
  if (names.projector == "internvl" && (name == "ls1" || name == "ls2"))
    return block + "lambda_" + std::string(name.substr(2));
  if (swapped && (name == "ffn_up" || name == "ffn_down"))
    name = name == "ffn_up" ? "ffn_down" : "ffn_up";
  for (const Name &each : names.ofBlocks)
    if (name == each.ours)
      return block + each.theirs + end;
  return "";
}

/// Empty: no part of a model that sees.
std::string Maker::rename(std::string_view name) const {
  if (names.projector == "internvl" && name == "v.position_embd.weight")
    return "model.vision_tower.embeddings.position_embeddings";
  if (names.projector == "gemma3" && name == "mm.input_projection.weight")
    return "multi_modal_projector.mm_input_projection_weight";
  for (const Name &each : names.others) {
    std::string_view ours = each.ours;
    std::string_view end = name.substr(std::min(ours.size(), name.size()));
    if (name.substr(0, ours.size()) == ours &&
        (end.empty() || end == ".weight" || end == ".bias"))
      return each.theirs + std::string(end);
  }
  return renameBlock(name);
}

/// Two kernels [out, in, height, width], of one frame each, as [out, in, 2,
/// height, width].
bool Maker::joinFrames(const CheckpointTensor &first) {
  const CheckpointTensor *second = file.findTensor(first.name + ".1");
  if (first.name != "v.patch_embd.weight" || !second ||
      first.shape.size() != 4 || second->shape != first.shape ||
      !isFloat(first) || !isFloat(*second))
    return false;
  std::vector<int64_t> shape = first.shape;
  shape.insert(shape.begin() + 2, 2);
  int64_t plane = shape[3] * shape[4];
  if (plane < 1)
    return false;
  gather({first, *second}, shape, rename(first.name), [plane](int64_t i) {
    int64_t kernel = i / plane, at = i % plane;
    return Gathered::Place{static_cast<size_t>(kernel % 2),
                           kernel / 2 * plane + at, plane - at};
  });
  done.insert(second->name);
  return true;
}

/// Queries, keys and values one below the other, where a class has no others.
void Maker::joinRows(const CheckpointTensor &queries) {
  size_t at = queries.name.find(".attn_q.");
  if (at == std::string::npos)
    return;
  std::string whole = queries.name;
  whole.replace(at, 8, ".attn_qkv.");
  std::string name = renameBlock(whole);
  std::vector<CheckpointTensor> parts = {queries};
  for (const char *part : {".attn_k.", ".attn_v."}) {
    std::string other = queries.name;
    const CheckpointTensor *found = file.findTensor(other.replace(at, 8, part));
    if (!found || found->shape != queries.shape || !isFloat(*found))
      return;
    parts.push_back(*found);
  }
  if (name.empty() || queries.shape.empty() || !isFloat(queries))
    return;
  std::vector<int64_t> shape = queries.shape;
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  if (count < 1)
    return;
  shape[0] *= 3;
  gather(std::move(parts), shape, name, [count](int64_t i) {
    return Gathered::Place{static_cast<size_t>(i / count), i % count,
                           count - i % count};
  });
}

/// Pixtral's queries and keys, of which neighbouring rows turn together in the
/// file.
bool Maker::turnBack(const CheckpointTensor &tensor) {
  std::string_view name = tensor.name;
  bool turns = name.find(".attn_q.") != std::string_view::npos ||
               name.find(".attn_k.") != std::string_view::npos;
  int64_t heads = file.integer("clip.vision.attention.head_count").value_or(0);
  if (names.projector != "pixtral" || !turns || heads < 1 ||
      tensor.shape.empty() || tensor.shape.size() > 2 || !isFloat(tensor) ||
      tensor.shape[0] % (2 * heads))
    return false;
  int64_t width = tensor.shape.size() == 2 ? tensor.shape[1] : 1;
  int64_t size = tensor.shape[0] / heads;
  if (width < 1 || size < 2)
    return false;
  gather({tensor}, tensor.shape, rename(name), [=](int64_t i) {
    int64_t row = i / width, inHead = row % size;
    int64_t stored =
        row - inHead + inHead % (size / 2) * 2 + inHead / (size / 2);
    return Gathered::Place{0, stored * width + i % width, width - i % width};
  });
  return true;
}

void Maker::make() {
  for (const CheckpointTensor &info : file.tensors()) {
    if (done.count(info.name) || joinFrames(info) || turnBack(info))
      continue;
    std::string name = rename(info.name);
    if (!name.empty())
      add(info, name);
    else
      joinRows(info);
  }
}

void addSight(const File &file, std::deque<CheckpointTensor> &tensors,
              std::vector<std::unique_ptr<TensorEncoding>> &encodings) {
  std::optional<std::string_view> projector = file.text("clip.projector_type");
  for (const Names &names : allNames())
    if (projector == names.projector)
      Maker(file, names, tensors, encodings).make();
}

} // namespace attune::gguf
