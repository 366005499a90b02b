// RUN: attune-opt %s --attune-low-rank=rules=*.fc:16,*:8 | FileCheck %s
// RUN: attune-opt %s --attune-low-rank=rules=*.fc:16,*:8 --remarks-filter=attune-low-rank -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// Ranks share a matrix by rows, and another by columns: the rank is that of the whole
// ones, and so is what each saves.
// CHECK-NOT:  attune.weight @r.fc :
// CHECK-DAG:  attune.weight @r.fc.right : tensor<16x64xf32> from [#attune.source<"r.fc">] {attune.factor = "right", attune.product = array<i64: 96, 64>}
// CHECK-DAG:  attune.weight @r.fc.left : tensor<48x16xf32> from [#attune.source<"r.fc">] {attune.cut = {rows = [array<i64: 0, 48>, array<i64: 48, 48>], whole = array<i64: 96, 16>}, attune.factor = "left", attune.product = array<i64: 96, 64>}
// CHECK-DAG:  attune.weight @r.out.right : tensor<8x48xf32> from [#attune.source<"r.out">] {attune.cut = {columns = array<i64: 0, 48, 48, 48>, rows = [array<i64: 0, 8>, array<i64: 0, 8>], whole = array<i64: 8, 96>}, attune.factor = "right", attune.product = array<i64: 64, 96>}
// CHECK-DAG:  attune.weight @r.out.left : tensor<64x8xf32> from [#attune.source<"r.out">] {attune.factor = "left", attune.product = array<i64: 64, 96>}
// REMARK-DAG: Remark="'r.fc' of 96x64 has rank 16"
attune.weight @r.fc : tensor<48x64xf32> from [#attune.source<"r.fc">] {attune.cut = {rows = [array<i64: 0, 48>, array<i64: 48, 48>], whole = array<i64: 96, 64>}}
attune.weight @r.out : tensor<64x48xf32> from [#attune.source<"r.out">] {attune.cut = {columns = array<i64: 0, 48, 48, 48>, rows = [array<i64: 0, 64>, array<i64: 0, 64>], whole = array<i64: 64, 96>}}
// CHECK-LABEL: @ranks(
// CHECK:       attune.linear %{{.+}}, %{{.+}} : tensor<?x64xf32>, tensor<16x64xf32> -> tensor<?x16xf32>
// CHECK:       attune.linear %{{.+}}, %{{.+}} : tensor<?x16xf32>, tensor<48x16xf32> -> tensor<?x48xf32>
// CHECK:       attune.linear %{{.+}}, %{{.+}} : tensor<?x48xf32>, tensor<8x48xf32> -> tensor<?x8xf32>
// CHECK:       attune.linear %{{.+}}, %{{.+}} : tensor<?x8xf32>, tensor<64x8xf32> -> tensor<?x64xf32>
func.func @ranks(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %w = attune.weight_get @r.fc : tensor<48x64xf32>
  %y = attune.linear %x, %w : tensor<?x64xf32>, tensor<48x64xf32> -> tensor<?x48xf32>
  %o = attune.weight_get @r.out : tensor<64x48xf32>
  %z = attune.linear %y, %o : tensor<?x48xf32>, tensor<64x48xf32> -> tensor<?x64xf32>
  return %z : tensor<?x64xf32>
}
