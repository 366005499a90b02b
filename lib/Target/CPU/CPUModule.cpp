//===- CPUModule.cpp - From the llvm dialect to object code -----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Target/CPU/CPUBackend.h"

#include "Descriptor.h"
#include "KernelLines.h"
#include "MergeObjects.h"
#include "SplitKernels.h"

#include "mlir/IR/Threading.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/DIBuilder.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Linker/Linker.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"

#include <functional>

namespace attune {

namespace {
/// One translation unit: the program or a kernel of it. Each has a context of
/// its own, so that threads can work on several.
struct Part {
  std::unique_ptr<llvm::LLVMContext> context =
      std::make_unique<llvm::LLVMContext>();
  std::unique_ptr<llvm::Module> module;
  std::unique_ptr<llvm::TargetMachine> machine;

  // For a kernel:
  KernelPlace place;
  /// Symbols that other parts see are called the same in all models; these are
  /// their names in this one.
  llvm::StringMap<std::string> names;
  std::string code;                  ///< bitcode, as the emission knows it
  std::optional<ProductBytes> known; ///< from an earlier compilation
};
/// What a kernel is called in its object.
constexpr llvm::StringLiteral kKernel = "kernel";
} // namespace

struct CPUModule::Impl {
  explicit Impl(Emission &emission, bool texts)
      : emission(emission), texts(texts),
        threads(emission.module->getContext()) {}

  Emission &emission;
  bool texts; ///< nothing is known, and names are those of texts
  mlir::MLIRContext *threads; ///< has the threads to work with
  std::vector<Part> parts;    ///< the program, then its kernels

  /// Fills a part with unoptimized code.
  llvm::Error translatePart(size_t number, mlir::ModuleOp code);
  /// The machine code of a part.
  llvm::Expected<MergeInput> makeObject(size_t number);
  /// An object with the line tables of kernels; nothing if no place is known.
  llvm::Expected<std::optional<MergeInput>>
  makeLines(llvm::ArrayRef<MergeInput> objects) const;

  /// Does this for all parts, on as many threads as there are.
  llvm::Error forEachPart(llvm::function_ref<llvm::Error(size_t)> work) const;
  /// Everything in one module.
  llvm::Expected<Part> link() const;
};

CPUModule::CPUModule(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
CPUModule::~CPUModule() = default;
CPUModule::CPUModule(CPUModule &&) = default;

std::unique_ptr<llvm::TargetMachine>
createMachine(const TargetDescription &target, std::string &error) {
  llvm::Triple triple(target.triple);
  const llvm::Target *backend =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!backend)
    return nullptr;
  llvm::TargetOptions options;
  return std::unique_ptr<llvm::TargetMachine>(backend->createTargetMachine(
      triple, target.cpu, target.features, options, llvm::Reloc::PIC_,
      std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

/// Masked loads and stores of bf16 as those of the same bits: LLVM 22 takes
/// their vectors apart and rounds each element with a library function that
/// nobody has.
static void moveBitsOfBFloats(llvm::Module &module) {
  llvm::SmallVector<llvm::IntrinsicInst *> loads, stores;
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::instructions(function)) {
      auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
      if (!call)
        continue;
      if (call->getIntrinsicID() == llvm::Intrinsic::masked_load &&
          call->getType()->getScalarType()->isBFloatTy())
        loads.push_back(call);
      if (call->getIntrinsicID() == llvm::Intrinsic::masked_store &&
          call->getArgOperand(0)->getType()->getScalarType()->isBFloatTy())
        stores.push_back(call);
    }
  auto bitsOf = [](llvm::IRBuilder<> &b, llvm::Type *type) {
    return llvm::FixedVectorType::get(b.getInt16Ty(),
                                      llvm::cast<llvm::FixedVectorType>(type));
  };
  for (llvm::IntrinsicInst *load : loads) {
    llvm::IRBuilder<> b(load);
    llvm::FixedVectorType *bits = bitsOf(b, load->getType());
    llvm::Value *mask = load->getArgOperand(1), *pass = load->getArgOperand(2);
    llvm::Value *loaded = b.CreateMaskedLoad(
        bits, load->getArgOperand(0), load->getParamAlign(0).valueOrOne(), mask,
        b.CreateBitCast(pass, bits));
    load->replaceAllUsesWith(b.CreateBitCast(loaded, load->getType()));
    load->eraseFromParent();
  }
  for (llvm::IntrinsicInst *store : stores) {
    llvm::IRBuilder<> b(store);
    llvm::Value *value = store->getArgOperand(0);
    b.CreateMaskedStore(b.CreateBitCast(value, bitsOf(b, value->getType())),
                        store->getArgOperand(1),
                        store->getParamAlign(1).valueOrOne(),
                        store->getArgOperand(2));
    store->eraseFromParent();
  }
}

/// Whether loops are vector code already, as those of kernels are.
static bool hasVectors(const llvm::Module &module) {
  for (const llvm::Function &function : module)
    for (const llvm::Instruction &instruction : llvm::instructions(function))
      if (instruction.getType()->isVectorTy())
        return true;
  return false;
}

/// The passes for kernels. They come as vector code, unrolled as far as they
/// want to be, and call little. To look for more loops to vectorize, calls to
/// inline and arguments to propagate takes a tenth of the time that GPT-2 is
/// compiled in, and finds nothing: no model runs 1% more instructions without.
static llvm::ModulePassManager kernelPipeline(llvm::PassBuilder &builder) {
  llvm::ModulePassManager passes;
  passes.addPass(llvm::createModuleToFunctionPassAdaptor(
      builder.buildFunctionSimplificationPipeline(
          llvm::OptimizationLevel::O2, llvm::ThinOrFullLTOPhase::None)));
  passes.addPass(llvm::GlobalDCEPass());
  return passes;
}

static void optimizeModule(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graph;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  tuning.LoopUnrolling = false;
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graph, modules);
  llvm::ModulePassManager passes =
      hasVectors(module)
          ? kernelPipeline(builder)
          : builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3);
  passes.run(module, modules);
}

/// Translates a module of the llvm dialect.
static llvm::Error translate(mlir::ModuleOp code,
                             const TargetDescription &target, Part &part) {
  std::string error;
  part.machine = createMachine(target, error);
  if (!part.machine)
    return llvm::createStringError("no code generator for %s: %s",
                                   target.triple.c_str(), error.c_str());
  part.module = mlir::translateModuleToLLVMIR(code, *part.context);
  if (!part.module)
    return llvm::createStringError("translation to LLVM IR failed");
  // The module's name would carry a path of the building machine, and so would
  // the folders of line tables.
  part.module->setModuleIdentifier("attune");
  part.module->setSourceFileName("attune");
  for (llvm::DICompileUnit *unit : part.module->debug_compile_units())
    unit->getFile()->replaceOperandWith(1,
                                        llvm::MDString::get(*part.context, ""));
  part.module->setTargetTriple(part.machine->getTargetTriple());
  part.module->setDataLayout(part.machine->createDataLayout());
  return llvm::Error::success();
}

/// Names the machine that the functions are for. `alone`: others see the
/// descriptor, or the entries of a variant, and nothing else.
static void finishFunctions(llvm::Module &module,
                            const TargetDescription &target, bool alone) {
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    if (alone && function.hasDefaultVisibility())
      function.setLinkage(llvm::GlobalValue::InternalLinkage);
    function.addFnAttr("target-cpu", target.cpu);
    if (!target.features.empty())
      function.addFnAttr("target-features", target.features);
    // LLVM prefers 256-bit vectors on some 512-bit machines.
    function.addFnAttr("prefer-vector-width",
                       std::to_string(target.vectorBits));
  }
}

/// Makes a kernel independent of the model that it is in: without lines, and
/// with names that depend on nothing else.
static void makeIndependent(Part &part) {
  llvm::Module &module = *part.module;
  llvm::StripDebugInfo(module);
  auto rename = [&](llvm::GlobalValue &value) {
    if (value.hasLocalLinkage()) {
      value.setName("local");
    } else if (value.hasHiddenVisibility()) {
      std::string name = value.getName().str();
      value.setName(value.isDeclaration() ? "callee" : kKernel);
      part.names[value.getName()] = name;
    }
  };
  for (llvm::GlobalVariable &global : module.globals())
    rename(global);
  for (llvm::Function &function : module)
    rename(function);
}

static std::string writeBitcode(const llvm::Module &module) {
  std::string bits;
  llvm::raw_string_ostream stream(bits);
  llvm::WriteBitcodeToFile(module, stream);
  return bits;
}

llvm::Error CPUModule::Impl::forEachPart(
    llvm::function_ref<llvm::Error(size_t)> work) const {
  // The longest work begins first. The order changes nothing else.
  std::vector<std::pair<size_t, size_t>> order; // size and number
  for (auto [i, part] : llvm::enumerate(parts))
    order.emplace_back(part.module ? part.module->getInstructionCount() : 0, i);
  llvm::sort(order, std::greater<>());
  std::vector<std::string> problems(parts.size());
  mlir::parallelForEach(threads, order, [&](std::pair<size_t, size_t> next) {
    if (llvm::Error error = work(next.second))
      problems[next.second] = llvm::toString(std::move(error));
  });
  for (const std::string &problem : problems)
    if (!problem.empty())
      return llvm::createStringError(problem);
  return llvm::Error::success();
}

llvm::Error CPUModule::Impl::translatePart(size_t number, mlir::ModuleOp code) {
  Part &part = parts[number];
  bool isKernel = number > 0;
  if (isKernel)
    part.place = KernelPlace::find(code);
  if (llvm::Error error = translate(code, emission.target, part))
    return error;
  mlir::ModuleOp module = emission.module;
  llvm::SmallVector<llvm::StringRef> names;
  if (auto entries = module->getAttrOfType<mlir::ArrayAttr>("attune.entries"))
    for (auto name : entries.getAsRange<mlir::StringAttr>())
      names.push_back(name.getValue());
  auto metadata = module->getAttrOfType<mlir::StringAttr>("attune.metadata");
  auto tokenizer = module->getAttrOfType<mlir::StringAttr>("attune.tokenizer");
  bool isVariant = module->hasAttr("attune.variant");
  if (!isKernel && isVariant) {
    if (llvm::Error error = emitVariant(*part.module, names))
      return error;
  } else if (!isKernel && metadata)
    if (llvm::Error error = emitDescriptor(
            *part.module, metadata.getValue(),
            tokenizer ? tokenizer.getValue() : "", names,
            module->getAttrOfType<mlir::DictionaryAttr>("attune.device")))
      return error;
  finishFunctions(*part.module, emission.target, /*alone=*/!names.empty());
  moveBitsOfBFloats(*part.module);
  if (!isKernel || texts)
    return llvm::Error::success();
  makeIndependent(part);
  part.code = writeBitcode(*part.module);
  part.known = emission.findObject(part.code);
  return llvm::Error::success();
}

llvm::Expected<CPUModule> CPUModule::create(Emission &emission, bool texts) {
  auto impl = std::make_unique<Impl>(emission, texts);
  mlir::ModuleOp module = emission.module;
  mlir::registerBuiltinDialectTranslation(*module.getContext());
  mlir::registerLLVMDialectTranslation(*module.getContext());
  llvm::SmallVector<mlir::OwningOpRef<mlir::ModuleOp>> code =
      splitKernels(module, /*apart=*/canMergeObjects(emission.target.triple));
  impl->parts.resize(code.size());
  llvm::Error failed = impl->forEachPart(
      [&](size_t i) { return impl->translatePart(i, *code[i]); });
  if (!failed)
    failed = impl->forEachPart([&](size_t i) {
      Part &part = impl->parts[i];
      if (!part.known)
        optimizeModule(*part.module, *part.machine);
      return llvm::Error::success();
    });
  if (failed)
    return std::move(failed);
  size_t known = llvm::count_if(
      impl->parts, [](const Part &part) { return part.known.has_value(); });
  if (known)
    emission.noteStage(
        llvm::formatv("{0} of {1} kernels found", known, impl->parts.size() - 1)
            .str());
  return CPUModule(std::move(impl));
}

llvm::Expected<Part> CPUModule::Impl::link() const {
  Part whole;
  std::string error;
  whole.machine = createMachine(emission.target, error);
  // From one context to the other as bitcode.
  for (const Part &part : parts) {
    llvm::SmallVector<char, 0> bits;
    llvm::raw_svector_ostream stream(bits);
    llvm::WriteBitcodeToFile(*part.module, stream);
    auto copy = llvm::parseBitcodeFile(
        llvm::MemoryBufferRef(llvm::StringRef(bits.data(), bits.size()),
                              "attune"),
        *whole.context);
    if (!copy)
      return copy.takeError();
    if (!whole.module)
      whole.module = std::move(*copy);
    else if (llvm::Linker::linkModules(*whole.module, std::move(*copy)))
      return llvm::createStringError("kernels do not fit their callers");
  }
  for (llvm::Function &function : *whole.module)
    if (!function.isDeclaration() && function.hasHiddenVisibility()) {
      function.setVisibility(llvm::GlobalValue::DefaultVisibility);
      function.setLinkage(llvm::GlobalValue::InternalLinkage);
    }
  return whole;
}

llvm::Expected<std::string> CPUModule::llvmText() const {
  llvm::Expected<Part> whole = impl->link();
  if (!whole)
    return whole.takeError();
  std::string text;
  llvm::raw_string_ostream os(text);
  whole->module->print(os, nullptr);
  return text;
}

llvm::Error emitFile(llvm::Module &module, llvm::TargetMachine &machine,
                     llvm::raw_pwrite_stream &out, llvm::CodeGenFileType type) {
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, out, nullptr, type))
    return llvm::createStringError("this target cannot emit such a file");
  passes.run(module);
  return llvm::Error::success();
}

llvm::Expected<std::string> CPUModule::assembly() const {
  llvm::Expected<Part> whole = impl->link();
  if (!whole)
    return whole.takeError();
  llvm::SmallVector<char, 0> text;
  llvm::raw_svector_ostream os(text);
  if (llvm::Error error = emitFile(*whole->module, *whole->machine, os,
                                   llvm::CodeGenFileType::AssemblyFile))
    return std::move(error);
  return std::string(text.begin(), text.end());
}

llvm::Expected<MergeInput> CPUModule::Impl::makeObject(size_t number) {
  Part &part = parts[number];
  bool isKernel = number > 0;
  if (isKernel && texts)
    makeIndependent(part);
  MergeInput input{part.known.value_or(ProductBytes()), part.names};
  if (part.known)
    return input;
  llvm::raw_svector_ostream os(input.object);
  if (llvm::Error error = emitFile(*part.module, *part.machine, os,
                                   llvm::CodeGenFileType::ObjectFile))
    return std::move(error);
  if (!part.code.empty())
    emission.keepObject(part.code, input.object);
  return input;
}

llvm::Expected<std::optional<MergeInput>>
CPUModule::Impl::makeLines(llvm::ArrayRef<MergeInput> objects) const {
  std::vector<KernelLines> kernels;
  for (size_t i = 1; i < parts.size(); ++i) {
    llvm::StringRef symbol = objects[i].names.find(kKernel)->second;
    // A name that an assembler would misread leaves its part without lines.
    if (parts[i].place.file.empty() ||
        symbol.find_first_of("\"\\\n") != llvm::StringRef::npos)
      continue;
    llvm::Expected<KernelLines> lines =
        KernelLines::find(objects[i].object, kKernel);
    if (!lines)
      return lines.takeError();
    lines->place = parts[i].place;
    lines->symbol = symbol.str();
    kernels.push_back(std::move(*lines));
  }
  if (kernels.empty())
    return std::nullopt;
  Part part;
  std::string error;
  part.machine = createMachine(emission.target, error);
  part.module = std::make_unique<llvm::Module>("attune", *part.context);
  part.module->setTargetTriple(part.machine->getTargetTriple());
  part.module->setDataLayout(part.machine->createDataLayout());
  part.module->setModuleInlineAsm(printKernelLines(kernels));
  MergeInput input;
  llvm::raw_svector_ostream os(input.object);
  if (llvm::Error failed = emitFile(*part.module, *part.machine, os,
                                    llvm::CodeGenFileType::ObjectFile))
    return std::move(failed);
  return input;
}

llvm::Expected<ProductBytes> CPUModule::object() {
  std::vector<MergeInput> objects(impl->parts.size());
  llvm::Error failed = impl->forEachPart([&](size_t i) -> llvm::Error {
    llvm::Expected<MergeInput> object = impl->makeObject(i);
    if (!object)
      return object.takeError();
    objects[i] = std::move(*object);
    return llvm::Error::success();
  });
  if (failed)
    return std::move(failed);
  llvm::Expected<std::optional<MergeInput>> lines = impl->makeLines(objects);
  if (!lines)
    return lines.takeError();
  if (*lines)
    objects.push_back(std::move(**lines));
  return mergeObjects(objects);
}

} // namespace attune
