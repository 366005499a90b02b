// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=8 rows=1}),canonicalize,cse)" --split-input-file | FileCheck %s --implicit-check-not="attune.moe" --implicit-check-not="attune.router" --implicit-check-not="attune.head_linear"

// Slots are sorted by expert; how many tasks that gives is known then. A task's
// rows are a tile of the hidden layer; they are read through the order, and the
// expert is a number of the task: one nobody chose is in none.
// CHECK-LABEL: @moe(
// CHECK-SAME:    %[[X:[^:]+]]: tensor<?x12xf32>, %[[E:[^:]+]]: tensor<?x2xi64>, %{{[^:]+}}: tensor<?x2xf32>, %[[UP:[^:]+]]: tensor<6x3x12x8xf32>, %[[DOWN:[^:]+]]: tensor<6x2x20x8xf32>)
// CHECK:         tensor.extract %[[E]]
// CHECK:         %[[PLAN:.+]] = tensor.insert_slice
// CHECK:         %[[N:.+]] = tensor.extract %[[PLAN]][%c0]
// CHECK:         %[[TASKS:.+]] = arith.index_cast %[[N]] : i64 to index
// CHECK:         %[[HIDDEN:.+]] = scf.forall (%[[T:.+]], %{{.+}}) in (%[[TASKS]], 3)
// CHECK:           tensor.extract %[[PLAN]]
// CHECK:           vector.transfer_read %[[UP]][%[[EXPERT:[^,]+]], %{{.+}}, %{{.+}}, %c0]
// CHECK:           tensor.extract %[[X]]
// CHECK:         %[[SLOTS:.+]] = scf.forall {{.+}} in (%[[TASKS]], 2)
// CHECK:           vector.transfer_read %[[DOWN]]
// CHECK:           tensor.extract %[[HIDDEN]]
// Each token sums its own slots, in the order of the router.
// CHECK:         scf.forall {{.+}} -> (tensor<?x12xf32>)
// CHECK:           vector.transfer_read %[[SLOTS]]
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
// CHECK:           vector.transfer_read %[[P]][%[[H]],
func.func @heads(%x: tensor<?x4x?x12xf32>, %w: tensor<4x20x12xf32>) -> tensor<?x4x?x20xf32> {
  %y = attune.head_linear %x, %w : tensor<?x4x?x12xf32>, tensor<4x20x12xf32> -> tensor<?x4x?x20xf32>
  return %y : tensor<?x4x?x20xf32>
}
