//===- Compile.cpp - attune compile -----------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CHeader.h"
#include "InMemory.h"
#include "Lowering.h"
#include "OutputFile.h"
#include "Verbs.h"
#include "WeightsForProduct.h"

#include "attune/Target/PTX/PTXBackend.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace attune;
using namespace attune::driver;

static Emit chooseEmit(const Options &options) {
  if (options.emit)
    return *options.emit;
  static const std::pair<llvm::StringRef, Emit> suffixes[] = {
      {".json", Emit::Json}, {".mlir", Emit::Mlir}, {".ll", Emit::Llvm},
      {".s", Emit::Asm},     {".ptx", Emit::Ptx},   {".cubin", Emit::Cubin},
      {".o", Emit::Obj},     {".so", Emit::So}};
  for (auto [suffix, emit] : suffixes)
    if (llvm::StringRef(options.output).ends_with(suffix))
      return emit;
  return Emit::Exe;
}

namespace {
class Compiler {
public:
  Compiler(const Options &options, Report &report, const ModelSource &source,
           Emit emit)
      : options(options), report(report), source(source), emit(emit),
        lowering(options, report, source, options.fusion), files(report) {}

  ExitCode run(const Checkpoint *checkpoint);

private:
  std::optional<std::string> makeText();
  bool writeProduct(const Checkpoint *checkpoint);
  bool pack(const Checkpoint &checkpoint, const std::string &path);

  const Options &options;
  Report &report;
  const ModelSource &source;
  Emit emit;
  Lowering lowering;
  OutputFiles files;
};
} // namespace

/// The text of a stage, or nothing if one on the way failed.
std::optional<std::string> Compiler::makeText() {
  if (!lowering.import(Entries::All))
    return std::nullopt;
  auto print = [&] {
    return printModule(lowering.getModule(), options.locations);
  };
  if (emit == Emit::Mlir) {
    std::string text = print();
    // The remarks come from the stage after.
    if (options.explainFusion && !lowering.optimize())
      return std::nullopt;
    return text;
  }
  if (!lowering.optimize() || !lowering.lowerToTensor())
    return std::nullopt;
  if (emit == Emit::Tensor)
    return print();
  if (!lowering.lowerToLoops())
    return std::nullopt;
  if (emit == Emit::Loops)
    return print();
  if (!lowering.lowerToLLVM())
    return std::nullopt;
  if (emit == Emit::Ptx)
    return getDeviceCode(lowering.getModule()).ptx;
  if (emit == Emit::Cubin)
    return lowering.assembleKernels(/*required=*/true);
  std::optional<CPUModule> translated = lowering.translate();
  if (!translated)
    return std::nullopt;
  if (emit == Emit::Llvm)
    return translated->llvmText();
  report.beginStage("generating machine code");
  llvm::Expected<std::string> text = translated->assembly();
  if (text)
    return std::move(*text);
  lowering.code =
      report.fail("internal error: " + llvm::toString(text.takeError()),
                  ExitCode::InternalError);
  return std::nullopt;
}

/// Appends the weights to the file at `path`.
bool Compiler::pack(const Checkpoint &checkpoint, const std::string &path) {
  report.beginStage("packing weights");
  lowering.code = appendProductWeights(lowering.getWeights(), checkpoint,
                                       options, path, report);
  return lowering.code == ExitCode::Success;
}

bool Compiler::writeProduct(const Checkpoint *checkpoint) {
  lowering.code = ExitCode::BadInput;
  // What cannot be written shows before anything is compiled.
  std::string *path = files.reserve(options.output, emit == Emit::Exe);
  if (!path)
    return false;
  std::string beside;
  if (checkpoint && emit == Emit::Obj) {
    std::string *reserved = files.reserve(options.output + ".weights");
    if (!reserved)
      return false;
    beside = *reserved;
  }
  std::string target = *path;
  lowering.code = ExitCode::Success;
  std::optional<llvm::SmallVector<char, 0>> object =
      lowering.compile(Entries::All);
  if (!object)
    return false;

  if (emit == Emit::Obj) {
    std::error_code problem;
    llvm::raw_fd_ostream stream(target, problem);
    stream.write(object->data(), object->size());
    stream.close();
    if (stream.has_error()) {
      lowering.code =
          report.fail("'" + options.output +
                      "' cannot be written: " + stream.error().message());
      stream.clear_error();
      return false;
    }
    return !checkpoint || pack(*checkpoint, beside);
  }
  report.beginStage("linking");
  LinkKind kind =
      emit == Emit::So ? LinkKind::SharedLibrary : LinkKind::Executable;
  if (llvm::Error problem = linkProduct(*object, kind, target)) {
    lowering.code = report.fail(llvm::toString(std::move(problem)));
    return false;
  }
  if (emit == Emit::So) {
    llvm::SmallString<128> header(options.output);
    llvm::sys::path::replace_extension(header, "h");
    if (!files.write(header.str().str(), makeHeader(lowering.getModule()))) {
      lowering.code = ExitCode::BadInput;
      return false;
    }
  }
  return !checkpoint || pack(*checkpoint, target);
}

ExitCode Compiler::run(const Checkpoint *checkpoint) {
  if (!options.stagesDir.empty()) {
    if (!makeFolder(options.stagesDir, report))
      return ExitCode::BadInput;
    if (source.model &&
        !lowering.dump("0-model.json", spec::print(*source.model)))
      return ExitCode::BadInput;
  }
  if (emit >= Emit::Obj) {
    if (!writeProduct(checkpoint))
      return lowering.code;
  } else {
    std::optional<std::string> text =
        emit == Emit::Json ? spec::print(*source.model) : makeText();
    if (!text)
      return lowering.code;
    if (!files.write(options.output.empty() ? "-" : options.output, *text))
      return ExitCode::BadInput;
  }
  if (!lowering.dumpReport())
    return ExitCode::BadInput;
  report.endStage();
  return files.commit() ? ExitCode::Success : ExitCode::BadInput;
}

ExitCode driver::runCompile(const Options &options, Report &report) {
  Emit emit = chooseEmit(options);
  if (emit >= Emit::Cubin && (options.output.empty() || options.output == "-"))
    return report.fail(
        "'compile' needs -o OUT for the file to write; only text goes to "
        "stdout (--emit=json, mlir, tensor, loops, llvm, asm or ptx)",
        ExitCode::BadCommandLine);
  std::optional<ModelSource> source = openModel(options, report);
  if (!source)
    return ExitCode::BadInput;
  if (emit == Emit::Json && source->isMlir())
    return report.fail("an .mlir file has no description to print");
  std::optional<Checkpoint> checkpoint;
  if (!source->checkpointPath.empty()) {
    checkpoint = openCheckpoint(*source, options, report);
    if (!checkpoint)
      return ExitCode::BadInput;
  } else if (emit >= Emit::So && hasWeights(*source))
    report.warning({}, "without --weights the result holds code alone; it "
                       "will look for '" +
                           options.output + ".weights'");
  return Compiler(options, report, *source, emit)
      .run(checkpoint ? &*checkpoint : nullptr);
}
