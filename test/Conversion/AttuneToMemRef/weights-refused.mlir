// RUN: attune-opt %s --convert-attune-weights-to-memref --verify-diagnostics

// expected-error@below {{makes the weights larger than any file}}
attune.weight @huge : tensor<4294967296x4294967296xf32> from [#attune.source<"w">]
