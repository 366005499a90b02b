# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints what the site's check finds on a page with two wrong links."""
import pathlib
import sys

sources, _, _, out = sys.argv[1:5]
sys.path.insert(0, sources + "/tools/site")
import site_pages  # noqa: E402

site = site_pages.Site(pathlib.Path(sources), pathlib.Path(out))
site.add("index.html", "Page", '<h1 id="page">Page</h1><a href="nowhere.md">x</a>'
         '<a href="#page">y</a><a href="#no-heading">z</a>')
print(site.write())
