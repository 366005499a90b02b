// RUN: attune-opt %s --split-input-file --verify-diagnostics

// N1: tensors give a tensor
func.func @n1(%q: tensor<1x8x?x64xbf16>, %k: tensor<1x2x?x64xbf16>, %d: tensor<1x8x?x64xbf16>) {
  // expected-error @+1 {{'attune.attention_into' op gives 0 tensors where it writes 1 of them}}
  attune.attention_into %q, %k, %k scale 0.125 into %d : tensor<1x8x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x8x?x64xbf16>
  return
}

// -----

// N1: buffers give none
func.func @n1_buffer(%q: memref<1x8x?x64xbf16>, %k: memref<1x2x?x64xbf16>, %d: memref<1x8x?x64xbf16>) {
  // expected-error @+1 {{gives 1 tensors where it writes 1 buffers}}
  %r = attune.attention_into %q, %k, %k scale 0.125 into %d : memref<1x8x?x64xbf16>, memref<1x2x?x64xbf16>, memref<1x2x?x64xbf16>, memref<1x8x?x64xbf16> -> tensor<1x8x?x64xbf16>
  return
}

// -----

// N1: not both
func.func @n1_mixed(%q: memref<1x8x?x64xbf16>, %k: memref<1x2x?x64xbf16>, %d: tensor<1x8x?x64xbf16>) {
  // expected-error @+1 {{has both tensors and buffers as operands}}
  attune.attention_into %q, %k, %k scale 0.125 into %d : memref<1x8x?x64xbf16>, memref<1x2x?x64xbf16>, memref<1x2x?x64xbf16>, tensor<1x8x?x64xbf16>
  return
}

// -----

// N2: rank
func.func @n2_rank(%q: memref<8x?x64xbf16>, %k: memref<1x2x?x64xbf16>, %d: memref<1x8x?x64xbf16>) {
  // expected-error @+1 {{has a query of rank 3, not 4}}
  attune.attention_into %q, %k, %k scale 0.125 into %d : memref<8x?x64xbf16>, memref<1x2x?x64xbf16>, memref<1x2x?x64xbf16>, memref<1x8x?x64xbf16>
  return
}

// -----

// N2: known widths
func.func @n2_known(%q: memref<1x8x?x64xbf16>, %k: memref<1x2x?x?xbf16>, %d: memref<1x8x?x64xbf16>) {
  // expected-error @+1 {{has a key of unknown heads or width}}
  attune.attention_into %q, %k, %k scale 0.125 into %d : memref<1x8x?x64xbf16>, memref<1x2x?x?xbf16>, memref<1x2x?x?xbf16>, memref<1x8x?x64xbf16>
  return
}

// -----

// N2: one width
func.func @n2_width(%q: memref<1x8x?x32xbf16>, %k: memref<1x2x?x64xbf16>, %d: memref<1x8x?x64xbf16>) {
  // expected-error @+1 {{has 64 channels of keys where it takes 32}}
  attune.attention_into %q, %k, %k scale 0.125 into %d : memref<1x8x?x32xbf16>, memref<1x2x?x64xbf16>, memref<1x2x?x64xbf16>, memref<1x8x?x64xbf16>
  return
}

// -----

// N2: one type
func.func @n2_type(%q: memref<1x8x?x64xf32>, %k: memref<1x2x?x64xbf16>, %d: memref<1x8x?x64xbf16>) {
  // expected-error @+1 {{has queries, keys and values of more than one type}}
  attune.attention_into %q, %k, %k scale 0.125 into %d : memref<1x8x?x64xf32>, memref<1x2x?x64xbf16>, memref<1x2x?x64xbf16>, memref<1x8x?x64xbf16>
  return
}

// -----

// N2: rows in bytes have a scale
func.func @n2_scale(%q: memref<1x8x?x64xf32>, %k: memref<1x2x?x64xi8>, %d: memref<1x8x?x64xf32>) {
  // expected-error @+1 {{has 64 channels of keys where it takes 68}}
  attune.attention_into %q, %k, %k scale 0.125 into %d : memref<1x8x?x64xf32>, memref<1x2x?x64xi8>, memref<1x2x?x64xi8>, memref<1x8x?x64xf32>
  return
}

// -----

// N2: one type of bytes
func.func @n2_bytes(%q: memref<1x8x?x64xf32>, %k: memref<1x2x?x68xi8>, %v: memref<1x2x?x68xf8E4M3FN>, %d: memref<1x8x?x64xf32>) {
  // expected-error @+1 {{has queries, keys and values of more than one type}}
  attune.attention_into %q, %k, %v scale 0.125 into %d : memref<1x8x?x64xf32>, memref<1x2x?x68xi8>, memref<1x2x?x68xf8E4M3FN>, memref<1x8x?x64xf32>
  return
}

// -----

// N3: heads of keys and values
func.func @n3(%q: memref<1x8x?x64xbf16>, %k: memref<1x2x?x64xbf16>, %v: memref<1x4x?x64xbf16>, %d: memref<1x8x?x64xbf16>) {
  // expected-error @+1 {{has 4 heads of values where it takes 2}}
  attune.attention_into %q, %k, %v scale 0.125 into %d : memref<1x8x?x64xbf16>, memref<1x2x?x64xbf16>, memref<1x4x?x64xbf16>, memref<1x8x?x64xbf16>
  return
}

// -----

// N3: shared evenly
func.func @n3_group(%q: memref<1x8x?x64xbf16>, %k: memref<1x3x?x64xbf16>, %d: memref<1x8x?x64xbf16>) {
  // expected-error @+1 {{has 8 query heads, which 3 key/value heads cannot share evenly}}
  attune.attention_into %q, %k, %k scale 0.125 into %d : memref<1x8x?x64xbf16>, memref<1x3x?x64xbf16>, memref<1x3x?x64xbf16>, memref<1x8x?x64xbf16>
  return
}

// -----

// N4: width of the values
func.func @n4(%q: memref<1x8x?x64xbf16>, %k: memref<1x2x?x64xbf16>, %d: memref<1x8x?x32xbf16>) {
  // expected-error @+1 {{has 32 channels of results where it takes 64}}
  attune.attention_into %q, %k, %k scale 0.125 into %d : memref<1x8x?x64xbf16>, memref<1x2x?x64xbf16>, memref<1x2x?x64xbf16>, memref<1x8x?x32xbf16>
  return
}

// -----

// N4: width of all heads
func.func @n4_merged(%q: memref<1x8x?x64xbf16>, %k: memref<1x2x?x64xbf16>, %d: memref<1x?x256xbf16>) {
  // expected-error @+1 {{has 256 channels of merged results where it takes 512}}
  attune.attention_into %q, %k, %k scale 0.125 into %d : memref<1x8x?x64xbf16>, memref<1x2x?x64xbf16>, memref<1x2x?x64xbf16>, memref<1x?x256xbf16>
  return
}
