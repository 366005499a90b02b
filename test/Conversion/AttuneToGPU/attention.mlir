// RUN: attune-opt %s --pass-pipeline="builtin.module(convert-attune-to-gpu{multiprocessors=108})" --split-input-file | FileCheck %s
// RUN: attune-opt %s --pass-pipeline="builtin.module(convert-attune-to-gpu{multiprocessors=108},func.func(canonicalize,cse))" --split-input-file | FileCheck %s --check-prefix=COUNT

// A block for 64 rows: two stages of 64 keys and as many values. Queries are read
// once; every step waits for its copies and starts those of the next.
// CHECK-LABEL: func.func @bf16(
// CHECK:         gpu.launch {{.+}} threads({{.+}}) in (%{{.+}} = %c128{{.*}}, {{.+}}) workgroup(%{{.+}} : memref<8192xbf16, 3>, %{{.+}} : memref<8192xbf16, 3>)
// CHECK:           vector.load %{{.+}} {alignment = 4 : i64} : memref<?x8x?x64xbf16>, vector<2xbf16>
// CHECK:           nvgpu.device_async_copy {{.+}}, 8, %{{.+}} {bypassL1} : memref<?x2x?x64xbf16> to
// CHECK:           nvvm.cp.async.commit.group
// CHECK:           scf.for
// CHECK:             nvvm.cp.async.wait.group 0
// CHECK-NEXT:        gpu.barrier
// CHECK:             nvgpu.ldmatrix {{.+}} {numTiles = 4 : i32, transpose = false}
// CHECK:             nvvm.mma.sync {{.+}}<bf16>
// Only a tile on an edge is masked.
// CHECK:             scf.if
// CHECK:               arith.cmpi {{.+}} : i32
// CHECK:             gpu.shuffle xor
// CHECK:             llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
// CHECK:             nvgpu.ldmatrix {{.+}} {numTiles = 4 : i32, transpose = true}
// CHECK:             nvvm.mma.sync {{.+}}<bf16>
// CHECK:           vector.store {{.+}} {alignment = 4 : i64} : memref<?x8x?x64xbf16>, vector<2xbf16>
// CHECK-NOT:     attune.attention_into
// 4 steps of the width for 8 tiles of keys, 4 of keys for 8 tiles of values.
// COUNT-LABEL: func.func @bf16(
// COUNT-COUNT-64: nvvm.mma.sync
// COUNT-NOT:   nvvm.mma.sync
func.func @bf16(%q: memref<?x8x?x64xbf16>, %k: memref<?x2x?x64xbf16>, %v: memref<?x2x?x64xbf16>, %d: memref<?x8x?x64xbf16>) {
  attune.attention_into %q, %k, %v scale 0.125 causal <bottom_right> into %d : memref<?x8x?x64xbf16>, memref<?x2x?x64xbf16>, memref<?x2x?x64xbf16>, memref<?x8x?x64xbf16>
  return
}

// -----

// A result of f32 takes weights in three parts.
// COUNT-LABEL: func.func @parts(
// COUNT-COUNT-128: nvvm.mma.sync
// COUNT-NOT:   nvvm.mma.sync
func.func @parts(%q: memref<1x8x?x64xbf16>, %d: memref<1x8x?x64xf32>) {
  attune.attention_into %q, %q, %q scale 0.125 into %d : memref<1x8x?x64xbf16>, memref<1x8x?x64xbf16>, memref<1x8x?x64xbf16>, memref<1x8x?x64xf32>
  return
}

// -----

// f32: two parts of tf32, three products, of 8 at a time.
// COUNT-LABEL: func.func @wide(
// COUNT:       workgroup(%{{.+}} : memref<4096xf32, {{.+}}>, %{{.+}} : memref<4096xf32, {{.+}}>)
// COUNT-COUNT-192: nvvm.mma.sync {{.+}}<tf32>{{.+}}k = 8
// COUNT-NOT:   nvvm.mma.sync
func.func @wide(%q: memref<1x8x?x32xf32>, %d: memref<1x8x?x32xf32>) {
  attune.attention_into %q, %q, %q scale 0.125 into %d : memref<1x8x?x32xf32>, memref<1x8x?x32xf32>, memref<1x8x?x32xf32>, memref<1x8x?x32xf32>
  return
}

// -----

// Few queries of a cache: blocks of a warp leave their states, others merge
// them. The host decides. Rows of a view start where those of the cache do.
// COUNT-LABEL: func.func @cached(
// CHECK-LABEL: func.func @cached(
// CHECK:         %[[SUMS:.+]] = memref.alloc(%{{.+}}) : memref<?x64xf32>
// CHECK:         %[[STATES:.+]] = memref.alloc(%{{.+}}) : memref<?x2xf32>
// CHECK:         arith.cmpi slt, %{{.+}}, %c3{{.*}} : index
// CHECK:         scf.if
// CHECK:           gpu.launch {{.+}} threads({{.+}}) in (%{{.+}} = %c32{{.*}}, {{.+}})
// CHECK:             nvgpu.device_async_copy {{.+}}, 4, %{{.+}} {bypassL1} : memref<1x2x?x64xf32, strided<[?, ?, 64, 1], offset: ?>> to
// CHECK:             vector.store {{.+}}, %[[SUMS]]
// CHECK:             vector.store {{.+}}, %[[STATES]]
// CHECK:           gpu.launch {{.+}} threads({{.+}}) in (%{{.+}} = %c128{{.*}}, {{.+}})
// CHECK-NOT:         nvvm.mma.sync
// CHECK:             memref.load %[[STATES]]
// CHECK:             memref.store
// CHECK:         } else {
// CHECK:           gpu.launch {{.+}} threads({{.+}}) in (%{{.+}} = %c128{{.*}}, {{.+}})
// CHECK:             nvvm.mma.sync
func.func @cached(%q: memref<1x16x?x64xf32>, %c: memref<4x1x2x?x64xf32>, %layer: index, %n: index, %d: memref<1x16x?x64xf32>) {
  %k = memref.subview %c[%layer, 0, 0, 0, 0] [1, 1, 2, %n, 64] [1, 1, 1, 1, 1] : memref<4x1x2x?x64xf32> to memref<1x2x?x64xf32, strided<[?, ?, 64, 1], offset: ?>>
  attune.attention_into %q, %k, %k scale 0.125 split_keys into %d : memref<1x16x?x64xf32>, memref<1x2x?x64xf32, strided<[?, ?, 64, 1], offset: ?>>, memref<1x2x?x64xf32, strided<[?, ?, 64, 1], offset: ?>>, memref<1x16x?x64xf32>
  return
}
