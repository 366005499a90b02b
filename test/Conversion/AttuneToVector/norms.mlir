// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=8}),canonicalize,cse)" --split-input-file | FileCheck %s --implicit-check-not="_norm"

// Mean first, then the squares of what is left; 20 is two vectors of 8 and one
// masked.
// CHECK-LABEL: @two_passes(
// CHECK:         scf.forall
// CHECK:           vector.reduction <add>
// CHECK:           arith.divf
// CHECK:           arith.subf
// CHECK:           arith.mulf
// CHECK:           vector.reduction <add>
// CHECK:           math.rsqrt %{{.+}} : vector<8xf32>
// CHECK:           vector.transfer_write
func.func @two_passes(%x: tensor<?x20xf32>, %g: tensor<20xf32>, %b: tensor<20xf32>) -> tensor<?x20xf32> {
  %y = attune.layer_norm %x gamma %g : tensor<20xf32> beta %b : tensor<20xf32> eps 1.0e-05 : tensor<?x20xf32>
  return %y : tensor<?x20xf32>
}

// -----

// CHECK-LABEL: @offset(
// CHECK-DAG:     %[[ONE:.+]] = arith.constant dense<1.000000e+00> : vector<8xf32>
// CHECK:         vector.reduction <add>
// CHECK-NOT:     vector.reduction
// CHECK:         math.rsqrt
// CHECK:         arith.addf %{{.+}}, %[[ONE]] : vector<8xf32>
func.func @offset(%x: tensor<?x?x16xf32>, %g: tensor<16xf32>) -> tensor<?x?x16xf32> {
  %y = attune.rms_norm %x gamma %g : tensor<16xf32> eps 1.0e-06 offset 1.0 : tensor<?x?x16xf32>
  return %y : tensor<?x?x16xf32>
}

// -----

// Head by head, in place.
// CHECK-LABEL: @heads(
// CHECK-SAME:    %[[X:[^:]+]]: tensor<?x4x?x16xf32>
// CHECK-NOT:     tensor.empty
// CHECK:         scf.forall (%{{.+}}, %{{.+}}) in (%{{.+}}, 4) shared_outs(%{{.+}} = %[[X]])
func.func @heads(%x: tensor<?x4x?x16xf32>, %g: tensor<16xf32>) -> tensor<?x4x?x16xf32> {
  %y = attune.rms_norm %x gamma %g : tensor<16xf32> eps 1.0e-06 : tensor<?x4x?x16xf32>
  return %y : tensor<?x4x?x16xf32>
}

// -----

// Rounded as it is written; statistics stay f32.
// CHECK-LABEL: @rounded(
// CHECK:         tensor.empty({{.+}}) : tensor<?x16xbf16>
// CHECK:         vector.reduction <add>, %{{.+}} : vector<8xf32>
// CHECK:         arith.truncf %{{.+}} : vector<8xf32> to vector<8xbf16>
func.func @rounded(%x: tensor<?x16xf32>) -> tensor<?x16xbf16> {
  %y = attune.rms_norm %x eps 1.0e-06 : tensor<?x16xf32> -> tensor<?x16xbf16>
  return %y : tensor<?x16xbf16>
}
