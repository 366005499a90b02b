//===- GrammarTest.cpp - Texts of a given form ----------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Grammar/GrammarAutomaton.h"
#include "Grammar/GrammarText.h"
#include "Grammar/Pattern.h"
#include "Grammar/SchemaGrammar.h"
#include "attune/Runtime/Constraint.h"
#include "attune/Runtime/Utf8.h"

#include "gtest/gtest.h"

#include <chrono>
#include <cstdio>
#include <random>

using namespace attune::runtime;

namespace {

class GrammarTest : public testing::Test {
protected:
  static void SetUpTestSuite() {
    std::string json;
    FILE *in =
        std::fopen(ATTUNE_EXAMPLES_DIR "/storyteller/tokenizer.json", "rb");
    char buffer[4096];
    while (size_t n = std::fread(buffer, 1, sizeof(buffer), in))
      json.append(buffer, n);
    std::fclose(in);
    Error error;
    tokenizer = Tokenizer::create(json, error).release();
    factory = new ConstraintFactory(*tokenizer);
  }
  static void TearDownTestSuite() {
    delete factory;
    delete tokenizer;
  }

  std::shared_ptr<GrammarAutomaton> make(TextForm::Kind kind,
                                         const std::string &source) {
    Error error;
    auto automaton = factory->make({kind, source}, error);
    EXPECT_TRUE(automaton) << source << ": " << error.message;
    return automaton;
  }
  std::string problem(TextForm::Kind kind, const std::string &source) {
    Error error;
    EXPECT_FALSE(factory->make({kind, source}, error)) << source;
    return error.message;
  }
  /// The texts that a form takes whole, and those it does not.
  void check(TextForm::Kind kind, const std::string &source,
             std::vector<std::string> good, std::vector<std::string> bad) {
    auto automaton = make(kind, source);
    ASSERT_TRUE(automaton);
    for (const std::string &text : good)
      EXPECT_TRUE(takes(*automaton, text)) << source << ": " << text;
    for (const std::string &text : bad)
      EXPECT_FALSE(takes(*automaton, text)) << source << ": " << text;
  }
  static bool takes(GrammarAutomaton &automaton, const std::string &text) {
    auto state = automaton.next(automaton.start(), text);
    return state != GrammarAutomaton::dead && automaton.isComplete(state);
  }

  static Tokenizer *tokenizer;
  static ConstraintFactory *factory;
};
Tokenizer *GrammarTest::tokenizer;
ConstraintFactory *GrammarTest::factory;

constexpr auto Schema = TextForm::Kind::JsonSchema;
constexpr auto Pattern = TextForm::Kind::Pattern;
constexpr auto Rules = TextForm::Kind::Grammar;

TEST_F(GrammarTest, RangesOfCodePoints) {
  // Every character, and its neighbours, of ranges that begin and end anywhere.
  std::mt19937 random(1);
  const uint32_t edges[] = {0x7F,   0x80,   0x7FF,   0x800,   0xD7FF,
                            0xE000, 0xFFFF, 0x10000, 0x3FFFF, 0x10FFFF};
  for (int round = 0; round < 60; ++round) {
    uint32_t a = edges[random() % 10], b = edges[random() % 10];
    if (round % 2) {
      a = random() % 0x110000;
      b = std::min<uint32_t>(0x10FFFF, a + random() % 70000);
    }
    if (a > b)
      std::swap(a, b);
    Grammar grammar;
    Grammar::Sequence sequence;
    grammar.appendRanges(sequence, {{a, b}});
    grammar.root = grammar.addRule();
    grammar.addAlternative(grammar.root, sequence);
    GrammarAutomaton automaton(grammar,
                               std::make_shared<TokenTexts>(*tokenizer));
    auto test = [&](uint32_t code) {
      if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
        return;
      std::string text;
      appendUtf8(text, code);
      EXPECT_EQ(takes(automaton, text), code >= a && code <= b)
          << a << " " << b << " " << code;
    };
    for (uint32_t near : {a, b})
      for (int64_t d = -2; d <= 2; ++d)
        test(static_cast<uint32_t>(near + d));
    for (uint32_t edge : edges)
      test(edge);
    for (int i = 0; i < 200; ++i)
      test(random() % 0x110000);
  }
}

TEST_F(GrammarTest, Patterns) {
  check(Pattern, "a|b*c", {"a", "c", "bbc"}, {"", "b", "ac", "bca"});
  check(Pattern, "^[A-Z][a-z]{2,3}$", {"Abc", "Abcd"}, {"Ab", "Abcde", "abc"});
  check(Pattern, "(?:ab)+c?", {"ab", "ababc"}, {"", "abcab"});
  check(Pattern, "\\d{3}-\\w\\s\\.", {"123-a .", "000-_\t."},
        {"12-a .", "123-a x"});
  check(Pattern, "[^ab\\]é]", {"c", "ü", "😀"}, {"a", "]", "é", "cc"});
  EXPECT_EQ(problem(Pattern, "a[]"), "no text has the form that was asked for");
  check(Pattern, "a|b[]", {"a"}, {"b"});
  EXPECT_EQ(make(Pattern, "a|b[]")->next(1, "b"), GrammarAutomaton::dead);
  check(Pattern, "x{0}y{2,}", {"yy", "yyyy"}, {"y", "xyy"});
  check(Pattern, "\\u00e9\\x41\\$", {"éA$"}, {"eA$"});
  check(Pattern, "", {""}, {"a"});
  for (const char *wrong :
       {"(", ")", "[a", "*", "a{2,1}", "a{", "(?=a)", "\\1", "\\b", "a^b",
        "a$b", "[b-a]", "\\", "(?<n>a)", "a++", "\\u12", "a{999999}"})
    EXPECT_NE(problem(Pattern, wrong), "") << wrong;
  EXPECT_EQ(problem(Pattern, "ab(?=c)"),
            "the regular expression is wrong: of groups with a '?', only "
            "(?:...) is supported, at byte 3");
}

TEST_F(GrammarTest, Rules) {
  check(Rules,
        "# numbers\nroot ::= sum\nsum ::= term (\" + \" term)*\n"
        "term ::= [0-9]+ |\n  \"(\" sum \")\"\n",
        {"1", "1 + 23", "((1) + 2)"}, {"", "1+2", "(1", "1 + "});
  check(Rules,
        "root ::= \"a\\n\\x41\\\"\" .? thing{1,2}\nthing ::= \"b\"\n  \"c\"",
        {"a\nA\"bc", "a\nA\"xbcbc"}, {"a\nA\"", "a\nA\"bcbcbc"});
  EXPECT_EQ(problem(Rules, "root ::= a\nb ::= \"x\""),
            "the grammar is wrong: line 1: there is no rule 'a'");
  EXPECT_EQ(problem(Rules, "root ::= \"x\n"),
            "the grammar is wrong: line 1: a text does not end");
  EXPECT_EQ(problem(Rules, "root ::= root \"x\" | \"y\""),
            "the grammar is wrong: line 1: the rule 'root' begins with itself; "
            "write repetitions with * or +");
  for (const char *wrong :
       {"", "x", "root = a", "start ::= \"a\"", "root ::= (\"a\"",
        "root ::= \"a\" )", "root ::= [a", "root ::= \"a\"{2,1}",
        "root ::= \"\\q\"", "root ::= \"a\"\nroot ::= \"b\"",
        "root ::= a\na ::= b \"x\"\nb ::= a?"})
    EXPECT_NE(problem(Rules, wrong), "") << wrong;
}

TEST_F(GrammarTest, Schemas) {
  check(Schema, "{\"type\":\"integer\"}", {"0", "-12"}, {"01", "1.5", "", "-"});
  check(Schema, "{\"type\":[\"number\",\"null\"]}", {"1.5e-3", "null"},
        {"1.", "nul"});
  check(Schema, "{\"type\":\"string\",\"minLength\":1,\"maxLength\":2}",
        {"\"a\"", "\"é\\n\"", "\"\\u00e9x\""},
        {"\"\"", "\"abc\"", "\"\n\"", "\"\\x\"", "\"\\ud800\""});
  check(Schema, "{\"enum\":[\"red\",2,{\"a\":[true]}]}",
        {"\"red\"", "2", "{\"a\":[true]}"}, {"\"re\"", "3"});
  check(Schema, "{\"const\":null}", {"null"}, {"0"});
  check(Schema, "{\"anyOf\":[{\"type\":\"boolean\"},{\"const\":1}]}",
        {"true", "1"}, {"2"});
  check(Schema, "{\"type\":\"string\",\"pattern\":\"^[a-c\\\"]+$\"}",
        {"\"ab\"", "\"a\\\"\""}, {"\"abd\"", "\"\"\"", "\"\""});
  check(Schema, "{\"type\":\"string\",\"pattern\":\"b\"}", {"\"abc\"", "\"b\""},
        {"\"ac\""});
  check(Schema, "{\"type\":\"string\",\"format\":\"date\"}", {"\"2024-02-28\""},
        {"\"2024-13-01\"", "\"x\""});
  EXPECT_EQ(problem(Schema, "{\"type\":\"object\",\"properties\":{\"a\":{"
                            "\"type\":\"array\",\"uniqueItems\":true}}}"),
            "schema /properties/a: the keyword 'uniqueItems' is not supported, "
            "and texts could be invalid without it");
  for (const char *wrong :
       {"[]",
        "1",
        "{\"type\":\"text\"}",
        "{\"type\":5}",
        "{\"enum\":[]}",
        "{\"anyOf\":5}",
        "{\"$ref\":\"#/x\"}",
        "{\"$ref\":\"other\"}",
        "{\"$ref\":\"#\"}",
        "{\"properties\":[]}",
        "{\"type\":\"object\","
        "\"required\":[\"a\"],\"additionalProperties\":false}",
        "{\"type\":\"string\",\"minLength\":-1}",
        "{\"type\":\"string\",\"minLength\":3,\"maxLength\":2}",
        "{\"type\":\"string\",\"minLength\":1.5}",
        "{\"type\":\"string\",\"minLength\":10001}",
        "{\"pattern\":\"(\"}",
        "{\"pattern\":\"^(a*)*b$\",\"format\":5}",
        "{\"not\":{}}",
        "{\"enum\":[1],\"const\":2}",
        "{"})
    EXPECT_NE(problem(Schema, wrong), "") << wrong;
}

/// Formats by examples of their RFCs and by what these rule out.
TEST_F(GrammarTest, Formats) {
  auto test = [&](const std::string &format, std::vector<std::string> good,
                  std::vector<std::string> bad) {
    for (std::vector<std::string> *texts : {&good, &bad})
      for (std::string &text : *texts)
        text = "\"" + text + "\"";
    check(Schema, "{\"type\":\"string\",\"format\":\"" + format + "\"}", good,
          bad);
  };
  test("date", {"2024-02-29", "2000-02-29", "2023-01-31", "2023-04-30"},
       {"2023-02-29", "1900-02-29", "2023-04-31", "2023-13-01", "2023-1-1"});
  test("date-time", {"2024-02-29T10:20:30Z", "1990-12-31T23:59:59.5+01:00"},
       {"2023-02-29T10:20:30Z", "2024-02-29T24:00:00Z", "2024-02-29"});
  test("duration", {"P1D", "PT5M", "P1Y2M3DT4H5M6S", "P2W", "P1DT2H"},
       {"", "P", "PT", "P1", "P1S", "PT1D", "P1W2D", "P1YT", "P1Y3D"});
  test("ipv6",
       {"::", "::1", "1::", "1:2:3:4:5:6:7:8", "fe80::1:2", "2001:DB8::8:800"},
       {"1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", ":::", "1::2::3",
        "12345::", "g::", ":1", "1:2:3:4::5:6:7:8"});
  test("hostname", {"a", "example.com", "xn-a.b", "3com.example"},
       {"", "-a", "a-", "a..b", "a.b.", "1.2.3.4", "a_b", "ab--c",
        std::string(64, 'a')});
  test("email", {"a.b@c.de", "a+b_c@x.y.zz"},
       {"a@", "@b.c", "a@b", "a..b@c.de", ".a@b.cd", "a@b@c.de"});
  test("uri",
       {"https://example.com", "http://a.b:80/x//y?q=1/2#f", "mailto:a@b.c",
        "urn:isbn:12", "ftp://x/%20"},
       {"", "example.com", "http://", "http://a b", "http://x/%2", "://a"});
  test("json-pointer", {"", "/a/b~0", "/\\\""}, {"a", "/~2"});
  // Others restrict nothing, which is told.
  auto automaton = make(Schema, "{\"type\":\"string\",\"format\":\"color\"}");
  EXPECT_TRUE(takes(*automaton, "\"any\""));
  EXPECT_EQ(automaton->note, "the schema's format \"color\" at \"/format\" is "
                             "not known and restricts nothing");
}

TEST_F(GrammarTest, SeveralKeywordsOfStrings) {
  check(Schema,
        "{\"type\":\"string\",\"pattern\":\"^[a-z]+$\",\"minLength\":2,"
        "\"maxLength\":8}",
        {"\"ab\"", "\"abcdefgh\""}, {"\"a\"", "\"abcdefghi\"", "\"aB\""});
  // Characters are counted, whatever their bytes.
  check(Schema,
        "{\"pattern\":\"^[aé\\\"\\\\\\\\]*$\",\"minLength\":2,\"maxLength\":3}",
        {"\"é\\\"\"", "\"ééé\"", "\"\\\\\\\\a\""},
        {"\"é\"", "\"\\\"\"", "\"éééé\"", "\"\\\\\\\\\\\\\\\\\""});
  check(Schema, "{\"pattern\":\"b\",\"minLength\":3}", {"\"abc\"", "\"bbbb\""},
        {"\"ab\"", "\"aaa\""});
  check(Schema, "{\"format\":\"date\",\"maxLength\":10}", {"\"2024-02-28\""},
        {"\"2024-02-2\""});
  check(Schema, "{\"format\":\"date\",\"pattern\":\"^2\"}", {"\"2024-02-28\""},
        {"\"1024-02-28\"", "\"2\""});
  check(Schema, "{\"format\":\"uri\",\"minLength\":1,\"maxLength\":65536}",
        {"\"http://a\""}, {"\"\""});
  check(Schema, "{\"format\":\"email\",\"maxLength\":255}", {"\"a@b.cd\""},
        {"\"a@b\""});
  EXPECT_EQ(problem(Schema, "{\"pattern\":\"^[a-z]{5}$\",\"maxLength\":3}"),
            "schema: no text is all that is asked for here");
  // Where they have no text in common, the member is never begun.
  auto automaton =
      make(Schema, "{\"properties\":{\"a\":{\"pattern\":\"^b$\",\"maxLength\":"
                   "0},\"c\":{}}}");
  EXPECT_TRUE(takes(*automaton, "{\"c\":1}"));
  EXPECT_EQ(automaton->next(automaton->start(), "{\"a"),
            GrammarAutomaton::dead);
  // Large limits become those that there is room for.
  std::string quote = "\"";
  check(Schema, "{\"type\":\"string\",\"maxLength\":65536}",
        {quote + std::string(10000, 'a') + quote},
        {quote + std::string(10001, 'a') + quote});
  check(Schema, "{\"type\":\"array\",\"maxItems\":1e6,\"items\":{\"const\":1}}",
        {"[]", "[1,1,1]"}, {"[1,]"});
  check(Schema, "{\"type\":\"string\",\"minLength\":1.0}", {"\"a\""}, {"\"\""});
}

TEST_F(GrammarTest, KeywordsThatSayNothing) {
  for (const char *keyword :
       {"\"uniqueItems\":false", "\"minProperties\":0", "\"not\":false",
        "\"patternProperties\":{}", "\"dependentRequired\":{}",
        "\"unevaluatedProperties\":true", "\"additionalItems\":false",
        "\"propertyNames\":{\"type\":\"string\"}", "\"if\":{\"const\":1}",
        "\"contains\":{\"const\":1},\"minContains\":0", "\"x-order\":1",
        "\"example\":5", "\"allOf\":[{\"not\":false}]"})
    check(Schema, std::string("{\"type\":\"null\",") + keyword + "}", {"null"},
          {"1"});
  for (const char *keyword :
       {"\"uniqueItems\":true", "\"minProperties\":1", "\"not\":{}",
        "\"patternProperties\":{\"a\":{}}", "\"unevaluatedItems\":false",
        "\"propertyNames\":{\"maxLength\":1}", "\"contains\":{}",
        "\"if\":{},\"then\":{}"})
    EXPECT_NE(problem(Schema, std::string("{") + keyword + "}"), "") << keyword;
  EXPECT_EQ(problem(Schema, "{\"enum\":[]}"),
            "schema /enum: expected a value at least: an empty list allows "
            "none");
  // Tuples as drafts before 2020-12 wrote them.
  check(Schema,
        "{\"type\":\"array\",\"items\":[{\"const\":1},{\"const\":2}],"
        "\"additionalItems\":false}",
        {"[1]", "[1,2]"}, {"[2]", "[1,2,3]"});
  check(Schema,
        "{\"type\":\"array\",\"items\":[{\"const\":1}],\"additionalItems\":"
        "{\"const\":0}}",
        {"[1]", "[1,0,0]"}, {"[0]", "[1,1]"});
  check(Schema,
        "{\"allOf\":[{\"items\":[{\"type\":\"integer\"}],"
        "\"additionalItems\":{\"type\":[\"integer\",\"null\"]}},"
        "{\"prefixItems\":[{\"minimum\":3},{\"type\":\"null\"}]}]}",
        {"[3]", "[4,null]", "[4,null,5]"}, {"[2]", "[3,4]", "[3,null,\"a\"]"});
  check(Schema,
        "{\"enum\":[[1],[1,\"a\"],[\"a\"]],\"items\":[{\"const\":1}],"
        "\"additionalItems\":{\"type\":\"integer\"}}",
        {"[1]"}, {"[1,\"a\"]", "[\"a\"]"});
  EXPECT_EQ(problem(Schema, "{\"items\":[{}],\"prefixItems\":[{}]}"),
            "schema /items: expected one schema, as 'prefixItems' stands "
            "beside");
  // What says nothing may stand beside unions, references and values.
  check(Schema,
        "{\"$ref\":\"#/$defs/n\",\"uniqueItems\":false,\"$defs\":{\"n\":"
        "{\"not\":false,\"oneOf\":[{\"const\":1,\"minProperties\":0},"
        "{\"enum\":[2],\"x-names\":[\"two\"]}]}}}",
        {"1", "2"}, {"3"});
  check(Schema, "{\"enum\":[\"a\"],\"format\":\"color\",\"not\":false}",
        {"\"a\""}, {"\"b\""});
}

/// Every whole number around the bounds, of every length.
TEST_F(GrammarTest, BoundsOfIntegers) {
  std::mt19937 random(1);
  for (int round = 0; round < 80; ++round) {
    int64_t size = int64_t(std::pow(10, round % 5));
    auto any = [&] { return int64_t(random()) % (2 * size + 1) - size; };
    int64_t low = any(), high = any();
    if (low > high)
      std::swap(low, high);
    bool isAbove = round % 3 == 1 && low < high, isBelow = false;
    std::string schema = "{\"type\":\"integer\",\"";
    schema += isAbove ? "exclusiveMinimum\":" : "minimum\":";
    schema += std::to_string(low);
    bool hasHigh = round % 4 != 3;
    if (hasHigh) {
      isBelow = round % 5 == 2 && low + isAbove < high;
      schema += isBelow ? ",\"exclusiveMaximum\":" : ",\"maximum\":";
      schema += std::to_string(high);
    }
    auto automaton = make(Schema, schema + "}");
    ASSERT_TRUE(automaton);
    auto test = [&](int64_t number) {
      bool isIn =
          number >= low + isAbove && (!hasHigh || number <= high - isBelow);
      EXPECT_EQ(takes(*automaton, std::to_string(number)), isIn)
          << schema << ": " << number;
    };
    for (int64_t near : {low, high, int64_t(0), 10 * size, -10 * size})
      for (int64_t d = -12; d <= 12; ++d)
        test(near + d);
    for (int i = 0; i < 100; ++i)
      test(any());
    EXPECT_FALSE(takes(*automaton, std::to_string(high) + ".0"));
  }
}

TEST_F(GrammarTest, BoundsOfNumbers) {
  std::mt19937 random(2);
  for (int round = 0; round < 60; ++round) {
    // Whole numbers, then some with digits behind the point.
    int64_t unit = round < 30 ? 100 : round % 2 ? 10 : 5;
    auto any = [&] { return (int64_t(random()) % 41 - 20) * unit; };
    int64_t low = any(), high = any();
    if (low > high)
      std::swap(low, high);
    bool isAbove = round % 2 && low < high, isBelow = round % 3 && low < high;
    auto decimal = [](int64_t hundredths) {
      char text[32];
      std::snprintf(text, sizeof(text), "%.2f", double(hundredths) / 100);
      return std::string(text);
    };
    std::string schema = std::string("{\"") +
                         (isAbove ? "exclusiveMinimum" : "minimum") +
                         "\":" + decimal(low) + ",\"" +
                         (isBelow ? "exclusiveMaximum" : "maximum") +
                         "\":" + decimal(high) + ",\"type\":\"number\"}";
    auto automaton = make(Schema, schema);
    ASSERT_TRUE(automaton);
    for (int64_t hundredths = -2200; hundredths <= 2200; hundredths += 5) {
      std::string text = decimal(hundredths);
      bool isIn = (isAbove ? hundredths > low : hundredths >= low) &&
                  (isBelow ? hundredths < high : hundredths <= high);
      EXPECT_EQ(takes(*automaton, text), isIn) << schema << ": " << text;
      if (hundredths % 100 == 0)
        EXPECT_EQ(takes(*automaton, std::to_string(hundredths / 100)), isIn)
            << schema << ": " << hundredths / 100;
    }
  }
}

TEST_F(GrammarTest, Multiples) {
  for (int64_t divisor : {2, 3, 7, 10, 25, 64, 100}) {
    auto automaton = make(Schema, "{\"type\":\"integer\",\"multipleOf\":" +
                                      std::to_string(divisor) + "}");
    ASSERT_TRUE(automaton);
    for (int64_t number = -2100; number <= 2100; ++number)
      EXPECT_EQ(takes(*automaton, std::to_string(number)),
                number % divisor == 0)
          << divisor << " " << number;
    EXPECT_FALSE(takes(*automaton, "00"));
    EXPECT_TRUE(takes(*automaton, std::to_string(divisor * 1000000007)));
  }
  check(Schema, "{\"minimum\":1.5,\"type\":\"integer\",\"maximum\":3.5}",
        {"2", "3"}, {"1", "4"});
  check(Schema, "{\"type\":\"integer\",\"multipleOf\":3,\"minimum\":-4}",
        {"-3", "0", "9", "3000"}, {"-6", "1", "10"});
  check(Schema, "{\"type\":\"integer\",\"multipleOf\":1.5}", {"3", "-6"},
        {"1", "2", "1.5"});
  check(Schema, "{\"type\":\"number\",\"multipleOf\":0.01}",
        {"1", "0.5", "-12.25", "0"}, {"0.001", "1."});
  check(Schema, "{\"type\":\"number\",\"multipleOf\":0.25,\"maximum\":1.5}",
        {"1.5", "1.50", "0.25", "-7.75", "1"}, {"0.3", "1.75", "0.2"});
  EXPECT_EQ(problem(Schema, "{\"type\":\"number\",\"multipleOf\":2.57}"),
            "schema /multipleOf: expected a number above 0 whose digits are at "
            "most 125, as 0.01, 0.25, 12.5 or 100");
  EXPECT_EQ(problem(Schema, "{\"minimum\":0.1234567890123}"),
            "schema /minimum: expected a number of at most 12 digits behind "
            "its point");
  EXPECT_EQ(problem(Schema, "{\"type\":\"integer\",\"minimum\":2,"
                            "\"maximum\":1}"),
            "schema: no number is within these bounds");
}

TEST_F(GrammarTest, SchemasThatHoldAtOnce) {
  check(
      Schema,
      "{\"allOf\":[{\"type\":\"object\",\"properties\":{\"a\":{\"type\":"
      "\"number\"}}},{\"properties\":{\"a\":{\"type\":\"integer\",\"maximum\""
      ":9},\"b\":{\"const\":1}},\"required\":[\"b\"]}],\"required\":[\"a\"]}",
      {"{\"a\":3,\"b\":1}"},
      {"{\"a\":3}", "{\"b\":1}", "{\"a\":1.5,\"b\":1}", "{\"a\":10,\"b\":1}"});
  check(Schema,
        "{\"$defs\":{\"short\":{\"maxLength\":3},\"text\":{\"type\":\"string\","
        "\"allOf\":[{\"$ref\":\"#/$defs/short\"}]}},\"allOf\":[{\"$ref\":"
        "\"#/$defs/text\"},{\"minLength\":2}]}",
        {"\"ab\"", "\"abc\""}, {"\"a\"", "\"abcd\"", "1"});
  check(Schema,
        "{\"allOf\":[{\"enum\":[1,2,3]},{\"enum\":[2,3,4]},{\"enum\":[3,2]}]}",
        {"2", "3"}, {"1", "4"});
  EXPECT_EQ(problem(Schema, "{\"allOf\":[{\"type\":\"string\"},{\"type\":"
                            "\"integer\"}]}"),
            "schema /allOf/1: no value is valid by 'type' of all parts");
  EXPECT_EQ(problem(Schema, "{\"allOf\":[{\"properties\":{\"a\":{}},"
                            "\"additionalProperties\":false},"
                            "{\"properties\":{\"b\":{}}}]}"),
            "schema /allOf/1: the parts disagree on 'additionalProperties', "
            "and no one schema says both; merge them by hand");
  EXPECT_NE(problem(Schema, "{\"$defs\":{\"a\":{\"allOf\":[{\"$ref\":"
                            "\"#/$defs/a\"}]}},\"allOf\":[{\"$ref\":"
                            "\"#/$defs/a\"}]}"),
            "");
  EXPECT_NE(problem(Schema, "{\"allOf\":[{\"not\":{}}]}"), "");
}

/// What stands beside `$ref`, `const`, `enum`, `anyOf` and `oneOf` holds, too.
TEST_F(GrammarTest, KeywordsBesideOthers) {
  check(Schema,
        "{\"$ref\":\"#/$defs/n\",\"minimum\":3,\"$defs\":{\"n\":{\"type\":"
        "\"integer\",\"maximum\":9}}}",
        {"3", "9"}, {"2", "10", "\"a\""});
  check(Schema,
        "{\"type\":\"string\",\"enum\":[1,\"a\",2,\"bcd\"],"
        "\"minLength\":2}",
        {"\"bcd\""}, {"1", "2", "\"a\""});
  check(Schema, "{\"enum\":[1,2.0,3.5,{\"a\":1},[1,2]],\"const\":2}", {"2"},
        {"1", "3.5"});
  check(Schema,
        "{\"enum\":[[1],[1,\"a\"],[true,1,1]],\"items\":{\"type\":\"integer\"},"
        "\"maxItems\":2}",
        {"[1]"}, {"[1,\"a\"]", "[true,1,1]"});
  check(Schema,
        "{\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{}},"
        "\"anyOf\":[{\"required\":[\"a\"]},{\"required\":[\"b\"]},"
        "{\"type\":\"string\",\"properties\":{\"a\":{\"minimum\":3}}}]}",
        {"{\"a\":1}", "{\"b\":1}", "{\"a\":1,\"b\":1}"},
        {"{}", "{\"a\":true}"});
  check(Schema,
        "{\"type\":\"integer\",\"anyOf\":[{\"maximum\":3},{\"minimum\":7},"
        "{\"type\":\"string\"}],\"oneOf\":[{\"minimum\":2,\"maximum\":4},"
        "{\"exclusiveMinimum\":4,\"maximum\":8}]}",
        {"2", "3", "7", "8"}, {"1", "4", "5", "6", "9"});
  check(Schema,
        "{\"type\":[\"number\",\"null\"],\"allOf\":[{\"type\":[\"integer\","
        "\"null\",\"string\"]}]}",
        {"1", "null"}, {"1.5", "\"\""});
  check(Schema,
        "{\"allOf\":[{\"prefixItems\":[{\"type\":\"integer\"},{\"type\":"
        "[\"string\",\"integer\"]}]},{\"items\":{\"type\":\"integer\"},"
        "\"minItems\":2}]}",
        {"[1,2]", "[1,2,3]"}, {"[1,\"a\"]", "[1]"});
  EXPECT_EQ(problem(Schema, "{\"type\":\"string\",\"enum\":[1,2]}"),
            "schema: none of the values that it lists is valid by the keywords "
            "beside");
  EXPECT_EQ(problem(Schema, "{\"enum\":[\"a\"],\"pattern\":\"a\"}"),
            "schema: whether the values that it lists are valid by 'pattern' "
            "cannot be told; list those that are, without it");
  EXPECT_EQ(problem(Schema, "{\"allOf\":[{\"pattern\":\"a\"},{\"pattern\":"
                            "\"b\"}]}"),
            "schema /allOf/1: the parts disagree on 'pattern', and no one "
            "schema says both; merge them by hand");
}

/// Of `oneOf` no text of one schema is valid by another one.
TEST_F(GrammarTest, ExactlyOne) {
  check(Schema, "{\"oneOf\":[{\"type\":\"integer\"},{\"type\":\"string\"}]}",
        {"1", "\"a\""}, {"1.5"});
  // Objects are told apart by members that they must have or cannot have.
  check(Schema,
        "{\"oneOf\":[{\"properties\":{\"a\":{}},\"required\":[\"a\"]},"
        "{\"properties\":{\"b\":{}},\"required\":[\"b\"]}]}",
        {"{\"a\":1}", "{\"b\":1}"}, {"{}", "{\"a\":1,\"b\":1}"});
  // What pydantic writes of a union: the member that tells is not required.
  check(Schema,
        "{\"discriminator\":{\"propertyName\":\"kind\"},\"oneOf\":["
        "{\"$ref\":\"#/$defs/cat\"},{\"$ref\":\"#/$defs/dog\"}],\"$defs\":{"
        "\"cat\":{\"type\":\"object\",\"properties\":{\"kind\":{\"const\":"
        "\"cat\",\"default\":\"cat\"},\"lives\":{\"type\":\"integer\"}}},"
        "\"dog\":{\"type\":\"object\",\"properties\":{\"kind\":{\"enum\":"
        "[\"dog\"]},\"lives\":{\"type\":\"integer\"}}}}}",
        {"{\"kind\":\"cat\",\"lives\":9}", "{\"kind\":\"dog\"}"},
        {"{\"lives\":9}", "{}"});
  EXPECT_EQ(problem(Schema, "{\"items\":{\"oneOf\":[{\"type\":\"integer\"},"
                            "{\"type\":\"number\"}]}}"),
            "schema /items/oneOf: a value may be valid by both 0 and 1, which "
            "'oneOf' excludes; write 'anyOf', or tell them apart by their "
            "types or by a required member with a 'const'");
}

/// No text is begun that cannot be finished.
TEST_F(GrammarTest, DeadEnds) {
  auto automaton =
      make(Schema,
           "{\"type\":\"object\",\"properties\":{\"a\":false,\"b\":{\"allOf\":"
           "[{\"type\":\"string\"},{\"type\":\"null\"}]},\"c\":{}}}");
  EXPECT_TRUE(takes(*automaton, "{\"c\":1}"));
  for (const char *text : {"{\"a", "{\"b"})
    EXPECT_EQ(automaton->next(automaton->start(), text),
              GrammarAutomaton::dead);
  EXPECT_EQ(problem(Schema, "{\"properties\":{\"a\":{\"$ref\":\"#\"}},"
                            "\"required\":[\"a\"]}"),
            "no text has the form that was asked for");
}

TEST_F(GrammarTest, Objects) {
  check(Schema,
        "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},"
        "\"b\":{\"type\":\"boolean\"},\"c\":{}},\"required\":[\"b\"],"
        "\"additionalProperties\":false}",
        {"{\"b\":true}", "{ \"a\": 1, \"b\": false}", "{\"b\":true,\"c\":[{}]}",
         "{\n  \"a\": 1,\n  \"b\": true,\n  \"c\": \"x\"\n}"},
        {"{}", "{\"a\":1}", "{\"b\":true,\"a\":1}", "{\"b\":true,}", "{,}",
         "{\"b\":1}", "{\"b\":true,\"d\":1}"});
  check(Schema,
        "{\"type\":\"object\",\"additionalProperties\":"
        "{\"type\":\"integer\"}}",
        {"{}", "{\"x\":1,\"y\":2}"}, {"{\"x\":\"a\"}", "{\"x\":1,}"});
  check(Schema, "{\"type\":\"object\",\"required\":[\"z\"]}", {"{\"z\":[1]}"},
        {"{}", "{\"y\":1}"});
  check(TextForm::Kind::JsonObject, "",
        {"{}", "{\"a\": [1, {\"b\": null}, \"c\"], \"d\": -1e5}"},
        {"", "[]", "1", "{\"a\"}", "{} "});
  check(Schema,
        "{\"$ref\":\"#/$defs/tree\",\"$defs\":{\"tree\":{\"type\":\"object\","
        "\"properties\":{\"next\":{\"anyOf\":[{\"$ref\":\"#/$defs/tree\"},"
        "{\"type\":\"null\"}]}},\"required\":[\"next\"]}}}",
        {"{\"next\":null}", "{\"next\":{\"next\":{\"next\":null}}}"},
        {"{\"next\":{}}", "{\"next\":{\"next\":null}"});
}

TEST_F(GrammarTest, Arrays) {
  check(Schema, "{\"items\":{\"type\":\"integer\"}}", {"[]", "[1]", "[1, 2,3]"},
        {"[1,]", "[,]", "[true]", "[1 2]"});
  check(Schema,
        "{\"type\":\"array\",\"items\":{\"const\":0},\"minItems\":2,"
        "\"maxItems\":3}",
        {"[0,0]", "[0,0,0]"}, {"[]", "[0]", "[0,0,0,0]"});
  check(Schema, "{\"type\":\"array\",\"items\":{\"const\":0},\"minItems\":1}",
        {"[0]", "[0,0,0,0]"}, {"[]"});
  check(Schema,
        "{\"type\":\"array\",\"prefixItems\":[{\"const\":1},"
        "{\"const\":2}],\"minItems\":1}",
        {"[1]", "[1,2]"}, {"[]", "[2]", "[1,2,3]"});
  check(Schema,
        "{\"type\":\"array\",\"prefixItems\":[{\"const\":1}],"
        "\"items\":{\"const\":0}}",
        {"[]", "[1]", "[1,0,0]"}, {"[0]", "[1,1]"});
  check(Schema, "{\"type\":\"array\",\"maxItems\":0}", {"[]"}, {"[1]"});
}

/// What reading a schema may cost is limited.
TEST_F(GrammarTest, SchemasWithoutMeasure) {
  auto list = [](int count, const char *format) {
    std::string text;
    for (int i = 0; i < count; ++i) {
      char item[200];
      std::snprintf(item, sizeof(item), format, i, i, i);
      text += (i ? "," : "") + std::string(item);
    }
    return text;
  };
  std::string numbers = "{\"enum\":[" + list(9000, "%d") + "]}";
  check(Schema, "{\"allOf\":[" + numbers + "," + numbers + "]}", {"8999"},
        {"9000"});
  EXPECT_EQ(problem(Schema, "{\"enum\":[" + list(20000, "%d") + "]}"),
            "schema: has more than 20000 values");
  EXPECT_EQ(
      problem(Schema, "{\"allOf\":[" +
                          list(4000, "{\"properties\":{\"k%d\":{}}}") + "]}"),
      "schema /allOf/1995: the parts of all 'allOf' are too large as one");
  // Each level has twice as many parts as the one before.
  std::string levels =
      list(40, "\"a%d\":{\"allOf\":[{\"properties\":{\"x\":{\"$ref\":\"#/$defs/"
               "a%d+\"}}},{\"title\":\"\",\"properties\":{\"x\":{\"$ref\":"
               "\"#/$defs/a%d+\"}}}]}");
  for (int i = 40; i-- > 0;) {
    std::string from = "a" + std::to_string(i) + "+",
                to = i < 39 ? "a" + std::to_string(i + 1) : "last";
    for (size_t at; (at = levels.find(from)) != std::string::npos;)
      levels.replace(at, from.size(), to);
  }
  EXPECT_EQ(problem(Schema, "{\"$ref\":\"#/$defs/a0\",\"$defs\":{" + levels +
                                ",\"last\":{\"type\":\"null\"}}}"),
            "schema /$defs/a33: the schema is too large");
}

/// What reading any form may cost is limited: a short text can ask for much,
/// and a long one may take no longer than its length lets expect.
TEST_F(GrammarTest, FormsWithoutMeasure) {
  auto repeat = [](const std::string &text, int count) {
    std::string all;
    for (int i = 0; i < count; ++i)
      all += text;
    return all;
  };
  auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(problem(Pattern, repeat("a{100000,}", 2000)),
            "the regular expression is wrong: the pattern is too large, at "
            "byte 50");
  std::string names = "root ::= ", chain;
  for (int i = 0; i < 40000; ++i)
    names += "r" + std::to_string(i) + " ";
  EXPECT_EQ(problem(Rules, names),
            "the grammar is wrong: line 1: there is no rule 'r0'");
  for (int i = 0; i < 30000; ++i)
    chain += (i ? "r" + std::to_string(i) : "root") + " ::= r" +
             std::to_string(i + 1) + "\n";
  check(Rules, chain + "r30000 ::= \"a\"?", {"", "a"}, {"b"});
  EXPECT_EQ(problem(Rules, "root ::= " + repeat("|", 600000)),
            "the grammar is wrong: line 1: the grammar is too large");
  EXPECT_EQ(
      problem(Schema, "{\"const\":\"" + repeat("abcdefgh", 70000) + "\"}"),
      "schema: the schema is too large");
  EXPECT_EQ(problem(Pattern, repeat("a", 1100000)),
            "the form that was asked for has 1100000 bytes; at most 1 MiB is "
            "read");
  // Each has some seconds' work if it is quadratic.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  // Parts that are thrown away are counted for all of a schema together.
  std::string members, counted;
  for (int i = 0; i < 100; ++i) {
    std::string start = (i ? ",\"" : "\"") + std::to_string(i) +
                        "\":{\"maxLength\":9,\"pattern\":\"";
    members += start + "(a{0,90000}){0}b{" + std::to_string(i) + "}\"}";
    counted += start + "^(.{0,20}.*|a.*){9}" + std::to_string(i) + "\"}";
  }
  EXPECT_EQ(problem(Schema, "{\"properties\":{" + members + "}}"),
            "schema /properties/5: the schema is too large");
  EXPECT_NE(problem(Schema, "{\"properties\":{" + counted + "}}"), "");
}

/// An end token with bytes of its own still says what is wrong.
TEST_F(GrammarTest, EndsThatAreTexts) {
  std::vector<float> logits(static_cast<size_t>(tokenizer->size()));
  std::vector<int64_t> zeros;
  for (int64_t id = 0; id < tokenizer->size(); ++id)
    if (tokenizer->bytesOf(id) == "0")
      zeros.push_back(id);
  Constraint none(make(Pattern, "0"), zeros);
  Error error;
  EXPECT_FALSE(none.mask(logits.data(), tokenizer->size(), error));
  EXPECT_EQ(error.message, "no token of the vocabulary goes on with a text of "
                           "the form that was asked for");
}

/// A token is allowed exactly if its bytes go on with a text of the form.
TEST_F(GrammarTest, TokensOfAState) {
  auto automaton =
      make(Schema, "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":"
                   "\"string\"},\"age\":{\"type\":\"integer\"}},\"required\":"
                   "[\"name\",\"age\"]}");
  std::string text = "{\"name\": \"Wren é\\n\", \"age\": 12}";
  for (size_t length = 0; length <= text.size(); ++length) {
    auto state = automaton->next(automaton->start(), text.substr(0, length));
    ASSERT_NE(state, GrammarAutomaton::dead);
    std::vector<uint64_t> mask = automaton->allowed(state);
    for (int64_t id = 0; id < tokenizer->size(); ++id) {
      std::string bytes = tokenizer->bytesOf(id);
      bool goesOn = !tokenizer->isSpecial(id) && !bytes.empty() &&
                    automaton->next(state, bytes) != GrammarAutomaton::dead;
      EXPECT_EQ(mask[id / 64] >> id % 64 & 1, goesOn)
          << text.substr(0, length) << " | " << bytes;
    }
  }
}

/// What a form may cost is limited, at its start and behind that.
TEST_F(GrammarTest, FormsThatGoOnInManyWays) {
  auto writes = [&](const char *pattern, Error &error) {
    std::shared_ptr<GrammarAutomaton> automaton =
        factory->make({Pattern, pattern}, error);
    if (!automaton)
      return false;
    Constraint constraint(automaton, {});
    std::vector<float> logits(static_cast<size_t>(tokenizer->size()));
    auto count = static_cast<int64_t>(logits.size());
    for (int step = 0; step < 20; ++step) {
      const float *masked = constraint.mask(logits.data(), count, error);
      if (!masked)
        return false;
      constraint.accept(std::find(masked, masked + count, 0.0f) - masked);
    }
    return true;
  };
  for (const char *pattern : {".{1,200}", "[a-z]{1,2000}", "(.{1,60}){60}",
                              "((a|b|c){1,30} ?){1,20}"}) {
    Error error;
    EXPECT_TRUE(writes(pattern, error)) << pattern << ": " << error.message;
  }
  for (const char *pattern :
       {"((.{0,90}){0,90}){0,90}",
        "((((a|b|ab|ba|.){1,50}c?){1,50}d?){1,50}e?){1,50}"}) {
    Error error;
    EXPECT_FALSE(writes(pattern, error)) << pattern;
    EXPECT_NE(error.message.find("in too many ways at once"), std::string::npos)
        << error.message;
  }
}

/// Whatever is chosen of what is allowed, a whole text comes out.
TEST_F(GrammarTest, RandomTextsAreValid) {
  std::mt19937 random(1);
  const char *schemas[] = {
      "{\"type\":\"object\",\"properties\":{\"tags\":{\"type\":\"array\","
      "\"items\":{\"enum\":[\"a\",\"b\"]},\"maxItems\":3},\"when\":{\"type\":"
      "\"string\",\"format\":\"date-time\"}},\"required\":[\"tags\",\"when\"]}",
      "{\"type\":\"array\",\"items\":{\"type\":\"string\",\"maxLength\":5},"
      "\"minItems\":2,\"maxItems\":4}",
      "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"boolean\"}}"};
  for (const char *schema : schemas)
    for (int round = 0; round < 20; ++round) {
      Constraint constraint(make(Schema, schema), {1000});
      std::vector<float> logits(static_cast<size_t>(tokenizer->size()));
      std::string text;
      for (int step = 0; step < 400 && !constraint.isOver(); ++step) {
        Error error;
        const float *masked = constraint.mask(
            logits.data(), static_cast<int64_t>(logits.size()), error);
        ASSERT_TRUE(masked) << text << error.message;
        std::vector<int64_t> ids;
        for (size_t id = 0; id < logits.size(); ++id)
          if (masked[id] == 0)
            ids.push_back(static_cast<int64_t>(id));
        // Closing characters more often, so that it comes to an end.
        int64_t id = ids[random() % ids.size()];
        for (int64_t other : ids)
          if (random() % 2 &&
              std::string("\"]}").find(tokenizer->bytesOf(other)) <= 2)
            id = other;
        if (id == 1000)
          break;
        text += tokenizer->bytesOf(id);
        constraint.accept(id);
      }
      JsonValue value;
      std::string why;
      JsonLimits limits;
      limits.uniqueKeys = false;
      EXPECT_TRUE(parseJson(text, value, why, limits)) << text << ": " << why;
    }
}

} // namespace
