// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-attention-to-online{query-block=96 key-block=256 rows=12}))" | FileCheck %s
// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-attention-to-online{query-block=96 query-bytes=196608 key-block=256 key-bytes=49152 rows=12}))" | FileCheck %s --check-prefix=BYTES

// Four heads share each key head: tiles of 24 queries of all four.
// CHECK-LABEL: func.func @grouped(
// CHECK-SAME:    %[[Q:.+]]: tensor<?x8x?x64xf32>, %[[K:.+]]: tensor<?x2x?x64xf32>, %[[V:.+]]: tensor<?x2x?x32xf32>)
// CHECK:         %[[M:.+]] = tensor.dim %[[Q]], %c2
// CHECK:         %[[N:.+]] = tensor.dim %[[K]], %c2
// CHECK:         %[[FEWEST:.+]] = arith.divsi %{{.+}}, %c24
// They share the queries out evenly, in twelves.
// CHECK:         %[[SOME:.+]] = arith.maxsi %[[FEWEST]], %c1
// CHECK:         %[[EACH:.+]] = arith.divui %{{.+}}, %[[SOME]]
// CHECK:         arith.divsi %{{.+}}, %c12
// CHECK:         %[[SIZE:.+]] = arith.minsi %{{.+}}, %c24
// CHECK:         %[[BLOCKS:.+]] = arith.divui %{{.+}}, %[[SIZE]]
// CHECK:         %[[OUT:.+]] = tensor.empty(%{{.+}}, %{{.+}}) : tensor<?x8x?x32xf32>
// CHECK:         scf.forall (%[[B:.+]], %[[G:.+]], %[[I:.+]]) in (%{{.+}}, 2, %[[BLOCKS]]) shared_outs(%[[O:.+]] = %[[OUT]])
// CHECK:           %[[FIRST:.+]] = arith.muli %[[I]], %[[SIZE]]
// CHECK:           %[[LEFT:.+]] = arith.subi %[[M]], %[[FIRST]]
// CHECK:           %[[COUNT:.+]] = arith.minsi %[[SIZE]], %[[LEFT]]
// CHECK:           %[[H:.+]] = arith.muli %[[G]], %c4
// Scratch has a static size; the states are its front part.
// CHECK:           bufferization.alloc_tensor() : tensor<1x4x24x32xf32>
// CHECK:           bufferization.alloc_tensor() : tensor<1x4x24xf32>
// CHECK:           bufferization.alloc_tensor() : tensor<1x4x24xf32>
// CHECK:           %[[TILE:.+]] = tensor.extract_slice %[[Q]][%[[B]], %[[H]], %[[FIRST]], 0] [1, 4, %[[COUNT]], 64]
// CHECK:           %[[STATES:.+]]:3 = scf.for %[[AT:.+]] = %c0 to %[[N]] step %c256
// CHECK:             %[[KEYS:.+]] = arith.minsi %{{.+}}, %c256
// CHECK:             %[[KTILE:.+]] = tensor.extract_slice %[[K]][%[[B]], %[[G]], %[[AT]], 0] [1, 1, %[[KEYS]], 64]
// CHECK:             %[[VTILE:.+]] = tensor.extract_slice %[[V]][%[[B]], %[[G]], %[[AT]], 0] [1, 1, %[[KEYS]], 32]
// CHECK:             attune.online_attention %[[TILE]], %[[KTILE]], %[[VTILE]] scale 1.250000e-01 at[%[[FIRST]], %[[AT]]] of[%[[M]], %[[N]]] tile [24, 256]
// CHECK:           %[[DEST:.+]] = tensor.extract_slice %[[O]][%[[B]], %[[H]], %[[FIRST]], 0] [1, 4, %[[COUNT]], 32]
// CHECK:           %[[Y:.+]] = attune.online_finish %[[STATES]]#0, %[[STATES]]#1, %[[STATES]]#2 into %[[DEST]]
// CHECK:           tensor.parallel_insert_slice %[[Y]] into %[[O]][%[[B]], %[[H]], %[[FIRST]], 0] [1, 4, %[[COUNT]], 32]
// 196608 bytes hold 96 channels of 512 rows, which are 128 queries of four heads,
// 120 in twelves. Tiles are as few as that makes them, but four for each thread
// if each keeps 24 queries. 49152 bytes hold 128 keys.
// BYTES-LABEL: func.func @grouped(
// BYTES:         %[[M:.+]] = tensor.dim %arg0, %c2
// BYTES:         %[[NEEDED:.+]] = arith.divsi %{{.+}}, %c120
// BYTES:         %[[OTHERS:.+]] = arith.muli %{{.+}}, %c2
// BYTES:         %[[THREADS:.+]] = attune.num_threads
// BYTES:         arith.muli %[[THREADS]], %c4
// BYTES:         %[[MANY:.+]] = arith.divui
// BYTES:         %[[MOST:.+]] = arith.divsi %{{.+}}, %c24
// BYTES:         %[[WANTED:.+]] = arith.minsi %[[MANY]], %[[MOST]]
// BYTES:         arith.maxsi %[[NEEDED]], %[[WANTED]]
// BYTES:         arith.minsi %{{.+}}, %c120
// BYTES:         bufferization.alloc_tensor() : tensor<1x4x120x32xf32>
// BYTES:         scf.for %{{.+}} = %c0 to %{{.+}} step %c128
func.func @grouped(%q: tensor<?x8x?x64xf32>, %k: tensor<?x2x?x64xf32>, %v: tensor<?x2x?x32xf32>) -> tensor<?x8x?x32xf32> {
  %y = attune.attention %q, %k, %v scale 0.125
    : tensor<?x8x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x2x?x32xf32> -> tensor<?x8x?x32xf32>
  return %y : tensor<?x8x?x32xf32>
}

// Blocks of keys that the whole tile cannot see are not visited: the loop ends
// at the last query's own key and starts at the window of the first.
// CHECK-LABEL: func.func @window(
// CHECK:         %[[M:.+]] = tensor.dim %arg0, %c2
// CHECK:         %[[N:.+]] = tensor.dim %arg1, %c2
// CHECK:         %[[SIZE:.+]] = arith.minsi %{{.+}}, %c96
// CHECK:         %[[TILES:.+]] = arith.divui %{{.+}}, %[[SIZE]]
// The long tiles at the end go first.
// CHECK:         %[[LAST:.+]] = arith.subi %[[TILES]], %c1
// CHECK:         %[[TILE:.+]] = arith.subi %[[LAST]], %{{.+}} : index
// CHECK:         %[[FIRST:.+]] = arith.muli %[[TILE]], %[[SIZE]]
// CHECK:         %[[COUNT:.+]] = arith.minsi %[[SIZE]]
// CHECK:         %[[SHIFT:.+]] = arith.subi %[[N]], %[[M]]
// CHECK:         %[[POS:.+]] = arith.addi %[[FIRST]], %[[SHIFT]]
// CHECK:         %[[PAST:.+]] = arith.addi %[[POS]], %[[COUNT]]
// CHECK:         %[[LAST:.+]] = arith.minsi %[[N]], %[[PAST]]
// CHECK:         %[[FROM:.+]] = arith.subi %[[POS]], %c63
// CHECK:         %[[BEGIN:.+]] = arith.maxsi %[[FROM]], %c0
// CHECK:         %[[END:.+]] = arith.maxsi %[[LAST]], %c0
// CHECK:         scf.for %{{.+}} = %[[BEGIN]] to %[[END]] step %c256
// CHECK:           attune.online_attention {{.*}} causal <bottom_right> window 64
func.func @window(%q: tensor<?x1x?x64xf32>, %k: tensor<?x1x?x64xf32>) -> tensor<?x1x?x64xf32> {
  %y = attune.attention %q, %k, %k scale 0.125 causal <bottom_right> window 64
    : tensor<?x1x?x64xf32>, tensor<?x1x?x64xf32>, tensor<?x1x?x64xf32> -> tensor<?x1x?x64xf32>
  return %y : tensor<?x1x?x64xf32>
}

// A mask that serves every head and query is cut along batch and keys alone;
// static lengths shorter than a block bound the scratch.
// CHECK-LABEL: func.func @masked(
// CHECK:         bufferization.alloc_tensor() : tensor<1x2x7x16xf32>
// CHECK:         scf.for %[[AT:.+]] = %c0 to %c40 step %c40
// CHECK:           tensor.extract_slice %arg3[%{{.+}}, 0, 0, %[[AT]]] [1, 1, 1, %{{.+}}]
// CHECK:           tensor.extract_slice %arg4[0, %{{.+}}, %{{.+}}, %[[AT]]] [1, 2, %{{.+}}, %{{.+}}]
// CHECK:         %[[DONE:.+]]:2 = attune.online_finish {{.*}} sinks %{{.+}} into %{{.+}} lse %{{.+}} : tensor<1x2x?xf32>
// CHECK-DAG:     tensor.parallel_insert_slice %[[DONE]]#1 into
func.func @masked(%q: tensor<2x4x7x16xf16>, %k: tensor<2x2x40x16xf16>, %v: tensor<2x2x40x16xf16>,
                  %mask: tensor<2x1x1x40xi1>, %bias: tensor<1x4x7x40xf32>, %sinks: tensor<4xf32>)
    -> (tensor<2x4x7x16xf16>, tensor<2x4x7xf32>) {
  %y, %lse = attune.attention %q, %k, %v scale 0.25 mask %mask : tensor<2x1x1x40xi1> bias %bias : tensor<1x4x7x40xf32> sinks %sinks : tensor<4xf32>
    : tensor<2x4x7x16xf16>, tensor<2x2x40x16xf16>, tensor<2x2x40x16xf16> -> tensor<2x4x7x16xf16> lse tensor<2x4x7xf32>
  return %y, %lse : tensor<2x4x7x16xf16>, tensor<2x4x7xf32>
}

// Keys of a cache are split: the parts leave their states, which are merged in
// order. Their number follows from the lengths. One part is finished where it is
// made: then the tiles that are left are none.
// CHECK-LABEL: func.func @cached(
// CHECK-DAG:     %[[N:.+]] = tensor.dim %[[K:.+]], %c2 : tensor<?x2x?x64xf32>
// CHECK:         %[[MANY:.+]] = arith.divui %c16, %{{.+}}
// CHECK:         %[[PARTS:.+]] = arith.maxsi %{{.+}}, %c1
// CHECK:         %[[ALONE:.+]] = arith.cmpi eq, %[[PARTS]], %c1
// CHECK:         %[[STATES:.+]]:4 = scf.forall (%[[B:.+]], %[[G:.+]], %[[I:.+]], %[[P:.+]]) in (%{{.+}}, 2, %[[TILES:.+]], %[[PARTS]])
// CHECK:           attune.online_attention
// CHECK:           %[[ROWS:.+]] = arith.select %[[ALONE]], %{{.+}}, %c0
// CHECK:           %[[DONE:.+]] = attune.online_finish
// CHECK:           tensor.parallel_insert_slice %[[DONE]] into %{{.+}} [1, 4, %[[ROWS]], 64]
// CHECK-COUNT-3:   tensor.parallel_insert_slice
// CHECK:         %[[LEFT:.+]] = arith.select %[[ALONE]], %c0, %[[TILES]]
// CHECK:         scf.forall (%{{.+}}, %{{.+}}, %{{.+}}) in (%{{.+}}, 2, %[[LEFT]]) shared_outs(%{{.+}} = %[[STATES]]#3)
// CHECK:           scf.for %{{.+}} = %c0 to %[[PARTS]] step %c1
// CHECK:             tensor.extract_slice %[[STATES]]#0
// CHECK:             attune.online_merge
// CHECK:           attune.online_finish
func.func @cached(%q: tensor<?x8x?x64xf32>, %c: tensor<3x?x2x?x64xf32>, %layer: index, %length: index) -> tensor<?x8x?x64xf32> {
  %k = attune.cache_read %c[%layer] length %length : tensor<3x?x2x?x64xf32> -> tensor<?x2x?x64xf32>
  %y = attune.attention %q, %k, %k scale 0.125
    : tensor<?x8x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32> -> tensor<?x8x?x64xf32>
  return %y : tensor<?x8x?x64xf32>
}

// A sequence of its own length has parts of its own: as many, and as long, as if
// it were alone.
// CHECK-LABEL: func.func @unequal(
// CHECK-SAME:    %[[LENGTHS:[^:]+]]: tensor<?xi64>
// CHECK:         scf.forall (%[[B:.+]], %{{.+}}, %{{.+}}, %{{.+}}) in (%{{.+}}, 2, %{{.+}}, %{{.+}})
// CHECK:           tensor.extract %[[LENGTHS]][%[[B]]]
// CHECK:           %[[OWN:.+]] = arith.maxsi %{{.+}}, %c1
// CHECK:           arith.divui %{{.+}}, %[[OWN]]
// CHECK:           attune.online_attention
// CHECK:         scf.forall (%[[B:.+]], %{{.+}}, %{{.+}}) in
// CHECK:           tensor.extract %[[LENGTHS]][%[[B]]]
// CHECK:           scf.for %{{.+}} = %c0 to %{{.+}} step %c1
// CHECK:             attune.online_merge
func.func @unequal(%q: tensor<?x8x?x64xf32>, %c: tensor<?x3x2x?x64xf32>, %layer: index, %length: index, %lengths: tensor<?xi64>) -> tensor<?x8x?x64xf32> {
  %k = attune.cache_read %c[%layer] length %length sequence_major : tensor<?x3x2x?x64xf32> -> tensor<?x2x?x64xf32>
  %y = attune.attention %q, %k, %k scale 0.125 lengths %lengths : tensor<?xi64>
    : tensor<?x8x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32> -> tensor<?x8x?x64xf32>
  return %y : tensor<?x8x?x64xf32>
}
