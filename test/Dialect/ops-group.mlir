// RUN: attune-opt %s | attune-opt | FileCheck %s
// RUN: attune-opt %s --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" | FileCheck %s --check-prefix=BUFFER

// Results are the destinations' buffers; nothing is copied.
// CHECK-LABEL: @mixture(
// CHECK: attune.expert_tasks_into %{{.+}} into %{{.+}}, %{{.+}}, %{{.+}} experts 8 rows 64 : tensor<?x2xi64>, tensor<?x3xi64>, tensor<?xi64>, tensor<?xi64> -> tensor<?x3xi64>, tensor<?xi64>, tensor<?xi64>
// CHECK: attune.grouped_linear_into %{{.+}}, %{{.+}} tasks %{{.+}} : tensor<?x3xi64> from %{{.+}} : tensor<?xi64> into %{{.+}} activation <silu> gated :
// BUFFER-LABEL: @mixture(
// BUFFER-NOT:   memref.copy
// BUFFER:       attune.expert_tasks_into %{{.+}} into %[[T:.+]], %[[F:.+]], %{{.+}} experts 8 rows 64 : memref<?x2xi64>, memref<?x3xi64>, memref<?xi64>, memref<?xi64>
// BUFFER-NEXT:  attune.grouped_linear_into %{{.+}}, %{{.+}} tasks %[[T]] : memref<?x3xi64> from %[[F]] : memref<?xi64> into %[[D:.+]] activation <silu> gated :
// BUFFER-NEXT:  return %[[D]]
func.func @mixture(%x: tensor<?x64xf32>, %w: tensor<8x24x64x8xbf16>, %e: tensor<?x2xi64>, %a: tensor<?x3xi64> {bufferization.writable = true}, %b: tensor<?xi64> {bufferization.writable = true}, %c: tensor<?xi64> {bufferization.writable = true}, %d: tensor<?x96xf32> {bufferization.writable = true}) -> tensor<?x96xf32> {
  %t, %f, %p = attune.expert_tasks_into %e into %a, %b, %c experts 8 rows 64
       : tensor<?x2xi64>, tensor<?x3xi64>, tensor<?xi64>, tensor<?xi64>
       -> tensor<?x3xi64>, tensor<?xi64>, tensor<?xi64>
  %y = attune.grouped_linear_into %x, %w tasks %t : tensor<?x3xi64>
       from %f : tensor<?xi64> into %d activation <silu> gated
       : tensor<?x64xf32>, tensor<8x24x64x8xbf16>, tensor<?x96xf32>
       -> tensor<?x96xf32>
  return %y : tensor<?x96xf32>
}

// CHECK-LABEL: @heads(
// CHECK: attune.grouped_linear_into %{{.+}}, %{{.+}} into %{{.+}} : tensor<?x?x12xf32>, tensor<4x3x12x8xf32>, tensor<?x?x24xf32> -> tensor<?x?x24xf32>
func.func @heads(%x: tensor<?x?x12xf32>, %w: tensor<4x3x12x8xf32>, %d: tensor<?x?x24xf32>) -> tensor<?x?x24xf32> {
  %y = attune.grouped_linear_into %x, %w into %d
       : tensor<?x?x12xf32>, tensor<4x3x12x8xf32>, tensor<?x?x24xf32>
       -> tensor<?x?x24xf32>
  return %y : tensor<?x?x24xf32>
}

// CHECK-LABEL: @sums(
// CHECK: attune.linear_attention_into %{{.+}}, %{{.+}}, %{{.+}} <elu_plus_one> causal normalised 9.99999997E-7 state %{{.+}} : tensor<1x2x64x65xf32> into %{{.+}} sums %{{.+}} : tensor<1x2x64x65xf32> : tensor<1x8x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x8x?x64xbf16> -> tensor<1x8x?x64xbf16>, tensor<1x2x64x65xf32>
// BUFFER-LABEL: @sums(
// BUFFER-NOT:   memref.copy
// BUFFER:       attune.linear_attention_into %{{.+}}, %{{.+}}, %{{.+}} <elu_plus_one> causal normalised {{.+}} state %{{.+}} : memref<1x2x64x65xf32> into %[[Y:.+]] sums %[[S:.+]] : memref<1x2x64x65xf32> :
// BUFFER-NEXT:  return %[[Y]], %[[S]]
func.func @sums(%q: tensor<1x8x?x64xbf16>, %k: tensor<1x2x?x64xbf16>, %v: tensor<1x2x?x64xbf16>, %s0: tensor<1x2x64x65xf32>, %d: tensor<1x8x?x64xbf16> {bufferization.writable = true}, %t: tensor<1x2x64x65xf32> {bufferization.writable = true}) -> (tensor<1x8x?x64xbf16>, tensor<1x2x64x65xf32>) {
  %y, %s = attune.linear_attention_into %q, %k, %v <elu_plus_one> causal
       normalised 1.000000e-06 state %s0 : tensor<1x2x64x65xf32> into %d
       sums %t : tensor<1x2x64x65xf32>
       : tensor<1x8x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>,
         tensor<1x8x?x64xbf16>
       -> tensor<1x8x?x64xbf16>, tensor<1x2x64x65xf32>
  return %y, %s : tensor<1x8x?x64xbf16>, tensor<1x2x64x65xf32>
}

// The old state is read where the new one would be written: not in place.
// BUFFER-LABEL: @state_in_place(
// BUFFER:       memref.alloc
// BUFFER:       attune.linear_attention_into
func.func @state_in_place(%q: tensor<1x2x1x8xf32>, %s0: tensor<1x2x8x9xf32> {bufferization.writable = true}, %d: tensor<1x2x1x8xf32> {bufferization.writable = true}) -> (tensor<1x2x1x8xf32>, tensor<1x2x8x9xf32>) {
  %y, %s = attune.linear_attention_into %q, %q, %q <relu> causal state %s0 : tensor<1x2x8x9xf32> into %d sums %s0 : tensor<1x2x8x9xf32>
       : tensor<1x2x1x8xf32>, tensor<1x2x1x8xf32>, tensor<1x2x1x8xf32>, tensor<1x2x1x8xf32> -> tensor<1x2x1x8xf32>, tensor<1x2x8x9xf32>
  return %y, %s : tensor<1x2x1x8xf32>, tensor<1x2x8x9xf32>
}

// CHECK-LABEL: @in_few_bits
func.func @in_few_bits(%x: tensor<?x64xf32>, %w: tensor<8x24x8x32xi8>, %s: tensor<8x24x4x8xf16>, %t: tensor<?x3xi64>, %d: tensor<?x96xf32>) -> tensor<?x96xf32> {
  // CHECK: attune.grouped_linear_into %{{.+}}, %{{.+}} scales %{{.+}} : tensor<8x24x4x8xf16> zeros tasks %{{.+}}
  %y = attune.grouped_linear_into %x, %w scales %s : tensor<8x24x4x8xf16> zeros tasks %t : tensor<?x3xi64> into %d activation <silu> gated : tensor<?x64xf32>, tensor<8x24x8x32xi8>, tensor<?x96xf32> -> tensor<?x96xf32>
  return %y : tensor<?x96xf32>
}

// CHECK-LABEL: @normed(
// CHECK: attune.normed_linear_into %{{.+}} of %{{.+}} gamma %{{.+}} : tensor<64xbf16> eps 9.99999974E-6 few 8, %{{.+}} into %{{.+}} activation <silu> gated : tensor<?x64xbf16>, tensor<?x64xf32>, tensor<24x64x8xbf16>, tensor<?x96xbf16> -> tensor<?x96xbf16>
// BUFFER-LABEL: @normed(
// BUFFER-NOT:   memref.copy
// BUFFER:       attune.normed_linear_into %{{.+}} of %{{.+}} into %[[D:.+]] activation <silu> gated :
// BUFFER-NEXT:  return %[[D]]
func.func @normed(%n: tensor<?x64xbf16>, %x: tensor<?x64xf32>, %g: tensor<64xbf16>, %w: tensor<24x64x8xbf16>, %d: tensor<?x96xbf16> {bufferization.writable = true}) -> tensor<?x96xbf16> {
    %y = attune.normed_linear_into %n of %x gamma %g : tensor<64xbf16>
       eps 1.000000e-05 few 8, %w into %d activation <silu> gated
       : tensor<?x64xbf16>, tensor<?x64xf32>, tensor<24x64x8xbf16>,
         tensor<?x96xbf16> -> tensor<?x96xbf16>
  return %y : tensor<?x96xbf16>
}

// What a layer norm is centred by, weights in few bits, a residual.
// CHECK-LABEL: @normed_numbers(
// CHECK: attune.normed_linear_into %{{.+}} of %{{.+}} gamma %{{.+}} : tensor<64xf32> beta %{{.+}} : tensor<64xf32> centred eps 9.99999974E-6 offset 1.000000e+00 few 1, %{{.+}} scales %{{.+}} : tensor<12x4x8xf16> zeros bias %{{.+}} : tensor<96xf32> into %{{.+}} residual scale 5.000000e-01 :
func.func @normed_numbers(%n: tensor<?x64xbf16>, %x: tensor<?x64xf32>, %g: tensor<64xf32>, %w: tensor<12x8x32xi8>, %s: tensor<12x4x8xf16>, %b: tensor<96xf32>, %d: tensor<?x96xf32>) -> tensor<?x96xf32> {
  %y = attune.normed_linear_into %n of %x gamma %g : tensor<64xf32> beta %g : tensor<64xf32> centred eps 1.0e-5 offset 1.0 few 1, %w scales %s : tensor<12x4x8xf16> zeros bias %b : tensor<96xf32> into %d residual scale 0.5
    : tensor<?x64xbf16>, tensor<?x64xf32>, tensor<12x8x32xi8>, tensor<?x96xf32> -> tensor<?x96xf32>
  return %y : tensor<?x96xf32>
}
