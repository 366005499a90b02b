//===- StoredForms.cpp - Forms that a checkpoint's numbers have -----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StoredForms.h"

#include "Attune/AttuneDialect.h"
#include "attune/Spec/Repeats.h"
#include "attune/Support/TensorNames.h"

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

/// The form of one role in one repeat; no bits if it has none.
static StoredForm formOf(const ModelSource &source, const spec::Layer &layer,
                         const spec::WeightRole &role, int64_t repeat) {
  JoinedForm form(source);
  for (int64_t part = 0; part < role.parts; ++part) {
    form.beginMatrix();
    for (const spec::WeightSource &piece :
         spec::resolveWeight(layer, role.role))
      if (!form.add(substitutePart(
              substituteLayer(piece.tensor, layer.first + repeat), part)))
        return {};
  }
  return form.get();
}

/// What tells a repeat's stacks of weights apart from those of others.
static std::string formsOf(const ModelSource &source, const spec::Layer &layer,
                           int64_t repeat) {
  std::string text;
  for (const spec::WeightRole &role : spec::weightRoles(layer))
    if (role.columns > 0)
      if (StoredForm form = formOf(source, layer, role, repeat); form.bits)
        text += role.role + ":" + form.text() + " ";
  return text;
}

/// Appends the layer to `layers`, in parts if its repeats have several forms.
static void appendParts(const ModelSource &source, const spec::Layer &layer,
                        std::vector<spec::Layer> &layers) {
  // Each kind is a set of functions, which takes about as long to compile as a
  // model with one kind of layer does.
  constexpr size_t mostKinds = 4;
  std::vector<std::string> forms;
  for (int64_t i = 0; i < layer.repeat; ++i)
    forms.push_back(formsOf(source, layer, i));
  size_t kinds = std::set<std::string>(forms.begin(), forms.end()).size();
  if (kinds == 1 || kinds > mostKinds) {
    layers.push_back(layer);
    layers.back().apart += kinds == 1 ? forms.front() : "";
    return;
  }
  for (int64_t begin = 0, end = 0; begin < layer.repeat; begin = end) {
    // Of blocks that take turns each is alone, as what it shares with others.
    for (++end; end < layer.repeat && layer.cycle.empty() &&
                forms[size_t(end)] == forms[size_t(begin)];)
      ++end;
    layers.push_back(spec::takeRepeats(layer, begin, end));
    layers.back().apart += forms[size_t(begin)];
  }
}

void driver::keepFormsApart(ModelSource &source) {
  if (source.stored.empty() || !source.model)
    return;
  if (source.quantize && none_of(source.quantize->words(), [](StringRef word) {
        return word == "stored" || word.ends_with("=stored");
      }))
    return;
  for (spec::Stream &stream : source.model->streams) {
    std::vector<spec::Layer> layers;
    for (const spec::Layer &layer : stream.layers)
      appendParts(source, layer, layers);
    stream.layers = std::move(layers);
  }
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

void driver::markStored(mlir::ModuleOp module, const ModelSource &source) {
  if (source.stored.empty())
    return;
  mlir::Builder b(module);
  for (auto weight : module.getOps<WeightOp>())
    if (StoredForm form = findStored(weight, source); form.bits)
      weight->setAttr("attune.stored", b.getStringAttr(form.text()));
}
