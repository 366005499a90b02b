// Sizes first, attention from the fused op down, the rest of the ladder after it.
// RUN: attune-opt %s --attune-to-tensor --dump-pass-pipeline 2>&1 >/dev/null | FileCheck %s

// CHECK: resolve-ranked-shaped-type-result-dims
// CHECK: convert-attune-attention-to-online
// CHECK: convert-attune-online-to-vector
// CHECK: convert-attune-ladder-to-linalg
// CHECK: convert-attune-to-vector
// CHECK: convert-elementwise-to-linalg
// CHECK: resolve-ranked-shaped-type-result-dims
// CHECK: canonicalize
// CHECK: cse

// Unfused, nothing is left for the passes of the fused op.
// RUN: attune-opt %s --attune-to-tensor="fuse=false" --dump-pass-pipeline 2>&1 >/dev/null | FileCheck %s --check-prefix=OFF
// OFF-NOT: online
// OFF:     convert-attune-ladder-to-linalg

module {}
