//===- QuantizationRules.h - Which matrix gets which bits -------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_TRANSFORMS_QUANTIZATIONRULES_H
#define ATTUNE_TRANSFORMS_QUANTIZATIONRULES_H

#include "attune/Transforms/NameRules.h"
#include "attune/Weights/StoredForm.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>
#include <vector>

namespace attune {

/// The form of a matrix's numbers; one without bits leaves them as they are.
struct QuantizedForm : StoredForm {
  QuantizedForm() = default;
  QuantizedForm(StoredForm form) : StoredForm(form) {}

  bool stored = false; ///< whatever form the checkpoint has

  bool operator==(const QuantizedForm &other) const {
    return StoredForm::operator==(other) && stored == other.stored;
  }
};

/// The words of `--quantize`, separated by commas. Each is a form (`int8`,
/// `int4`, `int4:g64`, `int4:g32:asym`, `mxfp4`, `none`) or a form for names
/// that match a pattern
/// (`*.ffn.*=int4:g32`). The first pattern that matches decides; a form without
/// a pattern is for what no pattern matches. For vocabularies, `int4` without a
/// pattern means int8: rounded to 4 bits they cost as much as all other layers
/// together. Routers keep their numbers without a pattern: they are few, and
/// another expert is not a small error.
class QuantizationRules {
public:
  /// The use of a matrix, where that makes a difference.
  enum class Use { Layer, Vocabulary, Router };

  /// Nothing, with a `problem`, if a word is none of these.
  static std::optional<QuantizationRules>
  parse(llvm::ArrayRef<std::string> words, std::string &problem);
  /// The same of one text.
  static std::optional<QuantizationRules> parse(llvm::StringRef text,
                                                std::string &problem);

  /// Whether any matrix may get fewer bits than a checkpoint has.
  bool quantizes() const;
  /// The form of a weight that goes by `names`. A pattern may leave out the end
  /// `.weight` of a name.
  QuantizedForm lookup(llvm::ArrayRef<std::string> names, Use use);
  /// A form by its name, as in "int4:g64"; nothing if it is none.
  static std::optional<QuantizedForm> parseForm(llvm::StringRef text);
  /// The patterns that matched nothing so far.
  std::vector<std::string> unused() const { return rules.unused(); }
  /// Their words, in order.
  const std::vector<std::string> &words() const { return text; }
  /// Kinds of numbers: "int4", or "int4 and int8".
  std::string describe() const;

private:
  NameRules<QuantizedForm> rules;
  QuantizedForm others;
  std::vector<std::string> text;
};

} // namespace attune

#endif // ATTUNE_TRANSFORMS_QUANTIZATIONRULES_H
