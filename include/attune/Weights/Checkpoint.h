//===- Checkpoint.h - The tensors of a checkpoint ---------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_WEIGHTS_CHECKPOINT_H
#define ATTUNE_WEIGHTS_CHECKPOINT_H

#include "attune/Spec/Spec.h"
#include "attune/Support/Diagnostics.h"
#include "attune/Support/TensorNames.h"
#include "attune/Weights/TensorEncoding.h"

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace attune {
namespace gguf {
class File;
}

/// The changes that an adapter made.
struct MergedLora {
  uint64_t matrices = 0; ///< that something was added to
  uint64_t replaced = 0; ///< tensors that it has as a whole
  int64_t maxRank = 0;
  int64_t parameters = 0; ///< of the adapter
  /// Changed tables of embeddings and whole matrices: parts of a model that
  /// share them would all see the change.
  std::vector<std::string> tables;
};

/// A checkpoint in one file or in shards. The files are mapped, not read: a
/// tensor's bytes are valid for as long as this object lives.
class Checkpoint {
public:
  /// `path` is a .safetensors file, an index ("*.safetensors.index.json") or a
  /// folder with `model.safetensors` or `model.safetensors.index.json` or other
  /// safetensors files of one checkpoint. One shard of a numbered set stands
  /// for all. The tensors of a GGUF file get Hugging Face's names. Every error
  /// found is reported.
  static std::optional<Checkpoint> open(const std::string &path,
                                        DiagnosticEngine &diags);
  /// The checkpoint file or index in `folder`, or an empty string.
  static std::string findIn(const std::string &folder);

  const CheckpointTensor *find(std::string_view name) const;
  /// By name.
  const std::map<std::string, const CheckpointTensor *, std::less<>> &
  tensors() const {
    return byName;
  }
  /// Forgets the tensors whose names start with one of `prefixes`.
  void leaveOut(const std::vector<std::string> &prefixes);
  /// Adds `scale` times the LoRA adapter in `folder`, as PEFT saves it, to the
  /// tensors that it is for; they are computed as they are read. Adapters add
  /// up in the order of calls. Every error is reported.
  std::optional<MergedLora> mergeLora(const std::string &folder, double scale,
                                      DiagnosticEngine &diags);
  /// Adds a tensor of f32 that no file has.
  void addValues(std::string name, std::vector<int64_t> shape,
                 std::vector<float> values);
  /// Gives back the memory of `count` bytes from `first` on, if these are of a
  /// file. They can still be read.
  void release(const uint8_t *first, uint64_t count) const;
  /// Says which parts of names were left out: those of modules that a trainer
  /// put the model into (torch.compile's "_orig_mod.").
  void noteWrappers(DiagnosticEngine &diags) const;
  /// The file or index that was opened.
  const std::string &path() const { return filePath; }

private:
  bool openFile(const std::string &path, DiagnosticEngine &diags);
  bool openGguf(const std::string &path, DiagnosticEngine &diags);
  bool openShards(const std::string &path, DiagnosticEngine &diags);
  bool openIndex(const std::string &path, DiagnosticEngine &diags);

  std::string filePath;
  std::string wrappedIn; ///< for noteWrappers
  void add(CheckpointTensor tensor);
  void unwrapNames();
  /// Numbers of f64 are read as f32.
  void takeDoubles();
  /// Puts the matrices and vectors of stacked experts in their place:
  /// "experts.{e}.NAME" of each for "experts.NAME" of all.
  bool splitExperts(DiagnosticEngine &diags);
  /// Puts each weight that is kept as lengths and directions in their place.
  bool joinWeightNorms(DiagnosticEngine &diags);
  /// Puts the tensors that quantized ones stand for in their place.
  bool unpackQuantized(DiagnosticEngine &diags);

  std::vector<std::unique_ptr<runtime::SafetensorsFile>> files;
  std::shared_ptr<const gguf::File> gguf;
  std::deque<CheckpointTensor> all;
  std::vector<std::unique_ptr<TensorEncoding>> encodings;
  std::map<std::string, const CheckpointTensor *, std::less<>> byName;
};

/// A matrix that a model needs, and the tensors that it is made of.
struct NeededWeight {
  std::string name; ///< for messages
  /// Shape as the op wants it: [rows, ...]. Without `sources` transposed or
  /// cut this is the shape in the file.
  std::vector<int64_t> shape;
  /// The number of rows that may be padding, which the file does not have.
  int64_t padding = 0;
  /// `{i}` already replaced.
  std::vector<spec::WeightSource> sources;
  SourceLocation location;
};

/// Checks that every needed tensor is there with the shape that is expected
/// and with floating-point values that can be read. With `complete` also that
/// the checkpoint holds nothing else, which would be a part of the model that
/// its description lacks; buffers that are known to carry no information (mask
/// buffers of GPT-2, rotary frequencies, a second copy of a tied head) are
/// passed over. Reports the first three findings, each with expected and found
/// shape, and counts the rest; returns whether all is well.
bool checkWeights(const std::vector<NeededWeight> &needed,
                  const Checkpoint &checkpoint, DiagnosticEngine &diags,
                  bool complete = true);

/// The same for every weight of a description.
bool checkWeights(const spec::Model &model, const Checkpoint &checkpoint,
                  DiagnosticEngine &diags);

/// The numbers of a tensor that are not finite.
struct NotFinite {
  uint64_t count = 0, first = 0; ///< how many, and the place of the first one
  bool firstIsNaN = false;
  bool onlyBelow = true; ///< all of them are minus infinity

  /// "holds NaN at [0, 3]; 1 of its values are not finite"
  std::string text(const CheckpointTensor &tensor) const;
  /// A vector that is added to scores forbids something by minus infinity.
  bool isMask(const CheckpointTensor &tensor) const;
};
NotFinite findNotFinite(const CheckpointTensor &tensor);
/// Whether a number of so many, of that type, is not finite.
bool holdsNotFinite(runtime::DType dtype, const uint8_t *data, int64_t count);

/// Whether every value of every floating-point tensor is finite. Reports each
/// tensor that holds NaN or an infinity, with the place of the first. Reads the
/// whole checkpoint.
bool checkFinite(const Checkpoint &checkpoint, DiagnosticEngine &diags);

} // namespace attune

#endif // ATTUNE_WEIGHTS_CHECKPOINT_H
