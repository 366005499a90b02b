// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=8 rows=4},attune-prefetch-tiles,convert-attune-product-to-vector),canonicalize,cse)" --split-input-file \
// RUN:   | FileCheck %s --implicit-check-not="attune.linear"
// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=8 rows=4 panel-bytes=256},attune-prefetch-tiles{panel-bytes=256},convert-attune-product-to-vector),canonicalize,cse)" --split-input-file \
// RUN:   | FileCheck %s --check-prefix=PASSES
// RUN: attune-opt %s --attune-validate=verbose,lengths=1/3/4/5/19 --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=8 rows=4},attune-prefetch-tiles,convert-attune-product-to-vector))" --split-input-file -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=SAME --implicit-check-not=error
// RUN: attune-opt %s --attune-validate=verbose,lengths=1/3/4/5/19 --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=8 rows=4 panel-bytes=256},attune-prefetch-tiles{panel-bytes=256},convert-attune-product-to-vector))" --split-input-file -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=SAME --implicit-check-not=error
// SAME: after convert-attune-to-vector, attune-prefetch-tiles, convert-attune-product-to-vector, @one_row is the same
// SAME: after convert-attune-to-vector, attune-prefetch-tiles, convert-attune-product-to-vector, @three_rows is the same
// SAME: after convert-attune-to-vector, attune-prefetch-tiles, convert-attune-product-to-vector, @any_rows is the same
// SAME: after convert-attune-to-vector, attune-prefetch-tiles, convert-attune-product-to-vector, @one_panel is the same
// SAME: after convert-attune-to-vector{{(, attune-prefetch-tiles, convert-attune-product-to-vector)?}}, @heads is the same

// One row meets 40 panels of 8 columns once. Of T threads each has 40 div T of
// them side by side, and the first 40 mod T one more. With s of S steps to come
// it has n s^2 div S^2 of its n left, and the step takes what falls off.
// CHECK-LABEL: @one_row(
// CHECK-SAME:    %[[X:[^:]+]]: tensor<1x16xf32>, %[[W:[^:]+]]: tensor<40x16x8xf32>
// CHECK-DAG:     %[[T:.+]] = attune.num_threads
// CHECK-DAG:     %[[EACH:.+]] = arith.divui %c40, %[[T]]
// CHECK-DAG:     %[[SHARED:.+]] = arith.muli %[[EACH]], %[[T]]
// CHECK-DAG:     %[[REST:.+]] = arith.subi %c40, %[[SHARED]]
// CHECK-DAG:     %[[MORE:.+]] = arith.addi %[[EACH]], %c1
// CHECK-DAG:     %[[STEPS:.+]] = arith.minsi %[[MORE]], %c16
// CHECK:         scf.forall (%[[STEP:.+]], %[[THREAD:.+]]) in (%[[STEPS]], %[[T]])
// CHECK:           %[[LONGER:.+]] = arith.cmpi ult, %[[THREAD]], %[[REST]]
// CHECK:           %[[N:.+]] = arith.select %[[LONGER]], %[[MORE]], %[[EACH]]
// CHECK:           %[[BEFORE:.+]] = arith.muli %[[THREAD]], %[[EACH]]
// CHECK:           %[[EXTRA:.+]] = arith.minsi %[[THREAD]], %[[REST]]
// CHECK:           %[[BEGIN:.+]] = arith.addi %[[BEFORE]], %[[EXTRA]]
// CHECK:           %[[TOCOME:.+]] = arith.subi %[[STEPS]], %[[STEP]]
// CHECK:           %[[SQUARE:.+]] = arith.muli %[[TOCOME]], %[[TOCOME]]
// CHECK:           %[[OFALL:.+]] = arith.muli %[[N]], %[[SQUARE]]
// CHECK:           %[[LEFT:.+]] = arith.divui %[[OFALL]], %{{.+}}
// CHECK:           %[[DONE:.+]] = arith.subi %[[N]], %[[LEFT]]
// CHECK:           %[[STILL:.+]] = arith.divui
// CHECK:           %[[AFTER:.+]] = arith.subi %[[N]], %[[STILL]]
// CHECK:           %[[FIRST:.+]] = arith.addi %[[BEGIN]], %[[DONE]]
// CHECK:           %[[COUNT:.+]] = arith.subi %[[AFTER]], %[[DONE]]
// CHECK:           scf.for %[[I:.+]] = %c0 to %[[COUNT]] step %c1
// CHECK:             %[[PANEL:.+]] = arith.addi %[[FIRST]], %[[I]]
// CHECK:             vector.transfer_read %[[W]][%[[PANEL]], %{{.+}}, %c0]
// CHECK-NOT:     memref.prefetch
// CHECK:         return

// A panel that is too large for its share of the cache goes by in two parts. A
// step does not meet the first parts of all its panels before the second ones,
// but panel after panel, as they lie in memory.
// PASSES-LABEL: @one_row(
// PASSES:         scf.forall
// PASSES:           tensor.extract_slice
// PASSES:           scf.for %{{.+}} = %c0 to %[[COUNT:[^ ]+]] step %c1
// PASSES:             scf.for %[[PASS:.+]] = %c0 to %c{{[248]}} step %c1
// PASSES-NOT:           scf.for %{{.+}} = %c0 to %[[COUNT]]
// PASSES:               vector.fma
// PASSES:         return
func.func @one_row(%x: tensor<1x16xf32>, %w: tensor<40x16x8xf32>) -> tensor<1x320xf32> {
  %y = attune.linear %x, %w : tensor<1x16xf32>, tensor<40x16x8xf32> -> tensor<1x320xf32>
  return %y : tensor<1x320xf32>
}

// -----

// Of three rows there is time to fetch panels, and the next is the neighbour.
// CHECK-LABEL: @three_rows(
// CHECK-NOT:     attune.successor
// CHECK:         tensor.extract_slice
// CHECK:         %[[NEXT:.+]] = arith.addi %[[FIRST:.+]], %c1
// CHECK:         scf.for %[[I:.+]] = %c0 to %{{.+}} step %c1
// CHECK:           arith.addi %[[FIRST]], %[[I]]
// CHECK:           %[[AHEAD:.+]] = arith.addi %[[NEXT]], %[[I]]
// CHECK:           %[[THERE:.+]] = arith.minsi %[[AHEAD]], %c39
// CHECK:           memref.prefetch %{{.+}}[%[[THERE]], %{{.+}}], read, locality<2>
// CHECK:         return

// Panel after panel, too, what the last part of one fetches is the next one's.
// PASSES-LABEL: @three_rows(
// PASSES:         tensor.extract_slice
// PASSES:         scf.for %[[I:.+]] = %c0 to %{{.+}} step %c1
// PASSES:           %[[PANEL:.+]] = arith.addi %{{.+}}, %[[I]]
// PASSES:           tensor.extract_slice
// PASSES:           scf.for
// PASSES:             %[[AHEAD:.+]] = arith.addi %[[PANEL]], %c1
// PASSES:             %[[OTHER:.+]] = arith.select %{{.+}}, %[[AHEAD]], %[[PANEL]]
// PASSES:           %[[THERE:.+]] = arith.minsi %[[OTHER]], %c39
// PASSES:           memref.prefetch %{{.+}}[%[[THERE]], %{{.+}}], read, locality<2>
func.func @three_rows(%x: tensor<3x16xf32>, %w: tensor<40x16x8xf32>) -> tensor<3x320xf32> {
  %y = attune.linear %x, %w : tensor<3x16xf32>, tensor<40x16x8xf32> -> tensor<3x320xf32>
  return %y : tensor<3x320xf32>
}

// -----

// The number of rows is known when the program runs: both ways in one loop. The
// 4 columns behind the last whole panel are not missed, nor passed, where a step
// of a thread that has nothing left begins behind them.
// CHECK-LABEL: @any_rows(
// CHECK:         %[[FEW:.+]] = arith.cmpi ule, %{{.+}}, %c4
// CHECK:         scf.forall
// CHECK:           %[[DONE:.+]] = arith.select %[[FEW]]
// CHECK:           %[[AFTER:.+]] = arith.select %[[FEW]]
// CHECK:           %[[FIRST:.+]] = arith.addi %{{.+}}, %[[DONE]]
// CHECK:           arith.subi %[[AFTER]], %[[DONE]]
// CHECK:           %[[AT:.+]] = arith.muli %[[FIRST]], %c8
// CHECK:           %[[COLUMN:.+]] = arith.minsi %[[AT]], %c316
// CHECK:           arith.subi %c316, %[[COLUMN]]
// CHECK:         return
func.func @any_rows(%x: tensor<?x?x16xf32>, %w: tensor<40x16x8xf32>, %b: tensor<316xf32>, %r: tensor<?x?x316xf32>) -> tensor<?x?x316xf32> {
  %y = attune.linear %x, %w bias %b : tensor<316xf32> residual %r : tensor<?x?x316xf32> : tensor<?x?x16xf32>, tensor<40x16x8xf32> -> tensor<?x?x316xf32>
  return %y : tensor<?x?x316xf32>
}

// -----

// Most threads have none.
func.func @one_panel(%x: tensor<?x16xf32>, %w: tensor<1x16x8xf32>) -> tensor<?x3xf32> {
  %y = attune.linear %x, %w : tensor<?x16xf32>, tensor<1x16x8xf32> -> tensor<?x3xf32>
  return %y : tensor<?x3xf32>
}

// -----

// Whole heads again: two of 12 columns are three panels, of 15 heads the last
// one is alone. A step of few rows is no larger than others are.
// CHECK-LABEL: @heads(
// CHECK:         bufferization.alloc_tensor() : tensor<4x48xf32>
func.func @heads(%x: tensor<?x?x16xf32>, %w: tensor<23x16x8xf32>) -> tensor<?x15x?x12xf32> {
  %y = attune.linear %x, %w : tensor<?x?x16xf32>, tensor<23x16x8xf32> -> tensor<?x?x180xf32>
  %q = attune.split_heads %y : tensor<?x?x180xf32> -> tensor<?x15x?x12xf32>
  return %q : tensor<?x15x?x12xf32>
}
