//===- Calibration.h - What layers see of a text ----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_DRIVER_CALIBRATION_H
#define ATTUNE_LIB_DRIVER_CALIBRATION_H

#include "HeadChoice.h"
#include "InMemory.h"
#include "Options/Options.h"
#include "Report/Report.h"

#include "attune/Weights/WeightFile.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace attune::driver {

/// What the layers of one weight multiply, for the tokens of one window.
struct SeenInputs {
  std::string weight; ///< its symbol, which may stand for several layers
  int64_t begin = 0;  ///< the window's first token
  int64_t layers = 0, tokens = 0, width = 0;
  const float *values = nullptr; ///< [layers, tokens, width]
  /// The experts of a mixture: [layers, tokens, active].
  const int64_t *experts = nullptr;
  int64_t active = 0;

  const float *layer(int64_t i) const { return values + i * tokens * width; }
  const int64_t *expertsOf(int64_t i) const {
    return experts + i * tokens * active;
  }
};

/// Runs of the model as its files have it, uncompressed, in this process over
/// the tokens of `options.calibrationFile`. Memory beside the weights stays
/// bounded: tokens come in windows, shorter ones where layers are many. All
/// functions report errors.
class CalibrationRun {
public:
  CalibrationRun(const Options &options, Report &report);

  /// Reads the model, so that its module and checkpoint are there.
  bool open();
  /// As imported, with the entry `forward` alone.
  mlir::ModuleOp getModule() { return imported->getModule(); }
  const Checkpoint &getCheckpoint() const { return *checkpoint; }
  /// Compiles it, to show what weights see whose names `patterns` match.
  bool build(const std::vector<std::string> &patterns);
  int64_t countTokens() const { return int64_t(tokens.size()); }

  /// Shows `visit` what weights that it `wants` see, window by window.
  bool run(llvm::function_ref<bool(llvm::StringRef)> wants,
           llvm::function_ref<void(const SeenInputs &)> visit);
  /// From now on these layers have the values of the numbers that were chosen.
  void roundLayers(const ChosenNumbers &chosen,
                   llvm::function_ref<bool(WeightOp, int64_t)> layers);
  /// Calls `work` with 0 to `count` - 1, on the threads of the options.
  void forEach(size_t count, llvm::function_ref<void(size_t)> work) const;

  std::string progress; ///< in front of what is shown on a terminal

private:
  unsigned countThreads() const;
  int64_t chooseWindow();
  bool showWindow(runtime::Invocation &call, int64_t begin,
                  llvm::function_ref<bool(llvm::StringRef)> wants,
                  llvm::function_ref<void(const SeenInputs &)> visit);

  Options plain;
  Report &report;
  std::string file;
  std::optional<ModelSource> source;
  std::optional<Checkpoint> checkpoint;
  std::optional<Lowering> imported;
  InMemoryModel model;
  const runtime::EntryInfo *entry = nullptr;
  const runtime::ArgInfo *ids = nullptr;
  std::vector<int64_t> tokens;
  std::vector<runtime::Buffer> buffers; ///< of outputs
};

/// The first tensor that one layer of a weight is made of.
std::string firstTensor(WeightOp weight, int64_t layer);

/// What the results of the heads of one attention have in common: for heads g
/// and h, the sum over tokens of the products of what g and h add to the
/// layer's result. The square of what the result loses without some heads is
/// the sum of these over pairs of them.
struct HeadProducts {
  int64_t heads = 0;
  std::vector<double> sums; ///< [heads, heads]

  double lostWithout(const HeadRules::Heads &gone) const;
  /// Relative: root mean square lost by that of the result.
  double errorWithout(const HeadRules::Heads &gone) const;
};

/// Measures the heads of `places` on the calibration's tokens; by name.
/// Nothing after an error, which is reported.
std::optional<std::map<std::string, HeadProducts>>
measureHeads(const Options &options, Report &report,
             const std::vector<AttentionPlace> &places);

/// Which `share` of an attention's heads goes: one after the other that whose
/// loss changes the result least. Whole groups that share keys, unless all
/// heads share one; rounded down. Nothing, with a `problem`, if that is no
/// head.
std::optional<HeadRules::Heads> chooseLeast(const HeadProducts &products,
                                            int64_t keyHeads, double share,
                                            std::string &problem);

} // namespace attune::driver

#endif // ATTUNE_LIB_DRIVER_CALIBRATION_H
