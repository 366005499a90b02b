//===- KernelLines.cpp - Line tables of kernels -----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelLines.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/Object/ELF.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

namespace attune {

KernelPlace KernelPlace::find(mlir::ModuleOp code) {
  llvm::MapVector<mlir::Location, size_t> counts;
  code.walk([&](mlir::Operation *op) {
    if (auto place = op->getLoc()->findInstanceOf<mlir::FileLineColLoc>())
      if (place.getLine() > 0)
        ++counts[mlir::Location(place)];
  });
  KernelPlace most;
  size_t count = 0;
  for (const auto &[location, number] : counts)
    if (number > count) {
      auto place = mlir::cast<mlir::FileLineColLoc>(location);
      count = number;
      most.file = llvm::sys::path::filename(place.getFilename().getValue());
      most.line = place.getLine();
      most.column = place.getColumn();
    }
  return most;
}

llvm::Expected<KernelLines> KernelLines::find(const ProductBytes &bytes,
                                              llvm::StringRef wanted) {
  using ELFT = llvm::object::ELF64LE;
  auto object = llvm::object::ELFFile<ELFT>::create(
      llvm::StringRef(bytes.data(), bytes.size()));
  if (!object)
    return object.takeError();
  auto sections = object->sections();
  if (!sections)
    return sections.takeError();
  for (const ELFT::Shdr &table : *sections) {
    if (table.sh_type != llvm::ELF::SHT_SYMTAB)
      continue;
    auto symbols = object->symbols(&table);
    if (!symbols)
      return symbols.takeError();
    auto names = object->getStringTableForSymtab(table);
    if (!names)
      return names.takeError();
    const ELFT::Sym *kernel = nullptr;
    for (const ELFT::Sym &symbol : *symbols) {
      llvm::Expected<llvm::StringRef> name = symbol.getName(*names);
      if (!name)
        return name.takeError();
      if (*name == wanted && symbol.st_shndx != llvm::ELF::SHN_UNDEF)
        kernel = &symbol;
    }
    if (!kernel)
      continue;
    uint64_t begin = kernel->st_value, end = begin + kernel->st_size;
    for (const ELFT::Sym &symbol : *symbols)
      if (symbol.getType() == llvm::ELF::STT_FUNC &&
          symbol.st_shndx == kernel->st_shndx) {
        begin = std::min<uint64_t>(begin, symbol.st_value);
        end = std::max<uint64_t>(end, symbol.st_value + symbol.st_size);
      }
    KernelLines lines;
    lines.begin = int64_t(begin) - int64_t(kernel->st_value);
    lines.size = end - begin;
    return lines;
  }
  return llvm::createStringError("an object has no function '%s'",
                                 wanted.str().c_str());
}

namespace {
using namespace llvm::dwarf;

class Printer {
public:
  explicit Printer(llvm::ArrayRef<KernelLines> kernels) : kernels(kernels) {
    for (const KernelLines &kernel : kernels)
      files.insert({kernel.place.file, files.size() + 1});
  }

  std::string print() {
    printAbbreviations();
    printUnit();
    printRanges();
    printLines();
    return std::move(text);
  }

private:
  void section(llvm::StringRef name) {
    os << ".section " << name << ",\"\",@progbits\n";
  }
  /// One byte for each value.
  void bytes(llvm::ArrayRef<unsigned> values) {
    os << ".byte ";
    llvm::interleaveComma(values, os);
    os << "\n";
  }
  /// Characters as numbers, whatever an assembler makes of them.
  void string(llvm::StringRef value) {
    llvm::SmallVector<unsigned> values;
    for (char c : value)
      values.push_back(static_cast<unsigned char>(c));
    values.push_back(0);
    bytes(values);
  }
  void address(const KernelLines &kernel, int64_t offset) {
    os << ".quad \"" << kernel.symbol << "\"+" << offset << "\n";
  }

  void printAbbreviations() {
    section(".debug_abbrev");
    os << ".Lattune_abbrev:\n";
    bytes({1, DW_TAG_compile_unit, DW_CHILDREN_no, DW_AT_producer,
           DW_FORM_string, DW_AT_language, DW_FORM_data1, DW_AT_name,
           DW_FORM_string, DW_AT_stmt_list, DW_FORM_sec_offset, DW_AT_low_pc,
           DW_FORM_addr, DW_AT_ranges, DW_FORM_sec_offset, 0, 0, 0});
  }

  void printUnit() {
    section(".debug_info");
    os << ".long .Lattune_unit_end-.Lattune_unit\n.Lattune_unit:\n"
          ".short 4\n.long .Lattune_abbrev\n";
    bytes({8, 1}); // an address's size, and which abbreviation
    string("attune");
    bytes({DW_LANG_C});
    string(kernels.front().place.file);
    os << ".long .Lattune_lines\n.quad 0\n.long .Lattune_ranges\n"
          ".Lattune_unit_end:\n";
  }

  void printRanges() {
    section(".debug_ranges");
    os << ".Lattune_ranges:\n";
    for (const KernelLines &kernel : kernels) {
      address(kernel, kernel.begin);
      address(kernel, kernel.begin + int64_t(kernel.size));
    }
    os << ".quad 0, 0\n";
  }

  /// A sequence of one row for each kernel.
  void printLines() {
    section(".debug_line");
    os << ".Lattune_lines:\n.long .Lattune_lines_end-.Lattune_version\n"
          ".Lattune_version:\n.short 4\n"
          ".long .Lattune_header_end-.Lattune_header\n.Lattune_header:\n";
    // Instructions are of a byte or more, one for each operation; rows are
    // statements; special opcodes are not used; operands of the others.
    bytes({1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1});
    bytes({0}); // no folders
    for (const auto &[file, number] : files) {
      string(file);
      bytes({0, 0, 0});
    }
    bytes({0});
    os << ".Lattune_header_end:\n";
    for (const KernelLines &kernel : kernels) {
      bytes({0, 9, DW_LNE_set_address});
      address(kernel, kernel.begin);
      bytes({DW_LNS_set_file});
      os << ".uleb128 " << files.lookup(kernel.place.file) << "\n";
      bytes({DW_LNS_advance_line});
      os << ".sleb128 " << int64_t(kernel.place.line) - 1 << "\n";
      bytes({DW_LNS_set_column});
      os << ".uleb128 " << kernel.place.column << "\n";
      bytes({DW_LNS_copy, DW_LNS_advance_pc});
      os << ".uleb128 " << kernel.size << "\n";
      bytes({0, 1, DW_LNE_end_sequence});
    }
    os << ".Lattune_lines_end:\n";
  }

  llvm::ArrayRef<KernelLines> kernels;
  llvm::MapVector<llvm::StringRef, size_t> files; ///< numbers from 1
  std::string text;
  llvm::raw_string_ostream os{text};
};
} // namespace

std::string printKernelLines(llvm::ArrayRef<KernelLines> kernels) {
  return Printer(kernels).print();
}

} // namespace attune
