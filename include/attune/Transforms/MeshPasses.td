//===- MeshPasses.td - Models cut among ranks ----------------*- tablegen -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_TRANSFORMS_MESH_PASSES_TD
#define ATTUNE_TRANSFORMS_MESH_PASSES_TD

include "mlir/Pass/PassBase.td"

def Shard : Pass<"attune-shard", "::mlir::ModuleOp"> {
  let summary = "Cut a language model among ranks, as Megatron-LM does";
  let description = [{
    Needs: attune as imported, with heads from `attune.split_heads` and
    feed-forward layers in one op.
    Gives: the functions of one rank of `tp`. All ranks run the same code on the
    same shapes: a weight has the type of one rank's part, and says in
    `attune.cut` which rows or columns each rank has. Queries, keys and values
    and the up projections are cut by rows, the output of attention and the down
    projections by columns, with an `attune.all_reduce` behind them; a bias of
    the latter is the first rank's alone. Caches have a rank's heads; where there
    are more ranks than heads of keys and values, several ranks have a copy of
    one. What does not divide is cut as well: all ranks have room for equally
    many heads or columns, and where one has room to spare a neighbour's head
    is, whose columns in the matrix behind it are zero. What one entry gives and
    another takes is each rank's own, which `attune.of_rank` says. Latent
    attention is cut by the heads of its queries; the cached rows are
    everybody's. Experts are cut by their width. The table of tokens and the
    head are cut by the vocabulary: a rank takes
    a row of zeros for a token of another, and `attune.all_gather` puts the
    logits together, or, where `attune-choose-candidates` has asked for a few,
    what each rank chose of its own. The module has the number of ranks in `attune.ranks`.
    A delta rule gives each rank the memories of its heads, and what is kept of
    the tokens before its convolution has the channels that these heads read: the
    entry's argument says in `attune.side_by_side` how many all ranks have of
    queries, keys and values. Gates of merged heads are cut by rows.
    With `ep` each rank has a run of the experts of every mixture, whole: all
    ranks see all tokens, an expert of another rank gets the number behind the last one,
    and an `attune.all_reduce` adds up what the experts gave.
    Keeps: values, up to the order of sums over a row. Fails, with an error at
    the layer, where some ranks would have nothing of it or something is not
    known.

    Source: Shoeybi et al. (2019), Megatron-LM, section 3.

    Before:

    ```mlir
    %y = attune.linear %heads, %o residual %x : tensor<?x?x64xf32>
      : tensor<?x?x64xf32>, tensor<64x64xf32> -> tensor<?x?x64xf32>
    ```

    After, with tp=2:

    ```mlir
    %p = attune.linear %heads, %o
      : tensor<?x?x32xf32>, tensor<64x32xf32> -> tensor<?x?x64xf32>
    %y = attune.all_reduce %p into %x accumulate
      : tensor<?x?x64xf32>, tensor<?x?x64xf32> -> tensor<?x?x64xf32>
    ```
  }];
  let dependentDialects = ["::attune::AttuneDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
  let options = [
    Option<"tp", "tp", "int64_t", /*default=*/"1",
      "Ranks that share each layer (tensor parallelism)">,
    Option<"ep", "ep", "int64_t", /*default=*/"1",
      "Ranks that share the experts of mixtures (expert parallelism); as many "
      "as tp, if both are more than 1">,
  ];
  let statistics = [
    Statistic<"numCut", "num-cut", "Weights cut among ranks">,
  ];
}

def ShardPositions : Pass<"attune-shard-positions", "::mlir::ModuleOp"> {
  let summary = "Share the positions of a sequence among ranks";
  let description = [{
    Needs: attention in one op (`attune-fuse-attention`); if `attune-shard`
    cuts the weights, it comes first.
    Gives: the functions of one of `sp` groups of ranks. Group g has the keys
    and values from position `g * share` on: a cache with room for R rows holds
    `share = R - 1` of them, and in the last row what is another group's, which
    nobody reads. Causal attention without a cache shares its keys evenly. All
    ranks have all queries: each attends to its own keys, with the causal
    alignment `lengths` to say where the last query stands, and an
    `attune.all_merge` puts the results together. Sinks count in the first
    group. Caches that hold a window stay whole, and so does what is not causal.
    The arguments that are caches, and the module, have the number of groups in
    `attune.sharers`.
    Keeps: values, up to the order of sums over keys. Fails, with an error at
    the layer, where cached keys cannot be shared: for biases by distance,
    blocks, attention maps, scores of their own.

    Source: Dao (2023), for merging; Yang et al. (2024), Context Parallelism for
    Scalable Million-Token Inference, for a cache by positions.

    Before:

    ```mlir
    %r = attune.attention %q, %k, %v scale 1.0 causal <bottom_right>
      : tensor<?x8x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32>
      -> tensor<?x8x?x64xf32>
    ```

    After, with sp=2:

    ```mlir
    %own, %lse = attune.attention %q, %k0, %v0 scale 1.0 lengths %place
      : tensor<?xi64> causal <lengths>
      : tensor<?x8x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32>
      -> tensor<?x8x?x64xf32> lse tensor<?x8x?xf32>
    %r = attune.all_merge %own, %lse into %d
      : tensor<?x8x?x64xf32>, tensor<?x8x?xf32>, tensor<?x8x?x64xf32>
      -> tensor<?x8x?x64xf32>
    ```
  }];
  let dependentDialects = ["::attune::AttuneDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
  let options = [
    Option<"sp", "sp", "int64_t", /*default=*/"1",
      "Groups of ranks that share positions (sequence parallelism)">,
  ];
  let statistics = [
    Statistic<"numCut", "num-cut", "Attention ops whose keys ranks share">,
  ];
}

#endif // ATTUNE_TRANSFORMS_MESH_PASSES_TD
