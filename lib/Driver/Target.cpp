//===- Target.cpp - Which machine, and what is made for it ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Target.h"

#include "Flags.h"

#include "attune/Pipelines/Backends.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace attune;
using namespace attune::driver;

namespace {
/// Those that may be meant: all, or the one that --target names.
using Backends = std::vector<const Backend *>;

/// What every backend has in common.
struct Stage {
  StringRef name, suffix;
};
constexpr Stage stages[] = {
    {"json", ".json"}, {"mlir", ".mlir"}, {"tensor", ""}, {"loops", ""}};
} // namespace

static bool pickBackends(const Options &options, Backends &backends,
                         std::string &problem) {
  backends = listBackends();
  if (options.target.empty())
    return true;
  SmallVector<StringRef> names;
  for (const Backend *backend : backends)
    names.push_back(backend->getName());
  auto index = pickWord("--target", options.target, names, problem);
  if (index)
    backends = {backends[*index]};
  return index.has_value();
}

/// Takes the first product that fits, and its backend.
static bool take(Options &options, const Backends &backends,
                 function_ref<bool(const ProductKind &)> fits) {
  for (const Backend *backend : backends)
    for (const ProductKind &product : backend->getProducts())
      if (fits(product)) {
        options.backend = backend;
        options.product = &product;
        options.emit = product.name.str();
        return true;
      }
  return false;
}

/// What --emit says.
static bool pickProduct(Options &options, const Backends &backends,
                        std::string &problem) {
  SmallVector<StringRef> words;
  for (const Stage &stage : stages)
    words.push_back(stage.name);
  if (is_contained(words, options.emit) ||
      take(options, backends, [&](const ProductKind &product) {
        return product.name == options.emit;
      }))
    return true;
  for (const Backend *backend : backends)
    for (const ProductKind &product : backend->getProducts())
      if (!is_contained(words, product.name))
        words.push_back(product.name);
  return pickWord("--emit", options.emit, words, problem).has_value();
}

/// What OUT's suffix says, else the default.
static void pickBySuffix(Options &options, const Backends &backends) {
  StringRef output = options.output;
  for (const Stage &stage : stages)
    if (!stage.suffix.empty() && output.ends_with(stage.suffix)) {
      options.emit = stage.name.str();
      return;
    }
  if (take(options, backends, [&](const ProductKind &product) {
        return !product.suffix.empty() && output.ends_with(product.suffix);
      }))
    return;
  options.product = &options.backend->getProducts().back();
  options.emit = options.product->name.str();
}

static bool pickMachine(Options &options, std::string &problem) {
  std::vector<std::string> gpus = options.backend->listGpus();
  if (gpus.empty() && !options.gpu.empty()) {
    SmallVector<StringRef> owners;
    for (const Backend *backend : listBackends())
      if (!backend->listGpus().empty())
        owners.push_back(backend->getName());
    problem = "--gpu needs --target=" + join(owners, " or ");
    return false;
  }
  if (!gpus.empty()) {
    if (options.gpu.empty())
      options.gpu = gpus.front();
    SmallVector<StringRef> words(gpus.begin(), gpus.end());
    if (!pickWord("--gpu", options.gpu, words, problem))
      return false;
  }
  if (options.quantize && !gpus.empty()) {
    problem = "--quantize=int8 is for CPUs; for --target=" +
              options.backend->getName().str() +
              " leave it out, or store weights in --dtype=bf16";
    return false;
  }
  if (options.cpu.empty())
    options.cpu = options.backend->getDefaultCpu();
  if (auto machine = options.backend->describe(options.cpu, options.gpu)) {
    options.machine = std::move(*machine);
    // Files and descriptions say how numbers are stored; arithmetic in fewer
    // bits is asked for. The types of IR say what is multiplied.
    bool isMlir = StringRef(options.model).ends_with(".mlir");
    if (options.dtype != spec::DType::BF16 && !isMlir)
      options.machine.bf16Pairs = false;
    options.machine.tf32 = options.tf32;
    if (!options.tf32 || options.machine.hasTensorCores())
      return true;
    problem = "--dtype=tf32 needs --target=cuda: only the tensor cores of a "
              "GPU multiply it; take --dtype=f32, or bf16, which some CPUs "
              "multiply faster";
    return false;
  }
  std::vector<std::string> cpus = options.backend->listCpus();
  SmallVector<StringRef> known(cpus.begin(), cpus.end());
  problem = "'" + options.cpu + "' is no CPU that LLVM knows; did you mean '" +
            findNearest(options.cpu, known).str() + "'?";
  return false;
}

bool driver::chooseTarget(Options &options, Report &report) {
  Backends backends;
  std::string problem;
  bool found = pickBackends(options, backends, problem);
  if (found) {
    options.backend = backends.front();
    if (options.verb == Verb::Compile && options.emit.empty())
      pickBySuffix(options, backends);
    else if (options.verb == Verb::Compile)
      found = pickProduct(options, backends, problem);
  }
  if (found && pickMachine(options, problem))
    return true;
  report.fail(problem);
  return false;
}
