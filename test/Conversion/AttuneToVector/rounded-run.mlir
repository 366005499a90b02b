// Norms, rotary embeddings and heads that write bf16 give what those of f32 give,
// rounded: bit by bit, in loops over heads and over tokens as well.
// DEFINE: %{lanes} = lanes=8
// DEFINE: %{run} = attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{%{lanes}}), \
// DEFINE:   convert-elementwise-to-linalg,canonicalize,cse, \
// DEFINE:   one-shot-bufferize{bufferize-function-boundaries allow-return-allocs-from-loops function-boundary-type-conversion=identity-layout-map}, \
// DEFINE:   func.func(scf-forall-to-for,convert-linalg-to-loops),expand-strided-metadata,lower-affine,convert-scf-to-cf, \
// DEFINE:   arith-expand{include-bf16=true},convert-vector-to-llvm,convert-math-to-llvm, \
// DEFINE:   finalize-memref-to-llvm,convert-arith-to-llvm,convert-func-to-llvm,convert-cf-to-llvm,reconcile-unrealized-casts)" \
// DEFINE:   | mlir-runner -O0 --entry-point-result=void --shared-libs=%llvm_tools/../lib/libmlir_c_runner_utils.so
// RUN: %{run} | FileCheck %s
// REDEFINE: %{lanes} = lanes=8 cooperative
// RUN: %{run} | FileCheck %s

// Numbers that differ, and how many are not zero, of six pairs.
// CHECK-COUNT-6: {{^}}0 of {{[1-9][0-9]+$}}

!heads = tensor<2x3x5x20xf32>
!short = tensor<2x3x5x20xbf16>

// Some numbers between -2 and 2 whose bits are all in use.
func.func private @fill(%seed: i64) -> !heads {
  %t = tensor.generate {
  ^bb0(%b: index, %h: index, %t: index, %d: index):
    %c3 = arith.constant 3 : index
    %c5 = arith.constant 5 : index
    %c20 = arith.constant 20 : index
    %0 = arith.muli %b, %c3 : index
    %1 = arith.addi %0, %h : index
    %2 = arith.muli %1, %c5 : index
    %3 = arith.addi %2, %t : index
    %4 = arith.muli %3, %c20 : index
    %5 = arith.addi %4, %d : index
    %6 = arith.index_cast %5 : index to i64
    %factor = arith.constant 2654435761 : i64
    %mask = arith.constant 4294967295 : i64
    %7 = arith.addi %6, %seed : i64
    %8 = arith.muli %7, %factor : i64
    %9 = arith.andi %8, %mask : i64
    %10 = arith.sitofp %9 : i64 to f32
    %scale = arith.constant 9.31322574615478515625e-10 : f32
    %two = arith.constant 2.0 : f32
    %11 = arith.mulf %10, %scale : f32
    %12 = arith.subf %11, %two : f32
    tensor.yield %12 : f32
  } : !heads
  return %t : !heads
}

func.func private @printI64(i64)
func.func private @printNewline()
func.func private @printString(!llvm.ptr)
llvm.mlir.global internal constant @of(" of \00")

func.func private @compare(%wide: !heads, %short: !short) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c5 = arith.constant 5 : index
  %c20 = arith.constant 20 : index
  %zero = arith.constant 0 : i64
  %rounded = arith.truncf %wide : !heads to !short
  %r:2 = scf.for %b = %c0 to %c2 step %c1 iter_args(%x0 = %zero, %y0 = %zero) -> (i64, i64) {
    %r0:2 = scf.for %h = %c0 to %c3 step %c1 iter_args(%x1 = %x0, %y1 = %y0) -> (i64, i64) {
      %r1:2 = scf.for %t = %c0 to %c5 step %c1 iter_args(%x2 = %x1, %y2 = %y1) -> (i64, i64) {
        %r2:2 = scf.for %d = %c0 to %c20 step %c1 iter_args(%x3 = %x2, %y3 = %y2) -> (i64, i64) {
          %p = tensor.extract %rounded[%b, %h, %t, %d] : !short
          %q = tensor.extract %short[%b, %h, %t, %d] : !short
          %pi = arith.bitcast %p : bf16 to i16
          %qi = arith.bitcast %q : bf16 to i16
          %differ = arith.cmpi ne, %pi, %qi : i16
          %one = arith.extui %differ : i1 to i64
          %x4 = arith.addi %x3, %one : i64
          %none = arith.constant 0 : i16
          %there = arith.cmpi ne, %qi, %none : i16
          %another = arith.extui %there : i1 to i64
          %y4 = arith.addi %y3, %another : i64
          scf.yield %x4, %y4 : i64, i64
        }
        scf.yield %r2#0, %r2#1 : i64, i64
      }
      scf.yield %r1#0, %r1#1 : i64, i64
    }
    scf.yield %r0#0, %r0#1 : i64, i64
  }
  func.call @printI64(%r#0) : (i64) -> ()
  %of = llvm.mlir.addressof @of : !llvm.ptr
  func.call @printString(%of) : (!llvm.ptr) -> ()
  func.call @printI64(%r#1) : (i64) -> ()
  func.call @printNewline() : () -> ()
  return
}

func.func @main() {
  %s0 = arith.constant 1 : i64
  %s1 = arith.constant 700 : i64
  %x = call @fill(%s0) : (i64) -> !heads
  %angles = call @fill(%s1) : (i64) -> !heads
  %cos = tensor.extract_slice %angles[0, 0, 0, 0] [2, 1, 5, 6] [1, 1, 1, 1] : !heads to tensor<2x5x6xf32>
  %sin = tensor.extract_slice %angles[0, 1, 0, 0] [2, 1, 5, 6] [1, 1, 1, 1] : !heads to tensor<2x5x6xf32>
  %g = tensor.extract_slice %angles[0, 2, 0, 0] [1, 1, 1, 20] [1, 1, 1, 1] : !heads to tensor<20xf32>

  // Eight channels pass by.
  %a0 = attune.rotary %x, %cos, %sin pairing <half> : !heads, tensor<2x5x6xf32>
  %a1 = attune.rotary %x, %cos, %sin pairing <half> : !heads, tensor<2x5x6xf32> -> !short
  call @compare(%a0, %a1) : (!heads, !short) -> ()
  %b0 = attune.rotary %x, %cos, %sin pairing <interleaved> : !heads, tensor<2x5x6xf32>
  %b1 = attune.rotary %x, %cos, %sin pairing <interleaved> : !heads, tensor<2x5x6xf32> -> !short
  call @compare(%b0, %b1) : (!heads, !short) -> ()

  %c0 = attune.rms_norm %x gamma %g : tensor<20xf32> eps 1.0e-5 : !heads
  %c1 = attune.rms_norm %x gamma %g : tensor<20xf32> eps 1.0e-5 : !heads -> !short
  call @compare(%c0, %c1) : (!heads, !short) -> ()

  %rows = attune.merge_heads %x : !heads -> tensor<2x5x60xf32>
  %d0 = attune.split_heads %rows : tensor<2x5x60xf32> -> !heads
  %d1 = attune.split_heads %rows : tensor<2x5x60xf32> -> !short
  call @compare(%d0, %d1) : (!heads, !short) -> ()
  %same = attune.merge_heads %d1 : !short -> tensor<2x5x60xbf16>
  %d2 = attune.split_heads %same : tensor<2x5x60xbf16> -> !short
  call @compare(%d0, %d2) : (!heads, !short) -> ()

  %e0 = attune.layer_norm %rows eps 1.0e-5 : tensor<2x5x60xf32>
  %e1 = attune.layer_norm %rows eps 1.0e-5 : tensor<2x5x60xf32> -> tensor<2x5x60xbf16>
  %f0 = attune.split_heads %e0 : tensor<2x5x60xf32> -> !heads
  %f1 = attune.split_heads %e1 : tensor<2x5x60xbf16> -> !short
  call @compare(%f0, %f1) : (!heads, !short) -> ()
  return
}
