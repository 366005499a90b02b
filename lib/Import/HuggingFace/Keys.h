//===- Keys.h - Meanings of keys of config.json -----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_IMPORT_HUGGINGFACE_KEYS_H
#define ATTUNE_LIB_IMPORT_HUGGINGFACE_KEYS_H

#include "attune/Spec/Json.h"

#include <string>
#include <string_view>
#include <vector>

namespace attune::hf {

enum class KeyType {
  Size,         ///< a whole number from 1
  Count,        ///< a whole number from 0
  Number,       ///< above 0
  NumberOrNull, ///< null: there is none
  Flag,
  Text,
  Activation, ///< the name of one
  TokenIds,   ///< one or several
  Structure,  ///< an object or an array
};

/// A key that changes numbers. It means the same in every class that reads it.
struct KeyMeaning {
  const char *name;
  KeyType type;
  const char *meaning;
};

/// The keys of one published configuration class.
struct ClassKeys {
  const char *modelType;
  /// Keys that change numbers, separated by spaces, each with "=" and its
  /// default unless that is derived from other keys or there is none. The
  /// importer holds the same default; a test compares the two.
  const char *read;
  /// Keys of no consequence here: dropout, initialisation, bookkeeping, and
  /// keys in published files that the class does not read.
  const char *ofNoConsequence;
};

const std::vector<KeyMeaning> &keyMeanings();
/// Keys of decoders, of encoders, of pairs of both, and of all classes.
std::vector<ClassKeys> keysOfDecodersAToI();
std::vector<ClassKeys> keysOfDecodersJToZ();
std::vector<ClassKeys> keysOfEncoders();
const std::vector<ClassKeys> &classKeys();

/// The names in a list of `ClassKeys`, without the defaults.
std::vector<std::string> namesIn(std::string_view list);
/// All keys of the class of `modelType`; empty for one that a plugin brought.
std::vector<std::string> keysOfClass(std::string_view modelType);

/// Keys that all classes share, and those that trainers and hubs leave behind.
const std::vector<std::string> &commonKeys();

/// Whether the name of a key that nobody knows says that it may change numbers,
/// and its value is not one that switches nothing on. `length` is the longest
/// sequence, or 0: a window of that size hides nothing.
bool mayChangeNumbers(std::string_view key, const spec::Value &value,
                      double length);
/// Whether the value is null, false, 0, "", [] or the like, or one that changes
/// nothing for a key of this name: a scale of 1, an infinite cap.
bool changesNothing(std::string_view key, const spec::Value &value,
                    double length);

} // namespace attune::hf

#endif // ATTUNE_LIB_IMPORT_HUGGINGFACE_KEYS_H
