//===- JoinVariants.cpp - Code for several CPUs in one object ---*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Target/CPU/CPUBackend.h"

#include "Descriptor.h"
#include "MergeObjects.h"

#include "llvm/IR/Module.h"
#include "llvm/Support/JSON.h"

namespace attune {

/// What a variant says of itself but for the CPU that it needs, so that those
/// of one model are equal.
static llvm::Expected<llvm::json::Object>
describeModel(const CpuVariantCode &variant) {
  llvm::Expected<llvm::json::Value> parsed =
      llvm::json::parse(variant.metadata);
  if (!parsed)
    return parsed.takeError();
  parsed->getAsObject()->erase("needs");
  return std::move(*parsed->getAsObject());
}

/// An object with the descriptor, whose functions are in the others.
static llvm::Expected<ProductBytes>
makeRoot(llvm::ArrayRef<CpuVariantCode> variants,
         const TargetDescription &target, llvm::StringRef metadata,
         llvm::StringRef tokenizer) {
  llvm::LLVMContext context;
  llvm::Module module("attune", context);
  std::string error;
  std::unique_ptr<llvm::TargetMachine> machine = createMachine(target, error);
  if (!machine)
    return llvm::createStringError(error);
  module.setTargetTriple(machine->getTargetTriple());
  module.setDataLayout(machine->createDataLayout());
  llvm::SmallVector<llvm::Constant *> entries;
  auto *type = llvm::FunctionType::get(llvm::Type::getVoidTy(context),
                                       {llvm::PointerType::getUnqual(context)},
                                       /*isVarArg=*/false);
  for (const CpuVariantCode &variant : variants)
    for (const std::string &name : variant.entries) {
      auto *entry = llvm::Function::Create(
          type, llvm::GlobalValue::ExternalLinkage,
          entrySymbol(name) + "." + variant.name, module);
      entry->setVisibility(llvm::GlobalValue::HiddenVisibility);
      entries.push_back(entry);
    }
  emitDescriptor(module, metadata, tokenizer, entries, /*device=*/{});
  ProductBytes object;
  llvm::raw_svector_ostream stream(object);
  if (llvm::Error failed =
          emitFile(module, *machine, stream, llvm::CodeGenFileType::ObjectFile))
    return std::move(failed);
  return object;
}

llvm::Expected<ProductBytes>
joinVariants(llvm::ArrayRef<CpuVariantCode> variants,
             const TargetDescription &target, llvm::StringRef tokenizer) {
  llvm::json::Object model;
  llvm::json::Array cpus;
  std::vector<MergeInput> objects(1);
  for (const CpuVariantCode &variant : variants) {
    llvm::Expected<llvm::json::Object> own = describeModel(variant);
    if (!own)
      return own.takeError();
    if (objects.size() == 1)
      model = std::move(*own);
    else if (*own != model)
      return llvm::createStringError(
          "the code for " + variant.name + " does not fit the weights or the " +
          "interface of that for " + variants.front().name);
    cpus.push_back(llvm::json::Object{
        {"cpu", variant.name}, {"needs", llvm::json::Array(variant.needs)}});
    MergeInput &object = objects.emplace_back();
    object.object = variant.object;
    for (const std::string &name : variant.entries)
      object.names[entrySymbol(name)] = entrySymbol(name) + "." + variant.name;
  }
  model["variants"] = std::move(cpus);
  std::string metadata;
  llvm::raw_string_ostream(metadata) << llvm::json::Value(std::move(model));
  llvm::Expected<ProductBytes> root =
      makeRoot(variants, target, metadata, tokenizer);
  if (!root)
    return root;
  objects.front().object = std::move(*root);
  return mergeObjects(objects);
}

} // namespace attune
