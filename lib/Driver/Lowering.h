//===- Lowering.h - A model on its way to machine code ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_DRIVER_LOWERING_H
#define ATTUNE_LIB_DRIVER_LOWERING_H

#include "CodeCache.h"
#include "Modules.h"
#include "Report/Report.h"
#include "Report/StageReport.h"

#include "attune/Pipelines/Pipelines.h"
#include "attune/Target/CPU/CPUBackend.h"
#include "attune/Validation/Validation.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <optional>

namespace attune::driver {

/// Which entries of a model are compiled.
enum class Entries { All, Forward, Decode };

/// One compilation. The steps are called in order; each returns whether it
/// succeeded and, if not, leaves the exit code in `code`.
class Lowering {
public:
  /// `fusion` off gives the reference path.
  Lowering(const Options &options, Report &report, const ModelSource &source,
           bool fusion);

  /// Imports or parses the module.
  bool import(Entries entries);
  /// attune to attune: what the kernels are made from. From here on the
  /// weights have their final layout.
  bool optimize();
  bool lowerToTensor();
  /// Calls of kernels.
  bool lowerToKernels();
  /// Begins with that. Loops over tiles whose functions say how large their
  /// frames are (planMemory reads it); lowerToLoops() begins with it.
  bool planLoops();
  bool lowerToLoops();
  /// Begins with that. Also attaches what the product says of itself.
  bool lowerToVector();
  bool lowerToLLVM();
  /// Makes the backend's product of that, by its name in --emit.
  std::optional<ProductBytes> emit(llvm::StringRef product);
  /// All of the above.
  std::optional<ProductBytes> compile(Entries entries, llvm::StringRef product);

  mlir::ModuleOp getModule() { return *module; }
  /// Whether the model, once imported, continues texts.
  bool canGenerate() const { return generates; }
  /// Whether its folder says how tokens become the vector of a text.
  bool pools() const { return info && !info->pooling.empty(); }
  /// The weights alone, as optimize() laid them out.
  mlir::ModuleOp getWeights() { return *weights; }
  /// Bytes of these that belong to experts a token does not go through.
  double getInactiveBytes() const { return inactiveBytes; }
  /// What passes remarked so far, with --remarks.
  const std::string &getRemarks() const { return remarks; }
  /// Adds those of the same model for another CPU.
  void addRemarks(const std::string &others) { remarks += others; }
  /// Writes a stage into the folder of `--emit-stages`, if there is one.
  bool dump(llvm::StringRef name, llvm::StringRef text);
  bool dumpModule(llvm::StringRef name);
  /// A stage that is not MLIR.
  bool dumpText(llvm::StringRef name, llvm::StringRef text);
  bool dumpFrames();
  /// The page about all stages so far.
  bool dumpReport();

  ExitCode code = ExitCode::Success;
  /// Asked for before the module is there: a model with weights, for which
  /// there are none, is refused.
  bool needsWeights = false;

private:
  bool fail(const std::string &message, ExitCode why);
  bool internalError(llvm::StringRef stage, mlir::PassManager &passes);
  bool runStage(
      llvm::StringRef name,
      llvm::function_ref<void(mlir::OpPassManager &, const PipelineOptions &)>
          build,
      bool mayRefuse, bool mayValidate = true);
  void dropEntry(llvm::StringRef name);
  bool findInfo();
  bool mayReuse(llvm::StringRef product) const;
  std::string makeKey();
  void reuse(CachedCode known);
  void keep(const std::string &key);

  const Options &options;
  Report &report;
  const ModelSource &source;
  std::string remarks; ///< outlives the context, which adds to it
  Modules modules;
  PipelineOptions pipeline;
  StageReport stages;
  std::optional<Validation> validation; ///< with --validate
  std::shared_ptr<ValidationResult> validated;
  mlir::OwningOpRef<mlir::ModuleOp> module, weights, before;
  std::optional<ProductInfo> info;
  std::optional<ProductBytes> object; ///< once made or found
  std::optional<CodeCache> cache;     ///< if code may come from it
  bool generates = false;
  double inactiveBytes = 0;
};

} // namespace attune::driver

#endif // ATTUNE_LIB_DRIVER_LOWERING_H
