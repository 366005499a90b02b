// 40 columns fill a register and a part of the next. CPUs without instructions for
// bf16 store that part under a mask, and call no function to round what is rounded
// already: products are linked with none.

// REQUIRES: host-x86_64
// RUN: attune compile %s --cpu=x86-64-v3 --emit=asm -o - | FileCheck %s

// CHECK-NOT: __truncsfbf2
// CHECK: attune_model:
// CHECK-NOT: __truncsfbf2
module attributes {attune.name = "model"} {
  func.func @forward(%x: tensor<1x?x32xbf16> {attune.kind = "input", attune.name = "x", attune.shape = [1, "rows", 32]},
                     %w: tensor<2x16x64xbf16> {attune.kind = "input", attune.name = "w", attune.shape = [2, 16, 64]})
      -> (tensor<1x?x40xbf16> {attune.kind = "output", attune.name = "y", attune.shape = [1, "rows", 40]})
      attributes {attune.entry} {
    %y = attune.linear %x, %w
      : tensor<1x?x32xbf16>, tensor<2x16x64xbf16> -> tensor<1x?x40xbf16>
    return %y : tensor<1x?x40xbf16>
  }
}
