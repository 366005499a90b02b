// RUN: attune-opt %s --attune-lora-branches="names=a,b ranks=h.0.q:4,h.1.q:8,h.*.v:2,fc:3" --split-input-file | FileCheck %s
// RUN: attune-opt %s --attune-lora-branches="names=a,b ranks=h.0.q:4,h.1.q:8,h.*.v:2,fc:3" --attune-quantize=rules=int4:g32 --split-input-file | FileCheck %s --check-prefix=BITS

// Ranks of several tensors beside each other, of the greatest layer; rows of a
// tensor are rows of its B. Few bits are for the matrices alone.
// CHECK-DAG:  attune.weight @h.qkv stacked : tensor<2x96x64xf32>
// CHECK-DAG:  attune.weight @h.qkv.lora_A stacked parts 2 : tensor<2x2x10x64xf32> from [#attune.source<"h.{i}.q.lora_A.{e}">, #attune.source<"h.{i}.v.lora_A.{e}">] {attune.lora = {begins = array<i64: 0, 0>, matrix = array<i64: 96, 64>, ranks = array<i64: 8, 2>, total = 10 : i64}}
// CHECK-DAG:  attune.weight @h.qkv.lora_B stacked parts 2 : tensor<2x2x96x10xf32> from [#attune.source<"h.{i}.q.lora_B.{e}">, #attune.source<"h.{i}.k.lora_B.{e}">, #attune.source<"h.{i}.v.lora_B.{e}", rows = 32 to 64>] {attune.lora = {begins = array<i64: 0, 0, 8>, matrix = array<i64: 96, 64>, ranks = array<i64: 8, 0, 2>, total = 10 : i64}}
// CHECK-DAG:  attune.weight @fc.lora_B parts 2 : tensor<2x64x3xf32>
// BITS-DAG:   attune.weight @h.qkv stacked : tensor<2x96x64xi4>
// BITS-DAG:   attune.weight @h.qkv.lora_A stacked parts 2 : tensor<2x2x10x64xf32>
attune.weight @h.qkv stacked : tensor<2x96x64xf32> from [#attune.source<"h.{i}.q", transposed>, #attune.source<"h.{i}.k">, #attune.source<"h.{i}.v", rows = 32 to 64>]
attune.weight @fc : tensor<64x32xf32> from [#attune.source<"fc">]
attune.weight @other : tensor<96x96xf32> from [#attune.source<"other">]

// A block takes the numbers of its callers. The bias and residual stay with the base.
// CHECK-LABEL: func.func private @block(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<?x?x64xf32>, %[[R:[a-z0-9]+]]: tensor<?x?x96xf32>, %[[I:[a-z0-9]+]]: index, %[[N:[a-z0-9]+]]: tensor<?xi64>)
// CHECK:         %[[CHOSEN:.+]] = linalg.generic {{.*}} ins(%[[N]] : tensor<?xi64>) outs(%{{.+}} : tensor<?x?x1xi64>)
// CHECK:           %[[NEXT:.+]] = arith.addi %{{.+}}, %c2_i64
// CHECK:           arith.remui %[[NEXT]], %c3_i64
// CHECK-DAG:     %[[A:.+]] = attune.weight_get @h.qkv.lora_A[%[[I]]] : tensor<2x10x64xf32>
// CHECK-DAG:     %[[B:.+]] = attune.weight_get @h.qkv.lora_B[%[[I]]] : tensor<2x96x10xf32>
// CHECK-DAG:     %[[BASE:.+]] = attune.linear %[[X]], %{{.+}} residual %[[R]]
// CHECK:         attune.moe %[[X]], %[[CHOSEN]], %{{.+}}, %[[A]], %[[B]] residual %[[BASE]] : tensor<?x?x96xf32> activation <identity>
// CHECK:         attune.linear %{{.+}} activation <silu>
func.func private @block(%x: tensor<?x?x64xf32>, %r: tensor<?x?x96xf32>, %i: index) -> tensor<?x?x96xf32> {
  %w = attune.weight_get @h.qkv[%i] : tensor<96x64xf32>
  %y = attune.linear %x, %w residual %r : tensor<?x?x96xf32> : tensor<?x?x64xf32>, tensor<96x64xf32> -> tensor<?x?x96xf32>
  %v = attune.weight_get @other : tensor<96x96xf32>
  %z = attune.linear %y, %v activation <silu> : tensor<?x?x96xf32>, tensor<96x96xf32> -> tensor<?x?x96xf32>
  return %z : tensor<?x?x96xf32>
}

// Gates come behind the sum. The number of an entry's adapter is an input.
// CHECK-LABEL: func.func @forward(
// CHECK-SAME:    %[[N:[a-z0-9]+]]: tensor<?xi64> {attune.default = "adapter", attune.kind = "input", attune.max = 3 : i64, attune.name = "adapter", attune.shape = ["batch"]})
// CHECK:         %[[BASE:.+]] = attune.linear %{{.+}} -> tensor<?x?x64xf32>
// CHECK:         %[[SUM:.+]] = attune.moe {{.+}} residual %[[BASE]]
// CHECK:         %[[GATE:.+]] = tensor.extract_slice %[[SUM]][0, 0, 0] {{.+}} to tensor<?x?x32xf32>
// CHECK:         %[[UP:.+]] = tensor.extract_slice %[[SUM]][0, 0, 32]
// CHECK:         %[[ACT:.+]] = attune.activation %[[GATE]] function <silu>
// CHECK:         arith.mulf %[[ACT]], %[[UP]]
// CHECK:         call @block(%{{.+}}, %{{.+}}, %{{.+}}, %[[N]])
func.func @forward(%x: tensor<?x?x32xf32> {attune.kind = "input", attune.name = "x", attune.shape = ["batch", "seq", 32]}, %y: tensor<?x?x64xf32> {attune.kind = "input", attune.name = "y", attune.shape = ["batch", "seq", 64]}, %r: tensor<?x?x96xf32> {attune.kind = "input", attune.name = "r", attune.shape = ["batch", "seq", 96]}) -> (tensor<?x?x32xf32> {attune.kind = "output", attune.name = "z", attune.shape = ["batch", "seq", 32]}, tensor<?x?x96xf32> {attune.kind = "output", attune.name = "q", attune.shape = ["batch", "seq", 96]}) attributes {attune.entry} {
  %w = attune.weight_get @fc : tensor<64x32xf32>
  %z = attune.linear %x, %w activation <silu> gated : tensor<?x?x32xf32>, tensor<64x32xf32> -> tensor<?x?x32xf32>
  %c1 = arith.constant 1 : index
  %q = func.call @block(%y, %r, %c1) : (tensor<?x?x64xf32>, tensor<?x?x96xf32>, index) -> tensor<?x?x96xf32>
  return %z, %q : tensor<?x?x32xf32>, tensor<?x?x96xf32>
}
