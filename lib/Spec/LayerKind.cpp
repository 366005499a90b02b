//===- LayerKind.cpp - Layers that plugins bring ----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Spec/LayerKind.h"

#include "Parser/LayerParser.h"
#include "Schema/SchemaTypes.h"

#include <deque>

namespace attune::spec {

namespace {
struct Registered {
  LayerKind kind;
  ObjectType type;
};
} // namespace

/// The schema keeps pointers to the types, so they may not move.
static std::deque<Registered> &registry() {
  static std::deque<Registered> kinds;
  return kinds;
}

static Type toType(const LayerOption &option) {
  switch (option.form) {
  case LayerOption::Form::Integer:
    return integer(option.minimum);
  case LayerOption::Form::Number:
    return number();
  case LayerOption::Form::Boolean:
    return boolean();
  case LayerOption::Form::Word:
    return choice(option.words);
  }
  return number();
}

bool registerLayerKind(LayerKind kind) {
  ObjectType type{kind.key, kind.doc, {}, {}, {}};
  for (const LayerOption &option : kind.options)
    type.keys.push_back(
        {option.name, toType(option), option.doc, option.required});
  Registered &added =
      registry().emplace_back(Registered{std::move(kind), std::move(type)});
  if (addLayerType(added.type))
    return true;
  registry().pop_back();
  return false;
}

/// The option as the description gives it; nothing if it is absent or bad.
static void readOption(const Object &object, const LayerOption &option,
                       Extension &layer) {
  const std::string &name = option.name;
  if (!object.get(name))
    return;
  switch (option.form) {
  case LayerOption::Form::Integer:
    if (Known value = object.integer(name, std::nullopt))
      layer.options[name] = *value;
    return;
  case LayerOption::Form::Number:
    layer.options[name] = object.number(name, 0);
    return;
  case LayerOption::Form::Boolean:
    layer.options[name] = object.boolean(name, false);
    return;
  case LayerOption::Form::Word:
    layer.options[name] = object.string(name);
    return;
  }
}

/// False if `object` has no layer of these kinds whose options are readable.
bool LayerParser::parseExtension(const Object &object, Layer &layer) {
  for (const Registered &known : registry()) {
    auto options = object.object(known.kind.key);
    if (!options)
      continue;
    unsigned errorsBefore = context.reporter.getNumErrors();
    Extension extension;
    extension.kind = known.kind.key;
    extension.perToken = known.kind.perToken;
    extension.location = options->getLocation();
    bool readable = needTokens(*options) && !options->isBad();
    for (const LayerOption &option : known.kind.options) {
      readOption(*options, option, extension);
      readable &= !option.required || extension.options.count(option.name);
      readable &=
          !options->has(option.name) || extension.options.count(option.name);
    }
    if (readable && known.kind.describe) {
      int64_t result = *width;
      known.kind.describe(
          extension, *width, result,
          [&](std::string_view option, const std::string &message) {
            options->error(option, message);
          });
      width = result;
    }
    if (!readable || context.reporter.getNumErrors() != errorsBefore)
      width = std::nullopt;
    layer.op = std::move(extension);
    return true;
  }
  return false;
}

} // namespace attune::spec
