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
/// 3: moe and quantized_moe have biases, a limit and an offset.
/// 4: layer_norm has an offset, rotary_table a growth.
/// 5: numbers in groups have zero points.
static constexpr uint64_t currentVersion = 5;

/// Until version 3 the residual was the one operand that need not be there.
template <typename Op> static void divideOperands(Op op) {
  auto &sizes = op.getProperties().operandSegmentSizes;
  std::fill(std::begin(sizes), std::end(sizes), 1);
  auto required = int64_t(std::size(sizes)) - 3;
  auto [upBias, downBias, residual] =
      std::tuple(required, required + 1, required + 2);
  sizes[upBias] = sizes[downBias] = 0;
  sizes[residual] = int32_t(op->getNumOperands() - required);
}

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

  LogicalResult upgradeFromVersion(Operation *top,
                                   const DialectVersion &version) const final {
    if (static_cast<const Version &>(version).number >= 3)
      return success();
    top->walk([](Operation *op) {
      if (auto moe = dyn_cast<MoEOp>(op))
        divideOperands(moe);
      else if (auto moe = dyn_cast<QuantizedMoEOp>(op))
        divideOperands(moe);
    });
    return success();
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
