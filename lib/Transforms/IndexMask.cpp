//===- IndexMask.cpp - Masks that compare indices ---------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "IndexMask.h"

#include "mlir/Analysis/FlatLinearValueConstraints.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace attune {

//===-- Sizes ------------------------------------------------------------===//

void LinearSize::add(const LinearSize &other, int64_t factor) {
  constant += factor * other.constant;
  for (auto [name, count] : other.terms)
    if ((terms[name] += factor * count) == 0)
      terms.erase(name);
}

static LinearSize constantSize(int64_t value) {
  LinearSize size;
  size.constant = value;
  return size;
}

static LinearSize nameSize(Value value, int64_t dim) {
  LinearSize size;
  size.terms[{value.getAsOpaquePointer(), dim}] = 1;
  return size;
}

static LinearSize readInteger(Value value, unsigned depth = 0);

/// A size of a tensor, in terms of what it was made with.
static LinearSize readSize(Value tensor, int64_t dim, unsigned depth = 0) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (!type.isDynamicDim(dim))
    return constantSize(type.getDimSize(dim));
  if (depth > 64)
    return nameSize(tensor, dim);
  if (auto empty = tensor.getDefiningOp<tensor::EmptyOp>())
    return readInteger(empty.getDynamicSize(dim), depth + 1);
  if (auto cast = tensor.getDefiningOp<tensor::CastOp>();
      cast && isa<RankedTensorType>(cast.getSource().getType()))
    return readSize(cast.getSource(), dim, depth + 1);
  if (auto op = tensor.getDefiningOp<DestinationStyleOpInterface>())
    return readSize(op.getTiedOpOperand(cast<OpResult>(tensor))->get(), dim,
                    depth + 1);
  return nameSize(tensor, dim);
}

/// An integer, as far as it is a sum of sizes.
static LinearSize readInteger(Value value, unsigned depth) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)) &&
      constant.getSignificantBits() <= 28)
    return constantSize(constant.getSExtValue());
  Operation *def = value.getDefiningOp();
  if (!def || depth > 64)
    return nameSize(value, -1);
  if (auto dim = dyn_cast<tensor::DimOp>(def)) {
    std::optional<int64_t> index = dim.getConstantIndex();
    auto type = dyn_cast<RankedTensorType>(dim.getSource().getType());
    if (index && type && *index >= 0 && *index < type.getRank())
      return readSize(dim.getSource(), *index, depth + 1);
  }
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp>(def) &&
      (value.getType().isIndex() ||
       value.getType().getIntOrFloatBitWidth() >= 32))
    return readInteger(def->getOperand(0), depth + 1);
  if (isa<arith::AddIOp, arith::SubIOp>(def)) {
    LinearSize size = readInteger(def->getOperand(0), depth + 1);
    size.add(readInteger(def->getOperand(1), depth + 1),
             isa<arith::AddIOp>(def) ? 1 : -1);
    return size;
  }
  return nameSize(value, -1);
}

ScoreSizes::ScoreSizes(const Weighing &weighing, const ScoreProduct &product) {
  std::pair<const LabelledTensor *, unsigned> rows[] = {
      {&product.query, product.rows},
      {&weighing.weights, product.rows},
      {&weighing.result, product.rows}};
  std::pair<const LabelledTensor *, unsigned> columns[] = {
      {&product.key, weighing.key},
      {&weighing.weights, weighing.key},
      {&product.value, weighing.key}};
  queries = equate(rows);
  keys = equate(columns);
}

/// One size for what are different names of it; a constant where there is one.
LinearSize ScoreSizes::equate(
    ArrayRef<std::pair<const LabelledTensor *, unsigned>> places) {
  SmallVector<LinearSize> sizes;
  for (auto [tensor, label] : places)
    sizes.push_back(readSize(tensor->value, tensor->positionOf(label)));
  LinearSize size = sizes.front();
  for (const LinearSize &other : sizes)
    if (other.isConstant())
      size = other;
  // The tensors may have been made anew: their own names count, too.
  for (auto [tensor, label] : places)
    sizes.push_back(nameSize(tensor->value, tensor->positionOf(label)));
  for (const LinearSize &other : sizes) {
    if (other.constant != 0 || other.terms.size() != 1 ||
        other.terms.begin()->second != 1)
      continue;
    // Names within the size itself stay as they are.
    auto name = other.terms.begin()->first;
    if (!size.terms.count(name))
      names.emplace(name, size);
  }
  return size;
}

LinearSize ScoreSizes::sizeOf(Value integer) const {
  LinearSize read = readInteger(integer), size;
  size.constant = read.constant;
  for (auto [name, count] : read.terms) {
    auto found = names.find(name);
    LinearSize term;
    term.terms[name] = 1;
    size.add(found == names.end() ? term : found->second, count);
  }
  return size;
}

//===-- Conditions -------------------------------------------------------===//

namespace {
/// `query * rows + key * columns + rest >= 0`.
struct Inequality {
  int64_t query = 0, key = 0;
  LinearSize rest;
};

class ConditionReader {
public:
  ConditionReader(const ScoreReader &reader, const ScoreSizes &sizes,
                  unsigned query, unsigned key, VisibleKeys &visible)
      : reader(reader), sizes(sizes), query(query), key(key), visible(visible) {
  }

  /// Everything in `condition` must hold; `negated`: must not hold.
  MatchFailure collect(const ScoreExpr *condition, bool negated);
  /// The edges that were collected, in terms of attention.
  MatchFailure solve();

private:
  MatchFailure collectCompare(const ScoreExpr *compare, bool negated);
  std::optional<Inequality> difference(AffineExpr greater, AffineExpr less,
                                       int64_t plus);
  MatchFailure addEdge(const Inequality &edge);
  bool alwaysHolds(const Inequality &edge);
  bool rowsSee() const;

  const ScoreReader &reader;
  const ScoreSizes &sizes;
  unsigned query, key;
  VisibleKeys &visible;
  /// A key is seen up to `query + last`, and from `query - first` on.
  std::optional<LinearSize> last, first;
};
} // namespace

/// `greater - less + plus` in terms of one query and one key.
std::optional<Inequality>
ConditionReader::difference(AffineExpr greater, AffineExpr less, int64_t plus) {
  SmallVector<int64_t> flat;
  unsigned dims = reader.getNumDims(), symbols = reader.symbols().size();
  AffineExpr expr = greater - less;
  if (failed(getFlattenedAffineExpr(expr, dims, symbols, &flat)) ||
      flat.size() != dims + symbols + 1)
    return std::nullopt;
  Inequality found;
  for (unsigned dim = 0; dim < dims; ++dim) {
    if (dim == query)
      found.query = flat[dim];
    else if (dim == key)
      found.key = flat[dim];
    else if (flat[dim] != 0)
      return std::nullopt;
  }
  for (unsigned i = 0; i < symbols; ++i)
    if (flat[dims + i])
      found.rest.add(sizes.sizeOf(reader.symbols()[i]), flat[dims + i]);
  found.rest.constant += flat.back() + plus;
  return found;
}

/// For all indices there are, as far as static sizes tell.
bool ConditionReader::alwaysHolds(const Inequality &edge) {
  // A product may have overflowed before it was compared.
  if (std::abs(edge.query) > 1 || std::abs(edge.key) > 1)
    return false;
  LinearSize least = edge.rest;
  // The least of a negative factor is at the last index.
  auto addLast = [&](int64_t factor, const LinearSize &size) {
    if (factor >= 0)
      return;
    least.add(size, factor);
    least.constant -= factor;
  };
  addLast(edge.query, sizes.queries);
  addLast(edge.key, sizes.keys);
  return least.isConstant() && least.constant >= 0;
}

MatchFailure ConditionReader::addEdge(const Inequality &edge) {
  if (alwaysHolds(edge))
    return {};
  if (edge.query == 1 && edge.key == -1) {
    if (last)
      return MatchFailure("its mask bounds the last key twice");
    last = edge.rest;
    return {};
  }
  if (edge.query == -1 && edge.key == 1) {
    if (first)
      return MatchFailure("its mask bounds the first key twice");
    first = edge.rest;
    return {};
  }
  return MatchFailure("its mask compares indices, but not the key with the "
                      "query");
}

MatchFailure ConditionReader::collectCompare(const ScoreExpr *compare,
                                             bool negated) {
  using arith::CmpIPredicate;
  AffineExpr a = compare->args[0]->index, b = compare->args[1]->index;
  CmpIPredicate predicate = compare->predicate;
  if (negated)
    predicate = arith::invertPredicate(predicate);
  bool isUnsigned = false;
  switch (predicate) {
  case CmpIPredicate::ult:
  case CmpIPredicate::ule:
  case CmpIPredicate::ugt:
  case CmpIPredicate::uge:
    isUnsigned = true;
    break;
  default:
    break;
  }
  // Without a sign, a difference below zero is a great number.
  AffineExpr zero = getAffineConstantExpr(0, a.getContext());
  for (AffineExpr side : {a, b}) {
    std::optional<Inequality> value = difference(side, zero, 0);
    if (!value)
      return MatchFailure("its mask compares other indices than those of "
                          "queries and keys");
    // A size is not below zero; another integer may be.
    bool negative = value->query < 0 || value->key < 0 ||
                    value->rest.constant < 0 ||
                    llvm::any_of(
                        value->rest.terms,
                        [&](auto &term) {
                          return term.second < 0 ||
                                 (!sizes.queries.terms.count(term.first) &&
                                  !sizes.keys.terms.count(term.first));
                        });
    if (isUnsigned && negative)
      return MatchFailure("its mask compares without a sign what may be "
                          "negative");
  }
  std::optional<Inequality> edge;
  switch (predicate) {
  case CmpIPredicate::sge:
  case CmpIPredicate::uge:
    edge = difference(a, b, 0);
    break;
  case CmpIPredicate::sgt:
  case CmpIPredicate::ugt:
    edge = difference(a, b, -1);
    break;
  case CmpIPredicate::sle:
  case CmpIPredicate::ule:
    edge = difference(b, a, 0);
    break;
  case CmpIPredicate::slt:
  case CmpIPredicate::ult:
    edge = difference(b, a, -1);
    break;
  case CmpIPredicate::eq:
  case CmpIPredicate::ne:
    return MatchFailure("its mask compares indices for equality");
  }
  if (!edge)
    return MatchFailure("its mask compares other indices than those of queries "
                        "and keys");
  return addEdge(*edge);
}

MatchFailure ConditionReader::collect(const ScoreExpr *condition,
                                      bool negated) {
  switch (condition->kind) {
  case ScoreExpr::Not:
    return collect(condition->args[0], !negated);
  case ScoreExpr::And:
  case ScoreExpr::Or:
    if (condition->is(ScoreExpr::Or) != negated)
      return MatchFailure("its mask lets keys be seen for one of several "
                          "reasons");
    for (const ScoreExpr *arg : condition->args)
      if (MatchFailure no = collect(arg, negated))
        return no;
    return {};
  case ScoreExpr::Compare:
    return collectCompare(condition, negated);
  case ScoreExpr::Index: {
    auto constant = dyn_cast<AffineConstantExpr>(condition->index);
    if (constant && (constant.getValue() != 0) != negated)
      return {};
    return MatchFailure("its mask hides every key");
  }
  default:
    break;
  }
  if (visible.mask)
    return MatchFailure("it has more than one mask that is a tensor");
  visible.mask = condition;
  visible.maskHides = negated;
  return {};
}

/// "query + 1" and the like.
static std::string describeEdge(const LinearSize &offset) {
  if (!offset.isConstant())
    return "query + a size that is not keys - queries";
  std::string text = "query";
  if (offset.constant)
    text += (offset.constant > 0 ? " + " : " - ") +
            std::to_string(std::abs(offset.constant));
  return text;
}

MatchFailure ConditionReader::solve() {
  // Query m stands at key m + shift, if aligned at the last key.
  LinearSize shift = sizes.keys;
  shift.add(sizes.queries, -1);
  if (last) {
    if (*last == shift)
      visible.causal = CausalAlign::BottomRight;
    else if (*last == LinearSize())
      visible.causal = CausalAlign::TopLeft;
    else
      return MatchFailure("its mask hides keys after " + describeEdge(*last) +
                          "; a causal mask hides those after query, or after "
                          "query + keys - queries");
  }
  if (first) {
    // key >= own - (window - 1)
    LinearSize width = *first;
    if (visible.causal != CausalAlign::TopLeft)
      width.add(shift);
    width.constant += 1;
    if (!width.isConstant())
      return MatchFailure("the width of its window is not static, or its "
                          "window is aligned otherwise than its causal mask");
    if (width.constant <= 0)
      return MatchFailure("its window hides every query's own key");
    visible.window = width.constant;
  }
  visible.everyRowSees = !visible.mask && rowsSee();
  return {};
}

/// True if each query sees a key for certain: its own position is one.
bool ConditionReader::rowsSee() const {
  if (!last && !first)
    return true;
  if (visible.causal == CausalAlign::TopLeft && !first)
    return true; // Key 0.
  LinearSize surplus = sizes.keys;
  surplus.add(sizes.queries, -1);
  return surplus.isConstant() && surplus.constant >= 0;
}

MatchFailure readVisibleKeys(const ScoreExpr *condition, bool hidden,
                             const ScoreReader &reader, const ScoreSizes &sizes,
                             unsigned query, unsigned key,
                             VisibleKeys &visible) {
  ConditionReader conditions(reader, sizes, query, key, visible);
  if (MatchFailure no = conditions.collect(condition, hidden))
    return no;
  return conditions.solve();
}

} // namespace attune
