// RUN: attune-opt %s --pass-pipeline="builtin.module(convert-attune-to-gpu{multiprocessors=108})" --split-input-file | FileCheck %s

// A block for each expert, whose threads share the slots.
// CHECK-LABEL: func.func @order(
// CHECK:         gpu.launch blocks({{.+}}) in (%{{.+}} = %c8{{.*}}, {{.+}}) threads({{.+}}) in (%{{.+}} = %c128{{.*}}, {{.+}}) workgroup(%{{.+}} : memref<128xi64, 3>, %{{.+}} : memref<128xi64, 3>)
// CHECK:           gpu.barrier
// CHECK:           memref.store {{.+}} : memref<?x3xi64>
// CHECK-NOT:     attune.expert_tasks_into
func.func @order(%e: memref<?x2xi64>, %t: memref<?x3xi64>, %f: memref<?xi64>, %p: memref<?xi64>) {
  attune.expert_tasks_into %e into %t, %f, %p experts 8 rows 64 : memref<?x2xi64>, memref<?x3xi64>, memref<?xi64>, memref<?xi64>
  return
}

// -----

// One row, four, or a tile for each task. Nothing is read back: a task has its
// rows in device memory, and those without any do nothing.
// CHECK-LABEL: func.func @tasks(
// CHECK:         %[[TASKS:.+]] = memref.dim %arg2, %c0
// CHECK:         gpu.launch
// CHECK:           memref.load %arg2[%{{.+}}, %c1{{.*}}] : memref<?x3xi64>
// CHECK:           scf.for
// CHECK:             memref.load %arg3
// CHECK:         gpu.launch
// CHECK:         gpu.launch
// CHECK:           memref.load %arg2[%{{.+}}, %c1{{.*}}] : memref<?x3xi64>
// CHECK:           scf.if
// CHECK:             memref.load %arg3
// CHECK:             nvgpu.device_async_copy {{.+}} : memref<8x12x64x8xbf16> to
// CHECK:             nvvm.mma.sync
// CHECK-NOT:     attune.grouped_linear_into
func.func @tasks(%x: memref<?x64xf32>, %w: memref<8x12x64x8xbf16>, %t: memref<?x3xi64>, %f: memref<?xi64>, %d: memref<?x48xf32>) {
  attune.grouped_linear_into %x, %w tasks %t : memref<?x3xi64> from %f : memref<?xi64> into %d activation <silu> gated : memref<?x64xf32>, memref<8x12x64x8xbf16>, memref<?x48xf32>
  return
}

// -----

// Batches lie one below the other; their number says which matrix.
// CHECK-LABEL: func.func @batches(
// CHECK:         memref.collapse_shape %arg0 {{\[\[}}0, 1], [2]] : memref<?x?x12xf32> into memref<?x12xf32>
// CHECK:         gpu.launch
// CHECK:           arith.remui %{{.+}}, %c4
// CHECK:         gpu.launch
// CHECK:         gpu.launch
// CHECK:           nvvm.mma.sync
func.func @batches(%x: memref<?x?x12xf32>, %w: memref<4x3x12x8xf32>, %d: memref<?x?x24xf32>) {
  attune.grouped_linear_into %x, %w into %d : memref<?x?x12xf32>, memref<4x3x12x8xf32>, memref<?x?x24xf32>
  return
}
