//===- CPUModule.cpp - From the llvm dialect to object code -----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneDialect.h"
#include "attune/Target/CPU/CPUBackend.h"

#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/DIBuilder.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"

namespace attune {

struct CPUModule::Impl {
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module;
  std::unique_ptr<llvm::TargetMachine> machine;
};

CPUModule::CPUModule(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
CPUModule::~CPUModule() = default;
CPUModule::CPUModule(CPUModule &&) = default;

/// `void entry(void **args)`: unpacks the array for the C wrapper of an entry.
/// A tensor's element is its descriptor's address already; a number's is
/// loaded.
static llvm::Function *emitEntry(llvm::Module &module, llvm::StringRef name) {
  llvm::LLVMContext &context = module.getContext();
  llvm::Function *target = module.getFunction(("_mlir_ciface_" + name).str());
  if (!target)
    return nullptr;
  auto *pointer = llvm::PointerType::getUnqual(context);
  auto *type =
      llvm::FunctionType::get(llvm::Type::getVoidTy(context), {pointer}, false);
  auto *entry = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage,
                                       "attune_entry_" + name, module);
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(context, "entry", entry));
  // What is inlined here keeps its lines only in a function that has one.
  if (llvm::DISubprogram *known = target->getSubprogram()) {
    llvm::DIBuilder debug(module, /*AllowUnresolved=*/false, known->getUnit());
    auto flags = llvm::DISubprogram::SPFlagDefinition |
                 llvm::DISubprogram::SPFlagOptimized;
    llvm::DISubprogram *scope = debug.createFunction(
        known->getFile(), name, entry->getName(), known->getFile(),
        known->getLine(), known->getType(), known->getScopeLine(),
        llvm::DINode::FlagZero, flags);
    debug.finalize();
    entry->setSubprogram(scope);
    b.SetCurrentDebugLocation(
        llvm::DILocation::get(context, known->getLine(), 0, scope));
  }
  llvm::SmallVector<llvm::Value *> arguments;
  for (llvm::Argument &argument : target->args()) {
    llvm::Value *slot =
        b.CreateConstGEP1_64(pointer, entry->getArg(0), argument.getArgNo());
    llvm::Value *value = b.CreateLoad(pointer, slot);
    if (!argument.getType()->isPointerTy())
      value = b.CreateLoad(argument.getType(), value);
    arguments.push_back(value);
  }
  b.CreateCall(target, arguments);
  b.CreateRetVoid();
  return entry;
}

static llvm::GlobalVariable *emitConstant(llvm::Module &module,
                                          llvm::Constant *value,
                                          const llvm::Twine &name) {
  return new llvm::GlobalVariable(module, value->getType(), true,
                                  llvm::GlobalValue::InternalLinkage, value,
                                  name);
}

/// The `attune_device_code` of kernels for a GPU (lib/Target/PTX), or null.
static llvm::Constant *emitDeviceCode(llvm::Module &module,
                                      mlir::DictionaryAttr device) {
  llvm::LLVMContext &context = module.getContext();
  auto *pointer = llvm::PointerType::getUnqual(context);
  if (!device)
    return llvm::ConstantPointerNull::get(pointer);
  auto text = [&](mlir::Attribute value, const llvm::Twine &name) {
    llvm::StringRef content = llvm::cast<mlir::StringAttr>(value).getValue();
    return emitConstant(
        module, llvm::ConstantDataArray::getString(context, content), name);
  };
  llvm::SmallVector<llvm::Constant *> kernels;
  for (mlir::Attribute name : device.getAs<mlir::ArrayAttr>("kernels"))
    kernels.push_back(text(name, "attune_kernel_name"));
  llvm::Constant *cubin = llvm::ConstantPointerNull::get(pointer);
  if (mlir::Attribute assembled = device.get("cubin")) {
    llvm::GlobalVariable *image = text(assembled, "attune_cubin");
    image->setAlignment(llvm::Align(64));
    cubin = image;
  }
  auto *table = llvm::ConstantArray::get(
      llvm::ArrayType::get(pointer, kernels.size()), kernels);
  llvm::Constant *value = llvm::ConstantStruct::getAnon(
      {text(device.get("chip"), "attune_chip"),
       text(device.get("ptx"), "attune_ptx"), cubin,
       llvm::ConstantInt::get(llvm::Type::getInt64Ty(context), kernels.size()),
       emitConstant(module, table, "attune_kernel_names")});
  return emitConstant(module, value, "attune_device");
}

/// The exported `attune_model` (include/attune/Runtime/Model.h).
static llvm::Error emitDescriptor(llvm::Module &module,
                                  llvm::StringRef metadata,
                                  llvm::ArrayRef<llvm::StringRef> names,
                                  mlir::DictionaryAttr device) {
  llvm::LLVMContext &context = module.getContext();
  auto *pointer = llvm::PointerType::getUnqual(context);
  llvm::SmallVector<llvm::Constant *> entries;
  for (llvm::StringRef name : names) {
    llvm::Function *entry = emitEntry(module, name);
    if (!entry)
      return llvm::createStringError("entry '%s' has no C wrapper",
                                     name.str().c_str());
    entries.push_back(entry);
  }
  llvm::Constant *text = emitConstant(
      module, llvm::ConstantDataArray::getString(context, metadata),
      "attune_metadata");
  llvm::Constant *table =
      emitConstant(module,
                   llvm::ConstantArray::get(
                       llvm::ArrayType::get(pointer, entries.size()), entries),
                   "attune_entries");
  auto *i32 = llvm::Type::getInt32Ty(context);
  auto *i64 = llvm::Type::getInt64Ty(context);
  llvm::Constant *value = llvm::ConstantStruct::getAnon(
      {llvm::ConstantInt::get(i32, ATTUNE_ABI_VERSION),
       llvm::ConstantInt::get(i32, entries.size()), text,
       llvm::ConstantInt::get(i64, metadata.size()), table,
       emitDeviceCode(module, device)});
  new llvm::GlobalVariable(module, value->getType(), true,
                           llvm::GlobalValue::ExternalLinkage, value,
                           "attune_model");
  return llvm::Error::success();
}

static std::unique_ptr<llvm::TargetMachine>
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

/// Masked loads of bf16 as loads of the same bits: LLVM 22 takes their vectors
/// apart and rounds each element with a library function that nobody has.
static void loadBitsOfBFloats(llvm::Module &module) {
  llvm::SmallVector<llvm::IntrinsicInst *> loads;
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::instructions(function))
      if (auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction))
        if (call->getIntrinsicID() == llvm::Intrinsic::masked_load &&
            call->getType()->getScalarType()->isBFloatTy())
          loads.push_back(call);
  for (llvm::IntrinsicInst *load : loads) {
    llvm::IRBuilder<> b(load);
    auto *type = llvm::cast<llvm::FixedVectorType>(load->getType());
    auto *bits = llvm::FixedVectorType::get(b.getInt16Ty(), type);
    llvm::Value *mask = load->getArgOperand(1), *pass = load->getArgOperand(2);
    llvm::Align align = load->getParamAlign(0).valueOrOne();
    llvm::Value *loaded = b.CreateMaskedLoad(
        bits, load->getArgOperand(0), align, mask, b.CreateBitCast(pass, bits));
    load->replaceAllUsesWith(b.CreateBitCast(loaded, type));
    load->eraseFromParent();
  }
}

static void optimizeModule(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graph;
  llvm::ModuleAnalysisManager modules;
  // Kernels come unrolled as far as they want to be. To look for more takes a
  // third of the time that a model is compiled in, and makes nothing faster.
  llvm::PipelineTuningOptions tuning;
  tuning.LoopUnrolling = false;
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graph, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3)
      .run(module, modules);
}

llvm::Expected<CPUModule> CPUModule::create(mlir::ModuleOp module,
                                            const TargetDescription &target,
                                            bool optimize) {
  auto impl = std::make_unique<Impl>();
  mlir::registerBuiltinDialectTranslation(*module.getContext());
  mlir::registerLLVMDialectTranslation(*module.getContext());
  impl->context = std::make_unique<llvm::LLVMContext>();
  // The weights' names have no meaning in LLVM IR, but their writer may still
  // need them.
  mlir::OwningOpRef<mlir::ModuleOp> code(module.clone());
  for (auto weight : llvm::make_early_inc_range((*code).getOps<WeightOp>()))
    weight.erase();
  impl->module = mlir::translateModuleToLLVMIR(*code, *impl->context);
  if (!impl->module)
    return llvm::createStringError("translation to LLVM IR failed");
  // The module's name would carry a path of the building machine, and so would
  // the folders of line tables.
  impl->module->setModuleIdentifier("attune");
  impl->module->setSourceFileName("attune");
  for (llvm::DICompileUnit *unit : impl->module->debug_compile_units())
    unit->getFile()->replaceOperandWith(
        1, llvm::MDString::get(*impl->context, ""));
  std::string error;
  impl->machine = createMachine(target, error);
  if (!impl->machine)
    return llvm::createStringError("no code generator for %s: %s",
                                   target.triple.c_str(), error.c_str());
  impl->module->setTargetTriple(impl->machine->getTargetTriple());
  impl->module->setDataLayout(impl->machine->createDataLayout());

  llvm::SmallVector<llvm::StringRef> names;
  if (auto entries = module->getAttrOfType<mlir::ArrayAttr>("attune.entries"))
    for (auto name : entries.getAsRange<mlir::StringAttr>())
      names.push_back(name.getValue());
  if (auto text = module->getAttrOfType<mlir::StringAttr>("attune.metadata"))
    if (llvm::Error failed = emitDescriptor(
            *impl->module, text.getValue(), names,
            module->getAttrOfType<mlir::DictionaryAttr>("attune.device")))
      return std::move(failed);

  for (llvm::Function &function : *impl->module) {
    if (function.isDeclaration())
      continue;
    // Only the descriptor is visible from outside.
    if (!names.empty())
      function.setLinkage(llvm::GlobalValue::InternalLinkage);
    function.addFnAttr("target-cpu", target.cpu);
    if (!target.features.empty())
      function.addFnAttr("target-features", target.features);
    // LLVM prefers 256-bit vectors on some 512-bit machines.
    function.addFnAttr("prefer-vector-width",
                       std::to_string(target.vectorBits));
  }
  loadBitsOfBFloats(*impl->module);
  if (optimize)
    optimizeModule(*impl->module, *impl->machine);
  return CPUModule(std::move(impl));
}

std::string CPUModule::llvmText() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  impl->module->print(os, nullptr);
  return text;
}

/// Emits into `out`. Code generation changes the module: emit once.
static llvm::Error emitFile(llvm::Module &module, llvm::TargetMachine &machine,
                            llvm::raw_pwrite_stream &out,
                            llvm::CodeGenFileType type) {
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, out, nullptr, type))
    return llvm::createStringError("this target cannot emit such a file");
  passes.run(module);
  return llvm::Error::success();
}

llvm::Expected<std::string> CPUModule::assembly() {
  llvm::SmallVector<char, 0> text;
  llvm::raw_svector_ostream os(text);
  if (llvm::Error error = emitFile(*impl->module, *impl->machine, os,
                                   llvm::CodeGenFileType::AssemblyFile))
    return std::move(error);
  return std::string(text.begin(), text.end());
}

llvm::Expected<ProductBytes> CPUModule::object() {
  ProductBytes object;
  llvm::raw_svector_ostream os(object);
  if (llvm::Error error = emitFile(*impl->module, *impl->machine, os,
                                   llvm::CodeGenFileType::ObjectFile))
    return std::move(error);
  return object;
}

} // namespace attune
