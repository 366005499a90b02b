// RUN: attune-opt %s --attune-fuse-attention --remarks-filter=attune-fusion -o /dev/null 2>&1 | FileCheck %s
// RUN: attune-opt %s --attune-fuse-attention -o /dev/null 2>&1 | count 0

// CHECK: fuse-attention-remarks.mlir:[[# @LINE + 5]]:{{.+}} [Passed] attention | Category:attune-fusion | Function=two | Remark="1 query heads
// CHECK: [Missed] attention | Category:attune-fusion | Function=two | Remark="its weights come from outside the function body"
func.func @two(%q: tensor<1x1x4x4xf32>) -> (tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>) {
  %e = attune.similarity %q, %q scale 0.5 : tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32> -> tensor<1x1x4x4xf32>
  %a = attune.softmax %e : tensor<1x1x4x4xf32>
  %y = attune.weighted_sum %a, %q : tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32> -> tensor<1x1x4x4xf32>
  %z = attune.weighted_sum %q, %q : tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32> -> tensor<1x1x4x4xf32>
  return %y, %z : tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>
}
