// RUN: attune-opt %s --attune-outline-kernels --split-input-file | FileCheck %s
// RUN: attune-opt %s --attune-outline-kernels --split-input-file --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefix=PLACES

// What is computed from sizes moves along, buffers and sizes are arguments. The
// two loops differ in nothing but the buffers, so one function serves the block
// and the entry; a loop of another constant has one of its own.
// CHECK-LABEL: func.func private @block(
// CHECK-SAME:    %[[X:[^:]+]]: memref<?x8xf32>, %[[Y:[^:]+]]: memref<?x8xf32>)
// CHECK:         %[[N:.+]] = memref.dim %[[X]]
// CHECK-NEXT:    call @scale.8(%[[N]], %[[X]], %[[Y]])
// CHECK-NEXT:    call @scale.8.2(%[[N]], %[[Y]], %[[X]])
// CHECK-NEXT:    return
// CHECK-LABEL: func.func @forward(
// CHECK-SAME:    %[[A:[^:]+]]: memref<?x8xf32>, %[[B:[^:]+]]: memref<?x8xf32>, %[[M:[^:]+]]: index)
// CHECK-NEXT:    call @block(%[[A]], %[[B]])
// CHECK-NEXT:    call @scale.8(%[[M]], %[[B]], %[[A]])
// CHECK-NEXT:    return
// CHECK:       func.func private @scale.8(
// CHECK-SAME:    %[[K:[^:]+]]: index, %[[IN:[^:]+]]: memref<?x8xf32>, %[[OUT:[^:]+]]: memref<?x8xf32>)
// CHECK-SAME:    attributes {attune.kernel, passthrough = ["noinline"]}
// CHECK-DAG:     %[[F:.+]] = arith.constant 2.0
// CHECK-DAG:     %[[HALF:.+]] = arith.ceildivui %[[K]],
// CHECK:         scf.forall (%[[I:.+]]) in (%[[HALF]])
// CHECK:           %[[V:.+]] = memref.load %[[IN]][%[[I]],
// CHECK:           arith.mulf %[[V]], %[[F]]
// CHECK:           memref.store %{{.+}}, %[[OUT]][%[[I]],
// CHECK:         return
// CHECK:       func.func private @scale.8.2(
// CHECK:         arith.constant 4.0
// CHECK-NOT:   func.func

// The call keeps the place that it comes from.
// PLACES: call @scale.8({{.+}} loc("scale.8"("model.json":3:1))
// PLACES: call @scale.8({{.+}} loc("scale.8"("model.json":9:1))
func.func private @block(%x: memref<?x8xf32>, %y: memref<?x8xf32>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %two = arith.constant 2.0 : f32
  %four = arith.constant 4.0 : f32
  %n = memref.dim %x, %c0 : memref<?x8xf32>
  %half = arith.ceildivui %n, %c2 : index
  scf.forall (%i) in (%half) {
    %v = memref.load %x[%i, %c0] : memref<?x8xf32>
    %w = arith.mulf %v, %two : f32
    memref.store %w, %y[%i, %c0] : memref<?x8xf32>
  } loc("scale.8"("model.json":3:1))
  scf.forall (%i) in (%half) {
    %v = memref.load %y[%i, %c0] : memref<?x8xf32>
    %w = arith.mulf %v, %four : f32
    memref.store %w, %x[%i, %c0] : memref<?x8xf32>
  } loc("scale.8"("model.json":4:1))
  return
}
func.func @forward(%x: memref<?x8xf32>, %y: memref<?x8xf32>, %n: index) {
  call @block(%x, %y) : (memref<?x8xf32>, memref<?x8xf32>) -> ()
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %two = arith.constant 2.0 : f32
  %half = arith.ceildivui %n, %c2 : index
  scf.forall (%i) in (%half) {
    %v = memref.load %y[%i, %c0] : memref<?x8xf32>
    %w = arith.mulf %v, %two : f32
    memref.store %w, %x[%i, %c0] : memref<?x8xf32>
  } loc("scale.8"("model.json":9:1))
  return
}

// -----

// In a loop over tokens what does not change is computed once, before it; a
// place without a name, or with one that no function can have, is a loop.
// CHECK-LABEL: func.func @steps(
// CHECK-SAME:    %[[X:[^:]+]]: memref<?xf32>, %[[N:[^:]+]]: index, %[[V:[^:]+]]: f32)
// CHECK:         %[[THREADS:.+]] = attune.num_threads
// CHECK:         %[[EACH:.+]] = arith.ceildivui %[[N]], %[[THREADS]]
// CHECK:         scf.for %[[T:.+]] =
// CHECK-NEXT:      func.call @loop(%[[EACH]], %[[T]], %[[V]], %[[X]])
// CHECK-NEXT:    }
// CHECK:         call @loop.2(
// CHECK:       func.func private @loop(%[[E:[^:]+]]: index, %[[S:[^:]+]]: index, %{{.+}}: f32, %{{.+}}: memref<?xf32>)
// CHECK-NOT:     num_threads
// CHECK-NOT:     ceildivui
// CHECK:         scf.forall (%[[I:.+]]) in (%[[E]])
// CHECK:           arith.addi %[[I]], %[[S]]
func.func @steps(%x: memref<?xf32>, %n: index, %v: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = attune.num_threads
  %each = arith.ceildivui %n, %threads : index
  scf.for %t = %c0 to %n step %c1 {
    scf.forall (%i) in (%each) {
      %j = arith.addi %i, %t : index
      memref.store %v, %x[%j] : memref<?xf32>
    }
  }
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    memref.store %v, %x[%i] : memref<?xf32>
    scf.reduce
  } loc("my op!"("model.json":3:1))
  return
}

// -----

// Buffers of an iteration and loops in parallel loops stay inside; so does a
// kernel that is one already.
// CHECK-LABEL: func.func @inside(
// CHECK-NEXT:    call @loop(
// CHECK-NEXT:    return
// CHECK:       func.func private @done(
// CHECK-NEXT:    scf.forall
// CHECK:       func.func private @loop(
// CHECK:         scf.forall
// CHECK-NEXT:      %[[A:.+]] = memref.alloc() : memref<4xf32>
// CHECK-NEXT:      scf.forall
// CHECK-NOT:   call
func.func @inside(%n: index, %v: f32) {
  scf.forall (%i) in (%n) {
    %a = memref.alloc() : memref<4xf32>
    scf.forall (%j) in (4) {
      memref.store %v, %a[%j] : memref<4xf32>
    }
  }
  return
}
func.func private @done(%n: index, %x: memref<?xf32>, %v: f32) attributes {attune.kernel} {
  scf.forall (%i) in (%n) {
    memref.store %v, %x[%i] : memref<?xf32>
  }
  return
}

// -----

// Without a parallel loop nothing changes.
// CHECK-LABEL: func.func @plain(
// CHECK-NEXT:    %[[C:.+]] = arith.constant 0
// CHECK-NEXT:    memref.load %{{.+}}[%[[C]]]
// CHECK-NEXT:    return
// CHECK-NOT:   func.func
func.func @plain(%x: memref<?xf32>) -> f32 {
  %c0 = arith.constant 0 : index
  %v = memref.load %x[%c0] : memref<?xf32>
  return %v : f32
}

// -----

// Stacks of several numbers of layers share a kernel, and so do views that begin
// where a stack does with those that begin elsewhere. What reads a size keeps
// its type, and so do weights.
// CHECK-LABEL: func.func private @stacks(
// CHECK-SAME:    %[[A:[^:]+]]: memref<3x?x8xf32>, %[[B:[^:]+]]: memref<?x?x8xf32>, %[[W:[^:]+]]: memref<4x8xf32>
// CHECK-DAG:     %[[CA:.+]] = memref.cast %[[A]] : memref<3x?x8xf32> to memref<?x?x8xf32>
// CHECK:         call @layer({{.*}}%[[CA]]
// CHECK:         call @layer({{.*}}%[[B]]
// CHECK:         %[[V:.+]] = memref.subview
// CHECK:         %[[CV:.+]] = memref.cast %[[V]] : memref<?x8xf32, strided<[?, 1]>> to memref<?x8xf32, strided<[?, 1], offset: ?>>
// CHECK:         call @rows({{.*}}%[[CV]]
// CHECK:         call @asks({{.*}}%[[A]]
// CHECK:         call @weight({{.*}}%[[W]]
// CHECK:       func.func private @layer({{.*}}memref<?x?x8xf32>
// CHECK:         memref.subview %{{.+}} : memref<?x?x8xf32> to memref<?x8xf32, strided<[8, 1], offset: ?>>
// CHECK-NOT:   @layer.2
func.func private @stacks(%a: memref<3x?x8xf32>, %b: memref<?x?x8xf32>, %w: memref<4x8xf32>, %n: index, %i: index, %s: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  scf.forall (%t) in (%n) {
    %v = memref.subview %a[%i, 0, 0] [1, %n, 8] [1, 1, 1] : memref<3x?x8xf32> to memref<?x8xf32, strided<[8, 1], offset: ?>>
    memref.store %zero, %v[%t, %c0] : memref<?x8xf32, strided<[8, 1], offset: ?>>
  } loc("layer")
  scf.forall (%t) in (%n) {
    %v = memref.subview %b[%i, 0, 0] [1, %n, 8] [1, 1, 1] : memref<?x?x8xf32> to memref<?x8xf32, strided<[8, 1], offset: ?>>
    memref.store %zero, %v[%t, %c0] : memref<?x8xf32, strided<[8, 1], offset: ?>>
  } loc("layer")
  %v = memref.subview %s[0, 0] [%n, 8] [1, 1] : memref<?x?xf32> to memref<?x8xf32, strided<[?, 1]>>
  scf.forall (%t) in (%n) {
    memref.store %zero, %v[%t, %c0] : memref<?x8xf32, strided<[?, 1]>>
  } loc("rows")
  scf.forall (%t) in (%n) {
    %layers = memref.dim %a, %t : memref<3x?x8xf32>
    memref.store %zero, %a[%c0, %layers, %c0] : memref<3x?x8xf32>
  } loc("asks")
  scf.forall (%t) in (%n) {
    %u = memref.subview %w[%t, 0] [1, 8] [1, 1] : memref<4x8xf32> to memref<8xf32, strided<[1], offset: ?>>
    memref.store %zero, %u[%c0] : memref<8xf32, strided<[1], offset: ?>>
  } loc("weight")
  return
}
