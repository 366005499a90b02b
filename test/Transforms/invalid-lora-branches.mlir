// RUN: attune-opt %s --attune-lora-branches="names=a ranks=fc:4" --verify-diagnostics --split-input-file
// RUN: not attune-opt %s --attune-lora-branches="names=a ranks=fc" 2>&1 | FileCheck %s
// CHECK: error: 'fc' is no rule; expected NAME:RANK

// expected-error @+1 {{no matrix of the model is made of 'fc', which an adapter changes}}
module {
  attune.weight @up : tensor<64x32xf32> from [#attune.source<"up">]
}

// -----

// expected-error @+1 {{'fc', which an adapter changes, cannot have it beside it, as 'table' is used by 'attune.embedding', too; adapters can be merged into the weights}}
attune.weight @table : tensor<64x32xf32> from [#attune.source<"fc">]
func.func @tied(%ids: tensor<?x?xi64>, %x: tensor<?x?x32xf32>) -> (tensor<?x?x32xf32>, tensor<?x?x64xf32>) {
  %w = attune.weight_get @table : tensor<64x32xf32>
  %e = attune.embedding %ids, %w : tensor<?x?xi64>, tensor<64x32xf32> -> tensor<?x?x32xf32>
  %y = attune.linear %x, %w : tensor<?x?x32xf32>, tensor<64x32xf32> -> tensor<?x?x64xf32>
  return %e, %y : tensor<?x?x32xf32>, tensor<?x?x64xf32>
}
