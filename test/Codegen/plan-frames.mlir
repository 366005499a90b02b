// RUN: attune-opt %s --attune-plan-frames --cse --canonicalize --split-input-file | FileCheck %s

// Of three buffers in turn, the third takes the place of the first: two slots
// of 4 n bytes, each rounded up to 64.
// CHECK-DAG:   llvm.func @attune_rt_frame_push(i64) -> !llvm.ptr
// CHECK-DAG:   llvm.func @attune_rt_frame_pop(i64)
// CHECK-LABEL: func.func @in_turn(
// CHECK-SAME:    %[[X:.+]]: memref<?xf32>
// CHECK-SAME:    attune.frame = ["slot 0: 4 * ? bytes", "  [?] f32  {{.+}}", "  [?] f32  {{.+}}", "slot 1: 4 * ? bytes", {{.+}}]
// CHECK-NOT:     memref.alloc
// CHECK-DAG:     %[[C0:.+]] = arith.constant 0 : index
// CHECK-DAG:     %[[N:.+]] = memref.dim %[[X]], %[[C0]] : memref<?xf32>
// CHECK:         %[[B:.+]] = arith.muli %[[N]], %{{.+}} : index
// CHECK:         %[[UP:.+]] = arith.addi %[[B]], %{{.+}} : index
// CHECK:         %[[SLOT:.+]] = arith.andi %[[UP]], %{{.+}} : index
// CHECK:         llvm.call @attune_rt_frame_push(%[[SIZE:.+]]) : (i64) -> !llvm.ptr
// CHECK:         %[[FRAME:.+]] = builtin.unrealized_conversion_cast {{.+}} to memref<?xi8>
// CHECK:         %[[P:.+]] = memref.view %[[FRAME]][%[[C0]]][%[[N]]] : memref<?xi8> to memref<?xf32>
// CHECK:         %[[Q:.+]] = memref.view %[[FRAME]][%[[SLOT]]][%[[N]]]
// CHECK:         linalg.copy ins(%[[P]] : memref<?xf32>) outs(%[[Q]] : memref<?xf32>)
// CHECK-NOT:     memref.view
// CHECK:         linalg.copy ins(%[[Q]] : memref<?xf32>) outs(%[[P]] : memref<?xf32>)
// CHECK:         llvm.call @attune_rt_frame_pop(%[[SIZE]])
// CHECK-NEXT:    return
func.func @in_turn(%x: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %a = memref.alloc(%n) : memref<?xf32>
  linalg.copy ins(%x : memref<?xf32>) outs(%a : memref<?xf32>)
  %b = memref.alloc(%n) : memref<?xf32>
  linalg.copy ins(%a : memref<?xf32>) outs(%b : memref<?xf32>)
  %c = memref.alloc(%n) : memref<?xf32>
  linalg.copy ins(%b : memref<?xf32>) outs(%c : memref<?xf32>)
  linalg.copy ins(%c : memref<?xf32>) outs(%x : memref<?xf32>)
  return
}

// -----

// A use through a view keeps a buffer: no sharing here.
// CHECK-LABEL: func.func @through_view(
// CHECK:         memref.view %{{.+}}[%[[A:.+]]][]
// CHECK-NOT:     memref.view %{{.+}}[%[[A]]][]
// CHECK:         return
func.func @through_view(%x: memref<16xf32>) {
  %a = memref.alloc() : memref<16xf32>
  linalg.copy ins(%x : memref<16xf32>) outs(%a : memref<16xf32>)
  %v = memref.subview %a[0] [8] [1] : memref<16xf32> to memref<8xf32, strided<[1]>>
  %y = memref.subview %x[0] [8] [1] : memref<16xf32> to memref<8xf32, strided<[1]>>
  %b = memref.alloc() : memref<16xf32>
  linalg.copy ins(%x : memref<16xf32>) outs(%b : memref<16xf32>)
  linalg.copy ins(%v : memref<8xf32, strided<[1]>>) outs(%y : memref<8xf32, strided<[1]>>)
  linalg.copy ins(%b : memref<16xf32>) outs(%x : memref<16xf32>)
  return
}

// -----

// Scratch of a parallel step is its thread's own: made once, at the start.
// CHECK-LABEL: func.func @scratch(
// CHECK-NEXT:    %[[S:.+]] = memref.alloca() {alignment = 64 : i64} : memref<16xf32>
// CHECK:         scf.forall
// CHECK-NEXT:      linalg.copy ins(%{{.+}}) outs(%[[S]] : memref<16xf32>)
// CHECK-NOT:     frame_push
func.func @scratch(%x: memref<16xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %s = memref.alloc() : memref<16xf32>
    linalg.copy ins(%x : memref<16xf32>) outs(%s : memref<16xf32>)
    memref.dealloc %s : memref<16xf32>
  }
  return
}

// -----

// CHECK-LABEL: func.func @nothing(
// CHECK-NEXT:    return
func.func @nothing() {
  return
}

// -----

// A size that is read off a view is that of what it views.
// CHECK-LABEL: func.func @of_view(
// CHECK-SAME:    attune.frame = [{{.+}}, "slot 1: 64 * ? * ? bytes", {{.+}}]
// CHECK-NOT:     memref.alloc
func.func @of_view(%x: memref<?x?x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?x?x16xf32>
  %m = memref.dim %x, %c1 : memref<?x?x16xf32>
  %a = memref.alloc(%n, %m) : memref<?x?x16xf32>
  linalg.copy ins(%x : memref<?x?x16xf32>) outs(%a : memref<?x?x16xf32>)
  %rows = memref.collapse_shape %a [[0, 1], [2]] : memref<?x?x16xf32> into memref<?x16xf32>
  %d = memref.dim %rows, %c0 : memref<?x16xf32>
  %b = memref.alloc(%d) : memref<?x16xf32>
  linalg.copy ins(%rows : memref<?x16xf32>) outs(%b : memref<?x16xf32>)
  linalg.copy ins(%b : memref<?x16xf32>) outs(%rows : memref<?x16xf32>)
  linalg.copy ins(%a : memref<?x?x16xf32>) outs(%x : memref<?x?x16xf32>)
  return
}

// -----

// Buffers of different sizes take turns, too, if these are alike: the slot has
// the larger. One that is far smaller has its own.
// CHECK-LABEL: func.func @alike(
// CHECK-SAME:    attune.frame = ["slot 0: max(4 * ?, 4 * ?) bytes", "  [?] f32  {{.+}}", "  [?] f32  {{.+}}", "slot 1: 4 bytes", "  [1] f32  {{.+}}", "slot 2: 4 * ? bytes", "  [?] f32  {{.+}}"]
// CHECK-DAG:     %[[C0:.+]] = arith.constant 0 : index
// CHECK-DAG:     %[[C4:.+]] = arith.constant 4 : index
// CHECK:         %[[WHOLE:.+]] = arith.muli %[[N:.+]], %[[C4]] : index
// CHECK:         %[[HALF:.+]] = arith.muli %[[M:.+]], %[[C4]] : index
// CHECK:         arith.maxsi %[[WHOLE]], %[[HALF]] : index
// CHECK:         memref.view %[[FRAME:.+]][%[[C0]]][%[[N]]] : memref<?xi8> to memref<?xf32>
// CHECK:         memref.view %[[FRAME]][%[[C0]]][%[[M]]] : memref<?xi8> to memref<?xf32>
func.func @alike(%x: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %m = arith.divui %n, %c2 : index
  %y = memref.subview %x[0] [%m] [1] : memref<?xf32> to memref<?xf32, strided<[1]>>
  %a = memref.alloc(%n) : memref<?xf32>
  linalg.copy ins(%x : memref<?xf32>) outs(%a : memref<?xf32>)
  %one = memref.alloc() : memref<1xf32>
  %first = memref.subview %a[0] [1] [1] : memref<?xf32> to memref<1xf32, strided<[1]>>
  linalg.copy ins(%first : memref<1xf32, strided<[1]>>) outs(%one : memref<1xf32>)
  %half = memref.alloc(%m) : memref<?xf32>
  %begin = memref.subview %a[0] [%m] [1] : memref<?xf32> to memref<?xf32, strided<[1]>>
  linalg.copy ins(%begin : memref<?xf32, strided<[1]>>) outs(%half : memref<?xf32>)
  %last = memref.alloc(%m) : memref<?xf32>
  linalg.copy ins(%half : memref<?xf32>) outs(%last : memref<?xf32>)
  linalg.copy ins(%last : memref<?xf32>) outs(%y : memref<?xf32, strided<[1]>>)
  %place = memref.subview %x[0] [1] [1] : memref<?xf32> to memref<1xf32, strided<[1]>>
  linalg.copy ins(%one : memref<1xf32>) outs(%place : memref<1xf32, strided<[1]>>)
  return
}
