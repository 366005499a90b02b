//===- Passes.td - attune to attune ------------------------*- tablegen -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_TRANSFORMS_PASSES
#define ATTUNE_TRANSFORMS_PASSES

include "attune/Transforms/MeshPasses.td"
include "mlir/Pass/PassBase.td"

def FuseAttention : Pass<"attune-fuse-attention"> {
  let summary = "Fold similarity, softmax and weighing into one attention op";
  let description = [{
    Needs: the chain `similarity`, `mask_scores` (none, one or several),
    `softmax`, `weighted_sum` in one block, each link with a single user; or the
    same written by hand in linalg: a product, a softmax, a second product,
    named or generic, cut into ops in any way. Both products start from zero.
    Gives: `attune.attention`. A chain with a shared link is left untouched,
    because fusing it would compute the link twice.
    Keeps: numerics up to rounding: the fused op also sums in f32. Only a row
    without a visible key may differ in a chain written by hand: `linalg.softmax`
    makes NaN of it, attention zeros.

    A handwritten chain is read as a formula. These spellings are known, with
    s = q k, m the query and n the key:

    | part | spellings |
    |---|---|
    | layout | `[m, d]`, `[b, m, d]`, `[b, h, m, d]`, `[b, m, h, d]` and any other order; keys as rows or as columns; batch and heads merged for the products by `collapse_shape` and `expand_shape` |
    | groups | keys and values without the heads' dimension, or without the last of two (`[b, h, g, m, d]` with `[b, h, n, d]`); repeated by `linalg.broadcast` and `collapse_shape`, or by a map `h floordiv g`: the fused op has as few key heads as there were before |
    | softmax | `linalg.softmax`; `e / sum e` or `e * (1 / sum e)` with `e = exp(s - max s)` or `exp(s)`; the quotient before or after the product with values |
    | base 2 | `exp2(c s)`, which is `exp(s)` of a scale `c log 2` |
    | scale | constant factors of s anywhere before a bias is added, also around the maximum: `exp(c (s - max s))` |
    | soft cap | `c tanh(s / c)`; `c tanh(r s)` is the cap c of scores with a scale `c r` |
    | bias | `s + t` with a tensor t of f32, bf16 or f16 that has the keys among its dimensions |
    | mask | `select(t, s, -inf)` with a tensor t of i1, or `select(t, -inf, s)`; `s + select(t, 0, -inf)` |
    | causal | `select(n <= m, s, -inf)` is `top_left`, `select(n <= m + N - M, ...)` is `bottom_right`; by `linalg.index` in the generic that selects or in one that makes the mask; index, i64 or i32 |
    | window | `m - n < w`, beside a causal comparison or alone, in one select or two |
    | types | f32, bf16 and f16 throughout or mixed; attention keeps scores and weights in f32 where the chain rounds them, and the remark says so |

    Instead of -inf a finite number of -1e9 or less (of f16: -65504) will do if
    each query is known to see some key. Other comparisons of m and n are no
    causal mask: a tensor of them becomes the `mask` of the fused op, and a
    generic that compares and selects at once is not fused. An example of
    `select(n <= m, s, -1e9)`:

    ```mlir
    %m = linalg.index 1 : index
    %n = linalg.index 2 : index
    %seen = arith.cmpi sle, %n, %m : index
    %masked = arith.select %seen, %s, %low : f32
    ```

    The discardable attribute `attune.fusion` on the last op of a chain is "off"
    (leave it alone) or "required": a required chain that did not fuse is an
    error at its location that says why.

    Every chain, and every softmax that ends in none, is reported as a remark of
    category `attune-fusion` (`--remarks-filter=attune-fusion`), fused ones as
    passed, the rest as missed with the reason; `explain-fusion` makes them
    diagnostics.

    A chain before:

    ```mlir
    %s = attune.similarity %q, %k scale 0.125
      : tensor<1x8x4x64xf32>, tensor<1x2x?x64xf32> -> tensor<1x8x4x?xf32>
    %p = attune.softmax %s : tensor<1x8x4x?xf32>
    %y = attune.weighted_sum %p, %v
      : tensor<1x8x4x?xf32>, tensor<1x2x?x48xf32> -> tensor<1x8x4x48xf32>
    ```

    After:

    ```mlir
    %y = attune.attention %q, %k, %v scale 0.125
      : tensor<1x8x4x64xf32>, tensor<1x2x?x64xf32>, tensor<1x2x?x48xf32> -> tensor<1x8x4x48xf32>
    ```
  }];
  let dependentDialects = ["::attune::AttuneDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
  let options = [
    Option<"explainFusion", "explain-fusion", "bool", /*default=*/"false",
           "Say with a remark at each chain what was fused, or why it was not">,
  ];
  let statistics = [
    Statistic<"numFused", "num-fused", "Chains folded into attune.attention">,
    Statistic<"numLeft", "num-left", "Chains left as they were">,
  ];
}

def UnfuseAttention : Pass<"attune-unfuse-attention"> {
  let summary = "Write attention as similarity, softmax and weighing";
  let description = [{
    Needs: nothing.
    Gives: `similarity`, `mask_scores` (where something is masked, biased or
    capped), `softmax` and `weighted_sum`, and `log_sum_exp` for a second
    result; no `attune.attention` is left. The `attention_weights` that were
    made from its log-sum-exp are the softmax.
    Keeps: numerics up to rounding, and the attributes that are not the op's own.
    This is the reference that the fused path is compared with; it needs memory
    for every score.

    Before:

    ```mlir
    %y = attune.attention %q, %k, %v scale 0.125
      : tensor<1x8x4x64xf32>, tensor<1x2x?x64xf32>, tensor<1x2x?x48xf32> -> tensor<1x8x4x48xf32>
    ```

    After:

    ```mlir
    %s = attune.similarity %q, %k scale 0.125
      : tensor<1x8x4x64xf32>, tensor<1x2x?x64xf32> -> tensor<1x8x4x?xf32>
    %p = attune.softmax %s : tensor<1x8x4x?xf32>
    %y = attune.weighted_sum %p, %v
      : tensor<1x8x4x?xf32>, tensor<1x2x?x48xf32> -> tensor<1x8x4x48xf32>
    ```
  }];
  let dependentDialects = ["::attune::AttuneDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
  let options = [
    Option<"explainFusion", "explain-fusion", "bool", /*default=*/"false",
           "Say with a remark at each attention that it is not fused">,
  ];
  let statistics = [
    Statistic<"numUnfused", "num-unfused", "Attention ops taken apart">,
  ];
}

def DecomposeFFN : Pass<"attune-decompose-ffn"> {
  let summary = "Write feed-forward layers as two linear layers";
  let description = [{
    Needs: nothing.
    Gives: for each `ffn` or `gated_ffn` one `linear` with the activation (gated)
    and one with the residual; the hidden layer between them is f32.
    Keeps: the numbers exactly, it is the definition of the ops.

    Before:

    ```mlir
    %y = attune.gated_ffn %x, %up, %down activation <silu>
      : tensor<?x?x128xbf16>, tensor<576x128xbf16>, tensor<128x288xbf16> -> tensor<?x?x128xbf16>
    ```

    After:

    ```mlir
    %h = attune.linear %x, %up activation <silu> gated
      : tensor<?x?x128xbf16>, tensor<576x128xbf16> -> tensor<?x?x288xf32>
    %y = attune.linear %h, %down
      : tensor<?x?x288xf32>, tensor<128x288xbf16> -> tensor<?x?x128xbf16>
    ```
  }];
  let dependentDialects = ["::attune::AttuneDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numDecomposed", "num-decomposed", "Layers taken apart">,
  ];
}

def DecomposeRecurrent : Pass<"attune-decompose-recurrent"> {
  let summary = "Write recurrences as loops over tokens";
  let description = [{
    Needs: nothing.
    Gives: for each `recurrent` an scf.for over the tokens whose step is one
    `linear` (the product with the state) and one `recurrent_cell`, which carries
    the sequence and the states; tokens that do not count are zeroed after it.
    Keeps: the numbers exactly, it is the definition of the op.

    Before:

    ```mlir
    %s, %last = attune.recurrent <gru> %x, %w bias %b : tensor<24xf32>
      : tensor<?x?x24xf32>, tensor<24x8xf32> -> tensor<?x?x8xf32>, tensor<?x8xf32>
    ```

    After (types left out):

    ```mlir
    %r:2 = scf.for %t = %c0 to %tokens step %c1 iter_args(%s = %empty, %h = %zeros) {
      %z = attune.linear %h, %w bias %b
      %xt = tensor.extract_slice %x[0, %t, 0] [%batch, 1, 24] [1, 1, 1]
      %next = attune.recurrent_cell <gru> %xt, %z state %h
      %done = tensor.insert_slice %next into %s[0, %t, 0] [%batch, 1, 8] [1, 1, 1]
      scf.yield %done, %next
    }
    ```
  }];
  let dependentDialects = ["::attune::AttuneDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numDecomposed", "num-decomposed", "Recurrences taken apart">,
  ];
}

def Quantize : Pass<"attune-quantize", "::mlir::ModuleOp"> {
  let summary = "Keep matrices in 8 or 4 bits, and multiply bytes";
  let description = [{
    Needs: ffn ops decomposed; weights not in panels.
    Gives: an `attune.weight` that linear layers or mixtures of experts multiply
    by, and embeddings read (a tied table), and nothing else does, holds bytes or
    numbers of 4 bits in groups of neighbours, as `rules` say; its scales are a
    weight of their own. Such a layer is `quantize_rows` and `quantized_linear`,
    such a mixture, both of whose stacks are, `quantize_rows` and `quantized_moe`,
    such an embedding `quantized_embedding`. Where rows are no whole groups, half as
    many share a scale, and so on down to 32. What has no such groups, or another
    user, stays as it is: a remark of category `attune-quantize` says why.
    Matrices of the vocabulary say in `attune.vocabulary` that they are such.
    With `exact-activations` rows stay numbers as they are, and there is no
    `quantize_rows`; nor is there for floats of 8 bits (`fp8`), which multiply
    numbers. Stored forms that end in `:ordered` are of columns that stand apart
    in the checkpoint: such a matrix, `attune.ordered`, has them side by side, and
    rows are put in the same order, which a weight of its own says
    (`attune.order`).

    A rule is a form (`int8`, `int4`, `fp8`, `mxfp4`, `none`, with groups as in `int4:g64`,
    with zero points as in `int4:g64:asym`, or with scales of f32 as in
    `int4:g64:asym:f32`; or
    `stored`: what the attribute `attune.stored` of the weight says, else none), or
    `PATTERN=FORM` for weights of such a name: that of the symbol or of a tensor
    that it comes from, in which a number stands for the layer, with or without
    the end `.weight`. The first pattern that matches decides; a form without a
    pattern is for what none matches. Without a pattern `int4` means int8 for
    vocabularies: rounded to 4 bits, they cost as much as all other layers together.
    Routers of experts keep their numbers without a pattern. A pattern that
    matches nothing is an error.
    Keeps: neither numbers nor sizes; that is what it is for. A weight moves by
    at most half of its group's scale, an activation too. Sums of a group are
    exact, so results do not depend on the CPU's instructions.

    Before:

    ```mlir
    attune.weight @fc : tensor<20x256xf32> from [#attune.source<"fc">]
    %w = attune.weight_get @fc : tensor<20x256xf32>
    %y = attune.linear %x, %w : tensor<?x256xf32>, tensor<20x256xf32> -> tensor<?x20xf32>
    ```

    After (types left out):

    ```mlir
    attune.weight @fc : tensor<20x256xi8> from [#attune.source<"fc">] {attune.group = 128 : i64}
    attune.weight @fc.scales : tensor<20x2xf32> from [#attune.source<"fc">] {attune.group = 128 : i64}
    %w = attune.weight_get @fc : tensor<20x256xi8>
    %ws = attune.weight_get @fc.scales : tensor<20x2xf32>
    %values, %scales, %sums = attune.quantize_rows %x group 128
    %y = attune.quantized_linear %values scales %scales sums %sums, %w scales %ws
    ```
  }];
  let dependentDialects = ["::attune::AttuneDialect"];
  let options = [
    ListOption<"rules", "rules", "std::string",
               "Forms, and forms by patterns; int8 for all if there is none">,
    Option<"exactActivations", "exact-activations", "bool", /*default=*/"false",
           "Multiply rows as they are, not rounded to bytes">,
  ];
  let statistics = [
    Statistic<"numQuantized", "num-quantized", "Matrices in 8 or 4 bits">,
    Statistic<"numLeft", "num-left", "Matrices left as they were">,
  ];
}

def PruneHeads : Pass<"attune-prune-heads", "::mlir::ModuleOp"> {
  let summary = "Take heads out of attention";
  let description = [{
    Needs: attention whose heads a linear layer takes, before weights are
    quantized, cut among ranks or in panels.
    Gives: attention without the heads that `rules` name: projections of
    queries, keys and values have fewer rows, the matrix that takes the heads
    has fewer columns, and caches, biases, norms, slopes and sinks of heads
    follow. Weights say in `attune.kept` which parts of their tensors stay.

    A rule is `PATTERN:N,N-M,...` for a matrix that takes heads, by names as in
    `attune-quantize`; the first that matches decides, and one that matches
    nothing is an error. Where several heads of queries share one of keys, all
    that share it go, and it with them, or equally many of each that stays.
    Repeated layers may lose different heads, but equally many.
    Keeps: not the numbers; that is what it is for.

    Before:

    ```mlir
    attune.weight @q : tensor<16x32xf32> from [#attune.source<"q">]
    attune.weight @o : tensor<32x16xf32> from [#attune.source<"o">]
    %h = attune.split_heads %q : tensor<?x?x16xf32> -> tensor<?x4x?x4xf32>
    %y = attune.merge_heads %x : tensor<?x4x?x4xf32> -> tensor<?x?x16xf32>
    ```

    After `rules=o:1`:

    ```mlir
    attune.weight @q : tensor<12x32xf32> from [#attune.source<"q">] {attune.kept = {rows = [array<i64: 0, 4, 8, 8>], whole = array<i64: 16, 32>}}
    attune.weight @o : tensor<32x12xf32> from [#attune.source<"o">] {attune.kept = {columns = [array<i64: 0, 4, 8, 8>], whole = array<i64: 32, 16>}}
    %h = attune.split_heads %q : tensor<?x?x12xf32> -> tensor<?x3x?x4xf32>
    %y = attune.merge_heads %x : tensor<?x3x?x4xf32> -> tensor<?x?x12xf32>
    ```

    Source: Michel, Levy and Neubig, "Are sixteen heads really better than one?",
    2019.
  }];
  let dependentDialects = ["::attune::AttuneDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::tensor::TensorDialect"];
  let options = [
    ListOption<"rules", "rules", "std::string",
               "Heads to prune, by patterns of names">,
  ];
  let statistics = [
    Statistic<"numPruned", "num-pruned", "Heads taken out, of all layers">,
  ];
}

def TapInputs : Pass<"attune-tap-inputs", "::mlir::ModuleOp"> {
  let summary = "Make what linear layers and mixtures multiply outputs";
  let description = [{
    Needs: ffn ops decomposed; an entry that reads token ids [batch, seq].
    Gives: for each weight that a name of `match` matches (all, if there is none)
    and that linear layers multiply [batch, seq, K] by, an output
    `WEIGHT.input` [layers, batch, seq, K] of every entry. For a mixture of
    experts the weight is the first stack, and `WEIGHT.experts`, the experts of
    each token, is an output, too. Calibration runs the model so. If several layers
    of one entry share a weight, the last one is seen.
    Keeps: all other results.

    Before (types left out):

    ```mlir
    func.func @forward(%ids: tensor<?x?xi64>) {
      %w = attune.weight_get @fc : tensor<256x512xf32>
      %y = attune.linear %x, %w
      return %y
    ```

    After:

    ```mlir
    func.func @forward(%ids: tensor<?x?xi64>) {
      %all = tensor.empty(%batch, %seq) : tensor<1x?x?x512xf32>
      %w = attune.weight_get @fc : tensor<256x512xf32>
      %seen = tensor.insert_slice %x into %all[0, 0, 0, 0] [1, %b, %s, 512] [1, 1, 1, 1]
      %y = attune.linear %x, %w
      return %y, %seen
    ```
  }];
  let dependentDialects = ["::mlir::tensor::TensorDialect"];
  let options = [
    ListOption<"match", "match", "std::string",
               "Patterns of weights' names; all if there is none">,
  ];
  let statistics = [
    Statistic<"numTapped", "num-tapped", "Weights whose inputs are outputs">,
  ];
}

def LoraBranches : Pass<"attune-lora-branches", "::mlir::ModuleOp"> {
  let summary = "Adapters as branches beside the matrices they are for";
  let description = [{
    Needs: ffn ops decomposed; weights neither quantized nor in panels.
    Gives: for each matrix W [N, K] that linear layers alone multiply by and that
    `ranks` names, two stacks over the adapters `names`, A [E, R, K] and
    B [E, N, R], and behind each of the layers an `attune.moe` that adds
    `B[e] (A[e] x)` to its result, in front of its activation, gate and scale
    (Hu et al., 2021; several adapters in one step: Chen et al., 2023, "Punica").
    The number of the adapter is an input of the entries, `adapter`, i64 [batch]:
    0 is none, e + 1 the adapter e. One code serves all of them, and a row reads
    the matrices of its own adapter alone; an expert that is not there is none.

    A rule of `ranks` is `NAME:RANK` for names of tensors as in `attune-quantize`:
    the rank of the largest adapter. A matrix of several tensors has their ranks
    beside each other. Sources of the stacks are the tensors `NAME.lora_A.{e}`
    [rank, K] and `NAME.lora_B.{e}` [rows of NAME, R], which a compiler makes of
    the adapters, with zeros where one has less. `attune.lora` of a stack says which
    matrix it is for, R, and for each source how many rows or columns of R are its
    own and where these columns begin.

    A name that no matrix has is an error, and so is a matrix with another user.
    On a CPU alone.
    Keeps: the function, for adapter 0; sums then round as before.

    Before:

    ```mlir
    attune.weight @fc : tensor<256x512xf32> from [#attune.source<"fc">]
    func.func @forward(%x: tensor<?x?x512xf32>) {
      %w = attune.weight_get @fc : tensor<256x512xf32>
      %y = attune.linear %x, %w
    ```

    After `names=a,b ranks=fc:16` (types left out):

    ```mlir
    attune.weight @fc.lora_B parts 2 : tensor<2x256x16xf32> from [#attune.source<"fc.lora_B.{e}">]
    attune.weight @fc.lora_A parts 2 : tensor<2x16x512xf32> from [#attune.source<"fc.lora_A.{e}">]
    func.func @forward(%x: tensor<?x?x512xf32>, %adapter: tensor<?xi64>) {
      %w = attune.weight_get @fc : tensor<256x512xf32>
      %z = attune.linear %x, %w
      %y = attune.moe %x, %chosen, %ones, %a, %b residual %z activation <identity>
    ```
  }];
  let dependentDialects = [
    "::attune::AttuneDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect",
  ];
  let options = [
    ListOption<"names", "names", "std::string", "The adapters, in their order">,
    ListOption<"ranks", "ranks", "std::string", "Ranks by names of tensors">,
  ];
  let statistics = [
    Statistic<"numBranched", "num-branched", "Matrices with a branch">,
  ];
}

def LowRank : Pass<"attune-low-rank", "::mlir::ModuleOp"> {
  let summary = "Keep matrices as products of two thin ones";
  let description = [{
    Needs: ffn ops decomposed; weights neither quantized nor in panels.
    Gives: a matrix [N, K] that linear layers alone multiply by and that `rules`
    name is two weights, `right` [r, K] and `left` [N, r], and each of the layers
    two: the second has the bias, residual, activation and gate. The factors are
    the truncated singular value decomposition of what the sources of the
    matrix say; they are computed when weights are packed.

    A rule is `PATTERN:RANK`, `PATTERN:ERROR%` or `PATTERN:none` for names as in
    `attune-quantize`; the first pattern that matches decides, and one that matches
    nothing is an error. The error of a matrix is the root of the sum of
    squares of what is lost by that of what there was. ERROR asks for the least
    rank, a multiple of 32, at which every layer of the weight keeps to it, and
    needs the values: those of `weights`, a safetensors file or a folder.

    If `attune-shard` has cut the weight, N and K are those of all ranks together.
    A cut by rows gives a rank these rows of `left`, one by columns these columns
    of `right`; the other factor is whole.

    Where r (N + K) is not less than N K nothing would be saved: the matrix
    stays, as does one with another user or of experts. A remark of category
    `attune-low-rank` and its attribute `attune.whole` say why.
    Keeps: not the numbers; that is what it is for.

    Before:

    ```mlir
    attune.weight @fc : tensor<256x512xf32> from [#attune.source<"fc">]
    %w = attune.weight_get @fc : tensor<256x512xf32>
    %y = attune.linear %x, %w bias %b
    ```

    After `rules=fc:64` (types left out):

    ```mlir
    attune.weight @fc.left : tensor<256x64xf32> from [#attune.source<"fc">] {attune.factor = "left", attune.product = array<i64: 256, 512>}
    attune.weight @fc.right : tensor<64x512xf32> from [#attune.source<"fc">] {attune.factor = "right", attune.product = array<i64: 256, 512>}
    %l = attune.weight_get @fc.left : tensor<256x64xf32>
    %r = attune.weight_get @fc.right : tensor<64x512xf32>
    %z = attune.linear %x, %r
    %y = attune.linear %z, %l bias %b
    ```
  }];
  let dependentDialects = ["::attune::AttuneDialect"];
  let options = [
    ListOption<"rules", "rules", "std::string", "Ranks and errors by patterns">,
    Option<"weights", "weights", "std::string", /*default=*/"",
           "Where values are, for rules with an error">,
  ];
  let statistics = [
    Statistic<"numReduced", "num-reduced", "Matrices that became two">,
    Statistic<"numLeft", "num-left", "Matrices left as they were">,
  ];
}

def FuseNorms : Pass<"attune-fuse-norms", "::mlir::ModuleOp"> {
  let summary = "Make RMS norms factors of the linear layers that follow";
  let description = [{
    Needs: ffn ops decomposed; weights not in panels.
    Gives: linear layers with `rms_eps` where they were the only users of an
    `rms_norm` of rows of f32; its gains become the `gain` of their matrices,
    which are multiplied by them when they are packed. Such a matrix is an
    `attune.weight` of f32 of the same layer, which nothing else reads. Other
    norms stay: a remark of category `attune-fuse-norms` says why. So do those
    whose input such a layer or an op before it may write its result to, and of
    rows that are a multiple of `way-bytes` long: products would have to copy
    them from where they share sets of a cache, and a norm does that as well.
    Keeps: numerics up to rounding: gains are rounded into f32 weights, and rows
    are divided after they are summed up. Layer norms and weights of 16 bits
    would lose more.

    Before, where %g is attune.weight_get @g:

    ```mlir
    attune.weight @q : tensor<7x64xf32> from [#attune.source<"q">]
    %n = attune.rms_norm %x gamma %g : tensor<64xf32> eps 1.0e-5 offset 1.0 : tensor<?x?x64xf32>
    %w = attune.weight_get @q : tensor<7x64xf32>
    %y = attune.linear %n, %w : tensor<?x?x64xf32>, tensor<7x64xf32> -> tensor<?x?x7xf32>
    ```

    After:

    ```mlir
    attune.weight @q : tensor<7x64xf32> from [#attune.source<"q">] gain @g gain_offset 1.0
    %w = attune.weight_get @q : tensor<7x64xf32>
    %y = attune.linear %x, %w rms_eps 1.0e-5
      : tensor<?x?x64xf32>, tensor<7x64xf32> -> tensor<?x?x7xf32>
    ```
  }];
  let dependentDialects = ["::attune::AttuneDialect"];
  let options = [
    Option<"wayBytes", "way-bytes", "int64_t", /*default=*/"0",
           "Distance of addresses that share a set of the first-level cache, "
           "where that is too small for a tile's rows; 0: none">,
  ];
  let statistics = [
    Statistic<"numFused", "num-fused", "Norms that became factors">,
    Statistic<"numLeft", "num-left", "Norms left as they were">,
  ];
}

def ChooseCandidates : Pass<"attune-choose-candidates", "::mlir::ModuleOp"> {
  let summary = "Let decoding also give the largest logits, as many as are asked for";
  let description = [{
    For machines whose memory is not the host's: to choose a token from its
    logits takes a copy of as many numbers as the vocabulary has, but most
    choices depend on few of them.

    Needs: nothing. Only the entries `decode` and `decode_span` are looked at,
    and only if they give `logits` [batch, V] in f32 with a known V.
    Gives: another argument of that entry, the number of candidates (of
    `attune.kind` "size"), and two more results, `candidate_ids` and
    `candidate_logits` [batch, candidates], which are `attune.top_k` of the
    logits.
    Keeps: everything else; with no candidates nothing more is computed.

    Before:

    ```mlir
    func.func @decode(...) -> (tensor<?x256xf32> {attune.kind = "output", attune.name = "logits"},
        ...) attributes {attune.entry} {
      ...
      return %logits, ...
    }
    ```

    After (attributes of new results left out):

    ```mlir
    func.func @decode(..., %n: index {attune.kind = "size", attune.name = "candidates"})
        -> (tensor<?x256xf32> {attune.kind = "output", attune.name = "logits"}, ...,
        tensor<?x?xi64>, tensor<?x?xf32>) attributes {attune.entry} {
      ...
      %ids, %values = attune.top_k %logits count %n
        : tensor<?x256xf32> -> tensor<?x?xi64>, tensor<?x?xf32>
      return %logits, ..., %ids, %values
    }
    ```
  }];
  let dependentDialects = ["::attune::AttuneDialect"];
  let statistics = [
    Statistic<"numChosen", "num-chosen", "Entries that give candidates">,
  ];
}

def NameKernels : Pass<"attune-name-kernels", "::mlir::ModuleOp"> {
  let summary = "Give ops locations that say what their kernels are called";
  let description = [{
    Needs: nothing.
    Gives: every op of the dialect that computes a tensor a location with a name
    around the one that it had: the op, the sizes of it that are known, and what
    is fused into it. Conversions keep the location, and attune-outline-kernels
    names functions by it.

    ```mlir
    %1 = attune.linear %x, %w bias %b : tensor<3072xf32> activation <gelu>
      : tensor<?x?x768xf32>, tensor<96x768x32xf32> -> tensor<?x?x3072xf32>
      loc("model.json":31:5)
    // becomes
    %1 = attune.linear ... loc("linear.768x3072.gelu"("model.json":31:5))
    ```

    Keeps: everything but locations.
  }];
  let statistics = [
    Statistic<"numNamed", "num-named", "Ops with a name">,
  ];
}

def NarrowActivations
    : Pass<"attune-narrow-activations", "::mlir::ModuleOp"> {
  let summary = "Inputs of layers with 16-bit weights become 16-bit";
  let description = [{
    For CPUs that multiply bf16 and add in f32 and, with `tensor-cores`, for
    GPUs, which do the same with f16.

    Needs: ffn ops decomposed, so that every matrix product is attune.linear.
    Gives: a bf16 input to every attune.linear whose weight is a bf16
    attune.weight of even depth, and to attune.moe of such a stack; with
    `tensor-cores` also to attune.head_linear, and to quantized layers if all
    other weights have one type of 16 bits. f16 weights get f16 inputs only from norms and
    attention, whose results are bounded: f16 ends at 65504. Queries, keys and
    values are rounded where all of them come from such products or from caches
    of the type. With `tensor-cores` caches in bytes say nothing of that: what is
    made by such products next to them is rounded, and the kernels widen the
    bytes to the same type. Norms, attention, rotary embeddings, heads and linear layers
    without a residual write 16 bits themselves if nothing else reads their
    result. Other inputs are rounded by an arith.truncf that all readers share.
    Keeps: values up to one rounding of each such input. Sums, statistics and the
    residual stream stay f32.

    Before:

    ```mlir
    %n = attune.rms_norm %x gamma %g : tensor<64xbf16> eps 1.0e-5 : tensor<?x?x64xf32>
    %h = attune.linear %n, %up activation <silu> gated
      : tensor<?x?x64xf32>, tensor<256x64xbf16> -> tensor<?x?x128xf32>
    %y = attune.linear %h, %down residual %x : tensor<?x?x64xf32>
      : tensor<?x?x128xf32>, tensor<64x128xbf16> -> tensor<?x?x64xf32>
    ```

    After:

    ```mlir
    %n = attune.rms_norm %x gamma %g : tensor<64xbf16> eps 1.0e-5
      : tensor<?x?x64xf32> -> tensor<?x?x64xbf16>
    %h = attune.linear %n, %up activation <silu> gated
      : tensor<?x?x64xbf16>, tensor<256x64xbf16> -> tensor<?x?x128xbf16>
    %y = attune.linear %h, %down residual %x : tensor<?x?x64xf32>
      : tensor<?x?x128xbf16>, tensor<64x128xbf16> -> tensor<?x?x64xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::attune::AttuneDialect"];
  let options = [
    Option<"tensorCores", "tensor-cores", "bool", /*default=*/"false",
      "Products are those of a GPU's tensor cores: f16 and stacks of matrices "
      "too, heads of every width">,
    Option<"exactActivations", "exact-activations", "bool",
      /*default=*/"false", "Layers with quantized weights read f32">,
  ];
  let statistics = [
    Statistic<"numNarrowed", "num-narrowed", "Values that became bf16">,
  ];
}

def PackWeights : Pass<"attune-pack-weights", "::mlir::ModuleOp"> {
  let summary = "Give the matrices of linear layers the layout kernels stream";
  let description = [{
    Needs: ffn ops decomposed, so that every matrix product is attune.linear.
    Gives: every `attune.weight` that a linear layer multiplies by has
    `panels R` and the matching type, and so have its `weight_get`s; a gated one
    has its halves interleaved. With `pairs` (VNNI-2) a bf16 matrix whose linear
    layers all have a bf16 input has the weights of two neighbouring inputs side
    by side: panels of [K/2, 2R]; with `wide-inputs` also one whose linear
    layers have inputs of f32, for CPUs that widen the pairs. The same of both
    stacks of a mixture. Four bytes stand side by side (VNNI-4): panels
    of [K/4, 4R].
    Keeps: values; the file is written in this layout once, at compile time.

    Before:

    ```mlir
    attune.weight @fc stacked : tensor<2x20x12xf32> from [#attune.source<"h.{i}.fc">]
    %w = attune.weight_get @fc[%layer] : tensor<20x12xf32>
    %y = attune.linear %x, %w : tensor<?x?x12xf32>, tensor<20x12xf32> -> tensor<?x?x20xf32>
    ```

    After, with panel-width=8:

    ```mlir
    attune.weight @fc stacked panels 8 : tensor<2x3x12x8xf32> from [#attune.source<"h.{i}.fc">]
      {attune.rows = 20 : i64}
    %w = attune.weight_get @fc[%layer] : tensor<3x12x8xf32>
    %y = attune.linear %x, %w : tensor<?x?x12xf32>, tensor<3x12x8xf32> -> tensor<?x?x20xf32>
    ```
  }];
  let dependentDialects = ["::attune::AttuneDialect"];
  let options = [
    Option<"panelWidth", "panel-width", "int64_t", /*default=*/"16",
      "Output channels per panel (R)">,
    Option<"pairs", "pairs", "bool", /*default=*/"false",
      "Put bf16 weights in pairs, for instructions that add up two products">,
    Option<"wideInputs", "wide-inputs", "bool", /*default=*/"false",
      "Put them in pairs for inputs of f32, too">,
  ];
  let statistics = [
    Statistic<"numPacked", "num-packed", "Weights put in panels">,
    Statistic<"numPaired", "num-paired", "Weights put in panels of pairs">,
  ];
}

#endif // ATTUNE_TRANSFORMS_PASSES
