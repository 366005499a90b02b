// RUN: attune-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: @conv(
func.func @conv(%x: tensor<?x?x64xf32>, %w: tensor<64x4xf32>, %b: tensor<64xf32>, %k: tensor<?x?xi1>) -> tensor<?x?x64xf32> {
  // CHECK: attune.causal_conv %{{.+}}, %{{.+}} bias %{{.+}} : tensor<64xf32> keep %{{.+}} : tensor<?x?xi1> activation <silu> :
  %y = attune.causal_conv %x, %w bias %b : tensor<64xf32> keep %k : tensor<?x?xi1> activation <silu>
     : tensor<?x?x64xf32>, tensor<64x4xf32>
  return %y : tensor<?x?x64xf32>
}

// CHECK-LABEL: @scan(
func.func @scan(%x: tensor<?x?x64xf32>, %a: tensor<64x16xf32>, %b: tensor<?x?x16xf32>, %s: tensor<64xf32>, %h: tensor<?x16x64xf32>) -> (tensor<?x?x64xf32>, tensor<?x16x64xf32>) {
  // CHECK: attune.selective_scan %{{.+}} step %{{.+}}, a_log %{{.+}}, b %{{.+}}, c %{{.+}}, skip %{{.+}} gate %{{.+}} : tensor<?x?x64xf32> state %{{.+}} : tensor<?x16x64xf32> :
  %y, %last = attune.selective_scan %x step %x, a_log %a, b %b, c %b, skip %s gate %x : tensor<?x?x64xf32> state %h : tensor<?x16x64xf32>
     : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<64x16xf32>, tensor<?x?x16xf32>, tensor<?x?x16xf32>, tensor<64xf32> -> tensor<?x?x64xf32>, tensor<?x16x64xf32>
  return %y, %last : tensor<?x?x64xf32>, tensor<?x16x64xf32>
}

// CHECK-LABEL: @plain(
func.func @plain(%x: tensor<?x?x64xf32>, %w: tensor<64x4xf32>, %b: tensor<64xf32>) -> tensor<?x?x64xf32> {
  // CHECK: attune.causal_conv
  %y = attune.causal_conv %x, %w bias %b : tensor<64xf32> activation <silu>
     : tensor<?x?x64xf32>, tensor<64x4xf32>
  return %y : tensor<?x?x64xf32>
}

// CHECK-LABEL: @ungated(
func.func @ungated(%x: tensor<?x?x64xf32>, %d: tensor<?x?x64xf32>, %a: tensor<64x16xf32>, %b: tensor<?x?x16xf32>, %c: tensor<?x?x16xf32>, %s: tensor<64xf32>) -> (tensor<?x?x64xf32>, tensor<?x16x64xf32>) {
  // CHECK: attune.selective_scan {{.+}}, skip %{{[^ ]+}} :
  %y, %last = attune.selective_scan %x step %d, a_log %a, b %b, c %c, skip %s
     : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<64x16xf32>, tensor<?x?x16xf32>,
       tensor<?x?x16xf32>, tensor<64xf32> -> tensor<?x?x64xf32>, tensor<?x16x64xf32>
  return %y, %last : tensor<?x?x64xf32>, tensor<?x16x64xf32>
}

// CHECK-LABEL: @heads(
func.func @heads(%x: tensor<?x?x64xf32>, %d: tensor<?x?x8xf32>, %a: tensor<8xf32>, %b: tensor<?x?x32xf32>, %s: tensor<8xf32>) -> (tensor<?x?x64xf32>, tensor<?x16x64xf32>) {
  // CHECK: attune.selective_scan {{.+}} : tensor<?x?x64xf32>, tensor<?x?x8xf32>, tensor<8xf32>, tensor<?x?x32xf32>, tensor<?x?x32xf32>, tensor<8xf32> -> tensor<?x?x64xf32>, tensor<?x16x64xf32>
  %y, %last = attune.selective_scan %x step %d, a_log %a, b %b, c %b, skip %s
     : tensor<?x?x64xf32>, tensor<?x?x8xf32>, tensor<8xf32>, tensor<?x?x32xf32>, tensor<?x?x32xf32>, tensor<8xf32> -> tensor<?x?x64xf32>, tensor<?x16x64xf32>
  return %y, %last : tensor<?x?x64xf32>, tensor<?x16x64xf32>
}

// CHECK-LABEL: @delta(
func.func @delta(%q: tensor<?x?x32xf32>, %v: tensor<?x?x64xf32>, %d: tensor<?x?x4xf32>, %a: tensor<4xf32>, %h: tensor<?x16x64xf32>) -> (tensor<?x?x64xf32>, tensor<?x16x64xf32>) {
  // CHECK: attune.delta_rule %{{.+}}, %{{.+}}, %{{.+}} step %{{.+}}, a_log %{{.+}}, beta %{{.+}} scale 2.500000e-01 normalised {{.+}} state %{{.+}} : tensor<?x16x64xf32> :
  %y, %last = attune.delta_rule %q, %q, %v step %d, a_log %a, beta %d scale 0.25 normalised 1.000000e-06 state %h : tensor<?x16x64xf32>
     : tensor<?x?x32xf32>, tensor<?x?x64xf32>, tensor<?x?x4xf32>, tensor<4xf32> -> tensor<?x?x64xf32>, tensor<?x16x64xf32>
  // CHECK: attune.delta_rule {{.+}} scale 1.000000e+00 :
  %z, %end = attune.delta_rule %q, %q, %y step %d, a_log %a, beta %d scale 1.0
     : tensor<?x?x32xf32>, tensor<?x?x64xf32>, tensor<?x?x4xf32>, tensor<4xf32> -> tensor<?x?x64xf32>, tensor<?x16x64xf32>
  return %z, %end : tensor<?x?x64xf32>, tensor<?x16x64xf32>
}

// CHECK-LABEL: @delta_rule_of_keys
func.func @delta_rule_of_keys(%q: tensor<?x?x32xf32>, %k: tensor<?x?x32xf32>, %v: tensor<?x?x64xf32>, %d: tensor<?x?x4xf32>, %a: tensor<4xf32>, %b: tensor<?x?x4xf32>) -> (tensor<?x?x64xf32>, tensor<?x16x64xf32>) {
  // CHECK: attune.delta_rule {{.+}} normalised
  %y, %last = attune.delta_rule %q, %k, %v step %d, a_log %a, beta %b scale 0.25
       normalised 1.000000e-06
       : tensor<?x?x32xf32>, tensor<?x?x64xf32>, tensor<?x?x4xf32>, tensor<4xf32>
       -> tensor<?x?x64xf32>, tensor<?x16x64xf32>
  return %y, %last : tensor<?x?x64xf32>, tensor<?x16x64xf32>
}

// CHECK-LABEL: @delta_rule_of_channels
func.func @delta_rule_of_channels(%q: tensor<?x?x32xf32>, %k: tensor<?x?x32xf32>, %v: tensor<?x?x64xf32>, %e: tensor<?x?x64xf32>, %a: tensor<4xf32>, %b: tensor<?x?x4xf32>) -> (tensor<?x?x64xf32>, tensor<?x16x64xf32>) {
  // CHECK: attune.delta_rule {{.+}} tensor<4xf32> beta tensor<?x?x4xf32> ->
  %z, %end = attune.delta_rule %q, %k, %v step %e, a_log %a, beta %b scale 0.25
       : tensor<?x?x32xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<4xf32>
       beta tensor<?x?x4xf32> -> tensor<?x?x64xf32>, tensor<?x16x64xf32>
  return %z, %end : tensor<?x?x64xf32>, tensor<?x16x64xf32>
}

// CHECK-LABEL: @generalized_delta(
func.func @generalized_delta(%q: tensor<?x?x32xf32>, %v: tensor<?x?x64xf32>, %u: tensor<32xf32>, %h: tensor<?x16x64xf32>) -> (tensor<?x?x64xf32>, tensor<?x16x64xf32>, tensor<?x?x64xf32>) {
  // CHECK: attune.generalized_delta_rule %{{.+}}, %{{.+}}, %{{.+}} decay %{{.+}}, remove %{{.+}}, replace %{{.+}}, bonus %{{.+}} state %{{.+}} : tensor<?x16x64xf32> : tensor<?x?x32xf32>, tensor<?x?x64xf32>, tensor<32xf32> -> tensor<?x16x64xf32>
  %y, %last, %own = attune.generalized_delta_rule %q, %q, %v decay %q,
     remove %q, replace %q, bonus %u state %h : tensor<?x16x64xf32>
     : tensor<?x?x32xf32>, tensor<?x?x64xf32>, tensor<32xf32> -> tensor<?x16x64xf32>
  return %y, %last, %own : tensor<?x?x64xf32>, tensor<?x16x64xf32>, tensor<?x?x64xf32>
}

// CHECK-LABEL: @generalized_delta_rule(
func.func @generalized_delta_rule(%q: tensor<?x?x64xf32>, %k: tensor<?x?x64xf32>, %v: tensor<?x?x32xf32>, %w: tensor<?x?x64xf32>, %a: tensor<?x?x64xf32>, %b: tensor<?x?x64xf32>, %u: tensor<64xf32>) -> (tensor<?x?x32xf32>, tensor<?x16x32xf32>, tensor<?x?x32xf32>) {
  // CHECK: attune.generalized_delta_rule {{.+}} bonus %{{.+}} : tensor<?x?x64xf32>
  %y, %last, %own = attune.generalized_delta_rule %q, %k, %v decay %w,
       remove %a, replace %b, bonus %u
       : tensor<?x?x64xf32>, tensor<?x?x32xf32>, tensor<64xf32> -> tensor<?x16x32xf32>
  return %y, %last, %own : tensor<?x?x32xf32>, tensor<?x16x32xf32>, tensor<?x?x32xf32>
}
