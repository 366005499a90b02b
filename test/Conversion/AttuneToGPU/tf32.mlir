// RUN: attune-opt %s --pass-pipeline="builtin.module(convert-attune-to-gpu{tf32=true})" | FileCheck %s
// RUN: attune-opt %s --pass-pipeline="builtin.module(convert-attune-to-gpu)" | FileCheck %s --check-prefix=F32

// Each number is rounded to the nearest before one product of tf32; few rows stay
// f32.
// CHECK-LABEL: func.func @linear(
// CHECK:         nvvm.convert.float.to.tf32 %{{.+}} {rnd = #nvvm.fp_rnd_mode<rna>}
// CHECK:         nvvm.mma.sync {{.+}} multiplicandAPtxType = #nvvm.mma_type<tf32>
// CHECK-NOT:     mma_type<bf16>
// CHECK:         return
// F32-LABEL:   func.func @linear(
// F32-NOT:       nvvm.convert.float.to.tf32
// F32:           nvvm.mma.sync {{.+}} multiplicandAPtxType = #nvvm.mma_type<bf16>
// F32-NOT:       nvvm.convert.float.to.tf32
func.func @linear(%x: memref<?x64xf32>, %w: memref<12x64x8xf32>, %d: memref<?x96xf32>) {
  attune.linear_into %x, %w into %d : memref<?x64xf32>, memref<12x64x8xf32>, memref<?x96xf32>
  return
}

// Weights of 16 bits have what they are: activations in two parts of tf32.
// CHECK-LABEL: func.func @narrow_weights(
// CHECK-NOT:     nvvm.convert.float.to.tf32
// CHECK:         return
func.func @narrow_weights(%x: memref<?x64xf32>, %w: memref<12x64x8xf16>, %d: memref<?x96xf32>) {
  attune.linear_into %x, %w into %d : memref<?x64xf32>, memref<12x64x8xf16>, memref<?x96xf32>
  return
}

// Queries, keys, weights of softmax and values.
// CHECK-LABEL: func.func @attention(
// CHECK:         nvvm.convert.float.to.tf32
// CHECK:         nvvm.mma.sync {{.+}} multiplicandAPtxType = #nvvm.mma_type<tf32>
// F32-LABEL:   func.func @attention(
// F32-NOT:       nvvm.convert.float.to.tf32
// F32:           nvvm.mma.sync {{.+}} multiplicandAPtxType = #nvvm.mma_type<tf32>
// F32-NOT:       nvvm.convert.float.to.tf32
func.func @attention(%q: memref<?x4x?x32xf32>, %k: memref<?x2x?x32xf32>, %v: memref<?x2x?x32xf32>, %d: memref<?x4x?x32xf32>) {
  attune.attention_into %q, %k, %v scale 0.25 causal <bottom_right> into %d
    : memref<?x4x?x32xf32>, memref<?x2x?x32xf32>, memref<?x2x?x32xf32>, memref<?x4x?x32xf32>
  return
}
