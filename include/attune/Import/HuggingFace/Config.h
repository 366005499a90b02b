//===- Config.h - config.json, every key accounted for ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_IMPORT_HUGGINGFACE_CONFIG_H
#define ATTUNE_IMPORT_HUGGINGFACE_CONFIG_H

#include "attune/Spec/Json.h"
#include "attune/Spec/Spec.h"
#include "attune/Weights/Checkpoint.h"

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace attune::hf {

/// The largest number, and the largest "repeat", of a description.
constexpr int64_t maxSize = INT32_MAX;
constexpr int64_t maxLayers = 100000;
/// The largest config.json; published ones have some kilobytes.
constexpr uint64_t maxConfigBytes = 64u << 20;

/// Findings about the keys of one file, including all objects within it.
struct KeyReport {
  /// Names up to this many keys that are passed over, and counts the others.
  static constexpr size_t kNamed = 40;
  /// `--ignore-config-key`: names, or paths as "rope_scaling/factor". Such a
  /// key counts as absent.
  std::vector<std::string> ignored;
  std::set<std::string> foundIgnored; ///< those of them that the file has
  /// Keys that nobody knows and that are passed over, with their places.
  std::vector<std::pair<std::string, SourceLocation>> passedOver;
  /// Places and messages that were shown.
  std::set<std::pair<std::string, std::string>> errors;
};

/// An object of config.json. Reading a key marks it; `finish` reports the keys
/// that nobody knows. A key that is null counts as absent: Hugging Face writes
/// null where its own default applies.
class Config {
public:
  Config(const spec::Value &object, std::string pointer,
         spec::Reporter &reporter, KeyReport &report)
      : object(object), pointer(std::move(pointer)), reporter(reporter),
        report(report) {}
  /// The config of the object `value` at `key`.
  Config inner(const spec::Value &value, const std::string &key) const {
    return Config(value, pointer + "/" + key, reporter, report);
  }

  /// The value, or null if it is absent or null. Marks the key.
  const spec::Value *get(std::string_view key);
  /// The same without marking it.
  const spec::Value *peek(std::string_view key) const;
  /// The first of `keys` that is there (names that changed between versions);
  /// marks all.
  std::string_view oneOf(std::initializer_list<std::string_view> keys);

  /// A whole number from 1 to `most`. Without `fallback` it must be there.
  int64_t integer(std::string_view key, std::optional<int64_t> fallback,
                  int64_t most = maxSize);
  int64_t layers(std::string_view key, int64_t fallback) {
    return integer(key, fallback, maxLayers);
  }
  /// A whole number from 0 on.
  int64_t count(std::string_view key, int64_t fallback);
  /// A finite number above zero; an integer will do.
  double real(std::string_view key, std::optional<double> fallback);
  /// A number above zero; null says that there is none.
  std::optional<double> cap(std::string_view key,
                            std::optional<double> fallback);
  /// The key is there and null, where that differs from its being absent.
  bool isNull(std::string_view key) const;
  bool flag(std::string_view key, bool fallback);
  std::string text(std::string_view key, const std::string &fallback);
  std::optional<spec::Activation> activation(std::string_view key,
                                             const std::string &fallback);
  /// The activation of this name, which came from `key`.
  std::optional<spec::Activation> activationNamed(const std::string &name,
                                                  std::string_view key);
  /// A token id or a list of them.
  std::vector<int64_t> ids(std::string_view key);

  /// Keys that may have any value.
  void ignore(std::initializer_list<const char *> keys);
  /// A key that only has an effect when true, one that is not supported.
  void mustBeFalse(std::string_view key, const std::string &why);
  void mustBeTrue(std::string_view key, const std::string &why);
  /// Reports if heads of one size cannot make up the width.
  void mustShare(std::string_view headsKey, int64_t heads,
                 std::string_view widthKey, int64_t width);
  /// Labels of a head: as many as `id2label` has, else `num_labels`, else 2.
  int64_t labels();

  /// Reports an error at the key's value, or at the object if it is absent or
  /// the key is empty.
  void error(std::string_view key, const std::string &message);
  SourceLocation locate(std::string_view key) const;
  SourceLocation locate() const { return reporter.locate(object.offset); }
  std::string child(std::string_view key) const {
    return spec::child(pointer, key);
  }
  spec::Reporter &getReporter() { return reporter; }
  bool hasErrors() const { return reporter.getNumErrors() != 0; }

  /// Reports the keys that were not read and that are not among `known` nor
  /// common to all classes: an error where name and value say that numbers may
  /// be lost, else an entry of `KeyReport::passedOver`. Within a rotary
  /// embedding's object every name says so. Nothing is reported where `known`
  /// is empty and errors kept the importer from reading all keys.
  void finish(const std::string &architecture,
              const std::vector<std::string> &known = {});

private:
  /// The value, or null if it is absent or is to be ignored.
  const spec::Value *lookup(std::string_view key) const;
  bool isIgnored(std::string_view key) const;

  const spec::Value &object;
  std::string pointer;
  spec::Reporter &reporter;
  KeyReport &report;
  std::set<std::string, std::less<>> seen;
};

struct ModelClass;

/// Everything an architecture's importer works with.
struct ImportContext {
  Config &config;
  const Checkpoint *checkpoint = nullptr; ///< null if there is none
  /// From `"architectures"`: the class, and whether it has the head over the
  /// vocabulary.
  const ModelClass *modelClass = nullptr;
  bool languageModel = true;
  spec::DType dtype = spec::DType::F32; ///< that the model runs in

  /// The prefix of the checkpoint's names: `prefix` if it holds
  /// `prefix + probe`, none if it holds `probe`, `prefix` if there is no
  /// checkpoint and the model has a head (of any kind).
  std::string prefixFor(const std::string &prefix,
                        const std::string &probe) const;
};

/// Reports what no class here supports: pruned heads, quantized weights. The
/// other keys that all classes share change no number of a forward pass.
void refuseUnsupportedKeys(Config &config);

} // namespace attune::hf

#endif // ATTUNE_IMPORT_HUGGINGFACE_CONFIG_H
