// RUN: attune-opt %s --attune-choose-candidates --split-input-file | FileCheck %s

// The argument comes last, and so do the results.
// CHECK-LABEL: func.func @decode(
// CHECK-SAME:    %[[K:[a-z0-9]+]]: index {attune.kind = "size", attune.name = "candidates"}) -> (
// CHECK-SAME:    tensor<?x256xf32> {attune.kind = "output", attune.name = "logits", attune.shape = ["batch", 256]},
// CHECK-SAME:    tensor<2x?x4xf32> {attune.kind = "cache"
// CHECK-SAME:    tensor<?x?xi64> {attune.kind = "output", attune.name = "candidate_ids", attune.shape = ["batch", "candidates"]},
// CHECK-SAME:    tensor<?x?xf32> {attune.kind = "output", attune.name = "candidate_logits", attune.shape = ["batch", "candidates"]})
// CHECK:         %[[L:.+]] = tensor.empty
// CHECK:         %[[I:.+]], %[[V:.+]] = attune.top_k %[[L]] count %[[K]] : tensor<?x256xf32> -> tensor<?x?xi64>, tensor<?x?xf32>
// CHECK:         return %[[L]], %{{.+}}, %[[I]], %[[V]]
func.func @decode(%c: tensor<2x?x4xf32> {attune.kind = "cache", attune.name = "k", attune.shape = [2, "batch", 4]})
    -> (tensor<?x256xf32> {attune.kind = "output", attune.name = "logits", attune.shape = ["batch", 256]},
        tensor<2x?x4xf32> {attune.kind = "cache", attune.name = "k", attune.shape = [2, "batch", 4]}) attributes {attune.entry} {
  %c1 = arith.constant 1 : index
  %n = tensor.dim %c, %c1 : tensor<2x?x4xf32>
  %l = tensor.empty(%n) : tensor<?x256xf32>
  return %l, %c : tensor<?x256xf32>, tensor<2x?x4xf32>
}
// Not an entry that decodes.
// CHECK-LABEL: func.func @forward(
// CHECK-NOT:     attune.top_k
func.func @forward(%l: tensor<?x256xf32> {attune.kind = "input", attune.name = "x", attune.shape = ["batch", 256]})
    -> (tensor<?x256xf32> {attune.kind = "output", attune.name = "logits", attune.shape = ["batch", 256]}) attributes {attune.entry} {
  return %l : tensor<?x256xf32>
}

// -----

// Nothing that tokens are chosen by; nobody knows how many there are.
// CHECK-LABEL: func.func @decode(
// CHECK-NOT:     candidates
func.func @decode(%x: tensor<?x8xf32>, %y: tensor<?x?xf32>)
    -> (tensor<?x8xf32> {attune.kind = "output", attune.name = "states", attune.shape = ["batch", 8]},
        tensor<?x?xf32> {attune.kind = "output", attune.name = "logits", attune.shape = ["batch", "words"]}) attributes {attune.entry} {
  return %x, %y : tensor<?x8xf32>, tensor<?x?xf32>
}

// -----

// A function of that name, but no entry.
// CHECK-LABEL: func.func @decode(
// CHECK-NOT:     candidates
func.func @decode(%x: tensor<?x8xf32>)
    -> (tensor<?x8xf32> {attune.kind = "output", attune.name = "logits", attune.shape = ["batch", 8]}) {
  return %x : tensor<?x8xf32>
}
