//===- Standalone.cpp - Stand-ins for libstdc++ ---------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Products are linked without any C++ library, so that they are small and run
// wherever libc does. The headers' templates carry nearly all of what the
// runtime uses of it; the rest, a dozen functions, is here. This file is a
// library of its own (AttuneRuntimeStandalone): programs that have a C++
// library anyway, like the compiler, leave it out.
//
//===----------------------------------------------------------------------===//

#include "Standalone.h"

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>

// All of std::string that is not inline.
template class std::allocator<char>;
template class std::basic_string<char>;

[[noreturn]] static void die(const char *what) {
  std::fprintf(stderr, "attune: error: %s\n", what);
  std::abort();
}

void (*attune::runtime::outOfMemory)() = nullptr;

[[noreturn]] static void dieWithoutMemory() {
  if (attune::runtime::outOfMemory)
    attune::runtime::outOfMemory();
  die("out of memory");
}

/// Memory that cannot be had ends the program; the runtime asks for anything
/// large with mmap and reports failure properly.
static void *allocate(std::size_t size, std::size_t alignment) {
  if (size == 0)
    size = 1;
  if (alignment <= alignof(std::max_align_t)) {
    if (void *memory = std::malloc(size))
      return memory;
  } else {
    void *memory = nullptr;
    if (posix_memalign(&memory, alignment, size) == 0)
      return memory;
  }
  dieWithoutMemory();
}

void *operator new(std::size_t size) { return allocate(size, 1); }
void *operator new[](std::size_t size) { return allocate(size, 1); }
void *operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete[](void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void *memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void *memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void *memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

/// Stands in the tables of abstract classes.
extern "C" void __cxa_pure_virtual() { die("a pure virtual call"); }

namespace std {
void __throw_bad_alloc() { dieWithoutMemory(); }
void __throw_bad_array_new_length() { dieWithoutMemory(); }
void __throw_length_error(const char *what) { die(what); }
void __throw_logic_error(const char *what) { die(what); }
void __throw_out_of_range(const char *what) { die(what); }
void __throw_out_of_range_fmt(const char *what, ...) { die(what); }
} // namespace std
