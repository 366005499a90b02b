//===- Charts.cpp - Pictures of a model and its memory ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Charts.h"

#include "attune/Analysis/HtmlPage.h"
#include "attune/Analysis/MemoryPlan.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace attune;
using namespace attune::driver;
using llvm::formatv;

static std::string openSvg(llvm::StringRef id, double width, double height) {
  return formatv("<svg id=\"{0}\" xmlns=\"http://www.w3.org/2000/svg\" "
                 "viewBox=\"0 0 {1:f0} {2:f0}\" width=\"{1:f0}\" "
                 "height=\"{2:f0}\" font-family=\"sans-serif\" "
                 "font-size=\"11\">\n",
                 id, width, height)
      .str();
}

static std::string text(double x, double y, llvm::StringRef anchor,
                        llvm::StringRef words) {
  return formatv("<text x=\"{0:f1}\" y=\"{1:f1}\" text-anchor=\"{2}\">{3}"
                 "</text>\n",
                 x, y, anchor, escapeHtml(words))
      .str();
}

static std::string line(double x1, double y1, double x2, double y2,
                        llvm::StringRef colour) {
  return formatv("<line x1=\"{0:f1}\" y1=\"{1:f1}\" x2=\"{2:f1}\" "
                 "y2=\"{3:f1}\" stroke=\"{4}\"/>\n",
                 x1, y1, x2, y2, colour)
      .str();
}

//===----------------------------------------------------------------------===//
// Roofline
//===----------------------------------------------------------------------===//

std::string driver::drawRoofline(const ModelStatistics &statistics,
                                 const MachinePeak &peak) {
  struct Point {
    std::string name;
    double perByte;
  };
  std::vector<Point> points;
  for (const LayerStatistics &layer : statistics.layers) {
    // Activations go in and out once for each repeat.
    double bytes = layer.weightBytes +
                   double(layer.repeat) * layer.activationBytes +
                   layer.cacheBytes;
    if (layer.flops > 0 && bytes > 0)
      points.push_back({layer.name, layer.flops / bytes});
  }
  if (statistics.decode && statistics.decode->bytes > 0)
    points.push_back({"one step of generation",
                      statistics.decode->flops / statistics.decode->bytes});
  if (points.empty() || peak.f32Gflops <= 0 || peak.readGBs <= 0)
    return {};

  double knee = peak.f32Gflops / peak.readGBs;
  double least = knee / 4, most = knee * 4;
  for (const Point &point : points) {
    least = std::min(least, point.perByte);
    most = std::max(most, point.perByte);
  }
  int from = int(std::floor(std::log10(least)));
  int to = int(std::ceil(std::log10(most)));
  auto rate = [&](double perByte) {
    return std::min(peak.f32Gflops, peak.readGBs * perByte);
  };
  int bottom = int(std::floor(std::log10(rate(std::pow(10, from)))));
  int top = int(std::ceil(std::log10(peak.f32Gflops)));
  const double width = 760, height = 360, left = 60, right = 20, above = 15,
               below = 40;
  auto x = [&](double perByte) {
    return left + (width - left - right) * (std::log10(perByte) - from) /
                      std::max(to - from, 1);
  };
  auto y = [&](double gflops) {
    return height - below -
           (height - above - below) * (std::log10(gflops) - bottom) /
               std::max(top - bottom, 1);
  };
  std::string svg = openSvg("roofline", width, height);
  for (int i = from; i <= to; ++i) {
    double at = x(std::pow(10, i));
    svg += line(at, above, at, height - below, "#ddd");
    svg += text(at, height - below + 15, "middle",
                formatv("{0}", llvm::format("%g", std::pow(10, i))).str());
  }
  for (int i = bottom; i <= top; ++i) {
    double at = y(std::pow(10, i));
    svg += line(left, at, width - right, at, "#ddd");
    svg += text(left - 6, at + 4, "end",
                formatv("{0}", llvm::format("%g", std::pow(10, i))).str());
  }
  svg += text((left + width) / 2, height - 6, "middle",
              "operations for each byte of weights, activations and cache");
  svg += text(left, above - 4, "start",
              formatv("GFLOP/s; this machine: {0:f0} GFLOP/s in f32, {1:f1} "
                      "GB/s read, measured",
                      peak.f32Gflops, peak.readGBs)
                  .str());
  double begin = std::pow(10, from), end = std::pow(10, to);
  svg += formatv("<polyline points=\"{0:f1},{1:f1} {2:f1},{3:f1} "
                 "{4:f1},{5:f1}\" fill=\"none\" stroke=\"#222\" "
                 "stroke-width=\"2\"/>\n",
                 x(begin), y(rate(begin)), x(knee), y(rate(knee)), x(end),
                 y(rate(end)))
             .str();
  for (auto [number, point] : llvm::enumerate(points)) {
    double at = x(point.perByte), high = y(rate(point.perByte));
    svg += formatv("<circle cx=\"{0:f1}\" cy=\"{1:f1}\" r=\"4\" "
                   "fill=\"{2}\"><title>{3}: {4:f2} operations for each "
                   "byte, at most {5:f1} GFLOP/s: {6} limits it</title>"
                   "</circle>\n",
                   at, high, point.perByte < knee ? "#c2452d" : "#4a7fb5",
                   escapeHtml(point.name), point.perByte, rate(point.perByte),
                   point.perByte < knee ? "memory" : "arithmetic")
               .str();
    svg += text(at, high + 16 + 12 * double(number % 4), "middle", point.name);
  }
  return svg + "</svg>\n";
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

std::string driver::drawMemory(mlir::ModuleOp module,
                               const std::map<std::string, int64_t> &dims) {
  std::string result;
  for (auto func : module.getOps<mlir::func::FuncOp>()) {
    auto slots = func->getAttrOfType<mlir::ArrayAttr>("attune.slots");
    auto lives = func->getAttrOfType<mlir::DenseI64ArrayAttr>("attune.lives");
    auto lines = func->getAttrOfType<mlir::ArrayAttr>("attune.frame");
    if (!slots || !lives || !lines)
      continue;
    std::vector<double> offsets{0};
    for (auto slot : slots.getAsRange<mlir::StringAttr>()) {
      auto bytes = evaluateSize(slot.getValue(), dims);
      if (!bytes)
        break;
      offsets.push_back(offsets.back() + double((*bytes + 63) / 64 * 64));
    }
    if (offsets.size() != slots.size() + 1 || offsets.back() <= 0)
      continue;
    llvm::ArrayRef<int64_t> numbers = lives;
    int64_t last = 1;
    for (size_t i = 0; i + 2 < numbers.size(); i += 3)
      last = std::max(last, numbers[i + 2] + 1);
    // The name of each buffer, slot by slot, in the order of `lives`.
    std::vector<std::string> names;
    for (auto name : lines.getAsRange<mlir::StringAttr>())
      if (name.getValue().starts_with("  "))
        names.push_back(name.getValue().trim().str());

    const double width = 760, left = 90, above = 22, below = 24;
    double plot = std::min(320.0, 40.0 + 18.0 * double(slots.size()));
    double height = above + plot + below;
    auto x = [&](int64_t position) {
      return left + (width - left - 10) * double(position) / double(last);
    };
    auto y = [&](double bytes) {
      return above + plot * (1 - bytes / offsets.back());
    };
    result += openSvg("memory-" + func.getName().str(), width, height);
    result +=
        text(left, above - 8, "start",
             "@" + func.getName().str() + ": " + formatBytes(offsets.back()));
    for (size_t i = 0; i + 2 < numbers.size(); i += 3) {
      size_t slot = size_t(numbers[i]);
      double high = y(offsets[slot + 1]);
      result +=
          formatv("<rect x=\"{0:f1}\" y=\"{1:f1}\" width=\"{2:f1}\" "
                  "height=\"{3:f1}\" fill=\"{4}\" stroke=\"#fff\"><title>{5}, "
                  "operations {6} to {7}</title></rect>\n",
                  x(numbers[i + 1]), high,
                  x(numbers[i + 2] + 1) - x(numbers[i + 1]),
                  y(offsets[slot]) - high, slot % 2 ? "#7fa8d0" : "#4a7fb5",
                  escapeHtml(i / 3 < names.size() ? names[i / 3] : ""),
                  numbers[i + 1], numbers[i + 2])
              .str();
    }
    result += line(left, above, left, above + plot, "#222");
    result += line(left, above + plot, width - 10, above + plot, "#222");
    result += text(left - 6, above + 8, "end", formatBytes(offsets.back()));
    result += text(left - 6, above + plot, "end", "0");
    result += text(width - 10, height - 8, "end",
                   "operation " + std::to_string(last - 1));
    result += "</svg>\n";
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Graph
//===----------------------------------------------------------------------===//

Graph::Graph(mlir::ModuleOp module) {
  auto isTensor = [](mlir::Type type) {
    return mlir::isa<mlir::ShapedType>(type);
  };
  for (auto func : module.getOps<mlir::func::FuncOp>()) {
    Function &graph = functions.emplace_back();
    graph.name = func.getName().str();
    llvm::DenseMap<mlir::Value, size_t> origins;
    for (mlir::BlockArgument argument : func.getArguments()) {
      origins[argument] = graph.nodes.size();
      graph.nodes.push_back(
          {{"argument " + std::to_string(argument.getArgNumber())},
           /*argument=*/true});
    }
    func.walk<mlir::WalkOrder::PreOrder>([&](mlir::Operation *op) {
      if (op == func || (llvm::none_of(op->getOperandTypes(), isTensor) &&
                         llvm::none_of(op->getResultTypes(), isTensor)))
        return;
      size_t number = graph.nodes.size();
      Node node;
      node.label.push_back(op->getName().getStringRef().str());
      for (llvm::StringRef key : {"weight", "callee"})
        if (auto symbol = op->getAttrOfType<mlir::SymbolRefAttr>(key))
          node.label.push_back(symbol.getRootReference().getValue().str());
      for (mlir::Value operand : op->getOperands())
        if (auto from = origins.find(operand); from != origins.end()) {
          graph.edges.push_back({from->second, number});
          node.row = std::max(node.row, graph.nodes[from->second].row + 1);
        }
      for (mlir::Value result : op->getResults())
        if (isTensor(result.getType()))
          origins[result] = number;
      for (mlir::Region &region : op->getRegions())
        for (mlir::Block &block : region)
          for (mlir::BlockArgument argument : block.getArguments())
            if (isTensor(argument.getType()))
              origins[argument] = number;
      graph.nodes.push_back(std::move(node));
    });
  }
}

std::string Graph::dot() const {
  std::string text;
  llvm::raw_string_ostream out(text);
  out << "digraph model {\n  node [shape=box, fontname=\"sans-serif\"];\n";
  size_t first = 0;
  for (auto [cluster, graph] : llvm::enumerate(functions)) {
    out << "  subgraph cluster_" << cluster << " {\n    label=\"" << graph.name
        << "\";\n";
    for (auto [number, node] : llvm::enumerate(graph.nodes))
      out << "    n" << first + number << " [label=\""
          << llvm::join(node.label, "\\n") << '"'
          << (node.argument ? ", shape=ellipse" : "") << "];\n";
    for (auto [from, to] : graph.edges)
      out << "    n" << first + from << " -> n" << first + to << ";\n";
    out << "  }\n";
    first += graph.nodes.size();
  }
  out << "}\n";
  return text;
}

std::string Graph::svg() const {
  const double boxHeight = 32, rowHeight = 62, gap = 14, margin = 20;
  auto widthOf = [](const Node &node) {
    size_t most = 0;
    for (const std::string &label : node.label)
      most = std::max(most, label.size());
    return 16 + 6.2 * double(most);
  };
  std::string body;
  double top = margin, whole = 200;
  for (const Function &graph : functions) {
    std::vector<double> ends; // of each row, so far
    std::vector<double> centres, lefts;
    for (const Node &node : graph.nodes) {
      if (ends.size() <= node.row)
        ends.resize(node.row + 1, margin + gap);
      lefts.push_back(ends[node.row]);
      centres.push_back(ends[node.row] + widthOf(node) / 2);
      ends[node.row] += widthOf(node) + gap;
      whole = std::max(whole, ends[node.row] + margin);
    }
    double height = 30 + rowHeight * double(ends.size());
    auto y = [&](size_t row) { return top + 30 + rowHeight * double(row); };
    double widest = 0;
    for (double end : ends)
      widest = std::max(widest, end);
    body += formatv("<g><rect x=\"{0:f1}\" y=\"{1:f1}\" width=\"{2:f1}\" "
                    "height=\"{3:f1}\" fill=\"#f6f6f6\" stroke=\"#bbb\"/>\n",
                    margin, top, std::max(widest - margin, 160.0), height)
                .str();
    body += text(margin + 8, top + 18, "start", "@" + graph.name);
    for (auto [from, to] : graph.edges) {
      double y1 = y(graph.nodes[from].row) + boxHeight;
      double y2 = y(graph.nodes[to].row);
      body += formatv("<path d=\"M{0:f1} {1:f1} C{0:f1} {2:f1} {3:f1} {4:f1} "
                      "{3:f1} {5:f1}\" fill=\"none\" stroke=\"#888\"/>\n",
                      centres[from], y1, y1 + 16, centres[to], y2 - 16, y2)
                  .str();
    }
    for (auto [number, node] : llvm::enumerate(graph.nodes)) {
      double at = y(node.row);
      body += formatv("<rect x=\"{0:f1}\" y=\"{1:f1}\" width=\"{2:f1}\" "
                      "height=\"{3:f1}\" rx=\"{4}\" fill=\"#fff\" "
                      "stroke=\"#4a7fb5\"/>\n",
                      lefts[number], at, widthOf(node), boxHeight,
                      node.argument ? 16 : 3)
                  .str();
      double step = node.label.size() > 1 ? 13 : 0;
      for (auto [i, label] : llvm::enumerate(node.label))
        body += text(centres[number], at + 20 - step / 2 + step * double(i),
                     "middle", label);
    }
    body += "</g>\n";
    top += height + margin;
  }
  return openSvg("graph", whole, top) + body + "</svg>\n";
}
