//===- QwenVision.cpp - The towers of Qwen-VL -----------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Encoders/Towers.h"
#include "../Parts.h"

#include <algorithm>
#include <cmath>

namespace attune::hf {

using namespace spec;

namespace {
enum class TowerKind : uint8_t {
  Second,       ///< Qwen2-VL
  SecondWindow, ///< Qwen2.5-VL, whose blocks see windows
  Third,        ///< Qwen3-VL, whose text model gets features of several depths
  Flat,         ///< Qwen3.5: as Third, without these
};

/// What a folder's model_type says of it.
struct QwenType {
  const char *name;
  TowerKind kind;
  int64_t imageToken; ///< where image_token_id is absent
};

struct Tower {
  TowerKind kind = TowerKind::Second;
  /// Whether it is built as Qwen3-VL's.
  bool isThird() const {
    return kind == TowerKind::Third || kind == TowerKind::Flat;
  }
  int64_t depth = 0, width = 0, inner = 0, heads = 0, out = 0;
  int64_t channels = 0, frames = 0, patch = 0, merge = 0;
  Activation activation = Activation::Silu;
  int64_t window = 0;         ///< patches on each side; 0: none
  std::vector<int64_t> apart; ///< blocks that see the whole image, or blocks
                              ///< whose features the text's first blocks get
  int64_t positions = 0, side = 0; ///< of the learned table

  const char *widthKey() const {
    return kind == TowerKind::Second ? "embed_dim" : "hidden_size";
  }
  const char *outKey() const {
    return kind == TowerKind::Second ? "hidden_size" : "out_hidden_size";
  }
};
} // namespace

static const QwenType *findQwenType(const Value &root) {
  static constexpr QwenType types[] = {
      {"qwen2_vl", TowerKind::Second, 151655},
      {"qwen2_5_vl", TowerKind::SecondWindow, 151655},
      {"qwen3_vl", TowerKind::Third, 151655},
      {"qwen3_vl_moe", TowerKind::Third, 151655},
      {"qwen3_5", TowerKind::Flat, 248056},
      {"qwen3_5_moe", TowerKind::Flat, 248056},
  };
  const Value *name = root.find("model_type");
  for (const QwenType &type : types)
    if (name && name->text == type.name)
      return &type;
  return nullptr;
}

/// Numbers of blocks, each once and in order.
static std::vector<int64_t> readBlocks(Config &config, const char *key,
                                       int64_t depth,
                                       std::vector<int64_t> fallback) {
  const Value *value = config.get(key);
  if (!value)
    return fallback;
  std::vector<int64_t> numbers;
  bool good = value->isArray();
  for (const Value &element : value->elements) {
    good &= element.kind == Value::Kind::Integer && element.integer >= 0 &&
            element.integer < depth &&
            (numbers.empty() || element.integer > numbers.back());
    numbers.push_back(element.integer);
  }
  if (!good)
    config.error(key, "expected numbers of blocks below " +
                          std::to_string(depth) + ", each above the last");
  return good ? numbers : std::vector<int64_t>();
}

static Tower readTower(Config &config, TowerKind kind) {
  Tower tower;
  tower.kind = kind;
  bool third = tower.isThird();
  tower.depth = config.layers("depth", third ? 27 : 32);
  tower.heads = config.integer("num_heads", 16);
  if (kind == TowerKind::Second) {
    tower.width = config.integer(tower.widthKey(), 1280);
    double inner = double(tower.width) * config.real("mlp_ratio", 4);
    if (!(inner >= 1 && inner <= double(maxSize)))
      config.error("mlp_ratio", "makes feed-forward layers of no size");
    else
      tower.inner = static_cast<int64_t>(inner);
    tower.out = config.integer(tower.outKey(), 3584);
  } else {
    tower.width = config.integer(tower.widthKey(), third ? 1152 : 3584);
    tower.inner = config.integer("intermediate_size", third ? 4304 : 3420);
    tower.out = config.integer(tower.outKey(), 3584);
  }
  tower.channels = config.integer("in_channels", 3, 4);
  tower.frames = config.integer("temporal_patch_size", 2, 64);
  tower.patch = config.integer("patch_size", third ? 16 : 14, 4096);
  tower.merge = config.integer("spatial_merge_size", 2, 64);
  config.ignore({"in_chans", "initializer_range", "spatial_patch_size",
                 "tokens_per_second"});
  const char *activation = third                       ? "gelu_pytorch_tanh"
                           : kind == TowerKind::Second ? "quick_gelu"
                                                       : "silu";
  if (std::optional<Activation> found =
          config.activation("hidden_act", activation))
    tower.activation = *found;
  if (kind == TowerKind::Third)
    tower.apart = readBlocks(config, "deepstack_visual_indexes", tower.depth,
                             {8, 16, 24});
  if (third) {
    tower.positions = config.integer("num_position_embeddings", 2304, 1 << 24);
    tower.side =
        static_cast<int64_t>(std::sqrt(static_cast<double>(tower.positions)));
    if (tower.side * tower.side != tower.positions)
      config.error("num_position_embeddings",
                   "expected the places of a square image");
  } else if (kind == TowerKind::SecondWindow) {
    tower.apart = readBlocks(config, "fullatt_block_indexes", tower.depth,
                             {7, 15, 23, 31});
    int64_t pixels = config.integer("window_size", 112);
    tower.window = pixels / tower.merge / tower.patch * tower.merge;
    if (tower.window == 0)
      config.error("window_size", "has no room for a square of patches");
  }
  if (tower.apart.size() && tower.apart.back() >= tower.depth)
    config.error("depth", "is less than the blocks that the class names");
  ignoreTowerKeys(config);
  config.mustShare("num_heads", tower.heads, tower.widthKey(), tower.width);
  if (!config.hasErrors() && tower.width / tower.heads % 4 != 0)
    config.error("num_heads", "leaves heads of " +
                                  std::to_string(tower.width / tower.heads) +
                                  " channels, which do not turn by rows and "
                                  "columns");
  return tower;
}

static Norm normOf(const Tower &tower, Config &config) {
  Norm norm;
  norm.bias = tower.kind != TowerKind::SecondWindow;
  norm.kind = norm.bias ? NormKind::LayerNorm : NormKind::RMSNorm;
  norm.eps = 1e-6;
  norm.location = config.locate(tower.widthKey());
  return norm;
}

static Block blockOf(const Tower &tower, Config &config) {
  Block block;
  block.norm = normOf(tower, config);
  Attention &attention = block.attention.emplace();
  attention.heads = attention.kvHeads = tower.heads;
  attention.headDim = attention.valueDim = tower.width / tower.heads;
  attention.qkvBias = attention.outBias = true;
  attention.scale = 1 / std::sqrt(double(attention.headDim));
  attention.location = config.locate("num_heads");
  Rope &rope = attention.rope.emplace();
  rope.channels = attention.headDim;
  rope.places = true;
  rope.location = attention.location;
  FFN &ffn = block.ffn.emplace();
  ffn.width = tower.inner;
  ffn.activation = tower.activation;
  ffn.gated = tower.kind == TowerKind::SecondWindow;
  ffn.location = config.locate(
      tower.kind == TowerKind::Second ? "mlp_ratio" : "intermediate_size");
  return block;
}

static TensorNames tensorsOf(const Tower &tower) {
  TensorNames names = {
      {"norm1", "norm1"},
      {"norm2", "norm2"},
      {"attention.qkv", "attn.qkv", Layout::Blocks},
      {"attention.o", "attn.proj"},
  };
  if (tower.kind == TowerKind::SecondWindow) {
    names.push_back({"ffn.gate", "mlp.gate_proj"});
    names.push_back({"ffn.up", "mlp.up_proj"});
    names.push_back({"ffn.down", "mlp.down_proj"});
  } else {
    bool third = tower.isThird();
    names.push_back({"ffn.up", third ? "mlp.linear_fc1" : "mlp.fc1"});
    names.push_back({"ffn.down", third ? "mlp.linear_fc2" : "mlp.fc2"});
  }
  return names;
}

/// Patches, their positions and all blocks.
static void addBlocks(StreamBuilder &stream, const Tower &tower,
                      Config &config) {
  Conv conv = patches(tower.channels * tower.frames, tower.width, tower.patch);
  conv.bias = tower.isThird();
  stream.add("patch_embed.proj", "patch_size", conv, tower.width);
  if (tower.isThird()) {
    Positions positions;
    positions.count = PositionCount::Tokens;
    positions.length = tower.positions;
    positions.grid = {tower.side, tower.side};
    positions.interpolate = Interpolation::Corners;
    stream.add("pos_embed", "num_position_embeddings", positions);
  }
  Block block = blockOf(tower, config);
  bool inWindows = false;
  int64_t windows = 0;
  auto setWindows = [&](bool wanted) {
    if (tower.window == 0 || wanted == inWindows)
      return;
    std::string number = std::to_string(windows);
    if (wanted)
      stream.add("windows." + number, "window_size",
                 Windows{tower.window, tower.window});
    else
      stream.add("whole." + std::to_string(windows++), "window_size", Whole{});
    inWindows = wanted;
  };
  auto isApart = [&](int64_t number) {
    return std::binary_search(tower.apart.begin(), tower.apart.end(), number);
  };
  for (int64_t at = 0, end; at < tower.depth; at = end) {
    bool apart = isApart(at);
    end = at + 1;
    // Features are read behind a block that is alone in its layer.
    while (end < tower.depth && isApart(end) == apart &&
           !(apart && tower.isThird()))
      ++end;
    setWindows(!apart);
    stream.blocks("blocks.{i}", "depth", end - at, block, tensorsOf(tower))
        .first = at;
  }
  setWindows(false);
}

/// Squares of places as the vectors that a text model reads.
static void addMerger(StreamBuilder &stream, const Tower &tower,
                      const std::string &at, bool normsSquares,
                      Config &config) {
  int64_t square = tower.width * tower.merge * tower.merge;
  bool third = tower.isThird();
  std::string norm = at + (third ? "norm" : "ln_q");
  if (!normsSquares)
    stream.norm(norm, normOf(tower, config));
  stream.add(at + "squares", "spatial_merge_size", Merge{tower.merge}, square);
  if (normsSquares)
    stream.norm(norm, normOf(tower, config));
  Linear linear;
  linear.out = square;
  linear.bias = true;
  linear.activation = Activation::Gelu;
  stream.add(at + (third ? "linear_fc1" : "mlp.0"), "spatial_merge_size",
             linear, square);
  linear.out = tower.out;
  linear.activation = Activation::Identity;
  stream.add(at + (third ? "linear_fc2" : "mlp.2"), tower.outKey(), linear,
             tower.out);
}

/// The pairs of channels that turn by numbers, rows and columns.
static bool readSections(const TextPart &part, TowerKind kind, Config &config,
                         RopeSections &sections) {
  bool flat = kind == TowerKind::Flat, third = flat || kind == TowerKind::Third;
  const Value *object = nullptr;
  for (const char *key : {"rope_parameters", "rope_scaling"})
    if (const Value *found = part.object.find(key); found && found->isObject())
      object = found;
  const Value *numbers = object ? object->find("mrope_section") : nullptr;
  sections.interleaved = third;
  if (third && !numbers) {
    sections.pairs = flat ? std::vector<int64_t>{11, 11, 10}
                          : std::vector<int64_t>{24, 20, 20};
    return true;
  }
  bool good = numbers && numbers->isArray() && numbers->elements.size() == 3;
  for (size_t i = 0; good && i < 3; ++i) {
    const Value &number = numbers->elements[i];
    good = number.kind == Value::Kind::Integer && number.integer >= 0 &&
           number.integer <= maxSize;
    sections.pairs.push_back(number.integer);
  }
  if (!good)
    config.error("rope_scaling", "expected mrope_section, how many pairs of "
                                 "channels turn by numbers, rows and columns");
  return good;
}

bool isQwenVision(const Value &root) { return findQwenType(root) != nullptr; }

bool readQwenVision(const SightSource &source, TextPart &part, Model &sight) {
  const QwenType &type = *findQwenType(source.root);
  std::string prefix = source.findPrefix({"model.visual.", "visual."},
                                         "patch_embed.proj.weight");
  if (prefix.empty())
    return true;
  Config config(source.root, "", source.reporter, source.keys);
  std::vector<int64_t> ids = config.ids("image_token_id");
  Config towerConfig = config.inner(*source.tower(), "vision_config");
  Tower tower = readTower(towerConfig, type.kind);
  towerConfig.finish("the tower of images of Qwen-VL");
  if (!readSections(part, type.kind, config, part.sections) ||
      config.hasErrors())
    return false;
  const Value *width = part.object.find("hidden_size");
  if (width && width->isNumber() && int64_t(width->real) != tower.out)
    towerConfig.error(tower.outKey(), "is " + std::to_string(tower.out) +
                                          ", but the text model has " +
                                          std::to_string(int64_t(width->real)) +
                                          " channels");
  ImageSize size = part.imageSize.value_or(ImageSize{usualEdge, usualEdge});
  int64_t square = tower.patch * tower.merge;
  if (size.height % square != 0 || size.width % square != 0)
    config.error("vision_config", "images of " + std::to_string(size.height) +
                                      "x" + std::to_string(size.width) +
                                      " pixels are not made of squares of " +
                                      std::to_string(square) +
                                      "; say another --image-size");
  // Where the text model's keys are among those of the whole, it reads them.
  if (source.root.find("text_config")) {
    config.ignore({"architectures", "model_type", "text_config",
                   "vision_config", "video_token_id", "vision_start_token_id",
                   "vision_end_token_id", "vision_token_id", "pad_token_id",
                   "bos_token_id", "eos_token_id", "tie_word_embeddings",
                   "initializer_range", "vocab_size"});
    config.finish("Qwen-VL");
  }
  if (config.hasErrors())
    return false;
  part.sized = true;

  EncoderBuilder builder(source.context, "");
  builder.imageInput(tower.channels * tower.frames, size.height, size.width,
                     "images", config.locate("vision_config"));
  StreamBuilder vision(towerConfig, prefix, tower.channels * tower.frames);
  addBlocks(vision, tower, towerConfig);
  builder.finish("vision", "pixel_values", std::move(vision));
  StreamBuilder images(towerConfig, prefix, tower.width);
  addMerger(images, tower, "merger.", /*normsSquares=*/false, towerConfig);
  builder.finish("images", "vision", std::move(images));
  StreamBuilder text(config, "", tower.out);
  int64_t id = ids.empty() ? type.imageToken : ids.front();
  Insert insert = {"images", id, {size.height / square, size.width / square}};
  text.add("images.inserted", "image_token_id", insert);
  bool deepens = type.kind == TowerKind::Third;
  for (size_t i = 0; deepens && i < tower.apart.size(); ++i) {
    std::string number = std::to_string(i), name = "features_" + number;
    StreamBuilder deep(towerConfig, prefix, tower.width);
    addMerger(deep, tower, "deepstack_merger_list." + number + ".",
              /*normsSquares=*/true, towerConfig);
    builder.finish(name, prefix + "blocks." + std::to_string(tower.apart[i]),
                   std::move(deep));
    insert = {name, id, {}, /*add=*/true};
    text.add(name + ".added", "image_token_id", insert);
  }
  builder.finish("main", "input_ids", std::move(text));
  sight = std::move(builder.model);
  part.sees = true;
  return true;
}

} // namespace attune::hf
