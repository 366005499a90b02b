// RUN: attune-opt %s --pass-pipeline="builtin.module(gpu.module(attune-kernel-limits))" | FileCheck %s

gpu.module @kernels {
  // CHECK: gpu.func @shares(%{{.+}}: f32) workgroup(%{{.+}} : memref<64xf32, 3> {llvm.align = 16 : i64}) kernel attributes {nvvm.minctasm = 1 : i32}
  gpu.func @shares(%x: f32) workgroup(%s : memref<64xf32, 3>) kernel {
    gpu.return
  }

  // CHECK: gpu.func @alone(%{{.+}}: f32) kernel attributes {nvvm.minctasm = 1 : i32}
  gpu.func @alone(%x: f32) kernel {
    gpu.return
  }

  // CHECK: gpu.func @helper(%{{.+}}: f32) {
  gpu.func @helper(%x: f32) {
    gpu.return
  }
}
