//===- ChosenOnTexts.cpp - Numbers chosen by a calibration ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChosenOnTexts.h"

#include "Calibration.h"
#include "LayerOrder.h"

#include "Attune/AttuneCut.h"
#include "Attune/AttuneFactors.h"
#include "Attune/AttuneKept.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

#include <algorithm>
#include <cerrno>
#include <sys/mman.h>
#include <unistd.h>

using namespace llvm;
using namespace attune;
using namespace attune::driver;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void NamelessMemory::release() {
  if (memory)
    munmap(memory, bytes);
  memory = nullptr;
}

bool NamelessMemory::allocate(size_t wanted, Report &report) {
  release();
  bytes = std::max<size_t>(wanted, 1);
  SmallString<128> path;
  int file = -1;
  std::error_code error =
      sys::fs::createTemporaryFile("attune-calibration", "", file, path);
  if (!error) {
    sys::fs::remove(path);
    if (ErrorOr<sys::fs::space_info> space =
            sys::fs::disk_space(sys::path::parent_path(path));
        space && space->available < bytes)
      error = std::make_error_code(std::errc::no_space_on_device);
    else
      error = sys::fs::resize_file(file, bytes);
  }
  if (!error) {
    void *map =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (map == MAP_FAILED)
      error = std::error_code(errno, std::generic_category());
    else
      memory = static_cast<uint8_t *>(map);
  }
  if (file >= 0)
    close(file);
  if (error)
    report.fail("--calibrate needs " + std::to_string(bytes >> 20) +
                    " MiB in a temporary file (TMPDIR): " + error.message(),
                ExitCode::ResourceLimit);
  return memory != nullptr;
}

//===----------------------------------------------------------------------===//
// What was chosen
//===----------------------------------------------------------------------===//

const ChosenMatrix *ChosenOnTexts::find(const std::string &key) const {
  auto found = wanted.find(key);
  return found == wanted.end() || !found->second.done ? nullptr
                                                      : &found->second.matrix;
}

static std::string percent(double share) {
  return formatv("{0:f2}%", 100 * share).str();
}

void ChosenOnTexts::note(Report &report) const {
  for (const std::string &name : names) {
    std::map<int64_t, ResultLoss> layers;
    std::map<int64_t, std::pair<int64_t, int64_t>> experts; // unseen, all
    std::string kind;
    for (const auto &[key, some] : wanted) {
      if (some.name != name)
        continue;
      kind = some.form.kind();
      layers[some.layer].add(some.loss);
      experts[some.layer].first += !some.done;
      ++experts[some.layer].second;
    }
    std::string now, nearest, unseen;
    int64_t all = 0, missing = 0;
    for (const auto &[layer, loss] : layers) {
      now += (now.empty() ? "" : ", ") + percent(loss.error());
      nearest += (nearest.empty() ? "" : ", ") + percent(loss.nearestError());
      missing += experts[layer].first;
      all += experts[layer].second;
      if (experts[layer].first)
        unseen += (unseen.empty() ? "" : ", ") +
                  std::to_string(experts[layer].first) + " of layer " +
                  std::to_string(layer);
    }
    if (missing == all)
      continue;
    report.note({}, "'" + name + "' in " + kind +
                        ": its results over the texts of --calibrate are off "
                        "by " +
                        now + " instead of " + nearest + " (root mean square" +
                        (layers.size() > 1 ? ", layer by layer)" : ")"));
    if (missing)
      report.note({}, "'" + name + "': no token of the texts reaches " +
                          std::to_string(missing) + " of its " +
                          std::to_string(all) +
                          " matrices, which are rounded to the nearest (" +
                          unseen + ")");
  }
  for (const std::string &name : names)
    if (llvm::none_of(wanted, [&](const auto &some) {
          return some.second.name == name && some.second.done;
        }))
      report.note({}, "'" + name +
                          "' is rounded to the nearest: the texts of "
                          "--calibrate do not show what it multiplies");
  for (const auto &[name, why] : left)
    report.note({}, "'" + name + "' is rounded to the nearest: " + why);
}

//===----------------------------------------------------------------------===//
// Choosing
//===----------------------------------------------------------------------===//

namespace attune::driver {
class TextCalibration {
public:
  TextCalibration(const Options &options, Report &report)
      : options(options), report(report), run(options, report) {}

  /// Collects the weights to choose numbers for. False after an error.
  bool collect(mlir::ModuleOp weights);
  bool isEmpty() const { return chosen->wanted.empty(); }
  bool choose();

  std::unique_ptr<ChosenOnTexts> chosen = std::make_unique<ChosenOnTexts>();

private:
  using Wanted = ChosenOnTexts::Wanted;

  /// A matrix of one layer, and the products of what it multiplies.
  struct Dense {
    Wanted *matrix;
    int64_t columns;
    size_t place;
    float *products = nullptr;
  };
  /// A mixture of experts in one layer, and what its tokens are.
  struct Experts {
    const Mixture *mixture;
    int64_t layer, columns, active = 0;
    size_t place;
    float *inputs = nullptr;     ///< [tokens, columns]
    std::vector<int64_t> choice; ///< [tokens, active]
  };
  struct Work {
    std::map<std::pair<std::string, int64_t>, Dense> dense;
    std::map<std::pair<std::string, int64_t>, Experts> experts;
  };

  Wanted *find(WeightOp weight, int64_t layer, int64_t part);
  bool runStage(const Stage &stage, const std::vector<Mixture> &mixtures);
  void see(const SeenInputs &seen, Work &work);
  void round(Wanted &matrix, const WeightRows &rows, const float *products,
             int64_t columns);
  void roundExpert(const Experts &experts, int64_t expert);
  /// Matrix `part` of a stack as it is from now on.
  std::vector<float> valuesNow(WeightOp weight, int64_t layer, int64_t part);

  const Options &options;
  Report &report;
  CalibrationRun run;
};
} // namespace attune::driver

/// Why no numbers are chosen for what becomes few bits; empty: they are.
static std::string findObstacle(WeightOp weight, const StoredForm &form) {
  if (factorOf(weight))
    return "it is a factor of low rank";
  if (getCut(weight))
    return "it is cut for several ranks";
  // A vocabulary in bytes loses little, and is large.
  if (form.bits == 8 && weight->hasAttr("attune.vocabulary"))
    return "a vocabulary in bytes loses little";
  return "";
}

bool TextCalibration::collect(mlir::ModuleOp weights) {
  for (auto weight : weights.getOps<WeightOp>()) {
    StoredForm form = formOf(weight);
    if (form.bits == 0 || weight.holdsScales())
      continue;
    // A weight stored in this form already keeps its numbers.
    auto stored = weight->getAttrOfType<mlir::StringAttr>("attune.stored");
    if (stored && stored.getValue() == form.text())
      continue;
    std::string name = weight.getSymName().str();
    if (std::string why = findObstacle(weight, form); !why.empty()) {
      chosen->left.emplace_back(name, why);
      continue;
    }
    if (form.areFloats()) {
      report.fail("--calibrate=" + options.calibrationFile +
                  " chooses numbers of int4 and int8, and '" + name +
                  "' becomes " + form.text());
      return false;
    }
    chosen->names.push_back(name);
    for (int64_t layer = 0; layer < weight.getNumLayers(); ++layer)
      for (int64_t part = 0; part < weight.getNumParts(); ++part) {
        auto [found, isNew] =
            chosen->wanted.insert({chosenKey(weight, layer, part), Wanted()});
        if (isNew)
          found->second = {name, weight, layer, part, form, 0, {}, {}, false};
      }
  }
  return true;
}

auto TextCalibration::find(WeightOp weight, int64_t layer, int64_t part)
    -> Wanted * {
  auto found = chosen->wanted.find(chosenKey(weight, layer, part));
  return found == chosen->wanted.end() ? nullptr : &found->second;
}

bool TextCalibration::choose() {
  if (!run.open())
    return false;
  size_t bytes = 0;
  for (auto &[key, some] : chosen->wanted) {
    some.place = bytes;
    auto count = size_t(countValues(some.weight));
    bytes += llvm::alignTo(count, 8) +
             count / size_t(some.form.group) * sizeof(GroupScale);
  }
  std::vector<Mixture> mixtures = findMixtures(run.getModule());
  std::vector<Stage> stages = findStages(run.getModule());
  std::vector<std::string> patterns;
  for (auto weight : run.getModule().getOps<WeightOp>())
    for (int64_t layer = 0; layer < weight.getNumLayers(); ++layer)
      if (find(weight, layer, 0)) {
        patterns.push_back(weight.getSymName().str());
        break;
      }
  if (!chosen->numbers.allocate(bytes, report) || !run.build(patterns))
    return false;
  report.beginStage("calibrating");
  for (size_t i = 0; i < stages.size(); ++i) {
    run.progress = "stage " + std::to_string(i + 1) + " of " +
                   std::to_string(stages.size()) + ", ";
    if (!runStage(stages[i], mixtures))
      return false;
  }
  report.endStage();
  return true;
}

bool TextCalibration::runStage(const Stage &stage,
                               const std::vector<Mixture> &mixtures) {
  Work work;
  size_t floats = 0;
  std::set<std::string> seen;
  for (const auto &some : stage) {
    WeightOp weight = some.first;
    int64_t layer = some.second;
    std::string name = weight.getSymName().str();
    auto mixture = llvm::find_if(
        mixtures, [&](const Mixture &each) { return each.up == weight; });
    bool isUp = mixture != mixtures.end();
    if (!find(weight, layer, 0) && !(isUp && find(mixture->down, layer, 0)))
      continue;
    // The second stack of a mixture is rounded with the first.
    if (!isUp && (weight.getParts() || weight.getLayerType().getRank() != 2))
      continue;
    int64_t columns = weight.getTensorType().getShape().back();
    if (isUp) {
      work.experts[{name, layer}] = {&*mixture, layer,   columns, 0,
                                     floats,    nullptr, {}};
      floats += size_t(run.countTokens() * columns);
    } else {
      work.dense[{name, layer}] = {find(weight, layer, 0), columns, floats};
      floats += size_t(columns * columns);
    }
    seen.insert(name);
  }
  if (seen.empty())
    return true;
  NamelessMemory memory;
  if (!memory.allocate(floats * sizeof(float), report))
    return false;
  auto *first = reinterpret_cast<float *>(memory.data());
  for (auto &[key, dense] : work.dense)
    dense.products = first + dense.place;
  for (auto &[key, experts] : work.experts)
    experts.inputs = first + experts.place;
  if (!run.run([&](StringRef name) { return seen.count(name.str()) > 0; },
               [&](const SeenInputs &some) { see(some, work); }))
    return false;
  std::vector<std::function<void()>> tasks;
  for (auto &[key, dense] : work.dense)
    tasks.push_back([this, &dense = dense] {
      mirrorProducts(dense.columns, dense.products);
      Wanted &matrix = *dense.matrix;
      round(matrix,
            readRows(matrix.weight, matrix.layer, matrix.part,
                     run.getCheckpoint()),
            dense.products, dense.columns);
    });
  for (auto &[key, experts] : work.experts) {
    WeightOp up = experts.mixture->up;
    for (int64_t expert = 0; expert < up.getNumParts(); ++expert)
      tasks.push_back(
          [this, &experts = experts, expert] { roundExpert(experts, expert); });
  }
  run.forEach(tasks.size(), [&](size_t i) { tasks[i](); });
  run.roundLayers(*chosen, [&](WeightOp weight, int64_t layer) {
    return llvm::any_of(stage, [&](auto &some) {
      return weight.getSymName() == WeightOp(some.first).getSymName() &&
             layer == some.second;
    });
  });
  return true;
}

void TextCalibration::see(const SeenInputs &seen, Work &work) {
  std::vector<std::pair<int64_t, float *>> layers;
  for (auto &[key, dense] : work.dense)
    if (key.first == seen.weight)
      layers.emplace_back(key.second, dense.products);
  run.forEach(layers.size(), [&](size_t i) {
    addProducts(seen.layer(layers[i].first), seen.tokens, seen.width,
                layers[i].second);
  });
  for (auto &[key, experts] : work.experts) {
    if (key.first != seen.weight || !seen.experts)
      continue;
    std::copy_n(seen.layer(key.second), seen.tokens * seen.width,
                experts.inputs + seen.begin * seen.width);
    const int64_t *choice = seen.expertsOf(key.second);
    experts.active = seen.active;
    experts.choice.insert(experts.choice.end(), choice,
                          choice + seen.tokens * seen.active);
  }
}

void TextCalibration::round(Wanted &matrix, const WeightRows &rows,
                            const float *products, int64_t columns) {
  std::vector<float> part;
  // Heads that were pruned give no inputs.
  if (!rows.columnsOf.empty()) {
    for (int64_t i : rows.columnsOf)
      for (int64_t j : rows.columnsOf)
        part.push_back(products[i * columns + j]);
    products = part.data();
  }
  RoundedMatrix rounded = roundCompensating(
      rows.values.data(), rows.rows, rows.columns, products, matrix.form);
  uint8_t *numbers = chosen->numbers.data() + matrix.place;
  auto *scales = reinterpret_cast<GroupScale *>(
      numbers + llvm::alignTo(rounded.numbers.size(), 8));
  llvm::copy(rounded.numbers, numbers);
  llvm::copy(rounded.scales, scales);
  matrix.matrix = {matrix.form,    rows.rows,    rows.columns,
                   numbers,        scales,       rows.rowsOf,
                   rows.columnsOf, rounded.lost, rounded.total};
  matrix.loss = rounded.loss;
  matrix.done = true;
}

std::vector<float> TextCalibration::valuesNow(WeightOp weight, int64_t layer,
                                              int64_t part) {
  const ChosenMatrix *matrix = chosen->find(chosenKey(weight, layer, part));
  if (!matrix)
    return readRows(weight, layer, part, run.getCheckpoint()).values;
  std::vector<float> values;
  for (int64_t row = 0; row < matrix->rows; ++row)
    for (int64_t column = 0; column < matrix->columns; ++column)
      values.push_back(matrix->valueAt(row, column));
  return values;
}

void TextCalibration::roundExpert(const Experts &experts, int64_t expert) {
  const Mixture &mixture = *experts.mixture;
  std::vector<float> inputs, biases;
  for (int64_t token = 0; token < run.countTokens(); ++token) {
    auto *first = &experts.choice[size_t(token * experts.active)];
    if (std::find(first, first + experts.active, expert) !=
        first + experts.active)
      inputs.insert(inputs.end(), experts.inputs + token * experts.columns,
                    experts.inputs + (token + 1) * experts.columns);
  }
  if (inputs.empty())
    return;
  auto count = int64_t(inputs.size()) / experts.columns;
  auto roundWith = [&](WeightOp stack, const std::vector<float> &seen) {
    Wanted *matrix = find(stack, experts.layer, expert);
    if (!matrix)
      return;
    int64_t columns = int64_t(seen.size()) / count;
    std::vector<float> products(size_t(columns * columns));
    addProducts(seen.data(), count, columns, products.data());
    mirrorProducts(columns, products.data());
    round(*matrix,
          readRows(matrix->weight, matrix->layer, matrix->part,
                   run.getCheckpoint()),
          products.data(), columns);
  };
  roundWith(mixture.up, inputs);
  std::vector<float> up = valuesNow(mixture.up, experts.layer, expert);
  int64_t rows = int64_t(up.size()) / experts.columns;
  std::vector<float> sums =
      multiplyRows(inputs.data(), count, experts.columns, up.data(), rows);
  if (mixture.upBias)
    biases = valuesNow(mixture.upBias, experts.layer, expert);
  std::vector<float> hidden;
  for (int64_t token = 0; token < count; ++token)
    mixture.addHidden(&sums[size_t(token * rows)], rows, biases, hidden);
  roundWith(mixture.down, hidden);
}

bool driver::chooseOnTexts(mlir::ModuleOp weights, const Options &options,
                           Report &report,
                           std::unique_ptr<ChosenOnTexts> &chosen) {
  TextCalibration calibration(options, report);
  if (!calibration.collect(weights))
    return false;
  if (!calibration.isEmpty()) {
    if (!calibration.choose())
      return false;
    chosen = std::move(calibration.chosen);
    return true;
  }
  // Heads were measured when they were chosen.
  bool measured = llvm::any_of(weights.getOps<WeightOp>(), keptOf);
  if (!measured && !options.mayMeasureNothing)
    report.fail("--calibrate=" + options.calibrationFile +
                " has nothing to measure: no matrix becomes int4 or int8 "
                "(--quantize=int4) and attention keeps its heads "
                "(--prune-heads=40%)");
  return measured || options.mayMeasureNothing;
}
