//===- Embedder.cpp - One vector for a text -------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Embedder.h"

#include <algorithm>
#include <cmath>

namespace attune::runtime {

bool Embedder::open(Error &error, bool wantsScores) {
  const std::string &name = model.info().name;
  const EntryInfo *entry = model.entry("forward");
  ids = entry ? entry->findIds() : nullptr;
  if (!ids)
    return error.badInput("model '" + name +
                          "' cannot embed: it does not read token ids alone");
  unsigned outputs = 0;
  for (const ArgInfo &arg : entry->args) {
    if (arg.kind == ArgKind::Input && arg.name == "token_type_ids")
      types = &arg;
    if (arg.kind == ArgKind::Input && arg.defaultValue == DefaultValue::Adapter)
      adapter = &arg;
    if (arg.kind != ArgKind::Output)
      continue;
    if (arg.name == "logits" && arg.shape.size() == 2 &&
        (wantsScores || !hiddenWidth) && !pooled && arg.dtype == DType::F32 &&
        arg.shape[1].symbol.empty()) {
      scores = true;
      hidden = outputs;
      hiddenWidth = arg.shape[1].size;
    }
    if (arg.name == "sentence_embedding" && arg.shape.size() == 2 &&
        !wantsScores && arg.dtype == DType::F32 &&
        arg.shape[1].symbol.empty()) {
      pooled = true;
      scores = false;
      hidden = outputs;
      hiddenWidth = arg.shape[1].size;
    }
    bool fits = arg.shape.size() == 3 && arg.dtype == DType::F32 &&
                arg.shape[2].symbol.empty();
    if (fits && !pooled && !(scores && wantsScores) &&
        (arg.name == "last_hidden_state" ||
         (arg.name == "encoder_last_hidden_state" && !hiddenWidth))) {
      scores = false;
      hidden = outputs;
      hiddenWidth = arg.shape[2].size;
    }
    ++outputs;
  }
  if (!hiddenWidth)
    return error.badInput("model '" + name +
                          "' cannot embed: it has no output "
                          "last_hidden_state; the class of a model without a "
                          "head has (BertModel, Qwen3Model). Nor has it scores "
                          "of a whole text");
  invocation.reset(new Invocation(model, *entry));
  buffers.resize(outputs);
  return true;
}

bool Embedder::bind(const ArgInfo &arg, const std::vector<int64_t> &values,
                    Error &error) {
  InputTensor input;
  input.name = arg.name;
  input.dtype = DType::I64;
  input.shape = {1, static_cast<int64_t>(values.size())};
  input.data = values.data();
  return invocation->bindInput(input, error);
}

bool Embedder::encode(const Tokenizer &tokenizer, std::string_view text,
                      Encoding &encoding, size_t &whole, Error &error) const {
  if (!tokenizer.encode(text, nullptr, EncodeOptions(), encoding, error))
    return false;
  std::vector<int64_t> &all = encoding.ids, own;
  whole = all.size();
  int64_t context = model.info().context;
  int64_t limit = model.info().mostTokens.value_or(-1);
  if (limit == 0 || (context > 0 && limit > context))
    limit = context;
  if (limit <= 0 || whole <= static_cast<size_t>(limit))
    return true;
  if (!tokenizer.encode(text, own, error, /*addSpecial=*/false))
    return false;
  auto most = static_cast<size_t>(limit), special = whole - own.size();
  // Special tokens stand before the text and behind it.
  auto start = std::search(all.begin(), all.end(), own.begin(), own.end());
  if (special >= most || start == all.end())
    return true; // the model says that it is too long
  auto first =
      (start - all.begin()) + static_cast<std::ptrdiff_t>(most - special);
  auto last = (start - all.begin()) + static_cast<std::ptrdiff_t>(own.size());
  for (std::vector<int64_t> *each :
       {&encoding.ids, &encoding.typeIds, &encoding.mask})
    if (each->size() == whole)
      each->erase(each->begin() + first, each->begin() + last);
  return true;
}

/// One vector of those of `length` tokens; see Pooling.
static void pool(const float *rows, int64_t length, int64_t width,
                 Pooling pooling, std::vector<double> &vector) {
  int64_t first = pooling == Pooling::Last ? length - 1 : 0;
  int64_t last = pooling == Pooling::Cls ? 0 : length - 1;
  double weights = 0;
  vector.assign(static_cast<size_t>(width),
                pooling == Pooling::Max ? -HUGE_VAL : 0);
  for (int64_t row = first; row <= last; ++row) {
    double weight =
        pooling == Pooling::Weighted ? static_cast<double>(row + 1) : 1;
    weights += weight;
    for (int64_t i = 0; i < width; ++i) {
      double value = rows[row * width + i];
      if (pooling == Pooling::Max) // a NaN stays one
        vector[i] = value > vector[i] || std::isnan(value) ? value : vector[i];
      else
        vector[i] += weight * value;
    }
  }
  double divisor = pooling == Pooling::Max        ? 1
                   : pooling == Pooling::MeanSqrt ? std::sqrt(weights)
                                                  : weights;
  for (double &value : vector)
    value /= divisor;
}

bool Embedder::embed(const std::vector<int64_t> &tokens,
                     const std::vector<int64_t> *typeIds,
                     const VectorForm &form, std::vector<double> &vector,
                     Error &error) {
  invocation->reset();
  auto length = static_cast<int64_t>(tokens.size());
  int64_t chosen = adapterNumber.value_or(model.adapter());
  InputTensor number;
  if (adapter)
    number.name = adapter->name;
  number.dtype = DType::I64;
  number.shape = {1};
  number.data = &chosen;
  if (!bind(*ids, tokens, error) ||
      (adapter && !invocation->bindInput(number, error)) ||
      (typeIds && types && !bind(*types, *typeIds, error)) ||
      !invocation->resolve(/*past=*/0, "", error))
    return false;
  for (unsigned i = 0; i < buffers.size(); ++i) {
    const TensorDecl &decl = invocation->outputs()[i];
    uint64_t bytes = 0;
    if (!byteSize(decl.shape, dtypeBytes(decl.dtype), bytes) ||
        !buffers[i].reserve(bytes))
      return error.set(ExitResourceLimit, "no memory for output '" + decl.name +
                                              "' of shape " +
                                              formatShape(decl.shape));
    invocation->setOutput(i, buffers[i].data());
  }
  if (!scores && !pooled && invocation->outputs()[hidden].shape[1] != length)
    return error.badInput("the model gives other tokens than it reads");
  if (!invocation->run(error))
    return false;
  auto *rows = reinterpret_cast<const float *>(buffers[hidden].data());
  if (scores) {
    vector.assign(rows, rows + hiddenWidth);
    return true;
  }
  pool(rows, pooled ? 1 : length, hiddenWidth,
       pooled ? Pooling::Cls : form.pooling, vector);
  if (form.width)
    vector.resize(static_cast<size_t>(form.width));
  double square = 0;
  for (double value : vector)
    square += value * value;
  if (form.normalizes && square > 0)
    for (double &value : vector)
      value /= std::sqrt(square);
  return true;
}

} // namespace attune::runtime
