//===- Descriptor.h - What the runtime sees of a model ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_TARGET_CPU_DESCRIPTOR_H
#define ATTUNE_LIB_TARGET_CPU_DESCRIPTOR_H

#include "attune/TargetInfo/TargetDescription.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/IR/Constant.h"
#include "llvm/Support/CodeGen.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

#include <memory>

namespace attune {

/// The symbol of the function `void entry(void **args)` that calls an entry.
std::string entrySymbol(llvm::StringRef name);

/// Defines `attune_model` (include/attune/Runtime/Model.h), with such functions
/// in this order. `tokenizer`: a table, or empty.
void emitDescriptor(llvm::Module &module, llvm::StringRef metadata,
                    llvm::StringRef tokenizer,
                    llvm::ArrayRef<llvm::Constant *> entries,
                    mlir::DictionaryAttr device);
/// Defines these functions, too. `device`: kernels for a GPU, or null.
llvm::Error emitDescriptor(llvm::Module &module, llvm::StringRef metadata,
                           llvm::StringRef tokenizer,
                           llvm::ArrayRef<llvm::StringRef> names,
                           mlir::DictionaryAttr device);
/// Defines the functions alone, for the descriptor of another object.
llvm::Error emitVariant(llvm::Module &module,
                        llvm::ArrayRef<llvm::StringRef> names);

/// What generates code for a target; null, and why.
std::unique_ptr<llvm::TargetMachine>
createMachine(const TargetDescription &target, std::string &error);
/// Emits into `out`. Code generation changes the module: emit once.
llvm::Error emitFile(llvm::Module &module, llvm::TargetMachine &machine,
                     llvm::raw_pwrite_stream &out, llvm::CodeGenFileType type);

} // namespace attune

#endif // ATTUNE_LIB_TARGET_CPU_DESCRIPTOR_H
