//===- WebPage.h - The page that a server shows -----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_SERVE_WEBPAGE_H
#define ATTUNE_LIB_RUNTIME_SERVE_WEBPAGE_H

#include <string_view>

namespace attune::runtime {

/// WebPage.html.
extern const std::string_view webPage;

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_SERVE_WEBPAGE_H
