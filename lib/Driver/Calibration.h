//===- Calibration.h - What layers see of a text ----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_DRIVER_CALIBRATION_H
#define ATTUNE_LIB_DRIVER_CALIBRATION_H

#include "HeadChoice.h"
#include "Options/Options.h"
#include "Report/Report.h"

#include "attune/Weights/WeightFile.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace attune::driver {

/// What the layers of one weight multiply, for the tokens of one window.
struct SeenInputs {
  std::string weight; ///< its symbol, which may stand for several layers
  int64_t layers = 0, tokens = 0, width = 0;
  const float *values = nullptr; ///< [layers, tokens, width]
};

/// Runs the model as its files have it, uncompressed, in this process over the
/// tokens of `options.calibrationFile`, and shows `visit` what the weights see
/// whose names `patterns` match, window by window. Memory stays bounded:
/// windows are shorter where layers are many.
ExitCode runCalibration(const Options &options, Report &report,
                        const std::vector<std::string> &patterns,
                        llvm::function_ref<void(const SeenInputs &)> visit);

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

/// Measures what those matrices of a lowered model multiply that become 4 bits;
/// `products` stays null if there are none. False after an error, which is
/// reported. What is measured lies in a file without a name, not in memory that
/// has to be there.
bool measureInputs(mlir::ModuleOp weights, const Options &options,
                   Report &report, std::unique_ptr<InputProducts> &products);

} // namespace attune::driver

#endif // ATTUNE_LIB_DRIVER_CALIBRATION_H
