// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=8 rows=1}),canonicalize,cse)" --split-input-file | FileCheck %s --implicit-check-not="attune.moe" --implicit-check-not="attune.router" --implicit-check-not="attune.head_linear"

// Slots are sorted by expert; how many tasks that gives is known then. A task's
// rows are a tile of the hidden layer; they are read through the order, and the
// expert is a number of the task: one nobody chose is in none. Threads share the
// columns, all tasks of a share one after the other. The panel that comes next is
// the next task's here.
// CHECK-LABEL: @moe(
// CHECK-SAME:    %[[X:[^:]+]]: tensor<?x12xf32>, %[[E:[^:]+]]: tensor<?x2xi64>, %[[W:[^:]+]]: tensor<?x2xf32>, %[[UP:[^:]+]]: tensor<6x3x12x8xf32>, %[[DOWN:[^:]+]]: tensor<6x2x20x8xf32>)
// CHECK:         tensor.extract %[[E]]
// CHECK:         %[[PLAN:.+]] = tensor.insert_slice
// CHECK:         %[[ORDER:.+]] = tensor.extract_slice %[[PLAN]]
// CHECK:         %[[N:.+]] = tensor.extract %[[PLAN]][%c0]
// CHECK:         %[[TASKS:.+]] = arith.index_cast %[[N]] : i64 to index
// CHECK:         %[[HIDDEN:.+]] = scf.forall (%[[C:.+]], %[[T:.+]]) in (3, %[[TASKS]])
// CHECK:           %[[AFTER:.+]] = attune.successor %[[T]]
// CHECK:           arith.minsi %[[AFTER]],
// CHECK:           %[[NEXT:.+]] = tensor.extract %[[PLAN]]
// CHECK-NEXT:      %[[PART:.+]] = arith.index_cast %[[NEXT]]
// CHECK:           attune.packed_product %[[X]][%[[FIRST:.+]]], %[[UP]][%[[C]], %c1] of 20 matrix %[[EXPERT:.+]] by %[[ORDER]] : tensor<?xi64> activation <relu> tile [1, 1] prefetch %[[C]] next_matrix %[[PART]]
// CHECK:         %[[SLOTS:.+]] = scf.forall {{.+}} in (2, %[[TASKS]])
// CHECK:           attune.packed_product %[[HIDDEN]][%{{.+}}], %[[DOWN]][%{{.+}}, %c1] of 12 matrix %{{.+}} tile [1, 1] prefetch
// Each token sums its own slots times their weights, in the order of the router.
// CHECK:         scf.forall {{.+}} -> (tensor<?x12xf32>)
// CHECK:           %[[BY:.+]] = tensor.extract %[[W]]
// CHECK:           vector.transfer_read %[[SLOTS]]
// CHECK:           vector.broadcast %[[BY]]
// CHECK:           arith.mulf
// CHECK:           arith.addf
func.func @moe(%x: tensor<?x12xf32>, %e: tensor<?x2xi64>, %w: tensor<?x2xf32>, %up: tensor<6x3x12x8xf32>, %down: tensor<6x2x20x8xf32>) -> tensor<?x12xf32> {
  %y = attune.moe %x, %e, %w, %up, %down activation <relu>
     : tensor<?x12xf32>, tensor<?x2xi64>, tensor<?x2xf32>, tensor<6x3x12x8xf32>, tensor<6x2x20x8xf32> -> tensor<?x12xf32>
  return %y : tensor<?x12xf32>
}

// -----

// Experts first, then their weights: two loops over tokens.
// CHECK-LABEL: @router(
// CHECK:         scf.forall {{.+}} -> (tensor<?x2xi64>)
// CHECK:           arith.cmpf ogt
// CHECK:         scf.forall {{.+}} -> (tensor<?x2xf32>)
// CHECK:           math.exp
func.func @router(%x: tensor<?x6xf32>) -> (tensor<?x2xi64>, tensor<?x2xf32>) {
  %e, %w = attune.router %x scoring <softmax> : tensor<?x6xf32> -> tensor<?x2xi64>, tensor<?x2xf32>
  return %e, %w : tensor<?x2xi64>, tensor<?x2xf32>
}

// -----

// Plain stacks are packed first.
// CHECK-LABEL: @heads(
// CHECK-SAME:    %[[X:[^:]+]]: tensor<?x4x?x12xf32>, %[[W:[^:]+]]: tensor<4x20x12xf32>)
// CHECK:         %[[P:.+]] = tensor.generate
// CHECK:         : tensor<4x3x12x8xf32>
// CHECK:         scf.forall (%{{.+}}, %[[H:.+]], %{{.+}}) in (%{{.+}}, 4, 3)
// CHECK:           %[[ROWS:.+]] = tensor.extract_slice %[[X]][%{{.+}}, %[[H]], 0, 0] [1, 1, %{{.+}}, 12]
// CHECK:           attune.packed_product %[[ROWS]][%c0], %[[P]][%{{.+}}, %c1] of 20 matrix %[[H]] tile [1, 1] outs(
func.func @heads(%x: tensor<?x4x?x12xf32>, %w: tensor<4x20x12xf32>) -> tensor<?x4x?x20xf32> {
  %y = attune.head_linear %x, %w : tensor<?x4x?x12xf32>, tensor<4x20x12xf32> -> tensor<?x4x?x20xf32>
  return %y : tensor<?x4x?x20xf32>
}
