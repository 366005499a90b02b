// RUN: attune-opt %s --attune-hoist-buffers | FileCheck %s

// With what computes its size; nested loops are left at once.
// CHECK-LABEL: @hoisted(
// CHECK:         %[[N:.+]] = arith.muli
// CHECK-NEXT:    %[[A:.+]] = memref.alloc(%[[N]])
// CHECK-NEXT:    scf.for
// CHECK-NEXT:      scf.for
// CHECK-NOT:     memref.alloc
func.func @hoisted(%n: index, %x: memref<?xf32>) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  scf.for %i = %0 to %n step %1 {
    scf.for %j = %0 to %n step %1 {
      %size = arith.muli %n, %n : index
      %a = memref.alloc(%size) : memref<?xf32>
      linalg.copy ins(%x : memref<?xf32>) outs(%a : memref<?xf32>)
    }
  }
  return
}

// Branches have theirs ahead of them, too, and of a loop around them.
// CHECK-LABEL: @branches(
// CHECK:         %[[N:.+]] = arith.muli
// CHECK-NEXT:    memref.alloc(%[[N]])
// CHECK-NEXT:    memref.alloc()
// CHECK-NEXT:    scf.for
// CHECK-NOT:     memref.alloc
func.func @branches(%n: index, %which: i1, %x: memref<?xf32>) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  scf.for %i = %0 to %n step %1 {
    scf.if %which {
      %size = arith.muli %n, %n : index
      %a = memref.alloc(%size) : memref<?xf32>
      linalg.copy ins(%x : memref<?xf32>) outs(%a : memref<?xf32>)
    } else {
      %f = arith.constant 0.0 : f32
      %b = memref.alloc() : memref<4xf32>
      linalg.fill ins(%f : f32) outs(%b : memref<4xf32>)
    }
  }
  return
}

// Threads of a parallel loop have buffers of their own.
// CHECK-LABEL: @parallel(
// CHECK:         scf.forall
// CHECK-NEXT:      memref.alloc
func.func @parallel(%n: index) {
  scf.forall (%i) in (%n) {
    %a = memref.alloc() : memref<4xf32>
    %f = arith.constant 0.0 : f32
    linalg.fill ins(%f : f32) outs(%a : memref<4xf32>)
  }
  return
}

// The next turn reads this turn's buffer while it fills its own.
// CHECK-LABEL: @handed_on(
// CHECK:         scf.for
// CHECK-NEXT:      memref.alloc
func.func @handed_on(%n: index, %x: memref<?xf32>) -> memref<?xf32> {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %r = scf.for %i = %0 to %n step %1 iter_args(%old = %x) -> memref<?xf32> {
    %a = memref.alloc(%n) : memref<?xf32>
    linalg.copy ins(%old : memref<?xf32>) outs(%a : memref<?xf32>)
    scf.yield %a : memref<?xf32>
  }
  return %r : memref<?xf32>
}

// The size changes.
// CHECK-LABEL: @varies(
// CHECK:         scf.for
// CHECK:           memref.alloc
func.func @varies(%n: index, %x: memref<?xf32>) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  scf.for %i = %0 to %n step %1 {
    %a = memref.alloc(%i) : memref<?xf32>
    linalg.copy ins(%a : memref<?xf32>) outs(%a : memref<?xf32>)
  }
  return
}
