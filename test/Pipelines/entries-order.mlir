// A GPU gives the likeliest tokens; a CPU's logits are at hand.
// RUN: attune-opt %s --attune-entries="gpu=sm_80" --dump-pass-pipeline 2>&1 >/dev/null | FileCheck %s
// CHECK: attune-choose-candidates
// RUN: attune-opt %s --attune-entries --dump-pass-pipeline 2>&1 >/dev/null | FileCheck %s --check-prefix=CPU --allow-empty
// CPU-NOT: attune-

module {}
