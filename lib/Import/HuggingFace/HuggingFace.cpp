//===- HuggingFace.cpp - A Hugging Face folder as a description -----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Import/HuggingFace.h"
#include "attune/Import/Gguf.h"
#include "attune/Import/Tokenizers.h"

#include "../GGUF/GgufConfig.h"
#include "../GGUF/GgufSight.h"
#include "Architectures.h"
#include "AudioConfig.h"
#include "GenerationConfig.h"
#include "JsonFile.h"
#include "Keys.h"
#include "Parts.h"
#include "SentenceModules.h"
#include "attune/Import/HuggingFace/StreamBuilder.h"
#include "attune/Weights/QuantizationConfig.h"

#include <algorithm>
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
  std::optional<Value> root =
      spec::parseJson(*file, reporter, spec::JsonDialect::Python);
  return root && root->isObject() && !root->find("attune") &&
         (root->find("model_type") || root->find("architectures") ||
          root->find("_class_name"));
}

void hf::refuseUnsupportedKeys(Config &config) {
  if (const Value *pruned = config.get("pruned_heads");
      pruned && !(pruned->members.empty() && pruned->elements.empty()))
    config.error("pruned_heads", "pruned heads are not supported");
  std::string problem;
  if (const Value *object = config.get("quantization_config");
      object && !readQuantizationConfig(*object, problem))
    config.error("quantization_config", problem);
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

/// Types that are another architecture's under a name of their own, some of
/// them within multimodal models: a text's tokens have one position each.
static const std::pair<const char *, const char *> sameTypes[] = {
    {"kimi_k2", "deepseek_v3"},         {"qwen2_vl_text", "qwen2"},
    {"qwen2_5_vl_text", "qwen2"},       {"qwen3_vl_text", "qwen3"},
    {"qwen3_vl_moe_text", "qwen3_moe"},
};

/// `type` as the table of architectures spells it: files also write "LLaMA" or
/// "gpt-neox". An unknown one stays as it is.
static std::string canonicalType(const std::string &type) {
  auto plain = [](std::string text) {
    for (char &c : text)
      c = c == '-' ? '_' : static_cast<char>(std::tolower(c));
    return text;
  };
  for (const auto &[spelling, same] : sameTypes)
    if (type == spelling)
      return same;
  const std::string wanted = plain(type);
  for (const Architecture &candidate : architectures())
    if (plain(candidate.modelType) == wanted)
      return candidate.modelType;
  return type;
}

/// The class that `name` stands for where the table does not have it: names are
/// spelled otherwise ("LLaMAForCausalLM"), or are those of code beside the
/// checkpoint. The part behind "For" names the head; a name without it is the
/// class that AutoModelForCausalLM takes. Null: another head.
static const ModelClass *guessClass(const Architecture &architecture,
                                    const std::string &name) {
  size_t at = name.rfind("For");
  if (at == std::string::npos) {
    bool base = name.size() > 5 && name.substr(name.size() - 5) == "Model" &&
                name.find("LMHead") == std::string::npos;
    for (const ModelClass &candidate : architecture.classes)
      if (base && candidate.head == Head::None)
        return &candidate;
    return &architecture.classes.front();
  }
  for (const ModelClass &candidate : architecture.classes) {
    std::string known = candidate.name;
    size_t end = known.size(), begin = name.size() - at;
    if (end > begin && known.substr(end - begin) == name.substr(at))
      return &candidate;
  }
  return nullptr;
}

/// Which importer, and which of its classes. Reports an unknown one.
static const Architecture *chooseArchitecture(Config &config,
                                              const ModelClass *&chosenClass,
                                              DiagnosticEngine &diags) {
  std::string type = canonicalType(config.text("model_type", ""));
  std::vector<std::string> classes;
  // Files of diffusers name their class alone.
  bool ofDiffusers = type.empty() && config.peek("_class_name");
  if (ofDiffusers)
    classes.push_back(config.text("_class_name", ""));
  if (const Value *names = config.get("architectures")) {
    if (names->isString())
      classes.push_back(names->text);
    for (const Value &name : names->elements)
      if (name.isString())
        classes.push_back(name.text);
  }

  // A type that is known decides. Under another one stands a class that may be
  // known: a folder with a type of its own that uses a published class.
  const Architecture *chosen = nullptr, *sameClass = nullptr;
  std::string known;
  for (const Architecture &candidate : architectures()) {
    known += (known.empty() ? "" : ", ") + std::string(candidate.modelType);
    bool byClass = false;
    for (const std::string &name : classes)
      byClass |= findClass(candidate, name) != nullptr;
    if (type == candidate.modelType)
      chosen = &candidate;
    if (byClass)
      sameClass = &candidate;
  }
  if (!chosen && sameClass) {
    chosen = sameClass;
    if (!type.empty())
      diags.warning(config.locate("model_type"),
                    "the architecture " + spec::quote(type) +
                        " is not known; its class is that of '" +
                        chosen->modelType + "', which is read instead");
  }
  if (!chosen && ofDiffusers) {
    config.error("_class_name",
                 "the class " + spec::quote(classes.front()) +
                     " of diffusers is not known; its transformers "
                     "FluxTransformer2DModel and SD3Transformer2DModel are");
    return nullptr;
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
  // If there are several names, one with a head counts.
  for (const std::string &name : classes)
    if (const ModelClass *found = findClass(*chosen, name))
      if (!chosenClass || chosenClass->head == Head::None)
        chosenClass = found;
  if (!chosenClass)
    chosenClass = guessClass(*chosen, classes.front());
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

/// Whether the checkpoint has the head of a class for masked words.
static bool hasMaskedHead(const Checkpoint &checkpoint) {
  for (const auto &[name, tensor] : checkpoint.tensors())
    for (std::string_view start :
         {"cls.", "lm_head.", "lm_predictions.", "predictions.", "vocab_",
          "generator_", "head.", "decoder."})
      if (std::string_view(name).substr(0, start.size()) == start)
        return true;
  return false;
}

/// sentence-transformers reads encoders without the head that their file names,
/// and writes them without it: `chosen` becomes that class, unless the
/// checkpoint has the head. False after an error.
static bool leaveMaskedHead(const Architecture &architecture,
                            const ModelClass *&chosen,
                            const Checkpoint *checkpoint,
                            const std::string &folder, Config &config,
                            DiagnosticEngine &diags) {
  std::string_view name = chosen->name, end = "ForMaskedLM";
  if (name.size() <= end.size() || name.substr(name.size() - end.size()) != end)
    return true;
  if (checkpoint && hasMaskedHead(*checkpoint))
    return true;
  std::optional<bool> without = readsWithoutHead(folder, diags);
  if (!without.value_or(false))
    return without.has_value();
  for (const ModelClass &candidate : architecture.classes)
    if (candidate.head == Head::None) {
      diags.note(config.locate("architectures"),
                 spec::quote(name) + " is read as " +
                     spec::quote(candidate.name) +
                     ", without its head, as sentence-transformers reads it "
                     "where sentence_bert_config.json has no "
                     "\"transformer_task\": \"fill-mask\"");
      chosen = &candidate;
      break;
    }
  return true;
}

/// The type that weights are kept in: what the configuration says, else what
/// the checkpoint holds.
static spec::DType readDType(Config &config, const Checkpoint *checkpoint) {
  std::string_view key = config.oneOf({"dtype", "torch_dtype"});
  std::string name = config.text(key, "");
  if (name.rfind("torch.", 0) == 0)
    name = name.substr(6);
  if (name == "float32" || name == "float" || name == "float64" ||
      name == "double")
    return spec::DType::F32;
  if (name == "float16" || name == "half")
    return spec::DType::F16;
  if (name == "bfloat16")
    return spec::DType::BF16;
  // That of some weights alone, or of none.
  bool ofFiles = name.empty() || name == "auto" || name.rfind("float8", 0) == 0;
  if (!ofFiles) {
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

/// Adds the end of a decoder that scores labels: the last token that is no
/// padding, and a linear layer.
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
  if (whole.filename() == "transformer" &&
      fs::exists(whole.parent_path() / "model_index.json", ignored))
    whole = whole.parent_path();
  return whole.has_filename() ? whole.filename().string() : std::string();
}

/// The one warning about keys that nobody knows.
static void reportPassedOver(const KeyReport &report,
                             const Architecture &architecture,
                             DiagnosticEngine &diags) {
  size_t count = report.passedOver.size();
  if (!count)
    return;
  constexpr size_t most = KeyReport::kNamed;
  std::string list;
  for (size_t i = 0; i < std::min(count, most); ++i)
    list += (i ? ", " : "") + report.passedOver[i].first;
  if (count > most)
    list += " and " + std::to_string(count - most) + " more";
  diags.warning(report.passedOver.front().second,
                (count == 1 ? std::string("a key that")
                            : std::to_string(count) + " keys that") +
                    " the architecture '" + architecture.modelType +
                    "' does not read " + (count == 1 ? "is" : "are") +
                    " passed over: " + list);
}

/// `--ignore-config-key` of a key that is not there is a slip.
static void checkIgnored(const KeyReport &report, Config &config) {
  for (const std::string &name : report.ignored)
    if (!report.foundIgnored.count(name))
      config.error("", "--ignore-config-key=" + name +
                           ": no object that is read here has this key");
}

static bool holdsEncoded(const Checkpoint &checkpoint) {
  return std::any_of(checkpoint.tensors().begin(), checkpoint.tensors().end(),
                     [](const auto &entry) {
                       return entry.second->encoding &&
                              entry.second->encoding->isQuantized() &&
                              entry.second->dtype == runtime::DType::F32;
                     });
}

/// Numbers with scales, which kernels can take as they are.
static void findStored(const Checkpoint &checkpoint, ImportedModel &result) {
  for (const auto &[name, tensor] : checkpoint.tensors())
    if (tensor->encoding && tensor->encoding->form().bits)
      result.stored.emplace(name, storedAs(*tensor));
}

/// Imports the text of a config.json. `folder` and `checkpointPath` of the
/// result are set. Without `renames` the caller names the text model's tensors.
static std::optional<ImportedModel>
importConfig(const std::shared_ptr<const SourceFile> &file,
             ImportedModel result, const std::vector<std::string> &ignoredKeys,
             std::optional<ImageSize> imageSize, DiagnosticEngine &diags,
             bool renames = true) {
  JsonFile json(file, diags);
  if (!json.isObject())
    return std::nullopt;

  KeyReport keys;
  keys.ignored = ignoredKeys;
  std::optional<TextPart> text = findTextPart(*json.root);
  if (text) {
    text->imageSize = imageSize;
    // Who ignores the tower wants the text model alone.
    for (const std::string &name : ignoredKeys)
      if (name == "vision_config" && json.root->find(name))
        keys.foundIgnored.insert(name);
  }
  Config config(text ? text->object : *json.root, text ? "/text_config" : "",
                json.reporter, keys);
  ImportContext context{config};
  const Architecture *architecture =
      chooseArchitecture(config, context.modelClass, diags);
  if (!architecture)
    return std::nullopt;
  std::optional<Checkpoint> checkpoint;
  if (!result.checkpointPath.empty()) {
    checkpoint = Checkpoint::open(result.checkpointPath, diags);
    if (!checkpoint)
      return std::nullopt;
    checkpoint->noteWrappers(diags);
    context.checkpoint = &*checkpoint;
  }
  if (!leaveMaskedHead(*architecture, context.modelClass, context.checkpoint,
                       result.folder, config, diags))
    return std::nullopt;
  context.languageModel = context.modelClass->head == Head::LanguageModel;
  if (text && !checkpoint) {
    config.error("", text->whole +
                         " is a multimodal model; text_config holds "
                         "its text model, " +
                         text->type +
                         ", which can be compiled alone, but there are no "
                         "weights beside config.json to say what its tensors "
                         "are called; add them, or save text_config as the "
                         "config.json of a folder of its own");
    return std::nullopt;
  }
  // A text model within another has names of its own: see renameTextTensors.
  if (text)
    context.checkpoint = nullptr;

  refuseUnsupportedKeys(config);
  if (architecture->encoderDecoder)
    config.ignore({"is_encoder_decoder"});
  else
    config.mustBeFalse("is_encoder_decoder",
                       "encoder-decoder models of this type are not supported");
  spec::DType dtype = readDType(config, context.checkpoint);
  // Values that were quantized are not numbers of the type that they had
  // before.
  if (checkpoint && holdsEncoded(*checkpoint))
    dtype = spec::DType::F32;
  context.dtype = dtype;
  spec::Generation generation;
  std::optional<spec::Model> model = architecture->import(context);
  bool scores = context.modelClass->head == Head::Score;
  if (model && scores)
    addScore(config, model->streams.back());
  int64_t vocab = model ? vocabularyOf(*model) : maxSize;
  GenerationSource generates = {vocab,
                                architecture->encoderDecoder,
                                context.languageModel,
                                model ? model->context : 0,
                                model && model->audio,
                                model && model->codes ? &*model->codes
                                                      : nullptr};
  bool read =
      readGeneration(config, result.folder, generates, generation, diags) &&
      (!model || readAudio(config, result.folder, vocab, *model, diags));
  config.finish(std::string("the architecture '") + architecture->modelType +
                    "'",
                keysOfClass(architecture->modelType));
  if (!json.reporter.getNumErrors())
    checkIgnored(keys, config);
  if (!read || !model || json.reporter.getNumErrors())
    return std::nullopt;
  reportPassedOver(keys, *architecture, diags);

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
  if (text) {
    // Names of the text's tensors are known before the tower joins it.
    spec::Model sight;
    if (!readSight({*json.root, context, *checkpoint, keys, json.reporter},
                   *text, sight) ||
        (renames &&
         !renameTextTensors(*model, *text, *checkpoint, config, diags)) ||
        (text->sees && !joinSight(*text, std::move(sight), *model, config)))
      return std::nullopt;
  } else if (checkpoint && context.languageModel) {
    renameMovedTensors(*model, *checkpoint, config, diags);
  }
  if (imageSize && !(text && text->sized)) {
    config.error("", "--image-size is for models that take images of any "
                     "size, as Qwen2.5-VL does");
    return std::nullopt;
  }
  if (!addSentenceModules(result.folder, *model, diags) ||
      !checkDescription(*model, config))
    return std::nullopt;
  if (checkpoint) {
    result.leftOut = findLeftOut(config, *context.modelClass,
                                 text ? &*text : nullptr, *checkpoint, diags);
    findStored(*checkpoint, result);
  }
  result.tokenizerPath = findTokenizerFile(result.folder);
  result.model = std::move(*model);
  return result;
}

std::optional<ImportedModel>
importHuggingFace(const std::string &path, DiagnosticEngine &diags,
                  const std::string &weights,
                  const std::vector<std::string> &ignoredKeys,
                  std::optional<ImageSize> imageSize) {
  fs::path configPath = path;
  if (isFolder(configPath)) {
    // A pipeline of diffusers has a folder for each of its models.
    std::error_code ignored;
    if (!fs::exists(configPath / "config.json", ignored) &&
        fs::exists(configPath / "transformer" / "config.json", ignored))
      configPath /= "transformer";
    configPath /= "config.json";
  }
  ImportedModel result;
  fs::path folder = configPath.parent_path();
  result.folder = folder.empty() ? "." : folder.string();
  auto file = readSourceFile(configPath.string(), diags, maxConfigBytes);
  if (!file)
    return std::nullopt;
  result.checkpointPath =
      weights.empty() ? Checkpoint::findIn(result.folder) : weights;
  return importConfig(file, std::move(result), ignoredKeys, imageSize, diags);
}

std::optional<ImportedModel> importGguf(const std::string &path,
                                        DiagnosticEngine &diags,
                                        std::optional<ImageSize> imageSize) {
  std::optional<gguf::File> opened = gguf::openFile(path, diags);
  const gguf::Family *family =
      opened ? gguf::findFamily(*opened, diags) : nullptr;
  if (!family)
    return std::nullopt;
  auto file = std::make_shared<SourceFile>();
  file->path = path + " (its keys as config.json)";
  std::optional<std::string> text = gguf::makeConfig(*opened, *family, diags);
  if (text && opened->sight())
    text = gguf::makeSightConfig(*opened, *family, *text, diags);
  if (!text)
    return std::nullopt;
  file->text = std::move(*text);
  ImportedModel result;
  // Files beside it are no part of it: nothing is in a folder of this name.
  result.folder = result.checkpointPath = path;
  std::optional<ImportedModel> imported =
      importConfig(file, std::move(result), {}, imageSize, diags,
                   /*renames=*/!family->byRole);
  if (!imported)
    return std::nullopt;
  gguf::adaptToFile(*opened, *family, imported->model);
  if (opened->sight())
    gguf::adaptToSight(*opened, imported->model);
  if (family->byRole)
    gguf::nameByRole(*opened, imported->model);
  imported->model.name = gguf::modelName(path);
  imported->folder.clear();
  imported->tokenizerPath =
      opened->find("tokenizer.ggml.model") ? opened->path() : "";
  return imported;
}

} // namespace attune
