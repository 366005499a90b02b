// RUN: attune-opt %s | FileCheck %s
// RUN: attune-opt %s --canonicalize \
// RUN:   | FileCheck %s --check-prefix=CANON

// What stands here stays.
// CHECK: an old line goes
func.func @twice(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %c = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %y = arith.addf %x, %c : tensor<2x2xf32>
  return %y : tensor<2x2xf32>
}

func.func @same(%x: index) -> index {
  return %x : index
}
