//===- Compare.cpp - attune compare -----------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../InMemory.h"
#include "Verbs.h"

#include "attune/Runtime/Safetensors.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cmath>

using namespace attune;
using namespace attune::driver;

namespace {
/// An output of one model, in f32.
struct Result {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<float> values;
};

/// How the student's rows of an output differ from the teacher's. A row is what
/// the last dimension holds.
struct Difference {
  std::string name;
  int64_t rows = 0;
  double cosine = 0;      ///< mean over rows
  double leastCosine = 1; ///< of any row
  /// Root mean square, by the teacher's; nothing if that is zero alone.
  std::optional<double> error;
  /// Of logits: the mean over rows of the Kullback-Leibler divergence of the
  /// student's probabilities from the teacher's, in nats, and the share of rows
  /// in which both like the same entry best.
  std::optional<double> divergence, agreement;
};
} // namespace

/// Runs a model on the tensors of the file that it has inputs for.
static bool runOn(runtime::CompiledModel &model,
                  const runtime::SafetensorsFile &file,
                  std::vector<Result> &results, runtime::Error &error) {
  const runtime::EntryInfo *entry = model.entry("forward");
  if (!entry)
    return error.badInput("model '" + model.info().name +
                          "' has no forward entry to compare");
  runtime::Invocation call(model, *entry);
  for (const runtime::TensorInfo &tensor : file.tensors()) {
    bool isInput = llvm::any_of(entry->args, [&](const auto &arg) {
      return arg.kind == runtime::ArgKind::Input && arg.name == tensor.name;
    });
    runtime::InputTensor input;
    input.name = tensor.name;
    input.dtype = tensor.dtype;
    input.shape = tensor.shape;
    input.data = tensor.data;
    if (isInput && !call.bindInput(input, error)) {
      error.message = file.path() + ": " + error.message;
      return false;
    }
  }
  if (!call.resolve(/*past=*/0, file.path(), error))
    return false;
  const std::vector<runtime::TensorDecl> &outputs = call.outputs();
  std::vector<runtime::Buffer> buffers(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    uint64_t bytes = 0;
    if (!runtime::byteSize(outputs[i].shape,
                           runtime::dtypeBytes(outputs[i].dtype), bytes) ||
        !buffers[i].reserve(bytes))
      return error.set(runtime::ExitResourceLimit,
                       "no memory for output '" + outputs[i].name + "'");
    call.setOutput(unsigned(i), buffers[i].data());
  }
  if (!call.run(error))
    return false;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!runtime::isFloat(outputs[i].dtype))
      continue;
    Result &result = results.emplace_back();
    result.name = outputs[i].name;
    result.shape = outputs[i].shape;
    uint64_t count = 1;
    for (int64_t size : result.shape)
      count *= uint64_t(size);
    result.values.resize(count);
    runtime::convertElements(outputs[i].dtype, buffers[i].data(),
                             runtime::DType::F32, result.values.data(), count);
    for (float value : result.values)
      if (!std::isfinite(value))
        return error.badInput("output '" + result.name + "' of model '" +
                              model.info().name +
                              "' holds values that are no numbers; "
                              "--check-weights tells whether its weights do");
  }
  return true;
}

/// Logarithms of the probabilities that logits stand for.
static std::vector<double> logSoftmax(const float *row, int64_t width) {
  double largest = *std::max_element(row, row + width), total = 0;
  for (int64_t i = 0; i < width; ++i)
    total += std::exp(double(row[i]) - largest);
  std::vector<double> result(width);
  for (int64_t i = 0; i < width; ++i)
    result[i] = double(row[i]) - largest - std::log(total);
  return result;
}

static double divergenceOf(const float *teacher, const float *student,
                           int64_t width) {
  std::vector<double> p = logSoftmax(teacher, width),
                      q = logSoftmax(student, width);
  double sum = 0;
  for (int64_t i = 0; i < width; ++i)
    sum += std::exp(p[i]) * (p[i] - q[i]);
  return sum;
}

static Difference compare(const Result &teacher, const Result &student) {
  Difference result;
  result.name = teacher.name;
  int64_t width = teacher.shape.empty() ? 1 : teacher.shape.back();
  auto size = int64_t(teacher.values.size());
  if (width < 1 || size < 1)
    return result;
  result.rows = size / width;
  bool isLogits = teacher.name == "logits";
  double lost = 0, total = 0, divergence = 0;
  int64_t agreed = 0;
  for (int64_t row = 0; row < result.rows; ++row) {
    const float *t = &teacher.values[row * width],
                *s = &student.values[row * width];
    double both = 0, ofTeacher = 0, ofStudent = 0;
    for (int64_t i = 0; i < width; ++i) {
      both += double(t[i]) * s[i];
      ofTeacher += double(t[i]) * t[i];
      ofStudent += double(s[i]) * s[i];
      lost += (double(s[i]) - t[i]) * (double(s[i]) - t[i]);
    }
    total += ofTeacher;
    // Of zeros only zeros have the direction.
    double lengths = std::sqrt(ofTeacher) * std::sqrt(ofStudent);
    double cosine = lengths > 0              ? both / lengths
                    : ofTeacher == ofStudent ? 1
                                             : 0;
    result.cosine += cosine / double(result.rows);
    result.leastCosine = std::min(result.leastCosine, cosine);
    if (!isLogits)
      continue;
    divergence += divergenceOf(t, s, width);
    agreed += std::max_element(t, t + width) - t ==
              std::max_element(s, s + width) - s;
  }
  if (lost == 0 || total > 0)
    result.error = lost == 0 ? 0 : std::sqrt(lost / total);
  if (isLogits) {
    result.divergence = divergence / double(result.rows);
    result.agreement = double(agreed) / double(result.rows);
  }
  return result;
}

static void showTable(const Options &options,
                      const std::vector<Difference> &all) {
  llvm::raw_ostream &os = llvm::outs();
  os << "teacher: " << options.model << "\nstudent: " << options.student
     << "\n\n"
     << llvm::formatv("{0,-28}{1,10}{2,12}{3,12}{4,12}{5,12}{6,8}\n", "output",
                      "rows", "cosine", "least", "error", "KL (nats)", "top-1");
  for (const Difference &one : all) {
    os << llvm::formatv("{0,-28}{1,10}{2,12:f6}{3,12:f6}", one.name, one.rows,
                        one.cosine, one.leastCosine)
       << (one.error ? llvm::formatv("{0,12:e2}", *one.error).str()
                     : "           -");
    if (one.divergence)
      os << llvm::formatv("{0,12:e2}{1,7:f1}%", *one.divergence,
                          100 * *one.agreement);
    os << '\n';
  }
  os << "\nrows: what the last dimension holds; cosine: mean and least of any "
        "row; error: root\nmean square by that of the teacher; KL: of the "
        "student from the teacher, mean of rows\n";
}

static void showJson(const Options &options,
                     const std::vector<Difference> &all) {
  llvm::json::OStream json(llvm::outs(), /*IndentSize=*/2);
  json.object([&] {
    json.attribute("teacher", llvm::json::fixUTF8(options.model));
    json.attribute("student", llvm::json::fixUTF8(options.student));
    json.attributeArray("outputs", [&] {
      for (const Difference &one : all)
        json.object([&] {
          json.attribute("name", llvm::json::fixUTF8(one.name));
          json.attribute("rows", one.rows);
          json.attribute("cosine", one.cosine);
          json.attribute("least_cosine", one.leastCosine);
          if (one.error)
            json.attribute("error", *one.error);
          if (one.divergence) {
            json.attribute("kl_divergence", *one.divergence);
            json.attribute("top1_agreement", *one.agreement);
          }
        });
    });
  });
  json.flush();
  llvm::outs() << "\n";
}

ExitCode driver::runCompare(const Options &options, Report &report) {
  if (options.student.empty())
    return report.fail("'compare' needs a TEACHER and a STUDENT: attune "
                       "compare TEACHER STUDENT --inputs FILE",
                       ExitCode::BadCommandLine);
  if (options.inputsFile.empty())
    return report.fail("'compare' needs inputs: --inputs=FILE",
                       ExitCode::BadCommandLine);
  runtime::SafetensorsFile file;
  std::string problem;
  if (!file.open(options.inputsFile, problem))
    return report.fail(problem);
  // The teacher is as its folder has it, and multiplies f32.
  Options teacher = options, student = options;
  teacher.quantize.reset();
  teacher.lowRank.reset();
  teacher.pruneHeads.reset();
  teacher.loras.clear();
  teacher.dtype.reset();
  teacher.machine.bf16Pairs = teacher.machine.tf32 = false;
  student.model = options.student;
  std::vector<Result> results[2];
  const Options *each[] = {&teacher, &student};
  for (int i = 0; i < 2; ++i) {
    InMemoryModel model;
    ExitCode code = prepareModel(*each[i], report, Entries::Forward, model);
    if (code != ExitCode::Success)
      return code;
    report.beginStage(i ? "running the student" : "running the teacher");
    runtime::Error error;
    if (!runOn(model.getModel(), file, results[i], error))
      return reportError(error, report);
    report.endStage();
  }
  std::vector<Difference> differences;
  for (const Result &wanted : results[0]) {
    auto same = llvm::find_if(results[1], [&](const Result &other) {
      return other.name == wanted.name;
    });
    if (same == results[1].end())
      report.warning({}, "the student has no output '" + wanted.name + "'");
    else if (same->shape != wanted.shape)
      report.warning({}, "output '" + wanted.name + "' is " +
                             runtime::formatShape(wanted.shape) +
                             " of the teacher and " +
                             runtime::formatShape(same->shape) +
                             " of the student; it is left out");
    else
      differences.push_back(compare(wanted, *same));
  }
  if (differences.empty())
    return report.fail("the models have no output of one name and size to "
                       "compare");
  if (options.format == "json")
    showJson(options, differences);
  else
    showTable(options, differences);
  return ExitCode::Success;
}
