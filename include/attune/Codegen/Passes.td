//===- Passes.td - From tensors to threads -------------------*- tablegen -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_CODEGEN_PASSES
#define ATTUNE_CODEGEN_PASSES

include "mlir/Pass/PassBase.td"

def PrefetchTiles : Pass<"attune-prefetch-tiles", "::mlir::func::FuncOp"> {
  let summary = "Tiles fetch what the next ones read";
  let description = [{
    Needs: attune.online_attention on tensors in the nest that
    convert-attune-attention-to-online makes, attune.packed_product in that of
    convert-attune-to-vector. Other steps stay as they are.
    Gives: each step of attention the operands `prefetch`: slices of its keys and
    values that begin where the next step reads. Each product the panel that
    comes next: many rows go on with the next step of panels, few with the panel
    behind this one. Panels, or their parts, of more than `panel-bytes` are not
    fetched: the cache has no room for two.
    Keeps: values; what is fetched changes no result.

    Before, with %key : tensor<2x8x512x64xf32> and two of its four loops:

    ```mlir
    scf.for %n = %c0 to %c512 step %c256 iter_args(%s = %acc, ...) {
      %k = tensor.extract_slice %key[%b, %h, %n, 0] [1, 1, 256, 64] [1, 1, 1, 1]
      %t:3 = attune.online_attention %q, %k, %v ... outs(%s, ...)
    ```

    After, where %h1 and %n1 are %h and %n + 256, or after the last block (of the
    last part, where keys are split) the head of the next tile and 0, and %rest
    is 512 - %n1:

    ```mlir
      %k = tensor.extract_slice %key[%b, %h, %n, 0] [1, 1, 256, 64] [1, 1, 1, 1]
      %k1 = tensor.extract_slice %key[%b, %h1, %n1, 0] [1, 1, %rest, 64] [1, 1, 1, 1]
      %t:3 = attune.online_attention %q, %k, %v ... prefetch %k1, %v1 outs(%s, ...)
    ```

    A product before, and after it, where %few says that %x has 6 rows or fewer:

    ```mlir
    %y = attune.packed_product %x[%row], %w[%panel, %count] of 768 tile [6, 1] outs(%d)
    ```
    ```mlir
    %passed = arith.select %few, %c1, %count
    %next = arith.addi %panel, %passed
    %y = attune.packed_product %x[%row], %w[%panel, %count] of 768 tile [6, 1] prefetch %next outs(%d)
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::tensor::TensorDialect"];
  let options = [
    Option<"panelBytes", "panel-bytes", "int64_t", /*default=*/"262144",
      "Bytes of panels that stay in the second-level cache">,
  ];
  let statistics = [
    Statistic<"numProducts", "num-products", "Products that fetch panels">,
    Statistic<"numSteps", "num-steps", "Steps that fetch for others">,
  ];
}

def DestinationPassing
    : Pass<"attune-destination-passing", "::mlir::ModuleOp"> {
  let summary = "Functions write into memory their caller gives";
  let description = [{
    Needs: tensors; every tensor result of a private function has an argument of
    its type (the residual stream, a cache) that it replaces.
    Gives: each tensor result of an `attune.entry` function is computed in a new
    last argument (or in the argument it updates, as caches do); each result of a
    private function in the argument it replaces. Bufferization then drops the
    results: nothing is allocated for them and nothing copied.
    Keeps: values. Where a result cannot be computed in place it is copied.

    Before:

    ```mlir
    func.func @entry(%x: tensor<?x4xf32> {attune.kind = "input"}, %n: index)
        -> (tensor<?x4xf32> {attune.kind = "output", attune.name = "y"}) attributes {attune.entry} {
      %init = tensor.empty(%n) : tensor<?x4xf32>
      %y = scf.forall (%i) in (%n) shared_outs(%o = %init) { ... }
      return %y
    }
    ```

    After:

    ```mlir
    func.func @entry(%x: tensor<?x4xf32> {attune.kind = "input", bufferization.writable = false},
        %n: index, %out: tensor<?x4xf32> {attune.kind = "output", attune.name = "y",
        bufferization.writable = true}) -> tensor<?x4xf32> attributes {attune.entry} {
      %y = scf.forall (%i) in (%n) shared_outs(%o = %out) { ... }
      return %y
    }
    ```
  }];
  let dependentDialects = [
    "::attune::AttuneDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::bufferization::BufferizationDialect"];
  let statistics = [
    Statistic<"numCopies", "num-copies", "Results that need a copy">,
  ];
}

def CopiesToLoops : Pass<"attune-copies-to-loops", "::mlir::ModuleOp"> {
  let summary = "memref.copy as loops";
  let description = [{
    Needs: bufferized code.
    Gives: a linalg.copy, which becomes loops, for every copy that bufferization
    left; outside parallel loops all threads share it. A memref.copy would call
    a library function that products do not have.
    Keeps: values.

    Before:

    ```mlir
    memref.copy %x, %y : memref<?xf32> to memref<?xf32>
    ```

    After:

    ```mlir
    linalg.copy ins(%x : memref<?xf32>) outs(%y : memref<?xf32>)
    ```
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect"];
  let statistics = [
    Statistic<"numCopies", "num-copies", "Copies left by bufferization">,
  ];
}

def FoldViews : Pass<"attune-fold-views", "::mlir::ModuleOp"> {
  let summary = "Tokens as rows and back is the same memory";
  let description = [{
    Needs: bufferized code.
    Gives: the buffer itself where attune.unflatten_tokens undoes what
    attune.flatten_tokens did. A function that returns its argument so is then
    seen to return it, and drop-equivalent-buffer-results drops the result.
    A dimension of such a view is the size it was made with. Entries no longer
    return the arguments that they computed their outputs in.
    Keeps: values.

    Before:

    ```mlir
    %rows = memref.collapse_shape %x [[0, 1], [2]] : memref<?x?x4xf32> into memref<?x4xf32>
    %y = memref.reinterpret_cast %rows to offset: [0], sizes: [%b, %t, 4], strides: [%s, 4, 1]
    return %y : memref<?x?x4xf32>
    ```

    After, where %s is 4 %t:

    ```mlir
    return %x : memref<?x?x4xf32>
    ```
  }];
}

def PadRows : Pass<"attune-pad-rows", "::mlir::ModuleOp"> {
  let summary = "Rows of temporary matrices do not meet in one set of a cache";
  let description = [{
    Needs: bufferized code.
    Gives: a line more to each row of every memref.alloc of rank 2 or 3 whose rows are
    a multiple of `way-bytes` apart, if all its users can see it as a view with
    such strides: loads, stores, copies, views of it. Buffers that are handed to
    functions or seen in another shape stay as they are.
    Elements of one column of such rows belong to one set of a set-associative
    cache: a register tile of six rows takes six of its eight ways.
    Keeps: values.

    Before:

    ```mlir
    %a = memref.alloc(%n) {alignment = 64 : i64} : memref<?x1024xf32>
    %v = memref.load %a[%i, %c0] : memref<?x1024xf32>
    ```

    After:

    ```mlir
    %a = memref.alloc(%n) {alignment = 64 : i64} : memref<?x1040xf32>
    %rows = memref.subview %a[0, 0] [%n, 1024] [1, 1]
      : memref<?x1040xf32> to memref<?x1024xf32, strided<[1040, 1]>>
    %v = memref.load %rows[%i, %c0] : memref<?x1024xf32, strided<[1040, 1]>>
    ```
  }];
  let dependentDialects = ["::mlir::memref::MemRefDialect"];
  let options = [
    Option<"wayBytes", "way-bytes", "int64_t", /*default=*/"4096",
      "Bytes of one way of the first-level cache: its size by its ways">,
  ];
  let statistics = [
    Statistic<"numPadded", "num-padded", "Buffers with longer rows">,
  ];
}

def HoistBuffers : Pass<"attune-hoist-buffers", "::mlir::ModuleOp"> {
  let summary = "Buffers of a loop that all threads run stand before it";
  let description = [{
    Needs: bufferized code.
    Gives: every memref.alloc inside scf.for or scf.if, but in no parallel loop,
    moved in front of the outermost of these, together with what computes its
    size, if that does not change from iteration to iteration. One buffer then
    serves all iterations, and all threads see the same one. A buffer that an iteration
    hands to the next one stays where it is, since two of it are alive at once.
    Keeps: values.

    Before:

    ```mlir
    scf.for %i = %c0 to %n step %c1 {
      %size = arith.muli %n, %n : index
      %a = memref.alloc(%size) : memref<?xf32>
      linalg.copy ins(%x : memref<?xf32>) outs(%a : memref<?xf32>)
    }
    ```

    After:

    ```mlir
    %size = arith.muli %n, %n : index
    %a = memref.alloc(%size) : memref<?xf32>
    scf.for %i = %c0 to %n step %c1 {
      linalg.copy ins(%x : memref<?xf32>) outs(%a : memref<?xf32>)
    }
    ```
  }];
  let statistics = [
    Statistic<"numHoisted", "num-hoisted", "Buffers moved out of loops">,
  ];
}

def OutlineKernels : Pass<"attune-outline-kernels", "::mlir::ModuleOp"> {
  let summary = "Parallel loops become functions, equal ones the same function";
  let description = [{
    Needs: bufferized code.
    Gives: for each scf.forall and scf.parallel that is in no other a call of a
    private function with attribute `attune.kernel` that consists of the loop.
    Loops that compute the same share one function, whichever layers and entries
    they belong to: code is generated once. A function is called what the
    location of its loop is called, or `loop`, with a number behind (`loop.2`) if
    the name is taken.

    Buffers, views and sizes are arguments. Arithmetic on sizes, such as the
    number of iterations, moves into the function, so that callers stay short;
    but in a loop around the call only what changes with it does, for the rest
    would be computed in every iteration.

    Layers of several stacks share a kernel, too: where only views ask, the first
    size of an argument with dynamic sizes is dynamic, and so is an offset; the
    caller casts (`memref<8x?x64xf32>` to `memref<?x?x64xf32>`).

    ```mlir
    func.func private @block(%x: memref<?x768xf32>, %y: memref<?x768xf32>) {
      %n = memref.dim %x, %c0 : memref<?x768xf32>
      %tiles = arith.ceildivui %n, %c12 : index
      scf.forall (%i) in (%tiles) { ... %x ... %y ... }
      return
    }
    // becomes
    func.func private @block(%x: memref<?x768xf32>, %y: memref<?x768xf32>) {
      %n = memref.dim %x, %c0 : memref<?x768xf32>
      call @layer_norm.768(%n, %x, %y)
      return
    }
    func.func private @layer_norm.768(%n: index, %x: memref<?x768xf32>,
        %y: memref<?x768xf32>) attributes {attune.kernel} {
      %tiles = arith.ceildivui %n, %c12 : index
      scf.forall (%i) in (%tiles) { ... %x ... %y ... }
      return
    }
    ```

    It works on buffers and not on ops of the dialect, because by then it is
    settled which ops share a loop (projections that write heads into caches),
    which results are computed in place and which rows are padded: none of this
    crosses a call.
    Keeps: values. Locations in a shared function are those of its first caller.
  }];
  let dependentDialects = ["::mlir::func::FuncDialect"];
  let statistics = [
    Statistic<"numCalls", "num-calls", "Loops that became calls">,
    Statistic<"numKernels", "num-kernels", "Functions that are called">,
  ];
}

def OutlineMicrokernels
    : Pass<"attune-outline-microkernels", "::mlir::ModuleOp"> {
  let summary = "Sums of few rows become functions that kernels share";
  let description = [{
    Needs: kernels in vector form, with common subexpressions removed.
    Gives: in each case of an scf.index_switch, a call of a private function in
    place of the ops on vectors that have a loop among them and leave what they
    compute in memory. The switch is that by the number of rows which full tiles
    leave over: for each number there is a microkernel of its own. Products whose
    rows have the same length share them, whatever is done with the sums: bias,
    activation, gate, residual or norm stay in the kernel. So each is compiled
    once.

    Values from outside are arguments, among them all that says what to fetch,
    which differs from product to product. Only constants, constant offsets
    (from a row to the next ones) and flat views of matrices are repeated
    inside: they become parts of addresses. Buffers lose the size of their first dimension, such as how many
    panels a matrix has.

    Before:

    ```mlir
    scf.index_switch %rows
    case 2 {
      %next = arith.addi %row, %c1 : index
      %sums:2 = scf.for %k = %c0 to %c768 step %c1 iter_args(...)
          -> (vector<32xf32>, vector<32xf32>) {
        ... %weights[%panel, %k, %c0] ... %x[%row, %k] ... %x[%next, %k] ...
      }
      vector.transfer_write %sums#0, %scratch[%c0, %c0] ...
      vector.transfer_write %sums#1, %scratch[%c1, %c0] ...
    }
    ```

    After:

    ```mlir
    scf.index_switch %rows
    case 2 {
      %any = memref.cast %weights : memref<24x768x32xf32> to memref<?x768x32xf32>
      call @microkernel.2(%any, %panel, %x, %row, %scratch)
    }
    ```

    Keeps: values. Locations in a shared function are those of its first caller.
  }];
  let dependentDialects = ["::mlir::func::FuncDialect",
                           "::mlir::memref::MemRefDialect"];
  let statistics = [
    Statistic<"numCalls", "num-calls", "Loops that became calls">,
    Statistic<"numMicrokernels", "num-microkernels",
              "Functions that are called">,
  ];
}

def PlanFrames : Pass<"attune-plan-frames", "::mlir::ModuleOp"> {
  let summary = "Lay temporary buffers out in one frame per function";
  let description = [{
    Needs: bufferized code; sizes that depend on the function's arguments only.
    Gives: no memref.alloc. Buffers of a function body share one frame from
    attune_rt_frame_push, where buffers that do not live at the same time share
    space, the larger of their sizes if they have several that are much alike;
    buffers inside loops are of static size and go to the thread's stack.
    Keeps: values.

    Before:

    ```mlir
    %a = memref.alloc(%n) : memref<?xf32>
    linalg.copy ins(%x : memref<?xf32>) outs(%a : memref<?xf32>)
    %b = memref.alloc(%n) : memref<?xf32>
    linalg.copy ins(%a : memref<?xf32>) outs(%b : memref<?xf32>)
    %c = memref.alloc(%n) : memref<?xf32>
    linalg.copy ins(%b : memref<?xf32>) outs(%c : memref<?xf32>)
    ```

    After, in outline (%c has the slot of %a):

    ```mlir
    %slot = (4 * %n + 63) and -64
    %bytes = arith.index_cast (%slot + %slot) : index to i64
    %p = llvm.call @attune_rt_frame_push(%bytes) : (i64) -> !llvm.ptr
    %frame = ... %p ... : memref<?xi8>
    %a = memref.view %frame[%c0][%n] : memref<?xi8> to memref<?xf32>
    linalg.copy ins(%x : memref<?xf32>) outs(%a : memref<?xf32>)
    %b = memref.view %frame[%slot][%n] : memref<?xi8> to memref<?xf32>
    linalg.copy ins(%a : memref<?xf32>) outs(%b : memref<?xf32>)
    linalg.copy ins(%b : memref<?xf32>) outs(%a : memref<?xf32>)
    llvm.call @attune_rt_frame_pop(%bytes) : (i64) -> ()
    ```
  }];
  let dependentDialects = ["::mlir::memref::MemRefDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::arith::ArithDialect"];
  let statistics = [
    Statistic<"numBuffers", "num-buffers", "Buffers placed in frames">,
    Statistic<"numSlots", "num-slots", "Slots they share">,
  ];
}

def DistributeThreads : Pass<"attune-distribute-threads",
                             "::mlir::ModuleOp"> {
  let summary = "Every thread of the team runs its part of each parallel loop";
  let description = [{
    Needs: bufferized code; no op that writes outside scf.forall and scf.parallel
    gives a value that code behind the next parallel loop uses.
    Gives: plain loops over the thread's share, each followed by a barrier.
    Short iterations are cut in contiguous ranges. Threads claim long ones, those
    with a loop in a loop, one after the other, of their own share first:
    iterations differ in work (attention over query blocks), cores in speed, and
    other programs take turns on them. Iterations that ask for the next one
    (attune.successor) stay contiguous. attune.num_threads becomes the runtime's
    number. Where a claimed iteration is in each dimension, a function finds that
    is not inlined, as are quotients of numbers that are known only when the
    program runs: LLVM does not simplify addresses that have a division in them.
    Writes outside parallel loops, as folding a loop of one iteration leaves
    them, are the first thread's, and a barrier follows them, too.
    Keeps: the work of each iteration, hence every bit of the result.

    Before:

    ```mlir
    scf.forall (%i) in (%n) {
      memref.store %v, %x[%i] : memref<?xf32>
    }
    ```

    After, in outline:

    ```mlir
    %thread = func.call @attune_rt_thread()
    %threads = func.call @attune_rt_num_threads()
    %begin = %n * %thread / %threads
    %end = %n * (%thread + 1) / %threads
    scf.for %i = %begin to %end step %c1 {
      memref.store %v, %x[%i] : memref<?xf32>
    }
    func.call @attune_rt_barrier()
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::scf::SCFDialect"];
}

def ApproximateMath : Pass<"attune-approximate-math"> {
  let summary = "Vector exp, exp2, tanh, erf and rsqrt as polynomials";
  let description = [{
    Needs: math ops on vectors.
    Gives: arithmetic only, no call per element. Scalar exp and exp2 are left to
    libm.
    Keeps: relative error below 4e-7 for exp and exp2 (0 where they are below
    2^-125.5), below 1.1e-4 for an exp2 with `fastmath<afn>`, absolute error
    below 5e-7 for tanh and erf, relative error below 2^-23 for rsqrt of every
    f32. Bits do not depend on `scales`.

    Before:

    ```mlir
    %y = math.exp2 %x : vector<16xf32>
    ```

    After, in outline:

    ```mlir
    %t = %x, but at least -126 and at most 128
    %n = arith.addf %t, %magic           // 1.5 * 2^23 + 126: rounds to an integer
    %r = %t - (%n - %magic)              // from -1/2 to 1/2
    %p = math.fma ... : vector<16xf32>   // five of them: a polynomial of %r
    %bits = arith.shli (arith.bitcast %n), %c23 : vector<16xi32>
    %y = arith.mulf %p, (arith.bitcast %bits) : vector<16xf32>
    ```
  }];
  let options = [
    Option<"scales", "scales", "bool", "false",
           "Multiply 16 numbers by powers of two at once, as AVX-512 does">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect",
                           "::mlir::x86vector::X86VectorDialect"];
}

def LocateCalls : Pass<"attune-locate-calls", "::mlir::LLVM::LLVMFuncOp"> {
  let summary = "A place for calls that have none";
  let description = [{
    Needs: functions of the LLVM dialect.
    Gives: each call a line of a file: its own, else the function's, else
    line 0.
    Keeps: what is computed. Debug info asks for it: what may be inlined into a
    function with a scope has to say where.

    Before:

    ```mlir
    llvm.call @f() : () -> () loc(unknown)
    ```

    After, in a function at line 3 of a.mlir:

    ```mlir
    llvm.call @f() : () -> () loc("a.mlir":3:1)
    ```
  }];
}

#endif // ATTUNE_CODEGEN_PASSES
