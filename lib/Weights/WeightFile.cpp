//===- WeightFile.cpp - Packed weights of a compiled model ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Weights/WeightFile.h"

#include "Attune/AttuneCut.h"
#include "Attune/AttuneFactors.h"
#include "Attune/AttuneKept.h"
#include "Attune/AttunePanels.h"
#include "CalibratedEncoding.h"
#include "FactorEncoding.h"
#include "ModuleWeights.h"
#include "OrderEncoding.h"
#include "WeightPacker.h"
#include "attune/Runtime/WeightSection.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <fcntl.h>
#include <functional>
#include <mutex>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace mlir;

namespace attune {

//===----------------------------------------------------------------------===//
// The plan
//===----------------------------------------------------------------------===//

namespace {
/// Bands of one part of one layer of one weight.
struct Task {
  const PackedMatrix *matrix;
  int64_t first, last;        ///< bands
  int64_t offset;             ///< of the first band in the blob
  std::atomic<int64_t> *left; ///< tasks of the matrix
};

/// One flag for each tensor.
using NotFiniteFlags = std::map<const CheckpointTensor *, std::atomic<bool>>;

/// Everything to be packed, cut into tasks of about a megabyte.
class Plan {
public:
  /// Plans the layers that `wants` accepts, all layers if it is null.
  bool build(ModuleOp module, const WeightValues &values,
             DiagnosticEngine &diags,
             function_ref<bool(WeightOp, int64_t)> wants = nullptr);
  /// Calls `sink(offset, bytes, size)` for every task's packed bytes, from
  /// several threads; it says whether to go on. With `blob` the bytes are
  /// packed in place and the sink is not called.
  bool run(const WeightValues &values, uint8_t *blob,
           const std::function<bool(int64_t, const uint8_t *, int64_t)> &sink);
  /// Tells what the values that were packed are like.
  void warn(const WeightValues &values, DiagnosticEngine &diags) const;
  int64_t getTotalBytes() const { return totalBytes; }
  uint64_t getFingerprint() const { return layout.fingerprint; }
  WeightReport report(double seconds) const;

private:
  void warnOverflow(DiagnosticEngine &diags) const;
  /// Names the tensors in which numbers are not finite.
  void warnNotFinite(DiagnosticEngine &diags,
                     const Checkpoint &checkpoint) const;
  bool addPart(WeightOp weight, int64_t layer, int64_t part, int64_t rank,
               const WeightValues &values);
  /// Describes the matrix to be packed; null after an error.
  std::unique_ptr<PackedMatrix> describePart(WeightOp weight, int64_t layer,
                                             int64_t part, int64_t rank,
                                             const WeightValues &values);

  /// Puts numbers that a calibration chose in place of a matrix that is to be
  /// rounded, or whose values are to be those.
  void choose(PackedMatrix &matrix, WeightOp weight, int64_t layer,
              int64_t part, const WeightValues &values);

  /// Adds the order of the columns of what the sources give.
  void addOrder(PackedMatrix &matrix, const std::vector<int32_t> &places);

  /// Adds a factor of what the sources give.
  void addFactor(PackedMatrix &matrix, WeightOp weight, int64_t layer,
                 const Factor &factor, const WeightValues &values);

  std::vector<std::unique_ptr<PackedMatrix>> matrices;
  /// Matrices of low rank, by their sources, and in order.
  std::map<std::string, std::shared_ptr<FactoredMatrix>> factored;
  struct LowRank {
    std::string name;
    int64_t rank;
    std::shared_ptr<FactoredMatrix> matrix;
  };
  std::vector<LowRank> lowRank;
  std::vector<std::unique_ptr<FactorEncoding>> factors;
  std::vector<std::unique_ptr<CalibratedEncoding>> roundings;
  std::vector<std::unique_ptr<OrderEncoding>> orders;
  /// The numbers that were chosen and are used.
  std::map<const ChosenMatrix *, std::string> chosen;
  /// One flag for each weight.
  std::vector<std::pair<std::string, std::unique_ptr<std::atomic<bool>>>>
      overflows;
  NotFiniteFlags notFinite;
  std::vector<Task> tasks;
  std::deque<std::atomic<int64_t>> left; ///< tasks of each matrix
  WeightLayout layout;
  int64_t totalBytes = 0, maxTaskBytes = 0;
  std::map<std::string, QuantizationError> errors; ///< by kind of form
};
} // namespace

static std::optional<runtime::DType> storageOf(Type type) {
  if (type.isF32())
    return runtime::DType::F32;
  if (type.isF16())
    return runtime::DType::F16;
  if (type.isBF16())
    return runtime::DType::BF16;
  return std::nullopt;
}

/// Adds what the sources of one part of one layer give to a matrix of `shape`.
static void addPieces(PackedMatrix &matrix, WeightOp weight, int64_t layer,
                      int64_t part, ArrayRef<int64_t> shape,
                      const Checkpoint *checkpoint, std::atomic<bool> *overflow,
                      NotFiniteFlags *notFinite) {
  int64_t rows = shape.empty() ? 1 : shape[0];
  bool open = false;
  for (const spec::WeightSource &source : sourcesOf(weight, layer, part)) {
    int64_t shift = part * source.step;
    PackPiece &piece = matrix.pieces.emplace_back();
    piece.overflow = overflow;
    piece.begin = source.begin;
    piece.scale = static_cast<float>(source.scale);
    if (source.count > 1) {
      piece.run = source.end - source.begin;
      piece.stride = source.stride;
    }
    open |= source.end < 0;
    if (!checkpoint) {
      piece.rows = (source.end - source.begin) * source.count;
      continue;
    }
    const CheckpointTensor *info = checkpoint->find(source.tensor);
    piece.data = info->data;
    piece.tensor = info;
    piece.dtype = info->dtype;
    if (notFinite)
      piece.notFinite = &notFinite->try_emplace(info, false).first->second;
    piece.transposed =
        source.transposed && info->shape.size() > 1 && shape.size() > 1;
    // Dimensions before the rows are 1, those behind them are columns. The rows
    // of a transposed tensor are the last dimension, or all behind the first if
    // no other part stands in it.
    int64_t elements = 1;
    for (int64_t size : info->shape)
      elements *= size;
    piece.tensorRows =
        !piece.transposed ? elements / std::max<int64_t>(matrix.wholeColumns, 1)
        : source.step ? info->shape.back()
                      : elements / std::max<int64_t>(info->shape.front(), 1);
    piece.rows =
        ((source.end < 0 ? piece.tensorRows : source.end) - source.begin) *
        source.count;
    if (piece.transposed)
      piece.firstValue = shift * piece.tensorRows;
    else
      piece.begin += shift;
  }
  // Without a file the number of rows may be known only up to the padding, and
  // is not that of the sources if the matrix is a factor of theirs.
  if (!checkpoint && (open || factorOf(weight))) {
    matrix.pieces.resize(1);
    matrix.pieces[0].rows = rows;
  }
  for (PackPiece &piece : matrix.pieces) {
    piece.whole = matrix.rows;
    matrix.rows += piece.rows;
  }
}

/// The order of the columns of a weight's sources, which are all alike.
static const std::vector<int32_t> &orderOf(WeightOp weight, int64_t layer,
                                           int64_t columns,
                                           const Checkpoint *checkpoint) {
  static const std::vector<int32_t> none;
  const CheckpointTensor *tensor =
      checkpoint ? checkpoint->find(sourcesOf(weight, layer, 0).front().tensor)
                 : nullptr;
  if (!tensor || !tensor->encoding ||
      int64_t(tensor->encoding->order().size()) != columns)
    return none;
  return tensor->encoding->order();
}

void Plan::addOrder(PackedMatrix &matrix, const std::vector<int32_t> &places) {
  orders.push_back(
      std::make_unique<OrderEncoding>(places, int64_t(matrix.numBands)));
  PackPiece &piece = matrix.pieces.emplace_back();
  piece.tensor = &orders.back()->tensor;
  piece.rows = piece.tensorRows = matrix.rows = matrix.numBands;
}

void Plan::addFactor(PackedMatrix &matrix, WeightOp weight, int64_t layer,
                     const Factor &factor, const WeightValues &values) {
  int64_t rank = factor.left ? matrix.columns : matrix.numBands;
  if (matrix.panelWidth && !factor.left)
    rank = notedRows(weight).value_or(rank * matrix.panelWidth);
  std::string key;
  llvm::raw_string_ostream(key)
      << weight.getSources() << weight->getAttr("attune.scales") << '#' << layer
      << '#' << rank;
  std::shared_ptr<FactoredMatrix> &known = factored[key];
  if (!known) {
    auto product = std::make_unique<PackedMatrix>();
    product->columns = product->wholeColumns = factor.columns;
    product->numBands = factor.rows;
    addPieces(*product, weight, layer, /*part=*/0,
              {factor.rows, factor.columns}, values.checkpoint,
              overflows.back().second.get(), &notFinite);
    known = std::make_shared<FactoredMatrix>(std::move(product), rank);
    StringRef name = weight.getSymName();
    name.consume_back(".scales");
    name.consume_back(factor.left ? ".left" : ".right");
    lowRank.push_back({name.str(), rank, known});
  }
  auto encoding = std::make_unique<FactorEncoding>(known, factor.left);
  CheckpointTensor &tensor = encoding->tensor;
  tensor.name = weight.getSymName().str();
  tensor.dtype = runtime::DType::F32;
  tensor.shape = {factor.left ? factor.rows : rank,
                  factor.left ? rank : factor.columns};
  tensor.encoding = encoding.get();
  PackPiece &piece = matrix.pieces.emplace_back();
  piece.overflow = overflows.back().second.get();
  piece.tensor = &tensor;
  matrix.shared = known.get();
  piece.rows = piece.tensorRows = matrix.rows = tensor.shape[0];
  factors.push_back(std::move(encoding));
}

void Plan::choose(PackedMatrix &matrix, WeightOp weight, int64_t layer,
                  int64_t part, const WeightValues &values) {
  bool rounds = matrix.group || values.asRounded;
  if (!rounds || !values.checkpoint || !values.chosen || factorOf(weight) ||
      getCut(weight))
    return;
  const ChosenMatrix *numbers =
      values.chosen->find(chosenKey(weight, layer, part));
  if (!numbers || (matrix.group && !(numbers->form == matrix.form())))
    return;
  auto encoding = std::make_unique<CalibratedEncoding>(*numbers, matrix.rows,
                                                       matrix.columns);
  CheckpointTensor &tensor = encoding->tensor;
  tensor.name = weight.getSymName().str();
  tensor.dtype = runtime::DType::F32;
  tensor.shape = {matrix.rows, matrix.columns};
  tensor.encoding = encoding.get();
  PackPiece piece;
  piece.overflow = overflows.back().second.get();
  piece.tensor = &tensor;
  piece.rows = piece.tensorRows = matrix.rows;
  piece.dtype = matrix.pieces.front().dtype; // before, for the report
  matrix.pieces = {piece};
  matrix.firstColumn = 0;
  matrix.wholeColumns = matrix.columns;
  matrix.keptColumns.clear();
  chosen.insert({numbers, numbers->form.kind()});
  roundings.push_back(std::move(encoding));
}

std::unique_ptr<PackedMatrix> Plan::describePart(WeightOp weight, int64_t layer,
                                                 int64_t part, int64_t rank,
                                                 const WeightValues &values) {
  // Weights that become bytes are read as f32.
  std::optional<runtime::DType> storage =
      weight.getGroup() ? runtime::DType::F32
                        : storageOf(weight.getLayerType().getElementType());
  if (!storage) {
    weight.emitOpError("is kept as ") << weight.getLayerType().getElementType()
                                      << ", which weights cannot be packed in";
    return nullptr;
  }
  if (weight.getLayerType().getElementType().isInteger(4)) {
    weight.emitOpError("of 4 bits has a place in a file only in panels");
    return nullptr;
  }
  std::vector<int64_t> shape = unpackedShape(weight);
  auto matrix = std::make_unique<PackedMatrix>();
  matrix->dtype = *storage;
  matrix->panelWidth = weight.getPanelWidth().value_or(0);
  matrix->gated = weight.getGated() && matrix->panelWidth;
  StoredForm form = formOf(weight);
  matrix->group = form.group;
  matrix->bits = weight.getBits();
  matrix->zeros = form.zeros;
  matrix->scaleType = form.scales;
  matrix->byteFloats = form.byteFloats;
  matrix->scales = weight.holdsScales();
  matrix->pairs = !matrix->group && weight.getColumnsSideBySide() == 2;
  for (size_t i = 1; i < shape.size(); ++i)
    matrix->columns *= shape[i];
  int64_t rows = shape.empty() ? 1 : shape[0];
  matrix->wholeColumns = matrix->columns;
  std::optional<WeightCut> cut = getCut(weight);
  std::vector<int64_t> whole = shape;
  if (cut && cut->cutsParts) {
    part += cut->rows[rank].front().begin;
    cut.reset();
  }
  if (cut) {
    whole[0] = cut->wholeRows;
    matrix->wholeColumns = cut->wholeColumns;
  }
  std::optional<KeptPart> left = keptOf(weight);
  if (left) {
    whole = {left->wholeRows, left->wholeColumns};
    matrix->wholeColumns = left->wholeColumns;
    if (const auto *ranges = KeptPart::ofLayer(left->columns, layer))
      matrix->keptColumns.assign(ranges->begin(), ranges->end());
  }
  if (cut && cut->cutsColumns())
    matrix->keepColumns(cut->columns[rank].begin, cut->columns[rank].count);
  matrix->numBands =
      matrix->panelWidth ? weight.getPartType().getDimSize(0) : rows;
  matrix->noise =
      noiseFor(weight.getSymName(), layer * countAllParts(weight) + part,
               shape.size() < 2, matrix->wholeColumns, values.seed);

  const std::vector<int32_t> &order =
      orderOf(weight, layer,
              weight.holdsOrder() ? matrix->numBands : matrix->wholeColumns,
              values.checkpoint);
  if (weight.holdsOrder()) {
    addOrder(*matrix, order);
    return matrix;
  }
  if (form.ordered)
    matrix->order = &order;
  if (std::optional<Factor> factor = factorOf(weight);
      factor && values.checkpoint)
    addFactor(*matrix, weight, layer, *factor, values);
  else
    addPieces(*matrix, weight, layer, part, whole, values.checkpoint,
              overflows.back().second.get(), &notFinite);
  // Ranks share what pruning has left.
  if (const auto *ranges =
          left ? KeptPart::ofLayer(left->rows, layer) : nullptr)
    matrix->keepRows({ranges->begin(), ranges->end()});
  if (cut) {
    std::vector<std::pair<int64_t, int64_t>> kept;
    for (const WeightCut::Rows &some : cut->rows[rank])
      kept.emplace_back(some.begin, some.count);
    matrix->keepRows(kept);
  }
  choose(*matrix, weight, layer, part, values);
  if (form.hasByteScales() &&
      !llvm::all_of(matrix->pieces, [&](const PackPiece &piece) {
        return matrix->keeps(piece) && matrix->zerosFrom < 0;
      })) {
    weight.emitOpError("has scales in two levels, which numbers are not "
                       "rounded to: a checkpoint must have them");
    return nullptr;
  }
  if (matrix->gated && matrix->rows % 2) {
    weight.emitOpError("interleaves two halves, but has ")
        << matrix->rows << " rows";
    return nullptr;
  }

  return matrix;
}

bool Plan::addPart(WeightOp weight, int64_t layer, int64_t part, int64_t rank,
                   const WeightValues &values) {
  std::unique_ptr<PackedMatrix> matrix =
      describePart(weight, layer, part, rank, values);
  if (!matrix)
    return false;
  if (weight.getGainAttr()) {
    auto gain = SymbolTable::lookupNearestSymbolFrom<WeightOp>(
        weight, weight.getGainAttr());
    std::unique_ptr<PackedMatrix> vector =
        describePart(gain, layer, 0, rank, values);
    if (!vector)
      return false;
    matrix->gains = vector->values();
    for (float &entry : matrix->gains)
      entry += weight.getGainOffset().convertToFloat();
  }
  const WeightPlace &place = *layout.lookup(weight.getSymName());
  int64_t bandBytes = std::max<int64_t>(matrix->bandBytes(), 1);
  int64_t start = layout.inBlob(place.getLayerOffset(layer), rank) +
                  part * (place.layerBytes / weight.getNumParts());
  int64_t step = std::max<int64_t>((1 << 20) / bandBytes, 1);
  std::atomic<int64_t> &number = left.emplace_back(0);
  for (int64_t band = 0; band < matrix->numBands; band += step) {
    int64_t last = std::min(band + step, matrix->numBands);
    tasks.push_back(
        {matrix.get(), band, last, start + band * bandBytes, &number});
    ++number;
    if (matrix->shared)
      matrix->shared->addTask();
    maxTaskBytes = std::max(maxTaskBytes, (last - band) * bandBytes);
  }
  matrices.push_back(std::move(matrix));
  return true;
}

bool Plan::build(ModuleOp module, const WeightValues &values,
                 DiagnosticEngine &diags,
                 function_ref<bool(WeightOp, int64_t)> wants) {
  FailureOr<WeightLayout> places = layoutWeights(module);
  if (failed(places))
    return false;
  layout = std::move(*places);
  totalBytes = layout.totalBytes;
  if (values.checkpoint && !wants &&
      !checkWeights(neededWeights(module, nullptr), *values.checkpoint, diags,
                    /*complete=*/false))
    return false;
  for (auto weight : module.getOps<WeightOp>()) {
    overflows.emplace_back(weight.getSymName().str(),
                           std::make_unique<std::atomic<bool>>(false));
    std::optional<WeightCut> cut = getCut(weight);
    for (int64_t rank = 0; rank < (cut ? cut->numRanks() : 1); ++rank)
      for (int64_t layer = 0; layer < weight.getNumLayers(); ++layer) {
        if (wants && !wants(weight, layer))
          continue;
        for (int64_t part = 0; part < weight.getNumParts(); ++part)
          if (!addPart(weight, layer, part, rank, values))
            return false;
      }
  }
  // Matrices that share a computation are packed at one time.
  std::map<const SharedResult *, size_t> firstOf;
  std::vector<std::pair<size_t, Task>> order;
  for (const Task &task : tasks) {
    size_t place = order.size();
    if (const SharedResult *shared = task.matrix->shared)
      place = firstOf.insert({shared, place}).first->second;
    order.emplace_back(place, task);
  }
  llvm::stable_sort(
      order, [](const auto &a, const auto &b) { return a.first < b.first; });
  for (auto [task, ordered] : llvm::zip(tasks, order))
    task = ordered.second;
  return true;
}

bool Plan::run(
    const WeightValues &values, uint8_t *blob,
    const std::function<bool(int64_t, const uint8_t *, int64_t)> &sink) {
  std::atomic<size_t> next{0};
  std::atomic<bool> ok{true};
  std::atomic<uint64_t> done{0};
  std::mutex mutex;
  auto work = [&](bool tells) {
    std::vector<uint8_t> buffer(blob ? 0 : maxTaskBytes);
    std::map<std::string, QuantizationError> lost;
    for (size_t i; ok && (i = next++) < tasks.size();) {
      const Task &task = tasks[i];
      uint8_t *out = blob ? blob + task.offset : buffer.data();
      lost[task.matrix->form().kind()].add(
          task.matrix->pack(task.first, task.last, out));
      if (task.matrix->shared)
        task.matrix->shared->finishTask();
      // The sources of a matrix are read once: memory need not keep them.
      if (--*task.left == 0 && values.checkpoint)
        for (const PackPiece &piece : task.matrix->pieces) {
          auto [data, size] = piece.bytesOf(task.matrix->wholeColumns);
          values.checkpoint->release(data, size);
        }
      int64_t bytes = (task.last - task.first) * task.matrix->bandBytes();
      if (!blob && !sink(task.offset, out, bytes))
        ok = false;
      done += uint64_t(bytes);
      if (tells && values.progress)
        values.progress(done, uint64_t(totalBytes));
    }
    std::lock_guard<std::mutex> lock(mutex);
    for (const auto &[kind, error] : lost)
      errors[kind].add(error);
  };
  std::vector<std::thread> team;
  for (unsigned i = 1; i < values.threads && i < tasks.size(); ++i)
    team.emplace_back(work, /*tells=*/false);
  work(/*tells=*/true);
  for (std::thread &thread : team)
    thread.join();
  return ok;
}

void Plan::warn(const WeightValues &values, DiagnosticEngine &diags) const {
  warnOverflow(diags);
  if (values.checkpoint)
    warnNotFinite(diags, *values.checkpoint);
}

void Plan::warnOverflow(DiagnosticEngine &diags) const {
  for (const auto &[name, flag] : overflows)
    if (*flag)
      diags.warning({},
                    "weight '" + name +
                        "' has values beyond the range of f16, which became "
                        "infinite; keep it in bf16 or f32 (--dtype)");
}

void Plan::warnNotFinite(DiagnosticEngine &diags,
                         const Checkpoint &checkpoint) const {
  constexpr unsigned most = 10;
  unsigned number = 0;
  for (const auto &[name, tensor] : checkpoint.tensors()) {
    auto flag = notFinite.find(tensor);
    if (flag == notFinite.end() || !flag->second)
      continue;
    NotFinite found = findNotFinite(*tensor);
    checkpoint.release(tensor->data, tensor->bytes);
    if (found.count == 0 || found.isMask(*tensor) || ++number > most)
      continue;
    diags.warning({}, "tensor '" + name + "' in " + checkpoint.path() + " " +
                          found.text(*tensor) + "; the outputs " +
                          (found.firstIsNaN ? "will" : "may") +
                          " be NaN; the file may be damaged");
  }
  if (number > most)
    diags.warning({}, std::to_string(number - most) +
                          " more tensors hold values that are not finite");
}

/// Adds a piece of an encoded tensor.
static void count(const PackedMatrix &matrix, const PackPiece &piece,
                  std::vector<WeightReport::Encoded> &encoded) {
  WeightReport::Encoded entry{
      piece.tensor->encoding->name(), runtime::dtypeLowerName(matrix.dtype),
      piece.dtype == matrix.dtype || matrix.dtype == runtime::DType::F32, 0};
  if (matrix.group) {
    entry.became = matrix.form().text();
    entry.kept = matrix.keeps(piece);
  }
  auto same = llvm::find_if(encoded, [&](const WeightReport::Encoded &other) {
    return other.name == entry.name && other.became == entry.became;
  });
  if (same == encoded.end())
    same = encoded.insert(same, entry);
  ++same->tensors;
  StoredForm form = piece.tensor->encoding->form();
  if (!matrix.group && form.bits && !form.ordered)
    ++same->widened;
}

WeightReport Plan::report(double seconds) const {
  WeightReport result{uint64_t(totalBytes), seconds, {}, {}, {}};
  std::map<std::string, QuantizationError> errorsOf = errors;
  for (const auto &[matrix, kind] : chosen)
    errorsOf[kind].add({matrix->lost, matrix->total});
  for (const LowRank &layer : lowRank) {
    if (result.lowRank.empty() || result.lowRank.back().name != layer.name)
      result.lowRank.push_back({layer.name,
                                layer.matrix->getProduct().rows,
                                layer.matrix->getProduct().columns,
                                layer.rank,
                                {}});
    result.lowRank.back().errors.push_back(layer.matrix->error());
  }
  for (const auto &matrix : matrices) {
    const CheckpointTensor *before = nullptr; // of which rows are taken twice
    for (const PackPiece &piece : matrix->pieces)
      if (!matrix->scales && piece.tensor && piece.tensor->encoding &&
          piece.tensor->encoding->isQuantized() &&
          std::exchange(before, piece.tensor) != piece.tensor)
        count(*matrix, piece, result.encoded);
  }
  for (const char *kind : {"int8", "int4", "fp8", "mxfp4"}) {
    WeightReport::Quantized sum;
    sum.kind = kind;
    for (const auto &matrix : matrices) {
      if (!matrix->group || matrix->form().kind() != sum.kind ||
          llvm::all_of(matrix->pieces, [&](const PackPiece &piece) {
            return matrix->keeps(piece) &&
                   piece.tensor->encoding->isQuantized();
          }))
        continue;
      sum.bytes += matrix->numBands * matrix->bandBytes();
      if (matrix->scales)
        continue;
      ++sum.matrices;
      for (const PackPiece &piece : matrix->pieces)
        sum.bytesBefore +=
            piece.rows * matrix->columns * runtime::dtypeBytes(piece.dtype);
    }
    QuantizationError error = errorsOf[kind];
    if (error.total > 0)
      sum.error = std::sqrt(error.lost / error.total);
    if (sum.matrices)
      result.quantized.push_back(sum);
  }
  return result;
}

std::string chosenKey(WeightOp weight, int64_t layer, int64_t part) {
  std::string key;
  for (const spec::WeightSource &source : sourcesOf(weight, layer, part)) {
    int64_t shift = part * source.step;
    llvm::raw_string_ostream(key)
        << source.tensor << (source.transposed ? "^T[" : "[")
        << source.begin + shift << ':' << source.end << ':' << source.stride
        << ':' << source.count << ']';
    if (source.scale != 1)
      llvm::raw_string_ostream(key) << '*' << source.scale;
  }
  return key;
}

int64_t countValues(WeightOp weight) {
  int64_t count = 1;
  for (int64_t size : unpackedShape(weight))
    count *= size;
  return count;
}

WeightRows readRows(WeightOp weight, int64_t layer, int64_t part,
                    const Checkpoint &checkpoint) {
  std::vector<int64_t> shape = unpackedShape(weight);
  WeightRows result;
  PackedMatrix matrix;
  // Ranks that share a weight read all of it.
  if (std::optional<WeightCut> cut = getCut(weight); cut && !cut->cutsParts) {
    shape[0] = cut->wholeRows;
    if (shape.size() > 1)
      shape = {cut->wholeRows, cut->wholeColumns};
  }
  for (size_t i = 1; i < shape.size(); ++i)
    matrix.columns *= shape[i];
  result.columns = matrix.wholeColumns = matrix.columns;
  std::optional<KeptPart> kept = keptOf(weight);
  auto expand = [](const KeptPart::Ranges *ranges,
                   std::vector<int64_t> &places) {
    for (auto [begin, count] : ranges ? *ranges : KeptPart::Ranges())
      for (int64_t i = 0; i < count; ++i)
        places.push_back(begin + i);
  };
  if (kept) {
    shape = {kept->wholeRows, kept->wholeColumns};
    matrix.wholeColumns = kept->wholeColumns;
    if (const auto *ranges = KeptPart::ofLayer(kept->columns, layer)) {
      matrix.keptColumns.assign(ranges->begin(), ranges->end());
      expand(ranges, result.columnsOf);
    }
  }
  addPieces(matrix, weight, layer, part, shape, &checkpoint,
            /*overflow=*/nullptr, /*notFinite=*/nullptr);
  if (const auto *ranges =
          kept ? KeptPart::ofLayer(kept->rows, layer) : nullptr) {
    matrix.keepRows({ranges->begin(), ranges->end()});
    expand(ranges, result.rowsOf);
  }
  result.rows = matrix.numBands = matrix.rows;
  result.values = matrix.values();
  return result;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

using Clock = std::chrono::steady_clock;

static double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::optional<WeightReport> packWeights(ModuleOp module,
                                        const WeightValues &values,
                                        uint8_t *blob,
                                        DiagnosticEngine &diags) {
  Clock::time_point start = Clock::now();
  Plan plan;
  if (!plan.build(module, values, diags))
    return std::nullopt;
  // Gaps between the weights are zero, so that equal models give equal bytes.
  // Clearing all is cheap beside packing.
  std::memset(blob, 0, plan.getTotalBytes());
  plan.run(values, blob, nullptr);
  plan.warn(values, diags);
  return plan.report(secondsSince(start));
}

void packLayers(ModuleOp module, const WeightValues &values,
                function_ref<bool(WeightOp, int64_t)> wants, uint8_t *blob,
                DiagnosticEngine &diags) {
  Plan plan;
  if (plan.build(module, values, diags, wants))
    plan.run(values, blob, nullptr);
}

static bool writeAt(int file, int64_t offset, const uint8_t *data,
                    int64_t size) {
  while (size > 0) {
    ssize_t written = pwrite(file, data, size, offset);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return false;
    data += written;
    size -= written;
    offset += written;
  }
  return true;
}

static void putWord(uint8_t *out, uint64_t value) {
  for (int i = 0; i < 8; ++i)
    out[i] = uint8_t(value >> (8 * i));
}

std::optional<WeightReport> appendWeights(ModuleOp module,
                                          const WeightValues &values,
                                          const std::string &path,
                                          DiagnosticEngine &diags) {
  Clock::time_point start = Clock::now();
  Plan plan;
  if (!plan.build(module, values, diags))
    return std::nullopt;
  auto fail = [&](const char *what, int code) {
    diags.error({}, path + ": cannot " + what +
                        " the weights: " + std::strerror(code));
    return std::nullopt;
  };
  int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0)
    return fail("open a file for", errno);
  struct stat status;
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(file);
    return fail("append", EINVAL);
  }
  int64_t before = status.st_size;
  int64_t offset = (before + kWeightPage - 1) / kWeightPage * kWeightPage;
  int64_t end = offset + plan.getTotalBytes();
  // Growing the file first leaves zeros between the weights.
  std::atomic<int> code{0};
  bool ok = ftruncate(file, end + kWeightTrailerBytes) == 0;
  if (!ok)
    code = errno;
  ok = ok && plan.run(values, nullptr,
                      [&](int64_t at, const uint8_t *data, int64_t size) {
                        if (writeAt(file, offset + at, data, size))
                          return true;
                        code = errno;
                        return false;
                      });
  uint8_t trailer[kWeightTrailerBytes] = {};
  putWord(trailer, uint64_t(offset));
  putWord(trailer + 8, uint64_t(plan.getTotalBytes()));
  putWord(trailer + 16, plan.getFingerprint());
  std::memcpy(trailer + 24, "ATTUNEW1", 8);
  if (ok && (!writeAt(file, end, trailer, sizeof(trailer)) ||
             !runtime::coverWithWeightSection(
                 file, end + kWeightTrailerBytes, offset,
                 plan.getTotalBytes() + kWeightTrailerBytes))) {
    ok = false;
    code = errno;
  }
  if (!ok) {
    // Best effort: the error is reported either way.
    if (ftruncate(file, before) != 0)
      code = code ? code.load() : errno;
    ::close(file);
    return fail("write", code);
  }
  if (::close(file) != 0)
    return fail("write", errno);
  plan.warn(values, diags);
  return plan.report(secondsSince(start));
}

} // namespace attune
