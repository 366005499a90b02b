//===- Counter.h - Adds up what layers cost ---------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_ANALYSIS_COUNTER_H
#define ATTUNE_LIB_ANALYSIS_COUNTER_H

#include "attune/Analysis/ModelStatistics.h"

#include <set>

namespace attune {

constexpr double activationSize = 4; // f32

double sizeOf(spec::DType dtype);
/// Bytes of the cache of a position of one head, a key and a value: `numbers`
/// numbers in `rows` rows.
double bytesCached(const spec::Model &model, double numbers, double rows);

/// The experts of a layer; null if it has none.
const spec::MoE *mixtureOf(const spec::Layer &layer);

/// The sizes of a stream's sequence.
struct Extent {
  double batch = 1, tokens = 1;
  std::vector<double> parts = {}; ///< tokens of the parts put together
};

/// Adds up one layer after the other.
class Counter {
public:
  Counter(const spec::Model &model, ModelStatistics &result)
      : model(model), result(result) {}

  void run();

private:
  double extentOf(const spec::Dim &dim) const;
  Extent extentOf(const spec::Stream &stream) const;
  void startPlaces(const spec::Stream &stream);
  const spec::TensorSpec *findInput(const std::string &name) const;

  void countLayer(const spec::Layer &layer);
  void countWeights(const spec::Layer &layer);
  void countBlock(const spec::Block &block, int64_t width);
  void countAttention(const std::string &prefix,
                      const spec::Attention &attention, int64_t width,
                      int64_t out);
  void countBare(const spec::Attention &attention);
  void countFFN(const std::string &prefix, const spec::FFN &ffn, int64_t width,
                bool out = true);
  void countMoE(const std::string &prefix, const spec::MoE &moe, int64_t width);
  void countLatent(const std::string &prefix, const spec::Attention &attention,
                   int64_t width);
  void countRecurrent(const spec::Recurrent &recurrent, int64_t width);
  void countStep(const spec::ScanStep &step, double times);
  void countMamba(const std::string &prefix, const spec::Mamba &mamba,
                  int64_t width);
  void countShortConv(const spec::ShortConv &conv, int64_t width);
  void countDeltaRule(const spec::DeltaRule &rule, int64_t width);
  void countAlternating(const spec::Alternating &form, int64_t width);
  void countCopies(int64_t copies, int64_t width);
  void countTimeMix(const spec::TimeMix &mix, int64_t width);
  void countLinear(const spec::Linear &linear, int64_t width);
  void countConv(const spec::Conv &conv);
  void countConcat(const spec::Concat &concat);
  void countSlice(const spec::Slice &slice);
  void countJoint(const spec::Block &block, int64_t width);
  void countModulation(const spec::Modulation &by, int64_t rows);
  /// One token after the others, as generation runs the layer.
  void countDecode(const spec::Layer &layer);
  void countDecode(const spec::Attention &attention, double repeat);

  PartStatistics &part(const std::string &name);
  void addFlops(const std::string &name, double flops) {
    part(name).flops += flops * static_cast<double>(current.repeat);
  }
  void alive(double elements) {
    current.activationBytes =
        std::max(current.activationBytes, elements * activationSize);
  }
  double tokens() const { return here.batch * here.tokens; }
  /// Repeats of a layer that are the turn of so many blocks of its cycle.
  static int64_t repeatsOf(const spec::Layer &layer, size_t turn);
  /// Tokens of a sequence that a layer's cache has room for.
  double cachedTokens(const spec::Attention &attention);

  const spec::Model &model;
  ModelStatistics &result;
  std::map<std::string, Extent> extents;
  /// Of streams that end as an image's places: rows and columns.
  std::map<std::string, std::pair<double, double>> imagePlaces;
  std::set<std::string> counted; ///< weights by where they come from
  LayerStatistics current;
  Extent here, whole;         ///< whole: before it was cut into chunks
  double spatial[2] = {1, 1}; ///< height and width, or the tokens
  DecodeStatistics decode;
};

} // namespace attune

#endif // ATTUNE_LIB_ANALYSIS_COUNTER_H
