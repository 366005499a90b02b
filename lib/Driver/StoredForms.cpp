//===- StoredForms.cpp - Forms that a checkpoint's numbers have -----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StoredForms.h"

#include "Attune/AttuneDialect.h"
#include "attune/Spec/Repeats.h"
#include "attune/Spec/Taps.h"
#include "attune/Support/TensorNames.h"
#include "attune/Transforms/QuantizationRules.h"

#include <set>

using namespace llvm;
using namespace attune;
using namespace attune::driver;

namespace {
/// The smallest form that holds the numbers of some matrices, if all have one.
class JoinedForm {
public:
  explicit JoinedForm(const ModelSource &source) : source(source) {}

  /// Begins a matrix: what is put together has its columns in one order.
  void beginMatrix() { order.reset(); }
  /// Adds a piece of the matrix; false if there is no form that holds it, too.
  bool add(StringRef tensor) {
    auto found = source.stored.find(tensor);
    if (found == source.stored.end() ||
        order.value_or(found->second.order) != found->second.order)
      return false;
    order = found->second.order;
    form = form ? form->join(found->second.form) : found->second.form;
    return form->bits != 0;
  }
  StoredForm get() const { return form.value_or(StoredForm{}); }

private:
  const ModelSource &source;
  std::optional<StoredForm> form;
  std::optional<uint64_t> order;
};
} // namespace

//===----------------------------------------------------------------------===//
// Layers
//===----------------------------------------------------------------------===//

/// The form of one role in repeats [begin, end); no bits if there is none.
static StoredForm formOf(const ModelSource &source, const spec::Layer &layer,
                         const spec::WeightRole &role, int64_t begin,
                         int64_t end) {
  JoinedForm form(source);
  for (int64_t repeat = begin; repeat < end; ++repeat)
    for (int64_t part = 0; part < role.parts; ++part) {
      form.beginMatrix();
      for (const spec::WeightSource &piece :
           spec::resolveWeight(layer, role.role))
        if (piece.transposed ||
            !form.add(substitutePart(
                substituteLayer(piece.tensor, layer.first + repeat), part)))
          return {};
    }
  return form.get();
}

/// What tells the stacks of these repeats apart from those of others.
static std::string formsOf(const ModelSource &source, const spec::Layer &layer,
                           int64_t begin, int64_t end) {
  std::string text;
  for (const spec::WeightRole &role : spec::weightRoles(layer))
    if (role.columns > 0)
      if (StoredForm form = formOf(source, layer, role, begin, end); form.bits)
        text += role.role + ":" + form.text() + " ";
  return text;
}

namespace {
/// The layers of a stream that may be cut into runs of their repeats.
class Cuttable {
public:
  Cuttable(const spec::Model &model, size_t stream)
      : model(model), stream(stream), text(spec::print(model)) {
    std::string problem;
    for (const spec::Output &output : model.outputs)
      if (auto tap = spec::findAttentionTap(model, output.layer, problem);
          tap && tap->stream == stream)
        for (const spec::AttentionTap::Part &part : tap->parts)
          tapped.insert(part.layer);
  }

  /// Runs are compiled as one only if nothing tells them from each other, and
  /// are several layers for who asks for the whole one.
  bool holds(size_t number) const {
    const std::vector<spec::Layer> &layers = model.streams[stream].layers;
    const spec::Layer &layer = layers[number];
    const auto *block = std::get_if<spec::Block>(&layer.op);
    return block && !block->cross &&
           !(block->attention && block->attention->scaleByLayer) &&
           !tapped.count(number) &&
           !spec::lendsKeys(model.streams[stream], layer) && !isNamed(layer);
  }

private:
  /// Whether anything but the layers of this name has it.
  bool isNamed(const spec::Layer &layer) const {
    size_t places = 0, own = 0;
    std::string quoted = "\"" + layer.name + "\"";
    for (size_t at = 0; (at = text.find(quoted, at)) != std::string::npos;
         at += quoted.size())
      ++places;
    for (const spec::Stream &some : model.streams)
      own += size_t(llvm::count_if(some.layers, [&](const spec::Layer &other) {
        return other.name == layer.name;
      }));
    return places > own ||
           any_of(model.outputs, [&](const spec::Output &output) {
             return StringRef(output.layer).starts_with(layer.name + ".");
           });
  }

  const spec::Model &model;
  size_t stream;
  std::string text;
  std::set<size_t> tapped;
};
} // namespace

/// The layers of a stream, those in parts whose repeats have several forms.
static std::vector<spec::Layer> cutByForms(const ModelSource &source,
                                           size_t stream) {
  // Each kind is a set of functions, which takes about as long to compile as a
  // model with one kind of layer does.
  constexpr size_t mostKinds = 4;
  const std::vector<spec::Layer> &layers = source.model->streams[stream].layers;
  Cuttable cuttable(*source.model, stream);
  std::vector<std::vector<std::string>> forms;
  std::set<std::string> kinds;
  for (const auto &[number, layer] : llvm::enumerate(layers)) {
    std::vector<std::string> &own = forms.emplace_back();
    if (layer.repeat > 1 && cuttable.holds(number))
      for (int64_t i = 0; i < layer.repeat; ++i)
        own.push_back(formsOf(source, layer, i, i + 1));
    kinds.insert(own.begin(), own.end());
  }
  std::vector<spec::Layer> result;
  for (const auto &[layer, own] : llvm::zip(layers, forms)) {
    if (own.empty() || kinds.size() > mostKinds || llvm::all_equal(own)) {
      result.push_back(layer);
      result.back().apart += formsOf(source, layer, 0, layer.repeat);
      continue;
    }
    for (int64_t begin = 0, end = 0; begin < layer.repeat; begin = end) {
      // Of blocks that take turns each is alone, so that equal ones share.
      for (++end; end < layer.repeat && layer.cycle.empty() &&
                  own[size_t(end)] == own[size_t(begin)];)
        ++end;
      result.push_back(spec::takeRepeats(layer, begin, end));
      result.back().apart += own[size_t(begin)];
    }
  }
  return result;
}

void driver::keepFormsApart(ModelSource &source) {
  // Rules by name mean the layers of the model.
  bool rules = source.lowRank ||
               (source.quantize &&
                source.quantize->words() != std::vector<std::string>{"stored"});
  if (source.stored.empty() || !source.model || rules)
    return;
  for (size_t stream = 0; stream < source.model->streams.size(); ++stream)
    source.model->streams[stream].layers = cutByForms(source, stream);
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

/// The form of all tensors of a weight; no bits if they have none.
static StoredForm findStored(WeightOp weight, const ModelSource &source) {
  if (weight->hasAttr("attune.scales"))
    return {};
  JoinedForm form(source);
  for (int64_t layer = 0; layer < weight.getNumLayers(); ++layer)
    for (int64_t part = 0; part < weight.getNumParts(); ++part) {
      form.beginMatrix();
      for (auto piece : weight.getSources().getAsRange<WeightSourceAttr>())
        if (piece.getTransposed() ||
            !form.add(substitutePart(
                substituteLayer(piece.getTensor().str(), layer), part)))
          return {};
    }
  return form.get();
}

void driver::markStored(mlir::ModuleOp module, const ModelSource &source,
                        bool flat) {
  mlir::Builder b(module);
  for (auto weight : module.getOps<WeightOp>()) {
    StoredForm form;
    if (!source.stored.empty())
      form = findStored(weight, source);
    // IR may say it already.
    auto said = weight->getAttrOfType<mlir::StringAttr>("attune.stored");
    if (!form.bits && said && flat)
      if (auto parsed = QuantizationRules::parseForm(said.getValue()))
        form = *parsed;
    if (form.bits)
      weight->setAttr("attune.stored",
                      b.getStringAttr((flat ? form.flat() : form).text()));
  }
}
