// RUN: attune-opt %s --pass-pipeline="builtin.module(convert-attune-to-gpu)" --split-input-file --verify-diagnostics

func.func @no_tensor_cores(%x: memref<?x37xf16>, %w: memref<8x37x8xf16>, %d: memref<?x64xf16>) {
  // expected-error @+1 {{a schedule has no tile for a product that tensor cores cannot take}}
  attune.linear_into %x, %w into %d {attune.tile_rows = 64} : memref<?x37xf16>, memref<8x37x8xf16>, memref<?x64xf16>
  return
}

// -----

func.func @rows(%x: memref<?x64xbf16>, %w: memref<12x64x8xbf16>, %d: memref<?x96xbf16>) {
  // expected-error @+1 {{'attune.tile_rows' may be 32, 64 or 128 here, got 96}}
  attune.linear_into %x, %w into %d {attune.tile_rows = 96} : memref<?x64xbf16>, memref<12x64x8xbf16>, memref<?x96xbf16>
  return
}

// -----

func.func @keys(%q: memref<1x8x?x64xf32>, %d: memref<1x8x?x64xf32>) {
  // expected-error @+1 {{'attune.key_block' may be 8, 16, 32, 64 or 128 here, got 4}}
  attune.attention_into %q, %q, %q scale 0.125 into %d {attune.key_block = 4} : memref<1x8x?x64xf32>, memref<1x8x?x64xf32>, memref<1x8x?x64xf32>, memref<1x8x?x64xf32>
  return
}
