//===- GgufFile.h - Keys and tensors of a GGUF file -------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The published layout, versions 2 and 3, little endian: "GGUF", u32 version,
// u64 tensors, u64 keys; each key a string, a u32 type and a value; each tensor
// a string, u32 dimensions (innermost first), a u32 type and a u64 offset; then
// the data, aligned. A string is a u64 length and its bytes, an array a u32
// type, a u64 count and the elements.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_WEIGHTS_GGUFFILE_H
#define ATTUNE_WEIGHTS_GGUFFILE_H

#include "attune/Support/Diagnostics.h"
#include "attune/Weights/TensorEncoding.h"

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attune::gguf {

/// Types of values, by their numbers in the file.
enum class Kind : uint32_t {
  U8,
  I8,
  U16,
  I16,
  U32,
  I32,
  F32,
  Bool,
  String,
  Array,
  U64,
  I64,
  F64
};

/// A value, or the elements of an array, in the mapped file. All lengths in it
/// are checked.
struct Value {
  Kind kind = Kind::U32;
  Kind element = Kind::U32; ///< of an array
  uint64_t count = 0;       ///< of an array
  uint64_t offset = 0;      ///< in the file, of the value or the first element
  const uint8_t *data = nullptr;

  bool isArray() const { return kind == Kind::Array; }
  bool isString() const { return kind == Kind::String; }
  /// "an array of strings", ...: for messages.
  std::string describe() const;
};

/// Calls `use(index, text)` for each string of an array of such.
template <typename Use> void eachString(const Value &array, const Use &use);

/// The name of the model in a file, or in the parts that this is one of.
std::string modelName(const std::string &path);
/// The models in a folder, of each the file or its first part, sorted.
std::vector<std::string> modelsIn(const std::string &folder);
/// The files in a folder that are parts of models and see ("mmproj"), sorted.
std::vector<std::string> sightsIn(const std::string &folder);

/// A model, and the file of its part that sees; empty: there is none.
struct Pair {
  std::string model, sight;
};
/// Of "MODEL,SIGHT", unless a file has this name.
Pair splitPair(const std::string &path);

/// A sound file, or all parts of one, mapped for as long as this object lives.
class File {
public:
  /// Any part opens all; keys are those of the first. Of a pair it is the
  /// model. On failure `error` starts with the path and says at which byte, key
  /// or tensor the file is wrong.
  bool open(const std::string &path, std::string &error);

  const std::string &path() const { return filePath; }
  /// The part that sees, if the path named one.
  const File *sight() const { return seeing.get(); }
  const std::map<std::string, Value, std::less<>> &allKeys() const {
    return keys;
  }
  const Value *find(std::string_view key) const;
  /// The value of a key of that type; nothing if it is absent or of another.
  std::optional<std::string_view> text(std::string_view key) const;
  std::optional<int64_t> integer(std::string_view key) const;
  std::optional<double> real(std::string_view key) const;
  std::optional<bool> flag(std::string_view key) const;
  /// An array of numbers or truth values as numbers, if it is one.
  std::optional<std::vector<double>> numbers(std::string_view key) const;

  /// With the names of the file, shapes outermost first.
  const std::vector<CheckpointTensor> &tensors() const { return infos; }
  const CheckpointTensor *findTensor(std::string_view name) const;
  /// As runtime::MappedFile.
  void release(const uint8_t *first, uint64_t count) const {
    file.release(first, count);
    for (const File &part : rest)
      part.release(first, count);
    if (seeing)
      seeing->release(first, count);
  }

private:
  bool openOne(const std::string &path, std::string &error);
  bool openParts(const std::vector<std::string> &paths, std::string &error);
  bool checkPart(size_t number, size_t count, std::string &error) const;
  bool sortTensors(std::string &error);
  bool parse(std::string &error);
  bool readTensors(class Cursor &cursor, uint64_t count);
  bool placeTensors(uint64_t dataStart, uint64_t alignment, std::string &error);

  std::string filePath;
  runtime::MappedFile file;
  std::map<std::string, Value, std::less<>> keys;
  std::vector<CheckpointTensor> infos;
  std::vector<File> rest; ///< the parts after this one
  std::unique_ptr<File> seeing;
};

/// A type of tensors.
struct BlockType {
  uint32_t number;
  const char *name;
  int64_t values; ///< in a block
  int64_t bytes;  ///< of a block
  /// Null for types that need no decoding, of type `dtype`.
  const TensorEncoding *encoding;
  runtime::DType dtype;
  bool readable; ///< false: known by name alone
};
/// Null for a number that no published version has.
const BlockType *findBlockType(uint32_t number);

/// A string that starts at `data`, whose length was checked.
std::string_view stringAt(const uint8_t *data);

template <typename Use> void eachString(const Value &array, const Use &use) {
  const uint8_t *at = array.data;
  for (uint64_t i = 0; i < array.count; ++i) {
    std::string_view text = stringAt(at);
    use(i, text);
    at += 8 + text.size();
  }
}

/// The file's tensors under Hugging Face's names, in which {e} stands for the
/// expert of a stack. Tables of rotary factors, which the configuration has,
/// are left out; others that nobody knows keep their names. Those of a part
/// that sees are behind them. `encodings` gets those of tensors that are made
/// of several.
std::deque<CheckpointTensor>
renameTensors(const File &file,
              std::vector<std::unique_ptr<TensorEncoding>> &encodings);

/// Opens a file; reports what is wrong with it.
std::optional<File> openFile(const std::string &path, DiagnosticEngine &diags);
/// A place that is the whole file.
SourceLocation atPath(const std::string &path);

} // namespace attune::gguf

namespace attune {

/// Whether a file starts as GGUF does.
bool isGgufFile(const std::string &path);

} // namespace attune

#endif // ATTUNE_WEIGHTS_GGUFFILE_H
