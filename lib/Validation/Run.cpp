//===- Run.cpp - One function on one input ----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Run.h"

#include "Interpreter/CachedRows.h"
#include "Interpreter/Pointers.h"

#include "Attune/AttuneDialect.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <cstdio>

using namespace attune;
using namespace attune::validation;
using namespace mlir;

static StringRef attributeOf(DictionaryAttr attributes, StringRef name) {
  auto text = attributes ? attributes.getAs<StringAttr>(name) : StringAttr();
  return text ? text.getValue() : StringRef();
}

static StringRef argument(FunctionOpInterface func, unsigned i,
                          StringRef name) {
  return attributeOf(func.getArgAttrDict(i), name);
}

Signature::Signature(FunctionOpInterface func)
    : numArguments(func.getNumArguments()),
      resultTypes(func.getResultTypes().begin(), func.getResultTypes().end()) {
  for (unsigned i = 0; i < func.getNumResults(); ++i) {
    StringRef name = attributeOf(func.getResultAttrDict(i), "attune.name");
    batches.push_back(
        findBatch(func.getResultAttrDict(i), func.getResultTypes()[i]));
    results.push_back(name.empty() ? ("result " + Twine(i)).str() : name.str());
  }
  for (unsigned i = 0; i < numArguments; ++i)
    if (isa<MemRefType>(func.getArgumentTypes()[i]))
      written.push_back({i, ("argument " + Twine(i)).str()});
}

void Signature::findRoles(FunctionOpInterface func) const {
  // Names go before the code becomes LLVM's; the arguments stay in order.
  auto known = std::move(roles);
  roles.clear();
  for (auto [i, type] : llvm::enumerate(func.getArgumentTypes())) {
    StringRef name = argument(func, i, "attune.name");
    Role role = {type, name.str()};
    if (!func.getAllArgAttrs() && known.size() == func.getNumArguments())
      role = {type, known[i].name, known[i].sideBySide, known[i].sharers};
    else if (auto sizes = dyn_cast_or_null<DenseI64ArrayAttr>(
                 func.getArgAttr(unsigned(i), "attune.side_by_side")))
      role.sideBySide.assign(sizes.asArrayRef().begin(),
                             sizes.asArrayRef().end());
    if (auto sharers =
            func.getArgAttrOfType<IntegerAttr>(unsigned(i), "attune.sharers"))
      role.sharers = sharers.getInt();
    roles.push_back(std::move(role));
  }
  auto bytes =
      roles.empty() ? MemRefType() : dyn_cast<MemRefType>(roles.front().type);
  first = roles.size() > numArguments && bytes && bytes.getRank() == 1 &&
          bytes.getElementType().isInteger(8);
}

/// The result of an earlier run that an argument is for: the one of its name,
/// or of its place if it has none.
static const Output *findResult(const Outputs *outputs, StringRef name,
                                size_t number) {
  if (!outputs)
    return nullptr;
  for (const Output &output : *outputs)
    if (output.name == name && output.value.box)
      return &output;
  bool known =
      name.empty() && number < outputs->size() && (*outputs)[number].value.box;
  return known ? &(*outputs)[number] : nullptr;
}

/// Whether an array can be a value of the type.
static bool fits(Type type, const Array &array) {
  auto shaped = cast<ShapedType>(type);
  if (shaped.getRank() != int64_t(array.shape.size()))
    return false;
  for (auto [size, wanted] : llvm::zip(array.shape, shaped.getShape()))
    if (!ShapedType::isDynamic(wanted) && size != wanted)
      return false;
  return true;
}

namespace {
/// One dimension that ranks share: parts in their order, of which neighbours
/// may have an entry in common, or, if there are more ranks than entries,
/// `repeat` neighbours with a copy of each.
struct Cut {
  size_t dim = 0;
  int64_t each = 0, repeat = 1, ranks = 1;
  llvm::SmallVector<int64_t> sideBySide = {}; ///< all of the dimension

  /// How ranks share `whole` if each has `part`; nothing if they do not.
  static std::optional<Cut> find(llvm::ArrayRef<int64_t> whole,
                                 llvm::ArrayRef<int64_t> part, int64_t ranks,
                                 llvm::ArrayRef<int64_t> sideBySide) {
    std::optional<Cut> cut;
    if (whole.size() != part.size())
      return cut;
    for (auto [dim, size, own] : llvm::enumerate(whole, part)) {
      if (ShapedType::isDynamic(own) || own == size)
        continue;
      int64_t groups = std::min(size, ranks);
      if (cut || size < 1 || own != (size + groups - 1) / groups ||
          ranks % groups != 0)
        return std::nullopt;
      cut = Cut{dim, own, ranks / groups, ranks, {size}};
    }
    if (cut && !sideBySide.empty() && cut->dim + 1 == whole.size())
      cut->sideBySide.assign(sideBySide.begin(), sideBySide.end());
    return cut;
  }

  /// Copies between a part and its place in the whole array.
  template <typename Copy>
  void transfer(Array &whole, Array &part, int64_t rank, Copy copy) const {
    int64_t below = volume(llvm::ArrayRef(part.shape).drop_front(dim + 1));
    int64_t run = each * below, stride = whole.shape[dim] * below;
    int64_t count = run ? int64_t(part.data.size()) / run : 0;
    for (int64_t i = 0; i < count; ++i) {
      int64_t begin = 0, ownBegin = 0;
      for (int64_t size : sideBySide) {
        int64_t own =
            sideBySide.size() == 1 ? each : size * each / whole.shape[dim];
        int64_t from = (begin + rank * size / ranks) * below;
        for (int64_t j = 0; j < own * below; ++j)
          copy(whole.data[i * stride + from + j],
               part.data[i * run + ownBegin * below + j]);
        begin += size;
        ownBegin += own;
      }
    }
  }
};
} // namespace

/// Copies between a cache [..., positions, width] and what one of `sharers` has
/// of it, with a row behind that for what is another's.
template <typename Copy>
static void transferPositions(Array &all, Array &part, int64_t sharer,
                              Copy copy) {
  size_t dim = all.shape.size() - 2;
  int64_t width = all.shape.back(), positions = all.shape[dim];
  int64_t rows = part.shape[dim], share = rows - 1;
  int64_t planes = volume(llvm::ArrayRef(all.shape).take_front(dim));
  for (int64_t plane = 0; plane < planes; ++plane)
    for (int64_t i = 0; i < share; ++i) {
      int64_t position = sharer * share + i;
      for (int64_t d = 0; d < width && position < positions; ++d)
        copy(all.data[(plane * positions + position) * width + d],
             part.data[(plane * rows + i) * width + d]);
    }
}

static Datum positionsFor(const Machine &machine, int64_t sharers,
                          Datum value) {
  Shape shape = value.array().shape;
  int64_t &positions = shape[shape.size() - 2];
  positions = (positions + sharers - 1) / sharers + 1;
  Datum part = makeArray(shape, whole(0));
  transferPositions(value.array(), part.array(), machine.sharer,
                    [](Scalar &from, Scalar &to) { to = from; });
  return part;
}

/// One rank's part of an array that is to be an argument; the array itself if
/// ranks do not share it.
static Datum partFor(const Machine &machine, const Signature::Role &role,
                     Datum value) {
  auto shaped = dyn_cast<ShapedType>(role.type);
  int64_t ranks = machine.ranks->getParts();
  if (!shaped || !shaped.hasRank() || !value.box)
    return value;
  if (role.sharers > 1 && value.array().shape.size() > 1)
    value = positionsFor(machine, role.sharers, value);
  if (ranks == 1)
    return value;
  std::optional<Cut> cut =
      Cut::find(value.array().shape, shaped.getShape(), ranks, role.sideBySide);
  if (!cut)
    return value;
  Shape shape = value.array().shape;
  shape[cut->dim] = cut->each;
  Datum part = makeArray(shape, whole(0));
  cut->transfer(value.array(), part.array(), machine.rank,
                [](Scalar &from, Scalar &to) { to = from; });
  return part;
}

/// The array, or the machine's part of it, as a tensor or in a buffer of its
/// own.
static std::optional<Datum>
bind(const Machine &machine, const Signature::Role &role, const Datum &made) {
  Type type = role.type;
  Datum value = partFor(machine, role, made);
  if (!value.box)
    return value;
  if (!isa<TensorType, MemRefType>(type) || !fits(type, value.array()))
    return std::nullopt;
  if (isa<TensorType>(type))
    return value;
  Type element = getElementTypeOrSelf(type);
  Datum buffer = allocate(element, value.array().shape);
  writeView(buffer.view(), element, value.array());
  return buffer;
}

static Datum read(Type type, const Datum &value) {
  return isa<MemRefType>(type)
             ? readView(value.view(), getElementTypeOrSelf(type))
             : value;
}

/// One rank's run.
static std::optional<Outputs> runOn(Machine &machine, FunctionOpInterface func,
                                    const Signature &signature,
                                    llvm::ArrayRef<Argument> args,
                                    const Outputs *like) {
  auto unknown = [&](const Twine &why) {
    machine.fail(func, Failure::Unsupported, why);
    return std::nullopt;
  };
  // The weights come first, then what was there, then results.
  bool lowered = isa<LLVM::LLVMFuncOp>(func);
  if (!lowered)
    signature.findRoles(func);
  const std::vector<Signature::Role> &roles = signature.roles;
  unsigned first = signature.first;
  if (roles.size() < first + args.size())
    return unknown("takes fewer arguments than before");
  std::vector<Datum> bound;
  for (size_t i = 0; i < roles.size(); ++i) {
    std::optional<Datum> value;
    if (i < first) {
      value = machine.getWeightBytes();
      if (!value->box)
        return unknown("has weights that have no place");
    } else if (i < first + args.size()) {
      value = bind(machine, roles[i], args[i - first].value);
    } else if (const Output *model =
                   findResult(like, roles[i].name, i - first - args.size())) {
      value =
          bind(machine, roles[i],
               makeArray(model->value.array().shape, poison(model->element)));
    }
    if (!value)
      return unknown("takes other arguments than before");
    bound.push_back(std::move(*value));
  }

  std::vector<Datum> passed = bound;
  if (lowered) {
    passed.clear();
    for (auto [role, value] : llvm::zip(roles, bound))
      if (isa<MemRefType>(role.type))
        appendDescriptor(machine, value.view(), passed);
      else
        passed.push_back(value);
    if (passed.size() != func.getNumArguments())
      return unknown("takes other arguments than before");
  }
  llvm::SmallVector<Datum> results;
  if (!machine.call(func, passed, results))
    return std::nullopt;

  Outputs outputs;
  auto add = [&](StringRef name, Type type, const Datum &value) {
    outputs.push_back(
        {name.str(), getElementTypeOrSelf(type), read(type, value)});
  };
  // Results that are left are those that are no memory, if some are gone.
  size_t left = results.size();
  bool all = left == signature.results.size();
  unsigned next = 0;
  for (size_t r = 0; r < signature.results.size(); ++r) {
    Type type = signature.resultTypes[r];
    bool memory = isa<ShapedType>(type);
    if (lowered && left == 1 && !memory && results[0].box)
      return unknown("returns several numbers");
    if (lowered && memory && all)
      return unknown("returns memory");
    if (all || (!memory && next < left)) {
      add(signature.results[r], lowered ? type : func.getResultTypes()[next],
          results[next]);
      ++next;
      continue;
    }
    // A cache stays in its argument, other results have one of their own.
    size_t place = roles.size();
    for (size_t i = roles.size(); i-- > first;)
      if (roles[i].name == signature.results[r] &&
          isa<MemRefType>(roles[i].type))
        place = i;
    if (place == roles.size())
      place = first + args.size() + r;
    if (place >= roles.size())
      return unknown("has lost '" + signature.results[r] + "'");
    add(signature.results[r], roles[place].type, bound[place]);
  }
  for (auto [output, batch] : llvm::zip(outputs, signature.batches))
    output.batch = batch;
  for (const auto &[number, name] : signature.written)
    add(name, roles[first + number].type, bound[first + number]);
  return outputs;
}

/// Puts together what ranks that share the weights have of a result, which is
/// of the shape of `like` if that is known.
static Output joinParts(llvm::MutableArrayRef<Output> parts, const Output *like,
                        llvm::ArrayRef<int64_t> sideBySide) {
  int64_t ranks = int64_t(parts.size());
  Output all = parts[0];
  std::optional<Cut> cut;
  if (like && all.value.box && like->value.box)
    cut = Cut::find(like->value.array().shape, all.value.array().shape, ranks,
                    sideBySide);
  if (!cut) {
    for (const Output &part : parts.drop_front())
      all.copies.push_back(part.value);
    return all;
  }
  std::vector<Datum> copies;
  for (int64_t copy = 0; copy < cut->repeat; ++copy) {
    copies.push_back(makeArray(like->value.array().shape, whole(0)));
    for (int64_t rank = copy; rank < ranks; rank += cut->repeat)
      cut->transfer(copies.back().array(), parts[rank].value.array(), rank,
                    [](Scalar &to, Scalar &from) { to = from; });
  }
  all.value = copies[0];
  all.copies.assign(copies.begin() + 1, copies.end());
  return all;
}

/// Puts together what ranks have of a result: first the positions, of those
/// with the same part of the weights.
static Output join(std::vector<Output> &own, int64_t parts, const Output *like,
                   const Signature &signature) {
  // Kept values go by the name of the argument that they replace.
  Signature::Role role;
  for (const Signature::Role &other : signature.roles)
    if (other.name == own[0].name)
      role = other;
  int64_t sharers = int64_t(own.size()) / parts;
  if (role.sharers > 1 && like && like->value.box) {
    for (int64_t part = 0; part < parts; ++part) {
      Shape shape = own[part].value.array().shape;
      shape[shape.size() - 2] =
          like->value.array().shape[like->value.array().shape.size() - 2];
      Datum all = makeArray(shape, whole(0));
      for (int64_t sharer = 0; sharer < sharers; ++sharer)
        transferPositions(all.array(), own[sharer * parts + part].value.array(),
                          sharer, [](Scalar &to, Scalar &from) { to = from; });
      own[part].value = std::move(all);
    }
    sharers = 1;
  }
  llvm::MutableArrayRef<Output> ranks(own);
  Output all = joinParts(ranks.take_front(parts), like, role.sideBySide);
  for (int64_t sharer = 1; sharer < sharers; ++sharer) {
    Output copy =
        joinParts(ranks.slice(sharer * parts, parts), like, role.sideBySide);
    all.copies.push_back(copy.value);
    llvm::append_range(all.copies, copy.copies);
  }
  return all;
}

std::optional<Outputs> validation::run(Ranks &ranks, FunctionOpInterface func,
                                       const Signature &signature,
                                       llvm::ArrayRef<Argument> args,
                                       const Outputs *like) {
  std::vector<std::optional<Outputs>> own(ranks.size());
  bool good = ranks.run([&](Machine &machine) {
    std::optional<Outputs> &outputs = own[ranks.numberOf(machine)];
    outputs = runOn(machine, func, signature, args, like);
    return outputs.has_value();
  });
  if (!good)
    return std::nullopt;
  if (ranks.size() == 1)
    return std::move(own[0]);
  Outputs all;
  for (size_t o = 0; o < own[0]->size(); ++o) {
    std::vector<Output> parts;
    for (std::optional<Outputs> &outputs : own)
      parts.push_back((*outputs)[o]);
    all.push_back(join(parts, ranks.getParts(),
                       like && o < like->size() ? &(*like)[o] : nullptr,
                       signature));
  }
  return all;
}

//===----------------------------------------------------------------------===//
// Comparing
//===----------------------------------------------------------------------===//

static std::vector<Scalar> elementsOf(const Datum &value) {
  return value.box ? value.array().data : std::vector<Scalar>{value.scalar};
}
static Shape shapeOf(const Datum &value) {
  return value.box ? value.array().shape : Shape();
}

std::string Mismatch::text() const {
  std::string place;
  for (int64_t i : index)
    place += (place.empty() ? "" : ", ") + std::to_string(i);
  auto number = [&](double value) {
    char text[40];
    std::snprintf(text, sizeof text, "%.9g", value);
    return std::string(text);
  };
  std::string result = "'" + name + "'";
  if (copy)
    result += " of another rank";
  if (!index.empty())
    result += " [" + place + "]";
  return result + " was " + number(before) + " and is " + number(after) +
         (isa<FloatType>(element)
              ? llvm::formatv(" (allowed: {0:e1})", allowed).str()
              : "");
}

namespace {
/// Finds the value that is farthest off, of all results.
struct Comparison {
  const Case &check;
  Tolerance tolerance;
  std::optional<Mismatch> worst = std::nullopt;
  double worstBy = 0;

  /// Compares one result; `moved` is null if there is none.
  void add(const Output &output, bool copy, const Datum &before,
           const Datum *after, const Datum *moved);
  /// The same of a cache in bytes, which tells by its numbers.
  void addBytes(const Output &output, bool copy, const Datum &before,
                const Datum *after, const Datum *moved);
};
} // namespace

void Comparison::addBytes(const Output &output, bool copy, const Datum &before,
                          const Datum *after, const Datum *moved) {
  Type type = output.element;
  Output numbers = output;
  numbers.element = Float32Type::get(type.getContext());
  auto read = [&](const Datum &rows) { return fromBytes(type, rows.array()); };
  std::optional<Datum> got, shifted;
  if (after && after->box && shapeOf(*after) == shapeOf(before))
    got = read(*after);
  if (moved && moved->box)
    shifted = read(*moved);
  // A number between two bytes may become either: floats with three bits of
  // mantissa are up to an eighth apart.
  Comparison own{check, tolerance};
  if (!type.isInteger(8))
    own.tolerance.rtol = std::max(tolerance.rtol, 0.13);
  own.add(numbers, copy, read(before), got ? &*got : nullptr,
          shifted ? &*shifted : nullptr);
  if (own.worst && (!worst || own.worstBy > worstBy)) {
    worst = own.worst;
    worstBy = own.worstBy;
  }
}

void Comparison::add(const Output &output, bool copy, const Datum &before,
                     const Datum *after, const Datum *moved) {
  if (isCacheInBytes(output.element, shapeOf(before).size()))
    return addBytes(output, copy, before, after, moved);
  const std::string &name = output.name;
  auto want = elementsOf(before);
  auto got = after ? elementsOf(*after) : std::vector<Scalar>();
  Shape shape = shapeOf(before);
  bool isFloat = isa<FloatType>(output.element);
  // Below its least normal number a type has no relative precision.
  double normal = isFloat
                      ? APFloat::getSmallestNormalized(
                            cast<FloatType>(output.element).getFloatSemantics())
                            .convertToDouble()
                      : 0;
  if (got.size() != want.size()) {
    worst = Mismatch{name + "' has another size: '" + name,
                     {},
                     double(want.size()),
                     double(got.size()),
                     0,
                     output.element,
                     copy};
    worstBy = INFINITY;
    return;
  }
  double largest = 0;
  for (Scalar value : want)
    if (isFloat && std::isfinite(value.f))
      largest = std::max(largest, std::fabs(value.f));
  auto shifted = moved ? elementsOf(*moved) : std::vector<Scalar>();
  size_t row = shape.empty() ? 1 : std::max<int64_t>(shape.back(), 1);
  // Other sequences of the batch must not notice the last one.
  int batch = output.batch;
  int64_t below = 1;
  for (size_t d = batch + 1; d < shape.size(); ++d)
    below *= shape[d];
  double spread = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    if (i % row == 0) {
      spread = 0;
      for (size_t j = i; isFloat && moved && j < std::min(i + row, want.size());
           ++j) {
        double by = std::fabs(shifted[j].f - want[j].f);
        spread = std::isnan(by) ? INFINITY : std::max(spread, by);
      }
    }
    if (check.numbers == Numbers::NotANumber &&
        (batch < 0 || int64_t(i) / below % shape[batch] == shape[batch] - 1))
      continue;
    double by, allowed = 0;
    if (isFloat) {
      double a = want[i].f, b = got[i].f;
      // Where the answer is not a number there is nothing to keep.
      if (a == b || std::isnan(a))
        continue;
      allowed = tolerance.atol * largest +
                tolerance.rtol * std::max(std::fabs(a), normal) + 8 * spread +
                1e-37;
      by = std::fabs(a - b);
      if (by <= allowed)
        continue;
      by = std::isnan(by) ? INFINITY : by / std::max(allowed, 1e-300);
    } else {
      if (want[i].i == got[i].i || (moved && shifted[i].i != want[i].i))
        continue;
      by = INFINITY;
    }
    if (worst && by <= worstBy)
      continue;
    worstBy = by;
    worst.emplace();
    worst->name = name;
    worst->copy = copy;
    worst->element = output.element;
    worst->index.assign(shape.size(), 0);
    int64_t rest = int64_t(i);
    for (size_t d = shape.size(); d-- > 0;) {
      worst->index[d] = rest % shape[d];
      rest /= shape[d];
    }
    worst->before = isFloat ? want[i].f : double(want[i].i);
    worst->after = isFloat ? got[i].f : double(got[i].i);
    worst->allowed = allowed;
  }
}

std::optional<Mismatch> validation::compare(const Outputs &before,
                                            const Outputs &after,
                                            const Case &check,
                                            Tolerance tolerance,
                                            const Outputs *moved) {
  Comparison all{check, tolerance};
  for (size_t o = 0; o < before.size(); ++o) {
    const Output &want = before[o];
    const Output *got = o < after.size() ? &after[o] : nullptr;
    size_t values = std::max(want.numValues(), got ? got->numValues() : 1);
    for (size_t i = 0; i < values; ++i) {
      auto of = [&](const Output &output) {
        return &output.get(i < output.numValues() ? i : 0);
      };
      all.add(want, i > 0, *of(want), got ? of(*got) : nullptr,
              moved ? of((*moved)[o]) : nullptr);
    }
  }
  return all.worst;
}
