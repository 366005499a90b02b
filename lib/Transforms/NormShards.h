//===- NormShards.h - A norm over what several ranks have -------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_TRANSFORMS_NORMSHARDS_H
#define ATTUNE_LIB_TRANSFORMS_NORMSHARDS_H

#include "Attune/AttuneDialect.h"

namespace attune {

/// Puts the norm of a row of which each rank has a part in place of `norm`,
/// whose input and gamma are this rank's part already: ranks add up their
/// squares. All of the row has `columns`, and each is on `copies` ranks.
void normAcrossRanks(RMSNormOp norm, int64_t columns, int64_t copies);

} // namespace attune

#endif // ATTUNE_LIB_TRANSFORMS_NORMSHARDS_H
