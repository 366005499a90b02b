// RUN: attune-opt %s --attune-persistent-kernel="shared-bytes=167936" --split-input-file | FileCheck %s
// RUN: attune-opt %s --attune-persistent-kernel="shared-bytes=32768" --split-input-file | FileCheck %s --check-prefix=SMALL

// What a task loads before it waits, and more of the same memory in a loop, its
// threads copy ahead: two loads of 16 bytes, three turns of one, and one of 32.
// What others write, and what has an address that depends on such, is read in its
// turn.

// CHECK-LABEL: gpu.module @kernels
// CHECK:         gpu.func @decode_persistent(
// CHECK:           %[[RING:.+]] = builtin.unrealized_conversion_cast %{{.+}} : !llvm.struct<(ptr<3>, ptr<3>, i64, array<1 x i64>, array<1 x i64>)> to memref<36864xi8, 3>
// CHECK:           scf.for
// CHECK:             scf.for
// CHECK:               scf.while
// CHECK:                 scf.index_switch
// CHECK:                 case 0 {
// CHECK:                   memref.view %[[RING]]
// CHECK:                   nvgpu.device_async_copy %{{.+}}, %{{.+}}, 8 {bypassL1} : memref<64x512x8xbf16> to memref<8xbf16, 3>
// CHECK:                   nvgpu.device_async_copy %{{.+}}, %{{.+}}, 4 {bypassL1} : memref<?xf32> to memref<4xf32, 3>
// CHECK:                   scf.for
// CHECK:                     nvgpu.device_async_copy %{{.+}}, %{{.+}}, 8 {bypassL1}
// CHECK:                   nvgpu.device_async_copy %{{.+}}, %{{.+}}, 4 {bypassL1}
// CHECK:                   nvgpu.device_async_copy %{{.+}}, %{{.+}}, 4 {bypassL1}
// CHECK-NOT:               nvgpu.device_async_copy
// CHECK:                 nvvm.cp.async.commit.group
// CHECK:               scf.index_switch
// CHECK:               case 0 {
// It waits for others, then for its copies.
// CHECK:                 scf.while
// CHECK:                   "ld.acquire.gpu.global.u32 $0, [$1];"
// CHECK:                 scf.index_switch
// CHECK:                 case 3 {
// CHECK-NEXT:              nvvm.cp.async.wait.group 3
// CHECK:                 default {
// CHECK-NEXT:              nvvm.cp.async.wait.group 0
// CHECK:                 vector.load %{{.+}} {alignment = 16 : i64} : memref<8xbf16, 3>, vector<8xbf16>
// CHECK:                 vector.load %{{.+}} {alignment = 16 : i64} : memref<4xf32, 3>, vector<4xf32>
// CHECK-NOT:             vector.load %{{.+}} : memref<64x512x8xbf16>
// CHECK:                 vector.load %{{.+}} : memref<?xf32>, vector<8xf32>
// CHECK:                 scf.for
// CHECK:                   vector.load %{{.+}} {alignment = 16 : i64} : memref<8xbf16, 3>, vector<8xbf16>
// CHECK:                 vector.load %{{.+}} {alignment = 16 : i64} : memref<4xf32, 3>, vector<4xf32>
// CHECK:                 vector.shuffle {{.+}} [0, 1, 2, 3, 4, 5, 6, 7] : vector<4xf32>, vector<4xf32>
// The last one is read where it was.
// CHECK:                 vector.load %{{.+}} : memref<?xf32>, vector<8xf32>
// Its own copies: nothing is copied ahead of it.
// CHECK:               case 1 {
// CHECK:                 nvvm.cp.async.wait.group 0
// CHECK-LABEL: func.func @decode(
// 7 units in bits from 16 on, and the stop.
// CHECK:         gpu.launch_func @kernels::@product
// CHECK-SAME:      attune.instructions = [array<i64: 128, 36864, 458752, 1>,
// CHECK:         gpu.launch_func @kernels::@copies
// CHECK-SAME:      attune.instructions = [array<i64: 128, 36864, 2147418113, 1>,

// Without room for a task there is no ring.
// SMALL-NOT:     nvgpu.device_async_copy %{{.+}} {bypassL1}
// SMALL:         attune.instructions = [array<i64: 128, 0, 0, 1>,
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @product(%w: !llvm.ptr<1>, %s: !llvm.ptr<1>, %x: !llvm.ptr<1>, %n: index) workgroup(%sums: memref<128xf32, 3>) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c8 = arith.constant 8 : index
      %c64 = arith.constant 64 : index
      %zero = arith.constant dense<0.0> : vector<8xf32>
      %weights = builtin.unrealized_conversion_cast %w : !llvm.ptr<1> to memref<64x512x8xbf16>
      %scales = builtin.unrealized_conversion_cast %s : !llvm.ptr<1> to memref<?xf32>
      %rows = builtin.unrealized_conversion_cast %x : !llvm.ptr<1> to memref<?xf32>
      %thread = gpu.thread_id x
      %panel = gpu.block_id x
      %first = vector.load %weights[%panel, %thread, %c0] : memref<64x512x8xbf16>, vector<8xbf16>
      %scale = vector.load %scales[%thread] : memref<?xf32>, vector<4xf32>
      nvvm.griddepcontrol wait
      %row = vector.load %rows[%thread] : memref<?xf32>, vector<8xf32>
      %wide = arith.extf %first : vector<8xbf16> to vector<8xf32>
      %sum = scf.for %i = %c1 to %c4 step %c1 iter_args(%so = %row) -> vector<8xf32> {
        %more = vector.load %weights[%panel, %i, %c0] : memref<64x512x8xbf16>, vector<8xbf16>
        %w32 = arith.extf %more : vector<8xbf16> to vector<8xf32>
        %next = arith.addf %so, %w32 : vector<8xf32>
        scf.yield %next : vector<8xf32>
      }
      %last = vector.load %scales[%n] : memref<?xf32>, vector<8xf32>
      %where = vector.extract %row[0] : f32 from vector<8xf32>
      %number = arith.fptoui %where : f32 to i32
      %at = arith.index_cast %number : i32 to index
      %other = vector.load %scales[%at] : memref<?xf32>, vector<8xf32>
      %a = arith.addf %sum, %last : vector<8xf32>
      %b = arith.addf %a, %other : vector<8xf32>
      %c = arith.addf %b, %wide : vector<8xf32>
      vector.store %c, %rows[%thread] : memref<?xf32>, vector<8xf32>
      gpu.return
    }
    gpu.func @copies(%x: !llvm.ptr<1>) workgroup(%tile: memref<1024xf32, 3>) kernel {
      %c0 = arith.constant 0 : index
      %rows = builtin.unrealized_conversion_cast %x : !llvm.ptr<1> to memref<?xf32>
      %token = nvgpu.device_async_copy %rows[%c0], %tile[%c0], 4 : memref<?xf32> to memref<1024xf32, 3>
      gpu.return
    }
  }
  func.func @decode(%n: index, %w: !llvm.ptr<1>, %s: !llvm.ptr<1>, %x: !llvm.ptr<1>) {
    %c1 = arith.constant 1 : index
    %c128 = arith.constant 128 : index
    gpu.launch_func @kernels::@product blocks in (%n, %c1, %c1) threads in (%c128, %c1, %c1) args(%w : !llvm.ptr<1>, %s : !llvm.ptr<1>, %x : !llvm.ptr<1>, %n : index)
    gpu.launch_func @kernels::@copies blocks in (%n, %c1, %c1) threads in (%c128, %c1, %c1) args(%x : !llvm.ptr<1>)
    return
  }
}
