//===- ModelSource.cpp - The model that MODEL names -------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ModelSource.h"

#include "Calibration.h"
#include "ChatTemplates.h"
#include "Options/Target.h"
#include "PictureFiles.h"
#include "StoredForms.h"

#include "attune/Import/Gguf.h"
#include "attune/Import/Tokenizers.h"
#include "attune/Spec/Json.h"
#include "attune/Spec/Taps.h"
#include "attune/Support/TensorNames.h"
#include "attune/Target/Backend.h"
#include "attune/Weights/Checkpoint.h"
#include "attune/Weights/GgufFile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"

#include <cstdio>

using namespace llvm;
using namespace attune;
using namespace attune::driver;

static SourceLocation atFile(const std::string &path) {
  auto file = std::make_shared<SourceFile>();
  file->path = path;
  return {file, 0, 0};
}

static bool addTaps(spec::Model &model, const Options &options,
                    DiagnosticEngine &diags) {
  std::vector<std::string> names = {"hidden_states"};
  for (const spec::Stream &stream : model.streams)
    for (const spec::Layer &layer : stream.layers)
      if (!layer.name.empty() && layer.repeat == 1)
        names.push_back(layer.name);
  for (const std::string &tap : options.taps) {
    if (any_of(model.outputs,
               [&](const spec::Output &output) { return output.name == tap; }))
      continue;
    std::string problem;
    if (!is_contained(names, tap) &&
        !spec::findAttentionTap(model, tap, problem)) {
      std::vector<std::string> maps = spec::attentionNames(model);
      SmallVector<StringRef> known(maps.begin(), maps.end());
      known.append(names.begin(), names.end());
      if (problem.empty()) {
        StringRef nearest = findNearest(tap, known);
        problem = "the model has no layer '" + tap +
                  "' that --tap could read; " +
                  (nearest.empty() ? "it has " + join(known, ", ")
                                   : "did you mean '" + nearest.str() + "'?");
      } else {
        problem = "--tap=" + tap + ": " + problem;
      }
      diags.error({model.file, 0, 0}, problem);
      return false;
    }
    spec::Output output;
    output.name = output.layer = tap;
    output.location = {model.file, 1, 1};
    model.outputs.push_back(output);
  }
  return true;
}

/// "owner/name", as models on the Hub are called.
static bool looksLikeHubId(StringRef path) {
  auto [owner, name] = path.split('/');
  auto plain = [](StringRef part) {
    return !part.empty() && part.front() != '.' && all_of(part, [](char c) {
      return isAlnum(c) || StringRef("-_.").contains(c);
    });
  };
  return plain(owner) && plain(name) && !name.ends_with(".json");
}

static std::string inFolder(StringRef folder, StringRef name) {
  SmallString<128> path(folder);
  sys::path::append(path, name);
  return path.str().str();
}

/// What to do with an adapter's folder. Its configuration may be anything.
static std::string describeAdapter(StringRef folder) {
  struct Silent final : DiagnosticEngine {
    void report(const Diagnostic &) override {}
  } silent;
  std::string base;
  if (auto file =
          readSourceFile(inFolder(folder, "adapter_config.json"), silent)) {
    spec::LineTable lines(file);
    spec::Reporter reporter(lines, silent);
    std::optional<spec::Value> root =
        spec::parseJson(*file, reporter, spec::JsonDialect::Python);
    const spec::Value *name =
        root ? root->find("base_model_name_or_path") : nullptr;
    if (name && name->isString() && !name->text.empty())
      base = ", of " + spec::quote(name->text);
  }
  return "holds an adapter (LoRA) alone" + base +
         ": give the folder of that model, and this one as --lora=" +
         folder.str();
}

/// Why a file that exists cannot be MODEL, by its first bytes; or nothing.
static std::string problemOfFile(StringRef path) {
  // A few bytes, since the file may be one of weights. A pipe can be read only
  // once, by the model's reader.
  if (!sys::fs::is_regular_file(path))
    return {};
  char bytes[64] = {};
  std::FILE *file = std::fopen(path.str().c_str(), "rb");
  if (!file)
    return {};
  size_t size = std::fread(bytes, 1, sizeof bytes, file);
  std::fclose(file);
  StringRef start(bytes, size);
  if (sys::path::filename(path) == "adapter_config.json")
    return describeAdapter(sys::path::parent_path(path).empty()
                               ? "."
                               : sys::path::parent_path(path));
  if (path.ends_with(".safetensors"))
    return "holds weights, not a model; give the folder with its config.json, "
           "or a description, and name the weights with --weights=FILE";
  if (path.ends_with(".gguf") && !start.starts_with("GGUF") &&
      !start.starts_with("version https://git-lfs")) // says so when it is read
    return "is no GGUF file: it does not begin with 'GGUF'; it may be damaged, "
           "or a page or pointer that was downloaded in its place";
  if (start.starts_with("PK\x03\x04") || start.starts_with("\x80\x02"))
    return "holds pickled weights (PyTorch), which are not read; give a folder "
           "with config.json and safetensors";
  return {};
}

/// The same for a folder without config.json.
static std::string problemOfFolder(StringRef path) {
  if (sys::fs::exists(inFolder(path, "config.json")))
    return {};
  SmallString<128> snapshots(path);
  if (sys::path::filename(path) != "snapshots")
    sys::path::append(snapshots, "snapshots");
  std::error_code error;
  for (sys::fs::directory_iterator it(snapshots, error), end;
       !error && it != end; it.increment(error))
    if (sys::fs::exists(inFolder(it->path(), "config.json")))
      return "is a folder of the Hub's cache, not yet the model, which is in "
             "its folder snapshots: give " +
             it->path();
  if (sys::fs::exists(inFolder(path, "adapter_config.json")))
    return describeAdapter(path);
  if (sys::fs::exists(inFolder(path, "model_index.json"))) {
    // The transformer of a diffusers folder is the model to compile.
    SmallString<128> transformer(path);
    sys::path::append(transformer, "transformer", "config.json");
    if (sys::fs::exists(transformer))
      return {};
    return "is a pipeline of several models; give one of its folders, such as "
           "text_encoder";
  }
  if (sys::fs::exists(inFolder(path, "params.json")))
    return "has the original layout of its makers (params.json); give the "
           "version for transformers, with config.json and safetensors";
  std::vector<std::string> models = gguf::modelsIn(path.str()),
                           sights = gguf::sightsIn(path.str());
  if (models.size() == 1 && sights.size() > 1)
    return "holds " + std::to_string(sights.size()) +
           " files of parts that see (mmproj): name one with the model, such "
           "as " +
           models.front() + "," + sights.front() +
           ", or the model alone, which reads texts then";
  if (models.size() == 1)
    return {};
  if (models.empty() && !sights.empty())
    return "holds " + sights.front() +
           ", the part of a model that sees (mmproj), but no model in GGUF; "
           "add the model's file";
  if (models.size() > 1)
    return "holds no config.json, but GGUF files of " +
           std::to_string(models.size()) +
           " models, of which each is one of its own: give one of them, such "
           "as " +
           models.front();
  for (sys::fs::directory_iterator it(path, error), end; !error && it != end;
       it.increment(error))
    if (StringRef(it->path()).ends_with(".safetensors"))
      return "holds weights, but no config.json, which says what they are the "
             "weights of; add the model's, or write a description";
  if (std::string description = inFolder(path, "model.json");
      sys::fs::exists(description))
    return "holds no config.json, but a description: give " + description;
  return "holds no config.json; expected a Hugging Face folder, which has "
         "that, model.safetensors and the tokenizer's files";
}

/// The same of the part of a pair that sees.
static std::string problemOfSight(StringRef path) {
  if (!sys::fs::is_regular_file(path))
    return "no such file; behind the comma stands the GGUF file of the part "
           "that sees (mmproj)";
  if (!isGgufFile(path.str()))
    return "is no GGUF file; behind the comma stands that of the part that "
           "sees (mmproj)";
  return {};
}

static std::string problemOf(StringRef path) {
  return sys::fs::is_directory(path) ? problemOfFolder(path)
                                     : problemOfFile(path);
}

bool driver::checkIsModel(const std::string &path, DiagnosticEngine &diags) {
  auto [model, sight] = gguf::splitPair(path);
  std::string problem = problemOf(model), wrong = model;
  if (problem.empty() && !sight.empty()) {
    problem = problemOfSight(sight);
    wrong = sight;
    if (problem.empty() && !isGgufFile(model)) {
      problem = "a part that sees (mmproj) is for models in GGUF";
      wrong = model;
    }
  }
  if (!problem.empty())
    diags.error(atFile(wrong), problem);
  return problem.empty();
}

/// The GGUF file or pair that MODEL is, or the only one in a folder of such; or
/// nothing.
static std::string ggufOf(const std::string &path) {
  if (!sys::fs::is_directory(path))
    return isGgufFile(path) ? path : "";
  for (const char *name : {"config.json", "model_index.json"})
    if (sys::fs::exists(inFolder(path, name)))
      return "";
  std::vector<std::string> models = gguf::modelsIn(path),
                           sights = gguf::sightsIn(path);
  if (models.size() != 1)
    return "";
  return models.front() + (sights.empty() ? "" : "," + sights.front());
}

/// A file given alone reads texts alone, also where the part that sees is
/// beside it.
static void noteSight(const std::string &gguf, const std::string &path,
                      DiagnosticEngine &diags) {
  if (gguf.empty() || sys::fs::is_directory(path) ||
      !gguf::splitPair(gguf).sight.empty())
    return;
  StringRef folder = sys::path::parent_path(path);
  std::vector<std::string> sights =
      gguf::sightsIn(folder.empty() ? "." : folder.str());
  if (!sights.empty())
    diags.note(atFile(path), "it reads texts alone; to have it see pictures, "
                             "give " +
                                 path + "," + sights.front());
}

/// Files of a folder whose names pass `isWanted`, sorted.
static std::vector<std::string>
listFiles(StringRef folder, function_ref<bool(StringRef)> isWanted) {
  std::vector<std::string> names;
  std::error_code error;
  for (sys::fs::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error))
    if (StringRef name = sys::path::filename(it->path()); isWanted(name))
      names.push_back(name.str());
  llvm::sort(names);
  return names;
}

/// Says which weights a folder has instead of those that are read. Compiling
/// or running it would go without them.
static bool checkOtherWeights(const Options &options, StringRef folder,
                              DiagnosticEngine &diags) {
  std::vector<std::string> found = listFiles(folder, [](StringRef name) {
    return name.ends_with(".safetensors") && !name.starts_with("adapter_model");
  });
  std::string message;
  if (!found.empty()) {
    message = "holds no model.safetensors, but " + join(found, ", ") +
              "; name the weights with --weights=FILE";
  } else {
    found = listFiles(folder, [](StringRef name) {
      return name.starts_with("pytorch_model") ||
             name.starts_with("tf_model") || name.starts_with("flax_model") ||
             name.starts_with("adapter_model") || name.ends_with(".gguf") ||
             name.ends_with(".pth");
    });
    if (found.empty())
      return true;
    message = found.front() +
              " is here, but no model.safetensors: weights are read as "
              "safetensors alone; " +
              (StringRef(found.front()).starts_with("adapter_model")
                   ? "give the base model's folder, and this one as --lora"
                   : "save the model as such (save_pretrained of transformers "
                     "does)");
  }
  bool needs = options.verb != Verb::Inspect && options.verb != Verb::Import &&
               options.verb != Verb::Verify && options.verb != Verb::Bench &&
               options.verb != Verb::Tokenize;
  if (needs)
    diags.error(atFile(folder.str()), message);
  else
    diags.warning(atFile(folder.str()), message);
  return !needs;
}

/// An adapter beside its base model is part of what is compiled only if asked
/// for.
static void checkAdapter(const Options &options, StringRef folder,
                         DiagnosticEngine &diags) {
  for (const Options::Lora &lora : options.loras)
    if (sys::fs::equivalent(lora.folder, folder))
      return;
  std::vector<std::string> found = listFiles(folder, [](StringRef name) {
    return name.starts_with("adapter_model.");
  });
  if (!found.empty())
    diags.warning(atFile(inFolder(folder, found.front())),
                  "this adapter is not applied; to have it, give --lora=" +
                      folder.str());
}

static std::optional<ModelSource> readModel(const Options &options,
                                            DiagnosticEngine &diags) {
  ModelSource source;
  const std::string &path = options.model;
  bool random = options.hasRandomWeights();
  if (!random)
    source.checkpointPath = options.weights;
  if (StringRef(path).ends_with(".mlir")) {
    source.file = readSourceFile(path, diags);
    if (!source.file)
      return std::nullopt;
    if (!options.taps.empty()) {
      diags.error(atFile(path), "--tap needs a description; in an .mlir file "
                                "the entry's results are the outputs");
      return std::nullopt;
    }
    return source;
  }
  if (!sys::fs::exists(gguf::splitPair(path).model)) {
    diags.error(
        atFile(path),
        looksLikeHubId(path)
            ? "no such file or folder; it looks like the name of a "
              "model on the Hugging Face Hub, from which nothing is "
              "downloaded here: run 'hf download " +
                  path + " --local-dir DIR', then give DIR"
            : "no such file or folder; expected a model description "
              "(.json), a Hugging Face folder, a GGUF or an .mlir file");
    return std::nullopt;
  }
  if (!checkIsModel(path, diags))
    return std::nullopt;
  std::string ggufPath = ggufOf(path);
  bool gguf = !ggufPath.empty();
  if (gguf && !source.checkpointPath.empty()) {
    diags.error(atFile(path),
                "holds its own weights; --weights=" + source.checkpointPath +
                    " is for folders and descriptions");
    return std::nullopt;
  }
  if (gguf || isHuggingFacePath(path)) {
    std::optional<ImportedModel> imported =
        gguf ? importGguf(ggufPath, diags, options.imageSize)
             : importHuggingFace(path, diags, source.checkpointPath,
                                 options.ignoredConfigKeys, options.imageSize);
    if (!imported)
      return std::nullopt;
    source.model = std::move(imported->model);
    if (!random)
      source.checkpointPath = imported->checkpointPath;
    source.tokenizerPath = imported->tokenizerPath;
    source.folder = imported->folder;
    source.leftOut = imported->leftOut;
    noteSight(ggufPath, path, diags);
    if (!random)
      source.stored = std::move(imported->stored);
    if (!gguf && !random) {
      if (!source.checkpointPath.empty())
        checkAdapter(options, source.folder, diags);
      else if (!checkOtherWeights(options, source.folder, diags))
        return std::nullopt;
    }
  } else {
    std::shared_ptr<const SourceFile> file = readSourceFile(path, diags);
    if (!file)
      return std::nullopt;
    if (StringRef(file->text)
            .starts_with("\x7f"
                         "ELF")) {
      diags.error(atFile(path), "is a compiled binary, not a model; run it "
                                "itself, or use 'attune inspect'");
      return std::nullopt;
    }
    source.model = spec::parse(file, diags);
    if (!source.model)
      return std::nullopt;
  }
  if ((gguf || !isHuggingFacePath(path)) &&
      !options.ignoredConfigKeys.empty()) {
    diags.error(atFile(path), std::string("--ignore-config-key is for Hugging "
                                          "Face folders; this is a ") +
                                  (gguf ? "GGUF file" : "description"));
    return std::nullopt;
  }
  if (!gguf && !isHuggingFacePath(path) && options.imageSize) {
    diags.error(atFile(path), "--image-size is for Hugging Face folders and "
                              "GGUF files; this is a description");
    return std::nullopt;
  }
  source.file = source.model->file;
  if (!addTaps(*source.model, options, diags))
    return std::nullopt;
  if (options.dtype)
    source.model->dtype = *options.dtype;
  return source;
}

/// The tensors with their adapters, without a word about these.
static std::optional<Checkpoint> openMerged(const Options &options,
                                            const ModelSource &source,
                                            DiagnosticEngine &diags) {
  std::optional<Checkpoint> checkpoint =
      Checkpoint::open(source.checkpointPath, diags);
  if (!checkpoint)
    return std::nullopt;
  checkpoint->leaveOut(source.leftOut);
  for (const Options::Lora &lora : options.mergedLoras())
    if (!checkpoint->mergeLora(lora.folder, lora.scale, diags))
      return std::nullopt;
  return checkpoint;
}

/// Opens the adapters that stay apart. False after an error, which is reported.
static bool openBranches(const Options &options, ModelSource &source,
                         DiagnosticEngine &diags) {
  if (!options.lorasApart)
    return true;
  auto fail = [&](const std::string &why) {
    diags.error(atFile(options.model), "--lora-apart " + why);
    return false;
  };
  if (options.loras.empty())
    return fail("keeps adapters beside the weights, but none is given; add "
                "--lora=DIR");
  if (options.backend && !options.backend->listGpus().empty())
    return fail("is for CPUs; without it adapters are merged into the weights");
  std::optional<Checkpoint> checkpoint =
      Checkpoint::open(source.checkpointPath, diags);
  if (!checkpoint)
    return false;
  checkpoint->leaveOut(source.leftOut);
  auto branches = std::make_shared<LoraBranches>();
  for (const Options::Lora &lora : options.loras)
    if (!branches->add(lora.folder, lora.scale, *checkpoint, diags))
      return false;
  source.branches = std::move(branches);
  return true;
}

/// Matrices that an adapter changes are no longer what the checkpoint has in
/// few bits: forgets the form of those. False after an error, which is
/// reported.
static bool forgetChanged(const Options &options, ModelSource &source,
                          DiagnosticEngine &diags) {
  if (options.mergedLoras().empty() || source.stored.empty())
    return true;
  std::optional<Checkpoint> checkpoint = openMerged(options, source, diags);
  if (!checkpoint)
    return false;
  for (auto it = source.stored.begin(); it != source.stored.end();) {
    const CheckpointTensor *tensor = checkpoint->find(it->first);
    bool same = tensor && tensor->encoding &&
                tensor->encoding->form() == it->second.form;
    it = same ? std::next(it) : source.stored.erase(it);
  }
  return true;
}

/// The command line's word, else the description's. `verify` compares products
/// that round nothing.
static bool chooseQuantization(const Options &options, ModelSource &source,
                               DiagnosticEngine &diags) {
  source.quantize = options.quantize;
  if (source.quantize || !source.model || source.model->quantize.empty() ||
      options.verb == Verb::Verify)
    return true;
  const SourceLocation &where = source.model->quantizeLocation;
  std::string problem;
  source.quantize =
      QuantizationRules::parse(StringRef(source.model->quantize), problem);
  if (!source.quantize) {
    diags.error(where, "/quantize: " + problem);
    return false;
  }
  return true;
}

/// Whether latent attention caches its rows, which stay in full: one row is a
/// key and a value, of different widths.
static bool cachesLatents(const spec::Model &model) {
  for (const spec::Stream &stream : model.streams)
    for (const spec::Layer &layer : stream.layers) {
      const auto *block = std::get_if<spec::Block>(&layer.op);
      const auto *attention = std::get_if<spec::Attention>(&layer.op);
      if (block && block->attention)
        attention = &*block->attention;
      if (attention && attention->latent)
        return true;
    }
  return false;
}

/// The command line's words, else the description's. `verify` compares with
/// keys and values in full.
static bool chooseCaches(const Options &options, ModelSource &source,
                         DiagnosticEngine &diags) {
  if (!source.model) {
    if (!options.kvCache && !options.windowSlack)
      return true;
    diags.error(atFile(options.model),
                std::string(options.kvCache ? "--kv-cache" : "--window-slack") +
                    " needs a description; an .mlir file has its caches in the "
                    "types of its entries");
    return false;
  }
  if (options.windowSlack)
    source.model->windowSlack = options.windowSlack;
  spec::KvCache &form = source.model->kvCache;
  form = options.verb == Verb::Verify ? spec::KvCache::Full
                                      : options.kvCache.value_or(form);
  if (form == spec::KvCache::Full)
    return true;
  if (cachesLatents(*source.model))
    diags.warning(atFile(options.model),
                  std::string("/kv_cache: latent attention caches its rows in "
                              "full, not in ") +
                      spec::stringify(form));
  return true;
}

/// The command line's word, else the description's. `verify` compares with the
/// matrices as they are.
static bool chooseLowRank(const Options &options, ModelSource &source,
                          DiagnosticEngine &diags) {
  source.lowRank = options.lowRank;
  SourceLocation where = atFile(options.model);
  std::string name = "--low-rank: ";
  if (!source.lowRank && source.model && !source.model->lowRank.empty() &&
      options.verb != Verb::Verify) {
    where = source.model->lowRankLocation;
    name = "/low_rank: ";
    std::string problem;
    source.lowRank =
        LowRankRules::parse(StringRef(source.model->lowRank), problem);
    if (!source.lowRank) {
      diags.error(where, name + problem);
      return false;
    }
  }
  if (!source.lowRank || source.lowRank->isNone()) {
    source.lowRank.reset();
    return true;
  }
  if (!source.lowRank->needsValues())
    return true;
  if (source.checkpointPath.empty()) {
    diags.error(where, name + "an error is one of values, and there are no "
                              "weights; give ranks, or --weights=PATH");
    return false;
  }
  std::optional<Checkpoint> checkpoint = openMerged(options, source, diags);
  if (checkpoint)
    source.ranks = std::make_shared<MatrixRanks>(std::move(*checkpoint));
  return checkpoint.has_value();
}

/// The command line's word, else the description's. Verbs that run a model in
/// their own process take it whole.
static bool chooseMesh(const Options &options, ModelSource &source,
                       DiagnosticEngine &diags) {
  if (options.mesh) {
    source.mesh = *options.mesh;
    return true;
  }
  if (!source.model || source.model->mesh.empty() ||
      (options.verb != Verb::Compile && options.verb != Verb::Inspect))
    return true;
  SourceLocation where = source.model->meshLocation;
  std::string problem;
  std::optional<MeshAxes> axes = MeshAxes::parse(source.model->mesh, problem);
  if (!axes) {
    diags.error(where, "/mesh: " + problem);
    return false;
  }
  source.mesh = *axes;
  std::string noMesh = findMeshProblem(options, source.mesh);
  if (noMesh.empty())
    return true;
  diags.error(where, "/mesh: " + noMesh + "add --mesh=tp=1");
  return false;
}

static std::string join(const HeadRules::Heads &heads) {
  std::string text;
  for (int64_t head : heads)
    text += (text.empty() ? "" : ", ") + std::to_string(head);
  return text;
}

/// What patterns of no use may have meant.
static std::string explainUnused(const std::string &pattern,
                                 const std::vector<AttentionPlace> &places) {
  std::vector<std::string> names;
  for (const AttentionPlace &place : places)
    names.push_back(place.name);
  std::string near = spec::nearest(pattern, names);
  return "no attention has a name that '" + pattern +
         "' of --prune-heads matches; " +
         (names.empty()  ? "the model has none with projections"
          : near.empty() ? "the first is '" + names.front() + "'"
                         : "did you mean '" + near + "'?");
}

/// The command line's word, else the description's.
static bool chooseHeads(const Options &options, ModelSource &source,
                        Report &report) {
  std::optional<HeadRules> rules = options.pruneHeads;
  SourceLocation where = atFile(options.model);
  std::string name = "--prune-heads: ", problem;
  if (!rules && source.model && !source.model->pruneHeads.empty()) {
    where = source.model->pruneHeadsLocation;
    name = "/prune_heads: ";
    rules = HeadRules::parse(source.model->pruneHeads, problem);
    if (!rules) {
      report.error(where, name + problem);
      return false;
    }
  }
  if (!rules || rules->isNone())
    return true;
  // These see the model as it is, without a text to measure heads on.
  if (rules->getShare() &&
      (options.verb == Verb::Verify || options.verb == Verb::Import))
    return true;
  auto fail = [&](const std::string &message) {
    report.error(where, name + message);
    return false;
  };
  if (!source.model)
    return fail("needs a description; for an .mlir file there is the pass "
                "attune-prune-heads");
  if (rules->getShare() && options.calibrationFile.empty())
    return fail("which heads matter least is measured on texts: add "
                "--calibrate=FILE, or name heads (PATTERN:0,4)");
  std::vector<AttentionPlace> places = listAttentions(*source.model);
  std::map<std::string, HeadProducts> products;
  if (!options.calibrationFile.empty()) {
    auto measured = measureHeads(options, report, places);
    if (!measured)
      return false;
    products = std::move(*measured);
  }
  std::string errors;
  auto choose = [&](const AttentionPlace &place) {
    auto known = products.find(place.name);
    HeadRules::Heads gone;
    if (!rules->getShare()) {
      gone = rules->lookup(endingsOf(place.name));
    } else if (known == products.end()) {
      problem = "'" + place.name + "' saw nothing of the texts";
    } else if (problem.empty()) {
      std::string why;
      auto least = chooseLeast(known->second, place.attention->kvHeads,
                               *rules->getShare(), why);
      if (least)
        gone = std::move(*least);
      else
        problem = "of '" + place.name + "' " + why;
    }
    if (known != products.end() && !gone.empty() &&
        gone.back() < known->second.heads)
      errors +=
          "\n  " + place.name + " without " + join(gone) + ": off by " +
          formatv("{0:f2}%", 100 * known->second.errorWithout(gone)).str();
    return gone;
  };
  std::string refused;
  source.heads = pruneHeads(*source.model, choose, refused);
  // A description that is printed says what was chosen.
  if (source.heads)
    source.model->pruneHeads = llvm::join(source.heads->words, ",");
  if (problem.empty())
    problem = refused;
  for (const std::string &pattern : rules->unused())
    if (problem.empty())
      problem = explainUnused(pattern, places);
  if (!problem.empty())
    return fail(problem);
  if (!errors.empty())
    report.note({}, "results of attention over the texts of --calibrate, root "
                    "mean square:" +
                        errors);
  return true;
}

std::optional<ModelSource> driver::openModel(const Options &options,
                                             Report &diags) {
  if (!options.weights.empty() && !options.hasRandomWeights() &&
      !sys::fs::exists(options.weights)) {
    diags.error(atFile(options.weights),
                "no such file or folder; --weights names a safetensors file, "
                "an index or a folder, or is 'random'");
    return std::nullopt;
  }
  std::optional<ModelSource> source = readModel(options, diags);
  if (!source)
    return std::nullopt;
  if (!options.loras.empty() && source->checkpointPath.empty()) {
    diags.error(atFile(options.model),
                "--lora=" + options.loras.front().folder +
                    " needs the weights of the base model; name them with "
                    "--weights=PATH");
    return std::nullopt;
  }
  if (!openBranches(options, *source, diags) ||
      !forgetChanged(options, *source, diags) ||
      !chooseQuantization(options, *source, diags) ||
      !chooseCaches(options, *source, diags) ||
      !chooseLowRank(options, *source, diags))
    return std::nullopt;
  if (options.verb != Verb::Import)
    keepFormsApart(*source);
  if (!chooseMesh(options, *source, diags) ||
      !chooseHeads(options, *source, diags))
    return std::nullopt;
  if (!options.tokenizer.empty())
    source->tokenizerPath = options.tokenizer;
  for (StringRef place : {StringRef(options.weights), StringRef(options.model)})
    if (source->tokenizerPath.empty())
      source->tokenizerPath = findTokenizerFile(place.str());
  bool talks = options.verb == Verb::Compile ||
               options.verb == Verb::Generate || options.verb == Verb::Chat ||
               options.verb == Verb::Serve;
  if (talks && !source->tokenizerPath.empty()) {
    std::string file =
        options.verb == Verb::Chat       ? options.chat.chat.file
        : options.verb == Verb::Generate ? options.generate.messages.file
        : options.verb == Verb::Serve    ? options.serve.chat.chat.file
                                         : options.chatTemplate;
    // A name that is no file may be one of the model's templates.
    if (options.verb != Verb::Compile && !llvm::sys::fs::exists(file))
      file.clear();
    std::optional<std::string> chat =
        readChatTemplate(source->tokenizerPath, file, diags);
    if (!chat)
      return std::nullopt;
    source->chatJson = std::move(*chat);
  }
  if (talks && !readPreparation(*source, diags))
    return std::nullopt;
  return source;
}
