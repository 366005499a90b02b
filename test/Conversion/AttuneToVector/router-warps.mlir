// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=8 cooperative}),canonicalize,cse)" --split-input-file | FileCheck %s --implicit-check-not="attune.router"

// A warp for each token, whose lanes have two experts each. A rank's expert and
// weight are stored together.
// CHECK-LABEL: @softmax(
// CHECK-SAME:    %[[X:[^:]+]]: tensor<?x64xf32>
// CHECK:         scf.forall (%[[T:.+]], %[[LANE:.+]]) in (%{{.+}}, 32) shared_outs(%{{.+}} = %{{.+}}, %{{.+}} = %{{.+}}) -> (tensor<?x2xi64>, tensor<?x2xf32>)
// CHECK:           %[[SECOND:.+]] = arith.addi %[[LANE]], %c32
// CHECK:           tensor.extract %[[X]][%[[T]], %[[LANE]]]
// CHECK:           tensor.extract %[[X]][%[[T]], %[[SECOND]]]
// CHECK-COUNT-5:   gpu.shuffle xor {{.+}} : f32
// CHECK:           math.exp {{.+}} : vector<2xf32>
// CHECK-COUNT-5:   gpu.shuffle xor {{.+}} : f32
// CHECK:           scf.for
// CHECK-COUNT-2:     arith.cmpf ogt
// CHECK:             gpu.shuffle xor {{.+}} : f32
// CHECK:             gpu.shuffle xor {{.+}} : i32
// CHECK:           math.exp {{.+}} : vector<1xf32>
// CHECK:           scf.forall.in_parallel
// CHECK-COUNT-2:     tensor.parallel_insert_slice
// CHECK-NOT:     scf.forall (
func.func @softmax(%x: tensor<?x64xf32>) -> (tensor<?x2xi64>, tensor<?x2xf32>) {
  %e, %w = attune.router %x scoring <softmax> : tensor<?x64xf32> -> tensor<?x2xi64>, tensor<?x2xf32>
  return %e, %w : tensor<?x2xi64>, tensor<?x2xf32>
}

// -----

// Lanes without an expert have minus infinity. Groups: their best two go across
// the warp, then who is best among them; a bit for each that stays.
// CHECK-LABEL: @groups(
// CHECK:         scf.forall {{.+}} in (%{{.+}}, 32)
// CHECK:           arith.cmpi slt, %{{.+}}, %c12
// CHECK:           scf.for %{{.+}} = %c0 to %c4
// CHECK-COUNT-10:    gpu.shuffle
// CHECK:           scf.for %{{.+}} = %c0 to %c2
// CHECK-COUNT-10:    gpu.shuffle
// CHECK:             arith.shli
// CHECK:           arith.shrui
// CHECK:           scf.for
func.func @groups(%x: tensor<?x12xf32>, %b: tensor<12xf32>) -> (tensor<?x4xi64>, tensor<?x4xf32>) {
  %e, %w = attune.router %x bias %b : tensor<12xf32> scoring <sigmoid> groups 4 active_groups 2 group_score <top_two> renormalise : tensor<?x12xf32> -> tensor<?x4xi64>, tensor<?x4xf32>
  return %e, %w : tensor<?x4xi64>, tensor<?x4xf32>
}

// -----

// More ranks than lanes: a thread for each token.
// CHECK-LABEL: @many(
// CHECK-NOT:     gpu.shuffle
// CHECK-COUNT-2: scf.forall (%{{.+}}) in
func.func @many(%x: tensor<?x64xf32>) -> (tensor<?x33xi64>, tensor<?x33xf32>) {
  %e, %w = attune.router %x scoring <softmax> : tensor<?x64xf32> -> tensor<?x33xi64>, tensor<?x33xf32>
  return %e, %w : tensor<?x33xi64>, tensor<?x33xf32>
}

// -----

// A thread for each vector of what depends on nothing else.
// CHECK-LABEL: @modulate(
// CHECK:         scf.forall (%{{.+}}, %[[V:.+]]) in (%{{.+}}, 3)
// CHECK:           %[[AT:.+]] = arith.muli %[[V]], %c8
// CHECK-NOT:       scf.for
// CHECK:           vector.transfer_write
func.func @modulate(%x: tensor<?x?x24xf32>, %c: tensor<?x96xf32>) -> tensor<?x?x24xf32> {
  %y = attune.modulate %x by %c scale 24 : tensor<?x?x24xf32>, tensor<?x96xf32>
  return %y : tensor<?x?x24xf32>
}

// -----

// Rows that vectors do not fill: a thread for each.
// CHECK-LABEL: @odd(
// CHECK:         scf.forall (%{{.+}}) in (%{{.+}}) {{.+}} -> (tensor<?x20xf32>)
func.func @odd(%x: tensor<?x20xf32>) -> tensor<?x20xf32> {
  %y = attune.activation %x function <gelu> : tensor<?x20xf32>
  return %y : tensor<?x20xf32>
}
