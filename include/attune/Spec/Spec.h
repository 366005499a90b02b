//===- Spec.h - A model description, validated ------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_SPEC_SPEC_H
#define ATTUNE_SPEC_SPEC_H

#include "attune/Spec/Alternating.h"
#include "attune/Spec/Audio.h"
#include "attune/Spec/Codes.h"
#include "attune/Spec/Joint.h"
#include "attune/Spec/Latent.h"
#include "attune/Spec/Places.h"
#include "attune/Spec/RecurrentLayers.h"
#include "attune/Spec/Router.h"
#include "attune/Spec/StateSpaces.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

/// Plain structs for a model description, schema version 1. Every number is
/// already evaluated (dimension arithmetic is done by the parser); every struct
/// carries the place in the JSON that it came from.
namespace attune::spec {

enum class DType { F32, F16, BF16, I64, I32, I8, Bool };

/// How cached keys and values are stored: in the model's dtype, or in bytes
/// with a scale for each head and position.
enum class KvCache { Full, Int8, Fp8 };
/// What matrices in few bits multiply: activations rounded to bytes, or as they
/// are.
enum class RowForm { Bytes, Exact };
/// See Rings.h.
constexpr int64_t usualWindowSlack = 1024, leastWindowSlack = 256;

/// A tensor dimension: a number, or a symbol such as "batch" or "seq".
struct Dim {
  int64_t size = -1;  ///< -1: symbolic
  std::string symbol; ///< empty if fixed
};

struct TensorSpec {
  std::string name;
  DType dtype = DType::F32;
  std::vector<Dim> shape;
  /// The contents if the caller leaves it out: "zeros", "ones", "iota" (0, 1,
  /// ... along the last dimension), or "" if it must be given.
  std::string fallback;
  SourceLocation location;
};

/// Where a weight comes from when it is not under its predictable name: pieces
/// concatenated along the output (first) dimension. `{i}` in a name is the
/// layer's number, `{e}` that of an expert.
struct WeightSource {
  std::string tensor;
  bool transposed = false; ///< file holds [in, out]
  int64_t begin = 0;       ///< rows of the (transposed) tensor
  int64_t end = -1;        ///< -1: all
  /// `count` such ranges, each `stride` rows after the one before: the queries
  /// of a tensor that holds queries, keys and values head by head.
  int64_t stride = 0, count = 1;
  /// Part p of a weight in parts begins p times this many rows (of a transposed
  /// tensor: columns) further. Not part of a description.
  int64_t step = 0;
  double scale = 1; ///< multiplies the numbers before they are stored
};
/// Role ("q.weight", "up.bias", ...) to sources. A role that is not listed is
/// read from "<layer name>.<role>".
using WeightMap = std::map<std::string, std::vector<WeightSource>>;

/// Rotary embedding. `type` of scaling: none, linear, dynamic, llama3, yarn,
/// longrope.
struct RopeScaling {
  std::string type = "none";
  double factor = 1;
  double lowFreqFactor = 1, highFreqFactor = 4; ///< llama3
  double betaFast = 32, betaSlow = 1;           ///< yarn
  /// yarn: default 0.1 ln(factor) + 1; longrope: default 1.
  std::optional<double> attentionFactor;
  int64_t originalLength = 0; ///< all but linear: trained length
  bool truncate = true;       ///< yarn: floor/ceil of the ramp's ends
  /// longrope: divisors of each pair's frequency, up to `originalLength` tokens
  /// and beyond.
  std::vector<double> shortFactors, longFactors;
};
struct Rope {
  double theta = 10000;
  bool interleaved = false;
  int64_t channels = 0; ///< turned channels per head (even, <= head_dim)
  RopeScaling scaling;
  /// See Places.h.
  RopeSections sections;
  bool places = false, alternating = false;
  RopeAxes axes;
  SourceLocation location;
};

/// Learned biases of scores by distance, in buckets (T5, Raffel et al. 2020).
/// Role "relative_bias.weight" [buckets, heads]; repeats share the table if its
/// name has no `{i}`.
struct RelativeBias {
  int64_t buckets = 32;
  int64_t maxDistance = 128;  ///< from here on all fall into the last bucket
  bool bidirectional = false; ///< half of the buckets are for keys ahead
  SourceLocation location;
};

/// Block-sparse attention: which blocks of `block` queries by `block` keys are
/// computed at all: blocks near the diagonal and of the first tokens
/// (Longformer, BigBird), or blocks that an input names.
struct BlockSparse {
  int64_t block = 64;
  int64_t local = 1;  ///< blocks on either side of a query's own
  int64_t global = 0; ///< first blocks, which see all and are seen by all
  /// A bool input [batch|1, heads|1, blocks, blocks] in place of the pattern.
  std::string maskInput;
  SourceLocation location;
};

/// Queries times 1 + by * log(1 + floor((position + shift) / length)), which
/// keeps scores sharp where keys are many (Nakanishi 2025).
struct QueryGrowth {
  double by = 0.1;
  int64_t length = 8192;
  int64_t shift = 0;
  SourceLocation location;
};

/// Disentangled attention (He et al. 2021): to the score of a query and a key
/// is added, before all of it is scaled, the product of the query and a key
/// made of their distance's row, and that of the key and a query made of it.
/// Rows are those of a table, role "positions.weight" [2 * span, D], normed
/// with `norm`: roles "positions_norm.*". With `buckets` each distance below
/// span / 2 has a row of its own, and those up to `maxDistance` share the
/// others by their logarithm; else all have one. Row span is that of distance
/// 0; a query's own number less the key's counts up from there.
struct Disentangled {
  int64_t span = 256, maxDistance = 512;
  bool buckets = true;
  bool contentToPosition = true, positionToContent = true;
  /// Positions go through the projections of queries and keys, else through
  /// those of the roles "position_q.*" and "position_k.*", as far as needed.
  bool shared = true;
  std::optional<Norm> norm;
  SourceLocation location;
};

/// Sums over keys that fade from token to token (lightning attention, Qin et
/// al. 2024): of head h of H in layer n, the number that stands in its name,
/// each token leaves exp(-2^(-8 h / H) (1 - n / (layers - 1 + 1e-5) + 1e-5)), h
/// from
/// 1. Queries, keys and values are activated; all heads' results together are
/// normed: roles "out_norm.*".
struct Fading {
  int64_t layers = 1; ///< of the model
  Activation activation = Activation::Silu;
  Norm norm;
};

enum class FeatureMap { EluPlusOne, Relu, Identity };
/// Linear attention (Katharopoulos et al. 2020): weights are products of
/// features of queries and keys, so that sums over keys serve every query.
struct LinearForm {
  FeatureMap featureMap = FeatureMap::EluPlusOne;
  bool normalise = true; ///< weights add up to 1
  double eps = 1e-6;     ///< added to what normalises
  /// Then features are the activated numbers, and nothing is normalised.
  std::optional<Fading> fading;
  SourceLocation location;
};

/// The parts that share the projections of a sequence: none, all heads, or all
/// heads and both keys and values.
enum class SequenceSharing { None, Heads, KeysValues };
/// Low-rank attention (Linformer, Wang et al. 2020): `rank` sums of keys and of
/// values, weighted by their positions, take the place of all. Roles
/// "sequence_k.weight" and, unless shared, "sequence_v.weight", [rank,
/// positions] or, shared by nothing, [kv_heads*rank, positions]; with `bias`
/// ".bias" of each.
struct SequenceRank {
  int64_t rank = 0, positions = 0;
  SequenceSharing shared = SequenceSharing::Heads;
  bool bias = false;
  SourceLocation location;
};

enum class Causal { None, BottomRight, TopLeft };
enum class Fusion { Auto, Required, Off };
/// The scope of a norm of queries and keys, and of its gamma: each head and one
/// for all heads, each head and one for each, or all heads together.
enum class NormScope { Head, Heads, Projection };

/// Self- or cross-attention with its projections, or (`projections` false) the
/// bare op on three inputs of shape [batch, heads, tokens, width].
/// Roles: "q.weight" [heads*head_dim, D], "k.weight", "v.weight" [kv_heads*...,
/// D], "o.weight" [D_out, heads*value_dim], and ".bias" of each.
struct Attention {
  int64_t heads = 1, kvHeads = 1;
  int64_t headDim = 0, valueDim = 0;
  bool projections = true;
  bool qkvBias = false, outBias = false;
  bool keyBias = true; ///< with qkvBias: keys have one, too
  double scale = 0;    ///< already defaulted to 1/sqrt(head_dim)
  /// Scores of the first repeat are divided by 1, of the second by 2, ...
  bool scaleByLayer = false;
  Causal causal = Causal::None;
  std::optional<int64_t> window; ///< to both sides unless causal
  std::optional<double> softcap;
  bool alibi = false; ///< with slopes 2^(-8h/H), interleaved if H is no power
                      ///< of two (Press et al.)
  /// ALiBi as Falcon computes it: slopes and biases rounded to bf16, and both
  /// biases and products of queries and keys scaled.
  bool alibiFalcon = false;
  /// Relative positions of Transformer-XL (Dai et al. 2019): roles "r.weight"
  /// [heads*head_dim, D], "r.content_bias" and "r.position_bias".
  bool relative = false;
  /// With `relative`: an i64 input [batch, tokens] of segments (XLNet). To a
  /// query's score of a key is added its product, "r.segment_bias" added, with
  /// row 0 of role "r.segments" [2, heads*head_dim] where both have the same
  /// segment, else with row 1.
  std::string relativeSegments;
  std::optional<RelativeBias> relativeBias;
  std::optional<Disentangled> disentangled;
  std::optional<Rope> rope;
  std::optional<QueryGrowth> queryGrowth;
  std::optional<Latent> latent;
  std::optional<double> clip;     ///< of queries, keys and values to [-c, c]
  std::optional<Norm> qkNorm;     ///< roles q_norm, k_norm
  bool qkNormAfterRotary = false; ///< else before it
  NormScope qkNormScope = NormScope::Head;
  std::optional<Norm> valueNorm; ///< of each head's values: role v_norm
  /// The earlier block, by its name with its number, whose keys and values
  /// these queries read; then there are no projections for own ones.
  std::string keysFrom;
  /// In a memory block: to queries, keys and values is added x A B. Roles
  /// "q_down.weight" [adapterRank, D], "q_up.weight", and so on.
  int64_t adapterRank = 0;
  std::optional<BlockSparse> blockSparse;
  std::optional<LinearForm> linear;
  std::optional<SequenceRank> sequenceRank;
  Fusion fusion = Fusion::Auto;
  std::string source; ///< cross-attention: the stream that gives keys, values
  /// An i64 input [batch]: how many keys each sequence has; the rest is hidden.
  std::string lengthsInput;
  /// Bare op: names of graph inputs; optional ones may be empty.
  std::string queryInput, keyInput, valueInput, maskInput, biasInput,
      slopesInput, sinksInput;
  /// With projections: role "sinks" [heads], a score that each head's softmax
  /// counts like that of one more key, without a value.
  bool learnedSinks = false;
  /// With projections: each channel of the result times sigmoid of another
  /// projection of the input, roles "gate.weight" [heads*value_dim, D] and,
  /// with qkvBias, "gate.bias".
  bool gate = false;
  bool lse = false;        ///< bare op: second output "<name>.lse"
  int64_t sourceWidth = 0; ///< channels of what keys and values are made of
  SourceLocation location;
};

/// Columns of a head's sums in linear attention: its values, and what
/// normalises them unless they fade.
inline int64_t numSums(const Attention &attention) {
  return attention.valueDim + (attention.linear->fading ? 0 : 1);
}

/// Roles: "up.weight" [H, D] and "down.weight" [D, H]; gated also
/// "gate.weight" [H, D]; ".bias" of each with `bias`.
struct FFN {
  int64_t width = 0;
  Activation activation = Activation::Gelu;
  bool gated = false;
  bool bias = true;
  /// Not gated, without biases: reads x + (before - x) * m, where `before` is
  /// the token before and m the role "x_k" [D] (RWKV).
  bool shift = false;
  /// Gated: this share of the channels is expected to be 0. Of the gate is
  /// taken its mean and so many standard deviations as leave that share of a
  /// normal distribution below; what is negative then becomes 0.
  double sparsity = 0;
  /// Not gated, in place of `activation`: xIELU (Huang and Schlag 2024), two
  /// learned numbers a layer, roles "alpha_p" and "alpha_n" [1, 1]. With p =
  /// softplus(alpha_p) and n = 1/2 + softplus(alpha_n): p x^2 + x / 2 where x >
  /// 0, else n (exp(min(x, -1e-6)) - 1 - x) + x / 2.
  bool xielu = false;
  /// In a memory block, gated: to gate and up is added x A B, of which both
  /// share A. Roles "adapter_down.weight" [adapterRank, D],
  /// "adapter_gate.weight" and "adapter_up.weight" [H, adapterRank].
  int64_t adapterRank = 0;
  SourceLocation location;
};

/// A feed-forward layer that every token goes through, beside its experts.
struct SharedExpert {
  int64_t width = 0;
  bool gate = false; ///< times sigmoid of role "shared_gate.weight" [1, D]
};
/// Mixture of experts. Roles: "router.weight" [E, D]; for each expert
/// "experts.{e}.up.weight" [H, D] and "experts.{e}.down.weight" [D, H], gated
/// also "experts.{e}.gate.weight" [H, D]; the same of "shared.". With `bias`
/// also ".bias" of each expert's.
struct MoE {
  int64_t experts = 1, active = 1;
  int64_t width = 0;
  Activation activation = Activation::Silu;
  bool gated = true;
  bool bias = false; ///< of the routed experts
  /// Gated: act(min(gate, limit)) * (clamp(up, limit) + upOffset).
  std::optional<double> limit;
  double upOffset = 0;
  /// The score multiplies what the expert reads, not what it gives; then one
  /// expert is active.
  bool scaleInput = false;
  Router router;
  std::optional<SharedExpert> shared;
  SourceLocation location;
};

/// Scale and shift of the channels of every token of a sequence: columns of
/// act(c) W + b, where c is the pooled result of `source`.
struct Modulation {
  std::string source;
  Activation activation = Activation::Silu;
  bool bias = true;
  int64_t sourceWidth = 0;
  SourceLocation location;
};

/// A transformer beside a state space (Zamba2), most often of weights that
/// several blocks share: with e the stream behind its embedding, the state
/// space reads norm1(x + W ffn(norm(attention(norm([x e]))))) and adds to x.
/// The attention is the block's; it reads 2 D channels and gives D. Roles, each
/// behind "memory.": "norm.*" [2 D], "ffn_norm.*", "ffn.*", "out.weight" W
/// [D, D].
struct MemoryBlock {
  FFN ffn;
  SourceLocation location;
};

/// Branch: x + norm(f(x)), a norm of the result alone.
enum class Placement { Pre, Post, Peri, Parallel, Branch };
/// Self-attention (and cross-attention) and FFN with norms and residuals.
/// Norm roles: "norm1.*" (attention), "norm2.*" (FFN), "norm_cross.*"; peri
/// placement adds "norm1_post.*", "norm2_post.*", "norm_cross_post.*". Only the
/// sublayers that the block has bring a norm. Sublayer roles are prefixed
/// "attention.", "mamba.", "short_conv.", "delta_rule.", "cross.", "ffn.",
/// "moe."; a block has attention, a state space, a short convolution or a delta
/// rule, an FFN or a mixture. Attention and a state space may stand side by
/// side: both read norm1, and their sum is one sublayer.
struct Block {
  Placement placement = Placement::Pre;
  double residualScale = 1; ///< of what sublayers add to x
  /// Pre-norm: sublayers add to norm(x) instead of x.
  bool residualOfNorm = false;
  double inputScale = 1; ///< pre-norm: of what they add it to
  /// Pre-norm: what sublayers add is first scaled channel by channel. Roles
  /// "layer_scale1" [D, 1] (attention or what takes its place) and
  /// "layer_scale2" (FFN, mixture).
  bool layerScale = false;
  Norm norm;
  std::optional<Attention> attention;
  std::optional<Mamba> mamba;         ///< beside or in place of `attention`
  std::optional<MemoryBlock> memory;  ///< pre-norm, with both of these
  std::optional<ShortConv> shortConv; ///< in place of `attention`
  std::optional<DeltaRule> deltaRule; ///< in place of `attention`
  std::optional<TimeMix> timeMix;     ///< in place of `attention`
  std::optional<Attention> cross;
  std::optional<FFN> ffn;
  std::optional<MoE> moe; ///< in place of `ffn`
  /// Each sublayer is x + gate * f(norm(x) * (1 + scale) + shift). Roles
  /// "modulation.weight" [3 D for each sublayer, C] and "modulation.bias": the
  /// first sublayer's shift, scale and gate, then those of the next. Sublayers
  /// side by side have one of each.
  std::optional<Modulation> modulation;
  std::optional<Joint> joint; ///< modulated
  /// Parallel: one matrix of what attention and the feed-forward layer give,
  /// side by side. Roles "out.weight" [D, heads*value_dim + ffn width] and, if
  /// that layer has biases, "out.bias", in place of "attention.o.*" and
  /// "ffn.down.*".
  bool sharedOut = false;
  /// Peri only: the stream is several copies of the channels.
  std::optional<Alternating> alternating;
  /// Peri only: with n the norm of the attention's input, what leaves the
  /// attention becomes (x + attention + n + norm(n A B)) / sqrt(2). Roles
  /// "laurel_a.weight" A [laurelRank, D], "laurel_b.weight" B [D, laurelRank]
  /// and "laurel_norm.*".
  int64_t laurelRank = 0;
};

/// Token embedding, role "weight" [vocab, width].
struct Embedding {
  int64_t vocab = 0, width = 0;
  double scale = 1;
  std::string input; ///< graph input with the ids; default the stream's
};
enum class PositionKind { Learned, Sinusoidal };
enum class SinusoidLayout { Interleaved, Blocks, Tensor2Tensor, CosinesFirst };
/// The source of token positions: an input (position_ids), the place in the
/// stream, or how many ids up to the token are not `pad`, which itself is at 0
/// (RoBERTa).
enum class PositionCount { Input, Tokens, Unpadded };
/// A vector for each position, added or put beside the channels. Learned: role
/// "weight" [length, width], in two dimensions "rows.weight" [rows, width / 2]
/// and "columns.weight".
struct Positions {
  PositionKind kind = PositionKind::Learned;
  PositionCount count = PositionCount::Input;
  int64_t pad = 0; ///< unpadded
  int64_t length = 0;
  int64_t offset = 0; ///< row of position 0
  /// Position ids that are not given count only what attention_mask shows.
  bool skipPadding = false;
  SinusoidLayout layout = SinusoidLayout::Interleaved;
  int64_t concat = 0; ///< channels that they add to the stream; 0: summed up
  int64_t dims = 1;   ///< 2: half of the channels for rows, half for columns
  bool columnsFirst = false; ///< which half
  /// Rows and columns of the image that a learned table is for; its first
  /// length - rows * columns rows are for the tokens before the image.
  std::vector<int64_t> grid;
  Interpolation interpolate = Interpolation::None;
  /// Antialias: an i64 input [batch, 2], each image's rows and columns. Tokens
  /// behind them are at the first place.
  std::string shapesInput;
};
/// Role "weight" [out, D], "bias" [out]. `tied` names the embedding layer whose
/// table is used instead. Gives softcap(scale * act(x W + b)).
struct Linear {
  int64_t out = 0;
  bool bias = false;
  Activation activation = Activation::Identity;
  double scale = 1; ///< multiplies the result
  std::string tied;
  std::optional<double> softcap; ///< y becomes c tanh(y / c)
  bool squeeze = false;          ///< `out` is 1 and its dimension left out
};

enum class PoolKind { First, Last, Mean, Max, Token, Id, LastId, LargestId };
/// One vector [batch, width] for each sequence. Padding that an attention mask
/// hides is not counted by last, mean and max.
struct Pool {
  PoolKind kind = PoolKind::First;
  int64_t index = 0; ///< token: which
  int64_t id = 0;    ///< id, last_id: the token where this id stands
  std::string input; ///< where ids stand; default what the stream starts from
};
/// Learned tokens before the others, role "weight" [count, width].
struct ClassTokens {
  int64_t count = 1;
};
/// Tokens `first` to `first + count` of each sequence; count 0: the rest. Or a
/// part of the tokens that `concat` put one behind the other.
struct Slice {
  int64_t first = 0, count = 0;
  int64_t part = -1; ///< its number; -1: none is meant
};
/// The tokens of `source`, a stream or layer, behind those of the stream; of a
/// pooled one its channels behind those of a pooled stream.
struct Concat {
  std::string source;
};
/// (x - mean) / sqrt(variance + eps) * weight + bias of each channel with the
/// statistics of its places, or with `together` those of all channels' places.
/// Roles "weight" and "bias".
struct InstanceNorm {
  double eps = 1e-5;
  bool together = false;
};
/// A convolution whose result is tokens [batch, places, out], row by row. Roles
/// "weight" [out, channels / groups * kernel] in the order of PyTorch, and
/// "bias".
struct Conv {
  int64_t out = 0;
  int64_t channels = 0;
  int64_t groups = 1; ///< of channels, each with its share of `out`
  /// One number per dimension.
  std::vector<int64_t> kernel, stride, padding;
  /// The input is [batch, channels, ...]; of one channel also [batch, places].
  bool channelsFirst = false;
  /// Of an image: columns of "weight" are the kernel's places row by row, each
  /// with all channels.
  bool placesFirst = false;
  /// One dimension: a place for each stride that is begun, padded by half of
  /// what the kernel has more, behind by one less if that is odd and by the
  /// rest of the last stride.
  bool same = false;
  /// With `same`: padding mirrors the places instead of being zeros.
  bool reflect = false;
  /// With `same` or `transposed`: no place sees a later one. All padding is
  /// before the first place, or what is cut off is behind the last.
  bool causal = false;
  /// One dimension, a kernel of whole strides: the transposed convolution, of
  /// whose places stride times as many as before are kept, the others cut off
  /// by halves, behind by one less if they are odd. Role "weight" is
  /// [kernel * out, channels].
  bool transposed = false;
  /// With `transposed`: of all places, before some are cut off. Roles
  /// "norm.weight" and "norm.bias".
  std::optional<InstanceNorm> norm;
  bool bias = true;
  Activation activation = Activation::Identity;
};
/// (x - mean) / sqrt(variance + eps) * weight + bias with the statistics of
/// training, roles "weight", "bias", "mean" and "variance".
struct BatchNorm {
  double eps = 1e-5;
};
/// scale * (x + the result of `source`, a stream or layer).
struct Add {
  std::string source;
  double scale = 1;
};
/// x / |x| of each vector.
struct L2Norm {};
/// Scalar products [batch, other batch] of pooled vectors with those of
/// `source`, times exp of the role "scale" [1] if `temperature`, plus the role
/// "bias" [1] if `bias`.
struct Similarity {
  std::string source;
  bool temperature = false;
  bool bias = false;
};

/// The mean of -log softmax(logits)[target] over all targets but `ignore`: one
/// number.
struct CrossEntropy {
  std::string targets; ///< graph input, ids [batch, tokens] (pooled: [batch])
  int64_t ignore = -100;
};

/// A function without weights, standing alone: an activation of every number,
/// softmax over the channels of each token, or rotary positions of the channels
/// as `heads` heads.
struct Function {
  enum class Kind { Activation, Softmax, Rotary };
  Kind kind = Kind::Activation;
  Activation activation = Activation::Identity;
  bool logarithm = false;   ///< softmax only: log(softmax(x))
  int64_t heads = 1;        ///< rotary only
  std::optional<Rope> rope; ///< rotary only
};

/// x * (1 + scale) + shift. Roles "weight" [2 D, C] and "bias": shift, then
/// scale.
struct Modulate {
  Modulation by;
};
/// Sines and cosines of a number per sequence, [batch] to [batch, width].
struct Timestep {
  int64_t width = 0;
  double period = 10000; ///< the longest, over 2 pi
  double scale = 1;      ///< of the number
  bool cosinesFirst = true;
  int64_t shift = 0; ///< frequencies are period^(-i / (width/2 - shift))
};
/// Chunks of `size` tokens that overlap by half: [batch, tokens, width] becomes
/// [batch * chunks, size, width]. Zeros stand before the first token and after
/// the last.
struct Chunk {
  int64_t size = 0;
};
/// Tokens of the same place in their chunks become a sequence, [batch * size,
/// chunks, width], and back.
struct SwapChunks {};
/// The sum of all chunks where they overlap: the tokens that `chunk` cut.
struct OverlapAdd {};

/// A weight that a layer needs: its role and its shape as the op wants it,
/// [rows, columns] or, with `columns` 0, a vector.
struct WeightRole {
  std::string role;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t parts = 1; ///< `{e}` in the role counts to this
};

/// A layer of a kind that a plugin brought (attune/Spec/LayerKind.h).
struct Extension {
  std::string kind; ///< its key
  /// The options that the description gives, integers evaluated. Options that
  /// it leaves out are absent.
  std::map<std::string, std::variant<int64_t, double, bool, std::string>>
      options;
  std::vector<WeightRole> weights;
  double flopsPerToken = 0; ///< for statistics
  bool perToken = true;     ///< reads no other tokens
  SourceLocation location;
};

/// One entry of "layers". `{i}` in `name` and in the tensors of `weights` is
/// replaced by the number of the repeat: `first`, `first + 1`, ... A layer of a
/// file that gives no name is called "layers.<index>"
/// ("<stream>.layers.<index>" under "streams"), with ".{i}" at the end if it
/// repeats.
struct Layer {
  std::string name;
  int64_t repeat = 1;
  int64_t first = 0; ///< number of the first repeat
  std::variant<Embedding, Positions, Block, Attention, FFN, Norm, Linear, MoE,
               Pool, ClassTokens, Slice, Concat, Conv, BatchNorm, InstanceNorm,
               Add, L2Norm, Similarity, Insert, CrossEntropy, Recurrent, Scan,
               Mamba, Modulate, Timestep, Chunk, SwapChunks, OverlapAdd,
               LayerInputs, Spread, Unite, Windows, Whole, Merge, Unpatch,
               Extension, Function>
      op;
  int64_t inputWidth = 0; ///< channels before this layer (0: ids, bare op)
  int64_t width = 0;      ///< channels after this layer (0: no tokens)
  bool pooled = false;    ///< gives [batch, width]
  /// Blocks that take turns over the repeats; `op` is the first. All have the
  /// same weights. Empty: all repeats are `op`.
  std::vector<Block> cycle;
  WeightMap weights; ///< may list any role that weightRoles() gives
  /// The numbers of the repeats, if they are not `first` and those behind it,
  /// and what sets layers apart that are described alike. Not part of a
  /// description.
  std::vector<int64_t> numbers;
  std::string apart;
  SourceLocation location;
};

/// The numbers of a layer's repeats in order.
std::vector<int64_t> numbersOf(const Layer &layer);

struct Stream {
  std::string name;  ///< "main" when the file has plain "layers"
  std::string input; ///< what it starts from: an input, else the result of an
                     ///< earlier stream or of a layer of one
  std::vector<Layer> layers;
  SourceLocation location;
};

/// An output: the result of a layer by name, "<layer name>.lse", or
/// "hidden_states" (i = 0: what enters the first block, then after each block;
/// the last one after the stream's next norm, as Hugging Face counts them).
struct Output {
  std::string name;
  std::string layer;
  SourceLocation location;
};

/// A setting of sampling that a description or a generation_config.json may
/// have.
struct SamplingSetting {
  enum Kind { Flag, Whole, Real };
  const char *name; ///< as transformers calls it
  Kind kind;
  double least, most; ///< both allowed; a flag to 2 may be "never", too
  double neutral;     ///< what changes nothing; -1: no value
  const char *doc;
};
const std::vector<SamplingSetting> &samplingSettings();

/// Settings of `generate` beyond the network itself.
struct Generation {
  std::vector<int64_t> eos;
  std::optional<int64_t> bos;
  std::optional<int64_t> pad;
  /// Encoder-decoders: what the decoder starts from (default bos), and what it
  /// says first whatever its logits (a target language).
  std::optional<int64_t> decoderStart, forcedBos;
  /// Ids that are never said, and ids that are not said first.
  std::vector<int64_t> suppress, beginSuppress;
  /// Values of sampling settings, in the order of samplingSettings(); a flag is
  /// 0 or 1.
  std::vector<std::pair<const SamplingSetting *, double>> sampling;
};

struct Model {
  std::string name;
  std::string description;             ///< free text
  std::map<std::string, int64_t> dims; ///< named dimensions, evaluated
  std::vector<TensorSpec> inputs;
  std::vector<Stream> streams;
  std::vector<Output> outputs;
  DType dtype = DType::F32; ///< storage of weights unless overridden
  std::string quantize;     ///< as --quantize says it; empty: full width
  SourceLocation quantizeLocation;
  RowForm activations = RowForm::Bytes;
  std::string lowRank; ///< as --low-rank says it; empty: matrices stay whole
  SourceLocation lowRankLocation;
  std::string mesh; ///< as --mesh says it; empty: one process has it all
  SourceLocation meshLocation;
  KvCache kvCache = KvCache::Full;
  /// Positions that the cache of a window has room for besides the window.
  int64_t windowSlack = usualWindowSlack;
  std::string pruneHeads; ///< as --prune-heads says it; empty: all heads stay
  SourceLocation pruneHeadsLocation;
  int64_t context = 0; ///< longest sequence; 0: unlimited
  Generation generation;
  std::optional<Audio> audio;       ///< none: it hears nothing
  std::optional<Codes> codes;       ///< none: it writes one id at a time
  std::optional<Playback> playback; ///< none: it is no codec
  std::shared_ptr<const SourceFile> file;
};

/// Every weight of one repeat of `layer`, in a fixed order. A tied linear layer
/// has no "weight" of its own.
std::vector<WeightRole> weightRoles(const Layer &layer);

/// The sources of a weight: the map's entry for `role`, or one source named
/// "<name>.<role>" (name is "" for a layer without one: then just the role).
std::vector<WeightSource> resolveWeight(const Layer &layer,
                                        const std::string &role);

/// The layer whose result `name` stands for: the last of a stream, or one by
/// its own name. Null if there is none.
const Layer *findResult(const std::vector<Stream> &streams,
                        const std::string &name);
/// A result that a layer gives besides the stream.
struct FurtherResult {
  std::string name;   ///< behind "<layer name>."
  bool tokens = true; ///< one vector per token, else one per sequence
  int64_t width = 0;  ///< channels; 0: one per token of a source
};
/// Last states of a recurrent layer; of a scan, every step's value,
/// "<cell>.cell" and the attention weights "<attend>.weights".
std::vector<FurtherResult> furtherResults(const Layer &layer);
/// The names of a scan that are read before their step gives them a value, and
/// the states of its cells.
std::vector<std::string> statesOf(const Scan &scan);

/// Parses and validates a description. Reports every error it can find with
/// file, line, column and JSON pointer; returns nothing if there was one.
std::optional<Model> parse(std::shared_ptr<const SourceFile> file,
                           DiagnosticEngine &diags);

/// The description as canonical JSON; parse(print(m)) gives m again.
std::string print(const Model &model);

/// A block as canonical JSON, of a stream of `width` channels.
std::string print(const Block &block, int64_t width);
/// What a layer has in common with others of its kind: all but its numbers.
std::string printShared(const Layer &layer);

/// The text of the JSON Schema that the parser holds files to
/// (attune-spec-v1.schema.json).
std::string jsonSchema();

/// A layer's name with the number of its first repeat.
std::string nameOf(const Layer &layer);
/// The block whose keys and values an attention reads in place of its own.
const Layer *findLender(const Stream &stream, const Attention &attention);
/// Whether an attention of the stream reads the keys and values of `layer`.
bool lendsKeys(const Stream &stream, const Layer &layer);
/// Channels that the sublayers of a block see, of a stream of `width`.
int64_t innerWidth(const Block &block, int64_t width);

/// Channels that the attention of a block reads, whose sublayers see `width`.
int64_t attentionWidth(const Block &block, int64_t width);
/// Whether a block has attention or what takes its place.
bool hasMixer(const Block &block);
/// How many shifts, scales and gates a block has if it is modulated: one of
/// each for every sublayer, or for all that stand side by side.
int64_t numModulated(const Block &block);

/// The key of a layer's kind: "block", "linear", ... Norms are all "norm";
/// functions have their own names.
const char *keyOf(const Layer &layer);

/// Spellings in the file.
const char *stringify(KvCache form);
const char *stringify(RowForm form);
const char *stringify(DType dtype);
const char *stringify(NormKind kind);
const char *stringify(Causal causal);
const char *stringify(FeatureMap map);
const char *stringify(SequenceSharing shared);
const char *stringify(Fusion fusion);
const char *stringify(NormScope scope);
const char *stringify(Activation activation);
const char *stringify(RouterScores scores);
const char *stringify(GroupScore score);
const char *stringify(Placement placement);
const char *stringify(PositionKind kind);
const char *stringify(SinusoidLayout layout);
const char *stringify(PositionCount count);
const char *stringify(PoolKind kind);
const char *stringify(Interpolation interpolation);
const char *stringify(Function::Kind kind);
const char *stringify(CellKind kind);
const char *stringify(ScoreKind kind);

} // namespace attune::spec

#endif // ATTUNE_SPEC_SPEC_H
