// RUN: attune-opt %s --pass-pipeline="builtin.module(convert-attune-to-gpu{multiprocessors=132 dependent})" --split-input-file --verify-diagnostics | FileCheck %s

// Blocks of up to eight rows read the rows themselves, and their gains before the
// kernel that makes the rows has ended. Squares are one sum more, four warps have
// one each; more rows come normalised.
// CHECK-LABEL: func.func @rms(
// CHECK-SAME:    %[[X:[^:]+]]: memref<?x64xbf16>, %[[O:[^:]+]]: memref<?x64xf32>, %[[G:[^:]+]]: memref<64xbf16>
// CHECK:           gpu.launch {{.+}} workgroup(%{{.+}} : memref<32xf32, 3>, %[[SQUARES:.+]] : memref<4xf32, 3>)
// CHECK:             vector.load %[[G]]
// CHECK:             nvvm.griddepcontrol wait
// CHECK-NOT:         vector.load %[[X]]
// CHECK:             vector.load %[[O]]
// CHECK-NOT:         math.rsqrt
// CHECK:             vector.store %{{.+}}, %[[SQUARES]]
// CHECK:             gpu.barrier
// CHECK-NOT:         gpu.barrier
// CHECK:             math.rsqrt
// CHECK:           gpu.launch {{.+}} workgroup(%{{.+}} : memref<128xf32, 3>, %{{.+}} : memref<16xf32, 3>)
// CHECK:             math.rsqrt
// CHECK:           gpu.launch
// CHECK-NOT:       math.rsqrt
func.func @rms(%x: memref<?x64xbf16>, %o: memref<?x64xf32>, %g: memref<64xbf16>, %w: memref<12x64x8xbf16>, %d: memref<?x96xf32>) {
  attune.normed_linear_into %x of %o gamma %g : memref<64xbf16> eps 1.0e-5 few 8, %w into %d : memref<?x64xbf16>, memref<?x64xf32>, memref<12x64x8xbf16>, memref<?x96xf32>
  return
}

// -----

// One row only. Of a layer norm the mean and then the rest are known before.
// CHECK-LABEL: func.func @layer(
// CHECK:           gpu.launch {{.+}} workgroup(%{{.+}} : memref<32xf32, 3>, %{{.+}} : memref<8xf32, 3>)
// CHECK:             nvvm.griddepcontrol wait
// CHECK:             gpu.barrier
// CHECK:             gpu.barrier
// CHECK:             math.rsqrt
// CHECK:             gpu.barrier
// CHECK:           gpu.launch {{.+}} workgroup(%{{.+}} : memref<128xf32, 3>)
// CHECK-NOT:       math.rsqrt
func.func @layer(%x: memref<?x64xbf16>, %o: memref<?x64xf32>, %w: memref<12x64x8xbf16>, %d: memref<?x96xf32>) {
  attune.normed_linear_into %x of %o centred eps 1.0e-5 few 1, %w into %d : memref<?x64xbf16>, memref<?x64xf32>, memref<12x64x8xbf16>, memref<?x96xf32>
  return
}

// -----

func.func @too_many(%x: memref<?x64xbf16>, %o: memref<?x64xf32>, %w: memref<12x64x8xbf16>, %d: memref<?x96xf32>) {
  // expected-error @+1 {{normalises up to 9 rows, but no kernel more than 8}}
  attune.normed_linear_into %x of %o eps 1.0e-5 few 9, %w into %d : memref<?x64xbf16>, memref<?x64xf32>, memref<12x64x8xbf16>, memref<?x96xf32>
  return
}
