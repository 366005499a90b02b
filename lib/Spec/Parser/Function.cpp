//===- Function.cpp - Layers without weights --------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayerParser.h"

namespace attune::spec {

/// False if `object` has no layer of these kinds whose options are readable.
bool LayerParser::parseFunction(const Object &object, Layer &layer) {
  if (auto options = object.object("activation"))
    layer.op = parseActivation(*options);
  else if (auto options = object.object("softmax"))
    layer.op = parseSoftmax(*options);
  else if (auto options = object.object("rotary"))
    layer.op = parseRotary(*options);
  else if (auto options = object.object("cross_entropy"))
    layer.op = parseCrossEntropy(*options);
  else
    return false;
  return true;
}

Function LayerParser::parseActivation(const Object &object) {
  Function function;
  needWidth(object);
  function.kind = Function::Kind::Activation;
  function.activation = object.choice("function", Activation::Identity);
  return function;
}

Function LayerParser::parseSoftmax(const Object &object) {
  Function function;
  needWidth(object);
  function.kind = Function::Kind::Softmax;
  function.logarithm = object.boolean("log", false);
  return function;
}

Function LayerParser::parseRotary(const Object &object) {
  Function function;
  bool known = needTokens(object);
  function.kind = Function::Kind::Rotary;
  Known heads = object.integer("heads", 1), headDim;
  function.heads = heads.value_or(1);
  if (known && heads && *width % *heads != 0)
    object.error("heads", std::to_string(*heads) + " does not divide the " +
                              std::to_string(*width) + " channels");
  else if (known && heads)
    headDim = *width / *heads;
  if (auto rope = object.object("rope")) {
    function.rope = parseRope(*rope, headDim);
  } else {
    function.rope.emplace();
    function.rope->location = object.getLocation();
    function.rope->channels = headDim.value_or(0);
    if (headDim && *headDim % 2 != 0)
      object.error("heads of " + std::to_string(*headDim) +
                   " channels cannot turn in pairs; give 'rope' with an even "
                   "'channels'");
  }
  return function;
}

CrossEntropy LayerParser::parseCrossEntropy(const Object &object) {
  CrossEntropy loss;
  needWidth(object);
  loss.targets = object.string("targets");
  loss.ignore = object.integer("ignore_index", -100).value_or(-100);
  const TensorSpec *targets = findInput(object, "targets");
  size_t rank = pooled ? 1 : 2;
  if (targets &&
      ((targets->dtype != DType::I64 && targets->dtype != DType::I32) ||
       targets->shape.size() != rank))
    object.error("targets", "input " + quote(targets->name) +
                                " cannot be the targets; expected i64 " +
                                (pooled ? "[batch]" : "[batch, tokens]"));
  width = 0; // one number
  pooled = false;
  return loss;
}

} // namespace attune::spec
