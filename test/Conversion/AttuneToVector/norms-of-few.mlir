// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=8 rows=4 cooperative norm-rows=8}))" | FileCheck %s
// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=8 rows=4 cooperative}))" | FileCheck %s --check-prefix=APART
// RUN: not attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=8 rows=4 norm-rows=8}))" 2>&1 | FileCheck %s --check-prefix=CPU

// CPU: error: norm-rows must be positive, of a GPU's cooperating threads, or 0
// APART-NOT: attune.normed_linear_into
// APART:     attune.linear_into
// APART-NOT: attune.normed_linear_into

attune.weight @gamma : tensor<64xf32> from [#attune.source<"gamma">]
attune.weight @beta : tensor<64xf32> from [#attune.source<"beta">]

// The norm of many rows is made before, and both layers read it.
// CHECK-LABEL: func.func @two(
// CHECK-SAME:    %[[X:.+]]: tensor<?x?x64xf32>, %[[W:.+]]: tensor<3x64x8xbf16>
// CHECK-DAG:     %[[G:.+]] = attune.weight_get @gamma
// CHECK-DAG:     %[[ROWS:.+]] = attune.flatten_tokens %[[X]] :
// CHECK-DAG:     %[[COUNT:.+]] = tensor.dim %[[ROWS]], %c0
// CHECK-DAG:     %[[ROOM:.+]] = bufferization.alloc_tensor(%[[COUNT]]) : tensor<?x64xbf16>
// CHECK:         %[[MANY:.+]] = arith.cmpi ugt, %[[COUNT]], %c8
// CHECK:         %[[N:.+]] = scf.if %[[MANY]]
// CHECK:           %[[MADE:.+]] = scf.forall {{.+}} shared_outs(%{{.+}} = %[[ROOM]])
// CHECK:           scf.yield %[[MADE]]
// CHECK:           scf.yield %[[ROOM]]
// CHECK-NOT:     scf.forall
// CHECK:         attune.normed_linear_into %{{.+}} of %{{.+}} gamma %[[G]] : tensor<64xf32> eps 9.99999974E-6 few 8, %[[W]] into
// CHECK-NOT:     scf.forall
// CHECK:         attune.normed_linear_into {{.+}} activation <gelu>
func.func @two(%x: tensor<?x?x64xf32>, %w: tensor<3x64x8xbf16>) -> (tensor<?x?x24xf32>, tensor<?x?x24xf32>) {
  %g = attune.weight_get @gamma : tensor<64xf32>
  %n = attune.rms_norm %x gamma %g : tensor<64xf32> eps 1.0e-5 : tensor<?x?x64xf32> -> tensor<?x?x64xbf16>
  %y = attune.linear %n, %w : tensor<?x?x64xbf16>, tensor<3x64x8xbf16> -> tensor<?x?x24xf32>
  %z = attune.linear %n, %w activation <gelu> : tensor<?x?x64xbf16>, tensor<3x64x8xbf16> -> tensor<?x?x24xf32>
  return %y, %z : tensor<?x?x24xf32>, tensor<?x?x24xf32>
}

// A layer norm, and weights in few bits.
// CHECK-LABEL: func.func @numbers(
// CHECK:         scf.if
// CHECK:         attune.normed_linear_into {{.+}} gamma %{{.+}} beta %{{.+}} : tensor<64xf32> centred eps 9.99999974E-6 offset 1.000000e+00 few 8, %{{.+}} scales %{{.+}} : tensor<3x2x8xf16> into
func.func @numbers(%x: tensor<?x64xf32>, %w: tensor<3x8x32xi8>, %s: tensor<3x2x8xf16>) -> tensor<?x24xf32> {
  %g = attune.weight_get @gamma : tensor<64xf32>
  %b = attune.weight_get @beta : tensor<64xf32>
  %n = attune.layer_norm %x gamma %g : tensor<64xf32> beta %b : tensor<64xf32> eps 1.0e-5 offset 1.0 : tensor<?x64xf32>
  %y = attune.quantized_linear %n, %w scales %s : (tensor<?x64xf32>), (tensor<3x8x32xi8>, tensor<3x2x8xf16>) -> tensor<?x24xf32>
  return %y : tensor<?x24xf32>
}

// Of gate and up in few bits one row.
// CHECK-LABEL: func.func @gated_numbers(
// CHECK:         arith.cmpi ugt, %{{.+}}, %c1
// CHECK:         attune.normed_linear_into {{.+}} few 1, %{{.+}} gated
func.func @gated_numbers(%x: tensor<?x64xf32>, %w: tensor<6x8x32xi8>, %s: tensor<6x2x8xf16>) -> tensor<?x24xf32> {
  %n = attune.rms_norm %x eps 1.0e-5 : tensor<?x64xf32>
  %y = attune.quantized_linear %n, %w scales %s activation <silu> gated : (tensor<?x64xf32>), (tensor<6x8x32xi8>, tensor<6x2x8xf16>) -> tensor<?x24xf32>
  return %y : tensor<?x24xf32>
}

// So few that they are never normalised before.
// CHECK-LABEL: func.func @never_many(
// CHECK-NOT:     scf.
// CHECK:         attune.normed_linear_into
// CHECK-NOT:     scf.
func.func @never_many(%x: tensor<8x64xf32>, %w: tensor<3x64x8xf32>) -> tensor<8x24xf32> {
  %n = attune.rms_norm %x eps 1.0e-5 : tensor<8x64xf32>
  %y = attune.linear %n, %w : tensor<8x64xf32>, tensor<3x64x8xf32> -> tensor<8x24xf32>
  return %y : tensor<8x24xf32>
}

// CHECK-LABEL: func.func @never_few(
// CHECK:         scf.forall
// CHECK:         attune.linear_into
func.func @never_few(%x: tensor<9x64xf32>, %w: tensor<3x64x8xf32>) -> tensor<9x24xf32> {
  %n = attune.rms_norm %x eps 1.0e-5 : tensor<9x64xf32>
  %y = attune.linear %n, %w : tensor<9x64xf32>, tensor<3x64x8xf32> -> tensor<9x24xf32>
  return %y : tensor<9x24xf32>
}

// The norm is there anyway.
// CHECK-LABEL: func.func @read_elsewhere(
// CHECK-NOT:     attune.normed_linear_into
func.func @read_elsewhere(%x: tensor<?x64xf32>, %w: tensor<3x64x8xf32>) -> (tensor<?x24xf32>, tensor<?x64xf32>) {
  %n = attune.rms_norm %x eps 1.0e-5 : tensor<?x64xf32>
  %y = attune.linear %n, %w : tensor<?x64xf32>, tensor<3x64x8xf32> -> tensor<?x24xf32>
  return %y, %n : tensor<?x24xf32>, tensor<?x64xf32>
}

// The result takes the place of the rows while other blocks read them.
// CHECK-LABEL: func.func @overwritten(
// CHECK-NOT:     attune.normed_linear_into
func.func @overwritten(%x: tensor<?x64xf32>, %w: tensor<8x64x8xf32>) -> tensor<?x64xf32> {
  %n = attune.rms_norm %x eps 1.0e-5 : tensor<?x64xf32>
  %y = attune.linear %n, %w residual %x : tensor<?x64xf32> : tensor<?x64xf32>, tensor<8x64x8xf32> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// The same by a layer that comes before.
// CHECK-LABEL: func.func @overwritten_before(
// CHECK-NOT:     attune.normed_linear_into
func.func @overwritten_before(%x: tensor<?x64xf32>, %w: tensor<8x64x8xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  %n = attune.rms_norm %x eps 1.0e-5 : tensor<?x64xf32>
  %y = attune.linear %n, %w : tensor<?x64xf32>, tensor<8x64x8xf32> -> tensor<?x64xf32>
  %z = attune.linear %y, %w residual %x : tensor<?x64xf32> : tensor<?x64xf32>, tensor<8x64x8xf32> -> tensor<?x64xf32>
  %u = attune.linear %n, %w activation <gelu> : tensor<?x64xf32>, tensor<8x64x8xf32> -> tensor<?x64xf32>
  return %z, %u : tensor<?x64xf32>, tensor<?x64xf32>
}

// A gain that another kernel makes: blocks read theirs before it ends.
// CHECK-LABEL: func.func @made_gain(
// CHECK-NOT:     attune.normed_linear_into
func.func @made_gain(%x: tensor<?x64xf32>, %w: tensor<3x64x8xf32>, %g: tensor<64xf32>) -> tensor<?x24xf32> {
  %n = attune.rms_norm %x gamma %g : tensor<64xf32> eps 1.0e-5 : tensor<?x64xf32>
  %y = attune.linear %n, %w : tensor<?x64xf32>, tensor<3x64x8xf32> -> tensor<?x24xf32>
  return %y : tensor<?x24xf32>
}
