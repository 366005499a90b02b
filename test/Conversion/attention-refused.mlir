// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-attention-to-online,convert-attune-online-to-vector))" --split-input-file --verify-diagnostics
// RUN: not attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-attention-to-online{key-block=0}))" --split-input-file 2>&1 | FileCheck %s --check-prefix=BLOCK
// RUN: not attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-attention-to-online{query-bytes=-1}))" --split-input-file 2>&1 | FileCheck %s --check-prefix=BYTES
// RUN: not attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-attention-to-online{threads=0}))" --split-input-file 2>&1 | FileCheck %s --check-prefix=THREADS
// RUN: not attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-online-to-vector{fetch-bytes=-1}))" --split-input-file 2>&1 | FileCheck %s --check-prefix=LANES
// RUN: not attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-online-to-vector{near-bytes=-1}))" --split-input-file 2>&1 | FileCheck %s --check-prefix=LANES
// RUN: not attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-online-to-vector{lanes=12}))" --split-input-file 2>&1 | FileCheck %s --check-prefix=LANES

// BLOCK: error: query-block and key-block must be positive
// BYTES: error: query-bytes, key-bytes and matrix-rows must be 0 or positive
// THREADS: error: rows, threads, part-bytes, cache-bytes, line-cycles and multiply-adds must be positive
// LANES: error: lanes must be a positive multiple of 8, rows and value-bytes positive, fetch-bytes, near-bytes and unrolled 0 or positive

func.func @dynamic_heads(%q: tensor<1x?x4x8xf32>) -> tensor<1x?x4x8xf32> {
  // expected-error @+1 {{needs static head counts and widths to become loops}}
  %y = attune.attention %q, %q, %q scale 0.5 : tensor<1x?x4x8xf32>, tensor<1x?x4x8xf32>, tensor<1x?x4x8xf32> -> tensor<1x?x4x8xf32>
  return %y : tensor<1x?x4x8xf32>
}

// -----

// A step that could be over any number of keys would need scratch of any size.
func.func @no_bound(%q: tensor<1x1x4x8xf32>, %k: tensor<1x1x?x8xf32>, %n: index, %acc: tensor<1x1x4x8xf32>, %max: tensor<1x1x4xf32>, %sum: tensor<1x1x4xf32>) -> tensor<1x1x4x8xf32> {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  // expected-error @+1 {{needs static heads and widths, and numbers of queries and keys bounded by constants}}
  %s:3 = attune.online_attention %q, %k, %k scale 0.5 at [%c0, %c0] of [%c4, %n]
    outs(%acc, %max, %sum : tensor<1x1x4x8xf32>, tensor<1x1x4xf32>, tensor<1x1x4xf32>)
    : tensor<1x1x4x8xf32>, tensor<1x1x?x8xf32>, tensor<1x1x?x8xf32> -> tensor<1x1x4x8xf32>, tensor<1x1x4xf32>, tensor<1x1x4xf32>
  return %s#0 : tensor<1x1x4x8xf32>
}
