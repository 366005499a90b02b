// RUN: attune-opt %s --pass-pipeline="builtin.module(convert-attune-to-gpu{multiprocessors=108})" --split-input-file | FileCheck %s
// RUN: attune-opt %s --pass-pipeline="builtin.module(convert-attune-to-gpu{multiprocessors=108},func.func(canonicalize,cse))" --split-input-file | FileCheck %s --check-prefix=COUNT

// Numbers of 4 bits: a word has eight columns, which become floats by their bits.
// CHECK-LABEL: func.func @int4(
// CHECK:         gpu.launch {{.+}} workgroup(%{{.+}} : memref<32xf32, 3>)
// CHECK:           vector.load %{{.+}} {alignment = 16 : i64} : memref<12x8x32xi8>, vector<32xi8>
// CHECK:           vector.load %{{.+}} {alignment = 16 : i64} : memref<12x2x8xf16>, vector<8xf16>
// CHECK-NOT:       arith.uitofp
// CHECK:           gpu.shuffle xor
// Tiles: they pass through the ring as they are stored, 64 bytes of each panel.
// CHECK:         gpu.launch {{.+}} threads({{.+}}) in (%{{.+}} = %c128{{.*}}, {{.+}}) workgroup(%{{.+}} : memref<4096xf32, 3>, %{{.+}} : memref<2048xi8, 3>)
// CHECK:           nvgpu.device_async_copy {{.+}}, 16, %{{.+}} {bypassL1} : memref<12x8x32xi8> to
// CHECK:           nvvm.mma.sync {{.+}} multiplicandAPtxType = #nvvm.mma_type<bf16>
// CHECK-NOT:     attune.quantized_linear_into
func.func @int4(%x: memref<?x64xf32>, %w: memref<12x8x32xi8>, %t: memref<12x2x8xf16>, %d: memref<?x96xf32>) {
  attune.quantized_linear_into %x, %w scales %t into %d : memref<?x64xf32>, memref<12x8x32xi8>, memref<12x2x8xf16>, memref<?x96xf32>
  return
}

// -----

// Three parts of activations in f32 times four tiles of columns, two of rows, as
// with weights of 16 bits; then each of the eight sums meets its scales.
// COUNT-LABEL: func.func @parts(
// COUNT-COUNT-24: nvvm.mma.sync
// COUNT-NOT:   nvvm.mma.sync
// COUNT-COUNT-8: vector.fma {{.+}} : vector<2x2xf32>
func.func @parts(%x: memref<64x32xf32>, %w: memref<8x8x32xi8>, %t: memref<8x1x8xf32>, %d: memref<64x64xf32>) {
  attune.quantized_linear_into %x, %w scales %t into %d : memref<64x32xf32>, memref<8x8x32xi8>, memref<8x1x8xf32>, memref<64x64xf32>
  return
}
