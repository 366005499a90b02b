//===- AttuneCacheOps.td - Key/value cache -------------------*- tablegen -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_CACHE_OPS_TD
#define ATTUNE_CACHE_OPS_TD

include "AttuneTypes.td"

def Attune_CacheAppendOp : Attune_Op<"cache_append",
    [Pure, Attune_Reify, AllTypesMatch<["cache", "result"]>]> {
  let summary = "A cache with the keys or values of new tokens written";
  let description = [{
    `R = cache; R[layer, b, h, past + t, d] = new[b, h, t, d]`. The caller sees
    to it that past + T <= capacity. A value: bufferization makes it in place.

    `past` is a number for all sequences, or a tensor with one for each. Then
    each has one new row: `R[layer, b, h, past[b], d] = new[b, h, 0, d]`, and the
    caller sees to it that T is 1. `sequence_major` says
    that the cache is [batch, layers, heads, capacity, width], all layers of a
    sequence side by side: the first sequences of such a cache are one too.

    Rows of f32 round once where the cache has 16 bits. Where it has bytes, D
    numbers are followed by the four bytes of a scale (f32):

    ```
    scale  = max_d |new[d]| / most            most = 127 for i8, 448 for f8E4M3FN
    R[d]   = round(new[d] * most / max_d |new[d]|)      to nearest, ties to even
    ```

    A row of zeros has the scale 0, and one with a NaN or infinity that one.
    Else nothing rounds.
    Source: Shazeer (2019), incremental inference; Yu et al. (2022), Orca, for
    sequences of unequal length.

    Verifier rules (tests: `invalid-cache.mlir`, one case per label):
    - C1: batch, heads and width of cache and new rows agree, and so do element
      types, unless the new rows are f32 or the cache is bytes.
    - C2: there are no more new rows than the cache holds.
    - C3: a tensor of past positions is [B], and T is 1.

    ```mlir
    %c1 = attune.cache_append %k into %c0[%layer, %past]
       : tensor<?x2x?x32xf32>, tensor<5x?x2x?x32xbf16>
    ```
    ```mlir
    %c2 = attune.cache_append %k into %c0[%layer, %lengths : tensor<?xi64>]
       sequence_major : tensor<?x2x1x32xf32>, tensor<?x5x2x?x32xbf16>
    ```
    ```mlir
    %c3 = attune.cache_append %k into %c0[%layer, %past]
       : tensor<?x2x?x32xf32>, tensor<5x?x2x?x36xi8>
    ```
  }];
  let arguments = (ins Attune_Heads:$new_rows, Attune_Cache:$cache,
                       Index:$layer, AnyTypeOf<[Index, Attune_Lengths]>:$past,
                       UnitAttr:$sequence_major);
  let results = (outs Attune_Cache:$result);
  let assemblyFormat = [{
    $new_rows `into` $cache `[` $layer `,` custom<Past>($past, type($past)) `]`
    (`sequence_major` $sequence_major^)? attr-dict
    `:` type($new_rows) `,` type($cache)
  }];
  let hasVerifier = 1;
}

def Attune_CacheReadOp : Attune_Op<"cache_read", [Pure, Attune_Reify]> {
  let summary = "The first rows of one layer of a cache";
  let description = [{
    `Y[b,h,t,d] = cache[layer, b, h, t, d]` for t < length, or with
    `sequence_major` `cache[b, layer, h, t, d]`.

    Nothing is computed, so nothing rounds. The result has the cache's element
    type: it is a view, and what reads it widens, or takes the scale of its
    rows.
    Source: Shazeer (2019), incremental inference.

    Verifier rules (tests: `invalid-cache.mlir`, one case per label):
    - C1: batch, heads, width and element type of cache and result agree.

    ```mlir
    %r = attune.cache_read %c1[%layer] length %n
       : tensor<5x?x2x?x32xbf16> -> tensor<?x2x?x32xbf16>
    ```
  }];
  let arguments = (ins Attune_Cache:$cache, Index:$layer, Index:$length,
                       UnitAttr:$sequence_major);
  let results = (outs Attune_CachedHeads:$result);
  let assemblyFormat = [{
    $cache `[` $layer `]` `length` $length
    (`sequence_major` $sequence_major^)? attr-dict
    `:` type($cache) `->` type($result)
  }];
  let hasVerifier = 1;
}

#endif // ATTUNE_CACHE_OPS_TD
