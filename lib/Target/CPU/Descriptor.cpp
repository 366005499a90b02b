//===- Descriptor.cpp - What the runtime sees of a model --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Descriptor.h"

#include "attune/Runtime/Model.h"

#include "llvm/IR/DIBuilder.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace attune {

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
                                       entrySymbol(name), module);
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(context, "entry", entry));
  // Inlined code keeps its lines only in a function that has some.
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

void emitDescriptor(llvm::Module &module, llvm::StringRef metadata,
                    llvm::StringRef tokenizer,
                    llvm::ArrayRef<llvm::Constant *> entries,
                    mlir::DictionaryAttr device) {
  llvm::LLVMContext &context = module.getContext();
  auto *pointer = llvm::PointerType::getUnqual(context);
  llvm::Constant *text = emitConstant(
      module, llvm::ConstantDataArray::getString(context, metadata),
      "attune_metadata");
  llvm::Constant *table =
      emitConstant(module,
                   llvm::ConstantArray::get(
                       llvm::ArrayType::get(pointer, entries.size()), entries),
                   "attune_entries");
  llvm::Constant *tokens = llvm::ConstantPointerNull::get(pointer);
  if (!tokenizer.empty()) {
    llvm::GlobalVariable *packed =
        emitConstant(module,
                     llvm::ConstantDataArray::getString(context, tokenizer,
                                                        /*AddNull=*/false),
                     "attune_tokenizer");
    packed->setAlignment(llvm::Align(64));
    tokens = packed;
  }
  auto *i32 = llvm::Type::getInt32Ty(context);
  auto *i64 = llvm::Type::getInt64Ty(context);
  llvm::Constant *value = llvm::ConstantStruct::getAnon(
      {llvm::ConstantInt::get(i32, ATTUNE_ABI_VERSION),
       llvm::ConstantInt::get(i32, entries.size()), text,
       llvm::ConstantInt::get(i64, metadata.size()), table,
       emitDeviceCode(module, device), tokens});
  new llvm::GlobalVariable(module, value->getType(), true,
                           llvm::GlobalValue::ExternalLinkage, value,
                           "attune_model");
}

static llvm::Error noWrapper(llvm::StringRef name) {
  return llvm::createStringError("entry '%s' has no C wrapper",
                                 name.str().c_str());
}

llvm::Error emitDescriptor(llvm::Module &module, llvm::StringRef metadata,
                           llvm::StringRef tokenizer,
                           llvm::ArrayRef<llvm::StringRef> names,
                           mlir::DictionaryAttr device) {
  llvm::SmallVector<llvm::Constant *> entries;
  for (llvm::StringRef name : names) {
    llvm::Function *entry = emitEntry(module, name);
    if (!entry)
      return noWrapper(name);
    entries.push_back(entry);
  }
  emitDescriptor(module, metadata, tokenizer, entries, device);
  return llvm::Error::success();
}

std::string entrySymbol(llvm::StringRef name) {
  return ("attune_entry_" + name).str();
}

llvm::Error emitVariant(llvm::Module &module,
                        llvm::ArrayRef<llvm::StringRef> names) {
  for (llvm::StringRef name : names) {
    llvm::Function *entry = emitEntry(module, name);
    if (!entry)
      return noWrapper(name);
    entry->setLinkage(llvm::GlobalValue::ExternalLinkage);
    entry->setVisibility(llvm::GlobalValue::ProtectedVisibility);
  }
  return llvm::Error::success();
}

} // namespace attune
