// RUN: split-file %s %t
// RUN: attune-opt %t/cached.mlir --attune-shard-positions=sp=2 | FileCheck %t/cached.mlir
// RUN: attune-opt %t/cached.mlir --attune-validate --attune-shard-positions=sp=3 -o /dev/null 2>&1 | count 0
// RUN: attune-opt %t/prompt.mlir --attune-validate --attune-shard-positions=sp=2 | FileCheck %t/prompt.mlir
// RUN: not attune-opt %t/refused.mlir --split-input-file --attune-shard-positions=sp=2 -o /dev/null 2>&1 | FileCheck %t/refused.mlir

//--- cached.mlir
// A rank's share of a cache, whose last row is for what is another's.
// CHECK: attributes {attune.sharers = 2 : i64}
// CHECK-LABEL: func.func private @block(
// CHECK-SAME:    %[[Q:[a-z0-9]+]]: tensor<1x2x?x8xf32>, %[[K:[a-z0-9]+]]: tensor<1x1x?x8xf32>, %[[PAST:[a-z0-9]+]]: index, %[[N:[a-z0-9]+]]: index,
// CHECK:         %[[GROUP:.+]] = attune.rank of_positions
// CHECK:         %[[NEW:.+]] = tensor.extract_slice %[[K]][0, 0, %{{.+}}, 0] [1, 1, %{{.+}}, 8]
// CHECK:         attune.cache_append %[[NEW]] into
// CHECK:         attune.cache_read %{{.+}} length %{{.+}}
// CHECK:         %[[PLACE:.+]] = linalg.fill
// CHECK:         %[[OWN:.+]], %[[LSE:.+]] = attune.attention %[[Q]], {{.+}} lengths %[[PLACE]] : tensor<1xi64> causal <lengths>
// CHECK:         attune.all_merge %[[OWN]], %[[LSE]] into
// CHECK-LABEL: func.func @decode(
// CHECK-SAME:    attune.name = "kv", {{.*}}attune.sharers = 2 : i64
// What holds a window stays whole.
// CHECK-SAME:    attune.name = "ring"
// CHECK-NOT:     attune.sharers
// CHECK:         attune.attention {{.+}} causal <bottom_right> window 4
// CHECK-NOT:     attune.all_merge
func.func private @block(%q: tensor<1x2x?x8xf32>, %k: tensor<1x1x?x8xf32>, %past: index, %n: index,
                         %cache: tensor<1x1x1x?x8xf32>) -> (tensor<1x2x?x8xf32>, tensor<1x1x1x?x8xf32>) {
  %c0 = arith.constant 0 : index
  %all = attune.cache_append %k into %cache[%c0, %past] : tensor<1x1x?x8xf32>, tensor<1x1x1x?x8xf32>
  %keys = attune.cache_read %all[%c0] length %n : tensor<1x1x1x?x8xf32> -> tensor<1x1x?x8xf32>
  %y = attune.attention %q, %keys, %keys scale 0.5 causal <bottom_right> : tensor<1x2x?x8xf32>, tensor<1x1x?x8xf32>, tensor<1x1x?x8xf32> -> tensor<1x2x?x8xf32>
  return %y, %all : tensor<1x2x?x8xf32>, tensor<1x1x1x?x8xf32>
}
func.func @decode(%q: tensor<1x2x?x8xf32> {attune.kind = "input", attune.name = "q", attune.shape = [1, 2, "seq", 8]},
                  %k: tensor<1x1x?x8xf32> {attune.kind = "input", attune.name = "k", attune.shape = [1, 1, "seq", 8]},
                  %past: index {attune.kind = "past", attune.name = "past", attune.shape = []},
                  %kv: tensor<1x1x1x?x8xf32> {attune.kind = "cache", attune.name = "kv", attune.shape = [1, 1, 1, "capacity", 8]},
                  %ring: tensor<1x1x1x?x8xf32> {attune.kind = "cache", attune.name = "ring", attune.shape = [1, 1, 1, "capacity_4", 8]})
    -> (tensor<1x2x?x8xf32> {attune.kind = "output", attune.name = "y"}, tensor<1x1x1x?x8xf32> {attune.kind = "cache", attune.name = "kv"},
        tensor<1x1x1x?x8xf32> {attune.kind = "cache", attune.name = "ring"}) attributes {attune.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %t = tensor.dim %q, %c2 : tensor<1x2x?x8xf32>
  %n = arith.addi %past, %t : index
  %r:2 = scf.for %i = %c0 to %c1 step %c1 iter_args(%x = %q, %c = %kv) -> (tensor<1x2x?x8xf32>, tensor<1x1x1x?x8xf32>) {
    %b:2 = func.call @block(%x, %k, %past, %n, %c) : (tensor<1x2x?x8xf32>, tensor<1x1x?x8xf32>, index, index, tensor<1x1x1x?x8xf32>) -> (tensor<1x2x?x8xf32>, tensor<1x1x1x?x8xf32>)
    scf.yield %b#0, %b#1 : tensor<1x2x?x8xf32>, tensor<1x1x1x?x8xf32>
  }
  %all = attune.cache_append %k into %ring[%c0, %past] : tensor<1x1x?x8xf32>, tensor<1x1x1x?x8xf32>
  %keys = attune.cache_read %all[%c0] length %n : tensor<1x1x1x?x8xf32> -> tensor<1x1x?x8xf32>
  %y = attune.attention %r#0, %keys, %keys scale 0.5 causal <bottom_right> window 4 : tensor<1x2x?x8xf32>, tensor<1x1x?x8xf32>, tensor<1x1x?x8xf32> -> tensor<1x2x?x8xf32>
  return %y, %r#1, %all : tensor<1x2x?x8xf32>, tensor<1x1x1x?x8xf32>, tensor<1x1x1x?x8xf32>
}

//--- prompt.mlir
// Without a cache keys are shared evenly, with the mask's columns; sinks count once.
// CHECK-LABEL: func.func @forward(
// CHECK:         arith.divui
// CHECK:         %[[KEYS:.+]] = tensor.extract_slice %arg1[0, 0, %[[FIRST:.+]], 0]
// CHECK:         tensor.extract_slice %arg2[0, 0, 0, %[[FIRST]]]
// CHECK:         %[[SINKS:.+]] = linalg.generic
// CHECK:         attune.attention %arg0, %[[KEYS]], {{.+}} sinks %[[SINKS]]
// CHECK:         attune.all_merge
// What is not causal is everybody's.
// CHECK:         attune.attention
// CHECK-NOT:     attune.all_merge
func.func @forward(%q: tensor<1x2x?x8xf32> {attune.kind = "input", attune.name = "q", attune.shape = [1, 2, "seq", 8]},
                   %k: tensor<1x1x?x8xf32> {attune.kind = "input", attune.name = "k", attune.shape = [1, 1, "seq", 8]},
                   %mask: tensor<1x1x1x?xi1> {attune.kind = "input", attune.name = "mask", attune.shape = [1, 1, 1, "seq"]},
                   %sinks: tensor<2xf32> {attune.kind = "input", attune.name = "sinks", attune.shape = [2]})
    -> (tensor<1x2x?x8xf32> {attune.kind = "output", attune.name = "y"}) attributes {attune.entry} {
  %x = attune.attention %q, %k, %k scale 0.5 mask %mask : tensor<1x1x1x?xi1> sinks %sinks : tensor<2xf32> causal <bottom_right> : tensor<1x2x?x8xf32>, tensor<1x1x?x8xf32>, tensor<1x1x?x8xf32> -> tensor<1x2x?x8xf32>
  %y = attune.attention %x, %k, %k scale 0.5 : tensor<1x2x?x8xf32>, tensor<1x1x?x8xf32>, tensor<1x1x?x8xf32> -> tensor<1x2x?x8xf32>
  return %y : tensor<1x2x?x8xf32>
}

//--- refused.mlir
// CHECK: refused.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: has no causal attention whose keys ranks could share: leave --mesh=sp=N out
module {
func.func @forward(%q: tensor<1x2x?x8xf32>) -> tensor<1x2x?x8xf32> attributes {attune.entry} {
  return %q : tensor<1x2x?x8xf32>
}
}

// -----

func.func @decode(%q: tensor<1x2x1x8xf32>, %n: index, %d: tensor<2x?xf32>,
                  %kv: tensor<1x1x1x?x8xf32> {attune.kind = "cache", attune.name = "kv", attune.shape = [1, 1, 1, "capacity", 8]}) -> tensor<1x2x1x8xf32> attributes {attune.entry} {
  %c0 = arith.constant 0 : index
  %keys = attune.cache_read %kv[%c0] length %n : tensor<1x1x1x?x8xf32> -> tensor<1x1x?x8xf32>
  // CHECK: refused.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: attention with biases of distances, blocks, maps or positions of another kind cannot share its keys among ranks
  %y = attune.attention %q, %keys, %keys scale 0.5 diagonals %d : tensor<2x?xf32> causal <bottom_right> : tensor<1x2x1x8xf32>, tensor<1x1x?x8xf32>, tensor<1x1x?x8xf32> -> tensor<1x2x1x8xf32>
  return %y : tensor<1x2x1x8xf32>
}

// -----

func.func @decode(%q: tensor<1x2x1x8xf32>, %n: index,
                  %kv: tensor<1x1x1x?x8xf32> {attune.kind = "cache", attune.name = "kv", attune.shape = [1, 1, 1, "capacity", 8]}) -> tensor<1x2x1x?xf32> attributes {attune.entry} {
  %c0 = arith.constant 0 : index
  %keys = attune.cache_read %kv[%c0] length %n : tensor<1x1x1x?x8xf32> -> tensor<1x1x?x8xf32>
  // CHECK: refused.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: attention that is not one op cannot share its keys among ranks
  %y = attune.similarity %q, %keys scale 0.5 : tensor<1x2x1x8xf32>, tensor<1x1x?x8xf32> -> tensor<1x2x1x?xf32>
  return %y : tensor<1x2x1x?xf32>
}
