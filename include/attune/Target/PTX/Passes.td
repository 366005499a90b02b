//===- Passes.td - From parallel loops to kernels ------------*- tablegen -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_TARGET_PTX_PASSES
#define ATTUNE_TARGET_PTX_PASSES

include "mlir/Pass/PassBase.td"

def PositionsOutside : Pass<"attune-positions-outside", "::mlir::ModuleOp"> {
  let summary = "Caches have all of a position side by side";
  let description = [{
    Needs: entries on buffers, whose caches are [layers, batch, heads, positions,
    width] or [batch, layers, heads, positions, width], and are used through views.
    Gives: caches [batch, positions, layers, heads, width], and so in the
    `attune.shape` of the entries; views with the dimensions they had. What a
    sequence keeps grows at one end, where pages of memory can be added.
    Caches without positions, which are states, stay.
    Keeps: what is computed.

    Before:

    ```mlir
    func.func @decode(%k: memref<3x?x2x?x16xf16>
        {attune.kind = "cache", attune.shape = [3, "batch", 2, "capacity", 16]})
    %keys = memref.subview %k[%layer, 0, 0, 0, 0] [1, %b, 2, %n, 16] [1, 1, 1, 1, 1]
      : memref<3x?x2x?x16xf16> to memref<?x2x?x16xf16, strided<[?, ?, 16, 1], offset: ?>>
    ```

    After:

    ```mlir
    func.func @decode(%k: memref<?x?x3x2x16xf16>
        {attune.kind = "cache", attune.shape = ["batch", "capacity", 3, 2, 16]})
    %part = memref.subview %k[0, 0, %layer, 0, 0] [%b, %n, 1, 2, 16] [1, 1, 1, 1, 1]
      : memref<?x?x3x2x16xf16> to memref<?x?x2x16xf16, strided<[?, 96, 16, 1], offset: ?>>
    %keys = memref.transpose %part (b, n, h, d) -> (b, h, n, d)
    ```
  }];
  let dependentDialects = ["::mlir::memref::MemRefDialect"];
  let statistics = [Statistic<"numCaches", "num-caches",
                              "Caches whose positions were moved">];
}

def ShareKernels : Pass<"attune-share-kernels", "::mlir::ModuleOp"> {
  let summary = "Kernels that compute the same are one";
  let description = [{
    Blocks of a kind, and prompts and steps, have many kernels in common.

    Needs: kernels outlined into modules.
    Gives: of the kernels of a module that differ in nothing but their names and
    locations the first; launches of the others launch that.
    Keeps: what each launch computes, and the order of launches.

    Before:

    ```mlir
    gpu.module @kernels {
      gpu.func @forward_0(%x: i64) kernel { ... gpu.return }
      gpu.func @decode_0(%x: i64) kernel { ... gpu.return } // the same
    }
    gpu.launch_func @kernels::@decode_0 blocks in ... args(%n : i64)
    ```

    After:

    ```mlir
    gpu.module @kernels {
      gpu.func @forward_0(%x: i64) kernel { ... gpu.return }
    }
    gpu.launch_func @kernels::@forward_0 blocks in ... args(%n : i64)
    ```
  }];
  let dependentDialects = ["::mlir::gpu::GPUDialect"];
  let statistics = [
    Statistic<"numShared", "num-shared", "Kernels that are another one">,
  ];
}

def LoopsToKernels : Pass<"attune-loops-to-kernels", "::mlir::ModuleOp"> {
  let summary = "Parallel loops become launches, the rest host code";
  let description = [{
    Needs: bufferized code with frames planned; all memory but scratch inside
    parallel loops is the device's.
    Gives: a gpu.launch for every outermost scf.forall and scf.parallel, one
    thread for each iteration; blocks of a loop of two dimensions are tiles of
    both. Writes between them are launches of one thread. A launch uses nothing
    from above but numbers and pointers to device memory (`!llvm.ptr<1>`): views
    are made inside, scratch is the thread's own. Host code outside computes
    sizes and decides; where it reads device memory (a count that bounds a loop)
    it calls attune_rt_device_read. Frames come from attune_rt_device_push.
    With `accesses` a call of attune_rt_access stands before a launch for each
    buffer or view that its kernel reads or writes.
    Keeps: the work of each iteration, and the order of launches.

    Before:

    ```mlir
    scf.forall (%i) in (%n) {
      memref.store %v, %y[%i] : memref<?xf32>
    }
    ```

    After, in outline:

    ```mlir
    %blocks = arith.ceildivsi %n, %c128
    %p = ... : !llvm.ptr<1> // the address of %y
    gpu.launch blocks(%b, ...) in (%blocks, 1, 1) threads(%t, ...) in (128, 1, 1)
        module(@attune_kernels) function(@loop_0) {
      %here = ... %p ... : memref<?xf32>
      %i = 128 * %b + %t
      %inside = arith.cmpi slt, %i, %n
      scf.if %inside { memref.store %v, %here[%i] : memref<?xf32> }
      gpu.terminator
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::arith::ArithDialect",
    "::mlir::gpu::GPUDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect"
  ];
  let options = [
    Option<"blockThreads", "block-threads", "int64_t", /*default=*/"128",
      "Threads of a block">,
    Option<"rowsOfBlock", "rows-of-block", "int64_t", /*default=*/"4",
      "How many of them stand along the first of two dimensions">,
    Option<"accesses", "accesses", "bool", /*default=*/"false",
      "Say before each launch of the entries `decode` and `decode_batch` what "
      "it reads and writes">,
  ];
  let statistics = [
    Statistic<"numKernels", "num-kernels", "Launches made of loops">,
    Statistic<"numReads", "num-reads", "Numbers the host reads back">,
  ];
}

def PersistentKernel : Pass<"attune-persistent-kernel", "::mlir::ModuleOp"> {
  let summary = "A decoder's step as one kernel";
  let description = [{
    Needs: kernels outlined; launches whose accesses are said before them
    (attune-loops-to-kernels with `accesses`).
    Gives: one kernel, `decode_persistent`, that has the code of all kernels which
    the entry `decode` and what it calls launch for one sequence, as far as parts
    of a block can run it, and another one, `decode_batch_persistent`, for what
    `decode` and `decode_batch` launch for two to eight. All its blocks run at once and go through a list of instructions in
    device memory: a kernel, its tasks (which were blocks of its launch), and the
    instructions that it waits for. Threads wait where `griddepcontrol.wait`
    stood, or at the start. Meanwhile they copy weights of their next tasks into
    shared memory: what kernels load before they wait, and more of the same. Such launches get attributes that say what they are
    there.
    Keeps: the kernels and launches themselves, which remain where a driver
    cannot start all blocks at once, and what each thread computes.

    Before:

    ```mlir
    gpu.func @decode_0(%x: i64) kernel { ... gpu.return }
    func.func @decode() {
      gpu.launch_func @kernels::@decode_0 blocks in ... args(%n : i64)
    ```

    After, in outline:

    ```mlir
    gpu.func @decode_0(%x: i64) kernel { ... gpu.return }
    gpu.func @decode_persistent(%list: !llvm.ptr<1>, ..., %size: index) kernel {
      scf.for %i = 0 to %size {
        scf.for %group = %first to %groups step %blocks {
          scf.index_switch %kernel
          case 0 { %x = ... the word at its place in the list ... }
          gpu.barrier
        }
        ... the instruction's counter grows by the groups that were done ...
      }
    }
    func.func @decode() {
      gpu.launch_func @kernels::@decode_0 blocks in ... args(%n : i64)
        {attune.persistent_kernels = [@kernels::@decode_persistent],
         attune.instructions = [array<i64: 128, 0, 0, 1>]}
    ```
  }];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"
  ];
  let options = [
    Option<"earlyLaunches", "early-launches", "bool", /*default=*/"true",
      "Kernels may wait for the one before (griddepcontrol)">,
    Option<"sharedBytes", "shared-bytes", "int64_t", /*default=*/"0",
      "Shared memory of a multiprocessor; what is left of it has weights of tasks "
      "to come">,
  ];
  let statistics = [
    Statistic<"numParts", "num-parts", "Kernels that the kernels of steps have">,
  ];
}

def DependentLaunch
    : Pass<"attune-dependent-launch", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Kernels that start before the last one ends";
  let description = [{
    Needs: kernels outlined; a chip of compute capability 9.0 or more.
    Gives: every kernel waits for the end of the one before
    (griddepcontrol.wait): at its start, or where it says so itself, before which
    it must not touch what kernels write. Then it lets the next one start as soon
    as all of its own blocks have come so far
    (griddepcontrol.launch_dependents).
    Keeps: what kernels compute, however they are launched: without a dependent
    launch nothing waits.

    Before:

    ```mlir
    gpu.func @plain(%x: memref<4xf32>) kernel {
      %a = memref.load %x[%c0] : memref<4xf32>
    ```

    After:

    ```mlir
    gpu.func @plain(%x: memref<4xf32>) kernel {
      nvvm.griddepcontrol wait
      nvvm.griddepcontrol launch_dependents
      %a = memref.load %x[%c0] : memref<4xf32>
    ```
  }];
  let dependentDialects = ["::mlir::NVVM::NVVMDialect"];
}

def KernelMath : Pass<"attune-kernel-math", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Functions that PTX has no instruction for";
  let description = [{
    Needs: kernels outlined.
    Gives: exp and exp2 of one f32 as those of a vector with one element, which
    attune-approximate-math knows, and log, sin and cos of one as polynomials.
    It is an error if another function is left that would need a library on the
    device.
    Keeps: relative error of log below 2e-7, absolute error of sin and cos below
    2.5e-7 up to 1e5.

    Before:

    ```mlir
    %y = math.exp %x : f32
    ```

    After:

    ```mlir
    %v = vector.broadcast %x : f32 to vector<1xf32>
    %e = math.exp %v : vector<1xf32>
    %y = vector.extract %e[0] : f32 from vector<1xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::vector::VectorDialect"];
}

def AlignAccesses : Pass<"attune-align-accesses", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Loads and stores of vectors as wide as their addresses allow";
  let description = [{
    Needs: kernels whose buffers, and the views that frames and weights are cut
    into, start at multiples of 64 bytes, as the runtime's do.
    Gives: vector.load and vector.store with the alignment that follows from
    indices and strides, for transfers of whole vectors; PTX then moves up to 16
    bytes at once. Others stay.
    Keeps: values.

    Before:

    ```mlir
    %v = vector.transfer_read %w[%p, %k, %c0], %zero {in_bounds = [true]}
      : memref<96x768x8xf32>, vector<8xf32>
    ```

    After:

    ```mlir
    %v = vector.load %w[%p, %k, %c0] {alignment = 32 : i64} : memref<96x768x8xf32>, vector<8xf32>
    ```
  }];
  let dependentDialects = ["::mlir::vector::VectorDialect"];
  let statistics = [
    Statistic<"numWidened", "num-widened", "Accesses with a known alignment">,
  ];
}

def KernelIntrinsics
    : Pass<"attune-kernel-intrinsics", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Hide instructions from a conversion that calls a library";
  let description = [{
    Needs: math ops converted to LLVM's intrinsics.
    Gives: llvm.call_intrinsic for those that upstream's convert-gpu-to-nvvm
    refuses because it would call CUDA's libdevice for them, but that PTX has an
    instruction for: sqrt, fabs, ceil, floor, trunc, roundeven, fma, copysign.
    Keeps: values.

    Before:

    ```mlir
    %y = llvm.intr.sqrt(%x) : (f32) -> f32
    ```

    After:

    ```mlir
    %y = llvm.call_intrinsic "llvm.sqrt"(%x) : (f32) -> f32
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def KernelLimits : Pass<"attune-kernel-limits", "::mlir::gpu::GPUModuleOp"> {
  let summary = "What a kernel may use, for ptxas";
  let description = [{
    Needs: kernels outlined.
    Gives: arrays in shared memory start at multiples of 16 bytes, which
    asynchronous copies and matrices have. Every kernel may take the registers of a
    whole multiprocessor for one block (`.minnctapersm 1`) if it does not say
    otherwise: left alone, ptxas makes room for more blocks and spills. A barrier with the attribute
    `attune.blocks_at_once` says that so many blocks are to have room. Shared
    memory whose size the launch says is an array at a multiple of 1024 bytes
    that is defined elsewhere.
    Keeps: code.

    Before:

    ```mlir
    gpu.func @shares(%x: f32) workgroup(%s : memref<64xf32, 3>) kernel { ... }
    ```

    After:

    ```mlir
    gpu.func @shares(%x: f32) workgroup(%s : memref<64xf32, 3> {llvm.align = 16 : i64})
      kernel attributes {nvvm.minctasm = 1 : i32} { ... }
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect",
                           "::mlir::NVVM::NVVMDialect"];
}

def KernelsToText : Pass<"attune-kernels-to-text", "::mlir::ModuleOp"> {
  let summary = "Kernels become PTX";
  let description = [{
    Needs: each gpu.module in the llvm dialect, with one `#nvvm.target`.
    Gives: in its place a gpu.binary with the text that LLVM makes for that target.
    Unlike `gpu-module-to-binary` it looks for no CUDA toolkit: that pass reads
    libdevice, which no kernel calls, and reports an error where a toolkit has it
    elsewhere (Ubuntu's package has).
    Keeps: launches.

    Before:

    ```mlir
    gpu.module @kernels [#nvvm.target<chip = "sm_80">] {
      llvm.func @nothing() attributes {gpu.kernel, nvvm.kernel} { llvm.return }
    }
    ```

    After:

    ```mlir
    gpu.binary @kernels [#gpu.object<#nvvm.target<chip = "sm_80">, assembly = "..."]
    ```
  }];
  let dependentDialects = ["::mlir::gpu::GPUDialect"];
}

def LaunchesToRuntime : Pass<"attune-launches-to-runtime", "::mlir::ModuleOp"> {
  let summary = "Launches become calls of Attune's runtime";
  let description = [{
    Needs: kernels outlined and turned to text: one gpu.binary with one object.
    Gives: a call of attune_rt_launch for every gpu.launch_func, with the number
    of the kernel, the sizes of grid and block, and an array of 8-byte words, one
    per parameter. The text, the chip it is for, the kernels' names and the
    dynamic shared memory that their launches reserve move to the module's
    attribute `attune.device`; the gpu.binary is gone. Before a launch that may be
    an instruction of the step's kernel, a call of attune_rt_instruction says so.
    Keeps: the order of launches.

    Before:

    ```mlir
    gpu.launch_func @kernels::@second blocks in (%n, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%p : !llvm.ptr<1>, %x : f32, %n : index)
    ```

    After (types left out):

    ```mlir
    %words = llvm.alloca %c3 x i64 : (i64) -> !llvm.ptr
    %word = llvm.ptrtoint %p : !llvm.ptr<1> to i64
    %at = llvm.getelementptr %words[0] : (!llvm.ptr) -> !llvm.ptr, i64
    llvm.store %word, %at : i64, !llvm.ptr
    ... // and %x and %n
    llvm.call @attune_rt_launch(%kernel, %n, %c1, %c1, %c1, %c1, %c1, %shared, %words, %c3)
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect",
                           "::mlir::arith::ArithDialect"];
}

#endif // ATTUNE_TARGET_PTX_PASSES
