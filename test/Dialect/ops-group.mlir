// RUN: attune-opt %s | attune-opt | FileCheck %s
// RUN: attune-opt %s --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" | FileCheck %s --check-prefix=BUFFER

// Results are the destinations' buffers; nothing is copied.
// CHECK-LABEL: @mixture(
// CHECK: attune.expert_tasks_into %{{.+}} into %{{.+}}, %{{.+}}, %{{.+}} experts 8 rows 64 : tensor<?x2xi64>, tensor<?x3xi64>, tensor<?xi64>, tensor<?xi64> -> tensor<?x3xi64>, tensor<?xi64>, tensor<?xi64>
// CHECK: attune.grouped_linear_into %{{.+}}, %{{.+}} tasks %{{.+}} : tensor<?x3xi64> from %{{.+}} : tensor<?xi64> into %{{.+}} activation <silu> gated :
// BUFFER-LABEL: @mixture(
// BUFFER-NOT:   memref.copy
// BUFFER:       attune.expert_tasks_into %{{.+}} into %[[T:.+]], %[[F:.+]], %{{.+}} experts 8 rows 64 : memref<?x2xi64>, memref<?x3xi64>, memref<?xi64>, memref<?xi64>
// BUFFER-NEXT:  attune.grouped_linear_into %{{.+}}, %{{.+}} tasks %[[T]] : memref<?x3xi64> from %[[F]] : memref<?xi64> into %[[D:.+]] activation <silu> gated :
// BUFFER-NEXT:  return %[[D]]
func.func @mixture(%x: tensor<?x64xf32>, %w: tensor<8x24x64x8xbf16>, %e: tensor<?x2xi64>, %a: tensor<?x3xi64> {bufferization.writable = true}, %b: tensor<?xi64> {bufferization.writable = true}, %c: tensor<?xi64> {bufferization.writable = true}, %d: tensor<?x96xf32> {bufferization.writable = true}) -> tensor<?x96xf32> {
  %t, %f, %p = attune.expert_tasks_into %e into %a, %b, %c experts 8 rows 64
       : tensor<?x2xi64>, tensor<?x3xi64>, tensor<?xi64>, tensor<?xi64>
       -> tensor<?x3xi64>, tensor<?xi64>, tensor<?xi64>
  %y = attune.grouped_linear_into %x, %w tasks %t : tensor<?x3xi64>
       from %f : tensor<?xi64> into %d activation <silu> gated
       : tensor<?x64xf32>, tensor<8x24x64x8xbf16>, tensor<?x96xf32>
       -> tensor<?x96xf32>
  return %y : tensor<?x96xf32>
}

// CHECK-LABEL: @heads(
// CHECK: attune.grouped_linear_into %{{.+}}, %{{.+}} into %{{.+}} : tensor<?x?x12xf32>, tensor<4x3x12x8xf32>, tensor<?x?x24xf32> -> tensor<?x?x24xf32>
func.func @heads(%x: tensor<?x?x12xf32>, %w: tensor<4x3x12x8xf32>, %d: tensor<?x?x24xf32>) -> tensor<?x?x24xf32> {
  %y = attune.grouped_linear_into %x, %w into %d
       : tensor<?x?x12xf32>, tensor<4x3x12x8xf32>, tensor<?x?x24xf32>
       -> tensor<?x?x24xf32>
  return %y : tensor<?x?x24xf32>
}
