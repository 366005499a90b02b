//===- Lowering.cpp - A model on its way to machine code --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "PoolingFiles.h"

#include "Options/Extensions.h"
#include "OutputFile.h"
#include "Report/Charts.h"
#include "Report/Remarks.h"
#include "Statistics.h"
#include "StoredForms.h"

#include "Attune/AttuneCut.h"
#include "Attune/AttuneDialect.h"
#include "attune/Import/Gguf.h"
#include "attune/Import/Tokenizers.h"
#include "attune/Runtime/Tokenizer.h"
#include "attune/Support/TensorNames.h"
#include "attune/Support/Version.h"
#include "attune/Target/Entries.h"
#include "attune/Weights/GgufFile.h"
#include "attune/Weights/WeightLayout.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"

#include <atomic>
#include <mutex>

using namespace attune;
using namespace attune::driver;

/// Remarks and checks come in the order of the program.
static unsigned countThreads(const Options &options) {
  return options.validate || !options.remarks.empty() ? 1 : options.threads;
}

Lowering::Lowering(const Options &options, Report &report,
                   const ModelSource &source, bool fusion)
    : options(options), report(report), source(source),
      modules(report, countThreads(options)) {
  pipeline.fusion = fusion ? FusionMode::Auto : FusionMode::Off;
  if (source.quantize)
    pipeline.quantize = source.quantize->words();
  else if (!source.stored.empty())
    pipeline.quantize = {"stored"};
  pipeline.exactActivations = options.exactActivations.value_or(
      source.model && source.model->activations == spec::RowForm::Exact);
  if (source.lowRank)
    pipeline.lowRank = source.lowRank->words();
  pipeline.ranks = source.ranks;
  if (source.branches) {
    pipeline.adapters = source.branches->names();
    pipeline.adapterRanks = source.branches->ranks();
  }
  pipeline.mesh = source.mesh;
  pipeline.tapInputs = options.tapInputs;
  if (source.heads)
    pipeline.pruneHeads = source.heads->rules;
  pipeline.explainFusion = options.explainFusion;
  pipeline.separateNorms = options.separateNorms;
  pipeline.backend = options.backend;
  pipeline.target = options.machine;
}

bool Lowering::fail(const std::string &message, ExitCode why) {
  report.error({}, message);
  code = why;
  return false;
}

bool Lowering::dump(llvm::StringRef name, llvm::StringRef text) {
  if (options.stagesDir.empty())
    return true;
  llvm::SmallString<128> path(options.stagesDir);
  llvm::sys::path::append(path, name);
  OutputFiles files(report);
  if (files.write(path.str().str(), text) && files.commit())
    return true;
  code = ExitCode::BadInput;
  return false;
}

bool Lowering::dumpModule(llvm::StringRef name) {
  if (options.stagesDir.empty())
    return true;
  std::string text = printModule(*module, options.locations);
  stages.add(name, text, *module);
  return dump(name, text);
}

bool Lowering::dumpText(llvm::StringRef name, llvm::StringRef text) {
  stages.add(name, text);
  return dump(name, text);
}

bool Lowering::dumpReport() {
  if (options.stagesDir.empty())
    return true;
  report.endStage();
  stages.setTimes(report.getTimes());
  std::optional<ModelStatistics> statistics;
  std::optional<MachinePeak> peak;
  if (source.model) {
    statistics = analyze(source.counted(), {});
    if (auto probe = MachineProbe::create(options.threads))
      peak = probe->measure();
    else
      llvm::consumeError(probe.takeError());
  }
  return dump("report.html", stages.html(options.model, statistics, peak));
}

/// A module with the weights of `module` and nothing else.
static mlir::OwningOpRef<mlir::ModuleOp> copyWeights(mlir::ModuleOp module) {
  mlir::OwningOpRef<mlir::ModuleOp> weights =
      mlir::ModuleOp::create(module.getLoc());
  for (WeightOp weight : module.getOps<WeightOp>())
    weights->push_back(weight->clone());
  return weights;
}

/// Bytes of experts' weights that one token does not go through.
static double countInactive(mlir::ModuleOp module) {
  mlir::FailureOr<WeightLayout> layout = layoutWeights(module);
  if (mlir::failed(layout))
    return 0;
  mlir::SymbolTable symbols(module);
  llvm::DenseMap<WeightOp, double> inactive;
  module.walk([&](mlir::Operation *op) {
    mlir::Value experts;
    if (auto moe = llvm::dyn_cast<MoEOp>(op))
      experts = moe.getExperts();
    else if (auto moe = llvm::dyn_cast<QuantizedMoEOp>(op))
      experts = moe.getExperts();
    else
      return;
    auto active =
        llvm::cast<mlir::RankedTensorType>(experts.getType()).getShape().back();
    for (mlir::Value operand : op->getOperands())
      if (auto get = operand.getDefiningOp<WeightGetOp>())
        if (auto weight = symbols.lookup<WeightOp>(get.getWeight());
            weight && weight.getParts()) {
          std::optional<WeightCut> cut = getCut(weight);
          int64_t parts =
              cut && cut->cutsParts ? cut->wholeRows : weight.getNumParts();
          inactive[weight] = 1 - double(active) / double(parts);
        }
  });
  double bytes = 0;
  for (auto [weight, share] : inactive)
    if (const WeightPlace *place = layout->lookup(weight.getSymName()))
      bytes += share * double(place->totalBytes);
  return bytes;
}

//===----------------------------------------------------------------------===//
// Stages
//===----------------------------------------------------------------------===//

/// Says what went wrong inside, and leaves what is needed to see it again.
bool Lowering::internalError(llvm::StringRef stage, mlir::PassManager &passes) {
  llvm::SmallString<128> path;
  int descriptor;
  std::string message = ("internal error while " + stage).str();
  if (!llvm::sys::fs::createTemporaryFile("attune-reproducer", "mlir",
                                          descriptor, path)) {
    // A text first: a full disk is no second failure.
    std::string text;
    llvm::raw_string_ostream stream(text);
    stream << "// Attune " ATTUNE_VERSION_STRING " failed while " << stage
           << ". To see it again:\n// attune-opt --pass-pipeline='";
    passes.printAsTextualPipeline(stream);
    stream << "' " << path << "\n" << printModule(*before, /*locations=*/true);
    llvm::raw_fd_ostream file(descriptor, /*shouldClose=*/true);
    file << text;
    file.close();
    message += "; this is a bug in Attune, please report it";
    if (!file.has_error()) {
      message += " with the reproducer: " + path.str().str();
    } else {
      message +=
          "; there is no room for its reproducer: " + file.error().message();
      file.clear_error();
      llvm::sys::fs::remove(path);
    }
  }
  return fail(message, ExitCode::InternalError);
}

namespace {
/// Adds up how many operations each pass begins with. The time of a stage
/// follows this number on every machine.
class WorkCounter : public mlir::PassInstrumentation {
public:
  explicit WorkCounter(std::atomic<uint64_t> &operations)
      : operations(operations) {}
  void runBeforePass(mlir::Pass *, mlir::Operation *op) override {
    uint64_t count = 0;
    op->walk([&](mlir::Operation *) { ++count; });
    operations += count;
  }

private:
  std::atomic<uint64_t> &operations;
};

/// Shows on a terminal which pass runs.
class PassProgress : public mlir::PassInstrumentation {
public:
  explicit PassProgress(Report &report) : report(report) {}
  void runBeforePass(mlir::Pass *pass, mlir::Operation *) override {
    std::lock_guard<std::mutex> lock(mutex);
    if (!pass->getArgument().empty())
      report.showProgress(pass->getArgument().str());
  }

private:
  Report &report;
  std::mutex mutex; ///< passes on functions run on several threads
};
} // namespace

bool Lowering::runStage(
    llvm::StringRef name,
    llvm::function_ref<void(mlir::OpPassManager &, const PipelineOptions &)>
        build,
    bool mayRefuse, bool mayValidate) {
  report.beginStage(name.str());
  mlir::PassManager passes(module->getContext(),
                           mlir::ModuleOp::getOperationName());
  // Pipelines mix passes on functions and on the module.
  passes.setNesting(mlir::OpPassManager::Nesting::Implicit);
  build(passes, pipeline);
  // A quarter of the time of all passes. Builds with assertions, attune-opt and
  // the tests check behind each pass.
#ifdef NDEBUG
  passes.enableVerifier(false);
#endif
  if (validation && mayValidate)
    validation->attach(passes);
  passes.addInstrumentation(std::make_unique<PassProgress>(report));
  std::atomic<uint64_t> operations = 0;
  if (options.timing)
    passes.addInstrumentation(std::make_unique<WorkCounter>(operations));
  before = module->clone();
  unsigned errorsBefore = modules.getNumErrors();
  bool succeeded = false;
  // A crash becomes an internal error, too.
  llvm::CrashRecoveryContext::Enable();
  llvm::CrashRecoveryContext recovery;
  bool survived = recovery.RunSafely([&] {
    succeeded = mlir::succeeded(passes.run(*module)) &&
                mlir::succeeded(mlir::verify(*module));
  });
  llvm::CrashRecoveryContext::Disable();
  if (options.timing)
    report.noteStage(llvm::utostr(operations) + " operations in passes");
  // For tests of what a failure leaves behind.
  if (std::optional<std::string> broken =
          llvm::sys::Process::GetEnv("ATTUNE_TEST_BREAK_STAGE"))
    succeeded &= *broken != name;
  if (survived && succeeded) {
    if (!validation || validated->mismatches == 0)
      return true;
    code = ExitCode::Mismatch;
    return false;
  }
  // A model may ask for what cannot be had, and so may passes of others; IR
  // that Attune made itself and cannot lower is its own fault.
  bool refused = survived && modules.getNumErrors() > errorsBefore &&
                 (mayRefuse || source.isMlir() || !pipeline.insertions.empty());
  if (!refused)
    return internalError(name, passes);
  code = ExitCode::BadInput;
  return false;
}

void Lowering::dropEntry(llvm::StringRef name) {
  if (mlir::Operation *entry = module->lookupSymbol(name))
    entry->erase();
}

/// Whether the product can generate with guessed tokens, or score prompts.
static bool checksGuesses(const Options &options) {
  if (options.machine.tilesInParallel())
    return false; // a GPU
  if (options.verb == Verb::Compile)
    return options.emit == "exe" || options.emit == "so" ||
           options.emit == "obj";
  return options.verb == Verb::Serve ||
         (options.verb == Verb::Generate && options.generate.guesses());
}

/// Whether perplexity is that of steps, as caches in bytes change what the
/// model says, and what reads whole texts may want pictures.
static bool measuresSteps(const Options &options, const ModelSource &source) {
  if (options.verb != Verb::Perplexity || !source.model)
    return false;
  bool sees = llvm::any_of(
      source.model->streams.back().layers, [](const spec::Layer &layer) {
        return std::holds_alternative<spec::Insert>(layer.op);
      });
  return sees || source.model->kvCache != spec::KvCache::Full;
}

/// Whether the product may decode several sequences of unequal length: it
/// serves, a program that embeds it has sets of them, or there are several
/// prompts, whose beams and guesses would take steps of their own.
static bool serves(const Options &options, const ModelSource &source) {
  if (options.verb == Verb::Compile)
    return (options.emit == "exe" || options.emit == "so" ||
            options.emit == "obj") &&
           !source.tokenizerPath.empty();
  if (options.verb == Verb::Generate)
    return !options.generate.promptsFile.empty() &&
           options.generate.beams == 1 && !options.generate.guesses();
  return options.verb == Verb::Serve;
}

/// Whether a feed-forward layer's activation has learned numbers.
static bool hasLearnedActivation(const spec::Model &model) {
  auto learns = [](const spec::Block &block) {
    return block.ffn && block.ffn->xielu;
  };
  for (const spec::Stream &stream : model.streams)
    for (const spec::Layer &layer : stream.layers) {
      const auto *ffn = std::get_if<spec::FFN>(&layer.op);
      const auto *block = std::get_if<spec::Block>(&layer.op);
      if ((ffn && ffn->xielu) || (block && learns(*block)) ||
          llvm::any_of(layer.cycle, learns))
        return true;
    }
  return false;
}

bool Lowering::import(Entries entries) {
  code = addInsertions(options, modules, pipeline, report);
  if (code != ExitCode::Success)
    return false;
  if (!options.remarks.empty() &&
      !collectRemarks(modules.getContext(), options.remarks, remarks))
    return fail("internal error: MLIR takes no remarks",
                ExitCode::InternalError);
  if (options.validate) {
    ValidationOptions allowed;
    allowed.atol = options.atol;
    allowed.rtol = options.rtol;
    allowed.warn = true;
    // Less than two minutes; what is left out is said.
    allowed.total = 800000000;
    allowed.progress = [this](const std::string &what) {
      report.showProgress("validating " + what);
    };
    validated = std::make_shared<ValidationResult>();
    validation.emplace(allowed, validated);
  }

  if (options.machine.tilesInParallel() && source.model &&
      hasLearnedActivation(*source.model))
    return fail("'" + options.model +
                    "': xIELU, whose numbers are learned, has no kernels on "
                    "GPUs; compile it for a CPU",
                ExitCode::BadInput);
  report.beginStage("importing");
  ImportOptions imported;
  bool steps = measuresSteps(options, source);
  if (steps)
    entries = Entries::Decode;
  imported.decode = entries != Entries::Forward;
  imported.decodeAll = checksGuesses(options) || steps;
  imported.decodeBatch = serves(options, source);
  module = modules.import(source, imported);
  if (!module) {
    code = ExitCode::BadInput;
    return false;
  }
  // The entries of an imported model are the importer's own.
  if (!source.model && mlir::failed(verifyEntries(*module))) {
    code = ExitCode::BadInput;
    return false;
  }
  if (needsWeights && !module->getOps<WeightOp>().empty())
    return fail("'" + options.model +
                    "' comes without weights; name them with --weights=PATH "
                    "(a safetensors file, an index or a folder), or try it "
                    "with --weights=random",
                ExitCode::BadInput);
  // Kernels of GPUs take scales in one level.
  markStored(*module, source, pipeline.target.tilesInParallel());
  if (source.mesh.dp > 1)
    (*module)->setAttr(
        "attune.groups",
        mlir::Builder(module->getContext()).getI64IntegerAttr(source.mesh.dp));
  generates = module->lookupSymbol("decode") != nullptr;
  if (entries == Entries::Decode && !generates)
    return fail("'" + options.model +
                    "' cannot generate: that takes a last stream from token "
                    "ids through causal attention to a head over the "
                    "vocabulary",
                ExitCode::BadInput);
  if (entries == Entries::Decode)
    dropEntry("forward");
  if (entries == Entries::Forward && module->lookupSymbol("forward")) {
    dropEntry("encode");
    dropEntry("decode");
    dropEntry("decode_span");
    dropEntry("sound");
    dropEntry("encode_sound");
  }
  if (options.persistentKernel && !generates)
    (*module)->emitWarning("--persistent-kernel changes nothing: the model has "
                           "no step of a decoder");
  if (options.stagesDir.empty())
    return true;
  Graph graph(*module);
  stages.setGraph(graph.svg());
  return dumpModule("1-imported.mlir") && dump("1-graph.dot", graph.dot()) &&
         dump("1-graph.svg", graph.svg());
}

bool Lowering::optimize() {
  // Entries with other arguments are not what they were, on purpose.
  if ((options.machine.tilesInParallel() || source.mesh.tp > 1) &&
      !runStage("preparing entries", buildEntriesPipeline,
                /*mayRefuse=*/false, /*mayValidate=*/false))
    return false;
  bool done = runStage(
      "optimizing",
      [](mlir::OpPassManager &passes, const PipelineOptions &pipeline) {
        passes.addPass(mlir::createSymbolDCEPass());
        buildOptimizePipeline(passes, pipeline);
      },
      /*mayRefuse=*/true);
  if (!done)
    return false;
  weights = copyWeights(*module);
  inactiveBytes = countInactive(*module);
  return dumpModule("2-optimized.mlir");
}

bool Lowering::lowerToTensor() {
  return runStage("making loops on tensors", buildTensorPipeline,
                  /*mayRefuse=*/false);
}

/// Reads what the import left on the module, and the files that go into a
/// product.
static std::optional<ProductInfo> makeProductInfo(mlir::ModuleOp module,
                                                  const ModelSource &source,
                                                  Report &report) {
  ProductInfo info;
  auto number = [&](llvm::StringRef name) -> std::optional<int64_t> {
    if (auto value = module->getAttrOfType<mlir::IntegerAttr>(name))
      return value.getInt();
    return std::nullopt;
  };
  if (auto name = module->getAttrOfType<mlir::StringAttr>("attune.name"))
    info.name = name.str();
  info.context = number("attune.context").value_or(0);
  if (auto why =
          module->getAttrOfType<mlir::StringAttr>("attune.decodes_alone"))
    info.decodesAlone = why.str();
  if (auto names = module->getAttrOfType<mlir::ArrayAttr>("attune.adapters"))
    for (auto each : names.getAsRange<mlir::StringAttr>())
      info.adapters.push_back(each.str());
  info.bos = number("attune.bos");
  info.pad = number("attune.pad");
  info.decoderStart = number("attune.decoder_start");
  info.forcedBos = number("attune.forced_bos");
  auto numbers = [&](llvm::StringRef name, std::vector<int64_t> &ids) {
    if (auto value = module->getAttrOfType<mlir::DenseI64ArrayAttr>(name))
      ids.assign(value.asArrayRef().begin(), value.asArrayRef().end());
  };
  numbers("attune.eos", info.eos);
  numbers("attune.suppress", info.suppress);
  numbers("attune.begin_suppress", info.beginSuppress);
  if (auto sampling =
          module->getAttrOfType<mlir::DictionaryAttr>("attune.sampling"))
    for (mlir::NamedAttribute setting : sampling)
      if (auto value = llvm::dyn_cast<mlir::FloatAttr>(setting.getValue()))
        info.sampling.emplace_back(setting.getName().str(),
                                   value.getValueAsDouble());
  if (auto audio = module->getAttrOfType<mlir::StringAttr>("attune.audio"))
    info.audioJson = audio.str();
  if (auto codes = module->getAttrOfType<mlir::StringAttr>("attune.codes"))
    info.codesJson = codes.str();
  if (auto playback =
          module->getAttrOfType<mlir::StringAttr>("attune.playback"))
    info.playbackJson = playback.str();
  if (isGgufFile(source.checkpointPath)) {
    std::optional<std::string> pooling =
        readGgufPooling(source.checkpointPath, report);
    if (!pooling)
      return std::nullopt;
    info.pooling = *pooling;
  }
  if (!source.folder.empty() && !readPooling(source.folder, info, report))
    return std::nullopt;
  info.imagesJson = source.imagesJson;
  if (!source.tokenizerPath.empty()) {
    std::optional<TokenizerFile> file =
        readTokenizer(source.tokenizerPath, report);
    if (!file)
      return std::nullopt;
    runtime::Error error;
    if (file->tokenizer &&
        !file->tokenizer->pack(file->json, info.tokenizer, error)) {
      report.fail(source.tokenizerPath + ": " + error.message);
      return std::nullopt;
    }
    if (file->tokenizer)
      info.tokenizerKind = file->tokenizer->describe();
    info.chatJson = source.chatJson;
  }
  return info;
}

/// Reads the description of the product once.
bool Lowering::findInfo() {
  if (info)
    return true;
  info = makeProductInfo(*module, source, report);
  if (!info) {
    code = ExitCode::BadInput;
    return false;
  }
  info->needs = options.machine.needs;
  if (source.model) {
    ModelStatistics statistics = analyze(source.counted(), {});
    if (source.quantize || source.lowRank)
      countCompressed(*weights, inactiveBytes, statistics);
    info->inspectJson = describeStatistics(statistics);
  }
  return true;
}

/// Writes down where each function keeps its temporary buffers, which the
/// planning pass left as an attribute, and takes that off.
bool Lowering::dumpFrames() {
  std::string text, pictures;
  if (!options.stagesDir.empty() && source.model)
    pictures = drawMemory(*module, analyze(*source.model, {}).dims);
  for (auto func : module->getOps<mlir::func::FuncOp>()) {
    func->removeAttr("attune.slots");
    func->removeAttr("attune.lives");
    auto frame = llvm::dyn_cast_or_null<mlir::ArrayAttr>(
        func->removeAttr("attune.frame"));
    if (!frame)
      continue;
    text += func.getSymName().str() + "\n";
    for (auto line : frame.getAsRange<mlir::StringAttr>())
      text += "  " + line.str() + "\n";
  }
  stages.setFrames(text, pictures);
  return dump("3-frames.txt", text);
}

bool Lowering::lowerToKernels() {
  if (!runStage("making kernels", buildKernelsPipeline, /*mayRefuse=*/false))
    return false;
  return options.stagesDir.empty() || options.machine.tilesInParallel() ||
         dump("3-kernels.mlir", printKernels(*module, options.locations));
}

bool Lowering::planLoops() {
  return lowerToKernels() &&
         runStage("planning memory", buildFramesPipeline, /*mayRefuse=*/false);
}

bool Lowering::lowerToLoops() {
  return planLoops() && dumpFrames() && dumpModule("3-loops.mlir");
}

bool Lowering::lowerToVector() {
  // The signatures of an imported model's entries need no check.
  if (!source.model && mlir::failed(checkEntries(*module))) {
    code = ExitCode::BadInput;
    return false;
  }
  if (!lowerToLoops() ||
      !runStage("making vectors", buildVectorPipeline, /*mayRefuse=*/false))
    return false;
  if (!findInfo())
    return false;
  if (mlir::failed(describeProduct(*module, *info))) {
    code = ExitCode::BadInput;
    return false;
  }
  return dumpModule("3-vector.mlir");
}

bool Lowering::lowerToLLVM() {
  return runStage("making LLVM's dialect", buildLLVMPipeline,
                  /*mayRefuse=*/false) &&
         dumpModule("4-llvm.mlir");
}

namespace {
/// Passes on what a backend says on its way.
class ReportedEmission : public Emission {
public:
  ReportedEmission(Lowering &lowering, Report &report, const Options &options,
                   CodeCache *cache)
      : Emission(lowering.getModule(), options.machine), lowering(lowering),
        report(report), cache(cache), keeps(!options.stagesDir.empty()) {}

  void beginStage(llvm::StringRef name) override {
    report.beginStage(name.str());
  }
  bool keepsStages() const override { return keeps; }
  void keepStage(llvm::StringRef file, llvm::StringRef text) override {
    kept &= lowering.dumpText(file, text);
  }
  void noteStage(llvm::StringRef note) override {
    report.noteStage(note.str());
  }
  std::optional<ProductBytes> findObject(llvm::StringRef code) override {
    std::optional<std::string> content;
    if (cache)
      content = cache->find(makeKernelKey(code));
    if (!content)
      return std::nullopt;
    return ProductBytes(content->begin(), content->end());
  }
  void keepObject(llvm::StringRef code, const ProductBytes &object) override {
    if (cache)
      cache->add(makeKernelKey(code), {object.data(), object.size()});
  }

  bool kept = true;

private:
  static std::string makeKernelKey(llvm::StringRef code) {
    CodeKey key;
    key.add("kernel");
    key.add(code);
    return key.finish();
  }

  Lowering &lowering;
  Report &report;
  CodeCache *cache;
  bool keeps;
};
} // namespace

std::optional<ProductBytes> Lowering::emit(llvm::StringRef product) {
  ReportedEmission emission(*this, report, options, cache ? &*cache : nullptr);
  emission.object = std::move(object);
  llvm::Expected<ProductBytes> bytes = options.backend->emit(product, emission);
  if (bytes && emission.kept) {
    object = std::move(emission.object);
    return std::move(*bytes);
  }
  llvm::handleAllErrors(
      bytes.takeError(),
      [&](const Refusal &refusal) {
        fail(refusal.message(), ExitCode::BadInput);
      },
      [&](const llvm::ErrorInfoBase &problem) {
        fail("internal error: " + problem.message(), ExitCode::InternalError);
      });
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Code of earlier compilations
//===----------------------------------------------------------------------===//

/// Whether the object may come from a cache. It must not where what is said or
/// written on the way is wanted, nor where passes of others take part: those
/// may do anything.
bool Lowering::mayReuse(llvm::StringRef product) const {
  auto kind = llvm::find_if(
      options.backend->getProducts(),
      [&](const ProductKind &kind) { return kind.name == product; });
  return options.backend->reusesObjects(product) &&
         kind != options.backend->getProducts().end() && !kind->text &&
         options.stagesDir.empty() && options.remarks.empty() &&
         options.plugins.empty() && pipeline.insertions.empty() &&
         !options.explainFusion && !validation &&
         !llvm::sys::Process::GetEnv("ATTUNE_TEST_BREAK_STAGE");
}

/// All that the object depends on: the program, the module as optimize() leaves
/// it, what is done to it from there on, and what the product says of itself.
std::string Lowering::makeKey() {
  CodeKey key;
  key.add(printModule(*module, /*locations=*/true));
  // Passes print their options, and with these all that they know of a machine.
  mlir::PassManager passes(module->getContext(),
                           mlir::ModuleOp::getOperationName());
  passes.setNesting(mlir::OpPassManager::Nesting::Implicit);
  buildTensorPipeline(passes, pipeline);
  buildLoopsPipeline(passes, pipeline);
  buildVectorPipeline(passes, pipeline);
  buildLLVMPipeline(passes, pipeline);
  std::string text;
  llvm::raw_string_ostream stream(text);
  passes.printAsTextualPipeline(stream);
  key.add(text);
  const TargetDescription &machine = options.machine;
  key.add(options.backend->getName());
  key.add(machine.triple);
  key.add(machine.cpu);
  key.add(machine.features);
  key.add(llvm::itostr(machine.vectorBits));
  key.add(machine.gpu);
  key.add(llvm::join(machine.needs, ","));
  key.add(options.backend->identifyTools());
  key.add(options.variant);
  // The rest of it the module says itself.
  key.add(info->decodesAlone);
  key.add(info->pooling);
  key.add(info->normalizes ? "normalizes" : "");
  key.add(info->mostTokens ? llvm::itostr(*info->mostTokens) : "");
  for (const auto &[name, prompt] : info->prompts) {
    key.add(name);
    key.add(prompt);
  }
  key.add(info->defaultPrompt);
  key.add(info->tokenizer);
  key.add(info->chatJson);
  key.add(info->imagesJson);
  key.add(info->inspectJson);
  return key.finish();
}

/// Takes over code of an earlier compilation, in place of the module's.
void Lowering::reuse(CachedCode known) {
  llvm::SmallVector<llvm::StringRef> entries(known.entries.begin(),
                                             known.entries.end());
  attachDescription(*module, known.metadata, entries, *info);
  object = std::move(known.object);
}

void Lowering::keep(const std::string &key) {
  mlir::Operation *described = *module;
  CachedCode made;
  made.metadata =
      described->getAttrOfType<mlir::StringAttr>("attune.metadata").str();
  auto entries = described->getAttrOfType<mlir::ArrayAttr>("attune.entries");
  for (auto name : entries.getAsRange<mlir::StringAttr>())
    made.entries.push_back(name.str());
  made.object = *object;
  cache->add(key, made.write());
  cache->prune();
}

std::optional<ProductBytes> Lowering::compile(Entries entries,
                                              llvm::StringRef product) {
  if (!import(entries) || !optimize())
    return std::nullopt;
  if (!options.variant.empty())
    (*module)->setAttr(
        "attune.variant",
        mlir::StringAttr::get(&modules.getContext(), options.variant));
  if (mayReuse(product))
    cache = CodeCache::open(options, report);
  std::string key;
  if (cache) {
    report.beginStage("looking for code in the cache");
    if (!findInfo())
      return std::nullopt;
    key = makeKey();
    std::optional<CachedCode> known;
    if (std::optional<std::string> content = cache->find(key))
      known = CachedCode::read(*content);
    if (known) {
      report.noteStage("found");
      reuse(std::move(*known));
      return emit(product);
    }
  }
  if (!lowerToTensor() || !lowerToVector() || !lowerToLLVM())
    return std::nullopt;
  std::optional<ProductBytes> bytes = emit(product);
  if (cache && bytes && object) {
    report.beginStage("keeping code in the cache");
    keep(key);
  }
  return bytes;
}
