# How a room (one library per folder of lib/ or dialects/) is declared.

# MLIR's headers and the dialect's ops, which two of three files with MLIR use,
# are most of what compiling a file costs; they are parsed once here. Files
# still include what they use: CMAKE_DISABLE_PRECOMPILE_HEADERS=ON builds
# without this. Attune's other headers stay out, so that changing one recompiles
# only its users.
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/AttunePrecompiled.cpp CONTENT "")
add_library(AttunePrecompiled OBJECT ${CMAKE_BINARY_DIR}/AttunePrecompiled.cpp)
if(NOT LLVM_ENABLE_RTTI)
  target_compile_options(AttunePrecompiled PRIVATE -fno-rtti)
endif()
target_compile_options(AttunePrecompiled PRIVATE
  -Wall -Wextra -Wno-unused-parameter)
target_precompile_headers(AttunePrecompiled PRIVATE
  <mlir/Conversion/LLVMCommon/Pattern.h>
  <mlir/Dialect/Arith/IR/Arith.h>
  <mlir/Dialect/Bufferization/IR/Bufferization.h>
  <mlir/Dialect/ControlFlow/IR/ControlFlowOps.h>
  <mlir/Dialect/Func/IR/FuncOps.h>
  <mlir/Dialect/LLVMIR/LLVMDialect.h>
  <mlir/Dialect/Linalg/IR/Linalg.h>
  <mlir/Dialect/Math/IR/Math.h>
  <mlir/Dialect/MemRef/IR/MemRef.h>
  <mlir/Dialect/SCF/IR/SCF.h>
  <mlir/Dialect/Tensor/IR/Tensor.h>
  <mlir/Dialect/Vector/IR/VectorOps.h>
  <mlir/IR/BuiltinOps.h>
  <mlir/Pass/Pass.h>
  <mlir/Pass/PassManager.h>
  <mlir/Transforms/DialectConversion.h>
  <mlir/Transforms/GreedyPatternRewriteDriver.h>
  <llvm/Support/FormatVariadic.h>
  <llvm/Support/JSON.h>
  <llvm/Support/SourceMgr.h>
  <Attune/AttuneDialect.h>)
add_dependencies(AttunePrecompiled AttuneHeaders)

# attune_room(AttuneName source... LINK AttuneOther...) builds one static
# library against the LLVM and MLIR shared libraries. Sources are relative to
# the calling folder. Rooms without MLIR inside pass NO_MLIR.
function(attune_room name)
  cmake_parse_arguments(ROOM "NO_MLIR" "" "LINK;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ROOM_UNPARSED_ARGUMENTS})
  if(NOT LLVM_ENABLE_RTTI)
    target_compile_options(${name} PRIVATE -fno-rtti)
  endif()
  target_compile_options(${name} PRIVATE -Wall -Wextra -Wno-unused-parameter)
  target_include_directories(${name} INTERFACE
    "$<BUILD_INTERFACE:${ATTUNE_INCLUDE_DIRS}>"
    "$<INSTALL_INTERFACE:include;include/attune>")
  target_link_libraries(${name} PUBLIC ${ROOM_LINK})
  if(NOT ROOM_NO_MLIR)
    target_link_libraries(${name} PUBLIC MLIR LLVM)
    target_precompile_headers(${name} REUSE_FROM AttunePrecompiled)
    add_dependencies(${name} AttuneHeaders)
  endif()
  if(ROOM_DEPENDS)
    add_dependencies(${name} ${ROOM_DEPENDS})
  endif()
  install(TARGETS ${name} EXPORT AttuneTargets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  # The install test installs everything.
  set_property(GLOBAL APPEND PROPERTY ATTUNE_TEST_DEPENDS ${name})
  set_property(GLOBAL APPEND PROPERTY ATTUNE_ROOMS ${name})
endfunction()

# attune_pass_room(Room) generates include/attune/<Room>/Passes.h.inc and its
# reference page from Passes.td in the calling folder.
function(attune_pass_room room)
  set(LLVM_TARGET_DEFINITIONS Passes.td)
  mlir_tablegen(Passes.h.inc -gen-pass-decls -name Attune${room})
  add_public_tablegen_target(Attune${room}PassIncGen)
  add_dependencies(AttuneHeaders Attune${room}PassIncGen)
  attune_doc(${room}Passes.md -gen-pass-doc)
endfunction()

# attune_doc(Page.md generator...) writes a reference page of the .td file that
# LLVM_TARGET_DEFINITIONS names to docs/ of the build tree. Upstream's
# add_mlir_doc passes flags for MLIR's own web site.
function(attune_doc page)
  get_filename_component(name ${page} NAME_WE)
  tablegen(MLIR ${page} ${ARGN} "-I${MLIR_MAIN_INCLUDE_DIR}"
    "-I${MLIR_INCLUDE_DIR}")
  add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/docs/${page}
    COMMAND ${CMAKE_COMMAND} -E copy ${CMAKE_CURRENT_BINARY_DIR}/${page}
            ${PROJECT_BINARY_DIR}/docs/${page}
    DEPENDS ${CMAKE_CURRENT_BINARY_DIR}/${page})
  add_custom_target(AttuneDoc${name} ALL
    DEPENDS ${PROJECT_BINARY_DIR}/docs/${page})
  add_dependencies(attune-doc AttuneDoc${name})
endfunction()

# attune_link_whole(target AttuneA AttuneB...) links every object of the rooms,
# used or not: plugins may need what the tool itself does not. The whole
# archives come first, so the rooms' own mutual links add nothing.
function(attune_link_whole target)
  set(whole "")
  foreach(room ${ARGN})
    string(APPEND whole ",$<TARGET_FILE:${room}>")
    set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS
      $<TARGET_FILE:${room}>)
  endforeach()
  target_link_options(${target} PRIVATE
    "LINKER:--push-state,--whole-archive${whole},--pop-state")
  target_link_libraries(${target} PRIVATE ${ARGN})
endfunction()
