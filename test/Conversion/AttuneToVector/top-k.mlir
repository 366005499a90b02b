// RUN: attune-opt %s "--convert-attune-to-vector=cooperative" --canonicalize --cse | FileCheck %s
// RUN: attune-opt %s --convert-attune-to-vector --canonicalize --cse | FileCheck %s --check-prefix=CPU

// Of 50257 numbers each warp has 256, eight in every lane: 197 parts, of which a
// lane of the merging warp has seven at most. With no numbers to find, no row.
// CHECK-LABEL: @top_k(
// CHECK-SAME:    %[[X:.+]]: tensor<?x50257xf32>, %[[K:.+]]: index)
// CHECK:         %[[ONE:.+]] = arith.minsi %[[K]], %c1
// CHECK:         %[[SOME:.+]] = arith.muli %{{.+}}, %[[ONE]]
// CHECK:         %[[LISTS:.+]]:2 = scf.forall (%{{.+}}, %{{.+}}, %{{.+}}) in (%[[SOME]], 197, 32) shared_outs(%{{.+}}, %{{.+}}) -> (tensor<?x?xi32>, tensor<?x?xi32>)
// CHECK-COUNT-8:   tensor.extract %[[X]]
// CHECK-NOT:       tensor.extract %[[X]]
// CHECK:           scf.for %{{.+}} = %c0 to %[[K]]
// CHECK:             gpu.subgroup_reduce maxsi %{{.+}} uniform
// CHECK:             gpu.subgroup_reduce minsi %{{.+}} uniform
// CHECK:         scf.forall (%{{.+}}, %{{.+}}) in (%[[SOME]], 32) shared_outs(%{{.+}}, %{{.+}}) -> (tensor<?x?xi64>, tensor<?x?xf32>)
// CHECK-COUNT-7:   scf.if
// CHECK-NOT:       scf.if
// CHECK:           scf.for %{{.+}} = %c0 to %[[K]]
// CHECK:             gpu.subgroup_reduce maxsi
// CHECK:             gpu.subgroup_reduce minsi
// One load of the lane that goes on in its list.
// CHECK:             scf.if
// CHECK-NEXT:          tensor.extract %[[LISTS]]#0
// CHECK-NEXT:          tensor.extract %[[LISTS]]#1
// CHECK-NOT:         scf.if
// CHECK:         return
// CPU-LABEL:   @top_k(
// CPU-NOT:       gpu.
// CPU:           scf.forall
// CPU-NOT:       scf.forall (
// CPU:           return
func.func @top_k(%x: tensor<?x50257xf32>, %k: index) -> (tensor<?x?xi64>, tensor<?x?xf32>) {
  %ids, %values = attune.top_k %x count %k : tensor<?x50257xf32> -> tensor<?x?xi64>, tensor<?x?xf32>
  return %ids, %values : tensor<?x?xi64>, tensor<?x?xf32>
}

// A row whose width is not known, or that is too wide to be split, is one thread's.
// CHECK-LABEL: @unknown_width(
// CHECK-NOT:     gpu.
// CHECK:         return
func.func @unknown_width(%x: tensor<?x?xf32>, %k: index) -> tensor<?x?xi64> {
  %ids, %values = attune.top_k %x count %k : tensor<?x?xf32> -> tensor<?x?xi64>, tensor<?x?xf32>
  return %ids : tensor<?x?xi64>
}
// CHECK-LABEL: @too_wide(
// CHECK-NOT:     gpu.
// CHECK:         return
func.func @too_wide(%x: tensor<?x524289xf32>, %k: index) -> tensor<?x?xi64> {
  %ids, %values = attune.top_k %x count %k : tensor<?x524289xf32> -> tensor<?x?xi64>, tensor<?x?xf32>
  return %ids : tensor<?x?xi64>
}

// Results of known size.
// CHECK-LABEL: @constant_count(
// CHECK:         return %{{.+}}, %{{.+}} : tensor<4x3xi64>, tensor<?x?xf32>
func.func @constant_count(%x: tensor<4x100xbf16>) -> (tensor<4x3xi64>, tensor<?x?xf32>) {
  %k = arith.constant 3 : index
  %ids, %values = attune.top_k %x count %k : tensor<4x100xbf16> -> tensor<4x3xi64>, tensor<?x?xf32>
  return %ids, %values : tensor<4x3xi64>, tensor<?x?xf32>
}
