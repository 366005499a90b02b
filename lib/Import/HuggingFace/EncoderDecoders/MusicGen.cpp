//===- MusicGen.cpp - config.json of MusicGen -------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// T5 reads the text, the decoder writes a frame of codes at a time, and EnCodec
// makes samples of them.

#include "../Architectures.h"
#include "../Keys.h"
#include "EncoderDecoder.h"
#include "attune/Import/HuggingFace/StreamBuilder.h"

#include <cmath>

namespace attune::hf {

using namespace spec;

namespace {
class MusicGenImporter {
public:
  explicit MusicGenImporter(ImportContext &context)
      : context(context), root(context.config) {}
  std::optional<Model> run();

private:
  std::optional<Config> part(const char *key, const std::string &type);
  bool readSizes(Config &config);
  void addText(Config &config, Stream text);
  void addMusic(Config &config);
  bool addSound(Config &config);

  ImportContext &context;
  Config &root;
  Model model;
  std::vector<std::string> codes; ///< inputs, one for each codebook
  int64_t width = 0, heads = 0, layers = 0, inner = 0, vocab = 0, books = 0;
  int64_t length = 0, channels = 1;
  std::optional<Activation> activation;
};
} // namespace

/// One of the three models within the file.
std::optional<Config> MusicGenImporter::part(const char *key,
                                             const std::string &type) {
  const Value *object = root.get(key);
  if (!object || !object->isObject()) {
    root.error(key, "expected an object, the configuration of " + type);
    return std::nullopt;
  }
  Config config = root.inner(*object, key);
  if (std::string found = config.text("model_type", type); found != type) {
    config.error("model_type",
                 "expected " + quote(type) + ", found " + quote(found));
    return std::nullopt;
  }
  return config;
}

bool MusicGenImporter::readSizes(Config &config) {
  width = config.integer("hidden_size", 1024);
  heads = config.integer("num_attention_heads", 16);
  layers = config.layers("num_hidden_layers", 24);
  inner = config.integer("ffn_dim", 4096);
  vocab = config.integer("vocab_size", 2048);
  length = config.integer("max_position_embeddings", 2048);
  books = config.integer("num_codebooks", 4, /*most=*/64);
  activation = config.activation("activation_function", "gelu");
  config.mustShare("num_attention_heads", heads, "hidden_size", width);
  channels = config.integer("audio_channels", 1, /*most=*/2);
  if (books % channels != 0)
    config.error("num_codebooks", std::to_string(books) +
                                      " are not as many for each of " +
                                      std::to_string(channels) + " channels");
  if (config.get("cross_attention_hidden_size"))
    config.error("cross_attention_hidden_size",
                 "a text without a projection of its own is not supported");
  if (width < 4)
    config.error("hidden_size", "expected 4 channels or more");
  // Dropout acts in training only. The class scales no embedding, whatever
  // scale_embedding says, and ties none.
  config.ignore({"activation_dropout", "attention_dropout",
                 "classifier_dropout", "dropout", "initializer_factor",
                 "layerdrop", "scale_embedding", "tie_word_embeddings"});
  return !config.hasErrors() && activation;
}

/// The text's states as the decoder reads them: projected if they are not as
/// wide as its own.
void MusicGenImporter::addText(Config &config, Stream text) {
  const Layer last = text.layers.back();
  model.outputs.push_back(
      {"encoder_last_hidden_state", last.name, last.location});
  if (last.width != width) {
    StreamBuilder projection(config, "", last.width);
    Linear linear;
    linear.out = width;
    linear.bias = true;
    projection.add("enc_to_dec_proj", "hidden_size", linear, width);
    text.layers.push_back(projection.take().layers.front());
  }
  text.input = "input_ids";
  model.streams.push_back(std::move(text));
}

void MusicGenImporter::addMusic(Config &config) {
  Block block;
  block.norm.location = config.locate("hidden_size");
  Attention &attention = block.attention.emplace();
  attention.heads = attention.kvHeads = heads;
  attention.headDim = attention.valueDim = width / heads;
  attention.scale = 1 / std::sqrt(double(std::max<int64_t>(width / heads, 1)));
  attention.sourceWidth = width;
  attention.location = config.locate("num_attention_heads");
  block.cross = attention;
  block.cross->source = "encoder";
  attention.causal = Causal::BottomRight;
  FFN &ffn = block.ffn.emplace();
  ffn.width = inner;
  ffn.activation = *activation;
  ffn.bias = false;
  ffn.location = config.locate("ffn_dim");

  const std::string prefix = "decoder.";
  StreamBuilder stream(config, prefix);
  for (int64_t k = 0; k < books; ++k) {
    Embedding table;
    table.vocab = vocab + 1; // the last stands for no code
    table.width = width;
    if (k > 0)
      table.input = codes[size_t(k)];
    stream.add("model.decoder.embed_tokens." + std::to_string(k), "vocab_size",
               table, width);
  }
  Positions positions;
  positions.kind = PositionKind::Sinusoidal;
  positions.layout = SinusoidLayout::CosinesFirst;
  stream.add("model.decoder.embed_positions", "max_position_embeddings",
             positions);
  stream.blocks("model.decoder.layers.{i}", "num_hidden_layers", layers, block,
                bartBlockTensors());
  stream.norm("model.decoder.layer_norm", block.norm);
  Linear all;
  all.out = books * vocab;
  Layer &scores = stream.add("lm_heads", "num_codebooks", all, all.out);
  for (int64_t k = 0; k < books; ++k)
    scores.weights["weight"].push_back(
        {prefix + "lm_heads." + std::to_string(k) + ".weight", false, 0, -1});
  Stream &music =
      model.streams.emplace_back(stream.take("decoder", codes.front()));
  const Layer &last = music.layers.back();
  model.outputs.insert(model.outputs.begin(),
                       {"logits", last.name, last.location});
}

/// Adds a codec of one channel, which makes two one after the other.
bool MusicGenImporter::addSound(Config &config) {
  // The sizes are others: the codec runs when all has been written.
  std::vector<std::string> written = declareCodes(
      config, "audio_codes", "sounds", "written", books / channels, model);
  std::optional<SoundCodec> codec =
      readSoundCodec(config, "audio_encoder.", written);
  if (!codec)
    return false;
  auto refuse = [&](bool present, const char *key, const char *why) {
    if (present)
      config.error(key, why);
  };
  refuse(codec->streams.size() > 1, "use_conv_shortcut",
         "is not supported within MusicGen, whose codec has none");
  refuse(codec->streams.back().layers.back().width > 1, "audio_channels",
         "expected one channel: MusicGen's codec makes them one by one");
  refuse(codec->playback.piece != 0, "chunk_length_s",
         "sounds in overlapping pieces are not supported within MusicGen");
  refuse(codec->playback.scaled, "normalize",
         "MusicGen writes no loudness beside the codes");
  model.streams.push_back(std::move(codec->encoder.back()));
  model.streams.push_back(std::move(codec->streams.back()));
  model.inputs.push_back(std::move(codec->samples));
  model.audio = std::move(codec->audio);
  Codes &several = model.codes.emplace();
  several.sound = "sound";
  several.rate = codec->playback.rate;
  return !config.hasErrors();
}

std::optional<Model> MusicGenImporter::run() {
  std::optional<Config> text = part("text_encoder", "t5"),
                        sound = part("audio_encoder", "encodec"),
                        music = part("decoder", "musicgen_decoder");
  if (!text || !sound || !music || !readSizes(*music))
    return std::nullopt;
  model.name = "musicgen";
  model.context = length;
  TensorSpec ids;
  ids.name = "input_ids";
  ids.dtype = DType::I64;
  ids.shape = {{-1, "batch"}, {-1, "seq"}};
  ids.location = text->locate("vocab_size");
  model.inputs.push_back(ids);
  codes = declareCodes(*music, "codes", "batch", "frames", books, model);
  bool sounds = addSound(*sound);
  std::optional<Stream> encoder =
      readT5Encoder(*text, context.checkpoint, "text_encoder.");
  if (!sounds || !encoder)
    return std::nullopt;
  addText(*music, std::move(*encoder));
  addMusic(*music);
  text->finish("the text encoder of MusicGen", keysOfClass("t5"));
  sound->finish("the audio encoder of MusicGen", keysOfClass("encodec"));
  music->finish("the decoder of MusicGen", keysOfClass("musicgen_decoder"));
  Codes &several = *model.codes;
  several.inputs = codes;
  several.channels = channels;
  several.pad = vocab;
  several.location = music->locate();
  model.generation.pad = model.generation.bos = vocab;
  model.generation.decoderStart = vocab;
  return std::move(model);
}

std::optional<Model> importMusicGen(ImportContext &context) {
  return MusicGenImporter(context).run();
}

} // namespace attune::hf
