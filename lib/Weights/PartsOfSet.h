//===- PartsOfSet.h - Files that are numbered -------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_WEIGHTS_PARTSOFSET_H
#define ATTUNE_LIB_WEIGHTS_PARTSOFSET_H

#include <string>
#include <vector>

namespace attune {

/// All files of the set that `path`, "...-00001-of-00003" and `end`, is one of;
/// none for another name.
std::vector<std::string> partsOfSet(const std::string &path,
                                    const std::string &end);

} // namespace attune

#endif // ATTUNE_LIB_WEIGHTS_PARTSOFSET_H
