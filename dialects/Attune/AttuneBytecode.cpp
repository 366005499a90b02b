//===- AttuneBytecode.cpp - The dialect's version in bytecode ---*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttuneBytecode.h"

#include "Attune/AttuneDialect.h"

using namespace mlir;
using namespace attune;

/// Grows with every change that makes older modules mean something else or
/// unreadable; then `upgradeFromVersion`, or what reads an op's properties,
/// learns what to do with them, and test/Corpus keeps a module of each version.
///
/// 2: linear has rms_eps, weight a gain.
static constexpr uint64_t currentVersion = 2;

namespace {
struct Version final : DialectVersion {
  explicit Version(uint64_t number) : number(number) {}
  uint64_t number;
};

struct Bytecode final : BytecodeDialectInterface {
  explicit Bytecode(Dialect *dialect) : BytecodeDialectInterface(dialect) {}

  void writeVersion(DialectBytecodeWriter &writer) const final {
    writer.writeVarInt(currentVersion);
  }

  std::unique_ptr<DialectVersion>
  readVersion(DialectBytecodeReader &reader) const final {
    uint64_t number;
    if (failed(reader.readVarInt(number)))
      return nullptr;
    if (number > currentVersion) {
      reader.emitError() << "written by a newer Attune: version " << number
                         << " of the dialect, and this one knows versions up "
                         << "to " << currentVersion;
      return nullptr;
    }
    return std::make_unique<Version>(number);
  }
};
} // namespace

uint64_t attune::versionOf(DialectBytecodeReader &reader) {
  auto version = reader.getDialectVersion<AttuneDialect>();
  return succeeded(version) ? static_cast<const Version *>(*version)->number
                            : 1;
}

void attune::addBytecode(AttuneDialect &dialect) {
  dialect.addInterfaces<Bytecode>();
}
