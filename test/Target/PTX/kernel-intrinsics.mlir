// RUN: attune-opt %s --pass-pipeline="builtin.module(gpu.module(attune-kernel-intrinsics))" | FileCheck %s

// CHECK-LABEL: llvm.func @intrinsics(
// CHECK:         llvm.call_intrinsic "llvm.sqrt"(%{{.+}}) : (f32) -> f32
// CHECK:         llvm.call_intrinsic "llvm.fma"(%{{.+}}, %{{.+}}, %{{.+}}) : (vector<4xf32>, vector<4xf32>, vector<4xf32>) -> vector<4xf32>
// CHECK:         llvm.intr.maxnum
gpu.module @kernels {
  llvm.func @intrinsics(%x: f32, %v: vector<4xf32>) -> vector<4xf32> {
    %0 = llvm.intr.sqrt(%x) : (f32) -> f32
    %1 = llvm.intr.fma(%v, %v, %v) : (vector<4xf32>, vector<4xf32>, vector<4xf32>) -> vector<4xf32>
    %2 = llvm.intr.maxnum(%1, %v) : (vector<4xf32>, vector<4xf32>) -> vector<4xf32>
    llvm.return %2 : vector<4xf32>
  }
}
