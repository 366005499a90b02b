// RUN: attune-opt %s --pass-pipeline="builtin.module(convert-attune-to-gpu{multiprocessors=108},func.func(canonicalize,cse))" --split-input-file | FileCheck %s

// Bytes of the next step are loaded before a step's products and stored behind
// them, as numbers of the queries' type. Two products each, for three of f32:
// a byte is one number of tf32.
// CHECK-LABEL: func.func @int8(
// CHECK:         gpu.launch {{.+}} workgroup(%{{.+}} : memref<4096xf32, 3>, %{{.+}} : memref<4096xf32, 3>, %[[KEYS:.+]] : memref<128xf32, 3>, %[[VALUES:.+]] : memref<128xf32, 3>)
// CHECK-NOT:     device_async_copy
// CHECK:           scf.for
// CHECK:             gpu.barrier
// CHECK:             vector.load {{.+}} {alignment = 4 : i64} : memref<?x2x?x36xi8>, vector<4xi8>
// CHECK:             vector.load {{.+}} {alignment = 4 : i64} : memref<?x2x?x36xi8>, vector<4xi8>
// CHECK:             nvvm.mma.sync {{.+}}<tf32>
// CHECK:             memref.load %[[KEYS]]
// CHECK:             llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
// CHECK:             memref.load %[[VALUES]]
// CHECK:             nvvm.mma.sync {{.+}}<tf32>
// CHECK:             arith.xori %{{.+}} : vector<4xi32>
// CHECK:             vector.store {{.+}} {alignment = 16 : i64} : memref<4096xf32, 3>, vector<4xf32>
// CHECK:             memref.store %{{.+}}, %[[KEYS]]
// CHECK:             memref.store %{{.+}}, %[[VALUES]]
func.func @int8(%q: memref<?x4x?x32xf32>, %k: memref<?x2x?x36xi8>, %d: memref<?x4x?x32xf32>) {
  attune.attention_into %q, %k, %k scale 0.125 causal <bottom_right> into %d : memref<?x4x?x32xf32>, memref<?x2x?x36xi8>, memref<?x2x?x36xi8>, memref<?x4x?x32xf32>
  return
}

// -----

// Floats of 8 bits are numbers of bf16; a chunk of shared memory has eight.
// CHECK-LABEL: func.func @fp8(
// CHECK:           vector.load {{.+}} {alignment = 4 : i64} : memref<?x2x?x68xf8E4M3FN>, vector<4xf8E4M3FN>
// CHECK:           nvvm.mma.sync {{.+}}<bf16>
// CHECK-NOT:       arith.xori %{{.+}} : vector<4xi32>
// CHECK:           vector.store {{.+}} {alignment = 16 : i64} : memref<8192xbf16, 3>, vector<8xbf16>
func.func @fp8(%q: memref<?x8x?x64xbf16>, %k: memref<?x2x?x68xf8E4M3FN>, %d: memref<?x8x?x64xbf16>) {
  attune.attention_into %q, %k, %k scale 0.125 causal <bottom_right> into %d : memref<?x8x?x64xbf16>, memref<?x2x?x68xf8E4M3FN>, memref<?x2x?x68xf8E4M3FN>, memref<?x8x?x64xbf16>
  return
}
