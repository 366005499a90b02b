//===- SchemaPrinter.cpp - The tables as JSON Schema ------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../JsonWriter.h"
#include "Schema.h"
#include "attune/Spec/Spec.h"

namespace attune::spec {

static Json schemaOf(const Type &type) {
  Json schema = Json::object();
  switch (type.form) {
  case Type::Form::Integer:
  case Type::Form::Dimension:
    // Bounds hold for numbers, the pattern for strings.
    schema["type"] = {"integer", "string"};
    schema["minimum"] = type.minimum;
    schema["maximum"] = type.maximum;
    schema["pattern"] = "^[-+*/() A-Za-z0-9_]+$";
    return schema;
  case Type::Form::Number:
    schema["type"] = "number";
    if (type.above)
      schema["exclusiveMinimum"] = *type.above;
    return schema;
  case Type::Form::Boolean:
    schema["type"] = "boolean";
    return schema;
  case Type::Form::String:
    schema["type"] = "string";
    return schema;
  case Type::Form::Choice:
    schema["enum"] = type.words;
    return schema;
  case Type::Form::Object:
    schema["$ref"] = "#/$defs/" + type.object->name;
    return schema;
  case Type::Form::Array:
    schema["type"] = "array";
    schema["items"] = schemaOf(type.parts[0]);
    if (type.count) {
      schema["minItems"] = *type.count;
      schema["maxItems"] = *type.count;
    }
    return schema;
  case Type::Form::Map:
    schema["type"] = "object";
    schema["additionalProperties"] = schemaOf(type.parts[0]);
    return schema;
  case Type::Form::Either:
    schema["anyOf"] = Json::array();
    for (const Type &part : type.parts)
      schema["anyOf"].push_back(schemaOf(part));
    return schema;
  }
  return schema;
}

static Json schemaOf(const ObjectType &type) {
  Json schema = Json::object();
  schema["description"] = type.doc;
  schema["type"] = "object";
  Json properties = Json::object();
  Json required = Json::array();
  for (const Key &key : type.keys) {
    Json property = schemaOf(key.type);
    property["description"] = key.doc;
    properties[key.name] = std::move(property);
    if (key.required)
      required.push_back(key.name);
  }
  schema["properties"] = std::move(properties);
  if (!required.empty())
    schema["required"] = std::move(required);
  schema["additionalProperties"] = false;
  for (const std::string &name : type.exactlyOne) {
    Json alternative = Json::object();
    alternative["required"] = Json::array({name});
    schema["oneOf"].push_back(std::move(alternative));
  }
  return schema;
}

std::string jsonSchema() {
  Json schema = Json::object();
  schema["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  schema["$id"] = "attune-spec-v1.schema.json";
  schema["title"] = "Attune model description, version 1";
  schema.update(schemaOf(modelType()));
  Json defs = Json::object();
  for (const ObjectType *type : objectTypes())
    defs[type->name] = schemaOf(*type);
  schema["$defs"] = std::move(defs);
  return writeJson(schema);
}

} // namespace attune::spec
