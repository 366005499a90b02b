//===- LlamaFamily.h - Shared by LLaMA's relatives --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_IMPORT_HUGGINGFACE_DECODERS_LLAMAFAMILY_H
#define ATTUNE_LIB_IMPORT_HUGGINGFACE_DECODERS_LLAMAFAMILY_H

#include "../Architectures.h"
#include "../Rope.h"
#include "attune/Import/HuggingFace/StreamBuilder.h"

namespace attune::hf {

/// The defaults of a configuration class.
struct LlamaDefaults {
  int64_t width = 4096, inner = 11008, layers = 32, heads = 32;
  std::optional<int64_t> kvHeads; ///< none: as many as `heads`
  std::optional<int64_t> headDim; ///< none: width / heads
  int64_t vocab = 32000, length = 2048;
  const char *layersKey = "num_hidden_layers";
  const char *epsKey = "rms_norm_eps";
  double eps = 1e-6;
  const char *activationKey = "hidden_act"; ///< null: the importer says it
  const char *activation = "silu";
  bool tied = false;
  bool readsCausal = false; ///< "is_causal"
  RopeDefaults rope;
};

/// The keys of a LLaMA-like configuration. An importer adds what its own keys
/// say to `block`, `tensors` and so on before it builds the model.
struct LlamaConfig {
  std::string name;
  int64_t width = 0, layers = 0, vocab = 0, context = 0;
  spec::Norm norm;   ///< RMS norm
  spec::Block block; ///< pre-norm, causal GQA with rotary, gated FFN, no biases
  bool tied = false;
  double embeddingScale = 1;
  TensorNames tensors; ///< of a block
  /// Where blocks differ: every kind of block, and which one each layer is.
  std::vector<spec::Block> kinds;
  std::vector<size_t> kindOf;
  /// Weights of a block that the table cannot say; tensors without the prefix.
  spec::WeightMap weights;
  /// Names of the other tensors; `prefix` is that of all but the head.
  const char *prefix = "model.", *table = "embed_tokens";
  const char *blockName = "layers.{i}", *lastNorm = "norm", *head = "lm_head";
  double logitScale = 1;
  std::optional<double> logitCap;
  bool headBias = false;
};

/// Reads the keys that all of the family have. Nothing after an error.
std::optional<LlamaConfig> readLlama(ImportContext &context, const char *name,
                                     const LlamaDefaults &defaults);

/// What classes with latent attention take for absent keys.
struct LatentDefaults {
  int64_t rank = 512, queryRank = 1536, nopeDim = 128, valueDim = 128;
  bool interleaved = true; ///< "rope_interleave" is read
};

/// Queries, keys and values through compressed rows. `llama` has what its own
/// keys say; its head_dim is that of the turned channels.
void readLatent(Config &config, LlamaConfig &llama,
                const LatentDefaults &defaults = {});

/// The table, blocks, a norm and the head.
spec::Model buildLlama(ImportContext &context, const LlamaConfig &llama);

/// "sliding_window": null says that there is none, `fallback` is for an absent
/// key.
std::optional<int64_t> readWindow(Config &config,
                                  std::optional<int64_t> fallback);

/// Which layers have RoPE: those that "no_rope_layers" lists (1: it has,
/// whatever the name says), or all but every "no_rope_layer_interval"-th.
std::vector<bool> readTurning(Config &config, int64_t layers);

/// Gives a window to the layers that "layer_types", or else `types`, calls
/// "sliding_attention". Call it when `block` is complete.
void slideLayers(Config &config, LlamaConfig &llama,
                 std::optional<int64_t> window, std::vector<std::string> types,
                 const char *model);

/// Reports if `key` is there and has other layers than `allowed` (none: any).
/// Gives the kinds, or nothing if the key is absent.
std::vector<std::string> readLayerTypes(Config &config, int64_t layers,
                                        std::vector<std::string> allowed,
                                        const char *model,
                                        const char *key = "layer_types");

} // namespace attune::hf

#endif // ATTUNE_LIB_IMPORT_HUGGINGFACE_DECODERS_LLAMAFAMILY_H
