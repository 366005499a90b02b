// RUN: attune-opt %s --attune-pack-weights --split-input-file --verify-diagnostics
// RUN: not attune-opt %s --attune-pack-weights="panel-width=0" --split-input-file 2>&1 | FileCheck %s

// CHECK: error: panel-width must be positive, not 0

// One layout cannot serve both: the halves of a gated matrix are interleaved.
attune.weight @w : tensor<20x12xf32> from [#attune.source<"w">]
func.func @plain_and_gated(%x: tensor<?x?x12xf32>) -> (tensor<?x?x20xf32>, tensor<?x?x10xf32>) {
  %w = attune.weight_get @w : tensor<20x12xf32>
  %y = attune.linear %x, %w : tensor<?x?x12xf32>, tensor<20x12xf32> -> tensor<?x?x20xf32>
  // expected-error@below {{and another linear layer use @w, but only one of them is gated}}
  %z = attune.linear %x, %w activation <silu> gated : tensor<?x?x12xf32>, tensor<20x12xf32> -> tensor<?x?x10xf32>
  return %y, %z : tensor<?x?x20xf32>, tensor<?x?x10xf32>
}
