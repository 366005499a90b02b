//===- Wasm.cpp - A backend that a plugin brings --------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Pipelines/Backends.h"
#include "attune/Target/CPU/CPUBackend.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"

using namespace attune;

namespace {
/// WebAssembly multiplies and adds, but has no instruction for both in one.
struct FitWasm
    : mlir::PassWrapper<FitWasm, mlir::OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FitWasm)
  llvm::StringRef getArgument() const final { return "wasm-fit"; }
  llvm::StringRef getDescription() const final {
    return "Write what WebAssembly has no instruction for with what it has";
  }
  void getDependentDialects(mlir::DialectRegistry &registry) const final {
    registry.insert<mlir::arith::ArithDialect>();
  }
  void runOnOperation() final {
    getOperation().walk([](mlir::Operation *op) {
      mlir::OpBuilder builder(op);
      mlir::Location loc = op->getLoc();
      if (llvm::isa<mlir::vector::FMAOp, mlir::math::FmaOp>(op)) {
        mlir::Value product = mlir::arith::MulFOp::create(
            builder, loc, op->getOperand(0), op->getOperand(1));
        mlir::Value sum = mlir::arith::AddFOp::create(builder, loc, product,
                                                      op->getOperand(2));
        op->replaceAllUsesWith(mlir::ValueRange(sum));
        op->erase();
      }
    });
  }
};

/// A module that JavaScript loads, with its weights in a file beside it.
class WasmBackend : public CPUBackend {
public:
  llvm::StringRef getName() const override { return "wasm"; }
  std::vector<std::string> listCpus() const override {
    return {"native", "generic", "lime1"};
  }
  std::optional<TargetDescription>
  describe(const std::string &cpu, const std::string &) const override {
    if (!llvm::is_contained(listCpus(), cpu))
      return std::nullopt;
    TargetDescription target;
    target.triple = "wasm32-unknown-unknown";
    target.cpu = cpu == "native" ? "generic" : cpu;
    target.features = "+simd128,+bulk-memory";
    target.vectorBits = 128;
    return target;
  }
  void addCodePasses(mlir::OpPassManager &pm,
                     const TargetDescription &) const override {
    pm.addPass(std::make_unique<FitWasm>());
  }
  llvm::ArrayRef<ProductKind> getProducts() const override {
    using Weights = ProductKind::Weights;
    static const ProductKind products[] = {
        {"llvm", ".ll", /*text=*/true},
        {"asm", ".s", /*text=*/true},
        {"obj", ".o", /*text=*/false, Weights::Beside},
        {"wasm", ".wasm", /*text=*/false, Weights::Beside}};
    return products;
  }
  llvm::Expected<ProductBytes> emit(llvm::StringRef product,
                                    Emission &emission) const override {
    if (product != "wasm")
      return CPUBackend::emit(product, emission);
    llvm::Expected<ProductBytes> object = CPUBackend::emit("obj", emission);
    if (!object)
      return object;
    emission.beginStage("linking");
    return link(*object);
  }

private:
  static llvm::Expected<ProductBytes> link(llvm::ArrayRef<char> object);
};
} // namespace

/// What the object needs from outside, its host brings: two functions of the
/// runtime, and of libm what the model uses.
llvm::Expected<ProductBytes> WasmBackend::link(llvm::ArrayRef<char> object) {
  auto linker = llvm::sys::findProgramByName(
      "wasm-ld-" + std::to_string(LLVM_VERSION_MAJOR));
  if (!linker)
    linker = llvm::sys::findProgramByName("wasm-ld");
  if (!linker)
    return llvm::make_error<Refusal>(
        "linking WebAssembly needs wasm-ld of LLVM on PATH; --emit=obj needs "
        "no linker");
  llvm::SmallString<128> folder;
  if (std::error_code error =
          llvm::sys::fs::createUniqueDirectory("attune-wasm", folder))
    return llvm::errorCodeToError(error);
  llvm::scope_exit cleanup([&] { llvm::sys::fs::remove_directories(folder); });
  std::string input = (folder + "/model.o").str(),
              output = (folder + "/model.wasm").str();
  std::error_code error;
  llvm::raw_fd_ostream(input, error).write(object.data(), object.size());
  // Tiles of attention lie on the stack.
  llvm::StringRef arguments[] = {*linker,
                                 "--no-entry",
                                 "--strip-debug",
                                 "--export-table",
                                 "--allow-undefined",
                                 "--export=attune_model",
                                 "-zstack-size=4194304",
                                 "--export=__heap_base",
                                 "-o",
                                 output,
                                 input};
  if (llvm::sys::ExecuteAndWait(*linker, arguments) != 0)
    return llvm::make_error<Refusal>(*linker + " failed to link");
  auto made = llvm::MemoryBuffer::getFile(output);
  if (!made)
    return llvm::errorCodeToError(made.getError());
  llvm::StringRef bytes = (*made)->getBuffer();
  return ProductBytes(bytes.begin(), bytes.end());
}

static void registerAll() {
  LLVMInitializeWebAssemblyTargetInfo();
  LLVMInitializeWebAssemblyTarget();
  LLVMInitializeWebAssemblyTargetMC();
  LLVMInitializeWebAssemblyAsmPrinter();
  mlir::PassRegistration<FitWasm>();
  registerBackend(std::make_unique<WasmBackend>());
}

extern "C" mlir::PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "Wasm", LLVM_VERSION_STRING, registerAll};
}
