// RUN: attune-opt %s --attune-fuse-norms --split-input-file | FileCheck %s
// RUN: attune-opt %s --attune-fuse-norms --split-input-file --remarks-filter=attune-fuse-norms -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: attune-opt %s --attune-fuse-norms=way-bytes=256 --split-input-file | FileCheck %s --check-prefix=WAYS
// RUN: attune-opt %s --attune-validate=verbose,lengths=1/5 --attune-fuse-norms --split-input-file -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=SAME --implicit-check-not=error
// SAME: after attune-fuse-norms, @block is the same
// SAME: after attune-fuse-norms, @plain is the same

// Both layers that meet the norm are divided instead. Their matrices get its
// gains, layer by layer, and what is added to these. Rows of 256 bytes stay
// normalised where these are a way of the cache.
// CHECK: attune.weight @g stacked : tensor<2x64xf32> from [#attune.source<"h.{i}.g">]{{$}}
// CHECK: attune.weight @up stacked : tensor<2x20x64xf32> from [#attune.source<"h.{i}.up">] gain @g gain_offset 1.000000e+00
// CHECK: attune.weight @q stacked : tensor<2x7x64xf32> from [#attune.source<"h.{i}.q">] gain @g gain_offset 1.000000e+00
// WAYS-NOT: {{\] gain @}}
// WAYS-LABEL: @block(
// WAYS:         attune.rms_norm
// REMARK: [Passed] norm | Category:attune-fuse-norms {{.*}}Remark="a factor of the products that follow"
attune.weight @g stacked : tensor<2x64xf32> from [#attune.source<"h.{i}.g">]
attune.weight @up stacked : tensor<2x20x64xf32> from [#attune.source<"h.{i}.up">]
attune.weight @q stacked : tensor<2x7x64xf32> from [#attune.source<"h.{i}.q">]
// CHECK-LABEL: @block(
// CHECK-SAME:    %{{.+}}: index, %[[X:.+]]: tensor<?x?x64xf32>, %[[B:.+]]: tensor<20xf32>, %[[R:.+]]: tensor<?x?x7xf32>)
// CHECK-NOT:     rms_norm
// CHECK:         attune.linear %[[X]], %{{.+}} bias %[[B]] : tensor<20xf32> activation <silu> gated rms_eps 9.99999974E-6 {attune.tile_rows = 3 : i64}
// CHECK:         attune.linear %[[X]], %{{.+}} residual %[[R]] : tensor<?x?x7xf32> scale 5.000000e-01 rms_eps 9.99999974E-6
func.func @block(%i: index, %x: tensor<?x?x64xf32>, %b: tensor<20xf32>, %r: tensor<?x?x7xf32>) -> (tensor<?x?x10xf32>, tensor<?x?x7xf32>) {
  %g = attune.weight_get @g[%i] : tensor<64xf32>
  %n = attune.rms_norm %x gamma %g : tensor<64xf32> eps 1.0e-5 offset 1.0 : tensor<?x?x64xf32>
  %u = attune.weight_get @up[%i] : tensor<20x64xf32>
  %h = attune.linear %n, %u bias %b : tensor<20xf32> activation <silu> gated {attune.tile_rows = 3 : i64}
     : tensor<?x?x64xf32>, tensor<20x64xf32> -> tensor<?x?x10xf32>
  %w = attune.weight_get @q[%i] : tensor<7x64xf32>
  %q = attune.linear %n, %w residual %r : tensor<?x?x7xf32> scale 0.5
     : tensor<?x?x64xf32>, tensor<7x64xf32> -> tensor<?x?x7xf32>
  return %h, %q : tensor<?x?x10xf32>, tensor<?x?x7xf32>
}

// -----

// Two functions may read a matrix if both norms have the same gains: none here.
// CHECK: attune.weight @w : tensor<7x24xf32> from [#attune.source<"w">]{{$}}
// WAYS:  rms_eps
attune.weight @w : tensor<7x24xf32> from [#attune.source<"w">]
// CHECK-LABEL: @plain(
// CHECK:         attune.linear %{{.+}}, %{{.+}} rms_eps 1.000000e-01
func.func @plain(%x: tensor<?x24xf32>) -> tensor<?x7xf32> {
  %n = attune.rms_norm %x eps 0.1 : tensor<?x24xf32>
  %w = attune.weight_get @w : tensor<7x24xf32>
  %y = attune.linear %n, %w : tensor<?x24xf32>, tensor<7x24xf32> -> tensor<?x7xf32>
  return %y : tensor<?x7xf32>
}
// CHECK-LABEL: @other(
// CHECK:         attune.linear %{{.+}}, %{{.+}} rms_eps 2.000000e-01
func.func @other(%x: tensor<?x24xf32>) -> tensor<?x7xf32> {
  %n = attune.rms_norm %x eps 0.2 : tensor<?x24xf32>
  %w = attune.weight_get @w : tensor<7x24xf32>
  %y = attune.linear %n, %w : tensor<?x24xf32>, tensor<7x24xf32> -> tensor<?x7xf32>
  return %y : tensor<?x7xf32>
}

// -----

// A tied table is no longer that of embeddings, once it has gains. A norm that
// shares a matrix with one that stays, stays too.
// REMARK-DAG: Remark="meets a matrix that is multiplied by something else too"
attune.weight @g : tensor<24xf32> from [#attune.source<"g">]
attune.weight @f : tensor<24xf32> from [#attune.source<"f">]
attune.weight @wte : tensor<50x24xf32> from [#attune.source<"wte">]
attune.weight @shared : tensor<7x24xf32> from [#attune.source<"shared">]
// CHECK-NOT: {{\] gain @}}
// CHECK-NOT: rms_eps
func.func @tied(%ids: tensor<?x?xi64>) -> tensor<?x?x50xf32> {
  %w = attune.weight_get @wte : tensor<50x24xf32>
  %x = attune.embedding %ids, %w : tensor<?x?xi64>, tensor<50x24xf32> -> tensor<?x?x24xf32>
  %g = attune.weight_get @g : tensor<24xf32>
  %n = attune.rms_norm %x gamma %g : tensor<24xf32> eps 0.1 : tensor<?x?x24xf32>
  %y = attune.linear %n, %w : tensor<?x?x24xf32>, tensor<50x24xf32> -> tensor<?x?x50xf32>
  return %y : tensor<?x?x50xf32>
}
func.func @gains(%x: tensor<?x24xf32>) -> (tensor<?x7xf32>, tensor<?x7xf32>) {
  %w = attune.weight_get @shared : tensor<7x24xf32>
  %g = attune.weight_get @g : tensor<24xf32>
  %n = attune.rms_norm %x gamma %g : tensor<24xf32> eps 0.1 : tensor<?x24xf32>
  %y = attune.linear %n, %w : tensor<?x24xf32>, tensor<7x24xf32> -> tensor<?x7xf32>
  %f = attune.weight_get @f : tensor<24xf32>
  %m = attune.rms_norm %x gamma %f : tensor<24xf32> eps 0.1 : tensor<?x24xf32>
  %z = attune.linear %m, %w : tensor<?x24xf32>, tensor<7x24xf32> -> tensor<?x7xf32>
  return %y, %z : tensor<?x7xf32>, tensor<?x7xf32>
}

// -----

// A layer cannot read what it adds to in place, and what another has added to is
// gone: parallel blocks keep their norm. In sequence nothing is in the way.
// CHECK: attune.weight @b : tensor<24x24xf32> from [#attune.source<"b">]{{$}}
// REMARK-DAG: Remark="is of rows that are something else when a product would read them"
attune.weight @a : tensor<24x24xf32> from [#attune.source<"a">]
attune.weight @b : tensor<24x24xf32> from [#attune.source<"b">]
attune.weight @c : tensor<24x24xf32> from [#attune.source<"c">]
attune.weight @d : tensor<24x24xf32> from [#attune.source<"d">]
// CHECK-LABEL: @alone(
// CHECK-NOT:     rms_eps
func.func @alone(%x: tensor<?x24xf32>) -> tensor<?x24xf32> {
  %b = attune.weight_get @b : tensor<24x24xf32>
  %n = attune.rms_norm %x eps 0.1 : tensor<?x24xf32>
  %z = attune.linear %n, %b residual %x : tensor<?x24xf32> : tensor<?x24xf32>, tensor<24x24xf32> -> tensor<?x24xf32>
  return %z : tensor<?x24xf32>
}
// CHECK-LABEL: @parallel(
// CHECK-NOT:     rms_eps
func.func @parallel(%x: tensor<?x24xf32>) -> tensor<?x24xf32> {
  %a = attune.weight_get @a : tensor<24x24xf32>
  %c = attune.weight_get @d : tensor<24x24xf32>
  %b = attune.weight_get @b : tensor<24x24xf32>
  %n = attune.rms_norm %x eps 0.1 : tensor<?x24xf32>
  %q = attune.linear %n, %c : tensor<?x24xf32>, tensor<24x24xf32> -> tensor<?x24xf32>
  %y = attune.linear %q, %a residual %x : tensor<?x24xf32> : tensor<?x24xf32>, tensor<24x24xf32> -> tensor<?x24xf32>
  %z = attune.linear %n, %b residual %y : tensor<?x24xf32> : tensor<?x24xf32>, tensor<24x24xf32> -> tensor<?x24xf32>
  return %z : tensor<?x24xf32>
}
// CHECK-LABEL: @sequence(
// CHECK:         attune.linear %{{.+}}, %{{.+}} rms_eps
func.func @sequence(%x: tensor<?x24xf32>) -> tensor<?x24xf32> {
  %a = attune.weight_get @a : tensor<24x24xf32>
  %c = attune.weight_get @c : tensor<24x24xf32>
  %n = attune.rms_norm %x eps 0.1 : tensor<?x24xf32>
  %y = attune.linear %n, %c : tensor<?x24xf32>, tensor<24x24xf32> -> tensor<?x24xf32>
  %z = attune.linear %y, %a residual %x : tensor<?x24xf32> : tensor<?x24xf32>, tensor<24x24xf32> -> tensor<?x24xf32>
  return %z : tensor<?x24xf32>
}

// -----

// The rest of what stays, and why. Nothing is said of a layer norm, whose sums
// would cancel.
// REMARK-DAG: Remark="is used by 'func.return'"
// REMARK-DAG: Remark="is used by 'attune.rms_norm'"
// REMARK-DAG: Remark="meets a matrix that is no weight of f32"
// REMARK-DAG: Remark="is not of rows of f32"
// REMARK-DAG: Remark="has a gain that is no weight of f32"
// REMARK-DAG: Remark="and its matrix are not of one layer"
attune.weight @half : tensor<7x24xbf16> from [#attune.source<"half">]
attune.weight @w : tensor<7x24xf32> from [#attune.source<"w">]
attune.weight @v : tensor<7x24xf32> from [#attune.source<"v">]
attune.weight @u : tensor<7x24xf32> from [#attune.source<"u">]
attune.weight @s stacked : tensor<2x24xf32> from [#attune.source<"s.{i}">]
// CHECK-NOT: {{\] gain @}}
// CHECK-NOT: rms_eps
func.func @left(%x: tensor<?x24xf32>, %g: tensor<24xf32>, %i: index)
    -> (tensor<?x24xf32>, tensor<?x7xf32>, tensor<?x7xf32>, tensor<?x7xf32>, tensor<?x7xf32>, tensor<?x7xf32>) {
  %a = attune.rms_norm %x eps 0.1 : tensor<?x24xf32>
  %b = attune.rms_norm %a eps 0.1 : tensor<?x24xf32>
  %half = attune.weight_get @half : tensor<7x24xbf16>
  %c = attune.rms_norm %x eps 0.1 : tensor<?x24xf32>
  %c1 = attune.linear %c, %half : tensor<?x24xf32>, tensor<7x24xbf16> -> tensor<?x7xf32>
  %w = attune.weight_get @w : tensor<7x24xf32>
  %d = attune.rms_norm %x eps 0.1 : tensor<?x24xf32> -> tensor<?x24xbf16>
  %d1 = attune.linear %d, %w : tensor<?x24xbf16>, tensor<7x24xf32> -> tensor<?x7xf32>
  %v = attune.weight_get @v : tensor<7x24xf32>
  %e = attune.rms_norm %x gamma %g : tensor<24xf32> eps 0.1 : tensor<?x24xf32>
  %e1 = attune.linear %e, %v : tensor<?x24xf32>, tensor<7x24xf32> -> tensor<?x7xf32>
  %s = attune.weight_get @s[%i] : tensor<24xf32>
  %u = attune.weight_get @u : tensor<7x24xf32>
  %f = attune.rms_norm %x gamma %s : tensor<24xf32> eps 0.1 : tensor<?x24xf32>
  %f1 = attune.linear %f, %u : tensor<?x24xf32>, tensor<7x24xf32> -> tensor<?x7xf32>
  %l = attune.layer_norm %x eps 0.1 : tensor<?x24xf32>
  %l1 = attune.linear %l, %u : tensor<?x24xf32>, tensor<7x24xf32> -> tensor<?x7xf32>
  return %b, %c1, %d1, %e1, %f1, %l1 : tensor<?x24xf32>, tensor<?x7xf32>, tensor<?x7xf32>, tensor<?x7xf32>, tensor<?x7xf32>, tensor<?x7xf32>
}
