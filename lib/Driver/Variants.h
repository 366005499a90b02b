//===- Variants.h - One product for several CPUs ----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_DRIVER_VARIANTS_H
#define ATTUNE_LIB_DRIVER_VARIANTS_H

#include "Lowering.h"

namespace attune::driver {

/// Why --cpu=multi does not go with the rest of the command line; may be empty.
std::string findVariantsProblem(const Options &options);

/// The variant of `options.variants` that this machine runs: what is computed
/// here is computed as a product would.
bool takeVariantOfHost(Options &options, std::string &problem);

/// The product with the code of all `options.variants`. `first` makes that of
/// the first one, and keeps the weights that all read.
std::optional<ProductBytes> compileVariants(const Options &options,
                                            Report &report,
                                            const ModelSource &source,
                                            Lowering &first);

} // namespace attune::driver

#endif // ATTUNE_LIB_DRIVER_VARIANTS_H
