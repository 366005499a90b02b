//===- Compare.cpp - attune compare -----------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../InMemory.h"
#include "Verbs.h"

#include "attune/Analysis/HtmlPage.h"
#include "attune/Runtime/Safetensors.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cmath>
#include <limits>

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
  std::string student; ///< its name there; empty: the same
  int64_t rows = 0;
  double cosine = 0;      ///< mean over rows
  double leastCosine = 1; ///< of any row
  /// Root mean square, by the teacher's; nothing if that is zero alone.
  std::optional<double> error;
  /// For logits, and for outputs whose rows are probabilities, as attention
  /// maps are: the mean over rows of the Kullback-Leibler divergence of the
  /// student's probabilities from the teacher's, in nats, and the share of rows
  /// in which both have the same most likely entry.
  std::optional<double> divergence, agreement;
};
} // namespace

/// Values that are not finite compare with nothing.
static bool areFinite(const Result &result) {
  return llvm::all_of(result.values,
                      [](float value) { return std::isfinite(value); });
}

/// Whether what the file holds is what another program gave, such as the
/// PyTorch module that a description was written for.
static bool isRecord(const Options &options) {
  return llvm::StringRef(options.model).ends_with(".safetensors");
}

/// Takes the tensors of the file that may be outputs: floats by names that the
/// student has no input of.
static bool readRecord(const runtime::SafetensorsFile &file,
                       const runtime::EntryInfo &student,
                       std::vector<Result> &results, runtime::Error &error) {
  for (const runtime::TensorInfo &tensor : file.tensors()) {
    bool isInput = llvm::any_of(student.args, [&](const auto &arg) {
      return arg.kind == runtime::ArgKind::Input && arg.name == tensor.name;
    });
    if (isInput || !runtime::isFloat(tensor.dtype))
      continue;
    Result result;
    result.name = tensor.name;
    result.shape = tensor.shape;
    uint64_t count = 1;
    for (int64_t size : tensor.shape)
      count *= uint64_t(size);
    result.values.resize(count);
    runtime::convertElements(tensor.dtype, tensor.data, runtime::DType::F32,
                             result.values.data(), count);
    if (!areFinite(result))
      return error.badInput("tensor '" + result.name + "' of '" + file.path() +
                            "' holds values that are not numbers");
    results.push_back(std::move(result));
  }
  return true;
}

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
    if (!areFinite(result))
      return error.badInput("output '" + result.name + "' of model '" +
                            model.info().name +
                            "' holds values that are not numbers; "
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

/// Whether every row is probabilities of softmax in f32, or zeros, as of a
/// token that sees none.
static bool areProbabilities(const Result &result, int64_t width) {
  for (size_t at = 0; at < result.values.size(); at += size_t(width)) {
    double sum = 0;
    for (int64_t i = 0; i < width; ++i) {
      float value = result.values[at + size_t(i)];
      if (value < 0)
        return false;
      sum += value;
    }
    if (sum != 0 && std::fabs(sum - 1) > 1e-3)
      return false;
  }
  return true;
}

/// The divergence of probabilities. What the student calls impossible counts
/// as the least number of f32.
static double divergenceOfRows(const float *teacher, const float *student,
                               int64_t width) {
  double sum = 0;
  for (int64_t i = 0; i < width; ++i)
    if (teacher[i] > 0)
      sum += teacher[i] * (std::log(double(teacher[i])) -
                           std::log(std::max<double>(
                               student[i], std::numeric_limits<float>::min())));
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
  bool isChoice = isLogits || (areProbabilities(teacher, width) &&
                               areProbabilities(student, width));
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
    // The cosine with a row of zeros is 1 if both rows are zeros, 0 otherwise.
    double lengths = std::sqrt(ofTeacher) * std::sqrt(ofStudent);
    double cosine = lengths > 0              ? both / lengths
                    : ofTeacher == ofStudent ? 1
                                             : 0;
    result.cosine += cosine / double(result.rows);
    result.leastCosine = std::min(result.leastCosine, cosine);
    if (!isChoice)
      continue;
    divergence +=
        isLogits ? divergenceOf(t, s, width) : divergenceOfRows(t, s, width);
    agreed += std::max_element(t, t + width) - t ==
              std::max_element(s, s + width) - s;
  }
  if (lost == 0 || total > 0)
    result.error = lost == 0 ? 0 : std::sqrt(lost / total);
  if (isChoice) {
    result.divergence = divergence / double(result.rows);
    result.agreement = double(agreed) / double(result.rows);
  }
  return result;
}

/// As people read it.
static std::string nameOf(const Difference &one) {
  return one.student.empty() ? one.name : one.name + " ~ " + one.student;
}

/// What the columns are.
static const char *const legend =
    "rows: what the last dimension holds; cosine: mean and least of any row; "
    "error: root\nmean square by that of the teacher; KL: of the student from "
    "the teacher, mean of rows";

static void showTable(const Options &options,
                      const std::vector<Difference> &all) {
  llvm::raw_ostream &os = llvm::outs();
  os << "teacher: " << options.model << "\nstudent: " << options.student
     << "\n\n"
     << llvm::formatv("{0,-28}{1,10}{2,12}{3,12}{4,12}{5,12}{6,8}\n", "output",
                      "rows", "cosine", "least", "error", "KL (nats)", "top-1");
  for (const Difference &one : all) {
    os << llvm::formatv("{0,-28}{1,10}{2,12:f6}{3,12:f6}", nameOf(one),
                        one.rows, one.cosine, one.leastCosine)
       << (one.error ? llvm::formatv("{0,12:e2}", *one.error).str()
                     : "           -");
    if (one.divergence)
      os << llvm::formatv("{0,12:e2}{1,7:f1}%", *one.divergence,
                          100 * *one.agreement);
    os << '\n';
  }
  os << '\n' << legend << '\n';
}

/// One page that loads nothing. A bar shows an error, full at 1.
static void showHtml(const Options &options,
                     const std::vector<Difference> &all) {
  llvm::raw_ostream &os = llvm::outs();
  beginHtmlPage(os, options.student, R"(th:first-child, td:first-child,
td:last-child { text-align: left; }
.error { display: inline-block; height: .7rem; background: #b5544a; }
)");
  os << "<p>beside its teacher, " << escapeHtml(options.model)
     << "</p>\n<table>\n<tr><th>output</th><th>rows</th><th>cosine</th>"
        "<th>least</th><th>KL (nats)</th><th>top-1</th><th>error</th>"
        "<th></th></tr>\n";
  for (const Difference &one : all) {
    os << "<tr><td>" << escapeHtml(nameOf(one))
       << llvm::formatv("</td><td>{0}</td><td>{1:f6}</td><td>{2:f6}</td><td>",
                        one.rows, one.cosine, one.leastCosine);
    if (one.divergence)
      os << llvm::formatv("{0:e2}</td><td>{1:f1}%", *one.divergence,
                          100 * *one.agreement);
    else
      os << "</td><td>";
    os << "</td><td>";
    if (one.error)
      os << llvm::formatv("{0:e2}</td><td><span class=\"error\" "
                          "style=\"width: {1:f1}rem\"></span>",
                          *one.error, 12 * std::min(*one.error, 1.0));
    else
      os << "</td><td>";
    os << "</td></tr>\n";
  }
  os << "</table>\n<p>" << legend << "</p>\n</body>\n</html>\n";
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
          if (!one.student.empty())
            json.attribute("student", llvm::json::fixUTF8(one.student));
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

namespace {
/// "NAME" or "NAME[N]": an output, or a part of it along its first dimension.
struct Place {
  explicit Place(llvm::StringRef text) : name(text.str()) {
    auto [start, number] = text.rsplit('[');
    int64_t found;
    if (!number.consume_back("]") || number.getAsInteger(10, found))
      return;
    name = start.str();
    index = found;
  }
  std::string name;
  std::optional<int64_t> index;
};
} // namespace

/// `what` says what results should be.
static std::optional<Result> pick(const std::vector<Result> &results,
                                  llvm::StringRef text, const std::string &what,
                                  Report &report) {
  Place place(text);
  auto found = llvm::find_if(
      results, [&](const Result &result) { return result.name == place.name; });
  if (found == results.end()) {
    report.fail("'" + place.name + "' of --match is no " + what);
    return std::nullopt;
  }
  Result part = *found;
  if (!place.index)
    return part;
  if (part.shape.size() < 2 || *place.index < 0 ||
      *place.index >= part.shape[0]) {
    report.fail("there is no '" + text.str() + "': '" + place.name + "' is " +
                runtime::formatShape(part.shape));
    return std::nullopt;
  }
  size_t size = part.values.size() / size_t(part.shape[0]);
  auto begin = part.values.begin() + int64_t(size) * *place.index;
  part.values = std::vector<float>(begin, begin + int64_t(size));
  part.shape.erase(part.shape.begin());
  return part;
}

ExitCode driver::runCompare(const Options &options, Report &report) {
  if (options.student.empty())
    return report.fail("'compare' needs a TEACHER and a STUDENT: attune "
                       "compare TEACHER STUDENT --inputs FILE",
                       ExitCode::BadCommandLine);
  // A record has its inputs in it, unless --inputs names others.
  std::string inputs = options.inputsFile;
  if (inputs.empty() && isRecord(options))
    inputs = options.model;
  if (inputs.empty())
    return report.fail("'compare' needs inputs: --inputs=FILE",
                       ExitCode::BadCommandLine);
  runtime::SafetensorsFile file, record;
  std::string problem;
  if (!file.open(inputs, problem) ||
      (isRecord(options) && !record.open(options.model, problem)))
    return report.fail(problem);
  // The teacher is as its folder has it, and multiplies f32.
  Options teacher = options, student = options;
  teacher.quantize.reset();
  teacher.lowRank.reset();
  teacher.pruneHeads.reset();
  teacher.loras.clear();
  teacher.mayMeasureNothing = true;
  teacher.dtype.reset();
  teacher.machine.bf16Pairs = teacher.machine.tf32 = false;
  student.model = options.student;
  for (const Options::Match &match : options.matches) {
    teacher.taps.push_back(Place(match.teacher).name);
    student.taps.push_back(Place(match.student).name);
  }
  std::vector<Result> results[2];
  const Options *each[] = {&teacher, &student};
  for (int i = isRecord(options) ? 1 : 0; i < 2; ++i) {
    InMemoryModel model;
    ExitCode code = prepareModel(*each[i], report, Entries::Forward, model);
    if (code != ExitCode::Success)
      return code;
    report.beginStage(i ? "running the student" : "running the teacher");
    runtime::Error error;
    if (!runOn(model.getModel(), file, results[i], error) ||
        (isRecord(options) &&
         !readRecord(record, *model.getModel().entry("forward"), results[0],
                     error)))
      return reportError(error, report);
    report.endStage();
  }
  std::string output = "output of numbers", wants = output;
  if (isRecord(options))
    wants = "tensor of floats in '" + options.model + "'";
  std::vector<Difference> differences;
  for (const Options::Match &match : options.matches) {
    std::optional<Result> wanted =
                              pick(results[0], match.teacher, wants, report),
                          given =
                              pick(results[1], match.student, output, report);
    if (!wanted || !given)
      return ExitCode::BadInput;
    if (wanted->shape != given->shape)
      return report.fail("'" + match.teacher + "' of the teacher is " +
                         runtime::formatShape(wanted->shape) + " and '" +
                         match.student + "' of the student " +
                         runtime::formatShape(given->shape) +
                         "; --match compares what has one size");
    differences.push_back(compare(*wanted, *given));
    differences.back().name = match.teacher;
    differences.back().student = match.student;
  }
  for (const Result &wanted : results[0]) {
    if (llvm::any_of(options.matches, [&](const Options::Match &match) {
          return Place(match.teacher).name == wanted.name;
        }))
      continue;
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
    return report.fail(
        isRecord(options)
            ? "'" + options.model + "' holds no output of '" + options.student +
                  "' in its size; --match=TENSOR,OUTPUT pairs other names"
            : std::string("the models have no output of one name and size to "
                          "compare"));
  if (options.format == "json")
    showJson(options, differences);
  else if (options.format == "html")
    showHtml(options, differences);
  else
    showTable(options, differences);
  return ExitCode::Success;
}
