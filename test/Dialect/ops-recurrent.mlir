// RUN: attune-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: @cell(
func.func @cell(%x: tensor<?x24xf32>, %u: tensor<?x24xf32>, %h: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // CHECK: attune.recurrent_cell <gru> %{{.+}}, %{{.+}} state %{{.+}} : tensor<?x8xf32> :
  %g = attune.recurrent_cell <gru> %x, %u state %h : tensor<?x8xf32>
     : tensor<?x24xf32>, tensor<?x24xf32> -> tensor<?x8xf32>
  return %g : tensor<?x8xf32>
}

// CHECK-LABEL: @lstm_cell(
func.func @lstm_cell(%x: tensor<?x32xf32>, %u: tensor<?x32xf32>, %h: tensor<?x8xf32>, %c: tensor<?x8xf32>, %m: tensor<?xi1>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  // CHECK: attune.recurrent_cell <lstm> %{{.+}}, %{{.+}} state %{{.+}} : tensor<?x8xf32> cell %{{.+}} : tensor<?x8xf32> keep %{{.+}} : tensor<?xi1> :
  %g:2 = attune.recurrent_cell <lstm> %x, %u state %h : tensor<?x8xf32> cell %c : tensor<?x8xf32> keep %m : tensor<?xi1>
     : tensor<?x32xf32>, tensor<?x32xf32> -> tensor<?x8xf32>, tensor<?x8xf32>
  return %g#0, %g#1 : tensor<?x8xf32>, tensor<?x8xf32>
}

// CHECK-LABEL: @layer(
func.func @layer(%gates: tensor<?x?x24xf32>, %w: tensor<24x8xf32>, %b: tensor<24xf32>) -> (tensor<?x?x8xf32>, tensor<?x8xf32>) {
  // CHECK: attune.recurrent <gru> %{{.+}}, %{{.+}} bias %{{.+}} : tensor<24xf32> reverse :
  %seq, %last = attune.recurrent <gru> %gates, %w bias %b : tensor<24xf32> reverse
     : tensor<?x?x24xf32>, tensor<24x8xf32> -> tensor<?x?x8xf32>, tensor<?x8xf32>
  return %seq, %last : tensor<?x?x8xf32>, tensor<?x8xf32>
}

// CHECK-LABEL: @scores(
func.func @scores(%q: tensor<?x1x1x28xf32>, %k: tensor<?x1x?x28xf32>, %v: tensor<1x28xf32>) -> tensor<?x1x1x?xf32> {
  // CHECK: attune.additive_similarity %{{.+}}, %{{.+}}, %{{.+}} activation <tanh> :
  %e = attune.additive_similarity %q, %k, %v activation <tanh>
     : tensor<?x1x1x28xf32>, tensor<?x1x?x28xf32>, tensor<1x28xf32> -> tensor<?x1x1x?xf32>
  return %e : tensor<?x1x1x?xf32>
}
