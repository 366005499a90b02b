// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=8 rows=4 cooperative}))" --split-input-file | FileCheck %s

// For a GPU it stays one op, with a place for the result and one for the state.
// CHECK-LABEL: @block(
// CHECK:         %[[D:.+]] = tensor.empty(%{{.+}}) : tensor<2x4x?x6xbf16>
// CHECK:         %[[T:.+]] = tensor.empty() : tensor<2x2x8x7xf32>
// CHECK:         %[[R:.+]]:2 = attune.linear_attention_into %arg0, %arg1, %arg2 <elu_plus_one> causal normalised 9.99999997E-7 mask %arg3 : tensor<2x1x1x?xi1> state %arg4 : tensor<2x2x8x7xf32> into %[[D]] sums %[[T]] : tensor<2x2x8x7xf32> :
// CHECK-NOT:     scf.forall
// CHECK:         return %[[R]]#0, %[[R]]#1
func.func @block(%q: tensor<2x4x?x8xbf16>, %k: tensor<2x2x?x8xbf16>, %v: tensor<2x2x?x6xbf16>, %m: tensor<2x1x1x?xi1>, %s0: tensor<2x2x8x7xf32>) -> (tensor<2x4x?x6xbf16>, tensor<2x2x8x7xf32>) {
  %y, %s = attune.linear_attention %q, %k, %v <elu_plus_one> causal normalised 1.0e-6 mask %m : tensor<2x1x1x?xi1> state %s0 : tensor<2x2x8x7xf32>
    : tensor<2x4x?x8xbf16>, tensor<2x2x?x8xbf16>, tensor<2x2x?x6xbf16> -> tensor<2x4x?x6xbf16> state tensor<2x2x8x7xf32>
  return %y, %s : tensor<2x4x?x6xbf16>, tensor<2x2x8x7xf32>
}

// -----

// Features that shared memory has no room for: a thread for each head.
// CHECK-LABEL: @too_wide(
// CHECK-NOT:     attune.
// CHECK:         scf.forall (%{{.+}}, %{{.+}}) in (2, 2)
func.func @too_wide(%q: tensor<2x4x?x1024xf32>, %k: tensor<2x2x?x1024xf32>, %v: tensor<2x2x?x6xf32>) -> tensor<2x4x?x6xf32> {
  %y = attune.linear_attention %q, %k, %v <relu> causal : tensor<2x4x?x1024xf32>, tensor<2x2x?x1024xf32>, tensor<2x2x?x6xf32> -> tensor<2x4x?x6xf32>
  return %y : tensor<2x4x?x6xf32>
}
