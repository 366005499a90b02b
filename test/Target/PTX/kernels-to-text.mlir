// RUN: attune-opt %s --split-input-file --verify-diagnostics --attune-kernels-to-text | FileCheck %s

// CHECK-LABEL: module attributes {gpu.container_module}
// CHECK-NEXT:    gpu.binary @kernels [#gpu.object<#nvvm.target<chip = "sm_90a", features = "+ptx83">, assembly =
// CHECK-SAME:      .version 8.3\0A.target sm_90a
// CHECK-SAME:      .visible .entry second(
// CHECK-NOT:     gpu.module
module attributes {gpu.container_module} {
  gpu.module @kernels [#nvvm.target<chip = "sm_90a", features = "+ptx83">] {
    llvm.func @second() attributes {gpu.kernel, nvvm.kernel} {
      llvm.return
    }
  }
}

// -----

// expected-error@+1 {{expected one target, of nvvm}}
gpu.module @kernels {
}
