//===- StateSpaceParser.cpp - Selective state spaces ------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayerParser.h"

namespace attune::spec {

Mamba LayerParser::parseMamba(const Object &object) {
  Mamba mamba;
  mamba.location = object.getLocation();
  Known twice = width ? Known(2 * *width) : std::nullopt;
  Known part = width ? Known((*width + 15) / 16) : std::nullopt;
  mamba.inner = object.integer("inner", twice).value_or(0);
  mamba.states = object.integer("states", 16).value_or(16);
  mamba.kernel = object.integer("kernel", 4).value_or(4);
  mamba.rank = object.integer("rank", part).value_or(0);
  mamba.bias = object.boolean("bias", false);
  mamba.convBias = object.boolean("conv_bias", true);
  if (auto norm = object.object("norm"))
    mamba.norm = parseNorm(*norm, std::nullopt, NormKind::RMSNorm);
  return mamba;
}

} // namespace attune::spec
