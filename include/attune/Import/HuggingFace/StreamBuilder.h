//===- StreamBuilder.h - Layers and tensor names of importers ---*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_IMPORT_HUGGINGFACE_STREAMBUILDER_H
#define ATTUNE_IMPORT_HUGGINGFACE_STREAMBUILDER_H

#include "attune/Import/HuggingFace/Config.h"

/// Shared by the importers of all architectures: layers one after the other,
/// and tables that say under which names a checkpoint keeps their weights.
namespace attune::hf {

/// The order of the roles' rows in the tensor.
enum class Layout {
  Whole,      ///< it holds this role alone
  Transposed, ///< the same as [in, out]
  /// Several roles one below the other: queries, keys, values.
  Blocks,
  TransposedBlocks,
  /// Per key/value head: its queries, its key, its value.
  Groups,
};

/// A row of a table of tensor names. `role` is a role of `spec::weightRoles`
/// without ".weight" and ".bias", which both names get, or a whole role, or one
/// of the sets "attention.qkv", "attention.kv" and "ffn.gate_up" (with any
/// prefix), whose layout is one of the last three. Rows for weights that a
/// layer does not have are passed over, so that one table serves every flag.
struct TensorName {
  const char *role;
  const char *tensor;
  Layout layout = Layout::Whole;
};
using TensorNames = std::vector<TensorName>;

/// Enters `tensors`, each with `prefix` before it, into the layer's weights.
/// Sizes must be in the layer already.
void nameTensors(spec::Layer &layer, const std::string &prefix,
                 const TensorNames &tensors);

/// Makes a stream layer by layer. Names are prefixed with what `ImportContext::
/// prefixFor` found; every layer keeps the width unless it says otherwise.
/// `key` is the key of config.json that a layer's errors point at.
class StreamBuilder {
public:
  /// `width` of what the stream starts from: 0 for ids.
  StreamBuilder(Config &config, std::string prefix, int64_t width = 0)
      : config(config), prefix(std::move(prefix)), width(width) {}

  /// Any layer; `newWidth` -1 keeps the width.
  spec::Layer &add(const std::string &name, const char *key,
                   decltype(spec::Layer::op) op, int64_t newWidth = -1);

  void embedding(const std::string &name, int64_t vocab, int64_t channels,
                 double scale = 1, const char *key = "vocab_size");
  void learnedPositions(const std::string &name, int64_t length, int64_t offset,
                        const char *key, bool skipPadding = false);
  /// `count` blocks of one kind. `name` has the {i}; tensors are called
  /// "<prefix><name>.<tensor>". Norm widths and `sourceWidth` are filled in.
  spec::Layer &blocks(const std::string &name, const char *key, int64_t count,
                      spec::Block body, const TensorNames &tensors);
  /// A block for each number in `kindOf`, of one of `kinds`: one layer if all
  /// are alike or take turns, else one for each run of equal ones. `weights`
  /// has roles that no table can say; their tensors get the layer's prefix.
  /// `first` is the number of the first one.
  void blocks(const std::string &name, const char *key,
              const std::vector<spec::Block> &kinds,
              const std::vector<size_t> &kindOf, const TensorNames &tensors,
              const spec::WeightMap &weights = {}, int64_t first = 0);
  void norm(const std::string &name, const spec::Norm &norm);
  /// The head over the vocabulary, without the prefix. `tied` names an
  /// embedding of this builder (without prefix), or is empty.
  spec::Linear &head(const std::string &name, int64_t vocab,
                     const std::string &tied);

  int64_t getWidth() const { return width; }
  spec::Stream take() { return std::move(stream); }
  /// As stream `name` of what `input` has.
  spec::Stream take(std::string name, std::string input);

private:
  Config &config;
  std::string prefix;
  int64_t width;
  spec::Stream stream;
};

} // namespace attune::hf

#endif // ATTUNE_IMPORT_HUGGINGFACE_STREAMBUILDER_H
