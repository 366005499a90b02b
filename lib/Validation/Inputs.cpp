//===- Inputs.cpp - Random and adversarial arguments ------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Inputs.h"

#include "Interpreter/CachedRows.h"
#include "Noise.h"

#include "Attune/AttuneShapes.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/StringMap.h"

#include <cmath>
#include <limits>

using namespace attune;
using namespace attune::validation;
using namespace mlir;

static bool hasOpenSizes(FunctionOpInterface func) {
  return llvm::any_of(func.getArgumentTypes(), [](Type type) {
    auto shaped = dyn_cast<ShapedType>(type);
    return shaped ? shaped.hasRank() && !shaped.hasStaticShape()
                  : isa<IndexType>(type);
  });
}

static bool takes(FunctionOpInterface func,
                  llvm::function_ref<bool(Type)> wanted) {
  return llvm::any_of(func.getArgumentTypes(), [&](Type type) {
    return wanted(getElementTypeOrSelf(type));
  });
}

std::vector<Case> validation::makeCases(FunctionOpInterface func,
                                        const ValidationOptions &options) {
  bool entry = func->hasAttr("attune.entry");
  bool open = hasOpenSizes(func);
  std::vector<Sizes> layouts{Sizes::Batch};
  // An index is often the size of a tensor: all the same is what fits then.
  bool indices = takes(func, [](Type type) { return isa<IndexType>(type); });
  if (!entry && open)
    layouts =
        indices ? std::vector<Sizes>{Sizes::Same, Sizes::Batch}
                : std::vector<Sizes>{Sizes::Crossed, Sizes::Batch, Sizes::Same};
  bool floats = takes(func, [](Type type) { return isa<FloatType>(type); });
  bool masks = takes(func, [](Type type) { return type.isInteger(1); });

  std::vector<Case> cases;
  auto add = [&](const llvm::Twine &name, int64_t length, int64_t batch,
                 Numbers numbers) {
    for (Sizes sizes : layouts) {
      Case check;
      check.name = name.str();
      check.length = length;
      check.batch = batch;
      check.sizes = sizes;
      check.numbers = numbers;
      check.past = length > 1 ? 3 : 0;
      check.seed = options.seed * 1000003 + cases.size();
      cases.push_back(check);
    }
  };
  int64_t middle = 5;
  if (open) {
    for (int64_t length : options.lengths)
      add("length " + llvm::Twine(length), length, length > 1 ? 2 : 1,
          Numbers::Plain);
    middle = options.lengths.size() > 1 ? options.lengths[1] : 7;
  } else {
    add("random numbers", middle, 2, Numbers::Plain);
  }
  if (floats) {
    add("large numbers", middle, 2, Numbers::Large);
    add("subnormal numbers", middle, 1, Numbers::Subnormal);
    add("NaN and infinities in the last sequence", middle, 2,
        Numbers::NotANumber);
  }
  if (masks)
    add("hidden rows", middle, 2, Numbers::Hidden);
  return cases;
}

namespace {
/// Fills in the arguments of one function.
class Maker {
public:
  Maker(FunctionOpInterface func, const Case &check)
      : func(func), check(check), noise(Noise::mix(check.seed)) {
    known["batch"] = check.batch;
    known["capacity"] = check.past + check.length + 2;
    known["past"] = check.past;
  }

  std::optional<Datum> make(unsigned number);

private:
  int64_t sizeOf(unsigned number, unsigned dim, unsigned rank);
  Scalar fill(Type element, unsigned number, int64_t row, bool last);

  FunctionOpInterface func;
  const Case &check;
  Noise noise;
  llvm::StringMap<int64_t> known;
  bool sawTokens = false;
};
} // namespace

int64_t Maker::sizeOf(unsigned number, unsigned dim, unsigned rank) {
  if (auto names = func.getArgAttrOfType<ArrayAttr>(number, "attune.shape");
      names && dim < names.size()) {
    // A description may pin sizes that are dynamic in the type.
    if (auto pinned = dyn_cast<IntegerAttr>(names[dim]))
      return pinned.getInt();
    if (auto name = dyn_cast<StringAttr>(names[dim])) {
      // A second length is longer than the first.
      int64_t length = check.length + int64_t(known.size() > 3 ? 2 : 0);
      SmallVector<int64_t> most = longestSizes(func, number);
      if (dim < most.size() && most[dim] > 0)
        length = std::min(length, most[dim]);
      // Rings begin at the first position, as all caches do.
      if (name.getValue().starts_with("capacity"))
        return known["capacity"];
      return known.try_emplace(name.getValue(), length).first->second;
    }
  }
  if (dim == 0 && check.sizes != Sizes::Same)
    return rank == 1 ? check.length : check.batch;
  if (check.sizes != Sizes::Crossed)
    return check.length;
  // [batch, heads, queries, keys], or queries of one tensor and keys of others.
  if (rank == 4 && dim == 3)
    return check.length + 4;
  return sawTokens && !(rank == 4 &&
                        ShapedType::isDynamic(
                            cast<ShapedType>(func.getArgumentTypes()[number])
                                .getShape()[3]))
             ? check.length + 4
             : check.length;
}

Scalar Maker::fill(Type element, unsigned number, int64_t row, bool last) {
  if (isa<FloatType>(element)) {
    double value = noise.real();
    switch (check.numbers) {
    case Numbers::Large:
      value *= element.isF16() ? 30 : 200;
      break;
    case Numbers::Zero:
      value = 0;
      break;
    case Numbers::Subnormal:
      value *= element.isF16() ? 1e-6 : 1e-39;
      break;
    case Numbers::NotANumber:
      if (last)
        value = noise.below(2) ? std::numeric_limits<double>::quiet_NaN()
                               : std::numeric_limits<double>::infinity();
      break;
    default:
      break;
    }
    return real(roundTo(element, value));
  }
  if (element.isInteger(1))
    return whole(check.numbers == Numbers::Hidden ? row % 2 && noise.below(2)
                                                  : noise.below(4) != 0);
  if (auto most = func.getArgAttrOfType<IntegerAttr>(number, "attune.max"))
    return whole(noise.below(most.getInt()));
  if (auto start = func.getArgAttrOfType<StringAttr>(number, "attune.default"))
    return whole(row);
  auto kind = func.getArgAttrOfType<StringAttr>(number, "attune.kind");
  if (kind && kind.getValue() == "lengths")
    return whole(noise.below(check.past + 1));
  return whole(noise.below(3));
}

int validation::findBatch(DictionaryAttr attributes, Type type) {
  auto shaped = dyn_cast<ShapedType>(type);
  if (!shaped || !shaped.hasRank())
    return -1;
  if (auto names = attributes ? attributes.getAs<ArrayAttr>("attune.shape")
                              : ArrayAttr()) {
    for (auto [d, name] : llvm::enumerate(names))
      if (auto text = dyn_cast<StringAttr>(name); text && text == "batch")
        return int(d);
    return -1;
  }
  return shaped.getRank() > 1 && shaped.isDynamicDim(0) ? 0 : -1;
}

std::optional<Datum> Maker::make(unsigned number) {
  Type type = func.getArgumentTypes()[number];
  if (isa<IndexType>(type)) {
    auto name = func.getArgAttrOfType<StringAttr>(number, "attune.kind");
    if (name && name.getValue() == "past")
      return whole(check.past);
    // Where candidates are asked for, nobody reads the logits.
    auto size = func.getArgAttrOfType<StringAttr>(number, "attune.name");
    if (size && size.getValue() == "candidates")
      return whole(0);
    return whole(check.sizes == Sizes::Same ? check.length : 1);
  }
  if (type.isIntOrFloat())
    return fill(type, number, 0, false);
  auto shaped = dyn_cast<ShapedType>(type);
  if (!shaped || !shaped.hasRank() || isa<VectorType>(type) ||
      !shaped.getElementType().isIntOrIndexOrFloat())
    return std::nullopt;
  auto buffer = dyn_cast<MemRefType>(type);
  if (buffer && !buffer.getLayout().isIdentity())
    return std::nullopt;
  Shape shape;
  unsigned rank = shaped.getRank();
  for (unsigned d = 0; d < rank; ++d)
    shape.push_back(shaped.isDynamicDim(d) ? sizeOf(number, d, rank)
                                           : shaped.getDimSize(d));
  sawTokens |= rank == 4 && !shaped.hasStaticShape();
  Type element = shaped.getElementType();
  // Bytes stand for numbers with a scale, like those of any other cache.
  Type stored = element;
  bool bytes = isCacheInBytes(element, rank);
  if (bytes) {
    element = Float32Type::get(type.getContext());
    shape.back() -= kRowScaleBytes;
  }
  Datum result = makeArray(shape, whole(0));
  std::vector<Scalar> &data = result.array().data;
  int64_t width = shape.empty() ? 1 : std::max<int64_t>(shape.back(), 1);
  int batchDim = findBatch(func.getArgAttrDict(number), type);
  bool batched = batchDim >= 0 && check.batch > 1;
  int64_t below = 1; // elements of one sequence, behind the batch
  for (size_t d = batchDim + 1; d < shape.size(); ++d)
    below *= shape[d];
  auto ids = func.getArgAttrOfType<StringAttr>(number, "attune.default");
  bool iota = ids && ids.getValue() == "iota";
  for (size_t i = 0; i < data.size(); ++i) {
    data[i] = fill(element, number, int64_t(i) / width,
                   batched &&
                       int64_t(i) / below % shape[batchDim] == check.batch - 1);
    if (iota)
      data[i] = whole(int64_t(i) % width);
  }
  return bytes ? toBytes(stored, result.array()) : result;
}

std::optional<std::vector<Argument>>
validation::makeArguments(FunctionOpInterface func, const Case &check) {
  Maker maker(func, check);
  std::vector<Argument> args;
  for (unsigned i = 0; i < func.getNumArguments(); ++i) {
    std::optional<Datum> value = maker.make(i);
    if (!value)
      return std::nullopt;
    args.push_back({std::move(*value), func.getArgumentTypes()[i]});
  }
  return args;
}

std::vector<Argument> validation::disturb(llvm::ArrayRef<Argument> args,
                                          double step) {
  std::vector<Argument> moved(args.begin(), args.end());
  Noise noise(17);
  for (Argument &arg : moved) {
    Type element = getElementTypeOrSelf(arg.type);
    if (!arg.value.box || !isa<FloatType>(element) || isInBytes(element))
      continue;
    for (Scalar &value : arg.value.ownArray().data)
      value.f =
          std::fabs(value.f) < 1e-30 ? 0 : value.f * (1 + step * noise.real());
  }
  return moved;
}
