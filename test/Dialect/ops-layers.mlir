// RUN: attune-opt %s | FileCheck %s
// RUN: attune-opt %s --mlir-print-op-generic | attune-opt | FileCheck %s

// CHECK-LABEL: @norms(
func.func @norms(%x: tensor<?x?x768xf32>, %g: tensor<768xf32>, %b: tensor<768xf32>) -> (tensor<?x?x768xf32>, tensor<?x?x768xf32>) {
  // CHECK: attune.layer_norm %{{.+}} gamma %{{.+}} : tensor<768xf32> beta %{{.+}} : tensor<768xf32> eps 9.99999974E-6 : tensor<?x?x768xf32>
  %y = attune.layer_norm %x gamma %g : tensor<768xf32>
     beta %b : tensor<768xf32> eps 1.000000e-05 : tensor<?x?x768xf32>
  // CHECK: attune.layer_norm %{{.+}} gamma %{{.+}} : tensor<768xf32> eps 9.99999974E-6 offset 1.000000e+00 : tensor<?x?x768xf32>
  %w = attune.layer_norm %y gamma %g : tensor<768xf32> eps 1.000000e-05 offset 1.0 : tensor<?x?x768xf32>
  // CHECK: attune.rms_norm %{{.+}} gamma %{{.+}} : tensor<768xf32> eps 9.99999974E-6 offset 1.000000e+00 : tensor<?x?x768xf32>
  %z = attune.rms_norm %w gamma %g : tensor<768xf32> eps 1.000000e-05 offset 1.0
     : tensor<?x?x768xf32>
  return %y, %z : tensor<?x?x768xf32>, tensor<?x?x768xf32>
}

// CHECK-LABEL: @rms_norm(
func.func @rms_norm(%x: tensor<?x?x768xf32>, %g: tensor<768xf32>) -> tensor<?x?x768xbf16> {
  // CHECK: attune.rms_norm %{{.+}} gamma %{{.+}} : tensor<768xf32> eps 9.99999974E-6 : tensor<?x?x768xf32> -> tensor<?x?x768xbf16>
  %y = attune.rms_norm %x gamma %g : tensor<768xf32> eps 1.000000e-05
     : tensor<?x?x768xf32> -> tensor<?x?x768xbf16>
  return %y : tensor<?x?x768xbf16>
}

// CHECK-LABEL: @linear(
func.func @linear(%x: tensor<?x?x768xf32>, %w: tensor<2304x768xf32>, %b: tensor<2304xf32>, %r: tensor<?x?x2304xf32>,
                  %p: tensor<144x768x16xbf16>) -> (tensor<?x?x2304xf32>, tensor<?x?x1152xf32>) {
  // CHECK: attune.linear %{{.+}}, %{{.+}} bias %{{.+}} : tensor<2304xf32> : tensor<?x?x768xf32>, tensor<2304x768xf32> -> tensor<?x?x2304xf32>
  %y = attune.linear %x, %w bias %b : tensor<2304xf32>
     : tensor<?x?x768xf32>, tensor<2304x768xf32> -> tensor<?x?x2304xf32>
  // CHECK: attune.linear %{{.+}}, %{{.+}} residual %{{.+}} : tensor<?x?x2304xf32> activation <gelu_tanh> scale 5.000000e-01 : tensor<?x?x768xf32>, tensor<144x768x16xbf16> -> tensor<?x?x2304xf32>
  %z = attune.linear %x, %p residual %y : tensor<?x?x2304xf32> activation <gelu_tanh> scale 0.5
     : tensor<?x?x768xf32>, tensor<144x768x16xbf16> -> tensor<?x?x2304xf32>
  // CHECK: attune.linear %{{.+}}, %{{.+}} scale 5.000000e-01 rms_eps 1.000000e-03 : tensor<?x?x768xf32>, tensor<2304x768xf32> -> tensor<?x?x2304xf32>
  %n = attune.linear %x, %w scale 0.5 rms_eps 1.0e-3
     : tensor<?x?x768xf32>, tensor<2304x768xf32> -> tensor<?x?x2304xf32>
  // CHECK: attune.linear %{{.+}}, %{{.+}} activation <silu> gated : tensor<?x?x768xf32>, tensor<2304x768xf32> -> tensor<?x?x1152xf32>
  %g = attune.linear %x, %w activation <silu> gated : tensor<?x?x768xf32>, tensor<2304x768xf32> -> tensor<?x?x1152xf32>
  return %z, %g : tensor<?x?x2304xf32>, tensor<?x?x1152xf32>
}

// CHECK-LABEL: @ffn(
func.func @ffn(%x: tensor<?x?x768xf32>, %w1: tensor<3072x768xf32>, %w2: tensor<768x3072xf32>) -> tensor<?x?x768xf32> {
  // CHECK: attune.ffn %{{.+}}, %{{.+}}, %{{.+}} activation <gelu> : tensor<?x?x768xf32>, tensor<3072x768xf32>, tensor<768x3072xf32> -> tensor<?x?x768xf32>
  %y = attune.ffn %x, %w1, %w2 activation <gelu>
     : tensor<?x?x768xf32>, tensor<3072x768xf32>, tensor<768x3072xf32>
     -> tensor<?x?x768xf32>
  return %y : tensor<?x?x768xf32>
}

// CHECK-LABEL: @gated_ffn(
func.func @gated_ffn(%x: tensor<?x?x128xf32>, %wgu: tensor<576x128xf32>, %wd: tensor<128x288xf32>) -> tensor<?x?x128xf32> {
  // CHECK: attune.gated_ffn %{{.+}}, %{{.+}}, %{{.+}} activation <silu> : tensor<?x?x128xf32>, tensor<576x128xf32>, tensor<128x288xf32> -> tensor<?x?x128xf32>
  %y = attune.gated_ffn %x, %wgu, %wd activation <silu>
     : tensor<?x?x128xf32>, tensor<576x128xf32>, tensor<128x288xf32>
     -> tensor<?x?x128xf32>
  return %y : tensor<?x?x128xf32>
}

// CHECK-LABEL: @embeddings(
func.func @embeddings(%ids: tensor<?x?xi64>, %pos: tensor<?x?xi64>, %wte: tensor<50257x768xf32>, %wpe: tensor<1024x768xf32>) -> (tensor<?x?x768xf32>, tensor<?x?x768xf32>) {
  // CHECK: %[[X:.+]] = attune.embedding %{{.+}}, %{{.+}} : tensor<?x?xi64>, tensor<50257x768xf32> -> tensor<?x?x768xf32>
  %x = attune.embedding %ids, %wte
     : tensor<?x?xi64>, tensor<50257x768xf32> -> tensor<?x?x768xf32>
  // CHECK: attune.embedding %{{.+}}, %{{.+}} add %[[X]] : tensor<?x?x768xf32> : tensor<?x?xi64>, tensor<1024x768xf32> -> tensor<?x?x768xf32>
  %y = attune.embedding %pos, %wpe add %x : tensor<?x?x768xf32>
     : tensor<?x?xi64>, tensor<1024x768xf32> -> tensor<?x?x768xf32>
  // CHECK: attune.embedding %{{.+}}, %{{.+}} scale 2.000000e+00 offset 2 : tensor<?x?xi64>, tensor<1024x768xf32> -> tensor<?x?x768xf32>
  %z = attune.embedding %pos, %wpe scale 2.0 offset 2
     : tensor<?x?xi64>, tensor<1024x768xf32> -> tensor<?x?x768xf32>
  return %y, %z : tensor<?x?x768xf32>, tensor<?x?x768xf32>
}

// CHECK-LABEL: @sinusoidal(
func.func @sinusoidal(%pos: tensor<?x?xi64>) -> tensor<?x?x512xf32> {
  // CHECK: attune.sinusoidal %{{.+}} convention <interleaved> : tensor<?x?xi64> -> tensor<?x?x512xf32>
  %y = attune.sinusoidal %pos convention <interleaved>
     : tensor<?x?xi64> -> tensor<?x?x512xf32>
  // CHECK: attune.sinusoidal %{{.+}} add %{{.+}} : tensor<?x?x512xf32> convention <tensor2tensor> base 5.000000e+02 : tensor<?x?xi64> -> tensor<?x?x512xf32>
  %z = attune.sinusoidal %pos add %y : tensor<?x?x512xf32> convention <tensor2tensor> base 500.0
     : tensor<?x?xi64> -> tensor<?x?x512xf32>
  return %z : tensor<?x?x512xf32>
}

// CHECK-LABEL: @rotary(
func.func @rotary(%pos: tensor<?x?xi64>, %q: tensor<?x4x?x32xf32>) -> tensor<?x4x?x32xf32> {
  // CHECK: attune.rotary_table %{{.+}} frequencies [1.000000e+00, 1.000000e-02] factor 1.200000e+00 dynamic [5.120000e+02, 2.000000e+00, 4.000000e+00] : tensor<?x?xi64> -> tensor<?x?x2xf32>, tensor<?x?x2xf32>
  %cos, %sin = attune.rotary_table %pos frequencies [1.000000e+00, 1.000000e-02]
     factor 1.2 dynamic [512.0, 2.0, 4.0]
     : tensor<?x?xi64> -> tensor<?x?x2xf32>, tensor<?x?x2xf32>
  // CHECK: attune.rotary %{{.+}}, %{{.+}}, %{{.+}} pairing <interleaved> : tensor<?x4x?x32xf32>, tensor<?x?x2xf32>
  %r = attune.rotary %q, %cos, %sin pairing <interleaved>
     : tensor<?x4x?x32xf32>, tensor<?x?x2xf32>
  return %r : tensor<?x4x?x32xf32>
}

// CHECK-LABEL: @rotary_table(
func.func @rotary_table(%pos: tensor<?x?xi64>) -> tensor<?x?x2xf32> {
  // CHECK: attune.rotary_table %{{.+}} frequencies [1.000000e+00, 1.000000e-02] : tensor<?x?xi64> -> tensor<?x?x2xf32>, tensor<?x?x2xf32>
  %cos, %sin = attune.rotary_table %pos frequencies [1.000000e+00, 1.000000e-02]
     : tensor<?x?xi64> -> tensor<?x?x2xf32>, tensor<?x?x2xf32>
  // CHECK: attune.rotary_table %{{.+}} frequencies [0.000000e+00] growth [1.000000e-01, 8.192000e+03, 1.000000e+00] :
  %c, %s = attune.rotary_table %pos frequencies [0.0] growth [0.1, 8192.0, 1.0]
     : tensor<?x?xi64> -> tensor<?x?x1xf32>, tensor<?x?x1xf32>
  return %sin : tensor<?x?x2xf32>
}

// CHECK-LABEL: @rounded_heads(
func.func @rounded_heads(%x: tensor<?x?x128xf32>, %cos: tensor<?x?x16xf32>) -> (tensor<?x4x?x32xbf16>, tensor<?x4x?x32xf16>) {
  // CHECK: attune.split_heads %{{.+}} : tensor<?x?x128xf32> -> tensor<?x4x?x32xf16>
  %y = attune.split_heads %x : tensor<?x?x128xf32> -> tensor<?x4x?x32xf16>
  // CHECK: attune.rotary %{{.+}}, %{{.+}}, %{{.+}} pairing <half> : tensor<?x4x?x32xf16>, tensor<?x?x16xf32> -> tensor<?x4x?x32xbf16>
  %r = attune.rotary %y, %cos, %cos pairing <half>
     : tensor<?x4x?x32xf16>, tensor<?x?x16xf32> -> tensor<?x4x?x32xbf16>
  return %r, %y : tensor<?x4x?x32xbf16>, tensor<?x4x?x32xf16>
}

// CHECK-LABEL: @rotary_half(
func.func @rotary_half(%q: tensor<?x4x?x32xf32>, %cos: tensor<?x?x16xf32>, %sin: tensor<?x?x16xf32>) -> tensor<?x4x?x32xf32> {
  // CHECK: attune.rotary %{{.+}}, %{{.+}}, %{{.+}} pairing <half> : tensor<?x4x?x32xf32>, tensor<?x?x16xf32>
  %r = attune.rotary %q, %cos, %sin pairing <half>
     : tensor<?x4x?x32xf32>, tensor<?x?x16xf32>
  return %r : tensor<?x4x?x32xf32>
}

// CHECK-LABEL: @cache(
func.func @cache(%k: tensor<?x2x?x32xf32>, %c0: tensor<5x?x2x?x32xbf16>, %layer: index, %past: index, %n: index) -> tensor<?x2x?x32xbf16> {
  // CHECK: attune.cache_append %{{.+}} into %{{.+}}[%{{.+}}, %{{.+}}] : tensor<?x2x?x32xf32>, tensor<5x?x2x?x32xbf16>
  %c1 = attune.cache_append %k into %c0[%layer, %past]
     : tensor<?x2x?x32xf32>, tensor<5x?x2x?x32xbf16>
  // CHECK: attune.cache_read %{{.+}}[%{{.+}}] length %{{.+}} : tensor<5x?x2x?x32xbf16> -> tensor<?x2x?x32xbf16>
  %r = attune.cache_read %c1[%layer] length %n
     : tensor<5x?x2x?x32xbf16> -> tensor<?x2x?x32xbf16>
  return %r : tensor<?x2x?x32xbf16>
}

// CHECK-LABEL: @cache_in_bytes(
func.func @cache_in_bytes(%q: tensor<?x4x?x32xf32>, %k: tensor<?x2x?x32xf32>, %c0: tensor<5x?x2x?x36xi8>, %d0: tensor<5x?x2x?x36xf8E4M3FN>, %layer: index, %past: index, %n: index) -> tensor<?x4x?x32xf32> {
  // CHECK: attune.cache_append %{{.+}} into %{{.+}}[%{{.+}}, %{{.+}}] : tensor<?x2x?x32xf32>, tensor<5x?x2x?x36xi8>
  %c3 = attune.cache_append %k into %c0[%layer, %past] : tensor<?x2x?x32xf32>, tensor<5x?x2x?x36xi8>
  %d1 = attune.cache_append %k into %d0[%layer, %past] : tensor<?x2x?x32xf32>, tensor<5x?x2x?x36xf8E4M3FN>
  // CHECK: attune.cache_read %{{.+}}[%{{.+}}] length %{{.+}} : tensor<5x?x2x?x36xi8> -> tensor<?x2x?x36xi8>
  %r = attune.cache_read %c3[%layer] length %n : tensor<5x?x2x?x36xi8> -> tensor<?x2x?x36xi8>
  %s = attune.cache_read %d1[%layer] length %n : tensor<5x?x2x?x36xf8E4M3FN> -> tensor<?x2x?x36xf8E4M3FN>
  // CHECK: attune.attention
  // CHECK-SAME: tensor<?x4x?x32xf32>, tensor<?x2x?x36xi8>, tensor<?x2x?x36xf8E4M3FN> -> tensor<?x4x?x32xf32>
  %y = attune.attention %q, %r, %s scale 1.250000e-01 : tensor<?x4x?x32xf32>, tensor<?x2x?x36xi8>, tensor<?x2x?x36xf8E4M3FN> -> tensor<?x4x?x32xf32>
  return %y : tensor<?x4x?x32xf32>
}

// CHECK-LABEL: @unequal_cache(
func.func @unequal_cache(%k: tensor<?x2x1x32xf32>, %c0: tensor<?x5x2x?x32xbf16>, %layer: index, %lengths: tensor<?xi64>, %n: index) -> tensor<?x2x?x32xbf16> {
  // CHECK: attune.cache_append %{{.+}} into %{{.+}}[%{{.+}}, %{{.+}} : tensor<?xi64>] sequence_major : tensor<?x2x1x32xf32>, tensor<?x5x2x?x32xbf16>
  %c2 = attune.cache_append %k into %c0[%layer, %lengths : tensor<?xi64>]
     sequence_major : tensor<?x2x1x32xf32>, tensor<?x5x2x?x32xbf16>
  // CHECK: attune.cache_read %{{.+}}[%{{.+}}] length %{{.+}} sequence_major : tensor<?x5x2x?x32xbf16> -> tensor<?x2x?x32xbf16>
  %r = attune.cache_read %c2[%layer] length %n sequence_major
     : tensor<?x5x2x?x32xbf16> -> tensor<?x2x?x32xbf16>
  return %r : tensor<?x2x?x32xbf16>
}

// CHECK-LABEL: @views(
func.func @views(%x: tensor<?x?x768xf32>, %b: index, %t: index) -> tensor<?x?x768xf32> {
  // CHECK: attune.flatten_tokens %{{.+}} : tensor<?x?x768xf32> -> tensor<?x768xf32>
  %m = attune.flatten_tokens %x : tensor<?x?x768xf32> -> tensor<?x768xf32>
  // CHECK: attune.unflatten_tokens %{{.+}}[%{{.+}}, %{{.+}}] : tensor<?x768xf32> -> tensor<?x?x768xf32>
  %y = attune.unflatten_tokens %m[%b, %t]
     : tensor<?x768xf32> -> tensor<?x?x768xf32>
  return %y : tensor<?x?x768xf32>
}

// CHECK-LABEL: @activation(
func.func @activation(%x: tensor<?x?x64xf32>) -> tensor<?x?x64xf32> {
  // CHECK: attune.activation %{{.+}} function <gelu> : tensor<?x?x64xf32>
  %y = attune.activation %x function <gelu> : tensor<?x?x64xf32>
  return %y : tensor<?x?x64xf32>
}

// CHECK-LABEL: @modulate(
func.func @modulate(%x: tensor<?x?x64xf32>, %c: tensor<?x384xf32>) -> (tensor<?x?x64xf32>, tensor<?x?x64xf32>) {
  // CHECK: attune.modulate %{{.+}} by %{{.+}} scale 64 shift 0 offset 1.000000e+00 : tensor<?x?x64xf32>, tensor<?x384xf32>
  %y = attune.modulate %x by %c scale 64 shift 0 offset 1.000000e+00
     : tensor<?x?x64xf32>, tensor<?x384xf32>
  // CHECK: attune.modulate %{{.+}} by %{{.+}} scale 128 residual %{{.+}} : tensor<?x?x64xf32> : tensor<?x?x64xf32>, tensor<?x384xf32>
  %z = attune.modulate %y by %c scale 128 residual %x : tensor<?x?x64xf32>
     : tensor<?x?x64xf32>, tensor<?x384xf32>
  return %y, %z : tensor<?x?x64xf32>, tensor<?x?x64xf32>
}
