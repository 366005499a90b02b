//===- Text.h - Texts as Python and Jinja write them ------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_TEMPLATE_TEXT_H
#define ATTUNE_LIB_RUNTIME_TEMPLATE_TEXT_H

#include "Interpreter.h"

namespace attune::runtime::jinja {

/// The shortest text that reads back as the same double, as repr(float).
std::string formatReal(double value);
/// repr(str)
void appendQuoted(std::string &out, std::string_view text);
void escapeHtml(Interpreter::Builder &out, std::string_view text);

/// Case as Python's str methods have it, for all of Unicode.
std::string toUpper(std::string_view text);
std::string toLower(std::string_view text);
std::string toTitle(std::string_view text);
std::string capitalize(std::string_view text);
std::string swapCase(std::string_view text);

enum class CharacterClass : uint8_t { Cased, Alpha, Printable };
bool isIn(CharacterClass what, uint32_t c);
/// Whether a cased character has a lower case of its own.
bool isUpper(uint32_t c);

/// Arguments of the filter tojson, those of json.dumps.
struct JsonStyle {
  bool ascii = false, sortKeys = false, indented = false;
  std::string indent, itemSeparator = ", ", keySeparator = ": ";
};

} // namespace attune::runtime::jinja

#endif // ATTUNE_LIB_RUNTIME_TEMPLATE_TEXT_H
