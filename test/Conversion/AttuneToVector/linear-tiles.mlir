// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=32 rows=3 matrix-rows=16},canonicalize,cse))" | FileCheck %s
// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=32 rows=6 matrix-rows=16 wide-tiles=true}))" \
// RUN:   | FileCheck %s --check-prefix=ALONE
// RUN: not attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{matrix-rows=-1}))" 2>&1 \
// RUN:   | FileCheck %s --check-prefix=FEW
// RUN: not attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-product-to-vector{matrix-rows=-1}))" 2>&1 \
// RUN:   | FileCheck %s --check-prefix=FEW
// FEW: error: matrix-rows {{.*}}must be 0 or positive
// RUN: not attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-product-to-vector{matrix-depth=8}))" 2>&1 \
// RUN:   | FileCheck %s --check-prefix=SHALLOW
// SHALLOW: error: {{.+}}matrix-depth at least 32, the inputs of a register

// For a matrix unit, parts of rows have whole blocks of 32, and steps as many
// panels as it passes at a time. The tile is that of vectors, which take fewer
// rows; wide ones are not for it.
// CHECK-LABEL: @tiles(
// CHECK-SAME:    %[[X:[^:]+]]: tensor<?x64xbf16>, %[[W:[^:]+]]: tensor<2x32x64xbf16>, %[[B:[^:]+]]: tensor<64xf32>)
// CHECK:         %[[D:.+]] = tensor.dim %[[X]], %c0
// CHECK:         arith.cmpi ule, %[[D]], %c32
// CHECK:         arith.divui %[[D]], %c64
// CHECK:         scf.forall
// CHECK:           attune.packed_product %[[X]][%{{.+}}], %[[W]][%{{.+}}, %{{.+}}] of 64 bias %[[B]] : tensor<64xf32> tile [3, 1]
// ALONE:           attune.packed_product {{.+}} tile [6, 1]
func.func @tiles(%x: tensor<?x64xbf16>, %w: tensor<2x32x64xbf16>, %b: tensor<64xf32>) -> tensor<?x64xf32> {
  %y = attune.linear %x, %w bias %b : tensor<64xf32> : tensor<?x64xbf16>, tensor<2x32x64xbf16> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
