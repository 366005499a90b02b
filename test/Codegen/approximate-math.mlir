// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(attune-approximate-math))" | FileCheck %s

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
