//===- CodeWriter.cpp - A text to codes to a sound ------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CodeWriter.h"

#include "../Generation/Generation.h"

#include <algorithm>

namespace attune::runtime {

namespace {
/// The columns of a sound, one step after the other.
class CodeWriter {
public:
  CodeWriter(CompiledModel &model, const GenerateOptions &options)
      : model(model), info(model.info()), options(options),
        books(info.codes.books()), late(books / info.codes.channels),
        guidance(options.guidance >= 0 ? options.guidance
                                       : info.codes.guidance),
        rows(guidance > 1 ? 2 : 1) {}

  bool run(const std::vector<int64_t> &text, const SoundCodes &begun,
           SoundCodes &codes, Error &error);

private:
  bool findLength(Error &error);
  bool findMask(Error &error);
  bool encode(const std::vector<int64_t> &text, Error &error);
  bool encodeFile(Error &error);
  bool encodeRows(std::vector<InputTensor> inputs, Error &error);
  const float *scoresOf(const float *logits, int64_t book);
  std::vector<int64_t> begin(const SoundCodes &begun, SoundCodes &codes);

  CompiledModel &model;
  const ModelInfo &info;
  const GenerateOptions &options;
  const int64_t books;
  const int64_t late; ///< codebooks of a channel, each a frame later
  const double guidance;
  const int64_t rows; ///< with the text, and without
  int64_t columns = 0, frames = 0, vocabulary = 0;
  int64_t heard = 0; ///< frames that there are before the first new one
  std::unique_ptr<Session> session;
  const ArgInfo *mask = nullptr; ///< of the text; null: there is none
  std::vector<float> guided;
};
} // namespace

/// The first column, which has no code at all, counts as the prompt, and so do
/// those of what was heard.
bool CodeWriter::findLength(Error &error) {
  const EntryInfo *decoder = model.entry("decode");
  int64_t context =
      decoder ? decoder->countablePositions(info.context) : info.context;
  TokenLimit limit;
  if (!findTokenLimit(options, /*promptLength=*/heard + 1, context, limit,
                      error))
    return false;
  // Where fewer columns have a code of every codebook the published class has
  // no order of codes.
  int64_t least = std::max<int64_t>(2 * late - 2 - heard, 1);
  if (limit.tokens < least)
    return error.badInput(std::to_string(limit.tokens) + " new tokens are " +
                          "too few for " + std::to_string(late) +
                          " codebooks, each one frame later than the one "
                          "before; --max-new-tokens=N takes " +
                          std::to_string(least) + " or more");
  if (__builtin_add_overflow(limit.tokens, heard + 1, &columns))
    return error.badInput("--max-new-tokens is absurdly large");
  frames = columns - late;
  return true;
}

bool CodeWriter::findMask(Error &error) {
  const EntryInfo *encoder = model.entry("encode");
  if (!encoder)
    return error.badInput("model '" + info.name + "' reads no text");
  for (const ArgInfo &arg : encoder->args)
    if (arg.kind == ArgKind::Input && arg.dtype == DType::Bool &&
        arg.shape.size() == 2)
      mask = &arg;
  return mask || rows == 1 ||
         error.badInput("model '" + info.name +
                        "' has no mask that hides its text, which guidance "
                        "needs");
}

bool CodeWriter::encode(const std::vector<int64_t> &text, Error &error) {
  const ArgInfo *ids = model.entry("encode")->findIds();
  if (!ids)
    return error.badInput("model '" + info.name +
                          "' does not read ids alone; give what it reads with "
                          "--inputs=FILE");
  InputTensor input;
  input.name = ids->name;
  input.dtype = DType::I64;
  input.shape = {1, static_cast<int64_t>(text.size())};
  input.data = text.data();
  return encodeRows({input}, error);
}

/// A file of one text.
bool CodeWriter::encodeFile(Error &error) {
  SafetensorsFile file;
  std::string reason;
  if (!file.open(options.inputs, reason))
    return error.badInput(reason);
  std::vector<InputTensor> inputs;
  for (const TensorInfo &tensor : file.tensors()) {
    InputTensor &input = inputs.emplace_back();
    input.name = tensor.name;
    input.dtype = tensor.dtype;
    input.shape = tensor.shape;
    input.data = tensor.data;
    if (tensor.shape.size() < 2 || tensor.shape[0] != 1)
      return error.badInput(options.inputs + ": '" + tensor.name +
                            "' has shape " + formatShape(tensor.shape) +
                            ", expected that of one text [1, ...]");
  }
  if (encodeRows(std::move(inputs), error))
    return true;
  error.message = options.inputs + ": " + error.message;
  return false;
}

/// All rows read the same, and a mask hides it from those behind the first.
bool CodeWriter::encodeRows(std::vector<InputTensor> inputs, Error &error) {
  std::vector<uint8_t> shown;
  bool isMasked = false;
  for (const InputTensor &input : inputs)
    isMasked |= mask && input.name == mask->name;
  if (mask && !isMasked && !inputs.empty()) {
    shown.assign(size_t(inputs[0].shape[1]), 1);
    InputTensor own;
    own.name = mask->name;
    own.dtype = DType::Bool;
    own.shape = {1, inputs[0].shape[1]};
    own.data = shown.data();
    inputs.push_back(own);
  }
  std::vector<std::vector<uint8_t>> copies(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    InputTensor &input = inputs[i];
    uint64_t bytes;
    if (!byteSize(input.shape, dtypeBytes(input.dtype), bytes))
      return error.badInput("'" + std::string(input.name) + "' is too large");
    const auto *row = static_cast<const uint8_t *>(input.data);
    bool hides = mask && input.name == mask->name;
    copies[i].assign(row, row + bytes);
    for (int64_t more = 1; more < rows; ++more)
      if (hides)
        copies[i].insert(copies[i].end(), bytes, uint8_t(0));
      else
        copies[i].insert(copies[i].end(), row, row + bytes);
    input.shape[0] = rows;
    input.data = copies[i].data();
  }
  return session->encode(inputs, error);
}

/// The scores of a codebook, with guidance.
const float *CodeWriter::scoresOf(const float *logits, int64_t book) {
  const float *told = logits + book * vocabulary;
  if (rows == 1)
    return told;
  const float *untold = told + books * vocabulary;
  for (int64_t i = 0; i < vocabulary; ++i) {
    double base = untold[i];
    guided[size_t(i)] = static_cast<float>(base + guidance * (told[i] - base));
  }
  return guided.data();
}

/// The columns of what was heard, and the first one; `codes` gets those of its
/// codes that stand in there.
std::vector<int64_t> CodeWriter::begin(const SoundCodes &begun,
                                       SoundCodes &codes) {
  std::vector<int64_t> ids;
  for (int64_t book = 0; book < books; ++book) {
    std::vector<int64_t> own;
    for (int64_t column = 0; column <= heard; ++column) {
      int64_t frame = column - 1 - book / info.codes.channels;
      bool isCode = frame >= 0 && frame < frames;
      own.push_back(isCode ? begun[size_t(book)][size_t(frame)]
                           : info.codes.pad);
      if (isCode)
        codes[size_t(book)].push_back(own.back());
    }
    for (int64_t row = 0; row < rows; ++row)
      ids.insert(ids.end(), own.begin(), own.end());
  }
  return ids;
}

bool CodeWriter::run(const std::vector<int64_t> &text, const SoundCodes &begun,
                     SoundCodes &codes, Error &error) {
  heard = begun.empty() ? 0 : int64_t(begun[0].size());
  bool hasFile = !options.inputs.empty();
  if (!hasFile && text.empty())
    return error.badInput("the prompt is empty");
  if (!options.sampling.check(ExitBadInput, error) || !findLength(error) ||
      !findMask(error))
    return false;
  session = Session::createOfCodes(model, rows, columns, error);
  if (!session || !(hasFile ? encodeFile(error) : encode(text, error)))
    return false;
  vocabulary = session->vocabulary() / books;
  guided.resize(size_t(vocabulary));
  Sampler sampler(options.sampling);
  codes.assign(size_t(books), {});
  std::vector<int64_t> given = begin(begun, codes);
  for (int64_t step = heard; step + 1 < columns; ++step) {
    if (!session->step(given.data(), int64_t(given.size()) / (books * rows),
                       error))
      return false;
    given.resize(size_t(books * rows));
    const float *logits = session->logits(error);
    if (!logits)
      return false;
    for (int64_t book = 0; book < books; ++book) {
      std::vector<int64_t> &own = codes[size_t(book)];
      int64_t frame = step - book / info.codes.channels, id = info.codes.pad;
      if (frame >= 0 && frame < heard && frame < frames) {
        id = begun[size_t(book)][size_t(frame)];
        own.push_back(id);
      } else if (frame >= 0 && frame < frames) {
        if (!sampler.sample(scoresOf(logits, book), vocabulary, own, id, error,
                            info.suppress))
          return false;
        own.push_back(id);
      }
      std::fill_n(given.begin() + book * rows, rows, id);
    }
  }
  return true;
}

bool writeCodes(CompiledModel &model, const std::vector<int64_t> &text,
                const SoundCodes &begun, const GenerateOptions &options,
                SoundCodes &codes, Error &error) {
  return CodeWriter(model, options).run(text, begun, codes, error);
}

} // namespace attune::runtime
