// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-attention-to-online{query-block=24 key-block=64},attune-prefetch-tiles,convert-attune-online-to-vector{lanes=32 rows=12},canonicalize,cse))" | FileCheck %s
// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-attention-to-online{query-block=24 key-block=64},attune-prefetch-tiles,convert-attune-online-to-vector{lanes=32 rows=12 pairs},canonicalize,cse))" | FileCheck %s --check-prefix=PAIRS

// Before each product with a panel, many rows ask for lines of what comes next,
// the tile's next keys or the first of the tile behind it: of keys before those
// with keys and before those with values, and of values alike. Values of f32
// are met where they lie, and maxima and sums take half a panel's lanes. What
// comes of the twelve rows is then one vector.
// CHECK-LABEL: func.func @f32(
// CHECK-SAME:    tensor<1x2x24x32xf32>, %[[K:.+]]: tensor<1x2x128x32xf32>, %[[V:.+]]: tensor<1x2x128x32xf32>)
// CHECK:         scf.forall (%[[H:.+]]) in (2)
// CHECK-NOT:     bufferization.alloc_tensor() : tensor<1x64x32xf32>
// CHECK:         scf.for %[[AT:.+]] = %c0 to %c128 step %c64
// CHECK:         %[[BEHIND:.+]] = arith.addi %[[AT]], %c64
// CHECK-NEXT:    %[[MORE:.+]] = arith.cmpi ult, %[[BEHIND]], %c128
// CHECK-NEXT:    %[[H1:.+]] = arith.addi %[[H]], %c1
// CHECK-NEXT:    %[[NEXTHEAD:.+]] = arith.minsi %[[H1]], %c1
// CHECK-NEXT:    %[[IN:.+]] = arith.minsi %[[BEHIND]], %c127
// CHECK-NEXT:    %[[FIRST:.+]] = arith.select %[[MORE]], %[[IN]], %c0
// CHECK-NEXT:    %[[HEAD:.+]] = arith.select %[[MORE]], %[[H]], %[[NEXTHEAD]]
// CHECK-NEXT:    %[[REST:.+]] = arith.subi %c128, %[[FIRST]]
// CHECK-NEXT:    %[[NEXTK:.+]] = tensor.extract_slice %[[K]][0, %[[HEAD]], %[[FIRST]], 0] [1, 1, %[[REST]], 32]
// CHECK-NEXT:    %[[NEXTV:.+]] = tensor.extract_slice %[[V]][0, %[[HEAD]], %[[FIRST]], 0] [1, 1, %[[REST]], 32]
// CHECK:         arith.ceildivui
// CHECK:         scf.for {{.*}} -> (tensor<{{.+}}>, vector<16xf32>
// CHECK:           %[[KEYS:.+]] = bufferization.to_buffer %[[NEXTK]] read_only
// CHECK:           memref.prefetch %[[KEYS]][%c0, %c0, {{.*}} read, locality<2>
// CHECK:           %[[VALUES:.+]] = bufferization.to_buffer %[[NEXTV]] read_only
// CHECK:           memref.prefetch %[[VALUES]][%c0, %c0, {{.*}} read, locality<2>
// CHECK:           vector.fma
// CHECK:         arith.cmpf oeq, %[[MAXIMA:.+]], %{{.+}} : vector<16xf32>
// CHECK:         %[[SAFE:.+]] = arith.select %{{.+}}, %{{.+}}, %[[MAXIMA]] : vector<16xi1>, vector<16xf32>
// CHECK:         arith.subf %{{.+}}, %[[SAFE]] : vector<16xf32>
// CHECK:         math.exp2 %{{.+}} : vector<16xf32>
// CHECK:         scf.for {{.*}} -> (tensor<{{.+}}>, vector<16xf32>
// CHECK:           math.exp2 %{{[^ ]+}} : vector<32xf32>
// CHECK:         memref.prefetch {{.*}} read, locality<2>
// CHECK:         memref.prefetch {{.*}} read, locality<2>
// CHECK:         vector.fma
// CHECK:         return
func.func @f32(%q: tensor<1x2x24x32xf32>, %k: tensor<1x2x128x32xf32>, %v: tensor<1x2x128x32xf32>) -> tensor<1x2x24x32xf32> {
  %y = attune.attention %q, %k, %v scale 0.125 : tensor<1x2x24x32xf32>, tensor<1x2x128x32xf32>, tensor<1x2x128x32xf32> -> tensor<1x2x24x32xf32>
  return %y : tensor<1x2x24x32xf32>
}

// Values of 16 bits would be widened for each tile of rows, and those of 40
// channels end within a register: both go to panels. Where probabilities become
// pairs of bf16, their exponents need not be exact; those that sums shrink by do.
// PAIRS-LABEL: func.func @bf16(
// PAIRS:         math.exp2 %{{[^ ]+}} : vector<16xf32>
// PAIRS:         math.exp2 %{{.+}} fastmath<afn> : vector<32xf32>
// PAIRS:         x86vector.avx512.dot
// CHECK-LABEL: func.func @bf16(
// CHECK:         bufferization.alloc_tensor() : tensor<1x64x32xf32>
func.func @bf16(%q: tensor<1x2x24x32xbf16>, %k: tensor<1x2x128x32xbf16>, %v: tensor<1x2x128x32xbf16>) -> tensor<1x2x24x32xbf16> {
  %y = attune.attention %q, %k, %v scale 0.125 : tensor<1x2x24x32xbf16>, tensor<1x2x128x32xbf16>, tensor<1x2x128x32xbf16> -> tensor<1x2x24x32xbf16>
  return %y : tensor<1x2x24x32xbf16>
}
// CHECK-LABEL: func.func @forty(
// CHECK:         bufferization.alloc_tensor() : tensor<2x64x32xf32>
func.func @forty(%q: tensor<1x2x24x40xf32>, %k: tensor<1x2x128x40xf32>, %v: tensor<1x2x128x40xf32>) -> tensor<1x2x24x40xf32> {
  %y = attune.attention %q, %k, %v scale 0.125 : tensor<1x2x24x40xf32>, tensor<1x2x128x40xf32>, tensor<1x2x128x40xf32> -> tensor<1x2x24x40xf32>
  return %y : tensor<1x2x24x40xf32>
}
