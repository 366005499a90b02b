// RUN: attune-opt %s --attune-distribute-threads --split-input-file --verify-diagnostics

// The first thread alone would know the sum.
func.func @value_of_a_writer(%x: memref<8xf32>, %n: index, %v: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error@below {{writes outside a parallel loop}}
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %v) -> f32 {
    %t = arith.addf %s, %v : f32
    memref.store %t, %x[%i] : memref<8xf32>
    scf.yield %t : f32
  }
  scf.forall (%i) in (%n) {
    memref.store %sum, %x[%i] : memref<8xf32>
  }
  return
}

// -----

func.func @tensors(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@below {{is not bufferized or does not count from zero}}
  %r = scf.forall (%i) in (8) shared_outs(%o = %x) -> tensor<8xf32> {
  }
  return %r : tensor<8xf32>
}

// -----

// A sum split over threads would depend on their number.
func.func @reduction(%x: memref<8xf32>) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  // expected-error@below {{reduces across threads}}
  %r = scf.parallel (%i) = (%c0) to (%c8) step (%c1) init (%zero) -> f32 {
    %v = memref.load %x[%i] : memref<8xf32>
    scf.reduce(%v : f32) {
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      scf.reduce.return %s : f32
    }
  }
  return %r : f32
}
