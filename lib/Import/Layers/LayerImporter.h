//===- LayerImporter.h - The ops of one layer -------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_IMPORT_LAYERS_LAYERIMPORTER_H
#define ATTUNE_LIB_IMPORT_LAYERS_LAYERIMPORTER_H

#include "../WeightTable.h"
#include "attune/Spec/Taps.h"

#include <array>

namespace attune {

/// The type of a tensor.
inline mlir::RankedTensorType typeOf(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType());
}

/// Where an op comes from in the JSON.
mlir::Location toLocation(mlir::MLIRContext *context,
                          const SourceLocation &where);

/// The self-attention of a layer, if it has one; a bare op is none.
const spec::Attention *getSelfAttention(const spec::Layer &layer);
/// The attention of a layer to another stream, if it has one.
const spec::Attention *getCrossAttention(const spec::Layer &layer);

/// The rotary positions of a layer, of its attention or standing alone.
const spec::Rope *getRope(const spec::Layer &layer);
/// The state space of a layer, if it has one.
const spec::Mamba *getMamba(const spec::Layer &layer);
/// The short convolution of a layer, if it has one.
const spec::ShortConv *getShortConv(const spec::Layer &layer);
/// The delta rule of a layer, if it has one.
const spec::DeltaRule *getDeltaRule(const spec::Layer &layer);
/// Whether a layer has one of these, whose states stand for all tokens before.
bool keepsStates(const spec::Layer &layer);
/// The time mixing of a layer, if it has one.
const spec::TimeMix *getTimeMix(const spec::Layer &layer);
/// Whether a layer's feed-forward layer reads the token before, too.
bool shiftsFFN(const spec::Layer &layer);

/// Where the weights of a layer's attention go that an output asks for.
struct AttentionMap {
  mlir::Value value; ///< [batch, heads, queries, keys], or many, one a slot
  spec::AttentionTap tap;
  int64_t slot = 0; ///< of the layer's first repeat
};

/// Values next to each other in the last dimension.
mlir::Value joinChannels(mlir::OpBuilder &builder, mlir::Location loc,
                         llvm::ArrayRef<mlir::Value> values);

/// `count` slices of a dimension from `first` on.
mlir::Value cutAlong(mlir::OpBuilder &builder, mlir::Location loc,
                     mlir::Value value, unsigned dim, mlir::OpFoldResult first,
                     mlir::OpFoldResult count);
/// Two values next to each other in a dimension.
mlir::Value joinAlong(mlir::OpBuilder &builder, mlir::Location loc,
                      mlir::Value first, mlir::Value second, unsigned dim);

/// The state that repeat `number` left in a cache [repeats, batch, ...], zeros
/// if nothing is past; and the cache with the state that it leaves now. If
/// `past` has a number for each sequence, the cache is [batch, repeats, ...].
mlir::Value readState(mlir::OpBuilder &builder, mlir::Location loc,
                      mlir::Value cache, mlir::Value number, mlir::Value past);
mlir::Value writeState(mlir::OpBuilder &builder, mlir::Location loc,
                       mlir::Value cache, mlir::Value number, mlir::Value past,
                       mlir::Value state);

/// The caches of a layer, by slot. A recurrence has its states in the first.
using LayerCaches = std::array<mlir::Value, 5>;

/// Values of the function that the ops of a layer read besides the activations.
/// Null where the layer has no use for one.
struct LayerScope {
  mlir::Value index; ///< number of the repeat
  mlir::Value cos;   ///< rotary tables
  mlir::Value sin;
  /// Tables of queries that grow with their position: in place of the others
  /// if these turn whole heads, else after them.
  mlir::Value queryCos, querySin;
  mlir::Value mask;          ///< [batch, 1, 1, keys]
  mlir::Value memory;        ///< cross-attention: result of the other stream
  mlir::Value memoryMask;    ///< cross-attention: mask of the other stream
  mlir::Value lengths;       ///< of each sequence: [batch]
  mlir::Value memoryLengths; ///< the same of the other stream
  mlir::Value blocks;        ///< what block-sparse attention computes
  /// [batch or 1, 1, queries, keys]: in place of the mask in attention.
  mlir::Value pairs;
  /// Attention to later tokens, too, but those that `pairs` hides.
  spec::Bidirectional bidirectional = spec::Bidirectional::None;
  /// Rows of sines and cosines of the distances of queries from keys, all from
  /// 1 - tokens to tokens - 1, and the segments [batch, tokens] or null.
  mlir::Value distances, segments;
  mlir::Value diagonals; ///< biases by distance that all repeats share
  /// Decoding: cached tokens before these, a number or [batch]; and with them,
  /// of the longest sequence.
  mlir::Value past, length;
  /// Decoding: number of the repeat among those whose keys and values a cache
  /// has; null: that is all repeats.
  mlir::Value cacheIndex;
  /// Decoding: replaced by their successors. Latent attention has but one, and
  /// so have the sums of linear attention. The other one is for an index's
  /// keys.
  mlir::Value keyCache, valueCache;
  /// The same of a state space, a delta rule or a short convolution: the last
  /// inputs of the convolution, and the states. A time mixing caches the last
  /// token that it read, and the last that a feed-forward layer read.
  mlir::Value convCache, stateCache, shiftCache;
  /// Decoding: keys and values of the other stream, made once for all steps.
  mlir::Value crossKeys, crossValues;
  /// The vector that modulates a block, [batch, width], activated.
  mlir::Value condition;
  /// How many tokens the first of two parts has.
  mlir::Value firstTokens;
  /// Replaced by their successors.
  llvm::SmallVector<AttentionMap, 0> maps;
  /// Values of the time mixing that later ones mix theirs with; replaced by the
  /// layer's own if it gives them.
  mlir::Value firstValues;
  bool givesValues = false;
  /// Keys and values that later blocks read, too, [batch, heads, tokens,
  /// width]: replaced by the layer's own if it lends them. Decoding: the
  /// lender's caches.
  mlir::Value lentKeys, lentValues;
  bool lendsKeys = false;
  /// Inputs of all blocks, [batch, tokens, channels], and this one's number.
  mlir::Value layerInputs, number;
  /// The stream behind its embedding, which memory blocks read.
  mlir::Value embedded;

  mlir::Value maskOfAttention() const { return pairs ? pairs : mask; }

  /// The caches that a layer may have, in the order of their slots.
  std::array<mlir::Value *, 5> caches() {
    return {&keyCache, &valueCache, &convCache, &stateCache, &shiftCache};
  }
  void setCaches(const LayerCaches &values) {
    for (auto [slot, value] : llvm::zip_equal(caches(), values))
      *slot = value;
  }
  LayerCaches getCaches() const {
    return {keyCache, valueCache, convCache, stateCache, shiftCache};
  }
  bool hasCaches() const { return keyCache || convCache || shiftCache; }
};

attune::Activation toActivation(spec::Activation activation);

/// The first `length` rows that repeat `number` has in a cache, as it has them.
mlir::Value readCache(mlir::OpBuilder &builder, mlir::Location loc,
                      mlir::Value cache, mlir::Value number, mlir::Value length,
                      bool sequenceMajor = false);

/// Operands of the attention ladder.
struct AttentionOperands {
  mlir::Value query, key, value;
  mlir::Value mask, bias, diagonals, slopes, sinks, lengths, blocks;
  /// Nothing is hidden for being a later token, but the mask may do that; of
  /// prompts nothing is hidden by a window either.
  spec::Bidirectional bidirectional = spec::Bidirectional::None;
};

/// What chooses the keys of latent attention.
struct IndexOperands {
  mlir::Value queries; ///< [batch, small heads, tokens, channels]
  mlir::Value keys;    ///< [batch, 1, keys, channels]
  mlir::Value shares;  ///< [batch, tokens, small heads]
  mlir::Value mask, lengths;
  bool causal = true; ///< the last query is the last key's
};

/// The chain of similarity, masking, softmax and weighing. If the log-sum-exp
/// is asked for, by the op or for `maps`, it is one `attune.attention` instead,
/// as no link of the chain has that result; then also the weights of some heads
/// are written to the maps that `cross` says it is for. `index` is the number
/// of the repeat.
std::pair<mlir::Value, mlir::Value>
buildAttention(mlir::OpBuilder &builder, mlir::Location loc,
               const spec::Attention &attention,
               const AttentionOperands &operands, bool decoding,
               llvm::MutableArrayRef<AttentionMap> maps = {},
               bool cross = false, mlir::Value index = {});

/// The same for linear attention; with `state` it goes on from these sums and
/// gives new ones.
LinearAttentionOp buildLinearAttention(mlir::OpBuilder &builder,
                                       mlir::Location loc,
                                       const spec::Attention &attention,
                                       const AttentionOperands &operands,
                                       mlir::Type resultType,
                                       mlir::Value state = {});

/// `heads` times `dim` columns from `offset` on, as heads.
mlir::Value splitHeads(mlir::OpBuilder &builder, mlir::Location loc,
                       mlir::Value input, int64_t heads, int64_t dim,
                       int64_t offset);

/// [batch, tokens, width] as one sequence, [1, batch * tokens, width].
mlir::Value asOneSequence(mlir::OpBuilder &builder, mlir::Location loc,
                          mlir::Value tokens);

/// The keys that an attention's mask, lengths and blocks hide, as one mask.
mlir::Value maskOfHidden(mlir::OpBuilder &builder, AttentionOp op);

/// Visits the attention of every layer and of every block of a cycle.
void forEachAttention(const spec::Stream &stream,
                      llvm::function_ref<void(const spec::Attention &)> visit);

/// Builds the ops of one layer. Every function returns null after it reported
/// an error.
class LayerImporter {
public:
  LayerImporter(mlir::OpBuilder &builder, WeightTable &weights,
                const spec::Layer &layer, llvm::StringRef symbol,
                LayerScope &scope, DiagnosticEngine &diags)
      : builder(builder), weights(weights), layer(layer), symbol(symbol),
        scope(scope), diags(diags) {}

  /// The layer's result, for every kind but embeddings, positions and bare
  /// attention, which read graph inputs.
  mlir::Value build(mlir::Value input);
  /// A linear layer with the given matrix, or with its own if that is null.
  mlir::Value linear(const spec::Linear &linear, mlir::Value input,
                     mlir::Value matrix);
  /// Keys and values of the layer's attention to another stream, as heads.
  bool crossKeysAndValues(const spec::Attention &attention,
                          AttentionOperands &operands);
  /// The biases of every distance between `queries` tokens and the `keys` that
  /// they are the last of.
  mlir::Value relativeBias(const spec::Attention &attention,
                           mlir::Value queries, mlir::Value keys);

  /// The columns that modulate channels, made of the activated `condition`.
  mlir::Value modulation(const spec::Modulation &by, llvm::StringRef prefix,
                         int64_t columns, mlir::Value condition);

  /// What the blocks read of the ids besides the stream.
  mlir::Value layerInputs(const spec::LayerInputs &op, mlir::Value input,
                          mlir::Value ids);

  /// The weight of a role, [rows, columns] or (columns 0) a vector.
  mlir::Value weight(mlir::Location loc, llvm::StringRef role, int64_t rows,
                     int64_t columns);

private:
  /// Appends rows to a cache, which is replaced; gives all rows that it has.
  mlir::Value throughCache(mlir::Location at, mlir::Value rows,
                           mlir::Value &cache);
  /// Queries, keys and values of one matmul, turned and cached.
  bool selfOperands(const spec::Attention &attention, llvm::StringRef prefix,
                    mlir::Value input, AttentionOperands &operands);
  void turn(const spec::Attention &attention, AttentionOperands &operands);
  /// Writes keys and values where later blocks read them.
  void lend(mlir::Location at, const AttentionOperands &operands);
  /// The heads of queries alone, [B, H, N, width]: their keys and values are
  /// made elsewhere. Null after an error.
  mlir::Value queryHeads(const spec::Attention &attention,
                         llvm::StringRef prefix, mlir::Value input);
  /// Queries from the input, keys and values of an earlier block.
  bool borrowedOperands(const spec::Attention &attention,
                        llvm::StringRef prefix, mlir::Value input,
                        AttentionOperands &operands);
  /// Keys and values of the tokens `from`, as heads.
  bool keysAndValues(const spec::Attention &attention,
                     const std::string &prefix, mlir::Value from,
                     AttentionOperands &operands);
  /// Queries from the input, keys and values from the other stream.
  bool crossOperands(const spec::Attention &attention, llvm::StringRef prefix,
                     mlir::Value input, AttentionOperands &operands);
  /// Queries or keys normed head by head, if the attention does.
  bool normHeads(const spec::Attention &attention, llvm::StringRef role,
                 mlir::Value &heads, int64_t count);
  /// The same of queries and keys.
  bool normBoth(const spec::Attention &attention, llvm::StringRef prefix,
                AttentionOperands &operands);
  /// The roles of self- or cross-attention begin with this.
  std::string prefixOf(const spec::Attention &attention) const;
  /// Divides queries by the number of the repeat, from 1, if asked to.
  void scaleByLayer(const spec::Attention &attention, mlir::Value &query);
  /// Queries, keys and values as heads, before rotary positions.
  bool projections(const spec::Attention &attention, llvm::StringRef prefix,
                   mlir::Value input, AttentionOperands &operands);
  /// What disentangled attention adds to the scaled scores, [batch, heads,
  /// queries, keys]. `all` are the `projections` of tokens `width` wide.
  mlir::Value
  positionScores(const spec::Attention &attention, llvm::StringRef prefix,
                 mlir::Value all, int64_t width,
                 llvm::ArrayRef<std::pair<std::string, int64_t>> projections);
  /// The same of relative positions, and of segments if there are any.
  mlir::Value relativeScores(const spec::Attention &attention,
                             const std::string &prefix, mlir::Value all);
  /// Heads to whose channels those of a role are added.
  mlir::Value withHeadBias(const spec::Attention &attention,
                           const std::string &role, mlir::Value heads);
  /// The learned score of each head's sink, in f32.
  bool readSinks(const spec::Attention &attention, llvm::StringRef prefix,
                 AttentionOperands &operands);
  /// Keys and values in `rank` sums over tokens; hidden ones count nothing.
  bool projectSequence(const spec::Attention &attention, llvm::StringRef prefix,
                       AttentionOperands &operands);
  mlir::Value projectTokens(const spec::Attention &attention,
                            const std::string &role, mlir::Value heads,
                            const AttentionOperands &operands);
  /// Linear attention from cached sums, which it adds to.
  mlir::Value runningAttention(const spec::Attention &attention,
                               const AttentionOperands &operands);
  /// Limits projections to [-clip, clip], if the attention does.
  mlir::Value clip(const spec::Attention &attention, mlir::Value input);
  /// Weights and biases of the named projections as one linear layer.
  mlir::Value
  project(const spec::Attention &attention, llvm::StringRef prefix,
          llvm::StringRef name,
          llvm::ArrayRef<std::pair<std::string, int64_t>> projections,
          mlir::Value input, bool bias);
  mlir::Value block(const spec::Block &block, mlir::Value input);
  /// A block of one copy of the channels.
  mlir::Value sublayers(const spec::Block &block, mlir::Value input);
  /// A block of two kinds of tokens.
  mlir::Value joint(const spec::Block &block, mlir::Value input);
  mlir::Value alone(const spec::Attention &attention, const std::string &prefix,
                    mlir::Value input, int64_t width);
  /// Attention and a feed-forward layer through one matrix.
  mlir::Value throughSharedOut(const spec::Block &block, mlir::Value input,
                               mlir::Value fed, int64_t width,
                               mlir::Value residual);
  /// A block of several copies.
  mlir::Value alternating(const spec::Block &block, mlir::Value input);
  mlir::Value routeCopy(const spec::Block &block, mlir::Value copy);
  bool predictCopies(const spec::Block &block,
                     llvm::SmallVectorImpl<mlir::Value> &copies);
  /// Moves all copies as the active one was by `computed`.
  bool correctCopies(const spec::Block &block, mlir::Value computed,
                     llvm::SmallVectorImpl<mlir::Value> &copies);
  /// What a memory block's transformer adds to what its state space reads.
  mlir::Value remembered(const spec::Block &block, mlir::Value x);
  /// A gated feed-forward layer with products of thin matrices beside its own.
  mlir::Value adaptedFFN(const spec::FFN &ffn, const std::string &role,
                         mlir::Value input, int64_t width);
  /// `columns` and the product of `input` with the thin matrices of a role.
  mlir::Value adapted(const spec::Attention &attention, llvm::StringRef role,
                      mlir::Value input, mlir::Value columns);
  mlir::Value ownInputs(const spec::Block &block, mlir::Value computed);
  mlir::Value spread(const spec::Spread &op, mlir::Value input);
  mlir::Value unite(const spec::Unite &op, mlir::Value input);
  /// x with attention and two thin matrices beside it.
  mlir::Value besideLaurel(const spec::Block &block, mlir::Value x);
  /// What is above the quantile of a gate's distribution, less that.
  mlir::Value sparseGate(mlir::Location at, double sparsity, mlir::Value gate);
  /// A feed-forward layer whose activation has learned numbers.
  mlir::Value xieluFFN(const spec::FFN &ffn, const std::string &role,
                       mlir::Value input, int64_t width, mlir::Value residual);
  mlir::Value sparseFFN(const spec::FFN &ffn, const std::string &role,
                        mlir::Value input, int64_t width, mlir::Value residual);
  /// x + scale * result, whose channels are first scaled by the weights that
  /// belong to the sublayer of the norm `role`. Nothing without a result.
  mlir::Value addScaledChannels(llvm::StringRef role, mlir::Value x,
                                mlir::Value result, double scale);
  /// x + gate * sublayer(read * (1 + scale) + shift) with the columns of the
  /// sublayer of this number.
  mlir::Value modulated(mlir::Location loc, mlir::Value x, mlir::Value read,
                        mlir::Value columns, int64_t number,
                        llvm::function_ref<mlir::Value(mlir::Value)> sublayer);
  /// read * (1 + scale) + shift, and x + gate * result, with these columns.
  mlir::Value shiftedBy(mlir::Location loc, mlir::Value read,
                        mlir::Value columns, int64_t number);
  mlir::Value gatedBy(mlir::Location loc, mlir::Value x, mlir::Value result,
                      mlir::Value columns, int64_t number);
  /// The result times `scale`, plus the residual if there is one.
  mlir::Value attention(const spec::Attention &attention,
                        llvm::StringRef prefix, mlir::Value input,
                        int64_t width, mlir::Value residual, double scale = 1);
  /// The heads' results of softmax or sums, [batch, tokens, channels].
  mlir::Value mergedHeads(const spec::Attention &attention,
                          llvm::StringRef prefix, mlir::Value input);
  mlir::Value mergeHeads(const spec::Attention &attention, mlir::Value heads);
  /// The heads' results [batch, tokens, channels], gated and projected.
  mlir::Value joinHeads(const spec::Attention &attention,
                        llvm::StringRef prefix, mlir::Value input,
                        mlir::Value joined, int64_t width, mlir::Value residual,
                        double scale);
  /// The heads' results of sums that fade, normed.
  mlir::Value fadingSums(const spec::Attention &attention,
                         llvm::StringRef prefix, mlir::Value input);
  /// Logarithms of what the sums of each head fade by: [heads].
  mlir::Value fadingRates(const spec::Attention &attention);
  mlir::Value ffn(const spec::FFN &ffn, llvm::StringRef prefix,
                  mlir::Value input, int64_t width, mlir::Value residual,
                  double scale = 1);
  mlir::Value mamba(const spec::Mamba &mamba, llvm::StringRef prefix,
                    mlir::Value input, int64_t width, mlir::Value residual,
                    double scale = 1);
  mlir::Value shortConv(const spec::ShortConv &conv, llvm::StringRef prefix,
                        mlir::Value input, int64_t width, mlir::Value residual,
                        double scale = 1);
  mlir::Value deltaRule(const spec::DeltaRule &rule, llvm::StringRef prefix,
                        mlir::Value input, int64_t width, mlir::Value residual,
                        double scale = 1);
  /// The result of a delta rule normed head by head, times silu of the gate.
  mlir::Value normAndGate(const spec::DeltaRule &rule, llvm::StringRef prefix,
                          mlir::Value input, mlir::Value result);
  mlir::Value timeMix(const spec::TimeMix &mix, llvm::StringRef prefix,
                      mlir::Value input, int64_t width, mlir::Value residual,
                      double scale = 1);
  /// Reads receptances, keys, values, decays, what is removed and put in its
  /// place, and the bonus; gives the gated result, projected.
  mlir::Value rememberMixed(const spec::TimeMix &mix, llvm::StringRef prefix,
                            llvm::ArrayRef<mlir::Value> read, mlir::Value gate,
                            int64_t width, mlir::Value residual);
  /// The token before each, less it; the last one goes to the cache, if there
  /// is one. Hidden tokens become zeros first.
  mlir::Value changeBefore(mlir::Location at, mlir::Value &tokens,
                           mlir::Value &cache);
  /// tokens + change * the numbers of the role, channel by channel.
  mlir::Value shifted(mlir::Location at, llvm::StringRef role,
                      mlir::Value tokens, mlir::Value change);
  /// act(x L) U, and the bias of U.
  mlir::Value throughRank(mlir::Location at, llvm::StringRef down,
                          llvm::StringRef up, mlir::Value from, int64_t rank,
                          int64_t rows, bool bias, Activation inner,
                          Activation outer);
  /// A projection of what takes the place of attention.
  mlir::Value stateProjection(mlir::Location at, llvm::StringRef role,
                              mlir::Value from, int64_t rows, bool bias,
                              mlir::Value residual = {},
                              Activation activation = Activation::Identity);
  /// A convolution of `role` over `x` and what the cache kept, which then keeps
  /// the last inputs.
  mlir::Value cachedConv(mlir::Location at, llvm::StringRef role, mlir::Value x,
                         int64_t kernel, bool bias, Activation activation);
  /// The steps, inputs and outputs of a state space and its result.
  mlir::Value scanChannels(const spec::Mamba &mamba, llvm::StringRef prefix,
                           mlir::Value x, mlir::Value gate,
                           mlir::Type lastType);
  mlir::Value scanHeads(const spec::Mamba &mamba, llvm::StringRef prefix,
                        mlir::Value input, mlir::Value convolved,
                        mlir::Value gate, mlir::Type lastType);
  /// With `heads` the norm has a gamma (and beta) for each of them.
  mlir::Value norm(const spec::Norm &norm, llvm::StringRef prefix,
                   mlir::Value input, int64_t heads = 0);
  /// `x + scale * y`, or without x the product alone.
  mlir::Value addScaled(mlir::Location loc, mlir::Value x, mlir::Value y,
                        double scale);
  /// A tensor like `like` of one number.
  mlir::Value splatLike(mlir::Location loc, mlir::Value like, double number);
  mlir::Value moe(const spec::MoE &moe, llvm::StringRef prefix,
                  mlir::Value input, int64_t width, mlir::Value residual);
  mlir::Value sharedExpert(const spec::MoE &moe, const std::string &prefix,
                           mlir::Value input, int64_t width,
                           mlir::Value residual);
  /// A feed-forward layer or a mixture of experts, whichever the block has.
  mlir::Value feedForward(const spec::Block &block, mlir::Value input,
                          int64_t width, mlir::Value residual,
                          double scale = 1);
  mlir::Value latentAttention(const spec::Attention &attention,
                              llvm::StringRef prefix, mlir::Value input,
                              int64_t width, mlir::Value residual);
  /// The input that queries are made of, compressed if there is a rank.
  mlir::Value queryInput(const spec::Attention &attention,
                         const std::string &prefix, mlir::Value input);
  mlir::Value latentQueries(const spec::Attention &attention,
                            const std::string &prefix, mlir::Value low);
  /// Queries, keys and shares of an index; false after an error.
  bool indexOperands(const spec::Attention &attention,
                     const std::string &prefix, mlir::Value input,
                     mlir::Value low, IndexOperands &into);
  mlir::Value chosenAttention(const spec::Attention &attention,
                              const IndexOperands &from,
                              const AttentionOperands &operands,
                              mlir::RankedTensorType type,
                              llvm::ArrayRef<mlir::OpFoldResult> sizes);
  /// Latent attention to the keys that an index chooses. `low` is what queries
  /// are made of.
  mlir::Value indexedAttention(const spec::Attention &attention,
                               const std::string &prefix, mlir::Value input,
                               mlir::Value low,
                               const AttentionOperands &operands);
  mlir::Value turnedChannels(const spec::Attention &attention,
                             mlir::Value channels);
  mlir::Value latentRows(const spec::Attention &attention,
                         const std::string &prefix, mlir::Value input);
  /// One matrix per head out of "kv_b.weight".
  mlir::Value perHead(const spec::Attention &attention,
                      const std::string &prefix, bool values);

  mlir::Value function(const spec::Function &function, mlir::Value input);
  mlir::Value extension(const spec::Extension &extension, mlir::Value input);
  mlir::Value rotary(const spec::Function &function, mlir::Value input);

  /// One weight made of several roles below each other.
  mlir::Value stack(mlir::Location loc, llvm::StringRef name,
                    llvm::ArrayRef<std::pair<std::string, int64_t>> roles,
                    int64_t columns, llvm::StringRef prefix, int64_t parts = 0);
  bool sameNorm(const spec::Norm &norm) const;
  mlir::Location loc(const SourceLocation &where) const;

  mlir::OpBuilder &builder;
  WeightTable &weights;
  const spec::Layer &layer;
  llvm::StringRef symbol;
  LayerScope &scope;
  DiagnosticEngine &diags;
};

} // namespace attune

#endif // ATTUNE_LIB_IMPORT_LAYERS_LAYERIMPORTER_H
