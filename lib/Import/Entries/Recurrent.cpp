//===- Recurrent.cpp - Recurrent layers and scans ---------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EntryImporter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <set>

using namespace mlir;
using namespace attune;

static int64_t widthOf(Value value) { return typeOf(value).getShape().back(); }

static CellKind toCell(spec::CellKind kind) {
  switch (kind) {
  case spec::CellKind::Rnn:
    return CellKind::Rnn;
  case spec::CellKind::RnnRelu:
    return CellKind::RnnRelu;
  case spec::CellKind::Gru:
    return CellKind::Gru;
  case spec::CellKind::Lstm:
    return CellKind::Lstm;
  }
  llvm_unreachable("every cell is listed");
}

namespace {

/// Makes the tensors that recurrences need, at one place.
struct StateBuilder {
  OpBuilder &b;
  Location loc;
  Value batch; ///< number of sequences

  RankedTensorType type(ArrayRef<int64_t> shape) {
    return RankedTensorType::get(shape, b.getF32Type());
  }
  RankedTensorType stateType(int64_t width) {
    return type({ShapedType::kDynamic, width});
  }
  Value empty(ArrayRef<OpFoldResult> sizes) {
    return tensor::EmptyOp::create(b, loc, sizes, b.getF32Type());
  }
  /// [batch, width], or [batch, tokens, width].
  Value zeros(int64_t width, OpFoldResult tokens = {}) {
    Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0));
    SmallVector<OpFoldResult> sizes = {batch, b.getIndexAttr(width)};
    if (tokens)
      sizes.insert(sizes.begin() + 1, tokens);
    return linalg::FillOp::create(b, loc, zero, empty(sizes)).getResult(0);
  }
  Value concat(ArrayRef<Value> values) { return joinChannels(b, loc, values); }
  /// [batch, width] as [batch, 1, 1, width] and back.
  Value asHeads(Value value) {
    int64_t width = widthOf(value);
    OpFoldResult unit = b.getIndexAttr(1);
    SmallVector<OpFoldResult> sizes = {batch, unit, unit,
                                       b.getIndexAttr(width)};
    return tensor::ExpandShapeOp::create(
        b, loc, type({ShapedType::kDynamic, 1, 1, width}), value,
        ArrayRef<ReassociationIndices>{{0}, {1, 2, 3}}, sizes);
  }
  Value asState(Value value) {
    return tensor::CollapseShapeOp::create(
        b, loc, stateType(widthOf(value)), value,
        ArrayRef<ReassociationIndices>{{0, 1, 2}, {3}});
  }
  /// [batch, tokens, width] as [batch, 1, tokens, width].
  Value tokensAsHeads(Value value) {
    SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, value);
    sizes.insert(sizes.begin() + 1, b.getIndexAttr(1));
    return tensor::ExpandShapeOp::create(
        b, loc,
        type({ShapedType::kDynamic, 1, ShapedType::kDynamic, widthOf(value)}),
        value, ArrayRef<ReassociationIndices>{{0, 1}, {2}, {3}}, sizes);
  }
  /// [batch, tokens, places] as [batch, tokens, rows, columns] of `image`. No
  /// expand_shape: it cannot be taken apart with two unknown sizes in a group.
  Value unflattened(Value value, Value image) {
    SmallVector<Value> sizes;
    for (auto [from, dim] : {std::pair(value, 0), std::pair(value, 1),
                             std::pair(image, 1), std::pair(image, 2)})
      sizes.push_back(tensor::DimOp::create(b, loc, from, dim));
    SmallVector<int64_t> shape(4, ShapedType::kDynamic);
    return tensor::GenerateOp::create(
        b, loc, type(shape), sizes,
        [&](OpBuilder &b, Location loc, ValueRange at) {
          Value row = arith::MulIOp::create(b, loc, at[2], sizes[3]);
          Value place = arith::AddIOp::create(b, loc, row, at[3]);
          Value one = tensor::ExtractOp::create(
              b, loc, value, ValueRange{at[0], at[1], place});
          tensor::YieldOp::create(b, loc, one);
        });
  }
  /// A mask [batch, 1, 1, tokens] as [batch, tokens]; null stays null.
  Value keep(Value mask) {
    if (!mask)
      return {};
    auto type = RankedTensorType::get(
        {ShapedType::kDynamic, ShapedType::kDynamic}, b.getI1Type());
    return tensor::CollapseShapeOp::create(
        b, loc, type, mask, ArrayRef<ReassociationIndices>{{0, 1, 2}, {3}});
  }
  Value linear(Value input, Value weight, Value bias, int64_t width,
               attune::Activation activation = attune::Activation::Identity,
               Value residual = {}) {
    SmallVector<int64_t> shape(typeOf(input).getShape());
    shape.back() = width;
    return LinearOp::create(b, loc, type(shape), input, weight, bias, residual,
                            activation, /*gated=*/false, /*scale=*/nullptr);
  }
};

/// A stream that others attend to.
struct Memory {
  Value tokens;                  ///< [batch, tokens, width]
  Value mask;                    ///< [batch, 1, 1, tokens] or null
  std::vector<spec::Dim> places; ///< what the tokens are called: one or two
  Value image; ///< [batch, rows, columns, width] if there are two
};

/// Values that a step needs and that are the same for every token, made before
/// the loop.
struct StepWeights {
  Value inputMatrix, inputBias, stateMatrix, stateBias; ///< cells
  Value matrix, bias;                                   ///< linear, queries
  Value keys, values, mask, vector, queryPad;           ///< attention
};

/// Builds the steps of a scan.
class ScanBuilder {
public:
  ScanBuilder(StateBuilder &tensors, LayerImporter &weights)
      : tensors(tensors), weights(weights) {}

  bool prepare(const spec::ScanStep &step, const Memory &memory);
  /// Gives `step` its value from those of the others.
  void run(const spec::ScanStep &step);

  /// The values that the names stand for at this point.
  std::map<std::string, Value> values;
  /// Steps whose attention weights are wanted; others may fuse them away.
  std::set<std::string> weightsOf;

private:
  Value concat(const std::vector<std::string> &names) {
    SmallVector<Value> parts;
    for (const std::string &name : names)
      parts.push_back(values[name]);
    return tensors.concat(parts);
  }
  Value weight(const spec::ScanStep &step, StringRef role, int64_t rows,
               int64_t columns) {
    return weights.weight(tensors.loc, (step.name + "." + role).str(), rows,
                          columns);
  }
  void cell(const spec::ScanStep &step, const spec::ScanCell &op);
  void attend(const spec::ScanStep &step, const spec::ScanAttend &op);
  Value linear(const spec::ScanStep &step, const spec::ScanLinear &op);

  StateBuilder &tensors;
  LayerImporter &weights;
  std::map<std::string, StepWeights> prepared;
};

} // namespace

/// False after an error was reported.
bool ScanBuilder::prepare(const spec::ScanStep &step, const Memory &memory) {
  StepWeights &w = prepared[step.name];
  if (const auto *op = std::get_if<spec::ScanCell>(&step.op)) {
    int64_t rows = spec::numGates(op->cell) * op->width;
    w.inputMatrix = weight(step, "weight_ih", rows, step.inputWidth);
    w.stateMatrix = weight(step, "weight_hh", rows, op->width);
    if (op->bias) {
      w.inputBias = weight(step, "bias_ih", rows, 0);
      w.stateBias = weight(step, "bias_hh", rows, 0);
    }
    return w.inputMatrix && w.stateMatrix &&
           (!op->bias || (w.inputBias && w.stateBias));
  }
  if (const auto *op = std::get_if<spec::ScanLinear>(&step.op)) {
    w.matrix = weight(step, "weight", op->out, step.inputWidth);
    if (op->bias)
      w.bias = weight(step, "bias", op->out, 0);
    return w.matrix && (!op->bias || w.bias);
  }
  w.mask = memory.mask;
  const auto *op = std::get_if<spec::ScanAttend>(&step.op);
  if (!op) {
    w.values = memory.tokens;
    return true;
  }
  w.values = tensors.tokensAsHeads(memory.tokens);
  if (op->score == spec::ScoreKind::Dot) {
    w.keys = w.values;
    return true;
  }
  // Keys are projected once, for all tokens of both streams. W [q; x] is
  // W [q; 0] + W [0; x].
  bool general = op->score == spec::ScoreKind::General;
  bool concat = op->score == spec::ScoreKind::Concat;
  int64_t width = general ? op->queryWidth : op->width;
  std::string role = concat ? "" : "key.";
  Value matrix = weight(step, role + "weight", width,
                        op->sourceWidth + (concat ? op->queryWidth : 0));
  Value bias = op->keyBias ? weight(step, role + "bias", width, 0) : Value();
  if (!matrix || (op->keyBias && !bias))
    return false;
  Value source = memory.tokens;
  if (concat) {
    OpFoldResult tokens =
        tensor::getMixedSize(tensors.b, tensors.loc, source, 1);
    source = tensors.concat({tensors.zeros(op->queryWidth, tokens), source});
    w.queryPad = tensors.zeros(op->sourceWidth);
  }
  w.keys = tensors.tokensAsHeads(tensors.linear(source, matrix, bias, width));
  if (general)
    return true;
  w.matrix =
      concat ? matrix : weight(step, "query.weight", width, op->queryWidth);
  if (op->queryBias && !(w.bias = weight(step, "query.bias", width, 0)))
    return false;
  // The same for every score, the bias is read by nobody.
  if (op->scoreBias && !weight(step, "score.bias", 1, 0))
    return false;
  w.vector = weight(step, "score.weight", 1, width);
  return w.matrix && w.vector;
}

void ScanBuilder::run(const spec::ScanStep &step) {
  if (const auto *op = std::get_if<spec::ScanCell>(&step.op)) {
    cell(step, *op);
  } else if (const auto *op = std::get_if<spec::ScanAttend>(&step.op)) {
    attend(step, *op);
  } else if (const auto *op = std::get_if<spec::ScanLinear>(&step.op)) {
    values[step.name] = linear(step, *op);
  } else {
    values[step.name] = PoolOp::create(
        tensors.b, tensors.loc, tensors.stateType(step.width),
        PoolKindAttr::get(tensors.b.getContext(), attune::PoolKind::Mean),
        prepared[step.name].values, prepared[step.name].mask, /*at=*/Value(),
        /*index=*/tensors.b.getI64IntegerAttr(0));
  }
}

void ScanBuilder::cell(const spec::ScanStep &step, const spec::ScanCell &op) {
  StepWeights &w = prepared[step.name];
  int64_t gates = spec::numGates(op.cell) * op.width;
  Value input =
      tensors.linear(concat(op.inputs), w.inputMatrix, w.inputBias, gates);
  Value hidden = values[step.name];
  Value product = tensors.linear(hidden, w.stateMatrix, w.stateBias, gates);
  std::string cellName = step.name + ".cell";
  Value cell;
  SmallVector<Type> types = {hidden.getType()};
  if (op.cell == spec::CellKind::Lstm) {
    cell = values[cellName];
    types.push_back(cell.getType());
  }
  auto kind = CellKindAttr::get(tensors.b.getContext(), toCell(op.cell));
  auto next = RecurrentCellOp::create(tensors.b, tensors.loc, types, kind,
                                      input, product, hidden, cell,
                                      /*keep=*/Value());
  values[step.name] = next.getNext()[0];
  if (cell)
    values[cellName] = next.getNext()[1];
}

void ScanBuilder::attend(const spec::ScanStep &step,
                         const spec::ScanAttend &op) {
  StepWeights &w = prepared[step.name];
  OpBuilder &b = tensors.b;
  Value query = values[op.query];
  auto type = tensors.type({ShapedType::kDynamic, 1, 1, ShapedType::kDynamic});
  Value scores;
  if (w.vector) {
    if (w.queryPad)
      query = tensors.concat({query, w.queryPad});
    query = tensors.asHeads(tensors.linear(query, w.matrix, w.bias, op.width));
    scores =
        AdditiveSimilarityOp::create(b, tensors.loc, type, query, w.keys,
                                     w.vector, toActivation(op.activation));
  } else {
    scores = SimilarityOp::create(b, tensors.loc, type, tensors.asHeads(query),
                                  w.keys, b.getF32FloatAttr(1));
  }
  if (w.mask)
    scores =
        MaskScoresOp::create(b, tensors.loc, type, scores, w.mask, Value(),
                             Value(), Value(), /*lengths=*/Value(),
                             /*blocks=*/Value(), CausalAlign::None,
                             IntegerAttr(), FloatAttr(), DenseI64ArrayAttr());
  Value weights =
      SoftmaxOp::create(b, tensors.loc, type, scores, /*sinks=*/Value());
  Value sum = WeightedSumOp::create(
      b, tensors.loc, tensors.type({ShapedType::kDynamic, 1, 1, step.width}),
      weights, w.values);
  values[step.name] = tensors.asState(sum);
  if (weightsOf.count(step.name))
    values[step.name + ".weights"] = tensors.asState(weights);
}

Value ScanBuilder::linear(const spec::ScanStep &step,
                          const spec::ScanLinear &op) {
  StepWeights &w = prepared[step.name];
  Value add = op.add.empty() ? Value() : values[op.add];
  bool gate = !op.multiply.empty();
  Value result =
      tensors.linear(concat(op.inputs), w.matrix, w.bias, op.out,
                     toActivation(op.activation), gate ? Value() : add);
  if (!gate)
    return result;
  result = arith::MulFOp::create(tensors.b, tensors.loc, result,
                                 values[op.multiply]);
  return add ? arith::AddFOp::create(tensors.b, tensors.loc, result, add)
                   .getResult()
             : result;
}

//===----------------------------------------------------------------------===//
// Layers
//===----------------------------------------------------------------------===//

/// True if the stream has tokens here; reports otherwise.
bool EntryImporter::hasTokens(const spec::Layer &layer) {
  if (state.shape.size() == 3)
    return true;
  diags.error(layer.location,
              "a recurrent layer needs a stream of [batch, tokens, width]");
  return false;
}

LogicalResult EntryImporter::importRecurrent(size_t number) {
  const spec::Layer &layer = stream->spec.layers[number];
  const auto &op = std::get<spec::Recurrent>(layer.op);
  if (!hasTokens(layer))
    return failure();
  Location at = loc(layer.location);
  LayerScope scope;
  LayerImporter weights(builder, shared.weights, layer, stream->symbols[number],
                        scope, diags);
  Value batch = tensor::DimOp::create(builder, at, state.value, index(0));
  StateBuilder tensors{builder, at, batch};
  bool lstm = op.cell == spec::CellKind::Lstm;
  int64_t rows = spec::numGates(op.cell) * op.width;
  auto kind = CellKindAttr::get(builder.getContext(), toCell(op.cell));
  Value keep = tensors.keep(stream->mask);
  LayerCaches &cached = caches[{number, 0}];
  auto initial = [&](const std::string &name, Value cache,
                     int64_t level) -> Value {
    if (cache)
      return readState(builder, at, cache, index(level), past);
    auto found = op.initial.find(name);
    return found == op.initial.end() ? Value() : results[found->second].value;
  };

  for (int64_t level = 0; level < op.layers; ++level) {
    SmallVector<Value> directions;
    for (bool reverse : {false, true}) {
      if (reverse && !op.bidirectional)
        continue;
      std::string suffix =
          "_l" + std::to_string(level) + (reverse ? "_reverse" : "");
      Value inputMatrix =
          weights.weight(at, "weight_ih" + suffix, rows, widthOf(state.value));
      Value stateMatrix =
          weights.weight(at, "weight_hh" + suffix, rows, op.width);
      Value inputBias, stateBias;
      if (op.bias) {
        inputBias = weights.weight(at, "bias_ih" + suffix, rows, 0);
        stateBias = weights.weight(at, "bias_hh" + suffix, rows, 0);
      }
      if (!inputMatrix || !stateMatrix ||
          (op.bias && (!inputBias || !stateBias)))
        return failure();
      Value gates = tensors.linear(state.value, inputMatrix, inputBias, rows);
      SmallVector<Type> last(lstm ? 2 : 1, tensors.stateType(op.width));
      auto scan = RecurrentOp::create(
          builder, at,
          tensors.type({ShapedType::kDynamic, ShapedType::kDynamic, op.width}),
          last, kind, gates, stateMatrix, stateBias,
          initial("h" + suffix, cached[0], level),
          initial("c" + suffix, cached[1], level), keep,
          reverse ? builder.getUnitAttr() : UnitAttr());
      directions.push_back(scan.getSequence());
      for (auto [n, value] : llvm::enumerate(scan.getLast())) {
        Value &cache = n == 0 ? cached[0] : cached[1];
        if (cache)
          cache = writeState(builder, at, cache, index(level), past, value);
        results[layer.name + (n == 0 ? ".h" : ".c") + suffix] = {
            value, {state.shape[0], {op.width, ""}}};
      }
    }
    state.value = tensors.concat(directions);
    state.shape[2] = {widthOf(state.value), ""};
  }
  return success();
}

/// Tokens, or the places of an image, which become tokens row by row.
static LogicalResult toMemory(const NamedTensor &source, StateBuilder &tensors,
                              Memory &memory) {
  const std::vector<spec::Dim> &shape = source.shape;
  if (shape.size() == 3) {
    memory = {source.value, source.mask, {shape[1]}, Value()};
    return success();
  }
  if (shape.size() != 4)
    return failure();
  auto type = tensors.type(
      {ShapedType::kDynamic, ShapedType::kDynamic, widthOf(source.value)});
  Value tokens = tensor::CollapseShapeOp::create(
      tensors.b, tensors.loc, type, source.value,
      ArrayRef<ReassociationIndices>{{0}, {1, 2}, {3}});
  memory = {tokens, Value(), {shape[1], shape[2]}, source.value};
  return success();
}

namespace {
/// The result of a scan, token by token: a tensor [batch, tokens, width] that
/// its loop carries.
struct ScanSequence {
  std::string name;
  std::vector<std::string> parts;
  OpFoldResult width;
  std::vector<spec::Dim> last;
  Value image; ///< whose places the last dimension is
};
} // namespace

/// The scan's own result and those of its further ones that `outputs` name.
static std::vector<ScanSequence>
sequencesOf(const spec::Layer &layer, const spec::Scan &op,
            const std::vector<spec::Output> &outputs, ScanBuilder &scan,
            std::map<std::string, Memory> &memories, StateBuilder &tensors) {
  OpBuilder &builder = tensors.b;
  std::vector<ScanSequence> sequences = {{"",
                                          op.result,
                                          builder.getIndexAttr(layer.width),
                                          {{layer.width, ""}},
                                          {}}};
  for (const spec::FurtherResult &further : spec::furtherResults(layer)) {
    bool wanted = llvm::any_of(outputs, [&](const spec::Output &output) {
      return output.layer == layer.name + "." + further.name;
    });
    if (!wanted)
      continue;
    ScanSequence sequence = {further.name, {further.name}, {}, {}, {}};
    if (further.width) {
      sequence.width = builder.getIndexAttr(further.width);
      sequence.last = {{further.width, ""}};
    } else {
      // Attention weights: one per token of what is attended to.
      for (const spec::ScanStep &step : op.steps)
        if (step.name + ".weights" == further.name) {
          scan.weightsOf.insert(step.name);
          const Memory &memory =
              memories[std::get<spec::ScanAttend>(step.op).source];
          sequence.width =
              tensor::getMixedSize(builder, tensors.loc, memory.tokens, 1);
          sequence.last = memory.places;
          sequence.image = memory.image;
        }
    }
    sequences.push_back(std::move(sequence));
  }
  return sequences;
}

/// Fills the body of `loop`: one token. It carries the sequences, then the
/// states.
static void fillScan(scf::ForOp loop, const spec::Scan &op, Value input,
                     Value batch, ArrayRef<ScanSequence> sequences,
                     ArrayRef<std::string> states, ScanBuilder &scan,
                     StateBuilder &tensors) {
  OpBuilder &builder = tensors.b;
  Location at = tensors.loc;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(loop.getBody());
  OpFoldResult unit = builder.getIndexAttr(1), none = builder.getIndexAttr(0);
  SmallVector<OpFoldResult> offsets = {none, loop.getInductionVar(), none};
  SmallVector<OpFoldResult> strides(3, unit);
  SmallVector<OpFoldResult> sizes = {batch, unit,
                                     builder.getIndexAttr(widthOf(input))};
  scan.values["input"] = tensor::ExtractSliceOp::create(
      builder, at, tensors.stateType(widthOf(input)), input, offsets, sizes,
      strides);
  ValueRange arguments = loop.getRegionIterArgs();
  ValueRange old = arguments.drop_front(sequences.size());
  for (auto [name, value] : llvm::zip(states, old))
    scan.values[name] = value;
  for (const spec::ScanStep &step : op.steps)
    scan.run(step);
  SmallVector<Value> next;
  for (auto [sequence, whole] : llvm::zip(sequences, arguments)) {
    // Parts go to their columns one by one.
    Value result = whole;
    int64_t column = 0;
    for (const std::string &part : sequence.parts) {
      Value value = scan.values[part];
      offsets[2] = builder.getIndexAttr(column);
      sizes[2] = sequence.parts.size() == 1
                     ? sequence.width
                     : OpFoldResult(builder.getIndexAttr(widthOf(value)));
      result = tensor::InsertSliceOp::create(builder, at, value, result,
                                             offsets, sizes, strides);
      column += std::max<int64_t>(widthOf(value), 0);
    }
    next.push_back(result);
  }
  for (auto [name, before] : llvm::zip(states, old)) {
    // A cell updates its state in place. Other values get a place of their
    // own and are written over the previous token's.
    Value value = scan.values[name];
    if (!value.getDefiningOp<RecurrentCellOp>())
      value = linalg::CopyOp::create(builder, at, value, before).getResult(0);
    next.push_back(value);
  }
  scf::YieldOp::create(builder, at, next);
}

LogicalResult EntryImporter::importScan(size_t number) {
  const spec::Layer &layer = stream->spec.layers[number];
  const auto &op = std::get<spec::Scan>(layer.op);
  if (!hasTokens(layer))
    return failure();
  Location at = loc(layer.location);
  LayerScope scope;
  LayerImporter weights(builder, shared.weights, layer, stream->symbols[number],
                        scope, diags);
  Value batch = tensor::DimOp::create(builder, at, state.value, index(0));
  Value tokens = tensor::DimOp::create(builder, at, state.value, index(1));
  StateBuilder tensors{builder, at, batch};
  ScanBuilder scan(tensors, weights);
  for (const auto &[name, result] : results)
    if (result.shape.size() == 2)
      scan.values[name] = result.value;

  // Memories by source, shared by the steps that read them.
  std::map<std::string, Memory> memories;
  auto prepare = [&](const spec::ScanStep &step) -> LogicalResult {
    std::string source;
    if (const auto *attend = std::get_if<spec::ScanAttend>(&step.op))
      source = attend->source;
    else if (const auto *mean = std::get_if<spec::ScanMean>(&step.op))
      source = mean->source;
    if (!source.empty() && !memories.count(source)) {
      const NamedTensor *found = findResult(source);
      if (auto input = inputs.find(source); !found && input != inputs.end())
        found = &input->second;
      if (!found || failed(toMemory(*found, tensors, memories[source]))) {
        diags.error(step.location, "'" + source +
                                       "' gives no tokens [batch, tokens, "
                                       "width] or [batch, rows, columns, "
                                       "width]");
        return failure();
      }
    }
    return success(scan.prepare(step, memories[source]));
  };
  for (const spec::ScanStep &step : op.start) {
    if (failed(prepare(step)))
      return failure();
    scan.run(step);
  }
  for (const spec::ScanStep &step : op.steps)
    if (failed(prepare(step)))
      return failure();

  // The loop carries what it gives, token by token, and the states.
  std::vector<ScanSequence> sequences =
      sequencesOf(layer, op, model.outputs, scan, memories, tensors);
  std::vector<std::string> states = spec::statesOf(op);
  SmallVector<Value> carried;
  for (const ScanSequence &sequence : sequences)
    carried.push_back(tensors.empty({batch, tokens, sequence.width}));
  for (const std::string &name : states) {
    auto from = op.initial.find(name);
    int64_t width = 0;
    for (const spec::ScanStep &step : op.steps)
      if (step.name == name || step.name + ".cell" == name)
        width = step.width;
    carried.push_back(from == op.initial.end() ? tensors.zeros(width)
                                               : scan.values[from->second]);
  }

  auto loop =
      scf::ForOp::create(builder, at, index(0), tokens, index(1), carried);
  fillScan(loop, op, state.value, batch, sequences, states, scan, tensors);

  for (auto [n, sequence] : llvm::enumerate(sequences)) {
    Value value = loop.getResult(n);
    std::vector<spec::Dim> shape = {state.shape[0], state.shape[1]};
    shape.insert(shape.end(), sequence.last.begin(), sequence.last.end());
    if (Value image = sequence.image)
      value = tensors.unflattened(value, image);
    if (sequence.name.empty()) {
      state.value = value;
      state.shape = shape;
    } else {
      results[layer.name + "." + sequence.name] = {value, shape};
    }
  }
  return success();
}
