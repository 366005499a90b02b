// RUN: attune-opt %s | FileCheck %s
// RUN: attune-opt %s --mlir-print-op-generic | attune-opt | FileCheck %s

// CHECK-LABEL: @top_k(
func.func @top_k(%logits: tensor<?x50257xf32>, %k: index) -> (tensor<?x?xi64>, tensor<?x?xf32>) {
  // CHECK: attune.top_k %{{.+}} count %{{.+}} : tensor<?x50257xf32> -> tensor<?x?xi64>, tensor<?x?xf32>
  %ids, %values = attune.top_k %logits count %k
     : tensor<?x50257xf32> -> tensor<?x?xi64>, tensor<?x?xf32>
  return %ids, %values : tensor<?x?xi64>, tensor<?x?xf32>
}

// CHECK-LABEL: @constant_count(
func.func @constant_count(%x: tensor<2x?xbf16>) -> (tensor<2x3xi64>, tensor<2x?xf32>) {
  %k = arith.constant 3 : index
  // CHECK: attune.top_k %{{.+}} count %{{.+}} : tensor<2x?xbf16> -> tensor<2x3xi64>, tensor<2x?xf32>
  %ids, %values = attune.top_k %x count %k : tensor<2x?xbf16> -> tensor<2x3xi64>, tensor<2x?xf32>
  return %ids, %values : tensor<2x3xi64>, tensor<2x?xf32>
}
