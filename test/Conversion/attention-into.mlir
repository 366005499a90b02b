// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-attention-to-online{cooperative}))" | FileCheck %s
// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-attention-to-online{cooperative}))" --remarks-filter=attune-tiling -o /dev/null 2>&1 | FileCheck %s --check-prefix=WHY

// What tensor cores can take stays one op, with all that it says; a second
// result has a destination of its own.
// CHECK-LABEL: func.func @kept(
// CHECK-SAME:    %[[Q:.+]]: tensor<?x8x?x64xbf16>, %[[K:.+]]: tensor<?x2x?x64xbf16>, %[[S:.+]]: tensor<8xf32>
// CHECK-DAG:     %[[D:.+]] = tensor.empty(%{{.+}}, %{{.+}}) : tensor<?x8x?x64xbf16>
// CHECK-DAG:     %[[L:.+]] = tensor.empty(%{{.+}}, %{{.+}}) : tensor<?x8x?xf32>
// CHECK:         %[[Y:.+]]:2 = attune.attention_into %[[Q]], %[[K]], %[[K]] scale 1.250000e-01 sinks %[[S]] : tensor<8xf32> causal <bottom_right> window 64 into %[[D]] lse %[[L]]
// CHECK:         return %[[Y]]#0, %[[Y]]#1
func.func @kept(%q: tensor<?x8x?x64xbf16>, %k: tensor<?x2x?x64xbf16>, %s: tensor<8xf32>) -> (tensor<?x8x?x64xbf16>, tensor<?x8x?xf32>) {
  %r, %l = attune.attention %q, %k, %k scale 0.125 sinks %s : tensor<8xf32> causal <bottom_right> window 64
    : tensor<?x8x?x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16> -> tensor<?x8x?x64xbf16> lse tensor<?x8x?xf32>
  return %r, %l : tensor<?x8x?x64xbf16>, tensor<?x8x?xf32>
}

// Keys of a cache may be many more than queries.
// CHECK-LABEL: func.func @cached(
// CHECK:         attune.attention_into {{.+}} split_keys into
func.func @cached(%q: tensor<?x8x?x64xf32>, %c: tensor<2x?x8x?x64xf32>, %layer: index, %n: index) -> tensor<?x8x?x64xf32> {
  %k = attune.cache_read %c[%layer] length %n : tensor<2x?x8x?x64xf32> -> tensor<?x8x?x64xf32>
  %r = attune.attention %q, %k, %k scale 0.125 : tensor<?x8x?x64xf32>, tensor<?x8x?x64xf32>, tensor<?x8x?x64xf32> -> tensor<?x8x?x64xf32>
  return %r : tensor<?x8x?x64xf32>
}

// CHECK-LABEL: func.func @in_blocks(
// CHECK:         attune.attention_into {{.+}} blocks %{{.+}} of [64, 128]
func.func @in_blocks(%q: tensor<1x8x?x64xbf16>, %m: tensor<1x8x?x?xi1>) -> tensor<1x8x?x64xbf16> {
  %r = attune.attention %q, %q, %q scale 0.125 blocks %m of [64, 128] : tensor<1x8x?x?xi1>
    : tensor<1x8x?x64xbf16>, tensor<1x8x?x64xbf16>, tensor<1x8x?x64xbf16> -> tensor<1x8x?x64xbf16>
  return %r : tensor<1x8x?x64xbf16>
}

// The rest becomes the ladder, and a remark says why.
// CHECK-LABEL: func.func @two_types(
// CHECK-NOT:     attune.attention_into
// CHECK:         attune.similarity
// CHECK:         attune.softmax
// CHECK:         attune.weighted_sum
// WHY: [[#@LINE+2]]:{{[0-9]+}}: remark: [Missed] {{.+}}not on tensor cores, because queries, keys and values are of more than one type
func.func @two_types(%q: tensor<1x8x?x64xf32>, %k: tensor<1x8x?x64xbf16>) -> tensor<1x8x?x64xf32> {
  %r = attune.attention %q, %k, %k scale 0.125 : tensor<1x8x?x64xf32>, tensor<1x8x?x64xbf16>, tensor<1x8x?x64xbf16> -> tensor<1x8x?x64xf32>
  return %r : tensor<1x8x?x64xf32>
}

// WHY: not on tensor cores, because heads are wider than 640
// CHECK-LABEL: func.func @wide(
// CHECK-NOT:     attune.attention_into
func.func @wide(%q: tensor<1x8x?x704xf32>) -> tensor<1x8x?x704xf32> {
  %r = attune.attention %q, %q, %q scale 0.125 : tensor<1x8x?x704xf32>, tensor<1x8x?x704xf32>, tensor<1x8x?x704xf32> -> tensor<1x8x?x704xf32>
  return %r : tensor<1x8x?x704xf32>
}

// A tile is as small as they are.
// CHECK-LABEL: func.func @small_blocks(
// CHECK:         attune.attention_into
func.func @small_blocks(%q: tensor<1x8x?x64xbf16>, %m: tensor<1x1x?x?xi1>) -> tensor<1x8x?x64xbf16> {
  %r = attune.attention %q, %q, %q scale 0.125 blocks %m of [16, 16] : tensor<1x1x?x?xi1>
    : tensor<1x8x?x64xbf16>, tensor<1x8x?x64xbf16>, tensor<1x8x?x64xbf16> -> tensor<1x8x?x64xbf16>
  return %r : tensor<1x8x?x64xbf16>
}

// WHY: not on tensor cores, because blocks of the mask are no multiples of tiles
// CHECK-LABEL: func.func @odd_blocks(
// CHECK-NOT:     attune.attention_into
func.func @odd_blocks(%q: tensor<1x8x?x64xbf16>, %m: tensor<1x1x?x?xi1>) -> tensor<1x8x?x64xbf16> {
  %r = attune.attention %q, %q, %q scale 0.125 blocks %m of [20, 16] : tensor<1x1x?x?xi1>
    : tensor<1x8x?x64xbf16>, tensor<1x8x?x64xbf16>, tensor<1x8x?x64xbf16> -> tensor<1x8x?x64xbf16>
  return %r : tensor<1x8x?x64xbf16>
}

// WHY: not on tensor cores, because heads that share keys have blocks of their own
// CHECK-LABEL: func.func @blocks_of_heads(
// CHECK-NOT:     attune.attention_into
func.func @blocks_of_heads(%q: tensor<1x8x?x64xbf16>, %k: tensor<1x2x?x64xbf16>, %m: tensor<1x8x?x?xi1>) -> tensor<1x8x?x64xbf16> {
  %r = attune.attention %q, %k, %k scale 0.125 blocks %m of [64, 64] : tensor<1x8x?x?xi1>
    : tensor<1x8x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16> -> tensor<1x8x?x64xbf16>
  return %r : tensor<1x8x?x64xbf16>
}
