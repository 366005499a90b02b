//===- JsonFile.h - JSON files beside config.json ---------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_IMPORT_HUGGINGFACE_JSONFILE_H
#define ATTUNE_LIB_IMPORT_HUGGINGFACE_JSONFILE_H

#include "attune/Spec/Json.h"

#include <memory>
#include <optional>
#include <string>

namespace attune::hf {

/// A JSON file and what reports about it.
struct JsonFile {
  explicit JsonFile(std::shared_ptr<const SourceFile> file,
                    DiagnosticEngine &diags)
      : lines(file), reporter(lines, diags),
        root(spec::parseJson(*file, reporter, spec::JsonDialect::Python)) {}

  /// Whether it is an object without a mistake; if not, that is reported.
  bool isObject() {
    if (root && !root->isObject())
      reporter.error(root->offset, "",
                     std::string("expected an object, found ") +
                         spec::describe(root->kind));
    return root && !reporter.getNumErrors();
  }

  spec::LineTable lines;
  spec::Reporter reporter;
  std::optional<spec::Value> root;
};

} // namespace attune::hf

#endif // ATTUNE_LIB_IMPORT_HUGGINGFACE_JSONFILE_H
