// Kernels and linalg take what happens to a score from one place. The
// interpreter has its own, so it would find an error there.
// RUN: attune-opt %s --attune-validate=verbose \
// RUN:   --pass-pipeline="builtin.module(func.func(convert-attune-attention-to-online{query-block=4 key-block=8},convert-attune-online-to-vector{lanes=8 rows=4}),convert-attune-ladder-to-linalg)" \
// RUN:   2>&1 | FileCheck %s --implicit-check-not=attune. --implicit-check-not=error
// CHECK-COUNT-4: convert-attune-online-to-vector, @{{.*}} is the same
// CHECK: convert-attune-ladder-to-linalg, @ladder is the same
// CHECK: convert-attune-ladder-to-linalg, @ladder_top_left is the same
// CHECK: convert-attune-ladder-to-linalg, @ladder_lengths is the same

func.func @numbers(%q: tensor<1x4x5x8xf32>, %k: tensor<1x2x11x8xf32>, %v: tensor<1x2x11x8xf32>, %bias: tensor<1x4x1x11xf32>, %diagonals: tensor<4x15xf32>, %slopes: tensor<4xf32>) -> tensor<1x4x5x8xf32> {
  %y = attune.attention %q, %k, %v scale 0.5 bias %bias : tensor<1x4x1x11xf32>
    diagonals %diagonals : tensor<4x15xf32> slopes %slopes : tensor<4xf32> softcap 2.0
    : tensor<1x4x5x8xf32>, tensor<1x2x11x8xf32>, tensor<1x2x11x8xf32> -> tensor<1x4x5x8xf32>
  return %y : tensor<1x4x5x8xf32>
}

func.func @hidden(%q: tensor<2x4x5x8xf32>, %k: tensor<2x2x11x8xf32>, %v: tensor<2x2x11x8xf32>, %mask: tensor<2x1x5x11xi1>, %lengths: tensor<2xi64>, %blocks: tensor<1x4x2x3xi1>) -> tensor<2x4x5x8xf32> {
  %y = attune.attention %q, %k, %v scale 0.5 mask %mask : tensor<2x1x5x11xi1>
    lengths %lengths : tensor<2xi64> blocks %blocks of [4, 4] : tensor<1x4x2x3xi1>
    causal <bottom_right> window 6
    : tensor<2x4x5x8xf32>, tensor<2x2x11x8xf32>, tensor<2x2x11x8xf32> -> tensor<2x4x5x8xf32>
  return %y : tensor<2x4x5x8xf32>
}

func.func @top_left(%q: tensor<1x2x9x8xf32>, %k: tensor<1x2x11x8xf32>, %v: tensor<1x2x11x8xf32>, %slopes: tensor<2xf32>) -> tensor<1x2x9x8xf32> {
  %y = attune.attention %q, %k, %v scale 0.5 slopes %slopes : tensor<2xf32> causal <top_left> window 3
    : tensor<1x2x9x8xf32>, tensor<1x2x11x8xf32>, tensor<1x2x11x8xf32> -> tensor<1x2x9x8xf32>
  return %y : tensor<1x2x9x8xf32>
}

// Queries stand where their sequence ends.
func.func @unequal(%q: tensor<3x4x2x8xf32>, %k: tensor<3x2x19x8xf32>, %v: tensor<3x2x19x8xf32>, %lengths: tensor<3xi64>, %diagonals: tensor<4x20xf32>, %slopes: tensor<4xf32>) -> tensor<3x4x2x8xf32> {
  %y = attune.attention %q, %k, %v scale 0.5 lengths %lengths : tensor<3xi64>
    diagonals %diagonals : tensor<4x20xf32> slopes %slopes : tensor<4xf32> causal <lengths> window 6
    : tensor<3x4x2x8xf32>, tensor<3x2x19x8xf32>, tensor<3x2x19x8xf32> -> tensor<3x4x2x8xf32>
  return %y : tensor<3x4x2x8xf32>
}

func.func @ladder(%e: tensor<2x2x5x7xf32>, %mask: tensor<2x1x5x7xi1>, %bias: tensor<1x2x1x7xf32>, %diagonals: tensor<2x11xf32>, %slopes: tensor<2xf32>, %lengths: tensor<2xi64>, %blocks: tensor<1x2x2x3xi1>) -> tensor<2x2x5x7xf32> {
  %f = attune.mask_scores %e mask %mask : tensor<2x1x5x7xi1> lengths %lengths : tensor<2xi64>
    blocks %blocks of [3, 3] : tensor<1x2x2x3xi1> bias %bias : tensor<1x2x1x7xf32>
    diagonals %diagonals : tensor<2x11xf32> slopes %slopes : tensor<2xf32>
    causal <bottom_right> window 4 softcap 3.0 : tensor<2x2x5x7xf32>
  return %f : tensor<2x2x5x7xf32>
}

func.func @ladder_top_left(%e: tensor<1x2x5x7xf32>) -> tensor<1x2x5x7xf32> {
  %f = attune.mask_scores %e causal <top_left> window 2 : tensor<1x2x5x7xf32>
  return %f : tensor<1x2x5x7xf32>
}

func.func @ladder_lengths(%e: tensor<2x2x3x7xf32>, %lengths: tensor<2xi64>, %diagonals: tensor<2x9xf32>, %slopes: tensor<2xf32>) -> tensor<2x2x3x7xf32> {
  %f = attune.mask_scores %e lengths %lengths : tensor<2xi64> diagonals %diagonals : tensor<2x9xf32>
    slopes %slopes : tensor<2xf32> causal <lengths> window 2 : tensor<2x2x3x7xf32>
  return %f : tensor<2x2x3x7xf32>
}
