//===- FunctionSchema.cpp - Tables of layers without weights ----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SchemaTypes.h"

namespace attune::spec {

const ObjectType &activationType() {
  static const ObjectType type{"activation",
                               "A function of every number.",
                               {{"function", activation(), "which one", true}},
                               {},
                               {}};
  return type;
}

const ObjectType &softmaxType() {
  static const ObjectType type{
      "softmax",
      "Softmax over the channels of each token.",
      {{"log", boolean(), "the logarithm of it; default false"}},
      {},
      {}};
  return type;
}

const ObjectType &rotaryType() {
  static const ObjectType type{
      "rotary",
      "Turns the channels of each token by its position.",
      {
          {"heads", integer(1),
           "equal parts of the channels that each turn; default 1"},
          {"rope", object(ropeType()), "default: every channel, theta 10000"},
      },
      {},
      {}};
  return type;
}

const ObjectType &crossEntropyType() {
  static const ObjectType type{
      "cross_entropy",
      "The mean of -log softmax(logits)[target] over all targets: one number.",
      {
          {"targets", string(),
           "the input that has the right id for every token's logits", true},
          {"ignore_index", integer(-maxInteger),
           "a target of this id does not count; default -100"},
      },
      {},
      {}};
  return type;
}

} // namespace attune::spec
