//===- RequestForms.cpp - Forms that texts must have ----------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CompletionRequest.h"

namespace attune::runtime {

/// Takes the form, which `member` asks for.
bool CompletionRequest::setForm(const TextForm &form, const char *member,
                                const ServedModel &model, RequestError &error) {
  std::string name = "'" + std::string(member) + "': ";
  if (options.automaton)
    return error.set(name + "another member asks for a form, too", member);
  if (!model.constraints)
    return error.set(name + "the model carries no tokenizer", member);
  Error problem;
  options.automaton = model.constraints->make(form, problem);
  return options.automaton || error.set(name + problem.message, member);
}

namespace {
/// What says of a form in which way it is written.
enum class Source { Schema, AnyJson, Pattern, Grammar, Choice };
} // namespace

/// A grammar of some texts.
static bool makeChoice(const JsonValue &texts, std::string &grammar) {
  grammar = "root ::= ";
  for (size_t i = 0; i < texts.items.size(); ++i) {
    if (!texts.items[i].isString() || texts.items[i].string.empty())
      return false;
    grammar += i ? " | \"" : "\"";
    for (char c : texts.items[i].string) {
      static constexpr char digits[] = "0123456789abcdef";
      auto byte = static_cast<unsigned char>(c);
      if (byte < ' ' || byte == 0x7f) {
        grammar += "\\x";
        grammar += digits[byte >> 4];
        grammar += digits[byte & 15];
      } else {
        if (c == '"' || c == '\\')
          grammar += '\\';
        grammar += c;
      }
    }
    grammar += '"';
  }
  return texts.isArray() && !texts.items.empty();
}

/// Reads a form from the value of a member; null if the value is wrong, which
/// it says what was expected of.
static const char *readSource(Source source, const JsonValue &value,
                              TextForm &form) {
  switch (source) {
  case Source::Schema: {
    // vLLM takes the text of a schema, too.
    JsonValue read;
    std::string ignored;
    JsonLimits limits;
    limits.maxBytes = size_t(1) << 20;
    limits.maxValues = 20000;
    bool isText =
        value.isString() && parseJson(value.string, read, ignored, limits);
    form.kind = TextForm::Kind::JsonSchema;
    if (!value.isObject() && !isText && !value.isBool())
      return "a JSON schema, as a text one of at most 1 MiB and 20000 values";
    appendJson(form.source, isText ? read : value);
    return nullptr;
  }
  case Source::AnyJson:
    if (!value.isBool())
      return "true or false";
    form.kind =
        value.boolean ? TextForm::Kind::JsonObject : TextForm::Kind::Any;
    return nullptr;
  case Source::Pattern:
  case Source::Grammar:
    form.kind = source == Source::Pattern ? TextForm::Kind::Pattern
                                          : TextForm::Kind::Grammar;
    form.source = value.string;
    return value.isString()            ? nullptr
           : source == Source::Pattern ? "a regular expression"
                                       : "a grammar in GBNF";
  case Source::Choice:
    form.kind = TextForm::Kind::Grammar;
    return makeChoice(value, form.source) ? nullptr
                                          : "an array of texts, none empty";
  }
  return "a form";
}

/// Reads the form that the text must have: `response_format` is OpenAI's,
/// `structured_outputs` and what is called guided are vLLM's, `json_schema` and
/// `grammar` llama.cpp's.
bool CompletionRequest::readForm(RequestFields &fields,
                                 const ServedModel &model,
                                 RequestError &error) {
  struct Member {
    const char *name;
    Source source;
  };
  static constexpr Member members[] = {
      {"guided_json", Source::Schema},     {"guided_regex", Source::Pattern},
      {"guided_grammar", Source::Grammar}, {"guided_choice", Source::Choice},
      {"json_schema", Source::Schema},     {"grammar", Source::Grammar}};
  static constexpr Member inner[] = {{"json", Source::Schema},
                                     {"json_object", Source::AnyJson},
                                     {"regex", Source::Pattern},
                                     {"grammar", Source::Grammar},
                                     {"choice", Source::Choice}};
  auto take = [&](const char *member, RequestFields &from, const Member &part) {
    const JsonValue *value = from.find(part.name);
    if (!value)
      return true;
    TextForm form;
    if (const char *wanted = readSource(part.source, *value, form))
      return fields.expected(member, wanted, *value);
    return form.kind == TextForm::Kind::Any ||
           setForm(form, member, model, error);
  };
  for (const Member &member : members)
    if (!take(member.name, fields, member))
      return false;
  if (const JsonValue *of = fields.find("structured_outputs")) {
    constexpr const char *name = "structured_outputs";
    if (!of->isObject())
      return fields.expected(name, "an object", *of);
    RequestFields parts(*of, error);
    for (const char *other : {"structural_tag", "whitespace_pattern"})
      if (parts.has(other))
        return error.set("'structured_outputs': '" + std::string(other) +
                             "' is not supported by this server",
                         name, "unsupported_parameter");
    for (const Member &part : inner)
      if (!take(name, parts, part))
        return false;
  }
  const JsonValue *format = fields.find("response_format");
  if (!format)
    return true;
  constexpr const char *name = "response_format";
  auto fail = [&](const std::string &what) {
    return error.set("'response_format': " + what, name);
  };
  const JsonValue *type = format->isObject() ? format->find("type") : nullptr;
  if (!type || !type->isString())
    return fail("expected an object with a type");
  TextForm form;
  auto takeText = [&](const char *member) {
    const JsonValue *text = format->find(member);
    if (text && text->isString())
      form.source = text->string;
    return (text && text->isString()) ||
           fail("expected a string '" + std::string(member) + "'");
  };
  if (type->string == "text")
    return true;
  if (type->string == "json_object") {
    form.kind = TextForm::Kind::JsonObject;
  } else if (type->string == "json_schema") {
    form.kind = TextForm::Kind::JsonSchema;
    const JsonValue *holder = format->find("json_schema");
    const JsonValue *schema =
        holder && holder->isObject() ? holder->find("schema") : nullptr;
    if (!schema)
      return fail("expected 'json_schema': {\"schema\": ...}");
    appendJson(form.source, *schema);
  } else if (type->string == "regex") {
    form.kind = TextForm::Kind::Pattern;
    if (!takeText("pattern"))
      return false;
  } else if (type->string == "grammar") {
    form.kind = TextForm::Kind::Grammar;
    if (!takeText("grammar"))
      return false;
  } else {
    return fail("expected a type text, json_object, json_schema, regex or "
                "grammar, found '" +
                type->string + "'");
  }
  return setForm(form, name, model, error);
}

} // namespace attune::runtime
