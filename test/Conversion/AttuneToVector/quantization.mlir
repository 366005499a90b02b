// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=32 rows=3 integer-lanes=16 byte-products=quads},attune-prefetch-tiles,convert-attune-product-to-vector{integer-lanes=16 byte-products=quads}),canonicalize,cse)" --split-input-file \
// RUN:   | FileCheck %s --implicit-check-not="attune.quant"
// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=16 rows=3 integer-lanes=8 byte-products=words},attune-prefetch-tiles,convert-attune-product-to-vector{integer-lanes=8 byte-products=words}),canonicalize,cse)" --split-input-file \
// RUN:   | FileCheck %s --check-prefix=WORDS
// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=8 rows=3 integer-lanes=4 byte-products=words},attune-prefetch-tiles,convert-attune-product-to-vector{integer-lanes=4 byte-products=words}),canonicalize,cse)" --split-input-file \
// RUN:   | FileCheck %s --check-prefix=SSE
// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=8 rows=3 integer-lanes=4},attune-prefetch-tiles,convert-attune-product-to-vector{integer-lanes=4}),canonicalize,cse)" --split-input-file \
// RUN:   | FileCheck %s --check-prefix=ANY

// Each turn of the inner loop takes four inputs: two instructions for the 32
// outputs of each of three rows. Sums of a group start with what the offset of
// weights adds too much, and are added to what the row has in memory. Sums and
// scales of rows are seen as one row, which needs one address.
// CHECK-LABEL: @product(
// CHECK-SAME:    %[[Q:[^:]+]]: tensor<3x64xi8>, %[[S:[^:]+]]: tensor<3x2xf32>, %[[N:[^:]+]]: tensor<3x2xi32>, %[[W:[^:]+]]: tensor<2x16x128xi8>, %[[T:[^:]+]]: tensor<2x2x32xf32>)
// CHECK:         bufferization.alloc_tensor() : tensor<3x32xf32>
// CHECK-DAG:     %[[NS:.+]] = tensor.collapse_shape %[[N]] {{.+}} into tensor<6xi32>
// CHECK-DAG:     %[[SS:.+]] = tensor.collapse_shape %[[S]] {{.+}} into tensor<6xf32>
// CHECK:         scf.for %[[G:.+]] = %c0 to %c2 step %c1
// CHECK:           %[[SUM:.+]] = tensor.extract %[[NS]][%[[G]]]
// CHECK:           arith.muli %[[SUM]], %c-128_i32 : i32
// CHECK:           scf.for %[[K:.+]] = %c0 to %c8 step %c1 {{.+}} -> (vector<16xi32>, vector<16xi32>, vector<16xi32>, vector<16xi32>, vector<16xi32>, vector<16xi32>)
// CHECK-DAG:         vector.transfer_read %[[W]][%{{.+}}, %{{.+}}, %c0]{{.+}}, vector<64xi8>
// CHECK-DAG:         vector.transfer_read %[[W]][%{{.+}}, %{{.+}}, %c64]{{.+}}, vector<64xi8>
// CHECK-DAG:         vector.transfer_read %[[Q]][%c0, %{{.+}}]{{.+}}, vector<4xi8>
// CHECK-COUNT-6:     llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"
// CHECK-NOT:         llvm.call_intrinsic
// CHECK:             scf.yield
// CHECK:           vector.transfer_read %[[T]][%{{.+}}, %[[G]], %c0]{{.+}}, vector<32xf32>
// CHECK:           arith.sitofp {{.+}} : vector<32xi32> to vector<32xf32>
// CHECK:           tensor.extract %[[SS]][%[[G]]]
// CHECK:           vector.fma
//
// Words: even and odd bytes, of weights without and of inputs with a sign.
// WORDS-LABEL: @words(
// WORDS:         arith.andi {{.+}} : vector<16xi16>
// WORDS:         arith.shli {{.+}} : vector<16xi16>
// WORDS:         arith.shrsi {{.+}} : vector<16xi16>
// WORDS:         llvm.call_intrinsic "llvm.x86.avx2.pmadd.wd"
// WORDS:         arith.shrui {{.+}} : vector<16xi16>
// WORDS:         arith.shrsi {{.+}} : vector<16xi16>
// WORDS:         llvm.call_intrinsic "llvm.x86.avx2.pmadd.wd"
// SSE-LABEL:   @narrow(
// SSE:           llvm.call_intrinsic "llvm.x86.sse2.pmadd.wd"
//
// Any CPU: byte by byte.
// ANY-LABEL:   @narrow(
// ANY-COUNT-4:   arith.muli {{.+}} : vector<4xi32>
// ANY-NOT:       llvm.call_intrinsic
func.func @product(%q: tensor<3x64xi8>, %s: tensor<3x2xf32>, %n: tensor<3x2xi32>, %w: tensor<2x16x128xi8>, %t: tensor<2x2x32xf32>) -> tensor<3x64xf32> {
  %y = attune.quantized_linear %q scales %s sums %n, %w scales %t
     : (tensor<3x64xi8>, tensor<3x2xf32>, tensor<3x2xi32>), (tensor<2x16x128xi8>, tensor<2x2x32xf32>) -> tensor<3x64xf32>
  return %y : tensor<3x64xf32>
}
func.func @words(%q: tensor<3x64xi8>, %s: tensor<3x2xf32>, %n: tensor<3x2xi32>, %w: tensor<4x16x64xi8>, %t: tensor<4x2x16xf32>) -> tensor<3x64xf32> {
  %y = attune.quantized_linear %q scales %s sums %n, %w scales %t
     : (tensor<3x64xi8>, tensor<3x2xf32>, tensor<3x2xi32>), (tensor<4x16x64xi8>, tensor<4x2x16xf32>) -> tensor<3x64xf32>
  return %y : tensor<3x64xf32>
}
func.func @narrow(%q: tensor<3x64xi8>, %s: tensor<3x2xf32>, %n: tensor<3x2xi32>, %w: tensor<8x16x32xi8>, %t: tensor<8x2x8xf32>) -> tensor<3x64xf32> {
  %y = attune.quantized_linear %q scales %s sums %n, %w scales %t
     : (tensor<3x64xi8>, tensor<3x2xf32>, tensor<3x2xi32>), (tensor<8x16x32xi8>, tensor<8x2x8xf32>) -> tensor<3x64xf32>
  return %y : tensor<3x64xf32>
}

// -----

// A row at a time, in any thread; a group of zeros has no quotient.
// CHECK-LABEL: @rows(
// CHECK:         scf.forall {{.+}} -> (tensor<?x96xi8>, tensor<?x3xf32>, tensor<?x3xi32>)
// CHECK:           arith.bitcast {{.+}} : vector<32xf32> to vector<32xi32>
// CHECK:           arith.maxsi
// CHECK:           vector.reduction <maxsi>
// CHECK:           arith.cmpf oeq
// CHECK:           arith.select
// CHECK:           math.roundeven
// CHECK:           arith.cmpf ogt, %[[X:.+]], %[[LOW:.+]] : vector<32xf32>
// CHECK:           arith.select %{{.+}}, %[[X]], %[[LOW]]
// CHECK:           arith.cmpf olt, %[[Y:.+]], %[[HIGH:.+]] : vector<32xf32>
// CHECK:           arith.select %{{.+}}, %[[Y]], %[[HIGH]]
// CHECK:           arith.trunci {{.+}} : vector<32xi32> to vector<32xi8>
// CHECK:           vector.reduction <add>, {{.+}} : vector<32xi32> into i32
func.func @rows(%x: tensor<?x96xbf16>) -> (tensor<?x96xi8>, tensor<?x3xf32>, tensor<?x3xi32>) {
  %q, %s, %n = attune.quantize_rows %x group 32 : tensor<?x96xbf16> -> tensor<?x96xi8>, tensor<?x3xf32>, tensor<?x3xi32>
  return %q, %s, %n : tensor<?x96xi8>, tensor<?x3xf32>, tensor<?x3xi32>
}

// -----

// A row of a tied table: a byte of four, and its group's scale.
// CHECK-LABEL: @table(
// CHECK:         %[[B:.+]] = tensor.extract %{{.+}}[%{{.+}}, %{{.+}}, %{{.+}}] : tensor<3x16x128xi8>
// CHECK:         %[[F:.+]] = arith.uitofp %[[B]] : i8 to f32
// CHECK:         arith.subf %[[F]], %cst{{.*}} : f32
// CHECK:         tensor.extract %{{.+}}[%{{.+}}, %{{.+}}, %{{.+}}] : tensor<3x2x32xf32>
func.func @table(%ids: tensor<?x?xi64>, %w: tensor<3x16x128xi8>, %t: tensor<3x2x32xf32>) -> tensor<?x?x64xf32> {
  %y = attune.quantized_embedding %ids, %w scales %t : tensor<?x?xi64>, (tensor<3x16x128xi8>, tensor<3x2x32xf32>) -> tensor<?x?x64xf32>
  return %y : tensor<?x?x64xf32>
}

// -----

// 4 bits: what one load brings is two registers of quads, of columns that are four
// apart. Without VNNI products of pairs are added up in 16 bits, 32 columns of them.
// CHECK-LABEL: @nibbles(
// CHECK-SAME:    %[[Q:[^:]+]]: tensor<3x64xi8>, {{.+}}, %[[W:[^:]+]]: tensor<2x8x128xi8>, %[[T:[^:]+]]: tensor<2x2x32xf16>)
// CHECK:         arith.muli %{{.+}}, %c-8_i32 : i32
// CHECK:         scf.for %{{.+}} = %c0 to %c4 step %c1 {{.+}} -> (vector<16xi32>, vector<16xi32>, vector<16xi32>, vector<16xi32>, vector<16xi32>, vector<16xi32>)
// CHECK:           vector.transfer_read %[[W]]{{.+}}, vector<64xi8>
// CHECK:           arith.shrui {{.+}} : vector<16xi32>
// CHECK:           arith.andi {{.+}} : vector<16xi32>
// CHECK-COUNT-12:  llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"
// CHECK-NOT:       llvm.call_intrinsic
// CHECK:           scf.yield
// CHECK:         vector.transfer_read %[[T]]{{.+}}, vector<32xf16>
func.func @nibbles(%q: tensor<3x64xi8>, %s: tensor<3x2xf32>, %n: tensor<3x2xi32>, %w: tensor<2x8x128xi8>, %t: tensor<2x2x32xf16>) -> tensor<3x64xf32> {
  %y = attune.quantized_linear %q scales %s sums %n, %w scales %t
     : (tensor<3x64xi8>, tensor<3x2xf32>, tensor<3x2xi32>), (tensor<2x8x128xi8>, tensor<2x2x32xf16>) -> tensor<3x64xf32>
  return %y : tensor<3x64xf32>
}
// WORDS-LABEL: @nibbles_in_words(
// WORDS:         scf.for {{.+}} -> (vector<16xi16>, vector<16xi16>, vector<16xi16>, vector<16xi16>, vector<16xi16>, vector<16xi16>)
// WORDS-COUNT-12:  llvm.call_intrinsic "llvm.x86.avx2.pmadd.ub.sw"
// WORDS-COUNT-6: llvm.call_intrinsic "llvm.x86.avx2.pmadd.wd"
func.func @nibbles_in_words(%q: tensor<3x64xi8>, %s: tensor<3x2xf32>, %n: tensor<3x2xi32>, %w: tensor<4x8x64xi8>, %t: tensor<4x2x16xf16>) -> tensor<3x64xf32> {
  %y = attune.quantized_linear %q scales %s sums %n, %w scales %t
     : (tensor<3x64xi8>, tensor<3x2xf32>, tensor<3x2xi32>), (tensor<4x8x64xi8>, tensor<4x2x16xf16>) -> tensor<3x64xf32>
  return %y : tensor<3x64xf32>
}

// -----

// A row of a table of 4 bits: one half of a byte.
// CHECK-LABEL: @table_of_nibbles(
// CHECK:         %[[B:.+]] = tensor.extract %{{.+}}[%{{.+}}, %{{.+}}, %{{.+}}] : tensor<3x8x128xi8>
// CHECK:         %[[H:.+]] = arith.shrui %[[B]], %{{.+}} : i8
// CHECK:         %[[L:.+]] = arith.andi %[[H]], %c15_i8 : i8
// CHECK:         arith.uitofp %[[L]] : i8 to f32
func.func @table_of_nibbles(%ids: tensor<?x?xi64>, %w: tensor<3x8x128xi8>, %t: tensor<3x2x32xf16>) -> tensor<?x?x64xf32> {
  %y = attune.quantized_embedding %ids, %w scales %t : tensor<?x?xi64>, (tensor<3x8x128xi8>, tensor<3x2x32xf16>) -> tensor<?x?x64xf32>
  return %y : tensor<?x?x64xf32>
}

// -----

// Scales in two levels: the f16 of 256 columns is loaded once, and each group's byte
// times it is its scale. Bytes hold 6 bits, of which products of pairs are added up in
// 16 bits.
// CHECK-LABEL: @levels(
// WORDS-LABEL: @levels(
// WORDS-SAME:    %[[W:[^:]+]]: tensor<2x128x64xi8>, %[[T:[^:]+]]: tensor<2x36x16xi8>)
// WORDS:         scf.for %{{.+}} = %c0 to %c2 step %c1
// WORDS:           vector.transfer_read %[[T]]{{.+}}, vector<16xi8>
// WORDS:           vector.interleave {{.+}} : vector<16xi8> -> vector<32xi8>
// WORDS:           vector.bitcast {{.+}} : vector<32xi8> to vector<16xf16>
// WORDS:           scf.for %{{.+}} = %c0 to %c16 step %c1
// WORDS-COUNT-4:     llvm.call_intrinsic "llvm.x86.avx2.pmadd.ub.sw"
// WORDS:             vector.transfer_read %[[T]]{{.+}}, vector<16xi8>
// WORDS:             arith.sitofp {{.+}} : vector<16xi8> to vector<16xf32>
func.func @levels(%q: tensor<1x512xi8>, %s: tensor<1x32xf32>, %n: tensor<1x32xi32>, %w: tensor<2x128x64xi8>, %t: tensor<2x36x16xi8>) -> tensor<1x32xf32> {
  %y = attune.quantized_linear %q scales %s sums %n, %w scales %t
     : (tensor<1x512xi8>, tensor<1x32xf32>, tensor<1x32xi32>), (tensor<2x128x64xi8>, tensor<2x36x16xi8>) -> tensor<1x32xf32>
  return %y : tensor<1x32xf32>
}
