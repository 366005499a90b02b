// RUN: attune-opt %s --pass-pipeline="builtin.module(convert-attune-to-gpu{multiprocessors=132 warpgroups=true})" --split-input-file | FileCheck %s

// Buffers of hundreds of megabytes: the evaluator would fill them for minutes.
// What the kernels compute is tested in Integration/GPU.
// UNSUPPORTED: validate

// Large tiles of activations in the weights' type: the host makes the tensor
// maps, one warpgroup copies, two multiply.
// CHECK-LABEL: func.func @large(
// CHECK:         %[[ROWS:.+]] = llvm.call @attune_rt_tensor_map(
// CHECK:         %[[PANELS:.+]] = llvm.call @attune_rt_tensor_map(
// CHECK:         gpu.launch {{.+}} threads({{.+}}) in (%{{.+}} = %c384{{.*}}, {{.+}}) dynamic_shared_memory_size %{{.+}}
// CHECK-COUNT-8:   nvvm.mbarrier.init
// CHECK:           nvvm.fence.mbarrier.init
// CHECK:           gpu.barrier
// CHECK:           scf.if
// CHECK:             nvvm.setmaxregister decrease 40
// CHECK:             nvvm.fence.proxy.acquire
// CHECK:             scf.for
// CHECK:               nvvm.mbarrier.try_wait.parity
// CHECK:               nvvm.mbarrier.arrive.expect_tx
// CHECK-COUNT-2:       nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK:           } else {
// CHECK:             nvvm.setmaxregister increase 232
// CHECK:             scf.for
// CHECK:               nvvm.mbarrier.try_wait.parity
// CHECK:               nvvm.wgmma.fence.aligned
// CHECK-COUNT-4:       nvvm.wgmma.mma_async {{.+}}m = 64, n = 256, k = 16
// CHECK:               nvvm.wgmma.commit.group.sync.aligned
// CHECK:               nvvm.wgmma.wait.group.sync.aligned 1
// CHECK:               nvvm.mbarrier.arrive
// CHECK:             nvvm.wgmma.wait.group.sync.aligned 0
// CHECK:             vector.store
func.func @large(%x: memref<8192x8192xbf16>, %w: memref<1024x8192x8xbf16>, %d: memref<8192x8192xbf16>) {
  attune.linear_into %x, %w into %d : memref<8192x8192xbf16>, memref<1024x8192x8xbf16>, memref<8192x8192xbf16>
  return
}

// -----

// Rows that a tensor map cannot take, and activations of f32.
// CHECK-LABEL: func.func @odd(
// CHECK-NOT:     wgmma
// CHECK:         nvvm.mma.sync
func.func @odd(%x: memref<8192x42xbf16>, %w: memref<1024x42x8xbf16>, %d: memref<8192x8192xbf16>) {
  attune.linear_into %x, %w into %d : memref<8192x42xbf16>, memref<1024x42x8xbf16>, memref<8192x8192xbf16>
  return
}

// -----

// CHECK-LABEL: func.func @wider(
// CHECK-NOT:     wgmma
// CHECK:         nvvm.mma.sync
func.func @wider(%x: memref<8192x64xf32>, %w: memref<1024x64x8xbf16>, %d: memref<8192x8192xf32>) {
  attune.linear_into %x, %w into %d : memref<8192x64xf32>, memref<1024x64x8xbf16>, memref<8192x8192xf32>
  return
}
