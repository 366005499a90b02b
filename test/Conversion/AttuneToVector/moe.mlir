// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=8 rows=1}),canonicalize,cse)" --split-input-file | FileCheck %s --implicit-check-not="attune.moe" --implicit-check-not="attune.router" --implicit-check-not="attune.head_linear"

// Slots are sorted by expert; how many tasks that gives is known then. A task's
// rows are a tile of the hidden layer; they are read through the order, and the
// expert is a number of the task: one nobody chose is in none. Threads share the
// columns, all tasks of a share one after the other. Each of a task's rows
// fetches its part of the panel that comes next, here the next task's.
// CHECK-LABEL: @moe(
// CHECK-SAME:    %[[X:[^:]+]]: tensor<?x12xf32>, %[[E:[^:]+]]: tensor<?x2xi64>, %{{[^:]+}}: tensor<?x2xf32>, %[[UP:[^:]+]]: tensor<6x3x12x8xf32>, %[[DOWN:[^:]+]]: tensor<6x2x20x8xf32>)
// CHECK:         tensor.extract %[[E]]
// CHECK:         %[[PLAN:.+]] = tensor.insert_slice
// CHECK:         %[[N:.+]] = tensor.extract %[[PLAN]][%c0]
// CHECK:         %[[TASKS:.+]] = arith.index_cast %[[N]] : i64 to index
// CHECK:         %[[HIDDEN:.+]] = scf.forall (%[[C:.+]], %[[T:.+]]) in (3, %[[TASKS]])
// CHECK:           %[[AFTER:.+]] = attune.successor %[[T]]
// CHECK:           arith.minsi %[[AFTER]],
// CHECK:           %[[NEXT:.+]] = tensor.extract %[[PLAN]]
// CHECK-NEXT:      %[[PART:.+]] = arith.index_cast %[[NEXT]]
// CHECK:           %[[SHARES:.+]] = arith.muli %[[ROWS:.+]], %c3 : index
// CHECK:           %[[EVEN:.+]] = arith.ceildivui %c96, %[[SHARES]] : index
// CHECK:           %[[DISTANCE:.+]] = arith.minsi %[[EVEN]], %c32 : index
// CHECK:           arith.divui %{{.+}}, %[[ROWS]] : index
// CHECK:           scf.for %[[TURN:.+]] = %c0 to %c3 step %c1 iter_args(%{{.+}} = %{{.+}}) -> (vector<8xf32>)
// CHECK-NEXT:        %[[DONE:.+]] = arith.muli %[[TURN]], %[[DISTANCE]]
// CHECK-NEXT:        %[[AT:.+]] = arith.addi %{{.+}}, %[[DONE]]
// CHECK-NEXT:        %[[ALL:.+]] = bufferization.to_buffer %[[UP]] read_only
// CHECK-NEXT:        %[[FLAT:.+]] = memref.collapse_shape %[[ALL]] {{\[\[}}0], [1], [2, 3]]
// CHECK-NEXT:        memref.prefetch %[[FLAT]][%[[PART]], %{{.+}}, %[[AT]]], read, locality<2>
// CHECK-NEXT:        %[[LINE:.+]] = arith.addi %[[AT]], %c16
// CHECK-NEXT:        memref.prefetch %[[FLAT]][%[[PART]], %{{.+}}, %[[LINE]]], read, locality<2>
// CHECK:               vector.transfer_read %[[UP]][%[[EXPERT:[^,]+]], %[[C]], %{{.+}}, %c0]
// CHECK:               tensor.extract %[[X]]
// CHECK:         %[[SLOTS:.+]] = scf.forall {{.+}} in (2, %[[TASKS]])
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
