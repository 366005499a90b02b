// RUN: attune-opt %s --pass-pipeline="builtin.module(gpu.module(attune-kernel-math))" --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @scalars(
// CHECK-DAG:     math.exp %{{.+}} : vector<1xf32>
// CHECK-DAG:     math.exp2 %{{.+}} : vector<1xf32>
// CHECK-DAG:     math.sqrt %{{.+}} : f32
// CHECK-DAG:     math.rsqrt %{{.+}} : f32
// CHECK-NOT:     math.{{log|sin|cos}}
// CHECK:         return
gpu.module @kernels {
  func.func @scalars(%x: f32) -> (f32, f32, f32, f32, f32, f32, f32) {
    %0 = math.exp %x : f32
    %1 = math.exp2 %x : f32
    %2 = math.log %x : f32
    %3 = math.sqrt %x : f32
    %4 = math.sin %x : f32
    %5 = math.cos %x : f32
    %6 = math.rsqrt %x : f32
    return %0, %1, %2, %3, %4, %5, %6 : f32, f32, f32, f32, f32, f32, f32
  }
}

// -----

gpu.module @kernels {
  func.func @unknown(%x: f64) -> f64 {
    // expected-error@below {{of type 'f64' cannot be computed on a GPU}}
    %0 = math.powf %x, %x : f64
    return %0 : f64
  }
}
