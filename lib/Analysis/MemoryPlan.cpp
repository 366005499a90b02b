//===- MemoryPlan.cpp - Memory of a call of a model -------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Analysis/MemoryPlan.h"

#include "attune/TargetInfo/TargetDescription.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace attune {
namespace {

/// Recursive descent; `failed` once anything is wrong.
class SizeParser {
public:
  SizeParser(StringRef text, const std::map<std::string, int64_t> &dims)
      : rest(text), dims(dims) {}

  std::optional<int64_t> run() {
    int64_t value = sum();
    if (failed || !rest.trim().empty())
      return std::nullopt;
    return value;
  }

private:
  bool take(StringRef token) {
    rest = rest.ltrim();
    return rest.consume_front(token);
  }
  void expect(StringRef token) { failed |= !take(token); }

  int64_t combine(int64_t a, int64_t b, char sign) {
    int64_t result = 0;
    switch (sign) {
    case '+':
      failed |= llvm::AddOverflow(a, b, result);
      break;
    case '-':
      failed |= llvm::SubOverflow(a, b, result);
      break;
    case '*':
      failed |= llvm::MulOverflow(a, b, result);
      break;
    default:
      // Sizes are not negative.
      failed |= b <= 0 || a < 0;
      result = failed ? 0 : a / b;
    }
    return result;
  }

  int64_t sum() {
    int64_t value = product();
    while (!failed) {
      if (take("+"))
        value = combine(value, product(), '+');
      else if (take("-"))
        value = combine(value, product(), '-');
      else
        break;
    }
    return value;
  }

  int64_t product() {
    int64_t value = term();
    while (!failed) {
      if (take("*"))
        value = combine(value, term(), '*');
      else if (take("/"))
        value = combine(value, term(), '/');
      else
        break;
    }
    return value;
  }

  int64_t term() {
    // Nesting is as deep as describeSize's, but the text could be anyone's.
    if (++depth > 256)
      failed = true;
    int64_t value = failed ? 0 : unguarded();
    --depth;
    return value;
  }

  int64_t unguarded() {
    if (take("-"))
      return combine(0, term(), '-');
    if (take("(")) {
      int64_t value = sum();
      expect(")");
      return value;
    }
    if (take("ceil(")) {
      int64_t value = term();
      expect("/");
      int64_t by = term();
      expect(")");
      return combine(combine(value, by - 1, '+'), by, '/');
    }
    for (bool least : {true, false})
      if (take(least ? "min(" : "max(")) {
        int64_t a = sum();
        expect(",");
        int64_t b = sum();
        expect(")");
        return least ? std::min(a, b) : std::max(a, b);
      }
    StringRef word = rest.ltrim().take_while(
        [](char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; });
    take(word);
    int64_t value = 0;
    if (word.empty()) {
      failed = true;
    } else if (llvm::isDigit(word.front())) {
      failed |= word.getAsInteger(10, value);
    } else if (auto it = dims.find(word.str()); it != dims.end()) {
      value = it->second;
    } else {
      failed = true;
    }
    return value;
  }

  StringRef rest;
  const std::map<std::string, int64_t> &dims;
  unsigned depth = 0;
  bool failed = false;
};

class Planner {
public:
  Planner(ModuleOp module, const std::map<std::string, int64_t> &dims)
      : module(module), dims(dims) {}

  /// The frame of a function, and below it the deepest of what it calls.
  std::optional<int64_t> frames(func::FuncOp func) {
    int64_t own = 0;
    if (auto slots = func->getAttrOfType<ArrayAttr>("attune.slots"))
      for (auto slot : slots.getAsRange<StringAttr>()) {
        std::optional<int64_t> bytes = evaluateSize(slot, dims);
        if (!bytes || llvm::AddOverflow(own, *bytes, own) ||
            llvm::AddOverflow(own, kLineBytes - 1, own))
          return std::nullopt;
        own = own / kLineBytes * kLineBytes; // where the next slot starts
      }
    int64_t deepest = 0;
    bool known = true;
    func.walk([&](func::CallOp call) {
      auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee());
      if (!callee || callee.isExternal() || callee == func)
        return;
      std::optional<int64_t> below = frames(callee);
      known &= below.has_value();
      deepest = std::max(deepest, below.value_or(0));
    });
    int64_t sum;
    if (!known || llvm::AddOverflow(own, deepest, sum))
      return std::nullopt;
    return sum;
  }

  std::optional<int64_t> tensors(func::FuncOp func) {
    int64_t sum = 0;
    for (unsigned i = 0; i < func.getNumArguments(); ++i) {
      auto type = dyn_cast<ShapedType>(func.getArgumentTypes()[i]);
      auto shape = func.getArgAttrOfType<ArrayAttr>(i, "attune.shape");
      if (!type || !shape)
        continue;
      int64_t bytes = (type.getElementTypeBitWidth() + 7) / 8;
      for (Attribute size : shape) {
        std::optional<int64_t> count;
        if (auto name = dyn_cast<StringAttr>(size))
          count = evaluateSize(name, dims);
        else if (auto number = dyn_cast<IntegerAttr>(size))
          count = number.getInt();
        if (!count || llvm::MulOverflow(bytes, *count, bytes))
          return std::nullopt;
      }
      if (llvm::AddOverflow(sum, bytes, sum))
        return std::nullopt;
    }
    return sum;
  }

private:
  ModuleOp module;
  const std::map<std::string, int64_t> &dims;
};

} // namespace

std::optional<int64_t>
evaluateSize(StringRef text, const std::map<std::string, int64_t> &dims) {
  return SizeParser(text, dims).run();
}

std::optional<MemoryPlan>
planMemory(ModuleOp module, StringRef entry,
           const std::map<std::string, int64_t> &dims) {
  auto func = module.lookupSymbol<func::FuncOp>(entry);
  if (!func)
    return std::nullopt;
  Planner planner(module, dims);
  std::optional<int64_t> frames = planner.frames(func);
  std::optional<int64_t> tensors = planner.tensors(func);
  if (!frames || !tensors)
    return std::nullopt;
  return MemoryPlan{*frames, *tensors};
}

} // namespace attune
