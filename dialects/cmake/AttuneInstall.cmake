# `ninja install`, and the CMake package that find_package(Attune) finds, in the
# install tree and in the build tree alike.
include(CMakePackageConfigHelpers)

set(ATTUNE_INSTALL_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/attune)

foreach(tree ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  install(DIRECTORY ${tree}/include/attune
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    FILES_MATCHING PATTERN "*.h" PATTERN "*.td" PATTERN "*.inc"
    PATTERN CMakeFiles EXCLUDE)
  # In the same folder: elsewhere than on Linux, Attune and attune are one name.
  install(DIRECTORY ${tree}/dialects/Attune
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/attune
    FILES_MATCHING PATTERN "*.h" PATTERN "*.td" PATTERN "*.inc"
    PATTERN CMakeFiles EXCLUDE)
endforeach()
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_BINARY_DIR}/docs/
  DESTINATION ${CMAKE_INSTALL_DOCDIR}/reference)
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DATADIR}/attune
  PATTERN __pycache__ EXCLUDE)

install(EXPORT AttuneTargets DESTINATION ${ATTUNE_INSTALL_PACKAGE_DIR})
export(EXPORT AttuneTargets
  FILE ${PROJECT_BINARY_DIR}/lib/cmake/attune/AttuneTargets.cmake)

# The two packages differ in where headers and tools are.
set(ATTUNE_CONFIG_INCLUDE_DIRS ${ATTUNE_INCLUDE_DIRS})
set(ATTUNE_CONFIG_TOOLS_DIR ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
configure_package_config_file(dialects/cmake/AttuneConfig.cmake.in
  ${PROJECT_BINARY_DIR}/lib/cmake/attune/AttuneConfig.cmake
  INSTALL_DESTINATION ${PROJECT_BINARY_DIR}/lib/cmake/attune
  INSTALL_PREFIX ${PROJECT_BINARY_DIR})
set(include "\${PACKAGE_PREFIX_DIR}/${CMAKE_INSTALL_INCLUDEDIR}")
set(ATTUNE_CONFIG_INCLUDE_DIRS "${include};${include}/attune")
set(ATTUNE_CONFIG_TOOLS_DIR "\${PACKAGE_PREFIX_DIR}/${CMAKE_INSTALL_BINDIR}")
configure_package_config_file(dialects/cmake/AttuneConfig.cmake.in
  ${PROJECT_BINARY_DIR}/install-package/AttuneConfig.cmake
  INSTALL_DESTINATION ${ATTUNE_INSTALL_PACKAGE_DIR})

write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/lib/cmake/attune/AttuneConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/install-package/AttuneConfig.cmake
              ${PROJECT_BINARY_DIR}/lib/cmake/attune/AttuneConfigVersion.cmake
  DESTINATION ${ATTUNE_INSTALL_PACKAGE_DIR})
