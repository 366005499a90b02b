// RUN: attune-opt %s --attune-validate --canonicalize | FileCheck %s
//
// Attention as a textbook writes it, one op for each step. Sizes that are `?`
// are chosen at run time; heads and widths are part of the program. Keys and
// values have two heads here, so two query heads share each of them.

// CHECK-LABEL: @textbook(
func.func @textbook(%q: tensor<?x4x?x8xf32>, %k: tensor<?x2x?x8xf32>, %v: tensor<?x2x?x8xf32>) -> tensor<?x4x?x8xf32> {
  // E = 0.35 Q K^T
  %e = attune.similarity %q, %k scale 3.500000e-01
     : tensor<?x4x?x8xf32>, tensor<?x2x?x8xf32> -> tensor<?x4x?x?xf32>
  // -inf where a query may not look: `bottom_right` lets the last query see
  // every key, whatever the lengths.
  %f = attune.mask_scores %e causal <bottom_right> : tensor<?x4x?x?xf32>
  // A = softmax(E): every row sums to one, or is zero if it sees nothing.
  %a = attune.softmax %f : tensor<?x4x?x?xf32>
  // Y = A V
  %y = attune.weighted_sum %a, %v : tensor<?x4x?x?xf32>, tensor<?x2x?x8xf32> -> tensor<?x4x?x8xf32>
  return %y : tensor<?x4x?x8xf32>
}

// What folds is always right: scores that nothing masks are the scores.
// CHECK-LABEL: @nothing_to_mask(
// CHECK-NOT: attune.mask_scores
func.func @nothing_to_mask(%e: tensor<1x2x?x?xf32>) -> tensor<1x2x?x?xf32> {
  %f = attune.mask_scores %e : tensor<1x2x?x?xf32>
  %a = attune.softmax %f : tensor<1x2x?x?xf32>
  return %a : tensor<1x2x?x?xf32>
}
