// RUN: attune-opt %s | FileCheck %s
// RUN: attune-opt %s --mlir-print-op-generic | attune-opt | FileCheck %s

// CHECK-LABEL: @ladder(
func.func @ladder(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %v: tensor<1x2x6x64xf32>) -> (tensor<1x8x4x64xf32>, tensor<1x8x4xf32>) {
  // CHECK: attune.similarity %{{.+}}, %{{.+}} scale 1.250000e-01 : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32> -> tensor<1x8x4x6xf32>
  %e = attune.similarity %q, %k scale 1.250000e-01
     : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32> -> tensor<1x8x4x6xf32>
  // CHECK: attune.mask_scores %{{.+}} causal <bottom_right> window 64 : tensor<1x8x4x6xf32>
  %f = attune.mask_scores %e causal <bottom_right> window 64
     : tensor<1x8x4x6xf32>
  // CHECK: attune.softmax %{{.+}} : tensor<1x8x4x6xf32>
  %a = attune.softmax %f : tensor<1x8x4x6xf32>
  // CHECK: attune.log_sum_exp %{{.+}} : tensor<1x8x4x6xf32> -> tensor<1x8x4xf32>
  %l = attune.log_sum_exp %f : tensor<1x8x4x6xf32> -> tensor<1x8x4xf32>
  // CHECK: attune.weighted_sum %{{.+}}, %{{.+}} : tensor<1x8x4x6xf32>, tensor<1x2x6x64xf32> -> tensor<1x8x4x64xf32>
  %y = attune.weighted_sum %a, %v
     : tensor<1x8x4x6xf32>, tensor<1x2x6x64xf32> -> tensor<1x8x4x64xf32>
  return %y, %l : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>
}

// CHECK-LABEL: @attention(
func.func @attention(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %v: tensor<1x2x6x64xf32>) -> tensor<1x8x4x64xf32> {
  // CHECK: attune.attention %{{.+}}, %{{.+}}, %{{.+}} scale 1.250000e-01 causal <bottom_right> : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x2x6x64xf32> -> tensor<1x8x4x64xf32>
  %r = attune.attention %q, %k, %v scale 1.250000e-01 causal <bottom_right>
     : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x2x6x64xf32>
     -> tensor<1x8x4x64xf32>
  return %r : tensor<1x8x4x64xf32>
}

// Links alone, as the reference shows them.
// CHECK-LABEL: @links(
func.func @links(%e: tensor<1x8x4x6xf32>, %acc: tensor<1x8x4x64xf32>, %max: tensor<1x8x4xf32>, %sum: tensor<1x8x4xf32>, %d: tensor<1x8x4x64xf32>,
    %a1: tensor<1x8x4x64xf32>, %m1: tensor<1x8x4xf32>, %l1: tensor<1x8x4xf32>) -> tensor<1x8x4x64xf32> {
  // CHECK: attune.softmax
  %a = attune.softmax %e : tensor<1x8x4x6xf32>
  // CHECK: attune.log_sum_exp
  %l = attune.log_sum_exp %e : tensor<1x8x4x6xf32> -> tensor<1x8x4xf32>
  // CHECK: attune.online_finish %{{.+}}, %{{.+}}, %{{.+}} into %{{.+}} : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>, tensor<1x8x4x64xf32> -> tensor<1x8x4x64xf32>
  %y = attune.online_finish %acc, %max, %sum into %d
     : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>,
       tensor<1x8x4x64xf32> -> tensor<1x8x4x64xf32>
  return %y : tensor<1x8x4x64xf32>
}

// CHECK-LABEL: @merge(
func.func @merge(%a0: tensor<1x8x4x64xf32>, %m0: tensor<1x8x4xf32>, %l0: tensor<1x8x4xf32>,
    %a1: tensor<1x8x4x64xf32>, %m1: tensor<1x8x4xf32>, %l1: tensor<1x8x4xf32>) -> tensor<1x8x4x64xf32> {
  // CHECK: attune.online_merge(%arg3, %arg4, %arg5) outs(%arg0, %arg1, %arg2 : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>) : tensor<1x8x4x64xf32>, tensor<1x8x4xf32> -> tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>
  %s:3 = attune.online_merge (%a1, %m1, %l1)
     outs(%a0, %m0, %l0 : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>)
     : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>
     -> tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>
  return %s#0 : tensor<1x8x4x64xf32>
}

// Sizes may be dynamic, storage narrow, and every variant given at once.
// CHECK-LABEL: @every_variant(
func.func @every_variant(%q: tensor<?x4x?x64xbf16>, %k: tensor<?x4x?x64xbf16>, %v: tensor<?x4x?x32xbf16>,
    %mask: tensor<?x1x1x?xi1>, %bias: tensor<1x4x?x?xf32>, %per_head: tensor<4xf32>) -> (tensor<?x4x?x32xbf16>, tensor<?x4x?xf32>) {
  // CHECK: attune.attention %{{.+}}, %{{.+}}, %{{.+}} scale 1.000000e+00 mask %{{.+}} : tensor<?x1x1x?xi1> bias %{{.+}} : tensor<1x4x?x?xf32> slopes %{{.+}} : tensor<4xf32> sinks %{{.+}} : tensor<4xf32> causal <top_left> window 16 softcap 5.000000e+01 : tensor<?x4x?x64xbf16>, tensor<?x4x?x64xbf16>, tensor<?x4x?x32xbf16> -> tensor<?x4x?x32xbf16> lse tensor<?x4x?xf32>
  %r, %l = attune.attention %q, %k, %v scale 1.0 mask %mask : tensor<?x1x1x?xi1> bias %bias : tensor<1x4x?x?xf32>
      slopes %per_head : tensor<4xf32> sinks %per_head : tensor<4xf32> causal <top_left> window 16 softcap 50.0
      : tensor<?x4x?x64xbf16>, tensor<?x4x?x64xbf16>, tensor<?x4x?x32xbf16> -> tensor<?x4x?x32xbf16> lse tensor<?x4x?xf32>
  return %r, %l : tensor<?x4x?x32xbf16>, tensor<?x4x?xf32>
}

// CHECK-LABEL: @online(
func.func @online(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %v: tensor<1x2x6x64xf32>,
    %acc: tensor<1x8x4x64xf32>, %max: tensor<1x8x4xf32>, %sum: tensor<1x8x4xf32>, %sinks: tensor<8xf32>,
    %m0: index, %n0: index, %m: index, %n: index) -> (tensor<1x8x4x64xf32>, tensor<1x8x4xf32>) {
  // CHECK: attune.online_attention %{{.+}}, %{{.+}}, %{{.+}} scale 1.250000e-01 causal <bottom_right> at[%{{.+}}, %{{.+}}] of[%{{.+}}, %{{.+}}] outs(%{{.+}}, %{{.+}}, %{{.+}} : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>)
  %s:3 = attune.online_attention %q, %k, %v scale 1.250000e-01
     causal <bottom_right> at [%m0, %n0] of [%m, %n]
     outs(%acc, %max, %sum : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>,
          tensor<1x8x4xf32>)
     : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x2x6x64xf32>
     -> tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>
  // CHECK: attune.online_merge(%{{.+}}, %{{.+}}, %{{.+}}) outs(%{{.+}}, %{{.+}}, %{{.+}} : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>)
  %t:3 = attune.online_merge (%acc, %max, %sum)
     outs(%s#0, %s#1, %s#2 : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>)
     : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>
     -> tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>
  // CHECK: attune.online_finish %{{.+}}, %{{.+}}, %{{.+}} sinks %{{.+}} : tensor<8xf32> into %{{.+}} lse %{{.+}} : tensor<1x8x4xf32> : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>, tensor<1x8x4x64xf32> -> tensor<1x8x4x64xf32>, tensor<1x8x4xf32>
  %y, %l = attune.online_finish %t#0, %t#1, %t#2 sinks %sinks : tensor<8xf32>
     into %acc lse %max : tensor<1x8x4xf32>
     : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>,
       tensor<1x8x4x64xf32> -> tensor<1x8x4x64xf32>, tensor<1x8x4xf32>
  return %y, %l : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>
}

// CHECK-LABEL: @heads(
func.func @heads(%qkv: tensor<?x?x2304xf32>, %x: tensor<?x12x?x64xf32>) -> (tensor<?x12x?x64xf32>, tensor<?x?x768xf32>) {
  // CHECK: attune.split_heads %{{.+}} at 768 : tensor<?x?x2304xf32> -> tensor<?x12x?x64xf32>
  %k = attune.split_heads %qkv at 768
     : tensor<?x?x2304xf32> -> tensor<?x12x?x64xf32>
  // CHECK: attune.merge_heads %{{.+}} : tensor<?x12x?x64xf32> -> tensor<?x?x768xf32>
  %y = attune.merge_heads %x : tensor<?x12x?x64xf32> -> tensor<?x?x768xf32>
  return %k, %y : tensor<?x12x?x64xf32>, tensor<?x?x768xf32>
}

// CHECK-LABEL: @diagonals(
func.func @diagonals(%table: tensor<32x8xf32>, %m: index, %n: index, %q: tensor<1x8x?x64xf32>, %k: tensor<1x8x?x64xf32>, %e: tensor<1x8x?x?xf32>)
    -> (tensor<1x8x?x64xf32>, tensor<1x8x?x?xf32>) {
  // CHECK: attune.relative_bias %{{.+}} queries %{{.+}} keys %{{.+}} max_distance 128 bidirectional : tensor<32x8xf32> -> tensor<8x?xf32>
  %d = attune.relative_bias %table queries %m keys %n max_distance 128
     bidirectional : tensor<32x8xf32> -> tensor<8x?xf32>
  // CHECK: attune.attention %{{.+}}, %{{.+}}, %{{.+}} scale 1.000000e+00 diagonals %{{.+}} : tensor<8x?xf32> :
  %y = attune.attention %q, %k, %k scale 1.0 diagonals %d : tensor<8x?xf32>
     : tensor<1x8x?x64xf32>, tensor<1x8x?x64xf32>, tensor<1x8x?x64xf32> -> tensor<1x8x?x64xf32>
  // CHECK: attune.mask_scores %{{.+}} diagonals %{{.+}} : tensor<8x?xf32> causal <bottom_right> : tensor<1x8x?x?xf32>
  %f = attune.mask_scores %e diagonals %d : tensor<8x?xf32> causal <bottom_right> : tensor<1x8x?x?xf32>
  return %y, %f : tensor<1x8x?x64xf32>, tensor<1x8x?x?xf32>
}

// CHECK-LABEL: @weights(
func.func @weights(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %lse: tensor<1x8x4xf32>, %dest: tensor<1x3x4x6xf32>, %asked: i1) -> tensor<1x3x4x6xf32> {
  // CHECK: attune.attention_weights %{{.+}}, %{{.+}}, %{{.+}} scale 1.250000e-01 causal <bottom_right> from_head 2 into %{{.+}} when %{{.+}} : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x8x4xf32> -> tensor<1x3x4x6xf32>
  %a = attune.attention_weights %q, %k, %lse scale 1.250000e-01
     causal <bottom_right> from_head 2 into %dest when %asked
     : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x8x4xf32>
     -> tensor<1x3x4x6xf32>
  return %a : tensor<1x3x4x6xf32>
}

// Keys that are hidden by their number, scores by their block.
// CHECK-LABEL: @fewer_keys(
func.func @fewer_keys(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %v: tensor<1x2x6x64xf32>, %e: tensor<1x8x4x6xf32>,
    %n: tensor<1xi64>, %b: tensor<1x1x2x3xi1>) -> (tensor<1x8x4x6xf32>, tensor<1x8x4x64xf32>) {
  // CHECK: attune.mask_scores %{{.+}} lengths %{{.+}} : tensor<1xi64> blocks %{{.+}} of [2, 2] : tensor<1x1x2x3xi1> : tensor<1x8x4x6xf32>
  %g = attune.mask_scores %e lengths %n : tensor<1xi64>
       blocks %b of [2, 2] : tensor<1x1x2x3xi1> : tensor<1x8x4x6xf32>
  // CHECK: attune.attention %{{.+}}, %{{.+}}, %{{.+}} scale 1.250000e-01 lengths %{{.+}} : tensor<1xi64> blocks %{{.+}} of [2, 2] : tensor<1x1x2x3xi1> :
  %s = attune.attention %q, %k, %v scale 1.250000e-01
       lengths %n : tensor<1xi64> blocks %b of [2, 2] : tensor<1x1x2x3xi1>
       : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x2x6x64xf32>
       -> tensor<1x8x4x64xf32>
  return %g, %s : tensor<1x8x4x6xf32>, tensor<1x8x4x64xf32>
}

// CHECK-LABEL: @at_lengths(
func.func @at_lengths(%e: tensor<2x8x1x6xf32>, %n: tensor<2xi64>) -> tensor<2x8x1x6xf32> {
  // CHECK: attune.mask_scores %{{.+}} lengths %{{.+}} : tensor<2xi64> causal <lengths> window 3 : tensor<2x8x1x6xf32>
  %g = attune.mask_scores %e lengths %n : tensor<2xi64> causal <lengths> window 3
     : tensor<2x8x1x6xf32>
  return %g : tensor<2x8x1x6xf32>
}

// CHECK-LABEL: @linear_attention(
func.func @linear_attention(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x4x64xf32>, %v: tensor<1x2x4x64xf32>, %s0: tensor<1x2x64x65xf32>,
    %mask: tensor<1x1x1x4xi1>) -> (tensor<1x8x4x64xf32>, tensor<1x2x64x65xf32>, tensor<1x8x4x64xf32>) {
  // CHECK: attune.linear_attention %{{.+}}, %{{.+}}, %{{.+}} <elu_plus_one> causal normalised 9.99999997E-7 state %{{.+}} : tensor<1x2x64x65xf32> :
  // CHECK-SAME: -> tensor<1x8x4x64xf32> state tensor<1x2x64x65xf32>
  %y, %s = attune.linear_attention %q, %k, %v <elu_plus_one> causal
       normalised 1.000000e-06 state %s0 : tensor<1x2x64x65xf32>
       : tensor<1x8x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>
       -> tensor<1x8x4x64xf32> state tensor<1x2x64x65xf32>
  // CHECK: attune.linear_attention %{{.+}}, %{{.+}}, %{{.+}} <identity> mask %{{.+}} : tensor<1x1x1x4xi1> :
  %z = attune.linear_attention %q, %k, %v <identity> mask %mask : tensor<1x1x1x4xi1>
       : tensor<1x8x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32> -> tensor<1x8x4x64xf32>
  return %y, %s, %z : tensor<1x8x4x64xf32>, tensor<1x2x64x65xf32>, tensor<1x8x4x64xf32>
}

// The same on the buffers that tensors become: what is written is no result.
// CHECK-LABEL: func.func @buffers(
func.func @buffers(%q: memref<1x8x?x64xf32>, %k: memref<1x2x?x64xf32, strided<[?, ?, 64, 1], offset: ?>>,
    %acc: memref<1x8x?x64xf32>, %max: memref<1x8x?xf32>, %sum: memref<1x8x?xf32>, %m: index, %n: index) {
  // CHECK-NEXT: attune.online_start outs(%arg2, %arg3, %arg4 : memref<1x8x?x64xf32>, memref<1x8x?xf32>, memref<1x8x?xf32>)
  attune.online_start outs(%acc, %max, %sum : memref<1x8x?x64xf32>, memref<1x8x?xf32>, memref<1x8x?xf32>)
  // CHECK-NEXT: attune.online_attention %arg0, %arg1, %arg1 scale 1.250000e-01 at[%arg5, %arg6] of[%arg5, %arg6] tile [8, 6] prefetch %arg1, %arg1 : memref<1x2x?x64xf32, strided<[?, ?, 64, 1], offset: ?>>, memref<1x2x?x64xf32, strided<[?, ?, 64, 1], offset: ?>> outs(%arg2, %arg3, %arg4 : {{.*}}) : memref<1x8x?x64xf32>, memref<{{[^>]*}}>>, memref<{{[^>]*}}>>{{$}}
  attune.online_attention %q, %k, %k scale 1.250000e-01 at [%m, %n] of [%m, %n] tile [8, 6]
    prefetch %k, %k : memref<1x2x?x64xf32, strided<[?, ?, 64, 1], offset: ?>>, memref<1x2x?x64xf32, strided<[?, ?, 64, 1], offset: ?>>
    outs(%acc, %max, %sum : memref<1x8x?x64xf32>, memref<1x8x?xf32>, memref<1x8x?xf32>)
    : memref<1x8x?x64xf32>, memref<1x2x?x64xf32, strided<[?, ?, 64, 1], offset: ?>>, memref<1x2x?x64xf32, strided<[?, ?, 64, 1], offset: ?>>
  // CHECK-NEXT: attune.online_merge(%arg2, %arg3, %arg4) outs(%arg2, %arg3, %arg4 : {{.*}}){{.*}}: memref<1x8x?x64xf32>, memref<1x8x?xf32>{{$}}
  attune.online_merge (%acc, %max, %sum) outs(%acc, %max, %sum : memref<1x8x?x64xf32>, memref<1x8x?xf32>)
    : memref<1x8x?x64xf32>, memref<1x8x?xf32>
  // CHECK-NEXT: attune.online_finish %arg2, %arg3, %arg4 into %arg0 lse %arg3 : memref<1x8x?xf32> : {{.*}}memref<1x8x?x64xf32>{{$}}
  attune.online_finish %acc, %max, %sum into %q lse %max : memref<1x8x?xf32>
    : memref<1x8x?x64xf32>, memref<1x8x?xf32>, memref<1x8x?xf32>, memref<1x8x?x64xf32>
  return
}

// CHECK-LABEL: func.func @tiles(
func.func @tiles(%q: tensor<1x8x?x64xf32>, %k: tensor<1x2x6x64xf32>, %v: tensor<1x2x6x64xf32>, %acc: tensor<1x8x?x64xf32>,
    %max: tensor<1x8x?xf32>, %sum: tensor<1x8x?xf32>, %m0: index, %n0: index, %m: index, %n: index) {
  // CHECK: attune.online_attention %{{.+}}, %{{.+}}, %{{.+}} scale 1.250000e-01 causal <bottom_right> at[%{{.+}}, %{{.+}}] of[%{{.+}}, %{{.+}}] tile [8, 6] outs(
  %s:3 = attune.online_attention %q, %k, %v scale 1.250000e-01
     causal <bottom_right> at [%m0, %n0] of [%m, %n] tile [8, 6]
     outs(%acc, %max, %sum : tensor<1x8x?x64xf32>, tensor<1x8x?xf32>,
          tensor<1x8x?xf32>)
     : tensor<1x8x?x64xf32>, tensor<1x2x6x64xf32>, tensor<1x2x6x64xf32>
     -> tensor<1x8x?x64xf32>, tensor<1x8x?xf32>, tensor<1x8x?xf32>
  return
}

// CHECK-LABEL: func.func @start(
func.func @start(%acc: tensor<1x8x4x64xf32>, %max: tensor<1x8x4xf32>, %sum: tensor<1x8x4xf32>) -> tensor<1x8x4x64xf32> {
  // CHECK: attune.online_start outs(%arg0, %arg1, %arg2 : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>) -> tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>
  %s:3 = attune.online_start outs(%acc, %max, %sum : tensor<1x8x4x64xf32>,
                                  tensor<1x8x4xf32>, tensor<1x8x4xf32>)
     -> tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>
  return %s#0 : tensor<1x8x4x64xf32>
}

// What a step fetches for the next one.
// CHECK-LABEL: func.func @prefetch(
func.func @prefetch(%q: memref<1x8x4x64xf32>, %k: memref<1x2x6x64xf32>, %v: memref<1x2x6x64xf32>, %next_k: memref<1x2x?x64xf32>,
    %next_v: memref<1x2x?x64xf32>, %acc: memref<1x8x4x64xf32>, %max: memref<1x8x4xf32>, %sum: memref<1x8x4xf32>,
    %m0: index, %n0: index, %m: index, %n: index) {
  // CHECK: attune.online_attention {{.+}} prefetch %arg3, %arg4 : memref<1x2x?x64xf32>, memref<1x2x?x64xf32> outs(%arg5, %arg6, %arg7 :
  attune.online_attention %q, %k, %v scale 1.250000e-01
     at [%m0, %n0] of [%m, %n]
     prefetch %next_k, %next_v : memref<1x2x?x64xf32>, memref<1x2x?x64xf32>
     outs(%acc, %max, %sum : memref<1x8x4x64xf32>, memref<1x8x4xf32>,
          memref<1x8x4xf32>)
     : memref<1x8x4x64xf32>, memref<1x2x6x64xf32>, memref<1x2x6x64xf32>
  return
}

// A window to both sides.
// CHECK-LABEL: @both_sides(
func.func @both_sides(%e: tensor<1x8x4x6xf32>) -> tensor<1x8x4x6xf32> {
  // CHECK: attune.mask_scores %{{.+}} causal <symmetric> window 64 : tensor<1x8x4x6xf32>
  %f = attune.mask_scores %e causal <symmetric> window 64
     : tensor<1x8x4x6xf32>
  return %f : tensor<1x8x4x6xf32>
}
