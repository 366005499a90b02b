// RUN: attune-opt %s --attune-outline-microkernels | FileCheck %s

// Sums of two and three rows against a panel. What kernels do with them stays
// where it is; products of as long a sum share the microkernels, whatever the
// number of panels. A flat view of the panels is made where it is read.
// CHECK-LABEL: func.func private @linear.24(
// CHECK-SAME:    %[[W:.+]]: memref<3x24x8xf32>, %[[X:.+]]: memref<?x24xf32>, %[[ROW:[a-z0-9]+]]: index, %[[PANEL:[a-z0-9]+]]: index, %{{.+}}: index
// CHECK:         %[[S:.+]] = memref.alloca() : memref<3x8xf32>
// CHECK:         scf.index_switch
// CHECK-NEXT:    case 2 {
// CHECK-NEXT:      %[[WA:.+]] = memref.cast %[[W]] : memref<3x24x8xf32> to memref<?x24x8xf32>
// CHECK-NEXT:      %[[SA:.+]] = memref.cast %[[S]] : memref<3x8xf32> to memref<?x8xf32>
// CHECK-NEXT:      func.call @microkernel.2(%[[WA]], %[[PANEL]], %[[X]], %[[ROW]], %[[SA]])
// CHECK-NEXT:      scf.yield
// CHECK:         case 3 {
// CHECK:           call @microkernel.3(
// CHECK:         math.exp
func.func private @linear.24(%w: memref<3x24x8xf32>, %x: memref<?x24xf32>, %row: index, %panel: index, %n: index, %y: memref<?x8xf32>) attributes {attune.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c24 = arith.constant 24 : index
  %zero = arith.constant dense<0.0> : vector<8xf32>
  %flat = memref.collapse_shape %w [[0], [1, 2]] : memref<3x24x8xf32> into memref<3x192xf32>
  %pad = arith.constant 0.0 : f32
  %s = memref.alloca() : memref<3x8xf32>
  scf.index_switch %n
  case 2 {
    %next = arith.addi %row, %c1 : index
    %sums:2 = scf.for %k = %c0 to %c24 step %c1 iter_args(%a = %zero, %b = %zero) -> (vector<8xf32>, vector<8xf32>) {
      memref.prefetch %flat[%panel, %k], read, locality<2>, data : memref<3x192xf32>
      %p = vector.transfer_read %w[%panel, %k, %c0], %pad {in_bounds = [true]} : memref<3x24x8xf32>, vector<8xf32>
      %x0 = memref.load %x[%row, %k] : memref<?x24xf32>
      %v0 = vector.broadcast %x0 : f32 to vector<8xf32>
      %a1 = vector.fma %v0, %p, %a : vector<8xf32>
      %x1 = memref.load %x[%next, %k] : memref<?x24xf32>
      %v1 = vector.broadcast %x1 : f32 to vector<8xf32>
      %b1 = vector.fma %v1, %p, %b : vector<8xf32>
      scf.yield %a1, %b1 : vector<8xf32>, vector<8xf32>
    }
    vector.transfer_write %sums#0, %s[%c0, %c0] {in_bounds = [true]} : vector<8xf32>, memref<3x8xf32>
    vector.transfer_write %sums#1, %s[%c1, %c0] {in_bounds = [true]} : vector<8xf32>, memref<3x8xf32>
    scf.yield
  }
  case 3 {
    %sum = scf.for %k = %c0 to %c24 step %c1 iter_args(%a = %zero) -> (vector<8xf32>) {
      %p = vector.transfer_read %w[%panel, %k, %c0], %pad {in_bounds = [true]} : memref<3x24x8xf32>, vector<8xf32>
      %a1 = arith.addf %p, %a : vector<8xf32>
      scf.yield %a1 : vector<8xf32>
    }
    vector.transfer_write %sum, %s[%c2, %c0] {in_bounds = [true]} : vector<8xf32>, memref<3x8xf32>
    scf.yield
  }
  default {
  }
  %all = vector.transfer_read %s[%c0, %c0], %pad {in_bounds = [true]} : memref<3x8xf32>, vector<8xf32>
  %e = math.exp %all : vector<8xf32>
  vector.transfer_write %e, %y[%row, %c0] {in_bounds = [true]} : vector<8xf32>, memref<?x8xf32>
  return
}

// What differs (here another panel of more) is an argument; an offset of a row
// is not.
// CHECK-LABEL: func.func private @linear.24.gated(
// CHECK:           %[[UP:.+]] = arith.addi %{{.+}}, %c1
// CHECK:           call @microkernel.2(%{{.+}}, %[[UP]], %{{.+}}, %{{.+}}, %{{.+}})
// Sums that are read elsewhere stay.
// CHECK:         case 3 {
// CHECK-NEXT:      scf.for
func.func private @linear.24.gated(%w: memref<5x24x8xf32>, %x: memref<?x24xf32>, %row: index, %panel: index, %n: index, %y: memref<?x8xf32>, %s: memref<3x8xf32>) attributes {attune.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c24 = arith.constant 24 : index
  %zero = arith.constant dense<0.0> : vector<8xf32>
  %flat = memref.collapse_shape %w [[0], [1, 2]] : memref<5x24x8xf32> into memref<5x192xf32>
  %pad = arith.constant 0.0 : f32
  scf.index_switch %n
  case 2 {
    %up = arith.addi %panel, %c1 : index
    %next = arith.addi %row, %c1 : index
    %sums:2 = scf.for %k = %c0 to %c24 step %c1 iter_args(%a = %zero, %b = %zero) -> (vector<8xf32>, vector<8xf32>) {
      memref.prefetch %flat[%up, %k], read, locality<2>, data : memref<5x192xf32>
      %p = vector.transfer_read %w[%up, %k, %c0], %pad {in_bounds = [true]} : memref<5x24x8xf32>, vector<8xf32>
      %x0 = memref.load %x[%row, %k] : memref<?x24xf32>
      %v0 = vector.broadcast %x0 : f32 to vector<8xf32>
      %a1 = vector.fma %v0, %p, %a : vector<8xf32>
      %x1 = memref.load %x[%next, %k] : memref<?x24xf32>
      %v1 = vector.broadcast %x1 : f32 to vector<8xf32>
      %b1 = vector.fma %v1, %p, %b : vector<8xf32>
      scf.yield %a1, %b1 : vector<8xf32>, vector<8xf32>
    }
    vector.transfer_write %sums#0, %s[%c0, %c0] {in_bounds = [true]} : vector<8xf32>, memref<3x8xf32>
    vector.transfer_write %sums#1, %s[%c1, %c0] {in_bounds = [true]} : vector<8xf32>, memref<3x8xf32>
    scf.yield
  }
  case 3 {
    %sum = scf.for %k = %c0 to %c24 step %c1 iter_args(%a = %zero) -> (vector<8xf32>) {
      %p = vector.transfer_read %w[%panel, %k, %c0], %pad {in_bounds = [true]} : memref<5x24x8xf32>, vector<8xf32>
      %a1 = arith.addf %p, %a : vector<8xf32>
      scf.yield %a1 : vector<8xf32>
    }
    %first = vector.extract %sum[0] : f32 from vector<8xf32>
    memref.store %first, %s[%c0, %c0] : memref<3x8xf32>
    scf.yield
  }
  default {
  }
  return
}

// CHECK-LABEL: func.func private @microkernel.2(
// CHECK-SAME:    %[[W:.+]]: memref<?x24x8xf32>, %[[PANEL:.+]]: index, %[[X:.+]]: memref<?x24xf32>, %[[ROW:.+]]: index, %[[S:.+]]: memref<?x8xf32>)
// CHECK-SAME:    attributes {attune.kernel, passthrough = ["noinline"]}
// CHECK:         %[[FLAT:.+]] = memref.collapse_shape %[[W]] {{.+}} into memref<?x192xf32>
// CHECK:         %[[NEXT:.+]] = arith.addi %[[ROW]], %c1
// CHECK:         scf.for
// CHECK-NEXT:      memref.prefetch %[[FLAT]][%[[PANEL]], %{{.+}}]
// CHECK:           memref.load %[[X]][%[[ROW]], %{{.+}}]
// CHECK:           memref.load %[[X]][%[[NEXT]], %{{.+}}]
// CHECK:         vector.transfer_write %{{.+}}, %[[S]][%c0
// CHECK:         return
// CHECK-LABEL: func.func private @microkernel.3(
// CHECK-NOT:   @microkernel
