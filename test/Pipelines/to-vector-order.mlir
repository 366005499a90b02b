// Tiles become vectors before loops are dealt out: threads claim what takes long.
// RUN: attune-opt %s --attune-to-vector --dump-pass-pipeline 2>&1 >/dev/null | FileCheck %s

// CHECK: convert-attune-views-to-memref
// CHECK: convert-attune-mesh-to-calls{device=false}
// CHECK: convert-attune-online-to-vector
// CHECK: convert-attune-product-to-vector
// CHECK: attune-distribute-threads
// CHECK: canonicalize
// CHECK: loop-invariant-code-motion
// CHECK: cse

// For a GPU: launches once frames are planned.
// RUN: attune-opt %s --attune-to-vector=gpu=sm_80 --dump-pass-pipeline 2>&1 >/dev/null | FileCheck %s --check-prefix=DEVICE
// DEVICE-NOT: convert-attune-{{online|product}}-to-vector
// DEVICE: convert-attune-mesh-to-calls{device=true}
// DEVICE: attune-loops-to-kernels
// DEVICE: gpu-kernel-outlining

module {}
