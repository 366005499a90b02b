//===- Flags.h - The verbs and flags of the command line --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_DRIVER_OPTIONS_FLAGS_H
#define ATTUNE_LIB_DRIVER_OPTIONS_FLAGS_H

#include "Options.h"

namespace attune::driver {

struct VerbInfo {
  Verb verb;
  llvm::StringRef arguments; ///< as in "MODEL -o OUT"
  llvm::StringRef summary;   ///< one line of `attune --help`
  llvm::StringRef about;     ///< the text of `attune VERB --help`
};
llvm::ArrayRef<VerbInfo> getVerbs();

struct Flag {
  llvm::StringRef name; ///< without dashes
  /// The name of the value; empty: a switch. "[=N]": it may be left out.
  llvm::StringRef value;
  unsigned verbs; ///< a bit per verb that has the flag
  /// Stores the value. If it is no good `problem` is the whole message.
  bool (*apply)(const Flag &flag, llvm::StringRef value, Options &options,
                std::string &problem);
  llvm::StringRef help;
  llvm::StringRef longName = {}; ///< of a flag of one letter; may be empty

  bool takesValue() const { return !value.empty(); }
  bool mayOmitValue() const { return value.starts_with("["); }
  bool isOf(Verb verb) const { return verbs >> unsigned(verb) & 1; }
  std::string spelling() const {
    return (name.size() == 1 ? "-" : "--") + name.str();
  }
  bool isSpelled(llvm::StringRef text) const {
    return text == spelling() ||
           (text.consume_front("--") && !longName.empty() && text == longName);
  }
};
llvm::ArrayRef<Flag> getFlags();

/// Rules between flags, once all are known.
bool checkOptions(Options &options, std::string &problem);

/// Picks one of the words; else `problem` is a message about the flag that
/// names the nearest.
std::optional<size_t> pickWord(llvm::StringRef flag, llvm::StringRef value,
                               llvm::ArrayRef<llvm::StringRef> words,
                               std::string &problem);

} // namespace attune::driver

#endif // ATTUNE_LIB_DRIVER_OPTIONS_FLAGS_H
