// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(attune-approximate-math))" | FileCheck %s
// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(attune-approximate-math{scales}))" \
// RUN:   | FileCheck %s --check-prefixes=CHECK,SCALES

// No call per element is left of any of them.
// CHECK-LABEL: @vectors(
// CHECK-NOT:     math.{{exp|exp2|tanh|erf}} %
// CHECK:         return
func.func @vectors(%x: vector<16xf32>) -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
  %0 = math.exp %x : vector<16xf32>
  %1 = math.exp2 %x : vector<16xf32>
  %2 = math.tanh %x : vector<16xf32>
  %3 = math.erf %x : vector<16xf32>
  return %0, %1, %2, %3 : vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>
}

// CHECK-LABEL: @other_functions(
// CHECK:         math.sqrt %{{.+}} : vector<16xf32>
func.func @other_functions(%x: vector<16xf32>) -> vector<16xf32> {
  %0 = math.sqrt %x : vector<16xf32>
  return %0 : vector<16xf32>
}

// The root and the quotient are for what is not positive and normal, lane by
// lane.
// CHECK-LABEL: @rsqrt(
// CHECK:         %[[USUAL:.+]] = arith.cmpi ult
// CHECK:         %[[ALL:.+]] = vector.reduction <and>, %[[USUAL]]
// CHECK:         scf.if %[[ALL]] -> (vector<16xf32>) {
// CHECK-NEXT:      scf.yield %[[NEAR:.+]] : vector
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %[[ROOT:.+]] = math.sqrt
// CHECK-NEXT:      %[[QUOTIENT:.+]] = arith.divf %{{.+}}, %[[ROOT]]
// CHECK-NEXT:      arith.select %[[USUAL]], %[[NEAR]], %[[QUOTIENT]]
func.func @rsqrt(%x: vector<16xf32>) -> vector<16xf32> {
  %0 = math.rsqrt %x : vector<16xf32>
  return %0 : vector<16xf32>
}

// CHECK-LABEL: @rsqrt_of_one(
// CHECK:         %[[USUAL:.+]] = arith.cmpi ult
// CHECK:         scf.if %[[USUAL]] -> (f32) {
// CHECK-NEXT:      scf.yield %{{.+}} : f32
// CHECK-NEXT:    } else {
// CHECK-NEXT:      math.sqrt
func.func @rsqrt_of_one(%x: f32) -> f32 {
  %0 = math.rsqrt %x : f32
  return %0 : f32
}

// Scalars of the exponentials are rare: libm does them.
// CHECK-LABEL: @scalars(
// CHECK:         math.exp %{{.+}} : f32
// CHECK:         math.exp2 %{{.+}} : f32
func.func @scalars(%x: f32) -> (f32, f32) {
  %0 = math.exp %x : f32
  %1 = math.exp2 %x : f32
  return %0, %1 : f32, f32
}

// With AVX-512 16 numbers at a time are scaled by their powers; the rest of the
// work is done on the vector as it comes. -126 and below are 0, a NaN is not.
// SCALES-LABEL: @scaled(
// SCALES-SAME:    %[[X:.+]]: vector<32xf32>
// SCALES:         %[[N:.+]] = math.roundeven %[[X]]
// SCALES:         %[[F:.+]] = arith.subf %[[X]], %[[N]]
// SCALES-COUNT-5: math.fma %{{.+}}, %[[F]], %{{.+}} : vector<32xf32>
// SCALES:         %[[USUAL:.+]] = arith.cmpf ugt, %[[N]], %{{.+}}
// SCALES:         %[[LOW:.+]] = x86vector.avx512.mask.scalef
// SCALES:         %[[LOW_USUAL:.+]] = vector.extract_strided_slice %[[USUAL]] {offsets = [0]
// SCALES:         arith.select %[[LOW_USUAL]], %[[LOW]], %{{.+}} : vector<16xi1>
// SCALES:         %[[HIGH:.+]] = x86vector.avx512.mask.scalef
// SCALES:         %[[HIGH_USUAL:.+]] = vector.extract_strided_slice %[[USUAL]] {offsets = [16]
// SCALES:         arith.select %[[HIGH_USUAL]], %[[HIGH]], %{{.+}} : vector<16xi1>
// SCALES-NOT:     arith.shli
// SCALES:         return
func.func @scaled(%x: vector<32xf32>) -> vector<32xf32> {
  %0 = math.exp2 %x : vector<32xf32>
  return %0 : vector<32xf32>
}

// Fewer than 16 are not worth a register of their own.
// SCALES-LABEL: @narrow(
// SCALES:         arith.shli
// SCALES-NOT:     x86vector
// SCALES:         return
func.func @narrow(%x: vector<8xf32>) -> vector<8xf32> {
  %0 = math.exp2 %x : vector<8xf32>
  return %0 : vector<8xf32>
}
