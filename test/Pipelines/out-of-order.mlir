// Pipelines that are given what another one has to lower first say which.

// RUN: not attune-opt %s --attune-to-loops 2>&1 | FileCheck %s --check-prefix=TENSOR
// RUN: not attune-opt %s --attune-to-kernels 2>&1 | FileCheck %s --check-prefix=TENSOR
// TENSOR: out-of-order.mlir:[[#@LINE+11]]:8: error: the pipeline begins with what --attune-to-tensor gives, which leaves no 'attune.rms_norm' like this: run that before
// TENSOR-NOT: error
// RUN: not attune-opt %s --attune-to-vector 2>&1 | FileCheck %s --check-prefix=LOOPS
// RUN: not attune-opt %s --attune-to-tensor --attune-to-vector 2>&1 | FileCheck %s --check-prefix=LOOPS
// LOOPS: out-of-order.mlir:[[#]]:[[#]]: error: the pipeline begins with what --attune-to-loops gives, which leaves no '{{.+}}' like this: run that before
// RUN: not attune-opt %s --attune-to-llvm 2>&1 | FileCheck %s --check-prefix=VECTOR
// RUN: not attune-opt %s --attune-to-tensor --attune-to-loops --attune-to-llvm 2>&1 | FileCheck %s --check-prefix=VECTOR
// VECTOR: out-of-order.mlir:[[#]]:[[#]]: error: the pipeline begins with what --attune-to-vector gives, which leaves no '{{.+}}' like this: run that before
// RUN: attune-opt %s --attune-to-tensor --attune-to-loops --attune-to-vector --attune-to-llvm | FileCheck %s
// CHECK: llvm.func @norm
func.func @norm(%x: tensor<1x?x8xf32>, %g: tensor<8xf32>) -> tensor<1x?x8xf32> {
  %y = attune.rms_norm %x gamma %g : tensor<8xf32> eps 1.0e-5 : tensor<1x?x8xf32>
  return %y : tensor<1x?x8xf32>
}
