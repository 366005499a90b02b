//===- Statistics.cpp - What inspect and products say of a model ----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Statistics.h"

#include "Attune/AttuneDialect.h"
#include "Attune/AttuneFactors.h"
#include "attune/Weights/WeightLayout.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace attune;
using namespace attune::driver;

double driver::activeWeightBytes(const ModelStatistics &statistics) {
  if (statistics.parameters == 0)
    return statistics.weightBytes;
  return statistics.weightBytes * double(statistics.activeParameters) /
         double(statistics.parameters);
}

std::string driver::describeStatistics(const ModelStatistics &statistics) {
  std::string numbers, table;
  llvm::raw_string_ostream numbersOut(numbers), tableOut(table);
  printJson(statistics, numbersOut);
  printTable(statistics, tableOut);
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(numbers);
  if (!value) {
    llvm::consumeError(value.takeError());
    return numbers;
  }
  // The table that a product prints; the numbers are for programs.
  (*value->getAsObject())["table"] = table;
  std::string text;
  llvm::raw_string_ostream(text) << *value;
  return text;
}

/// Adds one factor of a matrix of low rank, or its scales.
static void countFactor(WeightOp weight, const Factor &factor, double bytes,
                        CompressionStatistics &result) {
  llvm::StringRef name = weight.getSymName();
  name.consume_back(".scales");
  name.consume_back(factor.left ? ".left" : ".right");
  auto known = llvm::find_if(
      result.lowRank, [&](const auto &other) { return other.name == name; });
  if (known == result.lowRank.end())
    known =
        result.lowRank.insert(known, {name.str(), factor.rows, factor.columns,
                                      0, uint64_t(weight.getNumLayers()), 0});
  known->bytes += bytes;
  if (factor.left && !weight.holdsScales())
    known->rank =
        weight.getPartType().getDimSize(1) * weight.getColumnsSideBySide();
}

bool driver::countCompressed(mlir::ModuleOp weights, double inactiveBytes,
                             ModelStatistics &statistics) {
  mlir::FailureOr<WeightLayout> layout = layoutWeights(weights);
  if (mlir::failed(layout))
    return false;
  CompressionStatistics result;
  result.bytes = double(layout->totalBytes);
  result.activeBytes = result.bytes - inactiveBytes;
  for (auto weight : weights.getOps<WeightOp>()) {
    const WeightPlace *place = layout->lookup(weight.getSymName());
    std::optional<Factor> factor = factorOf(weight);
    if (factor)
      countFactor(weight, *factor, double(place->totalBytes), result);
    if (weight.getGroup()) {
      std::string name = formOf(weight).text();
      auto form = llvm::find_if(
          result.forms, [&](const auto &known) { return known.name == name; });
      if (form == result.forms.end())
        form = result.forms.insert(form, {name});
      form->bytes += double(place->totalBytes);
      if (!weight.holdsScales())
        form->matrices +=
            uint64_t(weight.getNumLayers() * weight.getNumParts());
      continue;
    }
    int64_t rank = weight.getPartType().getRank();
    if (rank > 1 && !factor)
      result.left.emplace_back(weight.getSymName().str(),
                               double(place->totalBytes));
  }
  // Tables that tokens pick rows of are not read whole, and stay as they are.
  if (statistics.decode) {
    result.tokenBytesBefore = statistics.decode->bytes;
    result.tokenBytes = statistics.decode->bytes -
                        activeWeightBytes(statistics) + result.activeBytes;
  }
  statistics.compression = std::move(result);
  return true;
}
