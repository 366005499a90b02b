//===- PrintStatistics.cpp - Statistics as table, JSON and HTML -----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Analysis/HtmlPage.h"
#include "attune/Analysis/ModelStatistics.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using llvm::raw_ostream;

namespace attune {

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

std::string formatCount(uint64_t count) {
  std::string digits = std::to_string(count);
  for (size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

/// `value` in `unit` with three significant digits.
static std::string formatScaled(double value, const char *unit) {
  int decimals = !*unit || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  std::string number;
  if (decimals == 0)
    number = formatCount(static_cast<uint64_t>(std::llround(value)));
  else
    llvm::raw_string_ostream(number) << llvm::format("%.*f", decimals, value);
  return *unit ? number + " " + unit : number;
}

std::string formatBytes(double bytes) {
  static const char *const units[] = {"B",   "KiB", "MiB", "GiB",
                                      "TiB", "PiB", "EiB"};
  // Memory is bought in GiB: "1,192 GiB" says more than "1.16 TiB".
  constexpr size_t gib = 3;
  size_t unit = 0;
  for (; unit + 1 < std::size(units) && bytes >= (unit == gib ? 10000 : 1000);
       ++unit)
    bytes /= 1024;
  if (unit == 0)
    return std::to_string(static_cast<int64_t>(bytes)) + " B";
  return formatScaled(bytes, units[unit]);
}

static std::string formatThousands(double count,
                                   llvm::ArrayRef<const char *> units) {
  size_t unit = 0;
  // A count that would round to 1000 belongs to the next unit.
  for (; unit + 1 < units.size() && count >= 999.5; ++unit)
    count /= 1000;
  return formatScaled(count, units[unit]);
}

std::string formatShort(double count) {
  return formatThousands(count, {"", "K", "M", "B", "T", "P", "E"});
}

std::string formatFlops(double flops) {
  return formatThousands(flops, {"", "K", "M", "G", "T", "P", "E"});
}

//===----------------------------------------------------------------------===//
// Table
//===----------------------------------------------------------------------===//

namespace {
struct Row {
  std::vector<std::string> cells;
  bool rule = false; ///< a line goes above it
};
} // namespace

static const char *const header[] = {"layer",       "kind",  "parameters",
                                     "weights",     "FLOPs", "KV cache",
                                     "activations", "scores"};

static std::string cost(double value, std::string (*format)(double)) {
  return value == 0 ? "-" : format(value);
}

static std::string count(uint64_t value) {
  return value == 0 ? "-" : formatCount(value);
}

static std::string title(const LayerStatistics &layer, bool manyStreams) {
  std::string name = layer.name.empty() ? "(unnamed)" : layer.name;
  if (manyStreams)
    name = layer.stream + ": " + name;
  return layer.repeat > 1 ? name + " x" + std::to_string(layer.repeat) : name;
}

static bool hasManyStreams(const ModelStatistics &statistics) {
  for (const LayerStatistics &layer : statistics.layers)
    if (layer.stream != statistics.layers.front().stream)
      return true;
  return false;
}

/// The rows of the table, also of the HTML one; parts are indented.
static std::vector<Row> makeRows(const ModelStatistics &statistics) {
  std::vector<Row> rows;
  bool manyStreams = hasManyStreams(statistics);
  for (const LayerStatistics &layer : statistics.layers) {
    rows.push_back(
        {{title(layer, manyStreams), layer.kind, count(layer.parameters),
          cost(layer.weightBytes, formatBytes), cost(layer.flops, formatFlops),
          cost(layer.cacheBytes, formatBytes),
          cost(layer.activationBytes, formatBytes),
          cost(layer.scoreBytes, formatBytes)}});
    if (layer.parts.size() < 2)
      continue;
    for (const PartStatistics &part : layer.parts)
      rows.push_back({{"  " + part.name, "", count(part.parameters), "",
                       cost(part.flops, formatFlops), "", "", ""}});
  }
  Row total{{"total", "", formatCount(statistics.parameters),
             cost(statistics.weightBytes, formatBytes),
             cost(statistics.flops, formatFlops),
             cost(statistics.cacheBytes, formatBytes),
             cost(statistics.activationBytes, formatBytes),
             cost(statistics.scoreBytes, formatBytes)}};
  total.rule = true;
  rows.push_back(std::move(total));
  return rows;
}

static std::string describeDims(const ModelStatistics &statistics) {
  std::string result;
  for (const auto &[name, size] : statistics.dims)
    result += (result.empty() ? "" : ", ") + name + "=" + std::to_string(size);
  return result;
}

/// Otherwise matrices are in full width, but as products of two.
static bool isQuantized(const CompressionStatistics &compression) {
  return !compression.forms.empty() || compression.lowRank.empty();
}

static void noteCompression(const CompressionStatistics &compression,
                            double before, std::vector<std::string> &notes) {
  bool quantized = isQuantized(compression);
  notes.push_back((quantized ? "quantized" : "low rank") +
                  std::string(": all weights take ") +
                  formatBytes(compression.bytes) + " instead of " +
                  formatBytes(before));
  for (const CompressionStatistics::LowRank &some : compression.lowRank)
    notes.push_back(
        "  of rank " + std::to_string(some.rank) + ": " + some.name + " of " +
        std::to_string(some.rows) + "x" + std::to_string(some.columns) + ", " +
        formatCount(some.matrices) +
        (some.matrices == 1 ? " matrix, " : " matrices, ") +
        formatBytes(some.bytes) + "; " + formatShort(some.flops()) +
        " operations for a row instead of " + formatShort(some.flopsBefore()));
  for (const CompressionStatistics::Form &form : compression.forms)
    notes.push_back("  in " + form.name + ": " + formatCount(form.matrices) +
                    (form.matrices == 1 ? " matrix, " : " matrices, ") +
                    formatBytes(form.bytes));
  for (const auto &[name, bytes] : compression.left)
    if (quantized)
      notes.push_back("  in full width: " + name + ", " + formatBytes(bytes));
  if (compression.tokenBytesBefore > 0)
    notes.push_back("  one generated token reads " +
                    formatBytes(compression.tokenBytes) + " instead of " +
                    formatBytes(compression.tokenBytesBefore));
}

static void noteAdapter(const AdapterStatistics &adapter,
                        std::vector<std::string> &notes) {
  std::string note = "LoRA adapter " + adapter.path + ": " +
                     formatShort(static_cast<double>(adapter.parameters)) +
                     " parameters, merged into " +
                     formatCount(adapter.matrices) +
                     (adapter.matrices == 1 ? " matrix" : " matrices");
  if (adapter.matrices)
    note += " with ranks up to " + std::to_string(adapter.maxRank);
  if (adapter.scale != 1)
    llvm::raw_string_ostream(note)
        << ", " << llvm::format("%g", adapter.scale) << " times";
  if (adapter.replaced)
    note += "; in place of the model's own: " + formatCount(adapter.replaced) +
            (adapter.replaced == 1 ? " tensor" : " tensors");
  notes.push_back(std::move(note));
}

/// Sentences under the table.
static std::vector<std::string> makeNotes(const ModelStatistics &statistics) {
  std::vector<std::string> notes;
  std::string dims = describeDims(statistics);
  if (statistics.parameters != 0)
    notes.push_back(formatShort(static_cast<double>(statistics.parameters)) +
                    " parameters, kept as " +
                    spec::stringify(statistics.dtype) + " in " +
                    formatBytes(statistics.weightBytes));
  if (statistics.activeParameters != statistics.parameters)
    notes.push_back(
        formatShort(static_cast<double>(statistics.activeParameters)) +
        " of them active: each token goes through some experts only");
  notes.push_back("one forward pass" + (dims.empty() ? "" : " at " + dims) +
                  ": " + formatFlops(statistics.flops) +
                  " FLOPs (2 per multiply-add; hidden scores not counted)");
  if (statistics.weightBytes > 0)
    notes.push_back("arithmetic intensity: " +
                    formatCount(static_cast<uint64_t>(std::llround(
                        statistics.flops / statistics.weightBytes))) +
                    " FLOPs per byte of weights");
  if (statistics.decode)
    notes.push_back("one generated token after those: " +
                    formatFlops(statistics.decode->flops) + " FLOPs and " +
                    formatBytes(statistics.decode->bytes) +
                    " read (weights and KV cache)");
  for (const LayerStatistics &layer : statistics.layers)
    if (!layer.wholeCache.empty())
      notes.push_back(layer.name + " has windows, but caches all positions: " +
                      layer.wholeCache);
  auto noteMemory = [&](const char *what, const MemoryStatistics &memory,
                        const char *tensors) {
    notes.push_back("memory of " + std::string(what) + ": " +
                    formatBytes(memory.total()) + " (weights " +
                    formatBytes(memory.weights) + ", intermediate results " +
                    formatBytes(memory.intermediate) + ", " + tensors + " " +
                    formatBytes(memory.tensors) + ")");
  };
  if (statistics.memory)
    noteMemory("a compiled forward pass", *statistics.memory,
               "inputs and outputs");
  if (statistics.decode && statistics.decode->memory)
    noteMemory("generating a text of that length at most",
               *statistics.decode->memory, "caches, inputs and outputs");
  for (const AdapterStatistics &adapter : statistics.adapters)
    noteAdapter(adapter, notes);
  if (statistics.compression)
    noteCompression(*statistics.compression, statistics.weightBytes, notes);
  if (statistics.scoreBytes > 0)
    notes.push_back("scores: what attention weights of one layer would take "
                    "unfused, " +
                    formatBytes(statistics.scoreBytes) +
                    " at most; the compiled program keeps none of them");
  return notes;
}

void printTable(const ModelStatistics &statistics, raw_ostream &out) {
  std::vector<Row> rows = makeRows(statistics);
  rows.insert(rows.begin(),
              {std::vector<std::string>(std::begin(header), std::end(header))});
  rows[1].rule = true;
  std::vector<size_t> widths(std::size(header));
  for (const Row &row : rows)
    for (auto [width, cell] : llvm::zip(widths, row.cells))
      width = std::max(width, cell.size());

  out << statistics.name << "\n\n";
  for (const Row &row : rows) {
    if (row.rule) {
      std::string rule;
      for (size_t width : widths)
        rule += std::string(width, '-') + "  ";
      out << llvm::StringRef(rule).rtrim() << "\n";
    }
    std::string line;
    llvm::raw_string_ostream stream(line);
    for (auto [i, cell] : llvm::enumerate(row.cells)) {
      std::string padding(widths[i] - cell.size(), ' ');
      // Names to the left, numbers to the right.
      stream << (i < 2 ? cell + padding : padding + cell) << "  ";
    }
    out << llvm::StringRef(line).rtrim() << "\n";
  }
  out << "\n";
  for (const std::string &note : makeNotes(statistics))
    out << note << "\n";
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

/// Counts as integers as long as they are exact.
static llvm::json::Value number(double value) {
  if (value < 9007199254740992.0)
    return static_cast<int64_t>(value);
  return value;
}

static void printCosts(llvm::json::OStream &json, uint64_t parameters,
                       uint64_t activeParameters, double weightBytes,
                       double flops, double cacheBytes, double activationBytes,
                       double scoreBytes) {
  json.attribute("parameters", static_cast<int64_t>(parameters));
  json.attribute("active_parameters", static_cast<int64_t>(activeParameters));
  json.attribute("weight_bytes", number(weightBytes));
  json.attribute("flops", number(flops));
  json.attribute("kv_cache_bytes", number(cacheBytes));
  json.attribute("activation_bytes", number(activationBytes));
  json.attribute("unfused_score_bytes", number(scoreBytes));
}

static void printLayer(llvm::json::OStream &json,
                       const LayerStatistics &layer) {
  json.object([&] {
    json.attribute("stream", llvm::json::fixUTF8(layer.stream));
    json.attribute("name", llvm::json::fixUTF8(layer.name));
    json.attribute("kind", layer.kind);
    json.attribute("repeat", layer.repeat);
    if (layer.location.line) {
      json.attribute("line", layer.location.line);
      json.attribute("column", layer.location.column);
    }
    printCosts(json, layer.parameters, layer.activeParameters,
               layer.weightBytes, layer.flops, layer.cacheBytes,
               layer.activationBytes, layer.scoreBytes);
    if (!layer.wholeCache.empty())
      json.attribute("whole_cache", layer.wholeCache);
    json.attributeArray("parts", [&] {
      for (const PartStatistics &part : layer.parts)
        json.object([&] {
          json.attribute("name", part.name);
          json.attribute("parameters", static_cast<int64_t>(part.parameters));
          json.attribute("flops", number(part.flops));
        });
    });
  });
}

static void printCompression(llvm::json::OStream &json,
                             const CompressionStatistics &compression) {
  auto printBytes = [&] {
    json.attribute("weight_bytes", number(compression.bytes));
    if (compression.tokenBytesBefore > 0) {
      json.attribute("token_bytes", number(compression.tokenBytes));
      json.attribute("token_bytes_before",
                     number(compression.tokenBytesBefore));
    }
  };
  if (!compression.lowRank.empty())
    json.attributeObject("low_rank", [&] {
      printBytes();
      json.attributeArray("matrices", [&] {
        for (const CompressionStatistics::LowRank &some : compression.lowRank)
          json.object([&] {
            json.attribute("name", llvm::json::fixUTF8(some.name));
            json.attribute("rows", some.rows);
            json.attribute("columns", some.columns);
            json.attribute("rank", some.rank);
            json.attribute("layers", static_cast<int64_t>(some.matrices));
            json.attribute("bytes", number(some.bytes));
            json.attribute("row_flops", number(some.flops()));
            json.attribute("row_flops_before", number(some.flopsBefore()));
          });
      });
    });
  if (!isQuantized(compression))
    return;
  json.attributeObject("quantized", [&] {
    printBytes();
    json.attributeArray("forms", [&] {
      for (const CompressionStatistics::Form &form : compression.forms)
        json.object([&] {
          json.attribute("name", form.name);
          json.attribute("matrices", static_cast<int64_t>(form.matrices));
          json.attribute("bytes", number(form.bytes));
        });
    });
    json.attributeArray("full_width", [&] {
      for (const auto &matrix : compression.left)
        json.object([&] {
          json.attribute("name", llvm::json::fixUTF8(matrix.first));
          json.attribute("bytes", number(matrix.second));
        });
    });
  });
}

static void printAdapters(llvm::json::OStream &json,
                          const std::vector<AdapterStatistics> &adapters) {
  json.attributeArray("lora", [&] {
    for (const AdapterStatistics &adapter : adapters)
      json.object([&] {
        json.attribute("path", llvm::json::fixUTF8(adapter.path));
        json.attribute("scale", adapter.scale);
        json.attribute("parameters", adapter.parameters);
        json.attribute("matrices", static_cast<int64_t>(adapter.matrices));
        json.attribute("replaced", static_cast<int64_t>(adapter.replaced));
        json.attribute("max_rank", adapter.maxRank);
      });
  });
}

static void printMemory(llvm::json::OStream &json,
                        const std::optional<MemoryStatistics> &memory) {
  if (!memory)
    return;
  json.attributeObject("memory", [&] {
    json.attribute("total_bytes", number(memory->total()));
    json.attribute("weight_bytes", number(memory->weights));
    json.attribute("intermediate_bytes", number(memory->intermediate));
    json.attribute("input_output_bytes", number(memory->tensors));
  });
}

void printJson(const ModelStatistics &statistics, raw_ostream &out) {
  llvm::json::OStream json(out, /*IndentSize=*/2);
  json.object([&] {
    json.attribute("name", llvm::json::fixUTF8(statistics.name));
    json.attribute("dtype", spec::stringify(statistics.dtype));
    json.attributeObject("dims", [&] {
      for (const auto &[name, size] : statistics.dims)
        json.attribute(name, size);
    });
    printCosts(json, statistics.parameters, statistics.activeParameters,
               statistics.weightBytes, statistics.flops, statistics.cacheBytes,
               statistics.activationBytes, statistics.scoreBytes);
    if (statistics.decode)
      json.attributeObject("decode", [&] {
        json.attribute("flops", number(statistics.decode->flops));
        json.attribute("bytes", number(statistics.decode->bytes));
        printMemory(json, statistics.decode->memory);
      });
    printMemory(json, statistics.memory);
    if (!statistics.adapters.empty())
      printAdapters(json, statistics.adapters);
    if (statistics.compression)
      printCompression(json, *statistics.compression);
    json.attributeArray("layers", [&] {
      for (const LayerStatistics &layer : statistics.layers)
        printLayer(json, layer);
    });
  });
  json.flush();
  out << "\n";
}

//===----------------------------------------------------------------------===//
// HTML
//===----------------------------------------------------------------------===//

void printHtml(const ModelStatistics &statistics, raw_ostream &out) {
  beginHtmlPage(out, statistics.name,
                R"(th:nth-child(-n+2), td:nth-child(-n+2) { text-align: left; }
tr.part { color: #777; }
tr.total { border-top: 2px solid #222; font-weight: bold; }
.share { display: inline-block; height: .7rem; background: #4a7fb5; }
)");
  out << "<table>\n<tr>";
  for (const char *cell : header)
    out << "<th>" << cell << "</th>";
  out << "<th>share of FLOPs</th></tr>\n";

  // Shares belong to layers; parts follow their layer's row.
  size_t layer = 0;
  for (const Row &row : makeRows(statistics)) {
    bool isPart = llvm::StringRef(row.cells[0]).starts_with("  ");
    out << (isPart     ? "<tr class=\"part\">"
            : row.rule ? "<tr class=\"total\">"
                       : "<tr>");
    for (const std::string &cell : row.cells)
      out << "<td>" << escapeHtml(cell) << "</td>";
    out << "<td style=\"text-align: left\">";
    if (!isPart && !row.rule && statistics.flops > 0) {
      double share = statistics.layers[layer++].flops / statistics.flops;
      out << "<span class=\"share\" style=\"width: "
          << llvm::format("%.1f", 12 * share) << "rem\"></span> "
          << llvm::format("%.1f%%", 100 * share);
    }
    out << "</td></tr>\n";
  }
  out << "</table>\n<ul>\n";
  for (const std::string &note : makeNotes(statistics))
    out << "<li>" << escapeHtml(note) << "</li>\n";
  out << "</ul>\n</body>\n</html>\n";
}

} // namespace attune
