//===- Passes.td - Conversions out of the attune dialect -----*- tablegen -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_CONVERSION_PASSES
#define ATTUNE_CONVERSION_PASSES

include "mlir/Pass/PassBase.td"

def ConvertAttuneToVector
    : Pass<"convert-attune-to-vector", "::mlir::func::FuncOp"> {
  let summary = "Turn every op but the attention ladder into tiled vector code";
  let description = [{
    Needs: ffn ops decomposed (attune-decompose-ffn), weights of linear ops in
    panels (attune-pack-weights; a matrix that is no attune.weight is packed on
    the spot).
    Gives: scf.forall over disjoint tiles of each result, with vector code
    inside; still tensors. No attune op is left except weights, attention and the
    tiles of linear layers, attune.packed_product.
    A product reads the same place of several rows at once. Rows from outside of
    the function that are a multiple of `way-bytes` apart are copied before, to
    memory that attune-pad-rows can lay out another way.

    A norm, with lanes=16, before:

    ```mlir
    %y = attune.rms_norm %x gamma %g : tensor<64xf32> eps 1.0e-5 : tensor<2x48x64xf32>
    ```

    After (types left out):

    ```mlir
    %rows = attune.flatten_tokens %x : tensor<2x48x64xf32> -> tensor<96x64xf32>
    %n = scf.forall (%i) in (96) shared_outs(%o = %empty) {
      %row = tensor.extract_slice %o[%i, 0] [1, 64] [1, 1]
      %squares = scf.for %j = %c0 to %c64 step %c16 iter_args(%sum = %zeros) {
        %v = vector.transfer_read %rows[%i, %j] : vector<16xf32>
        ... // %sum + %v * %v
      }
      %r = ... math.rsqrt ... // of their mean plus eps
      %done = scf.for %j = %c0 to %c64 step %c16 iter_args(%out = %row) {
        %v = vector.transfer_read %rows[%i, %j] : vector<16xf32>
        %gamma = vector.transfer_read %g[%j] : vector<16xf32>
        ... // %v * %r * %gamma
        vector.transfer_write %scaled, %out[%c0, %j]
      }
      scf.forall.in_parallel { tensor.parallel_insert_slice %done into %o[%i, 0] [1, 64] [1, 1] }
    }
    %y = attune.unflatten_tokens %n[%c2, %c48] : tensor<96x64xf32> -> tensor<2x48x64xf32>
    ```

    With `wide-tiles` a tile has half of the rows and two panels side by side. It
    needs fewer places of the cache and fewer loads, but reads panels twice as
    often. Steps need room for it, and products more rows than two tiles have. The
    last rows have tiles as without, and only they are copied.
    With `matrix-rows` steps of bf16 products in the VNNI-2 layout are of as many
    panels as a matrix unit passes at a time.
    A projection that is used as heads alone hands these over: a step takes
    whole heads, and the rows of a tile go to tensors of heads or caches, turned
    if they are, before the next tile comes.
    Keeps: the order of every sum, whatever the number of threads.

    A linear layer before:

    ```mlir
    %y = attune.linear %x, %w bias %b : tensor<?x768xf32>, tensor<48x768x16xf32> -> tensor<?x768xf32>
    ```

    After, in outline:

    ```mlir
    scf.forall (%step, %stream, %part) in (%steps, %streams, %parts) shared_outs(%y = %empty) {
      %panel, %count, %row, %rows = ...
      %tile = tensor.extract_slice %y[%row, 16 * %panel] [%rows, 16 * %count] [1, 1]
      %done = attune.packed_product %x[%row], %w[%panel, %count] of 768 bias %b tile [6, 1] outs(%tile)
      tensor.parallel_insert_slice %done into %y[%row, 16 * %panel] ...
    }
    ```
  }];
  let dependentDialects = [
    "::attune::AttuneDialect", "::mlir::arith::ArithDialect",
    "::mlir::bufferization::BufferizationDialect", "::mlir::gpu::GPUDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect", "::mlir::vector::VectorDialect",
    "::mlir::x86vector::X86VectorDialect"
  ];
  let options = [
    Option<"lanes", "lanes", "int64_t", /*default=*/"16",
      "Columns of a matrix panel: the register tile's width">,
    Option<"rows", "rows", "int64_t", /*default=*/"6",
      "Rows of the register tile">,
    Option<"panelBytes", "panel-bytes", "int64_t", /*default=*/"262144",
      "Bytes of weights that one parallel step keeps in the second-level cache">,
    Option<"tileBytes", "tile-bytes", "int64_t", /*default=*/"16384",
      "Bytes of a tile's results that wait in the first-level cache for what "
      "takes them">,
    Option<"wayBytes", "way-bytes", "int64_t", /*default=*/"0",
      "Bytes of one way of the first-level cache; 0: rows are read where they "
      "are">,
    Option<"wideTiles", "wide-tiles", "bool", /*default=*/"false",
      "A register tile of many rows has half of them and two panels">,
    Option<"fetchSteps", "fetch-steps", "int64_t", /*default=*/"4",
      "Steps of a sum from one line that is fetched for later to the next">,
    Option<"streamBytes", "stream-bytes", "int64_t", /*default=*/"0",
      "How far ahead few rows fetch weights; 0: the CPU does it for them">,
    Option<"narrowStreamBytes", "narrow-stream-bytes", "int64_t",
      /*default=*/"0",
      "The same for weights of at most 16 bits, if that is more">,
    Option<"farLevel3", "far-level3", "bool", /*default=*/"false",
      "The third level of cache is hardly faster than memory">,
    Option<"threads", "threads", "int64_t", /*default=*/"16",
      "Threads that work is cut for; results do not depend on how many there "
      "are">,
    Option<"cooperative", "cooperative", "bool", /*default=*/"false",
      "For a GPU: products with weights and linear attention, which a block of "
      "threads computes together, stay one op, attune.linear_into and "
      "attune.linear_attention_into; the lanes of a warp share the row of a "
      "norm; a thread has one channel of a state space">,
    Option<"normRows", "norm-rows", "int64_t", /*default=*/"0",
      "With cooperative: up to how many rows products make the norm themselves "
      "that nothing else reads; 0: it is always made before">,
    Option<"matrixRows", "matrix-rows", "int64_t", /*default=*/"0",
      "Fewest rows of bf16 for registers of a matrix unit, which hold 16: "
      "fewer are copied to where a register's rows can be read; 0: there is no "
      "such unit">,
    Option<"matrixQuads", "matrix-quads", "bool", /*default=*/"false",
      "The matrix unit multiplies bytes in quads, too">,
    Option<"integerLanes", "integer-lanes", "int64_t", /*default=*/"8",
      "Lanes of a register of i32, for products of bytes">,
    Option<"byteProducts", "byte-products", "::attune::ByteProducts",
      /*default=*/"::attune::ByteProducts::Any",
      "How products of bytes are made", [{::llvm::cl::values(
        clEnumValN(::attune::ByteProducts::Any, "any",
                   "by multiplication of i32, which any CPU has"),
        clEnumValN(::attune::ByteProducts::Words, "words",
                   "by pmaddwd, which adds up two products"),
        clEnumValN(::attune::ByteProducts::Quads, "quads",
                   "by vpdpbusd, which adds up four"))}]>,
  ];
}

def ConvertAttuneToAMX
    : Pass<"convert-attune-to-amx", "::mlir::ModuleOp"> {
  let summary = "Turn products with a destination into loops on AMX tiles";
  let description = [{
    Needs: attune.linear_into on buffers: 16 or 32 rows of bf16 against one panel
    of 16 or 32 outputs in pairs, into f32, or added to what is there with
    `residual`, as convert-attune-product-to-vector makes it with `matrix-rows`.
    The same of bytes in quads, a multiple of 32 inputs, into i32.
    Gives: a loop that carries up to 2 x 2 tiles of sums. Each iteration takes 32
    inputs: it loads each tile of rows and each of the panel once and multiplies
    it with all of the other side. Remaining inputs pass through scratch filled up
    with zeros, since LLVM 22 gives a tile register one shape per function.
    Keeps: a row's sum depends on the number of inputs alone. Each 32 of them make
    two sums, of even and of odd inputs. These are added to each other and then to
    the sum so far; subnormal numbers count as zero.

    Before:

    ```mlir
    attune.linear_into %x, %w into %d
      : memref<32x64xbf16, strided<[64, 1], offset: ?>>, memref<1x32x64xbf16>, memref<32x32xf32>
    ```

    After (types left out):

    ```mlir
    %z00 = amx.tile_zero : !amx.tile<16x16xf32>
    ... // %z01, %z10 and %z11 too
    %s:4 = scf.for %k = %c0 to %c32 step %c16
        iter_args(%s00 = %z00, %s01 = %z01, %s10 = %z10, %s11 = %z11) {
      %b0 = amx.tile_load %w[%c0, %k, %c0]
      %b1 = amx.tile_load %w[%c0, %k, %c32]
      %column = arith.muli %k, %c2
      %a0 = amx.tile_load %x[%c0, %column]
      %n00 = amx.tile_mulf %a0, %b0, %s00
      %n01 = amx.tile_mulf %a0, %b1, %s01
      %a1 = amx.tile_load %x[%c16, %column]
      %n10 = amx.tile_mulf %a1, %b0, %s10
      %n11 = amx.tile_mulf %a1, %b1, %s11
      scf.yield %n00, %n01, %n10, %n11
    }
    amx.tile_store %d[%c0, %c0], %s#0
    ...
    ```
  }];
  let dependentDialects = [
    "::mlir::amx::AMXDialect", "::mlir::arith::ArithDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"
  ];
  let statistics = [
    Statistic<"numProducts", "num-products", "Products in tiles">,
  ];
}

def ConvertAttuneToGPU
    : Pass<"convert-attune-to-gpu", "::mlir::ModuleOp"> {
  let summary = "Turn ops with a destination into launches of cooperating threads";
  let description = [{
    Needs: attune.linear_into, attune.quantized_linear_into,
    attune.normed_linear_into, attune.grouped_linear_into,
    attune.expert_tasks_into, attune.attention_into and
    attune.linear_attention_into on buffers.
    Gives: gpu.launch.
    Keeps: f32 sums, in an order that depends on the sizes alone.

    Products: with few rows (the GEMV path) a block of 128 threads takes one
    panel. Its threads split the sum and merge it through shuffles and shared
    memory. Many rows take tiles on the tensor cores, staged through shared
    memory by asynchronous copies. The host chooses the tile by the number of
    rows (lib/TargetInfo/GpuTiles), unless a schedule names one. Matrices of a
    stack take their batches or tasks.
    With `dependent` a block loads its first weights before it waits for the
    kernel that makes the rows. For few rows attune.normed_linear_into makes the norm.
    With `warpgroups` activations of the weights' own type take tiles that one
    warpgroup copies by tensor maps and two multiply. So do activations of 16
    bits and weights in few bits, which these two widen. Where such tiles are few,
    several blocks share the depth of one, and a second kernel adds their parts in
    order.
    f32 numbers are split into terms that tensor cores multiply exactly, so results
    are as precise as f32 multiply-adds. With `tf32` they are rounded to its 11
    bits instead: one product in place of six, or of three in attention. Few rows
    stay f32, since no tensor core multiplies them.

    Attention: a block takes some queries of all heads of a GQA group. Keys and
    values pass through a ring in shared memory. Scores, their maximum and sum,
    and the result stay in registers. f32 numbers are split into two tf32 terms.
    With `warpgroups` many rows of 16 bits take a kernel in which one warpgroup
    copies and two multiply. With few queries of many keys, blocks split the keys
    (split-KV), and a second kernel merges their states in order.

    Linear attention: a block has some columns of a head's values and walks the
    tokens in chunks. Its sums are in shared memory, in f32 whatever `tf32` says.
    If heads are few and tokens many, tokens are split into parts, whose sums two
    kernels make first.

    Before, a product of one row:

    ```mlir
    attune.linear_into %x, %w into %d : memref<1x64xf32>, memref<12x64x8xbf16>, memref<1x96xf32>
    ```

    After, in outline:

    ```mlir
    gpu.launch blocks(%panel, ...) in (12, 1, 1) threads(%k, ...) in (128, 1, 1)
        workgroup(%sums : memref<32xf32, 3>) {
      %inside = arith.cmpi slt, %k, %c64
      %row = arith.minsi %k, %c63
      %b = vector.load %w[%panel, %row, %c0] {alignment = 16} : vector<8xbf16>
      %a = vector.load %x[%c0, %row] : vector<1xf32>
      ...
      %fma = vector.fma %as, %bs, %zeros : vector<8xf32>
      %part = arith.select %inside, %fma, %zeros
      ... gpu.shuffle xor ... // adds up the 32 lanes of a warp
      scf.if (first lane of a warp) { vector.store %ofWarp, %sums[8 * warp] }
      gpu.barrier
      scf.if (first 8 threads) { ... vector.store (sum of the four warps), %d[%c0, %column] }
      gpu.terminator
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::arith::ArithDialect",
    "::mlir::gpu::GPUDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::nvgpu::NVGPUDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
  let options = [
    Option<"multiprocessors", "multiprocessors", "int64_t", /*default=*/"108",
      "How many blocks the chip runs at once, at least">,
    Option<"warpgroups", "warpgroups", "bool", /*default=*/"false",
      "The chip has tensor cores that read shared memory (wgmma), and copies of "
      "tiles by tensor maps: sm_90a">,
    Option<"tf32", "tf32", "bool", /*default=*/"false",
      "Numbers of f32 that tensor cores multiply are rounded to tf32">,
    Option<"dependent", "dependent", "bool", /*default=*/"false",
      "Kernels may start before the last one ends, and read weights by then: "
      "sm_90 and up">,
  ];
}

def ConvertAttuneWeightsToMemRef
    : Pass<"convert-attune-weights-to-memref", "::mlir::ModuleOp"> {
  let summary = "Weights become places in one block of memory";
  let description = [{
    Functions before:

    ```mlir
    func.func private @block(%layer: index) -> tensor<2x5xf32> {
      %w = attune.weight_get @a[%layer] : tensor<2x5xf32>
    ...
    func.func @entry(%layer: index) -> tensor<2x5xf32> attributes {attune.entry} {
      %0 = call @block(%layer) : (index) -> tensor<2x5xf32>
    ```

    After:

    ```mlir
    func.func private @block(%weights: memref<?xi8> {attune.kind = "weights"}, %layer: index)
        -> tensor<2x5xf32> {
      %w = bufferization.to_tensor ... restrict // the place of @a[%layer] in %weights
    ...
    func.func @entry(%weights: memref<?xi8> {attune.kind = "weights"}, %layer: index)
        -> tensor<2x5xf32> attributes {attune.entry} {
      %0 = call @block(%weights, %layer) : (memref<?xi8>, index) -> tensor<2x5xf32>
    ```

    Needs: nothing; runs before bufferization.
    Gives: every function takes the weights, memref<?xi8>, as its first argument
    and hands them to the functions it calls; attune.weight_get is an
    attune.weight_view of it at the offset of lib/Weights/WeightLayout. The
    attune.weight ops stay: the writer of the file reads them.
    Keeps: values.

    Before:

    ```mlir
    %w = attune.weight_get @h.qkv[%layer] : tensor<2304x768xf32>
    ```

    After:

    ```mlir
    %v = attune.weight_view @h.qkv of %bytes[%layer] at 3072 stride 7077888
      : memref<?xi8> to memref<2304x768xf32>
    %w = bufferization.to_tensor %v restrict
    ```
  }];
  let dependentDialects = [
    "::mlir::bufferization::BufferizationDialect",
    "::mlir::memref::MemRefDialect"
  ];
}

def ConvertAttuneViewsToMemRef
    : Pass<"convert-attune-views-to-memref", "::mlir::ModuleOp"> {
  let summary = "Places of weights become arithmetic on their offsets";
  let description = [{
    Needs: nothing; runs when the loops on memory have been looked at.
    Gives: memref.view in place of attune.weight_view.
    Keeps: values.

    Before:

    ```mlir
    %w = attune.weight_view @h.qkv of %bytes[%layer] at 3072 stride 7077888
    ```

    After:

    ```mlir
    %shift = arith.muli %layer, %c7077888
    %at = arith.addi %shift, %c3072
    %w = memref.view %bytes[%at][] : memref<?xi8> to memref<2304x768xf32>
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect"
  ];
}
def ConvertAttuneMeshToCalls
    : Pass<"convert-attune-mesh-to-calls", "::mlir::ModuleOp"> {
  let summary = "What ranks exchange becomes calls of the runtime";
  let description = [{
    Needs: attune.all_reduce, attune.all_gather and attune.all_merge on buffers
    without gaps. With `device` they are what attune-split-exchanges gives;
    without it no gather is `of_positions`.
    Gives: calls of the runtime, with addresses and sizes:

    | op | on a CPU | with `device` |
    |---|---|---|
    | attune.rank | attune_rt_rank | the same |
    | attune.rank of_positions | attune_rt_rank_of_positions | the same |
    | attune.all_reduce | attune_rt_all_reduce | attune_rt_device_all_reduce |
    | attune.all_reduce experts | attune_rt_all_reduce_rows | none is left |
    | attune.all_gather | attune_rt_all_gather | attune_rt_device_all_gather |
    | attune.all_gather of_positions | an error | the same |
    | attune.all_merge | attune_rt_all_merge | none is left |

    Keeps: values.

    Before:

    ```mlir
    attune.all_reduce %x into %d accumulate : memref<2x64xf32>, memref<2x64xf32>
    ```

    After:

    ```mlir
    ... // %x and %d become their addresses
    call @attune_rt_all_reduce(%xAddress, %dAddress, %c128, %c1)
      : (i64, i64, i64, i64) -> ()
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::memref::MemRefDialect"
  ];
  let options = [
    Option<"device", "device", "bool", /*default=*/"false",
      "The buffers are a GPU's">,
  ];
}
def SplitExchanges
    : Pass<"attune-split-exchanges", "::mlir::ModuleOp"> {
  let summary = "What ranks of GPUs exchange becomes what NCCL does";
  let description = [{
    NCCL sums buffers into another one, and puts buffers one behind the other.

    Needs: attune.all_reduce, attune.all_gather and attune.all_merge on buffers.
    Gives: no attune.all_reduce accumulates or has experts, and each
    attune.all_gather has one dimension. Additions and a copy of columns to their
    places stand behind them. An attune.all_merge becomes a gather
    `of_positions`: before it rows and the logarithms of their sums are put into
    one buffer, and behind it each rank weighs those of all ranks, in their order.
    Keeps: values up to rounding: all ranks' parts are added before the
    destination's own values are.

    Before:

    ```mlir
    attune.all_reduce %x into %d accumulate : memref<2x64xf32>, memref<2x64xf32>
    attune.all_gather %y columns %n into %e : memref<2x8xf32>, memref<2x15xf32>
    attune.all_merge %z, %l into %f : memref<3x4xf32>, memref<3xf32>, memref<3x4xf32>
    ```

    After, of two ranks:

    ```mlir
    %sum = memref.alloc() : memref<2x64xf32>
    attune.all_reduce %x into %sum : memref<2x64xf32>, memref<2x64xf32>
    linalg.add ins(%d, %sum) outs(%d)
    %all = memref.alloc(%c32) : memref<?xf32>
    attune.all_gather %flat columns %c16 into %all : memref<16xf32>, memref<?xf32>
    scf.parallel (%row, %column) = (%c0, %c0) to (%c2, %min) step (%c1, %c1) {
      ... // %e[%row, %column] = %all[%column / %n * 16 + %row * 8 + %column % %n]
    }
    %own = memref.alloc(%c15) : memref<?xf32>
    ... // rows of %z, each with its number of %l behind it
    %each = memref.alloc(%c30) : memref<?xf32>
    attune.all_gather %own of_positions columns %c15 into %each
      : memref<?xf32>, memref<?xf32>
    scf.parallel (%row, %column) = (%c0, %c0) to (%c3, %c4) step (%c1, %c1) {
      ... // %f[%row, %column] of what both ranks have there
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect"
  ];
  let statistics = [Statistic<"numSplit", "num-split",
                              "Sums, gathers and merges that were split">];
}

def ConvertAttuneAttentionToOnline
    : Pass<"convert-attune-attention-to-online", "::mlir::func::FuncOp"> {
  let summary = "Turn attention into loops over blocks of queries and keys";
  let description = [{
    Rungs 3 and 4 of the attention ladder.

    Needs: attune.attention with static head counts and widths; batch and
    lengths may be dynamic.
    Gives: scf.forall over (batch, key/value head, block of queries), inside it
    attune.online_start, scf.for over blocks of keys that carries the states of
    attune.online_attention, then attune.online_finish. All heads of a group
    are one tile. Blocks of keys that causal masking or a window hides from the
    whole tile are never visited. Scratch is of static size.
    lib/TargetInfo/CpuAttention estimates the cost of three strategies: scores of
    all keys at once, blocks of keys, or, for few queries, split-KV: parts of the
    keys in a parallel loop of their own, whose states are merged in order. With
    `explain-fusion` a remark has the figures.
    With `cooperative`, attention that tensor cores can take stays one op,
    attune.attention_into; other attention becomes the ladder, whose scores are
    in memory, and a remark says why.
    Keeps: the order of every sum, whatever the number of threads; memory is
    linear in the lengths.

    Before, of 192 queries and keys:

    ```mlir
    %y = attune.attention %q, %k, %v scale 0.125 causal <bottom_right>
    ```

    After, with query-block=96 and key-block=64 (arithmetic and types left out):

    ```mlir
    %y = scf.forall (%b, %h, %t) in (%batches, 8, 2) shared_outs(%o = %empty) {
      %first = %t * 96
      %s:3 = attune.online_start outs(%acc, %max, %sum)
      %rows = tensor.extract_slice %q[%b, %h, %first, 0] [1, 1, 96, 64]
      %e:3 = scf.for %n = 0 to %first + 96 step 64 iter_args(%a = %s#0, %m = %s#1, %l = %s#2) {
        %keys = tensor.extract_slice %k[%b, %h, %n, 0] [1, 1, 64, 64]
        %values = tensor.extract_slice %v[%b, %h, %n, 0] [1, 1, 64, 64]
        %r:3 = attune.online_attention %rows, %keys, %values scale 0.125 causal <bottom_right>
          at [%first, %n] of [192, 192] tile [96, 64] outs(%a, %m, %l)
        scf.yield %r#0, %r#1, %r#2
      }
      %place = tensor.extract_slice %o[%b, %h, %first, 0] [1, 1, 96, 64]
      %d = attune.online_finish %e#0, %e#1, %e#2 into %place
      scf.forall.in_parallel { tensor.parallel_insert_slice %d into %o[%b, %h, %first, 0] }
    }
    ```
  }];
  let dependentDialects = [
    "::attune::AttuneDialect", "::mlir::arith::ArithDialect",
    "::mlir::bufferization::BufferizationDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect"
  ];
  let options = [
    Option<"queryBlock", "query-block", "int64_t", /*default=*/"96",
      "Rows of a tile: queries times the heads of a group">,
    Option<"queryBytes", "query-bytes", "int64_t", /*default=*/"0",
      "Bytes of a tile's queries and their sums: where tiles are many, each has "
      "as many rows as these hold, since each packs all keys for itself; 0: "
      "query-block is all">,
    Option<"keyBlock", "key-block", "int64_t", /*default=*/"256",
      "Keys that one step folds in">,
    Option<"keyBytes", "key-bytes", "int64_t", /*default=*/"0",
      "Bytes of packed keys and values of a step: wide heads take fewer keys "
      "than key-block, in multiples of 64; 0: key-block is all">,
    Option<"rows", "rows", "int64_t", /*default=*/"6",
      "Rows of the register tile, which queries of tiles fill">,
    Option<"threads", "threads", "int64_t", /*default=*/"16",
      "Threads that tiles are cut for; results do not depend on how many there "
      "are">,
    Option<"partBytes", "part-bytes", "int64_t", /*default=*/"131072",
      "Bytes of keys and values, as they are stored, that a part of the keys "
      "has at least">,
    Option<"cacheBytes", "cache-bytes", "int64_t", /*default=*/"524288",
      "Bytes of the second-level cache">,
    Option<"lineCycles", "line-cycles", "int64_t", /*default=*/"25",
      "Cycles from one line of memory to the next">,
    Option<"multiplyAdds", "multiply-adds", "int64_t", /*default=*/"16",
      "Multiply-adds of one element each in a cycle">,
    Option<"matrixRows", "matrix-rows", "int64_t", /*default=*/"0",
      "Rows of bf16 that a matrix unit takes at a time; 0: there is none">,
    Option<"cooperative", "cooperative", "bool", /*default=*/"false",
      "Attention that a block of threads computes together stays one op">,
    Option<"warpgroups", "warpgroups", "bool", /*default=*/"false",
      "As in convert-attune-to-gpu, whose tiles remarks and errors speak of">,
    Option<"explainFusion", "explain-fusion", "bool", /*default=*/"false",
      "Say how each attention is computed, and what that depends on">,
  ];
}

def ConvertAttuneOnlineToVector
    : Pass<"convert-attune-online-to-vector", "::mlir::func::FuncOp"> {
  let summary = "Turn steps of online softmax into vector code";
  let description = [{
    Rung 5 of the attention ladder.

    Needs: attune.online_attention on tiles whose numbers of queries and keys are
    static or bounded by `tile`, as convert-attune-attention-to-online makes them.
    Tensors, or buffers before parallel loops are dealt out to threads.
    Gives: vector code with scratch of static size, on tensors, or on buffers with
    the scratch on the stack. Keys and values are packed into micro-panels of
    `lanes`, except f32 values in whole panels. Scores, probabilities and the
    weighted sum are computed `rows` at a time in registers. The operands
    `prefetch` are fetched meanwhile, and masks are computed only for panels on an
    edge. Up to 16 rows that share keys (a decode step) read keys and values in
    place, once for all rows.
    attune.online_start, attune.online_merge and attune.online_finish too.
    With `pairs`, bf16 queries, keys and values (widths a multiple of 16) are
    multiplied as they are and added in f32. With `matrix` more than 16 rows of
    them (widths a multiple of 32, on buffers, with 32 lanes) are, by
    attune.linear_into of 16 rows and a panel, for convert-attune-to-amx.
    Keeps: a row that sees no key gives zeros; the order of every sum. With
    `pairs` or `matrix` the probabilities of several queries are rounded to bf16 before they
    are multiplied by the values, though not in their own sum, and are up to
    1.1e-4 off.

    Before:

    ```mlir
    attune.online_attention %q, %k, %v scale 0.125 at [%m, %n] of [%M, %N] tile [96, 256]
      outs(%acc, %max, %sum)
    ```

    After, in outline:

    ```mlir
    scf.for (each row) { %packedq = 0.125 * %q }
    scf.for (each panel of 16 keys) { %packedk = transposed %k }
    scf.for (each block of 6 rows) {
      scf.for (each panel) { 6 x vector.fma, masks; scores and their maximum }
      %max, %sum, by what %acc shrinks; exp2 of the scores
      scf.for (each 16 channels) { %acc = %acc * shrink + 6 x vector.fma with %v }
    }
    ```
  }];
  let dependentDialects = [
    "::attune::AttuneDialect", "::mlir::arith::ArithDialect",
    "::mlir::bufferization::BufferizationDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect",
    "::mlir::vector::VectorDialect", "::mlir::x86vector::X86VectorDialect"
  ];
  let options = [
    Option<"lanes", "lanes", "int64_t", /*default=*/"16",
      "Width of the register tile; a multiple of 8">,
    Option<"rows", "rows", "int64_t", /*default=*/"6",
      "Rows of the register tile">,
    Option<"pairs", "pairs", "bool", /*default=*/"false",
      "Multiply bf16 by instructions that add up two products">,
    Option<"matrix", "matrix", "bool", /*default=*/"false",
      "Multiply bf16 of many rows by attune.linear_into for a matrix unit">,
    Option<"valueBytes", "value-bytes", "int64_t", /*default=*/"8192",
      "Bytes of values that stay in the first-level cache while few rows meet "
      "them">,
    Option<"fetchBytes", "fetch-bytes", "int64_t", /*default=*/"1024",
      "Bytes that are asked for before the first of them comes from memory">,
    Option<"nearBytes", "near-bytes", "int64_t", /*default=*/"0",
      "Bytes of keys and values that few rows fetch to the first-level cache; "
      "0: they fetch to the second-level one">,
    Option<"unrolled", "unrolled", "int64_t", /*default=*/"64",
      "Multiply-adds that are written out rather than put in a loop">,
  ];
}

def ConvertAttuneProductToVector
    : Pass<"convert-attune-product-to-vector", "::mlir::func::FuncOp"> {
  let summary = "Turn tiles of matrix products into vector code";
  let description = [{
    Needs: attune.packed_product as convert-attune-to-vector makes it, on tensors,
    or on buffers before parallel loops are dealt out to threads.
    Gives: vector code, with scratch of static size on the stack. Whole tiles of
    rows pass the panels one after the other, with all of their sums in registers;
    rows that are left get tiles of just their number. Panels that `prefetch`
    names and the rows of the next tile are fetched meanwhile.
    Bytes are multiplied in i32, group by group; sums of groups wait in memory,
    since registers hold those of one group.
    With `matrix-rows` that many rows of bf16 or more, in pairs and on buffers, are
    attune.linear_into for a matrix unit: a block of 32 rows against one panel each.
    They are made part by part of the depth: of all rows and panels the first
    `matrix-depth` inputs, then the next ones. Sums wait in a scratch of
    `matrix-bytes`. Fewer rows than a register's 16 are copied to a scratch of 16,
    if that takes no more, and meet each panel from end to end. With
    `matrix-quads` bytes in groups of a multiple of 32 are multiplied so, too,
    16 rows by 16 lanes at a time; panels of 4 bits become bytes part by part.
    Keeps: the order of every sum.

    Before:

    ```mlir
    attune.packed_product %x[%row], %w[%panel, %count] of 768 bias %b tile [6, 1] outs(%y)
    ```

    After, in outline:

    ```mlir
    scf.for (each 6 rows) {
      scf.for (each panel) {
        scf.for (each input) { 6 x vector.fma: a number of each row by 16 of the panel }
        6 x vector.transfer_write (sums + %b)
      }
    }
    scf.index_switch (rows that are left) case 1 { ... } case 2 { ... } ...
    ```
  }];
  let dependentDialects = [
    "::attune::AttuneDialect", "::mlir::arith::ArithDialect",
    "::mlir::bufferization::BufferizationDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect", "::mlir::vector::VectorDialect",
    "::mlir::x86vector::X86VectorDialect"
  ];
  let options = [
    Option<"matrixRows", "matrix-rows", "int64_t", /*default=*/"0",
      "Fewest rows of bf16 for registers of a matrix unit, which hold 16: "
      "fewer are copied to where a register's rows can be read; 0: there is no "
      "such unit">,
    Option<"matrixQuads", "matrix-quads", "bool", /*default=*/"false",
      "The matrix unit multiplies bytes in quads, too">,
    Option<"matrixDepth", "matrix-depth", "int64_t", /*default=*/"256",
      "Inputs of a part of such a sum: as many as 32 rows and a panel have room "
      "for in the first-level cache">,
    Option<"matrixBytes", "matrix-bytes", "int64_t", /*default=*/"524288",
      "Bytes of sums that wait for the next part in the second-level cache">,
    Option<"fetchSteps", "fetch-steps", "int64_t", /*default=*/"4",
      "Steps of a sum from one line that is fetched for later to the next">,
    Option<"streamBytes", "stream-bytes", "int64_t", /*default=*/"0",
      "How far ahead few rows fetch weights; 0: the CPU does it for them">,
    Option<"narrowStreamBytes", "narrow-stream-bytes", "int64_t",
      /*default=*/"0",
      "The same for weights of at most 16 bits, if that is more">,
    Option<"pairProducts", "pair-products", "bool", /*default=*/"true",
      "Multiply bf16 by weights in pairs with one instruction for both; without "
      "it, and for inputs of f32, weights are widened">,
    Option<"integerLanes", "integer-lanes", "int64_t", /*default=*/"8",
      "Lanes of a register of i32, for products of bytes">,
    Option<"byteProducts", "byte-products", "::attune::ByteProducts",
      /*default=*/"::attune::ByteProducts::Any",
      "How products of bytes are made", [{::llvm::cl::values(
        clEnumValN(::attune::ByteProducts::Any, "any",
                   "by multiplication of i32, which any CPU has"),
        clEnumValN(::attune::ByteProducts::Words, "words",
                   "by pmaddwd, which adds up two products"),
        clEnumValN(::attune::ByteProducts::Quads, "quads",
                   "by vpdpbusd, which adds up four"))}]>,
  ];
}

def ConvertAttuneIndexToLinalg : Pass<"convert-attune-index-to-linalg"> {
  let summary = "Write an index that chooses keys as linalg ops";
  let description = [{
    Needs: static numbers of heads.
    Gives: `index_scores` as `similarity` and a sum over heads, `choose_keys` as
    counts in `linalg.generic`, whose iterations are independent: for
    GPUs, and as the reference. On a CPU `convert-attune-to-vector` lowers both.
    Keeps: the formulas as the ops state them.

    Before:

    ```mlir
    %i = attune.index_scores %q, %k shares %w scale 0.125
      : tensor<1x8x4x64xf32>, tensor<1x1x6x64xf32>, tensor<1x4x8xf32> -> tensor<1x4x6xf32>
    ```

    After, in outline:

    ```mlir
    %s = attune.similarity %q, %k scale 0.125
    %i = linalg.generic { // (b, m, n)
      %sum = scf.for %h = 0 to 8 { %so + %w[b, m, %h] * max(%s[b, %h, m, n], 0) }
    }
    ```
  }];
  let dependentDialects = [
    "::attune::AttuneDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

def ConvertAttuneLadderToLinalg : Pass<"convert-attune-ladder-to-linalg"> {
  let summary = "Write the unfused attention ladder as linalg ops";
  let description = [{
    Needs: static numbers of heads.
    Gives: `similarity`, `mask_scores`, `softmax`, `log_sum_exp` and
    `weighted_sum` as `linalg.generic` and `linalg.fill` on tensors, in f32;
    other attune ops stay. Every elementwise step updates the scores in place, so
    bufferization allocates them once.
    Keeps: the formulas as the ops state them, rounding included. A row that sees
    no key gives zeros. It is the reference for the fused path, so it is plain
    rather than fast.

    Before:

    ```mlir
    %s = attune.similarity %q, %k scale 0.125
      : tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32> -> tensor<1x2x4x4xf32>
    %p = attune.softmax %s : tensor<1x2x4x4xf32>
    ```

    After, in outline:

    ```mlir
    %products = linalg.generic { // (b, h, m, n, d), the last one is summed up
      %product = arith.mulf %in, %in_0
      %sum = arith.addf %out, %product
    } ins(%q, %k) outs(%zeros)
    %s = linalg.generic { arith.mulf %out, %scale } outs(%products)
    %max = linalg.generic { arith.maximumf %in, %out } ins(%s) outs(%minusInfinity)
    %e = linalg.generic { math.exp (%out - (%in == -inf ? 0 : %in)) } ins(%max) outs(%s)
    %sum = linalg.generic { arith.addf %out, %in } ins(%e) outs(%zeros_0)
    %p = linalg.generic { %in == 0 ? 0 : %out / %in } ins(%sum) outs(%e)
    ```
  }];
  let dependentDialects = [
    "::attune::AttuneDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

#endif // ATTUNE_CONVERSION_PASSES
