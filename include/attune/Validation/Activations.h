//===- Activations.h - Activations in double precision ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_VALIDATION_ACTIVATIONS_H
#define ATTUNE_VALIDATION_ACTIVATIONS_H

#include "Attune/AttuneDialect.h"

namespace attune::validation {

double activate(Activation function, double x);

} // namespace attune::validation

#endif // ATTUNE_VALIDATION_ACTIVATIONS_H
