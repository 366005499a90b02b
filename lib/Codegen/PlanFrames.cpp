//===- PlanFrames.cpp - Temporary buffers in one frame per function -------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Codegen/Passes.h"
#include "attune/TargetInfo/TargetDescription.h"

#include "SizeText.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/Transforms/BufferViewFlowAnalysis.h"
#include "mlir/Dialect/LLVMIR/FunctionCallUtils.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_PLANFRAMES
#include "attune/Codegen/Passes.h.inc"

namespace {

/// Bytes: factor times the product of dims.
struct Bytes {
  int64_t factor = 1;
  SmallVector<Value> dims; ///< at the start of the function, sorted
  double guess = 0;        ///< for inputs of some size
};

/// One buffer of the function body: where it is live (positions of operations
/// in the body) and how large it is.
struct Buffer {
  memref::AllocOp alloc;
  unsigned begin, end;
  Bytes bytes;
  unsigned slot = 0;
};

/// Space that buffers share, one after the other: it has the most bytes of
/// these, each of other dynamic sizes.
struct Slot {
  SmallVector<Bytes, 1> sizes;
  unsigned freeFrom = 0;

  double guess() const {
    double most = 0;
    for (const Bytes &size : sizes)
      most = std::max(most, size.guess);
    return most;
  }
  Bytes *find(ArrayRef<Value> dims) {
    auto *size = llvm::find_if(
        sizes, [&](const Bytes &size) { return size.dims == dims; });
    return size == sizes.end() ? nullptr : size;
  }
};

/// Buffers whose sizes differ by more than this do not share a slot: what is
/// left over would be missed by others.
constexpr double kLikeSizes = 8;

/// By what an operation computes, wherever it comes from.
struct SameOp : llvm::DenseMapInfo<Operation *> {
  static unsigned getHashValue(Operation *op) {
    return OperationEquivalence::computeHash(
        op, OperationEquivalence::directHashValue,
        OperationEquivalence::ignoreHashValue,
        OperationEquivalence::IgnoreLocations);
  }
  static bool isEqual(Operation *a, Operation *b) {
    auto marks = [](Operation *op) {
      return op == getEmptyKey() || op == getTombstoneKey();
    };
    if (a == b || marks(a) || marks(b))
      return a == b;
    return OperationEquivalence::isEquivalentTo(
        a, b, OperationEquivalence::IgnoreLocations);
  }
};

struct PlanFrames final : impl::PlanFramesBase<PlanFrames> {
  using Base::Base;

  void runOnOperation() override {
    text.emplace(getOperation());
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (!func.isExternal() && failed(planFunction(func)))
        return signalPassFailure();
  }

  LogicalResult planFunction(func::FuncOp func) {
    atEntry.clear();
    atStartOnce.clear();
    seen.clear();
    Block &body = func.getBody().front();
    entry = &body;
    // Sizes are computed at the very start, in the order they are needed.
    start = OpBuilder::atBlockBegin(&body);
    guesses.clear();

    SmallVector<memref::AllocOp> allocs;
    func.walk([&](memref::AllocOp alloc) { allocs.push_back(alloc); });
    SmallVector<memref::AllocOp> temporaries;
    for (memref::AllocOp alloc : allocs) {
      if (alloc->getBlock() == &body) {
        temporaries.push_back(alloc);
      } else if (alloc.getType().hasStaticShape()) {
        toStack(alloc, body);
      } else {
        return alloc.emitOpError("is inside a loop and has a size known at run "
                                 "time only; it cannot be planned");
      }
    }
    return temporaries.empty() ? success() : plan(func, temporaries);
  }

  /// Buffers inside loops belong to the thread that runs the loop.
  void toStack(memref::AllocOp alloc, Block &body) {
    OpBuilder b = OpBuilder::atBlockBegin(&body);
    auto stack = memref::AllocaOp::create(b, alloc.getLoc(), alloc.getType(),
                                          b.getI64IntegerAttr(kLineBytes));
    alloc.replaceAllUsesWith(stack.getMemref());
    alloc.erase();
  }

  /// The size of a collapsed dimension, as a product of the source's sizes;
  /// null for other dimensions, which MLIR folds.
  Value sizeOfView(memref::DimOp dim) {
    auto view = dim.getSource().getDefiningOp<memref::CollapseShapeOp>();
    std::optional<int64_t> number = dim.getConstantIndex();
    if (!view || !number)
      return {};
    OpBuilder b(dim);
    Value size;
    ReassociationIndices group = view.getReassociationIndices()[*number];
    for (int64_t part : group) {
      Value next =
          b.createOrFold<memref::DimOp>(dim.getLoc(), view.getSrc(), part);
      size =
          size ? b.createOrFold<arith::MulIOp>(dim.getLoc(), size, next) : next;
    }
    return size;
  }

  /// The value of a size at the start of the function, or null if it depends on
  /// more than the arguments.
  Value atStart(Value value) {
    if (Value done = atEntry.lookup(value))
      return done;
    if (auto argument = dyn_cast<BlockArgument>(value))
      return argument.getOwner() == entry ? value : Value();
    Operation *op = value.getDefiningOp();
    if (auto dim = dyn_cast<memref::DimOp>(op))
      if (Value size = sizeOfView(dim))
        return atEntry[value] = atStart(size);
    if (!isMemoryEffectFree(op) || op->getNumRegions() != 0)
      return {};
    IRMapping mapping;
    for (Value operand : op->getOperands()) {
      Value moved = atStart(operand);
      if (!moved)
        return {};
      mapping.map(operand, moved);
    }
    Operation *clone = start.clone(*op, mapping);
    // The same dimension of the same argument must be the same value.
    auto [known, added] = atStartOnce.insert(clone);
    if (!added)
      clone->erase();
    Value result = (*known)->getResult(cast<OpResult>(value).getResultNumber());
    atEntry[value] = result;
    return result;
  }

  /// Splits a size into constant and dynamic factors.
  void collectFactors(Value value, int64_t &factor, SmallVector<Value> &dims) {
    if (auto constant = getConstantIntValue(value)) {
      factor *= *constant;
      return;
    }
    if (auto product = value.getDefiningOp<arith::MulIOp>()) {
      collectFactors(product.getLhs(), factor, dims);
      collectFactors(product.getRhs(), factor, dims);
      return;
    }
    dims.push_back(value);
    seen.try_emplace(value, seen.size());
  }

  /// What a size may be where each that comes from outside is a thousand. The
  /// plan holds for all sizes; this says which of two is likely to be larger.
  double guess(Value value) {
    if (auto constant = getConstantIntValue(value))
      return double(*constant);
    if (auto known = guesses.find(value); known != guesses.end())
      return known->second;
    Operation *op = value.getDefiningOp();
    double result = 1000;
    if (op && op->getNumOperands() == 2 &&
        isa<arith::ArithDialect>(op->getDialect())) {
      double a = guess(op->getOperand(0)), b = guess(op->getOperand(1));
      if (isa<arith::AddIOp>(op))
        result = a + b;
      else if (isa<arith::SubIOp>(op))
        result = a - b;
      else if (isa<arith::MulIOp>(op))
        result = a * b;
      else if (isa<arith::DivSIOp, arith::DivUIOp, arith::FloorDivSIOp,
                   arith::CeilDivSIOp, arith::CeilDivUIOp>(op))
        result = a / std::max(b, 1.0);
      else if (isa<arith::MinSIOp, arith::MinUIOp>(op))
        result = std::min(a, b);
      else
        result = std::max(a, b);
    }
    return guesses[value] = result;
  }

  LogicalResult plan(func::FuncOp func, ArrayRef<memref::AllocOp> allocs) {
    llvm::DenseMap<Operation *, unsigned> position;
    for (auto [number, op] : llvm::enumerate(*entry))
      position[&op] = number;
    BufferViewFlowAnalysis aliases(func);
    SmallVector<Buffer> buffers;
    for (memref::AllocOp alloc : allocs) {
      Buffer buffer{alloc, position[alloc], position[alloc], {}};
      Bytes &bytes = buffer.bytes;
      for (Value alias : aliases.resolve(alloc.getMemref()))
        for (Operation *user : alias.getUsers())
          if (Operation *top = entry->findAncestorOpInBlock(*user))
            buffer.end = std::max(buffer.end, position[top]);
      MemRefType type = alloc.getType();
      if (!type.getLayout().isIdentity())
        return alloc.emitOpError("has a layout that frames do not know");
      bytes.factor = (type.getElementTypeBitWidth() + 7) / 8;
      for (int64_t size : type.getShape())
        if (!ShapedType::isDynamic(size))
          bytes.factor *= size;
      for (Value size : alloc.getDynamicSizes()) {
        Value moved = atStart(size);
        if (!moved)
          return alloc.emitOpError("has a size that is not known when its "
                                   "function starts");
        collectFactors(moved, bytes.factor, bytes.dims);
      }
      // Not by address: the same model must give the same code every time.
      llvm::sort(bytes.dims, [&](Value a, Value b) {
        return seen.lookup(a) < seen.lookup(b);
      });
      bytes.guess = double(bytes.factor);
      for (Value dim : bytes.dims)
        bytes.guess *= guess(dim);
      buffers.push_back(buffer);
    }
    SmallVector<Slot> slots = assign(buffers, /*mixes=*/true);
    auto total = [](ArrayRef<Slot> slots) {
      double sum = 0;
      for (const Slot &slot : slots)
        sum += slot.guess();
      return sum;
    };
    double mixed = total(slots);
    slots = assign(buffers, /*mixes=*/false);
    if (mixed < total(slots))
      slots = assign(buffers, /*mixes=*/true);
    describe(func, buffers, slots);
    emit(func, buffers, slots);
    numBuffers += buffers.size();
    numSlots += slots.size();
    return success();
  }

  /// In program order, into the free slot of the same dynamic sizes that needs
  /// to grow least. If there is none and it `mixes`, one of others will do that
  /// is hardly larger or smaller.
  SmallVector<Slot> assign(SmallVector<Buffer> &buffers, bool mixes) {
    SmallVector<Slot> slots;
    for (Buffer &buffer : buffers) {
      const Bytes &bytes = buffer.bytes;
      unsigned best = slots.size();
      auto choose = [&](auto growth) {
        for (unsigned i = 0; i < slots.size(); ++i)
          if (slots[i].freeFrom <= buffer.begin && growth(i) >= 0 &&
              (best == slots.size() || growth(i) < growth(best)))
            best = i;
      };
      choose([&](unsigned i) -> double {
        const Bytes *own = slots[i].find(bytes.dims);
        return own ? std::abs(double(own->factor - bytes.factor)) : -1;
      });
      if (best == slots.size() && mixes)
        choose([&](unsigned i) -> double {
          double most = slots[i].guess();
          bool isLike = std::max(most, bytes.guess) <=
                        kLikeSizes * std::min(most, bytes.guess);
          return isLike ? std::abs(most - bytes.guess) : -1;
        });
      if (best == slots.size())
        slots.emplace_back();
      Slot &slot = slots[best];
      if (Bytes *own = slot.find(bytes.dims)) {
        own->factor = std::max(own->factor, bytes.factor);
        own->guess = std::max(own->guess, bytes.guess);
      } else {
        slot.sizes.push_back(bytes);
      }
      slot.freeFrom = buffer.end + 1;
      buffer.slot = best;
    }
    return slots;
  }

  /// The plan in words, in terms of the sizes that the model's inputs name.
  /// `attune compile --emit-stages` writes it to a file.
  void describe(func::FuncOp func, ArrayRef<Buffer> buffers,
                ArrayRef<Slot> slots) {
    SmallVector<std::string> lines, sizes;
    SmallVector<int64_t> lives;
    for (auto [number, slot] : llvm::enumerate(slots)) {
      std::string bytes;
      for (const Bytes &size : slot.sizes) {
        std::string own = std::to_string(size.factor);
        for (Value dim : size.dims)
          own += " * " + text->describeSize(dim);
        bytes = bytes.empty() ? own : "max(" + bytes + ", " + own + ")";
      }
      sizes.push_back(bytes);
      lines.push_back("slot " + std::to_string(number) + ": " + bytes +
                      " bytes");
      for (const Buffer &buffer : buffers)
        if (buffer.slot == number) {
          lines.push_back("  " +
                          text->describeShape(buffer.alloc->getResult(0)) +
                          "  " + describePlace(buffer.alloc->getLoc()));
          lives.append({int64_t(number), buffer.begin, buffer.end});
        }
    }
    auto attach = [&](StringRef name, ArrayRef<std::string> texts) {
      SmallVector<StringRef> views(texts.begin(), texts.end());
      func->setAttr(name, Builder(func.getContext()).getStrArrayAttr(views));
    };
    attach("attune.frame", lines);
    // The sizes alone: lib/Analysis/MemoryPlan adds them up.
    attach("attune.slots", sizes);
    // Slot, first and last operation of each buffer, as the lines have them.
    func->setAttr("attune.lives",
                  Builder(func.getContext()).getDenseI64ArrayAttr(lives));
  }

  void emit(func::FuncOp func, ArrayRef<Buffer> buffers, ArrayRef<Slot> slots) {
    OpBuilder &b = start;
    Location loc = func.getLoc();
    auto index = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(b, loc, value);
    };
    SmallVector<Value> offsets;
    Value total = index(0);
    for (const Slot &slot : slots) {
      offsets.push_back(total);
      Value bytes;
      for (const Bytes &size : slot.sizes) {
        Value own = index(size.factor);
        for (Value dim : size.dims)
          own = arith::MulIOp::create(b, loc, own, dim);
        bytes = bytes ? arith::MaxSIOp::create(b, loc, bytes, own) : own;
      }
      bytes = arith::AddIOp::create(b, loc, bytes, index(kLineBytes - 1));
      bytes = arith::AndIOp::create(b, loc, bytes, index(-kLineBytes));
      total = arith::AddIOp::create(b, loc, total, bytes);
    }
    Value frame = pushFrame(func, b, loc, total);
    // Where the original allocation stood there is now a view.
    for (const Buffer &buffer : buffers) {
      memref::AllocOp alloc = buffer.alloc;
      OpBuilder at(alloc);
      Value view =
          memref::ViewOp::create(at, alloc.getLoc(), alloc.getType(), frame,
                                 offsets[buffer.slot], alloc.getDynamicSizes());
      alloc.replaceAllUsesWith(view);
      alloc.erase();
    }
    func.walk([&](memref::DeallocOp dealloc) { dealloc.erase(); });
  }

  /// The frame as memref<?xi8>; popped before every return.
  Value pushFrame(func::FuncOp func, OpBuilder &b, Location loc, Value bytes) {
    MLIRContext *context = func.getContext();
    auto pointer = LLVM::LLVMPointerType::get(context);
    auto i64 = b.getI64Type();
    Value size = arith::IndexCastOp::create(b, loc, i64, bytes);
    auto module = func->getParentOfType<ModuleOp>();
    auto push = LLVM::lookupOrCreateFn(b, module, "attune_rt_frame_push", {i64},
                                       pointer);
    auto pop = LLVM::lookupOrCreateFn(b, module, "attune_rt_frame_pop", {i64},
                                      LLVM::LLVMVoidType::get(context));
    Value address =
        LLVM::CallOp::create(b, loc, *push, ValueRange{size}).getResult();
    // The descriptor of memref<?xi8>, by hand: the pointer comes from C.
    auto array = LLVM::LLVMArrayType::get(i64, 1);
    auto descriptor = LLVM::LLVMStructType::getLiteral(
        context, {pointer, pointer, i64, array, array});
    Value zero = LLVM::ConstantOp::create(b, loc, i64, 0);
    Value one = LLVM::ConstantOp::create(b, loc, i64, 1);
    Value value = LLVM::PoisonOp::create(b, loc, descriptor);
    auto set = [&](Value element, ArrayRef<int64_t> at) {
      value = LLVM::InsertValueOp::create(b, loc, value, element, at);
    };
    set(address, {0});
    set(address, {1});
    set(zero, {2});
    set(size, {3, 0});
    set(one, {4, 0});
    auto type = MemRefType::get({ShapedType::kDynamic}, b.getI8Type());
    Value frame =
        UnrealizedConversionCastOp::create(b, loc, type, value).getResult(0);
    func.walk([&](func::ReturnOp returnOp) {
      OpBuilder at(returnOp);
      LLVM::CallOp::create(at, returnOp.getLoc(), *pop, ValueRange{size});
    });
    return frame;
  }

  std::optional<SizeText> text;
  Block *entry = nullptr;
  OpBuilder start{static_cast<MLIRContext *>(nullptr)};
  DenseMap<Value, Value> atEntry;
  /// Ops at the start of the function that compute these values, each once.
  DenseSet<Operation *, SameOp> atStartOnce;
  /// The dynamic sizes in the order they came up.
  DenseMap<Value, unsigned> seen;
  DenseMap<Value, double> guesses;
};
} // namespace
} // namespace attune
