// RUN: attune-opt %s | FileCheck %s
// RUN: attune-opt %s --mlir-print-op-generic | attune-opt | FileCheck %s

// CHECK-LABEL: @index_scores(
func.func @index_scores(%q: tensor<1x8x4x64xf32>, %k: tensor<1x1x6x64xf32>,
                        %w: tensor<1x4x8xf32>) -> tensor<1x4x6xf32> {
  // CHECK: attune.index_scores %{{.+}}, %{{.+}} shares %{{.+}} scale 1.250000e-01 : tensor<1x8x4x64xf32>, tensor<1x1x6x64xf32>, tensor<1x4x8xf32> -> tensor<1x4x6xf32>
  %i = attune.index_scores %q, %k shares %w scale 1.250000e-01
     : tensor<1x8x4x64xf32>, tensor<1x1x6x64xf32>, tensor<1x4x8xf32> -> tensor<1x4x6xf32>
  return %i : tensor<1x4x6xf32>
}

// CHECK-LABEL: @reach(
func.func @reach(%q: tensor<1x8x4x64xf32>, %k: tensor<1x1x6x64xf32>,
                 %w: tensor<1x4x8xf32>, %n: index) -> tensor<1x4x6xf32> {
  // CHECK: attune.index_scores %{{.+}}, %{{.+}} shares %{{.+}} scale 1.250000e-01 reach %{{.+}} : tensor
  %i = attune.index_scores %q, %k shares %w scale 1.250000e-01 reach %n
     : tensor<1x8x4x64xf32>, tensor<1x1x6x64xf32>, tensor<1x4x8xf32> -> tensor<1x4x6xf32>
  return %i : tensor<1x4x6xf32>
}

// Keys of a cache in bytes: 64 of them and a scale.
// CHECK-LABEL: @bytes(
func.func @bytes(%q: tensor<?x8x?x64xbf16>, %k: tensor<?x1x?x68xi8>,
                 %w: tensor<?x?x8xf32>, %n: index) -> tensor<?x?x?xf32> {
  // CHECK: attune.index_scores %{{.+}}, %{{.+}} shares %{{.+}} scale 1.000000e+00 reach %{{.+}} : tensor
  %i = attune.index_scores %q, %k shares %w scale 1.0 reach %n
     : tensor<?x8x?x64xbf16>, tensor<?x1x?x68xi8>, tensor<?x?x8xf32> -> tensor<?x?x?xf32>
  return %i : tensor<?x?x?xf32>
}

// CHECK-LABEL: @choose_keys(
func.func @choose_keys(%scores: tensor<1x4x6xf32>, %p: index) -> (tensor<1x4x2xi64>, tensor<1x4xi64>) {
  // CHECK: attune.choose_keys %{{.+}} top 2 past %{{.+}} : tensor<1x4x6xf32> -> tensor<1x4x2xi64>, tensor<1x4xi64>
  %places, %counts = attune.choose_keys %scores top 2 past %p
     : tensor<1x4x6xf32> -> tensor<1x4x2xi64>, tensor<1x4xi64>
  return %places, %counts : tensor<1x4x2xi64>, tensor<1x4xi64>
}

// CHECK-LABEL: @choose_shown(
func.func @choose_shown(%scores: tensor<1x4x6xf32>, %m: tensor<1x1x1x6xi1>, %n: tensor<1xi64>)
    -> (tensor<1x4x2xi64>, tensor<1x4xi64>) {
  // CHECK: attune.choose_keys %{{.+}} top 2 mask %{{.+}} : tensor<1x1x1x6xi1> lengths %{{.+}} : tensor<1xi64> : tensor<1x4x6xf32> -> tensor<1x4x2xi64>, tensor<1x4xi64>
  %places, %counts = attune.choose_keys %scores top 2 mask %m : tensor<1x1x1x6xi1>
     lengths %n : tensor<1xi64> : tensor<1x4x6xf32> -> tensor<1x4x2xi64>, tensor<1x4xi64>
  return %places, %counts : tensor<1x4x2xi64>, tensor<1x4xi64>
}
