"""lit's configuration for the GoogleTest executables."""

import os

import lit.formats

config.name = "Attune-Unit"
config.suffixes = []
config.test_source_root = os.path.join(config.attune_obj_root, "test", "Unit")
config.test_exec_root = config.test_source_root
config.test_format = lit.formats.GoogleTest(".", "Tests")
for variable in ("HOME", "LD_LIBRARY_PATH"):
    if variable in os.environ:
        config.environment[variable] = os.environ[variable]
# As in the configuration of the other tests.
config.environment["ASAN_OPTIONS"] = os.environ.get(
    "ASAN_OPTIONS", "allow_user_poisoning=0:detect_leaks=0")
