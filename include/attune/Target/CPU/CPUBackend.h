//===- CPUBackend.h - From the llvm dialect to files and functions --------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_TARGET_CPU_CPUBACKEND_H
#define ATTUNE_TARGET_CPU_CPUBACKEND_H

#include "attune/Runtime/Model.h"
#include "attune/Target/Backend.h"

#include <memory>

namespace attune {

/// The description that a product carries besides its code; becomes the
/// metadata JSON.
struct ProductInfo {
  std::string name;
  int64_t context = 0;
  /// Why a step decodes one sequence, "it has ..."; empty: it takes several, or
  /// nobody asked.
  std::string decodesAlone;
  std::vector<std::string> adapters; ///< that stay apart, in their order
  std::vector<int64_t> eos;
  std::optional<int64_t> bos, pad, decoderStart, forcedBos;
  std::vector<int64_t> suppress, beginSuppress;
  /// Settings of `generate` by their names in generation_config.json.
  std::vector<std::pair<std::string, double>> sampling;
  std::string pooling;     ///< of `embed`, see runtime::Pooling; or empty
  bool normalizes = false; ///< what `embed` gives
  /// Tokens at which `embed` cuts a text; 0: the context; nothing: it does not.
  std::optional<int64_t> mostTokens;
  /// Texts that `embed` puts before others, by name, and the one for texts that
  /// name none; empty: nothing.
  std::vector<std::pair<std::string, std::string>> prompts;
  std::string defaultPrompt;
  /// The table of the tokenizer (runtime::Tokenizer::pack), and what it is in
  /// words; may be empty.
  std::string tokenizer, tokenizerKind;
  std::string chatJson;     ///< {"template", "tokens"}, may be empty
  std::string audioJson;    ///< how it hears, see spec::print; may be empty
  std::string codesJson;    ///< how it writes sounds; the same
  std::string playbackJson; ///< how it plays codes; the same
  std::string imagesJson;   ///< a preprocessor_config.json, may be empty
  std::string inspectJson;  ///< a JSON object for `inspect`, may be empty
  std::vector<std::string> needs; ///< of the CPU; see TargetDescription
};

/// Reads the entries of a module that still has its functions on memory (the
/// output of the loops pipeline), attaches the metadata and lets every entry be
/// called through `attune_model`. Run before buildLLVMPipeline.
mlir::LogicalResult describeProduct(mlir::ModuleOp module,
                                    const ProductInfo &info);
/// Attaches what is known of an earlier compilation of the same module.
void attachDescription(mlir::ModuleOp module, llvm::StringRef metadata,
                       llvm::ArrayRef<llvm::StringRef> entries,
                       const ProductInfo &info);

/// Translates the llvm dialect and optimises it for the target (O3). Kernels
/// are compiled one beside the other, on the threads of the module's context;
/// the result does not depend on how many there are. The same kernel of another
/// model is the same object, which the emission may have kept.
class CPUModule {
public:
  /// `emission` must outlive the result. `texts`: the code will be printed, so
  /// all of it is made here.
  static llvm::Expected<CPUModule> create(Emission &emission, bool texts);
  ~CPUModule();
  CPUModule(CPUModule &&);
  llvm::Expected<std::string> llvmText() const;
  llvm::Expected<std::string> assembly() const;
  /// Consumes the code; it comes last.
  llvm::Expected<ProductBytes> object();

private:
  struct Impl;
  explicit CPUModule(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

/// The code of one model for one of several CPUs: an object made of a module
/// with the attribute `attune.variant`, and what such a module says of itself.
struct CpuVariantCode {
  std::string name;
  std::vector<std::string> needs; ///< of the CPU
  ProductBytes object;
  std::string metadata;
  std::vector<std::string> entries;
};
/// One object for all of these CPUs, the best last. `target` is any of them,
/// `tokenizer` that of the model as ProductInfo has it. An error if they read
/// different weights or are called differently.
llvm::Expected<ProductBytes>
joinVariants(llvm::ArrayRef<CpuVariantCode> variants,
             const TargetDescription &target, llvm::StringRef tokenizer);

/// Runs an object in this process: the descriptor is valid while this lives.
class LoadedModel {
public:
  static llvm::Expected<LoadedModel> load(llvm::ArrayRef<char> object);
  ~LoadedModel();
  LoadedModel(LoadedModel &&);
  const attune_model_descriptor *getDescriptor() const;

private:
  struct Impl;
  explicit LoadedModel(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

enum class LinkKind { Executable, SharedLibrary };
/// Parts of the runtime that not every executable has.
struct LinkParts {
  bool serves = false; ///< the server of the verb `serve`
  bool sees = false;   ///< the reader of pictures
};
/// The parts that the module's product needs.
LinkParts findLinkParts(mlir::ModuleOp module);
/// Links an object with Attune's runtime, which for an executable has `parts`.
/// The runtime archives are looked for beside the running program (../lib).
/// Errors are refusals.
llvm::Expected<ProductBytes> linkProduct(llvm::ArrayRef<char> object,
                                         LinkKind kind, LinkParts parts);

/// Code for a CPU, through LLVM. Backends whose host code is made like this
/// derive from it.
class CPUBackend : public Backend {
public:
  llvm::StringRef getName() const override { return "cpu"; }
  std::vector<std::string> listCpus() const override { return listTargets(); }
  std::optional<TargetDescription>
  describe(const std::string &cpu, const std::string &gpu) const override;
  void addBufferPasses(mlir::OpPassManager &pm,
                       const TargetDescription &target) const override;
  void addThreadPasses(mlir::OpPassManager &pm,
                       const TargetDescription &target) const override;
  llvm::ArrayRef<ProductKind> getProducts() const override;
  /// Derived backends may make more of a module than its object.
  bool reusesObjects(llvm::StringRef product) const override {
    return getName() == "cpu";
  }
  llvm::Expected<ProductBytes> emit(llvm::StringRef product,
                                    Emission &emission) const override;
};

} // namespace attune

#endif // ATTUNE_TARGET_CPU_CPUBACKEND_H
