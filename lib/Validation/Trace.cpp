//===- Trace.cpp - Where two runs part --------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Trace.h"

#include "Attune/AttuneCachedRows.h"

#include "llvm/ADT/DenseMap.h"

#include <cmath>
#include <cstdio>

using namespace attune;
using namespace attune::validation;
using namespace mlir;

namespace {
/// Floating-point tensors in the order in which they were made, and by the
/// place in the source that they come from and their size.
struct Trace {
  struct Entry {
    Operation *op;
    Datum value;
    std::pair<Attribute, size_t> key;
    size_t number; ///< of this place and size
  };
  std::vector<Entry> entries;
  llvm::DenseMap<std::pair<Attribute, size_t>, llvm::SmallVector<size_t>> at;
};
} // namespace

/// The file location of an op, or nothing.
static FileLineColLoc placeOf(Location location) {
  FileLineColLoc found;
  location->walk([&](Location inner) {
    if (auto file = dyn_cast<FileLineColLoc>(inner)) {
      found = file;
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return found;
}

static void record(void *state, Operation *op, llvm::ArrayRef<Datum> results) {
  for (auto [type, value] : llvm::zip(op->getResultTypes(), results)) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    FileLineColLoc place = placeOf(op->getLoc());
    if (!tensor || !isa<FloatType>(tensor.getElementType()) ||
        isInBytes(tensor.getElementType()) || !place ||
        value.array().data.empty())
      continue;
    auto *trace = static_cast<Trace *>(state);
    std::pair<Attribute, size_t> key{place, value.array().data.size()};
    auto &numbers = trace->at[key];
    // A value's own memory may be written over later: keep a copy.
    trace->entries.push_back(
        {op, Datum(new Array(value.array())), key, numbers.size()});
    numbers.push_back(trace->entries.size() - 1);
  }
}

static bool traceRun(ModuleOp module, StringRef name,
                     const Signature &signature, llvm::ArrayRef<Argument> args,
                     const Outputs &like, int64_t budget, Trace &trace) {
  auto func = dyn_cast_or_null<FunctionOpInterface>(module.lookupSymbol(name));
  if (!func)
    return false;
  Ranks ranks(module);
  ranks.reset(budget);
  ranks[0].onResult = record;
  ranks[0].onResultState = &trace;
  return run(ranks, func, signature, args, &like).has_value();
}

/// How far the value is from the one that it should be, where it is farthest
/// off; nothing if it is near.
static std::optional<std::string> differ(const Array &want, const Array &got,
                                         double tolerance) {
  double largest = 0, by = 0;
  size_t worst = 0;
  for (Scalar value : want.data)
    if (std::isfinite(value.f))
      largest = std::max(largest, std::fabs(value.f));
  for (size_t i = 0; i < want.data.size(); ++i) {
    double a = want.data[i].f, b = got.data[i].f;
    if (a == b || std::isnan(a))
      continue;
    double off = std::isnan(b) ? INFINITY : std::fabs(a - b);
    if (off > by)
      by = off, worst = i;
  }
  if (by <= tolerance * largest)
    return std::nullopt;
  char text[120];
  std::snprintf(text, sizeof text, "element %zu was %.9g and is %.9g", worst,
                want.data[worst].f, got.data[worst].f);
  return std::string(text);
}

std::optional<Place>
validation::findPlace(ModuleOp before, ModuleOp after, StringRef name,
                      const Signature &signature, llvm::ArrayRef<Argument> args,
                      const Outputs &like, double tolerance, int64_t budget) {
  Trace old, now;
  if (!traceRun(before, name, signature, args, like, budget, old))
    return std::nullopt;
  // The trace up to a failure is worth as much.
  traceRun(after, name, signature, args, like, budget, now);
  for (const Trace::Entry &want : old.entries) {
    auto found = now.at.find(want.key);
    size_t before = old.at[want.key].size();
    // An op in a loop is there several times, and may have become several
    // steps: the last of them is what it was.
    if (found == now.at.end() || found->second.size() % before != 0)
      continue;
    size_t steps = found->second.size() / before;
    const Trace::Entry &got =
        now.entries[found->second[(want.number + 1) * steps - 1]];
    if (auto text = differ(want.value.array(), got.value.array(), tolerance))
      return Place{want.op->getLoc(), want.op->getName().getStringRef().str(),
                   *text};
  }
  return std::nullopt;
}
