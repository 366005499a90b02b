//===- TokenizerLoad.cpp - Reading tokenizer.json -------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TokenizerData.h"

#include <algorithm>
#include <array>

namespace attune::runtime {

/// Larger than any published file by far.
static constexpr size_t maxBytes = size_t(128) << 20;

/// Small members are values, with where they stand; the model stays text.
struct Tokenizer::Data::Parts {
  struct Part {
    const char *key;
    JsonValue value;
    std::string_view text;
  };
  std::string_view model;
  Part added{"added_tokens", {}, {}};
  Part normalizer{"normalizer", {}, {}};
  Part preTokenizer{"pre_tokenizer", {}, {}};
  Part postProcessor{"post_processor", {}, {}};
  Part decoder{"decoder", {}, {}};
  Part truncation{"truncation", {}, {}};
  Part padding{"padding", {}, {}};

  /// All but the model.
  std::array<Part *, 7> all() {
    return {&added,   &normalizer, &preTokenizer, &postProcessor,
            &decoder, &truncation, &padding};
  }
};

bool Tokenizer::Data::readParts(std::string_view json, Parts &parts,
                                LoadError &error) {
  if (json.size() > maxBytes) {
    error.message = "a tokenizer.json of more than 128 MiB";
    return false;
  }
  JsonLimits limits;
  limits.maxValues = size_t(1) << 20;
  JsonReader reader(json, limits);
  std::string key;
  if (reader.enterObject())
    while (reader.nextMember(key)) {
      std::string_view skipped;
      Parts::Part *part = nullptr;
      for (Parts::Part *candidate : parts.all())
        if (key == candidate->key)
          part = candidate;
      if (part) {
        reader.peek(); // to where the value starts
        size_t begin = reader.position;
        reader.read(part->value);
        part->text = json.substr(begin, reader.position - begin);
      } else if (key == "model") {
        reader.skip(parts.model);
      } else {
        reader.skip(skipped);
      }
    }
  if (!reader.failed() && reader.peek() != -1)
    reader.fail("expected the end of the text");
  if (reader.failed()) {
    error.message = "tokenizer.json is not valid JSON: " + reader.error;
    error.place = json.data() + std::min(reader.position, json.size());
    return false;
  }
  if (parts.model.empty() || parts.model[0] != '{') {
    error.message = "tokenizer.json has no 'model' object";
    error.place = json.data();
    return false;
  }
  return true;
}

bool Tokenizer::Data::setAdded(AddedToken token, Error &error) {
  token.pattern = token.text;
  size_t head;
  if (token.normalized && !normalizer.apply(token.pattern, head, error))
    return false;
  if (token.id >= addedOf.size())
    addedOf.resize(token.id + 1);
  if (uint32_t place = addedOf[token.id]) {
    added[place - 1] = std::move(token);
    return true;
  }
  added.push_back(std::move(token));
  addedOf[added.back().id] = static_cast<uint32_t>(added.size());
  return true;
}

bool Tokenizer::Data::loadAdded(const JsonValue &list, Error &error) {
  if (!list.isArray())
    return error.badInput("'added_tokens' is not an array");
  for (const JsonValue &item : list.items) {
    const JsonValue *content = item.find("content"), *id = item.find("id");
    if (!content || !content->isString() || !id || !id->isInt() ||
        id->integer < 0 || id->integer >= Vocabulary::maxTokens)
      return error.badInput("an added token without 'content' and 'id'");
    if (content->string.empty())
      continue;
    AddedToken token;
    token.text = content->string;
    token.id = static_cast<uint32_t>(id->integer);
    token.special = flagOf(item, "special", false);
    token.stripLeft = flagOf(item, "lstrip", false);
    token.stripRight = flagOf(item, "rstrip", false);
    token.singleWord = flagOf(item, "single_word", false);
    token.normalized = flagOf(item, "normalized", !token.special);
    if (!setAdded(std::move(token), error))
      return false;
  }
  listAdded();
  return true;
}

void Tokenizer::Data::listAdded() {
  std::vector<const AddedToken *> plain, changed;
  for (const AddedToken &token : added)
    if (!token.pattern.empty())
      (token.normalized ? changed : plain).push_back(&token);
  raw.set(std::move(plain));
  normalized.set(std::move(changed));
}

bool Tokenizer::Data::load(std::string_view json, const TokenizerTable *table,
                           LoadError &error) {
  Parts parts;
  if (!readParts(json, parts, error))
    return false;
  model = TokenModel::load(parts.model, table, error);
  if (!model)
    return false;
  if (table && !takeAdded(*table)) {
    error.message = "the added tokens";
    return false;
  }
  auto read = [&](const Parts::Part &part, const auto &load) {
    Error problem;
    if (part.value.isNull() || load(part.value, problem))
      return true;
    error.message = problem.message;
    error.unsupported = problem.unsupported;
    error.place = part.text.data();
    return false;
  };
  // Added tokens may have to be normalized, so they come after.
  if (!read(parts.normalizer,
            [&](const JsonValue &value, Error &problem) {
              return normalizer.load(value, problem);
            }) ||
      !read(parts.added,
            [&](const JsonValue &value, Error &problem) {
              return loadAdded(value, problem);
            }) ||
      !read(parts.preTokenizer,
            [&](const JsonValue &value, Error &problem) {
              return preTokenizer.load(value, problem);
            }) ||
      !read(parts.postProcessor,
            [&](const JsonValue &value, Error &problem) {
              return postProcessor.load(value, problem);
            }) ||
      !read(parts.decoder,
            [&](const JsonValue &value, Error &problem) {
              return decoder.load(value, problem);
            }) ||
      !read(parts.truncation,
            [&](const JsonValue &value, Error &problem) {
              return postProcessor.loadTruncation(value, problem);
            }) ||
      !read(parts.padding, [&](const JsonValue &value, Error &problem) {
        return postProcessor.loadPadding(value, problem);
      }))
    return false;
  byteLevel = preTokenizer.isByteLevel() || normalizer.isByteLevel();
  return true;
}

bool Tokenizer::Data::pickParts(std::string_view json, std::string &out,
                                Error &error) {
  Parts parts;
  LoadError problem;
  out = "{\"model\":";
  if (!readParts(json, parts, problem) ||
      !TokenModel::pickMembers(parts.model, out, problem))
    return error.badInput(problem.message);
  for (Parts::Part *part : parts.all()) {
    if (part == &parts.added || part->value.isNull())
      continue;
    out += std::string(",\"") + part->key + "\":";
    out.append(part->text.data(), part->text.size());
  }
  out += '}';
  return true;
}

Tokenizer::Tokenizer() : data(new Data()) {}
Tokenizer::~Tokenizer() = default;

std::unique_ptr<Tokenizer> Tokenizer::create(std::string_view json,
                                             Error &error, size_t *where) {
  std::unique_ptr<Tokenizer> tokenizer(new Tokenizer());
  LoadError problem;
  if (tokenizer->data->load(json, /*table=*/nullptr, problem))
    return tokenizer;
  if (where)
    *where = problem.place ? static_cast<size_t>(problem.place - json.data())
                           : json.size();
  error.badInput("tokenizer: " + problem.message);
  error.unsupported = problem.unsupported;
  return nullptr;
}

} // namespace attune::runtime
