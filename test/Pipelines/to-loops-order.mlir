// Destinations before bufferization; frames last, when it is known what calls
// what.
// RUN: attune-opt %s --attune-to-loops --dump-pass-pipeline 2>&1 >/dev/null | FileCheck %s

// CHECK: attune-destination-passing
// CHECK: convert-attune-weights-to-memref
// CHECK-NOT: convert-attune-views-to-memref
// CHECK: empty-tensor-to-alloc-tensor
// CHECK: one-shot-bufferize
// CHECK: attune-fold-views
// CHECK: drop-equivalent-buffer-results
// CHECK: attune-fold-views
// CHECK: attune-pad-rows
// CHECK: attune-copies-to-loops
// CHECK: convert-linalg-to-parallel-loops
// CHECK: attune-hoist-buffers
// CHECK: attune-outline-kernels
// CHECK: attune-plan-frames
// CHECK-NOT: attune-distribute-threads

// For a GPU: products once there are buffers.
// RUN: attune-opt %s --attune-to-loops=gpu=sm_80 --dump-pass-pipeline 2>&1 >/dev/null | FileCheck %s --check-prefix=DEVICE
// DEVICE: one-shot-bufferize
// DEVICE: drop-equivalent-buffer-results
// DEVICE: convert-attune-views-to-memref
// DEVICE: attune-split-exchanges
// DEVICE-NEXT: attune-positions-outside
// DEVICE: convert-attune-to-gpu{dependent=false multiprocessors=108 tf32=false warpgroups=false}
// DEVICE: attune-copies-to-loops
// DEVICE: attune-plan-frames

module {}
