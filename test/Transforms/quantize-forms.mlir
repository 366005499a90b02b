// RUN: attune-opt %s --attune-quantize=rules=int4:g64:asym | FileCheck %s --check-prefix=ZEROS
// RUN: attune-opt %s --attune-quantize=rules=int8:g16:asym | FileCheck %s --check-prefix=BYTES
// RUN: attune-opt %s --attune-quantize=rules=int4:asym:f32 | FileCheck %s --check-prefix=WIDE
// RUN: attune-opt %s --attune-quantize=rules=mxfp4 | FileCheck %s --check-prefix=FLOATS
// RUN: attune-opt %s --attune-quantize=rules=fp8:g64 | FileCheck %s --check-prefix=FP8
// RUN: attune-opt %s --attune-quantize=rules=stored | FileCheck %s --check-prefix=ORDERED
// RUN: attune-opt %s --attune-quantize=rules=mxfp4 --remarks-filter=attune-quantize -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: attune-opt %s --attune-quantize="rules=int4 exact-activations" | FileCheck %s --check-prefix=EXACT
// RUN: not attune-opt %s --attune-quantize=rules=int4:g16 -o /dev/null 2>&1 | FileCheck %s --check-prefix=FORM -DFORM=int4:g16
// RUN: not attune-opt %s --attune-quantize=rules=mxfp4:g64 -o /dev/null 2>&1 | FileCheck %s --check-prefix=FORM -DFORM=mxfp4:g64
// RUN: not attune-opt %s --attune-quantize=rules=int8:asym:asym -o /dev/null 2>&1 | FileCheck %s --check-prefix=FORM -DFORM=int8:asym:asym
// RUN: not attune-opt %s --attune-quantize=rules=int4:ordered -o /dev/null 2>&1 | FileCheck %s --check-prefix=FORM -DFORM=int4:ordered
// RUN: not attune-opt %s --attune-quantize=rules=int4:f32:i8 -o /dev/null 2>&1 | FileCheck %s --check-prefix=FORM -DFORM=int4:f32:i8
// RUN: not attune-opt %s --attune-quantize=rules=int4:i8 -o /dev/null 2>&1 | FileCheck %s --check-prefix=FORM -DFORM=int4:i8
// FORM: error: '[[FORM]]' is no form of --quantize; it takes int8, int4, fp8, mxfp4 or none

// Zero points stand beside the scales; numbers say what their scales consist of
// where that is not the usual type.
// ZEROS:  attune.weight @fc : tensor<20x256xi4> from {{.+}} {attune.group = 64 : i64, attune.zeros}
// ZEROS:  attune.weight @fc.scales : tensor<20x8xf16> from {{.+}} {attune.group = 64 : i64, attune.zeros}
// BYTES:  attune.weight @fc : tensor<20x256xi8> from {{.+}} {attune.group = 16 : i64, attune.zeros}
// BYTES:  attune.weight @fc.scales : tensor<20x32xf32> from {{.+}} {attune.group = 16 : i64, attune.zeros}
// WIDE:   attune.weight @fc : tensor<20x256xi4> from {{.+}} {attune.group = 32 : i64, attune.scales = f32, attune.zeros}
// WIDE:   attune.weight @fc.scales : tensor<20x16xf32> from {{.+}} {attune.bits = 4 : i64, attune.group = 32 : i64, attune.zeros}
// FLOATS: attune.weight @fc : tensor<20x256xi4> from {{.+}} {attune.group = 32 : i64, attune.scales = f8E8M0FNU}
// FLOATS: attune.weight @fc.scales : tensor<20x8xf8E8M0FNU> from {{.+}} {attune.group = 32 : i64}
// FP8:    attune.weight @fc : tensor<20x256xf8E4M3FN> from {{.+}} {attune.group = 64 : i64}
// FP8:    attune.weight @fc.scales : tensor<20x4xf32> from {{.+}} {attune.floats, attune.group = 64 : i64}
// FP8:    attune.weight @wte : tensor<50x64xf8E4M3FN>
// REMARK: [Passed] quantize | Category:attune-quantize {{.*}}Remark="'fc' in floats of 4 bits, by groups of 32"
attune.weight @fc : tensor<20x256xf32> from [#attune.source<"fc">]
// A table that a head shares is in bytes.
// FLOATS: attune.weight @wte : tensor<50x64xi8>
// ZEROS:  attune.weight @wte : tensor<50x64xi8>
attune.weight @wte : tensor<50x64xf32> from [#attune.source<"wte">]

// ZEROS-LABEL: @layer(
// ZEROS:         attune.quantize_rows %{{.+}} group 64
// ZEROS:         attune.quantized_linear {{.+}} scales %{{.+}} zeros : (tensor<?x256xi8>, tensor<?x4xf32>, tensor<?x4xi32>), (tensor<20x256xi4>, tensor<20x8xf16>)
// FLOATS-LABEL: @layer(
// FLOATS:        attune.quantized_linear {{.+}}, (tensor<20x256xi4>, tensor<20x8xf8E8M0FNU>)
// EXACT-LABEL: @layer(
// EXACT-SAME:    %[[X:.+]]: tensor<?x256xf32>
// EXACT-NOT:     quantize_rows
// EXACT:         attune.quantized_linear %[[X]], %{{.+}} scales %{{.+}} : (tensor<?x256xf32>), (tensor<20x256xi4>, tensor<20x8xf16>) -> tensor<?x20xf32>
func.func @layer(%x: tensor<?x256xf32>) -> tensor<?x20xf32> {
  %w = attune.weight_get @fc : tensor<20x256xf32>
  %y = attune.linear %x, %w : tensor<?x256xf32>, tensor<20x256xf32> -> tensor<?x20xf32>
  return %y : tensor<?x20xf32>
}

// Floats of 8 bits multiply numbers as they are.
// FP8-LABEL: @layer(
// FP8-SAME:    %[[X:.+]]: tensor<?x256xf32>
// FP8-NOT:     quantize_rows
// FP8:         attune.quantized_linear %[[X]], %{{.+}} scales %{{.+}} : (tensor<?x256xf32>), (tensor<20x256xf8E4M3FN>, tensor<20x4xf32>) -> tensor<?x20xf32>

// BYTES-LABEL: @tied(
// BYTES:         attune.quantized_embedding %{{.+}}, %{{.+}} scales %{{.+}} zeros : tensor<?x?xi64>, (tensor<50x64xi8>, tensor<50x8xf32>)
func.func @tied(%ids: tensor<?x?xi64>) -> tensor<?x?x50xf32> {
  %w = attune.weight_get @wte : tensor<50x64xf32>
  %x = attune.embedding %ids, %w : tensor<?x?xi64>, tensor<50x64xf32> -> tensor<?x?x64xf32>
  %y = attune.linear %x, %w : tensor<?x?x64xf32>, tensor<50x64xf32> -> tensor<?x?x50xf32>
  return %y : tensor<?x?x50xf32>
}

// Groups of columns that stand apart: rows get the order in which the matrix has
// them.
// ORDERED: attune.weight @far stacked : tensor<2x20x256xi4> from {{.+}} {attune.group = 64 : i64, attune.ordered,{{.+}}}
// ORDERED: attune.weight @far.scales stacked : tensor<2x20x4xf16> from {{.+}} {attune.group = 64 : i64, attune.ordered,{{.+}}}
// ORDERED: attune.weight @far.order stacked : tensor<2x256xf32> from {{.+}} {attune.order = array<i64: 20, 256>}
attune.weight @far stacked : tensor<2x20x256xf32> from [#attune.source<"far.{i}">] {attune.stored = "int4:g64:ordered"}
// ORDERED-LABEL: @far_groups(
// ORDERED-SAME:    %[[X:.+]]: tensor<?x?x256xf32>
// ORDERED:         %[[P:.+]] = attune.weight_get @far.order[%{{.+}}] : tensor<256xf32>
// ORDERED:         %[[S:.+]] = linalg.generic {{.+}} ins(%[[P]] : tensor<256xf32>)
// ORDERED:           tensor.extract %[[X]]
// ORDERED:         attune.quantize_rows %[[S]] group 64
func.func @far_groups(%x: tensor<?x?x256xf32>) -> tensor<?x?x20xf32> {
  %i = arith.constant 1 : index
  %w = attune.weight_get @far[%i] : tensor<20x256xf32>
  %y = attune.linear %x, %w : tensor<?x?x256xf32>, tensor<20x256xf32> -> tensor<?x?x20xf32>
  return %y : tensor<?x?x20xf32>
}

// Scales in two levels are bytes of whole blocks of 256 columns; where rows are no
// such blocks the form of one level has the same numbers.
// ORDERED: attune.weight @levels : tensor<20x512xi4> from {{.+}} {attune.group = 32 : i64, attune.scales = i8, attune.stored = "int4:g32:asym:i8", attune.zeros}
// ORDERED: attune.weight @levels.scales : tensor<20x40xi8> from {{.+}} {attune.bits = 4 : i64, attune.group = 32 : i64, attune.levels, attune.stored = "int4:g32:asym:i8", attune.zeros}
// ORDERED: attune.weight @bytes : tensor<512x512xi8> from {{.+}} {attune.group = 16 : i64, attune.scales = i8,
// ORDERED: attune.weight @bytes.scales : tensor<512x36xi8> from {{.+}} {attune.group = 16 : i64, attune.levels,
// ORDERED: attune.weight @part : tensor<20x128xi4> from {{.+}} {attune.cut = {{.+}}, attune.group = 32 : i64, attune.scales = f32, attune.stored = "int4:g32:asym:f32", attune.zeros}
// ORDERED: attune.weight @part.scales : tensor<20x8xf32>
attune.weight @levels : tensor<20x512xf32> from [#attune.source<"levels">] {attune.stored = "int4:g32:asym:i8"}
attune.weight @bytes : tensor<512x512xf32> from [#attune.source<"bytes">] {attune.stored = "int8:g16:i8"}
attune.weight @part : tensor<20x128xf32> from [#attune.source<"part">]
    {attune.cut = {whole = array<i64: 20, 256>, rows = [array<i64: 0, 20>, array<i64: 0, 20>], columns = array<i64: 0, 128, 128, 128>}, attune.stored = "int4:g32:asym:i8"}
// ORDERED-LABEL: @two_levels(
// ORDERED: attune.quantized_embedding %{{.+}}, %{{.+}} scales %{{.+}} : tensor<?x?xi64>, (tensor<512x512xi8>, tensor<512x36xi8>)
// ORDERED: attune.quantize_rows %{{.+}} group 32 : tensor<?x?x512xf32>
// ORDERED: attune.quantized_linear %{{.+}} scales %{{.+}} zeros : (tensor<?x?x512xi8>, tensor<?x?x16xf32>, tensor<?x?x16xi32>), (tensor<20x512xi4>, tensor<20x40xi8>)
func.func @two_levels(%ids: tensor<?x?xi64>, %z: tensor<?x?x128xf32>) -> (tensor<?x?x20xf32>, tensor<?x?x20xf32>) {
  %t = attune.weight_get @bytes : tensor<512x512xf32>
  %x = attune.embedding %ids, %t : tensor<?x?xi64>, tensor<512x512xf32> -> tensor<?x?x512xf32>
  %w = attune.weight_get @levels : tensor<20x512xf32>
  %y = attune.linear %x, %w : tensor<?x?x512xf32>, tensor<20x512xf32> -> tensor<?x?x20xf32>
  %p = attune.weight_get @part : tensor<20x128xf32>
  %v = attune.linear %z, %p : tensor<?x?x128xf32>, tensor<20x128xf32> -> tensor<?x?x20xf32>
  return %y, %v : tensor<?x?x20xf32>, tensor<?x?x20xf32>
}
