"""Tests of the plugin, run by LLVM's lit:

  lit -v test -Dattune=<where Attune is installed> -Dplugin=build/libLimitWindow.so
"""
import os
import shutil

import lit.formats

config.name = "LimitWindow"
config.test_format = lit.formats.ShTest()
config.suffixes = [".mlir"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.abspath(lit_config.params.get("work", "build/test"))

tools = os.path.join(os.path.abspath(lit_config.params["attune"]), "bin")
plugin = os.path.abspath(lit_config.params["plugin"])
config.substitutions.append((r"%limit-window\b",
                             f"{tools}/attune-opt --load-pass-plugin={plugin}"))
# Debian's name has the version in it.
filecheck = next((found for found in map(shutil.which, ("FileCheck", "FileCheck-22"))
                  if found), "/usr/lib/llvm-22/bin/FileCheck")
config.substitutions.append((r"\bFileCheck\b", filecheck))
