// RUN: attune-opt %s --attune-destination-passing --split-input-file --verify-diagnostics

// expected-error@below {{result 0 of type 'tensor<8xf32>' has no argument of its type to be computed in}}
func.func private @no_place(%x: tensor<4xf32>) -> tensor<8xf32> {
  %y = tensor.empty() : tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

// Two results cannot share the one argument.
// expected-error@below {{result 1 of type 'tensor<8xf32>' has no argument of its type to be computed in}}
func.func private @one_place(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %y = tensor.empty() : tensor<8xf32>
  %z = tensor.empty() : tensor<8xf32>
  return %y, %z : tensor<8xf32>, tensor<8xf32>
}
