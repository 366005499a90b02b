// Panels last: they need every matrix product as attune.linear.
// RUN: attune-opt %s --attune-optimize --dump-pass-pipeline 2>&1 >/dev/null | FileCheck %s

// CHECK: attune-fuse-attention
// CHECK: attune-decompose-ffn
// CHECK: attune-decompose-recurrent
// CHECK: attune-fuse-norms{way-bytes=4096}
// CHECK: attune-pack-weights{pairs=false panel-width=16 wide-inputs=false}
// CHECK: canonicalize
// CHECK: cse

// A CPU that multiplies bf16 gets bf16 to multiply, in pairs; a GPU f16 too, as
// it is.
// RUN: attune-opt %s --attune-optimize="cpu=sapphirerapids" --dump-pass-pipeline 2>&1 >/dev/null | FileCheck %s --check-prefix=PAIRS
// PAIRS: attune-narrow-activations{exact-activations=false tensor-cores=false}
// PAIRS: attune-pack-weights{pairs=true panel-width=32 wide-inputs=false}
// RUN: attune-opt %s --attune-optimize="cpu=sapphirerapids gpu=sm_80" --dump-pass-pipeline 2>&1 >/dev/null | FileCheck %s --check-prefix=GPU
// GPU-NOT: attune-fuse-norms
// GPU: attune-narrow-activations{exact-activations=false tensor-cores=true}
// GPU: attune-pack-weights{pairs=false

// The reference path undoes fusion instead.
// RUN: attune-opt %s --attune-optimize="fuse=false" --dump-pass-pipeline 2>&1 >/dev/null | FileCheck %s --check-prefix=OFF
// OFF-NOT: attune-fuse-attention
// OFF:     attune-unfuse-attention
// OFF-NOT: attune-fuse-norms

module {}
