// RUN: attune-opt %s --pass-pipeline="builtin.module(gpu.module(attune-kernel-limits))" | FileCheck %s

gpu.module @kernels {
  // CHECK: llvm.mlir.global external @attune_dynamic_shared() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
  // CHECK: gpu.func @shares(%{{.+}}: f32) workgroup(%{{.+}} : memref<64xf32, 3> {llvm.align = 16 : i64}) kernel attributes {nvvm.minctasm = 1 : i32}
  gpu.func @shares(%x: f32) workgroup(%s : memref<64xf32, 3>) kernel {
    gpu.return
  }

  // CHECK: gpu.func @alone(%{{.+}}: f32) kernel attributes {nvvm.minctasm = 1 : i32}
  gpu.func @alone(%x: f32) kernel {
    gpu.return
  }

  // So many blocks are to be there at once.
  // CHECK: gpu.func @several() kernel attributes {nvvm.minctasm = 6 : i32}
  // CHECK-NEXT: gpu.barrier{{$}}
  gpu.func @several() kernel {
    gpu.barrier {attune.blocks_at_once = 6 : i64}
    gpu.return
  }

  // Shared memory whose size the launch says is defined elsewhere.
  // CHECK: gpu.func @dynamic(
  // CHECK: %[[P:.+]] = llvm.mlir.addressof @attune_dynamic_shared : !llvm.ptr<3>
  // CHECK: llvm.ptrtoint %[[P]] : !llvm.ptr<3> to i64
  gpu.func @dynamic(%to: memref<1xindex>) kernel {
    %zero = arith.constant 0 : index
    %shared = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %at = memref.extract_aligned_pointer_as_index %shared : memref<?xi8, #gpu.address_space<workgroup>> -> index
    memref.store %at, %to[%zero] : memref<1xindex>
    gpu.return
  }

  // CHECK: gpu.func @helper(%{{.+}}: f32) {
  gpu.func @helper(%x: f32) {
    gpu.return
  }
}
