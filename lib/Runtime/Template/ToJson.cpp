//===- ToJson.cpp - The filter tojson -------------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Byte for byte what json.dumps of Python writes: models are trained on it.
//
//===----------------------------------------------------------------------===//

#include "Text.h"

#include "attune/Runtime/Utf8.h"

#include <cmath>
#include <cstdio>

namespace attune::runtime::jinja {

static void appendJsonText(Interpreter::Builder &out, std::string_view text,
                           bool ascii) {
  out.add("\"");
  while (!text.empty()) {
    uint32_t c = 0;
    unsigned n = decodeUtf8(text, c);
    char buffer[16];
    if (!n) {
      c = 0xFFFD;
      n = 1;
    }
    const char *escape = c == '"'    ? "\\\""
                         : c == '\\' ? "\\\\"
                         : c == '\n' ? "\\n"
                         : c == '\r' ? "\\r"
                         : c == '\t' ? "\\t"
                         : c == '\f' ? "\\f"
                         : c == '\b' ? "\\b"
                                     : nullptr;
    if (escape) {
      out.add(escape);
    } else if (c < 0x20 || (ascii && c >= 0x7F && c < 0x10000 && c != 0x7F)) {
      std::snprintf(buffer, sizeof(buffer), "\\u%04x", c);
      out.add(buffer);
    } else if (ascii && c >= 0x10000) {
      std::snprintf(buffer, sizeof(buffer), "\\u%04x\\u%04x",
                    0xD800 + ((c - 0x10000) >> 10),
                    0xDC00 + ((c - 0x10000) & 0x3FF));
      out.add(buffer);
    } else {
      out.add(text.substr(0, n));
    }
    text.remove_prefix(n);
  }
  out.add("\"");
}

static std::string realToJson(double value) {
  if (std::isnan(value))
    return "NaN";
  if (std::isinf(value))
    return value < 0 ? "-Infinity" : "Infinity";
  return formatReal(value);
}

/// A member's name; false if JSON has none like it.
static bool keyToJson(const Value &key, std::string &out) {
  switch (key.kind()) {
  case Kind::String:
    out = std::string(key.text());
    return true;
  case Kind::Bool:
    out = key.boolean() ? "true" : "false";
    return true;
  case Kind::Int:
    out = std::to_string(key.integer());
    return true;
  case Kind::Float:
    out = realToJson(key.real());
    return true;
  case Kind::None:
    out = "null";
    return true;
  default:
    return false;
  }
}

bool Interpreter::toJson(Builder &out, const Value &value,
                         const JsonStyle &style, unsigned level) {
  if (level > 200)
    return fail("tojson: nested deeper than 200 levels");
  if (!step())
    return false;
  auto breakLine = [&](unsigned depth) {
    if (!style.indented)
      return;
    out.add("\n");
    for (unsigned i = 0; i < depth; ++i)
      out.add(style.indent);
  };
  switch (value.kind()) {
  case Kind::None:
    out.add("null");
    return true;
  case Kind::Bool:
    out.add(value.boolean() ? "true" : "false");
    return true;
  case Kind::Int:
    out.add(std::to_string(value.integer()));
    return true;
  case Kind::Float:
    out.add(realToJson(value.real()));
    return true;
  case Kind::String:
    appendJsonText(out, value.text(), style.ascii);
    return step(0);
  case Kind::List:
  case Kind::Tuple: {
    const std::vector<Value> &items = value.list().items;
    out.add("[");
    for (size_t i = 0; i < items.size(); ++i) {
      out.add(i ? std::string_view(style.itemSeparator) : "");
      breakLine(level + 1);
      if (!toJson(out, items[i], style, level + 1))
        return false;
    }
    if (!items.empty())
      breakLine(level);
    out.add("]");
    return step(0);
  }
  case Kind::Dict: {
    const DictObject &dict = value.dict();
    std::vector<size_t> sequence(dict.keys.size());
    for (size_t i = 0; i < sequence.size(); ++i)
      sequence[i] = i;
    // Insertion keeps the comparison from being called without bounds.
    for (size_t i = 1; style.sortKeys && i < sequence.size(); ++i)
      for (size_t j = i; j > 0; --j) {
        int sign;
        if (!step() || !order(dict.keys[sequence[j]],
                              dict.keys[sequence[j - 1]], "<", sign))
          return false;
        if (sign >= 0)
          break;
        std::swap(sequence[j], sequence[j - 1]);
      }
    out.add("{");
    for (size_t i = 0; i < sequence.size(); ++i) {
      std::string key;
      if (!keyToJson(dict.keys[sequence[i]], key))
        return fail(std::string("keys must be str, int, float, bool or None, "
                                "not ") +
                    dict.keys[sequence[i]].typeName());
      out.add(i ? std::string_view(style.itemSeparator) : "");
      breakLine(level + 1);
      appendJsonText(out, key, style.ascii);
      out.add(style.keySeparator);
      if (!toJson(out, dict.values[sequence[i]], style, level + 1))
        return false;
    }
    if (!sequence.empty())
      breakLine(level);
    out.add("}");
    return step(0);
  }
  default:
    return fail(std::string("Object of type ") + value.typeName() +
                " is not JSON serializable");
  }
}

} // namespace attune::runtime::jinja
