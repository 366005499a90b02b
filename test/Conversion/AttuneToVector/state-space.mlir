// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=8}),canonicalize,cse)" --split-input-file | FileCheck %s --implicit-check-not="attune."

// A thread has 8 channels of a sequence; the last three inputs are carried from
// token to token.
// CHECK-LABEL: @conv(
// CHECK:         scf.forall (%{{.+}}, %{{.+}}) in (%{{.+}}, 2)
// CHECK:           scf.for {{.+}} iter_args(%{{.+}} = %{{.+}}, %{{.+}} = %{{.+}}, %{{.+}} = %{{.+}}, %{{.+}} = %{{.+}}) -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, tensor<1x?x8xf32>)
// CHECK-COUNT-4:     vector.fma
// CHECK:             math.exp
// CHECK:             vector.transfer_write
func.func @conv(%x: tensor<?x?x16xf32>, %w: tensor<16x4xf32>, %b: tensor<16xf32>) -> tensor<?x?x16xf32> {
  %y = attune.causal_conv %x, %w bias %b : tensor<16xf32> activation <silu> : tensor<?x?x16xf32>, tensor<16x4xf32>
  return %y : tensor<?x?x16xf32>
}

// -----

// Tokens that do not count are zeros coming in and going out.
// CHECK-LABEL: @kept(
// CHECK:         scf.for %
// CHECK:           %[[KEEP:.+]] = tensor.extract %arg2[
// CHECK:           arith.select %[[KEEP]]
// CHECK:           vector.fma
// CHECK:           arith.select %[[KEEP]]
func.func @kept(%x: tensor<?x?x16xf32>, %w: tensor<16x1xf32>, %k: tensor<?x?xi1>) -> tensor<?x?x16xf32> {
  %y = attune.causal_conv %x, %w keep %k : tensor<?x?xi1> activation <identity> : tensor<?x?x16xf32>, tensor<16x1xf32>
  return %y : tensor<?x?x16xf32>
}

// -----

// The states of 8 channels are scratch of [states, 8]; no tensor has tokens and
// states. 12 channels are one whole vector and half of one.
// CHECK-LABEL: @scan(
// CHECK-NOT:     tensor.empty({{.+}}tensor<?x?x?x
// CHECK:         scf.forall (%{{.+}}, %{{.+}}) in (%{{.+}}, 2)
// CHECK:           tensor.empty() : tensor<5x8xf32>
// CHECK:           scf.for
// CHECK:             scf.for {{.+}} -> (vector<8xf32>, tensor<5x8xf32>)
// CHECK:               math.exp
// CHECK-COUNT-2:       vector.fma
func.func @scan(%x: tensor<?x?x12xf32>, %a: tensor<12x5xf32>, %b: tensor<?x?x5xf32>, %s: tensor<12xf32>) -> (tensor<?x?x12xf32>, tensor<?x5x12xf32>) {
  %y, %l = attune.selective_scan %x step %x, a_log %a, b %b, c %b, skip %s gate %x : tensor<?x?x12xf32>
    : tensor<?x?x12xf32>, tensor<?x?x12xf32>, tensor<12x5xf32>, tensor<?x?x5xf32>, tensor<?x?x5xf32>, tensor<12xf32> -> tensor<?x?x12xf32>, tensor<?x5x12xf32>
  return %y, %l : tensor<?x?x12xf32>, tensor<?x5x12xf32>
}

// -----

// The memory of 8 channels is scratch of [states, 8], read twice a token: for
// what it knows of the key, and to be changed and asked.
// CHECK-LABEL: @delta(
// CHECK-NOT:     tensor.empty({{.+}}tensor<?x?x?x
// CHECK:         scf.forall (%{{.+}}, %{{.+}}) in (%{{.+}}, 2)
// CHECK:           tensor.empty() : tensor<6x8xf32>
// CHECK:           scf.for {{.+}} -> (tensor<1x?x8xf32>, tensor<6x8xf32>)
// CHECK:             scf.for {{.+}} -> (vector<8xf32>, vector<8xf32>)
// CHECK-COUNT-2:       vector.fma
// CHECK:             math.rsqrt
// CHECK:             scf.for {{.+}} -> (vector<8xf32>, vector<8xf32>, tensor<6x8xf32>)
// CHECK-COUNT-3:       vector.fma
func.func @delta(%q: tensor<?x?x6xf32>, %v: tensor<?x?x16xf32>, %d: tensor<?x?x2xf32>, %a: tensor<2xf32>, %h: tensor<?x6x16xf32>) -> (tensor<?x?x16xf32>, tensor<?x6x16xf32>) {
  %y, %l = attune.delta_rule %q, %q, %v step %d, a_log %a, beta %d scale 0.5 normalised 1.000000e-06 state %h : tensor<?x6x16xf32>
    : tensor<?x?x6xf32>, tensor<?x?x16xf32>, tensor<?x?x2xf32>, tensor<2xf32> -> tensor<?x?x16xf32>, tensor<?x6x16xf32>
  return %y, %l : tensor<?x?x16xf32>, tensor<?x6x16xf32>
}
