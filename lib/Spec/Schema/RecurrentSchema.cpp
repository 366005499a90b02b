//===- RecurrentSchema.cpp - Tables of recurrent layers ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SchemaTypes.h"

namespace attune::spec {

static Type cellKind() { return choice({"rnn", "rnn_relu", "gru", "lstm"}); }

const ObjectType &recurrentType() {
  static const ObjectType type{
      "recurrent",
      "Recurrent layers over the tokens, as torch.nn.RNN, GRU and LSTM. "
      "Padding that an attention mask hides does not count.",
      {
          {"cell", cellKind(), "default gru"},
          {"width", integer(1), "channels of each direction's state", true},
          {"layers", integer(1, 1000), "one on top of the other; default 1"},
          {"bidirectional", boolean(),
           "a second direction from the last token to the first, its channels "
           "behind those of the first; default false"},
          {"bias", boolean(), "two for each gate; default true"},
          {"initial", map(string()),
           "state, such as h_l0 or c_l1_reverse, to '<layer>.<state>' of an "
           "earlier layer; default zeros"},
      },
      {},
      {}};
  return type;
}

const ObjectType &scanCellType() {
  static const ObjectType type{
      "scan_cell",
      "One step of a recurrent cell.",
      {
          {"cell", cellKind(), "default gru"},
          {"width", integer(1), "channels of the state", true},
          {"inputs", array(string()), "what it reads, side by side", true},
          {"bias", boolean(), "two for each gate; default true"},
      },
      {},
      {}};
  return type;
}

const ObjectType &scanAttendType() {
  static const ObjectType type{
      "scan_attend",
      "sum_i a_i x_i over the tokens x_i of another stream, with a = softmax "
      "of scores of the query q: q.x_i (dot), q.(W x_i + b) (general), "
      "v.act(W_q q + b_q + W_x x_i + b_x) (additive) or v.act(W [q; x_i] + b) "
      "(concat).",
      {
          {"score", choice({"dot", "general", "additive", "concat"}),
           "default additive"},
          {"query", string(), "a value of the scan", true},
          {"source", string(),
           "an earlier stream or layer, or a float input [batch, ..., width]",
           true},
          {"width", integer(1), "additive, concat: what v is as wide as"},
          {"activation", activation(), "additive, concat; default tanh"},
          {"query_bias", boolean(), "additive: has b_q; default false"},
          {"key_bias", boolean(), "has b or b_x; default false"},
          {"score_bias", boolean(),
           "additive, concat: the checkpoint has a bias beside v, which "
           "changes no weight; default false"},
      },
      {},
      {}};
  return type;
}

const ObjectType &scanLinearType() {
  static const ObjectType type{
      "scan_linear",
      "act(x W + b) * multiply + add.",
      {
          {"inputs", array(string()), "what it reads, side by side", true},
          {"out", integer(1), "channels", true},
          {"bias", boolean(), "default false"},
          {"activation", activation(), "default identity"},
          {"multiply", string(), "a value of the scan: a gate's other side"},
          {"add", string(), "a value of the scan"},
      },
      {},
      {}};
  return type;
}

const ObjectType &scanMeanType() {
  static const ObjectType type{
      "scan_mean",
      "The mean of another stream's tokens.",
      {
          {"source", string(),
           "an earlier stream, or a float input [batch, ..., width]", true},
      },
      {},
      {}};
  return type;
}

const ObjectType &scanStepType() {
  static const ObjectType type{
      "scan_step",
      "One value of a scan.",
      {
          {"cell", object(scanCellType()), "recurrent cell"},
          {"attend", object(scanAttendType()), "attention to another stream"},
          {"linear", object(scanLinearType()), "projection"},
          {"mean", object(scanMeanType()), "mean of a stream (in 'start')"},
          {"name", string(), "what the others call it", true},
      },
      {"cell", "attend", "linear", "mean"},
      "kind"};
  return type;
}

const ObjectType &scanType() {
  static const ObjectType type{
      "scan",
      "A loop over the tokens. A step that reads a value before the step that "
      "gives it reads the previous token's: that is a state.",
      {
          {"start", array(object(scanStepType())),
           "linear and mean steps, once before the loop"},
          {"initial", map(string()),
           "state to a value of 'start' or '<layer>.<state>' of an earlier "
           "layer; default zeros"},
          {"steps", array(object(scanStepType())), "for each token", true},
          {"result", array(string()),
           "values side by side; default the last "
           "step's"},
      },
      {},
      {}};
  return type;
}

const ObjectType &outNormType() {
  static const ObjectType type = [] {
    std::vector<Key> keys = normType().keys;
    keys.push_back({"parts", integer(1),
                    "into which channels are divided, each normalised by "
                    "itself; default 1"});
    return ObjectType{
        "out_norm", "Normalisation of a state space's result.", keys, {}, {}};
  }();
  return type;
}

const ObjectType &shortConvType() {
  static const ObjectType type{
      "short_conv",
      "A convolution of each channel over the last tokens between two gates: "
      "with B, C and x the thirds of a projection, C * conv(B * x), projected.",
      {
          {"kernel", integer(2, 256),
           "tokens that the convolution reads; default 3"},
          {"bias", boolean(), "of all three; default false"},
      },
      {},
      {}};
  return type;
}

const ObjectType &deltaRuleType() {
  static const ObjectType type{
      "delta_rule",
      "The gated delta rule: a projection to queries, keys and values, "
      "convolved over the last tokens and activated by silu; a memory for each "
      "head, which forgets and corrects itself token by token; each head's "
      "result normed, times silu of a gate, and projected back.",
      {
          {"heads", integer(1), "of values, each with a memory", true},
          {"key_heads", integer(1),
           "of queries and keys, each for as many value heads; default "
           "'heads'"},
          {"key_dim", integer(1, 512),
           "channels of a query or key head; default 'value_dim'"},
          {"value_dim", integer(1),
           "channels of a value head; default the stream's / 'heads'"},
          {"kernel", integer(2, 256),
           "tokens that the convolution reads; default 4"},
          {"eps", number(),
           "of the norms that queries and keys are divided by; default 1e-6"},
          {"channel_steps", boolean(),
           "each channel of a key forgets by a step of its own; default "
           "false"},
          {"step_rank", integer(1),
           "width that the steps go through; default one matrix"},
          {"gate_rank", integer(1),
           "width that the gate goes through; default one matrix"},
          {"gate_activation", activation(), "of the gate; default silu"},
          {"norm", object(normType()),
           "of each head's result; default an rms_norm"},
      },
      {},
      {}};
  return type;
}

const ObjectType &timeMixType() {
  static const ObjectType type{
      "time_mix",
      "The time mixing of RWKV-7: projections of each token mixed with the one "
      "before; a memory for each head, whose channels fade at rates of their "
      "own and in which one key's value is replaced; each head's result "
      "normed, plus what the token itself gives, times a gate, and projected "
      "back.",
      {
          {"heads", integer(1), "each with a memory", true},
          {"key_dim", integer(1, 512),
           "channels of a key head; default the stream's / 'heads'"},
          {"value_dim", integer(1),
           "channels of a value head; default 'key_dim'"},
          {"decay_rank", integer(1), "width that the decays go through", true},
          {"rate_rank", integer(1),
           "width that the rates go through by which values are replaced",
           true},
          {"gate_rank", integer(1), "width that the gate goes through", true},
          {"value_rank", integer(1),
           "width that goes through what values are mixed by with those of the "
           "last block before that has no value_rank; default none, which "
           "mixes nothing"},
          {"eps", number(),
           "of the norms that the keys of what is replaced are divided by; "
           "default 1e-12"},
          {"norm", object(normType()),
           "of each head's result, with weights of its own; default a "
           "layer_norm"},
      },
      {},
      {}};
  return type;
}

const ObjectType &mambaType() {
  static const ObjectType type{
      "mamba",
      "The selective state space of Mamba: a projection to two streams, a "
      "convolution of each channel of the first over the tokens before, states "
      "whose step sizes, inputs and outputs depend on the token, times silu of "
      "the second, and a projection back.",
      {
          {"inner", integer(1), "channels; default twice the stream's"},
          {"states", integer(1, 256), "of each channel; default 16"},
          {"kernel", integer(1, 256),
           "tokens that the convolution reads; default 4"},
          {"rank", integer(1),
           "of the step sizes; default the stream's channels / 16, rounded up"},
          {"bias", boolean(), "of in_proj and out_proj; default false"},
          {"conv_bias", boolean(), "default true"},
          {"norm", object(normType()),
           "of the low-rank steps, inputs and outputs each; default none"},
          {"heads", integer(1),
           "Mamba-2: channels of a head share a step, a decay and a skip; "
           "steps, "
           "inputs and outputs are made of the stream, and inputs and outputs "
           "are convolved, too; default none, which is the first Mamba"},
          {"groups", integer(1),
           "Mamba-2: of heads that share inputs and outputs; default 1"},
          {"out_norm", object(outNormType()),
           "Mamba-2: of the gated result; default none"},
      },
      {},
      {}};
  return type;
}

} // namespace attune::spec
