// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=8 rows=4 panel-bytes=2048 way-bytes=64 threads=8 wide-tiles=true},attune-prefetch-tiles{panel-bytes=2048},convert-attune-product-to-vector),canonicalize,cse)" --split-input-file | FileCheck %s
// RUN: attune-opt %s --attune-validate=verbose,lengths=1/9/26 --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=8 rows=4 panel-bytes=2048 way-bytes=64 threads=8 wide-tiles=true},attune-prefetch-tiles{panel-bytes=2048},convert-attune-product-to-vector))" --split-input-file -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=SAME --implicit-check-not=error
// SAME: after convert-attune-to-vector, attune-prefetch-tiles, convert-attune-product-to-vector, @wide is the same
// SAME: after convert-attune-to-vector, attune-prefetch-tiles, convert-attune-product-to-vector, @heads is the same
// SAME: after convert-attune-to-vector, attune-prefetch-tiles, convert-attune-product-to-vector, @parts is the same
// SAME: after convert-attune-to-vector, attune-prefetch-tiles, convert-attune-product-to-vector, @narrow is the same

// Whole tiles have two rows and two panels side by side, of which the last one
// may stand for both. They read rows where they are, and fetch two lines of each
// panel to come. The last rows, eight or fewer, are read from a copy, since up to
// four of them meet one panel.
// CHECK-LABEL: @wide(
// CHECK-SAME:    %[[X:[^:]+]]: tensor<?x32xf32>, %[[W:[^:]+]]: tensor<3x32x8xf32>
// CHECK:         %[[M:.+]] = tensor.dim %[[X]]
// CHECK:         %[[LAST:.+]] = arith.minsi %[[M]], %c8
// CHECK:         %[[COPY:.+]] = scf.forall (%[[I:.+]]) in (%[[LAST]])
// CHECK:           %[[BEFORE:.+]] = arith.subi %[[M]], %[[LAST]]
// CHECK:           %[[AT:.+]] = arith.addi %[[BEFORE]], %[[I]]
// CHECK:           vector.transfer_read %[[X]][%[[AT]], %{{.+}}]
// CHECK:           tensor.parallel_insert_slice %{{.+}} into %{{.+}}[%[[I]], 0] {{.+}} into tensor<8x32xf32>
// A part has more rows than the last ones are.
// CHECK:         arith.divui %[[M]], %c12
// CHECK:         scf.forall
// CHECK:           %[[SKIPPED:.+]] = arith.subi %[[M]], %[[LAST]]
// CHECK:           %[[FIRST:.+]] = arith.subi %{{.+}}, %[[SKIPPED]]
// CHECK:           %[[REST:.+]] = arith.remsi %[[ROWS:.+]], %c2
// CHECK:           %[[FEW:.+]] = arith.cmpi sle, %[[ROWS]], %c8
// CHECK:           %[[SHARED:.+]] = arith.addi %[[REST]], %c2
// CHECK:           %[[SOME:.+]] = arith.select %{{.+}}, %[[SHARED]], %[[REST]]
// CHECK:           %[[TAIL:.+]] = arith.select %[[FEW]], %[[ROWS]], %[[SOME]]
// CHECK:           %[[WHOLE:.+]] = arith.subi %[[ROWS]], %[[TAIL]]
// CHECK:           scf.for %{{.+}} = %c0 to %[[WHOLE]] step %c2
// CHECK:             scf.for %{{.+}} = %c0 to %{{.+}} step %c2
// CHECK-DAG:           %[[PANEL:.+]] = arith.minsi %[[P:.+]], %c2
// CHECK-DAG:           %[[AFTER:.+]] = arith.addi %[[P]], %c1
// CHECK:               %[[NEXT:.+]] = arith.minsi %[[AFTER]], %c2
// CHECK:               scf.for {{.+}} -> (vector<16xf32>, vector<16xf32>)
// CHECK-COUNT-4:         memref.prefetch %{{.+}} : memref<3x256xf32>
// CHECK:                 %[[A:.+]] = vector.transfer_read %[[W]][%[[PANEL]], %{{.+}}, %c0]
// CHECK:                 %[[B:.+]] = vector.transfer_read %[[W]][%[[NEXT]], %{{.+}}, %c0]
// CHECK:                 %[[AB:.+]] = vector.shuffle %[[A]], %[[B]]
// CHECK:                 %[[V:.+]] = tensor.extract %[[X]]
// CHECK:                 %[[ALL:.+]] = vector.broadcast %[[V]] : f32 to vector<16xf32>
// CHECK:                 vector.fma %[[ALL]], %[[AB]]
// CHECK:               vector.create_mask %{{.+}} : vector<16xi1>
// CHECK:           scf.index_switch
// CHECK:           case 4
// CHECK-NOT:         tensor.extract %[[X]]
// CHECK:             %[[ROW:.+]] = arith.addi %[[FIRST]], %{{.+}}
// CHECK:             %[[V:.+]] = tensor.extract %[[COPY]][%[[ROW]], %{{.+}}]
// CHECK:             vector.broadcast %[[V]] : f32 to vector<8xf32>
// CHECK-NOT:         tensor.extract %[[X]]
// CHECK:         return
func.func @wide(%x: tensor<?x32xf32>, %w: tensor<3x32x8xf32>) -> tensor<?x20xf32> {
  %y = attune.linear %x, %w : tensor<?x32xf32>, tensor<3x32x8xf32> -> tensor<?x20xf32>
  return %y : tensor<?x20xf32>
}

// -----

// Where heads are handed over, the last rows of each sequence are copied, since
// threads may take these apart.
// CHECK-LABEL: @heads(
// CHECK-SAME:    %[[X:[^:]+]]: tensor<?x?x32xf32>
// CHECK-DAG:     %[[B:.+]] = tensor.dim %[[X]], %c0
// CHECK-DAG:     %[[T:.+]] = tensor.dim %[[X]], %c1
// CHECK-DAG:     %[[LAST:.+]] = arith.minsi %[[T]], %c8
// CHECK:         scf.forall (%[[S:.+]], %[[I:.+]]) in (%[[B]], %[[LAST]])
// CHECK-DAG:       %[[BEFORE:.+]] = arith.subi %[[T]], %[[LAST]]
// CHECK-DAG:       %[[TOKEN:.+]] = arith.addi %[[BEFORE]], %[[I]]
// CHECK-DAG:       %[[FIRST:.+]] = arith.muli %[[S]], %[[T]]
// CHECK-DAG:       %[[AT:.+]] = arith.addi %[[FIRST]], %[[TOKEN]]
// CHECK:           vector.transfer_read %{{.+}}[%[[AT]], %{{.+}}]
// CHECK:         scf.forall (%{{.+}}, %[[S:.+]], %{{.+}}, %{{.+}}) in
// CHECK:           %[[SO:.+]] = arith.addi %[[S]], %{{.+}}
// CHECK:           %[[MISSING:.+]] = arith.muli %[[SO]], %{{.+}}
// CHECK:           arith.subi %{{.+}}, %[[MISSING]]
// CHECK:         return
func.func @heads(%x: tensor<?x?x32xf32>, %w: tensor<4x32x8xf32>) -> tensor<?x4x?x8xf32> {
  %y = attune.linear %x, %w : tensor<?x?x32xf32>, tensor<4x32x8xf32> -> tensor<?x?x32xf32>
  %q = attune.split_heads %y : tensor<?x?x32xf32> -> tensor<?x4x?x8xf32>
  return %q : tensor<?x4x?x8xf32>
}

// -----

// The cache has room for one panel of such depth, so that two of them come in
// four parts of the sum; few rows take all of one at once. A line of a row is what
// four turns of four steps take, so that the two rows of the next tile get one each
// in the first turns of these.
// CHECK-LABEL: @parts(
// CHECK:         %[[FEW:.+]] = arith.cmpi ule, %{{.+}}, %c4
// CHECK:         %[[PARTS:.+]] = arith.select %[[FEW]], %c1, %c4
// CHECK:         scf.forall
// CHECK:           scf.for %[[PART:.+]] = %c0 to %[[PARTS]] step %c1
// CHECK:             scf.for %{{.+}} = %c0 to %{{.+}} step %c2
// CHECK:               %[[DEPTH:.+]] = arith.divui %c64, %[[PARTS]]
// CHECK:               %[[FROM:.+]] = arith.muli %[[PART]], %[[DEPTH]]
// CHECK:               %[[TURNS:.+]] = arith.divui %c16, %[[PARTS]]
// CHECK:               arith.subi %[[PARTS]], %c1
// CHECK:               scf.for %{{.+}} = %c0 to %[[TURNS]] step %c1 {{.+}} -> (vector<16xf32>, vector<16xf32>)
// CHECK:                 %[[TURN:.+]] = arith.remui %{{.+}}, %c4
// CHECK:                 %[[OTHER:.+]] = arith.minsi %[[TURN]], %c1
// CHECK:                 %[[OFTILES:.+]] = arith.addi %{{.+}}, %[[OTHER]]
// CHECK:                 %[[ROW:.+]] = arith.addi %{{.+}}, %[[OFTILES]]
// CHECK:                 memref.prefetch %{{.+}}[%[[ROW]], %{{.+}}], read, locality<2>, data : memref<?x64xf32
// CHECK:                 vector.fma
// CHECK:         return
func.func @parts(%x: tensor<?x64xf32>, %w: tensor<3x64x8xf32>) -> tensor<?x20xf32> {
  %y = attune.linear %x, %w : tensor<?x64xf32>, tensor<3x64x8xf32> -> tensor<?x20xf32>
  return %y : tensor<?x20xf32>
}

// -----

// Sums cannot wait in a result of bf16, and so a tile has one such panel.
// CHECK-LABEL: @narrow(
// CHECK-NOT:     vector.shuffle
// CHECK-COUNT-4: vector.fma %{{.+}} : vector<8xf32>
// CHECK-NOT:     vector.shuffle
// CHECK:         return
func.func @narrow(%x: tensor<?x64xf32>, %w: tensor<3x64x8xf32>) -> tensor<?x20xbf16> {
  %y = attune.linear %x, %w : tensor<?x64xf32>, tensor<3x64x8xf32> -> tensor<?x20xbf16>
  return %y : tensor<?x20xbf16>
}
