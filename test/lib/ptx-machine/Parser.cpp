//===- Parser.cpp - The text of PTX ---------------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Machine.h"

#include <cctype>
#include <cstdlib>
#include <cstring>
#include <set>

namespace ptx {

unsigned bytesOf(Type type) {
  switch (type) {
  case Type::Pred:
  case Type::B8:
  case Type::U8:
  case Type::S8:
    return 1;
  case Type::B16:
  case Type::U16:
  case Type::S16:
  case Type::F16:
  case Type::BF16:
    return 2;
  case Type::B64:
  case Type::U64:
  case Type::S64:
  case Type::F64:
  case Type::F32x2:
    return 8;
  default:
    return 4;
  }
}

Module::~Module() {
  for (uint64_t global : globals)
    memory->remove(global);
}

namespace {
struct Symbol {
  enum { Global, Local, Shared, Dynamic, Param } kind;
  uint64_t value;
};

class Parser {
public:
  Parser(const std::string &text, Memory &memory, std::string &error)
      : text(text), memory(memory), error(error), module(new Module()) {
    module->memory = &memory;
  }

  std::unique_ptr<Module> run() {
    while (skip(), at < text.size())
      if (!topLevel())
        return nullptr;
    return std::move(module);
  }

private:
  //===--------------------------------------------------------------------===//
  // Characters and words
  //===--------------------------------------------------------------------===//

  bool fail(const std::string &what) {
    unsigned line = 1;
    for (size_t i = 0; i < at && i < text.size(); ++i)
      line += text[i] == '\n';
    error = "line " + std::to_string(line) + ": " + what;
    return false;
  }
  void skip() {
    for (;;) {
      while (at < text.size() && std::isspace((unsigned char)text[at]))
        ++at;
      if (text.compare(at, 2, "//") == 0)
        at = std::min(text.find('\n', at), text.size());
      else if (text.compare(at, 2, "/*") == 0)
        at = std::min(text.find("*/", at) + 2, text.size());
      else
        return;
    }
  }
  static bool wordLetter(char c) {
    return std::isalnum((unsigned char)c) || c == '_' || c == '$' || c == '.' ||
           c == '%' || c == ':';
  }
  /// A name, number, directive or mnemonic.
  std::string word() {
    skip();
    size_t begin = at;
    if (at < text.size() && text[at] == '-')
      ++at;
    while (at < text.size() && wordLetter(text[at])) {
      // A label ends at its colon; "::" is inside words.
      if (text[at] == ':') {
        if (text[at + 1] != ':')
          break;
        ++at;
      }
      ++at;
    }
    return text.substr(begin, at - begin);
  }
  bool take(char c) {
    skip();
    if (at >= text.size() || text[at] != c)
      return false;
    ++at;
    return true;
  }
  bool expect(char c) {
    return take(c) || fail(std::string("expected '") + c + "'");
  }
  char peek() {
    skip();
    return at < text.size() ? text[at] : '\0';
  }
  static uint64_t number(const std::string &word) {
    if (word.compare(0, 2, "0f") == 0 || word.compare(0, 2, "0F") == 0 ||
        word.compare(0, 2, "0d") == 0 || word.compare(0, 2, "0D") == 0)
      return std::strtoull(word.c_str() + 2, nullptr, 16);
    if (word[0] == '-')
      return static_cast<uint64_t>(std::strtoll(word.c_str(), nullptr, 0));
    return std::strtoull(word.c_str(), nullptr, 0);
  }
  static std::vector<std::string> cut(const std::string &word) {
    std::vector<std::string> parts(1);
    for (size_t i = 0; i < word.size(); ++i) {
      if (word[i] == '.')
        parts.emplace_back();
      else
        parts.back() += word[i];
    }
    return parts;
  }

  //===--------------------------------------------------------------------===//
  // Declarations
  //===--------------------------------------------------------------------===//

  bool topLevel() {
    std::string directive = word();
    if (directive == ".version") {
      module->version = word();
      return true;
    }
    if (directive == ".target") {
      module->target = word();
      while (take(','))
        word();
      return true;
    }
    if (directive == ".address_size")
      return word() == "64" || fail("addresses have 64 bits");
    if (directive == ".visible" || directive == ".extern" ||
        directive == ".weak")
      return true;
    if (directive == ".entry")
      return entry();
    if (directive == ".global" || directive == ".const" ||
        directive == ".shared")
      return variable(directive, shared, sharedAtTop);
    return fail("unknown directive '" + directive + "'");
  }

  /// `.global .align 16 .b8 name[N] = {...};`
  bool variable(const std::string &space, std::map<std::string, Symbol> &names,
                unsigned &used) {
    unsigned align = 1, element = 1;
    std::string name;
    for (;;) {
      name = word();
      if (name == ".align") {
        align = static_cast<unsigned>(number(word()));
        continue;
      }
      if (name.empty() || name[0] != '.')
        break;
      unsigned bits = static_cast<unsigned>(std::atoi(name.c_str() + 2));
      if (bits)
        element = bits / 8;
    }
    uint64_t count = 1;
    if (take('[')) {
      std::string size = peek() == ']' ? "0" : word();
      count = number(size);
      if (!expect(']'))
        return false;
    }
    uint64_t bytes = count * element;
    align = std::max(align, element);
    if (space == ".local") {
      kernel->localBytes = (kernel->localBytes + align - 1) / align * align;
      names[name] = {Symbol::Local, kernel->localBytes};
      kernel->localBytes += static_cast<unsigned>(bytes);
    } else if (space == ".shared" && count == 0) {
      names[name] = {Symbol::Dynamic, kDynamicShared};
    } else if (space == ".shared") {
      used = (used + align - 1) / align * align;
      names[name] = {Symbol::Shared, used};
      used += static_cast<unsigned>(bytes);
    } else {
      module->storage.emplace_back(new uint64_t[bytes / 8 + 4]());
      auto place = reinterpret_cast<uint64_t>(module->storage.back().get());
      place = (place + 15) / 16 * 16;
      memory.add(place, bytes);
      module->globals.push_back(place);
      names[name] = {Symbol::Global, place};
      if (take('=')) {
        bool list = take('{');
        uint64_t to = place;
        do {
          uint64_t value = number(word());
          std::memcpy(reinterpret_cast<void *>(to), &value, element);
          to += element;
        } while (list && take(','));
        if (list && !expect('}'))
          return false;
      }
    }
    return expect(';');
  }

  bool entry() {
    names = shared;
    registers.clear();
    labels.clear();
    waiting.clear();
    tables.clear();
    inner.clear();
    scopes.assign(1, 0);
    std::unique_ptr<Kernel> owned(new Kernel());
    kernel = owned.get();
    kernel->name = word();
    kernel->sharedBytes = sharedAtTop;
    if (take('('))
      while (!take(')')) {
        if (!parameter())
          return false;
        take(',');
      }
    while (peek() == '.') {
      std::string directive = word();
      do {
        uint64_t value = number(word());
        if (directive == ".maxntid")
          kernel->maxThreads =
              static_cast<unsigned>(std::max(1u, kernel->maxThreads) * value);
      } while (take(','));
    }
    static const char *const specials[] = {
        "%tid.x",    "%tid.y",    "%tid.z",   "%ntid.x",  "%ntid.y",
        "%ntid.z",   "%ctaid.x",  "%ctaid.y", "%ctaid.z", "%nctaid.x",
        "%nctaid.y", "%nctaid.z", "%laneid",  "%warpid"};
    int i = 0;
    for (const char *name : specials)
      kernel->special[i++] = registerOf(name);
    kernel->localBase = registerOf("%local");
    if (!expect('{') || !statements())
      return false;
    for (auto &[index, label, around] : waiting) {
      auto found = labels.end();
      for (size_t i = around.size(); i-- > 0 && found == labels.end();)
        found = labels.find({around[i], label});
      if (found == labels.end())
        return fail("no label '" + label + "' in " + kernel->name);
      kernel->code[index].target = static_cast<int32_t>(found->second);
    }
    for (auto &[index, name] : indexed)
      for (const std::string &label : tables[name])
        kernel->code[index].table.push_back(
            static_cast<int32_t>(labels[{0, label}]));
    indexed.clear();
    module->kernels[kernel->name] = std::move(owned);
    return true;
  }

  bool parameter() {
    unsigned bytes = 0, align = 1;
    std::string name;
    for (;;) {
      name = word();
      if (name == ".align")
        align = static_cast<unsigned>(number(word()));
      else if (!name.empty() && name[0] == '.') {
        if (unsigned bits = static_cast<unsigned>(std::atoi(name.c_str() + 2)))
          bytes = bits / 8;
      } else
        break;
    }
    align = bytes;
    if (take('[')) {
      bytes *= static_cast<unsigned>(number(word()));
      expect(']');
    }
    kernel->paramsSize = (kernel->paramsSize + align - 1) / align * align;
    names[name] = {Symbol::Param, kernel->paramsSize};
    kernel->paramOffsets.push_back(kernel->paramsSize);
    kernel->paramBytes.push_back(bytes);
    kernel->paramsSize += bytes;
    return !name.empty() || fail("expected a parameter");
  }

  //===--------------------------------------------------------------------===//
  // Bodies
  //===--------------------------------------------------------------------===//

  int32_t newRegister(uint64_t value) {
    kernel->registers.push_back(value);
    return static_cast<int32_t>(kernel->registers.size() - 1);
  }
  int32_t registerOf(const std::string &name) {
    auto known = registers.find(name);
    if (known != registers.end())
      return known->second;
    return registers[name] = newRegister(0);
  }

  bool statements() {
    for (unsigned depth = 1; depth;) {
      if (take('}')) {
        --depth;
        scopes.pop_back();
        continue;
      }
      // Inline assembly stands in braces of its own, with labels of its own.
      if (take('{')) {
        ++depth;
        scopes.push_back(++numScopes);
        continue;
      }
      if (at >= text.size())
        return fail("the kernel does not end");
      if (!statement())
        return false;
    }
    return true;
  }

  bool statement() {
    bool guarded = false, unless = false;
    int32_t guard = -1;
    if (take('@')) {
      guarded = true;
      unless = take('!');
      guard = registerOf(word());
    }
    std::string first = word();
    if (first.empty())
      return take(';') || fail(std::string("unexpected '") + peek() + "'");
    if (!guarded && peek() == ':') {
      ++at;
      labels[{scopes.back(), first}] = kernel->code.size();
      std::string directive = peek() == '.' ? word() : "";
      if (directive == ".branchtargets") {
        do
          tables[first].push_back(word());
        while (take(','));
        return expect(';');
      }
      if (!directive.empty())
        at -= directive.size();
      return true;
    }
    if (first[0] == '.') {
      if (first == ".local" || first == ".shared")
        return variable(first, names, kernel->sharedBytes);
      // Registers of inline assembly have any name.
      if (first == ".reg") {
        word();
        do {
          std::string name = word();
          if (!name.empty() && name[0] != '%')
            inner.insert(name);
        } while (take(','));
      }
      // .pragma, .loc: nothing to do.
      size_t end = text.find(first == ".loc" ? '\n' : ';', at);
      at = end == std::string::npos ? text.size() : end + 1;
      return true;
    }
    Instruction instruction;
    instruction.guard = guard;
    instruction.unless = unless;
    for (; counted < at; ++counted)
      lines += text[counted] == '\n';
    instruction.line = lines;
    return operands(first, instruction);
  }

  /// Any operand but an address, as a register.
  bool value(std::vector<int32_t> &into) {
    if (take('{')) {
      do
        if (!value(into))
          return false;
      while (take(','));
      return expect('}');
    }
    bool negated = take('!');
    std::string name = word();
    if (name.empty())
      return fail("expected an operand");
    if (negated)
      return fail("a negated operand");
    if (name[0] == '%' || name == "_" || inner.count(name)) {
      into.push_back(name == "_" ? newRegister(0) : registerOf(name));
      return true;
    }
    if (std::isdigit((unsigned char)name[0]) || name[0] == '-') {
      into.push_back(newRegister(number(name)));
      return true;
    }
    auto symbol = names.find(name);
    if (symbol == names.end())
      return fail("unknown name '" + name + "'");
    noteDynamic(symbol->second);
    uint64_t address = symbol->second.value;
    if (take('+'))
      address += number(word());
    into.push_back(symbol->second.kind == Symbol::Local && address == 0
                       ? kernel->localBase
                       : newRegister(address));
    return true;
  }

  void noteDynamic(const Symbol &symbol) {
    kernel->dynamic |= symbol.kind == Symbol::Dynamic;
  }

  bool address(Instruction &instruction, unsigned &count) {
    std::string name = word();
    int64_t &offset = count == 0   ? instruction.offset
                      : count == 1 ? instruction.from
                                   : instruction.third;
    ++count;
    auto symbol = names.find(name);
    if (symbol != names.end()) {
      noteDynamic(symbol->second);
      offset = static_cast<int64_t>(symbol->second.value);
      instruction.s.push_back(symbol->second.kind == Symbol::Local
                                  ? kernel->localBase
                                  : newRegister(0));
    } else if (name[0] == '%') {
      instruction.s.push_back(registerOf(name));
    } else if (std::isdigit((unsigned char)name[0])) {
      instruction.s.push_back(newRegister(number(name)));
    } else {
      return fail("unknown name '" + name + "'");
    }
    if (take('+'))
      offset += static_cast<int64_t>(number(word()));
    // Where in a tensor.
    if (take(',') && !value(instruction.s))
      return false;
    return expect(']');
  }

  bool operands(const std::string &mnemonic, Instruction &instruction) {
    std::vector<std::string> parts = cut(mnemonic);
    const std::string &op = parts[0];
    bool branch = op == "bra" || op == "brx";
    // Stores and what only orders have no destination.
    bool noResult = op == "st" || op == "bar" || op == "barrier" ||
                    op == "cp" || op == "ret" || op == "exit" || op == "trap" ||
                    op == "fence" || op == "membar" || op == "red" ||
                    op == "setmaxnreg" || op == "griddepcontrol" ||
                    (op == "mbarrier" && parts[1] == "init") ||
                    (op == "wgmma" && parts[1] != "mma_async");
    instruction.stores = op == "st" || op == "red" || op == "atom";
    if (branch && op == "bra") {
      waiting.push_back({kernel->code.size(), word(), scopes});
    } else if (branch) {
      if (!value(instruction.s) || !expect(','))
        return false;
      indexed.push_back({kernel->code.size(), word()});
    } else {
      bool first = true;
      unsigned addresses = 0;
      while (peek() != ';') {
        if (take('[')) {
          if (!address(instruction, addresses))
            return false;
        } else {
          auto &into = first && !noResult ? instruction.d : instruction.s;
          if (!value(into))
            return false;
          // shfl and setp may have a second destination.
          if (first && !noResult && take('|') && !value(into))
            return false;
        }
        first = false;
        if (!take(','))
          break;
      }
    }
    if (!expect(';'))
      return false;
    if (!choose(instruction, parts))
      return fail("unknown instruction '" + mnemonic + "'");
    kernel->collective |=
        instruction.together != Together::No || instruction.waits;
    kernel->warpgroups |= instruction.product;
    kernel->dependent |= mnemonic == "griddepcontrol.wait";
    kernel->code.push_back(std::move(instruction));
    return true;
  }

  const std::string &text;
  Memory &memory;
  std::string &error;
  size_t at = 0, counted = 0;
  unsigned lines = 1; ///< up to `counted`
  std::unique_ptr<Module> module;
  std::map<std::string, Symbol> shared; ///< names outside kernels
  unsigned sharedAtTop = 0;

  Kernel *kernel = nullptr;
  std::map<std::string, Symbol> names;
  std::map<std::string, int32_t> registers;
  std::map<std::pair<unsigned, std::string>, size_t> labels; ///< of a scope
  struct Branch {
    size_t at;
    std::string label;
    std::vector<unsigned> scopes;
  };
  std::vector<Branch> waiting;
  std::vector<std::pair<size_t, std::string>> indexed;
  std::set<std::string> inner; ///< registers of inline assembly
  std::vector<unsigned> scopes;
  unsigned numScopes = 0;
  std::map<std::string, std::vector<std::string>> tables;
};
} // namespace

std::unique_ptr<Module> parse(const std::string &text, Memory &memory,
                              std::string &error) {
  return Parser(text, memory, error).run();
}

} // namespace ptx
