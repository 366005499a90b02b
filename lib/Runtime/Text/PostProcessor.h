//===- PostProcessor.h - Tokens around a text -------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_TEXT_POSTPROCESSOR_H
#define ATTUNE_LIB_RUNTIME_TEXT_POSTPROCESSOR_H

#include "attune/Runtime/Error.h"
#include "attune/Runtime/Json.h"
#include "attune/Runtime/Tokenizer.h"

#include <vector>

namespace attune::runtime {

/// What "post_processor", "truncation" and "padding" of a tokenizer.json say.
class PostProcessor {
public:
  bool load(const JsonValue &json, Error &error);
  bool loadTruncation(const JsonValue &json, Error &error);
  bool loadPadding(const JsonValue &json, Error &error);

  /// Puts the ids of one text, or of two, together. `second` may be null.
  bool apply(std::vector<int64_t> first, const std::vector<int64_t> *second,
             const EncodeOptions &options, Encoding &encoding,
             Error &error) const;

private:
  struct Part {
    int sequence; ///< 0 or 1: a text; -1: `ids`
    int64_t typeId;
    std::vector<int64_t> ids;
  };
  bool hasTemplate = false;
  bool typesWithoutSpecial = true; ///< types as the template says, even then
  std::vector<Part> single, pair;

  enum class Strategy : uint8_t { LongestFirst, OnlyFirst, OnlySecond };
  bool truncates = false, truncatesLeft = false;
  size_t maxLength = 0;
  Strategy strategy = Strategy::LongestFirst;

  bool pads = false, padsLeft = false;
  size_t padLength = 0, padMultiple = 0;
  int64_t padId = 0, padType = 0;

  bool loadStep(const JsonValue &json, unsigned depth, Error &error);
  bool loadTemplate(const JsonValue &parts, const JsonValue &specials,
                    const char *name, std::vector<Part> &out, Error &error);
  bool loadEnds(const JsonValue &json, bool roberta, Error &error);
  bool truncate(std::vector<int64_t> &first, std::vector<int64_t> *second,
                size_t added, Error &error) const;
  void pad(Encoding &encoding) const;
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_TEXT_POSTPROCESSOR_H
