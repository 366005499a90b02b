//===- GgufFile.cpp - Keys and tensors of a GGUF file -----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Weights/GgufFile.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace attune::gguf {

using runtime::formatShape;

/// Published files have some dozens of keys and some thousands of tensors.
static constexpr uint64_t kMostKeys = 1 << 16, kMostTensors = 1 << 20;
static constexpr uint64_t kLongestName = 4096;
static constexpr uint32_t kMostDimensions = 4;

static std::string quoted(std::string_view name) {
  std::string text = "'";
  for (char c : name.substr(0, 200))
    text += static_cast<unsigned char>(c) < 32 || c == 127 ? '?' : c;
  return text + (name.size() > 200 ? "...'" : "'");
}

template <typename T> static T loadAt(const uint8_t *data) {
  T value;
  std::memcpy(&value, data, sizeof(T));
  return value;
}

std::string_view stringAt(const uint8_t *data) {
  return {reinterpret_cast<const char *>(data) + 8,
          static_cast<size_t>(loadAt<uint64_t>(data))};
}

/// Bytes of a value of fixed size; 0 of the others.
static uint64_t sizeOf(Kind kind) {
  switch (kind) {
  case Kind::U8:
  case Kind::I8:
  case Kind::Bool:
    return 1;
  case Kind::U16:
  case Kind::I16:
    return 2;
  case Kind::U32:
  case Kind::I32:
  case Kind::F32:
    return 4;
  case Kind::U64:
  case Kind::I64:
  case Kind::F64:
    return 8;
  case Kind::String:
  case Kind::Array:
    break;
  }
  return 0;
}

static const char *nameOf(Kind kind) {
  static constexpr const char *names[] = {
      "u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
      "bool", "string", "array", "u64", "i64", "f64"};
  return names[static_cast<size_t>(kind)];
}

std::string Value::describe() const {
  return isArray() ? std::string("an array of ") + nameOf(element)
                   : std::string("a value of type ") + nameOf(kind);
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// Reads forward; every length is compared with what is left before it is used.
class Cursor {
public:
  Cursor(const uint8_t *data, uint64_t size) : data(data), size(size) {}

  uint64_t at = 0;
  std::string error; ///< what is wrong, with the byte

  uint64_t left() const { return size - at; }
  const uint8_t *here() const { return data + at; }
  bool fail(uint64_t byte, const std::string &what) {
    error = "byte " + std::to_string(byte) + ": " + what;
    return false;
  }
  bool need(uint64_t bytes, const std::string &what) {
    if (bytes <= left())
      return true;
    return fail(at, what + " takes " + std::to_string(bytes) +
                        " bytes, but the file ends at byte " +
                        std::to_string(size) + "; it may be cut short");
  }
  template <typename T> bool read(T &value, const std::string &what) {
    if (!need(sizeof(T), what))
      return false;
    value = loadAt<T>(here());
    at += sizeof(T);
    return true;
  }
  bool readString(std::string_view &text, const std::string &what) {
    uint64_t length, start = at;
    if (!read(length, "the length of " + what))
      return false;
    if (length > left())
      return fail(start, what + " is said to have " + std::to_string(length) +
                             " bytes, but " + std::to_string(left()) +
                             " are left in the file");
    text = {reinterpret_cast<const char *>(here()),
            static_cast<size_t>(length)};
    at += length;
    return true;
  }
  bool readKind(Kind &kind, const std::string &what) {
    uint32_t number;
    uint64_t start = at;
    if (!read(number, "the type of " + what))
      return false;
    if (number > static_cast<uint32_t>(Kind::F64))
      return fail(start, what + " has the unknown type " +
                             std::to_string(number) + ", expected 0 to 12");
    kind = static_cast<Kind>(number);
    return true;
  }
  bool readValue(Value &value, const std::string &what);
  bool readName(std::string_view &name, const std::string &what);

private:
  bool skipElements(const Value &array, const std::string &what);

  const uint8_t *data;
  uint64_t size;
};

bool Cursor::skipElements(const Value &array, const std::string &what) {
  if (array.element == Kind::String) {
    std::string_view text;
    for (uint64_t i = 0; i < array.count; ++i)
      if (left() < 8 || loadAt<uint64_t>(here()) > left() - 8)
        return readString(text, "element " + std::to_string(i) + " of " + what);
      else
        at += 8 + loadAt<uint64_t>(here());
    return true;
  }
  uint64_t each = sizeOf(array.element);
  if (array.count > left() / each)
    return fail(array.offset - 8,
                what + " is said to have " + std::to_string(array.count) +
                    " elements of type " + nameOf(array.element) + ", but " +
                    std::to_string(left()) + " bytes are left in the file");
  at += array.count * each;
  return true;
}

bool Cursor::readValue(Value &value, const std::string &what) {
  uint64_t start = at;
  if (!readKind(value.kind, what))
    return false;
  value.offset = at;
  value.data = here();
  if (value.isString()) {
    std::string_view text;
    return readString(text, what);
  }
  if (!value.isArray()) {
    if (!need(sizeOf(value.kind), what))
      return false;
    at += sizeOf(value.kind);
    return true;
  }
  if (!readKind(value.element, what))
    return false;
  if (value.element == Kind::Array)
    return fail(start, what + " is an array of arrays, which no key that is "
                              "read here is");
  if (!read(value.count, "the number of elements of " + what))
    return false;
  value.offset = at;
  value.data = here();
  return skipElements(value, what);
}

bool Cursor::readName(std::string_view &name, const std::string &what) {
  uint64_t start = at;
  if (!readString(name, what))
    return false;
  if (name.empty() || name.size() > kLongestName)
    return fail(start, what + " has " + std::to_string(name.size()) +
                           " bytes, expected 1 to " +
                           std::to_string(kLongestName));
  return true;
}

bool File::readTensors(Cursor &cursor, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    std::string_view name;
    uint64_t start = cursor.at;
    if (!cursor.readName(name, "the name of tensor " + std::to_string(i)))
      return false;
    std::string what = "tensor " + quoted(name);
    CheckpointTensor info;
    info.name = std::string(name);
    uint32_t dimensions;
    if (!cursor.read(dimensions, "the number of dimensions of " + what))
      return false;
    if (dimensions < 1 || dimensions > kMostDimensions)
      return cursor.fail(cursor.at - 4, what + " has " +
                                            std::to_string(dimensions) +
                                            " dimensions, expected 1 to " +
                                            std::to_string(kMostDimensions));
    for (uint32_t d = 0; d < dimensions; ++d) {
      uint64_t size;
      if (!cursor.read(size, "dimension " + std::to_string(d) + " of " + what))
        return false;
      if (size < 1 || size > uint64_t(INT64_MAX))
        return cursor.fail(cursor.at - 8, what + " has the dimension " +
                                              std::to_string(size) +
                                              ", expected 1 or more");
      info.shape.insert(info.shape.begin(), static_cast<int64_t>(size));
    }
    uint32_t number;
    if (!cursor.read(number, "the type of " + what))
      return false;
    const BlockType *type = findBlockType(number);
    if (!type)
      return cursor.fail(cursor.at - 4, what + " is of the unknown type " +
                                            std::to_string(number));
    if (!type->readable)
      return cursor.fail(cursor.at - 4,
                         what + " is of type " + type->name +
                             ", which is not read; quantize the model anew, "
                             "as Q4_0 or Q8_0 for example");
    if (info.shape.back() % type->values)
      return cursor.fail(start, what + " has rows of " +
                                    std::to_string(info.shape.back()) +
                                    " values, expected a multiple of the " +
                                    std::to_string(type->values) +
                                    " of a block of " + type->name);
    std::vector<int64_t> blocks = info.shape;
    blocks.back() /= type->values;
    uint64_t values;
    if (!runtime::byteSize(blocks, type->bytes, info.bytes) ||
        !runtime::byteSize(info.shape, 8, values) ||
        values > uint64_t(INT64_MAX))
      return cursor.fail(start, what + " of shape " + formatShape(info.shape) +
                                    " is too large");
    info.encoding = type->encoding;
    info.dtype = type->dtype;
    if (!cursor.read(info.offset, "the offset of " + what))
      return false;
    infos.push_back(std::move(info));
  }
  return true;
}

bool File::placeTensors(uint64_t dataStart, uint64_t alignment,
                        std::string &error) {
  uint64_t size = file.size() - std::min(dataStart, file.size());
  for (CheckpointTensor &info : infos) {
    auto fail = [&](const std::string &what) {
      error = "tensor " + quoted(info.name) + ": " + what;
      return false;
    };
    if (info.offset % alignment)
      return fail("its offset " + std::to_string(info.offset) +
                  " is no multiple of the alignment " +
                  std::to_string(alignment));
    if (info.offset > size || info.bytes > size - info.offset)
      return fail("its " + std::to_string(info.bytes) + " bytes at offset " +
                  std::to_string(info.offset) + " end beyond the " +
                  std::to_string(size) +
                  " bytes of data; the file may be cut short");
    info.offset += dataStart;
    info.data = file.data() + info.offset;
  }
  std::vector<const CheckpointTensor *> order;
  for (const CheckpointTensor &info : infos)
    order.push_back(&info);
  std::sort(order.begin(), order.end(),
            [](auto *a, auto *b) { return a->offset < b->offset; });
  for (size_t i = 1; i < order.size(); ++i)
    if (order[i - 1]->offset + order[i - 1]->bytes > order[i]->offset) {
      error = "tensors " + quoted(order[i - 1]->name) + " and " +
              quoted(order[i]->name) + " overlap at byte " +
              std::to_string(order[i]->offset);
      return false;
    }
  return sortTensors(error);
}

bool File::sortTensors(std::string &error) {
  std::sort(infos.begin(), infos.end(),
            [](auto &a, auto &b) { return a.name < b.name; });
  for (size_t i = 1; i < infos.size(); ++i)
    if (infos[i].name == infos[i - 1].name) {
      error = "tensor " + quoted(infos[i].name) + " is there twice";
      return false;
    }
  return true;
}

bool File::parse(std::string &error) {
  Cursor cursor(file.data(), file.size());
  auto failed = [&] {
    error = cursor.error;
    return false;
  };
  if (file.size() < 4 || std::memcmp(file.data(), "GGUF", 4) != 0) {
    error = "byte 0: not a GGUF file: it does not start with 'GGUF'";
    return false;
  }
  cursor.at = 4;
  uint32_t version;
  if (!cursor.read(version, "the version"))
    return failed();
  if (version != 2 && version != 3) {
    bool swapped = (version & 0xffff) == 0;
    error = "byte 4: " +
            (swapped ? std::string("a file in big-endian order")
                     : "version " + std::to_string(version)) +
            " is not supported; expected version 2 or 3 in little-endian order";
    return false;
  }
  uint64_t numTensors, numKeys;
  if (!cursor.read(numTensors, "the number of tensors") ||
      !cursor.read(numKeys, "the number of keys"))
    return failed();
  if (numTensors > kMostTensors || numKeys > kMostKeys) {
    error = "byte 8: " + std::to_string(numTensors) + " tensors and " +
            std::to_string(numKeys) + " keys, expected at most " +
            std::to_string(kMostTensors) + " and " + std::to_string(kMostKeys);
    return false;
  }
  for (uint64_t i = 0; i < numKeys; ++i) {
    std::string_view name;
    uint64_t start = cursor.at;
    Value value;
    if (!cursor.readName(name, "the name of key " + std::to_string(i)) ||
        !cursor.readValue(value, "key " + quoted(name)))
      return failed();
    if (!keys.emplace(name, value).second) {
      cursor.fail(start, "key " + quoted(name) + " is there twice");
      return failed();
    }
  }
  uint64_t alignment = 32;
  if (const Value *value = find("general.alignment")) {
    std::optional<int64_t> number = integer("general.alignment");
    if (!number || *number < 8 || *number > (1 << 20) ||
        (*number & (*number - 1))) {
      error = "byte " + std::to_string(value->offset) +
              ": key 'general.alignment' is " +
              (number ? std::to_string(*number) : value->describe()) +
              ", expected a power of two from 8 to 1048576";
      return false;
    }
    alignment = static_cast<uint64_t>(*number);
  }
  if (!readTensors(cursor, numTensors))
    return failed();
  uint64_t dataStart = (cursor.at + alignment - 1) / alignment * alignment;
  return placeTensors(dataStart, alignment, error);
}

bool File::openOne(const std::string &path, std::string &error) {
  filePath = path;
  if (!file.open(path, error))
    return false;
  std::string reason;
  if (parse(reason))
    return true;
  infos.clear();
  keys.clear();
  error = path + ": " + reason;
  return false;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

const Value *File::find(std::string_view key) const {
  auto it = keys.find(key);
  return it == keys.end() ? nullptr : &it->second;
}

const CheckpointTensor *File::findTensor(std::string_view name) const {
  auto it = std::lower_bound(infos.begin(), infos.end(), name,
                             [](const CheckpointTensor &info,
                                std::string_view n) { return info.name < n; });
  return it == infos.end() || it->name != name ? nullptr : &*it;
}

/// Null for a u64 beyond i64, which no number that means something is.
static std::optional<int64_t> integerAt(Kind kind, const uint8_t *data) {
  switch (kind) {
  case Kind::U8:
  case Kind::Bool:
    return *data;
  case Kind::I8:
    return loadAt<int8_t>(data);
  case Kind::U16:
    return loadAt<uint16_t>(data);
  case Kind::I16:
    return loadAt<int16_t>(data);
  case Kind::U32:
    return loadAt<uint32_t>(data);
  case Kind::I32:
    return loadAt<int32_t>(data);
  case Kind::U64:
    if (loadAt<uint64_t>(data) <= uint64_t(INT64_MAX))
      return loadAt<int64_t>(data);
    return std::nullopt;
  case Kind::I64:
    return loadAt<int64_t>(data);
  default:
    return std::nullopt;
  }
}

static std::optional<double> realAt(Kind kind, const uint8_t *data) {
  double value;
  if (kind == Kind::F32)
    value = loadAt<float>(data);
  else if (kind == Kind::F64)
    value = loadAt<double>(data);
  else if (std::optional<int64_t> whole = integerAt(kind, data))
    value = static_cast<double>(*whole);
  else
    return std::nullopt;
  return std::isfinite(value) ? std::optional<double>(value) : std::nullopt;
}

std::optional<std::string_view> File::text(std::string_view key) const {
  const Value *value = find(key);
  if (!value || !value->isString())
    return std::nullopt;
  return stringAt(value->data);
}

std::optional<int64_t> File::integer(std::string_view key) const {
  const Value *value = find(key);
  return value && value->kind != Kind::Bool
             ? integerAt(value->kind, value->data)
             : std::nullopt;
}

std::optional<double> File::real(std::string_view key) const {
  const Value *value = find(key);
  return value && value->kind != Kind::Bool ? realAt(value->kind, value->data)
                                            : std::nullopt;
}

std::optional<bool> File::flag(std::string_view key) const {
  const Value *value = find(key);
  if (!value || value->kind != Kind::Bool)
    return std::nullopt;
  return *value->data != 0;
}

std::optional<std::vector<double>> File::numbers(std::string_view key) const {
  const Value *value = find(key);
  if (!value || !value->isArray() || value->element == Kind::String)
    return std::nullopt;
  std::vector<double> result;
  for (uint64_t i = 0; i < value->count; ++i) {
    std::optional<double> number =
        realAt(value->element, value->data + i * sizeOf(value->element));
    if (!number)
      return std::nullopt;
    result.push_back(*number);
  }
  return result;
}

} // namespace attune::gguf
