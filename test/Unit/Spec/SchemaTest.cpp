//===- SchemaTest.cpp - The published schema is the parser's --------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Parsing.h"

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
/// unknown one everywhere: parser and schema must agree about the form.
static void mutate(Json &document, Json &place) {
  static const Json values[] = {
      nullptr, true, 0, -1, 2.5, "input", "?!", Json::array(), Json::object()};
  Json original = place;
  for (const Json &value : values) {
    place = value;
    expectAgreement(document);
  }
  place = original;
  if (place.is_object()) {
    place["no such key"] = 1;
    expectAgreement(document);
    place = original;
    for (const auto &item : original.items()) {
      place.erase(item.key());
      expectAgreement(document);
      place = original;
    }
  }
  if (place.is_structured())
    for (Json &part : place)
      mutate(document, part);
}

TEST(Schema, AgreesWithTheParserOnEveryMutation) {
  Json document = Json::parse(everyKey(), nullptr, false);
  ASSERT_FALSE(document.is_discarded());
  expectAgreement(document);
  mutate(document, document);
}
