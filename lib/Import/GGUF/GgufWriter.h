//===- GgufWriter.h - Makes the config.json of a GGUF file ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_IMPORT_GGUF_GGUFWRITER_H
#define ATTUNE_LIB_IMPORT_GGUF_GGUFWRITER_H

#include "GgufConfig.h"

#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace attune::gguf {

/// The shortest text that is this number in f32, as which the keys came.
std::string spell(double value);
std::string quoted(std::string_view text);

class Writer {
public:
  Writer(const File &file, const Family &family, DiagnosticEngine &diags)
      : file(file), family(family), diags(diags) {}

  std::optional<std::string> write();

private:
  /// The name of a key in the file, which counts as read: see checkKeys().
  std::string full(const char *key) const {
    std::string name = std::string(family.name) + "." + key;
    asked.insert(name);
    return name;
  }
  void fail(const std::string &key, const std::string &what);
  /// A whole number from 1 to 2^31 - 1; without `fallback` it must be there.
  int64_t size(const char *key, std::optional<int64_t> fallback = {});
  int64_t count(const char *key);
  int64_t largest(const char *key, std::optional<int64_t> fallback);
  double number(const char *key, double fallback);
  void putAlways(const char *key, const std::string &value) {
    text += (text.empty() ? "{\n \"" : ",\n \"") + std::string(key) +
            "\": " + value;
  }
  /// A key that the class does not read is left out.
  void put(const char *key, const std::string &value) {
    if (known.count(key))
      putAlways(key, value);
  }
  void put(const char *key, int64_t value) { put(key, std::to_string(value)); }
  void put(const char *key, bool value) = delete;
  void putFlag(const char *key, bool value) {
    put(key, value ? std::string("true") : std::string("false"));
  }
  const char *nameOf(std::initializer_list<const char *> names) const;
  void putAs(std::initializer_list<const char *> names,
             const std::string &value);
  /// Whether the first layer has a tensor.
  bool has(const char *tensor) const;
  /// Whether keys and values are made of a short row.
  bool latent() const { return file.find(full("attention.kv_lora_rank")); }
  bool rotatesParts() const {
    return nameOf({"rotary_pct", "partial_rotary_factor", "rope_ratio"});
  }

  // Of all families: GgufConfig.cpp.
  void putSizes();
  void putHeads();
  void putRotary();
  void putSections(std::string &scaling);
  void putFactors(const char *tensor, const char *key, std::string &scaling);
  void putTokens();
  std::string dtype() const;

  // What is not read: GgufKeys.cpp.
  void checkKeys();
  bool changesNothing(const std::string &name, std::string_view key) const;

  // Of each: GgufFamilies.cpp.
  void chooseType();
  void putFamily();
  void putEncoder();
  void putGemma();
  // GgufStacks.cpp.
  void putGemma3n();
  void putT5();
  int64_t rowsOf(const char *tensor);
  void putExperts();
  void putDeepSeek();
  void checkGating();
  void putWindow(int64_t period);
  void putChunks();
  void putScales();

  // Of recurrent ones: GgufHybrids.cpp.
  std::optional<std::vector<double>> headsByLayer();
  void putKinds(const char *key, const std::vector<double> &attends,
                const char *attention, const char *other);
  void putConvolutions();
  void putGraniteHybrid();
  void putFalconH1();
  void putNemotronH();
  void putDeltaRules();

  const File &file;
  const Family &family;
  DiagnosticEngine &diags;
  std::string type, className;
  std::set<std::string, std::less<>> known; ///< keys that the class reads
  mutable std::set<std::string, std::less<>> asked;
  std::string text;
  bool failed = false;
  int64_t layers = 0, width = 0, heads = 1, kvHeads = 1, headDim = 0,
          length = 0;
};

} // namespace attune::gguf

#endif // ATTUNE_LIB_IMPORT_GGUF_GGUFWRITER_H
