// RUN: attune-opt %s --pass-pipeline="builtin.module(convert-attune-to-gpu{multiprocessors=132 warpgroups=true})" --split-input-file | FileCheck %s
// RUN: attune-opt %s --pass-pipeline="builtin.module(convert-attune-to-gpu{multiprocessors=132 warpgroups=true},func.func(canonicalize,cse))" --split-input-file | FileCheck %s --check-prefix=COUNT

// Buffers of megabytes: the evaluator would fill them for minutes. What the
// kernels compute is tested in Integration/GPU.
// UNSUPPORTED: validate

// Maps of all heads' keys and values; a block for 128 rows.
// CHECK-LABEL: func.func @many(
// CHECK:         %[[KEYS:.+]] = llvm.call @attune_rt_tensor_map(
// CHECK:         %[[VALUES:.+]] = llvm.call @attune_rt_tensor_map(
// CHECK:         gpu.launch {{.+}} threads({{.+}}) in (%{{.+}} = %c384{{.*}}, {{.+}}) dynamic_shared_memory_size %{{.+}}
// CHECK-COUNT-8:   nvvm.mbarrier.init
// CHECK:           gpu.barrier
// One thread copies, two boxes of keys and two of values a step.
// CHECK:           nvvm.setmaxregister decrease 24
// CHECK:           scf.for
// CHECK:             nvvm.mbarrier.try_wait.parity
// CHECK:             nvvm.mbarrier.arrive.expect_tx
// CHECK-COUNT-2:     nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK:             nvvm.mbarrier.try_wait.parity
// CHECK:             nvvm.mbarrier.arrive.expect_tx
// CHECK-COUNT-2:     nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK:           } else {
// CHECK:             nvvm.setmaxregister increase 240
// Queries are stored for all of the warpgroup.
// CHECK:             llvm.store {{.+}} {alignment = 16 : i64}
// CHECK:             nvvm.fence.proxy
// CHECK:             nvvm.barrier id = %{{.+}} number_of_threads = %{{.+}}
// Scores of the first tile.
// CHECK-COUNT-8:     nvvm.wgmma.mma_async {{.+}}m = 64, n = 128, k = 16
// CHECK:             "wgmma.wait_group.sync.aligned 0;"
// CHECK:             llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
// CHECK:             scf.for
// In its turn a warpgroup starts scores of this tile and values of the last,
// waits for the former and makes weights of them before it waits for the rest.
// CHECK:               nvvm.mbarrier.try_wait.parity
// CHECK:               nvvm.barrier id
// CHECK:               nvvm.wgmma.fence.aligned
// CHECK-COUNT-8:       nvvm.wgmma.mma_async {{.+}}m = 64, n = 128, k = 16
// CHECK:               nvvm.wgmma.commit.group.sync.aligned
// CHECK:               nvvm.mbarrier.try_wait.parity
// CHECK:               "wgmma.fence.sync.aligned;"
// CHECK-COUNT-8:       llvm.inline_asm has_side_effects "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16
// CHECK:               nvvm.wgmma.commit.group.sync.aligned
// CHECK:               nvvm.barrier.arrive
// CHECK:               "wgmma.wait_group.sync.aligned 1;"
// CHECK:               nvvm.mbarrier.arrive
// CHECK:               llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
// CHECK:               "wgmma.wait_group.sync.aligned 0;"
// CHECK:               nvvm.mbarrier.arrive
// CHECK:               arith.truncf {{.+}} : vector<2xf32> to vector<2xbf16>
// CHECK:               arith.mulf
// CHECK:             nvvm.mbarrier.try_wait.parity
// CHECK-COUNT-8:     llvm.inline_asm has_side_effects "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16
// CHECK:             "wgmma.wait_group.sync.aligned 0;"
// CHECK:             vector.store {{.+}} {alignment = 4 : i64}
// CHECK-NOT:     nvvm.mma.sync
// CHECK:         return
func.func @many(%q: memref<2x8x4096x128xbf16>, %k: memref<2x2x4096x128xbf16>, %d: memref<2x8x4096x128xbf16>) {
  attune.attention_into %q, %k, %k scale 0.125 causal <bottom_right> into %d : memref<2x8x4096x128xbf16>, memref<2x2x4096x128xbf16>, memref<2x2x4096x128xbf16>, memref<2x8x4096x128xbf16>
  return
}

// -----

// The host decides by rows and keys; few take the kernel of warps.
// COUNT-LABEL: func.func @unknown(
// COUNT:         %[[ROWS:.+]] = arith.muli
// COUNT:         %[[LEAST:.+]] = arith.minsi %[[ROWS]], %{{.+}} : index
// COUNT:         arith.cmpi slt, %[[LEAST]], %c65 : index
// COUNT:         scf.if
// COUNT-COUNT-64:  nvvm.mma.sync
// COUNT-NOT:       wgmma
// COUNT:         } else {
// COUNT-COUNT-8:   nvvm.wgmma.mma_async {{.+}}m = 64, n = 128, k = 16
// COUNT-COUNT-16:  wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16
func.func @unknown(%q: memref<?x8x?x64xf16>, %k: memref<?x2x?x64xf16>, %d: memref<?x8x?x64xf16>) {
  attune.attention_into %q, %k, %k scale 0.125 into %d : memref<?x8x?x64xf16>, memref<?x2x?x64xf16>, memref<?x2x?x64xf16>, memref<?x8x?x64xf16>
  return
}

// -----

// Scores that meet something from memory come 64 at a time.
// COUNT-LABEL: func.func @masked(
// COUNT:         nvvm.wgmma.mma_async {{.+}}m = 64, n = 64, k = 16
func.func @masked(%q: memref<1x8x4096x128xbf16>, %m: memref<1x1x4096x4096xi1>, %d: memref<1x8x4096x128xbf16>) {
  attune.attention_into %q, %q, %q scale 0.125 mask %m : memref<1x1x4096x4096xi1> into %d : memref<1x8x4096x128xbf16>, memref<1x8x4096x128xbf16>, memref<1x8x4096x128xbf16>, memref<1x8x4096x128xbf16>
  return
}

// -----

// Not for it: f32, a wider result, rows that a tensor map cannot take.
// COUNT-LABEL: func.func @others(
// COUNT-NOT:     wgmma
// COUNT:         return
func.func @others(%q: memref<1x8x4096x64xf32>, %n: memref<1x8x4096x64xbf16>, %o: memref<1x8x4096x36xbf16>) {
  attune.attention_into %q, %q, %q scale 0.125 into %q : memref<1x8x4096x64xf32>, memref<1x8x4096x64xf32>, memref<1x8x4096x64xf32>, memref<1x8x4096x64xf32>
  attune.attention_into %n, %n, %n scale 0.125 into %q : memref<1x8x4096x64xbf16>, memref<1x8x4096x64xbf16>, memref<1x8x4096x64xbf16>, memref<1x8x4096x64xf32>
  attune.attention_into %o, %o, %o scale 0.125 into %o : memref<1x8x4096x36xbf16>, memref<1x8x4096x36xbf16>, memref<1x8x4096x36xbf16>, memref<1x8x4096x36xbf16>
  return
}
