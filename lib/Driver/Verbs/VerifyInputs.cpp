//===- VerifyInputs.cpp - Random and adversarial inputs ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VerifyInputs.h"

#include "llvm/Support/ErrorHandling.h"

#include <algorithm>
#include <cstring>

using namespace attune;
using namespace attune::driver;

namespace {
/// splitmix64: the same numbers on every machine.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}

  uint64_t next() {
    uint64_t z = state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
  }
  int64_t below(int64_t bound) {
    return int64_t(next() % uint64_t(std::max<int64_t>(bound, 1)));
  }
  /// From -1 to 1.
  double real() { return double(next() >> 11) / double(1ull << 52) - 1; }

private:
  uint64_t state;
};
} // namespace

/// A mask that the model fills in itself: given only to test padding.
static bool isMask(const runtime::ArgInfo &arg) {
  return arg.kind == runtime::ArgKind::Input &&
         arg.defaultValue == runtime::DefaultValue::Ones &&
         arg.shape.size() == 2;
}

std::vector<VerifyCase> driver::makeVerifyCases(
    const runtime::EntryInfo &entry,
    const std::vector<std::pair<std::string, int64_t>> &pinned,
    int64_t context) {
  std::map<std::string, int64_t> fixed(pinned.begin(), pinned.end());
  int64_t longest = context > 0 ? std::min<int64_t>(context, 512) : 129;
  std::vector<VerifyCase> cases;
  auto add = [&](std::string name, int64_t length, int64_t batch) {
    if (length > longest)
      return;
    VerifyCase check;
    check.name = std::move(name);
    check.pinned = fixed;
    check.length = length;
    check.batch = batch;
    cases.push_back(check);
  };
  bool hasMask = false, hasFloats = false;
  size_t openSizes = 0;
  std::vector<std::string> seen;
  for (const runtime::ArgInfo &arg : entry.args) {
    hasMask |= isMask(arg);
    if (arg.kind != runtime::ArgKind::Input)
      continue;
    hasFloats |= runtime::isFloat(arg.dtype);
    for (const runtime::DimInfo &dim : arg.shape)
      if (dim.size < 0 && dim.symbol != "batch" &&
          std::find(seen.begin(), seen.end(), dim.symbol) == seen.end()) {
        seen.push_back(dim.symbol);
        ++openSizes;
      }
  }
  // With every size asked for there is one set of lengths.
  bool asked = !seen.empty();
  for (const std::string &symbol : seen)
    asked &= fixed.count(symbol) != 0;
  if (asked) {
    add("as asked", 1, 2);
  } else {
    add("length 1", 1, 1);
    add("length 2", 2, 2);
    add("length 17", 17, 3);
    add("length 65", 65, 2);
    if (longest != 65)
      add("length " + std::to_string(longest), longest, 1);
  }
  if (hasMask) {
    add("left padding", std::min<int64_t>(longest, 33), 3);
    cases.back().padded = true;
  }
  if (openSizes > 1 && !asked) {
    add("7 against 40", 7, 2);
    cases.back().stretch = 33;
    add("40 against 7", 40, 2);
    cases.back().stretch = -33;
  }
  if (hasFloats) {
    // Scores of attention on inputs alone reach 200, far more than exp can take
    // as they are; of larger ones, rounding alone would exceed what is allowed.
    add("large values", 33, 2);
    cases.back().scale = 10;
    add("zeros", 19, 1);
    cases.back().scale = 0;
  }
  return cases;
}

/// Values of one input, as the entry wants them. Rows and columns of images
/// give each image at most `places` places.
static runtime::Buffer fill(const runtime::ArgInfo &arg,
                            const std::vector<int64_t> &shape, int64_t places,
                            const VerifyCase &check, Random &random) {
  uint64_t count = 1;
  for (int64_t size : shape)
    count *= uint64_t(size);
  runtime::Buffer buffer;
  if (!buffer.reserve(count * runtime::dtypeBytes(arg.dtype)))
    llvm::report_bad_alloc_error("no memory for inputs");
  uint8_t *bytes = buffer.data();
  unsigned size = runtime::dtypeBytes(arg.dtype);
  int64_t row = shape.empty() ? 1 : shape.back(), padding = 0, rows = 1;
  for (uint64_t i = 0; i < count; ++i) {
    if (runtime::isFloat(arg.dtype)) {
      float value = float(random.real() * check.scale);
      runtime::convertElements(runtime::DType::F32, &value, arg.dtype,
                               &bytes[i * size], 1);
    } else if (arg.dtype == runtime::DType::Bool) {
      // Padding keeps the last token of each row; other masks drop a quarter.
      int64_t column = int64_t(i) % row;
      if (column == 0)
        padding = random.below(row);
      bytes[i] = isMask(arg) ? column >= padding : random.below(4) != 0;
    } else if (arg.places) {
      int64_t value = 1 + random.below(i % 2 ? places / rows : places);
      rows = value;
      std::memcpy(&bytes[i * 8], &value, 8);
    } else {
      int64_t bound = arg.max > 0 ? arg.max : 2, value = random.below(bound);
      if (check.without == value)
        value = (value + 1) % bound;
      if (arg.ignored && random.below(4) == 0)
        value = *arg.ignored;
      std::memcpy(&bytes[i * 8], &value, 8);
    }
  }
  return buffer;
}

VerifyInputs::VerifyInputs(const runtime::EntryInfo &entry,
                           const VerifyCase &check, uint64_t seed) {
  Random random(seed * 1000003 + uint64_t(check.length) * 31 +
                uint64_t(check.padded));
  std::map<std::string, int64_t> sizes = check.pinned;
  sizes.emplace("batch", check.batch);
  int64_t next = check.length;
  for (const runtime::ArgInfo &arg : entry.args) {
    if (arg.kind != runtime::ArgKind::Input)
      continue;
    bool given = arg.defaultValue == runtime::DefaultValue::None ||
                 (check.padded && isMask(arg));
    if (!given)
      continue;
    auto sizeOf = [&](const runtime::DimInfo &dim) {
      if (dim.size >= 0)
        return dim.size;
      auto [place, isNew] = sizes.emplace(dim.symbol, next);
      if (isNew)
        next = std::max<int64_t>(check.length + check.stretch, 1);
      return place->second;
    };
    std::vector<int64_t> shape;
    for (const runtime::DimInfo &dim : arg.shape)
      shape.push_back(sizeOf(dim));
    storage.push_back(
        fill(arg, shape, arg.places ? sizeOf(*arg.places) : 0, check, random));
    inputs.push_back({arg.name, arg.dtype, shape, storage.back().data()});
  }
}

const int64_t *VerifyInputs::findIds(const std::string &name,
                                     int64_t length) const {
  for (const runtime::InputTensor &tensor : inputs)
    if (tensor.name == name && tensor.dtype == runtime::DType::I64 &&
        tensor.shape.size() == 2 && tensor.shape[1] == length)
      return static_cast<const int64_t *>(tensor.data);
  return nullptr;
}
