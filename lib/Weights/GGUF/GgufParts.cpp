//===- GgufParts.cpp - Models in several GGUF files -------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A model that is split is "NAME-00001-of-00003.gguf" and so on. The first part
// has the keys; each has tensors, and the keys "split.no" (from 0 on),
// "split.count" and "split.tensors.count", the number of tensors of all parts.
//
//===----------------------------------------------------------------------===//

#include "attune/Weights/GgufFile.h"

#include "../PartsOfSet.h"

#include <filesystem>
#include <set>

namespace fs = std::filesystem;

namespace attune::gguf {

static std::vector<std::string> partsBeside(const std::string &path) {
  return partsOfSet(path, ".gguf");
}

std::string modelName(const std::string &path) {
  std::string model = splitPair(path).model;
  std::string name = fs::path(model).stem().string();
  if (!partsBeside(model).empty())
    name.erase(name.size() - std::string_view("-00001-of-00003").size());
  return name;
}

/// Whether this is part `number`, from 0 on, of `count`.
bool File::checkPart(size_t number, size_t count, std::string &error) const {
  const std::pair<const char *, size_t> expected[] = {{"split.count", count},
                                                      {"split.no", number}};
  for (auto [key, wanted] : expected) {
    std::optional<int64_t> found = integer(key);
    // A whole model may be named as the only part.
    if (found == static_cast<int64_t>(wanted) || (count == 1 && !find(key)))
      continue;
    const Value *value = find(key);
    error = filePath + ": key '" + key + "'" +
            (value ? " at byte " + std::to_string(value->offset) : "") +
            " is " +
            (found   ? std::to_string(*found)
             : value ? value->describe()
                     : "missing") +
            ", expected " + std::to_string(wanted) + ": the name says part " +
            std::to_string(number + 1) + " of " + std::to_string(count);
    return false;
  }
  return true;
}

bool File::openParts(const std::vector<std::string> &paths,
                     std::string &error) {
  size_t missing = 0;
  std::string first;
  std::error_code ignored;
  for (const std::string &path : paths)
    if (!fs::exists(fs::symlink_status(path, ignored)) && missing++ == 0)
      first = path;
  if (missing) {
    error = paths.front() + ": is the first of " +
            std::to_string(paths.size()) + " parts of a model, of which " +
            std::to_string(missing) +
            (missing == 1 ? " is missing: " : " are missing: ") + first +
            (missing == 1 ? "" : " and more") +
            "; download all of them into one folder";
    return false;
  }
  for (size_t i = 0; i < paths.size(); ++i) {
    File &part = i ? rest.emplace_back() : *this;
    if (!part.openOne(paths[i], error) ||
        !part.checkPart(i, paths.size(), error))
      return false;
  }
  std::set<std::string_view> names;
  for (const CheckpointTensor &info : infos)
    names.insert(info.name);
  for (const File &part : rest)
    for (const CheckpointTensor &info : part.infos)
      if (!names.insert(info.name).second) {
        error = part.filePath + ": tensor '" + info.name +
                "' is in another part, too; the parts are not of one model";
        return false;
      }
  names.clear();
  for (const File &part : rest)
    infos.insert(infos.end(), part.infos.begin(), part.infos.end());
  if (!sortTensors(error))
    return false;
  std::optional<int64_t> all = integer("split.tensors.count");
  if (!all || *all == static_cast<int64_t>(infos.size()))
    return true;
  error = filePath + ": key 'split.tensors.count' at byte " +
          std::to_string(find("split.tensors.count")->offset) + " is " +
          std::to_string(*all) + ", but the " + std::to_string(paths.size()) +
          " parts have " + std::to_string(infos.size()) +
          " tensors; download all of them anew";
  return false;
}

Pair splitPair(const std::string &path) {
  std::error_code ignored;
  if (fs::exists(path, ignored))
    return {path, ""};
  for (size_t at = path.find(','); at != std::string::npos;
       at = path.find(',', at + 1))
    if (fs::is_regular_file(path.substr(0, at), ignored))
      return {path.substr(0, at), path.substr(at + 1)};
  return {path, ""};
}

bool File::open(const std::string &path, std::string &error) {
  if (Pair pair = splitPair(path); !pair.sight.empty()) {
    seeing = std::make_unique<File>();
    return open(pair.model, error) && seeing->open(pair.sight, error);
  }
  std::vector<std::string> paths = partsBeside(path);
  if (!paths.empty())
    return openParts(paths, error);
  if (!openOne(path, error))
    return false;
  std::optional<int64_t> parts = integer("split.count");
  if (!parts || *parts <= 1)
    return true;
  error = path + ": key 'split.count' at byte " +
          std::to_string(find("split.count")->offset) +
          " says that this is one of " + std::to_string(*parts) +
          " parts of a model, which are found by their names: give them such "
          "as NAME-00001-of-00003.gguf";
  return false;
}

/// A model of the folder: a file, or the first of its parts.
static std::string modelOf(const std::string &path) {
  std::vector<std::string> parts = partsBeside(path);
  return parts.empty() ? path : parts.front();
}

/// Files of which "mmproj" in the name says whether they are parts that see.
static std::vector<std::string> listFiles(const std::string &folder,
                                          bool seeing) {
  std::set<std::string> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    std::string name = it->path().filename().string();
    if (it->path().extension() == ".gguf" &&
        (name.find("mmproj") != std::string::npos) == seeing)
      files.insert(modelOf(it->path().string()));
  }
  return {files.begin(), files.end()};
}

std::vector<std::string> modelsIn(const std::string &folder) {
  return listFiles(folder, /*seeing=*/false);
}

std::vector<std::string> sightsIn(const std::string &folder) {
  return listFiles(folder, /*seeing=*/true);
}

} // namespace attune::gguf
