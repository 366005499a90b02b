//===- Files.h - Files and diagnostics for tests ----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_TEST_UNIT_IMPORT_FILES_H
#define ATTUNE_TEST_UNIT_IMPORT_FILES_H

#include "attune/Runtime/Safetensors.h"
#include "attune/Support/Diagnostics.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>
#include <vector>

namespace attune::test {

/// Keeps diagnostics as "line:column: message", errors and warnings alike.
struct Recorder final : DiagnosticEngine {
  void report(const Diagnostic &diagnostic) override {
    numErrors += diagnostic.severity == Severity::Error;
    std::string place;
    if (diagnostic.location.file && !diagnostic.location.line)
      place = diagnostic.location.file->path + ": ";
    if (diagnostic.location.line)
      place = std::to_string(diagnostic.location.line) + ":" +
              std::to_string(diagnostic.location.column) + ": ";
    messages.push_back(place + diagnostic.message);
  }
  /// Whether some message contains all of `parts`.
  bool saw(std::initializer_list<const char *> parts) const {
    for (const std::string &message : messages) {
      bool all = true;
      for (const char *part : parts)
        all &= message.find(part) != std::string::npos;
      if (all)
        return true;
    }
    return false;
  }
  std::string all() const {
    std::string text;
    for (const std::string &message : messages)
      text += message + "\n";
    return text;
  }
  std::vector<std::string> messages;
};

/// A folder that goes away with the test.
class TempFolder {
public:
  TempFolder() {
    std::string name =
        (std::filesystem::temp_directory_path() / "attune-XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::string operator/(const std::string &name) const {
    return (path / name).string();
  }
  void write(const std::string &name, const std::string &text) const {
    std::ofstream(path / name, std::ios::binary) << text;
  }
  std::string str() const { return path.string(); }

private:
  std::filesystem::path path;
};

/// A tensor to write; element i holds `i + first` in its type (floats only).
struct Tensor {
  std::string name;
  std::vector<int64_t> shape;
  runtime::DType dtype = runtime::DType::F32;
  float first = 0;
};

inline void writeTensors(const std::string &path,
                         const std::vector<Tensor> &tensors) {
  std::vector<runtime::TensorDecl> decls;
  for (const Tensor &tensor : tensors)
    decls.push_back({tensor.name, tensor.dtype, tensor.shape});
  runtime::SafetensorsWriter writer;
  std::string error;
  ASSERT_TRUE(writer.create(path, decls, error)) << error;
  for (size_t t = 0; t < tensors.size(); ++t) {
    runtime::DType dtype = tensors[t].dtype;
    uint64_t size = runtime::dtypeBytes(dtype);
    for (uint64_t i = 0; i < writer.bytes(t) / size; ++i) {
      float value = tensors[t].first + float(i);
      runtime::convertElements(runtime::DType::F32, &value, dtype,
                               writer.data(t) + i * size, 1);
    }
  }
  ASSERT_TRUE(writer.commit(error)) << error;
}

} // namespace attune::test

#endif // ATTUNE_TEST_UNIT_IMPORT_FILES_H
