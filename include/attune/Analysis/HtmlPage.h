//===- HtmlPage.h - Tables as pages for a browser ---------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_ANALYSIS_HTMLPAGE_H
#define ATTUNE_ANALYSIS_HTMLPAGE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

#include <string>

namespace attune {

/// Text as a page may hold it.
std::string escapeHtml(llvm::StringRef text);

/// Begins a page that loads nothing, up to its heading. `style` is what its
/// table has besides the common rules.
void beginHtmlPage(llvm::raw_ostream &out, llvm::StringRef title,
                   llvm::StringRef style);

} // namespace attune

#endif // ATTUNE_ANALYSIS_HTMLPAGE_H
