// RUN: attune-opt %s --convert-attune-mesh-to-calls --canonicalize --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @exchange(
// CHECK:         %[[RANK:.+]] = call @attune_rt_rank() : () -> i64
// CHECK:         %[[X:.+]] = memref.extract_aligned_pointer_as_index %arg0
// CHECK:         %[[FROM:.+]] = arith.index_cast %[[X]]
// CHECK:         call @attune_rt_all_reduce(%[[FROM]], %{{.+}}, %c8_i64, %c1_i64) : (i64, i64, i64, i64) -> ()
// CHECK:         call @attune_rt_all_gather(%{{.+}}, %{{.+}}, %c2_i64, %c4_i64, %c3_i64, %c9_i64)
func.func @exchange(%x: memref<2x4xf32>, %d: memref<2x4xf32>, %e: memref<2x9xf32>) -> index {
  %rank = attune.rank
  attune.all_reduce %x into %d accumulate : memref<2x4xf32>, memref<2x4xf32>
  %n = arith.constant 3 : index
  attune.all_gather %x columns %n into %e : memref<2x4xf32>, memref<2x9xf32>
  return %rank : index
}

// -----

// CHECK-LABEL: func.func @merge(
// CHECK:         call @attune_rt_rank_of_positions() : () -> i64
// CHECK:         call @attune_rt_all_merge(%{{.+}}, %{{.+}}, %{{.+}}, %c6_i64, %c4_i64) : (i64, i64, i64, i64, i64) -> ()
func.func @merge(%x: memref<2x3x4xf32>, %l: memref<2x3xf32>, %d: memref<2x3x4xf32>) -> index {
  %group = attune.rank of_positions
  attune.all_merge %x, %l into %d : memref<2x3x4xf32>, memref<2x3xf32>, memref<2x3x4xf32>
  return %group : index
}

// -----

// CHECK-LABEL: func.func @rows(
// CHECK:         %[[E:.+]] = memref.extract_aligned_pointer_as_index %{{.+}} : memref<2x3x5xi64, strided<[15, 5, 1], offset: 30>>
// CHECK:         %[[PLACE:.+]] = arith.addi %[[E]], %c240
// CHECK:         %[[EXPERTS:.+]] = arith.index_cast %[[PLACE]]
// CHECK:         call @attune_rt_all_reduce_rows(%{{.+}}, %{{.+}}, %c6_i64, %c4_i64, %c1_i64, %[[EXPERTS]], %c5_i64, %c7_i64)
func.func @rows(%x: memref<2x3x4xf32>, %e: memref<2x3x5xi64, strided<[15, 5, 1], offset: 30>>, %d: memref<2x3x4xf32>) {
  attune.all_reduce %x experts %e below 7 : memref<2x3x5xi64, strided<[15, 5, 1], offset: 30>>
    into %d accumulate : memref<2x3x4xf32>, memref<2x3x4xf32>
  return
}

// -----

func.func @of_positions(%x: memref<4xf32>, %n: index, %d: memref<?xf32>) {
  // expected-error @+1 {{gathers what ranks on CPUs merge: attune.all_merge}}
  attune.all_gather %x of_positions columns %n into %d : memref<4xf32>, memref<?xf32>
  return
}

// -----

func.func @gaps(%x: memref<2x4xf32, strided<[8, 1]>>, %d: memref<2x4xf32>) {
  // expected-error @+1 {{has a buffer with gaps}}
  attune.all_reduce %x into %d : memref<2x4xf32, strided<[8, 1]>>, memref<2x4xf32>
  return
}
