//===- FourBitFloats.cpp - Codebooks and floats of 4 bits -----------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// bitsandbytes cuts a matrix [out, in], row behind row, into blocks of
// neighbours and has of each the largest magnitude:
//
//   weight [out * in / 2, 1]    two numbers in a byte, the first in its upper
//                               half
//   weight.quant_map [16]       what numbers stand for
//   weight.absmax [blocks]      the scales, F32; of double quantization U8
//   weight.nested_quant_map [256], weight.nested_absmax [blocks / 256]
//                               what these bytes stand for, and their scales
//   weight.quant_state.bitsandbytes__nf4 (or fp4)
//                               JSON: shape, block sizes, and what is added to
//                               each scale of double quantization
//
// NVFP4 (ModelOpt; compressed-tensors: weight_packed for weight) is e2m1 with
// two scales:
//
//   weight [out, in / 2]        the first of two numbers in the lower half
//   weight_scale [out, in / 16] e4m3
//   weight_scale_2              one F32; the weight_global_scale of
//                               compressed-tensors is a divisor
//
// No kernel has numbers of these kinds. Both are decoded to f32, rounded once.
//
//===----------------------------------------------------------------------===//

#include "TensorMaker.h"

#include "../RealNumbers.h"

#include "attune/Spec/Json.h"
#include "attune/Support/TensorNames.h"

#include <algorithm>

namespace attune {

using runtime::DType;
using runtime::formatShape;

namespace {
/// Numbers of 4 bits that stand for those of a table.
struct Codebook : TensorEncoding {
  const char *label = "";
  CheckpointTensor pairs, table, scales;
  CheckpointTensor nestedTable, nestedScales; ///< of scales that are bytes
  int64_t block = 64, nestedBlock = 256;
  double offset = 0;

  const char *name() const override { return label; }
  double scaleOf(int64_t at) const {
    if (scales.dtype == DType::F32)
      return numberAt(scales, at);
    return double(numberAt(nestedTable, scales.data[at])) *
               numberAt(nestedScales, at / nestedBlock) +
           offset;
  }
  void decode(const CheckpointTensor &, int64_t first, int64_t count,
              float *out) const override {
    for (int64_t done = 0; done < count;) {
      int64_t at = (first + done) / block;
      int64_t end = std::min(count, (at + 1) * block - first);
      double scale = scaleOf(at);
      for (; done < end; ++done) {
        int64_t i = first + done;
        int number = pairs.data[i / 2] >> (i % 2 ? 0 : 4) & 15;
        out[done] = static_cast<float>(scale * numberAt(table, number));
      }
    }
  }
};

/// Floats of 4 bits with a float of 8 bits for each 16 of a row.
struct Nvfp4 : TensorEncoding {
  static constexpr int64_t kGroup = 16;

  CheckpointTensor pairs, scales;
  double factor = 1;

  const char *name() const override { return "NVFP4"; }
  void decode(const CheckpointTensor &, int64_t first, int64_t count,
              float *out) const override {
    for (int64_t done = 0; done < count;) {
      int64_t group = (first + done) / kGroup;
      int64_t end = std::min(count, (group + 1) * kGroup - first);
      double scale = eightBitFloat(scales.data[group]) * factor;
      for (; done < end; ++done) {
        int64_t i = first + done;
        int number = pairs.data[i / 2] >> (i % 2 * 4) & 15;
        out[done] = static_cast<float>(scale * kFourBitFloats[number]);
      }
    }
  }
};

/// What the JSON of a matrix says.
struct State {
  int64_t rows = 0, columns = 0, block = 0, nestedBlock = 0;
  double offset = 0;
};
} // namespace

/// The place of `key` in `object` as an integer from 1 to `most`; else 0.
static int64_t countOf(const spec::Value &object, const char *key,
                       int64_t most) {
  const spec::Value *value = object.find(key);
  bool fits = value && value->kind == spec::Value::Kind::Integer &&
              value->integer >= 1 && value->integer <= most;
  return fits ? value->integer : 0;
}

/// Returns what is wrong with the JSON; nothing if it could be read.
static std::string readState(const CheckpointTensor &tensor, State &state) {
  constexpr uint64_t mostBytes = 1 << 16;
  if (tensor.dtype != DType::U8 || tensor.shape.size() != 1 ||
      tensor.bytes > mostBytes)
    return "is not JSON text of at most 65536 bytes";
  auto file = std::make_shared<SourceFile>();
  file->text.assign(reinterpret_cast<const char *>(tensor.data), tensor.bytes);
  struct Silent final : DiagnosticEngine {
    void report(const Diagnostic &) override {}
  } silent;
  spec::LineTable lines(file);
  spec::Reporter reporter(lines, silent);
  std::optional<spec::Value> root = spec::parseJson(*file, reporter);
  if (!root || reporter.getNumErrors() || !root->isObject())
    return "is not a JSON object: " + spec::quote(file->text);
  const spec::Value *shape = root->find("shape");
  if (!shape || shape->elements.size() != 2)
    return "has no \"shape\" of two sizes; matrices alone are read";
  constexpr int64_t mostColumns = INT32_MAX, mostBlock = 1 << 20;
  auto size = [&](size_t i) {
    const spec::Value &value = shape->elements[i];
    bool fits = value.kind == spec::Value::Kind::Integer &&
                value.integer >= 1 && value.integer <= mostColumns;
    return fits ? value.integer : 0;
  };
  state.rows = size(0);
  state.columns = size(1);
  if (!state.rows || !state.columns)
    return "has a \"shape\" that is no two sizes from 1 to 2147483647";
  state.block = countOf(*root, "blocksize", mostBlock);
  if (!state.block)
    return "has no \"blocksize\" from 1 to 1048576";
  if (!root->find("nested_blocksize"))
    return "";
  state.nestedBlock = countOf(*root, "nested_blocksize", mostBlock);
  const spec::Value *offset = root->find("nested_offset");
  if (!state.nestedBlock || !offset || !offset->isNumber())
    return "has no \"nested_blocksize\" from 1 to 1048576 beside a number "
           "\"nested_offset\"";
  state.offset = offset->real;
  return "";
}

bool TensorMaker::makeCodebook(const std::string &base,
                               const std::string &stateName) {
  std::string name = base + ".weight";
  const CheckpointTensor *pairs = find(name);
  if (!pairs)
    return fail(name, "is missing; its quant_state is there");
  State state;
  if (std::string wrong = readState(*find(stateName), state); !wrong.empty())
    return fail(stateName, wrong);
  // Two sizes below 2^31: their product is a number of 64 bits. The bytes may
  // be kept as elements of any type (bnb_4bit_quant_storage).
  int64_t count = state.rows * state.columns;
  if (pairs->bytes != static_cast<uint64_t>((count + 1) / 2))
    return fail(name, "has " + std::to_string(pairs->bytes) +
                          " bytes, which does not hold " +
                          std::to_string(state.rows) + " rows of " +
                          std::to_string(state.columns) + " in 4 bits");
  int64_t blocks = (count + state.block - 1) / state.block;
  auto made = std::make_unique<Codebook>();
  std::string end;
  made->label = cutEnd(stateName, "nf4", end) ? "NF4" : "FP4";
  made->pairs = *pairs;
  made->block = state.block;
  made->offset = state.offset;
  const CheckpointTensor *table = need(name + ".quant_map", DType::F32, {16});
  const CheckpointTensor *scales =
      table ? need(name + ".absmax", state.nestedBlock ? DType::U8 : DType::F32,
                   {blocks})
            : nullptr;
  if (!scales)
    return false;
  made->table = *table;
  made->scales = *scales;
  if (state.nestedBlock) {
    made->nestedBlock = state.nestedBlock;
    const CheckpointTensor *nestedTable =
        need(name + ".nested_quant_map", DType::F32, {256});
    const CheckpointTensor *nestedScales =
        nestedTable
            ? need(name + ".nested_absmax", DType::F32,
                   {(blocks + state.nestedBlock - 1) / state.nestedBlock})
            : nullptr;
    if (!nestedScales)
      return false;
    made->nestedTable = *nestedTable;
    made->nestedScales = *nestedScales;
  }
  result.used.push_back(stateName);
  result.used.push_back(name);
  return finish(base, *pairs, state.rows, state.columns, std::move(made));
}

bool TensorMaker::needState(const std::string &base) {
  std::string state = base + ".weight.quant_state.bitsandbytes__";
  return find(state + "nf4") || find(state + "fp4") ||
         fail(state + "nf4", "is missing, and so is that of fp4; '" + base +
                                 ".weight.absmax' needs it");
}

bool TensorMaker::makeNvfp4(const std::string &base,
                            const std::string &pairsName,
                            const std::string &globalName) {
  const CheckpointTensor *pairs = find(pairsName);
  constexpr int64_t bytes = Nvfp4::kGroup / 2;
  if (pairs->dtype != DType::U8 || pairs->shape.size() != 2 ||
      pairs->shape[0] < 1 || pairs->shape[1] < 1 ||
      pairs->shape[1] % bytes != 0)
    return fail(pairsName, "has shape " + formatShape(pairs->shape) +
                               ", expected rows of U8, a multiple of 8 each");
  int64_t rows = pairs->shape[0], columns = 2 * pairs->shape[1];
  const CheckpointTensor *scales = need(base + ".weight_scale", DType::F8E4M3,
                                        {rows, columns / Nvfp4::kGroup});
  if (!scales)
    return false;
  const CheckpointTensor *global = find(globalName);
  if (!global || global->dtype != DType::F32 || global->bytes != 4)
    return fail(globalName,
                global ? "is no single F32"
                       : "is missing; '" + base + ".weight_scale' needs it");
  result.used.push_back(globalName);
  double factor = numberAt(*global, 0);
  bool divides = config.method == QuantizationMethod::CompressedTensors;
  if (divides && !(factor > 0))
    return fail(globalName,
                "is " + std::to_string(factor) + ", expected a number above 0");
  auto made = std::make_unique<Nvfp4>();
  made->pairs = *pairs;
  made->scales = *scales;
  made->factor = divides ? 1 / factor : factor;
  result.used.push_back(pairsName);
  return finish(base, *pairs, rows, columns, std::move(made));
}

} // namespace attune
