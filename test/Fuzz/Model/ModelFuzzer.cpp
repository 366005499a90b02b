//===- ModelFuzzer.cpp - Random valid models, fused against unfused -------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A description that is accepted becomes a module, and every pass from there to
// loops over tiles must keep what its functions compute: an interpreter runs
// them before and after each (lib/Validation), on inputs of several lengths.
//
// Mutations know what a description is made of. Each changes one place of the
// JSON text: a value becomes another one that some seed has under the same key,
// a key comes or goes, numbers are made a little larger or smaller. The passes
// are not instrumented. What libFuzzer keeps an input for is the kinds of ops
// that it has, by names and attributes, before and after fusion.
//
//===----------------------------------------------------------------------===//

#include "../Compiler/Collector.h"

#include "Attune/AttuneDialect.h"
#include "attune/Import/ImportSpec.h"
#include "attune/InitAll.h"
#include "attune/Pipelines/Pipelines.h"
#include "attune/Validation/Validation.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"

#include "nlohmann/json.hpp"

#include <filesystem>
#include <map>
#include <random>

using namespace attune;
using Json = nlohmann::ordered_json;

namespace {
/// Numbers of a model that takes long to interpret are larger.
constexpr int64_t kMostNumber = 512;
constexpr size_t kMostOps = 3000;

/// libFuzzer counts these as it does edges.
constexpr size_t kNumShapes = 1 << 14;
[[gnu::used,
  gnu::section(
      "__libfuzzer_extra_counters")]] volatile uint8_t shapes[kNumShapes];

/// What seeds say: the values of each key, and the entries of the object under
/// each key.
struct Vocabulary {
  std::map<std::string, std::vector<Json>> values;
  std::map<std::string, std::vector<std::pair<std::string, Json>>> entries;

  void learn(const Json &value, const std::string &key) {
    if (value.is_object())
      for (const auto &[name, inner] : value.items()) {
        values[name].push_back(inner);
        entries[key].emplace_back(name, inner);
        learn(inner, name);
      }
    else if (value.is_array())
      for (const Json &inner : value)
        learn(inner, key);
  }
};

const Vocabulary &vocabulary() {
  static const Vocabulary all = [] {
    Vocabulary learned;
    const char *folder = std::getenv("ATTUNE_FUZZ_MODELS");
    FUZZ_REQUIRE(folder);
    for (const auto &file : std::filesystem::directory_iterator(folder)) {
      Json model = Json::parse(fuzzing::readFile(file.path().string()), nullptr,
                               /*allow_exceptions=*/false);
      FUZZ_REQUIRE(!model.is_discarded());
      learned.learn(model, "");
    }
    return learned;
  }();
  return all;
}

/// A value of a document and the key that it stands under, or its array does.
struct Place {
  Json *value;
  std::string key;
};

void findPlaces(Json &value, const std::string &key,
                std::vector<Place> &places) {
  places.push_back({&value, key});
  if (value.is_object())
    for (auto &[name, inner] : value.items())
      findPlaces(inner, name, places);
  else if (value.is_array())
    for (Json &inner : value)
      findPlaces(inner, key, places);
}

class Mutator {
public:
  explicit Mutator(unsigned seed) : random(seed) {}

  size_t below(size_t count) { return count ? random() % count : 0; }

  void mutate(Json &model) {
    std::vector<Place> places;
    findPlaces(model, "", places);
    Place &place = places[below(places.size())];
    Json &value = *place.value;
    if (value.is_object())
      return changeKeys(value, place.key);
    if (value.is_array())
      return changeLength(value);
    auto known = vocabulary().values.find(place.key);
    if (below(2) && known != vocabulary().values.end())
      value = known->second[below(known->second.size())];
    else if (value.is_boolean())
      value = !value.get<bool>();
    else if (value.is_number_integer())
      changeNumber(value);
  }

private:
  void changeKeys(Json &object, const std::string &key) {
    auto known = vocabulary().entries.find(key);
    if (object.empty() || (below(2) && known != vocabulary().entries.end())) {
      if (known == vocabulary().entries.end())
        return;
      const auto &[name, value] = known->second[below(known->second.size())];
      object[name] = value;
      return;
    }
    object.erase(std::next(object.begin(), below(object.size())));
  }
  void changeLength(Json &array) {
    if (array.empty())
      return;
    auto at = std::next(array.begin(), below(array.size()));
    if (below(2))
      array.erase(at);
    else
      array.insert(at, Json(*at));
  }
  void changeNumber(Json &value) {
    auto number = value.get<int64_t>();
    switch (below(4)) {
    case 0:
      value = number + 1;
      break;
    case 1:
      value = number - 1;
      break;
    case 2:
      value = number * 2;
      break;
    default:
      value = number / 2;
    }
  }

  std::minstd_rand random;
};

size_t giveText(const Json &model, uint8_t *data, size_t most) {
  std::string text = model.dump();
  if (text.size() > most)
    return 0;
  std::memcpy(data, text.data(), text.size());
  return text.size();
}

Json parseText(const uint8_t *data, size_t size) {
  return Json::parse(data, data + size, nullptr, /*allow_exceptions=*/false);
}

bool isSmall(const Json &value, const std::string &key = "") {
  if (value.is_number_integer())
    return key == "theta" || value.get<int64_t>() <= kMostNumber;
  if (value.is_object())
    for (const auto &[name, inner] : value.items())
      if (!isSmall(inner, name))
        return false;
  if (value.is_array())
    for (const Json &inner : value)
      if (!isSmall(inner, key))
        return false;
  return true;
}

/// Counts the kinds of ops; returns how many ops there are.
size_t countShapes(mlir::ModuleOp module, unsigned stage) {
  size_t number = 0;
  module.walk([&](mlir::Operation *op) {
    ++number;
    llvm::hash_code kind = llvm::hash_combine(
        stage, op->getName().getStringRef(), op->getNumOperands());
    for (mlir::NamedAttribute attribute : op->getAttrs()) {
      kind = llvm::hash_combine(kind, attribute.getName().getValue());
      // Of a dialect: which activation, pairing, scoring.
      if (llvm::isa<AttuneDialect>(attribute.getValue().getDialect()))
        kind = llvm::hash_combine(kind, attribute.getValue());
    }
    shapes[size_t(kind) % kNumShapes] = 1;
  });
  return number;
}

/// Runs a part of the way to code on the module. A pass that changes what is
/// computed is a finding, and so is one that fails without saying why.
bool run(mlir::ModuleOp module, Validation &validation,
         const ValidationResult &result,
         void (*build)(mlir::OpPassManager &, const PipelineOptions &)) {
  PipelineOptions options;
  options.target = *describeTarget("x86-64-v3");
  mlir::PassManager passes(module.getContext());
  passes.setNesting(mlir::OpPassManager::Nesting::Implicit);
  build(passes, options);
  validation.attach(passes);
  std::string said;
  mlir::ScopedDiagnosticHandler handler(
      module.getContext(), [&](mlir::Diagnostic &diagnostic) {
        llvm::raw_string_ostream out(said);
        out << diagnostic << '\n';
        for (mlir::Diagnostic &note : diagnostic.getNotes())
          out << note << '\n';
      });
  bool done = mlir::succeeded(passes.run(module));
  if (result.mismatches != 0 || (!done && said.empty())) {
    std::fprintf(stderr, "%s\n", said.c_str());
    FUZZ_REQUIRE(result.mismatches == 0);
    FUZZ_REQUIRE(done || !said.empty());
  }
  return done;
}

mlir::MLIRContext &context() {
  static mlir::MLIRContext &made = *[] {
    mlir::DialectRegistry registry;
    mlir::registerAllDialects(registry);
    mlir::registerAllExtensions(registry);
    attune::registerAllDialects(registry);
    return new mlir::MLIRContext(registry,
                                 mlir::MLIRContext::Threading::DISABLED);
  }();
  return made;
}
} // namespace

extern "C" int LLVMFuzzerInitialize(int *, char ***) {
  vocabulary();
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size,
                                          size_t most, unsigned seed) {
  Json model = parseText(data, size);
  if (model.is_discarded())
    return 0;
  Mutator mutator(seed);
  for (size_t left = 1 + mutator.below(3); left > 0; --left)
    mutator.mutate(model);
  return giveText(model, data, most);
}

/// The first model with some value of the second, under the same key.
extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t *first, size_t size1,
                                            const uint8_t *second, size_t size2,
                                            uint8_t *out, size_t most,
                                            unsigned seed) {
  Json model = parseText(first, size1), other = parseText(second, size2);
  if (model.is_discarded() || other.is_discarded())
    return 0;
  Mutator mutator(seed);
  std::vector<Place> places, others, same;
  findPlaces(model, "", places);
  findPlaces(other, "", others);
  const Place &from = others[mutator.below(others.size())];
  for (const Place &place : places)
    if (place.key == from.key)
      same.push_back(place);
  if (same.empty())
    return 0;
  *same[mutator.below(same.size())].value = *from.value;
  return giveText(model, out, most);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Json text = parseText(data, size);
  if (text.is_discarded() || !isSmall(text))
    return -1;
  fuzzing::Collector diags;
  std::optional<spec::Model> model =
      spec::parse(fuzzing::makeFile(fuzzing::asText(data, size)), diags);
  if (!model)
    return -1;
  mlir::OwningOpRef<mlir::ModuleOp> module =
      importSpec(context(), *model, {}, diags);
  FUZZ_REQUIRE(module || diags.getNumErrors() > 0);
  if (!module || countShapes(*module, 0) > kMostOps)
    return -1;
  ValidationOptions options;
  options.budget = 2000000;
  options.total = 20000000;
  auto result = std::make_shared<ValidationResult>();
  Validation validation(options, result);
  if (!run(*module, validation, *result, buildEntriesPipeline) ||
      !run(*module, validation, *result, buildOptimizePipeline))
    return 0;
  countShapes(*module, 1);
  run(*module, validation, *result, buildTensorPipeline);
  return 0;
}
