// RUN: attune-opt %s --attune-loops-to-kernels --split-input-file | FileCheck %s

// One thread for each of n m iterations: 4 rows of 32 to a block, blocks numbered
// along one axis. The view and the scratch are made inside; only numbers and
// pointers to the device come from above.
// CHECK-LABEL: func.func @loop(
// CHECK-SAME:    %[[BYTES:.+]]: memref<?xi8>, %[[N:[^:]+]]: index, %[[M:[^:]+]]: index, %[[X:.+]]: f32)
// CHECK-DAG:     %[[COLUMNS:.+]] = arith.ceildivsi %[[M]], %c32{{.*}} : index
// CHECK-DAG:     %[[ROWS:.+]] = arith.ceildivsi %[[N]], %c4{{.*}} : index
// CHECK-DAG:     %[[BLOCKS:.+]] = arith.muli %[[ROWS]], %[[COLUMNS]] : index
// CHECK:         gpu.launch blocks(%[[B:[^,]+]], {{.+}}) in (%{{.+}} = %[[BLOCKS]],
// CHECK-SAME:      threads(%[[TX:[^,]+]], %[[TY:[^,]+]], {{.+}} module(@attune_kernels) function(@loop_0) {
// CHECK-DAG:       %[[P:.+]] = llvm.addrspacecast %{{.+}} : !llvm.ptr<1> to !llvm.ptr
// CHECK-DAG:       %[[SCRATCH:.+]] = memref.alloca() : memref<4xf32>
// CHECK-DAG:       %[[HERE:.+]] = builtin.unrealized_conversion_cast %{{.+}} to memref<?xi8>
// CHECK-DAG:       %[[VIEW:.+]] = memref.view %[[HERE]]
// CHECK-DAG:       arith.divui %[[B]], %[[COLUMNS]] : index
// CHECK-DAG:       arith.remui %[[B]], %[[COLUMNS]] : index
// CHECK-DAG:       %[[I:.+]] = arith.addi %{{.+}}, %[[TY]] : index
// CHECK-DAG:       %[[J:.+]] = arith.addi %{{.+}}, %[[TX]] : index
// CHECK-DAG:       %[[INI:.+]] = arith.cmpi slt, %[[I]], %[[N]] : index
// CHECK-DAG:       %[[INJ:.+]] = arith.cmpi slt, %[[J]], %[[M]] : index
// CHECK:           %[[INSIDE:.+]] = arith.andi %[[INI]], %[[INJ]] : i1
// CHECK:           scf.if %[[INSIDE]] {
// CHECK:             memref.store %[[X]], %[[SCRATCH]]
// CHECK:             memref.store %{{.+}}, %[[VIEW]][%[[I]], %[[J]]]
// CHECK:           gpu.terminator
func.func @loop(%bytes: memref<?xi8>, %n: index, %m: index, %x: f32) {
  %c0 = arith.constant 0 : index
  %scratch = memref.alloca() : memref<4xf32>
  %view = memref.view %bytes[%c0][%n, %m] : memref<?xi8> to memref<?x?xf32>
  scf.forall (%i, %j) in (%n, %m) {
    memref.store %x, %scratch[%c0] : memref<4xf32>
    %y = memref.load %scratch[%c0] : memref<4xf32>
    memref.store %y, %view[%i, %j] : memref<?x?xf32>
  }
  return
}

// -----

// What lies between loops is one thread's; a number that bounds a loop is read
// back; frames are the device's.
// CHECK-DAG:   llvm.func @attune_rt_device_read(!llvm.ptr, i64) -> i64
// CHECK-DAG:   llvm.func @attune_rt_device_push(i64) -> !llvm.ptr
// CHECK-NOT:   attune_rt_frame_push
// CHECK-LABEL: func.func @between(
// CHECK:         llvm.call @attune_rt_device_push
// CHECK:         gpu.launch {{.+}} function(@between_0) {
// CHECK:           memref.store
// CHECK:           gpu.terminator
// CHECK:         %[[WORD:.+]] = llvm.call @attune_rt_device_read(%{{.+}}, %{{.+}}) : (!llvm.ptr, i64) -> i64
// CHECK:         %[[N:.+]] = arith.trunci %[[WORD]] : i64 to i32
// CHECK:         %[[COUNT:.+]] = arith.index_cast %[[N]] : i32 to index
// CHECK:         arith.muli %{{.+}}, %[[COUNT]]
// CHECK:         gpu.launch {{.+}} function(@between_1) {
llvm.func @attune_rt_frame_push(i64) -> !llvm.ptr
func.func @between(%counts: memref<4xi32>, %y: memref<?xf32>, %x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : i32
  %bytes = llvm.mlir.constant(64 : i64) : i64
  %frame = llvm.call @attune_rt_frame_push(%bytes) : (i64) -> !llvm.ptr
  memref.store %c1, %counts[%c0] : memref<4xi32>
  %n = memref.load %counts[%c0] : memref<4xi32>
  %count = arith.index_cast %n : i32 to index
  scf.forall (%i) in (%count) {
    memref.store %x, %y[%i] : memref<?xf32>
  }
  return
}

// -----

// Other loops: 128 iterations to a block, the last dimension fastest.
// CHECK-LABEL: func.func @three(
// CHECK-SAME:    %{{.+}}: memref<2x4x64xf32>, %[[X:.+]]: f32)
// CHECK:         gpu.launch blocks(%[[B:[^,]+]], {{.+}} threads(%[[T:[^,]+]],
// CHECK:           %[[NUMBER:.+]] = arith.addi %{{.+}}, %[[T]] : index
// CHECK:           %[[INSIDE:.+]] = arith.cmpi slt, %[[NUMBER]], %{{.+}} : index
// CHECK:           scf.if %[[INSIDE]] {
// CHECK:             %[[K:.+]] = arith.remui %[[NUMBER]], %{{.+}} : index
// CHECK:             %[[REST:.+]] = arith.divui %[[NUMBER]], %{{.+}} : index
// CHECK:             %[[J:.+]] = arith.remui %[[REST]], %{{.+}} : index
// CHECK:             %[[I:.+]] = arith.divui %[[REST]], %{{.+}} : index
// CHECK:             memref.store %[[X]], %{{.+}}[%[[I]], %[[J]], %[[K]]]
func.func @three(%y: memref<2x4x64xf32>, %x: f32) {
  scf.forall (%i, %j, %k) in (2, 4, 64) {
    memref.store %x, %y[%i, %j, %k] : memref<2x4x64xf32>
  }
  return
}
