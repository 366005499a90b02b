//===- PruneHeads.cpp - Attention with fewer heads --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HeadFlow.h"
#include "RepeatedLayers.h"

#include "Attune/AttuneKept.h"
#include "attune/Transforms/HeadRules.h"
#include "attune/Transforms/Passes.h"
#include "attune/Transforms/QuantizationRules.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_PRUNEHEADS
#include "attune/Transforms/Passes.h.inc"

namespace {
using Heads = HeadRules::Heads;

/// The kept heads of attention whose output a matrix multiplies; several
/// functions may have it.
struct Site {
  WeightOp output;
  int64_t heads = 0, keyHeads = 0;
  int64_t keptHeads = 0, keptKeyHeads = 0;
  /// The heads kept: for each layer, or once if all layers keep the same.
  std::vector<Heads> queries, keys;
};

/// Heads that stay, as ranges of rows or columns, `width` for each.
KeptPart::Ranges rangesOf(const Heads &heads, int64_t width,
                          int64_t offset = 0) {
  KeptPart::Ranges ranges;
  for (int64_t head : heads) {
    int64_t begin = offset + head * width;
    if (!ranges.empty() && ranges.back().first + ranges.back().second == begin)
      ranges.back().second += width;
    else
      ranges.emplace_back(begin, width);
  }
  return ranges;
}

class HeadPruning final : HeadFlow {
public:
  HeadPruning(ModuleOp module, HeadRules &rules)
      : HeadFlow(module, "pruned by heads"), symbols(module), rules(rules) {}

  LogicalResult run();
  int64_t numPruned() const { return pruned; }

private:
  RankedTensorType shareOf(Value value, unsigned kind) override;
  std::optional<unsigned> keysOf(unsigned queries) override;
  unsigned queriesOf(unsigned keys) override { return keys - 1; }
  LogicalResult markCaches(func::FuncOp entry, StringRef name,
                           unsigned kind) override;

  LogicalResult addSite(LinearOp output, MergeHeadsOp merge);
  /// What layer `layer` keeps without the heads `gone`.
  LogicalResult planLayer(Site &site, int64_t layer, const Heads &gone);
  LogicalResult cutProjection(LinearOp linear);
  LogicalResult cutOutput(LinearOp linear);
  LogicalResult cutOperands(Operation *op);
  /// Cuts an operand that has entries for each head in dimension 0.
  LogicalResult keepEntries(OpOperand &operand, unsigned kind);
  Value sliceConstant(arith::ConstantOp constant, Operation *user,
                      const Site &site);
  /// Keeps a part of the weight that `value` is.
  LogicalResult keep(Value value, const KeptPart &part,
                     ArrayRef<int64_t> shape);
  LogicalResult checkWhole();

  const Site &siteOf(unsigned kind) const { return sites[kind / 2]; }
  const std::vector<Heads> &keptOf(unsigned kind) const {
    return kind % 2 ? siteOf(kind).keys : siteOf(kind).queries;
  }

  SymbolTable symbols;
  HeadRules &rules;
  std::vector<Site> sites;
  DenseMap<WeightOp, std::optional<unsigned>> siteOfWeight;
  DenseMap<WeightOp, KeptPart> kept;
  DenseSet<Value> done;
  SmallVector<std::string> known;
  int64_t pruned = 0;
};
} // namespace

//===----------------------------------------------------------------------===//
// Which heads stay
//===----------------------------------------------------------------------===//

LogicalResult HeadPruning::planLayer(Site &site, int64_t layer,
                                     const Heads &gone) {
  WeightOp weight = site.output;
  std::string problem;
  std::optional<KeptHeads> left =
      keepHeads(site.heads, site.keyHeads, gone, problem);
  if (!left)
    return weight.emitError("attention of '")
           << namesOfLayer(weight, layer).back() << "': " << problem;
  Heads &queries = left->queries, &keys = left->keys;
  if (layer > 0 && (int64_t(queries.size()) != site.keptHeads ||
                    int64_t(keys.size()) != site.keptKeyHeads))
    return weight.emitError("'")
           << weight.getSymName() << "' is of " << weight.getNumLayers()
           << " repeated layers, which are stored alike, but layer " << layer
           << " would keep " << queries.size() << " heads of queries and "
           << keys.size() << " of keys, and those before it " << site.keptHeads
           << " and " << site.keptKeyHeads;
  site.keptHeads = int64_t(queries.size());
  site.keptKeyHeads = int64_t(keys.size());
  pruned += site.heads - site.keptHeads;
  site.queries.push_back(std::move(queries));
  site.keys.push_back(std::move(keys));
  return success();
}

LogicalResult HeadPruning::addSite(LinearOp output, MergeHeadsOp merge) {
  auto get = output.getWeight().getDefiningOp<WeightGetOp>();
  WeightOp weight =
      get ? symbols.lookup<WeightOp>(get.getWeight()) : WeightOp();
  if (!weight)
    return success();
  auto [place, fresh] = siteOfWeight.insert({weight, std::nullopt});
  if (fresh) {
    known.push_back(weight.getSymName().str());
    std::vector<Heads> gone;
    for (int64_t layer = 0; layer < weight.getNumLayers(); ++layer)
      gone.push_back(rules.lookup(namesOfLayer(weight, layer)));
    if (llvm::all_of(gone, [](const Heads &heads) { return heads.empty(); }))
      return success();
    Operation *attention = merge.getInput().getDefiningOp();
    if (!isa_and_nonnull<WeightedSumOp, AttentionOp>(attention))
      return refuse(attention ? attention : merge);
    Site site;
    site.output = weight;
    auto headsOf = [](Value value) {
      return cast<RankedTensorType>(value.getType()).getDimSize(1);
    };
    site.heads = headsOf(merge.getInput());
    site.keyHeads = headsOf(attention->getOperand(1));
    for (auto [layer, heads] : llvm::enumerate(gone))
      if (failed(planLayer(site, int64_t(layer), heads)))
        return failure();
    if (llvm::all_equal(site.queries))
      site.queries.resize(1);
    if (llvm::all_equal(site.keys))
      site.keys.resize(1);
    remark::passed(
        weight.getLoc(),
        remark::RemarkOpts::name("prune-heads").category("attune-prune-heads"))
        << remark::add("'{0}' takes {1} of {2} heads, {3} of {4} of keys",
                       weight.getSymName(), site.keptHeads, site.heads,
                       site.keptKeyHeads, site.keyHeads);
    siteOfWeight[weight] = unsigned(sites.size());
    sites.push_back(std::move(site));
  }
  std::optional<unsigned> number = siteOfWeight[weight];
  return number ? mark(merge.getResult(), 2 * *number) : success();
}

//===----------------------------------------------------------------------===//
// Values with heads
//===----------------------------------------------------------------------===//

RankedTensorType HeadPruning::shareOf(Value value, unsigned kind) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  const Site &site = siteOf(kind);
  int64_t whole = kind % 2 ? site.keyHeads : site.heads;
  int64_t left = kind % 2 ? site.keptKeyHeads : site.keptHeads;
  if (type && type.getRank() >= 3 && type.getRank() <= 5) {
    SmallVector<int64_t> shape(type.getShape());
    int64_t &size = shape[headDim(type)];
    if (type.getRank() > 3 ? size == whole : size > 0 && size % whole == 0) {
      size = size / whole * left;
      return type.clone(shape);
    }
  }
  emitError(value.getLoc()) << value.getType() << " does not have the " << whole
                            << " heads that are to be pruned";
  return {};
}

std::optional<unsigned> HeadPruning::keysOf(unsigned queries) {
  const Site &site = siteOf(queries);
  if (site.keptKeyHeads == site.keyHeads)
    return std::nullopt;
  return queries + 1;
}

LogicalResult HeadPruning::markCaches(func::FuncOp, StringRef name,
                                      unsigned kind) {
  for (auto func : module.getOps<func::FuncOp>()) {
    if (!func->hasAttr("attune.entry") || func.isExternal())
      continue;
    auto isCache = [&](DictionaryAttr attributes) {
      auto use = attributes ? attributes.getAs<StringAttr>("attune.kind")
                            : StringAttr();
      return use && use.getValue() == "cache" &&
             attributes.getAs<StringAttr>("attune.name").getValue() == name;
    };
    for (BlockArgument argument : func.getArguments())
      if (isCache(func.getArgAttrDict(argument.getArgNumber())) &&
          failed(mark(argument, kind)))
        return failure();
    Operation *result = func.getBody().back().getTerminator();
    for (OpOperand &operand : result->getOpOperands())
      if (isCache(func.getResultAttrDict(operand.getOperandNumber())) &&
          failed(mark(operand.get(), kind)))
        return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

LogicalResult HeadPruning::keep(Value value, const KeptPart &part,
                                ArrayRef<int64_t> shape) {
  auto get = value.getDefiningOp<WeightGetOp>();
  WeightOp weight =
      get ? symbols.lookup<WeightOp>(get.getWeight()) : WeightOp();
  if (!weight)
    return emitError(value.getLoc(), "what is computed cannot be pruned by "
                                     "heads; it has to be a weight");
  if (weight.getPanelWidth() || weight.getGroup() || weight.getParts() ||
      weight->hasAttr("attune.cut") || weight->hasAttr("attune.factor"))
    return weight.emitOpError("is in panels, in few bits, in parts or cut "
                              "already, and cannot be pruned by heads");
  size_t layers = std::max(part.rows.size(), part.columns.size());
  if (layers > 1 && int64_t(layers) != weight.getNumLayers())
    return weight.emitOpError("is shared by layers that lose different heads");
  auto [place, fresh] = kept.insert({weight, part});
  if (!fresh && !(place->second == part))
    return weight.emitOpError("is used by two attentions that lose different "
                              "heads");
  Type element = weight.getTensorType().getElementType();
  if (fresh) {
    SmallVector<int64_t> all(shape);
    if (weight.getStacked())
      all.insert(all.begin(), weight.getNumLayers());
    weight.setType(RankedTensorType::get(all, element));
    setKept(weight, part);
  }
  value.setType(RankedTensorType::get(shape, element));
  done.insert(value);
  return success();
}

LogicalResult HeadPruning::cutProjection(LinearOp linear) {
  FailureOr<SmallVector<SplitHeadsOp>> splits = splitsOf(linear);
  if (failed(splits))
    return failure();
  auto type = cast<RankedTensorType>(linear.getType());
  KeptPart part;
  part.wholeRows = type.getDimSize(2);
  size_t layers = 1;
  for (SplitHeadsOp split : *splits)
    if (auto kind = marked.find(split.getResult()); kind != marked.end())
      layers = std::max(layers, keptOf(kind->second).size());
  part.rows.resize(layers);
  int64_t next = 0, rows = 0;
  for (SplitHeadsOp split : *splits) {
    auto heads = cast<RankedTensorType>(split.getType());
    int64_t width = heads.getDimSize(3);
    // Two readers of the same heads, or columns that nobody reads.
    if (int64_t(split.getOffset()) != next)
      return refuse(split);
    auto kind = marked.find(split.getResult());
    int64_t whole = heads.getDimSize(1);
    if (kind != marked.end())
      whole = wholeHeads.lookup(split.getResult());
    for (auto [layer, ranges] : llvm::enumerate(part.rows)) {
      if (kind == marked.end()) {
        ranges.emplace_back(next, whole * width);
        continue;
      }
      const std::vector<Heads> &all = keptOf(kind->second);
      ranges.append(rangesOf(all[all.size() == 1 ? 0 : layer], width, next));
    }
    next += whole * width;
    split.setOffset(rows);
    rows += heads.getDimSize(1) * width;
  }
  if (next != part.wholeRows)
    return refuse(linear);
  auto matrix = cast<RankedTensorType>(linear.getWeight().getType());
  if (Value bias = linear.getBias())
    if (failed(keep(bias, part, {rows})))
      return failure();
  part.wholeColumns = matrix.getDimSize(1);
  if (failed(keep(linear.getWeight(), part, {rows, part.wholeColumns})))
    return failure();
  SmallVector<int64_t> shape(type.getShape());
  shape.back() = rows;
  linear.getResult().setType(type.clone(shape));
  return success();
}

/// Where heads that go are not whole groups of numbers with one scale, the
/// weight no longer is of the form that its checkpoint has.
static void dropForm(WeightOp weight, ArrayRef<KeptPart::Ranges> columns) {
  auto text = weight->getAttrOfType<StringAttr>("attune.stored");
  auto form = text ? QuantizationRules::parseForm(text.getValue())
                   : std::optional<QuantizedForm>();
  if (!form || form->group < 1)
    return;
  int64_t group = form->group;
  for (const KeptPart::Ranges &ranges : columns)
    for (auto [begin, count] : ranges)
      if (begin % group || count % group)
        weight->removeAttr("attune.stored");
}

LogicalResult HeadPruning::cutOutput(LinearOp linear) {
  if (linear.getRmsEps())
    return refuse(linear);
  unsigned kind = marked.lookup(linear.getInput());
  auto matrix = cast<RankedTensorType>(linear.getWeight().getType());
  KeptPart part;
  part.wholeRows = matrix.getDimSize(0);
  part.wholeColumns = wholeHeads.lookup(linear.getInput());
  int64_t width = part.wholeColumns / siteOf(kind).heads;
  for (const Heads &heads : keptOf(kind))
    part.columns.push_back(rangesOf(heads, width));
  dropForm(siteOf(kind).output, part.columns);
  auto input = cast<RankedTensorType>(linear.getInput().getType());
  return keep(linear.getWeight(), part,
              {part.wholeRows, input.getShape().back()});
}

//===----------------------------------------------------------------------===//
// What each head has besides
//===----------------------------------------------------------------------===//

/// Entries of a constant [heads, ...]; of a table for all layers, where those
/// keep different ones.
Value HeadPruning::sliceConstant(arith::ConstantOp constant, Operation *user,
                                 const Site &site) {
  auto type = cast<RankedTensorType>(constant.getType());
  auto values = cast<DenseElementsAttr>(constant.getValue());
  SmallVector<Attribute> all(values.getValues<Attribute>()), left;
  for (const Heads &heads : site.queries)
    for (int64_t head : heads)
      left.push_back(all[head]);
  OpBuilder b(user);
  Location loc = constant.getLoc();
  auto one = RankedTensorType::get({site.keptHeads}, type.getElementType());
  auto layers = int64_t(site.queries.size());
  if (layers == 1)
    return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(one, left));
  Value layer;
  user->getParentOfType<func::FuncOp>().walk([&](WeightGetOp get) {
    if (get.getWeight() == WeightOp(site.output).getSymName())
      layer = get.getLayer();
  });
  if (!layer)
    return {};
  auto table =
      RankedTensorType::get({layers, site.keptHeads}, type.getElementType());
  Value rows =
      arith::ConstantOp::create(b, loc, DenseElementsAttr::get(table, left));
  SmallVector<OpFoldResult> offsets = {layer, b.getIndexAttr(0)},
                            sizes = {b.getIndexAttr(1),
                                     b.getIndexAttr(site.keptHeads)},
                            strides(2, b.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(b, loc, one, rows, offsets, sizes,
                                        strides);
}

LogicalResult HeadPruning::keepEntries(OpOperand &operand, unsigned kind) {
  const Site &site = siteOf(kind);
  int64_t heads = kind % 2 ? site.keyHeads : site.heads;
  int64_t left = kind % 2 ? site.keptKeyHeads : site.keptHeads;
  Value value = operand.get();
  if (auto constant = value.getDefiningOp<arith::ConstantOp>();
      constant && kind % 2 == 0 &&
      cast<RankedTensorType>(value.getType()).getRank() == 1) {
    Value slice = sliceConstant(constant, operand.getOwner(), site);
    if (!slice)
      return refuse(operand.getOwner());
    operand.set(slice);
    return success();
  }
  // A weight, perhaps widened, perhaps of several entries for each head.
  SmallVector<Value> chain;
  while (!done.contains(value) && !value.getDefiningOp<WeightGetOp>()) {
    Operation *op = value.getDefiningOp();
    if (!isa_and_nonnull<tensor::ExpandShapeOp, arith::ExtFOp, arith::TruncFOp>(
            op) ||
        !value.hasOneUse())
      return operand.getOwner()->emitError("'")
             << operand.getOwner()->getName() << "' has " << value.getType()
             << " for " << heads
             << " heads, which is no weight and cannot be pruned";
    chain.push_back(value);
    value = op->getOperand(0);
  }
  if (done.contains(value))
    return success();
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getRank() != 1 || type.getDimSize(0) % heads != 0)
    return refuse(operand.getOwner());
  int64_t width = type.getDimSize(0) / heads;
  KeptPart part;
  part.wholeRows = type.getDimSize(0);
  for (const Heads &some : keptOf(kind))
    part.rows.push_back(rangesOf(some, width));
  if (failed(keep(value, part, {left * width})))
    return failure();
  for (Value step : llvm::reverse(chain)) {
    auto before = cast<RankedTensorType>(step.getType());
    SmallVector<int64_t> shape(before.getShape());
    shape[0] = shape.size() == 1 ? left * width : left;
    step.setType(before.clone(shape));
    if (auto expand = step.getDefiningOp<tensor::ExpandShapeOp>())
      expand.setStaticOutputShape(shape);
  }
  return success();
}

LogicalResult HeadPruning::cutOperands(Operation *op) {
  auto kind = marked.find(op->getResult(0));
  if (kind == marked.end() ||
      !isa<LayerNormOp, RMSNormOp, MaskScoresOp, SoftmaxOp, AttentionOp>(op))
    return success();
  int64_t heads = kind->second % 2 ? siteOf(kind->second).keyHeads
                                   : siteOf(kind->second).heads;
  bool isNorm = isa<LayerNormOp, RMSNormOp>(op);
  for (OpOperand &operand : op->getOpOperands().drop_front()) {
    auto type = dyn_cast<RankedTensorType>(operand.get().getType());
    // Keys stay if whole groups do.
    if (!type || marked.contains(operand.get()) ||
        (isa<AttentionOp>(op) && operand.getOperandNumber() < 3))
      continue;
    bool perHead =
        isNorm ? type.getRank() == 2
        : type.getRank() == 4
            ? type.getDimSize(1) == heads && heads > 1
            : type.getRank() <= 2 && isa<FloatType>(type.getElementType());
    if (perHead && failed(keepEntries(operand, kind->second)))
      return failure();
  }
  return success();
}

LogicalResult HeadPruning::checkWhole() {
  WalkResult walked = module.walk([&](WeightGetOp get) -> WalkResult {
    auto weight = symbols.lookup<WeightOp>(get.getWeight());
    if (!kept.contains(weight) || done.contains(get.getResult()) ||
        get->use_empty())
      return success();
    InFlightDiagnostic diag = get.emitError("needs the whole weight '")
                              << weight.getSymName()
                              << "', which loses heads for another layer";
    diag.attachNote(weight.getLoc()) << "the weight is declared here";
    return failure();
  });
  return failure(walked.wasInterrupted());
}

LogicalResult HeadPruning::run() {
  WalkResult walked = module.walk([&](LinearOp linear) -> WalkResult {
    auto merge = linear.getInput().getDefiningOp<MergeHeadsOp>();
    return merge ? addSite(linear, merge) : success();
  });
  if (walked.wasInterrupted())
    return failure();
  for (const std::string &pattern : rules.unused())
    return module.emitError("no matrix that takes the heads of attention has a "
                            "name that '")
           << pattern << "' of --prune-heads matches; there are "
           << (known.empty() ? "none" : llvm::join(known, ", "));
  if (failed(follow()))
    return failure();
  for (Operation *op : perHead)
    if (failed(cutOperands(op)))
      return failure();
  for (Operation *linear : projections)
    if (failed(cutProjection(cast<LinearOp>(linear))))
      return failure();
  for (Operation *linear : outputs)
    if (failed(cutOutput(cast<LinearOp>(linear))))
      return failure();
  updateCaches();
  updateFunctions();
  return checkWhole();
}

namespace {
struct PruneHeads final : impl::PruneHeadsBase<PruneHeads> {
  using Base::Base;

  void runOnOperation() override {
    std::string problem;
    std::optional<HeadRules> parsed =
        HeadRules::parse(llvm::join(rules, ","), problem);
    if (parsed && parsed->getShare()) {
      problem = "a share of heads is decided by measurements of attune compile "
                "--calibrate; give the heads";
      parsed.reset();
    }
    if (!parsed) {
      getOperation().emitError(problem);
      return signalPassFailure();
    }
    HeadPruning pruning(getOperation(), *parsed);
    if (failed(pruning.run()))
      return signalPassFailure();
    numPruned += unsigned(pruning.numPruned());
  }
};
} // namespace
} // namespace attune
