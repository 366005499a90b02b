//===- Entries.cpp - What functions say to their callers --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Target/Entries.h"

#include "IdBounds.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

#include <map>
#include <set>

using namespace mlir;

namespace attune {

const char *nameOfElement(Type type) {
  if (type.isInteger(1))
    return "bool";
  if (type.isInteger(64))
    return "i64";
  if (type.isInteger(32))
    return "i32";
  if (type.isInteger(8))
    return "i8";
  if (isa<Float8E4M3FNType>(type))
    return "f8_e4m3";
  if (type.isF16())
    return "f16";
  if (type.isBF16())
    return "bf16";
  if (type.isF32())
    return "f32";
  return nullptr;
}

namespace {

/// A number that the runtime can hold.
std::optional<int64_t> integerOf(Attribute value) {
  auto number = dyn_cast_or_null<IntegerAttr>(value);
  if (!number || number.getValue().getSignificantBits() > 64)
    return std::nullopt;
  return number.getValue().getSExtValue();
}

/// A size in a shape: a name, or a number from 0.
bool isSize(Attribute size) {
  if (auto name = dyn_cast<StringAttr>(size))
    return !name.getValue().empty();
  std::optional<int64_t> number = integerOf(size);
  return number && *number >= 0;
}

/// The shape that the attributes have to say: names where the type has none of
/// its own.
ArrayAttr shapeFor(RankedTensorType type, ArrayAttr said) {
  Builder b(type.getContext());
  SmallVector<Attribute> sizes;
  for (auto [dim, size] : llvm::enumerate(type.getShape())) {
    bool named = said && dim < said.size() && isSize(said[dim]);
    if (!ShapedType::isDynamic(size))
      sizes.push_back(b.getI64IntegerAttr(size));
    else
      sizes.push_back(named ? said[dim]
                            : Attribute(b.getStringAttr("n" + Twine(dim))));
  }
  return b.getArrayAttr(sizes);
}

/// An argument or a result of an entry, with its attributes.
struct Passed {
  func::FuncOp entry;
  bool isResult;
  unsigned number;
  Type type;
  DictionaryAttr attrs;
  Location loc;

  Attribute get(StringRef name) const {
    return attrs ? attrs.get(name) : Attribute();
  }
  StringRef kind() const {
    auto kind = dyn_cast_or_null<StringAttr>(get("attune.kind"));
    return kind ? kind.getValue() : "";
  }
  /// A number that verify() let through.
  int64_t number64(StringRef name, int64_t otherwise = 0) const {
    return integerOf(get(name)).value_or(otherwise);
  }
  StringAttr name() const {
    return dyn_cast_or_null<StringAttr>(get("attune.name"));
  }
  ArrayAttr shape() const {
    return dyn_cast_or_null<ArrayAttr>(get("attune.shape"));
  }
  InFlightDiagnostic error() const {
    return emitError(loc) << (isResult ? "result " : "argument ") << number
                          << " of '@" << func::FuncOp(entry).getSymName()
                          << "' ";
  }

  LogicalResult verify() const;
  LogicalResult requireAll() const;

private:
  LogicalResult verifyNumber(StringRef name, int64_t least, int64_t most) const;
  LogicalResult verifyWord(StringRef name, ArrayRef<StringRef> words) const;
  LogicalResult verifyKind() const;
  LogicalResult verifyShape() const;
  LogicalResult verifyLongest() const;
};

LogicalResult Passed::verifyNumber(StringRef name, int64_t least,
                                   int64_t most) const {
  Attribute said = get(name);
  std::optional<int64_t> value = integerOf(said);
  if (!said || (value && *value >= least && *value <= most))
    return success();
  InFlightDiagnostic diag = error();
  diag << "has " << name << " = " << said << ", but it must be a number from "
       << least;
  if (most != INT64_MAX)
    diag << " to " << most;
  return diag;
}

LogicalResult Passed::verifyWord(StringRef name,
                                 ArrayRef<StringRef> words) const {
  Attribute said = get(name);
  auto word = dyn_cast_or_null<StringAttr>(said);
  if (!said || (word && llvm::is_contained(words, word.getValue())))
    return success();
  InFlightDiagnostic diag = error();
  diag << "has " << name << " = " << said << ", but it must be ";
  for (auto [i, known] : llvm::enumerate(words))
    diag << (i == 0                  ? ""
             : i + 1 == words.size() ? " or "
                                     : ", ")
         << "\"" << known << "\"";
  return diag;
}

/// Numbers are passed as such, and all else as tensors.
LogicalResult Passed::verifyKind() const {
  if (isResult)
    return verifyWord("attune.kind", {"output", "cache"});
  if (failed(verifyWord("attune.kind",
                        {"input", "cache", "past", "lengths", "size"})))
    return failure();
  bool isNumber = kind() == "past" || kind() == "size";
  if (isNumber && !type.isIndex())
    return error() << "is " << type << ", but what is a \"" << kind()
                   << "\" is one number: write its type as 'index'";
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (kind() == "lengths" && (!tensor || tensor.getRank() != 1 ||
                              !tensor.getElementType().isInteger(64)))
    return error() << "is " << type
                   << ", but lengths are a 'tensor<?xi64>', one number for "
                      "each sequence";
  return success();
}

/// The code goes by the type: a number in it is a number in the shape. A size
/// that the type leaves open has a name, or a number that callers are held to.
LogicalResult Passed::verifyShape() const {
  Attribute said = get("attune.shape");
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!said || !tensor)
    return success();
  ArrayAttr sizes = shape();
  bool fits = sizes && sizes.size() == size_t(tensor.getRank()) &&
              llvm::all_of(sizes, isSize);
  for (auto [dim, size] : llvm::enumerate(tensor.getShape()))
    fits = fits && (ShapedType::isDynamic(size) ||
                    integerOf(sizes[dim]).value_or(-1) == size);
  if (fits)
    return success();
  return error() << "is " << type << ", but says attune.shape = " << said
                 << "; write attune.shape = " << shapeFor(tensor, sizes);
}

LogicalResult Passed::verifyLongest() const {
  Attribute said = get("attune.longest");
  auto sizes = dyn_cast_or_null<DenseI64ArrayAttr>(said);
  if (!said || integerOf(said).value_or(-1) >= 0 ||
      (sizes && llvm::all_of(sizes.asArrayRef(),
                             [](int64_t size) { return size >= 0; })))
    return success();
  return error() << "has attune.longest = " << said
                 << ", but it must have the largest of each size, and 0 for "
                    "any, as in 'array<i64: 0, 512>'";
}

LogicalResult Passed::verify() const {
  constexpr int64_t kMost = INT64_MAX, kMostRows = INT32_MAX;
  if (failed(verifyKind()) || failed(verifyShape()) ||
      failed(verifyLongest()) || failed(verifyNumber("attune.max", 1, kMost)) ||
      failed(verifyNumber("attune.ignored", INT64_MIN, kMost)) ||
      failed(verifyNumber("attune.inserted", 0, kMost)) ||
      failed(verifyNumber("attune.each", 0, kMostRows)) ||
      failed(verifyNumber("attune.window", 0, kMostRows)) ||
      failed(verifyNumber("attune.slack", number64("attune.window") ? 4 : 0,
                          kMostRows)) ||
      failed(
          verifyWord("attune.default", {"zeros", "ones", "iota", "count_mask",
                                        "shifted", "adapter"})) ||
      failed(verifyWord("attune.bidirectional", {"image", "prompt", "none"})))
    return failure();
  if (Attribute said = get("attune.name"); said && !isa<StringAttr>(said))
    return error() << "has attune.name = " << said
                   << ", but a name is a text in quotes";
  if (Attribute said = get("attune.places"); said && !isSize(said))
    return error() << "has attune.places = " << said
                   << ", but it must be a size as in a shape";
  if (number64("attune.window") && !get("attune.slack"))
    return error() << "has attune.window without attune.slack, the further "
                      "positions that caches of the window have room for";
  return success();
}

/// Says what an argument or result, with its attributes, does not say.
LogicalResult Passed::requireAll() const {
  if (llvm::is_contained({"weights", "past", "size"}, kind()))
    return success();
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !nameOfElement(tensor.getElementType()))
    return error() << "is " << type
                   << "; a caller can pass tensors of i1, i8, i32, i64, f16, "
                      "bf16 and f32";
  if (!kind().empty() && name() && shape())
    return success();
  Builder b(type.getContext());
  NamedAttrList example;
  example.set("attune.kind", b.getStringAttr(isResult ? "output" : "input"));
  example.set("attune.name",
              b.getStringAttr((isResult ? "y" : "x") + Twine(number)));
  example.set("attune.shape", shapeFor(tensor, {}));
  std::string signature;
  llvm::raw_string_ostream(signature)
      << type << " " << example.getDictionary(type.getContext());
  return error() << "does not say what a caller has to know; write its type as "
                    "'"
                 << signature
                 << "', with the name that files of tensors give it, and so "
                    "for all others";
}

/// All arguments of an entry, then its results.
SmallVector<Passed> passedBy(func::FuncOp entry) {
  SmallVector<Passed> all;
  for (BlockArgument argument : entry.getArguments())
    all.push_back(
        {entry, /*isResult=*/false, argument.getArgNumber(), argument.getType(),
         entry.getArgAttrDict(argument.getArgNumber()), argument.getLoc()});
  for (auto [number, type] : llvm::enumerate(entry.getResultTypes()))
    all.push_back({entry, /*isResult=*/true, unsigned(number), type,
                   entry.getResultAttrDict(number), entry.getLoc()});
  return all;
}

/// The entries, in order.
SmallVector<func::FuncOp> entriesOf(ModuleOp module) {
  SmallVector<func::FuncOp> entries;
  for (auto func : module.getOps<func::FuncOp>())
    if (func->hasAttr("attune.entry") && !func.isExternal())
      entries.push_back(func);
  return entries;
}

bool isOnMemory(func::FuncOp entry) {
  return llvm::any_of(entry.getArgumentTypes(), llvm::IsaPred<MemRefType>);
}

/// The only input of ids that must be given, as the runtime finds it.
const Passed *findIds(ArrayRef<Passed> all) {
  for (const Passed &passed : all) {
    auto tensor = dyn_cast<RankedTensorType>(passed.type);
    if (passed.kind() == "input" && tensor && tensor.getRank() == 2 &&
        tensor.getElementType().isInteger(64) && passed.shape() &&
        !passed.get("attune.default") && !passed.get("attune.ignored"))
      return &passed;
  }
  return nullptr;
}

/// A cache is [layers, batch, ...] or, where sequences are apart, [batch,
/// layers, ...], with the positions of its window as one of the sizes behind.
LogicalResult verifyCache(const Passed &cache, const Passed *ids) {
  auto tensor = dyn_cast<RankedTensorType>(cache.type);
  if (!tensor || !cache.shape())
    return success();
  auto fail = [&] {
    return cache.error() << "is a cache of attune.shape = " << cache.shape()
                         << ", but ";
  };
  if (tensor.getRank() < 2)
    return fail() << "a cache has layers and a batch as its first two sizes";
  int64_t window = cache.number64("attune.window");
  std::string capacity = "capacity";
  if (window)
    capacity += "_" + std::to_string(window);
  Attribute batch = ids ? ids->shape()[0] : Attribute();
  unsigned grows = 0;
  for (auto [dim, size] : llvm::enumerate(cache.shape())) {
    auto symbol = dyn_cast<StringAttr>(size);
    if (!symbol)
      continue;
    if (symbol.getValue() == capacity) {
      ++grows;
      continue;
    }
    if (symbol.getValue().starts_with("capacity"))
      return fail() << "its attune.window is " << window
                    << ", so that its positions are \"" << capacity << "\"";
    if (dim > 1 || (batch && size != batch))
      return fail() << size << " is neither its positions, \"" << capacity
                    << "\", nor the batch of the ids" << (batch ? ", " : "")
                    << (batch ? batch : size);
  }
  if (grows > 1)
    return fail() << "it can have its positions once";
  return success();
}

/// Whether all sizes behind the first are numbers.
bool hasKnownRows(const Passed &passed) {
  ArrayRef<Attribute> sizes = passed.shape().getValue();
  return !sizes.empty() && llvm::all_of(sizes.drop_front(), [](Attribute size) {
    return integerOf(size).value_or(0) > 0;
  });
}

/// What arguments of one entry say together.
LogicalResult verifyTogether(ArrayRef<Passed> all) {
  std::map<int64_t, const Passed *> pasts;
  std::set<StringRef> inputs;
  const Passed *ids = findIds(all), *inserted = nullptr;
  for (const Passed &passed : all) {
    if (!passed.isResult && passed.kind() == "past")
      pasts.emplace(passed.number64("attune.window"), &passed);
    if (passed.kind() == "input" && passed.name() &&
        !inputs.insert(passed.name().getValue()).second)
      return passed.error()
             << "is the second input with the name " << passed.name();
  }
  for (const Passed &passed : all) {
    if (passed.isResult)
      continue;
    if (passed.get("attune.inserted") && passed.shape()) {
      if (!hasKnownRows(passed) ||
          (inserted && passed.shape().getValue().drop_front() !=
                           inserted->shape().getValue().drop_front()))
        return passed.error()
               << "has rows that stand in the places of tokens "
                  "(attune.inserted), but attune.shape = "
               << passed.shape()
               << "; behind the first size all must be numbers from 1, and the "
                  "same for all such arguments";
      inserted = inserted ? inserted : &passed;
    }
    if (passed.kind() == "cache" && failed(verifyCache(passed, ids)))
      return failure();
    int64_t window = passed.number64("attune.window");
    if (!window || !llvm::is_contained({"cache", "lengths"}, passed.kind()))
      continue;
    auto past = pasts.find(window);
    if (past == pasts.end())
      return passed.error()
             << "has attune.window = " << window
             << ", but no argument of kind \"past\" has this window and says "
                "how many positions are in its caches";
    int64_t slack = passed.number64("attune.slack"),
            other = past->second->number64("attune.slack");
    if (slack == other)
      continue;
    InFlightDiagnostic diag = passed.error();
    diag << "has attune.slack = " << slack << " for a window of " << window
         << ", but the \"past\" of this window has " << other;
    diag.attachNote(past->second->loc) << "which is here";
    return diag;
  }
  return success();
}

/// Steps for several tokens get the caches of `decode`, in its order.
LogicalResult verifySameCaches(ModuleOp module) {
  auto cachesOf = [&](StringRef name) {
    SmallVector<Passed> caches;
    auto entry = module.lookupSymbol<func::FuncOp>(name);
    if (entry && entry->hasAttr("attune.entry") && !entry.isExternal() &&
        !isOnMemory(entry))
      for (const Passed &passed : passedBy(entry))
        if (!passed.isResult && passed.kind() == "cache")
          caches.push_back(passed);
    return caches;
  };
  SmallVector<Passed> own = cachesOf("decode");
  for (StringRef other : {"decode_all", "decode_span"}) {
    SmallVector<Passed> caches = cachesOf(other);
    for (size_t number = 0; number < caches.size(); ++number) {
      const Passed &cache = caches[number];
      const Passed *first = number < own.size() ? &own[number] : nullptr;
      auto agrees = [&](StringRef name) {
        return first->get(name) == cache.get(name);
      };
      if (first && first->type == cache.type && agrees("attune.shape") &&
          agrees("attune.window") && agrees("attune.slack"))
        continue;
      InFlightDiagnostic diag = cache.error();
      diag << "is cache " << number << ", " << cache.type
           << " with attune.shape = " << cache.shape()
           << ", but it must be that of '@decode', which has ";
      if (!first) {
        diag << own.size() << " caches";
        return diag;
      }
      diag << first->type << " with attune.shape = " << first->shape();
      diag.attachNote(first->loc) << "which is here";
      return diag;
    }
  }
  return success();
}

/// Numbers that the module says of all its entries.
LogicalResult verifyModuleNumbers(ModuleOp module) {
  constexpr int64_t kRanks = 1 << 20;
  struct Range {
    StringRef name;
    int64_t least, most;
  };
  for (const Range &range : {Range{"attune.context", 0, INT64_MAX},
                             {"attune.bos", 0, INT64_MAX},
                             {"attune.pad", 0, INT64_MAX},
                             {"attune.decoder_start", 0, INT64_MAX},
                             {"attune.forced_bos", 0, INT64_MAX},
                             {"attune.ranks", 1, kRanks},
                             {"attune.groups", 1, kRanks},
                             {"attune.sharers", 1, kRanks}}) {
    Attribute said = module->getAttr(range.name);
    std::optional<int64_t> value = integerOf(said);
    if (!said || (value && *value >= range.least && *value <= range.most))
      continue;
    InFlightDiagnostic diag =
        module.emitError() << "has " << range.name << " = " << said
                           << ", but it must be a number from " << range.least;
    if (range.most != INT64_MAX)
      diag << " to " << range.most;
    return diag;
  }
  return success();
}

/// What is known to be out of bounds is not left to the run.
LogicalResult verifyConstantIndices(ModuleOp module) {
  WalkResult result = module.walk([](Operation *op) {
    Type type;
    ValueRange indices;
    if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
      type = extract.getTensor().getType();
      indices = extract.getIndices();
    } else if (auto insert = dyn_cast<tensor::InsertOp>(op)) {
      type = insert.getDest().getType();
      indices = insert.getIndices();
    } else {
      return WalkResult::advance();
    }
    for (auto [dim, index] : llvm::enumerate(indices)) {
      int64_t size = cast<ShapedType>(type).getDimSize(dim);
      std::optional<int64_t> at = getConstantIntValue(index);
      if (!at || (*at >= 0 && (ShapedType::isDynamic(size) || *at < size)))
        continue;
      op->emitError("has the index ")
          << *at << " in dimension " << dim << " of " << type;
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return success(!result.wasInterrupted());
}

} // namespace

LogicalResult verifyEntries(ModuleOp module) {
  if (failed(verifyModuleNumbers(module)))
    return failure();
  int64_t sharers = integerOf(module->getAttr("attune.sharers")).value_or(1);
  for (func::FuncOp entry : entriesOf(module)) {
    if (isOnMemory(entry))
      continue;
    Attribute beyond = entry->getAttr("attune.recompute_beyond");
    if (beyond && integerOf(beyond).value_or(-1) < 0)
      return entry.emitError("has attune.recompute_beyond = ")
             << beyond << ", but it must be a length from 0";
    SmallVector<Passed> all = passedBy(entry);
    for (const Passed &passed : all) {
      if (failed(passed.verify()))
        return failure();
      int64_t own = passed.number64("attune.sharers", 1);
      if (own < 1 || own > sharers)
        return passed.error() << "has attune.sharers = " << own
                              << ", but the module has " << sharers;
    }
    if (failed(verifyTogether(all)))
      return failure();
  }
  if (failed(verifySameCaches(module)) || failed(verifyConstantIndices(module)))
    return failure();
  for (func::FuncOp entry : entriesOf(module))
    if (!isOnMemory(entry) && failed(boundIds(entry)))
      return failure();
  return success();
}

LogicalResult checkEntries(ModuleOp module) {
  // Stages behind the one that compile begins with have lost what it needs.
  constexpr StringLiteral kBegins =
      "compile begins with IR as --emit=mlir prints it, and attune-opt goes on "
      "from here";
  if (module->hasAttr("attune.metadata"))
    return module.emitError("is a later stage, as --emit=vector prints it; ")
           << kBegins;
  SmallVector<func::FuncOp> entries = entriesOf(module);
  for (func::FuncOp entry : entries) {
    if (isOnMemory(entry))
      return entry.emitError("'@")
             << entry.getSymName()
             << "' has its tensors in memory (memref): this is a later stage, "
                "as --emit=kernels and --emit=loops print it; "
             << kBegins;
    for (const Passed &passed : passedBy(entry))
      if (failed(passed.requireAll()))
        return failure();
  }
  if (!entries.empty())
    return success();
  return module.emitError(
      "has no function to run: call it @forward and write 'attributes "
      "{attune.entry}' before its body");
}

} // namespace attune
