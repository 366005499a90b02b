// RUN: attune-opt %s --attune-pad-rows --split-input-file | FileCheck %s
// RUN: attune-opt %s --attune-pad-rows=way-bytes=8192 --split-input-file | FileCheck %s --check-prefix=WIDE
// RUN: not attune-opt %s --attune-pad-rows=way-bytes=32 --split-input-file 2>&1 | FileCheck %s --check-prefix=SMALL

// SMALL: error: way-bytes must be at least 64

// 1024 f32 are 4096 bytes: a line is added, and views see it as a stride.
// CHECK-LABEL: @rows(
// CHECK:         %[[ALL:.+]] = memref.alloc(%{{.+}}) {alignment = 64 : i64} : memref<?x1040xf32>
// CHECK:         %[[ROWS:.+]] = memref.subview %[[ALL]][0, 0] [%{{.+}}, 1024] [1, 1]
// CHECK-SAME:      to memref<?x1024xf32, strided<[1040, 1]>>
// CHECK:         memref.subview %[[ROWS]][%{{.+}}, 0] [1, 1024] [1, 1]
// CHECK-SAME:      to memref<1x1024xf32, strided<[1040, 1], offset: ?>>
// CHECK:         vector.transfer_write {{.*}}memref<1x1024xf32, strided<[1040, 1], offset: ?>>
// CHECK:         memref.load %[[ROWS]]
// CHECK:         memref.cast %[[ROWS]]
// WIDE-LABEL:  @rows(
// WIDE:          memref.alloc(%{{.+}}) {alignment = 64 : i64} : memref<?x1024xf32>
func.func @rows(%n: index, %i: index, %v: vector<8xf32>) -> f32 {
  %0 = arith.constant 0 : index
  %a = memref.alloc(%n) {alignment = 64 : i64} : memref<?x1024xf32>
  %row = memref.subview %a[%i, 0] [1, 1024] [1, 1]
      : memref<?x1024xf32> to memref<1x1024xf32, strided<[1024, 1], offset: ?>>
  vector.transfer_write %v, %row[%0, %0] {in_bounds = [true]}
      : vector<8xf32>, memref<1x1024xf32, strided<[1024, 1], offset: ?>>
  %x = memref.load %a[%i, %0] : memref<?x1024xf32>
  %anywhere = memref.cast %a : memref<?x1024xf32>
      to memref<?x1024xf32, strided<[?, ?], offset: ?>>
  memref.prefetch %anywhere[%i, %0], read, locality<3>, data
      : memref<?x1024xf32, strided<[?, ?], offset: ?>>
  return %x : f32
}

// -----

// Tokens of sequences are rows, too; a row of bf16 has half the bytes.
// CHECK-LABEL: @tokens(
// CHECK:         memref.alloc(%{{.+}}, %{{.+}}) : memref<?x?x2080xbf16>
// CHECK:         %[[ROWS:.+]] = memref.collapse_shape %{{.+}} {{\[\[}}0, 1], [2]]
// CHECK:         memref.subview %[[ROWS]]{{.+}} to memref<?x2048xbf16, strided<[2080, 1]>>
// WIDE-LABEL:  @tokens(
// WIDE:          memref.alloc(%{{.+}}, %{{.+}}) : memref<?x?x2048xbf16>
func.func @tokens(%b: index, %s: index) -> bf16 {
  %a = memref.alloc(%b, %s) : memref<?x?x2048xbf16>
  %rows = memref.collapse_shape %a [[0, 1], [2]]
      : memref<?x?x2048xbf16> into memref<?x2048xbf16>
  %x = memref.load %rows[%b, %s] : memref<?x2048xbf16>
  return %x : bf16
}

// -----

// Inputs that are rounded for a product: linalg ops take any stride.
// CHECK-LABEL: @rounded(
// CHECK:         memref.alloc(%{{.+}}) : memref<?x2080xbf16>
// CHECK:         linalg.generic {{.*}} outs(%{{.+}} : memref<?x2048xbf16, strided<[2080, 1]>>)
func.func @rounded(%n: index, %x: memref<?x2048xf32>) -> bf16 {
  %a = memref.alloc(%n) : memref<?x2048xbf16>
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>,
                                   affine_map<(i, j) -> (i, j)>],
                  iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<?x2048xf32>) outs(%a : memref<?x2048xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %0 = arith.truncf %in : f32 to bf16
    linalg.yield %0 : bf16
  }
  %first = memref.load %a[%n, %n] : memref<?x2048xbf16>
  return %first : bf16
}

// -----

// What a function is given, or what is seen as one row, stays as it is; rows
// that begin in different sets do, too, and a single one.
// CHECK-LABEL: @kept(
// CHECK:         memref.alloc(%{{.+}}) : memref<?x1024xf32>
// CHECK:         memref.alloc(%{{.+}}) : memref<?x1024xf32>
// CHECK:         memref.alloc(%{{.+}}) : memref<?x1000xf32>
// CHECK:         memref.alloc() : memref<1x1024xf32>
func.func private @reads(memref<?x1024xf32>)
func.func @kept(%n: index) -> (f32, f32, f32) {
  %0 = arith.constant 0 : index
  %given = memref.alloc(%n) : memref<?x1024xf32>
  call @reads(%given) : (memref<?x1024xf32>) -> ()
  %seen = memref.alloc(%n) : memref<?x1024xf32>
  %flat = memref.collapse_shape %seen [[0, 1]]
      : memref<?x1024xf32> into memref<?xf32>
  %x = memref.load %flat[%n] : memref<?xf32>
  %odd = memref.alloc(%n) : memref<?x1000xf32>
  %y = memref.load %odd[%n, %0] : memref<?x1000xf32>
  %one = memref.alloc() : memref<1x1024xf32>
  %z = memref.load %one[%0, %0] : memref<1x1024xf32>
  return %x, %y, %z : f32, f32, f32
}
