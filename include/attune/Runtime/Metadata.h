//===- Metadata.h - Self-description of a compiled model --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The compiler writes the metadata as JSON (lib/Runtime/README.md documents
// it); here it becomes structs.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_RUNTIME_METADATA_H
#define ATTUNE_RUNTIME_METADATA_H

#include "attune/Runtime/DType.h"
#include "attune/Runtime/Error.h"
#include "attune/Runtime/Json.h"
#include "attune/Runtime/Model.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attune::runtime {

/// A size of a tensor: a number, or the name of a number known at run time.
struct DimInfo {
  int64_t size = -1;
  std::string symbol; ///< empty for a fixed size
};

/// Past is the number of positions in the caches; where sequences have
/// different ones, Lengths [batch] are theirs and Past is the largest. Those
/// with a window are of the caches with the same window alone, which do not
/// keep all positions. A Size
/// is the number that shapes call by its name, for code that cannot read it off
/// a tensor.
enum class ArgKind : uint8_t {
  Weights,
  Input,
  Past,
  Lengths,
  Size,
  Cache,
  Output
};

/// The default of an input that is not given: zeros, ones, the token's number,
/// its number among those that the mask shows, for an input "decoder_X" the ids
/// of X one place later behind the decoder's start, or the number of the
/// adapter that was chosen.
enum class DefaultValue : uint8_t {
  None,
  Zeros,
  Ones,
  Iota,
  CountMask,
  Shifted,
  Adapter
};

enum class Bidirectional : uint8_t { None, Image, Prompt };

struct ArgInfo {
  ArgKind kind = ArgKind::Input;
  std::string name;
  DType dtype = DType::F32;
  std::vector<DimInfo> shape;
  int64_t max = -1; ///< exclusive bound of the values of an id input
  /// The one value beyond it that may stand where there is no id.
  std::optional<int64_t> ignored;
  /// Inclusive bounds of the sizes in `shape`, 0 for none; empty: no bounds.
  std::vector<int64_t> longest;
  /// Input [images, 2]: the rows and columns of places that each image has,
  /// with no more places than this size.
  std::optional<DimInfo> places;
  DefaultValue defaultValue = DefaultValue::None;
  /// Input and Output: each rank has its own, of its heads, in memory that the
  /// model keeps from one entry to the next.
  bool ofRank = false;
  /// Past, Lengths and Cache: the window of the layers whose rows these are,
  /// and the further positions that their caches have room for; 0: all
  /// positions.
  int64_t window = 0, slack = 0;
  /// Input of a step: its rows stand in the places of the tokens with this id,
  /// `each` of them for each picture; -1: it is none.
  int64_t inserted = -1, each = 0;
  /// Which tokens of a step see each other in both directions: those of each
  /// picture, or all of a prompt. The entry `decode_span` computes them.
  Bidirectional bidirectional = Bidirectional::None;
  /// Cache: groups of ranks that share its positions, each with the next ones.
  int64_t sharers = 1;

  /// The bound of size `d`; 0: none.
  int64_t mostOf(size_t d) const { return d < longest.size() ? longest[d] : 0; }

  /// Positions that a group keeps of `capacity`.
  int64_t shareOf(int64_t capacity) const {
    return (capacity + sharers - 1) / sharers;
  }
  /// Positions that a cache has room for if texts have `capacity` at most. One
  /// that is shared has a row more, for what is another group's.
  int64_t roomOf(int64_t capacity) const {
    if (sharers > 1)
      return shareOf(capacity) + 1;
    return window ? std::min(capacity, window + slack) : capacity;
  }
  /// Cache: [batch, positions, layers, ...] and not [layers, batch, ...], so
  /// that all of a position lies side by side.
  bool positionsOutside() const {
    return shape.size() > 2 && shape[1].symbol.rfind("capacity", 0) == 0;
  }
  /// "[batch, seq, 768]"
  std::string formatShape() const;
};

struct EntryInfo {
  std::string name;
  unsigned index = 0; ///< into the descriptor's entries
  std::vector<ArgInfo> args;
  /// A sequence longer than this cannot use what a cache keeps of one that was
  /// no longer; 0: it always can.
  int64_t recomputeBeyond = 0;

  /// The only input that nothing can stand in for and that holds ids [batch,
  /// tokens]; null if there is none or more than one.
  const ArgInfo *findIds() const;
  /// The input of vectors that stand in the places of tokens; null if there is
  /// none. A step does without them.
  const ArgInfo *findInserted() const;
  /// The least of `limit` and what the inputs that count positions can count
  /// to; -1: no limit.
  int64_t countablePositions(int64_t limit) const;
};

/// The way in which the vectors of a text's tokens become one: their mean, the
/// first, the last, the largest number of each column, their sum divided by the
/// square root of their count, or a mean in which token i counts i times.
enum class Pooling : uint8_t { Auto, Mean, Cls, Last, Max, MeanSqrt, Weighted };
/// "mean", "cls", "last", "max", "mean_sqrt" or "weighted".
bool parsePooling(std::string_view name, Pooling &pooling);

/// The code for one of several CPUs.
struct CpuVariantInfo {
  std::string cpu;                ///< its name
  std::vector<std::string> needs; ///< of the CPU, as in /proc/cpuinfo
};

/// How sound becomes an input, and the tokens that say what to write of it; the
/// metadata's "audio".
struct AudioInfo {
  std::string input; ///< empty: the model hears nothing
  int64_t rate = 0, window = 0, hop = 0;
  std::vector<std::pair<std::string, int64_t>> languages, tasks;
  int64_t language = -1; ///< its token; -1: the one that is heard
  std::vector<int64_t> start;
  int64_t noTimestamps = -1; ///< -1: the model has no times
  int64_t timestampFrames = 2;
  int64_t latestBegin = -1; ///< -1: any
  /// For a model of waveforms, whose frames have the logits of letters (CTC):
  /// what each letter is written as, and which one is none. Then all but
  /// `input` and `rate` are unused.
  std::vector<std::string> letters;
  int64_t blank = 0;
  bool normalise = false; ///< a mean of 0 and a variance of 1
};

/// How the model writes a frame of sound in one step, a code of each codebook;
/// the metadata's "codes".
struct CodesInfo {
  std::vector<std::string> inputs; ///< one a codebook; empty: it writes ids
  int64_t pad = 0;                 ///< stands where a codebook has no code
  double guidance = 1;             ///< of the text; 1: none
  int64_t rate = 0;     ///< samples a second that the entry `sound` makes
  int64_t channels = 1; ///< of the sound; codebooks take turns

  int64_t books() const { return static_cast<int64_t>(inputs.size()); }
};

/// The playback of codes as sound; the metadata's "playback".
struct PlaybackInfo {
  std::vector<std::string> inputs; ///< one a codebook; empty: it makes none
  int64_t rate = 0;                ///< samples a second
  int64_t none = -1;               ///< the id for no code, -1: there is none
  /// Samples of a whole piece, and from one to the next; 0: there is one.
  int64_t piece = 0, step = 0;
  bool scaled = false; ///< each piece has a loudness
};

struct ModelInfo {
  std::string name;
  std::vector<EntryInfo> entries;
  int64_t context = -1; ///< most positions, -1: no limit
  /// Why no step takes several sequences, "it has ..."; may be empty.
  std::string decodesAlone;
  /// Adapters that a text can be computed with; number 0 is none, the first is
  /// number 1.
  std::vector<std::string> adapters;
  /// That run one copy of the model.
  int64_t ranksOfGroup() const { return ranks * sharers; }
  bool hasRanks() const { return ranksOfGroup() * groups > 1; }
  uint64_t weightsBytes = 0; ///< that one process reads
  /// Ranks that the model is cut for. The file has the bytes that are the same
  /// for all ranks once, at its start; then come those of each rank.
  int64_t ranks = 1;
  /// For each of them, how many ranks share the positions of a sequence.
  int64_t sharers = 1;
  /// Groups of all of these, which share texts.
  int64_t groups = 1;
  uint64_t sharedBytes = 0;
  /// The fingerprint of the layout that the code reads, in 16 digits; empty
  /// if it is not known.
  std::string weightsLayout;
  std::vector<std::string> needs; ///< of the CPU, as in /proc/cpuinfo
  /// Codes side by side, the best last; empty: there is one. The descriptor has
  /// the entries of each, one variant behind the other.
  std::vector<CpuVariantInfo> variants;
  std::vector<int64_t> eos;
  int64_t bos = -1, pad = -1;
  int64_t decoderStart = -1, forcedBos = -1; ///< encoder-decoders
  /// Tokens that are never generated, and those that are not first.
  std::vector<int64_t> suppress, beginSuppress;
  /// The settings of sampling that the model's author recommends, by their
  /// names in generation_config.json: "do_sample" (0 or 1), "temperature", ...
  std::vector<std::pair<std::string, double>> sampling;
  Pooling pooling = Pooling::Auto; ///< for `embed`
  bool normalizes = false;         ///< what `embed` gives
  /// Tokens at which `embed` cuts a text; 0: the context; nothing: it does not.
  std::optional<int64_t> mostTokens;
  /// Texts that `embed` puts before others, by name, and the name of the one
  /// for texts that name none; empty: nothing.
  std::vector<std::pair<std::string, std::string>> prompts;
  std::string defaultPrompt;
  /// The prompt of this name; null if there is none.
  const std::string *findPrompt(std::string_view name) const;
  /// The tokenizer: a table, whose size the metadata has, or of a model that
  /// was written by hand the text of a tokenizer.json. See Tokenizer::open.
  std::string_view tokenizerTable;
  uint64_t tokenizerBytes = 0;
  std::string tokenizerKind; ///< what it is, for people
  std::string tokenizerJson;
  bool hasTokenizer() const { return tokenizerBytes || !tokenizerJson.empty(); }
  std::string chatTemplate; ///< empty: none
  JsonValue namedTemplates; ///< others, by name: "tool_use", "rag"
  JsonValue chatTokens;     ///< what it calls bos_token, eos_token ...
  JsonValue images;         ///< the preprocessor_config.json; null: none
  JsonValue inspect;
  AudioInfo audio;
  CodesInfo codes;
  PlaybackInfo playback;

  const EntryInfo *find(std::string_view entry) const;
  /// The number of an adapter.
  bool findAdapter(std::string_view adapter, int64_t &number,
                   Error &error) const;
};

/// Reads the metadata of a model with `numEntries` entries.
bool parseModelInfo(std::string_view json, unsigned numEntries, ModelInfo &info,
                    Error &error);
/// Reads what a model says of itself.
bool readModelInfo(const attune_model_descriptor &descriptor, ModelInfo &info,
                   Error &error);

} // namespace attune::runtime

#endif // ATTUNE_RUNTIME_METADATA_H
