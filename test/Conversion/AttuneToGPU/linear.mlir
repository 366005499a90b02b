// RUN: attune-opt %s --pass-pipeline="builtin.module(convert-attune-to-gpu{multiprocessors=108})" --split-input-file | FileCheck %s
// RUN: attune-opt %s --pass-pipeline="builtin.module(convert-attune-to-gpu{multiprocessors=108},func.func(canonicalize,cse))" --split-input-file | FileCheck %s --check-prefix=COUNT

// The host chooses by the number of rows: one, a few, small tiles, large ones.
// CHECK-LABEL: func.func @bf16(
// CHECK:         %[[ROWS:.+]] = memref.dim
// CHECK:         arith.cmpi slt, %[[ROWS]], %c9{{.*}} : index
// CHECK:         scf.if
// CHECK:           arith.cmpi slt, %[[ROWS]], %c2{{.*}} : index
// A block for each panel.
// CHECK:           gpu.launch blocks({{.+}}) in ({{.+}}) threads({{.+}}) in (%{{.+}} = %c128{{.*}}, {{.+}}) workgroup(%{{.+}} : memref<32xf32, 3>)
// CHECK:             vector.load %{{.+}} {alignment = 16 : i64} : memref<12x64x8xbf16>, vector<8xbf16>
// CHECK:             gpu.shuffle xor
// CHECK:             gpu.barrier
// Four rows share what they read.
// CHECK:           gpu.launch {{.+}} workgroup(%{{.+}} : memref<128xf32, 3>)
// Rings of four stages: 64 rows of 16 f32, and as much of eight panels.
// CHECK:           gpu.launch {{.+}} threads({{.+}}) in (%{{.+}} = %c128{{.*}}, {{.+}}) workgroup(%{{.+}} : memref<4096xf32, 3>, %{{.+}} : memref<4096xbf16, 3>)
// CHECK:             nvgpu.device_async_copy {{.+}}, 4, %{{.+}} {bypassL1} : memref<?x64xf32> to
// CHECK:             nvgpu.device_async_copy {{.+}}, 8, %{{.+}} {bypassL1} : memref<12x64x8xbf16> to
// CHECK:             nvvm.cp.async.commit.group
// CHECK:             scf.for
// CHECK:               nvvm.cp.async.wait.group 2
// CHECK-NEXT:          gpu.barrier
// CHECK:               nvgpu.ldmatrix {{.+}} {numTiles = 4 : i32, transpose = true}
// CHECK:               nvvm.mma.sync A[{{.+}}] B[{{.+}}] C[{{.+}}] {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, multiplicandAPtxType = #nvvm.mma_type<bf16>, multiplicandBPtxType = #nvvm.mma_type<bf16>, shape = #nvvm.shape<m = 16, n = 8, k = 16>}
// CHECK:             vector.store {{.+}} {alignment = 8 : i64} : memref<?x96xf32>, vector<2xf32>
// CHECK:           gpu.launch {{.+}} threads({{.+}}) in (%{{.+}} = %c256{{.*}}, {{.+}}) workgroup(%{{.+}} : memref<8192xf32, 3>, %{{.+}} : memref<8192xbf16, 3>)
// CHECK-NOT:     attune.linear_into
func.func @bf16(%x: memref<?x64xf32>, %w: memref<12x64x8xbf16>, %d: memref<?x96xf32>) {
  attune.linear_into %x, %w into %d : memref<?x64xf32>, memref<12x64x8xbf16>, memref<?x96xf32>
  return
}

// -----

// Three parts of activations in f32 times four tiles of columns, two of rows.
// COUNT-LABEL: func.func @parts(
// COUNT-COUNT-24: nvvm.mma.sync
// COUNT-NOT:   nvvm.mma.sync
func.func @parts(%x: memref<64x16xf32>, %w: memref<8x16x8xbf16>, %d: memref<64x64xf32>) {
  attune.linear_into %x, %w into %d : memref<64x16xf32>, memref<8x16x8xbf16>, memref<64x64xf32>
  return
}

// -----

// As they are if they are bf16 themselves: 32 of the depth at a time, in three
// stages.
// COUNT-LABEL: func.func @same_type(
// COUNT:       workgroup(%{{.+}} : memref<6144xbf16, {{.+}}>, %{{.+}} : memref<6144xbf16, {{.+}}>)
// COUNT-COUNT-16: nvvm.mma.sync
// COUNT-NOT:   nvvm.mma.sync
func.func @same_type(%x: memref<64x32xbf16>, %w: memref<8x32x8xbf16>, %d: memref<64x64xbf16>) {
  attune.linear_into %x, %w into %d : memref<64x32xbf16>, memref<8x32x8xbf16>, memref<64x64xbf16>
  return
}

// -----

// Weights of f16 are numbers of tf32: two parts, each in two halves.
// COUNT-LABEL: func.func @half(
// COUNT-COUNT-32: nvvm.mma.sync {{.+}}<tf32>{{.+}}k = 8
// COUNT-NOT:   nvvm.mma.sync
func.func @half(%x: memref<64x16xf32>, %w: memref<8x16x8xf16>, %d: memref<64x64xf32>) {
  attune.linear_into %x, %w into %d : memref<64x16xf32>, memref<8x16x8xf16>, memref<64x64xf32>
  return
}

// -----

// Rows of 37 f32: copies of one.
// COUNT-LABEL: func.func @odd(
// COUNT:       nvgpu.device_async_copy {{.+}}, 1, %{{.+}} : memref<64x37xf32> to
func.func @odd(%x: memref<64x37xf32>, %w: memref<8x37x8xbf16>, %d: memref<64x64xf32>) {
  attune.linear_into %x, %w into %d : memref<64x37xf32>, memref<8x37x8xbf16>, memref<64x64xf32>
  return
}

// -----

// Weights of f32: three parts of either, of whose products six count.
// COUNT-LABEL: func.func @wide(
// COUNT:       gpu.launch {{.+}} workgroup(%{{.+}} : memref<3072xf32, 3>, %{{.+}} : memref<3072xf32, 3>)
// COUNT:       nvgpu.device_async_copy {{.+}}, 4, %{{.+}} {bypassL1} : memref<8x16x8xf32> to
// COUNT-COUNT-48: nvvm.mma.sync {{.+}}<bf16>
// COUNT-NOT:   nvvm.mma.sync
// COUNT:       return
func.func @wide(%x: memref<64x16xf32>, %w: memref<8x16x8xf32>, %d: memref<64x64xf32>) {
  attune.linear_into %x, %w into %d : memref<64x16xf32>, memref<8x16x8xf32>, memref<64x64xf32>
  return
}
