# attune_instrumented(name ROOM... FLAGS flag... [EXCLUDE regex]) compiles the
# sources of rooms without MLIR once more, with sanitizers or what a fuzzer needs,
# into one archive. Products are never linked with sanitizers, so the archives
# of the runtime are not instrumented even in a build that is.
function(attune_instrumented name)
  cmake_parse_arguments(COPY "" "EXCLUDE" "FLAGS" ${ARGN})
  set(sources)
  foreach(room ${COPY_UNPARSED_ARGUMENTS})
    get_target_property(names ${room} SOURCES)
    get_target_property(folder ${room} SOURCE_DIR)
    get_target_property(unity ${room} UNITY_BUILD)
    get_target_property(batch ${room} UNITY_BUILD_BATCH_SIZE)
    set(number 0)
    foreach(file ${names})
      cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY ${folder})
      list(APPEND sources ${file})
      # Files that a room compiles together are compiled together here, too.
      if(unity)
        math(EXPR group "${number} / ${batch}")
        math(EXPR number "${number} + 1")
        set_source_files_properties(${file} PROPERTIES
          UNITY_GROUP ${room}${group})
      endif()
    endforeach()
  endforeach()
  if(COPY_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX ${COPY_EXCLUDE})
  endif()
  foreach(file ${sources})
    if(file MATCHES "\\.o$")
      set_source_files_properties(${file} PROPERTIES EXTERNAL_OBJECT ON)
    endif()
  endforeach()
  add_library(${name} STATIC EXCLUDE_FROM_ALL ${sources})
  set_target_properties(${name} PROPERTIES
    UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  target_compile_options(${name} PRIVATE ${COPY_FLAGS} -Wall -Wextra
    -Wno-unused-parameter)
  target_compile_definitions(${name} PRIVATE
    ATTUNE_VERSION="${PROJECT_VERSION}")
  target_include_directories(${name} PUBLIC
    ${ATTUNE_INCLUDE_DIRS} ${PROJECT_SOURCE_DIR}/lib/Runtime)
  foreach(room ${COPY_UNPARSED_ARGUMENTS})
    target_include_directories(${name} SYSTEM PRIVATE
      $<TARGET_PROPERTY:${room},INCLUDE_DIRECTORIES>)
  endforeach()
  target_link_libraries(${name} PUBLIC
    nlohmann_json::nlohmann_json Threads::Threads ${CMAKE_DL_LIBS})
  add_dependencies(${name} AttuneHeaders)
endfunction()
