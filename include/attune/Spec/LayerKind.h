//===- LayerKind.h - Layers that plugins bring ------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_SPEC_LAYERKIND_H
#define ATTUNE_SPEC_LAYERKIND_H

#include "attune/Spec/Spec.h"

#include <functional>
#include <string_view>

/// A kind of layer beyond those of Spec.h: the form of its options, which the
/// parser and the JSON Schema hold descriptions to, and what follows from them.
/// attune/Import/LayerBuilder.h registers it together with its ops.
namespace attune::spec {

struct LayerOption {
  enum class Form {
    Integer, ///< or arithmetic over the description's dims
    Number,
    Boolean,
    Word, ///< one of `words`
  };
  std::string name;
  Form form = Form::Integer;
  std::string doc;
  bool required = false;
  int64_t minimum = 1; ///< Integer
  std::vector<std::string> words;
};

struct LayerKind {
  std::string key; ///< of the description: {"<key>": {<options>}}
  std::string doc;
  std::vector<LayerOption> options;
  /// Every token's result is made of that token alone. Other layers stand in
  /// the way of generation, which computes one token at a time.
  bool perToken = true;
  /// Reports a mistake in an option, at its place in the description; at the
  /// layer if the option is absent.
  using Report =
      std::function<void(std::string_view option, const std::string &message)>;
  /// Looks at the options of a layer of [batch, tokens, inputWidth] and fills
  /// in `weights`, `flopsPerToken` and, where it is not `inputWidth`, the
  /// channels of the result.
  std::function<void(Extension &layer, int64_t inputWidth, int64_t &width,
                     const Report &report)>
      describe;
};

/// False if there is a layer of this key. To be called before descriptions are
/// read, as a plugin is loaded.
bool registerLayerKind(LayerKind kind);

/// The option's value, or `fallback` if the description leaves it out.
template <typename T>
T optionOr(const Extension &layer, const std::string &name, T fallback) {
  auto found = layer.options.find(name);
  return found == layer.options.end() ? fallback : std::get<T>(found->second);
}

} // namespace attune::spec

#endif // ATTUNE_SPEC_LAYERKIND_H
