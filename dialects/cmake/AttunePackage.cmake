# `cpack` in the build tree makes a Debian package and an archive of what
# `ninja install` installs. README.md says how to use it.
set(CPACK_PACKAGE_NAME attune)
set(CPACK_PACKAGE_VENDOR "The Attune developers")
set(CPACK_PACKAGE_CONTACT "The Attune developers <attune@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Compiler of transformer models")
set(CPACK_PACKAGE_DESCRIPTION
  "Attune compiles a description of a transformer model and its weights to an
executable for the CPU or to PTX for NVIDIA GPUs. The package holds the tools
attune, attune-opt, attune-reduce and attune-lsp-server, the libraries and
headers to build on, the CMake package Attune, and examples.")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_CHECKSUM SHA256)
set(CPACK_STRIP_FILES ON)
set(CPACK_GENERATOR TGZ)
find_program(ATTUNE_DPKG_SHLIBDEPS dpkg-shlibdeps)
if(ATTUNE_DPKG_SHLIBDEPS)
  list(APPEND CPACK_GENERATOR DEB)
endif()
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
# Shared libraries by what the tools link. What they compile is linked by lld,
# with the start files of the C library; no compiler is needed.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "lld-${ATTUNE_LLVM_VERSION}, libc6-dev")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS
  "libmlir-${ATTUNE_LLVM_VERSION}-dev, cmake, clang-${ATTUNE_LLVM_VERSION}")
include(CPack)
