//===- HtmlPage.cpp - Tables as pages for a browser -----------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Analysis/HtmlPage.h"

#include "llvm/ADT/StringExtras.h"

namespace attune {

std::string escapeHtml(llvm::StringRef text) {
  std::string result;
  llvm::raw_string_ostream stream(result);
  llvm::printHTMLEscaped(text, stream);
  return result;
}

void beginHtmlPage(llvm::raw_ostream &out, llvm::StringRef title,
                   llvm::StringRef style) {
  out << R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>)"
      << escapeHtml(title) << R"(</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem; color: #222; }
table { border-collapse: collapse; }
th, td { padding: .2rem .8rem; text-align: right; white-space: pre; }
th { border-bottom: 2px solid #222; }
)" << style
      << R"(</style>
</head>
<body>
<h1>)" << escapeHtml(title)
      << "</h1>\n";
}

} // namespace attune
