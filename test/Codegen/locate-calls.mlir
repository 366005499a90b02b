// RUN: attune-opt %s --attune-to-vector --attune-to-llvm --mlir-print-debuginfo \
// RUN:   | %llvm_tools/mlir-translate --mlir-to-llvmir | FileCheck %s

// Nothing of this module has a place. Where claimed iterations are is found by a
// function that is called; LLVM takes no such call without a place.
// CHECK-LABEL: define void @nowhere(
// CHECK:         call i64 @attune_quotient({{.+}}), !dbg ![[$PLACE0:[0-9]+]]
// CHECK-LABEL: define void @somewhere(
// CHECK:         call i64 @attune_quotient({{.+}}), !dbg ![[$PLACE3:[0-9]+]]
// CHECK-LABEL: define void @_mlir_ciface_entry(
// CHECK:         call void @entry(), !dbg ![[$ENTRY:[0-9]+]]
// CHECK:       ![[$PLACE0]] = !DILocation(line: 0, scope:
// CHECK:       ![[$PLACE3]] = !DILocation(line: 3, column: 1,
// CHECK:       ![[$ENTRY]] = !DILocation(line: 0, scope:
func.func @nowhere(%x: memref<?x?xf32>, %m: index, %n: index, %v: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.forall (%i, %j) in (%m, %n) {
    scf.for %k = %c0 to %n step %c1 {
      scf.for %l = %c0 to %n step %c1 {
        memref.store %v, %x[%i, %l] : memref<?x?xf32>
      } loc(unknown)
    } loc(unknown)
  } loc(unknown)
  return loc(unknown)
} loc(unknown)

func.func @somewhere(%x: memref<?x?xf32>, %m: index, %n: index, %v: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.forall (%i, %j) in (%m, %n) {
    scf.for %k = %c0 to %n step %c1 {
      scf.for %l = %c0 to %n step %c1 {
        memref.store %v, %x[%i, %l] : memref<?x?xf32>
      } loc(unknown)
    } loc(unknown)
  } loc(unknown)
  return loc(unknown)
} loc("a.json":3:1)

// Whoever calls from C has a function that calls this one.
func.func @entry() attributes {llvm.emit_c_interface} {
  return loc(unknown)
} loc(unknown)
