//===- Reader.cpp - Typed access to a checked description -------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Reader.h"

#include <cctype>

namespace attune::spec {

bool isIdentifier(std::string_view text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0])))
    return false;
  for (char c : text)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_')
      return false;
  return true;
}

//===----------------------------------------------------------------------===//
// Dims
//===----------------------------------------------------------------------===//

/// Parentheses and dimensions that refer to dimensions, together. Bounds the
/// stack whatever the file says.
static constexpr unsigned maxExpressionDepth = 256;

/// Recursive descent over one expression. The first error ends it.
class ExpressionParser {
public:
  ExpressionParser(Dims &dims, const Value &value, const std::string &pointer)
      : dims(dims), value(value), pointer(pointer), text(value.text) {
    // With escapes in the string, columns inside it are unknown.
    verbatim = dims.reporter.getText().compare(value.offset + 1, text.size(),
                                               text) == 0;
  }

  Known run() {
    Known result = sum();
    skipSpaces();
    if (result && at < text.size())
      return fail("expected an operator, got " + quote(text.substr(at, 1)));
    return result;
  }

private:
  Known fail(const std::string &message) {
    dims.reporter.error(verbatim ? value.offset + 1 + at : value.offset,
                        pointer, message);
    return std::nullopt;
  }
  void skipSpaces() {
    while (at < text.size() && text[at] == ' ')
      ++at;
  }
  char peek() {
    skipSpaces();
    return at < text.size() ? text[at] : '\0';
  }

  Known sum() {
    Known left = product();
    for (char op = peek(); left && (op == '+' || op == '-'); op = peek()) {
      size_t opAt = at++;
      Known right = product();
      if (!right)
        return std::nullopt;
      left = apply(op, *left, *right, opAt);
    }
    return left;
  }
  Known product() {
    Known left = factor();
    for (char op = peek(); left && (op == '*' || op == '/'); op = peek()) {
      size_t opAt = at++;
      Known right = factor();
      if (!right)
        return std::nullopt;
      left = apply(op, *left, *right, opAt);
    }
    return left;
  }
  Known apply(char op, int64_t left, int64_t right, size_t opAt) {
    int64_t result = 0;
    bool overflow = false;
    if (op == '+')
      overflow = __builtin_add_overflow(left, right, &result);
    else if (op == '-')
      overflow = __builtin_sub_overflow(left, right, &result);
    else if (op == '*')
      overflow = __builtin_mul_overflow(left, right, &result);
    else if (right == 0 || (right != -1 && left % right != 0)) {
      at = opAt;
      return fail(right == 0
                      ? "division by zero"
                      : std::to_string(left) + " / " + std::to_string(right) +
                            " is not a whole number");
    } else if (right == -1)
      overflow = __builtin_sub_overflow(int64_t(0), left, &result);
    else
      result = left / right;
    if (overflow) {
      at = opAt;
      return fail("overflows 64 bits");
    }
    return result;
  }
  Known factor() {
    char c = peek();
    if (c == '(' || c == '-') {
      if (dims.depth >= maxExpressionDepth)
        return fail("nested deeper than " + std::to_string(maxExpressionDepth) +
                    " levels");
      size_t openAt = at++;
      ++dims.depth;
      Known result = c == '(' ? sum() : factor();
      --dims.depth;
      if (!result)
        return std::nullopt;
      if (c == '-')
        return apply('-', 0, *result, openAt);
      if (peek() != ')')
        return fail("expected ')'");
      ++at;
      return result;
    }
    if (std::isdigit(static_cast<unsigned char>(c)))
      return literal();
    if (std::isalpha(static_cast<unsigned char>(c)) || c == '_') {
      size_t begin = at;
      while (at < text.size() &&
             (std::isalnum(static_cast<unsigned char>(text[at])) ||
              text[at] == '_'))
        ++at;
      std::string name = text.substr(begin, at - begin);
      size_t offset = verbatim ? value.offset + 1 + begin : value.offset;
      return dims.get(name, offset, pointer);
    }
    return fail(c == '\0' ? std::string("expected a number or a dimension")
                          : "expected a number or a dimension, got " +
                                quote(text.substr(at, 1)));
  }
  Known literal() {
    int64_t result = 0;
    for (;
         at < text.size() && std::isdigit(static_cast<unsigned char>(text[at]));
         ++at)
      if (__builtin_mul_overflow(result, int64_t(10), &result) ||
          __builtin_add_overflow(result, int64_t(text[at] - '0'), &result))
        return fail("overflows 64 bits");
    return result;
  }

  Dims &dims;
  const Value &value;
  const std::string &pointer;
  const std::string &text;
  bool verbatim;
  size_t at = 0;
};

Dims::Dims(const Value *object, const BadValues &bad, Reporter &reporter)
    : bad(bad), reporter(reporter) {
  if (!object)
    return;
  for (const Value::Member &member : object->members) {
    if (!isIdentifier(member.key)) {
      reporter.error(member.keyOffset, child("/dims", member.key),
                     "a dimension's name is letters, digits and underscores, "
                     "not starting with a digit");
      continue;
    }
    if (entries.emplace(member.key, Entry{&member.value}).second)
      names.push_back(member.key);
  }
}

void Dims::evaluateAll() {
  for (const std::string &name : names)
    get(name, 0, "");
}

Known Dims::get(const std::string &name, size_t offset,
                const std::string &pointer) {
  auto found = entries.find(name);
  if (found == entries.end()) {
    std::string near = nearest(name, names);
    reporter.error(offset, pointer,
                   "unknown dimension " + quote(name) +
                       (near.empty() ? "; write a number, or name it in 'dims'"
                                     : "; did you mean '" + near + "'?"));
    return std::nullopt;
  }
  Entry &entry = found->second;
  switch (entry.state) {
  case State::Done:
    return entry.result;
  case State::Failed:
    return std::nullopt;
  case State::Active:
    reporter.error(offset, pointer,
                   "dimension " + quote(name) + " is defined by itself");
    return std::nullopt;
  case State::New:
    break;
  }
  if (depth >= maxExpressionDepth) {
    reporter.error(offset, pointer,
                   "dimensions refer to each other more than " +
                       std::to_string(maxExpressionDepth) + " levels deep");
    return std::nullopt;
  }
  entry.state = State::Active;
  ++depth;
  Known result = evaluate(*entry.value, child("/dims", name), 0, maxInteger);
  --depth;
  entry.state = result ? State::Done : State::Failed;
  if (result) {
    entry.result = *result;
    values[name] = *result;
  }
  return result;
}

Known Dims::evaluate(const Value &value, const std::string &pointer,
                     int64_t minimum, int64_t maximum) {
  if (bad.count(&value))
    return std::nullopt;
  if (value.isNumber())
    return static_cast<int64_t>(value.real);
  Known result = ExpressionParser(*this, value, pointer).run();
  if (result && (*result < minimum || *result > maximum)) {
    reporter.error(value.offset, pointer,
                   "is " + std::to_string(*result) +
                       ", out of range: expected " + std::to_string(minimum) +
                       " to " + std::to_string(maximum));
    return std::nullopt;
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Object
//===----------------------------------------------------------------------===//

const Value *Object::get(std::string_view key) const {
  const Value *found = value->find(key);
  return found && !context->bad.count(found) ? found : nullptr;
}

/// The integer among the forms that a key may have.
static const Type *integerForm(const Type &type) {
  if (type.form == Type::Form::Integer)
    return &type;
  for (const Type &part : type.parts)
    if (part.form == Type::Form::Integer)
      return &part;
  return nullptr;
}

Known Object::integer(std::string_view key, Known fallback) const {
  if (!has(key))
    return fallback;
  const Value *found = get(key);
  const Type *form = integerForm(type->find(key)->type);
  if (!found || !form)
    return std::nullopt;
  return context->dims.evaluate(*found, child(pointer, key), form->minimum,
                                form->maximum);
}

double Object::number(std::string_view key, double fallback) const {
  const Value *found = get(key);
  return found ? found->real : fallback;
}

bool Object::boolean(std::string_view key, bool fallback) const {
  const Value *found = get(key);
  return found && found->kind == Value::Kind::Boolean ? found->boolean
                                                      : fallback;
}

std::string Object::string(std::string_view key, std::string fallback) const {
  const Value *found = get(key);
  return found && found->isString() ? found->text : fallback;
}

Known Object::word(std::string_view key) const {
  const Value *found = get(key);
  if (!found || !found->isString())
    return std::nullopt;
  const Type *form = &type->find(key)->type;
  if (form->form == Type::Form::Either)
    for (const Type &part : form->parts)
      if (part.form == Type::Form::Choice)
        form = &part;
  for (size_t i = 0; i < form->words.size(); ++i)
    if (form->words[i] == found->text)
      return static_cast<int64_t>(i);
  return std::nullopt;
}

/// The object among the forms that a value may have.
static const ObjectType *objectForm(const Type &type) {
  if (type.form == Type::Form::Object)
    return type.object;
  for (const Type &part : type.parts)
    if (const ObjectType *found = objectForm(part))
      return found;
  return nullptr;
}

std::optional<Object> Object::object(std::string_view key) const {
  const Value *found = get(key);
  if (!found || !found->isObject())
    return std::nullopt;
  return Object(*context, *found, child(pointer, key),
                *objectForm(type->find(key)->type));
}

std::vector<Object> Object::objects(std::string_view key) const {
  std::vector<Object> result;
  const Value *found = get(key);
  if (!found)
    return result;
  std::string at = child(pointer, key);
  const ObjectType &of = *objectForm(type->find(key)->type);
  for (size_t i = 0; i < found->elements.size(); ++i)
    result.emplace_back(*context, found->elements[i], child(at, i), of);
  return result;
}

std::vector<std::pair<std::string, Object>>
Object::namedObjects(std::string_view key) const {
  std::vector<std::pair<std::string, Object>> result;
  const Value *found = get(key);
  if (!found)
    return result;
  std::string at = child(pointer, key);
  const ObjectType &of = *objectForm(type->find(key)->type);
  for (const Value::Member &member : found->members)
    result.emplace_back(
        member.key, Object(*context, member.value, child(at, member.key), of));
  return result;
}

void Object::error(std::string_view key, const std::string &message) const {
  const Value *found = value->find(key);
  if (!found)
    return error(message);
  context->reporter.error(found->offset, child(pointer, key), message);
}

void Object::error(const std::string &message) const {
  context->reporter.error(value->offset, pointer, message);
}

void Object::missing(const std::string &key, const std::string &what) const {
  if (!type->isMisspelt(key, *value))
    error("missing key '" + key + "': " + what);
}

} // namespace attune::spec
