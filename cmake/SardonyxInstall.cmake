# One library of all modules, and what `cmake --install` puts where.
#
# The library is shared with BUILD_SHARED_LIBS, static otherwise; both are made of the same objects,
# so that a tree with tests also links and tests the shared one. The program and the tests are
# linked to the modules themselves, since they use what the library hides.
include(CMakePackageConfigHelpers)

set(library_objects)
set(library_needs)
foreach(module base kernels image ir wire schema check lenient ops infer eval autodiff lower compose passes run session train api capi)
  if(NOT TARGET sardonyx_${module})
    continue()
  endif()
  get_target_property(module_type sardonyx_${module} TYPE)
  if(module_type STREQUAL "INTERFACE_LIBRARY")
    continue()
  endif()
  list(APPEND library_objects $<TARGET_OBJECTS:sardonyx_${module}>)
  get_target_property(module_libraries sardonyx_${module} LINK_LIBRARIES)
  list(APPEND library_needs ${module_libraries})
endforeach()
get_target_property(highway_library sardonyx_highway INTERFACE_LINK_LIBRARIES)
if(highway_library)
  list(APPEND library_needs ${highway_library})
endif()
list(FILTER library_needs EXCLUDE REGEX "^sardonyx_|^nlohmann_json::")
list(REMOVE_DUPLICATES library_needs)

function(sardonyx_add_library target)
  add_library(${target} ${ARGN} ${library_objects})
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME sardonyx
    EXPORT_NAME sardonyx
    LINKER_LANGUAGE CXX
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${target} PRIVATE ${library_needs})
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "SHARED_LIBRARY")  # names of the libraries inside stay inside
    set(map ${PROJECT_SOURCE_DIR}/cmake/sardonyx.map)
    target_link_options(${target} PRIVATE -Wl,--version-script=${map})
    set_target_properties(${target} PROPERTIES LINK_DEPENDS ${map})
  endif()
  if(SARDONYX_SANITIZE)
    target_link_options(${target} PUBLIC -fsanitize=${SARDONYX_SANITIZE})
  endif()
endfunction()

sardonyx_add_library(sardonyx_library)
add_library(sardonyx::sardonyx ALIAS sardonyx_library)
# The headers alone: all that a library of operators needs (docs/custom_operators.md).
add_library(sardonyx_headers INTERFACE)
add_library(sardonyx::headers ALIAS sardonyx_headers)
set_target_properties(sardonyx_headers PROPERTIES EXPORT_NAME headers)
target_compile_features(sardonyx_headers INTERFACE cxx_std_20)
target_include_directories(sardonyx_headers INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

# Who links the static library also links what it needs: how CMake finds it, and pkg-config's name.
set(need_fmt::fmt "find_dependency(fmt)" fmt)
set(need_Threads::Threads "find_dependency(Threads)" "-pthread")
set(need_ZLIB::ZLIB "find_dependency(ZLIB)" zlib)
set(need_PNG::PNG "find_dependency(PNG)" libpng)
set(need_JPEG::JPEG "find_dependency(JPEG)" libjpeg)
set(need_PkgConfig::hwy "find_dependency(PkgConfig)\npkg_check_modules(hwy REQUIRED IMPORTED_TARGET libhwy)" libhwy)
set(need_PkgConfig::re2 "find_dependency(PkgConfig)\npkg_check_modules(re2 REQUIRED IMPORTED_TARGET re2)" re2)
set(SARDONYX_DEPENDENCIES "")
set(SARDONYX_PC_REQUIRES "")
set(SARDONYX_PC_LIBS "")
foreach(need IN LISTS library_needs)
  if(NOT DEFINED need_${need})
    message(FATAL_ERROR "cmake/SardonyxInstall.cmake does not know how users of the library find '${need}'")
  endif()
  list(GET need_${need} 0 find)
  list(GET need_${need} 1 pc)
  string(APPEND SARDONYX_DEPENDENCIES "${find}\n")
  if(pc MATCHES "^-")
    string(APPEND SARDONYX_PC_LIBS " ${pc}")
  else()
    string(APPEND SARDONYX_PC_REQUIRES " ${pc}")
  endif()
endforeach()
if(BUILD_SHARED_LIBS)
  set(SARDONYX_DEPENDENCIES "")
endif()

# The installed tree may be moved: all paths are relative to the files that hold them.
set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/sardonyx)
set(pc_folder ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}" OR IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
  set(SARDONYX_PC_PREFIX "${CMAKE_INSTALL_PREFIX}")
  set(SARDONYX_PC_LIBDIR "${CMAKE_INSTALL_FULL_LIBDIR}")
  set(SARDONYX_PC_INCLUDEDIR "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
else()
  file(RELATIVE_PATH up "/prefix/${pc_folder}" "/prefix")
  set(SARDONYX_PC_PREFIX "\${pcfiledir}/${up}")
  set(SARDONYX_PC_LIBDIR "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
  set(SARDONYX_PC_INCLUDEDIR "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/sardonyx.pc.in ${PROJECT_BINARY_DIR}/sardonyx.pc @ONLY)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/sardonyx-config.cmake.in
  ${PROJECT_BINARY_DIR}/sardonyx-config.cmake INSTALL_DESTINATION ${config_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/sardonyx-config-version.cmake
  COMPATIBILITY SameMinorVersion)

install(TARGETS sardonyx_library sardonyx_headers EXPORT sardonyx-targets)
install(EXPORT sardonyx-targets NAMESPACE sardonyx:: DESTINATION ${config_folder})
install(FILES ${PROJECT_BINARY_DIR}/sardonyx-config.cmake ${PROJECT_BINARY_DIR}/sardonyx-config-version.cmake
  DESTINATION ${config_folder})
install(FILES ${PROJECT_BINARY_DIR}/sardonyx.pc DESTINATION ${pc_folder})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/sardonyx DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
if(TARGET sardonyx_cli)
  install(TARGETS sardonyx_cli)
endif()

# What the shared library gives to others: its name, its symbols, and programs that run with it.
if(SARDONYX_BUILD_TESTS AND NOT SARDONYX_SANITIZE)
  set(shared sardonyx_library)
  if(NOT BUILD_SHARED_LIBS)
    set(shared sardonyx_shared)
    sardonyx_add_library(${shared} SHARED)
    set_target_properties(${shared} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/shared)
  endif()
  add_executable(uses_shared ${PROJECT_SOURCE_DIR}/tests/install/main.cc)
  target_link_libraries(uses_shared PRIVATE ${shared})
  add_executable(own_operator_shared ${PROJECT_SOURCE_DIR}/examples/custom_operators/program.cc)
  target_link_libraries(own_operator_shared PRIVATE ${shared})
  add_test(NAME shared_library
    COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/tests/install/check_shared.py
      $<TARGET_FILE:${shared}> ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  add_test(NAME shared_model
    COMMAND uses_shared ${PROJECT_SOURCE_DIR}/examples/digits/digits.onnx)
  add_test(NAME shared_operator COMMAND own_operator_shared $<TARGET_FILE:example_operators>)
endif()

# Installs into a folder of the build tree, moves it, and builds a program outside of the tree.
if(SARDONYX_BUILD_TESTS AND NOT SARDONYX_SANITIZE)
  add_test(NAME install COMMAND ${CMAKE_COMMAND}
    -D build=${PROJECT_BINARY_DIR}
    -D work=${PROJECT_BINARY_DIR}/install-test
    -D source=${PROJECT_SOURCE_DIR}/tests/install
    -D operators=${PROJECT_SOURCE_DIR}/examples/custom_operators
    -D model=${PROJECT_SOURCE_DIR}/examples/digits/digits.onnx
    -D generator=${CMAKE_GENERATOR}
    -D compiler=${CMAKE_CXX_COMPILER}
    -D linker_flags=${CMAKE_EXE_LINKER_FLAGS}
    -P ${PROJECT_SOURCE_DIR}/tests/install/run.cmake)
endif()
