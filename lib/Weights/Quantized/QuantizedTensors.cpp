//===- QuantizedTensors.cpp - Quantized folders of Hugging Face -----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A matrix [out, in] of integers q is packed in words of 32 bits, lowest bits
// first, and is s (q - z) with a scale s and a zero point z for a group of
// columns:
//
//   GPTQ    qweight [in / n, out], qzeros [groups, out / n], scales [groups,
//           out]; g_idx [in], if it is there, is the group of each column
//   AWQ     qweight [in, out / 8], qzeros [groups, out / 8]; the eight numbers
//           of a word are rows 0 2 4 6 1 3 5 7
//   compressed-tensors
//           weight_packed [out, in / n], weight_scale [out, groups];
//           weight_zero_point [out / n, groups] and weight_g_idx [in], if they
//           are there
//
//   MXFP4   X_blocks [out, in / 32, 16], two numbers e2m1 in a byte, the first
//           in its lower half; X_scales [out, in / 32], exponents of 2 plus 127
//   LLM.int8() of bitsandbytes
//           weight [out, in], SCB [out], the largest magnitude of each row
//
// Without zero points z is the middle of the range. Eight-bit floats and
// integers are elements of "weight" itself, with a scale for each row, group of
// columns or block (weight_scale), or square block (weight_scale_inv). Floats
// of 4 bits with two scales and codebooks are in FourBitFloats.cpp.
//
//===----------------------------------------------------------------------===//

#include "QuantizedTensors.h"
#include "TensorMaker.h"

#include "../RealNumbers.h"

#include "attune/Support/TensorNames.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace attune {

using runtime::DType;
using runtime::formatShape;

static int32_t wordAt(const CheckpointTensor &tensor, int64_t i) {
  int32_t word;
  std::memcpy(&word, tensor.data + 4 * i, 4);
  return word;
}

/// Number `place` of `bits` bits in the words from `first` on.
static int numberIn(const CheckpointTensor &words, int64_t first, int64_t step,
                    int64_t place, int bits) {
  int64_t perWord = 32 / bits;
  auto word =
      static_cast<uint32_t>(wordAt(words, first + place / perWord * step));
  return int(word >> (place % perWord * bits)) & ((1 << bits) - 1);
}

/// The largest group of kernels that these neighbours are several of; 0: none.
static int64_t kernelGroup(int64_t neighbours) {
  for (int64_t size : {128, 64, 32})
    if (neighbours % size == 0)
      return size;
  return 0;
}

namespace {
/// Integers with scales and zero points.
struct PackedIntegers : TensorEncoding {
  enum class Layout { Gptq, Awq, Rows };

  const char *label = "";
  Layout layout = Layout::Gptq;
  CheckpointTensor words, scales, zeros; ///< zeros without data: the middle
  int bits = 4;
  int64_t rows = 0, columns = 0, groups = 1, group = 1;
  int added = 0;                ///< to every zero point, modulo 2^bits
  std::vector<int32_t> groupOf; ///< of columns; empty: neighbours
  std::vector<int32_t> byGroup; ///< columns, those of a group side by side
  StoredForm taken;             ///< how kernels can take it, if they can

  const char *name() const override { return label; }

  static int64_t awqPlace(int64_t row) {
    constexpr int64_t places[] = {0, 4, 1, 5, 2, 6, 3, 7};
    return row / 8 * 8 + places[row % 8];
  }
  int number(int64_t row, int64_t column) const {
    switch (layout) {
    case Layout::Gptq:
      return numberIn(words, row, rows, column, bits);
    case Layout::Awq:
      return numberIn(words, column * (rows / 8), 1, awqPlace(row), bits);
    case Layout::Rows:
      return numberIn(words, row * words.shape[1], 1, column, bits);
    }
    return 0;
  }
  int64_t groupAt(int64_t column) const {
    return groupOf.empty() ? column / group : groupOf[column];
  }
  float scaleAt(int64_t row, int64_t g) const {
    return numberAt(scales,
                    layout == Layout::Rows ? row * groups + g : g * rows + row);
  }
  int zeroAt(int64_t row, int64_t g) const {
    if (!zeros.data)
      return 1 << (bits - 1);
    if (layout == Layout::Rows)
      return numberIn(zeros, g, groups, row, bits);
    int64_t place = layout == Layout::Awq ? awqPlace(row) : row;
    int zero = numberIn(zeros, g * zeros.shape[1], 1, place, bits);
    return (zero + added) & ((1 << bits) - 1);
  }

  void decode(const CheckpointTensor &, int64_t first, int64_t count,
              float *out) const override {
    int64_t row = first / columns, column = first % columns;
    int64_t lastRow = -1, lastGroup = -1;
    float scale = 0;
    int zero = 0;
    for (int64_t i = 0; i < count; ++i) {
      int64_t g = groupAt(column);
      if (g != lastGroup || row != lastRow) {
        scale = scaleAt(row, g);
        zero = zeroAt(row, g);
        lastRow = row;
        lastGroup = g;
      }
      out[i] = scale * float(number(row, column) - zero);
      if (++column == columns) {
        column = 0;
        ++row;
      }
    }
  }

  StoredForm form() const override { return taken; }
  const std::vector<int32_t> &order() const override { return byGroup; }
  GroupScale readGroup(const CheckpointTensor &, int64_t first,
                       uint8_t *numbers) const override {
    int64_t row = first / columns, place = first % columns;
    for (int64_t i = 0; i < taken.group; ++i)
      numbers[i] = static_cast<uint8_t>(
          number(row, byGroup.empty() ? place + i : byGroup[place + i]));
    int64_t g = place / group;
    return {scaleAt(row, g), float(zeroAt(row, g))};
  }
  /// Puts the columns of each group side by side, in their order. Returns
  /// whether groups are equally large.
  bool sortColumns() {
    byGroup.resize(size_t(columns));
    std::iota(byGroup.begin(), byGroup.end(), 0);
    std::stable_sort(byGroup.begin(), byGroup.end(), [&](int32_t a, int32_t b) {
      return groupOf[a] < groupOf[b];
    });
    for (int64_t place = 0; place < columns; ++place)
      if (groupOf[byGroup[place]] != place / group)
        return false;
    return true;
  }
  /// How kernels can take it: if its groups can be of neighbours. Zero points
  /// in the middle need no place, and scales that are numbers of f16 little.
  void chooseForm() {
    if (kernelGroup(group) == 0 || (!groupOf.empty() && !sortColumns()))
      return;
    taken = StoredForm::plain(bits, kernelGroup(group));
    taken.ordered = !groupOf.empty();
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t g = 0; g < groups; ++g) {
        float scale = scaleAt(row, g);
        if (zeroAt(row, g) != taken.middle())
          taken.zeros = true;
        if (runtime::halfToFloat(runtime::floatToHalf(scale)) != scale)
          taken.scales = ScaleType::Single;
      }
  }
};

/// Four-bit floats in groups of 32, each with a power of two: microscaling
/// floats of OCP (2023).
struct Microscaled : TensorEncoding {
  static constexpr int64_t kGroup = 32;

  CheckpointTensor blocks, scales;

  const char *name() const override { return "MXFP4"; }
  StoredForm form() const override { return StoredForm::floats(); }
  GroupScale readGroup(const CheckpointTensor &, int64_t first,
                       uint8_t *numbers) const override {
    int64_t group = first / kGroup;
    const uint8_t *block = blocks.data + group * (kGroup / 2);
    for (int64_t i = 0; i < kGroup; ++i)
      numbers[i] = block[i / 2] >> (i % 2 * 4) & 15;
    return {std::ldexp(1.0f, int(scales.data[group]) - 127)};
  }
  void decode(const CheckpointTensor &tensor, int64_t first, int64_t count,
              float *out) const override {
    uint8_t numbers[kGroup];
    for (int64_t done = 0; done < count;) {
      int64_t within = (first + done) % kGroup;
      float scale = readGroup(tensor, first + done - within, numbers).scale;
      for (; within < kGroup && done < count; ++within, ++done)
        out[done] = scale * kFourBitFloats[numbers[within]];
    }
  }
};

/// Elements of eight bits with a scale for each block.
struct ScaledElements : TensorEncoding {
  CheckpointTensor elements, scales;
  int64_t columns = 0;
  int64_t blockRows = 1, blockColumns = 1, scalesInRow = 1;
  double divisor = 1; ///< of every scale
  const char *label = nullptr;

  const char *name() const override {
    return label ? label : runtime::dtypeName(elements.dtype);
  }
  float scaleOf(int64_t row, int64_t column) const {
    int64_t block = row / blockRows * scalesInRow + column / blockColumns;
    return static_cast<float>(numberAt(scales, block) / divisor);
  }
  bool areFloats() const { return elements.dtype != DType::I8; }
  /// Numbers of kernels where these' groups are in one block.
  StoredForm form() const override {
    int64_t group = kernelGroup(std::gcd(blockColumns, columns));
    return !group        ? StoredForm{}
           : areFloats() ? StoredForm::floatsOfBytes(group)
                         : StoredForm::plain(8, group);
  }
  GroupScale readGroup(const CheckpointTensor &, int64_t first,
                       uint8_t *numbers) const override {
    float scale = scaleOf(first / columns, first % columns);
    for (int64_t i = 0; i < form().group; ++i) {
      uint8_t code = elements.data[first + i];
      numbers[i] = areFloats() ? code : uint8_t(code ^ 128);
      if (areFloats() && (code & 127) == 127)
        scale = NAN;
    }
    return {scale};
  }
  void decode(const CheckpointTensor &, int64_t first, int64_t count,
              float *out) const override {
    for (int64_t i = 0; i < count; ++i) {
      int64_t row = (first + i) / columns, column = (first + i) % columns;
      uint8_t code = elements.data[first + i];
      float value = elements.dtype == DType::I8
                        ? float(static_cast<int8_t>(code))
                        : eightBitFloat(code);
      out[i] = value * scaleOf(row, column);
    }
  }
};

class Maker : public TensorMaker {
public:
  using TensorMaker::TensorMaker;

  bool makeIntegers(const std::string &base);
  bool makeRows(const std::string &base);
  bool makeElements(const std::string &base, const std::string &scaleName);
  bool makeMicroscaled(const std::string &base);
  bool makeBytes(const std::string &base);

private:
  bool readOrder(const std::string &name, PackedIntegers &made);
};
} // namespace

/// The group of each column, if the file has them.
bool Maker::readOrder(const std::string &name, PackedIntegers &made) {
  if (!find(name))
    return true;
  const CheckpointTensor *order = need(name, true, {made.columns});
  if (!order)
    return false;
  bool neighbours = true;
  made.groupOf.reserve(made.columns);
  for (int64_t i = 0; i < made.columns; ++i) {
    int32_t g = wordAt(*order, i);
    if (g < 0 || g >= made.groups)
      return fail(name, "has the group " + std::to_string(g) + " for column " +
                            std::to_string(i) + ", expected 0 to " +
                            std::to_string(made.groups - 1));
    neighbours = neighbours && g == i / made.group;
    made.groupOf.push_back(g);
  }
  if (neighbours)
    made.groupOf.clear();
  return true;
}

/// GPTQ and AWQ.
bool Maker::makeIntegers(const std::string &base) {
  std::string name = base + ".qweight";
  const CheckpointTensor *words = find(name);
  bool awq = config.method == QuantizationMethod::Awq;
  int64_t perWord = 32 / config.bits;
  if (words->dtype != DType::I32 || words->shape.size() != 2)
    return fail(name, "is not a matrix of I32");
  auto made = std::make_unique<PackedIntegers>();
  made->label = awq ? "AWQ" : "GPTQ";
  made->layout =
      awq ? PackedIntegers::Layout::Awq : PackedIntegers::Layout::Gptq;
  made->bits = int(config.bits);
  int64_t scale = awq ? 1 : perWord, across = awq ? perWord : 1;
  if (words->shape[0] > INT32_MAX || words->shape[1] > INT32_MAX)
    return fail(name, "is too large");
  int64_t columns = made->columns = words->shape[0] * scale;
  int64_t rows = made->rows = words->shape[1] * across;
  made->group = config.group < 0 ? columns : config.group;
  std::string stands = "stands for " + std::to_string(rows) + " rows of " +
                       std::to_string(columns) + " columns, ";
  if (!rows || !columns || rows % perWord)
    return fail(name, stands + "whose rows are not a multiple of the " +
                          std::to_string(perWord) + " numbers of a word");
  if (columns % made->group)
    return fail(name, stands +
                          "which are not a multiple of the group_size of " +
                          std::to_string(made->group) +
                          "; expected one that divides them, or -1 for one "
                          "group");
  made->groups = columns / made->group;
  const CheckpointTensor *scales =
      need(base + ".scales", false, {made->groups, rows});
  const CheckpointTensor *zeros =
      scales ? need(base + ".qzeros", true, {made->groups, rows / perWord})
             : nullptr;
  if (!zeros)
    return false;
  made->words = *words;
  made->scales = *scales;
  made->zeros = *zeros;
  made->added = !awq && config.zerosLessOne ? 1 : 0;
  if (!awq && !readOrder(base + ".g_idx", *made))
    return false;
  made->chooseForm();
  result.used.push_back(name);
  return finish(base, *words, rows, columns, std::move(made));
}

/// compressed-tensors' packed rows.
bool Maker::makeRows(const std::string &base) {
  std::string name = base + ".weight_packed";
  const CheckpointTensor *words = find(name);
  const CheckpointTensor *shape = find(base + ".weight_shape");
  if (words->dtype != DType::I32 || words->shape.size() != 2)
    return fail(name, "is not a matrix of I32");
  if (!shape || (shape->dtype != DType::I64 && shape->dtype != DType::I32) ||
      shape->shape != std::vector<int64_t>{2})
    return fail(base + ".weight_shape", "is missing or not two integers");
  int64_t sizes[2];
  for (int i = 0; i < 2; ++i)
    if (shape->dtype == DType::I64)
      std::memcpy(&sizes[i], shape->data + 8 * i, 8);
    else
      sizes[i] = wordAt(*shape, i);
  auto made = std::make_unique<PackedIntegers>();
  int64_t perWord = 32 / config.bits, rows = sizes[0], columns = sizes[1];
  int64_t group = config.group < 0 ? columns : config.group;
  if (rows != words->shape[0] || rows < 1 || columns < 1 ||
      columns > INT32_MAX ||
      words->shape[1] != (columns + perWord - 1) / perWord || columns % group)
    return fail(name, "has shape " + formatShape(words->shape) +
                          ", which does not hold " + std::to_string(rows) +
                          " rows of " + std::to_string(columns) +
                          " in groups of " + std::to_string(group));
  const CheckpointTensor *scales =
      need(base + ".weight_scale", false, {rows, columns / group});
  if (!scales)
    return false;
  made->label = "compressed-tensors";
  made->layout = PackedIntegers::Layout::Rows;
  made->bits = int(config.bits);
  made->rows = rows;
  made->columns = columns;
  made->group = group;
  made->groups = columns / group;
  made->words = *words;
  made->scales = *scales;
  std::string points = base + ".weight_zero_point";
  if (find(points)) {
    const CheckpointTensor *zeros =
        need(points, true, {(rows + perWord - 1) / perWord, made->groups});
    if (!zeros)
      return false;
    made->zeros = *zeros;
  }
  if (!readOrder(base + ".weight_g_idx", *made))
    return false;
  made->chooseForm();
  result.used.push_back(name);
  result.used.push_back(base + ".weight_shape");
  return finish(base, *words, rows, columns, std::move(made));
}

/// Eight-bit elements.
bool Maker::makeElements(const std::string &base,
                         const std::string &scaleName) {
  std::string name = base + ".weight";
  const CheckpointTensor *elements = find(name), *scales = find(scaleName);
  if (!elements ||
      (elements->dtype != DType::F8E4M3 && elements->dtype != DType::I8))
    return fail(name, elements ? std::string("has elements of type ") +
                                     runtime::dtypeName(elements->dtype) +
                                     ", expected F8_E4M3 or I8"
                               : "is missing; its scale is there");
  if (elements->shape.size() != 2 || !isReal(*scales) ||
      elements->shape[0] < 1 || elements->shape[1] < 1)
    return fail(name, "of shape " + formatShape(elements->shape) +
                          " is no matrix with real scales");
  int64_t rows = elements->shape[0], columns = elements->shape[1];
  auto made = std::make_unique<ScaledElements>();
  made->elements = *elements;
  made->scales = *scales;
  made->columns = columns;
  std::vector<int64_t> shape = scales->shape;
  auto blocks = [&](int64_t size) {
    return (size + config.group - 1) / config.group;
  };
  using Shape = std::vector<int64_t>;
  if (shape.empty() || shape == Shape{1} || shape == Shape{1, 1}) {
    made->blockRows = rows;
    made->blockColumns = columns;
  } else if (config.square && shape == Shape{blocks(rows), blocks(columns)}) {
    made->blockRows = made->blockColumns = config.group;
    made->scalesInRow = shape[1];
  } else if (!config.square && config.group > 0 &&
             columns % config.group == 0 &&
             shape == Shape{rows, columns / config.group}) {
    made->blockColumns = config.group;
    made->scalesInRow = shape[1];
  } else if (!config.square &&
             (shape == Shape{rows} || shape == Shape{rows, 1})) {
    made->blockColumns = columns;
  } else {
    return fail(scaleName, "has shape " + formatShape(shape) +
                               ", which is not a scale for each " +
                               (config.square      ? "square block"
                                : config.group > 0 ? "group"
                                                   : "row") +
                               " of " + formatShape(elements->shape));
  }
  result.used.push_back(scaleName);
  result.used.push_back(name);
  return finish(base, *elements, rows, columns, std::move(made));
}

/// Each matrix of a stack by itself: Checkpoint has taken stacks apart.
bool Maker::makeMicroscaled(const std::string &base) {
  std::string name = base + "_blocks", scaleName = base + "_scales";
  const CheckpointTensor *blocks = find(name), *scales = find(scaleName);
  if (!blocks || !scales)
    return fail(blocks ? scaleName : name,
                "is missing; '" + (blocks ? name : scaleName) + "' needs it");
  constexpr int64_t bytes = Microscaled::kGroup / 2;
  for (const CheckpointTensor *tensor : {blocks, scales})
    if (tensor->dtype != DType::U8)
      return fail(tensor->name, std::string("has elements of type ") +
                                    runtime::dtypeName(tensor->dtype) +
                                    ", expected U8");
  if (blocks->shape.size() != 3 || blocks->shape[2] != bytes ||
      blocks->shape[0] < 1 || blocks->shape[1] < 1)
    return fail(name, "has shape " + formatShape(blocks->shape) +
                          ", expected rows of blocks of 16 bytes");
  std::vector<int64_t> groups(blocks->shape.begin(), blocks->shape.end() - 1);
  if (scales->shape != groups)
    return fail(scaleName, "has shape " + formatShape(scales->shape) +
                               ", expected " + formatShape(groups));
  auto made = std::make_unique<Microscaled>();
  made->blocks = *blocks;
  made->scales = *scales;
  result.used.push_back(name);
  result.used.push_back(scaleName);
  // A power of two times two bits: eight bits of exponent suffice.
  return finish(base, *blocks, groups[0], groups[1] * Microscaled::kGroup,
                std::move(made), DType::BF16);
}

/// The rows of bytes of bitsandbytes.
bool Maker::makeBytes(const std::string &base) {
  std::string name = base + ".weight";
  const CheckpointTensor *elements = find(name);
  if (!elements || elements->dtype != DType::I8 ||
      elements->shape.size() != 2 || elements->shape[0] < 1 ||
      elements->shape[1] < 1)
    return fail(name, elements ? "is no matrix of I8; '" + base +
                                     ".SCB' has scales for it"
                               : "is missing; its scales are there");
  // Other layouts than rows are of GPUs, and never were in published files.
  std::string layoutName = base + ".weight_format";
  if (const CheckpointTensor *layout = find(layoutName)) {
    if (layout->dtype != DType::U8 || layout->bytes != 1 || *layout->data != 0)
      return fail(layoutName, "names another layout than rows, 0; save the "
                              "model again with bitsandbytes 0.45 or later");
    result.used.push_back(layoutName);
  }
  const CheckpointTensor *scales =
      need(base + ".SCB", DType::F32, {elements->shape[0]});
  if (!scales)
    return false;
  auto made = std::make_unique<ScaledElements>();
  made->elements = *elements;
  made->scales = *scales;
  made->columns = made->blockColumns = elements->shape[1];
  made->divisor = 127;
  made->label = "LLM.int8()";
  result.used.push_back(name);
  return finish(base, *elements, elements->shape[0], elements->shape[1],
                std::move(made));
}

/// Tensors of activations and caches, which stay as they are.
static bool isOfActivations(const std::string &name) {
  std::string base;
  for (const char *end :
       {".input_scale", ".activation_scale", ".input_zero_point", ".k_scale",
        ".v_scale", ".input_global_scale"})
    if (cutEnd(name, end, base))
      return true;
  return false;
}

/// Makes what `name` is the leading tensor of; nothing of others.
static bool makeOf(const std::string &name, QuantizationMethod method,
                   const FindTensor &find, Maker &maker) {
  using Method = QuantizationMethod;
  std::string base;
  switch (method) {
  case Method::Mxfp4: {
    bool alone = cutEnd(name, "_scales", base) && !find(base + "_blocks");
    return !(alone || cutEnd(name, "_blocks", base)) ||
           maker.makeMicroscaled(base);
  }
  case Method::Gptq:
  case Method::Awq:
    return !cutEnd(name, ".qweight", base) || maker.makeIntegers(base);
  case Method::BitsAndBytes:
    if (cutEnd(name, ".SCB", base))
      return maker.makeBytes(base);
    for (const char *end : {".weight.quant_state.bitsandbytes__nf4",
                            ".weight.quant_state.bitsandbytes__fp4"})
      if (cutEnd(name, end, base))
        return maker.makeCodebook(base, name);
    // Without its scales it is no weight.
    return !cutEnd(name, ".weight.absmax", base) || maker.needState(base);
  case Method::Dense:
    return !cutEnd(name, ".weight_scale", base) || maker.refuseScales(name);
  case Method::CompressedTensors:
  case Method::Fp8:
  case Method::ModelOpt:
    break;
  }
  if (cutEnd(name, ".weight_packed", base))
    return find(name)->dtype == DType::U8
               ? maker.makeNvfp4(base, name, base + ".weight_global_scale")
               : maker.makeRows(base);
  if (cutEnd(name, ".pre_quant_scale", base))
    return maker.refuseScales(name);
  bool scaled =
      cutEnd(name, ".weight_scale_inv", base) ||
      (cutEnd(name, ".weight_scale", base) && !find(base + ".weight_packed"));
  if (!scaled)
    return true;
  const CheckpointTensor *weight = find(base + ".weight");
  if (method == Method::ModelOpt && weight && weight->dtype == DType::U8)
    return maker.makeNvfp4(base, base + ".weight", base + ".weight_scale_2");
  return maker.makeElements(base, name);
}

bool makeQuantizedTensors(const QuantizationConfig &config,
                          const std::vector<std::string> &names,
                          const FindTensor &find, QuantizedTensors &result,
                          std::string &problem) {
  Maker maker(config, find, result, problem);
  bool scalesActivations =
      config.method == QuantizationMethod::CompressedTensors ||
      config.method == QuantizationMethod::Dense ||
      config.method == QuantizationMethod::Fp8 ||
      config.method == QuantizationMethod::ModelOpt;
  for (const std::string &name : names) {
    if (!makeOf(name, config.method, find, maker))
      return false;
    if (scalesActivations && isOfActivations(name))
      result.used.push_back(name);
  }
  return true;
}

} // namespace attune
