#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads a report of stages as a browser would and prints what it says.

  stage_report.py report.html

Fails on tags that do not close, on links to files that are not there and on a
script whose data is not JSON.
"""
import html.parser
import json
import os
import sys

VOID = {"meta", "br", "hr", "img", "link", "input"}


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.tables, self.links = [], {}, []
        self.data, self.inside, self.ids = "", None, set()

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.ids.add(attributes.get("id"))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.rows = self.tables.setdefault(attributes.get("id"), [])
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag == "a":
            self.links.append(attributes["href"])
        self.inside = attributes.get("id") if tag == "script" else self.inside

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()
        if tag == "script":
            self.inside = None

    def handle_data(self, data):
        if self.inside == "stages":
            self.data += data
        if self.open and self.open[-1] in ("td", "th", "a") and "tr" in self.open:
            self.rows[-1][-1] += data


path = sys.argv[1]
page = Page()
with open(path, encoding="utf-8") as file:
    page.feed(file.read())
page.close()
assert not page.open, f"open at the end: {page.open}"
for link in page.links:
    if link.startswith("#"):
        assert link[1:] in page.ids, link
        continue
    assert os.path.exists(os.path.join(os.path.dirname(path), link)), link
for name, rows in page.tables.items():
    for row in rows:
        print(name, *(cell.strip() or "-" for cell in row), sep=" | ")
for stage in json.loads(page.data):
    print("text |", stage["name"], "|", len(stage["text"]), "characters")
