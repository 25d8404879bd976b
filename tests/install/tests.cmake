# What the shared library gives to others (its name, its symbols, programs that run with it), and what others
# make of an installed tree.
if(SARDONYX_SANITIZE OR WIN32)
  return()
endif()

if(TARGET sardonyx_shared)
  add_executable(uses_shared ${PROJECT_SOURCE_DIR}/tests/install/main.cc)
  target_link_libraries(uses_shared PRIVATE sardonyx_shared)
  add_executable(own_operator_shared ${PROJECT_SOURCE_DIR}/examples/custom_operators/program.cc)
  target_link_libraries(own_operator_shared PRIVATE sardonyx_shared)
  add_test(NAME shared_library
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/install/check_shared.py
      $<TARGET_FILE:sardonyx_shared> ${PROJECT_VERSION_MAJOR})
  add_test(NAME shared_model
    COMMAND uses_shared ${PROJECT_SOURCE_DIR}/examples/digits/digits.onnx)
  add_test(NAME shared_operator COMMAND own_operator_shared $<TARGET_FILE:example_operators>)
endif()

if(SARDONYX_INSTALL AND TARGET sardonyx_static AND TARGET sardonyx_shared AND TARGET sardonyx_cli AND NOT CMAKE_CROSSCOMPILING)
  add_test(NAME install
    COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/tests/install/install_test.py
      --build ${PROJECT_BINARY_DIR} --work ${PROJECT_BINARY_DIR}/install-test
      --cmake ${CMAKE_COMMAND} --generator ${CMAKE_GENERATOR}
      --cc ${CMAKE_C_COMPILER} --cxx ${CMAKE_CXX_COMPILER} --linker-flags=${CMAKE_EXE_LINKER_FLAGS})
endif()
