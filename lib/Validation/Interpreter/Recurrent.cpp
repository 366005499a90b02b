//===- Recurrent.cpp - Recurrences and state spaces, as defined -----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layers.h"

#include <cmath>

using namespace attune;
using namespace attune::validation;
using namespace mlir;

/// One step of a cell for one row: x and u are the gates, h and c the states.
static void stepCell(CellKind kind, int64_t width, const double *x,
                     const double *u, double *h, double *c) {
  auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  for (int64_t i = 0; i < width; ++i) {
    auto gate = [&](int64_t g) { return x[g * width + i] + u[g * width + i]; };
    switch (kind) {
    case CellKind::Rnn:
      h[i] = std::tanh(gate(0));
      break;
    case CellKind::RnnRelu:
      h[i] = std::max(gate(0), 0.0);
      break;
    case CellKind::Gru: {
      double r = sigmoid(gate(0)), z = sigmoid(gate(1));
      double n = std::tanh(x[2 * width + i] + r * u[2 * width + i]);
      h[i] = (1 - z) * n + z * h[i];
      break;
    }
    case CellKind::Lstm:
      c[i] = sigmoid(gate(1)) * c[i] + sigmoid(gate(0)) * std::tanh(gate(2));
      h[i] = sigmoid(gate(3)) * std::tanh(c[i]);
      break;
    }
  }
}

static std::vector<double> reals(const Scalar *from, int64_t count) {
  std::vector<double> values(count);
  for (int64_t i = 0; i < count; ++i)
    values[i] = from[i].f;
  return values;
}

static void put(const std::vector<double> &from, Scalar *to) {
  for (size_t i = 0; i < from.size(); ++i)
    to[i].f = from[i];
}

static bool runCell(Step &step) {
  auto op = cast<RecurrentCellOp>(step.op);
  const Array &x = step.in[0].array(), &u = step.in[1].array(),
              &h = step.in[2].array();
  const Array *c = arrayOf(step, op.getCell()),
              *keep = arrayOf(step, op.getKeep());
  int64_t width = h.shape[1], gates = x.shape[1];
  if (!same(step, x.shape[0], h.shape[0], "batch sizes") ||
      !same(step, u.shape[0], h.shape[0], "batch sizes"))
    return false;
  Datum next = makeReals(h.shape), nextCell = makeReals(h.shape);
  for (int64_t b = 0; b < h.shape[0]; ++b) {
    auto state = reals(&h.data[b * width], width);
    auto cell =
        c ? reals(&c->data[b * width], width) : std::vector<double>(width);
    if (!keep || keep->data[b].i)
      stepCell(op.getKind(), width, reals(&x.data[b * gates], gates).data(),
               reals(&u.data[b * gates], gates).data(), state.data(),
               cell.data());
    put(state, &next.array().data[b * width]);
    put(cell, &nextCell.array().data[b * width]);
  }
  giveRounded(step, 0, next);
  if (step.op->getNumResults() > 1)
    giveRounded(step, 1, nextCell);
  return true;
}

static bool runRecurrent(Step &step) {
  auto op = cast<RecurrentOp>(step.op);
  const Array &x = step.in[0].array();
  const Array *bias = arrayOf(step, op.getBias()),
              *state = arrayOf(step, op.getState()),
              *cells = arrayOf(step, op.getCell()),
              *keep = arrayOf(step, op.getKeep());
  int64_t batch = x.shape[0], tokens = x.shape[1], gates = x.shape[2];
  Rows w(step.in[1].array(), gates, false);
  int64_t width = w.getColumns();
  if (!same(step, w.getRows(), gates, "gates") ||
      (state && !same(step, state->shape[0], batch, "batch sizes")) ||
      (keep && !same(step, int64_t(keep->data.size()), batch * tokens,
                     "tokens to keep")) ||
      !step.machine.spend(step, batch * tokens * gates * width / 4))
    return false;
  Datum sequence = makeReals({batch, tokens, width});
  Datum last = makeReals({batch, width}), lastCell = makeReals({batch, width});
  for (int64_t b = 0; b < batch; ++b) {
    auto h = state ? reals(&state->data[b * width], width)
                   : std::vector<double>(width);
    auto c = cells ? reals(&cells->data[b * width], width)
                   : std::vector<double>(width);
    for (int64_t i = 0; i < tokens; ++i) {
      int64_t t = b * tokens + (op.getReverse() ? tokens - 1 - i : i);
      if (keep && !keep->data[t].i)
        continue;
      std::vector<double> u(gates);
      for (int64_t g = 0; g < gates; ++g) {
        for (int64_t k = 0; k < width; ++k)
          u[g] += h[k] * w(g, k);
        u[g] += bias ? bias->data[g].f : 0;
      }
      stepCell(op.getKind(), width, reals(&x.data[t * gates], gates).data(),
               u.data(), h.data(), c.data());
      put(h, &sequence.array().data[t * width]);
    }
    put(h, &last.array().data[b * width]);
    put(c, &lastCell.array().data[b * width]);
  }
  giveRounded(step, 0, sequence);
  giveRounded(step, 1, last);
  if (step.op->getNumResults() > 2)
    giveRounded(step, 2, lastCell);
  return true;
}

static bool runCausalConv(Step &step) {
  auto op = cast<CausalConvOp>(step.op);
  const Array &x = step.in[0].array(), &w = step.in[1].array();
  const Array *bias = arrayOf(step, op.getBias()),
              *keep = arrayOf(step, op.getKeep());
  int64_t tokens = x.shape[1], channels = x.shape[2], taps = w.shape[1];
  if (!same(step, w.shape[0], channels, "channels") ||
      (keep && !same(step, int64_t(keep->data.size()), x.shape[0] * tokens,
                     "tokens to keep")))
    return false;
  auto kept = [&](int64_t row) { return !keep || keep->data[row].i; };
  Datum result = makeReals(x.shape);
  for (int64_t row = 0; row < x.shape[0] * tokens; ++row)
    for (int64_t c = 0; kept(row) && c < channels; ++c) {
      double sum = bias ? bias->data[c].f : 0;
      for (int64_t k = 0; k < taps; ++k) {
        int64_t back = taps - 1 - k;
        if (row % tokens >= back && kept(row - back))
          sum += w.data[c * taps + k].f * x.data[(row - back) * channels + c].f;
      }
      result.array().data[row * channels + c].f =
          activate(op.getActivation(), sum);
    }
  giveRounded(step, 0, result);
  return true;
}

static bool runSelectiveScan(Step &step) {
  auto op = cast<SelectiveScanOp>(step.op);
  const Array &x = step.in[0].array(), &steps = step.in[1].array(),
              &log = step.in[2].array(), &bs = step.in[3].array(),
              &cs = step.in[4].array(), &skip = step.in[5].array();
  const Array *gate = arrayOf(step, op.getGate()),
              *state = arrayOf(step, op.getState());
  int64_t batch = x.shape[0], tokens = x.shape[1], channels = x.shape[2];
  bool heads = op.hasHeads();
  int64_t states = heads ? op.getLast().getType().getDimSize(1) : log.shape[1];
  // Channels that share a step, a decay and a skip; those that share B and C.
  int64_t head = heads ? channels / log.shape[0] : 1;
  int64_t group = heads ? channels / (bs.shape[2] / states) : channels;
  if (steps.shape != Shape{batch, tokens, channels / head} ||
      (gate && gate->shape != x.shape) || bs.shape[0] != batch ||
      bs.shape[1] != tokens || cs.shape != bs.shape)
    return step.machine.illegal(step, "operands have different sizes");
  for (Scalar value : log.data)
    if (value.f > 80)
      return step.machine.illegal(step, "has a decay that f32 cannot hold");
  Datum result = makeReals(x.shape);
  Datum last = makeReals({batch, states, channels});
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t c = 0; c < channels; ++c) {
      std::vector<double> h(states);
      for (int64_t s = 0; state && s < states; ++s)
        h[s] = state->data[(b * states + s) * channels + c].f;
      for (int64_t t = b * tokens; t < (b + 1) * tokens; ++t) {
        double in = x.data[t * channels + c].f;
        double dt = activate(Activation::Softplus,
                             steps.data[(t * channels + c) / head].f);
        double y = skip.data[c / head].f * in;
        for (int64_t s = 0; s < states; ++s) {
          double a = -std::exp(log.data[heads ? c / head : c * states + s].f);
          int64_t at = t * bs.shape[2] + c / group * states + s;
          h[s] = std::exp(dt * a) * h[s] + dt * bs.data[at].f * in;
          y += cs.data[at].f * h[s];
        }
        if (gate)
          y *= activate(Activation::Silu, gate->data[t * channels + c].f);
        result.array().data[t * channels + c].f = y;
      }
      for (int64_t s = 0; s < states; ++s)
        last.array().data[(b * states + s) * channels + c].f = h[s];
    }
  giveRounded(step, 0, result);
  giveRounded(step, 1, last);
  return step.machine.spend(step, int64_t(x.data.size()) * states);
}

static bool runDeltaRule(Step &step) {
  auto op = cast<DeltaRuleOp>(step.op);
  const Array &qs = step.in[0].array(), &ks = step.in[1].array(),
              &v = step.in[2].array(), &steps = step.in[3].array(),
              &log = step.in[4].array(), &betas = step.in[5].array();
  const Array *state = arrayOf(step, op.getState());
  int64_t batch = v.shape[0], tokens = v.shape[1], channels = v.shape[2];
  int64_t states = op.getLast().getType().getDimSize(1), heads = log.shape[0];
  int64_t width = qs.shape[2], keys = width / states;
  // A step for each head, or for each row of its memory.
  int64_t each = steps.shape[2] == heads ? 1 : states;
  if (steps.shape != Shape{batch, tokens, heads * each} ||
      betas.shape != Shape{batch, tokens, heads} ||
      qs.shape != Shape{batch, tokens, width} || ks.shape != qs.shape ||
      channels % heads || heads % keys)
    return step.machine.illegal(step, "operands have different sizes");
  for (Scalar value : log.data)
    if (value.f > 80)
      return step.machine.illegal(step, "has a decay that f32 cannot hold");
  // The numbers of a head, divided by their norm.
  auto normed = [&](const Array &from, int64_t at) {
    std::vector<double> all = reals(&from.data[at], states);
    double squares = op.getEps() ? op.getEps()->convertToDouble() : 1;
    for (double one : all)
      squares += op.getEps() ? one * one : 0;
    for (double &one : all)
      one /= std::sqrt(squares);
    return all;
  };
  Datum result = makeReals(v.shape);
  Datum last = makeReals({batch, states, channels});
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t c = 0; c < channels; ++c) {
      int64_t head = c / (channels / heads), key = head / (heads / keys);
      auto place = [&](int64_t s) { return (b * states + s) * channels + c; };
      std::vector<double> h(states);
      for (int64_t s = 0; state && s < states; ++s)
        h[s] = state->data[place(s)].f;
      for (int64_t t = b * tokens; t < (b + 1) * tokens; ++t) {
        std::vector<double> q = normed(qs, t * width + key * states),
                            k = normed(ks, t * width + key * states);
        auto keep = [&](int64_t s) {
          double dt = activate(Activation::Softplus,
                               steps.data[(t * heads + head) * each + s].f);
          return std::exp(-std::exp(log.data[head].f) * dt);
        };
        double kept = keep(0);
        double missing = v.data[t * channels + c].f, y = 0;
        for (int64_t s = 0; s < states; ++s) {
          h[s] *= each == 1 ? kept : keep(s);
          missing -= k[s] * h[s];
        }
        missing *=
            activate(Activation::Sigmoid, betas.data[t * heads + head].f);
        for (int64_t s = 0; s < states; ++s) {
          h[s] += k[s] * missing;
          y += q[s] * h[s];
        }
        result.array().data[t * channels + c].f =
            y * op.getScale().convertToDouble();
      }
      for (int64_t s = 0; s < states; ++s)
        last.array().data[place(s)].f = h[s];
    }
  giveRounded(step, 0, result);
  giveRounded(step, 1, last);
  return step.machine.spend(step, int64_t(v.data.size()) * states);
}

static bool runGeneralizedDeltaRule(Step &step) {
  auto op = cast<GeneralizedDeltaRuleOp>(step.op);
  const Array &qs = step.in[0].array(), &ks = step.in[1].array(),
              &v = step.in[2].array(), &decays = step.in[3].array(),
              &removes = step.in[4].array(), &replaces = step.in[5].array(),
              &bonus = step.in[6].array();
  const Array *state = arrayOf(step, op.getState());
  int64_t batch = v.shape[0], tokens = v.shape[1], channels = v.shape[2];
  int64_t states = op.getLast().getType().getDimSize(1), width = qs.shape[2];
  Shape shape = {batch, tokens, width};
  for (const Array *each : {&qs, &ks, &decays, &removes, &replaces})
    if (each->shape != shape)
      return step.machine.illegal(step, "operands have different sizes");
  int64_t heads = width / states;
  Datum result = makeReals(v.shape), own = makeReals(v.shape);
  Datum last = makeReals({batch, states, channels});
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t c = 0; c < channels; ++c) {
      int64_t head = c / (channels / heads) * states;
      auto place = [&](int64_t s) { return (b * states + s) * channels + c; };
      std::vector<double> h(states);
      for (int64_t s = 0; state && s < states; ++s)
        h[s] = state->data[place(s)].f;
      for (int64_t t = b * tokens; t < (b + 1) * tokens; ++t) {
        auto of = [&](const Array &from, int64_t s) {
          return from.data[t * width + head + s].f;
        };
        double value = v.data[t * channels + c].f;
        double removed = 0, y = 0, share = 0;
        for (int64_t s = 0; s < states; ++s)
          removed += of(removes, s) * h[s];
        for (int64_t s = 0; s < states; ++s) {
          h[s] = std::exp(of(decays, s)) * h[s] + of(replaces, s) * removed +
                 of(ks, s) * value;
          y += of(qs, s) * h[s];
          share += bonus.data[head + s].f * of(qs, s) * of(ks, s);
        }
        result.array().data[t * channels + c].f = y;
        own.array().data[t * channels + c].f = share * value;
      }
      for (int64_t s = 0; s < states; ++s)
        last.array().data[place(s)].f = h[s];
    }
  giveRounded(step, 0, result);
  giveRounded(step, 1, last);
  giveRounded(step, 2, own);
  return step.machine.spend(step, int64_t(v.data.size()) * states);
}

void validation::addRecurrent(Handlers &handlers) {
  handlers["attune.recurrent_cell"] = runCell;
  handlers["attune.recurrent"] = runRecurrent;
  handlers["attune.causal_conv"] = runCausalConv;
  handlers["attune.selective_scan"] = runSelectiveScan;
  handlers["attune.delta_rule"] = runDeltaRule;
  handlers["attune.generalized_delta_rule"] = runGeneralizedDeltaRule;
}
