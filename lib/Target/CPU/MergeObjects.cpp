//===- MergeObjects.cpp - Several objects as one ----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MergeObjects.h"

#include "llvm/Object/ELF.h"
#include "llvm/TargetParser/Triple.h"

#include <map>

namespace attune {

namespace {
using ELFT = llvm::object::ELF64LE;
using Header = ELFT::Ehdr;
using SectionHeader = ELFT::Shdr;
using Symbol = ELFT::Sym;
using Relocation = ELFT::Rela;

llvm::Error fail(const llvm::Twine &why) {
  return llvm::createStringError("objects cannot be merged: " + why);
}

/// A table of strings as ELF has it: offset 0 is the empty one.
class Strings {
public:
  uint32_t add(llvm::StringRef text) {
    auto [place, isNew] = offsets.try_emplace(text, bytes.size());
    if (isNew) {
      bytes += text;
      bytes += '\0';
    }
    return place->second;
  }
  llvm::StringRef content() const { return bytes; }

private:
  std::string bytes = std::string(1, '\0');
  llvm::StringMap<uint32_t> offsets = {{"", 0}};
};

class Merger {
public:
  llvm::Error add(const MergeInput &input);
  ProductBytes write();

private:
  /// A section of the result.
  struct Section {
    std::string name;
    SectionHeader header = {};
    ProductBytes content;
    std::vector<Relocation> relocations;
    size_t symbol = 0; ///< of the section itself, among the locals
  };
  /// Where a section of an input went; those of tables went nowhere.
  struct Place {
    std::optional<size_t> section;
    uint64_t offset = 0;
  };
  /// Where a symbol of an input went.
  struct SymbolPlace {
    size_t index = 0;
    bool local = true;
    uint64_t offset = 0; ///< of a section's symbol: added to what is relocated
  };
  using Object = llvm::object::ELFFile<ELFT>;

  llvm::Expected<Place> addSection(const Object &object,
                                   const SectionHeader &header);
  llvm::Error addSymbols(const Object &object, const SectionHeader &table,
                         llvm::ArrayRef<Place> places,
                         const llvm::StringMap<std::string> &newNames,
                         std::vector<SymbolPlace> &symbols);
  llvm::Error addRelocations(const Object &object, const SectionHeader &header,
                             const Place &place,
                             llvm::ArrayRef<SymbolPlace> symbols);
  size_t addLocal(Symbol symbol, size_t section) {
    symbol.st_shndx = section + 1;
    locals.push_back(symbol);
    return locals.size() - 1;
  }

  /// Sections with the same kind become one.
  using Kind = std::tuple<std::string, uint32_t, uint64_t, uint64_t>;
  std::map<Kind, size_t> kinds;
  std::vector<Section> sections; ///< their headers come behind the null one
  std::vector<Symbol> locals = {Symbol()}, globals;
  /// Symbols that are not local or once were not, by name.
  llvm::StringMap<size_t> globalNames;
  Strings strings;
  Header header = {};
};
} // namespace

llvm::Expected<Merger::Place> Merger::addSection(const Object &object,
                                                 const SectionHeader &header) {
  llvm::Expected<llvm::StringRef> name = object.getSectionName(header);
  if (!name)
    return name.takeError();
  switch (header.sh_type) {
  case llvm::ELF::SHT_NULL:
  case llvm::ELF::SHT_SYMTAB:
  case llvm::ELF::SHT_STRTAB:
  case llvm::ELF::SHT_RELA:
    return Place();
  case llvm::ELF::SHT_PROGBITS:
  case llvm::ELF::SHT_NOTE:
  case llvm::ELF::SHT_X86_64_UNWIND:
    break;
  default:
    return fail("nobody expects the section " + *name);
  }
  if (header.sh_flags & (llvm::ELF::SHF_GROUP | llvm::ELF::SHF_LINK_ORDER))
    return fail("the section " + *name + " depends on others");
  auto [known, isNew] = kinds.try_emplace(
      Kind(name->str(), header.sh_type, header.sh_flags, header.sh_entsize),
      sections.size());
  if (isNew) {
    Section &section = sections.emplace_back();
    section.name = name->str();
    section.header.sh_type = header.sh_type;
    section.header.sh_flags = header.sh_flags;
    section.header.sh_entsize = header.sh_entsize;
    section.header.sh_addralign = 1;
    Symbol symbol = {};
    symbol.setBindingAndType(llvm::ELF::STB_LOCAL, llvm::ELF::STT_SECTION);
    section.symbol = addLocal(symbol, known->second);
  }
  Section &section = sections[known->second];
  llvm::Expected<llvm::ArrayRef<uint8_t>> content =
      object.getSectionContents(header);
  if (!content)
    return content.takeError();
  uint64_t align = std::max<uint64_t>(header.sh_addralign, 1);
  section.header.sh_addralign =
      std::max<uint64_t>(section.header.sh_addralign, align);
  uint64_t offset = llvm::alignTo(section.content.size(), align);
  // A gap in a table of unwinders would end it.
  if (*name == ".eh_frame" && offset != section.content.size())
    return fail("a gap in " + *name);
  section.content.resize(offset);
  section.content.append(content->begin(), content->end());
  return Place{known->second, offset};
}

llvm::Error Merger::addSymbols(const Object &object, const SectionHeader &table,
                               llvm::ArrayRef<Place> places,
                               const llvm::StringMap<std::string> &newNames,
                               std::vector<SymbolPlace> &symbols) {
  auto list = object.symbols(&table);
  if (!list)
    return list.takeError();
  auto names = object.getStringTableForSymtab(table);
  if (!names)
    return names.takeError();
  for (const Symbol &symbol : *list) {
    SymbolPlace &place = symbols.emplace_back();
    llvm::Expected<llvm::StringRef> name = symbol.getName(*names);
    if (!name)
      return name.takeError();
    bool undefined = symbol.st_shndx == llvm::ELF::SHN_UNDEF;
    if (symbols.size() == 1 || symbol.getType() == llvm::ELF::STT_FILE)
      continue;
    if (!undefined &&
        (symbol.st_shndx >= places.size() || !places[symbol.st_shndx].section))
      return fail("the symbol " + *name + " is in no section");
    if (auto renamed = newNames.find(*name);
        renamed != newNames.end() &&
        symbol.getBinding() != llvm::ELF::STB_LOCAL)
      *name = renamed->second;
    Symbol moved = symbol;
    moved.st_name = strings.add(*name);
    if (!undefined) {
      const Place &at = places[symbol.st_shndx];
      if (symbol.getType() == llvm::ELF::STT_SECTION) {
        place = {sections[*at.section].symbol, true, at.offset};
        continue;
      }
      moved.st_value = symbol.st_value + at.offset;
      moved.st_shndx = *at.section + 1;
    }
    if (symbol.getBinding() == llvm::ELF::STB_LOCAL) {
      place.index = addLocal(moved, moved.st_shndx - 1);
      continue;
    }
    auto [known, isNew] = globalNames.try_emplace(*name, globals.size());
    place = {known->second, false, 0};
    if (isNew) {
      globals.push_back(moved);
      continue;
    }
    Symbol &all = globals[known->second];
    // Whoever hides a symbol hides it for all.
    bool hidden = moved.getVisibility() == llvm::ELF::STV_HIDDEN ||
                  all.getVisibility() == llvm::ELF::STV_HIDDEN;
    if (all.st_shndx == llvm::ELF::SHN_UNDEF)
      all = moved;
    else if (!undefined)
      return fail("two definitions of " + *name);
    if (hidden)
      all.setVisibility(llvm::ELF::STV_HIDDEN);
  }
  return llvm::Error::success();
}

llvm::Error Merger::addRelocations(const Object &object,
                                   const SectionHeader &header,
                                   const Place &place,
                                   llvm::ArrayRef<SymbolPlace> symbols) {
  auto list = object.relas(header);
  if (!list)
    return list.takeError();
  for (const Relocation &relocation : *list) {
    uint32_t index = relocation.getSymbol(/*isMips64EL=*/false);
    if (index >= symbols.size())
      return fail("a relocation of no symbol");
    const SymbolPlace &symbol = symbols[index];
    Relocation moved = relocation;
    moved.r_offset = relocation.r_offset + place.offset;
    moved.r_addend = relocation.r_addend + int64_t(symbol.offset);
    // The others get their numbers once all locals are known.
    uint32_t number = symbol.index << 1 | (symbol.local ? 0 : 1);
    moved.setSymbol(number, /*IsMips64EL=*/false);
    sections[*place.section].relocations.push_back(moved);
  }
  return llvm::Error::success();
}

llvm::Error Merger::add(const MergeInput &input) {
  llvm::Expected<Object> object =
      Object::create(llvm::StringRef(input.object.data(), input.object.size()));
  if (!object)
    return object.takeError();
  if (sections.empty())
    header = object->getHeader();
  auto headers = object->sections();
  if (!headers)
    return headers.takeError();
  std::vector<Place> places;
  for (const SectionHeader &section : *headers) {
    llvm::Expected<Place> place = addSection(*object, section);
    if (!place)
      return place.takeError();
    places.push_back(*place);
  }
  std::vector<SymbolPlace> symbols;
  for (const SectionHeader &section : *headers)
    if (section.sh_type == llvm::ELF::SHT_SYMTAB)
      if (llvm::Error error =
              addSymbols(*object, section, places, input.names, symbols))
        return error;
  for (const SectionHeader &section : *headers)
    if (section.sh_type == llvm::ELF::SHT_RELA) {
      if (section.sh_info >= places.size() || !places[section.sh_info].section)
        return fail("relocations of no section");
      if (llvm::Error error = addRelocations(*object, section,
                                             places[section.sh_info], symbols))
        return error;
    }
  return llvm::Error::success();
}

template <typename T>
static llvm::ArrayRef<char> bytesOf(const std::vector<T> &values) {
  return {reinterpret_cast<const char *>(values.data()),
          values.size() * sizeof(T)};
}

ProductBytes Merger::write() {
  // A symbol that nobody outside may see becomes local.
  std::vector<size_t> numbers(globals.size());
  std::vector<Symbol> visible;
  for (auto [i, symbol] : llvm::enumerate(globals)) {
    bool hidden = symbol.st_shndx != llvm::ELF::SHN_UNDEF &&
                  symbol.getVisibility() == llvm::ELF::STV_HIDDEN;
    if (!hidden)
      continue;
    symbol.setBinding(llvm::ELF::STB_LOCAL);
    symbol.setVisibility(llvm::ELF::STV_DEFAULT);
    numbers[i] = addLocal(symbol, symbol.st_shndx - 1);
  }
  size_t numLocals = locals.size();
  for (auto [i, symbol] : llvm::enumerate(globals))
    if (numbers[i] == 0) {
      numbers[i] = numLocals + visible.size();
      visible.push_back(symbol);
    }
  std::vector<Symbol> symbols = locals;
  llvm::append_range(symbols, visible);

  ProductBytes result(sizeof(Header));
  std::vector<SectionHeader> headers(1);
  auto addContent = [&](llvm::StringRef name, SectionHeader section,
                        llvm::ArrayRef<char> content) {
    result.resize(llvm::alignTo(result.size(), section.sh_addralign));
    section.sh_name = strings.add(name);
    section.sh_offset = result.size();
    section.sh_size = content.size();
    headers.push_back(section);
    result.append(content.begin(), content.end());
  };
  size_t withRelocations = llvm::count_if(sections, [](const Section &section) {
    return !section.relocations.empty();
  });
  size_t symbolTable = 1 + sections.size() + withRelocations;
  for (Section &section : sections)
    addContent(section.name, section.header, section.content);
  for (auto [i, section] : llvm::enumerate(sections)) {
    if (section.relocations.empty())
      continue;
    for (Relocation &relocation : section.relocations) {
      uint32_t number = relocation.getSymbol(/*isMips64EL=*/false);
      size_t index = number >> 1;
      relocation.setSymbol(number & 1 ? numbers[index] : index,
                           /*IsMips64EL=*/false);
    }
    SectionHeader table = {};
    table.sh_type = llvm::ELF::SHT_RELA;
    table.sh_flags = llvm::ELF::SHF_INFO_LINK;
    table.sh_link = symbolTable;
    table.sh_info = i + 1;
    table.sh_addralign = 8;
    table.sh_entsize = sizeof(Relocation);
    addContent(".rela" + section.name, table, bytesOf(section.relocations));
  }
  SectionHeader table = {};
  table.sh_type = llvm::ELF::SHT_SYMTAB;
  table.sh_link = symbolTable + 1;
  table.sh_info = numLocals;
  table.sh_addralign = 8;
  table.sh_entsize = sizeof(Symbol);
  addContent(".symtab", table, bytesOf(symbols));
  SectionHeader text = {};
  text.sh_type = llvm::ELF::SHT_STRTAB;
  text.sh_addralign = 1;
  strings.add(".strtab");
  addContent(".strtab", text,
             {strings.content().data(), strings.content().size()});

  result.resize(llvm::alignTo(result.size(), 8));
  header.e_shoff = result.size();
  header.e_shnum = headers.size();
  header.e_shstrndx = headers.size() - 1;
  llvm::append_range(result, bytesOf(headers));
  std::memcpy(result.data(), &header, sizeof(Header));
  return result;
}

bool canMergeObjects(llvm::StringRef triple) {
  llvm::Triple machine(triple);
  return machine.isOSBinFormatELF() && machine.isArch64Bit() &&
         machine.isLittleEndian() && !machine.isMIPS();
}

llvm::Expected<ProductBytes> mergeObjects(llvm::ArrayRef<MergeInput> inputs) {
  if (inputs.size() == 1)
    return inputs.front().object;
  Merger merger;
  for (const MergeInput &input : inputs)
    if (llvm::Error error = merger.add(input))
      return std::move(error);
  return merger.write();
}

} // namespace attune
