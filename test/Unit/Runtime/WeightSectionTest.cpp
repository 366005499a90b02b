//===- WeightSectionTest.cpp - The section that holds weights -------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/WeightSection.h"

#include <cstdio>
#include <cstring>
#include <elf.h>
#include <gtest/gtest.h>
#include <string>

using namespace attune::runtime;

namespace {
/// An ELF file with two sections, the names and ours, and room behind.
struct File {
  Elf64_Ehdr header = {};
  Elf64_Shdr names = {}, weights = {};
  char text[32] = "\0.names\0.attune.weights";
  char room[64] = {};

  File() {
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_shoff = offsetof(File, names);
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = 2;
    names.sh_name = 1;
    names.sh_offset = offsetof(File, text);
    names.sh_size = sizeof text;
    weights.sh_name = 8;
    weights.sh_offset = offsetof(File, room);
    weights.sh_size = 1;
  }

  /// Looks for the section in the file's first `bytes`.
  bool find(WeightSection &section, size_t bytes = sizeof(File)) {
    std::FILE *file = std::tmpfile();
    std::fwrite(this, 1, bytes, file);
    std::fflush(file);
    bool found = findWeightSection(fileno(file), bytes, section);
    std::fclose(file);
    return found;
  }
};
} // namespace

TEST(WeightSection, IsFoundAndCovers) {
  File made;
  std::FILE *file = std::tmpfile();
  std::fwrite(&made, 1, sizeof made, file);
  std::fflush(file);
  WeightSection section;
  ASSERT_TRUE(findWeightSection(fileno(file), sizeof made, section));
  EXPECT_EQ(section.offset, offsetof(File, room));
  EXPECT_EQ(section.size, 1u);
  ASSERT_TRUE(coverWithWeightSection(fileno(file), sizeof made,
                                     offsetof(File, room) + 16, 48));
  ASSERT_TRUE(findWeightSection(fileno(file), sizeof made, section));
  EXPECT_EQ(section.offset, offsetof(File, room) + 16);
  EXPECT_EQ(section.size, 48u);
  std::fclose(file);
}

TEST(WeightSection, DamagedFilesHaveNone) {
  WeightSection section;
  EXPECT_TRUE(File().find(section));
  for (size_t bytes = 0; bytes < sizeof(File) - sizeof(File::room); ++bytes)
    EXPECT_FALSE(File().find(section, bytes)) << bytes;
  auto damaged = [&](auto damage) {
    File file;
    damage(file);
    return !file.find(section);
  };
  EXPECT_TRUE(damaged([](File &f) { f.header.e_ident[0] = 0; }));
  EXPECT_TRUE(damaged([](File &f) { f.header.e_ident[EI_CLASS] = 1; }));
  EXPECT_TRUE(damaged([](File &f) { f.header.e_shoff = UINT64_MAX - 8; }));
  EXPECT_TRUE(damaged([](File &f) { f.header.e_shnum = UINT16_MAX; }));
  EXPECT_TRUE(damaged([](File &f) { f.header.e_shstrndx = 2; }));
  EXPECT_TRUE(damaged([](File &f) { f.names.sh_offset = UINT64_MAX; }));
  EXPECT_TRUE(damaged([](File &f) { f.names.sh_size = UINT64_MAX; }));
  EXPECT_TRUE(damaged([](File &f) { f.weights.sh_name = UINT32_MAX; }));
  EXPECT_TRUE(damaged([](File &f) { f.weights.sh_offset = UINT64_MAX; }));
  EXPECT_TRUE(damaged([](File &f) { f.weights.sh_size = UINT64_MAX; }));
}
