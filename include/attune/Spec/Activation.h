//===- Activation.h - Functions of single numbers ---------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_SPEC_ACTIVATION_H
#define ATTUNE_SPEC_ACTIVATION_H

namespace attune::spec {

enum class Activation {
  Identity,
  Relu,
  Gelu,
  GeluTanh,
  QuickGelu,
  Silu,
  ReluSquared,
  Sigmoid,
  Tanh,
  Softplus,
  Mish,
  Elu,
  LeakyRelu,
  HardSwish
};

} // namespace attune::spec

#endif // ATTUNE_SPEC_ACTIVATION_H
