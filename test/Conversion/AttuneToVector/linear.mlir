// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=8 rows=2},attune-prefetch-tiles,convert-attune-product-to-vector),canonicalize,cse)" --split-input-file | FileCheck %s --implicit-check-not="attune.linear"
// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=8 rows=2 way-bytes=64},attune-prefetch-tiles,convert-attune-product-to-vector),canonicalize,cse)" --split-input-file | FileCheck %s --check-prefix=WAYS

// 20 channels are three panels of 8. Each thread has some side by side; where there
// are fewer than six for each of them, threads share theirs and divide the rows,
// in parts of at least two tiles. Steps are of half the panels of such a stream, as
// far as the cache has room for them; where all rows are one tile, they are as
// linear-few-rows.mlir says. The last panel has the 4 channels that are left. Rows
// go by twos, then the one that is left.
// CHECK-LABEL: @tails(
// CHECK-SAME:    %{{[^:]+}}: tensor<?x12xf32>, %[[W:[^:]+]]: tensor<3x12x8xf32>
// CHECK:         %[[M:.+]] = tensor.dim
// CHECK:         %[[FEW:.+]] = arith.cmpi ule, %[[M]], %c2
// CHECK:         %[[T:.+]] = attune.num_threads
// CHECK:         %[[SIX:.+]] = arith.muli %[[T]], %c6
// CHECK:         %[[UP:.+]] = arith.addi %[[SIX]], %c2
// CHECK:         %[[WANTED:.+]] = arith.divsi %[[UP]], %c3
// CHECK:         %[[MOST:.+]] = arith.divui %[[M]], %c4
// CHECK:         arith.minsi %[[WANTED]], %[[MOST]]
// CHECK:         %[[EACH:.+]] = arith.muli %{{.+}}, %c2
// CHECK:         %[[NEEDED:.+]] = arith.ceildivui %[[M]], %[[EACH]]
// CHECK:         %[[PARTS:.+]] = arith.maxui %[[NEEDED]], %c1
// CHECK:         %[[GROUPS:.+]] = arith.divui %[[T]], %[[PARTS]]
// CHECK:         %[[STREAMS:.+]] = arith.maxui %[[GROUPS]], %c1
// CHECK:         %[[SOME:.+]] = arith.divui %c3, %[[STREAMS]]
// CHECK:         %[[STEPS:.+]] = arith.select %[[FEW]], %{{.+}}, %{{.+}} : index
// CHECK:         scf.forall (%[[STEP:.+]], %[[STREAM:.+]], %[[PART:.+]]) in (%[[STEPS]], %[[STREAMS]], %[[PARTS]])
// CHECK:           %[[BEFORE:.+]] = arith.muli %[[STREAM]], %[[SOME]]
// CHECK:           %[[BEGIN:.+]] = arith.addi %[[BEFORE]], %{{.+}} : index
// CHECK:           %[[DONE:.+]] = arith.select %[[FEW]], %{{.+}}, %{{.+}} : index
// CHECK:           %[[AFTER:.+]] = arith.select %[[FEW]], %{{.+}}, %{{.+}} : index
// CHECK:           arith.addi %[[BEGIN]], %[[DONE]]
// CHECK:           arith.subi %[[AFTER]], %[[DONE]]
// CHECK:           %[[ROW:.+]] = arith.muli %[[PART]], %[[EACH]]
// CHECK:           %[[LEFT:.+]] = arith.subi %[[M]], %[[ROW]]
// CHECK:           %[[ROWS:.+]] = arith.minsi %[[EACH]], %[[LEFT]]
// CHECK:           tensor.extract_slice %{{.+}}[%[[ROW]], %{{.+}}] [%[[ROWS]], %{{.+}}]
// CHECK:           scf.for {{.+}} -> (vector<8xf32>, vector<8xf32>)
// CHECK:             vector.transfer_read %[[W]][%{{.+}}, %{{.+}}, %{{.+}}]{{.+}} : tensor<3x12x8xf32>, vector<8xf32>
// CHECK-COUNT-8:     vector.fma
// CHECK-NOT:         vector.fma
// CHECK:             scf.yield
// CHECK:           vector.create_mask
// CHECK:           scf.index_switch
// CHECK:           case 1
// CHECK:             vector.fma
// CHECK:         tensor.parallel_insert_slice
func.func @tails(%x: tensor<?x12xf32>, %w: tensor<3x12x8xf32>) -> tensor<?x20xf32> {
  %y = attune.linear %x, %w : tensor<?x12xf32>, tensor<3x12x8xf32> -> tensor<?x20xf32>
  return %y : tensor<?x20xf32>
}

// -----

// One known row (decode) needs no loop over rows and no case for tails.
// CHECK-LABEL: @one_row(
// CHECK-NOT:     scf.index_switch
// CHECK-NOT:     create_mask
// CHECK:         return
func.func @one_row(%x: tensor<1x12xf32>, %w: tensor<2x12x8xf32>) -> tensor<1x16xf32> {
  %y = attune.linear %x, %w : tensor<1x12xf32>, tensor<2x12x8xf32> -> tensor<1x16xf32>
  return %y : tensor<1x16xf32>
}

// -----

// A residual is the destination to begin with, as rows: no new tensor.
// CHECK-LABEL: @residual(
// CHECK-SAME:    %{{[^:]+}}: tensor<?x?x12xf32>, %{{[^:]+}}: tensor<2x12x8xf32>, %{{[^:]+}}: tensor<16xf32>, %[[R:[^:]+]]: tensor<?x?x16xf32>
// CHECK-NOT:     tensor.empty
// CHECK:         %[[ROWS:.+]] = attune.flatten_tokens %[[R]]
// CHECK-NOT:     tensor.empty
// CHECK:         %[[Y:.+]] = scf.forall {{.+}} shared_outs(%{{.+}} = %[[ROWS]])
// CHECK:         attune.unflatten_tokens %[[Y]]
func.func @residual(%x: tensor<?x?x12xf32>, %w: tensor<2x12x8xf32>, %b: tensor<16xf32>, %r: tensor<?x?x16xf32>) -> tensor<?x?x16xf32> {
  %y = attune.linear %x, %w bias %b : tensor<16xf32> residual %r : tensor<?x?x16xf32>
     : tensor<?x?x12xf32>, tensor<2x12x8xf32> -> tensor<?x?x16xf32>
  return %y : tensor<?x?x16xf32>
}

// -----

// Rows that are a way of the cache apart (16 f32, if it has 64 bytes) are copied
// when they come from outside; what a function computes itself is not.
// WAYS-LABEL: @outside(
// WAYS-SAME:    %[[X:[^:]+]]: tensor<?x16xf32>
// WAYS:         scf.forall (%[[ROW:.+]]) in (%{{.+}}) shared_outs
// WAYS:           %[[V:.+]] = vector.transfer_read %[[X]][%[[ROW]], %{{.+}}]
// WAYS:           vector.transfer_write %[[V]]
// WAYS:         scf.forall (%
// WAYS-NOT:       tensor.extract %[[X]]
// WAYS:           vector.fma
// WAYS:         scf.forall (%
// WAYS:           vector.fma
// WAYS-NOT:     scf.forall (%
// WAYS:         return
func.func @outside(%x: tensor<?x16xf32>, %w: tensor<2x16x8xf32>, %v: tensor<3x16x8xf32>) -> tensor<?x20xf32> {
  %y = attune.linear %x, %w : tensor<?x16xf32>, tensor<2x16x8xf32> -> tensor<?x16xf32>
  %z = attune.linear %y, %v : tensor<?x16xf32>, tensor<3x16x8xf32> -> tensor<?x20xf32>
  return %z : tensor<?x20xf32>
}

// -----

// While panels pass a tile of two rows, each four steps of the sum fetch a line
// of the next two rows: of the first ones after the last, for the next panels.
// Panel i of N begins at the i-th part. The lines that will be written are
// fetched as well, and so is a line of the panels behind these, of which these rows
// bring their part: the thread takes them next. A single row that is left is half
// of a tile, which fetches all of it, but no rows. A step is of two panels, the
// last ones of a stream are alone: S of them have passed the least of 2 S, what two
// a step leave and S, and all there are.
// CHECK-LABEL: @fetching(
// CHECK-SAME:    %[[X:[^:]+]]: tensor<?x64xf32>
// CHECK:         %[[FEW:.+]] = arith.cmpi ule
// CHECK:         %[[TWO:.+]] = arith.minsi %{{.+}}, %c2
// CHECK:         %[[HALF:.+]] = arith.divui %[[TWO]], %c2
// CHECK:         %[[ONE:.+]] = arith.maxui %[[HALF]], %c1
// CHECK:         scf.forall (%[[S:.+]], %{{.+}}, %{{.+}}) in (%{{.+}}) shared_outs
// CHECK:           %[[BYTWO:.+]] = arith.muli %[[S]], %[[TWO]]
// CHECK:           %[[A:.+]] = arith.minsi %{{.+}}, %[[BYTWO]]
// CHECK:           %[[BYONE:.+]] = arith.muli %[[S]], %[[ONE]]
// CHECK:           %[[LATER:.+]] = arith.addi %{{.+}}, %[[BYONE]]
// CHECK:           %[[B:.+]] = arith.minsi %[[A]], %[[LATER]]
// CHECK:           %[[LAST:.+]] = arith.addi %{{.+}}, %[[S]]
// CHECK:           %[[C:.+]] = arith.minsi %[[B]], %[[LAST]]
// CHECK:           %[[DONE:.+]] = arith.select %[[FEW]], %{{.+}}, %[[C]]
// CHECK:           %[[FIRST:.+]] = arith.addi %{{.+}}, %[[DONE]]
// CHECK:           %[[COUNT:.+]] = arith.subi %{{.+}}, %[[DONE]]
// CHECK:           %[[PASSED:.+]] = arith.select %[[FEW]], %c1, %[[COUNT]]
// CHECK:           %[[AFTER:.+]] = arith.addi %[[FIRST]], %[[PASSED]]
// CHECK:           scf.for %[[ROW:.+]] = %c0 to %{{.+}} step %c2
// CHECK:             scf.for %[[I:.+]] = %c0 to %[[N:.+]] step
// CHECK-COUNT-2:       memref.prefetch %{{.+}}[%{{.+}}, %{{.+}}], write, locality<3>
// CHECK:               arith.addi %[[AFTER]], %[[I]]
// CHECK:               %[[NEXT:.+]] = arith.addi %[[ROW]], %c2
// CHECK:               arith.cmpi ult, %[[NEXT]], %{{.+}} : index
// CHECK:               %[[SOME:.+]] = arith.select %{{.+}}, %[[NEXT]], %c0
// CHECK:               %[[FIRST:.+]] = arith.minsi %[[SOME]], %{{.+}}
// CHECK:               %[[BY:.+]] = arith.ceildivui %c128, %{{.+}} : index
// CHECK:               %[[DISTANCE:.+]] = arith.minsi %[[BY]], %c8
// CHECK:               arith.muli %[[I]], %c128
// CHECK:               scf.for %{{.+}} = %c0 to %c16 step %c1 iter_args
// CHECK:                 %[[ROWOFALL:.+]] = arith.addi %{{.+}}, %[[FIRST]]
// CHECK:                 %[[ALL:.+]] = bufferization.to_buffer %[[X]] read_only
// CHECK-SAME:              to memref<?x64xf32, strided<[?, ?], offset: ?>>
// CHECK:                 memref.prefetch %[[ALL]][%[[ROWOFALL]], %{{.+}}], read, locality<3>
// CHECK-COUNT-8:         vector.fma
// CHECK-COUNT-2:         memref.prefetch %{{.+}} : memref<16x512xf32>
// CHECK-NOT:     memref.prefetch
// CHECK:         return
func.func @fetching(%x: tensor<?x64xf32>, %w: tensor<16x64x8xf32>) -> tensor<?x128xf32> {
  %y = attune.linear %x, %w : tensor<?x64xf32>, tensor<16x64x8xf32> -> tensor<?x128xf32>
  return %y : tensor<?x128xf32>
}

// -----

// Gate and up lie side by side: panel 2 i and panel 2 i + 1. The activation is
// the gate's.
// CHECK-LABEL: @gated(
// CHECK:         arith.divui %c2, %{{.+}} : index
// CHECK:         scf.forall {{.+}} in (%{{.+}}, %{{.+}}, %{{.+}})
// CHECK:           scf.for
// CHECK:             vector.fma
// CHECK:           scf.for
// CHECK:             vector.fma
// CHECK:           %[[E:.+]] = math.exp %{{.+}} : vector<8xf32>
// CHECK:           arith.addf %[[E]]
// CHECK:           arith.divf
func.func @gated(%x: tensor<?x12xf32>, %w: tensor<4x12x8xf32>) -> tensor<?x16xf32> {
  %y = attune.linear %x, %w activation <silu> gated : tensor<?x12xf32>, tensor<4x12x8xf32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

// -----

// Stored in 16 bits, widened exactly, summed in 32.
// CHECK-LABEL: @narrow(
// CHECK:         %[[V:.+]] = vector.transfer_read {{.+}} : tensor<2x12x8xbf16>, vector<8xbf16>
// CHECK:         %[[F:.+]] = arith.extf %[[V]] : vector<8xbf16> to vector<8xf32>
// CHECK:         vector.fma %{{.+}}, %[[F]], %{{.+}} : vector<8xf32>
func.func @narrow(%x: tensor<1x12xf32>, %w: tensor<2x12x8xbf16>) -> tensor<1x16xf32> {
  %y = attune.linear %x, %w : tensor<1x12xf32>, tensor<2x12x8xbf16> -> tensor<1x16xf32>
  return %y : tensor<1x16xf32>
}

// -----

// A matrix that is no weight is put in panels on the spot.
// CHECK-LABEL: @matrix(
// CHECK:         %[[P:.+]] = tensor.generate
// CHECK:         } : tensor<3x12x8xf32>
// CHECK:         vector.transfer_read %[[P]]
func.func @matrix(%x: tensor<1x12xf32>, %w: tensor<20x12xf32>) -> tensor<1x20xf32> {
  %y = attune.linear %x, %w : tensor<1x12xf32>, tensor<20x12xf32> -> tensor<1x20xf32>
  return %y : tensor<1x20xf32>
}
