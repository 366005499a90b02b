//===- Fuzzing.h - What fuzz targets share ----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A target is one function, LLVMFuzzerTestOneInput, which libFuzzer calls with
// one input after the other. See README.md.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_TEST_FUZZ_FUZZING_H
#define ATTUNE_TEST_FUZZ_FUZZING_H

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include <unistd.h>

/// Ends the run with a finding unless the property holds.
#define FUZZ_REQUIRE(property)                                                 \
  do {                                                                         \
    if (!(property)) {                                                         \
      std::fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__,   \
                   #property);                                                 \
      std::abort();                                                            \
    }                                                                          \
  } while (false)

namespace attune::fuzzing {

inline std::string_view asText(const uint8_t *data, size_t size) {
  return {reinterpret_cast<const char *>(data), size};
}

/// Takes what comes before `separator` off `text`: all of it if there is none.
inline std::string_view takePart(std::string_view &text, char separator) {
  size_t end = text.find(separator);
  std::string_view part = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return part;
}

/// A folder that lives as long as the process, for readers that want files.
class InputFolder {
public:
  InputFolder() {
    const char *base = std::getenv("TMPDIR");
    path = std::string(base && *base ? base : "/tmp") + "/attune-fuzz-XXXXXX";
    FUZZ_REQUIRE(mkdtemp(path.data()));
  }
  ~InputFolder() {
    for (const std::string *name : {&first, &second})
      if (!name->empty())
        unlink(name->c_str());
    rmdir(path.c_str());
  }

  /// Writes a file and returns its path; a folder takes two names at most.
  std::string write(const char *name, std::string_view text) {
    std::string place = path + "/" + name;
    std::string &slot = first.empty() || first == place ? first : second;
    FUZZ_REQUIRE(slot.empty() || slot == place);
    slot = place;
    FILE *file = std::fopen(place.c_str(), "wb");
    FUZZ_REQUIRE(file);
    FUZZ_REQUIRE(std::fwrite(text.data(), 1, text.size(), file) == text.size());
    FUZZ_REQUIRE(std::fclose(file) == 0);
    return place;
  }

  std::string path;

private:
  std::string first, second;
};

inline std::string readFile(const std::string &path) {
  std::string text;
  FILE *file = std::fopen(path.c_str(), "rb");
  FUZZ_REQUIRE(file);
  char buffer[65536];
  while (size_t read = std::fread(buffer, 1, sizeof(buffer), file))
    text.append(buffer, read);
  std::fclose(file);
  return text;
}

} // namespace attune::fuzzing

#endif // ATTUNE_TEST_FUZZ_FUZZING_H
