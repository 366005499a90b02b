//===- Parser.cpp - JSON text to a validated model --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Defaults.h"
#include "Audio.h"
#include "LayerParser.h"
#include "attune/Spec/Taps.h"

#include <algorithm>
#include <cstdio>

namespace attune::spec {

/// More numbers than this in one tensor, or in all, are a typing error, and
/// keep every product of sizes far from 64 bits.
static constexpr double maxTensorElements = double(1ull << 40);
static constexpr double maxModelElements = double(1ull << 50);
static constexpr int64_t maxLayers = 100000;
static constexpr size_t maxOutputs = 1024;

namespace {

/// The top level: dims, inputs, streams, outputs, then what concerns them all.
class ModelParser {
public:
  ModelParser(const Object &root, Model &model)
      : root(root), context(root.getContext()), model(model) {}

  void run();

private:
  void parseInputs();
  TensorSpec parseInput(const std::string &name, const Object &object);
  void parseStreams();
  void parseStream(const Object &object, Stream stream,
                   const std::string &prefix);
  Known inputWidth(const Object &object, const Stream &stream, bool &pooled);
  void parseOutputs();
  bool isOutput(const std::string &target, const Value &value,
                const std::string &pointer);
  void parseGeneration();
  void parseSampling(const Object &generation);
  void parseContext();
  void checkNames();
  void checkSizes();

  /// Every layer with the object it came from.
  struct Entry {
    size_t stream, layer;
    Object object;
  };
  const Layer &get(const Entry &entry) const {
    return model.streams[entry.stream].layers[entry.layer];
  }

  const Object &root;
  Context &context;
  Model &model;
  std::vector<Entry> entries;
};

} // namespace

void ModelParser::run() {
  model.name = root.string("name", "model");
  model.description = root.string("description");
  model.dtype = root.choice("dtype", DType::F32);
  model.quantize = root.string("quantize");
  if (const Value *quantize = root.get("quantize"))
    model.quantizeLocation = context.reporter.locate(quantize->offset);
  model.activations = root.choice("activations", RowForm::Bytes);
  model.lowRank = root.string("low_rank");
  if (const Value *lowRank = root.get("low_rank"))
    model.lowRankLocation = context.reporter.locate(lowRank->offset);
  model.mesh = root.string("mesh");
  if (const Value *mesh = root.get("mesh"))
    model.meshLocation = context.reporter.locate(mesh->offset);
  model.kvCache = root.choice("kv_cache", KvCache::Full);
  model.pruneHeads = root.string("prune_heads");
  if (const Value *heads = root.get("prune_heads"))
    model.pruneHeadsLocation = context.reporter.locate(heads->offset);
  root.integer("attune", std::nullopt); // its range is the check
  context.dims.evaluateAll();
  model.dims = context.dims.getValues();
  parseInputs();
  parseStreams();
  parseOutputs();
  parseContext();
  parseGeneration();
  checkNames();
  // Sizes mean something only if they are the ones that were meant.
  if (context.reporter.getNumErrors() == 0)
    checkSizes();
}

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

TensorSpec ModelParser::parseInput(const std::string &name,
                                   const Object &object) {
  TensorSpec tensor;
  tensor.name = name;
  tensor.location = object.getLocation();
  tensor.dtype = object.choice("dtype", DType::F32);
  tensor.fallback = object.string("default");
  const Value *shape = object.get("shape");
  if (!shape)
    return tensor;
  std::string at = child(object.getPointer(), "shape");
  double elements = 1;
  for (size_t i = 0; i < shape->elements.size(); ++i) {
    const Value &value = shape->elements[i];
    Dim dim;
    if (value.isString() && isIdentifier(value.text) &&
        !context.dims.contains(value.text))
      dim.symbol = value.text;
    else
      dim.size =
          context.dims.evaluate(value, child(at, i), 1, maxInteger).value_or(1);
    if (dim.size > 0)
      elements *= static_cast<double>(dim.size);
    tensor.shape.push_back(std::move(dim));
  }
  if (tensor.fallback == "iota" &&
      (tensor.shape.empty() ||
       (tensor.dtype != DType::I64 && tensor.dtype != DType::I32)))
    object.error("default", "iota numbers the elements of i64 or i32 tensors");
  if (tensor.fallback == "shifted" &&
      (tensor.shape.size() != 2 || tensor.dtype != DType::I64 ||
       name.rfind("decoder_", 0) != 0))
    object.error("default", "shifted is for i64 inputs decoder_X [batch, "
                            "tokens]");
  if (shape->elements.size() > 8)
    object.error("shape", "has more than 8 dimensions");
  else if (elements > maxTensorElements)
    object.error("shape", "has more than 2^40 elements");
  return tensor;
}

void ModelParser::parseInputs() {
  for (auto &[name, object] : root.namedObjects("inputs")) {
    if (name.empty())
      object.error("an input needs a name");
    model.inputs.push_back(parseInput(name, object));
  }
  if (root.has("inputs"))
    return;
  // A plain language model need not say what it reads.
  std::vector<Object> layers = root.objects("layers");
  if (layers.empty() || !layers.front().has("embedding"))
    return;
  TensorSpec ids;
  ids.name = "input_ids";
  ids.dtype = DType::I64;
  ids.shape = {{-1, "batch"}, {-1, "seq"}};
  ids.location = layers.front().getLocation();
  model.inputs.push_back(std::move(ids));
}

std::string defaultInput(const Model &model, bool needsIds, bool image) {
  std::vector<std::string> fitting, flat;
  for (const TensorSpec &input : model.inputs) {
    if (input.name == "input")
      return input.name;
    bool isId = input.dtype == DType::I64 || input.dtype == DType::I32;
    bool isFloat = input.dtype == DType::F32 || input.dtype == DType::F16 ||
                   input.dtype == DType::BF16;
    if (needsIds ? isId && input.shape.size() == 2
                 : isFloat && (input.shape.size() == 3 ||
                               (image && input.shape.size() == 4)))
      fitting.push_back(input.name);
    else if (image && isFloat && input.shape.size() == 2)
      flat.push_back(input.name);
  }
  if (fitting.empty())
    fitting = std::move(flat);
  // Targets of a loss are ids, too.
  for (const std::string &name : fitting)
    if (name == "input_ids")
      return name;
  return fitting.size() == 1 ? fitting.front() : "";
}

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

/// Channels of a stream's input: 0 for ids or none, unknown after an error.
Known ModelParser::inputWidth(const Object &object, const Stream &stream,
                              bool &pooled) {
  const TensorSpec *input = nullptr;
  std::vector<std::string> names;
  for (const TensorSpec &candidate : model.inputs) {
    names.push_back(candidate.name);
    if (candidate.name == stream.input)
      input = &candidate;
  }
  if (!input) {
    if (stream.input.empty())
      return 0;
    if (const Layer *source = findResult(model.streams, stream.input)) {
      pooled = source->pooled;
      if (source->width == 0 && context.reporter.getNumErrors() == 0)
        object.error("input", quote(stream.input) +
                                  " gives nothing that a stream could start "
                                  "from, [batch, tokens, width] or [batch, "
                                  "width]");
      return source->width ? Known(source->width) : std::nullopt;
    }
    for (const Stream &earlier : model.streams) {
      names.push_back(earlier.name);
      for (const Layer &layer : earlier.layers)
        names.push_back(layer.name);
    }
    std::string near = nearest(stream.input, names);
    object.error("input",
                 "unknown input " + quote(stream.input) +
                     (near.empty() ? "; name it in 'inputs', or name an "
                                     "earlier stream or layer"
                                   : "; did you mean '" + near + "'?"));
    return std::nullopt;
  }
  std::vector<Object> layers = object.objects("layers");
  if (!layers.empty() && layers.front().has("embedding"))
    return 0; // ids, which the embedding checks
  if (!layers.empty() &&
      (layers.front().has("conv") || layers.front().has("timestep")))
    return 0; // which know what they need
  if (!layers.empty() && layers.front().isBad())
    return std::nullopt;
  bool isFloat = input->dtype == DType::F32 || input->dtype == DType::F16 ||
                 input->dtype == DType::BF16;
  bool isVector = input->shape.size() == 2;
  if (!isFloat || (!isVector && input->shape.size() != 3) ||
      input->shape.back().size < 0) {
    object.error("input", "input " + quote(input->name) +
                              " cannot start a stream; expected float "
                              "[batch, tokens, width] or [batch, width] with a "
                              "fixed width" +
                              (isFloat && input->shape.size() == 4
                                   ? ", or a conv as the first layer"
                                   : ""));
    return std::nullopt;
  }
  pooled = isVector;
  return input->shape.back().size;
}

/// The bare op reads inputs by name and starts no stream.
static bool isBareAttention(const Object &layer) {
  auto attention = layer.object("attention");
  return attention && attention->has("query");
}

void ModelParser::parseStream(const Object &object, Stream stream,
                              const std::string &prefix) {
  std::vector<Object> layers = object.objects("layers");
  if (object.get("layers") && layers.empty())
    object.error("layers", "has no layer");
  bool startsWithIds = !layers.empty() && layers.front().has("embedding");
  if (startsWithIds && stream.input.empty()) {
    // The embedding may say what the stream reads.
    if (auto embedding = layers.front().object("embedding"))
      stream.input = embedding->string("input");
  }
  bool startsBare = !layers.empty() && isBareAttention(layers.front());
  if (stream.input.empty() && !startsBare)
    stream.input = defaultInput(model, startsWithIds,
                                !layers.empty() && layers.front().has("conv"));
  stream.location = object.getLocation();

  bool pooled = false;
  Known width = inputWidth(object, stream, pooled);
  LayerParser parser(context, model, stream, width, pooled, prefix);
  for (size_t i = 0; i < layers.size(); ++i) {
    parser.parse(layers[i], i);
    entries.push_back({model.streams.size(), i, layers[i]});
  }
  parser.finish(object);
  model.streams.push_back(std::move(stream));
}

void ModelParser::parseStreams() {
  Stream stream;
  if (root.get("layers")) {
    stream.name = "main";
    return parseStream(root, std::move(stream), "");
  }
  auto streams = root.namedObjects("streams");
  for (auto &[name, object] : streams) {
    if (!isIdentifier(name))
      object.error("a stream's name is letters, digits and underscores, not "
                   "starting with a digit");
    stream = Stream();
    stream.name = name;
    stream.input = object.string("input");
    parseStream(object, std::move(stream), name + ".");
  }
  if (root.get("streams") && streams.empty())
    root.error("streams", "has no stream");
}

//===----------------------------------------------------------------------===//
// Outputs
//===----------------------------------------------------------------------===//

/// Reports and gives false if `target` names nothing that can be an output.
bool ModelParser::isOutput(const std::string &target, const Value &value,
                           const std::string &pointer) {
  auto fail = [&](const std::string &message) {
    context.reporter.error(value.offset, pointer, message);
    return false;
  };
  std::vector<std::string> names{"hidden_states"};
  for (const Entry &entry : entries) {
    const Layer &layer = get(entry);
    if (layer.name == target)
      return true;
    names.push_back(layer.name);
    for (const FurtherResult &further : furtherResults(layer)) {
      names.push_back(layer.name + "." + further.name);
      if (names.back() == target)
        return true;
    }
    if (target != layer.name + ".lse")
      continue;
    const auto *attention = std::get_if<Attention>(&layer.op);
    if (attention && attention->lse)
      return true;
    return fail("layer " + quote(layer.name) +
                " gives no log-sum-exp; only the bare attention op with "
                "'lse' does");
  }
  if (target == "hidden_states") {
    for (const Stream &stream : model.streams)
      for (const Layer &layer : stream.layers)
        if (std::holds_alternative<Block>(layer.op))
          return true;
    return fail("hidden_states are what blocks give, and the model has none");
  }
  std::string problem;
  if (findAttentionTap(model, target, problem))
    return true;
  if (!problem.empty())
    return fail(problem);
  std::string near = nearest(target, names);
  return fail("there is no layer " + quote(target) +
              (near.empty() ? "; expected a layer's name, '<layer>.lse' or "
                              "hidden_states"
                            : "; did you mean '" + near + "'?"));
}

/// Whether the last layer gives scores over the vocabulary of its stream.
static bool isVocabularyHead(const Stream &stream) {
  const auto *linear = std::get_if<Linear>(&stream.layers.back().op);
  if (!linear)
    return false;
  const auto *table = std::get_if<Embedding>(&stream.layers.front().op);
  return !linear->tied.empty() || (table && table->vocab == linear->out);
}

void ModelParser::parseOutputs() {
  if (model.streams.empty())
    return;
  const Value *outputs = root.get("outputs");
  if (!outputs) {
    const Stream &last = model.streams.back();
    if (root.has("outputs") || last.layers.empty())
      return;
    Output output;
    bool isLoss = std::holds_alternative<CrossEntropy>(last.layers.back().op);
    output.name = isLoss                   ? "loss"
                  : isVocabularyHead(last) ? "logits"
                                           : "last_hidden_state";
    output.layer = last.layers.back().name;
    output.location = last.layers.back().location;
    model.outputs.push_back(std::move(output));
    return;
  }
  std::string at = child(root.getPointer(), "outputs");
  if (outputs->members.empty())
    root.error("outputs", "names no output");
  if (outputs->members.size() > maxOutputs)
    return root.error("outputs", "names " +
                                     std::to_string(outputs->members.size()) +
                                     " outputs; a model has at most " +
                                     std::to_string(maxOutputs));
  for (const Value::Member &member : outputs->members) {
    std::string pointer = child(at, member.key);
    if (member.key.empty())
      context.reporter.error(member.keyOffset, pointer,
                             "an output needs a name");
    if (context.bad.count(&member.value) ||
        !isOutput(member.value.text, member.value, pointer))
      continue;
    model.outputs.push_back({member.key, member.value.text,
                             context.reporter.locate(member.keyOffset)});
  }
}

//===----------------------------------------------------------------------===//
// Lengths and ids
//===----------------------------------------------------------------------===//

void ModelParser::parseContext() {
  Known length = root.integer("context", 0);
  model.context = length.value_or(0);
  model.windowSlack =
      root.integer("window_slack", usualWindowSlack).value_or(usualWindowSlack);
  // Learned positions end somewhere, and that is where the context ends.
  for (const Entry &entry : entries) {
    const auto *positions = std::get_if<Positions>(&get(entry).op);
    if (!positions || positions->kind != PositionKind::Learned ||
        positions->length <= positions->offset)
      continue;
    if (positions->count == PositionCount::Tokens)
      continue; // the number of tokens is not that of the input's
    // Positions without padding start at 1.
    bool unpadded = positions->count == PositionCount::Unpadded;
    int64_t rows = positions->length - positions->offset - unpadded;
    if (!root.has("context"))
      model.context = model.context ? std::min(model.context, rows) : rows;
    else if (model.context > rows)
      root.error("context", "is " + std::to_string(model.context) +
                                ", but the learned positions of layer " +
                                quote(get(entry).name) + " end after " +
                                std::to_string(rows));
  }
}

void ModelParser::parseGeneration() {
  auto generation = root.object("generation"), audio = root.object("audio");
  if (auto codes = root.object("codes"); codes && !model.streams.empty())
    model.codes = parseCodes(*codes, model);
  if (auto playback = root.object("playback");
      playback && !model.streams.empty())
    model.playback = parsePlayback(*playback, model);
  if ((!generation && !audio) || model.streams.empty())
    return;
  int64_t vocab = 0;
  const Stream &last = model.streams.back();
  if (!last.layers.empty())
    if (const auto *table = std::get_if<Embedding>(&last.layers.front().op))
      vocab = table->vocab;
  auto check = [&](const Value &value, const std::string &pointer) -> Known {
    Known id = context.dims.evaluate(value, pointer, 0, maxInteger);
    if (id && vocab && *id >= vocab)
      context.reporter.error(value.offset, pointer,
                             "token " + std::to_string(*id) +
                                 " is not in the vocabulary of " +
                                 std::to_string(vocab));
    return id;
  };
  if (audio)
    model.audio =
        parseAudio(*audio, model.inputs,
                   last.layers.empty() ? 0 : last.layers.back().width, check);
  if (model.audio && model.audio->window == 0)
    checkCoded(*audio, model);
  if (!generation)
    return;
  auto one = [&](const char *key) -> Known {
    const Value *value = generation->get(key);
    return value ? check(*value, child(generation->getPointer(), key))
                 : std::nullopt;
  };
  model.generation.bos = one("bos");
  model.generation.pad = one("pad");
  model.generation.decoderStart = one("decoder_start");
  model.generation.forcedBos = one("forced_bos");
  auto several = [&](const char *key, std::vector<int64_t> &ids) {
    const Value *value = generation->get(key);
    if (!value || !value->isArray())
      return false;
    std::string at = child(generation->getPointer(), key);
    for (size_t i = 0; i < value->elements.size(); ++i)
      if (Known id = check(value->elements[i], child(at, i)))
        ids.push_back(*id);
    return true;
  };
  if (!several("eos", model.generation.eos))
    if (Known id = one("eos"))
      model.generation.eos.push_back(*id);
  several("suppress", model.generation.suppress);
  several("begin_suppress", model.generation.beginSuppress);
  parseSampling(*generation);
}

void ModelParser::parseSampling(const Object &generation) {
  auto sampling = generation.object("sampling");
  if (!sampling)
    return;
  for (const SamplingSetting &setting : samplingSettings()) {
    const Value *value = sampling->get(setting.name);
    if (!value)
      continue;
    // The schema allows no word but "never".
    double number = setting.kind == SamplingSetting::Flag
                        ? value->isString() ? 2 : double(value->boolean)
                        : value->real;
    if (setting.kind == SamplingSetting::Whole) {
      Known whole = context.dims.evaluate(
          *value, child(sampling->getPointer(), setting.name),
          int64_t(setting.least), maxInteger);
      if (!whole)
        continue;
      number = double(*whole);
    } else if (!(number >= setting.least && number <= setting.most)) {
      char range[64];
      std::snprintf(range, sizeof(range),
                    "must be a number from %.10g to %.10g", setting.least,
                    setting.most);
      sampling->error(setting.name, range);
      continue;
    }
    model.generation.sampling.emplace_back(&setting, number);
  }
}

//===----------------------------------------------------------------------===//
// Checks across layers
//===----------------------------------------------------------------------===//

static std::string numbered(const std::string &name, int64_t number) {
  std::string result = name;
  std::string digits = std::to_string(number);
  for (size_t at = result.find("{i}"); at != std::string::npos;
       at = result.find("{i}", at + digits.size()))
    result.replace(at, 3, digits);
  return result;
}

/// Two layers of one name would read the same weights.
void ModelParser::checkNames() {
  int64_t total = 0;
  for (const Entry &entry : entries) {
    total += get(entry).repeat;
    if (total > maxLayers)
      return entry.object.error("repeat", "the model has more than " +
                                              std::to_string(maxLayers) +
                                              " layers");
  }
  std::unordered_map<std::string, const Entry *> owners;
  auto clash = [&](const Entry &entry, const std::string &name) {
    auto [owner, isNew] = owners.emplace(name, &entry);
    if (isNew || owner->second == &entry)
      return false;
    entry.object.error("name",
                       "layer name " + quote(name) + " is already taken");
    const Object &other = owner->second->object;
    context.reporter.note(other.getValue().offset, other.getPointer(),
                          "by this layer");
    return true;
  };
  for (const Entry &entry : entries) {
    const Layer &layer = get(entry);
    if (layer.name.find("{i}") == std::string::npos) {
      clash(entry, layer.name);
      continue;
    }
    for (int64_t i = 0; i < layer.repeat; ++i)
      if (clash(entry, numbered(layer.name, layer.first + i)))
        break;
  }
}

void ModelParser::checkSizes() {
  double total = 0;
  for (const Entry &entry : entries) {
    const Layer &layer = get(entry);
    for (const WeightRole &role : weightRoles(layer)) {
      double elements = static_cast<double>(role.rows) *
                        static_cast<double>(std::max<int64_t>(role.columns, 1));
      if (elements > maxTensorElements)
        entry.object.error("weight " + quote(role.role) + " [" +
                           std::to_string(role.rows) + ", " +
                           std::to_string(role.columns) +
                           "] has more than 2^40 elements");
      total += elements * static_cast<double>(layer.repeat);
    }
  }
  if (total > maxModelElements && context.reporter.getNumErrors() == 0)
    root.error("the model has more than 2^50 parameters");
}

namespace {

/// Holds errors back, each with its notes, to report them from the top of the
/// file to its end: they are found pass by pass.
class Sorter final : public DiagnosticEngine {
public:
  void report(const Diagnostic &diagnostic) override {
    const SourceLocation &where = diagnostic.location;
    // A note without a line is about all errors, so it comes last.
    if (diagnostic.severity != Severity::Note || where.line == 0 || !last)
      last = &groups
                  .emplace(std::pair(where.line ? where.line : UINT32_MAX,
                                     where.column),
                           std::vector<Diagnostic>())
                  ->second;
    last->push_back(diagnostic);
  }

  void flush(DiagnosticEngine &diags) {
    for (const auto &group : groups)
      for (const Diagnostic &diagnostic : group.second)
        diags.report(diagnostic);
  }

private:
  std::multimap<std::pair<uint32_t, uint32_t>, std::vector<Diagnostic>> groups;
  std::vector<Diagnostic> *last = nullptr;
};

} // namespace

/// Another kind of JSON file is one mistake, however many keys it has.
static bool isOtherJson(const Value &root) {
  if (!root.isObject())
    return false;
  for (const char *key : {"attune", "layers", "streams"})
    if (root.find(key) || modelType().isMisspelt(key, root))
      return false;
  return true;
}

static std::optional<Model> parseSorted(std::shared_ptr<const SourceFile> file,
                                        DiagnosticEngine &diags) {
  LineTable lines(file);
  Reporter reporter(lines, diags);
  std::optional<Value> root = parseJson(*file, reporter);
  if (!root)
    return std::nullopt;
  if (isOtherJson(*root)) {
    reporter.error(root->offset, "",
                   "is no description of a model: it has neither 'attune' (the "
                   "schema's version, 1) nor 'layers'");
    return std::nullopt;
  }
  BadValues bad = checkForm(*root, reporter);
  Model model;
  model.file = file;
  if (root->isObject()) {
    Dims dims(bad.count(root->find("dims")) ? nullptr : root->find("dims"), bad,
              reporter);
    Context context{reporter, bad, dims};
    ModelParser(Object(context, *root, "", modelType()), model).run();
  }
  if (reporter.getNumErrors() != 0)
    return std::nullopt;
  return model;
}

std::optional<Model> parse(std::shared_ptr<const SourceFile> file,
                           DiagnosticEngine &diags) {
  Sorter sorter;
  std::optional<Model> model = parseSorted(std::move(file), sorter);
  sorter.flush(diags);
  return model;
}

} // namespace attune::spec
