// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-product-to-vector{matrix-rows=16 matrix-quads=true matrix-depth=64 matrix-bytes=65536}))" --split-input-file -o %t && FileCheck %s --input-file=%t
// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-product-to-vector{matrix-rows=6 matrix-depth=64 matrix-bytes=65536}))" --split-input-file -o %t && FileCheck %s --input-file=%t --check-prefix=PADDED

// Rows for a matrix unit: the first 64 inputs of all rows and panels, then the
// next ones, and of the last part each block's results as soon as its sums are
// there. Halves of a block take what is left of the rows.
// CHECK-LABEL: func.func @parts(
// CHECK-SAME:    %[[X:[^:]+]]: memref<?x192xbf16>, %[[W:[^:]+]]: memref<20x96x64xbf16>, %[[Y:[^:]+]]: memref<?x640xf32>)
// CHECK:         %[[S:.+]] = memref.alloca() {alignment = 64 : i64} : memref<512x32xf32>
// CHECK:         %[[ROWS:.+]] = memref.dim %[[Y]]
// CHECK:         %[[FEW:.+]] = arith.cmpi slt, %[[ROWS]], %c16
// CHECK:         %[[WHOLE:.+]] = arith.cmpi ugt,
// Panels in groups of eight; rows in groups of 64; parts.
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             scf.if %[[WHOLE]] {
// CHECK-NEXT:        } else {
// CHECK:               scf.for
// CHECK:                 scf.if %{{.+}} {
// CHECK:                   scf.for
// CHECK-DAG:                 %[[A:.+]] = memref.subview %[[X]][%{{.+}}, 0] [32, 64] [1, 1]
// CHECK-DAG:                 %[[P:.+]] = memref.subview %[[W]][%{{.+}}, 0, 0] [1, 32, 64] [1, 1, 1]
// CHECK-DAG:                 %[[D:.+]] = memref.subview %[[S]][%{{.+}}, 0] [32, 32] [1, 1]
// CHECK:                     attune.linear_into %[[A]], %[[P]] into %[[D]] :
// CHECK:                 } else {
// CHECK:                   attune.linear_into {{.+}} : memref<16x64xbf16
// The next parts are added.
// CHECK:               scf.for
// CHECK:                 attune.linear_into %{{.+}} residual : memref<32x64xbf16
// Whole sums of a block, or the last part of them, and its results.
// CHECK:             scf.for
// CHECK:               scf.if %[[WHOLE]] {
// CHECK:                 attune.linear_into %{{.+}} : memref<32x192xbf16
// CHECK:               } else {
// CHECK:                 attune.linear_into %{{.+}} residual : memref<32x64xbf16
// CHECK:               scf.for
// CHECK:                 scf.for
// CHECK:                   vector.transfer_read %[[S]]
// CHECK:                   vector.transfer_write %{{.+}}, %[[Y]]
// Fewer rows take vectors.
// CHECK:         x86vector.avx512.dot
func.func @parts(%x: memref<?x192xbf16>, %w: memref<20x96x64xbf16>, %y: memref<?x640xf32>) {
  %c0 = arith.constant 0 : index
  %c20 = arith.constant 20 : index
  attune.packed_product %x[%c0], %w[%c0, %c20] of 640 tile [12, 1] outs(%y : memref<?x640xf32>) : memref<?x192xbf16>, memref<20x96x64xbf16>
  return
}

// -----

// A sum that is one part has a block's scratch.
// CHECK-LABEL: func.func @one_part(
// CHECK:         memref.alloca() {alignment = 64 : i64} : memref<64x32xf32>
// CHECK-COUNT-2: attune.linear_into %{{.+}} : memref<32x64xbf16
// CHECK-NOT:     residual
func.func @one_part(%x: memref<40x64xbf16>, %w: memref<4x32x64xbf16>, %y: memref<40x64xbf16>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  attune.packed_product %x[%c0], %w[%c0, %c2] of 64 activation <silu> gated tile [12, 1] outs(%y : memref<40x64xbf16>) : memref<40x64xbf16>, memref<4x32x64xbf16>
  return
}

// -----

// Few rows, and few inputs.
// CHECK-LABEL: func.func @few(
// CHECK-NOT:     attune.linear_into
// CHECK:         x86vector.avx512.dot
// CHECK-LABEL: func.func @shallow(
// CHECK-NOT:     attune.linear_into
// CHECK:         x86vector.avx512.dot
func.func @few(%x: memref<15x64xbf16>, %w: memref<2x32x64xbf16>, %y: memref<15x64xf32>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  attune.packed_product %x[%c0], %w[%c0, %c2] of 64 tile [3, 1] outs(%y : memref<15x64xf32>) : memref<15x64xbf16>, memref<2x32x64xbf16>
  return
}
func.func @shallow(%x: memref<32x16xbf16>, %w: memref<2x8x64xbf16>, %y: memref<32x64xf32>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  attune.packed_product %x[%c0], %w[%c0, %c2] of 64 tile [3, 1] outs(%y : memref<32x64xf32>) : memref<32x16xbf16>, memref<2x8x64xbf16>
  return
}

// -----

// Rows that fill no register lie where there is room for all of its rows, if
// that takes no more than sums do. Their sums are whole.
// PADDED-LABEL: func.func @padded(
// PADDED:         %[[ROOM:.+]] = memref.alloca() {alignment = 64 : i64} : memref<16x104xbf16>
// PADDED:         scf.for
// PADDED:           scf.for
// PADDED:             vector.load %arg0[{{.+}}] : memref<7x104xbf16>, vector<32xbf16>
// PADDED:             vector.store %{{.+}}, %[[ROOM]]
// PADDED:         scf.for
// PADDED-COUNT-2:   attune.linear_into %[[ROOM]], %{{.+}} : memref<16x104xbf16>, memref<1x52x64xbf16
// PADDED:           scf.for
// PADDED:             vector.transfer_write
// PADDED-LABEL: func.func @no_room(
// PADDED-NOT:     attune.linear_into
// PADDED-LABEL: func.func @any_number(
// PADDED-DAG:     %[[NONE:.+]] = arith.cmpi slt, %{{.+}}, %c6
// PADDED-DAG:     %[[FEW:.+]] = arith.cmpi slt, %{{.+}}, %c16
// PADDED:         attune.linear_into {{.+}} : memref<32x104xbf16
// PADDED:         attune.linear_into {{.+}} : memref<16x104xbf16>
// PADDED:         x86vector.avx512.dot
func.func @padded(%x: memref<7x104xbf16>, %w: memref<4x52x64xbf16>, %y: memref<7x64xbf16>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  attune.packed_product %x[%c0], %w[%c0, %c2] of 64 activation <silu> gated tile [12, 1] outs(%y : memref<7x64xbf16>) : memref<7x104xbf16>, memref<4x52x64xbf16>
  return
}
func.func @no_room(%x: memref<7x4096xbf16>, %w: memref<2x2048x64xbf16>, %y: memref<7x64xf32>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  attune.packed_product %x[%c0], %w[%c0, %c2] of 64 tile [12, 1] outs(%y : memref<7x64xf32>) : memref<7x4096xbf16>, memref<2x2048x64xbf16>
  return
}
func.func @any_number(%x: memref<?x104xbf16>, %w: memref<2x52x64xbf16>, %y: memref<?x64xf32>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  attune.packed_product %x[%c0], %w[%c0, %c2] of 64 tile [12, 1] outs(%y : memref<?x64xf32>) : memref<?x104xbf16>, memref<2x52x64xbf16>
  return
}

// -----

// Bytes: sums in i32 of each group come from the matrix unit one group ahead of
// what both scales multiply.
// CHECK-LABEL: func.func @bytes(
// CHECK:         %[[G:.+]] = memref.alloca() {alignment = 64 : i64} : memref<32x16xi32>
// CHECK:         attune.linear_into %{{.+}} : memref<16x128xi8, {{.+}}>, memref<1x32x64xi8, {{.+}}>, memref<16x16xi32
// CHECK:         scf.for
// CHECK:           attune.linear_into
// CHECK-COUNT-16:  vector.fma
// CHECK-NEXT:      scf.yield
// CHECK-LABEL: func.func @nibbles(
// CHECK:         %[[U:.+]] = memref.alloca() {alignment = 64 : i64} : memref<8x32x128xi8>
// CHECK:         arith.shrui
// CHECK:         vector.store %{{.+}}, %[[U]]
// CHECK:         vector.store %{{.+}}, %[[U]]
// CHECK:         memref.subview %[[U]]
// CHECK:         attune.linear_into %{{.+}} : memref<16x32xi8, {{.+}}>, memref<1x8x64xi8
func.func @bytes(%w: memref<2x512x128xi8>, %s: memref<96x16xf32>, %ws: memref<2x16x32xf32>, %y: memref<96x64xf32>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  // Rows whose sums are known: 128 threes in each group.
  %three = arith.constant 3 : i8
  %sum = arith.constant 384 : i32
  %x = memref.alloc() : memref<96x2048xi8>
  %t = memref.alloc() : memref<96x16xi32>
  linalg.fill ins(%three : i8) outs(%x : memref<96x2048xi8>)
  linalg.fill ins(%sum : i32) outs(%t : memref<96x16xi32>)
  attune.packed_product %x[%c0], %w[%c0, %c2] of 64 scales %s, %t, %ws : memref<96x16xf32>, memref<96x16xi32>, memref<2x16x32xf32> tile [12, 1] outs(%y : memref<96x64xf32>) : memref<96x2048xi8>, memref<2x512x128xi8>
  return
}
func.func @nibbles(%w: memref<2x256x128xi8>, %s: memref<96x64xf32>, %ws: memref<2x64x32xf16>, %y: memref<96x64xf32>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %three = arith.constant 3 : i8
  %sum = arith.constant 96 : i32
  %x = memref.alloc() : memref<96x2048xi8>
  %t = memref.alloc() : memref<96x64xi32>
  linalg.fill ins(%three : i8) outs(%x : memref<96x2048xi8>)
  linalg.fill ins(%sum : i32) outs(%t : memref<96x64xi32>)
  attune.packed_product %x[%c0], %w[%c0, %c2] of 64 scales %s, %t, %ws : memref<96x64xf32>, memref<96x64xi32>, memref<2x64x32xf16> tile [12, 1] outs(%y : memref<96x64xf32>) : memref<96x2048xi8>, memref<2x256x128xi8>
  return
}
