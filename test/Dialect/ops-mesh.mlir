// RUN: attune-opt %s | FileCheck %s
// RUN: attune-opt %s --mlir-print-op-generic | attune-opt | FileCheck %s
// RUN: attune-opt %s --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" | FileCheck %s --check-prefix=BUFFERS

// CHECK-LABEL: @rank(
func.func @rank() -> index {
  // CHECK: attune.rank
  %rank = attune.rank
  // CHECK: attune.rank of_positions
  %group = attune.rank of_positions
  %sum = arith.addi %rank, %group : index
  return %sum : index
}

// The sum goes where the residual was, without a copy.
// CHECK-LABEL: @all_reduce(
// BUFFERS-LABEL: @all_reduce(
// BUFFERS-NOT: memref.copy
func.func @all_reduce(%x: tensor<?x?x64xf32>,
                      %d: tensor<?x?x64xf32>) -> tensor<?x?x64xf32> {
  // CHECK: attune.all_reduce %{{.+}} into %{{.+}} accumulate : tensor<?x?x64xf32>, tensor<?x?x64xf32> -> tensor<?x?x64xf32>
  // BUFFERS: attune.all_reduce %[[X:.+]] into %[[D:.+]] accumulate : memref<?x?x64xf32>, memref<?x?x64xf32>
  // BUFFERS-NEXT: return %[[D]]
  %y = attune.all_reduce %x into %d accumulate
     : tensor<?x?x64xf32>, tensor<?x?x64xf32> -> tensor<?x?x64xf32>
  return %y : tensor<?x?x64xf32>
}

// CHECK-LABEL: @all_reduce_rows(
// BUFFERS-LABEL: @all_reduce_rows(
// BUFFERS-NOT: memref.copy
func.func @all_reduce_rows(%x: tensor<?x?x64xf32>, %e: tensor<?x?x2xi64>,
                           %d: tensor<?x?x64xf32>) -> tensor<?x?x64xf32> {
  // CHECK: attune.all_reduce %{{.+}} experts %{{.+}} below 4 : tensor<?x?x2xi64> into %{{.+}} accumulate : tensor<?x?x64xf32>, tensor<?x?x64xf32> -> tensor<?x?x64xf32>
  // BUFFERS: attune.all_reduce %{{.+}} experts %{{.+}} below 4 : memref<?x?x2xi64> into %[[D:.+]] accumulate : memref<?x?x64xf32>, memref<?x?x64xf32>
  // BUFFERS-NEXT: return %[[D]]
  %y = attune.all_reduce %x experts %e below 4 : tensor<?x?x2xi64>
     into %d accumulate
     : tensor<?x?x64xf32>, tensor<?x?x64xf32> -> tensor<?x?x64xf32>
  return %y : tensor<?x?x64xf32>
}

// CHECK-LABEL: @all_gather(
// BUFFERS-LABEL: @all_gather(
func.func @all_gather(%x: tensor<?x1x51xf32>,
                      %d: tensor<?x1x99xf32>) -> tensor<?x1x99xf32> {
  // CHECK: attune.all_gather %{{.+}} columns %{{.+}} into %{{.+}} : tensor<?x1x51xf32>, tensor<?x1x99xf32> -> tensor<?x1x99xf32>
  // BUFFERS: attune.all_gather %{{.+}} columns %{{.+}} into %{{.+}} : memref<?x1x51xf32>, memref<?x1x99xf32>
  %n = arith.constant 50 : index
  %y = attune.all_gather %x columns %n into %d
     : tensor<?x1x51xf32>, tensor<?x1x99xf32> -> tensor<?x1x99xf32>
  return %y : tensor<?x1x99xf32>
}

// CHECK-LABEL: @all_gather_of_positions(
func.func @all_gather_of_positions(%x: tensor<51xf32>, %n: index,
                                   %d: tensor<?xf32>) -> tensor<?xf32> {
  // CHECK: attune.all_gather %{{.+}} of_positions columns %{{.+}} into %{{.+}} : tensor<51xf32>, tensor<?xf32> -> tensor<?xf32>
  %y = attune.all_gather %x of_positions columns %n into %d
     : tensor<51xf32>, tensor<?xf32> -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// CHECK-LABEL: @all_merge(
// BUFFERS-LABEL: @all_merge(
// BUFFERS-NOT: memref.copy
func.func @all_merge(%x: tensor<?x8x?x64xf32>, %lse: tensor<?x8x?xf32>,
                     %d: tensor<?x8x?x64xf32>) -> tensor<?x8x?x64xf32> {
  // CHECK: attune.all_merge %{{.+}}, %{{.+}} into %{{.+}} : tensor<?x8x?x64xf32>, tensor<?x8x?xf32>, tensor<?x8x?x64xf32> -> tensor<?x8x?x64xf32>
  // BUFFERS: attune.all_merge %{{.+}}, %{{.+}} into %[[D:.+]] : memref<?x8x?x64xf32>, memref<?x8x?xf32>, memref<?x8x?x64xf32>
  // BUFFERS-NEXT: return %[[D]]
  %y = attune.all_merge %x, %lse into %d
     : tensor<?x8x?x64xf32>, tensor<?x8x?xf32>, tensor<?x8x?x64xf32>
     -> tensor<?x8x?x64xf32>
  return %y : tensor<?x8x?x64xf32>
}
