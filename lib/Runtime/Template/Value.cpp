//===- Value.cpp - What templates compute with ----------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Value.h"

namespace attune::runtime::jinja {

const char *Value::typeName() const {
  switch (kind_) {
  case Kind::Undefined:
    return "Undefined";
  case Kind::None:
    return "NoneType";
  case Kind::Bool:
    return "bool";
  case Kind::Int:
    return "int";
  case Kind::Float:
    return "float";
  case Kind::String:
    return "str";
  case Kind::List:
    return "list";
  case Kind::Tuple:
    return "tuple";
  case Kind::Generator:
    return "generator";
  case Kind::View:
    return as<ListObject>().view;
  case Kind::Range:
    return "range";
  case Kind::Dict:
    return "dict";
  case Kind::Namespace:
    return "Namespace";
  case Kind::Macro:
    return "Macro";
  case Kind::Method:
    return "builtin_function_or_method";
  case Kind::Loop:
    return "LoopContext";
  case Kind::Cycler:
    return "Cycler";
  case Kind::Joiner:
    return "Joiner";
  }
  return "object";
}

std::string UndefinedObject::message() const {
  if (name.empty())
    return hint;
  if (owner.empty())
    return "'" + name + "' is undefined";
  return "'" + owner + " object' has no attribute '" + name + "'";
}

int64_t RangeObject::size() const {
  if (step < 0 ? start <= stop : start >= stop)
    return 0;
  // Unsigned, because the way from one end to the other may be as long as all
  // numbers together; in 64 bits, because products are linked without libgcc.
  uint64_t from = static_cast<uint64_t>(start),
           to = static_cast<uint64_t>(stop);
  uint64_t span = step < 0 ? from - to : to - from;
  uint64_t by = step < 0 ? -static_cast<uint64_t>(step) : step;
  return static_cast<int64_t>(
      std::min<uint64_t>((span - 1) / by + 1, INT64_MAX));
}

bool truth(const Value &value) {
  switch (value.kind()) {
  case Kind::Undefined:
  case Kind::None:
    return false;
  case Kind::Bool:
  case Kind::Int:
    return value.integer() != 0;
  case Kind::Float:
    return value.real() != 0;
  case Kind::String:
    return !value.text().empty();
  case Kind::List:
  case Kind::Tuple:
  case Kind::View:
    return !value.list().items.empty();
  case Kind::Dict:
    return !value.dict().keys.empty();
  case Kind::Range:
    return value.as<RangeObject>().size() > 0;
  case Kind::Loop:
    return !value.as<LoopObject>().items.empty();
  default:
    return true;
  }
}

int64_t countCharacters(std::string_view text) {
  int64_t count = 0;
  for (char c : text)
    count += (c & 0xC0) != 0x80;
  return count;
}

size_t characterOffset(std::string_view text, int64_t index) {
  size_t at = 0;
  for (; at < text.size(); ++at)
    if ((text[at] & 0xC0) != 0x80 && index-- == 0)
      return at;
  return text.size();
}

} // namespace attune::runtime::jinja
