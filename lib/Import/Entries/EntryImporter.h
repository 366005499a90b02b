//===- EntryImporter.h - One entry of the module ----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_IMPORT_ENTRIES_ENTRYIMPORTER_H
#define ATTUNE_LIB_IMPORT_ENTRIES_ENTRYIMPORTER_H

#include "../EqualLayers.h"
#include "../Layers/LayerImporter.h"
#include "attune/Import/ImportSpec.h"
#include "attune/Import/PositionMath.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <map>

namespace attune {

/// State that the entries of one module share.
struct ModuleImport {
  const spec::Model &model;
  const ImportOptions &options;
  mlir::ModuleOp module;
  WeightTable &weights;
  /// The storage type of weights, and of keys and values that are kept, but for
  /// those that decoding caches if these are bytes.
  mlir::Type storage;
  /// Symbol prefix of each layer of each stream, unique in the module.
  std::vector<std::vector<std::string>> symbols;
  std::vector<EqualLayers> equal; ///< of each stream
  DiagnosticEngine &diags;
  /// The names of the dimensions of each stream's result, once an entry was
  /// built.
  std::map<std::string, std::vector<spec::Dim>> shapes;
};

/// Tokens that stand in front of or behind others.
struct TokenPart {
  spec::Dim tokens;
  mlir::Value count = {};
  /// If they are the places of an image.
  mlir::Value height = {}, width = {};
  std::vector<spec::Dim> places = {};
  int64_t before = 0; ///< class tokens before those places
};

/// A tensor with what its dimensions are called.
struct NamedTensor {
  mlir::Value value;
  std::vector<spec::Dim> shape;
  mlir::Value mask = {}; ///< of its tokens; null if every one counts
  /// If its tokens are the places of an image.
  mlir::Value height = {}, width = {};
  int64_t before = 0; ///< class tokens before those places
  /// If its tokens are those of windows of an image: their rows and columns,
  /// and how many windows stand beside each other and in all.
  std::pair<int64_t, int64_t> window = {};
  mlir::Value across = {}, windows = {};
  /// If its tokens are those of chunks: how many of each sequence, and the
  /// tokens and sequences before they were cut.
  mlir::Value chunks = {}, wholeTokens = {}, wholeBatch = {};
  spec::Dim tokensBefore = {}, batchBefore = {};
  std::vector<spec::Dim> places = {}; ///< the same as a description has them
  /// If its tokens are those of several streams, one behind the other.
  std::vector<TokenPart> parts = {};
};

/// A stream of the model within one entry.
struct StreamState {
  const spec::Stream &spec;
  const std::vector<std::string> &symbols;
  const EqualLayers &equal;
  /// The inputs that hide padding and number the tokens. For an input called
  /// "decoder_input_ids" these are "decoder_attention_mask" and
  /// "decoder_position_ids", as Hugging Face calls them; "pixel_values" may
  /// have a "pixel_attention_mask".
  std::string maskName, positionsName;
  /// The graph input that it starts from, also through other streams.
  std::string root;
  mlir::Value mask; ///< [batch, 1, 1, keys], null if every token counts
  std::map<int64_t, mlir::Value> sizes;
  NamedTensor result; ///< after the last layer
};

/// The entries of a module.
enum class EntryKind {
  Forward, ///< every token of the input, no cache
  /// The part of an encoder-decoder that runs once for all steps: every stream
  /// but the last, then keys and values of the last one's attention to them.
  Encode,
  Decode,    ///< new tokens after cached ones, logits of the last
  DecodeAll, ///< the same with the logits of all new tokens
  /// The same as Decode where the new tokens all see each other.
  DecodeSpan,
  /// A token for each sequence, whose numbers of cached ones differ.
  DecodeBatch,
  Sound,       ///< samples of the codes that were written, no other stream
  EncodeSound, ///< codes of samples
};

/// The product of a number and a frequency, less whole turns. It is computed in
/// f64: of a large angle f32 leaves few digits behind the turns.
mlir::Value angleOf(mlir::OpBuilder &builder, mlir::Location loc,
                    mlir::Value number, mlir::Value frequency);

/// The model's input of this name, or null.
const spec::TensorSpec *findInput(const spec::Model &model,
                                  const std::string &name);

/// The vectors in the stream's text because of which tokens see each other in
/// both directions, or null.
const spec::Insert *bidirectionalOf(const spec::Stream &stream);
/// Whether they can: an error says at which layer, and why not.
bool checkBidirectional(const spec::Model &model, DiagnosticEngine &diags);

/// Whether it makes codes of samples that it hears.
bool encodesSound(const spec::Model &model);

/// Builds one entry and the functions of the repeated layers it calls.
class EntryImporter {
public:
  EntryImporter(ModuleImport &shared, EntryKind kind);
  mlir::LogicalResult run();

private:
  /// A function argument before the function exists.
  struct Argument {
    std::string name, kind, fallback;
    mlir::Type type;
    std::vector<spec::Dim> shape;
    std::optional<int64_t> max;
    mlir::Location loc;
    std::optional<int64_t> ignored = {};
    int64_t ring = 0; ///< the window that it is about
    /// For rows that take the places of tokens: the tokens' id, and how many
    /// rows each picture has, or 0 if that is not known.
    std::optional<int64_t> insertedId = {};
    int64_t insertedEach = 0;
  };

  /// Attention weights that an output asks for.
  struct AskedMap {
    spec::AttentionTap tap;
    std::string output;     ///< what it names
    mlir::Value value = {}; ///< so far; null before the stream is built
  };

  /// How many tokens caches hold: a number, or one for each sequence; the most
  /// of them with the new ones; and with these of each sequence, if they
  /// differ.
  struct Held {
    mlir::Value past, length, lengths;
  };

  // Signature.
  mlir::LogicalResult collectArguments();
  void addInput(const spec::TensorSpec &input);
  mlir::Value widened(mlir::Value value, const Argument &argument);
  bool skipsPadding(const std::string &positionsName) const;
  void addImplicitInputs(const StreamState &of);
  void addCaches();
  void addHeld(int64_t ring);
  void addCrossCaches();
  bool reads(const StreamState &of, const std::string &input) const;
  mlir::LogicalResult collectBareInputs();
  mlir::LogicalResult collectFormInputs();
  bool formsRead(const StreamState &of, const std::string &input) const;
  std::optional<int64_t> idBound(const std::string &input) const;
  std::optional<int64_t> ignoredId(const std::string &input) const;
  mlir::LogicalResult createFunction();
  mlir::NamedAttrList attributes(llvm::StringRef kind, llvm::StringRef name,
                                 llvm::ArrayRef<spec::Dim> shape) const;
  mlir::LogicalResult finish();

  // Body.
  mlir::LogicalResult importStream();
  void countPast();
  Held held(int64_t ring) const;
  void importMask(StreamState &of);
  mlir::LogicalResult importCrossCaches();
  mlir::func::FuncOp createCross(size_t number, mlir::Type keys,
                                 mlir::Type values);
  bool wantsHiddenStates() const;
  mlir::LogicalResult importLayer(size_t number);
  mlir::LogicalResult importBareAttention(size_t number);
  mlir::LogicalResult importEmbedding(size_t number);
  mlir::LogicalResult importPositions(size_t number);
  mlir::LogicalResult importGrid(size_t number);
  mlir::LogicalResult importShapes(size_t number);
  void setPositions(const spec::Positions &op, mlir::Location at,
                    mlir::Value result);
  mlir::Value placeOf(mlir::Location at, bool row);
  mlir::LogicalResult importPlaces(size_t number);
  mlir::LogicalResult importWindows(size_t number);
  void undoWindows();
  mlir::LogicalResult importMerge(size_t number);
  mlir::Value interpolated(const spec::Positions &op, mlir::Location at,
                           mlir::Value table);
  mlir::Value channelsOf(mlir::Location at, mlir::Value tokens, int64_t first,
                         int64_t count);
  mlir::Value centred(const spec::Positions &op, mlir::Location at,
                      mlir::Value table);
  mlir::Value sinusoids(const spec::Positions &op, mlir::Location at,
                        mlir::Value positions, mlir::Value addend,
                        int64_t channels);
  mlir::LogicalResult importRecurrent(size_t number);
  mlir::LogicalResult importScan(size_t number);
  bool hasTokens(const spec::Layer &layer);
  mlir::LogicalResult importInline(size_t number);
  mlir::LogicalResult importVision(size_t number);
  mlir::LogicalResult importConv(size_t number);
  mlir::Value asOneChannel(mlir::Location at, mlir::Value input);
  mlir::Value paddedPlaces(mlir::Location at, mlir::Value input, int64_t before,
                           int64_t behind, int64_t stride, bool mirrors);
  mlir::LogicalResult importTransposed(size_t number);
  mlir::LogicalResult importCodes();
  mlir::Value nearestCodes(const spec::Layer &layer, const std::string &symbol,
                           int64_t count);
  mlir::Value byPlaces(mlir::Location at, mlir::Value patches,
                       int64_t channels);
  mlir::Value convInput(mlir::Location at, const spec::Conv &op,
                        std::vector<int64_t> &padding);
  mlir::Value countShown(mlir::Location at, mlir::Value mask);
  mlir::Value maskBehind(mlir::Location at, const spec::Conv &op,
                         mlir::Value mask, mlir::Value places);
  mlir::Value firstShown(mlir::Location at, mlir::Value counts,
                         mlir::Value places);
  mlir::LogicalResult normPlaces(size_t number, const spec::InstanceNorm &op,
                                 const std::string &prefix = "");
  mlir::Value groupedProduct(size_t number, mlir::Value patches);
  mlir::Value shown(mlir::Location at, mlir::Value tokens);
  void importSlice(const spec::Slice &op, const spec::Layer &layer);
  mlir::LogicalResult importPart(const spec::Slice &op,
                                 const spec::Layer &layer);
  mlir::LogicalResult importUnpatch(size_t number);
  mlir::LogicalResult importConcat(size_t number);
  mlir::LogicalResult importInsert(size_t number);
  mlir::LogicalResult importInsertedRows();
  mlir::Value vectorsOf(const spec::Layer &layer);
  void addInsertedRows();
  mlir::Value asImage(mlir::Location loc, mlir::Value tokens);
  mlir::LogicalResult importPool(size_t number);
  mlir::LogicalResult importAdd(size_t number);
  mlir::LogicalResult importSimilarity(size_t number);
  mlir::LogicalResult importSignals(size_t number);
  mlir::LogicalResult importModulate(size_t number);
  mlir::LogicalResult importTimestep(size_t number);
  mlir::LogicalResult importChunk(size_t number);
  void swapChunks(mlir::Location at);
  void overlapAdd(mlir::Location at);
  /// The pooled result that modulates, activated; null after an error.
  mlir::Value conditionOf(const spec::Modulation &by);
  /// A tensor [sizes..] of numbers, each made of its indices.
  mlir::Value
  generate(mlir::Location at, llvm::ArrayRef<mlir::OpFoldResult> sizes,
           mlir::Type type,
           llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::ValueRange)>
               element);
  /// A tensor [sizes.., channels] of f32.
  mlir::Value
  generate(mlir::Location at, llvm::ArrayRef<mlir::Value> sizes,
           int64_t channels,
           llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::ValueRange)>
               element);
  mlir::LogicalResult importCrossEntropy(size_t number);
  mlir::Value countPositions(const spec::Positions &positions,
                             mlir::Location loc);
  mlir::Value behindPast(mlir::Value numbers, mlir::Location at);
  /// The result of an earlier stream or layer; null if there is none.
  const NamedTensor *findResult(const std::string &name) const;
  mlir::Value scaled(mlir::Value tensor, mlir::Value factor);
  mlir::Value roleOf(size_t number, llvm::StringRef role, int64_t rows,
                     int64_t columns);
  mlir::LogicalResult importCalls(size_t number);
  mlir::Value tiedTable(const spec::Linear &head, const spec::Layer &layer);
  /// A function of a layer's, and which block of its cycle it is.
  struct MadeBlock {
    std::string text;
    mlir::func::FuncOp callee;
  };
  mlir::func::FuncOp createBlock(size_t number, const spec::Layer &layer,
                                 const std::string &text);
  /// A block that a repeat calls, and what it reads.
  struct Turn {
    mlir::func::FuncOp callee;
    LayerScope scope;
    int64_t ring = 0;
    /// Which of the values that the loop over the repeats carries it replaces.
    llvm::SmallVector<size_t> places = {};
  };
  mlir::LogicalResult createTurns(size_t number,
                                  llvm::SmallVectorImpl<Turn> &turns);
  mlir::LogicalResult fillScope(const spec::Layer &layer, LayerScope &scope);
  void fillValues(const spec::TimeMix &mix, LayerScope &scope);
  /// Keys and values that a block lends, or reads of another.
  void fillLent(const spec::Layer &layer, LayerScope &scope);
  mlir::LogicalResult importLayerInputs(size_t number);
  mlir::LogicalResult fillForms(const spec::Attention &attention,
                                LayerScope &scope);
  void seeBothWays(const spec::Insert &insert, LayerScope &scope);
  mlir::Value pairsOfImages(const spec::Insert &insert);
  mlir::LogicalResult checkImages(const spec::Layer &layer);
  mlir::LogicalResult limitTokens(const spec::SequenceRank &low);
  bool limitSize(const std::string &symbol, int64_t most);
  mlir::Value blocksOf(const spec::BlockSparse &sparse, mlir::Value queries,
                       mlir::Value keys);
  /// The blocks of a pattern in a batch with padding, and the pairs in them.
  std::pair<mlir::Value, mlir::Value>
  paddedPattern(const spec::BlockSparse &sparse, mlir::Value tokens);
  mlir::Value distanceRows(mlir::Location at);
  /// Null if the entry has no such input.
  mlir::Value inputNamed(const std::string &name) const;
  mlir::LogicalResult fillMemory(const spec::Attention &cross,
                                 LayerScope &scope);
  mlir::LogicalResult sharedDiagonals(const spec::Layer &layer,
                                      LayerScope &scope);
  mlir::LogicalResult rotaryTables(const spec::Rope &rope, LayerScope &scope);
  /// Rotary tables for several positions per token.
  mlir::LogicalResult axesTables(const spec::Rope &rope, LayerScope &scope);
  mlir::Value givenPositions(const spec::Rope &rope);
  /// Tables for queries that grow with their position.
  mlir::LogicalResult growthTables(const spec::Attention &attention,
                                   LayerScope &scope);
  std::pair<mlir::Value, std::string> numberTokens(mlir::Location at);
  std::pair<mlir::Value, mlir::Value> tablesOf(mlir::Location at,
                                               const RotaryPlan &plan);
  std::pair<mlir::Value, mlir::Value> tablesOf(mlir::Location at,
                                               const RotaryPlan &plan,
                                               mlir::Value positions,
                                               const std::string &name);
  /// Tables for the places of an image, and for texts with images in them.
  mlir::LogicalResult placeTables(const spec::Rope &rope, LayerScope &scope);
  mlir::LogicalResult sectionTables(const spec::Rope &rope, LayerScope &scope);
  llvm::SmallVector<mlir::Value>
  imagePositions(mlir::Location at, size_t insert, mlir::Value numbers);
  mlir::Value behindImages(mlir::Location at, size_t insert,
                           mlir::Value numbers);
  void collectMaps();
  void startMap(AskedMap &asked, const spec::Layer &layer);
  void fillMaps(size_t number, LayerScope &scope);
  void replaceMaps(size_t number, const LayerScope &scope);
  bool hasMaps(size_t number) const;
  void takeLastToken(mlir::Location loc);
  void startHiddenStates(mlir::Location loc);
  mlir::Value storeHiddenState(mlir::Location loc, mlir::Value states,
                               mlir::Value state, mlir::Value index);

  /// A constant, made once at the top of the entry.
  mlir::Value index(int64_t number);
  /// Size of the stream's input: 0 the batch, 1 the tokens.
  mlir::Value size(int64_t dim);
  mlir::Location loc(const SourceLocation &where) const;

  ModuleImport &shared;
  const spec::Model &model;
  std::vector<StreamState> streams;
  StreamState *stream = nullptr; ///< the one being built
  DiagnosticEngine &diags;
  const EntryKind kind;
  const bool decode;
  mlir::OpBuilder builder;
  mlir::func::FuncOp function;

  std::vector<Argument> arguments;
  std::map<std::string, NamedTensor> inputs;
  /// Types of the inputs of bare attention ops, by name.
  std::map<std::string, mlir::Type> bareTypes;
  /// Types and shapes of lengths and masks of blocks, by name.
  std::map<std::string, mlir::Type> formTypes;
  std::map<std::string, std::vector<spec::Dim>> formShapes;
  /// The largest sizes that an input may have, 0 where nothing limits them.
  std::map<std::string, std::vector<int64_t>> longestOf;
  /// How many places images have at most, by the input that says their rows and
  /// columns.
  std::map<std::string, spec::Dim> mostPlaces;
  std::map<std::string, NamedTensor> results; ///< by layer (or tap) name
  /// By layer and ring: blocks of a cycle may have different windows.
  std::map<std::pair<size_t, int64_t>, LayerCaches> caches;
  /// Keys and values of other streams that decoding reads, by layer.
  std::map<size_t, std::pair<mlir::Value, mlir::Value>> crossCaches;
  /// What @encode gives a step to insert, by layer.
  std::map<size_t, mlir::Value> insertedRows;
  /// Biases by distance, by layer.
  std::map<const spec::Layer *, mlir::Value> diagonals;
  /// Numbers of tokens that are counted, by what these are called.
  std::map<std::string, mlir::Value> numbered;
  /// Rotary tables by positions and what they are made from: blocks share them.
  std::map<std::pair<std::string, std::vector<double>>,
           std::pair<mlir::Value, mlir::Value>>
      tables;

  /// The values of the stream that later time mixings mix theirs with; null
  /// where none does.
  mlir::Value firstValues;
  /// What the blocks of the stream read besides it; null if nothing.
  mlir::Value layerInputs;
  /// Rows of all distances between the stream's tokens, once they are made.
  mlir::Value distances;
  /// What the first embedding of the stream gave.
  mlir::Value embedded;
  /// Keys and values of blocks that lend them, by layer.
  std::map<size_t, std::pair<mlir::Value, mlir::Value>> lent;
  /// How many places of each sequence masks show, by mask.
  llvm::DenseMap<mlir::Value, mlir::Value> shownCounts;
  /// Activated conditions, by what they are made of.
  llvm::DenseMap<mlir::Value, mlir::Value> conditions;

  NamedTensor state; ///< the stream, between layers
  /// Cached tokens: a number, or one for each sequence [batch]; and the most
  /// that there are with the new ones.
  mlir::Value past, length;
  /// The cached and the new tokens of each sequence, if these numbers differ.
  mlir::Value lengths;
  /// The same three of what a ring holds, by its window (attune/Spec/Rings.h):
  /// its first row may be a later token than the first.
  std::map<int64_t, Held> rings;
  std::map<int64_t, mlir::Value> constants;
  /// hidden_states so far, and how many there are; null if nobody asked.
  mlir::Value hiddenStates;
  int64_t numHidden = 0, totalHidden = 0;
  std::vector<AskedMap> maps;
  /// The blocks of this stream near the diagonal and those that see all, by the
  /// sizes of blocks.
  std::map<std::array<int64_t, 3>, std::pair<mlir::Value, mlir::Value>>
      patterns;
  /// Of this stream, what tokens see that see others of their image, too.
  mlir::Value imagePairs;
  /// Of this stream, by the number of the first of equal layers.
  std::map<size_t, std::vector<MadeBlock>> madeBlocks;
};

} // namespace attune

#endif // ATTUNE_LIB_IMPORT_ENTRIES_ENTRYIMPORTER_H
