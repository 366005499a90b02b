// RUN: attune-opt %s --attune-validate --pass-pipeline='builtin.module(attune-to-tensor,attune-to-loops,canonicalize,cse)' | FileCheck %s
//
// Flash attention as the compiler has it, before it becomes vector code: loops
// visit tiles, and tile ops say what is computed there. 192 queries and keys of two
// heads, in tiles of 96 queries and blocks of 64 keys, which attributes ask for here.
// `attune compile MODEL --emit=loops --kernel=NAME` prints the same of any model.
//
// The loop is a function of its own, which a model calls by name:
// CHECK-LABEL: func.func private @attention.2x192x64.causal(
// CHECK-SAME:    %[[Q:[^:]+]]: memref<1x2x192x64xf32>, %[[K:[^:]+]]: memref<1x2x192x64xf32>, %[[V:[^:]+]]: memref<1x2x192x64xf32>, %[[Y:[^:]+]]: memref<1x2x192x64xf32>)
//
// A tile's state: for each query the sum of what its keys weigh times their values,
// the largest score so far, and the sum of the weights. It is memory of the thread
// that runs the tile, and as large as a tile may be: nothing here grows with the
// number of keys, which is the point of flash attention.
// CHECK-DAG:     memref.alloca() {{.*}} : memref<1x1x96x64xf32>
// CHECK-DAG:     memref.alloca() {{.*}} : memref<1x1x96xf32>
//
// The nest. Tiles are independent: heads times tiles of queries, in parallel.
// (Batches are a third dimension; here is one.)
// CHECK:         scf.forall (%[[H:.+]], %[[T:.+]]) in (2, 2)
//
// Later tiles of causal attention see more keys and take longer: the last comes
// first, so that threads end at about the same time.
// CHECK-NEXT:      %[[TILE:.+]] = arith.subi %c1, %[[T]]
// CHECK-NEXT:      %[[FIRST:.+]] = arith.muli %[[TILE]], %c96
//
// Nothing has been seen: the sums are 0, the largest score is -inf.
// CHECK:           attune.online_start outs(%[[ACC:.+]], %[[MAX:.+]], %[[SUM:.+]] :
//
// The tile's queries are a view: no op copies them.
// CHECK-NEXT:      %[[ROWS:.+]] = memref.subview %[[Q]][0, %[[H]], %[[FIRST]], 0]
//
// The last query of the tile sees keys up to its own: the loop over blocks of keys
// ends there. Blocks that causality hides from all of the tile are never visited.
// CHECK:           scf.for %[[N:.+]] = %c0 to %{{.+}} step %c64 {
// CHECK:             %[[KEYS:.+]] = memref.subview %[[K]][0, %[[H]], %[[N]], 0]
// CHECK:             %[[VALUES:.+]] = memref.subview %[[V]][0, %[[H]], %[[N]], 0]
//
// What will be read next, so that it can be fetched by then: the keys and values of
// the block behind, or after the last block the first of the next tile.
// CHECK:             %[[BEHIND:.+]] = arith.addi %[[N]], %c64
// CHECK:             %[[NEXTK:.+]] = memref.subview %[[K]][
// CHECK:             %[[NEXTV:.+]] = memref.subview %[[V]][
//
// The step: scores of the block, hidden above the diagonal; a new maximum; weights;
// what there was shrinks by as much as the maximum grew. `at` is where the block is
// in the whole matrix of scores, `tile` how large it can be.
// CHECK:             attune.online_attention %[[ROWS]], %[[KEYS]], %[[VALUES]] scale 1.250000e-01 causal <bottom_right> at[%[[FIRST]], %[[N]]] of[%c192, %c192] tile [96, 64] prefetch %[[NEXTK]], %[[NEXTV]] : {{.*}} outs(%[[ACC]], %[[MAX]], %[[SUM]] :
// CHECK-NEXT:      }
//
// All keys are seen: the sums are divided by the sum of the weights, into the
// result itself.
// CHECK-NEXT:      %[[PLACE:.+]] = memref.subview %[[Y]][0, %[[H]], %[[FIRST]], 0]
// CHECK-NEXT:      attune.online_finish %[[ACC]], %[[MAX]], %[[SUM]] into %[[PLACE]] :
//
// Try it: another `attune.key_block`; `causal` left out; more keys than queries.
// `--attune-to-vector` behind `cse` shows what each line above costs.
// ../skip-blocks-plugin is a pass that changes this nest.
func.func @entry(%q: tensor<1x2x192x64xf32> {attune.kind = "input", attune.name = "q", attune.shape = [1, 2, 192, 64]},
                 %k: tensor<1x2x192x64xf32> {attune.kind = "input", attune.name = "k", attune.shape = [1, 2, 192, 64]},
                 %v: tensor<1x2x192x64xf32> {attune.kind = "input", attune.name = "v", attune.shape = [1, 2, 192, 64]})
    -> (tensor<1x2x192x64xf32> {attune.kind = "output", attune.name = "y", attune.shape = [1, 2, 192, 64]})
    attributes {attune.entry} {
  %y = attune.attention %q, %k, %v scale 0.125 causal <bottom_right> {attune.query_block = 96 : i64, attune.key_block = 64 : i64}
    : tensor<1x2x192x64xf32>, tensor<1x2x192x64xf32>, tensor<1x2x192x64xf32> -> tensor<1x2x192x64xf32>
  return %y : tensor<1x2x192x64xf32>
}
