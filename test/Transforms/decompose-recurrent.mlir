// RUN: attune-opt %s --attune-decompose-recurrent | FileCheck %s --implicit-check-not="attune.recurrent <"

// States start from zeros; the loop carries the sequence and the state.
// CHECK-LABEL: @gru(
// CHECK-SAME:    %[[X:[^:]+]]: tensor<?x?x24xf32>, %[[W:[^:]+]]: tensor<24x8xf32>, %[[B:[^:]+]]: tensor<24xf32>)
// CHECK:         %[[ZEROS:.+]] = linalg.fill
// CHECK:         %[[LOOP:.+]]:2 = scf.for %[[T:.+]] = %{{.+}} iter_args(%[[SEQ:.+]] = %{{.+}}, %[[H:.+]] = %[[ZEROS]])
// CHECK-DAG:       %[[U:.+]] = attune.linear %[[H]], %[[W]] bias %[[B]] : tensor<24xf32>
// CHECK-DAG:       %[[G:.+]] = tensor.extract_slice %[[X]][0, %[[T]], 0]
// CHECK:           %[[N:.+]] = attune.recurrent_cell <gru> %[[G]], %[[U]] state %[[H]] : tensor<?x8xf32> :
// CHECK:           %[[S:.+]] = tensor.insert_slice %[[N]] into %[[SEQ]][0, %[[T]], 0]
// CHECK:           scf.yield %[[S]], %[[N]]
// CHECK:         return %[[LOOP]]#0, %[[LOOP]]#1
func.func @gru(%x: tensor<?x?x24xf32>, %w: tensor<24x8xf32>, %b: tensor<24xf32>) -> (tensor<?x?x8xf32>, tensor<?x8xf32>) {
  %s, %l = attune.recurrent <gru> %x, %w bias %b : tensor<24xf32> : tensor<?x?x24xf32>, tensor<24x8xf32> -> tensor<?x?x8xf32>, tensor<?x8xf32>
  return %s, %l : tensor<?x?x8xf32>, tensor<?x8xf32>
}

// From the last token on; tokens that do not count are passed by, then zeroed.
// CHECK-LABEL: @masked(
// CHECK-SAME:    %[[X:[^:]+]]: {{[^,]+}}, %[[W:[^:]+]]: {{[^,]+}}, %[[H:[^:]+]]: {{[^,]+}}, %[[C:[^:]+]]: {{[^,]+}}, %[[M:[^:]+]]:
// CHECK:         %[[LOOP:.+]]:3 = scf.for %[[I:.+]] = %{{.+}} iter_args(%{{.+}} = %{{.+}}, %{{.+}} = %[[H]], %{{.+}} = %[[C]])
// CHECK:           %[[T:.+]] = arith.subi %{{.+}}, %[[I]]
// CHECK:           %[[K:.+]] = tensor.extract_slice %[[M]][0, %[[T]]]
// CHECK:           attune.recurrent_cell <lstm> {{.+}} keep %[[K]]
// CHECK:         linalg.generic {{.+}} ins(%[[M]] : tensor<?x?xi1>) outs(%[[LOOP]]#0
// CHECK:           arith.select
func.func @masked(%x: tensor<?x?x32xf32>, %w: tensor<32x8xf32>, %h: tensor<?x8xf32>, %c: tensor<?x8xf32>, %m: tensor<?x?xi1>) -> (tensor<?x?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>) {
  %s, %l:2 = attune.recurrent <lstm> %x, %w state %h : tensor<?x8xf32> cell %c : tensor<?x8xf32> keep %m : tensor<?x?xi1> reverse : tensor<?x?x32xf32>, tensor<32x8xf32> -> tensor<?x?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>
  return %s, %l#0, %l#1 : tensor<?x?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>
}
