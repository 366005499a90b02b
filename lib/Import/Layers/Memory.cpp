//===- Memory.cpp - A transformer beside a state space ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Zamba2: a few transformers serve many blocks. Their weights have names
// without the number of a block and are stored once; what is a block's own is a
// product of two thin matrices beside them, computed as one product on top of
// another.

#include "LayerImporter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace attune;

Value LayerImporter::adapted(const spec::Attention &attention, StringRef role,
                             Value input, Value columns) {
  if (!columns)
    return {};
  Location at = loc(attention.location);
  Value thin = stateProjection(at, (role + "_down").str(), input,
                               attention.adapterRank, /*bias=*/false);
  return thin ? stateProjection(at, (role + "_up").str(), thin,
                                typeOf(columns).getShape().back(),
                                /*bias=*/false, /*residual=*/columns)
              : Value();
}

Value LayerImporter::adaptedFFN(const spec::FFN &ffn, const std::string &role,
                                Value input, int64_t width) {
  if (!ffn.adapterRank)
    return this->ffn(ffn, role, input, width, /*residual=*/Value(),
                     /*scale=*/1);
  Location at = loc(ffn.location);
  Value thin = stateProjection(at, role + "adapter_down", input,
                               ffn.adapterRank, /*bias=*/false);
  auto both = [&](const std::string &name) -> Value {
    Value own =
        stateProjection(at, role + name, input, ffn.width, /*bias=*/false);
    return thin && own ? stateProjection(at, role + "adapter_" + name, thin,
                                         ffn.width, /*bias=*/false,
                                         /*residual=*/own)
                       : Value();
  };
  Value gate = both("gate"), up = gate ? both("up") : Value();
  if (!up)
    return {};
  gate = ActivationOp::create(builder, at, gate, toActivation(ffn.activation));
  gate = arith::MulFOp::create(builder, at, gate, up);
  return stateProjection(at, role + "down", gate, width, /*bias=*/false);
}

Value LayerImporter::remembered(const spec::Block &block, Value x) {
  const spec::MemoryBlock &memory = *block.memory;
  Location at = loc(memory.location);
  int64_t width = typeOf(x).getShape().back();
  Value read = joinChannels(builder, at, {x, scope.embedded});
  read = norm(block.norm, "memory.norm.", read);
  if (read)
    read = attention(*block.attention, "attention.", read, width,
                     /*residual=*/Value(), /*scale=*/1);
  if (read)
    read = norm(block.norm, "memory.ffn_norm.", read);
  if (read)
    read = adaptedFFN(memory.ffn, "memory.ffn.", read, width);
  if (!read)
    return {};
  // The sum is what the state space reads; the stream goes by it.
  read = stateProjection(at, "memory.out", read, width, /*bias=*/false,
                         /*residual=*/x);
  if (read)
    read = norm(block.norm, "norm1.", read);
  return read ? mamba(*block.mamba, "mamba.", read, width, x, /*scale=*/1)
              : Value();
}
