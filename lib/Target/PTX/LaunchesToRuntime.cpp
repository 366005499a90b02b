//===- LaunchesToRuntime.cpp - Launches as calls of the runtime -----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Target/PTX/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/FunctionCallUtils.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_LAUNCHESTORUNTIME
#include "attune/Target/PTX/Passes.h.inc"

namespace {
struct LaunchesToRuntime final
    : impl::LaunchesToRuntimeBase<LaunchesToRuntime> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<gpu::LaunchFuncOp> launches;
    module.walk([&](gpu::LaunchFuncOp launch) { launches.push_back(launch); });
    for (gpu::LaunchFuncOp launch : launches)
      lower(launch);
    SmallVector<gpu::BinaryOp> binaries(module.getOps<gpu::BinaryOp>());
    if (binaries.size() > 1 || (binaries.empty() && !launches.empty())) {
      module.emitError("has ")
          << binaries.size() << " binaries for its kernels, not one";
      return signalPassFailure();
    }
    for (gpu::BinaryOp binary : binaries) {
      auto object = cast<gpu::ObjectAttr>(binary.getObjects()[0]);
      auto chip = cast<NVVM::NVVMTargetAttr>(object.getTarget()).getChip();
      Builder b(&getContext());
      // The text comes with the zero that ends it.
      StringAttr ptx =
          b.getStringAttr(object.getObject().getValue().rtrim('\0'));
      SmallVector<Attribute> symbols;
      for (StringAttr name : names)
        symbols.push_back(name);
      module->setAttr("attune.device",
                      b.getDictionaryAttr(
                          {b.getNamedAttr("chip", b.getStringAttr(chip)),
                           b.getNamedAttr("dynamic_shared",
                                          b.getDenseI64ArrayAttr(sharedBytes)),
                           b.getNamedAttr("kernels", b.getArrayAttr(symbols)),
                           b.getNamedAttr("ptx", ptx)}));
      binary.erase();
    }
    module->removeAttr(gpu::GPUDialect::getContainerModuleAttrName());
  }

  /// Kernels are numbered in the order in which they are first launched.
  int64_t numberOf(StringAttr name) {
    auto known = llvm::find(names, name);
    if (known == names.end()) {
      known = names.insert(names.end(), name);
      sharedBytes.push_back(0);
    }
    return known - names.begin();
  }

  void lower(gpu::LaunchFuncOp launch) {
    Location loc = launch.getLoc();
    OpBuilder b(launch);
    MLIRContext *context = &getContext();
    auto pointer = LLVM::LLVMPointerType::get(context);
    auto i64 = b.getI64Type();
    auto constant = [&](OpBuilder &b, int64_t value) -> Value {
      return LLVM::ConstantOp::create(b, loc, i64, value);
    };
    // The array stands at the function's start: this may be in a loop.
    auto parent = launch->getParentOfType<FunctionOpInterface>();
    OpBuilder start =
        OpBuilder::atBlockBegin(&parent.getFunctionBody().front());
    unsigned count = launch.getKernelOperands().size();
    Value array = LLVM::AllocaOp::create(start, loc, pointer, i64,
                                         constant(start, std::max(count, 1u)));
    for (auto [i, operand] : llvm::enumerate(launch.getKernelOperands())) {
      Value word = toWord(b, loc, operand);
      Value place = LLVM::GEPOp::create(b, loc, pointer, i64, array,
                                        ArrayRef<LLVM::GEPArg>{int32_t(i)});
      LLVM::StoreOp::create(b, loc, word, place);
    }
    int64_t number = numberOf(launch.getKernelName());
    SmallVector<Value> arguments = {constant(b, number)};
    gpu::KernelDim3 grid = launch.getGridSizeOperandValues(),
                    block = launch.getBlockSizeOperandValues();
    for (Value size : {grid.x, grid.y, grid.z, block.x, block.y, block.z})
      arguments.push_back(arith::IndexCastOp::create(b, loc, i64, size));
    Value shared = launch.getDynamicSharedMemorySize();
    APInt bytes;
    if (shared && matchPattern(shared, m_ConstantInt(&bytes)))
      sharedBytes[number] =
          std::max(sharedBytes[number], int64_t(bytes.getZExtValue()));
    arguments.push_back(shared ? arith::ExtUIOp::create(b, loc, i64, shared)
                               : constant(b, 0));
    arguments.push_back(array);
    arguments.push_back(constant(b, count));
    SmallVector<Type> types(8, i64);
    types.append({pointer, i64});
    auto function =
        LLVM::lookupOrCreateFn(b, getOperation(), "attune_rt_launch", types,
                               LLVM::LLVMVoidType::get(context));
    nameInstructions(b, launch);
    LLVM::CallOp::create(b, loc, *function, arguments);
    launch.erase();
  }

  /// What the next launch is in kernels of a step.
  void nameInstructions(OpBuilder &b, gpu::LaunchFuncOp launch) {
    auto kernels = launch->getAttrOfType<ArrayAttr>(kPersistentKernels);
    auto instructions = launch->getAttrOfType<ArrayAttr>(kInstructions);
    if (!kernels || !instructions)
      return;
    for (auto [kernel, numbers] : llvm::zip_equal(kernels, instructions))
      nameInstruction(b, launch.getLoc(), cast<SymbolRefAttr>(kernel),
                      cast<DenseI64ArrayAttr>(numbers));
  }
  void nameInstruction(OpBuilder &b, Location loc, SymbolRefAttr whole,
                       DenseI64ArrayAttr numbers) {
    auto i64 = b.getI64Type();
    int64_t kernel = numberOf(whole.getLeafReference());
    sharedBytes[kernel] = numbers[1];
    SmallVector<Value> arguments = {
        LLVM::ConstantOp::create(b, loc, i64, kernel)};
    for (int64_t number : numbers.asArrayRef())
      arguments.push_back(LLVM::ConstantOp::create(b, loc, i64, number));
    auto function =
        LLVM::lookupOrCreateFn(b, getOperation(), "attune_rt_instruction",
                               SmallVector<Type>(arguments.size(), i64),
                               LLVM::LLVMVoidType::get(&getContext()));
    LLVM::CallOp::create(b, loc, *function, arguments);
  }

  /// Every parameter has 8 bytes here; a kernel reads as many as it has.
  static Value toWord(OpBuilder &b, Location loc, Value value) {
    auto i64 = b.getI64Type();
    Type type = value.getType();
    if (isa<LLVM::LLVMPointerType>(type))
      return LLVM::PtrToIntOp::create(b, loc, i64, value);
    if (type.isIndex())
      return arith::IndexCastOp::create(b, loc, i64, value);
    unsigned bits = type.getIntOrFloatBitWidth();
    if (isa<FloatType>(type))
      value = arith::BitcastOp::create(b, loc, b.getIntegerType(bits), value);
    return bits < 64 ? arith::ExtUIOp::create(b, loc, i64, value).getResult()
                     : value;
  }

  SmallVector<StringAttr> names;
  SmallVector<int64_t> sharedBytes; ///< the most that a launch of each reserves
};
} // namespace
} // namespace attune
