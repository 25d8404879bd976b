# libonnxruntime.so.1: what a program that was built for ONNX Runtime loads instead of its library (docs/onnxruntime.md).
# All of Sardonyx is in it, so that one file is what is swapped; it exports OrtGetApiBase and nothing of the rest.
if(NOT TARGET sardonyx_ort_api OR SARDONYX_SANITIZE OR WIN32)  # not tried on Windows yet
  return()
endif()
add_library(sardonyx_onnxruntime SHARED $<TARGET_OBJECTS:sardonyx_ort_api> ${library_objects})
add_library(sardonyx::onnxruntime ALIAS sardonyx_onnxruntime)
set_target_properties(sardonyx_onnxruntime PROPERTIES
  OUTPUT_NAME onnxruntime
  EXPORT_NAME onnxruntime
  LINKER_LANGUAGE CXX)
target_link_libraries(sardonyx_onnxruntime PRIVATE ${library_needs})
if(NOT PROJECT_IS_TOP_LEVEL)
  set_target_properties(sardonyx_onnxruntime PROPERTIES EXCLUDE_FROM_ALL ON)
endif()
# Programs ask for the function by the version of the release that they were linked to.
set(map ${CMAKE_CURRENT_BINARY_DIR}/onnxruntime.map)
set(aliases ${CMAKE_CURRENT_BINARY_DIR}/onnxruntime_versions.cc)
set(tool ${PROJECT_SOURCE_DIR}/tools/onnxruntime_versions.py)
add_custom_command(OUTPUT ${map} ${aliases} COMMAND Python3::Interpreter ${tool} ${map} ${aliases} DEPENDS ${tool})
set_source_files_properties(${aliases} PROPERTIES OBJECT_DEPENDS ${map})
target_sources(sardonyx_onnxruntime PRIVATE ${aliases})
set_target_properties(sardonyx_onnxruntime PROPERTIES
  VERSION 1
  SOVERSION 1
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/onnxruntime
  LINK_DEPENDS ${map})
target_link_options(sardonyx_onnxruntime PRIVATE -Wl,--version-script=${map})
sardonyx_link_small(sardonyx_onnxruntime)
