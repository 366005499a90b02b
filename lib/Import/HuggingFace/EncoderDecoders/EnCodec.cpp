//===- EnCodec.cpp - config.json of EnCodec ---------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// The decoder alone: codes in, samples out. What makes codes of a sound is not
// read.

#include "../Architectures.h"
#include "EncoderDecoder.h"
#include "attune/Import/HuggingFace/StreamBuilder.h"

#include <cmath>

namespace attune::hf {

using namespace spec;

namespace {
/// The layers of the decoder under their numbers in its class.
class DecoderBuilder {
public:
  DecoderBuilder(Config &config, const std::string &prefix, bool mirrors)
      : stream(config, prefix), prefix(prefix), mirrors(mirrors) {}

  void codebooks(const std::vector<std::string> &codes, int64_t size,
                 int64_t width);
  void conv(const char *key, int64_t out, int64_t kernel) {
    place(next() + ".conv", key, out, kernel);
  }
  void lstm(int64_t layers);
  void activate() { elu(next()); }
  void grow(int64_t out, int64_t ratio);
  void residual(int64_t inner, int64_t kernel);

  StreamBuilder stream;

private:
  std::string next() { return "decoder.layers." + std::to_string(number++); }
  void place(const std::string &name, const char *key, int64_t out,
             int64_t kernel);
  void elu(const std::string &name);
  void add(const std::string &name, const char *key, const std::string &source);

  std::string prefix;
  bool mirrors; ///< at both ends of a sound, which else is silent there
  int64_t number = 0;
  std::string last; ///< the name of what a block or an LSTM reads
};
} // namespace

void DecoderBuilder::codebooks(const std::vector<std::string> &codes,
                               int64_t size, int64_t width) {
  for (size_t k = 0; k < codes.size(); ++k) {
    std::string name = "quantizer.layers." + std::to_string(k) + ".codebook";
    Embedding table;
    table.vocab = size;
    table.width = width;
    if (k > 0)
      table.input = codes[k];
    stream.add(name, "codebook_size", table, width).weights["weight"] = {
        {prefix + name + ".embed", false, 0, -1}};
  }
}

/// A convolution that keeps the number of places; one of a single place is a
/// linear layer.
void DecoderBuilder::place(const std::string &name, const char *key,
                           int64_t out, int64_t kernel) {
  last = name;
  if (kernel == 1) {
    Linear linear;
    linear.out = out;
    linear.bias = true;
    stream.add(name, key, linear, out);
    return;
  }
  Conv conv;
  conv.out = out;
  conv.channels = stream.getWidth();
  conv.kernel = {kernel};
  conv.stride = {1};
  conv.padding = {kernel / 2};
  conv.same = true;
  conv.reflect = mirrors;
  stream.add(name, key, conv, out);
}

void DecoderBuilder::elu(const std::string &name) {
  Function function;
  function.activation = Activation::Elu;
  stream.add(name, "model_type", function);
}

void DecoderBuilder::add(const std::string &name, const char *key,
                         const std::string &source) {
  Add op;
  op.source = prefix + source;
  stream.add(name, key, op);
}

void DecoderBuilder::lstm(int64_t layers) {
  std::string name = next(), source = last;
  Recurrent recurrent;
  recurrent.cell = CellKind::Lstm;
  recurrent.width = stream.getWidth();
  recurrent.layers = layers;
  stream.add(name + ".lstm", "num_lstm_layers", recurrent);
  add(name, "num_lstm_layers", source);
}

/// The transposed convolution of two strides: its tensor [in, out, kernel] has,
/// for each place of the kernel, a matrix of its own.
void DecoderBuilder::grow(int64_t out, int64_t ratio) {
  Conv conv;
  conv.out = out;
  conv.channels = stream.getWidth();
  conv.kernel = {2 * ratio};
  conv.stride = {ratio};
  conv.padding = {0};
  conv.transposed = true;
  last = next() + ".conv";
  Layer &layer = stream.add(last, "upsampling_ratios", conv, out);
  std::vector<WeightSource> &places = layer.weights["weight"];
  for (int64_t place = 0; place < 2 * ratio; ++place) {
    WeightSource source = {prefix + last + ".weight", true, place, place + 1};
    source.stride = 2 * ratio;
    source.count = out;
    places.push_back(source);
  }
}

/// Two convolutions, each behind an activation.
void DecoderBuilder::residual(int64_t inner, int64_t kernel) {
  std::string name = next(), source = last;
  int64_t width = stream.getWidth();
  elu(name + ".block.0");
  place(name + ".block.1.conv", "residual_kernel_size", inner, kernel);
  elu(name + ".block.2");
  place(name + ".block.3.conv", "residual_kernel_size", width, 1);
  add(name, "num_residual_layers", source);
  last = name;
}

/// What no published model of codes has, or what is not read.
static void refuseOthers(Config &config) {
  std::string norm = config.text("norm_type", "weight_norm");
  if (norm != "weight_norm")
    config.error("norm_type", "expected \"weight_norm\", found " + quote(norm));
  auto refuse = [&](const char *key, bool present, const char *why) {
    if (present)
      config.error(key, why);
  };
  refuse("use_causal_conv", config.flag("use_causal_conv", true),
         "convolutions that see no later sample are not supported");
  refuse("use_conv_shortcut", config.flag("use_conv_shortcut", true),
         "convolutions beside residual blocks are not supported");
  config.mustBeFalse("normalize", "sounds with a loudness of their own beside "
                                  "the codes are not supported");
  refuse("chunk_length_s", config.get("chunk_length_s"),
         "sounds in overlapping pieces are not supported");
  refuse("num_residual_layers", config.integer("num_residual_layers", 1) != 1,
         "expected one residual block behind each transposed convolution");
  refuse("audio_channels", config.integer("audio_channels", 1) != 1,
         "expected one channel");
  // Their dilation is that of the second block on; overlap and the trimmed side
  // are those of pieces and of causal convolutions.
  config.ignore({"dilation_growth_rate", "overlap", "trim_right_ratio"});
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

std::optional<SoundDecoder>
readSoundDecoder(Config &config, const std::string &prefix,
                 const std::vector<std::string> &codes) {
  SoundDecoder result;
  refuseOthers(config);
  result.rate = config.integer("sampling_rate", 24000);
  config.get("target_bandwidths");
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
  std::string padding = config.text("pad_mode", "reflect");
  if (padding != "reflect" && padding != "constant")
    config.error("pad_mode", "expected \"reflect\" or \"constant\", found " +
                                 quote(padding));
  std::vector<int64_t> ratios = readRatios(config);
  if (config.hasErrors())
    return std::nullopt;
  int64_t wide = filters << ratios.size();
  if (wide > maxSize) {
    config.error("num_filters", "makes too many channels");
    return std::nullopt;
  }

  DecoderBuilder decoder(config, prefix, padding == "reflect");
  decoder.codebooks(codes, size, width);
  decoder.conv("kernel_size", wide, kernel);
  decoder.lstm(layers);
  for (int64_t ratio : ratios) {
    decoder.activate();
    wide /= 2;
    decoder.grow(wide, ratio);
    decoder.residual(std::max<int64_t>(wide / compress, 1), residualKernel);
  }
  decoder.activate();
  decoder.conv("last_kernel_size", /*out=*/1, lastKernel);
  result.stream = decoder.stream.take();
  result.stream.name = "sound";
  result.stream.input = codes.front();
  result.stream.location = config.locate();
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
  std::optional<SoundDecoder> decoder = readSoundDecoder(config, "", codes);
  if (!decoder)
    return std::nullopt;
  decoder->stream.name = "main";
  model.streams.push_back(std::move(decoder->stream));
  const Layer &last = model.streams.back().layers.back();
  model.outputs.push_back({"audio_values", last.name, last.location});
  return model;
}

} // namespace attune::hf
