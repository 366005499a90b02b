//===- Heatmap.cpp - Outputs as pictures ----------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/Heatmap.h"

#include "../Text/Unicode.h"
#include "attune/Runtime/Json.h"
#include "attune/Runtime/Tokenizer.h"
#include "attune/Runtime/WholeFile.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace attune::runtime {

namespace {

// A cell is a pixel or more; beyond this nobody sees anything.
constexpr int64_t kMostCells = 4096;
constexpr uint64_t kMostNumbers = uint64_t(1) << 26;

// The page draws what stands in `maps`: numbers are 16 bits between low and
// high, in base64. `words` becomes tables. The browser needs nothing else.
constexpr char kHead[] = R"html(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>)html";
constexpr char kStyle[] = R"html(</title>
<style>
body { font: 14px sans-serif; margin: 24px; color: #222 }
#maps { display: flex; flex-wrap: wrap; gap: 24px }
figure { margin: 0 }
figcaption { margin-bottom: 4px }
.scale { display: inline-block; width: 80px; height: 10px; margin: 0 6px;
  background: linear-gradient(to right, #f7fbff, #98afc9 28%, #083070) }
.note { color: #666 }
table { border-collapse: collapse }
th, td { text-align: left; padding: 1px 12px 1px 0; white-space: pre }
td.sure { background: #dce9f5 }
#say { position: sticky; top: 0; background: #fff; padding: 4px 0; height: 1.3em }
</style></head><body>
<div id="say">Point at a cell to read its number.</div>
<div id="maps"></div>
<script>
)html";
constexpr char kDraw[] = R"html(
for (const list of words) {
  const figure = document.createElement("figure");
  const caption = document.createElement("figcaption");
  const table = document.createElement("table");
  const row = (cells, kind) => {
    const line = table.insertRow();
    for (const text of cells) {
      const cell = document.createElement(kind);
      cell.textContent = text;
      line.append(cell);
    }
    return line;
  };
  caption.textContent = list.title +
      ": the likeliest words behind each token, and how likely they are";
  row(["", "token", "1st", "2nd", "3rd", "4th", "5th"], "th");
  list.rows.forEach((choices, r) => {
    const token = list.labels < 0 ? "" : labels[list.labels][r];
    const line = row([r, token, ...choices.map(
        ([word, share]) => word + "  " + Math.round(100 * share) + "%")], "td");
    choices.forEach(([, share], i) => {
      if (share >= .5) line.cells[i + 2].className = "sure";
    });
  });
  figure.append(caption, table);
  document.getElementById("maps").append(figure);
}
const say = document.getElementById("say");
for (const map of maps) {
  const bytes = Uint8Array.from(atob(map.data), c => c.charCodeAt(0));
  const at = i => map.low + (map.high - map.low) *
                  (bytes[2 * i] + 256 * bytes[2 * i + 1]) / 65535;
  const rows = map.size[0], columns = map.size[1];
  const down = labels[map.labels[0]], across = labels[map.labels[1]];
  const side = Math.max(1, Math.min(22, Math.floor(720 / Math.max(rows, columns))));
  const font = Math.min(12, side), text = font >= 8;
  const canvas = document.createElement("canvas"), pen = canvas.getContext("2d");
  pen.font = font + "px sans-serif";
  const widest = list => text && list ?
      Math.ceil(Math.max(...list.map(t => pen.measureText(t).width))) + 6 : 0;
  const left = widest(down), top = widest(across);
  canvas.width = left + columns * side;
  canvas.height = top + rows * side;
  pen.font = font + "px sans-serif";
  pen.textBaseline = "middle";
  pen.textAlign = "right";
  if (left)
    down.forEach((t, r) => pen.fillText(t, left - 4, top + (r + .5) * side));
  pen.textAlign = "left";
  if (top)
    across.forEach((t, c) => {
      pen.save();
      pen.translate(left + (c + .5) * side, top - 4);
      pen.rotate(-Math.PI / 2);
      pen.fillText(t, 0, 0);
      pen.restore();
    });
  for (let r = 0; r < rows; ++r)
    for (let c = 0; c < columns; ++c) {
      const x = (at(r * columns + c) - map.low) / (map.high - map.low || 1);
      const mix = (a, b) => Math.round(a + (b - a) * Math.sqrt(x));
      pen.fillStyle = `rgb(${mix(247, 8)},${mix(251, 48)},${mix(255, 107)})`;
      pen.fillRect(left + c * side, top + r * side, side, side);
    }
  canvas.onmousemove = e => {
    const c = Math.floor((e.offsetX - left) / side);
    const r = Math.floor((e.offsetY - top) / side);
    if (c >= 0 && r >= 0 && c < columns && r < rows)
      say.textContent = map.title + ": " + (down ? r + " " + down[r] : r) +
          " \u2192 " + (across ? c + " " + across[c] : c) + " = " +
          at(r * columns + c).toPrecision(4);
  };
  const figure = document.createElement("figure");
  const caption = document.createElement("figcaption");
  const add = (kind, name, text) => {
    const part = document.createElement(kind);
    part.className = name;
    part.textContent = text;
    caption.append(part);
  };
  caption.textContent = map.title;
  caption.append(document.createElement("br"));
  add("span", "note", map.low.toPrecision(3));
  add("span", "scale", "");
  add("span", "note", map.high.toPrecision(3) + (map.axes ? ", " + map.axes : ""));
  figure.append(caption, canvas);
  document.getElementById("maps").append(figure);
}
</script></body></html>
)html";

/// JSON that may stand in a script.
void appendScriptString(std::string &out, std::string_view text) {
  std::string json;
  appendJsonString(json, text);
  for (char c : json) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
}

bool sameDim(const DimInfo &a, const DimInfo &b) {
  return a.symbol == b.symbol && a.size == b.size;
}

/// Collects the page's labels and pictures.
class Page {
public:
  Page(const ModelInfo &info, const EntryInfo &entry,
       const SafetensorsFile &inputs)
      : entry(entry), inputs(inputs) {
    Error ignored; // without a tokenizer the labels are the ids
    if (info.hasTokenizer())
      tokenizer = Tokenizer::open(info, ignored);
  }

  /// Adds the matrices of one output.
  void add(const ArgInfo &arg, const TensorDecl &decl, const void *data) {
    size_t rank = decl.shape.size();
    uint64_t rows = static_cast<uint64_t>(decl.shape[rank - 2]);
    uint64_t columns = static_cast<uint64_t>(decl.shape[rank - 1]);
    uint64_t each = rows * columns, bytes = each * dtypeBytes(decl.dtype);
    std::vector<float> numbers(each);
    std::vector<int64_t> at(rank - 2, 0);
    const uint8_t *from = static_cast<const uint8_t *>(data);
    while (true) {
      convertElements(decl.dtype, from, DType::F32, numbers.data(), each);
      from += bytes;
      addPicture(decl.name, arg, at, rows, columns, numbers);
      size_t dim = at.size();
      while (dim > 0 && ++at[dim - 1] == decl.shape[dim - 1])
        at[--dim] = 0;
      if (dim == 0)
        return;
    }
  }

  /// Whether an output is a number for each token of the vocabulary, which
  /// words say better than a picture.
  bool isVocabulary(const TensorDecl &decl) const {
    return tokenizer && decl.name == "logits" && decl.shape.size() == 3 &&
           decl.shape[2] >= tokenizer->size();
  }

  /// Adds the likeliest tokens of each row, [batch, sequence, vocabulary].
  void addWords(const ArgInfo &arg, const TensorDecl &decl, const void *data) {
    auto rows = static_cast<uint64_t>(decl.shape[1]);
    auto width = static_cast<uint64_t>(decl.shape[2]);
    std::vector<float> numbers(width);
    const uint8_t *from = static_cast<const uint8_t *>(data);
    for (std::vector<int64_t> at(1, 0); at[0] < decl.shape[0]; ++at[0]) {
      words += words.empty() ? "\n{\"title\":" : ",\n{\"title\":";
      appendScriptString(words, decl.name + describePlace(arg, at, false));
      words +=
          ",\"labels\":" + std::to_string(labelsOf(arg, at, 1)) + ",\"rows\":[";
      for (uint64_t row = 0; row < rows; ++row) {
        convertElements(decl.dtype, from, DType::F32, numbers.data(), width);
        from += width * dtypeBytes(decl.dtype);
        words += row ? ",\n" : "\n";
        appendLikeliest(numbers);
      }
      words += "]}";
    }
  }

  std::string text(const std::string &title) const {
    std::string page = kHead;
    for (char c : title)
      page += c == '<'   ? std::string("&lt;")
              : c == '&' ? std::string("&amp;")
                         : std::string(1, c);
    page += kStyle;
    page +=
        "const labels = [" + labels + "];\nconst maps = [" + pictures + "];";
    page += "\nconst words = [" + words + "];";
    return page + kDraw;
  }
  bool empty() const { return pictures.empty() && words.empty(); }

private:
  /// "attention of layer 3" for what is called "model.layers.3.attention" or,
  /// with some of the heads, "model.layers.3.attention:heads=4-7". `firstHead`
  /// is the number of the first of these.
  static std::string describeAttention(const std::string &name,
                                       int64_t &firstHead) {
    static constexpr std::string_view choice = ":heads=";
    size_t end = name.find(choice);
    if (end == std::string::npos)
      end = name.size();
    else
      firstHead = std::strtoll(name.c_str() + end + choice.size(), nullptr, 10);
    std::string path = name.substr(0, end), layer;
    for (size_t start = 0; start <= path.size();) {
      size_t dot = std::min(path.find('.', start), path.size());
      std::string part = path.substr(start, dot - start);
      if (!part.empty() &&
          part.find_first_not_of("0123456789") == std::string::npos)
        layer = part;
      start = dot + 1;
    }
    bool crosses = path.size() > 6 && path.rfind(".cross") == path.size() - 6;
    std::string words = crosses ? "attention to the other stream" : "attention";
    return layer.empty() ? words : words + " of layer " + layer;
  }

  /// "batch 0, head 1": what the numbers before the last two dimensions count.
  /// Tokens along both sides mean attention, of layers and heads.
  static std::string describePlace(const ArgInfo &arg,
                                   const std::vector<int64_t> &at,
                                   bool isAttention, int64_t firstHead = 0) {
    size_t unnamed = 0;
    bool fits = arg.shape.size() == at.size() + 2;
    for (size_t i = 0; fits && i < at.size(); ++i)
      unnamed += arg.shape[i].symbol.empty();
    std::string out;
    for (size_t i = 0; i < at.size(); ++i) {
      std::string word = "index";
      int64_t number = at[i];
      if (fits && !arg.shape[i].symbol.empty()) {
        word = arg.shape[i].symbol;
      } else if (fits && isAttention) {
        word = unnamed-- == 1 ? "head" : "layer";
        number += word == "head" ? firstHead : 0;
      }
      out += ", " + word + " " + std::to_string(number);
    }
    return out;
  }

  /// [["word",0.25],...]: five tokens and their probabilities.
  void appendLikeliest(const std::vector<float> &logits) {
    constexpr size_t kept = 5;
    std::vector<size_t> order(logits.size());
    std::iota(order.begin(), order.end(), size_t(0));
    size_t count = std::min(kept, order.size());
    // NaN is behind everything.
    auto value = [&](size_t i) {
      return std::isnan(logits[i]) ? -INFINITY : logits[i];
    };
    std::partial_sort(
        order.begin(), order.begin() + static_cast<ptrdiff_t>(count),
        order.end(), [&](size_t a, size_t b) {
          return value(a) != value(b) ? value(a) > value(b) : a < b;
        });
    double most = static_cast<double>(value(order[0])), sum = 0;
    for (size_t i = 0; i < logits.size(); ++i)
      sum += std::exp(static_cast<double>(value(i)) - most);
    words += "[";
    for (size_t i = 0; i < count; ++i) {
      auto id = static_cast<int64_t>(order[i]);
      std::string bytes = tokenizer->bytesOf(id);
      double share =
          std::exp(static_cast<double>(value(order[i])) - most) / sum;
      char number[40];
      std::snprintf(number, sizeof number, ",%.4f]",
                    std::isfinite(share) ? share : 0);
      words += i ? ",[" : "[";
      appendScriptString(words, bytes.empty() ? std::to_string(id) : bytes);
      words += number;
    }
    words += "]";
  }

  void addPicture(const std::string &name, const ArgInfo &arg,
                  const std::vector<int64_t> &at, uint64_t rows,
                  uint64_t columns, const std::vector<float> &numbers) {
    int down = labelsOf(arg, at, at.size());
    int across = labelsOf(arg, at, at.size() + 1);
    bool isAttention = down >= 0 && across >= 0;
    float low = 0, high = 0;
    for (float x : numbers)
      if (std::isfinite(x)) {
        low = x < low ? x : low;
        high = x > high ? x : high;
      }
    std::string bytes;
    for (float x : numbers) {
      float share = high > low ? (x - low) / (high - low) : 0;
      share = share >= 0 ? (share <= 1 ? share : 1) : 0;
      auto word = static_cast<uint16_t>(std::lround(share * 65535));
      bytes += static_cast<char>(word & 255);
      bytes += static_cast<char>(word >> 8);
    }
    pictures += pictures.empty() ? "\n{\"title\":" : ",\n{\"title\":";
    int64_t firstHead = 0;
    std::string title = isAttention ? describeAttention(name, firstHead) : name;
    title += describePlace(arg, at, isAttention, firstHead);
    if (isAttention)
      title += " (" + name + ")";
    appendScriptString(pictures, title);
    pictures += ",\"name\":";
    appendScriptString(pictures, name);
    pictures += ",\"at\":[";
    for (size_t i = 0; i < at.size(); ++i)
      pictures += (i ? "," : "") + std::to_string(at[i]);
    pictures += "],\"axes\":";
    appendScriptString(pictures, isAttention ? "queries down, keys across"
                                 : down >= 0 ? "tokens down"
                                             : "");
    char text[160];
    std::snprintf(text, sizeof text,
                  ",\"size\":[%llu,%llu],\"labels\":[%d,%d],\"low\":%.9g,"
                  "\"high\":%.9g,\"data\":\"",
                  static_cast<unsigned long long>(rows),
                  static_cast<unsigned long long>(columns), down, across,
                  static_cast<double>(low), static_cast<double>(high));
    pictures += text;
    appendBase64(pictures, bytes);
    pictures += "\"}";
  }

  /// The tokens along a dimension: those of an input of ids whose dimensions
  /// are called the same. -1 if there is none.
  int labelsOf(const ArgInfo &arg, const std::vector<int64_t> &at, size_t dim) {
    if (arg.shape.size() != at.size() + 2)
      return -1;
    for (const ArgInfo &ids : entry.args) {
      if (ids.kind != ArgKind::Input || !isInteger(ids.dtype) ||
          ids.shape.size() != 2 || ids.defaultValue != DefaultValue::None ||
          !sameDim(ids.shape[1], arg.shape[dim]))
        continue;
      const TensorInfo *tensor = inputs.find(ids.name);
      if (!tensor || tensor->shape.size() != 2)
        continue;
      int64_t sequence = tensor->shape[0] == 1 ? 0 : -1;
      for (size_t i = 0; i < at.size(); ++i)
        if (sequence < 0 && sameDim(arg.shape[i], ids.shape[0]))
          sequence = at[i];
      if (sequence < 0 || sequence >= tensor->shape[0])
        continue;
      return tokensOf(ids, *tensor, sequence);
    }
    return -1;
  }

  int tokensOf(const ArgInfo &arg, const TensorInfo &tensor, int64_t sequence) {
    for (size_t i = 0; i < known.size(); ++i)
      if (known[i].first == &arg && known[i].second == sequence)
        return static_cast<int>(i);
    auto length = static_cast<uint64_t>(tensor.shape[1]);
    std::vector<int64_t> ids(length);
    convertElements(tensor.dtype,
                    tensor.data + static_cast<uint64_t>(sequence) * length *
                                      dtypeBytes(tensor.dtype),
                    DType::I64, ids.data(), length);
    labels += known.empty() ? "\n[" : ",\n[";
    for (size_t i = 0; i < ids.size(); ++i) {
      std::string bytes;
      if (tokenizer)
        bytes = tokenizer->bytesOf(ids[i]);
      labels += i ? "," : "";
      appendScriptString(labels,
                         bytes.empty() ? std::to_string(ids[i]) : bytes);
    }
    labels += "]";
    known.push_back({&arg, sequence});
    return static_cast<int>(known.size() - 1);
  }

  const EntryInfo &entry;
  const SafetensorsFile &inputs;
  std::unique_ptr<Tokenizer> tokenizer;
  std::string labels, pictures, words;
  std::vector<std::pair<const ArgInfo *, int64_t>> known;
};

} // namespace

bool writeHeatmaps(const std::string &path, const ModelInfo &info,
                   const Invocation &invocation,
                   const std::vector<const void *> &outputs,
                   const SafetensorsFile &inputs, const Messages &messages,
                   Error &error) {
  Page page(info, invocation.entry(), inputs);
  std::vector<const ArgInfo *> args;
  for (const ArgInfo &arg : invocation.entry().args)
    if (arg.kind == ArgKind::Output)
      args.push_back(&arg);
  uint64_t numbers = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const TensorDecl &decl = invocation.outputs()[i];
    size_t rank = decl.shape.size();
    uint64_t count = 0;
    if (page.isVocabulary(decl)) {
      page.addWords(*args[i], decl, outputs[i]);
      continue;
    }
    bool drawn = rank >= 2 && decl.shape[rank - 1] <= kMostCells &&
                 decl.shape[rank - 2] <= kMostCells &&
                 byteSize(decl.shape, 1, count) && count > 0;
    if (!drawn) {
      messages.warning("output '" + decl.name + "' of shape " +
                       formatShape(decl.shape) +
                       " makes no picture of at most " +
                       std::to_string(kMostCells) + " rows and columns");
      continue;
    }
    numbers += count;
    if (numbers > kMostNumbers)
      return error.set(ExitResourceLimit,
                       path + ": the pictures have more than " +
                           std::to_string(kMostNumbers) +
                           " cells; ask for fewer heads, or write safetensors");
    page.add(*args[i], decl, outputs[i]);
  }
  if (page.empty())
    return error.badInput(path + ": no output can be drawn");
  return writeWholeFile(path, page.text(info.name), {}, error);
}

} // namespace attune::runtime
