//===- LayerParser.h - One entry of "layers" --------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_SPEC_PARSER_LAYERPARSER_H
#define ATTUNE_LIB_SPEC_PARSER_LAYERPARSER_H

#include "Reader.h"
#include "attune/Spec/Spec.h"

namespace attune::spec {

/// Reads the layers of one stream in order. Numbers that errors made unknown
/// become 0 in the structs; nobody sees those, since parse() then fails.
class LayerParser {
public:
  /// `model` has the inputs and the streams before this one. `width` of the
  /// stream's input: 0 for ids or none; `pooled` if that is [batch, width].
  LayerParser(Context &context, const Model &model, Stream &stream, Known width,
              bool pooled, std::string namePrefix)
      : context(context), model(model), stream(stream), width(width),
        pooled(pooled), namePrefix(std::move(namePrefix)) {
    findPlaces();
  }

  /// Appends the layer to the stream.
  void parse(const Object &object, size_t index);
  /// Behind the last layer of the stream.
  void finish(const Object &object);

private:
  enum class Place { Alone, Self, Cross };

  void parseCommon(const Object &object, size_t index, Layer &layer);
  void parseWeights(const Object &object, Layer &layer);
  std::optional<WeightSource> parseSource(const Value &value,
                                          const Object &layer,
                                          const std::string &pointer,
                                          bool experts);
  /// `experts` says whether {e} may stand in the name, too.
  void checkTemplate(const Value &value, const std::string &pointer,
                     bool experts = false);

  void findPlaces();
  bool needWidth(const Object &object);
  bool needTokens(const Object &object);
  PositionCount defaultCount() const;
  Embedding parseEmbedding(const Object &object);
  Positions parsePositions(const Object &object);
  void parseGrid(const Object &object, Positions &positions);
  void parseShapes(const Object &object, Positions &positions);
  Block parseBlock(const Object &object);
  void parseCycle(const Object &object, Layer &layer);
  Attention parseAttention(const Object &object, Place place);
  void parseBare(const Object &object, Attention &attention);
  void parseHeads(const Object &object, Attention &attention, Known heads,
                  Known kvHeads, Known headDim, Known valueDim);
  void parseMasking(const Object &object, Attention &attention);
  void parseSource(const Object &object, Place place, Attention &attention);
  void parseForms(const Object &object, Attention &attention);
  void parseLengths(const Object &object, Attention &attention);
  void parseRelative(const Object &object, Attention &attention);
  void parseBlockSparse(const Object &object, const Object &options,
                        Attention &attention);
  void parseDisentangled(const Object &object, const Object &options,
                         Attention &attention);
  void parseFading(const Object &object, const Object &options,
                   const Object &own, Attention &attention);
  void parseLinearForm(const Object &object, const Object &options,
                       Attention &attention);
  void parseSequenceRank(const Object &object, const Object &options,
                         Attention &attention);
  RelativeBias parseRelativeBias(const Object &object,
                                 const Attention &attention);
  Rope parseRope(const Object &object, Known headDim);
  void parseSections(const Object &object, Known channels, Rope &rope);
  void parseRopeAxes(const Object &object, const Object &options, Rope &rope);
  void parseRopeScaling(const Object &object, Known channels, Rope &rope);
  Norm parseNorm(const Object &object, std::optional<NormKind> fixed,
                 NormKind fallback);
  FFN parseFFN(const Object &object);
  MoE parseMoE(const Object &object);
  Router parseRouter(const Object &object, Known experts, Known active);
  void checkGroups(const Object &object, const Router &router, int64_t experts,
                   Known active);
  void parseMemory(const Object &object, Block &block);
  void parseJoint(const Object &object, Block &block);
  void parseSharedOut(const Object &object, Block &block);
  void parseLatent(const Object &object, const Object &options,
                   Attention &attention);
  KeyIndex parseKeyIndex(const Object &object, const Object &options,
                         const Latent &latent, int64_t turned);
  Linear parseLinear(const Object &object);
  bool parseVision(const Object &object, Layer &layer);
  Pool parsePool(const Object &object);
  ClassTokens parseClassTokens(const Object &object);
  Slice parseSlice(const Object &object);
  Concat parseConcat(const Object &object);
  Conv parseConv(const Object &object);
  std::vector<int64_t> parseSizes(const Object &object, const char *key,
                                  size_t dims, int64_t fallback);
  Add parseAdd(const Object &object);
  Similarity parseSimilarity(const Object &object);
  Insert parseInsert(const Object &object);
  bool parsePlaces(const Object &object, Layer &layer);
  std::vector<bool> partsBehind(const Concat &concat) const;
  Unpatch parseUnpatch(const Object &object);
  bool parseSignals(const Object &object, Layer &layer);
  Modulation parseModulation(const Object &object);
  void checkModulation(const Object &object, const Block &block);
  Timestep parseTimestep(const Object &object);
  Chunk parseChunk(const Object &object);
  bool parseCopies(const Object &object, Layer &layer);
  LayerInputs parseLayerInputs(const Object &object);
  Alternating parseAlternating(const Object &block, const Object &object,
                               Placement placement);
  void parseLender(const Object &object, Attention &attention);
  bool parseExtension(const Object &object, Layer &layer);
  bool parseFunction(const Object &object, Layer &layer);
  Function parseActivation(const Object &object);
  Function parseSoftmax(const Object &object);
  Function parseRotary(const Object &object);
  CrossEntropy parseCrossEntropy(const Object &object);

  Recurrent parseRecurrent(const Object &object);
  Scan parseScan(const Object &object);
  Mamba parseMamba(const Object &object);
  DeltaRule parseDeltaRule(const Object &object);
  TimeMix parseTimeMix(const Object &object);
  void parseHeads(const Object &object, Mamba &mamba);
  ScanStep parseStep(const Object &object, bool inLoop);
  ScanCell parseCell(const Object &object);
  ScanAttend parseAttend(const Object &object);
  ScanLinear parseScanLinear(const Object &object);
  std::vector<std::string> parseNames(const Object &object, const char *key);
  std::map<std::string, std::string> parseInitial(const Object &object);
  int64_t findTokens(const Object &object);
  std::vector<const Stream *> earlierStreams() const;
  std::map<std::string, FurtherResult> earlierResults() const;

  const TensorSpec *findInput(const Object &object, const char *key);
  const Layer *findEmbedding(const std::string &name) const;
  const Layer *findSource(const Object &object);
  const TensorSpec *streamInput() const;

  Context &context;
  const Model &model;
  Stream &stream;
  Known width; ///< channels now; 0 without a [batch, tokens, width] stream
  bool pooled; ///< the stream is [batch, width] now
  /// Channels of the values of the last time_mix without value_rank.
  Known firstValues;
  /// What the stream's layer_inputs have for each block; 0: there are none.
  int64_t layerInputs = 0;
  /// Channels of the embedding that the stream begins with; 0: it has none.
  int64_t embedded = 0;
  bool inMemory = false;   ///< within a block that has a memory
  bool grid = false;       ///< the tokens are the places of an image
  bool windowed = false;   ///< they are those of windows of an image
  bool behindGrid = false; ///< they are those of an image behind others
  /// Which of the parts that `concat` put one behind the other are the places
  /// of an image.
  std::vector<bool> parts;
  /// The tokens are those of chunks, or chunks at the same place of theirs.
  enum class Chunks { None, Cut, Swapped } chunks = Chunks::None;
  std::string namePrefix;
  bool exact = true; ///< no error so far in the layer being read
};

} // namespace attune::spec

#endif // ATTUNE_LIB_SPEC_PARSER_LAYERPARSER_H
