// RUN: attune-opt %s --pass-pipeline="builtin.module(gpu.module(attune-dependent-launch))" | FileCheck %s

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @plain(
  // CHECK-NOT:     memref.load
  // CHECK:         nvvm.griddepcontrol wait
  // CHECK-NEXT:    nvvm.griddepcontrol launch_dependents
  // CHECK:         memref.load
  // CHECK-NOT:     griddepcontrol
  gpu.func @plain(%x: memref<4xf32>) kernel {
    %zero = arith.constant 0 : index
    %a = memref.load %x[%zero] : memref<4xf32>
    memref.store %a, %x[%zero] : memref<4xf32>
    gpu.return
  }

  // A kernel that says where it waits keeps what it does before.
  // CHECK-LABEL: gpu.func @waits(
  // CHECK:         memref.load
  // CHECK-NEXT:    nvvm.griddepcontrol wait
  // CHECK-NEXT:    nvvm.griddepcontrol launch_dependents
  // CHECK-NEXT:    memref.store
  // CHECK-NOT:     griddepcontrol
  gpu.func @waits(%weights: memref<4xf32>, %y: memref<4xf32>) kernel {
    %zero = arith.constant 0 : index
    %a = memref.load %weights[%zero] : memref<4xf32>
    nvvm.griddepcontrol wait
    memref.store %a, %y[%zero] : memref<4xf32>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @helper(
  // CHECK-NOT:     griddepcontrol
  gpu.func @helper(%x: f32) {
    gpu.return
  }
}
