//===- AttuneOps.td - Every family of the dialect ------------*- tablegen -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_OPS_TD
#define ATTUNE_OPS_TD

include "AttuneWeightOps.td"
include "AttuneAttentionOps.td"
include "AttuneNormOps.td"
include "AttuneFFNOps.td"
include "AttuneIntoOps.td"
include "AttuneLinearAttentionOps.td"
include "AttuneLossOps.td"
include "AttuneMoEOps.td"
include "AttuneEmbeddingOps.td"
include "AttuneCacheOps.td"
include "AttuneQuantizationOps.td"
include "AttuneRecurrentOps.td"
include "AttuneSamplingOps.td"
include "AttuneStateSpaceOps.td"
include "AttuneTileOps.td"
include "AttuneTokenOps.td"
include "AttuneViewOps.td"

#endif // ATTUNE_OPS_TD
