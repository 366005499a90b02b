//===- Metadata.cpp - Self-description of a compiled model ----------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/Metadata.h"
#include "attune/Runtime/Model.h"

namespace attune::runtime {

std::string ArgInfo::formatShape() const {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    out += i ? ", " : "";
    out += shape[i].symbol.empty() ? std::to_string(shape[i].size)
                                   : shape[i].symbol;
  }
  return out + "]";
}

const ArgInfo *EntryInfo::findInserted() const {
  for (const ArgInfo &arg : args)
    if (arg.kind == ArgKind::Input && arg.inserted >= 0)
      return &arg;
  return nullptr;
}

const ArgInfo *EntryInfo::findIds() const {
  const ArgInfo *found = nullptr;
  for (const ArgInfo &arg : args) {
    if (arg.kind != ArgKind::Input || arg.dtype != DType::I64 ||
        arg.shape.size() != 2 || arg.defaultValue != DefaultValue::None ||
        arg.ignored)
      continue;
    if (found)
      return nullptr;
    found = &arg;
  }
  return found;
}

int64_t EntryInfo::countablePositions(int64_t limit) const {
  for (const ArgInfo &arg : args)
    if (arg.defaultValue == DefaultValue::Iota && arg.max >= 0 &&
        (limit < 0 || arg.max < limit))
      limit = arg.max;
  return limit;
}

bool parsePooling(std::string_view name, Pooling &pooling) {
  pooling = name == "mean"        ? Pooling::Mean
            : name == "cls"       ? Pooling::Cls
            : name == "last"      ? Pooling::Last
            : name == "max"       ? Pooling::Max
            : name == "mean_sqrt" ? Pooling::MeanSqrt
            : name == "weighted"  ? Pooling::Weighted
                                  : Pooling::Auto;
  return pooling != Pooling::Auto;
}

const std::string *ModelInfo::findPrompt(std::string_view name) const {
  for (const auto &[other, prompt] : prompts)
    if (other == name)
      return &prompt;
  return nullptr;
}

bool ModelInfo::findAdapter(std::string_view adapter, int64_t &number,
                            Error &error) const {
  std::string all;
  for (size_t i = 0; i < adapters.size(); ++i) {
    number = static_cast<int64_t>(i) + 1;
    if (adapters[i] == adapter)
      return true;
    all += (all.empty() ? "" : ", ") + adapters[i];
  }
  return error.badInput(
      "model '" + name + "' has no adapter '" + std::string(adapter) + "'; " +
      (all.empty() ? "it was compiled without any (--lora-apart)"
                   : "it has " + all));
}

const EntryInfo *ModelInfo::find(std::string_view entry) const {
  for (const EntryInfo &info : entries)
    if (info.name == entry)
      return &info;
  return nullptr;
}

namespace {

/// Every fault here is the compiler's, so one message form is enough.
class Reader {
public:
  Reader(ModelInfo &info, Error &error) : info(info), error(error) {}

  bool read(const JsonValue &root, unsigned numEntries) {
    if (!root.isObject())
      return fail("", "an object", root);
    int64_t abi = -1;
    if (!integer(root, "abi", abi, true) || !text(root, "name", info.name))
      return false;
    if (abi != ATTUNE_ABI_VERSION)
      return error.set(
          ExitInternalError,
          "the model speaks version " + std::to_string(abi) +
              " of the runtime's interface, this runtime version " +
              std::to_string(ATTUNE_ABI_VERSION));
    int64_t bytes = 0;
    if (!integer(root, "context", info.context, false) ||
        !integer(root, "weights_bytes", bytes, false) ||
        !text(root, "weights_layout", info.weightsLayout) ||
        !text(root, "decodes_alone", info.decodesAlone) ||
        !texts(root, "needs", info.needs) ||
        !texts(root, "adapters", info.adapters) ||
        !text(root, "tokenizer_json", info.tokenizerJson))
      return false;
    if (const JsonValue *tokenizer = root.find("tokenizer")) {
      int64_t size = 0;
      if (!tokenizer->isObject())
        return fail("tokenizer", "an object", *tokenizer);
      if (!integer(*tokenizer, "bytes", size, true) ||
          !text(*tokenizer, "kind", info.tokenizerKind))
        return false;
      info.tokenizerBytes = static_cast<uint64_t>(size);
    }
    info.weightsBytes = static_cast<uint64_t>(bytes);
    if (const JsonValue *mesh = root.find("mesh"))
      if (!readMesh(*mesh))
        return false;
    if (const JsonValue *variants = root.find("variants"))
      if (!readVariants(*variants))
        return false;
    if (info.context == 0)
      info.context = -1;
    if (const JsonValue *generation = root.find("generation"))
      if (!readGeneration(*generation))
        return false;
    if (const JsonValue *embedding = root.find("embedding"))
      if (!readEmbedding(*embedding))
        return false;
    if (const JsonValue *chat = root.find("chat")) {
      if (!chat->isObject())
        return fail("chat", "an object", *chat);
      if (!text(*chat, "template", info.chatTemplate))
        return false;
      if (const JsonValue *tokens = chat->find("tokens"))
        info.chatTokens = *tokens;
      if (const JsonValue *named = chat->find("named"))
        info.namedTemplates = *named;
      for (const JsonValue &item : info.namedTemplates.items)
        if (!item.isString())
          return fail("chat.named", "an object of texts", item);
    }
    if (const JsonValue *images = root.find("images"))
      info.images = *images;
    if (const JsonValue *inspect = root.find("inspect"))
      info.inspect = *inspect;
    if (const JsonValue *audio = root.find("audio"))
      if (!readAudio(*audio))
        return false;
    if (const JsonValue *codes = root.find("codes"))
      if (!readCodes(*codes))
        return false;
    if (const JsonValue *playback = root.find("playback"))
      if (!readPlayback(*playback))
        return false;
    const JsonValue *entries = root.find("entries");
    size_t variants = info.variants.empty() ? 1 : info.variants.size();
    if (!entries || !entries->isArray() ||
        entries->items.size() * variants != numEntries)
      return error.set(ExitInternalError,
                       "model metadata: 'entries' does not list the " +
                           std::to_string(numEntries) +
                           " entries of the model");
    for (const JsonValue &entry : entries->items)
      if (!readEntry(entry))
        return false;
    return true;
  }

private:
  ModelInfo &info;
  Error &error;

  bool fail(const std::string &where, const std::string &expected,
            const JsonValue &found) {
    return error.set(ExitInternalError, "model metadata: " + where +
                                            ": expected " + expected +
                                            ", found " + found.kindName());
  }

  /// Reads a natural number; null and absence leave `value` alone.
  bool integer(const JsonValue &object, const char *key, int64_t &value,
               bool required) {
    const JsonValue *found = object.find(key);
    if (!found || found->isNull())
      return !required || fail(key, "a number", JsonValue());
    if (!found->isInt() || found->integer < 0)
      return fail(key, "a natural number", *found);
    value = found->integer;
    return true;
  }

  bool text(const JsonValue &object, const char *key, std::string &value) {
    const JsonValue *found = object.find(key);
    if (!found || found->isNull())
      return true;
    if (!found->isString())
      return fail(key, "a string", *found);
    value = found->string;
    return true;
  }

  bool texts(const JsonValue &object, const char *key,
             std::vector<std::string> &values) {
    const JsonValue *found = object.find(key);
    if (!found || found->isNull())
      return true;
    if (!found->isArray())
      return fail(key, "an array of strings", *found);
    for (const JsonValue &item : found->items) {
      if (!item.isString())
        return fail(key, "an array of strings", item);
      values.push_back(item.string);
    }
    return true;
  }

  bool readVariants(const JsonValue &variants) {
    if (!variants.isArray())
      return fail("variants", "an array of objects", variants);
    for (const JsonValue &item : variants.items) {
      if (!item.isObject())
        return fail("variants", "an array of objects", item);
      CpuVariantInfo variant;
      if (!text(item, "cpu", variant.cpu) ||
          !texts(item, "needs", variant.needs))
        return false;
      info.variants.push_back(std::move(variant));
    }
    return true;
  }

  bool readMesh(const JsonValue &mesh) {
    if (!mesh.isObject())
      return fail("mesh", "an object", mesh);
    int64_t shared = 0;
    if (!integer(mesh, "ranks", info.ranks, true) ||
        !integer(mesh, "sharers", info.sharers, false) ||
        !integer(mesh, "groups", info.groups, false) ||
        !integer(mesh, "shared_bytes", shared, true))
      return false;
    auto isCount = [](int64_t count) { return count >= 1 && count <= 1 << 20; };
    if (!isCount(info.ranks) || !isCount(info.sharers) ||
        !isCount(info.groups) || !isCount(info.ranksOfGroup()) ||
        !isCount(info.ranksOfGroup() * info.groups) || shared < 0 ||
        static_cast<uint64_t>(shared) > info.weightsBytes)
      return fail("mesh", "a number of ranks and bytes of the weights", mesh);
    info.sharedBytes = static_cast<uint64_t>(shared);
    return true;
  }

  bool readGeneration(const JsonValue &generation) {
    if (generation.isNull())
      return true;
    if (!generation.isObject())
      return fail("generation", "an object", generation);
    if (!integer(generation, "bos", info.bos, false) ||
        !integer(generation, "pad", info.pad, false) ||
        !integer(generation, "decoder_start", info.decoderStart, false) ||
        !integer(generation, "forced_bos", info.forcedBos, false) ||
        !integers(generation, "suppress", "generation", info.suppress) ||
        !integers(generation, "begin_suppress", "generation",
                  info.beginSuppress))
      return false;
    if (const JsonValue *sampling = generation.find("sampling"))
      if (!readSampling(*sampling))
        return false;
    return integers(generation, "eos", "generation", info.eos);
  }

  bool readEmbedding(const JsonValue &embedding) {
    if (!embedding.isObject())
      return fail("embedding", "an object", embedding);
    std::string name;
    if (!text(embedding, "pooling", name))
      return false;
    if (!name.empty() && !parsePooling(name, info.pooling))
      return error.set(ExitInternalError,
                       "model metadata: unknown pooling '" + name + "'");
    if (const JsonValue *normalize = embedding.find("normalize"))
      info.normalizes = normalize->boolean;
    if (const JsonValue *most = embedding.find("max_tokens"))
      info.mostTokens = most->integer;
    if (const JsonValue *prompts = embedding.find("prompts"))
      for (size_t i = 0; i < prompts->keys.size(); ++i)
        info.prompts.emplace_back(prompts->keys[i], prompts->items[i].string);
    return text(embedding, "default_prompt", info.defaultPrompt);
  }

  bool readLetters(const JsonValue &value) {
    AudioInfo &audio = info.audio;
    if (!text(value, "input", audio.input) ||
        !integer(value, "rate", audio.rate, true) ||
        !integer(value, "blank", audio.blank, true) ||
        !texts(value, "letters", audio.letters))
      return false;
    if (const JsonValue *normalise = value.find("normalise"))
      audio.normalise = normalise->boolean;
    if (audio.input.empty() || audio.rate < 1 || audio.rate > 1 << 30 ||
        audio.letters.empty())
      return fail("audio", "an input, a rate and letters", value);
    return true;
  }

  bool readAudio(const JsonValue &value) {
    if (!value.isObject())
      return fail("audio", "an object", value);
    AudioInfo &audio = info.audio;
    auto named = [&](const char *key,
                     std::vector<std::pair<std::string, int64_t>> &ids) {
      const JsonValue *object = value.find(key);
      if (!object)
        return true;
      if (!object->isObject())
        return fail(std::string("audio.") + key, "an object", *object);
      for (size_t i = 0; i < object->items.size(); ++i) {
        if (!object->items[i].isInt())
          return fail(std::string("audio.") + key, "a number",
                      object->items[i]);
        ids.emplace_back(object->keys[i], object->items[i].integer);
      }
      return true;
    };
    if (value.find("letters"))
      return readLetters(value);
    if (!value.find("window")) {
      // Codes are made of the samples.
      if (!text(value, "input", audio.input) ||
          !integer(value, "rate", audio.rate, true))
        return false;
      return (!audio.input.empty() && audio.rate >= 1 &&
              audio.rate <= 1 << 30) ||
             fail("audio", "an input and a rate", value);
    }
    if (!text(value, "input", audio.input) ||
        !integer(value, "rate", audio.rate, true) ||
        !integer(value, "window", audio.window, true) ||
        !integer(value, "hop", audio.hop, true) ||
        !integer(value, "language", audio.language, false) ||
        !integer(value, "no_timestamps", audio.noTimestamps, false) ||
        !integer(value, "timestamp_frames", audio.timestampFrames, false) ||
        !integer(value, "latest_begin", audio.latestBegin, false) ||
        !integers(value, "start", "audio", audio.start) ||
        !named("languages", audio.languages) || !named("tasks", audio.tasks))
      return false;
    auto isSize = [](int64_t size) { return size >= 1 && size <= 1 << 20; };
    if (!isSize(audio.rate) || !isSize(audio.window) || !isSize(audio.hop) ||
        !isSize(audio.timestampFrames) || audio.input.empty())
      return fail("audio", "a rate, a window and a hop", value);
    return true;
  }

  bool readCodes(const JsonValue &value) {
    CodesInfo &codes = info.codes;
    if (!value.isObject() || !texts(value, "inputs", codes.inputs) ||
        !integer(value, "pad", codes.pad, true) ||
        !integer(value, "rate", codes.rate, false) ||
        !integer(value, "channels", codes.channels, false))
      return fail("codes", "inputs and what stands for no code", value);
    if (const JsonValue *guidance = value.find("guidance"))
      codes.guidance = guidance->real;
    if (codes.inputs.size() < 2 || !(codes.guidance >= 1) || codes.pad < 0 ||
        codes.channels < 1 || codes.books() % codes.channels != 0)
      return fail("codes", "two inputs or more and a guidance from 1", value);
    return true;
  }

  bool readPlayback(const JsonValue &value) {
    PlaybackInfo &playback = info.playback;
    if (!value.isObject() || !texts(value, "inputs", playback.inputs) ||
        !integer(value, "rate", playback.rate, true) ||
        !integer(value, "none", playback.none, false) ||
        !integer(value, "piece", playback.piece, false) ||
        !integer(value, "step", playback.step, false))
      return fail("playback", "inputs and a rate", value);
    if (const JsonValue *scaled = value.find("scaled"))
      playback.scaled = scaled->boolean;
    bool inPieces = playback.piece != 0;
    if (playback.inputs.empty() || playback.rate < 1 ||
        (inPieces && (playback.step < 1 || playback.step > playback.piece)))
      return fail("playback", "inputs, a rate and pieces that overlap", value);
    return true;
  }

  bool readSampling(const JsonValue &sampling) {
    if (!sampling.isObject())
      return fail("generation.sampling", "an object", sampling);
    for (size_t i = 0; i < sampling.items.size(); ++i) {
      const std::string &name = sampling.keys[i];
      const JsonValue &value = sampling.items[i];
      if (value.kind == JsonValue::Kind::Bool)
        info.sampling.emplace_back(name, value.boolean ? 1 : 0);
      else if (value.isNumber())
        info.sampling.emplace_back(name, value.real);
      else
        return fail("generation.sampling." + name, "a number", value);
    }
    return true;
  }

  /// One number or several.
  bool integers(const JsonValue &object, const char *key,
                const std::string &parent, std::vector<int64_t> &numbers) {
    const JsonValue *found = object.find(key);
    std::string where = parent + "." + key;
    if (!found || found->isNull())
      return true;
    if (found->isInt()) {
      numbers.push_back(found->integer);
      return true;
    }
    if (!found->isArray())
      return fail(where, "an array of numbers", *found);
    for (const JsonValue &id : found->items) {
      if (!id.isInt())
        return fail(where, "an array of numbers", id);
      numbers.push_back(id.integer);
    }
    return true;
  }

  bool readEntry(const JsonValue &value) {
    EntryInfo entry;
    entry.index = static_cast<unsigned>(info.entries.size());
    if (!value.isObject())
      return fail("entries", "an array of objects", value);
    if (!text(value, "name", entry.name) ||
        !integer(value, "recompute_beyond", entry.recomputeBeyond, false))
      return false;
    const JsonValue *args = value.find("args");
    if (!args || !args->isArray())
      return fail(entry.name + ".args", "an array", args ? *args : JsonValue());
    for (const JsonValue &arg : args->items)
      if (!readArg(arg, entry))
        return false;
    info.entries.push_back(std::move(entry));
    return true;
  }

  bool readArg(const JsonValue &value, EntryInfo &entry) {
    ArgInfo arg;
    std::string where =
        entry.name + " argument " + std::to_string(entry.args.size());
    std::string kind, dtype, filled, sees;
    if (!value.isObject())
      return fail(where, "an object", value);
    if (!text(value, "kind", kind) || !text(value, "name", arg.name) ||
        !text(value, "dtype", dtype) || !text(value, "default", filled) ||
        !integer(value, "max", arg.max, false) ||
        !integers(value, "longest", where, arg.longest) ||
        !integer(value, "window", arg.window, false) ||
        !integer(value, "slack", arg.slack, false) ||
        !integer(value, "inserted", arg.inserted, false) ||
        !integer(value, "each", arg.each, false) ||
        !text(value, "bidirectional", sees) ||
        !integer(value, "sharers", arg.sharers, false))
      return false;
    if (sees == "image" || sees == "prompt")
      arg.bidirectional =
          sees == "image" ? Bidirectional::Image : Bidirectional::Prompt;
    if (arg.sharers < 1 || arg.sharers > info.sharers)
      return error.set(ExitInternalError,
                       "model metadata: " + where + ": no such sharers");
    if (arg.window < 0 || arg.window > INT32_MAX || arg.slack < 0 ||
        arg.slack > INT32_MAX || (arg.window > 0 && arg.slack < 4))
      return error.set(ExitInternalError,
                       "model metadata: " + where + ": no such window");
    if (const JsonValue *own = value.find("of_rank"))
      arg.ofRank = own->boolean;
    if (const JsonValue *ignored = value.find("ignored")) {
      if (!ignored->isInt())
        return fail(where + ".ignored", "a number", *ignored);
      arg.ignored = ignored->integer;
    }
    if (kind == "weights")
      arg.kind = ArgKind::Weights;
    else if (kind == "input")
      arg.kind = ArgKind::Input;
    else if (kind == "past")
      arg.kind = ArgKind::Past;
    else if (kind == "lengths")
      arg.kind = ArgKind::Lengths;
    else if (kind == "size" && !arg.name.empty())
      arg.kind = ArgKind::Size;
    else if (kind == "cache")
      arg.kind = ArgKind::Cache;
    else if (kind == "output")
      arg.kind = ArgKind::Output;
    else
      return error.set(ExitInternalError, "model metadata: " + where +
                                              ": unknown kind '" + kind + "'");
    if (arg.kind == ArgKind::Weights || arg.kind == ArgKind::Past ||
        arg.kind == ArgKind::Size) {
      entry.args.push_back(std::move(arg));
      return true;
    }
    if (!parseDType(dtype, arg.dtype))
      return error.set(ExitInternalError, "model metadata: " + where +
                                              ": unknown dtype '" + dtype +
                                              "'");
    if (filled == "zeros")
      arg.defaultValue = DefaultValue::Zeros;
    else if (filled == "ones")
      arg.defaultValue = DefaultValue::Ones;
    else if (filled == "iota")
      arg.defaultValue = DefaultValue::Iota;
    else if (filled == "count_mask")
      arg.defaultValue = DefaultValue::CountMask;
    else if (filled == "shifted")
      arg.defaultValue = DefaultValue::Shifted;
    else if (filled == "adapter")
      arg.defaultValue = DefaultValue::Adapter;
    else if (!filled.empty())
      return error.set(ExitInternalError, "model metadata: " + where +
                                              ": unknown default '" + filled +
                                              "'");
    const JsonValue *shape = value.find("shape");
    if (!shape || !shape->isArray())
      return fail(where + ".shape", "an array", shape ? *shape : JsonValue());
    for (const JsonValue &size : shape->items)
      if (!readDim(size, where + ".shape", arg.shape.emplace_back()))
        return false;
    if (const JsonValue *places = value.find("places"))
      if (!readDim(*places, where + ".places", arg.places.emplace()))
        return false;
    entry.args.push_back(std::move(arg));
    return true;
  }

  bool readDim(const JsonValue &size, const std::string &where, DimInfo &dim) {
    if (size.isInt() && size.integer >= 0)
      dim.size = size.integer;
    else if (size.isString() && !size.string.empty())
      dim.symbol = size.string;
    else
      return fail(where, "natural numbers and names", size);
    return true;
  }
};

} // namespace

bool parseModelInfo(std::string_view json, unsigned numEntries, ModelInfo &info,
                    Error &error) {
  JsonValue root;
  std::string reason;
  if (!parseJson(json, root, reason))
    return error.set(ExitInternalError,
                     "model metadata is not valid JSON: " + reason);
  return Reader(info, error).read(root, numEntries);
}

bool readModelInfo(const attune_model_descriptor &descriptor, ModelInfo &info,
                   Error &error) {
  if (!parseModelInfo({descriptor.metadata, descriptor.metadata_size},
                      descriptor.num_entries, info, error))
    return false;
  // A descriptor of version 1.0 ends before the table.
  if (info.tokenizerBytes)
    info.tokenizerTable = {static_cast<const char *>(descriptor.tokenizer),
                           info.tokenizerBytes};
  return true;
}

} // namespace attune::runtime
