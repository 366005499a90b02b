//===- SchemaValues.cpp - Values and schemas ------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SchemaValues.h"

#include "SchemaFormats.h"
#include "SchemaKeywords.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

namespace attune::runtime {

using Fit = SchemaValues::Fit;

size_t countValues(const JsonValue &value) {
  size_t count = 1;
  for (const JsonValue &item : value.items)
    count += countValues(item);
  return count;
}

static bool isWhole(const JsonValue &value) {
  return value.isInt() || (value.isNumber() && std::isfinite(value.real) &&
                           value.real == std::floor(value.real));
}

std::string canonicalText(const JsonValue &value) {
  if (value.isNumber() && !value.isInt()) {
    char text[40];
    std::snprintf(text, sizeof(text),
                  isWhole(value) && std::fabs(value.real) < 1e15 ? "%.0f"
                                                                 : "%.17g",
                  value.real + 0.0); // of -0 makes 0
    return text;
  }
  std::string text;
  if (value.isArray()) {
    for (const JsonValue &item : value.items)
      text += (text.empty() ? "[" : ",") + canonicalText(item);
    return text.empty() ? "[]" : text + "]";
  }
  if (value.isObject()) {
    std::vector<std::string> members;
    for (size_t i = 0; i < value.keys.size(); ++i) {
      appendJsonString(members.emplace_back(), value.keys[i]);
      members.back() += ":" + canonicalText(value.items[i]);
    }
    std::sort(members.begin(), members.end());
    for (const std::string &member : members)
      text += (text.empty() ? "{" : ",") + member;
    return text.empty() ? "{}" : text + "}";
  }
  appendJson(text, value);
  return text;
}

bool restrictsBeside(const JsonValue &schema, std::string_view keyword) {
  for (size_t i = 0; i < schema.keys.size(); ++i)
    if (schema.keys[i] != keyword &&
        useOfKeyword(schema, schema.keys[i], schema.items[i]) !=
            KeywordUse::Nothing)
      return true;
  return false;
}

std::string_view impliedType(const JsonValue &schema) {
  auto has = [&](std::initializer_list<std::string_view> keys) {
    return std::any_of(keys.begin(), keys.end(), [&](std::string_view key) {
      return schema.find(key) != nullptr;
    });
  };
  return has({"properties", "required", "additionalProperties"}) ? "object"
         : has({"items", "prefixItems", "minItems", "maxItems"}) ? "array"
         : has({"pattern", "minLength", "maxLength", "format"})  ? "string"
         : has({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
                "multipleOf"})
             ? "number"
             : "";
}

const JsonValue *followReference(const JsonValue *root,
                                 const JsonValue &reference,
                                 std::string &problem) {
  if (!reference.isString() || reference.string.substr(0, 1) != "#") {
    problem = "expected a place in this schema, as #/$defs/NAME";
    return nullptr;
  }
  const JsonValue *at = root;
  std::string_view rest = std::string_view(reference.string).substr(1);
  while (at && !rest.empty()) {
    if (rest[0] != '/') {
      problem = "'" + reference.string + "' is not a JSON pointer";
      return nullptr;
    }
    rest.remove_prefix(1);
    size_t end = std::min(rest.find('/'), rest.size());
    std::string name;
    for (size_t i = 0; i < end; ++i)
      if (rest.substr(i, 2) == "~1" || rest.substr(i, 2) == "~0")
        name += rest[++i] == '1' ? '/' : '~';
      else
        name += rest[i];
    rest.remove_prefix(end);
    if (at->isArray()) {
      size_t index = 0;
      for (char c : name)
        index = c >= '0' && c <= '9' && index < 100000
                    ? index * 10 + static_cast<size_t>(c - '0')
                    : 100000;
      at = !name.empty() && index < at->items.size() ? &at->items[index]
                                                     : nullptr;
    } else {
      at = at->isObject() ? at->find(name) : nullptr;
    }
  }
  if (!at)
    problem = "there is no '" + reference.string + "'";
  return at;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

static bool hasType(const JsonValue &value, std::string_view type) {
  return type == "integer"   ? isWhole(value)
         : type == "number"  ? value.isNumber()
         : type == "string"  ? value.isString()
         : type == "boolean" ? value.isBool()
         : type == "null"    ? value.isNull()
         : type == "array"   ? value.isArray()
                             : type == "object" && value.isObject();
}

/// Both hold.
static Fit both(Fit x, Fit y) {
  return x == Fit::No || y == Fit::No             ? Fit::No
         : x == Fit::Unknown || y == Fit::Unknown ? Fit::Unknown
                                                  : Fit::Yes;
}

static Fit fitIf(bool holds) { return holds ? Fit::Yes : Fit::No; }

Fit SchemaValues::fits(const JsonValue &value, const JsonValue &schema) {
  if (schema.isBool())
    return fitIf(schema.boolean);
  if (!schema.isObject() || depth >= mostDepth || ++steps > mostSteps)
    return notKnown("$ref");
  ++depth;
  Fit all = Fit::Yes;
  for (size_t i = 0; i < schema.keys.size() && all != Fit::No; ++i)
    all =
        both(all, fitsKeyword(value, schema, schema.keys[i], schema.items[i]));
  --depth;
  return all;
}

Fit SchemaValues::fitsNumber(const JsonValue &value, std::string_view key,
                             const JsonValue &bound) {
  if (!value.isNumber())
    return Fit::Yes;
  if (!bound.isNumber())
    return notKnown(key);
  if (key == "multipleOf")
    return value.isInt() && bound.isInt() && bound.integer > 0
               ? fitIf(value.integer % bound.integer == 0)
               : notKnown(key);
  return fitIf(key == "minimum"            ? value.real >= bound.real
               : key == "maximum"          ? value.real <= bound.real
               : key == "exclusiveMinimum" ? value.real > bound.real
                                           : value.real < bound.real);
}

static size_t countCharacters(const std::string &text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
      }));
}

Fit SchemaValues::fitsItems(const JsonValue &value, const JsonValue &schema) {
  TupleKeys keys = tupleKeys(schema);
  const JsonValue *prefix = schema.find(keys.firsts);
  const JsonValue *items = schema.find(keys.rest);
  if ((prefix && !prefix->isArray()) || hasTwoTuples(schema))
    return notKnown(keys.firsts);
  Fit all = Fit::Yes;
  for (size_t i = 0; i < value.items.size() && all != Fit::No; ++i) {
    const JsonValue *own =
        prefix && i < prefix->items.size() ? &prefix->items[i] : items;
    if (own)
      all = both(all, fits(value.items[i], *own));
  }
  return all;
}

Fit SchemaValues::fitsMembers(const JsonValue &value, const JsonValue &schema) {
  const JsonValue *properties = schema.find("properties");
  const JsonValue *rest = schema.find("additionalProperties");
  if (properties)
    steps += value.keys.size() * properties->keys.size() / 16;
  Fit all = Fit::Yes;
  for (size_t i = 0; i < value.keys.size() && all != Fit::No; ++i) {
    const JsonValue *own = properties ? properties->find(value.keys[i]) : rest;
    if (!own)
      own = rest;
    if (own)
      all = both(all, fits(value.items[i], *own));
  }
  return all;
}

Fit SchemaValues::fitsParts(const JsonValue &value, std::string_view key,
                            const JsonValue &parts) {
  if (!parts.isArray())
    return notKnown(key);
  size_t numYes = 0, numUnknown = 0;
  for (const JsonValue &part : parts.items) {
    Fit fit = fits(value, part);
    numYes += fit == Fit::Yes;
    numUnknown += fit == Fit::Unknown;
  }
  if (key == "anyOf")
    return numYes ? Fit::Yes : numUnknown ? Fit::Unknown : Fit::No;
  if (key == "oneOf" && numYes > 1)
    return Fit::No;
  if (key == "oneOf")
    return numUnknown ? Fit::Unknown : fitIf(numYes == 1);
  size_t numNo = parts.items.size() - numYes - numUnknown;
  return numNo ? Fit::No : numUnknown ? Fit::Unknown : Fit::Yes;
}

Fit SchemaValues::fitsKeyword(const JsonValue &value, const JsonValue &schema,
                              std::string_view key, const JsonValue &rule) {
  auto is = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), key) != names.end();
  };
  if (useOfKeyword(schema, key, rule) == KeywordUse::Nothing)
    return Fit::Yes;
  if (key == "type") {
    if (rule.isString())
      return fitIf(hasType(value, rule.string));
    return fitIf(std::any_of(
        rule.items.begin(), rule.items.end(), [&](const JsonValue &type) {
          return type.isString() && hasType(value, type.string);
        }));
  }
  if (key == "const")
    return fitIf(canonicalText(value) == canonicalText(rule));
  if (key == "enum") {
    steps += rule.items.size();
    std::string text = canonicalText(value);
    return fitIf(std::any_of(
        rule.items.begin(), rule.items.end(),
        [&](const JsonValue &item) { return canonicalText(item) == text; }));
  }
  if (is({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
          "multipleOf"}))
    return fitsNumber(value, key, rule);
  if (is({"minLength", "maxLength", "minItems", "maxItems"})) {
    bool isText = is({"minLength", "maxLength"});
    if (isText ? !value.isString() : !value.isArray())
      return Fit::Yes;
    if (!rule.isNumber())
      return notKnown(key);
    auto count = static_cast<double>(isText ? countCharacters(value.string)
                                            : value.items.size());
    return fitIf(is({"minLength", "minItems"}) ? count >= rule.real
                                               : count <= rule.real);
  }
  if (key == "format" && rule.isString() &&
      patternOfFormat(rule.string).empty())
    return Fit::Yes;
  if (is({"pattern", "format"}))
    return value.isString() ? notKnown(key) : Fit::Yes;
  if (is({"items", "prefixItems", "additionalItems"}))
    return value.isArray() ? fitsItems(value, schema) : Fit::Yes;
  if (is({"properties", "additionalProperties"}))
    return value.isObject() ? fitsMembers(value, schema) : Fit::Yes;
  if (key == "required")
    return fitIf(!value.isObject() ||
                 std::all_of(rule.items.begin(), rule.items.end(),
                             [&](const JsonValue &name) {
                               return value.find(name.string);
                             }));
  if (is({"allOf", "anyOf", "oneOf"}))
    return fitsParts(value, key, rule);
  if (key == "$ref") {
    std::string ignored;
    const JsonValue *target = followReference(root, rule, ignored);
    return target ? fits(value, *target) : notKnown(key);
  }
  return notKnown(key);
}

//===----------------------------------------------------------------------===//
// Schemas without a common value
//===----------------------------------------------------------------------===//

const JsonValue *SchemaValues::resolve(const JsonValue &schema) {
  const JsonValue *at = &schema;
  std::string ignored;
  for (unsigned i = 0; i < mostDepth; ++i) {
    const JsonValue *reference = at->isObject() ? at->find("$ref") : nullptr;
    if (!reference || restrictsBeside(*at, "$ref"))
      return at;
    at = followReference(root, *reference, ignored);
    if (!at)
      return &schema;
  }
  return at;
}

/// Whether types that one schema names are none of the other's.
static bool haveOtherTypes(const JsonValue &written, const JsonValue &other) {
  auto read = [](const JsonValue &schema, bool implied) {
    std::vector<std::string_view> names;
    const JsonValue *type = schema.find("type");
    if (type && type->isString())
      names.push_back(type->string);
    for (size_t i = 0; type && i < type->items.size(); ++i)
      names.push_back(type->items[i].string);
    if (!type && implied && !impliedType(schema).empty())
      names.push_back(impliedType(schema));
    for (std::string_view &name : names)
      if (name == "integer")
        name = "number";
    return names;
  };
  // What lists values, or is a union, may have others than the implied type.
  bool implied = true;
  for (const char *key : {"const", "enum", "anyOf", "oneOf", "allOf", "$ref"})
    implied = implied && !written.find(key);
  std::vector<std::string_view> own = read(written, implied),
                                others = read(other, false);
  return !own.empty() && !others.empty() &&
         std::none_of(own.begin(), own.end(), [&](std::string_view name) {
           return std::find(others.begin(), others.end(), name) != others.end();
         });
}

/// Whether one schema asks for more than the other one allows.
static bool isBeyond(const JsonValue &x, const JsonValue &y) {
  auto number = [](const JsonValue &schema, const char *key, double none) {
    const JsonValue *value = schema.find(key);
    return value && value->isNumber() ? value->real : none;
  };
  double least = std::max(number(x, "minimum", -HUGE_VAL),
                          number(x, "exclusiveMinimum", -HUGE_VAL));
  double most = std::min(number(y, "maximum", HUGE_VAL),
                         number(y, "exclusiveMaximum", HUGE_VAL));
  bool isOpen = number(x, "exclusiveMinimum", -HUGE_VAL) == least ||
                number(y, "exclusiveMaximum", HUGE_VAL) == most;
  return least > most || (least == most && isOpen);
}

/// Whether no value that a schema lists, and that it allows itself, fits the
/// other one.
bool SchemaValues::listsNothingFor(const JsonValue &listing,
                                   const JsonValue &other) {
  auto isOut = [&](const JsonValue &value) {
    return fits(value, other) == Fit::No || fits(value, listing) == Fit::No;
  };
  if (const JsonValue *value = listing.find("const"))
    return isOut(*value);
  const JsonValue *values = listing.find("enum");
  return values && values->isArray() &&
         std::all_of(values->items.begin(), values->items.end(), isOut);
}

bool SchemaValues::neverFitsObject(const JsonValue &written,
                                   const JsonValue &other) {
  const JsonValue *own = written.find("properties"),
                  *its = other.find("properties"),
                  *rest = written.find("additionalProperties"),
                  *itsRest = other.find("additionalProperties");
  auto demands = [](const JsonValue &schema, std::string_view name) {
    const JsonValue *names = schema.find("required");
    return names && std::any_of(names->items.begin(), names->items.end(),
                                [&](const JsonValue &each) {
                                  return each.isString() && each.string == name;
                                });
  };
  auto namesOf = [](const JsonValue &schema) {
    std::vector<std::string_view> names;
    if (const JsonValue *list = schema.find("required"))
      for (const JsonValue &each : list->items)
        names.push_back(each.string);
    return names;
  };
  std::vector<std::string_view> mine = namesOf(written), yours = namesOf(other);
  bool isClosed = (own && !own->keys.empty()) || !mine.empty() ||
                  (rest && rest->isBool() && !rest->boolean);
  for (const char *key : {"allOf", "anyOf", "oneOf", "$ref"})
    isClosed = isClosed && !written.find(key); // which may name others
  for (std::string_view name : yours)
    if (isClosed && !(own && own->find(name)) && !demands(written, name))
      return true;
  for (std::string_view name : mine)
    if (itsRest && itsRest->isBool() && !itsRest->boolean &&
        !(its && its->find(name)))
      return true;
  mine.insert(mine.end(), yours.begin(), yours.end());
  return std::any_of(mine.begin(), mine.end(), [&](std::string_view name) {
    const JsonValue *x = own ? own->find(name) : nullptr;
    const JsonValue *y = its ? its->find(name) : nullptr;
    return x && y && neverFits(*x, *y);
  });
}

bool SchemaValues::neverFits(const JsonValue &written, const JsonValue &other) {
  const JsonValue &x = *resolve(written), &y = *resolve(other);
  if (x.isBool() || y.isBool())
    return (x.isBool() && !x.boolean) || (y.isBool() && !y.boolean);
  if (!x.isObject() || !y.isObject() || depth >= 10 || ++steps > mostSteps)
    return false;
  ++depth;
  auto eachNeverFits = [&](const char *key, bool areWritten) {
    const JsonValue *parts = (areWritten ? x : y).find(key);
    if (!parts || !parts->isArray() || parts->items.empty() ||
        (areWritten && restrictsBeside(x, key)))
      return false;
    return std::all_of(
        parts->items.begin(), parts->items.end(), [&](const JsonValue &part) {
          return areWritten ? neverFits(part, y) : neverFits(x, part);
        });
  };
  bool result =
      haveOtherTypes(x, y) || listsNothingFor(x, y) || listsNothingFor(y, x);
  for (const char *key : {"anyOf", "oneOf"})
    result = result || eachNeverFits(key, true) || eachNeverFits(key, false);
  auto is = [](const JsonValue &schema, std::string_view type) {
    const JsonValue *own = schema.find("type");
    return own ? own->isString() && own->string == type
               : impliedType(schema) == type;
  };
  auto areBoth = [&](std::string_view type) {
    return is(x, type) && is(y, type);
  };
  if (!result && (is(x, "number") || is(x, "integer")) &&
      (is(y, "number") || is(y, "integer")))
    result = isBeyond(x, y) || isBeyond(y, x);
  if (!result && areBoth("object"))
    result = neverFitsObject(x, y);
  --depth;
  return result;
}

} // namespace attune::runtime
