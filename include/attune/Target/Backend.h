//===- Backend.h - Products for a kind of machine ---------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All that pipelines and command line know of a machine: what it is called, the
// tile sizes for it, the passes that only it needs, and what files come out.
// The CPU (Target/CPU) and NVIDIA GPUs (Target/PTX) are two of these; plugins
// bring more (attune/Pipelines/Backends.h).
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_TARGET_BACKEND_H
#define ATTUNE_TARGET_BACKEND_H

#include "attune/TargetInfo/TargetDescription.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>
#include <vector>

namespace attune {

/// One thing that a backend can make.
struct ProductKind {
  enum class Weights {
    None,   ///< part of a model, such as kernels alone
    Beside, ///< in a file of their own, OUT.weights
    Inside, ///< appended to the file
  };

  llvm::StringRef name;   ///< as in --emit
  llvm::StringRef suffix; ///< of the OUT that asks for it: ".ptx"; may be empty
  bool text = false;      ///< may go to stdout
  Weights weights = Weights::None;
  bool executable = false; ///< the file may be run
  bool header = false;     ///< comes with a C header
  /// Linked with Attune's runtime, which is here for the host's architecture.
  bool linked = false;
};

using ProductBytes = llvm::SmallVector<char, 0>;

/// The inputs of a product, and the receiver of messages about it. Several
/// threads may look for objects and keep them.
class Emission {
public:
  Emission(mlir::ModuleOp module, const TargetDescription &target)
      : module(module), target(target) {}
  virtual ~Emission() = default;

  const mlir::ModuleOp module; ///< as buildLLVMPipeline leaves it
  const TargetDescription &target;

  /// A step begins that `--timing` lists.
  virtual void beginStage(llvm::StringRef name) {}
  /// Whether `--emit-stages` asks for what lies on the way.
  virtual bool keepsStages() const { return false; }
  virtual void keepStage(llvm::StringRef file, llvm::StringRef text) {}

  /// Adds to what `--timing` says of the step.
  virtual void noteStage(llvm::StringRef note) {}

  /// The object that this program made of the same code before, if that was
  /// kept. Code is LLVM's bitcode, in which functions name the machine.
  virtual std::optional<ProductBytes> findObject(llvm::StringRef code) {
    return std::nullopt;
  }
  virtual void keepObject(llvm::StringRef code, const ProductBytes &object) {}

  /// The object that products are linked from, of backends that make it from
  /// the module alone: they leave it here, or find it here from an earlier
  /// compilation. Then the module is of no use.
  std::optional<ProductBytes> object;
};

/// Why a product cannot be made here and now, as users are told: a tool is
/// missing. Any other error of a backend is reported as a bug.
class Refusal : public llvm::ErrorInfo<Refusal> {
public:
  static char ID;
  explicit Refusal(std::string why) : why(std::move(why)) {}
  void log(llvm::raw_ostream &os) const override { os << why; }
  std::error_code convertToErrorCode() const override {
    return llvm::inconvertibleErrorCode();
  }

private:
  std::string why;
};

class Backend {
public:
  virtual ~Backend();

  //===--- The machine ----------------------------------------------------===//

  /// As in --target.
  virtual llvm::StringRef getName() const = 0;
  /// Names for messages; describe() may know more.
  virtual std::vector<std::string> listCpus() const = 0;
  /// The default of --cpu.
  virtual std::string getDefaultCpu() const { return "native"; }
  /// Every value of --gpu, the default first. None: the machine has no GPU.
  virtual std::vector<std::string> listGpus() const { return {}; }
  /// The properties of a machine with this CPU ("native": whatever suits) and
  /// one of the GPUs that code generation needs. Nothing if there is no such
  /// CPU.
  virtual std::optional<TargetDescription>
  describe(const std::string &cpu, const std::string &gpu) const = 0;

  //===--- Passes ---------------------------------------------------------===//

  /// In buildLoopsPipeline, once tensors are memory: ops that this backend has
  /// a way of its own for.
  virtual void addBufferPasses(mlir::OpPassManager &pm,
                               const TargetDescription &target) const {}
  /// In buildVectorPipeline, once frames are planned: parallel loops become
  /// what runs at the same time here. Every backend must.
  virtual void addThreadPasses(mlir::OpPassManager &pm,
                               const TargetDescription &target) const = 0;
  /// At the start of buildLLVMPipeline: ops on vectors and scalars that this
  /// machine has no instruction for, and code that is not the host's.
  virtual void addCodePasses(mlir::OpPassManager &pm,
                             const TargetDescription &target) const {}

  //===--- Products -------------------------------------------------------===//

  /// The products that --emit offers besides the stages that all backends have
  /// in common; the last is the default. "obj" is what `run` and the like load,
  /// where the description's triple is this process's.
  virtual llvm::ArrayRef<ProductKind> getProducts() const = 0;
  /// Whether emit() makes this product, which is no text, of
  /// `Emission::object` alone if that is there.
  virtual bool reusesObjects(llvm::StringRef product) const { return false; }
  /// Which programs take part in making the object, and which versions of them:
  /// it is not reused where another text is returned.
  virtual std::string identifyTools() const { return ""; }
  /// Makes the product of that name.
  virtual llvm::Expected<ProductBytes> emit(llvm::StringRef product,
                                            Emission &emission) const = 0;
};

} // namespace attune

#endif // ATTUNE_TARGET_BACKEND_H
