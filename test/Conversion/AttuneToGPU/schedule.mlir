// RUN: attune-opt %s --pass-pipeline="builtin.module(convert-attune-to-gpu)" --split-input-file | FileCheck %s
// RUN: attune-opt %s --pass-pipeline="builtin.module(convert-attune-to-gpu{warpgroups})" --split-input-file | FileCheck %s --check-prefix=GROUPS

// Beside few rows there is the one tile that the schedule names.
// CHECK-LABEL: func.func @named(
// CHECK:         gpu.launch {{.+}} workgroup(%{{.+}} : memref<32xf32, 3>)
// CHECK:         gpu.launch {{.+}} workgroup(%{{.+}} : memref<128xf32, 3>)
// CHECK:         gpu.launch {{.+}} threads({{.+}}) in (%{{.+}} = %c64{{.*}}, {{.+}}) workgroup(%{{.+}} : memref<5120xbf16, 3>, %{{.+}} : memref<10240xbf16, 3>)
// CHECK-NOT:     gpu.launch
func.func @named(%x: memref<?x64xbf16>, %w: memref<12x64x8xbf16>, %d: memref<?x96xbf16>) {
  attune.linear_into %x, %w into %d {attune.tile_rows = 32, attune.tile_columns = 64, attune.stages = 5}
    : memref<?x64xbf16>, memref<12x64x8xbf16>, memref<?x96xbf16>
  return
}

// -----

// Eight warps; warpgroups where the chip has them.
// CHECK-LABEL: func.func @attention(
// CHECK:         gpu.launch {{.+}} threads({{.+}}) in (%{{.+}} = %c256{{.*}}, {{.+}}) workgroup(%{{.+}} : memref<3072xbf16, 3>, %{{.+}} : memref<3072xbf16, 3>)
// CHECK-NOT:     gpu.launch
// GROUPS-LABEL: func.func @attention(
// GROUPS:         gpu.launch {{.+}} threads({{.+}}) in (%{{.+}} = %c128{{.*}}, {{.+}}) workgroup(%{{.+}} : memref<8192xbf16, 3>, %{{.+}} : memref<8192xbf16, 3>)
// GROUPS:         gpu.launch {{.+}} threads({{.+}}) in (%{{.+}} = %c384{{.*}}
// GROUPS:           nvvm.wgmma.mma_async {{.+}} <m = 64, n = 16, k = 16>
func.func @attention(%q: memref<1x8x?x64xbf16>, %d: memref<1x8x?x64xbf16>) {
  attune.attention_into %q, %q, %q scale 0.125 into %d {attune.query_block = 128, attune.key_block = 16, attune.stages = 3}
    : memref<1x8x?x64xbf16>, memref<1x8x?x64xbf16>, memref<1x8x?x64xbf16>, memref<1x8x?x64xbf16>
  return
}
