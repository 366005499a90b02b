// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=16 rows=6},attune-prefetch-tiles,convert-attune-product-to-vector),canonicalize,cse)" --split-input-file \
// RUN:   | FileCheck %s --implicit-check-not="attune.linear" --implicit-check-not="attune.split_heads" --implicit-check-not="attune.rotary" --implicit-check-not="attune.cache_append" --implicit-check-not="attune.rms_norm" --implicit-check-not="attune.layer_norm"
// RUN: attune-opt %s --attune-validate=verbose,lengths=1/7/19 --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=16 rows=6},attune-prefetch-tiles,convert-attune-product-to-vector))" --split-input-file -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=SAME --implicit-check-not=error
// SAME: after convert-attune-to-vector, attune-prefetch-tiles, convert-attune-product-to-vector, @grouped is the same
// SAME: after convert-attune-to-vector, attune-prefetch-tiles, convert-attune-product-to-vector, @unequal is the same
// SAME: after convert-attune-to-vector, attune-prefetch-tiles, convert-attune-product-to-vector, @wide is the same
// SAME: after convert-attune-to-vector, attune-prefetch-tiles, convert-attune-product-to-vector, @few is the same
// SAME: after convert-attune-to-vector, attune-prefetch-tiles, convert-attune-product-to-vector, @narrow is the same
// SAME: after convert-attune-to-vector, attune-prefetch-tiles, convert-attune-product-to-vector, @rounded is the same
// SAME: after convert-attune-to-vector, attune-prefetch-tiles, convert-attune-product-to-vector, @read_twice is the same
// SAME: after convert-attune-to-vector, attune-prefetch-tiles, convert-attune-product-to-vector, @normalised is the same
// SAME: after convert-attune-to-vector, attune-prefetch-tiles, convert-attune-product-to-vector, @twice is the same

// All that becomes of a projection is in its own loop: a step of whole heads
// hands the rows of a tile over while they are in the cache. Queries are turned
// into a tensor of heads, keys into their cache, values go to theirs. For many
// threads sequences are cut in parts of their tokens; of short ones a tile has
// several.
// CHECK-LABEL: @grouped(
// CHECK-SAME:    %[[KC:[^:]+]]: tensor<2x3x2x32x32xf32>, %[[VC:[^:]+]]: tensor<2x3x2x32x32xf32>)
// CHECK:         %[[DIM:.+]] = tensor.dim
// CHECK:         attune.num_threads
// CHECK:         %[[CUT:.+]] = arith.andi
// CHECK:         %[[APART:.+]] = arith.select %[[CUT]], %c3, %c1
// CHECK:         arith.divui %c8, %[[STREAMS:.+]] : index
// CHECK:         %[[ROWS:.+]]:3 = scf.forall (%{{.+}}, %[[SEQ:.+]], %{{.+}}, %[[PART:.+]]) in (%{{.+}}, %[[APART]], %[[STREAMS]], %{{.+}}) {{.+}} -> (tensor<3x4x?x32xf32>, tensor<2x3x2x32x32xf32>, tensor<2x3x2x32x32xf32>)
// CHECK:           %[[FIRST:.+]] = arith.muli %[[PART]], %[[EACH:.+]] :
// CHECK:           %[[LEFT:.+]] = arith.subi %[[DIM]], %[[FIRST]]
// CHECK:           %[[TOKENS:.+]] = arith.minsi %[[EACH]], %[[LEFT]]
// CHECK:           %[[CACHED:.+]] = arith.addi %[[FIRST]], %c2
// CHECK:           tensor.extract_slice %{{.+}}[%[[SEQ]], %{{.+}}, %[[FIRST]], 0] [%[[SEQS:.+]], %{{.+}}, %[[TOKENS]], 32]
// CHECK:           tensor.extract_slice %{{.+}}[1, %[[SEQ]], %{{.+}}, %[[CACHED]], 0] [1, %[[SEQS]], %{{.+}}, %[[TOKENS]], 32]
// CHECK:           bufferization.alloc_tensor() : tensor<6x{{32|64|96|128}}xf32>
// CHECK:           vector.fma
// CHECK:           scf.for
// CHECK:             arith.divui
// CHECK:             arith.remui
// CHECK-NOT:     scf.forall (
// CHECK:         return %[[ROWS]]#0, %[[ROWS]]#1, %[[ROWS]]#2
func.func @grouped(%x: tensor<3x?x40xf32>, %w: tensor<16x40x16xf32>, %cos: tensor<3x?x16xf32>, %sin: tensor<3x?x16xf32>,
                   %kc: tensor<2x3x2x32x32xf32>, %vc: tensor<2x3x2x32x32xf32>)
    -> (tensor<3x4x?x32xf32>, tensor<2x3x2x32x32xf32>, tensor<2x3x2x32x32xf32>) {
  %layer = arith.constant 1 : index
  %past = arith.constant 2 : index
  %y = attune.linear %x, %w : tensor<3x?x40xf32>, tensor<16x40x16xf32> -> tensor<3x?x256xf32>
  %q = attune.split_heads %y : tensor<3x?x256xf32> -> tensor<3x4x?x32xf32>
  %k = attune.split_heads %y at 128 : tensor<3x?x256xf32> -> tensor<3x2x?x32xf32>
  %v = attune.split_heads %y at 192 : tensor<3x?x256xf32> -> tensor<3x2x?x32xf32>
  %qr = attune.rotary %q, %cos, %sin pairing <half> : tensor<3x4x?x32xf32>, tensor<3x?x16xf32>
  %kr = attune.rotary %k, %cos, %sin pairing <interleaved> : tensor<3x2x?x32xf32>, tensor<3x?x16xf32>
  %k2 = attune.cache_append %kr into %kc[%layer, %past] : tensor<3x2x?x32xf32>, tensor<2x3x2x32x32xf32>
  %v2 = attune.cache_append %v into %vc[%layer, %past] : tensor<3x2x?x32xf32>, tensor<2x3x2x32x32xf32>
  return %qr, %k2, %v2 : tensor<3x4x?x32xf32>, tensor<2x3x2x32x32xf32>, tensor<2x3x2x32x32xf32>
}

// -----

// Where each sequence has a place of its own, a tile has all rows of its heads.
// CHECK-LABEL: @unequal(
// CHECK-SAME:    %[[PAST:[^:]+]]: tensor<3xi64>
// CHECK:         scf.forall
// CHECK:           tensor.extract_slice %{{.+}}[0, 1, %{{.+}}, 0, 0] [3, 1, %{{.+}}, 32, 32]
// CHECK:           vector.fma
// CHECK:           %[[OWN:.+]] = tensor.extract %[[PAST]]
// CHECK:           arith.index_cast %[[OWN]] : i64 to index
// CHECK:           vector.transfer_write
// CHECK-NOT:     scf.forall (
func.func @unequal(%x: tensor<3x1x40xf32>, %w: tensor<16x40x16xf32>, %cos: tensor<3x1x16xf32>, %sin: tensor<3x1x16xf32>,
                   %kc: tensor<3x2x2x32x32xf32>, %vc: tensor<3x2x2x32x32xf32>, %past: tensor<3xi64>)
    -> (tensor<3x4x1x32xf32>, tensor<3x2x2x32x32xf32>, tensor<3x2x2x32x32xf32>) {
  %layer = arith.constant 1 : index
  %y = attune.linear %x, %w : tensor<3x1x40xf32>, tensor<16x40x16xf32> -> tensor<3x1x256xf32>
  %q = attune.split_heads %y : tensor<3x1x256xf32> -> tensor<3x4x1x32xf32>
  %k = attune.split_heads %y at 128 : tensor<3x1x256xf32> -> tensor<3x2x1x32xf32>
  %v = attune.split_heads %y at 192 : tensor<3x1x256xf32> -> tensor<3x2x1x32xf32>
  %qr = attune.rotary %q, %cos, %sin pairing <half> : tensor<3x4x1x32xf32>, tensor<3x1x16xf32>
  %kr = attune.rotary %k, %cos, %sin pairing <half> : tensor<3x2x1x32xf32>, tensor<3x1x16xf32>
  %k2 = attune.cache_append %kr into %kc[%layer, %past : tensor<3xi64>] sequence_major : tensor<3x2x1x32xf32>, tensor<3x2x2x32x32xf32>
  %v2 = attune.cache_append %v into %vc[%layer, %past : tensor<3xi64>] sequence_major : tensor<3x2x1x32xf32>, tensor<3x2x2x32x32xf32>
  return %qr, %k2, %v2 : tensor<3x4x1x32xf32>, tensor<3x2x2x32x32xf32>, tensor<3x2x2x32x32xf32>
}

// -----

// Heads that are no whole panels: two of 24 columns are three panels of 16, and
// of nine heads the last step has one.
// CHECK-LABEL: @wide(
// CHECK:         arith.divui %c5, %{{.+}} : index
// CHECK:         scf.forall {{.+}} in (%{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}) {{.+}} -> (tensor<?x9x?x24xf32>)
// CHECK-NOT:     scf.forall (
func.func @wide(%x: tensor<?x?x20xf32>, %w: tensor<14x20x16xf32>, %cos: tensor<?x?x8xf32>, %sin: tensor<?x?x8xf32>) -> tensor<?x9x?x24xf32> {
  %y = attune.linear %x, %w : tensor<?x?x20xf32>, tensor<14x20x16xf32> -> tensor<?x?x216xf32>
  %q = attune.split_heads %y : tensor<?x?x216xf32> -> tensor<?x9x?x24xf32>
  %r = attune.rotary %q, %cos, %sin pairing <half> : tensor<?x9x?x24xf32>, tensor<?x?x8xf32>
  return %r : tensor<?x9x?x24xf32>
}

// -----

// Of three there would be two steps, too few to share: heads are turned behind
// the product.
// CHECK-LABEL: @few(
// CHECK:         scf.forall {{.+}} {{.+}} -> (tensor<?x72xf32>)
// CHECK:         scf.forall {{.+}} -> (tensor<?x3x?x24xf32>)
func.func @few(%x: tensor<?x?x20xf32>, %w: tensor<5x20x16xf32>, %cos: tensor<?x?x8xf32>, %sin: tensor<?x?x8xf32>) -> tensor<?x3x?x24xf32> {
  %y = attune.linear %x, %w : tensor<?x?x20xf32>, tensor<5x20x16xf32> -> tensor<?x?x72xf32>
  %q = attune.split_heads %y : tensor<?x?x72xf32> -> tensor<?x3x?x24xf32>
  %r = attune.rotary %q, %cos, %sin pairing <half> : tensor<?x3x?x24xf32>, tensor<?x?x8xf32>
  return %r : tensor<?x3x?x24xf32>
}

// -----

// Two heads in a panel; a bias and an activation come before the heads.
// CHECK-LABEL: @narrow(
// CHECK:         scf.forall {{.+}} -> (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>)
// CHECK-NOT:     scf.forall (
func.func @narrow(%x: tensor<?x?x20xf32>, %w: tensor<2x20x16xf32>, %b: tensor<32xf32>) -> (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) {
  %y = attune.linear %x, %w bias %b : tensor<32xf32> activation <silu> : tensor<?x?x20xf32>, tensor<2x20x16xf32> -> tensor<?x?x32xf32>
  %q = attune.split_heads %y : tensor<?x?x32xf32> -> tensor<?x2x?x8xf32>
  %v = attune.split_heads %y at 16 : tensor<?x?x32xf32> -> tensor<?x2x?x8xf32>
  return %q, %v : tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>
}

// -----

// What the layer rounds is rounded before it is turned; what a head rounds before
// it is turned again is not skipped: that rotary has a loop of its own.
// CHECK-LABEL: @rounded(
// CHECK:         scf.forall {{.+}} -> (tensor<?x1x?x16xbf16>, tensor<?x1x?x16xf16>)
// CHECK:           bufferization.alloc_tensor() : tensor<6x32xbf16>
// CHECK:         scf.forall (
func.func @rounded(%x: tensor<?x?x20xf32>, %w: tensor<2x20x16xf32>, %cos: tensor<?x?x8xf32>, %sin: tensor<?x?x8xf32>)
    -> (tensor<?x1x?x16xbf16>, tensor<?x1x?x16xf16>) {
  %y = attune.linear %x, %w : tensor<?x?x20xf32>, tensor<2x20x16xf32> -> tensor<?x?x32xbf16>
  %q = attune.split_heads %y : tensor<?x?x32xbf16> -> tensor<?x1x?x16xbf16>
  %k = attune.split_heads %y at 16 : tensor<?x?x32xbf16> -> tensor<?x1x?x16xf16>
  %qr = attune.rotary %q, %cos, %sin pairing <half> : tensor<?x1x?x16xbf16>, tensor<?x?x8xf32>
  %kr = attune.rotary %k, %cos, %sin pairing <half> : tensor<?x1x?x16xf16>, tensor<?x?x8xf32>
  return %qr, %kr : tensor<?x1x?x16xbf16>, tensor<?x1x?x16xf16>
}

// -----

// Who needs the result itself, gets it: heads are cut from it behind the product.
// CHECK-LABEL: @read_twice(
// CHECK:         scf.forall {{.+}} -> (tensor<?x32xf32>)
// CHECK:         scf.forall {{.+}} -> (tensor<?x2x?x16xf32>)
func.func @read_twice(%x: tensor<?x?x20xf32>, %w: tensor<2x20x16xf32>) -> (tensor<?x?x32xf32>, tensor<?x2x?x16xf32>) {
  %y = attune.linear %x, %w : tensor<?x?x20xf32>, tensor<2x20x16xf32> -> tensor<?x?x32xf32>
  %q = attune.split_heads %y : tensor<?x?x32xf32> -> tensor<?x2x?x16xf32>
  return %y, %q : tensor<?x?x32xf32>, tensor<?x2x?x16xf32>
}

// -----

// A branch that appends keeps doing so: nothing is written where it is not taken.
// CHECK-LABEL: @sometimes(
// CHECK:         scf.forall {{.+}} -> (tensor<1x2x?x16xf32>)
// CHECK:         scf.if
// CHECK:           scf.forall {{.+}} -> (tensor<1x1x2x32x16xf32>)
func.func @sometimes(%x: tensor<1x?x20xf32>, %w: tensor<2x20x16xf32>, %c: tensor<1x1x2x32x16xf32>, %when: i1) -> tensor<1x1x2x32x16xf32> {
  %zero = arith.constant 0 : index
  %y = attune.linear %x, %w : tensor<1x?x20xf32>, tensor<2x20x16xf32> -> tensor<1x?x32xf32>
  %k = attune.split_heads %y : tensor<1x?x32xf32> -> tensor<1x2x?x16xf32>
  %r = scf.if %when -> tensor<1x1x2x32x16xf32> {
    %a = attune.cache_append %k into %c[%zero, %zero] : tensor<1x2x?x16xf32>, tensor<1x1x2x32x16xf32>
    scf.yield %a : tensor<1x1x2x32x16xf32>
  } else {
    scf.yield %c : tensor<1x1x2x32x16xf32>
  }
  return %r : tensor<1x1x2x32x16xf32>
}

// -----

// Norms of queries and keys are part of it, whose weights are asked for before
// the product: a row is scaled from the scratch into its place and turned there.
// Each head may have a gamma and beta; keys that are not turned are rounded once,
// to their cache's type.
attune.weight @gamma stacked : tensor<2x24xf32> from [#attune.source<"h.{i}.gamma">]
// CHECK-LABEL: @normalised(
// CHECK:         %[[GAMMA:.+]] = attune.weight_get @gamma
// CHECK:         scf.forall {{.+}} -> (tensor<2x4x?x24xf32>, tensor<1x2x4x32x24xbf16>)
// CHECK:           bufferization.alloc_tensor() : tensor<6x{{[0-9]+}}xf32>
// CHECK:           math.rsqrt
// CHECK:           vector.{{load|transfer_read}} %[[GAMMA]]
// CHECK:           math.rsqrt
// CHECK-NOT:     scf.forall (
func.func @normalised(%x: tensor<2x?x20xf32>, %w: tensor<12x20x16xf32>, %layer: index, %cos: tensor<2x?x8xf32>, %sin: tensor<2x?x8xf32>,
                      %kg: tensor<4x24xf32>, %kb: tensor<4x24xf32>, %kc: tensor<1x2x4x32x24xbf16>)
    -> (tensor<2x4x?x24xf32>, tensor<1x2x4x32x24xbf16>) {
  %first = arith.constant 0 : index
  %past = arith.constant 3 : index
  %y = attune.linear %x, %w : tensor<2x?x20xf32>, tensor<12x20x16xf32> -> tensor<2x?x192xf32>
  %q = attune.split_heads %y : tensor<2x?x192xf32> -> tensor<2x4x?x24xf32>
  %k = attune.split_heads %y at 96 : tensor<2x?x192xf32> -> tensor<2x4x?x24xf32>
  %qg = attune.weight_get @gamma[%layer] : tensor<24xf32>
  %qn = attune.rms_norm %q gamma %qg : tensor<24xf32> eps 1.0e-6 offset 1.0 : tensor<2x4x?x24xf32>
  %kn = attune.layer_norm %k gamma %kg : tensor<4x24xf32> beta %kb : tensor<4x24xf32> eps 1.0e-5 : tensor<2x4x?x24xf32>
  %qr = attune.rotary %qn, %cos, %sin pairing <half> : tensor<2x4x?x24xf32>, tensor<2x?x8xf32>
  %k2 = attune.cache_append %kn into %kc[%first, %past] : tensor<2x4x?x24xf32>, tensor<1x2x4x32x24xbf16>
  return %qr, %k2 : tensor<2x4x?x24xf32>, tensor<1x2x4x32x24xbf16>
}

// -----

// A norm that rounds to another type than the embedding's: the embedding reads
// what was rounded, so it has a loop of its own.
// CHECK-LABEL: @twice(
// CHECK:         scf.forall {{.+}} -> (tensor<?x2x?x16xbf16>)
// CHECK:           math.rsqrt
// CHECK:         scf.forall {{.+}} -> (tensor<?x2x?x16xf32>)
func.func @twice(%x: tensor<?x?x20xf32>, %w: tensor<2x20x16xf32>, %cos: tensor<?x?x8xf32>, %sin: tensor<?x?x8xf32>) -> tensor<?x2x?x16xf32> {
  %y = attune.linear %x, %w : tensor<?x?x20xf32>, tensor<2x20x16xf32> -> tensor<?x?x32xf32>
  %q = attune.split_heads %y : tensor<?x?x32xf32> -> tensor<?x2x?x16xf32>
  %n = attune.rms_norm %q eps 1.0e-5 : tensor<?x2x?x16xf32> -> tensor<?x2x?x16xbf16>
  %r = attune.rotary %n, %cos, %sin pairing <half> : tensor<?x2x?x16xbf16>, tensor<?x?x8xf32> -> tensor<?x2x?x16xf32>
  return %r : tensor<?x2x?x16xf32>
}
