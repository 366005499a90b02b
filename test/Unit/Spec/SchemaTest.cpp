//===- SchemaTest.cpp - The published schema is the parser's --------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Parsing.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

using namespace attune;
using namespace attune::test;
using Json = nlohmann::ordered_json;

//===----------------------------------------------------------------------===//
// As much of JSON Schema as the schema uses; another keyword fails the test
//===----------------------------------------------------------------------===//

namespace {
class Validator {
public:
  explicit Validator(const Json &root) : root(root) {}

  bool accepts(const Json &value, const Json &schema) const {
    for (const auto &[keyword, argument] : schema.items())
      if (!check(value, schema, keyword, argument))
        return false;
    return true;
  }
  bool accepts(const Json &value) const { return accepts(value, root); }

private:
  static bool isType(const Json &value, const std::string &type) {
    if (type == "integer")
      return value.is_number() &&
             value.get<double>() == std::floor(value.get<double>());
    return type == "object"    ? value.is_object()
           : type == "array"   ? value.is_array()
           : type == "string"  ? value.is_string()
           : type == "number"  ? value.is_number()
           : type == "boolean" ? value.is_boolean()
                               : false;
  }

  bool checkProperties(const Json &value, const Json &schema) const {
    for (const auto &[key, member] : value.items()) {
      if (schema.contains("properties") && schema["properties"].contains(key)) {
        if (!accepts(member, schema["properties"][key]))
          return false;
      } else if (schema.contains("additionalProperties")) {
        const Json &rest = schema["additionalProperties"];
        if (rest.is_boolean() ? !rest.get<bool>() : !accepts(member, rest))
          return false;
      }
    }
    return true;
  }

  bool check(const Json &value, const Json &schema, const std::string &keyword,
             const Json &argument) const {
    static const std::set<std::string> silent = {"$schema", "$id", "$defs",
                                                 "title", "description"};
    if (silent.count(keyword))
      return true;
    if (keyword == "type") {
      if (argument.is_string())
        return isType(value, argument);
      for (const Json &type : argument)
        if (isType(value, type))
          return true;
      return false;
    }
    if (keyword == "properties" || keyword == "additionalProperties")
      return !value.is_object() || checkProperties(value, schema);
    if (keyword == "required") {
      for (const Json &key : argument)
        if (value.is_object() && !value.contains(key.get<std::string>()))
          return false;
      return true;
    }
    if (keyword == "$ref") {
      std::string name = argument.get<std::string>().substr(8);
      return accepts(value, root["$defs"][name]);
    }
    if (keyword == "anyOf" || keyword == "oneOf") {
      int count = 0;
      for (const Json &part : argument)
        count += accepts(value, part);
      return keyword == "anyOf" ? count > 0 : count == 1;
    }
    if (keyword == "enum") {
      for (const Json &word : argument)
        if (word == value)
          return true;
      return false;
    }
    if (keyword == "items") {
      for (const Json &element : value)
        if (value.is_array() && !accepts(element, argument))
          return false;
      return true;
    }
    if (keyword == "minItems")
      return !value.is_array() || value.size() >= argument.get<size_t>();
    if (keyword == "maxItems")
      return !value.is_array() || value.size() <= argument.get<size_t>();
    if (keyword == "minimum")
      return !value.is_number() ||
             value.get<double>() >= argument.get<double>();
    if (keyword == "maximum")
      return !value.is_number() ||
             value.get<double>() <= argument.get<double>();
    if (keyword == "exclusiveMinimum")
      return !value.is_number() || value.get<double>() > argument.get<double>();
    if (keyword == "pattern") {
      static std::map<std::string, std::regex> compiled;
      auto [found, isNew] = compiled.try_emplace(argument);
      if (isNew)
        found->second = std::regex(found->first);
      return !value.is_string() ||
             std::regex_search(value.get_ref<const std::string &>(),
                               found->second);
    }
    ADD_FAILURE() << "the validator of this test does not know '" << keyword
                  << "'";
    return false;
  }

  const Json &root;
};
} // namespace

static const Json &schema() {
  static const Json result = Json::parse(spec::jsonSchema(), nullptr, false);
  return result;
}

/// What the form check says, as opposed to checks of meaning, which a schema
/// cannot express.
static bool isAboutForm(const Diagnostic &diagnostic) {
  const std::string &text = diagnostic.message;
  for (const char *part : {": unknown key", ", got ", ": unknown value",
                           ": is a second ", ": has no kind", ": has no way",
                           ": out of range: ", " elements, expected 2"})
    if (text.find(part) != std::string::npos &&
        text.find(": input '") == std::string::npos &&
        text.find("expected an operator") == std::string::npos &&
        text.find("number or a dimension") == std::string::npos)
      return true;
  return false;
}

static void expectAgreement(const Json &document) {
  bool bySchema = Validator(schema()).accepts(document);
  Parsed parsed = parseText(document.dump());
  if (parsed.model)
    EXPECT_TRUE(bySchema) << "the parser takes what the schema refuses: "
                          << document.dump(1);
  for (const Diagnostic &diagnostic : parsed.diagnostics)
    if (isAboutForm(diagnostic))
      EXPECT_FALSE(bySchema)
          << "the schema takes what the parser refuses: " << diagnostic.message;
}

//===----------------------------------------------------------------------===//
// Tests
//===----------------------------------------------------------------------===//

TEST(Schema, PublishedFileIsTheParsersOwn) {
  std::string path = ATTUNE_SPEC_DIR "/attune-spec-v1.schema.json";
  // ATTUNE_UPDATE=1 in the environment writes the file anew.
  if (std::getenv("ATTUNE_UPDATE"))
    std::ofstream(path) << spec::jsonSchema();
  EXPECT_EQ(readText(path), spec::jsonSchema());
}

TEST(Schema, IsJson) { EXPECT_FALSE(schema().is_discarded()); }

TEST(Schema, TakesTheExamples) {
  for (const std::string &path : exampleFiles()) {
    Json document = Json::parse(readText(path), nullptr, false);
    EXPECT_TRUE(Validator(schema()).accepts(document)) << path;
    EXPECT_EQ(parseText(document.dump()).text(), "") << path;
  }
}

static void collectKeys(const Json &value, std::set<std::string> &keys) {
  if (value.is_object())
    for (const auto &item : value.items())
      keys.insert(item.key());
  for (const Json &part : value)
    if (value.is_structured())
      collectKeys(part, keys);
}

TEST(Schema, EveryKeyIsTested) {
  Json document = Json::parse(everyKey(), nullptr, false);
  ASSERT_FALSE(document.is_discarded());
  std::set<std::string> keys;
  collectKeys(document, keys);
  // A sound is frames or samples, or codes that are written or played, and an
  // image is made of noise, each with keys of its own.
  for (const char *more :
       {"every-key-of-waves.json", "every-key-of-codes.json",
        "every-key-of-playback.json", "every-key-of-noise.json"}) {
    std::string sounds =
        readText(std::string(ATTUNE_SPEC_DIR "/../../test/Unit/Spec/") + more);
    EXPECT_EQ(parseText(sounds).text(), "");
    collectKeys(Json::parse(sounds, nullptr, false), keys);
  }
  for (const auto &[name, type] : schema()["$defs"].items())
    for (const auto &property : type["properties"].items())
      EXPECT_TRUE(keys.count(property.key())) << name << "/" << property.key();
  // "layers" at the top is the other way of giving "streams".
  for (const auto &property : schema()["properties"].items())
    EXPECT_TRUE(keys.count(property.key())) << property.key();
}

/// Puts every kind of value in every place, takes every key away, and adds an
/// unknown one everywhere: parser and schema must agree about the form. A part
/// is changed in a small description that has it, as each change is parsed.
namespace {
class Mutator {
public:
  explicit Mutator(Json document) : document(std::move(document)) {}
  void run() { mutate(document, {}); }

private:
  using Parts = std::set<const Json *>;

  void mutate(Json &place, const Parts &left);
  std::vector<const Json *> parts() const;
  Parts leftBeside(const Json &place);
  void leaveOut(Parts &left, const Json *const *begin, const Json *const *end);

  Json document;
  /// What the last part needed: the next one often needs the same.
  Parts needed;
};
} // namespace

/// What a model may have more or less of: its inputs, streams, layers and
/// outputs, and the members beside them.
std::vector<const Json *> Mutator::parts() const {
  std::vector<const Json *> result;
  auto addAll = [&](const Json &container) {
    for (const Json &part : container)
      result.push_back(&part);
  };
  for (const auto &[key, member] : document.items()) {
    if (!member.is_object())
      result.push_back(&member);
    else
      addAll(member);
    if (key == "streams")
      for (const Json &stream : member)
        if (stream.contains("layers"))
          addAll(stream["layers"]);
  }
  return result;
}

static Json without(const Json &value, const std::set<const Json *> &left) {
  if (!value.is_structured())
    return value;
  Json result(value.type());
  for (const auto &item : value.items()) {
    if (left.count(&item.value()))
      continue;
    if (value.is_array())
      result.push_back(without(item.value(), left));
    else
      result.emplace(item.key(), without(item.value(), left));
  }
  return result;
}

static bool holds(const Json &value, const Json &place) {
  if (&value == &place)
    return true;
  if (value.is_structured())
    for (const Json &part : value)
      if (holds(part, place))
        return true;
  return false;
}

/// Adds to `left` as many parts from `begin` to `end` as a valid description
/// can do without.
void Mutator::leaveOut(Parts &left, const Json *const *begin,
                       const Json *const *end) {
  if (begin == end)
    return;
  Parts more = left;
  more.insert(begin, end);
  if (parseText(without(document, more).dump()).model) {
    left = std::move(more);
    return;
  }
  if (end - begin == 1) {
    needed.insert(*begin);
    return;
  }
  const Json *const *middle = begin + (end - begin) / 2;
  // From the end: what comes later reads what comes before.
  leaveOut(left, middle, end);
  leaveOut(left, begin, middle);
}

/// What a description that has the whole of `place` can do without.
Mutator::Parts Mutator::leftBeside(const Json &place) {
  std::vector<const Json *> likely, unlikely;
  for (const Json *part : parts())
    if (!holds(*part, place) && !holds(place, *part))
      (needed.count(part) ? unlikely : likely).push_back(part);
  needed.clear();
  Parts left;
  for (const auto &others : {likely, unlikely})
    leaveOut(left, others.data(), others.data() + others.size());
  return left;
}

void Mutator::mutate(Json &place, const Parts &left) {
  static const Json values[] = {
      nullptr, true, 0, -1, 2.5, "input", "?!", Json::array(), Json::object()};
  auto expectAgreementHere = [&] {
    expectAgreement(left.empty() ? document : without(document, left));
  };
  Json original = place;
  for (const Json &value : values) {
    place = value;
    expectAgreementHere();
  }
  place = original;
  if (place.is_object()) {
    place["no such key"] = 1;
    expectAgreementHere();
    place = original;
    for (const auto &item : original.items()) {
      place.erase(item.key());
      expectAgreementHere();
      place = original;
    }
  }
  if (!place.is_structured())
    return;
  for (Json &part : place) {
    std::vector<const Json *> all = parts();
    bool isPart = std::find(all.begin(), all.end(), &part) != all.end();
    mutate(part, isPart ? leftBeside(part) : left);
  }
}

TEST(Schema, AgreesWithTheParserOnEveryMutation) {
  Json document = Json::parse(everyKey(), nullptr, false);
  ASSERT_FALSE(document.is_discarded());
  expectAgreement(document);
  Mutator(std::move(document)).run();
}
