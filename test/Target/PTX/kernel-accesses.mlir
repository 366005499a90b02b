// RUN: attune-opt %s --attune-loops-to-kernels="accesses" --canonicalize --cse | FileCheck %s

// Before each launch of a step: which bytes of the device it reads (0) and writes
// (1), of a view those that lie in it.

// CHECK-LABEL: func.func private @layer(
// CHECK-SAME:    %[[CACHE:[^:]+]]: memref<4x?x8xf32>, %[[X:[^:]+]]: memref<8xf32>, %[[LAYER:[^:]+]]: index, %[[PAST:[^:]+]]: index)
// CHECK-DAG:     %[[READ:.+]] = llvm.mlir.constant(0 : i64) : i64
// CHECK-DAG:     %[[WRITE:.+]] = llvm.mlir.constant(1 : i64) : i64
// CHECK-DAG:     %[[ALL:.+]] = arith.constant 32 : i64
// CHECK-DAG:     %[[ROWS:.+]] = memref.subview %[[CACHE]][%[[LAYER]], 0, 0] [1, %[[PAST]], 8]
// CHECK:         %{{.+}}, %[[OFFSET:.+]], %[[SIZES:.+]]:2, %{{.+}} = memref.extract_strided_metadata %[[ROWS]]
// CHECK:         %[[BELOW:.+]] = arith.addi %[[SIZES]]#0, %c-1
// CHECK:         %[[LAST:.+]] = arith.muli %[[BELOW]], %c8
// CHECK:         %[[BASE:.+]] = memref.extract_aligned_pointer_as_index %[[ROWS]]
// CHECK:         %[[SHIFT:.+]] = arith.muli %[[OFFSET]], %c4
// CHECK:         %[[START:.+]] = arith.addi %[[BASE]], %[[SHIFT]]
// CHECK:         %[[COUNT:.+]] = arith.addi %[[LAST]], %c8
// CHECK:         %[[BYTES:.+]] = arith.muli %[[COUNT]], %c4
// CHECK-DAG:     %[[FROM:.+]] = arith.index_cast %[[START]] : index to i64
// CHECK-DAG:     %[[LONG:.+]] = arith.index_cast %[[BYTES]] : index to i64
// CHECK:         llvm.call @attune_rt_access(%[[FROM]], %[[LONG]], %[[READ]])
// CHECK:         %[[BASE:.+]] = memref.extract_aligned_pointer_as_index %[[X]]
// CHECK:         %[[FROM:.+]] = arith.index_cast %[[BASE]] : index to i64
// CHECK:         llvm.call @attune_rt_access(%[[FROM]], %[[ALL]], %[[WRITE]])
// CHECK:         gpu.launch
func.func private @layer(%cache: memref<4x?x8xf32>, %x: memref<8xf32>, %layer: index, %past: index) {
  %c0 = arith.constant 0 : index
  %rows = memref.subview %cache[%layer, 0, 0] [1, %past, 8] [1, 1, 1] : memref<4x?x8xf32> to memref<?x8xf32, strided<[8, 1], offset: ?>>
  scf.forall (%i) in (8) {
    %v = memref.load %rows[%c0, %i] : memref<?x8xf32, strided<[8, 1], offset: ?>>
    memref.store %v, %x[%i] : memref<8xf32>
  }
  return
}

// CHECK-LABEL: func.func @decode(
func.func @decode(%cache: memref<4x?x8xf32>, %x: memref<8xf32>, %layer: index, %past: index) {
  func.call @layer(%cache, %x, %layer, %past) : (memref<4x?x8xf32>, memref<8xf32>, index, index) -> ()
  return
}

// Other entries say nothing.
// CHECK-LABEL: func.func @forward(
// CHECK-NOT:     attune_rt_access
func.func @forward(%x: memref<8xf32>) {
  scf.forall (%i) in (8) {
    %v = memref.load %x[%i] : memref<8xf32>
    memref.store %v, %x[%i] : memref<8xf32>
  }
  return
}
