// What linear layers multiply becomes outputs: of a block's function through the loop
// that calls it, of the entry's own layers as they are.
// RUN: attune-opt %s --attune-tap-inputs | FileCheck %s
// CHECK: func.func private @block(%[[I:.*]]: index, %[[X:.*]]: tensor<?x?x8xf32>, %[[ALL:.*]]: tensor<2x?x?x8xf32>) -> (tensor<?x?x8xf32>, tensor<2x?x?x8xf32>)
// CHECK: %[[SEEN:.*]] = tensor.insert_slice %[[X]] into %[[ALL]][%[[I]], 0, 0, 0] [1, %{{.*}}, %{{.*}}, 8] [1, 1, 1, 1]
// CHECK: return %{{.*}}, %[[SEEN]]
// CHECK: func.func @forward(%[[IDS:.*]]: tensor<?x?xi64> {{.*}} -> (tensor<?x?x16xf32> {{.*}}, tensor<2x?x?x8xf32> {attune.kind = "output", attune.name = "fc.input", attune.shape = [2, "batch", "seq", 8]}, tensor<1x?x?x8xf32> {attune.kind = "output", attune.name = "head.input", attune.shape = [1, "batch", "seq", 8]})
// CHECK: %[[START:.*]] = tensor.empty(%{{.*}}, %{{.*}}) : tensor<2x?x?x8xf32>
// CHECK: %[[LOOP:.*]]:2 = scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[SO:.*]] = %[[START]])
// CHECK: %[[CALL:.*]]:2 = func.call @block(%{{.*}}, %{{.*}}, %[[SO]])
// CHECK: scf.yield %[[CALL]]#0, %[[CALL]]#1
// CHECK: tensor.insert_slice %[[LOOP]]#0 into %{{.*}}[0, 0, 0, 0] [1, %{{.*}}, %{{.*}}, 8] [1, 1, 1, 1]
// CHECK: return %{{.*}}, %[[LOOP]]#1, %{{.*}}

// Those alone that are named, in any layer.
// RUN: attune-opt %s --attune-tap-inputs=match=h.1.fc | FileCheck %s --check-prefix=ONE
// ONE: func.func @forward
// ONE-SAME: attune.name = "fc.input"
// ONE-NOT: head.input

// RUN: not attune-opt %s --attune-tap-inputs=match=[ 2>&1 | FileCheck %s --check-prefix=GLOB
// GLOB: error: '[' of attune-tap-inputs is no pattern of names

// Of a mixture the experts of each token are an output, too.
// RUN: attune-opt %s --attune-tap-inputs=match=up | FileCheck %s --check-prefix=EXPERTS
// EXPERTS: func.func @mixture
// EXPERTS-SAME: tensor<1x?x?x8xf32> {attune.kind = "output", attune.name = "up.input", attune.shape = [1, "batch", "seq", 8]}
// EXPERTS-SAME: tensor<1x?x?x2xi64> {attune.kind = "output", attune.name = "up.experts", attune.shape = [1, "batch", "seq", 2]}
// EXPERTS: %[[CHOICE:.*]], %{{.*}} = attune.router
// EXPERTS: tensor.insert_slice %[[CHOICE]] into

attune.weight @fc stacked : tensor<2x8x8xf32> from [#attune.source<"h.{i}.fc">]
attune.weight @head : tensor<16x8xf32> from [#attune.source<"head">]
attune.weight @table : tensor<32x8xf32> from [#attune.source<"table">]
func.func private @block(%i: index, %x: tensor<?x?x8xf32>) -> tensor<?x?x8xf32> {
  %w = attune.weight_get @fc[%i] : tensor<8x8xf32>
  %y = attune.linear %x, %w : tensor<?x?x8xf32>, tensor<8x8xf32> -> tensor<?x?x8xf32>
  return %y : tensor<?x?x8xf32>
}
func.func @forward(%ids: tensor<?x?xi64> {attune.kind = "input", attune.max = 32 : i64, attune.name = "ids", attune.shape = ["batch", "seq"]}) -> (tensor<?x?x16xf32> {attune.kind = "output", attune.name = "logits", attune.shape = ["batch", "seq", 16]}) attributes {attune.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %t = attune.weight_get @table : tensor<32x8xf32>
  %x = attune.embedding %ids, %t : tensor<?x?xi64>, tensor<32x8xf32> -> tensor<?x?x8xf32>
  %r = scf.for %i = %c0 to %c2 step %c1 iter_args(%a = %x) -> (tensor<?x?x8xf32>) {
    %n = func.call @block(%i, %a) : (index, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
    scf.yield %n : tensor<?x?x8xf32>
  }
  %w = attune.weight_get @head : tensor<16x8xf32>
  %y = attune.linear %r, %w : tensor<?x?x8xf32>, tensor<16x8xf32> -> tensor<?x?x16xf32>
  return %y : tensor<?x?x16xf32>
}
attune.weight @router : tensor<4x8xf32> from [#attune.source<"router">]
attune.weight @up parts 4 : tensor<4x16x8xf32> from [#attune.source<"up.{e}">]
attune.weight @down parts 4 : tensor<4x8x16xf32> from [#attune.source<"down.{e}">]
func.func @mixture(%ids: tensor<?x?xi64> {attune.kind = "input", attune.max = 32 : i64, attune.name = "ids", attune.shape = ["batch", "seq"]}) -> (tensor<?x?x8xf32> {attune.kind = "output", attune.name = "y", attune.shape = ["batch", "seq", 8]}) attributes {attune.entry} {
  %t = attune.weight_get @table : tensor<32x8xf32>
  %x = attune.embedding %ids, %t : tensor<?x?xi64>, tensor<32x8xf32> -> tensor<?x?x8xf32>
  %r = attune.weight_get @router : tensor<4x8xf32>
  %l = attune.linear %x, %r : tensor<?x?x8xf32>, tensor<4x8xf32> -> tensor<?x?x4xf32>
  %e, %s = attune.router %l scoring <softmax> : tensor<?x?x4xf32> -> tensor<?x?x2xi64>, tensor<?x?x2xf32>
  %u = attune.weight_get @up : tensor<4x16x8xf32>
  %d = attune.weight_get @down : tensor<4x8x16xf32>
  %y = attune.moe %x, %e, %s, %u, %d activation <silu> : tensor<?x?x8xf32>, tensor<?x?x2xi64>, tensor<?x?x2xf32>, tensor<4x16x8xf32>, tensor<4x8x16xf32> -> tensor<?x?x8xf32>
  return %y : tensor<?x?x8xf32>
}
