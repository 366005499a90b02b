// RUN: attune-opt %s --attune-split-exchanges --split-input-file --verify-diagnostics
// RUN: not attune-opt %s --convert-attune-mesh-to-calls=device=true 2>&1 | FileCheck %s --check-prefix=WHOLE
// WHOLE: error: 'attune.all_gather' op does more than a GPU's ranks do at once; attune-split-exchanges splits it

func.func @alone(%x: memref<2x4xf32>, %n: index, %d: memref<2x8xf32>) {
  // expected-error @+1 {{is in a module without attune.ranks}}
  attune.all_gather %x columns %n into %d : memref<2x4xf32>, memref<2x8xf32>
  return
}

// -----

func.func @merged(%x: memref<2x4xf32>, %l: memref<2xf32>, %d: memref<2x4xf32>) {
  // expected-error @+1 {{is in a module without attune.sharers}}
  attune.all_merge %x, %l into %d : memref<2x4xf32>, memref<2xf32>, memref<2x4xf32>
  return
}

// -----

func.func @gaps(%x: memref<2x4xf32, strided<[8, 1]>>, %d: memref<2x4xf32>) {
  // expected-error @+1 {{exchanges 'memref<2x4xf32, strided<[8, 1]>>', which is no buffer without gaps}}
  attune.all_reduce %x into %d accumulate : memref<2x4xf32, strided<[8, 1]>>, memref<2x4xf32>
  return
}
