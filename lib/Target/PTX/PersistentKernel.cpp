//===- PersistentKernel.cpp - A decoder's step as one kernel --------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// A step's launches become instructions of one cooperative launch: one kernel
// has what steps of one sequence launch, another one what steps of a few do,
// whose products have more rows. All blocks are resident and go through the
// same list; each takes the tasks that fall to it, waits on counters of what an
// instruction reads, and adds to its counter what it has done. The list, which
// the runtime writes (CudaPersistent.h), is

//   instructions  8 words of 32 bits: the kernel's number here, groups of
//                 tasks, the block that takes the first group, tasks, where its
//                 words and its waits begin, the number of waits, tasks that a
//                 group has at once
//   waits         2 words of 32 bits: an instruction, and its groups
//   words         of 64 bits: arguments of kernels
//   counters      32 bits for each instruction, and one for blocks that are
//                 done; the last of these sets all back to zero
//
// A block also looks ahead in the list: while it waits, its threads copy
// weights of the tasks that it has next into shared memory (WeightRing.h).

#include "KernelAccesses.h"
#include "StepList.h"
#include "WeightRing.h"
#include "attune/Target/PTX/Passes.h"
#include "attune/TargetInfo/GpuTiles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_PERSISTENTKERNEL
#include "attune/Target/PTX/Passes.h.inc"

namespace {

/// A kernel whose launches can be instructions.
struct Part {
  gpu::GPUFuncOp kernel;
  int64_t columns = 0, rows = 0; ///< threads of a block
  int64_t sharedBytes = 0;       ///< of a block, a multiple of kSharedStep
  int64_t atOnce = 1;            ///< tasks that a block has room for
  int64_t number = 0;
  /// What threads copy ahead; none: it reads its weights itself.
  std::optional<KernelWeights> weights;
  bool copies = false; ///< into shared memory, for itself

  int64_t threads() const { return columns * rows; }
};

/// Where arrays in shared memory may start.
constexpr int64_t kSharedStep = 128;
/// Shared memory that every launch may have.
constexpr int64_t kMostShared = 48 << 10;
/// What tasks of small kernels may have of it side by side: the rest of the
/// memory of a multiprocessor is for weights.
constexpr int64_t kSharedSideBySide = 16 << 10;
/// The most threads of a block: they have 128 registers each.
constexpr int64_t kMostThreads = 512;

/// A kind of step.
struct Kind {
  StringRef name; ///< of its kernel
  bool ofBatch;
  int64_t rowsOfPanel;     ///< that products of few rows have at once
  int64_t residentThreads; ///< of a multiprocessor
};
/// Sums of four rows take up to 255 registers.
constexpr Kind kKinds[] = {{kPersistentName, false, 1, kMostThreads},
                           {kPersistentBatchName, true, 4, kMostThreads / 2}};

int64_t bytesOf(Type type) {
  auto buffer = cast<MemRefType>(type);
  int64_t bits = buffer.getNumElements() * buffer.getElementTypeBitWidth();
  return llvm::alignTo(llvm::divideCeil(bits, 8), kSharedStep);
}

/// Whether threads of a part of a block can run it: they wait for each other by
/// gpu.barrier alone, and scratch has a known size.
bool canBePart(gpu::GPUFuncOp kernel, int64_t threads, const Kind &kind) {
  if (!kernel.getBody().hasOneBlock() || kernel.getNumPrivateAttributions())
    return false;
  bool good = llvm::all_of(kernel.getArgumentTypes(), [](Type type) {
    return type.isIntOrIndexOrFloat() || isa<LLVM::LLVMPointerType>(type);
  });
  kernel.walk([&](Operation *op) {
    if (auto scratch = dyn_cast<memref::AllocaOp>(op))
      good &= scratch.getType().hasStaticShape();
    // Tiles of many rows take the registers and shared memory of a whole block.
    if (isa<nvgpu::MmaSyncOp, NVVM::MmaOp>(op))
      good &= threads <= 32;
    if (auto rows = op->getAttrOfType<IntegerAttr>(kRowsOfPanel))
      good &= rows.getInt() == kind.rowsOfPanel;
    if (isa<NVVM::NVVMDialect>(op->getDialect()))
      good &= isa<NVVM::GriddepcontrolOp, NVVM::MmaOp, NVVM::CpAsyncOp,
                  NVVM::CpAsyncCommitGroupOp, NVVM::CpAsyncWaitGroupOp>(op);
    // Nobody says what lies at an address that is a number.
    good &=
        !isa<gpu::DynamicSharedMemoryOp, gpu::SubgroupIdOp, gpu::ClusterIdOp,
             gpu::AllReduceOp, LLVM::InlineAsmOp, LLVM::IntToPtrOp>(op);
  });
  return good;
}

/// Makes the kernel of one kind of step.
class StepKernel {
public:
  StepKernel(ModuleOp module, const Kind &kind, int64_t sharedBytes)
      : module(module), kind(kind), sharedOfMultiprocessor(sharedBytes) {}

  /// The number of its parts; 0: there is none.
  size_t make() {
    SmallVector<gpu::LaunchFuncOp> launches;
    for (Operation *function : functionsOfStep(module, kind.ofBatch))
      function->walk([&](gpu::LaunchFuncOp launch) {
        if (findPart(launch))
          launches.push_back(launch);
      });
    if (!launches.empty())
      join(launches);
    return parts.size();
  }

private:
  //===--------------------------------------------------------------------===//
  // Parts
  //===--------------------------------------------------------------------===//

  /// The kernel of a launch, or null if it stays one of its own.
  Part *findPart(gpu::LaunchFuncOp launch) {
    gpu::KernelDim3 grid = launch.getGridSizeOperandValues(),
                    block = launch.getBlockSizeOperandValues();
    int64_t columns = getConstantIntValue(block.x).value_or(0),
            rows = getConstantIntValue(block.y).value_or(0),
            size = columns * rows;
    if (launch.getDynamicSharedMemorySize() || launch.hasClusterSize() ||
        getConstantIntValue(block.z) != 1 || getConstantIntValue(grid.y) != 1 ||
        getConstantIntValue(grid.z) != 1 || size < 1 || size > kMostThreads ||
        (size != 1 && size % 32 != 0))
      return nullptr;
    auto [known, isNew] = places.try_emplace(launch.getKernel(), -1);
    if (!isNew) {
      if (known->second < 0)
        return nullptr;
      Part &part = parts[known->second];
      return part.columns == columns && part.rows == rows ? &part : nullptr;
    }
    Part part;
    part.kernel = dyn_cast_or_null<gpu::GPUFuncOp>(
        SymbolTable::lookupSymbolIn(module, launch.getKernel()));
    part.columns = columns;
    part.rows = rows;
    if (!part.kernel || !canBePart(part.kernel, size, kind))
      return nullptr;
    for (BlockArgument array : part.kernel.getWorkgroupAttributions()) {
      part.sharedBytes += bytesOf(array.getType());
      space = cast<MemRefType>(array.getType()).getMemorySpace();
    }
    if (part.sharedBytes > kMostShared)
      return nullptr;
    part.weights = KernelWeights::find(part.kernel);
    part.kernel.walk([&](Operation *op) {
      part.copies |= isa<nvgpu::DeviceAsyncCopyOp, NVVM::CpAsyncOp>(op);
    });
    part.number = static_cast<int64_t>(parts.size());
    known->second = part.number;
    parts.push_back(part);
    return &parts.back();
  }

  void join(ArrayRef<gpu::LaunchFuncOp> launches) {
    threads = 128;
    for (const Part &part : parts)
      threads = std::max<int64_t>(threads, llvm::PowerOf2Ceil(part.threads()));
    for (Part &part : parts) {
      int64_t room =
          part.sharedBytes
              ? std::max<int64_t>(kSharedSideBySide / part.sharedBytes, 1)
              : threads;
      if (part.threads() > 1)
        part.atOnce = std::min(threads / part.threads(), room);
      shared = std::max(shared, part.atOnce * part.sharedBytes);
    }
    planRing();
    gpu::GPUFuncOp whole = build();
    auto kernels = whole->getParentOfType<gpu::GPUModuleOp>();
    auto name = SymbolRefAttr::get(
        kernels.getNameAttr(), {FlatSymbolRefAttr::get(whole.getNameAttr())});
    Builder b(module.getContext());
    auto append = [&](Operation *to, StringRef attribute, Attribute value) {
      SmallVector<Attribute, 2> all;
      if (auto before = to->getAttrOfType<ArrayAttr>(attribute))
        all.assign(before.begin(), before.end());
      all.push_back(value);
      to->setAttr(attribute, b.getArrayAttr(all));
    };
    for (gpu::LaunchFuncOp launch : launches) {
      const Part &part = *findPart(launch);
      append(launch, kPersistentKernels, name);
      append(launch, kInstructions,
             b.getDenseI64ArrayAttr(
                 {threads, ring ? ring->bytes() : 0,
                  part.number | unitsOf(part) << WeightRing::kNumberBits,
                  part.atOnce}));
    }
  }

  //===--------------------------------------------------------------------===//
  // Weights that are copied ahead
  //===--------------------------------------------------------------------===//

  /// As kernels that have arrays there write it.
  Attribute spaceOfShared() {
    return space ? space : Builder(module.getContext()).getI64IntegerAttr(3);
  }

  /// In the list.
  int64_t unitsOf(const Part &part) const {
    return part.weights  ? part.weights->units()
           : part.copies ? WeightRing::kStop
                         : 0;
  }

  /// What is left of a multiprocessor's memory, if a kernel has weights that
  /// fit.
  void planRing() {
    constexpr int64_t ofSystem = 1 << 10; // for each block
    int64_t room =
        sharedOfMultiprocessor / residentBlocks() - ofSystem - shared;
    int64_t units = std::max<int64_t>(room, 0) / threads / KernelWeights::kUnit;
    bool any = false;
    for (Part &part : parts) {
      if (part.weights && (part.copies || part.weights->units() > units))
        part.weights.reset();
      any |= part.weights.has_value();
    }
    if (any)
      ring.emplace(threads, units, spaceOfShared());
  }

  //===--------------------------------------------------------------------===//
  // The kernel
  //===--------------------------------------------------------------------===//

  /// Of the kernel that is made.
  struct Outside : StepList {
    Value shared;
    Block *entry; ///< of the kernel: once for all tasks
  };
  /// Of the instruction that is run.
  struct Here {
    Value tasks, firstWord, firstWait, numWaits, atOnce;
    Value group; ///< number of the group of tasks
    Value first; ///< whether it is the block's first one
  };

  /// Of a multiprocessor.
  int64_t residentBlocks() const {
    return std::max<int64_t>(kind.residentThreads / threads, 1);
  }

  gpu::GPUFuncOp build() {
    auto kernels = parts.front().kernel->getParentOfType<gpu::GPUModuleOp>();
    OpBuilder b(module.getContext());
    b.setInsertionPointToEnd(kernels.getBody());
    Location loc = kernels.getLoc();
    auto pointer = LLVM::LLVMPointerType::get(module.getContext(), 1);
    auto type = b.getFunctionType(
        {pointer, pointer, pointer, pointer, b.getIndexType()}, {});
    SmallVector<Type, 1> arrays;
    if (shared)
      arrays.push_back(MemRefType::get({shared}, b.getI8Type(),
                                       MemRefLayoutAttrInterface(),
                                       spaceOfShared()));
    auto whole = gpu::GPUFuncOp::create(b, loc, kind.name, type, arrays);
    whole->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr());
    whole.setKnownBlockSizeAttr(
        b.getDenseI32ArrayAttr({static_cast<int32_t>(threads), 1, 1}));
    // With one row, more registers would leave room for half of the threads,
    // and of what they have under way; with fewer, attention spills.
    whole->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                   b.getI32IntegerAttr(static_cast<int32_t>(residentBlocks())));
    Block &entry = whole.getBody().front();
    b.setInsertionPointToStart(&entry);
    StepMaker m{b, loc};
    Outside out;
    out.thread = gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x);
    out.block = gpu::BlockIdOp::create(b, loc, gpu::Dimension::x);
    out.blocks = gpu::GridDimOp::create(b, loc, gpu::Dimension::x);
    out.list = whole.getArgument(0);
    out.waits = whole.getArgument(1);
    out.words = whole.getArgument(2);
    out.counters = whole.getArgument(3);
    out.size = whole.getArgument(4);
    if (shared)
      out.shared = whole.getWorkgroupAttributions().front();
    out.entry = &entry;
    if (ring)
      ring->make(m);
    auto end = gpu::ReturnOp::create(b, loc);
    b.setInsertionPoint(end);
    m.count(m.index(0), out.size, m.index(1),
            [&](Value number) { runInstruction(m, out, number); });
    m.when(m.is(arith::CmpIPredicate::eq, out.thread, m.index(0)),
           [&] { setBack(m, out); });
    return whole;
  }

  void runInstruction(StepMaker m, Outside &out, Value number) {
    std::array<Value, 8> fields = out.read(m, number);
    Value groups = fields[1];
    Here here;
    here.tasks = fields[3];
    here.firstWord = fields[4];
    here.firstWait = fields[5];
    here.numWaits = fields[6];
    here.atOnce = fields[7];
    Value first = out.firstGroup(m, fields[2]);
    m.when(m.less(first, groups), [&] {
      m.count(first, groups, out.blocks, [&](Value group) {
        here.group = group;
        here.first = m.is(arith::CmpIPredicate::eq, group, first);
        if (ring)
          ring->copyAhead(
              m, out, number, group,
              [&](StepMaker m, const std::array<Value, 8> &fields, Value group,
                  Value start) { copyGroup(m, out, fields, group, start); });
        forKernel(
            m, m.rem(fields[0], 1 << WeightRing::kNumberBits),
            [](const Part &) { return true; },
            [&](const Part &part) { runTask(m, out, here, part); });
        // What the block's threads have written, and read in shared memory.
        gpu::BarrierOp::create(m.b, m.loc);
      });
      m.when(m.is(arith::CmpIPredicate::eq, out.thread, m.index(0)), [&] {
        Value left = arith::SubIOp::create(m.b, m.loc, groups, first);
        Value done = arith::CeilDivUIOp::create(m.b, m.loc, left, out.blocks);
        m.assembly(
            {}, "red.release.gpu.global.add.u32 [$0], $1;", "l,r,~{memory}",
            {m.place(out.counters, m.b.getI32Type(), number), m.toWord(done)});
      });
    });
  }

  /// What `body` makes for the part of this number, if it is one of those.
  void forKernel(StepMaker m, Value number,
                 llvm::function_ref<bool(const Part &)> isOne,
                 llvm::function_ref<void(const Part &)> body) {
    SmallVector<int64_t> cases;
    SmallVector<const Part *> chosen;
    for (const Part &part : parts)
      if (isOne(part)) {
        cases.push_back(part.number);
        chosen.push_back(&part);
      }
    m.choose(number, cases, [&](size_t i) { body(*chosen[i]); });
  }

  /// Starts the copies of weights for a group of an instruction.
  void copyGroup(StepMaker m, Outside &out, const std::array<Value, 8> &fields,
                 Value group, Value start) {
    Here there;
    there.tasks = fields[3];
    there.firstWord = fields[4];
    there.atOnce = fields[7];
    there.group = group;
    forKernel(
        m, m.rem(fields[0], 1 << WeightRing::kNumberBits),
        [](const Part &part) { return part.weights.has_value(); },
        [&](const Part &part) { copyTask(m, out, there, part, start); });
  }
  void copyTask(StepMaker m, Outside &out, const Here &there, const Part &part,
                Value start) {
    Task own = taskOf(m, out, there, part);
    m.when(own.isThere, [&] {
      IRMapping mapping;
      mapArguments(m, out, there, part, mapping);
      Block *target = m.b.getInsertionBlock();
      part.weights->copy(
          m.b, mapping,
          [&](OpBuilder &b, Value from, ValueRange at, int64_t elements,
              Value unit) {
            Type element = cast<MemRefType>(from.getType()).getElementType();
            StepMaker inside{b, m.loc};
            Value to = ring->place(inside, out.thread, start, unit,
                                   VectorType::get({elements}, element));
            nvgpu::DeviceAsyncCopyOp::create(
                b, m.loc, nvgpu::DeviceAsyncTokenType::get(b.getContext()), to,
                ValueRange{inside.index(0)}, from, at, b.getIndexAttr(elements),
                Value(), b.getUnitAttr());
          });
      target->walk([&](Operation *op) { adapt(op, m, out, there, part, own); });
    });
  }

  //===--------------------------------------------------------------------===//
  // A kernel's code, for the threads of a part of a block
  //===--------------------------------------------------------------------===//

  /// What the threads of a part of a block have of a group.
  struct Task {
    Value share, number, isThere;
  };
  Task taskOf(StepMaker m, const Outside &out, const Here &here,
              const Part &part) {
    Value share = m.div(out.thread, part.threads());
    Value task = m.add(
        arith::MulIOp::create(m.b, m.loc, here.group, here.atOnce), share);
    return {share, task,
            m.both(m.less(share, here.atOnce), m.less(task, here.tasks))};
  }

  void mapArguments(StepMaker m, Outside &out, const Here &here,
                    const Part &part, IRMapping &mapping) {
    gpu::GPUFuncOp kernel = part.kernel;
    for (BlockArgument argument :
         kernel.getBody().front().getArguments().take_front(
             kernel.getNumArguments()))
      mapping.map(argument, readArgument(m, out, here, argument));
  }

  void runTask(StepMaker m, Outside &out, const Here &here, const Part &part) {
    Task own = taskOf(m, out, here, part);
    Value start, younger;
    if (part.weights)
      std::tie(start, younger) = ring->take(m, part.weights->units());
    m.when(own.isThere, [&] {
      IRMapping mapping;
      gpu::GPUFuncOp kernel = part.kernel;
      Block &body = kernel.getBody().front();
      mapArguments(m, out, here, part, mapping);
      int64_t offset = 0;
      for (BlockArgument array : kernel.getWorkgroupAttributions()) {
        Value at = m.add(m.mul(own.share, part.sharedBytes), m.index(offset));
        mapping.map(array, memref::ViewOp::create(
                               m.b, m.loc, cast<MemRefType>(array.getType()),
                               out.shared, at, ValueRange()));
        offset += bytesOf(array.getType());
      }
      Block *target = m.b.getInsertionBlock();
      bool waits = false;
      kernel.walk([&](NVVM::GriddepcontrolOp) { waits = true; });
      // First weights that are under way need no registers meanwhile.
      if (!waits || part.weights)
        wait(m, out, here, part, own.share);
      if (part.weights)
        ring->wait(m, younger);
      for (Operation &op : body.without_terminator())
        if (!part.weights || !isa<NVVM::GriddepcontrolOp>(op))
          m.b.clone(op, mapping);
      if (part.weights)
        part.weights->replace(mapping, [&](OpBuilder &b, VectorType type,
                                           Value unit) {
          StepMaker inside{b, m.loc};
          Value from = ring->place(inside, out.thread, start, unit, type);
          return vector::LoadOp::create(b, m.loc, type, from,
                                        ValueRange{inside.index(0)},
                                        /*nontemporal=*/false,
                                        llvm::MaybeAlign(KernelWeights::kUnit))
              .getResult();
        });
      // A kernel's end waits for copies; the next task has the same memory.
      if (part.copies)
        NVVM::CpAsyncWaitGroupOp::create(m.b, m.loc, 0);
      target->walk([&](Operation *op) { adapt(op, m, out, here, part, own); });
    });
  }

  Value readArgument(StepMaker m, Outside &out, const Here &here,
                     BlockArgument argument) {
    Value at = m.add(here.firstWord, m.index(argument.getArgNumber()));
    auto i64 = m.b.getI64Type();
    Value word = m.read(out.words, i64, at, 8);
    Type type = argument.getType();
    if (isa<LLVM::LLVMPointerType>(type))
      return LLVM::IntToPtrOp::create(m.b, m.loc, type, word);
    if (type.isIndex())
      return arith::IndexCastOp::create(m.b, m.loc, type, word);
    unsigned bits = type.getIntOrFloatBitWidth();
    if (bits < 64)
      word =
          arith::TruncIOp::create(m.b, m.loc, m.b.getIntegerType(bits), word);
    return isa<FloatType>(type)
               ? arith::BitcastOp::create(m.b, m.loc, type, word).getResult()
               : word;
  }

  /// What a kernel asks of its launch, of its task here.
  void adapt(Operation *op, StepMaker m, Outside &out, const Here &here,
             const Part &part, const Task &own) {
    if (op->getBlock() == nullptr)
      return;
    m.b.setInsertionPoint(op);
    Value instead;
    if (auto id = dyn_cast<gpu::ThreadIdOp>(op)) {
      Value thread = m.rem(out.thread, part.threads());
      instead =
          id.getDimension() == gpu::Dimension::x   ? m.rem(thread, part.columns)
          : id.getDimension() == gpu::Dimension::y ? m.div(thread, part.columns)
                                                   : m.index(0);
    } else if (auto id = dyn_cast<gpu::BlockIdOp>(op)) {
      instead =
          id.getDimension() == gpu::Dimension::x ? own.number : m.index(0);
    } else if (auto size = dyn_cast<gpu::GridDimOp>(op)) {
      instead =
          size.getDimension() == gpu::Dimension::x ? here.tasks : m.index(1);
    } else if (auto size = dyn_cast<gpu::BlockDimOp>(op)) {
      instead = m.index(size.getDimension() == gpu::Dimension::x ? part.columns
                        : size.getDimension() == gpu::Dimension::y ? part.rows
                                                                   : 1);
    } else if (isa<gpu::BarrierOp>(op)) {
      meet(m, part, own.share);
      op->erase();
      return;
    } else if (isa<NVVM::GriddepcontrolOp>(op)) {
      wait(m, out, here, part, own.share);
      op->erase();
      return;
    } else if (isa<memref::AllocaOp>(op)) {
      // Once, not for every task.
      op->moveBefore(&out.entry->front());
      return;
    }
    if (!instead)
      return;
    op->getResult(0).replaceAllUsesWith(instead);
    op->erase();
  }

  /// The threads of a task wait for each other.
  void meet(StepMaker m, const Part &part, Value share) {
    if (part.threads() == 1)
      return;
    if (part.threads() == 32) {
      NVVM::SyncWarpOp::create(m.b, m.loc, m.word(-1));
      return;
    }
    // Of the sixteen, 0 is that of all threads.
    Value number = m.toWord(m.add(share, m.index(1)));
    NVVM::BarrierOp::create(m.b, m.loc, TypeRange(), number,
                            m.word(part.threads()),
                            NVVM::BarrierReductionAttr(), Value());
  }

  /// They wait for the counters of what their instruction needs.
  void wait(StepMaker m, Outside &out, const Here &here, const Part &part,
            Value share) {
    m.when(here.first, [&] {
      Value thread = m.rem(out.thread, part.threads());
      Type i32 = m.b.getI32Type();
      m.count(thread, here.numWaits, m.index(part.threads()), [&](Value i) {
        Type two = VectorType::get({2}, i32);
        Value read = m.read(out.waits, two, m.add(here.firstWait, i), 8);
        auto field = [&](int64_t at) -> Value {
          return LLVM::ExtractElementOp::create(m.b, m.loc, read, m.word(at));
        };
        Value counter = m.place(out.counters, i32, m.toIndex(field(0)));
        Value wanted = field(1);
        scf::WhileOp::create(
            m.b, m.loc, TypeRange(), ValueRange(),
            [&](OpBuilder &b, Location loc, ValueRange) {
              StepMaker inside{b, loc};
              Value now =
                  inside.assembly(i32, "ld.acquire.gpu.global.u32 $0, [$1];",
                                  "=r,l,~{memory}", counter);
              scf::ConditionOp::create(b, loc, inside.less(now, wanted),
                                       ValueRange());
            },
            [](OpBuilder &b, Location loc, ValueRange) {
              scf::YieldOp::create(b, loc);
            });
      });
      meet(m, part, share);
    });
  }

  /// The last block to be done leaves the counters as they were.
  void setBack(StepMaker m, Outside &out) {
    Type i32 = m.b.getI32Type();
    Value before =
        m.assembly(i32, "atom.acq_rel.gpu.global.add.u32 $0, [$1], 1;",
                   "=r,l,~{memory}", m.place(out.counters, i32, out.size));
    Value last = m.is(arith::CmpIPredicate::eq,
                      m.add(m.toIndex(before), m.index(1)), out.blocks);
    m.when(last, [&] {
      m.count(m.index(0), m.add(out.size, m.index(1)), m.index(1),
              [&](Value number) {
                m.assembly({}, "st.relaxed.gpu.global.u32 [$0], 0;",
                           "l,~{memory}", m.place(out.counters, i32, number));
              });
    });
  }

  ModuleOp module;
  Kind kind;
  int64_t sharedOfMultiprocessor; ///< bytes
  SmallVector<Part> parts;
  llvm::DenseMap<SymbolRefAttr, int64_t> places; ///< of a kernel in `parts`
  int64_t threads = 0, shared = 0;               ///< of a block
  std::optional<WeightRing> ring; ///< none: tasks read weights themselves
  Attribute space;                ///< of shared memory
};

struct PersistentKernel final : impl::PersistentKernelBase<PersistentKernel> {
  using Base::Base;

  void runOnOperation() override {
    for (const Kind &kind : kKinds)
      numParts += StepKernel(getOperation(), kind, sharedBytes).make();
    if (!earlyLaunches)
      getOperation().walk([](NVVM::GriddepcontrolOp wait) { wait.erase(); });
  }
};
} // namespace

bool isPersistent(gpu::GPUFuncOp kernel) {
  return llvm::any_of(
      kKinds, [&](const Kind &kind) { return kernel.getName() == kind.name; });
}
} // namespace attune
