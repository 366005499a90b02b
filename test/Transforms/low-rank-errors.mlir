// RUN: split-file %s %t
// RUN: not attune-opt %t/model.mlir --attune-low-rank=rules=fc:0 2>&1 | FileCheck %s --check-prefix=LEAST
// RUN: not attune-opt %t/model.mlir --attune-low-rank=rules=fc:100%% 2>&1 | FileCheck %s --check-prefix=SHARE
// RUN: not attune-opt %t/model.mlir --attune-low-rank=rules=64 2>&1 | FileCheck %s --check-prefix=WORD
// RUN: not attune-opt %t/model.mlir --attune-low-rank 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not attune-opt %t/model.mlir --attune-low-rank=rules=[:4 2>&1 | FileCheck %s --check-prefix=GLOB
// RUN: not attune-opt %t/model.mlir --attune-low-rank=rules=fd:4,fc:4 2>&1 | FileCheck %s --check-prefix=UNUSED
// RUN: not attune-opt %t/model.mlir --attune-low-rank=rules=h.1.fc:4 2>&1 | FileCheck %s --check-prefix=LAYER
// RUN: not attune-opt %t/model.mlir --attune-low-rank=rules=fc:10%% 2>&1 | FileCheck %s --check-prefix=VALUES
// RUN: not attune-opt %t/model.mlir "--attune-low-rank=rules=fc:10%% weights=%t/none.safetensors" 2>&1 | FileCheck %s --check-prefix=FILE
// LEAST: error: 'fc:0' of --low-rank is no PATTERN:RANK, PATTERN:ERROR% or PATTERN:none, such as '*.ffn.*:64' or '*:10%'; a rank is 1 or more, an error between 0% and 100%
// SHARE: error: 'fc:100%' of --low-rank is no PATTERN:RANK
// WORD: error: '64' of --low-rank is no PATTERN:RANK
// NONE: error: --low-rank needs PATTERN:RANK or PATTERN:ERROR%
// GLOB: error: '[' of --low-rank is no pattern of names
// UNUSED: error: no matrix has a name that 'fd' of --low-rank matches; there are fc, h.fc
// LAYER: error: 'h.fc' is of 2 repeated layers, which are stored alike, but --low-rank tells layer 1 from those before it
// VALUES: error: an error of --low-rank is one of values: without weights, give ranks
// FILE: error: {{.*}}none.safetensors

//--- model.mlir
attune.weight @fc : tensor<64x48xf32> from [#attune.source<"fc">]
attune.weight @h.fc stacked : tensor<2x64x64xf32> from [#attune.source<"h.{i}.fc">]
func.func @f(%x: tensor<?x48xf32>, %i: index) -> tensor<?x64xf32> {
  %w = attune.weight_get @fc : tensor<64x48xf32>
  %y = attune.linear %x, %w : tensor<?x48xf32>, tensor<64x48xf32> -> tensor<?x64xf32>
  %v = attune.weight_get @h.fc[%i] : tensor<64x64xf32>
  %z = attune.linear %y, %v : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x64xf32>
  return %z : tensor<?x64xf32>
}
