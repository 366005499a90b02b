// RUN: attune-opt %s --attune-validate --pass-pipeline='builtin.module(attune-optimize,attune-to-tensor,attune-to-loops,attune-to-vector,func.func(lower-vector-mask,convert-vector-to-scf{full-unroll=true}),convert-scf-to-cf)' | FileCheck %s
//
// A backend begins where the target does: `attune-to-vector` leaves loops over
// vectors and memory, and each thread's share of them. This one goes on with
// passes of MLIR instead of `attune-to-llvm`. An entry function writes to
// arguments that it is given.
//
// One of your own is a class (attune/Target/Backend.h) that a plugin registers,
// and `--target=NAME`. The pipelines ask it for passes at three places:
//   addBufferPasses  in attune-to-loops, once tensors are memory
//   addThreadPasses  in attune-to-vector, once tiles are vectors
//   addCodePasses    at the start of attune-to-llvm
// `--attune-to-vector=gpu=sm_80` shows what CUDA's adds: try it here, and look
// for gpu.launch_func. ../wasm-backend is a whole backend.

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
