// RUN: attune-opt %s --attune-choose-candidates --attune-shard=tp=2 --split-input-file | FileCheck %s

// Each rank chooses among its own tokens, and all among what was chosen. Logits
// are put together if nobody asks for candidates.
attune.weight @head : tensor<9x8xf32> from [#attune.source<"head">]
// CHECK-LABEL: @decode(
// CHECK-SAME: %{{.+}}: tensor<?x1x8xf32> {{.+}}, %[[K:.+]]: index {{.+}}attune.name = "candidates"
func.func @decode(%x: tensor<?x1x8xf32> {attune.kind = "input", attune.name = "x", attune.shape = ["batch", 1, 8]})
    -> (tensor<?x9xf32> {attune.kind = "output", attune.name = "logits", attune.shape = ["batch", 9]}) attributes {attune.entry} {
  %w = attune.weight_get @head : tensor<9x8xf32>
  // CHECK: %[[L:.+]] = attune.linear %{{.+}} : tensor<?x1x8xf32>, tensor<6x8xf32> -> tensor<?x1x6xf32>
  // CHECK: %[[OWN:.+]] = tensor.collapse_shape %[[L]]
  // CHECK: %[[WHOLE:.+]] = arith.cmpi eq, %[[K]], %{{.+}} : index
  // CHECK: %[[N:.+]] = arith.select %[[WHOLE]], %{{.+}}, %{{.+}} : index
  // CHECK: attune.all_gather %[[L]] columns %[[N]] into %{{.+}} : tensor<?x1x6xf32>, tensor<?x1x9xf32> -> tensor<?x1x9xf32>
  // CHECK: %[[RANK:.+]] = attune.rank
  // CHECK: %[[KNOWN:.+]] = linalg.generic {{.+}} ins(%[[OWN]] : tensor<?x6xf32>)
  // CHECK: arith.select %{{.+}}, %{{.+}}, %{{.+}} : f32
  // CHECK: %[[FEW:.+]] = arith.minsi %[[K]], %{{.+}} : index
  // CHECK: %[[IDS:.+]], %[[VALUES:.+]] = attune.top_k %[[KNOWN]] count %[[FEW]]
  // CHECK: %[[TOKENS:.+]] = linalg.generic {{.+}} ins(%[[IDS]] : tensor<?x?xi64>)
  // CHECK: attune.all_gather %[[TOKENS]] columns %[[FEW]]
  // CHECK: %[[ALL:.+]] = attune.all_gather %[[VALUES]] columns %[[FEW]]
  // CHECK: attune.top_k %[[ALL]] count %[[K]]
  // CHECK: tensor.extract
  %y = attune.linear %x, %w : tensor<?x1x8xf32>, tensor<9x8xf32> -> tensor<?x1x9xf32>
  %z = tensor.collapse_shape %y [[0, 1], [2]] : tensor<?x1x9xf32> into tensor<?x9xf32>
  return %z : tensor<?x9xf32>
}

// -----

// What is done to logits before they are chosen among needs all of them.
attune.weight @head : tensor<9x8xf32> from [#attune.source<"head">]
// CHECK-LABEL: @decode(
func.func @decode(%x: tensor<?x1x8xf32> {attune.kind = "input", attune.name = "x", attune.shape = ["batch", 1, 8]})
    -> (tensor<?x9xf32> {attune.kind = "output", attune.name = "logits", attune.shape = ["batch", 9]}) attributes {attune.entry} {
  %w = attune.weight_get @head : tensor<9x8xf32>
  // CHECK: %[[G:.+]] = attune.all_gather %{{.+}} columns %{{.+}} into
  // CHECK: attune.activation %[[G]]
  // CHECK: attune.top_k
  // CHECK-NOT: attune.all_gather
  // CHECK: return
  %y = attune.linear %x, %w : tensor<?x1x8xf32>, tensor<9x8xf32> -> tensor<?x1x9xf32>
  %a = attune.activation %y function <tanh> : tensor<?x1x9xf32>
  %z = tensor.collapse_shape %a [[0, 1], [2]] : tensor<?x1x9xf32> into tensor<?x9xf32>
  return %z : tensor<?x9xf32>
}
