//===- RecurrentLayers.cpp - Shapes of recurrent layers' results ----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Spec/Spec.h"

#include <algorithm>
#include <set>

namespace attune::spec {

int64_t numGates(CellKind kind) {
  switch (kind) {
  case CellKind::Rnn:
  case CellKind::RnnRelu:
    return 1;
  case CellKind::Gru:
    return 3;
  case CellKind::Lstm:
    return 4;
  }
  return 0;
}

std::vector<FurtherResult> furtherResults(const Layer &layer) {
  std::vector<FurtherResult> results;
  if (const auto *op = std::get_if<Recurrent>(&layer.op)) {
    for (int64_t number = 0; number < op->layers; ++number)
      for (const char *suffix : {"", "_reverse"}) {
        if (*suffix && !op->bidirectional)
          continue;
        std::string place = "_l" + std::to_string(number) + suffix;
        results.push_back({"h" + place, /*tokens=*/false, op->width});
        if (op->cell == CellKind::Lstm)
          results.push_back({"c" + place, /*tokens=*/false, op->width});
      }
  } else if (const auto *op = std::get_if<Scan>(&layer.op)) {
    for (const ScanStep &step : op->steps) {
      results.push_back({step.name, /*tokens=*/true, step.width});
      const auto *cell = std::get_if<ScanCell>(&step.op);
      if (cell && cell->cell == CellKind::Lstm)
        results.push_back({step.name + ".cell", /*tokens=*/true, step.width});
      if (std::holds_alternative<ScanAttend>(step.op))
        results.push_back({step.name + ".weights", /*tokens=*/true, 0});
    }
  }
  return results;
}

std::vector<std::string> statesOf(const Scan &scan) {
  std::vector<std::string> states;
  std::set<std::string> own, given;
  for (const ScanStep &step : scan.steps)
    own.insert({step.name, step.name + ".cell"});
  auto add = [&](const std::string &name) {
    if (own.count(name) && !given.count(name) &&
        std::find(states.begin(), states.end(), name) == states.end())
      states.push_back(name);
  };
  for (const ScanStep &step : scan.steps) {
    if (const auto *op = std::get_if<ScanCell>(&step.op)) {
      for (const std::string &name : op->inputs)
        add(name);
      add(step.name);
      if (op->cell == CellKind::Lstm)
        add(step.name + ".cell");
    } else if (const auto *op = std::get_if<ScanAttend>(&step.op)) {
      add(op->query);
    } else if (const auto *op = std::get_if<ScanLinear>(&step.op)) {
      for (const std::string &name : op->inputs)
        add(name);
      add(op->multiply);
      add(op->add);
    }
    given.insert({step.name, step.name + ".cell"});
  }
  return states;
}

} // namespace attune::spec
