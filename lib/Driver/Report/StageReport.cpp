//===- StageReport.cpp - A page about every stage ---------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StageReport.h"

#include "Charts.h"

#include "attune/Analysis/HtmlPage.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <sys/resource.h>

using namespace attune;
using namespace attune::driver;

/// Text of a stage beyond this stays in its file.
static constexpr size_t mostText = 4 << 20;

void StageReport::add(llvm::StringRef name, llvm::StringRef text) {
  Clock::time_point now = Clock::now();
  Stage stage;
  stage.name = name.str();
  stage.text = text.take_front(mostText).str();
  stage.seconds = std::chrono::duration<double>(now - last).count();
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) == 0)
    stage.peakBytes = int64_t(usage.ru_maxrss) * 1024;
  stages.push_back(std::move(stage));
  last = Clock::now();
}

void StageReport::add(llvm::StringRef name, llvm::StringRef text,
                      mlir::ModuleOp module) {
  add(name, text);
  Stage &stage = stages.back();
  module.walk([&](mlir::Operation *op) {
    if (op == module)
      return;
    ++stage.operations;
    ++stage.counts[op->getName().getStringRef()];
  });
  last = Clock::now();
}

static const char head[] = R"(<style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem; color: #222; }
table { border-collapse: collapse; margin-bottom: 1.5rem; }
th, td { padding: .1rem .8rem; text-align: right; }
th:first-child, td:first-child { text-align: left; }
th { border-bottom: 2px solid #222; }
pre { font: 12px/1.4 monospace; margin: 0; }
.sides { display: flex; gap: 1rem; }
.sides > div { flex: 1; overflow: auto; max-height: 80vh;
               border: 1px solid #ccc; padding: .5rem; }
.graph { overflow: auto; max-height: 80vh; }
.gone { background: #fdd; } .new { background: #dfd; }
details { margin-bottom: 1rem; } summary { cursor: pointer; }
.bar { display: inline-block; height: .7rem; background: #4a7fb5; }
</style>
)";

/// Lines that only one side has are coloured; sides too different to compare
/// are shown as they are. Values, blocks and aliases are numbered anew by each
/// pass, so lines are compared without their names.
static const char script[] = R"(<script>
const stages = JSON.parse(document.getElementById("stages").textContent);
const pick = ["left", "right"].map(id => document.getElementById(id));
function common(a, b) {
  // Myers' greedy algorithm, as far as 2000 differences.
  const max = Math.min(a.length + b.length, 2000), v = new Map([[1, 0]]);
  const trace = [];
  for (let d = 0; d <= max; ++d) {
    trace.push(new Map(v));
    for (let k = -d; k <= d; k += 2) {
      let x = k == -d || (k != d && v.get(k - 1) < v.get(k + 1))
            ? v.get(k + 1) : v.get(k - 1) + 1;
      let y = x - k;
      while (x < a.length && y < b.length && a[x] === b[y]) { ++x; ++y; }
      v.set(k, x);
      if (x < a.length || y < b.length) continue;
      const keep = [new Set(), new Set()];
      for (; d >= 0; --d) {
        const u = trace[d], k = x - y;
        const p = k == -d || (k != d && u.get(k - 1) < u.get(k + 1)) ? k + 1 : k - 1;
        const px = u.get(p), py = px - p;
        while (x > px && y > py && x > 0 && y > 0) { keep[0].add(--x); keep[1].add(--y); }
        x = px; y = py;
      }
      return keep;
    }
  }
  return null;
}
function show() {
  const lines = pick.map(p => stages[p.value].text.split("\n"));
  const plain = line => line.replace(/%[\w$.-]+(#\d+)?/g, "%")
      .replace(/\^bb\d+/g, "^bb").replace(/#(map|loc|set)\d*\b/g, "#$1");
  const keep = common(...lines.map(side => side.map(plain)));
  ["leftText", "rightText"].forEach((id, side) => {
    const pre = document.getElementById(id);
    pre.textContent = "";
    lines[side].forEach((line, i) => {
      const row = document.createElement("div");
      row.textContent = line || " ";
      if (keep && !keep[side].has(i)) row.className = side ? "new" : "gone";
      pre.appendChild(row);
    });
  });
}
pick.forEach((p, side) => {
  stages.forEach((s, i) => p.add(new Option(s.name, i)));
  p.value = Math.min(side, stages.length - 1);
  p.onchange = show;
});
show();
</script>
)";

/// The sizes that figures are for: ", for batch 1 and seq 1024".
static std::string assumed(const std::optional<ModelStatistics> &statistics) {
  std::string text;
  if (statistics)
    for (const auto &[name, size] : statistics->dims)
      text += (text.empty() ? ", for " : " and ") + escapeHtml(name) + " " +
              std::to_string(size);
  return text;
}

static std::string bar(double share) {
  std::string text;
  llvm::raw_string_ostream(text)
      << "<td style=\"text-align: left\"><span class=\"bar\" style=\"width: "
      << llvm::format("%.1f", 12 * share) << "rem\"></span></td>";
  return text;
}

void StageReport::printStages(llvm::raw_ostream &out) const {
  double longest = 1e-9;
  for (const Stage &stage : stages)
    longest = std::max(longest, stage.seconds);
  out << "<h2 id=\"stages-of-ir\">Stages</h2>\n<table id=\"time\">\n"
         "<tr><th>stage</th><th>seconds</th><th>peak MiB</th>"
         "<th>operations</th><th></th></tr>\n";
  for (const Stage &stage : stages)
    out << "<tr><td><a href=\"" << escapeHtml(stage.name) << "\">"
        << escapeHtml(stage.name) << "</a></td><td>"
        << llvm::format("%.3f", stage.seconds) << "</td><td>"
        << (stage.peakBytes >> 20) << "</td><td>"
        << (stage.operations ? std::to_string(stage.operations) : "") << "</td>"
        << bar(stage.seconds / longest) << "</tr>\n";
  out << "</table>\n";
  if (times.empty())
    return;
  longest = 1e-9;
  for (const auto &[name, seconds] : times)
    longest = std::max(longest, seconds);
  out << "<h2 id=\"steps-of-compilation\">Where the time went</h2>\n"
         "<table id=\"steps\">\n"
         "<tr><th>step</th><th>seconds</th><th></th></tr>\n";
  for (const auto &[name, seconds] : times)
    out << "<tr><td>" << escapeHtml(name) << "</td><td>"
        << llvm::format("%.3f", seconds) << "</td>" << bar(seconds / longest)
        << "</tr>\n";
  out << "</table>\n";
}

void StageReport::printLayers(llvm::raw_ostream &out,
                              const std::optional<ModelStatistics> &statistics,
                              const std::optional<MachinePeak> &peak) const {
  if (!statistics)
    return;
  out << "<h2 id=\"all-layers\">Layers</h2>\n<table "
         "id=\"layers\">\n<tr><th>layer</th>"
         "<th>kind</th><th>line</th><th>repeat</th><th>parameters</th>"
         "<th>weight bytes</th><th>FLOPs</th><th>FLOPs per weight "
         "byte</th></tr>\n";
  for (const LayerStatistics &layer : statistics->layers) {
    out << "<tr><td>" << escapeHtml(layer.name) << "</td><td>" << layer.kind
        << "</td><td>" << layer.location.line << "</td><td>" << layer.repeat
        << "</td><td>" << formatCount(layer.parameters) << "</td><td>"
        << formatBytes(double(layer.weightBytes)) << "</td><td>"
        << formatFlops(double(layer.flops)) << "</td><td>";
    if (layer.weightBytes > 0)
      out << llvm::format("%.2f",
                          double(layer.flops) / double(layer.weightBytes));
    out << "</td></tr>\n";
  }
  out << "</table>\n";
  if (peak)
    out << "<h2 id=\"roof\">Roofline</h2>\n<p>Layers below the slope wait for "
           "memory, "
           "those below the flat part for arithmetic"
        << assumed(statistics) << ".</p>\n"
        << drawRoofline(*statistics, *peak);
}

static llvm::StringRef dialectOf(llvm::StringRef operation) {
  return operation.split('.').first;
}

/// One line a dialect, below which its operations are folded.
void StageReport::printOperations(llvm::raw_ostream &out) const {
  llvm::MapVector<llvm::StringRef, std::vector<llvm::StringRef>> dialects;
  llvm::StringSet<> known;
  for (const Stage &stage : stages)
    for (auto [name, count] : stage.counts)
      if (known.insert(name).second)
        dialects[dialectOf(name)].push_back(name);
  auto printHead = [&](llvm::StringRef id) {
    out << "<table id=\"" << id << "\">\n<tr><th></th>";
    for (const Stage &stage : stages)
      if (stage.operations)
        out << "<th>" << escapeHtml(stage.name) << "</th>";
    out << "</tr>\n";
  };
  auto printRow = [&](llvm::StringRef name, auto counts) {
    out << "<tr><td>" << escapeHtml(name) << "</td>";
    for (const Stage &stage : stages) {
      if (!stage.operations)
        continue;
      int64_t count = 0;
      for (auto [operation, number] : stage.counts)
        count += counts(operation) ? number : 0;
      out << "<td>";
      if (count)
        out << count;
      out << "</td>";
    }
    out << "</tr>\n";
  };
  std::vector<llvm::StringRef> names;
  for (auto &[dialect, operations] : dialects) {
    names.push_back(dialect);
    llvm::sort(operations);
  }
  llvm::sort(names);
  out << "<h2 id=\"all-operations\">Operations</h2>\n";
  printHead("dialects");
  for (llvm::StringRef dialect : names)
    printRow(dialect, [&](llvm::StringRef operation) {
      return dialectOf(operation) == dialect;
    });
  out << "</table>\n";
  for (llvm::StringRef dialect : names) {
    out << "<details><summary>" << escapeHtml(dialect) << ": "
        << dialects[dialect].size() << " operations</summary>\n";
    printHead("operations");
    for (llvm::StringRef name : dialects[dialect])
      printRow(name,
               [&](llvm::StringRef operation) { return operation == name; });
    out << "</table></details>\n";
  }
}

std::string StageReport::html(llvm::StringRef title,
                              const std::optional<ModelStatistics> &statistics,
                              const std::optional<MachinePeak> &peak) const {
  std::string page;
  llvm::raw_string_ostream out(page);
  out << "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta "
         "charset=\"utf-8\">\n<title>"
      << escapeHtml(title) << "</title>\n"
      << head << "</head>\n<body>\n<h1>" << escapeHtml(title) << "</h1>\n";

  // The parts that follow, in order.
  std::pair<const char *, const char *> parts[] = {
      {"stages-of-ir", "Stages"},
      {times.empty() ? nullptr : "steps-of-compilation", "Where the time went"},
      {statistics ? "all-layers" : nullptr, "Layers"},
      {statistics && peak ? "roof" : nullptr, "Roofline"},
      {frames.empty() && memory.empty() ? nullptr : "memory", "Memory"},
      {"all-operations", "Operations"},
      {graph.empty() ? nullptr : "model-graph", "Graph"},
      {"side-by-side", "Side by side"}};
  out << "<p>";
  for (auto [id, name] : parts)
    if (id)
      out << "<a href=\"#" << id << "\">" << name << "</a> ";
  out << "</p>\n";
  printStages(out);
  printLayers(out, statistics, peak);
  if (!frames.empty() || !memory.empty())
    out << "<h2 id=\"memory\">Memory of each function</h2>\n";
  if (!memory.empty())
    out << "<p>Over the operations of a function" << assumed(statistics)
        << ":</p>\n"
        << memory;
  if (!frames.empty())
    out << "<details><summary>All buffers as text</summary>\n<p>Buffers that "
           "share a slot are never needed at once; they stand in the order of "
           "their lives.</p>\n<pre id=\"frames\">"
        << escapeHtml(frames) << "</pre></details>\n";
  printOperations(out);

  if (!graph.empty())
    out << "<h2 id=\"model-graph\">Graph</h2>\n<div class=\"graph\">" << graph
        << "</div>\n";

  out << "<h2 id=\"side-by-side\">Side by side</h2>\n<div "
         "class=\"sides\"><div><select "
         "id=\"left\"></select><pre id=\"leftText\"></pre></div><div><select "
         "id=\"right\"></select><pre id=\"rightText\"></pre></div></div>\n"
         "<script type=\"application/json\" id=\"stages\">";
  llvm::json::Array list;
  for (const Stage &stage : stages)
    list.push_back(llvm::json::Object{
        {"name", stage.name}, {"text", llvm::json::fixUTF8(stage.text)}});
  std::string json;
  llvm::raw_string_ostream(json) << llvm::json::Value(std::move(list));
  // The end of a script would end it inside a string, too.
  for (size_t at = 0; (at = json.find("</", at)) != std::string::npos; at += 3)
    json.replace(at, 2, "<\\/");
  out << json << "</script>\n" << script << "</body>\n</html>\n";
  return page;
}
