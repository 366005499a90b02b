// Sines and cosines of rotary tables against libm in double precision, at the
// angles that f32 has for positions up to 100000: the bound that emitSinCos
// (SinCos.h) states, and that it is no looser than needed.
// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=8}), \
// RUN:   canonicalize,cse, \
// RUN:   one-shot-bufferize{bufferize-function-boundaries allow-return-allocs-from-loops function-boundary-type-conversion=identity-layout-map}, \
// RUN:   func.func(scf-forall-to-for,convert-linalg-to-loops),expand-strided-metadata,lower-affine,convert-scf-to-cf, \
// RUN:   convert-math-to-libm,arith-expand,convert-vector-to-llvm,convert-math-to-llvm, \
// RUN:   finalize-memref-to-llvm,convert-arith-to-llvm,convert-func-to-llvm,convert-cf-to-llvm,reconcile-unrealized-casts)" \
// RUN:   | mlir-runner -O0 --entry-point-result=void --shared-libs=%llvm_tools/../lib/libmlir_c_runner_utils.so \
// RUN:   | FileCheck %s

// The largest errors, in units of 1e-8: below 25, and not all zero.
// CHECK: {{^([1-9]|1[0-9]|2[0-4])(\.[0-9]+)?$}}
// CHECK: {{^([1-9]|1[0-9]|2[0-4])(\.[0-9]+)?$}}

!table = tensor<1x100001x8xf32>

func.func private @table(%positions: tensor<1x100001xi64>) -> (!table, !table) {
  %cos, %sin = attune.rotary_table %positions
    frequencies [1.0, 0.7390851332151607, 0.31622776601683794, 0.1, 0.031622776601683791, 0.01, 0.001, 0.0001]
    : tensor<1x100001xi64> -> !table, !table
  return %cos, %sin : !table, !table
}

// Ids are what positions are in a model: data.
func.func private @positions() -> tensor<1x100001xi64> {
  %t = tensor.generate {
  ^bb0(%b: index, %i: index):
    %p = arith.index_cast %i : index to i64
    tensor.yield %p : i64
  } : tensor<1x100001xi64>
  return %t : tensor<1x100001xi64>
}

func.func private @printF64(f64)
func.func private @printNewline()

func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %n = arith.constant 100001 : index
  %zero = arith.constant 0.0 : f64
  %unit = arith.constant 1.0e8 : f64
  %positions = call @positions() : () -> tensor<1x100001xi64>
  %cos, %sin = call @table(%positions) : (tensor<1x100001xi64>) -> (!table, !table)
  %frequencies = arith.constant dense<[1.0, 0.7390851332151607, 0.31622776601683794, 0.1, 0.031622776601683791, 0.01, 0.001, 0.0001]> : tensor<8xf32>
  %worst:2 = scf.for %i = %c0 to %n step %c1 iter_args(%s0 = %zero, %t0 = %zero) -> (f64, f64) {
    %inner:2 = scf.for %j = %c0 to %c8 step %c1 iter_args(%s1 = %s0, %t1 = %t0) -> (f64, f64) {
      %p = arith.index_cast %i : index to i64
      %x = arith.sitofp %p : i64 to f32
      %f = tensor.extract %frequencies[%j] : tensor<8xf32>
      %angle = arith.mulf %x, %f : f32
      %wide = arith.extf %angle : f32 to f64
      %exactSin = math.sin %wide : f64
      %exactCos = math.cos %wide : f64
      %s = tensor.extract %sin[%c0, %i, %j] : !table
      %c = tensor.extract %cos[%c0, %i, %j] : !table
      %sw = arith.extf %s : f32 to f64
      %cw = arith.extf %c : f32 to f64
      %sd = arith.subf %sw, %exactSin : f64
      %cd = arith.subf %cw, %exactCos : f64
      %sa = math.absf %sd : f64
      %ca = math.absf %cd : f64
      %sm = arith.maximumf %s1, %sa : f64
      %cm = arith.maximumf %t1, %ca : f64
      scf.yield %sm, %cm : f64, f64
    }
    scf.yield %inner#0, %inner#1 : f64, f64
  }
  %a = arith.mulf %worst#0, %unit : f64
  %b = arith.mulf %worst#1, %unit : f64
  call @printF64(%a) : (f64) -> ()
  call @printNewline() : () -> ()
  call @printF64(%b) : (f64) -> ()
  call @printNewline() : () -> ()
  return
}
