//===- CliInspect.cpp - Inspection of a compiled model --------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/Cli.h"
#include "attune/Runtime/Machine.h"

#include <algorithm>
#include <cstdlib>

namespace attune::runtime {

/// 1234567 -> "1,234,567".
static std::string grouped(int64_t value) {
  std::string digits = std::to_string(value);
  size_t first = digits[0] == '-' ? 1 : 0;
  for (size_t i = digits.size(); i > first + 3;) {
    i -= 3;
    digits.insert(i, ",");
  }
  return digits;
}

static std::string cell(const JsonValue &value) {
  if (value.isString())
    return value.string;
  if (value.isInt())
    return grouped(value.integer);
  std::string out;
  appendJson(out, value);
  return out;
}

/// An array of objects as a table with the members of the first as columns.
static void appendTable(std::string &out, const JsonValue &rows) {
  std::vector<std::vector<std::string>> lines;
  const std::vector<std::string> &columns = rows.items[0].keys;
  lines.push_back(columns);
  for (const JsonValue &row : rows.items) {
    lines.emplace_back();
    for (const std::string &column : columns) {
      const JsonValue *value = row.find(column);
      lines.back().push_back(value ? cell(*value) : "");
    }
  }
  for (const std::vector<std::string> &line : lines) {
    std::string text = "   ";
    for (size_t c = 0; c < columns.size(); ++c) {
      size_t width = 0;
      for (const std::vector<std::string> &other : lines)
        width = std::max(width, other[c].size());
      std::string padding(width - line[c].size(), ' ');
      const JsonValue *sample = rows.items[0].find(columns[c]);
      bool number = sample && sample->isNumber();
      text += " " + (number ? padding + line[c] : line[c] + padding) + " ";
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  }
}

/// Whatever the compiler put into "inspect": numbers and texts as lines,
/// arrays of objects as tables, objects indented.
static void appendSection(std::string &out, const JsonValue &value,
                          const std::string &indent) {
  for (size_t i = 0; i < value.keys.size(); ++i) {
    const JsonValue &member = value.items[i];
    out += indent + value.keys[i] + ":";
    if (member.isObject()) {
      out += "\n";
      appendSection(out, member, indent + "  ");
    } else if (member.isArray() && !member.items.empty() &&
               member.items[0].isObject()) {
      out += "\n";
      appendTable(out, member);
    } else {
      out += " " + cell(member) + "\n";
    }
  }
}

/// Arguments that the runtime gives by itself are not listed.
static bool isTheRuntimes(ArgKind kind) {
  return kind == ArgKind::Weights || kind == ArgKind::Past ||
         kind == ArgKind::Lengths || kind == ArgKind::Size;
}

static const char *kindName(ArgKind kind) {
  switch (kind) {
  case ArgKind::Weights:
    return "weights";
  case ArgKind::Input:
    return "input";
  case ArgKind::Past:
    return "past";
  case ArgKind::Lengths:
    return "lengths";
  case ArgKind::Size:
    return "size";
  case ArgKind::Cache:
    return "cache";
  case ArgKind::Output:
    return "output";
  }
  return "";
}

/// The code that would run here; null: none would.
static const CpuVariantInfo *findVariant(const ModelInfo &info) {
  Error error;
  auto chosen = chooseVariant(info.variants, std::getenv(kForcedCpu), error);
  return chosen ? &info.variants[*chosen] : nullptr;
}

/// `"cpus": [{"cpu", "needs"}], "cpu": the one that runs here or null`.
static void appendVariants(std::string &out, const ModelInfo &info) {
  if (info.variants.empty())
    return;
  out += ",\"cpus\":[";
  for (const CpuVariantInfo &variant : info.variants) {
    out += &variant == info.variants.data() ? "{\"cpu\":" : ",{\"cpu\":";
    appendJsonString(out, variant.cpu);
    out += ",\"needs\":[";
    for (size_t i = 0; i < variant.needs.size(); ++i) {
      out += i ? "," : "";
      appendJsonString(out, variant.needs[i]);
    }
    out += "]}";
  }
  out += "],\"cpu\":";
  if (const CpuVariantInfo *here = findVariant(info))
    appendJsonString(out, here->cpu);
  else
    out += "null";
}

static std::string inspectJson(const ModelInfo &info) {
  std::string out = "{\"name\":";
  appendJsonString(out, info.name);
  out += ",\"weights_bytes\":" + std::to_string(info.weightsBytes);
  if (info.ranksOfGroup() > 1)
    out += ",\"ranks\":" + std::to_string(info.ranksOfGroup());
  if (info.sharers > 1)
    out += ",\"sharers_of_positions\":" + std::to_string(info.sharers);
  if (info.groups > 1)
    out += ",\"groups\":" + std::to_string(info.groups);
  if (info.context >= 0)
    out += ",\"context\":" + std::to_string(info.context);
  if (!info.decodesAlone.empty()) {
    out += ",\"decodes_alone\":";
    appendJsonString(out, info.decodesAlone);
  }
  appendVariants(out, info);
  out += std::string(",\"tokenizer\":") +
         (info.hasTokenizer() ? "true" : "false") + ",\"entries\":[";
  for (const EntryInfo &entry : info.entries) {
    out += entry.index ? ",{\"name\":" : "{\"name\":";
    appendJsonString(out, entry.name);
    out += ",\"args\":[";
    bool first = true;
    for (const ArgInfo &arg : entry.args) {
      if (isTheRuntimes(arg.kind))
        continue;
      out += first ? "{\"kind\":\"" : ",{\"kind\":\"";
      first = false;
      out += kindName(arg.kind);
      out += "\",\"name\":";
      appendJsonString(out, arg.name);
      out += std::string(",\"dtype\":\"") + dtypeLowerName(arg.dtype) +
             "\",\"shape\":[";
      for (size_t d = 0; d < arg.shape.size(); ++d) {
        out += d ? "," : "";
        if (arg.shape[d].symbol.empty())
          out += std::to_string(arg.shape[d].size);
        else
          appendJsonString(out, arg.shape[d].symbol);
      }
      out += arg.defaultValue == DefaultValue::None ? "]}"
                                                    : "],\"optional\":true}";
    }
    out += "]}";
  }
  out += "]";
  if (!info.inspect.isNull()) {
    // A program has no use for the table.
    JsonValue numbers = info.inspect;
    for (size_t i = 0; i < numbers.keys.size(); ++i)
      if (numbers.keys[i] == "table") {
        numbers.keys.erase(numbers.keys.begin() + static_cast<ptrdiff_t>(i));
        numbers.items.erase(numbers.items.begin() + static_cast<ptrdiff_t>(i));
        break;
      }
    out += ",\"inspect\":";
    appendJson(out, numbers);
  }
  return out + "}\n";
}

static std::string describeTokenizer(const ModelInfo &info) {
  if (!info.hasTokenizer())
    return "none";
  if (!info.tokenizerKind.empty())
    return info.tokenizerKind;
  Error error;
  std::unique_ptr<Tokenizer> tokenizer = Tokenizer::open(info, error);
  return tokenizer ? tokenizer->describe()
                   : "cannot be used (" + error.message + ")";
}

std::string formatInspection(const ModelInfo &info, bool json) {
  if (json)
    return inspectJson(info);
  std::string out = "model: " + info.name + "\n";
  out += "weights: " + grouped(static_cast<int64_t>(info.weightsBytes)) +
         " bytes\n";
  if (info.ranksOfGroup() > 1)
    out += "ranks: " + grouped(info.ranksOfGroup()) + ", which mpirun starts\n";
  if (info.sharers > 1)
    out += "positions of a text: a rank keeps one in " + grouped(info.sharers) +
           "\n";
  if (info.groups > 1)
    out += "groups of " +
           (info.ranksOfGroup() > 1
                ? "such ranks"
                : std::string("one rank, which mpirun starts")) +
           ": " + grouped(info.groups) + "\n";
  if (info.context >= 0)
    out += "context: " + grouped(info.context) + " positions\n";
  out += "tokenizer: " + describeTokenizer(info) + "\n";
  if (info.find("decode_batch"))
    out += "serving: a step decodes all texts\n";
  else if (!info.decodesAlone.empty())
    out +=
        "serving: a step decodes one text, because " + info.decodesAlone + "\n";
  if (!info.variants.empty()) {
    out += "code for: ";
    for (const CpuVariantInfo &variant : info.variants)
      out += (&variant == info.variants.data() ? "" : ", ") + variant.cpu;
    const CpuVariantInfo *here = findVariant(info);
    out += here ? "; here runs " + here->cpu + "\n"
                : std::string("; none runs here\n");
  }
  for (const EntryInfo &entry : info.entries) {
    out += "entry " + entry.name + ":\n";
    for (const ArgInfo &arg : entry.args) {
      if (isTheRuntimes(arg.kind))
        continue;
      out += std::string("  ") + kindName(arg.kind) + " " + arg.name + ": " +
             dtypeLowerName(arg.dtype) + " " + arg.formatShape();
      if (arg.max >= 0)
        out += ", values from 0 to " + std::to_string(arg.max - 1);
      if (arg.ignored)
        out += " or " + std::to_string(*arg.ignored);
      if (arg.places)
        out += ", rows and columns of at most " +
               (arg.places->symbol.empty() ? std::to_string(arg.places->size)
                                           : arg.places->symbol) +
               " places";
      if (arg.defaultValue == DefaultValue::Zeros)
        out += ", all zeros if absent";
      if (arg.defaultValue == DefaultValue::Ones)
        out += ", all ones if absent";
      if (arg.defaultValue == DefaultValue::Iota)
        out += ", counted if absent";
      if (arg.defaultValue == DefaultValue::CountMask)
        out += ", counted along the mask if absent";
      if (arg.defaultValue == DefaultValue::Shifted)
        out += ", the encoder's one place later if absent";
      out += "\n";
    }
  }
  if (!info.inspect.isObject())
    return out;
  const JsonValue *table = info.inspect.find("table");
  if (!table || !table->isString()) {
    appendSection(out, info.inspect, "");
    return out;
  }
  // The table has all that was counted on the model; what a backend adds has
  // names of its own.
  out += "\n" + table->string;
  JsonValue added;
  added.kind = JsonValue::Kind::Object;
  for (const char *key : {"gpu", "kernels"})
    if (const JsonValue *value = info.inspect.find(key)) {
      added.keys.push_back(key);
      added.items.push_back(*value);
    }
  appendSection(out, added, "");
  return out;
}

} // namespace attune::runtime
