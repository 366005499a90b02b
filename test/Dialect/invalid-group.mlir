// RUN: attune-opt %s --split-input-file --verify-diagnostics

// G1: tensors give a tensor
func.func @g1(%x: tensor<4x?x12xf32>, %w: tensor<4x3x12x8xf32>, %d: tensor<4x?x24xf32>) {
  // expected-error @+1 {{'attune.grouped_linear_into' op writes a tensor and gives none}}
  attune.grouped_linear_into %x, %w into %d : tensor<4x?x12xf32>, tensor<4x3x12x8xf32>, tensor<4x?x24xf32>
  return
}

// -----

// G1: buffers give none
func.func @g1_buffer(%x: memref<4x?x12xf32>, %w: memref<4x3x12x8xf32>, %d: memref<4x?x24xf32>) {
  // expected-error @+1 {{writes a buffer and gives a tensor}}
  %y = attune.grouped_linear_into %x, %w into %d : memref<4x?x12xf32>, memref<4x3x12x8xf32>, memref<4x?x24xf32> -> tensor<4x?x24xf32>
  return
}

// -----

// G1: not both
func.func @g1_mixed(%e: memref<?x2xi64>, %t: tensor<?x3xi64>, %f: tensor<?xi64>, %p: tensor<?xi64>) {
  // expected-error @+1 {{has both tensors and buffers as operands}}
  attune.expert_tasks_into %e into %t, %f, %p experts 8 rows 64 : memref<?x2xi64>, tensor<?x3xi64>, tensor<?xi64>, tensor<?xi64>
  return
}

// -----

// G2: batches come with batches
func.func @g2(%x: tensor<?x12xf32>, %w: tensor<4x3x12x8xf32>, %d: tensor<?x24xf32>) {
  // expected-error @+1 {{has an input of type 'tensor<?x12xf32>' where it takes [?, ?, 12]}}
  %y = attune.grouped_linear_into %x, %w into %d : tensor<?x12xf32>, tensor<4x3x12x8xf32>, tensor<?x24xf32> -> tensor<?x24xf32>
  return
}

// -----

// G2: as many rows
func.func @g2_rows(%x: tensor<4x5x12xf32>, %w: tensor<4x3x12x8xf32>, %d: tensor<4x6x24xf32>) {
  // expected-error @+1 {{has a destination of type 'tensor<4x6x24xf32>' where it takes [4, 5, ?]}}
  %y = attune.grouped_linear_into %x, %w into %d : tensor<4x5x12xf32>, tensor<4x3x12x8xf32>, tensor<4x6x24xf32> -> tensor<4x6x24xf32>
  return
}

// -----

// G2: a stack
func.func @g2_stack(%x: tensor<4x5x12xf32>, %w: tensor<3x12x8xf32>, %d: tensor<4x5x24xf32>) {
  // expected-error @+1 {{has a stack of rank 3, not 4}}
  %y = attune.grouped_linear_into %x, %w into %d : tensor<4x5x12xf32>, tensor<3x12x8xf32>, tensor<4x5x24xf32> -> tensor<4x5x24xf32>
  return
}

// -----

// G2: sizes that kernels are made for
func.func @g2_unknown(%x: tensor<4x?x12xf32>, %w: tensor<4x3x12x8xf32>, %d: tensor<4x?x?xf32>) {
  // expected-error @+1 {{has matrices, panels or channels whose number is not known}}
  %y = attune.grouped_linear_into %x, %w into %d : tensor<4x?x12xf32>, tensor<4x3x12x8xf32>, tensor<4x?x?xf32> -> tensor<4x?x?xf32>
  return
}

// -----

// G3: panels of gate and up
func.func @g3(%x: tensor<4x?x12xf32>, %w: tensor<4x3x12x8xf32>, %d: tensor<4x?x24xf32>) {
  // expected-error @+1 {{has panels of type 'tensor<4x3x12x8xf32>' where it takes [4, 6, 12, 8]}}
  %y = attune.grouped_linear_into %x, %w into %d gated : tensor<4x?x12xf32>, tensor<4x3x12x8xf32>, tensor<4x?x24xf32> -> tensor<4x?x24xf32>
  return
}

// -----

// G4: a matrix, a row and how many
func.func @g4(%x: tensor<?x12xf32>, %w: tensor<4x3x12x8xf32>, %t: tensor<?x2xi64>, %d: tensor<?x24xf32>) {
  // expected-error @+1 {{has tasks of type 'tensor<?x2xi64>' where it takes [?, 3]}}
  %y = attune.grouped_linear_into %x, %w tasks %t : tensor<?x2xi64> into %d : tensor<?x12xf32>, tensor<4x3x12x8xf32>, tensor<?x24xf32> -> tensor<?x24xf32>
  return
}

// -----

// G4: of i64
func.func @g4_type(%x: tensor<?x12xf32>, %w: tensor<4x3x12x8xf32>, %t: tensor<?x3xi32>, %d: tensor<?x24xf32>) {
  // expected-error @+1 {{has tasks of 'i32', not i64}}
  %y = attune.grouped_linear_into %x, %w tasks %t : tensor<?x3xi32> into %d : tensor<?x12xf32>, tensor<4x3x12x8xf32>, tensor<?x24xf32> -> tensor<?x24xf32>
  return
}

// -----

// G5: a row for each of the destination
func.func @g5(%x: tensor<?x12xf32>, %w: tensor<4x3x12x8xf32>, %t: tensor<?x3xi64>, %f: tensor<5xi64>, %d: tensor<6x24xf32>) {
  // expected-error @+1 {{has rows to take of type 'tensor<5xi64>' where it takes [6]}}
  %y = attune.grouped_linear_into %x, %w tasks %t : tensor<?x3xi64> from %f : tensor<5xi64> into %d : tensor<?x12xf32>, tensor<4x3x12x8xf32>, tensor<6x24xf32> -> tensor<6x24xf32>
  return
}

// -----

// G5: with tasks
func.func @g5_alone(%x: tensor<4x?x12xf32>, %w: tensor<4x3x12x8xf32>, %f: tensor<?xi64>, %d: tensor<4x?x24xf32>) {
  // expected-error @+1 {{takes rows from elsewhere without tasks}}
  %y = attune.grouped_linear_into %x, %w from %f : tensor<?xi64> into %d : tensor<4x?x12xf32>, tensor<4x3x12x8xf32>, tensor<4x?x24xf32> -> tensor<4x?x24xf32>
  return
}

// -----

// G9: a bias for each row of every matrix
func.func @g9(%x: tensor<4x?x12xf32>, %w: tensor<4x3x12x8xf32>, %b: tensor<4x23xf32>, %d: tensor<4x?x24xf32>) {
  // expected-error @+1 {{has biases of type 'tensor<4x23xf32>' where it takes [4, 24]}}
  %y = attune.grouped_linear_into %x, %w bias %b : tensor<4x23xf32> into %d : tensor<4x?x12xf32>, tensor<4x3x12x8xf32>, tensor<4x?x24xf32> -> tensor<4x?x24xf32>
  return
}

// -----

// G10: of a gated product
func.func @g10(%x: tensor<4x?x12xf32>, %w: tensor<4x3x12x8xf32>, %d: tensor<4x?x24xf32>) {
  // expected-error @+1 {{has a limit or an offset of up, which belong to a gated product}}
  %y = attune.grouped_linear_into %x, %w into %d up_offset 1.0 : tensor<4x?x12xf32>, tensor<4x3x12x8xf32>, tensor<4x?x24xf32> -> tensor<4x?x24xf32>
  return
}

// -----

// G6: slots
func.func @g6(%e: tensor<5x2xi64>, %t: tensor<?x3xi64>, %f: tensor<9xi64>, %p: tensor<?xi64>) {
  // expected-error @+1 {{has rows to take of type 'tensor<9xi64>' where it takes [10]}}
  %a, %b, %c = attune.expert_tasks_into %e into %t, %f, %p experts 8 rows 64 : tensor<5x2xi64>, tensor<?x3xi64>, tensor<9xi64>, tensor<?xi64> -> tensor<?x3xi64>, tensor<9xi64>, tensor<?xi64>
  return
}

// -----

// G6: experts of a token
func.func @g6_unknown(%e: tensor<5x?xi64>, %t: tensor<?x3xi64>, %f: tensor<?xi64>, %p: tensor<?xi64>) {
  // expected-error @+1 {{has tokens whose number of experts is not known}}
  %a, %b, %c = attune.expert_tasks_into %e into %t, %f, %p experts 8 rows 64 : tensor<5x?xi64>, tensor<?x3xi64>, tensor<?xi64>, tensor<?xi64> -> tensor<?x3xi64>, tensor<?xi64>, tensor<?xi64>
  return
}

// -----

// G6: blocks with rows
func.func @g6_rows(%e: tensor<5x2xi64>, %t: tensor<?x3xi64>, %f: tensor<?xi64>, %p: tensor<?xi64>) {
  // expected-error @+1 {{has no expert, or blocks without rows}}
  %a, %b, %c = attune.expert_tasks_into %e into %t, %f, %p experts 8 rows 0 : tensor<5x2xi64>, tensor<?x3xi64>, tensor<?xi64>, tensor<?xi64> -> tensor<?x3xi64>, tensor<?xi64>, tensor<?xi64>
  return
}

// -----

// G1: tensors give tensors
func.func @g1_sums(%q: tensor<2x4x?x8xf32>, %k: tensor<2x2x?x8xf32>, %v: tensor<2x2x?x6xf32>, %d: tensor<2x4x?x6xf32>) {
  // expected-error @+1 {{writes a tensor and gives none}}
  attune.linear_attention_into %q, %k, %v <relu> into %d : tensor<2x4x?x8xf32>, tensor<2x2x?x8xf32>, tensor<2x2x?x6xf32>, tensor<2x4x?x6xf32>
  return
}

// -----

// G7: known widths
func.func @g7_unknown(%q: memref<2x4x?x?xf32>, %k: memref<2x2x?x8xf32>, %v: memref<2x2x?x6xf32>, %d: memref<2x4x?x6xf32>) {
  // expected-error @+1 {{has heads of type 'memref<2x4x?x?xf32>' whose number or width is not known}}
  attune.linear_attention_into %q, %k, %v <relu> into %d : memref<2x4x?x?xf32>, memref<2x2x?x8xf32>, memref<2x2x?x6xf32>, memref<2x4x?x6xf32>
  return
}

// -----

// G7: keys as wide as queries
func.func @g7_width(%q: memref<2x4x?x8xf32>, %k: memref<2x2x?x7xf32>, %v: memref<2x2x?x6xf32>, %d: memref<2x4x?x6xf32>) {
  // expected-error @+1 {{has keys of type 'memref<2x2x?x7xf32>' where it takes [2, ?, ?, 8]}}
  attune.linear_attention_into %q, %k, %v <relu> into %d : memref<2x4x?x8xf32>, memref<2x2x?x7xf32>, memref<2x2x?x6xf32>, memref<2x4x?x6xf32>
  return
}

// -----

// G7: causal, as many queries as keys
func.func @g7_causal(%q: memref<2x4x5x8xf32>, %k: memref<2x2x7x8xf32>, %v: memref<2x2x?x6xf32>, %d: memref<2x4x?x6xf32>) {
  // expected-error @+1 {{has keys of type 'memref<2x2x7x8xf32>' where it takes [2, ?, 5, 8]}}
  attune.linear_attention_into %q, %k, %v <relu> causal into %d : memref<2x4x5x8xf32>, memref<2x2x7x8xf32>, memref<2x2x?x6xf32>, memref<2x4x?x6xf32>
  return
}

// -----

// G7: as many values as keys
func.func @g7_values(%q: memref<2x4x?x8xf32>, %k: memref<2x2x?x8xf32>, %v: memref<2x1x?x6xf32>, %d: memref<2x4x?x6xf32>) {
  // expected-error @+1 {{has values of type 'memref<2x1x?x6xf32>' where it takes [2, 2, ?, ?]}}
  attune.linear_attention_into %q, %k, %v <relu> into %d : memref<2x4x?x8xf32>, memref<2x2x?x8xf32>, memref<2x1x?x6xf32>, memref<2x4x?x6xf32>
  return
}

// -----

// G7: a destination of the values' width
func.func @g7_dest(%q: memref<2x4x?x8xf32>, %k: memref<2x2x?x8xf32>, %v: memref<2x2x?x6xf32>, %d: memref<2x4x?x8xf32>) {
  // expected-error @+1 {{has a destination of type 'memref<2x4x?x8xf32>' where it takes [2, 4, ?, 6]}}
  attune.linear_attention_into %q, %k, %v <relu> into %d : memref<2x4x?x8xf32>, memref<2x2x?x8xf32>, memref<2x2x?x6xf32>, memref<2x4x?x8xf32>
  return
}

// -----

// G7: heads that share
func.func @g7_heads(%q: memref<2x4x?x8xf32>, %k: memref<2x3x?x8xf32>, %v: memref<2x3x?x6xf32>, %d: memref<2x4x?x6xf32>) {
  // expected-error @+1 {{has 4 query heads, which 3 key/value heads cannot share evenly}}
  attune.linear_attention_into %q, %k, %v <relu> into %d : memref<2x4x?x8xf32>, memref<2x3x?x8xf32>, memref<2x3x?x6xf32>, memref<2x4x?x6xf32>
  return
}

// -----

// G8: a column that normalises
func.func @g8_state(%q: memref<2x4x?x8xf32>, %k: memref<2x2x?x8xf32>, %v: memref<2x2x?x6xf32>, %d: memref<2x4x?x6xf32>, %s: memref<2x2x8x6xf32>) {
  // expected-error @+1 {{has a state of type 'memref<2x2x8x6xf32>' where it takes [2, 2, 8, 7]}}
  attune.linear_attention_into %q, %k, %v <relu> state %s : memref<2x2x8x6xf32> into %d : memref<2x4x?x8xf32>, memref<2x2x?x8xf32>, memref<2x2x?x6xf32>, memref<2x4x?x6xf32>
  return
}

// -----

// G8: the new state
func.func @g8_sums(%q: memref<2x4x?x8xf32>, %k: memref<2x2x?x8xf32>, %v: memref<2x2x?x6xf32>, %d: memref<2x4x?x6xf32>, %s: memref<2x4x8x7xf32>) {
  // expected-error @+1 {{has a state of type 'memref<2x4x8x7xf32>' where it takes [2, 2, 8, 7]}}
  attune.linear_attention_into %q, %k, %v <relu> into %d sums %s : memref<2x4x8x7xf32> : memref<2x4x?x8xf32>, memref<2x2x?x8xf32>, memref<2x2x?x6xf32>, memref<2x4x?x6xf32>
  return
}

// -----

// G8: a mask of keys
func.func @g8_mask(%q: memref<2x4x?x8xf32>, %k: memref<2x2x?x8xf32>, %v: memref<2x2x?x6xf32>, %d: memref<2x4x?x6xf32>, %m: memref<2x1x4x?xi1>) {
  // expected-error @+1 {{has a mask of type 'memref<2x1x4x?xi1>' where it takes [?, 1, 1, ?]}}
  attune.linear_attention_into %q, %k, %v <relu> mask %m : memref<2x1x4x?xi1> into %d : memref<2x4x?x8xf32>, memref<2x2x?x8xf32>, memref<2x2x?x6xf32>, memref<2x4x?x6xf32>
  return
}

// -----

// G11: whole groups
func.func @g11(%x: tensor<?x64xf32>, %w: tensor<8x24x8x32xi8>, %s: tensor<8x24x3x8xf16>, %t: tensor<?x3xi64>, %d: tensor<?x96xf32>) {
  // expected-error @+1 {{has scales, but not those of whole groups of bytes, or of two numbers in each}}
  %y = attune.grouped_linear_into %x, %w scales %s : tensor<8x24x3x8xf16> tasks %t : tensor<?x3xi64> into %d activation <silu> gated : tensor<?x64xf32>, tensor<8x24x8x32xi8>, tensor<?x96xf32> -> tensor<?x96xf32>
  return
}

// -----

// G11: zero points stand beside scales
func.func @g11_zeros(%x: tensor<?x64xf32>, %w: tensor<8x24x64x8xbf16>, %t: tensor<?x3xi64>, %d: tensor<?x96xf32>) {
  // expected-error @+1 {{has zero points without scales}}
  %y = attune.grouped_linear_into %x, %w zeros tasks %t : tensor<?x3xi64> into %d activation <silu> gated : tensor<?x64xf32>, tensor<8x24x64x8xbf16>, tensor<?x96xf32> -> tensor<?x96xf32>
  return
}

// -----

// G1: tensors give a tensor
func.func @g1_normed(%x: tensor<?x64xbf16>, %o: tensor<?x64xf32>, %g: tensor<64xf32>, %w: tensor<12x64x8xbf16>, %d: tensor<?x96xf32>) {
  // expected-error @+1 {{writes a tensor and gives none}}
  attune.normed_linear_into %x of %o eps 1.0e-5 few 8, %w into %d : tensor<?x64xbf16>, tensor<?x64xf32>, tensor<12x64x8xbf16>, tensor<?x96xf32>
  return
}

// -----

// G12: as many rows
func.func @g12_rows(%x: tensor<4x64xbf16>, %o: tensor<3x64xf32>, %w: tensor<12x64x8xbf16>, %d: tensor<4x96xf32>) {
  // expected-error @+1 {{has rows to normalise of type 'tensor<3x64xf32>' where it takes [4, 64]}}
  %y = attune.normed_linear_into %x of %o eps 1.0e-5 few 8, %w into %d : tensor<4x64xbf16>, tensor<3x64xf32>, tensor<12x64x8xbf16>, tensor<4x96xf32> -> tensor<4x96xf32>
  return
}

// -----

// G12: panels of gate and up
func.func @g12_panels(%x: tensor<?x64xbf16>, %o: tensor<?x64xf32>, %g: tensor<64xf32>, %w: tensor<12x64x8xbf16>, %d: tensor<?x96xf32>) {
  // expected-error @+1 {{has panels of type 'tensor<12x64x8xbf16>' where it takes [24, 64, 8]}}
  %y = attune.normed_linear_into %x of %o eps 1.0e-5 few 8, %w into %d gated : tensor<?x64xbf16>, tensor<?x64xf32>, tensor<12x64x8xbf16>, tensor<?x96xf32> -> tensor<?x96xf32>
  return
}

// -----

// G12: an entry for each channel
func.func @g12_bias(%x: tensor<?x64xbf16>, %o: tensor<?x64xf32>, %g: tensor<64xf32>, %w: tensor<12x64x8xbf16>, %d: tensor<?x96xf32>) {
  // expected-error @+1 {{has a bias of type 'tensor<64xf32>' where it takes [96]}}
  %y = attune.normed_linear_into %x of %o eps 1.0e-5 few 8, %w bias %g : tensor<64xf32> into %d : tensor<?x64xbf16>, tensor<?x64xf32>, tensor<12x64x8xbf16>, tensor<?x96xf32> -> tensor<?x96xf32>
  return
}

// -----

// G13: an entry for each column
func.func @g13(%x: tensor<?x64xbf16>, %o: tensor<?x64xf32>, %g: tensor<32xf32>, %w: tensor<12x64x8xbf16>, %d: tensor<?x96xf32>) {
  // expected-error @+1 {{has a gamma or beta of type 'tensor<32xf32>' where it takes [64]}}
  %y = attune.normed_linear_into %x of %o gamma %g : tensor<32xf32> eps 1.0e-5 few 8, %w into %d : tensor<?x64xbf16>, tensor<?x64xf32>, tensor<12x64x8xbf16>, tensor<?x96xf32> -> tensor<?x96xf32>
  return
}

// -----

// G13: RMSNorm has no beta
func.func @g13_beta(%x: tensor<?x64xbf16>, %o: tensor<?x64xf32>, %g: tensor<64xf32>, %w: tensor<12x64x8xbf16>, %d: tensor<?x96xf32>) {
  // expected-error @+1 {{adds a beta to a norm that is not centred}}
  %y = attune.normed_linear_into %x of %o beta %g : tensor<64xf32> eps 1.0e-5 few 8, %w into %d : tensor<?x64xbf16>, tensor<?x64xf32>, tensor<12x64x8xbf16>, tensor<?x96xf32> -> tensor<?x96xf32>
  return
}

// -----

// G13: no root of a negative number
func.func @g13_eps(%x: tensor<?x64xbf16>, %o: tensor<?x64xf32>, %g: tensor<64xf32>, %w: tensor<12x64x8xbf16>, %d: tensor<?x96xf32>) {
  // expected-error @+1 {{normalises rows with a negative eps, or none}}
  %y = attune.normed_linear_into %x of %o eps -1.0e-5 few 8, %w into %d : tensor<?x64xbf16>, tensor<?x64xf32>, tensor<12x64x8xbf16>, tensor<?x96xf32> -> tensor<?x96xf32>
  return
}

// -----

// G13: some rows
func.func @g13_few(%x: tensor<?x64xbf16>, %o: tensor<?x64xf32>, %g: tensor<64xf32>, %w: tensor<12x64x8xbf16>, %d: tensor<?x96xf32>) {
  // expected-error @+1 {{normalises rows with a negative eps, or none}}
  %y = attune.normed_linear_into %x of %o eps 1.0e-5 few 0, %w into %d : tensor<?x64xbf16>, tensor<?x64xf32>, tensor<12x64x8xbf16>, tensor<?x96xf32> -> tensor<?x96xf32>
  return
}

// -----

// G14: whole groups
func.func @g14(%x: tensor<?x64xbf16>, %o: tensor<?x64xf32>, %s: tensor<12x3x8xf16>, %w: tensor<12x8x32xi8>, %d: tensor<?x96xf32>) {
  // expected-error @+1 {{has scales, but not those of whole groups of bytes, or of two numbers in each}}
  %y = attune.normed_linear_into %x of %o eps 1.0e-5 few 8, %w scales %s : tensor<12x3x8xf16> into %d : tensor<?x64xbf16>, tensor<?x64xf32>, tensor<12x8x32xi8>, tensor<?x96xf32> -> tensor<?x96xf32>
  return
}

// -----

// G14: zero points stand beside scales
func.func @g14_zeros(%x: tensor<?x64xbf16>, %o: tensor<?x64xf32>, %g: tensor<64xf32>, %w: tensor<12x64x8xbf16>, %d: tensor<?x96xf32>) {
  // expected-error @+1 {{has zero points without scales}}
  %y = attune.normed_linear_into %x of %o eps 1.0e-5 few 8, %w zeros into %d : tensor<?x64xbf16>, tensor<?x64xf32>, tensor<12x64x8xbf16>, tensor<?x96xf32> -> tensor<?x96xf32>
  return
}
