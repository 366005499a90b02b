// RUN: attune-opt %s --convert-attune-ladder-to-linalg | FileCheck %s
// RUN: attune-opt %s --convert-attune-ladder-to-linalg --canonicalize --cse \
// RUN:   --one-shot-bufferize="allow-unknown-ops bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" --canonicalize \
// RUN: | FileCheck %s --check-prefix=BUF

// CHECK-DAG: #[[$SHARED:.+]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1 floordiv 2, d3, d4)>
// CHECK-DAG: #[[$ONE:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, 0, 0, d3)>

// Query heads find their key head by division; the mask is broadcast; no row of
// -inf is subtracted from itself.
// CHECK-LABEL: @chain(
// CHECK-NOT:     attune.
// CHECK:         linalg.generic {indexing_maps = [#{{.+}}, #[[$SHARED]], #{{.+}}], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
// CHECK:         linalg.generic {indexing_maps = [#[[$ONE]],
// CHECK:           math.tanh
// CHECK:           arith.select %{{.+}}, %{{.+}}, %{{.+}} : f32
// CHECK:         linalg.generic {{.+}} iterator_types = ["parallel", "parallel", "parallel", "reduction"]
// CHECK:           arith.maximumf
// CHECK:         arith.cmpf oeq
// CHECK:         math.exp
// CHECK:         linalg.generic {indexing_maps = [#{{.+}}, #[[$SHARED]], #{{.+}}], iterator_types = ["parallel", "parallel", "parallel", "reduction", "parallel"]}
// CHECK-NOT:     attune.

// Scores, row statistics and the result: nothing else is allocated or copied.
// BUF-LABEL: @chain(
// BUF:         memref.alloc({{.+}}) {{.*}}: memref<?x4x?x?xf32>
// BUF-NOT:     memref<?x4x?x?xf32> to memref
// BUF:         memref.alloc({{.+}}) {{.*}}: memref<?x4x?xf32>
// BUF-NOT:     memref.alloc
// BUF-NOT:     memref.copy
// BUF:         memref.alloc({{.+}}) {{.*}}: memref<?x4x?x16xf32>
// BUF-NOT:     memref.alloc
// BUF-NOT:     memref.copy
// BUF:         return
func.func @chain(%q: tensor<?x4x?x8xf32>, %k: tensor<?x2x?x8xf32>, %v: tensor<?x2x?x16xf32>, %mask: tensor<?x1x1x?xi1>) -> tensor<?x4x?x16xf32> {
  %e = attune.similarity %q, %k scale 0.5 : tensor<?x4x?x8xf32>, tensor<?x2x?x8xf32> -> tensor<?x4x?x?xf32>
  %f = attune.mask_scores %e mask %mask : tensor<?x1x1x?xi1> causal <bottom_right> window 5 softcap 30.0 : tensor<?x4x?x?xf32>
  %a = attune.softmax %f : tensor<?x4x?x?xf32>
  %y = attune.weighted_sum %a, %v : tensor<?x4x?x?xf32>, tensor<?x2x?x16xf32> -> tensor<?x4x?x16xf32>
  return %y : tensor<?x4x?x16xf32>
}

// Nothing to do.
// CHECK-LABEL: @no_op(
// CHECK-NEXT:    attune.rms_norm
// CHECK-NEXT:    return
func.func @no_op(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %y = attune.rms_norm %x eps 1.0e-5 : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
