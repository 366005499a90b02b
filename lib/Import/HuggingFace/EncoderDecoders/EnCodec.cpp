//===- EnCodec.cpp - config.json of EnCodec ---------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Two models in one: the decoder makes samples of codes, the encoder vectors of
// samples, whose codes are the nearest. Published are the forms of 24 kHz
// (causal), 48 kHz (two channels, pieces with norms over each) and 32 kHz
// (neither).

#include "../Architectures.h"
#include "EncoderDecoder.h"
#include "attune/Import/HuggingFace/StreamBuilder.h"

#include <cmath>

namespace attune::hf {

using namespace spec;

namespace {
/// What holds for all convolutions of a codec.
struct Form {
  bool mirrors = true; ///< at both ends of a sound, which else is silent there
  bool causal = false;
  bool normed = false;   ///< each over all of its result
  bool shortcut = false; ///< residual blocks have one beside them
};

/// The layers of the decoder or the encoder under their numbers in its class.
/// With shortcuts it is several streams: one ends where a shortcut begins.
class CodecBuilder {
public:
  /// `part` is "decoder" or "encoder". What it reads has `width` channels; 0:
  /// it is codes.
  CodecBuilder(Config &config, const std::string &prefix,
               const std::string &part, int64_t width, Form form)
      : config(config), prefix(prefix), part(part), form(form) {
    begin("", width);
  }

  void codebooks(const std::vector<std::string> &codes, int64_t size,
                 int64_t width, bool hasNone);
  void conv(const char *key, int64_t out, int64_t kernel, int64_t stride = 1) {
    place(next() + ".conv", key, out, kernel, stride);
  }
  void lstm(int64_t layers);
  void activate() { elu(next()); }
  void grow(int64_t out, int64_t ratio);
  void residual(int64_t inner, int64_t kernel);
  std::vector<Stream> take(const std::string &name);

private:
  std::string next() { return part + ".layers." + std::to_string(number++); }
  void place(const std::string &name, const char *key, int64_t out,
             int64_t kernel, int64_t stride = 1);
  void norm(const std::string &name);
  void elu(const std::string &name);
  void add(const std::string &name, const char *key, const std::string &source);
  void end(const std::string &name);
  void begin(const std::string &source, int64_t width);

  Config &config;
  std::string prefix, part;
  Form form;
  std::optional<StreamBuilder> stream;
  std::string input;           ///< what it reads
  std::vector<Stream> streams; ///< those before it
  int64_t number = 0;
  std::string last; ///< the name of what a block or an LSTM reads
};
} // namespace

/// Ends a stream.
void CodecBuilder::end(const std::string &name) {
  Stream &ended = streams.emplace_back(stream->take());
  ended.name = name;
  ended.input = input;
  ended.location = config.locate();
}

/// Begins one behind the layer `source`, whose width is `width`.
void CodecBuilder::begin(const std::string &source, int64_t width) {
  stream.emplace(config, prefix, width);
  input = source;
}

void CodecBuilder::codebooks(const std::vector<std::string> &codes,
                             int64_t size, int64_t width, bool hasNone) {
  for (size_t k = 0; k < codes.size(); ++k) {
    std::string name = "quantizer.layers." + std::to_string(k) + ".codebook";
    Embedding table;
    table.vocab = size + (hasNone ? 1 : 0);
    table.width = width;
    if (k > 0)
      table.input = codes[k];
    std::vector<WeightSource> &rows =
        stream->add(name, "codebook_size", table, width).weights["weight"];
    rows = {{prefix + name + ".embed", false, 0, -1}};
    // No code adds nothing.
    if (hasNone)
      rows.push_back({prefix + name + ".embed", false, 0, 1, /*stride=*/0,
                      /*count=*/1, /*step=*/0, /*scale=*/0});
  }
}

/// The norm of the convolution "<layer>.conv" is named "<layer>.norm".
static std::string normOf(const std::string &conv) {
  return conv.substr(0, conv.size() - std::string_view("conv").size()) + "norm";
}

/// A convolution that gives a place for each stride; one of a single place is a
/// linear layer.
void CodecBuilder::place(const std::string &name, const char *key, int64_t out,
                         int64_t kernel, int64_t stride) {
  last = name;
  if (kernel == 1) {
    Linear linear;
    linear.out = out;
    linear.bias = true;
    stream->add(name, key, linear, out);
  } else {
    Conv conv;
    conv.out = out;
    conv.channels = stream->getWidth();
    conv.kernel = {kernel};
    conv.stride = {stride};
    int64_t all = kernel - stride;
    conv.padding = {form.causal ? all : all - all / 2};
    conv.same = true;
    conv.reflect = form.mirrors;
    conv.causal = form.causal;
    stream->add(name, key, conv, out);
  }
  if (!form.normed)
    return;
  InstanceNorm norm;
  norm.together = true;
  last = normOf(name);
  stream->add(last, "norm_type", norm);
}

void CodecBuilder::elu(const std::string &name) {
  Function function;
  function.activation = Activation::Elu;
  stream->add(name, "model_type", function);
}

void CodecBuilder::add(const std::string &name, const char *key,
                       const std::string &source) {
  Add op;
  op.source = source;
  stream->add(name, key, op);
  last = name;
}

void CodecBuilder::lstm(int64_t layers) {
  std::string name = next(), source = last;
  Recurrent recurrent;
  recurrent.cell = CellKind::Lstm;
  recurrent.width = stream->getWidth();
  recurrent.layers = layers;
  stream->add(name + ".lstm", "num_lstm_layers", recurrent);
  add(name, "num_lstm_layers", prefix + source);
}

/// The transposed convolution of two strides: its tensor [in, out, kernel] has,
/// for each place of the kernel, a matrix of its own.
void CodecBuilder::grow(int64_t out, int64_t ratio) {
  Conv conv;
  conv.out = out;
  conv.channels = stream->getWidth();
  conv.kernel = {2 * ratio};
  conv.stride = {ratio};
  conv.padding = {0};
  conv.transposed = true;
  conv.causal = form.causal;
  last = next() + ".conv";
  if (form.normed)
    conv.norm = InstanceNorm{1e-5, /*together=*/true};
  Layer &layer = stream->add(last, "upsampling_ratios", conv, out);
  std::vector<WeightSource> &places = layer.weights["weight"];
  for (int64_t place = 0; place < 2 * ratio; ++place) {
    WeightSource source = {prefix + last + ".weight", true, place, place + 1};
    source.stride = 2 * ratio;
    source.count = out;
    places.push_back(source);
  }
  if (!form.normed)
    return;
  for (const char *role : {".weight", ".bias"})
    layer.weights[std::string("norm") + role] = {
        {prefix + normOf(last) + role, false, 0, -1}};
}

/// Two convolutions, each behind an activation, and what they read, itself or
/// through one of a single place.
void CodecBuilder::residual(int64_t inner, int64_t kernel) {
  std::string mark =
      (part == "encoder" ? "_of_samples_" : "_") + std::to_string(number);
  std::string name = next(), read = prefix + last, source = read;
  int64_t width = stream->getWidth();
  if (form.shortcut) {
    end("before" + mark);
    begin(read, width);
    place(name + ".shortcut.conv", "use_conv_shortcut", width, 1);
    source = "beside" + mark;
    end(source);
    begin(read, width);
  }
  elu(name + ".block.0");
  place(name + ".block.1.conv", "residual_kernel_size", inner, kernel);
  elu(name + ".block.2");
  place(name + ".block.3.conv", "residual_kernel_size", width, 1);
  add(name, "num_residual_layers", source);
}

std::vector<Stream> CodecBuilder::take(const std::string &name) {
  end(name);
  return std::move(streams);
}

/// What no published model of codes has.
static void refuseOthers(Config &config) {
  auto refuse = [&](const char *key, bool present, const char *why) {
    if (present)
      config.error(key, why);
  };
  refuse("num_residual_layers", config.integer("num_residual_layers", 1) != 1,
         "expected one residual block for each ratio");
  refuse("trim_right_ratio", config.real("trim_right_ratio", 1) != 1,
         "expected 1: all that is cut off is behind the sound");
  // It applies from the second residual block on.
  config.ignore({"dilation_growth_rate"});
}

static Form readForm(Config &config) {
  Form form;
  std::string norm = config.text("norm_type", "weight_norm");
  form.normed = norm == "time_group_norm";
  if (norm != "weight_norm" && !form.normed)
    config.error("norm_type", "expected \"weight_norm\" or "
                              "\"time_group_norm\", found " +
                                  quote(norm));
  std::string padding = config.text("pad_mode", "reflect");
  form.mirrors = padding == "reflect";
  if (padding != "constant" && !form.mirrors)
    config.error("pad_mode", "expected \"reflect\" or \"constant\", found " +
                                 quote(padding));
  form.causal = config.flag("use_causal_conv", true);
  form.shortcut = config.flag("use_conv_shortcut", true);
  if (form.normed && form.causal)
    config.error("use_causal_conv",
                 "a \"time_group_norm\" sees all samples, and a causal "
                 "convolution no later ones");
  return form;
}

/// Reads how many seconds a piece has, and the share that pieces overlap.
static void readPieces(Config &config, Playback &playback) {
  playback.scaled = config.flag("normalize", false);
  if (!config.get("chunk_length_s")) {
    config.ignore({"overlap"});
    return;
  }
  double seconds = config.real("chunk_length_s", std::nullopt);
  double overlap = config.real("overlap", std::nullopt);
  if (overlap >= 1)
    config.error("overlap", "expected a share of a piece, which is less than "
                            "1");
  double samples = seconds * double(playback.rate);
  if (samples < 1 || samples > double(maxSize)) {
    config.error("chunk_length_s", "makes no piece of at least one sample");
    return;
  }
  playback.piece = int64_t(samples);
  // As the class computes it.
  playback.step =
      std::max<int64_t>(1, int64_t((1.0 - overlap) * double(playback.piece)));
}

static std::vector<int64_t> readRatios(Config &config) {
  std::vector<int64_t> ratios;
  const Value *list = config.get("upsampling_ratios");
  if (!list)
    return {8, 5, 4, 2};
  for (const Value &ratio : list->elements)
    if (ratio.kind == Value::Kind::Integer && ratio.integer >= 1 &&
        ratio.integer <= 1024)
      ratios.push_back(ratio.integer);
  if (ratios.empty() || ratios.size() != list->elements.size() ||
      ratios.size() > 16)
    config.error("upsampling_ratios", "expected up to 16 whole numbers from 1 "
                                      "on");
  return ratios;
}

/// How many codebooks there are at the highest bandwidth.
static int64_t countCodebooks(Config &config) {
  double bandwidth = 24;
  if (const Value *list = config.get("target_bandwidths");
      list && !list->elements.empty())
    bandwidth = list->elements.back().real;
  int64_t hop = 1;
  for (int64_t ratio : readRatios(config))
    hop *= ratio;
  auto rate = double(config.integer("sampling_rate", 24000));
  double frames = std::ceil(rate / double(hop));
  double bits =
      std::ceil(std::log2(double(config.integer("codebook_size", 1024))));
  double books = std::floor(1000 * bandwidth / (frames * std::max(bits, 1.0)));
  if (books >= 1 && books <= 64)
    return int64_t(books);
  config.error("target_bandwidths", "expected 1 to 64 codebooks at the highest "
                                    "bandwidth");
  return 1;
}

std::optional<SoundCodec>
readSoundCodec(Config &config, const std::string &prefix,
               const std::vector<std::string> &codes) {
  SoundCodec result;
  Playback &playback = result.playback;
  refuseOthers(config);
  Form form = readForm(config);
  playback.inputs = codes;
  playback.location = config.locate();
  playback.rate = config.integer("sampling_rate", 24000);
  readPieces(config, playback);
  const Value *bandwidths = config.get("target_bandwidths");
  int64_t sounds = config.integer("audio_channels", 1, /*most=*/2);
  int64_t width = config.integer("hidden_size", 128);
  int64_t filters = config.integer("num_filters", 32);
  int64_t size = config.integer("codebook_size", 1024);
  int64_t channels = config.integer("codebook_dim", width);
  if (channels != width)
    config.error("codebook_dim", "is not hidden_size, which the decoder reads");
  int64_t kernel = config.integer("kernel_size", 7);
  int64_t lastKernel = config.integer("last_kernel_size", 7);
  int64_t residualKernel = config.integer("residual_kernel_size", 3);
  int64_t compress = config.integer("compress", 2);
  int64_t layers = config.integer("num_lstm_layers", 2);
  std::vector<int64_t> ratios = readRatios(config);
  if (config.hasErrors())
    return std::nullopt;
  int64_t wide = filters << ratios.size();
  if (wide > maxSize) {
    config.error("num_filters", "makes too many channels");
    return std::nullopt;
  }

  // At a lower bandwidth the first codebooks are all that there is.
  bool hasNone = !bandwidths || bandwidths->elements.size() > 1;
  if (hasNone)
    playback.none = size;
  CodecBuilder decoder(config, prefix, "decoder", 0, form);
  decoder.codebooks(codes, size, width, hasNone);
  decoder.conv("kernel_size", wide, kernel);
  decoder.lstm(layers);
  for (int64_t ratio : ratios) {
    decoder.activate();
    wide /= 2;
    decoder.grow(wide, ratio);
    decoder.residual(std::max<int64_t>(wide / compress, 1), residualKernel);
  }
  decoder.activate();
  decoder.conv("last_kernel_size", sounds, lastKernel);
  result.streams = decoder.take("sound");
  result.streams.front().input = codes.front();

  // The encoder does each step of the decoder backwards, in reverse order.
  CodecBuilder encoder(config, prefix, "encoder", sounds, form);
  wide = filters;
  encoder.conv("kernel_size", wide, kernel);
  for (size_t i = ratios.size(); i-- > 0;) {
    encoder.residual(std::max<int64_t>(wide / compress, 1), residualKernel);
    encoder.activate();
    wide *= 2;
    encoder.conv("upsampling_ratios", wide, 2 * ratios[i], ratios[i]);
  }
  encoder.lstm(layers);
  encoder.activate();
  encoder.conv("last_kernel_size", width, lastKernel);
  result.encoder = encoder.take("samples");
  result.encoder.front().input = "input_values";
  result.samples.name = "input_values";
  result.samples.shape = {{-1, "waves"}, {-1, "samples"}, {sounds, ""}};
  result.samples.location = config.locate();
  Audio &audio = result.audio;
  audio.input = "input_values";
  audio.rate = playback.rate;
  audio.window = audio.hop = 0;
  audio.location = config.locate();
  return result;
}

std::vector<std::string> declareCodes(Config &config, const std::string &name,
                                      const std::string &batch,
                                      const std::string &frames, int64_t count,
                                      Model &model) {
  std::vector<std::string> names;
  for (int64_t k = 0; k < count; ++k) {
    TensorSpec input;
    input.name = name + "_" + std::to_string(k);
    input.dtype = DType::I64;
    input.shape = {{-1, batch}, {-1, frames}};
    input.location = config.locate();
    names.push_back(input.name);
    model.inputs.push_back(std::move(input));
  }
  return names;
}

std::optional<Model> importEnCodec(ImportContext &context) {
  Config &config = context.config;
  Model model;
  model.name = "encodec";
  std::vector<std::string> codes = declareCodes(
      config, "audio_codes", "batch", "frames", countCodebooks(config), model);
  std::optional<SoundCodec> codec = readSoundCodec(config, "", codes);
  if (!codec)
    return std::nullopt;
  codec->streams.back().name = "main";
  model.streams = std::move(codec->encoder);
  for (Stream &stream : codec->streams)
    model.streams.push_back(std::move(stream));
  model.inputs.push_back(std::move(codec->samples));
  model.playback = std::move(codec->playback);
  model.audio = std::move(codec->audio);
  const Layer &last = model.streams.back().layers.back();
  model.outputs.push_back({"audio_values", last.name, last.location});
  return model;
}

} // namespace attune::hf
