//===- WeightSection.cpp - The section that holds weights -----------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/WeightSection.h"

#include <cstddef>
#include <cstring>
#include <elf.h>
#include <unistd.h>

// Not allocated: the loader maps nothing of it. Its alignment is a page, which
// is what mapping the weights needs wherever the section is moved to.
__asm__(".pushsection .attune.weights,\"\",%progbits\n"
        ".p2align 12\n"
        ".byte 0\n"
        ".popsection");

namespace attune::runtime {

static constexpr char name[] = ".attune.weights";

static bool readAt(int file, uint64_t offset, void *out, size_t size) {
  return pread(file, out, size, static_cast<off_t>(offset)) ==
         static_cast<ssize_t>(size);
}

/// Whether `size` bytes at `offset` are within the file.
static bool isInside(uint64_t bytes, uint64_t offset, uint64_t size) {
  return offset <= bytes && size <= bytes - offset;
}

bool findWeightSection(int file, uint64_t bytes, WeightSection &section) {
  Elf64_Ehdr header;
  if (!isInside(bytes, 0, sizeof header) ||
      !readAt(file, 0, &header, sizeof header) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB ||
      header.e_shentsize != sizeof(Elf64_Shdr) ||
      header.e_shstrndx >= header.e_shnum ||
      !isInside(bytes, header.e_shoff,
                uint64_t(header.e_shnum) * sizeof(Elf64_Shdr)))
    return false;
  auto at = [&](unsigned index) {
    return header.e_shoff + uint64_t(index) * sizeof(Elf64_Shdr);
  };
  Elf64_Shdr names;
  if (!readAt(file, at(header.e_shstrndx), &names, sizeof names) ||
      !isInside(bytes, names.sh_offset, names.sh_size))
    return false;
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr found;
    char text[sizeof name];
    if (!readAt(file, at(i), &found, sizeof found) ||
        !isInside(names.sh_size, found.sh_name, sizeof name) ||
        !readAt(file, names.sh_offset + found.sh_name, text, sizeof name) ||
        std::memcmp(text, name, sizeof name) != 0)
      continue;
    section = {at(i), found.sh_offset, found.sh_size};
    return isInside(bytes, section.offset, section.size);
  }
  return false;
}

bool coverWithWeightSection(int file, uint64_t bytes, uint64_t offset,
                            uint64_t size) {
  WeightSection section;
  if (!findWeightSection(file, bytes, section))
    return true;
  // Both are neighbours in the header.
  static_assert(offsetof(Elf64_Shdr, sh_size) ==
                offsetof(Elf64_Shdr, sh_offset) + sizeof(uint64_t));
  uint64_t words[] = {offset, size};
  return pwrite(file, words, sizeof words,
                static_cast<off_t>(section.header +
                                   offsetof(Elf64_Shdr, sh_offset))) ==
         static_cast<ssize_t>(sizeof words);
}

} // namespace attune::runtime
