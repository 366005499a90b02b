// RUN: attune-opt %s "--attune-narrow-activations=tensor-cores" --split-input-file | FileCheck %s
// RUN: attune-opt %s --attune-narrow-activations --split-input-file | FileCheck %s --check-prefix=CPU
// RUN: attune-opt %s "--attune-narrow-activations=tensor-cores exact-activations" --split-input-file | FileCheck %s --check-prefix=EXACT

attune.weight @up : tensor<128x64xf16> from [#attune.source<"up">]
attune.weight @down : tensor<64x128xf16> from [#attune.source<"down">]
attune.weight @norm : tensor<64xf16> from [#attune.source<"norm">]

// f16 ends at 65504: what a norm gives is bounded, a hidden layer is not.
// CHECK-LABEL: @ffn(
// CHECK:         %[[N:.+]] = attune.layer_norm {{.+}} : tensor<?x?x64xf32> -> tensor<?x?x64xf16>
// CHECK:         %[[H:.+]] = attune.linear %[[N]], {{.+}} : tensor<?x?x64xf16>, tensor<128x64xf16> -> tensor<?x?x128xf32>
// CHECK:         attune.linear %[[H]], {{.+}} : tensor<?x?x128xf32>, tensor<64x128xf16> -> tensor<?x?x64xf32>
// CPU-LABEL:   @ffn(
// CPU-NOT:       arith.truncf
// CPU-NOT:       -> tensor<{{.+}}xf16>
// CPU:           return
func.func @ffn(%x: tensor<?x?x64xf32>) -> tensor<?x?x64xf32> {
  %g = attune.weight_get @norm : tensor<64xf16>
  %n = attune.layer_norm %x gamma %g : tensor<64xf16> eps 1.0e-5 : tensor<?x?x64xf32>
  %u = attune.weight_get @up : tensor<128x64xf16>
  %h = attune.linear %n, %u activation <gelu> : tensor<?x?x64xf32>, tensor<128x64xf16> -> tensor<?x?x128xf32>
  %d = attune.weight_get @down : tensor<64x128xf16>
  %y = attune.linear %h, %d residual %x : tensor<?x?x64xf32> : tensor<?x?x128xf32>, tensor<64x128xf16> -> tensor<?x?x64xf32>
  return %y : tensor<?x?x64xf32>
}

// -----

attune.weight @qkv : tensor<72x64xf16> from [#attune.source<"qkv">]
attune.weight @o : tensor<64x24xf16> from [#attune.source<"o">]
attune.weight @out : tensor<8x64xf16> from [#attune.source<"out">]

// Attention with heads of any width, and what it gives: a mean of values. The
// norm is read by others as well, so it is rounded beside.
// CHECK-LABEL: @attention(
// CHECK:         %[[N:.+]] = attune.rms_norm {{.+}} : tensor<?x?x64xf32>
// CHECK-NEXT:    %[[R:.+]] = arith.truncf %[[N]] : tensor<?x?x64xf32> to tensor<?x?x64xf16>
// CHECK:         attune.linear %[[R]], {{.+}} -> tensor<?x?x72xf16>
// CHECK-COUNT-3: attune.split_heads {{.+}} : tensor<?x?x72xf16> -> tensor<?x2x?x12xf16>
// CHECK-NOT:     arith.truncf
// CHECK:         attune.attention {{.+}} -> tensor<?x2x?x12xf16>
// CHECK:         attune.merge_heads {{.+}} -> tensor<?x?x24xf16>
// CHECK:         attune.linear {{.+}} : tensor<?x?x24xf16>, tensor<64x24xf16> -> tensor<?x?x64xf32>
func.func @attention(%x: tensor<?x?x64xf32>) -> (tensor<?x?x64xf32>, tensor<?x?x64xf32>) {
  %n = attune.rms_norm %x eps 1.0e-5 : tensor<?x?x64xf32>
  %w = attune.weight_get @qkv : tensor<72x64xf16>
  %h = attune.linear %n, %w : tensor<?x?x64xf32>, tensor<72x64xf16> -> tensor<?x?x72xf32>
  %q = attune.split_heads %h : tensor<?x?x72xf32> -> tensor<?x2x?x12xf32>
  %k = attune.split_heads %h at 24 : tensor<?x?x72xf32> -> tensor<?x2x?x12xf32>
  %v = attune.split_heads %h at 48 : tensor<?x?x72xf32> -> tensor<?x2x?x12xf32>
  %y = attune.attention %q, %k, %v scale 0.25 : tensor<?x2x?x12xf32>, tensor<?x2x?x12xf32>, tensor<?x2x?x12xf32> -> tensor<?x2x?x12xf32>
  %m = attune.merge_heads %y : tensor<?x2x?x12xf32> -> tensor<?x?x24xf32>
  %o = attune.weight_get @o : tensor<64x24xf16>
  %r = attune.linear %m, %o residual %n : tensor<?x?x64xf32> : tensor<?x?x24xf32>, tensor<64x24xf16> -> tensor<?x?x64xf32>
  return %r, %n : tensor<?x?x64xf32>, tensor<?x?x64xf32>
}

// -----

attune.weight @router : tensor<8x64xbf16> from [#attune.source<"router">]
attune.weight @experts : tensor<8x96x64xbf16> from [#attune.source<"experts">]
attune.weight @back : tensor<8x64x48xbf16> from [#attune.source<"back">]

// The router and the experts read the same norm.
// CHECK-LABEL: @mixture(
// CHECK:         %[[N:.+]] = attune.rms_norm {{.+}} -> tensor<?x?x64xbf16>
// CHECK:         attune.linear %[[N]],
// CHECK:         attune.moe %[[N]], {{.+}} : tensor<?x?x64xbf16>,
// CPU-LABEL:   @mixture(
// CPU:           %[[N:.+]] = attune.rms_norm {{.+}} -> tensor<?x?x64xbf16>
// CPU:           attune.moe %[[N]], {{.+}} : tensor<?x?x64xbf16>,
func.func @mixture(%x: tensor<?x?x64xf32>) -> tensor<?x?x64xf32> {
  %n = attune.rms_norm %x eps 1.0e-5 : tensor<?x?x64xf32>
  %g = attune.weight_get @router : tensor<8x64xbf16>
  %l = attune.linear %n, %g : tensor<?x?x64xf32>, tensor<8x64xbf16> -> tensor<?x?x8xf32>
  %e, %w = attune.router %l scoring <softmax> : tensor<?x?x8xf32> -> tensor<?x?x2xi64>, tensor<?x?x2xf32>
  %u = attune.weight_get @experts : tensor<8x96x64xbf16>
  %d = attune.weight_get @back : tensor<8x64x48xbf16>
  %y = attune.moe %n, %e, %w, %u, %d residual %x : tensor<?x?x64xf32> gated activation <silu>
     : tensor<?x?x64xf32>, tensor<?x?x2xi64>, tensor<?x?x2xf32>, tensor<8x96x64xbf16>, tensor<8x64x48xbf16> -> tensor<?x?x64xf32>
  return %y : tensor<?x?x64xf32>
}

// -----

attune.weight @q : tensor<64x64xbf16> from [#attune.source<"q">]
attune.weight @into : tensor<4x24x12xbf16> from [#attune.source<"into">]
attune.weight @outof : tensor<4x16x24xbf16> from [#attune.source<"outof">]
attune.weight @o : tensor<64x64xbf16> from [#attune.source<"o">]

// Latent attention: queries are of two parts side by side, values the first
// columns of a cache.
// CHECK-LABEL: @latent(
// CHECK:         attune.head_linear {{.+}} : tensor<?x4x?x12xbf16>, tensor<4x24x12xbf16>
// CHECK:         arith.truncf {{.+}} to tensor<?x4x?x28xbf16>
// CHECK:         attune.attention {{.+}} -> tensor<?x4x?x24xbf16>
// CHECK:         attune.head_linear {{.+}} -> tensor<?x4x?x16xbf16>
// CHECK:         attune.merge_heads {{.+}} -> tensor<?x?x64xbf16>
// The scale is small: at large scores a rounding chooses another key, which
// validation would call a change.
func.func @latent(%x: tensor<?x?x64xf32>, %rows: tensor<?x1x?x28xbf16>, %b: index, %t: index) -> tensor<?x?x64xf32> {
  %w = attune.weight_get @q : tensor<64x64xbf16>
  %h = attune.linear %x, %w : tensor<?x?x64xf32>, tensor<64x64xbf16> -> tensor<?x?x64xf32>
  %all = attune.split_heads %h : tensor<?x?x64xf32> -> tensor<?x4x?x16xf32>
  %plain = tensor.extract_slice %all[0, 0, 0, 0] [%b, 4, %t, 12] [1, 1, 1, 1] : tensor<?x4x?x16xf32> to tensor<?x4x?x12xf32>
  %turned = tensor.extract_slice %all[0, 0, 0, 12] [%b, 4, %t, 4] [1, 1, 1, 1] : tensor<?x4x?x16xf32> to tensor<?x4x?x4xf32>
  %i = attune.weight_get @into : tensor<4x24x12xbf16>
  %first = attune.head_linear %plain, %i : tensor<?x4x?x12xf32>, tensor<4x24x12xbf16> -> tensor<?x4x?x24xf32>
  %e = tensor.empty(%b, %t) : tensor<?x4x?x28xf32>
  %0 = tensor.insert_slice %first into %e[0, 0, 0, 0] [%b, 4, %t, 24] [1, 1, 1, 1] : tensor<?x4x?x24xf32> into tensor<?x4x?x28xf32>
  %q = tensor.insert_slice %turned into %0[0, 0, 0, 24] [%b, 4, %t, 4] [1, 1, 1, 1] : tensor<?x4x?x4xf32> into tensor<?x4x?x28xf32>
  %v = tensor.extract_slice %rows[0, 0, 0, 0] [%b, 1, %t, 24] [1, 1, 1, 1] : tensor<?x1x?x28xbf16> to tensor<?x1x?x24xbf16>
  %y = attune.attention %q, %rows, %v scale 1.0e-07 : tensor<?x4x?x28xf32>, tensor<?x1x?x28xbf16>, tensor<?x1x?x24xbf16> -> tensor<?x4x?x24xf32>
  %u = attune.weight_get @outof : tensor<4x16x24xbf16>
  %z = attune.head_linear %y, %u : tensor<?x4x?x24xf32>, tensor<4x16x24xbf16> -> tensor<?x4x?x16xf32>
  %m = attune.merge_heads %z : tensor<?x4x?x16xf32> -> tensor<?x?x64xf32>
  %o = attune.weight_get @o : tensor<64x64xbf16>
  %r = attune.linear %m, %o residual %x : tensor<?x?x64xf32> : tensor<?x?x64xf32>, tensor<64x64xbf16> -> tensor<?x?x64xf32>
  return %r : tensor<?x?x64xf32>
}

// -----

attune.weight @w : tensor<128x64xi4> from [#attune.source<"w">] {attune.group = 32 : i64}
attune.weight @w.scales : tensor<128x2xf16> from [#attune.source<"w">] {attune.group = 32 : i64}
attune.weight @norm : tensor<64xbf16> from [#attune.source<"norm">]

// What meets numbers in few bits has the type of all other weights; scales are not
// among these.
// CHECK-LABEL: @numbers(
// CHECK:         %[[N:.+]] = attune.rms_norm {{.+}} -> tensor<?x?x64xbf16>
// CHECK:         attune.quantized_linear %[[N]], {{.+}} : (tensor<?x?x64xbf16>)
// CPU-LABEL:   @numbers(
// CPU:           attune.quantized_linear {{.+}} : (tensor<?x?x64xf32>)
// EXACT-LABEL: @numbers(
// EXACT:         attune.quantized_linear {{.+}} : (tensor<?x?x64xf32>)
func.func @numbers(%x: tensor<?x?x64xf32>) -> tensor<?x?x128xf32> {
  %g = attune.weight_get @norm : tensor<64xbf16>
  %n = attune.rms_norm %x gamma %g : tensor<64xbf16> eps 1.0e-5 : tensor<?x?x64xf32>
  %w = attune.weight_get @w : tensor<128x64xi4>
  %s = attune.weight_get @w.scales : tensor<128x2xf16>
  %y = attune.quantized_linear %n, %w scales %s : (tensor<?x?x64xf32>), (tensor<128x64xi4>, tensor<128x2xf16>) -> tensor<?x?x128xf32>
  return %y : tensor<?x?x128xf32>
}

// -----

attune.weight @wq : tensor<24x64xbf16> from [#attune.source<"wq">]
attune.weight @wo : tensor<64x24xbf16> from [#attune.source<"wo">]

// Caches in bytes become what the queries are on their way to tensor cores;
// kernels of CPUs multiply them by queries of f32.
// CHECK-LABEL: @cached_in_bytes(
// CHECK:         attune.linear {{.+}} -> tensor<?x?x24xbf16>
// CHECK:         %[[Q:.+]] = attune.split_heads {{.+}} -> tensor<?x2x?x12xbf16>
// CHECK:         attune.attention %[[Q]], {{.+}} : tensor<?x2x?x12xbf16>, tensor<?x1x?x16xi8>, tensor<?x1x?x16xi8> -> tensor<?x2x?x12xbf16>
// CPU-LABEL:   @cached_in_bytes(
// CPU:           attune.attention {{.+}} : tensor<?x2x?x12xf32>, tensor<?x1x?x16xi8>, tensor<?x1x?x16xi8> ->
func.func @cached_in_bytes(%x: tensor<?x?x64xf32>, %k: tensor<?x1x?x16xi8>, %v: tensor<?x1x?x16xi8>) -> tensor<?x?x64xf32> {
  %n = attune.rms_norm %x eps 1.0e-5 : tensor<?x?x64xf32>
  %w = attune.weight_get @wq : tensor<24x64xbf16>
  %h = attune.linear %n, %w : tensor<?x?x64xf32>, tensor<24x64xbf16> -> tensor<?x?x24xf32>
  %q = attune.split_heads %h : tensor<?x?x24xf32> -> tensor<?x2x?x12xf32>
  %y = attune.attention %q, %k, %v scale 0.25 : tensor<?x2x?x12xf32>, tensor<?x1x?x16xi8>, tensor<?x1x?x16xi8> -> tensor<?x2x?x12xf32>
  %m = attune.merge_heads %y : tensor<?x2x?x12xf32> -> tensor<?x?x24xf32>
  %o = attune.weight_get @wo : tensor<64x24xbf16>
  %r = attune.linear %m, %o residual %x : tensor<?x?x64xf32> : tensor<?x?x24xf32>, tensor<64x24xbf16> -> tensor<?x?x64xf32>
  return %r : tensor<?x?x64xf32>
}
