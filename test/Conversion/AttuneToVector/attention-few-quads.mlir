// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-attention-to-online,convert-attune-online-to-vector{lanes=32 rows=12},canonicalize,cse))" | FileCheck %s
// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-attention-to-online,convert-attune-online-to-vector{lanes=16 rows=6},canonicalize,cse))" | FileCheck %s --check-prefix=EIGHT

// Of f32, too, eight rows meet four keys at a time. A vector has the same four
// channels of four rows, scaled and packed once; four channels of a key are
// repeated for them and meet both fours. Six additions make two quads, which
// become rows where they are weighed. Eight rows meet a value at once.
// CHECK-LABEL: func.func @eight_rows(
// CHECK:         %[[QUERIES:.+]] = bufferization.alloc_tensor() : tensor<2x8x16xf32>
// CHECK:         arith.mulf {{.*}} : vector<4xf32>
// CHECK:         scf.for {{.*}} step %c256
// CHECK:           scf.for {{.*}} to %c32 step %c4
// CHECK:             %[[FIRST:.+]] = vector.transfer_read {{.*}} : tensor<2x8x16xf32>, vector<16xf32>
// CHECK:             %[[OTHERS:.+]] = vector.transfer_read {{.*}} : tensor<2x8x16xf32>, vector<16xf32>
// CHECK:             %[[KEY:.+]] = vector.transfer_read {{.*}} : tensor<1x1x?x32xf32>, vector<4xf32>
// CHECK:             %[[REPEATED:.+]] = vector.shuffle %[[KEY]], %[[KEY]] [0, 1, 2, 3, 0, 1, 2, 3, 0,
// CHECK-NEXT:        vector.fma %[[FIRST]], %[[REPEATED]], %{{.+}}
// CHECK-NEXT:        vector.fma %[[OTHERS]], %[[REPEATED]], %{{.+}}
// CHECK-COUNT-62:    vector.fma
// CHECK-NOT:         vector.fma
// CHECK-COUNT-6:     arith.addf {{.*}} : vector<16xf32>
// CHECK-NOT:         arith.addf
// CHECK-COUNT-2:     vector.transfer_write {{.*}} : vector<16xf32>, tensor<12x256xf32>
// CHECK:           scf.for {{.*}} step %c4
// CHECK-COUNT-8:     vector.transfer_read {{.*}} : tensor<12x256xf32>, vector<16xf32>
// CHECK-COUNT-4:     math.exp2 %{{[^ ]+}} : vector<32xf32>
// CHECK-COUNT-8:     vector.fma {{.*}} : vector<32xf32>
// CHECK:         return
//
// Of eight lanes, a vector has the four channels of two rows, and two of them
// meet four keys. A quad is two rows by four keys, whose halves are stored as
// rows. Keys of a whole panel need no test for where they end; those of the
// last one repeat the last key. Two rows meet four values in a turn.
// EIGHT-LABEL: func.func @eight_rows(
// EIGHT:         %[[QUERIES:.+]] = bufferization.alloc_tensor() : tensor<4x8x8xf32>
// EIGHT:         arith.mulf {{.*}} : vector<4xf32>
// EIGHT:         scf.for {{.*}} step %c256
// EIGHT:           %[[PANELS:.+]] = arith.divui %{{.+}}, %c16
// EIGHT:           %[[MOST:.+]] = arith.minsi %{{.+}}, %[[PANELS]]
// EIGHT:           %[[WHOLE:.+]] = arith.maxsi %[[MOST]], %c0
// EIGHT:           scf.for {{.*}} to %[[WHOLE]] step
// EIGHT:             scf.for {{.*}} step %c4
// EIGHT:               scf.for {{.*}} to %c16 step %c4
// EIGHT:                 scf.for {{.*}} to %c8 step %c4
// EIGHT-NOT:               arith.minsi
// EIGHT:                   vector.transfer_read {{.*}} : tensor<4x8x8xf32>, vector<8xf32>
// EIGHT:                   vector.transfer_read {{.*}} : tensor<4x8x8xf32>, vector<8xf32>
// EIGHT:                   %[[KEY:.+]] = vector.transfer_read {{.*}} : tensor<1x1x?x32xf32>, vector<4xf32>
// EIGHT:                   vector.shuffle %[[KEY]], %[[KEY]] [0, 1, 2, 3, 0, 1, 2, 3]
// EIGHT-COUNT-32:          vector.fma {{.*}} : vector<8xf32>
// EIGHT-NOT:               vector.fma
// EIGHT-COUNT-6:         arith.addf {{.*}} : vector<8xf32>
// EIGHT-NOT:             arith.addf
// EIGHT-COUNT-4:         vector.transfer_write {{.*}} : vector<4xf32>, tensor<8x256xf32>
// EIGHT:           scf.for %{{.+}} = %[[WHOLE]] to
// EIGHT:               scf.for {{.*}} to %c16 step %c4
// EIGHT:                 arith.minsi
// EIGHT:           scf.for {{.*}} step %c2
// EIGHT-COUNT-2:     math.exp2 %{{[^ ]+}} : vector<16xf32>
// EIGHT:           scf.for {{.*}} step %c2
// EIGHT-COUNT-16:    vector.fma {{.*}} : vector<16xf32>
// EIGHT:         return
func.func @eight_rows(%q: tensor<1x8x1x32xf32>, %k: tensor<1x1x?x32xf32>, %v: tensor<1x1x?x32xf32>) -> tensor<1x8x1x32xf32> {
  %y = attune.attention %q, %k, %v scale 0.125
    : tensor<1x8x1x32xf32>, tensor<1x1x?x32xf32>, tensor<1x1x?x32xf32> -> tensor<1x8x1x32xf32>
  return %y : tensor<1x8x1x32xf32>
}

// Six rows would be eight: with eight lanes, they stay three times two, whose
// channels lie side by side.
// EIGHT-LABEL: func.func @six_rows(
// EIGHT-NOT:     tensor<3x8x8xf32>
// EIGHT:         scf.for {{.*}} to %c6 step %c2
// EIGHT:           scf.for {{.*}} to %c16 step %c4
// EIGHT-COUNT-6:     vector.transfer_read {{.*}} : tensor<{{.*}}xf32>, vector<8xf32>
// EIGHT:             vector.transfer_write {{.*}} : vector<4xf32>, tensor<6x256xf32>
// EIGHT:         return
func.func @six_rows(%q: tensor<1x6x1x32xf32>, %k: tensor<1x1x?x32xf32>, %v: tensor<1x1x?x32xf32>) -> tensor<1x6x1x32xf32> {
  %y = attune.attention %q, %k, %v scale 0.125
    : tensor<1x6x1x32xf32>, tensor<1x1x?x32xf32>, tensor<1x1x?x32xf32> -> tensor<1x6x1x32xf32>
  return %y : tensor<1x6x1x32xf32>
}
