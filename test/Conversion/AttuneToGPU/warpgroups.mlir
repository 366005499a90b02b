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
// CHECK:               llvm.inline_asm has_side_effects "wgmma.fence.sync.aligned;"
// CHECK-COUNT-4:       nvvm.wgmma.mma_async {{.+}}m = 64, n = 256, k = 16
// CHECK:               nvvm.wgmma.commit.group.sync.aligned
// CHECK:               nvvm.wgmma.wait.group.sync.aligned 1
// CHECK:               nvvm.mbarrier.arrive
// CHECK:             llvm.inline_asm has_side_effects "wgmma.wait_group.sync.aligned 0;"
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

// A slice of columns: its map starts 64 elements later and has longer rows.
// CHECK-LABEL: func.func @slice(
// CHECK:         %{{.+}}, %[[OFFSET:.+]], %{{.+}}:2, %[[STRIDES:.+]]:2 = memref.extract_strided_metadata
// CHECK:         arith.muli %[[OFFSET]], %c2{{.*}} : index
// CHECK:         arith.muli %[[STRIDES]]#0, %c2{{.*}} : index
// CHECK:         llvm.call @attune_rt_tensor_map(
// CHECK:         nvvm.wgmma.mma_async
func.func @slice(%x: memref<8192x192xbf16>, %w: memref<1024x128x8xbf16>, %d: memref<8192x8192xbf16>) {
  %s = memref.subview %x[0, 64] [8192, 128] [1, 1] : memref<8192x192xbf16> to memref<8192x128xbf16, strided<[192, 1], offset: 64>>
  attune.linear_into %s, %w into %d : memref<8192x128xbf16, strided<[192, 1], offset: 64>>, memref<1024x128x8xbf16>, memref<8192x8192xbf16>
  return
}

// -----

// One that starts between multiples of 16 bytes.
// CHECK-LABEL: func.func @odd_slice(
// CHECK-NOT:     wgmma
// CHECK:         nvvm.mma.sync
func.func @odd_slice(%x: memref<8192x192xbf16>, %w: memref<1024x128x8xbf16>, %d: memref<8192x8192xbf16>) {
  %s = memref.subview %x[0, 4] [8192, 128] [1, 1] : memref<8192x192xbf16> to memref<8192x128xbf16, strided<[192, 1], offset: 4>>
  attune.linear_into %s, %w into %d : memref<8192x128xbf16, strided<[192, 1], offset: 4>>, memref<1024x128x8xbf16>, memref<8192x8192xbf16>
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

// -----

// Experts: rows that are named one by one are copied by all threads of a
// warpgroup, who tell the others when they have come. Panels have one map.
// CHECK-LABEL: func.func @gathered(
// CHECK:         llvm.call @attune_rt_tensor_map(
// CHECK-NOT:     llvm.call @attune_rt_tensor_map(
// CHECK:         gpu.launch {{.+}} threads({{.+}}) in (%{{.+}} = %c384{{.*}}, {{.+}}) dynamic_shared_memory_size %{{.+}}
// CHECK:           scf.if
// CHECK:             nvvm.setmaxregister decrease 40
// CHECK-COUNT-8:     memref.load %arg3
// CHECK:             scf.for
// CHECK:               nvvm.mbarrier.try_wait.parity
// CHECK:               nvvm.mbarrier.arrive.expect_tx
// CHECK-COUNT-1:       nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK-COUNT-8:       nvvm.cp.async.shared.global
// CHECK:               nvvm.cp.async.wait.group 2
// CHECK:               nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
// CHECK:               nvvm.mbarrier.arrive
// CHECK:           } else {
// CHECK:             nvvm.wgmma.mma_async
func.func @gathered(%x: memref<2048x4096xbf16>, %w: memref<8x256x4096x8xbf16>, %t: memref<48x3xi64>, %f: memref<4096xi64>, %d: memref<4096x2048xbf16>) {
  attune.grouped_linear_into %x, %w tasks %t : memref<48x3xi64> from %f : memref<4096xi64> into %d : memref<2048x4096xbf16>, memref<8x256x4096x8xbf16>, memref<4096x2048xbf16>
  return
}

// -----

// So few rows for each expert that small tiles are as good.
// CHECK-LABEL: func.func @few_each(
// CHECK-NOT:     wgmma
// CHECK:         nvvm.mma.sync
func.func @few_each(%x: memref<2048x4096xbf16>, %w: memref<128x256x4096x8xbf16>, %t: memref<160x3xi64>, %f: memref<4096xi64>, %d: memref<4096x2048xbf16>) {
  attune.grouped_linear_into %x, %w tasks %t : memref<160x3xi64> from %f : memref<4096xi64> into %d : memref<2048x4096xbf16>, memref<128x256x4096x8xbf16>, memref<4096x2048xbf16>
  return
}

// -----

// Batches: what lies behind one of them is the next one, in both maps.
// CHECK-LABEL: func.func @batches(
// CHECK-COUNT-2: llvm.call @attune_rt_tensor_map(
// CHECK:         gpu.launch
// CHECK:           nvvm.wgmma.mma_async
func.func @batches(%x: memref<32x1000x512xbf16>, %w: memref<16x16x512x8xbf16>, %d: memref<32x1000x128xbf16>) {
  attune.grouped_linear_into %x, %w into %d : memref<32x1000x512xbf16>, memref<16x16x512x8xbf16>, memref<32x1000x128xbf16>
  return
}

// -----

// So few tiles that up to 128 rows split the depth into eight parts, 256 into
// four: their sums are had where no choice is made yet. Rows up to 512 take
// narrow tiles and more take wider ones.
// CHECK-LABEL: func.func @split(
// CHECK:         %[[COUNT:.+]] = arith.select %{{.+}}, %c8{{.*}}, %{{.+}} : index
// CHECK:         %[[SUMS:.+]] = memref.alloc(%{{.+}}) : memref<?x2048xf32>
// CHECK:         scf.if
// CHECK-NOT:     nvvm.mma.sync
// CHECK:         arith.divui %{{.+}}, %[[COUNT]]
// CHECK:         gpu.launch {{.+}} threads({{.+}}) in (%{{.+}} = %c384{{.*}}, {{.+}})
// CHECK:           nvvm.wgmma.mma_async {{.+}}m = 64, n = 128, k = 16
// CHECK:           vector.store %{{.+}}, %[[SUMS]][{{.+}}] {alignment = 8 : i64} : memref<?x2048xf32>, vector<2xf32>
// CHECK:         gpu.launch {{.+}} threads({{.+}}) in (%{{.+}} = %c128{{.*}}, {{.+}})
// CHECK:           scf.for {{.+}} to %[[COUNT]]
// CHECK:             vector.load %[[SUMS]][{{.+}}] {alignment = 16 : i64} : memref<?x2048xf32>, vector<4xf32>
// CHECK:           vector.store %{{.+}}, %arg2
// CHECK:         nvvm.wgmma.mma_async {{.+}}m = 64, n = 64, k = 16
// CHECK:         vector.store %{{.+}}, %arg2
// CHECK:         nvvm.wgmma.mma_async {{.+}}m = 64, n = 128, k = 16
// CHECK:         nvvm.wgmma.mma_async {{.+}}m = 64, n = 256, k = 16
func.func @split(%x: memref<?x2048xbf16>, %w: memref<256x2048x8xbf16>, %d: memref<?x2048xbf16>) {
  attune.linear_into %x, %w into %d residual : memref<?x2048xbf16>, memref<256x2048x8xbf16>, memref<?x2048xbf16>
  return
}
