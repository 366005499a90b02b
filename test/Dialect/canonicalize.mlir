// RUN: attune-opt %s --canonicalize | FileCheck %s

// CHECK-LABEL: @heads_there_and_back(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<?x?x768xf32>, %[[H:[a-z0-9]+]]: tensor<?x12x?x64xf32>)
// CHECK-NEXT:    return %[[X]], %[[H]]
func.func @heads_there_and_back(%x: tensor<?x?x768xf32>, %h: tensor<?x12x?x64xf32>) -> (tensor<?x?x768xf32>, tensor<?x12x?x64xf32>) {
  %0 = attune.split_heads %x : tensor<?x?x768xf32> -> tensor<?x12x?x64xf32>
  %1 = attune.merge_heads %0 : tensor<?x12x?x64xf32> -> tensor<?x?x768xf32>
  %2 = attune.merge_heads %h : tensor<?x12x?x64xf32> -> tensor<?x?x768xf32>
  %3 = attune.split_heads %2 : tensor<?x?x768xf32> -> tensor<?x12x?x64xf32>
  return %1, %3 : tensor<?x?x768xf32>, tensor<?x12x?x64xf32>
}

// A part of the columns, other heads, other knowledge of sizes: all stay.
// CHECK-LABEL: @heads_changed(
// CHECK-COUNT-3: attune.split_heads
// CHECK:         return
func.func @heads_changed(%x: tensor<?x?x1536xf32>, %h: tensor<?x12x?x64xf32>, %y: tensor<2x?x768xf32>) -> (tensor<?x?x768xf32>, tensor<?x24x?x32xf32>, tensor<?x?x768xf32>) {
  %0 = attune.split_heads %x at 768 : tensor<?x?x1536xf32> -> tensor<?x12x?x64xf32>
  %1 = attune.merge_heads %0 : tensor<?x12x?x64xf32> -> tensor<?x?x768xf32>
  %2 = attune.merge_heads %h : tensor<?x12x?x64xf32> -> tensor<?x?x768xf32>
  %3 = attune.split_heads %2 : tensor<?x?x768xf32> -> tensor<?x24x?x32xf32>
  %4 = attune.split_heads %y : tensor<2x?x768xf32> -> tensor<?x12x?x64xf32>
  %5 = attune.merge_heads %4 : tensor<?x12x?x64xf32> -> tensor<?x?x768xf32>
  return %1, %3, %5 : tensor<?x?x768xf32>, tensor<?x24x?x32xf32>, tensor<?x?x768xf32>
}

// CHECK-LABEL: @nothing_masked(
// CHECK-SAME:    %[[E:.+]]: tensor<1x1x2x2xf32>
// CHECK-NEXT:    return %[[E]]
func.func @nothing_masked(%e: tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32> {
  %f = attune.mask_scores %e : tensor<1x1x2x2xf32>
  return %f : tensor<1x1x2x2xf32>
}

// CHECK-LABEL: @something_masked(
// CHECK-COUNT-5: attune.mask_scores
func.func @something_masked(%e: tensor<1x1x2x2xf32>, %m: tensor<1x1x2x2xi1>) -> tensor<1x1x2x2xf32> {
  %f = attune.mask_scores %e mask %m : tensor<1x1x2x2xi1> : tensor<1x1x2x2xf32>
  %g = attune.mask_scores %f causal <top_left> : tensor<1x1x2x2xf32>
  %h = attune.mask_scores %g window 1 : tensor<1x1x2x2xf32>
  %i = attune.mask_scores %h softcap 2.0 : tensor<1x1x2x2xf32>
  %j = attune.mask_scores %i bias %e : tensor<1x1x2x2xf32> : tensor<1x1x2x2xf32>
  return %j : tensor<1x1x2x2xf32>
}

// CHECK-LABEL: @scaled(
// CHECK-NEXT:    %[[Y:.+]] = attune.linear %{{.+}}, %{{.+}} :
// CHECK-NEXT:    attune.linear %[[Y]], %{{.+}} scale 2.000000e+00 :
func.func @scaled(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x4xf32> {
  %y = attune.linear %x, %w scale 1.0 : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %z = attune.linear %y, %w scale 2.0 : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  return %z : tensor<2x4xf32>
}

// CHECK-LABEL: @identity(
// CHECK-SAME:    %[[X:.+]]: tensor<2x4xf32>
// CHECK-NEXT:    %[[Y:.+]] = attune.activation %[[X]] function <relu>
// CHECK-NEXT:    return %[[X]], %[[Y]]
func.func @identity(%x: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %same = attune.activation %x function <identity> : tensor<2x4xf32>
  %y = attune.activation %same function <relu> : tensor<2x4xf32>
  return %same, %y : tensor<2x4xf32>, tensor<2x4xf32>
}

// Heads of 16 bits are read as they are.
// CHECK-LABEL: @widened_heads(
// CHECK-SAME:    %[[Q:[a-z0-9]+]]: tensor<1x2x4x8xbf16>, %[[K:[a-z0-9]+]]: tensor<1x2x4x8xf16>, %[[V:[a-z0-9]+]]: tensor<1x2x4x8xf32>,
// CHECK-NEXT:    attune.attention %[[Q]], %[[K]], %[[V]]
// CHECK-NEXT:    attune.attention_weights %[[Q]], %[[K]],
func.func @widened_heads(%q: tensor<1x2x4x8xbf16>, %k: tensor<1x2x4x8xf16>, %v: tensor<1x2x4x8xf32>, %w: tensor<1x2x4x4xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4x4xf32>) {
  %q32 = arith.extf %q : tensor<1x2x4x8xbf16> to tensor<1x2x4x8xf32>
  %k32 = arith.extf %k : tensor<1x2x4x8xf16> to tensor<1x2x4x8xf32>
  %r, %lse = attune.attention %q32, %k32, %v scale 1.0 : tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32> -> tensor<1x2x4x8xf32> lse tensor<1x2x4xf32>
  %a = attune.attention_weights %q32, %k32, %lse scale 1.0 into %w : tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4xf32> -> tensor<1x2x4x4xf32>
  return %r, %a : tensor<1x2x4x8xf32>, tensor<1x2x4x4xf32>
}
