// Polynomials while there are vectors, then everything to one dialect.
// RUN: attune-opt %s --attune-to-llvm --dump-pass-pipeline 2>&1 >/dev/null | FileCheck %s

// CHECK: attune-approximate-math
// CHECK: expand-strided-metadata
// CHECK: lower-affine
// CHECK: convert-scf-to-cf
// CHECK: convert-vector-to-llvm
// CHECK: arith-expand
// CHECK: convert-math-to-llvm
// CHECK: finalize-memref-to-llvm
// CHECK: convert-index-to-llvm
// CHECK: convert-arith-to-llvm
// CHECK: convert-func-to-llvm
// CHECK: convert-cf-to-llvm
// CHECK: reconcile-unrealized-casts
// CHECK: canonicalize
// CHECK: attune-locate-calls

module {}
