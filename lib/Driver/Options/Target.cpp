//===- Target.cpp - Which machine, and what is made for it ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Target.h"

#include "../Variants.h"
#include "Flags.h"

#include "attune/Pipelines/Backends.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Path.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

using namespace llvm;
using namespace attune;
using namespace attune::driver;

namespace {
/// The backends that may be meant: all, or the one that --target names.
using Backends = std::vector<const Backend *>;

/// A stage that every backend has.
struct Stage {
  StringRef name, suffix;
};
/// Code for several CPUs, as --cpu has it.
constexpr StringLiteral kSeveralCpus = "multi";
constexpr Stage stages[] = {{"json", ".json"},
                            {"mlir", ".mlir"},
                            {"kernels", ""},
                            {"loops", ""},
                            {"vector", ""}};
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

/// Picks the product that --emit names.
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

/// The suffix of a file's name, where it looks like a type of file and not like
/// a number, as in "qwen-2.5".
static StringRef findSuffix(StringRef path) {
  StringRef name = sys::path::filename(path);
  size_t dot = name.rfind('.');
  if (dot == StringRef::npos || dot == 0)
    return {};
  StringRef suffix = name.drop_front(dot);
  // The number of a library's version: "libstory.so.1".
  if (name.contains(".so."))
    return name.drop_front(name.find(".so."));
  return suffix.size() > 1 && isAlpha(suffix[1]) ? suffix : StringRef();
}

/// Picks the product by OUT's suffix, else the default.
static bool pickBySuffix(Options &options, const Backends &backends,
                         std::string &problem) {
  StringRef output = options.output;
  for (const Stage &stage : stages)
    if (!stage.suffix.empty() && output.ends_with(stage.suffix)) {
      options.emit = stage.name.str();
      return true;
    }
  if (take(options, backends, [&](const ProductKind &product) {
        return !product.suffix.empty() && output.ends_with(product.suffix);
      }))
    return true;
  options.product = &options.backend->getProducts().back();
  options.emit = options.product->name.str();
  StringRef suffix = findSuffix(output);
  if (suffix.empty() || is_contained({".exe", ".elf", ".out"}, suffix))
    return true;
  SmallVector<StringRef> known;
  for (const Stage &stage : stages)
    if (!stage.suffix.empty())
      known.push_back(stage.suffix);
  for (const Backend *backend : backends)
    for (const ProductKind &product : backend->getProducts())
      if (!product.suffix.empty() && !is_contained(known, product.suffix))
        known.push_back(product.suffix);
  problem = ("'" + output + "' ends in " + suffix +
             ", which 'compile' does not make; it makes " + join(known, ", ") +
             ", and an executable of a name without such an end. To make " +
             "something under this name, say what: --emit=" +
             (suffix.starts_with(".so.") ? "so" : options.emit))
                .str();
  return false;
}

/// The chip of a card by the name it is sold under; nothing if that is unknown.
static StringRef findChip(StringRef card) {
  std::string name;
  for (char c : card)
    if (isAlnum(c))
      name += toLower(c);
  StringRef rest = name;
  rest.consume_front("nvidia");
  rest.consume_front("geforce");
  return StringSwitch<StringRef>(rest)
      .Cases({"a100", "a30"}, "sm_80")
      .Cases({"a2", "a10", "a16", "a40", "a4000", "a5000", "a6000", "rtxa6000"},
             "sm_86")
      .Cases({"orin", "agxorin", "jetsonorin"}, "sm_87")
      .Cases({"l4", "l40", "l40s", "rtx6000ada"}, "sm_89")
      .Cases({"h100", "h200", "gh200"}, "sm_90a")
      .Cases({"b100", "b200", "gb200"}, "sm_100a")
      .StartsWith("rtx30", "sm_86")
      .StartsWith("rtx40", "sm_89")
      .StartsWith("rtx50", "sm_120a")
      .Default("");
}

/// Names of CPUs that `name` may stand for: those that share most of its start,
/// else the one that is spelt nearest.
static std::vector<StringRef> findCpus(StringRef name,
                                       ArrayRef<StringRef> known) {
  size_t most = 3;
  std::vector<StringRef> alike;
  for (StringRef cpu : known) {
    size_t same = 0;
    while (same < cpu.size() && same < name.size() && cpu[same] == name[same])
      ++same;
    if (same > most)
      alike.clear();
    most = std::max(most, same);
    if (same == most && most > 3)
      alike.push_back(cpu);
  }
  StringRef nearest = findNearest(name, known);
  if (alike.empty() && !nearest.empty())
    alike = {nearest};
  return alike;
}

/// Code that runs or is linked here must be for this kind of machine.
static bool checkArchitecture(const Options &options, std::string &problem) {
  Triple host(sys::getProcessTriple()), target(options.machine.triple);
  bool runs = options.verb != Verb::Compile && options.verb != Verb::Inspect &&
              options.verb != Verb::Import;
  bool links = options.verb == Verb::Compile && options.product &&
               options.product->linked;
  if (target.getArch() == host.getArch() || (!runs && !links))
    return true;
  std::string what =
      options.cpu == "native" ? target.getArchName().str() : options.cpu;
  std::string here = "this " + host.getArchName().str() + " machine";
  problem = runs ? "code for " + what + " does not run on " + here
                 : "code for " + what + " (" + target.getArchName().str() +
                       ") cannot be linked on " + here +
                       "; --emit=obj, asm or llvm makes what needs no linking";
  return false;
}

/// Files and descriptions say how numbers are stored; arithmetic in fewer bits
/// is asked for. The types of IR say what is multiplied.
static bool multipliesBf16(const Options &options) {
  return options.dtype == spec::DType::BF16 ||
         StringRef(options.model).ends_with(".mlir");
}

/// What --cpu=multi stands for.
static bool pickVariants(Options &options, std::string &problem) {
  problem = findVariantsProblem(options);
  if (!problem.empty()) {
    problem = "--cpu=multi " + problem + "name one CPU";
    return false;
  }
  options.variants = describeVariants();
  if (options.variants.empty()) {
    problem = "--cpu=multi needs an LLVM with code for x86-64";
    return false;
  }
  if (!multipliesBf16(options))
    for (CpuVariant &variant : options.variants)
      variant.machine.bf16Pairs = variant.machine.sharesPairs = false;
  options.machine = options.variants.front().machine;
  options.variant = options.variants.front().name;
  if (!checkArchitecture(options, problem))
    return false;
  if (options.tf32) {
    problem = "--dtype=tf32 needs --target=cuda";
    return false;
  }
  if (options.verb == Verb::Compile)
    return true;
  options.variant.clear();
  return takeVariantOfHost(options, problem);
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
  if (gpus.empty() && (options.persistentKernel || options.separateNorms)) {
    problem = std::string(options.persistentKernel ? "--persistent-kernel"
                                                   : "--separate-norms") +
              " needs --target=cuda";
    return false;
  }
  if (!gpus.empty()) {
    if (options.gpu.empty())
      options.gpu = gpus.front();
    SmallVector<StringRef> words(gpus.begin(), gpus.end());
    StringRef chip = findChip(options.gpu);
    if (!chip.empty() && is_contained(words, chip)) {
      problem = ("--gpu takes the name of a chip; that of '" + options.gpu +
                 "' is " + chip + ". It takes one of: " + join(words, ", "))
                    .str();
      return false;
    }
    if (!pickWord("--gpu", options.gpu, words, problem))
      return false;
  }
  if (options.exactActivations == false && !gpus.empty()) {
    problem = "--activations=bytes is for CPUs; --target=" +
              options.backend->getName().str() +
              " multiplies activations as they are: leave it out";
    return false;
  }
  if (options.mesh) {
    std::string noMesh = findMeshProblem(options, *options.mesh);
    if (!noMesh.empty()) {
      problem = "--mesh " + noMesh + "leave it out";
      return false;
    }
  }
  if (options.cpu.empty())
    options.cpu = options.backend->getDefaultCpu();
  if (options.cpu == kSeveralCpus)
    return pickVariants(options, problem);
  if (auto machine = options.backend->describe(options.cpu, options.gpu)) {
    options.machine = std::move(*machine);
    if (!multipliesBf16(options))
      options.machine.bf16Pairs = false;
    options.machine.tf32 = options.tf32;
    options.machine.persistentKernel = options.persistentKernel;
    if (!options.tf32 || options.machine.hasTensorCores())
      return checkArchitecture(options, problem);
    problem = "--dtype=tf32 needs --target=cuda: only the tensor cores of a "
              "GPU multiply it; take --dtype=f32, or bf16, which some CPUs "
              "multiply faster";
    return false;
  }
  std::vector<std::string> cpus = options.backend->listCpus();
  SmallVector<StringRef> known(cpus.begin(), cpus.end());
  std::vector<StringRef> alike = findCpus(options.cpu, known);
  bool few = !alike.empty() && alike.size() <= 8;
  problem = "'" + options.cpu + "' is no CPU that LLVM knows; " +
            (few ? "did you mean '" + join(alike, "' or '") + "'?"
                 : "it knows " + join(known, ", "));
  return false;
}

/// Whether there are kernels at the stage that is asked for.
static bool checkKernels(const Options &options, std::string &problem) {
  bool stage = options.emit == "kernels";
  if (stage && options.machine.tilesInParallel()) {
    problem = "--emit=kernels is for CPUs; kernels of --target=" +
              options.backend->getName().str() + " stand in --emit=vector";
    return false;
  }
  if (options.kernel.empty())
    return true;
  if (!stage && options.emit != "loops" && options.emit != "vector")
    problem = "--kernel needs --emit=kernels, --emit=loops or --emit=vector";
  else if (options.machine.tilesInParallel())
    problem = "--kernel is for CPUs";
  return problem.empty();
}

std::string driver::findMeshProblem(const Options &options,
                                    const MeshAxes &axes) {
  if (axes.processes() < 2)
    return "";
  if (options.product && !options.product->executable)
    return "makes executables, which mpirun starts; for --emit=" +
           options.emit + " ";
  return "";
}

bool driver::chooseTarget(Options &options, Report &report) {
  Backends backends;
  std::string problem;
  bool found = pickBackends(options, backends, problem);
  if (found) {
    options.backend = backends.front();
    if (options.verb == Verb::Compile && options.emit.empty())
      found = pickBySuffix(options, backends, problem);
    else if (options.verb == Verb::Compile)
      found = pickProduct(options, backends, problem);
  }
  if (found && pickMachine(options, problem) && checkKernels(options, problem))
    return true;
  report.fail(problem);
  return false;
}
