// Panels last: they need every matrix product as attune.linear.
// RUN: attune-opt %s --attune-optimize --dump-pass-pipeline 2>&1 >/dev/null | FileCheck %s

// CHECK: attune-fuse-attention
// CHECK: attune-decompose-ffn
// CHECK: attune-decompose-recurrent
// CHECK: attune-pack-weights{panel-width=16}
// CHECK: canonicalize
// CHECK: cse

// The reference path undoes fusion instead.
// RUN: attune-opt %s --attune-optimize="fuse=false" --dump-pass-pipeline 2>&1 >/dev/null | FileCheck %s --check-prefix=OFF
// OFF-NOT: attune-fuse-attention
// OFF:     attune-unfuse-attention

module {}
