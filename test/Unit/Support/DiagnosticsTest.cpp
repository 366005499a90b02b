//===- DiagnosticsTest.cpp - How errors look ------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Support/Diagnostics.h"

#include <algorithm>
#include <gtest/gtest.h>

using namespace attune;

static Diagnostic at(std::string text, uint32_t line, uint32_t column,
                     std::string message = "is wrong") {
  auto file = std::make_shared<SourceFile>();
  file->path = "dir/model.json";
  file->text = std::move(text);
  return {Severity::Error, {file, line, column}, std::move(message)};
}

TEST(Diagnostics, LineAndCaret) {
  EXPECT_EQ(formatDiagnostic(at("{\n  \"a\": 1\n}", 2, 8)),
            "dir/model.json:2:8: error: is wrong\n"
            "  \"a\": 1\n"
            "       ^\n");
}

TEST(Diagnostics, UnknownPlaces) {
  EXPECT_EQ(formatDiagnostic({Severity::Warning, {}, "beware"}),
            "warning: beware\n");
  EXPECT_EQ(formatDiagnostic(at("x", 0, 0)),
            "dir/model.json: error: is wrong\n");
  // A caret needs a column, and past the end it stands behind the line.
  EXPECT_EQ(formatDiagnostic(at("x", 1, 0)),
            "dir/model.json:1: error: is wrong\n");
  EXPECT_EQ(formatDiagnostic(at("xy", 1, 100)),
            "dir/model.json:1:100: error: is wrong\nxy\n  ^\n");
  EXPECT_EQ(formatDiagnostic(at("x\n", 7, 1)),
            "dir/model.json:7:1: error: is wrong\n\n^\n");
  // The text is not known.
  EXPECT_EQ(formatDiagnostic(at("", 7, 1)),
            "dir/model.json:7:1: error: is wrong\n");
}

TEST(Diagnostics, CaretCountsCharacters) {
  EXPECT_EQ(formatDiagnostic(at("\t\"\u00e9\u4e2d\": x\r\n", 1, 10)),
            "dir/model.json:1:10: error: is wrong\n"
            " \"\u00e9\u4e2d\": x\n"
            "      ^\n");
}

TEST(Diagnostics, NothingDangerousReachesTheTerminal) {
  EXPECT_EQ(formatDiagnostic(at("a\x1b[31m\xff\xc3z", 1, 1)),
            "dir/model.json:1:1: error: is wrong\na?[31m??z\n^\n");
}

TEST(Diagnostics, LongLinesAreCutAroundTheCaret) {
  std::string line(100000, 'x');
  line[50000] = '!';
  std::string text = formatDiagnostic(at(line, 1, 50001));
  size_t first = text.find('\n'), second = text.find('\n', first + 1);
  std::string shown = text.substr(first + 1, second - first - 1);
  std::string caret = text.substr(second + 1);
  EXPECT_LT(shown.size(), 130u);
  EXPECT_EQ(shown.substr(0, 3), "...");
  EXPECT_EQ(shown.substr(shown.size() - 3), "...");
  EXPECT_EQ(shown.find('!'), caret.find('^'));
}

TEST(Diagnostics, LongLinesOfWideCharactersStayWhole) {
  std::string line;
  for (int i = 0; i < 10000; ++i)
    line += "\u4e2d";
  for (uint32_t column : {1u, 3000u, 3001u, 3002u, 29998u}) {
    std::string text = formatDiagnostic(at(line, 1, column));
    EXPECT_EQ(text.find('?'), std::string::npos) << text;
  }
}

TEST(Diagnostics, Json) {
  EXPECT_EQ(formatDiagnosticJson(at("x", 3, 4, "a \"b\"\n\x01\xff\u00e9")),
            "{\"severity\": \"error\", \"file\": \"dir/model.json\", \"line\": "
            "3, \"column\": 4, \"message\": \"a "
            "\\\"b\\\"\\n\\u0001\\ufffd\u00e9\"}\n");
  EXPECT_EQ(formatDiagnosticJson({Severity::Note, {}, "n"}),
            "{\"severity\": \"note\", \"message\": \"n\"}\n");
}

TEST(Diagnostics, OnlyErrorsCount) {
  DiagnosticEngine diags(DiagnosticEngine::Format::Json);
  testing::internal::CaptureStderr();
  diags.warning({}, "w");
  diags.note({}, "n");
  diags.remark({}, "r");
  EXPECT_EQ(diags.getNumErrors(), 0u);
  diags.error({}, "e");
  EXPECT_EQ(diags.getNumErrors(), 1u);
  std::string printed = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(printed.begin(), printed.end(), '\n'), 4);
}

TEST(Diagnostics, FilesThatCannotBeRead) {
  DiagnosticEngine diags;
  testing::internal::CaptureStderr();
  EXPECT_FALSE(readSourceFile("/no/such/file.json", diags));
  EXPECT_FALSE(readSourceFile("/", diags));
  EXPECT_FALSE(readSourceFile("/dev/zero", diags, 1 << 20));
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "/no/such/file.json: error: cannot open the file: No such file or "
            "directory\n"
            "/: error: is a folder, expected a file\n"
            "/dev/zero: error: is larger than the limit of 1048576 bytes\n");
  EXPECT_EQ(diags.getNumErrors(), 3u);
}
