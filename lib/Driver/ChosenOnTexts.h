//===- ChosenOnTexts.h - Numbers chosen by a calibration --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_DRIVER_CHOSENONTEXTS_H
#define ATTUNE_LIB_DRIVER_CHOSENONTEXTS_H

#include "Options/Options.h"
#include "Report/Report.h"

#include "Attune/AttuneDialect.h"
#include "attune/Weights/ChosenNumbers.h"
#include "attune/Weights/CompensatedRounding.h"

#include "mlir/IR/BuiltinOps.h"

#include <map>
#include <memory>
#include <set>

namespace attune::driver {

/// Memory in a file without a name: it need not be there as a whole.
class NamelessMemory {
public:
  NamelessMemory() = default;
  NamelessMemory(const NamelessMemory &) = delete;
  NamelessMemory &operator=(const NamelessMemory &) = delete;
  ~NamelessMemory() { release(); }

  /// Zeros, in place of what was there. Failures are reported.
  bool allocate(size_t wanted, Report &report);
  void release();
  uint8_t *data() const { return memory; }

private:
  uint8_t *memory = nullptr;
  size_t bytes = 0;
};

/// The numbers that a calibration chose for the matrices of a model.
class ChosenOnTexts final : public ChosenNumbers {
public:
  const ChosenMatrix *find(const std::string &key) const override;
  /// Says what results lose, and what was rounded to the nearest all the same.
  void note(Report &report) const;

private:
  friend class TextCalibration;

  /// A matrix that numbers are chosen for.
  struct Wanted {
    std::string name; ///< of its weight
    WeightOp weight;
    int64_t layer = 0, part = 0;
    StoredForm form;
    size_t place = 0; ///< of its numbers, scales behind them
    ChosenMatrix matrix;
    ResultLoss loss;
    bool done = false;
  };
  std::map<std::string, Wanted> wanted; ///< by key
  std::vector<std::string> names;       ///< of weights, in order
  std::vector<std::pair<std::string, std::string>> left; ///< name, why
  NamelessMemory numbers;
};

/// Chooses numbers for what becomes few bits of a lowered model, stage after
/// stage: what a layer sees comes out of layers before it that are rounded
/// already. `chosen` stays null if there is nothing to choose. False after an
/// error, which is reported.
bool chooseOnTexts(mlir::ModuleOp weights, const Options &options,
                   Report &report, std::unique_ptr<ChosenOnTexts> &chosen);

} // namespace attune::driver

#endif // ATTUNE_LIB_DRIVER_CHOSENONTEXTS_H
