// RUN: attune-opt %s --attune-plan-frames --split-input-file --verify-diagnostics

func.func @dynamic_in_loop(%n: index) {
  scf.forall (%i) in (%n) {
    // expected-error@below {{is inside a loop and has a size known at run time only; it cannot be planned}}
    %s = memref.alloc(%n) : memref<?xf32>
    memref.dealloc %s : memref<?xf32>
  }
  return
}

// -----

// The frame is pushed before anything is read.
func.func @size_read_later(%x: memref<index>) {
  %n = memref.load %x[] : memref<index>
  // expected-error@below {{has a size that is not known when its function starts}}
  %s = memref.alloc(%n) : memref<?xf32>
  return
}

// -----

func.func @layout() {
  // expected-error@below {{has a layout that frames do not know}}
  %s = memref.alloc() : memref<4xf32, strided<[2]>>
  return
}
