// DEFINE: %{steps} = one-shot-bufferize{bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map},func.func(convert-attune-online-to-vector{lanes=32 rows=12 matrix},canonicalize,cse)
// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-attention-to-online{query-block=64 key-block=256 rows=12 matrix-rows=32}),%{steps})" -o %t && FileCheck %s --input-file=%t
// RUN: FileCheck %s --input-file=%t --check-prefix=VECTORS

// Blocks of 32 rows: scores of all panels of keys by a matrix unit, what becomes
// of them for 16 rows at a time in vectors, and sums over as many keys as there
// are, 128 at a time and then 32.
// CHECK-LABEL: func.func @tiles(
// CHECK-DAG:     %[[SUMS:.+]] = memref.alloca() {{.*}}: memref<2x32x32xf32>
// CHECK-DAG:     %[[SCORES:.+]] = memref.alloca() {{.*}}: memref<32x256xf32>
// CHECK-DAG:     %[[NARROW:.+]] = memref.alloca() {{.*}}: memref<32x256xbf16>
// Zeros behind the last value.
// CHECK:         vector.interleave
// CHECK:         scf.for
// CHECK:           vector.transfer_write %{{.+}}, %{{.+}} : vector<64xbf16>
// CHECK:         scf.for
// CHECK:           %[[Q:.+]] = memref.subview %{{.+}}[%{{.+}}, 0, 0] [1, 32, 64] [1, 1, 1] : memref<2x32x64xbf16> to memref<32x64xbf16
// CHECK:           scf.for
// CHECK:             %[[K:.+]] = memref.subview %{{.+}} [1, 32, 64] [1, 1, 1] : memref<8x32x64xbf16>
// CHECK:             %[[E:.+]] = memref.subview %[[SCORES]][0, %{{.+}}] [32, 32]
// CHECK:             attune.linear_into %[[Q]], %[[K]] into %[[E]] :
// CHECK:           scf.for
// CHECK:             vector.transfer_read %[[SCORES]]
// CHECK:             math.exp2 %{{.+}} fastmath<{{.*}}afn{{.*}}> : vector<32xf32>
// CHECK:             vector.transfer_write %{{.+}}, %[[NARROW]]
// CHECK:             vector.transfer_write %{{.+}}, %[[SUMS]]
// CHECK:           scf.for
// CHECK:             scf.for %{{.+}} step %c128
// CHECK:               memref.subview %[[NARROW]][0, %{{.+}}] [32, 128]
// CHECK:               attune.linear_into %{{.+}} residual :
// CHECK:             scf.for %{{.+}} step %c32
// CHECK:               memref.subview %[[NARROW]][0, %{{.+}}] [32, 32]
// CHECK:               attune.linear_into %{{.+}} residual :
// CHECK:           scf.for
// CHECK:             vector.transfer_read %[[SUMS]]
func.func @tiles(%q: tensor<1x1x64x64xbf16>, %k: tensor<1x1x500x64xbf16>, %v: tensor<1x1x500x64xbf16>) -> tensor<1x1x64x64xf32> {
  %r = attune.attention %q, %k, %v scale 0.125 : tensor<1x1x64x64xbf16>, tensor<1x1x500x64xbf16>, tensor<1x1x500x64xbf16> -> tensor<1x1x64x64xf32>
  return %r : tensor<1x1x64x64xf32>
}

// Few rows, widths that fill no tile and f32 stay in vectors.
// VECTORS-LABEL: func.func @few(
// VECTORS-NOT:     attune.linear_into
func.func @few(%q: tensor<1x1x16x64xbf16>, %k: tensor<1x1x500x64xbf16>, %v: tensor<1x1x500x64xbf16>) -> tensor<1x1x16x64xf32> {
  %r = attune.attention %q, %k, %v scale 0.125 : tensor<1x1x16x64xbf16>, tensor<1x1x500x64xbf16>, tensor<1x1x500x64xbf16> -> tensor<1x1x16x64xf32>
  return %r : tensor<1x1x16x64xf32>
}
func.func @narrow(%q: tensor<1x1x64x80xbf16>, %k: tensor<1x1x500x80xbf16>, %v: tensor<1x1x500x80xbf16>) -> tensor<1x1x64x80xf32> {
  %r = attune.attention %q, %k, %v scale 0.125 : tensor<1x1x64x80xbf16>, tensor<1x1x500x80xbf16>, tensor<1x1x500x80xbf16> -> tensor<1x1x64x80xf32>
  return %r : tensor<1x1x64x80xf32>
}
func.func @f32(%q: tensor<1x1x64x64xf32>, %k: tensor<1x1x500x64xf32>, %v: tensor<1x1x500x64xf32>) -> tensor<1x1x64x64xf32> {
  %r = attune.attention %q, %k, %v scale 0.125 : tensor<1x1x64x64xf32>, tensor<1x1x500x64xf32>, tensor<1x1x500x64xf32> -> tensor<1x1x64x64xf32>
  return %r : tensor<1x1x64x64xf32>
}
