// An index that chooses keys, as kernels of a CPU and as linalg: heads that fill
// no tile, keys that fill no panel, widths that are no whole square; masks,
// lengths and causality, more and fewer keys than are chosen.
// RUN: attune-opt %s --attune-validate=verbose --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=8 rows=4}))" \
// RUN:   2>&1 | FileCheck %s --check-prefix=VECTOR --implicit-check-not=attune. --implicit-check-not=error
// RUN: attune-opt %s --attune-validate=verbose --pass-pipeline="builtin.module(convert-attune-index-to-linalg)" \
// RUN:   2>&1 | FileCheck %s --check-prefix=LINALG --implicit-check-not=attune.index --implicit-check-not=attune.choose --implicit-check-not=error
// VECTOR-COUNT-6: convert-attune-to-vector, @{{.*}} is the same
// LINALG-COUNT-6: convert-attune-index-to-linalg, @{{.*}} is the same

func.func @scores(%q: tensor<2x5x3x11xf32>, %k: tensor<2x1x13x11xf32>, %w: tensor<2x3x5xf32>) -> tensor<2x3x13xf32> {
  %i = attune.index_scores %q, %k shares %w scale 0.25
    : tensor<2x5x3x11xf32>, tensor<2x1x13x11xf32>, tensor<2x3x5xf32> -> tensor<2x3x13xf32>
  return %i : tensor<2x3x13xf32>
}

// Of the second panel two keys, of the third none.
func.func @reach(%q: tensor<1x4x3x16xbf16>, %k: tensor<1x1x20x16xf16>, %w: tensor<1x3x4xbf16>) -> tensor<1x3x20xf32> {
  %n = arith.constant 10 : index
  %i = attune.index_scores %q, %k shares %w scale 0.25 reach %n
    : tensor<1x4x3x16xbf16>, tensor<1x1x20x16xf16>, tensor<1x3x4xbf16> -> tensor<1x3x20xf32>
  return %i : tensor<1x3x20xf32>
}

func.func @best(%x: tensor<2x3x21xf32>) -> (tensor<2x3x4xi64>, tensor<2x3xi64>) {
  %p, %c = attune.choose_keys %x top 4 : tensor<2x3x21xf32> -> tensor<2x3x4xi64>, tensor<2x3xi64>
  return %p, %c : tensor<2x3x4xi64>, tensor<2x3xi64>
}

// The first query sees three keys, the second four.
func.func @causal(%x: tensor<1x7x9xf32>) -> (tensor<1x7x4xi64>, tensor<1x7xi64>) {
  %n = arith.constant 2 : index
  %p, %c = attune.choose_keys %x top 4 past %n : tensor<1x7x9xf32> -> tensor<1x7x4xi64>, tensor<1x7xi64>
  return %p, %c : tensor<1x7x4xi64>, tensor<1x7xi64>
}

func.func @hidden(%x: tensor<2x3x9xf32>, %m: tensor<2x1x1x9xi1>, %q: tensor<1x1x3x9xi1>)
    -> (tensor<2x3x4xi64>, tensor<2x3xi64>, tensor<2x3x4xi64>, tensor<2x3xi64>) {
  %n = arith.constant dense<[9, 3]> : tensor<2xi64>
  %p, %c = attune.choose_keys %x top 4 mask %m : tensor<2x1x1x9xi1> lengths %n : tensor<2xi64>
    : tensor<2x3x9xf32> -> tensor<2x3x4xi64>, tensor<2x3xi64>
  %r, %d = attune.choose_keys %x top 4 mask %q : tensor<1x1x3x9xi1> : tensor<2x3x9xf32> -> tensor<2x3x4xi64>, tensor<2x3xi64>
  return %p, %c, %r, %d : tensor<2x3x4xi64>, tensor<2x3xi64>, tensor<2x3x4xi64>, tensor<2x3xi64>
}

// Equal scores, both zeros, and what is not a number.
func.func @alike() -> (tensor<1x1x3xi64>, tensor<1x1xi64>, tensor<1x1x6xi64>, tensor<1x1xi64>) {
  %x = arith.constant dense<[[[-1.0, 0.0, -0.0, 0xFF800000, 0.0, 0x7FC00000, -2.0, 0xFFC00000, 0x7F800000]]]> : tensor<1x1x9xf32>
  %p, %c = attune.choose_keys %x top 3 : tensor<1x1x9xf32> -> tensor<1x1x3xi64>, tensor<1x1xi64>
  %r, %d = attune.choose_keys %x top 6 : tensor<1x1x9xf32> -> tensor<1x1x6xi64>, tensor<1x1xi64>
  return %p, %c, %r, %d : tensor<1x1x3xi64>, tensor<1x1xi64>, tensor<1x1x6xi64>, tensor<1x1xi64>
}
