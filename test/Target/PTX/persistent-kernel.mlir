// RUN: attune-opt %s --attune-persistent-kernel --split-input-file | FileCheck %s
// RUN: attune-opt %s --attune-persistent-kernel="early-launches=false" --split-input-file | FileCheck %s --check-prefix=OLD

// A warp for a row and two warps for a panel: blocks have 128 threads, which are
// four of the one or two of the other. Products of one row at a time are of steps
// of one sequence, of four rows of those of several.

// CHECK-LABEL: gpu.module @kernels
// CHECK:         gpu.func @panel(
// CHECK:           nvvm.griddepcontrol wait
// OLD-LABEL:   gpu.func @panel(
// OLD-NOT:       griddepcontrol
// CHECK:         gpu.func @decode_persistent(%[[LIST:.+]]: !llvm.ptr<1>, %[[WAITS:.+]]: !llvm.ptr<1>, %[[WORDS:.+]]: !llvm.ptr<1>, %[[COUNTERS:.+]]: !llvm.ptr<1>, %[[SIZE:.+]]: index)
// CHECK-SAME:      workgroup(%[[SHARED:.+]] : memref<256xi8, 3>) kernel
// CHECK-SAME:      known_block_size = array<i32: 128, 1, 1>
// Scratch is not made for every task.
// CHECK-NEXT:      memref.alloca() : memref<4xf32>
// CHECK:           %[[THREAD:.+]] = gpu.thread_id x
// CHECK:           scf.for %[[I:.+]] = %{{.+}} to %[[SIZE]]
// CHECK:             llvm.load %{{.+}} invariant {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
// CHECK:             scf.for
// CHECK:               scf.index_switch
// CHECK:               case 0 {
// CHECK:                 arith.divui %[[THREAD]], %c32
// CHECK:                 scf.if
// CHECK:                   llvm.load %{{.+}} invariant {alignment = 8 : i64} : !llvm.ptr<1> -> i64
// It does not say where it waits: at the start.
// CHECK:                   scf.while
// CHECK:                     "ld.acquire.gpu.global.u32 $0, [$1];"
// CHECK:                   nvvm.bar.warp.sync
// CHECK:                   memref.store
// CHECK:               case 1 {
// CHECK:                 arith.divui %[[THREAD]], %c64
// CHECK:                   memref.view %[[SHARED]][%{{.+}}][] : memref<256xi8, 3> to memref<16xf32, 3>
// CHECK:                   llvm.load %{{.+}} : !llvm.ptr<1> -> f32
// CHECK:                   scf.while
// CHECK:                   nvvm.barrier id = %{{.+}} number_of_threads = %{{.+}}
// CHECK:                   memref.store
// CHECK:                   nvvm.barrier id = %{{.+}} number_of_threads = %{{.+}}
// CHECK-NOT:               griddepcontrol
// CHECK:               gpu.barrier
// CHECK:             "red.release.gpu.global.add.u32 [$0], $1;"
// CHECK:           "atom.acq_rel.gpu.global.add.u32 $0, [$1], 1;"
// CHECK:             "st.relaxed.gpu.global.u32 [$0], 0;"
// CHECK:         gpu.func @decode_batch_persistent(
// CHECK-SAME:      workgroup(%{{.+}} : memref<512xi8, 3>) kernel
// CHECK:               scf.index_switch
// CHECK:               case 0 {
// CHECK:               case 1 {
// CHECK-NOT:           case 2
// CHECK:           "atom.acq_rel.gpu.global.add.u32 $0, [$1], 1;"

// CHECK-LABEL: func.func private @layer(
// CHECK:         gpu.launch_func @kernels::@row
// CHECK-SAME:      attune.instructions = [array<i64: 128, 0, 0, 4>, array<i64: 128, 0, 0, 4>]
// CHECK-SAME:      attune.persistent_kernels = [@kernels::@decode_persistent, @kernels::@decode_batch_persistent]
// CHECK:         gpu.launch_func @kernels::@panel
// CHECK-SAME:      attune.instructions = [array<i64: 128, 0, 1, 2>]
// CHECK-SAME:      attune.persistent_kernels = [@kernels::@decode_persistent]
// Of many rows; with shared memory of a launch; another entry's.
// CHECK:         gpu.launch_func @kernels::@tile
// CHECK-NOT:       attune.instruction
// CHECK:         gpu.launch_func @kernels::@row
// CHECK-SAME:      dynamic_shared_memory_size
// CHECK-NOT:       attune.instruction
// CHECK-LABEL: func.func @forward(
// CHECK:         gpu.launch_func @kernels::@row
// CHECK-NOT:       attune.instruction
// CHECK-LABEL: func.func @decode(
// CHECK-LABEL: func.func @decode_batch(
// CHECK:         gpu.launch_func @kernels::@row
// CHECK-SAME:      attune.instructions = [array<i64: 128, 0, 0, 4>]
// CHECK-SAME:      attune.persistent_kernels = [@kernels::@decode_batch_persistent]
// CHECK:         gpu.launch_func @kernels::@panels
// CHECK-SAME:      attune.instructions = [array<i64: 128, 0, 1, 1>]
// CHECK-SAME:      attune.persistent_kernels = [@kernels::@decode_batch_persistent]
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @row(%p: !llvm.ptr<1>, %n: index, %x: f32) kernel {
      %scratch = memref.alloca() : memref<4xf32>
      %lane = gpu.thread_id x
      %row = gpu.block_id x
      %rows = gpu.grid_dim x
      %at = arith.remui %row, %rows : index
      memref.store %x, %scratch[%at] : memref<4xf32>
      gpu.return
    }
    gpu.func @panel(%w: !llvm.ptr<1>) workgroup(%sums: memref<16xf32, 3>) kernel {
      %thread = gpu.thread_id x
      %panel = gpu.block_id x
      %x = llvm.load %w : !llvm.ptr<1> -> f32
      nvvm.griddepcontrol wait
      memref.store %x, %sums[%thread] : memref<16xf32, 3>
      gpu.barrier {attune.rows_of_panel = 1 : i64}
      gpu.return
    }
    gpu.func @panels(%w: !llvm.ptr<1>) workgroup(%sums: memref<128xf32, 3>) kernel {
      %thread = gpu.thread_id x
      %x = llvm.load %w : !llvm.ptr<1> -> f32
      nvvm.griddepcontrol wait
      memref.store %x, %sums[%thread] : memref<128xf32, 3>
      gpu.barrier {attune.rows_of_panel = 4 : i64}
      gpu.return
    }
    gpu.func @tile(%x: f32) kernel {
      %a = arith.constant dense<0.0> : vector<4x2xf16>
      %b = arith.constant dense<0.0> : vector<2x2xf16>
      %c = arith.constant dense<0.0> : vector<2x2xf32>
      %d = nvgpu.mma.sync (%a, %b, %c) {mmaShape = [16, 8, 16]} : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
      gpu.return
    }
  }
  func.func private @layer(%n: index, %x: f32, %p: !llvm.ptr<1>, %w: !llvm.ptr<1>) {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %bytes = arith.constant 65536 : i32
    gpu.launch_func @kernels::@row blocks in (%n, %c1, %c1) threads in (%c32, %c1, %c1) args(%p : !llvm.ptr<1>, %n : index, %x : f32)
    gpu.launch_func @kernels::@panel blocks in (%n, %c1, %c1) threads in (%c64, %c1, %c1) args(%w : !llvm.ptr<1>)
    gpu.launch_func @kernels::@tile blocks in (%n, %c1, %c1) threads in (%c128, %c1, %c1) args(%x : f32)
    gpu.launch_func @kernels::@row blocks in (%n, %c1, %c1) threads in (%c32, %c1, %c1) dynamic_shared_memory_size %bytes args(%p : !llvm.ptr<1>, %n : index, %x : f32)
    return
  }
  func.func @forward(%n: index, %x: f32, %p: !llvm.ptr<1>) {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    gpu.launch_func @kernels::@row blocks in (%n, %c1, %c1) threads in (%c32, %c1, %c1) args(%p : !llvm.ptr<1>, %n : index, %x : f32)
    return
  }
  func.func @decode(%n: index, %x: f32, %p: !llvm.ptr<1>, %w: !llvm.ptr<1>) {
    func.call @layer(%n, %x, %p, %w) : (index, f32, !llvm.ptr<1>, !llvm.ptr<1>) -> ()
    return
  }
  func.func @decode_batch(%n: index, %x: f32, %p: !llvm.ptr<1>, %w: !llvm.ptr<1>) {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %c128 = arith.constant 128 : index
    gpu.launch_func @kernels::@row blocks in (%n, %c1, %c1) threads in (%c32, %c1, %c1) args(%p : !llvm.ptr<1>, %n : index, %x : f32)
    gpu.launch_func @kernels::@panels blocks in (%n, %c1, %c1) threads in (%c128, %c1, %c1) args(%w : !llvm.ptr<1>)
    return
  }
}

// -----

// Nothing to join.
// CHECK-LABEL: gpu.module @alone
// CHECK-NOT:     decode_persistent
module attributes {gpu.container_module} {
  gpu.module @alone {
    gpu.func @row(%x: f32) kernel {
      gpu.return
    }
  }
  func.func @forward(%n: index, %x: f32) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @alone::@row blocks in (%n, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : f32)
    return
  }
}
