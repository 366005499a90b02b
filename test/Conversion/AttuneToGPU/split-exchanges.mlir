// RUN: attune-opt %s --attune-split-exchanges --canonicalize --cse | FileCheck %s
// RUN: attune-opt %s --attune-split-exchanges --canonicalize --cse --convert-attune-mesh-to-calls=device=true | FileCheck %s --check-prefix=CALLS

module attributes {attune.ranks = 3 : i64, attune.sharers = 2 : i64} {

// The sum over ranks first: NCCL adds to nothing.
// CHECK-LABEL: func.func @reduce(
// CHECK-SAME:    %[[X:.+]]: memref<?x1x64xf32>, %[[D:.+]]: memref<?x1x64xf32>)
// CHECK:         %[[ROWS:.+]] = memref.dim %[[X]]
// CHECK:         %[[SUM:.+]] = memref.alloc(%[[ROWS]]) : memref<?x1x64xf32>
// CHECK:         attune.all_reduce %[[X]] into %[[SUM]] : memref<?x1x64xf32>, memref<?x1x64xf32>
// CHECK:         linalg.add ins(%[[D]], %[[SUM]] : {{.+}}) outs(%[[D]]
// CALLS-LABEL: func.func @reduce(
// CALLS:         call @attune_rt_device_all_reduce(%{{.+}}, %{{.+}}, %{{.+}}) : (i64, i64, i64) -> ()
func.func @reduce(%x: memref<?x1x64xf32>, %d: memref<?x1x64xf32>) {
  attune.all_reduce %x into %d accumulate : memref<?x1x64xf32>, memref<?x1x64xf32>
  return
}

// NCCL sums the rows of zeros, too.
// CHECK-LABEL: func.func @rows(
// CHECK-SAME:    %[[X:.+]]: memref<?x64xf32>, %{{.+}}: memref<?x2xi64>, %[[D:.+]]: memref<?x64xf32>)
// CHECK-NEXT:    attune.all_reduce %[[X]] into %[[D]] : memref<?x64xf32>, memref<?x64xf32>
// CALLS-LABEL: func.func @rows(
// CALLS:         call @attune_rt_device_all_reduce(
func.func @rows(%x: memref<?x64xf32>, %e: memref<?x2xi64>, %d: memref<?x64xf32>) {
  attune.all_reduce %x experts %e below 4 : memref<?x2xi64> into %d : memref<?x64xf32>, memref<?x64xf32>
  return
}

// What NCCL does as it is.
// CHECK-LABEL: func.func @plain(
// CHECK-NEXT:    attune.all_reduce
// CHECK-NEXT:    attune.all_gather
// CHECK-NEXT:    return
// CALLS-LABEL: func.func @plain(
// CALLS:         call @attune_rt_device_all_gather(%{{.+}}, %{{.+}}, %{{.+}}, %c0_i64) : (i64, i64, i64, i64) -> ()
func.func @plain(%x: memref<64xf32>, %d: memref<64xf32>, %n: index, %e: memref<?xf32>) {
  attune.all_reduce %x into %d : memref<64xf32>, memref<64xf32>
  attune.all_gather %x columns %n into %e : memref<64xf32>, memref<?xf32>
  return
}

// Whole buffers are exchanged, and then columns go to their places. Without
// columns nothing is, and no thread copies.
// CHECK-LABEL: func.func @gather(
// CHECK-SAME:    %[[X:.+]]: memref<?x34xf32>, %[[N:.+]]: index, %[[D:.+]]: memref<?x99xf32>)
// CHECK:         %[[ROWS:.+]] = memref.dim %[[X]]
// CHECK:         %[[SOME:.+]] = arith.minsi %[[N]], %c1
// CHECK:         %[[SOMEROWS:.+]] = arith.muli %[[SOME]], %[[ROWS]]
// CHECK:         %[[EACH:.+]] = arith.muli %[[SOMEROWS]], %c34
// CHECK:         %[[ALLSIZE:.+]] = arith.muli %[[SOMEROWS]], %c102
// CHECK:         %[[ALL:.+]] = memref.alloc(%[[ALLSIZE]]) : memref<?xf32>
// CHECK:         %[[FLAT:.+]] = memref.collapse_shape %[[X]]
// CHECK:         attune.all_gather %[[FLAT]] columns %[[EACH]] into %[[ALL]] : memref<?xf32>, memref<?xf32>
// CHECK:         %[[TO:.+]] = memref.collapse_shape %[[D]]
// CHECK:         %[[WIDTH:.+]] = arith.muli %[[N]], %c3
// CHECK:         %[[GIVEN:.+]] = arith.minsi %[[WIDTH]], %c99
// CHECK:         scf.parallel (%[[I:.+]], %[[J:.+]]) = (%c0, %c0) to (%[[SOMEROWS]], %[[GIVEN]])
// CHECK:           arith.divui %[[J]], %[[N]]
// CHECK:           arith.remui %[[J]], %[[N]]
// CHECK:           memref.load %[[ALL]]
// CHECK:           memref.store %{{.+}}, %[[TO]]
func.func @gather(%x: memref<?x34xf32>, %n: index, %d: memref<?x99xf32>) {
  attune.all_gather %x columns %n into %d : memref<?x34xf32>, memref<?x99xf32>
  return
}

// A rank's rows, each with its number behind it, and then those of both ranks.
// CHECK-LABEL: func.func @merge(
// CHECK-SAME:    %[[X:.+]]: memref<?x8xf32>, %[[L:.+]]: memref<?xf32>, %[[D:.+]]: memref<?x8xf32>)
// CHECK:         %[[ROWS:.+]] = memref.dim %[[X]]
// CHECK:         %[[EACH:.+]] = arith.muli %[[ROWS]], %c9
// CHECK:         %[[OWN:.+]] = memref.alloc(%[[EACH]]) : memref<?xf32>
// CHECK:         scf.parallel (%[[I:.+]], %[[J:.+]]) = (%c0, %c0) to (%[[ROWS]], %c9)
// CHECK:           arith.cmpi ult, %[[J]], %c8
// CHECK:           memref.load %[[L]][%[[I]]]
// CHECK:           memref.store %{{.+}}, %[[OWN]]
// CHECK:         %[[ALLSIZE:.+]] = arith.muli %[[ROWS]], %c18
// CHECK:         %[[ALL:.+]] = memref.alloc(%[[ALLSIZE]]) : memref<?xf32>
// CHECK:         attune.all_gather %[[OWN]] of_positions columns %[[EACH]] into %[[ALL]] : memref<?xf32>, memref<?xf32>
// CHECK:         %[[TO:.+]] = memref.collapse_shape %[[D]]
// CHECK:         scf.parallel (%{{.+}}, %{{.+}}) = (%c0, %c0) to (%[[ROWS]], %c8)
// CHECK:           scf.for %{{.+}} = %c0 to %c2
// CHECK:             arith.maxnumf
// CHECK:           scf.for %{{.+}} = %c0 to %c2
// CHECK:             math.exp
// CHECK:           arith.divf
// CHECK:           arith.select
// CHECK:           memref.store %{{.+}}, %[[TO]]
// CALLS-LABEL: func.func @merge(
// CALLS:         call @attune_rt_device_all_gather(%{{.+}}, %{{.+}}, %{{.+}}, %c1_i64)
func.func @merge(%x: memref<?x8xf32>, %l: memref<?xf32>, %d: memref<?x8xf32>) {
  attune.all_merge %x, %l into %d : memref<?x8xf32>, memref<?xf32>, memref<?x8xf32>
  return
}
}
