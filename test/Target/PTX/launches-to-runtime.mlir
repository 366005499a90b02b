// RUN: attune-opt %s --attune-launches-to-runtime | FileCheck %s

// Parameters are words in an array of the function's; kernels have numbers.
// CHECK:       module attributes {attune.device = {chip = "sm_80", dynamic_shared = array<i64: 0, 65536, 65536, 0>, kernels = ["second", "first", "step", "steps"], ptx = "text"}}
// CHECK-NOT:   gpu.
// CHECK:       llvm.func @attune_rt_launch(i64, i64, i64, i64, i64, i64, i64, i64, !llvm.ptr, i64)
// CHECK-LABEL: func.func @host(
// CHECK-SAME:    %[[N:.+]]: index, %[[X:.+]]: f32, %[[P:.+]]: !llvm.ptr<1>)
// CHECK-DAG:     %[[A:.+]] = llvm.alloca %{{.+}} x i64 : (i64) -> !llvm.ptr
// CHECK:         llvm.ptrtoint %[[P]] : !llvm.ptr<1> to i64
// CHECK:         llvm.store %{{.+}}, %{{.+}} : i64, !llvm.ptr
// CHECK:         arith.bitcast %[[X]] : f32 to i32
// CHECK:         arith.extui %{{.+}} : i32 to i64
// CHECK:         arith.index_cast %[[N]] : index to i64
// CHECK:         %[[ZERO:.+]] = llvm.mlir.constant(0 : i64) : i64
// CHECK:         llvm.call @attune_rt_launch(%[[ZERO]],
// CHECK-NOT:     attune_rt_instruction
// CHECK:         llvm.call @attune_rt_launch(
// An instruction of kernels of steps, which have numbers like any other.
// CHECK:         %[[STEP:.+]] = llvm.mlir.constant(2 : i64) : i64
// CHECK:         %[[THREADS:.+]] = llvm.mlir.constant(128 : i64) : i64
// CHECK:         %[[BYTES:.+]] = llvm.mlir.constant(65536 : i64) : i64
// CHECK:         %[[NUMBER:.+]] = llvm.mlir.constant(7 : i64) : i64
// CHECK:         %[[ROOM:.+]] = llvm.mlir.constant(4 : i64) : i64
// CHECK:         llvm.call @attune_rt_instruction(%[[STEP]], %[[THREADS]], %[[BYTES]], %[[NUMBER]], %[[ROOM]])
// CHECK:         %[[STEPS:.+]] = llvm.mlir.constant(3 : i64) : i64
// CHECK:         llvm.call @attune_rt_instruction(%[[STEPS]],
// CHECK-NEXT:    llvm.call @attune_rt_launch(
module attributes {gpu.container_module} {
  gpu.binary @kernels [#gpu.object<#nvvm.target<chip = "sm_80">, kernels = <[
    #gpu.kernel_metadata<"first", !llvm.func<void ()>>,
    #gpu.kernel_metadata<"second", !llvm.func<void (ptr<1>, f32, i64)>>,
    #gpu.kernel_metadata<"step", !llvm.func<void (ptr<1>, ptr<1>, ptr<1>, ptr<1>, i64)>>,
    #gpu.kernel_metadata<"steps", !llvm.func<void (ptr<1>, ptr<1>, ptr<1>, ptr<1>, i64)>>]>, assembly = "text\00">]
  func.func @host(%n: index, %x: f32, %p: !llvm.ptr<1>) {
    %c1 = arith.constant 1 : index
    %few = arith.constant 49152 : i32
    %many = arith.constant 65536 : i32
    gpu.launch_func @kernels::@second blocks in (%n, %c1, %c1) threads in (%c1, %c1, %c1) args(%p : !llvm.ptr<1>, %x : f32, %n : index)
    gpu.launch_func @kernels::@first blocks in (%n, %c1, %c1) threads in (%c1, %c1, %c1) dynamic_shared_memory_size %many
    gpu.launch_func @kernels::@first blocks in (%n, %c1, %c1) threads in (%c1, %c1, %c1) dynamic_shared_memory_size %few
    gpu.launch_func @kernels::@first blocks in (%n, %c1, %c1) threads in (%c1, %c1, %c1) {attune.instructions = [array<i64: 128, 65536, 7, 4>, array<i64: 256, 0, 5, 8>], attune.persistent_kernels = [@kernels::@step, @kernels::@steps]}
    return
  }
}
