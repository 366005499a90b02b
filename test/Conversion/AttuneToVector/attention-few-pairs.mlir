// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-attention-to-online,convert-attune-online-to-vector{lanes=32 rows=12 pairs},canonicalize,cse))" | FileCheck %s

// Eight rows meet four keys at a time. A vector has the same four pairs of four
// rows, packed once; eight channels of a key are repeated for them and meet both
// fours. Phases are added up in two rounds, and quads become rows where they are
// weighed. Eight rows meet a value at once, some channels after others, and
// fetch in order what follows.
// CHECK-LABEL: func.func @eight_rows(
// CHECK:         scf.forall
// CHECK:           %[[QUERIES:.+]] = bufferization.alloc_tensor() : tensor<2x8x32xbf16>
// CHECK:           %[[PROBABILITIES:.+]] = bufferization.alloc_tensor() : tensor<8x256xbf16>
// CHECK:           %[[PACKED:.+]] = scf.for {{.*}} iter_args(%{{.+}} = %[[QUERIES]])
// CHECK:           scf.for {{.*}} step %c256
// CHECK:             scf.for {{.*}} to %c32 step %c4
// CHECK-COUNT-8:       memref.prefetch {{.*}} read, locality<2>
// CHECK-NOT:           memref.prefetch
// CHECK:               %[[FIRST:.+]] = vector.transfer_read %[[PACKED]][%c0, %c0, %c0]
// CHECK:               %[[OTHERS:.+]] = vector.transfer_read %[[PACKED]][%c1, %c0, %c0]
// CHECK:               %[[KEY:.+]] = vector.transfer_read {{.*}} : tensor<1x1x?x64xbf16>, vector<8xbf16>
// CHECK:               %[[REPEATED:.+]] = vector.shuffle %[[KEY]], %[[KEY]] [0, 1, 2, 3, 4, 5, 6, 7, 0,
// CHECK-NEXT:          x86vector.avx512.dot %{{.+}}, %[[FIRST]], %[[REPEATED]]
// CHECK-NEXT:          x86vector.avx512.dot %{{.+}}, %[[OTHERS]], %[[REPEATED]]
// CHECK-COUNT-62:      x86vector.avx512.dot
// CHECK-NOT:           x86vector.avx512.dot
// CHECK-COUNT-6:       arith.addf {{.*}} : vector<16xf32>
// CHECK-NOT:           arith.addf
// CHECK-COUNT-2:       vector.transfer_write {{.*}} : vector<16xf32>, tensor<12x256xf32>
// CHECK:             scf.for {{.*}} step %c4 {{.*}} = %[[PROBABILITIES]])
// CHECK-COUNT-8:       vector.transfer_read {{.*}} : tensor<12x256xf32>, vector<16xf32>
// CHECK-COUNT-4:       arith.mulf {{.*}} : vector<32xf32>
// CHECK-COUNT-4:       math.exp2 {{.*}} : vector<32xf32>
// CHECK:             scf.for {{.*}} step %c128
// CHECK:               scf.for {{.*}} to %c64 step %c32
// CHECK:                 scf.for {{.*}} step %c2
// CHECK-COUNT-2:           memref.prefetch {{.*}} read, locality<2>
// CHECK-NOT:               memref.prefetch
// CHECK-COUNT-16:          x86vector.avx512.dot
// CHECK-NOT:               x86vector.avx512.dot
// CHECK:         return
func.func @eight_rows(%q: tensor<1x8x1x64xbf16>, %k: tensor<1x1x?x64xbf16>, %v: tensor<1x1x?x64xbf16>) -> tensor<1x8x1x64xbf16> {
  %y = attune.attention %q, %k, %v scale 0.125 causal <bottom_right>
    : tensor<1x8x1x64xbf16>, tensor<1x1x?x64xbf16>, tensor<1x1x?x64xbf16> -> tensor<1x8x1x64xbf16>
  return %y : tensor<1x8x1x64xbf16>
}

// No more than four rows are not worth phases: all lanes of a sum are added up.
// CHECK-LABEL: func.func @four_rows(
// CHECK:         scf.for {{.*}} to %c32 step %c4
// CHECK-COUNT-32:  x86vector.avx512.dot
// CHECK-NOT:       x86vector.avx512.dot
// CHECK-COUNT-15:  arith.addf {{.*}} : vector<16xf32>
// CHECK-NOT:       arith.addf
// CHECK-COUNT-4:   vector.transfer_write {{.*}} : vector<4xf32>, tensor<12x256xf32>
// CHECK:         return
func.func @four_rows(%q: tensor<1x4x1x64xbf16>, %k: tensor<1x1x?x64xbf16>, %v: tensor<1x1x?x64xbf16>) -> tensor<1x4x1x64xbf16> {
  %y = attune.attention %q, %k, %v scale 0.125 causal <bottom_right>
    : tensor<1x4x1x64xbf16>, tensor<1x1x?x64xbf16>, tensor<1x1x?x64xbf16> -> tensor<1x4x1x64xbf16>
  return %y : tensor<1x4x1x64xbf16>
}

// One query of a head, known when the program runs: sixteen keys for one row; of
// some queries, four rows by four keys.
// CHECK-LABEL: func.func @one_row(
// CHECK:         scf.if
// CHECK:           scf.for {{.*}} to %c32 step %c16
// CHECK-COUNT-32:    x86vector.avx512.dot
// CHECK-NOT:         x86vector.avx512.dot
// CHECK-COUNT-15:    arith.addf {{.*}} : vector<16xf32>
// CHECK:             vector.transfer_write {{.*}} : vector<16xf32>, tensor<16x256xf32>
// CHECK:         } else {
// CHECK:           scf.if
// CHECK:             scf.for {{.*}} to %c32 step %c4
func.func @one_row(%q: tensor<1x1x?x64xbf16>, %k: tensor<1x1x?x64xbf16>, %v: tensor<1x1x?x64xbf16>) -> tensor<1x1x?x64xbf16> {
  %y = attune.attention %q, %k, %v scale 0.125 causal <bottom_right>
    : tensor<1x1x?x64xbf16>, tensor<1x1x?x64xbf16>, tensor<1x1x?x64xbf16> -> tensor<1x1x?x64xbf16>
  return %y : tensor<1x1x?x64xbf16>
}
