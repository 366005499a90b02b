// RUN: attune-opt %s | FileCheck %s
// RUN: attune-opt %s --mlir-print-op-generic | attune-opt | FileCheck %s

// CHECK: attune.weight @w : tensor<3072x768xi8> from {{.+}} {attune.group = 128 : i64}
// CHECK: attune.weight @w.scales : tensor<3072x6xf32> from {{.+}} {attune.group = 128 : i64}
attune.weight @w : tensor<3072x768xi8> from [#attune.source<"w">] {attune.group = 128 : i64}
attune.weight @w.scales : tensor<3072x6xf32> from [#attune.source<"w">] {attune.group = 128 : i64}

// CHECK-LABEL: @linear(
// CHECK: attune.quantize_rows %{{.+}} group 128 : tensor<?x?x768xf32> -> tensor<?x?x768xi8>, tensor<?x?x6xf32>, tensor<?x?x6xi32>
// CHECK: attune.quantized_linear %{{.+}} scales %{{.+}} sums %{{.+}}, %{{.+}} scales %{{.+}} : (
func.func @linear(%x: tensor<?x?x768xf32>, %w: tensor<3072x768xi8>, %t: tensor<3072x6xf32>) -> tensor<?x?x3072xf32> {
  %q, %s, %n = attune.quantize_rows %x group 128 : tensor<?x?x768xf32>
     -> tensor<?x?x768xi8>, tensor<?x?x6xf32>, tensor<?x?x6xi32>
  %y = attune.quantized_linear %q scales %s sums %n, %w scales %t
     : (tensor<?x?x768xi8>, tensor<?x?x6xf32>, tensor<?x?x6xi32>),
       (tensor<3072x768xi8>, tensor<3072x6xf32>) -> tensor<?x?x3072xf32>
  return %y : tensor<?x?x3072xf32>
}

// CHECK-LABEL: @epilogue(
// CHECK: attune.quantized_linear {{.+}} bias %{{.+}} : tensor<20xf32> residual %{{.+}} : tensor<3x10xf32> activation <silu> gated scale 5.000000e-01 : (
func.func @epilogue(%q: tensor<3x64xi8>, %s: tensor<3x2xf32>, %n: tensor<3x2xi32>, %w: tensor<4x16x32xi8>,
                    %t: tensor<4x2x8xf32>, %b: tensor<20xf32>, %r: tensor<3x10xf32>) -> tensor<3x10xf32> {
  %y = attune.quantized_linear %q scales %s sums %n, %w scales %t bias %b : tensor<20xf32>
     residual %r : tensor<3x10xf32> activation <silu> gated scale 0.5
     : (tensor<3x64xi8>, tensor<3x2xf32>, tensor<3x2xi32>), (tensor<4x16x32xi8>, tensor<4x2x8xf32>) -> tensor<3x10xf32>
  return %y : tensor<3x10xf32>
}

// CHECK-LABEL: @embedding(
// CHECK: attune.quantized_embedding %{{.+}}, %{{.+}} scales %{{.+}} : tensor<?x?xi64>, (tensor<50257x768xi8>, tensor<50257x6xf32>) -> tensor<?x?x768xf32>
// CHECK: attune.quantized_embedding %{{.+}}, %{{.+}} scales %{{.+}} add %{{.+}} : tensor<?x?x768xf32> scale 2.000000e+00 offset 2 :
func.func @embedding(%ids: tensor<?x?xi64>, %wte: tensor<50257x768xi8>, %t: tensor<50257x6xf32>) -> tensor<?x?x768xf32> {
  %x = attune.quantized_embedding %ids, %wte scales %t : tensor<?x?xi64>,
       (tensor<50257x768xi8>, tensor<50257x6xf32>) -> tensor<?x?x768xf32>
  %y = attune.quantized_embedding %ids, %wte scales %t add %x : tensor<?x?x768xf32> scale 2.0 offset 2
     : tensor<?x?xi64>, (tensor<50257x768xi8>, tensor<50257x6xf32>) -> tensor<?x?x768xf32>
  return %y : tensor<?x?x768xf32>
}

// 4 bits: rows of i4, or panels of bytes that hold two numbers each.
// CHECK: attune.weight @four : tensor<20x64xi4> from {{.+}} {attune.group = 32 : i64}
// CHECK: attune.weight @four.scales : tensor<20x2xf16> from {{.+}} {attune.group = 32 : i64}
attune.weight @four : tensor<20x64xi4> from [#attune.source<"w">] {attune.group = 32 : i64}
attune.weight @four.scales : tensor<20x2xf16> from [#attune.source<"w">] {attune.group = 32 : i64}
// CHECK-LABEL: @nibbles(
// CHECK: attune.quantized_linear {{.+}} (tensor<20x64xi4>, tensor<20x2xf16>) -> tensor<3x20xf32>
// CHECK: attune.quantized_linear {{.+}} (tensor<3x8x32xi8>, tensor<3x2x8xf16>) -> tensor<3x20xf32>
// CHECK: attune.quantized_embedding {{.+}} (tensor<3x8x32xi8>, tensor<3x2x8xf16>) -> tensor<?x?x64xf32>
func.func @nibbles(%q: tensor<3x64xi8>, %s: tensor<3x2xf32>, %n: tensor<3x2xi32>, %w: tensor<20x64xi4>, %t: tensor<20x2xf16>,
                   %p: tensor<3x8x32xi8>, %u: tensor<3x2x8xf16>, %ids: tensor<?x?xi64>)
    -> (tensor<3x20xf32>, tensor<3x20xf32>, tensor<?x?x64xf32>) {
  %x = attune.quantized_linear %q scales %s sums %n, %w scales %t
     : (tensor<3x64xi8>, tensor<3x2xf32>, tensor<3x2xi32>), (tensor<20x64xi4>, tensor<20x2xf16>) -> tensor<3x20xf32>
  %y = attune.quantized_linear %q scales %s sums %n, %p scales %u
     : (tensor<3x64xi8>, tensor<3x2xf32>, tensor<3x2xi32>), (tensor<3x8x32xi8>, tensor<3x2x8xf16>) -> tensor<3x20xf32>
  %z = attune.quantized_embedding %ids, %p scales %u : tensor<?x?xi64>, (tensor<3x8x32xi8>, tensor<3x2x8xf16>) -> tensor<?x?x64xf32>
  return %x, %y, %z : tensor<3x20xf32>, tensor<3x20xf32>, tensor<?x?x64xf32>
}

// Zero points beside scales, floats of 4 bits, and rows of numbers.
// CHECK: attune.weight @zeros : tensor<20x64xi4> from {{.+}} {attune.group = 32 : i64, attune.zeros}
// CHECK: attune.weight @zeros.scales : tensor<20x4xf16> from {{.+}} {attune.group = 32 : i64, attune.zeros}
// CHECK: attune.weight @floats : tensor<20x64xi4> from {{.+}} {attune.group = 32 : i64, attune.scales = f8E8M0FNU}
// CHECK: attune.weight @floats.scales : tensor<20x2xf8E8M0FNU> from {{.+}} {attune.group = 32 : i64}
attune.weight @zeros : tensor<20x64xi4> from [#attune.source<"w">] {attune.group = 32 : i64, attune.zeros}
attune.weight @zeros.scales : tensor<20x4xf16> from [#attune.source<"w">] {attune.group = 32 : i64, attune.zeros}
attune.weight @floats : tensor<20x64xi4> from [#attune.source<"w">] {attune.group = 32 : i64, attune.scales = f8E8M0FNU}
attune.weight @floats.scales : tensor<20x2xf8E8M0FNU> from [#attune.source<"w">] {attune.group = 32 : i64}
// CHECK-LABEL: @forms(
// CHECK: attune.quantized_linear %{{.+}} scales %{{.+}} sums %{{.+}}, %{{.+}} scales %{{.+}} zeros : (tensor<3x64xi8>, tensor<3x2xf32>, tensor<3x2xi32>), (tensor<20x64xi4>, tensor<20x4xf16>)
// CHECK: attune.quantized_linear %{{.+}}, %{{.+}} scales %{{.+}} zeros : (tensor<3x64xf32>), (tensor<3x8x32xi8>, tensor<3x4x8xf32>) -> tensor<3x20xf32>
// CHECK: attune.quantized_linear %{{.+}}, %{{.+}} scales %{{.+}} : (tensor<3x64xf32>), (tensor<20x64xi4>, tensor<20x2xf8E8M0FNU>) -> tensor<3x20xf32>
// CHECK: attune.quantized_embedding %{{.+}}, %{{.+}} scales %{{.+}} zeros scale 2.000000e+00 :
func.func @forms(%q: tensor<3x64xi8>, %s: tensor<3x2xf32>, %n: tensor<3x2xi32>, %x: tensor<3x64xf32>, %w: tensor<20x64xi4>, %t: tensor<20x4xf16>,
                 %p: tensor<3x8x32xi8>, %u: tensor<3x4x8xf32>, %f: tensor<20x2xf8E8M0FNU>, %ids: tensor<?x?xi64>)
    -> (tensor<3x20xf32>, tensor<3x20xf32>, tensor<3x20xf32>, tensor<?x?x64xf32>) {
  %a = attune.quantized_linear %q scales %s sums %n, %w scales %t zeros
     : (tensor<3x64xi8>, tensor<3x2xf32>, tensor<3x2xi32>), (tensor<20x64xi4>, tensor<20x4xf16>) -> tensor<3x20xf32>
  %b = attune.quantized_linear %x, %p scales %u zeros : (tensor<3x64xf32>), (tensor<3x8x32xi8>, tensor<3x4x8xf32>) -> tensor<3x20xf32>
  %c = attune.quantized_linear %x, %w scales %f : (tensor<3x64xf32>), (tensor<20x64xi4>, tensor<20x2xf8E8M0FNU>) -> tensor<3x20xf32>
  %d = attune.quantized_embedding %ids, %p scales %u zeros scale 2.0 : tensor<?x?xi64>, (tensor<3x8x32xi8>, tensor<3x4x8xf32>) -> tensor<?x?x64xf32>
  return %a, %b, %c, %d : tensor<3x20xf32>, tensor<3x20xf32>, tensor<3x20xf32>, tensor<?x?x64xf32>
}

// CHECK-LABEL: @numbers(
// CHECK: attune.quantized_linear %{{.+}}, %{{.+}} scales %{{.+}} zeros : (tensor<?x?x768xf32>), (tensor<3072x768xi4>, tensor<3072x12xf16>) -> tensor<?x?x3072xf32>
func.func @numbers(%x: tensor<?x?x768xf32>, %w: tensor<3072x768xi4>, %t: tensor<3072x12xf16>) -> tensor<?x?x3072xf32> {
  %y = attune.quantized_linear %x, %w scales %t zeros : (tensor<?x?x768xf32>),
       (tensor<3072x768xi4>, tensor<3072x12xf16>) -> tensor<?x?x3072xf32>
  return %y : tensor<?x?x3072xf32>
}

// Scales in two levels: of 256 columns a byte for each group, and those of an f16;
// with zeros twice as many.
// CHECK: attune.weight @levels panels 8 : tensor<3x64x32xi8> from {{.+}} {attune.bits = 4 : i64, attune.group = 32 : i64, attune.scales = i8, attune.zeros}
// CHECK: attune.weight @levels.scales panels 8 : tensor<3x40x8xi8> from {{.+}} {attune.bits = 4 : i64, attune.group = 32 : i64, attune.levels, attune.zeros}
attune.weight @levels panels 8 : tensor<3x64x32xi8> from [#attune.source<"w">] {attune.bits = 4 : i64, attune.group = 32 : i64, attune.scales = i8, attune.zeros}
attune.weight @levels.scales panels 8 : tensor<3x40x8xi8> from [#attune.source<"w">] {attune.bits = 4 : i64, attune.group = 32 : i64, attune.levels, attune.zeros}
// CHECK-LABEL: @two_levels(
// CHECK: attune.quantized_linear %{{.+}} scales %{{.+}} sums %{{.+}}, %{{.+}} scales %{{.+}} zeros : (tensor<3x512xi8>, tensor<3x16xf32>, tensor<3x16xi32>), (tensor<20x512xi4>, tensor<20x40xi8>)
// CHECK: attune.quantized_linear %{{.+}}, %{{.+}} scales %{{.+}} : (tensor<3x512xf32>), (tensor<3x128x32xi8>, tensor<3x36x8xi8>) -> tensor<3x20xf32>
func.func @two_levels(%q: tensor<3x512xi8>, %s: tensor<3x16xf32>, %n: tensor<3x16xi32>, %w: tensor<20x512xi4>, %t: tensor<20x40xi8>,
                      %x: tensor<3x512xf32>, %p: tensor<3x128x32xi8>, %u: tensor<3x36x8xi8>) -> (tensor<3x20xf32>, tensor<3x20xf32>) {
  %a = attune.quantized_linear %q scales %s sums %n, %w scales %t zeros
     : (tensor<3x512xi8>, tensor<3x16xf32>, tensor<3x16xi32>), (tensor<20x512xi4>, tensor<20x40xi8>) -> tensor<3x20xf32>
  %b = attune.quantized_linear %x, %p scales %u : (tensor<3x512xf32>), (tensor<3x128x32xi8>, tensor<3x36x8xi8>) -> tensor<3x20xf32>
  return %a, %b : tensor<3x20xf32>, tensor<3x20xf32>
}

// CHECK-LABEL: @byte_floats(
// CHECK: attune.quantized_linear %{{.+}}, %{{.+}} scales %{{.+}} : (tensor<?x64xbf16>), (tensor<20x64xf8E4M3FN>, tensor<20x2xf32>) -> tensor<?x20xf32>
// CHECK: attune.quantized_linear %{{.+}}, %{{.+}} scales %{{.+}} : (tensor<?x64xbf16>), (tensor<3x16x32xf8E4M3FN>, tensor<3x2x8xf32>) -> tensor<?x20xf32>
// CHECK: attune.quantized_embedding %{{.+}}, %{{.+}} scales %{{.+}} : tensor<?x?xi64>, (tensor<3x16x32xf8E4M3FN>, tensor<3x2x8xf32>) -> tensor<?x?x64xf32>
func.func @byte_floats(%x: tensor<?x64xbf16>, %w: tensor<20x64xf8E4M3FN>, %t: tensor<20x2xf32>,
                       %p: tensor<3x16x32xf8E4M3FN>, %u: tensor<3x2x8xf32>, %ids: tensor<?x?xi64>)
    -> (tensor<?x20xf32>, tensor<?x20xf32>, tensor<?x?x64xf32>) {
  %a = attune.quantized_linear %x, %w scales %t : (tensor<?x64xbf16>), (tensor<20x64xf8E4M3FN>, tensor<20x2xf32>) -> tensor<?x20xf32>
  %b = attune.quantized_linear %x, %p scales %u : (tensor<?x64xbf16>), (tensor<3x16x32xf8E4M3FN>, tensor<3x2x8xf32>) -> tensor<?x20xf32>
  %c = attune.quantized_embedding %ids, %p scales %u : tensor<?x?xi64>, (tensor<3x16x32xf8E4M3FN>, tensor<3x2x8xf32>) -> tensor<?x?x64xf32>
  return %a, %b, %c : tensor<?x20xf32>, tensor<?x20xf32>, tensor<?x?x64xf32>
}

// CHECK-LABEL: @many_byte_floats(
// CHECK: attune.quantized_linear %{{.+}}, %{{.+}} scales %{{.+}} : (tensor<?x?x768xf32>), (tensor<3072x768xf8E4M3FN>, tensor<3072x6xf32>) -> tensor<?x?x3072xf32>
func.func @many_byte_floats(%x: tensor<?x?x768xf32>, %w: tensor<3072x768xf8E4M3FN>, %t: tensor<3072x6xf32>) -> tensor<?x?x3072xf32> {
  %y = attune.quantized_linear %x, %w scales %t : (tensor<?x?x768xf32>),
         (tensor<3072x768xf8E4M3FN>, tensor<3072x6xf32>) -> tensor<?x?x3072xf32>
  return %y : tensor<?x?x3072xf32>
}
