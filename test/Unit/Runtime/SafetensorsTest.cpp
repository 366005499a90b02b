//===- SafetensorsTest.cpp - Tensor files, good and bad -------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/Safetensors.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace attune::runtime;

namespace {

/// A folder that disappears with the test.
class Safetensors : public ::testing::Test {
protected:
  void SetUp() override {
    char name[] = "/tmp/attune-safetensors-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder = name;
  }
  void TearDown() override {
    std::string command = "rm -rf " + folder;
    ASSERT_EQ(std::system(command.c_str()), 0);
  }
  std::string write(const std::string &bytes) {
    std::string path = folder + "/t.safetensors";
    FILE *file = std::fopen(path.c_str(), "wb");
    std::fwrite(bytes.data(), 1, bytes.size(), file);
    std::fclose(file);
    return path;
  }
  static std::string encode(const std::string &header,
                            const std::string &data) {
    std::string out;
    for (int i = 0; i < 8; ++i)
      out += static_cast<char>(uint64_t(header.size()) >> (8 * i));
    return out + header + data;
  }
  std::string errorOf(const std::string &bytes) {
    SafetensorsFile file;
    std::string error;
    return file.open(write(bytes), error) ? "" : error;
  }
  unsigned countFiles() {
    unsigned count = 0;
    DIR *dir = opendir(folder.c_str());
    while (dirent *entry = readdir(dir))
      count += entry->d_type == DT_REG;
    closedir(dir);
    return count;
  }
  std::string folder;
};

TEST_F(Safetensors, WritesAndReadsBack) {
  std::string path = folder + "/out.safetensors", error;
  SafetensorsWriter writer;
  ASSERT_TRUE(writer.create(path,
                            {{"mask", DType::Bool, {3}},
                             {"logits", DType::F32, {2, 2}},
                             {"ids", DType::I64, {1}},
                             {"none", DType::F32, {0, 7}},
                             {"scalar", DType::F16, {}}},
                            error, {{"format", "pt"}}))
      << error;
  EXPECT_EQ(countFiles(), 1u); // the temporary
  EXPECT_NE(access(path.c_str(), F_OK), 0);
  float values[] = {1, 2, 3, 4};
  std::memcpy(writer.data(1), values, 16);
  std::memcpy(writer.data(0), "\1\0\1", 3);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(writer.data(1)) % 4, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(writer.data(2)) % 64, 0u);
  ASSERT_TRUE(writer.commit(error)) << error;
  EXPECT_EQ(countFiles(), 1u);

  SafetensorsFile file;
  ASSERT_TRUE(file.open(path, error)) << error;
  ASSERT_EQ(file.tensors().size(), 5u);
  EXPECT_EQ(file.tensors()[0].name, "ids");
  EXPECT_EQ(file.metadata()[0].second, "pt");
  const TensorInfo *logits = file.find("logits");
  ASSERT_NE(logits, nullptr);
  EXPECT_EQ(logits->shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(std::memcmp(logits->data, values, 16), 0);
  EXPECT_EQ(file.find("none")->bytes, 0u);
  EXPECT_EQ(file.find("nothing"), nullptr);
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  mode_t mask = umask(0);
  umask(mask);
  EXPECT_EQ(info.st_mode & 0777, 0666 & ~mask);
}

TEST_F(Safetensors, AbandonedOutputLeavesNothing) {
  std::string path = folder + "/out.safetensors", error;
  {
    SafetensorsWriter writer;
    ASSERT_TRUE(writer.create(path, {{"x", DType::F32, {4}}}, error));
  }
  EXPECT_EQ(countFiles(), 0u);
  SafetensorsWriter writer;
  EXPECT_FALSE(writer.create(folder, {}, error));
  EXPECT_NE(error.find("is a folder"), std::string::npos);
  EXPECT_FALSE(writer.create(folder + "/no/such/x", {}, error));
  EXPECT_NE(error.find("No such file"), std::string::npos);
  EXPECT_FALSE(writer.create(
      path, {{"x", DType::F32, {INT64_MAX / 2, INT64_MAX / 2}}}, error));
  EXPECT_NE(error.find("too large"), std::string::npos);
  EXPECT_EQ(countFiles(), 0u);
  ASSERT_TRUE(writer.create("/dev/null", {{"x", DType::F32, {4}}}, error));
  EXPECT_TRUE(writer.commit(error)) << error;
}

TEST_F(Safetensors, NamesWhatIsWrong) {
  auto expect = [&](const std::string &bytes, const char *message) {
    EXPECT_NE(errorOf(bytes).find(message), std::string::npos)
        << "got: " << errorOf(bytes) << "\nwanted: " << message;
  };
  auto one = [&](const std::string &entry, size_t bytes) {
    return encode("{\"x\":" + entry + "}", std::string(bytes, 'z'));
  };
  EXPECT_EQ(
      errorOf(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})", 8)),
      "");
  EXPECT_EQ(errorOf(encode("{}", "")), "");
  expect("", "fewer than 8 bytes");
  expect("1234567", "fewer than 8 bytes");
  expect(std::string(8, '\xFF'), "announces a header");
  expect(encode("", ""), "does not start with '{'");
  expect(encode("[1]", ""), "does not start with '{'");
  expect(encode("{\"x\":}", ""), "not valid JSON");
  expect(encode(R"({"x":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},)"
                R"("x":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})",
                ""),
         "names 'x' twice");
  expect(encode(std::string(500, '{'), ""), "not valid JSON");
  expect(one("7", 0), "tensor 'x': expected an object, found an integer");
  expect(one(R"({"shape":[2],"data_offsets":[0,8]})", 8), "no 'dtype'");
  expect(one(R"({"dtype":"F31","shape":[2],"data_offsets":[0,8]})", 8),
         "unknown dtype 'F31'");
  expect(one(R"({"dtype":"f32","shape":[2],"data_offsets":[0,8]})", 8),
         "unknown dtype 'f32'");
  expect(one(R"({"dtype":"F32","data_offsets":[0,8]})", 8), "no 'shape'");
  expect(one(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})", 8),
         "not a natural number");
  expect(one(R"({"dtype":"F32","shape":[2.0],"data_offsets":[0,8]})", 8),
         "not a natural number");
  expect(one(R"({"dtype":"F32","shape":[2]})", 8), "'data_offsets'");
  expect(one(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})", 8),
         "ascending");
  expect(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,9]})", 8),
         "may be cut short");
  expect(one(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})", 8),
         "takes 12 bytes, but 'data_offsets' span 8");
  expect(one(R"({"dtype":"F32","shape":[4611686018427387904,4],)"
             R"("data_offsets":[0,0]})",
             0),
         "too large");
  expect(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8],"q":1})", 8),
         "unknown field 'q'");
  expect(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})", 9),
         "the last 1 bytes belong to no tensor");
  expect(encode(R"({"__metadata__":{"a":1}})", ""), "other than strings");
  expect(encode(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                R"("b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
                "123456"),
         "tensors 'a' and 'b' overlap");
  expect(encode(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                R"("b":{"dtype":"U8","shape":[2],"data_offsets":[4,6]}})",
                "123456"),
         "bytes 2 to 4 of the data");
  SafetensorsFile file;
  std::string error;
  EXPECT_FALSE(file.open(folder + "/missing", error));
  EXPECT_NE(error.find("cannot open"), std::string::npos);
  EXPECT_FALSE(file.open(folder, error));
  EXPECT_NE(error.find("is a folder"), std::string::npos);
}

// Damage every byte of a small file in turn: whatever opens must stay inside.
TEST_F(Safetensors, SurvivesDamage) {
  std::string good =
      encode(R"({"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
             R"("b":{"dtype":"I64","shape":[1],"data_offsets":[8,16]}})",
             std::string(16, 'd'));
  unsigned opened = 0;
  for (size_t i = 0; i < good.size(); ++i)
    for (char change : {'\0', '9', '"', '{', ']', '\xFF'}) {
      std::string bad = good;
      bad[i] = change;
      SafetensorsFile file;
      std::string error, path = write(bad);
      if (!file.open(path, error)) {
        EXPECT_EQ(error.compare(0, path.size(), path), 0);
        continue;
      }
      ++opened;
      for (const TensorInfo &info : file.tensors())
        EXPECT_LE(info.offset + info.bytes, bad.size());
    }
  EXPECT_GT(opened, 0u);
  for (size_t n = 0; n < good.size(); ++n)
    EXPECT_NE(errorOf(good.substr(0, n)), "");
}

TEST(DTypes, ConvertBothWays) {
  EXPECT_EQ(halfToFloat(0x3C00), 1.0f);
  EXPECT_EQ(halfToFloat(0x0001), std::ldexp(1.0f, -24));
  EXPECT_EQ(halfToFloat(0xFC00), -INFINITY);
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    float value = halfToFloat(static_cast<uint16_t>(bits));
    if (value == value) {
      EXPECT_EQ(floatToHalf(value), bits);
    }
    float wide = bfloatToFloat(static_cast<uint16_t>(bits));
    if (wide == wide) {
      EXPECT_EQ(floatToBfloat(wide), bits);
    }
  }
  EXPECT_EQ(floatToHalf(65519.0f), 0x7BFF);
  EXPECT_EQ(floatToHalf(65520.0f), 0x7C00);
  EXPECT_EQ(floatToHalf(1.00048828125f), 0x3C00); // tie to even
  EXPECT_EQ(floatToHalf(1.00146484375f), 0x3C02); // tie to even, upwards
  int32_t numbers[] = {0, -3, 7};
  int64_t wide[3];
  uint8_t mask[3];
  float floats[3];
  EXPECT_TRUE(convertElements(DType::I32, numbers, DType::I64, wide, 3));
  EXPECT_EQ(wide[1], -3);
  EXPECT_TRUE(convertElements(DType::I32, numbers, DType::Bool, mask, 3));
  EXPECT_EQ(mask[0] + 2 * mask[1] + 4 * mask[2], 6);
  EXPECT_TRUE(convertElements(DType::I64, wide, DType::F32, floats, 3));
  EXPECT_EQ(floats[2], 7.0f);
  EXPECT_FALSE(convertElements(DType::F32, floats, DType::I64, wide, 3));
}

} // namespace
