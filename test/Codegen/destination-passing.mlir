// RUN: attune-opt %s --attune-destination-passing --split-input-file | FileCheck %s

// The loop that fills a new tensor fills the caller's instead. Inputs may not
// be written, the output may.
// CHECK-LABEL: func.func @entry(
// CHECK-SAME:    %[[X:[^:]+]]: tensor<?x4xf32> {attune.kind = "input", bufferization.writable = false}
// CHECK-SAME:    %[[OUT:[^:]+]]: tensor<?x4xf32> {attune.kind = "output", attune.name = "y", bufferization.writable = true}) -> tensor<?x4xf32>
func.func @entry(%x: tensor<?x4xf32> {attune.kind = "input"}, %n: index)
    -> (tensor<?x4xf32> {attune.kind = "output", attune.name = "y"}) attributes {attune.entry} {
  %init = tensor.empty(%n) : tensor<?x4xf32>
  // CHECK-NOT: linalg.copy
  // CHECK: %[[Y:.+]] = scf.forall (%{{.+}}) in (%{{.+}}) shared_outs(%{{.+}} = %[[OUT]])
  // CHECK: return %[[Y]]
  %y = scf.forall (%i) in (%n) shared_outs(%o = %init) -> tensor<?x4xf32> {
    %s = tensor.extract_slice %x[%i, 0] [1, 4] [1, 1] : tensor<?x4xf32> to tensor<1x4xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %s into %o[%i, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<?x4xf32>
    }
  }
  return %y : tensor<?x4xf32>
}

// -----

// Rows that are seen as tokens on the way out: the output is seen as rows.
// CHECK-LABEL: func.func @through_view(
// CHECK-SAME:    %[[OUT:[a-z0-9]+]]: tensor<?x?x4xf32> {attune.kind = "output"
// CHECK:         %[[ROWS:.+]] = attune.flatten_tokens %[[OUT]]
// CHECK:         scf.forall {{.+}} shared_outs(%{{.+}} = %[[ROWS]])
func.func @through_view(%b: index, %t: index, %v: tensor<1x4xf32>)
    -> (tensor<?x?x4xf32> {attune.kind = "output"}) attributes {attune.entry} {
  %n = arith.muli %b, %t : index
  %init = tensor.empty(%n) : tensor<?x4xf32>
  %y = scf.forall (%i) in (%n) shared_outs(%o = %init) -> tensor<?x4xf32> {
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %v into %o[%i, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<?x4xf32>
    }
  }
  %r = attune.unflatten_tokens %y[%b, %t] : tensor<?x4xf32> -> tensor<?x?x4xf32>
  return %r : tensor<?x?x4xf32>
}

// -----

// A cache is updated where it lies: no argument is added for it.
// CHECK-LABEL: func.func @cache(
// CHECK-SAME:    %{{[^:]+}}: tensor<8xf32> {attune.kind = "cache", bufferization.writable = true}, %{{[^:]+}}: tensor<1xf32> {bufferization.writable = false}, %{{[^:]+}}: index) -> tensor<8xf32>
// CHECK-NOT:     linalg.copy
func.func @cache(%c: tensor<8xf32> {attune.kind = "cache"}, %v: tensor<1xf32>, %at: index)
    -> (tensor<8xf32> {attune.kind = "cache"}) attributes {attune.entry} {
  %r = tensor.insert_slice %v into %c[%at] [1] [1] : tensor<1xf32> into tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

// An input that is an output as well has to be copied.
// CHECK-LABEL: func.func @copied(
// CHECK-SAME:    %[[X:[^:]+]]: tensor<8xf32> {{{.+}}writable = false}, %[[OUT:[^:]+]]: tensor<8xf32> {{{.+}}writable = true})
// CHECK:         %[[C:.+]] = linalg.copy ins(%[[X]] : tensor<8xf32>) outs(%[[OUT]] : tensor<8xf32>)
// CHECK:         return %[[C]]
func.func @copied(%x: tensor<8xf32>) -> (tensor<8xf32> {attune.kind = "output"}) attributes {attune.entry} {
  return %x : tensor<8xf32>
}

// -----

// A block updates its stream in place; a result computed anew goes where the
// argument of its type was.
// CHECK-LABEL: func.func private @updated(
// CHECK-SAME:    %[[X:[^:]+]]: tensor<8xf32>, %{{[^:]+}}: tensor<1xf32>) -> tensor<8xf32>
// CHECK-NOT:     linalg.copy
func.func private @updated(%x: tensor<8xf32>, %v: tensor<1xf32>) -> tensor<8xf32> {
  %r = tensor.insert_slice %v into %x[3] [1] [1] : tensor<1xf32> into tensor<8xf32>
  return %r : tensor<8xf32>
}

// CHECK-LABEL: func.func private @replaced(
// CHECK-SAME:    %[[X:[^:]+]]: tensor<8xf32>, %{{[^:]+}}: tensor<1xf32>) -> tensor<8xf32>
// CHECK:         scf.forall {{.+}} shared_outs(%{{.+}} = %[[X]])
func.func private @replaced(%x: tensor<8xf32>, %v: tensor<1xf32>) -> tensor<8xf32> {
  %init = tensor.empty() : tensor<8xf32>
  %r = scf.forall (%i) in (8) shared_outs(%o = %init) -> tensor<8xf32> {
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %v into %o[%i] [1] [1] : tensor<1xf32> into tensor<8xf32>
    }
  }
  return %r : tensor<8xf32>
}

// A layer on its own reads what its result replaces until it is done.
// CHECK-LABEL: func.func private @read(
// CHECK-SAME:    %[[X:[^:]+]]: tensor<8xf32>) -> tensor<8xf32>
// CHECK:         %[[INIT:.+]] = tensor.empty()
// CHECK:         %[[R:.+]] = scf.forall {{.+}} shared_outs(%{{.+}} = %[[INIT]])
// CHECK:         %[[C:.+]] = linalg.copy ins(%[[R]] : tensor<8xf32>) outs(%[[X]] : tensor<8xf32>)
// CHECK:         return %[[C]]
func.func private @read(%x: tensor<8xf32>) -> tensor<8xf32> {
  %init = tensor.empty() : tensor<8xf32>
  %r = scf.forall (%i) in (8) shared_outs(%o = %init) -> tensor<8xf32> {
    %v = tensor.extract_slice %x[%i] [1] [1] : tensor<8xf32> to tensor<1xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %v into %o[%i] [1] [1] : tensor<1xf32> into tensor<8xf32>
    }
  }
  return %r : tensor<8xf32>
}

// So does one that reads what was computed in that memory before.
// CHECK-LABEL: func.func private @read_updated(
// CHECK-SAME:    %[[X:[^:]+]]: tensor<8xf32>) -> tensor<8xf32>
// CHECK:         %[[INIT:.+]] = tensor.empty()
// CHECK:         %[[R:.+]] = scf.forall {{.+}} shared_outs(%{{.+}} = %[[INIT]])
// CHECK:         %[[C:.+]] = linalg.copy ins(%[[R]] : tensor<8xf32>) outs(%[[X]] : tensor<8xf32>)
// CHECK:         return %[[C]]
func.func private @read_updated(%x: tensor<8xf32>) -> tensor<8xf32> {
  %sum = linalg.add ins(%x, %x : tensor<8xf32>, tensor<8xf32>) outs(%x : tensor<8xf32>) -> tensor<8xf32>
  %init = tensor.empty() : tensor<8xf32>
  %r = scf.forall (%i) in (8) shared_outs(%o = %init) -> tensor<8xf32> {
    %v = tensor.extract_slice %sum[%i] [1] [1] : tensor<8xf32> to tensor<1xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %v into %o[%i] [1] [1] : tensor<1xf32> into tensor<8xf32>
    }
  }
  return %r : tensor<8xf32>
}

// -----

// Two results that start from the same zeros: neither may have them, since
// bufferization would move one of the two elsewhere.
// CHECK-LABEL: func.func @shared(
// CHECK-SAME:    %[[A:[^:]+]]: tensor<8xf32> {bufferization.writable = true}, %[[B:[^:]+]]: tensor<8xf32> {bufferization.writable = true})
// CHECK:         linalg.fill ins(%{{.+}}) outs(%[[EMPTY:.+]] : tensor<8xf32>)
// CHECK:         linalg.copy ins(%{{.+}}) outs(%[[A]] : tensor<8xf32>)
// CHECK:         linalg.copy ins(%{{.+}}) outs(%[[B]] : tensor<8xf32>)
func.func @shared(%v: tensor<1xf32>) -> (tensor<8xf32>, tensor<8xf32>) attributes {attune.entry} {
  %zero = arith.constant 0.0 : f32
  %init = tensor.empty() : tensor<8xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%init : tensor<8xf32>) -> tensor<8xf32>
  %a = tensor.insert_slice %v into %zeros[1] [1] [1] : tensor<1xf32> into tensor<8xf32>
  %b = tensor.insert_slice %v into %zeros[2] [1] [1] : tensor<1xf32> into tensor<8xf32>
  return %a, %b : tensor<8xf32>, tensor<8xf32>
}

// -----

// So does what a block of threads computes.
// CHECK-LABEL: func.func @into(
// CHECK-SAME:    %[[OUT:[a-z0-9]+]]: tensor<?x16xf32> {attune.kind = "output"
// CHECK-NOT:     linalg.copy
// CHECK:         %[[Y:.+]] = attune.linear_into %{{.+}}, %{{.+}} into %[[OUT]]
// CHECK:         return %[[Y]]
func.func @into(%x: tensor<?x64xf32> {attune.kind = "input"}, %w: tensor<2x64x8xbf16> {attune.kind = "input"}, %n: index)
    -> (tensor<?x16xf32> {attune.kind = "output", attune.name = "y"}) attributes {attune.entry} {
  %init = tensor.empty(%n) : tensor<?x16xf32>
  %y = attune.linear_into %x, %w into %init : tensor<?x64xf32>, tensor<2x64x8xbf16>, tensor<?x16xf32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

// -----

// A sum over ranks updates the argument, and what comes behind it is computed in the
// memory of the update.
// CHECK-LABEL: func.func private @behind_an_update(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<?x?x4xf32>
// CHECK:         %[[S:.+]] = attune.all_reduce %{{.+}} into %[[X]] accumulate
// CHECK:         %[[ROWS:.+]] = attune.flatten_tokens %[[S]]
// CHECK-NOT:     linalg.copy
// CHECK:         scf.forall {{.+}} shared_outs(%{{.+}} = %[[ROWS]])
func.func private @behind_an_update(%x: tensor<?x?x4xf32>, %part: tensor<?x?x4xf32>, %b: index, %t: index, %v: tensor<1x4xf32>) -> tensor<?x?x4xf32> {
  %s = attune.all_reduce %part into %x accumulate : tensor<?x?x4xf32>, tensor<?x?x4xf32> -> tensor<?x?x4xf32>
  %n = arith.muli %b, %t : index
  %init = tensor.empty(%n) : tensor<?x4xf32>
  %y = scf.forall (%i) in (%n) shared_outs(%o = %init) -> tensor<?x4xf32> {
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %v into %o[%i, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<?x4xf32>
    }
  }
  %r = attune.unflatten_tokens %y[%b, %t] : tensor<?x4xf32> -> tensor<?x?x4xf32>
  return %r : tensor<?x?x4xf32>
}
