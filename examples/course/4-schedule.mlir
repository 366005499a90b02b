// RUN: attune-opt %s --attune-validate --convert-attune-ladder-to-linalg --transform-interpreter --canonicalize | FileCheck %s
//
// A schedule is a program, too: this one cuts the loops over queries of every
// contraction into blocks of four. It says what to do; that the function stays
// the same is for validation to say, whatever the schedule.

// CHECK-LABEL: @scores(
// CHECK: scf.for {{.*}} step %c4
// CHECK: linalg.generic
func.func @scores(%q: tensor<2x4x?x8xf32>, %k: tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32> {
  %e = attune.similarity %q, %k scale 3.500000e-01
     : tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32> -> tensor<2x4x?x?xf32>
  return %e : tensor<2x4x?x?xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%module: !transform.any_op {transform.readonly}) {
    %loops = transform.structured.match ops{["linalg.generic"]} attributes {iterator_types = [
        #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>,
        #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>]}
      in %module : (!transform.any_op) -> !transform.any_op
    %tiled, %for = transform.structured.tile_using_for %loops tile_sizes [0, 0, 4]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
