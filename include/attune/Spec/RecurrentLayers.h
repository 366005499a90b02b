//===- RecurrentLayers.h - Recurrences and scans ----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_SPEC_RECURRENTLAYERS_H
#define ATTUNE_SPEC_RECURRENTLAYERS_H

#include "attune/Spec/Activation.h"
#include "attune/Support/Diagnostics.h"

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace attune::spec {

enum class CellKind { Rnn, RnnRelu, Gru, Lstm };
/// Gates of a cell, each as wide as its state.
int64_t numGates(CellKind kind);

/// Recurrent layers over the tokens, as torch.nn.RNN, GRU and LSTM define them.
/// Roles, with their names there: "weight_ih_l0" [gates*width, D],
/// "weight_hh_l0" [gates*width, width], "bias_ih_l0" and "bias_hh_l0";
/// "_reverse" behind those of the backward direction. States are called
/// "h_l0", "c_l0" (lstm), "h_l0_reverse" and so on.
struct Recurrent {
  CellKind cell = CellKind::Gru;
  int64_t width = 0;
  int64_t layers = 1;
  bool bidirectional = false;
  bool bias = true;
  /// State to what it starts from: a further result of an earlier layer. The
  /// rest start from zeros.
  std::map<std::string, std::string> initial;
  SourceLocation location;
};

/// Steps of a scan read "input", each other by name, "<cell>.cell", and last
/// states of earlier layers as "<layer>.<state>".
/// Roles: "weight_ih" [gates*width, inputs], "weight_hh", "bias_ih", "bias_hh".
struct ScanCell {
  CellKind cell = CellKind::Gru;
  int64_t width = 0;
  std::vector<std::string> inputs; ///< side by side
  bool bias = true;
};
enum class ScoreKind { Dot, General, Additive, Concat };
/// The context vector of `query` over the tokens of `source`, a stream or a
/// float input. Roles: general "key.weight" [query's width, source's]; additive
/// "query.weight" [width, ...], "key.weight", "score.weight" [1, width] and the
/// biases asked for; concat has the first two side by side as "weight".
struct ScanAttend {
  ScoreKind score = ScoreKind::Additive;
  std::string query, source;
  int64_t queryWidth = 0, sourceWidth = 0;
  int64_t width = 0; ///< additive, concat
  Activation activation = Activation::Tanh;
  bool queryBias = false, keyBias = false, scoreBias = false;
};
/// act(x W + b) * multiply + add. Roles "weight" and "bias".
struct ScanLinear {
  std::vector<std::string> inputs; ///< side by side
  int64_t out = 0;
  bool bias = false;
  Activation activation = Activation::Identity;
  std::string multiply, add; ///< other values, may be empty
};
/// The mean of a stream's tokens or of a float input's (`start` only).
struct ScanMean {
  std::string source;
  int64_t sourceWidth = 0;
};
struct ScanStep {
  std::string name;
  std::variant<ScanCell, ScanAttend, ScanLinear, ScanMean> op;
  int64_t inputWidth = 0; ///< cell, linear: channels of all `inputs`
  int64_t width = 0;      ///< channels of its value
  SourceLocation location;
};
/// A loop over tokens whose body is `steps`. A name stands for the value that
/// its step last gave: read before its step, that is the previous token's, so
/// it is a state. States start from `initial` or zeros. Roles are those of the
/// steps with "<step>." before them.
struct Scan {
  std::vector<ScanStep> start; ///< once, before the loop
  std::vector<ScanStep> steps;
  /// State to a step of `start` or a further result of an earlier layer.
  std::map<std::string, std::string> initial;
  std::vector<std::string> result; ///< side by side
  SourceLocation location;
};

} // namespace attune::spec

#endif // ATTUNE_SPEC_RECURRENTLAYERS_H
