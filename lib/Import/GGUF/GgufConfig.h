//===- GgufConfig.h - A GGUF file in the terms of Hugging Face --*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_IMPORT_GGUF_GGUFCONFIG_H
#define ATTUNE_LIB_IMPORT_GGUF_GGUFCONFIG_H

#include "attune/Spec/Spec.h"
#include "attune/Support/Diagnostics.h"
#include "attune/Weights/GgufFile.h"

namespace attune::gguf {

/// A "general.architecture" that is read.
struct Family {
  const char *name;      ///< also what its keys start with
  const char *modelType; ///< of Hugging Face
  const char *className;
  /// Queries and keys are stored so that neighbouring channels turn together.
  bool interleaved;
  /// Tensors keep the names of the file, and weights are named by their roles:
  /// nameByRole. Else tensors have Hugging Face's names: renameTensors.
  bool byRole = false;
};
const std::vector<Family> &families();
/// The family of the file; null, after an error, if Attune reads none such.
const Family *findFamily(const File &file, DiagnosticEngine &diags);

/// Reports what is wrong with a key, and where it is.
void failAt(const File &file, const std::string &key, const std::string &what,
            DiagnosticEngine &diags);

/// The config.json that the keys stand for. An error names the key and its
/// place.
std::optional<std::string> makeConfig(const File &file, const Family &family,
                                      DiagnosticEngine &diags);

/// What the file has otherwise than the classes of Hugging Face.
void adaptToFile(const File &file, const Family &family, spec::Model &model);
/// Makes the weights of a model come from the tensors of the file.
void nameByRole(const File &file, spec::Model &model);

} // namespace attune::gguf

#endif // ATTUNE_LIB_IMPORT_GGUF_GGUFCONFIG_H
