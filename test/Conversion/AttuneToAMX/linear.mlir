// RUN: attune-opt %s --convert-attune-to-amx --canonicalize --split-input-file | FileCheck %s --implicit-check-not="attune.linear_into"

// Two by two tiles of sums stay in registers: each turn loads two tiles of the
// panel and two of rows, and multiplies each of one with each of the other.
// CHECK-LABEL: @block(
// CHECK-SAME:    %[[X:[^:]+]]: memref<32x64xbf16, strided<[64, 1], offset: ?>>, %[[W:[^:]+]]: memref<1x32x64xbf16>, %[[D:[^:]+]]: memref<32x32xf32>)
// CHECK-COUNT-4: amx.tile_zero : !amx.tile<16x16xf32>
// CHECK:         %[[S:.+]]:4 = scf.for %[[K:.+]] = %c0 to %c32 step %c16 iter_args(%[[S0:.+]] = %{{.+}}, %[[S1:.+]] = %{{.+}}, %[[S2:.+]] = %{{.+}}, %[[S3:.+]] = %{{.+}})
// CHECK-DAG:       %[[B0:.+]] = amx.tile_load %[[W]][%c0, %[[K]], %c0] : memref<1x32x64xbf16> into !amx.tile<16x32xbf16>
// CHECK-DAG:       %[[B1:.+]] = amx.tile_load %[[W]][%c0, %[[K]], %c32]
// CHECK-DAG:       %[[C:.+]] = arith.muli %[[K]], %c2
// CHECK-DAG:       %[[A0:.+]] = amx.tile_load %[[X]][%c0, %[[C]]]
// CHECK-DAG:       %[[A1:.+]] = amx.tile_load %[[X]][%c16, %[[C]]]
// CHECK-DAG:       %[[N0:.+]] = amx.tile_mulf %[[A0]], %[[B0]], %[[S0]]
// CHECK-DAG:       %[[N1:.+]] = amx.tile_mulf %[[A0]], %[[B1]], %[[S1]]
// CHECK-DAG:       %[[N2:.+]] = amx.tile_mulf %[[A1]], %[[B0]], %[[S2]]
// CHECK-DAG:       %[[N3:.+]] = amx.tile_mulf %[[A1]], %[[B1]], %[[S3]]
// CHECK:           scf.yield %[[N0]], %[[N1]], %[[N2]], %[[N3]]
// CHECK:         amx.tile_store %[[D]][%c0, %c0], %[[S]]#0
// CHECK:         amx.tile_store %[[D]][%c0, %c16], %[[S]]#1
// CHECK:         amx.tile_store %[[D]][%c16, %c0], %[[S]]#2
// CHECK:         amx.tile_store %[[D]][%c16, %c16], %[[S]]#3
func.func @block(%x: memref<32x64xbf16, strided<[64, 1], offset: ?>>, %w: memref<1x32x64xbf16>, %d: memref<32x32xf32>) {
  attune.linear_into %x, %w into %d : memref<32x64xbf16, strided<[64, 1], offset: ?>>, memref<1x32x64xbf16>, memref<32x32xf32>
  return
}

// -----

// Products are added to what is there.
// CHECK-LABEL: @part(
// CHECK-SAME:    %[[X:[^:]+]]: memref<16x64xbf16>, %[[W:[^:]+]]: memref<1x32x32xbf16>, %[[D:[^:]+]]: memref<16x16xf32>)
// CHECK:         %[[S:.+]] = amx.tile_load %[[D]][%c0, %c0] : memref<16x16xf32> into !amx.tile<16x16xf32>
// CHECK:         %[[Y:.+]] = scf.for %{{.+}} iter_args(%{{.+}} = %[[S]])
// CHECK:         amx.tile_store %[[D]][%c0, %c0], %[[Y]]
func.func @part(%x: memref<16x64xbf16>, %w: memref<1x32x32xbf16>, %d: memref<16x16xf32>) {
  attune.linear_into %x, %w into %d residual : memref<16x64xbf16>, memref<1x32x32xbf16>, memref<16x16xf32>
  return
}

// -----

// What is left of the inputs, eight, comes last: from scratch with zeros behind,
// so that tiles keep their shape.
// CHECK-LABEL: @rest(
// CHECK-SAME:    %[[X:[^:]+]]: memref<16x40xbf16>, %[[W:[^:]+]]: memref<1x20x32xbf16>, %[[D:[^:]+]]: memref<16x16xf32>)
// CHECK-DAG:     %[[A:.+]] = memref.alloca() {alignment = 64 : i64} : memref<16x32xbf16>
// CHECK-DAG:     %[[B:.+]] = memref.alloca() {alignment = 64 : i64} : memref<1x16x32xbf16>
// CHECK:         scf.for %[[M:.+]] = %c0 to %c16
// CHECK:           vector.load %[[X]][%[[M]], %c32] : memref<16x40xbf16>, vector<8xbf16>
// CHECK:           vector.store %{{.+}}, %[[A]][%[[M]], %c0]
// CHECK:           vector.store %{{.+}}, %[[A]][%[[M]], %c8] : memref<16x32xbf16>, vector<24xbf16>
// CHECK:         scf.for %[[P:.+]] = %c0 to %c4
// CHECK:           %[[Q:.+]] = arith.addi %[[P]], %c16
// CHECK:           vector.load %[[W]][%c0, %[[Q]], %c0]
// CHECK:           vector.store %{{.+}}, %[[B]][%c0, %[[P]], %c0]
// CHECK:         scf.for %{{.+}} = %c4 to %c16
// CHECK:           vector.store %{{.+}}, %[[B]]
// CHECK:         %[[Z:.+]] = amx.tile_zero
// CHECK:         %[[S:.+]] = amx.tile_mulf %{{.+}}, %{{.+}}, %[[Z]]
// CHECK-DAG:     %[[B0:.+]] = amx.tile_load %[[B]][%c0, %c0, %c0]
// CHECK-DAG:     %[[A0:.+]] = amx.tile_load %[[A]][%c0, %c0]
// CHECK:         %[[Y:.+]] = amx.tile_mulf %[[A0]], %[[B0]], %[[S]]
// CHECK:         amx.tile_store %[[D]][%c0, %c0], %[[Y]]
func.func @rest(%x: memref<16x40xbf16>, %w: memref<1x20x32xbf16>, %d: memref<16x16xf32>) {
  attune.linear_into %x, %w into %d : memref<16x40xbf16>, memref<1x20x32xbf16>, memref<16x16xf32>
  return
}

// -----

// Signed bytes by unsigned ones.
// CHECK-LABEL: @bytes(
// CHECK-SAME:    %[[X:[^:]+]]: memref<16x128xi8>, %[[W:[^:]+]]: memref<1x32x64xi8>, %[[D:[^:]+]]: memref<16x16xi32>)
// CHECK:         %[[Z:.+]] = amx.tile_zero : !amx.tile<16x16xi32>
// CHECK:         %[[S:.+]] = scf.for %[[K:.+]] = %c0 to %c32 step %c16 iter_args(%[[S0:.+]] = %[[Z]])
// CHECK-DAG:       %[[B:.+]] = amx.tile_load %[[W]][%c0, %[[K]], %c0] : memref<1x32x64xi8> into !amx.tile<16x64xi8>
// CHECK-DAG:       %[[C:.+]] = arith.muli %[[K]], %c4
// CHECK-DAG:       %[[A:.+]] = amx.tile_load %[[X]][%c0, %[[C]]]
// CHECK:           amx.tile_muli %[[A]], %[[B]] zext, %[[S0]]
// CHECK:         amx.tile_store %[[D]][%c0, %c0], %[[S]]
func.func @bytes(%x: memref<16x128xi8>, %w: memref<1x32x64xi8>, %d: memref<16x16xi32>) {
  attune.linear_into %x, %w into %d : memref<16x128xi8>, memref<1x32x64xi8>, memref<16x16xi32>
  return
}
