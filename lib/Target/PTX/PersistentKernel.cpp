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

#include "KernelAccesses.h"
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

  int64_t threads() const { return columns * rows; }
};

/// Where arrays in shared memory may start.
constexpr int64_t kSharedStep = 128;
/// Shared memory that every launch may have.
constexpr int64_t kMostShared = 48 << 10;
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
  StepKernel(ModuleOp module, const Kind &kind) : module(module), kind(kind) {}

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
          part.sharedBytes ? kMostShared / part.sharedBytes : threads;
      if (part.threads() > 1)
        part.atOnce = std::min(threads / part.threads(), room);
      shared = std::max(shared, part.atOnce * part.sharedBytes);
    }
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
             b.getDenseI64ArrayAttr({threads, part.number, part.atOnce}));
    }
  }

  //===--------------------------------------------------------------------===//
  // The kernel
  //===--------------------------------------------------------------------===//

  /// What is made stands at `b`; numbers of the list have 32 bits.
  struct Maker {
    OpBuilder &b;
    Location loc;

    Value index(int64_t value) {
      return arith::ConstantIndexOp::create(b, loc, value);
    }
    Value word(int64_t value) {
      return LLVM::ConstantOp::create(b, loc, b.getI32Type(), value);
    }
    Value toIndex(Value value) {
      return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), value);
    }
    Value toWord(Value value) {
      return arith::IndexCastUIOp::create(b, loc, b.getI32Type(), value);
    }
    Value add(Value lhs, Value rhs) {
      return arith::AddIOp::create(b, loc, lhs, rhs);
    }
    Value mul(Value lhs, int64_t rhs) {
      return arith::MulIOp::create(b, loc, lhs, index(rhs));
    }
    Value div(Value lhs, int64_t rhs) {
      return arith::DivUIOp::create(b, loc, lhs, index(rhs));
    }
    Value rem(Value lhs, int64_t rhs) {
      return arith::RemUIOp::create(b, loc, lhs, index(rhs));
    }
    Value is(arith::CmpIPredicate how, Value lhs, Value rhs) {
      return arith::CmpIOp::create(b, loc, how, lhs, rhs);
    }
    Value less(Value lhs, Value rhs) {
      return is(arith::CmpIPredicate::ult, lhs, rhs);
    }
    Value place(Value base, Type type, Value at) {
      auto pointer = LLVM::LLVMPointerType::get(b.getContext(), 1);
      Value number = arith::IndexCastOp::create(b, loc, b.getI64Type(), at);
      return LLVM::GEPOp::create(b, loc, pointer, type, base,
                                 ArrayRef<LLVM::GEPArg>{number});
    }
    /// Of the list, which nobody writes meanwhile.
    Value read(Value base, Type type, Value at, unsigned alignment) {
      return LLVM::LoadOp::create(b, loc, type, place(base, type, at),
                                  alignment,
                                  /*isVolatile=*/false, /*isNonTemporal=*/false,
                                  /*isInvariant=*/true);
    }
    void when(Value condition, llvm::function_ref<void()> body) {
      auto guard =
          scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
      OpBuilder::InsertionGuard keep(b);
      b.setInsertionPointToStart(guard.thenBlock());
      body();
    }
    void count(Value from, Value to, Value step,
               llvm::function_ref<void(Value)> body) {
      auto loop = scf::ForOp::create(b, loc, from, to, step);
      OpBuilder::InsertionGuard keep(b);
      b.setInsertionPointToStart(loop.getBody());
      body(loop.getInductionVar());
    }
    /// An instruction of PTX that others may not pass.
    Value assembly(Type result, StringRef text, StringRef constraints,
                   ValueRange operands) {
      auto made = LLVM::InlineAsmOp::create(
          b, loc, result ? TypeRange(result) : TypeRange(), operands, text,
          constraints, /*has_side_effects=*/true, /*is_align_stack=*/false,
          LLVM::tailcallkind::TailCallKind::None,
          LLVM::AsmDialectAttr::get(b.getContext(), LLVM::AsmDialect::AD_ATT),
          ArrayAttr());
      return result ? made.getRes() : Value();
    }
  };

  /// Of the kernel that is made.
  struct Outside {
    Value thread, block, blocks;
    Value list, waits, words, counters, size; ///< parameters
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
                                       MemRefLayoutAttrInterface(), space));
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
    Maker m{b, loc};
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
    auto end = gpu::ReturnOp::create(b, loc);
    b.setInsertionPoint(end);
    m.count(m.index(0), out.size, m.index(1),
            [&](Value number) { runInstruction(m, out, number); });
    m.when(m.is(arith::CmpIPredicate::eq, out.thread, m.index(0)),
           [&] { setBack(m, out); });
    return whole;
  }

  void runInstruction(Maker m, Outside &out, Value number) {
    Type four = VectorType::get({4}, m.b.getI32Type());
    Value fields[8];
    for (int64_t half = 0; half < 2; ++half) {
      Value read =
          m.read(out.list, four, m.add(m.mul(number, 2), m.index(half)), 16);
      for (int64_t i = 0; i < 4; ++i)
        fields[4 * half + i] = m.toIndex(
            LLVM::ExtractElementOp::create(m.b, m.loc, read, m.word(i)));
    }
    Value groups = fields[1];
    Here here;
    here.tasks = fields[3];
    here.firstWord = fields[4];
    here.firstWait = fields[5];
    here.numWaits = fields[6];
    here.atOnce = fields[7];
    // The block's first group, counted from the block that has the first one.
    Value behind = arith::SubIOp::create(m.b, m.loc, out.block, fields[2]);
    Value before = m.less(out.block, fields[2]);
    Value first = arith::SelectOp::create(m.b, m.loc, before,
                                          m.add(behind, out.blocks), behind);
    m.when(m.less(first, groups), [&] {
      m.count(first, groups, out.blocks, [&](Value group) {
        here.group = group;
        here.first = m.is(arith::CmpIPredicate::eq, group, first);
        runGroup(m, out, here, fields[0]);
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

  void runGroup(Maker m, Outside &out, const Here &here, Value kernel) {
    SmallVector<int64_t> cases;
    for (const Part &part : parts)
      cases.push_back(part.number);
    auto choice = scf::IndexSwitchOp::create(m.b, m.loc, TypeRange(), kernel,
                                             cases, cases.size());
    OpBuilder::InsertionGuard keep(m.b);
    auto fill = [&](Region &region, const Part *part) {
      m.b.setInsertionPointToStart(&region.emplaceBlock());
      auto end = scf::YieldOp::create(m.b, m.loc);
      m.b.setInsertionPoint(end);
      if (part)
        runTask(m, out, here, *part);
    };
    fill(choice.getDefaultRegion(), nullptr);
    for (auto [region, part] : llvm::zip_equal(choice.getCaseRegions(), parts))
      fill(region, &part);
  }

  //===--------------------------------------------------------------------===//
  // A kernel's code, for the threads of a part of a block
  //===--------------------------------------------------------------------===//

  void runTask(Maker m, Outside &out, const Here &here, const Part &part) {
    Value share = m.div(out.thread, part.threads());
    Value task = m.add(
        arith::MulIOp::create(m.b, m.loc, here.group, here.atOnce), share);
    Value isThere = arith::AndIOp::create(
        m.b, m.loc, m.less(share, here.atOnce), m.less(task, here.tasks));
    m.when(isThere, [&] {
      IRMapping mapping;
      gpu::GPUFuncOp kernel = part.kernel;
      Block &body = kernel.getBody().front();
      unsigned numWords = kernel.getNumArguments();
      for (BlockArgument argument : body.getArguments().take_front(numWords))
        mapping.map(argument, readArgument(m, out, here, argument));
      int64_t offset = 0;
      for (BlockArgument array : kernel.getWorkgroupAttributions()) {
        Value start = m.add(m.mul(share, part.sharedBytes), m.index(offset));
        mapping.map(array, memref::ViewOp::create(
                               m.b, m.loc, cast<MemRefType>(array.getType()),
                               out.shared, start, ValueRange()));
        offset += bytesOf(array.getType());
      }
      Block *target = m.b.getInsertionBlock();
      bool waits = false;
      kernel.walk([&](NVVM::GriddepcontrolOp) { waits = true; });
      if (!waits)
        wait(m, out, here, part, share);
      bool copies = false;
      for (Operation &op : body.without_terminator())
        m.b.clone(op, mapping)->walk([&](Operation *inside) {
          copies |= isa<nvgpu::DeviceAsyncCopyOp, NVVM::CpAsyncOp>(inside);
        });
      // A kernel's end waits for copies; the next task has the same memory.
      if (copies)
        NVVM::CpAsyncWaitGroupOp::create(m.b, m.loc, 0);
      target->walk(
          [&](Operation *op) { adapt(op, m, out, here, part, share, task); });
    });
  }

  Value readArgument(Maker m, Outside &out, const Here &here,
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
  void adapt(Operation *op, Maker m, Outside &out, const Here &here,
             const Part &part, Value share, Value task) {
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
      instead = id.getDimension() == gpu::Dimension::x ? task : m.index(0);
    } else if (auto size = dyn_cast<gpu::GridDimOp>(op)) {
      instead =
          size.getDimension() == gpu::Dimension::x ? here.tasks : m.index(1);
    } else if (auto size = dyn_cast<gpu::BlockDimOp>(op)) {
      instead = m.index(size.getDimension() == gpu::Dimension::x ? part.columns
                        : size.getDimension() == gpu::Dimension::y ? part.rows
                                                                   : 1);
    } else if (isa<gpu::BarrierOp>(op)) {
      meet(m, part, share);
      op->erase();
      return;
    } else if (isa<NVVM::GriddepcontrolOp>(op)) {
      wait(m, out, here, part, share);
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
  void meet(Maker m, const Part &part, Value share) {
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
  void wait(Maker m, Outside &out, const Here &here, const Part &part,
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
              Maker inside{b, loc};
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
  void setBack(Maker m, Outside &out) {
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
  SmallVector<Part> parts;
  llvm::DenseMap<SymbolRefAttr, int64_t> places; ///< of a kernel in `parts`
  int64_t threads = 0, shared = 0;               ///< of a block
  Attribute space;                               ///< of shared memory
};

struct PersistentKernel final : impl::PersistentKernelBase<PersistentKernel> {
  using Base::Base;

  void runOnOperation() override {
    for (const Kind &kind : kKinds)
      numParts += StepKernel(getOperation(), kind).make();
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
