//===- ModelStatistics.h - Cost of a model, before it exists --------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_ANALYSIS_MODELSTATISTICS_H
#define ATTUNE_ANALYSIS_MODELSTATISTICS_H

#include "attune/Spec/Spec.h"

namespace llvm {
class raw_ostream;
}

/// Parameters, FLOPs and bytes of a model, computed from its description alone.
///
/// - Parameters are counted once each: a tied head has none of its own, and
///   layers whose weights come from the same tensors count at the first.
/// - FLOPs are those of one forward pass over the given lengths: 2 for each
///   multiply-add of a projection or an attention. Scores that a causal mask or
///   a window hides are not counted. Norms, activations, softmax and rotations
///   are left out: they are bound by memory, not by arithmetic.
/// - Bytes of weights and of cached keys and values follow the model's dtype.
///   Activations are f32, as compiled programs keep them, and so are the states
///   that recurrent layers keep. `activationBytes` is an estimate of the most
///   that is alive at once, by layer; `memory` is the exact plan.
/// - `scoreBytes` is what a program that does not fuse attention would need for
///   all heads' attention weights at once, in the type of the model's weights
///   (bare ops: of their query).
namespace attune {

/// Part of a layer: one projection, or the attention itself.
struct PartStatistics {
  std::string name; ///< "attention.qkv", "ffn.down", "norms", ...
  uint64_t parameters = 0;
  double flops = 0;
};

struct LayerStatistics {
  std::string stream, name, kind;
  int64_t repeat = 1;
  SourceLocation location;
  // All repeats together:
  uint64_t parameters = 0;
  /// Without the parameters of experts that a token does not go through.
  uint64_t activeParameters = 0;
  double weightBytes = 0, flops = 0, cacheBytes = 0;
  // One repeat, since they follow each other:
  double activationBytes = 0, scoreBytes = 0;
  /// Why windows do not bound what is cached; empty: they do, or there is none.
  std::string wholeCache;
  /// Parts of all repeats together; parts that cost nothing are left out.
  std::vector<PartStatistics> parts;
};

/// The memory of one call over `dims`, once compiled.
struct MemoryStatistics {
  double weights = 0;      ///< in panels, with their padding
  double intermediate = 0; ///< temporary buffers
  double tensors = 0;      ///< inputs, outputs and caches

  double total() const { return weights + intermediate + tensors; }
};

/// One step of generation: a single token after `dims` tokens in the cache.
struct DecodeStatistics {
  double flops = 0;
  double bytes = 0; ///< weights and cache that must be read
  /// The most while a text grows to `dims`: of a prompt that is all of it.
  std::optional<MemoryStatistics> memory; ///< as ModelStatistics::memory
};

/// The sizes of compressed weights, in panels and with their scales.
struct CompressionStatistics {
  struct Form {
    std::string name; ///< "int4:g32"
    uint64_t matrices = 0;
    double bytes = 0;
  };
  std::vector<Form> forms;
  /// Matrices that are products of two, in all layers together.
  struct LowRank {
    std::string name;
    int64_t rows = 0, columns = 0, rank = 0;
    uint64_t matrices = 0;
    double bytes = 0; ///< of both factors

    /// Operations for a row of inputs, of one matrix: now, and as a whole.
    double flops() const { return 2.0 * double(rank) * double(rows + columns); }
    double flopsBefore() const { return 2.0 * double(rows) * double(columns); }
  };
  std::vector<LowRank> lowRank;
  /// Matrices that stay in full width, and their bytes.
  std::vector<std::pair<std::string, double>> left;
  double bytes = 0;       ///< of all weights
  double activeBytes = 0; ///< of those that one token goes through
  /// Weight bytes read for a generated token: in full width and now.
  double tokenBytesBefore = 0, tokenBytes = 0;
};

/// A LoRA adapter that is merged into the weights, which costs nothing later.
struct AdapterStatistics {
  std::string path;
  double scale = 1;
  int64_t parameters = 0, maxRank = 0;
  uint64_t matrices = 0, replaced = 0; ///< changed, and brought whole
};

struct ModelStatistics {
  std::string name;
  spec::DType dtype = spec::DType::F32;
  std::map<std::string, int64_t> dims; ///< the symbols and what was assumed
  std::vector<LayerStatistics> layers;
  int64_t tokens = 0; ///< of the longest sequence that attention is over
  uint64_t parameters = 0, activeParameters = 0;
  double weightBytes = 0, flops = 0, cacheBytes = 0;
  /// The most of any layer.
  double activationBytes = 0, scoreBytes = 0;
  std::optional<DecodeStatistics> decode;  ///< causal models of one stream
  std::vector<AdapterStatistics> adapters; ///< analyze() leaves it empty
  /// Set for `--quantize` and `--low-rank`; analyze() leaves it out.
  std::optional<CompressionStatistics> compression;
  /// The exact plan; analyze() leaves it out, as it takes lowering the model.
  std::optional<MemoryStatistics> memory;
};

/// Counts. Symbols that `dims` leaves out are 1 for "batch", else the model's
/// context, else 1024. Names in `dims` that the model has no use for are
/// ignored: see unknownDims().
ModelStatistics analyze(const spec::Model &model,
                        const std::map<std::string, int64_t> &dims);

/// The names in `dims` that no input of the model has.
std::vector<std::string>
unknownDims(const spec::Model &model,
            const std::map<std::string, int64_t> &dims);

void printTable(const ModelStatistics &statistics, llvm::raw_ostream &out);
void printJson(const ModelStatistics &statistics, llvm::raw_ostream &out);
/// One self-contained page.
void printHtml(const ModelStatistics &statistics, llvm::raw_ostream &out);

/// 1234567 as "1,234,567".
std::string formatCount(uint64_t count);
/// "1,192 GiB", "3.15 MiB": at least two digits, in units of 1024.
std::string formatBytes(double bytes);
/// "1.15 G"
std::string formatFlops(double flops);
/// "8.31 B", "3.15 M": in units of 1000.
std::string formatShort(double count);

} // namespace attune

#endif // ATTUNE_ANALYSIS_MODELSTATISTICS_H
