//===- Compile.cpp - attune compile -----------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../CHeader.h"
#include "../InMemory.h"
#include "../Lowering.h"
#include "../OutputFile.h"
#include "../Variants.h"
#include "../WeightsForProduct.h"
#include "Inspect.h"
#include "Verbs.h"

#include "attune/Analysis/ModelStatistics.h"
#include "attune/Weights/LoraBranches.h"
#include "attune/Weights/WeightFile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace attune;
using namespace attune::driver;

static bool toStdout(const Options &options) {
  return options.output.empty() || options.output == "-";
}

namespace {
class Compiler {
public:
  Compiler(const Options &options, Report &report, const ModelSource &source)
      : options(options), report(report), source(source),
        lowering(options, report, source, options.fusion), files(report) {}

  ExitCode run(Checkpoint *checkpoint);

private:
  ExitCode make(Checkpoint *checkpoint);
  std::optional<std::string> makeText();
  std::optional<std::string> printOne();
  bool writeProduct(Checkpoint *checkpoint);
  bool pack(Checkpoint *checkpoint, const std::string &path);
  void reportWritten();

  const Options &options;
  Report &report;
  const ModelSource &source;
  Lowering lowering;
  OutputFiles files;
};
} // namespace

/// The text of a stage, or nothing if one on the way failed.
std::optional<std::string> Compiler::makeText() {
  if (options.emit == "json")
    return spec::print(*source.model);
  if (!lowering.import(Entries::All))
    return std::nullopt;
  auto print = [&] {
    return printModule(lowering.getModule(), options.locations);
  };
  if (options.emit == "mlir") {
    std::string text = print();
    // The remarks come from the stage after.
    if (options.explainFusion && !lowering.optimize())
      return std::nullopt;
    return text;
  }
  if (!lowering.optimize() || !lowering.lowerToTensor())
    return std::nullopt;
  bool whole = options.emit != "kernels";
  bool lowered = !whole                     ? lowering.lowerToKernels()
                 : options.emit == "vector" ? lowering.lowerToVector()
                                            : lowering.lowerToLoops();
  if (!lowered)
    return std::nullopt;
  if (!options.kernel.empty())
    return printOne();
  return whole ? print()
               : printKernels(lowering.getModule(), options.locations);
}

/// The kernel that --kernel names.
std::optional<std::string> Compiler::printOne() {
  mlir::ModuleOp module = lowering.getModule();
  auto text = printKernel(module, options.kernel, options.locations);
  if (!text)
    lowering.code =
        report.fail("there is no kernel '" + options.kernel + "'; there are " +
                        llvm::join(listKernels(module), ", "),
                    ExitCode::BadCommandLine);
  return text;
}

static void warnOfCodeAlone(const Options &options, Report &report) {
  report.warning({}, "without --weights the result holds code alone; it will "
                     "look for '" +
                         options.output +
                         ".weights' (--weights=random makes some up)");
}

/// Appends the weights to the file at `path`.
bool Compiler::pack(Checkpoint *checkpoint, const std::string &path) {
  report.beginStage("packing weights");
  if (source.branches && checkpoint)
    addLoraStacks(lowering.getWeights(), *source.branches, *checkpoint);
  lowering.code = appendProductWeights(lowering.getWeights(), checkpoint,
                                       options, path, report);
  return lowering.code == ExitCode::Success;
}

bool Compiler::writeProduct(Checkpoint *checkpoint) {
  const ProductKind &product = *options.product;
  bool packs = product.weights != ProductKind::Weights::None &&
               (checkpoint || options.hasRandomWeights());
  lowering.code = ExitCode::BadInput;
  // Reports an output that cannot be written before anything is compiled.
  std::string target, beside;
  if (!toStdout(options)) {
    std::string *path = files.reserve(options.output, product.executable);
    if (!path)
      return false;
    target = *path;
  }
  if (packs && product.weights == ProductKind::Weights::Beside) {
    std::string *path = files.reserve(options.output + ".weights");
    if (!path)
      return false;
    beside = *path;
  }
  lowering.code = ExitCode::Success;
  std::optional<ProductBytes> bytes =
      options.variants.empty()
          ? lowering.compile(Entries::All, product.name)
          : compileVariants(options, report, source, lowering);
  if (!bytes)
    return false;
  // Of a description runCompile() knows it before.
  if (!packs && product.weights == ProductKind::Weights::Inside &&
      source.isMlir() && !lowering.getWeights().getOps<WeightOp>().empty())
    warnOfCodeAlone(options, report);
  llvm::StringRef content(bytes->data(), bytes->size());
  if (target.empty())
    return files.write("-", content);

  std::error_code problem;
  llvm::raw_fd_ostream stream(target, problem);
  stream << content;
  stream.close();
  if (stream.has_error()) {
    lowering.code = report.fail("'" + options.output + "' cannot be written: " +
                                stream.error().message());
    stream.clear_error();
    return false;
  }
  if (product.header) {
    llvm::SmallString<128> header(options.output);
    llvm::sys::path::replace_extension(header, "h");
    if (!files.write(header.str().str(), makeHeader(lowering.getModule()))) {
      lowering.code = ExitCode::BadInput;
      return false;
    }
  }
  return !packs || pack(checkpoint, beside.empty() ? target : beside);
}

/// A path as a shell takes it.
static std::string quote(llvm::StringRef path) {
  if (llvm::all_of(path, [](char c) {
        return llvm::isAlnum(c) || llvm::StringRef("/._-+=:,@%").contains(c);
      }))
    return path.str();
  std::string result = "'";
  for (char c : path)
    result += c == '\'' ? "'\\''" : std::string(1, c);
  return result + "'";
}

/// The line at the end: what was written, and what to do with it.
void Compiler::reportWritten() {
  uint64_t bytes = 0;
  if (toStdout(options) || !llvm::sys::fs::is_regular_file(options.output) ||
      llvm::sys::fs::file_size(options.output, bytes))
    return;
  std::string next;
  if (options.product && options.product->executable) {
    bool named = options.output.find('/') != std::string::npos;
    next = "run it: ";
    // Ranks on GPUs are processes of their own, too, that MPI starts.
    if (int64_t ranks = source.mesh.processes(); ranks > 1)
      next += "mpirun -n " + std::to_string(ranks) + " ";
    next += quote((named ? "" : "./") + options.output);
    if (source.model && source.model->codes &&
        !source.model->codes->sound.empty())
      next += " generate --prompt TEXT --audio-out=FILE.wav";
    else if (source.model && source.model->playback)
      next += " generate --codes=FILE.safetensors --audio-out=FILE.wav";
    else if (source.model && source.model->audio)
      next += " generate --audio=FILE.wav";
    else if (lowering.pools() && !source.tokenizerPath.empty())
      next += " embed --text=\"...\"";
    else if (!lowering.canGenerate())
      next += " run --inputs=IN.safetensors --outputs=OUT.safetensors";
    else if (!source.tokenizerPath.empty())
      next += " generate --prompt=\"...\"";
    else
      next += " generate --prompt-ids=1,2,3";
  } else if (options.product && options.product->header) {
    llvm::SmallString<128> header(options.output);
    llvm::sys::path::replace_extension(header, "h");
    next = "its interface is " + quote(header);
  } else if (uint64_t weights = 0;
             options.product &&
             options.product->weights == ProductKind::Weights::Beside &&
             !llvm::sys::fs::file_size(options.output + ".weights", weights)) {
    next = "its weights are " + quote(options.output + ".weights") + ", " +
           formatBytes(double(weights));
  }
  report.reportWritten(options.output, bytes, next);
}

/// Makes everything but the remarks; what is for `files` waits there.
ExitCode Compiler::make(Checkpoint *checkpoint) {
  if (!options.stagesDir.empty()) {
    if (!makeFolder(options.stagesDir, report))
      return ExitCode::BadInput;
    if (source.model &&
        !lowering.dump("0-model.json", spec::print(*source.model)))
      return ExitCode::BadInput;
  }
  if (options.product) {
    if (!writeProduct(checkpoint))
      return lowering.code;
  } else {
    std::optional<std::string> text = makeText();
    if (!text)
      return lowering.code;
    if (!files.write(options.output.empty() ? "-" : options.output, *text))
      return ExitCode::BadInput;
  }
  if (!lowering.dumpReport())
    return ExitCode::BadInput;
  report.endStage();
  return ExitCode::Success;
}

ExitCode Compiler::run(Checkpoint *checkpoint) {
  bool remarks = !options.remarks.empty();
  // Said before anything is compiled.
  if (remarks && options.remarks != "-" &&
      !OutputFiles(report).reserve(options.remarks))
    return ExitCode::BadCommandLine;
  ExitCode code = make(checkpoint);
  if (code != ExitCode::Success) {
    // What passes said until then may tell why.
    OutputFiles alone(report);
    if (!lowering.getRemarks().empty() &&
        alone.write(options.remarks, lowering.getRemarks()))
      alone.commit();
    return code;
  }
  if (remarks && !files.write(options.remarks, lowering.getRemarks()))
    return ExitCode::BadInput;
  if (!files.commit())
    return ExitCode::BadInput;
  reportWritten();
  return ExitCode::Success;
}

/// The products that may go to stdout, for a message.
static std::string listTexts(const Backend &backend) {
  std::vector<llvm::StringRef> names = {"json", "mlir", "kernels", "loops",
                                        "vector"};
  for (const ProductKind &product : backend.getProducts())
    if (product.text)
      names.push_back(product.name);
  llvm::StringRef last = names.back();
  names.pop_back();
  return llvm::join(names, ", ") + " or " + last.str();
}

ExitCode driver::runCompile(const Options &options, Report &report) {
  const ProductKind *product = options.product;
  if (product && !product->text && toStdout(options)) {
    if (!checkIsModel(options.model, report))
      return ExitCode::BadInput;
    return report.fail(
        "'compile' needs -o OUT for the file to write; only text goes to "
        "stdout (--emit=" +
            listTexts(*options.backend) + ")",
        ExitCode::BadCommandLine);
  }
  std::optional<ModelSource> source = openModel(options, report);
  if (!source)
    return ExitCode::BadInput;
  if (source->heads)
    report.note({}, describePruned(*source, {}));
  if (options.emit == "json" && source->isMlir())
    return report.fail("an .mlir file has no description to print");
  std::optional<Checkpoint> checkpoint;
  if (!source->checkpointPath.empty()) {
    checkpoint = openCheckpoint(*source, options, report);
    if (!checkpoint)
      return ExitCode::BadInput;
  } else if (product && product->weights == ProductKind::Weights::Inside &&
             !options.hasRandomWeights() && hasWeights(*source)) {
    warnOfCodeAlone(options, report);
  }
  return Compiler(options, report, *source)
      .run(checkpoint ? &*checkpoint : nullptr);
}
