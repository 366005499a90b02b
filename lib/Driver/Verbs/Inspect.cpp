//===- Inspect.cpp - attune inspect -----------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Inspect.h"
#include "../Lowering.h"
#include "../ModelSource.h"
#include "../OutputFile.h"
#include "../Statistics.h"
#include "../WeightsForProduct.h"
#include "Verbs.h"

#include "Attune/AttuneDialect.h"
#include "Attune/AttuneFactors.h"
#include "attune/Analysis/MemoryPlan.h"
#include "attune/Analysis/MeshStatistics.h"
#include "attune/Analysis/ModelStatistics.h"
#include "attune/Runtime/Cli.h"
#include "attune/Runtime/Safetensors.h"
#include "attune/Spec/Rings.h"
#include "attune/Target/CPU/MachineProbe.h"
#include "attune/Weights/WeightLayout.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/BinaryFormat/Magic.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace attune;
using namespace attune::driver;

std::optional<std::map<std::string, int64_t>>
driver::chooseDims(const Options &options, const spec::Model &model,
                   Report &report) {
  std::map<std::string, int64_t> dims(options.dims.begin(), options.dims.end());
  for (const std::string &unknown : unknownDims(model, dims)) {
    std::vector<llvm::StringRef> known;
    for (const spec::TensorSpec &input : model.inputs)
      for (const spec::Dim &dim : input.shape)
        if (dim.size < 0 && !llvm::is_contained(known, dim.symbol))
          known.push_back(dim.symbol);
    report.error({}, "the model has no open size '" + unknown + "'; it has " +
                         (known.empty() ? "none" : llvm::join(known, ", ")));
  }
  if (report.getNumErrors())
    return std::nullopt;
  return dims;
}

/// The metadata stands in a product as one text that ends in zero.
std::optional<runtime::ModelInfo> driver::readProduct(const std::string &path,
                                                      Report &report) {
  runtime::MappedFile file;
  std::string problem;
  if (!file.open(path, problem)) {
    report.error({}, problem);
    return std::nullopt;
  }
  llvm::StringRef bytes(reinterpret_cast<const char *>(file.data()),
                        file.size());
  static constexpr llvm::StringLiteral start("{\"abi\":");
  for (size_t at = bytes.find(start); at != llvm::StringRef::npos;
       at = bytes.find(start, at + 1)) {
    llvm::StringRef text = bytes.substr(at);
    text = text.take_front(text.find('\0'));
    llvm::Expected<llvm::json::Value> value = llvm::json::parse(text);
    if (!value) {
      llvm::consumeError(value.takeError());
      continue;
    }
    const llvm::json::Object *object = value->getAsObject();
    const llvm::json::Array *entries =
        object ? object->getArray("entries") : nullptr;
    const llvm::json::Array *variants =
        object ? object->getArray("variants") : nullptr;
    runtime::ModelInfo info;
    runtime::Error error;
    if (entries &&
        runtime::parseModelInfo(
            {text.data(), text.size()},
            entries->size() * (variants ? variants->size() : 1), info, error))
      return info;
  }
  report.error({}, "'" + path + "' is a binary, but not one of Attune's");
  return std::nullopt;
}

bool driver::isBinary(const std::string &path) {
  llvm::file_magic magic;
  return !llvm::sys::fs::is_directory(path) &&
         !llvm::identify_magic(path, magic) &&
         (magic == llvm::file_magic::elf ||
          magic == llvm::file_magic::elf_relocatable ||
          magic == llvm::file_magic::elf_executable ||
          magic == llvm::file_magic::elf_shared_object);
}

static ExitCode inspectProduct(const Options &options, Report &report) {
  if (!options.dims.empty())
    return report.fail("--dim needs the model: a binary carries the figures "
                       "that were counted when it was compiled");
  if (options.format == "html")
    return report.fail("--format=html needs the model; a binary has a table "
                       "and JSON");
  std::optional<runtime::ModelInfo> info = readProduct(options.model, report);
  if (!info)
    return ExitCode::BadInput;
  llvm::outs() << runtime::formatInspection(*info, options.format == "json");
  return ExitCode::Success;
}

namespace {
/// Counting needs no model that compiles; why one does not is for compile to
/// say.
struct QuietReport final : Report {
  using Report::Report;
  void report(const Diagnostic &) override {}
};
} // namespace

/// The compressed sizes of a model that `--quantize` or `--low-rank` was given
/// for. Refusals, as of a pattern that matches nothing, are reported.
static bool compress(const Options &options, const ModelSource &source,
                     Report &report, ModelStatistics &statistics) {
  Lowering lowering(options, report, source, options.fusion);
  return lowering.import(Entries::Forward) && lowering.optimize() &&
         countCompressed(lowering.getWeights(), lowering.getInactiveBytes(),
                         statistics);
}

/// Opens the weights to see that the adapters fit them.
static bool describeLoras(const Options &options, const ModelSource &source,
                          Report &report,
                          std::vector<AdapterStatistics> &adapters) {
  std::vector<MergedLora> merged;
  if (!openCheckpoint(source, options, report, &merged))
    return false;
  for (size_t i = 0; i < merged.size(); ++i)
    adapters.push_back({options.loras[i].folder, options.loras[i].scale,
                        merged[i].parameters, merged[i].maxRank,
                        merged[i].matrices, merged[i].replaced});
  return true;
}

/// Lowers an entry of the model as far as its buffers have places, and adds
/// those up.
static std::optional<MemoryStatistics>
planEntry(const Options &options, const ModelSource &source, Entries entries,
          llvm::StringRef name, const std::map<std::string, int64_t> &dims) {
  QuietReport report(DiagnosticEngine::Format::Json);
  Lowering lowering(options, report, source, options.fusion);
  if (!lowering.import(entries) || !lowering.optimize() ||
      !lowering.lowerToTensor() || !lowering.planLoops())
    return std::nullopt;
  auto weights = layoutWeights(lowering.getWeights());
  auto plan = attune::planMemory(lowering.getModule(), name, dims);
  if (mlir::failed(weights) || !plan)
    return std::nullopt;
  return MemoryStatistics{double(weights->seenBytes()),
                          double(plan->intermediate), double(plan->tensors)};
}

/// The sizes of a step of generation that takes the most memory: a prompt that
/// fills the caches, before which there is nothing. Where rings are smaller
/// than that it comes in pieces.
static std::map<std::string, int64_t>
sizesOfPrompt(const spec::Model &model, std::map<std::string, int64_t> sizes,
              int64_t sharers) {
  sizes["past"] = 0;
  auto length = sizes.find("seq");
  if (length == sizes.end())
    return sizes;
  int64_t capacity = length->second;
  // As a session has it: a share, and a row for what is another rank's.
  sizes["capacity"] =
      sharers > 1 ? (capacity + sharers - 1) / sharers + 1 : capacity;
  for (const spec::Stream &stream : model.streams)
    for (const spec::Layer &layer : stream.layers)
      for (int64_t window : spec::ringsOf(model, layer)) {
        if (!window)
          continue;
        std::string suffix = "_" + std::to_string(window);
        int64_t room = window + model.windowSlack;
        sizes["past" + suffix] = 0;
        sizes["capacity" + suffix] = std::min(capacity, room);
        if (room < capacity)
          sizes["seq"] = std::min(sizes["seq"], model.windowSlack / 2);
      }
  return sizes;
}

namespace {
/// One of the ranks that --mesh asks for.
struct RankReport {
  MeshAxes axes;
  MeshStatistics mesh;
  double bytes = 0, sharedBytes = 0;
  std::optional<Options::Link> link;
  double readGBs = 0; ///< of this machine; measured with a link alone

  double readSeconds() const { return mesh.readBytes / (readGBs * 1e9); }
  double linkSeconds() const {
    return mesh.exchangeSeconds(link->latency, link->bandwidth);
  }
  llvm::json::Object json() const;
  std::string text(uint64_t parameters) const;
};
} // namespace

llvm::json::Object RankReport::json() const {
  llvm::json::Array parameters;
  for (uint64_t count : mesh.parameters)
    parameters.push_back(int64_t(count));
  llvm::json::Object object{{"tp", axes.tp},
                            {"ep", axes.ep},
                            {"sp", axes.sp},
                            {"dp", axes.dp},
                            {"parameters", std::move(parameters)},
                            {"weight_bytes", int64_t(bytes)},
                            {"shared_bytes", int64_t(sharedBytes)}};
  // The figures are for a generated token, or for a sequence.
  std::string of = mesh.tokens ? "sequence_" : "token_";
  if (mesh.tokens)
    object["sequence_tokens"] = mesh.tokens;
  object[of + "flops"] = int64_t(mesh.flops);
  object[of + "read_bytes"] = int64_t(mesh.readBytes);
  object[of + "exchanges"] = mesh.exchanges;
  object[of + "messages"] = mesh.messages;
  object[of + "sent_bytes"] = int64_t(mesh.sentBytes);
  if (link)
    object["predicted"] =
        llvm::json::Object{{"read_gbs", readGBs},
                           {"read_seconds", readSeconds()},
                           {"link_seconds", linkSeconds()},
                           {"token_seconds", readSeconds() + linkSeconds()}};
  return object;
}

std::string RankReport::text(uint64_t parameters) const {
  auto [least, most] =
      std::minmax_element(mesh.parameters.begin(), mesh.parameters.end());
  std::string count = formatShort(double(*most));
  if (formatShort(double(*least)) != count)
    count = formatShort(double(*least)) + " to " + count;
  std::string text =
      llvm::formatv(
          "\ncut for {0} ranks, each of them:\n"
          "  {1} of {2} parameters, weights {3} ({4} of these on all ranks)\n"
          "  {10}: {5} FLOPs and {6} read; {7} exchanges, {8} "
          "messages of {9} in all sent\n",
          mesh.ranks(), count, formatShort(double(parameters)),
          formatBytes(bytes), formatBytes(sharedBytes), formatFlops(mesh.flops),
          formatBytes(mesh.readBytes), mesh.exchanges, mesh.messages,
          formatBytes(mesh.sentBytes),
          mesh.tokens
              ? "a sequence of " + std::to_string(mesh.tokens) + " tokens"
              : std::string("one generated token"))
          .str();
  if (link)
    text += llvm::formatv("  predicted: {0:f3} ms a token, of which reading "
                          "takes {1:f3} at {2:f1} GB/s (measured here) and the "
                          "link {3:f3}\n",
                          (readSeconds() + linkSeconds()) * 1e3,
                          readSeconds() * 1e3, readGBs, linkSeconds() * 1e3)
                .str();
  return text;
}

/// Cuts the model as compile does, and counts.
static std::optional<RankReport> countRank(const Options &options,
                                           const ModelSource &source,
                                           Report &report,
                                           const ModelStatistics &whole) {
  Lowering lowering(options, report, source, options.fusion);
  if (!lowering.import(Entries::All))
    return std::nullopt;
  bool generates = lowering.canGenerate();
  if (options.link && !generates) {
    report.error({}, "--link predicts the time of a generated token, and this "
                     "model generates none");
    return std::nullopt;
  }
  if (!lowering.optimize())
    return std::nullopt;
  auto layout = layoutWeights(lowering.getWeights());
  auto length = whole.dims.find("seq");
  int64_t cached = length == whole.dims.end() ? 0 : length->second;
  auto mesh =
      countMesh(lowering.getModule(), generates ? cached : whole.tokens);
  if (mlir::failed(layout) || !mesh) {
    report.error({}, "the model has layers whose number is not known");
    return std::nullopt;
  }
  RankReport rank{source.mesh, *mesh, double(layout->seenBytes()),
                  double(layout->sharedBytes), options.link};
  if (!rank.link)
    return rank;
  llvm::Expected<MachineProbe> probe = MachineProbe::create(options.threads);
  if (!probe) {
    report.error({}, "the speed of memory cannot be measured: " +
                         llvm::toString(probe.takeError()));
    return std::nullopt;
  }
  rank.readGBs = probe->measureReads();
  return rank;
}

/// The statistics in JSON, with one more member.
static std::string addMember(const std::string &numbers, llvm::StringRef name,
                             llvm::json::Object member) {
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(numbers);
  if (!value) {
    llvm::consumeError(value.takeError());
    return numbers;
  }
  (*value->getAsObject())[name] = std::move(member);
  return llvm::formatv("{0:2}\n", *value).str();
}

std::string driver::describePruned(const ModelSource &source,
                                   const std::map<std::string, int64_t> &dims) {
  ModelStatistics before = analyze(*source.model, dims),
                  after = analyze(source.counted(), dims);
  std::string text =
      llvm::formatv(
          "heads pruned: {0} of {1}; parameters {2} -> {3}, weights {4} -> "
          "{5}, FLOPs {6} -> {7}",
          source.heads->before - source.heads->after, source.heads->before,
          formatShort(double(before.parameters)),
          formatShort(double(after.parameters)),
          formatBytes(before.weightBytes), formatBytes(after.weightBytes),
          formatFlops(before.flops), formatFlops(after.flops))
          .str();
  if (before.decode && after.decode)
    text += ", one generated token reads " + formatBytes(before.decode->bytes) +
            " -> " + formatBytes(after.decode->bytes);
  return text;
}

/// The same as JSON; what is left is in the statistics.
static llvm::json::Object pruned(const ModelSource &source,
                                 const std::map<std::string, int64_t> &dims) {
  ModelStatistics before = analyze(*source.model, dims);
  llvm::json::Object object{
      {"heads_before", source.heads->before},
      {"heads", source.heads->after},
      {"parameters_before", int64_t(before.parameters)},
      {"weight_bytes_before", int64_t(before.weightBytes)},
      {"flops_before", int64_t(before.flops)}};
  if (before.decode)
    object["token_read_bytes_before"] = int64_t(before.decode->bytes);
  return object;
}

ExitCode driver::runInspect(const Options &options, Report &report) {
  if (isBinary(options.model))
    return inspectProduct(options, report);
  std::optional<ModelSource> source = openModel(options, report);
  if (!source)
    return ExitCode::BadInput;
  bool cut = source->mesh.ranksOfGroup() > 1;
  if (options.link && !cut)
    return report.fail(
        "--link needs --mesh=tp=N, ep=N or sp=N with two ranks or more",
        ExitCode::BadCommandLine);
  if (options.mesh && cut && options.format == "html")
    return report.fail("--mesh has a table and JSON, and no --format=html",
                       ExitCode::BadCommandLine);
  if (source->isMlir())
    return report.fail("'" + options.model +
                       "' is an .mlir file; inspect counts from a description "
                       "or a Hugging Face folder");
  auto dims = chooseDims(options, *source->model, report);
  if (!dims)
    return ExitCode::BadInput;
  ModelStatistics statistics = analyze(source->counted(), *dims);
  if (!options.loras.empty() &&
      !describeLoras(options, *source, report, statistics.adapters))
    return ExitCode::BadInput;
  if ((source->quantize || source->lowRank) &&
      !compress(options, *source, report, statistics))
    return ExitCode::BadInput;
  statistics.memory =
      planEntry(options, *source, Entries::Forward, "forward", statistics.dims);
  if (statistics.decode) {
    statistics.decode->memory = planEntry(
        options, *source, Entries::Decode, "decode",
        sizesOfPrompt(source->counted(), statistics.dims, source->mesh.sp));
  }
  std::optional<RankReport> rank;
  if (cut && options.format != "html") {
    rank = countRank(options, *source, report, statistics);
    if (!rank)
      return ExitCode::BadInput;
  }
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (options.format == "json")
    printJson(statistics, stream);
  else if (options.format == "html")
    printHtml(statistics, stream);
  else
    printTable(statistics, stream);
  if (source->heads && options.format != "html")
    text = options.format == "json"
               ? addMember(text, "pruned_heads", pruned(*source, *dims))
               : text + describePruned(*source, *dims) + "\n";
  if (rank)
    text = options.format == "json" ? addMember(text, "mesh", rank->json())
                                    : text + rank->text(statistics.parameters);
  OutputFiles files(report);
  bool written =
      files.write(options.output.empty() ? "-" : options.output, text) &&
      files.commit();
  return written ? ExitCode::Success : ExitCode::BadInput;
}
