//===- ChatTemplateTest.cpp - Chat templates against Jinja ----------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// chat-templates.json holds what Jinja itself made of the same templates;
// chat_templates.py writes it.
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/ChatTemplate.h"

#include "gtest/gtest.h"

#include <fstream>
#include <sstream>
#include <sys/resource.h>

using namespace attune::runtime;

namespace {

JsonValue readFixture() {
  std::ifstream file(ATTUNE_TEST_DIR "/Unit/Runtime/chat-templates.json");
  std::stringstream text;
  text << file.rdbuf();
  JsonValue root;
  std::string error;
  EXPECT_TRUE(parseJson(text.str(), root, error)) << error;
  return root;
}

void set(JsonValue &object, const std::string &key, JsonValue value) {
  for (size_t i = 0; i < object.keys.size(); ++i)
    if (object.keys[i] == key) {
      object.items[i] = std::move(value);
      return;
    }
  object.keys.push_back(key);
  object.items.push_back(std::move(value));
}

JsonValue parsed(const std::string &text) {
  JsonValue value;
  std::string error;
  EXPECT_TRUE(parseJson(text, value, error)) << error;
  return value;
}

/// The text, or the problem behind "refused: ".
std::string render(const std::string &source, const JsonValue &variables,
                   const TemplateLimits &limits = TemplateLimits()) {
  TemplateProblem problem;
  std::string out;
  std::unique_ptr<ChatTemplate> chat = ChatTemplate::parse(source, problem);
  if (!chat)
    return "refused: " + ChatTemplate::describe(source, problem);
  if (!chat->render(variables, out, problem, limits))
    return "refused: " + chat->describe(problem);
  return out;
}

std::string render(const std::string &source) {
  return render(source, parsed("{}"));
}

void compare(const JsonValue &expected, const std::string &found,
             const std::string &what) {
  if (const JsonValue *text = expected.find("text"))
    EXPECT_EQ(text->string, found) << what;
  else
    EXPECT_EQ("refused: ", found.substr(0, 9)) << what;
}

TEST(ChatTemplate, SixtyTemplatesAsJinjaRendersThem) {
  JsonValue fixture = readFixture();
  const JsonValue &templates = *fixture.find("templates");
  EXPECT_GE(templates.items.size(), 60u);
  const JsonValue &conversations = *fixture.find("conversations");
  for (const JsonValue &test : fixture.find("cases")->items) {
    JsonValue variables = parsed(
        R"({"tools": null, "documents": null, "add_generation_prompt": true,
            "bos_token": "<s>", "eos_token": "</s>"})");
    set(variables, "messages",
        *conversations.find(test.find("conversation")->string));
    int64_t number = test.find("switch")->integer;
    const JsonValue &more =
        fixture.find("switches")->items[static_cast<size_t>(number)];
    for (size_t i = 0; i < more.keys.size(); ++i)
      set(variables, more.keys[i], more.items[i]);
    const std::string &name = test.find("template")->string;
    compare(test, render(templates.find(name)->string, variables),
            name + ", " + test.find("conversation")->string + ", switch " +
                std::to_string(number));
  }
}

TEST(ChatTemplate, ExpressionsAsJinjaComputesThem) {
  JsonValue fixture = readFixture();
  JsonValue variables = parsed(
      R"({"d": {"items": 1, "a": 2, "b": {"c": [1, 2, 3]}, "z": null},
          "l": [3, 1, 2], "s": "Straße Ünï 你好 x", "e": []})");
  set(variables, "m", *fixture.find("conversations")->find("tools"));
  EXPECT_GE(fixture.find("expressions")->items.size(), 70u);
  for (const JsonValue &test : fixture.find("expressions")->items) {
    const std::string &source = test.find("source")->string;
    compare(test, render(source, variables), source);
  }
}

TEST(ChatTemplate, ProblemsHaveAPlaceAndACaret) {
  EXPECT_EQ("refused: 2:7: expected an expression, found '}}'\n"
            "  {{ 1 +}}\n        ^",
            render("a\n{{ 1 +}}"));
  EXPECT_NE(std::string::npos, render("{% if x %}")
                                   .find("the template ends within 'if'; "
                                         "expected '{% endif %}'"));
  EXPECT_NE(std::string::npos,
            render("{{ [1] | random }}")
                .find("1:10: the filter 'random' is not supported: a template "
                      "gives the same text each time"));
  EXPECT_EQ("refused: 2:7: 'q' is undefined\n  y {{ q.a.b }}\n        ^",
            render("x\ny {{ q.a.b }}"));
}

/// Each of these would take for ever, or all memory, or the stack.
TEST(ChatTemplate, HostileTemplatesEndWithinAGibibyte) {
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  GTEST_SKIP() << "sanitizers need more addresses";
#endif
#endif
  struct rlimit before, gibibyte;
  ASSERT_EQ(0, getrlimit(RLIMIT_AS, &before));
  gibibyte = before;
  gibibyte.rlim_cur = rlim_t(1) << 30;
  ASSERT_EQ(0, setrlimit(RLIMIT_AS, &gibibyte));
  std::string deep(100000, '('), lists(100000, '['), nots;
  for (int i = 0; i < 100000; ++i)
    nots += "not ";
  std::string ifs;
  for (int i = 0; i < 10000; ++i)
    ifs += "{% if 1 %}";
  std::string sum = "{{ 1";
  for (int i = 0; i < 100000; ++i)
    sum += "+1";
  std::string filters = "{{ [1] | map(*(['map'] * 100000)) | list }}";
  const std::string hostile[] = {
      "{{ " + deep,
      "{{ " + lists,
      "{{ " + nots + "1 }}",
      ifs,
      sum + " }}",
      filters,
      "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
      "{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}"
      "{% endfor %}",
      "{% set ns = namespace(s='xxxxxxxx') %}{% for i in range(64) %}"
      "{% set ns.s = ns.s + ns.s %}{% endfor %}",
      "{% set ns = namespace(s=[1]) %}{% for i in range(64) %}"
      "{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s }}",
      "{% set a = namespace(s=[1]) %}{% set b = namespace(s=[1]) %}"
      "{% for i in range(60) %}{% set a.s = [a.s, a.s] %}"
      "{% set b.s = [b.s, b.s] %}{% endfor %}{{ a.s == b.s }}",
      "{% set ns = namespace(s=[1]) %}{% for i in range(9999) %}"
      "{% set ns.s = [ns.s] %}{% endfor %}{{ ns.s | tojson }}",
      "{{ 'x' * 999999999999 }}",
      "{{ [0] * 999999999999 }}",
      "{{ '%99999999999d' % 1 }}",
      "{{ '{:99999999999}'.format(1) }}",
      "{{ 'a'.center(99999999999) }}",
      "{{ 'x' | indent(99999999999) }}",
      "{{ ('ab ' * 9999999) | wordwrap(1, wrapstring='x' * 9999) }}",
      "{{ ('www.a' * 2000000 ~ '(') | urlize }}",
      "{{ ('a.' * 4000000 ~ '-@') | urlize }}",
      "{% set ns = namespace(s=[1]) %}{% for i in range(9999) %}"
      "{% set ns.s = [ns.s] %}{% endfor %}{{ ns.s | pprint }}",
      "{% for x in [[1]] recursive %}{{ loop([[1]]) }}{% endfor %}",
      "{{ -9223372036854775807 - 5 }}",
      "{{ 9223372036854775808 }}",
      "{{ (-9223372036854775807 - 1) // -1 }}",
  };
  for (const std::string &source : hostile)
    EXPECT_EQ("refused: ", render(source).substr(0, 9))
        << source.substr(0, 100);
  EXPECT_EQ("refused: ", render("\xff").substr(0, 9));
  EXPECT_EQ("refused: ", render(std::string(2 << 20, 'x')).substr(0, 9));
  setrlimit(RLIMIT_AS, &before);
}

TEST(ChatTemplate, LimitsAreTheCallers) {
  TemplateLimits limits;
  limits.output = 100;
  JsonValue none = parsed("{}");
  EXPECT_NE(std::string::npos,
            render("{% for i in range(999) %}words{% endfor %}", none, limits)
                .find("writes more than"));
  limits = TemplateLimits();
  limits.steps = 100;
  EXPECT_NE(std::string::npos,
            render("{% for i in range(999) %}{{ i }}{% endfor %}", none, limits)
                .find("takes more than 100 steps"));
}

TEST(ChatTemplate, TellsWhichVariablesItReads) {
  TemplateProblem problem;
  auto chat = ChatTemplate::parse(
      "{% if enable_thinking %}{{ x[tools] }}{% endif %}", problem);
  ASSERT_TRUE(chat);
  EXPECT_TRUE(chat->mentions("enable_thinking"));
  EXPECT_TRUE(chat->mentions("tools"));
  EXPECT_FALSE(chat->mentions("documents"));
}

} // namespace
