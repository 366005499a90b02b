// RUN: attune-opt %s --attune-quantize --split-input-file | FileCheck %s
// RUN: attune-opt %s --attune-quantize --split-input-file --remarks-filter=attune-quantize -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: attune-opt %s --attune-quantize=rules=int8:g64 --split-input-file | FileCheck %s --check-prefix=HALF
// RUN: attune-opt %s --attune-quantize=rules=int4:g128 --split-input-file | FileCheck %s --check-prefix=FOUR
// RUN: attune-opt %s --attune-quantize=rules=stored --split-input-file | FileCheck %s --check-prefix=STORED
// RUN: not attune-opt %s --attune-quantize=rules=*router*=int8 --split-input-file 2>/dev/null | FileCheck %s --check-prefix=ROUTER
// RUN: not attune-opt %s --attune-quantize=rules=int8:g6 --split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix=FORM
// FORM: error: 'int8:g6' is no form of --quantize

// A weight becomes bytes and scales; what was noted on the layer stays, and so
// does all that it does besides.
// CHECK: attune.weight @fc stacked : tensor<2x20x256xi8> from {{.+}} {attune.group = 128 : i64}
// CHECK: attune.weight @fc.scales stacked : tensor<2x20x2xf32> from [#attune.source<"h.{i}.fc", transposed>] {attune.group = 128 : i64}
// HALF:  attune.weight @fc.scales stacked : tensor<2x20x4xf32>
// FOUR:  attune.weight @fc stacked : tensor<2x20x256xi4> from {{.+}} {attune.group = 128 : i64}
// FOUR:  attune.weight @fc.scales stacked : tensor<2x20x2xf16> from {{.+}} {attune.group = 128 : i64}
// REMARK: [Passed] quantize | Category:attune-quantize {{.*}}Remark="'fc' in bytes, by groups of 128"
attune.weight @fc stacked : tensor<2x20x256xf32> from [#attune.source<"h.{i}.fc", transposed>]
// FOUR-LABEL: @layer(
// FOUR:         %[[W:.+]] = attune.weight_get @fc[%{{.+}}] : tensor<20x256xi4>
// FOUR:         attune.quantized_linear {{.+}}, %[[W]] scales {{.+}}(tensor<20x256xi4>, tensor<20x2xf16>)
// CHECK-LABEL: @layer(
// CHECK-SAME:    %[[I:.+]]: index, %[[X:.+]]: tensor<?x256xf32>, %[[B:.+]]: tensor<20xf32>, %[[R:.+]]: tensor<?x10xf32>)
// CHECK:         %[[W:.+]] = attune.weight_get @fc[%[[I]]] : tensor<20x256xi8>
// CHECK:         %[[T:.+]] = attune.weight_get @fc.scales[%[[I]]] : tensor<20x2xf32>
// CHECK:         %[[Q:.+]], %[[S:.+]], %[[N:.+]] = attune.quantize_rows %[[X]] group 128
// CHECK:         attune.quantized_linear %[[Q]] scales %[[S]] sums %[[N]], %[[W]] scales %[[T]] bias %[[B]] : tensor<20xf32> residual %[[R]] : tensor<?x10xf32> activation <silu> gated scale 5.000000e-01 {attune.tile_rows = 3 : i64}
func.func @layer(%i: index, %x: tensor<?x256xf32>, %b: tensor<20xf32>, %r: tensor<?x10xf32>) -> tensor<?x10xf32> {
  %w = attune.weight_get @fc[%i] : tensor<20x256xf32>
  %y = attune.linear %x, %w bias %b : tensor<20xf32> residual %r : tensor<?x10xf32> activation <silu> gated scale 0.5 {attune.tile_rows = 3 : i64}
     : tensor<?x256xf32>, tensor<20x256xf32> -> tensor<?x10xf32>
  return %y : tensor<?x10xf32>
}

// -----

// A tied table is stored once. Rows that are no groups of 128 are of fewer; input
// and result may be of 16 bits.
// CHECK: attune.weight @wte : tensor<50x96xi8> from {{.+}} {attune.group = 32 : i64, attune.vocabulary}
// CHECK: attune.weight @wte.scales : tensor<50x3xf32>
attune.weight @wte : tensor<50x96xbf16> from [#attune.source<"wte">]
// CHECK-LABEL: @tied(
// CHECK:         attune.quantized_embedding {{.+}} scale 2.000000e+00 offset 1 : tensor<?x?xi64>, (tensor<50x96xi8>, tensor<50x3xf32>) -> tensor<?x?x96xbf16>
// CHECK:         attune.quantize_rows {{.+}} group 32 : tensor<?x?x96xbf16>
// CHECK:         attune.quantized_linear {{.+}} -> tensor<?x?x50xf32>
func.func @tied(%ids: tensor<?x?xi64>) -> tensor<?x?x50xf32> {
  %w = attune.weight_get @wte : tensor<50x96xbf16>
  %x = attune.embedding %ids, %w scale 2.0 offset 1 : tensor<?x?xi64>, tensor<50x96xbf16> -> tensor<?x?x96xbf16>
  %y = attune.linear %x, %w : tensor<?x?x96xbf16>, tensor<50x96xbf16> -> tensor<?x?x50xf32>
  return %y : tensor<?x?x50xf32>
}

// -----

// Rows are divided after they are summed up.
// REMARK: [Missed] quantize | Category:attune-quantize {{.*}}Remark="'normed' multiplies rows that are not normalised before"
attune.weight @normed : tensor<20x64xf32> from [#attune.source<"normed">]
// CHECK-LABEL: @normed_rows(
// CHECK:         attune.linear {{.+}} rms_eps
func.func @normed_rows(%x: tensor<3x64xf32>) -> tensor<3x20xf32> {
  %w = attune.weight_get @normed : tensor<20x64xf32>
  %y = attune.linear %x, %w rms_eps 0.1 : tensor<3x64xf32>, tensor<20x64xf32> -> tensor<3x20xf32>
  return %y : tensor<3x20xf32>
}

// -----

// What stays as it is, and why. A table that nothing multiplies by is not meant.
// CHECK: attune.weight @odd : tensor<20x40xf32>
// CHECK: attune.weight @shared : tensor<20x64xf32>
// CHECK: attune.weight @table : tensor<20x64xf32>
// CHECK-NOT: scales
// REMARK: [Missed] quantize | Category:attune-quantize {{.*}}Remark="'odd' has rows of 40, which are no whole groups"
// REMARK: [Missed] quantize | Category:attune-quantize {{.*}}Remark="'shared' is used by 'attune.layer_norm' too"
// REMARK-NOT: table
attune.weight @odd : tensor<20x40xf32> from [#attune.source<"odd">]
attune.weight @shared : tensor<20x64xf32> from [#attune.source<"shared">]
attune.weight @table : tensor<20x64xf32> from [#attune.source<"table">]
// CHECK-LABEL: @left(
func.func @left(%x: tensor<3x40xf32>, %z: tensor<3x64xf32>, %g: tensor<64xf32>, %ids: tensor<1x3xi64>)
    -> (tensor<3x20xf32>, tensor<3x20xf32>, tensor<20x64xf32>, tensor<1x3x64xf32>) {
  %odd = attune.weight_get @odd : tensor<20x40xf32>
  %shared = attune.weight_get @shared : tensor<20x64xf32>
  %table = attune.weight_get @table : tensor<20x64xf32>
  %a = attune.linear %x, %odd : tensor<3x40xf32>, tensor<20x40xf32> -> tensor<3x20xf32>
  %b = attune.linear %z, %shared : tensor<3x64xf32>, tensor<20x64xf32> -> tensor<3x20xf32>
  %c = attune.layer_norm %shared gamma %g : tensor<64xf32> eps 1.0e-5 : tensor<20x64xf32>
  %d = attune.embedding %ids, %table : tensor<1x3xi64>, tensor<20x64xf32> -> tensor<1x3x64xf32>
  return %a, %b, %c, %d : tensor<3x20xf32>, tensor<3x20xf32>, tensor<20x64xf32>, tensor<1x3x64xf32>
}

// -----

// A table alone stays as the checkpoint has it; no other form is put on it.
// STORED: attune.weight @table : tensor<20x64xi4>
// STORED: attune.weight @table.scales : tensor<20x2xf16>
// STORED: attune.quantized_embedding
// CHECK: attune.weight @table : tensor<20x64xf32>
attune.weight @table : tensor<20x64xf32> from [#attune.source<"table">] {attune.stored = "int4:g32"}
func.func @table_alone(%ids: tensor<1x3xi64>) -> tensor<1x3x64xf32> {
  %table = attune.weight_get @table : tensor<20x64xf32>
  %d = attune.embedding %ids, %table : tensor<1x3xi64>, tensor<20x64xf32> -> tensor<1x3x64xf32>
  return %d : tensor<1x3x64xf32>
}

// -----

// Experts: both of their stacks, with the rows in bytes.
// CHECK: attune.weight @up parts 4 : tensor<4x64x128xi8> from {{.+}} {attune.group = 128 : i64}
// CHECK: attune.weight @up.scales parts 4 : tensor<4x64x1xf32>
// CHECK: attune.weight @down parts 4 : tensor<4x128x32xi8> from {{.+}} {attune.group = 32 : i64}
// CHECK: attune.weight @down.scales parts 4 : tensor<4x128x1xf32>
// FOUR:  attune.weight @up parts 4 : tensor<4x64x128xi4>
// FOUR:  attune.weight @down.scales parts 4 : tensor<4x128x1xf16>
attune.weight @up parts 4 : tensor<4x64x128xf32> from [#attune.source<"up.{e}">]
attune.weight @down parts 4 : tensor<4x128x32xf32> from [#attune.source<"down.{e}">]
// CHECK-LABEL: @experts(
// CHECK-SAME:    %[[X:.+]]: tensor<?x128xf32>, %[[E:.+]]: tensor<?x2xi64>, %[[W:.+]]: tensor<?x2xf32>)
// CHECK-DAG:     %[[U:.+]] = attune.weight_get @up : tensor<4x64x128xi8>
// CHECK-DAG:     %[[T:.+]] = attune.weight_get @up.scales
// CHECK-DAG:     %[[D:.+]] = attune.weight_get @down : tensor<4x128x32xi8>
// CHECK-DAG:     %[[V:.+]] = attune.weight_get @down.scales
// CHECK:         %[[Q:.+]], %[[S:.+]], %[[N:.+]] = attune.quantize_rows %[[X]] group 128
// CHECK:         attune.quantized_moe %[[Q]] scales %[[S]] sums %[[N]], %[[E]], %[[W]], %[[U]] scales %[[T]], %[[D]] scales %[[V]] residual %[[X]] : tensor<?x128xf32> hidden 32 gated activation <silu>
func.func @experts(%x: tensor<?x128xf32>, %e: tensor<?x2xi64>, %w: tensor<?x2xf32>) -> tensor<?x128xf32> {
  %u = attune.weight_get @up : tensor<4x64x128xf32>
  %d = attune.weight_get @down : tensor<4x128x32xf32>
  %y = attune.moe %x, %e, %w, %u, %d residual %x : tensor<?x128xf32> gated activation <silu>
     : tensor<?x128xf32>, tensor<?x2xi64>, tensor<?x2xf32>, tensor<4x64x128xf32>, tensor<4x128x32xf32> -> tensor<?x128xf32>
  return %y : tensor<?x128xf32>
}

// -----

// All of an expert or nothing.
// CHECK: attune.weight @half.up parts 4 : tensor<4x40x64xf32>
// CHECK: attune.weight @half.down parts 4 : tensor<4x64x40xf32>
// REMARK-DAG: Remark="'half.down' has rows of 40, which are no whole groups"
// REMARK-DAG: Remark="'half.up' is of experts whose other matrices stay as they are"
attune.weight @half.up parts 4 : tensor<4x40x64xf32> from [#attune.source<"up.{e}">]
attune.weight @half.down parts 4 : tensor<4x64x40xf32> from [#attune.source<"down.{e}">]
// CHECK-LABEL: @half(
// CHECK:         attune.moe
func.func @half(%x: tensor<?x64xf32>, %e: tensor<?x2xi64>, %w: tensor<?x2xf32>) -> tensor<?x64xf32> {
  %u = attune.weight_get @half.up : tensor<4x40x64xf32>
  %d = attune.weight_get @half.down : tensor<4x64x40xf32>
  %y = attune.moe %x, %e, %w, %u, %d activation <silu>
     : tensor<?x64xf32>, tensor<?x2xi64>, tensor<?x2xf32>, tensor<4x40x64xf32>, tensor<4x64x40xf32> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

// What chooses experts keeps its numbers, unless a pattern names it.
// CHECK: attune.weight @router : tensor<8x128xf32>
// FOUR:  attune.weight @router : tensor<8x128xf32>
// ROUTER: attune.weight @router : tensor<8x128xi8>
attune.weight @router : tensor<8x128xf32> from [#attune.source<"router">]
// CHECK-LABEL: @chosen(
// CHECK:         attune.linear
func.func @chosen(%x: tensor<?x128xf32>) -> (tensor<?x2xi64>, tensor<?x2xf32>) {
  %r = attune.weight_get @router : tensor<8x128xf32>
  %l = attune.linear %x, %r : tensor<?x128xf32>, tensor<8x128xf32> -> tensor<?x8xf32>
  %e, %w = attune.router %l scoring <softmax> : tensor<?x8xf32> -> tensor<?x2xi64>, tensor<?x2xf32>
  return %e, %w : tensor<?x2xi64>, tensor<?x2xf32>
}
