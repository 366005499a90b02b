//===- SchemaTypes.h - Types of the tables of the schema --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_SPEC_SCHEMA_SCHEMATYPES_H
#define ATTUNE_LIB_SPEC_SCHEMA_SCHEMATYPES_H

#include "Schema.h"

namespace attune::spec {

inline Type integer(int64_t minimum, int64_t maximum = maxInteger) {
  Type type{Type::Form::Integer};
  type.minimum = minimum;
  type.maximum = maximum;
  return type;
}
inline Type dimension() {
  Type type{Type::Form::Dimension};
  type.minimum = 1;
  type.maximum = maxInteger;
  return type;
}
inline Type number() { return Type{Type::Form::Number}; }
inline Type positive() {
  Type type{Type::Form::Number};
  type.above = 0;
  return type;
}
inline Type boolean() { return Type{Type::Form::Boolean}; }
inline Type string() { return Type{Type::Form::String}; }
inline Type choice(std::vector<std::string> words) {
  Type type{Type::Form::Choice};
  type.words = std::move(words);
  return type;
}
inline Type object(const ObjectType &of) {
  Type type{Type::Form::Object};
  type.object = &of;
  return type;
}
inline Type array(Type of, std::optional<size_t> count = std::nullopt) {
  Type type{Type::Form::Array};
  type.count = count;
  type.parts = {std::move(of)};
  return type;
}
inline Type map(Type of) {
  Type type{Type::Form::Map};
  type.parts = {std::move(of)};
  return type;
}
inline Type either(std::vector<Type> parts) {
  Type type{Type::Form::Either};
  type.parts = std::move(parts);
  return type;
}

inline Type activation() {
  return choice({"identity", "relu", "gelu", "gelu_tanh", "quick_gelu", "silu",
                 "relu_squared", "sigmoid", "tanh", "softplus", "mish", "elu",
                 "leaky_relu", "hardswish"});
}

/// Tables of mixtures of experts and latent attention (MoESchema.cpp), and what
/// they are made of.
const ObjectType &normType();
const ObjectType &moeType();
const ObjectType &routerType();
const ObjectType &sharedExpertType();
const ObjectType &keyIndexType();
const ObjectType &latentType();
/// Tables of blocks (BlockSchema.cpp) and of attention (Schema.cpp).
const ObjectType &ffnType();
const ObjectType &blockType();
const ObjectType &alternatingType();
const ObjectType &layerInputsType();
const ObjectType &memoryType();
const ObjectType &jointType();
const ObjectType &spreadType();
const ObjectType &uniteType();
const ObjectType &attentionType();
/// Tables of cheaper forms of attention and of parts of it
/// (AttentionFormsSchema.cpp).
const ObjectType &ropeScalingType();
const ObjectType &ropeAxesType();
const ObjectType &ropeType();
const ObjectType &relativeBiasType();
const ObjectType &relativeType();
const ObjectType &queryGrowthType();
const ObjectType &biasType();
const ObjectType &blockSparseType();
const ObjectType &disentangledType();
const ObjectType &fadingType();
const ObjectType &linearFormType();
const ObjectType &sequenceRankType();
/// Tables of layers that make and pick tokens (VisionSchema.cpp).
const ObjectType &poolType();
const ObjectType &classTokensType();
const ObjectType &sliceType();
const ObjectType &concatType();
const ObjectType &convType();
const ObjectType &batchNormType();
const ObjectType &instanceNormType();
const ObjectType &addType();
const ObjectType &l2NormType();
const ObjectType &similarityType();
const ObjectType &insertType();
const ObjectType &windowsType();
const ObjectType &wholeType();
const ObjectType &mergeType();
const ObjectType &unpatchType();
const ObjectType &modulationType();
const ObjectType &timestepType();
const ObjectType &chunkType();
const ObjectType &swapType();
const ObjectType &overlapAddType();
/// Tables of layers without weights (FunctionSchema.cpp).
const ObjectType &activationType();
const ObjectType &softmaxType();
const ObjectType &rotaryType();
const ObjectType &crossEntropyType();

/// Tables of what `generate` needs (GenerationSchema.cpp).
const ObjectType &samplingType();
const ObjectType &generationType();
/// The table of what hearing needs (AudioSchema.cpp).
const ObjectType &audioType();
const ObjectType &codesType();
const ObjectType &playbackType();

/// Tables of recurrent layers (RecurrentSchema.cpp), parts first.
const ObjectType &recurrentType();
const ObjectType &scanCellType();
const ObjectType &scanAttendType();
const ObjectType &scanLinearType();
const ObjectType &scanMeanType();
const ObjectType &scanStepType();
const ObjectType &scanType();
const ObjectType &mambaType();
const ObjectType &outNormType();
const ObjectType &shortConvType();
const ObjectType &deltaRuleType();
const ObjectType &timeMixType();

} // namespace attune::spec

#endif // ATTUNE_LIB_SPEC_SCHEMA_SCHEMATYPES_H
