// RUN: attune-opt %s --attune-name-kernels --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// CHECK: attune.weight_get @w {{.+}} loc("{{[^"]*}}name-kernels.mlir":{{[0-9:]+}})
// CHECK: attune.linear {{.+}} loc("linear.768x3072.gelu_tanh"("{{.+}}":{{[0-9:]+}}))
// CHECK: attune.linear {{.+}} loc("linear.3072x768.residual.bf16"(
// CHECK: attune.linear {{.+}} loc("linear.768x3072.rms.gelu_tanh"(
// CHECK: attune.attention {{.+}} loc("attention.12x64.causal"(
// CHECK: attune.merge_heads {{.+}} loc("merge_heads.768"(
// CHECK: attune.num_threads {{.*}}loc("{{[^"]*}}name-kernels.mlir"
attune.weight @w : tensor<3072x768xf32> from [#attune.source<"w">]
func.func @f(%x: tensor<?x?x768xf32>, %q: tensor<?x12x?x64xf32>, %v: tensor<768x3072xbf16>) -> (tensor<?x?x768xf32>, tensor<?x?x768xf32>, index) {
  %w = attune.weight_get @w : tensor<3072x768xf32>
  %0 = attune.linear %x, %w activation <gelu_tanh> : tensor<?x?x768xf32>, tensor<3072x768xf32> -> tensor<?x?x3072xf32>
  %1 = attune.linear %0, %v residual %x : tensor<?x?x768xf32> : tensor<?x?x3072xf32>, tensor<768x3072xbf16> -> tensor<?x?x768xf32>
  %n = attune.linear %x, %w activation <gelu_tanh> rms_eps 1.000000e-05 : tensor<?x?x768xf32>, tensor<3072x768xf32> -> tensor<?x?x3072xf32>
  %2 = attune.attention %q, %q, %q scale 1.250000e-01 causal <bottom_right> : tensor<?x12x?x64xf32>, tensor<?x12x?x64xf32>, tensor<?x12x?x64xf32> -> tensor<?x12x?x64xf32>
  %3 = attune.merge_heads %2 : tensor<?x12x?x64xf32> -> tensor<?x?x768xf32>
  %4 = attune.num_threads
  return %1, %3, %4 : tensor<?x?x768xf32>, tensor<?x?x768xf32>, index
}
