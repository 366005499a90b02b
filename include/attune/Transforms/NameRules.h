//===- NameRules.h - What patterns of names say -----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Options such as --quantize and --low-rank say something of weights by
// patterns of their names. The first pattern that matches decides.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_TRANSFORMS_NAMERULES_H
#define ATTUNE_TRANSFORMS_NAMERULES_H

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/GlobPattern.h"

#include <memory>
#include <string>
#include <vector>

namespace attune {

template <typename Value> class NameRules {
public:
  /// False, with a `problem` that names the `option`, if `pattern` is none.
  bool add(llvm::StringRef pattern, const Value &value, llvm::StringRef option,
           std::string &problem) {
    // A glob refers to its text.
    auto text = std::make_shared<const std::string>(pattern.str());
    llvm::Expected<llvm::GlobPattern> glob = llvm::GlobPattern::create(*text);
    if (!glob || pattern.empty()) {
      problem = "'" + pattern.str() + "' of " + option.str() +
                " is no pattern of names" +
                (glob ? "" : ": " + llvm::toString(glob.takeError()));
      return false;
    }
    rules.push_back({std::move(text), std::move(*glob), value});
    return true;
  }

  /// The value of the rules for a weight that goes by `names`; null: none. A
  /// pattern may leave out the end `.weight` of a name.
  const Value *lookup(llvm::ArrayRef<std::string> names) {
    for (Rule &rule : rules)
      if (llvm::any_of(names, [&](llvm::StringRef name) {
            return rule.glob.match(name) ||
                   (name.consume_back(".weight") && rule.glob.match(name));
          })) {
        rule.used = true;
        return &rule.value;
      }
    return nullptr;
  }

  /// The patterns that matched nothing so far.
  std::vector<std::string> unused() const {
    std::vector<std::string> result;
    for (const Rule &rule : rules)
      if (!rule.used)
        result.push_back(*rule.pattern);
    return result;
  }

  bool empty() const { return rules.empty(); }
  template <typename Predicate> bool anyOf(Predicate predicate) const {
    return llvm::any_of(
        rules, [&](const Rule &rule) { return predicate(rule.value); });
  }

private:
  struct Rule {
    std::shared_ptr<const std::string> pattern;
    llvm::GlobPattern glob;
    Value value;
    bool used = false;
  };
  std::vector<Rule> rules;
};

/// The words of an option's text, which commas separate.
inline std::vector<std::string> splitWords(llvm::StringRef text) {
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, ',');
  std::vector<std::string> words;
  for (llvm::StringRef part : parts)
    words.push_back(part.str());
  return words;
}

} // namespace attune

#endif // ATTUNE_TRANSFORMS_NAMERULES_H
