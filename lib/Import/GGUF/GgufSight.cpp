//===- GgufSight.cpp - Pairs of GGUF files that see -------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tower of images and a projector in a file of their own ("mmproj"), whose
// architecture is "clip", beside the file of a text model: the config.json and
// the preprocessor_config.json that the keys of both stand for. What no key
// says is taken as the published folders of the class have it.
//
//===----------------------------------------------------------------------===//

#include "GgufSight.h"
#include "GgufWriter.h"

#include "attune/Import/Gguf.h"
#include "attune/Runtime/Json.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace attune::gguf {

namespace {
/// A "clip.projector_type" that is read.
struct Projector {
  std::string_view name;
  /// The matrix that makes the text model's vectors.
  const char *last;
  /// What stands for a picture's vector in a text.
  const char *token;
  /// The architecture of text models; null: any.
  const char *family;
};

/// An object of JSON.
class Object {
public:
  Object &put(const char *key, const std::string &value) {
    text += (text.empty() ? "\"" : ", \"") + std::string(key) + "\": " + value;
    return *this;
  }
  Object &put(const char *key, const char *word) {
    return put(key, quoted(word));
  }
  Object &put(const char *key, int64_t value) {
    return put(key, std::to_string(value));
  }
  Object &put(const char *key, double value) { return put(key, spell(value)); }
  Object &put(const char *key, bool value) {
    return put(key, std::string(value ? "true" : "false"));
  }
  std::string done() const { return "{" + text + "}"; }

private:
  std::string text;
};

class SightReader {
public:
  SightReader(const File &model, DiagnosticEngine &diags)
      : model(model), file(*model.sight()), diags(diags) {}

  bool open();
  std::optional<std::string> config(const Family &family,
                                    const std::string &text);
  std::optional<std::string> preparation();

private:
  void fail(const std::string &key, const std::string &what) {
    failAt(file, key, what, diags);
    failed = true;
  }
  int64_t size(const std::string &key, std::optional<int64_t> fallback = {});
  double number(const std::string &key, double fallback);
  bool has(const char *tensor) const { return file.findTensor(tensor); }
  /// Channels of one side of a matrix; 0, after an error, if it is none.
  int64_t sizeOf(const char *tensor, size_t side);
  int64_t inner();
  std::string activation(const char *ofGelu, const char *otherwise) const;
  int64_t tokenId(std::string_view text) const;
  std::string tokenText(int64_t id) const;
  int64_t imageId() const;
  std::string means(const char *key);
  std::string pinpoints();

  void checkWidth(const Family &family);
  Object tower(const char *type);
  void putLlava(Object &whole);
  void putGemma3(Object &whole);
  void putIdefics3(Object &whole);
  void putPixtral(Object &whole);
  void putInternVL(Object &whole);
  void putQwen(Object &whole, const Family &family);
  bool merges() const { return has("mm.patch_merger.weight"); }
  bool isNext() const {
    return has("v.image_newline") || has("model.image_newline");
  }

  const File &model, &file;
  DiagnosticEngine &diags;
  const Projector *projector = nullptr;
  bool failed = false;
};
} // namespace

static constexpr Projector kProjectors[] = {
    {"gemma3", "mm.input_projection.weight", "<image_soft_token>", "gemma3"},
    {"idefics3", "mm.model.fc.weight", "<image>", nullptr},
    {"internvl", "mm.model.mlp.3.weight", "<IMG_CONTEXT>", nullptr},
    {"mlp", "mm.2.weight", "<image>", nullptr},
    {"pixtral", "mm.2.weight", "[IMG]", nullptr},
    {"qwen2.5vl_merger", "mm.2.weight", "<|image_pad|>", "qwen2vl"},
    {"qwen2vl_merger", "mm.2.weight", "<|image_pad|>", "qwen2vl"},
    {"qwen3vl_merger", "mm.2.weight", "<|image_pad|>", "qwen3vl"},
};

static const std::string kVision = "clip.vision.";

bool SightReader::open() {
  const std::string archKey = "general.architecture",
                    typeKey = "clip.projector_type";
  std::optional<std::string_view> architecture = file.text(archKey);
  if (architecture != std::string_view("clip")) {
    fail(archKey,
         "expected 'clip', of the part of a model that sees, found " +
             (architecture
                  ? "'" + std::string(architecture->substr(0, 64)) +
                        "'; give the model's file first, then this part"
                  : std::string("nothing")));
    return false;
  }
  bool vision = file.flag("clip.has_vision_encoder").value_or(false);
  if (!vision) {
    bool audio = file.flag("clip.has_audio_encoder").value_or(false);
    fail("clip.has_vision_encoder",
         std::string("expected true: ") +
             (audio ? "the file has an encoder of sound alone, which is not "
                      "read"
                    : "the file has no tower of images"));
    return false;
  }
  std::string key = file.find(typeKey) ? typeKey : kVision + "projector_type";
  std::optional<std::string_view> type = file.text(key);
  std::string known;
  for (const Projector &each : kProjectors) {
    if (type == each.name && key == typeKey)
      projector = &each;
    known += (known.empty() ? "" : ", ") + std::string(each.name);
  }
  if (!projector)
    fail(key, "expected one of " + known + ", found " +
                  (type ? "'" + std::string(type->substr(0, 64)) + "'"
                        : std::string("nothing")) +
                  "; without this file the text model can be compiled alone");
  return projector;
}

int64_t SightReader::size(const std::string &key,
                          std::optional<int64_t> fallback) {
  const Value *value = file.find(key);
  if (!value && fallback)
    return *fallback;
  std::optional<int64_t> found = file.integer(key);
  if (found && *found >= 1 && *found <= INT32_MAX)
    return *found;
  fail(key, "expected a whole number from 1 to 2147483647, found " +
                (found   ? std::to_string(*found)
                 : value ? value->describe()
                         : "nothing"));
  return 1;
}

double SightReader::number(const std::string &key, double fallback) {
  const Value *value = file.find(key);
  std::optional<double> found = file.real(key);
  if (!value || (found && *found > 0))
    return found.value_or(fallback);
  fail(key, "expected a number above 0, found " +
                (found ? spell(*found) : value->describe()));
  return fallback;
}

int64_t SightReader::sizeOf(const char *tensor, size_t side) {
  const CheckpointTensor *found = file.findTensor(tensor);
  if (found && found->shape.size() == 2)
    return found->shape[side];
  diags.error(atPath(file.path()),
              "tensor '" + std::string(tensor) + "' " +
                  (found ? "has shape " + runtime::formatShape(found->shape) +
                               ", expected a matrix"
                         : "is missing"));
  failed = true;
  return 0;
}

/// The width within feed-forward layers. The first files call their matrices
/// the other way round, and the key of Qwen2-VL's says something else.
int64_t SightReader::inner() {
  int64_t rows = sizeOf("v.blk.0.ffn_up.weight", 0),
          columns = sizeOf("v.blk.0.ffn_up.weight", 1);
  int64_t width = size(kVision + "embedding_length");
  return columns == width ? rows : columns;
}

/// What "gelu" stands for is up to the class.
std::string SightReader::activation(const char *ofGelu,
                                    const char *otherwise) const {
  if (file.flag("clip.use_gelu").value_or(false))
    return ofGelu;
  return file.flag("clip.use_silu").value_or(false) ? "silu" : otherwise;
}

/// -1: there is none.
int64_t SightReader::tokenId(std::string_view text) const {
  const Value *tokens = model.find("tokenizer.ggml.tokens");
  int64_t id = -1;
  if (tokens && tokens->isArray() && tokens->element == Kind::String)
    eachString(*tokens, [&](uint64_t i, std::string_view token) {
      if (id < 0 && token == text)
        id = static_cast<int64_t>(i);
    });
  return id;
}

std::string SightReader::tokenText(int64_t id) const {
  std::string text;
  if (const Value *tokens = model.find("tokenizer.ggml.tokens");
      tokens && tokens->isArray() && tokens->element == Kind::String)
    eachString(*tokens, [&](uint64_t i, std::string_view token) {
      if (i == static_cast<uint64_t>(id))
        text = std::string(token);
    });
  return text;
}

/// What stands for a picture's vector in a text; -1: nothing does. The first
/// files of LLaVA have no token for it: one that no text has does, then.
int64_t SightReader::imageId() const {
  int64_t id = tokenId(projector->token);
  if (id < 0 && projector->name == "mlp")
    id = model.integer("tokenizer.ggml.unknown_token_id")
             .value_or(tokenId("<unk>"));
  return tokenText(id).empty() ? -1 : id;
}

/// Whether the projector's vectors are as wide as the text model's.
void SightReader::checkWidth(const Family &family) {
  std::string key = std::string(family.name) + ".embedding_length";
  int64_t wanted = model.integer(key).value_or(0);
  int64_t found = sizeOf(projector->last, projector->name == "gemma3" ? 1 : 0);
  if (found && found != wanted) {
    diags.error(atPath(file.path()),
                "tensor '" + std::string(projector->last) +
                    "' makes vectors of " + std::to_string(found) +
                    " channels, but the model of " + model.path() + " has " +
                    std::to_string(wanted) + " (" + key +
                    "): the files are not of one model");
    failed = true;
  }
}

/// Sizes of a tower by the names that most classes have for them.
Object SightReader::tower(const char *type) {
  Object object;
  object.put("model_type", type)
      .put("hidden_size", size(kVision + "embedding_length"))
      .put("intermediate_size", inner())
      .put("num_hidden_layers", size(kVision + "block_count"))
      .put("num_attention_heads", size(kVision + "attention.head_count"))
      .put("image_size", size(kVision + "image_size"))
      .put("patch_size", size(kVision + "patch_size"));
  return object;
}

/// Heights and widths of pictures in tiles; the file has them in one list.
std::string SightReader::pinpoints() {
  const std::string key = kVision + "image_grid_pinpoints";
  std::optional<std::vector<double>> list = file.numbers(key);
  std::string text;
  bool good =
      list && !list->empty() && list->size() % 2 == 0 && list->size() <= 2048;
  for (size_t i = 0; good && i < list->size(); ++i) {
    double each = (*list)[i];
    good = each >= 1 && each <= INT32_MAX && each == std::floor(each);
    text += (i == 0  ? "["
             : i % 2 ? ", "
                     : "], [") +
            std::to_string(good ? static_cast<int64_t>(each) : 0);
  }
  if (!good)
    fail(key, "expected heights and widths of pictures, one behind the other");
  return "[" + text + "]]";
}

void SightReader::putLlava(Object &whole) {
  bool isClip = has("v.class_embd");
  // Files end with the block that is read; a key may say otherwise.
  const std::string key = kVision + "feature_layer";
  int64_t layer = -1;
  if (file.find(key)) {
    std::optional<std::vector<double>> list = file.numbers(key);
    if (list && list->size() == 1)
      layer = static_cast<int64_t>(list->front());
    else
      fail(key, "expected the number of one layer, whose features the text "
                "model reads");
  }
  whole.put("model_type", isNext() ? "llava_next" : "llava");
  if (isNext())
    whole.put("image_grid_pinpoints", pinpoints());
  whole.put("vision_feature_layer", layer)
      .put("vision_feature_select_strategy", isClip ? "default" : "full")
      .put("projector_hidden_act", "gelu");
  Object object = tower(isClip ? "clip_vision_model" : "siglip_vision_model");
  object
      .put("hidden_act",
           quoted(
               activation(isClip ? "gelu" : "gelu_pytorch_tanh", "quick_gelu")))
      .put("layer_norm_eps",
           number(kVision + "attention.layer_norm_epsilon", 1e-5));
  if (!isClip)
    object.put("vision_use_head", false);
  whole.put("vision_config", object.done());
}

void SightReader::putGemma3(Object &whole) {
  int64_t side = size(kVision + "image_size") / size(kVision + "patch_size");
  int64_t square = size(kVision + "projector.scale_factor", 4);
  if (side % square)
    fail(kVision + "projector.scale_factor",
         "expected a divisor of the " + std::to_string(side) +
             " patches on each side, found " + std::to_string(square));
  int64_t tokens = std::max<int64_t>(side / square, 1);
  Object object = tower("siglip_vision_model");
  object
      .put("hidden_act", quoted(activation("gelu_pytorch_tanh", "quick_gelu")))
      .put("layer_norm_eps",
           number(kVision + "attention.layer_norm_epsilon", 1e-6))
      .put("vision_use_head", false);
  whole.put("model_type", "gemma3")
      .put("mm_tokens_per_image", tokens * tokens)
      .put("vision_config", object.done());
}

void SightReader::putIdefics3(Object &whole) {
  Object object = tower("idefics3_vision");
  object
      .put("hidden_act", quoted(activation("gelu_pytorch_tanh", "quick_gelu")))
      .put("layer_norm_eps",
           number(kVision + "attention.layer_norm_epsilon", 1e-6));
  whole.put("model_type", "idefics3")
      .put("scale_factor", size(kVision + "projector.scale_factor", 2))
      .put("vision_config", object.done());
}

void SightReader::putPixtral(Object &whole) {
  whole.put("model_type", merges() ? "mistral3" : "llava");
  if (merges())
    whole.put("spatial_merge_size", size(kVision + "spatial_merge_size", 2));
  whole.put("vision_feature_layer", int64_t(-1))
      .put("vision_feature_select_strategy", "full")
      .put("projector_hidden_act", "gelu")
      .put("multimodal_projector_bias", has("mm.1.bias"));
  Object object = tower("pixtral");
  object.put("hidden_act", quoted(activation("gelu", "gelu")))
      .put("rope_theta", number("clip.rope.freq_base", 10000));
  whole.put("vision_config", object.done());
}

void SightReader::putInternVL(Object &whole) {
  char ratio[40];
  std::snprintf(ratio, sizeof(ratio), "%.17g",
                1 / double(size(kVision + "projector.scale_factor", 2)));
  whole.put("model_type", "internvl")
      .put("downsample_ratio", std::string(ratio))
      .put("projector_hidden_act", "gelu");
  Object object = tower("internvl_vision");
  // The largest tower has norms of another kind.
  object.put("hidden_act", quoted(activation("gelu", "gelu")))
      .put("layer_norm_eps",
           number(kVision + "attention.layer_norm_epsilon", 1e-6))
      .put("norm_type", has("v.blk.0.ln1.bias") ? "layer_norm" : "rms_norm")
      .put("attention_bias", has("v.blk.0.attn_q.bias"))
      .put("use_qk_norm", has("v.blk.0.attn_q_norm.weight"))
      .put("use_mean_pooling", !has("v.post_ln.weight"))
      .put("use_absolute_position_embeddings", has("v.position_embd.weight"));
  whole.put("vision_config", object.done());
}

void SightReader::putQwen(Object &whole, const Family &family) {
  bool third = projector->name == "qwen3vl_merger",
       second = projector->name == "qwen2vl_merger";
  const char *type = second   ? "qwen2_vl"
                     : !third ? "qwen2_5_vl"
                     : std::string_view(family.name) == "qwen3vlmoe"
                         ? "qwen3_vl_moe"
                         : "qwen3_vl";
  whole.put("model_type", type);
  int64_t width = size(kVision + "embedding_length"), hidden = inner(),
          depth = size(kVision + "block_count"),
          out = sizeOf(projector->last, 0);
  Object object;
  object.put("depth", depth)
      .put("num_heads", size(kVision + "attention.head_count"))
      .put("patch_size", size(kVision + "patch_size"))
      .put("spatial_merge_size", size(kVision + "spatial_merge_size", 2))
      .put("temporal_patch_size", int64_t(2))
      .put("in_channels", int64_t(3))
      .put("hidden_act", quoted(activation("gelu_pytorch_tanh", "quick_gelu")));
  if (second) {
    double ratio = double(hidden) / double(width);
    if (int64_t(double(width) * ratio) < hidden)
      ratio = std::nextafter(ratio, INFINITY);
    char text[40];
    std::snprintf(text, sizeof(text), "%.17g", ratio);
    object.put("embed_dim", width)
        .put("mlp_ratio", std::string(text))
        .put("hidden_size", out);
  } else {
    object.put("hidden_size", width)
        .put("intermediate_size", hidden)
        .put("out_hidden_size", out);
  }
  std::string blocks;
  auto add = [&](int64_t block) {
    blocks += (blocks.empty() ? "" : ", ") + std::to_string(block);
  };
  if (third) {
    for (int64_t i = 0; i < std::min<int64_t>(depth, 4096); ++i)
      if (has(("v.deepstack." + std::to_string(i) + ".fc1.weight").c_str()))
        add(i);
    object.put("deepstack_visual_indexes", "[" + blocks + "]")
        .put("num_position_embeddings", sizeOf("v.position_embd.weight", 0));
  } else if (!second) {
    int64_t period = size(kVision + "n_wa_pattern");
    for (int64_t i = period - 1; i < std::min<int64_t>(depth, 4096);
         i += period)
      add(i);
    object.put("fullatt_block_indexes", "[" + blocks + "]")
        .put("window_size", size(kVision + "window_size", 112));
  }
  whole.put("vision_config", object.done());
}

std::optional<std::string> SightReader::config(const Family &family,
                                               const std::string &text) {
  std::string_view name = family.name;
  bool fits = !projector->family || name == projector->family ||
              (name == "qwen3vlmoe" && projector->name == "qwen3vl_merger");
  if (!fits) {
    fail("clip.projector_type",
         "'" + std::string(projector->name) +
             "' is read with text models of architecture " + projector->family +
             ", but that of " + model.path() + " is " + std::string(name));
    return std::nullopt;
  }
  checkWidth(family);
  int64_t id = imageId();
  if (id < 0) {
    failAt(model, "tokenizer.ggml.tokens",
           "expected the token '" + std::string(projector->token) +
               "', which stands for a picture in texts",
           diags);
    failed = true;
  }
  Object whole;
  whole.put(projector->name == "mlp" || projector->name == "pixtral" ||
                    projector->name == "gemma3"
                ? "image_token_index"
                : "image_token_id",
            id);
  if (projector->name == "mlp")
    putLlava(whole);
  else if (projector->name == "gemma3")
    putGemma3(whole);
  else if (projector->name == "idefics3")
    putIdefics3(whole);
  else if (projector->name == "pixtral")
    putPixtral(whole);
  else if (projector->name == "internvl")
    putInternVL(whole);
  else
    putQwen(whole, family);
  if (failed)
    return std::nullopt;
  return whole.put("text_config", text).done() + "\n";
}

/// Three numbers, if the file has them.
std::string SightReader::means(const char *key) {
  const std::string name = kVision + key;
  std::optional<std::vector<double>> list = file.numbers(name);
  if (!list || list->size() != 3) {
    fail(name, "expected three numbers, of red, green and blue");
    return "";
  }
  return "[" + spell((*list)[0]) + ", " + spell((*list)[1]) + ", " +
         spell((*list)[2]) + "]";
}

std::optional<std::string> SightReader::preparation() {
  int64_t edge = size(kVision + "image_size");
  std::string_view name = projector->name;
  Object square, longest, images;
  square.put("height", edge).put("width", edge);
  auto is = [&](const char *processor, const char *images_) {
    images.put("processor_class", processor)
        .put("image_processor_type",
             (std::string(images_) + "ImageProcessor").c_str());
  };
  if (name == "mlp" && isNext()) {
    is("LlavaNextProcessor", "LlavaNext");
    images.put("size", edge)
        .put("crop_size", edge)
        .put("image_grid_pinpoints", pinpoints());
  } else if (name == "mlp" && has("v.class_embd")) {
    is("LlavaProcessor", "CLIP");
    images.put("size", Object().put("shortest_edge", edge).done())
        .put("crop_size", square.done());
  } else if (name == "mlp") {
    is("LlavaProcessor", "Siglip");
    images.put("size", square.done());
  } else if (name == "gemma3") {
    is("Gemma3Processor", "Gemma3");
    images.put("size", square.done());
  } else if (name == "idefics3") {
    is("Idefics3Processor", "Idefics3");
    images.put("max_image_size", Object().put("longest_edge", edge).done());
    // Without it, a whole number of tiles: as the class has it.
    const std::string key = kVision + "preproc_image_size";
    if (file.find(key))
      images.put("size", Object().put("longest_edge", size(key)).done());
  } else if (name == "internvl") {
    is("InternVLProcessor", "GotOcr2");
    images.put("size", square.done())
        .put("min_patches", size(kVision + "preproc_min_tiles", 1))
        .put("max_patches", size(kVision + "preproc_max_tiles", 12));
  } else if (name == "pixtral") {
    is("PixtralProcessor", "Pixtral");
    Object added;
    for (const char *text : {"[IMG_BREAK]", "[IMG_END]"})
      if (int64_t id = tokenId(text); id >= 0)
        added.put(std::to_string(id).c_str(),
                  Object().put("content", text).done());
    images.put("added_tokens_decoder", added.done());
  } else {
    is("Qwen2VLProcessor", "Qwen2VL");
  }
  if (name == "mlp" && tokenText(imageId()) != projector->token)
    images.put("image_token", quoted(tokenText(imageId())));
  images.put("image_mean", means("image_mean"))
      .put("image_std", means("image_std"));
  if (failed)
    return std::nullopt;
  return images.done();
}

std::optional<std::string> makeSightConfig(const File &model,
                                           const Family &family,
                                           const std::string &text,
                                           DiagnosticEngine &diags) {
  SightReader reader(model, diags);
  if (!reader.open())
    return std::nullopt;
  return reader.config(family, text);
}

bool sees(const spec::Model &model) {
  const std::vector<spec::Layer> &layers = model.streams.back().layers;
  return std::any_of(layers.begin(), layers.end(), [](const auto &layer) {
    return std::holds_alternative<spec::Insert>(layer.op);
  });
}

void adaptToSight(const File &model, spec::Model &description) {
  const File &file = *model.sight();
  std::optional<double> eps =
      file.real(kVision + "attention.layer_norm_epsilon");
  bool intern = file.text("clip.projector_type") ==
                std::optional<std::string_view>("internvl");
  auto adapt = [&](spec::Norm &norm) {
    // Gemma's gains are stored whole, not without their 1.
    norm.offset = 0;
    if (eps)
      norm.eps = std::strtod(spell(*eps).c_str(), nullptr);
  };
  for (size_t i = 0; i + 1 < description.streams.size(); ++i)
    for (spec::Layer &layer : description.streams[i].layers) {
      if (auto *block = std::get_if<spec::Block>(&layer.op))
        adapt(block->norm);
      // That of InternVL's projector is fixed.
      if (auto *norm = std::get_if<spec::Norm>(&layer.op);
          norm && !(intern && description.streams[i].name == "images"))
        adapt(*norm);
    }
}

} // namespace attune::gguf

namespace attune {

std::optional<std::string> readGgufPreparation(const std::string &path,
                                               DiagnosticEngine &diags) {
  std::optional<gguf::File> file = gguf::openFile(path, diags);
  if (!file)
    return std::nullopt;
  if (!file->sight())
    return "";
  gguf::SightReader reader(*file, diags);
  if (!reader.open())
    return std::nullopt;
  return reader.preparation();
}

} // namespace attune
