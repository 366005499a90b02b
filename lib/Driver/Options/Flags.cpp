//===- Flags.cpp - The verbs and flags of the command line ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Flags.h"

#include "llvm/ADT/StringExtras.h"

#include <cmath>
#include <deque>

using namespace llvm;
using namespace attune;
using namespace attune::driver;

//===----------------------------------------------------------------------===//
// Verbs
//===----------------------------------------------------------------------===//

StringRef driver::getName(Verb verb) {
  static const StringRef names[] = {
      "compile", "run",        "generate", "embed",    "inspect",
      "import",  "verify",     "bench",    "tokenize", "chat",
      "serve",   "perplexity", "compare",  "split"};
  return names[unsigned(verb)];
}

ArrayRef<VerbInfo> driver::getVerbs() {
  static const VerbInfo verbs[] = {
      {Verb::Compile, "MODEL -o OUT", "Compile a model to a file",
       "Compiles a model to an executable, a library, an object or the text of "
       "any stage\nbetween. Without -o the text of a stage goes to stdout."},
      {Verb::Run, "MODEL --inputs I --outputs O",
       "Compile in memory and run one forward pass",
       "Compiles a model in memory and runs one forward pass on the tensors of "
       "a\nsafetensors file, matched by name."},
      {Verb::Generate, "MODEL --prompt TEXT",
       "Compile in memory and generate text",
       "Compiles a model in memory and continues a prompt, a token at a time, "
       "to stdout."},
      {Verb::Embed, "MODEL --text TEXT",
       "Compile in memory and turn texts into vectors",
       "Compiles a model in memory and pools what it makes of the tokens of a "
       "text: a line\nof JSON for each text, or one tensor for all."},
      {Verb::Chat, "MODEL", "Compile in memory and talk with the model",
       "Compiles a model in memory and talks with it: on a terminal with a "
       "line editor, else\nevery line of the standard input is a turn. /help "
       "lists the commands."},
      {Verb::Serve, "MODEL", "Compile in memory and serve over HTTP",
       "Compiles a model in memory and answers requests of OpenAI's interface "
       "over HTTP,\nmany at a time, until SIGTERM or Ctrl-C."},
      {Verb::Inspect, "MODEL_OR_BINARY",
       "Show parameters, FLOPs and bytes of a model",
       "Shows parameters, FLOPs, bytes and the memory plan of a model or of a "
       "compiled\nbinary, per layer and in total."},
      {Verb::Import, "FOLDER", "Print the description of a Hugging Face folder",
       "Prints the model description that a Hugging Face folder stands for."},
      {Verb::Verify, "MODEL", "Compare the fused code with the unfused",
       "Compiles a model with and without fusion, runs both on random and "
       "adversarial\ninputs and compares every layer. Exit code 3 if they "
       "differ."},
      {Verb::Bench, "MODEL", "Time a model beside the machine's peaks",
       "Compiles a model in memory and times a whole pass and, for causal "
       "language models, a\ncached step. of_peak is the share of what the "
       "machine does right before and after a run:\nof multiply-adds, in the "
       "type that the code computes in, or, where memory bounds it, of\nreads; "
       "in JSON, roof says which. The peaks are the best seen. Weights "
       "are random without\n--weights."},
      {Verb::Perplexity, "MODEL --file TEXT",
       "Compile in memory and measure how well it predicts a text",
       "Compiles a model in memory and measures how well it predicts the "
       "tokens of a text file:\ncross-entropy (the mean of minus the logarithm "
       "of what it gave each token, in nats)\nand perplexity, its "
       "exponential. With --quantize=... that tells what compression costs."},
      {Verb::Compare, "TEACHER STUDENT --inputs I",
       "Compile two models in memory and compare what they give",
       "Compiles two models in memory, runs both on the tensors of a "
       "safetensors file and compares\nthe outputs that they share: cosines, "
       "errors and, of logits, the divergence of their\nprobabilities and how "
       "often the best token is the same. --quantize, --lora and --dtype\n"
       "are the STUDENT's; the TEACHER multiplies f32. A TEACHER that is a "
       "safetensors file\nholds outputs of another program, PyTorch say, and "
       "the inputs that gave them."},
      {Verb::Split, "PROGRAM -o NAME",
       "Write a program of several ranks as a file for each",
       "Takes what compile --mesh has made apart: NAME.0, NAME.1 and so on are "
       "the program with the\nweights of one rank each, for machines without "
       "a common disk. Start each rank with its\nown: mpirun -n 1 ./NAME.0 "
       "... : -n 1 ./NAME.1 ..."},
      {Verb::Tokenize, "MODEL --text TEXT",
       "Print the ids and pieces of a text",
       "Cuts a text into tokens, as generate does with its prompt. MODEL is a "
       "folder or a file\nwith a tokenizer beside it, or the tokenizer's file "
       "itself."},
  };
  return verbs;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

std::optional<size_t> driver::pickWord(StringRef flag, StringRef value,
                                       ArrayRef<StringRef> words,
                                       std::string &problem) {
  for (size_t i = 0; i < words.size(); ++i)
    if (words[i] == value)
      return i;
  StringRef nearest = findNearest(value, words);
  problem =
      ("'" + value + "' is no value of " + flag +
       (nearest.empty() ? "; it" : "; did you mean '" + nearest + "'? It") +
       " takes one of: " + join(words, ", "))
          .str();
  return std::nullopt;
}

static bool applyImportEmit(const Flag &flag, StringRef value, Options &options,
                            std::string &problem) {
  options.emit = value.str();
  return pickWord(flag.spelling(), value, {"json", "mlir"}, problem)
      .has_value();
}

static bool applyDType(const Flag &flag, StringRef value, Options &options,
                       std::string &problem) {
  SmallVector<StringRef> words = {"f32", "bf16", "f16"};
  // A way to multiply, not to store.
  if (options.verb != Verb::Inspect && options.verb != Verb::Import)
    words.push_back("tf32");
  auto index = pickWord(flag.spelling(), value, words, problem);
  static const spec::DType types[] = {spec::DType::F32, spec::DType::BF16,
                                      spec::DType::F16, spec::DType::F32};
  if (index)
    options.dtype = types[*index];
  options.tf32 = value == "tf32";
  return index.has_value();
}

static bool applyQuantize(const Flag &, StringRef value, Options &options,
                          std::string &problem) {
  options.quantize = QuantizationRules::parse(value, problem);
  return options.quantize.has_value();
}

static bool applyActivations(const Flag &flag, StringRef value,
                             Options &options, std::string &problem) {
  auto index = pickWord(flag.spelling(), value, {"bytes", "exact"}, problem);
  options.exactActivations = index == 1;
  return index.has_value();
}

static bool applyKvCache(const Flag &flag, StringRef value, Options &options,
                         std::string &problem) {
  auto index =
      pickWord(flag.spelling(), value, {"full", "int8", "fp8"}, problem);
  static const spec::KvCache forms[] = {
      spec::KvCache::Full, spec::KvCache::Int8, spec::KvCache::Fp8};
  if (index)
    options.kvCache = forms[*index];
  return index.has_value();
}

static bool applyWindowSlack(const Flag &flag, StringRef value,
                             Options &options, std::string &problem) {
  if (!value.getAsInteger(10, options.windowSlack) &&
      options.windowSlack >= spec::leastWindowSlack &&
      options.windowSlack <= std::numeric_limits<int32_t>::max())
    return true;
  problem = flag.spelling() + " takes a number of positions from " +
            std::to_string(spec::leastWindowSlack) + " on, not '" +
            value.str() + "'";
  return false;
}

static bool applyImageSize(const Flag &flag, StringRef value, Options &options,
                           std::string &problem) {
  constexpr int64_t most = 16384;
  auto [height, width] = value.split('x');
  ImageSize &size = options.imageSize.emplace();
  bool square = !value.contains('x');
  if (!height.getAsInteger(10, size.height) && size.height > 0 &&
      size.height <= most &&
      !(square ? height : width).getAsInteger(10, size.width) &&
      size.width > 0 && size.width <= most)
    return true;
  problem = flag.spelling() + " takes pixels up to " + std::to_string(most) +
            ", as in 448 or 448x672 (height and width), not '" + value.str() +
            "'";
  return false;
}

static bool applyLowRank(const Flag &, StringRef value, Options &options,
                         std::string &problem) {
  options.lowRank = LowRankRules::parse(value, problem);
  return options.lowRank.has_value();
}

static bool applyPruneHeads(const Flag &, StringRef value, Options &options,
                            std::string &problem) {
  options.pruneHeads = HeadRules::parse(value, problem);
  return options.pruneHeads.has_value();
}

static bool applyMesh(const Flag &flag, StringRef value, Options &options,
                      std::string &problem) {
  options.mesh = MeshAxes::parse(value, problem);
  if (!options.mesh)
    problem = flag.spelling() + ": " + problem;
  return options.mesh.has_value();
}

/// A number with one of some units behind it.
static std::optional<double>
readWithUnit(StringRef text, ArrayRef<std::pair<StringRef, double>> units) {
  for (auto [unit, factor] : units) {
    double number;
    StringRef digits = text;
    if (digits.consume_back(unit) && !digits.getAsDouble(number) &&
        number > 0 && number < 1e15)
      return number * factor;
  }
  return std::nullopt;
}

static bool applyLink(const Flag &flag, StringRef value, Options &options,
                      std::string &problem) {
  auto [latency, bandwidth] = value.split(',');
  // "s" comes last: the others end in it.
  auto seconds = readWithUnit(
      latency, {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}});
  auto bytes = readWithUnit(
      bandwidth, {{"GB/s", 1e9}, {"MB/s", 1e6}, {"Gbit/s", 1e9 / 8}});
  if (!seconds || !bytes) {
    problem = flag.spelling() +
              ": expected LATENCY,BANDWIDTH as in 2us,25GB/s or 10us,100Gbit/s,"
              " found '" +
              value.str() + "'";
    return false;
  }
  options.link = {*seconds, *bytes};
  return true;
}

static bool applyFusion(const Flag &flag, StringRef value, Options &options,
                        std::string &problem) {
  auto index = pickWord(flag.spelling(), value, {"auto", "off"}, problem);
  options.fusion = index != 1;
  return index.has_value();
}

static bool applyMessageFormat(const Flag &flag, StringRef value, Options &,
                               std::string &problem) {
  return pickWord(flag.spelling(), value, {"text", "json"}, problem)
      .has_value();
}

static bool applyFormat(const Flag &flag, StringRef value, Options &options,
                        std::string &problem) {
  SmallVector<StringRef> words = {"table", "json"};
  if (options.verb == Verb::Inspect || options.verb == Verb::Compare)
    words.push_back("html");
  auto index = pickWord(flag.spelling(), value, words, problem);
  options.format = value.str();
  return index.has_value();
}

static bool applyThreads(const Flag &flag, StringRef value, Options &options,
                         std::string &problem) {
  if (!value.getAsInteger(10, options.threads) && options.threads >= 1 &&
      options.threads <= 1024)
    return true;
  problem =
      (flag.spelling() + " takes a number from 1 to 1024, not '" + value + "'")
          .str();
  return false;
}

static bool applyWindow(const Flag &flag, StringRef value, Options &options,
                        std::string &problem) {
  if (!value.getAsInteger(10, options.window) && options.window >= 2 &&
      options.window <= (1 << 24))
    return true;
  problem = (flag.spelling() + " takes a number of tokens from 2 on, not '" +
             value + "'")
                .str();
  return false;
}

static bool applyRuns(const Flag &flag, StringRef value, Options &options,
                      std::string &problem) {
  if (!value.getAsInteger(10, options.runs) && options.runs >= 1 &&
      options.runs <= 10000)
    return true;
  problem =
      (flag.spelling() + " takes a number from 1 to 10000, not '" + value + "'")
          .str();
  return false;
}

static bool applySeed(const Flag &flag, StringRef value, Options &options,
                      std::string &problem) {
  if (!value.getAsInteger(10, options.seed))
    return true;
  problem =
      (flag.spelling() + " takes a whole number, not '" + value + "'").str();
  return false;
}

static bool parseTolerance(const Flag &flag, StringRef value,
                           std::optional<double> &result,
                           std::string &problem) {
  double number;
  if (!value.getAsDouble(number) && std::isfinite(number) && number >= 0) {
    result = number;
    return true;
  }
  problem = (flag.spelling() + " takes a number from 0 on, not '" + value + "'")
                .str();
  return false;
}

static bool applyAtol(const Flag &flag, StringRef value, Options &options,
                      std::string &problem) {
  return parseTolerance(flag, value, options.atol, problem);
}
static bool applyRtol(const Flag &flag, StringRef value, Options &options,
                      std::string &problem) {
  return parseTolerance(flag, value, options.rtol, problem);
}

static bool applyDim(const Flag &flag, StringRef value, Options &options,
                     std::string &problem) {
  auto [name, number] = value.split('=');
  int64_t size;
  if (name.empty() || number.getAsInteger(10, size) || size < 1) {
    problem = (flag.spelling() + " takes NAME=SIZE with a size from 1 on, as " +
               "in --dim seq=17, not '" + value + "'")
                  .str();
    return false;
  }
  options.dims.emplace_back(name.str(), size);
  return true;
}

/// A path or name: anything but nothing.
template <std::string Options::*field>
static bool applyText(const Flag &flag, StringRef value, Options &options,
                      std::string &problem) {
  if (value.empty()) {
    problem = flag.spelling() + " is given an empty " + flag.value.str();
    return false;
  }
  options.*field = value.str();
  return true;
}

static bool applyCacheSize(const Flag &flag, StringRef value, Options &options,
                           std::string &problem) {
  runtime::Error error;
  if (runtime::parseBytes({flag.name.str(), value.str()}, options.cacheSize,
                          error))
    return true;
  problem = error.message;
  return false;
}

template <bool Options::*field>
static bool applySwitch(const Flag &, StringRef, Options &options,
                        std::string &) {
  options.*field = true;
  return true;
}

/// A flag that may be given several times.
template <std::vector<std::string> Options::*field>
static bool applyMore(const Flag &flag, StringRef value, Options &options,
                      std::string &problem) {
  if (value.empty()) {
    problem = flag.spelling() + " is given an empty " + flag.value.str();
    return false;
  }
  (options.*field).push_back(value.str());
  return true;
}

/// DIR or DIR:scale. A colon before anything but a number belongs to the name.
static bool applyLora(const Flag &flag, StringRef value, Options &options,
                      std::string &problem) {
  auto [folder, number] = value.rsplit(':');
  double scale = 1;
  if (number.empty() || number.getAsDouble(scale))
    folder = value;
  if (folder.empty() || !std::isfinite(scale)) {
    problem = (flag.spelling() + " takes DIR or DIR:SCALE, such as " +
               "--lora=adapter:0.5, not '" + value + "'")
                  .str();
    return false;
  }
  options.loras.push_back({folder.str(), scale});
  return true;
}

static bool applyTap(const Flag &flag, StringRef value, Options &options,
                     std::string &problem) {
  SmallVector<StringRef> names;
  value.split(names, ',');
  for (StringRef name : names) {
    if (name.empty()) {
      problem = flag.spelling() + " is given an empty NAME";
      return false;
    }
    options.taps.push_back(name.str());
  }
  return true;
}

static bool applyMatch(const Flag &flag, StringRef value, Options &options,
                       std::string &problem) {
  auto [teacher, student] = value.split(',');
  if (teacher.empty() || student.empty() || student.contains(',')) {
    problem = (flag.spelling() + " takes TEACHER,STUDENT, such as " +
               "--match=hidden_states[6],hidden_states[3], not '" + value + "'")
                  .str();
    return false;
  }
  options.matches.push_back({teacher.str(), student.str()});
  return true;
}

/// The runtime that is also inside executables reads its own flags.
static bool passOn(const Flag &flag, StringRef value, Options &options,
                   std::string &problem) {
  runtime::ParsedOption option{flag.name.str(),
                               flag.takesValue() ? value.str() : "true"};
  runtime::Error error;
  bool mine = false, good;
  if (flag.name == "memory-limit")
    good = options.team.set(option, mine, error);
  else if (options.verb == Verb::Run)
    good = options.run.set(option, mine, error);
  else if (options.verb == Verb::Embed)
    good = options.embed.set(option, mine, error);
  else if (options.verb == Verb::Tokenize)
    good = options.tokenize.set(option, mine, error);
  else if (options.verb == Verb::Chat)
    good = options.chat.set(option, mine, error);
  else if (options.verb == Verb::Serve)
    good = options.serve.set(option, mine, error);
  else
    good = options.generate.set(option, mine, error);
  problem = error.message;
  return good;
}

//===----------------------------------------------------------------------===//
// Flags
//===----------------------------------------------------------------------===//

namespace {
constexpr unsigned bit(Verb verb) { return 1u << unsigned(verb); }
constexpr unsigned compile = bit(Verb::Compile), run = bit(Verb::Run),
                   generate = bit(Verb::Generate), embed = bit(Verb::Embed),
                   inspect = bit(Verb::Inspect), import = bit(Verb::Import),
                   verify = bit(Verb::Verify), bench = bit(Verb::Bench),
                   tokenize = bit(Verb::Tokenize), chat = bit(Verb::Chat),
                   serve = bit(Verb::Serve), perplexity = bit(Verb::Perplexity),
                   compare = bit(Verb::Compare), apart = bit(Verb::Split);
constexpr unsigned running = run | generate | embed | chat | serve | verify |
                             bench | perplexity | compare;
constexpr unsigned compiling = compile | running;
constexpr unsigned every = compiling | inspect | import | tokenize;
} // namespace

static ArrayRef<Flag> ownFlags() {
  static const Flag flags[] = {
      {"o", "OUT", compile | import | inspect, applyText<&Options::output>,
       "Write the result here; it appears whole or not at all", "output"},
      {"o", "NAME", apart, applyText<&Options::output>,
       "Write NAME.0, NAME.1, ...; by default the program's own name",
       "output"},
      {"emit", "KIND", compile, applyText<&Options::emit>,
       "What to write: json, mlir (as imported), kernels, loops, vector, "
       "llvm, asm, ptx, cubin, obj, so, exe; by default what OUT's "
       "suffix says (.json "
       ".mlir .ll .s .ptx .cubin .o .so), else exe"},
      {"emit", "KIND", import, applyImportEmit,
       "What to write: json (default) or mlir"},
      {"weights", "PATH", compiling | import | inspect,
       applyText<&Options::weights>,
       "A safetensors file, an index or a folder; a Hugging Face folder brings "
       "its own. random: values from --seed, to try a model out"},
      {"lora", "DIR[:SCALE]", compiling | inspect, applyLora,
       "Merge a LoRA adapter, as PEFT saves it, into the weights, SCALE times "
       "(1); may be given several times"},
      {"lora-apart", "",
       compile | run | generate | embed | chat | serve | bench | perplexity,
       applySwitch<&Options::lorasApart>,
       "Keep the adapters of --lora beside the weights, which may be "
       "quantized, to be chosen by --adapter=NAME, the name of a folder"},
      {"adapter", "NAME", run | generate | embed | chat | serve, passOn,
       "Compute with this adapter of --lora-apart; requests of a server may "
       "name another as their model"},
      {"adapter", "NAME", bench | perplexity, applyText<&Options::adapter>,
       "Compute with this adapter of --lora-apart"},
      {"ignore-config-key", "NAME", every,
       applyMore<&Options::ignoredConfigKeys>,
       "Read config.json as if it did not have this key; may be given several "
       "times"},
      {"image-size", "HxW", every, applyImageSize,
       "Height and width in pixels that pictures are resized to, for models "
       "that take any size (Qwen-VL, Pixtral, Mistral 3); by default 448x448"},
      {"chat-template", "FILE", compile, applyText<&Options::chatTemplate>,
       "The chat template to build in; by default the one beside the "
       "tokenizer"},
      {"tokenizer", "FILE",
       compile | generate | embed | chat | serve | tokenize | perplexity,
       applyText<&Options::tokenizer>,
       "The tokenizer.json to build in; by default the one beside the model or "
       "the weights"},
      {"inputs", "FILE", run | generate, passOn,
       "Input tensors (safetensors), by name; to generate, those of the "
       "encoder"},
      {"inputs", "FILE", compare, applyText<&Options::inputsFile>,
       "Input tensors (safetensors), by name, of both models"},
      {"outputs", "FILE", run, passOn,
       "Where the output tensors go: safetensors, pictures if it ends in "
       ".html, one output alone if it ends in .npy"},
      {"dim", "NAME=SIZE", run, passOn,
       "A size that cannot be read off the inputs, as in --dim seq=17"},
      {"dim", "NAME=SIZE", inspect | verify | bench, applyDim,
       "Sizes to count for, to check or to run at, as in --dim seq=1024"},
      {"format", "FORMAT", inspect | compare, applyFormat,
       "table, json or html"},
      {"format", "FORMAT", bench, applyFormat, "table or json"},
      {"format", "FORMAT", perplexity, applyFormat,
       "table, or json: tokens, cross_entropy and perplexity"},
      {"file", "TEXT", perplexity, applyText<&Options::textFile>,
       "The text, in UTF-8"},
      {"window", "N", perplexity, applyWindow,
       "Tokens that the model sees at a time; by default 512, or its context "
       "if that is less"},
      {"runs", "N", bench, applyRuns, "Take the median of N runs; default 5"},
      {"seed", "N", verify | bench, applySeed,
       "Seed of the random inputs and of random weights"},
      {"seed", "N", compile | run | compare, applySeed,
       "Seed of --weights=random"},
      {"atol", "A", verify | compile, applyAtol,
       "Allowed difference, as a share of a layer's largest value"},
      {"rtol", "R", verify | compile, applyRtol,
       "Allowed difference, as a share of the value itself"},
      {"threads", "N", running | compile, applyThreads,
       "Threads to compile, to pack weights and to run on; by default one per "
       "core"},
      {"memory-limit", "SIZE",
       run | generate | embed | chat | serve | bench | perplexity, passOn,
       "Most memory for intermediate results, such as 512M"},
      {"target", "TARGET", compiling, applyText<&Options::target>,
       "cpu (default), cuda (kernels for an NVIDIA GPU, and what starts them) "
       "or a backend of a plugin"},
      {"gpu", "GPU", compiling, applyText<&Options::gpu>,
       "With --target=cuda: sm_80 (default), sm_90a, sm_100 and the like; one "
       "without a letter runs on later GPUs, too"},
      {"persistent-kernel", "", compile,
       applySwitch<&Options::persistentKernel>,
       "With --target=cuda: a decoder's step as one kernel, whose blocks go "
       "through it together, in place of a graph of many"},
      {"separate-norms", "", compiling, applySwitch<&Options::separateNorms>,
       "With --target=cuda: a norm is a kernel of its own; by default products "
       "of up to eight rows make it themselves"},
      {"cpu", "CPU", compiling, applyText<&Options::cpu>,
       "native (default), x86-64-v3, x86-64-v4 or any name LLVM knows; multi "
       "(code for several x86-64 CPUs, chosen at start); with --target=cuda "
       "the default is any CPU of this architecture"},
      {"dtype", "TYPE", compiling, applyDType,
       "Store weights, and cached keys and values, as f32, bf16 or f16; by "
       "default as the model says. With bf16, CPUs that can multiply it do. "
       "tf32: as f32, but a GPU's tensor cores round what they multiply to "
       "11 bits; with f32 they lose nothing, at a third of the speed"},
      {"dtype", "TYPE", inspect | import, applyDType,
       "Store weights, and cached keys and values, as f32, bf16 or f16; by "
       "default as the model says"},
      {"quantize", "FORMS",
       compile | run | generate | embed | chat | serve | bench | inspect |
           perplexity | compare | verify,
       applyQuantize,
       "int8: keep the matrices of linear layers in bytes, with a scale for "
       "each 128 neighbours; int4: in 4 bits, with a scale for each 32, or as "
       "in int4:g64, but those of the vocabulary in bytes; int4:asym or "
       "int4:g64:asym: with a zero point for each scale, too; fp8: in floats "
       "of 8 bits, with a scale for each 128; mxfp4: in floats of 4 bits, with "
       "a power of two for each 32. By name: "
       "'*.ffn.*=int4,lm_head=none,*=int8'. stored, the default: as a "
       "checkpoint has them that is quantized already. Bytes are what is "
       "multiplied, by fp8 and on a GPU numbers: on a GPU those of 16 bits "
       "where the other weights have 16"},
      {"activations", "FORM",
       compile | run | generate | embed | chat | serve | bench | perplexity |
           compare | verify,
       applyActivations,
       "What matrices in few bits multiply: bytes, into which activations are "
       "rounded by groups (CPUs), or exact, activations as they are, which "
       "takes longer. By default as the model says"},
      {"kv-cache", "FORM",
       compile | generate | chat | serve | bench | inspect | import |
           perplexity,
       applyKvCache,
       "int8 or fp8: cache keys and values in bytes, with a scale for each "
       "head and position; full: as --dtype says. By default as the model "
       "says"},
      {"window-slack", "N",
       compile | generate | chat | serve | bench | inspect | import |
           perplexity,
       applyWindowSlack,
       "Positions that the cache of a layer with a window has room for besides "
       "the window, instead of the whole context: at least a quarter of them "
       "can be taken back without computing the text again. By default as the "
       "model says, or 1024"},
      {"low-rank", "RULES",
       compile | run | generate | embed | chat | serve | bench | inspect |
           perplexity | compare,
       applyLowRank,
       "PATTERN:RANK or PATTERN:ERROR%: keep the matrices of linear layers "
       "with "
       "such names as products of two thin ones (truncated singular value "
       "decomposition), of that rank or of the least rank that loses no more; "
       "several by commas, the first that matches. Where that saves nothing, "
       "they stay. Before --quantize"},
      {"prune-heads", "HEADS",
       compile | run | generate | embed | chat | serve | bench | inspect |
           perplexity | compare,
       applyPruneHeads,
       "PATTERN:N,N-M,...: take these heads out of the attentions with such "
       "names, as in 'layers.3.attention:0,4' or '*.attention:0-3'; several by "
       "commas, the first that matches. Heads that share keys go together, or "
       "equally many of each such group. 40%: that share of the heads of every "
       "attention, those that matter least to the texts of --calibrate"},
      {"calibrate", "FILE",
       compile | run | generate | embed | chat | serve | bench | inspect |
           perplexity | compare,
       applyText<&Options::calibrationFile>,
       "Texts like those that the model is for, or token ids in digits: the "
       "model as it is reads them first, and --prune-heads and --quantize "
       "measure with it what matters"},
      {"mesh", "tp=N,ep=N,sp=L,dp=M", compile, applyMesh,
       "Cut the model for N ranks: tp, each with its part of every layer; ep, "
       "each with its share of the experts; or both. With sp, L times as many "
       "share the positions of a text, each with its part of the caches. With "
       "dp, M groups of such ranks share prompts, batches and windows of a "
       "text. The program is started with mpirun -n N*L*M (MPICH or Open MPI); "
       "ranks of GPUs also need NCCL"},
      {"mesh", "tp=N,ep=N,sp=L,dp=M", inspect, applyMesh,
       "Also count what one of these ranks has, computes and sends"},
      {"link", "LATENCY,BANDWIDTH", inspect, applyLink,
       "With --mesh: predict the time of a token if such a link joins the "
       "ranks, as in 2us,25GB/s"},
      {"fusion", "MODE",
       compile | run | generate | chat | serve | bench | perplexity,
       applyFusion,
       "auto (default), or off: attention step by step, the reference path"},
      {"explain-fusion", "", compile, applySwitch<&Options::explainFusion>,
       "Say what fused, how it is computed, and why the rest did not fuse"},
      {"remarks", "FILE", compile, applyText<&Options::remarks>,
       "Write what was fused and tiled, how, and what not and why, into this "
       "file: LLVM's optimisation records (.yaml), or text"},
      {"check-weights", "", running | compile,
       applySwitch<&Options::checkWeights>,
       "Refuse weights that hold NaN or infinity"},
      {"tap", "NAME", compile | run | import | compare, applyTap,
       "Add an output: a layer's name, hidden_states, or attention weights: "
       "LAYER.attention, LAYER.cross or attentions, with :heads=N-M for some"},
      {"match", "TEACHER,STUDENT", compare, applyMatch,
       "Compare what --tap calls TEACHER in one model with STUDENT in the "
       "other, as in --match=hidden_states[6],hidden_states[3]: number N along "
       "the first dimension; may be given several times"},
      {"load-pass-plugin", "FILE", compiling | inspect | import,
       applyMore<&Options::plugins>,
       "Load passes, dialects, kinds of layers, importers and backends from "
       "this shared library"},
      {"insert", "POINT:PASSES", compiling, applyMore<&Options::insertions>,
       "Run these passes too, at after-import, after-fusion, after-optimize, "
       "before-tiling, after-tiling, before-bufferization, "
       "after-bufferization, after-outlining or after-threads"},
      {"schedule", "FILE", compiling, applyText<&Options::schedule>,
       "A library of the transform dialect: its sequences run at the points "
       "that they are named after, as in @before_tiling"},
      {"validate", "", compile, applySwitch<&Options::validate>,
       "Run every function before and after each pass; exit with 3 if one "
       "changes an answer"},
      {"kernel", "NAME", compile, applyText<&Options::kernel>,
       "Print one kernel alone, of --emit=kernels, loops or vector"},
      {"cache", "DIR", compiling, applyText<&Options::cache>,
       "Keep code in this folder, and take it from there the next "
       "time; by default $ATTUNE_CACHE, if set. off: do neither"},
      {"cache-size", "SIZE", compiling, applyCacheSize,
       "Most memory for that folder, such as 512M; default 1G. What was not "
       "asked for the longest leaves first"},
      {"emit-stages", "DIR", compile, applyText<&Options::stagesDir>,
       "Also write every stage on the way into this folder, and report.html "
       "about them"},
      {"locations", "", compile | import, applySwitch<&Options::locations>,
       "Print where in the JSON each operation comes from"},
      {"timing", "", compiling, applySwitch<&Options::timing>,
       "Say how long each stage took"},
      {"message-format", "FORMAT", every, applyMessageFormat,
       "text, or json: one object a line on stderr"},
  };
  return flags;
}

/// The flags above and those of the runtime's verbs, which describe themselves.
ArrayRef<Flag> driver::getFlags() {
  static const std::vector<Flag> flags = [] {
    std::vector<Flag> all = ownFlags().vec();
    auto place =
        llvm::find_if(all, [](const Flag &flag) { return flag.name == "dim"; });
    std::vector<Flag> more;
    static std::deque<std::string> helps;
    auto add = [&](const runtime::OptionSpecs &specs, unsigned verb) {
      for (const runtime::OptionSpec &spec : specs) {
        if (verb == generate && spec.name == "inputs")
          continue; // of `run`, too
        std::string &help = helps.emplace_back(spec.help);
        help[0] = llvm::toUpper(help[0]);
        more.push_back({spec.name, spec.value, verb, passOn, help});
      }
    };
    add(runtime::GenerateOptions::specs(), generate);
    add(runtime::EmbedOptions::specs(), embed);
    add(runtime::TokenizeOptions::specs(), tokenize);
    add(runtime::ChatOptions::specs(), chat);
    add(runtime::ServeOptions::specs(), serve);
    all.insert(place, more.begin(), more.end());
    return all;
  }();
  return flags;
}

bool driver::checkOptions(Options &options, std::string &problem) {
  options.team.threads = options.threads;
  runtime::Error error;
  if (options.verb == Verb::Run) {
    if (options.run.inputs.empty()) {
      problem = "'run' needs --inputs=FILE";
      return false;
    }
    if (!options.run.finish(error)) {
      problem = error.message;
      return false;
    }
  }
  if ((options.verb == Verb::Generate && !options.generate.finish(error)) ||
      (options.verb == Verb::Embed && !options.embed.finish(error)) ||
      (options.verb == Verb::Tokenize && !options.tokenize.finish(error)) ||
      (options.verb == Verb::Chat && !options.chat.finish(error)) ||
      (options.verb == Verb::Serve && !options.serve.finish(error))) {
    problem = error.message;
    return false;
  }
  return true;
}
