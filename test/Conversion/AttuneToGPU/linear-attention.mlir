// RUN: attune-opt %s --pass-pipeline="builtin.module(convert-attune-to-gpu{multiprocessors=108},canonicalize,cse)" --split-input-file | FileCheck %s --implicit-check-not=memref.alloca

// Few parts are one: a block of 128 threads has 32 columns of a head and shares
// sums, z, features of keys, values, features of queries and scores; up to four
// tokens have a smaller one. Else the sums of parts, what is before each, rows.
// CHECK-LABEL: func.func @causal(
// CHECK:         memref.alloc(%{{.+}}) : memref<?x64x65xf32>
// CHECK:         scf.if
// CHECK:           scf.if
// CHECK:             gpu.launch {{.+}} threads({{.+}}) in (%{{.+}} = %c128, {{.+}}) workgroup(%{{.+}} : memref<1024xf32, 3>, %{{.+}} : memref<64xf32, 3>, %{{.+}} : memref<272xf32, 3>, %{{.+}} : memref<64xf32, 3>, %{{.+}} : memref<272xf32, 3>, %{{.+}} : memref<16xf32, 3>)
// CHECK:           } else {
// CHECK:             gpu.launch {{.+}} workgroup(%[[S:.+]] : memref<2048xf32, 3>, %[[Z:.+]] : memref<64xf32, 3>, %[[F:.+]] : memref<2176xf32, 3>, %[[W:.+]] : memref<1024xf32, 3>, %[[G:.+]] : memref<2176xf32, 3>, %[[A:.+]] : memref<1152xf32, 3>)
// CHECK:               memref.load %arg3[
// CHECK:               memref.store {{.+}}, %[[S]]
// CHECK:               scf.for
// CHECK:                 vector.load %arg1[{{.+}} : memref<1x2x?x64xbf16>, vector<4xbf16>
// CHECK:                 vector.store {{.+}}, %[[F]]
// CHECK:                 vector.store {{.+}}, %[[W]]
// CHECK:                 vector.store {{.+}}, %[[G]]
// CHECK:                 gpu.barrier
// CHECK:                 memref.store {{.+}}, %[[A]]
// CHECK:                 gpu.barrier
// A row's part of the result, beside which what normalises it is summed.
// CHECK:                 scf.for {{.+}} -> (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)
// CHECK-DAG:               vector.load %[[G]]
// CHECK-DAG:               vector.load %[[S]]
// CHECK-DAG:               vector.load %[[Z]]
// CHECK:                 arith.divf
// CHECK:                 vector.store {{.+}}, %arg4[
// CHECK:                 gpu.barrier
// CHECK:                 vector.store {{.+}}, %[[S]]
// CHECK:                 memref.store {{.+}}, %[[Z]]
// CHECK:                 gpu.barrier
// CHECK:               memref.store {{.+}}, %arg5[
// CHECK:         } else {
// CHECK-COUNT-3:   gpu.launch
// CHECK-NOT:     gpu.launch
func.func @causal(%q: memref<1x8x?x64xbf16>, %k: memref<1x2x?x64xbf16>, %v: memref<1x2x?x64xbf16>, %s0: memref<1x2x64x65xf32>, %d: memref<1x8x?x64xbf16>, %t: memref<1x2x64x65xf32>) {
  attune.linear_attention_into %q, %k, %v <elu_plus_one> causal normalised 1.0e-6 state %s0 : memref<1x2x64x65xf32> into %d sums %t : memref<1x2x64x65xf32>
    : memref<1x8x?x64xbf16>, memref<1x2x?x64xbf16>, memref<1x2x?x64xbf16>, memref<1x8x?x64xbf16>
  return
}

// -----

// All keys come first. Rows have no scores, nor keys.
// CHECK-LABEL: func.func @all_keys(
// CHECK:         gpu.launch {{.+}} workgroup(%{{.+}} : memref<256xf32, 3>, %{{.+}} : memref<32xf32, 3>, %{{.+}} : memref<1152xf32, 3>, %{{.+}} : memref<256xf32, 3>)
// CHECK:           memref.load %arg3[{{.+}} : memref<1x1x1x7xi1>
// CHECK:         gpu.launch
// CHECK:         gpu.launch {{.+}} workgroup(%{{.+}} : memref<256xf32, 3>, %{{.+}} : memref<32xf32, 3>, %{{.+}} : memref<1152xf32, 3>)
// CHECK-NOT:       arith.divf
// CHECK-NOT:     gpu.launch
func.func @all_keys(%q: memref<2x2x9x31xf32>, %k: memref<2x2x7x31xf32>, %v: memref<2x2x7x5xf32>, %m: memref<1x1x1x7xi1>, %d: memref<2x2x9x5xf32>) {
  attune.linear_attention_into %q, %k, %v <relu> mask %m : memref<1x1x1x7xi1> into %d
    : memref<2x2x9x31xf32>, memref<2x2x7x31xf32>, memref<2x2x7x5xf32>, memref<2x2x9x5xf32>
  return
}
