// RUN: attune-opt %s | FileCheck %s
// RUN: attune-opt %s --mlir-print-op-generic | attune-opt | FileCheck %s

// CHECK-LABEL: @patches(
func.func @patches(%image: tensor<?x3x?x?xf32>) -> tensor<?x?x768xf32> {
  // CHECK: attune.patches %{{.+}} kernel [16, 16] stride [16, 16] padding [0, 0] : tensor<?x3x?x?xf32> -> tensor<?x?x768xf32>
  %p = attune.patches %image kernel [16, 16] stride [16, 16] padding [0, 0]
     : tensor<?x3x?x?xf32> -> tensor<?x?x768xf32>
  return %p : tensor<?x?x768xf32>
}

// CHECK-LABEL: @prepend(
func.func @prepend(%cls: tensor<1x768xf32>, %x: tensor<?x?x768xf32>) -> tensor<?x?x768xf32> {
  // CHECK: attune.prepend_tokens %{{.+}}, %{{.+}} : tensor<1x768xf32>, tensor<?x?x768xf32> -> tensor<?x?x768xf32>
  %y = attune.prepend_tokens %cls, %x
     : tensor<1x768xf32>, tensor<?x?x768xf32> -> tensor<?x?x768xf32>
  return %y : tensor<?x?x768xf32>
}

// CHECK-LABEL: @positions(
func.func @positions(%ids: tensor<?x?xi64>) -> tensor<?x?xi64> {
  // CHECK: attune.token_positions %{{.+}} pad 1 : tensor<?x?xi64> -> tensor<?x?xi64>
  %p = attune.token_positions %ids pad 1 : tensor<?x?xi64> -> tensor<?x?xi64>
  return %p : tensor<?x?xi64>
}

// CHECK-LABEL: @find(
func.func @find(%ids: tensor<?x?xi64>) -> tensor<?xi64> {
  // CHECK: attune.find_token %{{.+}} id 49407 : tensor<?x?xi64> -> tensor<?xi64>
  %i = attune.find_token %ids id 49407 : tensor<?x?xi64> -> tensor<?xi64>
  return %i : tensor<?xi64>
}

// CHECK-LABEL: @find_last(
func.func @find_last(%ids: tensor<?x?xi64>) -> tensor<?xi64> {
  // CHECK: attune.find_token %{{.+}} id 2 last : tensor<?x?xi64> -> tensor<?xi64>
  %i = attune.find_token %ids id 2 last : tensor<?x?xi64> -> tensor<?xi64>
  return %i : tensor<?xi64>
}

// CHECK-LABEL: @pool(
func.func @pool(%x: tensor<?x?x768xf32>, %m: tensor<?x1x1x?xi1>) -> tensor<?x768xf32> {
  // CHECK: attune.pool <mean> %{{.+}} mask %{{.+}} : tensor<?x1x1x?xi1> : tensor<?x?x768xf32> -> tensor<?x768xf32>
  %y = attune.pool <mean> %x mask %m : tensor<?x1x1x?xi1>
     : tensor<?x?x768xf32> -> tensor<?x768xf32>
  return %y : tensor<?x768xf32>
}

// CHECK-LABEL: @batch_norm(
func.func @batch_norm(%x: tensor<?x?x64xf32>, %g: tensor<64xf32>, %b: tensor<64xf32>, %m: tensor<64xf32>, %v: tensor<64xf32>) -> tensor<?x?x64xf32> {
  // CHECK: attune.batch_norm %{{.+}} eps 9.99999974E-6 : tensor<?x?x64xf32>, tensor<64xf32>
  %y = attune.batch_norm %x, %g, %b, %m, %v eps 1.000000e-05
     : tensor<?x?x64xf32>, tensor<64xf32>
  return %y : tensor<?x?x64xf32>
}
