// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=8}),canonicalize,cse)" --split-input-file | FileCheck %s --implicit-check-not="attune."
// A GPU's threads take a token each, or a vector of one that is copied.
// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=8 cooperative}),canonicalize,cse)" --split-input-file | FileCheck %s --check-prefix=TOKENS

// Head h of the queries starts at h 8, of the keys at 32 + h 8.
// CHECK-LABEL: @split(
// CHECK:         scf.forall (%{{.+}}, %[[H:.+]]) in (%{{.+}}, 2)
// CHECK:           %[[AT:.+]] = arith.muli %[[H]], %c8
// CHECK:           arith.addi %[[AT]], %c32
// CHECK:           vector.transfer_read {{.+}} : tensor<?x?x64xf32>, vector<8xf32>
// CHECK:           vector.transfer_write
// TOKENS-LABEL: @split(
// TOKENS:         scf.forall (%{{.+}}, %{{.+}}, %[[T:.+]]) in (%{{.+}}, 2, %{{.+}}) shared_outs(%[[O:.+]] = %{{.+}})
// TOKENS:           tensor.extract_slice %[[O]][%{{.+}}, %{{.+}}, %[[T]], 0] [1, 1, 1, 8]
// TOKENS-NOT:       scf.for %
func.func @split(%x: tensor<?x?x64xf32>) -> tensor<?x2x?x8xf32> {
  %y = attune.split_heads %x at 32 : tensor<?x?x64xf32> -> tensor<?x2x?x8xf32>
  return %y : tensor<?x2x?x8xf32>
}

// -----

// CHECK-LABEL: @merge(
// CHECK:         scf.forall
// CHECK:           vector.transfer_read {{.+}} : tensor<?x2x?x8xf32>, vector<8xf32>
// TOKENS-LABEL: @merge(
// TOKENS:         scf.forall (%{{.+}}, %{{.+}}, %[[H:.+]]) in (%{{.+}}, %{{.+}}, 2)
// TOKENS:           arith.muli %[[H]], %c8
// TOKENS-NOT:       scf.for %
func.func @merge(%x: tensor<?x2x?x8xf32>) -> tensor<?x?x16xf32> {
  %y = attune.merge_heads %x : tensor<?x2x?x8xf32> -> tensor<?x?x16xf32>
  return %y : tensor<?x?x16xf32>
}

// -----

// Turned in place, both halves read before either is written.
// CHECK-LABEL: @half(
// CHECK-SAME:    %[[X:[^:]+]]: tensor<?x2x?x8xf32>
// CHECK:         scf.forall {{.+}} shared_outs(%{{.+}} = %[[X]])
// CHECK-COUNT-4:   vector.transfer_read {{.+}} vector<4xf32>
// CHECK-COUNT-2:   vector.transfer_write %{{.+}} : vector<4xf32>
// TOKENS-LABEL: @half(
// TOKENS:         scf.forall (%{{.+}}, %{{.+}}, %[[T:.+]]) in (%{{.+}}, 2, %{{.+}})
// TOKENS:           vector.transfer_read %{{.+}}[%{{.+}}, %[[T]], %{{.+}}]
func.func @half(%x: tensor<?x2x?x8xf32>, %c: tensor<?x?x4xf32>, %s: tensor<?x?x4xf32>) -> tensor<?x2x?x8xf32> {
  %y = attune.rotary %x, %c, %s pairing <half> : tensor<?x2x?x8xf32>, tensor<?x?x4xf32>
  return %y : tensor<?x2x?x8xf32>
}

// -----

// CHECK-LABEL: @interleaved(
// CHECK:         vector.deinterleave %{{.+}} : vector<8xf32> -> vector<4xf32>
// CHECK:         vector.interleave %{{.+}}, %{{.+}} : vector<4xf32> -> vector<8xf32>
func.func @interleaved(%x: tensor<?x2x?x8xf32>, %c: tensor<?x?x4xf32>, %s: tensor<?x?x4xf32>) -> tensor<?x2x?x8xf32> {
  %y = attune.rotary %x, %c, %s pairing <interleaved> : tensor<?x2x?x8xf32>, tensor<?x?x4xf32>
  return %y : tensor<?x2x?x8xf32>
}

// -----

// New rows go to their place in the cache; reading is a view.
// CHECK-LABEL: @cache(
// CHECK-SAME:    %{{[^:]+}}: tensor<?x2x?x8xf32>, %[[C:[^:]+]]: tensor<3x?x2x?x8xf32>, %[[LAYER:[^:]+]]: index, %[[PAST:[^:]+]]: index, %[[N:[^:]+]]: index
// CHECK:         %[[NEW:.+]] = scf.forall (%[[B:.+]], %[[H:.+]]) in {{.+}} shared_outs(%[[O:.+]] = %[[C]])
// CHECK:           tensor.extract_slice %[[O]][%[[LAYER]], %[[B]], %[[H]], %[[PAST]], 0]
// CHECK:         tensor.extract_slice %[[NEW]][%[[LAYER]], 0, 0, 0, 0] [1, %{{.+}}, 2, %[[N]], 8]
// TOKENS-LABEL: @cache(
// TOKENS-SAME:    index, %[[PAST:[^:]+]]: index, %{{[^:]+}}: index)
// TOKENS:         scf.forall (%{{.+}}, %{{.+}}, %[[T:.+]]) in
// TOKENS:           %[[AT:.+]] = arith.addi %[[PAST]], %[[T]]
// TOKENS:           tensor.extract_slice %{{.+}}[%{{.+}}, %{{.+}}, %{{.+}}, %[[AT]], 0]
func.func @cache(%k: tensor<?x2x?x8xf32>, %c: tensor<3x?x2x?x8xf32>, %layer: index, %past: index, %n: index) -> (tensor<3x?x2x?x8xf32>, tensor<?x2x?x8xf32>) {
  %0 = attune.cache_append %k into %c[%layer, %past] : tensor<?x2x?x8xf32>, tensor<3x?x2x?x8xf32>
  %1 = attune.cache_read %0[%layer] length %n : tensor<3x?x2x?x8xf32> -> tensor<?x2x?x8xf32>
  return %0, %1 : tensor<3x?x2x?x8xf32>, tensor<?x2x?x8xf32>
}

// -----

// Each sequence has a place of its own in a cache whose sequences come first.
// CHECK-LABEL: @unequal(
// CHECK-SAME:    %[[C:[^:]+]]: tensor<?x3x2x?x8xf32>, %[[LAYER:[^:]+]]: index, %[[PAST:[^:]+]]: tensor<?xi64>, %[[N:[^:]+]]: index
// CHECK:         %[[NEW:.+]] = scf.forall (%[[B:.+]], %[[H:.+]]) in {{.+}} shared_outs(%[[O:.+]] = %[[C]])
// CHECK:           %[[OWN:.+]] = tensor.extract %[[PAST]][%[[B]]]
// CHECK:           %[[AT:.+]] = arith.index_cast %[[OWN]] : i64 to index
// CHECK:           tensor.extract_slice %[[O]][%[[B]], %[[LAYER]], %[[H]], %[[AT]], 0] [1, 1, 1, 1, 8]
// CHECK:         tensor.extract_slice %[[NEW]][0, %[[LAYER]], 0, 0, 0] [%{{.+}}, 1, 2, %[[N]], 8]
// TOKENS-LABEL: @unequal(
// TOKENS:         scf.forall (%[[B:.+]], %{{.+}}) in
// TOKENS:           %[[AT:.+]] = arith.index_cast
// TOKENS:           tensor.extract_slice %{{.+}}[%[[B]], %{{.+}}, %{{.+}}, %[[AT]], 0]
func.func @unequal(%k: tensor<?x2x1x8xf32>, %c: tensor<?x3x2x?x8xf32>, %layer: index, %past: tensor<?xi64>, %n: index) -> (tensor<?x3x2x?x8xf32>, tensor<?x2x?x8xf32>) {
  %0 = attune.cache_append %k into %c[%layer, %past : tensor<?xi64>] sequence_major : tensor<?x2x1x8xf32>, tensor<?x3x2x?x8xf32>
  %1 = attune.cache_read %0[%layer] length %n sequence_major : tensor<?x3x2x?x8xf32> -> tensor<?x2x?x8xf32>
  return %0, %1 : tensor<?x3x2x?x8xf32>, tensor<?x2x?x8xf32>
}

// -----

// Into other elements: not in place, and the channels that pass by come along.
// CHECK-LABEL: @rounded(
// CHECK:         %[[E:.+]] = tensor.empty({{.+}}) : tensor<?x2x?x20xbf16>
// CHECK:         scf.forall {{.+}} shared_outs(%{{.+}} = %[[E]])
// CHECK-COUNT-2:   arith.truncf %{{.+}} : vector<2xf32> to vector<2xbf16>
// CHECK:           arith.truncf %{{.+}} : vector<8xf32> to vector<8xbf16>
func.func @rounded(%x: tensor<?x2x?x20xf32>, %c: tensor<?x?x6xf32>, %s: tensor<?x?x6xf32>) -> tensor<?x2x?x20xbf16> {
  %y = attune.rotary %x, %c, %s pairing <half> : tensor<?x2x?x20xf32>, tensor<?x?x6xf32> -> tensor<?x2x?x20xbf16>
  return %y : tensor<?x2x?x20xbf16>
}

// -----

// A cache of 16 bits rounds what goes there; what is read is what it has.
// CHECK-LABEL: @narrow_cache(
// CHECK:         scf.forall
// CHECK:           %[[ROW:.+]] = vector.transfer_read {{.+}} : tensor<?x2x?x8xf32>, vector<8xf32>
// CHECK:           %[[NARROW:.+]] = arith.truncf %[[ROW]] : vector<8xf32> to vector<8xf16>
// CHECK:           vector.transfer_write %[[NARROW]]
// CHECK:         tensor.extract_slice {{.+}} : tensor<3x?x2x?x8xf16> to tensor<?x2x?x8xf16>
func.func @narrow_cache(%k: tensor<?x2x?x8xf32>, %c: tensor<3x?x2x?x8xf16>, %layer: index, %past: index, %n: index) -> (tensor<3x?x2x?x8xf16>, tensor<?x2x?x8xf16>) {
  %0 = attune.cache_append %k into %c[%layer, %past] : tensor<?x2x?x8xf32>, tensor<3x?x2x?x8xf16>
  %1 = attune.cache_read %0[%layer] length %n : tensor<3x?x2x?x8xf16> -> tensor<?x2x?x8xf16>
  return %0, %1 : tensor<3x?x2x?x8xf16>, tensor<?x2x?x8xf16>
}

// -----

// TOKENS-LABEL: @vectors(
// TOKENS:         scf.forall (%[[B:.+]], %[[H:.+]], %[[T:.+]], %[[V:.+]]) in (%{{.+}}, 2, %{{.+}}, 2)
// TOKENS:           %[[AT:.+]] = arith.muli %[[V]], %c8
// TOKENS:           tensor.extract_slice %{{.+}}[%[[B]], %[[H]], %[[T]], %[[AT]]] [1, 1, 1, 8]
// TOKENS:         scf.forall (%{{.+}}, %{{.+}}, %{{.+}}, %[[V:.+]]) in (%{{.+}}, 2, %{{.+}}, 2)
// TOKENS:           %[[AT:.+]] = arith.muli %[[V]], %c8
// TOKENS:           tensor.extract_slice %{{.+}}[%{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}, %[[AT]]] [1, 1, 1, 1, 8]
// TOKENS:         scf.forall (%{{.+}}, %[[T:.+]], %[[V:.+]]) in (%{{.+}}, %{{.+}}, 4)
// TOKENS-DAG:       arith.divui %[[V]], %c2
// TOKENS-DAG:       arith.remui %[[V]], %c2
// TOKENS-NOT:     scf.for %
func.func @vectors(%x: tensor<?x?x64xf32>, %c: tensor<3x?x2x?x16xf32>, %layer: index, %past: index, %n: index) -> (tensor<3x?x2x?x16xf32>, tensor<?x?x32xf32>) {
  %h = attune.split_heads %x at 32 : tensor<?x?x64xf32> -> tensor<?x2x?x16xf32>
  %next = attune.cache_append %h into %c[%layer, %past] : tensor<?x2x?x16xf32>, tensor<3x?x2x?x16xf32>
  %y = attune.merge_heads %h : tensor<?x2x?x16xf32> -> tensor<?x?x32xf32>
  return %next, %y : tensor<3x?x2x?x16xf32>, tensor<?x?x32xf32>
}

// -----

// Rows pass once: turned from the columns of the product into the cache.
// CHECK-LABEL: @turned_into_cache(
// CHECK-SAME:    %[[X:[^:]+]]: tensor<?x?x64xf32>, %[[C:[^:]+]]: tensor<3x?x2x?x8xbf16>
// CHECK:         scf.forall (%[[B:.+]], %[[H:.+]]) in (%{{.+}}, 2) shared_outs(%{{.+}} = %[[C]])
// CHECK:           scf.for %[[T:[^ ]+]] =
// CHECK:             %[[AT:.+]] = arith.muli %[[H]], %c8
// CHECK:             %[[FIRST:.+]] = arith.addi %[[AT]], %c32
// CHECK:             vector.transfer_read %[[X]][%[[B]], %[[T]], %[[FIRST]]]
// CHECK:             vector.transfer_read %[[X]][%[[B]], %[[T]],
// CHECK-COUNT-2:     arith.truncf %{{.+}} : vector<4xf32> to vector<4xbf16>
// CHECK-NOT:     scf.forall (
// CHECK:         return
// TOKENS-LABEL: @turned_into_cache(
// TOKENS:         scf.forall (%{{.+}}, %{{.+}}, %{{.+}}) in (%{{.+}}, 2, %{{.+}})
// TOKENS-NOT:     scf.forall (
// TOKENS:         return
func.func @turned_into_cache(%x: tensor<?x?x64xf32>, %cache: tensor<3x?x2x?x8xbf16>, %c: tensor<?x?x4xf32>, %s: tensor<?x?x4xf32>, %layer: index, %past: index) -> tensor<3x?x2x?x8xbf16> {
  %h = attune.split_heads %x at 32 : tensor<?x?x64xf32> -> tensor<?x2x?x8xf32>
  %y = attune.rotary %h, %c, %s pairing <half> : tensor<?x2x?x8xf32>, tensor<?x?x4xf32> -> tensor<?x2x?x8xbf16>
  %next = attune.cache_append %y into %cache[%layer, %past] : tensor<?x2x?x8xbf16>, tensor<3x?x2x?x8xbf16>
  return %next : tensor<3x?x2x?x8xbf16>
}

// -----

// Turned from columns, interleaved pairs and channels that pass by among them.
// CHECK-LABEL: @turned_columns(
// CHECK-SAME:    %[[X:[^:]+]]: tensor<?x?x40xf32>
// CHECK:         %[[E:.+]] = tensor.empty({{.+}}) : tensor<?x2x?x20xf32>
// CHECK:         scf.forall (%[[B:.+]], %[[H:.+]]) in (%{{.+}}, 2) shared_outs(%{{.+}} = %[[E]])
// CHECK:           vector.transfer_read %[[X]][%[[B]], {{.+}} : tensor<?x?x40xf32>, vector<8xf32>
// CHECK:           vector.deinterleave
// CHECK:           vector.transfer_read %[[X]][%[[B]], {{.+}} : tensor<?x?x40xf32>, vector<8xf32>
// CHECK-NOT:     scf.forall (
// CHECK:         return
func.func @turned_columns(%x: tensor<?x?x40xf32>, %c: tensor<?x?x4xf32>, %s: tensor<?x?x4xf32>) -> tensor<?x2x?x20xf32> {
  %h = attune.split_heads %x at 0 : tensor<?x?x40xf32> -> tensor<?x2x?x20xf32>
  %y = attune.rotary %h, %c, %s pairing <interleaved> : tensor<?x2x?x20xf32>, tensor<?x?x4xf32>
  return %y : tensor<?x2x?x20xf32>
}

// -----

// A row that is used elsewhere is turned for all.
// CHECK-LABEL: @turned_for_two(
// CHECK:         %[[Y:.+]] = scf.forall {{.+}} -> (tensor<?x2x?x8xf32>)
// CHECK:         scf.forall
// CHECK:           vector.transfer_read %[[Y]]
func.func @turned_for_two(%x: tensor<?x?x16xf32>, %cache: tensor<3x?x2x?x8xf32>, %c: tensor<?x?x4xf32>, %s: tensor<?x?x4xf32>, %layer: index, %past: index) -> (tensor<3x?x2x?x8xf32>, tensor<?x2x?x8xf32>) {
  %h = attune.split_heads %x at 0 : tensor<?x?x16xf32> -> tensor<?x2x?x8xf32>
  %y = attune.rotary %h, %c, %s pairing <half> : tensor<?x2x?x8xf32>, tensor<?x?x4xf32>
  %next = attune.cache_append %y into %cache[%layer, %past] : tensor<?x2x?x8xf32>, tensor<3x?x2x?x8xf32>
  return %next, %y : tensor<3x?x2x?x8xf32>, tensor<?x2x?x8xf32>
}
