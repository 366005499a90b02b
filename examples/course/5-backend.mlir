// RUN: attune-opt %s --attune-validate --pass-pipeline='builtin.module(attune-optimize,attune-to-tensor,attune-to-loops,func.func(lower-vector-mask,convert-vector-to-scf{full-unroll=true}),convert-scf-to-cf)' | FileCheck %s
//
// A backend begins where the target does: `attune-to-loops` leaves loops over
// vectors and memory, and a frame for each function. This one goes on with
// passes of MLIR instead of `attune-to-llvm`; one of your own would be a plugin
// at the same place. An entry function writes to arguments that it is given.

// CHECK: func.func @entry(
// CHECK: cf.cond_br
// CHECK-NOT: attune.linear
func.func @entry(%x: tensor<?x8xf32> {attune.kind = "input", attune.name = "x", attune.shape = ["rows", 8]},
                 %w: tensor<16x8xf32> {attune.kind = "input", attune.name = "w", attune.shape = [16, 8]})
    -> (tensor<?x16xf32> {attune.kind = "output", attune.name = "y", attune.shape = ["rows", 16]})
    attributes {attune.entry} {
  %y = attune.linear %x, %w activation <silu> : tensor<?x8xf32>, tensor<16x8xf32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
