//===- Filters.h - What may stand behind "|" --------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_TEMPLATE_FILTERS_H
#define ATTUNE_LIB_RUNTIME_TEMPLATE_FILTERS_H

#include "Interpreter.h"

namespace attune::runtime::jinja {

/// A call of a filter.
struct FilterCall {
  Interpreter &in;
  std::string_view name;
  const Value &input;
  const Arguments &args;
  Value &out;

  std::string what() const { return "the filter '" + std::string(name) + "'"; }
};

struct FilterEntry {
  std::string_view name;
  bool (*apply)(const FilterCall &call);
};

/// Whether there are none, which most filters want; else the error is reported.
bool noArguments(const FilterCall &call);

/// Filters of texts and numbers, of sequences, of HTML, and those that break
/// lines; null if there is none of the name.
const FilterEntry *findTextFilter(std::string_view name);
const FilterEntry *findSequenceFilter(std::string_view name);
const FilterEntry *findHtmlFilter(std::string_view name);
const FilterEntry *findLayoutFilter(std::string_view name);

} // namespace attune::runtime::jinja

#endif // ATTUNE_LIB_RUNTIME_TEMPLATE_FILTERS_H
