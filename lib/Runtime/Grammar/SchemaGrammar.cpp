//===- SchemaGrammar.cpp - JSON schemas as grammars -----------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SchemaGrammar.h"

#include "GrammarProduct.h"
#include "SchemaFormats.h"
#include "SchemaKeywords.h"
#include "SchemaReader.h"

#include <algorithm>
#include <cmath>

namespace attune::runtime {

/// Values of a schema: what users write has some hundreds.
static constexpr size_t mostValues = 20000;

//===----------------------------------------------------------------------===//
// Values of any kind
//===----------------------------------------------------------------------===//

Grammar::Rule SchemaReader::anyString() {
  return once(stringRule, [&](Grammar::Rule rule) {
    Sequence sequence = text("\"");
    grammar.appendRule(sequence, characters());
    grammar.addAlternative(rule, append(sequence, text("\"")));
  });
}

/// Strings of all limits share their rules.
Grammar::Rule SchemaReader::charactersUpTo(int64_t most) {
  if (upTo.empty())
    upTo.push_back(makeRule({}));
  while (static_cast<int64_t>(upTo.size()) <= most) {
    Sequence more;
    grammar.appendRule(more, character());
    grammar.appendRule(more, upTo.back());
    upTo.push_back(makeRule({}));
    grammar.addAlternative(upTo.back(), std::move(more));
  }
  return upTo[static_cast<size_t>(most)];
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
  for (size_t i = 0; i < schema.keys.size(); ++i)
    if (useOfKeyword(schema, schema.keys[i], schema.items[i]) ==
        KeywordUse::Unknown)
      return fail(where, "the keyword '" + schema.keys[i] +
                             "' is not supported, and texts could be invalid "
                             "without it");
  if (hasTwoTuples(schema))
    return fail(where + "/items",
                "expected one schema, as 'prefixItems' stands beside");
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
    double number = count->real; // 1.0 is a whole number, too
    if (!count->isNumber() || number < 0 || number != std::floor(number))
      return fail(where + "/" + name, "expected a whole number from 0");
    if (value == &from && number > double(mostCount))
      return fail(where + "/" + name, "expected at most 10000");
    // A lower limit leaves fewer texts, all of them valid.
    *value = static_cast<int64_t>(std::min(number, double(mostCount)));
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
  if (!bounds.hasBounds && !bounds.hasDivisor) {
    grammar.addAlternative(rule, {{true, isInteger ? integer() : number()}});
    return true;
  }
  std::string pattern;
  if (bounds.hasBounds) {
    pattern = describeNumbers(bounds, isInteger);
    if (pattern.empty())
      return exclude(where, "no number is within these bounds");
  }
  std::vector<TextPart> parts = {{pattern, /*isString=*/false, where,
                                  bounds.hasDivisor ? &bounds : nullptr}};
  Sequence sequence;
  if (!appendRestricted(sequence, parts, 0, -1, where))
    return false;
  grammar.addAlternative(rule, std::move(sequence));
  return true;
}

bool SchemaReader::addString(const JsonValue &schema, const std::string &where,
                             Grammar::Rule rule) {
  int64_t least = 0, most = -1;
  if (!readCounts(schema, "minLength", "maxLength", where, least, most))
    return false;
  if (most >= 0 && least > most)
    return exclude(where, "minLength is more than maxLength");
  std::vector<TextPart> parts;
  if (const JsonValue *pattern = schema.find("pattern")) {
    std::string place = where + "/pattern";
    if (!pattern->isString())
      return fail(place, "expected a regular expression");
    parts.push_back({pattern->string, /*isString=*/true, place});
  }
  if (const JsonValue *format = schema.find("format")) {
    std::string place = where + "/format";
    if (!format->isString())
      return fail(place, "expected a name of a format");
    std::string pattern = patternOfFormat(format->string);
    if (pattern.empty())
      noteFormat(format->string, place);
    else
      parts.push_back({pattern, /*isString=*/true, place});
  }
  Sequence sequence = text("\"");
  if (!parts.empty()) {
    if (!appendRestricted(sequence, parts, least, most, where))
      return false;
  } else {
    // The rule of a long string is shared, but its beginning is not.
    for (int64_t i = 0; i < least && !grammar.isTooLarge(); ++i)
      grammar.appendRule(sequence, character());
    grammar.appendRule(sequence,
                       most < 0 ? characters() : charactersUpTo(most - least));
    if (grammar.isTooLarge())
      return fail(where, "the schema is too large");
  }
  grammar.addAlternative(rule, append(sequence, text("\"")));
  return true;
}

/// What has all parts and so many characters. Members that are restricted alike
/// share a rule.
bool SchemaReader::appendRestricted(Sequence &to,
                                    const std::vector<TextPart> &parts,
                                    int64_t least, int64_t most,
                                    const std::string &where) {
  std::string key = std::to_string(least) + "," + std::to_string(most);
  for (const TextPart &part : parts) {
    key += (part.isString ? "\ns" : "\nn") +
           std::to_string(part.pattern.size()) + ":" + part.pattern;
    if (part.multiples)
      key += std::to_string(part.multiples->divisor) + "," +
             std::to_string(part.multiples->decimals);
  }
  uint64_t hash = 0;
  for (char c : key)
    hash = HashIndex::mix(hash, static_cast<unsigned char>(c));
  uint32_t number =
      restrictedIndex.find(hash, restricted.size(), [&](uint32_t each) {
        return restricted[each].first == key;
      });
  if (number == restricted.size()) {
    restricted.emplace_back(std::move(key), grammar.addRule());
    if (!addParts(restricted.back().second, parts, least, most, where))
      return false;
  }
  grammar.appendRule(to, restricted[number].second);
  return true;
}

bool SchemaReader::addParts(Grammar::Rule rule,
                            const std::vector<TextPart> &parts, int64_t least,
                            int64_t most, const std::string &where) {
  // Elements of all parts, which are thrown away: as the grammar's own.
  static constexpr size_t mostOfParts = 4 * Grammar::mostElements;
  std::string why;
  if (parts[0].multiples && parts[0].pattern.empty()) {
    addMultiples(grammar, rule, *parts[0].multiples);
    return !grammar.isTooLarge() || fail(where, "the schema is too large");
  }
  if (parts.size() == 1 && !parts[0].multiples && least == 0 && most < 0) {
    Sequence sequence;
    if (!appendPattern(grammar, sequence, parts[0].pattern, parts[0].isString,
                       parts[0].isString, why))
      return fail(parts[0].where, why);
    grammar.addAlternative(rule, std::move(sequence));
    return true;
  }
  std::vector<Grammar> languages;
  auto isTooLarge = [&] {
    partsSize += languages.back().size();
    return languages.back().isTooLarge() || partsSize > mostOfParts;
  };
  for (const TextPart &part : parts) {
    Grammar &language = languages.emplace_back();
    Sequence sequence;
    if (!appendPattern(language, sequence, part.pattern, part.isString,
                       part.isString, why))
      return fail(part.where, why);
    language.root = language.addRule();
    language.addAlternative(language.root, std::move(sequence));
    if (isTooLarge())
      return fail(where, "the schema is too large");
    if (language.findLeftRecursion() >= 0)
      return fail(part.where,
                  "the regular expression repeats nothing without end");
    if (!part.multiples)
      continue;
    Grammar &numbers = languages.emplace_back();
    numbers.root = numbers.addRule();
    addMultiples(numbers, numbers.root, *part.multiples);
    if (isTooLarge())
      return fail(where, "the schema is too large");
  }
  // A lower limit of a long text leaves fewer texts, all of them valid.
  static constexpr int64_t brief = 64;
  ProductResult result =
      addProduct(grammar, rule, languages, least, most, budget);
  for (int attempt = 0; attempt < 4 && result == ProductResult::TooLarge &&
                        most > std::max(least, brief);
       ++attempt) {
    most = std::max({least, most / 4, brief});
    result = addProduct(grammar, rule, languages, least, most, budget);
  }
  if (result == ProductResult::NoText)
    return exclude(where, "no text is all that is asked for here");
  return result == ProductResult::Done ||
         fail(where, "the schema is too large");
}

/// A format that is not known says nothing of values.
void SchemaReader::noteFormat(const std::string &name,
                              const std::string &where) {
  static constexpr size_t mostBytes = 300;
  if (unchecked.size() > mostBytes)
    return;
  std::string shown, place;
  appendJsonString(shown, name.substr(0, 40));
  appendJsonString(place, where.substr(0, 80));
  unchecked += (unchecked.empty() ? "" : "; ") +
               ("the schema's format " + shown) + " at " + place +
               " is not known and restricts nothing";
}

bool SchemaReader::addArray(const JsonValue &schema, const std::string &where,
                            Grammar::Rule rule) {
  int64_t least = 0, most = -1;
  if (!readCounts(schema, "minItems", "maxItems", where, least, most))
    return false;
  if (most >= 0 && least > most)
    return exclude(where, "minItems is more than maxItems");
  std::vector<Grammar::Rule> firsts;
  TupleKeys keys = tupleKeys(schema);
  if (const JsonValue *prefix = schema.find(keys.firsts)) {
    std::string place = where + "/" + keys.firsts;
    if (!prefix->isArray())
      return fail(place, "expected an array of schemas");
    for (size_t i = 0; i < prefix->items.size(); ++i)
      if (!readSchema(prefix->items[i], place + "/" + std::to_string(i),
                      firsts.emplace_back()))
        return false;
  }
  const JsonValue *items = schema.find(keys.rest);
  bool hasMore = !(items && items->isBool() && !items->boolean);
  // After items that are named, others may come but need not.
  if (!firsts.empty() && !items && least <= static_cast<int64_t>(firsts.size()))
    hasMore = false;
  Grammar::Rule item = 0;
  if (hasMore && (items ? !readSchema(*items, where + "/" + keys.rest, item)
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
                        std::string &problem, std::string &note) {
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
  note = reader.notes();
  return true;
}

void buildObjectGrammar(Grammar &grammar) {
  std::string ignored;
  grammar.root = SchemaReader(nullptr, grammar, ignored).anyObject();
}

} // namespace attune::runtime
