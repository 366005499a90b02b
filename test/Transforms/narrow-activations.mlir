// RUN: attune-opt %s --attune-narrow-activations --split-input-file | FileCheck %s

attune.weight @norm : tensor<64xbf16> from [#attune.source<"norm">]
attune.weight @up : tensor<256x64xbf16> from [#attune.source<"up">]
attune.weight @down : tensor<64x128xbf16> from [#attune.source<"down">]

// A norm or a layer that only such layers read rounds its own result; the
// residual stream is not rounded.
// CHECK-LABEL: @ffn(
// CHECK-NOT:     arith.truncf
// CHECK:         %[[R:.+]] = attune.rms_norm {{.+}} : tensor<?x?x64xf32> -> tensor<?x?x64xbf16>
// CHECK-NOT:     arith.truncf
// CHECK:         attune.linear %[[R]], {{.+}} gated : tensor<?x?x64xbf16>, tensor<256x64xbf16> -> tensor<?x?x128xbf16>
// CHECK:         attune.linear {{.+}} residual {{.+}} : tensor<?x?x128xbf16>, tensor<64x128xbf16> -> tensor<?x?x64xf32>
func.func @ffn(%x: tensor<?x?x64xf32>) -> tensor<?x?x64xf32> {
  %g = attune.weight_get @norm : tensor<64xbf16>
  %n = attune.rms_norm %x gamma %g : tensor<64xbf16> eps 1.0e-5 : tensor<?x?x64xf32>
  %u = attune.weight_get @up : tensor<256x64xbf16>
  %h = attune.linear %n, %u activation <silu> gated : tensor<?x?x64xf32>, tensor<256x64xbf16> -> tensor<?x?x128xf32>
  %d = attune.weight_get @down : tensor<64x128xbf16>
  %y = attune.linear %h, %d residual %x : tensor<?x?x64xf32> : tensor<?x?x128xf32>, tensor<64x128xbf16> -> tensor<?x?x64xf32>
  return %y : tensor<?x?x64xf32>
}

// -----

attune.weight @a : tensor<32x64xbf16> from [#attune.source<"a">]
attune.weight @b : tensor<16x64xbf16> from [#attune.source<"b">]
attune.weight @odd : tensor<16x63xbf16> from [#attune.source<"odd">]
attune.weight @wide : tensor<16x64xf32> from [#attune.source<"wide">]

// A value that others read as well is rounded beside it, once for all layers;
// weights of odd depth hold no pairs, f32 ones no bf16.
// CHECK-LABEL: @shared(
// CHECK-SAME:    %[[X:[^:]+]]: tensor<?x64xf32>, %[[O:[^:]+]]: tensor<?x63xf32>)
// CHECK:         %[[R:.+]] = arith.truncf %[[X]] : tensor<?x64xf32> to tensor<?x64xbf16>
// CHECK-NOT:     arith.truncf
// CHECK:         attune.linear %[[R]], {{.+}} tensor<32x64xbf16>
// CHECK:         attune.linear %[[R]], {{.+}} tensor<16x64xbf16>
// CHECK:         attune.linear %[[O]], {{.+}} tensor<16x63xbf16>
// CHECK:         attune.linear %[[X]], {{.+}} tensor<16x64xf32>
func.func @shared(%x: tensor<?x64xf32>, %o: tensor<?x63xf32>) -> (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>) {
  %a = attune.weight_get @a : tensor<32x64xbf16>
  %b = attune.weight_get @b : tensor<16x64xbf16>
  %odd = attune.weight_get @odd : tensor<16x63xbf16>
  %wide = attune.weight_get @wide : tensor<16x64xf32>
  %0 = attune.linear %x, %a : tensor<?x64xf32>, tensor<32x64xbf16> -> tensor<?x32xf32>
  %1 = attune.linear %x, %b : tensor<?x64xf32>, tensor<16x64xbf16> -> tensor<?x16xf32>
  %2 = attune.linear %o, %odd : tensor<?x63xf32>, tensor<16x63xbf16> -> tensor<?x16xf32>
  %3 = attune.linear %x, %wide : tensor<?x64xf32>, tensor<16x64xf32> -> tensor<?x16xf32>
  return %0, %1, %2, %3 : tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>
}

// -----

attune.weight @qkv : tensor<96x64xbf16> from [#attune.source<"qkv">]
attune.weight @o : tensor<64x32xbf16> from [#attune.source<"o">]

// Attention between such layers reads bf16 and, since heads change their place
// and nothing else when they are merged, gives it; from a cache of f32 it reads
// f32, so that queries are there in both types.
// CHECK-LABEL: @attention(
// CHECK:         %[[Q:.+]] = attune.split_heads {{.+}} -> tensor<?x2x?x16xf32>
// CHECK:         arith.truncf %[[Q]]
// CHECK-NOT:     arith.truncf
// CHECK:         attune.split_heads {{.+}} at 32 : tensor<?x?x96xf32> -> tensor<?x2x?x16xbf16>
// CHECK:         attune.split_heads {{.+}} at 64 : tensor<?x?x96xf32> -> tensor<?x2x?x16xbf16>
// CHECK:         attune.attention {{.+}} : tensor<?x2x?x16xbf16>, tensor<?x2x?x16xbf16>, tensor<?x2x?x16xbf16> -> tensor<?x2x?x16xbf16>
// CHECK:         attune.merge_heads {{.+}} : tensor<?x2x?x16xbf16> -> tensor<?x?x32xbf16>
// CHECK:         attune.attention {{.+}} : tensor<?x2x?x16xf32>, tensor<?x2x?x16xf32>, tensor<?x2x?x16xf32> -> tensor<?x2x?x16xf32>
func.func @attention(%x: tensor<?x?x64xf32>, %cache: tensor<?x2x?x16xf32>) -> (tensor<?x?x64xf32>, tensor<?x2x?x16xf32>) {
  %w = attune.weight_get @qkv : tensor<96x64xbf16>
  %h = attune.linear %x, %w : tensor<?x?x64xf32>, tensor<96x64xbf16> -> tensor<?x?x96xf32>
  %q = attune.split_heads %h : tensor<?x?x96xf32> -> tensor<?x2x?x16xf32>
  %k = attune.split_heads %h at 32 : tensor<?x?x96xf32> -> tensor<?x2x?x16xf32>
  %v = attune.split_heads %h at 64 : tensor<?x?x96xf32> -> tensor<?x2x?x16xf32>
  %y = attune.attention %q, %k, %v scale 0.25 : tensor<?x2x?x16xf32>, tensor<?x2x?x16xf32>, tensor<?x2x?x16xf32> -> tensor<?x2x?x16xf32>
  %m = attune.merge_heads %y : tensor<?x2x?x16xf32> -> tensor<?x?x32xf32>
  %o = attune.weight_get @o : tensor<64x32xbf16>
  %r = attune.linear %m, %o : tensor<?x?x32xf32>, tensor<64x32xbf16> -> tensor<?x?x64xf32>
  %c = attune.attention %q, %cache, %cache scale 0.25 : tensor<?x2x?x16xf32>, tensor<?x2x?x16xf32>, tensor<?x2x?x16xf32> -> tensor<?x2x?x16xf32>
  return %r, %c : tensor<?x?x64xf32>, tensor<?x2x?x16xf32>
}

// -----

attune.weight @q : tensor<32x64xbf16> from [#attune.source<"q">]
attune.weight @kv : tensor<64x64xbf16> from [#attune.source<"kv">]

// A cache of bf16 is as good as what such a layer gives; positions turn in f32
// and are rounded once. A layer whose heads round all it gives does it itself,
// and weights are recomputed from what attention reads.
// CHECK-LABEL: @cached(
// CHECK:         attune.linear {{.+}} -> tensor<?x?x32xf32>
// CHECK:         attune.split_heads {{.+}} : tensor<?x?x32xf32> -> tensor<?x2x?x16xf32>
// CHECK:         %[[Q:.+]] = attune.rotary {{.+}} : tensor<?x2x?x16xf32>, tensor<?x?x8xf32> -> tensor<?x2x?x16xbf16>
// CHECK:         attune.attention %[[Q]], %[[C:.+]], %[[C]] {{.+}} : tensor<?x2x?x16xbf16>, tensor<?x2x?x16xbf16>, tensor<?x2x?x16xbf16> -> tensor<?x2x?x16xf32>
// CHECK:         attune.attention_weights %[[Q]], %[[C]]
// CHECK:         attune.linear {{.+}} -> tensor<?x?x64xbf16>
// CHECK:         attune.split_heads {{.+}} : tensor<?x?x64xbf16> -> tensor<?x2x?x16xbf16>
// CHECK:         attune.split_heads {{.+}} at 32 : tensor<?x?x64xbf16> -> tensor<?x2x?x16xbf16>
func.func @cached(%x: tensor<?x?x64xbf16>, %cache: tensor<3x?x2x128x16xbf16>, %n: index, %cos: tensor<?x?x8xf32>, %map: tensor<?x2x?x?xf32>)
    -> (tensor<?x2x?x16xf32>, tensor<?x2x?x?xf32>, tensor<?x2x?x16xf32>) {
  %w = attune.weight_get @q : tensor<32x64xbf16>
  %h = attune.linear %x, %w : tensor<?x?x64xbf16>, tensor<32x64xbf16> -> tensor<?x?x32xf32>
  %s = attune.split_heads %h : tensor<?x?x32xf32> -> tensor<?x2x?x16xf32>
  %q = attune.rotary %s, %cos, %cos pairing <half> : tensor<?x2x?x16xf32>, tensor<?x?x8xf32>
  %c = attune.cache_read %cache[%n] length %n : tensor<3x?x2x128x16xbf16> -> tensor<?x2x?x16xbf16>
  %y, %l = attune.attention %q, %c, %c scale 0.25 : tensor<?x2x?x16xf32>, tensor<?x2x?x16xbf16>, tensor<?x2x?x16xbf16> -> tensor<?x2x?x16xf32> lse tensor<?x2x?xf32>
  %a = attune.attention_weights %q, %c, %l scale 0.25 into %map : tensor<?x2x?x16xf32>, tensor<?x2x?x16xbf16>, tensor<?x2x?xf32> -> tensor<?x2x?x?xf32>
  %v = attune.weight_get @kv : tensor<64x64xbf16>
  %kv = attune.linear %x, %v : tensor<?x?x64xbf16>, tensor<64x64xbf16> -> tensor<?x?x64xf32>
  %k0 = attune.split_heads %kv : tensor<?x?x64xf32> -> tensor<?x2x?x16xf32>
  %v0 = attune.split_heads %kv at 32 : tensor<?x?x64xf32> -> tensor<?x2x?x16xf32>
  %z = attune.attention %c, %k0, %v0 scale 0.25 : tensor<?x2x?x16xbf16>, tensor<?x2x?x16xf32>, tensor<?x2x?x16xf32> -> tensor<?x2x?x16xf32>
  return %y, %a, %z : tensor<?x2x?x16xf32>, tensor<?x2x?x?xf32>, tensor<?x2x?x16xf32>
}

// -----

attune.weight @qkv : tensor<96x64xbf16> from [#attune.source<"qkv">]

// What only goes to a cache is rounded where it is made, once as before.
// CHECK-LABEL: @appended(
// CHECK:         attune.linear {{.+}} -> tensor<?x?x96xf32>
// CHECK:         attune.split_heads {{.+}} at 32 : tensor<?x?x96xf32> -> tensor<?x2x?x16xf32>
// CHECK:         %[[V:.+]] = attune.split_heads {{.+}} at 64 : tensor<?x?x96xf32> -> tensor<?x2x?x16xbf16>
// CHECK:         %[[K:.+]] = attune.rotary {{.+}} -> tensor<?x2x?x16xbf16>
// CHECK:         attune.cache_append %[[K]] into {{.+}} : tensor<?x2x?x16xbf16>, tensor<3x?x2x128x16xbf16>
// CHECK:         attune.cache_append %[[V]] into {{.+}} : tensor<?x2x?x16xbf16>, tensor<3x?x2x128x16xbf16>
func.func @appended(%x: tensor<?x?x64xbf16>, %keys: tensor<3x?x2x128x16xbf16>, %values: tensor<3x?x2x128x16xbf16>, %n: index, %cos: tensor<?x?x8xf32>)
    -> (tensor<3x?x2x128x16xbf16>, tensor<3x?x2x128x16xbf16>) {
  %w = attune.weight_get @qkv : tensor<96x64xbf16>
  %h = attune.linear %x, %w : tensor<?x?x64xbf16>, tensor<96x64xbf16> -> tensor<?x?x96xf32>
  %s = attune.split_heads %h at 32 : tensor<?x?x96xf32> -> tensor<?x2x?x16xf32>
  %v = attune.split_heads %h at 64 : tensor<?x?x96xf32> -> tensor<?x2x?x16xf32>
  %k = attune.rotary %s, %cos, %cos pairing <half> : tensor<?x2x?x16xf32>, tensor<?x?x8xf32>
  %0 = attune.cache_append %k into %keys[%n, %n] : tensor<?x2x?x16xf32>, tensor<3x?x2x128x16xbf16>
  %1 = attune.cache_append %v into %values[%n, %n] : tensor<?x2x?x16xf32>, tensor<3x?x2x128x16xbf16>
  return %0, %1 : tensor<3x?x2x128x16xbf16>, tensor<3x?x2x128x16xbf16>
}
