//===- Datum.cpp - Values that the interpreter computes with ----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Datum.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace attune;
using namespace attune::validation;
using namespace mlir;

double validation::roundTo(Type type, double value) {
  if (type.isF64())
    return value;
  if (type.isF32())
    return float(value);
  if (auto narrow = dyn_cast<FloatType>(type)) {
    llvm::APFloat exact(value);
    bool losesInfo;
    exact.convert(narrow.getFloatSemantics(),
                  llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    exact.convert(llvm::APFloat::IEEEdouble(),
                  llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    return exact.convertToDouble();
  }
  return value;
}

unsigned validation::bitsOf(Type type) {
  return isa<IndexType>(type) || !type.isIntOrFloat()
             ? 64
             : type.getIntOrFloatBitWidth();
}

int64_t validation::bytesOf(Type type) {
  return int64_t(llvm::divideCeil(bitsOf(type), 8));
}

int64_t validation::wrapTo(Type type, int64_t value) {
  unsigned bits = bitsOf(type);
  if (bits == 1)
    return value & 1;
  return bits >= 64 ? value : llvm::SignExtend64(uint64_t(value), bits);
}

uint64_t validation::unsignedOf(Type type, int64_t value) {
  unsigned bits = bitsOf(type);
  return bits >= 64 ? uint64_t(value)
                    : uint64_t(value) & ((uint64_t(1) << bits) - 1);
}

template <typename T> static T get(const uint8_t *from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

Scalar validation::loadScalar(Type type, const uint8_t *from) {
  if (type.isF32())
    return real(get<float>(from));
  if (type.isF64())
    return real(get<double>(from));
  if (auto narrow = dyn_cast<FloatType>(type)) {
    bool byte = narrow.getWidth() == 8;
    llvm::APFloat value(narrow.getFloatSemantics(),
                        byte ? llvm::APInt(8, *from)
                             : llvm::APInt(16, get<uint16_t>(from)));
    bool losesInfo;
    value.convert(llvm::APFloat::IEEEdouble(),
                  llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    return real(value.convertToDouble());
  }
  switch (bytesOf(type)) {
  case 1:
    return whole(wrapTo(type, get<int8_t>(from)));
  case 2:
    return whole(wrapTo(type, get<int16_t>(from)));
  case 4:
    return whole(wrapTo(type, get<int32_t>(from)));
  default:
    return whole(get<int64_t>(from));
  }
}

void validation::storeScalar(Type type, uint8_t *to, Scalar value) {
  if (type.isF32()) {
    float narrow = float(value.f);
    std::memcpy(to, &narrow, 4);
  } else if (type.isF64()) {
    std::memcpy(to, &value.f, 8);
  } else if (auto narrow = dyn_cast<FloatType>(type)) {
    llvm::APFloat exact(value.f);
    bool losesInfo;
    exact.convert(narrow.getFloatSemantics(),
                  llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    uint16_t bits = uint16_t(exact.bitcastToAPInt().getZExtValue());
    if (narrow.getWidth() == 8)
      *to = uint8_t(bits);
    else
      std::memcpy(to, &bits, 2);
  } else {
    std::memcpy(to, &value.i, bytesOf(type));
  }
}

Scalar validation::poison(Type type) {
  if (isa<FloatType>(type))
    return real(std::numeric_limits<double>::quiet_NaN());
  return whole(wrapTo(type, -1));
}

int64_t validation::volume(llvm::ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

bool validation::advance(llvm::MutableArrayRef<int64_t> index,
                         llvm::ArrayRef<int64_t> shape) {
  for (size_t d = shape.size(); d-- > 0;) {
    if (++index[d] < shape[d])
      return true;
    index[d] = 0;
  }
  return false;
}

int64_t validation::flatten(llvm::ArrayRef<int64_t> index,
                            llvm::ArrayRef<int64_t> shape) {
  int64_t at = 0;
  for (size_t d = 0; d < shape.size(); ++d)
    at = at * shape[d] + index[d];
  return at;
}

Datum validation::allocate(Type element, llvm::ArrayRef<int64_t> shape) {
  auto *view = new View;
  view->memory = new Memory(volume(shape) * bytesOf(element));
  view->base = view->memory->bytes.data();
  view->shape.assign(shape.begin(), shape.end());
  view->strides.assign(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;)
    view->strides[d - 1] = view->strides[d] * shape[d];
  return Datum(view);
}

uint8_t *validation::addressOf(const View &view, Type element,
                               llvm::ArrayRef<int64_t> index) {
  int64_t at = view.offset;
  for (size_t d = 0; d < index.size(); ++d) {
    if (index[d] < 0 || index[d] >= view.shape[d])
      return nullptr;
    at += index[d] * view.strides[d];
  }
  int64_t size = bytesOf(element);
  uint8_t *place = view.base + at * size;
  if (view.memory) {
    const std::vector<uint8_t> &bytes = view.memory->bytes;
    if (place < bytes.data() || place + size > bytes.data() + bytes.size())
      return nullptr;
  }
  return place;
}

/// Calls `singles` for each row of f32 that lies in memory: its place, the
/// number of its first element, its length and the bytes between two. For other
/// rows it calls `other` for each element in memory.
static void forEachElement(
    const View &view, Type element,
    llvm::function_ref<void(uint8_t *, size_t, int64_t, int64_t)> singles,
    llvm::function_ref<void(uint8_t *, size_t)> other) {
  if (volume(view.shape) == 0)
    return;
  Shape index(view.shape.size(), 0);
  int64_t length = index.empty() ? 1 : view.shape.back();
  int64_t stride = index.empty() ? 1 : view.strides.back();
  Shape rows(view.shape);
  if (!rows.empty())
    rows.back() = 1;
  size_t i = 0;
  do {
    uint8_t *first = addressOf(view, element, index), *last = first;
    if (!index.empty()) {
      index.back() = length - 1;
      last = addressOf(view, element, index);
      index.back() = 0;
    }
    if (first && last && element.isF32()) {
      singles(first, i, length, stride * 4);
    } else {
      for (int64_t j = 0; j < length; ++j) {
        if (!index.empty())
          index.back() = j;
        if (uint8_t *place = addressOf(view, element, index))
          other(place, i + j);
      }
      if (!index.empty())
        index.back() = 0;
    }
    i += length;
  } while (advance(index, rows));
}

Datum validation::readView(const View &view, Type element) {
  Datum result = makeArray(view.shape, poison(element));
  std::vector<Scalar> &data = result.array().data;
  forEachElement(
      view, element,
      [&](uint8_t *from, size_t at, int64_t count, int64_t step) {
        for (int64_t j = 0; j < count; ++j)
          data[at + j] = real(get<float>(from + j * step));
      },
      [&](uint8_t *from, size_t at) { data[at] = loadScalar(element, from); });
  return result;
}

void validation::writeView(const View &view, Type element, const Array &array) {
  forEachElement(
      view, element,
      [&](uint8_t *to, size_t at, int64_t count, int64_t step) {
        for (int64_t j = 0; j < count; ++j) {
          auto narrow = float(array.data[at + j].f);
          std::memcpy(to + j * step, &narrow, sizeof(narrow));
        }
      },
      [&](uint8_t *to, size_t at) {
        storeScalar(element, to, array.data[at]);
      });
}
