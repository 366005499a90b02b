// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=32 rows=3},attune-prefetch-tiles,convert-attune-product-to-vector{pair-products=false}),canonicalize,cse)" \
// RUN:   | FileCheck %s --implicit-check-not="x86vector.avx512.dot"

// Pairs become two vectors of f32, the lower halves and the upper ones. Four
// parts of a panel are more than three rows: numbers of the rows stay in
// registers, and what is made of a part is used and let go.
// CHECK-LABEL: @widened(
// CHECK:         scf.for %[[K:.+]] = %c0 to %c6 step %c1 {{.+}} -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>,
// CHECK-COUNT-4:   vector.transfer_read {{.+}}, vector<16xbf16>
// CHECK-COUNT-3:   vector.broadcast {{.+}} : f32 to vector<8xf32>
// CHECK:           arith.shli {{.+}} : vector<8xi32>
// CHECK-COUNT-3:   vector.fma
// CHECK:           arith.shli
// CHECK-COUNT-9:   vector.fma
// CHECK:           arith.andi {{.+}} : vector<8xi32>
// CHECK-COUNT-12:  vector.fma
// CHECK:           scf.yield
func.func @widened(%x: tensor<3x12xf32>, %w: tensor<2x6x64xbf16>) -> tensor<3x64xf32> {
  %y = attune.linear %x, %w : tensor<3x12xf32>, tensor<2x6x64xbf16> -> tensor<3x64xf32>
  return %y : tensor<3x64xf32>
}

// Rows of bf16 are widened, too.
// CHECK-LABEL: @rows(
// CHECK:         arith.extf {{.+}} : bf16 to f32
func.func @rows(%x: tensor<3x12xbf16>, %w: tensor<2x6x64xbf16>) -> tensor<3x64xf32> {
  %y = attune.linear %x, %w : tensor<3x12xbf16>, tensor<2x6x64xbf16> -> tensor<3x64xf32>
  return %y : tensor<3x64xf32>
}
