//===- PrintRecurrent.cpp - Recurrences and scans as JSON -------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PrintRecurrent.h"

#include "attune/Spec/Spec.h"

namespace attune::spec {

Json print(const Recurrent &recurrent) {
  Json json = Json::object();
  json["cell"] = stringify(recurrent.cell);
  json["width"] = recurrent.width;
  if (recurrent.layers != 1)
    json["layers"] = recurrent.layers;
  if (recurrent.bidirectional)
    json["bidirectional"] = true;
  if (!recurrent.bias)
    json["bias"] = false;
  if (!recurrent.initial.empty())
    json["initial"] = recurrent.initial;
  return json;
}

static Json print(const ScanStep &step) {
  Json json = Json::object(), options = Json::object();
  if (const auto *op = std::get_if<ScanCell>(&step.op)) {
    options["cell"] = stringify(op->cell);
    options["width"] = op->width;
    options["inputs"] = op->inputs;
    if (!op->bias)
      options["bias"] = false;
    json["cell"] = std::move(options);
  } else if (const auto *op = std::get_if<ScanAttend>(&step.op)) {
    options["score"] = stringify(op->score);
    options["query"] = op->query;
    options["source"] = op->source;
    if (op->score == ScoreKind::Additive || op->score == ScoreKind::Concat) {
      options["width"] = op->width;
      options["activation"] = stringify(op->activation);
    }
    if (op->queryBias)
      options["query_bias"] = true;
    if (op->scoreBias)
      options["score_bias"] = true;
    if (op->keyBias)
      options["key_bias"] = true;
    json["attend"] = std::move(options);
  } else if (const auto *op = std::get_if<ScanLinear>(&step.op)) {
    options["inputs"] = op->inputs;
    options["out"] = op->out;
    if (op->bias)
      options["bias"] = true;
    if (op->activation != Activation::Identity)
      options["activation"] = stringify(op->activation);
    if (!op->multiply.empty())
      options["multiply"] = op->multiply;
    if (!op->add.empty())
      options["add"] = op->add;
    json["linear"] = std::move(options);
  } else {
    options["source"] = std::get<ScanMean>(step.op).source;
    json["mean"] = std::move(options);
  }
  json["name"] = step.name;
  return json;
}

static Json print(const std::vector<ScanStep> &steps) {
  Json json = Json::array();
  for (const ScanStep &step : steps)
    json.push_back(print(step));
  return json;
}

Json print(const Scan &scan) {
  Json json = Json::object();
  if (!scan.start.empty())
    json["start"] = print(scan.start);
  if (!scan.initial.empty())
    json["initial"] = scan.initial;
  json["steps"] = print(scan.steps);
  json["result"] = scan.result;
  return json;
}

} // namespace attune::spec
