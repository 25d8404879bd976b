# The library of all modules, static and shared, both made of the same objects.
#
# sardonyx::static and sardonyx::shared are the two, sardonyx::sardonyx is the one that BUILD_SHARED_LIBS
# chooses, sardonyx::headers the public headers without either. The program and most tests are linked to
# the modules themselves.
if(SARDONYX_SANITIZE)
  set(kinds static)
else()
  set(kinds static shared)
endif()
set(SARDONYX_LIBRARIES "${kinds}" CACHE STRING "The libraries to make: static, shared or both")
foreach(kind IN LISTS SARDONYX_LIBRARIES)
  if(NOT kind MATCHES "^(static|shared)$")
    message(FATAL_ERROR "SARDONYX_LIBRARIES: '${kind}' is neither static nor shared")
  endif()
endforeach()
if(NOT SARDONYX_LIBRARIES)
  message(FATAL_ERROR "SARDONYX_LIBRARIES is empty: say static, shared, or static;shared")
endif()

set(library_objects)
set(library_needs)
foreach(module base kernels image ir wire formats schema check lenient ops infer eval autodiff lower compose passes run session tools train api capi)
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

# The headers alone: all that a library of operators needs (docs/custom_operators.md).
add_library(sardonyx_headers INTERFACE)
add_library(sardonyx::headers ALIAS sardonyx_headers)
set_target_properties(sardonyx_headers PROPERTIES EXPORT_NAME headers)
target_compile_features(sardonyx_headers INTERFACE cxx_std_20)
target_include_directories(sardonyx_headers INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

foreach(kind IN LISTS SARDONYX_LIBRARIES)
  string(TOUPPER ${kind} type)
  set(target sardonyx_${kind})
  add_library(${target} ${type} ${library_objects})
  add_library(sardonyx::${kind} ALIAS ${target})
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME sardonyx
    EXPORT_NAME ${kind}
    LINKER_LANGUAGE CXX)
  if(NOT PROJECT_IS_TOP_LEVEL)  # whoever includes this tree links one of them, if any
    set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${target} PRIVATE ${library_needs})
  if(SARDONYX_SANITIZE)
    target_link_options(${target} PUBLIC -fsanitize=${SARDONYX_SANITIZE})
  endif()
endforeach()

if(TARGET sardonyx_shared AND WIN32)
  # The C interface alone: a C++ one would serve users of this very compiler only.
  set(exports ${PROJECT_BINARY_DIR}/sardonyx.def)
  file(GLOB c_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/sardonyx/sardonyx*.h)
  add_custom_command(OUTPUT ${exports}
    COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/tools/c_interface.py ${exports}
    DEPENDS ${PROJECT_SOURCE_DIR}/tools/c_interface.py ${c_headers})
  target_sources(sardonyx_shared PRIVATE ${exports})
  set_target_properties(sardonyx_shared PROPERTIES PREFIX "" RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/shared)
  sardonyx_link_small(sardonyx_shared)
elseif(TARGET sardonyx_shared)
  set(map ${PROJECT_SOURCE_DIR}/cmake/sardonyx.map)  # names of the libraries inside stay inside
  set_target_properties(sardonyx_shared PROPERTIES
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/shared
    LINK_DEPENDS ${map})
  target_link_options(sardonyx_shared PRIVATE -Wl,--version-script=${map})
  sardonyx_link_small(sardonyx_shared)
endif()

if(TARGET sardonyx_shared AND (BUILD_SHARED_LIBS OR NOT TARGET sardonyx_static))
  set(SARDONYX_DEFAULT_KIND shared)
else()
  set(SARDONYX_DEFAULT_KIND static)
endif()
add_library(sardonyx_library ALIAS sardonyx_${SARDONYX_DEFAULT_KIND})
add_library(sardonyx::sardonyx ALIAS sardonyx_${SARDONYX_DEFAULT_KIND})
