//===- ChatTemplate.h - Templates that lay out a conversation ---*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A model that was trained on conversations wants them laid out in its own way,
// and its publisher says how with a template in the language of Jinja2. This is
// an interpreter of that language as the transformers library configures it:
// sandboxed, immutable, without escaping, with trim_blocks and lstrip_blocks,
// loop controls and the filter tojson. Forbidden operations there (reading
// files, changing lists in place) are errors here as well.
//
// Templates are not trusted: steps, nesting, memory and output are bounded.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_RUNTIME_CHATTEMPLATE_H
#define ATTUNE_RUNTIME_CHATTEMPLATE_H

#include "attune/Runtime/Json.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace attune::runtime {

namespace jinja {
struct Node;
} // namespace jinja

/// An error in a template, and its place. Lines and columns count from 1,
/// columns in bytes; line 0 means the whole template.
struct TemplateProblem {
  std::string message;
  unsigned line = 0, column = 0;
};

struct TemplateLimits {
  uint64_t steps = 5'000'000;            ///< evaluated operations
  uint64_t memory = uint64_t(256) << 20; ///< bytes of values, all together
  uint64_t output = uint64_t(32) << 20;  ///< bytes of the result
};

class ChatTemplate {
public:
  /// Null if the text is no template; `problem` says why.
  static std::unique_ptr<ChatTemplate> parse(std::string_view source,
                                             TemplateProblem &problem);
  ~ChatTemplate();

  /// Renders with the members of the object `variables`. A template may refuse
  /// them (raise_exception); its words are the message then.
  bool render(const JsonValue &variables, std::string &out,
              TemplateProblem &problem,
              const TemplateLimits &limits = TemplateLimits()) const;

  /// Whether the template reads a variable of this name anywhere.
  bool mentions(std::string_view variable) const;
  /// Whether `text` stands anywhere in the template.
  bool contains(std::string_view text) const {
    return source.find(text) != std::string::npos;
  }

  /// "LINE:COLUMN: message", then the line of the template and a caret.
  std::string describe(const TemplateProblem &problem) const;
  /// The same for a template that did not parse.
  static std::string describe(std::string_view source,
                              const TemplateProblem &problem);

private:
  ChatTemplate();
  std::string source; ///< with "\n" line ends
  std::unique_ptr<jinja::Node> root;
};

} // namespace attune::runtime

#endif // ATTUNE_RUNTIME_CHATTEMPLATE_H
