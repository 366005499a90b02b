// Sizes first, attention from the fused op down, the rest of the ladder after it.
// RUN: attune-opt %s --attune-to-tensor --dump-pass-pipeline 2>&1 >/dev/null | FileCheck %s

// CHECK: resolve-ranked-shaped-type-result-dims
// CHECK: convert-attune-attention-to-online
// CHECK-NOT: convert-attune-{{online|product}}-to-vector
// CHECK-NOT: convert-attune-index-to-linalg
// CHECK: convert-attune-ladder-to-linalg
// CHECK: convert-attune-to-vector
// CHECK: attune-prefetch-tiles
// CHECK-NOT: convert-attune-{{online|product}}-to-vector
// CHECK: convert-elementwise-to-linalg
// CHECK: resolve-ranked-shaped-type-result-dims
// CHECK: canonicalize
// CHECK: cse

// On a GPU, attention is one op or the ladder, and so no tiles of online states.
// RUN: attune-opt %s --attune-to-tensor=gpu=sm_80 --dump-pass-pipeline 2>&1 >/dev/null | FileCheck %s --check-prefix=DEVICE
// DEVICE: convert-attune-attention-to-online{{.+}}cooperative=true
// DEVICE-NOT: attune-prefetch-tiles
// DEVICE-NOT: convert-attune-{{online|product}}-to-vector
// DEVICE: convert-attune-index-to-linalg
// DEVICE: convert-attune-ladder-to-linalg

// Unfused, nothing is left for the passes of the fused op.
// RUN: attune-opt %s --attune-to-tensor="fuse=false" --dump-pass-pipeline 2>&1 >/dev/null | FileCheck %s --check-prefix=OFF
// OFF-NOT: online
// OFF:     convert-attune-index-to-linalg
// OFF:     convert-attune-ladder-to-linalg

module {}
