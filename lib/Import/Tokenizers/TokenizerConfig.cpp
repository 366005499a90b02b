//===- TokenizerConfig.cpp - Settings beside a tokenizer.json -------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TokenizerConfig.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

using attune::runtime::JsonValue;

namespace attune {

/// The text of a member of the outermost object, or nothing.
static std::string_view memberText(const std::string &json, const char *name) {
  runtime::JsonReader reader(json);
  std::string key;
  std::string_view value;
  if (reader.enterObject())
    while (reader.nextMember(key) && reader.skip(value))
      if (key == name)
        return value;
  return {};
}

static void setMember(std::string &json, const char *name,
                      const std::string &text) {
  std::string_view old = memberText(json, name);
  if (old.data())
    json.replace(static_cast<size_t>(old.data() - json.data()), old.size(),
                 text);
  else
    json.insert(json.find('{') + 1,
                "\"" + std::string(name) + "\":" + text + ",");
}

static JsonValue memberValue(const std::string &json, const char *name) {
  JsonValue value;
  std::string problem;
  std::string_view text = memberText(json, name);
  if (text.data())
    runtime::parseJson(text, value, problem);
  return value;
}

/// A token of the configuration: a text, or an object with `content`.
static std::string tokenOf(const JsonValue &config, const char *key) {
  const JsonValue *value = config.find(key);
  if (value && value->isObject())
    value = value->find("content");
  return value && value->isString() ? value->string : "";
}

static bool flagOf(const JsonValue &config, const char *key, bool otherwise) {
  const JsonValue *value = config.find(key);
  return value && value->isBool() ? value->boolean : otherwise;
}

static void setMember(JsonValue &object, const char *key,
                      const JsonValue &value) {
  for (size_t i = 0; i < object.keys.size(); ++i)
    if (object.keys[i] == key) {
      object.items[i] = value;
      return;
    }
  object.keys.push_back(key);
  object.items.push_back(value);
}

/// Whether that changed something.
static bool setFlag(JsonValue &object, const char *key, bool value) {
  const JsonValue *old = object.find(key);
  bool same = old && old->isBool() && old->boolean == value;
  JsonValue flag;
  flag.kind = JsonValue::Kind::Bool;
  flag.boolean = value;
  setMember(object, key, flag);
  return !same;
}

/// Added tokens that the other file does not have, in the order of their ids.
/// Whether there are some.
static bool addTokens(const JsonValue &config, std::string &json) {
  const JsonValue *decoder = config.find("added_tokens_decoder");
  JsonValue added = memberValue(json, "added_tokens");
  if (!decoder || !decoder->isObject())
    return false;
  if (!added.isArray()) {
    added = JsonValue();
    added.kind = JsonValue::Kind::Array;
  }
  std::set<std::string_view> known;
  for (const JsonValue &item : added.items)
    if (const JsonValue *text = item.find("content"); text && text->isString())
      known.insert(text->string);
  std::vector<std::pair<int64_t, const JsonValue *>> more;
  for (size_t i = 0; i < decoder->keys.size(); ++i) {
    const std::string &key = decoder->keys[i];
    const JsonValue *content = decoder->items[i].find("content");
    bool number = !key.empty() && key.size() < 9 &&
                  key.find_first_not_of("0123456789") == std::string::npos;
    if (!number || !content || !content->isString())
      continue;
    if (!known.count(content->string))
      more.push_back({std::stoll(key), &decoder->items[i]});
  }
  if (more.empty())
    return false;
  std::sort(more.begin(), more.end(),
            [](const auto &a, const auto &b) { return a.first < b.first; });
  for (const auto &[id, item] : more) {
    JsonValue token = *item, number;
    number.kind = JsonValue::Kind::Int;
    number.integer = id;
    setMember(token, "id", number);
    added.items.push_back(std::move(token));
  }
  std::string text;
  runtime::appendJson(text, added);
  setMember(json, "added_tokens", text);
  return true;
}

/// Which tokens a class puts around a text whatever the other file says.
struct Ends {
  std::vector<std::string> front;
  std::string back;
  bool frontOfSecond = true; ///< the same in front of the second of a pair
};

static bool startsWith(const std::string &name, std::string_view start) {
  return name.compare(0, start.size(), start) == 0;
}

static bool hasEnds(const std::string &name) {
  for (const char *start : {"LlamaTokenizer", "CodeLlama", "GemmaTokenizer",
                            "InternLM2Tokenizer", "ChatGLM"})
    if (startsWith(name, start))
      return true;
  return false;
}

/// The begin and the end token of the classes of Llama, Gemma and InternLM, and
/// the two tokens in front of ChatGLM's texts, if there are those.
static std::optional<Ends> endsOf(const JsonValue &config,
                                  const runtime::Tokenizer &tokenizer) {
  std::string name = tokenOf(config, "tokenizer_class");
  auto exists = [&](const std::string &token) {
    return !token.empty() && tokenizer.tokenToId(token) >= 0;
  };
  Ends ends;
  if (startsWith(name, "ChatGLM")) {
    const char *start = startsWith(name, "ChatGLM4") ? "<sop>" : "sop";
    if (!exists("[gMASK]") || !exists(start))
      return std::nullopt;
    ends.front = {"[gMASK]", start};
    ends.frontOfSecond = false;
    return ends;
  }
  if (std::string bos = tokenOf(config, "bos_token");
      flagOf(config, "add_bos_token", true) && exists(bos))
    ends.front = {bos};
  if (std::string eos = tokenOf(config, "eos_token");
      flagOf(config, "add_eos_token", false) && exists(eos))
    ends.back = eos;
  return ends;
}

static void setEnds(const JsonValue &config, std::string &json,
                    const runtime::Tokenizer *tokenizer) {
  if (!hasEnds(tokenOf(config, "tokenizer_class")))
    return;
  runtime::Error error;
  std::unique_ptr<runtime::Tokenizer> made;
  if (!tokenizer) {
    made = runtime::Tokenizer::create(json, error);
    tokenizer = made.get();
  }
  std::optional<Ends> ends =
      tokenizer ? endsOf(config, *tokenizer) : std::nullopt;
  if (!ends)
    return;
  auto sequence = [&](const char *id, int type, bool hasFront) {
    std::string out;
    auto part = [&](const std::string &token) {
      out += out.empty() ? "" : ",";
      out += "{\"SpecialToken\":{\"id\":";
      runtime::appendJsonString(out, token);
      out += ",\"type_id\":" + std::to_string(type) + "}}";
    };
    if (hasFront)
      for (const std::string &token : ends->front)
        part(token);
    out += std::string(out.empty() ? "" : ",") + "{\"Sequence\":{\"id\":\"" +
           id + "\",\"type_id\":" + std::to_string(type) + "}}";
    if (!ends->back.empty())
      part(ends->back);
    return out;
  };
  std::set<std::string> tokens(ends->front.begin(), ends->front.end());
  if (!ends->back.empty())
    tokens.insert(ends->back);
  std::string specials;
  for (const std::string &token : tokens) {
    specials += specials.empty() ? "" : ",";
    runtime::appendJsonString(specials, token);
    specials += ":{\"id\":";
    runtime::appendJsonString(specials, token);
    specials += ",\"ids\":[" + std::to_string(tokenizer->tokenToId(token)) +
                "],\"tokens\":[";
    runtime::appendJsonString(specials, token);
    specials += "]}";
  }
  std::string first = sequence("A", 0, /*hasFront=*/true);
  setMember(json, "post_processor",
            "{\"type\":\"TemplateProcessing\",\"single\":[" + first +
                "],\"pair\":[" + first + "," +
                sequence("B", 1, ends->frontOfSecond) +
                "],\"special_tokens\":{" + specials + "}}");
}

void applyTokenizerConfig(const JsonValue &config, std::string &json,
                          const runtime::Tokenizer *known) {
  // Other changes give no text another token.
  if (addTokens(config, json))
    known = nullptr;
  JsonValue pre = memberValue(json, "pre_tokenizer");
  const JsonValue *prefix = config.find("add_prefix_space");
  if (prefix && prefix->isBool() && pre.isObject() &&
      tokenOf(pre, "type") == "ByteLevel" &&
      setFlag(pre, "add_prefix_space", prefix->boolean)) {
    std::string text;
    runtime::appendJson(text, pre);
    setMember(json, "pre_tokenizer", text);
  }
  JsonValue normalizer = memberValue(json, "normalizer");
  if (normalizer.isObject() &&
      tokenOf(normalizer, "type") == "BertNormalizer") {
    bool changed = false;
    static constexpr const char *names[][2] = {
        {"do_lower_case", "lowercase"},
        {"strip_accents", "strip_accents"},
        {"tokenize_chinese_chars", "handle_chinese_chars"}};
    for (const auto &name : names) {
      const JsonValue *value = config.find(name[0]);
      if (value && value->isBool())
        changed = setFlag(normalizer, name[1], value->boolean) || changed;
    }
    if (changed) {
      std::string text;
      runtime::appendJson(text, normalizer);
      setMember(json, "normalizer", text);
    }
  }
  setEnds(config, json, known);
}

} // namespace attune
