//===- SchemaGrammar.cpp - JSON schemas as grammars -----------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SchemaGrammar.h"

#include "SchemaNumbers.h"
#include "SchemaReader.h"

#include <algorithm>
#include <iterator>

namespace attune::runtime {

/// Values of a schema: what users write has some hundreds.
static constexpr size_t mostValues = 20000;

//===----------------------------------------------------------------------===//
// Values of any kind
//===----------------------------------------------------------------------===//

Grammar::Rule SchemaReader::anyString() {
  return once(stringRule, [&](Grammar::Rule rule) {
    Sequence sequence = text("\"");
    grammar.appendRepeat(sequence, character(), 0, -1);
    grammar.addAlternative(rule, append(sequence, text("\"")));
  });
}

Grammar::Rule SchemaReader::arrayOf(Grammar::Rule item) {
  Sequence empty = text("["), full = empty, more = text(",");
  for (Sequence *sequence : {&empty, &full, &more})
    grammar.appendRule(*sequence, space());
  grammar.appendRule(more, item);
  grammar.appendRule(more, space());
  grammar.appendRule(full, item);
  grammar.appendRule(full, space());
  grammar.appendRepeat(full, makeRule(more), 0, -1);
  Grammar::Rule rule = makeRule(append(empty, text("]")));
  grammar.addAlternative(rule, append(full, text("]")));
  return rule;
}

Grammar::Rule SchemaReader::objectOf(Grammar::Rule value) {
  Sequence member;
  grammar.appendRule(member, anyString());
  append(member, text(":"));
  grammar.appendRule(member, space());
  grammar.appendRule(member, value);
  grammar.appendRule(member, space());
  Sequence empty = text("{"), full = empty, more = text(",");
  for (Sequence *sequence : {&empty, &full, &more})
    grammar.appendRule(*sequence, space());
  Grammar::Rule one = makeRule(member);
  grammar.appendRule(more, one);
  grammar.appendRule(full, one);
  grammar.appendRepeat(full, makeRule(more), 0, -1);
  Grammar::Rule rule = makeRule(append(empty, text("}")));
  grammar.addAlternative(rule, append(full, text("}")));
  return rule;
}

Grammar::Rule SchemaReader::anyObject() {
  return once(objectRule, [&](Grammar::Rule rule) {
    Sequence sequence;
    grammar.appendRule(sequence, objectOf(anyValue()));
    grammar.addAlternative(rule, std::move(sequence));
  });
}

Grammar::Rule SchemaReader::anyValue() {
  return once(valueRule, [&](Grammar::Rule rule) {
    Grammar::Rule kinds[] = {anyString(), number(), anyObject(), arrayOf(rule)};
    for (Grammar::Rule kind : kinds)
      grammar.addAlternative(rule, {{true, kind}});
    for (const char *word : {"true", "false", "null"})
      grammar.addAlternative(rule, text(word));
  });
}

//===----------------------------------------------------------------------===//
// Schemas
//===----------------------------------------------------------------------===//

bool SchemaReader::checkKeywords(const JsonValue &schema,
                                 const std::string &where) {
  static constexpr std::string_view understood[] = {"type",
                                                    "enum",
                                                    "const",
                                                    "properties",
                                                    "required",
                                                    "additionalProperties",
                                                    "items",
                                                    "prefixItems",
                                                    "minItems",
                                                    "maxItems",
                                                    "minLength",
                                                    "maxLength",
                                                    "pattern",
                                                    "format",
                                                    "anyOf",
                                                    "oneOf",
                                                    "allOf",
                                                    "$ref",
                                                    "minimum",
                                                    "maximum",
                                                    "exclusiveMinimum",
                                                    "exclusiveMaximum",
                                                    "multipleOf"};
  for (const std::string &key : schema.keys)
    if (!isAnnotation(key) &&
        std::find(std::begin(understood), std::end(understood), key) ==
            std::end(understood))
      return fail(where, "the keyword '" + key +
                             "' is not supported, and texts could be invalid "
                             "without it");
  return true;
}

bool SchemaReader::readSchema(const JsonValue &schema, const std::string &where,
                              Grammar::Rule &rule) {
  if (schema.isBool()) {
    rule = schema.boolean ? anyValue() : grammar.addRule();
    return true;
  }
  if (!schema.isObject())
    return fail(where,
                std::string("expected an object, found ") + schema.kindName());
  uint32_t number = knownIndex.find(
      reinterpret_cast<uintptr_t>(&schema), known.size(),
      [&](uint32_t each) { return known[each].first == &schema; });
  if (number < known.size()) {
    rule = known[number].second;
    return true;
  }
  if (!checkKeywords(schema, where))
    return false;
  if (grammar.isTooLarge() || depth > mostDepth)
    return fail(where, "the schema is too large");
  ++depth;
  rule = grammar.addRule();
  known.push_back({&schema, rule});
  const JsonValue *reference = schema.find("$ref");
  bool good;
  if (schema.find("allOf") || (reference && restrictsBeside(schema, "$ref")))
    good = addAll(schema, where, rule);
  else if (reference)
    good = addReference(*reference, where + "/$ref", rule);
  else if (schema.find("const") || schema.find("enum"))
    good = addValues(schema, where, rule);
  else if (schema.find("anyOf"))
    good = addUnion(schema, "anyOf", where, rule);
  else if (schema.find("oneOf"))
    good = addUnion(schema, "oneOf", where, rule);
  else
    good = addTypes(schema, where, rule);
  --depth;
  return good;
}

/// A schema may restrict one kind of values and allow all others; who writes
/// members or items means that kind.
bool SchemaReader::addTypes(const JsonValue &schema, const std::string &where,
                            Grammar::Rule rule) {
  const JsonValue *type = schema.find("type");
  if (!type) {
    std::string_view implied = impliedType(schema);
    if (!implied.empty())
      return addType(schema, implied, where, rule);
    grammar.addAlternative(rule, {{true, anyValue()}});
    return true;
  }
  if (type->isString())
    return addType(schema, type->string, where, rule);
  if (!type->isArray())
    return fail(where + "/type", "expected a name of a type");
  for (const JsonValue &each : type->items) {
    if (!each.isString())
      return fail(where + "/type", "expected names of types");
    if (!addType(schema, each.string, where, rule))
      return false;
  }
  return true;
}

bool SchemaReader::readCounts(const JsonValue &schema, const char *least,
                              const char *most, const std::string &where,
                              int64_t &from, int64_t &to) {
  for (auto [name, value] :
       {std::pair<const char *, int64_t *>(least, &from), {most, &to}}) {
    const JsonValue *count = schema.find(name);
    if (!count)
      continue;
    if (!count->isInt() || count->integer < 0 || count->integer > 10000)
      return fail(where + "/" + name,
                  "expected a whole number from 0 to 10000");
    *value = count->integer;
  }
  return true;
}

bool SchemaReader::addType(const JsonValue &schema, std::string_view type,
                           const std::string &where, Grammar::Rule rule) {
  if (type == "string")
    return addString(schema, where, rule);
  if (type == "array")
    return addArray(schema, where, rule);
  if (type == "object")
    return addObject(schema, where, rule);
  if (type == "integer" || type == "number") {
    return addNumber(schema, type == "integer", where, rule);
  } else if (type == "null") {
    grammar.addAlternative(rule, text("null"));
  } else if (type == "boolean") {
    grammar.addAlternative(rule, text("true"));
    grammar.addAlternative(rule, text("false"));
  } else {
    return fail(where + "/type", "there is no type '" + std::string(type) +
                                     "'; expected string, number, integer, "
                                     "boolean, null, array or object");
  }
  return true;
}

bool SchemaReader::addNumber(const JsonValue &schema, bool isInteger,
                             const std::string &where, Grammar::Rule rule) {
  NumberBounds bounds;
  std::string keyword, why;
  if (!bounds.read(schema, isInteger, keyword, why))
    return fail(where + "/" + keyword, why);
  if (bounds.multipleOf > 1) {
    addMultiples(grammar, rule, bounds.multipleOf);
    return true;
  }
  if (!bounds.hasBounds) {
    grammar.addAlternative(rule, {{true, isInteger ? integer() : number()}});
    return true;
  }
  std::string pattern = describeNumbers(bounds, isInteger);
  if (pattern.empty())
    return exclude(where, "no number is within these bounds");
  Sequence sequence;
  if (!appendPattern(grammar, sequence, pattern, /*isSearch=*/false,
                     /*inString=*/false, why))
    return fail(where, why);
  grammar.addAlternative(rule, std::move(sequence));
  return true;
}

bool SchemaReader::addString(const JsonValue &schema, const std::string &where,
                             Grammar::Rule rule) {
  static constexpr std::pair<std::string_view, std::string_view> formats[] = {
      {"date", "^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|1\\d|2[0-8])$"},
      {"time", "^([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,9})?(Z|[+-]([01]"
               "\\d|2[0-3]):[0-5]\\d)$"},
      {"date-time",
       "^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|1\\d|2[0-8])T([01]\\d|2[0-3]):[0-5]\\d"
       ":[0-5]\\d(\\.\\d{1,9})?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)$"},
      {"uuid", "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"},
      {"ipv4", "^((25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)\\.){3}(25[0-5]|2[0-4]"
               "\\d|1\\d\\d|[1-9]?\\d)$"},
      {"email", "^[a-zA-Z0-9_+-]+(\\.[a-zA-Z0-9_+-]+){0,8}@[a-zA-Z0-9]([a-zA-Z"
                "0-9-]{0,30}[a-zA-Z0-9])?(\\.[a-zA-Z0-9]([a-zA-Z0-9-]{0,30}[a-"
                "zA-Z0-9])?){1,4}$"}};
  const JsonValue *pattern = schema.find("pattern");
  const JsonValue *format = schema.find("format");
  int64_t least = 0, most = -1;
  if (!readCounts(schema, "minLength", "maxLength", where, least, most))
    return false;
  if (most >= 0 && least > most)
    return exclude(where, "minLength is more than maxLength");
  bool counts = least > 0 || most >= 0;
  std::string_view source;
  std::string place = where + (pattern ? "/pattern" : "/format");
  if (pattern) {
    if (!pattern->isString())
      return fail(place, "expected a regular expression");
    source = pattern->string;
  } else if (format) {
    if (!format->isString())
      return fail(place, "expected a name of a format");
    for (auto [name, expression] : formats)
      if (name == format->string)
        source = expression;
    if (source.empty())
      return fail(place, "the format '" + format->string +
                             "' is not supported; date, time, date-time, uuid, "
                             "ipv4 and email are");
  }
  if ((pattern && format) || (counts && (pattern || format)))
    return fail(place, "it stands beside another keyword that restricts, which "
                       "is not supported");
  Sequence sequence = text("\"");
  if (pattern || format) {
    std::string why;
    if (!appendPattern(grammar, sequence, source, /*isSearch=*/true,
                       /*inString=*/true, why))
      return fail(place, why);
  } else if (!grammar.appendRepeat(sequence, character(), least, most)) {
    return fail(where, "the schema is too large");
  }
  grammar.addAlternative(rule, append(sequence, text("\"")));
  return true;
}

bool SchemaReader::addArray(const JsonValue &schema, const std::string &where,
                            Grammar::Rule rule) {
  int64_t least = 0, most = -1;
  if (!readCounts(schema, "minItems", "maxItems", where, least, most))
    return false;
  if (most >= 0 && least > most)
    return exclude(where, "minItems is more than maxItems");
  std::vector<Grammar::Rule> firsts;
  if (const JsonValue *prefix = schema.find("prefixItems")) {
    if (!prefix->isArray())
      return fail(where + "/prefixItems", "expected an array of schemas");
    for (size_t i = 0; i < prefix->items.size(); ++i)
      if (!readSchema(prefix->items[i],
                      where + "/prefixItems/" + std::to_string(i),
                      firsts.emplace_back()))
        return false;
  }
  const JsonValue *items = schema.find("items");
  bool hasMore = !(items && items->isBool() && !items->boolean);
  // After items that are named, others may come but need not.
  if (!firsts.empty() && !items && least <= static_cast<int64_t>(firsts.size()))
    hasMore = false;
  Grammar::Rule item = 0;
  if (hasMore && (items ? !readSchema(*items, where + "/items", item)
                        : (item = anyValue(), false)))
    return false;
  auto numFirst = static_cast<int64_t>(firsts.size());
  if (!hasMore && least > numFirst)
    return exclude(where, "minItems asks for more items than there may be");
  if (!hasMore)
    most = most < 0 ? numFirst : std::min(most, numFirst);
  // From the end: what may follow after `count` items.
  auto after = [&](int64_t count, Grammar::Rule follow) {
    Sequence next;
    if (count > 0) {
      next = text(",");
      grammar.appendRule(next, space());
    }
    grammar.appendRule(next, count < numFirst ? firsts[count] : item);
    grammar.appendRule(next, space());
    grammar.appendRule(next, follow);
    Grammar::Rule result = grammar.addRule();
    grammar.addAlternative(result, std::move(next));
    if (count >= least)
      grammar.addAlternative(result, {});
    return result;
  };
  int64_t last = std::max(least, numFirst);
  Grammar::Rule tail = grammar.addRule();
  if (most >= 0) {
    last = most;
    grammar.addAlternative(tail, {});
  } else {
    Sequence more = text(",");
    grammar.appendRule(more, space());
    grammar.appendRule(more, item);
    grammar.appendRule(more, space());
    grammar.appendRule(more, tail);
    grammar.addAlternative(tail, {});
    grammar.addAlternative(tail, std::move(more));
    last = std::max<int64_t>(last, 1); // the first one has no comma
  }
  for (int64_t count = last; count-- > 0;) {
    tail = after(count, tail);
    if (grammar.isTooLarge())
      return fail(where, "the schema is too large");
  }
  Sequence sequence = text("[");
  grammar.appendRule(sequence, space());
  grammar.appendRule(sequence, tail);
  grammar.addAlternative(rule, append(sequence, text("]")));
  return true;
}

bool SchemaReader::addObject(const JsonValue &schema, const std::string &where,
                             Grammar::Rule rule) {
  struct Member {
    std::string name;
    Grammar::Rule value;
    bool isRequired;
  };
  std::vector<Member> members;
  const JsonValue *properties = schema.find("properties");
  const JsonValue *required = schema.find("required");
  const JsonValue *others = schema.find("additionalProperties");
  if (properties && !properties->isObject())
    return fail(where + "/properties", "expected an object of schemas");
  for (size_t i = 0; properties && i < properties->keys.size(); ++i) {
    const std::string &name = properties->keys[i];
    members.push_back({name, 0, false});
    if (!readSchema(properties->items[i], where + "/properties/" + name,
                    members.back().value))
      return false;
  }
  if (required && !required->isArray())
    return fail(where + "/required", "expected an array of names");
  Grammar::Rule other = 0;
  if (others && !others->isBool()) {
    if (!readSchema(*others, where + "/additionalProperties", other))
      return false;
  } else if (!others || others->boolean) {
    other = anyValue();
  }
  bool hasOthers = !(others && others->isBool() && !others->boolean);
  for (size_t i = 0; required && i < required->items.size(); ++i) {
    const JsonValue &name = required->items[i];
    if (!name.isString())
      return fail(where + "/required", "expected an array of names");
    auto place =
        std::find_if(members.begin(), members.end(), [&](const Member &member) {
          return member.name == name.string;
        });
    if (place != members.end())
      place->isRequired = true;
    else if (hasOthers)
      members.push_back({name.string, other, true});
    else
      return exclude(where + "/required", "'" + name.string +
                                              "' is required, but there may be "
                                              "no such member");
  }
  if (members.empty() && hasOthers) {
    grammar.addAlternative(rule, {{true, objectOf(other)}});
    return true;
  }
  // From the end: what may follow when the first member is still to come, and
  // when others are there already.
  Grammar::Rule fresh = makeRule({}), later = makeRule({});
  for (size_t i = members.size(); i-- > 0;) {
    const Member &member = members[i];
    std::string name;
    appendJsonString(name, member.name);
    Sequence first = text(name + ":");
    grammar.appendRule(first, space());
    grammar.appendRule(first, member.value);
    grammar.appendRule(first, space());
    grammar.appendRule(first, later);
    Sequence next = text(",");
    grammar.appendRule(next, space());
    append(next, first);
    Grammar::Rule before = makeRule(first), after = makeRule(next);
    if (!member.isRequired) {
      grammar.addAlternative(before, {{true, fresh}});
      grammar.addAlternative(after, {{true, later}});
    }
    fresh = before;
    later = after;
  }
  Sequence sequence = text("{");
  grammar.appendRule(sequence, space());
  grammar.appendRule(sequence, fresh);
  grammar.addAlternative(rule, append(sequence, text("}")));
  return true;
}

bool buildSchemaGrammar(const JsonValue &schema, Grammar &grammar,
                        std::string &problem) {
  problem.clear();
  if (countValues(schema) > mostValues) {
    problem = "schema: has more than " + std::to_string(mostValues) + " values";
    return false;
  }
  SchemaReader reader(&schema, grammar, problem);
  if (!reader.readSchema(schema, "", grammar.root))
    return false;
  if (grammar.isTooLarge()) {
    problem = "schema: the schema is too large";
    return false;
  }
  if (grammar.findLeftRecursion() >= 0) {
    problem = "schema: a schema refers to itself without anything between";
    return false;
  }
  problem = reader.contradiction();
  return true;
}

void buildObjectGrammar(Grammar &grammar) {
  std::string ignored;
  grammar.root = SchemaReader(nullptr, grammar, ignored).anyObject();
}

} // namespace attune::runtime
