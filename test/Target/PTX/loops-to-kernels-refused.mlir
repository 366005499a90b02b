// RUN: attune-opt %s --attune-loops-to-kernels --split-input-file --verify-diagnostics

func.func @shared_scratch(%x: memref<4xf32>, %n: index, %v: f32) {
  // expected-error@below {{is scratch of more than one kernel}}
  %scratch = memref.alloca() : memref<4xf32>
  scf.forall (%i) in (%n) {
    memref.store %v, %scratch[%i] : memref<4xf32>
  }
  scf.forall (%i) in (%n) {
    %y = memref.load %scratch[%i] : memref<4xf32>
    memref.store %y, %x[%i] : memref<4xf32>
  }
  return
}

// -----

func.func @strided(%x: memref<?xf32, strided<[?], offset: ?>>, %n: index, %v: f32) {
  // expected-error@below {{whose layout a kernel's argument cannot have}}
  scf.forall (%i) in (%n) {
    memref.store %v, %x[%i] : memref<?xf32, strided<[?], offset: ?>>
  }
  return
}

// -----

func.func @reduction(%x: memref<?xf32>, %n: index, %v: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error@below {{reduces across threads}}
  %sum = scf.parallel (%i) = (%c0) to (%n) step (%c1) init (%v) -> f32 {
    %y = memref.load %x[%i] : memref<?xf32>
    scf.reduce(%y : f32) {
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      scf.reduce.return %s : f32
    }
  }
  memref.store %sum, %x[%c0] : memref<?xf32>
  return
}

// -----

func.func @host_reads_a_vector(%x: memref<?xf32>, %n: index) -> vector<4xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  // expected-error@below {{touches device memory outside a parallel loop}}
  %v = vector.transfer_read %x[%c0], %zero : memref<?xf32>, vector<4xf32>
  return %v : vector<4xf32>
}
