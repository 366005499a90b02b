//===- Options.h - Options of the command line ------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_DRIVER_OPTIONS_OPTIONS_H
#define ATTUNE_LIB_DRIVER_OPTIONS_OPTIONS_H

#include "attune/Import/HuggingFace.h"
#include "attune/Runtime/Chat.h"
#include "attune/Runtime/Cli.h"
#include "attune/Runtime/Serve.h"
#include "attune/Spec/Spec.h"
#include "attune/Support/Diagnostics.h"
#include "attune/TargetInfo/TargetDescription.h"
#include "attune/Transforms/HeadRules.h"
#include "attune/Transforms/LowRankRules.h"
#include "attune/Transforms/MeshAxes.h"
#include "attune/Transforms/QuantizationRules.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace attune {
class Backend;
struct ProductKind;
} // namespace attune

namespace attune::driver {

enum class Verb {
  Compile,
  Run,
  Generate,
  Embed,
  Inspect,
  Import,
  Verify,
  Bench,
  Tokenize,
  Chat,
  Serve,
  Perplexity,
  Compare,
  Split
};

struct Options {
  Verb verb = Verb::Compile;
  std::string model;
  std::string student; ///< compare: the second model

  // Where things are.
  std::string weights; ///< "random": values from the seed, from no file
  std::string tokenizer;
  std::string chatTemplate; ///< empty: the one beside the tokenizer
  std::string output;       ///< -o; empty: stdout for text
  std::string stagesDir;

  bool hasRandomWeights() const { return weights == "random"; }
  /// LoRA adapters that are merged into the weights, in this order.
  struct Lora {
    std::string folder;
    double scale = 1;
  };
  std::vector<Lora> loras;
  bool lorasApart = false; ///< not merged, but branches beside the weights
  std::string adapter;     ///< of these, for what is measured; empty: none
  std::vector<Lora> mergedLoras() const {
    return lorasApart ? std::vector<Lora>() : loras;
  }

  // The product.
  std::string emit;   ///< empty: by the suffix of `output`
  std::string kernel; ///< the only one that is printed; empty: all
  std::string target; ///< empty: by what is made
  std::string cpu;    ///< empty: the backend's default
  std::string gpu;    ///< empty: the backend's default
  std::optional<spec::DType> dtype;
  /// Set: matrices are kept in few bits.
  std::optional<QuantizationRules> quantize;
  /// What such matrices multiply is not rounded to bytes.
  std::optional<bool> exactActivations; ///< unset: as the target has them
  /// Set: matrices become products of two.
  std::optional<LowRankRules> lowRank;
  std::optional<spec::KvCache> kvCache;
  int64_t windowSlack = 0; ///< 0: as the model says
  /// Set: attention loses heads.
  std::optional<HeadRules> pruneHeads;
  std::string calibrationFile; ///< token ids or texts; empty: none
  /// It is for another model of the same command line.
  bool mayMeasureNothing = false;
  /// Patterns of weights whose inputs become outputs: a run that calibrates.
  std::optional<std::vector<std::string>> tapInputs;
  /// Set: processes share the model.
  std::optional<MeshAxes> mesh;
  /// What joins them, for predictions: seconds, and bytes a second.
  struct Link {
    double latency = 0, bandwidth = 0;
  };
  std::optional<Link> link;
  bool tf32 = false; ///< products of f32 on tensor cores may round to it
  bool persistentKernel = false; ///< of a decoder's step, on a GPU
  bool separateNorms = false;    ///< from products of few rows, on a GPU
  bool fusion = true;
  bool explainFusion = false;
  std::string remarks;
  bool checkWeights = false;
  std::vector<std::string> ignoredConfigKeys;
  std::optional<ImageSize> imageSize; ///< none: as the importer chooses
  bool locations = false;
  std::vector<std::string> taps;
  /// Outputs of `compare` under two names, which "[N]" may follow.
  struct Match {
    std::string teacher, student;
  };
  std::vector<Match> matches;
  // The choice made from the first four, which chooseTarget() fills in.
  const Backend *backend = nullptr;
  TargetDescription machine;
  /// With --cpu=multi, what a product has code for; `machine` is the first.
  std::vector<CpuVariant> variants;
  std::string variant; ///< that this code is; empty: it is all that there is
  const ProductKind *product = nullptr; ///< null: a stage, which `emit` names

  // Additions to the compiler by others, and whether to trust them.
  std::vector<std::string> plugins, insertions;
  std::string schedule;
  bool validate = false;

  // Code that need not be made again.
  std::string cache; ///< a folder; "off": none, whatever the environment says
  uint64_t cacheSize = uint64_t(1) << 30; ///< in bytes

  // How it is said.
  bool timing = false;
  std::string format = "table"; ///< inspect, bench

  // Where something runs.
  unsigned threads = 0; ///< 0: one per available core
  std::vector<std::pair<std::string, int64_t>> dims;
  int64_t runs = 5;       ///< bench
  std::string textFile;   ///< perplexity
  std::string inputsFile; ///< compare
  int64_t window = 0;     ///< tokens of a call of perplexity; 0: as it likes
  uint64_t seed = 0;
  std::optional<double> atol, rtol;
  // The runtime's own `run` and `generate`.
  runtime::RunOptions run;
  runtime::GenerateOptions generate;
  runtime::EmbedOptions embed;
  runtime::TokenizeOptions tokenize;
  runtime::ChatOptions chat;
  runtime::ServeOptions serve;
  runtime::TeamOptions team;
};

/// The options, or the exit code of a command line that only asks for help
/// (then it was printed) or is wrong (then that was reported).
std::variant<Options, ExitCode> parseOptions(llvm::ArrayRef<const char *> args,
                                             DiagnosticEngine &diags);

/// Whether `--message-format=json` is among the arguments: it holds for errors
/// in the arguments themselves, too.
DiagnosticEngine::Format findMessageFormat(llvm::ArrayRef<const char *> args);

llvm::StringRef getName(Verb verb);

/// The candidate that is closest to `word`, for "did you mean"; nothing if none
/// looks like a slip.
llvm::StringRef findNearest(llvm::StringRef word,
                            llvm::ArrayRef<llvm::StringRef> candidates);

} // namespace attune::driver

#endif // ATTUNE_LIB_DRIVER_OPTIONS_OPTIONS_H
