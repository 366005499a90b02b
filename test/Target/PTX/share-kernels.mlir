// RUN: attune-opt %s --attune-share-kernels --split-input-file | FileCheck %s

// Kernels that differ in names alone, and one that differs in a number, one in
// what it is launched with, and one in shared memory.
// CHECK:       gpu.module @kernels {
// CHECK-NEXT:    gpu.func @first(
// CHECK:         gpu.func @other_number(
// CHECK:         gpu.func @other_threads(
// CHECK:         gpu.func @other_memory(
// CHECK-NOT:     gpu.func
// CHECK-LABEL: func.func @launches(
// CHECK:         gpu.launch_func @kernels::@first blocks
// CHECK-NEXT:    gpu.launch_func @kernels::@first blocks
// CHECK-NEXT:    gpu.launch_func @kernels::@other_number blocks
// CHECK-NEXT:    gpu.launch_func @kernels::@other_threads blocks
// CHECK-NEXT:    gpu.launch_func @kernels::@other_memory blocks
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @first(%x: memref<8xf32, 1>) kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
      %i = gpu.thread_id x
      %one = arith.constant 1.0 : f32
      memref.store %one, %x[%i] : memref<8xf32, 1>
      gpu.return
    }
    gpu.func @same(%y: memref<8xf32, 1>) kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
      %place = gpu.thread_id x
      %number = arith.constant 1.0 : f32
      memref.store %number, %y[%place] : memref<8xf32, 1>
      gpu.return
    }
    gpu.func @other_number(%x: memref<8xf32, 1>) kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
      %i = gpu.thread_id x
      %two = arith.constant 2.0 : f32
      memref.store %two, %x[%i] : memref<8xf32, 1>
      gpu.return
    }
    gpu.func @other_threads(%x: memref<8xf32, 1>) kernel attributes {known_block_size = array<i32: 4, 1, 1>} {
      %i = gpu.thread_id x
      %one = arith.constant 1.0 : f32
      memref.store %one, %x[%i] : memref<8xf32, 1>
      gpu.return
    }
    gpu.func @other_memory(%x: memref<8xf32, 1>) workgroup(%s: memref<8xf32, 3>) kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
      %i = gpu.thread_id x
      %one = arith.constant 1.0 : f32
      memref.store %one, %x[%i] : memref<8xf32, 1>
      gpu.return
    }
  }
  func.func @launches(%x: memref<8xf32, 1>) {
    %1 = arith.constant 1 : index
    %8 = arith.constant 8 : index
    gpu.launch_func @kernels::@first blocks in (%1, %1, %1) threads in (%8, %1, %1) args(%x : memref<8xf32, 1>)
    gpu.launch_func @kernels::@same blocks in (%1, %1, %1) threads in (%8, %1, %1) args(%x : memref<8xf32, 1>)
    gpu.launch_func @kernels::@other_number blocks in (%1, %1, %1) threads in (%8, %1, %1) args(%x : memref<8xf32, 1>)
    gpu.launch_func @kernels::@other_threads blocks in (%1, %1, %1) threads in (%8, %1, %1) args(%x : memref<8xf32, 1>)
    gpu.launch_func @kernels::@other_memory blocks in (%1, %1, %1) threads in (%8, %1, %1) args(%x : memref<8xf32, 1>)
    return
  }
}
