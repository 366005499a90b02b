//===- LoopsToKernels.cpp - Parallel loops become launches ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelAccesses.h"
#include "attune/Codegen/ParallelLoops.h"
#include "attune/Codegen/SequentialRuns.h"
#include "attune/Target/PTX/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/FunctionCallUtils.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_LOOPSTOKERNELS
#include "attune/Target/PTX/Passes.h.inc"

namespace {

/// The one gpu.module that all kernels are outlined into.
constexpr StringRef kModule = "attune_kernels";

struct LoopsToKernels final : impl::LoopsToKernelsBase<LoopsToKernels> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (auto func : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
      if (!func.isExternal() && failed(lower(func)))
        return signalPassFailure();
    // Frames are the device's.
    rename("attune_rt_frame_push", "attune_rt_device_push");
    rename("attune_rt_frame_pop", "attune_rt_device_pop");
  }

  LogicalResult lower(func::FuncOp func) {
    SmallVector<SequentialRun> runs;
    if (failed(findSequentialRuns(func, runs)))
      return failure();
    SmallVector<Operation *> loops = findParallelLoops(func);
    prefix = kernelPrefix(func);
    for (SequentialRun &run : runs)
      launchOnce(run);
    for (Operation *loop : loops)
      if (failed(launchLoop(loop)))
        return failure();
    // Launches of cooperating threads existed before.
    SmallVector<gpu::LaunchOp> launches;
    func.walk([&](gpu::LaunchOp launch) { launches.push_back(launch); });
    if (accesses && isOfStep(func))
      for (gpu::LaunchOp launch : launches)
        sayAccesses(launch);
    for (gpu::LaunchOp launch : launches)
      if (failed(closeOver(launch)))
        return failure();
    nameKernels(func);
    return readBack(func);
  }

  //===--------------------------------------------------------------------===//
  // Launches
  //===--------------------------------------------------------------------===//

  static std::string kernelPrefix(func::FuncOp func) {
    std::string name = func.getSymName().str();
    for (char &c : name)
      if (!llvm::isAlnum(c))
        c = '_';
    return name;
  }

  /// A launch with an empty body; the builder stands inside.
  gpu::LaunchOp makeLaunch(OpBuilder &b, Location loc, Value blocks,
                           int64_t width, int64_t height = 1) {
    Value one = arith::ConstantIndexOp::create(b, loc, 1);
    Value x = arith::ConstantIndexOp::create(b, loc, width);
    Value y = arith::ConstantIndexOp::create(b, loc, height);
    auto launch = gpu::LaunchOp::create(b, loc, blocks, one, one, x, y, one);
    b.setInsertionPointToStart(&launch.getBody().front());
    auto end = gpu::TerminatorOp::create(b, loc);
    b.setInsertionPoint(end);
    return launch;
  }

  void launchOnce(SequentialRun &run) {
    Operation *front = run.ops.front();
    OpBuilder b(front);
    Value one = arith::ConstantIndexOp::create(b, front->getLoc(), 1);
    gpu::LaunchOp launch = makeLaunch(b, front->getLoc(), one, 1);
    Operation *end = launch.getBody().front().getTerminator();
    for (Operation *op : run.ops)
      op->moveBefore(end);
  }

  /// Goes on inside `if (condition)`.
  static void enter(OpBuilder &b, Location loc, Value condition) {
    auto guard = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
    b.setInsertionPointToStart(guard.thenBlock());
  }

  LogicalResult launchLoop(Operation *op) {
    FailureOr<ParallelLoop> loop = ParallelLoop::get(op);
    if (failed(loop))
      return failure();
    OpBuilder b(op);
    Location loc = op->getLoc();
    unsigned rank = loop->ivs.size();
    SmallVector<Value> counts;
    Value total = arith::ConstantIndexOp::create(b, loc, 1);
    for (unsigned i = 0; i < rank; ++i) {
      counts.push_back(loop->count(b, loc, i));
      total = arith::MulIOp::create(b, loc, total, counts.back());
    }
    IRMapping mapping;
    auto setIndex = [&](unsigned i, Value number) {
      mapping.map(loop->ivs[i], loop->at(b, loc, i, number));
    };
    auto below = [&](Value number, Value count) -> Value {
      return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, number,
                                   count);
    };
    auto blocksOf = [&](Value count, int64_t width) -> Value {
      Value size = arith::ConstantIndexOp::create(b, loc, width);
      return arith::CeilDivSIOp::create(b, loc, count, size);
    };
    /// Number in the grid of thread `at` of block `block`.
    auto numberOf = [&](Value block, int64_t width, Value at) -> Value {
      Value size = arith::ConstantIndexOp::create(b, loc, width);
      Value first = arith::MulIOp::create(b, loc, block, size);
      return arith::AddIOp::create(b, loc, first, at);
    };
    int64_t height = rank == 2 ? rowsOfBlock : 1, width = blockThreads / height;
    if (rank == 2 && height > 1) {
      // Blocks of both dimensions: its threads share rows as well as columns.
      // They are numbered along one axis of the grid, which has no small limit.
      Value columns = blocksOf(counts[1], width);
      Value blocks =
          arith::MulIOp::create(b, loc, blocksOf(counts[0], height), columns);
      gpu::LaunchOp launch = makeLaunch(b, loc, blocks, width, height);
      Value block = launch.getBlockIds().x;
      Value row = numberOf(arith::DivUIOp::create(b, loc, block, columns),
                           height, launch.getThreadIds().y);
      Value column = numberOf(arith::RemUIOp::create(b, loc, block, columns),
                              width, launch.getThreadIds().x);
      Value inside = arith::AndIOp::create(b, loc, below(row, counts[0]),
                                           below(column, counts[1]));
      enter(b, loc, inside);
      setIndex(0, row);
      setIndex(1, column);
    } else {
      gpu::LaunchOp launch =
          makeLaunch(b, loc, blocksOf(total, blockThreads), blockThreads);
      Value number = numberOf(launch.getBlockIds().x, blockThreads,
                              launch.getThreadIds().x);
      enter(b, loc, below(number, total));
      // The last dimension varies fastest: neighbours in memory are neighbours
      // in a warp.
      for (int64_t i = rank - 1; i >= 0; --i) {
        Value here = number;
        if (i > 0) {
          here = arith::RemUIOp::create(b, loc, number, counts[i]);
          number = arith::DivUIOp::create(b, loc, number, counts[i]);
        }
        setIndex(i, here);
      }
    }
    for (Operation &inside : loop->body->without_terminator())
      b.clone(inside, mapping);
    ++numKernels;
    op->erase();
    return success();
  }

  //===--------------------------------------------------------------------===//
  // Values from outside that a kernel uses
  //===--------------------------------------------------------------------===//

  /// Ops that a kernel makes again for itself: constants, views and scratch.
  static bool belongsInside(Operation *op) {
    return op && (op->hasTrait<OpTrait::ConstantLike>() ||
                  isa<ViewLikeOpInterface, memref::TransposeOp,
                      memref::GetGlobalOp, memref::AllocaOp>(op));
  }

  /// Whether a call of `decode` or `decode_batch` comes here.
  bool isOfStep(func::FuncOp func) {
    if (step.empty())
      step = functionsOfStep(getOperation(), /*ofBatch=*/true);
    return step.contains(func);
  }

  LogicalResult closeOver(gpu::LaunchOp launch) {
    Region &body = launch.getBody();
    IRMapping inside;
    // A view's own operands come in turn, and stand in front of it.
    for (;;) {
      SetVector<Value> above;
      getUsedValuesDefinedAbove(body, above);
      Value next;
      for (Value value : above)
        if (belongsInside(value.getDefiningOp())) {
          next = value;
          break;
        }
      if (!next)
        break;
      Operation *op = next.getDefiningOp();
      if (auto alloca = dyn_cast<memref::AllocaOp>(op))
        if (failed(checkScratch(alloca, launch)))
          return failure();
      OpBuilder b = OpBuilder::atBlockBegin(&body.front());
      Operation *twin = b.clone(*op);
      for (auto [old, made] : llvm::zip(op->getResults(), twin->getResults()))
        replaceAllUsesInRegionWith(old, made, body);
    }
    SetVector<Value> above;
    getUsedValuesDefinedAbove(body, above);
    for (Value value : above) {
      if (auto type = dyn_cast<MemRefType>(value.getType())) {
        if (failed(passPointer(launch, value, type)))
          return failure();
      } else if (!value.getType().isIntOrIndexOrFloat()) {
        return launch.emitOpError("uses a value of type ")
               << value.getType() << ", which cannot be a kernel's argument";
      }
    }
    return success();
  }

  /// Scratch lives in the thread that uses it: what another launch or the host
  /// also sees is none.
  LogicalResult checkScratch(memref::AllocaOp alloca, gpu::LaunchOp launch) {
    for (Operation *user : alloca->getUsers()) {
      auto other = user->getParentOfType<gpu::LaunchOp>();
      if (other != launch)
        return alloca.emitOpError("is scratch of more than one kernel");
    }
    return success();
  }

  /// A buffer of the device becomes a pointer and its dynamic sizes.
  LogicalResult passPointer(gpu::LaunchOp launch, Value buffer,
                            MemRefType type) {
    if (!type.getLayout().isIdentity())
      return launch.emitOpError("uses a buffer of type ")
             << type << ", whose layout a kernel's argument cannot have";
    Location loc = buffer.getLoc();
    MLIRContext *context = type.getContext();
    auto device = LLVM::LLVMPointerType::get(context, 1);
    auto generic = LLVM::LLVMPointerType::get(context);
    OpBuilder out(launch),
        b = OpBuilder::atBlockBegin(&launch.getBody().front());
    auto i64 = b.getI64Type();
    Value address =
        memref::ExtractAlignedPointerAsIndexOp::create(out, loc, buffer);
    address = arith::IndexCastOp::create(out, loc, i64, address);
    Value pointer = LLVM::IntToPtrOp::create(out, loc, device, address);
    pointer = LLVM::AddrSpaceCastOp::create(b, loc, generic, pointer);
    // The descriptor, by hand: the sizes come one by one.
    int64_t rank = type.getRank();
    SmallVector<Type> fields = {generic, generic, i64};
    if (rank)
      fields.append(2, LLVM::LLVMArrayType::get(i64, rank));
    auto descriptor = LLVM::LLVMStructType::getLiteral(context, fields);
    Value value = LLVM::PoisonOp::create(b, loc, descriptor);
    auto set = [&](Value element, ArrayRef<int64_t> at) {
      value = LLVM::InsertValueOp::create(b, loc, value, element, at);
    };
    auto number = [&](int64_t size) -> Value {
      return LLVM::ConstantOp::create(b, loc, i64, size);
    };
    set(pointer, {0});
    set(pointer, {1});
    set(number(0), {2});
    Value stride = number(1);
    for (int64_t i = rank - 1; i >= 0; --i) {
      Value size;
      if (type.isDynamicDim(i)) {
        size = memref::DimOp::create(out, loc, buffer, i);
        size = arith::IndexCastOp::create(b, loc, i64, size);
      } else {
        size = number(type.getDimSize(i));
      }
      set(size, {3, i});
      set(stride, {4, i});
      if (i)
        stride = LLVM::MulOp::create(b, loc, stride, size);
    }
    Value inside =
        UnrealizedConversionCastOp::create(b, loc, type, value).getResult(0);
    replaceAllUsesInRegionWith(buffer, inside, launch.getBody());
    return success();
  }

  /// Kernels are numbered in the order in which they stand in their function.
  void nameKernels(func::FuncOp func) {
    unsigned number = 0;
    auto module = FlatSymbolRefAttr::get(func.getContext(), kModule);
    func.walk<WalkOrder::PreOrder>([&](gpu::LaunchOp launch) {
      launch.setModuleAttr(module);
      launch.setFunctionAttr(FlatSymbolRefAttr::get(
          func.getContext(), prefix + "_" + std::to_string(number++)));
    });
  }

  //===--------------------------------------------------------------------===//
  // Host code
  //===--------------------------------------------------------------------===//

  /// Fetches device memory that the host reads; the host must not do more.
  LogicalResult readBack(func::FuncOp func) {
    SmallVector<memref::LoadOp> loads;
    WalkResult result = func.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<gpu::LaunchOp>(op))
        return WalkResult::skip();
      if (auto load = dyn_cast<memref::LoadOp>(op)) {
        loads.push_back(load);
        return WalkResult::advance();
      }
      auto effects = dyn_cast<MemoryEffectOpInterface>(op);
      if (effects &&
          isa<memref::MemRefDialect, vector::VectorDialect,
              linalg::LinalgDialect>(op->getDialect()) &&
          (effects.hasEffect<MemoryEffects::Read>() ||
           effects.hasEffect<MemoryEffects::Write>())) {
        op->emitOpError("touches device memory outside a parallel loop");
        return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return failure();
    for (memref::LoadOp load : loads)
      fetch(load);
    numReads += loads.size();
    return success();
  }

  void fetch(memref::LoadOp load) {
    MLIRContext *context = load.getContext();
    Location loc = load.getLoc();
    auto pointer = LLVM::LLVMPointerType::get(context);
    OpBuilder b(load);
    auto i64 = b.getI64Type();
    // The element's address: the buffer's, the offset, and the strides.
    auto parts =
        memref::ExtractStridedMetadataOp::create(b, loc, load.getMemref());
    Value place = parts.getOffset();
    for (auto [index, stride] :
         llvm::zip(load.getIndices(), parts.getStrides()))
      place = arith::AddIOp::create(
          b, loc, place, arith::MulIOp::create(b, loc, index, stride));
    Type type = load.getType();
    unsigned bytes =
        type.isIndex() ? 8 : (type.getIntOrFloatBitWidth() + 7) / 8;
    place = arith::MulIOp::create(
        b, loc, place, arith::ConstantIndexOp::create(b, loc, bytes));
    place =
        arith::AddIOp::create(b, loc, place,
                              memref::ExtractAlignedPointerAsIndexOp::create(
                                  b, loc, load.getMemref()));
    Value address = arith::IndexCastOp::create(b, loc, i64, place);
    address = LLVM::IntToPtrOp::create(b, loc, pointer, address);
    auto read = LLVM::lookupOrCreateFn(
        b, getOperation(), "attune_rt_device_read", {pointer, i64}, i64);
    Value size = LLVM::ConstantOp::create(b, loc, i64, bytes);
    Value word = LLVM::CallOp::create(b, loc, *read, ValueRange{address, size})
                     .getResult();
    Value value = word;
    if (type.isIndex()) {
      value = arith::IndexCastOp::create(b, loc, type, word);
    } else if (unsigned bits = type.getIntOrFloatBitWidth(); bits < 64) {
      value = arith::TruncIOp::create(b, loc, b.getIntegerType(bits), word)
                  .getResult();
    }
    if (isa<FloatType>(type))
      value = arith::BitcastOp::create(b, loc, type, value).getResult();
    load.replaceAllUsesWith(value);
    load.erase();
  }

  void rename(StringRef from, StringRef to) {
    ModuleOp module = getOperation();
    auto func = module.lookupSymbol<LLVM::LLVMFuncOp>(from);
    if (!func)
      return;
    auto name = StringAttr::get(&getContext(), to);
    (void)SymbolTable::replaceAllSymbolUses(func, name, module);
    func.setSymNameAttr(name);
  }

  std::string prefix;
  SetVector<Operation *> step;
};
} // namespace
} // namespace attune
