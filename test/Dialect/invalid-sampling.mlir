// RUN: attune-opt %s --split-input-file --verify-diagnostics

// T1: ids and values have as many rows as logits
func.func @t1(%x: tensor<2x50xf32>, %k: index) {
  // expected-error @+2 {{has ids rows 3, but logits rows 2}}
  // expected-note @-2 {{logits comes from here}}
  %i, %v = attune.top_k %x count %k : tensor<2x50xf32> -> tensor<3x?xi64>, tensor<2x?xf32>
  return
}

// -----

// T1: values, too
func.func @t1_2(%x: tensor<2x50xf32>, %k: index) {
  // expected-error @+2 {{has values rows 4, but logits rows 2}}
  // expected-note @-2 {{logits comes from here}}
  %i, %v = attune.top_k %x count %k : tensor<2x50xf32> -> tensor<2x?xi64>, tensor<4x?xf32>
  return
}

// -----

// T2: as many columns as a constant count says
func.func @t2(%x: tensor<2x50xf32>) {
  %k = arith.constant 4 : index
  // expected-error @+1 {{has 5 columns of values, but counts 4}}
  %i, %v = attune.top_k %x count %k : tensor<2x50xf32> -> tensor<2x4xi64>, tensor<2x5xf32>
  return
}

// -----

// T2: nobody knows how many there are of another count
func.func @t2_2(%x: tensor<2x50xf32>, %k: index) {
  // expected-error @+1 {{has 5 columns of ids, but counts what is not known}}
  %i, %v = attune.top_k %x count %k : tensor<2x50xf32> -> tensor<2x5xi64>, tensor<2x?xf32>
  return
}

// -----

// T3: no more than the row has
func.func @t3(%x: tensor<2x50xf32>) {
  %k = arith.constant 51 : index
  // expected-error @+1 {{counts 51 of a row of 50}}
  %i, %v = attune.top_k %x count %k : tensor<2x50xf32> -> tensor<2x?xi64>, tensor<2x?xf32>
  return
}

// -----

// T3: and no less than none
func.func @t3_2(%x: tensor<2x?xf32>) {
  %k = arith.constant -1 : index
  // expected-error @+1 {{counts -1}}
  %i, %v = attune.top_k %x count %k : tensor<2x?xf32> -> tensor<2x?xi64>, tensor<2x?xf32>
  return
}
