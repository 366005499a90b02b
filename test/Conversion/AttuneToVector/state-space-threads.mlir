// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=8 cooperative}),canonicalize,cse)" --split-input-file | FileCheck %s --implicit-check-not="attune."

// Of a GPU each thread has a channel, and a register for each of its states:
// nothing is scratch.
// CHECK-LABEL: @scan(
// CHECK-NOT:     tensor.empty() : tensor<5x
// CHECK:         scf.forall (%{{.+}}, %{{.+}}) in (%{{.+}}, 12)
// CHECK-COUNT-5:   vector.transfer_read %arg4
// CHECK:           scf.for {{.+}} -> (tensor<1x?x1xf32>, vector<1xf32>, vector<1xf32>, vector<1xf32>, vector<1xf32>, vector<1xf32>)
// CHECK-NOT:         scf.for
// CHECK:           scf.forall.in_parallel
func.func @scan(%x: tensor<?x?x12xf32>, %a: tensor<12x5xf32>, %b: tensor<?x?x5xf32>, %s: tensor<12xf32>, %l0: tensor<?x5x12xf32>) -> (tensor<?x?x12xf32>, tensor<?x5x12xf32>) {
  %y, %l = attune.selective_scan %x step %x, a_log %a, b %b, c %b, skip %s state %l0 : tensor<?x5x12xf32>
    : tensor<?x?x12xf32>, tensor<?x?x12xf32>, tensor<12x5xf32>, tensor<?x?x5xf32>, tensor<?x?x5xf32>, tensor<12xf32> -> tensor<?x?x12xf32>, tensor<?x5x12xf32>
  return %y, %l : tensor<?x?x12xf32>, tensor<?x5x12xf32>
}

// -----

// More states than registers are scratch, with channels side by side.
// CHECK-LABEL: @many(
// CHECK:         scf.forall (%{{.+}}, %{{.+}}) in (%{{.+}}, 2)
// CHECK:           tensor.empty() : tensor<65x8xf32>
func.func @many(%x: tensor<?x?x12xf32>, %a: tensor<12x65xf32>, %b: tensor<?x?x65xf32>, %s: tensor<12xf32>) -> (tensor<?x?x12xf32>, tensor<?x65x12xf32>) {
  %y, %l = attune.selective_scan %x step %x, a_log %a, b %b, c %b, skip %s
    : tensor<?x?x12xf32>, tensor<?x?x12xf32>, tensor<12x65xf32>, tensor<?x?x65xf32>, tensor<?x?x65xf32>, tensor<12xf32> -> tensor<?x?x12xf32>, tensor<?x65x12xf32>
  return %y, %l : tensor<?x?x12xf32>, tensor<?x65x12xf32>
}

// -----

// A delta rule without norms, in registers.
// CHECK-LABEL: @delta(
// CHECK:         scf.forall (%{{.+}}, %{{.+}}) in (%{{.+}}, 12)
// CHECK:           scf.for {{.+}} -> (tensor<1x?x1xf32>, vector<1xf32>, vector<1xf32>, vector<1xf32>)
// CHECK-NOT:         math.rsqrt
// CHECK-NOT:         scf.for
// CHECK:           scf.forall.in_parallel
func.func @delta(%q: tensor<?x?x6xf32>, %v: tensor<?x?x12xf32>, %d: tensor<?x?x4xf32>, %a: tensor<4xf32>) -> (tensor<?x?x12xf32>, tensor<?x3x12xf32>) {
  %y, %l = attune.delta_rule %q, %q, %v step %d, a_log %a, beta %d scale 0.5
    : tensor<?x?x6xf32>, tensor<?x?x12xf32>, tensor<?x?x4xf32>, tensor<4xf32> -> tensor<?x?x12xf32>, tensor<?x3x12xf32>
  return %y, %l : tensor<?x?x12xf32>, tensor<?x3x12xf32>
}

// -----

// A memory of a generalized delta rule in registers: three asks, then for each
// state what is put in its place.
// CHECK-LABEL: @generalized(
// CHECK:         scf.forall (%{{.+}}, %{{.+}}) in (%{{.+}}, 12)
// CHECK:           scf.for {{.+}} -> (tensor<1x?x1xf32>, tensor<1x?x1xf32>, vector<1xf32>, vector<1xf32>, vector<1xf32>)
// CHECK-COUNT-3:     vector.fma
// CHECK-COUNT-3:     math.exp
// CHECK-NOT:         scf.for
// CHECK:           scf.forall.in_parallel
func.func @generalized(%q: tensor<?x?x12xf32>, %v: tensor<?x?x12xf32>, %u: tensor<12xf32>) -> (tensor<?x?x12xf32>, tensor<?x3x12xf32>, tensor<?x?x12xf32>) {
  // Logarithms of what is kept are at most 0.
  %size = math.absf %q : tensor<?x?x12xf32>
  %decay = arith.negf %size : tensor<?x?x12xf32>
  %y, %l, %o = attune.generalized_delta_rule %q, %q, %v decay %decay, remove %q, replace %q, bonus %u
    : tensor<?x?x12xf32>, tensor<?x?x12xf32>, tensor<12xf32> -> tensor<?x3x12xf32>
  return %y, %l, %o : tensor<?x?x12xf32>, tensor<?x3x12xf32>, tensor<?x?x12xf32>
}
