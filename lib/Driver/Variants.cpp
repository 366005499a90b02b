//===- Variants.cpp - One product for several CPUs --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Variants.h"

#include "Options/Options.h"

#include "attune/Runtime/Machine.h"

#include <cstdlib>

using namespace attune;
using namespace attune::driver;

std::string driver::findVariantsProblem(const Options &options) {
  if (options.backend->getName() != "cpu")
    return "makes code for CPUs; for --target=" +
           options.backend->getName().str() + " ";
  if (options.mesh && options.mesh->processes() > 1)
    return "is for one process, whose CPU it asks; for --mesh ";
  if (options.verb != Verb::Compile)
    return "";
  if (!options.product || options.product->text)
    return "makes executables, shared libraries and objects; for --emit=" +
           options.emit + " ";
  if (!options.stagesDir.empty())
    return "has the stages of each CPU; for --emit-stages ";
  return "";
}

bool driver::takeVariantOfHost(Options &options, std::string &problem) {
  std::vector<runtime::CpuVariantInfo> known;
  for (const CpuVariant &variant : options.variants)
    known.push_back({variant.name, variant.machine.needs});
  runtime::Error error;
  std::optional<size_t> chosen =
      runtime::chooseVariant(known, std::getenv(runtime::kForcedCpu), error);
  problem = error.message;
  if (!chosen)
    return false;
  options.machine = options.variants[*chosen].machine;
  options.variants.clear();
  return true;
}

/// What has been compiled for one CPU.
static CpuVariantCode codeOf(const CpuVariant &variant, Lowering &lowering,
                             ProductBytes object) {
  CpuVariantCode code{
      variant.name, variant.machine.needs, std::move(object), "", {}};
  mlir::ModuleOp module = lowering.getModule();
  code.metadata =
      module->getAttrOfType<mlir::StringAttr>("attune.metadata").str();
  for (auto name : module->getAttrOfType<mlir::ArrayAttr>("attune.entries")
                       .getAsRange<mlir::StringAttr>())
    code.entries.push_back(name.str());
  return code;
}

std::optional<ProductBytes> driver::compileVariants(const Options &options,
                                                    Report &report,
                                                    const ModelSource &source,
                                                    Lowering &first) {
  std::vector<CpuVariantCode> codes;
  for (const CpuVariant &variant : options.variants) {
    Options own = options;
    own.machine = variant.machine;
    own.variant = variant.name;
    std::optional<Lowering> another;
    bool isFirst = codes.empty();
    Lowering &lowering =
        isFirst ? first : another.emplace(own, report, source, options.fusion);
    report.setCpu(variant.name);
    std::optional<ProductBytes> object = lowering.compile(Entries::All, "obj");
    report.setCpu("");
    if (!isFirst)
      first.addRemarks(lowering.getRemarks());
    if (!object) {
      first.code = lowering.code;
      return std::nullopt;
    }
    codes.push_back(codeOf(variant, lowering, std::move(*object)));
  }
  auto fail = [&](llvm::Error error) -> std::optional<ProductBytes> {
    bool refused = error.isA<Refusal>();
    std::string why = llvm::toString(std::move(error));
    first.code = refused ? report.fail(why, ExitCode::BadInput)
                         : report.fail("internal error: " + why,
                                       ExitCode::InternalError);
    return std::nullopt;
  };
  auto tokenizer =
      first.getModule()->getAttrOfType<mlir::StringAttr>("attune.tokenizer");
  llvm::Expected<ProductBytes> joined = joinVariants(
      codes, options.machine, tokenizer ? tokenizer.getValue() : "");
  if (!joined)
    return fail(joined.takeError());
  if (!options.product->linked)
    return std::move(*joined);
  report.beginStage("linking");
  llvm::Expected<ProductBytes> product =
      linkProduct(*joined,
                  options.product->executable ? LinkKind::Executable
                                              : LinkKind::SharedLibrary,
                  findLinkParts(first.getModule()));
  if (!product)
    return fail(product.takeError());
  return std::move(*product);
}
