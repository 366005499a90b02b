//===- SchemaGrammar.cpp - JSON schemas as grammars -----------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SchemaGrammar.h"

#include "Pattern.h"
#include "SchemaMerge.h"
#include "SchemaNumbers.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>

namespace attune::runtime {

/// Values of a schema: what users write has some hundreds.
static constexpr size_t mostValues = 20000;
/// Values that are looked at while schemas become one: parts that refer to
/// parts can double what there is at every level.
static constexpr size_t mostMerged = 2000000;

static size_t countValues(const JsonValue &value) {
  size_t count = 1;
  for (const JsonValue &item : value.items)
    count += countValues(item);
  return count;
}

namespace {
class SchemaReader {
public:
  SchemaReader(const JsonValue *root, Grammar &grammar, std::string &problem)
      : root(root), grammar(grammar), problem(problem) {}

  /// A rule for the values of a schema; false: it is wrong.
  bool readSchema(const JsonValue &schema, const std::string &where,
                  Grammar::Rule &rule);
  Grammar::Rule anyObject();

private:
  using Sequence = Grammar::Sequence;
  static constexpr unsigned mostDepth = 100;

  bool fail(const std::string &where, const std::string &what) {
    problem = "schema" + (where.empty() ? "" : " " + where) + ": " + what;
    return false;
  }
  Sequence text(std::string_view bytes) {
    Sequence sequence;
    grammar.appendText(sequence, bytes);
    return sequence;
  }
  Sequence &append(Sequence &to, const Sequence &more) {
    to.insert(to.end(), more.begin(), more.end());
    return to;
  }
  Grammar::Rule makeRule(Sequence sequence) {
    Grammar::Rule rule = grammar.addRule();
    grammar.addAlternative(rule, std::move(sequence));
    return rule;
  }
  /// A rule that is made when it is first asked for.
  template <typename Make> Grammar::Rule once(int64_t &rule, Make make) {
    if (rule < 0) {
      rule = grammar.addRule();
      make(static_cast<Grammar::Rule>(rule));
    }
    return static_cast<Grammar::Rule>(rule);
  }
  /// The language of a pattern that this reader wrote itself.
  Grammar::Rule pattern(int64_t &rule, std::string_view text) {
    return once(rule, [&](Grammar::Rule to) {
      Sequence sequence;
      std::string ignored;
      appendPattern(grammar, sequence, text, /*isSearch=*/false,
                    /*inString=*/false, ignored);
      grammar.addAlternative(to, std::move(sequence));
    });
  }
  Grammar::Rule space() { return pattern(spaceRule, "( |\\n[ \\t]{0,20})?"); }
  Grammar::Rule integer() {
    return pattern(integerRule, "-?(0|[1-9][0-9]{0,15})");
  }
  Grammar::Rule number() {
    return pattern(numberRule, "-?(0|[1-9][0-9]{0,15})(\\.[0-9]{1,16})?"
                               "([eE][+-]?[0-9]{1,2})?");
  }
  Grammar::Rule character() {
    return pattern(characterRule,
                   "[^\"\\\\\\x00-\\x1F\\x7F]|\\\\([\"\\\\/bfnrt]|u([0-9a-"
                   "cefA-CEF][0-9a-fA-F]|[dD][0-7])[0-9a-fA-F]{2})");
  }
  Grammar::Rule anyString();
  Grammar::Rule anyValue();
  Grammar::Rule arrayOf(Grammar::Rule item);
  Grammar::Rule objectOf(Grammar::Rule value);

  bool addUnion(const JsonValue &schemas, const std::string &where,
                Grammar::Rule rule);
  bool addReference(const JsonValue &reference, const std::string &where,
                    Grammar::Rule rule);
  bool addType(const JsonValue &schema, std::string_view type,
               const std::string &where, Grammar::Rule rule);
  bool addAll(const JsonValue &schema, const std::string &where,
              Grammar::Rule rule);
  bool mergeParts(JsonValue &to, const JsonValue &schema,
                  const std::string &where, unsigned level);
  const JsonValue *findReference(const JsonValue &reference,
                                 const std::string &where);
  bool addNumber(const JsonValue &schema, bool isInteger,
                 const std::string &where, Grammar::Rule rule);
  bool addString(const JsonValue &schema, const std::string &where,
                 Grammar::Rule rule);
  bool addArray(const JsonValue &schema, const std::string &where,
                Grammar::Rule rule);
  bool addObject(const JsonValue &schema, const std::string &where,
                 Grammar::Rule rule);
  bool checkKeywords(const JsonValue &schema, const std::string &where);
  bool readCounts(const JsonValue &schema, const char *least, const char *most,
                  const std::string &where, int64_t &from, int64_t &to);

  const JsonValue *root;
  Grammar &grammar;
  std::string &problem;
  unsigned depth = 0;
  int64_t spaceRule = -1, integerRule = -1, numberRule = -1, characterRule = -1,
          stringRule = -1, valueRule = -1, objectRule = -1;
  /// Schemas that are referred to, and their rules.
  std::vector<std::pair<const JsonValue *, Grammar::Rule>> known;
  std::vector<std::unique_ptr<JsonValue>> merged; ///< of allOf
  size_t numMerged = 0;
};
} // namespace

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
  static constexpr std::string_view understood[] = {
      "type", "enum", "const", "properties", "required", "additionalProperties",
      "items", "prefixItems", "minItems", "maxItems", "minLength", "maxLength",
      "pattern", "format", "anyOf", "oneOf", "allOf", "$ref", "$defs",
      "definitions", "minimum", "maximum", "exclusiveMinimum",
      "exclusiveMaximum", "multipleOf",
      // Keys that restrict nothing.
      "title", "description", "default", "examples", "deprecated", "readOnly",
      "writeOnly", "$schema", "$id", "$comment", "$anchor", "contentEncoding",
      "contentMediaType", "nullable"};
  for (const std::string &key : schema.keys)
    if (std::find(std::begin(understood), std::end(understood), key) ==
        std::end(understood))
      return fail(where, "the keyword '" + key +
                             "' is not supported, and texts could be invalid "
                             "without it");
  return true;
}

bool SchemaReader::readSchema(const JsonValue &schema, const std::string &where,
                              Grammar::Rule &rule) {
  for (auto [each, its] : known)
    if (each == &schema) {
      rule = its;
      return true;
    }
  if (schema.isBool()) {
    rule = schema.boolean ? anyValue() : grammar.addRule();
    return true;
  }
  if (!schema.isObject())
    return fail(where,
                std::string("expected an object, found ") + schema.kindName());
  if (!checkKeywords(schema, where))
    return false;
  if (grammar.isTooLarge() || depth > mostDepth)
    return fail(where, "the schema is too large");
  ++depth;
  rule = grammar.addRule();
  known.push_back({&schema, rule});
  const JsonValue *type = schema.find("type");
  auto isBeside = [&](const char *keyword) {
    for (const char *other :
         {"properties", "items", "prefixItems", "pattern", "enum", "const",
          "anyOf", "oneOf", "allOf", "$ref"})
      if (std::string_view(other) != keyword && schema.find(other))
        return true;
    return false;
  };
  bool good = true;
  for (const char *keyword :
       {"allOf", "$ref", "const", "enum", "anyOf", "oneOf"}) {
    const JsonValue *value = schema.find(keyword);
    if (!value)
      continue;
    std::string_view name = keyword;
    std::string place = where + "/" + keyword;
    if (name != "allOf" && isBeside(keyword))
      return fail(place, "it stands beside another keyword that restricts, "
                         "which is not supported");
    if (name == "$ref") {
      good = addReference(*value, place, rule);
    } else if (name == "const") {
      std::string json;
      appendJson(json, *value);
      grammar.addAlternative(rule, text(json));
    } else if (name == "enum") {
      if (!value->isArray() || value->items.empty())
        return fail(place, "expected an array of values");
      for (const JsonValue &item : value->items) {
        std::string json;
        appendJson(json, item);
        grammar.addAlternative(rule, text(json));
      }
    } else if (name == "allOf") {
      good = addAll(schema, place, rule);
    } else {
      good = addUnion(*value, place, rule);
    }
    --depth;
    return good;
  }
  if (!type) {
    // A schema may restrict one kind of values and allow all others; who writes
    // members or items means that kind.
    std::string_view implied =
        schema.find("properties") || schema.find("required") ||
                schema.find("additionalProperties")
            ? "object"
        : schema.find("items") || schema.find("prefixItems") ? "array"
        : schema.find("pattern") || schema.find("minLength") ||
                schema.find("maxLength") || schema.find("format")
            ? "string"
        : schema.find("minimum") || schema.find("maximum") ||
                schema.find("exclusiveMinimum") ||
                schema.find("exclusiveMaximum") || schema.find("multipleOf")
            ? "number"
            : "";
    if (implied.empty())
      grammar.addAlternative(rule, {{true, anyValue()}});
    else
      good = addType(schema, implied, where, rule);
  } else if (type->isString()) {
    good = addType(schema, type->string, where, rule);
  } else if (type->isArray()) {
    for (const JsonValue &each : type->items)
      good =
          good && each.isString() && addType(schema, each.string, where, rule);
    if (!good && problem.empty())
      return fail(where + "/type", "expected names of types");
  } else {
    return fail(where + "/type", "expected a name of a type");
  }
  --depth;
  return good;
}

bool SchemaReader::addUnion(const JsonValue &schemas, const std::string &where,
                            Grammar::Rule rule) {
  if (!schemas.isArray() || schemas.items.empty())
    return fail(where, "expected an array of schemas");
  for (size_t i = 0; i < schemas.items.size(); ++i) {
    Grammar::Rule each;
    if (!readSchema(schemas.items[i], where + "/" + std::to_string(i), each))
      return false;
    grammar.addAlternative(rule, {{true, each}});
  }
  return true;
}

/// Adds the schemas of `allOf` to what a schema says itself.
bool SchemaReader::mergeParts(JsonValue &to, const JsonValue &schema,
                              const std::string &where, unsigned level) {
  if (level > mostDepth)
    return fail(where, "schemas refer to each other without end");
  if (!schema.isObject())
    return fail(where,
                std::string("expected an object, found ") + schema.kindName());
  if (!checkKeywords(schema, where))
    return false;
  JsonValue own = schema;
  const JsonValue *parts = schema.find("allOf");
  const JsonValue *reference = schema.find("$ref");
  for (const char *key : {"allOf", "$ref"}) {
    auto at = std::find(own.keys.begin(), own.keys.end(), key);
    if (at == own.keys.end())
      continue;
    own.items.erase(own.items.begin() + (at - own.keys.begin()));
    own.keys.erase(at);
  }
  numMerged += countValues(to) + countValues(own);
  if (numMerged > mostMerged)
    return fail(where, "the parts of all 'allOf' are too large as one");
  std::string keyword;
  if (!mergeSchema(to, own, keyword))
    return fail(where, "two schemas say differently what '" + keyword +
                           "' is, which no one schema can");
  if (reference) {
    const JsonValue *target = findReference(*reference, where + "/$ref");
    if (!target || !mergeParts(to, *target, reference->string, level + 1))
      return false;
  }
  if (parts && (!parts->isArray() || parts->items.empty()))
    return fail(where + "/allOf", "expected an array of schemas");
  for (size_t i = 0; parts && i < parts->items.size(); ++i)
    if (!mergeParts(to, parts->items[i], where + "/allOf/" + std::to_string(i),
                    level + 1))
      return false;
  return true;
}

bool SchemaReader::addAll(const JsonValue &schema, const std::string &where,
                          Grammar::Rule rule) {
  merged.emplace_back(new JsonValue());
  JsonValue &whole = *merged.back();
  whole.kind = JsonValue::Kind::Object;
  std::string own = where.substr(0, where.size() - std::strlen("/allOf"));
  Grammar::Rule target;
  if (!mergeParts(whole, schema, own, 0) || !readSchema(whole, where, target))
    return false;
  grammar.addAlternative(rule, {{true, target}});
  return true;
}

/// "#/$defs/name", with the escapes of JSON pointers. Null: there is none.
const JsonValue *SchemaReader::findReference(const JsonValue &reference,
                                             const std::string &where) {
  if (!reference.isString() || reference.string.substr(0, 1) != "#") {
    fail(where, "expected a place in this schema, as #/$defs/NAME");
    return nullptr;
  }
  const JsonValue *at = root;
  std::string_view rest = std::string_view(reference.string).substr(1);
  while (at && !rest.empty()) {
    if (rest[0] != '/') {
      fail(where, "'" + reference.string + "' is no JSON pointer");
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
    fail(where, "there is no '" + reference.string + "'");
  return at;
}

bool SchemaReader::addReference(const JsonValue &reference,
                                const std::string &where, Grammar::Rule rule) {
  const JsonValue *at = findReference(reference, where);
  Grammar::Rule target;
  if (!at || !readSchema(*at, reference.string.substr(1), target))
    return false;
  grammar.addAlternative(rule, {{true, target}});
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
  return to < 0 || from <= to ||
         fail(where, std::string(least) + " is more than " + most);
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
    return fail(where, "no number is within these bounds");
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
  if (!firsts.empty() && !items)
    hasMore = false;
  Grammar::Rule item = 0;
  if (hasMore && (items ? !readSchema(*items, where + "/items", item)
                        : (item = anyValue(), false)))
    return false;
  auto numFirst = static_cast<int64_t>(firsts.size());
  if (!hasMore && least > numFirst)
    return fail(where, "minItems asks for more items than there are schemas");
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
      return fail(where + "/required", "'" + name.string +
                                           "' is required, but there may be no "
                                           "such member");
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
  if (grammar.findLeftRecursion() < 0)
    return true;
  problem = "schema: a schema refers to itself without anything between";
  return false;
}

void buildObjectGrammar(Grammar &grammar) {
  std::string ignored;
  grammar.root = SchemaReader(nullptr, grammar, ignored).anyObject();
}

} // namespace attune::runtime
