"""lit's configuration for Attune's tests; see lit.site.cfg.py.in for inputs."""

import ctypes
import os
import platform
import re
import shutil

import lit.formats

config.name = "Attune"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test", ".c"]
config.excludes = ["Inputs", "lib"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.attune_obj_root, "test")

# --- Tools: ours first, then the pinned LLVM's.
config.environment["PATH"] = os.pathsep.join(
    [config.attune_tools_dir, config.llvm_tools_dir, os.environ.get("PATH", "")]
)
# Variables die at CHECK-LABEL unless named $GLOBAL; a misspelt prefix fails.
config.environment["FILECHECK_OPTS"] = "--enable-var-scope --allow-unused-prefixes=false"
for variable in ("HOME", "CCACHE_DIR", "CCACHE_BASEDIR", "CCACHE_NOHASHDIR",
                 "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES"):
    if variable in os.environ:
        config.environment[variable] = os.environ[variable]

# For the preset asan. LLVM comes without sanitizers: what its allocators poison
# in headers that Attune includes stays so, and what it keeps to the end leaks.
# Sanitizers need more addresses than tests of limits allow.
if "sanitize" in config.attune_instrument:
    config.available_features.add("sanitizer")
config.environment["ASAN_OPTIONS"] = os.environ.get(
    "ASAN_OPTIONS", "allow_user_poisoning=0:detect_leaks=0")
config.environment["TSAN_OPTIONS"] = os.environ.get("TSAN_OPTIONS", "")
config.environment["UBSAN_OPTIONS"] = "print_stacktrace=1"

# Many tests compile the same model the same way. Code is kept beside what they
# write; it is of one build of attune, and makes no difference to a result.
config.environment["ATTUNE_CACHE"] = os.path.join(config.test_exec_root, "code-cache")


# --- Substitutions.
def substitute(name, value):
    # The longest name wins: %examples must not be taken for %e.
    config.substitutions.append((name + r"\b", value))


substitute("%attune_src_root", config.attune_src_root)
substitute("%attune_obj_root", config.attune_obj_root)
substitute("%attune_tools", config.attune_tools_dir)
substitute("%examples", os.path.join(config.attune_src_root, "examples"))
substitute("%test_src", config.test_source_root)
substitute("%test_lib", os.path.join(config.test_source_root, "lib"))
substitute("%expand_pairs",
           os.path.join(config.attune_obj_root, "test", "libAttuneExpandPairs.so"))
substitute("%expand_tiles",
           os.path.join(config.attune_obj_root, "test", "libAttuneExpandTiles.so"))
substitute("%planted_bugs",
           os.path.join(config.attune_obj_root, "test", "libAttunePlantedBugs.so"))
substitute("%shared", config.attune_shared_dir)
substitute("%llvm_tools", config.llvm_tools_dir)
substitute("%mlir_dir", config.mlir_dir)
substitute("%fake_cuda", os.path.join(config.test_exec_root, "fake-cuda"))
substitute("%python", config.python)
substitute("%lit_modules", os.path.dirname(os.path.dirname(lit.__file__)))
substitute("%cmake", config.cmake)
substitute("%cpack", os.path.join(os.path.dirname(config.cmake), "cpack"))
substitute("%cc", config.cc)
substitute("%cxx", config.cxx)
# What makes a program of a model's object: without a server, and with one.
substitute("%link_model", config.link_model)
substitute("%link_server", config.link_server)

# `--param verify-roundtrip=1` prints and reparses every module of the suite;
# `--param validate=1` runs every function before and after every pass.
for name, flag in (("verify-roundtrip", "--verify-roundtrip"),
                   ("validate", "--attune-validate")):
    if not lit_config.params.get(name):
        continue
    config.substitutions.append(
        (r"(?<![\w/.-])attune-opt(?![\w.-])", "attune-opt " + flag)
    )
    config.available_features.add(name)
    # Only these print modules; the rest would just run a second time.
    config.suffixes = [".mlir"]
    config.excludes += ["Unit", "Integration"]

# `--param slow=1` adds what takes longer than a change should wait for.
if lit_config.params.get("slow"):
    config.available_features.add("slow")

# A test that hangs fails after so many seconds; `--timeout` changes that.
supported, _ = lit_config.maxIndividualTestTimeIsSupported
if supported:
    lit_config.maxIndividualTestTime = 1200


# --- Features: what this machine has.
def cpu_flags():
    try:
        with open("/proc/cpuinfo") as info:
            for line in info:
                if re.match(r"flags\s*:", line):
                    return set(line.split(":", 1)[1].split())
    except OSError:
        pass
    return set()


def cuda_chip():
    """The value of --gpu that suits the first GPU best; none: no code for it."""
    major, minor = ctypes.c_int(0), ctypes.c_int(0)
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    device = ctypes.c_int(0)
    if driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(device), 0) or any(
            driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
            for value, attribute in ((major, 75), (minor, 76))):
        return None
    capability = 10 * major.value + minor.value
    if capability in (90, 100, 120):
        return f"sm_{capability}a"
    return next((f"sm_{chip}" for chip in (120, 100, 90, 89, 87, 86, 80)
                 if chip <= capability), None)


features = config.available_features
features.add("host-" + platform.machine())
flags = cpu_flags()
for flag in ("avx2", "fma", "avx512f", "avx512bw", "avx512-bf16", "avx512-vnni",
             "amx-tile", "amx-bf16"):
    if flag.replace("-", "_") in flags:
        features.add(flag)
if {"avx2", "fma", "bmi2", "f16c", "movbe"} <= flags:
    features.add("x86-64-v3")
if {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"} <= flags:
    features.add("x86-64-v4")
if "avx512f" in features:
    features.add("avx512")
for target in config.llvm_targets:
    features.add(target.lower() + "-registered-target")
# For tests of pages.
for browser in ("chromium-headless-shell", "chromium", "google-chrome"):
    if shutil.which(browser):
        features.add("chromium")
        substitute("%chromium", shutil.which(browser))
        break
# npm packages are used where ATTUNE_NODE_MODULES names a folder that has them.
modules = os.environ.get("ATTUNE_NODE_MODULES", "")
if shutil.which("node") and os.path.isdir(os.path.join(modules, "openai")):
    features.add("npm-openai")
    config.environment["ATTUNE_NODE_MODULES"] = os.path.abspath(modules)
# Both kinds of MPI can be installed; each has its own mpirun.
if shutil.which("mpirun.mpich"):
    features.add("mpich")
    substitute("%mpich", shutil.which("mpirun.mpich"))
if shutil.which("mpirun.openmpi"):
    features.add("openmpi")
    substitute("%openmpi", shutil.which("mpirun.openmpi") + " --oversubscribe")
    # Machines that test are containers, in which all is root's.
    for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):
        config.environment[name] = "1"
chip = cuda_chip()
if chip:
    features.add("cuda")
    substitute("%gpu", chip)
path = config.environment["PATH"]
# Where the compiler looks, too.
toolkit = os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
path = os.pathsep.join([path, os.path.join(toolkit, "bin")])
if shutil.which("ptxas", path=path):
    features.add("ptxas")
# ptxas takes a fifth of the time of tests that run PTX, and its code is not what
# they run: it is there for the tests that are about it (Target/PTX).
config.attune_toolkit_path = path
config.environment["PATH"] = os.pathsep.join(
    folder for folder in path.split(os.pathsep)
    if folder in ("/usr/bin", "/bin") or
    not os.path.exists(os.path.join(folder, "ptxas")))
config.environment["CUDA_HOME"] = os.path.join(config.test_exec_root, "no-toolkit")
if os.path.exists(os.path.join(toolkit, "include", "cuda.h")):
    features.add("cuda-headers")
    substitute("%cuda_include", os.path.join(toolkit, "include"))
for tool in ("readelf", "strip", "objcopy", "ldd", "ninja", "git",
             "cmark-gfm"):
    if shutil.which(tool, path=path):
        features.add(tool)
lld = shutil.which("ld.lld-" + config.llvm_version, path=path)
if lld:
    features.add("ld-lld")
    substitute("%lld", lld)
if os.path.exists(os.path.join(config.attune_tools_dir, "attune-static")):
    features.add("attune-static")
if shutil.which("dpkg-shlibdeps", path=path):
    features.add("dpkg")
if os.path.isdir(os.path.join(config.attune_shared_dir, "oracle")):
    features.add("shared-oracle")
if os.path.isdir(os.path.join(config.attune_shared_dir, "storyteller")):
    features.add("shared-storyteller")
clang_format = shutil.which("clang-format-" + config.llvm_version, path=path)
if clang_format:
    features.add("clang-format")
    substitute("%clang_format", clang_format)
