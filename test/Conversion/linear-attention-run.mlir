// All tokens at once, in two pieces, and one at a time: the parallel form and
// the running one agree, and so do their last sums.
// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=16 rows=6}), \
// RUN:   canonicalize,cse, \
// RUN:   one-shot-bufferize{bufferize-function-boundaries allow-return-allocs-from-loops function-boundary-type-conversion=identity-layout-map}, \
// RUN:   func.func(attune-approximate-math,scf-forall-to-for,convert-linalg-to-loops),expand-strided-metadata,lower-affine,convert-scf-to-cf, \
// RUN:   convert-math-to-libm,arith-expand,convert-vector-to-llvm,convert-math-to-llvm, \
// RUN:   finalize-memref-to-llvm,convert-arith-to-llvm,convert-func-to-llvm,convert-cf-to-llvm,reconcile-unrealized-casts)" \
// RUN:   | mlir-runner -O0 --entry-point-result=void --shared-libs=%llvm_tools/../lib/libmlir_c_runner_utils.so,%llvm_tools/../lib/libmlir_runner_utils.so \
// RUN:   | FileCheck %s

// CHECK: two pieces agree
// CHECK: single tokens agree
// CHECK: a mask hides

!q = tensor<2x4x?x10xf32>
!k = tensor<2x2x?x10xf32>
!v = tensor<2x2x?x7xf32>
!y = tensor<2x4x?x7xf32>
!s = tensor<2x2x10x8xf32>

// Numbers between -1 and 1 that look random and are the same every time.
func.func private @number(%b: index, %h: index, %t: index, %d: index, %seed: index) -> f32 {
  %c31 = arith.constant 31 : index
  %c37 = arith.constant 37 : index
  %c41 = arith.constant 41 : index
  %0 = arith.muli %b, %c31 : index
  %1 = arith.addi %0, %h : index
  %2 = arith.muli %1, %c37 : index
  %3 = arith.addi %2, %t : index
  %4 = arith.muli %3, %c41 : index
  %5 = arith.addi %4, %d : index
  %6 = arith.addi %5, %seed : index
  %7 = arith.index_cast %6 : index to i32
  %m = arith.constant -1640531535 : i32
  %s = arith.constant 15 : i32
  %8 = arith.muli %7, %m : i32
  %9 = arith.shrui %8, %s : i32
  %10 = arith.xori %8, %9 : i32
  %11 = arith.muli %10, %m : i32
  %12 = arith.sitofp %11 : i32 to f32
  %unit = arith.constant 4.656612873e-10 : f32
  %13 = arith.mulf %12, %unit : f32
  return %13 : f32
}

func.func private @whole(%q: !q, %k: !k, %v: !v, %s0: !s) -> (!y, !s) {
  %y, %s = attune.linear_attention %q, %k, %v <elu_plus_one> causal normalised 1.0e-6 state %s0 : !s
    : !q, !k, !v -> !y state !s
  return %y, %s : !y, !s
}

// Tokens [at, at + count) from the sums so far; their results go into %y.
func.func private @piece(%q: !q, %k: !k, %v: !v, %s0: !s, %y: !y, %at: index, %count: index) -> (!y, !s) {
  %q1 = tensor.extract_slice %q[0, 0, %at, 0] [2, 4, %count, 10] [1, 1, 1, 1] : !q to !q
  %k1 = tensor.extract_slice %k[0, 0, %at, 0] [2, 2, %count, 10] [1, 1, 1, 1] : !k to !k
  %v1 = tensor.extract_slice %v[0, 0, %at, 0] [2, 2, %count, 7] [1, 1, 1, 1] : !v to !v
  %y1, %s = attune.linear_attention %q1, %k1, %v1 <elu_plus_one> causal normalised 1.0e-6 state %s0 : !s
    : !q, !k, !v -> !y state !s
  %z = tensor.insert_slice %y1 into %y[0, 0, %at, 0] [2, 4, %count, 7] [1, 1, 1, 1] : !y into !y
  return %z, %s : !y, !s
}

// Keys beyond the first %seen, hidden by a mask.
func.func private @hidden(%q: !q, %k: !k, %v: !v, %seen: index) -> !y {
  %c2 = arith.constant 2 : index
  %n = tensor.dim %k, %c2 : !k
  %mask = tensor.generate %n {
  ^bb0(%b: index, %h: index, %m: index, %i: index):
    %0 = arith.cmpi ult, %i, %seen : index
    tensor.yield %0 : i1
  } : tensor<1x1x1x?xi1>
  %y = attune.linear_attention %q, %k, %v <relu> normalised 0.0 mask %mask : tensor<1x1x1x?xi1> : !q, !k, !v -> !y
  return %y : !y
}
func.func private @shorter(%q: !q, %k: !k, %v: !v, %seen: index) -> !y {
  %k1 = tensor.extract_slice %k[0, 0, 0, 0] [2, 2, %seen, 10] [1, 1, 1, 1] : !k to !k
  %v1 = tensor.extract_slice %v[0, 0, 0, 0] [2, 2, %seen, 7] [1, 1, 1, 1] : !v to !v
  %y = attune.linear_attention %q, %k1, %v1 <relu> normalised 0.0 : !q, !k, !v -> !y
  return %y : !y
}

// The largest difference, infinity if there is a NaN or all is zero.
func.func private @distance(%x: !y, %y: !y) -> f32 {
  %zero = arith.constant dense<0.0> : tensor<f32>
  %worst = linalg.generic {
      indexing_maps = [affine_map<(b, h, m, d) -> (b, h, m, d)>, affine_map<(b, h, m, d) -> (b, h, m, d)>, affine_map<(b, h, m, d) -> ()>],
      iterator_types = ["reduction", "reduction", "reduction", "reduction"]}
      ins(%x, %y : !y, !y) outs(%zero : tensor<f32>) {
  ^bb0(%a: f32, %b: f32, %so_far: f32):
    %0 = arith.subf %a, %b : f32
    %1 = math.absf %0 : f32
    %2 = arith.maximumf %1, %so_far : f32
    linalg.yield %2 : f32
  } -> tensor<f32>
  %largest = linalg.generic {
      indexing_maps = [affine_map<(b, h, m, d) -> (b, h, m, d)>, affine_map<(b, h, m, d) -> ()>],
      iterator_types = ["reduction", "reduction", "reduction", "reduction"]}
      ins(%x : !y) outs(%zero : tensor<f32>) {
  ^bb0(%a: f32, %so_far: f32):
    %1 = math.absf %a : f32
    %2 = arith.maximumf %1, %so_far : f32
    linalg.yield %2 : f32
  } -> tensor<f32>
  %0 = tensor.extract %worst[] : tensor<f32>
  %1 = tensor.extract %largest[] : tensor<f32>
  %some = arith.constant 0.05 : f32
  %inf = arith.constant 0x7F800000 : f32
  %nothing = arith.cmpf ult, %1, %some : f32
  %nan = arith.cmpf uno, %0, %0 : f32
  %bad = arith.ori %nothing, %nan : i1
  %2 = arith.select %bad, %inf, %0 : f32
  return %2 : f32
}

func.func private @farthest(%s: !s, %t: !s) -> f32 {
  %zero = arith.constant dense<0.0> : tensor<f32>
  %worst = linalg.generic {
      indexing_maps = [affine_map<(b, h, m, d) -> (b, h, m, d)>, affine_map<(b, h, m, d) -> (b, h, m, d)>, affine_map<(b, h, m, d) -> ()>],
      iterator_types = ["reduction", "reduction", "reduction", "reduction"]}
      ins(%s, %t : !s, !s) outs(%zero : tensor<f32>) {
  ^bb0(%a: f32, %b: f32, %so_far: f32):
    %0 = arith.subf %a, %b : f32
    %1 = math.absf %0 : f32
    %2 = arith.maximumf %1, %so_far : f32
    linalg.yield %2 : f32
  } -> tensor<f32>
  %0 = tensor.extract %worst[] : tensor<f32>
  return %0 : f32
}

func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 150 : index
  %half = arith.constant 70 : index
  %rest = arith.constant 80 : index
  %q = tensor.generate %n {
  ^bb0(%b: index, %h: index, %t: index, %d: index):
    %0 = func.call @number(%b, %h, %t, %d, %c0) : (index, index, index, index, index) -> f32
    tensor.yield %0 : f32
  } : !q
  %k = tensor.generate %n {
  ^bb0(%b: index, %h: index, %t: index, %d: index):
    %0 = func.call @number(%b, %h, %t, %d, %rest) : (index, index, index, index, index) -> f32
    tensor.yield %0 : f32
  } : !k
  %v = tensor.generate %n {
  ^bb0(%b: index, %h: index, %t: index, %d: index):
    %0 = func.call @number(%b, %h, %t, %d, %n) : (index, index, index, index, index) -> f32
    tensor.yield %0 : f32
  } : !v
  %s0 = tensor.generate {
  ^bb0(%b: index, %h: index, %t: index, %d: index):
    %0 = func.call @number(%b, %h, %t, %d, %half) : (index, index, index, index, index) -> f32
    %one = arith.constant 1.0 : f32
    %1 = arith.addf %0, %one : f32
    tensor.yield %1 : f32
  } : !s
  %empty = tensor.empty(%n) : !y
  %y:2 = call @whole(%q, %k, %v, %s0) : (!q, !k, !v, !s) -> (!y, !s)

  %a:2 = call @piece(%q, %k, %v, %s0, %empty, %c0, %half) : (!q, !k, !v, !s, !y, index, index) -> (!y, !s)
  %b:2 = call @piece(%q, %k, %v, %a#1, %a#0, %half, %rest) : (!q, !k, !v, !s, !y, index, index) -> (!y, !s)
  %d0 = call @distance(%y#0, %b#0) : (!y, !y) -> f32
  %e0 = call @farthest(%y#1, %b#1) : (!s, !s) -> f32

  %c:2 = scf.for %i = %c0 to %n step %c1 iter_args(%z = %empty, %s = %s0) -> (!y, !s) {
    %next:2 = func.call @piece(%q, %k, %v, %s, %z, %i, %c1) : (!q, !k, !v, !s, !y, index, index) -> (!y, !s)
    scf.yield %next#0, %next#1 : !y, !s
  }
  %d1 = call @distance(%y#0, %c#0) : (!y, !y) -> f32
  %e1 = call @farthest(%y#1, %c#1) : (!s, !s) -> f32

  %hidden = call @hidden(%q, %k, %v, %half) : (!q, !k, !v, index) -> !y
  %shorter = call @shorter(%q, %k, %v, %half) : (!q, !k, !v, index) -> !y
  %d2 = call @distance(%hidden, %shorter) : (!y, !y) -> f32

  %tolerance = arith.constant 2.0e-6 : f32
  %sums = arith.constant 1.0e-4 : f32
  %ok0 = arith.cmpf ole, %d0, %tolerance : f32
  %ok1 = arith.cmpf ole, %e0, %sums : f32
  %two = arith.andi %ok0, %ok1 : i1
  scf.if %two {
    vector.print str "two pieces agree\0A"
  } else {
    vector.print %d0 : f32
    vector.print %e0 : f32
  }
  %ok2 = arith.cmpf ole, %d1, %tolerance : f32
  %ok3 = arith.cmpf ole, %e1, %sums : f32
  %each = arith.andi %ok2, %ok3 : i1
  scf.if %each {
    vector.print str "single tokens agree\0A"
  } else {
    vector.print %d1 : f32
    vector.print %e1 : f32
  }
  %ok4 = arith.cmpf ole, %d2, %tolerance : f32
  scf.if %ok4 {
    vector.print str "a mask hides\0A"
  } else {
    vector.print %d2 : f32
  }
  return
}
