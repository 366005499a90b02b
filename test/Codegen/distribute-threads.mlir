// RUN: attune-opt %s --attune-distribute-threads --split-input-file | FileCheck %s

// Contiguous ranges: thread p of P does [p n / P, (p + 1) n / P).
// CHECK-DAG:   func.func private @attune_rt_thread() -> i64
// CHECK-DAG:   func.func private @attune_rt_num_threads() -> i64
// CHECK-DAG:   func.func private @attune_rt_barrier()
// CHECK-LABEL: func.func @one_dimension(
// CHECK-SAME:    %[[X:.+]]: memref<?xf32>, %[[N:.+]]: index, %{{.+}}: f32)
// CHECK-DAG:     %[[P:.+]] = arith.index_cast %{{.+}} : i64 to index
// CHECK-DAG:     %[[ALL:.+]] = arith.muli %{{.+}}, %[[N]] : index
// CHECK:         %[[B0:.+]] = arith.muli %[[ALL]], %[[T:.+]] : index
// CHECK:         %[[BEGIN:.+]] = arith.divui %[[B0]], %[[THREADS:.+]] : index
// CHECK:         %[[T1:.+]] = arith.addi %[[T]], %[[ONE:.+]] : index
// CHECK:         %[[E0:.+]] = arith.muli %[[ALL]], %[[T1]] : index
// CHECK:         %[[END:.+]] = arith.divui %[[E0]], %[[THREADS]] : index
// CHECK:         scf.for %[[I:.+]] = %[[BEGIN]] to %[[END]] step %[[ONE]]
// CHECK-NEXT:      memref.store %{{.+}}, %[[X]][%[[I]]]
// CHECK-NEXT:    }
// CHECK-NEXT:    call @attune_rt_barrier()
// CHECK-NEXT:    return
func.func @one_dimension(%x: memref<?xf32>, %n: index, %v: f32) {
  scf.forall (%i) in (%n) {
    memref.store %v, %x[%i] : memref<?xf32>
  }
  return
}

// -----

// Iterations that hold a loop in a loop are claimed one by one. Where they are in
// each dimension is found by a function that stays one: a division in line would
// be part of every address inside.
// CHECK:       func.func private @attune_quotient(%[[A:.+]]: index, %[[B:.+]]: index) -> index attributes {passthrough = ["noinline"]}
// CHECK-NEXT:    %[[Q:.+]] = arith.divui %[[A]], %[[B]] : index
// CHECK-NEXT:    return %[[Q]]
// CHECK:       func.func private @attune_rt_claim(i64) -> i64
// CHECK-LABEL: func.func @long_iterations(
// CHECK-SAME:    %[[X:[^:]+]]: memref<?x?x?xf32>, %[[B:[^:]+]]: index, %[[H:[^:]+]]: index, %[[N:[^:]+]]: index, %{{[^:]+}}: f32)
// CHECK:         %[[BH:.+]] = arith.muli %{{.+}}, %[[H]] : index
// CHECK:         %[[ALL:.+]] = arith.muli %[[BH]], %[[N]] : index
// CHECK:         %[[TOTAL:.+]] = arith.index_cast %[[ALL]] : index to i64
// CHECK:         %[[C0:.+]] = call @attune_rt_claim(%[[TOTAL]])
// CHECK:         %[[C1:.+]] = arith.index_cast %[[C0]] : i64 to index
// CHECK:         scf.while (%[[C:.+]] = %[[C1]]) : (index) -> index {
// CHECK-NEXT:      %[[OPEN:.+]] = arith.cmpi ult, %[[C]], %[[ALL]] : index
// CHECK-NEXT:      scf.condition(%[[OPEN]]) %[[C]]
// CHECK:         ^bb0(%[[I:.+]]: index):
// CHECK:           %[[REST:.+]] = func.call @attune_quotient(%[[I]], %[[N]])
// CHECK:           %[[RN:.+]] = arith.muli %[[REST]], %[[N]] : index
// CHECK:           %[[LAST:.+]] = arith.subi %[[I]], %[[RN]] : index
// CHECK:           %[[FIRST:.+]] = func.call @attune_quotient(%[[REST]], %[[H]])
// CHECK:           %[[FH:.+]] = arith.muli %[[FIRST]], %[[H]] : index
// CHECK:           %[[MIDDLE:.+]] = arith.subi %[[REST]], %[[FH]] : index
// CHECK:           memref.store %{{.+}}, %[[X]][%[[FIRST]], %[[MIDDLE]], %[[LAST]]]
// CHECK:           %[[TOTAL2:.+]] = arith.index_cast %[[ALL]] : index to i64
// CHECK:           %[[D0:.+]] = func.call @attune_rt_claim(%[[TOTAL2]])
// CHECK:           %[[D1:.+]] = arith.index_cast %[[D0]] : i64 to index
// CHECK:           scf.yield %[[D1]]
// CHECK:         call @attune_rt_barrier()
func.func @long_iterations(%x: memref<?x?x?xf32>, %b: index, %h: index, %n: index, %v: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.forall (%i, %j, %k) in (%b, %h, %n) {
    scf.for %l = %c0 to %n step %c1 {
      scf.for %m = %c0 to %n step %c1 {
        memref.store %v, %x[%i, %j, %k] : memref<?x?x?xf32>
      }
    }
  }
  return
}

// -----

// What the next iteration in order reads is fetched by this one: both are one
// thread's.
// CHECK-NOT:   attune_rt_claim
// CHECK-LABEL: func.func @fetching(
// CHECK-SAME:    %[[X:[^:]+]]: memref<?xf32>
// CHECK-NOT:     scf.while
// CHECK:         scf.for %[[I:.+]] =
// CHECK:           %[[J:.+]] = arith.addi %[[I]], %{{.+}} : index
// CHECK:           memref.prefetch %[[X]][%[[J]]]
func.func @fetching(%x: memref<?xf32>, %n: index, %v: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.forall (%i) in (%n) {
    scf.for %l = %c0 to %n step %c1 {
      scf.for %m = %c0 to %n step %c1 {
        %j = attune.successor %i
        memref.prefetch %x[%j], read, locality<2>, data : memref<?xf32>
        memref.store %v, %x[%i] : memref<?xf32>
      }
    }
  }
  return
}

// -----

// A step waits for the one before it, also inside a loop; scf.parallel starts
// and steps where it says.
// CHECK-LABEL: func.func @steps(
// CHECK:         scf.for
// CHECK:           scf.for %[[I:.+]] =
// CHECK:             %[[BY4:.+]] = arith.muli %[[I]], %{{.+}} : index
// CHECK:             %[[FROM2:.+]] = arith.addi %[[BY4]], %{{.+}} : index
// CHECK:             memref.store %{{.+}}, %{{.+}}[%[[FROM2]]]
// CHECK:           }
// CHECK-NEXT:      call @attune_rt_barrier()
// CHECK-NEXT:    }
// CHECK-NEXT:    return
func.func @steps(%x: memref<?xf32>, %n: index, %v: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  scf.for %l = %c0 to %n step %c1 {
    scf.parallel (%i) = (%c2) to (%n) step (%c4) {
      memref.store %v, %x[%i] : memref<?xf32>
    }
  }
  return
}

// -----

// CHECK-NOT:   attune_rt
// CHECK-LABEL: func.func @serial(
// CHECK-NEXT:    return
func.func @serial(%n: index) -> index {
  return %n : index
}

// -----

// A parallel loop of one iteration was folded: the first thread writes, the
// others wait. Sizes that later code needs stay with everyone.
// CHECK-LABEL: func.func @one_iteration(
// CHECK-SAME:    %[[X:.+]]: memref<?xf32>, %[[N:[^:]+]]: index
// CHECK:         %[[T:.+]] = arith.index_cast %{{.+}} : i64 to index
// CHECK:         %[[TWICE:.+]] = arith.addi %[[N]], %[[N]] : index
// CHECK:         %[[FIRST:.+]] = arith.cmpi eq, %[[T]], %{{.+}} : index
// CHECK-NEXT:    scf.if %[[FIRST]] {
// CHECK-NEXT:      memref.store %{{.+}}, %[[X]][%{{.+}}]
// CHECK-NEXT:      scf.for
// CHECK-NEXT:        memref.store
// CHECK:         call @attune_rt_barrier()
// CHECK:         arith.muli %{{.+}}, %[[TWICE]] : index
// CHECK:         scf.for
// CHECK:         call @attune_rt_barrier()
// CHECK-NOT:     scf.if
func.func @one_iteration(%x: memref<?xf32>, %n: index, %v: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  memref.store %v, %x[%c0] : memref<?xf32>
  %twice = arith.addi %n, %n : index
  scf.for %i = %c0 to %n step %c1 {
    memref.store %v, %x[%i] : memref<?xf32>
  }
  scf.forall (%i) in (%twice) {
    memref.store %v, %x[%i] : memref<?xf32>
  }
  return
}

// -----

// Threads divide the rows of a loop over elements; a row has no divisions.
// CHECK-LABEL: func.func @elements(
// CHECK-SAME:    %{{[^:]+}}: memref<?x?xf32>, %[[M:[^:]+]]: index, %[[N:[^:]+]]: index
// CHECK:         scf.for %[[I:.+]] = %{{.+}} to %{{.+}} step
// CHECK-NOT:       arith.div
// CHECK:           scf.for %[[J:.+]] = %{{.+}} to %[[N]] step
// CHECK-NEXT:        memref.store %{{.+}}, %{{.+}}[%[[I]], %[[J]]]
// CHECK:         call @attune_rt_barrier()
func.func @elements(%x: memref<?x?xf32>, %m: index, %n: index, %v: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%i, %j) = (%c0, %c0) to (%m, %n) step (%c1, %c1) {
    memref.store %v, %x[%i, %j] : memref<?x?xf32>
  }
  return
}

// -----

// What an iteration fetches for itself says nothing of its order.
// CHECK-LABEL: func.func @fetching_its_own(
// CHECK:         scf.while
// CHECK:           memref.prefetch
func.func @fetching_its_own(%x: memref<?xf32>, %n: index, %v: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.forall (%i) in (%n) {
    scf.for %l = %c0 to %n step %c1 {
      scf.for %m = %c0 to %n step %c1 {
        memref.prefetch %x[%m], read, locality<2>, data : memref<?xf32>
        memref.store %v, %x[%i] : memref<?xf32>
      }
    }
  }
  return
}

// -----

// In a share of short iterations, and where no loop is left, it is the one behind.
// CHECK-LABEL: func.func @the_one_behind(
// CHECK-SAME:    %[[X:[^:]+]]: memref<?xf32>
// CHECK:         scf.for %[[I:.+]] =
// CHECK:           %[[J:.+]] = arith.addi %[[I]], %{{.+}} : index
// CHECK:           memref.prefetch %[[X]][%[[J]]]
// CHECK:         %[[K:.+]] = arith.addi %{{.+}}, %{{.+}} : index
// CHECK:         memref.prefetch %[[X]][%[[K]]]
func.func @the_one_behind(%x: memref<?xf32>, %n: index, %v: f32) {
  %c0 = arith.constant 0 : index
  scf.forall (%i) in (%n) {
    %j = attune.successor %i
    memref.prefetch %x[%j], read, locality<2>, data : memref<?xf32>
    memref.store %v, %x[%i] : memref<?xf32>
  }
  %k = attune.successor %c0
  memref.prefetch %x[%k], read, locality<2>, data : memref<?xf32>
  return
}

// -----

// Quotients that places in claimed iterations may depend on come from the function
// as well: before the loop and in it. In a loop inside, by a constant and in shares
// of short iterations they stay divisions. (No quotient is above its dividend: what
// is stored, and where, does not depend on the number of threads.)
// CHECK-LABEL: func.func @quotients(
// CHECK-SAME:    %{{[^:]+}}: memref<?xf32>, %[[N:[^:]+]]: index
// CHECK-NOT:     arith.divui
// CHECK:         %[[SHARE:.+]] = call @attune_quotient(%[[N]], %{{.+}})
// CHECK:         %[[Q:.+]] = arith.maxui %[[SHARE]],
// CHECK:         scf.while
// CHECK:         ^bb0(%[[I:.+]]: index):
// CHECK:           func.call @attune_quotient(%[[I]], %[[Q]])
// CHECK:           arith.divui %[[I]], %{{.+}} : index
// CHECK:           scf.for %[[L:.+]] =
// CHECK:             arith.divui %[[L]], %[[Q]]
// CHECK:         call @attune_rt_barrier()
// CHECK:         scf.for %[[J:.+]] =
// CHECK-NOT:       scf.while
// CHECK:           arith.divui %[[J]], %[[Q]]
func.func @quotients(%x: memref<?xf32>, %n: index, %v: f32) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %threads = attune.num_threads
  %share = arith.divui %n, %threads : index
  %each = arith.maxui %share, %c1 : index
  scf.forall (%i) in (%n) {
    %a = arith.divui %i, %each : index
    %b = arith.divui %i, %c2 : index
    %from = arith.minui %a, %b : index
    scf.for %l = %from to %n step %c1 {
      %c = arith.divui %l, %each : index
      %at = arith.maxui %l, %c : index
      %end = arith.addi %at, %c1 : index
      scf.for %m = %l to %end step %c1 {
        memref.store %v, %x[%m] : memref<?xf32>
      }
    }
  }
  scf.forall (%j) in (%n) {
    %a = arith.divui %j, %each : index
    %at = arith.maxui %j, %a : index
    memref.store %v, %x[%at] : memref<?xf32>
  }
  return
}

// -----

// Known when the program runs; one, where no thread has a share.
// CHECK-LABEL: func.func @by_threads(
// CHECK:         %[[I64:.+]] = call @attune_rt_num_threads()
// CHECK:         %[[T:.+]] = arith.index_cast %[[I64]] : i64 to index
// CHECK:         arith.ceildivui %{{.+}}, %[[T]]
// CHECK-NOT:     attune.num_threads
// CHECK-LABEL: func.func @alone(
// CHECK:         %[[ONE:.+]] = arith.constant 1 : index
// CHECK:         arith.cmpi ugt, %[[ONE]],
func.func @by_threads(%x: memref<?xf32>, %v: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %length = memref.dim %x, %c0 : memref<?xf32>
  %threads = attune.num_threads
  %each = arith.ceildivui %length, %threads : index
  scf.forall (%i) in (%threads) {
    %begin = arith.muli %i, %each : index
    %all = arith.addi %begin, %each : index
    %end = arith.minui %all, %length : index
    scf.for %j = %begin to %end step %c1 {
      memref.store %v, %x[%j] : memref<?xf32>
    }
  }
  return
}
func.func @alone() -> i1 {
  %c0 = arith.constant 0 : index
  %threads = attune.num_threads
  %some = arith.cmpi ugt, %threads, %c0 : index
  return %some : i1
}
