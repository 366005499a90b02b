//===- CPUBackend.cpp - Code for a CPU --------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Target/CPU/CPUBackend.h"

#include "attune/Codegen/Passes.h"
#include "attune/Conversion/Passes.h"

namespace attune {

std::optional<TargetDescription>
CPUBackend::describe(const std::string &cpu, const std::string &) const {
  return describeTarget(cpu);
}

void CPUBackend::addBufferPasses(mlir::OpPassManager &pm,
                                 const TargetDescription &target) const {
  PadRowsOptions rows;
  rows.wayBytes = target.getRowSpacing();
  pm.addPass(createPadRows(rows));
}

void CPUBackend::addThreadPasses(mlir::OpPassManager &pm,
                                 const TargetDescription &) const {
  pm.addPass(createDistributeThreads());
}

llvm::ArrayRef<ProductKind> CPUBackend::getProducts() const {
  using Weights = ProductKind::Weights;
  static const ProductKind products[] = {
      {"llvm", ".ll", /*text=*/true},
      {"asm", ".s", /*text=*/true},
      {"obj", ".o", /*text=*/false, Weights::Beside},
      {"so", ".so", /*text=*/false, Weights::Inside, /*executable=*/false,
       /*header=*/true, /*linked=*/true},
      {"exe", "", /*text=*/false, Weights::Inside, /*executable=*/true,
       /*header=*/false, /*linked=*/true}};
  return products;
}

static ProductBytes toBytes(llvm::StringRef text) {
  return ProductBytes(text.begin(), text.end());
}

/// The texts on the way to an object. The one of this name, if it is asked for;
/// empty if it is not among them.
static llvm::Expected<std::string>
makeTexts(llvm::StringRef product, Emission &emission, const CPUModule &code) {
  if (product == "llvm" || emission.keepsStages()) {
    llvm::Expected<std::string> text = code.llvmText();
    if (!text || product == "llvm")
      return text;
    emission.keepStage("5-llvm.ll", *text);
  }
  if (product == "asm" || emission.keepsStages()) {
    emission.beginStage("generating machine code");
    llvm::Expected<std::string> assembly = code.assembly();
    if (!assembly || product == "asm")
      return assembly;
    emission.keepStage("6-assembly.s", *assembly);
  }
  return std::string();
}

llvm::Expected<ProductBytes> CPUBackend::emit(llvm::StringRef product,
                                              Emission &emission) const {
  if (!emission.object) {
    emission.beginStage("optimizing LLVM IR");
    bool texts =
        product == "llvm" || product == "asm" || emission.keepsStages();
    llvm::Expected<CPUModule> code = CPUModule::create(emission, texts);
    if (!code)
      return code.takeError();
    llvm::Expected<std::string> text = makeTexts(product, emission, *code);
    if (!text)
      return text.takeError();
    if (!text->empty())
      return toBytes(*text);
    emission.beginStage("generating machine code");
    llvm::Expected<ProductBytes> object = code->object();
    if (!object)
      return object;
    emission.object = std::move(*object);
  }
  if (product == "obj")
    return *emission.object;
  emission.beginStage("linking");
  return linkProduct(*emission.object,
                     product == "so" ? LinkKind::SharedLibrary
                                     : LinkKind::Executable,
                     findLinkParts(emission.module));
}

} // namespace attune
