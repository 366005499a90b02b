// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=32 rows=3 matrix-rows=16}),canonicalize,cse)" --split-input-file \
// RUN:   | FileCheck %s
// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=32 rows=6 matrix-rows=16 wide-tiles=true}))" --split-input-file \
// RUN:   | FileCheck %s --check-prefix=ALONE --implicit-check-not="vector<64xf32>"
// ALONE: attune.linear_into
// RUN: not attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{matrix-rows=8}))" --split-input-file 2>&1 \
// RUN:   | FileCheck %s --check-prefix=FEW
// FEW: error: matrix-rows must be 0 or at least 16, the rows of a register

// Parts of rows have whole blocks. Blocks of 32 rows, then of 16; the last one
// ends with the last row, and only what is new of it is written. What follows
// the product reads the scratch.
// CHECK-LABEL: @tiles(
// CHECK-SAME:    %[[X:[^:]+]]: tensor<?x64xbf16>, %[[W:[^:]+]]: tensor<2x32x64xbf16>, %[[B:[^:]+]]: tensor<64xf32>)
// CHECK:         %[[D:.+]] = tensor.dim %[[X]], %c0
// CHECK:         arith.divui %[[D]], %c64
// CHECK:         scf.forall
// CHECK:           tensor.extract_slice {{.+}} [%[[M:.+]], %{{.+}}] [1, 1] : tensor<?x64xf32>
// CHECK:           %[[LESS:.+]] = arith.cmpi slt, %[[M]], %c16
// CHECK:         %[[REST:.+]] = arith.select %[[LESS]], %[[M]], %c0
// CHECK:         %[[N:.+]] = arith.subi %[[M]], %[[REST]]
// CHECK:         %[[R:.+]] = arith.remui %[[N]], %c32
// CHECK:         %[[WHOLE:.+]] = arith.subi %[[N]], %[[R]]
// CHECK:         scf.for %{{.+}} = %c0 to %[[WHOLE]] step %c32
// CHECK:           tensor.empty() : tensor<32x32xf32>
// CHECK:           attune.linear_into {{.+}} : tensor<32x64xbf16>, tensor<1x32x64xbf16>, tensor<32x32xf32> -> tensor<32x32xf32>
// CHECK:           vector.transfer_read %[[B]]
// CHECK:           scf.for
// CHECK:         scf.for %[[F:.+]] = %[[WHOLE]] to %[[N]] step %c16
// CHECK-DAG:       %[[E:.+]] = arith.subi %[[N]], %c16
// CHECK-DAG:       %[[ROW:.+]] = arith.minsi %[[F]], %[[E]]
// CHECK-DAG:       %[[G:.+]] = arith.addi %[[F]], %c16
// CHECK-DAG:       %[[LAST:.+]] = arith.minsi %[[G]], %[[N]]
// CHECK-DAG:       %[[XROW:.+]] = arith.addi %{{.+}}, %[[ROW]]
// CHECK-DAG:       %[[A:.+]] = tensor.extract_slice %[[X]][%[[XROW]], 0] [16, 64]
// CHECK-DAG:       %[[P:.+]] = tensor.extract_slice %[[W]]{{.+}} [1, 32, 64]
// CHECK:           %[[S:.+]] = attune.linear_into %[[A]], %[[P]]
// CHECK:           scf.for %[[I:.+]] = %[[F]] to %[[LAST]]
// CHECK:             %[[AT:.+]] = arith.subi %[[I]], %[[ROW]]
// CHECK:             vector.transfer_read %[[S]][%[[AT]], %c0]
// CHECK:         x86vector.avx512.dot
func.func @tiles(%x: tensor<?x64xbf16>, %w: tensor<2x32x64xbf16>, %b: tensor<64xf32>) -> tensor<?x64xf32> {
  %y = attune.linear %x, %w bias %b : tensor<64xf32> : tensor<?x64xbf16>, tensor<2x32x64xbf16> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

// Gate and up have a scratch each.
// CHECK-LABEL: @gated(
// CHECK:         %[[G:.+]] = attune.linear_into {{.+}} -> tensor<32x32xf32>
// CHECK:         %[[U:.+]] = attune.linear_into {{.+}} -> tensor<32x32xf32>
// CHECK:         scf.for
// CHECK:           vector.transfer_read %[[G]]
// CHECK:           vector.transfer_read %[[U]]
// CHECK-NOT:     attune.linear_into
// CHECK-NOT:     x86vector.avx512.dot
// CHECK:         return
func.func @gated(%x: tensor<32x64xbf16>, %w: tensor<2x32x64xbf16>) -> tensor<32x32xf32> {
  %y = attune.linear %x, %w activation <silu> gated : tensor<32x64xbf16>, tensor<2x32x64xbf16> -> tensor<32x32xf32>
  return %y : tensor<32x32xf32>
}

// -----

// Few rows, and few inputs.
// CHECK-LABEL: @few(
// CHECK-NOT:     attune.linear_into
// CHECK:         x86vector.avx512.dot
// CHECK-LABEL: @shallow(
// CHECK-NOT:     attune.linear_into
// CHECK:         x86vector.avx512.dot
func.func @few(%x: tensor<15x64xbf16>, %w: tensor<2x32x64xbf16>) -> tensor<15x64xf32> {
  %y = attune.linear %x, %w : tensor<15x64xbf16>, tensor<2x32x64xbf16> -> tensor<15x64xf32>
  return %y : tensor<15x64xf32>
}
func.func @shallow(%x: tensor<32x16xbf16>, %w: tensor<2x8x64xbf16>) -> tensor<32x64xf32> {
  %y = attune.linear %x, %w : tensor<32x16xbf16>, tensor<2x8x64xbf16> -> tensor<32x64xf32>
  return %y : tensor<32x64xf32>
}
