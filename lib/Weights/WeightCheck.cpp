//===- WeightCheck.cpp - A checkpoint against what is needed ----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Spec/Json.h"
#include "attune/Weights/Checkpoint.h"

#include <algorithm>

namespace attune {

static bool isReadable(runtime::DType dtype) {
  return dtype == runtime::DType::F32 || dtype == runtime::DType::F16 ||
         dtype == runtime::DType::BF16;
}

/// Buffers that old checkpoints carry and that hold nothing of the model:
/// causal masks of GPT-2 and GPT-NeoX, rotary frequencies, position numbers,
/// constants of xIELU, and the output head where the model has none of its own.
static bool isIgnorable(std::string_view name) {
  static constexpr std::string_view ends[] = {
      ".attn.bias",
      ".attn.masked_bias",
      ".attention.bias",
      ".attention.masked_bias",
      "rotary_emb.inv_freq",
      "embeddings.position_ids",
      ".act_fn.beta",
      ".act_fn.eps",
      // Copies of a shared table, and a table that T5 never uses.
      "encoder.embed_tokens.weight",
      "decoder.embed_tokens.weight",
      "EncDecAttention.relative_attention_bias.weight",
      // The vector that XLNet's training has in the place of a word.
      "mask_emb",
  };
  for (std::string_view end : ends)
    if (name.size() >= end.size() &&
        name.substr(name.size() - end.size()) == end)
      return true;
  // Heads and poolers of encoders, which their classes may leave out, and
  // copies of tied tables.
  static constexpr std::string_view starts[] = {
      "cls.",
      "lm_head.dense.",
      "lm_head.layer_norm.",
      "lm_head.decoder.",
      "sop_classifier.",
      "predictions.decoder.",
      "generator_lm_head.weight",
      "vocab_projector.weight",
      "lm_loss.weight",
  };
  for (std::string_view start : starts)
    if (name.substr(0, start.size()) == start)
      return true;
  for (std::string_view part : {".pooler.", "pooler.dense."})
    if (name.find(part) != std::string_view::npos)
      return true;
  return name == "lm_head.weight" || name == "embed_out.weight" ||
         name == "proj_out.weight";
}

/// A bias that adds nothing: tools for GPTQ write one for every matrix.
static bool isZeroBias(const CheckpointTensor &tensor) {
  constexpr std::string_view end = ".bias";
  return tensor.name.size() > end.size() &&
         tensor.name.compare(tensor.name.size() - end.size(), end.size(),
                             end) == 0 &&
         !tensor.encoding &&
         std::all_of(tensor.data, tensor.data + tensor.bytes,
                     [](uint8_t byte) { return byte == 0; });
}

/// Numbers of places, of batches, flags: no part of what is computed. Packed
/// matrices are of other types.
static bool isCounter(const CheckpointTensor &tensor) {
  return !tensor.encoding && (tensor.dtype == runtime::DType::I64 ||
                              tensor.dtype == runtime::DType::Bool);
}

namespace {
/// The shape that one piece requires of its tensor in the file. Its first size,
/// the rows, is exact, or a minimum, or (-1) anything.
struct Expectation {
  std::vector<int64_t> shape;
  bool exactRows = true;

  /// As it is written in messages: "[768, >= 2304]".
  std::string text(bool transposed) const {
    std::string result = "[";
    for (size_t i = 0; i < shape.size(); ++i) {
      size_t axis = transposed ? shape.size() - 1 - i : i;
      result += i ? ", " : "";
      if (axis == 0 && !exactRows)
        result += shape[0] < 0 ? "any" : ">= " + std::to_string(shape[0]);
      else
        result += std::to_string(shape[axis]);
    }
    return result + "]";
  }
};

class Checker {
public:
  Checker(const Checkpoint &checkpoint, DiagnosticEngine &diags)
      : checkpoint(checkpoint), diags(diags) {
    for (const auto &[name, info] : checkpoint.tensors())
      names.push_back(name);
  }

  /// Notes which rows of which tensor are wanted; before any `check`.
  void note(const NeededWeight &weight);
  void check(const NeededWeight &weight);
  void checkExtra();
  bool finish();

private:
  void error(const SourceLocation &where, const std::string &message) {
    // A checkpoint of another model can differ everywhere.
    if (++numErrors <= maxErrors)
      diags.error(where, message);
  }
  /// The rows that the piece gives, or -1 after an error.
  int64_t checkPiece(const NeededWeight &weight,
                     const spec::WeightSource &source,
                     const Expectation &expected);

  /// The tensor that was probably meant, or nothing.
  std::string nearest(const std::string &name) const;

  const Checkpoint &checkpoint;
  DiagnosticEngine &diags;
  std::vector<std::string> names;
  std::set<std::string, std::less<>> used;
  /// Tensors already reported: three roles may share one.
  std::set<std::string, std::less<>> reported;
  /// The cuts of one tensor.
  struct Cuts {
    int64_t count = 0, rows = 0, last = 0;
  };
  std::map<std::pair<std::string, bool>, Cuts> cuts; ///< by name, transposed
  static constexpr unsigned maxErrors = 3;
  unsigned numErrors = 0;
};
} // namespace

static bool isCut(const spec::WeightSource &source) {
  return source.begin != 0 || source.end >= 0;
}

void Checker::note(const NeededWeight &weight) {
  for (const spec::WeightSource &source : weight.sources)
    if (isCut(source)) {
      Cuts &cut = cuts[{source.tensor, source.transposed}];
      int64_t behind = (source.count - 1) * source.stride;
      cut.count += source.count;
      cut.rows += (source.end - source.begin) * source.count;
      cut.last =
          std::max({cut.last, source.begin + behind, source.end + behind});
    }
}

/// A tensor as the matrix or vector that is wanted of it: dimensions of 1 in
/// front or behind count for nothing ([1, 1, D] is a row, [D] a column, too),
/// and those of a convolution's kernel are columns.
static std::vector<int64_t> asWanted(std::vector<int64_t> shape,
                                     const std::vector<int64_t> &wanted) {
  // One row is there already, and what follows are its columns.
  bool isRow = wanted.size() == 2 && wanted.front() == 1;
  while (!isRow && shape.size() > wanted.size() && shape.front() == 1)
    shape.erase(shape.begin());
  while (shape.size() < wanted.size() &&
         wanted[wanted.size() - shape.size() - 1] == 1)
    shape.insert(shape.begin(), 1);
  while (shape.size() < wanted.size() && wanted[shape.size()] == 1)
    shape.push_back(1);
  if (wanted.size() == 2)
    while (shape.size() > 2) {
      shape[1] *= shape.back();
      shape.pop_back();
    }
  return shape;
}

std::string Checker::nearest(const std::string &name) const {
  std::string near = spec::nearest(name, names);
  if (!near.empty())
    return near;
  // Checkpoints differ in what they put in front of all names: "model.".
  auto endsIn = [](const std::string &whole, const std::string &end) {
    return whole.size() > end.size() &&
           whole.compare(whole.size() - end.size(), end.size(), end) == 0 &&
           whole[whole.size() - end.size() - 1] == '.';
  };
  for (const std::string &other : names)
    if (endsIn(other, name) || endsIn(name, other))
      return other;
  return "";
}

int64_t Checker::checkPiece(const NeededWeight &weight,
                            const spec::WeightSource &source,
                            const Expectation &expected) {
  used.insert(source.tensor);
  const CheckpointTensor *info = checkpoint.find(source.tensor);
  std::string wanted = expected.text(source.transposed);
  if (!info) {
    if (reported.insert(source.tensor).second) {
      // The list of names is scanned for a likely slip only now and then.
      std::string near =
          reported.size() <= 20 ? nearest(source.tensor) : std::string();
      error(weight.location,
            "tensor '" + source.tensor + "' is missing from " +
                checkpoint.path() + "; expected shape " + wanted +
                " for weight '" + weight.name + "'" +
                (near.empty() ? "" : "; there is '" + near + "'"));
    }
    return -1;
  }
  std::vector<int64_t> shape = info->shape;
  // A vector may be laid out in several dimensions, as [heads, width].
  if (expected.shape.size() == 1 && shape.size() > 1) {
    int64_t elements = 1;
    for (int64_t size : shape)
      elements *= size;
    shape = {elements};
  }
  if (source.transposed) {
    // Dimensions behind the columns are rows, as [width, heads, head_dim].
    while (shape.size() > std::max<size_t>(expected.shape.size(), 2)) {
      shape[shape.size() - 2] *= shape.back();
      shape.pop_back();
    }
    std::reverse(shape.begin(), shape.end());
  } else {
    shape = asWanted(shape, expected.shape);
  }
  bool fits = shape.size() == expected.shape.size();
  for (size_t i = 0; fits && i < shape.size(); ++i)
    fits = i == 0 && !expected.exactRows ? shape[i] >= expected.shape[i]
                                         : shape[i] == expected.shape[i];
  if (!fits) {
    if (reported.insert(source.tensor).second)
      error(weight.location, "tensor '" + source.tensor + "' has shape " +
                                 runtime::formatShape(info->shape) +
                                 ", expected " + wanted + " for weight '" +
                                 weight.name + "'");
    return -1;
  }
  if (!isReadable(info->dtype)) {
    if (reported.insert(source.tensor).second)
      error(weight.location,
            "tensor '" + source.tensor + "' has elements of type " +
                runtime::dtypeName(info->dtype) +
                ", expected F32, F16, BF16 or F64 for weight '" + weight.name +
                "'");
    return -1;
  }
  return ((source.end < 0 ? shape[0] : source.end) - source.begin) *
         source.count;
}

void Checker::check(const NeededWeight &weight) {
  bool single = weight.sources.size() == 1;
  int64_t rows = 0;
  bool known = true;
  for (const spec::WeightSource &source : weight.sources) {
    Expectation expected{weight.shape, true};
    if (isCut(source)) {
      // Cuts side by side take a tensor apart: it has these rows and no more.
      const Cuts &cut = cuts[{source.tensor, source.transposed}];
      expected.exactRows = cut.count > 1 && cut.rows == cut.last;
      expected.shape[0] = cut.last;
    } else if (!single || weight.padding) {
      expected.exactRows = false;
      expected.shape[0] = -1;
    }
    int64_t got = checkPiece(weight, source, expected);
    known &= got >= 0;
    rows += got;
  }
  int64_t most = weight.shape[0], least = most - weight.padding;
  if (known && (rows > most || rows < least)) {
    std::string parts;
    for (const spec::WeightSource &source : weight.sources) {
      parts += (parts.empty() ? "'" : ", '") + source.tensor + "' of shape " +
               runtime::formatShape(checkpoint.find(source.tensor)->shape);
      reported.insert(source.tensor);
    }
    error(weight.location,
          "weight '" + weight.name + "' has " + std::to_string(rows) +
              " rows, expected " +
              (least == most ? "" : std::to_string(least) + " to ") +
              std::to_string(most) + "; it is made of " + parts);
  }
}

void Checker::checkExtra() {
  std::vector<const CheckpointTensor *> extra;
  for (const auto &[name, info] : checkpoint.tensors())
    if (!used.count(name) && !isIgnorable(name) && !isZeroBias(*info) &&
        !isCounter(*info))
      extra.push_back(info);
  for (const CheckpointTensor *info : extra)
    error({}, "tensor '" + info->name + "' of shape " +
                  runtime::formatShape(info->shape) + " in " +
                  checkpoint.path() +
                  " is used nowhere in the model; its description lacks a part "
                  "or the checkpoint belongs to another model");
}

bool Checker::finish() {
  if (numErrors > maxErrors)
    diags.error({}, "... and " + std::to_string(numErrors - maxErrors) +
                        " more tensors of " + checkpoint.path() +
                        " do not fit; it may belong to another model");
  return numErrors == 0;
}

bool checkWeights(const std::vector<NeededWeight> &needed,
                  const Checkpoint &checkpoint, DiagnosticEngine &diags,
                  bool complete) {
  Checker checker(checkpoint, diags);
  for (const NeededWeight &weight : needed)
    checker.note(weight);
  for (const NeededWeight &weight : needed)
    checker.check(weight);
  if (complete)
    checker.checkExtra();
  return checker.finish();
}

/// The line that says how large the sublayer of `role` is, which is likelier
/// wrong than the number of layers.
static SourceLocation locate(const spec::Layer &layer,
                             const std::string &role) {
  const auto *block = std::get_if<spec::Block>(&layer.op);
  SourceLocation where;
  if (block && block->ffn && role.rfind("ffn.", 0) == 0)
    where = block->ffn->location;
  else if (block && block->attention && role.rfind("attention.", 0) == 0)
    where = block->attention->location;
  return where.line ? where : layer.location;
}

bool checkWeights(const spec::Model &model, const Checkpoint &checkpoint,
                  DiagnosticEngine &diags) {
  std::vector<NeededWeight> needed;
  for (const spec::Stream &stream : model.streams)
    for (const spec::Layer &layer : stream.layers)
      for (const spec::WeightRole &role : spec::weightRoles(layer))
        for (int64_t n = 0; n < layer.repeat * role.parts; ++n) {
          int64_t i = n / role.parts, part = n % role.parts;
          NeededWeight weight;
          weight.name = substitutePart(
              substituteLayer(layer.name.empty() ? role.role
                                                 : layer.name + "." + role.role,
                              layer.first + i),
              part);
          weight.shape = {role.rows};
          if (role.columns)
            weight.shape.push_back(role.columns);
          weight.sources = spec::resolveWeight(layer, role.role);
          for (spec::WeightSource &source : weight.sources)
            source.tensor = substitutePart(
                substituteLayer(source.tensor, layer.first + i), part);
          weight.location = locate(layer, role.role);
          needed.push_back(std::move(weight));
        }
  return checkWeights(needed, checkpoint, diags);
}

} // namespace attune
