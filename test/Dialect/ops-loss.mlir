// RUN: attune-opt %s | FileCheck %s
// RUN: attune-opt %s --mlir-print-op-generic | attune-opt | FileCheck %s

// CHECK-LABEL: @cross_entropy(
func.func @cross_entropy(%x: tensor<?x?x512xf32>, %t: tensor<?x?xi64>) -> tensor<f32> {
  // CHECK: attune.cross_entropy %{{.+}}, %{{.+}} ignore -100 : tensor<?x?x512xf32>, tensor<?x?xi64> -> tensor<f32>
  %l = attune.cross_entropy %x, %t ignore -100
     : tensor<?x?x512xf32>, tensor<?x?xi64> -> tensor<f32>
  return %l : tensor<f32>
}
