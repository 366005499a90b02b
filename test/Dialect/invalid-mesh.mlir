// RUN: attune-opt %s --split-input-file --verify-diagnostics

// C1: tensors or buffers
func.func @c1(%x: tensor<4xf32>, %d: memref<4xf32>) {
  // expected-error @+1 {{has both tensors and buffers as operands}}
  attune.all_reduce %x into %d : tensor<4xf32>, memref<4xf32>
  return
}

// -----

// C1: a tensor is given
func.func @c1_2(%x: tensor<4xf32>, %d: tensor<4xf32>) {
  // expected-error @+1 {{writes a tensor and gives none}}
  attune.all_reduce %x into %d : tensor<4xf32>, tensor<4xf32>
  return
}

// -----

// C1: of f32
func.func @c1_3(%x: memref<4xbf16>, %d: memref<4xbf16>) {
  // expected-error @+1 {{has an operand of type 'memref<4xbf16>', but ranks exchange f32}}
  attune.all_reduce %x into %d : memref<4xbf16>, memref<4xbf16>
  return
}

// -----

// C2: the same shape
func.func @c2(%x: memref<4xf32>, %d: memref<5xf32>) {
  // expected-error @+1 {{sums 'memref<4xf32>' into 'memref<5xf32>'}}
  attune.all_reduce %x into %d : memref<4xf32>, memref<5xf32>
  return
}

// -----

// C3: no more columns than there are
func.func @c3(%x: memref<2x4xf32>, %d: memref<2x9xf32>) {
  %n = arith.constant 5 : index
  // expected-error @+1 {{puts 5 columns of 'memref<2x4xf32>' side by side in 'memref<2x9xf32>'}}
  attune.all_gather %x columns %n into %d : memref<2x4xf32>, memref<2x9xf32>
  return
}

// -----

// C3: the same rows
func.func @c3_2(%x: memref<2x4xf32>, %d: memref<3x9xf32>) {
  %n = arith.constant 4 : index
  // expected-error @+1 {{puts 4 columns of 'memref<2x4xf32>' side by side in 'memref<3x9xf32>'}}
  attune.all_gather %x columns %n into %d : memref<2x4xf32>, memref<3x9xf32>
  return
}

// -----

// C2: the same shape
func.func @c2_2(%x: memref<2x4xf32>, %l: memref<2xf32>, %d: memref<2x5xf32>) {
  // expected-error @+1 {{merges 'memref<2x4xf32>' into 'memref<2x5xf32>'}}
  attune.all_merge %x, %l into %d : memref<2x4xf32>, memref<2xf32>, memref<2x5xf32>
  return
}

// -----

// C4: one number a row
func.func @c4(%x: memref<2x4xf32>, %l: memref<4xf32>, %d: memref<2x4xf32>) {
  // expected-error @+1 {{merges 'memref<2x4xf32>' by 'memref<4xf32>'}}
  attune.all_merge %x, %l into %d : memref<2x4xf32>, memref<4xf32>, memref<2x4xf32>
  return
}

// -----

// C5: both or neither
func.func @c5(%x: memref<2x4xf32>, %d: memref<2x4xf32>) {
  // expected-error @+1 {{needs both experts and below, or neither}}
  "attune.all_reduce"(%x, %d) <{below = 2 : i64}> : (memref<2x4xf32>, memref<2x4xf32>) -> ()
  return
}

// -----

// C5: numbers for each row
func.func @c5_2(%x: memref<2x4xf32>, %e: memref<3x1xi64>, %d: memref<2x4xf32>) {
  // expected-error @+1 {{sums rows of 'memref<2x4xf32>' that experts of 'memref<3x1xi64>' choose}}
  attune.all_reduce %x experts %e below 2 : memref<3x1xi64> into %d : memref<2x4xf32>, memref<2x4xf32>
  return
}

// -----

// C5: of i64
func.func @c5_3(%x: memref<2x4xf32>, %e: memref<2x1xi32>, %d: memref<2x4xf32>) {
  // expected-error @+1 {{sums rows of 'memref<2x4xf32>' that experts of 'memref<2x1xi32>' choose}}
  attune.all_reduce %x experts %e below 2 : memref<2x1xi32> into %d : memref<2x4xf32>, memref<2x4xf32>
  return
}

// -----

// C5: where the input is
func.func @c5_4(%x: memref<2x4xf32>, %e: tensor<2x1xi64>, %d: memref<2x4xf32>) {
  // expected-error @+1 {{sums rows of 'memref<2x4xf32>' that experts of 'tensor<2x1xi64>' choose}}
  attune.all_reduce %x experts %e below 2 : tensor<2x1xi64> into %d : memref<2x4xf32>, memref<2x4xf32>
  return
}
