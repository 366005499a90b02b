//===- HuggingFace.cpp - A Hugging Face folder as a description -----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Import/HuggingFace.h"
#include "attune/Import/Tokenizers.h"

#include "Architectures.h"
#include "GenerationConfig.h"
#include "attune/Import/HuggingFace/StreamBuilder.h"

#include <filesystem>

namespace fs = std::filesystem;

namespace attune {

using namespace hf;
using spec::Value;

std::vector<std::string> knownArchitectures() {
  std::vector<std::string> names;
  for (const Architecture &architecture : architectures())
    names.push_back(architecture.modelType);
  return names;
}

namespace {
/// For questions about a file that may well be another kind of file.
struct SilentDiagnostics final : DiagnosticEngine {
  void report(const Diagnostic &diagnostic) override {}
};
} // namespace

static bool isFolder(const fs::path &path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool isHuggingFacePath(const std::string &path) {
  if (isFolder(path))
    return true;
  if (fs::path(path).extension() != ".json")
    return false;
  SilentDiagnostics silent;
  auto file = readSourceFile(path, silent);
  if (!file)
    return false;
  spec::LineTable lines(file);
  spec::Reporter reporter(lines, silent);
  std::optional<Value> root = spec::parseJson(*file, reporter);
  return root && root->isObject() && !root->find("attune") &&
         (root->find("model_type") || root->find("architectures"));
}

void hf::ignoreCommonKeys(Config &config) {
  config.ignore({
      "_name_or_path",
      "_commit_hash",
      "_attn_implementation",
      "_attn_implementation_autoset",
      "transformers_version",
      "unsloth_version",
      "transformers.js_config",
      "tokenizer_class",
      "task_specific_params",
      "problem_type",
      "finetuning_task",
      "id2label",
      "label2id",
      "num_labels",
      "_num_labels",
      "output_past",
      "prefix",
      "use_cache",
      "initializer_range",
      "gradient_checkpointing",
      "output_attentions",
      "output_hidden_states",
      "output_scores",
      "return_dict",
      "return_dict_in_generate",
      "torchscript",
      "tf_legacy_loss",
      "use_bfloat16",
      "keys_to_ignore_at_inference",
      "is_decoder",
      "tie_encoder_decoder",
      "cross_attention_hidden_size",
      "chunk_size_feed_forward",
      "sep_token_id",
      "decoder_start_token_id",
      "max_length",
      "min_length",
      "do_sample",
      "early_stopping",
      "num_beams",
      "num_beam_groups",
      "diversity_penalty",
      "temperature",
      "top_k",
      "top_p",
      "typical_p",
      "repetition_penalty",
      "length_penalty",
      "no_repeat_ngram_size",
      "encoder_no_repeat_ngram_size",
      "bad_words_ids",
      "num_return_sequences",
      "forced_bos_token_id",
      "forced_eos_token_id",
      "remove_invalid_values",
      "exponential_decay_length_penalty",
      "suppress_tokens",
      "begin_suppress_tokens",
      "neftune_noise_alpha",
      // Code beside the checkpoint is not run; the architecture is the one that
      // model_type names.
      "auto_map",
  });
  if (const Value *pruned = config.get("pruned_heads");
      pruned && !(pruned->members.empty() && pruned->elements.empty()))
    config.error("pruned_heads", "pruned heads are not supported");
  if (config.get("quantization_config"))
    config.error("quantization_config",
                 "quantized checkpoints are not supported; use one in F32, F16 "
                 "or BF16");
}

/// The class of a decoder that scores labels; none of other architectures.
static std::string classifierOf(const Architecture &architecture) {
  std::string base;
  bool decoder = false;
  for (const ModelClass &candidate : architecture.classes) {
    decoder |= candidate.head == Head::LanguageModel;
    if (candidate.head == Head::None)
      base = candidate.name;
  }
  if (!decoder || architecture.encoderDecoder)
    return {};
  return base.substr(0, base.rfind("Model")) + "ForSequenceClassification";
}

static const ModelClass *findClass(const Architecture &architecture,
                                   const std::string &name) {
  for (const ModelClass &candidate : architecture.classes)
    if (name == candidate.name)
      return &candidate;
  static const ModelClass classifier = {"ForSequenceClassification",
                                        Head::Score};
  return name == classifierOf(architecture) ? &classifier : nullptr;
}

/// Which importer, and which of its classes. Reports an unknown one.
static const Architecture *chooseArchitecture(Config &config,
                                              const ModelClass *&chosenClass) {
  std::string type = config.text("model_type", "");
  std::vector<std::string> classes;
  if (const Value *names = config.get("architectures"))
    for (const Value &name : names->elements)
      if (name.isString())
        classes.push_back(name.text);

  const Architecture *chosen = nullptr;
  std::string known;
  for (const Architecture &candidate : architectures()) {
    known += (known.empty() ? "" : ", ") + std::string(candidate.modelType);
    bool byClass = false;
    for (const std::string &name : classes)
      byClass |= findClass(candidate, name) != nullptr;
    if (type.empty() ? byClass : type == candidate.modelType)
      chosen = &candidate;
  }
  if (!chosen) {
    config.error(
        "model_type",
        (type.empty()
             ? std::string("names no architecture")
             : "the architecture " + spec::quote(type) + " is not known") +
            "; known are " + known +
            "; another one can be written down as a description in Attune's "
            "own JSON, whose \"weights\" name the checkpoint's tensors (see "
            "lib/Spec/README.md; the output of 'attune import' for a known "
            "one is a start)");
    return nullptr;
  }
  if (classes.empty())
    chosenClass = &chosen->classes.front();
  // Of several names one with a head counts.
  for (const std::string &name : classes)
    if (const ModelClass *found = findClass(*chosen, name))
      if (!chosenClass || chosenClass->head == Head::None)
        chosenClass = found;
  if (chosenClass)
    return chosen;
  std::vector<std::string> names;
  for (const ModelClass &candidate : chosen->classes)
    names.push_back(candidate.name);
  if (std::string name = classifierOf(*chosen); !name.empty())
    names.push_back(name);
  std::string expected;
  for (size_t i = 0; i < names.size(); ++i)
    expected += (i == 0                  ? ""
                 : i + 1 == names.size() ? " or "
                                         : ", ") +
                names[i];
  config.error("architectures",
               "expected " + expected + ", found " + spec::quote(classes[0]));
  return nullptr;
}

/// The type that weights are kept in: what the configuration says, else what
/// the checkpoint holds.
static spec::DType readDType(Config &config, const Checkpoint *checkpoint) {
  std::string_view key = config.oneOf({"dtype", "torch_dtype"});
  std::string name = config.text(key, "");
  if (name.rfind("torch.", 0) == 0)
    name = name.substr(6);
  if (name == "float32")
    return spec::DType::F32;
  if (name == "float16")
    return spec::DType::F16;
  if (name == "bfloat16")
    return spec::DType::BF16;
  if (!name.empty() && name != "auto") {
    config.error(key,
                 "expected \"float32\", \"float16\" or \"bfloat16\", found " +
                     spec::quote(name));
    return spec::DType::F32;
  }
  bool all16 = checkpoint && !checkpoint->tensors().empty();
  runtime::DType type = runtime::DType::F32;
  if (all16) {
    type = checkpoint->tensors().begin()->second->dtype;
    for (const auto &[tensor, info] : checkpoint->tensors())
      all16 &= info->dtype == type;
  }
  if (all16 && type == runtime::DType::F16)
    return spec::DType::F16;
  if (all16 && type == runtime::DType::BF16)
    return spec::DType::BF16;
  return spec::DType::F32;
}

static int64_t vocabularyOf(const spec::Model &model) {
  for (const spec::Layer &layer : model.streams.back().layers)
    if (const auto *embedding = std::get_if<spec::Embedding>(&layer.op))
      return embedding->vocab;
  return maxSize;
}

/// The rules of descriptions hold for imported ones, too: what is printed can
/// be read again.
static bool checkDescription(const spec::Model &model, Config &config) {
  struct Collector final : DiagnosticEngine {
    void report(const Diagnostic &diagnostic) override {
      if (diagnostic.severity == Severity::Error)
        messages.push_back(diagnostic.message);
    }
    std::vector<std::string> messages;
  } collector;
  auto file = std::make_shared<SourceFile>();
  file->text = spec::print(model);
  bool valid = spec::parse(file, collector).has_value();
  for (const std::string &message : collector.messages)
    config.error("", "the description that this stands for is not valid: " +
                         message);
  return valid;
}

/// What a decoder ends with to score labels: the last token that is no padding,
/// and a linear layer.
static void addScore(Config &config, spec::Stream &stream) {
  StreamBuilder head(config, "", stream.layers.back().width);
  spec::Pool pool;
  pool.kind = spec::PoolKind::Last;
  head.add("last_token", "architectures", pool).pooled = true;
  spec::Linear score;
  score.out = config.labels();
  head.add("score", "architectures", score, score.out).pooled = true;
  for (spec::Layer &layer : head.take().layers)
    stream.layers.push_back(std::move(layer));
}

static std::string nameOf(const fs::path &folder) {
  std::error_code ignored;
  fs::path whole = fs::weakly_canonical(folder, ignored);
  return whole.has_filename() ? whole.filename().string() : std::string();
}

std::optional<ImportedModel> importHuggingFace(const std::string &path,
                                               DiagnosticEngine &diags,
                                               const std::string &weights) {
  fs::path configPath = path;
  if (isFolder(configPath))
    configPath /= "config.json";
  ImportedModel result;
  fs::path folder = configPath.parent_path();
  result.folder = folder.empty() ? "." : folder.string();
  auto file = readSourceFile(configPath.string(), diags);
  if (!file)
    return std::nullopt;

  spec::LineTable lines(file);
  spec::Reporter reporter(lines, diags);
  std::optional<Value> root = spec::parseJson(*file, reporter);
  if (root && !root->isObject())
    reporter.error(root->offset, "",
                   std::string("expected an object, found ") +
                       spec::describe(root->kind));
  if (!root || reporter.getNumErrors())
    return std::nullopt;

  Config config(*root, "", reporter);
  ImportContext context{config};
  const Architecture *architecture =
      chooseArchitecture(config, context.modelClass);
  if (!architecture)
    return std::nullopt;
  context.languageModel = context.modelClass->head == Head::LanguageModel;
  result.checkpointPath =
      weights.empty() ? Checkpoint::findIn(result.folder) : weights;
  std::optional<Checkpoint> checkpoint;
  if (!result.checkpointPath.empty()) {
    checkpoint = Checkpoint::open(result.checkpointPath, diags);
    if (!checkpoint)
      return std::nullopt;
    context.checkpoint = &*checkpoint;
  }

  ignoreCommonKeys(config);
  if (architecture->encoderDecoder)
    config.ignore({"is_encoder_decoder"});
  else
    config.mustBeFalse("is_encoder_decoder",
                       "encoder-decoder models of this type are not supported");
  spec::DType dtype = readDType(config, context.checkpoint);
  context.dtype = dtype;
  spec::Generation generation;
  std::optional<spec::Model> model = architecture->import(context);
  bool scores = context.modelClass->head == Head::Score;
  if (model && scores)
    addScore(config, model->streams.back());
  int64_t vocab = model ? vocabularyOf(*model) : maxSize;
  GenerationSource generates = {vocab, architecture->encoderDecoder,
                                context.languageModel,
                                model ? model->context : 0};
  bool read =
      readGeneration(config, result.folder, generates, generation, diags);
  config.finish(std::string("the architecture '") + architecture->modelType +
                "'");
  if (!read || !model || reporter.getNumErrors())
    return std::nullopt;

  if (std::string name = nameOf(result.folder); !name.empty())
    model->name = name;
  model->file = file;
  model->dtype = dtype;
  fillGeneration(model->generation, vocab, generation);
  model->generation = generation;
  if (model->inputs.empty()) {
    spec::TensorSpec ids;
    ids.name = "input_ids";
    ids.dtype = spec::DType::I64;
    ids.shape = {{-1, "batch"}, {-1, "seq"}};
    ids.location = config.locate("vocab_size");
    model->inputs.push_back(ids);
  }
  for (spec::Stream &stream : model->streams) {
    if (stream.name.empty())
      stream.name = "main";
    if (stream.input.empty())
      stream.input = model->inputs.front().name;
    if (stream.location.line == 0)
      stream.location = config.locate();
  }
  const spec::Layer &last = model->streams.back().layers.back();
  if (model->outputs.empty())
    model->outputs = {
        {context.languageModel || scores ? "logits" : "last_hidden_state",
         last.name, last.location}};
  if (!checkDescription(*model, config))
    return std::nullopt;
  result.tokenizerPath = findTokenizerFile(result.folder);
  result.model = std::move(*model);
  return result;
}

} // namespace attune
